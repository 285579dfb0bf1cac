//! Whether one template fits wherever another does.
//!
//! It does where its nodes can be laid onto the other's: each onto one of the same kind, with one meaning for each of its
//! variables, and so that the other's conditions imply its own. What cannot be decided so is taken as no.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::facts;
use crate::pattern::{Key, Node, Pattern, Scope, Solved};
use crate::plan::{Field, KindTag};
use dyelog_datalog::ast::{Atom, Comparison, Condition, Spanned, Template, Term};

/// How often a node may be laid onto another, for all the templates of a program, before it is given up.
pub const TRIES: u32 = 1_000_000;

/// What a term of the special template is, apart from a number that is added.
#[derive(Clone, Debug, PartialEq)]
enum Base {
    Number,
    Symbol(Arc<str>),
    Variable(Key),
    Node(usize),
    /// A field of a node that has no name.
    Unnamed(usize, Field),
}

/// A base plus a number.
type Linear = (Base, i64);

/// A template with its nodes.
#[derive(Clone, Copy)]
pub struct Shape<'t> {
    pub template: &'t Template,
    pub pattern: &'t Pattern,
}

/// Whether the one fits, with a part of the same nodes, wherever the other does. So many `tries` are left.
pub fn subsumes(general: Shape<'_>, special: Shape<'_>, tries: &mut u32) -> bool {
    if !general.pattern.rounds.is_empty() || general.pattern.nodes.len() > special.pattern.nodes.len() {
        return false;
    }
    let mut laying =
        Laying { general, special, onto: vec![None; general.pattern.nodes.len()], meaning: BTreeMap::new(), tries };
    laying.lay(general.pattern.glue, special.pattern.glue) && laying.next()
}

struct Laying<'t> {
    general: Shape<'t>,
    special: Shape<'t>,
    /// For each node of the general template that of the special one.
    onto: Vec<Option<usize>>,
    meaning: BTreeMap<Key, Linear>,
    tries: &'t mut u32,
}

impl Laying<'_> {
    /// Lays the nodes that are left, in the order of the text.
    fn next(&mut self) -> bool {
        let Some(node) = self.onto.iter().position(Option::is_none) else {
            let meaning = self.meaning.clone();
            let implied = self.conditions_follow();
            self.meaning = meaning;
            return implied;
        };
        for onto in 0..self.special.pattern.nodes.len() {
            let saved = self.meaning.clone();
            if self.lay(node, onto) {
                if self.next() {
                    return true;
                }
                self.onto[node] = None;
            }
            self.meaning = saved;
        }
        false
    }

    fn lay(&mut self, node: usize, onto: usize) -> bool {
        if *self.tries == 0 || self.onto.contains(&Some(onto)) {
            return false;
        }
        *self.tries -= 1;
        let (own, other) = (&self.general.pattern.nodes[node], &self.special.pattern.nodes[onto]);
        let kind = own.kind == KindTag::Any || own.kind == other.kind;
        let fits = kind && own.terms().all(|(field, term)| self.term_fits(field, term, other, onto));
        if fits {
            self.onto[node] = Some(onto);
        }
        fits
    }

    fn term_fits(&mut self, field: Field, term: &Solved, other: &Node, onto: usize) -> bool {
        let found = other.terms().find(|(own, _)| *own == field).map(|(_, term)| term);
        let found: Linear = match found {
            Some(Solved::Integer(value)) => (Base::Number, *value),
            Some(Solved::Symbol(name)) => (Base::Symbol(Arc::clone(name)), 0),
            Some(Solved::Variable(key, offset)) => (Base::Variable(key.clone()), *offset),
            Some(Solved::Wildcard) | None => (Base::Unnamed(onto, field), 0),
        };
        match term {
            Solved::Wildcard => true,
            Solved::Integer(value) => found == (Base::Number, *value),
            Solved::Symbol(name) => found == (Base::Symbol(Arc::clone(name)), 0),
            Solved::Variable(key, offset) => self.means(key, *offset, found),
        }
    }

    /// Whether a variable plus a number may be that, now that it is.
    fn means(&mut self, key: &Key, offset: i64, (base, value): Linear) -> bool {
        let Some(value) = value.checked_sub(offset) else { return false };
        let linear = (base, value);
        *self.meaning.entry(key.clone()).or_insert_with(|| linear.clone()) == linear
    }

    /// Whether the special template's conditions imply the general one's.
    fn conditions_follow(&mut self) -> bool {
        let conditions = &self.general.template.conditions;
        // Relations may bind variables that comparisons speak of.
        let (atoms, others): (Vec<_>, Vec<_>) =
            conditions.iter().partition(|condition| matches!(condition.value, Condition::Atom { .. }));
        atoms.into_iter().chain(others).all(|condition| self.follows(&condition.value))
    }

    fn follows(&mut self, condition: &Condition) -> bool {
        match condition {
            Condition::Compare(left, comparison, right) => {
                let (Some(left), Some(right)) = (self.own(left), self.own(right)) else { return false };
                compared(&left, *comparison, &right, self.special)
            }
            Condition::Atom { negated, atom } => {
                let special = self.special;
                special.template.conditions.iter().any(|other| match &other.value {
                    Condition::Atom { negated: same, atom: other } if same == negated => {
                        let saved = self.meaning.clone();
                        let same = self.atom_follows(*negated, atom, other);
                        if !same {
                            self.meaning = saved;
                        }
                        same
                    }
                    _ => false,
                })
            }
            Condition::NotStarts { template, node } => {
                let Some(onto @ (Base::Node(_), 0)) = self.own(node) else { return false };
                self.special.template.conditions.iter().any(|other| {
                    matches!(&other.value, Condition::NotStarts { template: same, node }
                        if same.value == template.value && linear(node, self.special).as_ref() == Some(&onto))
                })
            }
            Condition::Aggregate { .. } | Condition::Rounds { .. } => false,
        }
    }

    fn atom_follows(&mut self, negated: bool, own: &Atom, other: &Atom) -> bool {
        // In two files a name may mean two relations, unless it is one of the facts.
        let same_file = own.relation.span.file == other.relation.span.file;
        own.relation == other.relation
            && (same_file || facts::schema().get(&own.relation.value).is_some())
            && own.arguments.len() == other.arguments.len()
            && own.arguments.iter().zip(&other.arguments).all(|(own, other)| match (&own.value, &other.value) {
                (Term::Wildcard, Term::Wildcard) => true,
                (Term::Wildcard, _) => !negated,
                _ => {
                    let Some(found) = linear(other, self.special) else { return false };
                    match (self.own(own), variable(own, self.general)) {
                        (Some(own), _) => own == found,
                        (None, Some((key, offset))) => !negated && self.means(&key, offset, found),
                        (None, None) => false,
                    }
                }
            })
    }

    /// What a term of the general template means in the special one.
    fn own(&self, term: &Spanned<Term>) -> Option<Linear> {
        match linear(term, self.general)? {
            (Base::Node(node), offset) => Some((Base::Node(self.onto[node]?), offset)),
            (Base::Variable(key), offset) => {
                let (base, value) = self.meaning.get(&key)?;
                Some((base.clone(), value.checked_add(offset)?))
            }
            other => Some(other),
        }
    }
}

fn variable(term: &Spanned<Term>, shape: Shape<'_>) -> Option<(Key, i64)> {
    match linear(term, shape)? {
        (Base::Variable(key), offset) => Some((key, offset)),
        _ => None,
    }
}

/// A term under `where`, in the words of its own template.
fn linear(term: &Spanned<Term>, shape: Shape<'_>) -> Option<Linear> {
    match &term.value {
        Term::Integer(value) => Some((Base::Number, *value)),
        Term::Symbol(name) => Some((Base::Symbol(Arc::clone(name)), 0)),
        Term::Variable(variable, offset) => {
            let node = shape.pattern.nodes.iter().position(|node| node.name == variable.name);
            match node.filter(|_| variable.index.is_none()) {
                Some(node) => Some((Base::Node(node), *offset)),
                None => Some((Base::Variable(Scope::of(shape.template).key(variable)?), *offset)),
            }
        }
        Term::Wildcard | Term::Float(_) | Term::Arithmetic(..) => None,
    }
}

/// `x - y >= least`
struct AtLeast<'l> {
    x: &'l Base,
    y: &'l Base,
    least: i64,
}

/// What a comparison says about differences; `None` of `!=` and of what numbers cannot hold.
fn differences<'l>(left: &'l Linear, comparison: Comparison, right: &'l Linear) -> Option<Vec<AtLeast<'l>>> {
    let up =
        |more: i64| Some(AtLeast { x: &left.0, y: &right.0, least: right.1.checked_sub(left.1)?.checked_add(more)? });
    let down =
        |more: i64| Some(AtLeast { x: &right.0, y: &left.0, least: left.1.checked_sub(right.1)?.checked_add(more)? });
    Some(match comparison {
        Comparison::Equal => vec![up(0)?, down(0)?],
        Comparison::Greater => vec![up(1)?],
        Comparison::GreaterOrEqual => vec![up(0)?],
        Comparison::Less => vec![down(1)?],
        Comparison::LessOrEqual => vec![down(0)?],
        Comparison::NotEqual => return None,
    })
}

/// Whether a comparison holds by itself, or by a condition of the template.
fn compared(left: &Linear, comparison: Comparison, right: &Linear, shape: Shape<'_>) -> bool {
    if left.0 == right.0 {
        return comparison.holds(left.1, right.1);
    }
    if let (Base::Symbol(_), Base::Symbol(_)) = (&left.0, &right.0) {
        return comparison == Comparison::NotEqual;
    }
    let known: Vec<(Linear, Comparison, Linear)> = shape
        .template
        .conditions
        .iter()
        .filter_map(|condition| match &condition.value {
            Condition::Compare(left, comparison, right) => {
                Some((linear(left, shape)?, *comparison, linear(right, shape)?))
            }
            _ => None,
        })
        .collect();
    let holds = |needed: &AtLeast<'_>| {
        known.iter().any(|(left, comparison, right)| {
            let given = differences(left, *comparison, right).unwrap_or_default();
            given.iter().any(|given| given.x == needed.x && given.y == needed.y && given.least >= needed.least)
        })
    };
    match differences(left, comparison, right) {
        Some(needed) => needed.iter().all(holds),
        None => {
            let apart = |x: &Linear, y: &Linear| {
                x.0 == left.0 && y.0 == right.0 && x.1.checked_sub(y.1) == left.1.checked_sub(right.1)
            };
            let said = known.iter().any(|(x, other, y)| *other == comparison && (apart(x, y) || apart(y, x)));
            let by_order = |order| differences(left, order, right).is_some_and(|needed| needed.iter().all(holds));
            said || by_order(Comparison::Greater) || by_order(Comparison::Less)
        }
    }
}
