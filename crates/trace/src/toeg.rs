//! The task and operation event graph (TOEG) of one operation (1998 paper §4).
//!
//! Nodes are the operation's events, sorted by thread and thread node counter, so that a thread is a run of consecutive
//! nodes. Arcs are derived from the labels: next in thread, next in task, fork → begin, end → join. Building it is also
//! the fast screen for well-formedness: linear, and refusing without a reason. [`crate::quality`] finds reasons.

mod arrival;

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::{Event, Kind, Operation, TaskId};

/// A node of a [`Toeg`]: an index into its events.
pub type NodeId = u32;

/// No node.
pub const NONE: NodeId = NodeId::MAX;

/// A thread of a [`Toeg`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The scenario thread identifier `k`.
    pub id: u32,
    /// Its first node.
    pub first: NodeId,
    /// Its last node.
    pub last: NodeId,
    /// The node that forks it; [`NONE`] for the root.
    pub fork: NodeId,
    /// The node that waits for its end; [`NONE`] where none does.
    pub join: NodeId,
}

/// The graph of a well-formed operation.
#[derive(Clone, Debug)]
pub struct Toeg {
    operation: Operation,
    threads: Vec<Thread>,
    thread_of: Vec<u32>,
    next_in_task: Vec<NodeId>,
    previous_in_task: Vec<NodeId>,
    root: NodeId,
}

/// Where the nodes of a task stand in an array sorted by task and task node counter.
#[derive(Clone, Copy, Debug, Default)]
struct TaskSlot {
    offset: u32,
    count: u32,
}

impl Toeg {
    /// Builds the graph; sorts the operation's events.
    ///
    /// # Errors
    /// The operation as it came, its events sorted, when it is not well-formed.
    pub fn build(operation: Operation) -> Result<Self, Box<Operation>> {
        if operation.events.len() >= NONE as usize {
            return Self::build_in_any_order(operation);
        }
        arrival::build(operation).or_else(Self::build_in_any_order)
    }

    /// The same, whatever order the events come in.
    fn build_in_any_order(mut operation: Operation) -> Result<Self, Box<Operation>> {
        arrival::sort(&mut operation.events);
        if operation.events.len() >= NONE as usize {
            return Err(Box::new(operation));
        }
        let Some((threads, thread_of, root)) = threads(&operation.events) else {
            return Err(Box::new(operation));
        };
        let Some((by_task, slots)) = by_task(&operation.events) else {
            return Err(Box::new(operation));
        };
        let mut next_in_task = vec![NONE; operation.events.len()];
        let mut previous_in_task = vec![NONE; operation.events.len()];
        for slot in slots {
            let nodes = &by_task[slot.offset as usize..(slot.offset + slot.count) as usize];
            for pair in nodes.windows(2) {
                next_in_task[pair[0] as usize] = pair[1];
                previous_in_task[pair[1] as usize] = pair[0];
            }
        }
        drop(by_task);
        let graph = Self { operation, threads, thread_of, next_in_task, previous_in_task, root };
        if graph.is_acyclic() { Ok(graph) } else { Err(Box::new(graph.operation)) }
    }

    /// The operation, its events sorted by thread and thread node counter.
    pub fn operation(&self) -> &Operation {
        &self.operation
    }

    /// The operation back.
    pub fn into_operation(self) -> Operation {
        self.operation
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.operation.events.len()
    }

    /// Never: a well-formed operation has a root.
    pub fn is_empty(&self) -> bool {
        self.operation.events.is_empty()
    }

    /// The first node of the root thread.
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// The event of a node.
    #[inline]
    pub fn event(&self, node: NodeId) -> &Event {
        &self.operation.events[node as usize]
    }

    /// All threads, by identifier.
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// The thread of a node.
    #[inline]
    pub fn thread_of(&self, node: NodeId) -> &Thread {
        &self.threads[self.thread_of[node as usize] as usize]
    }

    /// The position of a node's thread in [`Toeg::threads`].
    #[inline]
    pub fn thread_number(&self, node: NodeId) -> usize {
        self.thread_of[node as usize] as usize
    }

    /// The thread of that identifier.
    #[inline]
    pub fn thread(&self, id: u32) -> Option<&Thread> {
        // Identifiers are mostly 1, 2, 3, …
        match self.threads.get((id as usize).wrapping_sub(1)) {
            Some(thread) if thread.id == id => Some(thread),
            _ => self.threads.binary_search_by_key(&id, |thread| thread.id).ok().map(|place| &self.threads[place]),
        }
    }

    /// The node `delta` places on in the same thread, or [`NONE`].
    #[inline]
    pub fn step_in_thread(&self, node: NodeId, delta: i32) -> NodeId {
        let target = i64::from(node) + i64::from(delta);
        if target < 0 || target >= self.thread_of.len() as i64 {
            return NONE;
        }
        let target = target as NodeId;
        if self.thread_of[target as usize] == self.thread_of[node as usize] { target } else { NONE }
    }

    /// The next node of the same thread, or [`NONE`].
    #[inline]
    pub fn next_in_thread(&self, node: NodeId) -> NodeId {
        // Threads are runs of nodes, and end with an end.
        if self.event(node).kind == Kind::End { NONE } else { node + 1 }
    }

    /// The previous node of the same thread, or [`NONE`].
    #[inline]
    pub fn previous_in_thread(&self, node: NodeId) -> NodeId {
        // Threads are runs of nodes, and begin with a begin.
        if self.event(node).kind == Kind::Begin { NONE } else { node - 1 }
    }

    /// The next node of the same task, or [`NONE`].
    #[inline]
    pub fn next_in_task(&self, node: NodeId) -> NodeId {
        self.next_in_task[node as usize]
    }

    /// The previous node of the same task, or [`NONE`].
    #[inline]
    pub fn previous_in_task(&self, node: NodeId) -> NodeId {
        self.previous_in_task[node as usize]
    }

    /// Kahn's algorithm over all arcs: where there is a cycle, not every node comes to its turn.
    fn is_acyclic(&self) -> bool {
        let count = self.len();
        let mut waiting = vec![0u8; count];
        for node in 0..count as NodeId {
            let event = self.event(node);
            waiting[node as usize] = u8::from(self.previous_in_thread(node) != NONE)
                + u8::from(self.previous_in_task(node) != NONE)
                + u8::from(event.kind == Kind::Begin && node != self.root)
                + u8::from(matches!(event.kind, Kind::Join(_)));
        }
        let mut taken = 0;
        // A stack makes the order depth first, which keeps neighbours in memory together.
        let mut ready = vec![self.root];
        if waiting[self.root as usize] != 0 {
            return false;
        }
        while let Some(node) = ready.pop() {
            taken += 1;
            let mut release = |target: NodeId| {
                if target != NONE {
                    waiting[target as usize] -= 1;
                    if waiting[target as usize] == 0 {
                        ready.push(target);
                    }
                }
            };
            match self.event(node).kind {
                Kind::Fork(child) => release(self.thread(child).map_or(NONE, |thread| thread.first)),
                Kind::End => release(self.thread_of(node).join),
                _ => {}
            }
            release(self.next_in_task(node));
            release(self.next_in_thread(node));
        }
        taken == count
    }
}

/// The threads of events sorted by thread and counter, the thread of each node, and the root.
fn threads(events: &[Event]) -> Option<(Vec<Thread>, Vec<u32>, NodeId)> {
    let mut threads: Vec<Thread> = Vec::new();
    let mut thread_of = Vec::with_capacity(events.len());
    for (node, event) in events.iter().enumerate() {
        let node = node as NodeId;
        match threads.last_mut() {
            Some(thread) if thread.id == event.thread => {
                let position = node - thread.first;
                let in_order = event.index == position + 1 && event.kind != Kind::Begin;
                if !in_order || events[thread.last as usize].kind == Kind::End {
                    return None;
                }
                thread.last = node;
            }
            previous => {
                let ended = previous.is_none_or(|thread| events[thread.last as usize].kind == Kind::End);
                if !ended || event.index != 1 || event.kind != Kind::Begin {
                    return None;
                }
                threads.push(Thread { id: event.thread, first: node, last: node, fork: NONE, join: NONE });
            }
        }
        thread_of.push(threads.len() as u32 - 1);
    }
    if events.last().is_none_or(|event| event.kind != Kind::End) {
        return None;
    }
    link(events, &mut threads)?;
    let mut roots = threads.iter().filter(|thread| thread.fork == NONE);
    let root = roots.next()?.first;
    roots.next().is_none().then_some((threads, thread_of, root))
}

/// Ties forks and joins to the threads that they name, each thread at most once.
fn link(events: &[Event], threads: &mut [Thread]) -> Option<()> {
    let place = |threads: &[Thread], id: u32| match threads.get((id as usize).wrapping_sub(1)) {
        Some(thread) if thread.id == id => Some(id as usize - 1),
        _ => threads.binary_search_by_key(&id, |thread| thread.id).ok(),
    };
    for (node, event) in events.iter().enumerate() {
        let (id, fork) = match event.kind {
            Kind::Fork(id) => (id, true),
            Kind::Join(id) => (id, false),
            _ => continue,
        };
        let thread = place(threads, id)?;
        let end = if fork { &mut threads[thread].fork } else { &mut threads[thread].join };
        if *end != NONE {
            return None;
        }
        *end = node as NodeId;
    }
    Some(())
}

/// All nodes by task and task node counter, and where each task's stand; `None` unless each task's counters are 1, 2, 3, …
/// without repeats.
fn by_task(events: &[Event]) -> Option<(Vec<NodeId>, Vec<TaskSlot>)> {
    let largest = events.iter().map(|event| event.task.0).max()?;
    if (largest as usize) < 4 * events.len() + 64 {
        let mut slots = vec![TaskSlot::default(); largest as usize + 1];
        place(events, &mut slots, TaskId::index).map(|by_task| (by_task, slots))
    } else {
        // Few events that name tasks of a large table: number them anew.
        let mut numbers: FxHashMap<TaskId, usize> = FxHashMap::default();
        for event in events {
            let next = numbers.len();
            numbers.entry(event.task).or_insert(next);
        }
        let mut slots = vec![TaskSlot::default(); numbers.len()];
        place(events, &mut slots, |task| numbers[&task]).map(|by_task| (by_task, slots))
    }
}

fn place(events: &[Event], slots: &mut [TaskSlot], number: impl Fn(TaskId) -> usize) -> Option<Vec<NodeId>> {
    for event in events {
        slots[number(event.task)].count += 1;
    }
    let mut offset = 0;
    for slot in slots.iter_mut() {
        slot.offset = offset;
        offset += slot.count;
    }
    let mut by_task = vec![NONE; events.len()];
    for (node, event) in events.iter().enumerate() {
        let slot = slots[number(event.task)];
        if event.counter == 0 || event.counter > slot.count {
            return None;
        }
        let cell = &mut by_task[(slot.offset + event.counter - 1) as usize];
        if *cell != NONE {
            return None;
        }
        *cell = node as NodeId;
    }
    Some(by_task)
}

impl Thread {
    /// Its nodes, in order.
    pub fn nodes(&self) -> Range<NodeId> {
        self.first..self.last + 1
    }
}
