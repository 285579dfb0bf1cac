//! A change of functions' processor time, scenario by scenario: responses at one load, and where they saturate.

use std::sync::Arc;

use crate::lqn::results::Results;
use crate::lqn::{Model, Multiplicity};
use crate::study::scenario::ScenarioResult;

/// A scenario before and after a change.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioImpact {
    /// Its name.
    pub name: String,
    /// At the load of the records, or of the configuration.
    pub before: Predicted,
    /// At the same load, with the change.
    pub after: Predicted,
    /// What the records themselves show, before the change.
    pub measured: Measured,
}

/// What records show of a scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Operations per second, where there are enough of them to tell a rate.
    pub throughput: Option<f64>,
    /// Mean response, seconds.
    pub response: Option<f64>,
    /// Whether the model has the load of the records ([`has_traced_load`](crate::study::ScenarioResult::has_traced_load)).
    pub at_load: bool,
}

impl ScenarioImpact {
    /// The response that is to be expected after the change, seconds: the measured one, changed by as much as the modelled one. What the model gets wrong
    /// before the change it gets wrong after it, so the ratio is more accurate than the figure. None where the model's load is not that of the records.
    pub fn expected(&self) -> Option<f64> {
        let (before, after) = (self.before.response?, self.after.response?);
        let measured = self.measured.response.filter(|_| before > 0.0 && self.measured.at_load)?;
        Some(measured * after / before)
    }
}

/// What is predicted of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicted {
    /// Operations per second.
    pub throughput: f64,
    /// Mean response, seconds; none where nothing waits for one, and where more arrives than is served.
    pub response: Option<f64>,
    /// Operations per second at which a processor is busy all of the time, if the load of all scenarios grows in proportion
    /// (utilisation law); none where no processor is used or all are infinite.
    pub saturation: Option<f64>,
    /// That processor.
    pub limit: Option<Arc<str>>,
}

impl Predicted {
    /// What a solution predicts of one of its scenarios.
    pub fn of(model: &Model, results: &Results, scenario: &ScenarioResult<'_>) -> Self {
        let busiest = model
            .processors
            .iter()
            .zip(&results.processors)
            .filter_map(|(processor, result)| match processor.multiplicity {
                Multiplicity::Finite(servers) => Some((result.utilization / f64::from(servers), processor)),
                Multiplicity::Infinite => None,
            })
            .filter(|(busy, _)| *busy > 0.0)
            .max_by(|(left, one), (right, other)| left.total_cmp(right).then_with(|| other.name.cmp(&one.name)));
        Self {
            throughput: scenario.throughput,
            response: scenario.response,
            saturation: busiest.as_ref().map(|(busy, _)| scenario.throughput / busy),
            limit: busiest.map(|(_, processor)| Arc::clone(&processor.name)),
        }
    }
}
