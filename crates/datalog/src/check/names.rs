//! Checks of what names stand for: relations, columns, templates, variables.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use indexmap::IndexMap;

use crate::ast::{Atom, Condition, Damage, Ident, Output, Rule, Span, Spanned, Template, Term};
use crate::base::Type;
use crate::check::{Checker, MAX_ARITY, MAX_BODY, atoms, terms};
use crate::codes;
use crate::value::Value;
use dyelog_diagnostic::Place;

impl<'p> Checker<'p> {
    pub(super) fn names(&mut self) {
        for rule in &self.program.rules {
            self.head(&rule.head);
            self.body(&rule.body);
            self.sizes(rule);
            terms(rule, &mut |term| self.term(term));
            self.occurrences(rule);
        }
        for template in &self.program.templates {
            self.body(&template.conditions);
            super::condition_terms(&template.conditions, &mut |term| self.number(term));
        }
        let mut outputs: HashMap<(u32, &str), Span> = HashMap::new();
        for output in &self.program.outputs {
            self.output(output, &mut outputs);
        }
        self.template_names();
        self.template_orders();
    }

    fn head(&mut self, head: &'p Atom) {
        let name = &*head.relation.value;
        if self.schema.get(name).is_some() {
            self.error(codes::BASE_RULE, head.relation.span, format!("`{name}` is a relation of the facts"), |d| {
                d.with_note("rules can use it, but not add to it").with_hint("give the rule's relation another name")
            });
            return;
        }
        let Some(first) = self.scopes.relation(&head.relation).map(|relation| self.scopes.first(relation)) else {
            return; // every head defines a relation
        };
        let (arity, first) = (first.arguments.len(), first.span);
        if head.arguments.len() != arity {
            let place = self.place(first);
            let message =
                format!("`{name}` has {} here, but {} elsewhere", columns(head.arguments.len()), columns(arity));
            self.error(codes::ARITY, head.span, message, |d| d.with_place(place, "defined here first"));
        }
    }

    fn body(&mut self, conditions: &'p [Spanned<Condition>]) {
        atoms(conditions, &mut |atom, _| self.atom(atom));
    }

    /// The number of columns of a relation, and where rules define it.
    fn known(&self, relation: &Ident) -> Option<(usize, Option<Place>)> {
        let name = &*relation.value;
        if let Some(base) = self.schema.get(name) {
            return Some((self.schema.columns(base).1.len(), None));
        }
        let first = self.scopes.first(self.scopes.relation(relation)?);
        Some((first.arguments.len(), Some(self.place(first.span))))
    }

    fn atom(&mut self, atom: &'p Atom) {
        let name = &*atom.relation.value;
        let Some((arity, place)) = self.known(&atom.relation) else {
            self.unknown(&atom.relation);
            return;
        };
        let given = atom.arguments.len();
        if given != arity {
            let message = format!("`{name}` has {}, not {given}", columns(arity));
            self.error(codes::ARITY, atom.span, message, |d| match place {
                Some(place) => d.with_place(place, "defined here"),
                None => d.with_note(format!("`{name}` is a relation of the facts")),
            });
        }
    }

    /// What a file answers with is known, named once, and has as many columns as are named.
    fn output(&mut self, output: &'p Output, before: &mut HashMap<(u32, &'p str), Span>) {
        let name = &*output.relation.value;
        let Some((arity, _)) = self.known(&output.relation) else {
            self.unknown(&output.relation);
            return;
        };
        if let Some(first) = before.get(&(output.span.file, name)) {
            let place = self.place(*first);
            self.error(codes::OUTPUT, output.span, format!("a second `output {name}`"), |d| {
                d.with_place(place, "the first one").with_hint("keep one of them")
            });
            return;
        }
        before.insert((output.span.file, name), output.span);
        let Some(given) = &output.columns else { return };
        if given.len() != arity {
            let message = format!("`{name}` has {}, but {} named here", columns(arity), named(given.len()));
            self.error(codes::ARITY, output.span, message, |d| d.with_hint("name each column once, in its order"));
        }
        for (place, column) in given.iter().enumerate() {
            if given[..place].contains(column) {
                let message = format!("a second column `{}`", column.value);
                self.error(codes::OUTPUT, column.span, message, |d| {
                    d.with_note("a table's columns are told apart by their names").with_hint("rename one of them")
                });
            }
        }
    }

    fn sizes(&mut self, rule: &Rule) {
        if rule.head.arguments.len() > MAX_ARITY {
            let message = format!("a relation of {}", columns(rule.head.arguments.len()));
            self.error(codes::RULE_SIZE, rule.head.span, message, |d| {
                d.with_note(format!("relations have at most {MAX_ARITY} columns"))
            });
        }
        for condition in &rule.body {
            if let Condition::Aggregate { body, over, .. } = &condition.value {
                let mut count = usize::from(over.is_some());
                let inner = std::slice::from_ref(condition);
                let mut names = HashSet::new();
                super::condition_terms(inner, &mut |term| {
                    count += usize::from(matches!(term.value, Term::Wildcard));
                    super::variables(&term.value, &mut |name| {
                        names.insert(Arc::clone(name));
                    });
                });
                count += names.len();
                if count > MAX_ARITY || body.len() > MAX_BODY {
                    self.error(codes::RULE_SIZE, condition.span, "an aggregate too large".to_owned(), |d| {
                        d.with_note(format!("aggregates have at most {MAX_ARITY} variables and {MAX_BODY} literals"))
                    });
                }
            }
        }
        if rule.body.len() > MAX_BODY {
            let message = format!("a rule of {} literals", rule.body.len());
            self.error(codes::RULE_SIZE, rule.head.span, message, |d| {
                d.with_note(format!("rules have at most {MAX_BODY} literals"))
                    .with_hint("give parts a rule of their own")
            });
        }
    }

    /// Numbers within range.
    fn number(&mut self, term: &Spanned<Term>) {
        match &term.value {
            Term::Integer(number) | Term::Variable(_, number) if Value::integer(*number).is_none() => {
                self.error(codes::NUMBER, term.span, "number out of range".to_owned(), |d| {
                    d.with_note(format!("numbers in rules lie between {} and {}", Value::MIN, Value::MAX))
                });
            }
            Term::Float(number) if Value::float(*number).is_none() => {
                self.error(codes::NUMBER, term.span, "number out of range".to_owned(), |d| d);
            }
            Term::Arithmetic(left, _, right) => {
                self.number(left);
                self.number(right);
            }
            _ => {}
        }
    }

    /// Numbers within range, no indices.
    fn term(&mut self, term: &Spanned<Term>) {
        match &term.value {
            Term::Variable(variable, _) if variable.index.is_some() => {
                let message = format!("`{}` with an index in a rule", variable.name);
                self.error(codes::INDEXED, term.span, message, |d| {
                    d.with_note("indices belong to `repeat` and `for` of templates")
                });
            }
            Term::Arithmetic(left, _, right) => {
                self.term(left);
                self.term(right);
            }
            _ => self.number(term),
        }
    }

    /// A variable that occurs once says nothing.
    fn occurrences(&mut self, rule: &'p Rule) {
        if rule.body.is_empty() {
            return;
        }
        let mut seen: IndexMap<Arc<str>, (usize, Span)> = IndexMap::new();
        let mut count = |name: &Arc<str>, span: Span| seen.entry(Arc::clone(name)).or_insert((0, span)).0 += 1;
        terms(rule, &mut |term| super::variables(&term.value, &mut |name| count(name, term.span)));
        let mut within = Vec::new();
        for condition in &rule.body {
            if let Condition::Aggregate { result, .. } = &condition.value {
                count(&result.value, result.span);
                within.push(condition.span);
            }
        }
        // What an aggregate counts may well be named once.
        let counted = |span: Span| within.iter().any(|outer| outer.start < span.start && span.end <= outer.end);
        let in_head = |name: &Arc<str>| {
            let mut found = false;
            rule.head
                .arguments
                .iter()
                .for_each(|term| super::variables(&term.value, &mut |other| found |= other == name));
            found
        };
        for (name, (count, span)) in &seen {
            // Once and in the head is an unsafe variable, which is reported as that.
            if *count == 1 && !name.starts_with('_') && !in_head(name) && !counted(*span) {
                let is_truth = ["true", "false"].into_iter().find(|truth| name.eq_ignore_ascii_case(truth));
                let constant = is_truth.is_some() || self.may_be_constant(rule, name);
                let symbol = is_truth.unwrap_or(name);
                self.warning(codes::ONCE, *span, format!("variable `{name}` occurs once"), |d| {
                    let d = if constant {
                        d.with_note("a name without quotes is a variable, also in small letters")
                            .with_hint(format!("write `\"{symbol}\"` for the symbol"))
                    } else {
                        d
                    };
                    d.with_hint(format!("write `_` if its value does not matter, or `_{name}`"))
                });
            }
        }
    }

    /// Whether a name may be meant as a symbol: it is written small beside variables in capitals, and stands where a symbol may.
    pub(super) fn may_be_constant(&self, rule: &Rule, name: &str) -> bool {
        let capital = |name: &str| name.starts_with(char::is_uppercase);
        let mut capitals = false;
        terms(rule, &mut |term| super::variables(&term.value, &mut |name| capitals |= capital(name)));
        let mut symbol = false;
        atoms(&rule.body, &mut |atom, _| {
            let types = self.schema.get(&atom.relation.value).map(|base| self.schema.columns(base).1);
            for (column, term) in atom.arguments.iter().enumerate() {
                if matches!(&term.value, Term::Variable(variable, 0) if *variable.name == *name) {
                    let kind = types.and_then(|types| types.get(column));
                    symbol |= matches!(kind, None | Some(Type::Symbol | Type::Any));
                }
            }
        });
        for condition in &rule.body {
            if let Condition::Compare(left, _, right) = &condition.value {
                let is = |term: &Spanned<Term>| matches!(&term.value, Term::Variable(variable, 0) if *variable.name == *name);
                symbol |= is(left) || is(right);
            }
        }
        capitals && symbol && name.chars().nth(1).is_some() && name.starts_with(char::is_lowercase)
    }

    fn template_names(&mut self) {
        let mut first: HashMap<&str, Span> = HashMap::new();
        for template in &self.program.templates {
            let name = &*template.name.value;
            let span = template.name.span;
            match first.get(name) {
                None => drop(first.insert(name, span)),
                Some(other) => {
                    let place = self.place(*other);
                    self.error(codes::TEMPLATE_AGAIN, span, format!("a second template `{name}`"), |d| {
                        d.with_place(place, "the first one").with_hint("rename one of them")
                    });
                }
            }
        }
    }

    /// Which templates of one order may meet is checked in `dyelog-templates`, which knows what their glue nodes are.
    fn template_orders(&mut self) {
        let without = |template: &&Template| template.order.is_none() && !template.damage.is_in(Damage::ORDER);
        for template in self.program.templates.iter().filter(without) {
            let name = &*template.name.value;
            self.warning(codes::ORDER, template.name.span, format!("template `{name}` has no order"), |d| {
                d.with_note("it is tried after all that have one").with_hint("add `order 1`, or what fits")
            });
        }
    }
}

fn columns(count: usize) -> String {
    if count == 1 { "1 column".to_owned() } else { format!("{count} columns") }
}

fn named(count: usize) -> String {
    match count {
        0 => "none is".to_owned(),
        1 => "1 is".to_owned(),
        count => format!("{count} are"),
    }
}
