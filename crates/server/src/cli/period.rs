//! `dyelog-server period`: intervals, and what `dyelog` makes of them.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use clap::{Args, Subcommand};
use dyelog::diagnostic::quantity::counted;
use dyelog::model::codes::LOAD_CHOSEN;
use dyelog_server::metered::SAMPLING_TOLD_BY;
use dyelog_server::period::Twice;
use dyelog_server::recorded::Recorded;
use serde_json::Value;

use super::place::{Ends, Place};
use super::{Outcome, commands};

/// Arguments of `dyelog-server period`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    question: Question,
}

/// A store and a period.
#[derive(Debug, Args)]
struct Which {
    #[command(flatten)]
    place: Place,
    /// The begin: 2026-02-15T21:16:00Z, seconds since 1970, or `-2h` for two hours ago
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
    /// The end, likewise; now, where `--from` is so long ago
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<String>,
}

/// A store, a period, and what a command of `dyelog` takes.
#[derive(Debug, Args)]
struct Asked {
    #[command(flatten)]
    which: Which,
    /// Takes one part of the period, by its number in `period parts`, or the longest
    #[arg(long, value_name = "N|longest")]
    part: Option<Part>,
    /// Arguments of the command of `dyelog`, after `--`
    #[arg(value_name = "ARGUMENTS", last = true)]
    arguments: Vec<OsString>,
}

/// A second period of the same store.
#[derive(Debug, Args)]
struct Other {
    /// The begin of the other period
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    other_from: Option<String>,
    /// The end of the other period
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    other_to: Option<String>,
}

/// A period of a system whose nodes have what a file says.
#[derive(Args, Debug)]
struct OfSystem {
    #[command(flatten)]
    which: Which,
    /// A TOML file: what the system's nodes have; of a server, its own is used
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Prints JSON; of `observed`, with measured against predicted figures and the sources of the model's numbers
    #[arg(long)]
    json: bool,
}

/// Which part of a period.
#[derive(Clone, Copy, Debug)]
enum Part {
    Number(usize),
    Longest,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "longest" {
            return Ok(Self::Longest);
        }
        let number = text.parse().ok().filter(|number| *number > 0);
        number.map(Self::Number).ok_or_else(|| "a number from 1 on, or `longest`".to_owned())
    }
}

#[derive(Debug, Subcommand)]
enum Question {
    /// The intervals that have anything
    List {
        #[command(flatten)]
        which: Which,
        /// Prints JSON
        #[arg(long)]
        json: bool,
    },
    /// The parts of a period, between moments at which rates, responses, work, calls or demands change, or a process appears or leaves
    Parts(OfSystem),
    /// Prints the sub-model of a period, which all commands of `dyelog` read; operations stand for as many as metrics counted
    Export {
        #[command(flatten)]
        which: Which,
        /// Writes how busy processors were, which no sub-model has, to a file for `--utilisation` of `dyelog`
        #[arg(long, value_name = "FILE")]
        utilisation: Option<PathBuf>,
    },
    /// Prints a few traces of a period, kept whole, as OTLP in its binary form: for each entry of the model one that invoked it
    Exemplars(Which),
    /// Explains what of a period's model, by its exemplars: `dyelog explain`
    Explain(Asked),
    /// Prints what observers reported of a period, as it is kept
    Reports(Which),
    /// Adds saved sub-models to the intervals in which they begin, and what observers reported
    Import {
        #[command(flatten)]
        place: Place,
        /// Adds also sub-models of which the store seems to hold operations already: these count twice
        #[arg(long)]
        again: bool,
        /// Saved sub-models, and files of `reports`
        #[arg(value_name = "SUBMODEL", required = true)]
        files: Vec<PathBuf>,
    },
    /// Deletes the intervals that lie in a period
    Delete(Which),
    /// Prints the model of what observers reported of a period
    Observed(OfSystem),
    /// Prints the model of a period: `dyelog model`
    Model(Asked),
    /// Solves the model of a period: `dyelog solve`
    Solve(Asked),
    /// Asks what if of a period: `dyelog whatif`
    Whatif(Asked),
    /// Holds a model of a period against what it recorded, against another period, or against traces: `dyelog validate`
    Validate {
        #[command(flatten)]
        asked: Asked,
        #[command(flatten)]
        other: Other,
    },
    /// Reports on a period: `dyelog report`
    Report(Asked),
    /// Compares two periods: `dyelog diff`
    Diff {
        #[command(flatten)]
        asked: Asked,
        #[command(flatten)]
        other: Other,
    },
}

/// Answers.
pub fn run(arguments: &Arguments) -> Outcome {
    match &arguments.question {
        Question::List { which, json } => list(&which.place.intervals(which.ends())?, *json),
        Question::Parts(OfSystem { which, config, json }) => {
            let found = which.place.parts(which.ends(), config.as_deref())?.ok_or(NOTHING)?;
            print(if *json { format!("{found:#}\n") } else { parts_text(&found) })
        }
        Question::Export { which, utilisation } => export(which, utilisation.as_deref()),
        Question::Reports(which) => print(which.place.reports(which.ends())?.ok_or(UNOBSERVED)?),
        Question::Exemplars(which) => print(exemplars(&which.place, which.ends())?),
        Question::Explain(asked) => {
            let ends = asked.ends()?;
            asked.tell_change(written(&ends))?;
            let kept = exemplars(&asked.which.place, written(&ends))?;
            commands::explain(&kept, &asked.recorded()?, &asked.arguments)
        }
        Question::Import { place, again, files } => {
            let twice = if *again { Twice::Counted } else { Twice::Refused };
            for file in files {
                if let Some(warning) = place.import(file, twice)? {
                    eprintln!("warning: {}: {warning}", file.display());
                }
            }
            Ok(ExitCode::SUCCESS)
        }
        Question::Delete(which) => delete(which),
        Question::Observed(OfSystem { which, config, json }) => {
            print(which.place.observed(which.ends(), config.as_deref(), *json)?)
        }
        Question::Model(asked) => asked.run_metered("model"),
        Question::Solve(asked) => asked.run_metered("solve"),
        Question::Whatif(asked) => asked.run_metered("whatif"),
        Question::Validate { asked, other } => {
            let other = if other.is_asked() { Some(other.recorded(asked)?) } else { None };
            commands::validate(&asked.recorded()?, other.as_ref(), &asked.arguments)
        }
        Question::Report(asked) => asked.run_metered("report"),
        Question::Diff { asked, other } => {
            if !other.is_asked() {
                return Err(NO_OTHER.to_owned());
            }
            let other = other.recorded(asked)?;
            commands::diff([&asked.recorded()?, &other], &asked.arguments)
        }
    }
}

const NOTHING: &str = "nothing was recorded in this period
  hint: `dyelog-server period list` shows the intervals that have anything";

const NO_OTHER: &str = "no other period is named, and no period differs from itself
  hint: `--other-from` and `--other-to` name the one to compare with";

pub const UNOBSERVED: &str = "observers reported nothing in this period";

impl Which {
    fn ends(&self) -> Ends<'_> {
        [self.from.as_deref(), self.to.as_deref()]
    }
}

impl Other {
    fn is_asked(&self) -> bool {
        self.other_from.is_some() || self.other_to.is_some()
    }

    /// What this period recorded, in the store that is asked; warns of rates that are lower bounds.
    fn recorded(&self, asked: &Asked) -> Result<Recorded, String> {
        let ends = [self.other_from.as_deref(), self.other_to.as_deref()];
        let recorded = asked.which.place.recorded(ends)?.ok_or(NOTHING)?;
        asked.tell_sampling(&recorded);
        Ok(recorded)
    }
}

fn export(which: &Which, utilisation: Option<&Path>) -> Outcome {
    let recorded = which.place.exported(which.ends())?.ok_or(NOTHING)?;
    match utilisation {
        Some(file) => {
            fs::write(file, &recorded.utilisation).map_err(|error| format!("{}: {error}", file.display()))?;
        }
        None if !recorded.utilisation.is_empty() => {
            eprintln!(
                "warning: how busy processors were is not in it: demands and servers will be others\n  hint: `--utilisation FILE` writes it"
            );
        }
        None => {}
    }
    print(recorded.submodel)
}

fn exemplars(place: &Place, ends: Ends<'_>) -> Result<Vec<u8>, String> {
    match place.exemplars(ends)?.ok_or(NOTHING)? {
        none if none.is_empty() => {
            Err("no trace of this period was kept: it was imported, or its traces are very large".to_owned())
        }
        kept => Ok(kept),
    }
}

impl Asked {
    /// What the period recorded; warns of rates that are lower bounds.
    fn recorded(&self) -> Result<Recorded, String> {
        let ends = self.ends()?;
        let recorded = self.which.place.recorded(written(&ends))?.ok_or(NOTHING)?;
        self.tell_sampling(&recorded);
        Ok(recorded)
    }

    /// The ends of the part that is meant.
    fn ends(&self) -> Result<[Option<String>; 2], String> {
        let Some(meant) = self.part else { return Ok(self.which.ends().map(|end| end.map(str::to_owned))) };
        let found = self.which.place.parts(self.which.ends(), None)?.ok_or(NOTHING)?;
        let parts = found["traces"]["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
        let part = match meant {
            Part::Number(number) => parts.get(number - 1),
            // Of parts that are as long the last is the state in which the system was left.
            Part::Longest => parts.iter().max_by_key(|part| part["seconds"].as_u64()),
        };
        let none = || format!("the period has {}: `period parts` lists them", counted(parts.len() as u64, "part"));
        let part = part.ok_or_else(none)?;
        Ok(["from", "to"].map(|end| part[end].as_str().map(str::to_owned)))
    }

    /// Runs a command that takes utilisation with what metrics tell of the period.
    fn run_metered(&self, command: &str) -> Outcome {
        let recorded = self.recorded()?;
        commands::run(command, &[recorded.content()], &recorded.utilisation, &self.arguments)
    }

    /// Warns of a change within the period, of which the model is the mean of before and after.
    fn tell_change(&self, ends: Ends<'_>) -> Result<(), String> {
        let found = self.which.place.parts(ends, None)?.unwrap_or_default();
        let changes = found["traces"]["changes"].as_array().map(Vec::as_slice).unwrap_or_default();
        if changes.is_empty() {
            return Ok(());
        }
        eprintln!("warning: the period has {} parts, and its model is of their mean", changes.len() + 1);
        for change in changes {
            let what = change["what"].as_array().into_iter().flatten().filter_map(Value::as_str);
            eprintln!("  at {}: {}", change["at"].as_str().unwrap_or_default(), what.collect::<Vec<_>>().join("; "));
        }
        eprintln!("  hint: `period parts` lists the parts, and `--part` takes one of them");
        Ok(())
    }

    /// Warns of rates that are lower bounds, and of what is missing.
    fn tell_sampling(&self, recorded: &Recorded) {
        for why in &recorded.missing {
            eprintln!("{why}");
        }
        let is_told = self.arguments.iter().any(|word| word.to_string_lossy().starts_with("--sampling"));
        if let Some(why) = recorded.unknown.as_ref().filter(|_| !is_told) {
            eprintln!("warning[{}]: {why}\n  hint: {SAMPLING_TOLD_BY}", LOAD_CHOSEN.0);
        }
    }
}

fn written(ends: &[Option<String>; 2]) -> Ends<'_> {
    [ends[0].as_deref(), ends[1].as_deref()]
}

fn print(text: impl AsRef<[u8]>) -> Outcome {
    match io::stdout().write_all(text.as_ref()) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(format!("the output cannot be written: {error}")),
    }
}

fn list(intervals: &Value, json: bool) -> Outcome {
    if json {
        return print(format!("{intervals:#}\n"));
    }
    for warning in intervals["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        eprintln!("{warning}");
    }
    let mut text = format!("{:<20}  {:>8}  {:>10}  {:>10}\n", "start", "seconds", "spans", "bytes");
    for interval in intervals["intervals"].as_array().into_iter().flatten() {
        let start = interval["start"].as_str().unwrap_or_default();
        let number = |name: &str| interval[name].as_u64().map_or_else(|| "unknown".to_owned(), |own| own.to_string());
        let (seconds, spans, bytes) = (number("seconds"), number("spans"), number("bytes"));
        text.push_str(&format!("{start:<20}  {seconds:>8}  {spans:>10}  {bytes:>10}\n"));
    }
    print(text)
}

/// Parts for people: a line each, and what changes between them.
fn parts_text(found: &Value) -> String {
    let mut text = String::new();
    for (key, title, what) in [("traces", "Traces", "operations"), ("observed", "Reports of observers", "processes")] {
        let own = &found[key];
        let list = |name: &str| own[name].as_array().map(Vec::as_slice).unwrap_or_default();
        if own.is_null() {
            continue;
        }
        text.push_str(&format!("{title}\n{:>4}  {:<20}  {:<20}  {:>8}  {what:>10}\n", "part", "from", "to", "seconds"));
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for (number, part) in list("parts").iter().enumerate() {
            let (from, to) = (word(&part["from"]), word(&part["to"]));
            let (seconds, count) = (part["seconds"].as_f64().unwrap_or_default(), part[what].to_string());
            text.push_str(&format!("{:>4}  {from:<20}  {to:<20}  {seconds:>8}  {count:>10}\n", number + 1));
        }
        for change in list("changes") {
            text.push_str(&format!("at {}\n", word(&change["at"])));
            for words in change["what"].as_array().into_iter().flatten() {
                text.push_str(&format!("  {}\n", word(words)));
            }
        }
        if list("changes").is_empty() {
            text.push_str("nothing changes\n");
        }
        if let Some(left_out) = own["left_out"].as_u64().filter(|count| *count > 0) {
            text.push_str(&format!("{left_out} figures were not looked at: there are too many\n"));
        }
    }
    text
}

fn delete(which: &Which) -> Outcome {
    if which.from.is_none() && which.to.is_none() {
        return Err("say what to delete: `--from` or `--to`".to_owned());
    }
    let deleted = which.place.delete(which.ends())?;
    print(format!("deleted {deleted} intervals\n"))
}
