//! Network latency. Traces show it between the two halves of a call, or the configuration gives it.

use std::collections::BTreeMap;

use crate::diagnostic::quantity::milliseconds;
use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::lqn::submodel::{EntryIndex, EntryTotal, Interaction, Moments, RequestKind, ScenarioTotal, WorkTotal};
use crate::model::config::{Configuration, Network};
use crate::model::origins::TaskOrigin;
use crate::model::parts::Parts;
use crate::model::servers::is_recorded;
use crate::model::{clocks, codes};

impl Network {
    /// The network latency of calls that a task makes, or the customer of a scenario. A time for all calls is not for
    /// customers: their distance is unknown.
    pub fn of(configuration: &Configuration, task: &TaskOrigin) -> Self {
        let general = configuration.defaults.network.unwrap_or(Self::Traced);
        match general {
            Self::Each(_) if task.customer => Self::Each(0.0),
            _ if task.customer => general,
            _ => own(configuration, &task.identifier).unwrap_or(general),
        }
    }

    /// Network latency of the calls of some work, per invocation, seconds.
    pub fn delay(self, work: &WorkTotal, times: u64) -> f64 {
        let per = times.max(1) as f64;
        match self {
            Self::Traced => work.network.sum.as_f64() / per,
            Self::Each(seconds) => seconds * waited(work) as f64 / per,
        }
    }
}

fn own(configuration: &Configuration, task: &str) -> Option<Network> {
    configuration.tasks.get(task).and_then(|settings| settings.network)
}

/// How many calls wait for their reply.
fn waited(work: &WorkTotal) -> u64 {
    let synchronous = work.requests.iter().filter(|((kind, _), _)| *kind == RequestKind::Synchronous);
    synchronous.map(|(_, seen)| seen.count).sum()
}

/// Notes the measured latency where the configuration has none, and warns where the configuration asks for one that was not measured.
pub fn findings(parts: &Parts<'_>, configuration: &Configuration) -> Vec<Diagnostic> {
    let mut seen: BTreeMap<&str, Moments> = BTreeMap::new();
    let mut add = |task, total: &EntryTotal| {
        let own: &mut Moments = seen.entry(task).or_default();
        total.work.values().for_each(|work| own.merge(&work.network));
    };
    for total in parts.entries.iter().map(|index| parts.sub.entry(*index)) {
        add(parts.sub.names.text(total.task), total);
    }
    let general = configuration.defaults.network;
    let mut findings = Vec::new();
    for (task, settings) in configuration.tasks.iter().filter(|(task, _)| own(configuration, task).is_some()) {
        let shown = seen.remove(task.as_str());
        if settings.network == Some(Network::Traced) && shown.is_some_and(|shown| shown.count == 0) {
            findings.push(nothing(&format!("of task `{task}`"), settings.place.clone()));
        }
    }
    let mut all = Moments::default();
    let customers = parts.customers.iter().flat_map(|customer| customer.total.work.values());
    for own in customers.map(|work| &work.network).chain(seen.values()) {
        all.merge(own);
    }
    let entries = parts.entries.iter().map(|index| parts.sub.entry(*index));
    let scenarios = parts.customers.iter().map(|customer| &customer.scenario_total);
    match (general, latency(entries, scenarios, &all)) {
        (None, Some(mean)) => {
            let message = format!("network latency per call: {} (measured)", milliseconds(mean));
            let note = Diagnostic::new(Severity::Note, codes::NETWORK_KEPT, Place::Nowhere, message).with_note(
                "it delays callers and loads no processor; it is the time between the two halves of a call, waiting included",
            );
            let ways = ways(parts);
            let note = match usual_way(&ways) {
                Some(usual) => {
                    let told = slow_callees(&ways, usual).into_iter().chain(unrecorded_ways(parts, usual));
                    told.fold(note, Diagnostic::with_note)
                }
                None => note,
            };
            findings.push(note.with_hint(
                "set `network` under `[task.NAME]`, or under `[defaults]` for all: a time per call, or \"none\"",
            ));
        }
        (Some(Network::Traced), None) => findings.push(nothing("", Place::Nowhere)),
        _ => {}
    }
    findings
}

/// Mean network latency per call, seconds, of what was seen of it. Clocks that count milliseconds or more show no latency for many calls; there all calls of the entries count.
pub fn latency<'e>(
    entries: impl Iterator<Item = &'e EntryTotal>,
    mut scenarios: impl Iterator<Item = &'e ScenarioTotal>,
    seen: &Moments,
) -> Option<f64> {
    let mean = seen.mean()?;
    if scenarios.all(|scenario| clocks::step(scenario).is_none()) {
        return Some(mean);
    }
    let calls: u64 = entries.flat_map(|entry| entry.work.values()).map(waited).sum();
    Some(seen.sum.as_f64() / calls.max(seen.count) as f64)
}

/// Calls to a task take so many times as long on the way as those to others before that is worth a word, and so much longer, seconds.
const MUCH: (f64, f64) = (3.0, 1e-3);

/// Tasks that are told.
const SHOWN: usize = 5;

/// Says which tasks recorded no spans, so that the way to them is part of their own time, and how long it may be: as long as calls to others usually are on theirs.
fn unrecorded_ways(parts: &Parts<'_>, usual: f64) -> Vec<String> {
    let mut tasks: BTreeMap<&str, Vec<EntryIndex>> = BTreeMap::new();
    for index in &parts.entries {
        tasks.entry(parts.sub.names.text(parts.sub.entry(*index).task)).or_default().push(*index);
    }
    let told = |(task, entries): (&str, Vec<EntryIndex>)| {
        let totals = entries.iter().map(|index| parts.sub.entry(*index));
        let is_called = totals.clone().all(|entry| entry.interaction == Interaction::Rendezvous);
        // Calls to one that recorded spans with the very times of these are not on their way either.
        let is_silent = totals.clone().any(|entry| entry.silent > 0);
        let (invocations, own) =
            totals.fold((0, 0.0), |(count, own), entry| (count + entry.invocations, own + entry.own_time()));
        let own = own / invocations.max(1) as f64;
        (is_called && is_silent && own > 0.0 && !is_recorded(parts, &entries)).then(|| {
            format!(
                "`{task}` records no spans: the {} that calls to it take count as its own time, in which {} may be on the way, as for others, and what it waits for is, too",
                milliseconds(own),
                milliseconds(usual.min(own))
            )
        })
    };
    tasks.into_iter().filter_map(told).take(SHOWN).collect()
}

/// By task that recorded spans, how many calls there were and how long all of them were on the way, seconds.
fn ways<'p>(parts: &'p Parts<'_>) -> BTreeMap<&'p str, (u64, f64)> {
    let mut seen: BTreeMap<&str, (u64, f64)> = BTreeMap::new();
    for (label, call) in parts.sub.entries().iter().flat_map(|caller| &caller.calls) {
        let Some(to) = label.to.filter(|_| label.kind == RequestKind::Synchronous) else { continue };
        let own = seen.entry(parts.sub.names.text(parts.sub.entry(to).task)).or_default();
        *own = (own.0 + call.requests.count, own.1 + call.network.as_f64());
    }
    // Peers without spans of their own show none.
    seen.retain(|_, (_, seconds)| *seconds > 0.0);
    seen
}

fn mean_way((count, seconds): (u64, f64)) -> f64 {
    seconds / count.max(1) as f64
}

/// The latency of most calls. Of two tasks the quicker one is usual.
fn usual_way(ways: &BTreeMap<&str, (u64, f64)>) -> Option<f64> {
    let mut usual: Vec<f64> = ways.values().copied().map(mean_way).collect();
    usual.sort_by(f64::total_cmp);
    usual.get(usual.len().saturating_sub(1) / 2).copied()
}

/// Says to which tasks calls take much longer on the way than to others: there they wait for something.
fn slow_callees(ways: &BTreeMap<&str, (u64, f64)>, usual: f64) -> Vec<String> {
    let mut slow: Vec<(&str, f64)> = ways.iter().map(|(task, own)| (*task, mean_way(*own))).collect();
    slow.retain(|(_, own)| *own > MUCH.0 * usual && *own > usual + MUCH.1);
    slow.sort_by(|left, right| right.1.total_cmp(&left.1));
    let told = |(task, own): &(&str, f64)| {
        let (own, usual) = (milliseconds(*own), milliseconds(usual));
        format!(
            "calls to `{task}` take {own} on the way, others {usual}: they may wait there for a pool of threads or connections, which grows with the load and which no delay shows; \
             `threads` under `[task.NAME]` gives its size"
        )
    };
    slow.iter().take(SHOWN).map(told).collect()
}

fn nothing(whose: &str, place: Place) -> Diagnostic {
    let message = format!("no network latency {whose} was measured").replace("  ", " ");
    Diagnostic::warning(codes::NOT_IN_TRACES, place, message)
        .with_note("`network = \"traced\"` has no effect: it needs traces with the times of both halves of calls")
}
