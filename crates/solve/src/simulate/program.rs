//! A model made ready to simulate: tables that name each other by index, with every probability and mean worked out.
//!
//! Replicas are unfolded into instances. What phases and activities have in common is a *step*: work to do, and what comes
//! *after* it.

mod build;
mod graph;

use dyelog_diagnostic::Diagnostics;
use dyelog_lqn::bounds;
use dyelog_lqn::model::{CallKind, Dispatching, EntryId, Model, SemaphoreRole};
use dyelog_lqn::results::Caller;

use super::random::Times;
use crate::prepare::caveats::{self, Answer};
use crate::prepare::check;

/// No element.
pub(super) const NONE: u32 = u32::MAX;
/// Requests that are under way at most: more grow without end.
const MOST_REQUESTS: usize = 250_000;
/// The same where they are known to grow.
const FEW_REQUESTS: usize = 2_000;
/// A model of more steps has no operational analysis.
const MOST_STEPS: usize = 1_000_000;
/// Most customers, instances and unfolded calls.
const MOST: usize = 4_000_000;

/// A run of elements in one of the program's vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub first: u32,
    pub count: u32,
}

impl Span {
    /// The elements from a position on.
    fn since(first: usize, end: usize) -> Self {
        Self { first: first as u32, count: (end - first) as u32 }
    }

    pub fn range(self) -> std::ops::Range<usize> {
        self.first as usize..(self.first + self.count) as usize
    }
}

/// How a processor serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discipline {
    /// Everyone at once.
    Delay,
    /// First come, first served.
    Fcfs,
    /// Priorities without pre-emption.
    HeadOfLine,
    /// Priorities with pre-emption; work is resumed.
    Preemptive,
    /// Whichever.
    Random,
    /// Everyone at once, by equal shares of the servers.
    Sharing,
}

/// A copy of a processor.
#[derive(Clone, Debug)]
pub(super) struct Station {
    pub discipline: Discipline,
    pub servers: u32,
    /// How many servers groups with a cap may use on the mean of a period.
    pub caps: Vec<f64>,
}

/// How a task takes requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acceptance {
    /// In the order of arrival.
    Fcfs,
    /// By the priority of the entry.
    Priority,
}

/// A copy of a task; of a semaphore or a lock, the requests of one role to that copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instance {
    pub task: u32,
    pub station: u32,
    /// 0, or one more than the number of its cap at the station.
    pub share: u32,
    /// [`NONE`] where there is no limit.
    pub threads: u32,
    pub priority: i32,
    pub acceptance: Acceptance,
}

/// A task.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskPlan {
    /// Its instances.
    pub instances: Span,
    /// Customers of each instance, for a source.
    pub customers: u32,
    pub think: Times,
    /// How requests come to its instances.
    pub dispatching: Dispatching,
}

impl TaskPlan {
    /// The instance to which requests of that role go, in that copy.
    pub fn of_role(&self, role: Option<SemaphoreRole>, copy: u32) -> u32 {
        let group = match role {
            None | Some(SemaphoreRole::Wait | SemaphoreRole::ReadLock) => 0,
            Some(SemaphoreRole::Signal | SemaphoreRole::ReadUnlock) => 1,
            Some(SemaphoreRole::WriteLock) => 2,
            Some(SemaphoreRole::WriteUnlock) => 3,
        };
        self.instances.first + group * self.instances.count + copy
    }
}

/// An entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryPlan {
    pub task: u32,
    pub start: u32,
    pub forwards: Span,
    /// How many counters its joins need.
    pub joins: u32,
    /// Mean time between open arrivals at each instance.
    pub open: Times,
    pub priority: i32,
    pub role: Option<SemaphoreRole>,
}

/// A phase or an activity, where it stands in an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimulatedStep {
    /// Time of each slice.
    pub slice: Times,
    /// A delay before the first.
    pub think: Times,
    /// The calls between slices.
    pub calls: Span,
    /// Mean number of slices: one more than of calls.
    pub slices: f64,
    /// Whether numbers of calls are exact.
    pub deterministic: bool,
    /// Whether the request is answered when it ends.
    pub replies: bool,
    /// Whether it is a phase of its own.
    pub phase: bool,
    /// Figures of an activity.
    pub figures: u32,
    /// Index in [`SimulationProgram::afters`].
    pub after: u32,
}

/// A call, to one copy of its target.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallPlan {
    pub entry: u32,
    pub synchronous: bool,
    pub mean: f64,
    /// The sum of this and all earlier means of the step.
    pub upto: f64,
    pub figures: u32,
    /// Which of the copies that a caller knows.
    pub copy: u32,
    pub route: Route,
    /// How many calls from this one on stand for one whose copy is left to chance; 1 where each is made for itself.
    pub any_of: u32,
}

/// Which copy of the target a copy of the caller knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// So many a copy of the caller, in turn.
    Fan(u32),
    /// Any.
    Any,
}

/// Where a request may be forwarded to.
#[derive(Clone, Copy, Debug)]
pub(super) struct ForwardPlan {
    pub entry: u32,
    /// The sum of this and all earlier probabilities of the entry.
    pub upto: f64,
    pub figures: u32,
}

/// What comes after a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum After {
    /// Nothing.
    End,
    /// One step.
    Next(u32),
    /// All of these targets.
    Fork(Span),
    /// One of these targets.
    Choose(Span),
    /// One of these targets and again from here, or what comes after.
    Loop { bodies: Span, total: f64, end: u32 },
    /// What comes after, once `need` of `total` have come here.
    Join { slot: u32, need: u32, total: u32, then: u32 },
}

/// A target with the sum of this and all earlier weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Target {
    pub step: u32,
    pub upto: f64,
}

/// Where the sums of each kind of element begin.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Layout {
    pub activities: usize,
    pub calls: usize,
    pub count: usize,
}

/// Sums of an entry: invocations, times of the three phases, processor time, answers to open arrivals and their times.
pub(super) const ENTRY_SUMS: usize = 7;
/// Where processor time is.
pub(super) const PROCESSOR_TIME: usize = 4;
/// Where answers to open arrivals are.
pub(super) const OPEN: usize = 5;

/// A model made ready.
#[derive(Debug)]
pub(super) struct SimulationProgram<'a> {
    pub model: &'a Model,
    pub stations: Vec<Station>,
    pub instances: Vec<Instance>,
    pub tasks: Vec<TaskPlan>,
    pub entries: Vec<EntryPlan>,
    pub steps: Vec<SimulatedStep>,
    pub afters: Vec<After>,
    pub targets: Vec<Target>,
    pub calls: Vec<CallPlan>,
    pub forwards: Vec<ForwardPlan>,
    /// Callers and targets, row by row, as in [`dyelog_lqn::results::Results::calls`].
    pub rows: Vec<(Caller, EntryId, Option<CallKind>)>,
    pub layout: Layout,
    /// From so many requests under way on, the simulation ends: they grow without end.
    pub most_requests: usize,
    pub caveats: Vec<String>,
}

impl<'a> SimulationProgram<'a> {
    /// Checks and prepares a model.
    pub fn new(model: &'a Model) -> Result<Self, Diagnostics> {
        check::check(model)?;
        let mut program = Self {
            model,
            stations: Vec::new(),
            instances: Vec::new(),
            tasks: Vec::new(),
            entries: Vec::new(),
            steps: Vec::new(),
            afters: vec![After::End],
            targets: Vec::new(),
            calls: Vec::new(),
            forwards: Vec::new(),
            rows: Vec::new(),
            layout: Layout::default(),
            most_requests: if bounds::busiest(model, MOST_STEPS) < 1.0 { MOST_REQUESTS } else { FEW_REQUESTS },
            caveats: caveats::of_model(model, Answer::Simulation),
        };
        program.add_tasks()?;
        program.add_entries()?;
        Ok(program)
    }

    /// Whether the task is a source of load.
    pub fn is_source(&self, task: u32) -> bool {
        self.tasks[task as usize].customers > 0
    }

    /// The instance of a task that a copy of it is.
    pub fn copy_of(&self, instance: u32) -> u32 {
        let plan = &self.tasks[self.instances[instance as usize].task as usize];
        (instance - plan.instances.first) % plan.instances.count
    }

    /// The instance that serves requests to the entry in that copy of its task.
    pub fn instance(&self, entry: u32, copy: u32) -> u32 {
        let plan = &self.entries[entry as usize];
        let task = &self.tasks[plan.task as usize];
        task.of_role(plan.role, copy % task.instances.count)
    }
}
