//! Where the values are that conditions speak of: in registers, or in nodes of rounds that have to be fetched first.

use std::sync::Arc;

use crate::pattern::{At, Key};
use crate::plan::{Field, Position, Recall, Slot, TemplateStep, Value};
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
    /// Of that round, from another one or once all have been walked.
    Of(Position),
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
            Meaning::Count(sequence) => {
                self.after_rounds(sequence).then_some(Site::Value(Value::Count(sequence as u8, 0)))
            }
            Meaning::Index(sequence) => self.running(sequence).map(|offset| Site::Value(Value::Running(offset))),
            Meaning::Bound((name, at @ (At::Here | At::Next))) => self.locate_in_round(&(name, at)),
            Meaning::Bound((name, at @ (At::Further(_) | At::Nth(_) | At::FromLast(_) | At::Across(..)))) => {
                let own = self.route.round_sites.get(&(Arc::clone(&name), At::Here)).copied()?;
                self.recalled(own, at)
            }
            Meaning::Bound(key) => {
                let site = self.route.sites.get(&key).copied().map(Site::Value);
                site.or_else(|| self.locate_at_end(&key))
            }
            _ => None,
        }
    }

    /// Whether all rounds of a sequence have been walked.
    fn after_rounds(&self, sequence: usize) -> bool {
        sequence < self.route.repetitions.len()
    }

    /// By how much the number of the round at hand differs from that of the round that is being walked or asked about, where that is
    /// known: a walk from the end does not know how many rounds come before.
    fn running(&self, sequence: usize) -> Option<i64> {
        let known = self.at_hand == Some(sequence);
        match self.context {
            Context::Walk if known && !self.backward => Some(0),
            // The round that is being walked is the second of the pair.
            Context::Pair if known && !self.backward => Some(-1),
            Context::After { .. } if known => Some(0),
            _ => None,
        }
    }

    /// A field of a node of a round that an index tells by its number, or from another round.
    fn recalled(&self, (node, field, offset): (u8, Field, i64), at: At) -> Option<Site> {
        let own = self.pattern.round_of(node.into())?.number;
        let round = match at {
            At::Nth(round) => Position::At(round),
            At::FromLast(before) => Position::Count(own as u8, before),
            At::Further(further) => {
                let known = matches!(self.context, Context::After { .. }) && self.at_hand == Some(own);
                known.then_some(Position::Running(further))?
            }
            At::Across(sequence, further) => Position::Running(self.running(sequence.into())?.saturating_add(further)),
            _ => return None,
        };
        self.after_rounds(own).then_some(Site::Fetched(Fetched::Of(round), node, field, offset))
    }

    pub(super) fn locate_node(&self, name: &str, at: At) -> Option<Site> {
        let node = self.pattern.of_rounds().position(|node| *node.name == *name)? as u8;
        let own = (node, Field::Node, 0);
        match at {
            At::Here => self.of_round(Some(own), None),
            At::Next => self.of_round(None, Some(own)),
            At::First | At::Last => self.of_end(own, at),
            At::Further(_) | At::Nth(_) | At::FromLast(_) | At::Across(..) => self.recalled(own, at),
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
        self.in_round?;
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
        let sequence = self.pattern.round_of(node.into())?.number;
        let backward = self.route.repetitions.get(sequence)?.backward;
        // The round walked last is still in its registers.
        if backward == (at == At::First) {
            let slot = *self.route.round_slots.get(node as usize)?;
            return Some(Site::Value(Value::Field(slot, field, offset)));
        }
        let round = if at == At::First { Position::At(1) } else { Position::Count(sequence as u8, 0) };
        Some(Site::Fetched(Fetched::Of(round), node, field, offset))
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
        let pattern = self.pattern;
        let round = pattern.round_of(usize::from(node)).expect("nodes of rounds are fetched where there are rounds");
        let own = usize::from(node) - round.first;
        let known = self.fetched.get(&(from, node)).copied();
        let slot = known.unwrap_or_else(|| {
            let (x, n) = (&round.index, &round.count);
            let plus = |name: &str, offset: i64| match offset {
                0 => name.to_owned(),
                offset => format!("{name}{offset:+}"),
            };
            let index = match (from, self.backward) {
                (Fetched::Before, false) | (Fetched::Here, _) => x.to_string(),
                (Fetched::Before, true) | (Fetched::Next, _) => format!("{x}+1"),
                (Fetched::Of(Position::At(place)), _) => place.to_string(),
                (Fetched::Of(Position::Count(_, offset)), _) => plus(n, offset),
                (Fetched::Of(Position::Running(offset)), _) => {
                    let running = self.at_hand.or(self.in_round).and_then(|sequence| self.scope.index(sequence));
                    plus(running.unwrap_or(x), offset)
                }
            };
            let slot = self.new_slot(&format!("{}[{index}]", round.nodes[own].name).into());
            self.fetched.insert((from, node), slot);
            slot
        });
        let Fetched::Of(position) = from else { return slot };
        let backward = self.route.repetitions.get(round.number).is_some_and(|repetition| repetition.backward);
        let (sequence, size) = (round.number as u8, round.nodes.len() as u8);
        let recall = Recall { to: slot, sequence, size, node: own as u8, backward, round: position };
        // The first and the last round are there where there is any.
        if matches!(position, Position::At(1) | Position::Count(_, 0)) {
            if known.is_none() {
                self.recalls.push(recall);
            }
        } else if !self.steps.contains(&TemplateStep::Recall(recall)) {
            self.steps.push(TemplateStep::Recall(recall));
        }
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
