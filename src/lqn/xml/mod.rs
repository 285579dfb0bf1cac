//! The XML language `.lqnx` of the LQN tool suite.
//!
//! Processors hold tasks, tasks hold entries and activities. Results, which the suite writes into the same tree, are
//! passed over and counted.

mod activities;
mod attributes;
mod read;
mod tree;
mod write;

pub use write::write;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lqn::Model;
use crate::lqn::findings::Findings;

/// Reads a model; with it come warnings and notes on what was left out.
///
/// # Errors
/// All that keeps the document from being a model, each with the line and column of its element. Where the document is
/// no well-formed XML, the first place at which it is not.
pub fn parse(name: &str, text: &str) -> Result<(Model, Vec<Diagnostic>), Diagnostics> {
    let mut findings = Findings::new(name);
    match tree::parse(text, &findings) {
        Ok(tree) => read::model(&tree, findings),
        Err(error) => {
            findings.push(*error);
            findings.conclude(Model::default())
        }
    }
}
