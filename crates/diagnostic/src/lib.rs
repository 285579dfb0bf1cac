//! What went wrong, where, why, and what to do about it.
//!
//! Libraries report through [`Diagnostic`]: a stable [`Code`], a message in lower case that completes "failed: …",
//! a [`Place`], notes and hints. [`Renderer`] draws them as text, [`Report`] as JSON; printing is the
//! program's. [`quantity`] writes numbers as people read them, [`names`] has tables of interned strings.
//!
//! # Example
//!
//! ```
//! use dyelog_diagnostic::{Code, Diagnostic, Place, Renderer, Sources};
//!
//! const UNKNOWN_TASK: Code = Code("X001");
//!
//! let (file, text) = ("shop.toml", "users = 40\ncalls = \"servr\"\n");
//! let at = text.find("servr").expect("it is written there");
//! let place = Place::Range { file: file.into(), start: at, end: at + 5 };
//! let finding = Diagnostic::error(UNKNOWN_TASK, place, "there is no task `servr`")
//!     .with_note("calls name tasks of the model")
//!     .with_similar("servr", ["client", "server"]);
//!
//! let mut sources = Sources::new();
//! sources.insert(file.into(), text.into());
//! let shown = Renderer { color: false }.render(&finding, &sources);
//! assert!(shown.starts_with("error[X001]: there is no task `servr`"));
//! assert!(shown.contains("shop.toml:2:10"));
//! assert!(shown.contains("server"));
//! ```

#![forbid(unsafe_code)]

mod excerpt;
mod finding;
mod json;
pub mod names;
pub mod quantity;
mod render;

pub use finding::{Code, Diagnostic, Diagnostics, Label, Place, Severity, similar};
pub use json::Report;
pub use render::{Renderer, Sources, summary};
