//! From a template's pattern to the order in which its nodes are reached.
//!
//! Greedy: of all nodes that a functional edge ties to what is bound, the cheapest goes first, so that the most selective
//! comparisons come early. A repetition becomes a loop walked from the side from which its rounds are functional.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::datalog::ast::{Comparison, Condition, Program, Spanned, Template, Term};
use crate::tlc::codes;
use crate::tlc::pattern::{At, Findings, Key, Node, Pattern, Scope, Solved, bad_index, condition_terms};
use crate::tlc::plan::{
    Edge, Expression, ExpressionPart, Field, KindTag, Loop, MAX_SLOTS, RelationArgument, Slot, Step, Value,
};

/// Relations that the planner itself turns into navigation: `begins(k, i, v)`, `ends(k, i, v)`.
pub const FUNCTIONAL_RELATIONS: [&str; 2] = ["begins", "ends"];

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
}

/// Finds the route of a pattern; what cannot be reached is among the findings.
pub fn route(program: &Program, template: &Template, pattern: &Pattern, findings: &mut Findings<'_>) -> Option<Route> {
    let count = pattern.nodes.len() + pattern.round.as_ref().map_or(0, |round| round.nodes.len());
    if count + template.conditions.len() > MAX_SLOTS {
        let message = format!("template `{}` has {count} nodes", template.name.value);
        findings.error(codes::TOO_MANY_NODES, template.name.span, message).notes.push(format!(
            "nodes and conditions of a template share {MAX_SLOTS} registers; use a `repeat` for sequences"
        ));
        return None;
    }
    let scope = Scope::of(template);
    let mut planner = Planner {
        program,
        template,
        pattern,
        scope,
        route: Route { slots: vec![Slot::MAX; pattern.nodes.len()], ..Route::default() },
        bound: Vec::new(),
        used: vec![false; template.conditions.len()],
        steps: Vec::new(),
        in_round: false,
    };
    let good = findings.list.len();
    planner.plan(findings);
    let failed = findings.list[good..].iter().any(|finding| finding.severity == crate::diagnostic::Severity::Error);
    (!failed).then_some(planner.route)
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
    used: Vec<bool>,
    steps: Vec<Step>,
    in_round: bool,
}

/// An edge with its cost and the fields that it makes sure of.
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
        self.conditions(findings, false);
        self.reach_all();
        if let Some(round) = &pattern.round {
            if !self.round(findings) {
                let names: Vec<String> = round.nodes.iter().map(|node| format!("`{}`", node.name)).collect();
                findings
                    .error(
                        codes::NOT_NAVIGABLE,
                        round.span,
                        format!("the sequence of {} cannot be walked", names.join(", ")),
                    )
                    .notes
                    .push(
                        "its rounds must follow from one end, where the variables that link them are known".to_owned(),
                    );
                return;
            }
            self.reach_all();
        }
        for (index, node) in pattern.nodes.iter().enumerate() {
            if self.route.slots[index] == Slot::MAX {
                self.unreachable(node, findings);
            }
        }
        self.conditions(findings, true);
        let steps = std::mem::take(&mut self.steps);
        if self.route.repetition.is_some() {
            self.route.tail = steps;
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
            self.conditions(&mut Findings::new(self.program), false);
        }
    }

    fn unreachable(&self, node: &Node, findings: &mut Findings<'_>) {
        let hint = "tie it to a bound node: the same thread with a counter that differs by a constant, the same task with one, \
                    the thread that a bound fork starts, or the fork of a thread that is known";
        let finding = findings.error(
            codes::NOT_NAVIGABLE,
            node.span,
            format!("nothing ties node `{}` to the glue node", node.name),
        );
        finding.label = "would have to be searched among all nodes".to_owned();
        finding.hints.push(hint.to_owned());
    }

    fn new_slot(&mut self, name: &Arc<str>) -> Slot {
        self.route.slot_names.push(Arc::clone(name));
        self.route.slot_names.len() as Slot - 1
    }

    /// Plans the repetition: backward if its end is known, else forward.
    fn round(&mut self, findings: &mut Findings<'_>) -> bool {
        let Some(round) = &self.pattern.round else { return true };
        let linked: Vec<Arc<str>> = linked(&round.nodes);
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
            let head = std::mem::take(&mut self.steps);
            self.in_round = true;
            for (number, name) in linked.iter().enumerate() {
                self.route.sites.insert((Arc::clone(name), known), Value::Carry(number as u8, 0));
                if let Some(field) = self.route.types.get(&(Arc::clone(name), outside)).copied() {
                    self.route.types.insert((Arc::clone(name), known), field);
                }
            }
            let reached = self.reach_round(round.nodes.iter().collect());
            self.in_round = false;
            let next: Option<Vec<Value>> =
                linked.iter().map(|name| self.route.sites.get(&(Arc::clone(name), unknown)).copied()).collect();
            if let (true, Some(next_carry)) = (reached, next) {
                let steps = std::mem::replace(&mut self.steps, Vec::new());
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
                self.conditions(findings, false);
                return true;
            }
            self.bound.truncate(saved.0);
            self.route = saved.1;
            self.used = saved.2;
            self.steps = head;
        }
        false
    }

    fn reach_round(&mut self, nodes: Vec<&'t Node>) -> bool {
        self.route.round_slots = vec![Slot::MAX; nodes.len()];
        for _ in 0..nodes.len() {
            let next = (0..nodes.len())
                .filter(|&index| self.route.round_slots[index] == Slot::MAX)
                .filter_map(|index| self.way(nodes[index]).map(|way| (way.cost, index, way)))
                .min_by_key(|(cost, index, _)| (*cost, *index));
            let Some((_, index, way)) = next else { return false };
            let slot = self.go(nodes[index], way);
            self.route.round_slots[index] = slot;
            self.conditions(&mut Findings::new(self.program), false);
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
        // Under `model` a variable of a round is read off the first of its nodes that has it, whatever the walk used.
        for (number, node) in self.pattern.round.iter().flat_map(|round| round.nodes.iter().enumerate()) {
            for (field, term) in node.terms() {
                if let Solved::Variable(key, offset) = term {
                    self.route.round_sites.entry(key.clone()).or_insert((number as u8, field, -offset));
                }
            }
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
        let slots: Vec<Slot> = self.route.round_slots.clone();
        let carry = repetition.carry.clone();
        let next = repetition.next_carry.clone();
        let replaced = |value: Value| match value {
            Value::Field(slot, field, offset) if slots.contains(&slot) => {
                let place = next
                    .iter()
                    .position(|other| matches!(other, Value::Field(s, f, _) if *s == slot && *f == field))?;
                let (Value::Field(_, _, base), Value::Field(outer, outer_field, outer_offset)) =
                    (next[place], carry[place])
                else {
                    return None;
                };
                Some(Value::Field(outer, outer_field, outer_offset + offset - base))
            }
            other => Some(other),
        };
        let steps: Option<Vec<Step>> = self.route.tail.iter().map(|step| replace_values(step, &replaced)).collect();
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
                Some(site) => self.steps.push(Step::Equal(own, plus(*site, *offset))),
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

    fn symbol_number(&mut self, name: &Arc<str>) -> u16 {
        let place = self.route.symbols.iter().position(|other| other == name).unwrap_or_else(|| {
            self.route.symbols.push(Arc::clone(name));
            self.route.symbols.len() - 1
        });
        place as u16
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

    /// Emits the conditions whose variables are known; at the end, all that are left.
    fn conditions(&mut self, findings: &mut Findings<'_>, end: bool) {
        let template = self.template;
        loop {
            let mut emitted = false;
            for (index, condition) in template.conditions.iter().enumerate() {
                if !self.used[index] && self.ready(&condition.value, end) {
                    self.used[index] = true;
                    emitted |= self.emit(condition, findings);
                }
            }
            if !emitted {
                break;
            }
        }
        if end {
            for (index, condition) in template.conditions.iter().enumerate() {
                if !self.used[index] {
                    self.report_unbound(condition, findings);
                }
            }
        }
    }

    fn ready(&self, condition: &Condition, end: bool) -> bool {
        match condition {
            Condition::Atom { negated: false, atom }
                if functional(&atom.relation.value) && atom.arguments.len() == 3 =>
            {
                self.known(&atom.arguments[0])
            }
            // Relations may leave variables open, and cost most, so they come last.
            Condition::Atom { negated, atom } => {
                end && (!negated
                    || atom.arguments.iter().all(|argument| self.known(argument) || argument.value == Term::Wildcard))
            }
            Condition::NotStarts { node, .. } => self.slot_of(&node.value).is_some(),
            Condition::Compare(..) => condition_terms(condition).iter().all(|term| self.known(term)),
            Condition::Aggregate { .. } => end,
        }
    }

    fn known(&self, term: &Spanned<Term>) -> bool {
        match &term.value {
            Term::Integer(_) | Term::Symbol(_) => true,
            Term::Wildcard => false,
            Term::Variable(variable, _) => {
                self.slot_of(&variable.name).is_some()
                    || self.scope.key(variable, self.in_round).is_some_and(|key| self.route.sites.contains_key(&key))
            }
            Term::Arithmetic(left, _, right) => self.known(left) && self.known(right),
        }
    }

    fn slot_of(&self, name: &str) -> Option<Slot> {
        self.bound.iter().find(|bound| &*bound.node.name == name).map(|bound| bound.slot)
    }

    /// Emits a condition; says whether it may have made others ready.
    fn emit(&mut self, condition: &Spanned<Condition>, findings: &mut Findings<'_>) -> bool {
        match &condition.value {
            Condition::Compare(left, comparison, right) => {
                self.compare(left, *comparison, right);
                false
            }
            Condition::Atom { negated: false, atom }
                if functional(&atom.relation.value) && atom.arguments.len() == 3 =>
            {
                let arguments: Vec<Option<Solved>> = atom
                    .arguments
                    .iter()
                    .map(|argument| match &argument.value {
                        Term::Wildcard => Some(Solved::Wildcard),
                        Term::Symbol(name) => Some(Solved::Symbol(Arc::clone(name))),
                        _ => self.plain(argument),
                    })
                    .collect();
                let [Some(thread), Some(task), Some(counter)] = &arguments[..] else {
                    findings.error(
                        codes::NOT_LINEAR,
                        condition.span,
                        "only a variable plus or minus a constant can stand here",
                    );
                    return false;
                };
                let Some(thread) = self.value(thread) else { return false };
                let slot = self.new_slot(&atom.relation.value);
                let begins = &*atom.relation.value == "begins";
                let (edge, kind) =
                    if begins { (Edge::First(thread), KindTag::Begin) } else { (Edge::Last(thread), KindTag::End) };
                self.steps.push(Step::Go { to: slot, edge, kind, consumed: false });
                self.unify(slot, Field::Task, task);
                self.unify(slot, Field::Counter, counter);
                true
            }
            Condition::Atom { negated, atom } => {
                let arguments = atom.arguments.iter().map(|argument| self.relation_argument(argument)).collect();
                let relation = Arc::clone(&atom.relation.value);
                self.steps.push(Step::Holds { negated: *negated, relation, arguments });
                false
            }
            Condition::NotStarts { template, node } => {
                let slot = self.slot_of(&node.value).expect("a condition is emitted when its node is bound");
                match self.program.templates.iter().position(|other| other.name.value == template.value) {
                    Some(number) => self.steps.push(Step::NotStarts(number as u16, slot)),
                    None => {
                        let place = findings.place(template.span);
                        let message = format!("there is no template `{}`", template.value);
                        let names = self.program.templates.iter().map(|other| &*other.name.value);
                        let finding = crate::diagnostic::Diagnostic::error(codes::STARTS, place, message)
                            .with_similar(&template.value, names);
                        findings.list.push(finding);
                    }
                }
                false
            }
            Condition::Aggregate { .. } => {
                findings
                    .error(codes::NOT_LINEAR, condition.span, "aggregates stand in rules only")
                    .hints
                    .push("write a rule with the aggregate and ask its relation here".to_owned());
                false
            }
        }
    }

    fn compare(&mut self, left: &Spanned<Term>, comparison: Comparison, right: &Spanned<Term>) {
        let simple = |planner: &mut Self, term: &Spanned<Term>, other: &Spanned<Term>| match &term.value {
            Term::Symbol(name) => Some(planner.symbol(name)),
            _ => {
                let value = planner.term_value(term)?;
                // A task compares with a symbol by its name.
                match (value, &other.value) {
                    (Value::Field(slot, Field::Task, 0), Term::Symbol(_)) => {
                        Some(Value::Field(slot, Field::TaskName, 0))
                    }
                    _ => Some(value),
                }
            }
        };
        if let (Some(a), Some(b)) = (simple(self, left, right), simple(self, right, left)) {
            self.steps.push(Step::Compare(a, comparison, b));
        } else {
            let (a, b) = (self.expression(left), self.expression(right));
            self.steps.push(Step::CompareExpressions(a, comparison, b));
        }
    }

    fn term_value(&self, term: &Spanned<Term>) -> Option<Value> {
        if let Term::Variable(variable, 0) = &term.value
            && variable.index.is_none()
            && let Some(slot) = self.slot_of(&variable.name)
        {
            return Some(Value::Field(slot, Field::Node, 0));
        }
        self.value(&self.plain(term)?)
    }

    fn expression(&mut self, term: &Spanned<Term>) -> Expression {
        enum Work<'w> {
            Term(&'w Spanned<Term>),
            Apply(crate::datalog::ast::Operator),
        }
        let mut parts = Vec::new();
        let mut work = vec![Work::Term(term)];
        while let Some(next) = work.pop() {
            match next {
                Work::Apply(operator) => parts.push(ExpressionPart::Apply(operator)),
                Work::Term(Spanned { value: Term::Arithmetic(left, operator, right), .. }) => {
                    work.extend([Work::Apply(*operator), Work::Term(right), Work::Term(left)]);
                }
                Work::Term(Spanned { value: Term::Symbol(name), .. }) => {
                    let symbol = self.symbol(name);
                    parts.push(ExpressionPart::Value(symbol));
                }
                Work::Term(term) => {
                    parts.push(ExpressionPart::Value(self.term_value(term).unwrap_or(Value::Integer(0))));
                }
            }
        }
        Expression(parts)
    }

    fn relation_argument(&mut self, term: &Spanned<Term>) -> RelationArgument {
        if let Term::Symbol(name) = &term.value {
            return RelationArgument::Symbol(self.symbol_number(name));
        }
        match self.term_value(term) {
            Some(Value::Field(slot, Field::Task | Field::TaskName, 0)) => RelationArgument::TaskName(slot),
            Some(Value::Field(slot, field @ (Field::Activity | Field::Service), 0)) => {
                RelationArgument::Name(slot, field)
            }
            Some(value) => RelationArgument::Integer(value),
            None => RelationArgument::Free,
        }
    }

    fn report_unbound(&self, condition: &Spanned<Condition>, findings: &mut Findings<'_>) {
        for term in condition_terms(&condition.value) {
            if let Term::Variable(variable, _) = &term.value
                && !self.known(term)
            {
                if variable.index.is_some() && self.scope.key(variable, false).is_none() {
                    bad_index(term.span, variable, findings);
                    continue;
                }
                let names: Vec<Arc<str>> = self.route.sites.keys().map(|(name, _)| Arc::clone(name)).collect();
                let place = findings.place(term.span);
                let message = format!("no node binds `{}`", variable.name);
                let finding = crate::diagnostic::Diagnostic::error(codes::UNBOUND, place, message)
                    .with_similar(&variable.name, names.iter().map(|name| &**name));
                findings.list.push(finding);
            }
        }
        if let Condition::NotStarts { node, .. } = &condition.value {
            let place = findings.place(node.span);
            let message = format!("the template has no node `{}`", node.value);
            let names = self.pattern.nodes.iter().map(|other| &*other.name);
            let finding =
                crate::diagnostic::Diagnostic::error(codes::UNBOUND, place, message).with_similar(&node.value, names);
            findings.list.push(finding);
        }
    }
}

fn functional(relation: &str) -> bool {
    FUNCTIONAL_RELATIONS.contains(&relation)
}

fn is_first(node: &Node) -> bool {
    node.kind == KindTag::Begin || node.position == Solved::Integer(1)
}

fn plus(site: Value, offset: i64) -> Value {
    match site {
        Value::Field(slot, field, own) => Value::Field(slot, field, own + offset),
        Value::Carry(number, own) => Value::Carry(number, own + offset),
        Value::Integer(value) => Value::Integer(value + offset),
        Value::Symbol(symbol) => Value::Symbol(symbol),
    }
}

/// By how much the right term is more than the left one, where that is sure.
fn apart(left: &Solved, right: &Solved) -> Option<i32> {
    let delta = match (left, right) {
        (Solved::Integer(left), Solved::Integer(right)) => right.checked_sub(*left)?,
        (Solved::Variable(left, from), Solved::Variable(right, to)) if left == right => to.checked_sub(*from)?,
        _ => return None,
    };
    i32::try_from(delta).ok()
}

/// Variables that stand in a round both with index x and with x+1, in the order of the text.
fn linked(nodes: &[Node]) -> Vec<Arc<str>> {
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

fn replace_values(step: &Step, replaced: &dyn Fn(Value) -> Option<Value>) -> Option<Step> {
    Some(match step {
        Step::Go { to, edge, kind, consumed } => {
            let edge = match edge {
                Edge::First(value) => Edge::First(replaced(*value)?),
                Edge::Last(value) => Edge::Last(replaced(*value)?),
                Edge::Fork(value) => Edge::Fork(replaced(*value)?),
                Edge::Join(value) => Edge::Join(replaced(*value)?),
                Edge::At(thread, position) => Edge::At(replaced(*thread)?, replaced(*position)?),
                Edge::InThread(..) | Edge::InTask(..) | Edge::BeginOf(_) | Edge::ForkOfThreadOf(_) => *edge,
            };
            Step::Go { to: *to, edge, kind: *kind, consumed: *consumed }
        }
        Step::Equal(left, right) => Step::Equal(replaced(*left)?, replaced(*right)?),
        Step::Compare(left, comparison, right) => Step::Compare(replaced(*left)?, *comparison, replaced(*right)?),
        Step::CompareExpressions(left, comparison, right) => {
            let expression = |parts: &Expression| {
                let parts: Option<Vec<ExpressionPart>> = parts
                    .0
                    .iter()
                    .map(|part| match part {
                        ExpressionPart::Value(value) => replaced(*value).map(ExpressionPart::Value),
                        apply => Some(*apply),
                    })
                    .collect();
                parts.map(Expression)
            };
            Step::CompareExpressions(expression(left)?, *comparison, expression(right)?)
        }
        other => other.clone(),
    })
}
