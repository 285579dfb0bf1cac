//! The text language `.lqn` of the LQN tool suite.
//!
//! A text is a sequence of sections: definitions of `$variables`, `G` general, `P` processors, `U` groups, `T` tasks, `E`
//! entries, one `A` for each task with activities, and `R` and `C`, which ask for reports and are passed over.

mod activities;
mod cursor;
mod entries;
mod lexer;
mod sections;
mod variables;
mod write;

pub use write::write;

use std::collections::BTreeMap;

use crate::findings::Findings;
use crate::{Loaded, Model};
use dyelog_diagnostic::{Diagnostic, Diagnostics};

/// Reads a model; with it come warnings and notes on what was left out.
///
/// # Errors
/// All that keeps the text from being a model, each with its line and column: one mistake does not hide the next.
pub fn parse(name: &str, text: &str) -> Result<(Model, Vec<Diagnostic>), Diagnostics> {
    read(name, text).map(|loaded| (loaded.model, loaded.findings))
}

pub(super) fn read(name: &str, text: &str) -> Result<Loaded, Diagnostics> {
    let mut findings = Findings::new(name);
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let words = lexer::words(text, &mut findings);
    sections::parse(name, words, findings)
}

/// The variables that a text of definitions defines, as far as it can be read.
pub(super) fn definitions(text: &str) -> BTreeMap<String, f64> {
    let mut findings = Findings::new("");
    let words = lexer::words(text, &mut findings);
    let mut cursor = cursor::Cursor::new(words.tokens, findings);
    while let Some(token) = cursor.advance() {
        if token.kind == lexer::Kind::Variable
            && let Err(error) = variables::definition(&mut cursor, token)
        {
            cursor.recover(*error);
        }
    }
    cursor.variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
