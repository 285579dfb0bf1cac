//! How long calls are on their way between their callers and those who answer: as traces show between the two halves of a
//! call, or as the configuration says.

use std::collections::BTreeMap;

use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::lqn::submodel::{EntryTotal, Moments, RequestKind, WorkTotal};
use crate::model::codes;
use crate::model::config::{Configuration, Network};
use crate::model::load::short;
use crate::model::origins::TaskOrigin;
use crate::model::parts::Parts;

impl Network {
    /// How long calls are on their way that a task makes, or the customer of a scenario. A time for all calls is not for
    /// customers: nobody knows how far away they are.
    pub fn of(configuration: &Configuration, task: &TaskOrigin) -> Self {
        let general = configuration.defaults.network.unwrap_or(Self::Traced);
        match general {
            Self::Each(_) if task.customer => Self::Each(0.0),
            _ if task.customer => general,
            _ => own(configuration, &task.identifier).unwrap_or(general),
        }
    }

    /// How long the calls of some work are on their way in one of so many invocations, seconds.
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

/// Says what was traced of calls on their way, where nobody chose to keep it, and where nothing was that should be kept.
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
    match (general, all.mean()) {
        (None, Some(mean)) => findings.push(
            Diagnostic::new(
                Severity::Note,
                codes::NETWORK_KEPT,
                Place::Nowhere,
                format!("calls that wait are on their way for {} s on average, as traced", short(mean)),
            )
            .with_note(
                "so long they delay their callers, and load no processor; it is the time between the two halves of a call, with \
                 whatever waiting there was",
            )
            .with_hint("set `network` under `[task.NAME]`, or under `[defaults]` for all: a time a call, or \"none\""),
        ),
        (Some(Network::Traced), None) => findings.push(nothing("", Place::Nowhere)),
        _ => {}
    }
    findings
}

fn nothing(whose: &str, place: Place) -> Diagnostic {
    let message = format!("no call {whose} was traced on its way").replace("  ", " ");
    Diagnostic::warning(codes::NOT_IN_TRACES, place, message)
        .with_note("`network = \"traced\"` has no effect: that takes traces with the times of both halves of calls")
}
