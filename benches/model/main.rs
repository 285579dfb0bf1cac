//! Cost of making a model of a trace in the native format, against only parsing it into events; and how it grows.

#[path = "../../tests/suite/generator.rs"]
mod generator;

use std::ops::ControlFlow;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use dyelog::lqn::Model;
use dyelog::model::{self, Configuration};
use dyelog::tlc::{ReduceOptions, Reducer, Rules};
use dyelog::trace::{Operation, ReadOptions, TraceNames, read};
use generator::{Generator, Shape};

const EVENTS: usize = 1_000_000;
const TURNS: usize = 5;

static RULES: LazyLock<Rules> = LazyLock::new(Rules::shipped);
static RUNS: LazyLock<String> = LazyLock::new(|| text(EVENTS, 1000));
static ONE_RUN: LazyLock<String> = LazyLock::new(|| text(EVENTS, EVENTS));

/// A trace of that many events in operations of about that size.
fn text(events: usize, size: usize) -> String {
    let mut generator = Generator::new(1, Shape { tasks: 300, ..Shape::default() });
    let mut text = String::new();
    let mut made = 0;
    let mut run = 0;
    while made < events {
        run += 1;
        let operation = generator.operation(&run.to_string(), size.min(events - made)).operation;
        made += operation.events.len();
        text += &generator.text([&operation]);
    }
    text
}

fn parse(text: &str) -> u64 {
    let mut names = TraceNames::new();
    let mut sink = |_: &TraceNames, operation: Operation| {
        divan::black_box(operation.events.len());
        ControlFlow::Continue(())
    };
    let report = read("trace.angio", text.as_bytes(), &ReadOptions::default(), &mut names, &mut sink);
    report.expect("it was written so").events
}

fn model(text: &str, threads: usize) -> Model {
    let mut names = TraceNames::new();
    let mut reducer = Reducer::new(&RULES, ReduceOptions { threads, ..ReduceOptions::default() });
    read("trace.angio", text.as_bytes(), &ReadOptions::default(), &mut names, &mut reducer).expect("it was written so");
    let reduction = reducer.finish(&names).expect("it is well-formed");
    assert_eq!(reduction.processed, reduction.nodes);
    model::complete(&reduction.submodel, &Configuration::default()).expect("there is something to model").0
}

fn time<T>(run: impl FnOnce() -> T) -> Duration {
    let begin = Instant::now();
    divan::black_box(run());
    begin.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn compare(title: &str, text: &str) {
    let mut times: [Vec<Duration>; 3] = Default::default();
    for _ in 0..TURNS {
        times[0].push(time(|| parse(text)));
        times[1].push(time(|| model(text, 1)));
        times[2].push(time(|| model(text, 2)));
    }
    let [parsing, one, two] = times.map(median);
    let ratio = |time: Duration| time.as_secs_f64() / parsing.as_secs_f64();
    println!("{title}: {} events, {} MB", parse(text), text.len() / 1_000_000);
    println!(
        "  parsing {:.0} ms; model {:.0} ms, ratio {:.2} (bar 2.5); on two threads {:.0} ms, ratio {:.2}",
        parsing.as_secs_f64() * 1e3,
        one.as_secs_f64() * 1e3,
        ratio(one),
        two.as_secs_f64() * 1e3,
        ratio(two)
    );
}

fn main() {
    compare("operations of 1000 events", &RUNS);
    compare("one operation", &ONE_RUN);
    println!("growth, operations of 1000 events, then one operation:");
    for size in [1000, usize::MAX] {
        for events in [100_000, 1_000_000, 10_000_000] {
            let text = text(events, size);
            let taken = median((0..3).map(|_| time(|| model(&text, 1))).collect());
            println!("  {events:>8} events: {:.0} ns/event", taken.as_secs_f64() * 1e9 / events as f64);
        }
    }
    divan::main();
}

#[divan::bench(sample_count = 3)]
fn parsing() -> u64 {
    parse(&RUNS)
}

#[divan::bench(sample_count = 3, args = [1, 2])]
fn modelling(threads: usize) -> Model {
    model(&RUNS, threads)
}
