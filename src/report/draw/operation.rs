//! What pictures of one operation share: its nodes in an order, its messages.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::lqn::submodel::Interaction;
use crate::tlc::driver::{Outcome, UNOWNED};
use crate::tlc::recognise::Recognised;
use crate::trace::toeg::NONE;
use crate::trace::{Event, Kind, NodeId, TaskId, Toeg, TraceNames};

/// An operation and what was recognised in it.
#[derive(Clone, Copy)]
pub struct OperationView<'a> {
    /// The operation's graph.
    pub toeg: &'a Toeg,
    /// Names.
    pub names: &'a TraceNames,
    /// What the control algorithm made of it.
    pub outcome: &'a Outcome,
    /// Committed matches, in order.
    pub matches: &'a [Recognised],
}

/// How a picture of an operation is to be.
#[derive(Clone, Debug)]
pub struct OperationOptions {
    /// The most nodes to draw; causes come before their effects, so the first ones make sense by themselves.
    pub limit: usize,
    /// What ids in the document begin with. Pictures in one page need different ones.
    pub id: String,
}

impl Default for OperationOptions {
    fn default() -> Self {
        Self { limit: 200, id: "operation".to_owned() }
    }
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageKind {
    /// A request whose sender waits.
    Call,
    /// A request without a waiting caller.
    Send,
    /// A request that is passed on.
    Forward,
    /// An answer.
    Reply,
    /// Nothing that a template recognises.
    Unknown,
}

impl MessageKind {
    pub fn words(self) -> &'static str {
        match self {
            Self::Call => "synchronous request",
            Self::Send => "asynchronous request",
            Self::Forward => "forwarded request",
            Self::Reply => "reply",
            Self::Unknown => "not recognised",
        }
    }
}

/// The nodes to draw and what is between them.
pub(super) struct Shown {
    /// Nodes, causes before effects.
    pub order: Vec<NodeId>,
    /// The longest path of causes to each node of the operation.
    pub level: Vec<u32>,
    /// Whether a node is drawn.
    pub drawn: Vec<bool>,
    /// Tasks, in the order in which they first do something.
    pub tasks: Vec<TaskId>,
    /// The interaction that opens an entry at a node.
    accepted: FxHashMap<NodeId, Interaction>,
}

impl Shown {
    /// In an order in which what is received directly after it was sent stands beside that.
    pub fn new(view: &OperationView<'_>, limit: usize) -> Self {
        Self::in_order(view, limit, Order::Causal)
    }

    /// In the order of time, where all nodes have one.
    pub fn in_time(view: &OperationView<'_>, limit: usize) -> Self {
        Self::in_order(view, limit, if timed(view.toeg) { Order::Time } else { Order::Causal })
    }

    fn in_order(view: &OperationView<'_>, limit: usize, by: Order) -> Self {
        let toeg = view.toeg;
        let level = levels(toeg);
        let mut order = schedule(toeg, &level, by);
        order.truncate(limit.max(1));
        let mut drawn = vec![false; toeg.len()];
        let mut seen = BTreeSet::new();
        let mut tasks = Vec::new();
        for &node in &order {
            drawn[node as usize] = true;
            let task = toeg.event(node).task;
            if seen.insert(task) {
                tasks.push(task);
            }
        }
        let accepted = view
            .outcome
            .entries
            .iter()
            .filter(|entry| entry.accepted_at != NONE)
            .map(|entry| (entry.accepted_at, entry.interaction))
            .collect();
        Self { order, level, drawn, tasks, accepted }
    }

    /// The node that directly causes another: the one before it in its thread, or the fork of its thread.
    pub fn cause(toeg: &Toeg, node: NodeId) -> NodeId {
        match toeg.previous_in_thread(node) {
            NONE => toeg.thread_of(node).fork,
            previous => previous,
        }
    }

    /// The message that a node receives, if it does: from where, and what it is.
    pub fn message(&self, view: &OperationView<'_>, node: NodeId) -> Option<(NodeId, MessageKind)> {
        let from = Self::cause(view.toeg, node);
        if from == NONE || view.toeg.event(from).task == view.toeg.event(node).task {
            return None;
        }
        let kind = match self.accepted.get(&node) {
            Some(Interaction::Rendezvous | Interaction::Customer) => MessageKind::Call,
            Some(Interaction::Asynchronous) => MessageKind::Send,
            Some(Interaction::Forwarding) => MessageKind::Forward,
            None if view.outcome.owner[node as usize] >= UNOWNED => MessageKind::Unknown,
            None => MessageKind::Reply,
        };
        Some((from, kind))
    }

    /// What is left out, in a sentence.
    pub fn note(&self, toeg: &Toeg) -> Option<String> {
        let hidden = toeg.len() - self.order.len();
        (hidden > 0).then(|| format!("{hidden} of {} nodes are not drawn: beyond the limit", toeg.len()))
    }
}

/// What the order of nodes goes by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Causes before effects; what comes after in a task is an effect.
    Causal,
    /// Time. Branches of a task that ran at once are no effects of each other, however its events were numbered.
    Time,
}

/// Whether all nodes have a time.
pub(super) fn timed(toeg: &Toeg) -> bool {
    (0..toeg.len() as NodeId).all(|node| toeg.event(node).time.is_finite())
}

/// What a node causes.
fn effects(toeg: &Toeg, node: NodeId, by: Order, mut each: impl FnMut(NodeId)) {
    let mut give = |target: NodeId| {
        if target != NONE {
            each(target);
        }
    };
    match toeg.event(node).kind {
        Kind::Fork(child) => give(toeg.thread(child).map_or(NONE, |thread| thread.first)),
        Kind::End => give(toeg.thread_of(node).join),
        _ => {}
    }
    if by == Order::Causal {
        give(toeg.next_in_task(node));
    }
    give(toeg.next_in_thread(node));
}

/// How many causes each node waits for.
fn causes(toeg: &Toeg, by: Order) -> Vec<u8> {
    let mut waiting = vec![0; toeg.len()];
    for node in 0..toeg.len() as NodeId {
        effects(toeg, node, by, |target| waiting[target as usize] += 1);
    }
    waiting
}

/// The longest path of causes to each node.
fn levels(toeg: &Toeg) -> Vec<u32> {
    let mut waiting = causes(toeg, Order::Causal);
    let mut level = vec![0; toeg.len()];
    let mut ready = vec![toeg.root()];
    while let Some(node) = ready.pop() {
        effects(toeg, node, Order::Causal, |target| {
            let target = target as usize;
            level[target] = level[target].max(level[node as usize] + 1);
            waiting[target] -= 1;
            if waiting[target] == 0 {
                ready.push(target as NodeId);
            }
        });
    }
    level
}

/// Nodes, causes first: in the order of time where all have one, else of levels; and what is received directly after it was sent,
/// where nothing else has to come before.
fn schedule(toeg: &Toeg, level: &[u32], by: Order) -> Vec<NodeId> {
    let timed = timed(toeg);
    let key = |node: NodeId| {
        let event: &Event = toeg.event(node);
        let time = if timed { event.time } else { 0.0 };
        // The bits of floats, turned so that they sort as the numbers do.
        let bits = time.to_bits();
        let bits = if bits >> 63 == 1 { !bits } else { bits | (1 << 63) };
        (bits, level[node as usize], event.thread, event.index, node)
    };
    let mut waiting = causes(toeg, by);
    let mut ready = BTreeSet::from([key(toeg.root())]);
    let mut order = Vec::with_capacity(toeg.len());
    let mut received = NONE;
    loop {
        let node = if received == NONE {
            let Some((.., node)) = ready.pop_first() else { break };
            node
        } else {
            ready.remove(&key(received));
            received
        };
        order.push(node);
        received = NONE;
        effects(toeg, node, by, |target| {
            waiting[target as usize] -= 1;
            if waiting[target as usize] == 0 {
                ready.insert(key(target));
                let at_once = by == Order::Causal || toeg.event(target).time <= toeg.event(node).time;
                if at_once && Shown::cause(toeg, target) == node && toeg.event(target).task != toeg.event(node).task {
                    received = target;
                }
            }
        });
    }
    order
}
