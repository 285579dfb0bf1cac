//! Traces reduced to a sub-model, as arguments ask for it.

use std::path::PathBuf;

use dyelog::pipeline::{self, Analysis as Way, Keep, Listener, Options, Reading, Reduced};
pub use dyelog::pipeline::{Interactions, count};
use dyelog::trace::spans::{Deployment, Scratch, Spill};

use crate::cli::args::{Analysis, ReadingArguments, ReduceArguments};
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, input, rule_files};

/// How traces are read.
pub fn reading(arguments: &ReadingArguments) -> Reading {
    let mut reading = Reading::default();
    reading.format = arguments.from;
    reading.strict = arguments.strict;
    reading.sampling = arguments.sampling;
    reading.grouping = arguments.grouping();
    reading.deployment =
        Deployment { environment: arguments.environment.clone(), namespace: arguments.namespace.clone() };
    reading.table.clone_from(&arguments.table);
    reading.one_trace = arguments.one_trace;
    reading.clocks.clone_from(&arguments.clock);
    reading.spill = Some(Spill { scratch: Scratch::new(tempfile::tempfile), memory: arguments.memory });
    reading.threads = std::thread::available_parallelism().map_or(1, usize::from);
    reading
}

/// What the arguments ask for, passed to some work.
pub fn with_options<T>(
    reading_arguments: &ReadingArguments,
    arguments: &ReduceArguments,
    keep_matches: Keep,
    work: impl FnOnce(&mut Options) -> T,
) -> T {
    let load = |listener: &mut dyn Listener| {
        rule_files::load_telling(&arguments.rules, &mut |file, text| listener.source(file, text))
    };
    let load_events = |listener: &mut dyn Listener| {
        rule_files::load_events(&arguments.rules, &mut |file, text| listener.source(file, text))
    };
    let mut options = Options::default();
    options.reading = reading(reading_arguments);
    options.merge = arguments.merge.into();
    options.analysis = arguments.analysis.map(|analysis| match analysis {
        Analysis::Tlc => Way::Templates,
        Analysis::Same => Way::Messages,
    });
    options.guess_threads = arguments.guess_threads;
    options.engine = arguments.engine.into();
    options.threads = arguments.thread_count();
    options.reading.threads = options.threads;
    options.keep_matches = keep_matches;
    if !arguments.rules.is_empty() {
        options.rules = Some(&load);
        options.event_rules = Some(&load_events);
    }
    work(&mut options)
}

/// Reduces traces and keeps what was matched; shows what was left out on the way.
pub fn reduce(
    files: &[PathBuf],
    reading: &ReadingArguments,
    arguments: &ReduceArguments,
    keep: Keep,
    terminal: &mut Terminal,
) -> Result<Reduced, Failure> {
    input::check_stdin_once(files.iter().chain(&arguments.rules))?;
    let inputs = input::inputs(files);
    Ok(with_options(reading, arguments, keep, |options| pipeline::reduce(&inputs, None, options, terminal))?)
}
