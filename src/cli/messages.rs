//! Traces opened one by one, operations or messages.

use std::path::PathBuf;
use std::sync::Arc;

use dyelog::diagnostic::Diagnostics;
use dyelog::pipeline::{self, Meter};
pub use dyelog::pipeline::{First, Opened};
use dyelog::trace::spans::TakeSpans;
use dyelog::trace::{self, ReadReport, Sink, TraceNames};

use crate::cli::args::ReadingArguments;
use crate::cli::progress::Progress;
use crate::cli::{Failure, input, reduce};

fn meter(progress: &Progress) -> Arc<dyn Meter> {
    Arc::new(progress.clone())
}

/// Whether the first of the traces is one of messages; what cannot be read a second time is not looked at.
pub fn are_messages(files: &[PathBuf], reading: &ReadingArguments) -> Result<bool, Failure> {
    let Some(first) = files.first().filter(|file| file.as_os_str() != "-") else { return Ok(false) };
    let input = input::open(first)?;
    let open = trace::open(&input::shown(first), input, &reading.options());
    Ok(open.is_ok_and(|open| open.format().has_messages()))
}

/// Opens traces; operations are not read as messages.
pub fn open(files: &[PathBuf], reading: &ReadingArguments, progress: &Progress) -> Result<Opened, Failure> {
    Ok(pipeline::open(&input::inputs(files), None, &reduce::reading(reading), false, &meter(progress))?)
}

/// Reads all operations of traces, the first of which may be open already.
pub fn read_operations(
    files: &[PathBuf],
    first: First,
    reading: &ReadingArguments,
    progress: &Progress,
    names: &mut TraceNames,
    sink: &mut dyn Sink,
) -> Result<ReadReport, Diagnostics> {
    let (inputs, reading) = (input::inputs(files), reduce::reading(reading));
    pipeline::read_operations(&inputs, first, &reading, &meter(progress), names, sink)
}

/// Gives on the spans of traces as they were recorded, as they come or in whole traces.
pub fn read_spans(
    files: &[PathBuf],
    first: First,
    reading: &ReadingArguments,
    progress: &Progress,
    by_trace: bool,
    take: &mut TakeSpans<'_>,
) -> Result<ReadReport, Diagnostics> {
    let (inputs, reading) = (input::inputs(files), reduce::reading(reading));
    pipeline::read_spans(&inputs, first, &reading, &meter(progress), by_trace, take)
}

/// Refuses corrections of clocks where these would have no meaning.
pub fn check_clocks(reading: &ReadingArguments) -> Result<(), Failure> {
    Ok(pipeline::check_clocks(&reduce::reading(reading))?)
}
