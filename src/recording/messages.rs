//! The messages of the simulated system: sender, receiver, message and time. There is no dye, but tasks tell their threads apart.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::lqn::model::Model;
use crate::names::Name;
use crate::solve::Probe;
use crate::trace::messages::{MessageStep, StepSink, What};
use crate::trace::{Task, TaskId, TraceNames};

use super::wanted::{NONE, Wanted, is_source, note};

/// What a visit stands for.
#[derive(Clone, Copy, Debug)]
struct VisitNote {
    /// The number of its operation, where this is recorded.
    operation: Option<u64>,
    entry: u32,
    /// Its caller, and when it asked; [`NONE`] for none.
    sender: TaskId,
    sent: f64,
    /// When it last received something or answered.
    last: f64,
    /// The task that serves it.
    task: TaskId,
    thread: u32,
}

/// The threads of a task: those that were busy once and are free now, and how many there are.
#[derive(Clone, Debug, Default)]
struct Threads {
    free: BTreeSet<u32>,
    count: u32,
}

/// Writes down messages, for a number of operations from a first one on.
pub(super) struct MessageRecorder<'a> {
    model: &'a Model,
    sink: &'a mut (dyn StepSink + 'a),
    names: TraceNames,
    /// The operations that are written down.
    pub wanted: Wanted,
    /// Messages given out.
    pub messages: u64,
    /// The visit of each strand.
    strands: Vec<u32>,
    visits: Vec<VisitNote>,
    threads: Vec<Threads>,
    /// The thread of each customer, by the visit that is its own; 0 where none is.
    customers: Vec<u32>,
    /// Visits of each operation that have not ended.
    live: FxHashMap<u64, u32>,
}

impl<'a> MessageRecorder<'a> {
    /// Of so many operations, after so many others.
    pub fn new(model: &'a Model, skip: u64, operations: u64, sink: &'a mut (dyn StepSink + 'a)) -> Self {
        Self {
            model,
            sink,
            names: TraceNames::new(),
            wanted: Wanted::new(skip, operations),
            messages: 0,
            strands: Vec::new(),
            visits: Vec::new(),
            threads: vec![Threads::default(); model.tasks.len()],
            customers: Vec::new(),
            live: FxHashMap::default(),
        }
    }

    fn note_visit(&mut self, visit: u32, note: VisitNote) {
        self::note(&mut self.visits, visit, note, note);
    }

    fn note_strand(&mut self, strand: u32, visit: u32) {
        note(&mut self.strands, strand, visit, NONE);
    }

    fn begin(&mut self, visit: u32, entry: u32) {
        let operation = self.wanted.begins();
        if let Some(operation) = operation {
            self.live.insert(operation, 1);
        }
        let (sender, task) = (TaskId(NONE), TaskId(NONE));
        self.note_visit(visit, VisitNote { operation, entry, sender, sent: 0.0, last: 0.0, task, thread: 0 });
    }

    fn sent(&mut self, time: f64, strand: u32, visit: u32, entry: u32) {
        let own = self.visits[self.strands[strand as usize] as usize];
        if let Some(operation) = own.operation {
            *self.live.entry(operation).or_default() += 1;
        }
        // What a visit passes on leaves before its thread takes up the next request, at the same time: by the last digit.
        let sent = if own.last < time { time.next_down() } else { time };
        let (sender, task) = (own.task, TaskId(NONE));
        let note = VisitNote { operation: own.operation, entry, sender, sent, last: 0.0, task, thread: 0 };
        self.note_visit(visit, note);
    }

    fn give(&mut self, time: f64, sent: f64, from: TaskId, to: TaskId, label: Name) {
        self.messages += 1;
        let line = u32::try_from(self.messages).unwrap_or(u32::MAX);
        let step =
            MessageStep { time, file: 0, line, what: What::Message { from, to, label, sent, took: time - sent } };
        if self.sink.step(&self.names, &step).is_break() {
            self.wanted.stop();
        }
    }
}

impl Probe for MessageRecorder<'_> {
    fn cycle(&mut self, _: f64, visit: u32, entry: u32) {
        self.begin(visit, entry);
    }

    fn open(&mut self, _: f64, visit: u32, entry: u32) {
        self.begin(visit, entry);
    }

    fn call(&mut self, time: f64, strand: u32, visit: u32, entry: u32, _: bool) {
        self.sent(time, strand, visit, entry);
    }

    fn forward(&mut self, time: f64, strand: u32, visit: u32, entry: u32) {
        self.sent(time, strand, visit, entry);
    }

    fn accept(&mut self, time: f64, visit: u32, strand: u32) {
        self.note_strand(strand, visit);
        let note = self.visits[visit as usize];
        let entry = &self.model.entries[note.entry as usize];
        let threads = &mut self.threads[entry.task.index()];
        // A customer has an identity; a thread of a server is any that is free.
        let own = self.customers.get(visit as usize).copied().filter(|own| *own != 0);
        let thread = own.or_else(|| threads.free.pop_first()).unwrap_or_else(|| {
            threads.count += 1;
            threads.count
        });
        if is_source(self.model, entry.task) {
            self::note(&mut self.customers, visit, thread, 0);
        }
        let name = self.names.names.intern(&self.model.tasks[entry.task.index()].name);
        let task = self.names.intern_task_named(Task { name, instance: thread });
        let found = &mut self.visits[visit as usize];
        (found.task, found.thread, found.last) = (task, thread, time);
        if note.operation.is_some() && note.sender != TaskId(NONE) {
            let label = self.names.names.intern(&entry.name);
            // It did not wait if nothing happened in between.
            let sent = if note.sent < time.next_down() { note.sent } else { time };
            self.give(time, sent, note.sender, task, label);
        }
    }

    fn reply(&mut self, time: f64, strand: u32, client: Option<u32>, _: bool) {
        let server = self.strands[strand as usize] as usize;
        let Some(client) = client.filter(|_| self.visits[server].operation.is_some()) else { return };
        let client = self.strands[client as usize] as usize;
        (self.visits[server].last, self.visits[client].last) = (time, time);
        let (from, to) = (self.visits[server].task, self.visits[client].task);
        self.give(time, time, from, to, Name::NONE);
    }

    fn fork(&mut self, _: f64, strand: u32, branch: u32) {
        let visit = self.strands[strand as usize];
        self.note_strand(branch, visit);
    }

    fn finish(&mut self, _: f64, visit: u32) {
        let note = self.visits[visit as usize];
        let task = self.model.entries[note.entry as usize].task;
        if !is_source(self.model, task) {
            self.threads[task.index()].free.insert(note.thread);
        }
        let Some(operation) = note.operation else { return };
        if let Some(live) = self.live.get_mut(&operation) {
            *live -= 1;
            if *live == 0 {
                self.live.remove(&operation);
                self.wanted.done += 1;
            }
        }
    }

    fn satisfied(&self) -> bool {
        self.wanted.satisfied()
    }
}
