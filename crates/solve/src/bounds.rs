//! Asymptotic bounds: what limits the sources of load of a model, without a solution.
//!
//! The bounds are those of operational analysis (Denning and Buzen 1978): with D the busy time of a resource in a customer's
//! cycle and m its servers, throughput is at most m / D, and at most N / (R + Z) with the response R without queueing.
//! For the threads of a task, D is the time for which a thread is held in a cycle when nothing queues, so that the bound
//! holds for software, too. Open arrivals ask for m / D of each resource by themselves: how far they can grow in proportion follows.

use dyelog_diagnostic::Diagnostics;
use dyelog_lqn::model::{EntryId, Model, ProcessorId, Scheduling, TaskId};

use crate::prepare::plan::ModelPlan;

/// Something that can be busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// A processor.
    Processor(ProcessorId),
    /// The threads of a task.
    Task(TaskId),
}

/// The bound that one resource sets to one source of load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// The resource.
    pub resource: Resource,
    /// Seconds for which one of its servers is busy in a cycle, queueing left out.
    pub seconds: f64,
    /// Its servers.
    pub servers: f64,
}

impl Limit {
    /// Cycles per second that it can do at most.
    pub fn throughput(&self) -> f64 {
        self.servers / self.seconds
    }
}

/// The bounds of a closed source of load that has the system to itself.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceBounds {
    /// The reference task.
    pub task: TaskId,
    /// Its customers.
    pub population: f64,
    /// Their think time, seconds.
    pub think_time: f64,
    /// The response time without queueing, seconds.
    pub response: f64,
    /// The bounds, the tightest first.
    pub limits: Vec<Limit>,
}

impl SourceBounds {
    /// Most cycles per second, and least response time in seconds, of that many customers.
    pub fn of(&self, population: f64) -> (f64, f64) {
        let alone = population / (self.response + self.think_time);
        let most = self.limits.first().map_or(alone, |limit| limit.throughput().min(alone));
        (most, (population / most - self.think_time).max(self.response))
    }

    /// The number of customers at which the two bounds meet.
    pub fn saturation_point(&self) -> Option<f64> {
        self.limits.first().map(|limit| limit.throughput() * (self.response + self.think_time))
    }
}

/// The bounds of the open arrivals at one entry that have the system to themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrivalBounds {
    /// The entry.
    pub entry: EntryId,
    /// Arrivals per second.
    pub rate: f64,
    /// The response time without queueing, seconds.
    pub response: f64,
    /// The bounds, the tightest first; a cycle is one arrival.
    pub limits: Vec<Limit>,
}

/// How far all open arrivals can grow in proportion before a resource is saturated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Room {
    /// The resource.
    pub resource: Resource,
    /// The busy part of its servers due to open arrivals as they are, queueing left out.
    pub utilization: f64,
}

impl Room {
    /// By how much all rates may be multiplied at most.
    pub fn factor(&self) -> f64 {
        1.0 / self.utilization
    }
}

/// The asymptotic bounds of each closed source of load.
///
/// # Errors
/// When the model cannot be solved at all.
pub fn bounds(model: &Model) -> Result<Vec<SourceBounds>, Diagnostics> {
    let plan = ModelPlan::new(model)?;
    let held = held(&plan);
    let sources = (0..model.tasks.len()).map(TaskId::from).filter(|task| plan.is_source(*task));
    Ok(sources.map(|task| source(&plan, task, &held)).collect())
}

/// The asymptotic bounds of open arrivals, of each by itself and of all together.
///
/// # Errors
/// When the model cannot be solved at all.
pub fn arrivals(model: &Model) -> Result<(Vec<ArrivalBounds>, Vec<Room>), Diagnostics> {
    let plan = ModelPlan::new(model)?;
    let held = held(&plan);
    let mut found = Vec::new();
    for (number, entry) in model.entries.iter().enumerate() {
        if let Some(rate) = entry.open_arrival_rate.filter(|rate| *rate > 0.0) {
            let mut visits = vec![0.0; plan.entries.len()];
            visits[number] = 1.0;
            let limits = limits(&plan, &mut visits, &held);
            found.push(ArrivalBounds { entry: number.into(), rate, response: held[number].0, limits });
        }
    }
    let mut rooms: Vec<Room> = Vec::new();
    for source in &found {
        for limit in &source.limits {
            let utilization = source.rate / limit.throughput();
            match rooms.iter_mut().find(|room| room.resource == limit.resource) {
                Some(room) => room.utilization += utilization,
                None => rooms.push(Room { resource: limit.resource, utilization }),
            }
        }
    }
    rooms.sort_by(|left, right| right.utilization.total_cmp(&left.utilization));
    Ok((found, rooms))
}

/// By entry: the time of the first phase and of all phases when nothing queues.
fn held(plan: &ModelPlan) -> Vec<(f64, f64)> {
    let mut held = vec![(0.0, 0.0); plan.entries.len()];
    for &entry in plan.order.iter().rev() {
        let planned = &plan.entries[entry.index()];
        let mut strands = vec![(0.0, 0.0); planned.steps.len()];
        for (strand, steps) in planned.steps.iter().enumerate() {
            for step in steps {
                let work = &plan.works[step.work];
                let waits = work.calls.iter().filter(|call| call.synchronous);
                let called: f64 = waits.map(|call| call.mean * held[call.to.index()].0).sum();
                let time = step.visits * (work.slice * work.slices + work.think + called);
                strands[strand].1 += time;
                if step.phase == 0 {
                    strands[strand].0 += time;
                }
            }
        }
        // A fork takes as long as its longest branch at least; with a quorum it may be shorter.
        let mut total = strands.first().copied().unwrap_or_default();
        for fork in planned.shape.forks.iter().filter(|fork| fork.quorum.is_none()) {
            let longest = fork.branches.iter().map(|branch| strands[*branch].1).fold(0.0, f64::max);
            total.1 += fork.visits * longest;
            if fork.phase == 0 {
                total.0 += fork.visits * longest;
            }
        }
        held[entry.index()] = total;
    }
    held
}

fn source(plan: &ModelPlan, task: TaskId, held: &[(f64, f64)]) -> SourceBounds {
    let model = plan.model;
    let own = &model.tasks[task.index()];
    let mut visits = vec![0.0; plan.entries.len()];
    for entry in &own.entries {
        visits[entry.index()] = 1.0 / own.entries.len() as f64;
    }
    let limits = limits(plan, &mut visits, held);
    SourceBounds {
        task,
        population: plan.threads[task.index()],
        think_time: own.think_time,
        response: own.entries.iter().map(|entry| visits[entry.index()] * held[entry.index()].1).sum(),
        limits,
    }
}

/// The bounds of a cycle that begins with those visits to entries; the visits that follow from them are added.
fn limits(plan: &ModelPlan, visits: &mut [f64], held: &[(f64, f64)]) -> Vec<Limit> {
    let model = plan.model;
    let mut processors = vec![0.0; model.processors.len()];
    for &entry in &plan.order {
        let flow = visits[entry.index()];
        if flow <= 0.0 {
            continue;
        }
        let planned = &plan.entries[entry.index()];
        let processor = model.tasks[planned.task.index()].processor.index();
        // How often each strand runs in an execution of the entry: branches follow those that fork them.
        let mut runs = vec![0.0; planned.steps.len()];
        if let Some(first) = runs.first_mut() {
            *first = 1.0;
        }
        for strand in 0..planned.steps.len() {
            for &fork in &planned.shape.strands[strand].forks {
                let fork = &planned.shape.forks[fork];
                fork.branches.iter().for_each(|branch| runs[*branch] += runs[strand] * fork.visits);
            }
            for step in &planned.steps[strand] {
                let work = &plan.works[step.work];
                let executions = flow * runs[strand] * step.visits;
                processors[processor] += executions * work.slice * work.slices;
                for call in &work.calls {
                    visits[call.to.index()] += executions * call.mean;
                }
            }
        }
    }
    let of = |resource: Resource, seconds: f64, servers: f64| Limit { resource, seconds, servers };
    let mut limits: Vec<Limit> = Vec::new();
    for (number, seconds) in processors.into_iter().enumerate() {
        let processor = &model.processors[number];
        let count = processor.multiplicity.servers() * f64::from(processor.replicas.max(1));
        if seconds > 0.0 && count.is_finite() && processor.scheduling != Scheduling::Delay {
            limits.push(of(Resource::Processor(number.into()), seconds, count));
        }
    }
    for (number, other) in model.tasks.iter().enumerate() {
        let seconds: f64 = other.entries.iter().map(|entry| visits[entry.index()] * held[entry.index()].1).sum();
        let count = plan.threads[number];
        if !plan.is_source(number.into()) && seconds > 0.0 && count.is_finite() && other.scheduling != Scheduling::Delay
        {
            limits.push(of(Resource::Task(number.into()), seconds, count));
        }
    }
    limits.sort_by(|left, right| left.throughput().total_cmp(&right.throughput()));
    limits
}
