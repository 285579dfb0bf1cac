//! `dyelog compare`.

use clap::Args;
use dyelog::diagnostic::{Diagnostic, Diagnostics};
use dyelog::report::agreement;
use dyelog::study::agreement::Comparison;
use dyelog::trace::{self, TraceNames};

use crate::cli::args::{Form, OutputArguments, TraceArguments};
use crate::cli::exit::Exit;
use crate::cli::progress::Progress;
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, Outcome, input, messages, output, reduce, rule_files};

/// Arguments of `dyelog compare`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "how far to trust the analysis without a dye, and where it guesses otherwise" => "dyelog compare traces/shop.otlp.jsonl",
})]
pub struct Arguments {
    #[command(flatten)]
    input: TraceArguments,
    /// The form of the answer; that of the output file's extension where not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Form>,
    #[command(flatten)]
    output: OutputArguments,
}

/// Recognises interactions with the dye and without, and compares.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let format = output::form(arguments.format, Form::Text, &arguments.output)?;
    let (files, reading) = (&arguments.input.traces, &arguments.input.reading);
    input::check_stdin_once(files)?;
    messages::check_clocks(reading)?;
    let rules = rule_files::load(&[], &mut terminal.sources)?;
    let progress = Progress::reading(files);
    let mut names = TraceNames::new();
    let mut comparison = Comparison::new(&rules);
    let read = messages::read_operations(files, None, reading, &progress, &mut names, &mut comparison);
    progress.done();
    let report = read.map_err(|Diagnostics(found)| Failure::Input(found.into_iter().map(hinted).collect()))?;
    reduce::count(&report, "reading", terminal);
    let found = comparison.finish(&mut names)?;
    let text = match format {
        Form::Text => agreement::text(&found, terminal.look(&arguments.output)),
        Form::Json => agreement::json(&found),
    };
    output::write(&arguments.output, &text)?;
    Ok(Exit::Ok)
}

/// Tells what to do with messages that no dye joins.
fn hinted(finding: Diagnostic) -> Diagnostic {
    if finding.code != trace::codes::MIXED {
        return finding;
    }
    finding.with_hint(
        "`compare` needs a trace with a dye, such as spans, to hold the messages alone against; `dyelog matches` tells what these come to",
    )
}
