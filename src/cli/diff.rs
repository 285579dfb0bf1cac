//! `dyelog diff`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::lqn::{Language, xml};
use dyelog::report;
use dyelog::study::comparison::{self, Elements, Tolerance};

use crate::cli::args::{Form, OutputArguments, ReadingArguments, ReduceArguments, SourceArguments, share};
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::terminal::Terminal;
use crate::cli::utilisation::UtilisationArguments;
use crate::cli::{Failure, Outcome, codes, input, source};

/// Arguments of `dyelog diff`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "the models of two traces: exits with 1 since they differ" => "dyelog diff traces/forwarding-1.angio traces/forwarding-2.angio",
    "as a CI job compares the models of two recordings" => "dyelog diff traces/rpc.angio traces/rpc.angio --tolerance 5%",
})]
pub struct Arguments {
    /// The model or results before: a model file, results in JSON or as `.lqxo`, or a trace
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// The same after
    #[arg(value_name = "AFTER")]
    after: PathBuf,
    /// How far numbers may be apart: a share, such as 1% or 0.01
    #[arg(long, value_name = "SHARE", default_value = "0.0001%", value_parser = share)]
    tolerance: f64,
    /// How far numbers may be apart, in their own unit, whatever their share
    #[arg(long, value_name = "NUMBER", default_value_t = 0.0)]
    absolute: f64,
    #[command(flatten)]
    reading: ReadingArguments,
    #[command(flatten)]
    reduce: ReduceArguments,
    /// A configuration for those of the two that are traces
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The form of the answer
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Form::Text)]
    format: Form,
    #[command(flatten)]
    output: OutputArguments,
}

/// Compares two models or results.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    input::check_stdin_once([&arguments.before, &arguments.after])?;
    let (before, before_is) = elements(&arguments.before, arguments, terminal)?;
    let (after, after_is) = elements(&arguments.after, arguments, terminal)?;
    if before_is != after_is {
        let message = format!(
            "`{}` is {before_is}, but `{}` is {after_is}",
            arguments.before.display(),
            arguments.after.display()
        );
        let finding = Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message);
        return Err(finding.with_hint("compare two models, or two results").into());
    }
    let tolerance = Tolerance { relative: arguments.tolerance, absolute: arguments.absolute };
    let differences = comparison::compare(&before, &after, tolerance);
    let text = match arguments.format {
        Form::Text => report::comparison::text(&differences, terminal.look(&arguments.output)),
        Form::Json => report::comparison::json(&differences),
    };
    output::write(&arguments.output, &text)?;
    Ok(if differences.is_empty() { Exit::Ok } else { Exit::Finding })
}

/// What a file holds, and what that is.
fn elements(file: &Path, arguments: &Arguments, terminal: &mut Terminal) -> Result<(Elements, &'static str), Failure> {
    let mut reduce = arguments.reduce.clone();
    let mut config = arguments.config.clone();
    if file != Path::new("-") {
        let (head, _) = input::peek(file)?;
        if Language::of(&String::from_utf8_lossy(&head)) == Some(Language::Lqnx) {
            return document(file, terminal);
        }
        if String::from_utf8_lossy(&head).contains("\"solver\"")
            && let Ok(document) = serde_json::from_str(&input::text(file)?)
            && let Some(found) = comparison::results(&document)
        {
            return Ok((found, "results"));
        }
        if source::is_model(&head) {
            reduce.rules.clear();
            config = None;
        }
    }
    let reading = arguments.reading.clone();
    let utilisation = UtilisationArguments::default();
    let whole = SourceArguments { files: vec![file.to_owned()], reading, reduce, config, utilisation };
    Ok((comparison::model(&source::load(&whole, terminal)?.model), "a model"))
}

/// What an XML document holds: a model, or where it has results these.
fn document(file: &Path, terminal: &mut Terminal) -> Result<(Elements, &'static str), Failure> {
    let name = input::shown(file);
    let text: Arc<str> = input::text(file)?.into();
    terminal.sources.insert(Arc::clone(&name), Arc::clone(&text));
    let (model, results, findings) = xml::parse_solved(&name, &text)?;
    terminal.report(&findings);
    Ok(match results {
        Some(results) => (comparison::solved(&model, &results), "results"),
        None => (comparison::model(&model), "a model"),
    })
}
