//! The parser's place in the tokens, and how it reports what it did not expect.

use std::sync::Arc;

use crate::ast::{Ident, Span, Spanned};
use crate::codes;
use crate::syntax::lexer::{Token, TokenKind, tokens};
use dyelog_diagnostic::{Code, Diagnostic, Place};

/// How deep arithmetic and blocks may nest. Parsing, printing and dropping recurse no deeper than this.
pub const MAX_NESTING: usize = 64;

/// Errors of one file that are shown; a file with more is probably no rule file.
const MAX_ERRORS: usize = 100;

/// The marker of a failure that has been reported already (or stands at a token that has).
#[derive(Debug)]
pub(super) struct Reported;

pub(super) type Parsed<T> = Result<T, Reported>;

/// A parser's state over one file.
pub(super) struct Cursor<'t> {
    file: u32,
    name: Arc<str>,
    pub(super) text: &'t str,
    tokens: Vec<Token>,
    /// Doc comments: the index of the token that they stand before, and their own.
    docs: Vec<(usize, Token)>,
    pub(super) at: usize,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// How often something could not be read, told or not.
    pub(super) faults: usize,
    /// Whether errors beyond [`MAX_ERRORS`] were left out.
    overflow: bool,
    /// Whether something was missed at the end of the text: what else is missing there follows from that.
    ended: bool,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(file: u32, name: &Arc<str>, text: &'t str) -> Self {
        let mut cursor = Self {
            file,
            name: Arc::clone(name),
            text,
            tokens: Vec::new(),
            docs: Vec::new(),
            at: 0,
            diagnostics: Vec::new(),
            faults: 0,
            overflow: false,
            ended: false,
        };
        for token in tokens(text) {
            match token.kind {
                TokenKind::Comment => {}
                TokenKind::Doc => cursor.docs.push((cursor.tokens.len(), token)),
                _ => cursor.tokens.push(token),
            }
        }
        cursor.report_bad_tokens();
        cursor
    }

    fn report_bad_tokens(&mut self) {
        for token in self.tokens.clone() {
            let span = self.span_of(token);
            match token.kind {
                TokenKind::Bad => {
                    let text: String = self.text[span.range()].chars().take(20).collect();
                    // `=\=` of Prolog.
                    let is_unequal = text == "\\" && self.text[..span.start as usize].ends_with('=');
                    let slip = slip_of(if is_unequal { "=\\" } else { &text });
                    self.error(codes::CHARACTER, span, format!("unexpected `{}`", text.escape_debug()), |d| {
                        let d = d.with_note("strings stand in double quotes, comments begin with `//`");
                        match slip {
                            Some(hint) => d.with_hint(hint),
                            None => d,
                        }
                    });
                }
                TokenKind::OpenText => {
                    self.error(codes::OPEN_STRING, span, "string without its closing quote", |d| {
                        d.with_note("a string ends on the line it begins on; `\\n` stands for a line break")
                            .with_hint("add `\"` at its end")
                    });
                }
                _ => {}
            }
        }
    }

    /// Reports an error, unless there were too many already.
    pub(super) fn error(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
        more: impl FnOnce(Diagnostic) -> Diagnostic,
    ) -> Reported {
        self.faults += 1;
        if self.diagnostics.len() >= MAX_ERRORS {
            self.overflow = true;
            return Reported;
        }
        let place = self.place(span);
        self.diagnostics.push(more(Diagnostic::error(code, place, message)));
        Reported
    }

    /// What was found, in the order of the text.
    pub(super) fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        self.diagnostics.sort_by(|a, b| a.place.cmp(&b.place));
        if self.overflow {
            let place = Place::File { file: self.name };
            let message = format!("more than {MAX_ERRORS} errors; the rest is not shown");
            self.diagnostics.push(Diagnostic::error(codes::TOO_MANY, place, message).with_hint("is this a rule file?"));
        }
        self.diagnostics
    }

    pub(super) fn place(&self, span: Span) -> Place {
        Place::Range { file: Arc::clone(&self.name), start: span.start as usize, end: span.end as usize }
    }

    fn span_of(&self, token: Token) -> Span {
        Span { file: self.file, start: token.start, end: token.end }
    }

    /// The kind of the token `ahead` tokens on.
    pub(super) fn peek(&self, ahead: usize) -> Option<TokenKind> {
        self.tokens.get(self.at + ahead).map(|token| token.kind)
    }

    pub(super) fn is(&self, kind: TokenKind) -> bool {
        self.peek(0) == Some(kind)
    }

    /// The text of the token `ahead` tokens on where it is a word.
    pub(super) fn word(&self, ahead: usize) -> Option<&'t str> {
        let token = self.tokens.get(self.at + ahead).filter(|token| token.kind == TokenKind::Word)?;
        Some(&self.text[token.start as usize..token.end as usize])
    }

    /// Whether the tokens from here on are of these kinds.
    pub(super) fn looks_like(&self, kinds: &[TokenKind]) -> bool {
        kinds.iter().enumerate().all(|(ahead, kind)| self.peek(ahead) == Some(*kind))
    }

    /// Whether the token here is the first of its line and not indented.
    pub(super) fn at_margin(&self) -> bool {
        let Some(token) = self.tokens.get(self.at) else { return true };
        let start = token.start as usize;
        start == 0 || matches!(self.text.as_bytes()[start - 1], b'\n' | b'\r')
    }

    pub(super) fn at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    /// The bytes of the token here, or the empty range at the end of the text.
    pub(super) fn here(&self) -> Span {
        let end = self.text.len() as u32;
        self.tokens.get(self.at).map_or(Span { file: self.file, start: end, end }, |token| self.span_of(*token))
    }

    /// The bytes of the token before.
    pub(super) fn before(&self) -> Span {
        match self.at.checked_sub(1).and_then(|at| self.tokens.get(at)) {
            Some(token) => self.span_of(*token),
            None => Span { file: self.file, start: 0, end: 0 },
        }
    }

    pub(super) fn slice(&self, span: Span) -> &'t str {
        &self.text[span.range()]
    }

    pub(super) fn bump(&mut self) -> Span {
        let span = self.here();
        self.at = (self.at + 1).min(self.tokens.len());
        span
    }

    pub(super) fn take(&mut self, kind: TokenKind) -> Option<Span> {
        self.is(kind).then(|| self.bump())
    }

    /// A token of this kind, or an error that names it.
    pub(super) fn expect(&mut self, kind: TokenKind, what: &str) -> Parsed<Span> {
        self.take(kind).ok_or_else(|| self.unexpected(what))
    }

    /// A name.
    pub(super) fn ident(&mut self, what: &str) -> Parsed<Ident> {
        let span = self.expect(TokenKind::Word, what)?;
        Ok(Spanned { value: self.slice(span).into(), span })
    }

    /// Reports that something else should stand here.
    pub(super) fn unexpected(&mut self, what: &str) -> Reported {
        self.unexpected_with(what, |d| d)
    }

    pub(super) fn unexpected_with(&mut self, what: &str, more: impl FnOnce(Diagnostic) -> Diagnostic) -> Reported {
        self.faults += 1;
        if matches!(self.peek(0), Some(TokenKind::Bad | TokenKind::OpenText)) {
            return Reported;
        }
        if self.already_at_end() {
            return Reported;
        }
        let span = self.here();
        let text = self.slice(span);
        let short: String = text.chars().take(40).collect();
        let found = if self.at_end() {
            "the end of the file".to_owned()
        } else {
            format!("`{short}{}`", if short.len() < text.len() { "…" } else { "" })
        };
        self.error(codes::UNEXPECTED, span, format!("expected {what}, found {found}"), |d| {
            more(d.with_label(format!("expected {what}")))
        })
    }

    /// Whether this is the end of the text, and not the first thing that is missing there.
    pub(super) fn already_at_end(&mut self) -> bool {
        self.at_end() && std::mem::replace(&mut self.ended, true)
    }

    /// Takes signs that people write where the language has another, reports that, and says whether there were any: what comes
    /// after them can be read.
    pub(super) fn slip(&mut self, signs: &[TokenKind], instead: &str) -> bool {
        if !self.looks_like(signs) {
            return false;
        }
        let mut span = self.bump();
        for _ in 1..signs.len() {
            span = span.to(self.bump());
        }
        self.wrong_sign(span, instead);
        true
    }

    /// The same of a word.
    pub(super) fn slip_of_word(&mut self, words: &[&str], instead: &str) -> bool {
        if !self.word(0).is_some_and(|word| words.contains(&word)) {
            return false;
        }
        let span = self.bump();
        self.wrong_sign(span, instead);
        true
    }

    fn wrong_sign(&mut self, span: Span, instead: &str) {
        let written = self.slice(span).to_owned();
        self.error(codes::UNEXPECTED, span, format!("expected `{instead}`, found `{written}`"), |d| {
            d.with_label(format!("expected `{instead}`")).with_hint(format!("write `{instead}`"))
        });
        // It is clear what is meant, and nothing is lost.
        self.faults -= 1;
    }

    /// Reports that the bracket opened at `open` is not closed where it should be.
    pub(super) fn unclosed(&mut self, open: Span, what: &str) -> Reported {
        if self.already_at_end() {
            return Reported;
        }
        let sign = self.slice(open);
        let close = match sign {
            "(" => ")",
            "[" => "]",
            _ => "}",
        };
        let end = self.here();
        let place = self.place(end);
        let message = format!("the `{sign}` of {what} is never closed");
        self.error(codes::UNCLOSED, open, message, |d| {
            d.with_place(place, format!("`{close}` expected before this")).with_hint(format!("add `{close}`"))
        })
    }

    /// The doc comment that stands just before the token here, lines joined by newlines.
    pub(super) fn doc(&self) -> Option<String> {
        let first = self.docs.partition_point(|(before, _)| *before < self.at);
        let lines: Vec<&str> = self.docs[first..]
            .iter()
            .take_while(|(before, _)| *before == self.at)
            .map(|(_, token)| doc_line(&self.text[token.start as usize..token.end as usize]))
            .collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// Skips tokens until `stop` says so, or the end. Curly brackets are skipped as a whole, unless `stop` wants them.
    pub(super) fn skip_until(&mut self, stop: impl Fn(&Self) -> bool) {
        let mut depth = 0usize;
        while !(self.at_end() || self.at_item() || (depth == 0 && stop(self))) {
            match self.peek(0) {
                Some(TokenKind::OpenCurly) => depth += 1,
                Some(TokenKind::CloseCurly) => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.bump();
        }
    }

    /// Whether a `template`, `use`, `export` or `output` begins here. No other construct contains these sequences of tokens.
    pub(super) fn at_item(&self) -> bool {
        match self.word(0) {
            Some("template") => self.peek(1) == Some(TokenKind::Word),
            Some("use" | "include") => matches!(self.peek(1), Some(TokenKind::Text | TokenKind::OpenText)),
            Some("export" | "output") => self.peek(1) == Some(TokenKind::Word) && self.at_margin(),
            _ => false,
        }
    }
}

/// What to write in place of a sign that the language does not have.
fn slip_of(text: &str) -> Option<&'static str> {
    [
        ("&", "conditions are separated by `,`"),
        (";", "conditions and arguments are separated by `,`, statements by nothing; what may hold instead is a second rule of the same head"),
        ("#", "a comment begins with `//`"),
        ("'", "a string stands in double quotes"),
        ("¬", "write `!` for not"),
        ("~", "write `!` for not"),
        ("\\", "write `!` for not"),
        ("≠", "write `!=`"),
        ("=\\", "write `!=`"),
        ("≤", "write `<=`"),
        ("≥", "write `>=`"),
        ("←", "write `:-`"),
    ]
    .into_iter()
    .find_map(|(sign, hint)| text.starts_with(sign).then_some(hint))
}

fn doc_line(comment: &str) -> &str {
    let line = comment.strip_prefix("///").unwrap_or(comment);
    // White space at the end of a line means nothing, here as elsewhere.
    line.strip_prefix(' ').unwrap_or(line).trim_end()
}
