//! `dyelog profile`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use dyelog::callgraph::change::Impact;
use dyelog::callgraph::diff::{Limit, Renaming, diff};
use dyelog::callgraph::{self, CriticalPaths, Granularity, Graph, Profile, Target, write};
use dyelog::diagnostic::Diagnostics;
use dyelog::model::Configuration;
use dyelog::pipeline::{self, Profiled, Profiling};
use dyelog::report::call_graph::{self, Shown};

use crate::cli::args::{Form, OutputArguments};
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, Outcome, input, output};

/// Arguments of `dyelog profile`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_long_help = examples! {
    "where processor time goes, by function and by path" => "dyelog profile traces/calls/figure-1.jsonl",
    "objects of an interface as one" => "dyelog profile traces/calls/figure-1.jsonl --by interface",
    "a page to look at in a browser" => "dyelog profile traces/calls/figure-1.jsonl --html -o figure-1.html",
    "for a flame graph" => "dyelog profile traces/calls/figure-1.jsonl --format folded -o figure-1.folded",
})]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    profile: ProfileArguments,
}

/// The subcommands of `dyelog profile`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compare two measured runs, function by function and for each operation
    Diff(DiffArguments),
    /// Write records in another form
    Convert(ConvertArguments),
}

/// What is profiled, and how it is shown.
#[derive(Debug, Args)]
pub struct ProfileArguments {
    /// Files of probe records, JSON Lines or binary, or of spans in any format, plain or compressed; `-` is standard input
    #[arg(value_name = "RECORDS", required = true)]
    records: Vec<PathBuf>,
    #[command(flatten)]
    analysis: AnalysisArguments,
    /// The form of the profile; that of the output file's extension where not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// A page for a browser: coordinated hyperbolic trees of interfaces, calls and sums, and a flame graph
    #[arg(long, conflicts_with = "format")]
    html: bool,
    /// The critical path of each operation too, as text and JSON; memory is then in proportion to the calls
    #[arg(long)]
    critical_path: bool,
    #[command(flatten)]
    shown: ShownArguments,
    #[command(flatten)]
    output: OutputArguments,
}

/// How records are analysed.
#[derive(Debug, Args)]
pub struct AnalysisArguments {
    /// The granularity of functions
    #[arg(long, value_enum, value_name = "HOW", default_value_t = By::Object)]
    by: By,
    /// Under `--by interface`: keep the objects of this interface or module (`Mod::*`), or this object, as nodes of their own; may be repeated
    #[arg(long, value_name = "NAME")]
    expand: Vec<String>,
    /// The clock that times are taken from
    #[arg(long, value_enum, value_name = "CLOCK", default_value_t = Measure::Auto)]
    measure: Measure,
    /// What is taken off latencies: every probe inside, or what the formula of 2003 takes off
    #[arg(long, value_enum, value_name = "RULE", default_value_t = Latency::Net)]
    latency: Latency,
    /// A CPU profile, pprof or OTLP, whose samples name spans: their processor time, where the input is spans; may be repeated
    #[arg(long, value_name = "FILE")]
    cpu_profile: Vec<PathBuf>,
    /// A TOML file whose `[processor_groups]` says which processors are one, and `[cpu_attributes]` where spans have processor time; under `impact` also
    /// the load, as for `solve`
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// How much is shown.
#[derive(Debug, Args)]
pub struct ShownArguments {
    /// As text: leave out functions and paths with a smaller share of the whole, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.5, value_parser = percentage)]
    least: f64,
    /// As text: at most so many functions, and so many paths
    #[arg(long, value_name = "N", default_value_t = 40)]
    lines: usize,
}

fn percentage(text: &str) -> Result<f64, String> {
    let value: f64 = text.strip_suffix('%').unwrap_or(text).parse().map_err(|_| "it is no number".to_owned())?;
    if (0.0..=100.0).contains(&value) { Ok(value) } else { Err("it lies between 0 and 100".to_owned()) }
}

/// The granularity of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// A function of each object by itself
    Object,
    /// A function of all objects of its interface
    Interface,
}

/// The clock that times are taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measure {
    /// Processor time if the first records have it, else the clock on the wall
    Auto,
    /// Processor time
    Cpu,
    /// The clock on the wall: waiting counts as well
    Wall,
}

/// What is taken off latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Latency {
    /// Every probe between begin and end
    Net,
    /// As printed in 2003 §3.2: the function's own probes stay in
    Paper,
}

/// Forms of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// The summary graph, with vectors of nanoseconds
    Json,
    /// The summary graph as a tree of primary links
    Xml,
    /// A row for each function and processor group
    Csv,
    /// Stacks for flame graphs
    Folded,
    /// For `pprof`, not compressed
    Pprof,
}

/// Arguments of `dyelog profile diff`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "two runs" => "dyelog profile diff traces/calls/figure-1.jsonl traces/calls/figure-1.jsonl",
    "in CI: a function that got slower by more than 5% fails the step" =>
    "dyelog profile diff traces/calls/figure-1.jsonl traces/calls/figure-1.jsonl --fail-if 'self > 5%'",
})]
pub struct DiffArguments {
    /// The records or spans of the first run
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// The records or spans of the second run
    #[arg(value_name = "AFTER")]
    after: PathBuf,
    /// A function that has another name in the second run, `OLD=NEW`; `M::*=N::*` for all that begins so; may be repeated
    #[arg(long, value_name = "OLD=NEW")]
    map: Vec<String>,
    /// Exit with 1 where it holds and is more than chance: `self > 5%`; or `inclusive`, `calls`, `latency`, `total`; may be repeated
    #[arg(long, value_name = "METRIC > N%")]
    fail_if: Vec<String>,
    #[command(flatten)]
    analysis: AnalysisArguments,
    /// The form of the comparison; that of the output file's extension where not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Form>,
    #[command(flatten)]
    shown: ShownArguments,
    #[command(flatten)]
    output: OutputArguments,
}

/// Arguments of `dyelog profile convert`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "the binary form, at most 24 bytes a record" =>
    "dyelog profile convert traces/calls/figure-1.jsonl --to binary -o figure-1.calls",
})]
pub struct ConvertArguments {
    /// Files of probe records, JSON Lines or binary, plain or compressed; `-` is standard input
    #[arg(value_name = "RECORDS", required = true)]
    records: Vec<PathBuf>,
    /// The form to write
    #[arg(long, value_enum, value_name = "FORM", default_value_t = To::Jsonl)]
    to: To,
    #[command(flatten)]
    output: OutputArguments,
}

/// Forms of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum To {
    /// JSON Lines
    Jsonl,
    /// The binary form
    Binary,
}

impl AnalysisArguments {
    /// The granularity of the graph.
    pub fn granularity(&self) -> Granularity {
        Granularity { by_interface: self.by == By::Interface, expanded: self.expand.clone() }
    }

    /// Reads records or spans as the arguments ask for, with at most so many single calls.
    pub fn profile(&self, records: &[PathBuf], keep_calls: usize, terminal: &mut Terminal) -> Result<Profile, Failure> {
        let keep = |profiling: &mut Profiling| profiling.options.keep_calls = keep_calls;
        Ok(self.read(records, keep, terminal)?.0.profile)
    }

    /// The same with what an estimate of an impact needs.
    pub fn for_impact(
        &self,
        records: &[PathBuf],
        terminal: &mut Terminal,
    ) -> Result<(Profiled, Configuration), Failure> {
        self.read(records, |profiling| profiling.for_impact = true, terminal)
    }

    fn read(
        &self,
        records: &[PathBuf],
        keep: impl FnOnce(&mut Profiling),
        terminal: &mut Terminal,
    ) -> Result<(Profiled, Configuration), Failure> {
        input::check_stdin_once(records.iter().chain(&self.cpu_profile).chain(&self.config))?;
        let config = self.config.as_deref().map(input::input);
        let (configuration, _) = pipeline::configuration(config.as_ref(), terminal)?;
        let mut profiling = Profiling::of(&configuration)?;
        profiling.cpu_profiles = input::inputs(&self.cpu_profile);
        profiling.options.latency = match self.latency {
            Latency::Net => callgraph::Latency::Net,
            Latency::Paper => callgraph::Latency::Paper,
        };
        profiling.options.measure = match self.measure {
            Measure::Auto => callgraph::Measure::Auto,
            Measure::Cpu => callgraph::Measure::Cpu,
            Measure::Wall => callgraph::Measure::Wall,
        };
        keep(&mut profiling);
        Ok((pipeline::profile(&input::inputs(records), &profiling, terminal)?, configuration))
    }
}

/// Runs `dyelog profile` or one of its subcommands.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    match &arguments.command {
        Some(Command::Diff(arguments)) => compare(arguments, terminal),
        Some(Command::Convert(arguments)) => convert(arguments, terminal),
        None => profile(&arguments.profile, terminal),
    }
}

fn profile(arguments: &ProfileArguments, terminal: &mut Terminal) -> Outcome {
    if arguments.html {
        return page(arguments, terminal);
    }
    let format = output::form(arguments.format, Format::Text, &arguments.output)?;
    let keep_calls = if arguments.critical_path { usize::MAX } else { 0 };
    let profile = arguments.analysis.profile(&arguments.records, keep_calls, terminal)?;
    let critical = CriticalPaths::of(&profile);
    let objects = arguments.analysis.by == By::Object;
    let graph = Graph::of(&profile, &arguments.analysis.granularity());
    let shown = Shown { least: arguments.shown.least / 100.0, lines: arguments.shown.lines };
    let mut output = Output::open(&arguments.output)?;
    match format {
        Format::Text => {
            let look = terminal.look(&arguments.output);
            output.text(&call_graph::text(&profile, &graph, shown, look))?;
            if let Some(paths) = &critical {
                output.text(&format!("\n{}", call_graph::critical_text(&profile, &graph, paths, shown, look)))?;
            }
        }
        Format::Json => output.text(&write::json(&profile, &graph, critical.as_ref()))?,
        Format::Xml => output.text(&write::xml(&profile, &graph))?,
        Format::Csv => output.text(&write::csv(&profile, &graph))?,
        Format::Folded => output.text(&write::folded(&profile, objects))?,
        Format::Pprof => output.attempt(|sink| sink.write_all(&write::pprof(&profile, objects)))?,
    }
    output.finish()?;
    Ok(Exit::Ok)
}

/// Writes a profile as a page.
fn page(arguments: &ProfileArguments, terminal: &mut Terminal) -> Outcome {
    output::only(&arguments.output, &["html", "htm"])?;
    let profile = arguments.analysis.profile(&arguments.records, call_graph::page::MOST_CALLS, terminal)?;
    let graph = Graph::of(&profile, &arguments.analysis.granularity());
    output::write(&arguments.output, &html(&arguments.records, &profile, &graph, None))?;
    Ok(Exit::Ok)
}

/// The page of a profile, and of a change where there is one.
pub fn html(records: &[PathBuf], profile: &Profile, graph: &Graph, impact: Option<&Impact>) -> String {
    let inputs: Vec<String> = records.iter().map(|path| input::shown(path).to_string()).collect();
    let title = match &inputs[..] {
        [first, _, ..] => format!("Call graph of {first} and {} more", inputs.len() - 1),
        [first] => format!("Call graph of {first}"),
        [] => "Call graph".to_owned(),
    };
    call_graph::page::html(&call_graph::page::Page { title: &title, inputs: &inputs, profile, graph, impact })
}

fn compare(arguments: &DiffArguments, terminal: &mut Terminal) -> Outcome {
    let format = output::form(arguments.format, Form::Text, &arguments.output)?;
    let renamings = Diagnostics::gather(arguments.map.iter().map(|text| Renaming::parse(text)))?;
    let limits = Diagnostics::gather(arguments.fail_if.iter().map(|text| Limit::parse(text)))?;
    input::check_stdin_once([&arguments.before, &arguments.after])?;
    let analysis = &arguments.analysis;
    let mut run = |file: &PathBuf| -> Result<(Profile, Graph), Failure> {
        let profile = analysis.profile(std::slice::from_ref(file), 0, terminal)?;
        let graph = Graph::of(&profile, &analysis.granularity());
        Ok((profile, graph))
    };
    let (before, after) = (run(&arguments.before)?, run(&arguments.after)?);
    let difference = diff((&before.0, &before.1), (&after.0, &after.1), &renamings)?;
    terminal.report(&difference.findings);
    let breaches: Vec<_> = arguments
        .fail_if
        .iter()
        .zip(&limits)
        .map(|(text, limit)| (text.clone(), limit.breaches(&difference)))
        .collect();
    let text = match format {
        Form::Text => {
            let (least, look) = (arguments.shown.least / 100.0, terminal.look(&arguments.output));
            call_graph::difference_text(&difference, &breaches, least, arguments.shown.lines, look)
        }
        Form::Json => call_graph::difference_json(&difference, &breaches),
    };
    output::write(&arguments.output, &text)?;
    let broken = breaches.iter().any(|(_, breaches)| !breaches.is_empty());
    Ok(if broken { Exit::Finding } else { Exit::Ok })
}

fn convert(arguments: &ConvertArguments, terminal: &Terminal) -> Outcome {
    let endings: &[&str] = match arguments.to {
        To::Jsonl => &["jsonl", "json"],
        To::Binary => &["calls", "bin"],
    };
    output::only(&arguments.output, endings)?;
    input::check_stdin_once(&arguments.records)?;
    let files = pipeline::unpacked(&input::inputs(&arguments.records))?;
    let target = match arguments.to {
        To::Jsonl => Target::Lines,
        To::Binary => Target::Binary,
    };
    let mut output = Output::open(&arguments.output)?;
    let reading = output.attempt(|sink| Ok(callgraph::convert(files, target, sink)))??;
    output.finish()?;
    terminal.report(&reading.findings);
    Ok(Exit::Ok)
}
