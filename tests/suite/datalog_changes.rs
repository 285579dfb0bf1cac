//! What never changes a result: the order of rules and literals, copies of relations, parts of bodies as relations of
//! their own. And every row that does not hold has a reason.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dyelog::datalog::ast::{Atom, Condition, Program, Rule, Span, Spanned, Term, Variable};
use dyelog::datalog::eval::{Evaluator, Limits, compile};
use dyelog::datalog::syntax::print_rule;
use dyelog::datalog::value::Value;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::datalog::{Lists, graph, naive, program};

/// The rows of the relations `a` to `f`, and beside each how many rows it has with the first column known.
fn all_rows(program: &Program, facts: &Lists) -> BTreeMap<String, (BTreeSet<Vec<i64>>, Vec<usize>)> {
    let rules = compile(program, &facts.schema).unwrap_or_else(|errors| panic!("{errors:?}\n{}", text(program)));
    let limits = Limits { rows: 200_000, ..Limits::default() };
    let names = ["a", "b", "c", "d", "e", "f"];
    let of = |name: &str| {
        let relation = rules.relation(name).expect("it has rules");
        let query = |pattern: &[Option<Value>]| {
            Evaluator::with_limits(&rules, facts, limits).query(relation, pattern).expect("no limit is reached")
        };
        let rows = query(&[None, None]);
        let rows = rows.iter().map(|row| row.iter().map(|value| value.as_integer().expect("a number")).collect());
        let known = (0..9u32).map(|first| query(&[Some(Value::from(first)), None]).len()).collect();
        (rows.collect(), known)
    };
    names.iter().map(|name| ((*name).to_owned(), of(name))).collect()
}

fn text(program: &Program) -> String {
    program.rules.iter().map(print_rule).collect()
}

/// The same items in an order that the numbers give.
fn shuffled<T: Clone>(items: &[T], order: &[Index]) -> Vec<T> {
    let mut left = items.to_vec();
    let mut all = Vec::new();
    let mut order = order.iter().cycle();
    while !left.is_empty() {
        let place = order.next().map_or(0, |index| index.index(left.len()));
        all.push(left.remove(place));
    }
    all
}

fn reordered(program: &Program, order: &[Index]) -> Program {
    let mut changed = program.clone();
    changed.rules = shuffled(&program.rules, order);
    for rule in &mut changed.rules {
        rule.body = shuffled(&rule.body, order);
        for condition in &mut rule.body {
            if let Condition::Aggregate { body, .. } = &mut condition.value {
                *body = shuffled(body, order);
            }
        }
    }
    changed
}

fn at<T>(value: T) -> Spanned<T> {
    Spanned { value, span: Span::default() }
}

fn variable(name: &Arc<str>) -> Spanned<Term> {
    at(Term::Variable(Variable { name: Arc::clone(name), index: None }, 0))
}

fn atom(name: &str, variables: &[Arc<str>]) -> Atom {
    let arguments = variables.iter().map(variable).collect();
    Atom { relation: at(name.into()), arguments, span: Span::default() }
}

fn rename(conditions: &mut [Spanned<Condition>], from: &str, to: &str) {
    for condition in conditions {
        match &mut condition.value {
            Condition::Atom { atom, .. } if &*atom.relation.value == from => atom.relation.value = to.into(),
            Condition::Aggregate { body, .. } => rename(body, from, to),
            _ => {}
        }
    }
}

/// Every rule asks a copy of the relation in its place.
fn copied(program: &Program, name: &str) -> Program {
    let mut changed = program.clone();
    for rule in &mut changed.rules {
        rename(&mut rule.body, name, "copy");
    }
    let variables: [Arc<str>; 2] = ["A".into(), "B".into()];
    let body = vec![at(Condition::Atom { negated: false, atom: atom(name, &variables) })];
    changed.rules.push(Rule { doc: String::new(), head: atom("copy", &variables), body, span: Span::default() });
    changed
}

/// The positive literals of a body become a relation of their own, with all their variables: the reverse of inlining.
fn parted(program: &Program) -> Program {
    let mut changed = program.clone();
    let mut parts = Vec::new();
    for (number, rule) in changed.rules.iter_mut().enumerate() {
        let positive =
            |condition: &Spanned<Condition>| matches!(condition.value, Condition::Atom { negated: false, .. });
        let (taken, left): (Vec<_>, Vec<_>) = rule.body.drain(..).partition(positive);
        let mut variables: Vec<Arc<str>> = Vec::new();
        for condition in &taken {
            let Condition::Atom { atom, .. } = &condition.value else { continue };
            for term in &atom.arguments {
                if let Term::Variable(variable, _) = &term.value
                    && !variables.contains(&variable.name)
                {
                    variables.push(Arc::clone(&variable.name));
                }
            }
        }
        let head = atom(&format!("part{number}"), &variables);
        rule.body.push(at(Condition::Atom { negated: false, atom: head.clone() }));
        rule.body.extend(left);
        parts.push(Rule { doc: String::new(), head, body: taken, span: Span::default() });
    }
    changed.rules.extend(parts);
    changed
}

proptest! {
    #[test]
    fn no_change_of_form_changes_a_result(
        edges in graph(),
        marks in prop::collection::vec((0..8u32, 0..8u32), 0..6),
        text in naive::program(),
        order in prop::collection::vec(any::<Index>(), 1..8),
        name in prop::sample::select(vec!["a", "b", "c", "d"]),
    ) {
        let facts = Lists::default().edges("edge", edges).edges("mark", marks);
        let program = program(&text);
        let expected = all_rows(&program, &facts);
        let by_the_book: BTreeMap<String, BTreeSet<Vec<i64>>> = naive::run(&program, &facts);
        for (name, rows) in by_the_book {
            prop_assert_eq!(&expected[&name].0, &rows, "{} in\n{}", name, &text);
        }
        for changed in [reordered(&program, &order), copied(&program, name), parted(&program)] {
            prop_assert_eq!(&all_rows(&changed, &facts), &expected, "{}\nof\n{}", self::text(&changed), &text);
        }
    }

    #[test]
    fn every_row_that_does_not_hold_has_a_reason(
        edges in graph(),
        marks in prop::collection::vec((0..8u32, 0..8u32), 0..6),
        text in naive::program(),
        row in (0..9u32, 0..9u32),
        open in any::<(bool, bool)>(),
    ) {
        let facts = Lists::default().edges("edge", edges).edges("mark", marks);
        let rules = compile(&program(&text), &facts.schema).expect("the rules pass their checks");
        let pattern = [(!open.0).then(|| Value::from(row.0)), (!open.1).then(|| Value::from(row.1))];
        for name in ["a", "b", "c", "d", "e", "f"] {
            let relation = rules.relation(name).expect("it has rules");
            let mut evaluator = Evaluator::new(&rules, &facts);
            let holds = evaluator.any(relation, &pattern).expect("no limit");
            let answer = evaluator.why_not(relation, &pattern).expect("no limit");
            prop_assert_eq!(answer.is_none(), holds, "{} {:?} in\n{}", name, pattern, &text);
            let Some(answer) = answer else { continue };
            let nearest = answer.nearest.expect("each relation has rules");
            for attempt in &answer.attempts {
                prop_assert!(attempt.held <= attempt.literals && attempt.held <= answer.attempts[nearest].held);
            }
            for near in &answer.near {
                prop_assert!(evaluator.holds(relation, &near.row).expect("no limit"));
                let differs = |column: usize| pattern[column].is_some_and(|known| known != near.row[column]);
                prop_assert_eq!((0..2).filter(|column| differs(*column)).collect::<Vec<_>>(), [near.column]);
            }
        }
    }
}
