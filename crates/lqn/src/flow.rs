//! Activity graphs: what comes before and after a precedence, and which precedences an entry's activities lead into.

use rustc_hash::FxHashMap;

use crate::{ActivityId, Fork, Join, Precedence, Task};

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

/// The activity graph of a task.
#[derive(Clone, Debug)]
pub struct ActivityGraph<'a> {
    task: &'a Task,
    leaving: FxHashMap<ActivityId, usize>,
}

impl<'a> ActivityGraph<'a> {
    /// The graph of that task.
    pub fn new(task: &'a Task) -> Self {
        let mut leaving = FxHashMap::default();
        for (number, precedence) in task.precedences.iter().enumerate() {
            leaving.extend(precedence.join.activities().iter().map(|activity| (*activity, number)));
        }
        Self { task, leaving }
    }

    /// The precedence by which an activity leads on, by position in the task; of several the last.
    pub fn leaving(&self, activity: ActivityId) -> Option<usize> {
        self.leaving.get(&activity).copied()
    }

    /// How many of the activities that `start` leads to, itself included, lead into each precedence.
    pub fn reached(&self, start: ActivityId) -> FxHashMap<usize, u32> {
        let mut counts: FxHashMap<usize, u32> = FxHashMap::default();
        let mut stack = vec![start];
        while let Some(activity) = stack.pop() {
            let Some(next) = self.leaving(activity) else { continue };
            let count = counts.entry(next).or_default();
            *count += 1;
            // What a precedence leads to is followed once, so that a circle ends.
            if *count == 1 {
                stack.extend(self.task.precedences[next].followers());
            }
        }
        counts
    }
}
