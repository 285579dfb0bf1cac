//! What a model predicts for the scenarios that it was made of.

use crate::lqn::Model;
use crate::lqn::results::Results;
use crate::model::{Load, Origins, ScenarioOrigin};

/// A scenario with its results.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioResult<'o> {
    /// The scenario and its load.
    pub origin: &'o ScenarioOrigin,
    /// Operations per second.
    pub throughput: f64,
    /// Mean response time, seconds: of a closed load the cycle without the think time (Little's law), of an open one the
    /// responses of all first requests. `None` where nothing waits for a response.
    pub response: Option<f64>,
}

impl<'o> ScenarioResult<'o> {
    /// The results of each scenario.
    pub fn all(model: &Model, results: &Results, origins: &'o Origins) -> Vec<Self> {
        origins.scenarios.iter().map(|origin| Self::one(model, results, origin)).collect()
    }

    fn one(model: &Model, results: &Results, origin: &'o ScenarioOrigin) -> Self {
        match (origin.load, origin.customer) {
            (Load::Closed { population, think_time }, Some(task)) => {
                let throughput = results.tasks[task.index()].throughput;
                let response = (throughput > 0.0).then(|| (f64::from(population) / throughput - think_time).max(0.0));
                Self { origin, throughput, response }
            }
            (Load::Open { rate }, _) => {
                let response = origin.first.iter().try_fold(0.0, |sum, (entry, requests)| {
                    let result = &results.entries[entry.index()];
                    let first = result.open_response.unwrap_or(result.service[0]);
                    // Copies of a task share the arrivals, so each arrival still meets one of them.
                    model.entries.get(entry.index()).map(|_| sum + requests * first)
                });
                Self { origin, throughput: rate, response: response.filter(|_| !origin.first.is_empty()) }
            }
            (Load::Closed { .. }, None) => Self { origin, throughput: 0.0, response: None },
        }
    }
}
