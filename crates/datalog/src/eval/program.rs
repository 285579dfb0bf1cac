//! Checked rules in the form that evaluation works on: variables are registers, relations numbers.

use std::collections::HashSet;
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};
use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;
use rustc_hash::FxHashMap;

use crate::ast::{self, Aggregate, Atom, Comparison, Condition, Ident, Program, Spanned};
use crate::base::{BaseRelation, BaseSchema};
use crate::check;
use crate::eval::fractions;
use crate::eval::invention::{self, Invention};
use crate::eval::number::Calculation;
use crate::eval::once;
use crate::eval::whole::Best;
use crate::scope::Scopes;
use crate::value::Value;
use dyelog_diagnostic::{Diagnostics, Place, Severity};

/// A relation: of the facts, or of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// The facts answer it.
    Base(BaseRelation),
    /// Rules define it; the number counts them in the order of first definition.
    Derived(u32),
}

/// A term over registers. Symbols are still strings of the program ([`Value::own`]).
#[derive(Clone, Debug)]
pub(super) enum Term {
    Any,
    Constant(Value),
    /// A number that was written with a dot or an exponent.
    Fraction(Value),
    Register(u32, i64),
    Arithmetic(Box<Term>, Calculation, Box<Term>),
}

/// A part of a rule's body.
#[derive(Clone, Debug)]
pub(super) enum Literal {
    Holds(Relation, Vec<Term>),
    Fails(Relation, Vec<Term>),
    Compare(Term, Comparison, Term),
    /// Over the rows of a relation made for it: first the group, last the value.
    Aggregate {
        function: Aggregate,
        relation: u32,
        group: Vec<u32>,
        result: u32,
    },
}

/// Where a literal of a rule's body comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// The condition of the rule's text.
    pub(super) condition: u32,
    /// Which literal within its braces, where it is an aggregate of which the rule has the inside.
    pub(super) within: Option<u32>,
    /// Whether it is that condition; what calculates the condition's arguments is not.
    pub(super) written: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) head: Vec<Term>,
    pub(super) body: Vec<Literal>,
    /// Where each literal of the body comes from.
    pub(super) origins: Vec<Origin>,
    /// Names of the registers; empty for those that the text does not name.
    pub(super) registers: Vec<Arc<str>>,
    /// The rule's place in the program; for a part of an aggregate, that of the rule it stands in.
    pub(super) source: u32,
    /// Whether it makes numbers in a recursion.
    pub(super) invents: bool,
}

/// A relation that rules define.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property that a relation has or lacks, by itself")]
pub(super) struct Derived {
    pub(super) name: Arc<str>,
    pub(super) arity: usize,
    pub(super) rules: Vec<u32>,
    pub(super) facts: Facts,
    /// Columns that may hold a number with a fraction; those after the last do not.
    pub(super) fractions: Vec<bool>,
    /// Whether it holds what an aggregate ranges over.
    pub(super) aggregate: bool,
    /// Whether that can be found for a known group only: a comparison or what must not hold speaks of it.
    pub(super) grouped: bool,
    /// With a recursive `min` or `max`: the column of which only the best value of a key is kept.
    pub(super) best: Option<Best>,
    /// Whether it is computed whole whatever is asked: it needs best values, and they need it.
    pub(super) closed: bool,
    /// Whether its recursion makes numbers that no fact has.
    pub(super) invention: Invention,
    /// Whether evaluation finds each of its rows once.
    pub(super) once: bool,
    /// Relations of a lower level are complete before those of a higher one go on.
    pub(super) level: u32,
}

/// Rows that stand in the rule file itself, with their rules, and where each value of a column occurs.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) rows: Vec<(Vec<Value>, u32)>,
    columns: Vec<FxHashMap<Value, Vec<u32>>>,
}

impl Facts {
    fn add(&mut self, row: Vec<Value>, source: u32) {
        let number = self.rows.len() as u32;
        self.columns.resize_with(row.len(), FxHashMap::default);
        for (column, value) in self.columns.iter_mut().zip(&row) {
            column.entry(*value).or_default().push(number);
        }
        self.rows.push((row, source));
    }

    /// The rows that may agree with the pattern: those that do in its most selective column.
    pub(super) fn candidates(&self, pattern: &[Option<Value>]) -> Vec<u32> {
        let lists = pattern.iter().zip(&self.columns).filter_map(|(wanted, column)| {
            let value = (*wanted)?;
            Some(column.get(&value).map_or(&[][..], Vec::as_slice))
        });
        match lists.min_by_key(|list| list.len()) {
            Some(list) => list.to_vec(),
            None => (0..self.rows.len() as u32).collect(),
        }
    }
}

/// A program that passed its checks, ready to be evaluated over any facts of the schema. Immutable and shared freely.
#[derive(Debug)]
pub struct CompiledRules {
    pub(super) rules: Vec<Rule>,
    pub(super) derived: Vec<Derived>,
    /// How many relations have a name; those behind are of aggregates.
    named: u32,
    /// Where each rule of the program begins, by its head.
    pub(super) places: Vec<Place>,
    pub(super) symbols: IndexSet<Arc<str>>,
    pub(super) levels: u32,
    names: IndexMap<Arc<str>, Relation>,
    /// Columns of the base relations.
    pub(super) base_arity: Vec<usize>,
}

/// Checks the rules of a program and makes them ready. Templates are only checked as far as [`check::check`] does.
///
/// # Errors
/// Every error that [`check::check`] finds.
pub fn compile(program: &Program, schema: &BaseSchema) -> Result<CompiledRules, Diagnostics> {
    compile_asked(program, &[], schema)
}

/// As [`compile`], with rules beside those of the program that are only ever asked with all columns of their heads known:
/// conditions of templates. Their heads' relations have names that no text can have, and are known by these.
///
/// # Errors
/// Every error that [`check::check`] finds in the program. Of the rules beside it [`check::unsafe_bodies`] tells.
pub fn compile_asked(
    program: &Program,
    asked: &[ast::Rule],
    schema: &BaseSchema,
) -> Result<CompiledRules, Diagnostics> {
    let mut errors = check::check(program, schema);
    errors.retain(|diagnostic| diagnostic.severity == Severity::Error);
    if !errors.is_empty() {
        return Err(Diagnostics(errors));
    }
    let scopes = Scopes::of(program);
    let mut compiler = Compiler::new(schema, &scopes);
    compiler.monotone = check::best_values(program, schema);
    compiler.declare();
    for rule in asked {
        compiler.declare_asked(&rule.head);
    }
    for (number, rule) in program.rules.iter().chain(asked).enumerate() {
        compiler.rules.places.push(program.place(rule.head.span));
        compiler.rule(number as u32, rule);
    }
    let mut rules = compiler.finish();
    fractions::find(&mut rules, schema);
    invention::find(&mut rules);
    once::find(&mut rules, schema);
    Ok(rules)
}

impl CompiledRules {
    /// The relation of this name: one of the facts, what the first file means by it, or else the only one of that name.
    /// Where several files have one, `NAME of FILE` is it.
    pub fn relation(&self, name: &str) -> Option<Relation> {
        self.names.get(name).copied()
    }

    /// The name of a relation of the rules, with its file where several have one of that name; none of one of the facts.
    pub fn name(&self, relation: Relation) -> Option<&str> {
        match relation {
            Relation::Base(_) => None,
            Relation::Derived(number) => Some(&self.derived[number as usize].name),
        }
    }

    /// Whether a relation is what an aggregate ranges over, which has no name of its own.
    pub fn is_aggregated(&self, relation: Relation) -> bool {
        matches!(relation, Relation::Derived(number) if number >= self.named)
    }

    /// The variables that give the columns of what an aggregate ranges over; empty where no variable does.
    pub fn variables(&self, relation: Relation) -> Vec<Arc<str>> {
        let Relation::Derived(number) = relation else { return Vec::new() };
        let Some(rule) = self.derived[number as usize].rules.first() else { return Vec::new() };
        let rule = &self.rules[*rule as usize];
        let name = |term: &Term| match term {
            Term::Register(register, 0) => Arc::clone(&rule.registers[*register as usize]),
            _ => "".into(),
        };
        rule.head.iter().map(name).collect()
    }

    /// For each column of a relation that rules define, whether it may hold a number with a fraction.
    pub fn fractions(&self, relation: Relation) -> &[bool] {
        match relation {
            Relation::Base(_) => &[],
            Relation::Derived(number) => &self.derived[number as usize].fractions,
        }
    }

    /// How many columns a relation has.
    pub fn arity(&self, relation: Relation) -> usize {
        match relation {
            Relation::Base(base) => self.base_arity[base.0 as usize],
            Relation::Derived(number) => self.derived[number as usize].arity,
        }
    }
}

struct Compiler<'s, 'p> {
    scopes: &'s Scopes<'p>,
    rules: CompiledRules,
    monotone: check::Monotone,
}

/// Whether a rule file can name a relation so.
fn is_identifier(name: &str) -> bool {
    name.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
}

/// The registers of a rule while it is compiled.
#[derive(Default)]
struct Registers {
    names: IndexSet<Arc<str>>,
    unnamed: u32,
    extra: Vec<Literal>,
}

impl Registers {
    fn named(&mut self, name: &Arc<str>) -> u32 {
        self.names.insert_full(Arc::clone(name)).0 as u32
    }

    /// A register that no variable of the text can mean: spaces are in no name.
    fn fresh(&mut self) -> u32 {
        self.unnamed += 1;
        self.named(&format!(" {}", self.unnamed).into())
    }

    fn into_names(self) -> Vec<Arc<str>> {
        self.names.into_iter().map(|name| if name.starts_with(' ') { "".into() } else { name }).collect()
    }
}

impl<'s, 'p> Compiler<'s, 'p> {
    fn new(schema: &BaseSchema, scopes: &'s Scopes<'p>) -> Self {
        let mut names = IndexMap::new();
        let mut base_arity = Vec::new();
        for name in schema.names() {
            let relation = schema.get(name).expect("the name comes from the schema");
            names.insert(name.into(), Relation::Base(relation));
            base_arity.push(schema.columns(relation).1.len());
        }
        let (rules, derived, symbols) = (Vec::new(), Vec::new(), IndexSet::new());
        Self {
            scopes,
            rules: CompiledRules {
                rules,
                derived,
                named: scopes.len() as u32,
                places: Vec::new(),
                symbols,
                levels: 0,
                names,
                base_arity,
            },
            monotone: check::Monotone::default(),
        }
    }

    /// A derived relation's number is that of its scope.
    fn declare(&mut self) {
        for number in 0..self.scopes.len() as u32 {
            let (first, shown) = (self.scopes.first(number), self.scopes.shown(number));
            self.rules.names.entry(shown.as_str().into()).or_insert(Relation::Derived(number));
            let arity = first.arguments.len();
            let best = self.monotone.best.get(&number);
            let best = best.map(|(column, function)| Best { column: *column, greatest: *function == Aggregate::Max });
            self.rules.derived.push(Derived { name: shown.into(), arity, best, ..Derived::default() });
        }
        for number in 0..self.scopes.len() as u32 {
            let name = &self.scopes.first(number).relation.value;
            if self.scopes.only(name) == Some(number) {
                self.rules.names.entry(Arc::clone(name)).or_insert(Relation::Derived(number));
            }
        }
    }

    /// A rule beside the program's: its relation has no scope, and a name that no text can have.
    fn declare_asked(&mut self, head: &Atom) {
        let (name, arity) = (&head.relation.value, head.arguments.len());
        let number = self.rules.derived.len() as u32;
        if let indexmap::map::Entry::Vacant(entry) = self.rules.names.entry(Arc::clone(name)) {
            entry.insert(Relation::Derived(number));
            self.rules.derived.push(Derived { name: Arc::clone(name), arity, ..Derived::default() });
        }
    }

    fn relation(&self, name: &Ident) -> Option<Relation> {
        let known = self.rules.names.get(&name.value).copied();
        if let Some(Relation::Base(base)) = known {
            return Some(Relation::Base(base));
        }
        let scoped = self.scopes.relation(name).map(Relation::Derived);
        scoped.or_else(|| known.filter(|_| !is_identifier(&name.value)))
    }

    fn rule(&mut self, source: u32, rule: &ast::Rule) {
        let Some(Relation::Derived(relation)) = self.relation(&rule.head.relation) else {
            return; // a base relation has no rules: checked before
        };
        let mut registers = Registers::default();
        let outside = check::outside(rule);
        let mut head = self.terms(&rule.head.arguments, &mut registers, false);
        if rule.body.is_empty() {
            let row: Option<Vec<Value>> = head.iter().map(Term::constant).collect();
            if let Some(row) = row {
                let derived = &mut self.rules.derived[relation as usize];
                derived.fractions.resize(row.len(), false);
                for (column, term) in derived.fractions.iter_mut().zip(&head) {
                    *column |= matches!(term, Term::Fraction(_));
                }
                derived.facts.add(row, source);
                return;
            }
        }
        let (mut body, mut origins) = (Vec::new(), Vec::new());
        for (place, condition) in rule.body.iter().enumerate() {
            let origin = |within, written| Origin { condition: place as u32, within, written };
            match &condition.value {
                Condition::Aggregate { over: Some(over), body: inner, .. }
                    if self.monotone.aggregates.contains(&(source as usize, place)) =>
                {
                    // The best of the aggregate's values is the best of what all its bindings would give the head.
                    for (within, part) in (0..).zip(inner) {
                        let literal = self.literal(source, &part.value, &mut registers, &outside, false);
                        body.extend(literal);
                        origins.resize(body.len(), origin(Some(within), true));
                        body.append(&mut registers.extra);
                        origins.resize(body.len(), origin(Some(within), false));
                    }
                    let over = self.term(&over.value, &mut registers);
                    let (column, _) = self.monotone.best[&relation];
                    head[column] = added(over, &head[column]);
                }
                condition => {
                    let literal = self.literal(source, condition, &mut registers, &outside, false);
                    body.extend(literal);
                }
            }
            origins.resize(body.len(), origin(None, true));
            body.append(&mut registers.extra);
            origins.resize(body.len(), origin(None, false));
        }
        self.push_rule(
            relation,
            Rule { head, body, origins, registers: registers.into_names(), source, invents: false },
        );
    }

    fn push_rule(&mut self, relation: u32, rule: Rule) {
        let number = self.rules.rules.len() as u32;
        self.rules.rules.push(rule);
        self.rules.derived[relation as usize].rules.push(number);
    }

    fn literal(
        &mut self,
        source: u32,
        condition: &Condition,
        registers: &mut Registers,
        outside: &HashSet<Arc<str>>,
        count_wildcards: bool,
    ) -> Option<Literal> {
        Some(match condition {
            Condition::Compare(left, comparison, right) => {
                Literal::Compare(self.term(&left.value, registers), *comparison, self.term(&right.value, registers))
            }
            Condition::Atom { negated, atom } => {
                let relation = self.relation(&atom.relation)?;
                let terms = self.terms(&atom.arguments, registers, count_wildcards && !negated);
                let terms = terms.into_iter().map(|term| flat(term, registers)).collect();
                if *negated { Literal::Fails(relation, terms) } else { Literal::Holds(relation, terms) }
            }
            Condition::Aggregate { result, function, over, body } => {
                let (relation, group) = self.aggregate(source, over.as_ref(), body, outside);
                let group = group.iter().map(|name| registers.named(name)).collect();
                let result = registers.named(&result.value);
                Literal::Aggregate { function: *function, relation, group, result }
            }
            Condition::NotStarts { .. } | Condition::Rounds { .. } => return None, // have no place in rules: the parser says so
        })
    }

    /// The relation of what an aggregate ranges over, and the variables that it shares with its rule. Its columns: those
    /// variables, then all others (so that equal values of distinct bindings count as often as they occur), the value.
    fn aggregate(
        &mut self,
        source: u32,
        over: Option<&Spanned<ast::Term>>,
        body: &[Spanned<Condition>],
        outside: &HashSet<Arc<str>>,
    ) -> (u32, Vec<Arc<str>>) {
        let mut inner = Registers::default();
        let (mut literals, mut origins) = (Vec::new(), Vec::new());
        for (number, condition) in body.iter().enumerate() {
            let origin = |written| Origin { condition: number as u32, within: None, written };
            literals.extend(self.literal(source, &condition.value, &mut inner, outside, true));
            origins.resize(literals.len(), origin(true));
            literals.append(&mut inner.extra);
            origins.resize(literals.len(), origin(false));
        }
        let value = over.map(|over| self.term(&over.value, &mut inner));
        let (shared, own): (Vec<u32>, Vec<u32>) =
            (0..inner.names.len() as u32).partition(|register| outside.contains(&inner.names[*register as usize]));
        let group = shared.iter().map(|register| Arc::clone(&inner.names[*register as usize])).collect();
        let head: Vec<Term> =
            shared.iter().chain(&own).map(|register| Term::Register(*register, 0)).chain(value).collect();
        let relation = self.rules.derived.len() as u32;
        self.rules.derived.push(Derived {
            name: "aggregate".into(),
            arity: head.len(),
            aggregate: true,
            grouped: !binds_all(&literals, inner.names.len()),
            ..Derived::default()
        });
        self.push_rule(
            relation,
            Rule { head, body: literals, origins, registers: inner.into_names(), source, invents: false },
        );
        (relation, group)
    }

    fn terms(&mut self, terms: &[Spanned<ast::Term>], registers: &mut Registers, name_wildcards: bool) -> Vec<Term> {
        let mut found = Vec::with_capacity(terms.len());
        for term in terms {
            found.push(match self.term(&term.value, registers) {
                Term::Any if name_wildcards => Term::Register(registers.fresh(), 0),
                term => term,
            });
        }
        found
    }

    fn term(&mut self, term: &ast::Term, registers: &mut Registers) -> Term {
        match term {
            ast::Term::Wildcard => Term::Any,
            ast::Term::Integer(number) => {
                Term::Constant(Value::integer(*number).expect("numbers beyond the range are refused by the checks"))
            }
            ast::Term::Float(number) => {
                Term::Fraction(Value::float(*number).expect("numbers beyond the range are refused by the checks"))
            }
            ast::Term::Symbol(text) => {
                Term::Constant(Value::own(self.rules.symbols.insert_full(Arc::clone(text)).0 as u32))
            }
            ast::Term::Variable(variable, offset) => Term::Register(registers.named(&variable.name), *offset),
            ast::Term::Arithmetic(left, operator, right) => Term::Arithmetic(
                Box::new(self.term(&left.value, registers)),
                (*operator).into(),
                Box::new(self.term(&right.value, registers)),
            ),
        }
    }

    /// Levels, from the dependencies between relations: what is needed lies lower, unless both need each other.
    fn finish(mut self) -> CompiledRules {
        let mut graph = DiGraph::<u32, ()>::new();
        let nodes: Vec<_> = (0..self.rules.derived.len() as u32).map(|number| graph.add_node(number)).collect();
        for (number, derived) in self.rules.derived.iter().enumerate() {
            let body = derived.rules.iter().flat_map(|rule| &self.rules.rules[*rule as usize].body);
            for needed in body.filter_map(Literal::derived) {
                graph.add_edge(nodes[number], nodes[needed as usize], ());
            }
        }
        // Components come in such an order that what one needs comes before it.
        for (level, component) in kosaraju_scc(&graph).into_iter().enumerate() {
            let closed = component.iter().any(|node| self.rules.derived[graph[*node] as usize].best.is_some());
            for node in component {
                let derived = &mut self.rules.derived[graph[node] as usize];
                (derived.level, derived.closed) = (level as u32, closed);
            }
            self.rules.levels = level as u32 + 1;
        }
        self.rules
    }
}

impl Literal {
    /// The relation of rules that it needs.
    pub(super) fn derived(&self) -> Option<u32> {
        match self {
            Self::Holds(Relation::Derived(needed), _) | Self::Fails(Relation::Derived(needed), _) => Some(*needed),
            Self::Aggregate { relation, .. } => Some(*relation),
            Self::Holds(Relation::Base(_), _) | Self::Fails(Relation::Base(_), _) | Self::Compare(..) => None,
        }
    }
}

/// Whether a body gives all its registers a value.
fn binds_all(body: &[Literal], registers: usize) -> bool {
    let mut known = vec![false; registers];
    let bind = |term: &Term, known: &mut Vec<bool>| {
        term.register().is_some_and(|register| !std::mem::replace(&mut known[register as usize], true))
    };
    let mut changed = true;
    while changed {
        changed = false;
        for literal in body {
            match literal {
                Literal::Holds(_, terms) => terms.iter().for_each(|term| changed |= bind(term, &mut known)),
                Literal::Compare(left, Comparison::Equal, right) => {
                    changed |= left.known(&known) && bind(right, &mut known);
                    changed |= right.known(&known) && bind(left, &mut known);
                }
                _ => {}
            }
        }
    }
    known.into_iter().all(|known| known)
}

/// What an aggregate is over, with what the head adds to its result.
fn added(over: Term, head: &Term) -> Term {
    let Term::Register(_, offset @ (..=-1 | 1..)) = head else { return over };
    let offset = Term::Constant(Value::integer(*offset).unwrap_or(Value::own(u32::MAX)));
    Term::Arithmetic(Box::new(over), Calculation::Add, Box::new(offset))
}

impl Term {
    /// The variable, where it is one, with an offset or without.
    pub(super) fn register(&self) -> Option<u32> {
        if let Self::Register(register, _) = self { Some(*register) } else { None }
    }

    fn known(&self, registers: &[bool]) -> bool {
        match self {
            Self::Any => false,
            Self::Constant(_) | Self::Fraction(_) => true,
            Self::Register(register, _) => registers[*register as usize],
            Self::Arithmetic(left, _, right) => left.known(registers) && right.known(registers),
        }
    }

    fn constant(&self) -> Option<Value> {
        match self {
            Self::Constant(value) | Self::Fraction(value) => Some(*value),
            _ => None,
        }
    }
}

/// Arithmetic as an argument becomes a variable of its own with an equation, so that look-ups need not wait for it.
fn flat(term: Term, registers: &mut Registers) -> Term {
    if !matches!(term, Term::Arithmetic(..)) {
        return term;
    }
    let register = registers.fresh();
    registers.extra.push(Literal::Compare(Term::Register(register, 0), Comparison::Equal, term));
    Term::Register(register, 0)
}
