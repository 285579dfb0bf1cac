//! Activity graphs: what comes before and after a precedence, and the one walk along them.
//!
//! [`ActivityGraph::walk`] follows an invocation from its first activities in an order in which things can happen. What is made of
//! that order differs: strands, steps of a simulation, a Markov chain, findings. The walk does not recurse, and costs what it reaches.

mod walk;

use rustc_hash::FxHashSet;

use crate::{ActivityId, Fork, Join, Model, Precedence, TaskId};

pub use walk::{Branch, BranchKind, FlowError, Visit, Walk};

impl Join {
    /// The activities on the left side.
    pub fn activities(&self) -> &[ActivityId] {
        match self {
            Self::Sequence(activity) => std::slice::from_ref(activity),
            Self::And { activities, .. } | Self::Or(activities) => activities,
        }
    }
}

impl Precedence {
    /// The activities on the right side.
    pub fn followers(&self) -> impl Iterator<Item = ActivityId> {
        let (plain, counted, end): (&[ActivityId], &[(f64, ActivityId)], Option<ActivityId>) = match &self.fork {
            None => (&[], &[], None),
            Some(Fork::Sequence(activity)) => (std::slice::from_ref(activity), &[], None),
            Some(Fork::And(activities)) => (activities, &[], None),
            Some(Fork::Or(branches)) => (&[], branches, None),
            Some(Fork::Loop { bodies, end }) => (&[], bodies, *end),
        };
        plain.iter().copied().chain(counted.iter().map(|&(_, activity)| activity)).chain(end)
    }
}

/// The activity graphs of all tasks of a model.
#[derive(Clone, Debug)]
pub struct ActivityGraph<'a> {
    model: &'a Model,
    /// By activity: the precedence of its task whose left side names it.
    leaving: Vec<Option<u32>>,
}

impl<'a> ActivityGraph<'a> {
    /// The graphs of a model whose references all lead to something.
    pub fn new(model: &'a Model) -> Self {
        let mut leaving: Vec<Option<u32>> = vec![None; model.activities.len()];
        for (task, own) in model.tasks.iter().zip(0usize..) {
            for (precedence, number) in task.precedences.iter().zip(0u32..) {
                for activity in precedence.join.activities() {
                    if model.activities[activity.index()].task.index() == own {
                        leaving[activity.index()].get_or_insert(number);
                    }
                }
            }
        }
        Self { model, leaving }
    }

    /// The precedence by which an activity leads on, by position in its task; of several the first.
    pub fn leaving(&self, activity: ActivityId) -> Option<usize> {
        self.leaving[activity.index()].map(|number| number as usize)
    }

    /// All activities that some of a task lead to, themselves included, whatever joins wait for.
    pub fn reached(&self, task: TaskId, starts: &[ActivityId]) -> FxHashSet<ActivityId> {
        let mut reached = FxHashSet::default();
        let mut next = starts.to_vec();
        while let Some(activity) = next.pop() {
            if reached.insert(activity)
                && let Some(number) = self.leaving(activity)
            {
                next.extend(self.model.tasks[task.index()].precedences[number].followers());
            }
        }
        reached
    }
}
