//! From loose spans to the trees that operations are made of.
//!
//! Spans are put in an order of their own first, so that nothing depends on how they arrived. Then
//! - records that say the same are one (exporters send again after a lost answer), and so are a record without an end and
//!   its completion; other spans that share an identifier are kept apart, a client and a server half among them;
//! - each span finds its parent: the other half where the two share an identifier, else the span that it names; where a
//!   consumer is linked to the producer of its message, that one, also in another trace;
//! - single spans that lie or last an impossible time beside the others of their trace are moved or cut (`misread`);
//! - spans whose parent is missing are given it back where only one place fits (`restore`); where several
//!   name the same missing parent, it is put in their place; what remains are roots;
//! - a message and one that answers it are one call, where its sender waits for the answer (`answers`);
//! - each root is an operation.

use std::cmp::Ordering;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::spans::answers;
use crate::spans::ids::{SpanId, TraceId};
use crate::spans::misread::{self, UsualTimes};
use crate::spans::model::{Span, SpanKind, Spans};
use crate::spans::restore::{self, Callers, restore};
use crate::{Extent, ReadReport, codes};
use dyelog_diagnostic::Diagnostic;
use dyelog_diagnostic::names::{Name, Names};

/// No span.
pub const NOBODY: u32 = u32::MAX;

/// How many spans of one identifier are looked at one by one: an identifier that leaked into a thousand is no shared one.
const MOST_HALVES: usize = 8;

/// The name of a service that a span does not tell.
pub const UNKNOWN_SERVICE: &str = "unknown_service";

/// The spans of one input, or of some of its traces, as forests.
#[derive(Debug, Default)]
pub struct Forest {
    /// The spans; some are left out of all trees.
    pub spans: Spans,
    /// The parent of each span, or [`NOBODY`].
    pub parent: Vec<u32>,
    /// By how much spans were moved that lay where no clock can have had them, nanoseconds.
    pub moved: FxHashMap<u32, i64>,
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
    /// How much of an operation it is.
    pub extent: Extent,
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

    /// Takes in spans that were made up.
    pub fn add_sorted(&mut self, mut added: Vec<u32>) {
        if added.is_empty() {
            return;
        }
        let mut sorted = std::mem::take(&mut self.sorted);
        sorted.append(&mut added);
        sorted.sort_by(|a, b| self.spans.compare(self.names, self.span(*a), self.span(*b)));
        self.sorted = sorted;
    }

    /// The spans of that trace and identifier, as positions in `sorted`.
    fn named(&self, trace: TraceId, id: SpanId) -> std::ops::Range<usize> {
        let key = |index: &u32| (self.span(*index).trace, self.span(*index).id);
        let first = self.sorted.partition_point(|index| key(index) < (trace, id));
        let length = self.sorted[first..].partition_point(|index| key(index) == (trace, id));
        first..first + length
    }

    /// Whether any span of a trace is there.
    fn has_trace(&self, trace: TraceId) -> bool {
        let first = self.sorted.partition_point(|index| self.span(*index).trace < trace);
        self.sorted.get(first).is_some_and(|index| self.span(*index).trace == trace)
    }
}

/// Spans of which each knows its parent.
#[derive(Debug, Default)]
pub(super) struct Linked {
    /// The spans; some are left out.
    pub spans: Spans,
    /// The parent of each, or [`NOBODY`].
    pub parent: Vec<u32>,
    /// Those that are not left out, in the order of [`Spans::compare`].
    pub sorted: Vec<u32>,
    /// By how much spans were moved that lay where no clock can have had them, nanoseconds.
    pub moved: FxHashMap<u32, i64>,
}

impl Linked {
    /// Works on them, and lets the work say what is odd.
    pub fn work<R>(&mut self, names: &mut Names, report: &mut ReadReport, work: impl FnOnce(&mut Work<'_>) -> R) -> R {
        let [parent, sorted] = [&mut self.parent, &mut self.sorted].map(std::mem::take);
        let mut own = Work { names, report, spans: std::mem::take(&mut self.spans), parent, sorted };
        let result = work(&mut own);
        (self.spans, self.parent, self.sorted) = (own.spans, own.parent, own.sorted);
        result
    }
}

/// What the steps say, each by itself: what is said first does not depend on how many spans each step gets at once.
#[derive(Debug, Default)]
pub(super) struct Findings {
    duplicates: ReadReport,
    links: ReadReport,
    times: ReadReport,
    lost: ReadReport,
    rootless: ReadReport,
    answers: ReadReport,
    circles: ReadReport,
}

impl Findings {
    /// All of it, in the order of the steps.
    pub fn merge_into(self, report: &mut ReadReport) {
        // What says that the first service is missing comes before what that does to single spans.
        for step in [self.duplicates, self.rootless, self.links, self.times, self.lost, self.answers, self.circles] {
            report.merge(step);
        }
    }
}

/// What all spans of an input tell of those whose times cannot be, and whose parents were lost.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// Whether any times are doubtful.
    pub doubtful: bool,
    /// Whether any parents are missing.
    pub orphans: bool,
    /// Whether any trace has its first span.
    first: bool,
    /// How spans lie and last, where times are doubtful.
    pub times: UsualTimes,
    /// Who calls whom, where parents are missing.
    pub callers: Callers,
}

impl Evidence {
    /// Looks whether anything is to be gathered.
    pub fn look(&mut self, linked: &mut Linked, names: &mut Names, corrects_times: bool) {
        linked.work(names, &mut ReadReport::default(), |work| {
            self.doubtful |= corrects_times && misread::any_doubtful(work);
            self.orphans |= restore::any_orphans(work);
            self.first |= restore::any_first(work);
        });
    }

    /// Whether no trace has its first span: a service may be missing that all operations begin with.
    pub fn is_rootless(&self) -> bool {
        self.orphans && !self.first
    }

    /// Gathers what is needed, but for what needs all of that.
    pub fn gather(&mut self, linked: &mut Linked, names: &mut Names) {
        linked.work(names, &mut ReadReport::default(), |work| {
            if self.doubtful {
                self.times.add_durations(work);
            }
            if self.orphans {
                self.callers.add(work);
            }
        });
    }

    /// Gathers the rest.
    pub fn gather_again(&mut self, linked: &mut Linked, names: &mut Names) {
        linked.work(names, &mut ReadReport::default(), |work| self.times.add_distances(work));
    }
}

/// Finds the parents of spans.
pub(super) fn link(names: &mut Names, spans: Spans, findings: &mut Findings) -> Linked {
    let mut linked = Linked { spans, ..Linked::default() };
    linked.work(names, &mut findings.duplicates, |work| {
        sort(work);
        remove_duplicates(work);
        work.parent = vec![NOBODY; work.spans.spans.len()];
        find_parents(work);
    });
    linked.work(names, &mut findings.links, follow_links);
    linked
}

/// Puts times right that cannot be, and gives spans their lost parents back.
pub(super) fn mend(names: &mut Names, linked: &mut Linked, evidence: &Evidence, findings: &mut Findings) {
    if evidence.doubtful {
        linked.moved = linked.work(names, &mut findings.times, |work| misread::put_right(work, &evidence.times));
    }
    if evidence.orphans {
        linked.work(names, &mut findings.lost, |work| restore(work, &evidence.callers));
    }
}

/// Builds the trees; where a service is missing that all operations begin with, one of each trace.
pub(super) fn plant(names: &mut Names, mut linked: Linked, lack_a_service: bool, findings: &mut Findings) -> Forest {
    if lack_a_service {
        linked.work(names, &mut findings.rootless, restore::join_rootless);
    }
    linked.work(names, &mut findings.answers, answers::join);
    let Linked { spans, parent, sorted, moved } = linked;
    build_forest(Work { names, report: &mut findings.circles, spans, parent, sorted }, moved)
}

/// Names the service of spans that do not tell it.
pub(super) fn name_services(names: &mut Names, spans: &mut Spans, report: &mut ReadReport) {
    if spans.spans.iter().all(|span| span.service.is_some()) {
        return;
    }
    let unknown = names.intern(UNKNOWN_SERVICE);
    for index in 0..spans.spans.len() {
        if !spans.spans[index].service.is_some() {
            spans.spans[index].service = unknown;
            report.count("span without a service", || {
                let place = spans.place_of(&spans.spans[index]);
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

/// Joins consumers to the producers that they are linked to.
///
/// Of a batch, the consumer belongs to the operation of the earliest message. Each other message is a call of the same operation, by its own
/// producer, which takes no time: all calls together take what was recorded.
///
/// A consumer whose producer was lost goes to the trace of the message where anything of that is there, as a span that has lost its parent. It is the first span of
/// an operation elsewhere, unless a span calls it that does more than wait for messages.
fn follow_links(work: &mut Work<'_>) {
    let (mut added, mut orphans) = (Vec::new(), Vec::new());
    for at in 0..work.sorted.len() {
        let index = work.sorted[at];
        let span = *work.span(index);
        if span.links == 0 {
            continue;
        }
        if !span.works_on_messages() || span.polls() {
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
        let sends = |index: u32| work.span(index).sends_message();
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
        senders.sort_unstable_by_key(|sender| {
            (work.span(*sender).start, work.span(*sender).trace, work.span(*sender).id, *sender)
        });
        senders.dedup();
        let cause = if by_parent { Some(parent) } else { senders.first().copied() };
        let Some(cause) = cause else {
            work.count("link to a span that is not there", index, |place| {
                Diagnostic::warning(
                    codes::LOOSE_LINK,
                    place,
                    "no producer that this span is linked to is in this trace",
                )
                .with_note("it belongs where what is left of the sender's trace shows its place, and is left where it is otherwise")
            });
            // What only waits for messages is no caller of the work on them.
            let only_polled =
                parent != NOBODY && work.span(parent).polls() && work.span(parent).service == span.service;
            if !span.parent.is_some() || only_polled {
                let link = work.spans.links_of(&span).iter().find(|link| work.has_trace(link.trace)).copied();
                orphans.extend(link.map(|link| (index, link)));
                let span = &mut work.spans.spans[index as usize];
                (span.unlinked, span.apart) = (true, link.is_none());
                if only_polled {
                    span.parent = SpanId::NONE;
                    work.parent[index as usize] = NOBODY;
                }
            }
            continue;
        };
        work.parent[index as usize] = cause;
        let span = &mut work.spans.spans[index as usize];
        (span.follows, span.remote, span.batch) = (true, true, span.links);
        for other in senders.into_iter().filter(|sender| *sender != cause) {
            added.push(message_of_batch(work, index, other));
            work.count("message that came in a batch", other, |place| {
                Diagnostic::new(
                    dyelog_diagnostic::Severity::Note,
                    codes::BATCH,
                    place,
                    "this message was worked on together with an earlier one",
                )
                .with_note("it counts as a message of its own; the work of all lies in the operation of the earliest one of the batch")
            });
        }
    }
    for (index, link) in &orphans {
        let span = &mut work.spans.spans[*index as usize];
        (span.trace, span.parent) = (link.trace, link.span);
    }
    if !orphans.is_empty() {
        // They lie in the order of other traces now.
        added.append(&mut std::mem::take(&mut work.sorted));
    }
    work.add_sorted(added);
}

/// The work on a message that a consumer does together with an earlier one, below the span that sent it.
fn message_of_batch(work: &mut Work<'_>, consumer: u32, sender: u32) -> u32 {
    let (own, sent) = (*work.span(consumer), *work.span(sender));
    let cpu = if own.cpu.is_nan() { f64::NAN } else { 0.0 };
    let span =
        Span { trace: sent.trace, parent: sent.id, end: own.start, cpu, links: 0, batch: 0, weight: f64::NAN, ..own };
    let index = work.spans.spans.len() as u32;
    work.spans.spans.push(span);
    work.parent.push(sender);
    index
}

/// Lays out the trees.
fn build_forest(mut work: Work<'_>, moved: FxHashMap<u32, i64>) -> Forest {
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
    // In the order of batches, so that those that are named do not depend on their size.
    circles.sort_unstable_by_key(|root| position[*root as usize]);
    for root in circles {
        work.parent[root as usize] = NOBODY;
        work.count("circle of parents", root, |place| {
            Diagnostic::warning(codes::CIRCLE, place, "this span is among its own ancestors")
                .with_note("it is taken as the root of an operation")
        });
    }
    let trees = number(&work, roots);
    Forest { spans: work.spans, parent: work.parent, moved, trees, order: spans_of }
}

/// Puts the trees in order and numbers those of each trace.
fn number(work: &Work<'_>, mut roots: Vec<(u32, usize, usize)>) -> Vec<Tree> {
    let key = |root: u32| (work.span(root).start, work.span(root).trace, work.span(root).id, work.span(root).kind);
    roots.sort_by_key(|(root, ..)| key(*root));
    let is_fragment = |span: &Span| {
        span.lost || !span.unlinked && span.parent.is_some() && work.named(span.trace, span.parent).is_empty()
    };
    let is_first = |root: u32| Some(work.span(root)).filter(|span| !is_fragment(span) && !span.unlinked);
    let begun: FxHashSet<TraceId> = roots.iter().filter_map(|root| Some(is_first(root.0)?.trace)).collect();
    // Of each trace, how many trees there are so far, and whether one of them is the first of what is left of its operation.
    let mut numbers: FxHashMap<TraceId, (u32, bool)> = FxHashMap::default();
    roots
        .into_iter()
        .map(|(root, first, end)| {
            let span = work.span(root);
            let (number, has_head) = numbers.entry(span.trace).or_default();
            *number += 1;
            let extent = match (is_fragment(span), begun.contains(&span.trace)) {
                (false, _) if span.apart => Extent::Apart,
                (false, _) if span.unlinked => Extent::Unlinked,
                (false, _) => Extent::Whole,
                (true, true) => Extent::Rest,
                (true, false) if std::mem::replace(has_head, true) => Extent::Piece,
                (true, false) => Extent::Headless,
            };
            Tree { first, end, number: *number, extent }
        })
        .collect()
}

/// The name of a synthetic span is empty.
pub(super) const NAMELESS: Name = Name::NONE;
