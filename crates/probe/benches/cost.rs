//! What a probe costs, beside named peers, in one run: rounds of all of them take turns, so that what disturbs the machine disturbs all.
//!
//! `cargo bench -p dyelog-probe --bench cost`. A probe is one end of a call; a call has two. Exit code 1 where a bar is missed.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use dyelog_probe::{Form, Function, Mode, Recorder, WallClock};

static CALL: Function = Function::new("Bench", "call");
const ROUNDS: usize = 15;
const CALLS: u32 = 100_000;

/// Nanoseconds of one run of `act`, on the mean of a round.
fn mean(mut act: impl FnMut()) -> f64 {
    let begin = Instant::now();
    for _ in 0..CALLS {
        act();
    }
    begin.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

/// A round of calls in a call around them, so that all of them are in one chain.
fn recorded(mode: Mode, clock: WallClock) -> f64 {
    let file = tempfile::NamedTempFile::new().expect("there is a folder for temporary files");
    let recorder = Recorder::of("bench").mode(mode).clock(clock).file(Form::Binary, file.path());
    let recorder = recorder.start().expect("rounds take turns");
    let outer = CALL.enter();
    // What is set up at the first probe of a thread is no part of it.
    (0..1000).for_each(|_| call());
    let cost = mean(call);
    drop(outer);
    let summary = recorder.finish();
    assert!(summary.is_clean(), "{summary}");
    cost
}

/// Takes what fastrace collects, and leaves it.
struct Nowhere;

impl fastrace::collector::Reporter for Nowhere {
    fn report(&mut self, spans: Vec<fastrace::prelude::SpanRecord>) {
        drop(black_box(spans));
    }
}

/// A root holds a few thousand local spans and drops all further ones, so each thousand has its own.
fn fastrace_spans() -> f64 {
    const SPANS: u32 = 1000;
    let thousand = || {
        let root = fastrace::Span::root("root", fastrace::prelude::SpanContext::random());
        let _parent = root.set_local_parent();
        for _ in 0..SPANS {
            let _span = fastrace::local::LocalSpan::enter_with_local_parent("call");
            empty();
        }
    };
    let begin = Instant::now();
    (0..CALLS / SPANS).for_each(|_| thousand());
    begin.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

fn tracing_spans() -> f64 {
    tracing::subscriber::with_default(tracing_subscriber::registry(), || {
        mean(|| {
            let _span = tracing::info_span!("call").entered();
            empty();
        })
    })
}

#[inline(never)]
fn empty() {
    black_box(());
}

/// An empty call with probes at both ends.
fn call() {
    let _call = CALL.enter();
    empty();
}

/// What is measured: its name, how many probes one run of it stands for (0 for what is no pair of probes), and a round.
type Subject = (&'static str, f64, Box<dyn FnMut() -> f64>);

fn subjects() -> Vec<Subject> {
    let probe = |name, mode, clock| -> Subject { (name, 2.0, Box::new(move || recorded(mode, clock))) };
    vec![
        ("empty call", 1.0, Box::new(|| mean(empty))),
        ("clock on the wall, one read", 1.0, Box::new(|| mean(|| _ = black_box(Instant::now())))),
        ("thread CPU, one read", 1.0, Box::new(|| mean(|| _ = black_box(thread_cpu())))),
        ("probe, disabled", 2.0, Box::new(|| mean(call))),
        probe("probe, wall", Mode::Wall, WallClock::System),
        probe("probe, wall, fast clock", Mode::Wall, WallClock::Fast),
        probe("probe, cpu", Mode::Cpu, WallClock::System),
        probe("probe, both", Mode::Both, WallClock::System),
        probe("probe, both, fast clock", Mode::Both, WallClock::Fast),
        ("fastrace, local span", 2.0, Box::new(fastrace_spans)),
        ("tracing, span in a bare registry", 2.0, Box::new(tracing_spans)),
    ]
}

fn thread_cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

fn main() -> ExitCode {
    // `cargo test --benches` wants to see that it runs, not what it measures.
    let rounds = if std::env::args().any(|argument| argument == "--bench") { ROUNDS } else { 1 };
    fastrace::set_reporter(Nowhere, fastrace::collector::Config::default());
    let mut subjects = subjects();
    let mut costs = vec![Vec::new(); subjects.len()];
    for _ in 0..rounds {
        for ((_, _, round), costs) in subjects.iter_mut().zip(&mut costs) {
            costs.push(round());
        }
    }
    println!("{:<36}{:>14}{:>14}{:>14}", "", "call, least", "call, median", "probe, least");
    let mut least = Vec::new();
    for ((name, probes, _), costs) in subjects.iter().zip(&mut costs) {
        costs.sort_by(f64::total_cmp);
        let per_probe = costs[0] / probes;
        least.push(per_probe);
        println!("{name:<36}{:>11.1} ns{:>11.1} ns{per_probe:>11.1} ns", costs[0], costs[costs.len() / 2]);
    }
    let bars = [
        ("wall probe", least[4], 100.0, "ns"),
        ("CPU probe", least[6] / least[2], 1.3, "reads of the clock"),
        ("disabled probe", least[3], 2.0, "ns"),
    ];
    let mut missed = false;
    for (name, found, bar, unit) in bars {
        missed |= found > bar;
        println!("{name}: {found:.2} {unit}, at most {bar}: {}", if found > bar { "missed" } else { "held" });
    }
    ExitCode::from(u8::from(missed && rounds == ROUNDS))
}
