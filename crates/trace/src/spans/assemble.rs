//! From loose spans to the trees that operations are made of.
//!
//! Spans are put in an order of their own first, so that nothing depends on how they arrived. Then
//! - records that say the same are one (exporters send again after a lost answer), and so are a record without an end and
//!   its completion; other spans that share an identifier are kept apart, a client and a server half among them;
//! - each span finds its parent: the other half where the two share an identifier, else the span that it names; where a
//!   consumer is linked to the producer of its message, that one, also in another trace;
//! - spans whose parent is missing are given it back where only one place fits (`restore`); where several
//!   name the same missing parent, it is put in their place; what remains are roots;
//! - each root is an operation.

use std::cmp::Ordering;

use rustc_hash::FxHashSet;

use crate::spans::ids::{SpanId, TraceId};
use crate::spans::model::{Messaging, Span, SpanKind, Spans};
use crate::spans::restore::restore;
use crate::{ReadReport, codes};
use dyelog_diagnostic::Diagnostic;
use dyelog_diagnostic::names::{Name, Names};

/// No span.
pub const NOBODY: u32 = u32::MAX;

/// How many spans of one identifier are looked at one by one: an identifier that leaked into a thousand is no shared one.
const MOST_HALVES: usize = 8;

/// The name of a service that a span does not tell.
pub const UNKNOWN_SERVICE: &str = "unknown_service";

/// The spans of one input, as forests.
#[derive(Debug)]
pub struct Forest {
    /// The spans; some are left out of all trees.
    pub spans: Spans,
    /// The parent of each span, or [`NOBODY`].
    pub parent: Vec<u32>,
    /// Whether a producer's message went into a batch that another message's operation accounts for.
    pub batched: FxHashSet<u32>,
    /// The trees, in the order of their start.
    pub trees: Vec<Tree>,
    /// The spans of all trees, each tree in breadth-first order with the children of a span in the order of their start.
    pub order: Vec<u32>,
}

/// One tree of spans.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Where it begins in [`Forest::order`].
    pub first: usize,
    /// One past its last.
    pub end: usize,
    /// Which of its trace's trees it is, from 1.
    pub number: u32,
    /// Whether it hung on a span that was lost.
    pub fragment: bool,
}

/// What the steps of the assembly share.
pub(super) struct Work<'a> {
    pub names: &'a mut Names,
    pub report: &'a mut ReadReport,
    pub spans: Spans,
    pub parent: Vec<u32>,
    /// All spans that are kept, in the order of [`Spans::compare`].
    pub sorted: Vec<u32>,
}

impl Work<'_> {
    pub fn span(&self, index: u32) -> &Span {
        &self.spans.spans[index as usize]
    }

    pub fn count(
        &mut self,
        reason: &'static str,
        index: u32,
        finding: impl FnOnce(dyelog_diagnostic::Place) -> Diagnostic,
    ) {
        let spans = &self.spans;
        self.report.count(reason, || finding(spans.place_of(&spans.spans[index as usize])));
    }

    /// The spans of that trace and identifier, as positions in `sorted`.
    fn named(&self, trace: TraceId, id: SpanId) -> std::ops::Range<usize> {
        let key = |index: &u32| (self.span(*index).trace, self.span(*index).id);
        let first = self.sorted.partition_point(|index| key(index) < (trace, id));
        let length = self.sorted[first..].partition_point(|index| key(index) == (trace, id));
        first..first + length
    }
}

/// Builds the trees.
pub fn assemble(names: &mut Names, spans: Spans, report: &mut ReadReport) -> Forest {
    let mut work = Work { names, report, spans, parent: Vec::new(), sorted: Vec::new() };
    name_services(&mut work);
    sort(&mut work);
    remove_duplicates(&mut work);
    work.parent = vec![NOBODY; work.spans.spans.len()];
    find_parents(&mut work);
    let batched = follow_links(&mut work);
    restore(&mut work);
    build_forest(work, batched)
}

fn name_services(work: &mut Work<'_>) {
    let nameless = work.spans.spans.iter().filter(|span| !span.service.is_some()).count();
    if nameless == 0 {
        return;
    }
    let unknown = work.names.intern(UNKNOWN_SERVICE);
    for index in 0..work.spans.spans.len() {
        if !work.spans.spans[index].service.is_some() {
            work.spans.spans[index].service = unknown;
            work.count("span without a service", index as u32, |place| {
                Diagnostic::warning(codes::NO_SERVICE, place, "it is not told which service recorded this span")
                    .with_note(format!("its service is taken as `{UNKNOWN_SERVICE}`"))
                    .with_hint("set `service.name` in the resource (OTLP) or `serviceName` in the process (Jaeger)")
            });
        }
    }
}

fn sort(work: &mut Work<'_>) {
    let mut sorted: Vec<u32> = (0..work.spans.spans.len() as u32).collect();
    sorted.sort_unstable_by(|a, b| {
        let order = work.spans.compare(work.names, work.span(*a), work.span(*b));
        order.then_with(|| work.spans.kept.as_ref().map_or(Ordering::Equal, |kept| kept.compare(work.names, *a, *b)))
    });
    work.sorted = sorted;
}

fn remove_duplicates(work: &mut Work<'_>) {
    let sorted = std::mem::take(&mut work.sorted);
    let mut kept: Vec<u32> = Vec::with_capacity(sorted.len());
    for index in sorted {
        let span = *work.span(index);
        let last = kept.last().map(|last| *work.span(*last));
        let Some(last) = last.filter(|last| (last.trace, last.id, last.kind) == (span.trace, span.id, span.kind))
        else {
            kept.push(index);
            continue;
        };
        let same =
            |a: &Span, b: &Span| (a.start, a.service, a.name, a.parent) == (b.start, b.service, b.name, b.parent);
        if same(&last, &span) && last.end == span.end {
            // An ended span of no duration and an endless one differ in this only; the former knows more.
            if last.endless && !span.endless {
                kept.pop();
                kept.push(index);
            }
            work.count("duplicate span", index, |place| {
                Diagnostic::warning(codes::DUPLICATE_SPAN, place, "this span is recorded more than once")
            });
        } else if same(&last, &span) && last.endless {
            kept.pop();
            kept.push(index);
            work.count("span recorded in pieces", index, |place| {
                Diagnostic::warning(
                    codes::DUPLICATE_SPAN,
                    place,
                    "this span is recorded once without and once with an end",
                )
            });
        } else {
            kept.push(index);
            work.count("span identifier used twice", index, |place| {
                Diagnostic::warning(codes::REUSED_ID, place, "another span of this trace has the same identifier")
                    .with_note(
                        "both are kept; spans that name it as their parent go to the one that ran when they began",
                    )
            });
        }
    }
    work.sorted = kept;
}

fn find_parents(work: &mut Work<'_>) {
    for at in 0..work.sorted.len() {
        let index = work.sorted[at];
        work.parent[index as usize] = parent_of(work, index);
    }
}

fn parent_of(work: &Work<'_>, index: u32) -> u32 {
    let span = work.span(index);
    if span.kind.serves() {
        // A server half that shares its client's identifier names the client's parent, or the client itself.
        let halves = &work.sorted[work.named(span.trace, span.id)];
        for kind in [SpanKind::Client, SpanKind::Producer] {
            if let Some(client) = of_kind(work, index, halves, kind) {
                return client;
            }
        }
    }
    if !span.parent.is_some() {
        return NOBODY;
    }
    let candidates = &work.sorted[work.named(span.trace, span.parent)];
    match *candidates {
        [] => NOBODY,
        [only] => {
            if only == index {
                NOBODY
            } else {
                only
            }
        }
        _ => among(work, index, candidates),
    }
}

/// The parent among several spans of the same identifier, which are sorted by kind and start.
fn among(work: &Work<'_>, index: u32, candidates: &[u32]) -> u32 {
    let span = work.span(index);
    let local = |other: &&u32| work.span(**other).service == span.service && **other != index;
    if !span.kind.serves() && candidates.len() <= MOST_HALVES {
        let mut locals = candidates.iter().filter(local);
        if let (Some(&one), None) = (locals.next(), locals.next()) {
            return one;
        }
    }
    // The half that serves, or whatever kind there is; of these the last that began before.
    let kinds = [
        SpanKind::Server,
        SpanKind::Consumer,
        SpanKind::Internal,
        SpanKind::Unspecified,
        SpanKind::Client,
        SpanKind::Producer,
    ];
    kinds.into_iter().find_map(|kind| of_kind(work, index, candidates, kind)).unwrap_or(NOBODY)
}

/// Of spans of one identifier, sorted by kind and start, the last of a kind that began before a span, or the first.
fn of_kind(work: &Work<'_>, index: u32, candidates: &[u32], kind: SpanKind) -> Option<u32> {
    let first = candidates.partition_point(|other| work.span(*other).kind < kind);
    let length = candidates[first..].partition_point(|other| work.span(*other).kind == kind);
    let of_kind = &candidates[first..first + length];
    let before = of_kind.partition_point(|other| work.span(*other).start <= work.span(index).start);
    let other = |other: &&u32| **other != index;
    of_kind[..before].iter().rev().find(other).or_else(|| of_kind.iter().find(other)).copied()
}

/// Joins consumers to the producers that they are linked to. Gives the producers whose messages came in a batch with one
/// that is joined.
fn follow_links(work: &mut Work<'_>) -> FxHashSet<u32> {
    let mut batched = FxHashSet::default();
    for at in 0..work.sorted.len() {
        let index = work.sorted[at];
        let span = *work.span(index);
        if span.links == 0 {
            continue;
        }
        let consumes = span.kind == SpanKind::Consumer || span.messaging == Messaging::Process;
        if !consumes || span.polls() {
            work.count("link without a message", index, |place| {
                Diagnostic::new(
                    dyelog_diagnostic::Severity::Note,
                    codes::LOOSE_LINK,
                    place,
                    "this span is linked to others, but neither its kind nor its attributes say that it works on their messages",
                )
            });
            continue;
        }
        let sends = |index: u32| {
            let span = work.span(index);
            span.kind == SpanKind::Producer || span.messaging == Messaging::Send
        };
        let mut senders: Vec<u32> = work
            .spans
            .links_of(&span)
            .iter()
            .flat_map(|link| work.sorted[work.named(link.trace, link.span)].iter().take(MOST_HALVES))
            .copied()
            .filter(|sender| *sender != index && sends(*sender))
            .collect();
        let parent = work.parent[index as usize];
        let by_parent = parent != NOBODY && sends(parent);
        senders
            .sort_unstable_by_key(|sender| (work.span(*sender).start, work.span(*sender).trace, work.span(*sender).id));
        senders.dedup();
        let cause = if by_parent { Some(parent) } else { senders.first().copied() };
        let Some(cause) = cause else {
            work.count("link to a span that is not there", index, |place| {
                Diagnostic::warning(
                    codes::LOOSE_LINK,
                    place,
                    "no producer that this span is linked to is in this trace",
                )
                .with_note("it is left where it is")
            });
            continue;
        };
        work.parent[index as usize] = cause;
        let span = &mut work.spans.spans[index as usize];
        (span.follows, span.remote) = (true, true);
        for other in senders.into_iter().filter(|sender| *sender != cause) {
            batched.insert(other);
            work.count("message that came in a batch", other, |place| {
                Diagnostic::new(
                    dyelog_diagnostic::Severity::Note,
                    codes::BATCH,
                    place,
                    "this message was worked on together with an earlier one",
                )
                .with_note("the work belongs to the operation of the earliest message of the batch")
            });
        }
    }
    batched
}

/// Lays out the trees.
fn build_forest(mut work: Work<'_>, batched: FxHashSet<u32>) -> Forest {
    let mut by_parent = std::mem::take(&mut work.sorted);
    let mut position = vec![0_u32; work.spans.spans.len()];
    for (at, index) in by_parent.iter().enumerate() {
        position[*index as usize] = at as u32;
    }
    // Equal starts are decided by the order that does not depend on arrival.
    let key =
        |work: &Work<'_>, index: u32| (work.parent[index as usize], work.span(index).start, position[index as usize]);
    by_parent.sort_unstable_by_key(|index| key(&work, *index));
    let mut spans_of = Vec::with_capacity(by_parent.len());
    let children = |work: &Work<'_>, parent: u32| {
        let first = by_parent.partition_point(|index| work.parent[*index as usize] < parent);
        let length = by_parent[first..].partition_point(|index| work.parent[*index as usize] == parent);
        &by_parent[first..first + length]
    };
    // Where the children of each span begin, so that finding them takes no search.
    let mut first_child = vec![(0_u32, 0_u32); work.spans.spans.len()];
    let mut at = 0;
    while at < by_parent.len() {
        let parent = work.parent[by_parent[at] as usize];
        let length = by_parent[at..].partition_point(|index| work.parent[*index as usize] == parent);
        if parent != NOBODY {
            first_child[parent as usize] = (at as u32, length as u32);
        }
        at += length;
    }
    let mut seen = vec![false; work.spans.spans.len()];
    let mut roots: Vec<(u32, usize, usize)> = Vec::new();
    let mut grow = |work: &Work<'_>, root: u32, seen: &mut Vec<bool>, spans_of: &mut Vec<u32>| {
        let first = spans_of.len();
        seen[root as usize] = true;
        spans_of.push(root);
        let mut next = first;
        while next < spans_of.len() {
            let (from, length) = first_child[spans_of[next] as usize];
            for &child in &by_parent[from as usize..][..length as usize] {
                if !seen[child as usize] {
                    seen[child as usize] = true;
                    spans_of.push(child);
                }
            }
            next += 1;
        }
        let _ = work;
        roots.push((root, first, spans_of.len()));
    };
    for &root in children(&work, NOBODY) {
        grow(&work, root, &mut seen, &mut spans_of);
    }
    // What no root reaches hangs on a circle of parents.
    let mut circles = Vec::new();
    let mut by_start: Vec<u32> = by_parent.iter().copied().filter(|index| !seen[*index as usize]).collect();
    by_start.sort_unstable_by_key(|index| (work.span(*index).start, position[*index as usize]));
    for root in by_start {
        if !seen[root as usize] {
            grow(&work, root, &mut seen, &mut spans_of);
            circles.push(root);
        }
    }
    for root in circles {
        work.parent[root as usize] = NOBODY;
        work.count("circle of parents", root, |place| {
            Diagnostic::warning(codes::CIRCLE, place, "this span is among its own ancestors")
                .with_note("it is taken as the root of an operation")
        });
    }
    let trees = number(&work, roots);
    Forest { spans: work.spans, parent: work.parent, batched, trees, order: spans_of }
}

/// Puts the trees in order and numbers those of each trace.
fn number(work: &Work<'_>, mut roots: Vec<(u32, usize, usize)>) -> Vec<Tree> {
    let key = |root: u32| (work.span(root).start, work.span(root).trace, work.span(root).id, work.span(root).kind);
    roots.sort_by_key(|(root, ..)| key(*root));
    let mut numbers: rustc_hash::FxHashMap<TraceId, u32> = rustc_hash::FxHashMap::default();
    roots
        .into_iter()
        .map(|(root, first, end)| {
            let span = work.span(root);
            let number = numbers.entry(span.trace).or_insert(0);
            *number += 1;
            let orphan = span.parent.is_some() && work.named(span.trace, span.parent).is_empty();
            Tree { first, end, number: *number, fragment: span.lost || orphan }
        })
        .collect()
}

/// The name of a synthetic span is empty.
pub(super) const NAMELESS: Name = Name::NONE;
