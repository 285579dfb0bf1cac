//! Columns whose values are known beforehand: a constant that is none of them is a slip, and never holds.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ast::{Atom, Comparison, Condition, Span, Spanned, Term};
use crate::check::Checker;
use crate::codes;
use dyelog_diagnostic::similar;

/// A column of a relation with its only values.
#[derive(Clone, Copy)]
struct Closed<'s> {
    relation: &'s str,
    column: usize,
    values: &'s [&'s str],
}

impl<'p> Checker<'p> {
    pub(super) fn vocabularies(&mut self) {
        let program = self.program;
        let bodies = program.rules.iter().map(|rule| &rule.body);
        for body in bodies.chain(program.templates.iter().map(|template| &template.conditions)) {
            let mut variables = HashMap::new();
            let mut wrong = Vec::new();
            self.closed_atoms(body, &mut variables, &mut wrong);
            compared(body, &variables, &mut wrong);
            for (span, text, closed) in wrong {
                let message =
                    format!("\"{text}\" is no value of column {} of `{}`", closed.column + 1, closed.relation);
                let all: Vec<String> = closed.values.iter().map(|value| format!("\"{value}\"")).collect();
                self.error(codes::TYPE, span, message, |d| {
                    d.with_note(format!("its values are {}", all.join(", ")))
                        .with_hint(format!("did you mean \"{}\"?", nearest(text, closed.values)))
                });
            }
        }
    }

    /// Constants of closed columns that are none of their values, and the variables that stand there.
    fn closed_atoms(
        &self,
        conditions: &'p [Spanned<Condition>],
        variables: &mut HashMap<Arc<str>, Closed<'p>>,
        wrong: &mut Vec<(Span, &'p str, Closed<'p>)>,
    ) {
        for condition in conditions {
            match &condition.value {
                Condition::Atom { atom, .. } => {
                    for (term, closed) in self.closed_columns(atom) {
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
                    self.closed_atoms(body, variables, wrong);
                }
                Condition::Compare(..) | Condition::NotStarts { .. } => {}
            }
        }
    }

    fn closed_columns(&self, atom: &'p Atom) -> Vec<(&'p Spanned<Term>, Closed<'p>)> {
        let Some(base) = self.schema.get(&atom.relation.value) else { return Vec::new() };
        let closed = |(column, term)| {
            let values = self.schema.values(base, column)?;
            Some((term, Closed { relation: &atom.relation.value, column, values }))
        };
        atom.arguments.iter().enumerate().filter_map(closed).collect()
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
                        wrong.push((other.span, text, *closed));
                    }
                }
            }
            Condition::Aggregate { body, .. } | Condition::Rounds { body, .. } => compared(body, variables, wrong),
            _ => {}
        }
    }
}
