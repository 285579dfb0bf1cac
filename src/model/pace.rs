//! How long machines take for the same work, each against all of them.
//!
//! How long stays are tells of queues, too. So stays are not compared, but how often one ends while so many are there: machines that are alike serve as fast as each other
//! with as many. What all machines would have ended in the time that one had with each number there, by what it did end, is how much longer it takes (indirect
//! standardisation).

use std::collections::BTreeMap;

use crate::lqn::deployment::{Replica, site_of};
use crate::lqn::stays::{Rank, Stay};
use crate::lqn::submodel::{EntryTotal, SubModel};
use crate::model::deployment::{entries_of, site};
use crate::names::Name;

/// Fewer stays on a machine tell nothing (ours).
const ENOUGH: u64 = 50;

/// So many or more stays at a time count as so many.
const MOST: usize = 32;

/// How long a machine takes for the same work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// So many times as long as all machines together.
    pub factor: f64,
    /// Its relative standard error.
    pub error: f64,
}

/// What was there with some number of stays at a time.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    /// For how long, nanoseconds.
    time: f64,
    /// The work that ended then, each stay's by the mean of its kind.
    ended: f64,
}

/// What was there with each number of stays at a time.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    levels: [Level; MOST + 1],
    stays: u64,
}

impl Default for Levels {
    fn default() -> Self {
        Self { levels: [Level::default(); MOST + 1], stays: 0 }
    }
}

impl Levels {
    /// Takes in all of the other.
    pub fn merge(&mut self, other: &Self) {
        for (own, other) in self.levels.iter_mut().zip(&other.levels) {
            (own.time, own.ended) = (own.time + other.time, own.ended + other.ended);
        }
        self.stays += other.stays;
    }

    /// Of an instance, of which each stay has that work.
    fn add(&mut self, stays: &[(Stay, f64)]) {
        let mut edges: Vec<(i64, bool, f64)> = Vec::with_capacity(2 * stays.len());
        for (stay, work) in stays.iter().filter(|(stay, _)| stay.length > 0) {
            edges.extend([(stay.start, true, *work), (stay.end(), false, *work)]);
            self.stays += 1;
        }
        edges.sort_unstable_by(|one, other| (one.0, one.1).cmp(&(other.0, other.1)).then(one.2.total_cmp(&other.2)));
        let (mut there, mut since) = (0_usize, 0);
        for (at, begins, work) in edges {
            let level = &mut self.levels[there.min(MOST)];
            level.time += if there > 0 { at.abs_diff(since) as f64 } else { 0.0 };
            if begins {
                there += 1;
            } else {
                level.ended += work;
                there = there.saturating_sub(1);
            }
            since = at;
        }
    }
}

/// By machine of the instances of a task, else by instance; those with too few stays are left out.
pub(super) fn of<'s>(sub: &'s SubModel, task: &str) -> BTreeMap<&'s str, Pace> {
    compared(levels(sub, task, site))
}

/// What was there at each of the instances of a task, by a name of theirs.
pub(super) fn levels<'s>(sub: &'s SubModel, task: &str, name: fn(&Replica) -> Name) -> BTreeMap<&'s str, Levels> {
    let replicas = sub.deployment.replicas().map(|(replica, _)| replica);
    let named = replicas.filter(|own| sub.names.text(own.task) == task);
    let of = |own: &Replica| {
        let (instance, machine) = (sub.names.text(own.instance), sub.names.text(own.machine));
        (site_of(task, instance, machine), sub.names.text(name(own)))
    };
    let named: BTreeMap<u32, &str> = named.map(of).collect();
    let entries: Vec<&EntryTotal> = entries_of(sub, task).collect();
    let before: Option<Rank> = entries.iter().filter_map(|entry| entry.stays.complete_before()).min();
    let is_known = |stay: &Stay| named.contains_key(&stay.site) && before.is_none_or(|before| stay.rank() < before);
    // Parts of invocations of an entry are of a kind.
    let mut kinds: BTreeMap<(usize, u32), Vec<Stay>> = BTreeMap::new();
    for (number, entry) in entries.iter().enumerate() {
        for stay in entry.stays.kept().into_iter().filter(is_known) {
            kinds.entry((number, stay.part)).or_default().push(stay);
        }
    }
    let mut instances: BTreeMap<u32, Vec<(Stay, f64)>> = BTreeMap::new();
    for stays in kinds.into_values() {
        let mean = stays.iter().map(|stay| stay.length as f64).sum::<f64>() / stays.len() as f64;
        for stay in stays {
            instances.entry(stay.site).or_default().push((stay, mean));
        }
    }
    let mut own: BTreeMap<&str, Levels> = BTreeMap::new();
    for (site, stays) in &instances {
        own.entry(named[site]).or_default().add(stays);
    }
    own
}

/// Each against all of them.
pub(super) fn compared<K: Ord>(own: BTreeMap<K, Levels>) -> BTreeMap<K, Pace> {
    let mut all = [Level::default(); MOST + 1];
    for levels in own.values() {
        for (sum, level) in all.iter_mut().zip(&levels.levels) {
            sum.time += level.time;
            sum.ended += level.ended;
        }
    }
    let pace = |(machine, own): (K, Levels)| {
        let at_rates = own.levels.iter().zip(&all).filter(|(_, all)| all.time > 0.0);
        let expected: f64 = at_rates.map(|(own, all)| own.time * all.ended / all.time).sum();
        let ended: f64 = own.levels.iter().map(|level| level.ended).sum();
        let is_known = own.stays >= ENOUGH && ended > 0.0 && expected > 0.0;
        is_known.then(|| (machine, Pace { factor: expected / ended, error: 1.0 / (own.stays as f64).sqrt() }))
    };
    own.into_iter().filter_map(pace).collect()
}

#[cfg(test)]
mod tests {
    use super::{Levels, Pace, compared};
    use crate::lqn::stays::Stay;
    use std::collections::BTreeMap;

    /// Stays at a server that takes first what comes first, each for so many nanoseconds as are drawn.
    fn served(seed: u64, interval: f64, mut draw: impl FnMut(f64) -> f64) -> Levels {
        let (mut state, mut now, mut free) = (seed, 0.0_f64, 0.0_f64);
        let mut uniform = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        };
        let stay = |_| {
            now -= uniform().ln() * interval;
            free = free.max(now) + draw(uniform());
            let stay = Stay { start: now as i64, length: (free - now) as u64, part: 0, site: 1 };
            (stay, 1.0)
        };
        let stays: Vec<(Stay, f64)> = (0..4_000).map(stay).collect();
        let mut levels = Levels::default();
        levels.add(&stays);
        levels
    }

    /// How much longer the third of three takes than the first.
    fn third(levels: [Levels; 3]) -> f64 {
        let found: BTreeMap<usize, Pace> = compared(levels.into_iter().enumerate().collect());
        assert_eq!(found.len(), 3);
        found[&2].factor / found[&0].factor
    }

    #[test]
    fn slow_machines_are_told_from_busy_ones() {
        let exponential = |mean: f64| move |uniform: f64| -uniform.ln() * mean;
        let constant = |mean: f64| move |_: f64| mean;
        // Twice the requests, and the same pace.
        let alike = third([
            served(1, 3e6, exponential(1e6)),
            served(2, 3e6, exponential(1e6)),
            served(3, 1.5e6, exponential(1e6)),
        ]);
        assert!((alike - 1.0).abs() < 0.08, "{alike}");
        // As many requests, each for longer.
        let slow = third([
            served(1, 3e6, exponential(1e6)),
            served(2, 3e6, exponential(1e6)),
            served(3, 3e6, exponential(1.6e6)),
        ]);
        assert!((slow - 1.6).abs() < 0.12, "{slow}");
        let slow =
            third([served(1, 3e6, constant(1e6)), served(2, 3e6, constant(1e6)), served(3, 3e6, constant(1.6e6))]);
        assert!((slow - 1.6).abs() < 0.2, "{slow}");
    }

    #[test]
    fn few_stays_tell_nothing() {
        let mut few = Levels::default();
        few.add(&[(Stay { start: 0, length: 5, part: 0, site: 1 }, 1.0)]);
        assert!(compared(BTreeMap::from([(0, few), (1, Levels::default())])).is_empty());
    }
}
