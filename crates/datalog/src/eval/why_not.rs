//! Why a row does not hold: the rule that came nearest, how far its body got, and what failed there.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::ast::{Aggregate, Comparison};
use crate::eval::evaluator::Evaluator;
use crate::eval::number::{shifted, unshifted};
use crate::eval::plan::Expression;
use crate::eval::program::{Literal, Relation, Rule, Term};
use crate::eval::steps::compare;
use crate::value::Value;
use dyelog_diagnostic::Diagnostics;

/// A row of which some values may be open.
pub type Pattern = Vec<Option<Value>>;

/// Rows looked at in search of the nearest way through one body. Beyond that the best so far counts.
const LOOKS: usize = 100_000;
/// How many near rows are given.
const NEAR: usize = 3;
/// How many rules are followed one into another.
const DEPTH: usize = 8;

/// Why no row of a relation agrees with a pattern.
#[derive(Clone, Debug)]
pub struct WhyNot {
    /// The rules of the relation, in the order of the text; none of a relation of the facts.
    pub attempts: Vec<Attempt>,
    /// The place of the one that came nearest: with most literals that hold; of these, with a head that fits; of these, the first.
    pub nearest: Option<usize>,
    /// Rows of the relation that agree with the pattern in all columns but one.
    pub near: Vec<Near>,
}

impl WhyNot {
    /// The rule that came nearest.
    pub fn nearest_attempt(&self) -> Option<&Attempt> {
        self.attempts.get(self.nearest?)
    }
}

/// A row that does not hold, and why.
#[derive(Clone, Debug)]
pub struct Denied {
    /// Its relation.
    pub relation: Relation,
    /// What is known of the row.
    pub pattern: Pattern,
    /// Why no row agrees with that.
    pub why: WhyNot,
}

/// How far a rule got.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Its place in [`crate::ast::Program::rules`].
    pub rule: usize,
    /// How many literals of its body hold together.
    pub held: usize,
    /// How many there are.
    pub literals: usize,
    /// The variables that got a value, in the order of their occurrence.
    pub bindings: Vec<(Arc<str>, Value)>,
    /// What did not hold.
    pub failure: Failure,
    /// Whether there were more ways than were tried.
    pub cut: bool,
}

/// What of a rule did not hold.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The head gives another value in that column, or none.
    Head {
        /// The column, from 0.
        column: usize,
        /// The value that the head gives.
        gives: Option<Value>,
    },
    /// No row of the relation agrees with what is known.
    NoRow {
        /// The literal's place in the body.
        literal: usize,
        /// The relation.
        relation: Relation,
        /// What is known of the row.
        pattern: Pattern,
        /// Rows that agree in all columns but one.
        near: Vec<Near>,
    },
    /// A negated literal has a row.
    Row {
        /// The literal's place in the body.
        literal: usize,
        /// The relation.
        relation: Relation,
        /// The row.
        row: Vec<Value>,
    },
    /// A comparison of these values; none where one cannot be computed.
    Compare {
        /// The literal's place in the body.
        literal: usize,
        /// The values of both sides.
        values: [Option<Value>; 2],
    },
    /// An aggregate has another value, or none.
    Aggregate {
        /// The literal's place in the body.
        literal: usize,
        /// The value.
        value: Option<Value>,
        /// What it should be.
        wanted: Option<Value>,
    },
}

impl Failure {
    /// The place of the literal in the body, unless the head is to blame.
    pub fn literal(&self) -> Option<usize> {
        match self {
            Self::Head { .. } => None,
            Self::NoRow { literal, .. }
            | Self::Row { literal, .. }
            | Self::Compare { literal, .. }
            | Self::Aggregate { literal, .. } => Some(*literal),
        }
    }
}

/// A row that agrees with a pattern in all columns but one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Near {
    /// The column, from 0.
    pub column: usize,
    /// The row.
    pub row: Vec<Value>,
}

/// The search through one rule's body.
struct Search<'r> {
    rule: &'r Rule,
    registers: Vec<Option<Value>>,
    done: Vec<bool>,
    looks: usize,
    best: Option<(usize, Vec<Option<Value>>, usize)>,
    held: usize,
}

impl Evaluator<'_> {
    /// Why no row of a relation agrees with the pattern; none where one does.
    ///
    /// # Errors
    /// When a limit is reached.
    pub fn why_not(&mut self, relation: Relation, pattern: &[Option<Value>]) -> Result<Option<WhyNot>, Diagnostics> {
        if self.any(relation, pattern)? {
            return Ok(None);
        }
        let near = self.near(relation, pattern)?;
        let mut attempts = Vec::new();
        if let Relation::Derived(number) = relation {
            let rules = self.rules;
            for rule in &rules.derived[number as usize].rules {
                attempts.push(self.attempt(&rules.rules[*rule as usize], pattern)?);
            }
        }
        let rank = |attempt: &Attempt| (attempt.held, !matches!(attempt.failure, Failure::Head { .. }));
        let most = attempts.iter().map(rank).max();
        let nearest = attempts.iter().position(|attempt| Some(rank(attempt)) == most);
        Ok(Some(WhyNot { attempts, nearest, near }))
    }

    /// As [`Evaluator::why_not`], followed from rule to rule: behind a row stands the row of other rules that its nearest rule
    /// lacks, and why that does not hold. Empty where a row agrees.
    ///
    /// # Errors
    /// When a limit is reached.
    pub fn why_not_followed(
        &mut self,
        relation: Relation,
        pattern: &[Option<Value>],
    ) -> Result<Vec<Denied>, Diagnostics> {
        let mut followed: Vec<Denied> = Vec::new();
        let mut next = Some((relation, pattern.to_vec()));
        while let Some((relation, pattern)) = next.take().filter(|_| followed.len() < DEPTH) {
            if followed.iter().any(|before| before.relation == relation && before.pattern == pattern) {
                break;
            }
            let Some(why) = self.why_not(relation, &pattern)? else { break };
            if let Some(Failure::NoRow { relation: lacking @ Relation::Derived(_), pattern, .. }) =
                why.nearest_attempt().map(|attempt| &attempt.failure)
            {
                next = Some((*lacking, pattern.clone()));
            }
            followed.push(Denied { relation, pattern, why });
        }
        Ok(followed)
    }

    /// Rows that agree with the pattern in all columns but one.
    fn near(&mut self, relation: Relation, pattern: &[Option<Value>]) -> Result<Vec<Near>, Diagnostics> {
        let mut found = Vec::new();
        for column in (0..pattern.len()).filter(|column| pattern[*column].is_some()) {
            let mut open = pattern.to_vec();
            open[column] = None;
            if open.iter().all(Option::is_none) && pattern.len() > 1 {
                continue; // that any row is near says nothing
            }
            let room = NEAR - found.len();
            found.extend(self.some_rows(relation, &open, room)?.into_iter().map(|row| Near { column, row }));
            if found.len() == NEAR {
                break;
            }
        }
        Ok(found)
    }

    /// A few rows; of a relation of the facts no more are looked at than that.
    fn some_rows(
        &mut self,
        relation: Relation,
        pattern: &[Option<Value>],
        most: usize,
    ) -> Result<Vec<Vec<Value>>, Diagnostics> {
        let Relation::Base(base) = relation else {
            let mut rows = self.query(relation, pattern)?;
            rows.truncate(most);
            return Ok(rows);
        };
        let mut rows = Vec::new();
        if most > 0 {
            self.facts.lookup(base, pattern, &mut |row| {
                rows.push(row.to_vec());
                if rows.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
        }
        Ok(rows)
    }

    fn attempt(&mut self, rule: &Rule, wanted: &[Option<Value>]) -> Result<Attempt, Diagnostics> {
        let mut search = Search {
            rule,
            registers: vec![None; rule.registers.len()],
            done: vec![false; rule.body.len()],
            looks: 0,
            best: None,
            held: 0,
        };
        let (source, literals) = (rule.source as usize, rule.body.len());
        for (column, (term, value)) in rule.head.iter().zip(wanted).enumerate() {
            let Some(value) = value else { continue };
            let fits = match term {
                Term::Register(register, offset) => bind(&mut search.registers, *register, *offset, *value),
                Term::Constant(constant) => self.shared(*constant) == *value,
                Term::Fraction(constant) => constant == value,
                Term::Any | Term::Arithmetic(..) => true,
            };
            if !fits {
                let gives = self.value(term, &search.registers);
                let failure = Failure::Head { column, gives };
                let bindings = Vec::new();
                return Ok(Attempt { rule: source, held: 0, literals, bindings, failure, cut: false });
            }
        }
        self.go(&mut search)?;
        let cut = search.looks >= LOOKS;
        let (held, registers, literal) = search.best.take().unwrap_or((0, search.registers.clone(), 0));
        let failure = match rule.body.get(literal) {
            Some(failed) => self.failure(rule.origins[literal].condition as usize, failed, &registers)?,
            None => self.wrong_head(rule, wanted, &registers),
        };
        let named = rule.registers.iter().zip(&registers).filter(|(name, _)| !name.is_empty());
        let bindings = named.filter_map(|(name, value)| Some((Arc::clone(name), (*value)?))).collect();
        Ok(Attempt { rule: source, held, literals, bindings, failure, cut })
    }

    /// Tries what is left of a body, and remembers how far it got. No deeper than the body is long.
    fn go(&mut self, search: &mut Search<'_>) -> Result<(), Diagnostics> {
        search.looks += 1;
        if search.looks > LOOKS {
            return Ok(());
        }
        let Some(next) = search.next() else {
            // All holds, so that the head must be to blame.
            search.fails(search.rule.body.len());
            return Ok(());
        };
        search.done[next] = true;
        let before = search.registers.clone();
        let ways = self.ways(&search.rule.body[next], &search.registers)?;
        if ways.is_empty() {
            search.fails(next);
        }
        search.held += 1;
        for way in ways {
            search.registers = way;
            self.go(search)?;
        }
        search.held -= 1;
        search.registers = before;
        search.done[next] = false;
        Ok(())
    }

    /// The registers after each way in which a literal holds.
    fn ways(&mut self, literal: &Literal, registers: &[Option<Value>]) -> Result<Vec<Vec<Option<Value>>>, Diagnostics> {
        let mut after = registers.to_vec();
        Ok(match literal {
            Literal::Holds(relation, terms) => {
                let Some(pattern) = self.pattern(terms, registers) else { return Ok(Vec::new()) };
                let rows = self.some_rows(*relation, &pattern, LOOKS)?;
                rows.iter().filter_map(|row| unified(terms, row, registers)).collect()
            }
            Literal::Fails(relation, terms) => match self.pattern(terms, registers) {
                Some(pattern) if !self.any(*relation, &pattern)? => vec![after],
                _ => Vec::new(),
            },
            Literal::Compare(left, comparison, right) => {
                let holds = match (self.value(left, registers), self.value(right, registers)) {
                    (Some(left), Some(right)) => {
                        compare(&Expression::Constant(left), *comparison, &Expression::Constant(right), &[])
                    }
                    (Some(value), None) => solve(&mut after, right, value),
                    (None, Some(value)) => solve(&mut after, left, value),
                    (None, None) => false,
                };
                if holds { vec![after] } else { Vec::new() }
            }
            Literal::Aggregate { function, relation, group, result } => {
                let value = self.aggregated(*function, *relation, group, registers)?;
                let fits = value.is_some_and(|value| bind(&mut after, *result, 0, value));
                if fits { vec![after] } else { Vec::new() }
            }
        })
    }

    fn aggregated(
        &mut self,
        function: Aggregate,
        relation: u32,
        group: &[u32],
        registers: &[Option<Value>],
    ) -> Result<Option<Value>, Diagnostics> {
        let mut pattern = vec![None; self.rules.derived[relation as usize].arity];
        for (column, register) in pattern.iter_mut().zip(group) {
            *column = registers[*register as usize];
        }
        let (goal, question) = self.solve(relation, &pattern, false)?;
        // Out of steps: the answer is not known, which the next question tells.
        Ok(self.aggregate(goal, question, function).unwrap_or(None))
    }

    fn failure(
        &mut self,
        literal: usize,
        failed: &Literal,
        registers: &[Option<Value>],
    ) -> Result<Failure, Diagnostics> {
        Ok(match failed {
            Literal::Holds(relation, terms) => {
                let relation = *relation;
                let pattern: Pattern = terms.iter().map(|term| self.value(term, registers)).collect();
                Failure::NoRow { literal, relation, near: self.near(relation, &pattern)?, pattern }
            }
            Literal::Fails(relation, terms) => {
                let pattern: Pattern = terms.iter().map(|term| self.value(term, registers)).collect();
                let row = self.some_rows(*relation, &pattern, 1)?.pop().unwrap_or_default();
                Failure::Row { literal, relation: *relation, row }
            }
            Literal::Compare(left, _, right) => {
                Failure::Compare { literal, values: [self.value(left, registers), self.value(right, registers)] }
            }
            Literal::Aggregate { function, relation, group, result } => {
                let value = self.aggregated(*function, *relation, group, registers)?;
                Failure::Aggregate { literal, value, wanted: registers[*result as usize] }
            }
        })
    }

    fn wrong_head(&self, rule: &Rule, wanted: &[Option<Value>], registers: &[Option<Value>]) -> Failure {
        let given: Vec<Option<Value>> = rule.head.iter().map(|term| self.value(term, registers)).collect();
        let differs = |column: &usize| {
            given[*column].is_none() || wanted[*column].is_some_and(|value| given[*column] != Some(value))
        };
        let column = (0..given.len()).find(differs).unwrap_or(0);
        Failure::Head { column, gives: given.get(column).copied().flatten() }
    }

    /// What is known of a row; none where a known term has no value.
    fn pattern(&self, terms: &[Term], registers: &[Option<Value>]) -> Option<Pattern> {
        let value = |term: &Term| match self.value(term, registers) {
            None if is_known(term, registers) => None,
            value => Some(value),
        };
        terms.iter().map(value).collect()
    }

    fn value(&self, term: &Term, registers: &[Option<Value>]) -> Option<Value> {
        match term {
            Term::Any => None,
            Term::Constant(value) => Some(self.shared(*value)),
            Term::Fraction(value) => Some(*value),
            Term::Register(register, offset) => shifted(registers[*register as usize]?, *offset),
            Term::Arithmetic(left, operator, right) => {
                let constant = |value| Box::new(Expression::Constant(value));
                let (left, right) = (self.value(left, registers)?, self.value(right, registers)?);
                Expression::Arithmetic(constant(left), *operator, constant(right)).value(&[])
            }
        }
    }

    /// A string of the rule file as the facts know it.
    fn shared(&self, value: Value) -> Value {
        self.own_text(value).and_then(|text| self.symbol(text)).unwrap_or(value)
    }
}

impl Search<'_> {
    /// The literal to try next: what is decided by what is known, else the relation of which most is.
    fn next(&self) -> Option<usize> {
        let left = || (0..self.rule.body.len()).filter(|place| !self.done[*place]);
        let known = |term: &Term| is_known(term, &self.registers);
        let ready = |place: &usize| match &self.rule.body[*place] {
            Literal::Holds(_, terms) | Literal::Fails(_, terms) => {
                terms.iter().all(|term| known(term) || matches!(term, Term::Any))
            }
            Literal::Compare(left, comparison, right) => {
                let solvable = |term: &Term| matches!(term, Term::Register(..));
                (known(left) && known(right))
                    || (*comparison == Comparison::Equal
                        && ((known(left) && solvable(right)) || (known(right) && solvable(left))))
            }
            Literal::Aggregate { group, .. } => {
                group.iter().all(|register| self.registers[*register as usize].is_some())
            }
        };
        let atoms = || left().filter(|place| matches!(self.rule.body[*place], Literal::Holds(..)));
        let bound = |place: &usize| match &self.rule.body[*place] {
            Literal::Holds(_, terms) => terms.iter().filter(|term| known(term)).count(),
            _ => 0,
        };
        left().find(ready).or_else(|| atoms().max_by_key(|place| (bound(place), std::cmp::Reverse(*place))))
    }

    /// Takes note that a literal fails here, if no way got further.
    fn fails(&mut self, literal: usize) {
        if self.best.as_ref().is_none_or(|(held, ..)| self.held > *held) {
            self.best = Some((self.held, self.registers.clone(), literal));
        }
    }
}

fn is_known(term: &Term, registers: &[Option<Value>]) -> bool {
    match term {
        Term::Any => false,
        Term::Constant(_) | Term::Fraction(_) => true,
        Term::Register(register, _) => registers[*register as usize].is_some(),
        Term::Arithmetic(left, _, right) => is_known(left, registers) && is_known(right, registers),
    }
}

/// Gives `register + offset` that value; whether it can have it.
fn bind(registers: &mut [Option<Value>], register: u32, offset: i64, value: Value) -> bool {
    let value = unshifted(value, offset);
    let place = &mut registers[register as usize];
    value.is_some_and(|value| *place.get_or_insert(value) == value)
}

fn solve(registers: &mut [Option<Value>], term: &Term, value: Value) -> bool {
    matches!(term, Term::Register(register, offset) if bind(registers, *register, *offset, value))
}

/// The registers with a row's values where the terms say, if they agree with what is known.
fn unified(terms: &[Term], row: &[Value], registers: &[Option<Value>]) -> Option<Vec<Option<Value>>> {
    let mut after = registers.to_vec();
    let fits = terms.iter().zip(row).all(|(term, value)| match term {
        Term::Register(register, offset) => bind(&mut after, *register, *offset, *value),
        _ => true,
    });
    fits.then_some(after)
}
