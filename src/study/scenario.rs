//! What a model predicts for the scenarios that it was made of.

use crate::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::lqn::Model;
use crate::lqn::results::Results;
use crate::model::{Load, LoadReason, Origins, ScenarioOrigin, alike, codes};

/// A scenario with its results.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ScenarioResult<'o> {
    /// The scenario and its load.
    pub origin: &'o ScenarioOrigin,
    /// Operations per second.
    pub throughput: f64,
    /// Mean response time, seconds: of a closed load the cycle without the think time (Little's law), of an open one the
    /// responses of all first requests. `None` where nothing waits for a response, and where more arrives than is served.
    pub response: Option<f64>,
}

impl<'o> ScenarioResult<'o> {
    /// The results of each scenario.
    pub fn all(model: &Model, results: &Results, origins: &'o Origins) -> Vec<Self> {
        let one = |origin| {
            let one = Self::one(model, results, origin);
            // Without a steady state a response grows for as long as one looks.
            Self { response: one.response.filter(|_| !results.convergence.saturated), ..one }
        };
        origins.scenarios.iter().map(one).collect()
    }

    /// Whether it has as many operations as were traced, give or take a fifth.
    pub fn has_traced_load(&self) -> bool {
        match (self.origin.reason, self.origin.observed_rate) {
            // What is assumed where traces tell no rate stands for them.
            (LoadReason::Observed | LoadReason::Assumed, _) => true,
            (LoadReason::Configured, Some(rate)) => is_about(self.throughput, rate),
            (LoadReason::Configured, None) => false,
        }
    }

    pub(super) fn one(model: &Model, results: &Results, origin: &'o ScenarioOrigin) -> Self {
        match (origin.load, origin.customer) {
            (Load::Closed { .. }, Some(task)) => {
                let task = &results.tasks[task.index()];
                Self { origin, throughput: task.throughput, response: task.response() }
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

/// How far a rate may lie from the traced one and still be about the same, as a part of it.
const ABOUT: f64 = 0.2;

/// Below so many operations nothing is said of how much times and calls vary, so that solvers take them as they usually do.
const FEW: u64 = 10;

/// Scenarios that are named.
const NAMED: usize = 5;

/// Whether a scenario has timed operations, but too few for percentiles.
pub(super) fn has_few_operations(own: &ScenarioOrigin) -> bool {
    own.members.is_empty() && own.operations < FEW && own.observed_response.is_some()
}

/// Names scenarios with too few timed operations for percentiles.
pub fn few_operations(origins: &Origins) -> Option<Diagnostic> {
    let few: Vec<&ScenarioOrigin> = origins.scenarios.iter().filter(|own| has_few_operations(own)).collect();
    if few.is_empty() {
        return None;
    }
    let times = |count: u64| if count == 1 { "1 operation".to_owned() } else { format!("{count} operations") };
    let message = match &few[..] {
        [only] => format!("scenario `{}` has {}: too few for percentiles", only.name, times(only.operations)),
        _ => format!("{} scenarios have too few operations for percentiles", few.len()),
    };
    let mut finding = Diagnostic::warning(codes::FEW_OPERATIONS, Place::Nowhere, message);
    if few.len() > 1 {
        for own in few.iter().take(NAMED) {
            finding = finding.with_note(format!("`{}` has {}", own.name, times(own.operations)));
        }
        if few.len() > NAMED {
            finding = finding.with_note(format!("and {} more have fewer than {FEW}", few.len() - NAMED));
        }
    }
    let assumed = format!("times of what was seen fewer than {FEW} times are taken as exponential");
    let alike = few.iter().filter(|own| alike::pattern(&own.name).is_some()).count();
    Some(finding.with_note(assumed).with_hint(if alike >= alike::MANY && 2 * alike > few.len() {
        "their names differ in numbers: `--group PATTERN`, as in M068, makes one operation of those which are one"
    } else {
        "record more operations"
    }))
}

/// Whether a rate is about the traced one.
pub(super) fn is_about(value: f64, traced: f64) -> bool {
    (value / traced - 1.0).abs() <= ABOUT
}
/// Errors about the customers of a model that was made of traces, as those about their scenarios: nobody has seen the names of their tasks.
#[must_use]
pub fn about_scenarios(model: &Model, origins: Option<&Origins>, errors: Diagnostics) -> Diagnostics {
    let about = |error: Diagnostic| {
        let customers = |own: &&ScenarioOrigin| {
            let task = own.customer.map(|task| &model.tasks[task.index()].name);
            task.is_some_and(|name| error.message.contains(&format!("`{name}`")))
        };
        let mut scenarios = origins.into_iter().flat_map(|origins| &origins.scenarios);
        match scenarios.find(customers).filter(|_| error.code == crate::solve::codes::SOURCE) {
            Some(scenario) => {
                let message = format!("operations of scenario `{}` take no time in the model", scenario.name);
                Diagnostic::error(crate::solve::codes::SOURCE, error.place, message)
                    .with_note("customers who wait for nothing begin infinitely many of them")
                    .with_hint("traces without times tell structure alone: give demands under `[demand]`, or `think_time` under the scenario")
            }
            None => error,
        }
    };
    Diagnostics(errors.0.into_iter().map(about).collect())
}
