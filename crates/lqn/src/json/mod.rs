//! The JSON form of a model: an object with `"dyelog-model": 1`, in which elements name each other.
//!
//! Strict: a field that the form does not have is an error, and so is a reference to nothing.

mod calibration;
mod misshapen;
mod positions;
mod read;
mod shape;
mod write;

pub use write::write;

use serde_json::Value;

use crate::builder::Builder;
use crate::findings::Findings;
use crate::json::shape::Document;
use crate::{Loaded, Model, codes};
use dyelog_diagnostic::{Diagnostic, Diagnostics};

/// The version that is read and written.
pub const VERSION: u32 = 1;

/// Reads a model; no reading of this form has warnings, the list is there for the sake of sameness.
///
/// # Errors
/// The first place at which the text is no JSON; else all at which it is of another shape or refers to nothing.
pub fn parse(name: &str, text: &str) -> Result<(Model, Vec<Diagnostic>), Diagnostics> {
    read(name, text).map(|loaded| (loaded.model, loaded.findings))
}

pub(super) fn read(name: &str, text: &str) -> Result<Loaded, Diagnostics> {
    let mut findings = Findings::new(name);
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let document = match serde_json::from_str::<Document>(text) {
        Ok(document) if document.version == VERSION => Some(document),
        Ok(document) => {
            let version = other_version(&findings, &document.version.into());
            findings.push(version);
            None
        }
        Err(error) => {
            // Of another version nothing else can be said.
            let value = serde_json::from_str::<Value>(text).ok();
            let version = value.as_ref().and_then(|value| value.get("dyelog-model")).filter(|&own| *own != VERSION);
            match (version.cloned(), value) {
                (Some(version), _) => {
                    let version = other_version(&findings, &version);
                    findings.push(version);
                    None
                }
                (None, Some(value)) if error.is_data() && value.is_object() => misshapen::salvage(value, &mut findings),
                _ => {
                    let finding = no_json(&findings, &error);
                    findings.push(finding);
                    None
                }
            }
        }
    };
    let mut reader = read::Reader { builder: Builder::new(), paths: Vec::new(), findings };
    if let Some(document) = document {
        reader.document(document);
    }
    let read::Reader { mut builder, paths, mut findings } = reader;
    let found = {
        let told = findings.items();
        let wanted = paths.iter().map(|(_, path)| path.as_str()).chain(told.iter().map(String::as_str));
        let found = positions::positions(text, wanted);
        builder.place_at(paths.iter().filter_map(|(item, path)| Some((item.clone(), *found.get(path.as_str())?))));
        told.iter().filter_map(|path| Some((path.clone(), *found.get(path.as_str())?))).collect()
    };
    findings.locate(&found);
    findings.loaded(builder.finish(name))
}

fn other_version(findings: &Findings, version: &Value) -> Diagnostic {
    let message = format!("this is version {version} of the form; version {VERSION} can be read");
    Diagnostic::error(codes::UNKNOWN_VERSION, findings.item("dyelog-model".to_owned()), message)
}

/// The parser's error.
fn no_json(findings: &Findings, error: &serde_json::Error) -> Diagnostic {
    let place = match u32::try_from(error.line()) {
        Ok(line) if line > 0 => findings.line(line, u32::try_from(error.column()).unwrap_or(0)),
        _ => findings.file(),
    };
    let text = error.to_string();
    let message = text.rfind(" at line ").map_or(text.as_str(), |end| &text[..end]);
    misshapen::with_hint(Diagnostic::error(codes::SYNTAX, place, message))
}
