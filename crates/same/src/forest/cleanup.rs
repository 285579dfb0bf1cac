//! What goes from the trees: what ends, what has no reply, what would grow without end (2005 paper §4.3, step 3).

use crate::forest::node::{Found, Node, State};
use crate::forest::{Forest, NONE};
use dyelog_trace::TaskId;

impl Forest {
    /// A task is not blocked: what it has sent so far asks for no reply to it.
    pub fn running(&mut self, task: TaskId) {
        let node = self.live(task);
        if node == NONE {
            return;
        }
        let mut child = self.node(node).last;
        while child != NONE && self.node(child).waiting {
            self.node(child).waiting = false;
            child = self.node(child).before;
        }
    }

    /// A task's occurrence has ended.
    pub fn ended(&mut self, task: TaskId) {
        let node = self.live(task);
        if node != NONE {
            self.kill(node);
            self.clean(node);
        }
    }

    /// Cleans up from a node on: zombie roots go, improper roots keep their last child, zombie leaves go (step 3).
    pub(super) fn clean(&mut self, node: u32) {
        let floor = self.work.len();
        self.work.push(node);
        while self.work.len() > floor {
            let Some(node) = self.work.pop() else { return };
            let Node { parent, first, last, state, .. } = *self.node(node);
            // What was cleaned before may have taken this one with it.
            if matches!(state, State::InTransit | State::Gone) {
                continue;
            }
            let zombie = state == State::Zombie;
            if parent == NONE && (zombie || first != last) {
                let keep = if zombie { NONE } else { last };
                let mut child = first;
                while child != keep {
                    let next = self.node(child).after;
                    self.give_up(node, child, false);
                    self.work.push(child);
                    child = next;
                }
                if zombie {
                    self.remove(node);
                }
            } else if parent != NONE && zombie && first == NONE {
                self.give_up(parent, node, false);
                self.remove(node);
                self.work.push(parent);
            }
        }
    }

    /// Nobody replies to the message of a child.
    fn give_up(&mut self, parent: u32, child: u32, cut_off: bool) {
        let from = self.end(parent);
        self.detach(child);
        if self.node(child).state == State::InTransit {
            if from.visit != NONE {
                self.found.push(Found::Held(from.visit));
            }
            self.orphans.insert(child, from);
            return;
        }
        let to = self.end(child);
        self.found.push(Found::Async { from, to, cut_off });
    }

    /// The trace ends: every message that is left is asynchronous.
    pub fn finish(&mut self) {
        let mut left: Vec<u32> = self.nodes().collect();
        left.sort_unstable_by_key(|node| self.nodes[*node as usize].born);
        for &node in &left {
            let Node { parent, state, .. } = self.nodes[node as usize];
            if parent != NONE && state != State::InTransit {
                let (from, to) = (self.end(parent), self.end(node));
                self.found.push(Found::Async { from, to, cut_off: true });
            }
        }
        for node in left {
            if self.nodes[node as usize].state != State::InTransit {
                self.let_go(self.nodes[node as usize].visit);
            }
        }
        let mut origins: Vec<u32> = self.orphans.drain().map(|(_, origin)| origin.visit).collect();
        origins.sort_unstable();
        for visit in origins {
            self.let_go(visit);
        }
        self.nodes.clear();
        self.free.clear();
        self.live.fill(NONE);
    }

    /// Gives up all that hangs on live roots, so that memory does not grow with interactions that never end.
    pub fn prune(&mut self) {
        let roots: Vec<u32> = self.nodes().filter(|node| self.nodes[*node as usize].parent == NONE).collect();
        for root in roots {
            let child = self.node(root).last;
            if child != NONE && self.node(root).state != State::InTransit {
                self.give_up(root, child, false);
                self.clean(child);
            }
        }
    }
}
