//! The graph of an operation whose events come in an order of cause and effect, in one pass.
//!
//! Most tracers write an event when it happens. All that an event needs has then come before it, so that each can be held
//! against small counters of its thread and of its task, and no cycle is possible. Whatever comes otherwise, and all that is
//! damaged, is left to the general way.

use super::{NONE, NodeId, Thread, Toeg};
use crate::{Event, Kind, Operation};

/// A thread while its events come.
#[derive(Clone, Copy)]
struct Arriving {
    /// The place of its first node.
    first: NodeId,
    count: u32,
    seen: u32,
    fork: NodeId,
    join: NodeId,
}

/// A task while its events come.
#[derive(Clone, Copy)]
struct Visited {
    seen: u32,
    last: NodeId,
}

/// How many identifiers a table may have for so many events.
fn widest(events: &[Event]) -> usize {
    events.len().saturating_mul(4).saturating_add(64)
}

/// A table by thread identifier, with the place of each thread's first node in the order by thread, and whether the events
/// are in that order already; `None` where identifiers are too scattered for a table.
fn threads(events: &[Event]) -> Option<(Vec<Arriving>, bool)> {
    const NEW: Arriving = Arriving { first: 0, count: 0, seen: 0, fork: NONE, join: NONE };
    let widest = widest(events);
    let mut threads: Vec<Arriving> = Vec::new();
    let (mut sorted, mut before) = (true, 0);
    for event in events {
        let key = (u64::from(event.thread) << 32) | u64::from(event.index);
        sorted &= before <= key;
        before = key;
        let place = event.thread as usize;
        if place >= threads.len() {
            if place >= widest {
                return None;
            }
            threads.resize(place + 1, NEW);
        }
        threads[place].count += 1;
    }
    let mut first = 0;
    for thread in &mut threads {
        thread.first = first;
        first += thread.count;
    }
    Some((threads, sorted))
}

/// The events in the order of threads and their counters. Counters of complete threads are places; only where some are not,
/// there is something to compare.
pub(super) fn sort(events: &mut Vec<Event>) {
    let key = |event: &Event| (u64::from(event.thread) << 32) | u64::from(event.index);
    if events.is_sorted_by_key(key) {
        return;
    }
    match places(events) {
        Some(order) => *events = order.iter().map(|&place| events[place as usize]).collect(),
        None => events.sort_by_key(key),
    }
}

/// For each place in the order the event that belongs there, where threads are complete.
fn places(events: &[Event]) -> Option<Vec<u32>> {
    let (threads, _) = threads(events)?;
    let mut order = vec![NONE; events.len()];
    for (place, event) in (0..).zip(events) {
        let thread = &threads[event.thread as usize];
        if event.index == 0 || event.index > thread.count {
            return None;
        }
        let cell = &mut order[(thread.first + event.index - 1) as usize];
        if *cell != NONE {
            return None;
        }
        *cell = place;
    }
    Some(order)
}

/// The graph, where the operation is well-formed and its events come after what they need; else the operation as it came.
pub(super) fn build(mut operation: Operation) -> Result<Toeg, Operation> {
    let events = &operation.events;
    let count = events.len();
    let Some((mut threads, sorted)) = threads(events) else { return Err(operation) };
    let mut order: Vec<u32> = if sorted { Vec::new() } else { vec![0; count] };
    let mut next_in_task = vec![NONE; count];
    let mut previous_in_task = vec![NONE; count];
    let Some(root) =
        arrive(events, &mut threads, (!sorted).then_some(&mut order), &mut next_in_task, &mut previous_in_task)
    else {
        return Err(operation);
    };
    if !sorted {
        operation.events = order.iter().map(|&place| operation.events[place as usize]).collect();
    }
    let mut thread_of = order;
    thread_of.clear();
    let mut list = Vec::with_capacity(threads.iter().filter(|thread| thread.count > 0).count());
    for (id, thread) in (0..).zip(&threads).filter(|(_, thread)| thread.count > 0) {
        thread_of.resize(thread_of.len() + thread.count as usize, list.len() as u32);
        let last = thread.first + thread.count - 1;
        list.push(Thread { id, first: thread.first, last, fork: thread.fork, join: thread.join });
    }
    Ok(Toeg { operation, threads: list, thread_of, next_in_task, previous_in_task, root })
}

/// Takes the events as they come; the root, if each has all that it needs before it. Writes down which event goes to which
/// place, and links the nodes of tasks.
fn arrive(
    events: &[Event],
    threads: &mut [Arriving],
    mut order: Option<&mut Vec<u32>>,
    next_in_task: &mut [NodeId],
    previous_in_task: &mut [NodeId],
) -> Option<NodeId> {
    let widest = widest(events);
    let mut tasks: Vec<Visited> = Vec::new();
    let mut root = NONE;
    for (place, event) in (0..).zip(events) {
        let thread = &mut threads[event.thread as usize];
        let node = thread.first + thread.seen;
        thread.seen += 1;
        let (begins, ends) = (thread.seen == 1, thread.seen == thread.count);
        if event.index != thread.seen || begins != (event.kind == Kind::Begin) || ends != (event.kind == Kind::End) {
            return None;
        }
        match event.kind {
            Kind::Begin if thread.fork == NONE => {
                if root != NONE {
                    return None;
                }
                root = node;
            }
            Kind::Fork(child) => {
                let child = threads.get_mut(child as usize)?;
                if child.count == 0 || child.seen > 0 || child.fork != NONE {
                    return None;
                }
                child.fork = node;
            }
            Kind::Join(child) => {
                let child = threads.get_mut(child as usize)?;
                if child.count == 0 || child.seen < child.count || child.join != NONE {
                    return None;
                }
                child.join = node;
            }
            Kind::Begin | Kind::Activity | Kind::End => {}
        }
        let task = event.task.index();
        if task >= tasks.len() {
            if task >= widest {
                return None;
            }
            tasks.resize(task + 1, Visited { seen: 0, last: NONE });
        }
        let task = &mut tasks[task];
        task.seen += 1;
        if event.counter != task.seen {
            return None;
        }
        if task.last != NONE {
            next_in_task[task.last as usize] = node;
            previous_in_task[node as usize] = task.last;
        }
        task.last = node;
        if let Some(order) = &mut order {
            order[node as usize] = place;
        }
    }
    (root != NONE).then_some(root)
}
