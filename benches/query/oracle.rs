//! The same questions by ascent, whose rules are compiled, on the same spans in the same run.
//!
//! Self time needs an aggregate written for it there; with us it is a fact. The critical path is left out: which child is next depends on
//! the one before, and that is neither a lattice nor stratified.

use std::ops::ControlFlow;
use std::time::Instant;

use dyelog::datalog::eval::{Evaluator, compile};
use dyelog::datalog::syntax;
use dyelog::query::{Questioned, TraceFacts, schema, standard};
use dyelog::tlc::Rules;
use dyelog::trace::TraceNames;

mod reference {
    #![allow(clippy::pedantic, reason = "code of ascent")]

    use ascent::ascent;

    ascent! {
        pub struct SelfTime;
        relation span(u32, i64, i64);
        relation parent(u32, u32);
        relation child(u32, i64, i64);
        relation own(u32, i64);
        child(p, f, t) <-- parent(c, p), span(c, f, t);
        own(s, t - f - covered) <-- span(s, f, t), agg covered = super::covered(a, b) in child(s, a, b);
    }

    ascent! {
        pub struct CallPaths;
        relation name(u32, u32);
        relation parent(u32, u32);
        relation call(u32, u32);
        relation path(u32, u32);
        call(a, b) <-- parent(c, p), name(p, a), name(c, b);
        path(a, b) <-- call(a, b);
        path(a, c) <-- path(a, b), call(b, c);
    }

    pub fn self_time(span: Vec<(u32, i64, i64)>, parent: Vec<(u32, u32)>) -> SelfTime {
        SelfTime { span, parent, ..Default::default() }
    }

    pub fn call_paths(name: Vec<(u32, u32)>, parent: Vec<(u32, u32)>) -> CallPaths {
        CallPaths { name, parent, ..Default::default() }
    }
}

/// The length of the union of stretches.
fn covered<'a>(stretches: impl Iterator<Item = (&'a i64, &'a i64)>) -> impl Iterator<Item = i64> {
    let mut sorted: Vec<(i64, i64)> = stretches.map(|(from, to)| (*from, *to)).collect();
    sorted.sort_unstable();
    let (mut total, mut end) = (0, i64::MIN);
    for (from, to) in sorted {
        total += (to - from.max(end)).max(0);
        end = end.max(to);
    }
    std::iter::once(total)
}

/// Seconds, and how many rows of `q` there are.
fn ours(text: &str, kept: &[Questioned], names: &TraceNames, rules: &Rules) -> (f64, u64) {
    let loaded = syntax::read("bench.dl", text, &standard::text);
    let compiled = compile(&loaded.program, schema::schema()).expect("the rules are sound");
    let relation = compiled.relation("q").expect("it is defined");
    let start = Instant::now();
    let facts = TraceFacts::new(kept.iter(), names, rules);
    let mut rows = 0;
    let streamed = Evaluator::new(&compiled, &facts).stream(relation, &mut |_| {
        rows += 1;
        ControlFlow::Continue(())
    });
    streamed.expect("the limits suffice");
    (start.elapsed().as_secs_f64(), rows)
}

/// Seconds of a run, with what it gives.
fn timed<T>(run: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let done = run();
    (start.elapsed().as_secs_f64(), done)
}

/// Prints the comparison; both must have as many rows. Tables of ours are filled within its time.
pub fn compare(kept: &[Questioned], names: &TraceNames, rules: &Rules) {
    let (mut span, mut name, mut parent) = (Vec::new(), Vec::new(), Vec::new());
    let mut first = 0;
    for tree in kept.iter().filter_map(|one| one.spans.as_ref()) {
        for (number, one) in (first..).zip(&tree.spans) {
            span.push((number, one.start, one.end));
            name.push((number, one.name.0));
            parent.extend(one.parent.map(|parent| (number, first + parent)));
        }
        first += tree.spans.len() as u32;
    }
    let rows = |what: &str, ours: (f64, u64), theirs: (f64, usize)| {
        assert_eq!(ours.1, theirs.1 as u64, "{what}");
        println!("{:>8.3} s  {what}; ascent {:.3} s: {:.2} times", ours.0, theirs.0, ours.0 / theirs.0);
    };
    let found = ours("q(S, T) :- self_time(S, T).", kept, names, rules);
    let mut program = reference::self_time(span, parent.clone());
    let (time, ()) = timed(|| program.run());
    rows("self time of each span", found, (time, program.own.len()));
    let text = "call(A, B) :- parent(C, P), span(P, _, A), span(C, _, B).\n\
                q(A, B) :- call(A, B).\nq(A, C) :- q(A, B), call(B, C).";
    let found = ours(text, kept, names, rules);
    let mut program = reference::call_paths(name, parent);
    let (time, ()) = timed(|| program.run());
    rows("call paths between names", found, (time, program.path.len()));
}
