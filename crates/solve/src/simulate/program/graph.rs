//! Activity graphs as steps. Bodies of loops go back to where they began.

use rustc_hash::FxHashMap;

use dyelog_lqn::flow::{ActivityGraph, BranchKind, Visit, Walk};
use dyelog_lqn::model::{ActivityId, EntryId, Fork, Join};

use super::{After, SimulationProgram, Span, Target};

/// The activities of one entry, being added.
pub(super) struct Graph<'p, 'a> {
    program: &'p mut SimulationProgram<'a>,
    entry: EntryId,
    first_rows: &'p [usize],
    /// The step of each activity.
    steps: FxHashMap<ActivityId, u32>,
    /// By precedence: what comes after it.
    afters: FxHashMap<usize, u32>,
    /// By branch: what comes after an activity that leads nowhere.
    dangling: Vec<u32>,
    joins: u32,
}

impl<'p, 'a> Graph<'p, 'a> {
    /// Of that entry.
    pub fn new(program: &'p mut SimulationProgram<'a>, entry: EntryId, first_rows: &'p [usize]) -> Self {
        Self {
            program,
            entry,
            first_rows,
            steps: FxHashMap::default(),
            afters: FxHashMap::default(),
            dangling: Vec::new(),
            joins: 0,
        }
    }

    /// Adds all that is reached; the first step and how many joins there are.
    pub fn add(mut self, graph: &ActivityGraph<'_>, start: ActivityId) -> (u32, u32) {
        let walk = graph.walk(self.program.model.entries[self.entry.index()].task, &[start]);
        for visit in &walk.visits {
            if let Visit::Activity { activity, .. } = *visit {
                self.step(activity);
            }
        }
        self.dangle(&walk);
        for visit in &walk.visits {
            if let Visit::Precedence { number, joined, branch, .. } = *visit {
                self.precedence(number, joined, self.dangling[branch]);
            }
        }
        for visit in &walk.visits {
            if let Visit::Activity { activity, branch } = *visit {
                let after = graph.leaving(activity).map_or(self.dangling[branch], |number| self.afters[&number]);
                self.program.steps[self.steps[&activity] as usize].after = after;
            }
        }
        (self.steps[&start], self.joins)
    }

    /// Adds the step of an activity.
    fn step(&mut self, activity: ActivityId) {
        let found = &self.program.model.activities[activity.index()];
        let mut step = self.program.step(&found.work, found.task, self.first_rows[activity.index()]);
        step.replies = found.replies.contains(&self.entry);
        step.figures = (self.program.layout.activities + 2 * activity.index()) as u32;
        self.steps.insert(activity, self.program.steps.len() as u32);
        self.program.steps.push(step);
    }

    /// Finds what comes after loose ends. A branch of a fork ends there, also in a loop; a body of a loop goes back to it.
    fn dangle(&mut self, walk: &Walk) {
        for branch in &walk.branches {
            let dangling = match branch.kind {
                BranchKind::Whole | BranchKind::Parallel => 0,
                BranchKind::Alternative => self.dangling[branch.parent],
                BranchKind::Repeated => self.loop_at(branch.fork),
            };
            self.dangling.push(dangling);
        }
    }

    /// The place of a loop, whatever comes there.
    fn loop_at(&mut self, precedence: usize) -> u32 {
        if let Some(&place) = self.afters.get(&precedence) {
            return place;
        }
        let place = self.push(After::End);
        self.afters.insert(precedence, place);
        place
    }

    fn push(&mut self, after: After) -> u32 {
        self.program.afters.push(after);
        (self.program.afters.len() - 1) as u32
    }

    fn next(&mut self, activity: ActivityId) -> u32 {
        self.push(After::Next(self.steps[&activity]))
    }

    /// Targets with those weights, and the sum of these.
    fn targets(&mut self, to: impl Iterator<Item = (f64, ActivityId)>) -> (Span, f64) {
        let first = self.program.targets.len();
        let mut upto = 0.0;
        for (weight, activity) in to {
            upto += weight;
            self.program.targets.push(Target { step: self.steps[&activity], upto });
        }
        (Span::since(first, self.program.targets.len()), upto)
    }

    /// Adds what comes after a precedence that so many activities lead into.
    fn precedence(&mut self, number: usize, joined: u32, dangling: u32) {
        let task = self.program.model.entries[self.entry.index()].task;
        let precedence = &self.program.model.tasks[task.index()].precedences[number];
        let then = match &precedence.fork {
            None => dangling,
            Some(Fork::Sequence(to)) => self.next(*to),
            Some(Fork::And(to)) => {
                let (targets, _) = self.targets(to.iter().map(|to| (1.0, *to)));
                self.push(After::Fork(targets))
            }
            Some(Fork::Or(to)) => {
                let (targets, _) = self.targets(to.iter().copied());
                self.push(After::Choose(targets))
            }
            Some(Fork::Loop { bodies, end }) => {
                let end = end.map_or(dangling, |end| self.next(end));
                let (bodies, total) = self.targets(bodies.iter().copied());
                let place = self.loop_at(number);
                self.program.afters[place as usize] = After::Loop { bodies, total, end };
                place
            }
        };
        let after = match &precedence.join {
            Join::And { quorum, .. } => {
                let need = quorum.filter(|need| *need > 0).unwrap_or(joined).min(joined);
                self.joins += 1;
                self.push(After::Join { slot: self.joins - 1, need, total: joined, then })
            }
            Join::Sequence(_) | Join::Or(_) => then,
        };
        self.afters.insert(number, after);
    }
}
