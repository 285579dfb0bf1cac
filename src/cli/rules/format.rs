//! `dyelog rules fmt`.

use std::path::{Path, PathBuf};

use clap::Args;
use dyelog::datalog::syntax;
use dyelog::diagnostic::Diagnostic;
use dyelog::report::difference;

use crate::cli::args::OutputArguments;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, Outcome, input};

/// Arguments of `dyelog rules fmt`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "as a hook or a CI job does it" => "dyelog rules fmt --check examples/rules/acknowledged.dl",
    "as an editor does it" => "dyelog rules fmt - < examples/rules/acknowledged.dl",
})]
pub struct Arguments {
    /// Rule files to put into the one style, in their place; `-` is standard input and goes to standard output
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Change nothing; show what would change and exit with 1 where anything would
    #[arg(long)]
    check: bool,
}

/// Formats rule files. One that cannot be read as a rule file is left as it is and told about.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    input::check_stdin_once(&arguments.files)?;
    let mut errors: Vec<Diagnostic> = Vec::new();
    let mut differences = String::new();
    for file in &arguments.files {
        let name = input::shown(file);
        let text = match input::text(file) {
            Ok(text) => text,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        match syntax::format(&name, &text) {
            Ok(formatted) if arguments.check => {
                if formatted != text {
                    differences.push_str(&format!("{name} is not in the one style:\n"));
                    differences.push_str(&difference::text(&text, &formatted, 1));
                }
            }
            Ok(formatted) if file == Path::new("-") => write(None, &formatted)?,
            Ok(formatted) if formatted != text => write(Some(file.clone()), &formatted)?,
            Ok(_) => {}
            Err(found) => {
                terminal.sources.insert(name, text.into());
                errors.extend(found);
            }
        }
    }
    write(None, &differences)?;
    if !errors.is_empty() {
        return Err(Failure::Input(errors));
    }
    Ok(if differences.is_empty() { Exit::Ok } else { Exit::Finding })
}

fn write(output: Option<PathBuf>, text: &str) -> Result<(), Failure> {
    let mut output = Output::open(&OutputArguments { output })?;
    output.text(text)?;
    output.finish()
}
