//! Whole relations: one run of ours and one of ascent on the same rows, with the ratio; DuckDB where it is installed.

use std::ops::ControlFlow;
use std::process::Command;
use std::time::Instant;

use dyelog_datalog::base::{BaseFacts, BaseRelation, BaseSchema, Type};
use dyelog_datalog::eval::{Evaluator, Limits, Watch, compile};
use dyelog_datalog::syntax::load;
use dyelog_datalog::value::Value;

/// Events: half of them fork the other half.
const EVENTS: u32 = 1_000_000;
const TASKS: u32 = 200;
/// A chain whose closure has 4·10⁷ pairs.
const CLOSED: u32 = 9_000;
const CHAIN: u32 = 1_000_000;

type Pairs = Vec<(u32, u32)>;

/// Pairs of numbers in lists, sorted by the first one: by that they are found by bisection.
struct Lists(Vec<Pairs>);

impl BaseFacts for Lists {
    fn lookup(
        &self,
        relation: BaseRelation,
        pattern: &[Option<Value>],
        out: &mut dyn FnMut(&[Value]) -> ControlFlow<()>,
    ) {
        let rows = &self.0[relation.0 as usize];
        let first = pattern[0].and_then(Value::as_integer);
        let start = first.map_or(0, |first| rows.partition_point(|row| i64::from(row.0) < first));
        for (from, to) in rows[start..].iter().take_while(|row| first.is_none_or(|first| first == i64::from(row.0))) {
            let row = [Value::from(*from), Value::from(*to)];
            if pattern[1].is_none_or(|second| second == row[1]) && out(&row).is_break() {
                return;
            }
        }
    }

    fn estimate(&self, relation: BaseRelation, bound: u32) -> u64 {
        if bound & 1 == 1 { 2 } else { self.0[relation.0 as usize].len() as u64 }
    }

    fn symbol(&self, _: &str) -> Option<Value> {
        None
    }
}

/// Seconds and rows of a relation, streamed.
fn ours(text: &str, names: &[&str], facts: &Lists, relation: &str, watch: Option<&Watch<'_>>) -> (f64, usize) {
    let mut schema = BaseSchema::new();
    for name in names {
        schema.add(name, &[Type::Integer, Type::Integer]);
    }
    let program = load("bench.dl", text, &|_| None).expect("the rules can be read");
    let rules = compile(&program, &schema).expect("the rules are sound");
    let relation = rules.relation(relation).expect("it has rules");
    let mut rows = 0;
    let start = Instant::now();
    Evaluator::with_limits(&rules, facts, Limits { rows: 100_000_000, ..Limits::default() })
        .stream_each(&[relation], watch, &mut |_, _| {
            rows += 1;
            ControlFlow::Continue(())
        })
        .expect("no limit is reached");
    (start.elapsed().as_secs_f64(), rows)
}

mod reference {
    #![allow(clippy::pedantic, reason = "code of ascent")]

    use ascent::ascent;

    ascent! {
        pub struct Paths;
        relation fork(u32, u32);
        relation task(u32, u32);
        relation call(u32, u32);
        relation path(u32, u32);
        call(a, b) <-- fork(x, y), task(x, a), task(y, b);
        path(a, b) <-- call(a, b);
        path(a, c) <-- path(a, b), call(b, c);
    }

    ascent! {
        pub struct Closure;
        relation edge(u32, u32);
        relation reach(u32, u32);
        reach(x, y) <-- edge(x, y);
        reach(x, z) <-- reach(x, y), edge(y, z);
    }

    ascent! {
        pub struct Longest;
        relation edge(u32, u32);
        lattice longest(u32, u32);
        longest(x, 0) <-- edge(x, _), !edge(_, x);
        longest(y, d + 1) <-- longest(x, d), edge(x, y);
    }

    pub fn paths(fork: super::Pairs, task: super::Pairs) -> Paths {
        Paths { fork, task, ..Default::default() }
    }

    pub fn closure(edge: super::Pairs) -> Closure {
        Closure { edge, ..Default::default() }
    }

    pub fn longest(edge: super::Pairs) -> Longest {
        Longest { edge, ..Default::default() }
    }
}

/// Prints the comparison.
pub fn compare() {
    println!("{:<44}{:>10}{:>10}{:>8}{:>14}", "whole relations, seconds", "ours", "ascent", "ratio", "DuckDB");
    let (fork, task) = events();
    let text = "call(A, B) :- fork(X, Y), task(X, A), task(Y, B).
        path(A, B) :- call(A, B). path(A, C) :- path(A, B), call(B, C).";
    let facts = Lists(vec![fork.clone(), task.clone()]);
    let found = ours(text, &["fork", "task"], &facts, "path", None);
    let mut paths = reference::paths(fork, task);
    let start = Instant::now();
    paths.run();
    line("call paths of tasks over 10^6 events", found, (start.elapsed().as_secs_f64(), paths.path.len()), duckdb());

    let chain: Pairs = (1..CLOSED).map(|node| (node - 1, node)).collect();
    let text = "reach(X, Y) :- edge(X, Y). reach(X, Z) :- reach(X, Y), edge(Y, Z).";
    let facts = Lists(vec![chain.clone()]);
    let found = ours(text, &["edge"], &facts, "reach", None);
    let origin = Instant::now();
    let clock = || origin.elapsed().as_nanos() as u64;
    let watch = Watch { clock: &clock, interrupted: &|| false };
    let profiled = ours(text, &["edge"], &facts, "reach", Some(&watch));
    let mut closure = reference::closure(chain);
    let start = Instant::now();
    closure.run();
    line("closure of 4·10^7 pairs", found, (start.elapsed().as_secs_f64(), closure.reach.len()), None);
    drop(closure);
    println!("{:<44}{:>10.3}", "  the same with a profile", profiled.0);

    let text = "longest(X, 0) :- edge(X, _), !edge(_, X).
        longest(Y, D) :- D = max L { edge(X, Y), longest(X, P), L = P + 1 }.";
    let chain: Pairs = (1..CHAIN).map(|node| (node - 1, node)).collect();
    let found = ours(text, &["edge"], &Lists(vec![chain.clone()]), "longest", None);
    let mut longest = reference::longest(chain);
    let start = Instant::now();
    longest.run();
    line("longest chain of 10^6 nodes", found, (start.elapsed().as_secs_f64(), longest.longest.len()), None);
    let shortcuts: Pairs = (1..CHAIN).flat_map(|node| [(node - 1, node), (node - 1, node + 1)]).collect();
    let (time, rows) = ours(text, &["edge"], &Lists(vec![shortcuts]), "longest", None);
    println!("{:<44}{time:>10.3}    {rows} rows", "the same with as many shortcuts");
}

fn line(case: &str, ours: (f64, usize), theirs: (f64, usize), duckdb: Option<String>) {
    assert_eq!(ours.1, theirs.1, "both find the same number of rows");
    let duckdb = duckdb.unwrap_or_else(|| "-".to_owned());
    println!("{case:<44}{:>10.3}{:>10.3}{:>8.2}{duckdb:>14}", ours.0, theirs.0, ours.0 / theirs.0);
}

/// Which event forks which, and the task of each.
fn events() -> (Pairs, Pairs) {
    let (mut fork, mut task) = (Pairs::new(), Pairs::new());
    for pair in 0..EVENTS / 2 {
        fork.push((2 * pair, 2 * pair + 1));
        task.push((2 * pair, pair % TASKS));
        task.push((2 * pair + 1, pair % TASKS + 1 + pair / TASKS % 5));
    }
    (fork, task)
}

/// Seconds that DuckDB takes for the call paths, by the module of Python's.
fn duckdb() -> Option<String> {
    let script = format!(
        "import duckdb, time
c = duckdb.connect()
c.execute('set threads to 1')
c.execute('create table fork as select 2*i x, 2*i+1 y from range({half}) t(i)')
c.execute('create table task as select 2*i n, i%{TASKS} t from range({half}) t(i) union all select 2*i+1, i%{TASKS}+1+i//{TASKS}%5 from range({half}) t(i)')
s = time.perf_counter()
n = c.execute('''with recursive call as materialized (select distinct a.t a, b.t b from fork join task a on a.n = x join task b on b.n = y),
path as (select a, b from call union select path.a, call.b from path join call on path.b = call.a) select count(*) from path''').fetchone()[0]
print('%.3f' % (time.perf_counter() - s))",
        half = EVENTS / 2
    );
    let output = Command::new("python3").args(["-c", &script]).output().ok()?;
    let seconds = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Some(if output.status.success() { seconds } else { "not installed".to_owned() })
}
