//! Static checks of Datalog rules, and of the conditions of templates as far as they ask relations.
//!
//! What templates mean (whether their nodes hang together, what their operations are) is checked in [`crate::tlc`].

mod names;
mod safety;
mod strata;
mod types;

pub(super) use safety::outside;
pub use safety::unsafe_bodies;

use std::collections::HashSet;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::datalog::ast::{Atom, Condition, Program, Rule, Span, Spanned, Term};
use crate::datalog::base::BaseSchema;
use crate::datalog::codes;
use crate::diagnostic::{Code, Diagnostic, Place, Severity};

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
    checker.names();
    checker.safety();
    checker.strata();
    checker.types();
    checker.drop_consequences();
    checker
        .found
        .sort_by(|(a, first), (b, second)| (a, &first.code, &first.message).cmp(&(b, &second.code, &second.message)));
    checker.found.into_iter().map(|(_, diagnostic)| diagnostic).collect()
}

/// Calls `found` with each variable of a term, from left to right; index variables are none of them.
pub fn variables(term: &Term, found: &mut impl FnMut(&Arc<str>)) {
    match term {
        Term::Variable(variable, _) => found(&variable.name),
        Term::Arithmetic(left, _, right) => {
            variables(&left.value, found);
            variables(&right.value, found);
        }
        Term::Wildcard | Term::Integer(_) | Term::Symbol(_) => {}
    }
}

/// A relation that rules define.
struct Defined<'p> {
    arity: usize,
    /// The head that defined it first.
    first: &'p Atom,
}

struct Checker<'p> {
    program: &'p Program,
    schema: &'p BaseSchema,
    /// In the order of first definition: the index numbers the relation.
    defined: IndexMap<&'p str, Defined<'p>>,
    found: Vec<(Span, Diagnostic)>,
    /// The files whose author asks.
    own: &'p [u32],
}

impl<'p> Checker<'p> {
    fn new(program: &'p Program, schema: &'p BaseSchema, own: &'p [u32]) -> Self {
        let mut defined = IndexMap::new();
        for rule in &program.rules {
            let head = &rule.head;
            defined.entry(&*head.relation.value).or_insert(Defined { arity: head.arguments.len(), first: head });
        }
        Self { program, schema, defined, found: Vec::new(), own }
    }

    fn place(&self, span: Span) -> Place {
        match self.program.files.get(span.file as usize) {
            Some(file) => {
                Place::Range { file: Arc::clone(&file.name), start: span.start as usize, end: span.end as usize }
            }
            None => Place::Nowhere,
        }
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

    /// A warning about what is an error already says nothing new.
    fn drop_consequences(&mut self) {
        let errors = self.found.iter().filter(|(_, diagnostic)| diagnostic.severity == Severity::Error);
        let wrong: HashSet<Span> = errors.map(|(span, _)| *span).collect();
        self.found.retain(|(span, diagnostic)| diagnostic.code != codes::ONCE || !wrong.contains(span));
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
