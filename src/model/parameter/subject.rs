//! What a question is about, and the model that it becomes with some parameters changed.

use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics, Place, similar};
use crate::lqn::Model;
use crate::lqn::Multiplicity;
use crate::lqn::submodel::SubModel;
use crate::model::parameter::configuration::{self, Settings};
use crate::model::parameter::elements::{Element, FINISHED};
use crate::model::parameter::{Axis, Bounds, Kind, Path, Value, elements};
use crate::model::utilisation::{Cores, Measured};
use crate::model::{Configuration, LoadReason, Origins, ScenarioOrigin, Traced, codes, complete_as_traced};

/// A parameter with a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The parameter.
    pub path: Path,
    /// Its value.
    pub value: Value,
}

/// A model with, where it was made of traces, where its elements come from.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The model.
    pub model: Model,
    /// Where its elements come from.
    pub origins: Option<Origins>,
    /// What there is to say about how it was made.
    pub findings: Vec<Diagnostic>,
}

impl AsRef<Model> for Asked {
    fn as_ref(&self) -> &Model {
        &self.model
    }
}

/// Traces with their configuration, or a model: what a question is about.
#[derive(Clone, Debug)]
pub struct Subject {
    source: Source,
    /// Changes of a finished model, which come after those of the configuration.
    fixed: Vec<Change>,
    base: Asked,
    /// Scenarios whose loads were observed, before a question keeps these as if they were given.
    observed: Vec<ScenarioOrigin>,
}

#[derive(Clone, Debug)]
enum Source {
    Traces { sub: Box<SubModel>, settings: Settings, sequential: bool, traced: Box<Traced>, cores: Cores },
    Model(Box<Model>),
}

impl Subject {
    /// What traces show, with the text of a configuration. `sequential` makes one thread the default of all tasks.
    ///
    /// # Errors
    /// When the configuration cannot be read, or the traces show nothing.
    pub fn of_traces(sub: SubModel, file: &Arc<str>, text: &str, sequential: bool) -> Result<Self, Diagnostics> {
        Self::of_measured_traces(sub, file, text, sequential, Measured::default(), Cores::new())
    }

    /// The same, where processors and tasks were measured to be so busy, and processors to have so many cores.
    ///
    /// # Errors
    /// As [`Subject::of_traces`].
    pub fn of_measured_traces(
        sub: SubModel,
        file: &Arc<str>,
        text: &str,
        sequential: bool,
        measured: Measured,
        cores: Cores,
    ) -> Result<Self, Diagnostics> {
        let settings = Settings::parse(file, text)?;
        let mut source = Source::Traces { sub: Box::new(sub), settings, sequential, traced: Box::default(), cores };
        source.look(measured)?;
        let base = source.model(&[])?;
        if let (Source::Traces { settings, traced, .. }, Some(origins)) = (&mut source, &base.origins) {
            settings.keep_loads(origins);
            traced.forks = Some(origins.forks.clone());
        }
        let scenarios = base.origins.iter().flat_map(|origins| &origins.scenarios);
        let observed = scenarios.filter(|own| own.reason == LoadReason::Observed).cloned().collect();
        Ok(Self { source, fixed: Vec::new(), base, observed })
    }

    /// The same traces, read with other numbers of servers that fit about as well, and which these are, but for processors that are left out; `None` where none do. Measured utilisation
    /// leaves none open.
    pub fn otherwise(&self, is_left_out: impl Fn(&str) -> bool) -> Option<(Self, Vec<String>)> {
        let Source::Traces { traced, .. } = &self.source else { return None };
        if traced.hosts().any(|(_, host)| host.measured.is_some()) {
            return None;
        }
        let mut other = self.clone();
        let mut told = Vec::new();
        for (name, host) in traced.hosts().filter(|(name, _)| !is_left_out(name)) {
            let path = Path::of(&["processor", name, "multiplicity"]);
            let Some((servers, words)) = host.otherwise() else { continue };
            if let Source::Traces { settings, .. } = &mut other.source {
                let value = match servers {
                    Multiplicity::Infinite => Value::Infinite,
                    Multiplicity::Finite(count) => Value::Number(f64::from(count)),
                };
                settings.set(&path, Kind::Servers, &value);
                told.push(format!("`{name}`: {words}"));
            }
        }
        if told.is_empty() {
            return None;
        }
        other.source.look(Measured::default()).ok()?;
        other.base = other.source.model(&[]).ok()?;
        if let (Source::Traces { traced, .. }, Some(origins)) = (&mut other.source, &other.base.origins) {
            traced.forks = Some(origins.forks.clone());
        }
        Some((other, told))
    }

    /// A model as it is.
    pub fn of_model(model: Model) -> Self {
        let base = Asked { model: model.clone(), origins: None, findings: Vec::new() };
        Self { source: Source::Model(Box::new(model)), fixed: Vec::new(), base, observed: Vec::new() }
    }

    /// The model without further changes.
    pub fn base(&self) -> &Asked {
        &self.base
    }

    /// A scenario or a profile as it was traced, where its load was observed.
    pub fn observed(&self, own: &ScenarioOrigin) -> Option<&ScenarioOrigin> {
        self.observed.iter().find(|other| other.table() == own.table() && other.name == own.name)
    }

    /// All parameters that there are.
    pub fn paths(&self) -> Vec<(Path, Kind)> {
        let mut paths = match (&self.source, &self.base.origins) {
            (Source::Traces { sub, settings, .. }, Some(origins)) => settings.known(sub, &self.base.model, origins),
            _ => Vec::new(),
        };
        let of_traces = matches!(self.source, Source::Traces { .. });
        paths.extend(elements::known(&self.base.model, of_traces).into_iter().map(|(path, kind, _)| (path, kind)));
        paths
    }

    /// A parameter by its path in full, with what it takes.
    ///
    /// # Errors
    /// When there is none: with the one that may have been meant, and some that there are.
    pub fn parameter(&self, path: &Path) -> Result<(Path, Kind), Diagnostic> {
        let path = match self.source {
            Source::Traces { .. } => configuration::in_full(path),
            Source::Model(_) => path.clone(),
        };
        // Phases that are not there yet are no numbers of the model, but can become some.
        if let Some((kind, _)) = self.element(&path) {
            return Ok((path, kind));
        }
        let paths = self.paths();
        match paths.iter().find(|(own, _)| *own == path) {
            Some((_, kind)) => Ok((path, *kind)),
            None => Err(unknown(&path, &paths)),
        }
    }

    /// Reads `PATH=VALUE`.
    ///
    /// # Errors
    /// When there is no such parameter or it does not take that value.
    pub fn change(&self, text: &str) -> Result<Change, Diagnostic> {
        let (path, rest) = assignment(text)?;
        let (path, kind) = self.parameter(&path)?;
        let value = kind.parse(rest).map_err(|why| not_taken(&path, &why))?;
        self.absolute(Change { path, value }, kind)
    }

    /// Reads `PATH=VALUES`: a sweep.
    ///
    /// # Errors
    /// When there is no such parameter or it does not take these values.
    pub fn axis(&self, text: &str) -> Result<(Path, Axis), Diagnostic> {
        let (path, rest) = assignment(text)?;
        let (path, kind) = self.parameter(&path)?;
        let mut axis = Axis::parse(kind, rest)?;
        for value in &mut axis.values {
            let change = self.absolute(Change { path: path.clone(), value: value.clone() }, kind)?;
            *value = change.value;
        }
        axis.values.dedup();
        Ok((path, axis))
    }

    /// Reads `PATH`, `PATH=FROM..TO`, `PATH=FROM..` or `PATH=VALUES`: where to search.
    ///
    /// # Errors
    /// When there is no such parameter, or it does not take these values.
    pub fn bounds(&self, text: &str) -> Result<(Path, Bounds), Diagnostic> {
        let (path, rest) = Path::split(text)?;
        let (path, kind) = self.parameter(&path)?;
        let present = self.number(&path, kind);
        let range = match rest.strip_prefix('=') {
            None => None,
            Some(range) if Bounds::are_listed(range) => {
                let (path, axis) = self.axis(text)?;
                return Ok((path.clone(), Bounds::listed(&path, kind, &axis.values, present)?));
            }
            Some(range) => Some(range),
        };
        let bounds = Bounds::parse(&path, kind, range, present)?;
        Ok((path, bounds))
    }

    /// The change with a value of its own in place of a relative one.
    fn absolute(&self, change: Change, kind: Kind) -> Result<Change, Diagnostic> {
        let Value::Times(factor) = change.value else { return Ok(change) };
        let Some(number) = self.number(&change.path, kind) else {
            return Err(not_taken(&change.path, NO_VALUE)
                .with_hint("`--list` shows which parameters have a value: a load of customers has a `population` and no `rate`, an open one the other way round"));
        };
        let number = kind.check(kind.round(factor * number)).map_err(|why| not_taken(&change.path, &why))?;
        Ok(Change { value: Value::Number(number), ..change })
    }

    /// The number that a parameter has now.
    pub fn number(&self, path: &Path, kind: Kind) -> Option<f64> {
        if let Some((_, element)) = self.element(path) {
            return element.get(&self.base.model);
        }
        let (Source::Traces { settings, .. }, Some(origins)) = (&self.source, &self.base.origins) else { return None };
        settings.number(path, kind).or_else(|| configuration::unset(path, &self.base.model, origins))
    }

    /// The element of the finished model that a path leads to.
    fn element(&self, path: &Path) -> Option<(Kind, elements::Element)> {
        let finished = FINISHED.contains(&path.0[0].as_str());
        let own = finished || matches!(self.source, Source::Model(_));
        own.then(|| elements::find(&self.base.model, path)).flatten()
    }

    /// Changes what the question is about.
    ///
    /// # Errors
    /// As [`Subject::ask`].
    pub fn set(&mut self, changes: &[Change]) -> Result<(), Diagnostics> {
        // Loads that were observed are kept as if they were given, once there is a question.
        if changes.is_empty() {
            return Ok(());
        }
        self.base = self.ask(changes)?;
        for change in changes {
            match (&mut self.source, elements_only(change)) {
                (Source::Traces { settings, .. }, false) => settings.set(&change.path, kind_of(change), &change.value),
                _ => self.fixed.push(change.clone()),
            }
        }
        Ok(())
    }

    /// The model with some parameters changed.
    ///
    /// # Errors
    /// When a parameter does not take its value.
    pub fn ask(&self, changes: &[Change]) -> Result<Asked, Diagnostics> {
        let mut asked = self.source.model(changes)?;
        let of_model = matches!(self.source, Source::Model(_));
        for change in self.fixed.iter().chain(changes.iter().filter(|change| of_model || elements_only(change))) {
            // A change of the configuration may have taken the element away.
            let Some((_, element)) = elements::find(&asked.model, &change.path) else {
                return Err(not_taken(&change.path, "the model no longer has it").into());
            };
            element.set(&mut asked.model, &change.value).map_err(|why| not_taken(&change.path, &why))?;
            if let (Element::Load, Some(origins), Some(times)) = (element, &mut asked.origins, change.value.number()) {
                for scenario in &mut origins.scenarios {
                    scenario.load = scenario.load.times(times);
                }
            }
        }
        Ok(asked)
    }
}

impl Source {
    /// Looks at what traces tell of the system as it is configured, before anything is changed.
    fn look(&mut self, measured: Measured) -> Result<(), Diagnostics> {
        if let Self::Traces { sub, settings, traced, cores, .. } = self {
            let configuration = Configuration { measured, cores: cores.clone(), ..settings.configuration()? };
            **traced = crate::model::traced(sub, &configuration);
        }
        Ok(())
    }

    /// The model with those of the changes that concern the configuration.
    fn model(&self, changes: &[Change]) -> Result<Asked, Diagnostics> {
        match self {
            Self::Model(model) => Ok(Asked { model: (**model).clone(), origins: None, findings: Vec::new() }),
            Self::Traces { sub, settings, sequential, traced, cores } => {
                let mut settings = settings.clone();
                for change in changes.iter().filter(|change| !elements_only(change)) {
                    settings.set(&change.path, kind_of(change), &change.value);
                }
                let mut configuration = Configuration { cores: cores.clone(), ..settings.configuration()? };
                if *sequential {
                    configuration.defaults.threads.get_or_insert(Multiplicity::Finite(1));
                }
                let (model, findings, origins) = complete_as_traced(sub, &configuration, Some(&**traced))?;
                Ok(Asked { model, origins: Some(origins), findings })
            }
        }
    }
}

/// Whether a change is one of the finished model, whatever the subject.
fn elements_only(change: &Change) -> bool {
    FINISHED.contains(&change.path.0[0].as_str())
}

/// What a setting takes, as far as its form goes.
fn kind_of(change: &Change) -> Kind {
    match change.path.names()[..] {
        ["scenario" | "profile", _, "population"] | ["processor" | "task", _, "replicas"] => Kind::Count,
        ["processor", _, "multiplicity"] | ["task", _, "threads"] | ["defaults", "multiplicity" | "threads"] => {
            Kind::Servers
        }
        ["task", _, "priority"] => Kind::Whole,
        _ => Kind::Number,
    }
}

/// The path and the rest of `PATH=…`.
pub(super) fn assignment(text: &str) -> Result<(Path, &str), Diagnostic> {
    let (path, rest) = Path::split(text)?;
    match rest.strip_prefix('=') {
        Some(rest) => Ok((path, rest)),
        None => Err(Diagnostic::error(codes::PATH, Place::Nowhere, format!("`{text}` gives its parameter no value"))
            .with_hint(format!("write `{path}=…`"))),
    }
}

/// Why a relative value is refused.
pub(super) const NO_VALUE: &str = "there is no value that another could be relative to";

pub(super) fn not_taken(path: &Path, why: &str) -> Diagnostic {
    Diagnostic::error(codes::PARAMETER_VALUE, Place::Nowhere, format!("`{path}` does not take that value: {why}"))
}

/// That there is no such parameter.
fn unknown(path: &Path, paths: &[(Path, Kind)]) -> Diagnostic {
    let finding = Diagnostic::error(codes::NO_PARAMETER, Place::Nowhere, format!("there is no parameter `{path}`"));
    let shown: Vec<String> = paths.iter().map(|(path, _)| path.to_string()).collect();
    let finding = match similar(&path.to_string(), shown.iter().map(String::as_str)) {
        Some(name) => finding.with_hint(format!("did you mean `{name}`?")),
        None => finding,
    };
    // Those that begin alike, else the first names of all.
    let alike = |count: usize| -> Vec<&str> {
        let begin = |own: &Path| own.0.len() > count && own.0[..count] == path.0[..count.min(path.0.len())];
        paths.iter().zip(&shown).filter(|((own, _), _)| begin(own)).map(|(_, text)| text.as_str()).collect()
    };
    const SHOWN: usize = 12;
    let near = [2, 1, 0].into_iter().filter(|count| *count <= path.0.len()).map(alike).find(|near| !near.is_empty());
    let near = near.unwrap_or_default();
    let more = if near.len() > SHOWN { format!(" and {} more", near.len() - SHOWN) } else { String::new() };
    let list: Vec<String> = near.iter().take(SHOWN).map(|text| format!("`{text}`")).collect();
    finding.with_note(format!("there are {}{more}; `--list` shows all", list.join(", ")))
}
