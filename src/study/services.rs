//! What services do in traces of spans: their operations and the calls between them, with rates and latencies.

use std::collections::BTreeMap;

use crate::lqn::sketch::Sketch;
use crate::trace::recorded::SpanKind;
use crate::trace::retained::Status;
use crate::trace::{Operation, SpanTree, TraceNames};

/// Operations of services and calls between services. Two of them merge into one, in any order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Services {
    /// What services are asked for, by service and name.
    pub operations: BTreeMap<(String, String), Latency>,
    /// Calls, by caller, callee and what is asked for. Latencies are those that the caller sees, where it recorded them.
    pub calls: BTreeMap<(String, String, String), Latency>,
    /// Nanoseconds from the epoch to the first begin and to the last end.
    period: Option<(i64, i64)>,
}

/// How often something was done, and how long it took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latency {
    /// How many were traced.
    pub count: u64,
    /// How many these stand for, by the probability with which operations were kept.
    pub weight: f64,
    /// How many failed.
    pub failed: u64,
    /// The sum of their durations, in nanoseconds.
    pub sum: u64,
    /// Their durations, in seconds.
    pub spread: Sketch,
}

impl Latency {
    fn add(&mut self, duration: i64, failed: bool, weight: f64) {
        self.count += 1;
        self.weight += weight;
        self.failed += u64::from(failed);
        let duration = u64::try_from(duration).unwrap_or(0);
        self.sum = self.sum.saturating_add(duration);
        self.spread.add(duration as f64 / 1e9);
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.weight += other.weight;
        self.failed += other.failed;
        self.sum = self.sum.saturating_add(other.sum);
        self.spread.merge(&other.spread);
    }

    /// The mean duration, in seconds.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / 1e9 / self.count as f64
    }
}

impl Services {
    /// Counts the spans of an operation.
    ///
    /// What a service is asked for are its spans of kind server and consumer, those without a kind below a span of another service, and first spans. A
    /// call is such a span below one of another service; a client or producer without one below it is a call of its peer.
    pub fn add(&mut self, names: &TraceNames, operation: &Operation, tree: &SpanTree) {
        let weight = operation.weight.filter(|weight| *weight >= 0.0).unwrap_or(1.0);
        let text = |name| names.names.text(name).to_owned();
        let mut answered = vec![false; tree.spans.len()];
        for (place, span) in tree.spans.iter().enumerate() {
            let (failed, duration) = (tree.status(place as u32) == Status::Error, span.end - span.start);
            let (first, last) = self.period.unwrap_or((span.start, span.end));
            self.period = Some((first.min(span.start), last.max(span.end)));
            let parent = span.parent.map(|parent| (parent as usize, &tree.spans[parent as usize]));
            let elsewhere = parent.filter(|(_, parent)| parent.service != span.service);
            let serves = matches!(span.kind, SpanKind::Server | SpanKind::Consumer);
            if serves || parent.is_none() || elsewhere.is_some() && span.kind == SpanKind::Unspecified {
                let key = (text(span.service), text(span.name));
                self.operations.entry(key).or_default().add(duration, failed, weight);
            }
            if let Some((above, parent)) = elsewhere {
                let calls = matches!(parent.kind, SpanKind::Client | SpanKind::Producer);
                answered[above] = calls;
                // How long a message took to be sent is not how long it took.
                let seen = if parent.kind == SpanKind::Client { parent.end - parent.start } else { duration };
                let key = (text(parent.service), text(span.service), text(span.name));
                self.calls.entry(key).or_default().add(seen, failed, weight);
            }
        }
        for (place, span) in tree.spans.iter().enumerate() {
            let calls = matches!(span.kind, SpanKind::Client | SpanKind::Producer);
            if calls && !answered[place] && span.peer.is_some() {
                let failed = tree.status(place as u32) == Status::Error;
                let key = (text(span.service), text(span.peer), text(span.name));
                self.calls.entry(key).or_default().add(span.end - span.start, failed, weight);
            }
        }
    }

    /// Takes in what was counted elsewhere.
    pub fn merge(&mut self, other: &Self) {
        for (key, latency) in &other.operations {
            self.operations.entry(key.clone()).or_default().merge(latency);
        }
        for (key, latency) in &other.calls {
            self.calls.entry(key.clone()).or_default().merge(latency);
        }
        let both = self.period.into_iter().chain(other.period);
        self.period = both.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    }

    /// From the first begin to the last end, in seconds; `None` where there is no such time.
    pub fn period(&self) -> Option<f64> {
        self.period.map(|(first, last)| last.saturating_sub(first) as f64 / 1e9).filter(|period| *period > 0.0)
    }
}
