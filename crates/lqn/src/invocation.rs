//! What one invocation of an entry does: its activity graph reduced to strands.
//!
//! A *strand* is a part of an invocation that runs in sequence: the entry's own, and one for each branch of an AND-fork. In
//! a strand, alternatives and loops are no more than mean numbers of executions, and forks are points where its parent
//! waits for the branches. Strands are numbered so that a branch comes after its parent; nothing here recurses.

use std::collections::BTreeSet;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::flow::{ActivityGraph, FlowError, Visit};
use crate::{ActivityId, Body, EntryId, Fork, Join, Model};

/// An execution of a phase or an activity in a strand.
#[derive(Clone, Debug, PartialEq)]
pub struct StrandStep {
    /// Which phase (0 to 2 of the entry) or activity.
    pub work: StepWork,
    /// Mean executions for each execution of the strand.
    pub visits: f64,
    /// Phase: 0 before the reply, 1 and 2 after it.
    pub phase: usize,
}

/// What a step executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepWork {
    /// A phase of the entry.
    Phase(usize),
    /// An activity of the task.
    Activity(ActivityId),
}

/// A point of a strand where branches run in parallel.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Parallel {
    /// The strand that waits.
    pub parent: usize,
    /// Mean executions for each execution of the parent.
    pub visits: f64,
    /// Phase of the parent.
    pub phase: usize,
    /// The strands that it begins.
    pub branches: Vec<usize>,
    /// How many of them must end: `None` for all, 0 where nothing waits for them.
    pub quorum: Option<usize>,
    /// How many of the parent's steps come before the join.
    pub joined: usize,
    /// Where a branch replies: that branch, and what it does before the reply, which are steps of the parent.
    pub replying: Option<(usize, Range<usize>)>,
}

/// One strand.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Strand {
    /// The fork that begins it; none for the entry's own.
    pub begun_by: Option<usize>,
    /// What it does, in an order in which things can happen.
    pub steps: Vec<StrandStep>,
    /// Forks on it.
    pub forks: Vec<usize>,
}

/// What strands leave out of an activity graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Simplification {
    /// A join names activities that only other entries reach: nobody waits for these.
    JoinOfOtherEntries,
    /// A join names some branches of a fork only: it is taken to wait for as many, whichever they are.
    JoinOfSomeBranches,
    /// A branch of a fork replies: what the other branches still have to do then is estimated.
    ReplyInBranch,
}

/// What keeps an activity graph from having a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvocationError {
    /// The walk along it does not end.
    Flow(FlowError),
    /// A join waits for branches that no fork began.
    JoinWithoutFork,
}

/// What one invocation of an entry does.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Invocation {
    /// Strand 0 is the entry's own.
    pub strands: Vec<Strand>,
    /// All forks.
    pub forks: Vec<Parallel>,
    /// What was taken for something simpler.
    pub simplifications: Vec<Simplification>,
}

impl Invocation {
    /// What an entry does. `graph` is of the model.
    ///
    /// # Errors
    /// Where the entry's activities run in a circle, meet without a join, or join what no fork began.
    pub fn new(model: &Model, graph: &ActivityGraph<'_>, entry: EntryId) -> Result<Self, InvocationError> {
        match &model.entries[entry.index()].body {
            Body::Phases(phases) => {
                let steps = (0..phases.len().min(3))
                    .map(|phase| StrandStep { work: StepWork::Phase(phase), visits: 1.0, phase })
                    .collect();
                Ok(Self { strands: vec![Strand { steps, ..Strand::default() }], ..Self::default() })
            }
            Body::Activities(start) => Reduction::new(model, entry).run(graph, *start),
        }
    }

    /// How many requests the entry can have out at the same time, at most.
    pub fn width(&self) -> f64 {
        let beside = |fork: &Parallel| fork.branches.len().saturating_sub(usize::from(fork.quorum != Some(0)));
        1.0 + self.forks.iter().map(|fork| beside(fork) as f64).sum::<f64>()
    }

    /// How many phases and activities it executes, each counted once.
    pub fn len(&self) -> usize {
        self.strands.iter().map(|strand| strand.steps.len()).sum()
    }

    /// Whether it does nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Mean executions of each strand in an invocation: branches follow those that fork them.
    pub fn runs(&self) -> Vec<f64> {
        let mut runs: Vec<f64> = Vec::with_capacity(self.strands.len());
        for strand in &self.strands {
            let fork = strand.begun_by.map(|fork| &self.forks[fork]);
            runs.push(fork.map_or(1.0, |fork| runs[fork.parent] * fork.visits));
        }
        runs
    }

    /// Mean executions of each activity in an invocation.
    pub fn executions(&self) -> FxHashMap<ActivityId, f64> {
        let runs = self.runs();
        let mut executions = FxHashMap::default();
        for (strand, runs) in self.strands.iter().zip(runs) {
            for step in &strand.steps {
                if let StepWork::Activity(activity) = step.work {
                    *executions.entry(activity).or_default() += runs * step.visits;
                }
            }
        }
        executions
    }
}

/// Where control is when an activity begins, and after it.
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
    arrivals: FxHashMap<ActivityId, Arrival>,
    /// The branch that replies.
    replies_in: Option<usize>,
    invocation: Invocation,
}

impl<'a> Reduction<'a> {
    fn new(model: &'a Model, entry: EntryId) -> Self {
        let invocation = Invocation { strands: vec![Strand::default()], ..Invocation::default() };
        Self { model, entry, arrivals: FxHashMap::default(), replies_in: None, invocation }
    }

    fn run(mut self, graph: &ActivityGraph<'_>, start: ActivityId) -> Result<Invocation, InvocationError> {
        let task = self.model.entries[self.entry.index()].task;
        let walk = graph.walk(task, &[start]);
        if let Some(error) = walk.error {
            return Err(InvocationError::Flow(error));
        }
        let continued = walk.continued();
        self.arrivals.insert(start, Arrival { strand: 0, visits: 1.0, replied: false, reached: true });
        for visit in &walk.visits {
            match *visit {
                Visit::Activity { activity, .. } => self.execute(activity),
                Visit::Precedence { number, .. } => {
                    let precedence = &self.model.tasks[task.index()].precedences[number];
                    let at = self.join(&precedence.join)?;
                    self.fork(at, precedence.fork.as_ref(), continued.get(&number).copied());
                }
            }
        }
        self.lift_reply();
        Ok(self.invocation)
    }

    fn arrival(&self, activity: ActivityId) -> Arrival {
        self.arrivals.get(&activity).copied().unwrap_or_default()
    }

    /// Adds the activity to its strand.
    fn execute(&mut self, activity: ActivityId) {
        let mut at = self.arrival(activity);
        self.invocation.strands[at.strand].steps.push(StrandStep {
            work: StepWork::Activity(activity),
            visits: at.visits,
            phase: usize::from(at.replied),
        });
        if self.model.activities[activity.index()].replies.contains(&self.entry) {
            at.replied = true;
            if at.strand > 0 {
                self.replies_in = Some(at.strand);
            }
            self.arrivals.insert(activity, at);
        }
    }

    /// Sends control on from where the left side has come together. Of an AND-fork that is never joined, the branch in which the
    /// invocation goes on may be known.
    fn fork(&mut self, at: Arrival, fork: Option<&Fork>, continued: Option<ActivityId>) {
        match fork {
            None => {}
            Some(Fork::Sequence(activity)) => self.arrive(*activity, at),
            Some(Fork::Or(alternatives)) => {
                for &(probability, activity) in alternatives {
                    self.arrive(activity, Arrival { visits: at.visits * probability, ..at });
                }
            }
            Some(Fork::Loop { bodies, end }) => {
                for &(count, activity) in bodies {
                    self.arrive(activity, Arrival { visits: at.visits * count, ..at });
                }
                if let Some(end) = end {
                    self.arrive(*end, at);
                }
            }
            Some(Fork::And(activities)) => match continued {
                None => self.fork_all(at, activities.iter().copied(), None),
                Some(next) => {
                    self.fork_all(at, activities.iter().copied().filter(|id| *id != next), Some(0));
                    self.arrive(next, at);
                }
            },
        }
    }

    fn arrive(&mut self, activity: ActivityId, at: Arrival) {
        self.arrivals.insert(activity, at);
    }

    /// Begins a strand for each of these branches of an AND-fork.
    fn fork_all(&mut self, at: Arrival, activities: impl Iterator<Item = ActivityId>, quorum: Option<usize>) {
        let number = self.invocation.forks.len();
        let mut branches = Vec::new();
        for activity in activities {
            let strand = self.invocation.strands.len();
            self.invocation.strands.push(Strand { begun_by: Some(number), ..Strand::default() });
            branches.push(strand);
            self.arrive(activity, Arrival { strand, visits: 1.0, ..at });
        }
        let parent = &mut self.invocation.strands[at.strand];
        parent.forks.push(number);
        self.invocation.forks.push(Parallel {
            parent: at.strand,
            visits: at.visits,
            phase: usize::from(at.replied),
            branches,
            quorum,
            joined: quorum.map_or(usize::MAX, |_| parent.steps.len()),
            replying: None,
        });
    }

    fn join(&mut self, join: &Join) -> Result<Arrival, InvocationError> {
        match join {
            Join::Sequence(activity) => Ok(self.arrival(*activity)),
            Join::Or(activities) => {
                let mut sum = Arrival::default();
                for activity in activities {
                    let at = self.arrival(*activity);
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

    fn join_all(&mut self, activities: &[ActivityId], quorum: Option<u32>) -> Result<Arrival, InvocationError> {
        let reached: Vec<Arrival> = activities.iter().map(|id| self.arrival(*id)).filter(|at| at.reached).collect();
        if reached.len() < activities.len() {
            self.invocation.simplifications.push(Simplification::JoinOfOtherEntries);
        }
        let replied = reached.iter().any(|at| at.replied);
        let mut strands: BTreeSet<usize> = reached.iter().map(|at| at.strand).collect();
        // Climb until all come from one fork. Branches of a fork have numbers in a row, so the first and the last tell.
        let begun = |strand: Option<&usize>| strand.and_then(|strand| self.invocation.strands[*strand].begun_by);
        while begun(strands.first()) != begun(strands.last())
            && let Some(deepest) = strands.pop_last()
        {
            strands.insert(begun(Some(&deepest)).map_or(0, |fork| self.invocation.forks[fork].parent));
        }
        let fork = begun(strands.first()).ok_or(InvocationError::JoinWithoutFork)?;
        let fork = &mut self.invocation.forks[fork];
        let joined = strands.len();
        if joined < fork.branches.len() {
            self.invocation.simplifications.push(Simplification::JoinOfSomeBranches);
        }
        fork.joined = self.invocation.strands[fork.parent].steps.len();
        let enough = quorum.map_or(joined, |count| count as usize);
        let enough = if enough == 0 { joined } else { enough.min(joined) };
        fork.quorum = (enough < fork.branches.len()).then_some(enough);
        Ok(Arrival { strand: fork.parent, visits: fork.visits, replied, reached: true })
    }

    /// Where a branch replies, what it does before is the first phase, in sequence, and what is left of the fork belongs to
    /// the second.
    fn lift_reply(&mut self) {
        let Some(mut strand) = self.replies_in else { return };
        self.invocation.simplifications.push(Simplification::ReplyInBranch);
        while let Some(number) = self.invocation.strands[strand].begun_by {
            let steps = std::mem::take(&mut self.invocation.strands[strand].steps);
            let (before, after): (Vec<StrandStep>, Vec<StrandStep>) =
                steps.into_iter().partition(|step| step.phase == 0);
            self.invocation.strands[strand].steps = after;
            let fork = &mut self.invocation.forks[number];
            fork.phase = 1;
            let (parent, visits) = (fork.parent, fork.visits);
            let steps = &mut self.invocation.strands[parent].steps;
            fork.replying = Some((strand, steps.len()..steps.len() + before.len()));
            steps.extend(before.into_iter().map(|step| StrandStep { visits: step.visits * visits, ..step }));
            strand = parent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Invocation, Simplification};
    use crate::flow::ActivityGraph;
    use crate::{EntryId, parse_any};

    fn invocation(activities: &str, flow: &str) -> Invocation {
        let text = format!(
            "G \"\" 1e-5 50 -1\nP 1\np c i\n-1\nT 1\nt w n serve -1 c\n-1\nE 1\na serve 1\nA serve start\n-1\n\
             A w\ns start 1\n{activities}:\n{flow}\n-1\n"
        );
        let (model, _) = parse_any("test.lqn", &text).expect("the text is a model");
        let graph = ActivityGraph::new(&model);
        Invocation::new(&model, &graph, EntryId::from(0usize)).expect("it has a meaning")
    }

    #[test]
    fn branches_that_a_join_leaves_out_are_executed() {
        let found = invocation("s a 1\ns b 1\ns c 1\ns last 1\n", "start -> a & b & c;\na & b -> last");
        assert_eq!(found.executions().len(), 5, "all activities: {found:?}");
        assert!(found.executions().values().all(|times| (times - 1.0).abs() < 1e-12));
        assert_eq!((found.forks[0].branches.len(), found.forks[0].quorum), (3, Some(2)));
        assert_eq!(found.simplifications, [Simplification::JoinOfSomeBranches]);
    }

    #[test]
    fn the_branch_of_a_fork_that_goes_on_further_out_is_the_invocation() {
        let activities = "s b 1\ns c 1\ns go 1\ns sent 1\ns last 1\n";
        let found = invocation(activities, "start -> b & c;\nc -> go & sent;\nb & go -> last");
        assert_eq!(found.forks.len(), 2, "{found:?}");
        assert_eq!((found.forks[0].branches.len(), found.forks[0].quorum), (2, None));
        assert_eq!((found.forks[1].parent, found.forks[1].quorum, found.forks[1].joined), (2, Some(0), 1));
        assert_eq!(found.strands[2].steps.len(), 2, "`go` comes after `c`: {found:?}");
        assert!(found.simplifications.is_empty());
    }

    #[test]
    fn a_fork_that_one_alternative_never_joins_counts_as_that_alternative() {
        let activities = "s b 1\ns c 1\ns go 1\ns sent 1\ns last 1\n";
        let found = invocation(activities, "start -> (0.25) b + (0.75) c;\nc -> go & sent;\nb + go -> last");
        let mut times: Vec<f64> = found.executions().into_values().collect();
        times.sort_by(f64::total_cmp);
        assert_eq!(times, [0.25, 0.75, 0.75, 0.75, 1.0, 1.0], "{found:?}");
    }

    #[test]
    fn branches_of_two_forks_may_join_at_once() {
        let activities = "s a 1\ns b 1\ns c 1\ns d 1\ns e 1\ns last 1\n";
        let flow = "start -> 3*a, last;\na -> b & c;\nc -> d & e;\nb & d & e -> f";
        let found = invocation(&format!("{activities}s f 1\n"), flow);
        let executions = found.executions();
        let mut times: Vec<f64> = executions.values().copied().collect();
        times.sort_by(f64::total_cmp);
        assert_eq!(times, [1.0, 1.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0], "the loop has its body three times");
        assert_eq!(found.strands[0].steps.len(), 4, "`start`, `a`, `last` and `f` are the entry's own: {found:?}");
        assert!(found.simplifications.is_empty());
    }
}
