//! What a change of functions' processor time comes to, waiting included.

use std::sync::Arc;

use crate::callgraph::change::{self, Change, changed_calls};
use crate::callgraph::{CallTree, Granularity, Profile};
use crate::diagnostic::Diagnostics;
use crate::lqn::results::Results;
use crate::lqn::{Model, Multiplicity};
use crate::model::Configuration;
use crate::pipeline::listener::Listener;
use crate::pipeline::options::Options;
use crate::pipeline::reduce::reduce_operations;
use crate::pipeline::solution::Solution;
use crate::pipeline::source::{self, Source};
use crate::trace;

/// What a change comes to.
#[non_exhaustive]
pub struct Impact {
    /// In processor time.
    pub graph: change::Impact,
    /// In responses and saturation, by scenario.
    pub scenarios: Vec<ScenarioImpact>,
    /// Whether both solutions converged.
    pub converged: bool,
}

/// A scenario before and after a change.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ScenarioImpact {
    /// Its name.
    pub name: String,
    /// At the load of the records, or of the configuration.
    pub before: Predicted,
    /// At the same load, with the change.
    pub after: Predicted,
}

/// What is predicted of a scenario.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
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

/// Estimates a change of what probe records show: in processor time, and by solving the models before and after at one load.
///
/// The profile has to have its calls. The listener hears what there is to say about the model before the change.
///
/// # Errors
/// What the change names and the records do not have; what keeps a model from being made or solved.
pub fn impact(
    profile: &Profile,
    change: &Change,
    granularity: &Granularity,
    configuration: &Configuration,
    solver: impl Fn(&Model) -> Result<Results, Diagnostics>,
    listener: &mut dyn Listener,
) -> Result<Impact, Diagnostics> {
    let graph = change::impact(profile, change, granularity)?;
    let changed = changed_calls(profile, change)?;
    let calls = profile.calls.as_ref().unwrap_or(&changed);
    let before = solved(profile, calls, configuration, &solver, listener)?;
    // What is to be said of the changed model was said of the other one.
    let after = solved(profile, &changed, configuration, &solver, &mut ())?;
    let scenarios = before
        .0
        .scenarios(&before.1)
        .into_iter()
        .zip(after.0.scenarios(&after.1))
        .map(|(old, new)| ScenarioImpact {
            name: old.origin.name.to_string(),
            before: predicted(&before, old.throughput, old.response),
            after: predicted(&after, new.throughput, new.response),
        })
        .collect();
    let converged = [&before, &after].iter().all(|(_, solution)| solution.results.convergence.converged);
    Ok(Impact { graph, scenarios, converged })
}

fn solved(
    profile: &Profile,
    calls: &CallTree,
    configuration: &Configuration,
    solver: impl Fn(&Model) -> Result<Results, Diagnostics>,
    listener: &mut dyn Listener,
) -> Result<(Source, Solution), Diagnostics> {
    let progress = listener.reading(&[]);
    let reduced = reduce_operations(&progress, &Options::default(), listener, |names, sink| {
        trace::operations_of(profile, calls, false, names, sink)
    })?;
    let source = source::complete(reduced, configuration.clone(), listener)?;
    let solution = source.solve(solver)?;
    Ok((source, solution))
}

fn predicted((source, solution): &(Source, Solution), throughput: f64, response: Option<f64>) -> Predicted {
    let busiest = source
        .model
        .processors
        .iter()
        .zip(&solution.results.processors)
        .filter_map(|(processor, result)| match processor.multiplicity {
            Multiplicity::Finite(servers) => Some((result.utilization / f64::from(servers), processor)),
            Multiplicity::Infinite => None,
        })
        .filter(|(busy, _)| *busy > 0.0)
        .max_by(|(left, one), (right, other)| left.total_cmp(right).then_with(|| other.name.cmp(&one.name)));
    Predicted {
        throughput,
        response,
        saturation: busiest.as_ref().map(|(busy, _)| throughput / busy),
        limit: busiest.map(|(_, processor)| processor.name.as_ref().into()),
    }
}
