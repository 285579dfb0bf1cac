//! Rule files as text: reading, loading with what they use, formatting, printing.
//!
//! Reading recovers at the next statement, section or item, so that a file with ten errors reports ten. What was read
//! beside the errors is handed out too, but only [`load`]'s success means that a program is whole.

mod cursor;
mod format;
mod lexer;
mod load;
mod print;
mod template;
mod term;

use std::sync::Arc;

pub use cursor::MAX_NESTING;
pub use format::format;
pub use lexer::{Token, TokenKind, tokens};
pub use load::{Loaded, MAX_FILES, load, read};
pub use print::{
    print, print_condition, print_items, print_kind, print_rule, print_statements, print_template, print_term,
};

use crate::datalog::ast::{Rule, Span, Spanned, Template};
use crate::datalog::codes;
use crate::diagnostic::{Diagnostic, Place};
use cursor::{Cursor, Parsed, Reported};
use lexer::TokenKind as Kind;
use term::Setting;

/// Bytes that a rule file may have; a larger one is probably something else.
pub const MAX_BYTES: usize = 16 << 20;

/// Words that mean something of their own at some place. None is reserved: elsewhere each can be a name.
pub const KEYWORDS: [&str; 19] = [
    "template", "use", "include", "order", "longest", "expect", "match", "where", "model", "repeat", "in", "min",
    "for", "starts", "every", "some", "count", "sum", "max",
];

/// What stands at the top level of a rule file.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// `template name { … }`
    Template(Template),
    /// `head :- body.`
    Rule(Rule),
    /// `use "file"`
    Use(Use),
}

/// `use "file"`: the file's items stand here.
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
            (Some("template"), _) => self.template().map(Item::Template),
            (Some("use" | "include"), _) => self.use_item().map(Item::Use),
            (Some(word), _) => {
                let span = self.here();
                Err(self.error(codes::KEYWORD, span, format!("`{word}` begins nothing"), |d| {
                    d.with_note("a file holds `template name { … }`, `use \"file\"` and rules `head(…) :- body.`")
                        .with_similar(word, ["template", "use", "include"])
                }))
            }
            _ => Err(self.unexpected("`template`, `use` or a rule")),
        }
    }

    fn use_item(&mut self) -> Parsed<Use> {
        let start = self.bump();
        let file = self.text_value("the file's name in quotes")?;
        let span = start.to(file.span);
        Ok(Use { file, span })
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
