//! Conditions of templates: when they can be decided, and as which steps.

use std::sync::Arc;

use crate::datalog::ast::{Atom, Comparison, Condition, Operator, Spanned, Term};
use crate::diagnostic::Diagnostic;
use crate::tlc::codes;
use crate::tlc::pattern::{Findings, Solved, bad_index, condition_terms};
use crate::tlc::plan::{Edge, Expression, ExpressionPart, Field, KindTag, RelationArgument, Slot, Step, Value};
use crate::tlc::planner::{FUNCTIONAL_RELATIONS, Planner};

impl Planner<'_> {
    /// Emits the conditions whose variables are known; at the end, all that are left.
    pub(super) fn conditions(&mut self, findings: &mut Findings<'_>, end: bool) {
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
            Condition::Atom { negated: false, atom } if deciding(atom).is_some() => {
                atom.arguments.iter().take(deciding(atom).unwrap_or(0)).all(|argument| self.known(argument))
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
            Term::Integer(_) | Term::Float(_) | Term::Symbol(_) => true,
            Term::Wildcard => false,
            Term::Variable(variable, _) => {
                self.slot_of(&variable.name).is_some()
                    || self.scope.key(variable, self.in_round).is_some_and(|key| self.route.sites.contains_key(&key))
            }
            Term::Arithmetic(left, _, right) => self.known(left) && self.known(right),
        }
    }

    pub(super) fn slot_of(&self, name: &str) -> Option<Slot> {
        self.bound.iter().find(|bound| &*bound.node.name == name).map(|bound| bound.slot)
    }

    /// Emits a condition; says whether it may have made others ready.
    fn emit(&mut self, condition: &Spanned<Condition>, findings: &mut Findings<'_>) -> bool {
        let fraction = condition_terms(&condition.value).into_iter().find(|term| has_float(&term.value));
        if let Some(term) = fraction {
            findings
                .error(codes::NOT_LINEAR, term.span, "numbers with a fraction stand in rules only")
                .hints
                .push("write a rule with the number and ask its relation here".to_owned());
            return false;
        }
        match &condition.value {
            Condition::Compare(left, comparison, right) => {
                self.compare(left, *comparison, right);
                false
            }
            Condition::Atom { negated: false, atom } if deciding(atom).is_some() => {
                let arguments: Vec<Option<Solved>> = atom
                    .arguments
                    .iter()
                    .map(|argument| match &argument.value {
                        Term::Wildcard => Some(Solved::Wildcard),
                        Term::Symbol(name) => Some(Solved::Symbol(Arc::clone(name))),
                        _ => self.plain(argument),
                    })
                    .collect();
                let Some(arguments) = arguments.into_iter().collect::<Option<Vec<Solved>>>() else {
                    findings.error(
                        codes::NOT_LINEAR,
                        condition.span,
                        "only a variable plus or minus a constant can stand here",
                    );
                    return false;
                };
                let Some(thread) = self.value(&arguments[0]) else { return false };
                let slot = self.new_slot(&atom.relation.value);
                let (edge, kind) = match &*atom.relation.value {
                    "begins" => (Edge::First(thread), KindTag::Begin),
                    "ends" => (Edge::Last(thread), KindTag::End),
                    _ => {
                        let Some(position) = self.value(&arguments[1]) else { return false };
                        (Edge::Accepted(thread, position), KindTag::Begin)
                    }
                };
                self.steps.push(Step::Go { to: slot, edge, kind, consumed: false });
                let fields: &[Field] =
                    if matches!(edge, Edge::Accepted(..)) { &[Field::Thread] } else { &[Field::Task, Field::Counter] };
                for (field, argument) in fields.iter().zip(&arguments[arguments.len() - fields.len()..]) {
                    self.unify(slot, *field, argument);
                }
                true
            }
            Condition::Atom { negated, atom } => {
                let arguments = atom.arguments.iter().map(|argument| self.relation_argument(argument)).collect();
                let meant = findings.scopes.relation(&atom.relation);
                let relation =
                    meant.map_or_else(|| Arc::clone(&atom.relation.value), |meant| findings.scopes.shown(meant).into());
                self.steps.push(Step::Holds { negated: *negated, relation, arguments });
                false
            }
            Condition::NotStarts { template, node } => {
                let slot = self.slot_of(&node.value).expect("a condition is emitted when its node is bound");
                match self.program.templates.iter().position(|other| other.name.value == template.value) {
                    Some(number) => self.steps.push(Step::NotStarts(number as u16, slot)),
                    None if self.program.lost.may_define(&template.value) => {}
                    None => {
                        let place = findings.place(template.span);
                        let message = format!("there is no template `{}`", template.value);
                        let names = self.program.templates.iter().map(|other| &*other.name.value);
                        let finding =
                            Diagnostic::error(codes::STARTS, place, message).with_similar(&template.value, names);
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
                let symbol = matches!(other.value, Term::Symbol(_)) || planner.term_value(other).is_some_and(is_name);
                Some(if symbol { by_name(value) } else { value })
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
                let names = self.route.sites.keys().map(|(name, _)| &**name);
                findings.unbound(&variable.name, term.span, self.pattern, names);
            }
        }
        if let Condition::NotStarts { node, .. } = &condition.value {
            let place = findings.place(node.span);
            let message = format!("the template has no node `{}`", node.value);
            let names = self.pattern.nodes.iter().map(|other| &*other.name);
            let finding = Diagnostic::error(codes::UNBOUND, place, message).with_similar(&node.value, names);
            findings.list.push(finding);
        }
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

/// How many arguments of a relation that is navigation decide the others.
fn deciding(atom: &Atom) -> Option<usize> {
    let this =
        |relation: &&(&str, usize, usize)| *relation.0 == *atom.relation.value && relation.1 == atom.arguments.len();
    FUNCTIONAL_RELATIONS.iter().find(this).map(|relation| relation.2)
}

fn has_float(term: &Term) -> bool {
    match term {
        Term::Float(_) => true,
        Term::Arithmetic(left, _, right) => has_float(&left.value) || has_float(&right.value),
        _ => false,
    }
}
