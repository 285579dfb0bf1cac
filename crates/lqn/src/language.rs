//! Which language a text is in.

use crate::findings::Findings;
use crate::{Body, Dispatching, Model, Places, Task, Work, codes, json, text, xml};
use dyelog_diagnostic::{Diagnostic, Diagnostics};

/// A model with all that is known of the file it was read from.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The model.
    pub model: Model,
    /// Where its elements stand.
    pub places: Places,
    /// What there is to say about the file; no errors.
    pub findings: Vec<Diagnostic>,
}

/// A language of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// The text language of the LQN tool suite, `.lqn`.
    Lqn,
    /// The XML language of the LQN tool suite, `.lqnx`.
    Lqnx,
    /// JSON, with `"dyelog-model"` as its version.
    Json,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Lqn, Self::Lqnx, Self::Json];

    /// The name by which the command line knows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lqn => "lqn",
            Self::Lqnx => "lqnx",
            Self::Json => "json",
        }
    }

    /// The language of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.name() == name)
    }

    /// The language that a text is in, by what it begins with.
    pub fn of(text: &str) -> Option<Self> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_start();
        if text.starts_with('{') {
            return Some(Self::Json);
        }
        if text.starts_with('<') {
            return Some(Self::Lqnx);
        }
        let line = text.lines().map(str::trim_start).find(|line| !line.is_empty() && !line.starts_with('#'))?;
        let mut characters = line.chars();
        let begins_section = match characters.next() {
            Some('$') => characters.next().is_some_and(|next| next.is_alphanumeric() || next == '_'),
            Some('G' | 'P' | 'U' | 'T' | 'E') => {
                characters.next().is_none_or(|next| next.is_whitespace() || next == '"' || next.is_ascii_digit())
            }
            _ => false,
        };
        begins_section.then_some(Self::Lqn)
    }

    /// Reads a text in this language; with the model come warnings.
    ///
    /// # Errors
    /// All that keeps the text from being a model.
    pub fn parse(self, name: &str, source: &str) -> Result<(Model, Vec<Diagnostic>), Diagnostics> {
        self.read(name, source).map(|loaded| (loaded.model, loaded.findings))
    }

    /// Reads a text in this language, and keeps where the elements of the model stand.
    ///
    /// # Errors
    /// All that keeps the text from being a model.
    pub fn read(self, name: &str, source: &str) -> Result<Loaded, Diagnostics> {
        match self {
            Self::Lqn => text::read(name, source),
            Self::Lqnx => xml::read(name, source),
            Self::Json => json::read(name, source),
        }
    }

    /// How many delays of the model vary otherwise than this language can say: in text and XML all delays are exponential.
    pub fn unsaid_delays(self, model: &Model) -> usize {
        let phases = model.entries.iter().flat_map(|entry| match &entry.body {
            Body::Phases(phases) => &phases[..],
            Body::Activities(_) => &[],
        });
        let works = phases.chain(model.activities.iter().map(|activity| &activity.work));
        let unsaid = |work: &&Work| work.think_time > 0.0 && work.think_cv2.is_some_and(|cv2| cv2 != 1.0);
        if self == Self::Json { 0 } else { works.filter(unsaid).count() }
    }

    /// How many tasks of the model have requests dispatched to their copies in a way that this language cannot say: text and XML have fan-out only.
    pub fn unsaid_dispatching(self, model: &Model) -> usize {
        let unsaid = |task: &&Task| task.replicas > 1 && task.dispatching != Dispatching::FanOut;
        if self == Self::Json { 0 } else { model.tasks.iter().filter(unsaid).count() }
    }

    /// The model in this language.
    pub fn write(self, model: &Model) -> String {
        match self {
            Self::Lqn => text::write(model),
            Self::Lqnx => xml::write(model),
            Self::Json => json::write(model),
        }
    }
}

/// Reads a model in whichever language it is written; the name serves messages only.
///
/// # Errors
/// All that keeps the text from being a model, or that it is in none of the languages.
pub fn parse_any(name: &str, source: &str) -> Result<(Model, Vec<Diagnostic>), Diagnostics> {
    read_any(name, source).map(|loaded| (loaded.model, loaded.findings))
}

/// Reads a model in whichever language it is written, and keeps where its elements stand.
///
/// # Errors
/// As of [`parse_any`].
pub fn read_any(name: &str, source: &str) -> Result<Loaded, Diagnostics> {
    if let Some(language) = Language::of(source) {
        return language.read(name, source);
    }
    let file = Findings::new(name).file();
    Err(Diagnostic::error(codes::UNKNOWN_LANGUAGE, file, "this is no model in any language known here")
        .with_note("`.lqn` text begins with a section such as G or P, `.lqnx` with `<`, JSON with `{`")
        .into())
}
