//! Interned strings: equal strings share one small number.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// An interned string of one [`Names`] table. Number 0 is always the empty string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub u32);

impl Name {
    /// The empty string, which stands for "not given".
    pub const NONE: Self = Self(0);

    /// Whether it stands for something.
    pub fn is_some(self) -> bool {
        self.0 != 0
    }

    /// The position in the table.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A table of interned strings. Numbers depend on the order of arrival, so they must never decide what is shown.
#[derive(Clone, Debug)]
pub struct Names {
    strings: Vec<Arc<str>>,
    numbers: FxHashMap<Arc<str>, u32>,
}

impl Default for Names {
    fn default() -> Self {
        let mut names = Self { strings: Vec::new(), numbers: FxHashMap::default() };
        names.intern("");
        names
    }
}

/// Whether a character is a control character that a terminal acts on, as on an escape sequence. Senders of traces choose names.
fn is_control(character: char) -> bool {
    character.is_control() && !matches!(character, '\n' | '\r' | '\t')
}

impl Names {
    /// A table with nothing but the empty string.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of `text`, given now if it has none yet.
    ///
    /// Control characters but tabs and ends of lines become U+FFFD.
    ///
    /// # Panics
    /// When there are more than 2^32 distinct strings.
    pub fn intern(&mut self, text: &str) -> Name {
        if let Some(&number) = self.numbers.get(text) {
            return Name(number);
        }
        if text.contains(is_control) {
            return self.intern(&text.replace(is_control, "\u{fffd}"));
        }
        let number = u32::try_from(self.strings.len()).expect("fewer than 2^32 distinct names fit in memory");
        let text: Arc<str> = text.into();
        self.strings.push(Arc::clone(&text));
        self.numbers.insert(text, number);
        Name(number)
    }

    /// The number of `text`, if it has one.
    pub fn get(&self, text: &str) -> Option<Name> {
        self.numbers.get(text).copied().map(Name)
    }

    /// The string behind a number.
    pub fn text(&self, name: Name) -> &str {
        &self.strings[name.index()]
    }

    /// The string behind a number, shared.
    pub fn shared(&self, name: Name) -> Arc<str> {
        Arc::clone(&self.strings[name.index()])
    }

    /// All strings, in the order of their numbers.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.strings.iter().map(AsRef::as_ref)
    }

    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.strings.len()
    }

    /// Never: the empty string is always there.
    pub fn is_empty(&self) -> bool {
        self.strings.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn no_name_steers_a_terminal() {
        let mut names = Names::default();
        let name = names.intern("web\u{1b}[2J\u{7}\n\tx\u{9b}");
        assert_eq!(names.text(name), "web\u{fffd}[2J\u{fffd}\n\tx\u{fffd}");
        assert_eq!(names.intern("web\u{1b}[2J\u{7}\n\tx\u{9b}"), name);
        assert_eq!(names.intern(names.text(name).to_owned().as_str()), name);
    }
}
