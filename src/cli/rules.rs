//! `dyelog rules`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use dyelog::diagnostic::{Diagnostic, Place};

use crate::cli::terminal::Terminal;
use crate::cli::{Outcome, codes, input};

/// The subcommands of `dyelog rules`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Report what is wrong with rule files
    Check(CheckArguments),
}

/// Arguments of `dyelog rules check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// Rule files; the shipped ones where none is given
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Runs a subcommand of `dyelog rules`.
pub fn run(command: &Command, _terminal: &mut Terminal) -> Outcome {
    let Command::Check(arguments) = command;
    input::check_stdin_once(&arguments.files)?;
    Err(Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, "not there yet").into())
}
