//! Tasks whose threads wait for calls that need a further thread of the same task.
//!
//! When all threads of such a task wait so, none is left to answer: the system has come to a standstill. No queueing network says this, since what a request waits for then
//! grows with the wait itself.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::FxHashSet;

use crate::operational::OperationalAnalysis;
use crate::{EntryId, Multiplicity, TaskId};

/// How many entries are looked at whose task may wait for itself: each costs a walk through the model.
const LOOKED_AT: usize = 500;

/// A task that comes to wait for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SelfWait {
    /// The task.
    pub task: TaskId,
    /// How many threads it has.
    pub threads: u32,
    /// The entry that makes the call.
    pub from: EntryId,
    /// The entry of the same task to which the call leads.
    pub to: EntryId,
}

/// The tasks of a model that come to wait for themselves, in their order, each by the first of its calls that does; those with threads without limit do not.
#[must_use]
pub fn self_waits(analysis: &OperationalAnalysis<'_>) -> Vec<SelfWait> {
    let model = analysis.model;
    let mut graph: DiGraph<(), ()> = DiGraph::with_capacity(model.tasks.len(), model.entries.len());
    for _ in &model.tasks {
        graph.add_node(());
    }
    let mut connect = |from: TaskId, to: EntryId| {
        let to = model.entries[to.index()].task;
        graph.add_edge(NodeIndex::new(from.index()), NodeIndex::new(to.index()), ());
    };
    for (entry, mean) in model.entries.iter().zip(&analysis.means) {
        mean.waits_for().for_each(|to| connect(entry.task, to));
        entry.forwarding.iter().for_each(|forwarding| connect(entry.task, forwarding.to));
    }
    let circles = kosaraju_scc(&graph).into_iter();
    let circles = circles.filter(|tasks| tasks.len() > 1 || graph.contains_edge(tasks[0], tasks[0]));
    let mut suspects: Vec<usize> = circles.flatten().map(NodeIndex::index).collect();
    suspects.sort_unstable();
    let mut left = LOOKED_AT;
    let mut found = Vec::new();
    for task in suspects {
        let own = &model.tasks[task];
        let Multiplicity::Finite(threads) = own.multiplicity else { continue };
        if own.scheduling.is_lock() || own.scheduling.is_source() {
            continue;
        }
        let looked_at = own.entries.iter().take(left);
        left -= looked_at.len();
        let calls = looked_at.copied().find_map(|from| Some((from, comes_back(analysis, from)?)));
        found.extend(calls.map(|(from, to)| SelfWait { task: TaskId::from(task), threads, from, to }));
    }
    found
}

/// An entry of the same task that a caller waits for while it waits for the calls of `from`.
fn comes_back(analysis: &OperationalAnalysis<'_>, from: EntryId) -> Option<EntryId> {
    let model = analysis.model;
    let task = model.entries[from.index()].task;
    let mut seen: FxHashSet<EntryId> = FxHashSet::default();
    let mut next: Vec<EntryId> = analysis.means[from.index()].waits_for().collect();
    while let Some(id) = next.pop() {
        if !seen.insert(id) {
            continue;
        }
        let entry = &model.entries[id.index()];
        if entry.task == task {
            return Some(id);
        }
        next.extend(analysis.means[id.index()].waits_for());
        next.extend(entry.forwarding.iter().map(|forwarding| forwarding.to));
    }
    None
}
