//! Where the values are that conditions speak of: in registers, or in nodes of rounds that have to be fetched first.

use std::sync::Arc;

use crate::pattern::{At, Key};
use crate::plan::{Field, Slot, TemplateStep, Value};
use crate::planner::Planner;
use crate::planner::terms::plus;
use crate::planner::units::Meaning;
use dyelog_datalog::ast::{Spanned, Term, Variable};

/// Of which rounds a condition is decided, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context {
    /// Outside the sequence, or of its ends.
    Outside,
    /// Of a round, while it is walked.
    Walk,
    /// Of a round and the one walked before it.
    Pair,
    /// Of each round, once all have been walked; of each and the next one, where that is wanted.
    After {
        /// Whether the next one is wanted too.
        pair: bool,
    },
}

/// Whose node a register holds that is none of the walk's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fetched {
    /// Of the round walked before.
    Before,
    /// Of the round at hand, once all have been walked.
    Here,
    /// Of the round after it.
    Next,
    /// Of the round that was walked first.
    Far,
}

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Site {
    Value(Value),
    /// A field of a node that is fetched: which of its round's nodes, the field, what is added.
    Fetched(Fetched, u8, Field, i64),
}

impl Planner<'_> {
    /// Where a variable's value is, if it is known in the context at hand.
    pub(super) fn locate(&self, variable: &Variable) -> Option<Site> {
        match self.meanings.of_variable(variable) {
            Meaning::Node => {
                let slot = self.slot_of(&variable.name)?;
                Some(Site::Value(Value::Field(slot, Field::Node, 0)))
            }
            Meaning::RoundNode(at) => self.locate_node(&variable.name, at),
            Meaning::Count => self.after_rounds().then_some(Site::Value(Value::Count(0))),
            Meaning::Bound((name, at @ (At::Here | At::Next))) => self.locate_in_round(&(name, at)),
            Meaning::Bound(key) => {
                let site = self.route.sites.get(&key).copied().map(Site::Value);
                site.or_else(|| self.locate_at_end(&key))
            }
            _ => None,
        }
    }

    fn after_rounds(&self) -> bool {
        self.route.repetition.is_some() && !self.in_round
    }

    pub(super) fn locate_node(&self, name: &str, at: At) -> Option<Site> {
        let node = self.pattern.round.as_ref()?.nodes.iter().position(|node| *node.name == *name)? as u8;
        let own = (node, Field::Node, 0);
        match at {
            At::Here => self.of_round(Some(own), None),
            At::Next => self.of_round(None, Some(own)),
            At::First | At::Last => self.of_end(own, at),
            At::Scalar | At::After => None,
        }
    }

    fn locate_in_round(&self, key: &Key) -> Option<Site> {
        let (name, at) = key;
        let own = self.route.round_sites.get(key).copied();
        if *at == At::Here {
            return self.of_round(own, None).or_else(|| self.carried(key));
        }
        let other = self.route.round_sites.get(&(Arc::clone(name), At::Here)).copied();
        match own {
            // It stands with `x+1` in a node of the round itself.
            Some(own) => self.of_round(Some(own), None).or_else(|| self.carried(key)),
            None => self.carried(key).or_else(|| self.of_round(None, other)),
        }
    }

    /// What the walk carries, or a navigating relation has found in it.
    fn carried(&self, key: &Key) -> Option<Site> {
        if !self.in_round {
            return None;
        }
        let site = self.route.sites.get(key).copied()?;
        let number = |field: &Field| matches!(field, Field::Thread | Field::Target | Field::Position | Field::Counter);
        let carried = matches!(site, Value::Carry(..)) && !self.route.types.get(key).is_some_and(number);
        // What a pair speaks of may be the other round's.
        (!carried && self.context == Context::Walk).then_some(Site::Value(site))
    }

    /// A field of a node of the round at hand (`here`), or of the one that follows it (`next`).
    fn of_round(&self, here: Option<(u8, Field, i64)>, next: Option<(u8, Field, i64)>) -> Option<Site> {
        let walked = |(node, field, offset): (u8, Field, i64)| {
            let slot = *self.route.round_slots.get(node as usize)?;
            (slot != Slot::MAX).then_some(Site::Value(Value::Field(slot, field, offset)))
        };
        let fetched = |from: Fetched| move |(node, field, offset)| Some(Site::Fetched(from, node, field, offset));
        match (self.context, self.backward) {
            (Context::Outside, _) => None,
            (Context::Walk, _) => here.and_then(walked),
            (Context::Pair, true) => here.and_then(walked).or_else(|| next.and_then(fetched(Fetched::Before))),
            (Context::Pair, false) => here.and_then(fetched(Fetched::Before)).or_else(|| next.and_then(walked)),
            (Context::After { pair }, _) => {
                let next = next.filter(|_| pair);
                here.and_then(fetched(Fetched::Here)).or_else(|| next.and_then(fetched(Fetched::Next)))
            }
        }
    }

    /// A variable of the first or last round.
    pub(super) fn locate_at_end(&self, (name, at): &Key) -> Option<Site> {
        let inside = match at {
            At::First | At::Last => At::Here,
            At::After => At::Next,
            _ => return None,
        };
        let own = self.route.round_sites.get(&(Arc::clone(name), inside)).copied()?;
        self.of_end(own, *at)
    }

    fn of_end(&self, (node, field, offset): (u8, Field, i64), at: At) -> Option<Site> {
        if !self.after_rounds() {
            return None;
        }
        // The round walked last is still in its registers.
        if self.backward == (at == At::First) {
            let slot = *self.route.round_slots.get(node as usize)?;
            return Some(Site::Value(Value::Field(slot, field, offset)));
        }
        Some(Site::Fetched(Fetched::Far, node, field, offset))
    }

    /// The value of a variable plus a number, with a register for its node where it is fetched.
    fn value_of(&mut self, variable: &Variable, offset: i64) -> Option<Value> {
        let site = self.locate(variable)?;
        Some(plus(self.resolve(site), offset))
    }

    pub(super) fn resolve(&mut self, site: Site) -> Value {
        match site {
            Site::Value(value) => value,
            Site::Fetched(from, node, field, own) => Value::Field(self.fetched(from, node), field, own),
        }
    }

    pub(super) fn fetched(&mut self, from: Fetched, node: u8) -> Slot {
        if let Some(slot) = self.fetched.get(&(from, node)) {
            return *slot;
        }
        let round = self.pattern.round.as_ref().expect("nodes of rounds are fetched where there are rounds");
        let (x, n) = (&round.index, &round.count);
        let index = match (from, self.backward) {
            (Fetched::Before, false) | (Fetched::Here, _) => x.to_string(),
            (Fetched::Before, true) | (Fetched::Next, _) => format!("{x}+1"),
            (Fetched::Far, false) => "1".to_owned(),
            (Fetched::Far, true) => n.to_string(),
        };
        let name = format!("{}[{index}]", round.nodes[node as usize].name);
        let slot = self.new_slot(&name.into());
        if from == Fetched::Far {
            self.recalls.push(TemplateStep::Recall { to: slot, node });
        }
        self.fetched.insert((from, node), slot);
        slot
    }

    /// The value of a term that is a number or a variable plus one.
    pub(super) fn term_value(&mut self, term: &Spanned<Term>) -> Option<Value> {
        match &term.value {
            Term::Integer(value) => Some(Value::Integer(*value)),
            Term::Variable(variable, offset) => self.value_of(variable, *offset),
            _ => None,
        }
    }
}
