//! Whether what an AND-join waits for runs in parallel.
//!
//! The activities of an AND-join run in parallel if the branches that they lie in part only at AND-forks.

use rustc_hash::FxHashSet;

use crate::flow::{ActivityGraph, Visit};
use crate::lint::Lint;
use crate::{ActivityId, Fork, Join, Precedence, TaskId, codes};
use dyelog_diagnostic::Severity;

/// Reports AND-joins of activities that do not run in parallel.
pub(super) fn check(lint: &mut Lint<'_>, task: TaskId, starts: &[ActivityId], graph: &ActivityGraph<'_>) {
    let model = lint.model;
    let (mut forked, mut joined) = (Vec::new(), FxHashSet::default());
    for visit in graph.walk(task, starts).visits {
        let Visit::Precedence { number, in_parallel, parting, .. } = visit else { continue };
        let precedence = &model.tasks[task.index()].precedences[number];
        if matches!(precedence.join, Join::And { .. }) {
            joined.extend(parting);
            if !in_parallel {
                report(lint, precedence);
            }
        }
        if let Some(Fork::And(activities)) = &precedence.fork {
            forked.push((number, activities));
        }
    }
    forked.sort_unstable_by_key(|&(number, _)| number);
    never_joined(lint, forked, &joined);
}

/// Reports AND-forks of which no join waits for any branches.
fn never_joined(lint: &mut Lint<'_>, forked: Vec<(usize, &Vec<ActivityId>)>, joined: &FxHashSet<usize>) {
    for (number, activities) in forked {
        if joined.contains(&number) || activities.is_empty() {
            continue;
        }
        let names: Vec<&str> = activities.iter().take(5).map(|id| &*lint.model.activities[id.index()].name).collect();
        let more = if activities.len() > names.len() { " …" } else { "" };
        let message = format!("the fork into {}{more} is never joined", names.join(" & "));
        let note = lint.report(Severity::Note, codes::NEVER_JOINED, lint.activity(activities[0]), message);
        note.notes.push("the task is busy until the last of the branches ends".to_owned());
    }
}

fn report(lint: &mut Lint<'_>, precedence: &Precedence) {
    let activities = precedence.join.activities();
    let names: Vec<&str> = activities.iter().take(5).map(|id| &*lint.model.activities[id.index()].name).collect();
    let more = if activities.len() > names.len() { " …" } else { "" };
    let message = format!("the join of {}{more} waits for activities that no fork runs in parallel", names.join(" & "));
    let error = lint.error(codes::JOIN_WITHOUT_FORK, lint.activity(activities[0]), message);
    error.hints.push("fork into them with `&`, or join them with `+`".to_owned());
}
