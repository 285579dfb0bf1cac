//! The arguments as typed. Each subcommand's own lie beside its code; those that several share lie here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use dyelog::tlc::{EngineKind, EntryMerge};
use dyelog::trace::messages::clocks::Correction;
use dyelog::trace::spans::{Grouping, TableMapping};
use dyelog::trace::{Format, ReadOptions};

use crate::cli::reduce;
use crate::cli::utilisation::UtilisationArguments;
use crate::cli::{
    bottleneck, calibrate, compare, completions, config, coverage, diff, draw, explain, impact, lqn, man, matches,
    merge, model, profile, query, report, rules, search, server, simulate, solve, test, trace, validate, whatif,
    why_not,
};

/// Turns execution traces of distributed software into layered queueing network models, and solves them.
///
/// Data goes to standard output, words about it to standard error. Exit codes: 0 done, 1 a check found something, 2 the
/// arguments or an input cannot be used, 3 a solver did not converge, 70 a defect of dyelog.
#[derive(Debug, Parser)]
#[command(name = "dyelog", version, propagate_version = true, max_term_width = 100)]
#[command(after_long_help = examples! {
    "from a trace to response times, at the load that was traced" => "dyelog solve traces/shop.otlp.jsonl",
    "and at the load of a configuration" => "dyelog solve traces/shop.otlp.jsonl --config examples/shop/shop.toml",
})]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
    /// When to use colour; `auto` is on a terminal, and heeds NO_COLOR, CLICOLOR and CLICOLOR_FORCE
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto, global = true)]
    pub color: Color,
    /// Show warnings and errors only, no notes
    #[arg(short, long, global = true)]
    pub quiet: bool,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a model from traces
    Model(model::Arguments),
    /// Solve a model, or the model that traces make
    Solve(solve::Arguments),
    /// Simulate a model, or the model that traces make: intervals, percentiles
    Simulate(simulate::Arguments),
    /// Solve a model with parameters changed, over ranges of values
    Whatif(whatif::Arguments),
    /// Find the largest, smallest or cheapest setting of a model that meets goals
    Search(search::Arguments),
    /// Tell what limits a model: what saturates first under growing load, and what comes next
    Bottleneck(bottleneck::Arguments),
    /// Fit one model to traces of several loads, with intervals for what it predicts
    Calibrate(calibrate::Arguments),
    /// Hold what a model predicts against what traces of other loads have measured
    Validate(validate::Arguments),
    /// Write all there is to tell about a model as one page of HTML
    Report(report::Arguments),
    /// Receive traces of a running system, and keep what models of any period need: starts `dyelog-server`
    Serve(server::Serve),
    /// Ask about a period of what a server recorded: `dyelog-server period`
    Period(server::Period),
    /// Tell where processor time goes along causal chains of calls, from the records of probes
    Profile(profile::Arguments),
    /// Estimate what a change of functions' processor time comes to, from the records of probes
    Impact(impact::Arguments),
    /// Ask questions of traces: what rules derive from spans, operations and matches
    Query(query::Arguments),
    /// List the interactions that the templates recognise in traces
    Matches(matches::Arguments),
    /// Merge saved sub-models, or save what traces show
    Merge(merge::Arguments),
    /// Start and check configurations
    #[command(subcommand)]
    Config(config::Command),
    /// Draw models and operations, as SVG or DOT
    #[command(subcommand)]
    Draw(draw::Command),
    /// Look at traces: quality, figures, conversion
    #[command(subcommand)]
    Trace(trace::Command),
    /// Check model files
    #[command(subcommand)]
    Lqn(lqn::Command),
    /// Work on rule files
    #[command(subcommand)]
    Rules(rules::Command),
    /// Recognise interactions with the dye of traces and without, and tell where the two differ
    Compare(compare::Arguments),
    /// Compare two models or two sets of results; exits with 1 where they differ
    Diff(diff::Arguments),
    /// Test golden traces: compare their models with those accepted; exits with 1 where they differ
    Test(test::Arguments),
    /// Explain the code of a finding
    Explain(explain::Arguments),
    /// Tell why a template does not take a node: the step that fails, and how near it came
    WhyNot(why_not::Arguments),
    /// Tell which templates fired and which nodes none took; exits with 1 where there are such nodes
    Coverage(coverage::Arguments),
    /// Write a completion script for a shell
    Completions(completions::Arguments),
    /// Write manual pages, or the reference of the whole command line
    Man(man::Arguments),
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless the environment asks for none.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Traces to read.
#[derive(Clone, Debug, Args)]
pub struct TraceArguments {
    /// Trace files, plain or compressed (gzip, zstd, bzip2, xz, deflate), folders and archives of them (tar, zip), or patterns such as `'day/*.json'`; `-` is standard input
    #[arg(value_name = "TRACE", required = true)]
    pub traces: Vec<PathBuf>,
    #[command(flatten)]
    pub reading: ReadingArguments,
}

/// How traces are read.
#[derive(Clone, Debug, Args)]
pub struct ReadingArguments {
    /// The traces' format; detected from the content where not given
    #[arg(long, value_name = "FORMAT", value_parser = trace_format())]
    pub from: Option<Format>,
    /// Message traces: the files are parts of one trace, recorded on several machines, and not a trace each
    #[arg(long)]
    pub one_trace: bool,
    /// Message traces: add so many seconds to all times of a file, or of a task, whose clock is known to differ; may be repeated
    #[arg(long, value_name = "NAME=SECONDS")]
    pub clock: Vec<Correction>,
    /// Spans: the probability with which operations were kept, such as 0.1; where it is not given, the traces tell
    #[arg(long, value_name = "PROBABILITY", value_parser = probability)]
    pub sampling: Option<f64>,
    /// Spans: names of operations that fit the pattern are one operation, such as `GET /user/*`; `none` keeps all names that fit no pattern; may be repeated
    #[arg(long, value_name = "PATTERN", value_parser = group)]
    pub group: Vec<String>,
    /// Spans: those of one environment, such as `production`, and those that name none
    #[arg(long, value_name = "NAME")]
    pub environment: Option<Arc<str>>,
    /// Spans: those of services of one namespace, and those that name none
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<Arc<str>>,
    /// Tables of spans: what their columns mean, a file in TOML or `deeptralog`, `nezha`, `alibaba-2021`, `alibaba-2022`, `clickhouse`; the names of columns tell where not given
    #[arg(long, value_name = "MAPPING", value_parser = table)]
    pub table: Option<Arc<TableMapping>>,
    /// Spans: how much memory those take whose operations may go on in what was not read yet, such as `512MB`; what exceeds it waits in files of the folder for temporary ones, which no result depends on
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "64MB")]
    pub memory: u64,
    /// Refuse damaged input instead of setting it aside and counting it
    #[arg(long)]
    pub strict: bool,
}

impl ReadingArguments {
    /// How names of operations are grouped.
    pub fn grouping(&self) -> Grouping {
        Grouping::of_patterns(&self.group).expect("each pattern was checked as an argument")
    }

    /// What readers of single traces take.
    pub fn options(&self) -> ReadOptions {
        reduce::reading(self).options()
    }
}

/// A size in bytes, with a unit or without.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.len() - text.trim_start_matches(|part: char| part.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return Err("write a size such as `512MB` or `2GiB`".to_owned()),
    };
    let number: Option<u64> = number.parse().ok();
    number.and_then(|number| number.checked_mul(factor)).ok_or_else(|| "write a size such as `512MB`".to_owned())
}

/// A pattern of names, or none.
fn group(text: &str) -> Result<String, String> {
    Grouping::of_patterns(&[text]).map(|_| text.to_owned())
}

/// A mapping of columns that ships, or that of a file.
fn table(text: &str) -> Result<Arc<TableMapping>, String> {
    if let Some(mapping) = TableMapping::preset(text) {
        return Ok(Arc::new(mapping));
    }
    let content = std::fs::read_to_string(text).map_err(|error| {
        let presets: Vec<&str> = TableMapping::presets().collect();
        format!("it is none of `{}`, and no file: {error}", presets.join("`, `"))
    })?;
    TableMapping::parse(text, &content).map(Arc::new).map_err(|found| found.to_string())
}

/// A share, as `1%` or 0.01.
pub fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 0.01));
    let value = number.trim().parse::<f64>().map_err(|_| "write a share such as `1%` or `0.01`".to_owned())?;
    if value >= 0.0 && value.is_finite() { Ok(value * unit) } else { Err("a share is not negative".to_owned()) }
}

/// A probability above zero.
fn probability(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "a number such as 0.1 is expected".to_owned())?;
    if value > 0.0 && value <= 1.0 { Ok(value) } else { Err("it is above 0 and at most 1".to_owned()) }
}

/// How traces are reduced to a sub-model.
#[derive(Clone, Debug, Args)]
pub struct ReduceArguments {
    /// A rule file whose templates come before the shipped ones, and replace those of the same name; may be repeated
    #[arg(long, value_name = "FILE")]
    pub rules: Vec<PathBuf>,
    /// Which entries of a task are one
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Merge::Name)]
    pub merge: Merge,
    /// How interactions are recognised; by the dye where the traces have one, else from the messages alone
    #[arg(long, value_enum, value_name = "HOW")]
    pub analysis: Option<Analysis>,
    /// Messages: tasks serve several requests at once, by threads that the trace does not name; guess which thread a message is of
    #[arg(long)]
    pub guess_threads: bool,
    /// The engine that finds the templates' candidates
    #[arg(long, value_enum, value_name = "ENGINE", default_value_t = Engine::Plans)]
    pub engine: Engine,
    /// Threads to work on; all processors of this machine where not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
}

impl ReduceArguments {
    /// How many threads to work on.
    pub fn thread_count(&self) -> usize {
        self.threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
    }
}

/// A trace format that can be read.
fn trace_format() -> impl TypedValueParser<Value = Format> {
    let names = Format::ALL.into_iter().map(Format::name);
    PossibleValuesParser::new(names)
        .map(|name| Format::from_name(&name).expect("only names of formats are possible values"))
}

/// How interactions are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Analysis {
    /// Trace-based load characterisation: templates over operations, which a dye tells apart.
    Tlc,
    /// Interaction trees over messages; a dye that is there is left out.
    Same,
}

/// Which entries of a task are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Merge {
    /// Those of the same service name; those without a name, by structure.
    Name,
    /// Those that make the same requests.
    Structure,
    /// None: an entry for each place in the scenario.
    None,
}

impl From<Merge> for EntryMerge {
    fn from(merge: Merge) -> Self {
        match merge {
            Merge::Name => Self::Name,
            Merge::Structure => Self::Structure,
            Merge::None => Self::None,
        }
    }
}

/// The engine that finds the templates' candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// Plans made from the rule files.
    Plans,
    /// The shipped rules compiled by crepe: the slow reference.
    Crepe,
}

impl From<Engine> for EngineKind {
    fn from(engine: Engine) -> Self {
        match engine {
            Engine::Plans => Self::Plans,
            Engine::Crepe => Self::Crepe,
        }
    }
}

/// A model file, or traces to make a model of.
#[derive(Clone, Debug, Args)]
pub struct SourceArguments {
    /// Trace files, plain or compressed (gzip, zstd, bzip2, xz, deflate), or one model file (.lqn, .lqnx, JSON); told apart by their content. `-`
    /// is standard input
    #[arg(value_name = "TRACE|MODEL", required = true)]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub reading: ReadingArguments,
    #[command(flatten)]
    pub reduce: ReduceArguments,
    /// A TOML file with what traces cannot tell: load, processors, threads, demands
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub utilisation: UtilisationArguments,
}

/// How many spans a saved sub-model keeps at most, where nothing else is asked for.
pub const KEPT_SPANS: usize = 1_000_000;

/// The argument that names the file to write.
pub const OUTPUT_FILE: &str = "output_file";

/// Where the output goes.
#[derive(Clone, Debug, Args)]
pub struct OutputArguments {
    /// Write to this file, which appears only when it is complete
    #[arg(id = OUTPUT_FILE, short, long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl OutputArguments {
    /// Whether the output goes to a file, not to standard output.
    pub fn is_file(&self) -> bool {
        self.output.as_deref().is_some_and(|path| path != Path::new("-"))
    }
}

/// The form of what is for people as well as for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// For people
    Text,
    /// JSON
    Json,
}
