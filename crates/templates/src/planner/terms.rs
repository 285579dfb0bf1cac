//! Comparing and shifting terms, values and steps.

use std::sync::Arc;

use crate::pattern::{At, Key, Node, Solved};
use crate::plan::{Edge, Expression, ExpressionPart, Field, KindTag, RelationArgument, Slot, TemplateStep, Value};
use dyelog_datalog::ast::Quantifier;

pub(super) fn is_first(node: &Node) -> bool {
    node.kind == KindTag::Begin || node.position == Solved::Integer(1)
}

pub(super) fn plus(site: Value, offset: i64) -> Value {
    match site {
        Value::Field(slot, field, own) => Value::Field(slot, field, own.saturating_add(offset)),
        Value::Carry(number, own) => Value::Carry(number, own.saturating_add(offset)),
        Value::Integer(value) => Value::Integer(value.saturating_add(offset)),
        Value::Symbol(symbol) => Value::Symbol(symbol),
        Value::Count(sequence, own) => Value::Count(sequence, own.saturating_add(offset)),
        Value::Running(own) => Value::Running(own.saturating_add(offset)),
    }
}

/// By how much the right term is more than the left one, where that is sure.
pub(crate) fn apart(left: &Solved, right: &Solved) -> Option<i32> {
    let delta = match (left, right) {
        (Solved::Integer(left), Solved::Integer(right)) => right.checked_sub(*left)?,
        (Solved::Variable(left, from), Solved::Variable(right, to)) if left == right => to.checked_sub(*from)?,
        _ => return None,
    };
    i32::try_from(delta).ok()
}

/// Variables that stand in a round both with index x and with x+1, in the order of the text.
pub(super) fn linked(nodes: &[Node]) -> Vec<Arc<str>> {
    let keys: Vec<&Key> = nodes
        .iter()
        .flat_map(Node::terms)
        .filter_map(|(_, term)| match term {
            Solved::Variable(key, _) => Some(key),
            _ => None,
        })
        .collect();
    let mut names: Vec<Arc<str>> = Vec::new();
    for (name, at) in &keys {
        let both = *at == At::Next && keys.iter().any(|(other, at)| other == name && *at == At::Here);
        if both && !names.contains(name) {
            names.push(Arc::clone(name));
        }
    }
    names
}

/// A step with other values; none where one of them has no other. Of conditions on rounds of that sequence, as there is no round.
pub(super) fn replace_values(
    step: &TemplateStep,
    sequence: u8,
    replaced: &dyn Fn(Value) -> Option<Value>,
) -> Option<TemplateStep> {
    let expression = |parts: &Expression| {
        let parts: Option<Vec<ExpressionPart>> = parts
            .0
            .iter()
            .map(|part| match part {
                ExpressionPart::Value(value) => replaced(*value).map(ExpressionPart::Value),
                apply @ ExpressionPart::Apply(_) => Some(*apply),
            })
            .collect();
        parts.map(Expression)
    };
    let same = |slot: Slot, field: Field| match replaced(Value::Field(slot, field, 0))? {
        Value::Field(slot, other, 0) if other == field => Some(slot),
        _ => None,
    };
    let argument = |argument: &RelationArgument| {
        Some(match argument {
            RelationArgument::Integer(value) => RelationArgument::Integer(replaced(*value)?),
            RelationArgument::TaskName(slot) => RelationArgument::TaskName(same(*slot, Field::Task)?),
            RelationArgument::Name(slot, field) => RelationArgument::Name(same(*slot, *field)?, *field),
            RelationArgument::Computed(parts) => RelationArgument::Computed(expression(parts)?),
            other @ (RelationArgument::Symbol(_) | RelationArgument::Free) => other.clone(),
        })
    };
    Some(match step {
        TemplateStep::Go { to, edge, kind, consumed } => {
            let edge = match edge {
                Edge::First(value) => Edge::First(replaced(*value)?),
                Edge::Last(value) => Edge::Last(replaced(*value)?),
                Edge::Accepted(thread, position) => Edge::Accepted(replaced(*thread)?, replaced(*position)?),
                Edge::Fork(value) => Edge::Fork(replaced(*value)?),
                Edge::Join(value) => Edge::Join(replaced(*value)?),
                Edge::At(thread, position) => Edge::At(replaced(*thread)?, replaced(*position)?),
                Edge::OnTask(task, counter) => Edge::OnTask(replaced(*task)?, replaced(*counter)?),
                Edge::InThread(..) | Edge::InTask(..) | Edge::BeginOf(_) | Edge::ForkOfThreadOf(_) => *edge,
            };
            TemplateStep::Go { to: *to, edge, kind: *kind, consumed: *consumed }
        }
        TemplateStep::Equal(left, right) => TemplateStep::Equal(replaced(*left)?, replaced(*right)?),
        TemplateStep::Compare(left, comparison, right) => {
            TemplateStep::Compare(replaced(*left)?, *comparison, replaced(*right)?)
        }
        TemplateStep::CompareExpressions(left, comparison, right) => {
            TemplateStep::CompareExpressions(expression(left)?, *comparison, expression(right)?)
        }
        TemplateStep::Holds { negated, relation, arguments } => {
            let arguments = arguments.iter().map(argument).collect::<Option<Vec<_>>>()?;
            TemplateStep::Holds { negated: *negated, relation: Arc::clone(relation), arguments }
        }
        TemplateStep::Named(slot, field) => TemplateStep::Named(same(*slot, *field)?, *field),
        TemplateStep::NotStarts(template, slot) => TemplateStep::NotStarts(*template, same(*slot, Field::Node)?),
        TemplateStep::Rounds(condition) if condition.sequence != sequence => {
            let mut condition = condition.clone();
            let steps = condition.steps.iter().map(|step| replace_values(step, sequence, replaced));
            condition.steps = steps.collect::<Option<_>>()?;
            TemplateStep::Rounds(condition)
        }
        TemplateStep::Rounds(condition) if condition.quantifier == Quantifier::Every => step.clone(),
        TemplateStep::Rounds(_) | TemplateStep::Round(_) | TemplateStep::Seen(_) => {
            return None;
        }
        TemplateStep::Distinct(..) | TemplateStep::Apart(_) | TemplateStep::Recall(_) => step.clone(),
    })
}
