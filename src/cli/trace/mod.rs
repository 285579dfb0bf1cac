//! `dyelog trace`.

mod show;

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use dyelog::diagnostic::names::Names;
use dyelog::diagnostic::{Diagnostic, Diagnostics, Severity};
use dyelog::report;
use dyelog::study::services::Services;
use dyelog::trace::messages::{MessageStat, MessageStep, Messages, StepSink};
use dyelog::trace::quality::{Gate, Policy};
use dyelog::trace::spans::model::Spans;
use dyelog::trace::spans::write::{SpanTarget, SpanWriter};
use dyelog::trace::stat::TraceStat;
use dyelog::trace::{self, FailureCounts, Operation, ReadReport, Sink, SpanTree, TraceNames, Wanted, angio};

use crate::cli::args::{Form, OutputArguments, ReadingArguments, TraceArguments};
use crate::cli::exit::Exit;
use crate::cli::messages::{self, First, Opened};
use crate::cli::output::{self, Output};
use crate::cli::progress::Progress;
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, Outcome, input};

/// The subcommands of `dyelog trace`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Report which operations are well formed, and what is wrong with the others; exits with 1 where any is damaged
    Check(CheckArguments),
    /// Write traces in another format
    Convert(ConvertArguments),
    /// Count what is in traces, in all and by scenario; of spans also services and calls, with rates and latencies
    Stat(StatArguments),
    /// Show one operation on its axis of time, with its critical path
    Show(show::Arguments),
}

/// Arguments of `dyelog trace check`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "a sound trace" => "dyelog trace check traces/shop.otlp.jsonl",
    "a damaged one: exits with 1" => "dyelog trace check traces/lost-reply.angio",
})]
pub struct CheckArguments {
    #[command(flatten)]
    input: TraceArguments,
    /// The form of the report; that of the output file's extension where not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Form>,
    #[command(flatten)]
    output: OutputArguments,
}

/// Arguments of `dyelog trace stat`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "operations, events, tasks and times, in all and by scenario" => "dyelog trace stat traces/two-scenarios.angio",
})]
pub struct StatArguments {
    #[command(flatten)]
    input: TraceArguments,
    /// The form of the counts; that of the output file's extension where not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Form>,
    #[command(flatten)]
    output: OutputArguments,
}

/// Arguments of `dyelog trace convert`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "spans as events, one a line, in the notation of the templates" => "dyelog trace convert traces/shop.otlp.jsonl -o shop.angio",
    "the same as JSON lines" => "dyelog trace convert traces/shop.otlp.jsonl --to angio-jsonl",
    "spans as another tracer writes them, with a word on what that loses" => "dyelog trace convert traces/shop.otlp.jsonl --to jaeger -o shop.json",
})]
pub struct ConvertArguments {
    #[command(flatten)]
    input: TraceArguments,
    /// The format to write
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Target::Angio)]
    to: Target,
    #[command(flatten)]
    output: OutputArguments,
}

/// Formats that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Target {
    /// The native text
    Angio,
    /// The native events as JSON lines
    AngioJsonl,
    /// Spans as OTLP JSON, a request a line
    Otlp,
    /// Spans as Jaeger JSON
    Jaeger,
    /// Spans as Zipkin JSON, version 2
    Zipkin,
    /// Spans as a table
    SpansCsv,
}

impl Target {
    /// Endings of the names of files.
    fn endings(self) -> &'static [&'static str] {
        match self {
            // Messages are written as a table.
            Self::Angio => &["angio", "txt", "csv"],
            Self::AngioJsonl | Self::Otlp => &["jsonl", "json"],
            Self::Jaeger | Self::Zipkin => &["json"],
            Self::SpansCsv => &["csv"],
        }
    }

    /// The format, where it is one of spans.
    fn of_spans(self) -> Option<SpanTarget> {
        match self {
            Self::Angio | Self::AngioJsonl => None,
            Self::Otlp => Some(SpanTarget::Otlp),
            Self::Jaeger => Some(SpanTarget::Jaeger),
            Self::Zipkin => Some(SpanTarget::Zipkin),
            Self::SpansCsv => Some(SpanTarget::Csv),
        }
    }
}

/// Runs a subcommand of `dyelog trace`.
pub fn run(command: &Command, terminal: &mut Terminal) -> Outcome {
    match command {
        Command::Check(arguments) => check(arguments, terminal),
        Command::Convert(arguments) => convert(arguments, terminal),
        Command::Stat(arguments) => stat(arguments, terminal),
        Command::Show(arguments) => show::run(arguments, terminal),
    }
}

fn check(arguments: &CheckArguments, terminal: &Terminal) -> Outcome {
    let format = output::form(arguments.format, Form::Text, &arguments.output)?;
    let reading = &arguments.input.reading;
    let mut stat = MessageStat::default();
    let progress = Progress::reading(&arguments.input.traces);
    let first = match messages_of(&arguments.input, &progress, &mut stat)? {
        Read::Messages(names, read) => {
            terminal.report_kinds(&read, |_| true);
            return checked_messages(arguments, format, &stat.finish(&names), &read);
        }
        Read::Not(first) => first,
    };
    let mut failures = FailureCounts::default();
    let mut count = |names: &TraceNames, operation: Operation| {
        failures.add(names, &operation);
        ControlFlow::Continue(())
    };
    let mut gate = Gate::new(Policy { strict: reading.strict }, &mut count);
    let read = read_all(&arguments.input.traces, first, reading, &progress, &mut gate);
    let quality = gate.finish();
    let (read, quality) = match (read, quality) {
        (Ok(read), Ok(quality)) => (read, quality),
        (read, quality) => {
            let errors = |found: Option<Diagnostics>| found.map(|found| found.0).unwrap_or_default();
            return Err(Failure::Input([errors(read.err()), errors(quality.err())].concat()));
        }
    };
    terminal.report_kinds(&read, |_| true);
    let text = match format {
        Form::Text => quality.text() + &failures.text() + &report::trace::counted_text(&read),
        Form::Json => {
            let mut document = quality.json();
            document["operations_with_failures"] = failures.json();
            document["reading"] = report::trace::counted_json(&read);
            report::json::pretty(&document)
        }
    };
    output::write(&arguments.output, &text)?;
    let damaged = quality.restored + quality.set_aside > 0 || !quality.doubtful.is_empty();
    Ok(if damaged || loses(&read) { Exit::Finding } else { Exit::Ok })
}

/// Whether anything of the input was lost, left out or guessed. What was put right leaves all there is.
fn loses(read: &ReadReport) -> bool {
    let doubtful =
        |finding: &Diagnostic| finding.severity != Severity::Note && !trace::codes::PUT_RIGHT.contains(&finding.code);
    read.findings.iter().any(doubtful)
}

/// Writes operations as they come.
struct Writing<'o> {
    output: &'o mut Output,
    to: Target,
    failure: Option<Failure>,
    /// What the form does not hold, and of how many operations.
    losses: BTreeMap<&'static str, u64>,
}

impl Sink for Writing<'_> {
    fn operation(&mut self, names: &TraceNames, operation: Operation) -> ControlFlow<()> {
        for what in angio::losses(&operation) {
            *self.losses.entry(what).or_default() += 1;
        }
        let written = self.output.attempt(|mut writer: &mut dyn Write| match self.to {
            Target::AngioJsonl => angio::write_jsonl(&mut writer, names, &operation),
            _ => angio::write_text(&mut writer, names, &operation),
        });
        match written {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                self.failure = Some(failure);
                ControlFlow::Break(())
            }
        }
    }
}

/// What came of looking for messages.
enum Read {
    Messages(TraceNames, ReadReport),
    /// There are operations; the first file, if it is open.
    Not(First),
}

/// Reads traces of messages into a sink.
fn messages_of(input: &TraceArguments, progress: &Progress, sink: &mut dyn StepSink) -> Result<Read, Failure> {
    input::check_stdin_once(&input.traces)?;
    match messages::open(&input.traces, &input.reading, progress)? {
        Opened::Operations(first) => Ok(Read::Not(first)),
        Opened::Messages(messages, _) => {
            let (names, read) = messages.read(sink)?;
            Ok(Read::Messages(names, read))
        }
    }
}

/// Tells which messages are whole, and what is wrong with the others.
fn checked_messages(arguments: &CheckArguments, form: Form, figures: &Messages, read: &ReadReport) -> Outcome {
    output::write(&arguments.output, &about_messages(form, figures, read))?;
    Ok(if loses(read) { Exit::Finding } else { Exit::Ok })
}

/// Figures of messages, and what was left out.
fn about_messages(form: Form, figures: &Messages, read: &ReadReport) -> String {
    match form {
        Form::Text => format!("messages\n{}{}", figures.text(), report::trace::counted_text(read)),
        Form::Json => {
            let reading = report::trace::counted_json(read);
            report::json::pretty(
                &serde_json::json!({ "dyelog-messages": 1, "messages": figures.json(), "reading": reading }),
            )
        }
    }
}

/// Writes messages as rows, as they come; gives back the first file where there are none.
fn convert_messages(
    arguments: &ConvertArguments,
    output: &mut Output,
    progress: &Progress,
    terminal: &Terminal,
) -> Result<Option<First>, Failure> {
    let mut begun = false;
    let mut failure: Option<Failure> = None;
    let mut sink = |names: &TraceNames, step: &MessageStep| {
        let written = output.attempt(|writer: &mut dyn Write| {
            if !std::mem::replace(&mut begun, true) {
                writeln!(writer, "{}", trace::messages::HEADER)?;
            }
            trace::messages::write_message(writer, names, step)
        });
        match written {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    let read = match messages_of(&arguments.input, progress, &mut sink)? {
        Read::Messages(_, read) => read,
        Read::Not(first) => return Ok(Some(first)),
    };
    if let Some(failure) = failure {
        return Err(failure);
    }
    terminal.report_kinds(&read, |_| true);
    Ok(None)
}

fn convert(arguments: &ConvertArguments, terminal: &Terminal) -> Outcome {
    output::only(&arguments.output, arguments.to.endings())?;
    let files = &arguments.input.traces;
    // Data that runs over the terminal shows the progress itself.
    let seen = !arguments.output.is_file() && std::io::stdout().is_terminal();
    let progress = if seen { Progress::hidden() } else { Progress::reading(files) };
    let mut output = Output::open(&arguments.output)?;
    let Some(first) = convert_messages(arguments, &mut output, &progress, terminal)? else {
        output.finish()?;
        return Ok(Exit::Ok);
    };
    if let Some(target) = arguments.to.of_spans() {
        return convert_spans(arguments, target, first, output, &progress, terminal);
    }
    let mut writing = Writing { output: &mut output, to: arguments.to, failure: None, losses: BTreeMap::new() };
    let read = read_all(files, first, &arguments.input.reading, &progress, &mut writing);
    let Writing { failure, losses, .. } = writing;
    if let Some(failure) = failure {
        return Err(failure);
    }
    let read = read?;
    terminal.report_kinds(&read, |_| true);
    terminal.report(&lost(&losses, "operation"));
    output.finish()?;
    Ok(Exit::Ok)
}

fn lost(losses: &BTreeMap<&'static str, u64>, of: &str) -> Vec<Diagnostic> {
    losses.iter().map(|(what, count)| report::trace::lost(what, *count, of)).collect()
}

/// Writes spans as they were recorded, and tells what the format does not hold.
fn convert_spans(
    arguments: &ConvertArguments,
    target: SpanTarget,
    first: First,
    mut output: Output,
    progress: &Progress,
    terminal: &Terminal,
) -> Outcome {
    let TraceArguments { traces, reading } = &arguments.input;
    let (mut writer, mut failure) = (SpanWriter::new(target), None);
    let mut take = |names: &Names, spans: &Spans| match output.attempt(|output| writer.write(output, names, spans)) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failure = Some(error);
            ControlFlow::Break(())
        }
    };
    let read = messages::read_spans(traces, first, reading, progress, target.by_trace(), &mut take);
    progress.done();
    if let Some(failure) = failure {
        return Err(failure);
    }
    let read = read?;
    let losses = output.attempt(|output| writer.finish(output))?;
    terminal.report_kinds(&read, |_| true);
    terminal.report(&lost(&losses, "span"));
    output.finish()?;
    Ok(Exit::Ok)
}

fn stat(arguments: &StatArguments, terminal: &Terminal) -> Outcome {
    let format = output::form(arguments.format, Form::Text, &arguments.output)?;
    let mut messages = MessageStat::default();
    let progress = Progress::reading(&arguments.input.traces);
    let first = match messages_of(&arguments.input, &progress, &mut messages)? {
        Read::Messages(names, read) => {
            terminal.report_kinds(&read, |_| true);
            output::write(&arguments.output, &about_messages(format, &messages.finish(&names), &read))?;
            return Ok(Exit::Ok);
        }
        Read::Not(first) => first,
    };
    let mut counting = Counting::default();
    let files = &arguments.input.traces;
    let read = read_all(files, first, &arguments.input.reading, &progress, &mut counting)?;
    terminal.report_kinds(&read, |_| true);
    let Counting { stat, services, .. } = counting;
    let look = terminal.look(&arguments.output);
    let mut output = Output::open(&arguments.output)?;
    output.text(&match format {
        Form::Text => stat.text() + &report::services::text(&services, look) + &report::trace::counted_text(&read),
        Form::Json => {
            let mut document = stat.json();
            document["services"] = report::services::json(&services);
            document["reading"] = report::trace::counted_json(&read);
            report::json::pretty(&document)
        }
    })?;
    output.finish()?;
    Ok(Exit::Ok)
}

/// Counts operations, and what services do in them where they have spans.
#[derive(Default)]
struct Counting {
    stat: TraceStat,
    services: Services,
    spans: Option<SpanTree>,
}

impl Sink for Counting {
    fn wanted(&self) -> Arc<Wanted> {
        Arc::new(Wanted { spans: true, ..Wanted::default() })
    }

    fn spans(&mut self, _: &TraceNames, spans: SpanTree) {
        self.spans = Some(spans);
    }

    fn operation(&mut self, names: &TraceNames, operation: Operation) -> ControlFlow<()> {
        self.stat.add(names, &operation);
        if let Some(spans) = self.spans.take() {
            self.services.add(names, &operation, &spans);
        }
        ControlFlow::Continue(())
    }
}

/// Reads traces one after another; errors of all of them come together.
fn read_all(
    files: &[PathBuf],
    first: First,
    reading: &ReadingArguments,
    progress: &Progress,
    sink: &mut dyn Sink,
) -> Result<ReadReport, Diagnostics> {
    input::check_stdin_once(files).map_err(|failure| match failure {
        Failure::Input(findings) => Diagnostics(findings),
        Failure::Closed => Diagnostics(Vec::new()),
    })?;
    let mut names = TraceNames::new();
    let mut counted = Counted { sink, progress };
    let read = messages::read_operations(files, first, reading, progress, &mut names, &mut counted);
    progress.done();
    read
}

/// Passes operations on, and counts them.
struct Counted<'s> {
    sink: &'s mut dyn Sink,
    progress: &'s Progress,
}

impl Sink for Counted<'_> {
    fn operation(&mut self, names: &TraceNames, operation: Operation) -> ControlFlow<()> {
        self.progress.operation();
        self.sink.operation(names, operation)
    }

    fn wanted(&self) -> Arc<Wanted> {
        self.sink.wanted()
    }

    fn spans(&mut self, names: &TraceNames, spans: SpanTree) {
        self.sink.spans(names, spans);
    }
}
