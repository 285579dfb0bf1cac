//! Facts on the command line: `slow("7f3a91c2d0e4b856", 12)`, with `_` for what is open.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyelog::datalog::ast::{Atom, Program, Term};
use dyelog::datalog::base::{BaseFacts, Type};
use dyelog::datalog::eval::{Pattern, Relation};
use dyelog::datalog::syntax::{Item, parse_file, print_term};
use dyelog::datalog::value::Value;
use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::query::{Asked, Question, Scope, TraceFacts};
use dyelog::report::explain::facts::{Words, noun};

use crate::cli::args::ReadingArguments;
use crate::cli::query::{self, Over, Traces};
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, codes};

/// A rule file with what is asked of it, and the fact that is asked about.
pub struct About {
    /// The rules.
    pub program: Program,
    /// The same, ready to be asked: about the fact's relation, or about all that the file answers with.
    pub question: Question,
    /// The fact.
    pub fact: Option<Atom>,
}

/// Whether a file is one of rules, by its name.
pub fn is_rule_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "dl")
}

impl About {
    /// Reads the rules and opens the traces, whose sort decides what rules can ask.
    pub fn open<'a>(
        file: &PathBuf,
        fact: Option<&str>,
        traces: &'a [PathBuf],
        reading: &'a ReadingArguments,
        over: &Over,
        terminal: &mut Terminal,
    ) -> Result<(Self, Traces<'a>), Failure> {
        let fact = fact.map(atom).transpose()?;
        let (loaded, _) = query::program(Some(file), &[], terminal)?;
        let (opened, scope) = Traces::open(traces, reading, over)?;
        let chosen: Vec<String> = fact.iter().map(|fact| fact.relation.value.to_string()).collect();
        let mut question = Question::about_rules(&loaded.program, loaded.diagnostics, &chosen, scope)?;
        // Any relation may be asked about, also one that nothing uses.
        question.warnings.retain(|finding| finding.code != dyelog::datalog::codes::UNUSED);
        if let (Some(fact), [asked]) = (&fact, &*question.asked) {
            check_arity(fact, asked)?;
        }
        Ok((Self { program: loaded.program, question, fact }, opened))
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
    pub fn check_run(&self, run: Option<&str>) -> Result<(), Failure> {
        if run.is_none() || self.question.scope == Scope::Operation {
            return Ok(());
        }
        let message = "`--run` chooses one operation, and the rules hold over all of the trace";
        let finding = Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message);
        Err(finding.with_hint("leave it out; `operation(O, _, RUN)` in a rule tells operations apart").into())
    }
}

/// What facts are about, in words: an operation, or all that there is.
pub fn heading(scope: Scope, key: Option<(&str, &str)>) -> String {
    match (key, scope) {
        (Some((scenario, run)), _) => format!("{scenario} run={run}"),
        (None, Scope::Messages) => "all messages".to_owned(),
        (None, _) => "all operations".to_owned(),
    }
}

fn refuse(message: String) -> Diagnostic {
    Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message)
}

/// The fact that a text names.
fn atom(text: &str) -> Result<Atom, Failure> {
    let (mut items, findings) = parse_file(0, &Arc::from("fact"), &format!("{}.", text.trim().trim_end_matches('.')));
    let atom = match items.pop() {
        Some(Item::Rule(rule)) if items.is_empty() && findings.is_empty() && rule.body.is_empty() => rule.head,
        _ => {
            let mut finding = refuse(format!("`{text}` is no fact"));
            finding.notes.extend(findings.first().map(|found| found.message.clone()));
            return Err(finding.with_hint("a fact is `relation(1, \"text\", _)`, with `_` for what is open").into());
        }
    };
    let is_value = |term: &Term| matches!(term, Term::Wildcard | Term::Integer(_) | Term::Float(_) | Term::Symbol(_));
    match atom.arguments.iter().find(|term| !is_value(&term.value)) {
        Some(term) => {
            let finding = refuse(format!("`{}` is no value", print_term(&term.value)));
            Err(finding.with_hint("write `_` for what is open, and symbols in double quotes").into())
        }
        None => Ok(atom),
    }
}

fn check_arity(fact: &Atom, asked: &Asked) -> Result<(), Failure> {
    let (arity, given) = (asked.columns.len(), fact.arguments.len());
    if arity == given {
        return Ok(());
    }
    let columns: Vec<&str> = asked.columns.iter().map(|column| &*column.name).collect();
    let finding = refuse(format!("`{}` has {arity} columns, not {given}", asked.name));
    Err(finding.with_hint(format!("they are `{}({})`", asked.name, columns.join(", "))).into())
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
