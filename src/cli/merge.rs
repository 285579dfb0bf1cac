//! `dyelog merge`.

use std::path::PathBuf;

use clap::Args;
use dyelog::model::Configuration;

use crate::cli::args::{KEPT_SPANS, OutputArguments, ReadingArguments, ReduceArguments};
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::terminal::Terminal;
use crate::cli::{Outcome, input, source};

/// Arguments of `dyelog merge`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "what one trace shows" => "dyelog merge traces/figure-3.angio -o one.json",
    "and another" => "dyelog merge traces/figure-4.angio -o other.json",
    "both as one" => "dyelog merge one.json other.json -o both.json",
})]
pub struct Arguments {
    /// Saved sub-models, or traces; `-` is standard input
    #[arg(value_name = "SUBMODEL|TRACE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    reading: ReadingArguments,
    #[command(flatten)]
    reduce: ReduceArguments,
    /// How many spans the sub-model keeps at most, so that those of other files complete their operations [default: 1000000]
    #[arg(long, value_name = "COUNT")]
    keep_spans: Option<usize>,
    #[command(flatten)]
    output: OutputArguments,
}

/// Merges sub-models: the same as making one of all their traces.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    output::only(&arguments.output, &["json"])?;
    input::check_stdin_once(arguments.files.iter().chain(&arguments.reduce.rules))?;
    let most = arguments.keep_spans.unwrap_or(KEPT_SPANS);
    let summed = source::submodel(
        &arguments.files,
        (&arguments.reading, &arguments.reduce),
        &Configuration::default(),
        most,
        terminal,
    )?;
    output::write(&arguments.output, &summed.saved())?;
    Ok(Exit::Ok)
}
