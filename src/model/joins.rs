//! Joins as they were seen.
//!
//! Solvers take the branches of a fork as independent, and think times as exponential. Branches of real systems begin together, wait for
//! the same things and end together, so that the mean time until all have ended is another one, and it was traced. So the delays of a
//! fork are fitted to it: its offsets are shortened until the fork takes as long as was seen, with nobody queueing anywhere; where it
//! takes less than that even with all of its offsets, what is missing follows the join. After that each entry responds as it did.

use crate::lqn::{Activity, ActivityId, Body, CallKind, CallOrder, Entry, EntryId, Fork, Join, Model, TaskId, Work};
use crate::solve::until;

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
    /// Its task.
    pub task: TaskId,
    /// The segments of its strand, with their phases.
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
    /// Those of them that are waited for.
    pub awaited: Vec<ActivityId>,
    /// The activity after the join, which takes what is missing.
    pub after: ActivityId,
    /// How long it took, seconds.
    pub seen: f64,
}

/// What was seen of an entry.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Its mean response, where traces tell.
    pub response: Option<f64>,
    /// Whether all of its demand is what traces show of its time, and its calls are on their way as traced: then the model is to
    /// respond as the traces did.
    pub is_traced: bool,
}

/// Fits the delays of forks to what was seen of joins, and of responses. `owners` has the entry of each activity, and gets those of
/// activities that are added; `woven` is in the order of entries.
pub fn fit(model: &mut Model, owners: &mut Vec<EntryId>, mut woven: Vec<Woven>, seen: &[Seen]) {
    let called = called(model, owners);
    let mut times: Vec<Time> = vec![Time::default(); model.entries.len()];
    let mut is_traced = vec![false; model.entries.len()];
    for at in callees_first(&called) {
        let entry = EntryId::from(at);
        let mut of = match woven.binary_search_by_key(&entry, |own| own.entry) {
            Ok(place) => Some(&mut woven[place]),
            Err(_) => None,
        };
        is_traced[at] = seen[at].is_traced && called[at].iter().all(|to| is_traced[to.index()]);
        if let (true, Some(of)) = (is_traced[at], &mut of) {
            for fork in &mut of.forks {
                fit_fork(model, of.task, fork, &times);
            }
            owners.resize(model.activities.len(), entry);
        }
        let mut time = response(model, entry, of.as_deref(), &times);
        if let Some(response) = seen[at].response {
            if of.is_none() && matches!(model.entries[at].body, Body::Activities(_)) {
                // Of graphs that were traced as such nothing more is known here.
                time = Time { mean: response, variance: response * response };
            } else if is_traced[at] {
                time.mean += correct(model, entry, of.as_deref(), response - time.mean);
            }
        }
        times[at] = time;
    }
}

/// Of each entry, those whose response it waits for.
fn called(model: &Model, owners: &[EntryId]) -> Vec<Vec<EntryId>> {
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
fn callees_first(called: &[Vec<EntryId>]) -> Vec<usize> {
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
    variance += slices * cv2 * slice * slice + work.think_time * work.think_time;
    if calls > 0.0 {
        let average = mean / calls;
        variance += (squares - mean * average).max(0.0);
        if work.call_order != CallOrder::Deterministic {
            variance += calls * (1.0 + calls) * (slice + average) * (slice + average);
        }
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
            let forks = woven.forks.iter().filter(|fork| fork.phase == 1);
            let forks = forks.map(|fork| together(model, &fork.awaited, times).times(fork.visits));
            segments.chain(forks).fold(Time::default(), Time::plus)
        }
    };
    for forwarding in &of.forwarding {
        time = time.plus(times[forwarding.to.index()].times(forwarding.probability));
    }
    time
}

/// How long it takes until all of these have ended that began together.
fn together(model: &Model, branches: &[ActivityId], times: &[Time]) -> Time {
    let pairs: Vec<(f64, f64)> = branches
        .iter()
        .map(|id| {
            let time = execution(&model.activities[id.index()].work, times);
            (time.mean, time.variance)
        })
        .collect();
    let (mean, variance) = until(&pairs, pairs.len());
    Time { mean, variance }
}

/// Shortens the offsets of a fork until it takes as long as was seen, or lets what is missing follow.
fn fit_fork(model: &mut Model, task: TaskId, fork: &mut WovenFork, times: &[Time]) {
    /// Halvings of the share of the offsets that is kept.
    const STEPS: usize = 60;
    let branches = fork.branches.clone();
    let think: Vec<f64> = branches.iter().map(|(id, _)| model.activities[id.index()].work.think_time).collect();
    let with = |model: &mut Model, awaited: &[ActivityId], share: f64| {
        for ((id, offset), think) in branches.iter().zip(&think) {
            model.activities[id.index()].work.think_time = (think - offset * (1.0 - share)).max(0.0);
        }
        together(model, awaited, times).mean
    };
    let mut kept = with(model, &fork.awaited, 1.0);
    if kept > fork.seen {
        let all = fork.awaited.len();
        // Branches that end first are not waited for where, with them, the fork cannot take so little.
        while with(model, &fork.awaited, 0.0) > fork.seen && fork.awaited.len() > 1 {
            let mean = |id: &ActivityId| execution(&model.activities[id.index()].work, times).mean;
            let means: Vec<f64> = fork.awaited.iter().map(mean).collect();
            let least = (0..means.len()).min_by(|left, right| means[*left].total_cmp(&means[*right]));
            fork.awaited.remove(least.unwrap_or(0));
        }
        if fork.awaited.len() < all {
            wait_for(model, task, &fork.awaited);
        }
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..STEPS {
            let middle = f64::midpoint(low, high);
            if with(model, &fork.awaited, middle) > fork.seen { high = middle } else { low = middle }
        }
        kept = with(model, &fork.awaited, low);
    }
    model.activities[fork.after.index()].work.think_time += (fork.seen - kept).max(0.0);
}

/// Makes the join of these branches wait for no others. A join has two branches at least: beside a single one it waits for one that does
/// nothing.
fn wait_for(model: &mut Model, task: TaskId, awaited: &[ActivityId]) {
    let idle = ActivityId::from(model.activities.len());
    let of = &mut model.tasks[task.index()];
    let alone = awaited.len() == 1;
    for precedence in &mut of.precedences {
        match &mut precedence.join {
            Join::And { activities, .. } if activities.contains(&awaited[0]) => {
                activities.retain(|id| awaited.contains(id));
                activities.extend(alone.then_some(idle));
            }
            _ => {}
        }
        match &mut precedence.fork {
            Some(Fork::And(activities)) if activities.contains(&awaited[0]) => activities.extend(alone.then_some(idle)),
            _ => {}
        }
    }
    if alone {
        of.activities.push(idle);
        let name = format!("{}.wait", model.activities[awaited[0].index()].name);
        model.activities.push(Activity::new(&name, task));
    }
}

/// Lets an entry respond by so much later; gives by how much it does. What it answers too late by is taken from its delays: it may
/// be faster than others are with those that it calls.
fn correct(model: &mut Model, entry: EntryId, woven: Option<&Woven>, missing: f64) -> f64 {
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
            last.think_time += missing;
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
        let part = (work.demand * MOST_TAKEN).min(done - missing);
        work.demand -= part;
        done -= part;
    }
    done
}

/// The part of a demand that may be taken to make up for servers that answer this caller sooner than others.
const MOST_TAKEN: f64 = 0.5;
