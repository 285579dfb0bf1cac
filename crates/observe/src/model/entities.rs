//! Entities: processes as tasks, clients of one node and program as one population (§5.1, steps 3 and 6).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dyelog_lqn::model::{EntryId, Multiplicity, Scheduling, Task, TaskId};

use crate::codes;
use crate::model::devices::Devices;
use crate::model::{Draft, Measured, Subject};
use crate::observation::{NANO, Observation, Operation, Output, Request, Service};
use crate::period::{Period, ProcessPeriod, observed_seconds, ratio};
use crate::samples::operations;
use crate::system::System;

/// One process that serves, or clients that are alike.
pub(super) struct Entity<'p> {
    pub(super) name: String,
    pub(super) processes: Vec<&'p ProcessPeriod>,
    /// All that its processes did.
    pub(super) total: Observation,
    pub(super) is_client: bool,
    /// Operations that it exports; of clients, their cycles.
    pub(super) operations: Vec<Operation>,
}

/// An entity in the model.
pub(super) struct Added {
    pub(super) task: TaskId,
    /// By operation, as in [`Entity::operations`]; a client has one entry for all of its cycles.
    pub(super) entries: Vec<EntryId>,
    /// Threads of each of its processes.
    pub(super) threads: u32,
    /// The task and entry of what a server calls outside of all operations.
    pub(super) background: Option<(TaskId, EntryId)>,
}

/// What processes of one entity share: program and host, and of one that serves its own number.
type Group = (Arc<str>, Arc<str>, Option<usize>);

/// The entities of a period, in the order of their names.
pub(super) fn entities(period: &Period) -> Vec<Entity<'_>> {
    let mut groups: BTreeMap<Group, Vec<&ProcessPeriod>> = BTreeMap::new();
    for (number, process) in period.processes.iter().enumerate().filter(|(_, process)| process.total.managed) {
        let own = &process.total.process;
        let alone = (!process.total.is_client()).then_some(number);
        groups.entry((Arc::clone(&own.program), Arc::clone(&own.host), alone)).or_default().push(process);
    }
    let mut names = BTreeSet::new();
    let mut entities = Vec::new();
    for ((program, host, alone), processes) in groups {
        let id = processes[0].total.process.id;
        let names_of = [program.to_string(), format!("{program}@{host}"), format!("{program}@{host}-{id}")];
        let numbered = (2..).map(|number| format!("{program}@{host}-{id}-{number}"));
        let mut tried = names_of.into_iter().chain(numbered);
        let name = tried.find(|name| names.insert(name.clone())).expect("numbers do not end");
        let mut total = processes[0].total.clone();
        processes[1..].iter().for_each(|process| total.merge(&process.total));
        let operations = operations(&processes);
        entities.push(Entity { name, processes, total, is_client: alone.is_none(), operations });
    }
    entities
}

impl Entity<'_> {
    pub(super) fn host(&self) -> &str {
        &self.total.process.host
    }

    /// Adds its task and entries.
    pub(super) fn add(&self, draft: &mut Draft, system: &System, devices: &Devices) -> Added {
        let processor = devices.of(self.host()).processor;
        let (threads, how) = self.threads(system);
        if self.is_client {
            let mut task = Task::new(&self.name, processor, Scheduling::Reference);
            let population = self.population(threads);
            task.multiplicity = Multiplicity::Finite(population);
            let processes = self.processes.len();
            let how = format!("{processes} processes of one program on one node, {threads} threads each ({how})");
            draft.source(&self.name, "multiplicity", f64::from(population), how);
            let task = draft.add_task(task);
            let entry = draft.add_entry(task, &[format!("{}.cycle", self.name)]);
            return Added { task, entries: vec![entry; self.operations.len().max(1)], threads, background: None };
        }
        let mut task = Task::new(&self.name, processor, Scheduling::Fcfs);
        task.multiplicity = Multiplicity::Finite(threads);
        let task = draft.add_task(task);
        draft.source(&self.name, "multiplicity", f64::from(threads), how);
        let names = |operation: &Operation| [operation.to_string(), format!("{}:{operation}", self.name)];
        let mut entries = Vec::new();
        for operation in &self.operations {
            let entry = draft.add_entry(task, &names(operation));
            self.measure(draft, operation, entry);
            entries.push(entry);
        }
        let calls_outside = self.total.outputs.keys().any(|output| self.caller(output).is_none());
        let background = calls_outside.then(|| {
            let name = format!("{}.background", self.name);
            let task = draft.add_task(Task::new(&name, processor, Scheduling::Reference));
            draft.source(&name, "multiplicity", 1.0, "what the process calls outside of its operations");
            (task, draft.add_entry(task, &[format!("{name}.cycle")]))
        });
        Added { task, entries, threads, background }
    }

    /// The operation, by number, that makes a call; `None` where none does. A client calls in its cycle.
    pub(super) fn caller(&self, output: &Output) -> Option<usize> {
        if self.is_client {
            return Some(0);
        }
        let within = output.within.as_ref()?;
        self.operations.binary_search(within).ok()
    }

    /// How often an operation ended; of clients, how many cycles there were: where these are not observed, each call is one.
    pub(super) fn completions(&self, operation: usize) -> f64 {
        if self.is_client && self.operations.is_empty() {
            return self.total.outputs.values().map(|times| times.moments.count as f64).sum();
        }
        self.ended(operation, &self.total)
    }

    /// How often an operation ended in an interval; of clients, how many cycles did.
    pub(super) fn ended(&self, operation: usize, interval: &Observation) -> f64 {
        if self.is_client {
            return self.operations.iter().map(|operation| interval.completions(operation) as f64).sum();
        }
        interval.completions(&self.operations[operation]) as f64
    }

    /// How often a server called anything outside of its operations.
    pub(super) fn background_calls(&self) -> f64 {
        let outside = self.total.outputs.iter().filter(|(output, _)| self.caller(output).is_none());
        outside.map(|(_, times)| times.moments.count as f64).sum()
    }

    fn threads(&self, system: &System) -> (u32, &'static str) {
        let configured = system.programs.get(&*self.total.process.program).and_then(|program| program.threads);
        if let Some(threads) = configured {
            return (threads, "the system's configuration");
        }
        match self.total.threads.configured {
            Some(threads) => (threads, "as the program says"),
            None => (self.total.threads.most.max(1), "most operations that were seen under way together"),
        }
    }

    /// Clients that were there on the mean, where not all were there all the time.
    fn population(&self, threads: u32) -> u32 {
        (self.total.seconds() / self.observed() * f64::from(threads)).round().clamp(1.0, f64::from(u32::MAX)) as u32
    }

    /// Adds what was measured of the responses of an operation.
    fn measure(&self, draft: &mut Draft, operation: &Operation, entry: EntryId) {
        let pairs = self.intervals().map(|interval| {
            let of = interval.served(operation);
            of.fold((0.0, 0.0), |sum, times| (sum.0 + times.seconds(), sum.1 + times.moments.count as f64))
        });
        if let Some(figure) = ratio(&pairs.collect::<Vec<_>>()) {
            draft.measured.push(Measured { subject: Subject::Operation(entry), figure });
        }
    }

    fn intervals(&self) -> impl Iterator<Item = &Observation> {
        let mut all: Vec<&Observation> = self.processes.iter().flat_map(|process| &process.intervals).collect();
        all.sort_by_key(|interval| interval.from);
        all.into_iter()
    }

    /// Sets the think time of a client: the time outside of its cycles, by cycle (§5.1). Of what a server calls outside of its
    /// operations, the time between.
    pub(super) fn add_think_time(&self, draft: &mut Draft, added: &Added) {
        if let Some((task, _)) = added.background {
            let calls = self.background_calls();
            let waited: f64 = self
                .total
                .outputs
                .iter()
                .filter(|(output, _)| self.caller(output).is_none() && output.request == Request::Synchronous)
                .map(|(_, times)| times.seconds())
                .sum();
            let think = ((self.total.seconds() - waited) / calls).max(0.0);
            draft.model.tasks[task.index()].think_time = think;
            let name = draft.model.tasks[task.index()].name.to_string();
            draft.source(&name, "think time", think, format!("time between {calls} calls"));
        }
        if !self.is_client {
            return;
        }
        let cycles = self.completions(0);
        if cycles <= 0.0 {
            return;
        }
        let there = self.total.seconds() * f64::from(added.threads);
        let busy = self.busy();
        let think = ((there - busy) / cycles).max(0.0);
        draft.model.tasks[added.task.index()].think_time = think;
        let how = format!("{there:.3} s in all, {busy:.3} s of it busy, over {cycles} cycles");
        draft.source(&self.name, "think time", think, how);
        if busy > 1.02 * there {
            let message = format!("cycles of `{}` take longer than there were clients", self.name);
            draft.warn(codes::SIMPLIFIED, message).hints.push("tell the threads of the program".to_owned());
        }
        if self.operations.is_empty() {
            return;
        }
        let pairs = self.intervals().map(|interval| {
            let cycles = interval.inputs.iter().filter(|(input, _)| input.service == Service::Cycle);
            cycles.fold((0.0, 0.0), |sum, (_, times)| (sum.0 + times.seconds(), sum.1 + times.moments.count as f64))
        });
        if let Some(figure) = ratio(&pairs.collect::<Vec<_>>()) {
            draft.measured.push(Measured { subject: Subject::Cycle(added.task), figure });
        }
    }

    /// How long any of its processes was observed, seconds.
    fn observed(&self) -> f64 {
        observed_seconds(self.processes.iter().flat_map(|process| &process.intervals)).max(f64::MIN_POSITIVE)
    }

    /// How long clients were busy, seconds: in their cycles, or where these are not observed, in calls and at work.
    fn busy(&self) -> f64 {
        if self.operations.is_empty() {
            let waited = self.total.outputs.iter().filter(|(output, _)| output.request != Request::Asynchronous);
            return waited.map(|(_, times)| times.seconds()).sum::<f64>() + self.total.resources.cpu as f64 / NANO;
        }
        self.total.inputs.values().map(crate::observation::Times::seconds).sum()
    }
}
