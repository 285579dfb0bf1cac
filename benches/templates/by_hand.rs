//! The templates of `rules/tlc.dl` and `rules/ext/join.dl` written by hand as plain Rust over the same graph, with the same
//! control algorithm: what the plans are measured against. It makes entries, requests and marks, and nothing else.

use std::collections::{HashMap, VecDeque};

use dyelog::trace::toeg::NONE;
use dyelog::trace::{Kind, NodeId, TaskId, Toeg};
use rustc_hash::FxBuildHasher;

const PROCESSED: u8 = 1;
const PHASE2_AFTER: u8 = 2;
const ACTIVITY: u8 = 4;
const AWAITED: u8 = 8;
const UNKNOWN: u32 = u32::MAX;
const STRAY: u32 = u32::MAX - 1;

/// Names of the templates, in the order of their numbers.
pub const NAMES: [&str; 11] = [
    "basic_rpc",
    "rpc_phase2",
    "async_rpc",
    "nested_async_rpc",
    "forwarding",
    "asynchronous",
    "activity",
    "end",
    "begin",
    "parallel_branch",
    "wait",
];

/// What comes of an operation.
pub struct Result {
    pub flags: Vec<u8>,
    pub owner: Vec<u32>,
    /// Task, type and accepting node of each entry.
    pub entries: Vec<(TaskId, u8, NodeId)>,
    /// From, to and at which node.
    pub requests: Vec<(u32, u32, NodeId)>,
    pub branches: Vec<(u32, NodeId, NodeId)>,
    pub unmatched: usize,
}

struct ByHand<'t, N> {
    toeg: &'t Toeg,
    result: Result,
    queue: VecDeque<NodeId>,
    waiting: HashMap<NodeId, Vec<NodeId>, FxBuildHasher>,
    deferred: VecDeque<NodeId>,
    walked_from: Vec<NodeId>,
    chain: Vec<(NodeId, NodeId)>,
    note: N,
}

/// Runs the control algorithm; tells `note` of each match by the template's number and the glue node.
pub fn run(toeg: &Toeg, note: impl FnMut(usize, NodeId)) -> Result {
    let root = toeg.root();
    let task = toeg.event(root).task;
    let mut owner = vec![UNKNOWN; toeg.len()];
    owner[root as usize] = 1;
    let result = Result {
        flags: vec![0; toeg.len()],
        owner,
        entries: vec![(task, 0, NONE), (task, 1, root)],
        requests: vec![(0, 1, NONE)],
        branches: Vec::new(),
        unmatched: 0,
    };
    let mut by_hand = ByHand {
        toeg,
        result,
        queue: VecDeque::from([root]),
        waiting: HashMap::default(),
        deferred: VecDeque::new(),
        walked_from: toeg.threads().iter().map(|thread| thread.last + 1).collect(),
        chain: Vec::new(),
        note,
    };
    by_hand.triggers();
    by_hand.result
}

impl<N: FnMut(usize, NodeId)> ByHand<'_, N> {
    fn triggers(&mut self) {
        loop {
            while let Some(trigger) = self.queue.pop_front() {
                if !self.awaits_its_fork(trigger) {
                    self.walk(trigger);
                }
            }
            let Some(trigger) = self.deferred.pop_front() else { return };
            self.walk(trigger);
        }
    }

    fn awaits_its_fork(&mut self, trigger: NodeId) -> bool {
        if self.toeg.event(trigger).kind != Kind::Begin || !self.free(trigger) {
            return false;
        }
        let fork = self.toeg.thread_of(trigger).fork;
        if fork == NONE || !self.free(fork) {
            return false;
        }
        self.result.flags[fork as usize] |= AWAITED;
        self.waiting.entry(fork).or_default().push(trigger);
        self.deferred.push_back(trigger);
        true
    }

    fn walk(&mut self, trigger: NodeId) {
        let from = &mut self.walked_from[self.toeg.thread_number(trigger)];
        if *from <= trigger {
            return;
        }
        let end = std::mem::replace(from, trigger);
        for node in trigger..end {
            if self.free(node) {
                let entry = self.entry_of(node);
                self.result.owner[node as usize] = entry;
                match self.matched(node, entry) {
                    Some(template) => (self.note)(template, node),
                    None => self.result.unmatched += 1,
                }
            }
        }
    }

    fn entry_of(&self, node: NodeId) -> u32 {
        let own = self.result.owner[node as usize];
        if own != UNKNOWN {
            return own;
        }
        let previous = self.toeg.previous_in_thread(node);
        if previous != NONE && self.task(previous) == self.task(node) {
            return self.result.owner[previous as usize];
        }
        STRAY
    }

    fn task(&self, node: NodeId) -> TaskId {
        self.toeg.event(node).task
    }

    fn free(&self, node: NodeId) -> bool {
        self.result.flags[node as usize] & PROCESSED == 0
    }

    /// A free node of a visit of a task that began at some node, after it.
    fn later(&self, node: NodeId, accepted: NodeId) -> bool {
        if node == NONE || !self.free(node) {
            return false;
        }
        let (event, first) = (self.toeg.event(node), self.toeg.event(accepted));
        event.task == first.task && event.counter > first.counter
    }

    fn begin_of(&self, thread: u32) -> Option<NodeId> {
        let first = self.toeg.thread(thread)?.first;
        self.free(first).then_some(first)
    }

    fn matched(&mut self, e1: NodeId, entry: u32) -> Option<usize> {
        match self.toeg.event(e1).kind {
            Kind::Begin => {
                self.consume(e1, entry);
                Some(8)
            }
            Kind::End => {
                self.consume(e1, entry);
                Some(7)
            }
            Kind::Join(_) => {
                self.mark(e1, ACTIVITY);
                self.consume(e1, entry);
                Some(10)
            }
            Kind::Activity => Some(self.activity(e1, entry)),
            Kind::Fork(thread) => self.fork(e1, thread, entry),
        }
    }

    fn activity(&mut self, e1: NodeId, entry: u32) -> usize {
        if let Some(template) = self.call(e1, entry) {
            return template;
        }
        self.mark(e1, ACTIVITY);
        self.consume(e1, entry);
        6
    }

    /// Basic RPC, RPC with phase two, forwarding.
    fn call(&mut self, e1: NodeId, entry: u32) -> Option<usize> {
        let e2 = self.toeg.next_in_thread(e1);
        if e2 == NONE || self.toeg.event(e2).kind != Kind::Activity || !self.free(e2) || self.task(e1) == self.task(e2)
        {
            return None;
        }
        let back = self.toeg.next_in_task(e1);
        if back == NONE || !self.free(back) {
            return None;
        }
        match self.toeg.event(back).kind {
            Kind::Activity => {
                let e3 = self.toeg.previous_in_thread(back);
                if !self.later(e3, e2) || self.toeg.event(e3).kind != Kind::Activity {
                    return None;
                }
                let server = self.new_entry(entry, e1, e2, 1);
                for (node, owner) in [(e1, entry), (e2, server), (e3, server), (back, entry)] {
                    self.mark(node, ACTIVITY);
                    self.consume(node, owner);
                }
                Some(0)
            }
            Kind::Begin => {
                let e3 = self.toeg.thread_of(back).fork;
                if self.later(e3, e2) {
                    let server = self.new_entry(entry, e1, e2, 1);
                    self.mark(e1, ACTIVITY);
                    self.mark(e2, ACTIVITY);
                    self.mark(e3, PHASE2_AFTER);
                    self.answered([(e1, entry), (e2, server), (e3, server)], back, entry);
                    return Some(1);
                }
                self.forwarded(e1, e2, e3, back, entry)
            }
            _ => None,
        }
    }

    fn forwarded(&mut self, e1: NodeId, e2: NodeId, mut fork: NodeId, back: NodeId, entry: u32) -> Option<usize> {
        self.chain.clear();
        let e3 = loop {
            if fork == NONE || !self.free(fork) {
                return None;
            }
            if !self.chain.is_empty() && self.later(fork, e2) {
                break fork;
            }
            let first = self.toeg.thread_of(fork).first;
            if !self.free(first) || self.task(first) != self.task(fork) {
                return None;
            }
            self.chain.push((first, fork));
            fork = self.toeg.thread_of(first).fork;
        };
        let first_server = self.new_entry(entry, e1, e2, 1);
        self.mark(e1, ACTIVITY);
        self.mark(e2, ACTIVITY);
        self.mark(e3, PHASE2_AFTER);
        let mut chain = std::mem::take(&mut self.chain);
        let mut server = first_server;
        for &(first, fork) in chain.iter().rev() {
            server = self.new_entry(server, NONE, first, 3);
            self.mark(fork, PHASE2_AFTER);
            self.trigger(first + 1, server);
        }
        self.answered([(e1, entry), (e2, first_server), (e3, first_server)], back, entry);
        for (number, &(first, fork)) in chain.iter().rev().enumerate() {
            self.consume(first, first_server + 1 + number as u32);
            self.consume(fork, first_server + 1 + number as u32);
        }
        chain.clear();
        self.chain = chain;
        Some(4)
    }

    fn answered<const K: usize>(&mut self, nodes: [(NodeId, u32); K], back: NodeId, entry: u32) {
        self.trigger(back + 1, entry);
        for (node, owner) in nodes {
            self.consume(node, owner);
        }
        self.consume(back, entry);
    }

    fn fork(&mut self, e1: NodeId, thread: u32, entry: u32) -> Option<usize> {
        let begin = self.begin_of(thread)?;
        let (event, first) = (self.toeg.event(e1), self.toeg.event(begin));
        if event.task == first.task && first.counter > event.counter {
            let join = self.toeg.thread(thread).map_or(NONE, |thread| thread.join);
            if join != NONE && self.later(join, begin) {
                self.result.branches.push((entry, begin, join));
                self.trigger(begin + 1, entry);
                self.consume(e1, entry);
                self.consume(begin, entry);
                self.consume(join, entry);
                return Some(9);
            }
        }
        if event.task != first.task
            && let Some(template) = self.asynchronous_call(e1, begin, entry)
        {
            return Some(template);
        }
        let server = self.new_entry(entry, e1, begin, 2);
        self.trigger(begin + 1, server);
        self.consume(e1, entry);
        self.consume(begin, server);
        Some(5)
    }

    /// Asynchronous RPC, plain and nested.
    fn asynchronous_call(&mut self, e1: NodeId, e3: NodeId, entry: u32) -> Option<usize> {
        let toeg = self.toeg;
        let e2 = toeg.next_in_thread(e1);
        if e2 == NONE || toeg.event(e2).kind != Kind::End || !self.free(e2) || toeg.next_in_task(e1) != e2 {
            return None;
        }
        let e5 = toeg.next_in_task(e2);
        if e5 == NONE || toeg.event(e5).kind != Kind::Begin || !self.free(e5) {
            return None;
        }
        let e4 = toeg.thread_of(e5).fork;
        if !self.later(e4, e3) {
            return None;
        }
        let own = toeg.thread_number(e4) == toeg.thread_number(e3);
        let resumed = toeg.thread_of(e4).first;
        if !own {
            let counter = toeg.event(resumed).counter;
            let within = toeg.event(e3).counter < counter && counter < toeg.event(e4).counter;
            if self.task(resumed) != self.task(e3) || !within {
                return None;
            }
        }
        let server = self.new_entry(entry, e1, e3, 1);
        self.mark(e4, PHASE2_AFTER);
        self.trigger(e3 + 1, server);
        if !own {
            self.trigger(resumed, server);
        }
        self.trigger(e5 + 1, entry);
        for (node, owner) in [(e1, entry), (e2, entry), (e3, server), (e4, server), (e5, entry)] {
            self.consume(node, owner);
        }
        Some(if own { 2 } else { 3 })
    }

    fn new_entry(&mut self, from: u32, at: NodeId, accepts: NodeId, interaction: u8) -> u32 {
        let number = self.result.entries.len() as u32;
        self.result.entries.push((self.task(accepts), interaction, accepts));
        self.result.requests.push((from, number, at));
        number
    }

    fn mark(&mut self, node: NodeId, mark: u8) {
        self.result.flags[node as usize] |= mark;
    }

    fn consume(&mut self, node: NodeId, owner: u32) {
        self.result.owner[node as usize] = owner;
        let flags = &mut self.result.flags[node as usize];
        *flags |= PROCESSED;
        if *flags & AWAITED != 0
            && let Some(triggers) = self.waiting.remove(&node)
        {
            self.queue.extend(triggers);
        }
    }

    /// A begin node has a successor: an operation is well-formed only if threads end.
    fn trigger(&mut self, node: NodeId, entry: u32) {
        if self.free(node) && self.result.owner[node as usize] == UNKNOWN {
            self.result.owner[node as usize] = entry;
        }
        self.queue.push_back(node);
    }
}
