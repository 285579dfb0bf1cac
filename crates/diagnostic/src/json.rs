//! Diagnostics as JSON for programs.

use serde::Serialize;

use crate::render::{Sources, in_order};
use crate::{Code, Diagnostic, Place, Severity};

/// The version of the JSON form; it grows when a field changes its meaning or goes, not when one is added.
const VERSION: u32 = 1;

/// What programs read: `{"dyelog-diagnostics", "errors", "warnings", "notes", "diagnostics": […]}`.
#[derive(Debug, Serialize)]
pub struct Report<'d> {
    #[serde(rename = "dyelog-diagnostics")]
    version: u32,
    errors: usize,
    warnings: usize,
    notes: usize,
    diagnostics: Vec<Entry<'d>>,
}

#[derive(Debug, Serialize)]
struct Entry<'d> {
    severity: Severity,
    code: Code,
    message: &'d str,
    #[serde(flatten)]
    place: Spot<'d>,
    #[serde(skip_serializing_if = "str::is_empty")]
    label: &'d str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<Marked<'d>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'d [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    hints: &'d [String],
}

#[derive(Debug, Serialize)]
struct Marked<'d> {
    #[serde(flatten)]
    place: Spot<'d>,
    text: &'d str,
}

/// Lines and columns count from 1, columns in characters where the text is known; bytes count from 0.
#[derive(Debug, Default, Serialize)]
struct Spot<'d> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<&'d str>,
}

impl<'d> Report<'d> {
    /// The diagnostics in the order of their places.
    pub fn new(diagnostics: &'d [Diagnostic], sources: &Sources) -> Self {
        let count = |severity| diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count();
        Self {
            version: VERSION,
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            notes: count(Severity::Note),
            diagnostics: in_order(diagnostics).into_iter().map(|diagnostic| entry(diagnostic, sources)).collect(),
        }
    }
}

fn entry<'d>(diagnostic: &'d Diagnostic, sources: &Sources) -> Entry<'d> {
    Entry {
        severity: diagnostic.severity,
        code: diagnostic.code,
        message: &diagnostic.message,
        place: spot(&diagnostic.place, sources),
        label: &diagnostic.label,
        labels: diagnostic
            .labels
            .iter()
            .map(|label| Marked { place: spot(&label.place, sources), text: &label.text })
            .collect(),
        notes: &diagnostic.notes,
        hints: &diagnostic.hints,
    }
}

fn spot<'d>(place: &'d Place, sources: &Sources) -> Spot<'d> {
    let nowhere = Spot::default();
    match place {
        Place::Nowhere => nowhere,
        Place::File { file } => Spot { file: Some(file), ..nowhere },
        Place::Line { file, line, column } => {
            let column = (*column > 0).then_some(*column as usize);
            Spot { file: Some(file), line: Some(*line as usize), column, ..nowhere }
        }
        Place::Range { file, start, end } => {
            let (line, column) = sources.position(file, *start).unzip();
            Spot { file: Some(file), line, column, start: Some(*start), end: Some(*end), ..nowhere }
        }
        Place::Item { file, item } => Spot { file: Some(file), item: Some(item), ..nowhere },
    }
}
