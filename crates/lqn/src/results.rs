//! What a solver says of a model. Shapes follow the model: one row an element, in the model's order.
//!
//! Times are seconds, rates per second; a utilisation is the mean number of busy servers (so it may exceed 1 on a
//! multiserver). Where an element is replicated, its figures are those of one copy.

use std::borrow::Cow;

use crate::model::{ActivityId, CallKind, EntryId};

/// Steady-state results of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// The solver that made them, such as `layered`.
    pub solver: Cow<'static, str>,
    /// How the solver came to them.
    pub convergence: Convergence,
    /// One a processor.
    pub processors: Vec<ProcessorResult>,
    /// One a task.
    pub tasks: Vec<TaskResult>,
    /// One an entry.
    pub entries: Vec<EntryResult>,
    /// One an activity.
    pub activities: Vec<ActivityResult>,
    /// One a call, in the order of entries and their phases, then activities, then forwardings.
    pub calls: Vec<CallResult>,
    /// What the solver left out or simplified, in words.
    pub caveats: Vec<String>,
    /// What only a simulation tells.
    pub simulated: Option<Simulated>,
}

impl Results {
    /// Results whose figures are the half widths of these; `None` where they were not simulated.
    pub fn half_widths(&self) -> Option<Self> {
        let half = &self.simulated.as_ref()?.half_widths;
        let calls = self.calls.iter().zip(&half.calls);
        Some(Self {
            processors: half.processors.clone(),
            tasks: half.tasks.clone(),
            entries: half.entries.clone(),
            activities: half.activities.clone(),
            calls: calls.map(|(call, waiting)| CallResult { waiting: *waiting, ..call.clone() }).collect(),
            solver: self.solver.clone(),
            convergence: self.convergence.clone(),
            caveats: Vec::new(),
            simulated: None,
        })
    }
}

/// What a simulation tells beside its figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Simulated {
    /// Where its random numbers began.
    pub seed: u64,
    /// Independent runs.
    pub replications: u32,
    /// Events, over all replications.
    pub events: u64,
    /// Simulated time that was measured, over all replications, seconds.
    pub time: f64,
    /// The longest warm-up of a replication, seconds; it was left out.
    pub warm_up: f64,
    /// The widest of the intervals that the simulation was to make narrow, relative to its value.
    pub precision: f64,
    /// Of all figures.
    pub half_widths: HalfWidths,
    /// One an entry that answered anyone; of reference tasks, of whole cycles without the think time.
    pub percentiles: Vec<Percentiles>,
}

/// Half widths of 95 % confidence intervals, in the place of the figures that they belong to. They are zero for what does not
/// vary.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HalfWidths {
    /// One a processor.
    pub processors: Vec<ProcessorResult>,
    /// One a task.
    pub tasks: Vec<TaskResult>,
    /// One an entry.
    pub entries: Vec<EntryResult>,
    /// One an activity.
    pub activities: Vec<ActivityResult>,
    /// One a call: of its waiting.
    pub calls: Vec<f64>,
}

/// How response times of an entry are distributed: from request to answer, waiting included.
#[derive(Clone, Debug, PartialEq)]
pub struct Percentiles {
    /// The entry.
    pub entry: EntryId,
    /// How many responses were seen.
    pub count: u64,
    /// The percentiles, in the order in which they were asked for.
    pub values: Vec<Percentile>,
}

/// The time that a part of all responses does not exceed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percentile {
    /// The part, as 0.95.
    pub part: f64,
    /// The time, seconds; of all responses seen, to within 0.8 %.
    pub time: f64,
    /// Half width of its 95 % confidence interval, those 0.8 % included; `None` where too few responses lie beyond it to tell.
    pub half_width: Option<f64>,
}

/// How a solver came to its results.
#[derive(Clone, Debug, PartialEq)]
pub struct Convergence {
    /// Whether the bound was met.
    pub converged: bool,
    /// Whether more open requests arrive somewhere than can be served: there is no steady state, and times and queues mean nothing.
    pub saturated: bool,
    /// Outer iterations made.
    pub iterations: u32,
    /// Largest relative change in the last iteration.
    pub residual: f64,
    /// The method, in words, such as `exact MVA in 2 layers`.
    pub method: String,
    /// Whether that method has no error of its own beside the bound: a chain of all states, or one layer in product form.
    pub exact: bool,
}

/// Results of a processor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessorResult {
    /// Mean number of busy servers.
    pub utilization: f64,
}

/// Results of a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskResult {
    /// Invocations of all entries per second; of a reference task, cycles per second; of a semaphore or a lock, how often
    /// it is taken.
    pub throughput: f64,
    /// Mean number of busy threads (waiting for replies counts as busy).
    pub utilization: f64,
    /// Mean number of busy servers of its processor that it accounts for.
    pub processor_utilization: f64,
}

impl TaskResult {
    /// Of a reference task, the mean time of a cycle without thinking, seconds, by Little's law; `None` where there are no
    /// cycles. Busy customers are counted, and not those that think: of a simulation, the difference of two long times that
    /// are nearly equal would be mostly noise.
    pub fn response(&self) -> Option<f64> {
        (self.throughput > 0.0).then(|| self.utilization / self.throughput)
    }
}

/// Results of an entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntryResult {
    /// Invocations per second.
    pub throughput: f64,
    /// Service time of each phase, seconds: from acceptance to reply for the first, waiting at servers and processors included.
    pub service: [f64; 3],
    /// Mean number of busy threads.
    pub utilization: f64,
    /// Mean number of busy servers of its processor.
    pub processor_utilization: f64,
    /// Mean response time of open arrivals, from arrival to reply, seconds; `None` where it has none.
    pub open_response: Option<f64>,
}

/// Results of an activity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActivityResult {
    /// Executions per second.
    pub throughput: f64,
    /// Mean time from start to end, seconds.
    pub service: f64,
}

/// From where a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Caller {
    /// From a phase (1 to 3) of an entry.
    Phase(EntryId, u8),
    /// From an activity.
    Activity(ActivityId),
    /// Passed on by an entry.
    Forward(EntryId),
}

/// Results of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallResult {
    /// The caller.
    pub from: Caller,
    /// The called entry.
    pub to: EntryId,
    /// Whether the caller waits; `None` for a forwarded request.
    pub kind: Option<CallKind>,
    /// Mean time a request waits before it is accepted, seconds. For all kinds service is *not* included.
    pub waiting: f64,
}
