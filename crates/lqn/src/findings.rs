//! What a reader says beside the model it gives.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::places::Position;
use crate::{Loaded, Model, Places, codes};
use dyelog_diagnostic::{Code, Diagnostic, Diagnostics, Place, Severity};

/// An error, passed up to the place where the reader can go on. Boxed, since success is the rule.
pub(super) type Fault = Box<Diagnostic>;

/// Collects findings, at most [`Findings::KEPT`] of them: a file in a wrong language would give one a line.
pub(super) struct Findings {
    file: Arc<str>,
    list: Vec<Diagnostic>,
    errors: usize,
    suppressed: usize,
}

impl Findings {
    /// How many findings are kept; the rest are counted.
    const KEPT: usize = 100;

    pub(super) fn new(file: &str) -> Self {
        Self { file: file.into(), list: Vec::new(), errors: 0, suppressed: 0 }
    }

    /// The place of a line and column, both from 1.
    pub(super) fn line(&self, line: u32, column: u32) -> Place {
        Place::Line { file: Arc::clone(&self.file), line, column }
    }

    /// The place of a path in a document.
    pub(super) fn item(&self, item: String) -> Place {
        Place::Item { file: Arc::clone(&self.file), item }
    }

    /// The file as a whole.
    pub(super) fn file(&self) -> Place {
        Place::File { file: Arc::clone(&self.file) }
    }

    pub(super) fn push(&mut self, finding: Diagnostic) {
        self.errors += usize::from(finding.severity == Severity::Error);
        if self.list.len() < Self::KEPT {
            self.list.push(finding);
        } else {
            self.suppressed += 1;
        }
    }

    /// Whether any error was found.
    pub(super) fn failed(&self) -> bool {
        self.errors > 0
    }

    /// What was read with its warnings, or what keeps it from being used.
    pub(super) fn conclude<T>(mut self, model: T) -> Result<(T, Vec<Diagnostic>), Diagnostics> {
        let failed = self.failed();
        if self.suppressed > 0 {
            let severity = if failed { Severity::Error } else { Severity::Note };
            let message = format!("{} further findings are not shown", self.suppressed);
            let place = self.file();
            self.list.push(Diagnostic::new(severity, codes::SYNTAX, place, message));
        }
        if failed { Err(Diagnostics(self.list)) } else { Ok((model, self.list)) }
    }
}

impl Findings {
    /// The paths in the document of findings so far.
    pub(super) fn items(&self) -> Vec<String> {
        let items = self.list.iter().filter_map(|finding| match &finding.place {
            Place::Item { item, .. } => Some(item.clone()),
            _ => None,
        });
        items.collect()
    }

    /// Gives findings at paths in the document the lines of these.
    pub(super) fn locate(&mut self, positions: &FxHashMap<String, Position>) {
        for finding in &mut self.list {
            let Place::Item { file, item } = &finding.place else { continue };
            if let Some(&(line, column)) = positions.get(item) {
                finding.label.clone_from(item);
                finding.place = Place::Line { file: Arc::clone(file), line, column };
            }
        }
    }

    /// The model that was read, or what keeps it from being used.
    pub(super) fn loaded(self, (model, places): (Model, Places)) -> Result<Loaded, Diagnostics> {
        let (model, findings) = self.conclude(model)?;
        Ok(Loaded { model, places, findings })
    }
}

/// An error without a place, which the reader adds.
pub(super) fn fault(code: Code, message: impl Into<String>) -> Fault {
    Box::new(Diagnostic::error(code, Place::Nowhere, message))
}
