//! Demands of operations where only a process's total was measured (§4.2).
//!
//! In the j-th interval the i-th operation ended c_ij times, and the process used r_j of a resource. Several estimators make demands of that:
//!
//! - [`Method::Average`]: the process's use by operation that ended. What the paper takes where there are too few intervals.
//! - [`Method::Shared`]: the use is shared out by the time in which operations were busy by themselves. Intervals in which the resource was busy
//!   count less, by the square of its idle part: times vary there as its inverse, and schedulers that favour short work distort them.
//! - [`Method::Regression`]: non-negative least squares of r_j on c_ij, the paper's.
//! - [`Method::Shrunk`]: the same, drawn towards what was shared out: closely, unless intervals contradict it (ridge regression, then of the width with
//!   the largest marginal likelihood).
//!
//! All of them are functions of a [`Summary`], which merges: sums, and Gram matrices of whole numbers. Operations whose counts vary together are
//! estimated together, one that never ended takes nothing, and intervals in which the process used far more or less than its operations explain are
//! left out. Intervals come from a block bootstrap, and what no resampling shows is added to them.

mod bootstrap;
mod least_squares;
mod summary;

use dyelog_lqn::sketch::NORMAL;

use crate::observation::NANO;

pub use summary::Summary;

/// By how much an estimate may be off for what no resampling shows, as a part of it: clocks, rounding, work of others that is taken for its own.
pub const SYSTEMATIC: f64 = 0.01;
/// Counts whose correlation is beyond this vary together.
const TOGETHER: f64 = 0.98;
/// Intervals that are off by so many times the usual are left out, and at most this part of them.
const FAR: f64 = 8.0;
const MOST_LEFT_OUT: f64 = 0.05;
/// The fewest intervals of which some may be left out.
const ENOUGH: usize = 20;

/// What happened in one interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// How often each operation ended.
    pub counts: Vec<u64>,
    /// How long each operation was busy by itself, seconds.
    pub busy: Vec<f64>,
    /// What the process used of the resource: seconds of processors, operations of disks.
    pub used: f64,
    /// The part of the resource that was in use by all, from 0 to 1.
    pub load: f64,
}

/// How demands are estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Method {
    /// The same for all operations.
    Average,
    /// Shared out by the time in which operations were busy by themselves.
    Shared,
    /// Non-negative least squares.
    Regression,
    /// Least squares, drawn towards what was shared out.
    Shrunk,
}

impl Method {
    /// All of them, the one that is preferred first.
    pub const ALL: [Self; 4] = [Self::Shrunk, Self::Shared, Self::Regression, Self::Average];

    /// In words.
    pub fn label(self) -> &'static str {
        match self {
            Self::Average => "average of the process",
            Self::Shared => "shared out by busy time",
            Self::Regression => "non-negative least squares",
            Self::Shrunk => "least squares drawn towards shares",
        }
    }
}

/// An estimated demand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Of one execution: seconds of processors, operations of disks.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval; `None` where there are too few intervals, or nothing was resampled.
    pub half_width: Option<f64>,
}

/// What one method comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The method.
    pub method: Method,
    /// By operation.
    pub demands: Vec<Demand>,
    /// By how much what the process used in intervals that the estimate had not seen was off: root mean square, as a part of what it used;
    /// `None` where there are too few intervals, or nothing was resampled.
    pub error: Option<f64>,
}

/// Demands of a process's operations for one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimates {
    /// What each method comes to that can be used, the one that is preferred first.
    pub candidates: Vec<Candidate>,
    /// Operations that are known together alone, by number; groups of two or more.
    pub together: Vec<Vec<usize>>,
    /// Whether there were fewer intervals than operations, or more than 32 operations, so that nothing is regressed.
    pub too_few: bool,
    /// Intervals that were left out.
    pub left_out: usize,
}

impl Estimates {
    /// What a method comes to; of the one that is preferred where that cannot be used.
    #[expect(clippy::missing_panics_doc, reason = "there is always a candidate")]
    pub fn by(&self, method: Method) -> &Candidate {
        let found = self.candidates.iter().find(|candidate| candidate.method == method);
        found.or(self.candidates.first()).expect("the average can always be used")
    }
}

/// Estimates demands of so many operations by all methods, with intervals from resampling where there is a seed of it.
pub fn estimate(operations: usize, samples: &[Sample], seed: Option<u64>) -> Estimates {
    let whole = Summary::of(operations, samples.iter());
    let together = whole.together(TOGETHER);
    let kept = without_outliers(operations, samples, &whole, &together);
    let summary = if kept.len() == samples.len() { whole } else { Summary::of(operations, kept.iter().copied()) };
    let used = summary.invoked();
    let too_few = summary.intervals < used as u64 || !summary.is_regressed();
    let methods = Method::ALL.into_iter().filter(|method| match method {
        Method::Average => true,
        Method::Shared => summary.was_busy(),
        Method::Regression => !too_few,
        Method::Shrunk => !too_few && summary.was_busy(),
    });
    let methods: Vec<Method> = methods.collect();
    let widths = seed.and_then(|seed| bootstrap::half_widths(operations, &kept, &methods, &together, seed));
    let candidates = methods.iter().enumerate().map(|(place, method)| {
        let means = means(&summary, *method, &together);
        let demands = means.into_iter().enumerate().map(|(operation, mean)| Demand {
            mean,
            half_width: widths.as_ref().map(|widths| widths[place][operation].hypot(NORMAL * SYSTEMATIC * mean)),
        });
        Candidate {
            method: *method,
            demands: demands.collect(),
            error: seed.and_then(|_| held_out(operations, &kept, *method)),
        }
    });
    Estimates { candidates: candidates.collect(), left_out: samples.len() - kept.len(), together, too_few }
}

/// Demands by a method.
pub(crate) fn means(summary: &Summary, method: Method, together: &[Vec<usize>]) -> Vec<f64> {
    match method {
        Method::Average => summary.average(),
        Method::Shared => summary.shared(),
        Method::Regression => least_squares::regression(summary, together),
        Method::Shrunk => least_squares::shrunk(summary, together),
    }
}

/// How far off the use of odd intervals is by demands of even ones, and the other way round.
fn held_out(operations: usize, samples: &[&Sample], method: Method) -> Option<f64> {
    if samples.len() < ENOUGH {
        return None;
    }
    let half = |odd: usize| samples.iter().skip(odd).step_by(2).copied();
    let (mut squares, mut sum) = (0.0, 0.0);
    for odd in [0, 1] {
        let summary = Summary::of(operations, half(1 - odd));
        let demands = means(&summary, method, &summary.together(TOGETHER));
        for sample in half(odd) {
            let off = sample.used - explained(sample, &demands);
            squares += off * off;
            sum += sample.used;
        }
    }
    let count = samples.len() as f64;
    (sum > 0.0).then(|| (squares / count).sqrt() / (sum / count))
}

/// What operations take of the resource in an interval, by their demands.
pub(crate) fn explained(sample: &Sample, demands: &[f64]) -> f64 {
    sample.counts.iter().zip(demands).map(|(count, demand)| *count as f64 * demand).sum()
}

/// The samples without those in which the process used far more or less than its operations explain.
fn without_outliers<'s>(
    operations: usize,
    samples: &'s [Sample],
    whole: &Summary,
    together: &[Vec<usize>],
) -> Vec<&'s Sample> {
    let all = || samples.iter().collect();
    if samples.len() < ENOUGH {
        return all();
    }
    let method = match (whole.was_busy(), whole.is_regressed()) {
        (true, _) => Method::Shared,
        (false, true) => Method::Regression,
        (false, false) => return all(),
    };
    let mut demands = means(whole, method, together);
    let residuals = |demands: &[f64]| -> Vec<f64> {
        samples.iter().map(|sample| sample.used - explained(sample, demands)).collect()
    };
    // What lies far out has moved the demands, too: they are scaled to the middle of the intervals.
    let mut ratios: Vec<f64> = samples
        .iter()
        .map(|sample| sample.used / explained(sample, &demands))
        .filter(|ratio| ratio.is_finite())
        .collect();
    if ratios.is_empty() {
        return all();
    }
    let scale = middle(&mut ratios);
    for demand in &mut demands {
        *demand *= scale;
    }
    let off = residuals(&demands);
    let usual = 1.4826 * middle(&mut off.iter().map(|off| off.abs()).collect::<Vec<_>>());
    let smallest = 0.01 * whole.used() / samples.len() as f64;
    let limit = FAR * usual.max(smallest);
    let kept: Vec<&Sample> =
        samples.iter().zip(&off).filter(|(_, off)| off.abs() <= limit).map(|(sample, _)| sample).collect();
    let is_too_many = (samples.len() - kept.len()) as f64 > MOST_LEFT_OUT * samples.len() as f64;
    // What is so frequent is how the process works, and an operation that is in such intervals alone has no others.
    let invoked = Summary::of(operations, kept.iter().copied()).invoked();
    if is_too_many || invoked < whole.invoked() { all() } else { kept }
}

/// The middle one of values, which there are.
fn middle(values: &mut [f64]) -> f64 {
    let place = values.len() / 2;
    *values.select_nth_unstable_by(place, f64::total_cmp).1
}

/// A quantity as a whole number, so that sums do not depend on their order.
fn whole(value: f64) -> i128 {
    (value * NANO).round() as i128
}
