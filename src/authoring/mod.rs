//! Rule files as their authors work on them: checked, with the cases that stand in them, and asked about by editors.
//!
//! - [`check`](check()) finds what is wrong with rule files, of templates and of questions: what the command line and editors show.
//! - [`cases`] are traces in comments, which a template takes or must not take.
//! - [`language`] answers editors: what a name means, where it stands, what may come next.

pub mod cases;
mod check;
pub mod codes;
pub mod language;

pub use check::{Checked, Sort, check, has_event_templates};
