//! Where an element of the model comes from.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::path::PathBuf;

use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::lqn::submodel::{EntryKey, Position, SubModel};
use dyelog::lqn::{ActivityId, EntryId, Model};
use dyelog::model::config::Network;
use dyelog::model::{DemandPart, DemandSource, Explained, Origins, RequestPart};
use dyelog::report::explain::element::Subject;
use dyelog::report::explain::evidence::Seen;
use dyelog::report::names;
use dyelog::tlc::explain::evidence::{About, Finder, Piece};

use crate::cli::args::Form;
use crate::cli::explain::{Arguments, model, study};
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, codes, rule_files};

/// How many pieces of evidence are shown where not all are asked for.
const SHOWN: usize = 5;

/// Explains an entry, a request or a demand.
pub fn explain(arguments: &Arguments, traces: &[PathBuf], terminal: &mut Terminal) -> Result<String, Failure> {
    let source = model(arguments, traces, terminal)?;
    let (Some(reduced), Some(origins)) = (&source.reduced, &source.origins) else {
        unreachable!("a model that was made of traces has both");
    };
    let sub = &reduced.reduction.submodel;
    let question = &arguments.question;
    let (name, callee) = match (&question.request, question.entry.as_ref().or(question.demand.as_ref())) {
        (Some(request), _) => {
            let (from, to) = ends(request)?;
            (from, Some(to))
        }
        (None, name) => (name.map_or("", String::as_str), None),
    };
    let (entry, activity) = named(&source.model, origins, name)?;
    let explained = source.explained(entry)?.expect("a source with origins was made of traces");
    let position = activity.map(|activity| position_of(&source.model, origins, activity)).transpose()?;
    let explained = match (activity, position) {
        (Some(activity), Some(position)) => explained.of_activity(activity, position),
        _ => explained,
    };
    let callee = callee.map(|name| entry_named(&source.model, name)).transpose()?;
    let requests: Vec<&RequestPart> =
        explained.requests.iter().filter(|request| callee.is_none_or(|callee| request.to == callee)).collect();
    if let (Some(callee), true) = (callee, requests.is_empty()) {
        return Err(no_request(&source.model, name, callee, &explained).into());
    }
    let about = match callee {
        Some(callee) => About::Requests([sub.entry(origins.entries[callee.index()].total).key].into_iter().collect()),
        None if question.demand.is_some() || activity.is_some() => About::Work,
        None => About::Invocations,
    };
    let seen = evidence(arguments, traces, sub, (&explained, position), about, terminal)?;
    let sources = &terminal.sources;
    let line = |place: &Place| match place {
        Place::Range { file, start, .. } => sources.position(file, *start).map(|(line, _)| line),
        _ => None,
    };
    let subject = Subject { model: &source.model, origins, entry, activity, explained: &explained, position: &line };
    let look = terminal.look(&arguments.output);
    Ok(match (arguments.form(), callee) {
        (Form::Json, _) => subject.json(&requests, &seen),
        (Form::Text, Some(_)) => subject.request_text(&requests, &seen, look),
        (Form::Text, None) if question.demand.is_some() || activity.is_some() => subject.demand_text(&seen, look),
        (Form::Text, None) => subject.entry_text(&seen, look),
    })
}

/// Reads the traces once more, for what the element was made of.
fn evidence(
    arguments: &Arguments,
    traces: &[PathBuf],
    sub: &SubModel,
    (explained, position): (&Explained, Option<Position>),
    about: About,
    terminal: &mut Terminal,
) -> Result<Seen, Failure> {
    let rules = rule_files::load(&arguments.reduce.rules, &mut terminal.sources)?;
    let keys = explained.members.iter().map(|index| -> EntryKey { sub.entry(*index).key }).collect();
    let mut finder = Finder::new(arguments.reduce.merge.into(), keys, explained.customer, about);
    let mut seen = Seen::new(if arguments.all { usize::MAX } else { SHOWN });
    let run = arguments.operation.run.as_deref();
    let mut number = 0;
    let quality = study::each(traces, &arguments.reading, &rules, |study, _| {
        number += 1;
        if run.is_none_or(|run| *run == **study.run()) {
            finder.pieces(study, &mut |piece| {
                if counts(explained, position, piece) {
                    seen.take(study, number, piece);
                }
            });
        }
        ControlFlow::Continue(())
    })?;
    terminal.say_set_aside(quality.set_aside);
    Ok(seen)
}

/// Whether a piece of evidence is of what decided on the demand or the delay where it was seen. In a graph of activities only the main
/// source counts.
/// Of an activity, only what is at its position.
fn counts(explained: &Explained, wanted: Option<Position>, piece: Piece) -> bool {
    let (at, sources): (Position, &[DemandSource]) = match piece {
        Piece::Cpu { position, .. } => (position, &[DemandSource::Cpu]),
        Piece::Exclusive { position, .. } => (position, &[DemandSource::Exclusive]),
        Piece::Activity { position, .. } => (position, &[DemandSource::Function, DemandSource::None]),
        Piece::Network { position, .. } => {
            let traced = explained.delays.iter().any(|part| part.network == Network::Traced);
            return traced && wanted.is_none_or(|wanted| wanted == position);
        }
        Piece::Pause { position, .. } | Piece::Request { position, .. } => {
            return wanted.is_none_or(|wanted| wanted == position);
        }
        Piece::Invocation { .. } => return true,
    };
    if wanted.is_some_and(|wanted| wanted != at) {
        return false;
    }
    let phase = at.phase;
    let parts = || explained.demands.iter();
    if parts().any(|part| part.activity.is_some()) {
        let main = parts().max_by(|left, right| left.seconds.total_cmp(&right.seconds));
        return main.is_some_and(|part| sources.contains(&part.source));
    }
    let here = |part: &&DemandPart| part.position.is_none_or(|position| position.phase.clamp(1, 3) == phase);
    parts().filter(here).any(|part| sources.contains(&part.source))
}

/// The two entries of `FROM -> TO`, or of `FROM>TO`, a kind in brackets behind it left out.
fn ends(text: &str) -> Result<(&str, &str), Failure> {
    let (from, to) = text.split_once("->").or_else(|| text.split_once('>')).ok_or_else(|| {
        let message = format!("`{text}` names no request");
        Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message)
            .with_hint("write `--request \"ENTRY -> ENTRY\"`, the one that calls first")
    })?;
    let kinds = ["(sync)", "(async)", "(forward)"];
    let to = to.trim();
    let to = kinds.iter().find_map(|kind| to.strip_suffix(kind)).unwrap_or(to);
    Ok((from.trim(), to.trim()))
}

/// The entry of that name, or the activity with its entry.
fn named(model: &Model, origins: &Origins, name: &str) -> Result<(EntryId, Option<ActivityId>), Failure> {
    let is_named = |id: &ActivityId| *model.activities[id.index()].name == *name || names::activity(model, *id) == name;
    let activity = (0..model.activities.len()).map(ActivityId::from).find(is_named);
    match activity.filter(|_| find_entry(model, name).is_none()) {
        Some(id) => Ok((origins.activities[id.index()].entry, Some(id))),
        None => Ok((entry_named(model, name)?, None)),
    }
}

/// Where an activity is in its entry.
fn position_of(model: &Model, origins: &Origins, activity: ActivityId) -> Result<Position, Failure> {
    origins.activities[activity.index()].position.ok_or_else(|| {
        let name = names::activity(model, activity);
        let message = format!("activity `{name}` only holds the graph of its entry together");
        Diagnostic::error(codes::NOT_THERE, Place::Nowhere, message)
            .with_note("nothing was seen to be done there: forks and joins follow each other directly")
            .into()
    })
}

fn entries(model: &Model) -> impl Iterator<Item = EntryId> {
    (0..model.entries.len()).map(EntryId::from)
}

/// The entry of that name, in the model or as people read of it.
fn find_entry(model: &Model, name: &str) -> Option<EntryId> {
    let named = entries(model).find(|id| *model.entries[id.index()].name == *name);
    named.or_else(|| entries(model).find(|id| names::entry(model, *id) == name))
}

fn entry_named(model: &Model, name: &str) -> Result<EntryId, Failure> {
    if let Some(found) = find_entry(model, name) {
        return Ok(found);
    }
    let shown: Vec<Cow<'_, str>> = entries(model).map(|id| names::entry(model, id)).collect();
    let names: Vec<&str> = shown.iter().map(|name| &**name).collect();
    let message = format!("the model has no entry or activity `{name}`");
    let activities: Vec<Cow<'_, str>> =
        (0..model.activities.len()).map(|place| names::activity(model, place.into())).collect();
    let finding = Diagnostic::error(codes::NOT_THERE, Place::Nowhere, message)
        .with_similar(name, names.iter().copied().chain(activities.iter().map(|name| &**name)));
    Err(finding.with_note(list("there are", &names)).into())
}

fn no_request(model: &Model, from: &str, to: EntryId, explained: &Explained) -> Diagnostic {
    let name = |entry: EntryId| names::entry(model, entry);
    let message = format!("`{from}` makes no request to `{}`", name(to));
    let finding = Diagnostic::error(codes::NOT_THERE, Place::Nowhere, message);
    let called: Vec<Cow<'_, str>> = explained.requests.iter().map(|request| name(request.to)).collect();
    let called: Vec<&str> = called.iter().map(|name| &**name).collect();
    finding.with_note(if called.is_empty() { "it makes none".to_owned() } else { list("it makes some to", &called) })
}

fn list(words: &str, names: &[&str]) -> String {
    const FEW: usize = 12;
    let shown: Vec<String> = names.iter().take(FEW).map(|name| format!("`{name}`")).collect();
    let more = if names.len() > FEW { format!(" and {} more", names.len() - FEW) } else { String::new() };
    format!("{words} {}{more}", shown.join(", "))
}
