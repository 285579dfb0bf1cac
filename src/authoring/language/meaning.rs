//! What a name of a rule file means, and where that is said.

use std::ops::Range;

use super::{Read, Target};
use crate::datalog::ast::{Ident, NodePattern, Rule, Span, Spanned, Statement, Template};
use crate::datalog::scope::Scopes;
use crate::datalog::syntax::{TokenKind as Kind, print_condition, print_kind, print_term};
use crate::report::draw::template as drawing;
use crate::tlc::operations::OPERATIONS;
use crate::tlc::rules::shipped_templates;

/// What kinds of nodes are.
const KINDS: [(&str, &str); 5] = [
    ("Be", "the first node of a thread"),
    ("Ac", "a node at which a thread does something, or passes from a task to another"),
    ("Ed", "the last node of a thread"),
    ("Fk", "a node that starts another thread: `Fk(k)`"),
    ("Jn", "a node that waits for another thread's end: `Jn(k)`"),
];

/// What a name stands for.
enum Meaning<'r> {
    Template(&'r Template),
    Shipped(Box<Template>),
    Relation(u32),
    Fact(&'static str, Vec<&'static str>, &'static str),
    Operation(&'static str, String, &'static str),
    Kind(&'static str, &'static str),
    Node(&'r NodePattern),
    Entry(Span),
    File(u32),
}

impl Read {
    /// What the name at a byte means, in Markdown, with the bytes of the name.
    pub fn hover(&self, at: usize) -> Option<(Range<usize>, String)> {
        let token = self.token_at(at)?;
        if let Some(text) = self.hover_on_event(token) {
            let token = &self.tokens[token];
            return Some((token.start as usize..token.end as usize, text));
        }
        let text = match self.meaning(token)? {
            Meaning::Template(template) => told(template),
            Meaning::Shipped(template) => format!("{}\n\nA shipped template.\n", told(&template).trim_end()),
            Meaning::Relation(number) => self.of_relation(number),
            Meaning::Fact(name, columns, says) => {
                format!("```text\n{name}({})\n```\n\n{says}\n", columns.join(", "))
            }
            Meaning::Operation(name, parameters, does) => format!("```text\n{name}({parameters})\n```\n\n{does}\n"),
            Meaning::Kind(name, is) => format!("`{name}`: {is}\n"),
            Meaning::Node(node) => {
                let term = |term: &Spanned<_>| print_term(&term.value);
                let kind = print_kind(&node.kind.value);
                let (thread, position) = (term(&node.thread), term(&node.position));
                let label = format!(
                    "{kind} [{}, {thread}, {position} | {}, {}]",
                    term(&node.scenario),
                    term(&node.task),
                    term(&node.counter)
                );
                format!("```text\n{} = {label}\n```\n", node.name.value)
            }
            Meaning::Entry(_) | Meaning::File(_) => return None,
        };
        let token = &self.tokens[token];
        Some((token.start as usize..token.end as usize, text))
    }

    /// Where the name at a byte is defined, in this file or one that it uses.
    pub fn definition(&self, at: usize) -> Option<Target> {
        let token = self.token_at(at)?;
        if let Some(target) = self.definition_on_event(token) {
            return Some(target);
        }
        match self.meaning(token)? {
            Meaning::Template(template) => self.target(template.name.span),
            Meaning::Relation(number) => self.target(Scopes::of(&self.program).first(number).relation.span),
            Meaning::Node(node) => self.target(node.name.span),
            Meaning::Entry(span) => self.target(span),
            Meaning::File(file) => self.target(Span { file, start: 0, end: 0 }),
            Meaning::Shipped(_) | Meaning::Fact(..) | Meaning::Operation(..) | Meaning::Kind(..) => None,
        }
    }

    fn meaning(&self, token: usize) -> Option<Meaning<'_>> {
        let start = self.tokens[token].start;
        let before = |back: usize| token.checked_sub(back).and_then(|token| self.word(token));
        if self.kind(token) == Some(Kind::Text) {
            let used = self.program.uses.iter().find(|used| used.span.file == 0 && used.span.start == start)?;
            return Some(Meaning::File(used.file));
        }
        let word = self.word(token)?;
        let called = self.kind(token + 1) == Some(Kind::OpenRound);
        let of_starts = self.kind(token.wrapping_sub(1)) == Some(Kind::OpenRound) && before(2) == Some("starts");
        if before(1) == Some("template") || of_starts {
            return self.template(word);
        }
        if let Some((name, is)) = KINDS.iter().find(|(name, _)| *name == word) {
            return Some(Meaning::Kind(name, is));
        }
        let name = Ident { value: word.into(), span: Span { file: 0, start, end: self.tokens[token].end } };
        let relation = || Scopes::of(&self.program).relation(&name).map(Meaning::Relation);
        if called {
            return operation(word).or_else(relation).or_else(|| {
                let fact = self.facts().into_iter().find(|(name, ..)| *name == word);
                fact.map(|(name, columns, says)| Meaning::Fact(name, columns, says))
            });
        }
        match self.template_at(start as usize) {
            Some(template) => named_in(template, word),
            // `export` and `output` name relations without brackets.
            None => relation(),
        }
    }

    fn template(&self, name: &str) -> Option<Meaning<'_>> {
        let own = self.program.templates.iter().find(|template| &*template.name.value == name);
        own.map(Meaning::Template).or_else(|| shipped(name).map(|template| Meaning::Shipped(Box::new(template))))
    }

    fn of_relation(&self, number: u32) -> String {
        let scopes = Scopes::of(&self.program);
        let rules = || self.program.rules.iter().filter(|rule| scopes.relation(&rule.head.relation) == Some(number));
        let head = |rule: &Rule| {
            let arguments: Vec<String> = rule.head.arguments.iter().map(|term| print_term(&term.value)).collect();
            format!("{}({})", rule.head.relation.value, arguments.join(", "))
        };
        let mut text = String::from("```text\n");
        rules().for_each(|rule| text.push_str(&format!("{}\n", head(rule))));
        text.push_str("```\n");
        for doc in rules().map(|rule| &rule.doc).filter(|doc| !doc.is_empty()) {
            text.push_str(&format!("\n{doc}\n"));
        }
        text
    }
}

/// A shipped template of that name.
fn shipped(name: &str) -> Option<Template> {
    shipped_templates().map(|(_, template)| template).find(|template| *template.name.value == *name)
}

fn operation(name: &str) -> Option<Meaning<'static>> {
    if name == "newEntry" {
        let does = "opens an entry of a type (R, A or F) on a task, for this visit";
        return Some(Meaning::Operation("newEntry", "type, task".to_owned(), does));
    }
    let known = OPERATIONS.iter().find(|known| known.name == name)?;
    let parameters: Vec<String> = known.parameters.iter().map(|one| format!("{one:?}").to_lowercase()).collect();
    Some(Meaning::Operation(known.name, parameters.join(", "), known.doc))
}

/// A node or an entry that a template names.
fn named_in<'t>(template: &'t Template, word: &str) -> Option<Meaning<'t>> {
    if let Some(node) = template.nodes().into_iter().find(|node| &*node.name.value == word) {
        return Some(Meaning::Node(node));
    }
    let mut open: Vec<&Statement> = template.statements.iter().rev().collect();
    while let Some(statement) = open.pop() {
        match statement {
            Statement::NewEntry { entry, .. } if &*entry.value.name == word => return Some(Meaning::Entry(entry.span)),
            Statement::For { body, .. } => open.extend(body.iter().rev()),
            _ => {}
        }
    }
    None
}

/// A template as its comment, its drawing and its conditions tell.
fn told(template: &Template) -> String {
    let order = template.order.as_ref().map(|order| format!(", order {}", order.value)).unwrap_or_default();
    let mut text = format!("**{}**{order}\n", template.name.value);
    if !template.doc.is_empty() {
        text.push_str(&format!("\n{}\n", template.doc));
    }
    text.push_str(&format!("\n```text\n{}```\n", drawing::text(template)));
    if !template.conditions.is_empty() {
        let conditions: Vec<String> =
            template.conditions.iter().map(|condition| format!("`{}`", print_condition(&condition.value))).collect();
        text.push_str(&format!("\nwhere {}\n", conditions.join(", ")));
    }
    text
}
