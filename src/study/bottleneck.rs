//! What limits a model: what saturates first, second and so on as the load grows.
//!
//! [Asymptotic bounds](crate::solve::bounds) say how far the load can grow at most. What really saturates is seen by the solver
//! under a load far beyond them: the saturated resource that waits for no other saturated one (Neilson, Woodside, Petriu and
//! Majumdar 1995). That one is then made infinite, and the next comes into sight.

use crate::diagnostic::Diagnostics;
use crate::lqn::model::{CallKind, Model, Multiplicity, Scheduling, TaskId};
use crate::lqn::results::{Caller, Results};
use crate::solve::bounds::{ArrivalBounds, Resource, Room, SourceBounds, arrivals, bounds};
use crate::solve::{Observer, SolveOptions, solve};

/// Resources are looked for until so many were made infinite.
const MOST_STEPS: usize = 6;
/// What is busy for this part of the time under the greatest load is saturated.
const SATURATED: f64 = 0.93;
/// What is busy for parts of the time that differ by less is equally busy: the first in the model comes first.
const SAME: f64 = 1e-4;
/// The load under which saturation is looked for, relative to that at which the asymptotes meet.
const OVERLOAD: f64 = 3.0;
/// More customers than these a source are not tried.
const MOST_CUSTOMERS: f64 = 2000.0;

/// A resource that limits, once those before it are made infinite.
#[derive(Clone, Debug, PartialEq)]
pub struct BottleneckStep {
    /// The resource.
    pub resource: Resource,
    /// The busy part of its servers under the greatest load.
    pub utilization: f64,
    /// Of a task: the busy part of its processor's servers then.
    pub processor_utilization: f64,
    /// Cycles per second of each source at most.
    pub throughputs: Vec<f64>,
    /// Whether the solver converged under that load.
    pub converged: bool,
}

/// What limits a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Bottlenecks {
    /// Closed sources of load.
    pub sources: Vec<SourceBounds>,
    /// Open arrivals.
    pub arrivals: Vec<ArrivalBounds>,
    /// What limits the open arrivals together, the tightest first.
    pub rooms: Vec<Room>,
    /// What saturates first as they grow in proportion, and what comes next when that is made infinite.
    pub steps: Vec<BottleneckStep>,
    /// Whether there are further bounds of which the solver could not tell which comes next: it did not converge, or found
    /// nothing saturated.
    pub unsure: bool,
}

/// Finds what limits a model as its closed sources of load grow in proportion, and as its open arrivals do.
///
/// # Errors
/// As [`solve()`].
pub fn bottlenecks(model: &Model, options: &SolveOptions) -> Result<Bottlenecks, Diagnostics> {
    bottlenecks_observed(model, options, &mut ())
}

/// Finds what limits a model, and tells the observer of each iteration of each solution.
///
/// # Errors
/// As [`solve()`].
pub fn bottlenecks_observed(
    model: &Model,
    options: &SolveOptions,
    observer: &mut dyn Observer,
) -> Result<Bottlenecks, Diagnostics> {
    let sources = bounds(model)?;
    let (arrivals, rooms) = arrivals(model)?;
    let mut steps = Vec::new();
    let mut unsure = false;
    let mut widened = model.clone();
    // Those that are made infinite further on need a greater load to show.
    while steps.len() < MOST_STEPS {
        let now = bounds(&widened)?;
        let Some(pushed) = overload_probe(&widened, &now) else { break };
        let results = solve(&pushed, options, None, observer)?.results;
        if !(results.convergence.converged || steps.is_empty()) {
            unsure = true;
            break;
        }
        let Some(resource) = lowest(&pushed, &results) else {
            // Something bounds the load, but what the solver makes of it does not get there.
            unsure = true;
            break;
        };
        let busy = |resource: Resource| resource.utilization(&pushed, &results);
        let processor = match resource {
            Resource::Task(task) => Resource::Processor(pushed.tasks[task.index()].processor),
            processor @ Resource::Processor(_) => processor,
        };
        steps.push(BottleneckStep {
            resource,
            utilization: busy(resource),
            processor_utilization: busy(processor),
            throughputs: sources.iter().map(|source| results.tasks[source.task.index()].throughput).collect(),
            converged: results.convergence.converged,
        });
        match resource {
            Resource::Processor(id) => {
                let processor = &mut widened.processors[id.index()];
                processor.multiplicity = Multiplicity::Infinite;
                processor.scheduling = Scheduling::Delay;
            }
            Resource::Task(id) => {
                let task = &mut widened.tasks[id.index()];
                task.multiplicity = Multiplicity::Infinite;
                task.scheduling = Scheduling::Delay;
            }
        }
    }
    Ok(Bottlenecks { sources, arrivals, rooms, steps, unsure })
}

/// The model under a load far beyond its bounds; `None` where nothing bounds it.
fn overload_probe(model: &Model, sources: &[SourceBounds]) -> Option<Model> {
    let total = |of: &dyn Fn(&SourceBounds) -> f64| sources.iter().map(of).sum::<f64>();
    let saturation_points: Vec<f64> = sources.iter().filter_map(SourceBounds::saturation_point).collect();
    let most = saturation_points.iter().copied().fold(0.0, f64::max);
    let population = total(&|source| source.population);
    if most <= 0.0 || population <= 0.0 {
        return None;
    }
    let factor = (OVERLOAD * most / population).max(1.0);
    let mut pushed = model.clone();
    for source in sources {
        let customers = (source.population * factor).ceil().clamp(1.0, MOST_CUSTOMERS.max(source.population));
        pushed.tasks[source.task.index()].multiplicity = Multiplicity::Finite(customers as u32);
    }
    Some(pushed)
}

/// A resource and how near it is to its limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Busy {
    /// The resource.
    pub resource: Resource,
    /// The busy part of its servers or threads.
    pub part: f64,
    /// Whether it is saturated.
    pub saturated: bool,
}

/// What limits a solved model: the saturated resource that waits for no other saturated one, else the busiest one. `None` where
/// nothing is busy that has a limit.
pub fn busiest(model: &Model, results: &Results) -> Option<Busy> {
    if let Some(resource) = lowest(model, results) {
        return Some(Busy { resource, part: resource.utilization(model, results), saturated: true });
    }
    let processors = (0..model.processors.len()).map(|id| Resource::Processor(id.into()));
    let tasks = (0..model.tasks.len())
        .map(TaskId::from)
        .filter(|id| !model.tasks[id.index()].scheduling.is_source())
        .map(Resource::Task);
    let mut most: Option<Busy> = None;
    for resource in processors.chain(tasks) {
        let part = resource.utilization(model, results);
        if part > most.map_or(0.0, |most| most.part + SAME) {
            most = Some(Busy { resource, part, saturated: false });
        }
    }
    most
}

/// The saturated resource that waits for no other saturated one; the busiest of several.
fn lowest(model: &Model, results: &Results) -> Option<Resource> {
    let saturated = |resource: Resource| resource.utilization(model, results) >= SATURATED;
    let processors = (0..model.processors.len()).map(|id| Resource::Processor(id.into()));
    let busiest = |found: &mut dyn Iterator<Item = Resource>| {
        let mut best: Option<(f64, Resource)> = None;
        for resource in found.filter(|resource| saturated(*resource)) {
            let busy = resource.utilization(model, results);
            if best.is_none_or(|(most, _)| busy > most + SAME) {
                best = Some((busy, resource));
            }
        }
        best.map(|(_, resource)| resource)
    };
    // Processors wait for nobody.
    if let Some(processor) = busiest(&mut processors.into_iter()) {
        return Some(processor);
    }
    let tasks: Vec<TaskId> = (0..model.tasks.len())
        .map(TaskId::from)
        .filter(|id| !model.tasks[id.index()].scheduling.is_source())
        .filter(|id| saturated(Resource::Task(*id)))
        .collect();
    let mut waits = vec![false; model.tasks.len()];
    for call in results.calls.iter().filter(|call| call.kind == Some(CallKind::Synchronous)) {
        let target = model.entries[call.to.index()].task;
        let caller = match call.from {
            Caller::Phase(entry, _) | Caller::Forward(entry) => model.entries[entry.index()].task,
            Caller::Activity(activity) => model.activities[activity.index()].task,
        };
        waits[caller.index()] |= tasks.contains(&target);
    }
    busiest(&mut tasks.iter().filter(|id| !waits[id.index()]).map(|id| Resource::Task(*id)))
}
