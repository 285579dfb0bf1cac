//! What limits a model: what saturates first, second and so on as the load grows.
//!
//! [Asymptotic bounds](crate::solve::bounds) say how far the load can grow at most. What really saturates is seen by the solver
//! under a load far beyond them: the saturated resource that waits for no other saturated one (Neilson, Woodside, Petriu and
//! Majumdar 1995). That one is then made infinite, and the next comes into sight.

use crate::diagnostic::Diagnostics;
use crate::lqn::model::{CallKind, Model, Multiplicity, Scheduling, TaskId};
use crate::lqn::results::{Caller, Results};
use crate::solve::bounds::{ArrivalBounds, Resource, Room, SourceBounds, bounds};
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
    /// Whether the solver showed nothing saturated, so that this is counted from what cycles ask of each resource, without queueing.
    pub counted: bool,
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
    let bounds_of_model = bounds(model)?;
    let (sources, arrivals, rooms) = (bounds_of_model.closed(), bounds_of_model.open(), bounds_of_model.rooms());
    let mut steps: Vec<BottleneckStep> = Vec::new();
    let mut widened = model.clone();
    // Those that are made infinite further on need a greater load to show.
    while steps.len() < MOST_STEPS {
        let now = bounds(&widened)?.closed();
        let Some(pushed) = overload_probe(&widened, &now) else { break };
        let results = solve(&pushed, options, None, observer)?.results;
        let shown = results.convergence.converged || steps.is_empty();
        let solved = shown
            .then(|| lowest(&pushed, &results))
            .flatten()
            .map(|resource| seen(&pushed, &results, &sources, resource));
        let mix = || match steps.last() {
            Some(last) => last.throughputs.clone(),
            None => sources.iter().map(|source| source.population / (source.response + source.think_time)).collect(),
        };
        let Some(step) = solved.or_else(|| counted(&pushed, &now, &mix())) else { break };
        let resource = step.resource;
        steps.push(step);
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
    Ok(Bottlenecks { sources, arrivals, rooms, steps })
}

/// The step at which the solver finds this resource saturated.
fn seen(pushed: &Model, results: &Results, sources: &[SourceBounds], resource: Resource) -> BottleneckStep {
    let busy = |resource: Resource| resource.utilization(pushed, results);
    BottleneckStep {
        resource,
        utilization: busy(resource),
        processor_utilization: busy(processor_of(pushed, resource)),
        throughputs: sources.iter().map(|source| results.tasks[source.task.index()].throughput).collect(),
        converged: results.convergence.converged,
        counted: false,
    }
}

/// The step at which a resource would be busy all the time, as throughputs grow in proportion and nothing queues: the one that they
/// ask most of. `None` where they ask nothing of any that has a limit.
fn counted(model: &Model, sources: &[SourceBounds], mix: &[f64]) -> Option<BottleneckStep> {
    let mut asked: Vec<(Resource, f64)> = Vec::new();
    for (source, throughput) in sources.iter().zip(mix) {
        for limit in &source.limits {
            let share = throughput * limit.seconds / limit.servers;
            match asked.iter_mut().find(|(own, _)| *own == limit.resource) {
                Some((_, busy)) => *busy += share,
                None => asked.push((limit.resource, share)),
            }
        }
    }
    let most = asked.iter().copied().fold(None, |most: Option<(Resource, f64)>, own| match most {
        Some(most) if own.1 <= most.1 + SAME => Some(most),
        _ => Some(own),
    });
    let (resource, busy) = most.filter(|(_, busy)| *busy > 0.0)?;
    let processor = processor_of(model, resource);
    let of_processor = asked.iter().find(|(own, _)| *own == processor).map_or(0.0, |(_, busy)| *busy);
    Some(BottleneckStep {
        resource,
        utilization: 1.0,
        processor_utilization: of_processor / busy,
        throughputs: mix.iter().map(|throughput| throughput / busy).collect(),
        converged: true,
        counted: true,
    })
}

fn processor_of(model: &Model, resource: Resource) -> Resource {
    match resource {
        Resource::Task(task) => Resource::Processor(model.tasks[task.index()].processor),
        processor @ Resource::Processor(_) => processor,
    }
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
