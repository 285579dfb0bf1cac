//! What rules take values of facts to be: texts and numbers that they look for, and values that they reckon with. Where a trace has
//! none such, an answer is empty for that reason.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::datalog::ast::{Aggregate, Comparison, Condition, Program, Rule, Span, Spanned, Term};
use crate::datalog::base::{BaseRelation, Type};
use crate::datalog::check::variables as variables_of;
use crate::datalog::syntax::{print_condition, print_term};
use crate::datalog::value::Value;
use crate::diagnostic::Place;
use crate::query::flow::{Column, Flow, Texts, Variables, conditions};
use crate::query::patterns::is_pattern;
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
    /// A text in which this regular expression finds a place.
    Pattern(Arc<str>),
    /// Numbers alone, of which an aggregate that is written so is taken.
    Numbers(String),
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
    /// The column of a relation of the rules that has the text, where it is joined with the facts: that is a table of texts.
    pub(super) table: Option<Column>,
}

impl Constant {
    /// What rules of a program look for, each once for each column.
    pub(super) fn of(program: &Program, rules: &[&Rule]) -> Vec<Self> {
        let flow = Flow::of(program);
        let mut all = All { program, seen: BTreeSet::new(), found: Vec::new() };
        for rule in rules {
            let variables = flow.variables(rule);
            let reckoned = |all: &mut All<'_>, term: &Spanned<Term>, whole: &str, span: Span| {
                variables_of(&term.value, &mut |name| {
                    all.add(&Sought::AnyNumber(whole.to_owned()), variables.sources(name), span);
                });
            };
            for term in rule.head.arguments.iter().filter(|term| is_arithmetic(&term.value)) {
                reckoned(&mut all, term, &print_term(&term.value), term.span);
            }
            conditions(&rule.body, &mut |condition| match &condition.value {
                Condition::Atom { atom, .. } if is_pattern(atom) => {
                    if let [Term::Variable(text, 0), Term::Symbol(expression)] =
                        [0, 1].map(|place| &atom.arguments[place].value)
                    {
                        let sought = Sought::Pattern(Arc::clone(expression));
                        all.add(&sought, variables.sources(&text.name), atom.arguments[1].span);
                    }
                }
                Condition::Atom { atom, .. } => {
                    for (column, term) in atom.arguments.iter().enumerate() {
                        let Some(sought) = sought(&term.value) else { continue };
                        let held = flow.column(atom, column);
                        let own = matches!(&sought, Sought::Text(text) if held.texts.contains_key(text));
                        if !own && !held.others {
                            all.add(&sought, held.sources.iter(), term.span);
                        }
                    }
                }
                Condition::Compare(left, Comparison::Equal | Comparison::NotEqual, right) => {
                    for (one, other) in [(left, right), (right, left)] {
                        if is_arithmetic(&one.value) {
                            reckoned(&mut all, one, &print_term(&one.value), one.span);
                        } else if let (Term::Variable(variable, 0), Some(sought)) = (&one.value, sought(&other.value)) {
                            all.add(&sought, variables.sources(&variable.name), other.span);
                        }
                    }
                }
                Condition::Compare(left, _, right) => {
                    let whole = print_condition(&condition.value);
                    for term in [left, right] {
                        reckoned(&mut all, term, &whole, condition.span);
                    }
                }
                Condition::Aggregate { function, over: Some(over), body, .. } if *function != Aggregate::Count => {
                    let whole = print_condition(&condition.value);
                    reckoned(&mut all, over, &whole, over.span);
                    if let Term::Variable(variable, _) = &over.value
                        && !is_compared(body, &variable.name)
                        && !is_compared(&rule.body, &variable.name)
                    {
                        let sources = direct(body, &variable.name, &flow);
                        all.add(&Sought::Numbers(whole), sources.iter(), over.span);
                    }
                }
                _ => {}
            });
            all.joined(rule, &variables, &flow);
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
    fn add<'s>(&mut self, sought: &Sought, sources: impl IntoIterator<Item = &'s Source>, span: Span) {
        for source in sources {
            self.one(sought, source, span, None);
        }
    }

    fn one(&mut self, sought: &Sought, source: &Source, span: Span, table: Option<Column>) {
        // Columns of one type hold nothing else, which is checked before anything is asked.
        if (source.is_any() || matches!(sought, Sought::Text(_) | Sought::Pattern(_)))
            && self.seen.insert((source.clone(), sought.clone()))
        {
            let (sought, source) = (sought.clone(), source.clone());
            self.found.push(Constant { sought, source, place: self.program.place(span), table });
        }
    }

    /// Texts of the rules' own that a rule joins with columns of facts, or denies of them.
    fn joined(&mut self, rule: &Rule, variables: &Variables, flow: &Flow<'_>) {
        for (_, held) in variables.all() {
            self.texts(&held.texts, held.sources.iter());
        }
        conditions(&rule.body, &mut |condition| {
            let Condition::Atom { negated: true, atom } = &condition.value else { return };
            for (column, term) in atom.arguments.iter().enumerate() {
                let Term::Variable(variable, 0) = &term.value else { continue };
                let denied = flow.column(atom, column);
                self.texts(&denied.texts, variables.sources(&variable.name));
                if let Some(held) = variables.of(&variable.name) {
                    self.texts(&held.texts, denied.sources.iter());
                }
            }
        });
    }

    fn texts<'s>(&mut self, texts: &Texts, sources: impl Iterator<Item = &'s Source>) {
        for source in sources {
            for (text, (span, column)) in texts {
                self.one(&Sought::Text(Arc::clone(text)), source, *span, Some(*column));
            }
        }
    }
}

/// The columns of facts that these conditions bind a variable to, without a relation of the rules between, which may leave texts out.
fn direct(conditions: &[Spanned<Condition>], name: &Arc<str>, flow: &Flow<'_>) -> BTreeSet<Source> {
    let mut found = BTreeSet::new();
    for condition in conditions {
        let Condition::Atom { negated: false, atom } = &condition.value else { continue };
        if schema::schema().get(&atom.relation.value).is_none() {
            continue;
        }
        for (column, term) in atom.arguments.iter().enumerate() {
            if matches!(&term.value, Term::Variable(variable, 0) if variable.name == *name) {
                found.extend(flow.column(atom, column).sources);
            }
        }
    }
    found
}

/// Whether an order is asked of a variable among these conditions, which leaves texts out.
fn is_compared(conditions: &[Spanned<Condition>], name: &Arc<str>) -> bool {
    conditions.iter().any(|condition| match &condition.value {
        Condition::Compare(left, comparison, right) => {
            let mut named = false;
            for term in [left, right] {
                variables_of(&term.value, &mut |other| named |= other == name);
            }
            let ordered = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
            named && (ordered || is_arithmetic(&left.value) || is_arithmetic(&right.value))
        }
        _ => false,
    })
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
