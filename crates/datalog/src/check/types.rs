//! Types of variables and columns, inferred from constants, arithmetic and the facts' columns.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::ast::{Aggregate, Atom, Comparison, Condition, KindPattern, NodePattern, Span, Spanned, Term};
use crate::base::Type;
use crate::check::Checker;
use crate::codes;

/// A set of variables and columns that must be of one type.
#[derive(Clone, Debug)]
struct Class {
    parent: u32,
    kind: Option<Type>,
    /// What says so: a place, or words.
    because: Because,
    /// Whether a clash was reported already.
    failed: bool,
}

#[derive(Clone, Debug)]
enum Because {
    Place(Span),
    /// A field of a node pattern, in words.
    Field(Span, &'static str),
    Column(String),
    Nothing,
}

/// A union-find structure over classes.
#[derive(Default)]
struct Classes {
    all: Vec<Class>,
    /// The first column of each relation that rules define.
    columns: Vec<u32>,
    clashes: Vec<Clash>,
}

/// What is of one type and should be of another, with what says so.
struct Clash {
    span: Span,
    found: (Type, Because),
    expected: (Type, Because),
}

type Scope = HashMap<Arc<str>, u32>;

impl Checker<'_> {
    pub(super) fn types(&mut self) {
        let mut classes = self.classes();
        let wrong: HashSet<Span> = self.found.iter().map(|(span, _)| *span).collect();
        let clashes = std::mem::take(&mut classes.clashes);
        self.clashes(clashes.into_iter().filter(|clash| !wrong.contains(&clash.span)));
    }

    /// What the columns of the relations of rules are, as far as that can be told.
    pub(super) fn column_types(&self) -> Vec<Vec<Type>> {
        let mut classes = self.classes();
        let firsts = classes.columns.clone();
        let columns = firsts.iter().enumerate().map(|(relation, first)| {
            let count = self.scopes.first(relation as u32).arguments.len() as u32;
            let kind = |column| {
                let root = classes.root(first + column);
                classes.all[root as usize].kind.unwrap_or(Type::Any)
            };
            (0..count).map(kind).collect()
        });
        columns.collect()
    }

    fn classes(&self) -> Classes {
        let mut classes = Classes::default();
        for relation in 0..self.scopes.len() as u32 {
            let first = classes.all.len() as u32;
            classes.columns.push(first);
            for _ in &self.scopes.first(relation).arguments {
                classes.fresh();
            }
        }
        for rule in &self.program.rules {
            let mut scope = Scope::new();
            self.atom_types(&rule.head, &mut scope, &mut classes);
            self.condition_types(&rule.body, &mut scope, &mut classes);
        }
        for template in &self.program.templates {
            let mut scope = Scope::new();
            template.nodes().into_iter().for_each(|node| classes.node(node, &mut scope));
            self.condition_types(&template.conditions, &mut scope, &mut classes);
        }
        classes
    }

    fn clashes(&mut self, clashes: impl Iterator<Item = Clash>) {
        for clash in clashes {
            let message = format!("{} where {} belongs", words(&clash.found), words(&clash.expected));
            let mut more = Vec::new();
            for side in [&clash.found, &clash.expected] {
                match &side.1 {
                    Because::Place(span) | Because::Field(span, _) if *span != clash.span => {
                        more.push((Some(self.place(*span)), format!("this makes it {}", words(side))));
                    }
                    Because::Column(words) => more.push((None, words.clone())),
                    _ => {}
                }
            }
            let task =
                [&clash.found, &clash.expected].into_iter().any(|side| matches!(side.1, Because::Field(_, TASK)));
            let both = matches!(
                (&clash.found, &clash.expected),
                ((Type::Node, Because::Place(_)), (_, Because::Field(..)))
                    | ((_, Because::Field(..)), (Type::Node, Because::Place(_)))
            );
            let name = self.program.text(clash.span);
            self.error(codes::TYPE, clash.span, message, |d| {
                let d = if both {
                    d.with_hint(format!("`{name}` is both a node and part of a label: rename one of the two"))
                } else if task {
                    d.with_hint("a task is equal to another one or not, or to its name in quotes: `a = \"client\"`")
                } else {
                    d
                };
                more.into_iter().fold(d, |d, (place, words)| match place {
                    Some(place) => d.with_place(place, words),
                    None => d.with_note(words),
                })
            });
        }
    }

    fn atom_types(&self, atom: &Atom, scope: &mut Scope, classes: &mut Classes) {
        let name = &*atom.relation.value;
        if let Some(base) = self.schema.get(name) {
            let (_, columns) = self.schema.columns(base);
            if atom.arguments.len() != columns.len() {
                return; // wrong arities would only repeat themselves as wrong types
            }
            for (number, (term, column)) in atom.arguments.iter().zip(columns).enumerate() {
                let class = classes.term(term, scope);
                if matches!((&term.value, column), (Term::Float(number), Type::Integer) if number.fract() != 0.0) {
                    classes.whole(
                        term.span,
                        Because::Column(format!("column {} of `{name}` holds whole numbers", number + 1)),
                    );
                } else if *column != Type::Any {
                    let words = format!("column {} of `{name}` holds {}", number + 1, plural(*column));
                    classes.expect(class, *column, term.span, Because::Column(words));
                }
            }
        } else if let Some(relation) = self.scopes.relation(&atom.relation) {
            let first = classes.columns[relation as usize];
            if self.scopes.first(relation).arguments.len() != atom.arguments.len() {
                return;
            }
            for (number, term) in atom.arguments.iter().enumerate() {
                let class = classes.term(term, scope);
                classes.unify(class, first + number as u32, term.span);
            }
        }
    }

    fn condition_types(&self, conditions: &[Spanned<Condition>], scope: &mut Scope, classes: &mut Classes) {
        for condition in conditions {
            match &condition.value {
                Condition::Atom { atom, .. } => self.atom_types(atom, scope, classes),
                Condition::Compare(left, comparison, right) => {
                    let (first, second) = (classes.term(left, scope), classes.term(right, scope));
                    if matches!(comparison, Comparison::Equal | Comparison::NotEqual) {
                        classes.unify(second, first, right.span);
                    } else {
                        classes.expect(first, Type::Number, left.span, Because::Place(condition.span));
                        classes.expect(second, Type::Number, right.span, Because::Place(condition.span));
                    }
                }
                Condition::Aggregate { result, function, over, body } => {
                    self.condition_types(body, scope, classes);
                    let class = classes.variable(&result.value, scope);
                    classes.expect(class, Type::Number, result.span, Because::Place(condition.span));
                    if let (Some(over), true) = (over, *function != Aggregate::Count) {
                        let class = classes.term(over, scope);
                        classes.expect(class, Type::Number, over.span, Because::Place(condition.span));
                    }
                }
                Condition::Rounds { body, .. } => self.condition_types(body, scope, classes),
                Condition::NotStarts { node, .. } => {
                    let class = classes.term(node, scope);
                    classes.expect(class, Type::Node, node.span, Because::Place(condition.span));
                }
            }
        }
    }
}

impl Classes {
    fn fresh(&mut self) -> u32 {
        let number = self.all.len() as u32;
        self.all.push(Class { parent: number, kind: None, because: Because::Nothing, failed: false });
        number
    }

    fn variable(&mut self, name: &Arc<str>, scope: &mut Scope) -> u32 {
        if let Some(class) = scope.get(name) {
            return *class;
        }
        let class = self.fresh();
        scope.insert(Arc::clone(name), class);
        class
    }

    /// What a node pattern says: its name is a node, threads and counters are numbers, tasks and attributes are symbols.
    fn node(&mut self, node: &NodePattern, scope: &mut Scope) {
        let class = self.variable(&node.name.value, scope);
        self.expect(class, Type::Node, node.name.span, Because::Place(node.name.span));
        let mut field = |term: &Spanned<Term>, kind: Type, words: &'static str| {
            let class = self.term(term, scope);
            self.expect(class, kind, term.span, Because::Field(term.span, words));
            if let Term::Float(_) = term.value
                && kind == Type::Integer
            {
                self.whole(term.span, Because::Field(term.span, words));
            }
        };
        if let KindPattern::Fork(thread) | KindPattern::Join(thread) = &node.kind.value {
            field(thread, Type::Integer, "a thread");
        }
        field(&node.thread, Type::Integer, "a thread");
        field(&node.position, Type::Integer, "a thread node counter");
        field(&node.task, Type::Symbol, TASK);
        field(&node.counter, Type::Integer, "a task node counter");
        for (_, value) in &node.attributes {
            field(value, Type::Symbol, "a name");
        }
    }

    fn term(&mut self, term: &Spanned<Term>, scope: &mut Scope) -> u32 {
        match &term.value {
            Term::Wildcard => self.fresh(),
            Term::Integer(_) => self.constant(Type::Integer, term.span),
            Term::Float(_) => self.constant(Type::Number, term.span),
            Term::Symbol(_) => self.constant(Type::Symbol, term.span),
            Term::Variable(variable, offset) => {
                let class = self.variable(&variable.name, scope);
                if *offset != 0 {
                    self.expect(class, Type::Number, term.span, Because::Place(term.span));
                }
                class
            }
            Term::Arithmetic(left, _, right) => {
                for part in [left, right] {
                    let class = self.term(part, scope);
                    self.expect(class, Type::Number, part.span, Because::Place(term.span));
                }
                self.constant(Type::Number, term.span)
            }
        }
    }

    fn constant(&mut self, kind: Type, span: Span) -> u32 {
        let class = self.fresh();
        self.all[class as usize].kind = Some(kind);
        self.all[class as usize].because = Because::Place(span);
        class
    }

    fn root(&mut self, mut class: u32) -> u32 {
        while self.all[class as usize].parent != class {
            let parent = self.all[class as usize].parent;
            self.all[class as usize].parent = self.all[parent as usize].parent;
            class = parent;
        }
        class
    }

    fn expect(&mut self, class: u32, kind: Type, span: Span, because: Because) {
        let root = self.root(class);
        let found = &mut self.all[root as usize];
        match found.kind {
            None => (found.kind, found.because) = (Some(kind), because),
            Some(known) if !agree(known, kind) && !found.failed => {
                found.failed = true;
                let found = (known, found.because.clone());
                self.clashes.push(Clash { span, found, expected: (kind, because) });
            }
            Some(_) => {}
        }
    }

    /// A number with a fraction stands where only whole ones are.
    fn whole(&mut self, span: Span, because: Because) {
        let found = (Type::Number, Because::Place(span));
        self.clashes.push(Clash { span, found, expected: (Type::Integer, because) });
    }

    fn unify(&mut self, class: u32, with: u32, span: Span) {
        let (from, to) = (self.root(class), self.root(with));
        if from == to {
            return;
        }
        let moved = self.all[from as usize].clone();
        self.all[from as usize].parent = to;
        let target = &mut self.all[to as usize];
        target.failed |= moved.failed;
        match (target.kind, moved.kind) {
            (None, _) => (target.kind, target.because) = (moved.kind, moved.because),
            (Some(expected), Some(found)) if !agree(expected, found) && !target.failed => {
                target.failed = true;
                let (found, expected) = ((found, moved.because), (expected, target.because.clone()));
                self.clashes.push(Clash { span, found, expected });
            }
            _ => {}
        }
    }
}

const TASK: &str = "a task";

/// Whether values of the one type may be values of the other.
fn agree(first: Type, second: Type) -> bool {
    let number = |kind| matches!(kind, Type::Integer | Type::Number);
    first == second || (number(first) && number(second))
}

/// A type in the words of what says so.
fn words((kind, because): &(Type, Because)) -> &'static str {
    match because {
        Because::Field(_, words) => words,
        _ => noun(*kind),
    }
}

fn plural(kind: Type) -> String {
    let noun = noun(kind);
    let noun = noun.strip_prefix("an ").or_else(|| noun.strip_prefix("a ")).unwrap_or(noun);
    noun.strip_suffix('y').map_or_else(|| format!("{noun}s"), |stem| format!("{stem}ies"))
}

fn noun(kind: Type) -> &'static str {
    match kind {
        Type::Integer => "a whole number",
        Type::Number => "a number",
        Type::Symbol => "a symbol",
        Type::Node => "a node",
        Type::Entity(noun) => noun,
        Type::Any => "a value",
    }
}
