//! Evaluation of Datalog rules.

use std::ops::ControlFlow;

use dyelog::datalog::ast::Program;
use dyelog::datalog::base::{BaseFacts, BaseRelation, BaseSchema, Type};
use dyelog::datalog::eval::{Cause, CompiledRules, Derivation, Evaluator, Limits, Relation, compile};
use dyelog::datalog::syntax::load;
use dyelog::datalog::value::Value;
use dyelog::names::Names;
use proptest::prelude::*;

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

/// A small random graph and a random program over it, for comparison with other evaluations.
fn graph() -> impl Strategy<Value = Vec<(u32, u32)>> {
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

proptest! {
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
                let derivation = shared.explain(relation, &row).expect("no limit").expect("it holds");
                prop_assert!(grounded(&derivation), "{derivation:?} in\n{text}");
            }
        }
    }
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

mod naive {
    //! Random stratified programs, and their meaning by the book: every rule over everything, until nothing is new.

    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;

    use dyelog::datalog::ast::{Aggregate, Atom, Comparison, Condition, Operator, Program, Spanned, Term};
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
            let rules: Vec<String> = some.chain(rules.into_iter().map(rule_text)).collect();
            rules.join("\n")
        })
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
            Term::Wildcard | Term::Symbol(_) => None,
        }
    }
}
