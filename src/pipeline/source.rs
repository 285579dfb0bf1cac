//! A model, from a model file or made of traces.

use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics, Place, Severity};
use crate::lqn::saved::Kept;
use crate::lqn::submodel::{EntryMerge, SubModel};
use crate::lqn::{self, EntryId, Language, Loaded, Model, Multiplicity, Places, lint, saved};
use crate::model::parameter::{Asked, Subject};
use crate::model::requests;
use crate::model::stationarity::{self, SteadyPart, steady_part};
use crate::model::utilisation::{self, Metrics};
use crate::model::{Configuration, Explained, Origins};
use crate::pipeline::codes;
use crate::pipeline::input::{Input, Reader, read_text};
use crate::pipeline::listener::Listener;
use crate::pipeline::options::Options;
use crate::pipeline::reduce::{self, Reduced};
use crate::pipeline::submodels::{self, Saved};
use crate::solve::{SolveOptions, solve};
use crate::study;
use crate::trace;
use crate::trace::spans::Grouping;

/// How many findings on the making of a model are shown.
const SHOWN: usize = 10;

/// A model and, where it was made of traces, where its elements come from.
#[non_exhaustive]
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
    /// What is doubtful about a model file, and where. Findings about a model of traces were reported when it was made.
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
    pub fn doubtful_but_sound(&self) -> Result<Vec<Diagnostic>, Diagnostics> {
        sound(self.doubtful())
    }

    /// What the numbers of an entry were computed from; `None` where the model was read from a file.
    ///
    /// # Errors
    /// When the configuration's demands cannot be worked out.
    pub fn explained(&self, entry: EntryId) -> Result<Option<Explained>, Diagnostics> {
        let (Some(origins), Some(reduced)) = (&self.origins, &self.reduced) else { return Ok(None) };
        let sub = &reduced.reduction.submodel;
        Explained::new(sub, &self.configuration, (&self.model, origins), entry).map(Some)
    }
}

/// What questions are about.
#[non_exhaustive]
pub struct Questioned {
    /// The model file or the traces.
    pub subject: Subject,
    /// Where the elements of a model file stand in it.
    places: Option<Places>,
}

impl Questioned {
    /// Refuses a model file that makes no sense to a solver.
    pub fn check(&self) -> Result<(), Diagnostics> {
        match &self.places {
            Some(places) => sound(located(&self.subject.base().model, places)).map(drop),
            None => Ok(()),
        }
    }

    /// Where a model of traces, as it is, does not respond as they did: its answers about other loads are off as well. Its percentiles are looked at, too, where they are asked for, by a
    /// simulation on so many threads.
    pub fn unlike_traced(&self, percentiles: Option<usize>) -> Vec<Diagnostic> {
        let Asked { model, origins: Some(origins), .. } = self.subject.base() else { return Vec::new() };
        let solved = solve(model, &SolveOptions::default(), None, &mut ()).map(|solution| solution.results);
        let Some(results) = solved.ok().filter(|results| !results.convergence.saturated) else { return Vec::new() };
        let outlook = percentiles.map(|threads| study::outlook::outlook(model, &results, Some(origins), threads));
        let mut found = study::unlike_traced(model, &results, origins, outlook.as_ref());
        let unlike = |outlook| study::percentiles_unlike_traced(model, &results, origins, outlook);
        found.extend(outlook.as_ref().map(unlike).unwrap_or_default());
        found
    }
}

/// What is doubtful about a model, and where in its file.
fn located(model: &Model, places: &Places) -> Vec<Diagnostic> {
    let mut found = lint::check(model);
    places.locate(&mut found);
    found
}

fn sound(found: Vec<Diagnostic>) -> Result<Vec<Diagnostic>, Diagnostics> {
    if found.iter().any(|finding| finding.severity == Severity::Error) { Err(Diagnostics(found)) } else { Ok(found) }
}

/// Reads a model, or makes one of traces and a configuration; tells what there is to say about it.
///
/// # Errors
/// All that keeps any of the inputs from being read, and the model from being made.
pub fn model(
    inputs: &[Input],
    config: Option<&Input>,
    options: &Options,
    listener: &mut dyn Listener,
) -> Result<Source, Diagnostics> {
    let (configuration, _) = configuration(config, listener)?;
    let options = &grouped(options, &configuration)?;
    let reduced = match submodel_or_model(inputs, options, listener)? {
        Found::SubModel(reduced) => steady(*reduced, inputs, options, &configuration, listener)?.0,
        Found::Model(file, whole) => {
            only_a_model(&file, config, options)?;
            let Loaded { model, places, findings } = model_file(&file, whole, listener)?;
            return Ok(Source { model, places, origins: None, reduced: None, findings, configuration });
        }
    };
    complete(reduced, configuration, &options.utilisation, listener)
}

/// Makes a model of a sub-model that is at hand, whose entries `merge` tells apart, without a configuration.
///
/// # Errors
/// All that keeps the model from being made.
pub fn model_of(
    submodel: SubModel,
    merge: &str,
    utilisation: &Metrics,
    listener: &mut dyn Listener,
) -> Result<Source, Diagnostics> {
    complete(Reduced::of(submodel, merge), Configuration::default(), utilisation, listener)
}

/// Makes a model of what traces came to; tells what there is to say about it.
pub(super) fn complete(
    reduced: Reduced,
    configuration: Configuration,
    utilisation: &Metrics,
    listener: &mut dyn Listener,
) -> Result<Source, Diagnostics> {
    let mut reduced = reduced;
    // Much is asked of times: they are put in order once.
    reduced.reduction.submodel.sort_times();
    let configuration = with_defaults(configuration, &reduced.reduction.submodel);
    let configuration = measured(utilisation, &mut reduced.reduction.submodel, configuration, listener)?;
    let (model, findings, origins) = crate::model::complete(&reduced.reduction.submodel, &configuration)?;
    tell(&findings, listener);
    Ok(Source {
        model,
        places: Places::default(),
        origins: Some(origins),
        reduced: Some(reduced),
        findings,
        configuration,
    })
}

/// The configuration with what metrics tell of its processors: how many cores they have, and how busy they were while the traces were recorded. Operations of the
/// sub-model stand for as many as metrics counted. Tells what there is to say about it.
///
/// # Errors
/// As [`utilisation::measured`].
pub fn measured(
    metrics: &Metrics,
    sub: &mut SubModel,
    mut configuration: Configuration,
    listener: &mut dyn Listener,
) -> Result<Configuration, Diagnostics> {
    listener.findings(&requests::weigh(&metrics.requests, sub));
    configuration.cores = utilisation::cores(&metrics.cores, sub, &configuration);
    let (measured, findings) = utilisation::measured(&metrics.series, sub, &configuration)?;
    listener.findings(&findings);
    configuration.measured = measured;
    Ok(configuration)
}

/// The options with the patterns of names that a configuration has, where the options have none.
///
/// # Errors
/// When a pattern cannot be read.
pub fn grouped<'r>(options: &Options<'r>, configuration: &Configuration) -> Result<Options<'r>, Diagnostics> {
    let mut options = options.clone();
    if !configuration.group.is_empty() && options.reading.grouping == Grouping::default() {
        options.reading.grouping = Grouping::of_patterns(&configuration.group).map_err(|why| {
            let message = format!("`group` of the configuration: {why}");
            Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message)
                .with_hint("write names with `*` for what differs, such as `\"GET /user/*\"`")
        })?;
    }
    Ok(options)
}

/// The steady part of what was recorded, where all of it is not, and operations can be told apart; tells what changes. Also whether it is a part.
fn steady(
    reduced: Reduced,
    inputs: &[Input],
    options: &Options,
    configuration: &Configuration,
    listener: &mut dyn Listener,
) -> Result<(Reduced, bool), Diagnostics> {
    // What can be read once has been read.
    let again = reduced.is_open && inputs.iter().all(|input| input.length().is_some());
    if configuration.all_of_recording || !again {
        return Ok((reduced, false));
    }
    let part = steady_part(&reduced.reduction.submodel);
    let Some(SteadyPart { starts, findings }) = part else { return Ok((reduced, false)) };
    let options = Options { within: Some(starts), ..options.clone() };
    // What there is to say about the inputs was said.
    let Found::SubModel(part) = submodel_or_model(inputs, &options, &mut ())? else { return Ok((reduced, false)) };
    listener.findings(&findings);
    Ok((Reduced { reading: reduced.reading, ..*part }, true))
}

/// What questions are about, each of them a model file or traces; the configuration is that of all traces.
pub fn subjects(
    sets: &[&[Input]],
    config: Option<&Input>,
    options: &Options,
    listener: &mut dyn Listener,
) -> Result<Vec<Questioned>, Diagnostics> {
    let (settings, file) = configuration(config, listener)?;
    let options = &grouped(options, &settings)?;
    let (file, text) = file.unwrap_or_else(|| ("the configuration".into(), "".into()));
    let mut models: Vec<Input> = Vec::new();
    let mut subjects = Vec::with_capacity(sets.len());
    for files in sets {
        subjects.push(match submodel_or_model(files, options, listener)? {
            Found::Model(file, whole) => {
                let Loaded { model, places, .. } = model_file(&file, whole, listener)?;
                models.push(file);
                Questioned { subject: Subject::of_model(model), places: Some(places) }
            }
            Found::SubModel(reduced) => {
                let mut sub = steady(*reduced, files, options, &settings, listener)?.0.reduction.submodel;
                // A task of the native format is one sequential flow of control.
                let sequential = !sub.concurrent;
                let own = measured(&options.utilisation, &mut sub, settings.clone(), listener)?;
                let subject = Subject::of_measured_traces(sub, &file, &text, sequential, own.measured, own.cores)?;
                tell(&subject.base().findings, listener);
                Questioned { subject, places: None }
            }
        });
    }
    if let Some(file) = models.first().filter(|_| models.len() == sets.len()) {
        only_a_model(file, config, options)?;
    }
    Ok(subjects)
}

/// Shows what there is to say about the making of a model.
fn tell(findings: &[Diagnostic], listener: &mut dyn Listener) {
    let (notes, warnings): (Vec<_>, Vec<_>) =
        findings.iter().cloned().partition(|finding| finding.severity == Severity::Note);
    listener.first_findings(&warnings, SHOWN, "");
    listener.first_findings(&notes, SHOWN, "; `--format text` shows the loads chosen");
}

/// What files are, told by their content.
enum Found {
    SubModel(Box<Reduced>),
    Model(Input, Reader),
}

fn submodel_or_model(files: &[Input], options: &Options, listener: &mut dyn Listener) -> Result<Found, Diagnostics> {
    if options.reading.format.is_some() {
        return Ok(Found::SubModel(Box::new(reduce::reduce(files, None, options, listener)?)));
    }
    if files.len() > 1 {
        refuse_models(files)?;
    }
    let mut saved: Vec<Saved> = Vec::new();
    let mut traces: Vec<Input> = Vec::new();
    let mut first = None;
    for (number, file) in files.iter().enumerate() {
        // What can be read only once is looked at if it comes first, and is else what the first is. A file that cannot be
        // read is reported below, together with the others.
        let looked_at = (number == 0 || file.length().is_some()).then(|| file.peek());
        match looked_at {
            None if saved.len() == number => saved.push((file.clone(), None)),
            Some(Ok((head, whole))) if saved::is_packed(&head) || saved::is_saved(&String::from_utf8_lossy(&head)) => {
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
        return Ok(Found::SubModel(Box::new(reduce::reduce(&traces, first, options, listener)?)));
    }
    let given = submodels::load(saved, listener)?;
    if traces.is_empty() {
        // Operations that are put together have entries as those that were.
        let mut options = options.clone();
        options.merge = EntryMerge::of_label(&given.merge).unwrap_or(options.merge);
        let reduced = Reduced { merge: given.merge, ..reduce::join(given.joining, &options, listener)? };
        return Ok(Found::SubModel(Box::new(reduced)));
    }
    submodels::check_merge(&given, options.merge.label())?;
    Ok(Found::SubModel(Box::new(reduce::reduce_joining(&traces, first, given.joining, options, listener)?)))
}

/// What files come to before any configuration.
pub enum Given {
    /// Traces or saved sub-models.
    SubModel(Box<SubModel>),
    /// A model file.
    Model(Box<Model>),
}

/// Reads what configurations are made from.
pub fn given(files: &[Input], options: &Options, listener: &mut dyn Listener) -> Result<Given, Diagnostics> {
    Ok(match submodel_or_model(files, options, listener)? {
        Found::SubModel(reduced) => {
            let (reduced, _) = steady(*reduced, files, options, &Configuration::default(), listener)?;
            Given::SubModel(Box::new(reduced.reduction.submodel))
        }
        Found::Model(file, whole) => Given::Model(Box::new(model_file(&file, whole, listener)?.model)),
    })
}

/// Refuses several files of which some are models: a model is complete by itself.
fn refuse_models(files: &[Input]) -> Result<(), Diagnostics> {
    // Pipes can be looked at once only; what cannot be read is reported where it is read.
    // What lies beside traces in a folder is left out.
    let looked = files.iter().filter(|file| file.length().is_some() && !file.is_found());
    let models: Vec<&Input> = looked.filter(|file| file.peek().is_ok_and(|(head, _)| is_model(&head))).collect();
    let Some(model) = models.first() else { return Ok(()) };
    let place = Place::File { file: Arc::clone(model.name()) };
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

/// What traces or saved sub-models come to.
#[non_exhaustive]
pub struct Summed {
    /// Their sub-model.
    pub submodel: SubModel,
    /// How its entries were merged.
    pub merge: String,
    /// The recordings that it keeps, where that was asked for.
    pub kept: Option<Kept>,
}

impl Summed {
    /// As a file.
    pub fn saved(&self) -> String {
        saved::write_keeping(&self.submodel, &self.merge, self.kept.as_ref())
    }
}

/// The sub-model of traces, or of saved sub-models.
pub fn submodel(files: &[Input], options: &Options, listener: &mut dyn Listener) -> Result<Summed, Diagnostics> {
    let Reduced { reduction, merge, kept, .. } = no_model(files, options, listener)?;
    Ok(Summed { submodel: reduction.submodel, merge, kept })
}

/// The sub-model of what [`model()`] makes a model of: of the steady part of what was recorded, with names grouped as the configuration has it.
///
/// # Errors
/// As [`submodel`], and when a pattern of names cannot be read.
pub fn steady_submodel(
    files: &[Input],
    options: &Options,
    configuration: &Configuration,
    listener: &mut dyn Listener,
) -> Result<SubModel, Diagnostics> {
    let options = &grouped(options, configuration)?;
    let reduced = no_model(files, options, listener)?;
    let (reduced, is_part) = steady(reduced, files, options, configuration, listener)?;
    let sub = reduced.reduction.submodel;
    if !is_part {
        tell(&stationarity::findings(&sub), listener);
    }
    Ok(sub)
}

fn no_model(files: &[Input], options: &Options, listener: &mut dyn Listener) -> Result<Reduced, Diagnostics> {
    match submodel_or_model(files, options, listener)? {
        Found::SubModel(reduced) => Ok(*reduced),
        Found::Model(file, _) => {
            let message = "a complete model stands where traces or sub-models are needed";
            Err(Diagnostic::error(codes::ARGUMENTS, Place::File { file: Arc::clone(file.name()) }, message).into())
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
pub fn configuration(file: Option<&Input>, listener: &mut dyn Listener) -> Result<(Configuration, Named), Diagnostics> {
    let Some(file) = file else { return Ok((Configuration::default(), None)) };
    let name = Arc::clone(file.name());
    let text: Arc<str> = file.text()?.into();
    listener.source(Arc::clone(&name), Arc::clone(&text));
    let (configuration, findings) = Configuration::parse(&name, &text)?;
    listener.accepted(&configuration.accept);
    listener.findings(&findings);
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
fn only_a_model(file: &Input, config: Option<&Input>, options: &Options) -> Result<(), Diagnostics> {
    if config.is_none() && options.rules.is_none() && options.utilisation == Metrics::default() {
        return Ok(());
    }
    let message = "a model file is complete: `--config`, `--rules` and `--utilisation` are for traces";
    Err(Diagnostic::error(codes::ARGUMENTS, Place::File { file: Arc::clone(file.name()) }, message).into())
}

fn model_file(file: &Input, whole: Reader, listener: &mut dyn Listener) -> Result<Loaded, Diagnostics> {
    let name = Arc::clone(file.name());
    let text: Arc<str> = read_text(&name, whole)?.into();
    listener.source(Arc::clone(&name), Arc::clone(&text));
    let loaded = lqn::read_any(&name, &text)?;
    listener.findings(&loaded.findings);
    Ok(loaded)
}
