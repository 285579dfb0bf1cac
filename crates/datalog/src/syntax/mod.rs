//! Rule files as text: reading, loading with what they use, formatting, printing.
//!
//! Reading recovers at the next statement, section or item, so that a file with ten errors reports ten. What was read
//! beside the errors is handed out too, but only [`load`]'s success means that a program is whole.

mod cursor;
mod directives;
mod event_template;
mod format;
mod lexer;
mod load;
mod print;
mod template;
mod term;

use std::sync::Arc;

pub use cursor::MAX_NESTING;
pub use directives::{Allowance, Case, Directives, directives};
pub use format::format;
pub use lexer::{Token, TokenKind, tokens};
pub use load::{Loaded, MAX_FILES, load, read, read_beside};
pub use print::{
    print, print_asserted, print_atom, print_condition, print_event_template, print_items, print_kind, print_lookup,
    print_retired, print_rule, print_statements, print_template, print_term,
};

use crate::ast::{Ident, Output, Rule, Span, Spanned, Template};
use crate::codes;
use crate::event_template::EventTemplate;
use cursor::{Cursor, Parsed, Reported};
use dyelog_diagnostic::{Diagnostic, Place};
use lexer::TokenKind as Kind;
use term::Setting;

/// Bytes that a rule file may have; a larger one is probably something else.
pub const MAX_BYTES: usize = 16 << 20;

/// Words that mean something of their own at some place. None is reserved: elsewhere each can be a name.
pub const KEYWORDS: [&str; 29] = [
    "template", "use", "include", "export", "output", "order", "longest", "expect", "match", "where", "model",
    "repeat", "optional", "or", "in", "min", "for", "starts", "every", "some", "count", "sum", "max", "on", "path",
    "from", "to", "assert", "retire",
];

/// What stands at the top level of a rule file.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// `template name { … }`
    Template(Template),
    /// `template name { on … }`
    EventTemplate(EventTemplate),
    /// `head :- body.`
    Rule(Rule),
    /// `use "file"`
    Use(Use),
    /// `export reach, blocked.`
    Export(Export),
    /// `output slow(trace, ms), late.`
    Output(Outputs),
}

/// `export reach, blocked.`: files that use this one see these relations.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// The relations.
    pub relations: Vec<Ident>,
    /// The whole text.
    pub span: Span,
}

/// `output slow(trace, ms), late.`: what the file answers with.
#[derive(Clone, Debug, PartialEq)]
pub struct Outputs {
    /// The relations.
    pub relations: Vec<Output>,
    /// The whole text.
    pub span: Span,
}

/// `use "file"`: the file's templates and exported relations are known here.
#[derive(Clone, Debug, PartialEq)]
pub struct Use {
    /// The file, as written.
    pub file: Spanned<Arc<str>>,
    /// The whole text.
    pub span: Span,
}

/// Reads the text of one file. Spans carry `file`, diagnostics the name.
pub fn parse_file(file: u32, name: &Arc<str>, text: &str) -> (Vec<Item>, Vec<Diagnostic>) {
    let read = read_file(file, name, text);
    (read.items, read.diagnostics)
}

/// What was read of a file.
struct ReadFile {
    items: Vec<Item>,
    diagnostics: Vec<Diagnostic>,
    /// Names that items may define that could not be read.
    lost: Vec<Arc<str>>,
}

fn read_file(file: u32, name: &Arc<str>, text: &str) -> ReadFile {
    if text.len() > MAX_BYTES {
        let message = format!("rule file of {} MiB", text.len() >> 20);
        let diagnostic = Diagnostic::error(codes::TOO_LARGE, Place::File { file: Arc::clone(name) }, message)
            .with_note(format!("rule files have at most {} MiB", MAX_BYTES >> 20));
        return ReadFile { items: Vec::new(), diagnostics: vec![diagnostic], lost: Vec::new() };
    }
    let mut cursor = Cursor::new(file, name, text);
    let mut items = Vec::new();
    let mut lost = Vec::new();
    while !cursor.at_end() {
        let from = cursor.at;
        // `template NAME`, also where the first word is misspelt, or `NAME(…)`.
        let names = [cursor.word(0), cursor.word(1)].into_iter().flatten().map(Arc::from).collect::<Vec<Arc<str>>>();
        match cursor.item() {
            Ok(item) => items.push(item),
            Err(Reported) => {
                lost.extend(names);
                cursor.skip_to_item(from);
            }
        }
    }
    ReadFile { items, diagnostics: cursor.into_diagnostics(), lost }
}

impl Cursor<'_> {
    fn item(&mut self) -> Parsed<Item> {
        match (self.word(0), self.peek(1)) {
            (Some(_), Some(Kind::OpenRound)) => self.rule().map(Item::Rule),
            (Some("template"), _) if self.is_event_template() => self.event_template().map(Item::EventTemplate),
            (Some("template"), _) => self.template().map(Item::Template),
            (Some("use" | "include"), _) => self.use_item().map(Item::Use),
            (Some("export"), _) => self.export().map(Item::Export),
            (Some("output"), _) => self.outputs().map(Item::Output),
            (Some(word), _) => {
                let span = self.here();
                Err(self.error(codes::KEYWORD, span, format!("`{word}` begins nothing"), |d| {
                    d.with_note(
                        "a file holds `template name { … }`, `use \"file\"`, rules `head(…) :- body.`, `export name.` and `output name.`",
                    )
                        .with_similar(word, ["template", "use", "include", "export", "output"])
                }))
            }
            _ => Err(self.unexpected("`template`, `use`, `export`, `output` or a rule")),
        }
    }

    fn use_item(&mut self) -> Parsed<Use> {
        let start = self.bump();
        let file = self.text_value("the file's name in quotes")?;
        // Items that end with a full stop stand beside it, so one is often written here, too.
        let end = self.take(Kind::Dot).unwrap_or(file.span);
        Ok(Use { span: start.to(end), file })
    }

    fn export(&mut self) -> Parsed<Export> {
        let start = self.bump();
        let mut relations = Vec::new();
        loop {
            relations.push(self.ident("the name of a relation")?);
            if self.is(Kind::OpenRound) {
                return Err(self.unexpected_with("`,` or `.`", |d| {
                    d.with_note("`export` takes names of relations; their rules stand by themselves")
                        .with_hint("write `export name.` in a line of its own")
                }));
            }
            if self.take(Kind::Comma).is_none() || self.is(Kind::Dot) {
                break;
            }
        }
        let dot = self.full_stop(start)?;
        Ok(Export { relations, span: start.to(dot) })
    }

    fn outputs(&mut self) -> Parsed<Outputs> {
        let start = self.bump();
        let mut relations = Vec::new();
        loop {
            relations.push(self.output()?);
            if self.take(Kind::Comma).is_none() || self.is(Kind::Dot) {
                break;
            }
        }
        let dot = self.full_stop(start)?;
        Ok(Outputs { relations, span: start.to(dot) })
    }

    /// `slow(trace, ms)` or `slow`
    fn output(&mut self) -> Parsed<Output> {
        let relation = self.ident("the name of a relation")?;
        let mut columns = None;
        if let Some(open) = self.take(Kind::OpenRound) {
            let mut names = Vec::new();
            while self.take(Kind::CloseRound).is_none() {
                if self.at_end() || self.at_item() {
                    return Err(self.unclosed(open, "the columns"));
                }
                names.push(self.ident("the name of a column")?);
                if !self.is(Kind::CloseRound) && !self.at_end() {
                    self.expect(Kind::Comma, "`,` or `)`")?;
                }
            }
            columns = Some(names);
        }
        let span = relation.span.to(self.before());
        Ok(Output { relation, columns, span })
    }

    /// The full stop of a declaration that begins there.
    fn full_stop(&mut self, start: Span) -> Parsed<Span> {
        if let Some(dot) = self.take(Kind::Dot) {
            return Ok(dot);
        }
        if self.already_at_end() || !self.at_margin() {
            return Err(self.unexpected("`,` or `.`"));
        }
        let (begin, end) = (self.place(start), self.before());
        Err(self.error(codes::UNEXPECTED, end, "declaration without its full stop", |d| {
            d.with_label("expected `,` or `.` after this").with_place(begin, "in the declaration that begins here")
        }))
    }

    fn rule(&mut self) -> Parsed<Rule> {
        let doc = self.doc().unwrap_or_default();
        let head = self.atom()?;
        let mut body = Vec::new();
        let arrow = self.take(Kind::If).is_some()
            || self.slip(&[Kind::Less, Kind::Minus], ":-")
            || self.slip(&[Kind::Define], ":-");
        if arrow {
            loop {
                body.push(self.condition(Setting::Body)?);
                if self.take(Kind::Comma).is_none() || self.is(Kind::Dot) {
                    break;
                }
            }
        }
        let Some(dot) = self.take(Kind::Dot) else { return Err(self.no_full_stop(&head.span, body.is_empty())) };
        let span = head.span.to(dot);
        Ok(Rule { doc, head, body, span })
    }

    fn no_full_stop(&mut self, head: &Span, fact: bool) -> Reported {
        let what = if fact { "`:-` or `.`" } else { "`,` or `.`" };
        let begin = self.place(*head);
        if !self.at_margin() {
            let another = self.looks_like(&[Kind::Word, Kind::OpenRound]);
            return self.unexpected_with(what, |d| {
                let d = d.with_place(begin, "in the rule that begins here");
                if another { d.with_hint("literals are separated by `,`, and a rule ends with `.`") } else { d }
            });
        }
        if self.already_at_end() {
            return Reported;
        }
        // The next line begins something new: the full stop is missing at the end of this rule.
        let end = self.before();
        self.error(codes::UNEXPECTED, end, "rule without its full stop", |d| {
            d.with_label(format!("expected {what} after this"))
                .with_place(begin, "in the rule that begins here")
                .with_hint("a rule ends with `.`")
        })
    }

    /// After an error in an item that began at token `from`: to the next item, over what belongs to the broken one.
    fn skip_to_item(&mut self, from: usize) {
        if self.at == from {
            self.bump();
        }
        while !self.at_end() && !self.at_item() {
            if self.take(Kind::Dot).is_some() {
                return;
            }
            if self.at_margin() && self.is(Kind::Word) {
                return;
            }
            if self.is(Kind::OpenCurly) {
                self.bump();
                self.skip_until(|cursor| cursor.is(Kind::CloseCurly));
                self.take(Kind::CloseCurly);
            } else {
                self.bump();
            }
        }
    }
}
