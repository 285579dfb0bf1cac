//! What one thread makes of operations.

use std::sync::Arc;

use crate::codes;
use crate::driver::{self, Committed, Irregularity, Observer, Outcome, Plans};
use crate::explain::{Bound, Study, Variable, Variables};
use crate::facts::{GraphFacts, NoRelations, RuleRelations};
use crate::matcher::{Matcher, Relations, Symbols};
use crate::recognise::{self, ROUNDS_PER_NODE};
use crate::reducer::{Bindings, BoundTo, ERRORS, EngineKind, MatchRow, Pending, ReduceOptions};
#[cfg(feature = "reference")]
use crate::reference::Reference;
use crate::rules::Rules;
use crate::summary::Summary;
use dyelog_diagnostic::{Diagnostic, Severity};
use dyelog_trace::quality::{QualityReport, Repeat, Verdict, examine};
use dyelog_trace::{NodeId, Operation, ReadReport, Toeg, TraceNames};

/// Reduces operations one after the other.
pub(super) struct Worker {
    /// All that it has made so far.
    pub(super) summary: Summary,
    symbols: Symbols,
    known_names: usize,
    report: Report,
}

/// What there is to say about operations, in their order.
#[derive(Default)]
pub(super) struct Report {
    pub(super) quality: QualityReport,
    pub(super) findings: ReadReport,
    pub(super) matches: Vec<MatchRow>,
    pub(super) errors: Vec<Diagnostic>,
    pub(super) nodes: u64,
    pub(super) processed: u64,
}

impl Report {
    /// Takes in the report about what came next.
    pub(super) fn merge(&mut self, mut next: Self) {
        self.quality.merge(next.quality);
        self.findings.merge(next.findings);
        self.findings.trim();
        self.matches.append(&mut next.matches);
        self.errors.append(&mut next.errors);
        self.nodes += next.nodes;
        self.processed += next.processed;
    }
}

impl Worker {
    pub(super) fn new(options: ReduceOptions) -> Self {
        let summary = Summary::with(options.merge, options.is_silent_apart);
        Self { summary, symbols: Symbols::default(), known_names: 0, report: Report::default() }
    }

    /// What there is to say about the operations since the last report.
    pub(super) fn report(&mut self) -> Report {
        std::mem::take(&mut self.report)
    }

    /// Takes in one operation, unless it is one that came before.
    pub(super) fn take(&mut self, rules: &Rules, options: ReduceOptions, names: &TraceNames, pending: Pending) {
        let Pending { operation, repeat } = pending;
        if let Some(repeat) = repeat {
            let finding = repeat.diagnostic(&operation, names);
            if repeat == Repeat::Same && options.policy.strict {
                self.report.errors.push(Diagnostic { severity: Severity::Error, ..finding.clone() });
            }
            self.report.quality.repeated(repeat, &operation, names, finding);
            if repeat == Repeat::Same {
                return;
            }
        }
        self.operation(rules, options, names, operation);
    }

    fn operation(&mut self, rules: &Rules, options: ReduceOptions, names: &TraceNames, operation: Operation) {
        let toeg = match Toeg::build(operation) {
            Ok(toeg) => {
                self.report.quality.sound(toeg.operation());
                toeg
            }
            Err(refused) => {
                let mut operation = *refused;
                let verdict = examine(&mut operation, names);
                self.report.quality.record(&operation, names, &verdict);
                if let (true, Verdict::Damaged(damage)) = (options.policy.strict, &verdict) {
                    let mut error = damage.diagnostic(&operation, names, false);
                    error.severity = Severity::Error;
                    self.report.errors.push(error);
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
        self.report.nodes += toeg.len() as u64;
        self.left_over(rules, &toeg, names, &outcome);
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
        let matcher = recognise::matcher(rules, names, toeg, &self.symbols, relations);
        let outcome = if options.keep_matches {
            let first = self.report.matches.len();
            let mut keep = Keep { rows: &mut self.report.matches, names };
            let outcome = control(rules, options, toeg, matcher, &mut keep);
            if options.keep_bindings {
                let study = Study::new(rules, names, toeg, relations);
                // Both engines commit the same matches in the same order.
                for (row, made) in self.report.matches[first..].iter_mut().zip(&study.matches) {
                    row.bindings = Some(bindings(&study, &Variables::of(&study, made)));
                }
            }
            outcome
        } else {
            control(rules, options, toeg, matcher, &mut ())
        };
        if let Some(failure) = answered.as_ref().and_then(RuleRelations::failure) {
            self.report.errors.extend(failure.0);
        }
        outcome
    }

    /// Counts what matching left over.
    fn left_over(&mut self, rules: &Rules, toeg: &Toeg, names: &TraceNames, outcome: &Outcome) {
        let unmatched = outcome.irregular.iter().filter(|(what, _)| *what == Irregularity::Unmatched).count();
        self.report.processed += (toeg.len() - unmatched) as u64;
        for &(what, node) in &outcome.irregular {
            self.report.findings.count(title(what), || irregularity(what, toeg, names, node));
        }
        let misplaced = outcome.misplaced.iter().take(ERRORS);
        self.report.errors.extend(misplaced.map(|given| wrong_task(rules, toeg, names, outcome, *given)));
    }
}

/// Runs the control algorithm with the engine that is asked for.
fn control<'a, O: Observer>(
    rules: &'a Rules,
    options: ReduceOptions,
    toeg: &'a Toeg,
    matcher: Matcher<'a>,
    observer: &mut O,
) -> Outcome {
    match options.engine {
        EngineKind::Plans => {
            let mut engine = Plans::new(matcher);
            let mut outcome = driver::run(toeg, rules.plans(), &mut engine, observer);
            if engine.matcher.budget.get() == 0 {
                outcome.irregular.push((Irregularity::Budget, toeg.root()));
            }
            outcome
        }
        #[cfg(feature = "reference")]
        EngineKind::Crepe => driver::run(toeg, rules.plans(), &mut Reference::new(rules, &matcher), observer),
        // The reducer has refused to begin.
        #[cfg(not(feature = "reference"))]
        EngineKind::Crepe => Outcome::default(),
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
            entry: (committed.entry < driver::UNOWNED).then_some(committed.entry),
            bindings: None,
        });
    }
}

fn bindings(study: &Study<'_>, variables: &Variables) -> Bindings {
    let node = |(name, node): &(String, NodeId)| {
        let event = study.toeg.event(*node);
        (name.clone(), event.thread, event.index)
    };
    let variable = |variable: &Variable| {
        let value = match variable.value {
            Bound::Thread(number) | Bound::Number(number) => BoundTo::Number(number),
            Bound::Task(task) => BoundTo::Text(study.names.task_label(task)),
            Bound::Name(name) => BoundTo::Text(study.names.names.text(name).to_owned()),
        };
        (variable.name.clone(), value)
    };
    Bindings {
        nodes: variables.nodes.iter().map(node).collect(),
        variables: variables.list.iter().map(variable).collect(),
    }
}

fn title(what: Irregularity) -> &'static str {
    match what {
        Irregularity::Unmatched => "node that no template matches",
        Irregularity::Stray => "thread that moves to another task with no recognised request",
        Irregularity::WrongTrigger => "trigger with another label than the trace has",
        Irregularity::Barrier => "barrier that the model leaves out",
        Irregularity::Wait => "wait for another visit that the model leaves out",
        Irregularity::Budget => "operation in which matching stopped early",
    }
}

/// That a template gives work to an entry of a task that does not do it.
fn wrong_task(
    rules: &Rules,
    toeg: &Toeg,
    names: &TraceNames,
    outcome: &Outcome,
    (node, template): (NodeId, Option<u16>),
) -> Diagnostic {
    let event = toeg.event(node);
    let entry = outcome.owner[node as usize];
    let serves = outcome.entries.get(entry as usize).and_then(|entry| entry.task);
    let serves = serves.map_or_else(String::new, |task| names.task_label(task));
    let template = template.and_then(|template| rules.plans().get(template as usize));
    let template = template.map_or_else(|| "a template".to_owned(), |plan| format!("template `{}`", plan.name));
    let message = format!(
        "node `{}` runs on task `{}`, and {template} gives it to entry E{entry} of task `{serves}`",
        label(toeg, names, node),
        names.task_label(event.task),
    );
    Diagnostic::error(codes::MISPLACED, toeg.operation().place(event), message)
        .with_note("work belongs to an entry of the task that does it")
        .with_hint("name tasks by variables, so that `dyelog rules check` sees it")
}

/// A node as the native format writes it.
fn label(toeg: &Toeg, names: &TraceNames, node: NodeId) -> String {
    let event = toeg.event(node);
    format!(
        "{},{},{},{} | {},{}",
        names.names.text(toeg.operation().scenario),
        event.thread,
        event.index,
        event.kind.label(),
        names.task_label(event.task),
        event.counter
    )
}

fn irregularity(what: Irregularity, toeg: &Toeg, names: &TraceNames, node: NodeId) -> Diagnostic {
    let event = toeg.event(node);
    let place = toeg.operation().place(event);
    let label = label(toeg, names, node);
    match what {
        Irregularity::Unmatched => {
            Diagnostic::warning(codes::UNMATCHED, place, format!("no template matches node `{label}`"))
                .with_note("its work is missing from the model")
        }
        Irregularity::Stray => Diagnostic::warning(
            codes::UNOWNED,
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
        Irregularity::Barrier => Diagnostic::warning(
            codes::BARRIER,
            place,
            format!("the wait at node `{label}` is not in the model"),
        )
        .with_note(
            "the model has a barrier only where one visit asked for all that meet, and the same visits meet each time",
        ),
        Irregularity::Wait => Diagnostic::warning(
            codes::LOST_WAIT,
            place,
            format!("the wait at node `{label}` is not in the model"),
        )
        .with_note(
            "the thread that it waits for ends in a visit that this one did not ask for, by what templates recognise",
        )
        .with_note("responses of the model are too short by that wait")
        .with_hint(
            "a template can say what it waits for: `awaitRequest`, `addBranch`, or `addBarrier` as in `ext/barrier.dl`",
        ),
        Irregularity::Budget => Diagnostic::warning(
            codes::BUDGET,
            place,
            format!("matching stopped searching for sequences after {ROUNDS_PER_NODE} steps a node"),
        )
        .with_note("interactions with a `repeat` may be missing from the model"),
    }
}
