//! From a model's elements to the tables.

use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog_lqn::flow::ActivityGraph;
use dyelog_lqn::invocation::Invocation;
use dyelog_lqn::model::{Body, CallKind, CallOrder, EntryId, Group, Model, Multiplicity, Scheduling, TaskId, Work};
use dyelog_lqn::results::Caller;

use super::graph::Graph;
use super::{
    Acceptance, After, CallPlan, Discipline, ENTRY_SUMS, EntryPlan, ForwardPlan, Instance, MOST, NONE, Route,
    SimulatedStep, SimulationProgram, Span, Station, TaskPlan,
};
use crate::codes;
use crate::prepare::caveats::{self, Answer};
use crate::prepare::plan::without_meaning;
use crate::simulate::random::Times;

impl SimulationProgram<'_> {
    pub(super) fn add_tasks(&mut self) -> Result<(), Diagnostics> {
        let model = self.model;
        let mut first_stations = Vec::with_capacity(model.processors.len());
        let mut customers = 0_usize;
        let shares = Shares::of(model);
        for (processor, caps) in model.processors.iter().zip(shares.caps) {
            first_stations.push(self.stations.len());
            let discipline = match (processor.scheduling, processor.multiplicity) {
                (Scheduling::Delay, _) | (_, Multiplicity::Infinite) => Discipline::Delay,
                (Scheduling::HeadOfLine, _) => Discipline::HeadOfLine,
                (Scheduling::PreemptivePriority, _) => Discipline::Preemptive,
                (Scheduling::Random, _) => Discipline::Random,
                (Scheduling::ProcessorSharing | Scheduling::CompletelyFair, _) => Discipline::Sharing,
                _ => Discipline::Fcfs,
            };
            let station = Station { discipline, servers: count(processor.multiplicity), caps };
            let copies = processor.copies() as usize;
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
            let stations = model.processors[processor].copies();
            // In the order of [`TaskPlan::of_role`]: what gives back has no need to wait.
            let of_roles = [threads, NONE, 1, NONE];
            let roles = if task.scheduling.is_lock() { 4 } else { 1 };
            let copies = task.copies();
            customers += if source { copies as usize * threads as usize } else { 0 };
            if first + copies as usize > MOST || customers > MOST {
                return Err(too_large());
            }
            for threads in of_roles.into_iter().take(roles) {
                self.instances.extend((0..copies).map(|copy| Instance {
                    task: index as u32,
                    station: first_stations[processor] as u32 + copy % stations,
                    share: task.group.map_or(0, |group| shares.of_groups[group.index()]),
                    threads,
                    priority: task.priority,
                    acceptance,
                }));
            }
            self.tasks.push(TaskPlan {
                instances: Span { first: first as u32, count: copies },
                customers: if source { threads } else { 0 },
                think: Times::new(task.think_time, 1.0),
                dispatching: task.dispatched(),
            });
        }
        Ok(())
    }

    pub(super) fn add_entries(&mut self) -> Result<(), Diagnostics> {
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
    pub(super) fn step(&mut self, work: &Work, task: TaskId, first_row: usize) -> SimulatedStep {
        let model = self.model;
        let first = self.calls.len();
        let mut total = 0.0;
        for (position, call) in work.calls.iter().enumerate() {
            let (copies, route) = route(model, task, model.entries[call.to.index()].task);
            let any_of = if work.call_order == CallOrder::Bernoulli { copies } else { 1 };
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
                    any_of,
                });
            }
        }
        let slices = 1.0 + total;
        let speed = model.speed(task);
        SimulatedStep {
            slice: Times::new(work.demand / speed / slices, work.cv2.unwrap_or(1.0)),
            think: Times::new(work.think_time, work.think_cv2.unwrap_or(1.0)),
            calls: Span::since(first, self.calls.len()),
            slices,
            deterministic: work.call_order != CallOrder::Stochastic,
            replies: false,
            phase: false,
            figures: NONE,
            after: 0,
        }
    }
}

/// Who stands still together on completely fair processors.
struct Shares {
    /// By group: 0 without a cap, else one more than its number on the processor.
    of_groups: Vec<u32>,
    /// By processor: the caps, as numbers of servers.
    caps: Vec<Vec<f64>>,
}

impl Shares {
    fn of(model: &Model) -> Self {
        let mut caps = vec![Vec::new(); model.processors.len()];
        let of_group = |group: &Group| match group.servers(&model.processors[group.processor.index()]) {
            Some(servers) => {
                let own: &mut Vec<f64> = &mut caps[group.processor.index()];
                own.push(servers);
                own.len() as u32
            }
            None => 0,
        };
        Self { of_groups: model.groups.iter().map(of_group).collect(), caps }
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
    let (copies, targets) = (u64::from(source.copies()), u64::from(target.copies()));
    let out = model.fan_out(from, to).unwrap_or(1).min(targets) as u32;
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
