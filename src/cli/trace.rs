//! `dyelog trace`.

use clap::{Args, Subcommand};
use dyelog::diagnostic::{Diagnostic, Place};

use crate::cli::args::{OutputArguments, TraceArguments};
use crate::cli::terminal::Terminal;
use crate::cli::{Outcome, codes, input};

/// The subcommands of `dyelog trace`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Report which operations are well formed, and what is wrong with the others
    Check(CheckArguments),
    /// Write traces in another format
    Convert(CheckArguments),
    /// Count what is in traces
    Stat(CheckArguments),
}

/// Arguments of `dyelog trace check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    #[command(flatten)]
    input: TraceArguments,
    #[command(flatten)]
    output: OutputArguments,
}

/// Runs a subcommand of `dyelog trace`.
pub fn run(command: &Command, _terminal: &mut Terminal) -> Outcome {
    let (Command::Check(arguments) | Command::Convert(arguments) | Command::Stat(arguments)) = command;
    input::check_stdin_once(&arguments.input.traces)?;
    let _ = &arguments.output;
    Err(Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, "not there yet").into())
}
