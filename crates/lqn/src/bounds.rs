//! Asymptotic bounds: what limits the sources of load of a model, without a solution.
//!
//! The bounds are those of operational analysis (Denning and Buzen 1978): with D the busy time of a resource in a customer's
//! cycle and m its servers, throughput is at most m / D, and at most N / (R + Z) with the response R without queueing.
//! For the threads of a task, D is the time for which a thread is held in a cycle when nothing queues, so that the bound
//! holds for software, too. Open arrivals ask for m / D of each resource by themselves: how far they can grow in proportion follows.

use crate::operational::{HoldingTime, OperationalAnalysis};
use crate::results::Results;
use crate::{EntryId, Model, ProcessorId, Scheduling, TaskId};

/// Something that can be busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// A processor.
    Processor(ProcessorId),
    /// The threads of a task.
    Task(TaskId),
}

impl Resource {
    /// The busy part of its servers or threads, or of what a cap leaves of them; zero where these have no limit.
    pub fn utilization(self, model: &Model, results: &Results) -> f64 {
        match self {
            Self::Processor(id) => results.processors[id.index()].utilization / model.capacity(id),
            Self::Task(id) => results.tasks[id.index()].utilization / model.tasks[id.index()].multiplicity.servers(),
        }
    }
}

/// The bound that one resource sets to one source of load.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Limit {
    /// The resource.
    pub resource: Resource,
    /// Seconds for which one of its servers is busy in a cycle, queueing left out.
    pub seconds: f64,
    /// Its servers, or what a cap leaves of them on the mean.
    pub servers: f64,
}

impl Limit {
    /// The busy part of its servers while so many cycles are done in a second.
    pub fn utilization(&self, rate: f64) -> f64 {
        rate * self.seconds / self.servers
    }

    /// Cycles per second that it can do at most.
    pub fn throughput(&self) -> f64 {
        self.servers / self.seconds
    }
}

/// The bounds of a closed source of load that has the system to itself.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
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
#[non_exhaustive]
pub struct ArrivalBounds {
    /// The entry.
    pub entry: EntryId,
    /// Arrivals per second, at all copies of its task.
    pub rate: f64,
    /// The response time without queueing, seconds.
    pub response: f64,
    /// The bounds, the tightest first; a cycle is one arrival.
    pub limits: Vec<Limit>,
}

/// How far all open arrivals can grow in proportion before a resource is saturated.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
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

/// How busy the busiest resource of a model is under open arrivals, per server, by the utilisation law; 0 where there are none, or no operational analysis within so many steps.
pub fn busiest(model: &Model, limit: usize) -> f64 {
    let analysis = OperationalAnalysis::new(model, limit).ok();
    let rooms = analysis.map(|analysis| AsymptoticBounds::new(analysis).rooms()).unwrap_or_default();
    rooms.first().map_or(0.0, |room| room.utilization)
}

/// The asymptotic bounds of a model, from one operational analysis.
#[derive(Clone, Debug)]
pub struct AsymptoticBounds<'a> {
    analysis: OperationalAnalysis<'a>,
    /// By entry.
    held: Vec<HoldingTime>,
}

impl<'a> AsymptoticBounds<'a> {
    /// The bounds of the model that was analysed.
    pub fn new(analysis: OperationalAnalysis<'a>) -> Self {
        let held = analysis.holding_times();
        Self { analysis, held }
    }

    /// Of each closed source of load by itself, in the order of tasks.
    pub fn closed(&self) -> Vec<SourceBounds> {
        let tasks = &self.analysis.model.tasks;
        let sources = (0..tasks.len()).filter(|&number| tasks[number].scheduling.is_source());
        sources.map(|number| self.source(number.into())).collect()
    }

    /// Of the open arrivals at each entry by themselves, in the order of entries.
    pub fn open(&self) -> Vec<ArrivalBounds> {
        let arrivals = (0..self.held.len()).filter_map(|number| {
            let rate = Some(self.analysis.model.open_rate(number.into())).filter(|rate| *rate > 0.0)?;
            let mut visits = vec![0.0; self.held.len()];
            visits[number] = 1.0;
            let limits = self.limits(&self.analysis.visits(visits));
            Some(ArrivalBounds { entry: number.into(), rate, response: self.held[number].reply, limits })
        });
        arrivals.collect()
    }

    /// Of all open arrivals together: what they leave of each resource, the one nearest to its limit first.
    pub fn rooms(&self) -> Vec<Room> {
        self.rooms_at(&self.analysis.open_rates())
    }

    /// The same where each entry is invoked from outside so many times in a second, and nothing else arrives.
    pub fn rooms_of(&self, invocations: Vec<f64>) -> Vec<Room> {
        self.rooms_at(&self.analysis.visits(invocations))
    }

    fn rooms_at(&self, visits: &[f64]) -> Vec<Room> {
        let asked = self.limits(visits).into_iter();
        asked.map(|limit| Room { resource: limit.resource, utilization: limit.utilization(1.0) }).collect()
    }

    fn source(&self, task: TaskId) -> SourceBounds {
        let own = &self.analysis.model.tasks[task.index()];
        let part = 1.0 / own.entries.len() as f64;
        let mut visits = vec![0.0; self.held.len()];
        for entry in &own.entries {
            visits[entry.index()] = part;
        }
        SourceBounds {
            task,
            population: own.all_threads(),
            think_time: own.think_time,
            response: own.entries.iter().map(|entry| part * self.held[entry.index()].thread).sum(),
            limits: self.limits(&self.analysis.visits(visits)),
        }
    }

    fn limits(&self, visits: &[f64]) -> Vec<Limit> {
        limits(&self.analysis, visits, &self.held)
    }
}

/// The bounds of a cycle with those visits to entries, the tightest first.
pub(crate) fn limits(analysis: &OperationalAnalysis<'_>, visits: &[f64], held: &[HoldingTime]) -> Vec<Limit> {
    let model = analysis.model;
    let mut processors = vec![0.0; model.processors.len()];
    for (entry, (mean, visits)) in model.entries.iter().zip(analysis.means.iter().zip(visits)) {
        processors[model.tasks[entry.task.index()].processor.index()] += visits * mean.demand;
    }
    let mut limits: Vec<Limit> = Vec::new();
    let mut limit = |resource: Resource, seconds: f64, servers: f64, scheduling: Scheduling| {
        if seconds > 0.0 && servers.is_finite() && scheduling != Scheduling::Delay {
            limits.push(Limit { resource, seconds, servers });
        }
    };
    for (number, (processor, seconds)) in model.processors.iter().zip(processors).enumerate() {
        let servers = model.capacity(number.into()) * f64::from(processor.copies());
        limit(Resource::Processor(number.into()), seconds, servers, processor.scheduling);
    }
    for (number, task) in model.tasks.iter().enumerate().filter(|(_, task)| !task.scheduling.is_source()) {
        let seconds: f64 = task.entries.iter().map(|entry| visits[entry.index()] * held[entry.index()].thread).sum();
        limit(Resource::Task(number.into()), seconds, task.all_threads(), task.scheduling);
    }
    limits.sort_by(|left, right| left.throughput().total_cmp(&right.throughput()));
    limits
}
