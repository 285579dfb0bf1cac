//! What the templates recognise in one operation, for those who show it.

use std::sync::Arc;

use crate::diagnostic::Diagnostics;
use crate::tlc::driver::{self, Committed, EntryNumber, Observer, Outcome, Plans};
use crate::tlc::facts::{GraphFacts, NoRelations, RuleRelations};
use crate::tlc::matcher::{Matcher, Relations, Symbols};
use crate::tlc::rules::Rules;
use crate::tlc::visits::Visits;
use crate::trace::{NodeId, Toeg, TraceNames};

/// Rounds of repetitions that may be walked for each node, on average, as when traces are reduced.
const ROUNDS_PER_NODE: u64 = 64;

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
    let Some(compiled) = rules.relations() else { return Ok(run(rules, names, toeg, &NoRelations)) };
    let facts = GraphFacts::new(toeg, names);
    let relations = RuleRelations::new(compiled, &facts);
    let found = run(rules, names, toeg, &relations);
    relations.failure().map_or(Ok(found), Err)
}

fn run(rules: &Rules, names: &TraceNames, toeg: &Toeg, relations: &dyn Relations) -> (Outcome, Vec<Recognised>) {
    let symbols = Symbols::of(rules.code(), names);
    let budget = ROUNDS_PER_NODE * toeg.len() as u64;
    let matcher = Matcher {
        program: rules.code(),
        toeg,
        names,
        symbols: &symbols,
        relations,
        budget: budget.into(),
        visits: Visits::default(),
    };
    let mut keep = Keep(Vec::new());
    let mut engine = Plans::new(matcher);
    let outcome = driver::run(toeg, rules.plans(), &mut engine, &mut keep);
    (outcome, keep.0)
}
