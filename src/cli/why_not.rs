//! `dyelog why-not`.

use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;
use dyelog::report::explain::why_not as report;
use dyelog::tlc::explain::why_not;
use dyelog::trace::NodeName;

use crate::cli::args::{Form, OutputArguments, ReadingArguments};
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::rules::pick;
use crate::cli::study::{self, Missing, OperationArguments};
use crate::cli::terminal::Terminal;
use crate::cli::{Outcome, input};

/// Arguments of `dyelog why-not`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "why the event of a line is no part of a basic RPC" => "dyelog why-not basic_rpc traces/rpc-phase2.angio:12",
    "by its label, thread and counter being enough" => "dyelog why-not forwarding 1,2 traces/rpc.angio",
    "a span, by its identifier" => "dyelog why-not asynchronous f7ffa2fb5dfd04f3 traces/shop.otlp.jsonl",
})]
pub struct Arguments {
    /// The template
    #[arg(value_name = "TEMPLATE")]
    template: String,
    /// The node: FILE:LINE, SCENARIO,THREAD,COUNTER or THREAD,COUNTER as in the native format, |TASK,COUNTER, or the identifier
    /// of a span
    #[arg(value_name = "NODE")]
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
