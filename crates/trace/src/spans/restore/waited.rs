//! Services that record no spans, called by others that record none of their calls: nothing is left of the call but what it led to.
//!
//! The span that waited lies around that. It has a longer time without anything that was recorded by as much as that takes longer: a regression of that time on how much of
//! it lies within the spans that have lost their parents has a slope of 1. Of spans that ran beside by chance the slope is about 0.
//!
//! Where that tells no caller, and nobody records calls, each visit of the trace may have waited, and its own time is work at most.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Callers, Fragment, MOST_PAIRS, is_orphan};
use crate::spans::assemble::{NOBODY, Work};
use crate::spans::model::{Span, SpanKind};
use dyelog_diagnostic::names::Name;

/// From fewer pairs of spans nothing follows.
const ENOUGH: u64 = 50;
/// Spans that wait lie around what they wait for: at least so many of those that have lost their parents, (95, 100).
const AROUND: (u64, u64) = (95, 100);
/// Pairs of operations that are kept at most. Beyond that, no caller is named.
const MOST_KINDS: usize = 1 << 16;
/// The least slope of a regression that tells a caller, by so many standard errors. Visits that meet the same queues are a little longer together.
const SLOPE: f64 = 0.5;
/// See [`SLOPE`].
const ERRORS: f64 = 3.0;
/// A span is part of a visit that begins so many steps above it, at most.
const DEEPEST: usize = 64;
/// No time counts for more, nanoseconds: squares have to fit.
const LONGEST: i64 = 3_600_000_000_000;

/// An operation of a service.
type Operation = (Name, Name);

fn operation(span: &Span) -> Operation {
    (span.service, span.name)
}

/// Sums of a regression of times on others, nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Regression {
    count: i128,
    x: i128,
    y: i128,
    xx: i128,
    xy: i128,
    yy: i128,
}

impl Regression {
    fn add(&mut self, x: i64, y: i64) {
        let [x, y] = [x, y].map(|time| i128::from(time.min(LONGEST)));
        self.count += 1;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
        self.yy += y * y;
    }

    /// The least slope that is likely.
    fn least_slope(&self) -> Option<f64> {
        let count = self.count as f64;
        let about = |product: i128, one: i128, other: i128| product as f64 - one as f64 * other as f64 / count;
        let (xx, xy, yy) =
            (about(self.xx, self.x, self.x), about(self.xy, self.x, self.y), about(self.yy, self.y, self.y));
        if self.count < i128::from(ENOUGH) || xx <= 0.0 {
            return None;
        }
        let slope = xy / xx;
        let left = (yy - slope * xy).max(0.0) / (count - 2.0);
        Some(slope - ERRORS * (left / xx).sqrt())
    }
}

/// What tells which spans waited for a service of which neither calls nor spans were recorded.
#[derive(Debug, Default)]
pub(super) struct Waited {
    /// Services that record calls.
    record_calls: FxHashSet<Name>,
    /// Of each operation how many spans have lost their parents, and of the spans that lie around them how long these do nothing that was recorded, against how much of that
    /// time lies within the span.
    orphans: FxHashMap<Operation, (u64, FxHashMap<Operation, Regression>)>,
    /// How many pairs of operations there are.
    kinds: usize,
}

impl Waited {
    /// Takes in spans.
    pub(super) fn add(&mut self, work: &Work<'_>) {
        for trace in work.sorted.chunk_by(|one, next| work.span(*one).trace == work.span(*next).trace) {
            let calls = trace.iter().map(|index| work.span(*index)).filter(|span| span.kind.calls());
            self.record_calls.extend(calls.map(|span| span.service));
            self.add_trace(work, trace);
        }
    }

    fn add_trace(&mut self, work: &Work<'_>, trace: &[u32]) {
        let orphans: Vec<u32> =
            trace.iter().copied().filter(|index| begins_visit(work, *index) && is_orphan(work, *index)).collect();
        let is_small = orphans.len().saturating_mul(trace.len()) <= MOST_PAIRS;
        if orphans.is_empty() || !is_small || self.kinds > MOST_KINDS {
            return;
        }
        let mut below: FxHashMap<u32, Vec<(i64, i64)>> = FxHashMap::default();
        for index in trace {
            let (span, parent) = (work.span(*index), work.parent[*index as usize]);
            if parent != NOBODY {
                below.entry(parent).or_default().push((span.start, span.end));
            }
        }
        for times in below.values_mut() {
            times.sort_unstable();
        }
        for orphan in orphans {
            let span = work.span(orphan);
            let (all, callers) = self.orphans.entry(operation(span)).or_default();
            *all += 1;
            self.kinds -= callers.len();
            let mut seen: FxHashSet<Operation> = FxHashSet::default();
            for &other in trace.iter().filter(|other| **other != orphan && !work.span(**other).kind.calls()) {
                let around = work.span(other);
                let lies_around = around.start <= span.start && span.end <= around.end;
                // Of several spans of one operation nothing tells which waited.
                if !lies_around || !seen.insert(operation(around)) {
                    continue;
                }
                let below = below.get(&other).map_or(&[][..], Vec::as_slice);
                let within = idle(span.start, span.end, below);
                callers.entry(operation(around)).or_default().add(within, idle(around.start, around.end, below));
            }
            self.kinds += callers.len();
        }
        if self.kinds > MOST_KINDS {
            self.orphans.clear();
        }
    }

    /// The operation that waited for what has lost its parent.
    fn caller(&self, orphan: &Span) -> Option<Operation> {
        let (all, callers) = self.orphans.get(&operation(orphan))?;
        let waited = |(operation, own): &(&Operation, &Regression)| {
            own.count * i128::from(AROUND.1) >= i128::from(*all) * i128::from(AROUND.0)
                && !self.record_calls.contains(&operation.0)
                && own.least_slope().is_some_and(|slope| slope > SLOPE)
        };
        let mut found = callers.iter().filter(waited);
        let caller = found.next().map(|(operation, _)| *operation);
        caller.filter(|_| found.next().is_none())
    }
}

impl Callers {
    /// The span of a trace that waited for a fragment, where its service records no calls.
    pub(super) fn waited(&self, work: &Work<'_>, spans: &[u32], fragment: &Fragment) -> Option<u32> {
        let mut callers = fragment.members.iter().filter_map(|member| self.waited.caller(work.span(*member)));
        let caller = callers.next()?;
        let is_caller = |index: &&u32| {
            let span = work.span(**index);
            operation(span) == caller
                && span.start <= fragment.start
                && fragment.end <= span.end
                && !fragment.members.contains(index)
        };
        let mut found = spans.iter().filter(is_caller);
        let span = found.next().copied();
        span.filter(|_| callers.all(|other| other == caller) && found.next().is_none())
    }

    /// The visits of a trace, where nobody records calls: any may have waited for a service that records no spans.
    pub(super) fn may_wait<'s>(&'s self, work: &'s Work<'_>, spans: &'s [u32]) -> impl Iterator<Item = u32> + 's {
        let record_none = self.waited.record_calls.is_empty();
        spans.iter().copied().filter(move |index| record_none && begins_visit(work, *index))
    }
}

/// Whether a visit of a service begins with a span, as far as its kind or its parent tells.
fn begins_visit(work: &Work<'_>, index: u32) -> bool {
    let (span, parent) = (work.span(index), work.parent[index as usize]);
    span.kind.serves()
        || span.kind == SpanKind::Unspecified && (parent == NOBODY || work.span(parent).service != span.service)
}

/// The span with which the visit begins that a span is part of.
pub(super) fn visit_of(work: &Work<'_>, index: u32) -> u32 {
    let mut at = index;
    // A circle of parents has no end.
    for _ in 0..DEEPEST {
        if begins_visit(work, at) || work.parent[at as usize] == NOBODY {
            break;
        }
        at = work.parent[at as usize];
    }
    at
}

/// How much of a time lies in none of these, which are sorted.
fn idle(start: i64, end: i64, times: &[(i64, i64)]) -> i64 {
    let (mut at, mut idle) = (start, 0_i64);
    for (from, to) in times {
        idle = idle.saturating_add((*from).min(end).saturating_sub(at).max(0));
        at = at.max(*to);
    }
    idle.saturating_add(end.saturating_sub(at).max(0))
}
