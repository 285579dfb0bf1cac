//! What an observer's guards cost, beside named peers, in one run: rounds of all of them take turns, so that what disturbs the machine disturbs all.
//!
//! `cargo bench -p dyelog-probe --bench observer`. Exit code 1 where a bar is missed.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use dyelog_probe::observer::{Input, Observer, Output, Request, Service, Transport, TransportError};
use dyelog_probe::{Form, Function, Mode, Recorder};
use rustix::time::{ClockId, clock_gettime};

static SERVE: Input = Input::new("Bench", "serve", Service::Synchronous);
static CALL: Output = Output::new("Bench", "call", Request::Synchronous);
static PROBED: Function = Function::new("Bench", "probed");
const ROUNDS: usize = 15;
const CALLS: u32 = 100_000;
/// The most that a pair may cost, nanoseconds.
const BAR: f64 = 100.0;
/// Operations of a paced run, ten a millisecond, and pairs of such runs, with an observer and without.
const PACED: u32 = 20_000;
const PAIRS: usize = 9;
/// The most that an observer may take of a processor.
const PART: f64 = 0.01;

struct Nowhere;

impl Transport for Nowhere {
    fn put(&mut self, report: &str) -> Result<(), TransportError> {
        black_box(report);
        Ok(())
    }
}

/// Nanoseconds of one run of `act`, on the mean of a round.
fn mean(mut act: impl FnMut()) -> f64 {
    (0..1000).for_each(|_| act());
    let begin = Instant::now();
    for _ in 0..CALLS {
        act();
    }
    begin.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

fn observed(act: impl FnMut()) -> f64 {
    let observer = Observer::of("bench", "bench").interval(Duration::from_millis(100)).start(Nowhere);
    let observer = observer.expect("rounds take turns");
    let cost = mean(act);
    assert!(observer.finish().is_clean());
    cost
}

fn probed() -> f64 {
    let recorder = Recorder::of("bench").mode(Mode::Wall).sink(Form::Binary, std::io::sink());
    let recorder = recorder.start().expect("rounds take turns");
    let outer = PROBED.enter();
    let cost = mean(|| drop(black_box(PROBED.enter())));
    drop(outer);
    assert!(recorder.finish().is_clean());
    cost
}

fn fastrace_span() -> f64 {
    // A root holds a few thousand local spans, so that each thousand has its own.
    let thousand = || {
        let root = fastrace::Span::root("root", fastrace::prelude::SpanContext::random());
        let _parent = root.set_local_parent();
        (0..1000).for_each(|_| drop(black_box(fastrace::local::LocalSpan::enter_with_local_parent("call"))));
    };
    let begin = Instant::now();
    (0..CALLS / 1000).for_each(|_| thousand());
    begin.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

/// Processor time of the process, nanoseconds.
fn used() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// Processors that 10,000 operations a second take, each of which calls another one and works for 10 µs.
fn paced(is_observed: bool) -> f64 {
    let observer = is_observed.then(|| {
        let observer = Observer::of("bench", "bench").interval(Duration::from_secs(1)).start(Nowhere);
        observer.expect("rounds take turns")
    });
    let (begin, before) = (Instant::now(), used());
    for batch in 1..=PACED / 10 {
        for _ in 0..10 {
            let serving = SERVE.start();
            let end = Instant::now() + Duration::from_micros(10);
            let calling = CALL.start();
            while Instant::now() < end {
                std::hint::spin_loop();
            }
            drop(calling);
            drop(serving);
        }
        std::thread::sleep((begin + Duration::from_millis(u64::from(batch))).saturating_duration_since(Instant::now()));
    }
    let (used, time) = (used() - before, begin.elapsed().as_nanos() as f64);
    if let Some(observer) = observer {
        assert!(observer.finish().is_clean());
    }
    used / time
}

/// Prints what observing takes of a processor at 10,000 operations a second; whether that is too much.
fn at_a_rate() -> bool {
    let mut more: Vec<f64> = (0..PAIRS).map(|_| paced(true) - paced(false)).collect();
    more.sort_by(f64::total_cmp);
    let middle = more[PAIRS / 2];
    let (least, most) = (100.0 * more[1], 100.0 * more[PAIRS - 2]);
    println!("observing 10,000 operations a second: {:.2} % of a processor  ({least:.2} to {most:.2})", 100.0 * middle);
    middle > PART
}

fn main() -> ExitCode {
    let served = || drop(black_box(SERVE.start()));
    let called = || drop(black_box(CALL.start()));
    let names = [
        "two reads of the clock on the wall",
        "guard pair, nothing observes",
        "guard pair, input operation",
        "guard pair, output operation",
        "probe pair (a record each)",
        "fastrace span",
    ];
    let mut rounds: Vec<[f64; 6]> = Vec::new();
    for _ in 0..ROUNDS {
        let clock = mean(|| {
            black_box(Instant::now());
            black_box(Instant::now());
        });
        rounds.push([clock, mean(served), observed(served), observed(called), probed(), fastrace_span()]);
    }
    let mut missed = at_a_rate();
    for (place, name) in names.iter().enumerate() {
        let mut own: Vec<f64> = rounds.iter().map(|round| round[place]).collect();
        own.sort_by(f64::total_cmp);
        let middle = own[ROUNDS / 2];
        println!("{name:<40} {middle:7.1} ns  ({:.1} to {:.1})", own[1], own[ROUNDS - 2]);
        missed |= (2..4).contains(&place) && middle > BAR;
    }
    if missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
