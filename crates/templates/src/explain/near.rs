//! Which literal of a condition fails, and how near the rules of its relation come.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::explain::Study;
use crate::explain::attempt::{Attempt, Why};
use crate::facts::{GraphFacts, schema};
use crate::matcher::Argument;
use crate::plan::{Field, Plan, RelationArgument, Step};
use dyelog_datalog::ast::{Condition, Rule, Span, Spanned, Term};
use dyelog_datalog::base::Type;
use dyelog_datalog::eval::{Evaluator, Limits, Miss};
use dyelog_datalog::syntax::{print_condition, print_rule};
use dyelog_datalog::value::Value;
use dyelog_diagnostic::names::Name;
use dyelog_trace::NodeId;

/// How many rules are followed one into another.
const DEPTH: usize = 8;
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
pub fn nearest(study: &Study<'_>, plan: &Plan, attempt: &Attempt) -> Vec<Nearest> {
    let Some(failure) = &attempt.failure else { return Vec::new() };
    let Some(step) = failure.step_of(plan) else { return Vec::new() };
    let (step, arguments) = match (step, &failure.why) {
        (step, Why::Relation(arguments)) => (step, arguments),
        (Step::Round(condition) | Step::Rounds(condition), Why::OfRound { step, why, .. }) => {
            match (condition.steps.get(*step), &**why) {
                (Some(step), Why::Relation(arguments)) => (step, arguments),
                _ => return Vec::new(),
            }
        }
        _ => return Vec::new(),
    };
    let (Step::Holds { negated: false, relation, arguments: written }, Some(rules)) = (step, study.rules.relations())
    else {
        return Vec::new();
    };
    let facts = GraphFacts::new(study.toeg, study.names);
    let evaluator = Evaluator::with_limits(rules, &facts, LIMITS);
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
    let mut chain = Chain { study, evaluator, found: Vec::new() };
    match plan.body(relation) {
        Some(body) => chain.body(&body.rule, &row, &nodes),
        None => chain.relation(relation, row, nodes),
    }
    chain.found
}

/// A relation with what is known of its columns, and which of them are nodes.
type Asked = (Arc<str>, Vec<Option<Value>>, Vec<bool>);

struct Chain<'c, 'a> {
    study: &'c Study<'a>,
    evaluator: Evaluator<'c>,
    found: Vec<Nearest>,
}

impl Chain<'_, '_> {
    /// A template's own literals, then the relation of the one that fails.
    fn body(&mut self, rule: &Rule, row: &[Option<Value>], nodes: &[bool]) {
        let Ok(Some(miss)) = self.evaluator.nearest(&[rule], row) else { return };
        let next = self.take(rule, None, &miss, nodes);
        if let Some((relation, row, nodes)) = next {
            self.relation(&relation, row, nodes);
        }
    }

    /// The nearest rule of a relation, then of the relation that fails in it, and so on.
    fn relation(&mut self, relation: &str, row: Vec<Option<Value>>, nodes: Vec<bool>) {
        let (mut relation, mut row, mut nodes) = (Arc::<str>::from(relation), row, nodes);
        for _ in 0..DEPTH {
            let program = self.study.rules.program();
            let rules = program.rules.iter().filter(|rule| rule.head.relation.value == relation);
            let rules: Vec<&Rule> = rules.collect();
            let Ok(Some(miss)) = self.evaluator.nearest(&rules, &row) else { return };
            let rule = rules[miss.rule];
            let text = print_rule(&Rule { doc: String::new(), ..rule.clone() }).trim_end().to_owned();
            match self.take(rule, Some((text, rule.span)), &miss, &nodes) {
                Some(next) => (relation, row, nodes) = next,
                None => return,
            }
        }
    }

    /// Notes a miss; gives the relation of the literal that fails with what is known of its columns, if rules define it.
    fn take(&mut self, rule: &Rule, text: Option<(String, Span)>, miss: &Miss, nodes: &[bool]) -> Option<Asked> {
        let nodes = node_variables(rule, nodes);
        let failed = &rule.body[miss.failed].value;
        let bindings =
            miss.bindings.iter().map(|(name, value)| (Arc::clone(name), self.is(*value, nodes.contains(name))));
        let negated = matches!(failed, Condition::Atom { negated: true, .. });
        let nearest = Nearest {
            rule: text,
            passed: miss.passed,
            literals: rule.body.len(),
            fails: print_condition(failed),
            negated,
            bindings: bindings.collect(),
        };
        let again = self.found.contains(&nearest);
        self.found.push(nearest);
        let Condition::Atom { negated: false, atom } = failed else { return None };
        let of_rules = schema().get(&atom.relation.value).is_none();
        let row = self.evaluator.known_columns(&atom.arguments, &miss.bindings);
        let flags = atom.arguments.iter().map(|term| is_node(term, &nodes)).collect();
        (of_rules && !again).then(|| (Arc::clone(&atom.relation.value), row, flags))
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
