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
    let (mut early, mut all) = (0.0, 0.0);
    for start in starts {
        let place = second(start) - first - 1;
        if let Some(own) = usize::try_from(place).ok().and_then(|place| counts.get_mut(place)) {
            *own += 1;
            all += 1.0;
            early += f64::from(u8::from(start.saturating_sub(begin).rem_euclid(SECOND) < SECOND / 2));
        }
    }
    let most = counts.iter().copied().max().filter(|most| *most >= EACH)?;
    let same = counts.iter().filter(|count| **count == most).count();
    (same as f64 >= SAME * count as f64 && early - all / 2.0 > EARLY * f64::sqrt(all) / 2.0).then_some(most)
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
