//! Activity graphs reduced to strands.
//!
//! A *strand* is a part of an invocation that runs in sequence: the entry's own, and one for each branch of an AND-fork. In
//! a strand, alternatives and loops are no more than mean numbers of executions, and forks are points where its parent
//! waits for the branches. Strands are numbered so that a branch comes after its parent; nothing here recurses.

use std::collections::VecDeque;
use std::ops::Range;

use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog_lqn::model::{ActivityId, Body, EntryId, Fork, Join, Model};

use crate::codes;

/// An execution of a phase or an activity in a strand.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StrandStep {
    /// Which phase (0 to 2 of the entry) or activity.
    pub work: StepWork,
    /// Mean executions for each execution of the strand.
    pub visits: f64,
    /// Phase: 0 before the reply, 1 and 2 after it.
    pub phase: usize,
}

/// What a step executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepWork {
    /// A phase of the entry.
    Phase(usize),
    /// An activity of the task.
    Activity(ActivityId),
}

/// A point of a strand where branches run in parallel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parallel {
    /// The strand that waits.
    pub parent: usize,
    /// Mean executions for each execution of the parent.
    pub visits: f64,
    /// Phase of the parent.
    pub phase: usize,
    /// Strands that are waited for.
    pub branches: Vec<usize>,
    /// How many of them must end; `None` for all.
    pub quorum: Option<usize>,
    /// How many of the parent's steps come before the join.
    pub joined: usize,
    /// Where a branch replies: that branch, and what it does before the reply, which are steps of the parent.
    pub replying: Option<(usize, Range<usize>)>,
}

/// One strand.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Strand {
    /// The fork that begins it; none for the entry's own.
    pub begun_by: Option<usize>,
    /// What it does, in an order in which things can happen.
    pub steps: Vec<StrandStep>,
    /// Forks on it.
    pub forks: Vec<usize>,
}

/// What one invocation of an entry does.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Shape {
    /// Strand 0 is the entry's own.
    pub strands: Vec<Strand>,
    /// All forks.
    pub forks: Vec<Parallel>,
    /// What was taken for something simpler, in words.
    pub caveats: Vec<String>,
}

impl Shape {
    /// How many requests the entry can have out at the same time, at most.
    pub fn width(&self) -> f64 {
        1.0 + self.forks.iter().map(|fork| fork.branches.len().saturating_sub(1) as f64).sum::<f64>()
    }
}

/// The shape of an entry.
pub(crate) fn shape(model: &Model, entry: EntryId) -> Result<Shape, Diagnostics> {
    match &model.entries[entry.index()].body {
        Body::Phases(phases) => {
            let steps = (0..phases.len().min(3))
                .map(|phase| StrandStep { work: StepWork::Phase(phase), visits: 1.0, phase })
                .collect();
            Ok(Shape { strands: vec![Strand { steps, ..Strand::default() }], ..Shape::default() })
        }
        Body::Activities(start) => Reduction::new(model, entry).run(*start),
    }
}

/// Where control is when an activity begins.
#[derive(Clone, Copy, Default)]
struct Arrival {
    strand: usize,
    visits: f64,
    replied: bool,
    reached: bool,
}

struct Reduction<'a> {
    model: &'a Model,
    entry: EntryId,
    /// By position in the task: the precedence whose left side names the activity.
    next: Vec<Option<usize>>,
    /// First activity of the task, to turn ids into positions.
    local: rustc_hash::FxHashMap<ActivityId, usize>,
    arrivals: Vec<Arrival>,
    /// By position: whether its reply ends the first phase in that strand.
    replies_in: Option<usize>,
    shape: Shape,
}

impl<'a> Reduction<'a> {
    fn new(model: &'a Model, entry: EntryId) -> Self {
        let task = &model.tasks[model.entries[entry.index()].task.index()];
        let local = task.activities.iter().enumerate().map(|(position, id)| (*id, position)).collect();
        Self {
            model,
            entry,
            next: vec![None; task.activities.len()],
            local,
            arrivals: vec![Arrival::default(); task.activities.len()],
            replies_in: None,
            shape: Shape { strands: vec![Strand::default()], ..Shape::default() },
        }
    }

    fn error(&self, what: &str) -> Diagnostics {
        let name = &self.model.entries[self.entry.index()].name;
        Diagnostic::error(codes::GRAPH, Place::Nowhere, format!("activities of entry `{name}` {what}")).into()
    }

    fn position(&self, activity: ActivityId) -> Result<usize, Diagnostics> {
        self.local.get(&activity).copied().ok_or_else(|| self.error("lead to an activity of another task"))
    }

    fn run(mut self, start: ActivityId) -> Result<Shape, Diagnostics> {
        let task = &self.model.tasks[self.model.entries[self.entry.index()].task.index()];
        for (index, precedence) in task.precedences.iter().enumerate() {
            for activity in precedence.join.activities() {
                let position = self.position(*activity)?;
                self.next[position] = Some(index);
            }
        }
        let pending = self.count_pending(start)?;
        self.walk(start, pending)?;
        self.lift_reply();
        Ok(self.shape)
    }

    /// How many reachable activities lead into each precedence.
    fn count_pending(&self, start: ActivityId) -> Result<Vec<usize>, Diagnostics> {
        let task = &self.model.tasks[self.model.entries[self.entry.index()].task.index()];
        let mut pending = vec![0; task.precedences.len()];
        let mut seen = vec![false; task.activities.len()];
        let mut stack = vec![self.position(start)?];
        seen[stack[0]] = true;
        while let Some(position) = stack.pop() {
            let Some(next) = self.next[position] else { continue };
            pending[next] += 1;
            if pending[next] > 1 {
                continue;
            }
            for activity in task.precedences[next].followers() {
                let target = self.position(activity)?;
                if seen[target] {
                    return Err(self.error(&format!(
                        "lead to `{}` in two ways without a join, or run in a circle",
                        self.model.activities[activity.index()].name
                    )));
                }
                seen[target] = true;
                stack.push(target);
            }
        }
        Ok(pending)
    }

    fn walk(&mut self, start: ActivityId, mut pending: Vec<usize>) -> Result<(), Diagnostics> {
        let model = self.model;
        let task = &model.tasks[model.entries[self.entry.index()].task.index()];
        let first = self.position(start)?;
        self.arrivals[first] = Arrival { strand: 0, visits: 1.0, replied: false, reached: true };
        let mut ready = VecDeque::from([first]);
        let mut waiting: usize = pending.iter().sum();
        while let Some(position) = ready.pop_front() {
            let after = self.execute(task.activities[position], position);
            let Some(next) = self.next[position] else { continue };
            self.arrivals[position] = after;
            pending[next] -= 1;
            waiting -= 1;
            if pending[next] > 0 {
                continue;
            }
            let at = self.join(&task.precedences[next].join)?;
            for position in self.fork(at, task.precedences[next].fork.as_ref())? {
                ready.push_back(position);
            }
        }
        if waiting > 0 {
            return Err(self.error("run in a circle"));
        }
        Ok(())
    }

    /// Adds the activity to its strand; where control is afterwards.
    fn execute(&mut self, activity: ActivityId, position: usize) -> Arrival {
        let mut at = self.arrivals[position];
        self.shape.strands[at.strand].steps.push(StrandStep {
            work: StepWork::Activity(activity),
            visits: at.visits,
            phase: usize::from(at.replied),
        });
        if self.model.activities[activity.index()].replies.contains(&self.entry) {
            at.replied = true;
            if at.strand > 0 {
                self.replies_in = Some(at.strand);
            }
        }
        at
    }

    fn join(&mut self, join: &Join) -> Result<Arrival, Diagnostics> {
        match join {
            Join::Sequence(activity) => Ok(self.arrivals[self.position(*activity)?]),
            Join::Or(activities) => {
                let mut sum = Arrival::default();
                for activity in activities {
                    let at = self.arrivals[self.position(*activity)?];
                    if at.reached {
                        sum.strand = if sum.reached { sum.strand.min(at.strand) } else { at.strand };
                        sum.visits += at.visits;
                        sum.replied |= at.replied;
                        sum.reached = true;
                    }
                }
                Ok(sum)
            }
            Join::And { activities, quorum } => self.join_all(activities, *quorum),
        }
    }

    fn join_all(&mut self, activities: &[ActivityId], quorum: Option<u32>) -> Result<Arrival, Diagnostics> {
        let mut strands = Vec::new();
        let mut replied = false;
        for activity in activities {
            let at = self.arrivals[self.position(*activity)?];
            if at.reached {
                strands.push(at.strand);
                replied |= at.replied;
            }
        }
        if strands.len() < activities.len() {
            self.shape.caveats.push(format!(
                "entry `{}` joins with activities of other entries; the wait for those is left out",
                self.model.entries[self.entry.index()].name
            ));
        }
        // Climb until all come from one fork.
        let begun = |shape: &Shape, strand: usize| shape.strands[strand].begun_by;
        while strands.windows(2).any(|pair| begun(&self.shape, pair[0]) != begun(&self.shape, pair[1])) {
            let deepest = *strands.iter().max().expect("there are two strands that differ");
            let parent = begun(&self.shape, deepest).map_or(0, |fork| self.shape.forks[fork].parent);
            for strand in &mut strands {
                if *strand == deepest {
                    *strand = parent;
                }
            }
        }
        let Some(fork) = strands.first().and_then(|strand| begun(&self.shape, *strand)) else {
            return Err(self.error("join branches that no fork began"));
        };
        strands.sort_unstable();
        strands.dedup();
        let fork = &mut self.shape.forks[fork];
        if strands.len() < fork.branches.len() {
            self.shape.caveats.push(format!(
                "entry `{}` joins some branches of a fork only; the others are taken to run beside",
                self.model.entries[self.entry.index()].name
            ));
        }
        fork.joined = self.shape.strands[fork.parent].steps.len();
        fork.branches = strands;
        fork.quorum = quorum.map(|count| count as usize).filter(|count| *count > 0 && *count < fork.branches.len());
        Ok(Arrival { strand: fork.parent, visits: fork.visits, replied, reached: true })
    }

    /// Sends control on; the positions that can begin.
    fn fork(&mut self, at: Arrival, fork: Option<&Fork>) -> Result<Vec<usize>, Diagnostics> {
        let mut targets = Vec::new();
        match fork {
            None => {}
            Some(Fork::Sequence(activity)) => targets.push((*activity, at)),
            Some(Fork::Or(alternatives)) => {
                for (probability, activity) in alternatives {
                    targets.push((*activity, Arrival { visits: at.visits * probability, ..at }));
                }
            }
            Some(Fork::Loop { bodies, end }) => {
                for (count, activity) in bodies {
                    targets.push((*activity, Arrival { visits: at.visits * count, ..at }));
                }
                targets.extend(end.map(|activity| (activity, at)));
            }
            Some(Fork::And(activities)) => {
                let number = self.shape.forks.len();
                let mut branches = Vec::new();
                for activity in activities {
                    let strand = self.shape.strands.len();
                    self.shape.strands.push(Strand { begun_by: Some(number), ..Strand::default() });
                    branches.push(strand);
                    targets.push((*activity, Arrival { strand, visits: 1.0, ..at }));
                }
                self.shape.strands[at.strand].forks.push(number);
                self.shape.forks.push(Parallel {
                    parent: at.strand,
                    visits: at.visits,
                    phase: usize::from(at.replied),
                    branches,
                    quorum: None,
                    joined: usize::MAX,
                    replying: None,
                });
            }
        }
        targets
            .into_iter()
            .map(|(activity, arrival)| {
                let position = self.position(activity)?;
                self.arrivals[position] = arrival;
                Ok(position)
            })
            .collect()
    }

    /// Where a branch replies, what it does before is the first phase, in sequence, and what is left of the fork belongs to
    /// the second.
    fn lift_reply(&mut self) {
        let Some(mut strand) = self.replies_in else { return };
        self.shape.caveats.push(format!(
            "entry `{}` replies in a branch of a fork; what is left of the other branches then is estimated",
            self.model.entries[self.entry.index()].name
        ));
        while let Some(number) = self.shape.strands[strand].begun_by {
            let steps = std::mem::take(&mut self.shape.strands[strand].steps);
            let (before, after): (Vec<StrandStep>, Vec<StrandStep>) =
                steps.into_iter().partition(|step| step.phase == 0);
            self.shape.strands[strand].steps = after;
            let fork = &mut self.shape.forks[number];
            fork.phase = 1;
            let (parent, visits) = (fork.parent, fork.visits);
            let steps = &mut self.shape.strands[parent].steps;
            fork.replying = Some((strand, steps.len()..steps.len() + before.len()));
            steps.extend(before.into_iter().map(|step| StrandStep { visits: step.visits * visits, ..step }));
            strand = parent;
        }
    }
}
