//! What went wrong, where, why, and what to do about it.
//!
//! Every room reports through [`Diagnostic`]: a stable [`Code`], a message in lower case that completes "failed: …",
//! a [`Place`], notes and hints. Rendering happens in one module and printing only in the binary. `finding` needs nothing
//! but serde and strsim: the build script reads rule files with it.

#![forbid(unsafe_code)]

mod excerpt;
mod finding;
mod json;
pub mod names;
mod render;

pub use finding::{Code, Diagnostic, Diagnostics, Label, Place, Severity, similar};
pub use json::Report;
pub use render::{Renderer, Sources, summary};
