//! How near rules come to a row that does not hold: the rule of which the most literals hold, what its variables are then,
//! and the first literal that fails.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ast::{Comparison, Condition, Rule, Spanned, Term};
use crate::eval::evaluator::Evaluator;
use crate::eval::number::{Calculation, shifted};
use crate::value::Value;
use dyelog_diagnostic::Diagnostics;

/// Rows that one search may look at.
const BUDGET: usize = 20_000;

/// How far a rule comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// Which of the rules.
    pub rule: usize,
    /// The variables that have a value.
    pub bindings: BTreeMap<Arc<str>, Value>,
    /// How many literals of its body hold.
    pub passed: usize,
    /// The literal that fails, by its place in the body.
    pub failed: usize,
}

impl Evaluator<'_> {
    /// Of some rules the one that comes nearest to a row, where columns that are [`None`] may have any value. None where no
    /// head fits, or a rule gives the row after all.
    ///
    /// # Errors
    /// When a limit is reached.
    pub fn nearest(&mut self, rules: &[&Rule], row: &[Option<Value>]) -> Result<Option<Miss>, Diagnostics> {
        let mut best: Option<Miss> = None;
        for (number, rule) in rules.iter().enumerate() {
            let mut search =
                Search { evaluator: self, rule, number, bindings: BTreeMap::new(), best: None, budget: BUDGET };
            if !search.head(row) {
                continue;
            }
            let mut left: Vec<usize> = (0..rule.body.len()).collect();
            if search.go_on(&mut left)? {
                return Ok(None);
            }
            if let Some(miss) = search.best
                && best.as_ref().is_none_or(|best| miss.passed > best.passed)
            {
                best = Some(miss);
            }
        }
        Ok(best)
    }

    /// The values of a literal's columns, as far as they are known.
    pub fn known_columns(&self, terms: &[Spanned<Term>], bindings: &BTreeMap<Arc<str>, Value>) -> Vec<Option<Value>> {
        terms.iter().map(|term| self.term(&term.value, bindings)).collect()
    }

    fn term(&self, term: &Term, bindings: &BTreeMap<Arc<str>, Value>) -> Option<Value> {
        match term {
            Term::Wildcard => None,
            Term::Integer(number) => Value::integer(*number),
            Term::Float(number) => Value::float(*number),
            Term::Symbol(text) => self.symbol(text),
            Term::Variable(variable, offset) => shifted(*bindings.get(&variable.name)?, *offset),
            // No deeper than the parser allows.
            Term::Arithmetic(left, operator, right) => {
                let (left, right) = (self.term(&left.value, bindings)?, self.term(&right.value, bindings)?);
                Calculation::from(*operator).apply(left, right)
            }
        }
    }
}

struct Search<'s, 'p> {
    evaluator: &'s mut Evaluator<'p>,
    rule: &'s Rule,
    number: usize,
    bindings: BTreeMap<Arc<str>, Value>,
    best: Option<Miss>,
    budget: usize,
}

impl Search<'_, '_> {
    /// Gives the head's variables the row's values; whether it fits.
    fn head(&mut self, row: &[Option<Value>]) -> bool {
        let arguments = &self.rule.head.arguments;
        arguments.len() == row.len()
            && arguments.iter().zip(row).all(|(term, value)| value.is_none_or(|value| self.unify(&term.value, value)))
    }

    /// Whether a term may have a value; a variable without one gets it.
    fn unify(&mut self, term: &Term, value: Value) -> bool {
        if let Some(known) = self.evaluator.term(term, &self.bindings) {
            return known == value;
        }
        let Term::Variable(variable, offset) = term else {
            // Arithmetic over what is not known yet.
            return !matches!(term, Term::Integer(_) | Term::Symbol(_));
        };
        let unshifted = match (offset, value.as_integer()) {
            (0, _) => Some(value),
            (_, Some(number)) => number.checked_sub(*offset).and_then(Value::integer),
            (_, None) => None,
        };
        let Some(unshifted) = unshifted else { return false };
        self.bindings.insert(Arc::clone(&variable.name), unshifted).is_none()
    }

    /// Looks for values with which all literals that are left hold; whether there are some. As deep as the body is long.
    fn go_on(&mut self, left: &mut Vec<usize>) -> Result<bool, Diagnostics> {
        let next = (0..left.len()).filter_map(|place| self.cost(left[place]).map(|cost| (cost, place))).min();
        let Some((_, place)) = next else {
            if let Some(first) = left.first() {
                self.fail(*first, left.len());
            }
            return Ok(left.is_empty());
        };
        let literal = left.remove(place);
        let holds = self.literal(literal, left)?;
        left.insert(place, literal);
        Ok(holds)
    }

    /// What comes first: what is decided already, then what has the fewest unknown columns. None where it cannot be asked.
    fn cost(&self, literal: usize) -> Option<usize> {
        let known = |term: &Spanned<Term>| self.evaluator.term(&term.value, &self.bindings).is_some();
        match &self.rule.body[literal].value {
            Condition::Compare(left, comparison, right) => {
                let solved = |unknown: &Spanned<Term>, other: &Spanned<Term>| {
                    *comparison == Comparison::Equal && matches!(unknown.value, Term::Variable(..)) && known(other)
                };
                (self.decided(literal) || solved(left, right) || solved(right, left)).then_some(0)
            }
            Condition::Atom { negated: true, .. } => self.decided(literal).then_some(1),
            Condition::Atom { atom, .. } => Some(2 + atom.arguments.iter().filter(|term| !known(term)).count()),
            _ => None,
        }
    }

    /// Whether all variables of a literal have values.
    fn decided(&self, literal: usize) -> bool {
        let mut all = true;
        let mut see = |term: &Term| {
            crate::check::variables(term, &mut |name| all &= self.bindings.contains_key(name));
        };
        match &self.rule.body[literal].value {
            Condition::Compare(left, _, right) => {
                see(&left.value);
                see(&right.value);
            }
            Condition::Atom { atom, .. } => atom.arguments.iter().for_each(|term| see(&term.value)),
            _ => return false,
        }
        all
    }

    fn literal(&mut self, literal: usize, left: &mut Vec<usize>) -> Result<bool, Diagnostics> {
        let rule = self.rule;
        let before = self.bindings.clone();
        match &rule.body[literal].value {
            Condition::Compare(one, comparison, other) => {
                if self.compare(&one.value, *comparison, &other.value) && self.go_on(left)? {
                    return Ok(true);
                }
                if self.bindings == before && !self.compare(&one.value, *comparison, &other.value) {
                    self.fail(literal, left.len() + 1);
                }
            }
            Condition::Atom { negated, atom } => {
                let pattern = self.evaluator.known_columns(&atom.arguments, &self.bindings);
                let Some(relation) = self.evaluator.rules.relation(&atom.relation.value) else { return Ok(false) };
                if *negated {
                    if !self.evaluator.any(relation, &pattern)? {
                        return self.go_on(left);
                    }
                    self.fail(literal, left.len() + 1);
                    return Ok(false);
                }
                let mut some = false;
                for row in self.evaluator.query(relation, &pattern)? {
                    let Some(budget) = self.budget.checked_sub(1) else { return Ok(false) };
                    self.budget = budget;
                    self.bindings.clone_from(&before);
                    let fits = |search: &mut Self| {
                        let terms = atom.arguments.iter().zip(&row);
                        terms.into_iter().all(|(term, value)| {
                            matches!(term.value, Term::Wildcard) || search.unify(&term.value, *value)
                        })
                    };
                    if fits(self) {
                        some = true;
                        if self.go_on(left)? {
                            return Ok(true);
                        }
                    }
                }
                self.bindings.clone_from(&before);
                if !some {
                    self.fail(literal, left.len() + 1);
                }
            }
            _ => {}
        }
        self.bindings = before;
        Ok(false)
    }

    /// Whether a comparison holds; an equation gives a variable without a value one.
    fn compare(&mut self, left: &Term, comparison: Comparison, right: &Term) -> bool {
        let (one, other) = (self.evaluator.term(left, &self.bindings), self.evaluator.term(right, &self.bindings));
        match (one, other, comparison) {
            (Some(one), Some(other), Comparison::Equal) => one == other,
            (Some(one), Some(other), Comparison::NotEqual) => one != other,
            (Some(one), Some(other), _) => match (one.as_integer(), other.as_integer()) {
                (Some(one), Some(other)) => comparison.holds(one, other),
                _ => false,
            },
            (Some(one), None, Comparison::Equal) => matches!(right, Term::Variable(..)) && self.unify(right, one),
            (None, Some(other), Comparison::Equal) => matches!(left, Term::Variable(..)) && self.unify(left, other),
            _ => false,
        }
    }

    /// Notes that a literal fails where so many do not hold, or have not been tried.
    fn fail(&mut self, literal: usize, left: usize) {
        let passed = self.rule.body.len() - left;
        if self.best.as_ref().is_none_or(|best| passed > best.passed) {
            let bindings = self.bindings.clone();
            self.best = Some(Miss { rule: self.number, bindings, passed, failed: literal });
        }
    }
}
