//! `dyelog model`.

use clap::Args;
use dyelog::diagnostic::{Diagnostic, Place};

use crate::cli::args::{OutputArguments, ReduceArguments, TraceArguments};
use crate::cli::terminal::Terminal;
use crate::cli::{Outcome, codes, input};

/// Arguments of `dyelog model`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    input: TraceArguments,
    #[command(flatten)]
    reduce: ReduceArguments,
    #[command(flatten)]
    output: OutputArguments,
}

/// Runs `dyelog model`.
pub fn run(arguments: &Arguments, _terminal: &mut Terminal) -> Outcome {
    input::check_stdin_once(&arguments.input.traces)?;
    let _ = (&arguments.input.reading, arguments.reduce.thread_count(), &arguments.output);
    Err(Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, "not there yet").into())
}
