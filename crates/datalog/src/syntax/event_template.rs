//! Templates on events: `on`, look-ups, `assert`, `retire`.

use crate::ast::{Ident, Index, Span, Spanned};
use crate::codes;
use crate::event_template::{Asserted, Event, EventTemplate, Lookup, Retired};
use crate::syntax::cursor::{Cursor, Parsed, Reported};
use crate::syntax::lexer::TokenKind;
use crate::syntax::term::Setting;

const SECTIONS: [&str; 7] = ["order", "on", "match", "where", "assert", "model", "retire"];

impl Cursor<'_> {
    /// Whether the template that begins here is one on an event. No other template contains `on NAME(` or these sections.
    pub(super) fn is_event_template(&self) -> bool {
        let mut ahead = 2;
        while let Some(kind) = self.peek(ahead) {
            match self.word(ahead) {
                Some("template") if self.peek(ahead + 1) == Some(TokenKind::Word) => return false,
                Some("on")
                    if self.peek(ahead + 1) == Some(TokenKind::Word)
                        && self.peek(ahead + 2) == Some(TokenKind::OpenRound) =>
                {
                    return true;
                }
                Some("assert" | "retire") if self.peek(ahead + 1) == Some(TokenKind::OpenCurly) => return true,
                _ => {}
            }
            if kind == TokenKind::CloseCurly && self.peek(ahead + 1).is_none() {
                return false;
            }
            ahead += 1;
        }
        false
    }

    /// A template on an event, whatever of it can be read.
    pub(super) fn event_template(&mut self) -> Parsed<EventTemplate> {
        let doc = self.doc();
        let start = self.bump();
        let name = self.ident("the template's name")?;
        let mut template = EventTemplate {
            name,
            doc: doc.unwrap_or_default(),
            order: None,
            event: None,
            lookups: Vec::new(),
            conditions: Vec::new(),
            asserted: Vec::new(),
            records: Vec::new(),
            retired: Vec::new(),
            damaged: false,
            span: start,
        };
        let open = self.expect(TokenKind::OpenCurly, "`{`")?;
        let mut seen: Vec<(&str, Span)> = Vec::new();
        let faults = self.faults;
        while self.take(TokenKind::CloseCurly).is_none() {
            if self.at_end() || self.at_item() {
                self.unclosed(open, &format!("template `{}`", template.name.value));
                break;
            }
            if let Some(doc) = self.doc() {
                template.doc.push_str(if template.doc.is_empty() { "" } else { "\n" });
                template.doc.push_str(&doc);
            }
            if self.event_section(&mut template, &mut seen).is_err() {
                self.skip_until(|cursor| cursor.at_section() || cursor.is(TokenKind::CloseCurly));
            }
        }
        if template.event.is_none() && self.faults == faults {
            let hint =
                "write `on message(U, B)`, where `U` is the occurrence that sends and `B` the task that receives";
            self.error(
                codes::UNEXPECTED,
                template.name.span,
                "a template that asserts or retires needs its event",
                |d| d.with_hint(hint),
            );
        }
        template.damaged = self.faults > faults;
        template.span = start.to(self.before());
        Ok(template)
    }

    fn event_section(&mut self, template: &mut EventTemplate, seen: &mut Vec<(&'static str, Span)>) -> Parsed<()> {
        let Some(keyword) = self.section_keyword(&SECTIONS, seen) else { return Err(self.unknown_event_section()) };
        match keyword {
            "order" => template.order = Some(self.order()?),
            "on" => template.event = Some(self.event()?),
            "match" => template.lookups.extend(self.listed("`match`", Self::lookup)?),
            "where" => {
                let open = self.expect(TokenKind::OpenCurly, "`{`")?;
                template.conditions.extend(self.conditions_in_braces(open, Setting::Where));
            }
            "assert" => template.asserted.extend(self.listed("`assert`", Self::asserted)?),
            "model" => template.records.extend(self.listed("`model`", Self::atom)?),
            _ => template.retired.extend(self.listed("`retire`", Self::retired)?),
        }
        Ok(())
    }

    fn unknown_event_section(&mut self) -> Reported {
        let Some(word) = self.word(0) else {
            return self.unexpected("`order`, `on`, `match`, `where`, `assert`, `model`, `retire` or `}`");
        };
        let span = self.bump();
        let reported =
            self.error(codes::KEYWORD, span, format!("no section of a template on events is called `{word}`"), |d| {
                d.with_note("a template on events has `order`, `on`, `match`, `where`, `assert`, `model` and `retire`")
                    .with_similar(word, SECTIONS)
            });
        self.skip_section();
        reported
    }

    /// All of a block; recovers at what may begin another one of it.
    fn listed<T>(&mut self, what: &str, one: fn(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let open = self.expect(TokenKind::OpenCurly, "`{`")?;
        let mut all = Vec::new();
        while self.block_goes_on(open, what) {
            let from = self.at;
            match one(self) {
                Ok(read) => all.push(read),
                Err(Reported) => {
                    if self.at == from {
                        self.bump();
                    }
                    self.skip_until(|cursor| {
                        cursor.at_margin_of_a_statement() || cursor.at_section() || cursor.is(TokenKind::CloseCurly)
                    });
                }
            }
        }
        Ok(all)
    }

    fn at_margin_of_a_statement(&self) -> bool {
        use TokenKind::{Equal, OpenRound, OpenSquare, Word};
        [[Word, Equal], [Word, OpenRound], [Word, OpenSquare]].iter().any(|kinds| self.looks_like(kinds))
            || self.word(0) == Some("path")
    }

    /// `message(U, B)`
    fn event(&mut self) -> Parsed<Event> {
        let name = self.ident("an event, such as `message(U, B)`")?;
        let open = self.expect(TokenKind::OpenRound, "`(`")?;
        let mut parameters = Vec::new();
        let close = loop {
            if let Some(close) = self.take(TokenKind::CloseRound) {
                break close;
            }
            if self.at_end() || self.at_item() {
                return Err(self.unclosed(open, "the event"));
            }
            let wildcard = self.take(TokenKind::Underscore).map(|span| Spanned { value: "_".into(), span });
            parameters.push(match wildcard {
                Some(wildcard) => wildcard,
                None => self.ident("a variable for what the event tells, or `_`")?,
            });
            if !self.is(TokenKind::CloseRound) {
                self.expect(TokenKind::Comma, "`,` or `)`")?;
            }
        };
        Ok(Event { span: name.span.to(close), name, parameters })
    }

    /// `W = live(B)`, `path P[1..n] from W to U`
    fn lookup(&mut self) -> Parsed<Lookup> {
        if self.word(0) == Some("path") && self.peek(1) == Some(TokenKind::Word) {
            return self.path();
        }
        let variable = self.ident("a look-up, such as `W = live(B)`")?;
        self.equal()?;
        Ok(Lookup::Value { variable, function: self.atom()? })
    }

    fn equal(&mut self) -> Parsed<()> {
        if !self.slip(&[TokenKind::Define], "=") {
            self.expect(TokenKind::Equal, "`=`")?;
        }
        Ok(())
    }

    fn path(&mut self) -> Parsed<Lookup> {
        let start = self.bump();
        let name = self.ident("the name of the path")?;
        self.expect(TokenKind::OpenSquare, "`[1..n]`")?;
        let (one, span) = self.integer(false)?;
        if one != 1 {
            self.error(codes::UNEXPECTED, span, "a path counts from 1", |d| d.with_hint("write `1..n`"));
        }
        self.expect(TokenKind::Range, "`..`")?;
        let count = self.ident("the variable that holds how many there are")?;
        self.expect(TokenKind::CloseSquare, "`]`")?;
        let from = self.end_of_path("from")?;
        let to = self.end_of_path("to")?;
        Ok(Lookup::Path { name, count, from, to, span: start.to(self.before()) })
    }

    fn end_of_path(&mut self, word: &str) -> Parsed<Ident> {
        if self.word(0) != Some(word) {
            return Err(self.unexpected(&format!("`{word}`")));
        }
        self.bump();
        self.ident("a variable")
    }

    /// `V = live(B)`, `arc(U, V)`
    fn asserted(&mut self) -> Parsed<Asserted> {
        if self.looks_like(&[TokenKind::Word, TokenKind::OpenRound]) {
            return self.atom().map(Asserted::Fact);
        }
        let variable = self.ident("a fact, such as `V = live(B)` or `arc(U, V)`")?;
        self.equal()?;
        Ok(Asserted::New { variable, function: self.atom()? })
    }

    /// `arc(X, Y)`, `P[2..n]`
    fn retired(&mut self) -> Parsed<Retired> {
        if self.looks_like(&[TokenKind::Word, TokenKind::OpenRound]) {
            return self.atom().map(Retired::Fact);
        }
        let name = self.ident("a fact, such as `arc(X, Y)`, or part of a path, such as `P[2..n]`")?;
        self.expect(TokenKind::OpenSquare, "`(` or `[`")?;
        let first = self.bound()?;
        self.expect(TokenKind::Range, "`..`")?;
        let last = self.bound()?;
        let close = self.expect(TokenKind::CloseSquare, "`]`")?;
        Ok(Retired::Path { span: name.span.to(close), name, first, last })
    }

    fn bound(&mut self) -> Parsed<Spanned<Index>> {
        let start = self.here();
        let value = self.index()?;
        Ok(Spanned { value, span: start.to(self.before()) })
    }
}
