//! Checked rules in the form that evaluation works on: variables are registers, relations numbers.

use std::collections::HashSet;
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};
use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;
use rustc_hash::FxHashMap;

use crate::datalog::ast::{self, Aggregate, Atom, Comparison, Condition, Operator, Program, Spanned};
use crate::datalog::base::{BaseRelation, BaseSchema};
use crate::datalog::check;
use crate::datalog::value::Value;
use crate::diagnostic::{Diagnostics, Severity};

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
    Register(u32, i64),
    Arithmetic(Box<Term>, Operator, Box<Term>),
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

#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) head: Vec<Term>,
    pub(super) body: Vec<Literal>,
    /// Names of the registers; empty for those that the text does not name.
    pub(super) registers: Vec<Arc<str>>,
    /// The rule's place in the program; for a part of an aggregate, that of the rule it stands in.
    pub(super) source: u32,
}

/// A relation that rules define.
#[derive(Debug, Default)]
pub(super) struct Derived {
    pub(super) name: Arc<str>,
    pub(super) arity: usize,
    pub(super) rules: Vec<u32>,
    pub(super) facts: Facts,
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
    let rules = || program.rules.iter().chain(asked);
    let mut compiler = Compiler::new(schema);
    for rule in rules() {
        compiler.declare(&rule.head);
    }
    for (number, rule) in rules().enumerate() {
        compiler.rule(number as u32, rule);
    }
    Ok(compiler.finish())
}

impl CompiledRules {
    /// The relation of this name.
    pub fn relation(&self, name: &str) -> Option<Relation> {
        self.names.get(name).copied()
    }

    /// How many columns a relation has.
    pub fn arity(&self, relation: Relation) -> usize {
        match relation {
            Relation::Base(base) => self.base_arity[base.0 as usize],
            Relation::Derived(number) => self.derived[number as usize].arity,
        }
    }
}

struct Compiler {
    rules: CompiledRules,
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

impl Compiler {
    fn new(schema: &BaseSchema) -> Self {
        let mut names = IndexMap::new();
        let mut base_arity = Vec::new();
        for name in schema.names() {
            let relation = schema.get(name).expect("the name comes from the schema");
            names.insert(name.into(), Relation::Base(relation));
            base_arity.push(schema.columns(relation).1.len());
        }
        let (rules, derived, symbols) = (Vec::new(), Vec::new(), IndexSet::new());
        Self { rules: CompiledRules { rules, derived, symbols, levels: 0, names, base_arity } }
    }

    fn declare(&mut self, head: &Atom) {
        let name = &head.relation.value;
        let next = self.rules.derived.len() as u32;
        if *self.rules.names.entry(Arc::clone(name)).or_insert(Relation::Derived(next)) == Relation::Derived(next) {
            let arity = head.arguments.len();
            self.rules.derived.push(Derived { name: Arc::clone(name), arity, ..Derived::default() });
        }
    }

    fn rule(&mut self, source: u32, rule: &ast::Rule) {
        let Some(Relation::Derived(relation)) = self.rules.relation(&rule.head.relation.value) else {
            return; // a base relation has no rules: checked before
        };
        let mut registers = Registers::default();
        let outside = check::outside(rule);
        let head = self.terms(&rule.head.arguments, &mut registers, false);
        if rule.body.is_empty() {
            let row: Option<Vec<Value>> = head.iter().map(Term::constant).collect();
            if let Some(row) = row {
                self.rules.derived[relation as usize].facts.add(row, source);
                return;
            }
        }
        let mut body = Vec::new();
        for condition in &rule.body {
            let literal = self.literal(source, &condition.value, &mut registers, &outside, false);
            body.extend(literal);
            body.append(&mut registers.extra);
        }
        self.push_rule(relation, head, body, registers, source);
    }

    fn push_rule(&mut self, relation: u32, head: Vec<Term>, body: Vec<Literal>, registers: Registers, source: u32) {
        let number = self.rules.rules.len() as u32;
        self.rules.rules.push(Rule { head, body, registers: registers.into_names(), source });
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
                let relation = self.rules.relation(&atom.relation.value)?;
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
        let mut literals = Vec::new();
        for condition in body {
            literals.extend(self.literal(source, &condition.value, &mut inner, outside, true));
            literals.append(&mut inner.extra);
        }
        let value = over.map(|over| self.term(&over.value, &mut inner));
        let (shared, own): (Vec<u32>, Vec<u32>) =
            (0..inner.names.len() as u32).partition(|register| outside.contains(&inner.names[*register as usize]));
        let group = shared.iter().map(|register| Arc::clone(&inner.names[*register as usize])).collect();
        let head: Vec<Term> =
            shared.iter().chain(&own).map(|register| Term::Register(*register, 0)).chain(value).collect();
        let relation = self.rules.derived.len() as u32;
        self.rules.derived.push(Derived { name: "aggregate".into(), arity: head.len(), ..Derived::default() });
        self.push_rule(relation, head, literals, inner, source);
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
            ast::Term::Symbol(text) => {
                Term::Constant(Value::own(self.rules.symbols.insert_full(Arc::clone(text)).0 as u32))
            }
            ast::Term::Variable(variable, offset) => Term::Register(registers.named(&variable.name), *offset),
            ast::Term::Arithmetic(left, operator, right) => Term::Arithmetic(
                Box::new(self.term(&left.value, registers)),
                *operator,
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
            for literal in body {
                let needed = match literal {
                    Literal::Holds(Relation::Derived(needed), _) | Literal::Fails(Relation::Derived(needed), _) => {
                        needed
                    }
                    Literal::Aggregate { relation, .. } => relation,
                    _ => continue,
                };
                graph.add_edge(nodes[number], nodes[*needed as usize], ());
            }
        }
        // Components come in such an order that what one needs comes before it.
        for (level, component) in kosaraju_scc(&graph).into_iter().enumerate() {
            for node in component {
                self.rules.derived[graph[node] as usize].level = level as u32;
            }
            self.rules.levels = level as u32 + 1;
        }
        self.rules
    }
}

impl Term {
    fn constant(&self) -> Option<Value> {
        match self {
            Self::Constant(value) => Some(*value),
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
