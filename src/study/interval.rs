//! Intervals of what a model predicts. Of a calibrated one: what the models that fit as well predict, widened by how far predictions were off.

use crate::lqn::results::Results;
use crate::lqn::{Calibration, Model};
use crate::model::Origins;
use crate::solve::{SolveOptions, solve};
use crate::study::figure::{Figure, Quantity};

/// From the least to the most that a figure may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The least.
    pub low: f64,
    /// The most; infinite where one of the models has no steady state.
    pub high: f64,
}

impl Interval {
    /// Of a figure, and of those of models that fit as well; `None` among these is one that has no steady state. Parts, such as how busy
    /// something is, are not widened beyond what is possible, which the caller knows.
    pub fn of(figure: f64, others: &[Option<f64>], error: f64) -> Self {
        let known = || others.iter().flatten().copied().chain([figure]);
        let low = known().fold(f64::INFINITY, f64::min) * (1.0 - error).max(0.0);
        let high = known().fold(0.0, f64::max) * (1.0 + error);
        Self { low, high: if others.iter().any(Option::is_none) { f64::INFINITY } else { high } }
    }

    /// So far to both sides of a figure that is never negative.
    pub fn around(figure: f64, half_width: f64) -> Self {
        Self { low: (figure - half_width).max(0.0), high: figure + half_width }
    }

    /// By a factor to both sides whose logarithm this is.
    pub fn within(figure: f64, logarithm: f64) -> Self {
        Self { low: figure * (-logarithm).exp(), high: figure * logarithm.exp() }
    }

    /// What either of two holds, and all between.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// That of so many times the figure.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self { low: self.low * factor, high: self.high * factor }
    }

    /// Whether it is wider than this part of a figure to both sides.
    pub fn is_wider(&self, figure: f64, part: f64) -> bool {
        self.high - self.low > 2.0 * part * figure
    }

    /// Whether it has any of the values from `low` to `high`.
    pub fn meets(&self, low: f64, high: f64) -> bool {
        self.low <= high && self.high >= low
    }
}

/// The models that fit as well as a calibrated one, and how far predictions were off; none where it was not calibrated.
pub fn others(model: &Model) -> (Vec<Model>, f64) {
    let Some(calibration) = &model.calibration else { return (Vec::new(), 0.0) };
    let Calibration { error, .. } = calibration;
    (calibration.models(model), *error)
}

/// Results of models of one structure, each solved from where the last one ended; `None` for one that cannot be solved.
pub fn solutions<'m>(models: impl IntoIterator<Item = &'m Model>) -> Vec<Option<Results>> {
    let mut warm_start = None;
    let results = |model: &Model| {
        let found = solve(model, &SolveOptions::default(), warm_start.take(), &mut ()).ok()?;
        warm_start = found.results.convergence.converged.then_some(found.warm_start);
        Some(found.results)
    };
    models.into_iter().map(results).collect()
}

/// What each of the models predicts for a figure; `None` without a steady state.
pub fn figures_of(
    models: &[Model],
    results: &[Option<Results>],
    figure: &Figure,
    origins: Option<&Origins>,
) -> Vec<Option<f64>> {
    let of = |(model, results): (&Model, &Option<Results>)| {
        let steady = results.as_ref().filter(|results| !results.convergence.saturated)?;
        figure.of(model, steady, origins)
    };
    models.iter().zip(results).map(of).collect()
}

/// By how much an interval of a quantity is widened: responses were held against measurements, and rates of arrivals are no predictions.
pub fn widened(quantity: Quantity, error: f64) -> f64 {
    match quantity {
        Quantity::Response | Quantity::Service => error,
        Quantity::Throughput | Quantity::Utilization => 0.0,
    }
}
