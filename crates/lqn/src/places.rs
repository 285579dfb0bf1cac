//! Where the elements of a model stand in the file that it was read from.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use dyelog_diagnostic::{Diagnostic, Place};

/// Line and column, both from 1.
pub(super) type Position = (u32, u32);

/// Between the words for a part of an element and those for the element.
const PART_OF: &str = " of ";

/// The places of elements, and of parts of them where the reader knows these, by the words with which the lint names
/// them, such as ``task `shop` ``.
#[derive(Clone, Debug, Default)]
pub struct Places {
    file: Option<Arc<str>>,
    items: FxHashMap<String, Position>,
}

impl Places {
    pub(super) fn new(file: &str, items: FxHashMap<String, Position>) -> Self {
        Self { file: Some(file.into()), items }
    }

    /// Where an item stands: itself, else the element that it is a part of, such as ``demand of entry `sell` ``.
    fn find(&self, item: &str) -> Option<Position> {
        let parts = item.match_indices(PART_OF).map(|(at, _)| &item[at + PART_OF.len()..]);
        std::iter::once(item).chain(parts).find_map(|part| self.items.get(part).copied())
    }

    /// Gives findings on elements ([`Place::Item`]) the lines of these elements, and those on the whole model its file. What
    /// is not in the file stays as it is.
    pub fn locate(&self, findings: &mut [Diagnostic]) {
        let Some(file) = &self.file else { return };
        for finding in findings {
            let Place::Item { item, .. } = &finding.place else { continue };
            let file = Arc::clone(file);
            match self.find(item) {
                Some((line, column)) => finding.place = Place::Line { file, line, column },
                None if item == "model" || item.ends_with(" of model") => finding.place = Place::File { file },
                None => finding.place = Place::Item { file, item: item.clone() },
            }
        }
    }
}
