//! What a model predicts for the scenarios that it was made of.

use crate::diagnostic::{Diagnostic, Place};
use crate::lqn::Model;
use crate::lqn::results::Results;
use crate::model::{DemandSource, Load, LoadReason, Origins, ScenarioOrigin, codes};
use crate::report::words::number;

/// A scenario with its results.
#[derive(Clone, Debug, PartialEq)]
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

    fn one(model: &Model, results: &Results, origin: &'o ScenarioOrigin) -> Self {
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

/// How far a prediction under the traced load may lie from what was traced, as a share of it, before it is worth a word.
const TOLERANCE: f64 = 0.2;

/// Where the model, under the very load that was traced, does not respond as the traces did: a model that cannot tell what
/// was seen should not be trusted with what was not.
pub fn unlike_traced(model: &Model, results: &Results, origins: &Origins) -> Vec<Diagnostic> {
    let source = |wanted| origins.entries.iter().any(|entry| entry.sources.contains(&wanted));
    ScenarioResult::all(model, results, origins)
        .into_iter()
        .filter_map(|scenario| {
            let origin = scenario.origin;
            let (predicted, traced) = (scenario.response?, origin.observed_response?);
            if origin.reason != LoadReason::Observed || traced <= 0.0 || (predicted / traced - 1.0).abs() <= TOLERANCE {
                return None;
            }
            let percent = ((predicted / traced - 1.0).abs() * 100.0).round();
            let (way, why, hint) = if predicted < traced {
                let why = if source(DemandSource::Exclusive) {
                    "traces also show time on the network between a call and its service, which is no demand of either"
                } else {
                    "measured CPU leaves out what tasks wait for beside other tasks: network, disks, locks"
                };
                (
                    "below",
                    why,
                    "add it to the demands under `[demand]`, or read the model for differences, not for totals",
                )
            } else {
                let why = if source(DemandSource::Exclusive) {
                    "exclusive time includes the queueing there was, and counts in full as processor time"
                } else {
                    "the model queues more than the system did"
                };
                ("above", why, "tell the servers of processors (`multiplicity`), or trace under light load")
            };
            let message = format!(
                "scenario `{}`: predicted response {} s is {percent}% {way} the traced {} s, at the traced load",
                origin.name,
                number(predicted),
                number(traced)
            );
            Some(Diagnostic::warning(codes::UNLIKE_TRACED, Place::Nowhere, message).with_note(why).with_hint(hint))
        })
        .collect()
}
