//! From the shape to a model: first all names, then what refers to them.

use crate::builder::Builder;
use crate::findings::{Fault, Findings, fault};
use crate::json::shape::{self, Document};
use crate::scheduling::{ROLE_WORDS, WORDS, meaning};
use crate::{
    ActivityId, Body, Call, CallKind, CallOrder, Dispatching, EntryId, Fork, Forwarding, Group, Histogram, Join,
    Multiplicity, Precedence, Processor, ProcessorId, Scheduling, SemaphoreRole, Task, TaskId, Work, codes,
};

/// A reader in the middle of a document.
pub(super) struct Reader {
    pub(super) builder: Builder,
    /// The paths of elements, by the words with which the lint names them.
    pub(super) paths: Vec<(String, String)>,
    pub(super) findings: Findings,
}

impl Reader {
    /// The value; where it cannot be had, reports why, at the path, and gives nothing.
    fn checked<T>(&mut self, path: impl FnOnce() -> String, value: Result<T, Fault>) -> Option<T> {
        match value {
            Ok(value) => Some(value),
            Err(mut error) => {
                error.place = self.findings.item(path());
                self.findings.push(*error);
                None
            }
        }
    }

    pub(super) fn document(&mut self, document: Document) {
        let model = &mut self.builder.model;
        model.comment = document.comment;
        model.parameters = document.parameters.into();
        for (index, processor) in document.processors.into_iter().enumerate() {
            self.processor(index, &processor);
        }
        for (index, group) in document.groups.into_iter().enumerate() {
            self.group(index, &group);
        }
        let ids: Vec<Option<TaskId>> =
            document.tasks.iter().enumerate().map(|(index, task)| self.declare_task(index, task)).collect();
        for ((index, task), id) in document.tasks.iter().enumerate().zip(ids) {
            if let Some(id) = id {
                self.task_contents(index, task, id);
            }
        }
        if let Some(calibration) = document.calibration {
            let read = calibration.read(&self.builder.model);
            self.builder.model.calibration = self.checked(|| "calibration".to_owned(), read);
        }
    }

    fn multiplicity(&mut self, path: impl FnOnce() -> String, given: &shape::Multiplicity) -> Multiplicity {
        let value = match given {
            shape::Multiplicity::Word(shape::Infinite::Infinite) => Ok(Multiplicity::Infinite),
            shape::Multiplicity::Finite(0) => Err(fault(codes::BAD_NUMBER, "a multiplicity is at least 1")),
            shape::Multiplicity::Finite(number) => Ok(Multiplicity::Finite(*number)),
        };
        self.checked(path, value).unwrap_or(Multiplicity::Finite(1))
    }

    fn replicas(&mut self, path: impl FnOnce() -> String, number: u32) -> u32 {
        let value = if number == 0 { Err(fault(codes::BAD_NUMBER, "there is at least 1 replica")) } else { Ok(number) };
        self.checked(path, value).unwrap_or(1)
    }

    fn processor(&mut self, index: usize, shape: &shape::Processor) {
        let scheduling = self.checked(|| format!("processors[{index}].scheduling"), scheduling(&shape.scheduling));
        let mut processor = Processor::new(&shape.name, scheduling.unwrap_or(Scheduling::Fcfs));
        processor.quantum = shape.quantum;
        if let Some(given) = &shape.multiplicity {
            processor.multiplicity = self.multiplicity(|| format!("processors[{index}].multiplicity"), given);
        }
        processor.replicas = self.replicas(|| format!("processors[{index}].replicas"), shape.replicas);
        processor.speed = shape.speed;
        self.paths.push((format!("processor `{}`", shape.name), format!("processors[{index}].name")));
        let added = self.builder.add_processor(processor);
        self.checked(|| format!("processors[{index}].name"), added);
    }

    fn group(&mut self, index: usize, shape: &shape::Group) {
        let processor = self.builder.processor(&shape.processor);
        let processor = self.checked(|| format!("groups[{index}].processor"), processor).unwrap_or(ProcessorId(0));
        let group = Group { name: shape.name.as_str().into(), processor, share: shape.share, cap: shape.cap };
        self.paths.push((format!("group `{}`", shape.name), format!("groups[{index}].name")));
        let added = self.builder.add_group(group);
        self.checked(|| format!("groups[{index}].name"), added);
    }

    /// The task with the names of its entries and activities; it exists even where its processor does not.
    fn declare_task(&mut self, index: usize, shape: &shape::Task) -> Option<TaskId> {
        let processor = self.builder.processor(&shape.processor);
        let processor = self.checked(|| format!("tasks[{index}].processor"), processor).unwrap_or(ProcessorId(0));
        let scheduling = self.checked(|| format!("tasks[{index}].scheduling"), scheduling(&shape.scheduling));
        let mut task = Task::new(&shape.name, processor, scheduling.unwrap_or(Scheduling::Fcfs));
        if let Some(name) = &shape.group {
            let group = self.builder.group(name);
            task.group = self.checked(|| format!("tasks[{index}].group"), group);
        }
        if let Some(given) = &shape.multiplicity {
            task.multiplicity = self.multiplicity(|| format!("tasks[{index}].multiplicity"), given);
        }
        task.replicas = self.replicas(|| format!("tasks[{index}].replicas"), shape.replicas);
        if let Some(word) = &shape.dispatching {
            let read = self.checked(|| format!("tasks[{index}].dispatching"), dispatching(word));
            task.dispatching = read.unwrap_or_default();
        }
        task.priority = shape.priority;
        task.think_time = shape.think_time;
        task.queue_length = shape.queue_length;
        self.paths.push((format!("task `{}`", shape.name), format!("tasks[{index}].name")));
        let added = self.builder.add_task(task);
        let new = self.checked(|| format!("tasks[{index}].name"), added);
        // A second task of a name: its entries exist, else every mention of them would be an error.
        let id = new.or_else(|| self.builder.task(&shape.name).ok())?;
        for (number, entry) in shape.entries.iter().enumerate() {
            let path = format!("tasks[{index}].entries[{number}].name");
            self.paths.push((format!("entry `{}`", entry.name), path));
            let added = self.builder.add_entry(id, &entry.name);
            self.checked(|| format!("tasks[{index}].entries[{number}].name"), added);
        }
        for (number, activity) in shape.activities.iter().enumerate() {
            let path = format!("tasks[{index}].activities[{number}].name");
            self.paths.push((format!("activity `{}` of task `{}`", activity.name, shape.name), path));
            let added = self.builder.add_activity(id, &activity.name);
            self.checked(|| format!("tasks[{index}].activities[{number}].name"), added);
        }
        new
    }

    fn task_contents(&mut self, index: usize, shape: &shape::Task, id: TaskId) {
        let fan_in = self.fan(|number| format!("tasks[{index}].fan_in[{number}].task"), &shape.fan_in);
        let fan_out = self.fan(|number| format!("tasks[{index}].fan_out[{number}].task"), &shape.fan_out);
        let task = &mut self.builder.model.tasks[id.index()];
        (task.fan_in, task.fan_out) = (fan_in, fan_out);
        for (number, entry) in shape.entries.iter().enumerate() {
            self.entry(&format!("tasks[{index}].entries[{number}]"), id, entry);
        }
        for (number, activity) in shape.activities.iter().enumerate() {
            self.activity(&format!("tasks[{index}].activities[{number}]"), id, activity);
        }
        for (number, precedence) in shape.precedences.iter().enumerate() {
            self.precedence(&format!("tasks[{index}].precedences[{number}]"), id, precedence);
        }
    }

    fn fan(&mut self, path: impl Fn(usize) -> String, list: &[shape::Fan]) -> Vec<(TaskId, u32)> {
        let mut read = Vec::with_capacity(list.len());
        for (number, fan) in list.iter().enumerate() {
            let task = self.builder.task(&fan.task);
            read.extend(self.checked(|| path(number), task).map(|task| (task, fan.number)));
        }
        read
    }

    fn entry(&mut self, path: &str, task: TaskId, shape: &shape::Entry) {
        // A name that another task has too was reported; its contents would go to the wrong entry.
        let Some(id) = self.builder.entry(&shape.name).ok().filter(|id| self.task_of(*id) == task) else { return };
        let role = shape.semaphore.as_deref().map(role);
        let role = role.and_then(|role| self.checked(|| format!("{path}.semaphore"), role));
        let body = match (&shape.phases, &shape.first_activity) {
            (Some(_), Some(_)) => {
                let message = "an entry has either `phases` or `first_activity`";
                self.checked::<Body>(|| path.to_owned(), Err(fault(codes::CONTRADICTION, message)))
            }
            (phases, None) => Some(Body::Phases(self.phases(path, phases.as_deref().unwrap_or_default()))),
            (None, Some(name)) => {
                let first = self.builder.activity(task, name);
                self.checked(|| format!("{path}.first_activity"), first).map(Body::Activities)
            }
        };
        let mut forwarding = Vec::with_capacity(shape.forwarding.len());
        for (number, forward) in shape.forwarding.iter().enumerate() {
            let to = self.builder.entry(&forward.to);
            let to = self.checked(|| format!("{path}.forwarding[{number}].to"), to);
            forwarding.extend(to.map(|to| Forwarding { to, probability: forward.probability }));
        }
        let mut histograms = Vec::with_capacity(shape.histograms.len());
        for (number, own) in shape.histograms.iter().enumerate() {
            let phase = match own.phase.unwrap_or(1) {
                phase @ 1..=3 => Ok(phase),
                phase => {
                    Err(fault(codes::BAD_NUMBER, format!("there are three phases at most, this is phase {phase}")))
                }
            };
            let phase = self.checked(|| format!("{path}.histograms[{number}].phase"), phase);
            histograms.extend(phase.map(|phase| (phase, histogram(own))));
        }
        let entry = &mut self.builder.model.entries[id.index()];
        entry.histograms = histograms;
        entry.priority = shape.priority;
        entry.open_arrival_rate = shape.open_arrival_rate;
        entry.semaphore = role;
        entry.forwarding = forwarding;
        entry.body = body.unwrap_or_else(|| Body::Phases(Vec::new()));
    }

    fn task_of(&self, entry: EntryId) -> TaskId {
        self.builder.model.entries[entry.index()].task
    }

    fn phases(&mut self, path: &str, phases: &[shape::Work]) -> Vec<Work> {
        if phases.len() > 3 {
            let message = format!("there are three phases at most, this entry has {}", phases.len());
            self.checked::<()>(|| format!("{path}.phases"), Err(fault(codes::SYNTAX, message)));
        }
        phases
            .iter()
            .take(3)
            .enumerate()
            .map(|(number, work)| self.work(&format!("{path}.phases[{number}]"), work))
            .collect()
    }

    fn work(&mut self, path: &str, shape: &shape::Work) -> Work {
        let mut calls = Vec::with_capacity(shape.calls.len());
        for (number, call) in shape.calls.iter().enumerate() {
            let to = self.builder.entry(&call.to);
            let Some(to) = self.checked(|| format!("{path}.calls[{number}].to"), to) else { continue };
            let kind = match call.kind {
                shape::CallKind::Synchronous => CallKind::Synchronous,
                shape::CallKind::Asynchronous => CallKind::Asynchronous,
            };
            calls.push(Call { to, kind, mean: call.mean });
        }
        let call_order = match shape.call_order {
            shape::CallOrder::Stochastic => CallOrder::Stochastic,
            shape::CallOrder::Deterministic => CallOrder::Deterministic,
            shape::CallOrder::Bernoulli => CallOrder::Bernoulli,
        };
        let shape::Work { demand, cv2, think_time, think_cv2, .. } = *shape;
        Work { demand, cv2, think_time, think_cv2, call_order, calls }
    }

    fn activity(&mut self, path: &str, task: TaskId, shape: &shape::Activity) {
        let Ok(id) = self.builder.activity(task, &shape.name) else { return };
        let work = self.work(&format!("{path}.work"), &shape.work);
        let mut replies = Vec::with_capacity(shape.replies.len());
        for (number, name) in shape.replies.iter().enumerate() {
            let entry = self.builder.entry(name);
            replies.extend(self.checked(|| format!("{path}.replies[{number}]"), entry));
        }
        let activity = &mut self.builder.model.activities[id.index()];
        (activity.work, activity.replies) = (work, replies);
        activity.histograms = shape.histograms.iter().map(histogram).collect();
    }

    fn activity_named(&mut self, path: &str, task: TaskId, name: &str) -> Option<ActivityId> {
        let activity = self.builder.activity(task, name);
        self.checked(|| path.to_owned(), activity)
    }

    fn activities_named(&mut self, path: &str, task: TaskId, names: &[String]) -> Vec<ActivityId> {
        let named = names.iter().enumerate();
        named.filter_map(|(at, name)| self.activity_named(&format!("{path}[{at}]"), task, name)).collect()
    }

    fn precedence(&mut self, path: &str, task: TaskId, shape: &shape::Precedence) {
        let join_path = format!("{path}.join");
        let join = match &shape.join {
            shape::Join::Sequence(name) => {
                self.activity_named(&format!("{join_path}.sequence"), task, name).map(Join::Sequence)
            }
            shape::Join::And(and) => Some(Join::And {
                activities: self.activities_named(&format!("{join_path}.and.activities"), task, &and.activities),
                quorum: and.quorum,
            }),
            shape::Join::Or(names) => Some(Join::Or(self.activities_named(&format!("{join_path}.or"), task, names))),
        };
        let fork = shape.fork.as_ref().and_then(|fork| self.fork(&format!("{path}.fork"), task, fork));
        if let Some(join) = join {
            self.builder.model.tasks[task.index()].precedences.push(Precedence { join, fork });
        }
    }

    fn fork(&mut self, path: &str, task: TaskId, shape: &shape::Fork) -> Option<Fork> {
        match shape {
            shape::Fork::Sequence(name) => {
                self.activity_named(&format!("{path}.sequence"), task, name).map(Fork::Sequence)
            }
            shape::Fork::And(names) => Some(Fork::And(self.activities_named(&format!("{path}.and"), task, names))),
            shape::Fork::Or(branches) => {
                let mut read = Vec::with_capacity(branches.len());
                for (branch, at) in branches.iter().zip(0usize..) {
                    let activity = self.activity_named(&format!("{path}.or[{at}].activity"), task, &branch.activity);
                    read.extend(activity.map(|activity| (branch.probability, activity)));
                }
                Some(Fork::Or(read))
            }
            shape::Fork::Loop(repeated) => {
                let mut bodies = Vec::with_capacity(repeated.bodies.len());
                for (body, at) in repeated.bodies.iter().zip(0usize..) {
                    let path = format!("{path}.loop.bodies[{at}].activity");
                    let activity = self.activity_named(&path, task, &body.activity);
                    bodies.extend(activity.map(|activity| (body.mean, activity)));
                }
                let end = repeated.end.as_ref();
                let end = end.and_then(|name| self.activity_named(&format!("{path}.loop.end"), task, name));
                Some(Fork::Loop { bodies, end })
            }
        }
    }
}

fn scheduling(word: &str) -> Result<Scheduling, Fault> {
    meaning(&WORDS, word).ok_or_else(|| {
        let error = fault(codes::SYNTAX, format!("there is no scheduling `{word}`"));
        Box::new(error.with_similar(word, WORDS.iter().map(|&(known, _)| known)))
    })
}

fn dispatching(word: &str) -> Result<Dispatching, Fault> {
    meaning(&Dispatching::WORDS, word).ok_or_else(|| {
        let error = fault(codes::SYNTAX, format!("there is no dispatching `{word}`"));
        Box::new(error.with_similar(word, Dispatching::WORDS.iter().map(|&(known, _)| known)))
    })
}

fn role(word: &str) -> Result<SemaphoreRole, Fault> {
    meaning(&ROLE_WORDS, word).ok_or_else(|| {
        let error = fault(codes::SYNTAX, format!("there is no part `{word}` in a lock"));
        Box::new(error.with_similar(word, ROLE_WORDS.iter().map(|&(known, _)| known)))
    })
}

fn histogram(shape: &shape::Histogram) -> Histogram {
    Histogram { from: shape.from, to: shape.to, bins: shape.bins }
}
