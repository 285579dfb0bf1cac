//! What of a model is drawn.

use std::collections::VecDeque;

use indexmap::IndexMap;
use indexmap::map::Entry;
use rustc_hash::FxHashMap;

use crate::diagnostic::Severity;
use crate::lqn::flow::ActivityGraph;
use crate::lqn::invocation::Invocation;
use crate::lqn::{ActivityId, Body, CallKind, EntryId, Model, Multiplicity, ProcessorId, Scheduling, Task, TaskId};
use crate::lqn::{lint, results};
use crate::report::draw::lqn::LqnOptions;

/// The source of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Caller {
    Entry(EntryId),
    Activity(ActivityId),
}

/// Requests of one caller to one entry, of one kind.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    pub from: Caller,
    pub task: TaskId,
    pub to: EntryId,
    /// `None` where requests are forwarded.
    pub kind: Option<CallKind>,
    /// Mean number in each phase; one number for activities and forwarded requests.
    pub means: Vec<f64>,
}

impl Requests {
    fn add(&mut self, means: &[f64]) {
        self.means.resize(self.means.len().max(means.len()), 0.0);
        self.means.iter_mut().zip(means).for_each(|(own, mean)| *own += mean);
    }
}

/// The part of a model that is drawn.
pub(super) struct View<'m> {
    pub model: &'m Model,
    /// Tasks, in the model's order.
    pub tasks: Vec<TaskId>,
    pub requests: Vec<Requests>,
    /// Processors with the tasks on them that are drawn.
    pub processors: IndexMap<ProcessorId, Vec<TaskId>>,
    /// How many tasks of the whole model are on each processor.
    pub tasks_on: Vec<usize>,
    hidden_tasks: usize,
    hidden_requests: usize,
    /// Of so many.
    hidden_of: usize,
    focused: bool,
    /// Tasks whose activities are drawn.
    unfolded: Vec<bool>,
}

/// Most activities of which averages are taken, those that entries share counted as often as they do.
const MOST_EXECUTED: usize = 5_000_000;
/// The most activities of a task in focus that are drawn.
const ACTIVITIES: usize = 150;
/// The most activities that are drawn of tasks that are in no focus: more make a picture too large to read.
const ACTIVITIES_IN_ALL: usize = 80;
/// The most points that lines may have before tasks are left out.
const POINTS: usize = 120_000;

impl<'m> View<'m> {
    pub fn new(model: &'m Model, options: &LqnOptions) -> Self {
        let all = requests(model);
        let near = neighbours(model, &all);
        let focus: Vec<TaskId> =
            options.focus.iter().copied().filter(|task| task.index() < model.tasks.len()).collect();
        let order = by_distance(model, &near, &focus, options.hops);
        let mut limit = options.limit.max(1).min(order.len());
        loop {
            let view = Self::of(model, &order[..limit], &all, &focus);
            if limit <= 1 || view.points() <= POINTS {
                return view;
            }
            limit = limit * 3 / 4;
        }
    }

    fn of(model: &'m Model, chosen: &[TaskId], all: &[Requests], focus: &[TaskId]) -> Self {
        let mut shown = vec![false; model.tasks.len()];
        for task in chosen {
            shown[task.index()] = true;
        }
        let visible = |requests: &&Requests| {
            shown[requests.task.index()] && shown[model.entries[requests.to.index()].task.index()]
        };
        let unfolded = unfolded(model, chosen, focus);
        let requests: Vec<Requests> = all.iter().filter(visible).cloned().collect();
        let hidden_requests = all.len() - requests.len();
        let tasks: Vec<TaskId> = (0..model.tasks.len()).map(TaskId::from).filter(|task| shown[task.index()]).collect();
        let mut processors: IndexMap<ProcessorId, Vec<TaskId>> = IndexMap::new();
        let mut tasks_on = vec![0; model.processors.len()];
        for task in &model.tasks {
            if let Some(count) = tasks_on.get_mut(task.processor.index()) {
                *count += 1;
            }
        }
        for &task in &tasks {
            let processor = model.tasks[task.index()].processor;
            if processor.index() < model.processors.len() && !of_users_only(model, &tasks_on, task) {
                processors.entry(processor).or_default().push(task);
            }
        }
        Self {
            hidden_tasks: model.tasks.len() - tasks.len(),
            hidden_requests,
            hidden_of: all.len(),
            requests: folded(model, &unfolded, requests),
            model,
            tasks,
            processors,
            tasks_on,
            focused: !focus.is_empty(),
            unfolded,
        }
    }

    /// Whether some work that is drawn has a delay.
    pub fn has_delays(&self) -> bool {
        let entries = self.tasks.iter().flat_map(|task| self.entries(*task));
        let activities = self.tasks.iter().filter(|task| self.shows_activities(**task));
        let mut activities = activities.flat_map(|task| &self.task(*task).activities);
        entries.into_iter().any(|entry| match &self.model.entries[entry.index()].body {
            Body::Phases(phases) => phases.iter().any(|work| work.think_time > 0.0),
            Body::Activities(_) => false,
        }) || activities.any(|own| self.model.activities.get(own.index()).is_some_and(|own| own.work.think_time > 0.0))
    }

    /// Whether a task's activities are drawn.
    pub fn shows_activities(&self, task: TaskId) -> bool {
        self.unfolded[task.index()]
    }

    /// Whether a processor is not drawn: that of users that only wait says nothing.
    pub fn is_left_out(&self, processor: ProcessorId) -> bool {
        !self.processors.contains_key(&processor)
    }

    pub fn task(&self, id: TaskId) -> &'m Task {
        &self.model.tasks[id.index()]
    }

    /// The entries of a task that exist.
    pub fn entries(&self, task: TaskId) -> impl Iterator<Item = EntryId> + use<'m> {
        let count = self.model.entries.len();
        self.model.tasks[task.index()].entries.iter().copied().filter(move |entry| entry.index() < count)
    }

    /// An upper guess of what the layout would have to hold.
    fn points(&self) -> usize {
        let mut graph = crate::lqn::layout::Graph::default();
        graph.boxes.resize_with(self.model.tasks.len(), Default::default);
        graph.arcs = self
            .requests
            .iter()
            .map(|requests| crate::lqn::layout::Link {
                from: (requests.task.index(), 0),
                to: (self.model.entries[requests.to.index()].task.index(), 0),
                label: Some((0.0, 0.0)),
            })
            .collect();
        graph.points()
    }

    /// What is left out, in sentences.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.hidden_tasks > 0 {
            let why = if self.focused { "out of focus" } else { "beyond the limit" };
            notes.push(format!(
                "{} of {} tasks and {} of {} requests are not drawn: {why}",
                self.hidden_tasks,
                self.model.tasks.len(),
                self.hidden_requests,
                self.hidden_of,
            ));
        }
        let folded = self.tasks.iter().filter(|task| !self.unfolded[task.index()]);
        let counts = folded.map(|task| self.task(*task).activities.len()).filter(|count| *count > 0);
        let (tasks, activities) = counts.fold((0, 0), |(tasks, all), count| (tasks + 1, all + count));
        if tasks > 0 {
            notes.push(format!(
                "the {activities} activities of {tasks} {} are not drawn, only what they request in all; a focus on a task shows up to \
                 {ACTIVITIES}",
                if tasks == 1 { "task" } else { "tasks" }
            ));
        }
        notes
    }
}

/// Whether a task is a source of load that has a delay for a processor to itself.
fn of_users_only(model: &Model, tasks_on: &[usize], task: TaskId) -> bool {
    let task = &model.tasks[task.index()];
    let processor = task.processor.index();
    task.scheduling == Scheduling::Reference
        && tasks_on[processor] == 1
        && model.processors[processor].multiplicity == Multiplicity::Infinite
}

/// All requests, those of one caller to one entry together. What names nothing is left to the lint.
fn requests(model: &Model) -> Vec<Requests> {
    type Key = (Caller, EntryId, Option<CallKind>);
    let mut found: IndexMap<Key, (TaskId, Vec<f64>)> = IndexMap::new();
    let known =
        |entry: EntryId| model.entries.get(entry.index()).is_some_and(|entry| entry.task.index() < model.tasks.len());
    for request in model.requests() {
        let (from, task, phase) = match request.from {
            results::Caller::Phase(entry, phase) => {
                (Caller::Entry(entry), model.entries[entry.index()].task, usize::from(phase))
            }
            results::Caller::Forward(entry) => (Caller::Entry(entry), model.entries[entry.index()].task, 1),
            results::Caller::Activity(activity) => {
                (Caller::Activity(activity), model.activities[activity.index()].task, 1)
            }
        };
        if known(request.to) && task.index() < model.tasks.len() {
            let (_, means) = found.entry((from, request.to, request.kind)).or_insert_with(|| (task, Vec::new()));
            means.resize(means.len().max(phase), 0.0);
            means[phase - 1] += request.mean;
        }
    }
    found.into_iter().map(|((from, to, kind), (task, means))| Requests { from, task, to, kind, means }).collect()
}

/// The tasks whose activities are drawn, by task: those in focus, and of the others those with few, as long as there is room.
fn unfolded(model: &Model, chosen: &[TaskId], focus: &[TaskId]) -> Vec<bool> {
    let mut unfolded = vec![false; model.tasks.len()];
    let count = |task: TaskId| model.tasks[task.index()].activities.len();
    let mut others: Vec<TaskId> = chosen.iter().copied().filter(|task| count(*task) > 0).collect();
    others.sort_by_key(|task| count(*task));
    let mut room = ACTIVITIES_IN_ALL;
    for task in others {
        unfolded[task.index()] = if focus.contains(&task) {
            count(task) <= ACTIVITIES
        } else {
            let fits = count(task) <= room;
            room -= if fits { count(task) } else { 0 };
            fits
        };
    }
    unfolded
}

/// Requests of activities that are not drawn as those of their entries: so many in all per invocation, where that can be told.
fn folded(model: &Model, unfolded: &[bool], requests: Vec<Requests>) -> Vec<Requests> {
    let is_folded = |request: &Requests| matches!(request.from, Caller::Activity(_)) && !unfolded[request.task.index()];
    if !requests.iter().any(is_folded) || !lint::check(model).iter().all(|finding| finding.severity != Severity::Error)
    {
        return requests;
    }
    let graph = ActivityGraph::new(model);
    let mut room = MOST_EXECUTED;
    let mut done: FxHashMap<ActivityId, Vec<(EntryId, f64)>> = FxHashMap::default();
    for (number, entry) in model.entries.iter().enumerate().filter(|(_, entry)| !unfolded[entry.task.index()]) {
        if room == 0 || !matches!(entry.body, Body::Activities(_)) {
            continue;
        }
        let Ok(invocation) = Invocation::new(model, &graph, EntryId::from(number)) else { continue };
        room = room.saturating_sub(invocation.len());
        for (activity, times) in invocation.executions() {
            done.entry(activity).or_default().push((EntryId::from(number), times));
        }
    }
    let mut found: IndexMap<(Caller, EntryId, Option<CallKind>), Requests> = IndexMap::new();
    for request in requests {
        let owners = match request.from {
            Caller::Activity(activity) if is_folded(&request) => done.get(&activity),
            _ => None,
        };
        let scaled = |(entry, times): &(EntryId, f64)| Requests {
            from: Caller::Entry(*entry),
            means: request.means.iter().map(|mean| mean * times).collect(),
            ..request.clone()
        };
        let parts = owners.map_or_else(|| vec![request.clone()], |owners| owners.iter().map(scaled).collect());
        for part in parts {
            match found.entry((part.from, part.to, part.kind)) {
                Entry::Vacant(new) => {
                    new.insert(part);
                }
                Entry::Occupied(same) => same.into_mut().add(&part.means),
            }
        }
    }
    found.into_values().collect()
}

/// Tasks that exchange requests with each task.
fn neighbours(model: &Model, requests: &[Requests]) -> Vec<Vec<TaskId>> {
    let mut near = vec![Vec::new(); model.tasks.len()];
    for one in requests {
        let other = model.entries[one.to.index()].task;
        near[one.task.index()].push(other);
        near[other.index()].push(one.task);
    }
    near
}

/// Tasks by their distance from the focus, no further than so many hops; all of them from the sources of load where there is none.
fn by_distance(model: &Model, near: &[Vec<TaskId>], focus: &[TaskId], hops: usize) -> Vec<TaskId> {
    let mut seen = vec![false; model.tasks.len()];
    let mut order = Vec::new();
    let mut queue: VecDeque<(TaskId, usize)> = VecDeque::new();
    let all = (0..model.tasks.len()).map(TaskId::from);
    let sources = all.clone().filter(|task| model.tasks[task.index()].scheduling == Scheduling::Reference);
    let starts: Vec<TaskId> = if focus.is_empty() { sources.chain(all).collect() } else { focus.to_vec() };
    for (place, &start) in starts.iter().enumerate() {
        // All of a focus are at no distance; otherwise one source's part of the model comes after the other's.
        if !seen[start.index()] {
            seen[start.index()] = true;
            queue.push_back((start, 0));
        }
        if !focus.is_empty() && place + 1 < starts.len() {
            continue;
        }
        while let Some((task, distance)) = queue.pop_front() {
            order.push(task);
            if !focus.is_empty() && distance == hops {
                continue;
            }
            for &next in &near[task.index()] {
                if !seen[next.index()] {
                    seen[next.index()] = true;
                    queue.push_back((next, distance + 1));
                }
            }
        }
    }
    order
}
