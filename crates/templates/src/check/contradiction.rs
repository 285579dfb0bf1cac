//! Conditions that can never hold together: a template that never matches is a slip.
//!
//! Comparisons of numbers are bounds on differences, which are kept closed under addition; equal tasks have one name. Of products and
//! remainders only the range is looked into, of relations what the facts say of a node, and that a literal and its opposite exclude
//! each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::codes;
use crate::facts::KINDS;
use crate::pattern::{At, Findings, Key, Node, Pattern, Scope, Solved, condition_terms};
use crate::plan::{Field, KindTag};
use dyelog_datalog::ast::{Atom, Comparison, Condition, Operator, Quantifier, Spanned, Template, Term, Variable};
use dyelog_datalog::check::{Range, divides_by_zero};
use dyelog_datalog::syntax::print_condition;

/// Variables that are looked at together.
const MAX_VARIABLES: usize = 96;
/// Conditions that are.
const MAX_CONDITIONS: usize = 200;

/// Tells of conditions that exclude each other, or that never hold.
pub fn contradictions(template: &Template, pattern: &Pattern, findings: &mut Findings<'_>) {
    let scope = Scope::of(template);
    let mut once: Vec<&Spanned<Condition>> = Vec::new();
    let mut every: Vec<&Spanned<Condition>> = Vec::new();
    let mut some: Vec<Vec<&Spanned<Condition>>> = Vec::new();
    let at = |condition: &Spanned<Condition>| furthest(&condition.value, &scope);
    for condition in &template.conditions {
        match &condition.value {
            Condition::Rounds { quantifier: Quantifier::Some, body, .. } => some.push(body.iter().collect()),
            Condition::Rounds { body, .. } => every.extend(body),
            _ if at(condition).is_some() => every.push(condition),
            _ => once.push(condition),
        }
    }
    // Of the last round nothing is said that needs one after it, and without rounds nothing at all.
    every.retain(|condition| at(condition) != Some(At::Next) || has_next(&condition.value, &scope, pattern));
    if pattern.round.as_ref().is_none_or(|round| round.min == 0) && some.is_empty() {
        every.clear();
    }
    let mut known = Known::of(pattern, &scope);
    in_vain(template, &known, &scope, findings);
    if !known.is_possible() {
        let message = format!("template `{}` can never match", template.name.value);
        let finding = findings.error(codes::NEVER, template.name.span, message);
        finding
            .notes
            .push("no node has such counters: they begin at 1, and a begin is the first of its thread".to_owned());
        return;
    }
    let all = || once.iter().chain(&every).chain(some.iter().flatten()).copied();
    for condition in all() {
        if condition_terms_whole(&condition.value).into_iter().any(|term| divides_by_zero(&term.value)) {
            let message = format!("template `{}` can never match", template.name.value);
            let finding = findings.error(codes::NEVER, condition.span, message);
            finding.label.push_str("this cannot hold");
            finding.notes.push("division by 0 has no value".to_owned());
            return;
        }
    }
    for condition in once.iter().copied().chain(every.iter().copied()).take(MAX_CONDITIONS) {
        if !known.add(condition, &scope, pattern) {
            report(template, condition, findings);
            return;
        }
    }
    for body in some {
        let mut known = known.clone();
        if let Some(condition) =
            body.into_iter().take(MAX_CONDITIONS).find(|condition| !known.add(condition, &scope, pattern))
        {
            report(template, condition, findings);
            return;
        }
    }
}

fn report(template: &Template, condition: &Spanned<Condition>, findings: &mut Findings<'_>) {
    let message = format!("template `{}` can never match", template.name.value);
    let text = print_condition(&condition.value);
    let finding = findings.error(codes::NEVER, condition.span, message);
    finding.label.push_str("this cannot hold");
    finding.notes.push(format!("nothing fits `{text}` together with the nodes and the conditions before it"));
}

/// Warns of comparisons that the nodes alone make true.
fn in_vain(template: &Template, known: &Known, scope: &Scope, findings: &mut Findings<'_>) {
    let mut open: Vec<&Spanned<Condition>> = template.conditions.iter().rev().collect();
    let mut looked_at = 0;
    while let Some(condition) = open.pop() {
        looked_at += 1;
        match &condition.value {
            Condition::Rounds { body, .. } => open.extend(body.iter().rev()),
            Condition::Compare(left, comparison, right) if looked_at <= MAX_CONDITIONS => {
                if known.clone().compare(&left.value, opposite(*comparison), &right.value, scope) {
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

/// The terms of a condition, arithmetic as one.
fn condition_terms_whole(condition: &Condition) -> Vec<&Spanned<Term>> {
    match condition {
        Condition::Compare(left, _, right) => vec![left, right],
        Condition::Atom { atom, .. } => atom.arguments.iter().collect(),
        _ => Vec::new(),
    }
}

/// Whether nodes of each round have what a condition says of the next one, so that it is said of the last round too.
fn has_next(condition: &Condition, scope: &Scope, pattern: &Pattern) -> bool {
    let terms = || pattern.round.iter().flat_map(|round| &round.nodes).flat_map(Node::terms);
    condition_terms(condition).into_iter().all(|term| {
        let Term::Variable(variable, _) = &term.value else { return true };
        let Some(key) = scope.key(variable, true).filter(|key| key.1 == At::Next) else { return true };
        terms().any(|(_, term)| matches!(term, Solved::Variable(own, _) if *own == key))
    })
}

/// Whether a condition speaks of a round, and of the next one.
fn furthest(condition: &Condition, scope: &Scope) -> Option<At> {
    let of_rounds = condition_terms(condition).into_iter().filter_map(|term| match &term.value {
        Term::Variable(variable, _) => scope.key(variable, true).map(|key| key.1),
        _ => None,
    });
    of_rounds.filter(|at| matches!(at, At::Here | At::Next)).max()
}

/// What sort of value a variable has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Number,
    /// A task: equal ones have one name, others may have it too.
    Task,
    Name,
    Node,
    /// No node says: a number that may have a fraction, or anything that is only compared for equality.
    Open,
}

/// Bounds are kept in so many parts of one, more than a circle of strict comparisons has: between numbers that may have a
/// fraction, being greater is being greater by one part, and between whole ones by all.
const PARTS: i128 = 1 << 20;

/// What is known of the variables of a template.
#[derive(Clone)]
struct Known {
    sorts: BTreeMap<Key, Sort>,
    numbers: BTreeMap<Key, usize>,
    /// How much a variable is more than another, at least, in parts; the first is 0.
    apart: Vec<Vec<Option<i128>>>,
    /// Which are whole numbers.
    whole: Vec<bool>,
    /// Variables that differ by more or less than a number.
    unequal: Vec<(usize, usize, i128)>,
    /// Variables and the strings that they are or are not.
    strings: Vec<(usize, Arc<str>, bool)>,
    /// Open variables that are the name of a task.
    names: Vec<(usize, usize)>,
    /// Open variables that are not.
    other_names: Vec<(usize, usize)>,
    atoms: Vec<String>,
}

impl Known {
    fn of(pattern: &Pattern, scope: &Scope) -> Self {
        let mut known = Self {
            sorts: BTreeMap::new(),
            numbers: BTreeMap::new(),
            apart: vec![vec![Some(0)]],
            whole: vec![true],
            unequal: Vec::new(),
            strings: Vec::new(),
            names: Vec::new(),
            other_names: Vec::new(),
            atoms: Vec::new(),
        };
        let nodes = || pattern.nodes.iter().chain(pattern.round.iter().flat_map(|round| &round.nodes));
        for node in nodes() {
            let at = if pattern.nodes.iter().any(|outer| outer.name == node.name) { At::Scalar } else { At::Here };
            known.sorts.insert((Arc::clone(&node.name), at), Sort::Node);
            for (field, term) in node.terms() {
                if let Solved::Variable(key, _) = term {
                    known.sorts.entry(key.clone()).or_insert(sort(field));
                }
            }
        }
        if let Some(count) = scope.count() {
            let key = (Arc::clone(count), At::Scalar);
            known.sorts.insert(key.clone(), Sort::Number);
            let least = pattern.round.as_ref().map_or(0, |round| round.min);
            if let Some(count) = known.number(&key) {
                known.at_least(count, 0, i128::from(least) * PARTS);
            }
        }
        let mut seen = Vec::new();
        for node in nodes() {
            known.counters(node);
            known.threads(node);
            let at = if pattern.nodes.iter().any(|outer| outer.name == node.name) { At::Scalar } else { At::Here };
            // Different names match different nodes.
            let Some(number) = known.number(&(Arc::clone(&node.name), at)) else { continue };
            // A second node of one name is told elsewhere.
            if seen.contains(&number) {
                continue;
            }
            known.unequal.extend(seen.iter().map(|other| (*other, number, 0)));
            seen.push(number);
        }
        let all: Vec<&Node> = nodes().collect();
        for (place, one) in all.iter().enumerate() {
            all[place + 1..]
                .iter()
                .filter(|other| other.name != one.name)
                .for_each(|other| known.different(one, other));
        }
        known
    }

    /// Two nodes of one thread, or of one task, have different counters there.
    fn different(&mut self, one: &Node, other: &Node) {
        let pairs = [
            (&one.thread, &other.thread, &one.position, &other.position),
            (&one.task, &other.task, &one.counter, &other.counter),
        ];
        for (line, same, counter, another) in pairs {
            if line == same
                && matches!(line, Solved::Variable(..))
                && let (Some((x, less)), Some((y, more))) = (self.solved(counter), self.solved(another))
                && x != y
            {
                self.unequal.push((x, y, more - less));
            }
        }
    }

    /// A term of a label as a variable plus a number.
    fn solved(&mut self, term: &Solved) -> Option<(usize, i128)> {
        match term {
            Solved::Integer(value) => Some((0, (*value).into())),
            Solved::Variable(key, offset) => Some((self.number(key)?, (*offset).into())),
            Solved::Wildcard | Solved::Symbol(_) => None,
        }
    }

    /// Both counters begin at 1.
    fn counters(&mut self, node: &Node) {
        for (field, term) in node.terms() {
            let (Field::Position | Field::Counter, Solved::Variable(key, offset)) = (field, term) else { continue };
            let Some(number) = self.number(key) else { continue };
            self.at_least(number, 0, (1 - i128::from(*offset)) * PARTS);
            if field == Field::Position && node.kind == KindTag::Begin {
                self.at_least(0, number, (i128::from(*offset) - 1) * PARTS);
            }
        }
    }

    /// No thread forks itself, or waits for itself.
    fn threads(&mut self, node: &Node) {
        if let (Solved::Variable(own, less), Solved::Variable(other, more)) = (&node.thread, &node.target)
            && let (Some(own), Some(other)) = (self.number(own), self.number(other))
        {
            self.unequal.push((own, other, i128::from(*more) - i128::from(*less)));
        }
    }

    /// The number of a variable; none beyond so many.
    fn number(&mut self, key: &Key) -> Option<usize> {
        if let Some(number) = self.numbers.get(key) {
            return Some(*number);
        }
        let number = self.apart.len();
        if number > MAX_VARIABLES {
            return None;
        }
        self.numbers.insert(key.clone(), number);
        self.apart.iter_mut().for_each(|row| row.push(None));
        self.apart.push(vec![None; number + 1]);
        self.apart[number][number] = Some(0);
        self.whole.push(self.sorts.get(key) != Some(&Sort::Open));
        Some(number)
    }

    /// `x - y >= least`, in parts; whether that can be.
    fn at_least(&mut self, x: usize, y: usize, least: i128) -> bool {
        for from in 0..self.apart.len() {
            for to in 0..self.apart.len() {
                if let (Some(before), Some(after)) = (self.apart[from][x], self.apart[y][to]) {
                    let mut bound = before.saturating_add(least).saturating_add(after);
                    if self.whole[from] && self.whole[to] {
                        bound = bound.saturating_add(PARTS - 1).div_euclid(PARTS).saturating_mul(PARTS);
                    }
                    if self.apart[from][to].is_none_or(|known| known < bound) {
                        self.apart[from][to] = Some(bound);
                    }
                }
            }
        }
        self.is_possible()
    }

    fn is_possible(&self) -> bool {
        let circles = (0..self.apart.len()).all(|one| self.apart[one][one].is_none_or(|bound| bound <= 0));
        let equal = |x: usize, y: usize, by: i128| {
            let by = by * PARTS;
            self.apart[x][y].is_some_and(|bound| bound >= by) && self.apart[y][x].is_some_and(|bound| bound >= -by)
        };
        let clash = |(x, name, is): &(usize, Arc<str>, bool), (y, other, other_is): &(usize, Arc<str>, bool)| {
            equal(*x, *y, 0) && if name == other { is != other_is } else { *is && *other_is }
        };
        let one_name = |(open, task): &(usize, usize), (other, another): &(usize, usize)| {
            equal(*open, *other, 0) && equal(*task, *another, 0)
        };
        circles
            && self.names.iter().all(|name| !self.other_names.iter().any(|other| one_name(name, other)))
            && self.unequal.iter().all(|(x, y, by)| !equal(*x, *y, *by))
            && self.strings.iter().all(|one| self.strings.iter().all(|other| !clash(one, other)))
    }

    /// Takes a condition in; whether it can hold.
    fn add(&mut self, condition: &Spanned<Condition>, scope: &Scope, pattern: &Pattern) -> bool {
        match &condition.value {
            Condition::Compare(left, comparison, right) => self.compare(&left.value, *comparison, &right.value, scope),
            Condition::Atom { negated, atom } => {
                if !self.of_node(*negated, atom, scope, pattern) {
                    return false;
                }
                let text = print_condition(&condition.value);
                let opposite = text.strip_prefix('!').map_or_else(|| format!("!{text}"), str::to_owned);
                let possible = !self.atoms.contains(&opposite);
                self.atoms.push(text);
                possible
            }
            _ => true,
        }
    }

    /// What the facts say of a node that the template matches; whether that can be.
    fn of_node(&mut self, negated: bool, atom: &Atom, scope: &Scope, pattern: &Pattern) -> bool {
        let Some(Term::Variable(variable, 0)) = atom.arguments.first().map(|term| &term.value) else { return true };
        let here = matches!(scope.key(variable, true), Some((_, At::Scalar | At::Here)));
        let nodes = pattern.nodes.iter().chain(pattern.round.iter().flat_map(|round| &round.nodes));
        let Some(node) = nodes.into_iter().find(|node| here && node.name == variable.name) else { return true };
        let argument = |column: usize| atom.arguments.get(column).map(|term| &term.value);
        let mut equal = |column: usize, label: &Solved| {
            let label = self.solved(label);
            let value = argument(column).and_then(|term| self.linear(term, scope));
            let (Some((x, less)), Some((y, more, _))) = (label, value) else { return true };
            self.numbers(x, Comparison::Equal, y, more - less)
        };
        match (&*atom.relation.value, atom.arguments.len()) {
            ("node", 1) => !negated,
            ("thread", 3) if !negated => equal(1, &node.thread) && equal(2, &node.position),
            ("task", 3) if !negated => equal(2, &node.counter) && self.task_name(argument(1), &node.task, scope),
            ("kind", 2) => {
                let Some(Term::Symbol(kind)) = argument(1) else { return true };
                // That a symbol is no kind at all is told elsewhere.
                let is_kind = KINDS.contains(&&**kind);
                node.kind == KindTag::Any || !is_kind || (node.kind.label() == &**kind) != negated
            }
            _ => true,
        }
    }

    /// That a term is the name of a node's task. Nodes of one name may be of several tasks, its instances.
    fn task_name(&mut self, term: Option<&Term>, task: &Solved, scope: &Scope) -> bool {
        let Some((task, _)) = self.solved(task).filter(|(number, _)| *number != 0) else { return true };
        match term {
            Some(Term::Symbol(name)) => self.strings.push((task, Arc::clone(name), true)),
            Some(term) => match self.linear(term, scope) {
                Some((open, 0, Sort::Open)) if open != 0 => self.names.push((open, task)),
                _ => {}
            },
            None => {}
        }
        self.is_possible()
    }

    /// The numbers of a variable, by the bounds that are known.
    fn range(&mut self, variable: &Variable, scope: &Scope) -> Range {
        let Some(key) = scope.key(variable, true) else { return Range::ANY };
        let sort = *self.sorts.entry(key.clone()).or_insert(Sort::Open);
        let Some(number) = self.number(&key).filter(|_| sort == Sort::Number) else { return Range::ANY };
        let bound = |bound: Option<i128>| bound.and_then(|bound| i64::try_from(bound.div_euclid(PARTS)).ok());
        let range = bound(self.apart[number][0]).map_or(Range::WHOLE, Range::from);
        bound(self.apart[0][number]).map_or(range, |least| range.and_up_to(least.saturating_neg()))
    }

    /// Whether no numbers compare so: by the ranges of products, quotients and remainders, or beside a fraction.
    fn out_of_range(&mut self, left: &Term, comparison: Comparison, right: &Term, scope: &Scope) -> bool {
        let mut ranges: Vec<(Variable, Range)> = Vec::new();
        let mut note = |term: &Term| {
            if let Term::Variable(variable, _) = term {
                ranges.push((variable.clone(), self.range(variable, scope)));
            }
        };
        parts(left, &mut note);
        parts(right, &mut note);
        let known = |variable: &Variable| {
            let found = ranges.iter().find(|(known, _)| known == variable);
            found.map_or(Range::ANY, |(_, range)| *range)
        };
        Range::of(left, &known).never(comparison, Range::of(right, &known))
    }

    fn compare(&mut self, left: &Term, comparison: Comparison, right: &Term, scope: &Scope) -> bool {
        if self.out_of_range(left, comparison, right, scope) {
            return false;
        }
        match (left, right) {
            (Term::Variable(..), Term::Float(number)) => self.beside_fraction(left, comparison, *number, scope),
            (Term::Float(number), Term::Variable(..)) => {
                self.beside_fraction(right, comparison.flipped(), *number, scope)
            }
            (Term::Symbol(left), Term::Symbol(right)) => match comparison {
                Comparison::Equal => left == right,
                Comparison::NotEqual => left != right,
                _ => true,
            },
            (Term::Symbol(name), other) | (other, Term::Symbol(name)) => {
                let Some((number, 0, _)) = self.linear(other, scope) else { return true };
                match comparison {
                    Comparison::Equal => self.strings.push((number, Arc::clone(name), true)),
                    Comparison::NotEqual => self.strings.push((number, Arc::clone(name), false)),
                    _ => return true,
                }
                self.is_possible()
            }
            _ => {
                let mut sum = Sum::default();
                if !self.add_term(left, 1, &mut sum, scope) || !self.add_term(right, -1, &mut sum, scope) {
                    return true;
                }
                // A task beside a name stands for its own; what is open beside one may be its name.
                let number = |sort: &Sort| matches!(sort, Sort::Number | Sort::Open);
                if let ([Sort::Task, Sort::Open] | [Sort::Open, Sort::Task], Comparison::NotEqual, 0) =
                    (&sum.sorts[..], comparison, sum.number)
                    && let [(one, _), (other, _)] =
                        sum.parts.iter().map(|(place, times)| (*place, *times)).collect::<Vec<_>>()[..]
                {
                    self.other_names.extend([(one, other), (other, one)]);
                    return self.is_possible();
                }
                if !sum.sorts.iter().all(number) && sum.sorts.iter().any(|sort| *sort != sum.sorts[0]) {
                    return true;
                }
                sum.parts.retain(|_, times| *times != 0);
                let parts: Vec<(usize, i128)> = sum.parts.into_iter().collect();
                match parts[..] {
                    [] => comparison.holds(sum.number, 0),
                    [(x, 1)] => self.numbers(x, comparison, 0, -sum.number),
                    [(x, -1)] => self.numbers(0, comparison, x, -sum.number),
                    [(x, 1), (y, -1)] | [(y, -1), (x, 1)] => self.numbers(x, comparison, y, -sum.number),
                    _ => true,
                }
            }
        }
    }

    /// Adds a term so many times; whether it is a sum of variables and numbers. No deeper than the parser allows.
    fn add_term(&mut self, term: &Term, times: i128, sum: &mut Sum, scope: &Scope) -> bool {
        if let Term::Arithmetic(left, operator @ (Operator::Add | Operator::Subtract), right) = term {
            let other = if *operator == Operator::Add { times } else { -times };
            return self.add_term(&left.value, times, sum, scope) && self.add_term(&right.value, other, sum, scope);
        }
        let Some((variable, number, sort)) = self.linear(term, scope) else { return false };
        sum.number += times * number;
        sum.sorts.push(sort);
        if variable != 0 {
            *sum.parts.entry(variable).or_default() += times;
        }
        true
    }

    /// A variable beside a number with a fraction: of a whole one, that is a bound of whole numbers.
    fn beside_fraction(&mut self, term: &Term, comparison: Comparison, number: f64, scope: &Scope) -> bool {
        let Some((x, more, Sort::Number)) = self.linear(term, scope) else { return true };
        if number.abs() > FAR || comparison == Comparison::NotEqual {
            return true;
        }
        let (below, above) = (number.floor() as i128, number.ceil() as i128);
        match comparison {
            Comparison::Less => self.numbers(x, Comparison::Less, 0, above - more),
            Comparison::LessOrEqual => self.numbers(x, Comparison::LessOrEqual, 0, below - more),
            Comparison::Greater => self.numbers(x, Comparison::Greater, 0, below - more),
            Comparison::GreaterOrEqual => self.numbers(x, Comparison::GreaterOrEqual, 0, above - more),
            _ => below == above && self.numbers(x, Comparison::Equal, 0, below - more),
        }
    }

    /// `x ? y + by`
    fn numbers(&mut self, x: usize, comparison: Comparison, y: usize, by: i128) -> bool {
        let more = if self.whole[x] && self.whole[y] { PARTS } else { 1 };
        let parts = by * PARTS;
        match comparison {
            Comparison::Equal => self.at_least(x, y, parts) && self.at_least(y, x, -parts),
            Comparison::NotEqual => {
                self.unequal.push((x, y, by));
                self.is_possible()
            }
            Comparison::Less => self.at_least(y, x, more - parts),
            Comparison::LessOrEqual => self.at_least(y, x, -parts),
            Comparison::Greater => self.at_least(x, y, parts + more),
            Comparison::GreaterOrEqual => self.at_least(x, y, parts),
        }
    }

    /// A term as a variable plus a number; none where it is something else.
    fn linear(&mut self, term: &Term, scope: &Scope) -> Option<(usize, i128, Sort)> {
        match term {
            Term::Integer(value) => Some((0, (*value).into(), Sort::Number)),
            Term::Variable(variable, offset) => {
                let key = scope.key(variable, true)?;
                let sort = *self.sorts.entry(key.clone()).or_insert(Sort::Open);
                Some((self.number(&key)?, (*offset).into(), sort))
            }
            _ => None,
        }
    }
}

/// Numbers with a fraction that are looked at are not further from 0.
const FAR: f64 = 1e15;

/// Calls `found` with the parts of a term that are no arithmetic. No deeper than the parser allows.
fn parts(term: &Term, found: &mut impl FnMut(&Term)) {
    match term {
        Term::Arithmetic(left, _, right) => {
            parts(&left.value, found);
            parts(&right.value, found);
        }
        term => found(term),
    }
}

/// A sum of variables, so many times each, and a number.
#[derive(Default)]
struct Sum {
    parts: BTreeMap<usize, i128>,
    number: i128,
    sorts: Vec<Sort>,
}

fn sort(field: Field) -> Sort {
    match field {
        Field::Thread | Field::Position | Field::Target | Field::Counter => Sort::Number,
        Field::Task | Field::TaskName => Sort::Task,
        Field::Activity | Field::Service => Sort::Name,
        Field::Node => Sort::Node,
    }
}
