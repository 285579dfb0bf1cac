//! The templates of `rules/tlc.dl` and `rules/ext/join.dl` written by hand as plain Rust over the same graph, with the same
//! control algorithm: what the plans are measured against. It makes the same outcome, to the last flag, and does nothing
//! else.

use std::collections::VecDeque;

use dyelog_diagnostic::names::Name;
use dyelog_lqn::submodel::Interaction;
use dyelog_templates::driver::{
    ACTIVITY, AWAITED, Branch, BranchKind, Entry, Irregularity, Outcome, PHASE_MASK, PHASE_SHIFT, Request,
    THEN_NEXT_PHASE, UNKNOWN, UNOWNED,
};
use dyelog_templates::matcher::PROCESSED;
use dyelog_templates::visits::Visits;
use dyelog_trace::toeg::NONE;
use dyelog_trace::{Kind, NodeId, TaskId, Toeg};

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

struct ByHand<'t, N> {
    toeg: &'t Toeg,
    result: Outcome,
    queue: VecDeque<NodeId>,
    deferred: VecDeque<NodeId>,
    walked_from: Vec<NodeId>,
    chain: Vec<(NodeId, NodeId)>,
    visits: Visits,
    note: N,
}

/// The entry, phase and branch in which a node is.
#[derive(Clone, Copy)]
struct Context {
    entry: u32,
    phase: u8,
    branch: u32,
}

/// The begin of a visit.
fn fresh(entry: u32) -> Context {
    Context { entry, phase: 1, branch: 0 }
}

/// Runs the control algorithm; tells `note` of each match by the template's number and the glue node.
pub fn run(toeg: &Toeg, note: impl FnMut(usize, NodeId)) -> Outcome {
    let root = toeg.root();
    let event = toeg.event(root);
    let mut owner = vec![UNKNOWN; toeg.len()];
    owner[root as usize] = 1;
    let customer = Entry { task: None, interaction: Interaction::Customer, service: Name::NONE, accepted_at: NONE };
    let first = Entry {
        task: Some(event.task),
        interaction: Interaction::Rendezvous,
        service: event.service,
        accepted_at: root,
    };
    let result = Outcome {
        flags: vec![0; toeg.len()],
        owner,
        entries: vec![customer, first],
        requests: vec![Request { from: 0, to: 1, at: NONE }],
        ..Outcome::default()
    };
    let mut by_hand = ByHand {
        toeg,
        result,
        queue: VecDeque::from([root]),
        deferred: VecDeque::new(),
        walked_from: toeg.threads().iter().map(|thread| thread.last + 1).collect(),
        chain: Vec::new(),
        visits: Visits::default(),
        note,
    };
    by_hand.triggers();
    by_hand.left_over();
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
        self.mark(fork, AWAITED);
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
                let context = self.context_of(node);
                self.put(node, context);
                match self.matched(node, context) {
                    Some(template) => (self.note)(template, node),
                    None => self.result.irregular.push((Irregularity::Unmatched, node)),
                }
            }
        }
    }

    fn context_of(&mut self, node: NodeId) -> Context {
        let entry = self.result.owner[node as usize];
        if entry != UNKNOWN {
            return Context { entry, phase: self.result.phase(node), branch: self.branch(node) };
        }
        let previous = self.toeg.previous_in_thread(node);
        if previous != NONE && self.task(previous) == self.task(node) {
            return self.context_after(previous);
        }
        self.result.irregular.push((Irregularity::Stray, node));
        let before = self.toeg.previous_in_task(node);
        if before != NONE && self.toeg.event(before).thread == self.toeg.event(node).thread {
            return self.context_after(before);
        }
        fresh(UNOWNED)
    }

    fn context_after(&self, node: NodeId) -> Context {
        let entry = match self.result.owner[node as usize] {
            UNKNOWN => UNOWNED,
            entry => entry,
        };
        let next = self.result.flags[node as usize] & THEN_NEXT_PHASE != 0;
        let phase = (self.result.phase(node) + u8::from(next)).min(3);
        Context { entry, phase, branch: self.branch(node) }
    }

    fn branch(&self, node: NodeId) -> u32 {
        self.result.branch.get(node as usize).copied().unwrap_or(0)
    }

    fn put(&mut self, node: NodeId, context: Context) {
        self.result.owner[node as usize] = context.entry;
        let flags = &mut self.result.flags[node as usize];
        *flags = (*flags & !PHASE_MASK) | ((context.phase - 1) << PHASE_SHIFT);
        if let Some(branch) = self.result.branch.get_mut(node as usize) {
            *branch = context.branch;
        } else if context.branch != 0 {
            self.result.branch.resize(self.toeg.len(), 0);
            self.result.branch[node as usize] = context.branch;
        }
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

    fn matched(&mut self, e1: NodeId, context: Context) -> Option<usize> {
        match self.toeg.event(e1).kind {
            Kind::Begin => {
                self.processed(e1, 0);
                Some(8)
            }
            Kind::End => {
                self.processed(e1, 0);
                Some(7)
            }
            Kind::Join(_) => {
                self.processed(e1, ACTIVITY);
                Some(10)
            }
            Kind::Activity => Some(self.activity(e1, context)),
            Kind::Fork(thread) => self.fork(e1, thread, context),
        }
    }

    fn activity(&mut self, e1: NodeId, context: Context) -> usize {
        if let Some(template) = self.call(e1, context) {
            return template;
        }
        self.processed(e1, ACTIVITY);
        6
    }

    /// Basic RPC, RPC with phase two, forwarding.
    fn call(&mut self, e1: NodeId, context: Context) -> Option<usize> {
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
                let server = fresh(self.new_entry(context.entry, e1, e2, Interaction::Rendezvous));
                self.processed(e1, ACTIVITY);
                self.consume(e2, server, ACTIVITY);
                self.consume(e3, server, ACTIVITY);
                self.consume(back, context, ACTIVITY);
                Some(0)
            }
            Kind::Begin => {
                let e3 = self.toeg.thread_of(back).fork;
                if self.later(e3, e2) {
                    let server = fresh(self.new_entry(context.entry, e1, e2, Interaction::Rendezvous));
                    self.answered(e1, [(e2, server, ACTIVITY), (e3, server, THEN_NEXT_PHASE)], back, context);
                    return Some(1);
                }
                self.forwarded(e1, e2, e3, back, context)
            }
            _ => None,
        }
    }

    fn forwarded(&mut self, e1: NodeId, e2: NodeId, mut fork: NodeId, back: NodeId, context: Context) -> Option<usize> {
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
            // Where the thread brings an answer, it is no hop.
            if self.visits.accepted_at(self.toeg, first) != first {
                return None;
            }
            self.chain.push((first, fork));
            fork = self.toeg.thread_of(first).fork;
        };
        let first_server = self.new_entry(context.entry, e1, e2, Interaction::Rendezvous);
        let mut chain = std::mem::take(&mut self.chain);
        let mut server = first_server;
        for &(first, _) in chain.iter().rev() {
            server = self.new_entry(server, NONE, first, Interaction::Forwarding);
            self.trigger_after(first, fresh(server));
        }
        let first_context = fresh(first_server);
        self.answered(e1, [(e2, first_context, ACTIVITY), (e3, first_context, THEN_NEXT_PHASE)], back, context);
        for (number, &(first, fork)) in chain.iter().rev().enumerate() {
            let server = fresh(first_server + 1 + number as u32);
            self.consume(first, server, 0);
            self.consume(fork, server, THEN_NEXT_PHASE);
        }
        chain.clear();
        self.chain = chain;
        Some(4)
    }

    fn answered(&mut self, e1: NodeId, nodes: [(NodeId, Context, u8); 2], back: NodeId, context: Context) {
        self.trigger_after(back, context);
        self.processed(e1, ACTIVITY);
        for (node, server, mark) in nodes {
            self.consume(node, server, mark);
        }
        self.consume(back, context, 0);
    }

    fn fork(&mut self, e1: NodeId, thread: u32, context: Context) -> Option<usize> {
        let begin = self.begin_of(thread)?;
        let (event, first) = (self.toeg.event(e1), self.toeg.event(begin));
        if event.task == first.task && first.counter > event.counter {
            let join = self.toeg.thread(thread).map_or(NONE, |thread| thread.join);
            if join != NONE && self.later(join, begin) {
                self.result.branches.push(Branch { entry: context.entry, fork: e1, join, kind: BranchKind::Thread });
                let branch = self.result.branches.len() as u32;
                self.put(begin, Context { branch, ..context });
                self.put(join, context);
                self.trigger_after(begin, context);
                self.processed(e1, 0);
                self.processed(begin, 0);
                self.consume(join, context, 0);
                return Some(9);
            }
        }
        if event.task != first.task
            && let Some(template) = self.asynchronous_call(e1, begin, context)
        {
            return Some(template);
        }
        let server = fresh(self.new_entry(context.entry, e1, begin, Interaction::Asynchronous));
        self.trigger_after(begin, server);
        self.processed(e1, 0);
        self.consume(begin, server, 0);
        Some(5)
    }

    /// Asynchronous RPC, plain and nested.
    fn asynchronous_call(&mut self, e1: NodeId, e3: NodeId, context: Context) -> Option<usize> {
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
        let server = fresh(self.new_entry(context.entry, e1, e3, Interaction::Rendezvous));
        self.trigger_after(e3, server);
        if !own {
            self.trigger(resumed, server);
        }
        self.trigger_after(e5, context);
        self.processed(e1, 0);
        self.consume(e2, context, 0);
        self.consume(e3, server, 0);
        self.consume(e4, server, THEN_NEXT_PHASE);
        self.consume(e5, context, 0);
        Some(if own { 2 } else { 3 })
    }

    fn new_entry(&mut self, from: u32, at: NodeId, accepted_at: NodeId, interaction: Interaction) -> u32 {
        let to = self.result.entries.len() as u32;
        let event = self.toeg.event(accepted_at);
        self.result.entries.push(Entry { task: Some(event.task), interaction, service: event.service, accepted_at });
        self.result.requests.push(Request { from, to, at });
        to
    }

    fn mark(&mut self, node: NodeId, mark: u8) {
        self.result.flags[node as usize] |= mark;
    }

    fn consume(&mut self, node: NodeId, context: Context, mark: u8) {
        if self.branch(node) == 0 || self.result.owner[node as usize] == UNKNOWN {
            self.put(node, context);
        }
        self.processed(node, mark);
    }

    fn processed(&mut self, node: NodeId, mark: u8) {
        let flags = &mut self.result.flags[node as usize];
        *flags |= PROCESSED | mark;
        if *flags & AWAITED != 0
            && let Kind::Fork(thread) = self.toeg.event(node).kind
            && let Some(thread) = self.toeg.thread(thread)
        {
            self.queue.push_back(thread.first);
        }
    }

    /// The node after a begin, which templates name by its label. A begin has a successor: threads end.
    fn trigger_after(&mut self, begin: NodeId, context: Context) {
        let (event, next) = (self.toeg.event(begin), self.toeg.event(begin + 1));
        if event.task == next.task && event.counter + 1 == next.counter {
            self.trigger(begin + 1, context);
        } else {
            self.result.irregular.push((Irregularity::WrongTrigger, begin + 1));
            self.queue.push_back(begin + 1);
        }
    }

    fn trigger(&mut self, node: NodeId, context: Context) {
        if self.free(node) && self.result.owner[node as usize] == UNKNOWN {
            let before = self.toeg.previous_in_thread(node);
            let before = if before == NONE { 0 } else { self.branch(before) };
            self.put(node, Context { branch: before.max(context.branch), ..context });
        }
        self.queue.push_back(node);
    }

    /// Nodes that no walk came to.
    fn left_over(&mut self) {
        if self.result.flags.iter().all(|flags| flags & PROCESSED != 0) {
            return;
        }
        let mut known = vec![false; self.toeg.len()];
        for (what, node) in &self.result.irregular {
            known[*node as usize] |= *what == Irregularity::Unmatched;
        }
        for node in 0..self.toeg.len() as NodeId {
            if self.free(node) && !known[node as usize] {
                self.result.irregular.push((Irregularity::Unmatched, node));
            }
        }
    }
}
