//! Regular expressions of rules: each stands in the rule as a text, and is asked of a text that something else binds.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use regex_lite::{Regex, RegexBuilder};

use crate::datalog::ast::{Atom, Comparison, Condition, Program, Rule, Spanned, Term};
use crate::diagnostic::{Diagnostic, Place};
use crate::query::codes;
use crate::query::needed::atoms;
use crate::query::schema::{self, Own};

/// What a compiled expression may take, in bytes.
const LARGEST: usize = 1 << 20;

/// A regular expression as it is asked.
pub(super) fn read(expression: &str) -> Result<Regex, regex_lite::Error> {
    RegexBuilder::new(expression).size_limit(LARGEST).build()
}

/// Expressions that were read, by what is written.
pub(super) type Read = BTreeMap<Arc<str>, Regex>;

/// Those that rules ask, as far as they can be read.
pub(super) fn of(rules: &[&Rule]) -> Read {
    let mut found = Read::new();
    atoms(rules, &mut |atom| {
        if is_pattern(atom)
            && let Some(Spanned { value: Term::Symbol(written), .. }) = atom.arguments.get(1)
            && let Ok(regex) = read(written)
        {
            found.insert(Arc::clone(written), regex);
        }
    });
    found
}

/// Whether an atom asks for a place that an expression finds.
pub(super) fn is_pattern(atom: &Atom) -> bool {
    schema::schema().get(&atom.relation.value).and_then(schema::own) == Some(Own::Regex)
}

/// What is wrong with the expressions of a program.
pub(super) fn check(program: &Program) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for rule in &program.rules {
        check_body(program, &rule.body, &mut found);
    }
    found
}

fn check_body(program: &Program, body: &[Spanned<Condition>], found: &mut Vec<Diagnostic>) {
    let bound = LazyCell::new(|| bound(body));
    for condition in body {
        match &condition.value {
            Condition::Atom { atom, .. } if is_pattern(atom) => {
                if let [text, expression] = &*atom.arguments {
                    found.extend(check_text(program, text, &bound));
                    found.extend(check_expression(program, expression));
                }
            }
            Condition::Aggregate { body, .. } => check_body(program, body, found),
            _ => {}
        }
    }
}

/// The variables that a body gives their values without an expression.
fn bound(body: &[Spanned<Condition>]) -> BTreeSet<&Arc<str>> {
    let mut bound = BTreeSet::new();
    let mut equal = Vec::new();
    for condition in body {
        match &condition.value {
            Condition::Atom { negated: false, atom } if !is_pattern(atom) => {
                bound.extend(atom.arguments.iter().filter_map(variable));
            }
            Condition::Compare(left, Comparison::Equal, right) => equal.extend([(left, right), (right, left)]),
            _ => {}
        }
    }
    loop {
        let before = bound.len();
        for (one, other) in &equal {
            let is_known =
                matches!(one.value, Term::Symbol(_)) || variable(one).is_some_and(|name| bound.contains(name));
            bound.extend(variable(other).filter(|_| is_known));
        }
        if bound.len() == before {
            return bound;
        }
    }
}

fn variable(term: &Spanned<Term>) -> Option<&Arc<str>> {
    match &term.value {
        Term::Variable(variable, 0) => Some(&variable.name),
        _ => None,
    }
}

/// That all rows of `regex` are asked for.
pub(super) fn endless() -> Diagnostic {
    let message = "`regex` has no end of rows: it tells of texts that another literal binds";
    Diagnostic::error(codes::PATTERN, Place::Nowhere, message)
        .with_hint(r#"`-e 'q(Name) :- span(_, _, Name), regex(Name, "^GET ")'`"#)
}

/// There is no list of all texts: another literal has to give the one that is looked into.
fn check_text(program: &Program, text: &Spanned<Term>, bound: &BTreeSet<&Arc<str>>) -> Option<Diagnostic> {
    let is_free = match &text.value {
        Term::Wildcard => true,
        _ => variable(text).is_some_and(|name| !bound.contains(name)),
    };
    let message = "nothing says which text the expression is to look into";
    is_free.then(|| {
        Diagnostic::error(codes::PATTERN, program.place(text.span), message)
            .with_note("`regex` tells of texts that another literal of the same body binds")
            .with_hint(r#"`span(S, _, Name), regex(Name, "^GET ")` looks into the names of spans"#)
    })
}

fn check_expression(program: &Program, expression: &Spanned<Term>) -> Option<Diagnostic> {
    let place = program.place(expression.span);
    let Term::Symbol(written) = &expression.value else {
        let message = "a regular expression stands in the rule, in quotes";
        return Some(Diagnostic::error(codes::PATTERN, place, message).with_hint(r#"`regex(Name, "^GET ")`"#));
    };
    let error = read(written).err()?;
    let message = format!("the regular expression cannot be read: {error}");
    let finding = Diagnostic::error(codes::PATTERN, place, message);
    Some(
        finding.with_note(
            r#"a backslash before a character makes it mean itself, and is written twice in quotes: `"a\\.b"`"#,
        ),
    )
}
