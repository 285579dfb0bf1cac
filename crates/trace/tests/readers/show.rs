//! Reading, and what to look at.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use dyelog_diagnostic::names::Names;
use dyelog_diagnostic::{Diagnostics, Place};
use dyelog_trace::detect::detect;
use dyelog_trace::spans::model::{Span, Spans};
use dyelog_trace::spans::{self, SpanOptions};
use dyelog_trace::{Format, Operation, ReadReport, Toeg, TraceNames};

/// The spans of an input as they were recorded, a line each, and what was odd; its content tells its format.
pub fn recorded(input: &[u8]) -> String {
    let format = detect("t", input).unwrap_or_else(|error| panic!("{error}"));
    recorded_as(format, input)
}

/// The spans of an input of that format.
pub fn recorded_as(format: Format, input: &[u8]) -> String {
    let mut names = Names::new();
    match spans::collect(format, "t", input, false, &mut names) {
        Ok((spans, report)) => shown(&names, &spans, &report),
        Err(reasons) => listed(&reasons),
    }
}

/// The same of an input that gives a byte at a time.
pub fn slowly(format: Format, input: &[u8]) -> String {
    struct Slow<'a>(&'a [u8]);
    impl std::io::Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let one = buffer.len().min(1);
            self.0.read(&mut buffer[..one])
        }
    }
    let mut names = Names::new();
    match spans::collect(format, "t", Slow(input), false, &mut names) {
        Ok((spans, report)) => shown(&names, &spans, &report),
        Err(reasons) => listed(&reasons),
    }
}

/// Spans and what was odd about them.
pub fn shown(names: &Names, spans: &Spans, report: &ReadReport) -> String {
    let epoch = spans.spans.iter().map(|span| span.start).min().unwrap_or_default();
    let mut text: String = spans.spans.iter().map(|span| line(names, spans, span, epoch)).collect();
    for (reason, times) in &report.counted {
        writeln!(text, "{times} × {reason}").expect("a string takes all");
    }
    for finding in &report.findings {
        writeln!(text, "{} {} {}", finding.code, place(&finding.place), finding.message).expect("a string takes all");
    }
    text
}

fn line(names: &Names, spans: &Spans, span: &Span, epoch: i64) -> String {
    let name = |name| names.text(name);
    let short = |text: &str| {
        let short = text.trim_start_matches('0');
        if short.is_empty() { "-".to_owned() } else { short.to_owned() }
    };
    let micros = |time: i64| time as f64 / 1e3;
    let mut text = format!(
        "{} {} < {}  {} {} `{}`  {}+{} µs",
        short(&spans.trace_text(span.trace)),
        short(&spans.span_text(span.id)),
        short(&spans.span_text(span.parent)),
        span.kind.label(),
        name(span.service),
        name(span.name),
        micros(span.start - epoch),
        micros(span.duration()),
    );
    for (what, other) in [("at", span.host), ("instance", span.instance), ("to", span.peer)] {
        if other.is_some() {
            write!(text, " {what} {}", name(other)).expect("a string takes all");
        }
    }
    for (flag, word) in [(span.follows, "follows"), (span.remote, "remote"), (span.endless, "endless")] {
        if flag {
            write!(text, " {word}").expect("a string takes all");
        }
    }
    for link in spans.links_of(span) {
        write!(text, " linked to {}", short(&spans.span_text(link.span))).expect("a string takes all");
    }
    text + "\n"
}

/// Where a finding was made, without the file.
pub fn place(place: &Place) -> String {
    match place {
        Place::Line { line, column, .. } => format!("line {line}:{column}"),
        Place::Item { item, .. } => item.clone(),
        other => format!("{other:?}").split([' ', '{']).next().unwrap_or_default().to_lowercase(),
    }
}

/// Findings, a line each.
pub fn listed(reasons: &Diagnostics) -> String {
    let lines = reasons
        .0
        .iter()
        .map(|one| format!("{} {} {} ({})\n", one.code, place(&one.place), one.message, one.notes.join("; ")));
    lines.collect()
}

/// The operations of files that are read as one trace, and what was odd; each operation must be a graph.
pub fn operations(files: &[(&str, &[u8])]) -> Result<(TraceNames, Vec<Operation>, ReadReport), Diagnostics> {
    let mut names = TraceNames::new();
    let mut operations = Vec::new();
    let mut sink = |_: &TraceNames, operation: Operation| {
        operations.push(operation);
        ControlFlow::Continue(())
    };
    let options = dyelog_trace::ReadOptions::default();
    let mut traces = dyelog_trace::Traces::new(&options, &sink);
    for (name, bytes) in files {
        traces.take(dyelog_trace::open(name, *bytes, &options)?, &mut names, &mut sink)?;
    }
    let report = traces.finish(&mut names, &mut sink)?;
    for operation in &operations {
        assert!(Toeg::build(operation.clone()).is_ok(), "no graph: {operation:?}");
    }
    Ok((names, operations, report))
}

/// Reads whatever it is, and must come back.
pub fn survives(format: Format, input: &[u8]) {
    let mut names = TraceNames::new();
    let mut sink = |_: &TraceNames, operation: Operation| {
        assert!(Toeg::build(operation).is_ok(), "an operation that is no graph");
        ControlFlow::Continue(())
    };
    if let Err(reasons) = spans::read(format, "t", input, SpanOptions::default(), &mut names, &mut sink) {
        assert!(!reasons.0.is_empty());
    }
}
