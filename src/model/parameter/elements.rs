//! Numbers of a model by their paths, in the model's words.

use crate::lqn::{ActivityId, Body, EntryId, Fork, Join, Model, Multiplicity, ProcessorId, Scheduling, TaskId, Work};
use crate::model::load;
use crate::model::parameter::{Kind, Path, Value};

/// A number of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    Servers(ProcessorId),
    Speed(ProcessorId),
    Copies(ProcessorId),
    Quota(ProcessorId),
    Threads(TaskId),
    ThinkTime(TaskId),
    Replicas(TaskId),
    Priority(TaskId),
    Allocation(TaskId),
    Demand(EntryId, usize),
    Rate(EntryId),
    Calls(EntryId, EntryId),
    ActivityDemand(ActivityId),
    /// So many times the customers and the arrivals of all sources.
    Load,
}

/// The first names of paths that lead to numbers of a finished model, whatever it is of.
pub(super) const FINISHED: [&str; 4] = ["entry", "call", "activity", "load"];

/// A key of an element of some kind, what it takes, and the number that it leads to.
type Key<I> = (&'static str, Kind, fn(I) -> Element);

const PROCESSOR: [Key<ProcessorId>; 4] = [
    ("multiplicity", Kind::Servers, Element::Servers),
    ("speed", Kind::Number, Element::Speed),
    ("replicas", Kind::Count, Element::Copies),
    ("quota", Kind::Number, Element::Quota),
];
const TASK: [Key<TaskId>; 5] = [
    ("multiplicity", Kind::Servers, Element::Threads),
    ("think_time", Kind::Time, Element::ThinkTime),
    ("replicas", Kind::Count, Element::Replicas),
    ("priority", Kind::Whole, Element::Priority),
    ("processor", Kind::Word, Element::Allocation),
];

/// All numbers that there are: of elements that traces name as well only where those are asked for.
pub(super) fn known(model: &Model, of_traces: bool) -> Vec<(Path, Kind, Element)> {
    let mut known = vec![(Path::of(&["load"]), Kind::Number, Element::Load)];
    if !of_traces {
        for (number, processor) in model.processors.iter().enumerate() {
            for (key, kind, element) in PROCESSOR {
                if key == "quota" && model.cap(number.into()).is_none() {
                    continue;
                }
                known.push((Path::of(&["processor", &processor.name, key]), kind, element(number.into())));
            }
        }
        for (number, task) in model.tasks.iter().enumerate() {
            let source = task.scheduling == Scheduling::Reference;
            for (key, kind, element) in TASK {
                if source || key != "think_time" {
                    known.push((Path::of(&["task", &task.name, key]), kind, element(number.into())));
                }
            }
        }
    }
    for (number, entry) in model.entries.iter().enumerate() {
        let id = EntryId::from(number);
        let name = &*entry.name;
        if is_sequence(model, id) {
            known.push((Path::of(&["entry", name, "demand"]), Kind::Time, Element::Demand(id, 0)));
        }
        if let Body::Phases(phases) = &entry.body {
            for (phase, key) in ["demand", "phase2", "phase3"].into_iter().enumerate().take(phases.len().max(1)) {
                known.push((Path::of(&["entry", name, key]), Kind::Time, Element::Demand(id, phase)));
            }
        }
        if !of_traces && model.tasks[entry.task.index()].scheduling != Scheduling::Reference {
            known.push((Path::of(&["entry", name, "rate"]), Kind::Rate, Element::Rate(id)));
        }
        for to in callees(model, id) {
            let target = &model.entries[to.index()].name;
            known.push((Path::of(&["call", name, target, "mean"]), Kind::Number, Element::Calls(id, to)));
        }
    }
    for (number, activity) in model.activities.iter().enumerate() {
        let task = &model.tasks[activity.task.index()].name;
        let path = Path::of(&["activity", task, &activity.name, "demand"]);
        known.push((path, Kind::Time, Element::ActivityDemand(number.into())));
    }
    known
}

/// The element at a path, without a list of all of them.
pub(super) fn find(model: &Model, path: &Path) -> Option<(Kind, Element)> {
    fn keyed<I: Copy>(table: &[Key<I>], key: &str, id: I) -> Option<(Kind, Element)> {
        table.iter().find(|(own, ..)| *own == key).map(|(_, kind, element)| (*kind, element(id)))
    }
    match path.names()[..] {
        ["load"] => Some((Kind::Number, Element::Load)),
        ["processor", name, key] => keyed(&PROCESSOR, key, model.processor_named(name)?),
        ["task", name, key] => keyed(&TASK, key, model.task_named(name)?),
        ["entry", name, "rate"] => Some((Kind::Rate, Element::Rate(model.entry_named(name)?))),
        ["entry", name, key] => {
            let phase = ["demand", "phase2", "phase3"].iter().position(|own| *own == key)?;
            let entry = model.entry_named(name)?;
            let phases = matches!(model.entries[entry.index()].body, Body::Phases(_));
            (phases || phase == 0 && is_sequence(model, entry)).then_some((Kind::Time, Element::Demand(entry, phase)))
        }
        ["call", from, to, "mean"] => {
            let (from, to) = (model.entry_named(from)?, model.entry_named(to)?);
            callees(model, from).contains(&to).then_some((Kind::Number, Element::Calls(from, to)))
        }
        ["activity", task, name, "demand"] => {
            let task = model.task_named(task)?;
            let own = &model.tasks[task.index()].activities;
            let found = own.iter().find(|id| &*model.activities[id.index()].name == name)?;
            Some((Kind::Time, Element::ActivityDemand(*found)))
        }
        _ => None,
    }
}

/// Whom an entry's phases or its sequence call, each once.
fn callees(model: &Model, entry: EntryId) -> Vec<EntryId> {
    let works = works(model, entry).into_iter();
    let mut callees: Vec<EntryId> = works.flat_map(|work| work.calls.iter().map(|call| call.to)).collect();
    callees.sort_unstable();
    callees.dedup();
    callees
}

/// Entries that are divided have so many activities at most; longer sequences have no demand of their own.
const LONGEST: usize = 3;

/// The activities of an entry that does a few one after the other and nothing else; none of other entries.
fn sequence(model: &Model, entry: EntryId) -> Vec<ActivityId> {
    let own = &model.entries[entry.index()];
    let Body::Activities(first) = own.body else { return Vec::new() };
    let task = &model.tasks[own.task.index()];
    let mut all = vec![first];
    while let Some(next) = task.precedences.iter().find(|own| own.join.activities().contains(&all[all.len() - 1])) {
        match (&next.join, &next.fork) {
            (Join::Sequence(_), Some(Fork::Sequence(after))) if all.len() < LONGEST => all.push(*after),
            _ => return Vec::new(),
        }
    }
    all
}

fn is_sequence(model: &Model, entry: EntryId) -> bool {
    !sequence(model, entry).is_empty()
}

/// The work of an entry's phases, or of its sequence.
fn works(model: &Model, entry: EntryId) -> Vec<&Work> {
    match &model.entries[entry.index()].body {
        Body::Phases(phases) => phases.iter().collect(),
        Body::Activities(_) => {
            sequence(model, entry).into_iter().map(|id| &model.activities[id.index()].work).collect()
        }
    }
}

/// The same, to be changed.
fn works_mut(model: &mut Model, entry: EntryId) -> Vec<&mut Work> {
    let of_sequence = sequence(model, entry);
    match &mut model.entries[entry.index()].body {
        Body::Phases(phases) => phases.iter_mut().collect(),
        Body::Activities(_) => {
            let all = (0..).zip(&mut model.activities);
            all.filter(|(at, _)| of_sequence.contains(&ActivityId::from(*at as usize)))
                .map(|(_, activity)| &mut activity.work)
                .collect()
        }
    }
}

impl Element {
    /// Its number; `None` where it has none.
    pub fn get(self, model: &Model) -> Option<f64> {
        let count = |multiplicity: Multiplicity| match multiplicity {
            Multiplicity::Finite(count) => Some(f64::from(count)),
            Multiplicity::Infinite => None,
        };
        match self {
            Self::Servers(id) => count(model.processors[id.index()].multiplicity),
            Self::Speed(id) => Some(model.processors[id.index()].speed),
            Self::Copies(id) => Some(f64::from(model.processors[id.index()].replicas)),
            Self::Quota(id) => model.cap(id),
            Self::Threads(id) => count(model.tasks[id.index()].multiplicity),
            Self::ThinkTime(id) => Some(model.tasks[id.index()].think_time),
            Self::Replicas(id) => Some(f64::from(model.tasks[id.index()].replicas)),
            Self::Priority(id) => Some(f64::from(model.tasks[id.index()].priority)),
            Self::Allocation(_) => None,
            Self::Demand(id, phase) => match &model.entries[id.index()].body {
                Body::Phases(phases) => Some(phases.get(phase).map_or(0.0, |work| work.demand)),
                Body::Activities(_) => {
                    let of_sequence = works(model, id);
                    (!of_sequence.is_empty()).then(|| of_sequence.iter().map(|work| work.demand).sum())
                }
            },
            Self::Rate(id) => model.entries[id.index()].open_arrival_rate,
            Self::Calls(from, to) => {
                let calls = works(model, from).into_iter().flat_map(|work| &work.calls).filter(|call| call.to == to);
                let mut calls = calls.map(|call| call.mean).peekable();
                calls.peek().is_some().then(|| calls.sum())
            }
            Self::ActivityDemand(id) => Some(model.activities[id.index()].work.demand),
            Self::Load => Some(1.0),
        }
    }

    /// Gives it a value.
    ///
    /// # Errors
    /// Words on why it does not take that value.
    pub fn set(self, model: &mut Model, value: &Value) -> Result<(), String> {
        if let Self::Allocation(task) = self {
            let Value::Word(name) = value else { return Err(format!("{value} is no name")) };
            let Some(processor) = model.processor_named(name) else {
                let names: Vec<&str> = model.processors.iter().map(|processor| &*processor.name).take(8).collect();
                return Err(format!("no processor is named `{name}`; there are {}", names.join(", ")));
            };
            model.tasks[task.index()].processor = processor;
            return Ok(());
        }
        let servers = match value {
            Value::Number(number) => Multiplicity::Finite(*number as u32),
            Value::Infinite => Multiplicity::Infinite,
            other => return Err(format!("{other} is no number")),
        };
        let number = value.number().unwrap_or_default();
        match self {
            Self::Servers(id) => {
                let cap = model.cap(id);
                let processor = &mut model.processors[id.index()];
                processor.multiplicity = servers;
                processor.scheduling = queueing(processor.scheduling, servers, Scheduling::ProcessorSharing);
                if cap.is_some() {
                    model.set_cap(id, cap)?;
                }
            }
            Self::Quota(id) => model.set_cap(id, Some(number))?,
            Self::Threads(id) => {
                let task = &mut model.tasks[id.index()];
                task.multiplicity = servers;
                task.scheduling = queueing(task.scheduling, servers, Scheduling::Fcfs);
            }
            Self::Speed(id) => model.processors[id.index()].speed = number,
            Self::Copies(id) => model.processors[id.index()].replicas = number as u32,
            Self::ThinkTime(id) => model.tasks[id.index()].think_time = number,
            Self::Replicas(id) => model.tasks[id.index()].replicas = number as u32,
            Self::Priority(id) => model.tasks[id.index()].priority = number as i32,
            Self::Rate(id) => model.entries[id.index()].open_arrival_rate = Some(number),
            Self::ActivityDemand(id) => model.activities[id.index()].work.demand = number,
            Self::Demand(id, phase) => {
                if let Body::Phases(phases) = &mut model.entries[id.index()].body {
                    if phases.len() <= phase {
                        phases.resize_with(phase + 1, Work::default);
                    }
                    phases[phase].demand = number;
                    return Ok(());
                }
                let before = self.get(model).unwrap_or_default();
                scale(works_mut(model, id).into_iter().map(|work| &mut work.demand), before, number);
            }
            Self::Calls(from, to) => {
                let before = self.get(model).unwrap_or_default();
                let calls = works_mut(model, from).into_iter().flat_map(|work| &mut work.calls);
                scale(calls.filter(|call| call.to == to).map(|call| &mut call.mean), before, number);
            }
            Self::Load => scale_loads(model, number)?,
            Self::Allocation(_) => {}
        }
        Ok(())
    }
}

/// Gives parts whose sum was something another sum. They keep their proportions; of parts that were nothing the first one is all of it.
fn scale<'p>(parts: impl Iterator<Item = &'p mut f64>, before: f64, sum: f64) {
    for (place, part) in parts.enumerate() {
        *part = match (before > 0.0, place) {
            (true, _) => *part * sum / before,
            (false, 0) => sum,
            (false, _) => 0.0,
        };
    }
}

/// Makes all loads so many times as large: customers, and rates of open arrivals.
fn scale_loads(model: &mut Model, times: f64) -> Result<(), String> {
    if times <= 0.0 {
        return Err(format!("{times} times the load is none"));
    }
    for entry in &mut model.entries {
        entry.open_arrival_rate = entry.open_arrival_rate.map(|rate| rate * times);
    }
    for task in model.tasks.iter_mut().filter(|task| task.scheduling == Scheduling::Reference) {
        if let Multiplicity::Finite(customers) = &mut task.multiplicity {
            (*customers, task.think_time) = load::customers(*customers, task.think_time, times);
        }
    }
    Ok(())
}

/// The order of service that goes with a number of servers: none without limit, some order otherwise.
fn queueing(scheduling: Scheduling, servers: Multiplicity, otherwise: Scheduling) -> Scheduling {
    match (scheduling, servers) {
        (Scheduling::Reference, _) => Scheduling::Reference,
        (_, Multiplicity::Infinite) => Scheduling::Delay,
        (Scheduling::Delay, Multiplicity::Finite(_)) => otherwise,
        (scheduling, Multiplicity::Finite(_)) => scheduling,
    }
}
