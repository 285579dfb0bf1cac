//! Means of what was measured over the time of a recording.

use std::collections::BTreeMap;

use crate::model::utilisation::{Busy, Series, Unit};

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

/// Means over all of the time in which any of the series was measured, of those that were measured in the window: processes that follow each other do not add up. What was measured at
/// other times belongs to other loads.
pub fn over_time<'s>(series: &[&'s Series], window: (f64, f64), shift: f64) -> Vec<OverTime<'s>> {
    let means = series.iter().filter_map(|own| Some((*own, mean(own, window, shift)?, life(own, window, shift))));
    let means: Vec<(&'s Series, f64, (f64, f64))> = means.collect();
    let mut lives: Vec<(f64, f64)> = means.iter().map(|(_, _, life)| *life).collect();
    lives.sort_by(|left, right| left.0.total_cmp(&right.0));
    let (mut all, mut until) = (0.0, f64::NEG_INFINITY);
    for (from, to) in lives {
        all += (to - from.max(until)).max(0.0);
        until = until.max(to);
    }
    let own = |(series, mean, (from, to))| {
        let part = if all > 0.0 { (to - from) / all } else { 1.0 };
        OverTime { series, mean: mean * part, part }
    };
    means.into_iter().map(own).collect()
}

/// What several series come to.
#[derive(Clone, Debug, Default)]
pub struct Total<'s> {
    /// The sum of their means.
    pub sum: f64,
    /// How many of each mode were there together on the mean.
    together: BTreeMap<&'s str, f64>,
}

impl<'s> Total<'s> {
    /// Of these.
    pub fn of(means: &[OverTime<'s>]) -> Self {
        let mut total = Self::default();
        for own in means {
            total.add(own);
        }
        total
    }

    /// Takes in one more.
    pub fn add(&mut self, own: &OverTime<'s>) {
        self.sum += own.mean;
        *self.together.entry(&own.series.mode).or_default() += own.part;
    }

    /// Each on the mean, where values are parts of machines that are alike. What one used in several modes adds up.
    pub fn share(&self) -> f64 {
        self.sum / self.together().max(f64::MIN_POSITIVE)
    }

    /// How many resources there were together on the mean.
    fn together(&self) -> f64 {
        self.together.values().copied().fold(0.0, f64::max)
    }

    /// In the unit of the values.
    pub fn busy(&self, unit: Unit) -> Busy {
        if unit == Unit::Share { Busy::Share(self.share()) } else { Busy::Cores(self.sum) }
    }
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
    use super::{Total, mean, over_time};
    use crate::model::utilisation::{Series, Unit};

    fn series(unit: Unit, samples: &[(f64, f64)]) -> Series {
        let samples = samples.to_vec();
        Series {
            file: "u.csv".into(),
            metric: "cpu".to_owned(),
            resources: Vec::new(),
            mode: String::new(),
            unit,
            samples,
        }
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
    fn modes_of_one_resource_add_up_and_resources_do_not() {
        let of = |mode: &str, part: f64| {
            let samples: Vec<(f64, f64)> = (0..100).map(|time| (f64::from(time), part)).collect();
            Series { mode: mode.to_owned(), ..series(Unit::Share, &samples) }
        };
        let pods = [of("user", 0.4), of("system", 0.1), of("user", 0.2), of("system", 0.1)];
        let share = Total::of(&over_time(&pods.iter().collect::<Vec<_>>(), (0.0, 100.0), 0.0)).share();
        assert!((share - 0.4).abs() < 1e-9, "{share}");
    }

    #[test]
    fn processes_that_follow_each_other_do_not_add_up() {
        let cores = |from: i32, to: i32| {
            let samples: Vec<(f64, f64)> = (from..=to).map(|time| (f64::from(time), 0.5)).collect();
            series(Unit::Cores, &samples)
        };
        let of = |all: &[Series]| {
            let total = Total::of(&over_time(&all.iter().collect::<Vec<_>>(), (0.0, 100.0), 0.0));
            (total.sum, total.together())
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
