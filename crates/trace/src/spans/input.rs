//! From bytes to JSON documents: one document, several, or one a line.

mod blocks;

use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use serde::Deserializer;
use serde_json::de::{IoRead, StrRead};
use serde_json::error::Category;

use crate::codes;
use crate::read::{failed, nothing_in};
use crate::spans::builder::Builder;
use crate::spans::parts::{Fault, read_in_order};
use blocks::{Block, Elements, Lines};
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};

/// An input up to this size, in bytes, is read into memory before it is parsed, which is about twice as fast; a larger one
/// is parsed as it comes.
const HELD: u64 = 64 << 20;

/// So much is looked at of an input that can be read in blocks, in bytes: a first line that is longer is not seen to be one.
const LOOKED_AT: u64 = 16 << 20;

/// One document up to this size, in bytes, is no work for several threads.
const SMALL: usize = 1 << 20;

/// What documents mean, and what has to be remembered of them until the last one was read.
pub trait Format: Default {
    /// Whether a document may end without its closing brackets.
    const OPEN_ENDED: bool = false;

    /// The lists whose elements mean the same in several documents as in one, where that is so of documents, too.
    const APART: Option<&'static [&'static str]> = None;

    /// Whether documents mean the same each by itself, so that nothing has to be remembered of them.
    const ALONE: bool = Self::APART.is_some();

    /// Reads one document into the builder.
    fn document<'de, D: Deserializer<'de>>(
        &mut self,
        builder: &mut Builder<'_>,
        deserializer: D,
    ) -> Result<(), D::Error>;

    /// How many records there are that can be used.
    fn usable(&self, builder: &Builder<'_>) -> usize {
        builder.count()
    }

    /// Forgets what it remembers of the spans behind the first so many of the input, which are left out.
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
    let most = if F::APART.is_some() { LOOKED_AT } else { HELD };
    let whole = input.take(most).read_to_end(&mut head).map_err(|error| failed(&file, &error))? < most as usize;
    let bom = if head.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let head = &head[bom..];
    if head.trim_ascii().is_empty() {
        return Err(nothing_in(&file).into());
    }
    if a_document_a_line::<F>(&file, head) {
        let mut rest = head.chain(input);
        if !F::ALONE {
            return lines(builder, BufReader::new(rest), strict);
        }
        let mut lines = Lines::new(&file, &mut rest);
        read_in_order(builder, strict, || lines.next(), lines_of_block::<F>)?;
        return Ok(F::default());
    }
    let in_blocks = !whole || builder.threads > 1 && head.len() > SMALL;
    if let Some(names) = F::APART.filter(|_| in_blocks) {
        let mut rest = head.chain(&mut *input);
        if let Some(elements) = Elements::of(&file, names, head, &mut rest) {
            return elements_apart(builder, elements, strict);
        }
    }
    if whole {
        follow_held(builder, head, At::default(), strict)
    } else {
        follow(builder, from_stream(&mut head.chain(input)), At::default(), strict)
    }
}

/// A parser of what is in memory, if it is text: of strings in it nothing has to be found out then.
fn from_text(bytes: &[u8]) -> Option<serde_json::Deserializer<StrRead<'_>>> {
    std::str::from_utf8(bytes).ok().map(serde_json::Deserializer::from_str)
}

/// A parser of anything else.
fn from_stream(input: &mut dyn Read) -> serde_json::Deserializer<IoRead<BufReader<&mut dyn Read>>> {
    serde_json::Deserializer::from_reader(BufReader::new(input))
}

/// Reads bytes that are one document.
fn one_document<F: Format>(format: &mut F, builder: &mut Builder<'_>, mut bytes: &[u8]) -> serde_json::Result<()> {
    if let Some(mut deserializer) = from_text(bytes) {
        format.document(builder, &mut deserializer)?;
        return deserializer.end();
    }
    let mut deserializer = from_stream(&mut bytes);
    format.document(builder, &mut deserializer)?;
    deserializer.end()
}

/// Reads documents that follow each other in memory.
fn follow_held<F: Format>(builder: &mut Builder<'_>, mut bytes: &[u8], at: At, strict: bool) -> Result<F, Diagnostics> {
    match from_text(bytes) {
        Some(deserializer) => follow(builder, deserializer, at, strict),
        None => follow(builder, from_stream(&mut bytes), at, strict),
    }
}

/// Reads a document block by block as long as its elements lie as the first ones do, and then as a document.
fn elements_apart<F: Format>(
    builder: &mut Builder<'_>,
    mut elements: Elements<'_>,
    strict: bool,
) -> Result<F, Diagnostics> {
    let otherwise = read_in_order(
        builder,
        strict,
        || elements.next(),
        |builder, block: &Block, _| {
            one_document(&mut F::default(), builder, &block.bytes).map_err(|_| Fault::Otherwise)
        },
    )?;
    let (held, rest, at) = elements.rest(otherwise);
    let file = Arc::clone(&builder.file);
    let mut held = held;
    rest.take(HELD).read_to_end(&mut held).map_err(|error| failed(&file, &error))?;
    if held.len() < HELD as usize {
        follow_held(builder, &held, at, strict)
    } else {
        follow(builder, from_stream(&mut held.chain(rest)), at, strict)
    }
}

/// Where a text begins in its file: so many lines and, in its first line, so many bytes behind where the parser counts from.
#[derive(Clone, Copy, Debug, Default)]
struct At {
    line: u32,
    column: i64,
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
    one_document(&mut F::default(), &mut scratch, first).is_ok()
}

fn follow<'de, F: Format, R: serde_json::de::Read<'de>>(
    builder: &mut Builder<'_>,
    mut deserializer: serde_json::Deserializer<R>,
    at: At,
    strict: bool,
) -> Result<F, Diagnostics> {
    let mut format = F::default();
    // What is handed on of a document is used, even where the document is cut off.
    builder.within = true;
    while deserializer.end().is_err() {
        let Err(error) = format.document(builder, &mut deserializer) else {
            builder.hand_on();
            continue;
        };
        if F::OPEN_ENDED && error.classify() == Category::Eof && format.usable(builder) > 0 {
            break;
        }
        let read = builder.report.records;
        builder.ends_early();
        let finding = syntax(&builder.file, &error, at).with_note(format!("{read} spans were read before"));
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
    let mut bytes = Vec::new();
    for number in 0.. {
        bytes.clear();
        if input.read_until(b'\n', &mut bytes).map_err(|error| failed(&builder.file, &error))? == 0 {
            break;
        }
        line(&mut format, builder, &bytes, number, strict)?;
        builder.hand_on();
    }
    Ok(format)
}

fn lines_of_block<F: Format>(builder: &mut Builder<'_>, block: &Block, strict: bool) -> Result<(), Fault> {
    let mut rest = block.bytes.as_slice();
    for number in block.at.line.. {
        if rest.is_empty() {
            break;
        }
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        let (bytes, after) = rest.split_at(end);
        rest = after;
        line(&mut F::default(), builder, bytes, number, strict).map_err(Fault::Fatal)?;
    }
    Ok(())
}

/// Reads a document that is a line, behind so many others.
fn line<F: Format>(
    format: &mut F,
    builder: &mut Builder<'_>,
    bytes: &[u8],
    number: u32,
    strict: bool,
) -> Result<(), Diagnostics> {
    if bytes.trim_ascii().is_empty() {
        return Ok(());
    }
    let before = (builder.spans.spans.len(), builder.spans.links.len());
    if let Err(error) = one_document(format, builder, bytes) {
        builder.truncate(before);
        format.truncate(builder.count());
        let finding = syntax(&builder.file, &error, At { line: number, column: 0 });
        if strict {
            return Err(finding.into());
        }
        builder.report.count("line that is not JSON", || Diagnostic {
            severity: dyelog_diagnostic::Severity::Warning,
            ..finding.with_note("this line was left out")
        });
    }
    Ok(())
}

/// An error of the JSON parser, at its line of a file; the text that it parsed begins where `at` says.
fn syntax(file: &Arc<str>, error: &serde_json::Error, at: At) -> Diagnostic {
    let text = error.to_string();
    // The parser's message ends with its own words for the place.
    let message = text.split(" at line ").next().unwrap_or(&text);
    let line = u32::try_from(error.line()).unwrap_or(u32::MAX).saturating_add(at.line);
    let behind = if error.line() == 1 { at.column } else { 0 };
    let column = i64::try_from(error.column()).unwrap_or(i64::MAX).saturating_add(behind);
    let column = u32::try_from(column).unwrap_or(u32::MAX);
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
