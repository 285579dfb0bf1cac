//! The trace that a tracer of the simulated system would write.
//!
//! A cycle of a customer or an open arrival is an operation, with all that follows from it. A request whose sender waits travels
//! on the sender's thread and comes back on it (basic RPC); an answer by a server that goes on working, and every other
//! message, is a fork (1998 paper, Table 1). Branches of a visit are threads that it forks for itself and joins.
//!
//! The task node counter orders what a visit does by cause, not by time: a branch takes its numbers where it was forked, and what
//! it asked of others comes before what the next branch did. Numbers are therefore given when an operation is complete.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::lqn::model::Model;
use crate::names::Name;
use crate::solve::Probe;
use crate::trace::{Event, Extent, Kind, Operation, Origins, Sink, Task, TaskId, TraceNames};

use super::order::one_after_the_other;

use super::wanted::{NONE, Wanted, note};

/// What a strand stands for in the trace.
#[derive(Clone, Copy, Debug)]
struct StrandNote {
    visit: u32,
    thread: u32,
    log: u32,
    group: u32,
    /// The group that it is forking.
    forking: u32,
    cpu: f64,
    /// Its thread went on with the client that it answered.
    gone: bool,
}

/// How a request comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comes {
    /// On the thread of its sender.
    Along(u32),
    /// On a thread of its own.
    Alone(u32),
}

/// What a visit stands for in the trace.
#[derive(Clone, Copy, Debug)]
struct VisitNote {
    operation: u32,
    entry: u32,
    comes: Comes,
    forwarded: bool,
    task: TaskId,
    instance: u32,
}

/// An event of a visit, or all of a branch.
#[derive(Clone, Copy, Debug)]
enum Item {
    Event(u32),
    Branch(u32),
}

/// Branches forked at once.
#[derive(Clone, Debug)]
struct Group {
    visit: u32,
    thread: u32,
    log: u32,
    outer: u32,
    /// The threads in which they go on, and whether they have ended.
    branches: Vec<(u32, bool)>,
    closed: bool,
}

/// An operation under way.
#[derive(Debug, Default)]
struct Underway {
    scenario: Name,
    number: u64,
    start: f64,
    events: Vec<Event>,
    /// Nodes of each thread so far.
    threads: Vec<u32>,
    logs: Vec<Vec<Item>>,
    /// The log of each visit.
    visits: Vec<u32>,
    /// Instances of tasks that are taken.
    taken: Vec<(u32, Vec<bool>)>,
    groups: Vec<Group>,
    /// Visits that have not ended.
    live: u32,
}

/// Records what it gets, for a number of operations from a first one on.
pub(super) struct Recorder<'a> {
    model: &'a Model,
    sink: &'a mut (dyn Sink + 'a),
    names: TraceNames,
    /// The operations that are written down.
    pub wanted: Wanted,
    /// Events given out.
    pub events: u64,
    strands: Vec<StrandNote>,
    visits: Vec<VisitNote>,
    underway: Vec<Underway>,
    free: Vec<u32>,
}

impl<'a> Recorder<'a> {
    /// Of so many operations, after so many others.
    pub fn new(model: &'a Model, skip: u64, operations: u64, sink: &'a mut (dyn Sink + 'a)) -> Self {
        Self {
            model,
            sink,
            names: TraceNames::new(),
            wanted: Wanted::new(skip, operations),
            events: 0,
            strands: Vec::new(),
            visits: Vec::new(),
            underway: Vec::new(),
            free: Vec::new(),
        }
    }

    fn note_visit(&mut self, visit: u32, note: VisitNote) {
        self::note(&mut self.visits, visit, note, VisitNote { operation: NONE, ..note });
    }

    fn note_strand(&mut self, strand: u32, note: StrandNote) {
        self::note(&mut self.strands, strand, note, note);
    }

    /// A strand goes on in another thread. A wait for its branch joins that thread.
    fn go_on_in(&mut self, strand: u32, thread: u32) {
        let Some((note, visit)) = self.of(strand) else { return };
        self.strands[strand as usize].thread = thread;
        if note.group != NONE {
            let group = &mut self.underway[visit.operation as usize].groups[note.group as usize];
            for branch in group.branches.iter_mut().filter(|branch| branch.0 == note.thread) {
                branch.0 = thread;
            }
        }
    }

    /// A request that comes from nowhere begins an operation, if it is one of those wanted.
    fn begin(&mut self, time: f64, visit: u32, entry: u32) {
        let operation = if let Some(number) = self.wanted.begins() {
            let scenario = self.names.names.intern(&self.model.entries[entry as usize].name);
            let fresh = Underway { scenario, number, start: time, threads: vec![0], live: 1, ..Underway::default() };
            if let Some(slot) = self.free.pop() {
                self.underway[slot as usize] = fresh;
                slot
            } else {
                self.underway.push(fresh);
                (self.underway.len() - 1) as u32
            }
        } else {
            NONE
        };
        let note =
            VisitNote { operation, entry, comes: Comes::Alone(1), forwarded: false, task: TaskId(0), instance: 0 };
        self.note_visit(visit, note);
    }

    /// The operation that the strand works for, if it is recorded.
    fn of(&self, strand: u32) -> Option<(StrandNote, VisitNote)> {
        let note = *self.strands.get(strand as usize)?;
        let visit = self.visits[note.visit as usize];
        (visit.operation != NONE).then_some((note, visit))
    }

    /// A request made on behalf of the strand's operation; on a thread of its own, which it begins, or along.
    fn sent(&mut self, time: f64, strand: u32, visit: u32, entry: u32, along: bool, forwarded: bool) {
        let Some((note, own)) = self.of(strand) else {
            let nothing =
                VisitNote { operation: NONE, entry, comes: Comes::Alone(0), forwarded, task: TaskId(0), instance: 0 };
            return self.note_visit(visit, nothing);
        };
        let comes = if along {
            self.emit(time, strand, Kind::Activity, Name::NONE);
            Comes::Along(note.thread)
        } else {
            let thread = self.underway[own.operation as usize].thread();
            self.emit(time, strand, Kind::Fork(thread), Name::NONE);
            Comes::Alone(thread)
        };
        self.underway[own.operation as usize].live += 1;
        self.note_visit(
            visit,
            VisitNote { operation: own.operation, entry, comes, forwarded, task: TaskId(0), instance: 0 },
        );
    }

    /// Adds an event of a strand, with the processor time that it had since its last one.
    fn emit(&mut self, time: f64, strand: u32, kind: Kind, service: Name) {
        let Some((note, visit)) = self.of(strand) else { return };
        let operation = &mut self.underway[visit.operation as usize];
        operation.add(time, note.thread, note.log, kind, visit.task, note.cpu, service);
        self.strands[strand as usize].cpu = 0.0;
    }

    /// The strand's thread ends.
    fn end_thread(&mut self, time: f64, strand: u32) {
        if self.strands[strand as usize].cpu > 0.0 {
            self.emit(time, strand, Kind::Activity, Name::NONE);
        }
        self.emit(time, strand, Kind::End, Name::NONE);
    }

    /// All visits of an operation have ended.
    fn complete(&mut self, slot: u32) {
        let operation = std::mem::take(&mut self.underway[slot as usize]);
        self.free.push(slot);
        let number = operation.number + 1;
        let found = Operation {
            scenario: operation.scenario,
            run: Arc::from(number.to_string()),
            file: Arc::from("simulation"),
            line: 0,
            start: Some((operation.start * 1e9) as i64),
            weight: None,
            weight_given: false,
            extent: Extent::Whole,
            origins: Origins::Lines,
            events: operation.numbered(&mut self.names),
        };
        self.events += found.events.len() as u64;
        self.wanted.done += 1;
        if self.sink.operation(&self.names, found) == ControlFlow::Break(()) {
            self.wanted.stop();
        }
    }
}

impl Underway {
    fn thread(&mut self) -> u32 {
        self.threads.push(0);
        self.threads.len() as u32
    }

    fn log(&mut self) -> u32 {
        self.logs.push(Vec::new());
        (self.logs.len() - 1) as u32
    }

    #[expect(clippy::too_many_arguments, reason = "an event has as many fields")]
    fn add(&mut self, time: f64, thread: u32, log: u32, kind: Kind, task: TaskId, cpu: f64, service: Name) {
        let index = &mut self.threads[thread as usize - 1];
        *index += 1;
        let mut event = Event::new(thread, *index, kind, task, 0);
        event.time = time - self.start;
        event.cpu = cpu;
        event.service = service;
        self.logs[log as usize].push(Item::Event(self.events.len() as u32));
        self.events.push(event);
    }

    /// An instance of the task that none of its visits has.
    fn instance(&mut self, task: u32) -> u32 {
        let place = self.taken.iter().position(|taken| taken.0 == task).unwrap_or_else(|| {
            self.taken.push((task, Vec::new()));
            self.taken.len() - 1
        });
        let taken = &mut self.taken[place].1;
        let free = taken.iter().position(|taken| !taken).unwrap_or_else(|| {
            taken.push(false);
            taken.len() - 1
        });
        taken[free] = true;
        free as u32
    }

    /// The events with their task node counters.
    fn numbered(mut self, names: &mut TraceNames) -> Vec<Event> {
        let order = if self.groups.is_empty() { (0..self.events.len() as u32).collect() } else { self.ordered(names) };
        let mut counters: Vec<u32> = Vec::new();
        for event in order {
            let Event { task, counter, .. } = &mut self.events[event as usize];
            if counters.len() <= task.index() {
                counters.resize(task.index() + 1, 0);
            }
            counters[task.index()] += 1;
            *counter = counters[task.index()];
        }
        self.events
    }

    /// The order in which events are counted where visits have branches.
    fn ordered(&mut self, names: &mut TraceNames) -> Vec<u32> {
        let visits: Vec<Vec<u32>> = self.visits.iter().map(|visit| self.log_of(*visit)).collect();
        let order = one_after_the_other(&self.events, &visits, self.threads.len());
        for visit in order.apart {
            let events = &visits[visit as usize];
            let Some(Task { name, .. }) = events.first().map(|event| names.task(self.events[*event as usize].task))
            else {
                continue;
            };
            let own = self.events.iter().map(|event| names.task(event.task)).filter(|task| task.name == name);
            let instance = own.map(|task| task.instance + 1).max().unwrap_or(1);
            let task = names.intern_task_named(Task { name, instance });
            for event in events {
                self.events[*event as usize].task = task;
            }
        }
        order.events
    }

    /// What a visit does: its branches where they are forked.
    fn log_of(&self, visit: u32) -> Vec<u32> {
        let mut events = Vec::new();
        let mut stack = vec![(visit, 0)];
        while let Some((log, place)) = stack.pop() {
            let Some(item) = self.logs[log as usize].get(place) else { continue };
            stack.push((log, place + 1));
            match *item {
                Item::Branch(branch) => stack.push((branch, 0)),
                Item::Event(event) => events.push(event),
            }
        }
        events
    }
}

impl Probe for Recorder<'_> {
    fn cycle(&mut self, time: f64, visit: u32, entry: u32) {
        self.begin(time, visit, entry);
    }

    fn open(&mut self, time: f64, visit: u32, entry: u32) {
        self.begin(time, visit, entry);
    }

    fn call(&mut self, time: f64, strand: u32, visit: u32, entry: u32, synchronous: bool) {
        self.sent(time, strand, visit, entry, synchronous, false);
    }

    fn forward(&mut self, time: f64, strand: u32, visit: u32, entry: u32) {
        self.sent(time, strand, visit, entry, false, true);
    }

    fn accept(&mut self, time: f64, visit: u32, strand: u32) {
        let note = self.visits[visit as usize];
        let mut own = StrandNote { visit, thread: 0, log: 0, group: NONE, forking: NONE, cpu: 0.0, gone: false };
        if note.operation == NONE {
            return self.note_strand(strand, own);
        }
        let entry = &self.model.entries[note.entry as usize];
        let name = self.names.names.intern(&self.model.tasks[entry.task.index()].name);
        let service = self.names.names.intern(&entry.name);
        let operation = &mut self.underway[note.operation as usize];
        let instance = operation.instance(entry.task.0);
        let task = self.names.intern_task_named(Task { name, instance: instance + 1 });
        let found = &mut self.visits[visit as usize];
        found.task = task;
        found.instance = instance;
        own.log = operation.log();
        operation.visits.push(own.log);
        let kind = match note.comes {
            Comes::Along(thread) => {
                own.thread = thread;
                Kind::Activity
            }
            Comes::Alone(thread) => {
                own.thread = thread;
                Kind::Begin
            }
        };
        self.note_strand(strand, own);
        self.emit(time, strand, kind, service);
    }

    fn slice(&mut self, _: f64, strand: u32, demand: f64) {
        if let Some(note) = self.strands.get_mut(strand as usize) {
            note.cpu += demand;
        }
    }

    fn reply(&mut self, time: f64, strand: u32, client: Option<u32>, last: bool) {
        let (Some(client), Some((note, visit))) = (client, self.of(strand)) else { return };
        if last && !visit.forwarded && note.group == NONE {
            self.emit(time, strand, Kind::Activity, Name::NONE);
            self.strands[strand as usize].gone = true;
            self.go_on_in(client, note.thread);
            self.emit(time, client, Kind::Activity, Name::NONE);
        } else {
            let thread = self.underway[visit.operation as usize].thread();
            self.emit(time, strand, Kind::Fork(thread), Name::NONE);
            self.go_on_in(client, thread);
            self.emit(time, client, Kind::Begin, Name::NONE);
        }
    }

    fn fork(&mut self, time: f64, strand: u32, branch: u32) {
        let mut own = self.strands[strand as usize];
        let Some((note, visit)) = self.of(strand) else { return self.note_strand(branch, own) };
        let operation = &mut self.underway[visit.operation as usize];
        if own.forking == NONE {
            own.forking = operation.groups.len() as u32;
            operation.groups.push(Group {
                visit: note.visit,
                thread: note.thread,
                log: note.log,
                outer: note.group,
                branches: Vec::new(),
                closed: false,
            });
            self.strands[strand as usize].forking = own.forking;
        }
        let thread = operation.thread();
        let log = operation.log();
        operation.groups[own.forking as usize].branches.push((thread, false));
        self.emit(time, strand, Kind::Fork(thread), Name::NONE);
        self.underway[visit.operation as usize].logs[note.log as usize].push(Item::Branch(log));
        self.note_strand(
            branch,
            StrandNote { thread, log, group: own.forking, forking: NONE, cpu: 0.0, gone: false, visit: note.visit },
        );
        self.emit(time, branch, Kind::Begin, Name::NONE);
    }

    fn join(&mut self, time: f64, strand: u32, goes_on: bool) {
        let Some((note, visit)) = self.of(strand) else { return };
        if note.group == NONE {
            return;
        }
        self.end_thread(time, strand);
        let operation = &mut self.underway[visit.operation as usize];
        let group = &mut operation.groups[note.group as usize];
        for branch in &mut group.branches {
            branch.1 |= branch.0 == note.thread;
        }
        if !goes_on {
            return;
        }
        group.closed = true;
        let (thread, log, outer) = (group.thread, group.log, group.outer);
        let ended: Vec<u32> = group.branches.iter().filter(|branch| branch.1).map(|branch| branch.0).collect();
        let own = &mut self.strands[strand as usize];
        (own.thread, own.log, own.group) = (thread, log, outer);
        for branch in ended {
            self.emit(time, strand, Kind::Join(branch), Name::NONE);
        }
    }

    fn end(&mut self, time: f64, strand: u32) {
        if !self.strands[strand as usize].gone {
            self.end_thread(time, strand);
        }
    }

    fn finish(&mut self, time: f64, visit: u32) {
        let note = self.visits[visit as usize];
        if note.operation == NONE {
            return;
        }
        let operation = &mut self.underway[note.operation as usize];
        // A strand that forked branches and did not join them.
        for number in 0..operation.groups.len() {
            let group = &mut operation.groups[number];
            if group.visit == visit && !group.closed {
                group.closed = true;
                let (thread, log) = (group.thread, group.log);
                operation.add(time, thread, log, Kind::End, note.task, 0.0, Name::NONE);
            }
        }
        // The number of the visit will be another's.
        operation.groups.iter_mut().filter(|group| group.visit == visit).for_each(|group| group.visit = NONE);
        let task = self.model.entries[note.entry as usize].task.0;
        if let Some(taken) = operation.taken.iter_mut().find(|taken| taken.0 == task) {
            taken.1[note.instance as usize] = false;
        }
        operation.live -= 1;
        if operation.live == 0 {
            self.complete(note.operation);
        }
    }

    fn satisfied(&self) -> bool {
        self.wanted.satisfied()
    }
}
