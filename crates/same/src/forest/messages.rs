//! What messages do to the trees (2005 paper §4.3, steps 1 and 2).

use crate::forest::node::{Found, Node, Reply, Spent, State};
use crate::forest::{Forest, NONE};
use crate::record::Occurrence;
use crate::timing::Timing;
use dyelog_trace::TaskId;

/// A message that arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When it left and arrived.
    pub timing: Timing,
    /// Where it stands in its trace.
    pub line: u32,
    /// Its number in the order of reception, from 1.
    pub number: u32,
    /// What its sender had done, of a message that was not in transit.
    pub spent: Spent,
}

impl Forest {
    /// A message leaves a node; gives the node in transit.
    pub fn send(&mut self, from: u32, spent: Spent) -> u32 {
        let task = self.node(from).task;
        let node = self.make(task, State::InTransit, NONE);
        self.asked(node, spent);
        self.attach(from, node);
        self.clean(from);
        node
    }

    /// The node that a message in transit hangs on, or [`NONE`].
    pub fn sender(&self, transit: u32) -> u32 {
        self.nodes[transit as usize].parent
    }

    /// A message in transit never arrives.
    pub fn lose(&mut self, transit: u32) {
        let parent = self.node(transit).parent;
        self.detach(transit);
        self.free.push(transit);
        if let Some(origin) = self.orphans.remove(&transit) {
            self.let_go(origin.visit);
        }
        if parent != NONE {
            self.clean(parent);
        }
    }

    pub(super) fn let_go(&mut self, visit: u32) {
        if visit != NONE {
            self.found.push(Found::Gone(visit));
        }
    }

    /// A node's message was sent, when its sender had done so much.
    fn asked(&mut self, node: u32, spent: Spent) {
        let node = self.node(node);
        (node.waiting, node.second_phase, node.spent) = (true, spent.second_phase, spent);
    }

    /// A message makes a new live node of its receiver, a child of the sender's.
    pub fn receive(&mut self, from: u32, transit: Option<u32>, to: TaskId, visit: u32, message: Arrival) {
        let old = self.live(to);
        let node = match transit {
            Some(node) => {
                self.born += 1;
                let born = self.born;
                let own = self.node(node);
                own.state = State::Live;
                (own.task, own.visit, own.born) = (to, visit, born);
                node
            }
            None => {
                let node = self.make(to, State::Live, visit);
                self.asked(node, message.spent);
                self.attach(from, node);
                node
            }
        };
        self.node(node).number = self.number_of_new(to, node);
        let own = self.node(node);
        (own.timing, own.line, own.message) = (message.timing, message.line, message.number);
        if old != NONE {
            let old_node = self.node(old);
            if old_node.state == State::Live {
                old_node.state = State::Zombie;
            }
            self.clean(old);
        }
        if let Some(origin) = self.orphans.remove(&node) {
            let to = self.end(node);
            self.found.push(Found::Async { from: origin, to, cut_off: false });
            self.let_go(origin.visit);
        } else if from != old && from != NONE {
            self.clean(from);
        }
    }

    /// A message arrives that changes nothing; gives the occurrences at its ends, and their visits.
    pub fn ignore(&mut self, from: u32, transit: Option<u32>, to: TaskId) -> [(Occurrence, u32); 2] {
        let sender = match transit.and_then(|transit| self.orphans.get(&transit)) {
            Some(origin) => *origin,
            None => self.end(from),
        };
        let receiver = match self.live(to) {
            NONE => (Occurrence { task: to, number: self.next.get(to.index()).copied().unwrap_or(1) }, NONE),
            live => (self.end(live).occurrence, self.visit(live)),
        };
        if let Some(transit) = transit {
            self.lose(transit);
        }
        [(sender.occurrence, sender.visit), receiver]
    }

    /// A message from `last` to the task of its ancestor `first` closes a cycle. What `last` sent after a reply in transit goes on as
    /// another occurrence.
    pub fn close(&mut self, first: u32, last: u32, transit: Option<u32>, reply: Reply) {
        let from = self.path.len();
        let mut reply = reply;
        if let Some(transit) = transit {
            reply.spent = self.node(transit).spent;
            self.split(last, transit);
            self.detach(transit);
            self.free.push(transit);
        }
        let work_from = self.work.len();
        let mut node = last;
        while node != first {
            self.work.push(node);
            node = self.node(node).parent;
        }
        self.work.push(first);
        for place in (work_from..self.work.len()).rev() {
            let end = self.end(self.work[place]);
            self.path.push(end);
        }
        let count = self.path.len() - from;
        self.found.push(Found::Cycle { from, count, reply });
        // From the top down: what was sent after the request was passed on is of the second phase.
        for place in (work_from..self.work.len() - 1).rev() {
            let node = self.work[place];
            let mut later = self.node(node).after;
            while later != NONE && place + 2 < self.work.len() {
                self.node(later).second_phase = true;
                later = self.node(later).after;
            }
            self.kill(node);
            self.detach(node);
        }
        let path: Vec<u32> = self.work.drain(work_from..self.work.len() - 1).rev().collect();
        self.work.truncate(work_from);
        for node in path {
            // A zombie root gives up its children and goes; without children it is isolated and goes, too.
            self.clean(node);
        }
        if self.node(first).parent == NONE && self.node(first).first == NONE {
            self.remove(first);
        } else {
            self.clean(first);
        }
    }

    /// Moves what a node sent after a message in transit to an occurrence of its own.
    fn split(&mut self, node: u32, transit: u32) {
        let mut later = self.node(transit).after;
        if later == NONE {
            return;
        }
        let Node { task, visit, born, state, .. } = *self.node(node);
        let rest = self.make(task, state, visit);
        let number = self.number(task);
        // Its children are younger than the node was, and must be younger than this one.
        (self.node(rest).born, self.node(rest).number) = (born, number);
        if state == State::Live {
            self.kill(node);
            self.live[task.index()] = rest;
        }
        if visit != NONE {
            self.found.push(Found::Held(visit));
        }
        while later != NONE {
            let next = self.node(later).after;
            self.detach(later);
            self.node(later).second_phase = true;
            self.attach(rest, later);
            later = next;
        }
    }
}
