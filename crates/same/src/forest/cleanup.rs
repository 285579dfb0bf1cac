//! What goes from the trees without a template: what the trace tells of blocking, and the end of it.

use crate::forest::node::{Found, NO_TEMPLATE, Node, State};
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

    /// A message has no reply, by a template of that number. The arc stays.
    pub fn found_async(&mut self, parent: u32, child: u32, template: u16) {
        let from = self.end(parent);
        if self.node(child).state == State::InTransit {
            if from.visit != NONE {
                self.found.push(Found::Held(from.visit));
            }
            self.orphans.insert(child, (from, template));
            return;
        }
        let to = self.end(child);
        self.found.push(Found::Async { from, to, cut_off: false, template });
    }

    /// The trace ends: every message that is left is asynchronous.
    pub fn finish(&mut self) {
        let mut left: Vec<u32> = self.nodes().collect();
        left.sort_unstable_by_key(|node| self.nodes[*node as usize].born);
        for &node in &left {
            let Node { parent, state, .. } = self.nodes[node as usize];
            if parent != NONE && state != State::InTransit {
                let (from, to) = (self.end(parent), self.end(node));
                self.found.push(Found::Async { from, to, cut_off: true, template: NO_TEMPLATE });
            }
        }
        for node in left {
            if self.nodes[node as usize].state != State::InTransit {
                self.let_go(self.nodes[node as usize].visit);
            }
        }
        let mut origins: Vec<u32> = self.orphans.drain().map(|(_, (origin, _))| origin.visit).collect();
        origins.sort_unstable();
        for visit in origins {
            self.let_go(visit);
        }
        self.nodes.clear();
        self.free.clear();
        self.live.fill(NONE);
    }

    /// Gives up what hangs last on live roots, so that memory does not grow with interactions that never end. Gives what it hung on
    /// them.
    pub fn prune(&mut self) -> Vec<u32> {
        let roots: Vec<u32> = self.nodes().filter(|node| self.nodes[*node as usize].parent == NONE).collect();
        let mut given_up = Vec::new();
        for root in roots {
            let child = self.node(root).last;
            if child != NONE && self.node(root).state != State::InTransit {
                self.found_async(root, child, NO_TEMPLATE);
                self.detach(child);
                given_up.push(child);
            }
        }
        given_up
    }
}
