//! `dyelog rules new`.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::report::skeleton;
use dyelog::tlc::rules::shipped_templates;

use crate::cli::args::OutputArguments;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, Outcome, codes, input, test};

/// Arguments of `dyelog rules new`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "a folder with a commented template, a trace that it fits, and the accepted model" => "dyelog rules new ping",
    "which passes its test" => "dyelog rules new pong && dyelog test pong",
})]
pub struct Arguments {
    /// The template's name, and that of the folder that is made for it
    #[arg(value_name = "NAME")]
    name: String,
    /// Make it in this folder
    #[arg(long, value_name = "DIR", default_value = ".")]
    folder: PathBuf,
}

/// Makes a folder with a rule file, a golden trace and its accepted model.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let name = &*arguments.name;
    if !skeleton::is_name(name) {
        let message = format!("`{name}` cannot name a template");
        let finding = Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message);
        return Err(finding.with_note("a name is a letter, then letters, digits and underscores").into());
    }
    if shipped_templates().any(|(_, shipped)| *shipped.name.value == *name) {
        let message = format!("`{name}` is the name of a shipped template");
        let finding = Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message);
        let finding = finding.with_note("yours would replace it wherever your rule file is given");
        return Err(finding.with_hint("choose another name").into());
    }
    let folder = if arguments.folder == Path::new(".") { PathBuf::from(name) } else { arguments.folder.join(name) };
    if folder.exists() {
        let place = Place::File { file: input::shown(&folder) };
        return Err(Diagnostic::error(codes::UNWRITABLE, place, "there is something of this name already").into());
    }
    fs::create_dir_all(&folder).map_err(|error| {
        let place = Place::File { file: input::shown(&folder) };
        Diagnostic::error(codes::UNWRITABLE, place, format!("the folder cannot be made: {error}"))
    })?;
    let files = [(format!("{name}.dl"), skeleton::rules(name)), (format!("{name}.angio"), skeleton::trace(name))];
    let mut made = Vec::new();
    for (file, text) in files {
        made.push(folder.join(file));
        write(&made[made.len() - 1], &text)?;
    }
    let accepted = test::accept(&folder)?;
    made.extend(accepted);
    let list: Vec<String> = made.iter().map(|path| path.display().to_string()).collect();
    terminal.say(&format!("made {}\n`dyelog test {}` tests it\n", list.join(", "), folder.display()));
    Ok(Exit::Ok)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let mut output = Output::open(&OutputArguments { output: Some(path.to_owned()) })?;
    output.text(text)?;
    output.finish()
}
