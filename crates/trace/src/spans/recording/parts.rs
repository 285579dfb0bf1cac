//! Which operations of a recording lack spans, by what the spans themselves tell.

use std::collections::BTreeSet;
use std::sync::Arc;

use petgraph::unionfind::UnionFind;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Recording, digest};
use crate::spans::ids::{SpanId, TraceId};
use crate::spans::model::Spans;

/// What of a recording waits for spans of other files.
#[derive(Debug)]
pub struct Waiting {
    /// The spans of traces that lack a span which another one names as its parent, as far as they were to be kept.
    pub recording: Recording,
    /// How many traces more lack spans.
    pub left: u64,
    /// Digests of all traces that do not wait.
    pub others: BTreeSet<u64>,
    /// The identifiers of those that wait.
    runs: FxHashSet<Arc<str>>,
    /// Identifiers of others that are no numbers, and may look like further roots of a trace.
    odd: FxHashSet<Arc<str>>,
}

impl Waiting {
    /// Whether the operation of that run has its spans among those that wait.
    pub fn has(&self, run: &str) -> bool {
        if self.runs.contains(run) {
            return true;
        }
        let further = run.rsplit_once('.').filter(|(_, number)| number.bytes().all(|byte| byte.is_ascii_digit()));
        further.is_some_and(|(trace, _)| self.runs.contains(trace)) && !self.odd.contains(run)
    }
}

impl Recording {
    /// What waits, up to so many spans. Traces that links join wait together.
    pub fn waiting(&self, most: usize) -> Waiting {
        let all = &self.spans;
        let (traces, left) = waiting(all, most);
        let spans = all.spans.iter().filter(|span| traces.contains(&span.trace)).copied();
        let part = Spans {
            spans: spans.collect(),
            files: all.files.clone(),
            links: all.links.clone(),
            odd_spans: all.odd_spans.clone(),
            odd_traces: all.odd_traces.clone(),
            kept: None,
        };
        let others = all.spans.iter().map(|span| span.trace).filter(|trace| !traces.contains(trace));
        let odd = all.odd_traces.iter().filter(|(trace, _)| !traces.contains(trace));
        Waiting {
            recording: Self { spans: part, options: self.options.clone() },
            left,
            others: others.map(digest).collect(),
            runs: traces.iter().map(|trace| all.trace_text(*trace)).collect(),
            odd: odd.map(|(_, text)| Arc::clone(text)).collect(),
        }
    }
}

/// The traces that wait for spans, and how many more there are.
fn waiting(all: &Spans, most: usize) -> (FxHashSet<TraceId>, u64) {
    let mut numbers: FxHashMap<TraceId, u32> = FxHashMap::default();
    let mut here: FxHashSet<(TraceId, SpanId)> = FxHashSet::default();
    for span in &all.spans {
        let next = numbers.len() as u32;
        numbers.entry(span.trace).or_insert(next);
        here.insert((span.trace, span.id));
    }
    // What links join may become one operation.
    let mut joined: UnionFind<u32> = UnionFind::new(numbers.len());
    for span in &all.spans {
        for link in all.links_of(span) {
            if let Some(other) = numbers.get(&link.trace) {
                joined.union(numbers[&span.trace], *other);
            }
        }
    }
    let group = |trace: TraceId| joined.find(numbers[&trace]);
    let lacks = all.spans.iter().filter(|span| span.parent.is_some() && !here.contains(&(span.trace, span.parent)));
    let lacking: FxHashSet<u32> = lacks.map(|span| group(span.trace)).collect();
    // Of each group that lacks spans: how many it has, its traces, and the least digest, which decides who goes first.
    let mut groups: FxHashMap<u32, (u64, usize, FxHashSet<TraceId>)> = FxHashMap::default();
    for span in &all.spans {
        let own = group(span.trace);
        if lacking.contains(&own) {
            let (least, spans, traces) = groups.entry(own).or_insert((u64::MAX, 0, FxHashSet::default()));
            *least = (*least).min(digest(span.trace));
            *spans += 1;
            traces.insert(span.trace);
        }
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_unstable_by_key(|(least, ..)| *least);
    let (mut kept, mut spans, mut left) = (FxHashSet::default(), 0, 0);
    for (_, own, traces) in groups {
        if spans + own > most {
            left += traces.len() as u64;
        } else {
            spans += own;
            kept.extend(traces);
        }
    }
    (kept, left)
}
