//! Which visit a node lies in.
//!
//! A visit of a task may lie on several threads: a task that made a call resumes on the thread that brings the answer, and
//! what it does last, such as passing the request on, may leave from another thread than the request came in on. Labels alone
//! do not tell an answer from the next request: a reply followed by a request looks just like the server calling its client.
//! What the tasks did before tells, up to the first time that they were asked.

use std::cell::RefCell;

use rustc_hash::FxHashMap;

use dyelog_trace::toeg::NONE;
use dyelog_trace::{Kind, NodeId, Toeg};

/// A node of which nothing is known yet.
const UNKNOWN: NodeId = NodeId::MAX;

/// For each node of one operation, the node that accepted the visit in which it lies. Worked out when asked for; what it
/// depends on is remembered, so that all answers together take time linear in the nodes. That most threads begin a visit of
/// their own shows in a few nodes.
#[derive(Clone, Debug, Default)]
pub struct Visits(RefCell<Known>);

impl Visits {
    /// The node that accepted the visit in which a node lies: the first one of its task there, which began a thread or
    /// came along one.
    pub fn accepted_at(&self, toeg: &Toeg, node: NodeId) -> NodeId {
        let known = &mut *self.0.borrow_mut();
        if arrives(toeg, node) && known.asked(toeg, node).is_none() {
            return node;
        }
        known.work_out(toeg, node)
    }
}

#[derive(Clone, Debug, Default)]
struct Known {
    /// Of nodes that come along a thread, whether their tasks waited for them; empty until it is asked for.
    awaited: Vec<Awaited>,
    /// The visits of nodes; empty until a node does not begin one.
    visits: Vec<NodeId>,
    /// For each visit, the one where its chain begins: a message's visit follows that of its sender.
    chains: FxHashMap<NodeId, NodeId>,
}

/// Whether the task of a node that comes along a thread waited for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    Unknown,
    /// It depends on a node that is looked at.
    Open,
    No,
    Yes,
}

/// What has to be worked out.
#[derive(Clone, Copy)]
enum Goal {
    Visit(NodeId),
    Chain(NodeId),
}

/// A request of which a node may take the answer: the last thing that the node's task did.
struct Asked {
    /// The request.
    by: NodeId,
    /// Where it came to.
    to: NodeId,
}

/// Whether the node's task was elsewhere before in its thread, or a message from another task begins the thread.
fn arrives(toeg: &Toeg, node: NodeId) -> bool {
    let from = source(toeg, node);
    from == NONE || toeg.event(from).task != toeg.event(node).task
}

/// The node before in the thread, or the fork of the thread.
fn source(toeg: &Toeg, node: NodeId) -> NodeId {
    match toeg.event(node).kind {
        Kind::Begin => toeg.thread_of(node).fork,
        _ => toeg.previous_in_thread(node),
    }
}

/// The last node of a task before another, if the thread went on from there to another task, and where that was.
fn left(toeg: &Toeg, node: NodeId) -> Option<Asked> {
    let by = toeg.previous_in_task(node);
    if by == NONE || toeg.event(by).kind == Kind::End {
        return None;
    }
    // A thread ends with an end, so that this one goes on.
    let to = by + 1;
    (toeg.event(to).task != toeg.event(by).task).then_some(Asked { by, to })
}

/// The last request of a task before a node, if it forked that request and ended its thread, and the node's thread is forked
/// by the task that was asked, later.
fn messaged(toeg: &Toeg, node: NodeId) -> Option<Asked> {
    let end = toeg.previous_in_task(node);
    if end == NONE || toeg.event(end).kind != Kind::End {
        return None;
    }
    let by = toeg.previous_in_task(end);
    if by == NONE || by + 1 != end {
        return None;
    }
    let Kind::Fork(thread) = toeg.event(by).kind else { return None };
    let to = toeg.thread(thread)?.first;
    let (asked, answers) = (toeg.event(to), toeg.event(source(toeg, node)));
    (asked.task == answers.task && asked.counter < answers.counter && asked.task != toeg.event(end).task)
        .then_some(Asked { by, to })
}

impl Known {
    /// The request of which a node that arrives may take the answer.
    fn asked(&mut self, toeg: &Toeg, node: NodeId) -> Option<Asked> {
        let begins = toeg.event(node).kind == Kind::Begin;
        if begins && toeg.thread_of(node).fork == NONE {
            return None;
        }
        match left(toeg, node) {
            Some(asked) => (!self.awaited(toeg, asked.to)).then_some(asked),
            None if begins => messaged(toeg, node),
            None => None,
        }
    }

    /// Whether a node that comes along a thread takes an answer. It does where the task's last node left along a thread, too,
    /// and came to one that does not: then it was a request. Where that goes round in a circle, nobody waited.
    fn awaited(&mut self, toeg: &Toeg, node: NodeId) -> bool {
        self.awaited.resize(toeg.len(), Awaited::Unknown);
        let mut open = Vec::new();
        let mut at = node;
        let mut waited = loop {
            match self.awaited[at as usize] {
                Awaited::No => break false,
                Awaited::Yes => break true,
                Awaited::Open => {
                    while let Some(node) = open.pop() {
                        self.awaited[node as usize] = Awaited::No;
                        if node == at {
                            break;
                        }
                    }
                    break false;
                }
                Awaited::Unknown => {}
            }
            let Some(asked) = left(toeg, at) else {
                self.awaited[at as usize] = Awaited::No;
                break false;
            };
            self.awaited[at as usize] = Awaited::Open;
            open.push(at);
            at = asked.to;
        };
        while let Some(node) = open.pop() {
            waited = !waited;
            self.awaited[node as usize] = if waited { Awaited::Yes } else { Awaited::No };
        }
        self.awaited[node as usize] == Awaited::Yes
    }

    /// The visit of a node. All that it depends on comes before the node, so that this ends; a stack of our own bounds the
    /// depth.
    fn work_out(&mut self, toeg: &Toeg, node: NodeId) -> NodeId {
        self.visits.resize(toeg.len(), UNKNOWN);
        let mut goals = vec![Goal::Visit(node)];
        while let Some(&goal) = goals.last() {
            let reached = match goal {
                Goal::Visit(node) if self.visits[node as usize] != UNKNOWN => Ok(()),
                Goal::Visit(node) => self.visit(toeg, node).map(|visit| self.visits[node as usize] = visit),
                Goal::Chain(visit) if self.chains.contains_key(&visit) => Ok(()),
                Goal::Chain(visit) => self.chain(toeg, visit).map(|first| {
                    self.chains.insert(visit, first);
                }),
            };
            match reached {
                Ok(()) => {
                    goals.pop();
                }
                Err(first) => goals.push(first),
            }
        }
        self.visits[node as usize]
    }

    /// The visit of a node, or what has to be known first.
    fn visit(&mut self, toeg: &Toeg, node: NodeId) -> Result<NodeId, Goal> {
        if !arrives(toeg, node) {
            return self.known(source(toeg, node));
        }
        let Some(asked) = self.asked(toeg, node) else { return Ok(node) };
        // A task that waits takes what comes along a thread for the answer. A message may also be another request: an answer comes from
        // the visit that was asked, or from one that its request was passed on to.
        if toeg.event(node).kind == Kind::Begin {
            let sender = self.known(source(toeg, node))?;
            if sender != asked.to && self.first(sender)? != asked.to {
                return Ok(node);
            }
        }
        self.known(asked.by)
    }

    /// Where the chain of a visit begins, or what has to be known first.
    fn chain(&self, toeg: &Toeg, visit: NodeId) -> Result<NodeId, Goal> {
        let from = toeg.thread_of(visit).fork;
        if toeg.event(visit).kind != Kind::Begin || from == NONE {
            return Ok(visit);
        }
        self.first(self.known(from)?)
    }

    fn known(&self, node: NodeId) -> Result<NodeId, Goal> {
        Some(self.visits[node as usize]).filter(|visit| *visit != UNKNOWN).ok_or(Goal::Visit(node))
    }

    fn first(&self, visit: NodeId) -> Result<NodeId, Goal> {
        self.chains.get(&visit).copied().ok_or(Goal::Chain(visit))
    }
}
