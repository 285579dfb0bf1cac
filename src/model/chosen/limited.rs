//! Samplers that limit rates: so many operations of each second, the first ones, and none of the rest; or one whenever a bucket has a token, into which so many a second fall.

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

/// The fewest operations that show a bucket of tokens.
const TOKENS: usize = 500;

/// Numbers of operations stray from a fixed rate by less than so many (ours),
const STRAYS: f64 = 2.0;

/// and over eight times as many operations by no more than so many times as much; where each begins by itself or by those before, it is 2.8 times as much.
const LONGER: f64 = 1.3;

/// How many operations of each second were kept at most, where the starts of all of these show that no more were.
pub fn of<'t>(totals: impl Iterator<Item = &'t ScenarioTotal>) -> Option<u64> {
    let starts = starts(totals)?;
    (0..PLACES).find_map(|place| at(&starts, place * SECOND / PLACES))
}

/// How many operations of all these begin a second, where their number never strays far from that. So they do where a bucket of tokens, or a clock, lets them begin. Customers begin later for
/// good after a long response, and arrivals from outside at random.
pub fn at_fixed_rate<'t>(totals: impl Iterator<Item = &'t ScenarioTotal>) -> Option<f64> {
    fixed_rate(&starts(totals)?)
}

fn fixed_rate(starts: &[i64]) -> Option<f64> {
    // A bucket that is full at first lets the first ones begin as they come.
    let starts = starts.get(starts.len() / 5..).filter(|_| starts.len() >= TOKENS)?;
    let strays = |lag: usize| {
        let times = || starts.iter().zip(&starts[lag..]).map(|(one, other)| one.abs_diff(*other) as f64);
        let count = (starts.len() - lag) as f64;
        let mean = times().sum::<f64>() / count;
        let variance = times().map(|time| (time - mean).powi(2)).sum::<f64>() / count;
        (variance.sqrt() * lag as f64 / mean, lag as f64 / mean)
    };
    let ((short, _), (long, rate)) = (strays(starts.len() / 40), strays(starts.len() / 5));
    (long < STRAYS && long < LONGER * short).then_some(rate * SECOND as f64)
}

/// When all operations of these begin, in order; `None` where that is not known of all.
fn starts<'t>(totals: impl Iterator<Item = &'t ScenarioTotal>) -> Option<Vec<i64>> {
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
    Some(starts)
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
    use super::{SECOND, at, fixed_rate};

    /// Starts in a hundred seconds, so many in each at random places of its first part.
    fn starts(each: i64, part: f64) -> Vec<i64> {
        let place = |number: i64| (number * 7919 % 997) as f64 / 997.0 * part;
        let of = |number: i64| number / each * SECOND + (place(number) * SECOND as f64) as i64;
        let mut starts: Vec<i64> = (0..100 * each).map(of).collect();
        starts.sort_unstable();
        starts
    }

    /// Numbers that look random, between 0 and 1.
    fn random() -> impl FnMut() -> f64 {
        let mut state = 12_345_u64;
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64 + 0.5) / 2_f64.powi(53)
        }
    }

    /// Of arrivals at four times that rate a bucket lets twenty a second begin; customers begin as responses let them, however regular these are.
    #[test]
    fn a_bucket_of_tokens_lets_operations_begin_at_a_fixed_rate() {
        let mut random = random();
        let (mut now, mut tokens, mut kept) = (0.0, 20.0_f64, Vec::new());
        while kept.len() < 1500 {
            let pause = -(random().ln()) / 80.0;
            (now, tokens) = (now + pause, (tokens + 20.0 * pause).min(20.0));
            if tokens >= 1.0 {
                tokens -= 1.0;
                kept.push((now * SECOND as f64) as i64);
            }
        }
        let rate = fixed_rate(&kept).expect("it is fixed");
        assert!((rate - 20.0).abs() < 0.1, "{rate}");
        assert_eq!(fixed_rate(&kept[..400]), None, "they are few");
        // A customer's responses vary by a third, or as those of a server without a queue.
        for parts in [1, 9] {
            let mut now = 0.0;
            let mut next = || {
                now += (0..parts).map(|_| -(random().ln()) / 20.0 / f64::from(parts)).sum::<f64>();
                (now * SECOND as f64) as i64
            };
            assert_eq!(fixed_rate(&(0..1500).map(|_| next()).collect::<Vec<_>>()), None, "{parts}");
        }
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
