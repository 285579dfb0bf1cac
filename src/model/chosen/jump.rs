//! Slow operations that were all kept, beside a part of the others: response times are far more frequent from some time on.

use crate::lqn::sketch::Sketch;

/// The shortest such time, seconds.
const SHORTEST: f64 = 0.005;
/// Times that are tried differ by this part.
const STEP: f64 = 0.01;
/// Stretches of times before and after it are so long, as a part of it.
const STRETCH: f64 = 0.05;
/// Times just before it are left out, since they are kept in steps.
const MARGIN: f64 = 0.02;
/// After it times are more than so many times as frequent as before,
const TIMES: f64 = 2.5;
/// by so many standard errors.
const CLEAR: f64 = 3.0;
/// The fewest times in the first stretch after it, before it all together, and in the stretches before it: without these it is where times begin.
const FEWEST: (f64, f64, f64) = (10.0, 10.0, 3.0);
/// Policies keep operations from no shorter time on, seconds. One scenario by itself may have shorter ones: times of two kinds of operations jump where the longer ones begin.
const SHORTEST_POLICY: f64 = 0.01;
/// Such times of several scenarios are one if they differ by less, as a part.
const ALIKE: f64 = 0.025;

/// The time at which they are most clearly so, if there is one.
pub(super) fn of(times: &Sketch) -> Option<f64> {
    let within = |low: f64, high: f64| times.below(high) - times.below(low);
    let clear = |at: f64| {
        let before = within(at * (1.0 - MARGIN - 2.0 * STRETCH), at * (1.0 - MARGIN));
        let (first, second) =
            (within(at, at * (1.0 + STRETCH)), within(at * (1.0 + STRETCH), at * (1.0 + 2.0 * STRETCH)));
        let after = first + second;
        let beyond = (after - TIMES * before) / (after + TIMES * TIMES * before).sqrt();
        let is_steady = (first - second).abs() <= CLEAR * after.sqrt();
        let are_enough =
            first >= FEWEST.0 && times.below(at * (1.0 - MARGIN - 2.0 * STRETCH)) >= FEWEST.1 && before >= FEWEST.2;
        (is_steady && are_enough && beyond >= CLEAR).then_some(beyond)
    };
    let last = times.quantile(1.0)?;
    let tried = std::iter::successors(Some(SHORTEST), |at| Some(at * (1.0 + STEP))).take_while(|at| *at < last);
    let found = tried.filter_map(|at| Some((clear(at)?, at)));
    found.max_by(|left, right| left.0.total_cmp(&right.0)).map(|(_, at)| at)
}

/// Of the jumps of all scenarios, which ones a sampler made: those at a round number, and those that several have in common.
pub(super) fn made_by_sampler(jumps: &[Option<f64>], round: impl Fn(f64) -> Option<f64>) -> Vec<Option<f64>> {
    let near = |one: f64, other: f64| (one / other - 1.0).abs() < ALIKE;
    let of = |(number, jump): (usize, &Option<f64>)| {
        let at = (*jump)?;
        let others = jumps.iter().enumerate().filter(|(other, _)| *other != number);
        let is_common = others.filter_map(|(_, other)| *other).any(|other| near(at, other));
        let is_policy = |round: &f64| *round >= SHORTEST_POLICY && near(at, *round);
        round(at).filter(is_policy).or(is_common.then_some(at))
    };
    jumps.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::{made_by_sampler, of};
    use crate::lqn::sketch::Sketch;

    /// Quantiles of exponential times beyond a least one, of which one of `one_of` is kept below a time.
    fn kept(count: u32, one_of: u32, from: f64) -> Sketch {
        let mut sketch = Sketch::default();
        for number in 0..count {
            let time = 0.01 - 0.02 * ((f64::from(number) + 0.5) / f64::from(count)).ln();
            if time > from || number % one_of == 0 {
                sketch.add(time);
            }
        }
        sketch
    }

    #[test]
    fn slow_ones_beside_a_part_of_the_others_are_found() {
        for from in [0.03, 0.04, 0.0473] {
            let found = of(&kept(8000, 10, from)).expect("there is a jump");
            assert!((found / from - 1.0).abs() < 0.025, "{found} for {from}");
        }
        assert_eq!(of(&kept(8000, 1, 0.03)), None);
        // Few of them, and an edge where times begin.
        assert_eq!(of(&kept(60, 10, 0.03)), None);
        let mut slow = Sketch::default();
        (0..2000).for_each(|number| slow.add(0.05 - 0.02 * ((f64::from(number) + 0.5) / 2000.0).ln()));
        assert_eq!(of(&slow), None);
    }

    #[test]
    fn one_jump_at_any_time_is_none_that_a_sampler_made() {
        let round = |at: f64| Some((at * 100.0).round() / 100.0);
        assert_eq!(made_by_sampler(&[Some(0.0403), None], round), [Some(0.04), None]);
        assert_eq!(made_by_sampler(&[Some(0.0353), None], round), [None, None]);
        assert_eq!(made_by_sampler(&[Some(0.0353), Some(0.035)], |_| None), [Some(0.0353), Some(0.035)]);
    }
}
