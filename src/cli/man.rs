//! `dyelog man`: manual pages, and the reference of the whole command line.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Command, ValueEnum};
use clap_mangen::Man;
use dyelog::diagnostic::{Diagnostic, Place};

use crate::cli::args::{OUTPUT_FILE, OutputArguments};
use crate::cli::exit::Exit;
use crate::cli::groups::{self, WIDTH};
use crate::cli::output::{self, Output};
use crate::cli::{Failure, Outcome, codes};

/// Arguments of `dyelog man`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "all pages, where man looks for those of a user" => "dyelog man ~/.local/share/man/man1",
    "one page, to read at once" => "dyelog man -o dyelog.1",
    "the whole reference as one document" => "dyelog man --format markdown -o reference.md",
})]
pub struct Arguments {
    /// A folder for the pages of all commands, made if it is not there; without it, the page of `dyelog` goes to standard
    /// output
    #[arg(value_name = "DIR", conflicts_with = OUTPUT_FILE)]
    folder: Option<PathBuf>,
    /// The form; that of the output file's extension where not given, else roff
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "folder")]
    format: Option<Format>,
    #[command(flatten)]
    output: OutputArguments,
}

/// Forms of a manual.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A page for `man`
    Roff,
    /// The help of all commands in one document
    Markdown,
}

/// Writes manual pages.
pub fn run(arguments: &Arguments) -> Outcome {
    let mut root = groups::grouped(crate::cli::command(), WIDTH);
    root.build();
    if let Some(folder) = &arguments.folder {
        fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
        for page in commands(&root) {
            let name = format!("{}.1", page.get_bin_name().unwrap_or("dyelog").replace(' ', "-"));
            let mut output = Output::open(&OutputArguments { output: Some(folder.join(name)) })?;
            output.attempt(|writer| writer.write_all(&roff(page)))?;
            output.finish()?;
        }
        return Ok(Exit::Ok);
    }
    let text = match output::form(arguments.format, Format::Roff, &arguments.output)? {
        Format::Roff => roff(&root),
        Format::Markdown => reference(&root).into_bytes(),
    };
    let mut output = Output::open(&arguments.output)?;
    output.attempt(|writer| writer.write_all(&text))?;
    output.finish()?;
    Ok(Exit::Ok)
}

/// A command and all below it, in their order.
fn commands(root: &Command) -> Vec<&Command> {
    let mut found = Vec::new();
    let mut waiting = vec![root];
    while let Some(command) = waiting.pop() {
        found.push(command);
        let below: Vec<&Command> = command.get_subcommands().filter(|below| !is_help(below)).collect();
        waiting.extend(below.into_iter().rev());
    }
    found
}

fn is_help(command: &Command) -> bool {
    command.is_hide_set() || command.get_name() == "help"
}

fn roff(command: &Command) -> Vec<u8> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page).expect("memory takes every page");
    page
}

fn reference(root: &Command) -> String {
    let mut text = String::from(
        "# Command reference\n\nThe long help of every command, as `--help` shows it and `dyelog man --format markdown` \
         writes it.\n[Command line](cli.md) explains what the commands have in common.\n",
    );
    for command in commands(root) {
        let name = command.get_bin_name().unwrap_or("dyelog");
        let help = command.clone().term_width(WIDTH).render_long_help().to_string();
        text.push_str(&format!("\n## `{name}`\n\n```text\n"));
        for line in help.trim_end().lines() {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text.push_str("```\n");
    }
    text
}

fn unwritable(folder: &Path, error: &std::io::Error) -> Failure {
    let place = Place::File { file: folder.display().to_string().into() };
    Diagnostic::error(codes::UNWRITABLE, place, format!("the folder cannot be made: {error}")).into()
}
