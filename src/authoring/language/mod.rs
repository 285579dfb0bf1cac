//! What editors ask about a rule file: what a name means, where it stands, what may come next.
//!
//! A file is read as far as it can be, so that all of this works while it is being written. Offsets are bytes of the text.

mod complete;
mod context;
mod events;
mod meaning;

use std::ops::Range;
use std::sync::Arc;

use crate::datalog::ast::{Program, Span, Template};
use crate::datalog::syntax::{self, MAX_BYTES, Token, TokenKind, tokens};
use crate::query::standard;
use crate::tlc::facts;

pub use complete::{Proposal, ProposalKind};

/// A rule file with what it uses, as far as it can be read.
#[derive(Clone, Debug)]
pub struct Read {
    text: Arc<str>,
    program: Program,
    /// Without comments.
    tokens: Vec<Token>,
}

/// A place in one of the files, by the name that it is used by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The file.
    pub file: Arc<str>,
    /// The file's text.
    pub text: Arc<str>,
    /// Where in it.
    pub bytes: Range<usize>,
}

impl Read {
    /// Reads a file; `resolver` gives the texts of files that it uses, where those are not shipped.
    pub fn new(name: &Arc<str>, text: &Arc<str>, resolver: &dyn Fn(&str) -> Option<Arc<str>>) -> Self {
        let program = syntax::read(name, text, &|used| standard::resolve(used, resolver)).program;
        let all = if text.len() > MAX_BYTES { Vec::new() } else { tokens(text) };
        let tokens = all.into_iter().filter(|token| !token.kind.is_comment()).collect();
        Self { text: Arc::clone(text), program, tokens }
    }

    /// The file's own templates, with the bytes of their names.
    pub fn templates(&self) -> Vec<(Arc<str>, Range<usize>)> {
        let own =
            self.own_templates().map(|template| &template.name).chain(self.own_event_templates().map(|one| &one.name));
        own.map(|name| (Arc::clone(&name.value), name.span.range())).collect()
    }

    /// The bytes of the name under `use` by which a file comes in, directly or by way of others.
    pub fn way_to(&self, file: &str) -> Option<Range<usize>> {
        let uses = &self.program.uses;
        let mut wanted = self.program.files.iter().position(|known| *known.name == *file)? as u32;
        // Each step goes to a file that was read earlier, so that there are no circles.
        while let Some(used) = uses.iter().find(|used| used.file == wanted && used.span.file < wanted) {
            if used.span.file == 0 {
                return Some(used.span.range());
            }
            wanted = used.span.file;
        }
        None
    }

    /// The files that it uses, directly or by way of others.
    pub fn used(&self) -> impl Iterator<Item = (Arc<str>, Arc<str>)> {
        self.program.files.iter().skip(1).map(|file| (Arc::clone(&file.name), Arc::clone(&file.text)))
    }

    fn own_templates(&self) -> impl Iterator<Item = &Template> {
        self.program.templates.iter().filter(|template| template.name.span.file == 0)
    }

    /// The template of the file that has this byte.
    fn template_at(&self, at: usize) -> Option<&Template> {
        self.own_templates().find(|template| template.span.range().contains(&at))
    }

    /// Whether the file is for templates: what else stands in it asks for facts of the graph alone.
    fn is_of_templates(&self) -> bool {
        !self.program.templates.is_empty()
    }

    /// Facts that rules of the file may ask for: names, columns, what a row says.
    fn facts(&self) -> Vec<(&'static str, Vec<&'static str>, &'static str)> {
        let of_graph = |name: &str| facts::RELATIONS.iter().any(|(known, ..)| *known == name);
        let all = crate::query::schema::described();
        all.filter(|(name, ..)| !self.is_of_templates() || of_graph(name)).collect()
    }

    fn word(&self, token: usize) -> Option<&str> {
        let token = self.tokens.get(token)?;
        (token.kind == TokenKind::Word).then(|| self.slice(token))
    }

    fn slice(&self, token: &Token) -> &str {
        &self.text[token.start as usize..token.end as usize]
    }

    fn kind(&self, token: usize) -> Option<TokenKind> {
        self.tokens.get(token).map(|token| token.kind)
    }

    /// The token that has this byte, or ends at it.
    fn token_at(&self, at: usize) -> Option<usize> {
        let after = self.tokens.partition_point(|token| (token.start as usize) <= at);
        let at_end = |token: &Token| (token.start as usize) <= at && at <= token.end as usize;
        let here = after.checked_sub(1)?;
        // Between two tokens the word is meant.
        let before = here
            .checked_sub(1)
            .filter(|before| self.kind(*before) == Some(TokenKind::Word) && self.tokens[*before].end as usize == at);
        match (self.kind(here), before) {
            (Some(TokenKind::Word | TokenKind::Text), _) if at_end(&self.tokens[here]) => Some(here),
            (_, Some(before)) => Some(before),
            _ => at_end(&self.tokens[here]).then_some(here),
        }
    }

    fn target(&self, span: Span) -> Option<Target> {
        let file = self.program.files.get(span.file as usize)?;
        Some(Target { file: Arc::clone(&file.name), text: Arc::clone(&file.text), bytes: span.range() })
    }
}
