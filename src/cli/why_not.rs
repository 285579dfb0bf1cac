//! `dyelog why-not`.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::Args;
use dyelog::datalog::eval::Evaluator;
use dyelog::diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog::report::explain::facts::Words;
use dyelog::report::explain::why_not as report;
use dyelog::tlc::Rules;
use dyelog::tlc::explain::why_not;
use dyelog::tlc::facts::{GraphFacts, schema};
use dyelog::trace::NodeName;
use serde_json::{Value as Json, json};

use crate::cli::args::{Form, OutputArguments, ReadingArguments};
use crate::cli::exit::Exit;
use crate::cli::fact::{Asked, is_rule_file, node_words, patterns, symbol_words};
use crate::cli::output;
use crate::cli::rules::pick;
use crate::cli::study::{self, Missing, OperationArguments};
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, Outcome, codes, input};

/// Arguments of `dyelog why-not`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "why the event of a line is no part of a basic RPC" => "dyelog why-not basic_rpc traces/rpc-phase2.angio:12",
    "by its label, thread and counter being enough" => "dyelog why-not forwarding 1,2 traces/rpc.angio",
    "why a fact does not hold: the nearest rule, its bindings and what fails" => "dyelog why-not examples/rules/calls.dl 'reaches(\"1,2\", \"1,1\")' traces/rpc.angio",
    "a span, by its identifier" => "dyelog why-not asynchronous f7ffa2fb5dfd04f3 traces/shop.otlp.jsonl",
})]
pub struct Arguments {
    /// The template; or a rule file, whose name ends in `.dl`
    #[arg(value_name = "TEMPLATE|FILE.dl")]
    template: String,
    /// The node: FILE:LINE, SCENARIO,THREAD,COUNTER or THREAD,COUNTER as in the native format, |TASK,COUNTER, or the identifier
    /// of a span; behind a rule file a fact, with `_` for any value and nodes in double quotes
    #[arg(value_name = "NODE|FACT")]
    node: String,
    /// Trace files to look for it in; not needed where the node's name tells the file
    #[arg(value_name = "TRACE")]
    traces: Vec<PathBuf>,
    #[command(flatten)]
    operation: OperationArguments,
    #[command(flatten)]
    reading: ReadingArguments,
    /// A rule file whose templates come before the shipped ones, and replace those of the same name; may be repeated
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
    /// The form of the answer
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Form::Text)]
    format: Form,
    #[command(flatten)]
    output: OutputArguments,
}

/// Tells why a template does not take a node.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    if is_rule_file(Path::new(&arguments.template)) {
        let text = fact(arguments, terminal)?;
        output::write(&arguments.output, &text)?;
        return Ok(Exit::Ok);
    }
    let name = NodeName::parse(&arguments.node);
    let files = study::traces(&arguments.traces, &name)?;
    input::check_stdin_once(files.iter().chain(&arguments.rules))?;
    let rules = pick::load(&arguments.rules, terminal)?;
    pick::template(&rules, &arguments.template)?;
    let template = rules.plans().iter().position(|plan| *plan.name == *arguments.template);
    let template = template.and_then(|number| u16::try_from(number).ok()).unwrap_or_default();
    let look = terminal.look(&arguments.output);
    let run = arguments.operation.run.as_deref();
    let mut missing = Missing::default();
    let mut answer: Option<String> = None;
    let quality = study::each(&files, &arguments.reading, &rules, |study, relations| {
        let wanted = run.is_none_or(|run| *run == **study.run());
        let nodes = if wanted { name.find(study.toeg, study.names) } else { Vec::new() };
        if nodes.is_empty() {
            missing.saw(study, &name);
            return ControlFlow::Continue(());
        }
        let answers: Vec<_> = nodes.iter().map(|&node| why_not(study, relations, template, node)).collect();
        answer = Some(match arguments.format {
            Form::Text => {
                let parts: Vec<String> = answers.iter().map(|one| report::text(study, one, look)).collect();
                parts.join("\n")
            }
            Form::Json => report::json(study, &answers),
        });
        ControlFlow::Break(())
    })?;
    let Some(text) = answer else { return Err(missing.finding(&name, run, &quality).into()) };
    output::write(&arguments.output, &text)?;
    Ok(Exit::Ok)
}

/// Tells why a fact does not hold, in each operation; the first one with an answer in words.
fn fact(arguments: &Arguments, terminal: &mut Terminal) -> Result<String, Failure> {
    let file = Path::new(&arguments.template);
    if arguments.traces.is_empty() {
        let finding = Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, "there is no trace to look for the fact in");
        return Err(finding.with_hint("name traces behind the fact").into());
    }
    let asked = Asked::load(file, terminal)?;
    let (relation, atom) = asked.fact(&arguments.node)?;
    let look = terminal.look(&arguments.output);
    let run = arguments.operation.run.as_deref();
    let (mut texts, mut answers): (Vec<String>, Vec<Json>) = (Vec::new(), Vec::new());
    let mut failed: Option<Diagnostics> = None;
    let (mut seen, mut holds) = (false, false);
    let rules = Rules::shipped();
    study::each(&arguments.traces, &arguments.reading, &rules, |study, _| {
        if run.is_some_and(|run| *run != **study.run()) {
            return ControlFlow::Continue(());
        }
        seen = true;
        let graph = GraphFacts::new(study.toeg, study.names);
        let mut evaluator = Evaluator::new(&asked.rules, &graph);
        let node = |node| node_words(study, node);
        let owned = Evaluator::new(&asked.rules, &graph);
        let symbol = |value| symbol_words(study, &owned, value);
        let words = Words::new(&asked.program, &asked.rules, schema(), &node, &symbol);
        for pattern in patterns(study, &words, &evaluator, relation, &atom) {
            let operation = format!("{} run={}", study.scenario(), study.run());
            match evaluator.why_not(relation, &pattern) {
                Ok(Some(answer)) => {
                    texts.push(format!("{operation}\n{}", words.why_not(relation, &pattern, &answer, look)));
                    let mut json = words.why_not_json(relation, &pattern, &answer);
                    json["scenario"] = json!(study.scenario());
                    json["run"] = json!(&**study.run());
                    answers.push(json);
                }
                Ok(None) => {
                    holds = true;
                    texts.push(format!("{operation}\n{} does hold\n", words.row(relation, &pattern)));
                    answers.push(json!({ "holds": true, "scenario": study.scenario(), "run": &**study.run() }));
                }
                Err(diagnostics) => {
                    failed = Some(diagnostics);
                    return ControlFlow::Break(());
                }
            }
        }
        if texts.is_empty() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    if let Some(diagnostics) = failed {
        return Err(diagnostics.into());
    }
    if texts.is_empty() {
        let message =
            if seen { "the traces have no value or node that the fact names" } else { "there is no such operation" };
        let finding = Diagnostic::error(codes::NOT_THERE, Place::Nowhere, message);
        return Err(finding
            .with_hint("nodes are named as by `dyelog explain --node`, and symbols as the trace has them")
            .into());
    }
    let hint = if holds {
        format!("`dyelog explain {} TRACE --fact FACT` shows its proof\n", file.display())
    } else {
        String::new()
    };
    Ok(match arguments.format {
        Form::Text => texts.join("\n") + &hint,
        Form::Json => format!("{:#}\n", json!({ "dyelog-why-not-facts": 1, "facts": answers })),
    })
}
