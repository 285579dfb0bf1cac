//! What a change of functions' processor time comes to, waiting included.

use std::sync::Arc;

use crate::callgraph::change::{self, Change, changed_calls};
use crate::callgraph::{CallTree, Granularity, Profile};
use crate::diagnostic::Diagnostics;
use crate::lqn::Model;
use crate::lqn::results::Results;
use crate::model::Configuration;
use crate::pipeline::listener::{Listener, Meter};
use crate::pipeline::options::Options;
use crate::pipeline::reduce::reduce_operations;
use crate::pipeline::solution::Solution;
use crate::pipeline::source::{self, Source};
use crate::study::impact::{Predicted, ScenarioImpact};
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
            before: Predicted::of(&before.0.model, &before.1.results, &old),
            after: Predicted::of(&after.0.model, &after.1.results, &new),
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
    let unwatched: Arc<dyn Meter> = Arc::new(());
    let reduced = reduce_operations(&unwatched, &Options::default(), listener, |names, sink| {
        trace::operations_of(profile, calls, false, names, sink)
    })?;
    let source = source::complete(reduced, configuration.clone(), &[], listener)?;
    let solution = source.solve(solver)?;
    Ok((source, solution))
}
