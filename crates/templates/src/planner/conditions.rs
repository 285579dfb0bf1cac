//! Conditions of templates: when they can be decided, and as which steps.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::codes;
use crate::facts;
use crate::pattern::{At, Findings, Solved, condition_terms};
use crate::plan::{
    Body, Edge, Expression, ExpressionPart, Field, KindTag, RelationArgument, RoundCondition, Slot, TemplateStep, Value,
};
use crate::planner::Planner;
use crate::planner::places::{Context, Fetched};
use crate::planner::units::{Literals, Meaning, Meanings, When, deciding};
use dyelog_datalog::ast::{Atom, Comparison, Condition, Ident, Operator, Quantifier, Rule, Spanned, Term, Variable};
use dyelog_datalog::check::{MAX_ARITY, MAX_BODY, unsafe_bodies};
use dyelog_datalog::syntax::{print_condition, print_term};

/// How far the planner is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// A node was bound: what is cheap is decided as early as it can be.
    Node,
    /// All nodes before the sequence are bound.
    Head,
    /// All nodes of a round are bound.
    Round,
    /// All is bound.
    End,
}

impl<'t> Planner<'t> {
    /// Emits the conditions that can be decided now.
    pub(super) fn conditions(&mut self, findings: &mut Findings<'_>, stage: Stage) {
        let bound = if self.in_round.is_some() { Context::Walk } else { Context::Outside };
        self.in_context(bound, self.in_round, |planner| while planner.simple(findings) {});
        match stage {
            Stage::Node => {}
            Stage::Head => self.asked(When::Once, Context::Outside),
            Stage::Round => {
                self.asked(When::Every, Context::Walk);
                let sequence = self.in_round.unwrap_or(0);
                for context in [Context::Walk, Context::Pair] {
                    self.rounds(sequence, context);
                }
            }
            Stage::End => {
                self.asked(When::Once, Context::Outside);
                for sequence in 0..self.route.repetitions.len() {
                    for pair in [false, true] {
                        self.rounds(sequence, Context::After { pair });
                    }
                }
                self.undecided(findings);
            }
        }
    }

    pub(super) fn in_context<T>(
        &mut self,
        context: Context,
        sequence: Option<usize>,
        work: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let before = (std::mem::replace(&mut self.context, context), std::mem::replace(&mut self.at_hand, sequence));
        let done = work(self);
        (self.context, self.at_hand) = before;
        done
    }

    /// Emits what needs no relation, and navigation; says whether that may have made others ready.
    fn simple(&mut self, findings: &mut Findings<'_>) -> bool {
        let mut bound = false;
        for number in 0..self.units.len() {
            let unit = &self.units[number];
            let now = match unit.when {
                When::Once => true,
                When::Every => self.in_round.is_some() && unit.sequence == self.in_round,
                When::Some => false,
            };
            let [literals] = &unit.bodies[..] else { continue };
            let [literal] = literals[..] else { continue };
            if self.used[number] || !now {
                continue;
            }
            if unit.navigates {
                if self.leads_on(literal) {
                    self.used[number] = true;
                    bound |= self.navigate(literal, findings);
                }
            } else if !matches!(literal.value, Condition::Atom { .. })
                && self.decidable(literal)
                && self.is_closed(literal)
                && !has_fraction(literal)
            {
                self.used[number] = true;
                self.emit(&[literal]);
            }
        }
        bound
    }

    /// Emits what asks relations, the cheapest first.
    fn asked(&mut self, when: When, context: Context) {
        self.in_context(context, self.in_round, |planner| {
            let ready = |number: &usize| planner.is_ready(*number, when);
            let mut numbers: Vec<usize> = (0..planner.units.len()).filter(ready).collect();
            numbers.sort_by_key(|number| planner.cost(*number));
            for number in numbers {
                planner.used[number] = true;
                for literals in planner.units[number].bodies.clone() {
                    planner.emit(&literals);
                }
            }
        });
    }

    fn is_ready(&self, number: usize, when: When) -> bool {
        let unit = &self.units[number];
        !self.used[number]
            && !unit.navigates
            && unit.when == when
            && (when == When::Once || unit.sequence == self.at_hand)
            && unit.bodies.iter().flatten().all(|literal| self.decidable(literal))
    }

    /// What asks least goes first.
    fn cost(&self, number: usize) -> u32 {
        let literals = self.units[number].bodies.iter();
        let of_body = |literals: &Literals<'_>| match &literals[..] {
            [Spanned { value: Condition::Atom { atom, .. }, .. }] if self.is_direct(atom) => {
                if facts::schema().get(&atom.relation.value).is_some() { 1 } else { 2 }
            }
            [literal] if self.is_closed(literal) && !matches!(literal.value, Condition::Atom { .. }) => 0,
            _ => 3,
        };
        literals.map(of_body).max().unwrap_or(0)
    }

    fn backward_of(&self, sequence: usize) -> bool {
        self.route.repetitions.get(sequence).map_or(self.backward, |repetition| repetition.backward)
    }

    /// Emits what speaks of rounds and takes more than a step within them.
    fn rounds(&mut self, sequence: usize, context: Context) {
        let Some(round) = self.pattern.rounds.get(sequence) else { return };
        let (first, size) = (round.first, round.nodes.len() as u8);
        let own = first..first + round.nodes.len();
        let after = matches!(context, Context::After { .. });
        let pair = matches!(context, Context::Pair | Context::After { pair: true });
        for number in 0..self.units.len() {
            let when = self.units[number].when;
            let now = match when {
                When::Once => false,
                // What has to hold of every round is a step of it, if it speaks of no other.
                When::Every => context != Context::Walk,
                When::Some => true,
            };
            if !now || !self.in_context(context, Some(sequence), |planner| planner.is_ready(number, when)) {
                continue;
            }
            self.used[number] = true;
            let outer = std::mem::take(&mut self.steps);
            let bodies = self.units[number].bodies.clone();
            self.in_context(context, Some(sequence), |planner| {
                for literals in &bodies {
                    planner.emit(literals);
                }
            });
            let steps = std::mem::replace(&mut self.steps, outer);
            let quantifier = if when == When::Some { Quantifier::Some } else { Quantifier::Every };
            let mut noted = 0;
            if when == When::Some && !after {
                noted = self.seen;
                self.seen = self.seen.saturating_add(1);
            }
            let from = |from: Fetched| {
                let is_own = |node: &u8| own.contains(&usize::from(*node));
                let nodes = self.fetched.iter().filter(|((of, node), _)| *of == from && is_own(node));
                nodes.map(|((_, node), slot)| (*slot, *node - first as u8)).collect::<Vec<_>>()
            };
            let here = from(if after { Fetched::Here } else { Fetched::Before });
            let next = if after { from(Fetched::Next) } else { Vec::new() };
            let (reach, backward) = (self.meanings.reach(&bodies), self.backward_of(sequence));
            let sequence = sequence as u8;
            let condition =
                RoundCondition { quantifier, number: noted, pair, sequence, size, reach, backward, here, next, steps };
            let condition = Box::new(condition);
            self.steps.push(if after { TemplateStep::Rounds(condition) } else { TemplateStep::Round(condition) });
        }
    }

    /// A variable without an index is the same in all rounds, where a round is the first to say what it is.
    pub(super) fn same_in_all(&mut self, known: &BTreeMap<crate::pattern::Key, Value>) {
        let Some(round) = self.in_round.and_then(|sequence| self.pattern.rounds.get(sequence)) else { return };
        let (first, size) = (round.first, round.nodes.len() as u8);
        let own = first..first + round.nodes.len();
        let found: Vec<(u8, Field)> = self
            .route
            .round_sites
            .iter()
            .filter(|(key, (node, ..))| {
                key.1 == At::Scalar && !known.contains_key(*key) && own.contains(&usize::from(*node))
            })
            .map(|(_, (node, field, _))| (*node, *field))
            .collect();
        for (node, field) in found {
            let before = self.fetched(Fetched::Before, node);
            let own = self.route.round_slots[node as usize];
            let steps = vec![TemplateStep::Equal(Value::Field(own, field, 0), Value::Field(before, field, 0))];
            self.steps.push(TemplateStep::Round(Box::new(RoundCondition {
                quantifier: Quantifier::Every,
                number: 0,
                pair: true,
                sequence: round.number as u8,
                size,
                reach: [0, 0],
                backward: self.backward,
                here: vec![(before, node - first as u8)],
                next: Vec::new(),
                steps,
            })));
        }
    }

    /// Whether all that a condition says of bound variables is known.
    fn decidable(&self, literal: &Spanned<Condition>) -> bool {
        condition_terms(&literal.value).iter().all(|term| match &term.value {
            Term::Variable(variable, _) => {
                self.meanings.of_variable(variable) == Meaning::Open || self.locate(variable).is_some()
            }
            _ => true,
        })
    }

    /// Whether a condition has names or wildcards that may lack a value.
    fn may_be_unsafe(&self, literal: &Spanned<Condition>) -> bool {
        let plain = |term: &Spanned<Term>| matches!(term.value, Term::Wildcard);
        let wild = match &literal.value {
            Condition::Atom { atom, .. } => {
                let within = |term: &&Spanned<Term>| matches!(term.value, Term::Arithmetic(..));
                atom.arguments.iter().filter(within).any(has_wildcard)
            }
            _ => condition_terms(&literal.value).into_iter().any(plain),
        };
        wild || !self.is_closed(literal)
    }

    fn is_closed(&self, literal: &Spanned<Condition>) -> bool {
        self.meanings.open(&literal.value).is_empty()
    }

    pub(super) fn slot_of(&self, name: &str) -> Option<Slot> {
        self.bound.iter().find(|bound| &*bound.node.name == name).map(|bound| bound.slot)
    }

    /// Whether what decides a navigating relation is known.
    fn leads_on(&self, literal: &Spanned<Condition>) -> bool {
        let Condition::Atom { atom, .. } = &literal.value else { return false };
        let deciding = deciding(atom).unwrap_or(0);
        atom.arguments
            .iter()
            .take(deciding)
            .all(|argument| self.plain(argument).is_some_and(|argument| self.value(&argument).is_some()))
    }

    /// Goes to the node that a relation leads to; says whether it did.
    fn navigate(&mut self, literal: &Spanned<Condition>, findings: &mut Findings<'_>) -> bool {
        let Condition::Atom { atom, .. } = &literal.value else { return false };
        let arguments = atom.arguments.iter().map(|argument| match &argument.value {
            Term::Wildcard => Some(Solved::Wildcard),
            Term::Symbol(name) => Some(Solved::Symbol(Arc::clone(name))),
            _ => self.plain(argument),
        });
        let Some(arguments) = arguments.collect::<Option<Vec<Solved>>>() else {
            let message = "only a variable plus or minus a constant can stand here";
            findings.error(codes::NOT_LINEAR, literal.span, message);
            return false;
        };
        let Some(thread) = self.value(&arguments[0]) else { return false };
        let slot = self.new_slot(&atom.relation.value);
        let (edge, kind) = match &*atom.relation.value {
            "begins" => (Edge::First(thread), KindTag::Begin),
            "ends" => (Edge::Last(thread), KindTag::End),
            _ => {
                let Some(position) = self.value(&arguments[1]) else { return false };
                let along = &*atom.relation.value == "accepted";
                (Edge::Accepted(thread, position), if along { KindTag::Any } else { KindTag::Begin })
            }
        };
        self.steps.push(TemplateStep::Go { to: slot, edge, kind, consumed: false });
        let fields: &[Field] = match edge {
            Edge::Accepted(..) if kind == KindTag::Any => &[Field::Thread, Field::Position],
            Edge::Accepted(..) => &[Field::Thread],
            _ => &[Field::Task, Field::Counter],
        };
        for (field, argument) in fields.iter().zip(&arguments[arguments.len() - fields.len()..]) {
            self.unify(slot, *field, argument);
        }
        true
    }

    /// Emits literals that are asked together.
    fn emit(&mut self, literals: &[&'t Spanned<Condition>]) {
        match literals {
            [Spanned { value: Condition::Compare(left, comparison, right), .. }]
                if self.is_closed(literals[0]) && !has_fraction(literals[0]) =>
            {
                self.compare(left, *comparison, right);
            }
            [Spanned { value: Condition::NotStarts { template, node }, .. }] => {
                self.not_starts(template, node);
            }
            [Spanned { value: Condition::Atom { negated, atom }, .. }] if self.is_direct(atom) => {
                let mut arguments: Vec<RelationArgument> =
                    atom.arguments.iter().map(|argument| self.relation_argument(argument)).collect();
                if let Some((place, instance)) = self.instance(atom) {
                    arguments[place] = instance;
                }
                let name = &atom.relation.value;
                let relation = Arc::clone(self.relations.get(name).unwrap_or(name));
                self.steps.push(TemplateStep::Holds { negated: *negated, relation, arguments });
            }
            _ => self.ask(literals),
        }
    }

    fn not_starts(&mut self, template: &Ident, node: &Spanned<Term>) {
        let Some(Value::Field(slot, ..)) = self.term_value(node) else { return };
        // That there is such a template has been checked, unless what defines it could not be read.
        // One with alternatives is several.
        let all = (0..).zip(&self.program.templates).filter(|(_, other)| other.name.value == template.value);
        self.steps.extend(all.map(|(number, _)| TemplateStep::NotStarts(number, slot)));
    }

    /// Whether a relation can be asked as it stands: no open variable joins it with another literal, or with itself. Strings
    /// that the trace may not know are compared by the rules.
    fn is_direct(&self, atom: &Atom) -> bool {
        let base = facts::schema().get(&atom.relation.value).is_some();
        atom.arguments.iter().all(|argument| match &argument.value {
            Term::Wildcard | Term::Integer(_) => true,
            Term::Symbol(_) => base,
            _ => {
                let mut open = false;
                let mut work = vec![argument];
                while let Some(term) = work.pop() {
                    match &term.value {
                        Term::Arithmetic(left, _, right) => work.extend([&**left, &**right]),
                        Term::Variable(variable, _) => open |= self.meanings.of_variable(variable) == Meaning::Open,
                        Term::Wildcard | Term::Symbol(_) | Term::Float(_) => open = true,
                        Term::Integer(_) => {}
                    }
                }
                !open
            }
        })
    }

    /// Asks literals as the body of a rule whose head has a column for each bound variable.
    fn ask(&mut self, literals: &[&'t Spanned<Condition>]) {
        let (mut body, columns) = self.meanings.body(self.template, literals);
        let arguments = columns.iter().map(|variable| {
            let term = Term::Variable(variable.clone(), 0);
            self.relation_argument(&Spanned { value: term, span: literals[0].span })
        });
        let mut arguments: Vec<RelationArgument> = arguments.collect();
        // Where a relation tells instances of a task apart, the instance is a column of its own.
        for (place, literal) in literals.iter().enumerate() {
            let Condition::Atom { atom, .. } = &literal.value else { continue };
            let Some((column, instance)) = self.instance(atom) else { continue };
            let Condition::Atom { atom, .. } = &mut body.rule.body[place].value else { continue };
            let span = atom.span;
            let name = format!("{} (instance)", print_term(&atom.arguments[column].value));
            let term = Term::Variable(Variable { name: name.into(), index: None }, 0);
            atom.arguments[column] = Spanned { value: term.clone(), span };
            if body.rule.head.arguments.iter().all(|argument| argument.value != term) {
                body.rule.head.arguments.push(Spanned { value: term, span });
                arguments.push(instance);
            }
        }
        let relation = Arc::clone(&body.rule.head.relation.value);
        if self.route.bodies.iter().all(|other| other.rule.head.relation.value != relation) {
            self.route.bodies.push(body);
        }
        self.steps.push(TemplateStep::Holds { negated: false, relation, arguments });
    }

    /// The column of `begins` and `ends` that is a task, where a task variable of nodes stands there: it is the same instance, as where
    /// these relations lead to a node.
    fn instance(&mut self, atom: &Atom) -> Option<(usize, RelationArgument)> {
        let of_tasks = matches!(&*atom.relation.value, "begins" | "ends") && atom.arguments.len() == 3;
        match self.term_value(atom.arguments.get(1).filter(|_| of_tasks)?)? {
            value @ Value::Field(_, Field::Task, 0) => Some((1, RelationArgument::Integer(value))),
            _ => None,
        }
    }

    fn compare(&mut self, left: &Spanned<Term>, comparison: Comparison, right: &Spanned<Term>) {
        let simple = |planner: &mut Self, term: &Spanned<Term>, other: &Spanned<Term>| match &term.value {
            Term::Symbol(name) => Some(planner.symbol(name)),
            _ => {
                let value = planner.term_value(term)?;
                let symbol = matches!(other.value, Term::Symbol(_)) || planner.term_value(other).is_some_and(is_name);
                Some(if symbol { by_name(value) } else { value })
            }
        };
        if let (Some(a), Some(b)) = (simple(self, left, right), simple(self, right, left)) {
            // Also of a value with itself: a round that is not there has none.
            self.steps.push(TemplateStep::Compare(a, comparison, b));
        } else {
            let (a, b) = (self.expression(left), self.expression(right));
            self.steps.push(TemplateStep::CompareExpressions(a, comparison, b));
        }
    }

    fn expression(&mut self, term: &Spanned<Term>) -> Expression {
        enum Work<'w> {
            Term(&'w Spanned<Term>),
            Apply(Operator),
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
                // What has no value is an error told elsewhere.
                Work::Term(term) => {
                    parts.push(ExpressionPart::Value(self.term_value(term).unwrap_or(Value::Integer(0))));
                }
            }
        }
        Expression(parts)
    }

    fn relation_argument(&mut self, term: &Spanned<Term>) -> RelationArgument {
        match &term.value {
            Term::Wildcard => RelationArgument::Free,
            Term::Symbol(name) => RelationArgument::Symbol(self.symbol_number(name)),
            Term::Arithmetic(..) => RelationArgument::Computed(self.expression(term)),
            _ => match self.term_value(term) {
                Some(Value::Field(slot, Field::Task | Field::TaskName, 0)) => RelationArgument::TaskName(slot),
                Some(Value::Field(slot, field @ (Field::Activity | Field::Service), 0)) => {
                    RelationArgument::Name(slot, field)
                }
                value => RelationArgument::Integer(value.unwrap_or(Value::Integer(0))),
            },
        }
    }

    /// Tells of conditions that nothing could decide, where that is not because nodes could not be reached.
    fn undecided(&self, findings: &mut Findings<'_>) {
        let reached = self.route.repetitions.len() == self.pattern.rounds.len();
        for (unit, used) in self.units.iter().zip(&self.used) {
            let literal = unit.bodies.first().and_then(|literals| literals.first());
            let Some(literal) = literal.filter(|_| !used && reached) else { continue };
            let finding = findings.error(codes::INDEX, literal.span, "this cannot be told of a round");
            finding.notes.push(
                "what `begins`, `ends` and `visit` find in a round is known while that round is walked, and not after it"
                    .to_owned(),
            );
        }
    }
}

impl<'t> Meanings<'t> {
    /// Literals as a rule, and the variables that its columns are.
    pub(super) fn body(
        &self,
        template: &dyelog_datalog::ast::Template,
        literals: &[&'t Spanned<Condition>],
    ) -> (Body, Vec<Variable>) {
        let mut columns: Vec<Variable> = Vec::new();
        let renamed: Vec<Spanned<Condition>> = literals
            .iter()
            .map(|literal| {
                let value = match &literal.value {
                    Condition::Compare(left, comparison, right) => Condition::Compare(
                        self.column(left, &mut columns),
                        *comparison,
                        self.column(right, &mut columns),
                    ),
                    Condition::Atom { negated, atom } => {
                        let arguments = atom.arguments.iter().map(|term| self.column(term, &mut columns)).collect();
                        let atom = Atom { relation: atom.relation.clone(), arguments, span: atom.span };
                        Condition::Atom { negated: *negated, atom }
                    }
                    other => other.clone(),
                };
                Spanned { value, span: literal.span }
            })
            .collect();
        let text = literals.iter().map(|literal| print_condition(&literal.value)).collect::<Vec<_>>().join(", ");
        let span = literals[0].span.to(literals[literals.len() - 1].span);
        let arguments = columns.iter().map(|variable| Spanned { value: named(variable), span }).collect();
        // Names of relations have no brackets.
        let name: Arc<str> = format!("{text} (of template {})", template.name.value).into();
        let head = Atom { relation: Spanned { value: name, span }, arguments, span };
        let rule = Rule { doc: String::new(), head, body: renamed, span };
        (Body { rule, text: text.into() }, columns)
    }

    /// A term with plain names for bound variables, which become columns.
    fn column(&self, term: &Spanned<Term>, columns: &mut Vec<Variable>) -> Spanned<Term> {
        let value = match &term.value {
            Term::Variable(variable, offset) if self.of_variable(variable) != Meaning::Open => {
                if !columns.contains(variable) {
                    columns.push(variable.clone());
                }
                match named(variable) {
                    Term::Variable(variable, _) => Term::Variable(variable, *offset),
                    other => other,
                }
            }
            // No deeper than the parser allows.
            Term::Arithmetic(left, operator, right) => {
                let (left, right) = (self.column(left, columns), self.column(right, columns));
                Term::Arithmetic(Box::new(left), *operator, Box::new(right))
            }
            other => other.clone(),
        };
        Spanned { value, span: term.span }
    }
}

/// A variable by its name and index, as one name.
fn named(variable: &Variable) -> Term {
    let name = print_term(&Term::Variable(variable.clone(), 0)).into();
    Term::Variable(Variable { name, index: None }, 0)
}

/// What is unsafe in the conditions of a template, and too large.
pub(super) fn check_bodies(planner: &Planner<'_>, findings: &mut Findings<'_>) {
    let literals = planner.units.iter().filter(|unit| !unit.navigates).flat_map(|unit| &unit.bodies);
    let asked = literals.filter(|literals| {
        !planner.meanings.is_told(literals) && literals.iter().any(|literal| planner.may_be_unsafe(literal))
    });
    let rules: Vec<Rule> = asked.map(|literals| planner.meanings.body(planner.template, literals).0.rule).collect();
    for rule in &rules {
        if rule.head.arguments.len() > MAX_ARITY || rule.body.len() > MAX_BODY {
            let finding =
                findings.error(dyelog_datalog::codes::RULE_SIZE, rule.span, "too many conditions asked together");
            finding.notes.push(format!(
                "conditions that share open variables have at most {MAX_ARITY} bound ones and {MAX_BODY} literals"
            ));
            finding.hints.push("give parts a rule of their own".to_owned());
        }
    }
    if !rules.is_empty() {
        findings.list.extend(unsafe_bodies(planner.program, facts::schema(), &rules));
    }
    let some = planner.units.iter().filter(|unit| unit.when == When::Some).nth(MOST_SOME);
    if let Some(literal) = some.and_then(|unit| unit.bodies.first()?.first()) {
        let finding = findings.error(dyelog_datalog::codes::RULE_SIZE, literal.span, "too many `some` in one template");
        finding.notes.push(format!("a template has at most {MOST_SOME} of them"));
    }
}

/// Conditions on some round that a template may have: a bit each.
const MOST_SOME: usize = u64::BITS as usize;

/// Whether a condition calculates with a fraction, which rules do and steps of a plan do not.
fn has_fraction(literal: &Spanned<Condition>) -> bool {
    condition_terms(&literal.value).iter().any(|term| matches!(term.value, Term::Float(_)))
}

/// Whether arithmetic has a wildcard in it.
fn has_wildcard(term: &Spanned<Term>) -> bool {
    match &term.value {
        Term::Wildcard => true,
        // No deeper than the parser allows.
        Term::Arithmetic(left, _, right) => has_wildcard(left) || has_wildcard(right),
        _ => false,
    }
}

/// Whether a value is a name.
pub(super) fn is_name(value: Value) -> bool {
    matches!(value, Value::Field(_, Field::Activity | Field::Service | Field::TaskName, _))
}

/// A task compares with a symbol by its name.
pub(super) fn by_name(value: Value) -> Value {
    match value {
        Value::Field(slot, Field::Task, 0) => Value::Field(slot, Field::TaskName, 0),
        other => other,
    }
}
