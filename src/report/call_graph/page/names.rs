//! Names of a page, each written once.

use rustc_hash::FxHashMap;

use crate::report::escape::visible;
use crate::report::markup::shortened;

/// A name as it would stand in markup: bounded in length, without control characters.
pub(super) fn plain(name: &str) -> String {
    shortened(name).chars().map(visible).collect()
}

/// Names by number, in the order in which they were first asked for. The first is empty.
#[derive(Debug)]
pub(super) struct Names {
    texts: Vec<String>,
    numbers: FxHashMap<String, usize>,
}

impl Names {
    pub(super) fn new() -> Self {
        Self { texts: vec![String::new()], numbers: FxHashMap::from_iter([(String::new(), 0)]) }
    }

    /// The number of a name.
    pub(super) fn number(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.texts.len();
        self.texts.push(plain(name));
        self.numbers.insert(name.to_owned(), number);
        number
    }

    pub(super) fn into_texts(self) -> Vec<String> {
        self.texts
    }
}
