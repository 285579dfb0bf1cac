//! Where the elements of a complete model came from.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::lqn::batches::BatchCosts;
use crate::lqn::sketch::{Quantiles, Sketch};
use crate::lqn::submodel::{EntryIndex, Interaction, Moments, Position, Witness};
use crate::lqn::{EntryId, TaskId};
use crate::model::contexts::Context;
use crate::model::forks::ForkDelays;
use crate::model::{DemandSource, Load, LoadReason, Machine, OwnTime, WorkDoubt};

/// Where the elements of a complete model came from; shapes follow the model's vectors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origins {
    /// One a scenario, in the order of their names.
    pub scenarios: Vec<ScenarioOrigin>,
    /// One a task.
    pub tasks: Vec<TaskOrigin>,
    /// One an entry.
    pub entries: Vec<EntryOrigin>,
    /// One an activity.
    pub activities: Vec<ActivityOrigin>,
    /// Whether traces told of any host what of its time was queueing.
    pub divided: bool,
    /// Processors whose servers were found, without a greatest number that fits, by name in the model.
    pub open_servers: BTreeMap<String, OpenServers>,
    /// Processors that were taken for delays, by name in the model: the fewest servers of a copy that fit as well.
    pub delays: BTreeMap<String, u32>,
    /// Processors that serve an invocation before all others until it has had so many seconds, by name in the model. A model lets all have equal parts.
    pub quanta: BTreeMap<String, f64>,
    /// Processors whose copies are not as busy as each other: how many times as busy as their mean the busiest one is.
    pub uneven: BTreeMap<String, f64>,
    /// How many cores a copy of a processor may use, where that is no whole number of servers, by the name of the processor.
    pub quotas: BTreeMap<String, f64>,
    /// How many servers of a copy of a processor may be busy on the mean, and the machines, where copies of one server share these, by the name of the processor.
    pub machines: BTreeMap<String, (f64, Machine)>,
    /// Servers of a copy of a processor that were measured to be busy beyond what traced operations use.
    pub others: BTreeMap<String, f64>,
    /// What the solver left of the traced time of forks whose branches share processors.
    pub forks: ForkDelays,
}

/// Servers of each copy of a processor, of which no number that was tried is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenServers {
    /// How many were taken.
    pub servers: u32,
    /// The fewest that fit.
    pub least: u32,
}

/// A scenario and its load.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioOrigin {
    /// Its name.
    pub name: Arc<str>,
    /// Operations seen.
    pub operations: u64,
    /// How many of these failed, as far as traces tell.
    pub failures: u64,
    /// Its load in the model.
    pub load: Load,
    /// Why that one.
    pub reason: LoadReason,
    /// Mean response time seen in the traces, seconds.
    pub observed_response: Option<f64>,
    /// By how much that may be off since its clocks count in steps, seconds.
    pub clock_doubt: f64,
    /// Quantiles of the same, where the traces were kept with them.
    pub observed_quantiles: Quantiles,
    /// The 95 % interval of that mean, as the logarithm of a factor to both sides, and the doubt of lost spans.
    pub response_error: Option<f64>,
    /// The squared coefficient of variation of the times between the begins of operations, where traces tell.
    pub interarrival_cv2: Option<f64>,
    /// Operations that were seen to start per second.
    pub observed_rate: Option<f64>,
    /// The 95 % interval of that rate, as a part of it to both sides.
    pub rate_error: Option<f64>,
    /// Its call by which the model is off most, since the callee takes another time for others.
    pub context: Option<Context>,
    /// Whether that rate is a lower bound, since nothing tells how its operations were sampled.
    pub is_least_rate: bool,
    /// The reference task, under a closed load.
    pub customer: Option<TaskId>,
    /// Synchronous requests per operation to the first entries, under an open load.
    pub first: Vec<(EntryId, f64)>,
    /// Of a usage profile, its scenarios with their parts of the operations; empty for a scenario by itself.
    pub members: Vec<(Arc<str>, f64)>,
}

impl ScenarioOrigin {
    /// The table of a configuration that its load stands in.
    pub fn table(&self) -> &'static str {
        if self.members.is_empty() { "scenario" } else { "profile" }
    }
}

/// Quantiles of times with these moments. A part of the times that was saved without them would pass for all.
pub(super) fn quantiles(times: &Moments, spread: &Sketch) -> Quantiles {
    if spread.len() == times.count { spread.quantiles() } else { Quantiles::default() }
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskOrigin {
    /// Its identifier in the traces; of a customer, its scenario.
    pub identifier: Arc<str>,
    /// Which instance of it, from 1.
    pub instance: u32,
    /// Whether it is a scenario's customer.
    pub customer: bool,
}

/// An entry.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryOrigin {
    /// The sub-model's entry; of a customer the first of those that were put together.
    pub total: EntryIndex,
    /// Its type.
    pub interaction: Interaction,
    /// How often it was invoked.
    pub invocations: u64,
    /// Mean response time seen in the traces, to the end of the first phase, seconds.
    pub observed_response: Option<f64>,
    /// Quantiles of the same, where the traces were kept with them.
    pub observed_quantiles: Quantiles,
    /// What its batches of messages cost, where larger ones serve more.
    pub batches: Option<BatchCosts>,
    /// Where its demand comes from, by phase; one for all phases where it is a graph of activities.
    pub sources: Vec<DemandSource>,
    /// Of demand that comes from exclusive time: what part of that time it is, and what part delays.
    pub own_time: OwnTime,
    /// How far its work may be from what the model has.
    pub doubt: WorkDoubt,
    /// Some of the invocations.
    pub witnesses: Vec<Witness>,
}

/// An activity.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivityOrigin {
    /// The entry it belongs to.
    pub entry: EntryId,
    /// Where in the entry; `None` for an activity that only holds the graph together.
    pub position: Option<Position>,
    /// Where its demand comes from.
    pub source: DemandSource,
}
