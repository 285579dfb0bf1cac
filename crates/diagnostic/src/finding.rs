//! One finding, and what it is made of.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// A stable identifier of a kind of finding, such as `R012`. Users may rely on it in scripts.
///
/// The letter names the room: `T` traces, `R` rule files, `M` models and configuration, `L` the LQN
/// languages, `S` solvers, `G` call graphs, `C` the command line itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Code(pub &'static str);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The input cannot be used as it is.
    Error,
    /// The input can be used, but probably not as its author meant it.
    Warning,
    /// Worth knowing.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        })
    }
}

/// Where in the input a finding lies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Nowhere in particular.
    Nowhere,
    /// A file as a whole.
    File {
        /// The file's name as the user gave it.
        file: Arc<str>,
    },
    /// A line of a file that may be too large to keep.
    Line {
        /// The file's name as the user gave it.
        file: Arc<str>,
        /// Line, from 1.
        line: u32,
        /// Column in bytes, from 1; 0 where only the line is known.
        column: u32,
    },
    /// A byte range of a text that is kept in [`Sources`](crate::Sources).
    Range {
        /// The file's name as the user gave it.
        file: Arc<str>,
        /// First byte.
        start: usize,
        /// One past the last byte.
        end: usize,
    },
    /// A part of a structured document, such as a span of a trace or a path in a JSON document.
    Item {
        /// The file's name as the user gave it.
        file: Arc<str>,
        /// What in it, such as `span 3f2a` or `resourceSpans[0].scopeSpans`.
        item: String,
    },
}

impl Place {
    /// The file in which it lies.
    pub fn file(&self) -> Option<&Arc<str>> {
        match self {
            Self::Nowhere => None,
            Self::File { file } | Self::Line { file, .. } | Self::Range { file, .. } | Self::Item { file, .. } => {
                Some(file)
            }
        }
    }
}

/// A further place with a few words, shown under the main one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Label {
    /// The place.
    pub place: Place,
    /// What there is to see there.
    pub text: String,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Diagnostic {
    /// How much it matters.
    pub severity: Severity,
    /// Its stable code.
    pub code: Code,
    /// What is the case, in lower case, without a full stop.
    pub message: String,
    /// Where.
    pub place: Place,
    /// Words to stand at the main place itself; may be empty.
    pub label: String,
    /// Further places.
    pub labels: Vec<Label>,
    /// Why it is so.
    pub notes: Vec<String>,
    /// What to do about it.
    pub hints: Vec<String>,
}

impl Diagnostic {
    /// A finding of the given severity with nothing but its code, message and place.
    pub fn new(severity: Severity, code: Code, place: Place, message: impl Into<String>) -> Self {
        Self {
            severity,
            code,
            message: message.into(),
            place,
            label: String::new(),
            labels: Vec::new(),
            notes: Vec::new(),
            hints: Vec::new(),
        }
    }

    /// An error.
    pub fn error(code: Code, place: Place, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, place, message)
    }

    /// A warning.
    pub fn warning(code: Code, place: Place, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, place, message)
    }

    /// The same with words at its main place.
    #[must_use]
    pub fn with_label(mut self, text: impl Into<String>) -> Self {
        self.label = text.into();
        self
    }

    /// The same with a further place.
    #[must_use]
    pub fn with_place(mut self, place: Place, text: impl Into<String>) -> Self {
        self.labels.push(Label { place, text: text.into() });
        self
    }

    /// The same with a reason.
    #[must_use]
    pub fn with_note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// The same with an advice.
    #[must_use]
    pub fn with_hint(mut self, text: impl Into<String>) -> Self {
        self.hints.push(text.into());
        self
    }

    /// The same with the hint "did you mean `X`?" where one of the candidates is near to what was written.
    #[must_use]
    pub fn with_similar<'a>(self, written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Self {
        match similar(written, candidates) {
            Some(name) => self.with_hint(format!("did you mean `{name}`?")),
            None => self,
        }
    }
}

/// The candidate nearest to `written`, if one is near enough to be a slip of the pen.
pub fn similar<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Names that people type are short; a hostile one is not worth a quadratic comparison.
    if written.len() > 200 {
        return None;
    }
    let length = written.chars().count();
    let limit = (length / 3).max(1);
    let lower = written.to_lowercase();
    candidates
        .into_iter()
        // As far apart as their lengths are, two names are at least; a letter more or less is for those that other case makes longer.
        .filter(|name| name.len() <= 200 && *name != written && name.chars().count().abs_diff(length) <= limit + 1)
        .map(|name| (strsim::damerau_levenshtein(&lower, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, name)| name)
}

/// Several findings that together keep an input from being used; never empty of errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            diagnostic.fmt(f)?;
        }
        Ok(())
    }
}

/// The message and the code. [`Renderer`](crate::Renderer) shows the rest.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.message, self.code)
    }
}

impl std::error::Error for Diagnostic {}

impl std::error::Error for Diagnostics {}

impl Diagnostics {
    /// All values, or all that keeps any of them from being one.
    ///
    /// # Errors
    /// Every error among the results, in their order.
    pub fn gather<T, E: Into<Self>>(results: impl IntoIterator<Item = Result<T, E>>) -> Result<Vec<T>, Self> {
        let (mut values, mut faults) = (Vec::new(), Vec::new());
        for result in results {
            match result {
                Ok(value) => values.push(value),
                Err(found) => faults.extend(found.into().0),
            }
        }
        if faults.is_empty() { Ok(values) } else { Err(Self(faults)) }
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self(vec![diagnostic])
    }
}
