//! Which literal of a condition fails, and how near the rules of its relation come.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::explain::Study;
use crate::explain::attempt::{Attempt, Why};
use crate::facts::{GraphFacts, schema};
use crate::matcher::Argument;
use crate::plan::{Field, RelationArgument, TemplatePlan, TemplateStep};
use dyelog_datalog::ast::{Condition, Rule, Span, Spanned, Term};
use dyelog_datalog::base::Type;
use dyelog_datalog::eval::{Attempt as Reached, Evaluator, Limits};
use dyelog_datalog::syntax::{print_condition, print_rule};
use dyelog_datalog::value::Value;
use dyelog_diagnostic::names::Name;
use dyelog_trace::NodeId;

/// What the search may keep and look at; it gives up beyond that.
const LIMITS: Limits = Limits { rows: 200_000, steps: 5_000_000, bytes: 1 << 28 };

/// A value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Is {
    /// A node.
    Node(NodeId),
    /// A number.
    Number(i64),
    /// A name of the trace.
    Name(Name),
    /// A string that the trace does not have.
    Text(Arc<str>),
}

/// Literals of which one fails: of a template's condition, or of the nearest rule of the relation that failed before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// The rule, in one line; none for the template's own condition.
    pub rule: Option<(String, Span)>,
    /// How many of the literals hold.
    pub passed: usize,
    /// How many there are.
    pub literals: usize,
    /// The literal that fails.
    pub fails: String,
    /// Whether it fails because its relation holds.
    pub negated: bool,
    /// What the variables are then.
    pub bindings: Vec<(Arc<str>, Is)>,
}

/// Why a condition that asks relations fails; nothing where it is another step that failed.
pub fn nearest(study: &Study<'_>, plan: &TemplatePlan, attempt: &Attempt) -> Vec<Nearest> {
    let Some(failure) = &attempt.failure else { return Vec::new() };
    let Some(step) = failure.step_of(plan) else { return Vec::new() };
    let (step, arguments) = match (step, &failure.why) {
        (step, Why::Relation(arguments)) => (step, arguments),
        (TemplateStep::Round(condition) | TemplateStep::Rounds(condition), Why::OfRound { step, why, .. }) => {
            match (condition.steps.get(*step), &**why) {
                (Some(step), Why::Relation(arguments)) => (step, arguments),
                _ => return Vec::new(),
            }
        }
        _ => return Vec::new(),
    };
    let (TemplateStep::Holds { negated: false, relation, arguments: written }, Some(rules)) =
        (step, study.rules.relations())
    else {
        return Vec::new();
    };
    let facts = GraphFacts::new(study.toeg, study.names);
    let mut evaluator = Evaluator::with_limits(rules, &facts, LIMITS);
    let mut row = Vec::new();
    for argument in arguments {
        row.push(match argument {
            None => None,
            Some(Argument::Integer(number)) => Value::integer(*number),
            Some(Argument::Name(name)) => Some(Value::symbol(*name)),
            Some(Argument::Unknown) => return Vec::new(),
        });
    }
    let nodes = written
        .iter()
        .map(|argument| matches!(argument, RelationArgument::Integer(crate::plan::Value::Field(_, Field::Node, _))));
    let nodes: Vec<bool> = nodes.collect();
    let of_conditions = plan.body(relation);
    if of_conditions.is_some() && row.contains(&None) {
        return Vec::new(); // such a relation can be asked for whole rows alone
    }
    let Some(asked) = rules.relation(relation) else { return Vec::new() };
    let Ok(followed) = evaluator.why_not_followed(asked, &row) else { return Vec::new() };
    let mut chain = Chain { study, evaluator, nodes, found: Vec::new() };
    for (place, denied) in followed.iter().enumerate() {
        let Some(attempt) = denied.why.nearest_attempt() else { break };
        let conditions = of_conditions.filter(|_| place == 0).map(|body| &body.rule);
        if !chain.take(conditions, attempt) {
            break;
        }
    }
    chain.found
}

struct Chain<'c, 'a> {
    study: &'c Study<'a>,
    evaluator: Evaluator<'c>,
    /// Which columns of the row that is looked at are nodes.
    nodes: Vec<bool>,
    found: Vec<Nearest>,
}

impl Chain<'_, '_> {
    /// Notes how far a rule got, a template's own literals or one of the file; whether a literal of it failed.
    fn take(&mut self, conditions: Option<&Rule>, attempt: &Reached) -> bool {
        let Some(literal) = attempt.failure.literal() else { return false };
        let Some(rule) = conditions.or_else(|| self.study.rules.program().rules.get(attempt.rule)) else {
            return false;
        };
        let text = || (print_rule(&Rule { doc: String::new(), ..rule.clone() }).trim_end().to_owned(), rule.span);
        let nodes = node_variables(rule, &self.nodes);
        let failed = &rule.body[literal].value;
        let bindings = attempt.bindings.iter();
        let mut bindings: Vec<(Arc<str>, Is)> =
            bindings.map(|(name, value)| (Arc::clone(name), self.is(*value, nodes.contains(name)))).collect();
        bindings.sort_by(|(one, _), (other, _)| one.cmp(other));
        self.found.push(Nearest {
            rule: conditions.is_none().then(text),
            passed: attempt.held,
            literals: attempt.literals,
            fails: print_condition(failed),
            negated: matches!(failed, Condition::Atom { negated: true, .. }),
            bindings,
        });
        if let Condition::Atom { atom, .. } = failed {
            self.nodes = atom.arguments.iter().map(|term| is_node(term, &nodes)).collect();
        }
        true
    }

    fn is(&self, value: Value, node: bool) -> Is {
        match (value.as_integer(), value.as_symbol()) {
            (Some(number), _) => {
                match u32::try_from(number).ok().filter(|id| node && (*id as usize) < self.study.toeg.len()) {
                    Some(node) => Is::Node(node),
                    None => Is::Number(number),
                }
            }
            (None, Some(name)) => Is::Name(name),
            (None, None) => Is::Text(self.evaluator.own_text(value).unwrap_or_default().into()),
        }
    }
}

/// The variables of a rule that are nodes: by the columns of the facts, and by what is known of its head.
fn node_variables(rule: &Rule, head: &[bool]) -> BTreeSet<Arc<str>> {
    let mut nodes = BTreeSet::new();
    let mut take = |term: &Spanned<Term>| {
        if let Term::Variable(variable, 0) = &term.value {
            nodes.insert(Arc::clone(&variable.name));
        }
    };
    rule.head.arguments.iter().zip(head).filter(|(_, node)| **node).for_each(|(term, _)| take(term));
    for literal in &rule.body {
        let Condition::Atom { atom, .. } = &literal.value else { continue };
        let Some(base) = schema().get(&atom.relation.value) else { continue };
        let columns = schema().columns(base).1.iter();
        columns.zip(&atom.arguments).filter(|(kind, _)| **kind == Type::Node).for_each(|(_, term)| take(term));
    }
    nodes
}

fn is_node(term: &Spanned<Term>, nodes: &BTreeSet<Arc<str>>) -> bool {
    matches!(&term.value, Term::Variable(variable, 0) if nodes.contains(&variable.name))
}
