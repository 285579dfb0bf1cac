//! What the templates recognise in an operation, for facts about matches and about the sub-model.

use std::sync::Arc;

use crate::datalog::value::Value;
use crate::diagnostic::Diagnostics;
use crate::tlc::Rules;
use crate::tlc::driver::{Entry, UNOWNED};
use crate::tlc::explain::{Bound, Study, Variables};
use crate::tlc::recognise::with_relations;
use crate::trace::{NodeId, Toeg, TraceNames};

/// A committed match.
#[derive(Debug)]
pub(super) struct One {
    pub(super) template: Arc<str>,
    /// Nodes by the names that the template gives them.
    pub(super) nodes: Vec<(String, NodeId)>,
    pub(super) values: Vec<(String, Binding)>,
}

/// What a variable is bound to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Binding(Bound);

impl Binding {
    pub(super) fn value(self, names: &TraceNames) -> Option<Value> {
        match self.0 {
            Bound::Thread(number) | Bound::Number(number) => Value::integer(number),
            Bound::Task(task) => Some(names.task(task).name.into()),
            Bound::Name(name) => Some(name.into()),
        }
    }
}

/// The matches of an operation, and the sub-model that they make.
#[derive(Debug, Default)]
pub(super) struct Matched {
    pub(super) matches: Vec<One>,
    pub(super) entries: Vec<Entry>,
    pub(super) requests: Vec<(u32, u32)>,
    pub(super) owners: Vec<(NodeId, u32)>,
}

impl Matched {
    pub(super) fn of(rules: &Rules, names: &TraceNames, toeg: &Toeg) -> Result<Self, Diagnostics> {
        with_relations(rules, names, toeg, |relations| {
            let study = Study::new(rules, names, toeg, relations);
            let matches = study.matches.iter().map(|made| {
                let variables = Variables::of(&study, made);
                let values = variables.list.into_iter().map(|variable| (variable.name, Binding(variable.value)));
                One { template: Arc::clone(&study.plan(made).name), nodes: variables.nodes, values: values.collect() }
            });
            let matches = matches.collect();
            let owners = (0..).zip(&study.outcome.owner).filter(|(_, owner)| **owner < UNOWNED);
            Self {
                matches,
                entries: study.outcome.entries.clone(),
                requests: study.outcome.requests.iter().map(|request| (request.from, request.to)).collect(),
                owners: owners.map(|(node, owner)| (node, *owner)).collect(),
            }
        })
    }
}
