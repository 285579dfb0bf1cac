//! Which thread of a service a message belongs to, where the trace does not tell.
//!
//! SAME needs tasks that do one thing at a time: "if there are multiple threads, traces must identify the thread" (2005 paper §7). A
//! service that serves several requests at once, told by its name only, is no such task. Its late replies find no request, open trees
//! of their own, and from then on requests close the cycles and replies open them: nothing ever puts that right.
//!
//! So messages of services pass through here first, and leave as messages between threads, to which SAME applies as it is. A thread is
//! guessed for each message as it is sent: of the visits that its sender has open, the one of which it is most likely what it does
//! next. That is learnt from what visits of the same request did before, and goes by these rules where nothing is known yet: a message
//! that may be a reply is one; a visit that waits for a reply sends nothing; the visit that came first goes on first. What no visit can have sent begins
//! a thread of a customer. Nothing else of the trace is used, and no message is looked at twice.
//!
//! Guesses go wrong, and what must not happen is that one leads to the next. Putting a message to the wrong one of two visits is
//! forgotten when both are over. Taking a reply for a request is not: its visit would stay open, and what is open would never fit again.
//! So messages that were replies before are replies, as long as there is any visit that can have sent them, even where
//! the task that asked for it seems to be done. A reply that never comes would be as bad: the next one would be taken for it, and each one
//! after that for the one before. So a visit that goes on as it always does once it is answered is taken to be answered.

mod choice;
mod moves;
mod visit;

use std::collections::VecDeque;
use std::ops::ControlFlow;

use rustc_hash::FxHashMap;

use crate::codes;
use crate::sequence_model::{Kind, SequenceModel};
use dyelog_diagnostic::names::Name;
use dyelog_diagnostic::{Diagnostic, Place, Severity};
use dyelog_trace::event::Task;
use dyelog_trace::messages::{Event, MessageStep, StepSink, What};
use dyelog_trace::{ReadReport, TaskId, TraceNames};

use visit::{At, Client, Service, Transit, Visit};

/// Puts the messages of services into threads, for a sink that needs sequential tasks.
#[derive(Debug)]
pub struct Threads<S> {
    sink: S,
    /// Names of threads, and of what messages say.
    names: TraceNames,
    services: Vec<Service>,
    /// Services by the tasks of the trace, and own names by the names of the trace.
    by_task: Vec<u32>,
    labels: Vec<Option<Name>>,
    /// How many threads there are of a name.
    counts: FxHashMap<Name, u32>,
    visits: Vec<Visit>,
    free: Vec<u32>,
    customers: VecDeque<At>,
    transits: Vec<Transit>,
    sequences: SequenceModel,
    clock: u64,
    steps: u64,
    /// By line of a message, how many requests its sender was serving; 0 for customers.
    at_once: Option<FxHashMap<u32, u32>>,
    findings: ReadReport,
}

/// What is left when a trace has ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Threaded<S> {
    /// The sink.
    pub sink: S,
    /// The names of its threads.
    pub names: TraceNames,
    /// How many requests the sender of each message was serving, by the message's line, where that was counted.
    pub at_once: FxHashMap<u32, u32>,
    /// What there is to say.
    pub findings: ReadReport,
}

impl<S: StepSink> Threads<S> {
    /// For a sink; `names` are those of the threads of traces before it. With `counted`, keeps how much services did at once.
    pub fn new(sink: S, names: TraceNames, counted: bool) -> Self {
        Self {
            sink,
            names,
            services: Vec::new(),
            by_task: Vec::new(),
            labels: Vec::new(),
            counts: FxHashMap::default(),
            visits: Vec::new(),
            free: Vec::new(),
            customers: VecDeque::new(),
            transits: Vec::new(),
            sequences: SequenceModel::default(),
            clock: 0,
            steps: 0,
            at_once: counted.then(FxHashMap::default),
            findings: ReadReport::default(),
        }
    }

    /// What all came to.
    pub fn finish(self) -> Threaded<S> {
        let at_once = self.at_once.unwrap_or_default();
        Threaded { sink: self.sink, names: self.names, at_once, findings: self.findings }
    }

    /// How many visits were looked at so far, which is the work that it takes.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    fn service(&mut self, names: &TraceNames, task: TaskId) -> u32 {
        if self.by_task.len() <= task.index() {
            self.by_task.resize(task.index() + 1, u32::MAX);
        }
        if self.by_task[task.index()] == u32::MAX {
            self.by_task[task.index()] = self.services.len() as u32;
            let name = self.names.names.intern(names.task_name(task));
            self.services.push(Service { name, ..Service::default() });
        }
        self.by_task[task.index()]
    }

    fn label(&mut self, names: &TraceNames, label: Name) -> Name {
        if self.labels.len() <= label.index() {
            self.labels.resize(label.index() + 1, None);
        }
        let own = &mut self.names.names;
        *self.labels[label.index()].get_or_insert_with(|| own.intern(names.names.text(label)))
    }

    fn new_thread(&mut self, service: u32) -> TaskId {
        let name = self.services[service as usize].name;
        let count = self.counts.entry(name).or_default();
        *count += 1;
        self.names.intern_task_named(Task { name, instance: *count })
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn at(&self, visit: u32) -> At {
        At { visit, born: self.visits[visit as usize].born }
    }

    fn as_client(&self, visit: u32) -> Client {
        let Visit { service, thread, .. } = self.visits[visit as usize];
        Client { at: self.at(visit), service, thread }
    }

    /// A visit that is still what it was.
    fn alive(&self, at: At) -> Option<u32> {
        let visit = &self.visits[at.visit as usize];
        (visit.born == at.born && !visit.over).then_some(at.visit)
    }

    fn begin(&mut self, service: u32, thread: TaskId, client: Option<Client>, serves: Kind) -> u32 {
        let now = self.tick();
        let doing = self.sequences.accepted(serves);
        let visit = Visit {
            service,
            thread,
            born: now,
            client,
            doing,
            since: now,
            waiting: 0,
            asked: None,
            unwaited: false,
            over: false,
        };
        if let Some(place) = self.free.pop() {
            self.visits[place as usize] = visit;
            return place;
        }
        self.visits.push(visit);
        (self.visits.len() - 1) as u32
    }

    fn give(&mut self, step: &MessageStep, what: What) -> ControlFlow<()> {
        self.sink.step(&self.names, &MessageStep { what, ..*step })
    }

    /// An event of a service can be put to a thread only where one is at work.
    fn other(&mut self, names: &TraceNames, step: &MessageStep, event: Event) -> ControlFlow<()> {
        let (Event::Begin(task, _) | Event::Run(task) | Event::Idle(task) | Event::Compute(task, _)) = event;
        let service = self.service(names, task);
        let open = &self.services[service as usize].open;
        if open.len() != 1 {
            self.findings.count("event of a thread that is not known", || {
                let message = "this event belongs to a thread that cannot be guessed";
                Diagnostic::new(Severity::Note, codes::NO_THREAD, Place::Nowhere, message)
                    .with_note("it was left out: its task served several requests at once, or none")
            });
            return ControlFlow::Continue(());
        }
        let thread = self.visits[open[0] as usize].thread;
        let event = match event {
            Event::Begin(_, label) => Event::Begin(thread, self.label(names, label)),
            Event::Run(_) => Event::Run(thread),
            Event::Idle(_) => Event::Idle(thread),
            Event::Compute(_, seconds) => Event::Compute(thread, seconds),
        };
        self.give(step, What::Other(event))
    }

    fn whole(
        &mut self,
        names: &TraceNames,
        step: &MessageStep,
        (from, to): (TaskId, TaskId),
        label: Name,
        (sent, took): (f64, f64),
    ) -> ControlFlow<()> {
        let (from, to) = (self.service(names, from), self.service(names, to));
        let label = self.label(names, label);
        let transit = self.send(from, to, label, step.line);
        let Some((from, to)) = self.arrive(transit, to) else { return ControlFlow::Continue(()) };
        self.give(step, What::Message { from, to, label, sent, took })
    }
}

impl<S: StepSink> StepSink for Threads<S> {
    fn step(&mut self, names: &TraceNames, step: &MessageStep) -> ControlFlow<()> {
        match step.what {
            What::Message { from, to, label, sent, took } => self.whole(names, step, (from, to), label, (sent, took)),
            What::Send { from, token, to, label } => {
                let place = token as usize;
                if self.transits.len() <= place {
                    self.transits.resize(place + 1, Transit::None);
                }
                self.transits[place] = Transit::Open;
                let Some(to) = to else { return ControlFlow::Continue(()) };
                let (from, to) = (self.service(names, from), self.service(names, to));
                let label = self.label(names, label);
                let transit = self.send(from, to, label, step.line);
                self.transits[place] = transit;
                match transit {
                    Transit::Request { from: Client { thread, .. }, .. } | Transit::Reply { thread, .. } => {
                        self.give(step, What::Send { from: thread, token, to: None, label })
                    }
                    Transit::None | Transit::Open => ControlFlow::Continue(()),
                }
            }
            What::Receive { to, token, label, from, sent, took } => {
                match std::mem::replace(&mut self.transits[token as usize], Transit::None) {
                    Transit::Open => self.whole(names, step, (from, to), label, (sent, took)),
                    transit => {
                        let service = self.service(names, to);
                        let label = self.label(names, label);
                        let Some((from, to)) = self.arrive(transit, service) else {
                            return ControlFlow::Continue(());
                        };
                        self.give(step, What::Receive { to, token, label, from, sent, took })
                    }
                }
            }
            What::Lost(token) => match std::mem::replace(&mut self.transits[token as usize], Transit::None) {
                Transit::Open | Transit::None => ControlFlow::Continue(()),
                transit => {
                    if let Transit::Request { from, .. } = transit
                        && let Some(from) = self.alive(from.at)
                    {
                        self.answered(from);
                    }
                    self.give(step, What::Lost(token))
                }
            },
            What::Other(event) => self.other(names, step, event),
        }
    }
}
