//! The decision table, second part: which caller waits, from corrected times.
//!
//! | the call | is |
//! |---|---|
//! | PRODUCER, CONSUMER, FOLLOWS_FROM | asynchronous |
//! | PRODUCER whose sender goes on when the CONSUMER ends, as all of its kind tell together (`replies`) | as a call that ends then |
//! | the server ends before the client does | synchronous |
//! | the server ends after the client by more than 5% of its time, and the client covers some of it | synchronous with a second phase |
//! | a local span of the server begins when the client has ended, by the same clock | synchronous with a second phase |
//! | the server begins when or after the client ends; within the same millisecond of clocks that count these, it may have begun before | no caller waits: asynchronous, or a hop of a forwarding |
//! | no client half, and the visit ends before the calling visit | synchronous |
//! | no client half, and the visit ends after the calling visit | no caller waits: asynchronous, or a hop of a forwarding |
//!
//! A request is *forwarded* where a client waits for longer than its server works, the server made something happen that
//! nobody waits for and that ends within the client's time, and the server's own reply does not explain the waiting: the way
//! back would have taken more than twice as long as the way there. Where the spans say so themselves, by a SERVER below a
//! PRODUCER, times need not.

use crate::VisitEvidence;
use crate::spans::plan::{CallKind, Item, NONE, SpanPlan, Visit, What};
use crate::spans::skew::Skew;

/// How times are compared.
///
/// Clocks that count milliseconds or more cut times off: what ends before something else begins does so by them, too. So such times are
/// compared as they are. Those that count less are rounded on the way, begins and durations each by themselves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tolerance {
    /// Differences up to this, in nanoseconds, mean nothing between times of one clock.
    pub resolution: i64,
    /// The same between times of two clocks.
    pub slack: i64,
    /// Up to this long after another time, a time of the same clock may be as early as that: a clock that counts milliseconds or more does
    /// not tell which of two came first. 0 for those that count less.
    pub grain: i64,
}

/// A server may overrun its client by one part in so many of its own time without this being a second phase.
const CLOSING: i64 = 20;

/// Corrects the times of a plan and decides how each call is made.
pub fn decide_calls(plan: &mut SpanPlan, skew: &Skew, tolerance: Tolerance) {
    shift(plan, skew, tolerance);
    let own_ends = ends_if_late(plan);
    // Items come after what they are within, so backwards each finds the end of what is within it.
    let mut deferred: Vec<Vec<u32>> = vec![Vec::new(); plan.visits.len()];
    for item in (0..plan.items.len() as u32).rev() {
        decide_call(plan, item, tolerance, &mut deferred);
    }
    fill_unrecorded(plan, 0);
    leave_late(plan, &own_ends, tolerance);
    send_while_working(plan);
    plan.lay_out();
}

/// When the first visit has ended for sure, nanoseconds: it does not wait for what ends later.
pub fn late(plan: &SpanPlan, tolerance: Tolerance) -> i64 {
    let first = &plan.visits[0];
    let closing = first.extent.saturating_sub(first.start) / CLOSING;
    first.end.saturating_add(tolerance.slack.max(closing))
}

/// When items end themselves, without what is within them, where the first visit ends before one of its own; else nothing.
fn ends_if_late(plan: &SpanPlan) -> Vec<i64> {
    let end = plan.visits[0].end;
    let is_late = |item: &Item| item.end > end && plan.scopes[item.scope as usize].visit == 0;
    if plan.items.iter().any(is_late) { plan.items.iter().map(|item| item.end).collect() } else { Vec::new() }
}

/// The first visit does not wait for what ends late. What is around that ends as it was recorded; where it is late itself, what is within it is detached.
fn leave_late(plan: &mut SpanPlan, own_ends: &[i64], tolerance: Tolerance) {
    if own_ends.is_empty() {
        return;
    }
    let late = late(plan, tolerance);
    for (item, own_end) in plan.items.iter().zip(own_ends) {
        let scope = &plan.scopes[item.scope as usize];
        if scope.visit == 0 && item.inner != NONE {
            let is_late = item.what == What::Activity && *own_end > late;
            plan.scopes[item.inner as usize].detached = scope.detached || is_late;
        }
    }
    // What ends in time, by scope.
    let mut ends = vec![i64::MIN; plan.scopes.len()];
    for (item, own_end) in plan.items.iter_mut().zip(own_ends).rev() {
        let scope = &plan.scopes[item.scope as usize];
        if scope.visit != 0 || scope.detached {
            continue;
        }
        if item.inner != NONE && *own_end <= late {
            item.end = ends[item.inner as usize].max(*own_end);
        }
        if item.end <= late {
            let last = &mut ends[item.scope as usize];
            *last = item.end.max(*last);
        }
    }
}

/// A message whose sending was not recorded is known by when work on it began. Its sender waits for somebody at that time as often as not: it sent the message before that, and did
/// no work in between.
fn send_while_working(plan: &mut SpanPlan) {
    let is_sent = |item: &Item| !item.client && item.what == What::Call(CallKind::Asynchronous);
    if !plan.items.iter().any(is_sent) {
        return;
    }
    let is_waited_for =
        |item: &&Item| item.client && item.end > item.start && item.what == What::Call(CallKind::Synchronous);
    let waits = plan.items.iter().filter(is_waited_for).map(|item| (item.scope, item.start, item.end));
    let mut waits: Vec<(u32, i64, i64)> = waits.collect();
    waits.sort_unstable();
    // Those of a scope that touch each other are one.
    waits.dedup_by(|next, last| {
        let is_one = next.0 == last.0 && next.1 <= last.2;
        last.2 = if is_one { last.2.max(next.2) } else { last.2 };
        is_one
    });
    for item in plan.items.iter_mut().filter(|item| is_sent(item)) {
        let before = waits.partition_point(|wait| (wait.0, wait.1) < (item.scope, item.start));
        let around =
            before.checked_sub(1).map(|at| waits[at]).filter(|wait| wait.0 == item.scope && item.start < wait.2);
        if let Some((_, start, _)) = around {
            (item.start, item.end) = (start, start);
        }
    }
}

/// Corrects times by what the clocks are off, then each visit that still contradicts its call by what that one is off. A visit moves as a whole, with
/// all that it does: durations need no common clock.
fn shift(plan: &mut SpanPlan, skew: &Skew, tolerance: Tolerance) {
    for at in 0..plan.visits.len() {
        let (caller, to) = (plan.visits[at].caller, &plan.visits[at]);
        let offset = if caller == NONE {
            skew.base(to.clock, to.start)
        } else {
            let call = &plan.items[caller as usize];
            let from = plan.visit_of(call);
            let mut offset = from.shift;
            if from.clock != to.clock {
                let recorded = |time: i64| time.saturating_sub(from.shift);
                let outer =
                    if call.client { (call.start, call.end) } else { (recorded(from.start), recorded(from.end)) };
                let clocks = (from.clock, to.clock);
                offset = offset.saturating_add(skew.offset_of_call(clocks, outer, (to.start, to.end)));
                offset = offset.saturating_add(remaining(call, from, to, offset, tolerance));
            }
            offset
        };
        let visit = &mut plan.visits[at];
        visit.shift = offset;
        visit.start = visit.start.saturating_add(offset);
        visit.end = visit.end.saturating_add(offset);
        visit.extent = visit.end;
    }
    for at in 0..plan.items.len() {
        let of = if plan.items[at].client {
            plan.visit_of(&plan.items[at]).shift
        } else {
            plan.visits[plan.items[at].callee as usize].shift
        };
        let item = &mut plan.items[at];
        (item.start, item.end) = (item.start.saturating_add(of), item.end.saturating_add(of));
        if item.what == What::Call(CallKind::Answered) {
            // Its sender goes on when the work ends, unless it gave up before.
            let last = plan.visits[item.callee as usize].end;
            (item.what, item.end) = (What::Call(CallKind::Open), last.clamp(item.start, item.end.max(item.start)));
        }
    }
}

/// What is to be added to the times of a visit that were corrected by `offset`, so that it does not begin before its call. One that fits
/// into the time of a caller that waits goes to the middle of it.
fn remaining(call: &Item, from: &Visit, to: &Visit, offset: i64, tolerance: Tolerance) -> i64 {
    if from.unrecorded || to.unrecorded {
        return 0;
    }
    // The caller's own times are corrected already, its items' are not.
    let (first, last) = if call.client {
        (call.start.saturating_add(from.shift), call.end.saturating_add(from.shift))
    } else {
        (from.start, from.end)
    };
    let (start, end) = (to.start.saturating_add(offset), to.end.saturating_add(offset));
    let (low, high) = (first.saturating_sub(start), last.saturating_sub(end));
    let is_timed = !matches!(call.what, What::Call(CallKind::Deferred | CallKind::Answered));
    let fits = call.client && is_timed && low <= high;
    // What was put in place of lost work came at the time of another call.
    let is_copied = to.evidence == VisitEvidence::Copied;
    let overruns = high < 0 && (is_copied || high.saturating_add(tolerance.slack) >= 0);
    if fits && (low > 0 || overruns) { low + (high - low) / 2 } else { low.max(0) }
}

/// The times of a visit whose span was not recorded are those of what it does.
fn fill_unrecorded(plan: &mut SpanPlan, visit: usize) {
    let scope = &plan.scopes[plan.visits[visit].scope as usize];
    let (start, end) = (scope.start, scope.end);
    let visit = &mut plan.visits[visit];
    if visit.unrecorded && start <= end {
        (visit.start, visit.end) = (start, end);
    }
    visit.extent = if start <= end { visit.end.max(end) } else { visit.end };
}

/// A server that was not recorded works for as long as its client waits, less the network latency of such calls, if all that is known of it
/// lies within that time.
fn fill_with_waiting(plan: &mut SpanPlan, visit: usize, start: i64, end: i64) {
    let scope = &plan.scopes[plan.visits[visit].scope as usize];
    let (first, last) = (scope.start, scope.end);
    let visit = &mut plan.visits[visit];
    if visit.unrecorded && start <= visit.start && visit.extent <= end {
        let way = visit.on_the_way.clamp(0, end.saturating_sub(start));
        let (mut from, mut to) = (start.saturating_add(way / 2), end.saturating_sub(way - way / 2));
        if first <= last {
            (from, to) = (from.min(first), to.max(last));
        }
        (visit.start, visit.end, visit.extent) = (from, to, to);
    }
}

fn decide_call(plan: &mut SpanPlan, index: u32, tolerance: Tolerance, deferred: &mut [Vec<u32>]) {
    let item = &plan.items[index as usize];
    let (mut start, mut end) = (item.start, item.end);
    match item.what {
        What::Activity | What::Poll => {
            if item.inner != NONE {
                let inner = &plan.scopes[item.inner as usize];
                if inner.start <= inner.end {
                    (start, end) = (start.min(inner.start), end.max(inner.end));
                }
            }
        }
        What::Call(call_kind) => {
            let callee = item.callee as usize;
            let client = item.client;
            fill_unrecorded(plan, callee);
            if client && call_kind != CallKind::Deferred {
                fill_with_waiting(plan, callee, start, end);
            }
            let call_kind = decide(plan, index, call_kind, tolerance, deferred);
            if !client {
                // Without a calling half, the call takes as long as the caller is seen to wait, or as calls like it are on their way, within the caller's time.
                let (visit, caller) = (&plan.visits[callee], plan.visit_of(&plan.items[index as usize]));
                let half = visit.on_the_way / 2;
                start = visit.start.saturating_sub(half).max(caller.start.min(visit.start));
                let back = visit.end.saturating_add(half).min(caller.end.max(visit.end));
                end = if call_kind == CallKind::Asynchronous { start } else { back };
            }
            plan.items[index as usize].what = What::Call(call_kind);
        }
    }
    let scope = plan.items[index as usize].scope as usize;
    (plan.items[index as usize].start, plan.items[index as usize].end) = (start, end);
    let scope = &mut plan.scopes[scope];
    (scope.start, scope.end) = (scope.start.min(start), scope.end.max(end));
    if end > start {
        scope.latest = scope.latest.max(start);
    }
}

fn decide(
    plan: &mut SpanPlan,
    index: u32,
    call_kind: CallKind,
    tolerance: Tolerance,
    deferred: &mut [Vec<u32>],
) -> CallKind {
    let item = &plan.items[index as usize];
    let from = plan.scopes[item.scope as usize].visit;
    let (caller, callee) = (&plan.visits[from as usize], &plan.visits[item.callee as usize]);
    let slack = if caller.clock == callee.clock { tolerance.resolution } else { tolerance.slack };
    let waits = match call_kind {
        CallKind::Deferred => false,
        _ if item.client => {
            callee.end <= item.end.saturating_add(slack)
                || callee.start.saturating_add(slack) < item.end
                || callee.start < item.end.saturating_add(tolerance.grain)
        }
        // A caller that was not recorded is seen to wait for as long as anything goes on.
        _ => caller.unrecorded || callee.end <= caller.end.saturating_add(slack),
    };
    if !waits {
        deferred[from as usize].push(index);
        return CallKind::Asynchronous;
    }
    if item.client {
        if forwards(plan, index, slack, deferred) {
            return CallKind::Forwarded;
        }
        let item = &plan.items[index as usize];
        let callee = &plan.visits[item.callee as usize];
        // A server span is often closed only when the reply is on its way; that is no phase of its own.
        let closing = callee.extent.saturating_sub(callee.start) / CLOSING;
        if callee.extent > item.end.saturating_add(slack.max(closing)) {
            return CallKind::SecondPhase;
        }
        // Work that begins when the client has its answer is one, however short, if one clock says so.
        let one_clock = plan.visit_of(item).clock == callee.clock;
        let after = item.end.saturating_add(tolerance.grain);
        if one_clock && plan.scopes[callee.scope as usize].latest >= after && callee.extent > item.end {
            return CallKind::SecondPhase;
        }
    }
    CallKind::Synchronous
}

/// Finds the chain of visits by which the request of a call is forwarded, if it is, and marks it.
fn forwards(plan: &mut SpanPlan, index: u32, slack: i64, deferred: &mut [Vec<u32>]) -> bool {
    let call = plan.items[index as usize].clone();
    let limit = call.end.saturating_add(slack);
    let mut at = call.callee;
    let there = plan.visits[at as usize].start.saturating_sub(call.start).max(0);
    let mut found = false;
    loop {
        let visit = &plan.visits[at as usize];
        let told = |hop: &&u32| {
            let next = &plan.visits[plan.items[**hop as usize].callee as usize];
            next.answers && !next.unrecorded && next.start <= limit
        };
        if let Some(&hop) = deferred[at as usize].iter().filter(told).max_by_key(|hop| plan.items[**hop as usize].start)
        {
            at = pass_on(plan, at, hop, deferred);
            found = true;
            continue;
        }
        let back = call.end.saturating_sub(visit.extent);
        if visit.unrecorded || back <= there.saturating_mul(2).saturating_add(slack) {
            return found;
        }
        let ends = |hop: &u32| plan.visits[plan.items[*hop as usize].callee as usize].end;
        let own_end = visit.extent;
        let later = |hop: &&u32| ends(hop) <= limit && ends(hop) > own_end.saturating_add(slack);
        // Lists are short as a rule; each is looked at once, since a visit has one caller.
        let Some(&hop) = deferred[at as usize].iter().filter(later).max_by_key(|hop| (ends(hop), **hop)) else {
            return found;
        };
        let next = plan.items[hop as usize].callee;
        if plan.visits[next as usize].unrecorded {
            return found;
        }
        found = true;
        at = pass_on(plan, at, hop, deferred);
    }
}

/// Marks a call of a visit as the one by which it passes its request on; gives the visit that has it then.
fn pass_on(plan: &mut SpanPlan, at: u32, hop: u32, deferred: &mut [Vec<u32>]) -> u32 {
    plan.items[hop as usize].what = What::Call(CallKind::Hop);
    plan.items[hop as usize].scope = plan.visits[at as usize].scope;
    plan.visits[at as usize].forward = hop;
    deferred[at as usize].clear();
    plan.items[hop as usize].callee
}
