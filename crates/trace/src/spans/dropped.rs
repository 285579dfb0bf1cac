//! Client spans that were lost of calls whose server records none. No other span names them, and their time looks like work of their caller.
//!
//! Where spans were lost, nearly all visits of an operation make the same call, and a visit without it works for longer than the others by about as
//! long as the call takes, the call is put back into the longest time in which the visit does nothing else. A visit that leaves the call out takes no longer
//! than the others do for themselves, and stays as it is.

use rustc_hash::FxHashMap;

use crate::VisitEvidence;
use crate::spans::classify::TreeView;
use crate::spans::plan::{CallKind, Item, NONE, SpanPlan, Visit, What};
use dyelog_diagnostic::names::{Name, Names};

/// The fewest visits that tell what all of them do.
const ENOUGH: u64 = 20;
/// A call is made by all visits where at least so many make it of those whose spans of such calls were not lost: (80, 100).
const NEARLY_ALL: (u64, u64) = (80, 100);
/// Calls to a server that records no spans: no more than one of so many is answered by one, and made twice by a visit.
const SELDOM: u64 = 20;
/// No more than so many times the part of spans that was lost leave the call out, and some by chance: else visits leave it out by themselves.
const LOST: f64 = 4.0;
/// See [`LOST`].
const CHANCE: f64 = 10.0;
/// Where this part of a service's spans was lost, it is clear whether visits leave a call out: those that lack it are no more than lost spans explain, to within so many
/// standard deviations.
const MANY: f64 = 0.1;
/// See [`MANY`].
const CERTAIN: f64 = 3.0;
/// A call takes more than so many standard deviations of what visits work for themselves, else its time is not seen.
const CLEAR: f64 = 2.0;

/// A call of a visit, by the peer and the name of the client span.
type Call = (Name, Name);

/// An operation of a service.
type Operation = (Name, Name);

/// What visits of an operation do.
#[derive(Debug, Default)]
struct Visits {
    count: u64,
    calls: FxHashMap<Call, Made>,
    /// The calls that all of them make, the longest first.
    usual: Vec<Usual>,
}

/// A call that visits make.
#[derive(Debug, Default)]
struct Made {
    /// Visits that make it once, and those that make it more often.
    once: u64,
    often: u64,
    answered: u64,
    /// How long it takes, nanoseconds.
    taken: i128,
    /// How long these visits work for themselves, and the squares of that.
    own: i128,
    squares: i128,
    callee: Operation,
}

/// A call that nearly all visits make.
#[derive(Clone, Copy, Debug)]
struct Usual {
    call: Call,
    callee: Operation,
    /// How long it takes, and how long its visits work for themselves, nanoseconds.
    taken: f64,
    own: f64,
    /// Whether no more visits lack it than lost spans explain, where many were lost: then all that lack it have made it.
    by_all: bool,
}

/// A call of a visit: when, and which one it is, where its client span is there.
struct Seen {
    start: i64,
    end: i64,
    call: Option<Call>,
    callee: u32,
}

/// What the visits of all trees do.
#[derive(Debug, Default)]
pub struct Dropped {
    operations: FxHashMap<Operation, Visits>,
    /// By service, which part of its spans was lost, as lost parents tell.
    lost: FxHashMap<Name, f64>,
}

impl Dropped {
    /// Takes in the visits of a tree.
    pub fn observe(&mut self, plan: &SpanPlan, tree: &TreeView) {
        let mut seen = seen(plan, tree);
        for (number, visit) in plan.visits.iter().enumerate().filter(|(_, visit)| !visit.unrecorded) {
            let calls = &mut seen[number];
            let own = own_time((visit.start, visit.end), calls);
            let known = self.operations.entry((visit.service, visit.operation)).or_default();
            known.count += 1;
            calls.sort_by_key(|seen| seen.call);
            for same in calls.chunk_by(|one, next| one.call == next.call) {
                let Some(call) = same[0].call else { continue };
                let callee = &plan.visits[same[0].callee as usize];
                let made = known.calls.entry(call).or_default();
                if !callee.unrecorded {
                    made.answered += 1;
                } else if same.len() > 1 {
                    made.often += 1;
                } else {
                    made.once += 1;
                    made.taken += i128::from(same[0].end.saturating_sub(same[0].start));
                    made.own += i128::from(own);
                    made.squares += i128::from(own) * i128::from(own);
                    made.callee = (callee.service, callee.operation);
                }
            }
        }
    }

    /// All visits are known, and by service which part of its spans was lost: as lost parents tell, and calls that were not answered.
    pub fn settle(&mut self, lost: FxHashMap<Name, f64>, unanswered: &FxHashMap<Name, f64>, names: &Names) {
        self.lost = lost;
        for ((service, _), known) in &mut self.operations {
            let calls = std::mem::take(&mut known.calls);
            let own = [&self.lost, unanswered].map(|lost| lost.get(service).copied().unwrap_or(0.0));
            let own = own[0].max(own[1]);
            known.usual = calls.into_iter().filter_map(|(call, made)| made.usual(call, known.count, own)).collect();
            let text = |usual: &Usual| (names.text(usual.call.0), names.text(usual.call.1));
            known.usual.sort_by(|a, b| b.taken.total_cmp(&a.taken).then_with(|| text(a).cmp(&text(b))));
        }
        self.operations.retain(|_, known| !known.usual.is_empty());
    }

    /// Puts back the calls that visits of a tree have lost. Gives the span of each such visit, as a position in the tree.
    pub fn put_back(&self, plan: &mut SpanPlan, tree: &TreeView) -> Vec<u32> {
        let mut found = Vec::new();
        // Where nothing was lost but what a service did not record, visits are whole or gone.
        let may_lack = |visit: &Visit| {
            (visit.unrecorded || self.lost.get(&visit.service).is_some_and(|lost| *lost > 0.0))
                && self.operations.contains_key(&(visit.service, visit.operation))
        };
        if self.operations.is_empty() || !plan.visits.iter().any(may_lack) {
            return found;
        }
        let mut seen = seen(plan, tree);
        for (number, calls) in seen.iter_mut().enumerate() {
            let visit = &plan.visits[number];
            let Some(known) = self.operations.get(&(visit.service, visit.operation)).filter(|_| may_lack(visit)) else {
                continue;
            };
            let time = time_of(plan, visit);
            for usual in &known.usual {
                let own = own_time(time, calls) as f64;
                let is_seen = own - usual.own > usual.taken / 2.0;
                if calls.iter().any(|seen| seen.call == Some(usual.call)) || !is_seen && !usual.by_all {
                    continue;
                }
                let gap = longest_gap(plan, number as u32, time, calls);
                let length = gap.1.saturating_sub(gap.0);
                let taken = if usual.by_all { usual.taken.min(own) } else { own - usual.own };
                let taken = (taken as i64).min(length);
                if taken <= 0 || !usual.by_all && (taken as f64) < usual.taken / 2.0 {
                    continue;
                }
                let start = gap.0 + (length - taken) / 2;
                put(plan, number as u32, usual, (start, start + taken));
                found.push(plan.visits[number].span);
                calls.push(Seen { start, end: start + taken, call: Some(usual.call), callee: NONE });
            }
        }
        found
    }
}

impl Made {
    fn usual(&self, call: Call, visits: u64, lost: f64) -> Option<Usual> {
        let Self { once, often, answered, taken, own, squares, callee } = *self;
        let left = (1.0 - lost).max(0.0) * visits as f64;
        let by_all = (once * NEARLY_ALL.1) as f64 >= left * NEARLY_ALL.0 as f64;
        let by_loss = visits.saturating_sub(once + often) as f64 <= LOST * lost * visits as f64 + CHANCE;
        if once < ENOUGH || !by_all || !by_loss || (often + answered) * SELDOM > once {
            return None;
        }
        let count = once as f64;
        let (taken, own) = (taken as f64 / count, own as f64 / count);
        let deviation = (squares as f64 / count - own * own).max(0.0).sqrt();
        let lack = visits.saturating_sub(once + often) as f64;
        let by_all = lost >= MANY && lack <= lost * visits as f64 + CERTAIN * (lost * visits as f64).sqrt();
        (by_all || taken > CLEAR * deviation).then_some(Usual { call, callee, taken, own, by_all })
    }
}

/// The calls of each visit.
fn seen(plan: &SpanPlan, tree: &TreeView) -> Vec<Vec<Seen>> {
    let mut seen: Vec<Vec<Seen>> = Vec::new();
    seen.resize_with(plan.visits.len(), Vec::new);
    for item in plan.items.iter().filter(|item| matches!(item.what, What::Call(_))) {
        let client = &tree.spans[item.span as usize];
        let call = (item.client && item.what == What::Call(CallKind::Open)).then_some((client.peer, client.name));
        let visit = plan.scopes[item.scope as usize].visit as usize;
        seen[visit].push(Seen { start: item.start, end: item.end, call, callee: item.callee });
    }
    seen
}

/// When a visit was: as recorded, else while its client waited, less what the way takes.
fn time_of(plan: &SpanPlan, visit: &Visit) -> (i64, i64) {
    if !visit.unrecorded || visit.caller == NONE {
        return (visit.start, visit.end);
    }
    let caller = &plan.items[visit.caller as usize];
    let way = visit.on_the_way.clamp(0, caller.end.saturating_sub(caller.start)) / 2;
    (caller.start.saturating_add(way), caller.end.saturating_sub(way))
}

/// The time of a visit in which none of its calls is out.
fn own_time(time: (i64, i64), calls: &mut [Seen]) -> i64 {
    calls.sort_by_key(|seen| (seen.start, seen.end));
    let (mut at, mut own) = (time.0, 0_i64);
    for seen in calls.iter() {
        own = own.saturating_add(seen.start.min(time.1).saturating_sub(at).max(0));
        at = at.max(seen.end);
    }
    own.saturating_add(time.1.saturating_sub(at).max(0))
}

/// The longest time of a visit without any call or local span.
fn longest_gap(plan: &SpanPlan, visit: u32, time: (i64, i64), calls: &[Seen]) -> (i64, i64) {
    let scope = plan.visits[visit as usize].scope;
    let locals = plan.items.iter().filter(|item| item.scope == scope && item.what == What::Activity);
    let mut taken: Vec<(i64, i64)> = calls.iter().map(|seen| (seen.start, seen.end)).collect();
    taken.extend(locals.map(|item| (item.start, item.end)));
    taken.push((time.1, time.1));
    taken.sort_unstable();
    let (mut at, mut longest) = (time.0, (time.0, time.0));
    for (start, end) in taken {
        if start.min(time.1).saturating_sub(at) > longest.1.saturating_sub(longest.0) {
            longest = (at, start.min(time.1));
        }
        at = at.max(end);
    }
    longest
}

/// A call of a visit of which no span is left.
fn put(plan: &mut SpanPlan, visit: u32, usual: &Usual, (start, end): (i64, i64)) {
    let caller = &plan.visits[visit as usize];
    let (span, scope, clock) = (caller.span, caller.scope, caller.clock);
    let (service, operation) = usual.callee;
    let callee = plan.add_visit(Visit {
        service,
        operation,
        span,
        clock,
        start,
        end,
        cpu: f64::NAN,
        scope: NONE,
        caller: NONE,
        unrecorded: true,
        extent: end,
        forward: NONE,
        answers: false,
        on_the_way: 0,
        shift: 0,
        evidence: VisitEvidence::Recorded,
    });
    let name = usual.call.1;
    let what = What::Call(CallKind::Open);
    let item = plan.add_item(Item {
        scope,
        what,
        span,
        name,
        start,
        end,
        cpu: f64::NAN,
        callee,
        inner: NONE,
        client: true,
        waits: false,
    });
    plan.visits[callee as usize].caller = item;
}
