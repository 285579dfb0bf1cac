//! The standard library of relations for queries, which `use "std/…"` brings in.

use std::sync::Arc;

use crate::datalog::syntax::{self, Loaded};
use crate::tlc::rules::shipped_text;

/// The files, by the names under which `use` finds them.
pub use dyelog_rules::STANDARD as FILES;

/// The text of a file of the library; `rules/std/tree.dl` and `std/tree.dl` are the same.
pub fn text(name: &str) -> Option<Arc<str>> {
    let name = name.strip_prefix("rules/").unwrap_or(name);
    FILES.iter().find(|(file, _)| *file == name).map(|(_, text)| Arc::from(*text))
}

/// The text of a file that a question uses: of this library, of the shipped rules, or of what lies beside it.
pub fn resolve(used: &str, beside: &dyn Fn(&str) -> Option<Arc<str>>) -> Option<Arc<str>> {
    text(used).or_else(|| shipped_text(used)).or_else(|| beside(used))
}

/// Reads a question with all that it uses.
pub fn load(name: &Arc<str>, text: &Arc<str>, beside: &dyn Fn(&str) -> Option<Arc<str>>) -> Loaded {
    syntax::read_beside(name, text, &|used| resolve(used, beside), &FILES.map(|(name, _)| name))
}
