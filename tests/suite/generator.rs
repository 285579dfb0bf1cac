#![allow(dead_code, reason = "tests and benchmarks use different parts of it")]
//! Operations with known interactions, the same for the same seed.
//!
//! A program of random interactions is carried out by sequential tasks: a task that is busy accepts nothing, so all labels
//! are what a tracer of such a system would write. Beside the events comes the truth: every interaction with who took part,
//! and of every node the visit and the phase that it belongs to.
//!
//! Left out is what no reader of labels could tell apart: a task that ends right after it sent a message, answered by
//! another message (that is an asynchronous RPC), and forwarding that comes back to a task of its own chain.

use std::collections::HashMap;
use std::sync::Arc;

use dyelog_diagnostic::names::Name;
use dyelog_trace::{Event, Extent, Kind, Operation, Origins, TaskId, TraceNames, angio};

/// The splitmix64 generator.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for place in (1..items.len()).rev() {
            items.swap(place, self.below(place + 1));
        }
    }
}

/// Which interactions there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// All.
    All,
    /// A client that calls in a loop: one thread.
    Loop,
    /// Calls within calls, down to the depth: one thread.
    Nested,
}

/// What is generated.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each says by itself whether something is generated")]
pub struct Shape {
    pub mix: Mix,
    /// How many tasks there are.
    pub tasks: usize,
    /// How deep requests go within one visit of the first task.
    pub depth: u32,
    /// Whether events have activity and service names, times and demands.
    pub attributes: bool,
    /// Whether tasks fork branches for themselves and join them.
    pub branches: bool,
    /// Whether branches fork branches, make calls that are answered on another thread, and are left without a join.
    pub nested: bool,
    /// Whether messages go to several receivers at once. Needs attributes.
    pub multicast: bool,
    /// Whether those that pass a request on may first go on in another thread than it came in on.
    pub continued: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            mix: Mix::All,
            tasks: 300,
            depth: 6,
            attributes: true,
            branches: true,
            nested: false,
            multicast: false,
            continued: true,
        }
    }
}

/// An interaction as it was carried out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interaction {
    /// Thread of the glue node.
    pub thread: u32,
    /// Thread node counter of the glue node.
    pub node: u32,
    pub template: &'static str,
    pub initiator: TaskId,
    /// Who accepted, in order.
    pub responders: Vec<TaskId>,
}

/// An operation with the truth about it.
pub struct Generated {
    pub operation: Operation,
    pub truth: Vec<Interaction>,
    /// The visit of each event, in the order of the events. Visit 0 is the first task's.
    pub visits: Vec<u32>,
    /// The phase of each event.
    pub phases: Vec<u8>,
    /// Requests from visit to visit.
    pub requests: Vec<(u32, u32)>,
}

/// How a frame came to run, which is how it ends.
#[derive(Clone, Copy)]
enum Called {
    Root,
    /// By a message that nobody waits for.
    Message,
    /// By a basic RPC, made on that thread.
    Basic(u32),
    /// By an RPC that is answered by a message.
    Answered,
    /// To forward to so many more; the truth's entry; of a forwarder, the thread on which it was asked.
    Forwards(u32, usize, Option<u32>),
    /// By an asynchronous RPC, on that thread; the truth's entry.
    Awaited(u32, usize),
    /// What is left after the reply.
    Rest,
    /// A branch on a thread that may still have to begin.
    Branch(u32, bool),
    /// Waits on a thread for so many branches from a thread on.
    Joins(u32, u32, u32),
}

#[derive(Clone, Copy)]
struct Frame {
    task: usize,
    visit: u32,
    phase: u8,
    called: Called,
    steps: usize,
    depth: u32,
    /// Must end on the thread that it has.
    pinned: bool,
    /// The thread began on the task, within the visit.
    own_thread: bool,
    /// The last node sent a message.
    sent: bool,
}

/// A flow of control: a thread, and the frames that wait for each other on it.
struct Strand {
    thread: u32,
    frames: Vec<Frame>,
}

/// Makes operations that share names.
pub struct Generator {
    pub names: TraceNames,
    random: Random,
    shape: Shape,
    tasks: Vec<TaskId>,
    services: Vec<Name>,
    activities: Vec<Name>,
    scenario: Name,
}

impl Generator {
    pub fn new(seed: u64, shape: Shape) -> Self {
        let mut names = TraceNames::new();
        let tasks = (0..shape.tasks).map(|number| names.intern_task(&format!("T{number}"), 1)).collect();
        let services = (0..4).map(|number| names.names.intern(&format!("GET /{number}"))).collect();
        let activities = (0..5).map(|number| names.names.intern(&format!("work{number}"))).collect();
        let scenario = names.names.intern("s");
        Self { names, random: Random::new(seed), shape, tasks, services, activities, scenario }
    }

    /// An operation of at least so many nodes, and few more.
    pub fn operation(&mut self, run: &str, nodes: usize) -> Generated {
        Run::new(self, nodes).go(run)
    }

    /// The text of operations.
    pub fn text<'o>(&self, operations: impl IntoIterator<Item = &'o Operation>) -> String {
        let mut text = Vec::new();
        for operation in operations {
            angio::write_text(&mut text, &self.names, operation).expect("memory takes all");
        }
        String::from_utf8(text).expect("the text is UTF-8")
    }
}

/// The making of one operation.
struct Run<'g> {
    generator: &'g mut Generator,
    nodes: usize,
    strands: Vec<Strand>,
    idle: Vec<usize>,
    /// How many nodes each thread has, thread 1 first.
    lengths: Vec<u32>,
    counters: Vec<u32>,
    events: Vec<Event>,
    truth: Vec<Interaction>,
    visits: Vec<u32>,
    phases: Vec<u8>,
    requests: Vec<(u32, u32)>,
    next_visit: u32,
    clock: u64,
    /// Of branches that are open, the truth's entry, and of those that have ended, the thread on which they did.
    open_branches: HashMap<u32, usize>,
    branch_ends: HashMap<u32, u32>,
}

impl<'g> Run<'g> {
    fn new(generator: &'g mut Generator, nodes: usize) -> Self {
        let tasks = generator.tasks.len();
        Self {
            generator,
            nodes,
            strands: Vec::new(),
            idle: (1..tasks).rev().collect(),
            lengths: vec![0],
            counters: vec![0; tasks],
            events: Vec::with_capacity(nodes + nodes / 16),
            truth: Vec::new(),
            visits: Vec::with_capacity(nodes + nodes / 16),
            phases: Vec::with_capacity(nodes + nodes / 16),
            requests: Vec::new(),
            next_visit: 1,
            clock: 0,
            open_branches: HashMap::new(),
            branch_ends: HashMap::new(),
        }
    }

    fn go(mut self, run: &str) -> Generated {
        let root = Frame {
            task: 0,
            visit: 0,
            phase: 1,
            called: Called::Root,
            steps: usize::MAX,
            depth: 0,
            pinned: false,
            own_thread: true,
            sent: false,
        };
        self.accept(1, Kind::Begin, &root);
        self.interaction("begin", 1, &root);
        self.strands.push(Strand { thread: 1, frames: vec![root] });
        let mut idle_steps = 0;
        while !self.strands.is_empty() {
            let before = self.events.len();
            let count = self.strands.len();
            let strand = self.random().below(count);
            self.step(strand);
            idle_steps = if self.events.len() == before { idle_steps + 1 } else { 0 };
            assert!(idle_steps < 100_000, "all tasks wait for each other");
        }
        let operation = Operation {
            scenario: self.generator.scenario,
            run: Arc::from(run),
            file: Arc::from("generated"),
            line: 0,
            start: None,
            weight: None,
            weight_given: false,
            extent: Extent::Whole,
            origins: Origins::Lines,
            events: self.events,
        };
        Generated { operation, truth: self.truth, visits: self.visits, phases: self.phases, requests: self.requests }
    }

    fn random(&mut self) -> &mut Random {
        &mut self.generator.random
    }

    fn emit(&mut self, thread: u32, kind: Kind, frame: &Frame) {
        let length = &mut self.lengths[thread as usize - 1];
        *length += 1;
        let index = *length;
        let counter = &mut self.counters[frame.task];
        *counter += 1;
        let mut event = Event::new(thread, index, kind, self.generator.tasks[frame.task], *counter);
        if self.generator.shape.attributes {
            self.clock += 1 + self.random().below(100) as u64;
            event.time = self.clock as f64 / 1e6;
            if kind == Kind::Activity && self.random().below(2) == 0 {
                let activity = self.random().below(5);
                event.activity = self.generator.activities[activity];
                event.cpu = self.random().below(1000) as f64 / 1e6;
            }
        }
        self.events.push(event);
        self.visits.push(frame.visit);
        self.phases.push(frame.phase);
    }

    /// The first node of a visit.
    fn accept(&mut self, thread: u32, kind: Kind, frame: &Frame) {
        self.emit(thread, kind, frame);
        if self.generator.shape.attributes {
            // A service serves in one way only, so that entries have bodies of bounded size.
            let service = self.generator.services[frame.depth as usize % 4];
            let event = self.events.last_mut().expect("one was pushed");
            event.service = service;
        }
    }

    fn new_thread(&mut self) -> u32 {
        self.lengths.push(0);
        self.lengths.len() as u32
    }

    /// Notes an interaction that begins at the last node of the thread.
    fn interaction(&mut self, template: &'static str, thread: u32, frame: &Frame) -> usize {
        let initiator = self.generator.tasks[frame.task];
        let node = self.lengths[thread as usize - 1];
        self.truth.push(Interaction { thread, node, template, initiator, responders: Vec::new() });
        self.truth.len() - 1
    }

    /// A single node that is an interaction of its own.
    fn alone(&mut self, template: &'static str, thread: u32, kind: Kind, frame: &Frame) {
        self.emit(thread, kind, frame);
        self.interaction(template, thread, frame);
    }

    fn top(&mut self, strand: usize) -> &mut Frame {
        self.strands[strand].frames.last_mut().expect("a strand has frames")
    }

    fn step(&mut self, strand: usize) {
        let frame = *self.top(strand);
        let thread = self.strands[strand].thread;
        match frame.called {
            Called::Branch(branch, false) => {
                self.strands[strand].thread = branch;
                self.emit(branch, Kind::Begin, &frame);
                self.top(strand).called = Called::Branch(branch, true);
                return;
            }
            Called::Joins(back, first, count) => {
                self.strands[strand].thread = back;
                for branch in first..first + count {
                    self.join(back, branch, &frame);
                }
                self.strands[strand].frames.pop();
                return;
            }
            _ => {}
        }
        if frame.steps == 0 || self.events.len() >= self.nodes {
            self.finish(strand, thread, &frame);
            return;
        }
        let top = self.top(strand);
        top.steps -= 1;
        top.sent = false;
        self.act(strand, thread, &frame);
    }

    fn act(&mut self, strand: usize, thread: u32, frame: &Frame) {
        let shape = self.generator.shape;
        let may_call = self.idle.len() > 1 + shape.tasks / 8 && frame.depth < shape.depth;
        let chosen = match shape.mix {
            Mix::All => self.random().below(100),
            Mix::Loop | Mix::Nested => 25,
        };
        match chosen {
            _ if !may_call => self.alone("activity", thread, Kind::Activity, frame),
            0..25 => self.alone("activity", thread, Kind::Activity, frame),
            84..94 => self.message(strand, thread, frame),
            94.. if shape.branches && (shape.nested || !matches!(frame.called, Called::Branch(..))) => {
                self.branches(strand, thread, frame);
            }
            50..62 if !frame.pinned => self.call(strand, thread, frame, Called::Answered),
            62..72 if !frame.pinned => {
                let count = 1 + self.random().below(3) as u32;
                self.call(strand, thread, frame, Called::Forwards(count, 0, None));
            }
            72..84 if !frame.pinned => self.asynchronous_call(strand, thread, frame),
            _ => self.call(strand, thread, frame, Called::Basic(thread)),
        }
    }

    /// A new visit of an idle task that none of the given is.
    fn visit(&mut self, from: &Frame, called: Called, not: &[TaskId]) -> Option<Frame> {
        let place = (0..8).find_map(|_| {
            let place = self.generator.random.below(self.idle.len());
            let task = *self.idle.get(place)?;
            (!not.contains(&self.generator.tasks[task])).then_some(place)
        })?;
        let task = self.idle.swap_remove(place);
        let steps = match self.generator.shape.mix {
            Mix::All => self.random().below(6),
            Mix::Loop => 0,
            Mix::Nested => 1,
        };
        let visit = self.next_visit;
        self.next_visit += 1;
        self.requests.push((from.visit, visit));
        // One that waits for its answer on a thread of its own must not be left on a foreign one too often.
        let basic = matches!(called, Called::Basic(_));
        let pinned =
            basic && (from.pinned || matches!(from.called, Called::Awaited(..)) && self.random().below(2) == 0);
        let depth = from.depth + 1;
        Some(Frame { task, visit, phase: 1, called, steps, depth, pinned, own_thread: !basic, sent: false })
    }

    /// The ways of calling that begin on the caller's thread.
    fn call(&mut self, strand: usize, thread: u32, frame: &Frame, called: Called) {
        let Some(mut callee) = self.visit(frame, called, &[]) else { return };
        let template = match called {
            Called::Basic(_) => "basic_rpc",
            Called::Answered => "rpc_phase2",
            _ => "forwarding",
        };
        self.emit(thread, Kind::Activity, frame);
        let truth = self.interaction(template, thread, frame);
        self.truth[truth].responders.push(self.generator.tasks[callee.task]);
        if let Called::Forwards(_, noted, _) = &mut callee.called {
            *noted = truth;
        }
        self.accept(thread, Kind::Activity, &callee);
        self.strands[strand].frames.push(callee);
    }

    fn asynchronous_call(&mut self, strand: usize, thread: u32, frame: &Frame) {
        let new = self.new_thread();
        let truth = self.truth.len();
        let Some(callee) = self.visit(frame, Called::Awaited(new, truth), &self.before(frame)) else {
            self.lengths.pop();
            return;
        };
        self.emit(thread, Kind::Fork(new), frame);
        self.interaction("async_rpc", thread, frame);
        self.truth[truth].responders.push(self.generator.tasks[callee.task]);
        self.emit(thread, Kind::End, frame);
        self.accept(new, Kind::Begin, &callee);
        self.strands[strand].thread = new;
        self.strands[strand].frames.push(callee);
    }

    /// Who passed the request on, which a forwarder does not send messages to: they would look like answers.
    fn before(&self, frame: &Frame) -> Vec<TaskId> {
        match frame.called {
            Called::Forwards(_, truth, Some(_)) => self.truth[truth].responders.clone(),
            _ => Vec::new(),
        }
    }

    fn message(&mut self, strand: usize, thread: u32, frame: &Frame) {
        if self.generator.shape.multicast {
            if frame.sent {
                // Two messages of one operation side by side are one to two receivers.
                self.alone("activity", thread, Kind::Activity, frame);
            }
            if self.random().below(3) == 0 {
                self.multicast(strand, thread, frame);
                return;
            }
        }
        let Some(callee) = self.visit(frame, Called::Message, &self.before(frame)) else { return };
        let new = self.new_thread();
        self.emit(thread, Kind::Fork(new), frame);
        let truth = self.interaction("asynchronous", thread, frame);
        self.truth[truth].responders.push(self.generator.tasks[callee.task]);
        self.top(strand).sent = true;
        self.accept(new, Kind::Begin, &callee);
        self.strands.push(Strand { thread: new, frames: vec![callee] });
    }

    fn multicast(&mut self, strand: usize, thread: u32, frame: &Frame) {
        let count = 1 + self.random().below(4);
        let receivers: Vec<Frame> = (0..count).filter_map(|_| self.visit(frame, Called::Message, &[])).collect();
        for (number, receiver) in receivers.iter().enumerate() {
            let new = self.new_thread();
            self.emit(thread, Kind::Fork(new), frame);
            if number == 0 {
                self.interaction(if receivers.len() > 1 { "multicast" } else { "asynchronous" }, thread, frame);
            }
            let task = self.generator.tasks[receiver.task];
            self.truth.last_mut().expect("it was noted").responders.push(task);
            self.top(strand).sent = true;
        }
        let threads = self.lengths.len() - receivers.len() + 1..;
        for (thread, receiver) in threads.zip(receivers) {
            self.accept(thread as u32, Kind::Begin, &receiver);
            self.strands.push(Strand { thread: thread as u32, frames: vec![receiver] });
        }
    }

    /// Waits for a branch, unless nobody does.
    fn join(&mut self, thread: u32, branch: u32, frame: &Frame) {
        let truth = self.open_branches.remove(&branch).expect("it was forked");
        let end = self.branch_ends.remove(&branch).expect("it has ended");
        if self.generator.shape.nested && self.random().below(6) == 0 {
            self.truth[truth].template = "open_branch";
            return;
        }
        self.emit(thread, Kind::Join(end), frame);
        if end != branch {
            self.truth[truth].template = "open_branch";
            self.interaction("wait", thread, frame);
        }
    }

    fn branches(&mut self, strand: usize, thread: u32, frame: &Frame) {
        let count = 1 + self.random().below(3) as u32;
        let first = self.lengths.len() as u32 + 1;
        let joins = Frame { called: Called::Joins(thread, first, count), ..*frame };
        self.strands[strand].frames.push(joins);
        for branch in first..first + count {
            self.new_thread();
            self.emit(thread, Kind::Fork(branch), frame);
            let truth = self.interaction("parallel_branch", thread, frame);
            self.truth[truth].responders.push(self.generator.tasks[frame.task]);
            self.open_branches.insert(branch, truth);
        }
        if self.random().below(2) == 0 {
            self.alone("activity", thread, Kind::Activity, frame);
        }
        for branch in (first..first + count).rev() {
            let steps = self.random().below(4);
            let called = Called::Branch(branch, false);
            let pinned = !self.generator.shape.nested;
            self.strands[strand].frames.push(Frame { called, steps, pinned, own_thread: true, sent: false, ..*frame });
        }
    }

    fn finish(&mut self, strand: usize, thread: u32, frame: &Frame) {
        match frame.called {
            Called::Root | Called::Message | Called::Rest | Called::Branch(..) => {
                if frame.sent {
                    self.alone("activity", thread, Kind::Activity, frame);
                }
                self.alone("end", thread, Kind::End, frame);
                if let Called::Branch(branch, _) = frame.called {
                    self.branch_ends.insert(branch, thread);
                }
                self.strands[strand].frames.pop();
                if !matches!(frame.called, Called::Branch(..)) {
                    self.idle.push(frame.task);
                    self.strands.swap_remove(strand);
                }
            }
            Called::Basic(from) => {
                self.emit(thread, Kind::Activity, frame);
                self.strands[strand].frames.pop();
                self.idle.push(frame.task);
                let caller = *self.top(strand);
                self.emit(thread, Kind::Activity, &caller);
                self.top(strand).own_thread &= from == thread;
            }
            Called::Answered => self.answer(strand, thread, frame),
            Called::Forwards(0, truth, asked) => {
                self.continued(truth, asked, thread);
                self.answer(strand, thread, frame);
            }
            Called::Awaited(first, truth) => {
                if !frame.own_thread {
                    self.asynchronous_call(strand, thread, frame);
                    return;
                }
                if first != thread {
                    self.truth[truth].template = "nested_async_rpc";
                }
                self.answer(strand, thread, frame);
            }
            Called::Forwards(left, truth, asked) => {
                self.continued(truth, asked, thread);
                self.forward(strand, thread, frame, left, truth);
            }
            Called::Joins(..) => {}
        }
    }

    /// A message wakes the caller; the visit goes on with its second phase.
    fn answer(&mut self, strand: usize, thread: u32, frame: &Frame) {
        let new = self.new_thread();
        self.emit(thread, Kind::Fork(new), frame);
        self.strands[strand].frames.pop();
        self.strands[strand].thread = new;
        let caller = *self.top(strand);
        self.emit(new, Kind::Begin, &caller);
        self.top(strand).own_thread = true;
        self.rest(thread, frame);
    }

    /// What a visit does after its reply.
    fn rest(&mut self, thread: u32, frame: &Frame) {
        let steps = self.random().below(4);
        // One that replies by a message and ends there, and is forwarded to by the one that it replied to, looks like one that is
        // answered. More calls make that less rare.
        let sent = self.generator.shape.nested;
        let rest = Frame { called: Called::Rest, phase: 2, steps, pinned: false, sent, ..*frame };
        self.strands.push(Strand { thread, frames: vec![rest] });
    }

    /// A forwarder goes on from another thread than it was asked on.
    fn continued(&mut self, truth: usize, asked: Option<u32>, thread: u32) {
        if asked.is_some_and(|asked| asked != thread) {
            self.truth[truth].template = "continued_forwarding";
        }
    }

    fn forward(&mut self, strand: usize, thread: u32, frame: &Frame, left: u32, truth: usize) {
        let chain = self.truth[truth].responders.clone();
        let new = self.new_thread();
        let Some(mut next) = self.visit(frame, Called::Forwards(left - 1, truth, Some(new)), &chain) else {
            self.lengths.pop();
            // Nobody is there to forward to: answer.
            if chain.len() == 1 {
                self.truth[truth].template = "rpc_phase2";
            }
            self.answer(strand, thread, frame);
            return;
        };
        next.pinned |= !self.generator.shape.continued;
        self.emit(thread, Kind::Fork(new), frame);
        self.truth[truth].responders.push(self.generator.tasks[next.task]);
        self.accept(new, Kind::Begin, &next);
        self.strands[strand].thread = new;
        *self.top(strand) = next;
        self.rest(thread, frame);
    }
}
