//! `dyelog rules profile`.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Instant;

use clap::Args;
use dyelog::datalog::eval::Watch;
use dyelog::pipeline;
use dyelog::query::{Answering, Question};
use dyelog::report;

use crate::cli::Outcome;
use crate::cli::args::{Form, OutputArguments, ReadingArguments};
use crate::cli::exit::Exit;
use crate::cli::query;
use crate::cli::terminal::Terminal;
use crate::cli::{input, interrupt, output, rule_files};

/// Arguments of `dyelog rules profile`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "what each rule and literal costs" => "dyelog rules profile examples/queries/by_service.dl --scope trace traces/shop.otlp.jsonl",
    "for a program" => "dyelog rules profile rules/std/n_plus_one.dl traces/shop.otlp.jsonl --format json",
})]
pub struct Arguments {
    /// The rule file, whose relations are computed as `dyelog query` does
    #[arg(value_name = "FILE.dl")]
    file: PathBuf,
    /// Trace files, plain or compressed; `-` is standard input
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,
    /// Compute this relation; may be repeated
    #[arg(long, value_name = "NAME")]
    relation: Vec<String>,
    #[command(flatten)]
    over: query::Over,
    #[command(flatten)]
    reading: ReadingArguments,
    /// The form of the answer; that of the output file's extension where not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Form>,
    #[command(flatten)]
    output: OutputArguments,
}

/// Measures what rules cost over traces. Exits with 1 where a limit ended the evaluation, with 130 where Ctrl-C did.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let format = output::form(arguments.format, Form::Text, &arguments.output)?;
    input::check_stdin_once(arguments.traces.iter().chain([&arguments.file]))?;
    let (loaded, from) = query::program(Some(&arguments.file), &[], terminal)?;
    let (opened, scope) = query::Traces::open(&arguments.traces, &arguments.reading, &arguments.over)?;
    let question = Question::new(&loaded.program, loaded.diagnostics, from, &arguments.relation, scope)?;
    terminal.report(&rule_files::not_allowed(&loaded.program, &question.warnings));
    let rules = rule_files::load(&[], &mut terminal.sources)?;
    let begin = Instant::now();
    let clock = || u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let stopping = interrupt::stopping();
    let interrupted = || stopping.load(Ordering::Relaxed);
    let watch = Watch { clock: &clock, interrupted: &interrupted };
    let mut rows = query::Unshown;
    let mut answering =
        Answering::new(&question, &rules, &mut rows).within(arguments.over.bounds.limits()).profiling(&watch);
    let (names, _, quality) = opened.read(&mut answering)?;
    let told = answering.finish(&names)?;
    pipeline::tell_quality(&quality, terminal);
    terminal.report(&told.findings);
    let text = match format {
        Form::Text => report::rule_profile::text(&loaded.program, &told.profile, terminal.look(&arguments.output)),
        Form::Json => report::rule_profile::json(&loaded.program, &told.profile),
    };
    output::write(&arguments.output, &text)?;
    Ok(match told.profile.interrupted {
        true if interrupted() => Exit::Interrupted,
        true => Exit::Finding,
        false => Exit::Ok,
    })
}
