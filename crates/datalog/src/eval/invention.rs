//! Value invention: recursive rules whose arithmetic makes numbers that no fact has.
//!
//! Without it a relation has at most as many rows as its columns have values in the facts, and a recursion ends by itself.
//! With it, whether a recursion ends depends on the facts. Its rows are therefore held to what the facts give evidence for.

use std::collections::HashSet;

use crate::ast::Comparison;
use crate::base::{BaseFacts, BaseRelation};
use crate::eval::program::{CompiledRules, Literal, Relation, Rule, Term};

/// Whether the recursion of a relation makes numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Invention {
    /// Its values are those of facts, or of arithmetic outside of the recursion.
    #[default]
    None,
    /// It makes numbers, up to a number in the rule.
    Bounded,
    /// It makes numbers, and no number in the rule ends that.
    Unbounded,
}

impl Invention {
    /// How many rows count as one row of an unbounded recursion; `None` where none does.
    pub(super) fn share(self) -> Option<usize> {
        match self {
            Self::None => None,
            Self::Bounded => Some(4),
            Self::Unbounded => Some(1),
        }
    }
}

/// Rows that a recursion without a bound may have whatever the facts are.
const FREE: usize = 1 << 20;
/// Rows that it may have beside, for each row of the facts.
const PER_FACT: usize = 16;

/// How many rows relations of unbounded recursions may have over these facts, all together.
pub(super) fn room(rules: &CompiledRules, facts: &dyn BaseFacts) -> usize {
    let literals = rules.rules.iter().flat_map(|rule| &rule.body);
    let bases: HashSet<BaseRelation> = literals
        .filter_map(|literal| match literal {
            Literal::Holds(Relation::Base(base), _) => Some(*base),
            _ => None,
        })
        .collect();
    let rows = bases.into_iter().map(|base| facts.estimate(base, 0)).fold(0, u64::saturating_add);
    FREE.saturating_add(usize::try_from(rows).unwrap_or(usize::MAX).saturating_mul(PER_FACT))
}

/// Marks the relations whose recursion makes numbers, and the rules that do.
pub(super) fn find(rules: &mut CompiledRules) {
    let mut levels = vec![Invention::None; rules.levels as usize];
    let mut invents = vec![false; rules.rules.len()];
    for derived in &rules.derived {
        let best = derived.best.map(|best| best.column);
        for rule in &derived.rules {
            let found = Made::by(&rules.rules[*rule as usize], rules, derived.level).invention(best);
            let level = &mut levels[derived.level as usize];
            *level = (*level).max(found);
            invents[*rule as usize] = found != Invention::None;
        }
    }
    for (rule, invents) in rules.rules.iter_mut().zip(invents) {
        rule.invents = invents;
    }
    for derived in &mut rules.derived {
        derived.invention = levels[derived.level as usize];
    }
}

/// How a register's value comes from the recursion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InventionStep {
    /// A value of the recursive row, plus a number.
    Plus(i64),
    /// By other arithmetic.
    Other,
}

/// What a rule makes of the rows it recurs to.
struct Made<'r> {
    rule: &'r Rule,
    /// For each register that has its value from the recursion alone: how.
    steps: Vec<Option<InventionStep>>,
}

impl<'r> Made<'r> {
    fn by(rule: &'r Rule, rules: &CompiledRules, level: u32) -> Self {
        let mut made = Self { rule, steps: vec![None; rule.registers.len()] };
        let recursive = |relation: &Relation| matches!(relation, Relation::Derived(other) if rules.derived[*other as usize].level == level);
        // What rows from outside of the recursion have, these bound.
        let mut outside = vec![false; rule.registers.len()];
        for literal in &rule.body {
            match literal {
                Literal::Holds(relation, terms) if !recursive(relation) => {
                    terms.iter().filter_map(Term::register).for_each(|register| outside[register as usize] = true);
                }
                Literal::Aggregate { result, .. } => outside[*result as usize] = true,
                _ => {}
            }
        }
        for literal in &rule.body {
            let Literal::Holds(relation, terms) = literal else { continue };
            for term in terms.iter().filter(|_| recursive(relation)) {
                if let Term::Register(register, offset) = term
                    && !outside[*register as usize]
                {
                    made.steps[*register as usize].get_or_insert(InventionStep::Plus(offset.saturating_neg()));
                }
            }
        }
        // Each round gives one more register its value, so that there are no more rounds than registers.
        let mut changed = true;
        while changed {
            changed = false;
            for literal in &rule.body {
                let Literal::Compare(left, Comparison::Equal, right) = literal else { continue };
                for (to, from) in [(left, right), (right, left)] {
                    let Term::Register(register, offset) = to else { continue };
                    let place = *register as usize;
                    if outside[place] || made.steps[place].is_some() {
                        continue;
                    }
                    made.steps[place] = made.step(from).map(|step| plus(step, offset.saturating_neg()));
                    changed |= made.steps[place].is_some();
                }
            }
        }
        made
    }

    /// How a term's value comes from the recursion; `None` where it does not.
    fn step(&self, term: &Term) -> Option<InventionStep> {
        match term {
            Term::Register(register, offset) => Some(plus(self.steps[*register as usize]?, *offset)),
            Term::Arithmetic(left, _, right) => {
                self.step(left).or_else(|| self.step(right)).map(|_| InventionStep::Other)
            }
            Term::Any | Term::Constant(_) | Term::Fraction(_) => None,
        }
    }

    fn invention(&self, best: Option<usize>) -> Invention {
        let columns = self.rule.head.iter().enumerate().filter(|(column, _)| Some(*column) != best);
        let found = columns.map(|(_, term)| match self.step(term) {
            None | Some(InventionStep::Plus(0)) => Invention::None,
            Some(step) if self.is_bounded(step) => Invention::Bounded,
            Some(_) => Invention::Unbounded,
        });
        found.max().unwrap_or_default()
    }

    /// Whether a comparison with a number ends growth (or decline) of such a step.
    fn is_bounded(&self, step: InventionStep) -> bool {
        let constant = |term: &Term| matches!(term, Term::Constant(_) | Term::Fraction(_));
        self.rule.body.iter().any(|literal| {
            let Literal::Compare(left, comparison, right) = literal else { return false };
            let below = match comparison {
                Comparison::Less | Comparison::LessOrEqual => true,
                Comparison::Greater | Comparison::GreaterOrEqual => false,
                Comparison::Equal | Comparison::NotEqual => return false,
            };
            let below = match (self.step(left).is_some(), self.step(right).is_some()) {
                (true, false) if constant(right) => below,
                (false, true) if constant(left) => !below,
                _ => return false,
            };
            match step {
                InventionStep::Plus(number) => (number > 0) == below,
                InventionStep::Other => true,
            }
        })
    }
}

fn plus(step: InventionStep, more: i64) -> InventionStep {
    match step {
        InventionStep::Plus(number) => InventionStep::Plus(number.saturating_add(more)),
        InventionStep::Other => InventionStep::Other,
    }
}
