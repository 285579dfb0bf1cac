//! What the templates recognise in one operation, for pictures and listings.

use std::sync::Arc;

use crate::counters::TaskCounters;
use crate::driver::{self, Committed, EntryNumber, Observer, Outcome, Plans};
use crate::facts::{GraphFacts, NoRelations, RuleRelations};
use crate::matcher::{Matcher, Relations, Starting, Symbols};
use crate::rules::Rules;
use crate::visits::Visits;
use dyelog_diagnostic::Diagnostics;
use dyelog_trace::{NodeId, Toeg, TraceNames};

/// Rounds of repetitions that may be walked for each node, on average, as when traces are reduced.
pub(super) const ROUNDS_PER_NODE: u64 = 64;

/// A committed match with all its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recognised {
    /// The template.
    pub template: Arc<str>,
    /// The glue node.
    pub glue: NodeId,
    /// The nodes that it consumed, the glue node among them, in order.
    pub nodes: Vec<NodeId>,
    /// The entry that owns the glue node.
    pub entry: EntryNumber,
}

struct Keep(Vec<Recognised>);

impl Observer for Keep {
    fn committed(&mut self, _: &Toeg, committed: &Committed<'_>) {
        let (plan, found) = (committed.plan, committed.found);
        let fixed = plan.effects.consumed.iter().map(|consumed| found.slot(consumed.slot));
        let mut nodes: Vec<NodeId> = fixed.chain(found.rounds.iter().copied()).collect();
        nodes.push(committed.glue);
        nodes.sort_unstable();
        nodes.dedup();
        self.0.push(Recognised {
            template: Arc::clone(&plan.name),
            glue: committed.glue,
            nodes,
            entry: committed.entry,
        });
    }
}

/// Runs the control algorithm over one operation and keeps what it committed, in order.
///
/// # Errors
/// When the evaluation of a rule file's relations gives up.
pub fn recognise(rules: &Rules, names: &TraceNames, toeg: &Toeg) -> Result<(Outcome, Vec<Recognised>), Diagnostics> {
    with_relations(rules, names, toeg, |relations| {
        let symbols = Symbols::of(rules.code(), names);
        let mut keep = Keep(Vec::new());
        let mut engine = Plans::new(matcher(rules, names, toeg, &symbols, relations));
        let outcome = driver::run(toeg, rules.plans(), &mut engine, &mut keep);
        (outcome, keep.0)
    })
}

/// Does something with the relations of the rules over a graph.
///
/// # Errors
/// When their evaluation gives up.
pub fn with_relations<T>(
    rules: &Rules,
    names: &TraceNames,
    toeg: &Toeg,
    work: impl FnOnce(&dyn Relations) -> T,
) -> Result<T, Diagnostics> {
    let Some(compiled) = rules.relations() else { return Ok(work(&NoRelations)) };
    let facts = GraphFacts::new(toeg, names);
    let relations = RuleRelations::new(compiled, &facts);
    let done = work(&relations);
    relations.failure().map_or(Ok(done), Err)
}

/// A matcher for one operation, with as large a budget as when traces are reduced.
// Out of line it costs a tenth of the whole run on small operations (`cargo bench -p dyelog-templates --bench templates`).
#[inline]
pub(super) fn matcher<'a>(
    rules: &'a Rules,
    names: &'a TraceNames,
    toeg: &'a Toeg,
    symbols: &'a Symbols,
    relations: &'a dyn Relations,
) -> Matcher<'a> {
    Matcher {
        program: rules.code(),
        toeg,
        names,
        symbols,
        relations,
        budget: budget(toeg).into(),
        visits: Visits::default(),
        counters: TaskCounters::default(),
        starting: Starting::default(),
    }
}

/// How many rounds of repetitions may be walked in an operation.
pub(super) fn budget(toeg: &Toeg) -> u64 {
    ROUNDS_PER_NODE * toeg.len() as u64
}
