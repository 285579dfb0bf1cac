//! A fact that is asked about, as `slow("7f3a91c2d0e4b856", 12)` names it, with `_` for what is open.

use std::sync::Arc;

use crate::datalog::ast::{Atom, Program, Term};
use crate::datalog::base::{BaseFacts, Type};
use crate::datalog::eval::{Pattern, Relation};
use crate::datalog::syntax::{Item, parse_file, print_term};
use crate::datalog::value::Value;
use crate::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::pipeline::codes;
use crate::query::{Asked, Question, Scope, TraceFacts};
use crate::report::explain::facts::{Words, noun};

/// A rule file with what is asked of it, and the fact that is asked about.
#[derive(Debug)]
pub struct AskedFact {
    /// The rules.
    pub program: Program,
    /// The same, ready to be asked: about the fact's relation, or about all that the file answers with.
    pub question: Question,
    /// The fact.
    pub fact: Option<Atom>,
}

impl AskedFact {
    /// What a program of rules, whose findings of reading are given, says of a fact, or of all that it answers with.
    ///
    /// # Errors
    /// What is wrong with the rules; a fact of a relation that there is not, or with another number of columns.
    pub fn new(
        program: Program,
        findings: Vec<Diagnostic>,
        fact: Option<Atom>,
        scope: Scope,
    ) -> Result<Self, Diagnostics> {
        let chosen: Vec<String> = fact.iter().map(|fact| fact.relation.value.to_string()).collect();
        let mut question = Question::about_rules(&program, findings, &chosen, scope)?;
        // Any relation may be asked about, also one that nothing uses.
        question.warnings.retain(|finding| finding.code != crate::datalog::codes::UNUSED);
        if let (Some(fact), [asked]) = (&fact, &*question.asked) {
            check_arity(fact, asked)?;
        }
        Ok(Self { program, question, fact })
    }

    /// What is asked of the facts about an operation, or about all: the relations and what is known of their rows. Empty where they have
    /// nothing that the fact names.
    pub fn patterns(&self, words: &Words<'_, '_>, unnamed: &mut Unnamed) -> Vec<(Relation, Pattern)> {
        match (&self.fact, &*self.question.asked) {
            (Some(fact), [asked]) => {
                let patterns = patterns(words, asked.relation, fact, unnamed);
                patterns.into_iter().map(|pattern| (asked.relation, pattern)).collect()
            }
            (_, all) => all.iter().map(|asked| (asked.relation, vec![None; asked.columns.len()])).collect(),
        }
    }

    /// Refuses to choose an operation by its run where rules hold over several.
    pub fn check_run(&self, run: Option<&str>) -> Result<(), Diagnostic> {
        if run.is_none() || self.question.scope == Scope::Operation {
            return Ok(());
        }
        let message = "`--run` chooses one operation, and the rules hold over all of the trace";
        let finding = Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message);
        Err(finding.with_hint("leave it out; `operation(O, _, RUN)` in a rule tells operations apart"))
    }

    /// What facts are about, in words: an operation, by scenario and run, or all that there is.
    pub fn subject(&self, key: Option<(&str, &str)>) -> String {
        match (key, self.question.scope) {
            (Some((scenario, run)), _) => format!("{scenario} run={run}"),
            (None, Scope::Messages) => "all messages".to_owned(),
            (None, _) => "all operations".to_owned(),
        }
    }
}

fn refuse(message: String) -> Diagnostic {
    Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message)
}

/// The fact that a text names.
///
/// # Errors
/// The text is no fact, or has something else than values and `_`.
pub fn parse_fact(text: &str) -> Result<Atom, Diagnostic> {
    let (mut items, findings) = parse_file(0, &Arc::from("fact"), &format!("{}.", text.trim().trim_end_matches('.')));
    let atom = match items.pop() {
        Some(Item::Rule(rule)) if items.is_empty() && findings.is_empty() && rule.body.is_empty() => rule.head,
        _ => {
            let mut finding = refuse(format!("`{text}` is no fact"));
            finding.notes.extend(findings.first().map(|found| found.message.clone()));
            return Err(finding.with_hint("a fact is `relation(1, \"text\", _)`, with `_` for what is open"));
        }
    };
    let is_value = |term: &Term| matches!(term, Term::Wildcard | Term::Integer(_) | Term::Float(_) | Term::Symbol(_));
    match atom.arguments.iter().find(|term| !is_value(&term.value)) {
        Some(term) => {
            let finding = refuse(format!("`{}` is no value", print_term(&term.value)));
            Err(finding.with_hint("write `_` for what is open, and symbols in double quotes"))
        }
        None => Ok(atom),
    }
}

fn check_arity(fact: &Atom, asked: &Asked) -> Result<(), Diagnostic> {
    let (arity, given) = (asked.columns.len(), fact.arguments.len());
    if arity == given {
        return Ok(());
    }
    let columns: Vec<&str> = asked.columns.iter().map(|column| &*column.name).collect();
    let finding = refuse(format!("`{}` has {arity} columns, not {given}", asked.name));
    Err(finding.with_hint(format!("they are `{}({})`", asked.name, columns.join(", "))))
}

/// What a fact's arguments may mean: a node's or span's name may be that of several. Empty where it names none.
fn patterns(words: &Words<'_, '_>, relation: Relation, fact: &Atom, unnamed: &mut Unnamed) -> Vec<Pattern> {
    let mut all: Vec<Pattern> = vec![Vec::new()];
    for (column, term) in fact.arguments.iter().enumerate() {
        let values: Vec<Option<Value>> = match &term.value {
            Term::Integer(number) => Value::integer(*number).map(Some).into_iter().collect(),
            Term::Float(number) => Value::float(*number).map(Some).into_iter().collect(),
            Term::Symbol(text) => {
                let kind = words.column(relation, column);
                match words.facts.named(kind, text) {
                    Some(found) => {
                        unnamed.saw(words.facts, kind, text, !found.is_empty());
                        found.into_iter().map(Some).collect()
                    }
                    None => words.facts.symbol(text).map(Some).into_iter().collect(),
                }
            }
            _ => vec![None],
        };
        let longer = |row: &Pattern| -> Vec<Pattern> {
            values.iter().map(|value| row.iter().copied().chain([*value]).collect()).collect()
        };
        all = all.iter().flat_map(longer).take(PATTERNS).collect();
    }
    all
}

/// How many rows a fact may name by names of several nodes.
const PATTERNS: usize = 1000;

/// Names of a fact that nothing has, as far as is known.
#[derive(Debug, Default)]
pub struct Unnamed {
    names: Vec<One>,
}

#[derive(Debug)]
struct One {
    kind: Type,
    text: Arc<str>,
    found: bool,
    others: Vec<String>,
}

/// How many names are kept to suggest one of.
const KEPT: usize = 10_000;

impl Unnamed {
    fn saw(&mut self, facts: &TraceFacts<'_>, kind: Type, text: &Arc<str>, found: bool) {
        let place = self.names.iter().position(|one| one.kind == kind && one.text == *text).unwrap_or_else(|| {
            self.names.push(One { kind, text: Arc::clone(text), found: false, others: Vec::new() });
            self.names.len() - 1
        });
        let one = &mut self.names[place];
        one.found |= found;
        if !one.found {
            let room = KEPT - one.others.len();
            one.others.extend(facts.labels(kind).take(room));
        }
    }

    /// Adds to a finding which names the traces do not have.
    pub fn told(&self, mut finding: Diagnostic) -> Diagnostic {
        for one in self.names.iter().filter(|one| !one.found) {
            let what = noun(one.kind).unwrap_or("value");
            finding = finding.with_note(format!("the traces have no {what} `{}`", one.text));
            finding = finding.with_similar(&one.text, one.others.iter().map(String::as_str));
            if one.kind == Type::Node {
                finding = finding.with_hint("nodes are named as by `dyelog explain --node`");
            }
        }
        finding
    }
}
