//! What is asked: a program of rules, the relations to show, and over what.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use indexmap::IndexSet;

use crate::datalog::ast::{Atom, Ident, Program, Rule, Term};
use crate::datalog::base::{BaseSchema, Type};
use crate::datalog::check::{check_own, column_types};
use crate::datalog::codes as rule_codes;
use crate::datalog::eval::{CompiledRules, Relation, compile};
use crate::datalog::scope::Scopes;
use crate::diagnostic::{Diagnostic, Diagnostics, Place, Severity, similar};
use crate::query::codes;
use crate::query::constants::Constant;
use crate::query::needed::{self, atoms};
use crate::query::patterns;
use crate::query::schema::{self, Own, Subject};
use crate::tlc::facts;
use crate::trace::Wanted;

/// Over what rules are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Over each operation by itself.
    #[default]
    Operation,
    /// Over all operations at once.
    Trace,
    /// Over all messages of traces that tell no operations.
    Messages,
}

/// A column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name: as the file declares it, else the variable of the first rule.
    pub name: Arc<str>,
    /// What it holds.
    pub kind: Type,
}

/// A relation that is asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Its name.
    pub name: Arc<str>,
    /// Its columns.
    pub columns: Vec<Column>,
    /// What the evaluator knows it by.
    pub relation: Relation,
}

/// A question that is ready to be asked.
#[derive(Debug)]
pub struct Question {
    /// What is asked for.
    pub asked: Vec<Asked>,
    /// Over what.
    pub scope: Scope,
    /// What there is to say about the rules.
    pub warnings: Vec<Diagnostic>,
    /// The relations of facts that the rules may ask.
    pub schema: &'static BaseSchema,
    /// What the columns of the relations that rules define are, by their numbers.
    pub types: Vec<Vec<Type>>,
    /// The rules, ready to be evaluated.
    pub rules: CompiledRules,
    pub(super) wanted: Arc<Wanted>,
    /// The regular expressions of the rules.
    pub(super) patterns: patterns::Read,
    /// Where each rule stands.
    pub(super) places: Vec<Place>,
    /// Whether any relation of spans is asked.
    pub(super) asks_spans: bool,
    pub(super) constants: Vec<Constant>,
}

impl Question {
    /// A question by a program, whose findings of reading are given. `chosen` are relations by name. Where none is chosen, those
    /// are shown that the first file declares as output, and those whose rules stand at the byte `from` of it or behind: rules
    /// that were added on the command line. Where there is neither, all that it defines, but for names that begin with `_`.
    ///
    /// # Errors
    /// What is wrong with the rules, or with what is asked for.
    pub fn new(
        program: &Program,
        findings: Vec<Diagnostic>,
        from: usize,
        chosen: &[String],
        scope: Scope,
    ) -> Result<Self, Diagnostics> {
        Self::over(program, findings, from, chosen, scope, schema::schema())
    }

    /// A question about a rule file of any sort: also of one that has templates, whose relations ask for facts of the graph alone.
    ///
    /// # Errors
    /// As for [`Question::new`].
    pub fn about_rules(
        program: &Program,
        findings: Vec<Diagnostic>,
        chosen: &[String],
        scope: Scope,
    ) -> Result<Self, Diagnostics> {
        Self::over(program, findings, usize::MAX, chosen, scope, room_of(program))
    }

    fn over(
        program: &Program,
        findings: Vec<Diagnostic>,
        from: usize,
        chosen: &[String],
        scope: Scope,
        schema: &'static BaseSchema,
    ) -> Result<Self, Diagnostics> {
        let mut found = findings;
        found.extend(check_own(program, schema, &[0]));
        if std::ptr::eq(schema, schema::schema()) {
            found.extend(patterns::check(program));
        }
        let with_templates = std::ptr::eq(schema, facts::schema());
        for template in program.templates.iter().filter(|_| !with_templates) {
            let place = program.place(template.name.span);
            let message = format!("template `{}` stands among questions", template.name.value);
            found.push(
                Diagnostic::error(codes::TEMPLATE, place, message)
                    .with_hint("give the file of the template by `--rules`: then `match` and its kin tell of it"),
            );
        }
        for template in &program.event_templates {
            let place = program.place(template.name.span);
            let message = format!("template `{}` on events stands among questions", template.name.value);
            found.push(
                Diagnostic::error(codes::TEMPLATE, place, message)
                    .with_hint("give its file to `matches` or `model` by `--rules`; questions ask what it finds"),
            );
        }
        if found.iter().any(|finding| finding.severity == Severity::Error) {
            return Err(Diagnostics(found));
        }
        let rules = compile(program, schema)?;
        let names = if chosen.is_empty() { shown(program, from) } else { distinct(chosen) };
        let types = column_types(program, schema);
        let types: Vec<Vec<Type>> = (0..).zip(types).map(|(number, columns)| whole(&rules, number, columns)).collect();
        let mut asked = Vec::new();
        let mut errors = Vec::new();
        let heads = Heads::of(program);
        for name in names {
            match rules.relation(&name) {
                Some(Relation::Base(base)) if schema::own(base) == Some(Own::Regex) => errors.push(patterns::endless()),
                Some(relation) => asked.push(heads.describe(&name, relation, &types)),
                None => errors.push(no_relation(program, &name)),
            }
        }
        if !errors.is_empty() {
            return Err(Diagnostics(errors));
        }
        if asked.is_empty() {
            let finding = Diagnostic::error(codes::NOTHING_ASKED, Place::Nowhere, "nothing is asked for");
            return Err(finding.with_hint("`-e 'slow(S) :- duration(S, D), D > 1000000.'` asks for `slow`").into());
        }
        drop_unused(&mut found, program, &asked, !chosen.is_empty());
        let needed = needed::rules(program, asked.iter().map(|asked| asked.relation));
        let errors = out_of_scope(program, &needed, &asked, scope);
        if !errors.is_empty() {
            return Err(Diagnostics(errors));
        }
        let mut asks_spans = false;
        let mut look = |name: &str| asks_spans |= schema::is_of_spans(name);
        atoms(&needed, &mut |atom| look(&atom.relation.value));
        for one in &asked {
            look(&one.name);
        }
        let constants = Constant::of(program, &needed);
        let wanted = Arc::new(wanted(&needed, &asked));
        let patterns = patterns::of(&needed);
        let places = program.rules.iter().map(|rule| program.place(rule.head.span)).collect();
        Ok(Self {
            asked,
            scope,
            warnings: found,
            schema,
            types,
            rules,
            wanted,
            patterns,
            places,
            asks_spans,
            constants,
        })
    }

    /// The question without those relations.
    #[must_use]
    pub fn only(mut self, keep: impl Fn(&Asked) -> bool) -> Self {
        self.asked.retain(keep);
        self
    }
}

/// The types of a relation's columns, where numbers are whole if evaluation never gives the column a fraction.
fn whole(rules: &CompiledRules, relation: u32, columns: Vec<Type>) -> Vec<Type> {
    let fractions = rules.fractions(Relation::Derived(relation));
    let of = |(column, kind): (usize, Type)| match kind {
        Type::Number if fractions.get(column) == Some(&false) => Type::Integer,
        kind => kind,
    };
    columns.into_iter().enumerate().map(of).collect()
}

/// What there is to say of a rule file that only questions can use: one without templates, which reads more than facts of nodes. `None` of
/// any other file.
pub fn check(program: &Program, findings: &[Diagnostic]) -> Option<Vec<Diagnostic>> {
    let of_nodes = |name: &str| facts::schema().get(name).is_some();
    let is_question = program.templates.is_empty() && reads(program, |name| !of_nodes(name));
    is_question.then(|| {
        let own = check_own(program, schema::schema(), &[0]).into_iter().chain(patterns::check(program));
        findings.iter().cloned().chain(own).collect()
    })
}

/// Says of relations that a file with templates lacks, where they are facts of questions, that they are.
pub fn tell_facts_of_questions(program: &Program, findings: &mut [Diagnostic]) {
    let bodies = program.rules.iter().map(|rule| &rule.body);
    for body in bodies.chain(program.templates.iter().map(|template| &template.conditions)) {
        needed::body_atoms(body, &mut |atom| {
            let name = &*atom.relation.value;
            if facts::schema().get(name).is_some() || schema::schema().get(name).is_none() {
                return;
            }
            let place = program.place(atom.relation.span);
            for finding in &mut *findings {
                if finding.code == rule_codes::RELATION && finding.place == place {
                    finding.notes = vec![format!(
                        "`{name}` is a fact of `dyelog query`; templates match before there are spans, matches and entries"
                    )];
                    let graph: Vec<String> = facts::schema().names().map(|name| format!("`{name}`")).collect();
                    finding.hints = vec![format!("templates ask facts of the graph: {}", graph.join(", "))];
                }
            }
        });
    }
}

/// The facts that a rule file is about, by what it reads: those of the graph alone where nothing else is read, and templates stand in it or
/// a relation of its own has the name of another fact. Elsewhere all facts.
fn room_of(program: &Program) -> &'static BaseSchema {
    let beyond = |name: &str| facts::schema().get(name).is_none() && schema::schema().get(name).is_some();
    let of_graph = !program.templates.is_empty() || own(program).into_iter().any(beyond);
    if of_graph && !reads(program, beyond) { facts::schema() } else { schema::schema() }
}

/// Whether rules read such a relation that they do not define.
fn reads(program: &Program, is_such: impl Fn(&str) -> bool) -> bool {
    let own = own(program);
    let rules: Vec<&Rule> = program.rules.iter().collect();
    let mut found = false;
    atoms(&rules, &mut |atom| {
        let name = &*atom.relation.value;
        found |= is_such(name) && !own.contains(name);
    });
    found
}

/// The names of the relations that rules define.
fn own(program: &Program) -> BTreeSet<&str> {
    program.rules.iter().map(|rule| &*rule.head.relation.value).collect()
}

/// What is shown is used, and so is a `use` that brings it.
fn drop_unused(found: &mut Vec<Diagnostic>, program: &Program, asked: &[Asked], chosen: bool) {
    let names: BTreeSet<&str> = asked.iter().map(|asked| &*asked.name).collect();
    let heads = program.rules.iter().map(|rule| &rule.head.relation);
    let heads = heads.filter(|head| names.contains(&*head.value));
    let shown: BTreeSet<Place> = heads.map(|head| program.place(head.span)).collect();
    found.retain(|finding| match finding.code {
        rule_codes::UNUSED => !shown.contains(&finding.place),
        rule_codes::UNUSED_USE => !chosen,
        _ => true,
    });
}

fn distinct(names: &[String]) -> Vec<String> {
    names.iter().cloned().collect::<IndexSet<String>>().into_iter().collect()
}

/// The relations that are shown where none is chosen.
fn shown(program: &Program, from: usize) -> Vec<String> {
    let mut names: IndexSet<&str> = IndexSet::new();
    let outputs = program.outputs.iter().filter(|output| output.span.file == 0);
    names.extend(outputs.map(|output| &*output.relation.value));
    let heads = program.rules.iter().map(|rule| &rule.head.relation);
    let heads = heads.filter(|head| head.span.file == 0 && !head.value.starts_with('_'));
    names.extend(heads.clone().filter(|head| head.span.start as usize >= from).map(|head| &*head.value));
    if names.is_empty() {
        names.extend(heads.map(|head| &*head.value));
    }
    names.into_iter().map(str::to_owned).collect()
}

/// What tells how the columns of relations are called: their heads, and what the first file says of its output.
struct Heads<'p> {
    heads: BTreeMap<u32, Vec<&'p Atom>>,
    outputs: BTreeMap<&'p str, &'p [Ident]>,
}

impl<'p> Heads<'p> {
    fn of(program: &'p Program) -> Self {
        let scopes = Scopes::of(program);
        let mut found = Self { heads: BTreeMap::new(), outputs: BTreeMap::new() };
        for head in program.rules.iter().map(|rule| &rule.head) {
            if let Some(number) = scopes.relation(&head.relation) {
                found.heads.entry(number).or_default().push(head);
            }
        }
        for output in program.outputs.iter().filter(|output| output.span.file == 0) {
            if let Some(columns) = &output.columns {
                found.outputs.insert(&output.relation.value, columns);
            }
        }
        found
    }

    fn describe(&self, name: &str, relation: Relation, types: &[Vec<Type>]) -> Asked {
        let (names, kinds): (Vec<Arc<str>>, Vec<Type>) = match relation {
            Relation::Base(base) => {
                let names = schema::column_names(base).into_iter().map(Into::into).collect();
                (names, schema::schema().columns(base).1.to_vec())
            }
            Relation::Derived(number) => {
                let names = match self.outputs.get(name) {
                    Some(columns) => columns.iter().map(|column| Arc::clone(&column.value)).collect(),
                    None => self.variables(number),
                };
                (names, types.get(number as usize).cloned().unwrap_or_default())
            }
        };
        Asked { name: name.into(), columns: columns(names, &kinds), relation }
    }

    /// Names of columns by the first head that has a variable there.
    fn variables(&self, number: u32) -> Vec<Arc<str>> {
        let heads = self.heads.get(&number).map_or(&[][..], Vec::as_slice);
        let arity = heads.first().map_or(0, |head| head.arguments.len());
        let column = |place: usize| {
            let variable = heads.iter().find_map(|head| match &head.arguments.get(place)?.value {
                Term::Variable(variable, 0) => Some(Arc::clone(&variable.name)),
                _ => None,
            });
            variable.unwrap_or_else(|| format!("column_{}", place + 1).into())
        };
        (0..arity).map(column).collect()
    }
}

/// Columns of these names, each with a name of its own.
fn columns(names: Vec<Arc<str>>, kinds: &[Type]) -> Vec<Column> {
    let mut taken: BTreeSet<Arc<str>> = names.iter().cloned().collect();
    let mut columns: Vec<Column> = Vec::new();
    for (place, column) in names.into_iter().enumerate() {
        let again = columns.iter().any(|known| known.name == column);
        // A name that no other column has, or is to have.
        let mut numbered = (place + 1..).map(|number| Arc::from(format!("{column}_{number}")));
        let name = if again { numbered.find(|name| !taken.contains(name)).unwrap_or(column) } else { column };
        taken.insert(Arc::clone(&name));
        columns.push(Column { name, kind: kinds.get(place).copied().unwrap_or(Type::Any) });
    }
    columns
}

fn no_relation(program: &Program, name: &str) -> Diagnostic {
    let defined: Vec<&str> = program.rules.iter().map(|rule| &*rule.head.relation.value).collect();
    let all = defined.iter().copied().chain(schema::schema().names());
    let finding = Diagnostic::error(codes::NO_RELATION, Place::Nowhere, format!("no relation is called `{name}`"));
    if let Some(file) = schema::schema().file_of(name) {
        return finding
            .with_hint(format!("`{file}` defines it: write `use \"{file}\"` in the rules, or `-e 'use \"{file}\"'`"));
    }
    match similar(name, all) {
        Some(near) => finding.with_hint(format!("did you mean `{near}`?")),
        None => {
            finding.with_hint("`--relation` takes relations of the rules and of the facts; the book lists the latter")
        }
    }
}

/// What of spans the relations need that are named.
fn wanted(rules: &[&Rule], asked: &[Asked]) -> Wanted {
    let schema = schema::schema();
    let mut wanted = Wanted::default();
    let mut need = |relation: &str, key: Option<&Term>| {
        let Some(own) = schema.get(relation).and_then(schema::own) else { return };
        wanted.spans = true;
        let keys = match own {
            Own::Attr => &mut wanted.attributes,
            Own::Resource => &mut wanted.resources,
            Own::EventAttr => {
                wanted.events = true;
                &mut wanted.event_attributes
            }
            Own::Event => return wanted.events = true,
            Own::Link => return wanted.links = true,
            _ => return,
        };
        match key {
            Some(Term::Symbol(key)) => keys.add(key),
            _ => *keys = crate::trace::retained::Keys::All,
        }
    };
    atoms(rules, &mut |atom| need(&atom.relation.value, atom.arguments.get(1).map(|term| &term.value)));
    for one in asked {
        need(&one.name, None);
    }
    wanted
}

/// Relations that have no rows in a scope, or whose rows would mean nothing there.
fn out_of_scope(program: &Program, rules: &[&Rule], asked: &[Asked], scope: Scope) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    let mut look = |name: &str, place: Place| {
        let Some(relation) = schema::schema().get(name) else { return };
        let foreign = match scope {
            Scope::Messages => Subject::Operations,
            Scope::Operation | Scope::Trace => Subject::Messages,
        };
        if schema::subject(relation) == foreign {
            found.push(of_other_traces(name, place, foreign));
        } else if scope == Scope::Trace && matches!(name, "begins" | "ends" | "visit" | "accepted") {
            let message = format!("`{name}` tells of threads by numbers, which several operations share");
            found.push(
                Diagnostic::error(codes::ONE_OPERATION, place, message)
                    .with_hint("ask over each operation by itself, without `--scope trace`"),
            );
        }
    };
    atoms(rules, &mut |atom: &Atom| look(&atom.relation.value, program.place(atom.span)));
    for one in asked.iter().filter(|one| matches!(one.relation, Relation::Base(_))) {
        look(&one.name, Place::Nowhere);
    }
    found
}

fn of_other_traces(name: &str, place: Place, subject: Subject) -> Diagnostic {
    let (about, trace) = match subject {
        Subject::Operations => ("operations", "messages, and not which operation these belong to"),
        Subject::Messages | Subject::Both => ("messages", "operations"),
    };
    let message = format!("`{name}` tells of {about}, and the trace tells of {trace}");
    let other = if subject == Subject::Operations { Subject::Messages } else { Subject::Operations };
    let known: Vec<String> = schema::described()
        .map(|(name, ..)| name)
        .filter(|name| schema::schema().get(name).is_some_and(|relation| schema::subject(relation) == other))
        .map(|name| format!("`{name}`"))
        .collect();
    let finding = Diagnostic::error(codes::OTHER_SUBJECT, place, message);
    match other {
        Subject::Messages => finding.with_hint(format!("relations of such traces are {}", known.join(", "))),
        _ => finding
            .with_hint("the book lists the relations of traces with operations: `span`, `duration`, `node` and more"),
    }
}
