//! A model made ready to simulate: tables that name each other by index, with every probability and mean worked out.
//!
//! Replicas are unfolded into instances. What phases and activities have in common is a *step*: work to do, and what comes
//! *after* it.

mod graph;

use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog_lqn::flow::ActivityGraph;
use dyelog_lqn::invocation::Invocation;
use dyelog_lqn::model::{
    Body, CallKind, CallOrder, EntryId, Model, Multiplicity, Scheduling, SemaphoreRole, TaskId, Work,
};
use dyelog_lqn::results::Caller;

use super::random::Times;
use crate::codes;
use crate::prepare::caveats::{self, Answer};
use crate::prepare::check;
use crate::prepare::plan::without_meaning;
use graph::Graph;

/// No element.
pub(super) const NONE: u32 = u32::MAX;
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
#[derive(Clone, Copy, Debug)]
pub(super) struct Station {
    pub discipline: Discipline,
    pub servers: u32,
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
            caveats: caveats::of_model(model, Answer::Simulation),
        };
        program.add_tasks()?;
        program.add_entries()?;
        Ok(program)
    }

    fn add_tasks(&mut self) -> Result<(), Diagnostics> {
        let model = self.model;
        let mut first_stations = Vec::with_capacity(model.processors.len());
        let mut customers = 0_usize;
        for processor in &model.processors {
            first_stations.push(self.stations.len());
            let discipline = match (processor.scheduling, processor.multiplicity) {
                (Scheduling::Delay, _) | (_, Multiplicity::Infinite) => Discipline::Delay,
                (Scheduling::HeadOfLine, _) => Discipline::HeadOfLine,
                (Scheduling::PreemptivePriority, _) => Discipline::Preemptive,
                (Scheduling::Random, _) => Discipline::Random,
                (Scheduling::ProcessorSharing | Scheduling::CompletelyFair, _) => Discipline::Sharing,
                _ => Discipline::Fcfs,
            };
            let station = Station { discipline, servers: count(processor.multiplicity) };
            let copies = processor.replicas.max(1) as usize;
            if self.stations.len() + copies > MOST {
                return Err(too_large());
            }
            self.stations.extend(std::iter::repeat_n(station, copies));
        }
        for (index, task) in model.tasks.iter().enumerate() {
            let source = task.scheduling.is_source();
            let threads = if task.scheduling == Scheduling::Delay { NONE } else { count(task.multiplicity) };
            let acceptance = match task.scheduling {
                Scheduling::HeadOfLine | Scheduling::PreemptivePriority => Acceptance::Priority,
                _ => Acceptance::Fcfs,
            };
            let first = self.instances.len();
            let processor = task.processor.index();
            let stations = model.processors[processor].replicas.max(1);
            // In the order of [`TaskPlan::of_role`]: what gives back has no need to wait.
            let of_roles = [threads, NONE, 1, NONE];
            let roles = if task.scheduling.is_lock() { 4 } else { 1 };
            let copies = task.replicas.max(1);
            customers += if source { copies as usize * threads as usize } else { 0 };
            if first + copies as usize > MOST || customers > MOST {
                return Err(too_large());
            }
            for threads in of_roles.into_iter().take(roles) {
                self.instances.extend((0..copies).map(|copy| Instance {
                    task: index as u32,
                    station: first_stations[processor] as u32 + copy % stations,
                    threads,
                    priority: task.priority,
                    acceptance,
                }));
            }
            self.tasks.push(TaskPlan {
                instances: Span { first: first as u32, count: copies },
                customers: if source { threads } else { 0 },
                think: Times::new(task.think_time, 1.0),
            });
        }
        Ok(())
    }

    fn add_entries(&mut self) -> Result<(), Diagnostics> {
        let model = self.model;
        let mut errors = Vec::new();
        let graph = ActivityGraph::new(model);
        self.layout.activities = model.entries.len() * ENTRY_SUMS;
        self.layout.calls = self.layout.activities + 2 * model.activities.len();
        let first_rows = self.add_rows();
        self.layout.count = self.layout.calls + 2 * self.rows.len();
        for (index, entry) in model.entries.iter().enumerate() {
            let task = &model.tasks[entry.task.index()];
            let first = self.forwards.len();
            let mut upto = 0.0;
            for (position, forward) in entry.forwarding.iter().enumerate() {
                upto += forward.probability;
                self.forwards.push(ForwardPlan {
                    entry: forward.to.0,
                    upto,
                    figures: self.call_figures(first_rows.forwards[index] + position),
                });
            }
            let (start, joins) = match &entry.body {
                Body::Phases(phases) => (self.add_phases(phases, entry.task, first_rows.phases[index]), 0),
                Body::Activities(start) => match Invocation::new(model, &graph, EntryId::from(index)) {
                    Err(error) => {
                        errors.push(without_meaning(model, EntryId::from(index), error));
                        (NONE, 0)
                    }
                    Ok(invocation) => {
                        self.caveats.extend(caveats::of_invocation(&entry.name, &invocation, Answer::Simulation));
                        Graph::new(self, EntryId::from(index), &first_rows.activities).add(&graph, *start)
                    }
                },
            };
            if self.calls.len() > MOST || self.steps.len() > MOST {
                return Err(too_large());
            }
            self.entries.push(EntryPlan {
                task: entry.task.0,
                start,
                forwards: Span::since(first, self.forwards.len()),
                joins,
                open: entry
                    .open_arrival_rate
                    .filter(|rate| *rate > 0.0)
                    .map_or(Times::Zero, |rate| Times::Exponential(1.0 / rate)),
                priority: entry.priority.unwrap_or(0),
                role: entry.semaphore.filter(|_| task.scheduling.is_lock()),
            });
        }
        self.caveats.extend(caveats::of_sources(model));
        if errors.is_empty() { Ok(()) } else { Err(Diagnostics(errors)) }
    }

    /// Rows of results, and where those of each element begin.
    fn add_rows(&mut self) -> FirstRows {
        let model = self.model;
        let mut first = FirstRows::default();
        for (index, entry) in model.entries.iter().enumerate() {
            first.phases.push(self.rows.len());
            if let Body::Phases(phases) = &entry.body {
                for (phase, work) in phases.iter().enumerate() {
                    let caller = Caller::Phase(EntryId::from(index), phase as u8 + 1);
                    self.rows.extend(work.calls.iter().map(|call| (caller, call.to, Some(call.kind))));
                }
            }
        }
        for (index, activity) in model.activities.iter().enumerate() {
            first.activities.push(self.rows.len());
            let caller = Caller::Activity(index.into());
            self.rows.extend(activity.work.calls.iter().map(|call| (caller, call.to, Some(call.kind))));
        }
        for (index, entry) in model.entries.iter().enumerate() {
            first.forwards.push(self.rows.len());
            let caller = Caller::Forward(EntryId::from(index));
            self.rows.extend(entry.forwarding.iter().map(|forward| (caller, forward.to, None)));
        }
        first
    }

    fn call_figures(&self, row: usize) -> u32 {
        (self.layout.calls + 2 * row) as u32
    }

    /// The steps of phases; the first of them.
    fn add_phases(&mut self, phases: &[Work], task: TaskId, first_row: usize) -> u32 {
        let nothing = [Work::default()];
        let phases = if phases.is_empty() { &nothing } else { phases };
        let start = self.steps.len();
        let mut row = first_row;
        for (phase, work) in phases.iter().enumerate() {
            let mut step = self.step(work, task, row);
            step.replies = phase == 0;
            step.phase = true;
            if phase + 1 < phases.len() {
                step.after = self.afters.len() as u32;
                self.afters.push(After::Next((start + phase + 1) as u32));
            }
            self.steps.push(step);
            row += work.calls.len();
        }
        start as u32
    }

    /// A step that ends with nothing, with its calls.
    fn step(&mut self, work: &Work, task: TaskId, first_row: usize) -> SimulatedStep {
        let model = self.model;
        let first = self.calls.len();
        let mut total = 0.0;
        for (position, call) in work.calls.iter().enumerate() {
            let (copies, route) = route(model, task, model.entries[call.to.index()].task);
            for copy in 0..copies {
                if self.calls.len() > MOST {
                    break;
                }
                total += call.mean;
                self.calls.push(CallPlan {
                    entry: call.to.0,
                    synchronous: call.kind == CallKind::Synchronous,
                    mean: call.mean,
                    upto: total,
                    figures: self.call_figures(first_row + position),
                    copy,
                    route,
                });
            }
        }
        let slices = 1.0 + total;
        let speed = model.processors[model.tasks[task.index()].processor.index()].speed;
        SimulatedStep {
            slice: Times::new(work.demand / speed / slices, work.cv2.unwrap_or(1.0)),
            think: Times::new(work.think_time, 1.0),
            calls: Span::since(first, self.calls.len()),
            slices,
            deterministic: work.call_order == CallOrder::Deterministic,
            replies: false,
            phase: false,
            figures: NONE,
            after: 0,
        }
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

/// Where the rows of calls of each element begin.
#[derive(Default)]
struct FirstRows {
    phases: Vec<usize>,
    activities: Vec<usize>,
    forwards: Vec<usize>,
}

/// How many copies of a target a copy of the caller calls, and which.
fn route(model: &Model, from: TaskId, to: TaskId) -> (u32, Route) {
    let (source, target) = (&model.tasks[from.index()], &model.tasks[to.index()]);
    let (copies, targets) = (u64::from(source.replicas.max(1)), u64::from(target.replicas.max(1)));
    let fan = |fans: &[(TaskId, u32)], other: TaskId| {
        fans.iter().find(|fan| fan.0 == other).map(|fan| u64::from(fan.1.max(1)))
    };
    let out = fan(&source.fan_out, to)
        .or_else(|| fan(&target.fan_in, from).map(|fan_in| (fan_in * targets / copies).max(1)))
        .unwrap_or(1)
        .min(targets) as u32;
    let even = u64::from(out) * copies;
    let route = if even % targets == 0 { Route::Fan(out) } else { Route::Any };
    (out, route)
}

/// A multiplicity as a number.
fn count(multiplicity: Multiplicity) -> u32 {
    match multiplicity {
        Multiplicity::Finite(count) => count.clamp(1, NONE - 1),
        Multiplicity::Infinite => NONE,
    }
}

fn too_large() -> Diagnostics {
    let message = format!("the model has more than {MOST} customers, copies or unfolded calls");
    Diagnostic::error(codes::SIZE, Place::Nowhere, message).into()
}
