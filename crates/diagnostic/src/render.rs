//! Diagnostics as text for people, with the source lines they point at.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Element, Level, Origin};

use crate::excerpt::{excerpts, floor, line_start};
use crate::{Code, Diagnostic, Place, Severity};

/// Texts that diagnostics point into, by file name.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    texts: BTreeMap<Arc<str>, Arc<str>>,
}

impl Sources {
    /// No texts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the text of a file.
    pub fn insert(&mut self, file: Arc<str>, text: Arc<str>) {
        self.texts.insert(file, text);
    }

    /// The text of a file, where it is kept.
    pub fn text(&self, file: &str) -> Option<&str> {
        self.texts.get(file).map(|text| &**text)
    }

    /// Line and column in characters, both from 1, of a byte of a file whose text is kept.
    pub fn position(&self, file: &str, byte: usize) -> Option<(usize, usize)> {
        let text = self.text(file)?;
        let start = line_start(text, floor(text, byte));
        let line = text[..start].bytes().filter(|byte| *byte == b'\n').count() + 1;
        Some((line, text[start..floor(text, byte)].chars().count() + 1))
    }

    /// The file and bytes of a place in a text that is kept.
    pub(super) fn range(&self, place: &Place) -> Option<(&Arc<str>, &str, Range<usize>)> {
        match place {
            Place::Range { file, start, end } => {
                let (file, text) = self.texts.get_key_value(&**file)?;
                let start = floor(text, *start);
                Some((file, text, start..floor(text, *end).max(start)))
            }
            Place::Line { file, line, column } => {
                let (file, text) = self.texts.get_key_value(&**file)?;
                let start: usize =
                    text.split_inclusive('\n').take((*line as usize).saturating_sub(1)).map(str::len).sum();
                let length = text[start..].lines().next().map_or(0, str::len);
                let skip = (*column as usize).saturating_sub(1).min(length);
                Some((file, text, floor(text, start + skip)..start + length))
            }
            Place::Nowhere | Place::File { .. } | Place::Item { .. } => None,
        }
    }
}

/// Renders diagnostics with the source lines they point at.
#[derive(Clone, Copy, Debug)]
pub struct Renderer {
    /// Whether to use colour.
    pub color: bool,
}

impl Renderer {
    /// The text of one diagnostic, ending in a newline.
    pub fn render(&self, diagnostic: &Diagnostic, sources: &Sources) -> String {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Note => Level::NOTE,
        };
        let title = level.primary_title(clean(&diagnostic.message)).id(diagnostic.code.0);
        let mut elements: Vec<Element> = Vec::new();
        match sources.range(&diagnostic.place) {
            Some(_) => excerpts(diagnostic, sources).into_iter().for_each(|excerpt| excerpt.show(&mut elements)),
            None => elements.extend(unseen(&diagnostic.place).map(Element::from)),
        }
        if sources.range(&diagnostic.place).is_none() && !diagnostic.label.is_empty() {
            elements.push(Level::NOTE.message(clean(&diagnostic.label)).into());
        }
        for label in diagnostic.labels.iter().filter(|label| sources.range(&label.place).is_none()) {
            elements.push(Level::NOTE.message(clean(&format!("{}: {}", words(&label.place), label.text))).into());
        }
        elements.extend(diagnostic.notes.iter().map(|note| Level::NOTE.message(clean(note)).into()));
        elements.extend(diagnostic.hints.iter().map(|hint| Level::HELP.message(clean(hint)).into()));
        let renderer =
            if self.color { annotate_snippets::Renderer::styled() } else { annotate_snippets::Renderer::plain() };
        let mut text = renderer.decor_style(DecorStyle::Ascii).render(&[title.elements(elements)]);
        text.push('\n');
        text
    }

    /// The text of several diagnostics in the order of their places, with a blank line after each, and how many there
    /// are; empty where there are none.
    pub fn render_all(&self, diagnostics: &[Diagnostic], sources: &Sources) -> String {
        let mut text = String::new();
        for diagnostic in in_order(diagnostics) {
            text.push_str(&self.render(diagnostic, sources));
            text.push('\n');
        }
        text.push_str(&summary(diagnostics));
        text
    }
}

/// How many diagnostics of each severity there are, such as `2 errors, 1 warning`, with a newline; empty for none.
pub fn summary(diagnostics: &[Diagnostic]) -> String {
    let counts = [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Note, "note")];
    let parts: Vec<String> = counts
        .into_iter()
        .map(|(severity, word)| (diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count(), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}{}", if count == 1 { "" } else { "s" }))
        .collect();
    if parts.is_empty() { String::new() } else { parts.join(", ") + "\n" }
}

/// By file, then by position, then by code.
pub(super) fn in_order(diagnostics: &[Diagnostic]) -> Vec<&Diagnostic> {
    fn key(diagnostic: &Diagnostic) -> (&str, usize, usize, &str, Code) {
        let code = diagnostic.code;
        match &diagnostic.place {
            Place::Nowhere => ("", 0, 0, "", code),
            Place::File { file } => (file, 0, 0, "", code),
            Place::Line { file, line, column } => (file, *line as usize, *column as usize, "", code),
            Place::Range { file, start, end } => (file, *start, *end, "", code),
            Place::Item { file, item } => (file, 0, 0, item, code),
        }
    }
    let mut ordered: Vec<&Diagnostic> = diagnostics.iter().collect();
    ordered.sort_by(|a, b| key(a).cmp(&key(b)));
    ordered
}

/// Without control characters, which could play tricks with a terminal.
pub(super) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// A place without a text to show.
fn unseen(place: &Place) -> Option<Origin<'static>> {
    match place {
        Place::Nowhere => None,
        Place::Line { file, line, column } if *line > 0 => {
            let origin = Origin::path(clean(file)).line(*line as usize);
            Some(if *column > 0 { origin.char_column(*column as usize) } else { origin })
        }
        _ => Some(Origin::path(clean(&words(place)))),
    }
}

fn words(place: &Place) -> String {
    match place {
        Place::Nowhere => "elsewhere".to_owned(),
        Place::File { file } => file.to_string(),
        Place::Line { file, line, column: 0 } => format!("{file}:{line}"),
        Place::Line { file, line, column } => format!("{file}:{line}:{column}"),
        Place::Range { file, start, .. } => format!("{file} at byte {start}"),
        Place::Item { file, item } => format!("{file}: {item}"),
    }
}
