//! Sweeps as tables, CSV, JSON and plots.

mod forms;
mod picture;

pub use forms::{csv, json, text};
pub use picture::plots;

/// The version of the JSON form.
pub const VERSION: u32 = 1;
