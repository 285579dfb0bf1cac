//! Which visit a thread goes on with.
//!
//! A task that makes an RPC of asynchronous messages ends the thread on which it was asked and resumes on the one that
//! brings the answer (templates (v) and (vi) of the 1998 paper). So one visit may lie on several threads, and what it
//! does last, such as passing the request on, may leave from another thread than the request came in on.

use std::cell::RefCell;

use crate::trace::toeg::{NONE, Thread};
use crate::trace::{Kind, NodeId, Toeg};

/// A thread whose visit is not known yet.
const UNKNOWN: u32 = u32::MAX;

/// For each thread of one operation, the thread that brought the request of the visit in which it begins. Worked out when
/// asked for; what it depends on is remembered, so that all answers together take time linear in the threads. Most threads
/// begin a visit of their own, which a look at one node or two tells, and nothing is remembered of them.
#[derive(Clone, Debug, Default)]
pub struct Visits(RefCell<Vec<u32>>);

impl Visits {
    /// The node that accepted the visit in which a thread begins: the thread's own first node, unless that takes the
    /// answer to an asynchronous RPC of a visit that was accepted before.
    pub fn accepted_at(&self, toeg: &Toeg, thread: &Thread) -> NodeId {
        if answer(toeg, thread).is_none() {
            return thread.first;
        }
        let number = toeg.thread_number(thread.first);
        let visits = &mut *self.0.borrow_mut();
        visits.resize(toeg.threads().len(), UNKNOWN);
        work_out(toeg, number, visits);
        toeg.threads()[visits[number] as usize].first
    }
}

/// A request and answer as templates (v) and (vi) see them, by numbers of threads.
struct Answer {
    /// The thread that asks and ends.
    asked_from: usize,
    /// The thread of the request.
    request: usize,
    /// The thread from which the answer leaves.
    answered_from: usize,
}

/// Finds the thread that brought the request of a thread's visit, and what that depends on.
fn work_out(toeg: &Toeg, thread: usize, visits: &mut [u32]) {
    // Both threads that an answer depends on begin before it, so that this ends; a stack of our own bounds the depth.
    let mut open = vec![thread];
    while let Some(&number) = open.last() {
        if visits[number] != UNKNOWN {
            open.pop();
            continue;
        }
        let Some(answer) = answer(toeg, &toeg.threads()[number]) else {
            visits[number] = number as u32;
            continue;
        };
        let needed = [answer.asked_from, answer.answered_from, answer.request];
        if let Some(&first) = needed.iter().find(|&&needed| visits[needed] == UNKNOWN) {
            open.push(first);
            continue;
        }
        let is_request = visits[answer.request] == answer.request as u32;
        let answers = is_request && visits[answer.answered_from] == answer.request as u32;
        visits[number] = if answers { visits[answer.asked_from] } else { number as u32 };
    }
}

/// What a thread answers if it begins on a task whose last acts were a fork and the end of the forking thread, and is forked
/// by the task that the fork went to, after it got there.
fn answer(toeg: &Toeg, thread: &Thread) -> Option<Answer> {
    let end = some(toeg.previous_in_task(thread.first))?;
    // Most threads are told by this one node.
    if toeg.event(end).kind != Kind::End {
        return None;
    }
    let fork = some(toeg.previous_in_task(end)).filter(|fork| fork + 1 == end)?;
    let Kind::Fork(request) = toeg.event(fork).kind else { return None };
    let request = toeg.thread(request)?.first;
    let reply = some(thread.fork)?;
    let (asked, answered) = (toeg.event(request), toeg.event(reply));
    if asked.task != answered.task || asked.counter >= answered.counter || asked.task == toeg.event(end).task {
        return None;
    }
    let number = |node| toeg.thread_number(node);
    Some(Answer { asked_from: number(fork), request: number(request), answered_from: number(reply) })
}

fn some(node: NodeId) -> Option<NodeId> {
    (node != NONE).then_some(node)
}
