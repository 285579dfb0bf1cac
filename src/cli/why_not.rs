//! `dyelog why-not`.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::Args;
use dyelog::diagnostic::quantity::counted;
use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::pipeline::{self, FOLLOWED, Nearest, Verdict};
use dyelog::query::{Answering, TraceFacts};
use dyelog::report::explain::why_not as report;
use dyelog::tlc::explain::{Study, WhyNot, why_not};
use dyelog::tlc::matcher::Relations;
use dyelog::tlc::plan::TemplatePlan;
use dyelog::trace::{NodeId, NodeName};
use serde_json::{Value as Json, json};

use crate::cli::args::{Form, OutputArguments, ReadingArguments};
use crate::cli::exit::Exit;
use crate::cli::fact::{self, is_rule_file};
use crate::cli::message::{self, Asked};
use crate::cli::output;
use crate::cli::query::{Over, Unshown};
use crate::cli::rules::pick;
use crate::cli::study::{self, Missing, OperationArguments};
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, Outcome, codes, input, messages, rule_files};

/// Arguments of `dyelog why-not`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "why the event of a line is no part of a basic RPC" => "dyelog why-not basic_rpc traces/rpc-phase2.angio:12",
    "by its label, thread and counter being enough" => "dyelog why-not forwarding 1,2 traces/rpc.angio",
    "why a fact does not hold: the nearest rule, its bindings and what fails" => "dyelog why-not examples/rules/calls.dl 'reaches(\"1,2\", \"1,1\")' traces/rpc.angio",
    "why no span is slow: of all operations, where rules come nearest" => "dyelog why-not examples/queries/slow.dl 'slow(_, 1)' traces/shop.otlp.jsonl",
    "why a message is not the reply of a synchronous call" => "dyelog why-not sync traces/same/figure-3a.csv:7",
    "a span, by its identifier" => "dyelog why-not asynchronous f7ffa2fb5dfd04f3 traces/shop.otlp.jsonl",
})]
pub struct Arguments {
    /// The template; or a rule file, whose name ends in `.dl`
    #[arg(value_name = "TEMPLATE|FILE.dl")]
    template: String,
    /// The node: FILE:LINE, SCENARIO,THREAD,COUNTER or THREAD,COUNTER as in the native format, |TASK,COUNTER, or the identifier
    /// of a span; a message as FILE:LINE; behind a rule file a fact, with `_` for any value, nodes and spans in double quotes
    #[arg(value_name = "NODE|FACT")]
    node: String,
    /// Trace files to look for it in; not needed where the node's name tells the file
    #[arg(value_name = "TRACE")]
    traces: Vec<PathBuf>,
    #[command(flatten)]
    operation: OperationArguments,
    #[command(flatten)]
    over: Over,
    #[command(flatten)]
    reading: ReadingArguments,
    /// A rule file whose templates come before the shipped ones, and replace those of the same name; may be repeated
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
    /// The form of the answer; that of the output file's extension where not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Form>,
    #[command(flatten)]
    output: OutputArguments,
}

/// Tells why a template does not take a node.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let format = output::form(arguments.format, Form::Text, &arguments.output)?;
    if is_rule_file(Path::new(&arguments.template)) {
        let text = about_fact(arguments, format, terminal)?;
        output::write(&arguments.output, &text)?;
        return Ok(Exit::Ok);
    }
    arguments.over.bounds.check_unused()?;
    let name = NodeName::parse(&arguments.node);
    let files = study::traces(&arguments.traces, &name)?;
    input::check_stdin_once(files.iter().chain(&arguments.rules))?;
    if messages::are_messages(&files, &arguments.reading)? {
        let text = about_message((arguments, format), &name, &files, terminal)?;
        output::write(&arguments.output, &text)?;
        return Ok(Exit::Ok);
    }
    let rules = pick::load(&arguments.rules, terminal)?;
    pick::template(&rules, &arguments.template)?;
    let is = |plan: &&TemplatePlan| *plan.name == *arguments.template;
    let templates: Vec<u16> = (0..).zip(rules.plans()).filter(|(_, plan)| is(plan)).map(|(number, _)| number).collect();
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
        let answers: Vec<_> = nodes.iter().map(|&node| nearest(study, relations, &templates, node)).collect();
        answer = Some(match format {
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

/// Tells why a template on events does not take a message.
fn about_message(
    (arguments, format): (&Arguments, Form),
    name: &NodeName,
    files: &[PathBuf],
    terminal: &mut Terminal,
) -> Result<String, Failure> {
    let asked = Asked {
        name,
        files,
        rules: &arguments.rules,
        reading: &arguments.reading,
        guess_threads: arguments.over.guess_threads,
        run: arguments.operation.run.as_deref(),
    };
    let found = message::find(&asked, Some(&arguments.template), terminal)?;
    let look = terminal.look(&arguments.output);
    Ok(found.explained().zip(found.template).map_or_else(String::new, |(explained, template)| match format {
        Form::Text => explained.why_not(template, look),
        Form::Json => explained.why_not_json(template),
    }))
}

/// Tells why a fact does not hold: of all operations by the one where rules come nearest.
fn about_fact(arguments: &Arguments, format: Form, terminal: &mut Terminal) -> Result<String, Failure> {
    let file = PathBuf::from(&arguments.template);
    if arguments.traces.is_empty() {
        let finding = Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, "there is no trace to look for the fact in");
        return Err(finding.with_hint("name traces behind the fact").into());
    }
    input::check_stdin_once(arguments.traces.iter().chain([&file]).chain(&arguments.rules))?;
    let (about, opened) =
        fact::open(&file, Some(&arguments.node), &arguments.traces, &arguments.reading, &arguments.over, terminal)?;
    let run = arguments.operation.run.as_deref();
    about.check_run(run)?;
    terminal.report(&rule_files::not_allowed(&about.program, &about.question.warnings));
    let rules = rule_files::load(&arguments.rules, &mut terminal.sources)?;
    let look = terminal.look(&arguments.output);
    let mut nearest = Nearest::new(arguments.over.bounds.limits());
    let mut work = |facts: &TraceFacts<'_>, key: Option<(&str, &str)>| {
        if run.is_some_and(|run| key.is_none_or(|(_, own)| own != run)) {
            return Ok(ControlFlow::Continue(()));
        }
        let subject = about.subject(key);
        let (scenario, own_run) = key.unzip();
        nearest.look_at(&about, facts, |words, verdict| match verdict {
            Verdict::Holds(relation, pattern) => {
                let text = format!("{subject}\n{} does hold\n", words.row(relation, pattern));
                (text, json!({ "holds": true, "scenario": scenario, "run": own_run }))
            }
            Verdict::Denied(followed) => {
                let mut json = words.why_not_json(followed);
                (json["scenario"], json["run"]) = (json!(scenario), json!(own_run));
                (format!("{subject}\n{}", words.why_not(followed, look)), json)
            }
        })
    };
    let mut unshown = Unshown;
    let mut answering = Answering::new(&about.question, &rules, &mut unshown).handing_over(&mut work);
    let (names, read, quality) = opened.read(&mut answering)?;
    let told = answering.finish(&names)?;
    terminal.report_kinds(&read, |_| true);
    pipeline::tell_quality(&quality, terminal);
    terminal.report(&told.findings);
    let Some(best) = nearest.best else {
        let message = if nearest.operations > 0 {
            "the traces have no value or node that the fact names"
        } else {
            "there is no such operation"
        };
        let finding = Diagnostic::error(codes::NOT_THERE, Place::Nowhere, message);
        return Err(nearest.unnamed.told(finding).into());
    };
    let (mut text, facts): (String, Vec<Json>) = best.verdicts.into_iter().unzip();
    if format == Form::Json {
        return Ok(format!("{:#}\n", json!({ "dyelog-why-not-facts": 1, "facts": facts })));
    }
    if best.holds {
        text.push_str(&format!("`dyelog explain {} TRACE --fact FACT` shows its proof\n", file.display()));
    } else if nearest.operations > u64::from(FOLLOWED) {
        let first = counted(FOLLOWED, "operation");
        text.push_str(&format!("the nearest of the first {first}; in the others the fact does not hold either\n"));
    }
    Ok(text)
}

/// The answer of the one of a template's alternatives that comes nearest.
fn nearest(study: &Study<'_>, relations: &dyn Relations, templates: &[u16], node: NodeId) -> WhyNot {
    let rank = |answer: &WhyNot| {
        let tries = answer.tries.iter().map(|one| (one.attempt.failure.is_none(), one.attempt.passed));
        (answer.committed().is_some(), tries.max())
    };
    let answers = templates.iter().map(|template| why_not(study, relations, *template, node));
    let nearest = answers.reduce(|best, next| if rank(&next) > rank(&best) { next } else { best });
    nearest.expect("the template has a plan")
}
