//! Static checks of Datalog rules, and of the conditions of templates as far as they ask relations.
//!
//! What templates mean (whether their nodes hang together, what their operations are) is checked in `dyelog-templates`.

mod bodies;
mod contradiction;
mod differences;
mod endless;
mod monotone;
mod names;
mod ranges;
mod safety;
mod scopes;
mod strata;
mod types;
mod vocabulary;
mod whole;

pub use bodies::without_value;
pub use contradiction::{Bodies, Contradiction, Holding};
pub(super) use monotone::{Monotone, best_values};
pub(super) use safety::outside;
pub use safety::unsafe_bodies;

use std::collections::HashSet;
use std::sync::Arc;

use crate::ast::{Atom, Condition, Program, Rule, Span, Spanned, Term};
use crate::base::{BaseSchema, Type};
use crate::codes;
use crate::scope::Scopes;
use dyelog_diagnostic::{Code, Diagnostic, Place, Severity};

/// Columns that a relation may have.
pub const MAX_ARITY: usize = 32;
/// Literals that the body of a rule may have.
pub const MAX_BODY: usize = 256;

/// Everything that can be said against a program without running it: errors, and warnings for what is allowed but
/// probably not meant. In the order of the files and their text.
///
/// The first file is the author's own: of the others it is not told what nothing uses.
pub fn check(program: &Program, schema: &BaseSchema) -> Vec<Diagnostic> {
    check_own(program, schema, &[0])
}

/// As [`check`], where the author's own files have these numbers.
pub fn check_own(program: &Program, schema: &BaseSchema, own: &[u32]) -> Vec<Diagnostic> {
    let mut checker = Checker::new(program, schema, own);
    checker.scopes();
    checker.names();
    checker.unused_uses();
    checker.safety();
    checker.strata();
    checker.endless();
    checker.types();
    checker.vocabularies();
    checker.bodies();
    checker.drop_consequences();
    checker
        .found
        .sort_by(|(a, first), (b, second)| (a, &first.code, &first.message).cmp(&(b, &second.code, &second.message)));
    told(checker.found.into_iter().map(|(_, diagnostic)| diagnostic), program)
}

/// The most findings of one severity that are shown.
const TOLD: usize = 100;

/// The first errors and the first warnings, with a word on whether there are more.
fn told(found: impl Iterator<Item = Diagnostic>, program: &Program) -> Vec<Diagnostic> {
    let mut counts = [0_usize; 2];
    let mut all: Vec<Diagnostic> = found
        .filter(|diagnostic| {
            let count = &mut counts[usize::from(diagnostic.severity == Severity::Error)];
            *count += 1;
            *count <= TOLD
        })
        .collect();
    for (count, severity, what) in [(counts[1], Severity::Error, "errors"), (counts[0], Severity::Warning, "warnings")]
    {
        if count > TOLD {
            let place = program.files.first().map(|file| Place::File { file: Arc::clone(&file.name) });
            let message = format!("more than {TOLD} {what}; {} are not shown", count - TOLD);
            all.push(Diagnostic::new(severity, codes::TOO_MANY, place.unwrap_or(Place::Nowhere), message));
        }
    }
    all
}

/// What the columns of the relations that rules define are, by the relations' numbers in
/// [`Scopes`].
pub fn column_types(program: &Program, schema: &BaseSchema) -> Vec<Vec<Type>> {
    Checker::new(program, schema, &[]).column_types()
}

/// Calls `found` with each variable of a term, from left to right; index variables are none of them.
pub fn variables(term: &Term, found: &mut impl FnMut(&Arc<str>)) {
    match term {
        Term::Variable(variable, _) => found(&variable.name),
        Term::Arithmetic(left, _, right) => {
            variables(&left.value, found);
            variables(&right.value, found);
        }
        Term::Wildcard | Term::Integer(_) | Term::Float(_) | Term::Symbol(_) => {}
    }
}

struct Checker<'p> {
    program: &'p Program,
    schema: &'p BaseSchema,
    /// The relations that rules define, and what names mean where.
    scopes: Scopes<'p>,
    /// The component of dependencies that each relation belongs to.
    components: Vec<u32>,
    found: Vec<(Span, Diagnostic)>,
    /// The files whose author asks.
    own: &'p [u32],
    /// Names for which nothing was found to stand.
    unknown: usize,
}

impl<'p> Checker<'p> {
    fn new(program: &'p Program, schema: &'p BaseSchema, own: &'p [u32]) -> Self {
        Self {
            program,
            schema,
            scopes: Scopes::of(program),
            components: Vec::new(),
            found: Vec::new(),
            own,
            unknown: 0,
        }
    }

    fn place(&self, span: Span) -> Place {
        self.program.place(span)
    }

    fn report(
        &mut self,
        severity: Severity,
        code: Code,
        span: Span,
        message: String,
        more: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        let place = self.place(span);
        self.found.push((span, more(Diagnostic::new(severity, code, place, message))));
    }

    /// Of what is an error already, that it stands once or never holds says nothing new.
    fn drop_consequences(&mut self) {
        let follows = [codes::ONCE, codes::NEVER];
        let causes = self
            .found
            .iter()
            .filter(|(_, diagnostic)| diagnostic.severity == Severity::Error && !follows.contains(&diagnostic.code));
        let wrong: HashSet<Span> = causes.map(|(span, _)| *span).collect();
        self.found.retain(|(span, diagnostic)| !follows.contains(&diagnostic.code) || !wrong.contains(span));
    }

    fn error(&mut self, code: Code, span: Span, message: String, more: impl FnOnce(Diagnostic) -> Diagnostic) {
        self.report(Severity::Error, code, span, message, more);
    }

    fn warning(&mut self, code: Code, span: Span, message: String, more: impl FnOnce(Diagnostic) -> Diagnostic) {
        self.report(Severity::Warning, code, span, message, more);
    }
}

/// Every atom of conditions, those within aggregates too, with whether it is needed whole (negated or aggregated over).
fn atoms<'c>(conditions: &'c [Spanned<Condition>], found: &mut dyn FnMut(&'c Atom, bool)) {
    for condition in conditions {
        match &condition.value {
            Condition::Atom { negated, atom } => found(atom, *negated),
            Condition::Aggregate { body, .. } => atoms(body, &mut |atom, _| found(atom, true)),
            Condition::Rounds { body, .. } => atoms(body, found),
            Condition::Compare(..) | Condition::NotStarts { .. } => {}
        }
    }
}

/// Every term of a rule with its place, heads first, those within aggregates too.
fn terms<'r>(rule: &'r Rule, found: &mut dyn FnMut(&'r Spanned<Term>)) {
    rule.head.arguments.iter().for_each(&mut *found);
    condition_terms(&rule.body, found);
}

fn condition_terms<'c>(conditions: &'c [Spanned<Condition>], found: &mut dyn FnMut(&'c Spanned<Term>)) {
    for condition in conditions {
        match &condition.value {
            Condition::Compare(left, _, right) => {
                found(left);
                found(right);
            }
            Condition::Atom { atom, .. } => atom.arguments.iter().for_each(&mut *found),
            Condition::Aggregate { over, body, .. } => {
                over.iter().for_each(&mut *found);
                condition_terms(body, found);
            }
            Condition::Rounds { body, .. } => condition_terms(body, found),
            Condition::NotStarts { .. } => {}
        }
    }
}
