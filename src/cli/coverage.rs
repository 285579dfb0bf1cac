//! `dyelog coverage`.

use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;
use dyelog::report::explain::coverage::{self as report, FileCoverage};
use dyelog::tlc::explain::Coverage;

use crate::cli::args::{Form, OutputArguments, TraceArguments};
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::rules::pick;
use crate::cli::terminal::Terminal;
use crate::cli::{Outcome, input, study};

/// How many unprocessed nodes are shown where not all are asked for.
const SHOWN: usize = 10;

/// Arguments of `dyelog coverage`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "which templates fired, and how often" => "dyelog coverage traces/case-study.angio",
    "with a rule file of your own" => "dyelog coverage traces/acknowledged.angio --rules examples/rules/acknowledged.dl",
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
    /// The form of the report
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Form::Text)]
    format: Form,
    #[command(flatten)]
    output: OutputArguments,
}

/// Tells which templates fired and which nodes none took.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let files = &arguments.input.traces;
    input::check_stdin_once(files.iter().chain(&arguments.rules))?;
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
    let text = match arguments.format {
        Form::Text => report::text(&rules, &found, &all, terminal.look(&arguments.output)),
        Form::Json => report::json(&rules, &found, &all),
    };
    output::write(&arguments.output, &text)?;
    Ok(if report::is_finding(&rules, &all) { Exit::Finding } else { Exit::Ok })
}
