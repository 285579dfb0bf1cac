//! The lines around the places of a diagnostic, cut out of texts that may be large or have lines without end.

use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Element, Origin, Snippet};

use crate::Diagnostic;
use crate::render::{Sources, clean};

/// Bytes of a line that are shown around a mark; a longer line is cut.
const LINE_WINDOW: usize = 240;
/// Lines that the marks of one excerpt may lie apart.
const EXCERPT_LINES: usize = 30;
/// Lines that one mark may cover; of a longer one the first line is marked.
const MARK_LINES: usize = 6;

/// A part of a text, with what to mark in it.
pub(super) struct Excerpt<'s> {
    file: &'s Arc<str>,
    text: &'s str,
    /// Bytes of the text, words, and whether it is the main place. The first one names the excerpt.
    marks: Vec<(Range<usize>, &'s str, bool)>,
}

/// The excerpts of a diagnostic's main place and of its labels, those that lie near together in one.
pub(super) fn excerpts<'s>(diagnostic: &'s Diagnostic, sources: &'s Sources) -> Vec<Excerpt<'s>> {
    let main = std::iter::once((&diagnostic.place, diagnostic.label.as_str(), true));
    let labels = diagnostic.labels.iter().map(|label| (&label.place, label.text.as_str(), false));
    let mut excerpts: Vec<Excerpt> = Vec::new();
    for (place, words, is_main) in main.chain(labels) {
        let Some((file, text, range)) = sources.range(place) else { continue };
        let range = short(text, range);
        let near = excerpts.iter_mut().find(|excerpt| excerpt.file == file && excerpt.near(&range));
        match near {
            Some(excerpt) => excerpt.marks.push((range, words, is_main)),
            None => excerpts.push(Excerpt { file, text, marks: vec![(range, words, is_main)] }),
        }
    }
    excerpts
}

/// Of a range over many lines its part on the first one.
fn short(text: &str, range: Range<usize>) -> Range<usize> {
    let lines = text[range.clone()].bytes().filter(|byte| *byte == b'\n').take(MARK_LINES).count();
    if lines < MARK_LINES { range } else { range.start..range.start + first_line(&text[range.start..]) }
}

fn first_line(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len())
}

/// The greatest boundary of a character up to `byte`.
pub(super) fn floor(text: &str, byte: usize) -> usize {
    (0..=byte.min(text.len())).rev().find(|byte| text.is_char_boundary(*byte)).unwrap_or(0)
}

/// Where the line of a byte begins.
pub(super) fn line_start(text: &str, byte: usize) -> usize {
    text[..byte].rfind('\n').map_or(0, |end| end + 1)
}

impl<'s> Excerpt<'s> {
    fn near(&self, range: &Range<usize>) -> bool {
        let start = self.marks.iter().map(|(mark, ..)| mark.start).fold(range.start, usize::min);
        let end = self.marks.iter().map(|(mark, ..)| mark.end).fold(range.end, usize::max);
        self.text[start..end].bytes().filter(|byte| *byte == b'\n').take(EXCERPT_LINES + 1).count() <= EXCERPT_LINES
    }

    /// The lines that are marked, each cut to what a person can read, and the marks within.
    pub(super) fn show(self, elements: &mut Vec<Element<'s>>) {
        let from = self.marks.iter().map(|(mark, ..)| line_start(self.text, mark.start)).min().unwrap_or(0);
        let to = self.marks.iter().map(|(mark, ..)| mark.end + first_line(&self.text[mark.end..])).max().unwrap_or(0);
        let mut shown = String::new();
        let mut marks: Vec<Range<usize>> = vec![0..0; self.marks.len()];
        let (mut line, mut cut) = (from, false);
        while line <= to {
            let end = line + first_line(&self.text[line..]);
            let kept = self.kept(line..end);
            cut |= kept.start > line;
            shown.push_str(if kept.start > line { "…" } else { "" });
            for (shift, (mark, ..)) in marks.iter_mut().zip(&self.marks) {
                // A mark begins and ends where it does, or at the nearest byte that is shown.
                let place = |byte: usize| shown.len() + byte.clamp(kept.start, kept.end) - kept.start;
                if (line..=end).contains(&mark.start) {
                    shift.start = place(mark.start);
                }
                if (line..=end).contains(&mark.end) {
                    shift.end = place(mark.end);
                }
            }
            shown.push_str(&self.text[kept.clone()]);
            shown.push_str(if kept.end < end { "…" } else { "" });
            shown.push('\n');
            line = end + 1;
        }
        let number = |byte: usize| self.text[..byte].bytes().filter(|byte| *byte == b'\n').count() + 1;
        let mut snippet = Snippet::source(shown).line_start(number(from));
        if cut {
            // The excerpt's columns are not those of the text: say where it is from.
            let (main, ..) = &self.marks[0];
            let column = self.text[line_start(self.text, main.start)..main.start].chars().count() + 1;
            elements.push(Origin::path(clean(self.file)).line(number(main.start)).char_column(column).into());
        } else {
            snippet = snippet.path(clean(self.file));
        }
        for (range, (_, words, main)) in marks.into_iter().zip(&self.marks) {
            let kind = if *main { AnnotationKind::Primary } else { AnnotationKind::Context };
            let words = if words.is_empty() { None } else { Some(clean(words)) };
            snippet = snippet.annotation(kind.span(range.start..range.end.max(range.start)).label(words));
        }
        elements.push(snippet.into());
    }

    /// The part of a line that is shown: all of it, or a window around its first mark.
    fn kept(&self, line: Range<usize>) -> Range<usize> {
        if line.len() <= LINE_WINDOW {
            return line;
        }
        let marks = self.marks.iter().map(|(mark, ..)| mark.start).filter(|start| line.contains(start));
        let mark = marks.min().unwrap_or(line.start);
        let start = floor(self.text, mark.saturating_sub(LINE_WINDOW / 3).max(line.start));
        start..floor(self.text, (start + LINE_WINDOW).min(line.end))
    }
}
