//! From a reader's operations to a sub-model, with what was found on the way.

mod channels;
mod worker;

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::codes;
use crate::reducer::channels::Workers;
use crate::reducer::worker::{Report, Worker};
use crate::rules::Rules;
use crate::summary::EntryMerge;
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog_lqn::submodel::SubModel;
use dyelog_trace::quality::{Policy, QualityReport, Repeat, Runs};
use dyelog_trace::{Operation, ReadReport, Sink, TraceNames};

/// Which engine matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineKind {
    /// Ours: plans.
    #[default]
    Plans,
    /// The reference, compiled by crepe from the shipped rule files; slow and hungry.
    Crepe,
}

/// How to reduce.
#[derive(Clone, Copy, Debug)]
pub struct ReduceOptions {
    /// What tells entries apart.
    pub merge: EntryMerge,
    /// Whether invocations that a service recorded nothing of are [apart](dyelog_lqn::submodel::EntryKey::apart) from those that it recorded.
    pub is_silent_apart: bool,
    /// Which engine matches.
    pub engine: EngineKind,
    /// What to do with damaged operations.
    pub policy: Policy,
    /// How many threads may work; the result does not depend on it.
    pub threads: usize,
    /// Whether to keep a row for each committed match.
    pub keep_matches: bool,
    /// Whether to keep with each row what the match binds, which takes a second run of the control algorithm.
    pub keep_bindings: bool,
}

impl Default for ReduceOptions {
    fn default() -> Self {
        Self {
            merge: EntryMerge::Name,
            is_silent_apart: false,
            engine: EngineKind::Plans,
            policy: Policy::default(),
            threads: 1,
            keep_matches: false,
            keep_bindings: false,
        }
    }
}

/// A committed match, by its glue node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchRow {
    /// Scenario name.
    pub scenario: Arc<str>,
    /// Run identifier.
    pub run: Arc<str>,
    /// Thread of the glue node.
    pub thread: u32,
    /// Thread node counter of the glue node.
    pub node: u32,
    /// The template.
    pub template: Arc<str>,
    /// The entry that owns the glue node, by its number within the operation: the paper's E0, E1, …; `None` for a node
    /// on a task that its thread came to with no recognised request.
    pub entry: Option<u32>,
    /// What it binds, where that was asked for.
    pub bindings: Option<Bindings>,
}

/// What a match binds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bindings {
    /// Nodes by the names that the template gives them, with the round of a `repeat`, `f[2]`: thread and thread node counter.
    pub nodes: Vec<(String, u32, u32)>,
    /// Variables: a thread, a counter, a task, a name.
    pub variables: Vec<(String, BoundTo)>,
}

/// What a variable is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundTo {
    /// A thread or a counter.
    Number(i64),
    /// A task or a name.
    Text(String),
}

/// What a reduction comes to.
#[derive(Clone, Debug, Default)]
pub struct Reduction {
    /// The sub-model.
    pub submodel: SubModel,
    /// Which operations were damaged, and how.
    pub quality: QualityReport,
    /// What matching left over: nodes that no template matches and the like, counted and the first of each in full.
    pub findings: ReadReport,
    /// Committed matches in the order of operations and of commitment, where they were asked for.
    pub matches: Vec<MatchRow>,
    /// How many nodes the well-formed operations have.
    pub nodes: u64,
    /// How many of them a match consumed.
    pub processed: u64,
}

/// Operations go to another thread together once they have that many events.
const BATCH: usize = 1 << 16;

/// They are worked on by the same thread once they have that many: while they are in the cache.
const BATCH_HERE: usize = 1 << 12;

/// How many errors are shown before strict reading ends.
pub(super) const ERRORS: usize = 20;

/// An operation to reduce.
struct Pending {
    operation: Operation,
    /// How it repeats an earlier one.
    repeat: Option<Repeat>,
}

/// Reduces operations to a sub-model. Operations of one reducer must share one [`TraceNames`].
///
/// With several threads the caller's reads on while the others reduce what it has read, and reduces what comes last. An input
/// of one batch is reduced by the caller's alone.
pub struct Reducer<'r> {
    rules: &'r Rules,
    options: ReduceOptions,
    pending: Vec<Pending>,
    pending_events: usize,
    runs: Runs,
    here: Worker,
    workers: Option<Workers>,
    /// About all operations so far.
    report: Report,
}

/// Why these rules cannot be run by that engine.
fn without_engine(rules: &Rules, engine: EngineKind) -> Option<Diagnostic> {
    if engine == EngineKind::Plans {
        return None;
    }
    if !cfg!(feature = "reference") {
        let finding =
            Diagnostic::error(codes::ENGINE, Place::Nowhere, "this program was built without the reference engine")
                .with_note("it takes long to compile and serves for tests and for doubts")
                .with_hint("build dyelog with `--features crepe`, or use `--engine plans`");
        return Some(finding);
    }
    (!rules.is_default()).then(|| {
        Diagnostic::error(codes::ENGINE, Place::Nowhere, "the reference engine has the shipped rules only")
            .with_note("it is compiled when dyelog is built, and cannot take in other rule files")
            .with_hint("leave out `--rules`, or use `--engine plans`")
    })
}

impl<'r> Reducer<'r> {
    /// A reducer by rules.
    pub fn new(rules: &'r Rules, options: ReduceOptions) -> Self {
        let mut report = Report::default();
        report.errors.extend(without_engine(rules, options.engine));
        let here = Worker::new(options);
        Self {
            rules,
            options,
            pending: Vec::new(),
            pending_events: 0,
            runs: Runs::default(),
            here,
            workers: None,
            report,
        }
    }

    /// Works on what is pending, or lets another thread work on it.
    fn flush(&mut self, names: &TraceNames) {
        if self.workers.is_none() && self.options.threads > 1 {
            self.workers = Workers::start(self.options.threads - 1, &Arc::new(self.rules.clone()), self.options);
        }
        let operations = self.take_pending();
        let report = &mut self.report;
        match &mut self.workers {
            Some(workers) if !operations.is_empty() => workers.give(operations, names, &mut |next| report.merge(next)),
            _ => {
                self.work_here(operations, names);
                self.report.merge(self.here.report());
            }
        }
    }

    /// What is pending. Where enough errors are known there is nothing left to do but to read on, so that what is said does
    /// not depend on when they became known.
    fn take_pending(&mut self) -> Vec<Pending> {
        let operations = std::mem::take(&mut self.pending);
        self.pending_events = 0;
        if self.report.errors.len() >= ERRORS { Vec::new() } else { operations }
    }

    fn work_here(&mut self, operations: Vec<Pending>, names: &TraceNames) {
        for one in operations {
            self.here.take(self.rules, self.options, names, one);
        }
    }

    /// The reduction.
    ///
    /// # Errors
    /// Where the policy is strict, damaged operations; and rules that evaluation gave up on.
    pub fn finish(mut self, names: &TraceNames) -> Result<Reduction, Diagnostics> {
        // What came last is for this thread, which has nothing else to do while the others come to their end.
        let last = self.take_pending();
        self.work_here(last, names);
        let mut report = self.report;
        let others = self.workers.map_or(Vec::new(), |workers| workers.finish(&mut |next| report.merge(next)));
        report.merge(self.here.report());
        if !report.errors.is_empty() {
            report.errors.truncate(ERRORS);
            return Err(Diagnostics(report.errors));
        }
        let mut submodel = self.here.summary.into_submodel();
        for other in others {
            submodel.merge(&other.summary.into_submodel());
        }
        report.quality.trim();
        Ok(Reduction {
            submodel,
            quality: report.quality,
            findings: report.findings,
            matches: report.matches,
            nodes: report.nodes,
            processed: report.processed,
        })
    }
}

impl Sink for Reducer<'_> {
    fn operation(&mut self, names: &TraceNames, operation: Operation) -> ControlFlow<()> {
        if without_engine(self.rules, self.options.engine).is_some() {
            return ControlFlow::Break(());
        }
        let repeat = self.runs.repeat(&operation);
        // A batch is given out when more comes. Were it given out at once, an input of one batch would go to another thread
        // with nothing for this one to do.
        let batch = if self.options.threads > 1 { BATCH } else { BATCH_HERE };
        if self.pending_events >= batch {
            self.flush(names);
        }
        self.pending_events += operation.events.len();
        self.pending.push(Pending { operation, repeat });
        ControlFlow::Continue(())
    }
}
