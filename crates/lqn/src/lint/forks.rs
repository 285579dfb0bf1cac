//! Whether what an AND-join waits for runs in parallel.
//!
//! Every activity runs in a context: the branches of forks and loops that it lies in. Contexts form a tree. The activities
//! of an AND-join run in parallel if the paths from their contexts up the tree part only at AND-forks.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::lint::Lint;
use crate::lint::flow::Arcs;
use crate::{ActivityId, Fork, Join, Precedence, Task, codes};
use dyelog_diagnostic::Severity;

/// A branch of a fork.
struct Context {
    /// The context of the fork; the root is its own.
    parent: usize,
    /// How many branches lie around this one.
    depth: usize,
    /// The fork, by position of its precedence in the task.
    fork: usize,
    /// Whether all branches of the fork are taken.
    parallel: bool,
}

struct Contexts {
    tree: Vec<Context>,
}

impl Contexts {
    const ROOT: usize = 0;

    fn new() -> Self {
        Self { tree: vec![Context { parent: Self::ROOT, depth: 0, fork: usize::MAX, parallel: false }] }
    }

    fn branch(&mut self, parent: usize, fork: usize, parallel: bool) -> usize {
        let depth = self.tree[parent].depth + 1;
        self.tree.push(Context { parent, depth, fork, parallel });
        self.tree.len() - 1
    }

    /// The innermost context around all of the contexts, and whether below it they part at AND-forks only. Adds the forks at
    /// which they part.
    ///
    /// Climbs from the deepest context to its parent until one is left, so the cost is that of the tree between them.
    fn around(&self, ends: &[usize], parted: &mut FxHashSet<usize>) -> (usize, bool) {
        let mut climbing: BTreeSet<(usize, usize)> = ends.iter().map(|&end| (self.tree[end].depth, end)).collect();
        let distinct: FxHashSet<usize> = ends.iter().copied().collect();
        let mut in_parallel = distinct.len() == ends.len();
        // By context, the fork at which paths part below it.
        let mut parting: FxHashMap<usize, usize> = FxHashMap::default();
        while climbing.len() > 1
            && let Some((depth, node)) = climbing.pop_last()
        {
            let Context { parent, fork, parallel, .. } = self.tree[node];
            let parts_elsewhere = parting.insert(parent, fork).is_some_and(|other| other != fork || !parallel);
            in_parallel &= !parts_elsewhere && !distinct.contains(&parent);
            climbing.insert((depth.saturating_sub(1), parent));
        }
        parted.extend(parting.into_values());
        (climbing.pop_last().map_or(Self::ROOT, |(_, node)| node), in_parallel)
    }
}

/// Reports AND-joins of activities that do not run in parallel.
pub(super) fn check(lint: &mut Lint<'_>, task: &Task, starts: &[ActivityId], arcs: &Arcs) {
    let mut contexts = Contexts::new();
    let mut context_of: FxHashMap<ActivityId, usize> = FxHashMap::default();
    let mut waiting: Vec<usize> =
        task.precedences.iter().map(|precedence| precedence.join.activities().len()).collect();
    let mut next: Vec<(ActivityId, usize)> = starts.iter().map(|&start| (start, Contexts::ROOT)).collect();
    let (mut forked, mut joined) = (Vec::new(), FxHashSet::default());
    while let Some((activity, context)) = next.pop() {
        if context_of.contains_key(&activity) {
            continue;
        }
        context_of.insert(activity, context);
        let Some(number) = arcs.leaving[activity.index()] else { continue };
        waiting[number] = waiting[number].saturating_sub(1);
        if waiting[number] > 0 {
            continue;
        }
        let precedence = &task.precedences[number];
        let ends: Vec<usize> =
            precedence.join.activities().iter().filter_map(|before| context_of.get(before).copied()).collect();
        let mut parted = FxHashSet::default();
        let (around, in_parallel) = contexts.around(&ends, &mut parted);
        if matches!(precedence.join, Join::And { .. }) {
            joined.extend(parted);
            if !in_parallel {
                report(lint, precedence);
            }
        }
        if let Some(Fork::And(activities)) = &precedence.fork {
            forked.push((number, activities));
        }
        follow(precedence, number, around, &mut contexts, &mut next);
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

/// Adds what follows a precedence, each activity with its context.
fn follow(
    precedence: &Precedence,
    number: usize,
    around: usize,
    contexts: &mut Contexts,
    next: &mut Vec<(ActivityId, usize)>,
) {
    match &precedence.fork {
        None => {}
        Some(Fork::Sequence(activity)) => next.push((*activity, around)),
        Some(Fork::And(activities)) => {
            next.extend(activities.iter().map(|&activity| (activity, contexts.branch(around, number, true))));
        }
        Some(Fork::Or(branches)) => {
            next.extend(branches.iter().map(|&(_, activity)| (activity, contexts.branch(around, number, false))));
        }
        Some(Fork::Loop { bodies, end }) => {
            next.extend(bodies.iter().map(|&(_, activity)| (activity, contexts.branch(around, number, false))));
            next.extend(end.map(|end| (end, around)));
        }
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
