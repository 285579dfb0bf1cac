//! One operation, what was committed in it, and in which order.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::driver::{self, Committed, Engine, EntryNumber, Observer, Outcome, Plans};
use crate::matcher::{Match, Relations, Symbols, Walked};
use crate::pattern::Scope;
use crate::plan::{MAX_SEQUENCES, TemplatePlan};
use crate::recognise::{matcher, with_relations};
use crate::rules::Rules;
use dyelog_datalog::ast::{Statement, Template};
use dyelog_diagnostic::Diagnostics;
use dyelog_trace::quality::{Gate, Policy, QualityReport};
use dyelog_trace::toeg::NONE;
use dyelog_trace::{NodeId, Operation, Sink, Toeg, TraceNames};

/// A match that was committed, with all its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Which of the rules' plans.
    pub template: u16,
    /// The glue node.
    pub glue: NodeId,
    /// The entry that owns it.
    pub entry: EntryNumber,
    /// The number of the first entry that it makes, if it makes any.
    pub first_entry: EntryNumber,
    /// By register.
    pub slots: Vec<NodeId>,
    /// The nodes of all rounds, of one sequence after the other, round 1 first.
    pub rounds: Vec<NodeId>,
    /// Where the sequences are among them.
    pub sequences: [Walked; MAX_SEQUENCES],
}

/// An operation whose interactions were recognised.
#[derive(Debug)]
pub struct Study<'a> {
    /// The rules.
    pub rules: &'a Rules,
    /// Names of the trace.
    pub names: &'a TraceNames,
    /// The graph.
    pub toeg: &'a Toeg,
    /// What came of it.
    pub outcome: Outcome,
    /// The matches, in the order in which they were committed.
    pub matches: Vec<Made>,
    /// By node: how many matches had been committed when templates were tried there; [`NEVER`] where they were not.
    tried: Vec<u32>,
    /// By node: the match that consumed it; [`NEVER`] where none did.
    consumer: Vec<u32>,
}

/// No match, or no trial.
const NEVER: u32 = u32::MAX;

impl<'a> Study<'a> {
    /// Runs the control algorithm over an operation and keeps all it does.
    pub fn new(rules: &'a Rules, names: &'a TraceNames, toeg: &'a Toeg, relations: &dyn Relations) -> Self {
        let symbols = Symbols::of(rules.code(), names);
        let engine = Plans::new(matcher(rules, names, toeg, &symbols, relations));
        let mut engine = Timed { engine, commits: 0, tried: vec![NEVER; toeg.len()] };
        let mut keep = Keep { rules, matches: Vec::new(), next_entry: 2 };
        let outcome = driver::run(toeg, rules.plans(), &mut engine, &mut keep);
        let mut consumer = vec![NEVER; toeg.len()];
        for (number, made) in keep.matches.iter().enumerate() {
            for node in made.consumed(&rules.plans()[made.template as usize]) {
                consumer[node as usize] = number as u32;
            }
        }
        Self { rules, names, toeg, outcome, matches: keep.matches, tried: engine.tried, consumer }
    }

    /// The plan of a match.
    pub fn plan(&self, made: &Made) -> &'a TemplatePlan {
        &self.rules.plans()[made.template as usize]
    }

    /// The template of that number, as the rule file has it.
    ///
    /// # Panics
    /// Where the rules have no plan of that number.
    pub fn template(&self, number: u16) -> &'a Template {
        &self.rules.templates()[number as usize]
    }

    /// The number of the match that consumed a node.
    pub fn consumer(&self, node: NodeId) -> Option<usize> {
        let number = *self.consumer.get(node as usize)?;
        (number != NEVER).then_some(number as usize)
    }

    /// Whether a node had been consumed by the time templates were tried at the other, or that was consumed itself.
    pub fn was_taken(&self, node: NodeId, before: NodeId) -> bool {
        let time = match self.tried[before as usize] {
            NEVER => self.consumer[before as usize].saturating_add(1),
            time => time,
        };
        self.consumer[node as usize] < time
    }

    /// The match that opened an entry; `None` for the customer and for the first entry of the operation.
    pub fn opener(&self, entry: EntryNumber) -> Option<usize> {
        let (entry, _) = self.outcome.part(entry);
        let place = self.matches.partition_point(|made| made.first_entry <= entry);
        // Matches that make no entry stand at the number of the next.
        (entry >= 2 && (entry as usize) < self.outcome.entries.len()).then(|| place.checked_sub(1)).flatten()
    }
}

impl Made {
    /// The nodes that it consumed.
    pub fn consumed<'m>(&'m self, plan: &'m TemplatePlan) -> impl Iterator<Item = NodeId> + 'm {
        let fixed = plan.effects.consumed.iter().map(|consumed| self.slot(consumed.slot));
        fixed.chain(self.rounds.iter().copied()).chain([self.glue])
    }

    /// The node in a register.
    pub fn slot(&self, slot: u8) -> NodeId {
        self.slots.get(slot as usize).copied().unwrap_or(NONE)
    }
}

/// Notes when templates are tried at a node.
struct Timed<E> {
    engine: E,
    commits: u32,
    tried: Vec<u32>,
}

impl<E: Engine> Engine for Timed<E> {
    fn first_match(&mut self, glue: NodeId, flags: &[u8], found: &mut Match) -> bool {
        self.tried[glue as usize] = self.commits;
        let fits = self.engine.first_match(glue, flags, found);
        self.commits += u32::from(fits);
        fits
    }
}

struct Keep<'r> {
    rules: &'r Rules,
    matches: Vec<Made>,
    next_entry: EntryNumber,
}

impl Observer for Keep<'_> {
    fn committed(&mut self, _: &Toeg, committed: &Committed<'_>) {
        let (plan, found) = (committed.plan, committed.found);
        let slots = (0..plan.slot_names.len() as u8).map(|slot| found.slot(slot)).collect();
        let template = &self.rules.templates()[found.template as usize];
        let entries = entries_made(template, found);
        self.matches.push(Made {
            template: found.template,
            glue: committed.glue,
            entry: committed.entry,
            first_entry: self.next_entry,
            slots,
            rounds: found.rounds.clone(),
            sequences: found.sequences,
        });
        self.next_entry += entries;
    }
}

/// How many entries a match makes.
fn entries_made(template: &Template, found: &Match) -> u32 {
    let each = |statement: &Statement| match statement {
        Statement::NewEntry { .. } => 1,
        Statement::Operation { .. } => 0,
        Statement::For { from, to, body, .. } => {
            let count = Scope::of(template).with_count(&to.value).map_or(0, |sequence| found.count(sequence as u8));
            let times = (i64::from(count) - (*from).max(1) + 1).max(0);
            times as u32 * body.iter().filter(|inner| matches!(inner, Statement::NewEntry { .. })).count() as u32
        }
    };
    template.statements.iter().map(each).sum()
}

/// Studies the sound operations that come by, those that are asked for.
pub struct Studies<'r, F> {
    rules: &'r Rules,
    work: F,
    failure: Option<Diagnostics>,
}

impl<'r, F> Studies<'r, F>
where
    F: FnMut(&Study<'_>, &dyn Relations) -> ControlFlow<()>,
{
    /// Does that with each.
    pub fn new(rules: &'r Rules, work: F) -> Self {
        Self { rules, work, failure: None }
    }

    /// Lets a reader's operations come by, after damaged ones are set aside.
    ///
    /// # Errors
    /// What the reader finds, damaged operations where the policy is strict, and rules that evaluation gave up on.
    pub fn run<T>(
        &mut self,
        policy: Policy,
        read: impl FnOnce(&mut dyn Sink) -> Result<T, Diagnostics>,
    ) -> Result<(T, QualityReport), Diagnostics> {
        let mut gate = Gate::new(policy, self);
        let done = read(&mut gate);
        let report = gate.finish();
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        Ok((done?, report?))
    }
}

impl<F> Sink for Studies<'_, F>
where
    F: FnMut(&Study<'_>, &dyn Relations) -> ControlFlow<()>,
{
    fn operation(&mut self, names: &TraceNames, operation: Operation) -> ControlFlow<()> {
        // The gate lets sound operations through only.
        let Ok(toeg) = Toeg::build(operation) else { return ControlFlow::Continue(()) };
        let studied = with_relations(self.rules, names, &toeg, |relations| {
            let study = Study::new(self.rules, names, &toeg, relations);
            (self.work)(&study, relations)
        });
        studied.unwrap_or_else(|failure| {
            self.failure = Some(failure);
            ControlFlow::Break(())
        })
    }
}

/// The run and scenario of an operation.
impl Study<'_> {
    /// The scenario.
    pub fn scenario(&self) -> &str {
        self.names.names.text(self.toeg.operation().scenario)
    }

    /// The run.
    pub fn run(&self) -> &Arc<str> {
        &self.toeg.operation().run
    }
}
