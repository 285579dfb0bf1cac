//! Which thread of a service a message belongs to, where the trace does not tell.
//!
//! SAME needs tasks that do one thing at a time: "if there are multiple threads, traces must identify the thread" (2005 paper §7). A
//! service that serves several requests at once, told by its name only, is no such task. Its late replies find no request, open trees
//! of their own, and from then on requests close the cycles and replies open them: nothing ever puts that right.
//!
//! So messages of services pass through here first, and leave as messages between threads, to which SAME applies as it is. A thread is
//! guessed for each message as it is sent: of the visits that its sender has open, the one of which it is most likely what it does
//! next. That is learnt from what visits of the same request did before, and goes by these rules where nothing is known yet: a message
//! that may be a reply is one; who waits for a reply sends nothing; who came first goes on first. What no visit can have sent begins
//! a thread of a customer. Nothing else of the trace is used, and no message is looked at twice.
//!
//! Guesses go wrong, and what must not happen is that one leads to the next. Putting a message to the wrong one of two visits is
//! forgotten when both are over. Taking a reply for a request is not: its visit would stay open, and what is open would never fit again.
//! So messages that were replies before are replies, as long as there is any visit that can have sent them, even where
//! whoever asked for it seems to be done. A reply that never comes would be as bad: the next one would be taken for it, and each one
//! after that for the one before. So a visit that goes on as it always does once it is answered is taken to be answered.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::ControlFlow;

use rustc_hash::FxHashMap;

use crate::codes;
use crate::sequence_model::{Act, Doing, Kind, Next, SequenceModel};
use dyelog_diagnostic::names::Name;
use dyelog_diagnostic::{Diagnostic, Place, Severity};
use dyelog_trace::event::Task;
use dyelog_trace::messages::{Event, Step, StepSink, What};
use dyelog_trace::{ReadReport, TaskId, TraceNames};

/// How many visits of a service are candidates, how many customers may wait, and how far a request is followed that was passed on.
const MOST_VISITS: usize = 256;
const MOST_CUSTOMERS: usize = 1 << 16;
const MOST_HOPS: usize = 16;
/// How many times in all requests are followed for one message, but once for each visit.
const MOST_FOLLOWED: usize = 512;
/// How many scores are kept while one message is looked at.
const SCORES: usize = 32;
/// How many visits of a service that are over may expect replies.
const MOST_EXPECTING: usize = 64;

/// Of what was never seen, what is still taken to be more likely than anything below.
const UNSEEN_WHEN_OVER: f64 = 0.001;
const UNSEEN_FOR_A_CUSTOMER: f64 = 0.0005;
/// How much less likely a reply past the one who asked is than one to that, where it was never seen.
const UNSEEN_PAST_THE_CLIENT: f64 = 0.2;
/// How sure it must be what a visit does next once it is answered, for the answer to be presumed where no message was one, and how
/// much less likely that is than to have it.
const SURE: f64 = 0.8;
const ANSWERED_UNSEEN: f64 = 0.05;
/// How much less likely an answer is for which nobody waits any more.
const NOT_WAITED_FOR: f64 = 0.2;

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

#[derive(Debug, Default)]
struct Service {
    name: Name,
    /// Whether it was ever asked for anything.
    serves: bool,
    /// Visits that are not over, in the order of arrival, and visits that are, whose threads are free.
    open: VecDeque<u32>,
    over: VecDeque<u32>,
    /// Threads of customers that wait for nothing.
    idle: BinaryHeap<Reverse<u32>>,
}

/// What a thread does for one request, or for a customer.
#[derive(Clone, Copy, Debug)]
struct Visit {
    service: u32,
    thread: TaskId,
    /// When it began, which tells it from others in its place.
    born: u64,
    /// Who asked for it.
    client: Option<Client>,
    doing: Doing,
    /// When it did what it did last.
    since: u64,
    /// Answers that it waits for.
    waiting: u32,
    /// Whom it asked last.
    asked: Option<Asked>,
    /// Whether whoever asked for it went on as if it had been answered.
    unwaited: bool,
    over: bool,
}

/// A visit, which may be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct At {
    visit: u32,
    born: u64,
}

/// A visit that was asked for, as the one who asked sees it.
#[derive(Clone, Copy, Debug)]
struct Asked {
    at: At,
    /// When.
    since: u64,
    /// Where whoever asked is once it is answered.
    then: Doing,
}

/// A visit that asked for another one.
#[derive(Clone, Copy, Debug)]
struct Client {
    at: At,
    service: u32,
    thread: TaskId,
}

/// A message on its way.
#[derive(Clone, Copy, Debug)]
enum Transit {
    None,
    /// To whom is not known yet.
    Open,
    Request {
        from: Client,
        kind: Kind,
    },
    Reply {
        client: Client,
        thread: TaskId,
        serves: Kind,
        /// Whether it is waited for.
        awaited: bool,
    },
}

/// What the likelihood of a visit's next step hangs on: what it did, whether it waits, and where it would be with the answer.
type State = (Doing, bool, Option<Doing>);

/// How likely visits in a state do one thing next, as far as that was asked: services that do much at once do mostly the same.
struct Scores([Option<(State, (f64, bool))>; SCORES]);

impl Scores {
    fn none() -> Self {
        Self([None; SCORES])
    }

    fn get(&mut self, state: State, score: impl FnOnce() -> (f64, bool)) -> (f64, bool) {
        let place = &mut self.0[state.0.place(SCORES)];
        match place {
            Some((known, score)) if *known == state => *score,
            _ => place.insert((state, score())).1,
        }
    }
}

/// Who sends a message, and why.
#[derive(Clone, Copy, Debug)]
struct Choice {
    score: f64,
    rank: u64,
    visit: u32,
    /// To whom it is a reply.
    client: Option<Client>,
    /// Whether this takes for granted that the visit had the answer that it waits for.
    answered: bool,
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

    /// The sink, the names of its threads, how many requests the sender of each message was serving by the message's line, and what
    /// there is to say.
    pub fn finish(self) -> (S, TraceNames, FxHashMap<u32, u32>, ReadReport) {
        (self.sink, self.names, self.at_once.unwrap_or_default(), self.findings)
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

    /// Who of a service waits, itself or by others, for what this visit does, and by how many others. Whoever asked for it itself
    /// counts even when it is over. With it, how many of at most so many were asked.
    fn client_of(&self, visit: u32, service: u32, most: usize) -> (Option<(Client, usize)>, usize) {
        let mut next = self.visits[visit as usize].client;
        for others in 0..most {
            let Some(client) = next else { return (None, others) };
            let alive = self.alive(client.at);
            if client.service == service && (alive.is_some() || others == 0) {
                return (Some((client, others)), others + 1);
            }
            next = alive.and_then(|client| self.visits[client as usize].client);
        }
        (None, most)
    }

    /// Where a visit would be had it the answer to what it asked last, if it did nothing since and waits for that.
    fn once_answered(&self, visit: &Visit) -> Option<Asked> {
        let asked = visit.asked.filter(|asked| asked.since == visit.since)?;
        let other = &self.visits[self.alive(asked.at)? as usize];
        (other.waiting == 0 && !other.unwaited).then_some(asked)
    }

    /// How likely it is that a visit does this next, and whether that takes for granted that it had the answer that it waits for: where
    /// it never did this before the answer, and nearly always does after it.
    fn score(&self, visit: &Visit, next: &Next, scores: &mut Scores) -> (f64, bool) {
        let answered = self.once_answered(visit).map(|asked| asked.then);
        scores.get((visit.doing, visit.waiting > 0, answered), || {
            if let Some(then) = answered
                && next.was_seen(then)
                && !next.was_seen(visit.doing)
            {
                let answered = self.sequences.likely(then, next, false, |_| 0.0);
                if answered > SURE * next.share {
                    return (answered * ANSWERED_UNSEEN, true);
                }
            }
            (self.score_as_it_seems(visit, next), false)
        })
    }

    fn score_as_it_seems(&self, visit: &Visit, next: &Next) -> f64 {
        let waits = visit.waiting > 0;
        let typical = !visit.over && !waits;
        // Nothing of the kind was seen. These only say what comes first: who is free and of whom nothing is known, who waits, who is
        // free and always did something else, who is done; and replies before requests.
        let prior = |known: bool| match (visit.over, waits, next.act) {
            (true, ..) => UNSEEN_WHEN_OVER,
            (_, false, Act::Replies) if !known => 0.6,
            (_, false, _) if !known => 0.5,
            (_, true, Act::Replies) => 0.005,
            (_, false, Act::Replies) => 0.0045,
            (_, true, _) => 0.004,
            (_, false, _) => 0.002,
        };
        self.sequences.likely(visit.doing, next, typical, prior)
    }

    /// Who sends a message of a service to another; and how many steps it took to find that out.
    fn choose(&self, from: u32, to: u32, kind: Kind) -> (Option<Choice>, usize) {
        let service = &self.services[from as usize];
        let [replies, asks] = [Act::Replies, Act::Asks].map(|act| self.sequences.step(kind, act));
        let mut best: Option<Choice> = None;
        let mut consider = |(score, answered): (f64, bool), number: u32, client: Option<Client>| {
            let visit = &self.visits[number as usize];
            // First come, first served; but who serves what nobody waits for may be done with it long since.
            let rank =
                if self.sequences.is_answered(visit.doing.serves) { u64::MAX - visit.since } else { visit.since };
            if best.is_none_or(|best| (score, rank) > (best.score, best.rank)) {
                best = Some(Choice { score, rank, visit: number, client, answered });
            }
        };
        let (mut as_replies, mut as_asks) = (Scores::none(), Scores::none());
        // Where there are many visits, none is followed far.
        let hops = (MOST_FOLLOWED / service.open.len().max(1)).clamp(1, MOST_HOPS);
        let mut steps = service.open.len() + service.over.len();
        for &number in &service.open {
            let visit = &self.visits[number as usize];
            let (client, taken) = self.client_of(number, to, hops);
            steps += taken;
            if let Some((client, others)) = client {
                let past = others > 0 && !replies.was_seen(visit.doing);
                let (score, answered) = self.score(visit, &replies, &mut as_replies);
                let score = if visit.unwaited { score * NOT_WAITED_FOR } else { score };
                let score = if past { score * UNSEEN_PAST_THE_CLIENT } else { score };
                consider((score, answered), number, Some(client));
            }
            consider(self.score(visit, &asks, &mut as_asks), number, None);
        }
        // What was answered may go on in a second phase.
        for &number in &service.over {
            let visit = &self.visits[number as usize];
            if best.is_none() || asks.was_seen(visit.doing) {
                let score = self.score_as_it_seems(visit, &asks);
                if best.is_none_or(|best| score > best.score) {
                    best = Some(Choice { score, rank: 0, visit: number, client: None, answered: false });
                }
            }
        }
        // Such a request may be one that nobody asked for.
        let customer = self.sequences.by_customers(kind).unwrap_or(UNSEEN_FOR_A_CUSTOMER);
        (best.filter(|best| best.score >= customer * asks.share), steps)
    }

    /// A message leaves.
    fn send(&mut self, from: u32, to: u32, label: Name, line: u32) -> Transit {
        let kind = self.sequences.kind(from, to, label);
        let (choice, steps) = self.choose(from, to, kind);
        self.steps += steps as u64;
        if let Some(at_once) = &mut self.at_once {
            let open = if choice.is_some() { self.services[from as usize].open.len().max(1) } else { 0 };
            at_once.insert(line, open as u32);
        }
        let Some(Choice { visit, client, answered, .. }) = choice else {
            self.sequences.ask(kind, true);
            let customer = self.customer(from);
            self.visits[customer as usize].waiting = 1;
            return Transit::Request { from: self.as_client(customer), kind };
        };
        if answered {
            self.presume_answered(visit);
        }
        let now = self.tick();
        let own = &mut self.visits[visit as usize];
        let act = if client.is_some() { Act::Replies } else { Act::Asks };
        let thread = own.thread;
        self.sequences.learn(&mut own.doing, SequenceModel::last(kind, act));
        own.since = now;
        let Some(client) = client else {
            own.waiting += 1;
            self.sequences.ask(kind, false);
            return Transit::Request { from: self.as_client(visit), kind };
        };
        self.sequences.reply(kind);
        // All that the request was passed on by are done with it.
        let mut done = visit;
        let (serves, awaited) = loop {
            let Visit { doing, client: next, unwaited, .. } = self.visits[done as usize];
            self.sequences.answer(doing.serves);
            self.over(done);
            match next {
                Some(next) if next.at != client.at => done = next.at.visit,
                _ => break (doing.serves, !unwaited),
            }
        };
        Transit::Reply { client, thread, serves, awaited }
    }

    /// A visit goes on as if it had been answered, though no message was taken for the answer. None may ever come: whoever it asked
    /// must not get those of others from then on, one after the other.
    fn presume_answered(&mut self, visit: u32) {
        let own = &self.visits[visit as usize];
        let Some(asked) = self.once_answered(own) else { return };
        let own = &mut self.visits[visit as usize];
        own.doing = asked.then;
        own.waiting = own.waiting.saturating_sub(1);
        self.visits[asked.at.visit as usize].unwaited = true;
    }

    /// A visit is over; its thread is free.
    fn over(&mut self, visit: u32) {
        let own = &mut self.visits[visit as usize];
        own.over = true;
        let service = &mut self.services[own.service as usize];
        if let Some(place) = service.open.iter().position(|open| *open == visit) {
            service.open.remove(place);
        }
        service.over.push_back(visit);
    }

    /// A thread that begins something that nobody asked it for.
    fn customer(&mut self, service: u32) -> u32 {
        if self.customers.len() >= MOST_CUSTOMERS
            && let Some(oldest) = self.customers.pop_front()
            && self.alive(oldest).is_some()
        {
            self.end_customer(oldest.visit);
        }
        let thread = match self.services[service as usize].idle.pop() {
            Some(Reverse(thread)) => TaskId(thread),
            None => self.new_thread(service),
        };
        let kind = self.sequences.kind(u32::MAX, service, Name::NONE);
        let visit = self.begin(service, thread, None, kind);
        self.customers.push_back(self.at(visit));
        visit
    }

    fn end_customer(&mut self, visit: u32) {
        let own = &mut self.visits[visit as usize];
        own.over = true;
        let Visit { thread, service, .. } = *own;
        self.services[service as usize].idle.push(Reverse(thread.0));
        self.free.push(visit);
    }

    /// Takes a visit of a service that is over, whose thread goes on to something else. One to which a reply may still come is left as
    /// long as there are few of them: the reply would be taken for a request to whatever the thread does by then.
    fn free_thread(&mut self, service: u32) -> Option<u32> {
        let over = &mut self.services[service as usize].over;
        let waits = |visit: &u32| self.visits[*visit as usize].waiting > 0;
        let place = over.iter().position(|visit| !waits(visit)).or((over.len() >= MOST_EXPECTING).then_some(0))?;
        over.remove(place)
    }

    /// A request arrives; gives the thread that serves it.
    fn accept(&mut self, service: u32, client: Client, kind: Kind) -> TaskId {
        self.services[service as usize].serves = true;
        let own = &mut self.services[service as usize];
        let given_up = if own.open.len() >= MOST_VISITS { own.open.front().copied() } else { None };
        if let Some(oldest) = given_up {
            if let Some(client) = self.visits[oldest as usize].client.and_then(|client| self.alive(client.at)) {
                self.answered(client);
            }
            self.over(oldest);
        }
        let thread = match self.free_thread(service) {
            Some(over) => {
                self.free.push(over);
                let over = &mut self.visits[over as usize];
                self.sequences.learn(&mut over.doing, SequenceModel::last(0, Act::Ends));
                over.thread
            }
            None => self.new_thread(service),
        };
        let visit = self.begin(service, thread, Some(client), kind);
        let asked = self.at(visit);
        if let Some(client) = self.alive(client.at) {
            let Visit { doing, since, .. } = self.visits[client as usize];
            if doing.last == SequenceModel::last(kind, Act::Asks) {
                let then = self.sequences.then(doing, SequenceModel::last(kind, Act::Resumes));
                self.visits[client as usize].asked = Some(Asked { at: asked, since, then });
            }
        }
        self.services[service as usize].open.push_back(visit);
        thread
    }

    /// A visit waits for one answer less.
    fn answered(&mut self, visit: u32) {
        let own = &mut self.visits[visit as usize];
        own.waiting = own.waiting.saturating_sub(1);
        if own.client.is_none() && own.waiting == 0 {
            self.end_customer(visit);
        }
    }

    /// A reply arrives.
    fn resume(&mut self, client: At, serves: Kind) {
        let now = self.tick();
        let own = &mut self.visits[client.visit as usize];
        if own.born == client.born && own.over {
            own.waiting = own.waiting.saturating_sub(1);
        } else if let Some(client) = self.alive(client) {
            let own = &mut self.visits[client as usize];
            self.sequences.learn(&mut own.doing, SequenceModel::last(serves, Act::Resumes));
            own.since = now;
            self.answered(client);
        }
    }

    /// The threads at both ends of a message that arrives.
    fn arrive(&mut self, transit: Transit, to: u32) -> Option<(TaskId, TaskId)> {
        match transit {
            Transit::Request { from, kind } => Some((from.thread, self.accept(to, from, kind))),
            Transit::Reply { client, thread, serves, awaited } => {
                if awaited {
                    self.resume(client.at, serves);
                }
                Some((thread, client.thread))
            }
            Transit::None | Transit::Open => None,
        }
    }

    fn give(&mut self, step: &Step, what: What) -> ControlFlow<()> {
        self.sink.step(&self.names, &Step { what, ..*step })
    }

    /// An event of a service can be put to a thread only where one is at work.
    fn other(&mut self, names: &TraceNames, step: &Step, event: Event) -> ControlFlow<()> {
        let (Event::Begin(task, _) | Event::Run(task) | Event::Idle(task) | Event::Compute(task, _)) = event;
        let service = self.service(names, task);
        let open = &self.services[service as usize].open;
        if open.len() != 1 {
            self.findings.count("event of a thread that is not known", || {
                let message = "this event belongs to a thread that cannot be guessed";
                Diagnostic::new(Severity::Note, codes::NO_THREAD, Place::Nowhere, message)
                    .with_note("it was left out: its task did several things at once, or none that a message asked for")
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
        step: &Step,
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
    fn step(&mut self, names: &TraceNames, step: &Step) -> ControlFlow<()> {
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
