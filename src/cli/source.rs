//! A model, from a model file or made of traces.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use dyelog::diagnostic::{Diagnostic, Place, Severity};
use dyelog::lqn::{self, Language, Model, Multiplicity};
use dyelog::model::{self, Configuration, Origins};

use crate::cli::args::SourceArguments;
use crate::cli::reduce::{self, Reduced};
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, codes, input};

/// How many findings on the making of a model are shown.
const SHOWN: usize = 10;

/// A model and, where it was made of traces, where its elements come from.
pub struct Source {
    /// The model.
    pub model: Model,
    /// Where its elements come from.
    pub origins: Option<Origins>,
    /// What the traces came to on the way.
    pub reduced: Option<Reduced>,
    /// What there was to say about the model; it was shown.
    pub findings: Vec<Diagnostic>,
}

/// Reads a model file or makes a model of traces; shows what there is to say about it.
pub fn load(arguments: &SourceArguments, terminal: &mut Terminal) -> Result<Source, Failure> {
    input::check_stdin_once(arguments.files.iter().chain(&arguments.reduce.rules).chain(&arguments.config))?;
    let configuration = configuration(arguments.config.as_deref(), terminal)?;
    let mut first = None;
    if let ([file], None) = (&arguments.files[..], arguments.reading.from) {
        let (head, whole) = input::peek(file)?;
        if is_model(&head) {
            return model_file(file, whole, arguments, terminal);
        }
        first = Some(whole);
    }
    let reduced = reduce::reduce(&arguments.files, first, &arguments.reading, &arguments.reduce, false, terminal)?;
    let mut configuration = configuration;
    if reduced.native {
        // A task of the native format is one sequential flow of control.
        configuration.defaults.threads.get_or_insert(Multiplicity::Finite(1));
    }
    let (model, findings, origins) = model::complete(&reduced.reduction.submodel, &configuration)?;
    let (notes, warnings): (Vec<_>, Vec<_>) =
        findings.iter().cloned().partition(|finding| finding.severity == Severity::Note);
    terminal.report_first(&warnings, SHOWN, "");
    terminal.report_first(&notes, SHOWN, "; `--format text` shows the loads chosen");
    Ok(Source { model, origins: Some(origins), reduced: Some(reduced), findings })
}

fn configuration(file: Option<&Path>, terminal: &mut Terminal) -> Result<Configuration, Failure> {
    let Some(file) = file else { return Ok(Configuration::default()) };
    let name = input::shown(file);
    let text: Arc<str> = input::text(file)?.into();
    terminal.sources.insert(Arc::clone(&name), Arc::clone(&text));
    let (configuration, findings) = Configuration::parse(&name, &text)?;
    terminal.report(&findings);
    Ok(configuration)
}

/// Whether a file that begins so is a model. What begins like JSON is a model only if it says so: most traces are JSON.
pub fn is_model(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    match Language::of(&text) {
        Some(Language::Json) => text.contains("\"dyelog-model\""),
        Some(Language::Lqn | Language::Lqnx) => true,
        None => false,
    }
}

fn model_file(
    file: &Path,
    whole: impl Read,
    arguments: &SourceArguments,
    terminal: &mut Terminal,
) -> Result<Source, Failure> {
    let name = input::shown(file);
    if arguments.config.is_some() || !arguments.reduce.rules.is_empty() {
        let message = "a model file is complete: `--config` and `--rules` are for traces";
        return Err(Diagnostic::error(codes::ARGUMENTS, Place::File { file: name }, message).into());
    }
    let text: Arc<str> = input::read_text(file, whole)?.into();
    terminal.sources.insert(Arc::clone(&name), Arc::clone(&text));
    let (model, findings) = lqn::parse_any(&name, &text)?;
    terminal.report(&findings);
    Ok(Source { model, origins: None, reduced: None, findings })
}
