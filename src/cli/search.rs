//! `dyelog search`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{ArgGroup, Args, ValueEnum};
use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::model::codes;
use dyelog::model::parameter::{Change, Path, Subject, check_axis, check_bounds, check_change};
use dyelog::report;
use dyelog::solve::{LayeredOptions, SimulateOptions};
use dyelog::study::open_servers::limit_is_open;
use dyelog::study::search::{
    Aim, Along, Alternative, Cost, Evaluator, Goal, Method, Search, Surely, alternatives, choices, idle_costs,
};
use dyelog::study::sweep::{Before, State, WrittenQuestion};

use crate::cli::args::{Form, OutputArguments, SourceArguments};
use crate::cli::exit::Exit;
use crate::cli::progress::Progress;
use crate::cli::simulate::precision;
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, Outcome, input, output, source, whatif};

/// Arguments of `dyelog search`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("question").required(true).args(["largest", "smallest", "cheapest", "choices", "list"])))]
#[command(after_long_help = examples! {
    "how many users get their answer in time" =>
    "dyelog search traces/case-study.angio --config examples/case-study.toml \\\n    \
     --largest scenario.set-up.population --goal 'scenario.set-up.response < 100 ms'",
    "how few threads will do, and how busy the processors may be" =>
    "dyelog search traces/case-study.angio --config examples/case-study.toml \\\n    \
     --set scenario.set-up.population=50 --smallest task.FabricCntrl1.threads \\\n    \
     --goal 'response < 150 ms' --goal 'utilization <= 90%'",
    "the cheapest of several configurations" =>
    "dyelog search traces/case-study.angio --config examples/case-study.toml \\\n    \
     --set scenario.set-up.population=80 --goal 'response < 115 ms' \\\n    \
     --cheapest 'processor.\"Processor 1\".multiplicity=1..3' \\\n    \
     --cheapest 'processor.\"Processor 2\".multiplicity=1..3' \\\n    \
     --cost 'processor.\"Processor 1\".multiplicity=5' \\\n    \
     --cost 'processor.\"Processor 2\".multiplicity=3'",
    "all but five in a hundred answers, by simulation" =>
    "dyelog search traces/case-study.angio --config examples/case-study.toml \\\n    \
     --largest scenario.set-up.population=10,20,40 --goal 'scenario.set-up.p95 < 250 ms'",
})]
pub struct Arguments {
    #[command(flatten)]
    source: SourceArguments,
    /// What is to hold: `FIGURE < BOUND`, with `<`, `<=`, `>` or `>=`. Figures are those of `whatif --show`, and percentiles such as
    /// `scenario.S.p95`; `response`, `throughput` and `p95` alone are those of all loads, `utilization` that of all processors;
    /// may be repeated
    #[arg(long, value_name = "GOAL", required_unless_present = "list")]
    goal: Vec<String>,
    /// Look for the largest value of this parameter: `PATH`, `PATH=FROM..TO`, `PATH=FROM..` or `PATH=VALUES`
    #[arg(long, value_name = "PATH[=VALUES]")]
    largest: Option<String>,
    /// Look for the smallest value of this parameter
    #[arg(long, value_name = "PATH[=VALUES]")]
    smallest: Option<String>,
    /// Look for the least cost over these values of a parameter, as under `whatif --vary`; repeated, over every value of the one
    /// with every value of the others
    #[arg(long, value_name = "PATH=VALUES", requires = "cost")]
    cheapest: Vec<String>,
    /// What a parameter costs: `PATH=COST` for each, or `PATH=VALUE:COST,VALUE:COST`; may be repeated
    #[arg(
        long,
        value_name = "PATH=COST",
        requires = "cheapest",
        conflicts_with_all = ["largest", "smallest", "choices", "list"]
    )]
    cost: Vec<String>,
    /// Look for the least cost among the choices of this TOML file: `[[choice]]`, each with `name`, `cost` and a table `set`
    #[arg(long, value_name = "FILE")]
    choices: Option<PathBuf>,
    /// A parameter to change for all points; may be repeated
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// List the parameters that there are, with their values
    #[arg(long)]
    list: bool,
    /// How many values to try besides those that lead to the answer, on both sides of it
    #[arg(long, value_name = "N", default_value_t = 12)]
    check: usize,
    /// Significant digits of the answer where it is no whole number
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=6))]
    digits: u32,
    /// How points are solved; percentiles are always simulated
    #[arg(long, value_enum, value_name = "SOLVER", default_value_t = Solver::Layered)]
    solver: Solver,
    /// Where random numbers of simulations begin
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Simulate each point until response times and throughputs are this precise; four times as precise where that does not tell
    #[arg(long, value_name = "PART", default_value_t = 0.02, value_parser = precision)]
    precision: f64,
    /// Independent runs of each simulation
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(2..=1000))]
    replications: u32,
    /// Events of each simulation at most
    #[arg(long, value_name = "N", default_value_t = 20_000_000)]
    events: u64,
    /// The form of the answer; that of the output file's extension where not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Form>,
    #[command(flatten)]
    output: OutputArguments,
}

/// How points are solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Solver {
    /// Mean value analysis in layers.
    Layered,
    /// Discrete events.
    Simulate,
}

/// Searches.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let format = output::form(arguments.format, Form::Text, &arguments.output)?;
    let sought = arguments.largest.iter().chain(&arguments.smallest);
    whatif::well_formed([
        whatif::gather(arguments.set.iter().map(|text| check_change(text))),
        whatif::gather(arguments.goal.iter().map(|text| Goal::check(text))),
        whatif::gather(sought.clone().map(|text| check_bounds(text))),
        whatif::gather(arguments.cheapest.iter().map(|text| check_axis(text))),
    ])?;
    let mut subjects = source::subjects(&[&arguments.source.files], &arguments.source, terminal)?;
    let asks_percentiles = arguments.goal.iter().any(|text| Goal::is_of_percentile(text));
    let simulating = asks_percentiles.then(|| arguments.source.reduce.thread_count());
    let sought: Vec<String> = sought.chain(&arguments.cheapest).cloned().collect();
    let written = WrittenQuestion { set: &arguments.set, vary: &sought, show: &[] };
    let before = (!arguments.list).then(|| Before::of(&subjects[0].subject, &written));
    for questioned in &mut subjects {
        if !arguments.list {
            terminal.report(&questioned.unlike_traced(simulating));
        }
        whatif::set(&mut questioned.subject, &arguments.set, terminal)?;
    }
    let subject = &subjects[0].subject;
    let Some(before) = before else {
        output::write(&arguments.output, &whatif::list(subject))?;
        return Ok(Exit::Ok);
    };
    subjects[0].check()?;
    let base = subject.base();
    let (goals, errors) =
        whatif::gather(arguments.goal.iter().map(|text| Goal::parse(text, &base.model, base.origins.as_ref())));
    if !errors.is_empty() {
        return Err(Failure::Input(errors));
    }
    let goals: Vec<Goal> = goals.into_iter().flatten().collect();
    let method = method(arguments, &goals);
    let evaluator = Evaluator { subject, goals: &goals, method: &method };
    let mut progress = Progress::steps("trying", None);
    if matches!(method, Method::Simulated(_)) {
        progress = progress.at_once();
    }
    let surely = Surely { evaluator, before: &before, set: &arguments.set };
    let found = match (&arguments.largest, &arguments.smallest) {
        (Some(text), _) => along(arguments, (text, Aim::Largest), &surely, &progress, terminal)?,
        (_, Some(text)) => along(arguments, (text, Aim::Smallest), &surely, &progress, terminal)?,
        _ => {
            let all = several(arguments, subject, terminal)?;
            let mut found = evaluator.among(&all, arguments.source.reduce.thread_count(), &|| progress.advance(1));
            if let Some(chosen) = found.chosen(&all) {
                terminal.report(&Vec::from_iter(surely.far_from_traced(&chosen.changes)));
                found.sure = surely.of(&chosen.changes);
            }
            found
        }
    };
    progress.done();
    terminal.report(limit_is_open(&base.model, base.origins.as_ref()).as_slice());
    let text = match format {
        Form::Text => report::search::text(&found, terminal.look(&arguments.output)),
        Form::Json => report::search::json(&found),
    };
    let failed = found.points.iter().find_map(|point| match &point.evaluation.state {
        State::Failed(reason) => Some(reason),
        _ => None,
    });
    if let Some(reason) = failed {
        let count = found.points.iter().filter(|point| matches!(point.evaluation.state, State::Failed(_))).count();
        terminal.say(&format!("{count} of {} points have no solution; the first: {reason}\n", found.points.len()));
        if count == found.points.len() {
            return Ok(Exit::Input);
        }
    }
    output::write(&arguments.output, &text)?;
    Ok(match (found.unclear(), found.answer) {
        (0, Some(_)) => Exit::Ok,
        (0, None) => Exit::Finding,
        (unclear, _) => {
            terminal.say(&format!("{unclear} of the points that decide did not converge\n"));
            Exit::NotConverged
        }
    })
}

fn method(arguments: &Arguments, goals: &[Goal]) -> Method {
    if arguments.solver == Solver::Layered && goals.iter().all(|goal| goal.part().is_none()) {
        return Method::Layered(LayeredOptions::default());
    }
    Method::Simulated(SimulateOptions {
        seed: arguments.seed,
        precision: arguments.precision,
        replications: arguments.replications,
        events: arguments.events,
        threads: arguments.source.reduce.thread_count(),
        ..SimulateOptions::default()
    })
}

/// Looks for a value of one parameter.
fn along(
    arguments: &Arguments,
    (text, aim): (&str, Aim),
    surely: &Surely<'_>,
    progress: &Progress,
    terminal: &Terminal,
) -> Result<Search, Failure> {
    let evaluator = &surely.evaluator;
    let (path, bounds) = evaluator.subject.bounds(text)?;
    not_set(std::iter::once(&path), arguments, evaluator.subject)?;
    let along = Along { aim, checks: arguments.check, digits: arguments.digits };
    let mut found = evaluator.along(&path, &bounds, along, &|| progress.advance(1));
    if let Some(answer) = found.answer {
        let value = found.points[answer].values[0].clone();
        terminal.report(&Vec::from_iter(surely.far_from_traced(&[Change { path: path.clone(), value }])));
    }
    found.sure = surely.along(&path, &bounds, along, &found);
    Ok(found)
}

/// What there is to choose from.
fn several(arguments: &Arguments, subject: &Subject, terminal: &mut Terminal) -> Result<Vec<Alternative>, Failure> {
    if let Some(file) = &arguments.choices {
        let name = input::shown(file);
        let text: Arc<str> = input::text(file)?.into();
        terminal.sources.insert(Arc::clone(&name), Arc::clone(&text));
        return Ok(choices(&name, &text, subject)?);
    }
    let (axes, mut errors) = whatif::gather(arguments.cheapest.iter().map(|text| subject.axis(text)));
    let (costs, mut wrong) = whatif::gather(arguments.cost.iter().map(|text| Cost::parse(text, subject)));
    errors.append(&mut wrong);
    if !errors.is_empty() {
        return Err(Failure::Input(errors));
    }
    not_set(axes.iter().map(|(path, _)| path), arguments, subject)?;
    let alternatives = alternatives(&axes, &costs)?;
    terminal.report(&idle_costs(&axes, &costs));
    Ok(alternatives)
}

/// Refuses parameters that are looked for and set as well.
fn not_set<'p>(paths: impl Iterator<Item = &'p Path>, arguments: &Arguments, subject: &Subject) -> Result<(), Failure> {
    let set: Vec<Path> = arguments.set.iter().filter_map(|text| Some(subject.change(text).ok()?.path)).collect();
    let error = |path: &Path| {
        let message = format!("`{path}` is both set and searched for");
        Diagnostic::error(codes::CONTRADICTION, Place::Nowhere, message).with_hint("leave out its `--set`")
    };
    let errors: Vec<Diagnostic> = paths.filter(|path| set.contains(path)).map(error).collect();
    if errors.is_empty() { Ok(()) } else { Err(Failure::Input(errors)) }
}
