//! Calls whose server span was lost: what they asked is learned from those like them whose server span is there.
//!
//! A client span tells the operation by its own name at best: `GET`. The calls of the same operation of the same service, to the same peer and of
//! that name, tell which operations answer them, the mean network latency of a call, how much processor time it takes, and how long the work of one
//! lasts for which nobody waits. A call that has no server span asks the one of them that its visit lacks most, compared to how often such visits ask each. Where most of these
//! calls have no server span, the server records none: they keep their name.
//!
//! A consumer takes a message from its queue and works on it, in a trace of its own as often as not. So it is enough that some messages alike were worked on by
//! a span, unless there are about as many spans of such work whose sender is not known ([`messages`]). Where more of them lack it than spans were lost one by one, all that the
//! work caused is gone with it: what was recorded for others takes its place ([`donors`]).

mod donors;
mod messages;

pub use messages::Unreceived;

use rustc_hash::FxHashMap;

use crate::VisitEvidence;
use crate::spans::classify::{Knowledge, TreeView};
use crate::spans::plan::{CallKind, Item, SpanPlan, What};
use crate::spans::unanswered::donors::Donors;
use dyelog_diagnostic::names::{Name, Names};

/// From fewer calls or messages that were answered nothing follows of the others.
const ENOUGH: u64 = 10;
/// A failed call that takes more than so many times as long as those alike was given up (ours).
const MUCH_LONGER: i64 = 4;
/// Of the operations that answer calls of one kind, so many are kept apart; they are those that answer most.
const MOST_ANSWERS: usize = 32;

/// Calls alike: the calling service and its operation, none for any of them; the peer; the name of the client span.
type Calls = (Name, Name, Name, Name);

/// What answers some calls: service and operation.
pub type Answering = (Name, Name);

/// Calls that were answered by one operation.
#[derive(Clone, Copy, Debug, Default)]
struct Answered {
    calls: u64,
    /// Their network latency, both ways, where it is known.
    network: i128,
    timed: u64,
    /// How long the work took.
    work: i128,
    /// The processor time of the visits that were measured, without that of their local spans, seconds.
    cpu: f64,
    measured: u64,
}

/// What is known of calls alike.
#[derive(Debug, Default)]
struct Known {
    /// Visits that made such calls, and the last of them.
    visits: u64,
    last_visit: Option<u64>,
    unanswered: u64,
    /// Messages among them, and the last of these: the visits of trees before, and its span.
    sent: u64,
    last_sent: Option<(u64, u32)>,
    answers: FxHashMap<Answering, Answered>,
    /// The answers that were given most, by frequency and name.
    most: Vec<(Answering, Answered)>,
}

/// What complete calls tell of those that lost their server span.
#[derive(Debug, Default)]
pub struct Unanswered {
    known: FxHashMap<Calls, Known>,
    /// Visits of the trees that were seen before.
    visits: u64,
    /// How much work on messages there is whose sender is not known.
    unlinked: FxHashMap<Answering, u64>,
    /// The same where nothing of the sender's trace was recorded.
    apart: FxHashMap<Answering, u64>,
    /// Work on messages that may stand for such that was lost.
    donors: FxHashMap<Answering, Donors>,
    /// The part of all spans that was lost, as far as lost parents tell.
    lost: f64,
    /// By service, how many of its visits were lost that called others or worked locally, whose spans are left.
    torn: FxHashMap<Name, u64>,
}

/// The calls that an item is one of, as closely as can be told and by any operation of its service.
fn calls_of(plan: &SpanPlan, tree: &TreeView, item: &Item) -> [Calls; 2] {
    let client = &tree.spans[item.span as usize];
    let of = |operation| (client.service, operation, client.peer, client.name);
    [of(plan.visit_of(item).operation), of(Name::NONE)]
}

fn is_call(item: &Item) -> bool {
    matches!(item.what, What::Call(_)) && item.client
}

/// Whether a call is a message.
pub fn is_message(item: &Item) -> bool {
    item.client && item.what == What::Call(CallKind::Deferred)
}

impl Answered {
    /// For how long the server worked on the mean, nanoseconds.
    fn mean_work(&self) -> i64 {
        mean(self.work, self.calls)
    }

    /// How long a call was on its way on the mean, nanoseconds.
    fn mean_way(&self) -> i64 {
        mean(self.network, self.timed)
    }
}

/// Of nothing it is 0.
fn mean(sum: i128, count: u64) -> i64 {
    i64::try_from(sum / i128::from(count.max(1))).unwrap_or(0)
}

impl Known {
    /// How many of the calls were answered. All of them are known.
    fn answered(&self) -> u64 {
        self.most.iter().map(|(_, own)| own.calls).sum()
    }
}

impl Unanswered {
    /// Takes in the calls of a tree.
    pub fn observe(&mut self, plan: &SpanPlan, tree: &TreeView) {
        for item in plan.items.iter().filter(|item| is_call(item)) {
            let callee = &plan.visits[item.callee as usize];
            if is_message(item) && !callee.unrecorded {
                self.offer(plan, item);
            }
            let visit = self.visits + u64::from(plan.scopes[item.scope as usize].visit);
            let way = item.end.saturating_sub(item.start).saturating_sub(callee.end.saturating_sub(callee.start));
            let [closely, loosely] = calls_of(plan, tree, item);
            let all = if closely == loosely { 1 } else { 2 };
            for calls in [closely, loosely].into_iter().take(all) {
                let known = self.known.entry(calls).or_default();
                if known.last_visit.replace(visit) != Some(visit) {
                    known.visits += 1;
                }
                let sent = (self.visits, item.span);
                if is_message(item) && known.last_sent.replace(sent) != Some(sent) {
                    known.sent += 1;
                }
                if callee.unrecorded {
                    known.unanswered += 1;
                    continue;
                }
                let answered = known.answers.entry((callee.service, callee.operation)).or_default();
                answered.calls += 1;
                answered.work += i128::from(callee.end.saturating_sub(callee.start));
                if !callee.cpu.is_nan() {
                    answered.cpu += callee.cpu;
                    answered.measured += 1;
                }
                if way >= 0 {
                    answered.network += i128::from(way);
                    answered.timed += 1;
                }
            }
        }
        self.visits += plan.visits.len() as u64;
    }

    /// All calls are known, which part of all spans was lost, and of which services visits were lost whose calls are left.
    pub fn settle(&mut self, lost: f64, torn: FxHashMap<Name, u64>, names: &Names) {
        (self.lost, self.torn) = (lost, torn);
        for known in self.known.values_mut() {
            let text = |answering: Answering| (names.text(answering.0), names.text(answering.1));
            known.most = known.answers.drain().collect();
            known.most.sort_by(|a, b| b.1.calls.cmp(&a.1.calls).then_with(|| text(a.0).cmp(&text(b.0))));
            known.most.truncate(MOST_ANSWERS);
        }
    }

    /// By service, which part of its spans was lost: of calls that mostly have a server span, those that have none.
    pub fn lost_by_service(&self) -> FxHashMap<Name, f64> {
        let mut sums: FxHashMap<Name, (u64, u64)> = FxHashMap::default();
        let waiting = self.known.iter().filter(|((_, operation, ..), known)| !operation.is_some() && known.sent == 0);
        for known in waiting.map(|(_, known)| known) {
            let (answered, lost) = (known.answered(), known.unanswered);
            if let Some(((service, _), _)) = known.most.first().filter(|_| answered > lost) {
                let sum = sums.entry(*service).or_default();
                *sum = (sum.0 + answered, sum.1 + lost);
            }
        }
        let part = |(answered, lost): (u64, u64)| lost as f64 / (answered + lost).max(1) as f64;
        sums.into_iter().map(|(service, sum)| (service, part(sum))).collect()
    }

    /// What is known of the calls that an item is one of, where most of them are answered; of messages, where enough were.
    fn known_of(&self, plan: &SpanPlan, tree: &TreeView, item: &Item) -> Option<&Known> {
        let [closely, loosely] = calls_of(plan, tree, item);
        // An operation that was lost itself has no name, and is any.
        let peer = plan.visits[item.callee as usize].service;
        let records = |known: &Known| {
            known.most.first().is_some_and(|((service, _), _)| *service == peer) && known.answered() >= ENOUGH
        };
        // Failed calls may tell more of their peer than others.
        let without_peer = || {
            let (service, operation, _, name) = closely;
            self.known.get(&(service, operation, Name::NONE, name)).filter(|known| records(known))
        };
        let known = self
            .known
            .get(&closely)
            .filter(|known| known.answered() > 0)
            .or_else(without_peer)
            .or_else(|| self.known.get(&closely))
            .or_else(|| self.known.get(&loosely))?;
        let records = records(known);
        let tells =
            records || known.answered() > 2 * known.unanswered || is_message(item) && self.lack_consumers(known);
        tells.then_some(known)
    }

    /// Names what the calls of a tree asked that lost their server spans. Gives these: the item and what it asks.
    pub fn name(&mut self, plan: &mut SpanPlan, tree: &TreeView, peers: &Knowledge<'_>) -> Vec<(u32, Answering)> {
        let is_lost = |item: &Item| is_call(item) && plan.visits[item.callee as usize].unrecorded;
        let lost: Vec<u32> = (0..plan.items.len() as u32).filter(|at| is_lost(&plan.items[*at as usize])).collect();
        let mut named = Vec::new();
        if lost.is_empty() {
            return named;
        }
        let visit_of = |plan: &SpanPlan, item: &Item| plan.scopes[item.scope as usize].visit;
        let mut made: FxHashMap<(u32, Answering), u64> = FxHashMap::default();
        for item in plan.items.iter().filter(|item| is_call(item)) {
            let callee = &plan.visits[item.callee as usize];
            if !callee.unrecorded {
                *made.entry((visit_of(plan, item), (callee.service, callee.operation))).or_default() += 1;
            }
        }
        for at in lost {
            let item = &plan.items[at as usize];
            let visit = visit_of(plan, item);
            let Some(known) = self.known_of(plan, tree, item) else { continue };
            // What such visits ask as often as this one did is not what it lacks. Of equal ones the first is the most frequent.
            let lacks = |answering: Answering, own: &Answered| {
                let made = made.get(&(visit, answering)).copied().unwrap_or(0);
                i128::from(own.calls) - i128::from(made) * i128::from(known.visits)
            };
            let mut best: Option<(i128, Answering, Answered)> = None;
            for (answering, own) in &known.most {
                let lack = lacks(*answering, own);
                if best.is_none_or(|(most, ..)| lack > most) {
                    best = Some((lack, *answering, *own));
                }
            }
            let Some((_, answering, own)) = best else { continue };
            let is_whole = is_message(item) && self.lack_whole_work(known);
            *made.entry((visit, answering)).or_default() += 1;
            let (callee, what, span) = (item.callee as usize, item.what, item.span as usize);
            let (item_time, is_message) = (item.end.checked_sub(item.start), is_message(item));
            if !is_whole || !self.donors.get_mut(&answering).is_some_and(|donors| donors.give(plan, at, peers)) {
                // What is left of its calls tells how much of that time it waited for them.
                fill(plan, callee, own, what);
                let waited = item_time.filter(|_| tree.spans[span].failed && !is_message);
                if let Some(waited) = waited {
                    give_up(plan, callee, own, waited);
                }
                plan.visits[callee].evidence = VisitEvidence::Inferred;
            }
            (plan.visits[callee].service, plan.visits[callee].operation) = answering;
            named.push((at, answering));
        }
        named
    }
}

/// Where a client waited much longer than calls like it take, and gave up, its server worked on it for no longer than on those: a request that was lost on the way, or a connection that hung.
fn give_up(plan: &mut SpanPlan, visit: usize, like: Answered, waited: i64) {
    if waited > like.mean_work().saturating_add(like.mean_way()).saturating_mul(MUCH_LONGER) {
        plan.visits[visit].on_the_way = waited.saturating_sub(like.mean_work());
    }
}

/// Gives a visit that was lost the times that the calls like it had.
fn fill(plan: &mut SpanPlan, visit: usize, like: Answered, what: What) {
    if like.measured > 0 {
        plan.visits[visit].cpu = like.cpu / like.measured as f64;
    }
    let visit = &mut plan.visits[visit];
    visit.on_the_way = like.mean_way();
    if what == What::Call(CallKind::Deferred) {
        visit.end = visit.start.saturating_add(like.mean_work());
        visit.extent = visit.end;
    }
}
