//! Builds a model from names, for readers of every language.
//!
//! Errors come without a place: the reader knows it and adds it.

use std::cell::Cell;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::findings::{Fault, fault};
use crate::places::{Places, Position};
use crate::{
    Activity, ActivityId, Body, CallKind, Dispatching, Entry, EntryId, Group, GroupId, Model, Multiplicity, Processor,
    ProcessorId, Scheduling, Task, TaskId, Work, codes,
};

/// A caller.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Caller {
    /// An entry in a phase; 0 where a record tells of all phases.
    Phase(EntryId, usize),
    Activity(ActivityId),
}

/// A model in the making, with tables from names to elements.
#[derive(Default)]
pub(super) struct Builder {
    pub(super) model: Model,
    processors: FxHashMap<Arc<str>, ProcessorId>,
    groups: FxHashMap<Arc<str>, GroupId>,
    tasks: FxHashMap<Arc<str>, TaskId>,
    entries: FxHashMap<Arc<str>, EntryId>,
    /// By task.
    activities: Vec<FxHashMap<Arc<str>, ActivityId>>,
    calls: FxHashSet<(Caller, EntryId, CallKind)>,
    /// Where what is added next stands.
    pub(super) here: Position,
    /// Where elements stand, by the words with which the lint names them.
    places: FxHashMap<String, Position>,
    /// Hints given for unknown names.
    hints: Cell<u32>,
}

fn duplicate(kind: &str, name: &str) -> Fault {
    let mut error = fault(codes::DUPLICATE_NAME, format!("there are two {kind} called `{name}`"));
    error.hints.push("give one of them another name".to_owned());
    error
}

/// How many unknown names get a hint, and among how many names it is sought: a file may have 10^5 of both.
const HINTS: u32 = 10;
const HINTED_NAMES: usize = 20_000;

impl Builder {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn add_processor(&mut self, processor: Processor) -> Result<ProcessorId, Fault> {
        let id = ProcessorId::from(self.model.processors.len());
        if self.processors.contains_key(&processor.name) {
            return Err(duplicate("processors", &processor.name));
        }
        self.place(format!("processor `{}`", processor.name));
        self.processors.insert(Arc::clone(&processor.name), id);
        self.model.processors.push(processor);
        Ok(id)
    }

    pub(super) fn add_group(&mut self, group: Group) -> Result<GroupId, Fault> {
        let id = GroupId::from(self.model.groups.len());
        if self.groups.contains_key(&group.name) {
            return Err(duplicate("groups", &group.name));
        }
        self.place(format!("group `{}`", group.name));
        self.groups.insert(Arc::clone(&group.name), id);
        self.model.groups.push(group);
        Ok(id)
    }

    pub(super) fn add_task(&mut self, task: Task) -> Result<TaskId, Fault> {
        let id = TaskId::from(self.model.tasks.len());
        if self.tasks.contains_key(&task.name) {
            return Err(duplicate("tasks", &task.name));
        }
        self.place(format!("task `{}`", task.name));
        self.tasks.insert(Arc::clone(&task.name), id);
        self.model.tasks.push(task);
        self.activities.push(FxHashMap::default());
        Ok(id)
    }

    pub(super) fn add_entry(&mut self, task: TaskId, name: &str) -> Result<EntryId, Fault> {
        if self.entries.contains_key(name) {
            return Err(duplicate("entries", name));
        }
        let id = EntryId::from(self.model.entries.len());
        let entry = Entry::new(name, task);
        self.place(format!("entry `{name}`"));
        self.entries.insert(Arc::clone(&entry.name), id);
        self.model.entries.push(entry);
        self.model.tasks[task.index()].entries.push(id);
        Ok(id)
    }

    /// The activity of that name, made now if the task has none yet.
    pub(super) fn ensure_activity(&mut self, task: TaskId, name: &str) -> ActivityId {
        match self.known_activity(task, name) {
            Some(id) => id,
            None => self.make_activity(task, name),
        }
    }

    pub(super) fn add_activity(&mut self, task: TaskId, name: &str) -> Result<ActivityId, Fault> {
        match self.known_activity(task, name) {
            Some(_) => Err(duplicate("activities of one task", name)),
            None => Ok(self.make_activity(task, name)),
        }
    }

    fn known_activity(&self, task: TaskId, name: &str) -> Option<ActivityId> {
        self.activities[task.index()].get(name).copied()
    }

    fn make_activity(&mut self, task: TaskId, name: &str) -> ActivityId {
        let id = ActivityId::from(self.model.activities.len());
        let name: Arc<str> = name.into();
        self.place(format!("activity `{name}` of task `{}`", self.model.tasks[task.index()].name));
        self.activities[task.index()].insert(Arc::clone(&name), id);
        self.model.activities.push(Activity::new(&name, task));
        self.model.tasks[task.index()].activities.push(id);
        id
    }

    pub(super) fn processor(&self, name: &str) -> Result<ProcessorId, Fault> {
        let names = || self.model.processors.iter().map(|processor| &*processor.name);
        self.processors.get(name).copied().ok_or_else(|| self.unknown("processor", name, names()))
    }

    pub(super) fn group(&self, name: &str) -> Result<GroupId, Fault> {
        let names = || self.model.groups.iter().map(|group| &*group.name);
        self.groups.get(name).copied().ok_or_else(|| self.unknown("group", name, names()))
    }

    pub(super) fn task(&self, name: &str) -> Result<TaskId, Fault> {
        let names = || self.model.tasks.iter().map(|task| &*task.name);
        self.tasks.get(name).copied().ok_or_else(|| self.unknown("task", name, names()))
    }

    pub(super) fn entry(&self, name: &str) -> Result<EntryId, Fault> {
        let names = || self.model.entries.iter().map(|entry| &*entry.name);
        self.entries.get(name).copied().ok_or_else(|| self.unknown("entry", name, names()))
    }

    /// An activity that must be declared already.
    pub(super) fn activity(&self, task: TaskId, name: &str) -> Result<ActivityId, Fault> {
        self.known_activity(task, name).ok_or_else(|| {
            let own = &self.model.tasks[task.index()].activities;
            self.unknown("activity", name, own.iter().map(|id| &*self.model.activities[id.index()].name))
        })
    }

    fn unknown<'a>(&self, kind: &str, name: &str, names: impl Iterator<Item = &'a str>) -> Fault {
        let error = fault(codes::UNKNOWN_NAME, format!("there is no {kind} `{name}`"));
        if self.hints.get() >= HINTS {
            return error;
        }
        self.hints.set(self.hints.get() + 1);
        Box::new(error.with_similar(name, names.take(HINTED_NAMES)))
    }

    /// Phase `phase` of the entry, from 0, with the phases before it; `None` where the entry is made of activities.
    pub(super) fn phase(&mut self, entry: EntryId, phase: usize) -> Option<&mut Work> {
        match &mut self.model.entries[entry.index()].body {
            Body::Phases(phases) => {
                if phases.len() <= phase {
                    phases.resize_with(phase + 1, Work::default);
                }
                phases.get_mut(phase)
            }
            Body::Activities(_) => None,
        }
    }

    /// Whether these calls were not mentioned before; from now on they are.
    pub(super) fn first_call(&mut self, from: Caller, to: EntryId, kind: CallKind) -> bool {
        self.calls.insert((from, to, kind))
    }

    /// Says that an element, or a part of one, stands here, named as by the lint.
    pub(super) fn place(&mut self, item: String) {
        self.places.insert(item, self.here);
    }

    /// Says where elements stand, named as by the lint; of several of a name the first counts.
    pub(super) fn place_at(&mut self, items: impl Iterator<Item = (String, Position)>) {
        self.places.clear();
        for (item, position) in items {
            self.places.entry(item).or_insert(position);
        }
    }

    /// The model in canonical form, and where its elements stand in the file.
    pub(super) fn finish(self, file: &str) -> (Model, Places) {
        (self.model.into_canonical(), Places::new(file, self.places))
    }
}

impl Processor {
    /// A single processor of speed 1; without limit where its scheduling is [`Scheduling::Delay`].
    pub fn new(name: &str, scheduling: Scheduling) -> Self {
        Self {
            name: name.into(),
            scheduling,
            quantum: None,
            multiplicity: default_multiplicity(scheduling),
            replicas: 1,
            speed: 1.0,
        }
    }
}

impl Task {
    /// A single-threaded task without entries; without limit where its scheduling is [`Scheduling::Delay`].
    pub fn new(name: &str, processor: ProcessorId, scheduling: Scheduling) -> Self {
        Self {
            name: name.into(),
            processor,
            group: None,
            scheduling,
            multiplicity: default_multiplicity(scheduling),
            replicas: 1,
            dispatching: Dispatching::FanOut,
            priority: 0,
            think_time: 0.0,
            queue_length: None,
            fan_in: Vec::new(),
            fan_out: Vec::new(),
            entries: Vec::new(),
            activities: Vec::new(),
            precedences: Vec::new(),
        }
    }
}

impl Entry {
    /// An entry that does nothing.
    pub fn new(name: &str, task: TaskId) -> Self {
        Self {
            name: name.into(),
            task,
            priority: None,
            open_arrival_rate: None,
            semaphore: None,
            body: Body::Phases(vec![Work::default()]),
            forwarding: Vec::new(),
            histograms: Vec::new(),
        }
    }
}

fn default_multiplicity(scheduling: Scheduling) -> Multiplicity {
    if scheduling == Scheduling::Delay { Multiplicity::Infinite } else { Multiplicity::Finite(1) }
}
