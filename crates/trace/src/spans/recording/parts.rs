//! Which operations of a recording lack spans, by what the spans themselves tell.

use std::collections::BTreeSet;
use std::sync::Arc;

use petgraph::unionfind::UnionFind;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Recording, digest};
use crate::spans::files::cannot_spill;
use crate::spans::ids::{SpanId, TraceId};
use crate::spans::model::{Span, Spans};
use crate::spans::store::Store;
use dyelog_diagnostic::Diagnostics;

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
    ///
    /// # Errors
    /// Where spans that wait on disk cannot be read.
    pub fn waiting(&mut self, most: usize) -> Result<Waiting, Diagnostics> {
        let mut groups: Vec<Group> = Vec::new();
        self.store.visit(|all| lacking(all, &mut groups)).map_err(|error| cannot_spill(&error))?;
        // The least digest decides which goes first.
        groups.sort_unstable_by_key(|group| group.least);
        let (mut traces, mut spans, mut left) = (FxHashSet::default(), 0, 0);
        for group in groups {
            if spans + group.spans > most {
                left += group.traces.len() as u64;
            } else {
                spans += group.spans;
                traces.extend(group.traces);
            }
        }
        let (mut part, mut others, mut odd) = (Spans::default(), BTreeSet::new(), Arc::default());
        let looked = self.store.visit(|all| {
            if part.files.is_empty() {
                part = Spans { kept: None, ..all.like() };
                odd = Arc::clone(&all.odd_traces);
            }
            for span in &all.spans {
                if traces.contains(&span.trace) {
                    let first_link = part.links.len() as u32;
                    part.links.extend_from_slice(all.links_of(span));
                    part.spans.push(Span { first_link, ..*span });
                } else {
                    others.insert(digest(span.trace));
                }
            }
        });
        looked.map_err(|error| cannot_spill(&error))?;
        let runs = traces.iter().map(|trace| part.trace_text(*trace)).collect();
        let odd = odd.iter().filter(|(trace, _)| !traces.contains(trace)).map(|(_, text)| Arc::clone(text)).collect();
        let recording = Self { store: Store::holding(part), options: self.options.clone() };
        Ok(Waiting { recording, left, others, runs, odd })
    }
}

/// Traces that links join, and that lack spans.
struct Group {
    /// The least digest of a trace.
    least: u64,
    spans: usize,
    traces: FxHashSet<TraceId>,
}

/// Adds the traces that wait for spans.
fn lacking(all: &Spans, groups: &mut Vec<Group>) {
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
    let mut found: FxHashMap<u32, Group> = FxHashMap::default();
    for span in &all.spans {
        let own = group(span.trace);
        if lacking.contains(&own) {
            let none = Group { least: u64::MAX, spans: 0, traces: FxHashSet::default() };
            let group = found.entry(own).or_insert(none);
            group.least = group.least.min(digest(span.trace));
            group.spans += 1;
            group.traces.insert(span.trace);
        }
    }
    groups.extend(found.into_values());
}
