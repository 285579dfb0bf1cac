//! Of all operations, the one in which rules come nearest to a fact.

use std::ops::ControlFlow;

use crate::datalog::eval::{Denied, Evaluator, Limits, Pattern, Relation};
use crate::diagnostic::Diagnostics;
use crate::pipeline::facts::{AskedFact, Unnamed};
use crate::query::TraceFacts;
use crate::report::explain::facts::Words;

/// What the rules say of one row that a fact names.
#[derive(Debug)]
pub enum Verdict<'v> {
    /// The row holds.
    Holds(Relation, &'v Pattern),
    /// It does not: why not, followed through the relations that lack a row. The first is about the row itself.
    Denied(&'v [Denied]),
}

/// In how many operations the nearest rule is looked for; in all later ones, only a row that holds.
pub const FOLLOWED: u32 = 1000;

/// What comes nearest to a fact so far. `A` is what the caller makes of a verdict while the facts are there.
#[derive(Debug)]
pub struct Nearest<A> {
    /// How many operations were looked at.
    pub operations: u64,
    /// The nearest of them; none where no operation has what the fact names.
    pub best: Option<Best<A>>,
    /// Names of the fact that no operation has.
    pub unnamed: Unnamed,
    limits: Limits,
}

/// The verdicts on a fact in one operation.
#[derive(Debug)]
pub struct Best<A> {
    /// Whether the fact holds there.
    pub holds: bool,
    /// A verdict for each row that the fact names.
    pub verdicts: Vec<A>,
    /// Literals that hold of the nearest rule.
    held: usize,
}

impl<A> Nearest<A> {
    /// Before any operation is looked at.
    pub fn new(limits: Limits) -> Self {
        Self { operations: 0, best: None, unnamed: Unnamed::default(), limits }
    }

    /// Takes the facts about one operation. `Break` once the fact holds.
    ///
    /// # Errors
    /// The rules exceed the limits.
    pub fn look_at(
        &mut self,
        asked: &AskedFact,
        facts: &TraceFacts<'_>,
        mut tell: impl FnMut(&Words<'_, '_>, Verdict<'_>) -> A,
    ) -> Result<ControlFlow<()>, Diagnostics> {
        self.operations += 1;
        let words = Words { program: &asked.program, question: &asked.question, facts };
        let mut evaluator = Evaluator::with_limits(&asked.question.rules, facts, self.limits);
        let mut here = Best { holds: false, held: 0, verdicts: Vec::new() };
        for (relation, pattern) in asked.patterns(&words, &mut self.unnamed) {
            if evaluator.any(relation, &pattern)? {
                here.holds = true;
                here.verdicts.push(tell(&words, Verdict::Holds(relation, &pattern)));
            } else if self.operations <= u64::from(FOLLOWED) {
                let followed = evaluator.why_not_followed(relation, &pattern)?;
                let attempt = followed.first().and_then(|denied| denied.why.nearest_attempt());
                here.held = here.held.max(attempt.map_or(0, |attempt| attempt.held));
                here.verdicts.push(tell(&words, Verdict::Denied(&followed)));
            }
        }
        let holds = here.holds;
        let better = |best: &Best<A>| holds || here.held > best.held;
        if !here.verdicts.is_empty() && self.best.as_ref().is_none_or(better) {
            self.best = Some(here);
        }
        Ok(if holds { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}
