//! What functions wait for that is neither a call nor a processor: locks, devices, timers.
//!
//! An invocation that takes longer on the wall than on the processor was away from it. It waited for a processor that others used, or for a thread of its
//! process that others held: both are queueing, which solvers tell. Or it waited for something that no record names. What an invocation waits that meets
//! nobody when it begins is of the last kind. So the pauses of a function are those of its invocations that met the fewest others.

use std::hash::{Hash, Hasher};

use dyelog_callgraph::{Call, CallTree, ChainId, Key, Profile};
use rustc_hash::{FxHashMap, FxHasher};

use super::joins::waits;
use super::runtime::{Place, is_end, place_of};

/// The invocations whose pauses count: those that met the fewest others, so many at least, and one of so many.
const LEAST: usize = 5;
const PART: usize = 20;

/// A pause that takes less than this part of the time on the wall is as much as clocks are apart.
const LEAST_SHARE: f64 = 0.1;

/// The pauses of invocations that met the fewest others, nanoseconds.
#[derive(Default)]
pub struct Pauses {
    /// By the record that an invocation begins with.
    own: FxHashMap<(ChainId, u32), i64>,
    /// By function, or by threads of one, sorted.
    of_function: FxHashMap<Key, Vec<i64>>,
}

impl Pauses {
    /// The pauses of all functions. There are none where a clock is missing, or calls were not kept.
    pub fn new(profile: &Profile) -> Self {
        match &profile.calls {
            Some(calls) if !profile.wall => Self::of_all(&invocations(profile, calls)),
            _ => Self::default(),
        }
    }

    /// What an invocation pauses, nanoseconds. One that met others pauses as one of those that met the fewest, so that its pauses vary as theirs; which one,
    /// its name decides, so that it is the same in whatever order records come.
    pub fn of(&self, call: &Call, chain: &str) -> i64 {
        if let Some(own) = self.own.get(&(call.chain, call.event)) {
            return *own;
        }
        let Some(pauses) = self.of_function.get(&call.key) else { return 0 };
        let mut hasher = FxHasher::default();
        (chain, call.event).hash(&mut hasher);
        // The high bits are the ones that are mixed well.
        let part = (u128::from(hasher.finish()) * pauses.len() as u128) >> 64;
        pauses[part as usize]
    }

    fn of_all(all: &[Invocation]) -> Self {
        let mut order: Vec<&Invocation> = all.iter().collect();
        order.sort_by_key(|one| (one.key, one.met));
        let mut pauses = Self::default();
        for same in order.chunk_by(|one, other| one.key == other.key) {
            // Of fewer invocations nothing tells which of them met nobody.
            if same.len() < LEAST {
                continue;
            }
            let wanted = LEAST.max(same.len() / PART);
            let alone = &same[..same.partition_point(|one| one.met <= same[wanted - 1].met)];
            let sum = |of: fn(&Invocation) -> i64| alone.iter().map(|one| i128::from(of(one))).sum::<i128>();
            let (wall, away) = (sum(|one| one.wall), sum(|one| one.away));
            if away <= 0 || (away as f64) < LEAST_SHARE * wall as f64 {
                continue;
            }
            pauses.own.extend(alone.iter().map(|one| (one.begins_with, one.away.max(0))));
            let mut times: Vec<i64> = alone.iter().map(|one| one.away.max(0)).collect();
            times.sort_unstable();
            pauses.of_function.insert(same[0].key, times);
        }
        pauses
    }
}

/// An invocation of which both clocks are known.
struct Invocation {
    key: Key,
    begins_with: (ChainId, u32),
    /// How many others ran on its processor, or were visiting its process, when it began.
    met: usize,
    /// Nanoseconds on the wall without calls and threads that it waited for, and those of them that it was away from the processor.
    wall: i64,
    away: i64,
}

fn invocations(profile: &Profile, calls: &CallTree) -> Vec<Invocation> {
    let all = calls.calls();
    let own = own_intervals(calls);
    let mut running: FxHashMap<_, Crowd> = FxHashMap::default();
    let mut visiting: FxHashMap<Place, Crowd> = FxHashMap::default();
    for (place, intervals) in own.iter().enumerate() {
        let site = place_of(profile, all[place].site);
        let processor = running.entry(site[1]).or_default();
        for interval in intervals.iter().flatten() {
            processor.add(*interval);
        }
        if let Some((begin, end)) = known(&all[place])
            && is_end(&all[place], calls.parent(place).is_none())
        {
            visiting.entry(site).or_default().add((begin, end));
        }
    }
    running.values_mut().chain(visiting.values_mut()).for_each(Crowd::sort);
    let invocation = |(place, intervals): (usize, &Option<Vec<(i64, i64)>>)| {
        let (call, intervals) = (&all[place], intervals.as_ref()?);
        let ((begin, _), time) = (known(call)?, call.time?);
        let site = place_of(profile, call.site);
        let met = running.get(&site[1]).map_or(0, |crowd| crowd.at(begin))
            + visiting.get(&site).map_or(0, |crowd| crowd.at(begin));
        let wall = intervals.iter().fold(0i64, |sum, (begin, end)| sum.saturating_add(end.saturating_sub(*begin)));
        Some(Invocation {
            key: call.key,
            begins_with: (call.chain, call.event),
            met,
            wall,
            away: wall.saturating_sub(time),
        })
    };
    own.iter().enumerate().filter_map(invocation).collect()
}

/// The interval of a function on its own clock, where it is sound.
fn known(call: &Call) -> Option<(i64, i64)> {
    let interval = call.inside;
    (interval.is_some() && interval.end >= interval.begin).then_some((interval.begin, interval.end))
}

/// By call, when it ran itself: while none of its calls was out, nor a thread that it waits for. None where that is not known.
fn own_intervals(calls: &CallTree) -> Vec<Option<Vec<(i64, i64)>>> {
    let all = calls.calls();
    // What covers a call, and whether all of it is known.
    let mut covers: Vec<Option<Vec<(i64, i64)>>> = vec![Some(Vec::new()); all.len()];
    for (place, call) in all.iter().enumerate() {
        let Some(parent) = calls.parent(place) else { continue };
        if call.detached && !(call.key.is_thread() && waits(calls, place)) {
            continue;
        }
        let interval = if call.collocated || call.detached { call.inside } else { call.outside };
        match (&mut covers[parent], interval.is_some() && call.complete) {
            (Some(covers), true) => covers.push((interval.begin, interval.end)),
            (covers, _) => *covers = None,
        }
    }
    let own = |(covers, call): (Option<Vec<(i64, i64)>>, &Call)| {
        let (mut covers, (begin, end)) = (covers.filter(|_| call.complete)?, known(call)?);
        covers.sort_unstable();
        let (mut own, mut reached) = (Vec::new(), begin);
        for (from, to) in covers {
            if from > reached {
                own.push((reached, from.min(end)));
            }
            reached = reached.max(to);
        }
        if reached < end {
            own.push((reached, end));
        }
        own.shrink_to_fit();
        Some(own)
    };
    covers.into_iter().zip(all).map(own).collect()
}

/// Intervals, to be asked how many of them hold a point in time.
#[derive(Default)]
struct Crowd {
    begins: Vec<i64>,
    ends: Vec<i64>,
}

impl Crowd {
    fn add(&mut self, (begin, end): (i64, i64)) {
        if begin < end {
            self.begins.push(begin);
            self.ends.push(end);
        }
    }

    fn sort(&mut self) {
        self.begins.sort_unstable();
        self.ends.sort_unstable();
    }

    fn at(&self, time: i64) -> usize {
        self.begins.partition_point(|begin| *begin <= time) - self.ends.partition_point(|end| *end <= time)
    }
}
