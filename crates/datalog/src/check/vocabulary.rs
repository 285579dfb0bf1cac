//! Columns whose values are known beforehand: a constant that is none of them is a slip, and never holds. Relations that rules define
//! hand such columns on, with the constants that stand in heads.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::ast::{Atom, Comparison, Condition, Span, Spanned, Term};
use crate::check::Checker;
use crate::codes;
use dyelog_diagnostic::similar;

/// A column of a relation with its only values.
#[derive(Clone)]
struct Closed<'s> {
    relation: Arc<str>,
    column: usize,
    values: Arc<[&'s str]>,
}

/// What a column of a relation that rules define may have.
#[derive(Clone, Debug, Default, PartialEq)]
struct Known<'s> {
    texts: BTreeSet<&'s str>,
    /// Whether some of them come from the facts.
    of_facts: bool,
    /// Whether it may have anything.
    open: bool,
}

/// By relation and column.
type Words<'s> = Vec<Vec<Known<'s>>>;

/// Texts of one column beyond which it counts as open.
const MOST: usize = 64;

impl<'p> Checker<'p> {
    pub(super) fn vocabularies(&mut self) {
        let program = self.program;
        let words = self.words();
        let bodies = program.rules.iter().map(|rule| &rule.body);
        for body in bodies.chain(program.templates.iter().map(|template| &template.conditions)) {
            let mut variables = HashMap::new();
            let mut wrong = Vec::new();
            self.closed_atoms(body, &words, &mut variables, &mut wrong);
            compared(body, &variables, &mut wrong);
            for (span, text, closed) in wrong {
                let message =
                    format!("\"{text}\" is no value of column {} of `{}`", closed.column + 1, closed.relation);
                let all: Vec<String> = closed.values.iter().map(|value| format!("\"{value}\"")).collect();
                self.error(codes::TYPE, span, message, |d| {
                    d.with_note(format!("its values are {}", all.join(", ")))
                        .with_hint(format!("did you mean \"{}\"?", nearest(text, &closed.values)))
                });
            }
        }
    }

    /// Constants of closed columns that are none of their values, and the variables that stand there.
    fn closed_atoms(
        &self,
        conditions: &'p [Spanned<Condition>],
        words: &Words<'p>,
        variables: &mut HashMap<Arc<str>, Closed<'p>>,
        wrong: &mut Vec<(Span, &'p str, Closed<'p>)>,
    ) {
        for condition in conditions {
            match &condition.value {
                Condition::Atom { atom, .. } => {
                    for (term, closed) in self.closed_columns(atom, words) {
                        match &term.value {
                            Term::Symbol(text) if !closed.values.contains(&&**text) => {
                                wrong.push((term.span, text, closed));
                            }
                            Term::Variable(variable, 0) if variable.index.is_none() => {
                                variables.entry(Arc::clone(&variable.name)).or_insert(closed);
                            }
                            _ => {}
                        }
                    }
                }
                Condition::Aggregate { body, .. } | Condition::Rounds { body, .. } => {
                    self.closed_atoms(body, words, variables, wrong);
                }
                Condition::Compare(..) | Condition::NotStarts { .. } => {}
            }
        }
    }

    fn closed_columns(&self, atom: &'p Atom, words: &Words<'p>) -> Vec<(&'p Spanned<Term>, Closed<'p>)> {
        let values = |column: usize| -> Option<Arc<[&'p str]>> {
            if let Some(base) = self.schema.get(&atom.relation.value) {
                return Some(self.schema.values(base, column)?.into());
            }
            let relation = self.scopes.relation(&atom.relation)?;
            let known = words[relation as usize].get(column)?;
            let closed = known.of_facts && !known.open && !known.texts.is_empty();
            closed.then(|| known.texts.iter().copied().collect())
        };
        let closed = |(column, term)| {
            Some((term, Closed { relation: Arc::clone(&atom.relation.value), column, values: values(column)? }))
        };
        atom.arguments.iter().enumerate().filter_map(closed).collect()
    }

    /// What the columns of relations of rules may have, from the bodies on to the heads.
    fn words(&self) -> Words<'p> {
        let arity = |relation: u32| self.scopes.first(relation).arguments.len();
        let mut words: Words<'p> =
            (0..self.scopes.len() as u32).map(|relation| vec![Known::default(); arity(relation)]).collect();
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); words.len()];
        for (number, rule) in self.program.rules.iter().enumerate() {
            for condition in &rule.body {
                if let Condition::Atom { negated: false, atom } = &condition.value
                    && let Some(relation) = self.scopes.relation(&atom.relation)
                {
                    readers[relation as usize].push(number);
                }
            }
        }
        let mut open: Vec<usize> = (0..self.program.rules.len()).rev().collect();
        let mut waiting: HashSet<usize> = open.iter().copied().collect();
        while let Some(number) = open.pop() {
            waiting.remove(&number);
            let rule = &self.program.rules[number];
            let Some(head) = self.scopes.relation(&rule.head.relation) else { continue };
            let mut changed = false;
            for (column, term) in rule.head.arguments.iter().enumerate() {
                let found = self.words_of(&term.value, &rule.body, &words);
                let Some(known) = words[head as usize].get_mut(column) else { continue };
                let before = known.clone();
                known.texts.extend(found.texts);
                known.of_facts |= found.of_facts;
                known.open |= found.open || known.texts.len() > MOST;
                if known.open {
                    known.texts.clear();
                }
                changed |= *known != before;
            }
            if changed {
                open.extend(readers[head as usize].iter().filter(|reader| waiting.insert(**reader)));
            }
        }
        words
    }

    /// What a term of a head may be, by the first atom that says so.
    fn words_of(&self, term: &'p Term, body: &'p [Spanned<Condition>], words: &Words<'p>) -> Known<'p> {
        let anything = Known { open: true, ..Known::default() };
        let variable = match term {
            Term::Symbol(text) => return Known { texts: [&**text].into(), ..Known::default() },
            Term::Variable(variable, 0) => variable,
            _ => return anything,
        };
        for condition in body {
            let Condition::Atom { negated: false, atom } = &condition.value else { continue };
            let is_it = |term: &Spanned<Term>| matches!(&term.value, Term::Variable(other, 0) if other == variable);
            let Some(column) = atom.arguments.iter().position(is_it) else { continue };
            if let Some(base) = self.schema.get(&atom.relation.value) {
                if let Some(values) = self.schema.values(base, column) {
                    return Known { texts: values.iter().copied().collect(), of_facts: true, open: false };
                }
            } else if let Some(relation) = self.scopes.relation(&atom.relation)
                && let Some(known) = words[relation as usize].get(column).filter(|known| !known.open)
            {
                return known.clone();
            }
        }
        anything
    }
}

/// The value that is meant: a slip of the pen, or the whole word of what is written short.
fn nearest<'s>(text: &str, values: &[&'s str]) -> &'s str {
    let first = |text: &str| text.chars().next().map(|letter| letter.to_ascii_lowercase());
    let alike = || values.iter().find(|value| first(value) == first(text)).copied();
    similar(text, values.iter().copied()).or_else(alike).unwrap_or(values[0])
}

/// Comparisons of such variables with what they never are.
fn compared<'p>(
    conditions: &'p [Spanned<Condition>],
    variables: &HashMap<Arc<str>, Closed<'p>>,
    wrong: &mut Vec<(Span, &'p str, Closed<'p>)>,
) {
    for condition in conditions {
        match &condition.value {
            Condition::Compare(left, Comparison::Equal | Comparison::NotEqual, right) => {
                for (one, other) in [(left, right), (right, left)] {
                    if let (Term::Variable(variable, 0), Term::Symbol(text)) = (&one.value, &other.value)
                        && variable.index.is_none()
                        && let Some(closed) = variables.get(&variable.name)
                        && !closed.values.contains(&&**text)
                    {
                        wrong.push((other.span, text, closed.clone()));
                    }
                }
            }
            Condition::Aggregate { body, .. } | Condition::Rounds { body, .. } => compared(body, variables, wrong),
            _ => {}
        }
    }
}
