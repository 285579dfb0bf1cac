//! `dyelog rules`.

mod check;
mod doc;
mod draw;
mod format;
mod lsp;
mod new;
pub mod pick;
mod plan;
mod profile;

use clap::Subcommand;

use crate::cli::Outcome;
use crate::cli::terminal::Terminal;

/// The subcommands of `dyelog rules`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Report what is wrong with rule files; exits with 1 where there is an error
    Check(check::Arguments),
    /// Put rule files into one style, comments and all
    Fmt(format::Arguments),
    /// Tell how the nodes of a template are reached
    Plan(plan::Arguments),
    /// Measure what each rule and literal costs over traces: rows, rounds, time, cartesian products
    Profile(profile::Arguments),
    /// Draw a template as the paper's Table 1 does, as SVG
    Draw(draw::Arguments),
    /// Write what a rule file says as a page of a manual, in Markdown
    Doc(doc::Arguments),
    /// Serve editors over standard input and output, by the language server protocol
    Lsp(lsp::Arguments),
    /// Make a template to start from, with a golden trace that passes its test
    New(new::Arguments),
}

/// Runs a subcommand of `dyelog rules`.
pub fn run(command: &Command, terminal: &mut Terminal) -> Outcome {
    match command {
        Command::Check(arguments) => check::run(arguments, terminal),
        Command::Fmt(arguments) => format::run(arguments, terminal),
        Command::Plan(arguments) => plan::run(arguments, terminal),
        Command::Profile(arguments) => profile::run(arguments, terminal),
        Command::Draw(arguments) => draw::run(arguments, terminal),
        Command::Doc(arguments) => doc::run(arguments, terminal),
        Command::Lsp(_) => Ok(lsp::run()),
        Command::New(arguments) => new::run(arguments, terminal),
    }
}
