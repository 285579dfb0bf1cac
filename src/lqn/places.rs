//! Where the elements of a model stand in the file that it was read from.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::diagnostic::{Diagnostic, Place};

/// Line and column, both from 1.
pub(super) type Position = (u32, u32);

/// The places of elements, by the words with which the lint names them, such as ``task `shop` ``.
#[derive(Clone, Debug, Default)]
pub struct Places {
    file: Option<Arc<str>>,
    items: FxHashMap<String, Position>,
}

impl Places {
    pub(super) fn new(file: &str, items: FxHashMap<String, Position>) -> Self {
        Self { file: Some(file.into()), items }
    }

    /// Gives findings on elements ([`Place::Item`]) the lines of these elements, and those on the whole model its file. What
    /// is not in the file stays as it is.
    pub fn locate(&self, findings: &mut [Diagnostic]) {
        let Some(file) = &self.file else { return };
        for finding in findings {
            let Place::Item { item, .. } = &finding.place else { continue };
            let file = Arc::clone(file);
            match self.items.get(item) {
                Some(&(line, column)) => finding.place = Place::Line { file, line, column },
                None if item == "model" => finding.place = Place::File { file },
                None => finding.place = Place::Item { file, item: item.clone() },
            }
        }
    }
}
