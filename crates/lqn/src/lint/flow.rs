//! Graphs of activities: which activity follows which, and which ones reply.

use petgraph::unionfind::UnionFind;

use crate::flow::ActivityGraph;
use crate::invocation::Invocation;
use crate::lint::calls::called;
use crate::lint::references::activities_of;
use crate::lint::values::TOLERANCE;
use crate::lint::{LIMIT, Lint, forks};
use crate::{ActivityId, Body, EntryId, Model, Scheduling, Task, TaskId, codes};

/// Reports what is wrong with the order of activities.
pub(super) fn check(lint: &mut Lint<'_>) {
    let model = lint.model;
    let graph = ActivityGraph::new(model);
    // The precedence on whose right side each activity stands, by position in its task.
    let mut arriving = vec![None; model.activities.len()];
    let mut starts: Vec<Vec<ActivityId>> = vec![Vec::new(); model.tasks.len()];
    let mut first_of: Vec<Option<EntryId>> = vec![None; model.activities.len()];
    for (entry, index) in model.entries.iter().zip(0usize..) {
        let Body::Activities(first) = entry.body else { continue };
        starts[entry.task.index()].push(first);
        if let Some(other) = first_of[first.index()].replace(index.into()) {
            let message =
                format!("the {} and the {} begin with one activity", lint.entry(other), lint.entry(index.into()));
            lint.error(codes::AMBIGUOUS_FLOW, lint.activity(first), message);
        }
    }
    for ((task, starts), index) in model.tasks.iter().zip(&starts).zip(0usize..) {
        if task.activities.is_empty() {
            continue;
        }
        sides(lint, task, &graph, &mut arriving);
        for &start in starts {
            if arriving[start.index()].is_some() {
                let message = format!("an entry begins with the {}, to which others lead", lint.activity(start));
                lint.error(codes::AMBIGUOUS_FLOW, lint.activity(start), message);
            }
        }
        unreachable(lint, TaskId::from(index), starts, &graph);
        forks::check(lint, TaskId::from(index), starts, &graph);
    }
    replies(lint, &graph);
}

/// Notes which precedence leads to each activity; an activity in two precedences on the same side is an error.
fn sides(lint: &mut Lint<'_>, task: &Task, graph: &ActivityGraph<'_>, arriving: &mut [Option<usize>]) {
    for (precedence, number) in task.precedences.iter().zip(0usize..) {
        for &activity in precedence.join.activities() {
            if graph.leaving(activity).is_some_and(|other| other != number) {
                let message = format!("the {} leads on in two ways", lint.activity(activity));
                let error = lint.error(codes::AMBIGUOUS_FLOW, lint.activity(activity), message);
                error.hints.push("say with a fork whether one of them follows or all".to_owned());
            }
        }
        for activity in precedence.followers() {
            if *arriving[activity.index()].get_or_insert(number) != number {
                let message = format!("the {} follows in two ways", lint.activity(activity));
                let error = lint.error(codes::AMBIGUOUS_FLOW, lint.activity(activity), message);
                error.hints.push("say with a join whether it waits for one of them or all".to_owned());
            }
        }
    }
}

/// Reports activities that no entry leads to.
fn unreachable(lint: &mut Lint<'_>, id: TaskId, starts: &[ActivityId], graph: &ActivityGraph<'_>) {
    let model = lint.model;
    let task = &model.tasks[id.index()];
    let reached = graph.reached(id, starts);
    for &activity in &task.activities {
        if !reached.contains(&activity) {
            let message = format!("nothing leads to the {}", lint.activity(activity));
            lint.error(codes::UNREACHABLE, lint.activity(activity), message);
        }
    }
}

/// Reports entries made of activities that callers wait for, where none of the activities that hang together with the
/// first one answers; and reference tasks that answer.
fn replies(lint: &mut Lint<'_>, graph: &ActivityGraph<'_>) {
    let model = lint.model;
    let called = called(model);
    let together = connected(model);
    let mut room = LIMIT;
    // How often something is done follows from the order of activities, if that is sound.
    let unsound = [codes::BAD_PROBABILITY, codes::JOIN_WITHOUT_FORK, codes::ACTIVITY_CYCLE, codes::AMBIGUOUS_FLOW];
    let sound = !lint.findings.iter().any(|finding| unsound.contains(&finding.code));
    let mut answered = vec![false; model.entries.len()];
    for (activity, index) in model.activities.iter().zip(0usize..) {
        for &entry in &activity.replies {
            let is_first = |first: ActivityId| together.equiv(first.index(), index);
            answered[entry.index()] |=
                matches!(model.entries[entry.index()].body, Body::Activities(first) if is_first(first));
            let task = &model.tasks[activity.task.index()];
            if task.scheduling == Scheduling::Reference {
                let message =
                    format!("the {} answers, but nothing calls a reference task", lint.activity(index.into()));
                lint.error(codes::REFERENCE_CALLED, lint.activity(index.into()), message);
            } else if matches!(model.entries[entry.index()].body, Body::Phases(_)) {
                let message = format!(
                    "the {} answers the {}, which is made of phases",
                    lint.activity(index.into()),
                    lint.entry(entry)
                );
                lint.error(codes::CONTRADICTION, lint.activity(index.into()), message);
            }
        }
    }
    for (entry, index) in model.entries.iter().zip(0usize..) {
        let waited_for = called[index].synchronously || called[index].by_forwarding;
        let forwards = !entry.forwarding.is_empty();
        if waited_for && !forwards && !answered[index] && matches!(entry.body, Body::Activities(_)) {
            let message = format!("callers wait for the entry `{}`, but none of its activities answers", entry.name);
            let error = lint.error(codes::NO_REPLY, lint.entry(index.into()), message);
            error.hints.push(format!("mark the activity that answers: `activity[{}]`", entry.name));
        } else if sound && waited_for && !forwards && answered[index] {
            once(lint, index.into(), graph, &mut room);
        }
    }
}

/// Reports an entry that answers more or less often than once in an invocation, while there is room for its activities.
fn once(lint: &mut Lint<'_>, id: EntryId, graph: &ActivityGraph<'_>, room: &mut usize) {
    let model = lint.model;
    let entry = &model.entries[id.index()];
    if *room == 0 {
        return;
    }
    let Ok(invocation) = Invocation::new(model, graph, id) else { return };
    *room = room.saturating_sub(invocation.len());
    let mut answering: Vec<(ActivityId, f64)> = invocation.executions().into_iter().collect();
    answering.retain(|(activity, _)| model.activities[activity.index()].replies.contains(&id));
    answering.sort_unstable_by_key(|&(activity, _)| activity);
    let total: f64 = answering.iter().map(|&(_, times)| times).sum();
    if (total - 1.0).abs() <= TOLERANCE {
        return;
    }
    let names: Vec<String> =
        answering.iter().map(|(own, _)| format!("`{}`", model.activities[own.index()].name)).collect();
    let message = if total < 1.0 {
        format!("the entry `{}` answers in {:.0} % of its invocations only", entry.name, total * 100.0)
    } else {
        format!("the entry `{}` answers {total} times in an invocation", entry.name)
    };
    let answers = if names.len() == 1 { "answers" } else { "answer" };
    let note = format!("{} {answers}", names.iter().take(5).cloned().collect::<Vec<_>>().join(", "));
    let error = lint.error(codes::NOT_ONE_REPLY, lint.entry(id), message);
    error.notes.push(note);
    error.hints.push("exactly one activity on each way through the graph answers".to_owned());
}

/// Sets of activities that hang together.
fn connected(model: &Model) -> UnionFind<usize> {
    let mut sets = UnionFind::new(model.activities.len());
    for precedence in model.tasks.iter().flat_map(|task| &task.precedences) {
        let mut activities = activities_of(precedence);
        if let Some(first) = activities.next() {
            for other in activities {
                sets.union(first.index(), other.index());
            }
        }
    }
    sets
}
