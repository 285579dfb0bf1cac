//! What the load comes to: entries that it never reaches, cycles that take no time, stations that cannot keep up with open
//! arrivals, tasks that come to wait for themselves.

use petgraph::graph::NodeIndex;
use rustc_hash::FxHashSet;

use crate::bounds::{Resource, limits};
use crate::lint::calls::{called, graph};
use crate::lint::{LIMIT, Lint};
use crate::operational::OperationalAnalysis;
use crate::self_wait::{SelfWait, self_waits};
use crate::{Multiplicity, codes};

/// Reports what the load comes to. Models whose entries call each other in a circle have been reported.
pub(super) fn check(lint: &mut Lint<'_>) {
    unreached(lint);
    let model = lint.model;
    // Circles, and activities without a meaning, have been reported.
    let Ok(analysis) = OperationalAnalysis::new(model, LIMIT) else { return };
    timeless(lint, &analysis);
    saturated(lint, &analysis);
    waiting_for_itself(lint, &analysis);
}

/// Reports entries that are called, but only by what no load reaches.
fn unreached(lint: &mut Lint<'_>) {
    let model = lint.model;
    let called = called(model);
    let sources =
        |id: &usize| called[*id].openly || model.tasks[model.entries[*id].task.index()].scheduling.is_source();
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
fn timeless(lint: &mut Lint<'_>, analysis: &OperationalAnalysis<'_>) {
    let model = lint.model;
    let mut takes_time = vec![false; model.entries.len()];
    for &id in analysis.order.iter().rev() {
        let mean = &analysis.means[id.index()];
        let waits = mean.waits_for().any(|to| takes_time[to.index()]);
        let forwards = model.entries[id.index()].forwarding.iter().any(|to| takes_time[to.to.index()]);
        takes_time[id.index()] = mean.demand != 0.0 || mean.delay > 0.0 || waits || forwards;
    }
    for task in &model.tasks {
        let idle = !task.entries.iter().any(|id| takes_time[id.index()]);
        if task.scheduling.is_source() && task.think_time == 0.0 && idle && !task.entries.is_empty() {
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
fn saturated(lint: &mut Lint<'_>, analysis: &OperationalAnalysis<'_>) {
    let model = lint.model;
    let replicated =
        model.tasks.iter().any(|task| task.replicas > 1 || !task.fan_in.is_empty() || !task.fan_out.is_empty())
            || model.processors.iter().any(|processor| processor.replicas > 1);
    if replicated || !model.entries.iter().any(|entry| entry.open_arrival_rate.is_some()) {
        return;
    }
    saturated_groups(lint, analysis);
    // What a second's arrivals ask for is the part of the time in which it is busy.
    let mut full = limits(analysis, &analysis.open_rates(), &analysis.holding_times());
    full.retain(|limit| limit.seconds.is_finite() && limit.utilization(1.0) >= 1.0);
    full.sort_unstable_by_key(|limit| limit.resource);
    for limit in full {
        let (kind, name) = match limit.resource {
            Resource::Processor(id) => ("processor", &model.processors[id.index()].name),
            Resource::Task(id) => ("task", &model.tasks[id.index()].name),
        };
        let busy = limit.utilization(1.0) * 100.0;
        let message = format!("open arrivals alone keep the {kind} `{name}` busy for {busy:.0} % of the time");
        let warning = lint.warning(codes::SATURATED, format!("{kind} `{name}`"), message);
        warning.notes.push("its queue grows without end".to_owned());
        warning.hints.push("fewer arrivals, smaller demands, or more servers".to_owned());
    }
}

/// Reports groups whose cap is less than open arrivals alone ask for.
fn saturated_groups(lint: &mut Lint<'_>, analysis: &OperationalAnalysis<'_>) {
    let model = lint.model;
    if !model.groups.iter().any(|group| group.cap) {
        return;
    }
    let rates = analysis.open_rates();
    let mut busy = vec![0.0; model.groups.len()];
    for (entry, (mean, rate)) in model.entries.iter().zip(analysis.means.iter().zip(&rates)) {
        if let Some(group) = model.tasks[entry.task.index()].group {
            busy[group.index()] += rate * mean.demand;
        }
    }
    for (group, busy) in model.groups.iter().zip(busy).filter(|(group, _)| group.cap) {
        let Multiplicity::Finite(servers) = model.processors[group.processor.index()].multiplicity else { continue };
        let most = group.share * f64::from(servers.max(1));
        if most > 0.0 && busy >= most {
            let message = format!("open arrivals alone take more than the cap leaves the group `{}`", group.name);
            let warning = lint.warning(codes::SATURATED, format!("group `{}`", group.name), message);
            warning.notes.push(format!("{busy} of its processor's servers would be busy, and it may have {most}"));
            warning.hints.push("fewer arrivals, smaller demands, or a larger share".to_owned());
        }
    }
}

/// Reports tasks whose threads wait for calls that need a further thread of the same task.
fn waiting_for_itself(lint: &mut Lint<'_>, analysis: &OperationalAnalysis<'_>) {
    for SelfWait { task, threads, from, to } in self_waits(analysis) {
        let name = &lint.model.tasks[task.index()].name;
        let message = format!(
            "the task `{name}` comes to wait for itself: a call of the {} leads to the {}",
            lint.entry(from),
            lint.entry(to)
        );
        let warning = lint.warning(codes::SELF_WAIT, format!("task `{name}`"), message);
        warning.notes.push(if threads == 1 {
            "when its one thread waits so, none is left to answer".to_owned()
        } else {
            format!("when all of its {threads} threads wait so, none is left to answer")
        });
        warning.hints.push("split the task, or give it threads without limit".to_owned());
    }
}
