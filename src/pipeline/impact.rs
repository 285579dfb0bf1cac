//! What a change of functions' processor time comes to, waiting included.

use std::sync::Arc;

use crate::callgraph::change::{self, Change, changed_calls};
use crate::callgraph::{CallTree, Granularity};
use crate::diagnostic::Diagnostics;
use crate::lqn::results::Results;
use crate::lqn::{Body, Model, TaskId, Work};
use crate::model::utilisation::Metrics;
use crate::model::{Configuration, LoadReason};
use crate::pipeline::listener::{Listener, Meter};
use crate::pipeline::options::Options;
use crate::pipeline::profile::Profiled;
use crate::pipeline::reduce::reduce_operations;
use crate::pipeline::solution::Solution;
use crate::pipeline::source::{self, Source};
use crate::study::ScenarioResult;
use crate::study::impact::{Measured, Predicted, ScenarioImpact};
use crate::trace;

/// Think times that hold a rate are looked for in so many rounds at most, until they move by less than this part of a cycle.
const MOST_ROUNDS: usize = 12;
const SAME_TIME: f64 = 1e-4;

/// What a change comes to.
#[non_exhaustive]
pub struct Impact {
    /// In processor time.
    pub graph: change::Impact,
    /// In responses and saturation, by scenario; nothing where the models have no solution.
    pub scenarios: Vec<ScenarioImpact>,
    /// Whether both solutions converged.
    pub converged: bool,
    /// Why the models have no solution, such as calls in a circle; processor time needs none.
    pub unsolved: Option<Diagnostics>,
}

/// Estimates a change of what probe records or spans show: in processor time, and by solving the models before and after at one load.
///
/// The profile is one that is made for it ([`Profiling::for_impact`](super::Profiling::for_impact)). The listener hears what there is to say about the
/// model before the change.
///
/// The model after the change has other demands, and is in all else the one before: delays were fitted to responses that the change does not leave as they were.
///
/// # Errors
/// What the change names and the records do not have; what keeps a model from being made. What keeps it from being solved is
/// [`Impact::unsolved`].
pub fn impact(
    profiled: &Profiled,
    change: &Change,
    granularity: &Granularity,
    configuration: &Configuration,
    solver: impl Fn(&Model) -> Result<Results, Diagnostics>,
    listener: &mut dyn Listener,
) -> Result<Impact, Diagnostics> {
    let profile = &profiled.profile;
    let graph = change::impact(profile, change, granularity)?;
    let changed = changed_calls(profile, change)?;
    let calls = profile.calls.as_ref().unwrap_or(&changed);
    let before = completed(profiled, calls, !profile.wall, configuration, listener)?;
    // What is to be said of the changed model was said of the other one.
    let mut after = completed(profiled, &changed, true, configuration, &mut ())?;
    let measured = if profile.wall { Some(completed(profiled, calls, true, configuration, &mut ())?) } else { None };
    let old = measured.as_ref().map_or(&before.model, |source| &source.model);
    if let Some(model) = with_demands(&before.model, old, &after.model) {
        after.model = model;
    }
    Ok(match scenarios(&before, &mut after, &solver) {
        Ok((scenarios, converged)) => Impact { graph, scenarios, converged, unsolved: None },
        Err(why) => Impact { graph, scenarios: Vec::new(), converged: true, unsolved: Some(why) },
    })
}

/// Each scenario before and after the change, and whether both solutions converged.
fn scenarios(
    before: &Source,
    after: &mut Source,
    solver: &impl Fn(&Model) -> Result<Results, Diagnostics>,
) -> Result<(Vec<ScenarioImpact>, bool), Diagnostics> {
    let solved = before.solve(solver)?;
    let changed = at_rates_before(after, &before.scenarios(&solved), solver)?;
    let pairs = before.scenarios(&solved).into_iter().zip(after.scenarios(&changed));
    let scenarios = pairs.map(|(old, new)| ScenarioImpact {
        name: old.origin.name.to_string(),
        before: Predicted::of(&before.model, &solved.results, &old),
        after: Predicted::of(&after.model, &changed.results, &new),
        measured: Measured {
            throughput: old.origin.observed_rate,
            response: old.origin.observed_response,
            at_load: old.has_traced_load(),
        },
    });
    let converged = [&solved, &changed].iter().all(|solution| solution.results.convergence.converged);
    Ok((scenarios.collect(), converged))
}

/// Solves a changed model. A scenario whose load nobody tells has one customer that asks again at once. Beside other scenarios it waits here for
/// as long as it takes to complete what it did before the change: less work of one is no more load for the others.
fn at_rates_before(
    after: &mut Source,
    before: &[ScenarioResult<'_>],
    solver: impl Fn(&Model) -> Result<Results, Diagnostics>,
) -> Result<Solution, Diagnostics> {
    let mut solution = after.solve(&solver)?;
    let customer = |scenario: &ScenarioResult<'_>| {
        let assumed = scenario.origin.reason == LoadReason::Assumed && scenario.throughput > 0.0;
        scenario.origin.customer.filter(|_| assumed).map(|task| (task, 1.0 / scenario.throughput))
    };
    let customers: Vec<(TaskId, f64)> = before.iter().filter_map(customer).collect();
    let rounds = if before.len() > 1 { MOST_ROUNDS } else { 0 };
    for _ in 0..rounds {
        let mut moved = false;
        for (task, cycle) in &customers {
            let Some(response) = solution.results.tasks[task.index()].response() else { continue };
            let think_time = &mut after.model.tasks[task.index()].think_time;
            let next = (cycle - response).max(0.0);
            moved |= (next - *think_time).abs() > SAME_TIME * cycle;
            *think_time = next;
        }
        if !moved {
            break;
        }
        solution = after.solve(&solver)?;
    }
    Ok(solution)
}

/// The model of these calls; of spans, with the demands of calls or with those that their operations come with.
fn completed(
    profiled: &Profiled,
    calls: &CallTree,
    demands: bool,
    configuration: &Configuration,
    listener: &mut dyn Listener,
) -> Result<Source, Diagnostics> {
    let unwatched: Arc<dyn Meter> = Arc::new(());
    let time = |call: usize| calls.calls().get(call).filter(|_| demands)?.time;
    let reduced =
        reduce_operations(&unwatched, &Options::default(), listener, |names, sink| match &profiled.operations {
            Some(operations) => Ok(operations.with_demands(time, names, sink)),
            None => trace::operations_of(&profiled.profile, calls, false, names, sink),
        })?;
    source::complete(reduced, configuration.clone(), &Metrics::default(), listener)
}

/// A model whose demands grow by as much as they do from one model to another, all of the same structure; none where structures differ.
fn with_demands(model: &Model, from: &Model, to: &Model) -> Option<Model> {
    let mut changed = model.clone();
    let (mut from, mut to) = (from.clone(), to.clone());
    let (from, to) = (works(&mut from), works(&mut to));
    let works = works(&mut changed);
    if [from.len(), to.len()] != [works.len(); 2] {
        return None;
    }
    for (((name, work), (old_name, old)), (new_name, new)) in works.into_iter().zip(from).zip(to) {
        if name != old_name || name != new_name {
            return None;
        }
        work.demand = match old.demand {
            old if old.total_cmp(&work.demand).is_eq() => new.demand,
            old if old > 0.0 => work.demand * new.demand / old,
            _ => work.demand,
        };
    }
    Some(changed)
}

/// All works, with the names of their entries or activities.
fn works(model: &mut Model) -> Vec<(Arc<str>, &mut Work)> {
    let phases = model.entries.iter_mut().flat_map(|entry| {
        let works = match &mut entry.body {
            Body::Phases(works) => &mut works[..],
            Body::Activities(_) => &mut [],
        };
        let name = Arc::clone(&entry.name);
        works.iter_mut().map(move |work| (Arc::clone(&name), work))
    });
    let activities = model.activities.iter_mut().map(|activity| (Arc::clone(&activity.name), &mut activity.work));
    phases.chain(activities).collect()
}
