//! From a template's pattern to the order in which its nodes are reached.
//!
//! Greedy: of all nodes that a functional edge ties to what is bound, the cheapest goes first, so that the most selective
//! comparisons come early. A repetition becomes a loop walked from the side from which its rounds are functional.

mod conditions;
mod places;
mod rounds;
pub(crate) mod terms;
mod units;
mod ways;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::codes;
use crate::matcher::REGISTERS;
use crate::pattern::{At, Findings, Key, Node, Pattern, Round, Scope, Solved};
use crate::plan::{Body, Field, Loop, MAX_SLOTS, Recall, Slot, TemplateStep, Value};
use conditions::{Stage, check_bodies};
use dyelog_datalog::ast::{Condition, Program, Spanned, Template};
use dyelog_datalog::scope::Scopes;
use places::{Context, Fetched, Site};
use rounds::{equations, round_sites};
use units::{Meanings, Unit, may_navigate};

/// Relations that the planner itself turns into navigation, with their columns, and how many of these decide the others:
/// `begins(k, i, v)`, `ends(k, i, v)`, `visit(k, m, q)`, `accepted(k, m, q, l)`.
pub const FUNCTIONAL_RELATIONS: [(&str, usize, usize); 4] =
    [("begins", 3, 1), ("ends", 3, 1), ("visit", 3, 2), ("accepted", 4, 2)];

/// The match part of a plan, and what the rest of the plan needs to know of it.
#[derive(Clone, Debug, Default)]
pub struct Route {
    /// Steps before the first repetition, or all.
    pub head: Vec<TemplateStep>,
    /// The repetitions.
    pub repetitions: Vec<Loop>,
    /// The register of each node outside the repetitions, in the order of the pattern.
    pub slots: Vec<Slot>,
    /// The register of each node of rounds.
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
    let count = pattern.all().count();
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
            round_slots: vec![Slot::MAX; pattern.of_rounds().count()],
            round_sites: round_sites(pattern, &equations),
            ..Route::default()
        },
        bound: Vec::new(),
        used: vec![false; units.len()],
        meanings,
        units,
        equations,
        steps: Vec::new(),
        in_round: None,
        context: Context::Outside,
        at_hand: None,
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
    steps: Vec<TemplateStep>,
    /// The sequence whose round is being planned.
    in_round: Option<usize>,
    /// Of which rounds the conditions are that are being emitted.
    context: Context,
    /// Of which sequence.
    at_hand: Option<usize>,
    /// Whether rounds are walked from the last to the first.
    backward: bool,
    /// Registers for nodes of other rounds than the one that is being walked.
    fetched: BTreeMap<(Fetched, u8), Slot>,
    /// What brings nodes of rounds back, once all of their sequence have been walked.
    recalls: Vec<Recall>,
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

impl Planner<'_> {
    fn plan(&mut self, findings: &mut Findings<'_>) {
        let pattern = self.pattern;
        let glue = self.new_slot(&pattern.nodes[pattern.glue].name);
        self.route.slots[pattern.glue] = glue;
        self.arrive(&pattern.nodes[pattern.glue], glue, &[]);
        self.conditions(findings, Stage::Node);
        self.reach_all();
        let mut unwalked = None;
        for round in &pattern.rounds {
            self.conditions(findings, Stage::Head);
            if !self.round(round, findings) {
                unwalked = Some(round);
                break;
            }
            self.name_ends();
            self.reach_all();
        }
        let walked = unwalked.is_none();
        let missed: Vec<&Node> = pattern
            .nodes
            .iter()
            .zip(&self.route.slots)
            .filter(|(_, slot)| **slot == Slot::MAX)
            .map(|(node, _)| node)
            .collect();
        match unwalked {
            // Nodes behind the sequence are reached over it.
            Some(round) => self.no_way_along(round, findings),
            None => missed.iter().for_each(|node| self.unreachable(node, findings)),
        }
        if !(walked && missed.is_empty()) {
            self.pretend();
        }
        self.ends();
        self.conditions(findings, Stage::End);
        let mut steps = std::mem::take(&mut self.steps);
        if self.route.repetitions.len() > 1 {
            steps.push(TemplateStep::Apart(self.route.slots.clone()));
        }
        self.end_part(steps);
        for recall in std::mem::take(&mut self.recalls).into_iter().rev() {
            if let Some(repetition) = self.route.repetitions.get_mut(usize::from(recall.sequence)) {
                repetition.tail.insert(0, TemplateStep::Recall(recall));
            }
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
                format!(
                    "let the node before the sequence, or the one after it, name what its rounds are linked by, or say it under `where`, such as `{}[1] = …`",
                    linked[0]
                ),
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
        for number in 0..self.route.repetitions.len() {
            self.ends_of(&self.pattern.rounds[number]);
        }
    }

    fn ends_of(&mut self, round: &Round) {
        let repetition = &self.route.repetitions[round.number];
        let (reached, own, backward) = (repetition.next_carry.clone(), repetition.nodes.clone(), repetition.backward);
        let linked = self.links(round);
        for node in &self.pattern.nodes {
            for (_, term) in node.terms() {
                let Solved::Variable(key @ (name, at @ (At::First | At::Last | At::After)), _) = term else { continue };
                if self.scope.sequence_of(name) != Some(round.number) {
                    continue;
                }
                let Some(site @ Value::Field(slot, ..)) = self.route.sites.get(key).copied() else { continue };
                // The walk begins with what is known of one end.
                let (begins, ends) = if backward { (At::After, At::First) } else { (At::First, At::After) };
                let walked = own.contains(&slot) || (linked.contains(name) && *at == begins);
                if walked || self.compared.contains(key) {
                    continue;
                }
                // What links the rounds is what the walk has come to, also where there is no round.
                let link = linked.iter().position(|other| other == name).filter(|_| *at == ends);
                let inside = link.map(|link| Site::Value(reached[link])).or_else(|| self.locate_at_end(key));
                let Some(inside) = inside else { continue };
                self.compared.push(key.clone());
                let inside = self.resolve(inside);
                if site != inside {
                    self.steps.push(TemplateStep::Equal(site, inside));
                }
            }
        }
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
        for round in &pattern.rounds[self.route.repetitions.len()..] {
            let linked = self.links(round);
            let outer = self.bound.len();
            for name in &linked {
                self.route.sites.entry((Arc::clone(name), At::Next)).or_insert(Value::Carry(0, 0));
            }
            self.in_round = Some(round.number);
            for (place, node) in (round.first..).zip(&round.nodes) {
                let slot = self.new_slot(&node.name);
                self.arrive(node, slot, &[]);
                self.route.round_slots[place] = slot;
            }
            self.conditions(&mut Findings::new(self.program), Stage::Node);
            self.in_round = None;
            self.leave_round(true, &linked, outer);
        }
    }

    fn unreachable(&self, node: &Node, findings: &mut Findings<'_>) {
        let hint = "tie it to a bound node: the same thread with a counter that differs by a constant, the same task with one, \
                    the thread that a bound fork starts, or the fork of a thread that is known";
        let finding = findings.error(
            codes::NOT_NAVIGABLE,
            node.span,
            format!(
                "nothing ties node `{}` to the glue node, `{}`",
                node.name, self.pattern.nodes[self.pattern.glue].name
            ),
        );
        "would have to be searched among all nodes".clone_into(&mut finding.label);
        finding.hints.push(hint.to_owned());
    }

    fn new_slot(&mut self, name: &Arc<str>) -> Slot {
        self.route.slot_names.push(Arc::clone(name));
        // That there are too many is told elsewhere; the last one means that a node is not reached.
        Slot::try_from(self.route.slot_names.len() - 1).unwrap_or(Slot::MAX - 1)
    }
}
