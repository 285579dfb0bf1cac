//! Replicated tasks and processors as so many copies, each with a queue of its own.
//!
//! A caller with a fan-out makes its calls to each of so many copies, copy after copy around the circle, as tools for the
//! language do. Where neither fan-out nor fan-in is given, copies of the caller share the copies of the callee out among
//! them. All copies are alike, so figures are those of one copy; those of a call are means over the copies called.

use dyelog_lqn::model::{
    Activity, ActivityId, Body, Call, Entry, EntryId, Fork, Forwarding, Group, GroupId, Join, Model, Precedence,
    Processor, ProcessorId, Task, TaskId, Work,
};
use dyelog_lqn::results::{ActivityResult, CallResult, EntryResult, ProcessorResult, Results, TaskResult};

use crate::numeric::arrivals::Arrivals;

/// Models with more tasks than this are not unfolded.
const MOST_TASKS: u64 = 400;

/// A model unfolded.
pub(crate) struct Copies {
    pub model: Model,
    /// First copy of each element, and by row of the unfolded results the row of the model's.
    processors: Vec<usize>,
    groups: Vec<usize>,
    tasks: Vec<usize>,
    entries: Vec<usize>,
    activities: Vec<usize>,
    rows: Vec<usize>,
}

/// Whether the model has copies of anything.
pub(crate) fn any(model: &Model) -> bool {
    model.tasks.iter().any(|task| task.replicas > 1) || model.processors.iter().any(|processor| processor.replicas > 1)
}

/// Unfolds a checked model with replicas, unless it becomes too large. Each copy of a processor has groups of its own.
pub(crate) fn unfold(model: &Model) -> Option<Copies> {
    let all: u64 = model.tasks.iter().map(|task| u64::from(task.copies())).sum();
    let hosts: u64 = model.processors.iter().map(|processor| u64::from(processor.copies())).sum();
    if all > MOST_TASKS || hosts > MOST_TASKS {
        return None;
    }
    Some(Unfolding::new(model).run())
}

struct Unfolding<'a> {
    model: &'a Model,
    copies: Copies,
    /// Row of the next call.
    row: usize,
}

fn starts(counts: impl Iterator<Item = u32>) -> Vec<usize> {
    let mut next = 0;
    counts
        .map(|count| {
            let start = next;
            next += count.max(1) as usize;
            start
        })
        .collect()
}

impl<'a> Unfolding<'a> {
    fn new(model: &'a Model) -> Self {
        let of_task = |task: TaskId| model.tasks[task.index()].replicas;
        let copies = Copies {
            model: Model { comment: model.comment.clone(), parameters: model.parameters.clone(), ..Model::default() },
            processors: starts(model.processors.iter().map(|processor| processor.replicas)),
            groups: starts(model.groups.iter().map(|group| model.processors[group.processor.index()].replicas)),
            tasks: starts(model.tasks.iter().map(|task| task.replicas)),
            entries: starts(model.entries.iter().map(|entry| of_task(entry.task))),
            activities: starts(model.activities.iter().map(|activity| of_task(activity.task))),
            rows: Vec::new(),
        };
        Self { model, copies, row: 0 }
    }

    fn run(mut self) -> Copies {
        let model = self.model;
        for processor in &model.processors {
            for copy in 0..processor.copies() {
                let own = Processor { name: name(&processor.name, copy), replicas: 1, ..processor.clone() };
                self.copies.model.processors.push(own);
            }
        }
        for group in &model.groups {
            for copy in 0..model.processors[group.processor.index()].copies() {
                let processor = ProcessorId::from(self.copies.processors[group.processor.index()] + copy as usize);
                let own = Group { name: name(&group.name, copy), processor, ..group.clone() };
                self.copies.model.groups.push(own);
            }
        }
        for task in &model.tasks {
            for copy in 0..task.copies() {
                let host = (copy % model.processors[task.processor.index()].copies()) as usize;
                let place = self.copies.processors[task.processor.index()] + host;
                let group = |group: GroupId| GroupId::from(self.copies.groups[group.index()] + host);
                let own = Task {
                    name: name(&task.name, copy),
                    processor: ProcessorId::from(place),
                    group: task.group.map(group),
                    replicas: 1,
                    fan_in: Vec::new(),
                    fan_out: Vec::new(),
                    entries: task.entries.iter().map(|entry| self.entry(*entry, copy)).collect(),
                    activities: task.activities.iter().map(|activity| self.activity(*activity, copy)).collect(),
                    precedences: task.precedences.iter().map(|arc| self.precedence(arc, copy)).collect(),
                    ..task.clone()
                };
                self.copies.model.tasks.push(own);
            }
        }
        self.entries();
        self.activities();
        self.forwards();
        self.copies
    }

    fn entries(&mut self) {
        for entry in &self.model.entries {
            let first = self.row;
            for copy in 0..self.model.tasks[entry.task.index()].copies() {
                self.row = first;
                let body = match &entry.body {
                    Body::Phases(phases) => {
                        Body::Phases(phases.iter().map(|work| self.work(work, entry.task, copy)).collect())
                    }
                    Body::Activities(start) => Body::Activities(self.activity(*start, copy)),
                };
                let own =
                    Entry { name: name(&entry.name, copy), task: self.task(entry.task, copy), body, ..entry.clone() };
                self.copies.model.entries.push(own);
            }
        }
    }

    fn activities(&mut self) {
        for activity in &self.model.activities {
            let first = self.row;
            for copy in 0..self.model.tasks[activity.task.index()].copies() {
                self.row = first;
                let own = Activity {
                    task: self.task(activity.task, copy),
                    work: self.work(&activity.work, activity.task, copy),
                    replies: activity.replies.iter().map(|entry| self.entry(*entry, copy)).collect(),
                    ..activity.clone()
                };
                self.copies.model.activities.push(own);
            }
        }
    }

    fn forwards(&mut self) {
        for (number, entry) in self.model.entries.iter().enumerate() {
            let first = self.row;
            for copy in 0..self.model.tasks[entry.task.index()].copies() {
                self.row = first;
                let mut forwarding = Vec::new();
                for forward in &entry.forwarding {
                    let (targets, part) = self.targets(entry.task, forward.to, copy);
                    for to in targets {
                        forwarding.push(Forwarding { to, probability: forward.probability * part });
                        self.copies.rows.push(self.row);
                    }
                    self.row += 1;
                }
                let place = self.copies.entries[number] + copy as usize;
                self.copies.model.entries[place].forwarding = forwarding;
            }
        }
    }

    fn work(&mut self, work: &Work, task: TaskId, copy: u32) -> Work {
        let mut calls = Vec::new();
        for call in &work.calls {
            let (targets, part) = self.targets(task, call.to, copy);
            for to in targets {
                calls.push(Call { to, mean: call.mean * part, ..call.clone() });
                self.copies.rows.push(self.row);
            }
            self.row += 1;
        }
        Work { calls, ..work.clone() }
    }

    /// The copies of an entry that a copy of a task calls, and which part of the given mean number each gets.
    fn targets(&self, from: TaskId, to: EntryId, copy: u32) -> (Vec<EntryId>, f64) {
        let caller = &self.model.tasks[from.index()];
        let target = self.model.entries[to.index()].task;
        let callee = &self.model.tasks[target.index()];
        let (callers, callees) = (u64::from(caller.copies()), u64::from(callee.copies()));
        let (count, part) = self.model.fan_out(from, target).map_or_else(
            || {
                let out = callees.div_ceil(callers);
                (out, 1.0 / out as f64)
            },
            |out| (out, 1.0),
        );
        // A fan-out wider than there are copies goes around once more.
        let rounds = count.div_ceil(callees).max(1);
        let places = (0..count.min(callees)).map(|step| (u64::from(copy) * count + step) % callees);
        let entries = places.map(|place| EntryId::from(self.copies.entries[to.index()] + place as usize)).collect();
        (entries, part * rounds as f64)
    }

    fn task(&self, task: TaskId, copy: u32) -> TaskId {
        TaskId::from(self.copies.tasks[task.index()] + copy as usize)
    }

    fn entry(&self, entry: EntryId, copy: u32) -> EntryId {
        EntryId::from(self.copies.entries[entry.index()] + copy as usize)
    }

    fn activity(&self, activity: ActivityId, copy: u32) -> ActivityId {
        ActivityId::from(self.copies.activities[activity.index()] + copy as usize)
    }

    fn precedence(&self, arc: &Precedence, copy: u32) -> Precedence {
        let one = |activity: &ActivityId| self.activity(*activity, copy);
        let weighed = |ways: &[(f64, ActivityId)]| ways.iter().map(|way| (way.0, one(&way.1))).collect();
        Precedence {
            join: match &arc.join {
                Join::Sequence(activity) => Join::Sequence(one(activity)),
                Join::And { activities, quorum } => {
                    Join::And { activities: activities.iter().map(one).collect(), quorum: *quorum }
                }
                Join::Or(activities) => Join::Or(activities.iter().map(one).collect()),
            },
            fork: arc.fork.as_ref().map(|fork| match fork {
                Fork::Sequence(activity) => Fork::Sequence(one(activity)),
                Fork::And(activities) => Fork::And(activities.iter().map(one).collect()),
                Fork::Or(ways) => Fork::Or(weighed(ways)),
                Fork::Loop { bodies, end } => Fork::Loop { bodies: weighed(bodies), end: end.as_ref().map(one) },
            }),
        }
    }
}

/// The first copy keeps the name.
fn name(name: &str, copy: u32) -> std::sync::Arc<str> {
    if copy == 0 { name.into() } else { format!("{name}.{}", copy + 1).into() }
}

impl Copies {
    /// Results of the model from those of its copies.
    pub fn aggregate(&self, model: &Model, all: Results) -> Results {
        let groups = |starts: &[usize], number: usize, count: usize| {
            starts[number]..starts.get(number + 1).copied().unwrap_or(count)
        };
        let mut processors = Vec::with_capacity(model.processors.len());
        for number in 0..model.processors.len() {
            let own = &all.processors[groups(&self.processors, number, all.processors.len())];
            processors.push(ProcessorResult { utilization: mean(own, |result| result.utilization) });
        }
        let mut tasks = Vec::with_capacity(model.tasks.len());
        for number in 0..model.tasks.len() {
            let own = &all.tasks[groups(&self.tasks, number, all.tasks.len())];
            tasks.push(TaskResult {
                throughput: mean(own, |result| result.throughput),
                utilization: mean(own, |result| result.utilization),
                processor_utilization: mean(own, |result| result.processor_utilization),
            });
        }
        let mut entries = Vec::with_capacity(model.entries.len());
        for number in 0..model.entries.len() {
            let own = &all.entries[groups(&self.entries, number, all.entries.len())];
            entries.push(EntryResult {
                throughput: mean(own, |result| result.throughput),
                service: [0, 1, 2].map(|phase| mean(own, |result| result.service[phase])),
                utilization: mean(own, |result| result.utilization),
                processor_utilization: mean(own, |result| result.processor_utilization),
                open_response: own[0].open_response.map(|_| mean(own, |result| result.open_response.unwrap_or(0.0))),
            });
        }
        let mut activities = Vec::with_capacity(model.activities.len());
        for number in 0..model.activities.len() {
            let own = &all.activities[groups(&self.activities, number, all.activities.len())];
            activities.push(ActivityResult {
                throughput: mean(own, |result| result.throughput),
                service: mean(own, |result| result.service),
            });
        }
        let calls = self.calls(model, &all);
        Results { processors, tasks, entries, activities, calls, ..all }
    }

    fn calls(&self, model: &Model, all: &Results) -> Vec<CallResult> {
        let count = self.rows.iter().max().map_or(0, |row| row + 1);
        let mut sums = vec![(0.0, 0.0); count];
        for (row, call) in self.rows.iter().zip(&all.calls) {
            sums[*row].0 += call.waiting;
            sums[*row].1 += 1.0;
        }
        let rows = crate::prepare::plan::rows(model);
        rows.into_iter()
            .zip(sums)
            .map(|((from, to, kind), (sum, number))| CallResult { from, to, kind, waiting: sum / number })
            .collect()
    }
}

fn mean<T>(all: &[T], value: impl Fn(&T) -> f64) -> f64 {
    all.iter().map(value).sum::<f64>() / all.len().max(1) as f64
}

/// By task of the model unfolded: how requests come to it, as one of several copies. Empty where nothing is dispatched to copies.
pub(crate) fn arrivals(model: &Model) -> Vec<Arrivals> {
    let own = |task: &Task| Arrivals::of(task.dispatched(), task.copies());
    if model.tasks.iter().all(|task| own(task) == Arrivals::Poisson) {
        return Vec::new();
    }
    model.tasks.iter().flat_map(|task| std::iter::repeat_n(own(task), task.copies() as usize)).collect()
}

/// Makes figures of all copies together those of one.
pub(crate) fn of_one(model: &Model, results: &mut Results) {
    let copies = |replicas: u32| f64::from(replicas.max(1));
    for (processor, result) in model.processors.iter().zip(&mut results.processors) {
        result.utilization /= copies(processor.replicas);
    }
    for (task, result) in model.tasks.iter().zip(&mut results.tasks) {
        for figure in [&mut result.throughput, &mut result.utilization, &mut result.processor_utilization] {
            *figure /= copies(task.replicas);
        }
    }
    for (entry, result) in model.entries.iter().zip(&mut results.entries) {
        for figure in [&mut result.throughput, &mut result.utilization, &mut result.processor_utilization] {
            *figure /= copies(model.tasks[entry.task.index()].replicas);
        }
    }
    for (activity, result) in model.activities.iter().zip(&mut results.activities) {
        result.throughput /= copies(model.tasks[activity.task.index()].replicas);
    }
}
