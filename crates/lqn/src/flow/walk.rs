//! The walk along an activity graph, and the branches that it runs through.

use std::collections::{BTreeSet, VecDeque};

use rustc_hash::{FxHashMap, FxHashSet};

use super::ActivityGraph;
use crate::{ActivityId, Fork, Join, Precedence, TaskId};

/// What keeps a walk from reaching all that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlowError {
    /// A precedence names an activity of another task.
    OtherTask(ActivityId),
    /// The activity follows in two ways without a join, or in a circle.
    TwoWays(ActivityId),
    /// A join waits for what comes after it.
    Circle,
}

/// What a branch begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchKind {
    /// The first activities: all of the invocation.
    Whole,
    /// An AND-fork: all branches are taken, in parallel.
    Parallel,
    /// An OR-fork: one of them is taken.
    Alternative,
    /// A loop: the body is repeated.
    Repeated,
}

/// A part of an invocation between a fork or loop and where its ways meet again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Branch {
    /// The branch that the fork lies in, by position; the first is its own.
    pub parent: usize,
    /// The fork, by position of its precedence in the task; of the first branch `usize::MAX`.
    pub fork: usize,
    /// What it begins with.
    pub kind: BranchKind,
    /// Its first activity; of the whole invocation none.
    first: Option<ActivityId>,
    /// How many branches lie around this one.
    depth: usize,
    /// The innermost parallel branch around it, itself included.
    parallel: Option<usize>,
}

/// A stop of the walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visit {
    /// An activity, once all that leads to it has been visited.
    Activity {
        /// The activity.
        activity: ActivityId,
        /// The branch that it lies in.
        branch: usize,
    },
    /// A precedence, once all activities on its left side that the walk reaches have been visited.
    Precedence {
        /// Its position in the task.
        number: usize,
        /// How many activities on its left side the walk reaches.
        joined: u32,
        /// The branch in which it goes on: the innermost one around all that it joins. An AND-join leaves a parallel branch at
        /// least.
        branch: usize,
        /// Whether what it joins parts at AND-forks only, each branch once.
        in_parallel: bool,
        /// The forks at which what it joins parts.
        parting: Vec<usize>,
    },
}

/// All that some activities lead to, in an order in which it can happen.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Walk {
    /// Activities and precedences. What follows comes later.
    pub visits: Vec<Visit>,
    /// The branches. The first is the whole invocation, and each comes after the one around it.
    pub branches: Vec<Branch>,
    /// By fork: its parallel branches from which a join further out goes on.
    left: FxHashMap<usize, BTreeSet<usize>>,
    /// What kept the walk from going on, if anything did: the visits are then a part of all.
    pub error: Option<FlowError>,
}

impl ActivityGraph<'_> {
    /// Walks from the first activities of a task.
    pub fn walk(&self, task: TaskId, starts: &[ActivityId]) -> Walk {
        let mut steps = Steps {
            graph: self,
            task,
            arrivals: FxHashMap::default(),
            ready: VecDeque::new(),
            walk: Walk { visits: Vec::new(), branches: vec![Branch::WHOLE], left: FxHashMap::default(), error: None },
        };
        steps.expect(starts);
        steps.ready.extend(starts.iter().map(|&start| (start, 0)));
        steps.go();
        steps.walk
    }
}

/// What has come to a precedence.
#[derive(Default)]
struct Arrivals {
    /// How many activities on its left side are reached.
    expected: u32,
    /// The branches of those that have been visited.
    ends: Vec<usize>,
}

struct Steps<'w> {
    graph: &'w ActivityGraph<'w>,
    task: TaskId,
    /// By precedence.
    arrivals: FxHashMap<usize, Arrivals>,
    ready: VecDeque<(ActivityId, usize)>,
    walk: Walk,
}

impl Steps<'_> {
    fn precedence(&self, number: usize) -> &Precedence {
        &self.graph.model.tasks[self.task.index()].precedences[number]
    }

    /// Counts the activities that lead into each precedence. Each activity is followed once, so that a circle ends.
    fn expect(&mut self, starts: &[ActivityId]) {
        let graph = self.graph;
        let mut error = None;
        let mut seen: FxHashSet<ActivityId> = FxHashSet::default();
        let mut next: Vec<ActivityId> = Vec::new();
        let mut reach = |activity: ActivityId, next: &mut Vec<ActivityId>, error: &mut Option<FlowError>| {
            if graph.model.activities[activity.index()].task != self.task {
                error.get_or_insert(FlowError::OtherTask(activity));
            } else if seen.insert(activity) {
                next.push(activity);
            } else {
                error.get_or_insert(FlowError::TwoWays(activity));
            }
        };
        for &start in starts {
            reach(start, &mut next, &mut error);
        }
        while let Some(activity) = next.pop() {
            let Some(number) = graph.leaving(activity) else { continue };
            let arrivals = self.arrivals.entry(number).or_default();
            arrivals.expected += 1;
            if arrivals.expected > 1 {
                continue;
            }
            let precedence = &graph.model.tasks[self.task.index()].precedences[number];
            let others = precedence.join.activities().iter().copied();
            let other = others.into_iter().find(|id| graph.model.activities[id.index()].task != self.task);
            if let Some(other) = other {
                error.get_or_insert(FlowError::OtherTask(other));
            }
            for follower in precedence.followers() {
                reach(follower, &mut next, &mut error);
            }
        }
        self.walk.error = error;
    }

    fn go(&mut self) {
        let mut visited: FxHashSet<ActivityId> = FxHashSet::default();
        while let Some((activity, branch)) = self.ready.pop_front() {
            let own = self.graph.model.activities[activity.index()].task == self.task;
            if !own || !visited.insert(activity) {
                continue;
            }
            self.walk.visits.push(Visit::Activity { activity, branch });
            let Some(number) = self.graph.leaving(activity) else { continue };
            let arrivals = self.arrivals.entry(number).or_default();
            arrivals.ends.push(branch);
            if arrivals.ends.len() == arrivals.expected as usize {
                let ends = std::mem::take(&mut arrivals.ends);
                arrivals.expected = 0;
                self.pass(number, &ends);
            }
        }
        if self.arrivals.values().any(|arrivals| arrivals.expected > 0) {
            self.walk.error.get_or_insert(FlowError::Circle);
        }
    }

    /// Visits a precedence that all have come to, and readies what follows.
    fn pass(&mut self, number: usize, ends: &[usize]) {
        let mut parting = FxHashSet::default();
        let (around, in_parallel) = self.walk.around(ends, &mut parting);
        let is_join = matches!(self.precedence(number).join, Join::And { .. });
        let branch = if is_join && ends.contains(&around) { self.walk.outside(around) } else { around };
        let mut parting: Vec<usize> = parting.into_iter().collect();
        parting.sort_unstable();
        let joined = ends.len() as u32;
        self.walk.visits.push(Visit::Precedence { number, joined, branch, in_parallel, parting });
        let model = self.graph.model;
        let mut follow = |activity: ActivityId, kind: Option<BranchKind>| {
            let branch = kind.map_or(branch, |kind| self.walk.branch(branch, number, kind, activity));
            self.ready.push_back((activity, branch));
        };
        match &model.tasks[self.task.index()].precedences[number].fork {
            None => {}
            Some(Fork::Sequence(activity)) => follow(*activity, None),
            Some(Fork::And(activities)) => activities.iter().for_each(|id| follow(*id, Some(BranchKind::Parallel))),
            Some(Fork::Or(ways)) => ways.iter().for_each(|way| follow(way.1, Some(BranchKind::Alternative))),
            Some(Fork::Loop { bodies, end }) => {
                for body in bodies {
                    follow(body.1, Some(BranchKind::Repeated));
                }
                if let Some(end) = end {
                    follow(*end, None);
                }
            }
        }
    }
}

impl Branch {
    const WHOLE: Self =
        Self { parent: 0, fork: usize::MAX, kind: BranchKind::Whole, first: None, depth: 0, parallel: None };
}

impl Walk {
    /// AND-forks of which one branch alone goes on to where ways around the fork meet, by position of their precedence, with the
    /// activity that this branch begins with. The invocation goes on in it, and nothing waits for the others.
    pub fn continued(&self) -> FxHashMap<usize, ActivityId> {
        let alone = |(fork, branches): (&usize, &BTreeSet<usize>)| {
            let only = branches.first().filter(|_| branches.len() == 1)?;
            Some((*fork, self.branches[*only].first?))
        };
        self.left.iter().filter_map(alone).collect()
    }

    fn branch(&mut self, parent: usize, fork: usize, kind: BranchKind, first: ActivityId) -> usize {
        let number = self.branches.len();
        let Branch { depth, parallel, .. } = self.branches[parent];
        let parallel = if kind == BranchKind::Parallel { Some(number) } else { parallel };
        self.branches.push(Branch { parent, fork, kind, first: Some(first), depth: depth + 1, parallel });
        number
    }

    /// The branch around the innermost parallel branch; where there is none, the branch itself.
    fn outside(&self, branch: usize) -> usize {
        self.branches[branch].parallel.map_or(branch, |parallel| self.branches[parallel].parent)
    }

    /// The innermost branch around all of the branches, and whether below it they part at AND-forks only. Adds the forks at
    /// which they part.
    ///
    /// Climbs from the deepest branch to its parent until one is left, so the cost is that of the tree between them.
    fn around(&mut self, ends: &[usize], parting: &mut FxHashSet<usize>) -> (usize, bool) {
        if let [only] = ends {
            return (*only, true);
        }
        let mut climbing: BTreeSet<(usize, usize)> = ends.iter().map(|&end| (self.branches[end].depth, end)).collect();
        let distinct: FxHashSet<usize> = ends.iter().copied().collect();
        let mut in_parallel = distinct.len() == ends.len();
        // By branch, the fork at which paths part below it.
        let mut fork_below: FxHashMap<usize, usize> = FxHashMap::default();
        while climbing.len() > 1
            && let Some((depth, node)) = climbing.pop_last()
        {
            let Branch { parent, fork, kind, .. } = self.branches[node];
            let parallel = kind == BranchKind::Parallel;
            if parallel {
                self.left.entry(fork).or_default().insert(node);
            }
            let parts_elsewhere = fork_below.insert(parent, fork).is_some_and(|other| other != fork || !parallel);
            in_parallel &= !parts_elsewhere && !distinct.contains(&parent);
            climbing.insert((depth.saturating_sub(1), parent));
        }
        parting.extend(fork_below.into_values());
        (climbing.pop_last().map_or(0, |(_, node)| node), in_parallel)
    }
}
