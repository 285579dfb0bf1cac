//! `dyelog rules doc`.

use std::path::PathBuf;

use clap::Args;
use dyelog::report::rule_docs;

use crate::cli::args::OutputArguments;
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::rules::pick;
use crate::cli::terminal::Terminal;
use crate::cli::{Outcome, input};

/// Arguments of `dyelog rules doc`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "a page on the shipped templates" => "dyelog rules doc rules/tlc.dl",
    "one on templates of one's own" => "dyelog rules doc examples/rules/acknowledged.dl -o acknowledged.md",
})]
pub struct Arguments {
    /// The rule file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    output: OutputArguments,
}

/// Writes what a rule file says as Markdown.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let rules = pick::load(std::slice::from_ref(&arguments.file), terminal)?;
    let name = input::shown(&arguments.file);
    let files = &rules.program().files;
    let number = files.iter().position(|file| file.name == name).unwrap_or_default();
    output::write(&arguments.output, &rule_docs::markdown(rules.program(), number as u32))?;
    Ok(Exit::Ok)
}
