//! The JSON form of a model: an object with `"dyelog-model": 1`, in which elements name each other.
//!
//! Strict: a field that the form does not have is an error, and so is a reference to nothing.

mod read;
mod shape;
mod write;

pub use write::write;

use serde_json::Value;

use crate::diagnostic::{Diagnostic, Diagnostics, similar};
use crate::lqn::builder::Builder;
use crate::lqn::findings::Findings;
use crate::lqn::{Model, codes};

/// The version that is read and written.
pub const VERSION: u32 = 1;

/// Reads a model; no reading of this form has warnings, the list is there for the sake of sameness.
///
/// # Errors
/// The first place at which the text is no JSON of that shape, or all references to nothing, each with its path.
pub fn parse(name: &str, text: &str) -> Result<(Model, Vec<Diagnostic>), Diagnostics> {
    let mut findings = Findings::new(name);
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match serde_json::from_str::<shape::Document>(text) {
        Ok(document) if document.version == VERSION => {
            let mut reader = read::Reader { builder: Builder::new(), findings };
            reader.document(document);
            reader.findings.conclude(reader.builder.finish())
        }
        Ok(document) => {
            let version = other_version(&findings, &document.version.into());
            findings.push(version);
            findings.conclude(Model::default())
        }
        Err(error) => {
            // Of another version nothing else can be said.
            let version = serde_json::from_str::<Value>(text).ok().and_then(|value| {
                let version = value.get("dyelog-model")?.clone();
                (version != VERSION).then_some(version)
            });
            let finding = match version {
                Some(version) => other_version(&findings, &version),
                None => misshapen(&findings, &error),
            };
            findings.push(finding);
            findings.conclude(Model::default())
        }
    }
}

fn other_version(findings: &Findings, version: &Value) -> Diagnostic {
    let message = format!("this is version {version} of the form; version {VERSION} can be read");
    Diagnostic::error(codes::UNKNOWN_VERSION, findings.item("dyelog-model".to_owned()), message)
}

/// The parser's error, with a hint where a field or word is nearly right.
fn misshapen(findings: &Findings, error: &serde_json::Error) -> Diagnostic {
    let place = match u32::try_from(error.line()) {
        Ok(line) if line > 0 => findings.line(line, u32::try_from(error.column()).unwrap_or(0)),
        _ => findings.file(),
    };
    let text = error.to_string();
    let message = text.rfind(" at line ").map_or(text.as_str(), |end| &text[..end]);
    let diagnostic = Diagnostic::error(codes::SYNTAX, place, message);
    // "unknown field `a`, expected one of `b`, `c`" and its like: words in odd positions stand in quotes.
    let mut words = message.split('`').skip(1).step_by(2);
    match words.next() {
        Some(written) if message.starts_with("unknown ") => {
            let known: Vec<&str> = words.collect();
            match similar(written, known) {
                Some(near) => diagnostic.with_hint(format!("did you mean `{near}`?")),
                None => diagnostic,
            }
        }
        _ => diagnostic,
    }
}
