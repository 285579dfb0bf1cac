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
        node
    }

    /// The node that a message in transit hangs on, or [`NONE`].
    pub fn sender(&self, transit: u32) -> u32 {
        self.nodes[transit as usize].parent
    }

    /// A message in transit never arrives; gives the node that it hung on, or [`NONE`].
    pub fn lose(&mut self, transit: u32) -> u32 {
        let parent = self.node(transit).parent;
        self.detach(transit);
        self.free.push(transit);
        if let Some((origin, _)) = self.orphans.remove(&transit) {
            self.let_go(origin.visit);
        }
        parent
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

    /// A message begins a new live node of its receiver, whose former one is live no longer. An arc goes to it from that parent, or none.
    pub fn arrive(
        &mut self,
        parent: Option<u32>,
        transit: Option<u32>,
        to: TaskId,
        visit: u32,
        message: Arrival,
    ) -> u32 {
        let old = self.live(to);
        let node = match transit {
            Some(node) => {
                self.born += 1;
                let born = self.born;
                let own = self.node(node);
                own.state = State::Live;
                (own.task, own.visit, own.born) = (to, visit, born);
                if self.node(node).parent != parent.unwrap_or(NONE) {
                    self.detach(node);
                    if let Some(parent) = parent {
                        self.attach(parent, node);
                    }
                }
                node
            }
            None => {
                let node = self.make(to, State::Live, visit);
                self.asked(node, message.spent);
                if let Some(parent) = parent {
                    self.attach(parent, node);
                }
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
        }
        node
    }

    /// A message arrives of which it was said that nobody replies to it, when it was in transit.
    pub fn found_orphan(&mut self, node: u32) {
        if let Some((origin, template)) = self.orphans.remove(&node) {
            let to = self.end(node);
            self.found.push(Found::Async { from: origin, to, cut_off: false, template });
            self.let_go(origin.visit);
        }
    }

    /// A message arrives that is left out; gives the occurrences at its ends, and their visits.
    pub fn ends_of(&self, from: u32, transit: Option<u32>, to: TaskId) -> [(Occurrence, u32); 2] {
        let sender = match transit.and_then(|transit| self.orphans.get(&transit)) {
            Some((origin, _)) => *origin,
            None => self.end(from),
        };
        let receiver = match self.live(to) {
            NONE => (Occurrence { task: to, number: self.next.get(to.index()).copied().unwrap_or(1) }, NONE),
            live => (self.end(live).occurrence, self.visit(live)),
        };
        [(sender.occurrence, sender.visit), receiver]
    }

    /// A message in transit is a reply; gives what its sender had done. What the sender sent after it goes on as another occurrence.
    pub fn take_reply(&mut self, from: u32, transit: u32) -> Spent {
        let spent = self.node(transit).spent;
        self.split(from, transit);
        self.detach(transit);
        self.free.push(transit);
        spent
    }

    /// A reply from the server below a client closes a cycle, by a template of that number. The arcs stay.
    pub fn found_cycle(&mut self, client: u32, server: u32, reply: Reply, template: u16) {
        let from = self.path.len();
        let mut node = server;
        loop {
            let end = self.end(node);
            self.path.push(end);
            if node == client {
                break;
            }
            let parent = self.node(node).parent;
            // What was sent after the request was passed on is of the second phase.
            let mut later = if parent == client { NONE } else { self.node(node).after };
            while later != NONE {
                self.node(later).second_phase = true;
                later = self.node(later).after;
            }
            node = parent;
        }
        self.path[from..].reverse();
        let count = self.path.len() - from;
        self.found.push(Found::Cycle { from, count, reply, template });
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
