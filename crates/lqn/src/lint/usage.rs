//! What is said and means nothing: elements that nobody uses, values that nobody heeds, numbers of replicas that do not fit.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::lint::Lint;
use crate::lint::values::TOLERANCE;
use crate::{Body, Dispatching, Model, Scheduling, SemaphoreRole, Task, TaskId, Work, codes};
use dyelog_diagnostic::Severity;

/// Reports what means nothing.
pub(super) fn check(lint: &mut Lint<'_>) {
    unused(lint);
    idle(lint);
    unheeded(lint);
    replication(lint);
    locks(lint);
}

/// Processors and groups without tasks, and groups that share out too much.
fn unused(lint: &mut Lint<'_>) {
    let model = lint.model;
    let used: FxHashSet<usize> = model.tasks.iter().map(|task| task.processor.index()).collect();
    for (processor, index) in model.processors.iter().zip(0usize..) {
        if !used.contains(&index) {
            let message = format!("no task runs on the processor `{}`", processor.name);
            lint.warning(codes::UNUSED, format!("processor `{}`", processor.name), message);
        }
    }
    let used: FxHashSet<usize> = model.tasks.iter().filter_map(|task| Some(task.group?.index())).collect();
    let mut shares = vec![0.0; model.processors.len()];
    for (group, index) in model.groups.iter().zip(0usize..) {
        shares[group.processor.index()] += group.share;
        let item = format!("group `{}`", group.name);
        if !used.contains(&index) {
            lint.warning(codes::UNUSED, item.clone(), format!("no task is in the group `{}`", group.name));
        }
        let processor = &model.processors[group.processor.index()];
        if processor.scheduling != Scheduling::CompletelyFair {
            let message = format!("the processor `{}` heeds no groups", processor.name);
            lint.warning(codes::UNHEEDED, item, message).hints.push("only completely fair scheduling does".to_owned());
        }
    }
    for (processor, &total) in model.processors.iter().zip(&shares) {
        if total > 1.0 + TOLERANCE {
            let message = format!("the groups of the processor `{}` have shares of {total} together", processor.name);
            lint.error(codes::BAD_PROBABILITY, format!("processor `{}`", processor.name), message);
        }
    }
}

fn does_nothing(work: &Work) -> bool {
    work.demand == 0.0 && work.think_time == 0.0 && work.calls.is_empty()
}

/// Entries that do nothing at all. Those of locks need not.
fn idle(lint: &mut Lint<'_>) {
    let model = lint.model;
    // Whether no activity of a task does anything.
    let idle_graph = |task: &Task| task.activities.iter().all(|id| does_nothing(&model.activities[id.index()].work));
    let idle_graphs: Vec<bool> = model.tasks.iter().map(idle_graph).collect();
    for (entry, index) in model.entries.iter().zip(0usize..) {
        let task = &model.tasks[entry.task.index()];
        let nothing = match &entry.body {
            Body::Phases(phases) => phases.iter().all(does_nothing),
            Body::Activities(_) => idle_graphs[entry.task.index()],
        };
        // Users without work have a finding of their own where they do not think either.
        if nothing && entry.forwarding.is_empty() && entry.semaphore.is_none() && !task.scheduling.is_source() {
            let message = format!("the entry `{}` has no demand and calls nothing", entry.name);
            lint.warning(codes::IDLE_ENTRY, lint.entry(index.into()), message);
        }
    }
}

/// Think times and priorities where nobody heeds them.
fn unheeded(lint: &mut Lint<'_>) {
    let model = lint.model;
    let by_priority = |scheduling| matches!(scheduling, Scheduling::HeadOfLine | Scheduling::PreemptivePriority);
    for task in &model.tasks {
        let item = format!("task `{}`", task.name);
        if task.think_time != 0.0 && !task.scheduling.is_source() {
            let message = format!("the task `{}` is no reference task: its think time means nothing", task.name);
            let warning = lint.warning(codes::UNHEEDED, item.clone(), message);
            warning.hints.push("a phase may have a think time of its own".to_owned());
        }
        if task.dispatching != Dispatching::FanOut && task.replicas <= 1 {
            let message = format!("the task `{}` has one copy: how requests are dispatched means nothing", task.name);
            lint.warning(codes::UNHEEDED, item.clone(), message);
        }
        let processor = &model.processors[task.processor.index()];
        if task.priority != 0 && !by_priority(processor.scheduling) {
            let message = format!(
                "the processor `{}` serves without regard to the priority of the task `{}`",
                processor.name, task.name
            );
            lint.report(Severity::Note, codes::UNHEEDED, item, message);
        }
        for &id in &task.entries {
            let entry = &model.entries[id.index()];
            if entry.priority.is_some_and(|priority| priority != 0) && !by_priority(task.scheduling) {
                let message = format!(
                    "the task `{}` serves without regard to the priority of the entry `{}`",
                    task.name, entry.name
                );
                lint.report(Severity::Note, codes::UNHEEDED, lint.entry(id), message);
            }
        }
    }
}

/// The pairs of tasks of which the first calls the second, in the order of the model.
fn callers(model: &Model) -> Vec<(TaskId, TaskId)> {
    let mut seen = FxHashSet::default();
    let mut pairs = Vec::new();
    let mut add = |from: TaskId, work: &Work| {
        for call in &work.calls {
            let pair = (from, model.entries[call.to.index()].task);
            if seen.insert(pair) {
                pairs.push(pair);
            }
        }
    };
    for entry in &model.entries {
        if let Body::Phases(phases) = &entry.body {
            for work in phases {
                add(entry.task, work);
            }
        }
    }
    model.activities.iter().for_each(|activity| add(activity.task, &activity.work));
    for entry in &model.entries {
        for forwarding in &entry.forwarding {
            let pair = (entry.task, model.entries[forwarding.to.index()].task);
            if seen.insert(pair) {
                pairs.push(pair);
            }
        }
    }
    pairs
}

/// Numbers of replicas: what goes out from all replicas of a caller comes in at all those of a server.
fn replication(lint: &mut Lint<'_>) {
    let model = lint.model;
    let fans = |fans: &dyn Fn(&Task) -> Vec<(TaskId, u32)>| -> FxHashMap<(TaskId, TaskId), u32> {
        let own = |(task, index): (&Task, usize)| {
            fans(task).into_iter().map(move |(other, number)| ((index.into(), other), number)).collect::<Vec<_>>()
        };
        model.tasks.iter().zip(0usize..).flat_map(own).collect()
    };
    let fan_out = fans(&|task| task.fan_out.clone());
    let fan_in = fans(&|task| task.fan_in.clone());
    let calling = callers(model);
    for &(from, to) in &calling {
        let (caller, server) = (&model.tasks[from.index()], &model.tasks[to.index()]);
        let out = fan_out.get(&(from, to)).copied().unwrap_or(1);
        let into = fan_in.get(&(to, from)).copied().unwrap_or(1);
        let (sent, taken) = (u64::from(caller.replicas) * u64::from(out), u64::from(server.replicas) * u64::from(into));
        if sent != taken {
            let message = format!(
                "{} × {out} calls from replicas of the task `{}` meet {} × {into} at those of `{}`",
                caller.replicas, caller.name, server.replicas, server.name
            );
            let error = lint.error(codes::REPLICATION, format!("task `{}`", caller.name), message);
            error.notes.push("replicas × fan-out of the caller must equal replicas × fan-in of the server".to_owned());
        }
    }
    let calling: FxHashSet<(TaskId, TaskId)> = calling.into_iter().collect();
    for (task, index) in model.tasks.iter().zip(0usize..) {
        let id = TaskId::from(index);
        let outward = task.fan_out.iter().map(|&(other, _)| ((id, other), other, "fan-out to"));
        let inward = task.fan_in.iter().map(|&(other, _)| ((other, id), other, "fan-in from"));
        for (pair, other, word) in outward.chain(inward) {
            if !calling.contains(&pair) {
                let other = &model.tasks[other.index()].name;
                let message = format!("the task `{}` has a {word} `{other}`, but there are no such calls", task.name);
                lint.warning(codes::UNHEEDED, format!("task `{}`", task.name), message);
            }
        }
        let processor = &model.processors[task.processor.index()];
        if processor.replicas > 0 && task.replicas % processor.replicas != 0 {
            let message = format!(
                "{} replicas of the task `{}` cannot be spread evenly over {} of the processor `{}`",
                task.replicas, task.name, processor.replicas, processor.name
            );
            lint.error(codes::REPLICATION, format!("task `{}`", task.name), message);
        }
    }
}

/// Locks whose entries do not take and release them.
fn locks(lint: &mut Lint<'_>) {
    use SemaphoreRole::{ReadLock, ReadUnlock, Signal, Wait, WriteLock, WriteUnlock};
    let model = lint.model;
    for task in &model.tasks {
        let wanted: &[SemaphoreRole] = match task.scheduling {
            Scheduling::Semaphore => &[Signal, Wait],
            Scheduling::ReadWriteLock => &[ReadLock, ReadUnlock, WriteLock, WriteUnlock],
            _ => &[],
        };
        let entries = task.entries.iter().map(|id| (&model.entries[id.index()], *id));
        if wanted.is_empty() {
            // Tools that do not know the order of service of locks mark them by the roles of their entries alone.
            let roles: Vec<SemaphoreRole> = entries.filter_map(|(entry, _)| entry.semaphore).collect();
            let whole = |set: &[SemaphoreRole]| set.iter().all(|role| roles.contains(role));
            if !roles.is_empty() && !whole(&[Signal, Wait]) && !whole(&[ReadLock, ReadUnlock, WriteLock, WriteUnlock]) {
                let message =
                    format!("the entries of the task `{}` are part of a lock that has not all of its parts", task.name);
                lint.error(codes::LOCK_ROLES, format!("task `{}`", task.name), message);
            }
            continue;
        }
        let roles: Vec<SemaphoreRole> = entries.filter_map(|(entry, _)| entry.semaphore).collect();
        let right = roles.len() == wanted.len()
            && task.entries.len() == wanted.len()
            && wanted.iter().all(|role| roles.contains(role));
        if !right {
            let message = format!("the lock `{}` needs {} entries, one for each of its parts", task.name, wanted.len());
            lint.error(codes::LOCK_ROLES, format!("task `{}`", task.name), message);
        }
    }
}
