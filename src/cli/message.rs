//! One message of traces, for explanations.

use std::path::PathBuf;
use std::sync::Arc;

use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::pipeline::{self, SoughtMessage};
use dyelog::report::explain::message::MessageExplained;
use dyelog::same::Rules;
use dyelog::same::explain::Wanted;
use dyelog::trace::NodeName;

use crate::cli::args::ReadingArguments;
use crate::cli::progress::Progress;
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, codes, input, messages, reduce, rule_files};

/// Which message is asked about, and how it is read.
pub struct Asked<'a> {
    /// Its name.
    pub name: &'a NodeName,
    /// The traces.
    pub files: &'a [PathBuf],
    /// The user's templates.
    pub rules: &'a [PathBuf],
    /// How traces are read.
    pub reading: &'a ReadingArguments,
    /// Whether threads are guessed.
    pub guess_threads: bool,
    /// The operation that is asked about, which messages do not have.
    pub run: Option<&'a str>,
}

/// A message that was found.
pub struct Found {
    sought: SoughtMessage,
    rules: Arc<Rules>,
    /// The template that is asked about.
    pub template: Option<u16>,
}

impl Found {
    /// For reports.
    pub fn explained(&self) -> Option<MessageExplained<'_>> {
        let study = self.sought.study.as_ref()?;
        Some(MessageExplained { study, rules: &self.rules, names: &self.sought.names })
    }
}

/// Looks for a message and studies it, with all templates or the one of that name.
pub fn find(asked: &Asked<'_>, template: Option<&str>, terminal: &mut Terminal) -> Result<Found, Failure> {
    let refuse = |message: String, hint: &str| -> Failure {
        Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message).with_hint(hint).into()
    };
    let named = "name a message `FILE:LINE`, or `LINE` behind which the traces stand";
    if asked.run.is_some() {
        return Err(refuse("`--run` names an operation, and traces of messages have none".to_owned(), "leave it out"));
    }
    let (file, line) = match asked.name {
        NodeName::Place { file, item } => (file, item.parse::<u32>().ok()),
        _ => (&None, None),
    };
    let Some(line) = line else {
        return Err(refuse(format!("`{}` is no message: these are named by their lines", asked.name), named));
    };
    let rules = rules(asked.rules, terminal)?;
    let template = template.map(|name| number(&rules, name)).transpose()?;
    let wanted = Wanted { file: file.clone(), line, template };
    let progress: Arc<dyn pipeline::Meter> = Arc::new(Progress::reading(asked.files));
    let inputs = input::inputs(asked.files);
    let opened = pipeline::open(&inputs, None, &reduce::reading(asked.reading), true, &progress)?;
    let pipeline::Opened::Messages(open, _) = opened else {
        // What cannot be opened says why.
        messages::open(asked.files, asked.reading, &Progress::reading(asked.files))?;
        return Err(refuse("these traces have no messages".to_owned(), named));
    };
    let sought = open.explain(&rules, &wanted, asked.guess_threads)?;
    if sought.study.is_none() {
        let message = format!("the traces have no message `{}`", asked.name);
        let finding = Diagnostic::error(codes::NOT_THERE, Place::Nowhere, message);
        let finding = match sought.near {
            Some(near) => finding.with_note(format!("the nearest line with a message that was received is {near}")),
            None => finding.with_note("there is no message that was received"),
        };
        return Err(finding.with_hint(named).into());
    }
    Ok(Found { sought, rules, template })
}

/// The user's templates on events, or the shipped ones.
fn rules(files: &[PathBuf], terminal: &mut Terminal) -> Result<Arc<Rules>, Failure> {
    if files.is_empty() {
        return Ok(Rules::shipped());
    }
    let rules = rule_files::load_events(files, &mut |file, text| terminal.sources.insert(file, text))?;
    terminal.report(rules.warnings());
    Ok(rules)
}

fn number(rules: &Rules, name: &str) -> Result<u16, Failure> {
    let place = rules.names().position(|known| **known == *name);
    place.and_then(|place| u16::try_from(place).ok()).ok_or_else(|| {
        let names: Vec<&str> = rules.names().map(|name| &**name).collect();
        let message = format!("there is no template `{name}` for messages");
        let finding = Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message);
        finding.with_note(format!("there are {}", names.join(", "))).with_similar(name, names).into()
    })
}
