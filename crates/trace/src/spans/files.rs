//! Spans of several files, as one trace.
//!
//! Exporters write a file an hour, a file a service, or a file a batch, so that an operation lies in several of them and a span in two. All
//! files are read before operations are built: spans that came twice are one, halves find each other, and calls of all files
//! tell how the clocks differ.

use std::io::Read;
use std::sync::Arc;

use crate::spans::builder::Builder;
use crate::spans::formats::{Piece, SpanFormat};
use crate::spans::model::Spans;
use crate::spans::recording::Recording;
use crate::spans::{SpanOptions, pipeline};
use crate::{ReadReport, Sink, TraceNames, Wanted, codes};
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};

/// The spans of the files that were read so far.
pub(crate) struct SpanFiles {
    spans: Spans,
    wanted: Arc<Wanted>,
    options: SpanOptions,
}

impl SpanFiles {
    /// None yet; keeps what is wanted.
    pub(crate) fn new(wanted: Arc<Wanted>, options: SpanOptions) -> Self {
        Self { spans: Spans::default(), wanted, options }
    }

    /// Reads a file; gives what was odd in it.
    ///
    /// # Errors
    /// When the input fails, is damaged beyond use, or has no span in it; says what it has instead.
    pub(crate) fn read(
        &mut self,
        file: &str,
        format: &SpanFormat,
        mut input: impl Read,
        names: &mut TraceNames,
    ) -> Result<ReadReport, Diagnostics> {
        let strict = self.options.strict;
        self.collect(file, format, names, |builder| (format.read)(builder, &mut input, strict))
    }

    /// Reads the files of a format of which each is a piece of one log.
    ///
    /// # Errors
    /// As [`SpanFiles::read`].
    pub(crate) fn read_pieces(
        &mut self,
        format: &SpanFormat,
        pieces: Vec<Piece<'_>>,
        names: &mut TraceNames,
    ) -> Result<ReadReport, Diagnostics> {
        let file = pieces.iter().map(|piece| piece.name.as_str()).min().unwrap_or_default().to_owned();
        let together = format.together.expect("it lies in pieces");
        let strict = self.options.strict;
        self.collect(&file, format, names, |builder| together(builder, pieces, strict))
    }

    fn collect(
        &mut self,
        file: &str,
        format: &SpanFormat,
        names: &mut TraceNames,
        read: impl FnOnce(&mut Builder<'_>) -> Result<(), Diagnostics>,
    ) -> Result<ReadReport, Diagnostics> {
        let mut builder = Builder::keeping(file, &mut names.names, &self.wanted);
        builder.table.clone_from(&self.options.table);
        read(&mut builder)?;
        let (spans, report, foreign) = builder.finish_input();
        if spans.spans.is_empty() {
            return Err(no_spans(file, format.title, foreign, &report));
        }
        self.spans.append(spans);
        Ok(report)
    }

    /// The spans of all files, as they were recorded.
    pub(crate) fn recorded(self) -> Spans {
        self.spans
    }

    /// The same with how operations are to be made of them.
    pub(crate) fn recording(self) -> Recording {
        Recording::new(self.spans, self.options)
    }

    /// Takes in spans that were read before.
    pub(crate) fn append(&mut self, spans: Spans) {
        self.spans.append(spans);
    }

    /// Gives out the operations that the spans of all files form, in the order of their start.
    pub(crate) fn operations(self, names: &mut TraceNames, sink: &mut dyn Sink) -> ReadReport {
        pipeline::operations(self.spans, &self.options, names, sink)
    }
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
