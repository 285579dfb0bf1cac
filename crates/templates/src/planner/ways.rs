//! Ways to a node from what is bound, and what its fields say once it is reached.

use std::sync::Arc;

use crate::pattern::{Node, Solved};
use crate::plan::{Edge, Field, KindTag, Slot, TemplateStep, Value};
use crate::planner::conditions::{by_name, is_name};
use crate::planner::terms::{apart, is_first, plus};
use crate::planner::{Bound, Planner};
use dyelog_datalog::ast::{Comparison, Condition, Spanned, Term};

/// An edge with its cost and the fields that it makes sure of.
#[derive(Clone, Copy)]
pub(super) struct Way {
    pub cost: u32,
    edge: Edge,
    sure: &'static [Field],
}

impl<'t> Planner<'t> {
    /// The cheapest way to a node from what is bound.
    pub(super) fn way(&self, node: &Node) -> Option<Way> {
        let mut best: Option<Way> = None;
        let mut offer = |cost, edge, sure| {
            if best.as_ref().is_none_or(|way| cost < way.cost) {
                best = Some(Way { cost, edge, sure });
            }
        };
        for Bound { node: from, slot } in self.bound.iter().copied() {
            if let (Some(0), Some(delta)) = (apart(&from.thread, &node.thread), apart(&from.position, &node.position)) {
                offer(u32::from(delta.abs() > 1), Edge::InThread(slot, delta), &[Field::Thread, Field::Position]);
            }
            if let (Some(0), Some(delta)) = (apart(&from.task, &node.task), apart(&from.counter, &node.counter))
                && delta.abs() <= 64
            {
                offer(u32::from(delta.abs() > 1), Edge::InTask(slot, delta), &[Field::Task, Field::Counter]);
            }
            if from.kind == KindTag::Fork && is_first(node) && apart(&from.target, &node.thread) == Some(0) {
                offer(1, Edge::BeginOf(slot), &[Field::Thread]);
            }
            if node.kind == KindTag::Fork && apart(&from.thread, &node.target) == Some(0) {
                offer(1, Edge::ForkOfThreadOf(slot), &[Field::Target]);
            }
        }
        if let Some(thread) = self.value(&node.thread) {
            if is_first(node) {
                offer(2, Edge::First(thread), &[Field::Thread]);
            }
            if node.kind == KindTag::End {
                offer(2, Edge::Last(thread), &[Field::Thread]);
            }
            if let Some(position) = self.value(&node.position) {
                offer(3, Edge::At(thread, position), &[Field::Thread, Field::Position]);
            }
        }
        if let (Some(task), Some(counter)) = (self.value(&node.task), self.value(&node.counter)) {
            offer(4, Edge::OnTask(task, counter), &[Field::Task, Field::Counter]);
        }
        if let Some(target) = self.value(&node.target) {
            match node.kind {
                KindTag::Fork => offer(2, Edge::Fork(target), &[Field::Target]),
                KindTag::Join => offer(2, Edge::Join(target), &[Field::Target]),
                _ => {}
            }
        }
        best
    }

    /// The value of a term, if it is known.
    pub(super) fn value(&self, term: &Solved) -> Option<Value> {
        match term {
            Solved::Integer(value) => Some(Value::Integer(*value)),
            Solved::Variable(key, offset) => self.route.sites.get(key).map(|site| plus(*site, *offset)),
            Solved::Wildcard | Solved::Symbol(_) => None,
        }
    }

    pub(super) fn go(&mut self, node: &'t Node, way: Way) -> Slot {
        let slot = self.new_slot(&node.name);
        self.steps.push(TemplateStep::Go { to: slot, edge: way.edge, kind: node.kind, consumed: true });
        for other in self.bound.clone() {
            let may_be_same =
                other.node.kind == node.kind || other.node.kind == KindTag::Any || node.kind == KindTag::Any;
            if may_be_same && !self.provably_different(other.node, node) {
                self.steps.push(TemplateStep::Distinct(other.slot, slot));
            }
        }
        self.arrive(node, slot, way.sure);
        slot
    }

    /// Compares or defines the fields of a node that was just bound.
    pub(super) fn arrive(&mut self, node: &'t Node, slot: Slot, sure: &[Field]) {
        let terms: Vec<(Field, Solved)> = node.terms().map(|(field, term)| (field, term.clone())).collect();
        for (field, term) in &terms {
            if node.kind == KindTag::Begin && *field == Field::Position && *term == Solved::Integer(1) {
                continue;
            }
            if matches!(field, Field::Activity | Field::Service) && !matches!(term, Solved::Symbol(_)) {
                self.steps.push(TemplateStep::Named(slot, *field));
            }
            if !sure.contains(field) {
                self.unify(slot, *field, term);
            }
        }
        self.bound.push(Bound { node, slot });
    }

    pub(super) fn unify(&mut self, slot: Slot, field: Field, term: &Solved) {
        let own = Value::Field(slot, field, 0);
        match term {
            Solved::Wildcard => {}
            Solved::Integer(value) => self.steps.push(TemplateStep::Equal(own, Value::Integer(*value))),
            Solved::Symbol(name) => {
                let field = if field == Field::Task { Field::TaskName } else { field };
                let symbol = self.symbol(name);
                self.steps.push(TemplateStep::Equal(Value::Field(slot, field, 0), symbol));
            }
            Solved::Variable(key, offset) => match self.route.sites.get(key) {
                Some(site) => {
                    let site = plus(*site, *offset);
                    let (own, site) = match (is_name(own), is_name(site)) {
                        (true, false) => (own, by_name(site)),
                        (false, true) => (by_name(own), site),
                        _ => (own, site),
                    };
                    self.steps.push(TemplateStep::Equal(own, site));
                }
                None => {
                    self.route.sites.insert(key.clone(), Value::Field(slot, field, -offset));
                    self.route.types.insert(key.clone(), field);
                }
            },
        }
    }

    pub(super) fn symbol(&mut self, name: &Arc<str>) -> Value {
        Value::Symbol(self.symbol_number(name))
    }

    pub(super) fn symbol_number(&mut self, name: &Arc<str>) -> u32 {
        let place = self.route.symbols.iter().position(|other| other == name).unwrap_or_else(|| {
            self.route.symbols.push(Arc::clone(name));
            self.route.symbols.len() - 1
        });
        place as u32
    }

    /// Whether two nodes can never be one, so that nothing needs to be compared.
    pub(super) fn provably_different(&self, left: &Node, right: &Node) -> bool {
        let steps = |a: (&Solved, &Solved), b: (&Solved, &Solved)| {
            apart(a.0, a.1) == Some(0) && apart(b.0, b.1).is_some_and(|delta| delta != 0)
        };
        steps((&left.thread, &right.thread), (&left.position, &right.position))
            || steps((&left.task, &right.task), (&left.counter, &right.counter))
            || self.template.conditions.iter().any(|condition| self.separates(&condition.value, left, right))
    }

    pub(super) fn separates(&self, condition: &Condition, left: &Node, right: &Node) -> bool {
        let Condition::Compare(a, comparison, b) = condition else { return false };
        let (Some(a), Some(b)) = (self.plain(a), self.plain(b)) else { return false };
        let pair = |x: &Solved, y: &Solved| (a == *x && b == *y) || (a == *y && b == *x);
        match comparison {
            Comparison::NotEqual => pair(&left.task, &right.task) || pair(&left.thread, &right.thread),
            Comparison::Less | Comparison::Greater => {
                (apart(&left.task, &right.task) == Some(0) && pair(&left.counter, &right.counter))
                    || (apart(&left.thread, &right.thread) == Some(0) && pair(&left.position, &right.position))
            }
            _ => false,
        }
    }

    /// A condition's term as a pattern's, where it is one.
    pub(super) fn plain(&self, term: &Spanned<Term>) -> Option<Solved> {
        match &term.value {
            Term::Variable(variable, offset) => Some(Solved::Variable(self.scope.key(variable)?, *offset)),
            Term::Integer(value) => Some(Solved::Integer(*value)),
            _ => None,
        }
    }
}
