//! From a reader's operations to a sub-model, with what was found on the way.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics, Place, Severity};
use crate::lqn::submodel::SubModel;
use crate::tlc::codes;
use crate::tlc::driver::{self, Committed, Irregularity, Observer, Outcome, Plans};
use crate::tlc::facts::{GraphFacts, NoRelations, RuleRelations};
use crate::tlc::matcher::{Matcher, Relations, Symbols};
use crate::tlc::reference::Reference;
use crate::tlc::rules::Rules;
use crate::tlc::summary::{EntryMerge, Summary};
use crate::tlc::visits::Visits;
use crate::trace::quality::{Policy, QualityReport, Verdict, examine};
use crate::trace::{NodeId, Operation, ReadReport, Sink, Toeg, TraceNames};

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
    /// How entries are told apart.
    pub merge: EntryMerge,
    /// Which engine matches.
    pub engine: EngineKind,
    /// What to do with damaged operations.
    pub policy: Policy,
    /// How many threads may work; the result does not depend on it.
    pub threads: usize,
    /// Whether to keep a row for each committed match.
    pub keep_matches: bool,
}

impl Default for ReduceOptions {
    fn default() -> Self {
        Self {
            merge: EntryMerge::Name,
            engine: EngineKind::Plans,
            policy: Policy::default(),
            threads: 1,
            keep_matches: false,
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

/// Operations are worked on together once they have that many events.
const BATCH: usize = 1 << 16;

/// How many errors are shown before strict reading ends.
const ERRORS: usize = 20;

/// Rounds of repetitions that may be walked for each node of an operation, on average.
const ROUNDS_PER_NODE: u64 = 64;

/// Reduces operations to a sub-model. Operations of one reducer must share one [`TraceNames`].
pub struct Reducer<'r> {
    rules: &'r Rules,
    options: ReduceOptions,
    pool: Option<rayon::ThreadPool>,
    pending: Vec<Operation>,
    pending_events: usize,
    workers: Vec<Worker>,
    errors: Vec<Diagnostic>,
}

/// What one thread has made of its share.
struct Worker {
    summary: Summary,
    symbols: Symbols,
    known_names: usize,
    quality: QualityReport,
    findings: ReadReport,
    matches: Vec<MatchRow>,
    errors: Vec<Diagnostic>,
    nodes: u64,
    processed: u64,
}

impl<'r> Reducer<'r> {
    /// A reducer by rules.
    pub fn new(rules: &'r Rules, options: ReduceOptions) -> Self {
        let threads = options.threads.max(1);
        let pool = (threads > 1).then(|| rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok()).flatten();
        let workers = (0..threads).map(|_| Worker::new(options.merge)).collect();
        let mut errors = Vec::new();
        if options.engine == EngineKind::Crepe && !rules.is_default() {
            errors.push(
                Diagnostic::error(codes::ENGINE, Place::Nowhere, "the reference engine has the shipped rules only")
                    .with_note("it is compiled when dyelog is built, and cannot take in other rule files")
                    .with_hint("leave out `--rules`, or use `--engine plans`"),
            );
        }
        Self { rules, options, pool, pending: Vec::new(), pending_events: 0, workers, errors }
    }

    /// Works on what is pending. Shares of threads are consecutive, so that what they keep can be put in order.
    fn flush(&mut self, names: &TraceNames) {
        let mut pending = std::mem::take(&mut self.pending);
        self.pending_events = 0;
        let (rules, options) = (self.rules, self.options);
        match &self.pool {
            Some(pool) if pending.len() > 1 => {
                let shares = shares(pending, self.workers.len());
                pool.scope(|scope| {
                    for (worker, share) in self.workers.iter_mut().zip(shares) {
                        scope.spawn(move |_| {
                            for operation in share {
                                worker.operation(rules, options, names, operation);
                            }
                        });
                    }
                });
            }
            _ => {
                for operation in pending.drain(..) {
                    self.workers[0].operation(rules, options, names, operation);
                }
            }
        }
        // What is kept in full and in order moves to the first worker; sums stay where they are until the end.
        let (first, others) = self.workers.split_at_mut(1);
        for worker in others {
            first[0].matches.append(&mut worker.matches);
            first[0].quality.merge(std::mem::take(&mut worker.quality));
            first[0].findings.merge(std::mem::take(&mut worker.findings));
            first[0].errors.append(&mut worker.errors);
        }
        first[0].findings.trim();
        self.errors.append(&mut first[0].errors);
    }

    /// The reduction.
    ///
    /// # Errors
    /// Where the policy is strict, damaged operations; and rules that evaluation gave up on.
    pub fn finish(mut self, names: &TraceNames) -> Result<Reduction, Diagnostics> {
        self.flush(names);
        if !self.errors.is_empty() {
            self.errors.truncate(ERRORS);
            return Err(Diagnostics(self.errors));
        }
        let mut reduction = Reduction::default();
        for (place, mut worker) in self.workers.into_iter().enumerate() {
            reduction.nodes += worker.nodes;
            reduction.processed += worker.processed;
            if place == 0 {
                reduction.submodel = worker.summary.into_submodel();
                worker.quality.trim();
                reduction.quality = worker.quality;
                reduction.findings = worker.findings;
                reduction.matches = worker.matches;
            } else {
                reduction.submodel.merge(&worker.summary.into_submodel());
            }
        }
        Ok(reduction)
    }
}

impl Sink for Reducer<'_> {
    fn operation(&mut self, names: &TraceNames, operation: Operation) -> ControlFlow<()> {
        if self.options.engine == EngineKind::Crepe && !self.rules.is_default() {
            return ControlFlow::Break(());
        }
        self.pending_events += operation.events.len();
        self.pending.push(operation);
        if self.pending_events >= BATCH {
            self.flush(names);
        }
        if self.errors.len() >= ERRORS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Consecutive shares of about the same number of events.
fn shares(operations: Vec<Operation>, count: usize) -> Vec<Vec<Operation>> {
    let total: usize = operations.iter().map(|operation| operation.events.len()).sum();
    let each = total / count + 1;
    let mut shares: Vec<Vec<Operation>> = (0..count).map(|_| Vec::new()).collect();
    let mut seen = 0;
    for operation in operations {
        let share = (seen / each).min(count - 1);
        seen += operation.events.len();
        shares[share].push(operation);
    }
    shares
}

impl Worker {
    fn new(merge: EntryMerge) -> Self {
        Self {
            summary: Summary::new(merge),
            symbols: Symbols::default(),
            known_names: 0,
            quality: QualityReport::default(),
            findings: ReadReport::default(),
            matches: Vec::new(),
            errors: Vec::new(),
            nodes: 0,
            processed: 0,
        }
    }

    fn operation(&mut self, rules: &Rules, options: ReduceOptions, names: &TraceNames, operation: Operation) {
        let toeg = match Toeg::build(operation) {
            Ok(toeg) => {
                self.quality.sound(toeg.operation());
                toeg
            }
            Err(refused) => {
                let mut operation = *refused;
                let verdict = examine(&mut operation, names);
                self.quality.record(&operation, names, &verdict);
                if let (true, Verdict::Damaged(damage)) = (options.policy.strict, &verdict) {
                    let mut error = damage.diagnostic(&operation, names, false);
                    error.severity = Severity::Error;
                    self.errors.push(error);
                }
                match verdict {
                    Verdict::Restored(_) => match Toeg::build(operation) {
                        Ok(toeg) => toeg,
                        Err(_) => return self.summary.set_aside(),
                    },
                    Verdict::Sound | Verdict::Damaged(_) => return self.summary.set_aside(),
                }
            }
        };
        if self.known_names != names.names.len() {
            self.symbols = Symbols::of(rules.code(), names);
            self.known_names = names.names.len();
        }
        let outcome = self.reduce(rules, options, names, &toeg);
        self.nodes += toeg.len() as u64;
        self.report(&toeg, names, &outcome);
        self.summary.add(&toeg, names, &outcome);
    }

    fn reduce(&mut self, rules: &Rules, options: ReduceOptions, names: &TraceNames, toeg: &Toeg) -> Outcome {
        let facts;
        let answered;
        let relations: &dyn Relations = match rules.relations() {
            Some(compiled) => {
                facts = GraphFacts::new(toeg, names);
                answered = Some(RuleRelations::new(compiled, &facts));
                answered.as_ref().expect("just made")
            }
            None => {
                answered = None;
                &NoRelations
            }
        };
        let budget = ROUNDS_PER_NODE * toeg.len() as u64;
        let matcher = Matcher {
            program: rules.code(),
            toeg,
            names,
            symbols: &self.symbols,
            relations,
            budget: budget.into(),
            visits: Visits::default(),
        };
        let mut keep = Keep { rows: &mut self.matches, names };
        let run = |observer: &mut dyn Observer| match options.engine {
            EngineKind::Plans => {
                let mut engine = Plans::new(matcher);
                let mut outcome = driver::run(toeg, rules.plans(), &mut engine, observer);
                if engine.matcher.budget.get() == 0 {
                    outcome.irregular.push((Irregularity::Budget, toeg.root()));
                }
                outcome
            }
            EngineKind::Crepe => driver::run(toeg, rules.plans(), &mut Reference::new(rules, &matcher), observer),
        };
        let outcome = if options.keep_matches { run(&mut keep) } else { run(&mut ()) };
        if let Some(failure) = answered.as_ref().and_then(RuleRelations::failure) {
            self.errors.extend(failure.0);
        }
        outcome
    }

    /// Counts what matching left over.
    fn report(&mut self, toeg: &Toeg, names: &TraceNames, outcome: &Outcome) {
        let unmatched = outcome.irregular.iter().filter(|(what, _)| *what == Irregularity::Unmatched).count();
        self.processed += (toeg.len() - unmatched) as u64;
        for &(what, node) in &outcome.irregular {
            self.findings.count(title(what), || irregularity(what, toeg, names, node));
        }
    }
}

struct Keep<'a> {
    rows: &'a mut Vec<MatchRow>,
    names: &'a TraceNames,
}

impl Observer for Keep<'_> {
    fn committed(&mut self, toeg: &Toeg, committed: &Committed<'_>) {
        let event = toeg.event(committed.glue);
        let operation = toeg.operation();
        self.rows.push(MatchRow {
            scenario: self.names.names.shared(operation.scenario),
            run: Arc::clone(&operation.run),
            thread: event.thread,
            node: event.index,
            template: Arc::clone(&committed.plan.name),
            entry: (committed.entry < driver::STRAY).then_some(committed.entry),
        });
    }
}

fn title(what: Irregularity) -> &'static str {
    match what {
        Irregularity::Unmatched => "node that no template matches",
        Irregularity::Stray => "thread that moves to another task with no recognised request",
        Irregularity::WrongTrigger => "trigger with another label than the trace has",
        Irregularity::Budget => "operation in which matching stopped early",
    }
}

fn irregularity(what: Irregularity, toeg: &Toeg, names: &TraceNames, node: NodeId) -> Diagnostic {
    let event = toeg.event(node);
    let place = toeg.operation().place(event);
    let label = format!(
        "{},{},{},{} | {},{}",
        names.names.text(toeg.operation().scenario),
        event.thread,
        event.index,
        event.kind.label(),
        names.task_label(event.task),
        event.counter
    );
    match what {
        Irregularity::Unmatched => {
            Diagnostic::warning(codes::UNMATCHED, place, format!("no template matches node `{label}`"))
                .with_note("its work is missing from the model")
        }
        Irregularity::Stray => Diagnostic::warning(
            codes::STRAY,
            place,
            format!("the thread comes to node `{label}` with no request that a template recognises"),
        )
        .with_note(
            "a lost reply, or an interaction for which there is no template; the work is not given to a wrong entry",
        )
        .with_hint("`dyelog matches` shows what was recognised up to here"),
        Irregularity::WrongTrigger => {
            Diagnostic::warning(codes::TRIGGER, place, format!("a trigger means another node than `{label}`"))
                .with_note("the thread goes on elsewhere than the template expects")
        }
        Irregularity::Budget => Diagnostic::warning(
            codes::BUDGET,
            place,
            format!("matching stopped searching for sequences after {ROUNDS_PER_NODE} steps a node"),
        )
        .with_note("interactions with a `repeat` may be missing from the model"),
    }
}
