//! Templates: sections, node patterns, modelling statements.

use crate::ast::{
    Argument, Choice, Damage, Ident, KindPattern, MatchItem, NodePattern, NodeReference, Repeat, Span, Spanned,
    Statement, Template, Term,
};
use crate::codes;
use crate::syntax::cursor::{Cursor, MAX_NESTING, Parsed, Reported};
use crate::syntax::lexer::TokenKind;
use crate::syntax::term::Setting;
use dyelog_diagnostic::Diagnostic;

const SECTIONS: [&str; 6] = ["order", "longest", "expect", "match", "where", "model"];
const KINDS: [&str; 5] = ["Be", "Ac", "Ed", "Fk", "Jn"];

/// `[j, k, m | i, v]`
type Label = (Spanned<Term>, Spanned<Term>, Spanned<Term>, Spanned<Term>, Spanned<Term>);

impl Cursor<'_> {
    /// Whether a section of a template begins here. Nothing else in a template contains these sequences of tokens.
    pub(super) fn at_section(&self) -> bool {
        let wanted = match self.word(0) {
            Some("match" | "where" | "model" | "assert" | "retire") => TokenKind::OpenCurly,
            Some("on") if self.peek(2) == Some(TokenKind::OpenRound) => TokenKind::Word,
            Some("order") => TokenKind::Number,
            Some("expect") => TokenKind::Text,
            _ => return false,
        };
        self.peek(1) == Some(wanted)
    }

    /// A template, whatever of it can be read.
    pub(super) fn template(&mut self) -> Parsed<Template> {
        let doc = self.doc();
        let start = self.bump();
        let name = self.ident("the template's name")?;
        let mut template = Template {
            name,
            doc: doc.unwrap_or_default(),
            order: None,
            longest: false,
            items: Vec::new(),
            conditions: Vec::new(),
            statements: Vec::new(),
            expects: Vec::new(),
            damage: Damage::default(),
            span: start,
        };
        let open = self.expect(TokenKind::OpenCurly, "`{`")?;
        let mut seen: Vec<(&str, Span)> = Vec::new();
        loop {
            if let Some(doc) = self.doc().filter(|_| !self.at_end()) {
                if !template.doc.is_empty() {
                    template.doc.push('\n');
                }
                template.doc.push_str(&doc);
            }
            if self.take(TokenKind::CloseCurly).is_some() {
                break;
            }
            if self.at_end() || self.at_item() {
                self.unclosed(open, &format!("template `{}`", template.name.value));
                template.damage = Damage::ALL;
                break;
            }
            let (faults, word) = (self.faults, self.word(0));
            let read = self.section(&mut template, &mut seen);
            if self.faults > faults || read.is_err() {
                template.damage.add(match word {
                    Some("match") => Damage::NODES,
                    Some("where") => Damage::CONDITIONS,
                    Some("model") => Damage::STATEMENTS,
                    Some("order") => Damage::ORDER,
                    Some("longest" | "expect") => Damage::default(),
                    _ => Damage::ALL,
                });
            }
            if read.is_err() {
                self.skip_until(|cursor| cursor.at_section() || cursor.is(TokenKind::CloseCurly));
            }
        }
        template.span = start.to(self.before());
        Ok(template)
    }

    fn section(&mut self, template: &mut Template, seen: &mut Vec<(&'static str, Span)>) -> Parsed<()> {
        let Some(keyword) = self.section_keyword(&SECTIONS, seen) else { return Err(self.unknown_section()) };
        match keyword {
            "order" => template.order = Some(self.order()?),
            "longest" => template.longest = true,
            "expect" => template.expects.push(self.text_value("a string")?),
            "match" => self.match_section(template)?,
            "where" => {
                let open = self.expect(TokenKind::OpenCurly, "`{`")?;
                template.conditions.extend(self.conditions_in_braces(open, Setting::Where));
            }
            _ => {
                let open = self.expect(TokenKind::OpenCurly, "`{`")?;
                let statements = self.statements(open, 0);
                template.statements.extend(statements);
            }
        }
        Ok(())
    }

    /// Takes the word that a section begins with, one of these; reports one that stands in a template already.
    pub(super) fn section_keyword(
        &mut self,
        sections: &[&'static str],
        seen: &mut Vec<(&'static str, Span)>,
    ) -> Option<&'static str> {
        let word = self.word(0)?;
        let keyword = *sections.iter().find(|section| **section == word)?;
        let span = self.bump();
        if let Some((_, first)) = seen.iter().find(|(word, _)| *word == keyword && keyword != "expect") {
            let place = self.place(*first);
            self.error(codes::SECTION_AGAIN, span, format!("a second `{keyword}` in one template"), |d| {
                d.with_place(place, "the first one").with_hint("put both into one")
            });
        }
        seen.push((keyword, span));
        Some(keyword)
    }

    /// `7`, `-7`
    pub(super) fn order(&mut self) -> Parsed<Spanned<i64>> {
        let negative = self.take(TokenKind::Minus).is_some();
        let (value, span) = self.integer(negative)?;
        Ok(Spanned { value, span })
    }

    /// Leaves out what an unknown section holds, which cannot be judged.
    pub(super) fn skip_section(&mut self) {
        if self.take(TokenKind::OpenCurly).is_some() {
            self.skip_until(|cursor| cursor.is(TokenKind::CloseCurly) || cursor.at_section());
            self.take(TokenKind::CloseCurly);
        }
    }

    fn unknown_section(&mut self) -> Reported {
        let Some(word) = self.word(0) else {
            return self.unexpected("`order`, `longest`, `match`, `where`, `model`, `expect` or `}`");
        };
        let span = self.bump();
        let reported = self.error(codes::KEYWORD, span, format!("no section of a template is called `{word}`"), |d| {
            d.with_note("a template has `order`, `longest`, `match`, `where`, `model` and `expect`")
                .with_similar(word, SECTIONS)
        });
        self.skip_section();
        reported
    }

    fn match_section(&mut self, template: &mut Template) -> Parsed<()> {
        let open = self.expect(TokenKind::OpenCurly, "`{`")?;
        while self.block_goes_on(open, "`match`") {
            match self.match_item(0) {
                Ok(item) => template.items.push(item),
                Err(Reported) => self.skip_to_node(),
            }
        }
        Ok(())
    }

    /// A node, a sequence of them, alternatives, or what may be missing.
    fn match_item(&mut self, nesting: usize) -> Parsed<MatchItem> {
        if self.at_repeat() {
            return self.repeat().map(MatchItem::Repeat);
        }
        if self.at_choice() {
            return self.choice(nesting).map(MatchItem::Choice);
        }
        self.node().map(MatchItem::Node)
    }

    fn at_choice(&self) -> bool {
        self.is(TokenKind::OpenCurly) || self.at_optional()
    }

    /// Whether a brace after a node opens an alternative, not the node's attributes.
    fn at_block_of_nodes(&self) -> bool {
        use TokenKind::{Define, Equal, OpenCurly, OpenSquare, Word};
        let begins = |kind: Option<TokenKind>| matches!(kind, Some(Equal | Define | OpenSquare));
        let inside = (self.peek(1), self.word(1), self.peek(2));
        self.is(OpenCurly)
            && match inside {
                (Some(OpenCurly), ..)
                | (Some(Word), Some("repeat"), Some(Word))
                | (Some(Word), Some("optional"), Some(OpenCurly)) => true,
                (Some(Word), _, next) => begins(next),
                _ => false,
            }
    }

    fn at_optional(&self) -> bool {
        self.word(0) == Some("optional") && self.peek(1) == Some(TokenKind::OpenCurly)
    }

    /// `{ … } or { … }`, `optional { … }`
    fn choice(&mut self, nesting: usize) -> Parsed<Choice> {
        let optional = self.word(0) == Some("optional");
        let mut first = if optional { Some(self.bump()) } else { None };
        let mut ways = Vec::new();
        loop {
            let open = self.expect(TokenKind::OpenCurly, "`{`")?;
            first.get_or_insert(open);
            if nesting == MAX_NESTING {
                return Err(self.error(codes::MISPLACED, open, "alternatives lie in each other too deeply", |d| d));
            }
            let mut way = Vec::new();
            while self.block_goes_on(open, if optional { "`optional`" } else { "the alternative" }) {
                match self.match_item(nesting + 1) {
                    Ok(item) => way.push(item),
                    Err(Reported) => self.skip_to_node(),
                }
            }
            if way.is_empty() {
                let message = if optional { "`optional` without nodes" } else { "an alternative without nodes" };
                self.error(codes::UNEXPECTED, open.to(self.before()), message, |d| {
                    d.with_hint("write `optional { … }` for nodes that may be missing")
                });
            }
            ways.push(way);
            if self.word(0) != Some("or") || self.peek(1) != Some(TokenKind::OpenCurly) {
                break;
            }
            let or = self.bump();
            if optional {
                self.error(codes::UNEXPECTED, or, "`or` after `optional`", |d| {
                    d.with_hint("write `optional { { … } or { … } }`")
                });
            }
        }
        let span = first.unwrap_or_else(|| self.before()).to(self.before());
        if ways.len() == 1 && !optional {
            self.error(codes::UNEXPECTED, span, "one alternative alone", |d| {
                d.with_hint("write `{ … } or { … }`, or `optional { … }` for nodes that may be missing")
            });
        }
        Ok(Choice { ways, optional, span })
    }

    /// Whether a block has more to read; takes its closing brace, or reports that there is none.
    pub(super) fn block_goes_on(&mut self, open: Span, what: &str) -> bool {
        if self.take(TokenKind::CloseCurly).is_some() {
            return false;
        }
        if self.at_end() || self.at_item() || self.at_section() {
            self.unclosed(open, what);
            return false;
        }
        true
    }

    fn at_repeat(&self) -> bool {
        self.word(0) == Some("repeat") && self.peek(1) == Some(TokenKind::Word)
    }

    fn at_node(&self) -> bool {
        use TokenKind::{CloseSquare, Define, Equal, OpenSquare, Word};
        self.looks_like(&[Word, Equal])
            || self.looks_like(&[Word, Define])
            || self.looks_like(&[Word, OpenSquare, Word, CloseSquare, Equal])
    }

    fn skip_to_node(&mut self) {
        self.skip_until(|cursor| {
            cursor.at_node()
                || cursor.at_repeat()
                || cursor.at_optional()
                || cursor.at_section()
                || cursor.is(TokenKind::CloseCurly)
        });
    }

    /// `repeat x in 1..n min 1 { … }`
    fn repeat(&mut self) -> Parsed<Repeat> {
        let start = self.bump();
        let (index, from, count) = self.range()?;
        if from.value != 1 {
            self.error(codes::UNEXPECTED, from.span, "`repeat` counts from 1", |d| {
                d.with_hint(format!("write `1..{}`", count.value))
            });
        }
        let mut min = None;
        if self.word(0) == Some("min") {
            self.bump();
            let (value, span) = self.integer(false)?;
            min = Some(Spanned { value, span });
        }
        let open = self.expect(TokenKind::OpenCurly, "`min` or `{`")?;
        let mut nodes = Vec::new();
        while self.block_goes_on(open, "`repeat`") {
            if self.at_repeat() {
                let span = self.bump();
                self.error(codes::MISPLACED, span, "`repeat` within `repeat`", |d| {
                    d.with_note("a template repeats one sequence of nodes")
                });
                self.skip_until(|cursor| cursor.is(TokenKind::OpenCurly) || cursor.is(TokenKind::CloseCurly));
                if self.take(TokenKind::OpenCurly).is_some() {
                    self.skip_until(|cursor| cursor.is(TokenKind::CloseCurly));
                    self.take(TokenKind::CloseCurly);
                }
                continue;
            }
            if self.at_choice() {
                let open = self.is(TokenKind::OpenCurly);
                let span = self.bump();
                self.error(codes::MISPLACED, span, "alternatives within `repeat`", |d| {
                    d.with_note("each round of a sequence has the same nodes")
                        .with_hint("write `{ repeat … } or { repeat … }`, or two templates")
                });
                let mut inside = open || self.take(TokenKind::OpenCurly).is_some();
                while inside {
                    self.skip_until(|cursor| cursor.is(TokenKind::CloseCurly));
                    self.take(TokenKind::CloseCurly);
                    inside = self.word(0) == Some("or") && self.peek(1) == Some(TokenKind::OpenCurly);
                    if inside {
                        self.bump();
                        self.bump();
                    }
                }
                continue;
            }
            match self.node() {
                Ok(node) => nodes.push(node),
                Err(Reported) => self.skip_to_node(),
            }
        }
        Ok(Repeat { index, count, min, nodes, span: start.to(self.before()) })
    }

    /// `x in 1..n`
    fn range(&mut self) -> Parsed<(Ident, Spanned<i64>, Ident)> {
        let index = self.ident("an index variable")?;
        if self.word(0) == Some("in") {
            self.bump();
        } else {
            return Err(self.unexpected("`in`"));
        }
        let negative = self.take(TokenKind::Minus).is_some();
        let (value, span) = self.integer(negative)?;
        self.expect(TokenKind::Range, "`..`")?;
        let to = self.ident("the variable that holds the number of repetitions")?;
        if self.is(TokenKind::Minus) || self.is(TokenKind::Plus) {
            self.unexpected_with("`{`", |d| {
                d.with_note(format!("rounds go up to the last one, `{}`", to.value))
                    .with_hint("for another round, name it by its index: `f[x-1]` in `for x in 2..n`")
            });
            self.bump();
            self.take(TokenKind::Number);
        }
        Ok((index, Spanned { value, span }, to))
    }

    /// `e1 = Ac [j, k, m | a, v] { name: x }`
    fn node(&mut self) -> Parsed<NodePattern> {
        let name = self.ident("a node, such as `e1 = Ac [j, k, m | a, v]`")?;
        let mut index = None;
        if self.take(TokenKind::OpenSquare).is_some() {
            index = Some(self.ident("the index variable of `repeat`")?);
            if !self.is(TokenKind::CloseSquare) {
                return Err(self.unexpected_with("`]`", conditions_stand_apart));
            }
            self.bump();
        }
        if !self.slip(&[TokenKind::Define], "=") && !self.slip(&[TokenKind::Colon], "=") {
            self.expect(TokenKind::Equal, "`=`")?;
        }
        let kind = self.kind()?;
        let (scenario, thread, position, task, counter) = self.label()?;
        let mut attributes = Vec::new();
        if !self.at_block_of_nodes()
            && let Some(open) = self.take(TokenKind::OpenCurly)
        {
            while self.block_goes_on(open, "the attributes") {
                let attribute = self.ident("an attribute's name")?;
                self.expect(TokenKind::Colon, "`:`")?;
                attributes.push((attribute, self.term()?));
                self.take(TokenKind::Comma);
            }
        }
        let span = name.span.to(self.before());
        Ok(NodePattern { name, index, kind, scenario, thread, position, task, counter, attributes, span })
    }

    fn kind(&mut self) -> Parsed<Spanned<KindPattern>> {
        if let Some(span) = self.take(TokenKind::Underscore) {
            return Ok(Spanned { value: KindPattern::Any, span });
        }
        let word = self.ident("a type label: `Be`, `Ac`, `Ed`, `Fk(k)` or `Jn(k)`")?;
        let mut thread = None;
        if self.take(TokenKind::OpenRound).is_some() {
            thread = Some(self.term()?);
            self.expect(TokenKind::CloseRound, "`)`")?;
        }
        let span = word.span.to(self.before());
        let value = match (&*word.value, thread) {
            ("Be", None) => KindPattern::Begin,
            ("Ac", None) => KindPattern::Activity,
            ("Ed", None) => KindPattern::End,
            ("Fk", Some(thread)) => KindPattern::Fork(thread),
            ("Jn", Some(thread)) => KindPattern::Join(thread),
            (kind, thread) => {
                self.wrong_kind(kind, word.span, thread.map(|thread| thread.span));
                KindPattern::Any
            }
        };
        Ok(Spanned { value, span })
    }

    /// Reports a type label that does not exist or does not fit its argument. The pattern after it is still read.
    fn wrong_kind(&mut self, kind: &str, span: Span, thread: Option<Span>) {
        match (kind, thread) {
            ("Fk", _) => self.error(codes::KIND, span, "`Fk` needs the thread that it starts", |d| {
                d.with_hint("write `Fk(k2)`, or `Fk(_)` for any")
            }),
            ("Jn", _) => self.error(codes::KIND, span, "`Jn` needs the thread that it waits for", |d| {
                d.with_hint("write `Jn(k2)`, or `Jn(_)` for any")
            }),
            ("Be" | "Ac" | "Ed", Some(thread)) => {
                self.error(codes::KIND, thread, format!("`{kind}` takes no thread in brackets"), |d| {
                    d.with_note("only `Fk` and `Jn` name a second thread")
                })
            }
            _ => self.error(codes::KIND, span, format!("no node is of type `{kind}`"), |d| {
                d.with_note("the types are `Be` begin, `Ac` activity, `Ed` end, `Fk(k)` fork and `Jn(k)` join")
                    .with_similar(kind, KINDS)
            }),
        };
    }

    /// `[j, k, m | i, v]`
    fn label(&mut self) -> Parsed<Label> {
        self.expect(TokenKind::OpenSquare, "`[`")?;
        let scenario = self.term()?;
        self.expect(TokenKind::Comma, "`,` and the thread")?;
        let thread = self.term()?;
        self.expect(TokenKind::Comma, "`,` and the position in the thread")?;
        let position = self.term()?;
        self.expect(TokenKind::Bar, "`|` and the task")?;
        let task = self.term()?;
        self.expect(TokenKind::Comma, "`,` and the position in the task")?;
        let counter = self.term()?;
        self.expect(TokenKind::CloseSquare, "`]`")?;
        Ok((scenario, thread, position, task, counter))
    }

    /// Modelling statements up to the closing brace, which is taken too.
    fn statements(&mut self, open: Span, nesting: usize) -> Vec<Statement> {
        let mut statements = Vec::new();
        let what = if nesting == 0 { "`model`" } else { "`for`" };
        while self.block_goes_on(open, what) {
            match self.statement(nesting) {
                Ok(statement) => statements.push(statement),
                Err(Reported) => self.skip_until(|cursor| {
                    cursor.at_statement() || cursor.at_section() || cursor.is(TokenKind::CloseCurly)
                }),
            }
        }
        statements
    }

    /// Whether a statement begins here. No argument contains these sequences of tokens.
    fn at_statement(&self) -> bool {
        use TokenKind::{CloseSquare, Define, OpenRound, OpenSquare, Word};
        self.looks_like(&[Word, OpenRound])
            || self.looks_like(&[Word, Define])
            || self.looks_like(&[Word, TokenKind::Equal])
            || (self.looks_like(&[Word, OpenSquare])
                && (3..=6).any(|ahead| self.peek(ahead - 1) == Some(CloseSquare) && self.peek(ahead) == Some(Define)))
            || (self.word(0) == Some("for") && self.peek(1) == Some(Word))
    }

    fn statement(&mut self, nesting: usize) -> Parsed<Statement> {
        let start = self.here();
        if self.word(0) == Some("for") && self.peek(1) == Some(TokenKind::Word) {
            return self.for_statement(nesting);
        }
        if self.looks_like(&[TokenKind::Word, TokenKind::OpenRound]) {
            return self.operation();
        }
        if !self.is(TokenKind::Word) {
            return Err(self.unexpected("a statement, such as `addRequest(E, S)`"));
        }
        let entry = self.variable()?;
        let slip = self.slip(&[TokenKind::Equal], ":=") || self.slip(&[TokenKind::Less, TokenKind::Minus], ":=");
        if !slip {
            self.expect(TokenKind::Define, "`(` or `:=`")?;
        }
        let call = self.ident("`newEntry`")?;
        if &*call.value != "newEntry" {
            return Err(self.error(codes::KEYWORD, call.span, format!("`{}` gives no entry", call.value), |d| {
                d.with_note("what stands after `:=` is `newEntry(type, task)`").with_similar(&call.value, ["newEntry"])
            }));
        }
        self.expect(TokenKind::OpenRound, "`(`")?;
        let interaction = self.ident("an interaction type: `R`, `A` or `F`")?;
        self.expect(TokenKind::Comma, "`,` and the task")?;
        let task = self.term()?;
        let close = self.expect(TokenKind::CloseRound, "`)`")?;
        Ok(Statement::NewEntry { entry, interaction, task, span: start.to(close) })
    }

    /// `for x in 1..n { … }`
    fn for_statement(&mut self, nesting: usize) -> Parsed<Statement> {
        let start = self.bump();
        let (index, from, to) = self.range()?;
        let open = self.expect(TokenKind::OpenCurly, "`{`")?;
        if nesting >= MAX_NESTING {
            return Err(self.too_deep(start, "`for`"));
        }
        let body = self.statements(open, nesting + 1);
        Ok(Statement::For { index, from: from.value, to, body, span: start.to(self.before()) })
    }

    fn operation(&mut self) -> Parsed<Statement> {
        let name = self.ident("an operation")?;
        self.bump();
        let mut arguments = Vec::new();
        let close = loop {
            if let Some(close) = self.take(TokenKind::CloseRound) {
                break close;
            }
            arguments.push(self.argument()?);
            if !self.is(TokenKind::CloseRound) {
                self.expect(TokenKind::Comma, "`,` or `)`")?;
            }
        };
        let span = name.span.to(close);
        Ok(Statement::Operation { name, arguments, span })
    }

    fn argument(&mut self) -> Parsed<Spanned<Argument>> {
        let start = self.here();
        if !self.is(TokenKind::OpenSquare) {
            let term = self.term()?;
            return Ok(Spanned { value: Argument::Term(term.value), span: term.span });
        }
        let (scenario, thread, position, task, counter) = self.label()?;
        let node = NodeReference { scenario, thread, position, task, counter };
        Ok(Spanned { value: Argument::Node(Box::new(node)), span: start.to(self.before()) })
    }
}

/// What to do about a condition among the nodes of a pattern.
fn conditions_stand_apart(finding: Diagnostic) -> Diagnostic {
    finding.with_hint("a node is `e1 = Ac [j, k, m | a, v]`; conditions, also those on rounds, stand under `where`")
}
