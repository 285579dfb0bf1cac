//! All operations of several traces.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics, Place, Severity};
use crate::pipeline::input::Input;
use crate::pipeline::listener::Meter;
use crate::pipeline::messages::{First, open_one};
use crate::pipeline::options::Reading;
use crate::trace::spans::TakeSpans;
use crate::trace::spans::model::Spans;
use crate::trace::spans::recording::Recording;
use crate::trace::spans::write;
use crate::trace::{self, Operation, ReadReport, Sink, TraceNames, Traces, codes};

/// The inputs that are traces or were named, and those that were found and are no traces.
pub(super) fn sifted(inputs: &[Input], reading: &Reading) -> (Vec<Input>, Vec<Input>) {
    let is_kept = |input: &Input| {
        if !input.is_found() || reading.format.is_some() {
            return true;
        }
        let Ok((head, _)) = input.peek() else { return false };
        trace::format_of_head(&head).is_some() || reading.table.is_some()
    };
    let (kept, left): (Vec<Input>, Vec<Input>) = inputs.iter().cloned().partition(is_kept);
    // Where nothing is a trace, the reasons are reported.
    if kept.is_empty() { (left, Vec::new()) } else { (kept, left) }
}

/// Counts files that were found and are no traces.
pub(super) fn count_left_out(report: &mut ReadReport, left: &[Input]) {
    for input in left {
        let place = Place::File { file: Arc::clone(input.name()) };
        let note = |severity, message| Diagnostic::new(severity, codes::NO_TRACE, place, message);
        match input.peek() {
            Ok((head, _)) if trace::archive::Kind::of(&head).is_some() => report.count("archive in an archive", || {
                note(Severity::Warning, "this archive lies in another, and is left out")
                    .with_hint("unpack the outer one, and name the folder")
            }),
            Ok(_) => {
                report
                    .count("file that is no trace", || note(Severity::Note, "this file is no trace, and is left out"));
            }
            Err(why) => report.count("file that cannot be read", || {
                note(Severity::Warning, "this file cannot be read, and is left out").with_note(why.message)
            }),
        }
    }
}

/// Reads traces one after the other, the first of which may be open already. Files of spans are one trace, and so are files of probe
/// records: an operation may lie in several of them. Both are read together, after the others.
///
/// # Errors
/// All that keeps any of the traces from being read. Operations that were complete before were given out.
pub fn read_operations(
    inputs: &[Input],
    first: First,
    reading: &Reading,
    progress: &Arc<dyn Meter>,
    names: &mut TraceNames,
    sink: &mut dyn Sink,
) -> Result<ReadReport, Diagnostics> {
    read_operations_after((inputs, first), reading, progress, Vec::new(), names, sink)
}

/// The same together with spans that were read before.
///
/// # Errors
/// As [`read_operations`].
pub(super) fn read_operations_after(
    (inputs, first): (&[Input], First),
    reading: &Reading,
    progress: &Arc<dyn Meter>,
    before: Vec<Spans>,
    names: &mut TraceNames,
    sink: &mut dyn Sink,
) -> Result<ReadReport, Diagnostics> {
    let mut traces = Traces::new(&reading.options(), sink);
    for spans in before {
        traces.append(spans, names);
    }
    let finish = |traces: Traces<'static>, names: &mut _, sink: &mut dyn Sink| {
        traces.finish(names, sink).map(|report| ((), report))
    };
    read_all((inputs, first), reading, progress, traces, names, sink, finish).map(|((), report)| report)
}

/// Gives out operations of what is no span. Keeps all spans as they were recorded, in memory or on disk, after those that were read before.
///
/// # Errors
/// As [`read_operations`].
pub(super) fn read_recording(
    (inputs, first): (&[Input], First),
    reading: &Reading,
    progress: &Arc<dyn Meter>,
    before: Vec<Spans>,
    names: &mut TraceNames,
    sink: &mut dyn Sink,
) -> Result<(Recording, ReadReport), Diagnostics> {
    let mut traces = Traces::as_recorded(&reading.options(), sink.wanted());
    for spans in before {
        traces.append(spans, names);
    }
    read_all((inputs, first), reading, progress, traces, names, sink, Traces::recording)
}

/// Takes in all inputs, and finishes whatever became of them.
fn read_all<T>(
    (inputs, mut first): (&[Input], First),
    reading: &Reading,
    progress: &Arc<dyn Meter>,
    mut traces: Traces<'static>,
    names: &mut TraceNames,
    sink: &mut dyn Sink,
    finish: impl FnOnce(Traces<'static>, &mut TraceNames, &mut dyn Sink) -> Result<(T, ReadReport), Diagnostics>,
) -> Result<(T, ReadReport), Diagnostics> {
    let (inputs, left) = sifted(inputs, reading);
    let taken = Diagnostics::gather(inputs.iter().map(|input| {
        let open = first.take().unwrap_or_else(|| open_one(input, None, reading, progress))?;
        traces.take(open, names, sink)
    }));
    match (taken, finish(traces, names, sink)) {
        (Ok(_), finished) => finished.map(|(result, mut report)| {
            count_left_out(&mut report, &left);
            (result, report)
        }),
        (Err(Diagnostics(mut found)), finished) => {
            found.extend(finished.err().into_iter().flat_map(|Diagnostics(more)| more));
            Err(Diagnostics(found))
        }
    }
}

/// Gives on the spans of traces as they were recorded, before anything is made of them, with all that can be kept of them: as they come, or in
/// whole traces.
///
/// # Errors
/// All that keeps any of the traces from being read; traces that have no spans.
pub fn read_spans(
    inputs: &[Input],
    mut first: First,
    reading: &Reading,
    progress: &Arc<dyn Meter>,
    by_trace: bool,
    take: &mut TakeSpans<'_>,
) -> Result<ReadReport, Diagnostics> {
    let (mut names, mut none) = (TraceNames::new(), |_: &TraceNames, _: Operation| ControlFlow::Continue(()));
    let mut traces = Traces::passing(&reading.options(), Arc::new(write::wanted()), by_trace, Box::new(take));
    let (inputs, left) = sifted(inputs, reading);
    Diagnostics::gather(inputs.iter().map(|input| {
        let open = first.take().unwrap_or_else(|| open_one(input, None, reading, progress))?;
        if !open.format().has_spans() {
            let place = Place::File { file: Arc::clone(input.name()) };
            let message = format!("this trace has no spans: it is `{}`", open.format());
            return Err(Diagnostic::error(crate::pipeline::codes::ARGUMENTS, place, message)
                .with_hint("a trace of events is written as `angio` or `angio-jsonl`")
                .into());
        }
        traces.take(open, &mut names, &mut none)
    }))?;
    let mut report = traces.pass(&mut names)?;
    count_left_out(&mut report, &left);
    Ok(report)
}
