//! What rules say in vain: bodies that never hold, literals that always do, rules that stand twice.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::ast::{Aggregate, Atom, Comparison, Condition, Operator, Rule, Span, Spanned, Term};
use crate::check::contradiction::Contradiction;
use crate::check::whole::Fractions;
use crate::check::{Checker, condition_terms, safety, variables};
use crate::codes;
use crate::eval::calculated;
use crate::syntax::{print_condition, print_rule};
use crate::value::Value;

impl<'p> Checker<'p> {
    pub(super) fn bodies(&mut self) {
        self.rules_again();
        let fractions = self.fractions();
        for rule in &self.program.rules {
            if !self.without_value(rule) {
                self.never(&rule.body, &fractions);
            }
            self.in_vain(rule);
            let outside = safety::outside(rule);
            for condition in &rule.body {
                if let Condition::Aggregate { function, over, body, .. } = &condition.value {
                    self.aggregate(condition.span, *function, over.as_ref(), body, &outside);
                }
            }
        }
        self.without_beginning();
    }

    /// Rules that say the same in the same order, whatever their variables are called.
    fn rules_again(&mut self) {
        let mut first: HashMap<(Option<u32>, String), Span> = HashMap::new();
        for rule in &self.program.rules {
            let key = (self.scopes.relation(&rule.head.relation), plain(rule));
            match first.get(&key) {
                None => drop(first.insert(key, rule.span)),
                Some(other) => {
                    let place = self.place(*other);
                    let what = if rule.body.is_empty() { "fact" } else { "rule" };
                    self.warning(codes::RULE_AGAIN, rule.span, format!("this {what} stands here twice"), |d| {
                        d.with_place(place, "the first time").with_hint("remove one of them")
                    });
                }
            }
        }
    }

    /// Arithmetic that never has a value: what stands with it never holds. Says whether there is any.
    fn without_value(&mut self, rule: &Rule) -> bool {
        let mut found = None;
        crate::check::terms(rule, &mut |term| {
            found = found.or_else(|| without_value(&term.value).map(|reason| (term.span, reason)));
        });
        if let Some((span, reason)) = found {
            self.error(codes::NEVER, span, "this never holds".to_owned(), |d| {
                d.with_note(reason).with_hint("remove it, or write arithmetic that has a value")
            });
        }
        found.is_some()
    }

    /// Literals that contradict each other, or themselves.
    fn never(&mut self, body: &'p [Spanned<Condition>], fractions: &Fractions) {
        if let Some(Contradiction { mut places, reason }) = self.contradiction(body, fractions) {
            let last = places.pop().expect("a contradiction has a place");
            let others: Vec<_> = places.into_iter().map(|span| self.place(span)).collect();
            self.error(codes::NEVER, last, "this never holds".to_owned(), |d| {
                let d = others.into_iter().fold(d, |d, place| d.with_place(place, "together with this"));
                d.with_note(reason).with_hint("remove the rule, or mend its conditions")
            });
        }
        for condition in body {
            if let Condition::Aggregate { body, .. } = &condition.value {
                self.never(body, fractions);
            }
        }
    }

    /// Literals that say nothing, and heads that say what the body has.
    fn in_vain(&mut self, rule: &'p Rule) {
        let mut seen: HashSet<String> = HashSet::new();
        for condition in &rule.body {
            let literal = &condition.value;
            let written = print_condition(literal);
            let again = !seen.insert(written.clone());
            let reason = match literal {
                Condition::Atom { negated: false, atom } if same(atom, &rule.head) => {
                    Some("the rule derives only what it asks for")
                }
                Condition::Compare(left, comparison, right) if always(left, *comparison, right) => {
                    Some("this always holds")
                }
                _ if again => Some("this stands in the body already"),
                _ => None,
            };
            if let Some(reason) = reason {
                let message = format!("`{written}` says nothing here");
                self.warning(codes::IN_VAIN, condition.span, message, |d| {
                    d.with_note(reason).with_hint("remove it, or write what is meant")
                });
            }
        }
    }

    /// An aggregate that has nothing to range over.
    fn aggregate(
        &mut self,
        span: Span,
        function: Aggregate,
        over: Option<&Spanned<Term>>,
        body: &[Spanned<Condition>],
        outside: &HashSet<Arc<str>>,
    ) {
        if body.is_empty() {
            self.error(codes::IN_VAIN, span, "an aggregate over nothing".to_owned(), |d| {
                d.with_note("it ranges over the bindings of what stands within its braces")
                    .with_hint("write relations there")
            });
            return;
        }
        let (mut own, mut any) = (false, false);
        condition_terms(body, &mut |term| {
            any |= matches!(term.value, Term::Wildcard);
            variables(&term.value, &mut |name| own |= !outside.contains(name));
        });
        if !own && !any {
            let note = "each of its variables occurs outside of the braces too, and so has one value there";
            let hint = "give what is counted a name that occurs within the braces only";
            let what = if function == Aggregate::Count { "it counts 0 or 1" } else { "it ranges over one value" };
            self.warning(codes::IN_VAIN, span, format!("this aggregate groups by all it has: {what}"), |d| {
                d.with_note(note).with_hint(hint)
            });
            return;
        }
        let Some(over) = over else { return };
        let (mut some, mut varies) = (false, false);
        variables(&over.value, &mut |name| {
            some = true;
            varies |= !outside.contains(name);
        });
        if some && !varies {
            let written = crate::syntax::print_term(&over.value);
            self.warning(
                codes::IN_VAIN,
                over.span,
                format!("`{written}` is the same for all that is aggregated"),
                |d| {
                    d.with_note("its variables occur outside of the braces too, and so group")
                        .with_hint("name the value that varies")
                },
            );
        }
    }

    /// Relations whose every rule needs one that has no beginning either.
    fn without_beginning(&mut self) {
        // Relations that are wrongly named or defined may have a beginning once they are mended.
        let causes = [codes::RELATION, codes::ARITY, codes::BASE_RULE];
        if self.found.iter().any(|(_, finding)| causes.contains(&finding.code)) {
            return;
        }
        let count = self.scopes.len();
        let mut begun = vec![false; count];
        // What each rule still waits for, and which rules wait for a relation.
        let mut waiting: Vec<usize> = Vec::new();
        let mut waiters: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut open = Vec::new();
        let heads: Vec<Option<u32>> =
            self.program.rules.iter().map(|rule| self.scopes.relation(&rule.head.relation)).collect();
        for (number, rule) in self.program.rules.iter().enumerate() {
            let mut needed = 0;
            for condition in &rule.body {
                if let Condition::Atom { negated: false, atom } = &condition.value
                    && let Some(relation) = self.scopes.relation(&atom.relation)
                {
                    needed += 1;
                    waiters[relation as usize].push(number);
                }
            }
            waiting.push(needed);
            if needed == 0 {
                open.extend(heads[number]);
            }
        }
        while let Some(relation) = open.pop() {
            if std::mem::replace(&mut begun[relation as usize], true) {
                continue;
            }
            for rule in &waiters[relation as usize] {
                waiting[*rule] -= 1;
                if waiting[*rule] == 0 {
                    open.extend(heads[*rule]);
                }
            }
        }
        if self.program.lost.anything() {
            return;
        }
        for relation in (0..count as u32).filter(|relation| !begun[*relation as usize]) {
            let span = self.scopes.first(relation).span;
            let name = self.scopes.shown(relation);
            self.error(codes::NEVER, span, format!("`{name}` never holds"), |d| {
                d.with_note("each of its rules needs a relation that never holds, or itself")
                    .with_hint("add a rule that begins with relations of the facts")
            });
        }
    }
}

/// A rule's text with its variables numbered in the order of occurrence.
fn plain(rule: &Rule) -> String {
    let mut names: HashMap<Arc<str>, usize> = HashMap::new();
    let mut copy = Rule { doc: String::new(), ..rule.clone() };
    let mut rename = |name: &mut Arc<str>| {
        let next = names.len();
        let number = *names.entry(Arc::clone(name)).or_insert(next);
        *name = format!("V{number}").into();
    };
    copy.head.arguments.iter_mut().for_each(|term| rename_term(&mut term.value, &mut rename));
    rename_conditions(&mut copy.body, &mut rename);
    print_rule(&copy)
}

fn rename_conditions(conditions: &mut [Spanned<Condition>], rename: &mut dyn FnMut(&mut Arc<str>)) {
    for condition in conditions {
        match &mut condition.value {
            Condition::Compare(left, _, right) => {
                rename_term(&mut left.value, rename);
                rename_term(&mut right.value, rename);
            }
            Condition::Atom { atom, .. } => {
                atom.arguments.iter_mut().for_each(|term| rename_term(&mut term.value, rename));
            }
            Condition::Aggregate { result, over, body, .. } => {
                rename(&mut result.value);
                if let Some(over) = over {
                    rename_term(&mut over.value, rename);
                }
                rename_conditions(body, rename);
            }
            Condition::NotStarts { .. } | Condition::Rounds { .. } => {} // of templates only
        }
    }
}

fn rename_term(term: &mut Term, rename: &mut dyn FnMut(&mut Arc<str>)) {
    match term {
        Term::Variable(variable, _) => rename(&mut variable.name),
        Term::Arithmetic(left, _, right) => {
            rename_term(&mut left.value, rename);
            rename_term(&mut right.value, rename);
        }
        _ => {}
    }
}

fn same(atom: &Atom, head: &Atom) -> bool {
    let wild = atom.arguments.iter().any(|term| matches!(term.value, Term::Wildcard));
    !wild
        && atom.relation == head.relation
        && atom.relation.span.file == head.relation.span.file
        && atom.arguments == head.arguments
}

/// Whether a comparison holds whatever its variables are. Arithmetic may have no value, and then does not.
fn always(left: &Spanned<Term>, comparison: Comparison, right: &Spanned<Term>) -> bool {
    let equal = matches!(comparison, Comparison::Equal | Comparison::LessOrEqual | Comparison::GreaterOrEqual);
    match (&left.value, &right.value) {
        (Term::Integer(left), Term::Integer(right)) => comparison.holds(*left, *right),
        (Term::Symbol(left), Term::Symbol(right)) => match comparison {
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
            _ => false,
        },
        (Term::Variable(one, less), Term::Variable(other, more)) if one == other => {
            (less == more && equal) || (less != more && comparison.holds(*less, *more))
        }
        _ => false,
    }
}

/// Why arithmetic on constants never has a value, where it has none: it divides by 0, or leaves the range of numbers.
pub fn without_value(term: &Term) -> Option<&'static str> {
    folded(term).err()
}

/// The value of a term without variables, as far as it is known; or why the term has none. Terms are no deeper than the parser allows.
fn folded(term: &Term) -> Result<Option<Value>, &'static str> {
    let Term::Arithmetic(left, operator, right) = term else {
        return Ok(match term {
            Term::Integer(number) => Value::integer(*number),
            Term::Float(number) => Value::float(*number),
            _ => None,
        });
    };
    let (left, right) = (folded(&left.value)?, folded(&right.value)?);
    // Whether a quotient is rounded depends on what both sides are.
    if matches!(operator, Operator::Divide | Operator::Remainder) {
        return if right == Value::integer(0) { Err("division by 0 has no value") } else { Ok(None) };
    }
    let (Some(left), Some(right)) = (left, right) else { return Ok(None) };
    let value = calculated(left, *operator, right);
    value.map(Some).ok_or("the result is out of range: whole numbers are less than 2^61, others less than 1.8e308")
}
