//! `dyelog bottleneck`.

use clap::Args;
use dyelog::model::parameter::check_change;
use dyelog::report;
use dyelog::solve::{SolveOptions, solve};
use dyelog::study::about_scenarios;
use dyelog::study::bottleneck::bottlenecks_observed;
use dyelog::study::open_servers::open_limit;
use dyelog::study::outlook;

use crate::cli::args::{Form, OutputArguments, SourceArguments};
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::progress::Iterations;
use crate::cli::terminal::Terminal;
use crate::cli::{Outcome, source, whatif};

/// Arguments of `dyelog bottleneck`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "what limits the shop" => "dyelog bottleneck traces/shop.otlp.jsonl --config examples/shop/shop.toml",
})]
pub struct Arguments {
    #[command(flatten)]
    source: SourceArguments,
    /// A parameter to change first, by its path as under `whatif`; may be repeated
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// The form of the report; that of the output file's extension where not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Form>,
    #[command(flatten)]
    output: OutputArguments,
}

/// Tells what limits a model.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let format = output::form(arguments.format, Form::Text, &arguments.output)?;
    whatif::well_formed([whatif::gather(arguments.set.iter().map(|text| check_change(text)))])?;
    let mut subjects = source::subjects(&[&arguments.source.files], &arguments.source, terminal)?;
    for questioned in &mut subjects {
        whatif::set(&mut questioned.subject, &arguments.set, terminal)?;
        questioned.check()?;
    }
    let base = subjects[0].subject.base();
    let model = &base.model;
    let mut progress = Iterations::new("looking for bottlenecks");
    let results = solve(model, &SolveOptions::default(), None, &mut progress)
        .map_err(|errors| about_scenarios(model, base.origins.as_ref(), errors))?
        .results;
    let outlook = outlook::capacity(model, &results, base.origins.as_ref());
    let found = bottlenecks_observed(model, &SolveOptions::default(), &mut progress)?;
    progress.done();
    terminal.report(outlook.first.as_ref().and_then(|first| open_limit(model, first)).as_slice());
    let text = match format {
        Form::Text => report::bottleneck::text(model, &found, &outlook, terminal.look(&arguments.output)),
        Form::Json => report::bottleneck::json(model, &found, &outlook),
    };
    output::write(&arguments.output, &text)?;
    if found.steps.iter().all(|step| step.converged) {
        return Ok(Exit::Ok);
    }
    terminal.say("the solver did not converge under all loads: do not rely on what is marked\n");
    Ok(Exit::NotConverged)
}
