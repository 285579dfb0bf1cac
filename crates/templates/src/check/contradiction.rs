//! Conditions that can never hold together: a template that never matches is a slip.
//!
//! A template is one rule body: what the facts say of its nodes, and its conditions. Whether that body can hold is found as for rules.

use crate::check::body::Body;
use crate::codes;
use crate::pattern::{At, Findings, Node, Pattern, Scope, Solved, condition_terms};
use dyelog_datalog::ast::{Comparison, Condition, Operator, Quantifier, Spanned, Template, Term};
use dyelog_datalog::check::{Bodies, Holding, without_value};
use dyelog_datalog::syntax::print_condition;

/// Conditions that are looked at together.
const MAX_CONDITIONS: usize = 200;

/// Tells of conditions that exclude each other, or that never hold.
pub fn contradictions(template: &Template, pattern: &Pattern, bodies: &Bodies<'_>, findings: &mut Findings<'_>) {
    if let Some([one, other]) = one_place(pattern) {
        let message = format!("template `{}` can never match", template.name.value);
        let finding = findings.error(codes::NEVER, other.span, message);
        finding.label.push_str("this cannot hold");
        finding.notes.push(format!(
            "`{}` and `{}` have one place in a thread or task, where there is one node; each name matches a node of its own",
            one.name, other.name
        ));
        return;
    }
    let scope = Scope::of(template);
    let of_nodes = Body::new(template, pattern, &scope, At::Here);
    let said_by_nodes = of_nodes.conditions();
    if bodies.contradiction(&said_by_nodes).is_some() {
        let message = format!("template `{}` can never match", template.name.value);
        let finding = findings.error(codes::NEVER, template.name.span, message);
        finding
            .notes
            .push("no node has such counters: they begin at 1, and a begin is the first of its thread".to_owned());
        return;
    }
    in_vain(template, &of_nodes, &bodies.holding(&said_by_nodes), findings);
    let asked = Asked::of(template, pattern, &scope);
    for condition in asked.all() {
        if let Some(reason) = terms(&condition.value).into_iter().find_map(|term| without_value(&term.value)) {
            let message = format!("template `{}` can never match", template.name.value);
            let finding = findings.error(codes::NEVER, condition.span, message);
            finding.label.push_str("this cannot hold");
            finding.notes.push(reason.to_owned());
            return;
        }
    }
    for (round, conditions) in asked.together() {
        let mut body = Body::new(template, pattern, &scope, round);
        conditions.iter().take(MAX_CONDITIONS).for_each(|condition| body.add(condition));
        let Some(found) = bodies.contradiction(&body.conditions()) else { continue };
        // The places of nodes tell less than those of conditions.
        let told = conditions.iter().rev().find(|condition| found.places.contains(&condition.span));
        let message = format!("template `{}` can never match", template.name.value);
        let finding = findings.error(codes::NEVER, told.map_or(template.name.span, |told| told.span), message);
        finding.label.push_str("this cannot hold");
        if let Some(told) = told {
            let text = print_condition(&told.value);
            finding.notes.push(format!("nothing fits `{text}` together with the nodes and the other conditions"));
        }
        return;
    }
}

/// Two nodes that say of themselves that they are one: the same counter in the same thread or task.
fn one_place(pattern: &Pattern) -> Option<[&Node; 2]> {
    let known = |term: &Solved| !matches!(term, Solved::Wildcard);
    let same = |one: &Node, other: &Node| {
        let in_thread = one.thread == other.thread && one.position == other.position;
        let in_task = one.task == other.task && one.counter == other.counter;
        (in_thread && known(&one.thread) && known(&one.position))
            || (in_task && matches!(one.task, Solved::Variable(..)) && known(&one.counter))
    };
    let of = |nodes: &[Node]| -> Option<[usize; 2]> {
        (0..nodes.len()).find_map(|place| {
            let further =
                nodes[..place].iter().position(|one| one.name != nodes[place].name && same(one, &nodes[place]));
            further.map(|one| [one, place])
        })
    };
    let rounds = pattern.rounds.iter().map(|round| &*round.nodes);
    std::iter::once(&*pattern.nodes)
        .chain(rounds)
        .find_map(|nodes| of(nodes).map(|places| places.map(|place| &nodes[place])))
}

/// The conditions of a template by what they speak of.
struct Asked<'t> {
    once: Vec<&'t Spanned<Condition>>,
    every: Vec<&'t Spanned<Condition>>,
    some: Vec<Vec<&'t Spanned<Condition>>>,
    /// Whether they speak of the first round, or the last.
    ends: [bool; 2],
}

impl<'t> Asked<'t> {
    fn of(template: &'t Template, pattern: &Pattern, scope: &Scope) -> Self {
        let mut asked = Self { once: Vec::new(), every: Vec::new(), some: Vec::new(), ends: [false; 2] };
        let speaks = |condition: &Condition, of: At| keys(condition, scope).any(|at| at == of);
        for condition in &template.conditions {
            // Of the first round, it is known which it is.
            asked.ends[0] |= speaks(&condition.value, At::First) || names_index(&condition.value, scope);
            asked.ends[1] |= speaks(&condition.value, At::Last) || speaks(&condition.value, At::After);
            let of_rounds = names_index(&condition.value, scope)
                || keys(&condition.value, scope)
                    .any(|at| matches!(at, At::Here | At::Next | At::Further(_) | At::Across(..)));
            match &condition.value {
                Condition::Rounds { quantifier: Quantifier::Some, body, .. } => {
                    asked.some.push(body.iter().collect());
                }
                Condition::Rounds { body, .. } => asked.every.extend(body),
                _ if of_rounds => asked.every.push(condition),
                _ => asked.once.push(condition),
            }
        }
        // Of the last round nothing is said that needs one after it, and without rounds nothing at all.
        let further = |condition: &Condition| keys(condition, scope).any(|at| matches!(at, At::Further(_)));
        asked.every.retain(|condition| {
            !further(&condition.value)
                && (!speaks(&condition.value, At::Next) || has_next(&condition.value, scope, pattern))
        });
        match pattern.rounds.last() {
            None if asked.some.is_empty() => asked.every.clear(),
            Some(last) if last.min == 0 => {
                let of_last = |condition: &Spanned<Condition>| is_of(&condition.value, scope, last.number);
                if !asked.some.iter().flatten().any(|condition| of_last(condition)) {
                    asked.every.retain(|condition| !of_last(condition));
                }
            }
            _ => {}
        }
        asked
    }

    fn all(&self) -> impl Iterator<Item = &'t Spanned<Condition>> {
        self.once.iter().chain(&self.every).chain(self.some.iter().flatten()).copied()
    }

    /// Conditions that must hold together, with the round that those on rounds speak of.
    fn together(&self) -> Vec<(At, Vec<&'t Spanned<Condition>>)> {
        let always: Vec<_> = self.once.iter().chain(&self.every).copied().collect();
        let mut sets = vec![(At::Here, always.clone())];
        let rounds = !self.every.is_empty();
        sets.extend((rounds && self.ends[0]).then(|| (At::First, always.clone())));
        sets.extend((rounds && self.ends[1]).then(|| (At::Last, always.clone())));
        sets.extend(self.some.iter().map(|some| (At::Here, always.iter().chain(some).copied().collect())));
        sets
    }
}

/// What the indices of a condition's variables say.
fn keys<'c>(condition: &'c Condition, scope: &'c Scope) -> impl Iterator<Item = At> + 'c {
    condition_terms(condition).into_iter().filter_map(|term| match &term.value {
        Term::Variable(variable, _) => scope.key(variable).map(|key| key.1),
        _ => None,
    })
}

/// Whether a condition speaks of a round of a sequence that is at hand.
fn is_of(condition: &Condition, scope: &Scope, sequence: usize) -> bool {
    condition_terms(condition).into_iter().any(|term| {
        let Term::Variable(variable, _) = &term.value else { return false };
        let index = variable.index.is_none() && scope.with_index(&variable.name) == Some(sequence);
        index || scope.key(variable).is_some_and(|key| scope.at_hand(&key) == Some(sequence))
    })
}

/// Whether a condition speaks of the number of a round.
fn names_index(condition: &Condition, scope: &Scope) -> bool {
    condition_terms(condition).into_iter().any(|term| {
        matches!(&term.value, Term::Variable(variable, _)
            if variable.index.is_none() && scope.with_index(&variable.name).is_some())
    })
}

/// Whether nodes of each round have what a condition says of the next one, so that it is said of the last round too.
fn has_next(condition: &Condition, scope: &Scope, pattern: &Pattern) -> bool {
    let terms = || pattern.of_rounds().flat_map(Node::terms);
    condition_terms(condition).into_iter().all(|term| {
        let Term::Variable(variable, _) = &term.value else { return true };
        let Some(key) = scope.key(variable).filter(|key| key.1 == At::Next) else { return true };
        terms().any(|(_, term)| matches!(term, Solved::Variable(own, _) if *own == key))
    })
}

/// Warns of comparisons that the nodes alone make true.
fn in_vain(template: &Template, of_nodes: &Body<'_>, holding: &Holding<'_>, findings: &mut Findings<'_>) {
    let mut open: Vec<&Spanned<Condition>> = template.conditions.iter().rev().collect();
    let mut looked_at = 0;
    while let Some(condition) = open.pop() {
        looked_at += 1;
        match &condition.value {
            Condition::Rounds { body, .. } => open.extend(body.iter().rev()),
            Condition::Compare(left, comparison, right) if looked_at <= MAX_CONDITIONS => {
                // Products may leave the range of numbers: then neither a comparison nor its opposite holds.
                if !(of_nodes.knows(&condition.value) && is_sum(&left.value) && is_sum(&right.value)) {
                    continue;
                }
                let opposite = Condition::Compare(left.clone(), opposite(*comparison), right.clone());
                if !holding.excludes(&of_nodes.comparisons(&Spanned { value: opposite, span: condition.span })) {
                    continue;
                }
                let message = format!("`{}` says nothing here", print_condition(&condition.value));
                let finding = findings.warning(dyelog_datalog::codes::IN_VAIN, condition.span, message);
                finding.notes.push("it holds for all nodes that match".to_owned());
                finding.hints.push("remove it, or write what is meant".to_owned());
            }
            _ => {}
        }
    }
}

fn opposite(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Equal => Comparison::NotEqual,
        Comparison::NotEqual => Comparison::Equal,
        Comparison::Less => Comparison::GreaterOrEqual,
        Comparison::GreaterOrEqual => Comparison::Less,
        Comparison::Greater => Comparison::LessOrEqual,
        Comparison::LessOrEqual => Comparison::Greater,
    }
}

/// Whether a term has no arithmetic but sums. No deeper than the parser allows.
fn is_sum(term: &Term) -> bool {
    match term {
        Term::Arithmetic(left, Operator::Add | Operator::Subtract, right) => {
            is_sum(&left.value) && is_sum(&right.value)
        }
        Term::Arithmetic(..) => false,
        _ => true,
    }
}

/// The terms of a condition, arithmetic as one.
fn terms(condition: &Condition) -> Vec<&Spanned<Term>> {
    match condition {
        Condition::Compare(left, _, right) => vec![left, right],
        Condition::Atom { atom, .. } => atom.arguments.iter().collect(),
        _ => Vec::new(),
    }
}
