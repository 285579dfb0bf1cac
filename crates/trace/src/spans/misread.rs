//! Times that a clock cannot have told: one span of a thousand that lies an hour beside its parent, or lasts an hour.
//!
//! A clock that is off is off in all its readings ([`skew`](super::skew)). Here single readings are wrong, and what they spoil is a mean:
//! one hour among a thousand requests of 25 ms adds 3.6 s to each. Two questions are asked of a span, by orders of magnitude, so that slow requests
//! stay what they are:
//! - Is it *apart* from its parent by more than ten times what either takes, where spans like it lie within theirs? Then it moves to where its own
//!   children are, or into its parent, and keeps its duration. A first span that is apart from most of its children is itself the one that moves.
//! - Is it *too long*, by a factor of a thousand and by more than any timeout, while neither its parent nor its children take such a time? Then the
//!   end, or the start, that is far from them is none.
//!
//! Counts and histograms of powers of two tell how spans like it lie and last: they merge, and do not depend on an order. A span that its
//! parent does not wait for is never apart.

use rustc_hash::FxHashMap;

use crate::codes;
use crate::spans::assemble::{NOBODY, Work};
use crate::spans::model::{Clock, Span, SpanKind};
use dyelog_diagnostic::Diagnostic;
use dyelog_diagnostic::names::Name;

/// A span is apart where the time between it and its parent is more than so many times what spans such as the two take.
const APART: i64 = 10;
/// What lies between them is at least so long, nanoseconds: less is scheduling, or clocks that differ.
const LEAST_APART: i64 = 50_000_000;
/// Of spans alike at most one in so many is apart; where more are, they are meant to be.
const RARE: u64 = 20;
/// So many spans alike tell how they lie; with half of them a single one that is apart stands out.
const ENOUGH: u64 = 20;
/// Where too few are alike, all spans of the recording tell, and a span is apart by so much, nanoseconds.
const FAR: i64 = 600_000_000_000;
/// A span is too long where it takes more than so many times what 95 of 100 of its like take.
const TOO_LONG: i64 = 1000;
/// No span is too long that takes no more than that, nanoseconds: the longest timeouts that programs have as a rule.
const LONGEST_TIMEOUT: i64 = 120_000_000_000;

/// Spans of one operation: service, name and side.
type Alike = (Name, Name, SpanKind);

/// How many of some spans there are, and how many of them are apart from their parents.
#[derive(Clone, Copy, Debug, Default)]
struct Apart {
    spans: u64,
    apart: u64,
}

impl Apart {
    fn add(&mut self, apart: bool) {
        self.spans += 1;
        self.apart += u64::from(apart);
    }

    /// Whether one that is apart is an exception among these; `None` where they are too few to tell.
    fn is_exception(self) -> Option<bool> {
        let Self { spans, apart } = self;
        if spans >= ENOUGH { Some(apart * RARE <= spans) } else { (2 * spans >= ENOUGH && apart <= 1).then_some(true) }
    }
}

/// Durations by their power of two.
#[derive(Clone, Copy, Debug)]
struct Durations {
    counts: [u32; 64],
    all: u64,
}

impl Default for Durations {
    fn default() -> Self {
        Self { counts: [0; 64], all: 0 }
    }
}

impl Durations {
    fn add(&mut self, duration: i64) {
        let power = duration.max(1).ilog2() as usize;
        self.counts[power] = self.counts[power].saturating_add(1);
        self.all += 1;
    }

    /// A duration that so many percent do not exceed, to a factor of two; zero where there is none.
    fn quantile(&self, percent: u64) -> i64 {
        let rank = self.all.saturating_sub(1) * percent / 100;
        let mut below = 0;
        for (power, count) in self.counts.iter().enumerate() {
            below += u64::from(*count);
            if below > rank {
                return 1_i64.checked_shl(power as u32 + 1).filter(|bound| *bound > 0).unwrap_or(i64::MAX);
            }
        }
        0
    }
}

/// How spans lie and last in all of an input.
#[derive(Debug, Default)]
pub(super) struct UsualTimes {
    durations: FxHashMap<Alike, Durations>,
    by_clocks: FxHashMap<(Alike, Clock, Clock), Apart>,
    by_name: FxHashMap<Alike, Apart>,
    all: Apart,
}

fn alike(span: &Span) -> Alike {
    (span.service, span.name, span.kind)
}

/// Whether a parent does not wait for a span: that one lies wherever it lies.
fn is_deferred(span: &Span, parent: &Span) -> bool {
    span.follows || span.kind == SpanKind::Consumer || parent.kind == SpanKind::Producer
}

/// The time between two spans; zero where they touch.
fn between(one: &Span, other: &Span) -> i64 {
    one.start.saturating_sub(other.end).max(other.start.saturating_sub(one.end)).max(0)
}

impl UsualTimes {
    /// Takes in how long spans last.
    pub fn add_durations(&mut self, work: &Work<'_>) {
        for &index in &work.sorted {
            let span = work.span(index);
            if !span.endless {
                self.durations.entry(alike(span)).or_default().add(span.duration());
            }
        }
    }

    /// Takes in how they lie, once it is known how long all of them last.
    pub fn add_distances(&mut self, work: &Work<'_>) {
        for &index in &work.sorted {
            let Some(parent) = waiting_parent(work, index) else { continue };
            let (span, parent) = (work.span(index), work.span(parent));
            let apart = self.are_apart(span, parent);
            self.by_clocks
                .entry((alike(span), parent.clock().of_machine(), span.clock().of_machine()))
                .or_default()
                .add(apart);
            self.by_name.entry(alike(span)).or_default().add(apart);
            self.all.add(apart);
        }
    }

    fn usual(&self, span: &Span, percent: u64) -> i64 {
        self.durations.get(&alike(span)).map_or(0, |durations| durations.quantile(percent))
    }

    fn are_apart(&self, span: &Span, parent: &Span) -> bool {
        let between = between(span, parent);
        // Most spans lie within their parents, and need no more than that.
        between > LEAST_APART && {
            let longest = span.duration().max(parent.duration());
            let longest = longest.max(self.usual(span, 95)).max(self.usual(parent, 95));
            between > longest.saturating_mul(APART)
        }
    }

    /// Whether a span is apart from its parent as those like it are not.
    fn is_misplaced(&self, span: &Span, parent: &Span) -> bool {
        if is_deferred(span, parent) || !self.are_apart(span, parent) {
            return false;
        }
        let by_clocks = self.by_clocks.get(&(alike(span), parent.clock().of_machine(), span.clock().of_machine()));
        let by_name = self.by_name.get(&alike(span));
        let told = [by_clocks, by_name].into_iter().flatten().find_map(|own| own.is_exception());
        told.unwrap_or_else(|| between(span, parent) > FAR && self.all.is_exception() == Some(true))
    }

    /// Whether a span takes longer than its like by orders of magnitude.
    fn is_long(&self, span: &Span) -> bool {
        let enough = || self.durations.get(&alike(span)).is_some_and(|own| 2 * own.all >= ENOUGH);
        span.duration() > LONGEST_TIMEOUT && enough() && span.duration() > self.usual(span, 95).saturating_mul(TOO_LONG)
    }
}

fn waiting_parent(work: &Work<'_>, index: u32) -> Option<u32> {
    let parent = work.parent[index as usize];
    (parent != NOBODY && !is_deferred(work.span(index), work.span(parent))).then_some(parent)
}

/// Whether a span is far from its parent or takes long, whatever its like do.
fn is_doubtful(work: &Work<'_>, index: u32) -> bool {
    let span = work.span(index);
    let far = |parent| between(span, work.span(parent)) > LEAST_APART;
    span.duration() > LONGEST_TIMEOUT || waiting_parent(work, index).is_some_and(far)
}

/// Whether there is any such span. Most traces have none, and cost no more than this look.
pub(super) fn any_doubtful(work: &Work<'_>) -> bool {
    work.sorted.iter().any(|index| is_doubtful(work, *index))
}

/// Puts right the times of single spans that cannot be. Gives by how much spans were moved.
pub(super) fn put_right(work: &mut Work<'_>, usual_times: &UsualTimes) -> FxHashMap<u32, i64> {
    let is_suspect = |work: &Work<'_>, index: u32| {
        let span = work.span(index);
        let misplaced =
            || waiting_parent(work, index).is_some_and(|parent| usual_times.is_misplaced(span, work.span(parent)));
        usual_times.is_long(span) || misplaced()
    };
    let mut moved = FxHashMap::default();
    let mut at = 0;
    while at < work.sorted.len() {
        let trace = work.span(work.sorted[at]).trace;
        let end = at + work.sorted[at..].partition_point(|index| work.span(*index).trace == trace);
        if work.sorted[at..end].iter().any(|index| is_suspect(work, *index)) {
            let spans = work.sorted[at..end].to_vec();
            Mending { usual_times, work, moved: &mut moved, children: FxHashMap::default() }.trace(&spans);
        }
        at = end;
    }
    moved
}

/// A trace in which some times cannot be.
struct Mending<'a, 'w> {
    usual_times: &'a UsualTimes,
    work: &'a mut Work<'w>,
    moved: &'a mut FxHashMap<u32, i64>,
    /// The spans that each waits for.
    children: FxHashMap<u32, Vec<u32>>,
}

impl Mending<'_, '_> {
    fn trace(&mut self, spans: &[u32]) {
        let mut open = Vec::new();
        let mut below: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for &index in spans {
            let parent = self.work.parent[index as usize];
            // What hangs on another trace begins a tree of its own here.
            if parent == NOBODY || self.work.span(parent).trace != self.work.span(index).trace {
                open.push(index);
                continue;
            }
            below.entry(parent).or_default().push(index);
            if waiting_parent(self.work, index).is_some() {
                self.children.entry(parent).or_default().push(index);
            }
        }
        for &first in &open {
            self.shorten(first, None);
            self.move_first(first);
        }
        // Parents come before their children. What lies on a circle of parents is never reached.
        while let Some(index) = open.pop() {
            for child in below.remove(&index).unwrap_or_default() {
                let parent = waiting_parent(self.work, child);
                self.shorten(child, parent);
                if let Some(parent) = parent {
                    self.move_one(child, parent);
                }
                open.push(child);
            }
        }
    }

    /// From the first start to the last end of the spans that a span waits for and that lie together: with the one in their middle.
    fn extent(&self, index: u32) -> Option<Span> {
        let children = self.children.get(&index)?;
        let mut starts: Vec<(i64, u32)> = children.iter().map(|child| (self.work.span(*child).start, *child)).collect();
        starts.sort_unstable();
        let mut extent = *self.work.span(starts[starts.len() / 2].1);
        let middle = extent;
        for child in children.iter().map(|child| self.work.span(*child)) {
            if !self.usual_times.are_apart(child, &middle) && !self.usual_times.is_long(child) {
                (extent.start, extent.end) = (extent.start.min(child.start), extent.end.max(child.end));
            }
        }
        Some(extent)
    }

    /// Gives a span that is too long the start or the end that its children, else its parent, have.
    fn shorten(&mut self, index: u32, parent: Option<u32>) {
        let span = *self.work.span(index);
        if !self.usual_times.is_long(&span) {
            return;
        }
        let long = span.duration();
        let explains = |other: &Span| other.duration() >= long / 2;
        let parent = parent.map(|parent| *self.work.span(parent));
        let extent = self.extent(index);
        // One child after the other may fill the time as well.
        let children = self.children.get(&index).into_iter().flatten().map(|child| self.work.span(*child).duration());
        let filled = children.fold(0_i64, |sum, duration| sum.saturating_add(duration.max(0)));
        if filled >= long / 2 || parent.as_ref().is_some_and(explains) || extent.as_ref().is_some_and(explains) {
            return;
        }
        let usual = self.usual_times.usual(&span, 50);
        let (mut start, mut end) = (span.start, span.end);
        match (extent, parent) {
            (Some(extent), _) => {
                start = if extent.start.saturating_sub(start) > long / 4 { extent.start } else { start };
                end = if end.saturating_sub(extent.end) > long / 4 { extent.end } else { end };
            }
            (None, Some(parent)) if !(parent.start..=parent.end).contains(&start) && end <= parent.end => {
                start = end.saturating_sub(usual).max(parent.start);
            }
            _ => end = start.saturating_add(usual),
        }
        let own = &mut self.work.spans.spans[index as usize];
        (own.start, own.end, own.endless) = (start, end.max(start), true);
        let message = format!(
            "{} takes {}, far longer than others of its operation and than what it is part of",
            self.named(&span),
            seconds(long)
        );
        self.work.count("span that takes impossibly long, cut", index, |place| {
            Diagnostic::warning(codes::IMPOSSIBLE_TIME, place, message).with_note(format!(
                "one of its times is taken as not recorded, and its duration as {}",
                seconds(end - start)
            ))
        });
    }

    /// Moves a first span to where the most of its children are.
    fn move_first(&mut self, index: u32) {
        let span = *self.work.span(index);
        let Some(children) = self.children.get(&index) else { return };
        let apart = children.iter().filter(|child| self.usual_times.is_misplaced(self.work.span(**child), &span));
        let count = apart.count();
        // An only child is believed where spans below it lie where it lies.
        let [only] = children[..] else {
            if 2 * count > children.len() {
                self.shift_to_children(index);
            }
            return;
        };
        let agrees = |below: &u32| !self.usual_times.are_apart(self.work.span(*below), self.work.span(only));
        if count == 1 && self.children.get(&only).into_iter().flatten().any(agrees) {
            self.shift_to_children(index);
        }
    }

    fn shift_to_children(&mut self, index: u32) {
        if let Some(extent) = self.extent(index) {
            let offset = centred(self.work.span(index), &extent);
            self.shift(index, offset, "what it waits for");
        }
    }

    /// Moves a span that is apart from its parent, which is where it was.
    fn move_one(&mut self, index: u32, parent: u32) {
        let (span, above) = (*self.work.span(index), *self.work.span(parent));
        // A parent that was moved takes those along that it was right with.
        let along = self.moved.get(&parent).copied().unwrap_or(0);
        if along != 0
            && self.usual_times.are_apart(&span, &above)
            && !self.usual_times.are_apart(&shifted(&span, along), &above)
        {
            return self.shift(index, along, "its parent");
        }
        if !self.usual_times.is_misplaced(&span, &above) {
            return;
        }
        let extent = self.extent(index).filter(|extent| !self.usual_times.are_apart(extent, &above));
        let offset = match extent {
            Some(extent) => {
                let to_extent = centred(&span, &extent);
                // Not beyond the parent, where it can lie within.
                let moved = shifted(&span, to_extent);
                let (low, high) = (above.start.saturating_sub(moved.start), above.end.saturating_sub(moved.end));
                if low <= high { to_extent.saturating_add(0.clamp(low, high)) } else { to_extent }
            }
            None => centred(&span, &above),
        };
        self.shift(index, offset, "its parent");
    }

    fn shift(&mut self, index: u32, offset: i64, from: &str) {
        let span = *self.work.span(index);
        self.work.spans.spans[index as usize] = shifted(&span, offset);
        *self.moved.entry(index).or_default() += offset;
        let direction = if offset < 0 { "after" } else { "before" };
        let message = format!("{} lies {} {direction} {from}", self.named(&span), seconds(offset));
        self.work.count("span an impossible time from its parent, moved", index, |place| {
            Diagnostic::warning(codes::IMPOSSIBLE_TIME, place, message)
                .with_note("other spans of its operation do not: it was moved there, and keeps its duration")
        });
    }

    fn named(&self, span: &Span) -> String {
        let text = |name| self.work.names.text(name).escape_debug();
        format!("`{}` of `{}`", text(span.name), text(span.service))
    }
}

fn shifted(span: &Span, offset: i64) -> Span {
    Span { start: span.start.saturating_add(offset), end: span.end.saturating_add(offset), ..*span }
}

/// By how much a span is to be moved so that its middle is that of another.
fn centred(span: &Span, other: &Span) -> i64 {
    let middle = |span: &Span| span.start.saturating_add(span.duration() / 2);
    middle(other).saturating_sub(middle(span))
}

fn seconds(time: i64) -> String {
    format!("{:.3} s", time.unsigned_abs() as f64 / 1e9)
}
