//! Calls between entries.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::FxHashSet;

use crate::lint::Lint;
use crate::{Body, Call, CallKind, EntryId, Model, codes};
use dyelog_diagnostic::Severity;

/// How an entry is called.
#[expect(clippy::struct_excessive_bools, reason = "an entry may be called in each of these ways, or in several")]
#[derive(Clone, Copy, Default)]
pub(super) struct Called {
    pub(super) synchronously: bool,
    pub(super) asynchronously: bool,
    pub(super) by_forwarding: bool,
    pub(super) openly: bool,
}

impl Called {
    /// Whether it is called in any way.
    pub(super) fn is_called(self) -> bool {
        self.synchronously || self.asynchronously || self.by_forwarding || self.openly
    }
}

/// How each entry is called.
pub(super) fn called(model: &Model) -> Vec<Called> {
    let mut called = vec![Called::default(); model.entries.len()];
    for request in model.requests() {
        let own = &mut called[request.to.index()];
        match request.kind {
            Some(CallKind::Synchronous) => own.synchronously = true,
            Some(CallKind::Asynchronous) => own.asynchronously = true,
            None => own.by_forwarding = true,
        }
    }
    for (entry, own) in model.entries.iter().zip(&mut called) {
        own.openly = entry.open_arrival_rate.is_some();
    }
    called
}

/// Reports what is wrong with calls.
pub(super) fn check(lint: &mut Lint<'_>) {
    let model = lint.model;
    let called = called(model);
    if !model.tasks.iter().any(|task| task.scheduling.is_source()) && !called.iter().any(|own| own.openly) {
        let error = lint.error(codes::NO_LOAD, "model".to_owned(), "nothing drives the model");
        error.hints.push("add a reference task or open arrivals".to_owned());
    }
    for ((entry, own), index) in model.entries.iter().zip(&called).zip(0usize..) {
        let id = EntryId::from(index);
        let is_called = own.is_called();
        let task = &model.tasks[entry.task.index()];
        if task.scheduling.is_source() {
            if is_called {
                let message = format!("the entry `{}` of the reference task `{}` is called", entry.name, task.name);
                lint.error(codes::REFERENCE_CALLED, lint.entry(id), message);
            }
            if !entry.forwarding.is_empty() {
                let message = format!("the entry `{}` of the reference task `{}` forwards", entry.name, task.name);
                lint.error(codes::REFERENCE_CALLED, lint.entry(id), message);
            }
        } else if !is_called {
            lint.warning(codes::NEVER_CALLED, lint.entry(id), format!("nothing calls the entry `{}`", entry.name));
        }
        if own.synchronously && own.asynchronously {
            let message = format!("the entry `{}` is called both synchronously and asynchronously", entry.name);
            lint.warning(codes::MIXED_CALLS, lint.entry(id), message);
        }
    }
    let waiting = cycles(lint, &FxHashSet::default(), false);
    cycles(lint, &waiting, true);
}

/// The graph of entries, then activities, by calls and by what follows what.
pub(super) fn graph(model: &Model, with_asynchronous: bool) -> DiGraph<(), ()> {
    let entries = model.entries.len();
    let mut graph = DiGraph::with_capacity(entries + model.activities.len(), entries + model.activities.len());
    for _ in 0..entries + model.activities.len() {
        graph.add_node(());
    }
    let activity = |id: crate::ActivityId| NodeIndex::new(entries + id.index());
    let entry = |id: EntryId| NodeIndex::new(id.index());
    let counts = |call: &&Call| with_asynchronous || call.kind == CallKind::Synchronous;
    for (own, index) in model.entries.iter().zip(0usize..) {
        let from = NodeIndex::new(index);
        match &own.body {
            Body::Phases(phases) => {
                for call in phases.iter().flat_map(|work| &work.calls).filter(counts) {
                    graph.add_edge(from, entry(call.to), ());
                }
            }
            Body::Activities(first) => {
                graph.add_edge(from, activity(*first), ());
            }
        }
        for forwarding in &own.forwarding {
            graph.add_edge(from, entry(forwarding.to), ());
        }
    }
    for (own, index) in model.activities.iter().zip(entries..) {
        for call in own.work.calls.iter().filter(counts) {
            graph.add_edge(NodeIndex::new(index), entry(call.to), ());
        }
    }
    for precedence in model.tasks.iter().flat_map(|task| &task.precedences) {
        // A hub stands for the precedence, so that a join of many and a fork of many cost their sum.
        let hub = graph.add_node(());
        for &from in precedence.join.activities() {
            graph.add_edge(activity(from), hub, ());
        }
        for to in precedence.followers() {
            graph.add_edge(hub, activity(to), ());
        }
    }
    graph
}

/// Reports circles, without those that touch what was reported; gives the nodes of those reported.
fn cycles(lint: &mut Lint<'_>, reported: &FxHashSet<usize>, with_asynchronous: bool) -> FxHashSet<usize> {
    let model = lint.model;
    let graph = graph(model, with_asynchronous);
    let mut circles: Vec<Vec<usize>> = kosaraju_scc(&graph)
        .into_iter()
        .filter(|nodes| nodes.len() > 1 || graph.contains_edge(nodes[0], nodes[0]))
        .map(|nodes| {
            let mut nodes: Vec<usize> = nodes.into_iter().map(NodeIndex::index).collect();
            nodes.sort_unstable();
            nodes
        })
        .filter(|nodes| !nodes.iter().any(|node| reported.contains(node)))
        .collect();
    circles.sort_unstable();
    for circle in &circles {
        let names: Vec<&str> = walk(&graph, circle)
            .into_iter()
            .filter_map(|node| {
                let activity = node.checked_sub(model.entries.len());
                match activity {
                    None => Some(&*model.entries[node].name),
                    Some(activity) => model.activities.get(activity).map(|activity| &*activity.name),
                }
            })
            .collect();
        let item = match circle[0].checked_sub(model.entries.len()) {
            None => lint.entry(circle[0].into()),
            Some(activity) => lint.activity(activity.into()),
        };
        let shown = shorten(&names);
        if circle[0] >= model.entries.len() {
            let message = format!("activities follow each other in a circle: {shown}");
            lint.error(codes::ACTIVITY_CYCLE, item, message).hints.push("write repetition as a loop".to_owned());
        } else if with_asynchronous {
            let message = format!("entries send messages in a circle: {shown}");
            let warning = lint.report(Severity::Warning, codes::CALL_CYCLE, item, message);
            warning.notes.push("every message may lead to further ones without end".to_owned());
        } else {
            let error = lint.error(codes::CALL_CYCLE, item, format!("entries call each other in a circle: {shown}"));
            error.notes.push("each waits for the next, so none can ever answer".to_owned());
        }
    }
    circles.into_iter().flatten().collect()
}

/// A walk within the circle from its first node until a node comes again.
fn walk(graph: &DiGraph<(), ()>, circle: &[usize]) -> Vec<usize> {
    let mut seen = FxHashSet::default();
    let mut path = Vec::new();
    let mut node = circle[0];
    while seen.insert(node) {
        path.push(node);
        let next = graph.neighbors(NodeIndex::new(node)).map(NodeIndex::index);
        match next.filter(|next| circle.binary_search(next).is_ok()).min() {
            Some(next) => node = next,
            None => return path,
        }
    }
    let start = path.iter().position(|&own| own == node).unwrap_or_default();
    path.push(node);
    path.split_off(start)
}

/// The names joined by arrows, the middle of a long list left out.
fn shorten(names: &[&str]) -> String {
    if names.len() <= 8 {
        return names.join(" → ");
    }
    format!("{} → … → {}", names[..4].join(" → "), names[names.len() - 3..].join(" → "))
}
