//! `dyelog calibrate`.

use std::path::PathBuf;

use clap::Args;
use dyelog::lqn::Language;
use dyelog::model::utilisation::left_out;
use dyelog::pipeline;
use dyelog::report::{self, Look};
use dyelog::study::calibration::{CalibrationLoad, calibrate};

use crate::cli::args::{OutputArguments, ReadingArguments, ReduceArguments};
use crate::cli::exit::Exit;
use crate::cli::terminal::Terminal;
use crate::cli::utilisation::{self, UtilisationArguments};
use crate::cli::{Outcome, input, output, source};

/// Arguments of `dyelog calibrate`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "a model of a trace, with intervals" => "dyelog calibrate traces/shop.otlp.jsonl -o shop.json",
})]
pub struct Arguments {
    /// Traces or saved sub-models; each file or folder is a load of its own
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,
    #[command(flatten)]
    reading: ReadingArguments,
    #[command(flatten)]
    reduce: ReduceArguments,
    /// A TOML file with what traces cannot tell: processors, threads, demands. Loads are those of the traces
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    utilisation: UtilisationArguments,
    #[command(flatten)]
    output: OutputArguments,
}

/// Calibrates a model, and writes it as JSON with what else fits.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let Arguments { traces, reading, reduce, config, utilisation, output } = arguments;
    output::only(output, &["json"])?;
    input::check_stdin_once(traces.iter().chain(&reduce.rules).chain(config).chain(&utilisation.files))?;
    let metrics = utilisation::read(utilisation)?;
    let (mut configuration, _) = source::configuration(config.as_deref(), terminal)?;
    let mut loads = Vec::new();
    for trace in traces {
        let trace_alone = std::slice::from_ref(trace);
        let mut submodel = source::steady_submodel(trace_alone, (reading, reduce), &configuration, terminal)?;
        let own = source::with_defaults(configuration.clone(), &submodel);
        let own = pipeline::measured(&metrics, &mut submodel, own, terminal)?;
        terminal.report(&left_out(&own.measured, &submodel, &own));
        configuration.cores.extend(own.cores);
        let busy = own.measured.processors;
        loads.push(CalibrationLoad { name: trace.display().to_string(), submodel, busy });
    }
    let configuration = loads.iter().fold(configuration, |own, load| source::with_defaults(own, &load.submodel));
    let found = calibrate(&loads, &configuration, reduce.thread_count())?;
    terminal.report(&found.findings);
    output::write(output, &Language::Json.write(&found.model))?;
    terminal.say(&report::calibration::text(&found, Look::PLAIN));
    Ok(Exit::Ok)
}
