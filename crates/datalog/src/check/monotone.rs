//! Least and greatest values in a recursion: where they mean something, and why not elsewhere.
//!
//! `longest(Y, D) :- D = max L { edge(X, Y), longest(X, P), L = P + 1 }.` is allowed because a greater P only ever makes a
//! greater D. The relation then keeps one row a key, with the best value that any of its rules gives. Whatever else reads
//! that value before the recursion has ended would see one that is not final.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::ast::{Aggregate, Comparison, Condition, Ident, Operator, Program, Rule, Span, Spanned, Term};
use crate::base::BaseSchema;
use crate::check::{Checker, outside, variables};

/// The column of a relation in which only the best value of each key is kept, and which is the best.
pub(crate) type BestColumn = (usize, Aggregate);

/// What recursion over best values a program has.
#[derive(Debug, Default)]
pub(crate) struct Monotone {
    /// By the relation's number.
    pub(crate) best: HashMap<u32, BestColumn>,
    /// The place of a rule and of the aggregate in its body.
    pub(crate) aggregates: HashSet<(usize, usize)>,
    /// What is read, or done with a value, that must not be: where and why.
    pub(super) refused: Vec<(Span, &'static str)>,
}

/// What recursion over best values a program has that passed its checks.
pub(crate) fn best_values(program: &Program, schema: &BaseSchema) -> Monotone {
    let checker = Checker::new(program, schema, &[]);
    checker.monotone(&checker.components())
}

impl Checker<'_> {
    /// `components` gives the number of each relation's component of relations that need each other.
    pub(super) fn monotone(&self, components: &[u32]) -> Monotone {
        let component = |name: &Ident| self.scopes.relation(name).map(|number| components[number as usize]);
        let mut found = Monotone::default();
        let mut functions: HashMap<u32, Aggregate> = HashMap::new();
        for (number, rule) in self.program.rules.iter().enumerate() {
            let head = component(&rule.head.relation);
            for (place, condition) in rule.body.iter().enumerate() {
                let Condition::Aggregate { result, function, body, .. } = &condition.value else { continue };
                let recursive = body.iter().any(|part| {
                    matches!(&part.value, Condition::Atom { negated: false, atom }
                        if head.is_some() && component(&atom.relation) == head)
                });
                if !recursive || !matches!(function, Aggregate::Min | Aggregate::Max) {
                    continue;
                }
                found.aggregates.insert((number, place));
                let Some(column) = result_column(rule, place, &result.value) else {
                    found.refuse(condition.span, ONE_COLUMN);
                    continue;
                };
                let best = (column, *function);
                let relation = self.scopes.relation(&rule.head.relation).expect("a rule's head has a relation");
                let same = *found.best.entry(relation).or_insert(best) == best;
                let component = head.expect("a recursive rule has a component");
                if !same || *functions.entry(component).or_insert(*function) != *function {
                    found.refuse(condition.span, ONE_FUNCTION);
                }
            }
        }
        for (number, rule) in self.program.rules.iter().enumerate() {
            let head = component(&rule.head.relation);
            let value = |name: &Ident| {
                let (column, _) = found.best.get(&self.scopes.relation(name)?)?;
                (component(name) == head).then_some(*column)
            };
            let mut refused = Vec::new();
            for (place, condition) in rule.body.iter().enumerate() {
                match &condition.value {
                    Condition::Atom { negated: false, atom } => {
                        let read = value(&atom.relation).and_then(|column| atom.arguments.get(column));
                        if read.is_some_and(|term| term.value != Term::Wildcard) {
                            refused.push((condition.span, NOT_FINAL));
                        }
                    }
                    Condition::Aggregate { over, body, .. } if found.aggregates.contains(&(number, place)) => {
                        let reason = Flow::of(rule, body, &value).refuses(over.as_ref(), body);
                        refused.extend(reason);
                    }
                    _ => {}
                }
            }
            found.refused.append(&mut refused);
        }
        found
    }
}

impl Monotone {
    fn refuse(&mut self, span: Span, reason: &'static str) {
        self.refused.push((span, reason));
    }
}

const ONE_COLUMN: &str = "a recursive `min` or `max` gives one column of the head its value, and nothing else reads it";
const ONE_FUNCTION: &str =
    "relations that need each other have one recursive function, `min` or `max`, in one column each";
const NOT_FINAL: &str =
    "within its recursion, a best value is read by `min` or `max` alone: others would see one that is not final";
const ADDING: &str =
    "within its recursion, a best value can only be added to: nothing else keeps the best one the best";

/// The only column of the head that an aggregate's result goes to, if nothing else in the rule reads it.
fn result_column(rule: &Rule, place: usize, result: &Arc<str>) -> Option<usize> {
    let reads = |term: &Spanned<Term>| mentions(&term.value, &HashSet::from([Arc::clone(result)]));
    let mut columns = rule.head.arguments.iter().enumerate().filter(|(_, term)| reads(term));
    let (column, term) = columns.next()?;
    let mut elsewhere = columns.next().is_some();
    for (other, condition) in rule.body.iter().enumerate() {
        if let (Condition::Aggregate { result: second, .. }, true) = (&condition.value, other != place) {
            elsewhere |= second.value == *result;
        }
        super::condition_terms(std::slice::from_ref(condition), &mut |term| elsewhere |= reads(term));
    }
    (matches!(term.value, Term::Variable(..)) && !elsewhere).then_some(column)
}

/// The variables of an aggregate that depend on best values.
struct Flow {
    variables: HashSet<Arc<str>>,
    /// Equations that define such variables, by their place in the body.
    definitions: HashSet<usize>,
    /// For each literal: the column with a best value.
    columns: Vec<Option<usize>>,
    /// Variables that the rule outside knows.
    outside: HashSet<Arc<str>>,
    /// A best value that is compared where it is read.
    compared: Option<Span>,
}

impl Flow {
    fn of(rule: &Rule, body: &[Spanned<Condition>], value: &dyn Fn(&Ident) -> Option<usize>) -> Self {
        let mut flow = Self {
            variables: HashSet::new(),
            definitions: HashSet::new(),
            columns: vec![None; body.len()],
            outside: outside(rule),
            compared: None,
        };
        for (place, condition) in body.iter().enumerate() {
            let Condition::Atom { negated: false, atom } = &condition.value else { continue };
            let Some(column) = value(&atom.relation) else { continue };
            flow.columns[place] = Some(column);
            match atom.arguments.get(column).map(|term| &term.value) {
                Some(Term::Variable(variable, 0)) if flow.variables.insert(Arc::clone(&variable.name)) => {}
                Some(Term::Wildcard) | None => {}
                _ => flow.compared = Some(condition.span),
            }
        }
        let mut changed = true;
        while changed {
            changed = false;
            for (place, condition) in body.iter().enumerate() {
                let Condition::Compare(left, Comparison::Equal, right) = &condition.value else { continue };
                for (unknown, known) in [(left, right), (right, left)] {
                    if let Term::Variable(variable, 0) = &unknown.value
                        && !flow.definitions.contains(&place)
                        && !flow.variables.contains(&variable.name)
                        && mentions(&known.value, &flow.variables)
                        && adds(&known.value, &flow.variables)
                    {
                        flow.variables.insert(Arc::clone(&variable.name));
                        flow.definitions.insert(place);
                        changed = true;
                    }
                }
            }
        }
        flow
    }

    /// Where and why the values do not keep their order on the way to what is compared.
    fn refuses(&self, over: Option<&Spanned<Term>>, body: &[Spanned<Condition>]) -> Option<(Span, &'static str)> {
        if let Some(span) = self.compared {
            return Some((span, NOT_FINAL));
        }
        for (place, condition) in body.iter().enumerate().filter(|(place, _)| !self.definitions.contains(place)) {
            let mut read = false;
            if let (Condition::Atom { atom, .. }, Some(best)) = (&condition.value, self.columns[place]) {
                let others = atom.arguments.iter().enumerate().filter(|(column, _)| *column != best);
                others.for_each(|(_, term)| read |= mentions(&term.value, &self.variables));
            } else {
                super::condition_terms(std::slice::from_ref(condition), &mut |term| {
                    read |= mentions(&term.value, &self.variables);
                });
            }
            if read {
                let equation = matches!(condition.value, Condition::Compare(_, Comparison::Equal, _));
                return Some((condition.span, if equation { ADDING } else { NOT_FINAL }));
            }
        }
        let over = over?;
        if self.variables.iter().any(|name| self.outside.contains(name)) {
            return Some((over.span, NOT_FINAL));
        }
        (!adds(&over.value, &self.variables)).then_some((over.span, ADDING))
    }
}

fn mentions(term: &Term, names: &HashSet<Arc<str>>) -> bool {
    let mut found = false;
    variables(term, &mut |name| found |= names.contains(name));
    found
}

/// Whether a greater value of these variables never makes the term less.
fn adds(term: &Term, names: &HashSet<Arc<str>>) -> bool {
    match term {
        Term::Variable(..) => true,
        Term::Arithmetic(left, Operator::Add, right) => adds(&left.value, names) && adds(&right.value, names),
        Term::Arithmetic(left, Operator::Subtract, right) => adds(&left.value, names) && !mentions(&right.value, names),
        _ => !mentions(term, names),
    }
}
