//! The model of a trace, held to the accepted one.

use std::fs;
use std::io::{self, BufRead, Write};

use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::report::{self, Look, difference};
use dyelog::study::golden::{self, Outcome as Found};

use super::Arguments;
use super::find::{Golden, folder_of};
use crate::cli::args::{OutputArguments, ReduceArguments, SourceArguments};
use crate::cli::terminal::Terminal;
use crate::cli::utilisation::UtilisationArguments;
use crate::cli::{Failure, codes, input, output, source};

/// The model of a trace as text, the same as `dyelog model --format text` gives, how often each template matched, and what
/// there is to say about it; or why there is none.
pub fn model(
    golden: &Golden,
    arguments: &Arguments,
    reduce: &ReduceArguments,
) -> Result<Result<String, String>, Failure> {
    let beside = golden.trace.with_file_name(format!("{}.toml", golden.stem));
    let config = arguments.config.clone().or_else(|| beside.is_file().then_some(beside));
    let files = vec![golden.trace.clone()];
    let (reading, utilisation) = (arguments.reading.clone(), UtilisationArguments::default());
    let whole = SourceArguments { files, reading, reduce: reduce.clone(), config, utilisation };
    let mut ear = Terminal::that_listens();
    Ok(match source::load_with_matches(&whole, &mut ear) {
        Ok(source) => {
            let mut text = report::model::text(&source.model, source.origins.as_ref(), Look::PLAIN);
            let matches = source.reduced.map(|reduced| reduced.reduction.matches).unwrap_or_default();
            if !matches.is_empty() {
                text.push('\n');
                text.push_str(&report::matches::by_template(&matches, Look::PLAIN));
            }
            Ok(golden::with_words(&text, &ear.heard()))
        }
        Err(Failure::Input(diagnostics)) => {
            ear.report(&diagnostics);
            Err(ear.heard())
        }
        Err(other) => return Err(other),
    })
}

/// A file's header, as the snapshots of `insta` have one, and the rest.
fn split(text: &str) -> (&str, &str) {
    let end = text.strip_prefix("---\n").and_then(|rest| rest.find("\n---\n")).map(|end| end + 9);
    text.split_at(end.unwrap_or(0))
}

/// What became of a trace whose model was found; accepts it where that is asked for.
pub fn judge(
    golden: &Golden,
    found: &str,
    update: bool,
    asking: &mut bool,
    terminal: &Terminal,
) -> Result<Found, Failure> {
    let file = if golden.accepted.exists() { Some(input::text(&golden.accepted)?.replace("\r\n", "\n")) } else { None };
    let (header, accepted) = file.as_deref().map_or(("", ""), split);
    let same = file.is_some() && accepted.trim_end() == found.trim_end();
    let outcome = match &file {
        Some(_) => Found::Compared(golden::compare(accepted, found)),
        None => Found::New,
    };
    let accept = !same && (update || (*asking && !outcome.is_good() && ask(golden, accepted, found, asking, terminal)));
    if !accept {
        return Ok(outcome);
    }
    let folder = folder_of(&golden.accepted);
    fs::create_dir_all(folder).map_err(|error| {
        let place = Place::File { file: input::shown(folder) };
        Diagnostic::error(codes::UNWRITABLE, place, format!("the folder cannot be made: {error}"))
    })?;
    output::write(
        &OutputArguments { output: Some(golden.accepted.clone()) },
        &format!("{header}{}\n", found.trim_end()),
    )?;
    Ok(Found::Accepted)
}

/// Shows a difference and asks for a decision; after `q` there are no more questions.
fn ask(golden: &Golden, accepted: &str, found: &str, asking: &mut bool, terminal: &Terminal) -> bool {
    terminal.say(&format!("\n{}\n{}", golden.trace.display(), difference::text(accepted, found, 3)));
    loop {
        terminal.say("accept this? [y]es, [n]o, [q]uit: ");
        let _ = io::stderr().flush();
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer).unwrap_or(0);
        match answer.trim() {
            "y" | "yes" | "a" => return true,
            "n" | "no" => return false,
            _ if read == 0 => *asking = false,
            "q" | "quit" => *asking = false,
            _ => continue,
        }
        return false;
    }
}
