//! A model, from a model file or made of traces.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyelog::diagnostic::{Diagnostic, Place, Severity};
use dyelog::lqn::submodel::SubModel;
use dyelog::lqn::{self, Language, Model, Multiplicity, saved};
use dyelog::model::parameter::Subject;
use dyelog::model::{self, Configuration, Origins};
use dyelog::tlc::Reduction;
use dyelog::trace::{self, ReadReport};

use crate::cli::args::{ReadingArguments, ReduceArguments, SourceArguments};
use crate::cli::reduce::{self, Reduced};
use crate::cli::submodels::{self, Given};
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
    /// What the traces cannot tell.
    pub configuration: Configuration,
}

/// Reads a model file or makes a model of traces; shows what there is to say about it.
pub fn load(arguments: &SourceArguments, terminal: &mut Terminal) -> Result<Source, Failure> {
    input::check_stdin_once(arguments.files.iter().chain(&arguments.reduce.rules).chain(&arguments.config))?;
    let (configuration, _) = configuration(arguments.config.as_deref(), terminal)?;
    let reduced = match submodel_or_model(&arguments.files, &arguments.reading, &arguments.reduce, terminal)? {
        Found::SubModel(reduced) => *reduced,
        Found::Model(file, whole) => return model_file(&file, whole, arguments, terminal),
    };
    let configuration = with_defaults(configuration, &reduced.reduction.submodel);
    let (model, findings, origins) = model::complete(&reduced.reduction.submodel, &configuration)?;
    tell(&findings, terminal);
    Ok(Source { model, origins: Some(origins), reduced: Some(reduced), findings, configuration })
}

/// What a question is about: a model file, or traces with the configuration.
pub fn subject(files: &[PathBuf], arguments: &SourceArguments, terminal: &mut Terminal) -> Result<Subject, Failure> {
    input::check_stdin_once(files.iter().chain(&arguments.reduce.rules).chain(&arguments.config))?;
    let (_, file) = configuration(arguments.config.as_deref(), terminal)?;
    match submodel_or_model(files, &arguments.reading, &arguments.reduce, terminal)? {
        Found::Model(file, whole) => Ok(Subject::of_model(model_file(&file, whole, arguments, terminal)?.model)),
        Found::SubModel(reduced) => {
            let (file, text) = file.unwrap_or_else(|| ("the configuration".into(), "".into()));
            let sub = reduced.reduction.submodel;
            // A task of the native format is one sequential flow of control.
            let sequential = !sub.concurrent;
            let subject = Subject::of_traces(sub, &file, &text, sequential)?;
            tell(&subject.base().findings, terminal);
            Ok(subject)
        }
    }
}

/// Shows what there is to say about the making of a model.
fn tell(findings: &[Diagnostic], terminal: &Terminal) {
    let (notes, warnings): (Vec<_>, Vec<_>) =
        findings.iter().cloned().partition(|finding| finding.severity == Severity::Note);
    terminal.report_first(&warnings, SHOWN, "");
    terminal.report_first(&notes, SHOWN, "; `--format text` shows the loads chosen");
}

/// What files are, told by the first one's content.
enum Found {
    SubModel(Box<Reduced>),
    Model(PathBuf, Box<dyn Read + Send>),
}

fn submodel_or_model(
    files: &[PathBuf],
    reading: &ReadingArguments,
    reduce: &ReduceArguments,
    terminal: &mut Terminal,
) -> Result<Found, Failure> {
    let mut first = None;
    // A file that cannot be read is told of below, together with the others.
    if let ([file, ..], None) = (files, reading.from)
        && let Ok((head, whole)) = input::peek(file)
    {
        if saved::is_saved(&String::from_utf8_lossy(&head)) {
            let Given { submodel, merge } = submodels::load(files, Some(whole), terminal)?;
            let reduction = Reduction { submodel, ..Reduction::default() };
            let reduced =
                Reduced { reduction, reading: ReadReport::default(), merge, samples: None, interactions: None };
            return Ok(Found::SubModel(Box::new(reduced)));
        }
        if files.len() == 1 && is_model(&head) {
            return Ok(Found::Model(file.clone(), whole));
        }
        first = Some(whole);
    }
    let reduced = reduce::reduce(files, first, reading, reduce, false, terminal)?;
    Ok(Found::SubModel(Box::new(reduced)))
}

/// The sub-model of traces, or of saved sub-models.
pub fn submodel(
    files: &[PathBuf],
    reading: &ReadingArguments,
    reduce: &ReduceArguments,
    terminal: &mut Terminal,
) -> Result<Given, Failure> {
    match submodel_or_model(files, reading, reduce, terminal)? {
        Found::SubModel(reduced) => Ok(Given { submodel: reduced.reduction.submodel, merge: reduced.merge }),
        Found::Model(file, _) => {
            let message = "a complete model stands where traces or sub-models are needed";
            Err(Diagnostic::error(codes::ARGUMENTS, Place::File { file: input::shown(&file) }, message).into())
        }
    }
}

/// The configuration with what holds for traces of this kind.
pub fn with_defaults(mut configuration: Configuration, sub: &SubModel) -> Configuration {
    if !sub.concurrent {
        // A task of the native format is one sequential flow of control.
        configuration.defaults.threads.get_or_insert(Multiplicity::Finite(1));
    }
    configuration
}

/// A file and its text.
type Named = Option<(Arc<str>, Arc<str>)>;

fn configuration(file: Option<&Path>, terminal: &mut Terminal) -> Result<(Configuration, Named), Failure> {
    let Some(file) = file else { return Ok((Configuration::default(), None)) };
    let name = input::shown(file);
    let text: Arc<str> = input::text(file)?.into();
    terminal.sources.insert(Arc::clone(&name), Arc::clone(&text));
    let (configuration, findings) = Configuration::parse(&name, &text)?;
    terminal.report(&findings);
    Ok((configuration, Some((name, text))))
}

/// Whether a file that begins so is a model. What begins like JSON is a model only if it says so: most traces are JSON; and what
/// begins like `.lqn`, only if it is no trace: logs of Kieker begin like a variable.
pub fn is_model(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    match Language::of(&text) {
        Some(Language::Json) => text.contains("\"dyelog-model\""),
        Some(Language::Lqn) => trace::detect::detect("", head).is_err(),
        Some(Language::Lqnx) => true,
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
    Ok(Source { model, origins: None, reduced: None, findings, configuration: Configuration::default() })
}
