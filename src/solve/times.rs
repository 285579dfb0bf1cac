//! Mean and variance of what a lane executes, given what it waits at its stations.
//!
//! An execution of a phase or an activity is a sequence of slices of processor time around its calls, whose number is
//! geometric or exact. Sequences add up; variances do so as if parts were independent.

use super::lanes::{Item, Lanes, NONE};
use super::maximum::until;
use super::mva::Stay;
use super::plan::{Plan, PlannedWork};

/// Mean and variance of a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Time {
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
}

/// Times of an entry's phases.
pub(super) type Phases = [Time; 3];

/// What the entries that queue take, and what lanes wait: the state that the outer iteration turns on.
#[derive(Clone, Debug)]
pub(super) struct Waits {
    /// By lane and slot.
    pub stays: Vec<Vec<Stay>>,
    /// By entry that queues.
    pub service: Vec<Phases>,
    /// By lane and slot: how much longer a visit takes because of other branches of the same fork.
    pub longer: Vec<Vec<f64>>,
    /// By first lane of the branches: the time of a fork whose branches share servers.
    pub together: Vec<Option<f64>>,
    /// By station: seconds of what is scarcest below.
    pub scarce: Vec<f64>,
}

impl Waits {
    /// What visits of a lane take beyond their service, in all.
    pub fn all(&self, lane: usize) -> Vec<Stay> {
        let longer = self.longer[lane].iter();
        self.stays[lane].iter().zip(longer).map(|(stay, longer)| Stay { wait: stay.wait + longer, ..*stay }).collect()
    }
}

/// Times of a lane's entries.
#[derive(Clone, Debug, Default)]
pub(super) struct LaneTimes {
    /// By position in [`super::lanes::Lane::reach`].
    pub entries: Vec<Phases>,
    /// By item: the mean time of one execution of a step, without its calls for those of calls.
    pub items: Vec<f64>,
}

/// The time of a slice and of a wait, by what a station adds.
pub(super) fn slice(work: &PlannedWork, stay: Stay) -> Time {
    let stretched = work.slice * (1.0 + stay.stretch);
    let waiting = stay.wait * (stay.wait + 2.0 * work.slice);
    Time { mean: stretched + stay.wait, variance: work.cv2 * stretched * stretched + waiting }
}

/// Evaluates all lanes of a group, branches first.
pub(super) fn group_times(plan: &Plan, lanes: &Lanes, group: usize, waits: &Waits, times: &mut [LaneTimes]) {
    for lane in lanes.groups[group].lanes.clone().rev() {
        let result = lane_times(plan, lanes, lane, waits, times);
        times[lane] = result;
    }
}

fn lane_times(plan: &Plan, lanes: &Lanes, number: usize, waits: &Waits, times: &[LaneTimes]) -> LaneTimes {
    let lane = &lanes.lanes[number];
    let stays = &waits.all(number);
    let mut result =
        LaneTimes { entries: vec![Phases::default(); lane.reach.len()], items: vec![0.0; lane.items.len()] };
    for &position in lane.order.iter().rev() {
        let reach = &lane.reach[position as usize];
        let mut phases = Phases::default();
        let mut index = reach.items.start;
        while index < reach.items.end {
            match lane.items[index] {
                Item::Step { work, visits, phase, slot } => {
                    let stay = if slot == NONE { Stay::default() } else { stays[slot as usize] };
                    let mut calls = Calls::default();
                    let mut next = index + 1;
                    while next < reach.items.end && calls.take(lane.items[next], stays, waits, &result, &mut next) {}
                    let time = calls.execution(&plan.works[work], stay);
                    result.items[index] = time.mean;
                    phases[phase].add(time.times(visits));
                    index = next;
                }
                Item::Fork { fork, first_lane } => {
                    let parallel = &plan.entries[reach.entry.index()].shape.forks[fork];
                    let branches: Vec<Time> = (0..parallel.branches.len())
                        .map(|branch| {
                            let mut total = Time::default();
                            times[first_lane + branch].entries[0].iter().for_each(|time| total.add(*time));
                            total
                        })
                        .collect();
                    let pairs: Vec<(f64, f64)> = branches.iter().map(|time| (time.mean, time.variance)).collect();
                    let (mean, variance) = until(&pairs, parallel.quorum.unwrap_or(pairs.len()));
                    let mean = waits.together[first_lane].unwrap_or(mean);
                    result.items[index] = mean;
                    phases[parallel.phase].add(Time { mean, variance }.times(parallel.visits));
                    index += 1;
                }
                Item::Call { .. } | Item::Inline { .. } | Item::Send { .. } => index += 1,
            }
        }
        result.entries[position as usize] = phases;
    }
    result
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
    fn take(&mut self, item: Item, stays: &[Stay], waits: &Waits, result: &LaneTimes, next: &mut usize) -> bool {
        let (mean, time) = match item {
            Item::Call { mean, slot, to, .. } => {
                let service = waits.service[to.index()];
                let held: f64 = service.iter().map(|time| time.mean).sum();
                let wait = stays[slot as usize].wait;
                let variance = wait * (wait + 2.0 * held) + service[0].variance;
                (mean, Time { mean: wait + service[0].mean, variance })
            }
            Item::Inline { mean, reach, .. } => (mean, result.entries[reach as usize][0]),
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
        let mut variance = work.slices * slice.variance + work.think * work.think + self.variance;
        if calls > 0.0 {
            let average = self.mean / calls;
            variance += (self.squares - self.mean * average).max(0.0);
            if !work.deterministic {
                variance += calls * (1.0 + calls) * (slice.mean + average) * (slice.mean + average);
            }
        }
        Time { mean, variance }
    }
}
