//! Evaluation of Datalog rules.

use std::ops::ControlFlow;

use dyelog::datalog::ast::Program;
use dyelog::datalog::base::{BaseFacts, BaseRelation, BaseSchema, Type};
use dyelog::datalog::eval::{Cause, CompiledRules, Evaluator, Limits, Relation, compile};
use dyelog::datalog::syntax::load;
use dyelog::datalog::value::Value;
use dyelog::names::Names;

/// Facts in lists, looked through from end to end unless the first column is known.
#[derive(Default)]
struct Lists {
    schema: BaseSchema,
    names: Names,
    relations: Vec<Vec<Vec<Value>>>,
}

impl Lists {
    fn add(&mut self, name: &str, columns: &[Type], rows: impl IntoIterator<Item = Vec<Value>>) {
        self.schema.add(name, columns);
        let mut rows: Vec<_> = rows.into_iter().collect();
        rows.sort_unstable();
        self.relations.push(rows);
    }

    fn edges(mut self, name: &str, edges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let rows = edges.into_iter().map(|(from, to)| vec![Value::from(from), Value::from(to)]);
        self.add(name, &[Type::Any, Type::Any], rows);
        self
    }

    fn symbols(mut self, name: &str, rows: &[(u32, &str)]) -> Self {
        let rows: Vec<_> = rows
            .iter()
            .map(|(number, text)| vec![Value::from(*number), Value::symbol(self.names.intern(text))])
            .collect();
        self.add(name, &[Type::Any, Type::Symbol], rows);
        self
    }
}

impl BaseFacts for Lists {
    fn lookup(
        &self,
        relation: BaseRelation,
        pattern: &[Option<Value>],
        out: &mut dyn FnMut(&[Value]) -> ControlFlow<()>,
    ) {
        let rows = &self.relations[relation.0 as usize];
        let start = pattern[0].map_or(0, |first| rows.partition_point(|row| row[0] < first));
        for row in rows[start..].iter().take_while(|row| pattern[0].is_none_or(|first| first == row[0])) {
            if pattern.iter().zip(row).all(|(known, value)| known.is_none_or(|known| known == *value))
                && out(row).is_break()
            {
                return;
            }
        }
    }

    fn estimate(&self, relation: BaseRelation, bound: u32) -> u64 {
        if bound & 1 == 1 { 2 } else { self.relations[relation.0 as usize].len() as u64 }
    }

    fn symbol(&self, text: &str) -> Option<Value> {
        self.names.get(text).map(Value::symbol)
    }
}

fn program(text: &str) -> Program {
    load("test.dl", text, &|_| None).expect("the rules can be read")
}

fn compiled(text: &str, facts: &Lists) -> CompiledRules {
    compile(&program(text), &facts.schema).expect("the rules pass their checks")
}

/// All rows of a relation with the first column known, or none; numbers only.
fn rows(text: &str, facts: &Lists, relation: &str, first: Option<u32>) -> Vec<Vec<i64>> {
    let rules = compiled(text, facts);
    let relation = rules.relation(relation).expect("the relation exists");
    let mut pattern = vec![None; rules.arity(relation)];
    if let Some(first) = first {
        pattern[0] = Some(Value::from(first));
    }
    let found = Evaluator::new(&rules, facts).query(relation, &pattern).expect("no limit is reached");
    found.iter().map(|row| row.iter().map(|value| value.as_integer().expect("a number")).collect()).collect()
}

const REACH: &str = "reach(X, Y) :- edge(X, Y).\nreach(X, Z) :- reach(X, Y), edge(Y, Z).";

#[test]
fn recursion_over_a_cycle_ends() {
    let facts = Lists::default().edges("edge", [(1, 2), (2, 3), (3, 1), (3, 4), (5, 1)]);
    assert_eq!(rows(REACH, &facts, "reach", Some(1)), [[1, 1], [1, 2], [1, 3], [1, 4]]);
    assert_eq!(rows(REACH, &facts, "reach", Some(4)), Vec::<Vec<i64>>::new());
    assert_eq!(rows(REACH, &facts, "reach", None).len(), 16);
    let right = "reach(X, Y) :- edge(X, Y).\nreach(X, Z) :- edge(X, Y), reach(Y, Z).";
    let both = "reach(X, Y) :- edge(X, Y).\nreach(X, Z) :- reach(X, Y), reach(Y, Z).";
    for text in [right, both] {
        assert_eq!(rows(text, &facts, "reach", None), rows(REACH, &facts, "reach", None));
        assert_eq!(rows(text, &facts, "reach", Some(5)), rows(REACH, &facts, "reach", Some(5)));
    }
}

#[test]
fn negation_asks_for_what_is_complete() {
    let facts = Lists::default().edges("edge", [(1, 2), (2, 3), (3, 4), (1, 5), (5, 4)]).edges("bad", [(3, 3)]);
    let text = "clean(X, Y) :- edge(X, Y), !blocked(Y).
        clean(X, Z) :- clean(X, Y), edge(Y, Z), !blocked(Z).
        blocked(X) :- bad(X, _).
        blocked(X) :- blocked(Y), edge(Y, X), !exempt(X).
        exempt(9).
        exempt(X) :- edge(Y, X), !bad(Y, Y), Y > 4.";
    // 3 is bad; 4 would be blocked through it, but is exempt through 5.
    assert_eq!(rows(text, &facts, "clean", Some(1)), [[1, 2], [1, 4], [1, 5]]);
    assert_eq!(rows(text, &facts, "blocked", None), [[3]]);
}

#[test]
fn arithmetic_is_solved_both_ways_and_never_overflows() {
    let facts = Lists::default().edges("edge", [(1, 2), (2, 4), (4, 3)]);
    let text = format!(
        "up(X + 1) :- edge(X, _).
        down(X) :- edge(X + 1, _).
        half(X, X / 2, X % 2) :- edge(X, _).
        double(X, X * 2) :- edge(X, _).
        inverse(X, 12 / (X - 2)) :- edge(X, _).
        big(X * {}) :- edge(X, _).
        equation(X, Y) :- edge(X, Z), Y - 3 = Z * 2.",
        i64::MAX / 4
    );
    assert_eq!(rows(&text, &facts, "up", None), [[2], [3], [5]]);
    assert_eq!(rows(&text, &facts, "up", Some(3)), [[3]]);
    assert_eq!(rows(&text, &facts, "down", None), [[0], [1], [3]]);
    assert_eq!(rows(&text, &facts, "half", None), [[1, 0, 1], [2, 1, 0], [4, 2, 0]]);
    assert_eq!(rows(&text, &facts, "double", Some(4)), [[4, 8]]);
    assert_eq!(rows(&text, &facts, "inverse", None), [[1, -12], [4, 6]]);
    assert_eq!(rows(&text, &facts, "big", None), [[i64::MAX / 4]]);
    assert_eq!(rows(&text, &facts, "equation", None), [[1, 7], [2, 11], [4, 9]]);
    let rules = compiled(&text, &facts);
    let relation = rules.relation("double").expect("it exists");
    let mut evaluator = Evaluator::new(&rules, &facts);
    assert_eq!(evaluator.holds(relation, &[Value::from(2), Value::from(4)]), Ok(true));
    assert_eq!(evaluator.holds(relation, &[Value::from(2), Value::from(5)]), Ok(false));
    assert_eq!(evaluator.any(relation, &[None, Some(Value::from(8))]), Ok(true));
}

#[test]
fn aggregates_range_over_distinct_bindings() {
    let facts =
        Lists::default().edges("edge", [(1, 2), (1, 3), (2, 3), (3, 1), (1, 7)]).edges("node", (1..5).map(|n| (n, n)));
    let text = "degree(X, n) :- node(X, _), n = count { edge(X, _) }.
        total(n) :- n = sum Y { edge(_, Y) }.
        furthest(X, n) :- node(X, _), n = max (Y - X) { edge(X, Y), Y != 7 }.
        nearest(X, n) :- node(X, _), n = min Y { edge(X, Y) }.
        busy(X) :- degree(X, n), n > 1.
        alone(n) :- n = count { node(X, _), !busy(X) }.";
    assert_eq!(rows(text, &facts, "degree", None), [[1, 3], [2, 1], [3, 1], [4, 0]]);
    assert_eq!(rows(text, &facts, "degree", Some(4)), [[4, 0]]);
    assert_eq!(rows(text, &facts, "total", None), [[16]]);
    assert_eq!(rows(text, &facts, "furthest", None), [[1, 2], [2, 1], [3, -2]]);
    assert_eq!(rows(text, &facts, "nearest", None), [[1, 2], [2, 3], [3, 1]]);
    assert_eq!(rows(text, &facts, "alone", None), [[3]]);
}

#[test]
fn symbols_of_facts_and_rule_file_are_one() {
    let facts = Lists::default().symbols("name", &[(1, "get"), (2, "put"), (3, "get")]);
    let text = "same(X, Y) :- name(X, S), name(Y, S), X != Y.
        safe(X) :- name(X, S), idempotent(S).
        idempotent(\"get\"). idempotent(\"delete\").
        odd(S) :- idempotent(S), !known(S).
        known(S) :- name(_, S).";
    assert_eq!(rows(text, &facts, "same", None), [[1, 3], [3, 1]]);
    assert_eq!(rows(text, &facts, "safe", None), [[1], [3]]);
    let rules = compiled(text, &facts);
    let mut evaluator = Evaluator::new(&rules, &facts);
    let odd = rules.relation("odd").expect("it exists");
    let found = evaluator.query(odd, &[None]).expect("no limit is reached");
    assert_eq!(found.len(), 1);
    assert_eq!(evaluator.own_text(found[0][0]), Some("delete"));
    let idempotent = rules.relation("idempotent").expect("it exists");
    let get = evaluator.symbol("get").expect("both know it");
    assert_eq!(evaluator.holds(idempotent, &[get]), Ok(true));
}

#[test]
fn a_long_chain_needs_no_stack() {
    const LENGTH: u32 = 1_000_000;
    let facts = Lists::default().edges("edge", (0..LENGTH).map(|n| (n, n + 1)));
    let right = "reach(X, Y) :- edge(X, Y).\nreach(X, Z) :- edge(X, Y), reach(Y, Z).";
    for text in [REACH, right] {
        let rules = compiled(text, &facts);
        let reach = rules.relation("reach").expect("it exists");
        let mut evaluator = Evaluator::new(&rules, &facts);
        assert_eq!(evaluator.holds(reach, &[Value::from(0), Value::from(LENGTH)]), Ok(true));
    }
    let rules = compiled(REACH, &facts);
    let mut evaluator = Evaluator::new(&rules, &facts);
    let reach = rules.relation("reach").expect("it exists");
    assert_eq!(evaluator.query(reach, &[Some(Value::from(0)), None]).map(|rows| rows.len()), Ok(LENGTH as usize));
}

#[test]
fn only_what_is_asked_for_is_computed() {
    let facts = Lists::default().edges("edge", (0..10_000).map(|n| (n, n + 1)));
    let rules = compiled(REACH, &facts);
    let reach = rules.relation("reach").expect("it exists");
    let mut evaluator = Evaluator::new(&rules, &facts);
    assert_eq!(evaluator.query(reach, &[Some(Value::from(9_990)), None]).map(|rows| rows.len()), Ok(10));
    assert!(evaluator.rows() < 100, "{} rows for ten answers", evaluator.rows());
}

#[test]
fn a_limit_is_an_error_and_stays_one() {
    let facts = Lists::default().edges("edge", (0..1_000).map(|n| (n, (n + 1) % 1_000)));
    let rules = compiled(REACH, &facts);
    let reach = rules.relation("reach").expect("it exists");
    let limits = [Limits { rows: 5_000, ..Limits::default() }, Limits { steps: 5_000, ..Limits::default() }];
    for (limit, code) in limits.into_iter().zip(["R040", "R041"]) {
        let mut evaluator = Evaluator::with_limits(&rules, &facts, limit);
        for _ in 0..2 {
            let error = evaluator.query(reach, &[None, None]).expect_err("a million rows are too many");
            assert_eq!(error.0[0].code.0, code);
        }
    }
}

#[test]
fn explains_by_the_first_way_found() {
    let facts = Lists::default().edges("edge", [(1, 2), (2, 3), (3, 1)]).edges("bad", [(2, 9)]);
    let text = format!("{REACH}\nfine(X, Y) :- reach(X, Y), !bad(Y, _).");
    let rules = compiled(&text, &facts);
    let mut evaluator = Evaluator::new(&rules, &facts).with_explanations();
    let fine = rules.relation("fine").expect("it exists");
    assert_eq!(evaluator.explain(fine, &[Value::from(1), Value::from(2)]), Ok(None));
    let found = evaluator.explain(fine, &[Value::from(1), Value::from(1)]).expect("no limit").expect("it holds");
    let mut lines = Vec::new();
    let mut open = vec![(0, 0)];
    while let Some((place, depth)) = open.pop() {
        let step = &found.steps[place];
        let name = ["reach", "fine"].into_iter().find(|name| rules.relation(name) == Some(step.relation));
        let row: Vec<String> =
            step.row.iter().map(|value| value.map_or("_".into(), |value| format!("{value:?}"))).collect();
        let cause = match step.because {
            Cause::Given => "given".into(),
            Cause::Rule(rule) => format!("rule {rule}"),
            Cause::Absent => "absent".into(),
        };
        lines.push(format!("{}{}({}) {cause}", "  ".repeat(depth), name.unwrap_or("fact"), row.join(", ")));
        open.extend(step.premises.iter().rev().map(|premise| (*premise, depth + 1)));
    }
    insta::assert_snapshot!(lines.join("\n"), @r"
    fine(1, 1) rule 2
      reach(1, 1) rule 1
        reach(1, 3) rule 1
          reach(1, 2) rule 0
            fact(1, 2) given
          fact(2, 3) given
        fact(3, 1) given
      fact(1, _) absent
    ");
}

#[test]
fn base_relations_can_be_asked_too() {
    let facts = Lists::default().edges("edge", [(1, 2), (1, 3)]);
    let rules = compiled("a(1).", &facts);
    let edge = rules.relation("edge").expect("it exists");
    assert!(matches!(edge, Relation::Base(_)));
    let mut evaluator = Evaluator::new(&rules, &facts);
    assert_eq!(evaluator.query(edge, &[Some(Value::from(1)), None]).map(|rows| rows.len()), Ok(2));
    assert_eq!(evaluator.holds(edge, &[Value::from(2), Value::from(1)]), Ok(false));
    assert_eq!(evaluator.any(edge, &[None]), Ok(false));
}
