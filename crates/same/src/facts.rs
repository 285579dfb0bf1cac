//! The forest as base relations of the general evaluator: the reference that [walks](crate::walk) are held to.

use std::ops::ControlFlow;

use crate::walk::Facts;
use dyelog_datalog::base::{BaseFacts, BaseRelation, BaseSchema, Type};
use dyelog_datalog::value::Value;

/// The relations that rules of SAME may ask.
pub fn schema() -> BaseSchema {
    let mut schema = BaseSchema::new();
    schema.add("arc", &[Type::Node, Type::Node]);
    schema.add("waiting", &[Type::Node]);
    schema.add("born", &[Type::Node, Type::Integer]);
    schema
}

/// Rows of a forest as it stands.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    rows: [Vec<Vec<Value>>; 3],
}

impl Rows {
    /// Of these nodes.
    pub fn of(facts: &impl Facts, nodes: impl Iterator<Item = u32>) -> Self {
        let mut rows: [Vec<Vec<Value>>; 3] = Default::default();
        for node in nodes {
            if let Some(parent) = facts.parent(node) {
                rows[0].push(vec![Value::from(parent), Value::from(node)]);
            }
            if facts.waiting(node) {
                rows[1].push(vec![Value::from(node)]);
            }
            let born = i64::try_from(facts.born(node)).ok().and_then(Value::integer);
            rows[2].extend(born.map(|born| vec![Value::from(node), born]));
        }
        Self { rows }
    }
}

impl BaseFacts for Rows {
    fn lookup(
        &self,
        relation: BaseRelation,
        pattern: &[Option<Value>],
        out: &mut dyn FnMut(&[Value]) -> ControlFlow<()>,
    ) {
        for row in &self.rows[relation.0 as usize] {
            let agrees = pattern.iter().zip(row).all(|(known, value)| known.is_none_or(|known| known == *value));
            if agrees && out(row).is_break() {
                return;
            }
        }
    }

    fn estimate(&self, relation: BaseRelation, bound: u32) -> u64 {
        if bound == 0 { self.rows[relation.0 as usize].len() as u64 } else { 1 }
    }

    fn symbol(&self, _: &str) -> Option<Value> {
        None
    }
}
