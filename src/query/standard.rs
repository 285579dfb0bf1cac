//! The standard library of relations for queries, which `use "std/…"` brings in.

use std::sync::Arc;

/// The files, by the names under which `use` finds them.
pub use dyelog_rules::STANDARD as FILES;

/// The text of a file of the library; `rules/std/tree.dl` and `std/tree.dl` are the same.
pub fn text(name: &str) -> Option<Arc<str>> {
    let name = name.strip_prefix("rules/").unwrap_or(name);
    FILES.iter().find(|(file, _)| *file == name).map(|(_, text)| Arc::from(*text))
}
