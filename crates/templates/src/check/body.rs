//! A template as the body of a rule: literals about its nodes, and its conditions over the same variables.
//!
//! A variable of a round is named for it, such as `y[x+1]`. A task has two: its instance, which only tasks are compared with, and its
//! name, which relations, texts and open variables meet.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::facts::KINDS;
use crate::pattern::{At, Key, Node, Pattern, Scope, Solved};
use crate::plan::{Field, KindTag};
use dyelog_datalog::ast::{Aggregate, Atom, Comparison, Condition, Span, Spanned, Template, Term, Variable};

/// Nodes compared in pairs, at most.
const MAX_NODES: usize = 24;

/// The body of a rule that holds what is known of a template's match.
pub struct Body<'t> {
    scope: &'t Scope,
    /// The round that conditions and nodes of rounds speak of.
    round: At,
    /// The names of variables that are tasks of nodes.
    tasks: Arc<BTreeSet<Arc<str>>>,
    /// Variables of the nodes, those of rounds too.
    known: Arc<BTreeSet<Arc<str>>>,
    /// Open variables that `begins` or `ends` give an instance of a task.
    instances: BTreeSet<Arc<str>>,
    conditions: Vec<Spanned<Condition>>,
    /// Comparisons that keep nodes apart: many, and seldom needed.
    apart: Vec<Spanned<Condition>>,
}

impl<'t> Body<'t> {
    /// What the nodes of a template say, those of its rounds for one round.
    pub fn new(template: &Template, pattern: &Pattern, scope: &'t Scope, round: At) -> Self {
        let nodes: Vec<&Node> = pattern.all().collect();
        let variables = |field: fn(Field) -> bool| {
            let of = nodes.iter().flat_map(|node| node.terms()).filter(move |(of, _)| field(*of));
            of.filter_map(|(_, term)| match term {
                Solved::Variable((name, _), _) => Some(Arc::clone(name)),
                _ => None,
            })
        };
        let tasks = variables(|field| matches!(field, Field::Task | Field::TaskName)).collect();
        let mut known: BTreeSet<Arc<str>> = variables(|_| true).collect();
        known.extend(nodes.iter().map(|node| Arc::clone(&node.name)));
        known.extend(scope.counts().chain(scope.indices()).cloned());
        let mut body = Self {
            scope,
            round,
            tasks: Arc::new(tasks),
            known: Arc::new(known),
            instances: BTreeSet::new(),
            conditions: Vec::new(),
            apart: Vec::new(),
        };
        for round in &pattern.rounds {
            body.count(&round.count, round.min, template.name.span);
            // Without rounds there is no index.
            if round.min > 0 {
                body.index(&round.index, &round.count, template.name.span);
            }
        }
        let outer = pattern.nodes.len();
        let at = |place: usize| if place < outer { At::Scalar } else { At::Here };
        for (place, node) in nodes.iter().enumerate() {
            body.node(node, at(place));
        }
        for (place, one) in nodes.iter().enumerate().take(MAX_NODES) {
            for (further, other) in nodes.iter().enumerate().take(MAX_NODES).skip(place + 1) {
                // Another check reports a second node of one name.
                if one.name != other.name {
                    body.two((one, at(place)), (other, at(further)));
                }
            }
        }
        body
    }

    /// The literals.
    pub fn conditions(&self) -> Vec<Spanned<Condition>> {
        self.conditions.iter().chain(&self.apart).cloned().collect()
    }

    /// Whether the nodes give each variable of a comparison its value.
    pub fn knows(&self, condition: &Condition) -> bool {
        crate::pattern::condition_terms(condition).into_iter().all(|term| match &term.value {
            Term::Variable(variable, _) => self.known.contains(&variable.name),
            _ => true,
        })
    }

    /// Adds a condition of the template.
    pub fn add(&mut self, condition: &Spanned<Condition>) {
        let span = condition.span;
        match &condition.value {
            Condition::Compare(..) => self.conditions.extend(self.comparisons(condition)),
            // Another check reports a symbol that is no kind.
            Condition::Atom { atom, .. } if is_no_kind(atom) => {}
            Condition::Atom { negated, atom } => {
                let by_instance = matches!(&*atom.relation.value, "begins" | "ends");
                let mut arguments = Vec::new();
                for (column, term) in atom.arguments.iter().enumerate() {
                    let instance = by_instance && column == 1;
                    if let Term::Variable(variable, _) = &term.value
                        && instance
                        && !self.tasks.contains(&variable.name)
                    {
                        self.instances.insert(Arc::clone(&variable.name));
                    }
                    let Some(term) = self.term(term, !instance) else { return };
                    arguments.push(term);
                }
                let atom = Atom { arguments, ..atom.clone() };
                self.conditions.push(Spanned { value: Condition::Atom { negated: *negated, atom }, span });
            }
            _ => {}
        }
    }

    /// A comparison of the template as comparisons of the body: of tasks their instances are compared, or their names, or both.
    pub fn comparisons(&self, condition: &Spanned<Condition>) -> Vec<Spanned<Condition>> {
        let mut found = Vec::new();
        let Condition::Compare(left, comparison, right) = &condition.value else { return found };
        let is = |names: &BTreeSet<Arc<str>>, term: &Spanned<Term>| matches!(&term.value, Term::Variable(variable, _) if names.contains(&variable.name));
        // Whether the instance or its name is compared depends on what else gives it.
        if [left, right].into_iter().any(|term| is(&self.instances, term)) {
            return found;
        }
        let instances = is(&self.tasks, left) && is(&self.tasks, right);
        for names in [false, true] {
            // Different instances may have one name.
            if names != instances || (names && *comparison == Comparison::Equal) {
                let (Some(left), Some(right)) = (self.term(left, names), self.term(right, names)) else { break };
                found.push(Spanned { value: Condition::Compare(left, *comparison, right), span: condition.span });
            }
        }
        found
    }

    /// How many rounds there are.
    fn count(&mut self, count: &Arc<str>, least: u32, span: Span) {
        let result = Spanned { value: Arc::clone(count), span };
        let rounds = Condition::Aggregate { result, function: Aggregate::Count, over: None, body: Vec::new() };
        self.conditions.push(Spanned { value: rounds, span });
        let least = Term::Integer(least.into());
        self.say(plain(count), Comparison::GreaterOrEqual, least, span);
    }

    /// Which round is spoken of.
    fn index(&mut self, index: &Arc<str>, count: &Arc<str>, span: Span) {
        let comparison = |is: bool, other| if is { Comparison::Equal } else { other };
        let (first, last) = (self.round == At::First, self.round == At::Last);
        self.say(plain(index), comparison(first, Comparison::GreaterOrEqual), Term::Integer(1), span);
        self.say(plain(index), comparison(last, Comparison::LessOrEqual), plain(count), span);
    }

    /// What the facts say of one node.
    fn node(&mut self, node: &Node, at: At) {
        let span = node.span;
        let own = self.variable(&(Arc::clone(&node.name), at), 0);
        let thread = self.solved(&node.thread, false);
        let position = self.solved(&node.position, false);
        let counter = self.solved(&node.counter, false);
        let task = self.solved(&node.task, true);
        self.holds("node", [own.clone()], span);
        if node.kind != KindTag::Any {
            self.holds("kind", [own.clone(), Term::Symbol(node.kind.label().into())], span);
        }
        self.holds("thread", [own.clone(), thread.clone(), position.clone()], span);
        self.holds("task", [own.clone(), task, counter.clone()], span);
        for (field, term) in &node.attributes {
            let relation = if *field == Field::Activity { "name" } else { "op" };
            let value = self.solved(term, true);
            self.holds(relation, [own.clone(), value], span);
        }
        for counter in [&position, &counter] {
            self.say(counter.clone(), Comparison::GreaterOrEqual, Term::Integer(1), span);
        }
        if node.kind == KindTag::Begin {
            self.say(position, Comparison::Equal, Term::Integer(1), span);
        }
        let target = self.solved(&node.target, false);
        if target == Term::Wildcard {
            return;
        }
        // No thread forks itself, or waits for itself.
        let other = plain(&format!("{} of the other thread", node.name).into());
        self.say(thread, Comparison::NotEqual, target.clone(), span);
        if node.kind == KindTag::Fork {
            self.holds("forks", [own, other.clone()], span);
            self.holds("thread", [other, target, Term::Integer(1)], span);
        } else {
            self.holds("joins", [other.clone(), own], span);
            self.holds("thread", [other, target, Term::Wildcard], span);
        }
    }

    /// What the labels of two nodes say of both.
    fn two(&mut self, (one, at): (&Node, At), (other, further): (&Node, At)) {
        let [left, right] =
            [(one, at), (other, further)].map(|(node, at)| self.variable(&(Arc::clone(&node.name), at), 0));
        // Different names match different nodes.
        self.tell_apart(left.clone(), right.clone(), other.span);
        let lines = [
            (&one.thread, &other.thread, &one.position, &other.position, "next_in_thread"),
            (&one.task, &other.task, &one.counter, &other.counter, "next_in_task"),
        ];
        for (line, same, counter, another, next) in lines {
            if line != same || !matches!(line, Solved::Variable(..)) {
                continue;
            }
            let [counter, another] = [counter, another].map(|counter| self.solved(counter, false));
            match (&counter, &another) {
                (Term::Variable(x, less), Term::Variable(y, more)) if x == y => match more.checked_sub(*less) {
                    Some(1) => self.holds(next, [left.clone(), right.clone()], other.span),
                    Some(-1) => self.holds(next, [right.clone(), left.clone()], other.span),
                    _ => {}
                },
                _ => self.tell_apart(counter, another, other.span),
            }
        }
        for (fork, begin, forked, begun) in [(one, other, &left, &right), (other, one, &right, &left)] {
            let forks = fork.kind == KindTag::Fork && begin.kind == KindTag::Begin && fork.target == begin.thread;
            if forks && matches!(fork.target, Solved::Variable(..)) {
                self.holds("forks", [forked.clone(), begun.clone()], other.span);
            }
        }
    }

    fn tell_apart(&mut self, left: Term, right: Term, span: Span) {
        if left != Term::Wildcard && right != Term::Wildcard {
            let [left, right] = [left, right].map(|value| Spanned { value, span });
            self.apart.push(Spanned { value: Condition::Compare(left, Comparison::NotEqual, right), span });
        }
    }

    fn holds<const N: usize>(&mut self, relation: &str, arguments: [Term; N], span: Span) {
        let arguments = arguments.map(|value| Spanned { value, span }).to_vec();
        let atom = Atom { relation: Spanned { value: relation.into(), span }, arguments, span };
        self.conditions.push(Spanned { value: Condition::Atom { negated: false, atom }, span });
    }

    fn say(&mut self, left: Term, comparison: Comparison, right: Term, span: Span) {
        if left != Term::Wildcard {
            let [left, right] = [left, right].map(|value| Spanned { value, span });
            self.conditions.push(Spanned { value: Condition::Compare(left, comparison, right), span });
        }
    }

    fn solved(&self, term: &Solved, name: bool) -> Term {
        match term {
            Solved::Wildcard => Term::Wildcard,
            Solved::Integer(number) => Term::Integer(*number),
            Solved::Symbol(text) => Term::Symbol(Arc::clone(text)),
            Solved::Variable((variable, at), offset) if name && self.tasks.contains(variable) => {
                self.variable(&(format!("name of {variable}").into(), *at), *offset)
            }
            Solved::Variable(key, offset) => self.variable(key, *offset),
        }
    }

    /// A term over the body's variables; none where an index means nothing. No deeper than the parser allows.
    fn term(&self, term: &Spanned<Term>, name: bool) -> Option<Spanned<Term>> {
        let value = match &term.value {
            Term::Variable(variable, offset) => {
                let key = self.scope.key(variable)?;
                self.solved(&Solved::Variable(key, *offset), name)
            }
            Term::Arithmetic(left, operator, right) => {
                let (left, right) = (self.term(left, name)?, self.term(right, name)?);
                Term::Arithmetic(Box::new(left), *operator, Box::new(right))
            }
            other => other.clone(),
        };
        Some(Spanned { value, span: term.span })
    }

    fn variable(&self, (name, at): &Key, offset: i64) -> Term {
        let running = |further: i64| match (self.round, further) {
            (At::First, further) => further.saturating_add(1).to_string(),
            (At::Last, 0) => "n".to_owned(),
            (At::Last, further) => format!("n{further:+}"),
            (_, 0) => "x".to_owned(),
            (_, further) => format!("x{further:+}"),
        };
        let index = match at {
            At::Scalar => return Term::Variable(Variable { name: Arc::clone(name), index: None }, offset),
            At::First => "1".to_owned(),
            At::Nth(round) => round.to_string(),
            At::Last => "n".to_owned(),
            At::After => "n+1".to_owned(),
            At::FromLast(before) => format!("n{before}"),
            At::Here => running(0),
            At::Next => running(1),
            At::Further(further) => running(*further),
            // Rounds of two sequences are the same only where both are the first.
            At::Across(_, further) if self.round == At::First => running(*further),
            At::Across(sequence, further) => format!("{} of {sequence}", running(*further)),
        };
        Term::Variable(Variable { name: format!("{name}[{index}]").into(), index: None }, offset)
    }
}

fn is_no_kind(atom: &Atom) -> bool {
    let symbol = atom.arguments.get(1).map(|term| &term.value);
    &*atom.relation.value == "kind" && matches!(symbol, Some(Term::Symbol(kind)) if !KINDS.contains(&&**kind))
}

fn plain(name: &Arc<str>) -> Term {
    Term::Variable(Variable { name: Arc::clone(name), index: None }, 0)
}
