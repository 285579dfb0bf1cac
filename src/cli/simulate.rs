//! `dyelog simulate`.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use dyelog::diagnostic::Diagnostics;
use dyelog::lqn::Model;
use dyelog::recording::{self, TraceOptions, Traced};
use dyelog::solve::{Observer, Progress as Simulated, SimulateOptions, SolveOptions, solve};
use dyelog::trace::messages::{self, MessageStep};
use dyelog::trace::recorded::WrittenSpan;
use dyelog::trace::spans::write::write_otlp;
use dyelog::trace::{Operation, TraceNames, angio};

use crate::cli::args::{OutputArguments, SourceArguments};
use crate::cli::output::{self, Output};
use crate::cli::progress::Progress;
use crate::cli::solve::{Format, tell};
use crate::cli::source;
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, Outcome};

/// Arguments of `dyelog simulate`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "percentiles of response times, at the load that was traced" => "dyelog simulate traces/shop.otlp.jsonl",
    "narrower intervals, from other random numbers" =>
    "dyelog simulate traces/shop.otlp.jsonl --precision 0.005 --seed 7",
    "the trace of a run, as of a real system" =>
    "dyelog simulate traces/shop.otlp.jsonl --trace run.angio --operations 100",
    "the same as spans, for any tool that reads OTLP" =>
    "dyelog simulate traces/shop.otlp.jsonl --trace run.otlp.jsonl --operations 100",
    "for a program" => "dyelog simulate traces/shop.otlp.jsonl --format json -o results.json",
})]
pub struct Arguments {
    #[command(flatten)]
    source: SourceArguments,
    #[command(flatten)]
    simulation: SimulationArguments,
    /// Write the trace of the simulation's beginning to this file
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// The format of the trace; that of the file's name where not given: `.jsonl` is angio-jsonl, `.csv` messages, `.json` and
    /// `.otlp.jsonl` OTLP, else angio
    #[arg(long, value_enum, value_name = "FORMAT", requires = "trace")]
    trace_format: Option<TraceFormat>,
    /// Operations to trace: cycles of users and open arrivals
    #[arg(long, value_name = "N", default_value_t = 1000, requires = "trace")]
    operations: u64,
    /// The form of the results; that of the output file's extension where not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    #[command(flatten)]
    output: OutputArguments,
}

/// Formats of the trace of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TraceFormat {
    /// The native text
    Angio,
    /// The native events as JSON lines
    AngioJsonl,
    /// Spans as OTLP JSON, a request an operation
    Otlp,
    /// A table of messages without a dye: sender, receiver, message and time
    Messages,
}

impl TraceFormat {
    /// The format that was asked for, else that of the file's name.
    fn chosen(given: Option<Self>, path: &Path) -> Self {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
        given.unwrap_or(if ends(&[".otlp.jsonl", ".json"]) {
            Self::Otlp
        } else if ends(&[".jsonl"]) {
            Self::AngioJsonl
        } else if ends(&[".csv"]) {
            Self::Messages
        } else {
            Self::Angio
        })
    }
}

/// How to simulate.
#[derive(Clone, Debug, Args)]
pub struct SimulationArguments {
    /// Where random numbers begin: the same seed gives the same results, with any number of threads
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Stop when the 95 % intervals of response times and throughputs of users and open arrivals are this narrow, relative to
    /// the value
    #[arg(long, value_name = "PART", default_value_t = 0.01, value_parser = precision)]
    precision: f64,
    /// Independent runs that make one sample
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    replications: u32,
    /// Stop after this many events at the latest
    #[arg(long, value_name = "N", default_value_t = 100_000_000)]
    events: u64,
    /// Stop after this many seconds at the latest; what comes out then depends on the machine
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time: Option<Duration>,
}

impl SimulationArguments {
    /// The library's form of them.
    pub fn options(&self, threads: usize) -> SimulateOptions {
        SimulateOptions {
            seed: self.seed,
            precision: self.precision,
            replications: self.replications,
            events: self.events,
            threads,
            ..SimulateOptions::default()
        }
    }
}

/// A part between 0 and 1.
pub fn precision(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(part) if part > 0.0 && part < 1.0 => Ok(part),
        _ => Err("a precision is a number between 0 and 1, such as 0.01 for 1 %".into()),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "a number of seconds is not negative".into())
}

/// Shows progress and looks at the clock.
struct Clock {
    begun: Instant,
    limit: Option<Duration>,
    progress: Progress,
    events: u64,
}

impl Observer for Clock {
    fn iteration(&mut self, _number: u32, _residual: f64) {}

    fn simulated(&mut self, simulated: Simulated) -> ControlFlow<()> {
        self.progress.advance(simulated.events - self.events);
        self.events = simulated.events;
        match self.limit {
            Some(limit) if self.begun.elapsed() >= limit => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// What becomes of a trace: what was traced, or why it could not be.
type Written = io::Result<Result<Traced, Diagnostics>>;

/// Writes the trace of so many operations.
fn write_trace(arguments: &Arguments, model: &Model, path: &Path, terminal: &mut Terminal) -> Result<(), Failure> {
    let (seed, operations) = (arguments.simulation.seed, arguments.operations);
    let options = TraceOptions { seed, operations, skip: operations / 10, ..TraceOptions::default() };
    let format = TraceFormat::chosen(arguments.trace_format, path);
    let mut output = Output::open(&OutputArguments { output: Some(path.to_owned()) })?;
    let traced = output.attempt(|output| match format {
        TraceFormat::Angio | TraceFormat::AngioJsonl => write_events(model, &options, format, output),
        TraceFormat::Otlp => write_spans(model, &options, output),
        TraceFormat::Messages => write_messages(model, &options, output),
    })?;
    output.finish()?;
    let traced = traced?;
    if !traced.complete {
        terminal.remark(&format!("{} operations were traced, not {operations}", traced.operations));
    }
    Ok(())
}

/// Goes on as long as writing does not fail.
fn unless_broken(written: &io::Result<()>) -> ControlFlow<()> {
    if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

fn write_events(model: &Model, options: &TraceOptions, format: TraceFormat, mut output: &mut dyn Write) -> Written {
    let mut broken: io::Result<()> = Ok(());
    let traced = recording::trace(model, options, &mut |names: &TraceNames, operation: Operation| {
        broken = match format {
            TraceFormat::AngioJsonl => angio::write_jsonl(&mut output, names, &operation),
            _ => angio::write_text(&mut output, names, &operation),
        };
        unless_broken(&broken)
    });
    broken.map(|()| traced)
}

fn write_spans(model: &Model, options: &TraceOptions, output: &mut dyn Write) -> Written {
    let mut broken: io::Result<()> = Ok(());
    let traced = recording::trace_spans(model, options, &mut |number: u64, spans: &[WrittenSpan]| {
        broken = write_otlp(output, number, spans);
        unless_broken(&broken)
    });
    broken.map(|()| traced)
}

fn write_messages(model: &Model, options: &TraceOptions, output: &mut dyn Write) -> Written {
    writeln!(output, "{}", messages::THREADED_HEADER)?;
    let mut broken: io::Result<()> = Ok(());
    let traced = recording::trace_messages(model, options, &mut |names: &TraceNames, step: &MessageStep| {
        broken = messages::write_threaded(output, names, step);
        unless_broken(&broken)
    });
    broken.map(|()| traced)
}

/// Simulates a model.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let format = Format::chosen(arguments.format, &arguments.output)?;
    arguments.trace.as_deref().map_or(Ok(()), output::check)?;
    let source = source::load(&arguments.source, terminal)?;
    // Before anything is written.
    source.doubtful_but_sound()?;
    if let Some(path) = &arguments.trace {
        write_trace(arguments, &source.model, path, terminal)?;
    }
    let threads = arguments.source.reduce.thread_count();
    let options = arguments.simulation.options(threads);
    let mut clock = Clock {
        begun: Instant::now(),
        limit: arguments.simulation.time,
        progress: Progress::steps("simulating events", None),
        events: 0,
    };
    let options = SolveOptions::from(options);
    let solved = source.solve(|model| Ok(solve(model, &options, None, &mut clock)?.results));
    clock.progress.done();
    tell(&source, &solved?, format, threads, &arguments.output, terminal)
}
