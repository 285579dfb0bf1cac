//! How requests came to the instances of a task: in turn, to the least busy one, or by chance.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::lqn::Dispatching;
use crate::lqn::stays::{Rank, Stay};
use crate::lqn::submodel::{EntryTotal, SubModel};
use crate::model::pools::Edge;
use crate::model::{deployment, load};

/// Fewer gaps tell nothing.
const ENOUGH: u64 = 100;

/// Requests come in turn where gaps vary less than this part of what they do by chance. Of traces with 5 % of spans lost it is a quarter.
const REGULAR: f64 = 0.5;

/// This part of requests goes to any instance, whatever is under way there: of spans that were lost, of clocks, and of what dispatchers do not know yet (ours).
const ASTRAY: f64 = 0.1;

/// A policy that looks at what is under way is taken where it is so many times likelier than chance, as a logarithm (ours).
const LIKELIER: f64 = 6.0;

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

/// How requests came to the instances of a task (policies of Harchol-Balter, Performance Modeling and Design of Computer Systems, 2013, §24.1). It needs all requests: of sampled ones nothing is
/// told.
pub(super) fn of(sub: &SubModel, task: &str) -> Dispatching {
    if is_in_turn(sub, task) {
        return Dispatching::RoundRobin;
    }
    if !sub.scenarios.values().all(load::is_nearly_whole) {
        return Dispatching::FanOut;
    }
    let entries: Vec<&EntryTotal> = deployment::entries_of(sub, task).collect();
    let before: Option<Rank> = entries.iter().filter_map(|entry| entry.visits.complete_before()).min();
    let is_known = |stay: &Stay| stay.site != 0 && before.is_none_or(|before| stay.rank() < before);
    let pieces: Vec<Stay> = entries.iter().flat_map(|entry| entry.visits.kept()).filter(is_known).collect();
    Choices::of(&pieces).policy()
}

/// Whether requests came to the instances of a task in turn, as round robin dispatches them.
fn is_in_turn(sub: &SubModel, task: &str) -> bool {
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

/// How likely each policy would have chosen the instances that requests went to.
#[derive(Debug, Default)]
struct Choices {
    /// How many requests there were with a choice.
    count: u64,
    /// By how much likelier than chance the shortest queue is, as a logarithm.
    shortest: f64,
    /// The same of the shortest of two.
    of_two: f64,
}

impl Choices {
    /// Of ways of calls (part 0), and of visits, at all instances. A request is chosen for where it leaves its caller, or where it begins if nobody saw that.
    fn of(pieces: &[Stay]) -> Self {
        /// An instance from its first request to its last one.
        #[derive(Clone, Copy)]
        struct Instance {
            from: i64,
            to: i64,
            under_way: usize,
        }
        let mut numbers: BTreeMap<u32, usize> = BTreeMap::new();
        let mut instances: Vec<Instance> = Vec::new();
        let mut edges: Vec<(i64, Edge, usize)> = Vec::with_capacity(2 * pieces.len());
        for piece in pieces {
            let number = *numbers.entry(piece.site).or_insert(instances.len());
            if number == instances.len() {
                instances.push(Instance { from: piece.start, to: piece.end(), under_way: 0 });
            }
            let own = &mut instances[number];
            (own.from, own.to) = (own.from.min(piece.start), own.to.max(piece.end()));
            let both = if piece.part == 0 { (Edge::Leaves, Edge::Arrives) } else { (Edge::Begins, Edge::Ends) };
            edges.extend([(piece.start, both.0, number), (piece.end(), both.1, number)]);
        }
        edges.sort_unstable();
        let chooses = if pieces.iter().any(|piece| piece.part == 0) { Edge::Leaves } else { Edge::Begins };
        let mut choices = Self::default();
        for (time, edge, number) in edges {
            if edge == chooses {
                let there = instances.iter().filter(|own| own.from <= time && time <= own.to);
                choices.add(instances[number].under_way, there.map(|own| own.under_way));
            }
            let own = &mut instances[number].under_way;
            *own = match edge {
                Edge::Leaves | Edge::Begins => *own + 1,
                Edge::Arrives | Edge::Ends => own.saturating_sub(1),
            };
        }
        choices
    }

    /// A request that went where so many were under way, while so many were at all instances, that one included.
    fn add(&mut self, chosen: usize, all: impl Iterator<Item = usize>) {
        let (mut fewer, mut alike, mut more) = (0.0, 0.0, 0.0);
        for other in all {
            *match other.cmp(&chosen) {
                Ordering::Less => &mut fewer,
                Ordering::Equal => &mut alike,
                Ordering::Greater => &mut more,
            } += 1.0;
        }
        let copies: f64 = fewer + alike + more;
        if copies < 2.0 || alike < 1.0 {
            return;
        }
        self.count += 1;
        let pairs = |of: f64| of * (of - 1.0) / 2.0;
        let shortest = if fewer > 0.0 { 0.0 } else { 1.0 / alike };
        let of_two = (pairs(copies - fewer) - pairs(more)) / pairs(copies) / alike;
        let likelier = |probability: f64| ((1.0 - ASTRAY) * probability * copies + ASTRAY).ln();
        self.shortest += likelier(shortest);
        self.of_two += likelier(of_two);
    }

    fn policy(&self) -> Dispatching {
        if self.count < ENOUGH || self.shortest.max(self.of_two) < LIKELIER {
            Dispatching::FanOut
        } else if self.shortest >= self.of_two {
            Dispatching::ShortestQueue
        } else {
            Dispatching::ShortestOfTwo
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Choices, ENOUGH, Gaps};
    use crate::lqn::Dispatching;
    use crate::lqn::stays::Stay;

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

    /// Visits at so many instances, of which each request goes to the one that is chosen by what is under way at each; every so-manieth is lost.
    fn visits(copies: usize, lost: u64, choose: impl Fn(&[usize], &mut dyn FnMut(u64) -> u64) -> usize) -> Vec<Stay> {
        let mut values = chance(1 << 30);
        let mut draw = move |below: u64| values.next().expect("it does not end") % below;
        let mut ends: Vec<Vec<i64>> = vec![Vec::new(); copies];
        let (mut now, mut found) = (0_i64, Vec::new());
        for _ in 0..2_000 {
            // About one request is under way at each.
            now += 1 + draw(200 / copies as u64) as i64;
            for own in &mut ends {
                own.retain(|end| *end > now);
            }
            let under_way: Vec<usize> = ends.iter().map(Vec::len).collect();
            let site = choose(&under_way, &mut draw);
            let length = 1 + draw(200);
            ends[site].push(now + length as i64);
            if draw(100) >= lost {
                found.push(Stay { start: now, length, part: 1, site: site as u32 + 1 });
            }
        }
        found
    }

    #[test]
    fn the_shortest_queue_is_told_from_that_of_two_and_from_chance() {
        for copies in [2, 3, 5, 10] {
            for lost in [0, 5] {
                let two = |under_way: &[usize], draw: &mut dyn FnMut(u64) -> u64| {
                    let one = draw(copies as u64) as usize;
                    let other = (one + 1 + draw(copies as u64 - 1) as usize) % copies;
                    if under_way[other] < under_way[one] { other } else { one }
                };
                let all = |under_way: &[usize], draw: &mut dyn FnMut(u64) -> u64| {
                    let from = draw(copies as u64) as usize;
                    (0..copies).map(|step| (from + step) % copies).min_by_key(|one| under_way[*one]).unwrap_or(0)
                };
                let any = |_: &[usize], draw: &mut dyn FnMut(u64) -> u64| draw(copies as u64) as usize;
                let of_two = if copies == 2 { Dispatching::ShortestQueue } else { Dispatching::ShortestOfTwo };
                let case = format!("{copies} copies, {lost} % lost");
                assert_eq!(Choices::of(&visits(copies, lost, all)).policy(), Dispatching::ShortestQueue, "{case}");
                assert_eq!(Choices::of(&visits(copies, lost, two)).policy(), of_two, "{case}");
                assert_eq!(Choices::of(&visits(copies, lost, any)).policy(), Dispatching::FanOut, "{case}");
            }
        }
    }

    #[test]
    fn one_instance_leaves_no_choice() {
        assert_eq!(Choices::of(&visits(1, 0, |_, _| 0)).policy(), Dispatching::FanOut);
        assert_eq!(Choices::of(&[]).policy(), Dispatching::FanOut);
    }
}
