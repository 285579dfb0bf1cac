//! Safety: every variable whose value is needed gets one from a relation that holds, or is computed from such.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crepe::crepe;

use crate::ast::Program;
use crate::ast::{Comparison, Condition, Rule, Span, Spanned, Term};
use crate::base::BaseSchema;
use crate::check::{Checker, variables};
use crate::codes;
use dyelog_diagnostic::Diagnostic;

crepe! {
    @input
    struct Binds(u32);
    // An equation or aggregate.
    @input
    struct Source(u32);
    // The n-th variable that a source needs, from 0.
    @input
    struct Needs(u32, u32, u32);
    // What a source gives once it has as many variables as the number.
    @input
    struct Gives(u32, u32, u32);

    struct Ready(u32, u32);

    @output
    struct Known(u32);

    Known(v) <- Binds(v);
    Ready(s, 0) <- Source(s);
    Ready(s, n + 1) <- Ready(s, n), Needs(s, n, v), Known(v);
    Known(v) <- Ready(s, n), Gives(s, n, v);
}

/// Why a variable's value is needed.
#[derive(Clone, Copy)]
enum Need {
    Head,
    Negated,
    Computed,
    Shared,
}

/// Variables of all rules under numbers, and what is said about them. An aggregate has a scope of its own.
#[derive(Default)]
struct Facts {
    numbers: HashMap<(usize, Arc<str>), u32>,
    scopes: usize,
    binds: Vec<Binds>,
    sources: Vec<Source>,
    needs: Vec<Needs>,
    gives: Vec<Gives>,
    needed: Vec<(u32, Arc<str>, Span, Need)>,
    wildcards: Vec<(Span, Need)>,
}

/// What is unsafe in bodies that are asked with all columns of their heads known, such as conditions of templates.
pub fn unsafe_bodies(program: &Program, schema: &BaseSchema, bodies: &[Rule]) -> Vec<Diagnostic> {
    let mut checker = Checker::new(program, schema, &[]);
    let mut facts = Facts::default();
    for rule in bodies {
        facts.asked(rule);
    }
    checker.report_unsafe(facts);
    checker.found.into_iter().map(|(_, diagnostic)| diagnostic).collect()
}

impl Checker<'_> {
    pub(super) fn safety(&mut self) {
        let mut facts = Facts::default();
        let monotone = self.monotone(&self.components());
        for (number, rule) in self.program.rules.iter().enumerate() {
            facts.rule(rule, &|place| monotone.aggregates.contains(&(number, place)));
        }
        self.report_unsafe(facts);
    }

    fn report_unsafe(&mut self, mut facts: Facts) {
        let known = facts.known();
        let roots = facts.roots(&known);
        let mut reported = HashSet::new();
        // That an aggregate needs a variable says more than that the head does.
        facts.needed.sort_by_key(|(.., need)| !matches!(need, Need::Shared));
        for (variable, name, span, need) in facts.needed {
            if roots.contains(&variable) && reported.insert(variable) {
                self.error(codes::UNSAFE, span, format!("nothing gives `{name}` a value"), |d| {
                    let d = d.with_note(need.reason());
                    let d = d.with_hint(format!("add a relation that holds for `{name}` to the body"));
                    if matches!(need, Need::Negated) {
                        d.with_hint("or write `_`, if no value at all may do")
                    } else {
                        d
                    }
                });
            }
        }
        for (span, need) in facts.wildcards {
            self.error(codes::UNSAFE, span, "`_` has no value".to_owned(), |d| d.with_note(need.reason()));
        }
    }
}

impl Need {
    fn reason(self) -> &'static str {
        match self {
            Self::Head => "all that the head names must be known from the body",
            Self::Negated => "what does not hold gives no values: they must be known from elsewhere",
            Self::Computed => "comparisons and arithmetic need values",
            Self::Shared => "a variable that an aggregate shares with its rule must be known outside the aggregate",
        }
    }
}

impl Facts {
    /// The variables that get a value.
    fn known(&mut self) -> HashSet<u32> {
        let mut runtime = Crepe::new();
        runtime.extend(self.binds.drain(..));
        runtime.extend(self.sources.drain(..));
        runtime.extend(self.needs.iter().copied());
        runtime.extend(self.gives.iter().copied());
        let (known,) = runtime.run();
        known.into_iter().map(|Known(variable)| variable).collect()
    }

    /// Of the variables that get no value, those for which that is not merely a consequence of another one's.
    fn roots(&self, known: &HashSet<u32>) -> HashSet<u32> {
        let mut given: HashMap<u32, Vec<u32>> = HashMap::new();
        for Gives(source, _, variable) in &self.gives {
            given.entry(*variable).or_default().push(*source);
        }
        let needs = self.needs.iter().filter(|Needs(.., variable)| !known.contains(variable));
        let hopeless: HashSet<u32> = needs
            .filter(|Needs(.., variable)| !given.contains_key(variable))
            .map(|Needs(source, ..)| *source)
            .collect();
        let consequence = |variable: &u32| {
            given.get(variable).is_some_and(|sources| sources.iter().any(|source| hopeless.contains(source)))
        };
        (0..self.numbers.len() as u32).filter(|variable| !known.contains(variable) && !consequence(variable)).collect()
    }

    fn scope(&mut self) -> usize {
        self.scopes += 1;
        self.scopes
    }

    fn number(&mut self, scope: usize, name: &Arc<str>) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry((scope, Arc::clone(name))).or_insert(next)
    }

    /// A rule whose head is known.
    fn asked(&mut self, rule: &Rule) {
        let scope = self.scope();
        let outside = outside(rule);
        for term in &rule.head.arguments {
            variables(&term.value, &mut |name| {
                let variable = self.number(scope, name);
                self.binds.push(Binds(variable));
            });
        }
        for condition in &rule.body {
            self.condition(scope, &condition.value, &outside);
        }
    }

    /// `best` tells which aggregates are recursive: what stands in their braces binds as the body does.
    fn rule(&mut self, rule: &Rule, best: &dyn Fn(usize) -> bool) {
        let scope = self.scope();
        let outside = outside(rule);
        for term in &rule.head.arguments {
            self.need(scope, term, Need::Head);
        }
        for (place, condition) in rule.body.iter().enumerate() {
            match &condition.value {
                Condition::Aggregate { result, over: Some(over), body, .. } if best(place) => {
                    for part in body {
                        self.condition(scope, &part.value, &outside);
                    }
                    self.need(scope, over, Need::Computed);
                    let mut names = Vec::new();
                    variables(&over.value, &mut |name| names.push(Arc::clone(name)));
                    self.source(scope, &names, &result.value);
                }
                condition => self.condition(scope, condition, &outside),
            }
        }
    }

    fn condition(&mut self, scope: usize, condition: &Condition, outside: &HashSet<Arc<str>>) {
        match condition {
            Condition::Atom { negated: false, atom } => {
                for term in &atom.arguments {
                    match &term.value {
                        Term::Variable(variable, _) => {
                            let variable = self.number(scope, &variable.name);
                            self.binds.push(Binds(variable));
                        }
                        Term::Arithmetic(..) => self.need(scope, term, Need::Computed),
                        _ => {}
                    }
                }
            }
            Condition::Atom { negated: true, atom } => {
                for term in atom.arguments.iter().filter(|term| !matches!(term.value, Term::Wildcard)) {
                    self.need(scope, term, Need::Negated);
                }
            }
            Condition::Compare(left, comparison, right) => {
                self.need(scope, left, Need::Computed);
                self.need(scope, right, Need::Computed);
                if *comparison == Comparison::Equal {
                    self.equation(scope, left, right);
                    self.equation(scope, right, left);
                }
            }
            Condition::Aggregate { result, over, body, .. } => {
                let inner = self.scope();
                for part in body {
                    self.condition(inner, &part.value, outside);
                }
                if let Some(over) = over {
                    self.need(inner, over, Need::Computed);
                }
                self.aggregate(scope, inner, &result.value, over.as_ref(), body, outside);
            }
            Condition::NotStarts { .. } | Condition::Rounds { .. } => {}
        }
    }

    /// What an aggregate shares with its rule is known within, needed without.
    fn aggregate(
        &mut self,
        scope: usize,
        inner: usize,
        result: &Arc<str>,
        over: Option<&Spanned<Term>>,
        body: &[Spanned<Condition>],
        outside: &HashSet<Arc<str>>,
    ) {
        let mut shared: Vec<(Arc<str>, Span)> = Vec::new();
        let mut collect = |term: &Spanned<Term>| {
            variables(&term.value, &mut |name| {
                if outside.contains(name) && !shared.iter().any(|(other, _)| other == name) {
                    shared.push((Arc::clone(name), term.span));
                }
            });
        };
        over.into_iter().for_each(&mut collect);
        super::condition_terms(body, &mut |term| collect(term));
        let names: Vec<Arc<str>> = shared.iter().map(|(name, _)| Arc::clone(name)).collect();
        for (name, span) in shared {
            let within = self.number(inner, &name);
            self.binds.push(Binds(within));
            let without = self.number(scope, &name);
            self.needed.push((without, name, span, Need::Shared));
        }
        self.source(scope, &names, result);
    }

    /// `unknown = known`: a variable (plus a number) can be solved for.
    fn equation(&mut self, scope: usize, unknown: &Spanned<Term>, known: &Spanned<Term>) {
        if let Term::Variable(variable, _) = &unknown.value {
            let mut names = Vec::new();
            variables(&known.value, &mut |name| names.push(Arc::clone(name)));
            self.source(scope, &names, &variable.name);
        }
    }

    fn source(&mut self, scope: usize, needs: &[Arc<str>], gives: &Arc<str>) {
        let source = self.sources.len() as u32;
        self.sources.push(Source(source));
        for (place, name) in needs.iter().enumerate() {
            let variable = self.number(scope, name);
            self.needs.push(Needs(source, place as u32, variable));
        }
        let variable = self.number(scope, gives);
        self.gives.push(Gives(source, needs.len() as u32, variable));
    }

    fn need(&mut self, scope: usize, term: &Spanned<Term>, need: Need) {
        match &term.value {
            Term::Wildcard => self.wildcards.push((term.span, need)),
            Term::Variable(variable, _) => {
                let number = self.number(scope, &variable.name);
                self.needed.push((number, Arc::clone(&variable.name), term.span, need));
            }
            Term::Arithmetic(left, _, right) => {
                self.need(scope, left, need);
                self.need(scope, right, need);
            }
            Term::Integer(_) | Term::Float(_) | Term::Symbol(_) => {}
        }
    }
}

/// The variables of a rule that occur outside its aggregates, or are their results.
pub(crate) fn outside(rule: &Rule) -> HashSet<Arc<str>> {
    let mut names = HashSet::new();
    let mut add = |term: &Spanned<Term>| names_of(&term.value, &mut names);
    rule.head.arguments.iter().for_each(&mut add);
    for condition in &rule.body {
        match &condition.value {
            Condition::Compare(left, _, right) => {
                add(left);
                add(right);
            }
            Condition::Atom { atom, .. } => atom.arguments.iter().for_each(&mut add),
            Condition::Aggregate { .. } | Condition::NotStarts { .. } | Condition::Rounds { .. } => {}
        }
    }
    for condition in &rule.body {
        if let Condition::Aggregate { result, .. } = &condition.value {
            names.insert(Arc::clone(&result.value));
        }
    }
    names
}

fn names_of(term: &Term, names: &mut HashSet<Arc<str>>) {
    variables(term, &mut |name| {
        names.insert(Arc::clone(name));
    });
}
