//! Interaction trees (2005 paper §4.2 and §4.3): execution occurrences, and messages between them that no interaction
//! explains yet.
//!
//! A node is an execution occurrence, live or zombie; a task has one live node at most. An arc goes from the sender's occurrence to
//! the receiver's. A message that has left and not arrived hangs on its sender as a node *in transit*. Whatever is
//! retired is given out as [`Found`], in the order of finding.

mod cleanup;
mod messages;
mod node;

use rustc_hash::FxHashMap;

use crate::explain::Watch;
use crate::record::Occurrence;
use crate::rules::{Facts, Trigger};
use crate::walk;
use dyelog_trace::TaskId;

pub use messages::Arrival;
pub use node::{End, Found, NO_TEMPLATE, Reply, Spent};
use node::{Node, State};

/// No node, or no visit.
pub const NONE: u32 = u32::MAX;

/// What a template has changed, to be asked about in this order.
#[derive(Debug, Default)]
pub struct Changes {
    /// What is live no longer, or has another parent.
    pub nodes: Vec<u32>,
    /// The client of a reply.
    pub answered: Option<u32>,
    /// What has fewer arcs.
    pub parents: Vec<u32>,
}

impl Changes {
    /// Leaves out one of them.
    pub fn leave_out(&mut self, node: u32) {
        self.nodes.retain(|other| *other != node);
        self.parents.retain(|other| *other != node);
    }
}

/// The trees.
#[derive(Debug, Default)]
pub struct Forest {
    nodes: Vec<Node>,
    free: Vec<u32>,
    /// By task.
    live: Vec<u32>,
    next: Vec<u32>,
    born: u64,
    /// Senders of messages in transit to which nobody replies, and the templates that say so.
    orphans: FxHashMap<u32, (End, u16)>,
    /// What is still to be asked about, the next one last.
    pub(crate) agenda: Vec<(u32, Trigger)>,
    /// Kept for their memory.
    changes: Changes,
    way: Vec<u32>,
    /// What is watched, where a message is studied.
    pub(crate) watch: Option<Box<Watch>>,
    /// How often each template was carried out, by its number.
    pub fired: Vec<u64>,
    /// What was found since it was taken.
    pub found: Vec<Found>,
    /// Ends of the cycles among it.
    pub path: Vec<End>,
}

impl walk::Facts for Forest {
    #[inline]
    fn parent(&self, node: u32) -> Option<u32> {
        let parent = self.nodes[node as usize].parent;
        (parent != NONE).then_some(parent)
    }

    #[inline]
    fn waiting(&self, node: u32) -> bool {
        self.nodes[node as usize].waiting
    }

    #[inline]
    fn born(&self, node: u32) -> u64 {
        self.nodes[node as usize].born
    }
}

impl Forest {
    fn node(&mut self, node: u32) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    fn task(&mut self, task: TaskId) -> usize {
        if self.live.len() <= task.index() {
            self.live.resize(task.index() + 1, NONE);
            self.next.resize(task.index() + 1, 1);
        }
        task.index()
    }

    /// The live node of a task, or [`NONE`].
    pub fn live(&self, task: TaskId) -> u32 {
        self.live.get(task.index()).copied().unwrap_or(NONE)
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Nodes that there are, for rules to be asked about.
    pub fn nodes(&self) -> impl Iterator<Item = u32> + '_ {
        let mut free = self.free.clone();
        free.sort_unstable();
        (0..self.nodes.len() as u32).filter(move |node| free.binary_search(node).is_err())
    }

    /// The parent of a node, or [`NONE`].
    pub fn parent_of(&self, node: u32) -> u32 {
        self.nodes[node as usize].parent
    }

    /// The first child of a node, or [`NONE`].
    pub fn first_of(&self, node: u32) -> u32 {
        self.nodes[node as usize].first
    }

    /// The last child of a node, or [`NONE`].
    pub fn last_of(&self, node: u32) -> u32 {
        self.nodes[node as usize].last
    }

    /// The child of the same parent after a node, or [`NONE`].
    pub fn next_of(&self, node: u32) -> u32 {
        self.nodes[node as usize].after
    }

    /// The first or last child of a node that is an occurrence of a task, or [`NONE`].
    pub fn child_of_task(&self, node: u32, task: TaskId, is_first: bool) -> u32 {
        let Node { first, last, .. } = self.nodes[node as usize];
        let mut child = if is_first { first } else { last };
        while child != NONE && !(self.is_occurrence(child) && self.task_of(child) == task) {
            let Node { before, after, .. } = self.nodes[child as usize];
            child = if is_first { after } else { before };
        }
        child
    }

    /// Whether a node is the live one of its task.
    pub fn is_live(&self, node: u32) -> bool {
        self.nodes[node as usize].state == State::Live
    }

    /// Whether the sender of a node's message may wait for the reply.
    pub fn is_awaited(&self, node: u32) -> bool {
        self.nodes[node as usize].waiting
    }

    /// A number that is larger for later nodes.
    pub fn born_of(&self, node: u32) -> u64 {
        self.nodes[node as usize].born
    }

    /// Whether a node is there, and no message in transit.
    pub fn is_occurrence(&self, node: u32) -> bool {
        self.nodes.get(node as usize).is_some_and(|node| matches!(node.state, State::Live | State::Zombie))
    }

    /// The occurrence of a node.
    pub(crate) fn occurrence_of(&self, node: u32) -> Occurrence {
        self.end(node).occurrence
    }

    /// The number of the message that a node is the occurrence of, 0 without one.
    pub(crate) fn message_of(&self, node: u32) -> u32 {
        self.nodes[node as usize].message
    }

    /// Notes the node that the message begins which is studied, if this is it.
    pub(crate) fn begins_studied(&mut self, node: Option<u32>) {
        let Some(node) = node else { return };
        let (number, occurrence) = (self.message_of(node), self.occurrence_of(node));
        if let Some(watch) = self.watch.as_deref_mut().filter(|watch| watch.is_now) {
            (watch.node, watch.begun) = ((node, number), Some(occurrence));
        }
    }

    /// What holds of a node.
    pub(crate) fn facts_of(&self, node: u32) -> Facts {
        let Node { state, parent, first, .. } = self.nodes[node as usize];
        Facts { is_live: state == State::Live, has_parent: parent != NONE, has_child: first != NONE }
    }

    /// A template was carried out.
    pub fn fired(&mut self, template: u16) {
        let place = usize::from(template);
        if self.fired.len() <= place {
            self.fired.resize(place + 1, 0);
        }
        self.fired[place] += 1;
    }

    /// Room for changes.
    pub fn changes(&mut self) -> Changes {
        std::mem::take(&mut self.changes)
    }

    /// Asks about changes before all else.
    pub fn later(&mut self, mut changes: Changes) {
        while let Some(node) = changes.parents.pop() {
            self.agenda.push((node, Trigger::Changed));
        }
        if let Some(client) = changes.answered.take() {
            self.agenda.push((client, Trigger::Answered));
        }
        while let Some(node) = changes.nodes.pop() {
            self.agenda.push((node, Trigger::Changed));
        }
        self.changes = changes;
    }

    /// Room for a path.
    pub fn way(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.way)
    }

    /// Keeps the room of a path.
    pub fn keep_way(&mut self, mut way: Vec<u32>) {
        way.clear();
        self.way = way;
    }

    /// A node that is not live and has no arcs is gone.
    pub fn remove_if_nothing_is_left(&mut self, node: u32) {
        let Node { parent, first, state, .. } = self.nodes[node as usize];
        if state == State::Zombie && parent == NONE && first == NONE {
            self.remove(node);
        }
    }

    /// The task of a node.
    pub fn task_of(&self, node: u32) -> TaskId {
        self.nodes[node as usize].task
    }

    /// Whether a node hangs on none, and no message hangs on it that has arrived.
    pub fn is_lone(&self, node: u32) -> bool {
        let Node { parent, first, last, .. } = self.nodes[node as usize];
        parent == NONE && (first == NONE || first == last && self.nodes[first as usize].state == State::InTransit)
    }

    /// Whether a task serves a request whose caller may wait for the reply, and has passed it to no other.
    pub fn is_busy(&self, task: TaskId) -> bool {
        let live = self.live(task);
        live != NONE && {
            let Node { parent, first, waiting, .. } = self.nodes[live as usize];
            parent != NONE && waiting && first == NONE
        }
    }

    /// The child of a node that another one hangs below, or is.
    pub fn below(&self, above: u32, node: u32) -> u32 {
        let mut node = node;
        while self.nodes[node as usize].parent != above {
            node = self.nodes[node as usize].parent;
        }
        node
    }

    /// The visit of a node.
    pub fn visit(&self, node: u32) -> u32 {
        self.nodes[node as usize].visit
    }

    fn make(&mut self, task: TaskId, state: State, visit: u32) -> u32 {
        self.born += 1;
        let made = Node::new(task, state, visit, self.born);
        if let Some(node) = self.free.pop() {
            self.nodes[node as usize] = made;
            return node;
        }
        self.nodes.push(made);
        (self.nodes.len() - 1) as u32
    }

    fn number(&mut self, task: TaskId) -> u32 {
        let task = self.task(task);
        let number = self.next[task];
        self.next[task] = number.saturating_add(1);
        number
    }

    /// A new live node that no message made.
    pub fn root(&mut self, task: TaskId, visit: u32) -> u32 {
        let node = self.make(task, State::Live, visit);
        self.node(node).number = self.number_of_new(task, node);
        node
    }

    fn number_of_new(&mut self, task: TaskId, node: u32) -> u32 {
        let number = self.number(task);
        self.live[task.index()] = node;
        number
    }

    fn attach(&mut self, parent: u32, child: u32) {
        let last = self.node(parent).last;
        (self.node(child).parent, self.node(child).before, self.node(child).after) = (parent, last, NONE);
        if last == NONE {
            self.node(parent).first = child;
        } else {
            self.node(last).after = child;
        }
        self.node(parent).last = child;
    }

    /// Takes the arc to a node away.
    pub fn detach(&mut self, child: u32) {
        let Node { parent, before, after, .. } = *self.node(child);
        if parent == NONE {
            return;
        }
        if before == NONE {
            self.node(parent).first = after;
        } else {
            self.node(before).after = after;
        }
        if after == NONE {
            self.node(parent).last = before;
        } else {
            self.node(after).before = before;
        }
        let node = self.node(child);
        (node.parent, node.before, node.after) = (NONE, NONE, NONE);
    }

    fn remove(&mut self, node: u32) {
        self.kill(node);
        let own = self.node(node);
        own.state = State::Gone;
        let visit = own.visit;
        self.free.push(node);
        if visit != NONE {
            self.found.push(Found::Gone(visit));
        }
    }

    /// Makes a zombie of a node.
    pub fn kill(&mut self, node: u32) {
        let Node { state, task, .. } = *self.node(node);
        if state == State::Live {
            self.node(node).state = State::Zombie;
            if self.live[task.index()] == node {
                self.live[task.index()] = NONE;
            }
        }
    }

    fn end(&self, node: u32) -> End {
        let Node { task, number, visit, line, message, timing, second_phase, spent, .. } = self.nodes[node as usize];
        End { occurrence: Occurrence { task, number }, visit, line, message, timing, second_phase, spent }
    }
}
