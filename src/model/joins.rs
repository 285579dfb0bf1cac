//! Joins as they were seen.
//!
//! Solvers take the branches of a fork as independent, and think times as exponential. Branches of real systems begin together, wait for
//! the same things and end together, so that the mean time until all have ended is another one, and it was traced. So the delays of a
//! fork are fitted to it: its offsets are shortened until the fork takes as long as was seen, with nobody queueing anywhere; where it
//! takes less than that even with all of its offsets, what is missing follows the join. After that each entry responds as it did.

use crate::lqn::{Activity, ActivityId, Body, Call, CallKind, CallOrder, Entry, EntryId, Model, Work};
use dyelog_solve::order_statistic;
use std::collections::BTreeSet;

/// Mean and variance of a time, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Time {
    mean: f64,
    variance: f64,
}

impl Time {
    fn plus(self, other: Self) -> Self {
        Self { mean: self.mean + other.mean, variance: self.variance + other.variance }
    }

    /// What happens so often on the mean.
    fn times(self, visits: f64) -> Self {
        let spread = if visits < 1.0 { visits * (1.0 - visits) * self.mean * self.mean } else { 0.0 };
        Self { mean: visits * self.mean, variance: visits * self.variance + spread }
    }
}

/// An entry whose calls were seen in time.
#[derive(Clone, Debug)]
pub struct Woven {
    /// The entry.
    pub entry: EntryId,
    /// The segments of its strand, with their phases, in the order of their numbers.
    pub segments: Vec<(u8, ActivityId)>,
    /// Its forks.
    pub forks: Vec<WovenFork>,
}

/// A fork of such an entry.
#[derive(Clone, Debug)]
pub struct WovenFork {
    /// The phase.
    pub phase: u8,
    /// How often an invocation comes to it.
    pub visits: f64,
    /// Its branches, one activity each, with the time before their first call, which is part of their think time.
    pub branches: Vec<(ActivityId, f64)>,
    /// The activity after the join, which takes what is missing.
    pub after: ActivityId,
    /// How long it took, seconds.
    pub seen: f64,
}

/// What was seen of an entry.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Its mean response without what its calls waited for threads, where traces tell.
    pub response: Option<f64>,
    /// Whether calls waited for threads: that share of the response is an estimate.
    pub is_estimated: bool,
    /// Whether all of its demand is what traces show of its time, and its calls have the network latency that was traced: then the model is to
    /// respond as the traces did.
    pub is_traced: bool,
}

/// What came out.
pub struct Fitted {
    /// The entries with branches whose calls are waited for less often.
    pub sent: BTreeSet<EntryId>,
    /// The response of each entry without queueing, where it follows from traces alone, seconds.
    pub responses: Vec<Option<f64>>,
    /// By how much each still responds sooner than it did, seconds: below 0 where it responds later.
    pub missing: Vec<f64>,
}

/// Fits the delays of forks to what was seen of joins, and of responses. `owners` has the entry of each activity, `woven` is in the
/// order of entries.
pub fn fit(model: &mut Model, owners: &[EntryId], woven: &[Woven], seen: &[Seen]) -> Fitted {
    let mut sent = BTreeSet::new();
    let mut missing = vec![0.0; model.entries.len()];
    let called = called(model, owners);
    let mut times: Vec<Time> = vec![Time::default(); model.entries.len()];
    let mut is_traced = vec![false; model.entries.len()];
    for at in callees_first(&called) {
        let entry = EntryId::from(at);
        let of = woven.binary_search_by_key(&entry, |own| own.entry).ok().map(|place| &woven[place]);
        is_traced[at] = seen[at].is_traced && called[at].iter().all(|to| is_traced[to.index()]);
        if let (true, Some(of)) = (is_traced[at], of) {
            for fork in &of.forks {
                if fit_fork(model, fork, &times) {
                    sent.insert(entry);
                }
            }
        }
        let mut time = response(model, entry, of, &times);
        if let Some(response) = seen[at].response {
            if of.is_none() && matches!(model.entries[at].body, Body::Activities(_)) {
                // Of graphs that were traced as such nothing more is known here.
                time = Time { mean: response, variance: response * response };
            } else if is_traced[at] && (response - time.mean).abs() > response * ROUNDING {
                let most_taken = if seen[at].is_estimated { 0.0 } else { MOST_TAKEN };
                time.mean += correct(model, entry, of, response - time.mean, most_taken);
                missing[at] = response - time.mean;
            }
        }
        times[at] = time;
    }
    let responses = times.iter().zip(is_traced).map(|(time, is_traced)| is_traced.then_some(time.mean)).collect();
    Fitted { sent, responses, missing }
}

/// Of each entry, those whose response it waits for.
pub(super) fn called(model: &Model, owners: &[EntryId]) -> Vec<Vec<EntryId>> {
    let waits = |work: &Work| {
        let calls = work.calls.iter().filter(|call| call.kind == CallKind::Synchronous);
        calls.map(|call| call.to).collect::<Vec<_>>()
    };
    let of = |entry: &Entry| {
        let phases: &[Work] = if let Body::Phases(phases) = &entry.body { phases } else { &[] };
        let passed_on = entry.forwarding.iter().map(|forwarding| forwarding.to);
        phases.iter().flat_map(waits).chain(passed_on).collect()
    };
    let mut called: Vec<Vec<EntryId>> = model.entries.iter().map(of).collect();
    for (activity, owner) in model.activities.iter().zip(owners) {
        called[owner.index()].extend(waits(&activity.work));
    }
    called
}

/// All entries, those that are called before those that call them, as far as calls are in no circle.
pub(super) fn callees_first(called: &[Vec<EntryId>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(called.len());
    let mut begun = vec![false; called.len()];
    for root in 0..called.len() {
        let mut stack = if std::mem::replace(&mut begun[root], true) { Vec::new() } else { vec![(root, 0)] };
        while let Some((at, next)) = stack.last_mut() {
            if let Some(to) = called[*at].get(*next) {
                *next += 1;
                if !std::mem::replace(&mut begun[to.index()], true) {
                    stack.push((to.index(), 0));
                }
            } else {
                order.push(*at);
                stack.pop();
            }
        }
    }
    order
}

/// An execution of some work, as the layered solver takes it where nobody queues.
fn execution(work: &Work, times: &[Time]) -> Time {
    let slices = 1.0 + work.calls.iter().map(|call| call.mean).sum::<f64>();
    let slice = work.demand / slices;
    let cv2 = work.cv2.unwrap_or(1.0);
    let (mut mean, mut variance, mut squares) = (0.0, 0.0, 0.0);
    for call in work.calls.iter().filter(|call| call.kind == CallKind::Synchronous) {
        let time = times[call.to.index()];
        mean += call.mean * time.mean;
        variance += call.mean * time.variance;
        squares += call.mean * time.mean * time.mean;
    }
    let calls = slices - 1.0;
    variance += slices * cv2 * slice * slice + work.think_cv2.unwrap_or(1.0) * work.think_time * work.think_time;
    if calls > 0.0 {
        let average = mean / calls;
        variance += (squares - mean * average).max(0.0);
        let number = work.call_order.variance(work.calls.iter().map(|call| call.mean));
        variance += number * (slice + average) * (slice + average);
    }
    Time { mean: work.demand + work.think_time + mean, variance }
}

/// The first phase of an entry.
fn response(model: &Model, entry: EntryId, woven: Option<&Woven>, times: &[Time]) -> Time {
    let of = &model.entries[entry.index()];
    let mut time = match (&of.body, woven) {
        (Body::Phases(phases), _) => phases.first().map_or(Time::default(), |work| execution(work, times)),
        (Body::Activities(_), None) => Time::default(),
        (Body::Activities(_), Some(woven)) => {
            let first = woven.segments.iter().filter(|(phase, _)| *phase == 1);
            let segments = first.map(|(_, id)| execution(&model.activities[id.index()].work, times));
            // Of alternatives, the join has an activity of its own, which takes what is missing.
            let on_strand = |id: &ActivityId| woven.segments.binary_search_by_key(id, |(_, id)| *id).is_ok();
            let joined = |fork: &WovenFork| match Some(fork.after).filter(|id| !on_strand(id)) {
                Some(join) => execution(&model.activities[join.index()].work, times),
                None => Time::default(),
            };
            let forks = woven.forks.iter().filter(|fork| fork.phase == 1);
            let forks = forks.map(|fork| together(model, &fork.branches, times).plus(joined(fork)).times(fork.visits));
            segments.chain(forks).fold(Time::default(), Time::plus)
        }
    };
    for forwarding in &of.forwarding {
        time = time.plus(times[forwarding.to.index()].times(forwarding.probability));
    }
    time
}

/// How long it takes until all of these have ended that began together.
fn together(model: &Model, branches: &[(ActivityId, f64)], times: &[Time]) -> Time {
    let pairs: Vec<(f64, f64)> = branches
        .iter()
        .map(|(id, _)| {
            let time = execution(&model.activities[id.index()].work, times);
            (time.mean, time.variance)
        })
        .collect();
    let (mean, variance) = order_statistic(&pairs, pairs.len());
    Time { mean, variance }
}

/// Shortens the offsets of a fork until it takes as long as was seen, or lets what is missing follow. Tells whether calls of a branch
/// are waited for less often.
fn fit_fork(model: &mut Model, fork: &WovenFork, times: &[Time]) -> bool {
    /// Halvings of the share of the offsets that is kept.
    const STEPS: usize = 60;
    let branches = fork.branches.clone();
    let think: Vec<f64> = branches.iter().map(|(id, _)| model.activities[id.index()].work.think_time).collect();
    // With a share from 1 to 2 of the delays, offsets are shortened, with one below 1 the network latency of calls, too.
    let with = |model: &mut Model, share: f64| {
        for ((id, offset), think) in branches.iter().zip(&think) {
            let (offsets, others) = ((share - 1.0).max(0.0), share.min(1.0));
            model.activities[id.index()].work.think_time = offset * offsets + (think - offset).max(0.0) * others;
        }
        together(model, &fork.branches, times).mean
    };
    let (mut kept, mut sent) = (with(model, 2.0), false);
    if kept > fork.seen * (1.0 + 1e-9) {
        // Calls that end first are waited for less often where, with them, the fork cannot take so little.
        while with(model, 0.0) > fork.seen * (1.0 + NEXT_TO_NOTHING) {
            let Some((first, before)) = first_to_end(model, &branches, times) else { break };
            sent = true;
            send(model, first, &before, 0.0);
            // With latencies as they were seen.
            if with(model, 1.0) < fork.seen {
                let (mut low, mut high) = (0.0, 1.0);
                for _ in 0..STEPS {
                    let middle = f64::midpoint(low, high);
                    send(model, first, &before, middle);
                    if with(model, 1.0) > fork.seen { high = middle } else { low = middle }
                }
                send(model, first, &before, low);
                break;
            }
        }
        let (mut low, mut high) = (0.0, 2.0);
        for _ in 0..STEPS {
            let middle = f64::midpoint(low, high);
            if with(model, middle) > fork.seen { high = middle } else { low = middle }
        }
        kept = with(model, low);
    }
    let missing = fork.seen - kept;
    if missing > fork.seen * ROUNDING {
        model.activities[fork.after.index()].work.delay(missing);
    }
    sent
}

/// Times that differ by less than this part of them differ by rounding.
const ROUNDING: f64 = 1e-9;

/// By how much, relative to what was seen, a fork may take longer before calls in it are waited for less often.
const NEXT_TO_NOTHING: f64 = 1e-3;

/// The branch that ends first of those that wait for calls, with its work; `None` where there are no two of them.
fn first_to_end(model: &Model, branches: &[(ActivityId, f64)], times: &[Time]) -> Option<(ActivityId, Work)> {
    let work = |id: ActivityId| &model.activities[id.index()].work;
    let waits = |work: &Work| work.calls.iter().any(|call| call.kind == CallKind::Synchronous);
    let mut waiting: Vec<(f64, ActivityId)> = branches
        .iter()
        .filter(|(id, _)| waits(work(*id)))
        .map(|(id, _)| (execution(work(*id), times).mean, *id))
        .collect();
    waiting.sort_by(|left, right| left.0.total_cmp(&right.0).then(left.1.cmp(&right.1)));
    let [(_, first), _, ..] = waiting[..] else { return None };
    Some((first, work(first).clone()))
}

/// Lets an activity wait for that part of its calls, which it had before; the others are sent.
fn send(model: &mut Model, activity: ActivityId, before: &Work, part: f64) {
    let work = &mut model.activities[activity.index()].work;
    let waiting = before.calls.iter().filter(|call| call.kind == CallKind::Synchronous);
    let sent =
        waiting.map(|call| Call { kind: CallKind::Asynchronous, mean: call.mean * (1.0 - part), ..call.clone() });
    let others = before.calls.iter().map(|call| match call.kind {
        CallKind::Synchronous => Call { mean: call.mean * part, ..call.clone() },
        CallKind::Asynchronous => call.clone(),
    });
    work.calls = others.chain(sent).filter(|call| call.mean > 0.0).collect();
    work.call_order = match before.call_order {
        CallOrder::Deterministic if part > 0.0 => CallOrder::Bernoulli,
        order => order,
    };
}

/// Lets an entry respond by so much later; gives by how much it does. What it answers too late by is taken from its delays, then from
/// up to `most_taken` of its demands: those that it calls may answer it sooner than others.
pub(super) fn correct(model: &mut Model, entry: EntryId, woven: Option<&Woven>, missing: f64, most_taken: f64) -> f64 {
    let mut works: Vec<&mut Work> = Vec::new();
    match (&mut model.entries[entry.index()].body, woven) {
        (Body::Phases(phases), _) => works.extend(phases.first_mut()),
        (Body::Activities(_), Some(woven)) => {
            // Segments are made one after the other.
            let mut rest = &mut model.activities[..];
            let mut gone = 0;
            for (_, id) in woven.segments.iter().filter(|(phase, _)| *phase == 1) {
                let Some((activity, after)) = rest.get_mut(id.index() - gone..).and_then(<[Activity]>::split_first_mut)
                else {
                    break;
                };
                gone = id.index() + 1;
                rest = after;
                works.push(&mut activity.work);
            }
        }
        (Body::Activities(_), None) => {}
    }
    let mut done = 0.0;
    if missing >= 0.0 {
        if let Some(last) = works.last_mut() {
            last.delay(missing);
            done = missing;
        }
        return done;
    }
    for work in &mut works {
        let part = work.think_time.min(done - missing);
        work.think_time -= part;
        done -= part;
    }
    for work in &mut works {
        let part = (work.demand * most_taken).min(done - missing);
        work.demand -= part;
        done -= part;
    }
    done
}

/// The part of a demand that may be taken to make up for servers that answer this caller sooner than others. No demand gives way to an
/// estimate: with calls that wait for threads, it lost up to 10 % in simulated systems.
const MOST_TAKEN: f64 = 0.1;
