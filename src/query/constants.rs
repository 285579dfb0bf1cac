//! What rules take values of facts to be: texts and numbers that they look for, and values that they reckon with. Where a trace has
//! none such, an answer is empty for that reason.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::datalog::ast::{Aggregate, Atom, Comparison, Condition, Program, Rule, Span, Spanned, Term};
use crate::datalog::base::{BaseRelation, Type};
use crate::datalog::check::variables as variables_of;
use crate::datalog::scope::Scopes;
use crate::datalog::syntax::{print_condition, print_term};
use crate::datalog::value::Value;
use crate::diagnostic::Place;
use crate::query::question::place;
use crate::query::schema;

/// A column of facts; of values of attributes, those of a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Source {
    pub(super) relation: BaseRelation,
    pub(super) column: usize,
    pub(super) key: Option<Arc<str>>,
}

impl Source {
    /// Whether it may hold texts as well as numbers.
    pub(super) fn is_any(&self) -> bool {
        schema::schema().columns(self.relation).1.get(self.column) == Some(&Type::Any)
    }

    /// What it holds, in words.
    pub(super) fn words(&self) -> String {
        let (name, _) = schema::schema().columns(self.relation);
        let column = schema::column_names(self.relation)[self.column];
        match &self.key {
            Some(key) => format!("value of `{key}`"),
            None => format!("{column} of `{name}`"),
        }
    }
}

/// What rules take a value to be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sought {
    /// This text.
    Text(Arc<str>),
    /// This number.
    Number(Number),
    /// Any number, which something is done with that is written so.
    AnyNumber(String),
}

/// A number, in the order in which it is written.
#[derive(Clone, Debug)]
pub(super) struct Number {
    pub(super) value: Value,
    pub(super) written: String,
}

impl Number {
    fn of(term: &Term) -> Option<Self> {
        let value = match term {
            Term::Integer(number) => Value::integer(*number),
            Term::Float(number) => Value::float(*number),
            _ => None,
        }?;
        Some(Self { value, written: written(value) })
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        self.written.cmp(&other.written)
    }
}

/// A number as rules write it.
pub(super) fn written(value: Value) -> String {
    match (value.as_integer(), value.as_decimal()) {
        (Some(number), _) => number.to_string(),
        (None, Some(number)) => number.to_string(),
        (None, None) => String::new(),
    }
}

/// What rules look for in a column of facts.
#[derive(Clone, Debug)]
pub(super) struct Constant {
    pub(super) sought: Sought,
    pub(super) source: Source,
    pub(super) place: Place,
}

impl Constant {
    /// What rules of a program look for, each once for each column.
    pub(super) fn of(program: &Program, rules: &[&Rule]) -> Vec<Self> {
        let origins = origins(program);
        let mut all = All { program, seen: BTreeSet::new(), found: Vec::new() };
        for rule in rules {
            let columns = variables(rule, &origins);
            let nothing = Vec::new();
            let of = |name: &Arc<str>| columns.get(name).unwrap_or(&nothing);
            let reckoned = |all: &mut All<'_>, term: &Spanned<Term>, whole: &str, span: Span| {
                variables_of(&term.value, &mut |name| all.add(&Sought::AnyNumber(whole.to_owned()), of(name), span));
            };
            for term in rule.head.arguments.iter().filter(|term| is_arithmetic(&term.value)) {
                reckoned(&mut all, term, &print_term(&term.value), term.span);
            }
            conditions(&rule.body, &mut |condition| match &condition.value {
                Condition::Atom { atom, .. } => {
                    for (column, term) in atom.arguments.iter().enumerate() {
                        if let Some(sought) = sought(&term.value) {
                            all.add(&sought, &of_column(atom, column, &origins), term.span);
                        }
                    }
                }
                Condition::Compare(left, Comparison::Equal | Comparison::NotEqual, right) => {
                    for (one, other) in [(left, right), (right, left)] {
                        if is_arithmetic(&one.value) {
                            reckoned(&mut all, one, &print_term(&one.value), one.span);
                        } else if let (Term::Variable(variable, 0), Some(sought)) = (&one.value, sought(&other.value)) {
                            all.add(&sought, of(&variable.name), other.span);
                        }
                    }
                }
                Condition::Compare(left, _, right) => {
                    let whole = print_condition(&condition.value);
                    for term in [left, right] {
                        reckoned(&mut all, term, &whole, condition.span);
                    }
                }
                Condition::Aggregate { function, over: Some(over), .. } => {
                    let numbers = !matches!(function, Aggregate::Count | Aggregate::Min | Aggregate::Max);
                    if numbers || is_arithmetic(&over.value) {
                        reckoned(&mut all, over, &print_condition(&condition.value), over.span);
                    }
                }
                _ => {}
            });
        }
        all.found
    }
}

/// What was found so far.
struct All<'p> {
    program: &'p Program,
    seen: BTreeSet<(Source, Sought)>,
    found: Vec<Constant>,
}

impl All<'_> {
    fn add(&mut self, sought: &Sought, sources: &[Source], span: Span) {
        for source in sources {
            // Columns of one type hold nothing else, which is checked before anything is asked.
            if (source.is_any() || matches!(sought, Sought::Text(_)))
                && self.seen.insert((source.clone(), sought.clone()))
            {
                let (sought, source) = (sought.clone(), source.clone());
                self.found.push(Constant { sought, source, place: place(self.program, span) });
            }
        }
    }
}

fn sought(term: &Term) -> Option<Sought> {
    match term {
        Term::Symbol(text) => Some(Sought::Text(Arc::clone(text))),
        _ => Number::of(term).map(Sought::Number),
    }
}

fn is_arithmetic(term: &Term) -> bool {
    match term {
        Term::Variable(_, offset) => *offset != 0,
        Term::Arithmetic(..) => true,
        _ => false,
    }
}

/// The columns of facts that each column of a relation of the rules takes its values from.
struct Origins<'p> {
    scopes: Scopes<'p>,
    columns: BTreeMap<(u32, usize), Vec<Source>>,
}

/// Every condition, those within aggregates too.
fn conditions<'p>(body: &'p [Spanned<Condition>], found: &mut dyn FnMut(&'p Spanned<Condition>)) {
    for condition in body {
        found(condition);
        if let Condition::Aggregate { body, .. } = &condition.value {
            conditions(body, found);
        }
    }
}

fn of_column(atom: &Atom, column: usize, origins: &Origins<'_>) -> Vec<Source> {
    let schema = schema::schema();
    let Some(base) = schema.get(&atom.relation.value) else {
        let number = origins.scopes.relation(&atom.relation);
        return number.and_then(|number| origins.columns.get(&(number, column))).cloned().unwrap_or_default();
    };
    let kind = schema.columns(base).1.get(column).copied();
    let values = kind == Some(Type::Any);
    let key = match atom.arguments.get(1).map(|term| &term.value) {
        Some(Term::Symbol(key)) if values => Some(Arc::clone(key)),
        _ => None,
    };
    // Fixed words are checked like all others: `span_kind(S, "clinet")` finds nothing either.
    if values || kind == Some(Type::Symbol) { vec![Source { relation: base, column, key }] } else { Vec::new() }
}

/// The columns that each variable of a rule stands in, where positive atoms bind it.
fn variables(rule: &Rule, origins: &Origins<'_>) -> BTreeMap<Arc<str>, Vec<Source>> {
    let mut columns: BTreeMap<Arc<str>, Vec<Source>> = BTreeMap::new();
    conditions(&rule.body, &mut |condition| {
        if let Condition::Atom { negated: false, atom } = &condition.value {
            for (column, term) in atom.arguments.iter().enumerate() {
                if let Term::Variable(variable, 0) = &term.value {
                    let sources = of_column(atom, column, origins);
                    columns.entry(Arc::clone(&variable.name)).or_default().extend(sources);
                }
            }
        }
    });
    columns
}

/// For each column of each relation of the rules, the columns of facts that its values may come from. Only where all rules of
/// the relation take them from facts: a constant in a head is a value, too.
fn origins(program: &Program) -> Origins<'_> {
    let mut origins = Origins { scopes: Scopes::of(program), columns: BTreeMap::new() };
    loop {
        let mut next: BTreeMap<(u32, usize), Vec<Source>> = BTreeMap::new();
        let mut closed: BTreeSet<(u32, usize)> = BTreeSet::new();
        for rule in &program.rules {
            let Some(number) = origins.scopes.relation(&rule.head.relation) else { continue };
            let columns = variables(rule, &origins);
            for (column, term) in rule.head.arguments.iter().enumerate() {
                let key = (number, column);
                let known = next.entry(key).or_default();
                match &term.value {
                    Term::Variable(variable, 0) => {
                        known.extend(columns.get(&variable.name).into_iter().flatten().cloned());
                    }
                    _ => drop(closed.insert(key)),
                }
                known.sort();
                known.dedup();
            }
        }
        next.retain(|key, sources| !closed.contains(key) && !sources.is_empty());
        if next == origins.columns {
            return origins;
        }
        origins.columns = next;
    }
}
