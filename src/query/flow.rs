//! Where the values of variables come from: through which relations of the rules facts of the trace flow, and texts that the rules have.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::datalog::ast::{Aggregate, Atom, Comparison, Condition, Program, Rule, Span, Spanned, Term};
use crate::datalog::base::Type;
use crate::datalog::scope::Scopes;
use crate::query::constants::Source;
use crate::query::patterns::is_pattern;
use crate::query::schema;

/// A column of a relation that rules define, by the relation's number.
pub(super) type Column = (u32, usize);

/// Texts that rules have in their heads, with the first place of each and the column that it stands in there.
pub(super) type Texts = BTreeMap<Arc<str>, (Span, Column)>;

/// What a variable of a rule, or a column, may hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Held {
    /// Columns of facts whose values it takes.
    pub(super) sources: BTreeSet<Source>,
    /// Texts of the rules' own.
    pub(super) texts: Texts,
    /// Whether it may hold values beside these.
    pub(super) others: bool,
}

/// What the columns of the relations that rules define may hold.
pub(super) struct Flow<'p> {
    scopes: Scopes<'p>,
    columns: BTreeMap<Column, Held>,
}

impl<'p> Flow<'p> {
    pub(super) fn of(program: &'p Program) -> Self {
        let mut flow = Self { scopes: Scopes::of(program), columns: BTreeMap::new() };
        // Where facts flow must be known before where texts do: where both meet, what goes on is in the facts.
        let readers = flow.readers(program);
        for part in [FlowPart::Sources, FlowPart::Texts, FlowPart::Others] {
            let mut open: VecDeque<usize> = (0..program.rules.len()).collect();
            let mut waiting = vec![true; open.len()];
            while let Some(number) = open.pop_front() {
                waiting[number] = false;
                let Some(head) = flow.go_on(&program.rules[number], part) else { continue };
                for reader in readers.get(&head).into_iter().flatten() {
                    if !std::mem::replace(&mut waiting[*reader], true) {
                        open.push_back(*reader);
                    }
                }
            }
        }
        flow
    }

    /// The rules that read each relation that rules define.
    fn readers(&self, program: &Program) -> BTreeMap<u32, Vec<usize>> {
        let mut readers: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (place, rule) in program.rules.iter().enumerate() {
            conditions(&rule.body, &mut |condition| {
                if let Condition::Atom { negated: false, atom } = &condition.value
                    && let Some(relation) = self.scopes.relation(&atom.relation)
                {
                    readers.entry(relation).or_default().push(place);
                }
            });
        }
        readers
    }

    /// What a column of an atom may hold.
    pub(super) fn column(&self, atom: &Atom, column: usize) -> Held {
        let schema = schema::schema();
        let Some(base) = schema.get(&atom.relation.value) else {
            let number = self.scopes.relation(&atom.relation);
            return number.and_then(|number| self.columns.get(&(number, column))).cloned().unwrap_or_default();
        };
        if is_pattern(atom) {
            return Held { others: true, ..Held::default() };
        }
        let kind = schema.columns(base).1.get(column).copied();
        let values = kind == Some(Type::Any);
        let key = match atom.arguments.get(1).map(|term| &term.value) {
            Some(Term::Symbol(key)) if values => Some(Arc::clone(key)),
            _ => None,
        };
        // Fixed words are checked like all others: `span_kind(S, "clinet")` finds nothing either.
        let has_texts = values || kind == Some(Type::Symbol);
        let sources = has_texts.then_some(Source { relation: base, column, key }).into_iter().collect();
        Held { sources, texts: Texts::new(), others: !has_texts }
    }

    /// What the variables of a rule may hold, by the atoms that bind them, by texts that they are equal to and by each other. Texts are those
    /// that each of its columns has.
    pub(super) fn variables(&self, rule: &Rule) -> Variables {
        let mut variables = Variables { same: same(rule), held: BTreeMap::new() };
        conditions(&rule.body, &mut |condition| match &condition.value {
            Condition::Atom { negated: false, atom } => {
                for (column, term) in atom.arguments.iter().enumerate() {
                    if let Term::Variable(variable, 0) = &term.value {
                        variables.meet(&variable.name, self.column(atom, column));
                    }
                }
            }
            Condition::Compare(left, Comparison::Equal, right) => {
                for (one, other) in [(left, right), (right, left)] {
                    if let (Term::Variable(variable, 0), Term::Symbol(text)) = (&one.value, &other.value)
                        && let Some(number) = self.scopes.relation(&rule.head.relation)
                    {
                        // Only the count of a table's texts uses the column; `usize::MAX`, which no head has, marks the rule's own.
                        let texts = Texts::from([(Arc::clone(text), (other.span, (number, usize::MAX)))]);
                        variables.meet(&variable.name, Held { texts, ..Held::default() });
                    }
                }
            }
            _ => {}
        });
        // What the least or greatest of values is, is one of them.
        conditions(&rule.body, &mut |condition| {
            if let Condition::Aggregate { result, function, over: Some(over), .. } = &condition.value
                && !matches!(function, Aggregate::Count | Aggregate::Sum | Aggregate::Mean)
                && let Term::Variable(variable, 0) = &over.value
                && let Some(held) = variables.of(&variable.name).cloned()
            {
                variables.meet(&result.value, held);
            }
        });
        variables
    }

    /// Takes in what a rule gives its head, whose relation is given back where that was news.
    fn go_on(&mut self, rule: &Rule, part: FlowPart) -> Option<u32> {
        let number = self.scopes.relation(&rule.head.relation)?;
        let variables = if rule.body.is_empty() { Variables::default() } else { self.variables(rule) };
        let mut news = false;
        for (place, term) in rule.head.arguments.iter().enumerate() {
            let column = (number, place);
            let nothing = Held { others: true, ..Held::default() };
            let given = match &term.value {
                Term::Variable(variable, 0) => variables.of(&variable.name).unwrap_or(&nothing).clone(),
                Term::Symbol(text) => {
                    let texts = Texts::from([(Arc::clone(text), (term.span, column))]);
                    Held { texts, ..Held::default() }
                }
                _ => nothing,
            };
            news |= self.columns.entry(column).or_default().take(given, part);
        }
        news.then_some(number)
    }
}

/// What is found at a time.
#[derive(Clone, Copy, PartialEq)]
enum FlowPart {
    Sources,
    Texts,
    Others,
}

impl Held {
    /// Takes in what else a column may hold; whether that was news.
    fn take(&mut self, given: Self, part: FlowPart) -> bool {
        match part {
            FlowPart::Sources => {
                let before = self.sources.len();
                self.sources.extend(given.sources);
                self.sources.len() > before
            }
            // Of texts that meet facts only those go on that the trace has: they are among the facts.
            FlowPart::Texts if !given.sources.is_empty() => false,
            FlowPart::Texts => {
                let before = self.texts.len();
                for (text, place) in given.texts {
                    self.texts.entry(text).or_insert(place);
                }
                self.texts.len() > before
            }
            FlowPart::Others => given.others && !std::mem::replace(&mut self.others, true),
        }
    }

    fn has_texts_only(&self) -> bool {
        self.sources.is_empty() && !self.others
    }
}

/// What the variables of a rule may hold.
#[derive(Default)]
pub(super) struct Variables {
    /// Variables that are equal to another one, which stands for them.
    same: BTreeMap<Arc<str>, Arc<str>>,
    held: BTreeMap<Arc<str>, Held>,
}

impl Variables {
    /// What one of them may hold; none where nothing gives it a value that is looked into.
    pub(super) fn of(&self, name: &Arc<str>) -> Option<&Held> {
        self.held.get(self.same.get(name).unwrap_or(name))
    }

    /// The columns of facts that one of them takes values from.
    pub(super) fn sources(&self, name: &Arc<str>) -> impl Iterator<Item = &Source> {
        self.of(name).into_iter().flat_map(|held| &held.sources)
    }

    /// All of them that stand for themselves.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Arc<str>, &Held)> {
        self.held.iter()
    }

    /// A variable stands in one more column.
    fn meet(&mut self, name: &Arc<str>, column: Held) {
        let name = Arc::clone(self.same.get(name).unwrap_or(name));
        let Some(held) = self.held.get_mut(&name) else {
            self.held.insert(name, column);
            return;
        };
        match (held.has_texts_only(), column.has_texts_only()) {
            (true, true) => held.texts.retain(|text, _| column.texts.contains_key(text)),
            (true, false) => {}
            (false, true) => held.texts = column.texts,
            (false, false) => held.texts.extend(column.texts),
        }
        held.sources.extend(column.sources);
        held.others &= column.others;
    }
}

/// Variables that equations say to be equal, each with the one that stands for it.
fn same(rule: &Rule) -> BTreeMap<Arc<str>, Arc<str>> {
    let mut same: BTreeMap<Arc<str>, Arc<str>> = BTreeMap::new();
    conditions(&rule.body, &mut |condition| {
        if let Condition::Compare(left, Comparison::Equal, right) = &condition.value
            && let (Term::Variable(left, 0), Term::Variable(right, 0)) = (&left.value, &right.value)
        {
            let of = |name: &Arc<str>| Arc::clone(same.get(name).unwrap_or(name));
            let (kept, gone) = (of(&left.name), of(&right.name));
            if kept != gone {
                same.values_mut().filter(|first| **first == gone).for_each(|first| *first = Arc::clone(&kept));
                same.insert(gone, kept);
            }
        }
    });
    same
}

/// Every condition, those within aggregates too.
pub(super) fn conditions<'p>(body: &'p [Spanned<Condition>], found: &mut dyn FnMut(&'p Spanned<Condition>)) {
    for condition in body {
        found(condition);
        if let Condition::Aggregate { body, .. } = &condition.value {
            conditions(body, found);
        }
    }
}
