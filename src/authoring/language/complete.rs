//! What may come next at a place of a rule file.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Read;
use super::context::Context;
use crate::datalog::scope::Scopes;
use crate::datalog::syntax::{KEYWORDS, TokenKind as Kind, print_term};
use crate::query::standard;
use crate::tlc::facts::KINDS;
use crate::tlc::operations::OPERATIONS;
use crate::tlc::rules::{SHIPPED, shipped_templates};

/// What a proposal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProposalKind {
    /// A word of the language.
    Keyword,
    /// A relation of rules or of facts.
    Relation,
    /// A column of a relation.
    Column,
    /// A modelling operation.
    Operation,
    /// A template.
    Template,
    /// A file to use.
    File,
    /// A name of the same item.
    Name,
}

/// What may be written at a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Proposal {
    /// What it is.
    pub kind: ProposalKind,
    /// What is written, and what it is chosen by.
    pub label: String,
    /// What it means, in a few words.
    pub detail: String,
}

impl Proposal {
    pub(super) fn new(kind: ProposalKind, label: &str, detail: impl Into<String>) -> Self {
        Self { kind, label: label.to_owned(), detail: detail.into() }
    }
}

pub(super) fn keywords(words: &[&str]) -> Vec<Proposal> {
    words.iter().map(|word| Proposal::new(ProposalKind::Keyword, word, "")).collect()
}

impl Read {
    /// What may stand at a byte, whatever of it is written already: editors choose by that. In the order of kinds and names.
    pub fn proposals(&self, at: usize) -> Vec<Proposal> {
        let (context, item) = self.context(at);
        let mut found = match &context {
            Context::Item => {
                let mut found = keywords(&["template", "use", "export", "output"]);
                found.extend(self.own_relations());
                found
            }
            Context::Relations => self.own_relations(),
            Context::Body => self.conditions(&["count", "sum", "min", "max"]),
            Context::Section if self.is_on_event(item) => {
                keywords(&["order", "on", "match", "where", "assert", "model", "retire"])
            }
            Context::Section => keywords(&["order", "longest", "expect", "match", "where", "model", "on"]),
            Context::OnEvent(section) => self.proposed_on_event(*section),
            Context::Match => keywords(&["Be", "Ac", "Ed", "Fk", "Jn", "repeat", "optional", "or"]),
            Context::Attributes => {
                let column = |name, says: &str| Proposal::new(ProposalKind::Column, name, says);
                vec![column("name", "the activity's name"), column("op", "the service's name")]
            }
            Context::Where => self.conditions(&["starts", "every", "some"]),
            Context::Model => operations(),
            Context::Argument(name, place) => self.arguments(name, *place),
            Context::Label => Vec::new(),
            Context::File => files(),
        };
        if !matches!(context, Context::File | Context::Section | Context::Item | Context::Relations) {
            found.extend(self.names(item, at));
        }
        found.sort();
        found.dedup();
        found
    }

    /// Relations that a condition may ask, and words that begin one.
    fn conditions(&self, words: &[&str]) -> Vec<Proposal> {
        let facts = self.facts();
        let facts = facts.iter().map(|(name, columns, says)| {
            Proposal::new(ProposalKind::Relation, name, format!("({}): {says}", columns.join(", ")))
        });
        facts.chain(self.own_relations()).chain(keywords(words)).collect()
    }

    /// Relations that rules of this file, or of those that it uses, define.
    pub(super) fn own_relations(&self) -> Vec<Proposal> {
        let scopes = Scopes::of(&self.program);
        let names: BTreeSet<&str> = scopes.names(0).into_iter().collect();
        let told = |name: &&str| Proposal::new(ProposalKind::Relation, name, Self::columns(&scopes, name).join(", "));
        names.iter().map(told).collect()
    }

    /// The columns of a relation, by the terms of its first head.
    fn columns(scopes: &Scopes<'_>, name: &str) -> Vec<String> {
        let first = scopes.relation_in(0, name).map(|number| scopes.first(number));
        first.map_or_else(Vec::new, |head| head.arguments.iter().map(|term| print_term(&term.value)).collect())
    }

    /// What may be an argument of a relation, an operation or `starts`.
    fn arguments(&self, name: &str, place: usize) -> Vec<Proposal> {
        if name == "starts" {
            return if place == 0 { self.all_templates() } else { Vec::new() };
        }
        if name == "newEntry" && place == 0 {
            let types = [("R", "waits for a reply"), ("A", "does not wait"), ("F", "was forwarded")];
            return types.map(|(label, says)| Proposal::new(ProposalKind::Keyword, label, says)).into();
        }
        let facts = self.facts();
        let fact = facts.iter().find(|(known, ..)| *known == name);
        let columns: Vec<String> = match fact {
            Some((_, columns, _)) => columns.iter().map(|&column| column.to_owned()).collect(),
            None => Self::columns(&Scopes::of(&self.program), name),
        };
        let column = columns.get(place).filter(|column| column.starts_with(|c: char| c.is_alphabetic()));
        column
            .map(|column| Proposal::new(ProposalKind::Column, column, format!("column {} of {name}", place + 1)))
            .into_iter()
            .collect()
    }

    fn all_templates(&self) -> Vec<Proposal> {
        let own = self.program.templates.iter().map(|template| Arc::clone(&template.name.value));
        let shipped = shipped_templates().map(|(_, template)| template.name.value);
        let names: BTreeSet<Arc<str>> = own.chain(shipped).collect();
        names.iter().map(|name| Proposal::new(ProposalKind::Template, name, "")).collect()
    }

    /// Names that the item has, nodes and variables, but for the one that is being written.
    fn names(&self, item: usize, at: usize) -> Vec<Proposal> {
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for number in item..self.tokens.len() {
            if number > item && self.begins_item(number) {
                break;
            }
            let (Some(word), token) = (self.word(number), &self.tokens[number]) else { continue };
            let written = (token.start as usize) < at && at <= token.end as usize;
            let follows = self.kind(number + 1);
            let named = number > item && self.word(number - 1) == Some("template");
            let other = matches!(follows, Some(Kind::OpenRound | Kind::OpenCurly | Kind::Colon));
            let reserved = KEYWORDS.contains(&word) || KINDS.contains(&word);
            if !(written || named || other || reserved) {
                names.insert(word);
            }
        }
        names.into_iter().map(|name| Proposal::new(ProposalKind::Name, name, "")).collect()
    }
}

fn operations() -> Vec<Proposal> {
    let known = OPERATIONS.iter().map(|one| Proposal::new(ProposalKind::Operation, one.name, one.doc));
    let more = Proposal::new(ProposalKind::Operation, "newEntry", "opens an entry of a type on a task");
    known.chain([more]).chain(keywords(&["for"])).collect()
}

fn files() -> Vec<Proposal> {
    let all = standard::FILES.iter().map(|(name, _)| *name).chain(SHIPPED.iter().map(|(name, _)| *name));
    let all = all.chain(["same.dl"]);
    all.map(|name| Proposal::new(ProposalKind::File, name, "shipped")).collect()
}
