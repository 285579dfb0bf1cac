//! What the variables of a template stand for in a match.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::explain::{Made, Study};
use crate::matcher::label_field;
use crate::pattern::{At, Findings, Pattern, Scope, Solved};
use crate::plan::Field;
use crate::visits::Visits;
use dyelog_datalog::ast::{Condition, Index, Term, Variable as Written};
use dyelog_diagnostic::names::Name;
use dyelog_trace::{NodeId, TaskId};

/// What a variable stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// A thread identifier.
    Thread(i64),
    /// A counter, or a number of rounds.
    Number(i64),
    /// A task.
    Task(TaskId),
    /// The name of an activity or a service.
    Name(Name),
}

/// A variable of a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name, with its index where it has one.
    pub name: String,
    /// What it stands for.
    pub value: Bound,
}

/// The nodes and variables of a match.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    /// The nodes, by the names that the template gives them, in the order of the text and of the rounds.
    pub nodes: Vec<(String, NodeId)>,
    /// The variables, in the order in which the text names them.
    pub list: Vec<Variable>,
    numbers: BTreeMap<(Arc<str>, Option<i64>), i64>,
    by_name: BTreeMap<(Arc<str>, Option<i64>), NodeId>,
}

impl Variables {
    /// Of a match.
    pub fn of(study: &Study<'_>, made: &Made) -> Self {
        let template = study.template(made.template);
        let program = study.rules.program();
        let mut variables = Self::default();
        let Some(pattern) = Pattern::of(template, &mut Findings::new(program)) else { return variables };
        let scope = Scope::of(template);
        let plan = study.plan(made);
        for (name, walked) in scope.counts().zip(&made.sequences) {
            variables.define(study, &(Arc::clone(name), None), Field::Counter, i64::from(walked.count));
        }
        let counts = made.sequences.map(|walked| i64::from(walked.count));
        let count = |name: &str| scope.sequence_of(name).and_then(|own| counts.get(own).copied()).unwrap_or(0);
        for node in &pattern.nodes {
            let slot = plan.slot_names.iter().position(|name| *name == node.name);
            let Some(id) = slot.and_then(|slot| made.slots.get(slot).copied()) else { continue };
            variables.nodes.push((node.name.to_string(), id));
            variables.by_name.insert((Arc::clone(&node.name), None), id);
            variables.take(study, node, id, &count, None);
        }
        for (round, walked) in pattern.rounds.iter().zip(&made.sequences) {
            let size = round.nodes.len();
            let own = made.rounds.get(walked.start as usize..).unwrap_or_default();
            let own = &own[..own.len().min(walked.count as usize * size)];
            for (number, nodes) in (1..).zip(own.chunks(size.max(1))) {
                for (node, &id) in round.nodes.iter().zip(nodes) {
                    variables.nodes.push((format!("{}[{number}]", node.name), id));
                    variables.by_name.insert((Arc::clone(&node.name), Some(number)), id);
                    variables.take(study, node, id, &count, Some(number));
                }
            }
        }
        for condition in &template.conditions {
            variables.functional(study, &scope, &condition.value);
        }
        variables
    }

    /// What the terms of a node say of variables.
    fn take(
        &mut self,
        study: &Study<'_>,
        node: &crate::pattern::Node,
        id: NodeId,
        count: &dyn Fn(&str) -> i64,
        round: Option<i64>,
    ) {
        for (field, term) in [(Field::Thread, &node.thread)].into_iter().chain(node.terms()) {
            let Solved::Variable((name, at), offset) = term else { continue };
            let index = match at {
                At::Scalar => None,
                At::Here => round,
                At::Next => round.map(|round| round + 1),
                At::First => Some(1),
                At::Last => Some(count(name)),
                At::After => Some(count(name) + 1),
                At::Across(_, further) => round.map(|round| round.saturating_add(*further)),
                // Patterns do not have these.
                At::Further(_) | At::Nth(_) | At::FromLast(_) => continue,
            };
            let value = label_field(study.toeg, id, field).saturating_sub(*offset);
            self.define(study, &(Arc::clone(name), index), field, value);
        }
    }

    fn define(&mut self, study: &Study<'_>, key: &(Arc<str>, Option<i64>), field: Field, value: i64) {
        if self.numbers.contains_key(key) {
            return;
        }
        self.numbers.insert(key.clone(), value);
        let number = |value: i64| u32::try_from(value).unwrap_or(0);
        let bound = match field {
            Field::Task | Field::TaskName if (number(value) as usize) < study.names.task_count() => {
                Bound::Task(TaskId(number(value)))
            }
            Field::Activity | Field::Service => Bound::Name(Name(number(value))),
            Field::Thread | Field::Target => Bound::Thread(value),
            _ => Bound::Number(value),
        };
        let name = match key.1 {
            Some(index) => format!("{}[{index}]", key.0),
            None => key.0.to_string(),
        };
        self.list.push(Variable { name, value: bound });
    }

    /// Conditions that give values to variables: `begins(k, i, v)`, `ends(k, i, v)`, `visit(k, m, q)`, `accepted(k, m, q, l)`.
    fn functional(&mut self, study: &Study<'_>, scope: &Scope, condition: &Condition) {
        let Condition::Atom { negated: false, atom } = condition else { return };
        let value = |place: usize| match &atom.arguments.get(place)?.value {
            Term::Integer(value) => u32::try_from(*value).ok(),
            Term::Variable(variable, offset) if scope.key(variable)?.1 == At::Scalar => {
                let value = self.numbers.get(&(Arc::clone(&variable.name), None))?.checked_add(*offset)?;
                u32::try_from(value).ok()
            }
            _ => None,
        };
        let Some(thread) = value(0).and_then(|thread| study.toeg.thread(thread)) else { return };
        let (node, fields): (NodeId, &[Field]) = match &*atom.relation.value {
            "begins" => (thread.first, &[Field::Task, Field::Counter]),
            "ends" => (thread.last, &[Field::Task, Field::Counter]),
            name @ ("visit" | "accepted") => {
                let at = |position: u32| thread.nodes().nth(position.checked_sub(1)? as usize);
                let Some(node) = value(1).and_then(at) else { return };
                let fields: &[Field] =
                    if name == "visit" { &[Field::Thread] } else { &[Field::Thread, Field::Position] };
                (Visits::default().accepted_at(study.toeg, node), fields)
            }
            _ => return,
        };
        let Some(decided) = atom.arguments.len().checked_sub(fields.len()) else { return };
        for (field, argument) in fields.iter().zip(&atom.arguments[decided..]) {
            if let Term::Variable(Written { name, index: None }, offset) = &argument.value {
                let value = label_field(study.toeg, node, *field).saturating_sub(*offset);
                self.define(study, &(Arc::clone(name), None), *field, value);
            }
        }
    }

    /// How many rounds the sequence with that number of rounds has.
    pub(super) fn count(&self, name: &Arc<str>) -> Option<i64> {
        self.numbers.get(&(Arc::clone(name), None)).copied()
    }

    /// The number behind a variable; `running` is the index of the `for` around it, by its name.
    pub(super) fn number(&self, variable: &Written, running: Option<(&str, i64)>) -> Option<i64> {
        let index = self.index(variable.index.as_ref(), running).ok()?;
        self.numbers.get(&(Arc::clone(&variable.name), index)).copied()
    }

    /// A node by its name.
    pub(super) fn node(&self, variable: &Written, running: Option<(&str, i64)>) -> Option<NodeId> {
        let index = self.index(variable.index.as_ref(), running).ok()?;
        self.by_name.get(&(Arc::clone(&variable.name), index)).copied()
    }

    /// The value of an index, where there is one.
    pub(super) fn index(
        &self,
        index: Option<&Index>,
        running: Option<(&str, i64)>,
    ) -> Result<Option<i64>, UnknownIndex> {
        let Some(index) = index else { return Ok(None) };
        let base = match (&index.variable, running) {
            (None, _) => 0,
            (Some(name), Some((own, value))) if **name == *own => value,
            (Some(name), _) => *self.numbers.get(&(Arc::clone(name), None)).ok_or(UnknownIndex)?,
        };
        Ok(Some(base.saturating_add(index.offset)))
    }
}

/// An index that means nothing where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnknownIndex;
