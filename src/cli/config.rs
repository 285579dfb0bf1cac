//! `dyelog config`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use dyelog::diagnostic::{Diagnostic, Diagnostics, Place, Severity};
use dyelog::model::{self, Configuration};
use dyelog::pipeline;

use crate::cli::args::{OutputArguments, ReadingArguments, ReduceArguments};
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::source::Given;
use crate::cli::terminal::Terminal;
use crate::cli::utilisation::{self, UtilisationArguments};
use crate::cli::{Outcome, codes, input, source};

/// The subcommands of `dyelog config`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a commented configuration to start from, with what traces show and what is taken where they do not
    Init(InitArguments),
    /// Report what is wrong with a configuration; exits with 1 where there is an error or a warning
    Check(CheckArguments),
}

/// Arguments of `dyelog config init`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "a file to fill in" => "dyelog config init traces/shop.otlp.jsonl -o shop.toml",
})]
pub struct InitArguments {
    /// Trace files, plain or compressed (gzip, zstd), saved sub-models, or a model file, whose settings are written; `-` is
    /// standard input
    #[arg(value_name = "TRACE|SUBMODEL|MODEL", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    reading: ReadingArguments,
    #[command(flatten)]
    reduce: ReduceArguments,
    #[command(flatten)]
    utilisation: UtilisationArguments,
    #[command(flatten)]
    output: OutputArguments,
    /// Replace the file of `--output` where it is there already
    #[arg(long)]
    force: bool,
}

/// Arguments of `dyelog config check`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "alone" => "dyelog config check examples/case-study.toml",
    "and whether it fits its traces" => "dyelog config check examples/case-study.toml traces/case-study.angio",
})]
pub struct CheckArguments {
    /// The configuration
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Traces or saved sub-models that it shall fit
    #[arg(value_name = "TRACE|SUBMODEL")]
    traces: Vec<PathBuf>,
    #[command(flatten)]
    reading: ReadingArguments,
    #[command(flatten)]
    reduce: ReduceArguments,
}

/// Runs a subcommand of `dyelog config`.
pub fn run(command: &Command, terminal: &mut Terminal) -> Outcome {
    match command {
        Command::Init(arguments) => init(arguments, terminal),
        Command::Check(arguments) => check(arguments, terminal),
    }
}

fn init(arguments: &InitArguments, terminal: &mut Terminal) -> Outcome {
    output::only(&arguments.output, &["toml"])?;
    input::check_stdin_once(arguments.files.iter().chain(&arguments.utilisation.files))?;
    let metrics = utilisation::read(&arguments.utilisation)?;
    if let Some(path) = arguments.output.output.as_deref()
        && !arguments.force
        && path.is_file()
    {
        let place = Place::File { file: path.display().to_string().into() };
        let finding = Diagnostic::error(codes::UNWRITABLE, place, "this file is there already, and is not overwritten");
        return Err(finding.with_hint("`--force` replaces it").into());
    }
    let text = match source::given(&arguments.files, &arguments.reading, &arguments.reduce, terminal)? {
        Given::SubModel(mut sub) => {
            let configuration = source::with_defaults(Configuration::default(), &sub);
            let configuration = pipeline::measured(&metrics, &mut sub, configuration, terminal)?;
            let (model, _, origins) = model::complete(&sub, &configuration)?;
            model::starter(&sub, &configuration, &model, &origins)
        }
        Given::Model(model) => model::starter_from_model(&model),
    };
    output::write(&arguments.output, &text)?;
    Ok(Exit::Ok)
}

fn check(arguments: &CheckArguments, terminal: &mut Terminal) -> Outcome {
    input::check_stdin_once(arguments.traces.iter().chain([&arguments.file]))?;
    let name = input::shown(&arguments.file);
    let text: Arc<str> = input::text(&arguments.file)?.into();
    terminal.sources.insert(Arc::clone(&name), Arc::clone(&text));
    let (configuration, mut findings) = Configuration::read(&name, &text);
    let accept = configuration.accept.clone();
    let misread = findings.iter().any(|finding| finding.severity == Severity::Error);
    let patterns = pipeline::grouped(&pipeline::Options::default(), &configuration);
    let grouped = patterns.is_ok();
    findings.extend(patterns.err().map(|found| found.0).unwrap_or_default());
    if !arguments.traces.is_empty() && grouped {
        let read_so = (&arguments.reading, &arguments.reduce);
        let sub = source::steady_submodel(&arguments.traces, read_so, &configuration, terminal)?;
        let configuration = source::with_defaults(configuration, &sub);
        if misread {
            // Names can be looked up all the same, so that all that is wrong is reported at once.
            findings.extend(model::unknown_names(&sub, &configuration));
        } else {
            let told = model::complete(&sub, &configuration);
            findings.extend(told.map_or_else(|Diagnostics(found)| found, |(_, found, _)| found));
        }
    }
    // As solving would: what is accepted is not told of.
    findings.retain(|finding| finding.severity == Severity::Error || !accept.contains(finding.code.0));
    let text = if findings.is_empty() { "no findings\n".to_owned() } else { terminal.render(&findings) };
    output::write(&OutputArguments { output: None }, &text)?;
    // What is ignored is as wrong as what cannot be read: the model would not be the one that was meant.
    let wrong = findings.iter().any(|finding| finding.severity != Severity::Note);
    Ok(if wrong { Exit::Finding } else { Exit::Ok })
}
