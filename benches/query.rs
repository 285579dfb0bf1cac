//! How fast questions are answered, against only parsing the same bytes as JSON and against ascent, in one run.
//!
//! `cargo bench --bench query`. Prints figures and is none of divan's: one input of 10^6 spans takes seconds. The input is one trace of
//! 10^6 spans, of OTLP JSON in one document; answers are counted and not written.

#[path = "query/oracle.rs"]
mod oracle;

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::time::Instant;

use dyelog::datalog::eval::{Evaluator, Watch, compile};
use dyelog::datalog::syntax;
use dyelog::query::{Answering, Cell, Question, Questioned, Rows, Scope, TraceFacts, schema, standard};
use dyelog::tlc::Rules;
use dyelog::trace::spans::{self, SpanOptions};
use dyelog::trace::{Format, Operation, Sink, SpanTree, Toeg, TraceNames, Wanted};
use std::sync::Arc;

const SPANS: u64 = 1_000_000;

/// A tree in which each span has four children, one after the other, each within a fifth of it.
fn input() -> String {
    let mut text = String::from(
        r#"{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"s"}}]},"scopeSpans":[{"spans":["#,
    );
    let mut stretches: Vec<(u64, u64)> = vec![(1_700_000_000_000_000_000, 1_700_000_000_000_000_000 + (1 << 40))];
    for number in 0..SPANS {
        if number > 0 {
            let (from, to) = stretches[((number - 1) / 4) as usize];
            let fifth = ((to - from) / 5).max(1);
            let start = from + fifth * ((number - 1) % 4) + fifth / 2;
            stretches.push((start, start + fifth));
        }
        let (from, to) = stretches[number as usize];
        let parent =
            if number == 0 { String::new() } else { format!(r#""parentSpanId":"{:016x}","#, (number - 1) / 4 + 1) };
        let comma = if number == 0 { "" } else { "," };
        let _ = write!(
            text,
            r#"{comma}{{"traceId":"{:032x}","spanId":"{:016x}",{parent}"name":"n{}","kind":1,"startTimeUnixNano":"{from}","endTimeUnixNano":"{to}","attributes":[{{"key":"http.status_code","value":{{"intValue":"200"}}}}]}}"#,
            1,
            number + 1,
            number % 100
        );
    }
    text.push_str("]}]}]}");
    text
}

struct Count(u64);

impl Rows for Count {
    fn row(&mut self, _: usize, _: Option<(&str, &str)>, _: &[Cell<'_>]) -> ControlFlow<()> {
        self.0 += 1;
        ControlFlow::Continue(())
    }
}

/// Keeps operations, so that asking is timed by itself.
struct Keep {
    wanted: Arc<Wanted>,
    spans: Option<SpanTree>,
    kept: Vec<Questioned>,
}

impl Sink for Keep {
    fn wanted(&self) -> Arc<Wanted> {
        Arc::clone(&self.wanted)
    }

    fn spans(&mut self, _: &TraceNames, spans: SpanTree) {
        self.spans = Some(spans);
    }

    fn operation(&mut self, _: &TraceNames, operation: Operation) -> ControlFlow<()> {
        let spans = self.spans.take();
        if let Ok(toeg) = Toeg::build(operation) {
            self.kept.push(Questioned { toeg, spans });
        }
        ControlFlow::Continue(())
    }
}

fn seconds<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = work();
    println!("{:>8.3} s  {what}", start.elapsed().as_secs_f64());
    done
}

fn read(text: &str, wanted: Wanted) -> (Keep, TraceNames) {
    let (mut keep, mut names) = (Keep { wanted: Arc::new(wanted), spans: None, kept: Vec::new() }, TraceNames::new());
    spans::read(Format::Otlp, "bench", text.as_bytes(), SpanOptions::default(), &mut names, &mut keep)
        .expect("the input is sound");
    (keep, names)
}

/// Seconds that this thread was on a processor, so that other load counts little; those that passed where the system does not tell.
fn spent(origin: Instant) -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let told = told.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    told.map_or_else(|| origin.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}

/// What it costs to watch rules: the same question with a clock that is looked at and without one, in turn, the least time of each.
fn profile(kept: &[Questioned], names: &TraceNames, rules: &Rules) {
    for (what, text) in [
        ("a join", "q(A, D) :- parent(A, B), parent(B, C), parent(C, D)."),
        ("a recursion", "q(S, N) :- root(S), N = 0. q(C, M) :- q(P, N), parent(C, P), M = N + 1."),
        (
            "aggregates",
            "q(P, N, M) :- parent(_, P), N = count { parent(C, P) }, M = max D { parent(C, P), duration(C, D) }.",
        ),
    ] {
        let loaded = syntax::read("bench.dl", text, &standard::text);
        let compiled = compile(&loaded.program, schema::schema()).expect("the rules are sound");
        let relation = compiled.relation("q").expect("it is defined");
        let begin = Instant::now();
        let clock = || u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let watch = Watch { clock: &clock, interrupted: &|| false };
        let facts = TraceFacts::new(kept.iter(), names, rules);
        let mut least = [f64::INFINITY; 2];
        // The first round fills the tables of facts, and does not count.
        for round in 0..6 {
            for (watch, least) in [None, Some(&watch)].into_iter().zip(&mut least) {
                let mut rows = 0_u64;
                let start = spent(begin);
                let mut evaluator = Evaluator::new(&compiled, &facts);
                let streamed = evaluator.stream_each(&[relation], watch, &mut |_, _| {
                    rows += 1;
                    ControlFlow::Continue(())
                });
                streamed.expect("the limits suffice");
                std::hint::black_box(rows);
                if round > 0 {
                    *least = least.min(spent(begin) - start);
                }
            }
        }
        let [without, with] = least;
        println!("{with:>8.3} s  profile of {what}, {without:.3} s without: {:.2} times", with / without);
    }
}

fn main() {
    let text = input();
    println!("10^6 spans, {} MB of OTLP JSON", text.len() >> 20);
    seconds("parse the bytes as JSON, nothing kept", || {
        serde_json::from_str::<serde::de::IgnoredAny>(&text).expect("it is JSON")
    });
    seconds("read operations, no spans kept", || read(&text, Wanted::default()));
    let wanted = Wanted { spans: true, ..Wanted::default() };
    let (keep, names) = seconds("read operations and spans", || read(&text, wanted));
    let rules = Rules::shipped();
    profile(&keep.kept, &names, &rules);
    oracle::compare(&keep.kept, &names, &rules);
    for (what, rule) in [
        ("self time of each span", "q(S, T) :- self_time(S, T)."),
        ("critical path", "q(S, F, E) :- critical(S, F, E)."),
        ("spans by service and their time", "q(N, T) :- span(_, _, N), T = sum D { span(S, _, N), duration(S, D) }."),
        ("longest child of each span", "q(P, M) :- parent(_, P), M = max D { parent(C, P), duration(C, D) }."),
        ("retries", "use \"std/retries.dl\" q(A, B) :- retry(A, B)."),
    ] {
        let loaded = syntax::read("bench.dl", rule, &standard::text);
        let question =
            Question::new(&loaded.program, loaded.diagnostics, 0, &[], Scope::Operation).expect("the rules are sound");
        let mut rows = Count(0);
        seconds(what, || {
            let mut answering = Answering::new(&question, &rules, &mut rows);
            let all: Vec<&Questioned> = keep.kept.iter().collect();
            let _ = answering.answer(&all, &names);
            answering.finish(&names).expect("the limits suffice")
        });
        println!("            {} rows", rows.0);
    }
}
