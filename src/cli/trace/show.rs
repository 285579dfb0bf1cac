//! `dyelog trace show`.

use std::ops::ControlFlow;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use dyelog::diagnostic::{Diagnostic, Place, quantity};
use dyelog::report::{Look, waterfall as written};
use dyelog::study::waterfall::{Candidates, Pick, Picked, Waterfall};
use dyelog::trace::spans::write::wanted;
use dyelog::trace::{Operation, Sink, SpanTree, TraceNames, Wanted};

use super::read_all;
use crate::cli::args::{OutputArguments, TraceArguments};
use crate::cli::exit::Exit;
use crate::cli::messages::First;
use crate::cli::output;
use crate::cli::progress::Progress;
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, Outcome, codes, input};

/// Arguments of `dyelog trace show`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "the typical operation of the most frequent scenario, with its critical path" => "dyelog trace show traces/shop.otlp.jsonl",
    "the slowest one, as a picture" => "dyelog trace show traces/shop.otlp.jsonl --pick slowest --format svg -o slowest.svg",
})]
pub struct Arguments {
    #[command(flatten)]
    input: TraceArguments,
    /// The scenario to pick from; the most frequent one where it is not given
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
    /// Which operation of the scenario is shown
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Which::Typical, conflicts_with = "run")]
    pick: Which,
    /// The run identifier of the operation to show
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// How many spans are shown at most
    #[arg(long, value_name = "NUMBER", default_value_t = 200)]
    spans: usize,
    /// The form of the waterfall; that of the output file's extension where not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Form>,
    #[command(flatten)]
    output: OutputArguments,
}

/// Operations to be picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Which {
    /// Of the most frequent shape, the one of median duration
    Typical,
    /// The one that took longest
    Slowest,
    /// One of the least frequent shape: another set of calls than the others make
    Rarest,
}

/// Forms of a waterfall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Lines for the terminal
    Text,
    /// A picture
    Svg,
    /// Spans with times in seconds
    Json,
}

pub fn run(arguments: &Arguments, terminal: &Terminal) -> Outcome {
    let format = output::form(arguments.format, Form::Text, &arguments.output)?;
    let files = &arguments.input.traces;
    if files.iter().any(|file| input::is_stdin(file)) {
        let message = "the traces are read twice, and standard input can be read only once";
        return Err(refused(message).with_hint("name a file").into());
    }
    let picked = match &arguments.run {
        Some(run) => Wish { scenario: arguments.scenario.clone(), run: run.clone() },
        None => pick(arguments, terminal)?,
    };
    let mut found = Found { wish: &picked, spans: None, waterfall: None };
    read(arguments, &mut found)?;
    let Some(waterfall) = found.waterfall else {
        let of = picked.scenario.map(|name| format!(" of scenario `{name}`")).unwrap_or_default();
        return Err(refused(&format!("there is no operation{of} with run identifier `{}`", picked.run)).into());
    };
    output::write(
        &arguments.output,
        &match format {
            Form::Text => {
                let look: Look = terminal.look(&arguments.output);
                written::text(&waterfall, arguments.spans, look)
            }
            Form::Svg => written::svg(&waterfall, arguments.spans),
            Form::Json => written::json(&waterfall, arguments.spans),
        },
    )?;
    Ok(Exit::Ok)
}

/// The operation that is shown.
struct Wish {
    scenario: Option<String>,
    run: String,
}

fn refused(message: &str) -> Diagnostic {
    Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message)
}

/// Reads the traces once to know what there is to pick from.
fn pick(arguments: &Arguments, terminal: &Terminal) -> Result<Wish, Failure> {
    let mut all = Gathered::default();
    let report = read(arguments, &mut all)?;
    terminal.report_kinds(&report, |_| true);
    let how = match arguments.pick {
        Which::Typical => Pick::Typical,
        Which::Slowest => Pick::Slowest,
        Which::Rarest => Pick::Rarest,
    };
    let Some(picked) = all.candidates.pick(arguments.scenario.as_deref(), how) else {
        let scenarios = all.candidates.scenarios();
        return Err(match &arguments.scenario {
            Some(name) if !scenarios.is_empty() => {
                refused(&format!("there is no operation of scenario `{name}`")).with_similar(name, scenarios).into()
            }
            _ => refused("there are no spans to show")
                .with_hint("`dyelog draw operation` draws operations of native traces")
                .into(),
        });
    };
    let Picked { scenario, run, operations, alike, shapes } = picked;
    let (operations, shapes) =
        (quantity::counted(operations as u64, "operation"), quantity::counted(shapes as u64, "shape"));
    terminal.remark(&format!("{operations} of `{scenario}` have {shapes}; {alike} have that of the one shown"));
    Ok(Wish { scenario: Some(scenario), run })
}

fn read(arguments: &Arguments, sink: &mut dyn Sink) -> Result<dyelog::trace::ReadReport, Failure> {
    let TraceArguments { traces, reading } = &arguments.input;
    let progress = Progress::reading(traces);
    let first: First = None;
    Ok(read_all(traces, first, reading, &progress, sink)?)
}

/// Takes note of all operations.
#[derive(Default)]
struct Gathered {
    candidates: Candidates,
    spans: Option<SpanTree>,
}

impl Sink for Gathered {
    fn wanted(&self) -> Arc<Wanted> {
        Arc::new(Wanted { spans: true, ..Wanted::default() })
    }

    fn spans(&mut self, _: &TraceNames, spans: SpanTree) {
        self.spans = Some(spans);
    }

    fn operation(&mut self, names: &TraceNames, operation: Operation) -> ControlFlow<()> {
        if let Some(spans) = self.spans.take() {
            self.candidates.add(names, &operation, &spans);
        }
        ControlFlow::Continue(())
    }
}

/// Waits for one operation.
struct Found<'w> {
    wish: &'w Wish,
    spans: Option<SpanTree>,
    waterfall: Option<Waterfall>,
}

impl Sink for Found<'_> {
    fn wanted(&self) -> Arc<Wanted> {
        Arc::new(wanted())
    }

    fn spans(&mut self, _: &TraceNames, spans: SpanTree) {
        self.spans = Some(spans);
    }

    fn operation(&mut self, names: &TraceNames, operation: Operation) -> ControlFlow<()> {
        let Some(spans) = self.spans.take() else { return ControlFlow::Continue(()) };
        let scenario = names.names.text(operation.scenario);
        if *operation.run != *self.wish.run || self.wish.scenario.as_deref().is_some_and(|name| name != scenario) {
            return ControlFlow::Continue(());
        }
        self.waterfall = Some(Waterfall::of(names, &operation, &spans));
        ControlFlow::Break(())
    }
}
