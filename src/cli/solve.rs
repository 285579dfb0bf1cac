//! `dyelog solve`.

use clap::{Args, ValueEnum};
use dyelog::lqn::xml;
use dyelog::pipeline::Solution;
use dyelog::report;
use dyelog::solve::{LayeredOptions, Method, SolveOptions, solve};
use dyelog::study::outlook::outlook;

use crate::cli::args::{OutputArguments, SourceArguments};
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::progress::Iterations;
use crate::cli::source::{self, Source};
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, Outcome};

/// Arguments of `dyelog solve`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "response times, throughputs and utilisations of the system that was traced" => "dyelog solve traces/shop.otlp.jsonl --config examples/shop/shop.toml",
    "for a program" => "dyelog solve traces/shop.otlp.jsonl --format json -o results.json",
    "as the LQN tool suite writes them: the model with its results" => "dyelog solve traces/shop.otlp.jsonl -o shop.lqxo",
})]
pub struct Arguments {
    #[command(flatten)]
    source: SourceArguments,
    /// The solver
    #[arg(long, value_enum, value_name = "SOLVER", default_value_t = Solver::Layered)]
    solver: Solver,
    /// For the layered solver: models of at most so many states are solved exactly, by their Markov chain; 0 for none of them
    #[arg(long, value_name = "N", default_value_t = LayeredOptions::default().states)]
    states: usize,
    /// The form of the results; that of the output file's extension where not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    #[command(flatten)]
    output: OutputArguments,
}

/// Solvers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Solver {
    /// The Markov chain of models that have few states, else mean value analysis in layers
    Layered,
    /// Discrete events, with the defaults of `dyelog simulate`
    Simulate,
}

impl Solver {
    fn method(self) -> Method {
        match self {
            Self::Layered => Method::Auto,
            Self::Simulate => Method::Simulation,
        }
    }
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
    /// The XML of the LQN tool suite: the model with the results in it
    Lqxo,
}

impl Format {
    /// The form that was asked for, else that of the output file's extension.
    pub fn chosen(given: Option<Self>, output: &OutputArguments) -> Result<Self, Failure> {
        let forms: [(&[&str], Self); 4] = [
            (&["txt"], Self::Text),
            (&["json"], Self::Json),
            (&["csv"], Self::Csv),
            (&["lqxo", "lqnx", "xml"], Self::Lqxo),
        ];
        output::form_of(given, output, &forms)
    }
}

/// Solves a model.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let format = Format::chosen(arguments.format, &arguments.output)?;
    let source = source::load(&arguments.source, terminal)?;
    let mut options = SolveOptions { method: arguments.solver.method(), ..SolveOptions::default() };
    options.layered.states = arguments.states;
    options.simulation.threads = arguments.source.reduce.thread_count();
    let mut progress = Iterations::new("solving");
    let solution = source.solve(|model| {
        let solved = solve(model, &options, None, &mut progress);
        progress.done();
        Ok(solved?.results)
    })?;
    tell(&source, &solution, format, options.simulation.threads, &arguments.output, terminal)
}

/// Tells what a solver made of a model, and what is doubtful about it.
pub fn tell(
    source: &Source,
    solution: &Solution,
    format: Format,
    threads: usize,
    output: &OutputArguments,
    terminal: &mut Terminal,
) -> Outcome {
    let (model, origins) = (&source.model, source.origins.as_ref());
    let results = &solution.results;
    let outlook = matches!(format, Format::Text | Format::Json).then(|| outlook(model, results, origins, threads));
    terminal.report(&source.doubts(solution, outlook.as_ref()));
    for caveat in &results.caveats {
        terminal.remark(caveat);
    }
    let outlook = outlook.unwrap_or_default();
    let text = match format {
        Format::Text => {
            let look = terminal.look(output);
            report::outlook::text(model, &outlook, look) + "\n" + &report::results::text(model, results, origins, look)
        }
        Format::Json => report::json::solved(model, results, origins, &outlook, &[]),
        Format::Csv => report::csv::results(model, results, origins),
        Format::Lqxo => xml::write_solved(model, results),
    };
    output::write(output, &text)?;
    if results.convergence.converged {
        return Ok(if solution.backlogs.is_empty() { Exit::Ok } else { Exit::NotConverged });
    }
    let precision = results.convergence.residual;
    if results.simulated.is_some() && !results.convergence.saturated && precision.is_finite() {
        terminal.say(&format!("the simulation ended at a precision of {:.2} %\n", 100.0 * precision));
    } else {
        terminal.say("the solver did not converge: do not rely on the results\n");
    }
    Ok(Exit::NotConverged)
}
