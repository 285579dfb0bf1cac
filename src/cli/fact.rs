//! Facts on the command line: `slow("op", 12)`, with `_` for what is open.

use std::path::Path;
use std::sync::Arc;

use dyelog::datalog::ast::{Atom, Program, Term};
use dyelog::datalog::base::Type;
use dyelog::datalog::eval::{CompiledRules, Evaluator, Pattern, Relation, compile};
use dyelog::datalog::syntax::{Item, parse_file};
use dyelog::datalog::value::Value;
use dyelog::diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog::query;
use dyelog::report::explain::facts::Words;
use dyelog::report::explain::place_words;
use dyelog::tlc::explain::Study;
use dyelog::tlc::facts;
use dyelog::trace::{NodeName, Origins};

use crate::cli::terminal::Terminal;
use crate::cli::{Failure, codes, rule_files};

/// A rule file that is ready to be asked.
pub struct Asked {
    /// Its rules.
    pub program: Program,
    /// The same, compiled.
    pub rules: CompiledRules,
}

/// Whether a file is one of rules, by its name.
pub fn is_rule_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "dl")
}

/// Says where relations of spans are answered: they have no proofs yet.
fn about_spans(Diagnostics(mut found): Diagnostics) -> Diagnostics {
    for finding in &mut found {
        let names = |name: &str| finding.message.contains(&format!("`{name}`"));
        let of_spans =
            query::schema::described().any(|(name, ..)| names(name) && !facts::schema().names().any(|own| own == name));
        if of_spans || query::standard::FILES.iter().any(|(name, _)| names(name)) {
            finding
                .hints
                .push("proofs are of facts about nodes; `dyelog query` derives rows from facts about spans".to_owned());
        }
    }
    Diagnostics(found)
}

impl Asked {
    /// Reads and checks a rule file.
    pub fn load(file: &Path, terminal: &mut Terminal) -> Result<Self, Failure> {
        let program = rule_files::alone(file, &mut terminal.sources).map_err(about_spans)?;
        let rules = compile(&program, facts::schema()).map_err(about_spans)?;
        Ok(Self { program, rules })
    }

    /// The fact that a text names: its relation and arguments.
    pub fn fact(&self, text: &str) -> Result<(Relation, Atom), Failure> {
        let refuse = |message: String| Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message);
        let (mut items, findings) =
            parse_file(0, &Arc::from("fact"), &format!("{}.", text.trim().trim_end_matches('.')));
        let atom = match items.pop() {
            Some(Item::Rule(rule)) if items.is_empty() && findings.is_empty() && rule.body.is_empty() => rule.head,
            _ => {
                let finding = refuse(format!("`{text}` is no fact"));
                return Err(finding
                    .with_hint("a fact is `relation(1, \"text\", _)`, with `_` for what is open")
                    .into());
            }
        };
        let name = &*atom.relation.value;
        let Some(relation) = self.rules.relation(name) else {
            let names = self.program.rules.iter().map(|rule| &*rule.head.relation.value);
            let known = names.chain(facts::schema().names());
            return Err(refuse(format!("no relation is called `{name}`")).with_similar(name, known).into());
        };
        let (arity, given) = (self.rules.arity(relation), atom.arguments.len());
        if arity != given {
            return Err(refuse(format!("`{name}` has {arity} columns, not {given}")).into());
        }
        if let Some(term) = atom
            .arguments
            .iter()
            .find(|term| !matches!(&term.value, Term::Wildcard | Term::Integer(_) | Term::Symbol(_)))
        {
            let written = dyelog::datalog::syntax::print_term(&term.value);
            let finding = refuse(format!("`{written}` is no value"));
            return Err(finding.with_hint("write `_` for what is open, and symbols in double quotes").into());
        }
        Ok((relation, atom))
    }

    /// The relations that the file answers with.
    pub fn outputs(&self) -> Vec<Relation> {
        let outputs = self.program.outputs.iter().filter(|output| output.span.file == 0);
        outputs.filter_map(|output| self.rules.relation(&output.relation.value)).collect()
    }
}

/// What a fact's arguments may mean in an operation: a node's name may be that of several nodes. Empty where it names none.
pub fn patterns(
    study: &Study<'_>,
    words: &Words<'_>,
    evaluator: &Evaluator<'_>,
    relation: Relation,
    atom: &Atom,
) -> Vec<Pattern> {
    let mut all: Vec<Pattern> = vec![Vec::new()];
    for (column, term) in atom.arguments.iter().enumerate() {
        let values: Vec<Option<Value>> = match &term.value {
            Term::Integer(number) => Value::integer(*number).map(Some).into_iter().collect(),
            Term::Symbol(text) if words.column(relation, column) == Type::Node => {
                let nodes = NodeName::parse(text).find(study.toeg, study.names);
                nodes.into_iter().map(|node| Some(Value::from(node))).collect()
            }
            // A text that neither the trace nor the rules have is in no row; the empty pattern says so.
            Term::Symbol(text) => evaluator.symbol(text).map(Some).into_iter().collect(),
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

/// A node as `--fact` takes it: by its line, or by thread and counter where one line or span makes several.
pub fn node_words(study: &Study<'_>, node: u32) -> String {
    if node as usize >= study.toeg.len() {
        return node.to_string();
    }
    let event = study.toeg.event(node);
    let operation = study.toeg.operation();
    let place = place_words(&operation.place(event));
    match operation.origins {
        Origins::Lines => format!("\"{place}\""),
        Origins::Items(_) => format!("\"{},{}\" at {place}", event.thread, event.index),
    }
}

/// The text of a symbol, of the trace or of the rule file alone.
pub fn symbol_words(study: &Study<'_>, evaluator: &Evaluator<'_>, value: Value) -> String {
    match value.as_symbol() {
        Some(name) => study.names.names.text(name).to_owned(),
        None => evaluator.own_text(value).unwrap_or_default().to_owned(),
    }
}
