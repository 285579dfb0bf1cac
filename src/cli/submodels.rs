//! Saved sub-models as input.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use dyelog::diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog::lqn::saved;
use dyelog::lqn::submodel::SubModel;

use crate::cli::args::Merge;
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, codes, input};

/// Sub-models of several files as one.
pub struct Given {
    /// Their sum.
    pub submodel: SubModel,
    /// How their entries were told apart.
    pub merge: String,
}

/// A saved sub-model, which may be open already.
pub type Saved = (PathBuf, Option<Box<dyn Read + Send>>);

/// Reads sub-models and merges them.
pub fn load(files: Vec<Saved>, terminal: &mut Terminal) -> Result<Given, Failure> {
    let mut given: Option<Given> = None;
    let mut errors: Vec<Diagnostic> = Vec::new();
    for (file, open) in files {
        let name = input::shown(&file);
        let text = match open {
            Some(open) => input::read_text(&file, open),
            None => input::text(&file),
        };
        let text: Arc<str> = match text {
            Ok(text) => text.into(),
            Err(finding) => {
                errors.push(finding);
                continue;
            }
        };
        if !saved::is_saved(&text) {
            let finding = Diagnostic::error(codes::ARGUMENTS, Place::File { file: name }, "this is no saved sub-model");
            errors.push(finding.with_hint("`dyelog model TRACE --format submodel` makes one"));
            continue;
        }
        terminal.sources.insert(Arc::clone(&name), Arc::clone(&text));
        match (saved::parse(&name, &text), &mut given) {
            (Err(Diagnostics(found)), _) => errors.extend(found),
            (Ok((submodel, merge)), None) => given = Some(Given { submodel, merge }),
            (Ok((_, merge)), Some(own)) if own.merge != merge => {
                errors.push(other_merge(Place::File { file: name }, &merge, &own.merge, "those before"));
            }
            (Ok((submodel, _)), Some(own)) => own.submodel.merge(&submodel),
        }
    }
    match given {
        Some(given) if errors.is_empty() => Ok(given),
        _ => Err(Failure::Input(errors)),
    }
}

/// Refuses sub-models whose entries were told apart otherwise than those of the traces beside them.
pub fn check_merge(given: &Given, of_traces: Merge) -> Result<(), Failure> {
    if given.merge == of_traces.label() {
        return Ok(());
    }
    let place = Place::Nowhere;
    let finding = other_merge(place, &given.merge, of_traces.label(), "those of the traces");
    Err(finding.with_hint(format!("`--merge {}` makes the same of the traces", given.merge)).into())
}

fn other_merge(place: Place, own: &str, other: &str, whose: &str) -> Diagnostic {
    let message = format!("its entries were made with `--merge {own}`, {whose} with `--merge {other}`");
    Diagnostic::error(codes::ARGUMENTS, place, message).with_note("what one way makes one entry the other keeps apart")
}
