//! `dyelog diff`.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::lqn::{Language, Model, xml};
use dyelog::report::{self, names};
use dyelog::study::comparison::{self, Elements, Tolerance};
use dyelog::study::significance::{self, Errors};

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
    /// The form of the answer; that of the output file's extension where not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Form>,
    #[command(flatten)]
    output: OutputArguments,
}

/// Compares two models or results.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let format = output::form(arguments.format, Form::Text, &arguments.output)?;
    input::check_stdin_once([&arguments.before, &arguments.after])?;
    let before = sides(&arguments.before, (arguments, format), terminal)?;
    let after = sides(&arguments.after, (arguments, format), terminal)?;
    let (before_is, after_is) = (before.what, after.what);
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
    let differences = comparison::compare(&before.elements, &after.elements, tolerance);
    let is_same = differences.is_empty();
    let (clear, within) = significance::apart(differences, &before.errors, &after.errors);
    let text = match format {
        Form::Text => report::comparison::text(&clear, within.len(), terminal.look(&arguments.output)),
        Form::Json => report::comparison::json(&clear, &within),
    };
    output::write(&arguments.output, &text)?;
    Ok(if is_same { Exit::Ok } else { Exit::Finding })
}

/// What a file holds.
struct Side {
    elements: Elements,
    /// What that is.
    what: &'static str,
    /// How far chance may have moved its numbers.
    errors: Errors,
}

impl Side {
    /// Numbers that are as they are.
    fn exact(elements: Elements, what: &'static str) -> Self {
        Self { elements, what, errors: Errors::default() }
    }
}

/// What a file holds.
fn sides(file: &Path, (arguments, form): (&Arguments, Form), terminal: &mut Terminal) -> Result<Side, Failure> {
    let mut reduce = arguments.reduce.clone();
    let mut config = arguments.config.clone();
    if file != Path::new("-") {
        let (head, _) = input::peek(file)?;
        if Language::of(&String::from_utf8_lossy(&head)) == Some(Language::Lqnx) {
            return document(file, form, terminal);
        }
        if String::from_utf8_lossy(&head).contains("\"solver\"")
            && let Ok(document) = serde_json::from_str(&input::text(file)?)
            && let Some(found) = comparison::results(&document)
        {
            return Ok(Side::exact(found, "results"));
        }
        if source::is_model(&head) {
            reduce.rules.clear();
            config = None;
        }
    }
    let reading = arguments.reading.clone();
    let utilisation = UtilisationArguments::default();
    let whole = SourceArguments { files: vec![file.to_owned()], reading, reduce, config, utilisation };
    let source = source::load(&whole, terminal)?;
    let model = read(&source.model, form);
    let errors = source.origins.as_ref().map(|origins| Errors::of(&model, origins)).unwrap_or_default();
    Ok(Side { errors, ..Side::exact(comparison::model(&model), "a model") })
}

/// A model as it is compared: for people with the names that they read elsewhere, of which no two are alike.
fn read(model: &Model, form: Form) -> Cow<'_, Model> {
    match form {
        Form::Text => Cow::Owned(names::for_people(model)),
        Form::Json => Cow::Borrowed(model),
    }
}

/// What an XML document holds: a model, or where it has results these.
fn document(file: &Path, form: Form, terminal: &mut Terminal) -> Result<Side, Failure> {
    let name = input::shown(file);
    let text: Arc<str> = input::text(file)?.into();
    terminal.sources.insert(Arc::clone(&name), Arc::clone(&text));
    let (model, results, findings) = xml::parse_solved(&name, &text)?;
    terminal.report(&findings);
    Ok(match results {
        Some(results) => Side::exact(comparison::solved(&model, &results), "results"),
        None => Side::exact(comparison::model(&read(&model, form)), "a model"),
    })
}
