//! `dyelog validate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use dyelog::model::Configuration;
use dyelog::pipeline;
use dyelog::report::{plot, validation};
use dyelog::study::validation::{LoadValidation, Measured, validate};

use crate::cli::args::{OutputArguments, SourceArguments, share};
use crate::cli::exit::Exit;
use crate::cli::progress::Progress;
use crate::cli::terminal::Terminal;
use crate::cli::utilisation::{self, UtilisationArguments};
use crate::cli::{Outcome, input, output, source};

/// Arguments of `dyelog validate`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "the model of a trace, held against that trace" => "dyelog validate traces/shop.otlp.jsonl --against traces/shop.otlp.jsonl --within 25%",
})]
pub struct Arguments {
    #[command(flatten)]
    source: SourceArguments,
    /// Traces to hold the model against; each file or folder is a load of its own
    #[arg(long, value_name = "TRACE", required = true, num_args = 1..)]
    against: Vec<PathBuf>,
    /// By how much of what was measured a prediction may be off, as `10%` or 0.1
    #[arg(long, value_name = "PART", default_value = "10%", value_parser = share)]
    within: f64,
    /// The form of the report; that of the output file's extension where not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    #[command(flatten)]
    output: OutputArguments,
}

/// Forms of a validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables for people
    Text,
    /// JSON
    Json,
    /// Responses over the load as a picture, with intervals
    Svg,
}

/// Holds a model against measurements.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let forms: [(&[&str], Format); 3] = [(&["txt"], Format::Text), (&["json"], Format::Json), (&["svg"], Format::Svg)];
    let format = output::form_of(arguments.format, &arguments.output, &forms)?;
    let SourceArguments { files, reading, reduce, config, utilisation } = &arguments.source;
    let all = files.iter().chain(&arguments.against).chain(&utilisation.files).chain(config);
    input::check_stdin_once(all.chain(&reduce.rules))?;
    let metrics = utilisation::read(utilisation)?;
    // What was measured is that of the traces that the model is held against.
    let own = SourceArguments { utilisation: UtilisationArguments::default(), ..arguments.source.clone() };
    let source = source::load(&own, terminal)?;
    source.doubtful_but_sound()?;
    let mut loads: Vec<LoadValidation> = Vec::new();
    let mut measured = Vec::new();
    for traces in &arguments.against {
        let alone = std::slice::from_ref(traces);
        let submodel = source::steady_submodel(alone, (reading, reduce), &source.configuration, terminal)?;
        measured.push((traces.display().to_string(), submodel));
    }
    let progress = Progress::steps("validating", Some(measured.len() as u64));
    for (name, submodel) in &mut measured {
        let configuration =
            if source.origins.is_some() { source.configuration.clone() } else { Configuration::default() };
        let configuration = source::with_defaults(configuration, submodel);
        let configuration = pipeline::measured(&metrics, submodel, configuration, terminal)?;
        let busy = configuration.measured.processors.clone();
        let measured = Measured { name: name.clone(), submodel, busy };
        loads.push(validate(&source.model, &measured, &configuration, reduce.thread_count())?);
        progress.advance(1);
    }
    progress.done();
    let text = match format {
        Format::Text => validation::text(&loads, arguments.within, terminal.look(&arguments.output)),
        Format::Json => validation::json(&loads, arguments.within),
        Format::Svg => plot::svg(&validation::plots(&loads)),
    };
    output::write(&arguments.output, &text)?;
    terminal.say(&validation::verdict_words(&loads, arguments.within));
    Ok(exit(&loads, arguments.within))
}

/// Nothing that could be compared is a finding as well.
fn exit(loads: &[LoadValidation], tolerance: f64) -> Exit {
    let (all, off) = validation::counted(loads, tolerance);
    if loads.iter().any(|load| !load.is_converged) {
        Exit::NotConverged
    } else if all == 0 || off > 0 || loads.iter().any(|load| load.scenarios.is_empty()) {
        Exit::Finding
    } else {
        Exit::Ok
    }
}
