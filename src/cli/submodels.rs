//! Saved sub-models as input.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use dyelog::diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog::lqn::saved;
use dyelog::lqn::submodel::SubModel;

use crate::cli::terminal::Terminal;
use crate::cli::{Failure, codes, input};

/// Sub-models of several files as one.
pub struct Given {
    /// Their sum.
    pub submodel: SubModel,
    /// How their entries were told apart.
    pub merge: String,
}

/// Reads sub-models, the first of which may be open already, and merges them.
pub fn load(
    files: &[PathBuf],
    mut first: Option<Box<dyn Read + Send>>,
    terminal: &mut Terminal,
) -> Result<Given, Failure> {
    let mut given: Option<Given> = None;
    let mut errors: Vec<Diagnostic> = Vec::new();
    for file in files {
        let name = input::shown(file);
        let text = match first.take() {
            Some(open) => input::read_text(file, open),
            None => input::text(file),
        };
        let text: Arc<str> = match text {
            Ok(text) => text.into(),
            Err(finding) => {
                errors.push(finding);
                continue;
            }
        };
        if !saved::is_saved(&text) {
            let message = "this is no saved sub-model";
            errors.push(
                Diagnostic::error(codes::ARGUMENTS, Place::File { file: name }, message)
                    .with_hint("`dyelog model TRACE --format submodel` makes one"),
            );
            continue;
        }
        terminal.sources.insert(Arc::clone(&name), Arc::clone(&text));
        match (saved::parse(&name, &text), &mut given) {
            (Err(Diagnostics(found)), _) => errors.extend(found),
            (Ok((submodel, merge)), None) => given = Some(Given { submodel, merge }),
            (Ok((_, merge)), Some(own)) if own.merge != merge => {
                let message =
                    format!("its entries were made with `--merge {merge}`, those before with `--merge {}`", own.merge);
                errors.push(
                    Diagnostic::error(codes::ARGUMENTS, Place::File { file: name }, message)
                        .with_note("what one way makes one entry the other keeps apart"),
                );
            }
            (Ok((submodel, _)), Some(own)) => own.submodel.merge(&submodel),
        }
    }
    match given {
        Some(given) if errors.is_empty() => Ok(given),
        _ => Err(Failure::Input(errors)),
    }
}
