//! Activity graphs as steps. Bodies of loops go back to where they began; nothing here recurses.

use rustc_hash::FxHashMap;

use dyelog_lqn::flow::ActivityGraph;
use dyelog_lqn::model::{ActivityId, EntryId, Fork, Join, TaskId};

use super::{After, SimulationProgram, Span, Target};

/// What an activity stands in.
#[derive(Clone, Copy)]
struct Context {
    /// What comes after an activity that leads nowhere: the loop again.
    dangling: u32,
    /// The context of the fork that began this branch.
    outer: u32,
}

/// The activities of one entry, being added.
pub(super) struct Graph<'p, 'a> {
    program: &'p mut SimulationProgram<'a>,
    entry: EntryId,
    task: TaskId,
    first_rows: &'p [usize],
    flow: ActivityGraph<'a>,
    /// The step of each activity that is reached.
    steps: FxHashMap<ActivityId, u32>,
    /// Activities whose step has no successor yet, with the context that they are in.
    open: Vec<(ActivityId, u32)>,
    /// Bodies of loops and branches of forks.
    contexts: Vec<Context>,
    /// By precedence: what comes after it, where it is made.
    afters: FxHashMap<usize, u32>,
    joins: u32,
}

impl<'p, 'a> Graph<'p, 'a> {
    /// Of that entry.
    pub fn new(program: &'p mut SimulationProgram<'a>, entry: EntryId, first_rows: &'p [usize]) -> Self {
        let model = program.model;
        let task = model.entries[entry.index()].task;
        Self {
            program,
            entry,
            task,
            first_rows,
            flow: ActivityGraph::new(&model.tasks[task.index()]),
            steps: FxHashMap::default(),
            open: Vec::new(),
            contexts: vec![Context { dangling: 0, outer: 0 }],
            afters: FxHashMap::default(),
            joins: 0,
        }
    }

    /// Adds all that is reached; the first step and how many joins there are.
    pub fn add(mut self, start: ActivityId) -> (u32, u32) {
        let reached = self.flow.reached(start);
        let first = self.reach(start, 0);
        while let Some((activity, inside)) = self.open.pop() {
            let after = match self.flow.leaving(activity) {
                None => self.dangling(inside),
                Some(precedence) => match self.afters.get(&precedence) {
                    Some(after) => *after,
                    None => self.precedence(precedence, inside, &reached),
                },
            };
            let step = self.steps[&activity];
            self.program.steps[step as usize].after = after;
        }
        (first, self.joins)
    }

    fn dangling(&self, inside: u32) -> u32 {
        self.contexts[inside as usize].dangling
    }

    fn context(&mut self, dangling: u32, outer: u32) -> u32 {
        self.contexts.push(Context { dangling, outer });
        (self.contexts.len() - 1) as u32
    }

    /// The step of an activity in that context.
    fn reach(&mut self, activity: ActivityId, inside: u32) -> u32 {
        if let Some(&step) = self.steps.get(&activity) {
            return step;
        }
        let model = self.program.model;
        let found = &model.activities[activity.index()];
        let mut step = self.program.step(&found.work, self.task, self.first_rows[activity.index()]);
        step.replies = found.replies.contains(&self.entry);
        step.figures = (self.program.layout.activities + 2 * activity.index()) as u32;
        let number = self.program.steps.len() as u32;
        self.program.steps.push(step);
        self.steps.insert(activity, number);
        self.open.push((activity, inside));
        number
    }

    fn targets(&mut self, to: &[(f64, ActivityId)], inside: u32) -> (Span, f64) {
        let mut upto = 0.0;
        let targets: Vec<Target> = to
            .iter()
            .map(|(weight, activity)| {
                upto += weight;
                Target { step: self.reach(*activity, inside), upto }
            })
            .collect();
        let first = self.program.targets.len();
        self.program.targets.extend(targets);
        (Span::since(first, self.program.targets.len()), upto)
    }

    fn push(&mut self, after: After) -> u32 {
        self.program.afters.push(after);
        (self.program.afters.len() - 1) as u32
    }

    /// What comes after a precedence.
    fn precedence(&mut self, number: usize, inside: u32, reached: &FxHashMap<usize, u32>) -> u32 {
        let precedence = &self.program.model.tasks[self.task.index()].precedences[number];
        let inside = match &precedence.join {
            Join::And { .. } => self.contexts[inside as usize].outer,
            Join::Sequence(_) | Join::Or(_) => inside,
        };
        let then = match &precedence.fork {
            None => self.dangling(inside),
            Some(Fork::Sequence(to)) => {
                let step = self.reach(*to, inside);
                self.push(After::Next(step))
            }
            Some(Fork::And(to)) => {
                let to: Vec<(f64, ActivityId)> = to.iter().map(|to| (1.0, *to)).collect();
                // A branch that leads nowhere ends there, also in a loop.
                let branch = self.context(0, inside);
                let (targets, _) = self.targets(&to, branch);
                self.push(After::Fork(targets))
            }
            Some(Fork::Or(to)) => {
                let (targets, _) = self.targets(to, inside);
                self.push(After::Choose(targets))
            }
            Some(Fork::Loop { bodies, end }) => {
                let exit = match end {
                    None => self.dangling(inside),
                    Some(end) => {
                        let step = self.reach(*end, inside);
                        self.push(After::Next(step))
                    }
                };
                let here = self.push(After::End);
                let body = self.context(here, inside);
                let (bodies, total) = self.targets(bodies, body);
                self.program.afters[here as usize] = After::Loop { bodies, total, end: exit };
                here
            }
        };
        let after = match &precedence.join {
            Join::And { quorum, .. } => {
                let total = reached.get(&number).copied().unwrap_or(1);
                let need = quorum.filter(|need| *need > 0).unwrap_or(total).min(total);
                self.joins += 1;
                self.push(After::Join { slot: self.joins - 1, need, total, then })
            }
            Join::Sequence(_) | Join::Or(_) => then,
        };
        self.afters.insert(number, after);
        after
    }
}
