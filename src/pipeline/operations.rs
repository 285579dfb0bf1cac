//! All operations of several traces.

use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::pipeline::input::Input;
use crate::pipeline::listener::Meter;
use crate::pipeline::messages::{First, open_one};
use crate::pipeline::options::Reading;
use crate::trace::spans::SpanFiles;
use crate::trace::{self, ReadReport, Sink, TraceNames};

/// Reads traces one after the other, the first of which may be open already. Files of spans are one trace, and so are files of probe
/// records: an operation may lie in several of them. Both are read together, after the others.
///
/// # Errors
/// All that keeps any of the traces from being read. Operations that were complete before were given out.
pub fn read_operations(
    inputs: &[Input],
    mut first: First,
    reading: &Reading,
    progress: &Arc<dyn Meter>,
    names: &mut TraceNames,
    sink: &mut dyn Sink,
) -> Result<ReadReport, Diagnostics> {
    let mut report = ReadReport::default();
    let mut errors: Vec<Diagnostic> = Vec::new();
    let mut pieces = Vec::new();
    let mut spans = SpanFiles::of(&reading.options(), sink);
    let mut take = |read: Result<ReadReport, Diagnostics>| match read {
        Ok(read) => report.merge(read),
        Err(Diagnostics(found)) => errors.extend(found),
    };
    for input in inputs {
        match first.take().unwrap_or_else(|| open_one(input, None, reading, progress)) {
            Ok(open) if open.lies_in_pieces() => pieces.push(open),
            Ok(open) if open.has_spans() => take(open.spans(&mut spans, names).map(|()| ReadReport::default())),
            opened => take(opened.and_then(|open| open.operations(names, sink))),
        }
    }
    if !(spans.is_empty() && pieces.is_empty()) {
        take(trace::read_together(pieces, spans, names, sink));
    }
    if errors.is_empty() { Ok(report) } else { Err(Diagnostics(errors)) }
}
