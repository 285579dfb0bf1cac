//! The model of what observers reported of a period (§5), and how it holds against what they measured.

use dyelog::lqn::Language;
use dyelog::solve::{SolveOptions, solve};
use dyelog_observe::change::{Change, changes, parts as split};
use dyelog_observe::model::{Options, PeriodModel, build};
use dyelog_observe::observation::Observation;
use dyelog_observe::period::Period as Observed;
use dyelog_observe::system::System;
use serde_json::{Value, json};

use crate::answer::{comments, words};
use crate::period::{Period, written};
use crate::store::{Store, StoreError, Which};
use crate::worker::{AHEAD, EARLIEST};

/// What was observed in a period, and what changes within it; `None` where nothing was.
fn watched(store: &Store, period: Period, system: &System) -> Result<Option<(Observed, Vec<Change>)>, StoreError> {
    let signed = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
    let (from, to) = (signed(period.from), signed(period.to));
    let observations = store.observations(&Which::default(), from, to)?;
    if observations.is_empty() {
        return Ok(None);
    }
    let observed = Observed::of(&observations, from, to);
    let found = changes(&observed, &|host: &str| f64::from(system.cores(host).unwrap_or(1)));
    Ok(Some((observed, found)))
}

fn date(time: i64) -> String {
    written(u64::try_from(time).unwrap_or(0))
}

/// A change in words, with its time.
pub fn told(change: &Change, of: &Observed) -> String {
    format!("at {}: {}", date(change.at), change.finding(of).message)
}

/// The parts of a period in which observers reported, between moments at which a demand changes or a process appears or leaves; `None` where
/// nothing was observed.
///
/// # Errors
/// When the store cannot be read, or has more than can be read at once.
pub fn parts(store: &Store, period: Period, system: &System) -> Result<Option<Value>, StoreError> {
    let Some((observed, found)) = watched(store, period, system)? else { return Ok(None) };
    let change = |own: &Change| json!({ "at": date(own.at), "what": [own.finding(&observed).message] });
    let part = |own: &Observed| {
        json!({
            "from": date(own.from),
            "to": date(own.to),
            "seconds": own.seconds().round(),
            "processes": own.processes.len(),
        })
    };
    Ok(Some(json!({
        "parts": split(&observed, &found).iter().map(part).collect::<Vec<_>>(),
        "changes": found.iter().map(change).collect::<Vec<_>>(),
    })))
}

/// What observers reported, for people.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// By process: what it is called and where it runs, busy processors, and operations per second.
    pub processes: Vec<(String, String, f64, f64)>,
    /// What changes, and when.
    pub changes: Vec<String>,
}

/// What observers reported of a period; `None` where that is nothing.
///
/// # Errors
/// When the store cannot be read, or has more than can be read at once.
pub fn look(store: &Store, period: Period, system: &System) -> Result<Option<Seen>, StoreError> {
    let Some((observed, found)) = watched(store, period, system)? else { return Ok(None) };
    let processes = observed.processes.iter().map(|own| {
        let (process, figures) = (&own.total.process, own.aggregate());
        let rate = figures.inputs.iter().map(|input| input.rate.value).sum();
        (format!("{} ({})", process.program, process.id), process.host.to_string(), figures.cpu.value, rate)
    });
    let changes = found.iter().map(|own| told(own, &observed)).collect();
    Ok(Some(Seen { processes: processes.collect(), changes }))
}

/// What was made of a period, or why nothing was.
pub type Made = Result<PeriodModel, String>;

/// The model of a period; `None` where nothing was observed.
///
/// # Errors
/// When the store cannot be read, or has more than can be read at once.
pub fn model(store: &Store, period: Period, system: &System) -> Result<Option<Made>, StoreError> {
    let signed = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
    let (from, to) = (signed(period.from), signed(period.to));
    let observations = store.observations(&Which::default(), from, to)?;
    if observations.is_empty() {
        return Ok(None);
    }
    Ok(Some(build(&Observed::of(&observations, from, to), system, &Options::default()).map_err(words)))
}

/// The model in the text language of the LQN tool suite, after comments with what there is to say about it.
pub fn text(made: &PeriodModel) -> String {
    comments(&made.findings) + &Language::Lqn.write(&made.model)
}

/// Measured against predicted figures, the sources of the model's numbers, and what there is to say.
///
/// # Errors
/// What keeps the model from being solved.
pub fn validation(made: &PeriodModel) -> Result<Value, String> {
    let solved = solve(&made.model, &SolveOptions::default(), None, &mut ()).map_err(words)?;
    let held = made.compare(&solved.results).into_iter().map(|own| {
        json!({
            "name": own.name,
            "measured": own.measured.value,
            "half_width": own.measured.half_width,
            "predicted": own.predicted,
            "error": own.error(),
        })
    });
    let sources = made.sources.iter().map(|own| {
        json!({ "element": own.element, "quantity": own.quantity, "value": own.value, "half_width": own.half_width, "from": own.from })
    });
    let findings = made.findings.iter().map(|finding| json!({ "code": finding.code.0, "message": finding.message }));
    Ok(json!({
        "method": made.method.label(),
        "figures": held.collect::<Vec<_>>(),
        "sources": sources.collect::<Vec<_>>(),
        "findings": findings.collect::<Vec<_>>(),
    }))
}

/// The longest interval of a report, nanoseconds (ours): a merged one of the store is of a day, and its observations may go beyond by as much.
const LONGEST: u64 = 3 * AHEAD;

/// Whether the intervals of observations are of times at which something can have happened, as it is asked of spans.
///
/// # Errors
/// What is wrong with one.
pub fn possible(observations: &[Observation], now: u64) -> Result<(), String> {
    let latest = i64::try_from(now.saturating_add(AHEAD)).unwrap_or(i64::MAX);
    observations.iter().try_for_each(|own| possible_before(latest, own))
}

fn possible_before(latest: i64, Observation { process, from, to, .. }: &Observation) -> Result<(), String> {
    let why = if *from < EARLIEST as i64 {
        "begins before 2000"
    } else if *to > latest {
        "ends more than a day ahead of the clock here"
    } else if to.abs_diff(*from) > LONGEST {
        "is longer than three days"
    } else {
        return Ok(());
    };
    Err(format!("the interval of process {} at {} from {from} to {to} ns {why}", process.id, process.host))
}
