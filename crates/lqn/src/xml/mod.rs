//! The XML language `.lqnx` of the LQN tool suite.
//!
//! Processors hold tasks, tasks hold entries and activities. Results, which the suite writes into the same tree (`.lqxo`),
//! are passed over and counted where only the model is wanted.

mod activities;
mod attributes;
mod read;
mod results;
mod tree;
mod write;

pub use write::{write, write_solved};

use crate::findings::Findings;
use crate::results::Results;
use crate::xml::tree::Keep;
use crate::{Loaded, Model, Places};
use dyelog_diagnostic::{Diagnostic, Diagnostics};

/// Reads a model; with it come warnings and notes on what was left out.
///
/// # Errors
/// All that keeps the document from being a model, each with the line and column of its element. Where the document is
/// no well-formed XML, the first place at which it is not.
pub fn parse(name: &str, text: &str) -> Result<(Model, Vec<Diagnostic>), Diagnostics> {
    read(name, text).map(|loaded| (loaded.model, loaded.findings))
}

pub(super) fn read(name: &str, text: &str) -> Result<Loaded, Diagnostics> {
    let mut findings = Findings::new(name);
    match tree::parse(text, Keep::Model, &findings) {
        Ok(tree) => read::model(name, &tree, findings),
        Err(error) => {
            findings.push(*error);
            findings.loaded((Model::default(), Places::default()))
        }
    }
}

/// A model with its results, where the document has any, and what there is to say about them.
pub type Solved = (Model, Option<Results>, Vec<Diagnostic>);

/// Reads a model and the results in it, as solvers of the tool suite write them; `None` where there are none. What the
/// document does not tell is zero.
///
/// # Errors
/// As of [`parse`].
pub fn parse_solved(name: &str, text: &str) -> Result<Solved, Diagnostics> {
    let mut findings = Findings::new(name);
    match tree::parse(text, Keep::ModelAndResults, &findings) {
        Ok(tree) => {
            let Loaded { model, findings: mut told, .. } = read::model(name, &tree, findings)?;
            let mut findings = Findings::new(name);
            let results = results::read(&tree, &model, &mut findings);
            let ((), more) = findings.conclude(())?;
            told.extend(more);
            Ok((model, results, told))
        }
        Err(error) => {
            findings.push(*error);
            findings.conclude((Model::default(), None)).map(|((model, results), told)| (model, results, told))
        }
    }
}
