//! From bytes to JSON documents: one document, several, or one a line.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use serde::Deserializer;
use serde_json::error::Category;

use crate::codes;
use crate::read::{failed, nothing_in};
use crate::spans::builder::Builder;
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};

/// An input up to this size, in bytes, is read into memory before it is parsed, which is about twice as fast; a larger one
/// is parsed as it comes.
const HELD: u64 = 64 << 20;

/// What documents mean, and what has to be remembered of them until the last one was read.
pub trait Format: Default {
    /// Whether a document may end without its closing brackets.
    const OPEN_ENDED: bool = false;

    /// Reads one document into the builder.
    fn document<'de, D: Deserializer<'de>>(
        &mut self,
        builder: &mut Builder<'_>,
        deserializer: D,
    ) -> Result<(), D::Error>;

    /// How many records there are that can be used.
    fn usable(&self, builder: &Builder<'_>) -> usize {
        builder.spans.spans.len()
    }

    /// Forgets what it remembers of the spans behind the first so many, which are left out.
    fn truncate(&mut self, _spans: usize) {}
}

/// Reads all documents of an input.
///
/// Where the first line is a whole document and more lines follow, each line is one, and a line that cannot be parsed is
/// counted and left out. Otherwise documents follow each other, and one that cannot be parsed ends the reading. Of a document that
/// is cut off, the spans before its end are used, and the loss is counted. Gives what is remembered of all documents.
pub fn documents<F: Format>(builder: &mut Builder<'_>, input: &mut dyn Read, strict: bool) -> Result<F, Diagnostics> {
    let mut head = Vec::new();
    let file = Arc::clone(&builder.file);
    let whole = input.take(HELD).read_to_end(&mut head).map_err(|error| failed(&file, &error))? < HELD as usize;
    let bom = if head.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let head = &head[bom..];
    if head.trim_ascii().is_empty() {
        return Err(nothing_in(&file).into());
    }
    if a_document_a_line::<F>(&file, head) {
        let rest = head.chain(input);
        return lines(builder, BufReader::new(rest), strict);
    }
    if whole {
        follow(builder, serde_json::Deserializer::from_slice(head), strict)
    } else {
        let input = BufReader::new(head.chain(input));
        follow(builder, serde_json::Deserializer::from_reader(input), strict)
    }
}

/// Whether the first line of the head is a document and there is another line.
fn a_document_a_line<F: Format>(file: &str, head: &[u8]) -> bool {
    let head = head.trim_ascii_start();
    let Some(end) = memchr::memchr(b'\n', head) else { return false };
    let first = head[..end].trim_ascii_end();
    if head[end..].trim_ascii_start().is_empty() || !matches!(first.last(), Some(b'}' | b']')) {
        return false;
    }
    let mut names = dyelog_diagnostic::names::Names::new();
    let mut scratch = Builder::new(file, &mut names);
    let mut deserializer = serde_json::Deserializer::from_slice(first);
    F::default().document(&mut scratch, &mut deserializer).is_ok() && deserializer.end().is_ok()
}

fn follow<'de, F: Format, R: serde_json::de::Read<'de>>(
    builder: &mut Builder<'_>,
    mut deserializer: serde_json::Deserializer<R>,
    strict: bool,
) -> Result<F, Diagnostics> {
    let mut format = F::default();
    while deserializer.end().is_err() {
        let Err(error) = format.document(builder, &mut deserializer) else { continue };
        if F::OPEN_ENDED && error.classify() == Category::Eof && format.usable(builder) > 0 {
            break;
        }
        let read = builder.report.records;
        builder.ends_early();
        let finding = syntax(&builder.file, &error, 0).with_note(format!("{read} spans were read before"));
        let used = format.usable(builder);
        if strict || error.classify() != Category::Eof || used == 0 {
            return Err(finding.into());
        }
        let severity = dyelog_diagnostic::Severity::Warning;
        builder.report.count("document that ends too early", || Diagnostic {
            severity,
            ..finding.with_note(format!("{used} of them are used; what came after is lost"))
        });
        break;
    }
    Ok(format)
}

fn lines<F: Format>(builder: &mut Builder<'_>, mut input: impl BufRead, strict: bool) -> Result<F, Diagnostics> {
    let mut format = F::default();
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        number += 1;
        let length = input.read_until(b'\n', &mut line).map_err(|error: io::Error| failed(&builder.file, &error))?;
        if length == 0 {
            return Ok(format);
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let before = (builder.spans.spans.len(), builder.spans.links.len());
        let mut deserializer = serde_json::Deserializer::from_slice(&line);
        let read = format.document(builder, &mut deserializer).and_then(|()| deserializer.end());
        if let Err(error) = read {
            builder.truncate(before);
            format.truncate(before.0);
            let finding = syntax(&builder.file, &error, number - 1);
            if strict {
                return Err(finding.into());
            }
            builder.report.count("line that is not JSON", || Diagnostic {
                severity: dyelog_diagnostic::Severity::Warning,
                ..finding.with_note("this line was left out")
            });
        }
    }
}

/// An error of the JSON parser, at its line; `before` lines come before those that the parser counted.
fn syntax(file: &Arc<str>, error: &serde_json::Error, before: u32) -> Diagnostic {
    let text = error.to_string();
    // The parser's message ends with its own words for the place.
    let message = text.split(" at line ").next().unwrap_or(&text);
    let line = u32::try_from(error.line()).unwrap_or(u32::MAX).saturating_add(before);
    let column = u32::try_from(error.column()).unwrap_or(u32::MAX);
    let place = Place::Line { file: Arc::clone(file), line, column };
    match error.classify() {
        Category::Eof => Diagnostic::error(codes::BAD_JSON, place, "the JSON ends too early").with_hint(
            "is the file complete? A line of a file with a document a line can be cut off without harm to the others",
        ),
        Category::Io => {
            Diagnostic::error(codes::UNREADABLE, place, format!("the input cannot be read further: {message}"))
        }
        _ => Diagnostic::error(codes::BAD_JSON, place, format!("this is not JSON: {message}")),
    }
}
