//! `dyelog solve`.

use clap::{Args, ValueEnum};
use dyelog::diagnostic::{Diagnostic, Diagnostics, Severity};
use dyelog::lqn::lint;
use dyelog::lqn::results::Results;
use dyelog::report;
use dyelog::solve::{self, LayeredOptions, SimulateOptions};

use crate::cli::Outcome;
use crate::cli::args::{OutputArguments, SourceArguments};
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::source::{self, Source};
use crate::cli::terminal::Terminal;

/// Arguments of `dyelog solve`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "response times, throughputs and utilisations of the system that was traced" => "dyelog solve traces/shop.otlp.jsonl --config examples/shop/shop.toml",
    "for a program" => "dyelog solve traces/shop.otlp.jsonl --format json -o results.json",
})]
pub struct Arguments {
    #[command(flatten)]
    source: SourceArguments,
    /// The solver
    #[arg(long, value_enum, value_name = "SOLVER", default_value_t = Solver::Layered)]
    solver: Solver,
    /// The form of the results
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    output: OutputArguments,
}

/// Solvers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Solver {
    /// Mean value analysis in layers
    Layered,
    /// Discrete events, with the defaults of `dyelog simulate`
    Simulate,
}

/// Forms of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables for people
    Text,
    /// JSON
    Json,
    /// A row each figure
    Csv,
}

/// Solves a model.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let source = source::load(&arguments.source, terminal)?;
    let solved = match arguments.solver {
        Solver::Layered => solve::layered(&source.model, &LayeredOptions::default()),
        Solver::Simulate => {
            let threads = arguments.source.reduce.thread_count();
            solve::simulate(&source.model, &SimulateOptions { threads, ..SimulateOptions::default() })
        }
    };
    tell(&source, solved, arguments.format, &arguments.output, terminal)
}

/// Tells what a solver made of a model, and what is doubtful about it.
pub fn tell(
    source: &Source,
    solved: Result<Results, Diagnostics>,
    format: Format,
    output: &OutputArguments,
    terminal: &mut Terminal,
) -> Outcome {
    let (model, origins) = (&source.model, source.origins.as_ref());
    let doubtful = lint(source);
    let results = match solved {
        Ok(results) => results,
        Err(Diagnostics(found)) => return Err(Diagnostics([doubtful, found].concat()).into()),
    };
    // What solves is no error, whatever a check that knows no solver says of it.
    let warnings: Vec<Diagnostic> =
        doubtful.into_iter().filter(|finding| finding.severity == Severity::Warning).collect();
    terminal.report(&warnings);
    if let Some(origins) = origins {
        terminal.report(&report::unlike_traced(model, &results, origins));
    }
    for doubt in &results.doubts {
        terminal.say(&format!("note: {doubt}\n"));
    }
    let text = match format {
        Format::Text => report::results::text(model, &results, origins, terminal.look(output)),
        Format::Json => report::json::results(model, &results, origins),
        Format::Csv => report::csv::results(model, &results, origins),
    };
    output::write(output, &text)?;
    if results.convergence.converged {
        return Ok(Exit::Ok);
    }
    terminal.say("the solver did not converge: the results are not to be relied on\n");
    Ok(Exit::NotConverged)
}

/// What is doubtful about a model file. A model of traces was told about when it was made.
fn lint(source: &Source) -> Vec<Diagnostic> {
    if source.origins.is_none() { lint::check(&source.model) } else { Vec::new() }
}
