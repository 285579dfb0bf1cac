//! `dyelog draw`.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use dyelog::diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog::lqn::{Model, TaskId};
use dyelog::report::draw::lqn::LqnOptions;
use dyelog::report::draw::operation::{OperationOptions, OperationView};
use dyelog::report::draw::{self, Drawn};
use dyelog::solve::{SolveOptions, solve};
use dyelog::study::about_scenarios;
use dyelog::tlc::recognise::recognise;
use dyelog::trace::quality::{Gate, Policy};
use dyelog::trace::{self, Operation, Toeg, TraceNames};

use crate::cli::args::{OutputArguments, SourceArguments, TraceArguments};
use crate::cli::exit::Exit;
use crate::cli::output::{self, Output};
use crate::cli::terminal::{Terminal, set_aside_words};
use crate::cli::{Failure, Outcome, codes, input, rule_files, source};

/// The subcommands of `dyelog draw`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Draw a model in the notation of layered queueing networks
    Lqn(LqnArguments),
    /// Draw the graph of one operation, with the interactions that the templates recognise
    Toeg(ToegArguments),
    /// Draw the messages of one operation as a sequence chart
    Msc(MscArguments),
}

/// Arguments of `dyelog draw lqn`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "the model of a trace" => "dyelog draw lqn traces/shop.otlp.jsonl -o shop.svg",
    "what is busy under a load" => "dyelog draw lqn traces/shop.otlp.jsonl --config examples/shop/shop.toml --results -o busy.svg",
    "one task and what it exchanges requests with" => "dyelog draw lqn traces/shop.otlp.jsonl --focus inventory -o inventory.svg",
    "for Graphviz" => "dyelog draw lqn traces/shop.otlp.jsonl --format dot",
})]
pub struct LqnArguments {
    #[command(flatten)]
    source: SourceArguments,
    /// Solve the model, and colour tasks and processors by how busy they are
    #[arg(long)]
    results: bool,
    /// Draw only this task and those near it; may be repeated
    #[arg(long, value_name = "TASK")]
    focus: Vec<String>,
    /// How many requests away from `--focus` a task may be
    #[arg(long, value_name = "N", default_value_t = 1)]
    hops: usize,
    /// The most tasks to draw; those nearest to the focus, or to the sources of load, stay
    #[arg(long, value_name = "N", default_value_t = 300)]
    limit: usize,
    /// The language of the picture; that of the output file's extension where not given, else svg
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    #[command(flatten)]
    output: OutputArguments,
}

/// Which operation of a trace is drawn.
#[derive(Debug, Args)]
pub struct OperationArguments {
    #[command(flatten)]
    input: TraceArguments,
    /// A rule file whose templates come before the shipped ones, and replace those of the same name; may be repeated
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
    /// Draw the first operation of this scenario
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
    /// Draw the first operation with this run identifier
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// The most nodes to draw
    #[arg(long, value_name = "N", default_value_t = 200)]
    limit: usize,
}

/// Arguments of `dyelog draw toeg`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "Figure 3 of the 1998 paper" => "dyelog draw toeg traces/figure-3.angio -o figure-3.svg",
    "an operation of a scenario" => "dyelog draw toeg traces/shop.otlp.jsonl --scenario 'gateway POST /checkout/{id}' -o checkout.svg",
})]
pub struct ToegArguments {
    #[command(flatten)]
    operation: OperationArguments,
    /// The language of the picture; that of the output file's extension where not given, else svg
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    #[command(flatten)]
    output: OutputArguments,
}

/// Arguments of `dyelog draw msc`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "messages between tasks, in the order of time" => "dyelog draw msc traces/fork-join.angio -o page.svg",
})]
pub struct MscArguments {
    #[command(flatten)]
    operation: OperationArguments,
    #[command(flatten)]
    output: OutputArguments,
}

/// Languages of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For browsers and documents
    Svg,
    /// For Graphviz
    Dot,
}

impl Format {
    /// Endings of the names of files.
    fn endings(self) -> &'static [&'static str] {
        match self {
            Self::Svg => &["svg"],
            Self::Dot => &["dot", "gv"],
        }
    }
}

/// The form of a picture; warns where it was named, and the output's name tells of another one.
fn form(given: Option<Format>, output: &OutputArguments, terminal: &Terminal) -> Result<Format, Failure> {
    let format = output::form(given, Format::Svg, output)?;
    output::check_ending(output, format.endings(), terminal);
    Ok(format)
}

/// Runs a subcommand of `dyelog draw`.
pub fn run(command: &Command, terminal: &mut Terminal) -> Outcome {
    match command {
        Command::Lqn(arguments) => lqn(arguments, terminal),
        Command::Toeg(arguments) => {
            let format = form(arguments.format, &arguments.output, terminal)?;
            operation(&arguments.operation, &arguments.output, terminal, "toeg", |view, options| match format {
                Format::Svg => draw::toeg::svg(view, options),
                Format::Dot => draw::toeg::dot(view, options),
            })
        }
        Command::Msc(arguments) => {
            output::only(&arguments.output, Format::Svg.endings())?;
            operation(&arguments.operation, &arguments.output, terminal, "msc", draw::msc::svg)
        }
    }
}

fn lqn(arguments: &LqnArguments, terminal: &mut Terminal) -> Outcome {
    let format = form(arguments.format, &arguments.output, terminal)?;
    let source = source::load(&arguments.source, terminal)?;
    let model = &source.model;
    let solution = || {
        let found = solve(model, &SolveOptions::default(), None, &mut ());
        found.map_err(|errors| about_scenarios(model, source.origins.as_ref(), errors))
    };
    let results = arguments.results.then(solution).transpose()?.map(|solution| solution.results);
    let options = LqnOptions {
        focus: focus(model, &arguments.focus)?,
        hops: arguments.hops,
        limit: arguments.limit,
        seconds: source.origins.is_some(),
        title: title(model),
        ..LqnOptions::default()
    };
    let drawn = match format {
        Format::Svg => draw::lqn::svg(model, results.as_ref(), &options),
        Format::Dot => draw::lqn::dot(model, results.as_ref(), &options),
    };
    write(&drawn, &arguments.output, terminal)?;
    match results {
        Some(results) if !results.convergence.converged => {
            terminal.say("the solver did not converge: do not rely on the results\n");
            Ok(Exit::NotConverged)
        }
        _ => Ok(Exit::Ok),
    }
}

fn title(model: &Model) -> String {
    let comment = model.comment.trim();
    if comment.is_empty() { LqnOptions::default().title } else { format!("Layered queueing network: {comment}") }
}

/// The tasks of those names.
fn focus(model: &Model, names: &[String]) -> Result<Vec<TaskId>, Failure> {
    let find = |name: &String| {
        model.task_named(name).ok_or_else(|| {
            let message = format!("the model has no task `{name}` to focus on");
            Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message)
                .with_similar(name, model.tasks.iter().map(|task| &*task.name))
        })
    };
    let (found, unknown): (Vec<_>, Vec<_>) = names.iter().map(find).partition(Result::is_ok);
    if unknown.is_empty() {
        return Ok(found.into_iter().filter_map(Result::ok).collect());
    }
    Err(Diagnostics(unknown.into_iter().filter_map(Result::err).collect()).into())
}

/// Draws one operation.
fn operation(
    arguments: &OperationArguments,
    output: &OutputArguments,
    terminal: &mut Terminal,
    id: &str,
    draw: impl FnOnce(&OperationView<'_>, &OperationOptions) -> Drawn,
) -> Outcome {
    input::check_stdin_once(arguments.input.traces.iter().chain(&arguments.rules))?;
    let rules = rule_files::load(&arguments.rules, &mut terminal.sources)?;
    terminal.report(&rule_files::about_the_users(&rules));
    let mut names = TraceNames::new();
    let toeg = pick(arguments, &mut names)?;
    let (outcome, matches) = recognise(&rules, &names, &toeg)?;
    let view = OperationView { toeg: &toeg, names: &names, outcome: &outcome, matches: &matches };
    let options = OperationOptions { limit: arguments.limit, id: id.to_owned() };
    write(&draw(&view, &options), output, terminal)?;
    Ok(Exit::Ok)
}

/// The first sound operation that is asked for.
fn pick(arguments: &OperationArguments, names: &mut TraceNames) -> Result<Toeg, Failure> {
    let mut found: Option<Operation> = None;
    let mut scenarios: Vec<Arc<str>> = Vec::new();
    let mut choose = |names: &TraceNames, operation: Operation| {
        let scenario = names.names.shared(operation.scenario);
        let wanted = arguments.scenario.as_ref().is_none_or(|name| **name == *scenario)
            && arguments.run.as_ref().is_none_or(|run| **run == *operation.run);
        if wanted {
            found = Some(operation);
            return ControlFlow::Break(());
        }
        if scenarios.len() < 1000 && scenarios.last() != Some(&scenario) {
            scenarios.push(scenario);
        }
        ControlFlow::Continue(())
    };
    let reading = &arguments.input.reading;
    let mut gate = Gate::new(Policy { strict: reading.strict }, &mut choose);
    let options = reading.options();
    let mut stopped = false;
    for file in &arguments.input.traces {
        let mut sink = |names: &TraceNames, operation: Operation| {
            let flow = trace::Sink::operation(&mut gate, names, operation);
            stopped = flow.is_break();
            flow
        };
        trace::read(&input::shown(file), input::open(file)?, &options, names, &mut sink)?;
        if stopped {
            break;
        }
    }
    let quality = gate.finish()?;
    match found.map(Toeg::build) {
        Some(Ok(toeg)) => Ok(toeg),
        Some(Err(_)) | None => Err(nothing(arguments, quality.set_aside, &scenarios).into()),
    }
}

/// Why there is no operation to draw.
fn nothing(arguments: &OperationArguments, set_aside: u64, scenarios: &[Arc<str>]) -> Diagnostic {
    let scenario = arguments.scenario.as_ref().map(|name| format!(" of scenario `{name}`")).unwrap_or_default();
    let run = arguments.run.as_ref().map(|run| format!(" with run identifier `{run}`")).unwrap_or_default();
    let message = format!("there is no sound operation{scenario}{run} to draw");
    let mut finding = Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message);
    if let Some(name) = &arguments.scenario {
        finding = finding.with_similar(name, scenarios.iter().map(|name| &**name));
    }
    if set_aside > 0 {
        finding = finding.with_note(set_aside_words(set_aside));
    }
    finding
}

/// Writes a picture and says what is not in it.
fn write(drawn: &Drawn, output: &OutputArguments, terminal: &Terminal) -> Result<(), Failure> {
    for note in &drawn.notes {
        terminal.remark(note);
    }
    let mut output = Output::open(output)?;
    output.text(&drawn.text)?;
    output.finish()
}
