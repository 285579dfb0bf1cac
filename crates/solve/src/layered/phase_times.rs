//! Mean and variance of what a chain executes, given what it waits at its stations.
//!
//! An execution of a phase or an activity is a sequence of slices of processor time around its calls, whose number is
//! geometric or exact. Sequences add up; variances do so as if parts were independent.

use crate::layered::chains::{ChainId, ClientId, Decomposition, Item, NONE, StationId};
use crate::mva::Stay;
use crate::numeric::by_id::{ById, Id};
use crate::numeric::order_statistics::{left_after, order_statistic};
use crate::prepare::plan::{ModelPlan, PlannedWork};
use dyelog_lqn::invocation::Parallel;

/// Mean and variance of a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Time {
    pub mean: f64,
    pub variance: f64,
}

impl Time {
    fn add(&mut self, other: Self) {
        self.mean += other.mean;
        self.variance += other.variance;
    }

    /// The sum of that many executions on average: none or one below 1, an exact number above.
    fn times(self, visits: f64) -> Self {
        let spread = if visits < 1.0 { visits * (1.0 - visits) * self.mean * self.mean } else { 0.0 };
        Self { mean: visits * self.mean, variance: visits * self.variance + spread }
    }

    /// Second moment.
    pub fn square(self) -> f64 {
        self.variance + self.mean * self.mean
    }

    /// What is left of it after the other time, if anything.
    fn left_after(self, other: Self) -> Self {
        let (mean, square) = left_after((self.mean, self.variance), (other.mean, other.variance));
        Self { mean, variance: square - mean * mean }
    }
}

/// Times of an entry's phases.
pub(crate) type Phases = [Time; 3];

/// What the entries that queue take, and what chains wait: the state that the outer iteration turns on.
#[derive(Clone, Debug)]
pub(crate) struct Waits {
    /// By chain and slot.
    pub stays: ById<ChainId, Vec<Stay>>,
    /// By entry that queues.
    pub service: Vec<Phases>,
    /// By chain and slot: how much longer a visit takes because of other branches of the same fork.
    pub longer: ById<ChainId, Vec<f64>>,
    /// By chain and slot: what part of that others find on arrival.
    pub found: ById<ChainId, Vec<f64>>,
    /// By chain and slot: how much longer a visit takes because a message and its sender meet.
    pub met: ById<ChainId, Vec<f64>>,
    /// By first chain of the branches: the time until enough branches have ended, and until all have, of a fork whose
    /// branches share servers.
    pub together: ById<ChainId, Option<(f64, f64)>>,
    /// By station: seconds for which requests wait for threads longer as these queue for what is below them.
    pub thread_queueing: ById<StationId, f64>,
    /// By station: how many are there on the mean, where nobody comes but open arrivals and what they cause.
    pub there: ById<StationId, Option<f64>>,
}

impl Waits {
    /// What visits of a chain take beyond their service, in all.
    pub fn all(&self, chain: ChainId) -> Vec<Stay> {
        let stays = self.stays[chain].iter().enumerate();
        stays.map(|(slot, stay)| Stay { wait: stay.wait + self.beyond_chance(chain, slot), ..*stay }).collect()
    }

    /// How much longer a visit takes than the queues explain: because of other branches of its fork, and of messages and their senders.
    pub fn beyond_chance(&self, chain: ChainId, slot: usize) -> f64 {
        self.longer[chain][slot] + self.met[chain][slot]
    }
}

/// Times of a chain's entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChainTimes {
    /// By position in [`crate::layered::chains::Chain::reach`].
    pub entries: Vec<Phases>,
    /// By item: the mean time of one execution of a step, without its calls for those of calls.
    pub items: Vec<f64>,
    /// By branch: its chain, and for how long in an execution the chain that waits for it is at work, too.
    pub beside: Vec<(ChainId, f64)>,
    /// Of a branch: how long what it has begun and does not wait for goes on when it has ended.
    pub after: Time,
}

/// The time of a slice and of a wait, by what a station adds.
pub(crate) fn slice(work: &PlannedWork, stay: Stay) -> Time {
    let slowed = work.slice * (1.0 + stay.slowdown);
    let waiting = stay.wait * (stay.wait + 2.0 * work.slice);
    Time { mean: slowed + stay.wait, variance: work.cv2 * slowed * slowed + waiting }
}

/// Evaluates all chains of a client, branches first.
pub(crate) fn client_times(
    plan: &ModelPlan,
    decomposition: &Decomposition,
    client: ClientId,
    waits: &Waits,
    times: &mut ById<ChainId, ChainTimes>,
) {
    for chain in decomposition.clients[client].chains.ids().rev() {
        let result = chain_times(plan, decomposition, chain, waits, times);
        times[chain] = result;
    }
}

fn chain_times(
    plan: &ModelPlan,
    decomposition: &Decomposition,
    number: ChainId,
    waits: &Waits,
    times: &ById<ChainId, ChainTimes>,
) -> ChainTimes {
    let chain = &decomposition.chains[number];
    let stays = &waits.all(number);
    let mut result = ChainTimes {
        entries: vec![Phases::default(); chain.reach.len()],
        items: vec![0.0; chain.items.len()],
        beside: Vec::new(),
        after: Time::default(),
    };
    for &position in chain.order.iter().rev() {
        let reach = &chain.reach[position as usize];
        let mut phases = Phases::default();
        // Of all steps up to each one.
        let mut ends = Vec::new();
        // What is left of branches at the end, by fork.
        let mut after = Vec::new();
        let mut index = reach.items.start;
        while index < reach.items.end {
            match chain.items[index] {
                Item::Step { work, visits, phase, slot } => {
                    let stay = if slot == NONE { Stay::default() } else { stays[slot as usize] };
                    let mut calls = Calls::default();
                    let mut next = index + 1;
                    while next < reach.items.end && calls.take(chain.items[next], stays, waits, &result, &mut next) {}
                    let time = calls.execution(&plan.works[work], stay);
                    result.items[index] = time.mean;
                    phases[phase].add(time.times(visits));
                    ends.push(sum(&phases));
                    index = next;
                }
                Item::Fork { fork, first_chain } => {
                    let parallel = &plan.entries[reach.entry.index()].invocation.forks[fork];
                    let branches: Vec<Time> = (0..parallel.branches.len())
                        .map(|branch| {
                            let mut total = Time::default();
                            times[first_chain.offset(branch)].entries[0].iter().for_each(|time| total.add(*time));
                            total
                        })
                        .collect();
                    let end = ends.last().copied().unwrap_or_default();
                    let then = time_between(&ends, parallel.joined, end);
                    let left = still(parallel, &branches, &ends);
                    for (branch, (all, left)) in branches.iter().zip(&left).enumerate() {
                        let left = if parallel.quorum == Some(0) { left.left_after(then) } else { *left };
                        result.beside.push((first_chain.offset(branch), (all.mean - left.mean).max(0.0)));
                    }
                    let pairs: Vec<(f64, f64)> = left.iter().map(|time| (time.mean, time.variance)).collect();
                    let enough = parallel.quorum.unwrap_or(pairs.len());
                    let (mean, variance) = order_statistic(&pairs, enough);
                    let known = waits.together[first_chain];
                    let mean = known.map_or(mean, |known| known.0);
                    result.items[index] = mean;
                    phases[parallel.phase].add(Time { mean, variance }.times(parallel.visits));
                    let begun: Vec<Time> =
                        (0..left.len()).map(|branch| times[first_chain.offset(branch)].after).collect();
                    let begins = begun.iter().any(|begun| begun.mean > 0.0);
                    if enough < pairs.len() || begins {
                        // The thread is not free before the last branch has ended, though nobody waits for it.
                        let (mut all, mut spread) = order_statistic(&pairs, pairs.len());
                        let ended = all;
                        all = known.map_or(all, |known| known.1);
                        if begins {
                            let whole: Vec<(f64, f64)> = pairs
                                .iter()
                                .zip(&begun)
                                .map(|(own, begun)| (own.0 + begun.mean, own.1 + begun.variance))
                                .collect();
                            let whole = order_statistic(&whole, whole.len());
                            (all, spread) = (all + (whole.0 - ended).max(0.0), whole.1);
                        }
                        let left = Time { mean: (all - mean).max(0.0), variance: (spread - variance).max(0.0) };
                        after.push(left.left_after(then).times(parallel.visits));
                    }
                    index += 1;
                }
                Item::Call { .. } | Item::Flattened { .. } | Item::Send { .. } => index += 1,
            }
        }
        let pairs: Vec<(f64, f64)> = after.iter().map(|time| (time.mean, time.variance)).collect();
        let (mean, variance) = order_statistic(&pairs, pairs.len());
        let after = Time { mean, variance };
        if reach.strand > 0 {
            result.after = after;
        } else {
            let last = usize::from(!plan.is_source(plan.entries[reach.entry.index()].task));
            phases[last].add(after);
        }
        result.entries[position as usize] = phases;
    }
    result
}

/// The time from the end of that many steps, given the time up to the end of each, to an end.
fn time_between(ends: &[Time], steps: usize, end: Time) -> Time {
    let from = steps.checked_sub(1).map_or(Time::default(), |last| *ends.get(last).unwrap_or(&end));
    Time { mean: end.mean - from.mean, variance: (end.variance - from.variance).max(0.0) }
}

/// What is left of branches when one of them replies, where one does, given the time up to the end of each step.
fn still(fork: &Parallel, branches: &[Time], ends: &[Time]) -> Vec<Time> {
    let Some((replying, steps)) = &fork.replying else { return branches.to_vec() };
    let at = |step: usize| step.checked_sub(1).and_then(|last| ends.get(last)).copied().unwrap_or_default();
    let (from, to) = (at(steps.start), at(steps.end));
    let before = Time { mean: to.mean - from.mean, variance: (to.variance - from.variance).max(0.0) };
    let left = |(branch, time): (&usize, &Time)| if branch == replying { *time } else { time.left_after(before) };
    fork.branches.iter().zip(branches).map(left).collect()
}

fn sum(phases: &Phases) -> Time {
    let mut total = Time::default();
    for time in phases {
        total.add(*time);
    }
    total
}

/// Calls of one execution.
#[derive(Default)]
struct Calls {
    mean: f64,
    variance: f64,
    squares: f64,
}

impl Calls {
    /// Takes the item if it is a call and moves on.
    fn take(&mut self, item: Item, stays: &[Stay], waits: &Waits, result: &ChainTimes, next: &mut usize) -> bool {
        let (mean, time) = match item {
            Item::Call { mean, slot, to, .. } => {
                let service = waits.service[to.index()];
                let held: f64 = service.iter().map(|time| time.mean).sum();
                let wait = stays[slot as usize].wait;
                let variance = wait * (wait + 2.0 * held) + service[0].variance;
                (mean, Time { mean: wait + service[0].mean, variance })
            }
            Item::Flattened { mean, reach, .. } => (mean, result.entries[reach as usize][0]),
            Item::Send { .. } => {
                *next += 1;
                return true;
            }
            Item::Step { .. } | Item::Fork { .. } => return false,
        };
        self.mean += mean * time.mean;
        self.variance += mean * time.variance;
        self.squares += mean * time.mean * time.mean;
        *next += 1;
        true
    }

    fn execution(&self, work: &PlannedWork, stay: Stay) -> Time {
        let slice = slice(work, stay);
        let calls = work.own_calls();
        let mean = work.slices * slice.mean + work.think + self.mean;
        let mut variance = work.slices * slice.variance + work.think * work.think * work.think_cv2 + self.variance;
        if calls > 0.0 {
            let average = self.mean / calls;
            variance += (self.squares - self.mean * average).max(0.0);
            variance += work.variance_of_calls * (slice.mean + average) * (slice.mean + average);
        }
        Time { mean, variance }
    }
}
