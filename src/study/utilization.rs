//! How far utilisations may be from those of the system, by processor.

use crate::lqn::Model;
use crate::lqn::results::{ProcessorResult, Results};
use crate::lqn::sketch::NORMAL;
use crate::model::{LoadReason, Origins, WorkDoubt};
use crate::study::interval::Interval;

/// The 95 % interval of how many servers of each processor are busy, where no load is configured; nothing elsewhere.
///
/// What is off by chance is so for each entry by itself, but for rates, which entries share. What servers, lost spans and services without spans leave open adds up.
pub fn intervals(model: &Model, results: &Results, origins: Option<&Origins>) -> Vec<Option<Interval>> {
    let nothing = || vec![None; model.processors.len()];
    let Some(origins) = origins else { return nothing() };
    let configured = origins.scenarios.iter().any(|scenario| scenario.reason == LoadReason::Configured);
    if model.calibration.is_some() || configured || origins.scenarios.is_empty() || results.convergence.saturated {
        return nothing();
    }
    let mut sums = vec![Sum::default(); model.processors.len()];
    for ((entry, result), origin) in model.entries.iter().zip(&results.entries).zip(&origins.entries) {
        let processor = model.tasks[entry.task.index()].processor;
        sums[processor.index()].add(result.processor_utilization, origin.doubt);
    }
    let interval = |(sum, result): (Sum, &ProcessorResult)| sum.interval(result.utilization);
    sums.into_iter().zip(&results.processors).map(interval).collect()
}

/// What entries of one processor add up to, at the least and at the most.
#[derive(Clone, Copy, Default)]
struct Sum {
    least: Side,
    most: Side,
}

/// Busy servers, and what they are off by: by rates, which entries share, and squared by chance.
#[derive(Clone, Copy, Default)]
struct Side {
    busy: f64,
    of_rates: f64,
    by_chance: f64,
}

impl Sum {
    fn add(&mut self, busy: f64, doubt: WorkDoubt) {
        for (side, part) in [(&mut self.least, doubt.range.0), (&mut self.most, doubt.range.1)] {
            let busy = busy * part;
            side.busy += busy;
            side.of_rates += busy * doubt.rate;
            side.by_chance += (busy * doubt.chance).powi(2);
        }
    }

    fn interval(&self, busy: f64) -> Option<Interval> {
        let (low, high) = (self.least.busy - self.least.half_width(), self.most.busy + self.most.half_width());
        (busy > 0.0).then(|| Interval { low: low.max(0.0).min(busy), high: high.max(busy) })
    }
}

impl Side {
    fn half_width(&self) -> f64 {
        NORMAL * (self.by_chance + self.of_rates * self.of_rates).sqrt()
    }
}
