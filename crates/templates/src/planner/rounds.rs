//! Repetitions: each a loop over rounds, walked from the side from which they are functional.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::codes;
use crate::pattern::{At, Findings, Key, Node, Pattern, Round, Scope, Solved};
use crate::plan::{Field, Loop, Position, Slot, TemplateStep, Value};
use crate::planner::Planner;
use crate::planner::conditions::Stage;
use crate::planner::places::Fetched;
use crate::planner::terms::{linked, plus, replace_values};
use dyelog_datalog::ast::{Comparison, Condition, Spanned, Template, Term};

/// Conditions such as `m[x+1] == m[x] + 1`: what links a round with the next one where no node does, and a node outside says
/// where that begins or ends. Without such a node they are conditions as any other.
pub(super) fn equations(template: &Template, pattern: &Pattern, scope: &Scope) -> Vec<(Arc<str>, i64)> {
    let mut equations = Vec::new();
    let anchors = anchors(template, scope);
    let ends = |name: &Arc<str>| {
        let mut terms = pattern.all().flat_map(Node::terms);
        let of_node =
            terms.any(|(_, term)| matches!(term, Solved::Variable((own, At::First | At::After), _) if own == name));
        of_node || anchors.iter().any(|((own, _), ..)| own == name)
    };
    for condition in &template.conditions {
        let Condition::Compare(left, Comparison::Equal, right) = &condition.value else { continue };
        let solved = |term: &Spanned<Term>| match &term.value {
            Term::Variable(variable, offset) => Some((scope.key(variable)?, *offset)),
            _ => None,
        };
        let (Some(left), Some(right)) = (solved(left), solved(right)) else { continue };
        let (next, here) = if left.0.1 == At::Next { (left, right) } else { (right, left) };
        if next.0.1 == At::Next
            && here.0.1 == At::Here
            && next.0.0 == here.0.0
            && ends(&next.0.0)
            && let Some(step) = here.1.checked_sub(next.1)
            && !equations.iter().any(|(name, _)| *name == next.0.0)
        {
            equations.push((next.0.0, step));
        }
    }
    equations
}

/// Conditions such as `p[1] == q[n+1]`, which say where a sequence begins or ends: its variable, what is added to it there, and the other
/// side.
pub(super) fn anchors<'t>(template: &'t Template, scope: &Scope) -> Vec<(Key, i64, &'t Spanned<Term>)> {
    let mut anchors = Vec::new();
    for condition in &template.conditions {
        let Condition::Compare(left, Comparison::Equal, right) = &condition.value else { continue };
        for (end, other) in [(left, right), (right, left)] {
            if let Term::Variable(variable, offset) = &end.value
                && let Some(key @ (_, At::First | At::After)) = scope.key(variable)
                && matches!(other.value, Term::Variable(..) | Term::Integer(_))
            {
                anchors.push((key, *offset, other));
            }
        }
    }
    anchors
}

/// Variables of a round, each read off the first of its nodes that has it.
pub(super) fn round_sites(pattern: &Pattern, equations: &[(Arc<str>, i64)]) -> BTreeMap<Key, (u8, Field, i64)> {
    let mut sites = BTreeMap::new();
    for (number, node) in pattern.of_rounds().enumerate() {
        for (field, term) in node.terms() {
            if let Solved::Variable(key, offset) = term {
                sites.entry(key.clone()).or_insert((number as u8, field, -offset));
            }
        }
    }
    for (name, step) in equations {
        if let Some((node, field, offset)) = sites.get(&(Arc::clone(name), At::Here)).copied() {
            sites.entry((Arc::clone(name), At::Next)).or_insert((node, field, offset.saturating_add(*step)));
        }
    }
    sites
}

impl<'t> Planner<'t> {
    /// Variables that link a round with the next: by its nodes, or by an equation.
    pub(super) fn links(&self, round: &Round) -> Vec<Arc<str>> {
        let mut names = linked(&round.nodes);
        for (name, _) in &self.equations {
            if !names.contains(name) && self.scope.sequence_of(name) == Some(round.number) {
                names.push(Arc::clone(name));
            }
        }
        names
    }

    /// Takes what conditions say of an end of a sequence.
    fn anchor(&mut self, linked: &[Arc<str>], outside: At) {
        for (key, offset, other) in anchors(self.template, &self.scope) {
            if key.1 != outside || !linked.contains(&key.0) || self.route.sites.contains_key(&key) {
                continue;
            }
            let Some(value) = self.term_value(other) else { continue };
            if let Value::Field(_, field, _) = value {
                self.route.types.insert(key.clone(), field);
            } else if let Term::Variable(variable, _) = &other.value
                && let Some(field) = self.scope.key(variable).and_then(|key| self.route.types.get(&key).copied())
            {
                self.route.types.insert(key.clone(), field);
            }
            self.route.sites.insert(key, plus(value, offset.saturating_neg()));
        }
    }

    /// Recalls what a round's nodes say of rounds of earlier sequences: of those that have its own number, plus a constant.
    fn across(&mut self, round: &Round) {
        for (_, term) in round.nodes.iter().flat_map(Node::terms) {
            let Solved::Variable(key @ (name, At::Across(_, offset)), _) = term else { continue };
            let own = self.route.round_sites.get(&(Arc::clone(name), At::Here)).copied();
            if let Some((node, field, own)) = own.filter(|_| !self.route.sites.contains_key(key)) {
                let slot = self.fetched(Fetched::Of(Position::Running(*offset)), node);
                self.route.sites.insert(key.clone(), Value::Field(slot, field, own));
                self.route.types.insert(key.clone(), field);
            }
        }
    }

    /// Finds what a round's nodes say of ends of sequences and of rounds of earlier ones; whether all of it is known. A walk from the end does not
    /// know the numbers of its rounds.
    fn of_earlier(&mut self, round: &Round, backward: bool) -> bool {
        if !backward {
            self.across(round);
        }
        for (_, term) in round.nodes.iter().flat_map(Node::terms) {
            let Solved::Variable(key @ (_, at), _) = term else { continue };
            if self.route.sites.contains_key(key) {
                continue;
            }
            let site = match at {
                At::First | At::Last | At::After => self.locate_at_end(key),
                At::Across(..) => None,
                _ => continue,
            };
            let Some(site) = site else { return false };
            let value = self.resolve(site);
            self.route.sites.insert(key.clone(), value);
        }
        true
    }

    /// Finds what nodes behind the sequences that have been walked say of their first and last rounds, such as `q[n]`.
    pub(super) fn name_ends(&mut self) {
        let missed = self.pattern.nodes.iter().zip(&self.route.slots).filter(|(_, slot)| **slot == Slot::MAX);
        let keys: Vec<&Key> = missed
            .flat_map(|(node, _)| node.terms())
            .filter_map(|(_, term)| match term {
                Solved::Variable(key @ (_, At::First | At::Last | At::After), _) => Some(key),
                _ => None,
            })
            .collect();
        for key in keys {
            if self.route.sites.contains_key(key) {
                continue;
            }
            let Some(site) = self.locate_at_end(key) else { continue };
            let value = self.resolve(site);
            if let Value::Field(_, field, _) = value {
                self.route.types.insert(key.clone(), field);
            }
            self.route.sites.insert(key.clone(), value);
        }
    }

    /// Plans a repetition: backward if its end is known, else forward.
    pub(super) fn round(&mut self, round: &'t Round, findings: &mut Findings<'_>) -> bool {
        let of_sequence = |(name, _): &&(Arc<str>, i64)| self.scope.sequence_of(name) == Some(round.number);
        let equations: Vec<(Arc<str>, i64)> = self.equations.iter().filter(of_sequence).cloned().collect();
        let carried_before: usize = self.route.repetitions.iter().map(|repetition| repetition.carry.len()).sum();
        let linked = self.links(round);
        for backward in [true, false] {
            let (outside, known, unknown) =
                if backward { (At::After, At::Next, At::Here) } else { (At::First, At::Here, At::Next) };
            self.anchor(&linked, outside);
            let carry: Option<Vec<Value>> =
                linked.iter().map(|name| self.route.sites.get(&(Arc::clone(name), outside)).copied()).collect();
            let Some(carry) = carry else { continue };
            if carry.is_empty() {
                continue;
            }
            let saved = (self.bound.len(), self.route.clone(), self.used.clone());
            let noted = (self.seen, self.fetched.clone(), self.recalls.clone());
            let known_before = self.route.sites.clone();
            self.backward = backward;
            let head = std::mem::take(&mut self.steps);
            self.in_round = Some(round.number);
            for (number, name) in (carried_before..).zip(&linked) {
                self.route.sites.insert((Arc::clone(name), known), Value::Carry(number as u8, 0));
                if let Some(field) = self.route.types.get(&(Arc::clone(name), outside)).copied() {
                    self.route.types.insert((Arc::clone(name), known), field);
                }
            }
            for (name, step) in &equations {
                let (known, unknown) = ((Arc::clone(name), known), (Arc::clone(name), unknown));
                if let (Some(site), false) = (self.route.sites.get(&known), self.route.sites.contains_key(&unknown)) {
                    let value = plus(*site, if backward { -step } else { *step });
                    self.route.sites.insert(unknown.clone(), value);
                }
                if let Some(field) = self.route.types.get(&known).copied() {
                    self.route.types.insert(unknown, field);
                }
            }
            let reached = self.of_earlier(round, backward) && self.reach_round(round);
            if reached {
                self.same_in_all(&known_before);
                self.conditions(findings, Stage::Round);
            }
            self.in_round = None;
            let next: Option<Vec<Value>> =
                linked.iter().map(|name| self.route.sites.get(&(Arc::clone(name), unknown)).copied()).collect();
            if let (true, Some(next_carry)) = (reached, next) {
                let steps = std::mem::take(&mut self.steps);
                self.leave_round(backward, &linked, saved.0);
                self.end_part(head);
                let own = round.first..round.first + round.nodes.len();
                self.route.repetitions.push(Loop {
                    min: round.min,
                    backward,
                    carry,
                    steps,
                    next_carry,
                    nodes: self.route.round_slots[own].to_vec(),
                    longest: self.template.longest,
                    carried_before: carried_before as u8,
                    noted: (noted.0..self.seen)
                        .fold(0, |bits, number| bits | 1u64.checked_shl(number.into()).unwrap_or(0)),
                    tail: Vec::new(),
                    tail_of_none: None,
                });
                self.ends();
                self.steps.extend((noted.0..self.seen).map(TemplateStep::Seen));
                self.conditions(findings, Stage::Node);
                return true;
            }
            self.bound.truncate(saved.0);
            self.route = saved.1;
            self.used = saved.2;
            (self.seen, self.fetched, self.recalls) = noted;
            self.steps = head;
        }
        false
    }

    /// Puts steps before what comes next: the head, or what follows the sequence that was walked last.
    pub(super) fn end_part(&mut self, steps: Vec<TemplateStep>) {
        match self.route.repetitions.last_mut() {
            Some(last) => last.tail = steps,
            None => self.route.head = steps,
        }
    }

    pub(super) fn reach_round(&mut self, round: &'t Round) -> bool {
        let (nodes, first) = (&round.nodes, round.first);
        for _ in 0..nodes.len() {
            let next = (0..nodes.len())
                .filter(|&index| self.route.round_slots[first + index] == Slot::MAX)
                .filter_map(|index| self.way(&nodes[index]).map(|way| (way.cost, index, way)))
                .min_by_key(|(cost, index, _)| (*cost, *index));
            let Some((_, index, way)) = next else { return false };
            let slot = self.go(&nodes[index], way);
            self.route.round_slots[first + index] = slot;
            self.conditions(&mut Findings::new(self.program), Stage::Node);
        }
        true
    }

    /// Renames what a round has bound to what it is afterwards.
    pub(super) fn leave_round(&mut self, backward: bool, linked: &[Arc<str>], outer: usize) {
        let inner: Vec<(Key, Value)> = self
            .route
            .sites
            .iter()
            .filter(|((_, at), _)| matches!(at, At::Here | At::Next | At::Across(..)))
            .map(|(key, value)| (key.clone(), *value))
            .collect();
        for ((name, at), value) in inner {
            self.route.sites.remove(&(Arc::clone(&name), at));
            let field = self.route.types.get(&(Arc::clone(&name), at)).copied();
            // The round that was walked last is the first or the last of the sequence.
            let outside = match (backward, at) {
                (true, At::Here) => At::First,
                (false, At::Here) if !linked.contains(&name) => At::Last,
                (false, At::Next) => At::After,
                _ => continue,
            };
            let outside = (name, outside);
            if let Some(field) = field {
                self.route.types.entry(outside.clone()).or_insert(field);
            }
            self.route.sites.entry(outside).or_insert(value);
        }
        // Nodes of the round stay bound as those of the round walked last, but only through the variables above.
        self.bound.truncate(outer);
    }

    /// Where no round is allowed, the first index and the one after the last are the same.
    pub(super) fn none_at_all(&mut self, findings: &mut Findings<'_>) {
        let Some((repetition, round)) = self.route.repetitions.last().zip(self.pattern.rounds.last()) else { return };
        if repetition.min > 0 {
            return;
        }
        // Nor is there a round to go back to.
        let own = (self.route.repetitions.len() - 1) as u8;
        let is_own = |step: &&TemplateStep| matches!(step, TemplateStep::Recall(recall) if recall.sequence == own);
        let recalled = repetition.tail.iter().filter(is_own).filter_map(|step| match step {
            TemplateStep::Recall(recall) => Some(recall.to),
            _ => None,
        });
        let slots: Vec<Slot> = repetition.nodes.iter().copied().chain(recalled).collect();
        let carry = repetition.carry.clone();
        let (next, before) = (repetition.next_carry.clone(), repetition.carried_before);
        let replaced = |value: Value| {
            let same = |other: &Value| match (value, other) {
                (Value::Field(slot, field, offset), Value::Field(s, f, base)) if slot == *s && field == *f => {
                    Some(offset - base)
                }
                (Value::Carry(number, offset), Value::Carry(n, base)) if number == *n => Some(offset - base),
                _ => None,
            };
            match value {
                Value::Field(slot, ..) if !slots.contains(&slot) => Some(value),
                Value::Carry(number, _) if number < before => Some(value),
                Value::Field(..) | Value::Carry(..) => {
                    let (place, offset) =
                        next.iter().enumerate().find_map(|(place, other)| Some((place, same(other)?)))?;
                    Some(plus(carry[place], offset))
                }
                other => Some(other),
            }
        };
        let kept = repetition.tail.iter().filter(|step| !is_own(step));
        let steps: Option<Vec<TemplateStep>> = kept.map(|step| replace_values(step, own, &replaced)).collect();
        if steps.is_none() {
            findings.warning(
                codes::REPEAT_WITHOUT_MIN,
                round.span,
                "what follows the sequence needs at least one round; none at all never matches",
            );
        }
        if let Some(last) = self.route.repetitions.last_mut() {
            last.tail_of_none = steps;
        }
    }
}
