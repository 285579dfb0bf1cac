//! Evaluation of Datalog rules.

use std::ops::ControlFlow;

use dyelog::datalog::ast::Program;
use dyelog::datalog::base::{BaseFacts, BaseRelation, BaseSchema, Type};
use dyelog::datalog::eval::{Cause, CompiledRules, Derivation, Evaluator, Limits, Relation, Watch, compile};
use dyelog::datalog::syntax::load;
use dyelog::datalog::value::Value;
use dyelog::diagnostic::Place;
use dyelog::names::Names;
use proptest::prelude::*;

/// Facts in lists, looked through from end to end unless the first column is known.
#[derive(Default)]
pub struct Lists {
    /// Their names and columns.
    pub schema: BaseSchema,
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

    /// With a relation of two numbers.
    pub fn edges(mut self, name: &str, edges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let rows = edges.into_iter().map(|(from, to)| vec![Value::from(from), Value::from(to)]);
        self.add(name, &[Type::Integer, Type::Integer], rows);
        self
    }

    /// With a relation of a whole number and any number.
    pub fn numbers(mut self, name: &str, rows: &[(u32, f64)]) -> Self {
        let number = |number| Value::float(number).expect("a number");
        let rows: Vec<_> = rows.iter().map(|(first, second)| vec![Value::from(*first), number(*second)]).collect();
        self.add(name, &[Type::Integer, Type::Number], rows);
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

pub fn program(text: &str) -> Program {
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

/// All rows of a relation as text.
fn printed(text: &str, facts: &Lists, relation: &str) -> Vec<String> {
    let rules = compiled(text, facts);
    let relation = rules.relation(relation).expect("the relation exists");
    let found = Evaluator::new(&rules, facts).query(relation, &vec![None; rules.arity(relation)]);
    let line = |row: &Vec<Value>| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    found.expect("no limit is reached").iter().map(line).collect()
}

#[test]
fn fractions_and_whole_numbers_are_numbers() {
    let facts =
        Lists::default().numbers("took", &[(1, 1.5), (2, 4.0), (3, 0.1), (4, -2.5)]).edges("size", [(1, 4), (2, 7)]);
    let text = "slow(X) :- took(X, T), T > 1.25.
        whole(X) :- took(X, 4).
        equal(X) :- took(X, T), T = 8.0 / 2.
        half(X, T / 2) :- took(X, T).
        bytes(X, S / 2) :- size(X, S).
        rate(X, S / T) :- size(X, S), took(X, T).
        later(X, T + 1) :- took(X, T).
        tiny(2e-3, -0.5).
        third(X, D / 3) :- tiny(X, _), D = 1.0.
        total(T) :- T = sum D { took(_, D) }.
        mean(T) :- T = mean D { took(_, D) }.
        wholemean(T) :- T = mean S { size(_, S) }.
        most(T) :- T = max D { took(_, D) }.
        middle(T) :- T = p50 D { took(_, D) }.
        high(T) :- T = p95 D { took(_, D) }.
        none(T) :- T = mean D { took(9, D) }.";
    for (relation, expected) in [
        ("slow", &["1", "2"][..]),
        ("whole", &["2"]),
        ("equal", &["2"]),
        ("half", &["1 0.75", "2 2", "3 0.05", "4 -1.25"]),
        ("bytes", &["1 2", "2 3"]),
        ("rate", &["1 2.666666666666666", "2 1.75"]),
        ("later", &["1 2.5", "2 5", "3 1.1", "4 -1.5"]),
        ("tiny", &["0.002 -0.5"]),
        ("third", &["0.002 0.3333333333333333"]),
        ("total", &["3.1"]),
        ("mean", &["0.775"]),
        ("wholemean", &["5.5"]),
        ("most", &["4"]),
        ("middle", &["0.1"]),
        ("high", &["4"]),
        ("none", &[]),
    ] {
        assert_eq!(printed(text, &facts, relation), expected, "{relation}");
    }
}

#[test]
fn what_no_value_holds_is_none() {
    assert_eq!([f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX].map(Value::float), [None; 4]);
    assert_eq!(Value::float(-0.0), Value::integer(0));
    assert_eq!(Value::float(2.0), Value::integer(2));
    let beyond = Value::float(2f64.powi(61)).expect("a number");
    assert!(Value::integer(Value::MAX).expect("the greatest") < beyond, "{beyond:?}");
    assert_eq!(Value::float(-(2f64.powi(61))), Value::integer(Value::MIN));
}

const LONGEST: &str = "longest(X, 0) :- edge(X, _), !edge(_, X).
    longest(Y, D) :- D = max L { edge(X, Y), longest(X, P), L = P + 1 }.";
const NEAREST: &str = "near(0, 0).
    near(Y, D + 1) :- D = min P { edge(X, Y), near(X, P) }.";

#[test]
fn best_values_of_a_recursion() {
    let facts = Lists::default().edges("edge", [(0, 1), (1, 2), (0, 2), (2, 3), (0, 3), (5, 3)]);
    let text =
        format!("{LONGEST}\n{NEAREST}\n end(D) :- D = max L {{ longest(_, L) }}.\n late(X) :- longest(X, D), D > 2.");
    let all = [[0, 0], [1, 1], [2, 2], [3, 3], [5, 0]];
    assert_eq!(rows(&text, &facts, "longest", None), all);
    assert_eq!(rows(&text, &facts, "longest", Some(2)), [[2, 2]]);
    assert_eq!(rows(&text, &facts, "near", None), [[0, 0], [1, 1], [2, 1], [3, 1]]);
    assert_eq!(rows(&text, &facts, "end", None), [[3]]);
    assert_eq!(rows(&text, &facts, "late", Some(3)), [[3]]);
    let mutual = format!("{LONGEST}\n far(X) :- longest(X, _). longest(X, 1) :- far(X).");
    assert_eq!(rows(&mutual, &facts, "far", Some(2)), [[2]]);
    assert_eq!(rows(&mutual, &facts, "longest", None), [[0, 1], [1, 2], [2, 3], [3, 4], [5, 1]]);
    let rules = compiled(&text, &facts);
    let longest = rules.relation("longest").expect("it exists");
    let mut evaluator = Evaluator::new(&rules, &facts);
    assert_eq!(evaluator.holds(longest, &[Value::from(3), Value::from(1)]), Ok(false), "1 is not the greatest");
}

/// Worked off in the order of rounds, each of n rows would get better n / 2 times.
#[test]
fn best_values_cost_as_much_as_there_are_rows() {
    const NODES: u32 = 200_000;
    let facts = Lists::default().edges("edge", (0..NODES).flat_map(|n| [(n, n + 1), (n, n + 2)]));
    let rules = compiled(LONGEST, &facts);
    let longest = rules.relation("longest").expect("it exists");
    let limits = Limits { steps: u64::from(NODES) * 20, ..Limits::default() };
    let mut evaluator = Evaluator::with_limits(&rules, &facts, limits);
    let row = [Value::from(NODES + 1), Value::from(NODES)];
    assert_eq!(evaluator.holds(longest, &row), Ok(true));
}

#[test]
fn best_values_that_get_better_for_ever_are_an_error() {
    let facts = Lists::default().edges("edge", (0..50_000).map(|n| (n, (n + 1) % 50_000)).chain([(60_000, 0)]));
    let rules = compiled(LONGEST, &facts);
    let longest = rules.relation("longest").expect("it exists");
    let mut evaluator = Evaluator::new(&rules, &facts);
    for pattern in [[None, None], [Some(Value::from(1)), None]] {
        let error = evaluator.query(longest, &pattern).expect_err("there is no longest way");
        assert_eq!(error.0[0].code.0, "R045");
        assert!(matches!(error.0[0].place, dyelog::diagnostic::Place::Range { .. }));
    }
}

#[test]
fn best_values_are_read_once_they_are_final() {
    let facts = Lists::default().edges("edge", [(0, 1)]);
    for (rules, refused) in [
        ("far(X) :- longest(X, D), D > 2.", false),
        ("longest(X, 9) :- far(X). far(X) :- longest(X, _).", false),
        ("longest(X, 9) :- far(X). far(X) :- longest(X, D), D > 2.", true),
        ("longest(X, D) :- longest(X, D), edge(X, _).", true),
        ("longest(Y, D) :- D = min L { edge(X, Y), longest(X, L) }.", true),
        ("longest(Y, D) :- edge(Y, _), D = max L { edge(X, Y), longest(X, L), L < 5 }, D > 2.", true),
        ("longest(Y, D) :- D = max L { edge(X, Y), longest(X, L), L < 5 }.", true),
        ("longest(Y, D) :- D = max (L * 2) { edge(X, Y), longest(X, L) }.", true),
        ("longest(Y, D) :- D = max (7 - L) { edge(X, Y), longest(X, L) }.", true),
        ("longest(Y, D) :- D = max L { edge(X, Y), longest(X, L), edge(L, _) }.", true),
        ("longest(Y, D) :- D = max L { edge(X, Y), longest(X, L), longest(Y, L) }.", true),
        ("longest(Y, D * 2) :- D = max L { edge(X, Y), longest(X, L) }.", true),
        ("longest(Y, N) :- edge(Y, _), N = count { longest(Y, _) }.", true),
        ("longest(Y, 1) :- edge(Y, _), !longest(Y, 0).", true),
        ("longest(Y, D) :- D = max (L + W) { edge(X, Y), longest(X, L), edge(X, W) }.", false),
    ] {
        let text = format!("{LONGEST}\n{rules}");
        let found = compile(&program(&text), &facts.schema);
        let codes: Vec<&str> =
            found.as_ref().err().map_or(Vec::new(), |errors| errors.0.iter().map(|d| d.code.0).collect());
        assert_eq!(codes.first().copied(), refused.then_some("R024"), "{rules}: {codes:?}");
    }
}

#[test]
fn rows_are_handed_on_as_they_are_found() {
    let facts = Lists::default().edges("edge", (0..3_000).map(|n| (n, n + 1)));
    let rules = compiled(REACH, &facts);
    let reach = rules.relation("reach").expect("it exists");
    let mut evaluator = Evaluator::new(&rules, &facts);
    let mut seen = Vec::new();
    let stopped = evaluator.stream(reach, &mut |row| {
        seen.push(row.to_vec());
        if seen.len() == 5_000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!((stopped, seen.len()), (Ok(()), 5_000));
    let mut count = 0;
    let narrow = Limits { bytes: 4_000_000, ..Limits::default() };
    let all = Evaluator::with_limits(&rules, &facts, narrow).stream(reach, &mut |row| {
        assert!(count >= seen.len() || seen[count] == row, "the order is always the same");
        count += 1;
        ControlFlow::Continue(())
    });
    assert_eq!((all, count), (Ok(()), 4_501_500));
}

#[test]
fn ids_and_any_values_are_distinct_rows() {
    let facts = Lists::default().edges("edge", (0..100).map(|n| (n, n + 1)));
    let text = "big(0, 1000). big(Y, S) :- big(X, R), edge(X, Y), S = R * 3 - R / 2.
        wide(Y, X) :- big(X, Y). wide(X, 1) :- edge(X, 4).
        one(X) :- big(_, X). one(X + 1) :- one(X), X < 1100. one(X / 2.0) :- big(X, _).";
    for relation in ["big", "wide", "one"] {
        let rules = compiled(text, &facts);
        let relation = rules.relation(relation).expect("it exists");
        let pattern = vec![None; rules.arity(relation)];
        let whole = Evaluator::new(&rules, &facts).query(relation, &pattern);
        let asked = Evaluator::new(&rules, &facts).with_explanations().query(relation, &pattern);
        assert!(whole.as_ref().is_ok_and(|rows| rows.len() > 30), "{whole:?}");
        assert_eq!(whole, asked);
    }
}

#[test]
fn a_profile_says_where_the_work_is() {
    let facts = Lists::default().edges("edge", (0..100).map(|n| (n, n + 1))).edges("mark", [(1, 1), (2, 2)]);
    let text = format!("{REACH}\n pair(X, Y) :- mark(X, _), edge(Y, _).\n many(N) :- N = count {{ reach(_, _) }}.");
    let rules = compiled(&text, &facts);
    let wanted = ["pair", "many"].map(|name| rules.relation(name).expect("it exists"));
    let time = std::cell::Cell::new(0);
    let clock = || {
        time.set(time.get() + 1);
        time.get()
    };
    let watch = Watch { clock: &clock, interrupted: &|| false };
    let mut rows = [0, 0];
    let profile = Evaluator::new(&rules, &facts)
        .stream_each(&wanted, Some(&watch), &mut |place, _| {
            rows[place] += 1;
            ControlFlow::Continue(())
        })
        .expect("no limit is reached");
    assert_eq!(rows, [200, 1]);
    let lines: Vec<String> = profile
        .rules
        .iter()
        .map(|rule| {
            let literals = rule.orders.iter().flatten().map(|literal| {
                let (taken, given) = (literal.taken, literal.given);
                format!("{:?} {taken}→{given}{}", literal.literal, if literal.product { " product" } else { "" })
            });
            let literals: Vec<String> = literals.collect();
            let inside = if rule.aggregate { " inside" } else { "" };
            format!("{}{inside}: {} rounds, {} rows, {}", rule.rule, rule.rounds, rule.rows, literals.join(", "))
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    0: 1 rounds, 100 rows, Some(0) 1→100
    1: 100 rounds, 4950 rows, Some(0) 100→5050, Some(1) 5050→4950
    2: 1 rounds, 200 rows, Some(0) 1→2, Some(1) 2→200 product
    3: 1 rounds, 1 rows, Some(0) 1→1
    3 inside: 1 rounds, 5050 rows, Some(0) 1→5050
    ");
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
fn arithmetic_in_a_recursion_does_not_ask_for_ever() {
    let facts = Lists::default().edges("edge", [(1, 2), (2, 4), (4, 3)]);
    let text = "up(X) :- edge(X, 2). up(X + 1) :- up(X), X < 8.
        down(X) :- edge(X, 3). down(X) :- X > 0, Y = X + 1, down(Y).
        far(X, N) :- edge(X, _), N = 0. far(Y, N + 1) :- far(X, N), edge(X, Y), N < 10.";
    assert_eq!(rows(text, &facts, "up", Some(3)), [[3]]);
    assert_eq!(rows(text, &facts, "up", Some(9)), Vec::<Vec<i64>>::new());
    assert_eq!(rows(text, &facts, "up", None).len(), 8);
    assert_eq!(rows(text, &facts, "down", None), [[1], [2], [3], [4]]);
    assert_eq!(rows(text, &facts, "down", Some(2)), [[2]]);
    assert_eq!(rows(text, &facts, "far", Some(3)), [[3, 1], [3, 2], [3, 3]]);
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
            let Place::Range { start, end, .. } = error.0[0].place else { panic!("{error:?}") };
            assert!(REACH[start..end].starts_with("reach(X, "), "the rule that gave most rows");
        }
    }
}

/// What no check can tell is stopped with the rule that gave the rows.
#[test]
fn a_recursion_without_end_is_stopped_with_its_place() {
    let facts = Lists::default().edges("edge", [(1, 2), (2, 1)]);
    for text in ["n(0).\nn(X + 1) :- n(X), X % 2 < 9.", "n(X) :- edge(X, _).\nn(X + 1) :- n(X), !edge(X, X).\n"] {
        let rules = compiled(text, &facts);
        let limits = Limits { rows: 10_000, ..Limits::default() };
        let n = rules.relation("n").expect("it exists");
        let error = Evaluator::with_limits(&rules, &facts, limits).query(n, &[None]).expect_err("it never ends");
        let Place::Range { start, end, .. } = error.0[0].place else { panic!("{error:?}") };
        assert_eq!(&text[start..end], "n(X + 1)");
    }
}

/// Numbers that no fact has are held to what the facts give room for, in both ways of evaluation. A number in the rule
/// gives more room, and a recursion over facts alone has no such limit.
#[test]
fn numbers_that_a_recursion_makes_are_held_to_the_facts() {
    let facts = Lists::default().edges("edge", (0..2_000).map(|n| (n, (n + 1) % 2_000)));
    let endless = [
        ("n(X, Y) :- edge(X, Y).\nn(X + 1, Z) :- n(X, Y), edge(Y, Z).", "n(X + 1, Z)"),
        ("n(0, X) :- edge(X, _).\nn(Z, Y) :- n(X, Y), X != 0 - 1, Z = X + 1.", "n(Z, Y)"),
        ("n(0, X) :- edge(X, _).\nn(X, Y) :- n(X - 1, Y), X % 2 < 9.", "n(X, Y)"),
        ("n(1, 1).\nn(X + 1, Y) :- m(X, Y), edge(Y, _).\nm(X, Y) :- n(X, Y).", "n(X + 1, Y)"),
        ("n(0, X) :- edge(X, _).\nn(X + 1, Y) :- n(X, Y), X < 1000000000.", "n(X + 1, Y)"),
    ];
    for (text, head) in endless {
        let rules = compiled(text, &facts);
        let n = rules.relation("n").expect("it exists");
        for evaluator in [Evaluator::new(&rules, &facts), Evaluator::new(&rules, &facts).with_explanations()] {
            let mut evaluator = evaluator;
            let error = evaluator.query(n, &[None, None]).expect_err("it never ends");
            assert_eq!(error.0[0].code.0, "R040");
            let Place::Range { start, end, .. } = error.0[0].place else { panic!("{error:?}") };
            assert_eq!(&text[start..end], head);
        }
    }
    let ending = [
        ("n(0, 0).\nn(X + 1, Y) :- n(X, Y), X < 2000000.", 2_000_001),
        ("n(X, Y) :- edge(X, Y).\nn(X, Z) :- n(X, Y), edge(Y, Z).", 4_000_000),
        ("n(0, 0).\nn(X + 1, Z) :- n(X, Y), edge(Y, Z), Y < Z.", 2_000),
    ];
    for (text, count) in ending {
        let rules = compiled(text, &facts);
        let n = rules.relation("n").expect("it exists");
        assert_eq!(Evaluator::new(&rules, &facts).query(n, &[None, None]).map(|rows| rows.len()), Ok(count), "{text}");
    }
}

#[test]
fn explains_by_the_first_way_found() {
    let facts = Lists::default().edges("edge", [(1, 2), (2, 3), (3, 1)]).edges("bad", [(2, 9)]);
    let text = format!("{REACH}\nfine(X, Y) :- reach(X, Y), !bad(Y, _).");
    let rules = compiled(&text, &facts);
    let mut evaluator = Evaluator::new(&rules, &facts).with_explanations();
    let fine = rules.relation("fine").expect("it exists");
    assert_eq!(evaluator.explain(fine, &[Value::from(1), Value::from(2)], 9), Ok(None));
    let found = evaluator.explain(fine, &[Value::from(1), Value::from(1)], 9).expect("no limit").expect("it holds");
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
            Cause::Aggregate(..) => "aggregate".into(),
            Cause::Replaced => "replaced".into(),
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

#[test]
fn a_product_that_nothing_reads_needs_no_memory() {
    let facts = Lists::default().edges("edge", (0..100).map(|node| (node, node)));
    let few = Limits { bytes: 1 << 16, ..Limits::default() };
    let count = |text: &str| {
        let rules = compiled(text, &facts);
        let relation = rules.relation("p").expect("it exists");
        let mut rows = 0;
        let done = Evaluator::with_limits(&rules, &facts, few).stream(relation, &mut |_| {
            rows += 1;
            ControlFlow::Continue(())
        });
        done.map(|()| rows).map_err(|found| found.0[0].code.0)
    };
    let node = "x(X) :- edge(X, _).";
    assert_eq!(count(&format!("{node} p(A, B, C) :- x(A), x(B), x(C).")), Ok(1_000_000));
    // What a row does not tell may come again.
    assert_eq!(count(&format!("{node} p(A, B, A) :- x(A), x(B), x(C), C > 97.")), Err("R040"));
    assert_eq!(count(&format!("{node} p(A, B, 1) :- x(A), x(B), x(C), C = B + A % 2.")), Err("R040"));
}

/// A small random graph and a random program over it, for comparison with other evaluations.
pub fn graph() -> impl Strategy<Value = Vec<(u32, u32)>> {
    prop::collection::vec((0..8u32, 0..8u32), 0..20)
}

mod reference {
    //! The same programs by crepe.
    use crepe::crepe;

    crepe! {
        @input
        pub struct Edge(pub u32, pub u32);
        @output
        #[derive(Debug, PartialOrd, Ord)]
        pub struct Reach(pub u32, pub u32);
        @output
        #[derive(Debug, PartialOrd, Ord)]
        pub struct SameGeneration(pub u32, pub u32);

        Reach(x, y) <- Edge(x, y);
        Reach(x, z) <- Reach(x, y), Edge(y, z);
        SameGeneration(x, y) <- Edge(p, x), Edge(p, y);
        SameGeneration(x, y) <- Edge(p, x), SameGeneration(p, q), Edge(q, y);
    }

    /// Reachability and same generation, sorted.
    pub fn run(edges: &[(u32, u32)]) -> (Vec<Reach>, Vec<SameGeneration>) {
        let mut runtime = Crepe::new();
        runtime.extend(edges.iter().map(|(from, to)| Edge(*from, *to)));
        let (reach, same) = runtime.run();
        let (mut reach, mut same) = (Vec::from_iter(reach), Vec::from_iter(same));
        reach.sort_unstable();
        same.sort_unstable();
        (reach, same)
    }
}

/// Least distances from 0 and longest ways, where there are any, by trying all numbers of steps.
fn distances(edges: &[(u32, u32)]) -> (Vec<Vec<i64>>, Option<Vec<Vec<i64>>>) {
    let starts: Vec<u32> =
        edges.iter().map(|(from, _)| *from).filter(|from| !edges.iter().any(|(_, to)| to == from)).collect();
    let mut least: Vec<Option<i64>> = vec![None; 8];
    least[0] = Some(0);
    let mut greatest: Vec<Option<i64>> = (0..8).map(|node| starts.contains(&node).then_some(0)).collect();
    for _ in 0..9 {
        for (from, to) in edges.iter().map(|(from, to)| (*from as usize, *to as usize)) {
            least[to] = least[from].map(|d| least[to].map_or(d + 1, |known| known.min(d + 1))).or(least[to]);
            greatest[to] =
                greatest[from].map(|d| greatest[to].map_or(d + 1, |known| known.max(d + 1))).or(greatest[to]);
        }
    }
    let rows = |all: &[Option<i64>]| -> Vec<Vec<i64>> {
        all.iter().enumerate().filter_map(|(node, d)| Some(vec![node as i64, (*d)?])).collect()
    };
    let endless = greatest.iter().flatten().any(|d| *d > 7);
    (rows(&least), (!endless).then(|| rows(&greatest)))
}

proptest! {
    #[test]
    fn best_values_agree_with_trying_all_ways(edges in graph(), first in 0..8u32) {
        let (least, greatest) = distances(&edges);
        let facts = Lists::default().edges("edge", edges);
        let text = format!("{LONGEST}\n{NEAREST}");
        prop_assert_eq!(&rows(&text, &facts, "near", None), &least);
        let one: Vec<Vec<i64>> = least.into_iter().filter(|row| row[0] == i64::from(first)).collect();
        prop_assert_eq!(rows(&text, &facts, "near", Some(first)), one);
        prop_assert!(best_values_are_grounded(NEAREST, "near", &facts));
        let mutual = format!("{NEAREST}\n far(X) :- near(X, _). near(X, 9) :- far(X).");
        prop_assert!(best_values_are_grounded(&mutual, "far", &facts));
        let rules = compiled(&text, &facts);
        let longest = rules.relation("longest").expect("it exists");
        let found = Evaluator::new(&rules, &facts).query(longest, &[None, None]);
        match greatest {
            Some(greatest) => {
                prop_assert_eq!(rows(&text, &facts, "longest", None), greatest);
                prop_assert!(best_values_are_grounded(LONGEST, "longest", &facts));
            }
            None => prop_assert_eq!(found.expect_err("it has no end").0[0].code.0, "R045"),
        }
    }

    #[test]
    fn fourteen_digits_survive(digits in -99_999_999_999_999i64..=99_999_999_999_999, exponent in -300..280i32) {
        let text = format!("{digits}e{exponent}");
        let number: f64 = text.parse().expect("a number");
        let value = Value::float(number).expect("finite");
        let back: f64 = value.to_string().parse().expect("a number");
        prop_assert_eq!(back, number, "{} for {}", value, text);
        prop_assert_eq!(Value::float(back), Some(value));
    }

    #[test]
    fn numbers_are_ordered_by_size(a in any::<f64>(), b in any::<f64>(), c in any::<i64>()) {
        let values: Vec<Value> = [Value::float(a), Value::float(b), Value::integer(c >> 2)].into_iter().flatten().collect();
        for (first, second) in values.iter().zip(values.iter().skip(1)) {
            let (left, right) = (first.as_number().expect("a number"), second.as_number().expect("a number"));
            if left < right {
                prop_assert!(first < second);
            } else if left > right {
                prop_assert!(first > second);
            }
            prop_assert_eq!(first.cmp(second), second.cmp(first).reverse());
        }
    }

    #[test]
    fn agrees_with_crepe(edges in graph()) {
        let (reach, same) = reference::run(&edges);
        let facts = Lists::default().edges("edge", edges);
        let text = "reach(X, Y) :- edge(X, Y). reach(X, Z) :- reach(X, Y), edge(Y, Z).
            same(X, Y) :- edge(P, X), edge(P, Y). same(X, Y) :- edge(P, X), same(P, Q), edge(Q, Y).";
        let reach: Vec<Vec<i64>> = reach.iter().map(|row| vec![row.0.into(), row.1.into()]).collect();
        let same: Vec<Vec<i64>> = same.iter().map(|row| vec![row.0.into(), row.1.into()]).collect();
        prop_assert_eq!(rows(text, &facts, "reach", None), reach);
        prop_assert_eq!(rows(text, &facts, "same", None), same);
    }

    #[test]
    fn agrees_with_a_naive_fixpoint(edges in graph(), marks in prop::collection::vec((0..8u32, 0..8u32), 0..6), text in naive::program()) {
        let facts = Lists::default().edges("edge", edges).edges("mark", marks);
        let expected = naive::run(&program(&text), &facts);
        let rules = compiled(&text, &facts);
        let limits = Limits { rows: 100_000, ..Limits::default() };
        let mut shared = Evaluator::with_limits(&rules, &facts, limits).with_explanations();
        for (name, expected) in expected {
            let relation = rules.relation(&name).expect("it has rules");
            let streamed = || {
                let mut rows = Vec::new();
                let done = Evaluator::with_limits(&rules, &facts, limits).stream(relation, &mut |row| {
                    rows.push(row.to_vec());
                    ControlFlow::Continue(())
                });
                done.map(|()| rows)
            };
            let first = streamed();
            prop_assert_eq!(first.as_ref().map(Vec::len), Ok(expected.len()), "each row once: {} in\n{}", name, text);
            prop_assert_eq!(first, streamed(), "always in one order");
            // Every combination of known columns, those without rows too.
            for mask in 0..4u32 {
                for first in 0..9i64 {
                    let wanted = [(mask & 1 == 1).then_some(first), (mask & 2 == 2).then_some((first * 3 + 1) % 9)];
                    let pattern: Vec<Option<Value>> = wanted.iter().map(|known| known.and_then(Value::integer)).collect();
                    let rows: Vec<Vec<Value>> = expected
                        .iter()
                        .filter(|row| wanted.iter().zip(*row).all(|(known, value)| known.is_none_or(|known| known == *value)))
                        .map(|row| row.iter().copied().filter_map(Value::integer).collect())
                        .collect();
                    let new = || Evaluator::with_limits(&rules, &facts, limits);
                    prop_assert_eq!(new().query(relation, &pattern), Ok(rows.clone()), "{} {:?} in\n{}", name, pattern, text);
                    prop_assert_eq!(new().any(relation, &pattern), Ok(!rows.is_empty()));
                    prop_assert_eq!(shared.query(relation, &pattern), Ok(rows), "shared {}", text);
                }
            }
            for row in &expected {
                let row: Vec<Value> = row.iter().copied().filter_map(Value::integer).collect();
                let derivation = shared.explain(relation, &row, 9).expect("no limit").expect("it holds");
                prop_assert!(grounded(&derivation), "{derivation:?} in\n{text}");
            }
        }
    }
}

/// Whether each row of a relation is proved without circles, and all that a rule with a body gives has premises.
fn best_values_are_grounded(text: &str, relation: &str, facts: &Lists) -> bool {
    let parsed = program(text);
    let rules = compiled(text, facts);
    let relation = rules.relation(relation).expect("it exists");
    let mut evaluator = Evaluator::new(&rules, facts).with_explanations();
    let rows = evaluator.query(relation, &[None, None]).expect("no limit");
    rows.iter().all(|row| {
        let found = evaluator.explain(relation, row, 9).expect("no limit").expect("it holds");
        let complete = found.steps.iter().all(|step| match step.because {
            Cause::Rule(rule) => step.premises.is_empty() == parsed.rules[rule].body.is_empty(),
            _ => true,
        });
        complete && grounded(&found)
    })
}

/// Whether no row of a derivation rests on itself.
fn grounded(derivation: &Derivation) -> bool {
    let mut grounded = vec![false; derivation.steps.len()];
    loop {
        let before = grounded.clone();
        for (place, step) in derivation.steps.iter().enumerate() {
            grounded[place] = step.premises.iter().all(|premise| before[*premise]);
        }
        if grounded == before {
            return grounded.into_iter().all(|grounded| grounded);
        }
    }
}

pub mod naive {
    //! Random stratified programs, and their meaning by the book: every rule over everything, until nothing is new.

    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;

    use dyelog::datalog::ast::{Aggregate, Atom, Comparison, Condition, Operator, Program, Spanned, Term};
    use dyelog::datalog::check::check;
    use dyelog::datalog::codes::NEVER;
    use dyelog::diagnostic::Place;
    use proptest::prelude::*;

    use super::Lists;

    type Rows = BTreeMap<String, BTreeSet<Vec<i64>>>;
    /// A relation and the two variables of its columns.
    type Literal = (usize, usize, usize);
    type Bindings = BTreeMap<Arc<str>, i64>;

    const RELATIONS: [&str; 8] = ["edge", "mark", "a", "b", "c", "d", "e", "f"];

    /// Relations come in strata of two: `a` and `b`, `c` and `d`, `e` and `f`. Body literals stand in an order in which
    /// they can be worked off from left to right.
    pub fn program() -> impl Strategy<Value = String> {
        let rule = (
            2..8usize,
            prop::collection::vec((0..8usize, 0..4usize, 0..4usize), 1..4),
            0..8usize,
            0..8usize,
            any::<(u8, u8)>(),
        );
        prop::collection::vec(rule, 1..14).prop_map(|rules| {
            let some = RELATIONS[2..].iter().map(|name| format!("{name}(A, B) :- mark(A, B), A = B."));
            without_refused(some.chain(rules.into_iter().map(rule_text)).collect())
        })
    }

    /// The rules but for those that the checker refuses because they never hold.
    fn without_refused(mut rules: Vec<String>) -> String {
        let facts = Lists::default().edges("edge", []).edges("mark", []);
        loop {
            let text = rules.join("\n");
            let found = check(&super::program(&text), &facts.schema);
            let mut refused = found.iter().filter(|finding| finding.code == NEVER);
            let Some(Place::Range { start, .. }) = refused.next().map(|finding| &finding.place) else { return text };
            rules.remove(text[..*start].matches('\n').count());
        }
    }

    fn rule_text((head, atoms, negated, extra, (x, y)): (usize, Vec<Literal>, usize, usize, (u8, u8))) -> String {
        const NAMES: [&str; 4] = ["A", "B", "C", "D"];
        let stratum = head / 2 * 2;
        let mut known = Vec::new();
        let mut body = Vec::new();
        for (relation, first, second) in atoms {
            body.push(format!("{}({}, {})", RELATIONS[relation % (stratum + 2)], NAMES[first], NAMES[second]));
            known.extend([NAMES[first], NAMES[second]]);
        }
        let pick = |number: u8| known[usize::from(number) % known.len()];
        let lower = RELATIONS[negated % stratum];
        let (p, q) = (pick(x), pick(y));
        let mut columns = [p.to_owned(), q.to_owned()];
        match extra {
            0 => body.push(format!("!{lower}({p}, {q})")),
            1 => body.push(format!("!{lower}({p}, _), {p} != {q}")),
            2 => {
                body.push(format!("N = {p} * 2 - {q}, N < 9, N >= 0"));
                "N".clone_into(&mut columns[1]);
            }
            3 => {
                body.push(format!("N = count {{ {lower}({p}, L), L != {q} }}"));
                "N".clone_into(&mut columns[0]);
            }
            4 => {
                body.push(format!("N = max (L + {q}) {{ {lower}(L, {p}) }}, N < 9"));
                "N".clone_into(&mut columns[1]);
            }
            5 => {
                body.push(format!("N = sum L {{ {lower}(L, _), !mark(L, {p}) }}, N < 9"));
                "N".clone_into(&mut columns[0]);
            }
            6 => {
                body.push(format!("{p} < 8"));
                columns[0] = format!("{p}+1");
            }
            _ => body.push(format!("{lower}({p}, _)")),
        }
        format!("{}({}, {}) :- {}.", RELATIONS[head], columns[0], columns[1], body.join(", "))
    }

    /// The rows of each relation that has rules.
    pub fn run(program: &Program, facts: &Lists) -> Rows {
        let mut rows = Rows::new();
        for (name, list) in ["edge", "mark"].into_iter().zip(&facts.relations) {
            let list = list.iter().map(|row| row.iter().filter_map(|value| value.as_integer()).collect());
            rows.insert(name.to_owned(), list.collect());
        }
        for stratum in [["a", "b"], ["c", "d"], ["e", "f"]] {
            loop {
                let before = rows.clone();
                for rule in program.rules.iter().filter(|rule| stratum.contains(&&*rule.head.relation.value)) {
                    let head = &rule.head;
                    let found: Vec<Vec<i64>> = solve(&rule.body, vec![Bindings::new()], &rows)
                        .iter()
                        .filter_map(|bindings| head.arguments.iter().map(|term| value(&term.value, bindings)).collect())
                        .collect();
                    rows.entry(head.relation.value.to_string()).or_default().extend(found);
                }
                if rows == before {
                    break;
                }
            }
        }
        rows.retain(|name, _| program.rules.iter().any(|rule| *rule.head.relation.value == **name));
        rows
    }

    fn solve(body: &[Spanned<Condition>], mut all: Vec<Bindings>, rows: &Rows) -> Vec<Bindings> {
        for condition in body {
            let step = |bindings: &Bindings| -> Vec<Bindings> {
                match &condition.value {
                    Condition::Atom { negated: false, atom } => matches(atom, bindings, rows),
                    Condition::Atom { atom, .. } => {
                        if matches(atom, bindings, rows).is_empty() {
                            vec![bindings.clone()]
                        } else {
                            Vec::new()
                        }
                    }
                    Condition::Compare(left, comparison, right) => {
                        compare(&left.value, *comparison, &right.value, bindings)
                    }
                    Condition::Aggregate { result, function, over, body } => {
                        let inner = solve(body, vec![bindings.clone()], rows);
                        // `_` counts as a variable, which these programs use in the second column only.
                        let mut distinct = BTreeSet::new();
                        for found in inner {
                            let value = over.as_ref().map_or(Some(0), |over| value(&over.value, &found));
                            let wild = body.iter().filter_map(|part| match &part.value {
                                Condition::Atom { negated: false, atom } => Some(wildcards(atom, &found, rows)),
                                _ => None,
                            });
                            for row in wild.flatten() {
                                distinct.insert((found.clone(), row, value));
                            }
                        }
                        let values: Vec<i64> = distinct.iter().filter_map(|(_, _, value)| *value).collect();
                        let value = match function {
                            Aggregate::Count => Some(values.len() as i64),
                            Aggregate::Sum => Some(values.iter().sum()),
                            Aggregate::Min => values.iter().min().copied(),
                            Aggregate::Max => values.iter().max().copied(),
                            Aggregate::Mean | Aggregate::Percentile(_) => None,
                        };
                        let with = |value| {
                            let mut bindings = bindings.clone();
                            bindings.insert(Arc::clone(&result.value), value);
                            bindings
                        };
                        value.map(with).into_iter().collect()
                    }
                    Condition::NotStarts { .. } | Condition::Rounds { .. } => Vec::new(),
                }
            };
            all = all.iter().flat_map(step).collect();
        }
        all
    }

    /// The rows behind an atom all of whose variables are known: one a value of its wildcards.
    fn wildcards(atom: &Atom, bindings: &Bindings, rows: &Rows) -> Vec<Vec<i64>> {
        let all = rows.get(&*atom.relation.value).into_iter().flatten();
        let agrees = |row: &&Vec<i64>| {
            let terms = atom.arguments.iter().zip(*row);
            terms.into_iter().all(|(term, column)| {
                matches!(term.value, Term::Wildcard) || value(&term.value, bindings) == Some(*column)
            })
        };
        all.filter(agrees).cloned().collect()
    }

    fn matches(atom: &Atom, bindings: &Bindings, rows: &Rows) -> Vec<Bindings> {
        let mut found = Vec::new();
        for row in rows.get(&*atom.relation.value).into_iter().flatten() {
            let mut bindings = bindings.clone();
            let fits = atom.arguments.iter().zip(row).all(|(term, column)| match &term.value {
                Term::Variable(variable, 0) => {
                    *bindings.entry(Arc::clone(&variable.name)).or_insert(*column) == *column
                }
                Term::Wildcard => true,
                term => value(term, &bindings) == Some(*column),
            });
            if fits {
                found.push(bindings);
            }
        }
        found
    }

    fn compare(left: &Term, comparison: Comparison, right: &Term, bindings: &Bindings) -> Vec<Bindings> {
        let mut bindings = bindings.clone();
        let Some(right) = value(right, &bindings) else { return Vec::new() };
        if let (Term::Variable(variable, 0), Comparison::Equal) = (left, comparison) {
            bindings.entry(Arc::clone(&variable.name)).or_insert(right);
        }
        let Some(left) = value(left, &bindings) else { return Vec::new() };
        let holds = match comparison {
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
            Comparison::Less => left < right,
            Comparison::LessOrEqual => left <= right,
            Comparison::Greater => left > right,
            Comparison::GreaterOrEqual => left >= right,
        };
        if holds { vec![bindings] } else { Vec::new() }
    }

    fn value(term: &Term, bindings: &Bindings) -> Option<i64> {
        match term {
            Term::Integer(number) => Some(*number),
            Term::Variable(variable, offset) => bindings.get(&variable.name)?.checked_add(*offset),
            Term::Arithmetic(left, operator, right) => {
                let (left, right) = (value(&left.value, bindings)?, value(&right.value, bindings)?);
                match operator {
                    Operator::Add => left.checked_add(right),
                    Operator::Subtract => left.checked_sub(right),
                    Operator::Multiply => left.checked_mul(right),
                    Operator::Divide => left.checked_div(right),
                    Operator::Remainder => left.checked_rem(right),
                }
            }
            Term::Wildcard | Term::Float(_) | Term::Symbol(_) => None,
        }
    }
}
