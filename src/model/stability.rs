//! Whether a model can sustain given rates: the utilisations that they would cause, without any queueing.

use crate::lqn::{CallKind, EntryId, Model, Multiplicity, Scheduling, Work};

/// From this utilisation on an open queue has no steady state.
const LIMIT: f64 = 1.0;

/// An element that cannot sustain its load.
#[derive(Clone, Debug, PartialEq)]
pub struct Overload {
    /// The element, such as "processor `web`"; none where entries wait for each other in a circle.
    pub element: Option<String>,
    /// Its utilisation, per server.
    pub utilization: f64,
}

/// Checks the utilisations of processors and tasks when the given entries are invoked at the given rates. `totals` is all
/// work of each entry per invocation.
pub fn check(model: &Model, totals: &[Work], rates: &[(EntryId, f64)]) -> Result<(), Overload> {
    let Some(order) = order(model, totals) else {
        return Err(Overload { element: None, utilization: f64::INFINITY });
    };
    let mut rate = vec![0.0; model.entries.len()];
    for (entry, value) in rates {
        rate[entry.index()] += value;
    }
    for &entry in &order {
        for (to, mean, _) in requests(model, totals, entry) {
            rate[to] += rate[entry] * mean;
        }
    }
    let mut holding = vec![0.0; model.entries.len()];
    for &entry in order.iter().rev() {
        let task = &model.tasks[model.entries[entry].task.index()];
        holding[entry] =
            totals[entry].demand / model.processors[task.processor.index()].speed + totals[entry].think_time;
        for (to, mean, waits) in requests(model, totals, entry) {
            if waits {
                holding[entry] += mean * holding[to];
            }
        }
    }
    let mut processors = vec![0.0; model.processors.len()];
    let mut tasks = vec![0.0; model.tasks.len()];
    for (index, entry) in model.entries.iter().enumerate() {
        let processor = model.tasks[entry.task.index()].processor.index();
        processors[processor] += rate[index] * totals[index].demand / model.processors[processor].speed;
        tasks[entry.task.index()] += rate[index] * holding[index];
    }
    let busy = |load: f64, multiplicity: Multiplicity, replicas: u32| match multiplicity {
        Multiplicity::Infinite => 0.0,
        Multiplicity::Finite(servers) => load / (f64::from(servers) * f64::from(replicas.max(1))),
    };
    let over = model
        .processors
        .iter()
        .zip(processors)
        .map(|(processor, load)| ("processor", &processor.name, busy(load, processor.multiplicity, processor.replicas)))
        .chain(
            model
                .tasks
                .iter()
                .zip(tasks)
                // Customers are the load themselves.
                .filter(|(task, _)| task.scheduling != Scheduling::Reference)
                .map(|(task, load)| ("task", &task.name, busy(load, task.multiplicity, task.replicas))),
        )
        .filter(|(_, _, utilization)| *utilization >= LIMIT)
        .max_by(|left, right| left.2.total_cmp(&right.2));
    match over {
        None => Ok(()),
        Some((kind, name, utilization)) => Err(Overload { element: Some(format!("{kind} `{name}`")), utilization }),
    }
}

/// Entries on a circle of requests, if there is one, in its order.
pub fn circle(model: &Model, totals: &[Work]) -> Option<Vec<EntryId>> {
    if order(model, totals).is_some() {
        return None;
    }
    let mut graph = petgraph::graph::DiGraph::<usize, ()>::new();
    let nodes: Vec<_> = (0..model.entries.len()).map(|entry| graph.add_node(entry)).collect();
    for entry in 0..model.entries.len() {
        for (to, _, waits) in requests(model, totals, entry) {
            if waits {
                graph.add_edge(nodes[entry], nodes[to], ());
            }
        }
    }
    petgraph::algo::tarjan_scc(&graph)
        .into_iter()
        .filter(|group| group.len() > 1 || group.iter().any(|node| graph.contains_edge(*node, *node)))
        .map(|group| {
            let mut entries: Vec<EntryId> = group.into_iter().map(|node| EntryId::from(graph[node])).collect();
            entries.sort();
            entries
        })
        .min()
}

/// Requests of an entry: receiver, mean number, and whether the caller waits.
fn requests<'m>(model: &'m Model, totals: &'m [Work], entry: usize) -> impl Iterator<Item = (usize, f64, bool)> + 'm {
    let calls = totals[entry].calls.iter().map(|call| (call.to.index(), call.mean, call.kind == CallKind::Synchronous));
    let forwarding = model.entries[entry].forwarding.iter().map(|to| (to.to.index(), to.probability, true));
    calls.chain(forwarding)
}

/// Entries with every requester before those it asks; `None` where there is a circle.
fn order(model: &Model, totals: &[Work]) -> Option<Vec<usize>> {
    let count = model.entries.len();
    let mut requesters = vec![0_usize; count];
    for entry in 0..count {
        for (to, _, _) in requests(model, totals, entry) {
            requesters[to] += 1;
        }
    }
    let mut order: Vec<usize> = (0..count).filter(|entry| requesters[*entry] == 0).collect();
    let mut next = 0;
    while next < order.len() {
        for (to, _, _) in requests(model, totals, order[next]) {
            requesters[to] -= 1;
            if requesters[to] == 0 {
                order.push(to);
            }
        }
        next += 1;
    }
    (order.len() == count).then_some(order)
}
