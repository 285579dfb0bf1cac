//! Which operations of a recording lack spans, by what the spans themselves tell.

use petgraph::unionfind::UnionFind;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Recording, digest};
use crate::spans::ids::{SpanId, TraceId};
use crate::spans::model::Spans;

/// A recording in two parts, no operation of which has spans in both.
#[derive(Debug)]
pub struct Parts {
    /// Traces that lack a span which another one names as its parent, as far as they were to be kept.
    pub waiting: Recording,
    /// All others.
    pub others: Recording,
    /// How many traces lack spans and are among the others.
    pub left: u64,
}

impl Recording {
    /// Parts it: traces that lack spans, up to so many spans of these, and all others. Traces that links join are in one part.
    pub fn parted(self, most: usize) -> Parts {
        let (waiting, left) = waiting(&self.spans, most);
        let Self { spans, options } = self;
        let of = |inside: bool| {
            let spans_of = spans.spans.iter().filter(|span| waiting.contains(&span.trace) == inside).copied();
            let part = Spans {
                spans: spans_of.collect(),
                files: spans.files.clone(),
                links: spans.links.clone(),
                odd_spans: spans.odd_spans.clone(),
                odd_traces: spans.odd_traces.clone(),
                kept: None,
            };
            Self { spans: part, options: options.clone() }
        };
        Parts { waiting: of(true), others: of(false), left }
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
