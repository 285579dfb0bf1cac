//! Diagnostics as text for people.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Place};

/// Texts that diagnostics point into, by file name.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    texts: BTreeMap<Arc<str>, Arc<str>>,
}

impl Sources {
    /// No texts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the text of a file.
    pub fn insert(&mut self, file: Arc<str>, text: Arc<str>) {
        self.texts.insert(file, text);
    }

    /// The text of a file, where it is kept.
    pub fn text(&self, file: &str) -> Option<&str> {
        self.texts.get(file).map(|text| &**text)
    }
}

/// Renders diagnostics with the source lines they point at.
#[derive(Clone, Copy, Debug)]
pub struct Renderer {
    /// Whether to use colour.
    pub color: bool,
}

impl Renderer {
    /// The text of one diagnostic, ending in a newline.
    pub fn render(&self, diagnostic: &Diagnostic, _sources: &Sources) -> String {
        let mut text = format!("{}[{}]: {}\n", diagnostic.severity, diagnostic.code, diagnostic.message);
        match &diagnostic.place {
            Place::Nowhere => {}
            Place::File { file } => text.push_str(&format!(" --> {file}\n")),
            Place::Line { file, line, column: 0 } => text.push_str(&format!(" --> {file}:{line}\n")),
            Place::Line { file, line, column } => text.push_str(&format!(" --> {file}:{line}:{column}\n")),
            Place::Range { file, start, .. } => text.push_str(&format!(" --> {file} at byte {start}\n")),
            Place::Item { file, item } => text.push_str(&format!(" --> {file}: {item}\n")),
        }
        text
    }
}
