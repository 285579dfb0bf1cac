//! Where in a rule file a place is: within which brackets, of what.

use super::Read;
use super::events::Section;
use crate::datalog::syntax::TokenKind as Kind;

/// What may stand at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Context {
    /// An item, at the top of the file.
    Item,
    /// A literal of a rule.
    Body,
    /// A relation of the file, after `export` or `output`.
    Relations,
    /// A section of a template.
    Section,
    /// What may be named in a template on an event.
    OnEvent(Section),
    /// A node under `match`.
    Match,
    /// An attribute of a node.
    Attributes,
    /// A condition under `where`.
    Where,
    /// A statement under `model`.
    Model,
    /// An argument, by its place from 0, of what is named.
    Argument(String, usize),
    /// A term of a node's label.
    Label,
    /// The name of a file under `use`.
    File,
}

/// A bracket that is open.
struct Open {
    context: Context,
    commas: usize,
}

impl Read {
    /// What may stand at a byte, and the first token of the item that it is in. The word that ends at the byte is not counted: it is
    /// being written.
    pub(super) fn context(&self, at: usize) -> (Context, usize) {
        let mut open: Vec<Open> = Vec::new();
        let (mut item, mut body) = (0, false);
        for (number, token) in self.tokens.iter().enumerate() {
            let (start, end) = (token.start as usize, token.end as usize);
            if start >= at {
                break;
            }
            let word_before = number.checked_sub(1).and_then(|before| self.word(before));
            if matches!(token.kind, Kind::Text | Kind::OpenText)
                && (at < end || token.kind == Kind::OpenText && at <= end)
            {
                let of_use = matches!(word_before, Some("use" | "include"));
                return (if of_use { Context::File } else { Context::Label }, item);
            }
            if token.kind == Kind::Word && at <= end {
                break;
            }
            if open.is_empty() && self.begins_item(number) {
                (item, body) = (number, false);
            }
            match token.kind {
                Kind::OpenCurly => open.push(Open { context: self.of_block(number, open.last(), body), commas: 0 }),
                Kind::OpenSquare => open.push(Open { context: Context::Label, commas: 0 }),
                Kind::OpenRound => {
                    open.push(Open {
                        context: Context::Argument(word_before.unwrap_or_default().to_owned(), 0),
                        commas: 0,
                    });
                }
                Kind::CloseCurly | Kind::CloseSquare | Kind::CloseRound => drop(open.pop()),
                Kind::Comma => {
                    if let Some(last) = open.last_mut() {
                        last.commas += 1;
                    }
                }
                Kind::If => body = true,
                Kind::Dot if open.is_empty() => (item, body) = (number + 1, false),
                _ => {}
            }
        }
        let context = match open.pop() {
            Some(Open { context: Context::Argument(name, _), commas }) => Context::Argument(name, commas),
            Some(Open { context, .. }) => self.of_event(context, item, at),
            None if body => Context::Body,
            None if matches!(self.word(item), Some("export" | "output")) && (self.tokens[item].end as usize) < at => {
                Context::Relations
            }
            None => Context::Item,
        };
        (context, item)
    }

    /// The same, in a template on an event where the item is one.
    fn of_event(&self, context: Context, item: usize, at: usize) -> Context {
        let before = self.tokens.partition_point(|token| (token.end as usize) < at);
        let after_on = before.checked_sub(1).is_some_and(|number| self.word(number) == Some("on"));
        match context {
            Context::Section if after_on => Context::OnEvent(Section::Event),
            context if !self.is_on_event(item) => context,
            Context::Match => Context::OnEvent(Section::Match),
            Context::Where => Context::OnEvent(Section::Where),
            Context::Model => Context::OnEvent(Section::Model),
            context => context,
        }
    }

    /// Whether an item may begin at a token: it is a word without indentation.
    pub(super) fn begins_item(&self, number: usize) -> bool {
        let start = self.tokens[number].start as usize;
        self.kind(number) == Some(Kind::Word) && (start == 0 || self.text.as_bytes()[start - 1] == b'\n')
    }

    /// What stands in the block that a curly bracket opens.
    fn of_block(&self, bracket: usize, outer: Option<&Open>, body: bool) -> Context {
        let before = |back: usize| bracket.checked_sub(back).and_then(|number| self.word(number));
        if before(2) == Some("template") {
            return Context::Section;
        }
        match (before(1), outer.map(|open| &open.context)) {
            (Some("match"), Some(Context::Section)) => Context::Match,
            (Some("where"), Some(Context::Section)) => Context::Where,
            (Some("model"), Some(Context::Section)) => Context::Model,
            (Some("assert"), Some(Context::Section)) => Context::OnEvent(Section::Assert),
            (Some("retire"), Some(Context::Section)) => Context::OnEvent(Section::Retire),
            (_, Some(Context::Match)) if self.kind(bracket.wrapping_sub(1)) == Some(Kind::CloseSquare) => {
                Context::Attributes
            }
            // The block of a `repeat`, a `for`, a quantifier or an aggregate has what is around it.
            (_, Some(outer)) => outer.clone(),
            (_, None) if body => Context::Body,
            _ => Context::Item,
        }
    }
}
