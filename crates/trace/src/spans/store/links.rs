//! Which traces hang together by links between their spans.

use rustc_hash::FxHashMap;

use crate::spans::ids::TraceId;
use crate::spans::model::Spans;

/// Traces that are linked to others, each with one that comes nearer to the least of its group.
#[derive(Debug, Default)]
pub(super) struct LinkedTraces(FxHashMap<TraceId, TraceId>);

impl LinkedTraces {
    /// Takes in the links of spans.
    pub fn add(&mut self, spans: &Spans) {
        if spans.links.is_empty() {
            return;
        }
        for span in &spans.spans {
            for link in spans.links_of(span) {
                if link.trace != span.trace {
                    self.join(span.trace, link.trace);
                }
            }
        }
    }

    fn join(&mut self, one: TraceId, other: TraceId) {
        let (one, other) = (self.least(one), self.least(other));
        self.0.insert(one.max(other), one.min(other));
        self.0.insert(one.min(other), one.min(other));
    }

    fn least(&mut self, mut trace: TraceId) -> TraceId {
        while let Some(&nearer) = self.0.get(&trace)
            && nearer != trace
        {
            let next = self.0.get(&nearer).copied().unwrap_or(nearer);
            self.0.insert(trace, next);
            trace = next;
        }
        trace
    }

    /// The least trace of the group of a trace that is linked to others.
    pub fn group(&mut self, trace: TraceId) -> Option<TraceId> {
        self.0.contains_key(&trace).then(|| self.least(trace))
    }
}
