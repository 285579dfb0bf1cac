//! The standard library of relations for queries, which `use "std/…"` brings in.

use std::sync::Arc;

/// The files, by the names under which `use` finds them.
pub const FILES: [(&str, &str); 7] = [
    ("std/tree.dl", include_str!("../../rules/std/tree.dl")),
    ("std/intervals.dl", include_str!("../../rules/std/intervals.dl")),
    ("std/critical_path.dl", include_str!("../../rules/std/critical_path.dl")),
    ("std/dominators.dl", include_str!("../../rules/std/dominators.dl")),
    ("std/concurrency.dl", include_str!("../../rules/std/concurrency.dl")),
    ("std/retries.dl", include_str!("../../rules/std/retries.dl")),
    ("std/n_plus_one.dl", include_str!("../../rules/std/n_plus_one.dl")),
];

/// The text of a file of the library; `rules/std/tree.dl` and `std/tree.dl` are the same.
pub fn text(name: &str) -> Option<Arc<str>> {
    let name = name.strip_prefix("rules/").unwrap_or(name);
    FILES.iter().find(|(file, _)| *file == name).map(|(_, text)| Arc::from(*text))
}
