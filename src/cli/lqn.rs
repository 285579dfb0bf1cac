//! `dyelog lqn`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use dyelog::diagnostic::{Diagnostic, Diagnostics, Report, Severity};
use dyelog::lqn::{self, lint};
use dyelog::report;

use crate::cli::args::{Form, OutputArguments};
use crate::cli::exit::Exit;
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, Outcome, input, output};

/// Subcommands of `dyelog lqn`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Tell what is wrong with model files and what is doubtful; exits with 1 where there are errors or warnings
    Check(CheckArguments),
}

/// Arguments of `dyelog lqn check`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "a model, before it is solved" => "dyelog lqn check examples/tiers.lqn",
    "for a program" => "dyelog lqn check examples/tiers.lqn --format json",
})]
pub struct CheckArguments {
    /// Model files (.lqn, .lqnx, JSON), told apart by their content; `-` is standard input
    #[arg(value_name = "MODEL", required = true)]
    models: Vec<PathBuf>,
    /// The form of the findings; that of the output file's extension where not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Form>,
    #[command(flatten)]
    output: OutputArguments,
}

/// Runs a subcommand of `dyelog lqn`.
pub fn run(command: &Command, terminal: &mut Terminal) -> Outcome {
    match command {
        Command::Check(arguments) => check(arguments, terminal),
    }
}

fn check(arguments: &CheckArguments, terminal: &mut Terminal) -> Outcome {
    let format = output::form(arguments.format, Form::Text, &arguments.output)?;
    input::check_stdin_once(&arguments.models)?;
    let (mut found, mut broken): (Vec<Diagnostic>, bool) = (Vec::new(), false);
    for path in &arguments.models {
        let name = input::shown(path);
        let text: Arc<str> = match input::text(path) {
            Ok(text) => text.into(),
            Err(finding) => {
                found.push(finding);
                broken = true;
                continue;
            }
        };
        terminal.sources.insert(Arc::clone(&name), Arc::clone(&text));
        match lqn::read_any(&name, &text) {
            Ok(loaded) => {
                let mut doubtful = lint::check(&loaded.model);
                loaded.places.locate(&mut doubtful);
                found.extend(loaded.findings);
                found.extend(doubtful);
            }
            Err(Diagnostics(errors)) => {
                found.extend(errors);
                broken = true;
            }
        }
    }
    match format {
        // What cannot be read goes where words go; a list of findings is what was asked for.
        Form::Text if broken => return Err(Failure::Input(found)),
        Form::Text => {
            let text = if found.is_empty() { "no findings\n".to_owned() } else { terminal.render(&found) };
            output::write(&arguments.output, &text)?;
        }
        Form::Json => {
            output::write(&arguments.output, &report::json::diagnostics(&Report::new(&found, &terminal.sources)))?;
        }
    }
    let grave = found.iter().any(|finding| finding.severity != Severity::Note);
    Ok(match (broken, grave) {
        (true, _) => Exit::Input,
        (false, true) => Exit::Finding,
        (false, false) => Exit::Ok,
    })
}
