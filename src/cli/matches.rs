//! `dyelog matches`.

use clap::{Args, ValueEnum};
use dyelog::pipeline::Keep;
use dyelog::report;

use crate::cli::Outcome;
use crate::cli::args::{OutputArguments, ReduceArguments, TraceArguments};
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::reduce::{self, Interactions};
use crate::cli::terminal::Terminal;

/// Arguments of `dyelog matches`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "a row each match, and how often each template matched" => "dyelog matches traces/figure-3.angio",
    "of a trace without a dye, a row each interaction" => "dyelog matches traces/same/figure-3a.csv --format csv",
    "with a rule file of your own" => "dyelog matches traces/acknowledged.angio --rules examples/rules/acknowledged.dl --format csv",
})]
pub struct Arguments {
    #[command(flatten)]
    input: TraceArguments,
    #[command(flatten)]
    reduce: ReduceArguments,
    /// The form of the list; that of the output file's extension where not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    #[command(flatten)]
    output: OutputArguments,
}

/// Forms of a list of matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A row each match, with a header
    Csv,
    /// A list of objects, with the nodes and variables that each match binds
    Json,
    /// A table for people
    Text,
}

/// Lists the committed matches.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let format = output::form(arguments.format, Format::Text, &arguments.output)?;
    let (input, reading) = (&arguments.input.traces, &arguments.input.reading);
    let keep = if format == Format::Json { Keep::Bindings } else { Keep::Rows };
    let reduced = reduce::reduce(input, reading, &arguments.reduce, keep, terminal)?;
    if let Some(Interactions { records, names, .. }) = &reduced.interactions {
        let text = match format {
            Format::Csv => report::interactions::csv(records, names),
            Format::Json => report::interactions::json(records, names),
            Format::Text => report::interactions::text(records, names, terminal.look(&arguments.output)),
        };
        output::write(&arguments.output, &text)?;
        return Ok(Exit::Ok);
    }
    let matches = &reduced.reduction.matches;
    let text = match format {
        Format::Csv => report::matches::csv(matches),
        Format::Json => report::matches::json(matches),
        Format::Text => report::matches::text(matches, terminal.look(&arguments.output)),
    };
    output::write(&arguments.output, &text)?;
    Ok(Exit::Ok)
}
