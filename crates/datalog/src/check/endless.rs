//! Recursion that never ends: rules that turn every row of a relation into another one of it with a greater (or smaller)
//! number, and ask for nothing that could stop that.
//!
//! What is refused is certain: a row that such a rule takes gives endlessly many. The rule takes any row, or what it compares
//! goes on to hold: `X > 0` is no bound to an X that grows. Whatever might end otherwise (an upper bound, a negation, a
//! relation that gives the number) is left to the limits of evaluation.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;

use crate::ast::{Atom, Comparison, Condition, Rule, Span, Spanned, Term};
use crate::check::{Checker, condition_terms, variables};
use crate::codes;
use crate::syntax::print_condition;
use dyelog_diagnostic::Diagnostic;

/// Steps wider than this leave the range of numbers before many rows are made.
const WIDEST: i64 = 1 << 32;

/// A way of a number from a column to a column, by a rule that takes every row.
struct Way {
    from: (u32, usize),
    to: (u32, usize),
    /// What is added on the way.
    step: i64,
    span: Span,
    /// Comparisons of the rule that hold for all later rows once they held.
    idle: Vec<String>,
}

impl Checker<'_> {
    pub(super) fn endless(&mut self) {
        let mut ways = Vec::new();
        for rule in &self.program.rules {
            self.ways(rule, &mut ways);
        }
        let mut numbers: HashMap<(u32, usize), usize> = HashMap::new();
        let mut graph = DiGraph::<(), usize>::new();
        let mut nodes = Vec::new();
        for (number, way) in ways.iter().enumerate() {
            let mut node = |column| {
                *numbers.entry(column).or_insert_with(|| {
                    nodes.push(graph.add_node(()));
                    nodes.len() - 1
                })
            };
            let (from, to) = (node(way.from), node(way.to));
            graph.add_edge(nodes[from], nodes[to], number);
        }
        let mut reported = HashSet::new();
        for component in kosaraju_scc(&graph) {
            for number in growing(&graph, &component, &ways) {
                let way = &ways[number];
                if reported.insert(way.span) {
                    let name = self.scopes.shown(way.to.0);
                    let more = if way.step < 0 { "smaller" } else { "greater" };
                    let message = format!("this recursion of `{name}` never ends");
                    let idle = way.idle.iter().map(|text| format!("`{text}` bounds it on the other side only"));
                    let idle: Vec<String> = idle.collect();
                    self.error(codes::ENDLESS, way.span, message, |d| {
                        let d = d.with_note(format!(
                            "each row gives another one with a {more} number in column {}, and nothing in the body stops that",
                            way.to.1 + 1
                        ));
                        idle.into_iter().fold(d, Diagnostic::with_note).with_hint("bound the number, for instance by `X < 100`, or take it from a relation")
                    });
                }
            }
        }
    }

    /// The ways of numbers through a rule, if it takes every row of the relation that it recurs to.
    fn ways(&self, rule: &Rule, ways: &mut Vec<Way>) {
        let Some(head) = self.scopes.relation(&rule.head.relation) else { return };
        let Some(taken) = self.only_atom(rule) else { return };
        let Some(relation) = self.scopes.relation(&taken.atom.relation) else { return };
        let own = relation == head;
        // What a self-recursion leaves as it is holds for the next row as it did for this one.
        let unmoved = |name: &Arc<str>| {
            own && taken.columns.iter().enumerate().any(|(column, (variable, offset))| {
                let same =
                    |term: &Spanned<Term>| matches!(&term.value, Term::Variable(other, 0) if other.name == *name);
                variable.as_ref() == Some(name) && *offset == 0 && rule.head.arguments.get(column).is_some_and(same)
            })
        };
        let moved = |name: &Arc<str>| taken.moves(name) && !unmoved(name);
        let (moving, still): (Vec<_>, Vec<_>) =
            taken.rest.iter().copied().partition(|condition| mentions(condition, &moved));
        if !moving.iter().all(|condition| own && taken.goes_on(condition, &rule.head)) || (!own && !still.is_empty()) {
            return;
        }
        let idle: Vec<String> = moving.iter().map(|condition| print_condition(&condition.value)).collect();
        for (column, term) in rule.head.arguments.iter().enumerate() {
            let Term::Variable(variable, offset) = &term.value else { continue };
            if let Some((from, step)) = taken.way(&variable.name, *offset)
                && step.unsigned_abs() < WIDEST.unsigned_abs()
            {
                let idle = idle.clone();
                ways.push(Way { from: (relation, from), to: (head, column), step, span: rule.head.span, idle });
            }
        }
    }

    /// The atom of a body that recurs, where it is the only one and takes every row.
    fn only_atom<'r>(&self, rule: &'r Rule) -> Option<Taken<'r>> {
        let level = |name| self.scopes.relation(name).map(|relation| self.components[relation as usize]);
        let head = level(&rule.head.relation)?;
        let mut found = None;
        let (mut equations, mut rest) = (Vec::new(), Vec::new());
        for condition in &rule.body {
            match &condition.value {
                Condition::Atom { negated: false, atom } if level(&atom.relation) == Some(head) => {
                    if found.replace(atom).is_some() {
                        return None;
                    }
                }
                Condition::Compare(left, Comparison::Equal, right) => equations.push((left, right, condition)),
                _ => rest.push(condition),
            }
        }
        let atom = found?;
        let mut columns = Vec::new();
        for argument in &atom.arguments {
            columns.push(match &argument.value {
                Term::Wildcard => (None, 0),
                Term::Variable(variable, offset) => (Some(Arc::clone(&variable.name)), *offset),
                _ => return None,
            });
        }
        let mut seen = HashSet::new();
        if !columns.iter().filter_map(|(name, _)| name.as_ref()).all(|name| seen.insert(Arc::clone(name))) {
            return None;
        }
        let mut taken = Taken { atom, columns, given: HashMap::new(), rest };
        for (left, right, condition) in equations {
            if !taken.give(left, right) && !taken.give(right, left) {
                taken.rest.push(condition);
            }
        }
        Some(taken)
    }
}

/// A recursive atom that takes every row, and what the body makes of its columns.
struct Taken<'r> {
    atom: &'r Atom,
    /// The variable of each column, plus a number.
    columns: Vec<(Option<Arc<str>>, i64)>,
    /// Variables that equations give: another one plus a number.
    given: HashMap<Arc<str>, (Arc<str>, i64)>,
    /// The other literals.
    rest: Vec<&'r Spanned<Condition>>,
}

impl Taken<'_> {
    /// Takes `new = known + number` as what gives the new variable its value.
    fn give(&mut self, new: &Spanned<Term>, known: &Spanned<Term>) -> bool {
        let (Term::Variable(new, less), Term::Variable(known, more)) = (&new.value, &known.value) else { return false };
        if self.moves(&new.name) || !self.moves(&known.name) {
            return false;
        }
        let Some(step) = more.checked_sub(*less) else { return false };
        self.given.insert(Arc::clone(&new.name), (Arc::clone(&known.name), step));
        true
    }

    /// Whether a variable's value comes from the row.
    fn moves(&self, name: &Arc<str>) -> bool {
        self.given.contains_key(name) || self.columns.iter().any(|(column, _)| column.as_ref() == Some(name))
    }

    /// The column that a variable plus a number comes from, and what is added on the way.
    fn way(&self, name: &Arc<str>, offset: i64) -> Option<(usize, i64)> {
        let (mut name, mut step) = (name, offset);
        // Each equation gives a new variable of known ones, so that this ends.
        while let Some((before, more)) = self.given.get(name) {
            step = step.checked_add(*more)?;
            name = before;
        }
        let column = self.columns.iter().position(|(column, _)| column.as_ref() == Some(name))?;
        Some((column, step.checked_sub(self.columns[column].1)?))
    }
}

impl Taken<'_> {
    /// Whether a comparison that holds of a row holds of all that follow from it, since its sides move apart or together.
    fn goes_on(&self, condition: &Spanned<Condition>, head: &Atom) -> bool {
        let Condition::Compare(left, comparison, right) = &condition.value else { return false };
        let (Some(left), Some(right)) = (self.drift(&left.value, head), self.drift(&right.value, head)) else {
            return false;
        };
        match comparison {
            Comparison::Greater | Comparison::GreaterOrEqual => left >= right,
            Comparison::Less | Comparison::LessOrEqual => left <= right,
            Comparison::Equal | Comparison::NotEqual => left == right,
        }
    }

    /// How much a term grows from one row to the next; `None` where that is not the same each time.
    fn drift(&self, term: &Term, head: &Atom) -> Option<i64> {
        match term {
            Term::Integer(_) | Term::Float(_) | Term::Symbol(_) => Some(0),
            Term::Variable(variable, _) if !self.moves(&variable.name) => Some(0),
            Term::Variable(variable, _) => {
                let (column, _) = self.way(&variable.name, 0)?;
                let Term::Variable(next, offset) = &head.arguments.get(column)?.value else { return None };
                let (from, step) = self.way(&next.name, *offset)?;
                (from == column).then_some(step)
            }
            Term::Wildcard | Term::Arithmetic(..) => None,
        }
    }
}

/// Whether a condition mentions a variable of which that is true.
fn mentions(condition: &Spanned<Condition>, which: &dyn Fn(&Arc<str>) -> bool) -> bool {
    let mut found = false;
    condition_terms(std::slice::from_ref(condition), &mut |term| {
        variables(&term.value, &mut |name| found |= which(name));
    });
    match &condition.value {
        Condition::Aggregate { result, .. } => found || which(&result.value),
        _ => found,
    }
}

/// The ways within a component that do not fit together without growth: along some circle, a number grows.
fn growing(graph: &DiGraph<(), usize>, component: &[petgraph::graph::NodeIndex], ways: &[Way]) -> Vec<usize> {
    let within: HashSet<_> = component.iter().copied().collect();
    let mut height: HashMap<petgraph::graph::NodeIndex, i128> = HashMap::from([(component[0], 0)]);
    let mut open = vec![component[0]];
    let mut found = Vec::new();
    let mut edges = Vec::new();
    while let Some(node) = open.pop() {
        for edge in graph.edges(node) {
            use petgraph::visit::EdgeRef;
            if !within.contains(&edge.target()) {
                continue;
            }
            edges.push((node, edge.target(), *edge.weight()));
            let above = height[&node] + i128::from(ways[*edge.weight()].step);
            height.entry(edge.target()).or_insert_with(|| {
                open.push(edge.target());
                above
            });
        }
    }
    for (from, to, number) in &edges {
        if height[from] + i128::from(ways[*number].step) != height[to] {
            found.push(*number);
        }
    }
    // The rule that changes the number is to be named, not one that hands it on.
    let changes = |number: &usize| ways[*number].step != 0;
    if !found.is_empty() && !found.iter().any(changes) {
        found = edges.iter().map(|(.., number)| *number).filter(changes).min().into_iter().collect();
    }
    found.retain(changes);
    found.sort_unstable();
    found
}
