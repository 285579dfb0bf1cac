//! Which value of a parameter is the largest, the smallest or the cheapest that meets a goal.
//!
//! Along a [`Line`] of values a goal is expected to be met on one side only. The change is bracketed from a start, by steps that
//! double, and bisected. Where nothing is met on the way, the search goes on to the other side of the start; and between two values
//! of which one misses only goals that the other meets, all of them may be met: there a window is looked for, which several goals
//! leave open that each hold on one side. Since there may be more than one change, values spread over both sides are then
//! tried as well; should one of them be met that lies beyond the change, the search goes on from there. So the answer is always a
//! value that was tried and met, its neighbour was tried and is not, and what was tried between is all there to see.
//!
//! The work is bounded: a bracket of at most 2⁶⁴ values takes as many evaluations as it has bits, twice, and so does each window beside
//! the checks, of which there are no more than values tried.

use std::collections::BTreeMap;

use crate::study::search::line::Line;

/// What is looked for along a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// The largest value that meets the goal.
    Largest,
    /// The smallest value that meets the goal.
    Smallest,
}

/// Whether a value meets the goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It does.
    Met,
    /// Nobody can tell: it is not counted as met.
    Unknown,
    /// It does not.
    Missed,
}

/// What the evaluation of a value found.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried<T> {
    /// Whether it meets all goals.
    pub verdict: Verdict,
    /// Numbers of those that it does not meet, one at least where it does not meet all.
    pub missed: Vec<usize>,
    /// What was found out besides.
    pub told: T,
}

/// How a search goes about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchOptions {
    /// What is looked for.
    pub aim: Aim,
    /// A value to begin with, such as the present one.
    pub start: Option<f64>,
    /// Values to try besides, on both sides of the answer; all there are where these are not more.
    pub checks: usize,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found<T> {
    /// What was tried, by place on the line.
    pub tried: BTreeMap<u64, Tried<T>>,
    /// The place of the answer.
    pub answer: Option<u64>,
    /// The place beside the answer, on the side looked to, which does not meet the goal; `None` where the line ends there.
    pub beyond: Option<u64>,
    /// The last place that was looked at: the end of the line, or some way beyond the change where it is open.
    pub end: u64,
}

impl<T> Found<T> {
    /// Whether every value was tried.
    pub fn is_complete(&self) -> bool {
        self.tried.len() as u64 == self.end + 1
    }

    /// How often, along the values tried, the verdict changes between met and not met.
    pub fn changes(&self) -> usize {
        let met: Vec<bool> = self.tried.values().map(|tried| tried.verdict == Verdict::Met).collect();
        met.windows(2).filter(|pair| pair[0] != pair[1]).count()
    }
}

/// Searches a line. `attempt` tries a value, at each at most once.
pub fn search<T>(line: &Line, options: &SearchOptions, attempt: impl FnMut(f64) -> Tried<T>) -> Found<T> {
    let mut search = Search { line, aim: options.aim, tried: BTreeMap::new(), attempt };
    let start = options.start.map_or(0, |value| line.place(value)).min(line.end());
    search.change(start);
    if search.answer().is_none()
        && let Some(place) = search.windows().or_else(|| search.turn(start))
    {
        search.change(place);
    }
    let end = search.end();
    search.check(end, options.checks);
    if search.answer().is_none() {
        search.windows();
    }
    search.refine();
    let answer = search.answer();
    let beyond = answer.and_then(|answer| match options.aim {
        Aim::Largest => (answer < line.end()).then(|| answer + 1),
        Aim::Smallest => answer.checked_sub(1),
    });
    Found { tried: search.tried, answer, beyond, end }
}

struct Search<'l, T, Attempt> {
    line: &'l Line,
    aim: Aim,
    tried: BTreeMap<u64, Tried<T>>,
    attempt: Attempt,
}

impl<T, Attempt: FnMut(f64) -> Tried<T>> Search<'_, T, Attempt> {
    fn is_met(&mut self, place: u64) -> bool {
        if let Some(tried) = self.tried.get(&place) {
            return tried.verdict == Verdict::Met;
        }
        let tried = (self.attempt)(self.line.value(place));
        let met = tried.verdict == Verdict::Met;
        self.tried.insert(place, tried);
        met
    }

    /// Finds a change from this place on.
    fn change(&mut self, start: u64) {
        let change = self.bracket(start);
        self.bisect(change);
    }

    /// Looks from the start to the side that a bracket did not go to, by steps that double, for a place that meets all goals.
    fn turn(&mut self, start: u64) -> Option<u64> {
        let end = self.line.end();
        let mut place = start;
        let mut step = self.line.doubling(place);
        loop {
            let next = match self.aim {
                Aim::Largest if place < end => place.saturating_add(step).min(end),
                Aim::Smallest if place > 0 => place.saturating_sub(step),
                _ => return None,
            };
            if self.is_met(next) {
                return Some(next);
            }
            if let Some(found) = self.window(place.min(next), place.max(next)) {
                return Some(found);
            }
            place = next;
            step = step.saturating_mul(2);
        }
    }

    /// A place that meets all goals between two neighbours among those tried, where there is one.
    fn windows(&mut self) -> Option<u64> {
        let places: Vec<u64> = self.tried.keys().copied().collect();
        places.windows(2).find_map(|pair| self.window(pair[0], pair[1]))
    }

    /// A place between two that meets all goals, if each of these is met on one side only: it can lie only between two of
    /// which neither misses what the other misses.
    fn window(&mut self, mut low: u64, mut high: u64) -> Option<u64> {
        while high - low > 1 && self.are_opposed(low, high) {
            let middle = low.midpoint(high);
            if self.is_met(middle) {
                return Some(middle);
            }
            // Neither side is left where it misses goals of both.
            if self.are_opposed(middle, high) {
                low = middle;
            } else if self.are_opposed(low, middle) {
                high = middle;
            } else {
                return None;
            }
        }
        None
    }

    /// Whether no goal is missed at both places.
    fn are_opposed(&self, left: u64, right: u64) -> bool {
        match (self.tried.get(&left), self.tried.get(&right)) {
            (Some(left), Some(right)) => left.missed.iter().all(|goal| !right.missed.contains(goal)),
            _ => false,
        }
    }

    /// Whether a place looks like those below the change: met where the largest is looked for.
    fn is_below(&mut self, place: u64) -> bool {
        self.is_met(place) == (self.aim == Aim::Largest)
    }

    /// Two places with the change between them, each where there is one.
    fn bracket(&mut self, start: u64) -> (Option<u64>, Option<u64>) {
        let end = self.line.end();
        let mut place = start;
        let mut step = self.line.doubling(place);
        if self.is_below(place) {
            while place < end {
                let next = place.saturating_add(step).min(end);
                if !self.is_below(next) {
                    return (Some(place), Some(next));
                }
                place = next;
                step = step.saturating_mul(2);
            }
            (Some(place), None)
        } else {
            step = step.min((place / 2).max(1));
            while place > 0 {
                let next = place.saturating_sub(step);
                if self.is_below(next) {
                    return (Some(next), Some(place));
                }
                place = next;
                step = step.saturating_mul(2);
            }
            (None, Some(place))
        }
    }

    fn bisect(&mut self, change: (Option<u64>, Option<u64>)) {
        let (Some(mut low), Some(mut high)) = change else { return };
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.is_below(middle) { low = middle } else { high = middle }
        }
    }

    /// How far to look: some way beyond what was tried where the line is open.
    fn end(&self) -> u64 {
        let furthest = self.tried.keys().next_back().copied().unwrap_or(0);
        if self.line.is_open() { furthest.saturating_mul(2).max(8).min(self.line.end()) } else { self.line.end() }
    }

    /// Tries values on both sides of the change, of the whole range where nothing was met, and its ends.
    fn check(&mut self, end: u64, checks: usize) {
        let left = (end + 1).saturating_sub(self.tried.len() as u64);
        if left <= checks as u64 {
            (0..=end).for_each(|place| {
                self.is_met(place);
            });
            return;
        }
        let below = checks.div_ceil(2);
        let sides = match self.answer() {
            Some(change) => vec![(0, change, below), (change, end, checks - below)],
            None => vec![(0, end, checks)],
        };
        let widely = self.answer().is_none() && self.line.is_open();
        for (from, to, count) in sides {
            for number in 0..count as u64 {
                // In the middle of parts of one length, or at equal ratios where only doubling led so far.
                let wide = if widely {
                    ((to - from) as f64).powf((number as f64 + 0.5) / count as f64) as u64
                } else {
                    (u128::from(to - from) * u128::from(2 * number + 1) / (2 * count as u128)) as u64
                };
                self.is_met(from + wide);
            }
        }
        self.is_met(end);
        self.is_met(0);
    }

    /// Finds the change beside the answer, which checks may have moved.
    fn refine(&mut self) {
        let Some(mut answer) = self.answer() else { return };
        let beyond = match self.aim {
            Aim::Largest => self.tried.range(answer + 1..).next().map(|(place, _)| *place),
            Aim::Smallest => self.tried.range(..answer).next_back().map(|(place, _)| *place),
        };
        let Some(mut beyond) = beyond else { return };
        while answer.abs_diff(beyond) > 1 {
            let middle = answer.midpoint(beyond);
            if self.is_met(middle) { answer = middle } else { beyond = middle }
        }
    }

    fn answer(&self) -> Option<u64> {
        let mut met = self.tried.iter().filter(|(_, tried)| tried.verdict == Verdict::Met).map(|(place, _)| *place);
        match self.aim {
            Aim::Largest => met.next_back(),
            Aim::Smallest => met.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Aim, Line, SearchOptions, Tried, Verdict, search};

    fn whole(last: Option<f64>) -> Line {
        Line::Whole { first: 1.0, last }
    }

    fn options(aim: Aim, start: Option<f64>, checks: usize) -> SearchOptions {
        SearchOptions { aim, start, checks }
    }

    fn verdict(met: bool) -> Tried<()> {
        both(met, true)
    }

    /// Of two goals.
    fn both(one: bool, other: bool) -> Tried<()> {
        let missed: Vec<usize> =
            [one, other].iter().enumerate().filter(|(_, met)| !**met).map(|(goal, _)| goal).collect();
        Tried { verdict: if missed.is_empty() { Verdict::Met } else { Verdict::Missed }, missed, told: () }
    }

    proptest! {
        #[test]
        fn one_change_is_found_from_anywhere(change in 1..5000_u32, start in prop::option::of(1..5000_u32), open: bool, checks in 0..20_usize) {
            let line = whole((!open).then_some(5000.0));
            let start = start.map(f64::from);
            let found = search(&line, &options(Aim::Largest, start, checks), |value| verdict(value <= f64::from(change)));
            prop_assert_eq!(found.answer.map(|place| line.value(place)), Some(f64::from(change)));
            prop_assert!(found.tried.len() <= 40 + checks, "{} tried", found.tried.len());
            prop_assert_eq!(found.beyond.is_some(), open || change < 5000);
            let found = search(&line, &options(Aim::Smallest, start, checks), |value| verdict(value >= f64::from(change)));
            prop_assert_eq!(found.answer.map(|place| line.value(place)), Some(f64::from(change)));
            prop_assert_eq!(found.beyond.is_some(), change > 1);
        }

        #[test]
        fn one_change_is_found_from_either_side_of_it(change in 1..5000_u32, start in 1..5000_u32, open: bool) {
            // What is looked for lies at an end, the change on the way there.
            let line = whole((!open).then_some(5000.0));
            let start = Some(f64::from(start));
            let found = search(&line, &options(Aim::Largest, start, 4), |value| verdict(value >= f64::from(change)));
            prop_assert_eq!(found.answer, Some(line.end()));
            let found = search(&line, &options(Aim::Smallest, start, 4), |value| verdict(value <= f64::from(change)));
            prop_assert_eq!(found.answer, Some(0));
        }

        #[test]
        fn a_window_between_goals_is_found(low in 1..3000_u32, wide in 0..40_u32, start in 1..5000_u32, open: bool, checks in 0..20_usize) {
            let line = whole((!open).then_some(5000.0));
            let (low, high) = (f64::from(low), f64::from(low + wide));
            for (aim, expected) in [(Aim::Largest, high), (Aim::Smallest, low)] {
                let options = options(aim, Some(f64::from(start)), checks);
                let found = search(&line, &options, |value| both(value >= low, value <= high));
                prop_assert_eq!(found.answer.map(|place| line.value(place)), Some(expected));
                prop_assert!(found.tried.len() <= 80 + checks, "{} tried", found.tried.len());
            }
        }

        #[test]
        fn any_set_is_searched_where_all_is_checked(met in prop::collection::vec(any::<bool>(), 1..60), start in 1..60_u32) {
            let line = whole(Some(met.len() as f64));
            for aim in [Aim::Largest, Aim::Smallest] {
                let found = search(&line, &options(aim, Some(f64::from(start)), 60), |value| verdict(met[value as usize - 1]));
                let mut places = (0..met.len() as u64).filter(|place| met[*place as usize]);
                prop_assert_eq!(found.answer, if aim == Aim::Largest { places.next_back() } else { places.next() });
                prop_assert!(found.is_complete());
            }
        }

        #[test]
        fn whatever_is_met_the_answer_is_and_its_neighbour_is_not(met in prop::collection::vec(any::<bool>(), 1..400), checks in 0..30_usize) {
            let line = whole(Some(met.len() as f64));
            for aim in [Aim::Largest, Aim::Smallest] {
                let found = search(&line, &options(aim, None, checks), |value| verdict(met[value as usize - 1]));
                if let Some(answer) = found.answer {
                    prop_assert!(met[answer as usize]);
                    let Some(beyond) = found.beyond else { continue };
                    prop_assert!(found.tried.contains_key(&beyond) && !met[beyond as usize]);
                }
            }
        }
    }

    #[test]
    fn an_island_beyond_the_change_is_found_by_checks() {
        // Met up to 10 and again from 500 to 600.
        let line = whole(Some(1000.0));
        let met = |value: f64| value <= 10.0 || (500.0..=600.0).contains(&value);
        let found = search(&line, &options(Aim::Largest, None, 16), |value| verdict(met(value)));
        assert_eq!(found.answer.map(|place| line.value(place)), Some(600.0));
        assert_eq!(found.changes(), 3);
        // Bisecting alone cannot see it.
        let found = search(&line, &options(Aim::Largest, None, 0), |value| verdict(met(value)));
        assert_eq!(found.answer.map(|place| line.value(place)), Some(10.0));
    }

    #[test]
    fn nothing_is_met_or_all_is() {
        for aim in [Aim::Largest, Aim::Smallest] {
            let found = search(&whole(None), &options(aim, None, 4), |_| verdict(false));
            assert_eq!((found.answer, found.beyond), (None, None));
            assert!(found.tried.len() < 40);
            let found = search(&whole(None), &options(aim, Some(7.0), 4), |_| verdict(true));
            let expected = if aim == Aim::Largest { whole(None).end() } else { 0 };
            assert_eq!((found.answer, found.beyond), (Some(expected), None));
        }
    }

    #[test]
    fn what_nobody_can_tell_is_not_met() {
        let found = search(&whole(Some(9.0)), &options(Aim::Largest, None, 0), |value| {
            let met = value < 4.0;
            Tried { verdict: if met { Verdict::Met } else { Verdict::Unknown }, ..verdict(met) }
        });
        assert_eq!((found.answer, found.beyond), (Some(2), Some(3)));
    }
}
