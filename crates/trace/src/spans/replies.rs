//! Senders of messages that wait until the work on these is done, where no span shows the answer.
//!
//! A request over a queue is a PRODUCER span that ends when the broker has the message. Work on it is a CONSUMER span below it. The sender blocks until the answer is there and goes on
//! right then. Where nobody records the answer, that looks like a message to which no answer comes and a sender that works for long.
//!
//! So messages of a kind are looked at together, as calls are ([`Awaited`](crate::spans::awaited)). Where the sender waits, the time until it does something else grows by all that the
//! work on the message ends later: the slope of the one on the other is 1, and most of what the one varies by is the other. Where it does not wait, the slope is 0. Work that only
//! happens to be short ends in time, too, and size or contention that both share may put the slope anywhere: all of the conditions have to be met.

use std::collections::BinaryHeap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::VisitEvidence;
use crate::codes;
use crate::read::ReadReport;
use crate::spans::classify::TreeView;
use crate::spans::model::{Clock, SpanKind};
use crate::spans::pipeline::SLACK;
use crate::spans::plan::{CallKind, Item, NONE, SpanPlan, What};
use crate::spans::sends::{Kind, OUTLAST, kind_of};
use crate::spans::skew::{Observation, Skew};
use crate::spans::unanswered::{Answering, is_message};
use dyelog_diagnostic::names::{Name, Names};
use dyelog_diagnostic::quantity::{counted, milliseconds, number};
use dyelog_diagnostic::{Diagnostic, Place, Severity};

/// So many messages of a kind are looked at, drawn by their identifiers.
const DRAWN: usize = 4096;
/// Senders wait for the work on messages of which so many or more were drawn,
const ENOUGH: usize = 100;
/// where the slope is greater than this, by so many standard errors,
const STEEP: f64 = 0.75;
const ERRORS: f64 = 3.0;
/// and off 1 by no more than this, or by no more than those errors;
const OFF: f64 = 0.1;
/// where the work explains this part of the variance, or more; and where senders do no more between its end and what they do next than they wait. (All ours: fitted on simulated services
/// that send requests over queues to workers of one to ten threads, busy from 30 % to 65 %, and on such that work on while others work on their messages: for long, on processors that
/// both share, while both start slowly, and on messages whose size both depend on.)
const EXPLAINED: f64 = 0.5;
/// Senders of so many messages may wait where the slope is greater than this by two standard errors, and off 1 by no more than twice as much as of those that wait (ours).
const DOUBTFUL: (usize, f64) = (30, 0.5);
/// The longest of so many times do not count for the slope: senders that gave up.
const LONGEST: usize = 50;
/// Each pair of clocks has a mean of its own where there are so many messages for each.
const OF_A_PAIR: usize = 10;

/// Messages of one kind, and what works on them.
type Sent = (Kind, Answering);

/// A message and the work on it. Times in nanoseconds; each is the difference of two, for the clocks may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    /// By which messages are drawn.
    drawn: u64,
    /// From the send to the end of the work, by clocks that may differ.
    taken: i64,
    /// From the send to what the sender does next.
    left: i64,
    /// How long the work takes.
    work: i64,
    /// When it begins, by its clock.
    at: i64,
    clocks: (Clock, Clock),
}

impl Seen {
    /// How much earlier than it seems the work has to end at least, and may end at most, so that its sender waits for it.
    fn bounds(&self) -> Observation {
        let end = self.at.saturating_add(self.work);
        let sent = end.saturating_sub(self.taken);
        let (from, to) = self.clocks;
        let outer = (sent, sent.saturating_add(self.left.max(0)));
        Observation { from, to, outer, inner: (self.at, end), client: false, is_message: false }
    }
}

/// What a sender does next, as far as messages of a kind tell.
#[derive(Clone, Copy, Debug)]
struct Fit {
    slope: f64,
    error: f64,
    /// The part of the variance that the work explains.
    explained: f64,
    /// The mean time from the send to the end of the work, and from there to what comes next, nanoseconds; once the clocks were compared.
    taken: f64,
    rest: f64,
}

/// Whether senders wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Waits,
    Doubtful,
    GoesOn,
}

/// Messages of one kind.
#[derive(Debug, Default)]
struct Messages {
    count: u64,
    drawn: BinaryHeap<Seen>,
}

impl Messages {
    fn add(&mut self, seen: Seen) {
        self.count += 1;
        self.drawn.push(seen);
        if self.drawn.len() > DRAWN {
            self.drawn.pop();
        }
    }
}

/// Whether nearly all of them are so.
fn are_nearly_all(seen: &[Seen], is_so: impl Fn(&Seen) -> bool) -> bool {
    let others = seen.iter().filter(|own| !is_so(own)).count() as u64;
    others * OUTLAST <= seen.len() as u64
}

impl Fit {
    /// A regression of what is left on what is taken; `None` where nothing varies. Each pair of clocks has a mean of its own, so that it does not matter by how much they differ.
    fn of(seen: &[Seen]) -> Option<Self> {
        let mut longest: Vec<i64> = seen.iter().map(|own| own.taken).collect();
        longest.sort_unstable();
        let most = *longest.get(longest.len().checked_sub(1 + longest.len() / LONGEST)?)?;
        let seen = || seen.iter().filter(|own| own.taken <= most);
        let mut pairs: FxHashMap<(Clock, Clock), (f64, f64, f64)> = FxHashMap::default();
        for own in seen() {
            let sums = pairs.entry(own.clocks).or_default();
            *sums = (sums.0 + 1.0, sums.1 + own.taken as f64, sums.2 + own.left as f64);
        }
        let count = seen().count();
        let all =
            seen().fold((0.0, 0.0, 0.0), |sum, own| (sum.0 + 1.0, sum.1 + own.taken as f64, sum.2 + own.left as f64));
        let apart = pairs.len() * OF_A_PAIR <= count;
        let means = |own: &Seen| {
            let (count, taken, left) = if apart { pairs[&own.clocks] } else { all };
            (taken / count, left / count)
        };
        let (mut of_taken, mut of_left, mut of_both) = (0.0, 0.0, 0.0);
        for own in seen() {
            let (taken, left) = means(own);
            let (taken, left) = (own.taken as f64 - taken, own.left as f64 - left);
            (of_taken, of_left, of_both) = (of_taken + taken * taken, of_left + left * left, of_both + taken * left);
        }
        let free = count as f64 - 1.0 - if apart { pairs.len() as f64 } else { 1.0 };
        if of_taken <= 0.0 || of_left <= 0.0 || free < 1.0 {
            return None;
        }
        let slope = of_both / of_taken;
        let unexplained = (of_left - slope * of_both).max(0.0);
        Some(Self {
            slope,
            error: (unexplained / free / of_taken).sqrt(),
            explained: 1.0 - unexplained / of_left,
            taken: f64::NAN,
            rest: f64::NAN,
        })
    }

    fn waits(&self) -> bool {
        let errors = ERRORS * self.error;
        self.slope - errors > STEEP && (self.slope - 1.0).abs() <= errors.max(OFF) && self.explained >= EXPLAINED
    }

    fn may_wait(&self) -> bool {
        self.slope - 2.0 * self.error > DOUBTFUL.1 && (self.slope - 1.0).abs() <= (ERRORS * self.error).max(2.0 * OFF)
    }
}

/// What was found of messages of one kind.
#[derive(Debug)]
struct Found {
    count: u64,
    seen: Vec<Seen>,
    fit: Fit,
    verdict: Verdict,
}

/// What the messages of all trees show.
#[derive(Debug, Default)]
pub struct Replies {
    kinds: FxHashMap<Sent, Messages>,
    found: FxHashMap<Sent, Found>,
}

/// A message of a tree.
#[derive(Clone, Copy, Debug)]
struct Sending {
    item: u32,
    /// When its sender does something else,
    next: i64,
    /// and when something else than to send the next message.
    behind: i64,
    /// Whether no other message that the sender may wait for at the same time was worked on for longer.
    is_last: bool,
}

/// What a visit begins: the visit, when, whether it is a message, and of messages their span and item.
type Begin = (u32, i64, bool, u32, u32);

/// The messages that visits send to one consumer each, and what these do next. Messages that are sent before work on one can have ended are sent to be worked on side by side.
fn sendings(plan: &SpanPlan, tree: &TreeView) -> Vec<Sending> {
    let mut sendings = Vec::new();
    if !plan.items.iter().any(|item| may_be_answered(plan, tree, item)) {
        return sendings;
    }
    let counts = |item: &Item| is_message(item) || item.client && item.what != What::Poll && item.end > item.start;
    let begin = |at: u32| {
        let item = &plan.items[at as usize];
        (plan.scopes[item.scope as usize].visit, item.start, is_message(item), item.span, at)
    };
    let mut begins: Vec<Begin> =
        (0..plan.items.len() as u32).filter(|at| counts(&plan.items[*at as usize])).map(begin).collect();
    begins.sort_unstable();
    // Services that work on a message and make something happen at its sender's: whether that is an answer is told by what comes back.
    let back: FxHashSet<(u32, Name)> = plan
        .items
        .iter()
        .filter(|item| item.callee != NONE)
        .map(|item| (plan.scopes[item.scope as usize].visit, plan.visits[item.callee as usize].service))
        .collect();
    let mut first = 0;
    while first < begins.len() {
        let (visit, _, is_sent, ..) = begins[first];
        let together = begins[first..].iter().take_while(|next| is_sent && (next.0, next.2) == (visit, true)).count();
        let run = &begins[first..first + together];
        let behind = begins.get(first + together).filter(|next| next.0 == visit).map(|next| next.1);
        let own = &plan.visits[visit as usize];
        messages_of(plan, run, behind.unwrap_or(own.end), |sending| {
            let item = &plan.items[sending.item as usize];
            if may_be_answered(plan, tree, item) && !back.contains(&(item.callee, own.service)) {
                sendings.push(sending);
            }
        });
        first += together.max(1);
    }
    sendings
}

/// Goes through messages that one visit sends, one after the other, before it does something else.
fn messages_of(plan: &SpanPlan, run: &[Begin], behind: i64, mut take: impl FnMut(Sending)) {
    let worked = |begin: &Begin| {
        let callee = &plan.visits[plan.items[begin.4 as usize].callee as usize];
        (callee.end.saturating_sub(callee.start), if callee.unrecorded { i64::MIN } else { callee.end })
    };
    let mut ended: Vec<i64> = Vec::with_capacity(run.len());
    for begin in run {
        ended.push(worked(begin).1.max(ended.last().copied().unwrap_or(i64::MIN)));
    }
    for (at, begin) in run.iter().enumerate() {
        let (work, end) = worked(begin);
        // What several work on are news.
        let is_shared =
            |other: Option<usize>| other.and_then(|other| run.get(other)).is_some_and(|other| other.3 == begin.3);
        if is_shared(at.checked_sub(1)) || is_shared(Some(at + 1)) {
            continue;
        }
        let until = begin.1.saturating_add(work.max(1));
        let beside = run.partition_point(|other| other.1 < until).max(at + 1);
        let next = run.get(beside).map_or(behind, |other| other.1);
        take(Sending { item: begin.4, next, behind, is_last: ended[beside - 1] <= end });
    }
}

/// Whether an answer may come to a message that no span shows: a consumer of another service works on that message alone.
fn may_be_answered(plan: &SpanPlan, tree: &TreeView, item: &Item) -> bool {
    if !is_message(item) || plan.visit_of(item).unrecorded {
        return false;
    }
    let callee = &plan.visits[item.callee as usize];
    let work = &tree.spans[callee.span as usize];
    // What a service sends to itself queues behind it, in a process of one thread.
    let is_apart = callee.service != plan.visit_of(item).service;
    let is_made_up = callee.unrecorded || callee.evidence != VisitEvidence::Recorded;
    is_apart && (is_made_up || work.kind == SpanKind::Consumer && work.batch <= 1 && (work.batch == 1 || !work.follows))
}

fn sent_of(plan: &SpanPlan, item: &Item) -> Sent {
    let callee = &plan.visits[item.callee as usize];
    (kind_of(plan.visit_of(item), item), (callee.service, callee.operation))
}

/// Spreads identifiers that count upwards.
fn spread(trace: u128, span: u64) -> u64 {
    let mut bits = (trace as u64) ^ ((trace >> 64) as u64).rotate_left(32) ^ span.rotate_left(16);
    for factor in [0xbf58_476d_1ce4_e5b9_u64, 0x94d0_49bb_1331_11eb] {
        bits = (bits ^ (bits >> 30)).wrapping_mul(factor);
    }
    bits ^ (bits >> 31)
}

impl Replies {
    /// Takes in the messages of a tree; its times are as recorded.
    pub fn observe(&mut self, plan: &SpanPlan, tree: &TreeView) {
        for sending in sendings(plan, tree) {
            let item = &plan.items[sending.item as usize];
            let work = &plan.visits[item.callee as usize];
            if work.unrecorded || !sending.is_last {
                continue;
            }
            let span = &tree.spans[item.span as usize];
            self.kinds.entry(sent_of(plan, item)).or_default().add(Seen {
                drawn: spread(span.trace.0, span.id.0),
                taken: work.end.saturating_sub(item.start),
                left: sending.next.saturating_sub(item.start),
                work: work.end.saturating_sub(work.start),
                at: work.start,
                clocks: (plan.visit_of(item).clock, work.clock),
            });
        }
    }

    /// All messages are known. The clocks of those whose senders seem to wait can differ by no more than these show.
    pub fn settle(&mut self, skew: Option<&mut Skew>) {
        for (sent, messages) in self.kinds.drain() {
            let seen = messages.drawn.into_sorted_vec();
            // No clock but one tells how long work takes.
            let is_enough = seen.len() >= DOUBTFUL.0 && are_nearly_all(&seen, |own| own.work <= own.left);
            let Some(fit) = Fit::of(&seen).filter(|fit| is_enough && fit.may_wait()) else { continue };
            let verdict = if seen.len() >= ENOUGH && fit.waits() { Verdict::Waits } else { Verdict::Doubtful };
            self.found.insert(sent, Found { count: messages.count, seen, fit, verdict });
        }
        let Some(skew) = skew else { return };
        // Where work seems to end too late, its clock may be ahead.
        let is_late = |own: &Seen| own.taken > own.left;
        for found in self.found.values().filter(|found| !are_nearly_all(&found.seen, |own| !is_late(own))) {
            found.seen.iter().for_each(|own| skew.observe(own.bounds()));
        }
    }

    /// The clocks are known: senders that wait are there when the work ends.
    pub fn compare(&mut self, skew: &Skew) {
        for found in self.found.values_mut() {
            let mut sums = [0.0, 0.0];
            for own in &mut found.seen {
                let [from, to] = [own.clocks.0, own.clocks.1].map(|clock| skew.clock(clock));
                own.taken = own.taken.saturating_add(skew.offset(from, to, own.at));
                sums = [sums[0] + own.taken as f64, sums[1] + own.left as f64];
                let slack = if from == to { 0 } else { SLACK };
                own.left = own.left.saturating_add(slack);
            }
            let [taken, left] = sums.map(|sum| sum / found.seen.len().max(1) as f64);
            (found.fit.taken, found.fit.rest) = (taken, left - taken);
            let ends_in_time = are_nearly_all(&found.seen, |own| own.taken <= own.left);
            found.verdict = match found.verdict {
                Verdict::Waits if ends_in_time && found.fit.rest <= taken => Verdict::Waits,
                Verdict::Waits => Verdict::Doubtful,
                // By clocks that are right, nobody waits for that.
                _ if ends_in_time => Verdict::Doubtful,
                _ => Verdict::GoesOn,
            };
            found.seen = Vec::new();
        }
    }

    /// Marks the messages of a tree whose senders wait.
    pub fn tell(&self, plan: &mut SpanPlan, tree: &TreeView) {
        if self.found.values().all(|found| found.verdict != Verdict::Waits) {
            return;
        }
        for Sending { item: at, next, behind, .. } in sendings(plan, tree) {
            let item = &plan.items[at as usize];
            let found = self.found.get(&sent_of(plan, item)).filter(|found| found.verdict == Verdict::Waits);
            let (Some(found), true) = (found, next > item.start) else { continue };
            let (start, callee) = (item.start, item.callee as usize);
            let work = &mut plan.visits[callee];
            if work.evidence == VisitEvidence::Recorded && !work.unrecorded {
                let item = &mut plan.items[at as usize];
                (item.what, item.end, item.waits) = (What::Call(CallKind::Answered), behind, true);
                continue;
            }
            // Work that was lost ended as long before that as work does.
            let least = work.start.max(start).saturating_add(1).min(next);
            let end = next.saturating_sub(found.fit.rest.max(0.0) as i64).max(least);
            let way = end.saturating_sub(start).saturating_sub(work.end.saturating_sub(work.start));
            work.on_the_way = way.max(0);
            let item = &mut plan.items[at as usize];
            (item.what, item.end, item.waits) = (What::Call(CallKind::Open), end, true);
        }
    }

    /// Says which senders wait, and which may.
    pub fn report(&self, names: &Names, report: &mut ReadReport) {
        let mut found: Vec<(&Sent, &Found)> = self.found.iter().collect();
        let texts = |((service, operation, message), (other, work)): &Sent| {
            [*service, *operation, *message, *other, *work].map(|name| names.text(name).escape_debug().to_string())
        };
        found.sort_by_cached_key(|(sent, _)| texts(sent));
        for (sent, Found { count, fit, verdict, .. }) in found {
            let [service, operation, message, other, work] = texts(sent);
            let all = counted(*count, "message");
            let slope = format!(
                "when `{operation}` goes on grows with when `{work}` ends: the slope is {}, its standard error {}",
                number(fit.slope),
                number(fit.error)
            );
            match verdict {
                Verdict::GoesOn => {}
                Verdict::Waits => report.count("kind of message whose senders wait for an answer that no span shows", || {
                    let title = format!("`{service}` waits until `{other}` has worked on each of {all} `{message}`, though no span shows an answer");
                    Diagnostic::new(Severity::Note, codes::ANSWER, Place::Nowhere, title)
                        .with_note(slope)
                        .with_note(format!("message and work are one synchronous call; it takes {} on the mean", milliseconds(fit.taken * 1e-9)))
                }),
                Verdict::Doubtful => report.count("kind of message whose senders may wait for an answer that no span shows", || {
                    let title = format!("`{service}` may wait until `{other}` has worked on {all} `{message}`, and counts as working meanwhile");
                    Diagnostic::warning(codes::ANSWER, Place::Nowhere, title)
                        .with_note(slope)
                        .with_note(format!("if it waits, its demand is up to {} too high per message", milliseconds(fit.taken * 1e-9)))
                        .with_hint("spans of the answer, a PRODUCER where it is sent and a CONSUMER where it comes, show who waits; else set the demand under `[demand.entry]`")
                }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Messages of so many pairs of clocks, whose work takes up to 20 ms, and what is left by that and a number that is drawn for each.
    fn seen(count: i64, pairs: i64, left_of: impl Fn(i64, i64) -> i64) -> Vec<Seen> {
        let mut names = Names::default();
        let clocks: Vec<Clock> = (0..=pairs).map(|number| Clock::of(names.intern(&format!("host {number}")))).collect();
        let of = |number: i64| {
            let (work, other) = (MS + number * 7919 % 997 * 20_000, number * 6007 % 991 * 4000);
            let pair = number % pairs;
            let taken = work + pair * 50 * MS;
            let clocks = (clocks[0], clocks[pair as usize + 1]);
            Seen { drawn: number as u64, taken, left: left_of(work, other), work, at: number * 100 * MS, clocks }
        };
        (0..count).map(of).collect()
    }

    #[test]
    fn what_comes_next_grows_with_work_that_is_waited_for() {
        let waits = |seen: &[Seen]| Fit::of(seen).is_some_and(|fit| fit.waits());
        for pairs in [1, 4] {
            assert!(waits(&seen(1000, pairs, |work, other| work + other)), "{pairs}");
            assert!(waits(&seen(200, pairs, |work, other| work + other)), "{pairs}");
            assert!(!waits(&seen(1000, pairs, |_, other| 30 * MS + other)), "{pairs}");
            assert!(!waits(&seen(1000, pairs, |work, other| 2 * work + other)), "{pairs}");
            assert!(!waits(&seen(1000, pairs, |work, other| work / 2 + 20 * MS + other)), "{pairs}");
            // The work explains too little of it.
            assert!(!waits(&seen(1000, pairs, |work, other| work + 6 * other)), "{pairs}");
        }
        // Nothing varies, or there is nothing.
        assert!(!waits(&seen(1000, 1, |_, _| 30 * MS)));
        assert!(!waits(&seen(0, 1, |_, _| 0)));
        // One of fifty gives up.
        let gives_up = |work: i64, other: i64| if other % 51 == 0 { MS } else { work + other };
        assert!(waits(&seen(1000, 1, gives_up)));
    }

    #[test]
    fn the_same_messages_are_drawn_in_any_order() {
        let all = seen(3 * DRAWN as i64, 1, |work, _| work);
        let drawn = |all: &mut dyn Iterator<Item = Seen>| {
            let mut messages = Messages::default();
            all.for_each(|own| messages.add(own));
            (messages.count, messages.drawn.into_sorted_vec())
        };
        let forwards = drawn(&mut all.iter().copied());
        assert_eq!(forwards, drawn(&mut all.iter().rev().copied()));
        assert_eq!((forwards.0, forwards.1.len()), (3 * DRAWN as u64, DRAWN));
    }

    #[test]
    fn times_at_the_ends_of_numbers_are_no_trouble() {
        let mut seen = seen(200, 1, |work, other| work + other);
        for (number, own) in seen.iter_mut().enumerate() {
            (own.taken, own.left) = if number % 2 == 0 { (i64::MAX, i64::MIN) } else { (i64::MIN, i64::MAX) };
            let Observation { outer, inner, .. } = own.bounds();
            assert!(outer.0 <= outer.1 && inner.0 <= inner.1);
        }
        assert!(Fit::of(&seen).is_none_or(|fit| !fit.waits()));
    }
}
