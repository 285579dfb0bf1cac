//! A model made ready to solve: activity graphs reduced, forwarding followed, calls in a topological order.

use std::borrow::Cow;

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog_lqn::flow::FlowError;
use dyelog_lqn::invocation::{Invocation, InvocationError, Parallel, StepWork, StrandStep};
use dyelog_lqn::model::{Body, CallKind, CallOrder, EntryId, Model, Task, TaskId, Work};
use dyelog_lqn::operational::{AnalysisError, OperationalAnalysis};
use dyelog_lqn::results::Caller;

use crate::codes;
use crate::numeric::arrivals::Arrivals;
use crate::prepare::caveats::{self, Answer};
use crate::prepare::check;

/// How many steps and followed forwards a model may unfold into.
pub(crate) const MOST: usize = 20_000_000;

/// A call as the caller's thread sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlannedCall {
    pub to: EntryId,
    pub synchronous: bool,
    /// Mean number in an execution of the work.
    pub mean: f64,
    /// Row of the results.
    pub row: usize,
    /// Whether another entry forwards it on.
    pub forwarded: bool,
}

/// What a phase or an activity does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlannedWork {
    /// Mean length of a slice of processor time, seconds.
    pub slice: f64,
    /// Squared coefficient of variation of a slice.
    pub cv2: f64,
    /// Mean number of slices, one more than of calls.
    pub slices: f64,
    /// Pure delay, seconds.
    pub think: f64,
    /// Squared coefficient of variation of the delay.
    pub think_cv2: f64,
    /// Whether the number of calls is the given one, whose fraction is the probability of one more; else it is geometric.
    pub deterministic: bool,
    /// Variance of the number of its own calls.
    pub variance_of_calls: f64,
    /// Its calls, with those to where they are forwarded.
    pub calls: Vec<PlannedCall>,
}

impl PlannedWork {
    /// Whether it does anything at all.
    pub fn is_empty(&self) -> bool {
        self.slice == 0.0 && self.think == 0.0 && self.calls.is_empty()
    }

    /// Mean number of calls of its own.
    pub fn own_calls(&self) -> f64 {
        self.slices - 1.0
    }
}

/// An executed part of a strand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlannedStep {
    /// Index in [`ModelPlan::works`].
    pub work: usize,
    /// Mean executions for each execution of the strand.
    pub visits: f64,
    /// 0 before the reply, 1 and 2 after it.
    pub phase: usize,
}

/// An entry made ready.
#[derive(Clone, Debug)]
pub(crate) struct PlannedEntry {
    pub task: TaskId,
    /// Its strands and forks.
    pub invocation: Invocation,
    /// Steps by strand.
    pub steps: Vec<Vec<PlannedStep>>,
    /// Open arrivals per second.
    pub open: f64,
    /// Where its requests go on to: entry, probability, row; all that follow.
    pub forwards: Vec<(EntryId, f64, usize)>,
    /// Whether it does anything after its reply.
    pub later: bool,
}

/// Caller and target of a call or of forwarding, and the kind of call.
pub(crate) type Row = (Caller, EntryId, Option<CallKind>);

/// A model made ready.
#[derive(Debug)]
pub(crate) struct ModelPlan<'a> {
    pub model: &'a Model,
    /// Phases of all entries, then activities.
    pub works: Vec<PlannedWork>,
    /// First work of each entry with phases.
    pub first_phase: Vec<usize>,
    /// Work of the first activity; activities follow in order.
    pub first_activity: usize,
    pub entries: Vec<PlannedEntry>,
    /// Entries, callers first.
    pub order: Vec<EntryId>,
    /// Position of each entry in the order.
    pub rank: Vec<usize>,
    /// Callers and targets, row by row.
    pub rows: Vec<Row>,
    next_row: usize,
    /// Threads of each task, copies included; infinite where there is no limit.
    pub threads: Vec<f64>,
    /// By processor: how many servers of a copy may be busy on the mean, where that is fewer than there are.
    pub caps: Vec<Option<f64>>,
    /// By task: how requests come to it, as one of several copies; empty where nothing is dispatched to copies.
    pub arrivals: Vec<Arrivals>,
    /// By processor: the same, where it is that of all of its tasks.
    pub processor_arrivals: Vec<Arrivals>,
    /// What was taken for something simpler.
    pub caveats: Vec<String>,
}

impl<'a> ModelPlan<'a> {
    /// The same with how requests come to copies, by task.
    pub fn with_arrivals(self, arrivals: Vec<Arrivals>) -> Self {
        let processors = if arrivals.is_empty() { 0 } else { self.model.processors.len() };
        let mut all: Vec<Option<Arrivals>> = vec![None; processors];
        for (task, own) in self.model.tasks.iter().zip(&arrivals) {
            if let Some(all) = all.get_mut(task.processor.index()) {
                *all = Some(all.map_or(*own, |all| all.beside(*own)));
            }
        }
        let processor_arrivals = all.into_iter().map(Option::unwrap_or_default).collect();
        Self { arrivals, processor_arrivals, ..self }
    }

    /// Checks and prepares a model.
    pub fn new(model: &'a Model) -> Result<Self, Diagnostics> {
        let analysis = analyse(model)?;
        let mut rank = vec![0; model.entries.len()];
        for (place, entry) in analysis.order.iter().enumerate() {
            rank[entry.index()] = place;
        }
        let mut plan = Self {
            model,
            works: Vec::new(),
            first_phase: Vec::new(),
            first_activity: 0,
            entries: Vec::new(),
            order: analysis.order,
            rank,
            rows: rows(model),
            next_row: 0,
            threads: model.tasks.iter().map(Task::all_threads).collect(),
            caps: (0..model.processors.len()).map(|processor| model.cap(processor.into())).collect(),
            arrivals: Vec::new(),
            processor_arrivals: Vec::new(),
            caveats: caveats::of_model(model, Answer::Analysis),
        };
        plan.add_works();
        plan.add_entries(analysis.invocations);
        plan.follow_forwards()?;
        Ok(plan)
    }

    /// Whether the task is a source of load.
    pub fn is_source(&self, task: TaskId) -> bool {
        self.model.tasks[task.index()].scheduling.is_source()
    }

    fn add_works(&mut self) {
        let model = self.model;
        for entry in &model.entries {
            self.first_phase.push(self.works.len());
            if let Body::Phases(phases) = &entry.body {
                for work in phases.iter().take(3) {
                    self.add_work(work, entry.task);
                }
            }
        }
        self.first_activity = self.works.len();
        for activity in &model.activities {
            self.add_work(&activity.work, activity.task);
        }
    }

    fn add_work(&mut self, work: &Work, task: TaskId) {
        let model = self.model;
        let mut calls = Vec::new();
        for call in &work.calls {
            calls.push(PlannedCall {
                to: call.to,
                synchronous: call.kind == CallKind::Synchronous,
                mean: call.mean * model.replicas_called(task, call.to),
                row: self.next_row,
                forwarded: false,
            });
            self.next_row += 1;
        }
        let slices = 1.0 + calls.iter().map(|call| call.mean).sum::<f64>();
        let speed = model.speed(task);
        let variance_of_calls = work.call_order.variance(calls.iter().map(|call| call.mean));
        self.works.push(PlannedWork {
            slice: work.demand / speed / slices,
            cv2: work.cv2.unwrap_or(1.0),
            slices,
            think: work.think_time,
            think_cv2: work.think_cv2.unwrap_or(1.0),
            deterministic: work.call_order != CallOrder::Stochastic,
            variance_of_calls,
            calls,
        });
    }

    fn add_entries(&mut self, invocations: Vec<Invocation>) {
        for ((index, entry), invocation) in self.model.entries.iter().enumerate().zip(invocations) {
            let planned = |step: &StrandStep| PlannedStep {
                work: match step.work {
                    StepWork::Phase(phase) => self.first_phase[index] + phase,
                    StepWork::Activity(activity) => self.first_activity + activity.index(),
                },
                visits: step.visits,
                phase: step.phase,
            };
            let strands = invocation.strands.iter();
            let steps: Vec<Vec<PlannedStep>> =
                strands.map(|strand| strand.steps.iter().map(planned).collect()).collect();
            let goes_on = |fork: &Parallel| fork.phase > 0 || fork.quorum.is_some_and(|of| of < fork.branches.len());
            let later = steps.iter().flatten().any(|step| step.phase > 0 && !self.works[step.work].is_empty())
                || invocation.forks.iter().any(goes_on);
            self.caveats.extend(caveats::of_invocation(&entry.name, &invocation, Answer::Analysis));
            self.entries.push(PlannedEntry {
                task: entry.task,
                invocation,
                steps,
                open: entry.open_arrival_rate.unwrap_or(0.0),
                forwards: Vec::new(),
                later,
            });
        }
    }

    /// Adds to each call where it is forwarded on to: the caller waits there, too.
    fn follow_forwards(&mut self) -> Result<(), Diagnostics> {
        let first_forward =
            self.rows.len() - self.model.entries.iter().map(|entry| entry.forwarding.len()).sum::<usize>();
        let mut first = Vec::with_capacity(self.entries.len());
        let mut row = first_forward;
        for entry in &self.model.entries {
            first.push(row);
            row += entry.forwarding.len();
        }
        let mut needed: Vec<bool> = self.entries.iter().map(|entry| entry.open > 0.0).collect();
        for call in self.works.iter().flat_map(|work| &work.calls) {
            needed[call.to.index()] = true;
        }
        let mut total = 0;
        for (start, needed) in needed.into_iter().enumerate() {
            if !needed || self.model.entries[start].forwarding.is_empty() {
                continue;
            }
            let chain = self.chain(start, &first);
            total += chain.len();
            if total > MOST {
                return Err(too_large().into());
            }
            self.entries[start].forwards = chain;
        }
        for index in 0..self.works.len() {
            let own = self.works[index].calls.len();
            for position in 0..own {
                let call = self.works[index].calls[position];
                for &(to, probability, row) in &self.entries[call.to.index()].forwards {
                    total += 1;
                    self.works[index].calls.push(PlannedCall {
                        to,
                        mean: call.mean * probability,
                        row,
                        forwarded: true,
                        ..call
                    });
                }
            }
            if total > MOST {
                return Err(too_large().into());
            }
        }
        Ok(())
    }

    /// All that a request to `start` is forwarded to, with the probability that it gets there.
    fn chain(&self, start: usize, first: &[usize]) -> Vec<(EntryId, f64, usize)> {
        let mut reached: std::collections::BTreeMap<usize, f64> = std::collections::BTreeMap::new();
        let mut rows: IndexMap<usize, f64, FxBuildHasher> = IndexMap::default();
        reached.insert(self.rank[start], 1.0);
        while let Some((rank, probability)) = reached.pop_first() {
            let entry = self.order[rank].index();
            for (position, forward) in self.model.entries[entry].forwarding.iter().enumerate() {
                let on = probability * forward.probability;
                *reached.entry(self.rank[forward.to.index()]).or_default() += on;
                *rows.entry(first[entry] + position).or_default() += on;
            }
        }
        rows.into_iter().map(|(row, probability)| (self.rows[row].1, probability, row)).collect()
    }
}

/// Rows of the results of calls: those of entries by phase, then of activities, then forwardings.
pub(crate) fn rows(model: &Model) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |caller: Caller, work: &Work| {
        rows.extend(work.calls.iter().map(|call| (caller, call.to, Some(call.kind))));
    };
    for (index, entry) in model.entries.iter().enumerate() {
        if let Body::Phases(phases) = &entry.body {
            for (phase, work) in (1..=3).zip(phases) {
                add(Caller::Phase(EntryId::from(index), phase), work);
            }
        }
    }
    for (index, activity) in model.activities.iter().enumerate() {
        add(Caller::Activity(index.into()), &activity.work);
    }
    for (index, entry) in model.entries.iter().enumerate() {
        rows.extend(entry.forwarding.iter().map(|forward| (Caller::Forward(EntryId::from(index)), forward.to, None)));
    }
    rows
}

/// Checks a model and analyses it.
pub(crate) fn analyse(model: &Model) -> Result<OperationalAnalysis<'_>, Diagnostics> {
    check::check(model)?;
    OperationalAnalysis::new(model, MOST).map_err(|errors| {
        Diagnostics(errors.into_iter().take(check::MOST_ERRORS).map(|error| diagnostic(model, error)).collect())
    })
}

fn diagnostic(model: &Model, error: AnalysisError) -> Diagnostic {
    match error {
        AnalysisError::Activities { entry, error } => without_meaning(model, entry, error),
        AnalysisError::CallCycle(circle) => call_cycle(model, &circle),
        _ => too_large(),
    }
}

/// Says what is wrong with the activities of an entry.
pub(crate) fn without_meaning(model: &Model, entry: EntryId, error: InvocationError) -> Diagnostic {
    let what = match error {
        InvocationError::Flow(FlowError::OtherTask(_)) => "lead to an activity of another task".to_owned(),
        InvocationError::Flow(FlowError::TwoWays(activity)) => {
            let name = &model.activities[activity.index()].name;
            format!("lead to `{name}` in two ways without a join, or run in a circle")
        }
        InvocationError::Flow(_) => "run in a circle".to_owned(),
        _ => "join branches that no fork began".to_owned(),
    };
    let name = &model.entries[entry.index()].name;
    Diagnostic::error(codes::GRAPH, Place::Nowhere, format!("activities of entry `{name}` {what}"))
}

/// The longest name that is written out, in letters.
const LONGEST_NAME: usize = 80;

/// A name without the middle of what is too long.
fn shortened(name: &str) -> Cow<'_, str> {
    let letters = name.chars().count();
    if letters <= LONGEST_NAME {
        return Cow::Borrowed(name);
    }
    let half = LONGEST_NAME / 2;
    let (begin, end): (String, String) =
        (name.chars().take(half).collect(), name.chars().skip(letters - half).collect());
    Cow::Owned(format!("{begin}…{end}"))
}

fn call_cycle(model: &Model, circle: &[EntryId]) -> Diagnostic {
    let names: Vec<Cow<'_, str>> = circle.iter().map(|entry| shortened(&model.entries[entry.index()].name)).collect();
    let shown = if names.len() > 8 {
        format!("{} → … → {}", names[..4].join(" → "), names[names.len() - 1])
    } else {
        names.join(" → ")
    };
    Diagnostic::error(codes::CYCLE, Place::Nowhere, format!("calls form a cycle: {shown} → {}", names[0]))
        .with_note("an entry that is called on behalf of itself waits for itself")
        .with_hint("take one of these calls out; of traces in a file, `--merge none` keeps the entries of different places in a scenario apart")
}

fn too_large() -> Diagnostic {
    Diagnostic::error(codes::SIZE, Place::Nowhere, format!("the model unfolds into more than {MOST} steps"))
        .with_note("each call is followed to wherever it is forwarded, and each task without a queue into its callers")
}
