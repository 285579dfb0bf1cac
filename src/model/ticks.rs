//! Operations that begin together, as a timer lets them, with nothing between.
//!
//! All that begins together is one event of the process that lets operations begin. So a pause between two such events is judged by the time between others, and of n operations in m
//! events n (m − 1)/m begin in the time from the first event to the last. Operations that begin together queue for each other, longer than those of independent arrivals at the same rate.

use crate::diagnostic::quantity::time;
use crate::diagnostic::{Diagnostic, Place};
use crate::lqn::starts::Stretch;
use crate::lqn::stays::{self, PERIOD, Stay};
use crate::lqn::submodel::ScenarioTotal;
use crate::model::load::{self, short};
use crate::model::{clocks, codes};

/// The fewest operations that begin together on the mean (ours).
const FEWEST: f64 = 2.0;
/// Where not all of them begin at one time, they do so within this part of the time to the next (ours),
const WITHIN: f64 = 0.05;
/// as at least so many such events show.
const EVENTS: usize = 3;
/// A timer's periods differ by no more than this part of them,
const ALIKE: f64 = 0.1;
/// but for this part of all.
const MOSTLY: f64 = 0.9;

/// Operations that begin together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ticks {
    /// How many on the mean.
    pub each: f64,
    /// From one such event to the next, seconds, where that is always as long.
    pub period: Option<f64>,
}

/// How operations of a scenario begin together; `None` where they begin one by one, or at one time alone.
pub fn of(total: &ScenarioTotal) -> Option<Ticks> {
    if total.starts.cells().iter().all(|cell| cell.operations < 2) {
        return None;
    }
    let stretches = total.stays.stretches(total.stays.complete_before());
    let step = clocks::step_of(total.grain).unwrap_or(0);
    // Operations that begin while the first of them is under way were let begin with it, if nothing begins for long after that.
    let response = total.response.mean().map_or(0, |mean| (mean * 1e9) as u64);
    let found = [step, response].into_iter().find_map(|within| Events::of(&stretches, within).ticks());
    found.filter(|ticks| total.operations as f64 >= 1.5 * ticks.each)
}

/// The same of scenarios with so few such events that one of them more or less shows in the rate: others are not looked at.
pub fn few(total: &ScenarioTotal) -> Option<Ticks> {
    let stands_apart = |pair: &[Stretch]| {
        let to_next = pair[1].first.abs_diff(pair[0].first) as f64 * 1e-9;
        pair[0].operations > 1 && pair[0].seconds() <= WITHIN * to_next
    };
    if total.starts.cells().windows(2).any(stands_apart) { of(total) } else { None }
}

/// Starts of operations, those together that follow the first of them within some time.
#[derive(Default)]
struct Events {
    operations: usize,
    /// From the first start of each to its last, nanoseconds.
    lengths: Vec<u64>,
    /// From the first start of each to that of the next.
    apart: Vec<u64>,
}

impl Events {
    fn of(stretches: &[Vec<Stay>], within: u64) -> Self {
        let mut events = Self::default();
        for stretch in stretches {
            let mut before: Option<(i64, i64)> = None;
            for start in stretch.iter().map(|stay| stay.start) {
                events.operations += 1;
                match &mut before {
                    Some((first, last)) if start.abs_diff(*first) <= within => *last = start,
                    other => {
                        if let Some((first, last)) = other.replace((start, start)) {
                            events.lengths.push(last.abs_diff(first));
                            events.apart.push(start.abs_diff(first));
                        }
                    }
                }
            }
            events.lengths.extend(before.map(|(first, last)| last.abs_diff(first)));
        }
        events.lengths.sort_unstable();
        events.apart.sort_unstable();
        events
    }

    fn ticks(&self) -> Option<Ticks> {
        let middle = |of: &[u64]| of.get(of.len() / 2).copied();
        let each = self.operations as f64 / self.lengths.len().max(1) as f64;
        // Each may lie in a period of its own, of which it is all that is kept.
        let apart = middle(&self.apart).unwrap_or(1 << PERIOD);
        let at_once = self.lengths.last() == Some(&0);
        let close = self.lengths.len() >= EVENTS && middle(&self.lengths)? as f64 <= WITHIN * apart as f64;
        if each < FEWEST || !(at_once || close) {
            return None;
        }
        let is_alike = |own: &&u64| own.abs_diff(apart) as f64 <= ALIKE * apart as f64;
        let alike = self.apart.iter().filter(is_alike).count();
        let regular = self.apart.len() >= EVENTS && alike as f64 >= MOSTLY * self.apart.len() as f64;
        Some(Ticks { each, period: regular.then_some(apart as f64 * 1e-9) })
    }
}

impl Ticks {
    /// Adds to what there is to say about a rate that operations begin together.
    pub fn told(self, told: Diagnostic) -> Diagnostic {
        let each = short((self.each * 10.0).round() / 10.0);
        let so = match self.period {
            Some(period) => format!("{each} of them begin together on the mean, every {}, as by a timer", time(period)),
            None => format!("{each} of them begin together on the mean"),
        };
        told.with_note(format!(
            "{so}: they queue for each other, longer than the independent arrivals of the model at the same rate"
        ))
    }
}

/// The fewest operations of a scenario that tell whether they begin together with those of others (ours),
const TELLING: usize = 30;
/// and the part of them that does (ours). Of independent arrivals a tenth begins so near to others by chance.
const JOINED: f64 = 0.5;
/// Scenarios that are named.
const NAMED: usize = 5;

/// Warns where operations of several scenarios begin together, as where one page asks for all of them: each by itself begins as independent arrivals do.
pub fn together<'t>(scenarios: impl Iterator<Item = (&'t str, &'t ScenarioTotal)>) -> Option<Diagnostic> {
    let told: Vec<(&str, &ScenarioTotal)> =
        scenarios.filter(|(_, total)| total.stays.kept().len() >= TELLING && load::is_nearly_whole(total)).collect();
    let before = told.iter().filter_map(|(_, total)| total.stays.complete_before()).min();
    let mut starts: Vec<(i64, usize)> = Vec::new();
    for (number, (_, total)) in told.iter().enumerate() {
        let kept = total.stays.in_order();
        starts.extend(stays::before(&kept, before).iter().map(|stay| (stay.start, number)));
    }
    starts.sort_unstable();
    let gaps: Vec<u64> = starts.windows(2).map(|two| two[1].0.abs_diff(two[0].0)).collect();
    // What was kept are whole stretches of time, with others between them.
    let (count, sum) =
        gaps.iter().filter(|gap| **gap >> PERIOD == 0).fold((0_u64, 0_u64), |(count, sum), gap| (count + 1, sum + gap));
    let within = (WITHIN * sum as f64 / count.max(1) as f64) as u64;
    let is_coarse = told.iter().any(|(_, total)| clocks::step_of(total.grain).is_some_and(|step| step >= within));
    if is_coarse {
        return None;
    }
    let before = nearest_others(starts.iter());
    let after = nearest_others(starts.iter().rev());
    let mut joined = vec![(0_usize, 0_usize); told.len()];
    for ((start, own), (before, after)) in starts.iter().zip(before.iter().zip(after.iter().rev())) {
        let is_near = |other: &Option<i64>| other.is_some_and(|other| other.abs_diff(*start) <= within);
        joined[*own].0 += 1;
        joined[*own].1 += usize::from(is_near(before) || is_near(after));
    }
    let part = |(all, joined): &(usize, usize)| *joined as f64 / (*all).max(1) as f64;
    let found: Vec<(&str, f64)> = told
        .iter()
        .zip(&joined)
        .filter(|(_, own)| own.0 >= TELLING && part(own) >= JOINED)
        .map(|((name, _), own)| (*name, part(own)))
        .collect();
    if found.len() < 2 {
        return None;
    }
    let names: Vec<String> = found.iter().take(NAMED).map(|(name, _)| format!("`{name}`")).collect();
    let more = found.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let least = found.iter().map(|(_, part)| *part).fold(1.0, f64::min);
    let message = format!("operations of {}{more} begin together", names.join(", "));
    Some(
        Diagnostic::warning(codes::NOT_STEADY, Place::Nowhere, message)
            .with_note(format!(
                "{} % or more of each begin within {} of one of the others, as where one page asks for all of them",
                (100.0 * least).floor(),
                time(within as f64 * 1e-9)
            ))
            .with_note("they queue for each other, longer than the independent arrivals of the model at the same rates, and the more so under more load")
            .with_hint("trace what asks for them as one operation, such as the page"),
    )
}

/// By start, in the order in which they come: the last start before it of another scenario.
fn nearest_others<'s>(starts: impl Iterator<Item = &'s (i64, usize)>) -> Vec<Option<i64>> {
    // The last one, and the last one of another scenario than that.
    let mut last: Option<(i64, usize)> = None;
    let mut other: Option<i64> = None;
    let nearest = |&(start, own): &(i64, usize)| {
        let found = match last {
            Some((_, of_last)) if of_last == own => other,
            found => found.map(|(before, _)| before),
        };
        if last.is_some_and(|(_, of_last)| of_last != own) {
            other = last.map(|(before, _)| before);
        }
        last = Some((start, own));
        found
    };
    starts.map(nearest).collect()
}

#[cfg(test)]
mod tests {
    use super::{of, together};
    use crate::lqn::stays::Stay;
    use crate::lqn::submodel::ScenarioTotal;

    const SECOND: i64 = 1_000_000_000;

    /// Operations that take 0.2 s.
    fn total(starts: impl Iterator<Item = i64>) -> ScenarioTotal {
        let mut total = ScenarioTotal { grain: 1, ..ScenarioTotal::default() };
        for start in starts {
            total.operations += 1;
            total.starts.add(start, Some(0.2));
            total.response.add(0.2);
            total.stays.add(Stay { start, length: 200_000_000, part: 0, site: 0 });
        }
        total
    }

    fn random(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        }
    }

    #[test]
    fn what_a_timer_lets_begin_begins_together() {
        for spread in [0, 100_000] {
            for (ticks, each) in [(12, 200), (60, 50), (300, 100)] {
                let starts = (0..ticks).flat_map(|tick| (0..each).map(move |own| tick * SECOND + own * spread));
                let found = of(&total(starts)).expect("they begin together");
                // Where not all are kept, the last of these may be cut.
                assert!((found.each / each as f64 - 1.0).abs() < 0.01, "{found:?}");
                assert!((found.period.expect("it is a timer's") - 1.0).abs() < 1e-9, "{found:?}");
            }
        }
        let mut uniform = random(3);
        let mut now = 0;
        let mut next = || {
            now += (uniform() * 3e9) as i64;
            [now; 20]
        };
        let found = of(&total((0..100).flat_map(|_| next()))).expect("they begin together");
        assert!(found.period.is_none() && (found.each - 20.0).abs() < 0.5, "{found:?}");
    }

    #[test]
    fn independent_arrivals_and_recordings_of_them_do_not() {
        for rate in [1.0, 10.0, 100.0, 1000.0] {
            let mut uniform = random(5);
            let mut now = 0.0;
            let mut next = || {
                now -= uniform().ln() / rate * 1e9;
                now as i64
            };
            let starts: Vec<i64> = (0..4000).map(|_| next()).collect();
            assert_eq!(of(&total(starts.iter().copied())), None, "{rate}");
            // Three recordings, an hour apart.
            let parts = (0..).zip(&starts).map(|(number, start)| start + number / 1334 * 3600 * SECOND);
            assert_eq!(of(&total(parts)), None, "{rate}");
        }
        assert_eq!(of(&total(std::iter::repeat_n(7, 100))), None, "at one time alone");
    }

    /// Each of three scenarios begins at random; two of them at the same times.
    #[test]
    fn scenarios_that_begin_together_are_named() {
        let (mut one, mut other) = (random(3), random(5));
        let times = |next: &mut dyn FnMut() -> f64| {
            let mut now = 0.0;
            (0..500)
                .map(|_| {
                    now -= next().ln();
                    (now * 1e9) as i64
                })
                .collect::<Vec<i64>>()
        };
        let (pages, others) = (times(&mut one), times(&mut other));
        let (cart, menu) = (total(pages.iter().copied()), total(pages.iter().map(|start| start + 3_000_000)));
        let apart = total(others.into_iter());
        let found =
            together([("cart", &cart), ("menu", &menu), ("batch", &apart)].into_iter()).expect("two of them do");
        assert_eq!(found.message, "operations of `cart`, `menu` begin together");
        assert!(together([("cart", &cart), ("batch", &apart)].into_iter()).is_none());
    }
}
