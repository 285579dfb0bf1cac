//! How requests came to the instances of a task: in turn, or by chance.

use std::collections::BTreeMap;

use crate::lqn::stays::Stay;
use crate::lqn::submodel::{EntryTotal, SubModel};
use crate::model::deployment;

/// Fewer gaps tell nothing.
const ENOUGH: u64 = 100;

/// Requests come in turn where gaps vary less than this part of what they do by chance. Of traces with 5 % of spans lost it is a quarter.
const REGULAR: f64 = 0.5;

/// Gaps between requests to the same instance, counted in requests of the task: their number, sum and sum of squares.
#[derive(Clone, Copy, Debug, Default)]
struct Gaps {
    count: u64,
    sum: f64,
    squares: f64,
}

impl Gaps {
    /// Of the instances that requests came to, one after the other.
    fn add(&mut self, instances: impl Iterator<Item = u32>) {
        let mut last: BTreeMap<u32, u64> = BTreeMap::new();
        for (number, instance) in (0..).zip(instances) {
            if let Some(before) = last.insert(instance, number) {
                let gap = (number - before) as f64;
                self.count += 1;
                self.sum += gap;
                self.squares += gap * gap;
            }
        }
    }

    /// Their variance, relative to that of choices by chance: where each of R instances has the next request with equal probability, gaps are geometric with R(R − 1).
    fn variance_to_chance(self) -> Option<f64> {
        let mean = self.sum / self.count as f64;
        let variance = self.squares / self.count as f64 - mean * mean;
        (self.count >= ENOUGH && mean > 1.0).then(|| variance / (mean * (mean - 1.0)))
    }
}

/// Whether requests came to the instances of a task in turn, as round robin dispatches them (Harchol-Balter, Performance Modeling and Design of Computer Systems, 2013, §24.1).
/// It needs all requests: of sampled ones nothing is told.
pub(super) fn is_in_turn(sub: &SubModel, task: &str) -> bool {
    let entries: Vec<&EntryTotal> = deployment::entries_of(sub, task).filter(|entry| entry.stays.seen() > 0).collect();
    let before = entries.iter().filter_map(|entry| entry.stays.complete_before()).min();
    // The first stay of an invocation begins where its request comes; all entries take turns together.
    let mut came: Vec<(i64, u32)> = Vec::new();
    for entry in entries {
        let is_first =
            |stay: &Stay| stay.part == 0 && stay.site != 0 && before.is_none_or(|before| stay.rank() < before);
        let first = entry.stays.kept().into_iter().filter(is_first);
        came.extend(first.map(|stay| (stay.start, stay.site)));
    }
    came.sort_unstable();
    let mut gaps = Gaps::default();
    gaps.add(came.into_iter().map(|(_, site)| site));
    gaps.variance_to_chance().is_some_and(|part| part < REGULAR)
}

#[cfg(test)]
mod tests {
    use super::{ENOUGH, Gaps};

    /// The variance of gaps of such instances, relative to chance.
    fn part(instances: impl Iterator<Item = u32>) -> Option<f64> {
        let mut gaps = Gaps::default();
        gaps.add(instances);
        gaps.variance_to_chance()
    }

    /// Numbers below that one by chance.
    fn chance(below: u64) -> impl Iterator<Item = u64> {
        let mut state = 1_998_u64;
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        })
    }

    #[test]
    fn turns_are_told_from_chance() {
        let turns = || (0..1_000).map(|number| number % 3);
        assert!(part(turns()).is_some_and(|part| part < 1e-9));
        let lost = turns().zip(chance(20)).filter(|(_, lost)| *lost > 0).map(|(instance, _)| instance);
        assert!(part(lost).is_some_and(|part| part < 0.3));
        let random = part(chance(3).take(1_000).map(|number| number as u32)).expect("there are enough");
        assert!((random - 1.0).abs() < 0.2, "{random}");
        let sampled = turns().zip(chance(10)).filter(|(_, kept)| *kept == 0).map(|(instance, _)| instance);
        assert!(part(sampled.chain((0..1).map(|_| 0))).is_none_or(|part| part > 0.5));
    }

    #[test]
    fn few_requests_tell_nothing() {
        assert_eq!(part((0..ENOUGH as u32).map(|number| number % 2)), None);
        assert_eq!(part((0..1_000).map(|_| 7)), None);
    }
}
