//! Findings in the words of the protocol.

use std::cell::OnceCell;
use std::ops::Range;

use dyelog::authoring::language::Read;
use dyelog::diagnostic::{Diagnostic, Place, Severity};
use lsp_types::{
    Diagnostic as Shown, DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString, Range as Between,
};

use super::documents::{Document, Documents, uri_of};

/// Findings that are shown of one document.
const SHOWN: usize = 500;

/// What an editor shows of the findings of a document. What lies in a file that it uses is shown where that file is used.
pub fn shown(documents: &Documents, document: &Document, findings: &[Diagnostic]) -> Vec<Shown> {
    // Mostly nothing lies elsewhere, and the file need not be read once more.
    let read: OnceCell<Read> = OnceCell::new();
    let way = |file: &str| read.get_or_init(|| documents.read(document)).way_to(file);
    let mut all: Vec<Shown> =
        findings.iter().take(SHOWN).map(|finding| one(documents, document, &way, finding)).collect();
    if findings.len() > SHOWN {
        let message = format!("and {} more findings; `dyelog rules check` lists them", findings.len() - SHOWN);
        all.push(Shown { message, severity: Some(DiagnosticSeverity::WARNING), ..Shown::default() });
    }
    all
}

fn one(
    documents: &Documents,
    document: &Document,
    way: &dyn Fn(&str) -> Option<Range<usize>>,
    finding: &Diagnostic,
) -> Shown {
    let here = between(document, &finding.place);
    let mut message = finding.message.clone();
    let mut related = Vec::new();
    let range = here.unwrap_or_else(|| {
        let file = finding.place.file();
        if let Some(file) = file {
            message = format!("in `{file}`: {message}");
        }
        related.extend(elsewhere(documents, document, &finding.place, &finding.message));
        let used = file.and_then(|file| way(file)).unwrap_or(0..0);
        document.lines.between(&document.text, used)
    });
    if !finding.label.is_empty() {
        message.push_str(&format!("\n{}", finding.label));
    }
    finding.notes.iter().for_each(|note| message.push_str(&format!("\nnote: {note}")));
    finding.hints.iter().for_each(|hint| message.push_str(&format!("\nhelp: {hint}")));
    for label in &finding.labels {
        related.extend(match between(document, &label.place) {
            Some(range) => Some(DiagnosticRelatedInformation {
                location: Location { uri: document.uri.clone(), range },
                message: label.text.clone(),
            }),
            None => elsewhere(documents, document, &label.place, &label.text),
        });
    }
    Shown {
        range,
        severity: Some(match finding.severity {
            Severity::Error => DiagnosticSeverity::ERROR,
            Severity::Warning => DiagnosticSeverity::WARNING,
            Severity::Note => DiagnosticSeverity::INFORMATION,
        }),
        code: Some(NumberOrString::String(finding.code.to_string())),
        source: Some("dyelog".to_owned()),
        message,
        related_information: (!related.is_empty()).then_some(related),
        ..Shown::default()
    }
}

/// The positions of a place in the document; `None` where it lies in another file.
fn between(document: &Document, place: &Place) -> Option<Between> {
    match place {
        Place::Range { file, start, end } if *file == document.name => {
            Some(document.lines.between(&document.text, *start..*end))
        }
        Place::Nowhere => Some(Between::default()),
        other => other.file().filter(|file| **file == document.name).map(|_| Between::default()),
    }
}

/// A place in a file that the document uses.
fn elsewhere(
    documents: &Documents,
    document: &Document,
    place: &Place,
    words: &str,
) -> Option<DiagnosticRelatedInformation> {
    let Place::Range { file, start, end } = place else { return None };
    let path = Documents::path_beside(document, file)?;
    let uri = uri_of(&path)?;
    let range = documents.range_in(&path, *start..*end)?;
    Some(DiagnosticRelatedInformation { location: Location { uri, range }, message: words.to_owned() })
}
