//! Spans of several files, as one trace.
//!
//! Exporters write a file an hour, a file a service, or a file a batch, so that an operation lies in several of them and a span in two. All
//! files are read before operations are built: spans that came twice are one, halves find each other, and calls of all files
//! tell how the clocks differ.

use std::io::Read;
use std::sync::Arc;

use crate::read::{ReadOptions, spans_options};
use crate::spans::builder::{Builder, Collected};
use crate::spans::{SpanOptions, pipeline};
use crate::{ReadReport, Sink, TraceNames, Wanted, codes};
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};

/// A format of spans: its name, and what reads the spans of a file into a builder; where told to be strict, damage is an error.
#[derive(Clone, Copy)]
pub(crate) struct SpanFormat {
    pub(crate) name: &'static str,
    pub(crate) read: fn(&mut Builder<'_>, &mut dyn Read, bool) -> Result<(), Diagnostics>,
}

/// The spans of the files that were read so far.
pub struct SpanFiles {
    collected: Collected,
    report: ReadReport,
    wanted: Arc<Wanted>,
    options: SpanOptions,
}

impl SpanFiles {
    /// None yet. Keeps what the sink wants of spans.
    pub fn of(options: &ReadOptions, sink: &dyn Sink) -> Self {
        Self::new(sink.wanted(), spans_options(*options))
    }

    /// None yet; keeps what is wanted.
    fn new(wanted: Arc<Wanted>, options: SpanOptions) -> Self {
        Self { collected: Collected::new(&wanted), report: ReadReport::default(), wanted, options }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.collected.count() == 0
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When the input fails, is damaged beyond use, or has no span in it; says what it has instead.
    pub(crate) fn read(
        &mut self,
        file: &str,
        format: SpanFormat,
        mut input: impl Read,
        names: &mut TraceNames,
    ) -> Result<(), Diagnostics> {
        let before = std::mem::replace(&mut self.collected, Collected::new(&Wanted::default()));
        let spans_before = before.count();
        let mut builder = Builder::after(before, file, &mut names.names, &self.wanted);
        let read = (format.read)(&mut builder, &mut input, self.options.strict);
        let (collected, report, foreign) = builder.finish_input();
        self.collected = collected;
        read?;
        if self.collected.count() == spans_before {
            return Err(no_spans(file, format.name, foreign, &report));
        }
        self.report.merge(report);
        Ok(())
    }

    /// Gives out the operations that the spans of all files form, in the order of their start.
    pub fn operations(self, names: &mut TraceNames, sink: &mut dyn Sink) -> ReadReport {
        let Self { collected, mut report, options, .. } = self;
        let spans = collected.finish(&mut report);
        pipeline::operations(spans, report, options, names, sink)
    }
}

/// Reads one file as a trace.
///
/// # Errors
/// As [`SpanFiles::read`].
pub(super) fn read_one(
    file: &str,
    format: SpanFormat,
    input: impl Read,
    options: SpanOptions,
    names: &mut TraceNames,
    sink: &mut dyn Sink,
) -> Result<ReadReport, Diagnostics> {
    let mut files = SpanFiles::new(sink.wanted(), options);
    files.read(file, format, input, names)?;
    Ok(files.operations(names, sink))
}

fn no_spans(file: &str, format: &str, foreign: Option<&'static str>, report: &ReadReport) -> Diagnostics {
    let place = Place::File { file: file.into() };
    let mut diagnostic = Diagnostic::error(codes::NO_SPANS, place, format!("there is no {format} span in this file"));
    if let Some(foreign) = foreign {
        diagnostic = diagnostic.with_note(format!("it has {foreign}"));
    }
    for (reason, times) in &report.counted {
        diagnostic = diagnostic.with_note(format!("left out: {reason}, {times} times"));
    }
    let mut all = vec![diagnostic];
    all.extend(report.findings.iter().cloned());
    Diagnostics(all)
}
