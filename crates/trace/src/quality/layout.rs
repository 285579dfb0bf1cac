//! The events of any operation, however damaged, by thread and by task.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;
use rustc_hash::FxHashMap;

use super::finding::{Fault, Finding};
use crate::{Kind, Operation};

/// An event under its thread or task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// Thread identifier or task number.
    pub(crate) group: u32,
    /// Counter within it.
    pub(crate) counter: u32,
    /// Index of the event.
    pub(crate) event: u32,
}

/// The events in two orders. Of events with the same label the one with the lowest index stands for all of them.
pub(crate) struct Layout<'a> {
    pub(crate) operation: &'a Operation,
    /// All events by thread and counter.
    pub(crate) by_thread: Vec<Entry>,
    /// All events by task and counter.
    pub(crate) by_task: Vec<Entry>,
    /// Where each thread lies in `by_thread`.
    threads: FxHashMap<u32, (u32, u32)>,
}

impl<'a> Layout<'a> {
    pub(crate) fn new(operation: &'a Operation) -> Self {
        let entries = |key: fn(&crate::Event) -> (u32, u32)| {
            let mut entries: Vec<Entry> = (0u32..)
                .zip(&operation.events)
                .map(|(event, node)| {
                    let (group, counter) = key(node);
                    Entry { group, counter, event }
                })
                .collect();
            entries.sort_unstable();
            entries
        };
        let by_thread = entries(|event| (event.thread, event.index));
        let by_task = entries(|event| (event.task.0, event.counter));
        let mut threads = FxHashMap::default();
        let mut first = 0;
        for group in by_thread.chunk_by(|a, b| a.group == b.group) {
            threads.insert(group[0].group, (first, first + group.len() as u32));
            first += group.len() as u32;
        }
        Self { operation, by_thread, by_task, threads }
    }

    /// The threads in ascending order, each with its events.
    pub(crate) fn threads(&self) -> impl Iterator<Item = &[Entry]> {
        self.by_thread.chunk_by(|a, b| a.group == b.group)
    }

    /// The events of a thread; empty where it has none.
    pub(crate) fn thread(&self, id: u32) -> &[Entry] {
        self.threads.get(&id).map_or(&[], |(first, end)| &self.by_thread[*first as usize..*end as usize])
    }

    /// The event that stands for the last counter of a thread.
    pub(crate) fn last_place(&self, thread: u32) -> u32 {
        let entries = self.thread(thread);
        let last = entries[entries.len() - 1].counter;
        entries[entries.partition_point(|entry| entry.counter < last)].event
    }

    /// The finding of a gap before an event in its thread.
    pub(crate) fn thread_gap(&self, event: u32) -> Finding {
        let node = &self.operation.events[event as usize];
        let entry = Entry { group: node.thread, counter: node.index, event };
        Finding::gap(Fault::ThreadGap, event, missing_before(&self.by_thread, entry))
    }

    /// The finding of a gap before an event in its task.
    pub(crate) fn task_gap(&self, event: u32) -> Finding {
        let node = &self.operation.events[event as usize];
        let entry = Entry { group: node.task.0, counter: node.counter, event };
        Finding::gap(Fault::TaskGap, event, missing_before(&self.by_task, entry))
    }

    /// The forks, as event and forked thread, in the order of `by_thread`.
    pub(crate) fn forks(&self) -> impl Iterator<Item = (u32, u32)> {
        self.by_thread.iter().filter_map(|entry| match self.operation.events[entry.event as usize].kind {
            Kind::Fork(thread) => Some((entry.event, thread)),
            _ => None,
        })
    }

    /// The joins, as event and joined thread, in the order of `by_thread`.
    pub(crate) fn joins(&self) -> impl Iterator<Item = (u32, u32)> {
        self.by_thread.iter().filter_map(|entry| match self.operation.events[entry.event as usize].kind {
            Kind::Join(thread) => Some((entry.event, thread)),
            _ => None,
        })
    }

    /// The arcs of causality, from cause to effect: next in thread, next in task, fork to begin, end to join. Where
    /// counters are missing, an arc leads to the next that is there.
    pub(crate) fn arcs(&self) -> Vec<(u32, u32)> {
        let mut arcs = Vec::with_capacity(2 * self.by_thread.len());
        for entries in [&self.by_thread, &self.by_task] {
            for group in entries.chunk_by(|a, b| a.group == b.group) {
                let mut places = group.chunk_by(|a, b| a.counter == b.counter).map(|same| same[0].event);
                let mut before = places.next();
                for event in places {
                    arcs.extend(before.map(|before| (before, event)));
                    before = Some(event);
                }
            }
        }
        arcs.extend(self.forks().filter_map(|(event, thread)| Some((event, self.thread(thread).first()?.event))));
        let ended = |thread| (!self.thread(thread).is_empty()).then(|| self.last_place(thread));
        arcs.extend(self.joins().filter_map(|(event, thread)| Some((ended(thread)?, event))));
        arcs
    }

    /// The strongly connected component of each event, named by its lowest event, given the arcs. Events that neither lie
    /// on a cycle nor behind one are their own.
    pub(crate) fn components(&self, arcs: &[(u32, u32)]) -> Vec<u32> {
        let count = self.operation.events.len();
        let mut component: Vec<u32> = (0..count as u32).collect();
        let kept = behind_cycles(count, arcs);
        if !kept.contains(&true) {
            return component;
        }
        let mut graph = DiGraph::<u32, ()>::new();
        let mut nodes = vec![None; count];
        for (event, _) in kept.iter().enumerate().filter(|(_, kept)| **kept) {
            nodes[event] = Some(graph.add_node(event as u32));
        }
        for (from, to) in arcs {
            if let (Some(from), Some(to)) = (nodes[*from as usize], nodes[*to as usize]) {
                graph.add_edge(from, to, ());
            }
        }
        // Kosaraju's algorithm, as petgraph has it, keeps its own stack; a recursive one would overflow on long threads.
        for members in kosaraju_scc(&graph) {
            let lowest = members.iter().map(|node| graph[*node]).min().unwrap_or_default();
            for node in members {
                component[graph[node] as usize] = lowest;
            }
        }
        component
    }
}

/// The counters between an entry and the one before it in its group.
fn missing_before(entries: &[Entry], entry: Entry) -> (u32, u32) {
    let before = entries[..entries.partition_point(|other| *other < entry)].last();
    let counter = before.filter(|before| before.group == entry.group).map_or(0, |before| before.counter);
    (counter + 1, entry.counter - 1)
}

/// Which events lie on a cycle or behind one: those that are left when all without open causes are taken away.
fn behind_cycles(count: usize, arcs: &[(u32, u32)]) -> Vec<bool> {
    let mut offsets = vec![0u32; count + 1];
    let mut causes = vec![0u32; count];
    for (from, to) in arcs {
        offsets[*from as usize + 1] += 1;
        causes[*to as usize] += 1;
    }
    for index in 0..count {
        offsets[index + 1] += offsets[index];
    }
    let mut effects = vec![0u32; arcs.len()];
    let mut next = offsets.clone();
    for (from, to) in arcs {
        effects[next[*from as usize] as usize] = *to;
        next[*from as usize] += 1;
    }
    let mut ready: Vec<u32> = (0..count as u32).filter(|event| causes[*event as usize] == 0).collect();
    let mut kept = vec![true; count];
    while let Some(event) = ready.pop() {
        kept[event as usize] = false;
        for effect in &effects[offsets[event as usize] as usize..offsets[event as usize + 1] as usize] {
            causes[*effect as usize] -= 1;
            if causes[*effect as usize] == 0 {
                ready.push(*effect);
            }
        }
    }
    kept
}
