//! The rule files that dyelog ships, as text.
//!
//! They lie at the top of the project, where users read and copy them; this package lets crates include them from there.
//!
//! ```
//! let (name, text) = dyelog_rules::TEMPLATES[0];
//! assert_eq!(name, "tlc.dl");
//! assert!(text.contains("template"));
//! ```

#![forbid(unsafe_code)]

/// Files of templates, by the names under which `use` finds them.
pub const TEMPLATES: [(&str, &str); 12] = [
    ("tlc.dl", include_str!("tlc.dl")),
    ("ext/join.dl", include_str!("ext/join.dl")),
    ("ext/continued.dl", include_str!("ext/continued.dl")),
    ("ext/future.dl", include_str!("ext/future.dl")),
    ("ext/publish.dl", include_str!("ext/publish.dl")),
    ("ext/streaming.dl", include_str!("ext/streaming.dl")),
    ("ext/retry.dl", include_str!("ext/retry.dl")),
    ("ext/breaker.dl", include_str!("ext/breaker.dl")),
    ("ext/batch.dl", include_str!("ext/batch.dl")),
    ("ext/barrier.dl", include_str!("ext/barrier.dl")),
    ("ext/multicast.dl", include_str!("ext/multicast.dl")),
    ("paper/tlc-1998.dl", include_str!("paper/tlc-1998.dl")),
];

/// The names of the files of templates that are loaded by default.
pub const DEFAULT: [&str; 4] = ["rules/tlc.dl", "rules/ext/join.dl", "rules/ext/continued.dl", "rules/ext/future.dl"];

/// The standard library of relations for queries, by the names under which `use` finds its files.
pub const STANDARD: [(&str, &str); 7] = [
    ("std/tree.dl", include_str!("std/tree.dl")),
    ("std/intervals.dl", include_str!("std/intervals.dl")),
    ("std/critical_path.dl", include_str!("std/critical_path.dl")),
    ("std/dominators.dl", include_str!("std/dominators.dl")),
    ("std/concurrency.dl", include_str!("std/concurrency.dl")),
    ("std/retries.dl", include_str!("std/retries.dl")),
    ("std/n_plus_one.dl", include_str!("std/n_plus_one.dl")),
];

/// The templates on events that find interactions among messages without a dye.
pub const SAME: &str = include_str!("same.dl");
