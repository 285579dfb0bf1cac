//! `dyelog coverage`.

use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;
use dyelog::authoring::has_event_templates;
use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::pipeline::{self, Listener, Options};
use dyelog::report::explain::coverage::{self as report, FileCoverage};
use dyelog::tlc::explain::Coverage;

use crate::cli::args::{Form, OutputArguments, TraceArguments};
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::rules::pick;
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, Outcome, codes, input, reduce, rule_files, study};

/// How many unprocessed nodes are shown where not all are asked for.
const SHOWN: usize = 10;

/// Arguments of `dyelog coverage`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "which templates fired, and how often" => "dyelog coverage traces/case-study.angio",
    "with a rule file of your own" => "dyelog coverage traces/acknowledged.angio --rules examples/rules/acknowledged.dl",
    "how often each template on events was carried out" => "dyelog coverage traces/same/figure-3a.csv",
    "as JSON, file by file" => "dyelog coverage traces/rpc.angio traces/forwarding-1.angio --format json",
})]
pub struct Arguments {
    #[command(flatten)]
    input: TraceArguments,
    /// A rule file whose templates come before the shipped ones, and replace those of the same name; may be repeated
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
    /// Show all unprocessed nodes, not only the first
    #[arg(long)]
    all: bool,
    /// The form of the report; that of the output file's extension where not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Form>,
    #[command(flatten)]
    output: OutputArguments,
}

/// Tells which templates fired and which nodes none took.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let format = output::form(arguments.format, Form::Text, &arguments.output)?;
    let files = &arguments.input.traces;
    input::check_stdin_once(files.iter().chain(&arguments.rules))?;
    if of_messages(arguments)? {
        return messages(arguments, format, terminal);
    }
    let rules = pick::load(&arguments.rules, terminal)?;
    let keep = if arguments.all { usize::MAX } else { SHOWN };
    let mut found: Vec<FileCoverage> = Vec::new();
    for file in files {
        let name = input::shown(file).to_string();
        if found.iter().all(|other| other.file != name) {
            found.push(FileCoverage { file: name, coverage: Coverage::default() });
        }
    }
    let quality = study::each(files, &arguments.input.reading, &rules, |study, _| {
        let name = &*study.toeg.operation().file;
        if let Some(of) = found.iter_mut().find(|of| of.file == *name) {
            of.coverage.add(study, keep);
        }
        ControlFlow::Continue(())
    })?;
    let mut all = Coverage::default();
    for file in &found {
        all.merge(&file.coverage, keep);
    }
    terminal.say_set_aside(quality.set_aside);
    let text = match format {
        Form::Text => report::text(&rules, &found, &all, terminal.look(&arguments.output)),
        Form::Json => report::json(&rules, &found, &all),
    };
    output::write(&arguments.output, &text)?;
    Ok(if report::is_finding(&rules, &all) { Exit::Finding } else { Exit::Ok })
}

/// Whether the rules, or where none are given the first of the traces, are for messages.
fn of_messages(arguments: &Arguments) -> Result<bool, Failure> {
    if !arguments.rules.is_empty() {
        return Ok(rule_files::texts(&arguments.rules)?.iter().any(has_event_templates));
    }
    crate::cli::messages::are_messages(&arguments.input.traces, &arguments.input.reading)
}

/// The same of messages, and templates on events.
fn messages(arguments: &Arguments, format: Form, terminal: &mut Terminal) -> Outcome {
    let load = |listener: &mut dyn Listener| {
        rule_files::load_events(&arguments.rules, &mut |file, text| listener.source(file, text))
    };
    let mut options = Options::default();
    options.reading = reduce::reading(&arguments.input.reading);
    if !arguments.rules.is_empty() {
        options.event_rules = Some(&load);
    }
    let reduced = pipeline::reduce(&input::inputs(&arguments.input.traces), None, &options, terminal)?;
    let Some(interactions) = &reduced.interactions else {
        let finding = Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, "these rules are for messages");
        return Err(finding.with_hint("templates of nodes match in traces with a dye").into());
    };
    let text = match format {
        Form::Text => report::events_text(&interactions.templates, terminal.look(&arguments.output)),
        Form::Json => report::events_json(&interactions.templates),
    };
    output::write(&arguments.output, &text)?;
    let idle = interactions.templates.iter().any(|one| one.times == 0 && !one.is_shipped);
    Ok(if idle { Exit::Finding } else { Exit::Ok })
}
