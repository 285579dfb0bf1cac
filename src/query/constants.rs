//! Constants of rules that a trace does not have: the usual reason for an empty answer.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::datalog::ast::{Atom, Comparison, Condition, Program, Rule, Span, Spanned, Term};
use crate::datalog::base::{BaseFacts, BaseRelation, Type};
use crate::datalog::scope::Scopes;
use crate::datalog::value::Value;
use crate::diagnostic::{Diagnostic, Place, similar};
use crate::names::Name;
use crate::query::codes;
use crate::query::facts::{Questioned, TraceFacts};
use crate::query::question::place;
use crate::query::schema::{self, Own};
use crate::trace::{SpanTree, TraceNames};

/// A column of facts; of values of attributes, those of a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Source {
    relation: BaseRelation,
    column: usize,
    key: Option<Arc<str>>,
}

/// A text that rules look for in a column of facts.
#[derive(Clone, Debug)]
pub(super) struct Constant {
    text: Arc<str>,
    source: Source,
    place: Place,
}

/// Most texts of a column that are kept for suggestions.
const KEPT: usize = 10_000;

impl Constant {
    /// The constants of a program, each once for each column in which it is looked for.
    pub(super) fn of(program: &Program) -> Vec<Self> {
        let origins = origins(program);
        let mut seen: BTreeSet<(Source, Arc<str>)> = BTreeSet::new();
        let mut all = Vec::new();
        for rule in &program.rules {
            let columns = variables(rule, &origins);
            let mut add = |text: &Arc<str>, sources: &[Source], span: Span| {
                for source in sources {
                    if seen.insert((source.clone(), Arc::clone(text))) {
                        let (text, source) = (Arc::clone(text), source.clone());
                        all.push(Self { text, source, place: place(program, span) });
                    }
                }
            };
            conditions(&rule.body, &mut |condition| match &condition.value {
                Condition::Atom { atom, .. } => {
                    for (column, term) in atom.arguments.iter().enumerate() {
                        if let Term::Symbol(text) = &term.value {
                            add(text, &of_column(atom, column, &origins), term.span);
                        }
                    }
                }
                Condition::Compare(left, Comparison::Equal | Comparison::NotEqual, right) => {
                    for (one, other) in [(left, right), (right, left)] {
                        if let (Term::Variable(variable, 0), Term::Symbol(text)) = (&one.value, &other.value)
                            && let Some(sources) = columns.get(&variable.name)
                        {
                            add(text, sources, other.span);
                        }
                    }
                }
                _ => {}
            });
        }
        all
    }

    /// What column it is looked for in, in words.
    fn column(&self) -> String {
        let (name, _) = schema::schema().columns(self.source.relation);
        let column = schema::column_names(self.source.relation)[self.source.column];
        match &self.source.key {
            Some(key) => format!("value of `{key}`"),
            None => format!("{column} of `{name}`"),
        }
    }

    fn finding(&self, seen: &Seen) -> Diagnostic {
        let message = format!("no {} is `{}` in the trace", self.column(), self.text);
        let finding = Diagnostic::warning(codes::NOT_IN_TRACE, self.place.clone(), message);
        let all = seen.texts.iter().map(|text| &**text);
        if self.source.key.is_some() && self.text.parse::<i64>().is_ok() {
            return Diagnostic::warning(codes::QUOTED_NUMBER, self.place.clone(), finding.message)
                .with_note("values that are whole numbers are numbers, however the trace writes them")
                .with_hint(format!("write {} without quotes", self.text));
        }
        match similar(&self.text, all) {
            Some(near) => finding.with_hint(format!("did you mean `{near}`?")),
            None if seen.texts.is_empty() => finding.with_note(format!("the trace has no {} at all", self.column())),
            None if seen.texts.len() <= 8 => {
                let all: Vec<String> = seen.texts.iter().map(|text| format!("`{text}`")).collect();
                finding.with_note(format!("the trace has {}", all.join(", ")))
            }
            None => finding,
        }
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
    let values = matches!(schema::own(base), Some(Own::Attr | Own::Resource | Own::EventAttr)) && column == 2;
    let key = match atom.arguments.get(1).map(|term| &term.value) {
        Some(Term::Symbol(key)) if values => Some(Arc::clone(key)),
        _ => None,
    };
    // Fixed words are checked like all others: `span_kind(S, "clinet")` finds nothing either.
    if kind == Some(Type::Symbol) || (values && key.is_some()) {
        vec![Source { relation: base, column, key }]
    } else {
        Vec::new()
    }
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

/// The texts of a column, as far as they are needed.
#[derive(Debug, Default)]
struct Seen {
    names: FxHashSet<Name>,
    texts: BTreeSet<Arc<str>>,
    missing: FxHashSet<Arc<str>>,
}

/// Looks for the constants of a question in the operations that come by.
#[derive(Debug)]
pub(super) struct Search<'q> {
    constants: &'q [Constant],
    columns: BTreeMap<Source, Seen>,
}

impl<'q> Search<'q> {
    pub(super) fn new(constants: &'q [Constant]) -> Self {
        let mut columns: BTreeMap<Source, Seen> = BTreeMap::new();
        for constant in constants {
            columns.entry(constant.source.clone()).or_default().missing.insert(Arc::clone(&constant.text));
        }
        Self { constants, columns }
    }

    /// Looks at the facts about one or more operations.
    pub(super) fn look(&mut self, facts: &TraceFacts<'_>, operations: &[&Questioned], names: &TraceNames) {
        for (source, seen) in &mut self.columns {
            if seen.missing.is_empty() {
                continue;
            }
            let known = match schema::own(source.relation) {
                // Only attributes that are wanted have rows, but the keys of all are known.
                Some(own @ (Own::Attr | Own::Resource | Own::EventAttr)) if source.column == 1 => {
                    for keys in operations.iter().filter_map(|one| one.spans.as_ref()).map(SpanTree::seen) {
                        let keys = match own {
                            Own::Attr => &keys.attributes,
                            Own::Resource => &keys.resources,
                            _ => &keys.event_attributes,
                        };
                        for key in keys {
                            seen.take(*key, || names.names.shared(*key));
                        }
                    }
                    true
                }
                _ => false,
            };
            if known {
                continue;
            }
            let mut pattern: Vec<Option<Value>> = vec![None; schema::schema().columns(source.relation).1.len()];
            if let Some(key) = &source.key {
                pattern[1] = facts.symbol(key);
            }
            facts.lookup(source.relation, &pattern, &mut |row| {
                if let Some(name) = row[source.column].as_symbol() {
                    seen.take(name, || facts.text(name));
                }
                if seen.missing.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            // Numbers of texts beyond the trace's names mean others in the next operation.
            seen.names.retain(|name| name.index() < names.names.len());
        }
    }

    /// What was not found.
    pub(super) fn finish(self) -> Vec<Diagnostic> {
        let missing = |constant: &&Constant| {
            self.columns.get(&constant.source).is_some_and(|seen| seen.missing.contains(&constant.text))
        };
        self.constants
            .iter()
            .filter(missing)
            .map(|constant| constant.finding(&self.columns[&constant.source]))
            .collect()
    }
}

impl Seen {
    fn take(&mut self, name: Name, text: impl Fn() -> Arc<str>) {
        if !self.names.insert(name) {
            return;
        }
        let text = text();
        self.missing.remove(&text);
        if self.texts.len() < KEPT {
            self.texts.insert(text);
        }
    }
}
