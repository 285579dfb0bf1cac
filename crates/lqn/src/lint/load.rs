//! What the load comes to: entries that it never reaches, cycles that take no time, stations that cannot keep up with open
//! arrivals, tasks that come to wait for themselves.

use petgraph::algo::{kosaraju_scc, toposort};
use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::FxHashSet;

use crate::lint::Lint;
use crate::lint::calls::{called, graph, is_source};
use crate::lint::visits::{BUDGET, leaving, visits};
use crate::{Body, CallKind, EntryId, Fork, Model, Multiplicity, Scheduling, TaskId, Work, codes};

/// What one invocation of an entry does, on average.
#[derive(Default)]
struct Doing {
    /// Demand at its processor, in seconds at speed 1.
    demand: f64,
    /// Pure delays.
    delay: f64,
    /// Calls, with their mean numbers.
    calls: Vec<(EntryId, CallKind, f64)>,
    /// The same until the first reply; what parallel branches do is left out.
    until_reply: f64,
    until_reply_calls: Vec<(EntryId, f64)>,
}

impl Doing {
    fn add(&mut self, work: &Work, times: f64) {
        self.demand += times * work.demand;
        self.delay += times * work.think_time;
        self.calls.extend(work.calls.iter().map(|call| (call.to, call.kind, times * call.mean)));
    }

    /// The entries whose answers it waits for.
    fn waits_for(&self) -> impl Iterator<Item = EntryId> {
        self.calls.iter().filter(|(_, kind, _)| *kind == CallKind::Synchronous).map(|&(to, ..)| to)
    }

    fn add_before_reply(&mut self, work: &Work, times: f64, speed: f64) {
        self.until_reply += times * (work.demand / speed + work.think_time);
        let waited = work.calls.iter().filter(|call| call.kind == CallKind::Synchronous);
        self.until_reply_calls.extend(waited.map(|call| (call.to, times * call.mean)));
    }
}

/// Reports what the load comes to. Models whose entries call each other in a circle have been reported.
pub(super) fn check(lint: &mut Lint<'_>) {
    unreached(lint);
    let model = lint.model;
    let leaving = leaving(model);
    let mut budget = BUDGET;
    let doings: Option<Vec<Doing>> =
        model.entries.iter().map(|entry| doing(model, entry.task, &entry.body, &leaving, &mut budget)).collect();
    // Activities in a circle have been reported.
    let Some(doings) = doings else { return };
    let Ok(order) = toposort(&calls_only(model, &doings), None) else { return };
    let order: Vec<EntryId> = order.into_iter().map(|node| EntryId::from(node.index())).collect();
    timeless(lint, &order, &doings);
    saturated(lint, &order, &doings);
    waiting_for_itself(lint, &doings);
}

/// Entries by calls and forwarding.
fn calls_only(model: &Model, doings: &[Doing]) -> DiGraph<(), ()> {
    let mut graph = DiGraph::with_capacity(model.entries.len(), model.entries.len());
    for _ in &model.entries {
        graph.add_node(());
    }
    for ((entry, doing), index) in model.entries.iter().zip(doings).zip(0usize..) {
        let from = NodeIndex::new(index);
        for &(to, ..) in &doing.calls {
            graph.add_edge(from, NodeIndex::new(to.index()), ());
        }
        for forwarding in &entry.forwarding {
            graph.add_edge(from, NodeIndex::new(forwarding.to.index()), ());
        }
    }
    graph
}

fn doing(model: &Model, task: TaskId, body: &Body, leaving: &[Option<usize>], budget: &mut usize) -> Option<Doing> {
    let task = &model.tasks[task.index()];
    let speed = model.processors[task.processor.index()].speed;
    let mut doing = Doing::default();
    match body {
        Body::Phases(phases) => {
            for work in phases {
                doing.add(work, 1.0);
            }
            phases.iter().take(1).for_each(|work| doing.add_before_reply(work, 1.0, speed));
        }
        Body::Activities(first) => {
            let visits = visits(task, *first, leaving, budget)?;
            let mut all: Vec<_> = visits.into_iter().collect();
            all.sort_unstable_by_key(|&(id, _)| id);
            let parallel = task.precedences.iter().any(|precedence| matches!(precedence.fork, Some(Fork::And(_))));
            let replies = |id: &crate::ActivityId| !model.activities[id.index()].replies.is_empty();
            let answers_last = all.iter().all(|(id, _)| !replies(id) || leaving[id.index()].is_none());
            for (id, times) in all {
                let work = &model.activities[id.index()].work;
                doing.add(work, times);
                if !parallel && answers_last {
                    doing.add_before_reply(work, times, speed);
                }
            }
        }
    }
    Some(doing)
}

/// Reports entries that are called, but only by what no load reaches.
fn unreached(lint: &mut Lint<'_>) {
    let model = lint.model;
    let called = called(model);
    let sources = |id: &usize| called[*id].openly || is_source(model.tasks[model.entries[*id].task.index()].scheduling);
    let mut next: Vec<usize> = (0..model.entries.len()).filter(sources).collect();
    if next.is_empty() {
        return;
    }
    let graph = graph(model, true);
    let mut reached: FxHashSet<usize> = next.iter().copied().collect();
    while let Some(node) = next.pop() {
        next.extend(graph.neighbors(NodeIndex::new(node)).map(NodeIndex::index).filter(|&node| reached.insert(node)));
    }
    for (own, index) in called.iter().zip(0usize..) {
        if own.is_called() && !reached.contains(&index) {
            let message = format!("no load ever reaches the entry `{}`", model.entries[index].name);
            let warning = lint.warning(codes::NOT_REACHED, lint.entry(index.into()), message);
            warning.notes.push("what calls it is itself called by nothing that a user or an arrival begins".to_owned());
        }
    }
}

/// Reports users whose cycles take no time at all.
fn timeless(lint: &mut Lint<'_>, order: &[EntryId], doings: &[Doing]) {
    let model = lint.model;
    let mut takes_time = vec![false; model.entries.len()];
    for &id in order.iter().rev() {
        let doing = &doings[id.index()];
        let waits = doing.calls.iter().any(|&(to, kind, _)| kind == CallKind::Synchronous && takes_time[to.index()]);
        let forwards = model.entries[id.index()].forwarding.iter().any(|to| takes_time[to.to.index()]);
        takes_time[id.index()] = doing.demand > 0.0 || doing.delay > 0.0 || waits || forwards;
    }
    for task in &model.tasks {
        let idle = !task.entries.iter().any(|id| takes_time[id.index()]);
        if is_source(task.scheduling) && task.think_time == 0.0 && idle && !task.entries.is_empty() {
            let message = format!("a cycle of the reference task `{}` takes no time", task.name);
            let warning = lint.warning(codes::TIMELESS, format!("task `{}`", task.name), message);
            warning.notes.push("there would be infinitely many of them in a second".to_owned());
            warning
                .hints
                .push("give it a think time, or one of its entries or those that it waits for a demand".to_owned());
        }
    }
}

/// Reports processors, groups with a cap and tasks that open arrivals alone keep busy all the time. Replicated models are
/// left out.
fn saturated(lint: &mut Lint<'_>, order: &[EntryId], doings: &[Doing]) {
    let model = lint.model;
    let replicated =
        model.tasks.iter().any(|task| task.replicas > 1 || !task.fan_in.is_empty() || !task.fan_out.is_empty())
            || model.processors.iter().any(|processor| processor.replicas > 1);
    if replicated || !model.entries.iter().any(|entry| entry.open_arrival_rate.is_some()) {
        return;
    }
    let mut rates: Vec<f64> = model.entries.iter().map(|entry| entry.open_arrival_rate.unwrap_or_default()).collect();
    for &id in order {
        let rate = rates[id.index()];
        for &(to, _, mean) in &doings[id.index()].calls {
            rates[to.index()] += rate * mean;
        }
        for forwarding in &model.entries[id.index()].forwarding {
            rates[forwarding.to.index()] += rate * forwarding.probability;
        }
    }
    let mut holding = vec![0.0; model.entries.len()];
    for &id in order.iter().rev() {
        let doing = &doings[id.index()];
        let waits: f64 = doing.until_reply_calls.iter().map(|&(to, mean)| mean * holding[to.index()]).sum();
        holding[id.index()] = doing.until_reply + waits;
    }
    let mut busy = vec![0.0; model.processors.len()];
    for (entry, index) in model.entries.iter().zip(0usize..) {
        let processor = model.tasks[entry.task.index()].processor;
        busy[processor.index()] += rates[index] * doings[index].demand / model.processors[processor.index()].speed;
    }
    let mut full: Vec<(String, String, f64)> = Vec::new();
    for (processor, &busy) in model.processors.iter().zip(&busy) {
        full.extend(
            overload(processor.multiplicity, busy)
                .map(|share| ("processor".to_owned(), processor.name.to_string(), share)),
        );
    }
    for task in &model.tasks {
        let busy: f64 = task.entries.iter().map(|id| rates[id.index()] * holding[id.index()]).sum();
        full.extend(overload(task.multiplicity, busy).map(|share| ("task".to_owned(), task.name.to_string(), share)));
    }
    for (group, index) in model.groups.iter().zip(0usize..).filter(|(group, _)| group.cap) {
        let Multiplicity::Finite(servers) = model.processors[group.processor.index()].multiplicity else { continue };
        let members = model.tasks.iter().filter(|task| task.group == Some(index.into()));
        let entries = members.flat_map(|task| &task.entries);
        let speed = model.processors[group.processor.index()].speed;
        let busy: f64 = entries.map(|id| rates[id.index()] * doings[id.index()].demand / speed).sum();
        let most = group.share * f64::from(servers.max(1));
        if most > 0.0 && busy >= most {
            let message = format!("open arrivals alone take more than the cap leaves the group `{}`", group.name);
            let warning = lint.warning(codes::SATURATED, format!("group `{}`", group.name), message);
            warning.notes.push(format!("{busy} of its processor's servers would be busy, and it may have {most}"));
            warning.hints.push("fewer arrivals, smaller demands, or a larger share".to_owned());
        }
    }
    for (kind, name, share) in full {
        let message =
            format!("open arrivals alone keep the {kind} `{name}` busy for {:.0} % of the time", share * 100.0);
        let warning = lint.warning(codes::SATURATED, format!("{kind} `{name}`"), message);
        warning.notes.push("its queue grows without end".to_owned());
        warning.hints.push("fewer arrivals, smaller demands, or more servers".to_owned());
    }
}

/// The share of its servers that is busy, where that is all of them or more.
fn overload(servers: Multiplicity, busy: f64) -> Option<f64> {
    match servers {
        Multiplicity::Infinite => None,
        Multiplicity::Finite(servers) => {
            let share = busy / f64::from(servers.max(1));
            (share.is_finite() && share >= 1.0).then_some(share)
        }
    }
}

/// How many entries are looked at whose task may wait for itself: each costs a walk through the model.
const LOOKED_AT: usize = 500;

/// Reports tasks whose threads wait for calls that need a further thread of the same task.
fn waiting_for_itself(lint: &mut Lint<'_>, doings: &[Doing]) {
    let model = lint.model;
    let mut graph: DiGraph<(), ()> = DiGraph::with_capacity(model.tasks.len(), model.entries.len());
    for _ in &model.tasks {
        graph.add_node(());
    }
    let mut connect = |from: TaskId, to: EntryId| {
        let to = model.entries[to.index()].task;
        graph.add_edge(NodeIndex::new(from.index()), NodeIndex::new(to.index()), ());
    };
    for (entry, doing) in model.entries.iter().zip(doings) {
        doing.waits_for().for_each(|to| connect(entry.task, to));
        entry.forwarding.iter().for_each(|forwarding| connect(entry.task, forwarding.to));
    }
    let circles = kosaraju_scc(&graph).into_iter();
    let circles = circles.filter(|tasks| tasks.len() > 1 || graph.contains_edge(tasks[0], tasks[0]));
    let mut suspects: Vec<usize> = circles.flatten().map(NodeIndex::index).collect();
    suspects.sort_unstable();
    let mut left = LOOKED_AT;
    for task in suspects {
        let own = &model.tasks[task];
        let Multiplicity::Finite(threads) = own.multiplicity else { continue };
        let locks = matches!(own.scheduling, Scheduling::Semaphore | Scheduling::ReadWriteLock);
        if locks || is_source(own.scheduling) {
            continue;
        }
        let looked_at = own.entries.iter().take(left);
        left -= looked_at.len();
        let found = looked_at.copied().find_map(|from| Some((from, comes_back(model, doings, from)?)));
        let Some((from, to)) = found else { continue };
        let message = format!(
            "the task `{}` comes to wait for itself: a call of the {} leads to the {}",
            own.name,
            lint.entry(from),
            lint.entry(to)
        );
        let item = format!("task `{}`", own.name);
        let warning = lint.warning(codes::SELF_WAIT, item, message);
        warning.notes.push(if threads == 1 {
            "when its one thread waits so, none is left to answer".to_owned()
        } else {
            format!("when all of its {threads} threads wait so, none is left to answer")
        });
        warning.hints.push("split the task, or give it threads without limit".to_owned());
    }
}

/// An entry of the same task that a caller waits for while it waits for the calls of `from`.
fn comes_back(model: &Model, doings: &[Doing], from: EntryId) -> Option<EntryId> {
    let task = model.entries[from.index()].task;
    let mut seen: FxHashSet<EntryId> = FxHashSet::default();
    let mut next: Vec<EntryId> = doings[from.index()].waits_for().collect();
    while let Some(id) = next.pop() {
        if !seen.insert(id) {
            continue;
        }
        let entry = &model.entries[id.index()];
        if entry.task == task {
            return Some(id);
        }
        next.extend(doings[id.index()].waits_for());
        next.extend(entry.forwarding.iter().map(|forwarding| forwarding.to));
    }
    None
}
