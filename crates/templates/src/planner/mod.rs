//! From a template's pattern to the order in which its nodes are reached.
//!
//! Greedy: of all nodes that a functional edge ties to what is bound, the cheapest goes first, so that the most selective
//! comparisons come early. A repetition becomes a loop walked from the side from which its rounds are functional.

mod conditions;
mod places;
mod terms;
mod units;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::codes;
use crate::matcher::REGISTERS;
use crate::pattern::{At, Findings, Key, Node, Pattern, Round, Scope, Solved};
use crate::plan::{Body, Edge, Field, KindTag, Loop, MAX_SLOTS, Slot, Step, Value};
use conditions::{Stage, by_name, check_bodies, is_name};
use dyelog_datalog::ast::{Comparison, Condition, Program, Spanned, Template, Term};
use dyelog_datalog::scope::Scopes;
use places::{Context, Fetched, Site};
use terms::{apart, is_first, linked, plus, replace_values};
use units::{Meanings, Unit, may_navigate};

/// Relations that the planner itself turns into navigation, with their columns, and how many of these decide the others:
/// `begins(k, i, v)`, `ends(k, i, v)`, `visit(k, m, q)`.
pub const FUNCTIONAL_RELATIONS: [(&str, usize, usize); 3] = [("begins", 3, 1), ("ends", 3, 1), ("visit", 3, 2)];

/// The match part of a plan, and what the rest of the plan needs to know of it.
#[derive(Clone, Debug, Default)]
pub struct Route {
    /// Steps before the repetition, or all.
    pub head: Vec<Step>,
    /// The repetition.
    pub repetition: Option<Loop>,
    /// Steps after it.
    pub tail: Vec<Step>,
    /// Steps after no round at all.
    pub tail_of_none: Option<Vec<Step>>,
    /// The register of each node outside the repetition, in the order of the pattern.
    pub slots: Vec<Slot>,
    /// The register of each node of a round.
    pub round_slots: Vec<Slot>,
    /// The first site of each variable outside the repetition, and where each began as a field.
    pub sites: BTreeMap<Key, Value>,
    /// The sites of variables within a round: which of its nodes, which field, what is added.
    pub round_sites: BTreeMap<Key, (u8, Field, i64)>,
    /// What the fields of variables are.
    pub types: BTreeMap<Key, Field>,
    /// Names of the registers.
    pub slot_names: Vec<Arc<str>>,
    /// Symbols compared with.
    pub symbols: Vec<Arc<str>>,
    /// What conditions ask beside relations of the rule file.
    pub bodies: Vec<Body>,
    /// Whether it leads to all nodes. Where it does not, it still tells which variables the nodes have.
    pub sound: bool,
}

/// Finds the route of a pattern; what cannot be reached is among the findings. `None` where there are too many nodes for one.
pub fn route(program: &Program, template: &Template, pattern: &Pattern, findings: &mut Findings<'_>) -> Option<Route> {
    let count = pattern.nodes.len() + pattern.round.as_ref().map_or(0, |round| round.nodes.len());
    if count + may_navigate(template) > MAX_SLOTS {
        let message = format!("template `{}` has {count} nodes", template.name.value);
        findings.error(codes::TOO_MANY_NODES, template.name.span, message).notes.push(format!(
            "nodes of a template, and those that `begins`, `ends` and `visit` look at, share {MAX_SLOTS} registers; use a `repeat` \
             for sequences"
        ));
        return None;
    }
    let scope = Scope::of(template);
    let good = findings.list.len();
    let equations = equations(template, pattern, &scope);
    let names = equations.iter().map(|(name, _)| Arc::clone(name)).collect();
    let mut meanings = Meanings::of(template, pattern, names);
    let units = meanings.units(findings);
    let mut planner = Planner {
        program,
        template,
        pattern,
        scope,
        route: Route {
            slots: vec![Slot::MAX; pattern.nodes.len()],
            round_sites: round_sites(pattern, &equations),
            ..Route::default()
        },
        bound: Vec::new(),
        used: vec![false; units.len()],
        meanings,
        units,
        equations,
        steps: Vec::new(),
        in_round: false,
        context: Context::Outside,
        backward: false,
        fetched: BTreeMap::new(),
        recalls: Vec::new(),
        seen: 0,
        compared: Vec::new(),
        relations: relations(template, &findings.scopes),
    };
    check_bodies(&planner, findings);
    planner.plan(findings);
    if planner.route.slot_names.len() > REGISTERS {
        let message = format!("the conditions of template `{}` look at too many nodes", template.name.value);
        findings.error(codes::TOO_MANY_NODES, template.name.span, message).notes.push(format!(
            "nodes of a template, and those of other rounds that its conditions look at, share {REGISTERS} registers"
        ));
    }
    let failed = findings.list[good..].iter().any(|finding| finding.severity == dyelog_diagnostic::Severity::Error);
    planner.route.sound = !failed;
    Some(planner.route)
}

/// A node with its register.
#[derive(Clone, Copy)]
struct Bound<'t> {
    node: &'t Node,
    slot: Slot,
}

struct Planner<'t> {
    program: &'t Program,
    template: &'t Template,
    pattern: &'t Pattern,
    scope: Scope,
    route: Route,
    bound: Vec<Bound<'t>>,
    meanings: Meanings<'t>,
    units: Vec<Unit<'t>>,
    /// Which units have been emitted.
    used: Vec<bool>,
    equations: Vec<(Arc<str>, i64)>,
    steps: Vec<Step>,
    in_round: bool,
    /// Of which rounds the conditions are that are being emitted.
    context: Context,
    /// Whether rounds are walked from the last to the first.
    backward: bool,
    /// Registers for nodes of other rounds than the one that is being walked.
    fetched: BTreeMap<(Fetched, u8), Slot>,
    /// What brings nodes of the round walked first back.
    recalls: Vec<Step>,
    /// How many conditions on some round are noted while rounds are walked.
    seen: u8,
    /// Variables of the ends of the sequence that are compared with its rounds.
    compared: Vec<Key>,
    /// The relations of rules that conditions ask, by their names in the template's file: with their names in the program.
    relations: BTreeMap<Arc<str>, Arc<str>>,
}

/// The names in the program of the relations of rules that a template's conditions ask.
fn relations(template: &Template, scopes: &Scopes<'_>) -> BTreeMap<Arc<str>, Arc<str>> {
    let mut open: Vec<&Spanned<Condition>> = template.conditions.iter().collect();
    let mut found = BTreeMap::new();
    while let Some(condition) = open.pop() {
        match &condition.value {
            Condition::Atom { atom, .. } => {
                if let Some(relation) = scopes.relation(&atom.relation) {
                    found.insert(Arc::clone(&atom.relation.value), scopes.shown(relation).into());
                }
            }
            Condition::Rounds { body, .. } => open.extend(body),
            Condition::Compare(..) | Condition::NotStarts { .. } | Condition::Aggregate { .. } => {}
        }
    }
    found
}

/// Conditions such as `m[x+1] == m[x] + 1`: what links a round with the next one where no node does, and a node outside says
/// where that begins or ends. Without such a node they are conditions as any other.
fn equations(template: &Template, pattern: &Pattern, scope: &Scope) -> Vec<(Arc<str>, i64)> {
    let mut equations = Vec::new();
    let ends = |name: &Arc<str>| {
        let mut terms = pattern.nodes.iter().flat_map(Node::terms);
        terms.any(|(_, term)| matches!(term, Solved::Variable((own, At::First | At::After), _) if own == name))
    };
    for condition in &template.conditions {
        let Condition::Compare(left, Comparison::Equal, right) = &condition.value else { continue };
        let solved = |term: &Spanned<Term>| match &term.value {
            Term::Variable(variable, offset) => Some((scope.key(variable, true)?, *offset)),
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

/// Variables of a round, each read off the first of its nodes that has it.
fn round_sites(pattern: &Pattern, equations: &[(Arc<str>, i64)]) -> BTreeMap<Key, (u8, Field, i64)> {
    let mut sites = BTreeMap::new();
    for (number, node) in pattern.round.iter().flat_map(|round| round.nodes.iter().enumerate()) {
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

/// An edge with its cost and the fields that it makes sure of.
#[derive(Clone, Copy)]
struct Way {
    cost: u32,
    edge: Edge,
    sure: &'static [Field],
}

impl<'t> Planner<'t> {
    fn plan(&mut self, findings: &mut Findings<'_>) {
        let pattern = self.pattern;
        let glue = self.new_slot(&pattern.nodes[pattern.glue].name);
        self.route.slots[pattern.glue] = glue;
        self.arrive(&pattern.nodes[pattern.glue], glue, &[]);
        self.conditions(findings, Stage::Node);
        self.reach_all();
        if pattern.round.is_some() {
            self.conditions(findings, Stage::Head);
        }
        let walked = self.round(findings);
        if walked {
            self.reach_all();
        }
        let missed: Vec<&Node> = pattern
            .nodes
            .iter()
            .zip(&self.route.slots)
            .filter(|(_, slot)| **slot == Slot::MAX)
            .map(|(node, _)| node)
            .collect();
        match &pattern.round {
            // Nodes behind the sequence are reached over it.
            Some(round) if !walked => self.no_way_along(round, findings),
            _ => missed.iter().for_each(|node| Self::unreachable(node, findings)),
        }
        if !(walked && missed.is_empty()) {
            self.pretend();
        }
        self.ends();
        self.conditions(findings, Stage::End);
        let steps = std::mem::take(&mut self.steps);
        if self.route.repetition.is_some() {
            self.route.tail = std::mem::take(&mut self.recalls);
            self.route.tail.extend(steps);
        } else {
            self.route.head = steps;
        }
        self.none_at_all(findings);
    }

    /// Binds outer nodes as long as one can be reached, the cheapest first.
    fn reach_all(&mut self) {
        let pattern = self.pattern;
        loop {
            let next = (0..pattern.nodes.len())
                .filter(|&index| self.route.slots[index] == Slot::MAX)
                .filter_map(|index| self.way(&pattern.nodes[index]).map(|way| (way.cost, index, way)))
                .min_by_key(|(cost, index, _)| (*cost, *index));
            let Some((_, index, way)) = next else { return };
            let slot = self.go(&pattern.nodes[index], way);
            self.route.slots[index] = slot;
            self.conditions(&mut Findings::new(self.program), Stage::Node);
        }
    }

    /// Why a sequence cannot be walked, from neither end.
    fn no_way_along(&self, round: &Round, findings: &mut Findings<'_>) {
        let names: Vec<String> = round.nodes.iter().map(|node| format!("`{}`", node.name)).collect();
        let (x, n) = (&round.index, &round.count);
        let linked = self.links(round);
        let known = |at: At| linked.iter().all(|name| self.route.sites.contains_key(&(Arc::clone(name), at)));
        let ends = |end: &str| linked.iter().map(|name| format!("`{name}[{end}]`")).collect::<Vec<_>>().join(" and ");
        let (note, hint) = if linked.is_empty() {
            (
                "nothing links a round to the next one".to_owned(),
                format!(
                    "name what they share with both indices, such as `q[{x}]` in one node and `q[{x}+1]` in another"
                ),
            )
        } else if !known(At::First) && !known(At::After) {
            (
                format!(
                    "neither end of it is known: no node outside has {}, or {}",
                    ends("1"),
                    ends(&format!("{n}+1"))
                ),
                "let the node before the sequence, or the one after it, name what its rounds are linked by".to_owned(),
            )
        } else {
            let known = if known(At::After) { format!("{x}+1") } else { x.to_string() };
            (
                format!("what is known of a round, {}, does not lead to all of its nodes", ends(&known)),
                "tie each node of the round to another one: the next in its thread or task, the thread that a fork starts, or \
                 the fork of a thread"
                    .to_owned(),
            )
        };
        let finding = findings.error(
            codes::NOT_NAVIGABLE,
            round.span,
            format!("the sequence of {} cannot be walked", names.join(", ")),
        );
        finding.notes.push(note);
        finding.hints.push(hint);
    }

    /// Compares what nodes outside the sequence say of its first and last round with that round, where the walk does not.
    fn ends(&mut self) {
        let (Some(round), Some(repetition)) = (&self.pattern.round, &self.route.repetition) else { return };
        let reached = repetition.next_carry.clone();
        let linked = self.links(round);
        for node in &self.pattern.nodes {
            for (_, term) in node.terms() {
                let Solved::Variable(key @ (name, at @ (At::First | At::Last | At::After)), _) = term else { continue };
                let Some(site @ Value::Field(slot, ..)) = self.route.sites.get(key).copied() else { continue };
                // The walk begins with what is known of one end.
                let (begins, ends) = if self.backward { (At::After, At::First) } else { (At::First, At::After) };
                let walked = self.route.round_slots.contains(&slot) || (linked.contains(name) && *at == begins);
                if walked || self.compared.contains(key) {
                    continue;
                }
                // What links the rounds is what the walk has come to, also where there is no round.
                let link = linked.iter().position(|other| other == name).filter(|_| *at == ends);
                let inside = link.map(|link| Site::Value(reached[link])).or_else(|| self.locate_at_end(key));
                let Some(inside) = inside else { continue };
                self.compared.push(key.clone());
                let inside = self.settle(inside);
                if site != inside {
                    self.steps.push(Step::Equal(site, inside));
                }
            }
        }
    }

    /// Variables that link a round with the next: by its nodes, or by an equation.
    fn links(&self, round: &Round) -> Vec<Arc<str>> {
        let mut names = linked(&round.nodes);
        for (name, _) in self.equations.clone() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Takes nodes that were not reached as if they had been, so that what `model` says of them can be checked.
    fn pretend(&mut self) {
        let pattern = self.pattern;
        for (index, node) in pattern.nodes.iter().enumerate() {
            if self.route.slots[index] == Slot::MAX {
                let slot = self.new_slot(&node.name);
                self.arrive(node, slot, &[]);
                self.route.slots[index] = slot;
            }
        }
        let Some(round) = pattern.round.as_ref().filter(|_| self.route.repetition.is_none()) else { return };
        let linked = self.links(round);
        let outer = self.bound.len();
        for name in &linked {
            self.route.sites.entry((Arc::clone(name), At::Next)).or_insert(Value::Carry(0, 0));
        }
        self.in_round = true;
        self.route.round_slots = round
            .nodes
            .iter()
            .map(|node| {
                let slot = self.new_slot(&node.name);
                self.arrive(node, slot, &[]);
                slot
            })
            .collect();
        self.conditions(&mut Findings::new(self.program), Stage::Node);
        self.in_round = false;
        self.leave_round(true, &linked, outer);
    }

    fn unreachable(node: &Node, findings: &mut Findings<'_>) {
        let hint = "tie it to a bound node: the same thread with a counter that differs by a constant, the same task with one, \
                    the thread that a bound fork starts, or the fork of a thread that is known";
        let finding = findings.error(
            codes::NOT_NAVIGABLE,
            node.span,
            format!("nothing ties node `{}` to the glue node", node.name),
        );
        "would have to be searched among all nodes".clone_into(&mut finding.label);
        finding.hints.push(hint.to_owned());
    }

    fn new_slot(&mut self, name: &Arc<str>) -> Slot {
        self.route.slot_names.push(Arc::clone(name));
        self.route.slot_names.len() as Slot - 1
    }

    /// Plans the repetition: backward if its end is known, else forward.
    fn round(&mut self, findings: &mut Findings<'_>) -> bool {
        let Some(round) = &self.pattern.round else { return true };
        let equations = self.equations.clone();
        let linked = self.links(round);
        for backward in [true, false] {
            let (outside, known, unknown) =
                if backward { (At::After, At::Next, At::Here) } else { (At::First, At::Here, At::Next) };
            let carry: Option<Vec<Value>> =
                linked.iter().map(|name| self.route.sites.get(&(Arc::clone(name), outside)).copied()).collect();
            let Some(carry) = carry else { continue };
            if carry.is_empty() {
                continue;
            }
            let saved = (self.bound.len(), self.route.clone(), self.used.clone());
            let known_before = self.route.sites.clone();
            self.backward = backward;
            let head = std::mem::take(&mut self.steps);
            self.in_round = true;
            for (number, name) in linked.iter().enumerate() {
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
            let reached = self.reach_round(&round.nodes.iter().collect::<Vec<_>>());
            if reached {
                self.same_in_all(&known_before);
                self.conditions(findings, Stage::Round);
            }
            self.in_round = false;
            let next: Option<Vec<Value>> =
                linked.iter().map(|name| self.route.sites.get(&(Arc::clone(name), unknown)).copied()).collect();
            if let (true, Some(next_carry)) = (reached, next) {
                let steps = std::mem::take(&mut self.steps);
                self.leave_round(backward, &linked, saved.0);
                self.route.head = head;
                self.route.repetition = Some(Loop {
                    min: round.min,
                    backward,
                    carry,
                    steps,
                    next_carry,
                    nodes: self.route.round_slots.clone(),
                    longest: self.template.longest,
                });
                self.ends();
                self.steps.extend((0..self.seen).map(Step::Seen));
                self.conditions(findings, Stage::Node);
                return true;
            }
            self.bound.truncate(saved.0);
            self.route = saved.1;
            self.used = saved.2;
            self.fetched.clear();
            self.seen = 0;
            self.steps = head;
        }
        false
    }

    fn reach_round(&mut self, nodes: &[&'t Node]) -> bool {
        self.route.round_slots = vec![Slot::MAX; nodes.len()];
        for _ in 0..nodes.len() {
            let next = (0..nodes.len())
                .filter(|&index| self.route.round_slots[index] == Slot::MAX)
                .filter_map(|index| self.way(nodes[index]).map(|way| (way.cost, index, way)))
                .min_by_key(|(cost, index, _)| (*cost, *index));
            let Some((_, index, way)) = next else { return false };
            let slot = self.go(nodes[index], way);
            self.route.round_slots[index] = slot;
            self.conditions(&mut Findings::new(self.program), Stage::Node);
        }
        true
    }

    /// Renames what a round has bound to what it is afterwards.
    fn leave_round(&mut self, backward: bool, linked: &[Arc<str>], outer: usize) {
        let inner: Vec<(Key, Value)> = self
            .route
            .sites
            .iter()
            .filter(|((_, at), _)| matches!(at, At::Here | At::Next))
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
    fn none_at_all(&mut self, findings: &mut Findings<'_>) {
        let Some(repetition) = &self.route.repetition else { return };
        if repetition.min > 0 {
            return;
        }
        // Nor is there a round to go back to.
        let recalled = self.route.tail.iter().filter_map(|step| match step {
            Step::Recall { to, .. } => Some(*to),
            _ => None,
        });
        let slots: Vec<Slot> = self.route.round_slots.iter().copied().chain(recalled).collect();
        let carry = repetition.carry.clone();
        let next = repetition.next_carry.clone();
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
                Value::Field(..) | Value::Carry(..) => {
                    let (place, offset) =
                        next.iter().enumerate().find_map(|(place, other)| Some((place, same(other)?)))?;
                    Some(plus(carry[place], offset))
                }
                other => Some(other),
            }
        };
        let kept = self.route.tail.iter().filter(|step| !matches!(step, Step::Recall { .. }));
        let steps: Option<Vec<Step>> = kept.map(|step| replace_values(step, &replaced)).collect();
        if steps.is_none() {
            findings.warning(
                codes::REPEAT_WITHOUT_MIN,
                self.pattern.round.as_ref().map_or(self.template.span, |round| round.span),
                "what follows the sequence needs at least one round; none at all never matches",
            );
        }
        self.route.tail_of_none = steps;
    }

    /// The cheapest way to a node from what is bound.
    fn way(&self, node: &Node) -> Option<Way> {
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
    fn value(&self, term: &Solved) -> Option<Value> {
        match term {
            Solved::Integer(value) => Some(Value::Integer(*value)),
            Solved::Variable(key, offset) => self.route.sites.get(key).map(|site| plus(*site, *offset)),
            Solved::Wildcard | Solved::Symbol(_) => None,
        }
    }

    fn go(&mut self, node: &'t Node, way: Way) -> Slot {
        let slot = self.new_slot(&node.name);
        self.steps.push(Step::Go { to: slot, edge: way.edge, kind: node.kind, consumed: true });
        for other in self.bound.clone() {
            let may_be_same =
                other.node.kind == node.kind || other.node.kind == KindTag::Any || node.kind == KindTag::Any;
            if may_be_same && !self.provably_different(other.node, node) {
                self.steps.push(Step::Distinct(other.slot, slot));
            }
        }
        self.arrive(node, slot, way.sure);
        slot
    }

    /// Compares or defines the fields of a node that was just bound.
    fn arrive(&mut self, node: &'t Node, slot: Slot, sure: &[Field]) {
        let terms: Vec<(Field, Solved)> = node.terms().map(|(field, term)| (field, term.clone())).collect();
        for (field, term) in &terms {
            if node.kind == KindTag::Begin && *field == Field::Position && *term == Solved::Integer(1) {
                continue;
            }
            if matches!(field, Field::Activity | Field::Service) && !matches!(term, Solved::Symbol(_)) {
                self.steps.push(Step::Named(slot, *field));
            }
            if !sure.contains(field) {
                self.unify(slot, *field, term);
            }
        }
        self.bound.push(Bound { node, slot });
    }

    fn unify(&mut self, slot: Slot, field: Field, term: &Solved) {
        let own = Value::Field(slot, field, 0);
        match term {
            Solved::Wildcard => {}
            Solved::Integer(value) => self.steps.push(Step::Equal(own, Value::Integer(*value))),
            Solved::Symbol(name) => {
                let field = if field == Field::Task { Field::TaskName } else { field };
                let symbol = self.symbol(name);
                self.steps.push(Step::Equal(Value::Field(slot, field, 0), symbol));
            }
            Solved::Variable(key, offset) => match self.route.sites.get(key) {
                Some(site) => {
                    let site = plus(*site, *offset);
                    let (own, site) = match (is_name(own), is_name(site)) {
                        (true, false) => (own, by_name(site)),
                        (false, true) => (by_name(own), site),
                        _ => (own, site),
                    };
                    self.steps.push(Step::Equal(own, site));
                }
                None => {
                    self.route.sites.insert(key.clone(), Value::Field(slot, field, -offset));
                    self.route.types.insert(key.clone(), field);
                }
            },
        }
    }

    fn symbol(&mut self, name: &Arc<str>) -> Value {
        Value::Symbol(self.symbol_number(name))
    }

    fn symbol_number(&mut self, name: &Arc<str>) -> u32 {
        let place = self.route.symbols.iter().position(|other| other == name).unwrap_or_else(|| {
            self.route.symbols.push(Arc::clone(name));
            self.route.symbols.len() - 1
        });
        place as u32
    }

    /// Whether two nodes can never be one, so that nothing needs to be compared.
    fn provably_different(&self, left: &Node, right: &Node) -> bool {
        let steps = |a: (&Solved, &Solved), b: (&Solved, &Solved)| {
            apart(a.0, a.1) == Some(0) && apart(b.0, b.1).is_some_and(|delta| delta != 0)
        };
        steps((&left.thread, &right.thread), (&left.position, &right.position))
            || steps((&left.task, &right.task), (&left.counter, &right.counter))
            || self.template.conditions.iter().any(|condition| self.separates(&condition.value, left, right))
    }

    fn separates(&self, condition: &Condition, left: &Node, right: &Node) -> bool {
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
    fn plain(&self, term: &Spanned<Term>) -> Option<Solved> {
        match &term.value {
            Term::Variable(variable, offset) => {
                Some(Solved::Variable(self.scope.key(variable, self.in_round)?, *offset))
            }
            Term::Integer(value) => Some(Solved::Integer(*value)),
            _ => None,
        }
    }
}
