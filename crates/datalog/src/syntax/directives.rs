//! What comments say to tools: that a lint is allowed, or which traces a template takes.
//!
//! ```text
//! //@ allow R070: the reply ends the thread in the trace of another machine
//! template acknowledged { … }
//!
//! //@ valid acknowledged: the store acknowledges as its last act
//! //| operation report run=1
//! //| report,1,1,Be | sensor,1
//! ```
//!
//! To all else they are comments, which stay where they are.

use std::ops::Range;
use std::sync::Arc;

use super::MAX_BYTES;
use super::lexer::{Token, TokenKind as Kind, tokens};
use crate::codes;
use dyelog_diagnostic::{Diagnostic, Place};

/// What a comment for tools begins with.
const MARK: &str = "//@";
/// What the lines of a trace begin with.
const TRACE: &str = "//|";
/// What such a comment may say.
const WORDS: [&str; 3] = ["allow", "valid", "invalid"];

/// Comments for tools that a file may have.
const MOST: usize = 1000;
/// How long the codes of an allowance may be, in bytes.
const WORDY: usize = 200;
/// Tokens that an item may have for an allowance to be about no more than it.
const LONGEST: usize = 100_000;

/// Findings of some codes that are meant to be, within some bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// The codes, with their bytes.
    pub codes: Vec<(Arc<str>, Range<usize>)>,
    /// What it covers: an item, or a line.
    pub covers: Range<usize>,
}

/// A trace in comments, which a template takes or must not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Whether the template has to match.
    pub valid: bool,
    /// The template.
    pub template: Arc<str>,
    /// What the case shows; may be empty.
    pub title: Arc<str>,
    /// The comment that begins it.
    pub bytes: Range<usize>,
    /// The line of that comment, from 1. The trace begins on the next one.
    pub line: u32,
    /// The trace.
    pub trace: String,
}

/// What the comments of a file say to tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    /// Lints that are allowed.
    pub allowances: Vec<Allowance>,
    /// Traces with what becomes of them.
    pub cases: Vec<Case>,
    /// What cannot be read of it.
    pub findings: Vec<Diagnostic>,
}

/// The comments for tools of a file's text.
pub fn directives(name: &Arc<str>, text: &str) -> Directives {
    let mut found = Directives::default();
    if text.len() > MAX_BYTES || !(text.contains(MARK) || text.contains(TRACE)) {
        return found;
    }
    let tokens = tokens(text);
    let code: Vec<usize> = (0..tokens.len()).filter(|at| !tokens[*at].kind.is_comment()).collect();
    let (mut line, mut counted) = (1, 0);
    let (mut at, mut number) = (0, 0);
    while let Some(token) = tokens.get(at) {
        at += 1;
        let written = slice(text, token);
        if token.kind != Kind::Comment || !(written.starts_with(MARK) || written.starts_with(TRACE)) {
            continue;
        }
        let start = token.start as usize;
        line += text[counted..start].matches('\n').count() as u32;
        counted = start;
        let place = Place::Range { file: Arc::clone(name), start, end: start + written.trim_end().len() };
        number += 1;
        if number > MOST {
            let message = format!("more than {MOST} comments for tools; the rest is not read");
            found.findings.push(unreadable(place, &message));
            break;
        }
        let Some(said) = written.strip_prefix(MARK) else {
            found.findings.push(stray(place, &mut at, text, &tokens));
            continue;
        };
        let (word, rest) = word(said);
        let rest_at = start + written.len() - rest.len();
        match word {
            "allow" => match allowance(rest, rest_at) {
                Some(codes) => {
                    found.allowances.push(Allowance { codes, covers: covered(text, &tokens, &code, at - 1) });
                }
                None => found.findings.push(
                    unreadable(place, "an allowance names codes and a reason")
                        .with_hint("write `//@ allow R070: the reason`, or `//@ allow R059, R070: the reason`"),
                ),
            },
            "valid" | "invalid" => {
                let trace = trace(text, &tokens, &mut at);
                match case(rest) {
                    Some((template, title)) if !trace.is_empty() => found.cases.push(Case {
                        valid: word == "valid",
                        template: template.into(),
                        title: title.into(),
                        bytes: start..start + written.trim_end().len(),
                        line,
                        trace,
                    }),
                    Some(_) => found.findings.push(
                        unreadable(place, "a case without its trace")
                            .with_hint("write the lines of the trace below it, each after `//| `"),
                    ),
                    None => found.findings.push(
                        unreadable(place, "a case names its template")
                            .with_hint(format!("write `//@ {word} TEMPLATE: what it shows`")),
                    ),
                }
            }
            other => found.findings.push(
                unreadable(place, &format!("`{other}` is nothing that a comment can say"))
                    .with_note("a comment that begins with `//@` says `allow`, `valid` or `invalid`")
                    .with_similar(other, WORDS),
            ),
        }
    }
    found
}

fn slice<'t>(text: &'t str, token: &Token) -> &'t str {
    &text[token.start as usize..token.end as usize]
}

/// The first word, and the rest.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let end = text.find(|c: char| c.is_whitespace() || c == ':').unwrap_or(text.len());
    text.split_at(end)
}

fn unreadable(place: Place, message: &str) -> Diagnostic {
    Diagnostic::warning(codes::DIRECTIVE, place, message)
}

/// Lines of a trace that belong to no case.
fn stray(place: Place, at: &mut usize, text: &str, tokens: &[Token]) -> Diagnostic {
    trace(text, tokens, at);
    unreadable(place, "lines of a trace that belong to no case")
        .with_hint("write `//@ valid TEMPLATE: what it shows` in the line above")
}

/// `R059, R070: reason` with the places of the codes.
fn allowance(text: &str, at: usize) -> Option<Vec<(Arc<str>, Range<usize>)>> {
    let (list, reason) = text.split_once(':')?;
    if reason.trim().is_empty() || list.len() > WORDY {
        return None;
    }
    let mut begin = at;
    let mut found = Vec::new();
    for part in list.split(',') {
        let code = part.trim();
        let start = begin + (part.len() - part.trim_start().len());
        begin += part.len() + 1;
        if !matches!(code.as_bytes(), [b'A'..=b'Z', digits @ ..] if digits.len() == 3 && digits.iter().all(u8::is_ascii_digit))
        {
            return None;
        }
        found.push((code.into(), start..start + code.len()));
    }
    Some(found)
}

/// `TEMPLATE: title`, or the template alone.
fn case(text: &str) -> Option<(&str, &str)> {
    let (name, title) = text.split_once(':').unwrap_or((text, ""));
    let name = name.trim();
    let is_name = matches!(tokens(name)[..], [Token { kind: Kind::Word, .. }]);
    is_name.then(|| (name, title.trim()))
}

/// The lines of a trace that stand next, one below the other.
fn trace(text: &str, tokens: &[Token], at: &mut usize) -> String {
    let mut trace = String::new();
    while let Some(token) = tokens.get(*at).filter(|token| token.kind == Kind::Comment) {
        let Some(line) = slice(text, token).strip_prefix(TRACE) else { break };
        // Each line stands right below the one before, so that lines of the trace are lines of the file.
        let before = tokens[*at - 1].end as usize;
        if text[before..token.start as usize].matches('\n').count() != 1 {
            break;
        }
        trace.push_str(line.strip_prefix(' ').unwrap_or(line).trim_end());
        trace.push('\n');
        *at += 1;
    }
    trace
}

/// What a comment is about: its line where something stands before it, else the item or the line that comes next.
fn covered(text: &str, tokens: &[Token], code: &[usize], at: usize) -> Range<usize> {
    let line_of = |token: &Token| {
        let start = text[..token.start as usize].rfind('\n').map_or(0, |end| end + 1);
        let end = text[token.end as usize..].find('\n').map_or(text.len(), |end| token.end as usize + end);
        start..end
    };
    let own = line_of(&tokens[at]);
    if !text[own.start..tokens[at].start as usize].trim().is_empty() {
        return own;
    }
    let Some(first) = code.get(code.partition_point(|token| *token < at)).copied() else { return own };
    let begin = tokens[first].start as usize;
    let margin = begin == 0 || text.as_bytes()[begin - 1] == b'\n';
    if margin { begin..end_of_item(text, &tokens[first..]) } else { line_of(&tokens[first]) }
}

/// Where the item ends that begins with these tokens.
fn end_of_item(text: &str, tokens: &[Token]) -> usize {
    let template = slice(text, &tokens[0]) == "template";
    let mut depth = 0usize;
    for token in tokens.iter().take(LONGEST) {
        match token.kind {
            Kind::OpenCurly => depth += 1,
            Kind::CloseCurly => {
                depth = depth.saturating_sub(1);
                if template && depth == 0 {
                    return token.end as usize;
                }
            }
            Kind::Dot if depth == 0 && !template => return token.end as usize,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::{Directives, directives};

    fn of(text: &str) -> Directives {
        directives(&"a.dl".into(), text)
    }

    #[test]
    fn an_allowance_covers_the_item_or_the_line() {
        let text = "//@ allow R070, R059: meant\n/// doc\ntemplate t {\n  match {\n    //@ allow R058: here\n    e = Ac [a]\n  }\n}\np(X) :- q(X, Y). //@ allow R027: a column\n";
        let found = of(text);
        assert_eq!(found.findings, []);
        let covers: Vec<&str> = found.allowances.iter().map(|one| &text[one.covers.clone()]).collect();
        assert!(covers[0].starts_with("template t {") && covers[0].ends_with("\n}"), "{covers:?}");
        assert_eq!(covers[1].trim(), "e = Ac [a]");
        assert!(covers[2].starts_with("p(X)"));
        let codes: Vec<&str> = found.allowances[0].codes.iter().map(|(_, bytes)| &text[bytes.clone()]).collect();
        assert_eq!(codes, ["R070", "R059"]);
    }

    #[test]
    fn a_case_has_its_trace_and_its_line() {
        let found = of(
            "p(1).\n\n//@ valid t: as it should\n//| operation x run=1\n//|   x,1,1,Be | a\n\n//| stray\n//@ invalid t\n",
        );
        let [case] = &found.cases[..] else { panic!("{found:?}") };
        assert_eq!((case.valid, &*case.template, &*case.title, case.line), (true, "t", "as it should", 3));
        assert_eq!(case.trace, "operation x run=1\n  x,1,1,Be | a\n");
        let said: Vec<&str> = found.findings.iter().map(|one| &*one.message).collect();
        assert_eq!(said, ["lines of a trace that belong to no case", "a case without its trace"]);
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        for text in [
            "//@",
            "//@ alow R070: x",
            "//@ allow R070",
            "//@ allow R070:",
            "//@ allow all: x",
            "//@ valid\n//| x",
            "//@ valid a b: x\n//| x",
            "//@allow R07: x",
        ] {
            assert_eq!(of(text).findings.len(), 1, "{text}");
        }
        assert_eq!(of("// plain\n//// ruler\n/// doc"), Directives::default());
        assert_eq!(of("//@ allow R070: at the end").allowances.len(), 1);
    }
}
