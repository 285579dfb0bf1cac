//! Interaction trees (2005 paper §4.2 and §4.3): execution occurrences, and messages between them that no interaction
//! explains yet.
//!
//! A node is an execution occurrence, live or zombie; a task has one live node at most. An arc goes from the sender's occurrence to
//! the receiver's. A message that has left and not arrived hangs on its sender as a node *in transit*. Whatever is
//! retired is given out as [`Found`], in the order of finding.

use rustc_hash::FxHashMap;

use crate::record::Occurrence;
use crate::walk::Facts;
use dyelog_trace::TaskId;

/// No node, or no visit.
pub const NONE: u32 = u32::MAX;

const LIVE: u8 = 1;
const TRANSIT: u8 = 2;
const WAITING: u8 = 4;
const PHASE2: u8 = 8;
/// The place of a node that is no more.
const GONE: u8 = 16;

/// A node of the forest.
#[derive(Clone, Copy, Debug)]
struct Node {
    task: TaskId,
    number: u32,
    parent: u32,
    first: u32,
    last: u32,
    before: u32,
    after: u32,
    born: u64,
    /// When the message arrived that it is the occurrence of; when it left, and how long it was on its way.
    time: f64,
    sent: f64,
    took: f64,
    line: u32,
    /// The number of that message, from 1; 0 without one.
    message: u32,
    visit: u32,
    flags: u8,
    spent: Spent,
}

/// What a visit had done when it sent a message, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Processor time.
    pub cpu: f64,
    /// Time not blocked.
    pub busy: f64,
    /// Whether its request was answered already.
    pub second_phase: bool,
}

/// An occurrence at one end of an interaction.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// Which one.
    pub occurrence: Occurrence,
    /// The visit that it is part of, [`NONE`] where it serves no request.
    pub visit: u32,
    /// The line of its message.
    pub line: u32,
    /// The number of its message in the order of reception, from 1; 0 without one.
    pub message: u32,
    /// When its message left and arrived.
    pub sent: f64,
    /// When its message arrived.
    pub time: f64,
    /// How long its message was on its way by the clocks of its ends, seconds.
    pub took: f64,
    /// Whether its message was sent in the second phase of the sender.
    pub second_phase: bool,
    /// What its sender had done by then.
    pub spent: Spent,
}

/// What the forest found.
#[derive(Clone, Copy, Debug)]
pub enum Found {
    /// A reply: the ends from the client to the last server stand in [`Forest::path`] from there on, so many.
    Cycle {
        /// Where they begin.
        from: usize,
        /// How many.
        count: usize,
        /// When the reply left.
        sent: f64,
        /// What its sender had done by then.
        spent: Spent,
        /// When it arrived.
        end: f64,
        /// How long it was on its way.
        took: f64,
    },
    /// A message that nobody replies to.
    Async {
        /// The sender.
        from: End,
        /// The receiver.
        to: End,
        /// Whether the end of the trace is the reason.
        cut_off: bool,
    },
    /// A node of that visit is no more.
    Gone(u32),
    /// A message in transit of that visit lost its node.
    Held(u32),
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
    /// Senders of messages in transit whose nodes are gone.
    orphans: FxHashMap<u32, End>,
    work: Vec<u32>,
    /// What was found since it was taken.
    pub found: Vec<Found>,
    /// Ends of the cycles among it.
    pub path: Vec<End>,
}

impl Facts for Forest {
    #[inline]
    fn parent(&self, node: u32) -> Option<u32> {
        let parent = self.nodes[node as usize].parent;
        (parent != NONE).then_some(parent)
    }

    #[inline]
    fn waiting(&self, node: u32) -> bool {
        self.nodes[node as usize].flags & WAITING != 0
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

    /// The task of a node.
    pub fn task_of(&self, node: u32) -> TaskId {
        self.nodes[node as usize].task
    }

    /// Whether a node hangs on none, and no message hangs on it that has arrived.
    pub fn is_lone(&self, node: u32) -> bool {
        let Node { parent, first, last, .. } = self.nodes[node as usize];
        parent == NONE && (first == NONE || first == last && self.nodes[first as usize].flags & TRANSIT != 0)
    }

    /// Whether a task serves a request to which somebody may wait for the reply, and has asked nobody to go on with it.
    pub fn is_busy(&self, task: TaskId) -> bool {
        let live = self.live(task);
        live != NONE && {
            let Node { parent, first, flags, .. } = self.nodes[live as usize];
            parent != NONE && flags & WAITING != 0 && first == NONE
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

    fn make(&mut self, task: TaskId, flags: u8, visit: u32) -> u32 {
        self.born += 1;
        let made = Node {
            task,
            number: 0,
            parent: NONE,
            first: NONE,
            last: NONE,
            before: NONE,
            after: NONE,
            born: self.born,
            time: f64::NAN,
            sent: f64::NAN,
            took: f64::NAN,
            line: 0,
            message: 0,
            visit,
            flags,
            spent: Spent::default(),
        };
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
        let node = self.make(task, LIVE, visit);
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

    fn detach(&mut self, child: u32) {
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
        own.flags = GONE;
        let visit = own.visit;
        self.free.push(node);
        if visit != NONE {
            self.found.push(Found::Gone(visit));
        }
    }

    /// Makes a zombie of a node.
    fn kill(&mut self, node: u32) {
        let Node { flags, task, .. } = *self.node(node);
        if flags & LIVE != 0 {
            self.node(node).flags &= !LIVE;
            if self.live[task.index()] == node {
                self.live[task.index()] = NONE;
            }
        }
    }

    fn end(&self, node: u32) -> End {
        let Node { task, number, visit, line, message, sent, time, took, flags, spent, .. } = self.nodes[node as usize];
        End {
            occurrence: Occurrence { task, number },
            visit,
            line,
            message,
            sent,
            took,
            time,
            second_phase: flags & PHASE2 != 0,
            spent,
        }
    }

    /// A message leaves a node; gives the node in transit.
    pub fn send(&mut self, from: u32, spent: Spent) -> u32 {
        let task = self.node(from).task;
        let phase = if spent.second_phase { PHASE2 } else { 0 };
        let node = self.make(task, TRANSIT | WAITING | phase, NONE);
        self.node(node).spent = spent;
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

    fn let_go(&mut self, visit: u32) {
        if visit != NONE {
            self.found.push(Found::Gone(visit));
        }
    }

    /// A message makes a new live node of its receiver, a child of the sender's. It stands on a line and has a number.
    #[expect(clippy::too_many_arguments, reason = "they are what a message is")]
    pub fn receive(
        &mut self,
        from: u32,
        transit: Option<u32>,
        to: TaskId,
        visit: u32,
        (sent, time, took): (f64, f64, f64),
        (line, message): (u32, u32),
        spent: Spent,
    ) {
        let old = self.live(to);
        let node = match transit {
            Some(node) => {
                self.born += 1;
                let born = self.born;
                let own = self.node(node);
                own.flags = own.flags & !TRANSIT | LIVE;
                (own.task, own.visit, own.born) = (to, visit, born);
                node
            }
            None => {
                let phase = if spent.second_phase { PHASE2 } else { 0 };
                let node = self.make(to, LIVE | WAITING | phase, visit);
                self.node(node).spent = spent;
                self.attach(from, node);
                node
            }
        };
        self.node(node).number = self.number_of_new(to, node);
        let own = self.node(node);
        (own.sent, own.time, own.took, own.line, own.message) = (sent, time, took, line, message);
        if old != NONE {
            self.node(old).flags &= !LIVE;
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
    pub fn close(
        &mut self,
        first: u32,
        last: u32,
        transit: Option<u32>,
        (sent, end, took): (f64, f64, f64),
        spent: Spent,
    ) {
        let from = self.path.len();
        let mut spent = spent;
        if let Some(transit) = transit {
            spent = self.node(transit).spent;
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
        self.found.push(Found::Cycle { from, count, sent, spent, end, took });
        // From the top down: what was sent after the request was passed on is of the second phase.
        for place in (work_from..self.work.len() - 1).rev() {
            let node = self.work[place];
            let mut later = self.node(node).after;
            while later != NONE && place + 2 < self.work.len() {
                self.node(later).flags |= PHASE2;
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
        let Node { task, visit, born, flags, .. } = *self.node(node);
        let rest = self.make(task, flags & LIVE, visit);
        let number = self.number(task);
        // Its children are younger than the node was, and must be younger than this one.
        (self.node(rest).born, self.node(rest).number) = (born, number);
        if flags & LIVE != 0 {
            self.kill(node);
            self.live[task.index()] = rest;
        }
        if visit != NONE {
            self.found.push(Found::Held(visit));
        }
        while later != NONE {
            let next = self.node(later).after;
            self.detach(later);
            self.node(later).flags |= PHASE2;
            self.attach(rest, later);
            later = next;
        }
    }

    /// A task is not blocked: what it has sent so far asks for no reply to it.
    pub fn running(&mut self, task: TaskId) {
        let node = self.live(task);
        if node == NONE {
            return;
        }
        let mut child = self.node(node).last;
        while child != NONE && self.node(child).flags & WAITING != 0 {
            self.node(child).flags &= !WAITING;
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
    fn clean(&mut self, node: u32) {
        let floor = self.work.len();
        self.work.push(node);
        while self.work.len() > floor {
            let Some(node) = self.work.pop() else { return };
            let Node { parent, first, last, flags, .. } = *self.node(node);
            // What was cleaned before may have taken this one with it.
            if flags & (TRANSIT | GONE) != 0 {
                continue;
            }
            let zombie = flags & LIVE == 0;
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
        if self.node(child).flags & TRANSIT != 0 {
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
            let Node { parent, flags, .. } = self.nodes[node as usize];
            if parent != NONE && flags & TRANSIT == 0 {
                let (from, to) = (self.end(parent), self.end(node));
                self.found.push(Found::Async { from, to, cut_off: true });
            }
        }
        for node in left {
            if self.nodes[node as usize].flags & TRANSIT == 0 {
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
            if child != NONE && self.node(root).flags & TRANSIT == 0 {
                self.give_up(root, child, false);
                self.clean(child);
            }
        }
    }
}
