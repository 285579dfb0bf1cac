//! Samplers that limit rates: so many operations of each second, the first ones, and none of the rest.

use crate::lqn::stays::Stay;
use crate::lqn::submodel::ScenarioTotal;

/// The fewest seconds, and operations in each, that show it.
const SECONDS: usize = 20;
const EACH: u64 = 2;

/// This part of the seconds has the same number of operations.
const SAME: f64 = 0.9;

/// Begins of seconds are tried at so many places: samplers need not count from full seconds.
const PLACES: i64 = 20;

/// Operations of the limiter's seconds begin early in these: in their first half by so many standard errors more often than in their second.
const EARLY: f64 = 6.0;

const SECOND: i64 = 1_000_000_000;

/// The first of them varies by at least so much of the mean time between two: by all of it where they come at random.
const CHANCE: f64 = 0.3;

/// How many operations of each second were kept at most, where the starts of all of these show that no more were.
pub fn of<'t>(totals: impl Iterator<Item = &'t ScenarioTotal>) -> Option<u64> {
    let mut starts: Vec<i64> = Vec::new();
    for total in totals {
        let kept = total.stays.kept();
        // What was kept of many operations lacks others.
        if kept.len() as u64 != total.stays.seen() || kept.len() as u64 != total.operations {
            return None;
        }
        starts.extend(kept.iter().map(|stay: &Stay| stay.start));
    }
    starts.sort_unstable();
    (0..PLACES).find_map(|place| at(&starts, place * SECOND / PLACES))
}

/// The same where seconds begin at that part of one.
fn at(starts: &[i64], begin: i64) -> Option<u64> {
    let second = |start: &i64| start.saturating_sub(begin).div_euclid(SECOND);
    let (first, last) = (second(starts.first()?), second(starts.last()?));
    // The first second and the last are not whole.
    let count = usize::try_from(last.checked_sub(first)?.checked_sub(1)?).ok()?;
    if count < SECONDS || count > starts.len() {
        return None;
    }
    let mut counts = vec![0_u64; count];
    let mut ends: Vec<(i64, i64)> = vec![(SECOND, 0); count];
    let (mut early, mut all) = (0.0, 0.0);
    for start in starts {
        let place = second(start) - first - 1;
        let Some(place) = usize::try_from(place).ok().filter(|place| *place < count) else { continue };
        let phase = start.saturating_sub(begin).rem_euclid(SECOND);
        counts[place] += 1;
        ends[place] = (ends[place].0.min(phase), ends[place].1.max(phase));
        all += 1.0;
        early += f64::from(u8::from(phase < SECOND / 2));
    }
    let most = counts.iter().copied().max().filter(|most| *most >= EACH)?;
    let same = counts.iter().filter(|count| **count == most).count();
    let is_limit = same as f64 >= SAME * count as f64 && early - all / 2.0 > EARLY * f64::sqrt(all) / 2.0;
    (is_limit && comes_by_chance(&ends, most)).then_some(most)
}

/// Whether the first operation of each second comes at random, as a sampler lets it, and not always at the same time, as jobs and paced users do.
fn comes_by_chance(ends: &[(i64, i64)], each: u64) -> bool {
    let ends: Vec<(f64, f64)> =
        ends.iter().filter(|(first, last)| first <= last).map(|(first, last)| (*first as f64, *last as f64)).collect();
    let count = ends.len() as f64;
    let mean = ends.iter().map(|own| own.0).sum::<f64>() / count;
    let varies = (ends.iter().map(|own| (own.0 - mean).powi(2)).sum::<f64>() / count).sqrt();
    let between = ends.iter().map(|own| own.1 - own.0).sum::<f64>() / count / (each.max(2) - 1) as f64;
    varies > CHANCE * between
}

#[cfg(test)]
mod tests {
    use super::{SECOND, at};

    /// Starts in a hundred seconds, so many in each at random places of its first part.
    fn starts(each: i64, part: f64) -> Vec<i64> {
        let place = |number: i64| (number * 7919 % 997) as f64 / 997.0 * part;
        let of = |number: i64| number / each * SECOND + (place(number) * SECOND as f64) as i64;
        let mut starts: Vec<i64> = (0..100 * each).map(of).collect();
        starts.sort_unstable();
        starts
    }

    /// Jobs and paced users come at the same times in each second.
    #[test]
    fn what_comes_at_the_same_times_is_no_limit() {
        let of = |number: i64| number / 5 * SECOND + number % 5 * SECOND / 50;
        assert_eq!(at(&(0..500).map(of).collect::<Vec<i64>>(), 0), None);
    }

    #[test]
    fn the_first_operations_of_each_second_are_a_limit() {
        assert_eq!(at(&starts(10, 0.2), 0), Some(10));
        // As many throughout each second are a regular load.
        assert_eq!(at(&starts(10, 1.0), 0), None);
        // Without so many in each.
        let some: Vec<i64> =
            starts(10, 0.2).into_iter().enumerate().filter(|own| own.0 % 7 > 0).map(|own| own.1).collect();
        assert_eq!(at(&some, 0), None);
    }
}
