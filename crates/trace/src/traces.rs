//! Traces that are analysed together: of which formats an operation may lie in several files, and how it is put together.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::read::{OpenTrace, ReadOptions, ReadReport, Sink, cut_off, mixed};
use crate::spans::formats::{self, Piece};
use crate::spans::model::Spans;
use crate::spans::recording::Recording;
use crate::spans::{SpanFiles, TakeSpans};
use crate::{Format, Operation, TraceNames, Wanted, angio, calls};
use dyelog_callgraph::Input;
use dyelog_diagnostic::Diagnostics;

/// Traces that are analysed together. All files of spans are one trace, and so are all pieces of one log and all files of probe records: their
/// operations come when all are there. Those of other formats come file by file.
pub struct Traces<'r> {
    spans: SpanFiles<'r>,
    /// Files that only make sense together, by format.
    pieces: BTreeMap<Format, Vec<OpenTrace<'r>>>,
    report: ReadReport,
}

impl<'r> Traces<'r> {
    /// None yet. Keeps what the sink wants of spans.
    pub fn new(options: &ReadOptions, sink: &dyn Sink) -> Self {
        Self {
            spans: SpanFiles::new(sink.wanted(), options.into()),
            pieces: BTreeMap::new(),
            report: ReadReport::default(),
        }
    }

    /// None yet, for [`Traces::pass`]: spans are given on as they are recorded. Without `by_trace` they go as soon as they are read, and none is
    /// kept; with it they go in the end, in parts that hold whole traces.
    pub fn passing(options: &ReadOptions, wanted: Arc<Wanted>, by_trace: bool, take: Box<TakeSpans<'r>>) -> Self {
        Self {
            spans: SpanFiles::passing(wanted, options.into(), by_trace, take),
            pieces: BTreeMap::new(),
            report: ReadReport::default(),
        }
    }

    /// None yet, for [`Traces::recording`]: all spans are kept as they are recorded.
    pub fn as_recorded(options: &ReadOptions, wanted: Arc<Wanted>) -> Self {
        Self {
            spans: SpanFiles::as_recorded(wanted, options.into()),
            pieces: BTreeMap::new(),
            report: ReadReport::default(),
        }
    }

    /// Takes one in: reads it, or keeps it open until its other pieces are there.
    ///
    /// # Errors
    /// As [`read`](crate::read()), and when the trace has messages in place of operations.
    pub fn take(
        &mut self,
        trace: OpenTrace<'r>,
        names: &mut TraceNames,
        sink: &mut dyn Sink,
    ) -> Result<(), Diagnostics> {
        let spans = formats::of(trace.format);
        if trace.format == Format::Calls || spans.is_some_and(|format| format.together.is_some()) {
            self.pieces.entry(trace.format).or_default().push(trace);
            return Ok(());
        }
        let OpenTrace { file, input, format, options, damage } = trace;
        let read = match spans {
            Some(format) => self.spans.read(&file, format, input, names),
            None => match format {
                Format::Angio => angio::read_text(&file, input, options.strict, names, sink),
                Format::AngioJsonl => angio::read_jsonl(&file, input, options.strict, names, sink),
                _ => Err(mixed(&file, "has messages, and no operations").into()),
            },
        };
        self.report.merge(cut_off(read, &file, &damage)?);
        Ok(())
    }

    /// Gives out the operations that were not complete before.
    ///
    /// # Errors
    /// As [`read`](crate::read()).
    pub fn finish(mut self, names: &mut TraceNames, sink: &mut dyn Sink) -> Result<ReadReport, Diagnostics> {
        self.join_pieces(names, sink)?;
        let Self { spans, mut report, .. } = self;
        report.merge(spans.operations(names, sink)?);
        Ok(report)
    }

    /// Takes in spans that were read before.
    pub fn append(&mut self, spans: Spans, names: &mut TraceNames) {
        self.spans.append(spans, names);
    }

    /// Gives out the operations of what is no span, that were not complete before; the spans stay as they were read. They must be kept as they
    /// are recorded ([`Traces::as_recorded`]).
    ///
    /// # Errors
    /// As [`read`](crate::read()).
    pub fn recording(
        mut self,
        names: &mut TraceNames,
        sink: &mut dyn Sink,
    ) -> Result<(Recording, ReadReport), Diagnostics> {
        self.join_pieces(names, sink)?;
        Ok((self.spans.recording(), self.report))
    }

    /// Gives on the spans that were not given on as they came.
    ///
    /// # Errors
    /// As [`read`](crate::read()).
    pub fn pass(mut self, names: &mut TraceNames) -> Result<ReadReport, Diagnostics> {
        self.join_pieces(names, &mut |_: &TraceNames, _: Operation| ControlFlow::Continue(()))?;
        self.spans.pass(&names.names)?;
        Ok(self.report)
    }

    /// Reads the pieces of logs that lie in several files.
    fn join_pieces(&mut self, names: &mut TraceNames, sink: &mut dyn Sink) -> Result<(), Diagnostics> {
        for (format, traces) in std::mem::take(&mut self.pieces) {
            let damages: Vec<_> = traces.iter().map(|trace| (trace.file.clone(), trace.damage.clone())).collect();
            let strict = traces.iter().any(|trace| trace.options.strict);
            let read = if let Some(format) = formats::of(format) {
                let pieces = traces.into_iter().map(|trace| Piece { name: trace.file, input: Box::new(trace.input) });
                self.spans.read_pieces(format, pieces.collect(), names)
            } else {
                let files = traces.into_iter().map(|trace| Input::new(trace.file, trace.input)).collect();
                calls::read(files, strict, names, sink)
            };
            self.report.merge(damages.iter().fold(read, |read, (file, damage)| cut_off(read, file, damage))?);
        }
        Ok(())
    }
}
