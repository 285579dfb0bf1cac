//! A model, from a model file or made of traces.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyelog::diagnostic::{Diagnostic, Place, Severity};
use dyelog::lqn::submodel::SubModel;
use dyelog::lqn::{self, Language, Loaded, Model, Multiplicity, Places, lint, saved};
use dyelog::model::parameter::Subject;
use dyelog::model::{self, Configuration, Origins};
use dyelog::tlc::Reduction;
use dyelog::trace::{self, ReadReport};

use crate::cli::args::{ReadingArguments, ReduceArguments, SourceArguments};
use crate::cli::reduce::{self, Reduced};
use crate::cli::submodels::{self, Saved};
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, codes, input};

/// How many findings on the making of a model are shown.
const SHOWN: usize = 10;

/// A model and, where it was made of traces, where its elements come from.
pub struct Source {
    /// The model.
    pub model: Model,
    /// Where its elements stand in the file, where it was read from one.
    places: Places,
    /// Where its elements come from.
    pub origins: Option<Origins>,
    /// What the traces came to on the way.
    pub reduced: Option<Reduced>,
    /// What there was to say about the model; it was shown.
    pub findings: Vec<Diagnostic>,
    /// What the traces cannot tell.
    pub configuration: Configuration,
}

impl Source {
    /// What is doubtful about a model file, and where. A model of traces was told about when it was made.
    pub fn doubtful(&self) -> Vec<Diagnostic> {
        if self.origins.is_some() {
            return Vec::new();
        }
        located(&self.model, &self.places)
    }

    /// The same where it is to be solved.
    ///
    /// # Errors
    /// When an error is among it: then the figures of the model would mean nothing.
    pub fn doubtful_but_sound(&self) -> Result<Vec<Diagnostic>, Failure> {
        sound(self.doubtful())
    }
}

/// What questions are about.
pub struct Questioned {
    /// The model file or the traces.
    pub subject: Subject,
    /// Where the elements of a model file stand in it.
    places: Option<Places>,
}

impl Questioned {
    /// Refuses a model file that makes no sense to a solver.
    pub fn check(&self) -> Result<(), Failure> {
        match &self.places {
            Some(places) => sound(located(&self.subject.base().model, places)).map(drop),
            None => Ok(()),
        }
    }
}

/// What is doubtful about a model, and where in its file.
fn located(model: &Model, places: &Places) -> Vec<Diagnostic> {
    let mut found = lint::check(model);
    places.locate(&mut found);
    found
}

fn sound(found: Vec<Diagnostic>) -> Result<Vec<Diagnostic>, Failure> {
    if found.iter().any(|finding| finding.severity == Severity::Error) { Err(Failure::Input(found)) } else { Ok(found) }
}

/// Reads a model file or makes a model of traces; shows what there is to say about it.
pub fn load(arguments: &SourceArguments, terminal: &mut Terminal) -> Result<Source, Failure> {
    load_keeping(arguments, false, terminal)
}

/// The same, and keeps each match of a template.
pub fn load_with_matches(arguments: &SourceArguments, terminal: &mut Terminal) -> Result<Source, Failure> {
    load_keeping(arguments, true, terminal)
}

fn load_keeping(arguments: &SourceArguments, matches: bool, terminal: &mut Terminal) -> Result<Source, Failure> {
    input::check_stdin_once(arguments.files.iter().chain(&arguments.reduce.rules).chain(&arguments.config))?;
    let (configuration, _) = configuration(arguments.config.as_deref(), terminal)?;
    let reduced = match submodel_or_model(&arguments.files, &arguments.reading, &arguments.reduce, matches, terminal)? {
        Found::SubModel(reduced) => *reduced,
        Found::Model(file, whole) => {
            only_a_model(&file, arguments)?;
            let Loaded { model, places, findings } = model_file(&file, whole, terminal)?;
            return Ok(Source { model, places, origins: None, reduced: None, findings, configuration });
        }
    };
    let configuration = with_defaults(configuration, &reduced.reduction.submodel);
    let (model, findings, origins) = model::complete(&reduced.reduction.submodel, &configuration)?;
    tell(&findings, terminal);
    Ok(Source {
        model,
        places: Places::default(),
        origins: Some(origins),
        reduced: Some(reduced),
        findings,
        configuration,
    })
}

/// What questions are about, each of them a model file or traces; the configuration is that of all traces.
pub fn subjects(
    sets: &[&[PathBuf]],
    arguments: &SourceArguments,
    terminal: &mut Terminal,
) -> Result<Vec<Questioned>, Failure> {
    let files = sets.iter().copied().flatten();
    input::check_stdin_once(files.chain(&arguments.reduce.rules).chain(&arguments.config))?;
    let (_, file) = configuration(arguments.config.as_deref(), terminal)?;
    let (file, text) = file.unwrap_or_else(|| ("the configuration".into(), "".into()));
    let mut models: Vec<PathBuf> = Vec::new();
    let mut subjects = Vec::with_capacity(sets.len());
    for files in sets {
        subjects.push(match submodel_or_model(files, &arguments.reading, &arguments.reduce, false, terminal)? {
            Found::Model(file, whole) => {
                let Loaded { model, places, .. } = model_file(&file, whole, terminal)?;
                models.push(file);
                Questioned { subject: Subject::of_model(model), places: Some(places) }
            }
            Found::SubModel(reduced) => {
                let sub = reduced.reduction.submodel;
                // A task of the native format is one sequential flow of control.
                let sequential = !sub.concurrent;
                let subject = Subject::of_traces(sub, &file, &text, sequential)?;
                tell(&subject.base().findings, terminal);
                Questioned { subject, places: None }
            }
        });
    }
    if let Some(file) = models.first().filter(|_| models.len() == sets.len()) {
        only_a_model(file, arguments)?;
    }
    Ok(subjects)
}

/// Shows what there is to say about the making of a model.
fn tell(findings: &[Diagnostic], terminal: &Terminal) {
    let (notes, warnings): (Vec<_>, Vec<_>) =
        findings.iter().cloned().partition(|finding| finding.severity == Severity::Note);
    terminal.report_first(&warnings, SHOWN, "");
    terminal.report_first(&notes, SHOWN, "; `--format text` shows the loads chosen");
}

/// What files are, told by their content.
enum Found {
    SubModel(Box<Reduced>),
    Model(PathBuf, Box<dyn Read + Send>),
}

fn submodel_or_model(
    files: &[PathBuf],
    reading: &ReadingArguments,
    reduce: &ReduceArguments,
    matches: bool,
    terminal: &mut Terminal,
) -> Result<Found, Failure> {
    if reading.from.is_some() {
        return Ok(Found::SubModel(Box::new(reduce::reduce(files, None, reading, reduce, matches.into(), terminal)?)));
    }
    if files.len() > 1 {
        refuse_models(files)?;
    }
    let mut saved: Vec<Saved> = Vec::new();
    let mut traces: Vec<PathBuf> = Vec::new();
    let mut first = None;
    for (number, file) in files.iter().enumerate() {
        // What can be read only once is looked at if it comes first, and is else what the first is. A file that cannot be
        // read is told of below, together with the others.
        let looked_at = (number == 0 || file.is_file()).then(|| input::peek(file));
        match looked_at {
            None if saved.len() == number => saved.push((file.clone(), None)),
            Some(Ok((head, whole))) if saved::is_saved(&String::from_utf8_lossy(&head)) => {
                saved.push((file.clone(), (number == 0).then_some(whole)));
            }
            Some(Ok((head, whole))) if files.len() == 1 && is_model(&head) => {
                return Ok(Found::Model(file.clone(), whole));
            }
            looked_at => {
                first = first.or(looked_at.filter(|_| number == 0).and_then(Result::ok));
                traces.push(file.clone());
            }
        }
    }
    let first = first.map(|(_, whole)| whole);
    if saved.is_empty() {
        return Ok(Found::SubModel(Box::new(reduce::reduce(
            &traces,
            first,
            reading,
            reduce,
            matches.into(),
            terminal,
        )?)));
    }
    let mut given = submodels::load(saved, terminal)?;
    if traces.is_empty() {
        let submodels::Given { submodel, merge, .. } = given;
        let reduction = Reduction { submodel, ..Reduction::default() };
        let reduced = Reduced { reduction, reading: ReadReport::default(), merge, samples: None, interactions: None };
        return Ok(Found::SubModel(Box::new(reduced)));
    }
    submodels::check_merge(&given, reduce.merge)?;
    let named = if let [trace] = &*traces { input::shown(trace) } else { "the traces".into() };
    let mut reduced = reduce::reduce(&traces, first, reading, reduce, matches.into(), terminal)?;
    if let Some(finding) = given.seen.take_in(&named, &reduced.reduction.submodel) {
        terminal.report(&[finding]);
    }
    reduced.reduction.submodel.merge(&given.submodel);
    Ok(Found::SubModel(Box::new(reduced)))
}

/// What files come to before any configuration.
pub enum Given {
    /// Traces or saved sub-models.
    SubModel(Box<SubModel>),
    /// A model file.
    Model(Box<Model>),
}

/// Reads what configurations are made from.
pub fn given(
    files: &[PathBuf],
    reading: &ReadingArguments,
    reduce: &ReduceArguments,
    terminal: &mut Terminal,
) -> Result<Given, Failure> {
    Ok(match submodel_or_model(files, reading, reduce, false, terminal)? {
        Found::SubModel(reduced) => Given::SubModel(Box::new(reduced.reduction.submodel)),
        Found::Model(file, whole) => Given::Model(Box::new(model_file(&file, whole, terminal)?.model)),
    })
}

/// Refuses several files of which some are models: a model is complete by itself.
fn refuse_models(files: &[PathBuf]) -> Result<(), Failure> {
    // Pipes can be looked at once only; what cannot be read is told of by those who read it.
    let looked = files.iter().filter(|file| file.is_file());
    let models: Vec<&PathBuf> =
        looked.filter(|file| input::peek(file).is_ok_and(|(head, _)| is_model(&head))).collect();
    let Some(model) = models.first() else { return Ok(()) };
    let place = Place::File { file: input::shown(model) };
    let finding = if models.len() == files.len() {
        Diagnostic::error(codes::ARGUMENTS, place, "there is more than one model, and one is asked about at a time")
    } else {
        Diagnostic::error(codes::ARGUMENTS, place, "this is a model, and the other files are not: the two do not mix")
            .with_note("traces are made into one model together; a model is complete already")
    };
    Err(finding
        .with_hint("`dyelog diff` compares two models, `dyelog whatif … --against` asks several the same")
        .into())
}

/// The sub-model of traces, or of saved sub-models, and how its entries were told apart.
pub fn submodel(
    files: &[PathBuf],
    reading: &ReadingArguments,
    reduce: &ReduceArguments,
    terminal: &mut Terminal,
) -> Result<(SubModel, String), Failure> {
    match submodel_or_model(files, reading, reduce, false, terminal)? {
        Found::SubModel(reduced) => Ok((reduced.reduction.submodel, reduced.merge)),
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
pub type Named = Option<(Arc<str>, Arc<str>)>;

/// Reads a configuration; shows what there is to say about it.
pub fn configuration(file: Option<&Path>, terminal: &mut Terminal) -> Result<(Configuration, Named), Failure> {
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

/// Refuses what is for traces where there are none.
fn only_a_model(file: &Path, arguments: &SourceArguments) -> Result<(), Failure> {
    if arguments.config.is_none() && arguments.reduce.rules.is_empty() {
        return Ok(());
    }
    let message = "a model file is complete: `--config` and `--rules` are for traces";
    Err(Diagnostic::error(codes::ARGUMENTS, Place::File { file: input::shown(file) }, message).into())
}

fn model_file(file: &Path, whole: impl Read, terminal: &mut Terminal) -> Result<Loaded, Failure> {
    let name = input::shown(file);
    let text: Arc<str> = input::read_text(file, whole)?.into();
    terminal.sources.insert(Arc::clone(&name), Arc::clone(&text));
    let loaded = lqn::read_any(&name, &text)?;
    terminal.report(&loaded.findings);
    Ok(loaded)
}
