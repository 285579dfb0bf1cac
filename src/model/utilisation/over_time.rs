//! Means of what was measured over the time of a recording.

use crate::model::utilisation::{Series, Unit};

/// A sample stands for at most so many times the usual interval.
const LONG: f64 = 3.0;

/// The mean within a stretch of time: of a counter its growth, of other values what they are for as long as they stand.
pub fn mean(series: &Series, (from, to): (f64, f64), shift: f64) -> Option<f64> {
    let samples = &series.samples;
    let step = usual_step(samples).unwrap_or(0.0);
    let within = |time: f64| time + shift >= from - step && time + shift <= to + step;
    if series.unit == Unit::Seconds {
        let own: Vec<(f64, f64)> = samples.iter().copied().filter(|(time, _)| within(*time)).collect();
        let (first, last) = (own.first()?, own.last()?);
        // A counter that falls was set back to zero.
        let grown: f64 =
            own.windows(2).map(|pair| if pair[1].1 >= pair[0].1 { pair[1].1 - pair[0].1 } else { pair[1].1 }).sum();
        return (last.0 > first.0).then(|| grown / (last.0 - first.0));
    }
    let (mut sum, mut seconds) = (0.0, 0.0);
    for (place, (time, value)) in samples.iter().enumerate() {
        let length = samples.get(place + 1).map_or(step, |next| (next.0 - time).min(LONG * step)).max(0.0);
        let (begin, end) = ((time + shift).max(from), (time + shift + length).min(to));
        let part = if length > 0.0 { (end - begin).max(0.0) } else { f64::from(u8::from(begin <= end)) };
        sum += value * part;
        seconds += part;
    }
    (seconds > 0.0).then(|| sum / seconds)
}

/// The mean of a series over all of the time in which any of several was measured.
#[derive(Clone, Copy, Debug)]
pub struct OverTime<'s> {
    /// The series.
    pub series: &'s Series,
    /// Its mean.
    pub mean: f64,
    /// The part of that time in which it was measured itself.
    pub part: f64,
}

/// Means over all of the time in which any of the series was measured: processes that follow each other do not add up.
pub fn over_time<'s>(means: Vec<(&'s Series, f64)>, window: (f64, f64), shift: f64) -> Vec<OverTime<'s>> {
    let lives: Vec<(f64, f64)> = means.iter().map(|(series, _)| life(series, window, shift)).collect();
    let mut ordered = lives.clone();
    ordered.sort_by(|left, right| left.0.total_cmp(&right.0));
    let (mut all, mut until) = (0.0, f64::NEG_INFINITY);
    for (from, to) in ordered {
        all += (to - from.max(until)).max(0.0);
        until = until.max(to);
    }
    let own = |((series, mean), (from, to)): ((&'s Series, f64), (f64, f64))| {
        let part = if all > 0.0 { (to - from) / all } else { 1.0 };
        OverTime { series, mean: mean * part, part }
    };
    means.into_iter().zip(lives).map(own).collect()
}

/// The busy part of machines that are alike, each of which has a series.
pub fn shared(means: &[OverTime<'_>]) -> f64 {
    let (busy, together) = means.iter().fold((0.0, 0.0), |sum, own| (sum.0 + own.mean, sum.1 + own.part));
    busy / together
}

/// From when to when a series tells within a stretch of time: half a sample's usual interval before its first one to as long after its last, so that those that follow each other do not overlap; of one sample nobody knows.
fn life(series: &Series, (from, to): (f64, f64), shift: f64) -> (f64, f64) {
    let half = usual_step(&series.samples).unwrap_or(0.0) / 2.0;
    let Some((first, last)) =
        series.samples.first().zip(series.samples.last()).filter(|(first, last)| last.0 > first.0)
    else {
        return (from, to);
    };
    let within = |time: f64| (time + shift).clamp(from, to);
    (within(first.0 - half), within(last.0 + half))
}

/// The median interval between samples.
fn usual_step(samples: &[(f64, f64)]) -> Option<f64> {
    let mut steps: Vec<f64> = samples.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    steps.sort_by(f64::total_cmp);
    steps.get(steps.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::{mean, over_time};
    use crate::model::utilisation::{Series, Unit};

    fn series(unit: Unit, samples: &[(f64, f64)]) -> Series {
        let samples = samples.to_vec();
        Series { file: "u.csv".into(), metric: "cpu".to_owned(), resources: Vec::new(), unit, samples }
    }

    #[test]
    fn counters_grow_and_are_set_back() {
        let own = series(Unit::Seconds, &[(0.0, 100.0), (10.0, 105.0), (20.0, 1.0), (30.0, 6.0)]);
        assert_eq!(mean(&own, (0.0, 30.0), 0.0), Some(11.0 / 30.0));
        assert_eq!(mean(&own, (100.0, 130.0), 0.0), None);
    }

    #[test]
    fn values_count_while_they_stand_within_the_traces() {
        let own = series(Unit::Cores, &[(0.0, 9.0), (10.0, 1.0), (20.0, 3.0), (30.0, 9.0)]);
        assert_eq!(mean(&own, (10.0, 30.0), 0.0), Some(2.0));
        assert_eq!(mean(&own, (1010.0, 1030.0), 1000.0), Some(2.0));
    }

    #[test]
    fn processes_that_follow_each_other_do_not_add_up() {
        let cores = |from: i32, to: i32| {
            let samples: Vec<(f64, f64)> = (from..=to).map(|time| (f64::from(time), 0.5)).collect();
            series(Unit::Cores, &samples)
        };
        let of = |all: &[Series]| {
            let means: Vec<(&Series, f64)> = all.iter().map(|own| (own, 0.5)).collect();
            let means = over_time(means, (0.0, 100.0), 0.0);
            (means.iter().map(|own| own.mean).sum::<f64>(), means.iter().map(|own| own.part).sum::<f64>())
        };
        let near = |(busy, together): (f64, f64), truth: f64| {
            assert!(
                (busy / truth - 0.5).abs() < 0.01 && (together / truth - 1.0).abs() < 0.02,
                "{busy} {together} {truth}"
            );
        };
        near(of(&[cores(1, 99), cores(3, 100)]), 2.0);
        near(of(&[cores(1, 49), cores(50, 99)]), 1.0);
        near(of(&[cores(1, 99), cores(50, 99)]), 1.5);
        // What was measured in a part of the time only stands for all of it.
        near(of(&[cores(30, 60)]), 1.0);
    }
}
