//! From templates as they are written to steps, and all that is wrong with them.

use std::sync::Arc;

use crate::codes;
use crate::rules::scope::{Path, Scope, Sort, TRIGGERS, TYPED};
use crate::rules::steps::{Function, Operand, Register, Step, Steps, Text, Trigger};
use crate::rules::{Rules, has_errors, outcome, shipped_text};
use crate::walk::Walks;
use dyelog_datalog::ast::{Atom, Comparison, Condition, Ident, Program, Span, Spanned, Term};
use dyelog_datalog::codes as of_rules;
use dyelog_datalog::event_template::{Event, EventTemplate, Lookup};
use dyelog_diagnostic::{Code, Diagnostic, Diagnostics};

/// Templates beyond these are no rule file.
const MAX_TEMPLATES: usize = 1000;

/// The rules of a program where nothing is wrong with them, and all that there is to say.
pub fn check(program: &Program) -> (Option<Rules>, Vec<Diagnostic>) {
    let mut findings = Findings { program, list: Vec::new() };
    let walks = match Walks::of(program) {
        Ok(walks) => walks,
        Err(Diagnostics(found)) => {
            findings.list.extend(found);
            Walks::default()
        }
    };
    for template in &program.templates {
        findings.error(of_rules::MISPLACED, template.name.span, "a template of nodes among templates on events", |d| {
            d.with_note("nodes are matched in traces with a dye, events in traces of messages")
                .with_hint("put it into a file of its own")
        });
    }
    for output in &program.outputs {
        findings.error(of_rules::MISPLACED, output.span, "`output` beside templates on events", |d| {
            d.with_hint("put questions into a file of their own, for `dyelog query`")
        });
    }
    if let Some(beyond) = program.event_templates.get(MAX_TEMPLATES) {
        findings.error(of_rules::TOO_LARGE, beyond.name.span, format!("more than {MAX_TEMPLATES} templates"), |d| d);
        return (None, findings.list);
    }
    let mut asked = Vec::new();
    let mut compiled: Vec<Steps> = Vec::new();
    for template in &program.event_templates {
        let mut one = Compiler {
            findings: &mut findings,
            walks: &walks,
            scope: Scope::default(),
            steps: Vec::new(),
            texts: Vec::new(),
        };
        compiled.extend(one.template(template));
        asked.extend(atoms(&template.conditions).map(|atom| Arc::clone(&atom.relation.value)));
    }
    between(program, &compiled, &mut findings);
    unused(program, &asked, &mut findings);
    findings.list.sort_by(|left, right| left.place.cmp(&right.place));
    if has_errors(&findings.list) || compiled.len() < program.event_templates.len() {
        return (None, findings.list);
    }
    compiled.sort_by_key(|template| template.order);
    let list = findings.list;
    (Some(Rules::new(compiled, walks, list.clone())), list)
}

fn atoms(conditions: &[Spanned<Condition>]) -> impl Iterator<Item = &Atom> {
    conditions.iter().filter_map(|condition| match &condition.value {
        Condition::Atom { atom, .. } => Some(atom),
        _ => None,
    })
}

/// Templates of one name, and such as others never let have their turn.
fn between(program: &Program, compiled: &[Steps], findings: &mut Findings<'_>) {
    let all = &program.event_templates;
    for (number, template) in all.iter().enumerate() {
        let name = &template.name;
        if let Some(first) = all[..number].iter().find(|other| other.name.value == name.value) {
            let place = program.place(first.name.span);
            findings.error(of_rules::TEMPLATE_AGAIN, name.span, format!("a second template `{}`", name.value), |d| {
                d.with_place(place, "the first one")
            });
        }
        let own = compiled.iter().position(|one| one.name == name.value);
        let Some((own, place)) = own.map(|place| (&compiled[place], place)) else { continue };
        let before = |other: &(usize, &Steps)| (other.1.order, other.0) < (own.order, place);
        let any = |other: &(usize, &Steps)| other.1.trigger == own.trigger && other.1.matching.is_empty();
        if let Some((_, first)) = compiled.iter().enumerate().filter(before).find(any) {
            let message = format!("`{}` never has its turn", name.value);
            findings.warn(codes::SHADOWED, name.span, message, |d| {
                d.with_note(format!("`{}` is tried before it, and matches at every such event", first.name))
                    .with_hint("give it a lower `order`")
            });
        }
    }
}

/// Relations that no condition asks.
fn unused(program: &Program, asked: &[Arc<str>], findings: &mut Findings<'_>) {
    let mut used = asked.to_vec();
    let mut from = 0;
    while from < used.len() {
        let name = Arc::clone(&used[from]);
        for rule in program.rules.iter().filter(|rule| rule.head.relation.value == name) {
            for atom in atoms(&rule.body) {
                if !used.contains(&atom.relation.value) {
                    used.push(Arc::clone(&atom.relation.value));
                }
            }
        }
        from += 1;
    }
    for rule in program.rules.iter().filter(|rule| !used.contains(&rule.head.relation.value)) {
        let name = &rule.head.relation;
        findings.warn(of_rules::UNUSED, name.span, format!("nothing uses `{}`", name.value), |d| d);
    }
}

/// What there is to say about a program.
pub(super) struct Findings<'p> {
    program: &'p Program,
    list: Vec<Diagnostic>,
}

impl Findings<'_> {
    pub(super) fn error(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
        more: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        self.list.push(more(Diagnostic::error(code, self.program.place(span), message)));
    }

    fn warn(&mut self, code: Code, span: Span, message: String, more: impl FnOnce(Diagnostic) -> Diagnostic) {
        self.list.push(more(Diagnostic::warning(code, self.program.place(span), message)));
    }
}

/// The names that rule files may use at a place: `live(T)`, …
fn names(described: &[(&'static str, &str)]) -> impl Iterator<Item = &'static str> {
    described.iter().map(|(form, _)| form.split_once('(').map_or(*form, |(name, _)| name))
}

pub(super) struct Compiler<'c, 'p> {
    pub(super) findings: &'c mut Findings<'p>,
    pub(super) walks: &'c Walks,
    pub(super) scope: Scope,
    pub(super) steps: Vec<Step>,
    /// What is written for each step.
    texts: Vec<String>,
}

impl Compiler<'_, '_> {
    fn template(&mut self, template: &EventTemplate) -> Option<Steps> {
        let faults = self.findings.list.len();
        let (trigger, _) = self.event(template.event.as_ref()?)?;
        for lookup in &template.lookups {
            self.lookup(lookup);
            self.said(lookup.span());
        }
        for condition in &template.conditions {
            self.condition(trigger, condition);
            self.said(condition.span);
        }
        let done = outcome::of(self, trigger, template);
        if template.damaged {
            // What else is wrong may follow from what could not be read.
            self.findings.list.truncate(faults);
            return None;
        }
        if !has_errors(&self.findings.list[faults..]) {
            self.used_once();
            if template.order.is_none() {
                let message = format!("template `{}` without `order`", template.name.value);
                self.findings.warn(of_rules::ORDER, template.name.span, message, |d| {
                    d.with_note("it is tried after all that have one").with_hint("add `order 1`")
                });
            }
        }
        // What failed would have been a step: without it the template would seem to match more than it does.
        if has_errors(&self.findings.list[faults..]) {
            return None;
        }
        let (matching, done) = (std::mem::take(&mut self.steps), done?);
        let text = Box::new(self.text(template));
        let order = template.order.as_ref().map_or(i64::MAX, |order| order.value);
        let file = self.findings.program.files.get(template.name.span.file as usize);
        let is_shipped = file.is_some_and(|file| shipped_text(&file.name).is_some());
        Some(Steps { order, is_shipped, matching, text, ..done })
    }

    /// That the steps which came last stand for what is written there.
    pub(super) fn said(&mut self, span: Span) {
        if self.texts.len() < self.steps.len() {
            let text = self.findings.program.text(span);
            self.texts.resize(self.steps.len(), text);
        }
    }

    /// The template as it is written.
    fn text(&mut self, template: &EventTemplate) -> Text {
        let program = self.findings.program;
        let (file, line) = program.line(template.name.span);
        let asserted = template.asserted.iter().map(|one| ("assert", program.text(one.span())));
        let recorded = template.records.iter().map(|one| ("model", program.text(one.span)));
        let retired = template.retired.iter().map(|one| ("retire", program.text(one.span())));
        let variables = self.scope.variables.iter();
        Text {
            file,
            line,
            event: template.event.as_ref().map(|event| program.text(event.span)).unwrap_or_default(),
            given: template.event.as_ref().map_or(0, |event| event.parameters.len()),
            steps: std::mem::take(&mut self.texts),
            variables: variables.map(|one| (Arc::clone(&one.name), one.sort, one.register)).collect(),
            paths: std::mem::take(&mut self.scope.paths),
            done: asserted.chain(recorded).chain(retired).collect(),
        }
    }

    fn event(&mut self, event: &Event) -> Option<(Trigger, usize)> {
        let name = &*event.name.value;
        let Some((_, trigger, sorts)) = TRIGGERS.iter().find(|(known, ..)| *known == name) else {
            self.findings.error(of_rules::RELATION, event.name.span, format!("no event is called `{name}`"), |d| {
                d.with_note(listed("the events are", &super::EVENTS))
                    .with_similar(name, TRIGGERS.iter().map(|(name, ..)| *name))
            });
            return None;
        };
        let least = if *trigger == Trigger::Message { 2 } else { sorts.len() };
        let count = event.parameters.len();
        if count < least || count > sorts.len() {
            self.findings.error(of_rules::ARITY, event.span, format!("`{name}` with {count} variables"), |d| {
                d.with_note(listed("the events are", &super::EVENTS))
            });
            return None;
        }
        for (parameter, sort) in event.parameters.iter().zip(*sorts) {
            if *parameter.value != *"_" && self.scope.is_known(&parameter.value) {
                let message = format!("`{}` stands twice in the event", parameter.value);
                self.findings.error(of_rules::ONCE, parameter.span, message, |d| d.with_hint("compare under `where`"));
            }
            // What is not asked takes its register, too: what the event tells is put there.
            self.scope.bind(parameter, *sort);
        }
        Some((*trigger, count))
    }

    /// A variable that must be known, and of that sort.
    pub(super) fn known(&mut self, name: &Ident, sort: Sort) -> Option<Register> {
        if *name.value == *"_" {
            self.findings.error(of_rules::UNSAFE, name.span, "`_` gives no value here", |d| d);
            return None;
        }
        let Some(variable) = self.scope.known(&name.value) else {
            let names: Vec<Arc<str>> = self.scope.variables.iter().map(|one| Arc::clone(&one.name)).collect();
            let message = format!("nothing gives `{}` a value", name.value);
            self.findings.error(of_rules::UNSAFE, name.span, message, |d| {
                let names: Vec<&str> = names.iter().map(|name| &**name).filter(|name| *name != "_").collect();
                d.with_note("`on` and `match` give values to variables").with_similar(&name.value, names)
            });
            return None;
        };
        let (found, register) = (variable.sort, variable.register);
        if found != sort {
            let message = format!("`{}` is {}, and {} belongs here", name.value, found.words(), sort.words());
            self.findings.error(of_rules::TYPE, name.span, message, |d| d);
            return None;
        }
        Some(register)
    }

    fn bind(&mut self, name: &Ident, sort: Sort) -> Option<Register> {
        let register = self.scope.bind(name, sort);
        if register.is_none() {
            let message = "a template on events has at most 16 variables";
            self.findings.error(of_rules::RULE_SIZE, name.span, message, |d| d);
        }
        register
    }

    /// An argument that is a variable: as it is, `P[2]` of a path.
    pub(super) fn argument(&mut self, term: &Spanned<Term>, sort: Sort) -> Option<Register> {
        match &term.value {
            Term::Variable(variable, 0) => match &variable.index {
                None => self.known(&Spanned { value: Arc::clone(&variable.name), span: term.span }, sort),
                Some(index) => {
                    let place = self.scope.path(&variable.name).map(|path| match (&index.variable, index.offset) {
                        (None, 1) => Some(path.from),
                        (None, 2) => Some(path.second),
                        (Some(count), 0) if *count == path.count => Some(path.to),
                        _ => None,
                    });
                    match place {
                        Some(Some(register)) if sort == Sort::Occurrence => Some(register),
                        Some(Some(_)) => {
                            let message = format!("an occurrence, and {} belongs here", sort.words());
                            self.findings.error(of_rules::TYPE, term.span, message, |d| d);
                            None
                        }
                        Some(None) => {
                            let message = "of a path, conditions ask for the first, second and last occurrence";
                            self.findings.error(of_rules::UNSAFE, term.span, message, |d| {
                                d.with_hint(format!("write `{0}[1]`, `{0}[2]` or `{0}[n]`", variable.name))
                            });
                            None
                        }
                        None => {
                            let message = format!("there is no path `{}`", variable.name);
                            self.findings.error(of_rules::UNSAFE, term.span, message, |d| {
                                d.with_hint("write `path P[1..n] from W to U` under `match`")
                            });
                            None
                        }
                    }
                }
            },
            _ => {
                self.findings.error(of_rules::TYPE, term.span, format!("{} belongs here", sort.words()), |d| {
                    d.with_hint("give it to a variable under `match`")
                });
                None
            }
        }
    }

    fn lookup(&mut self, lookup: &Lookup) {
        match lookup {
            Lookup::Value { variable, function } => {
                let Some((function, sort, of, task)) = self.function(function) else {
                    // What follows from it is not told.
                    self.bind(variable, Sort::Occurrence);
                    return;
                };
                if self.scope.is_known(&variable.value) {
                    if let Some(to) = self.known(variable, sort) {
                        self.steps.push(Step::LookUp { function, of, task, to, bind: false });
                    }
                } else if let Some(to) = self.bind(variable, sort) {
                    self.steps.push(Step::LookUp { function, of, task, to, bind: true });
                }
            }
            Lookup::Path { name, count, from, to, .. } => {
                let ends = (self.known(from, Sort::Occurrence), self.known(to, Sort::Occurrence));
                let again = self.scope.path(&name.value).is_some() || self.scope.is_known(&count.value);
                if again {
                    self.findings.error(of_rules::NAME_AGAIN, name.span, "a path has names of its own", |d| {
                        d.with_hint("give the path, or its number, another name")
                    });
                    return;
                }
                let (number, second) = (self.bind(count, Sort::Number), self.scope.register());
                let ((Some(from), Some(to)), Some(number), Some(second)) = (ends, number, second) else { return };
                self.scope.known(&count.value);
                let (name, count) = (Arc::clone(&name.value), Arc::clone(&count.value));
                self.scope.paths.push(Path { name, count, from, to, second });
                self.steps.push(Step::Path { from, to, count: number, second });
            }
        }
    }

    /// A look-up, what it gives, and the registers that it takes.
    fn function(&mut self, atom: &Atom) -> Option<(Function, Sort, Register, Register)> {
        let name = &*atom.relation.value;
        let count = atom.arguments.len();
        let named = || TYPED.iter().filter(|(known, ..)| *known == name);
        let Some((_, sorts, function, gives)) = named().find(|(_, sorts, ..)| sorts.len() == count) else {
            let (code, message) = match named().next() {
                Some(_) => (of_rules::ARITY, format!("`{name}` of {count}")),
                None => (of_rules::RELATION, format!("nothing is looked up by `{name}`")),
            };
            self.findings.error(code, atom.span, message, |d| {
                d.with_note(listed("what can be looked up is", &super::FUNCTIONS))
                    .with_similar(name, names(&super::FUNCTIONS))
            });
            return None;
        };
        let mut registers = [0; 2];
        for ((argument, sort), register) in atom.arguments.iter().zip(*sorts).zip(&mut registers) {
            *register = self.argument(argument, *sort)?;
        }
        Some((*function, *gives, registers[0], registers[1]))
    }

    fn condition(&mut self, trigger: Trigger, condition: &Spanned<Condition>) {
        match &condition.value {
            Condition::Compare(left, how, right) => self.compare(trigger, left, *how, right, condition.span),
            Condition::Atom { negated, atom } => self.test(atom, !negated),
            _ => self.findings.error(
                of_rules::MISPLACED,
                condition.span,
                "conditions on events are tests and comparisons",
                |d| d.with_note(listed("the tests are", &super::TESTS)),
            ),
        }
    }

    fn compare(&mut self, trigger: Trigger, left: &Spanned<Term>, how: Comparison, right: &Spanned<Term>, span: Span) {
        let text = |term: &Spanned<Term>| match &term.value {
            Term::Symbol(text) => Some(Arc::clone(text)),
            _ => None,
        };
        let named = match (text(left), text(right)) {
            (Some(text), _) => Some((text, right)),
            (None, right) => right.map(|text| (text, left)),
        };
        if let Some((text, other)) = named {
            let known = trigger == Trigger::Message && self.argument(other, Sort::Name).is_some();
            match how {
                Comparison::Equal | Comparison::NotEqual if known => {
                    self.steps.push(Step::Name { text, holds: how == Comparison::Equal });
                }
                _ if known => {
                    self.findings
                        .error(of_rules::TYPE, span, "names have no order", |d| d.with_hint("write `=` or `!=`"));
                }
                _ if trigger == Trigger::Message => {}
                _ => self.findings.error(of_rules::TYPE, span, "only a message has a name", |d| {
                    d.with_note("it is the third variable of `message(U, B, M)`")
                }),
            }
            return;
        }
        let sort = [left, right].into_iter().find_map(|side| self.sort_of(side)).unwrap_or(Sort::Number);
        let sides = [left, right].map(|side| match &side.value {
            Term::Integer(number) if sort == Sort::Number => Some(Operand::Number(u64::try_from(*number).unwrap_or(0))),
            _ => self.argument(side, sort).map(Operand::Register),
        });
        let negative = [left, right].iter().any(|side| matches!(side.value, Term::Integer(..0)));
        if negative {
            self.findings.error(of_rules::NEVER, span, "numbers of occurrences are not negative", |d| d);
        }
        if matches!(sort, Sort::Occurrence | Sort::Task | Sort::Name)
            && !matches!(how, Comparison::Equal | Comparison::NotEqual)
        {
            self.findings.error(of_rules::TYPE, span, format!("there is no order: this is {}", sort.words()), |d| {
                d.with_hint("compare what `born` gives, under `match`")
            });
        }
        if let [Some(left), Some(right)] = sides {
            self.steps.push(Step::Compare { left, how, right });
        }
    }

    fn sort_of(&self, term: &Spanned<Term>) -> Option<Sort> {
        match &term.value {
            Term::Variable(variable, 0) if variable.index.is_some() => Some(Sort::Occurrence),
            Term::Variable(variable, 0) => {
                self.scope.variables.iter().find(|one| one.name == variable.name).map(|one| one.sort)
            }
            _ => None,
        }
    }

    fn test(&mut self, atom: &Atom, holds: bool) {
        let name = &*atom.relation.value;
        let any = |term: &Spanned<Term>| matches!(term.value, Term::Wildcard);
        match (name, &atom.arguments[..]) {
            ("arc", [parent, child]) if !(any(parent) && any(child)) => {
                let parent = if any(parent) { Some(None) } else { self.argument(parent, Sort::Occurrence).map(Some) };
                let child = if any(child) { Some(None) } else { self.argument(child, Sort::Occurrence).map(Some) };
                if let (Some(parent), Some(child)) = (parent, child) {
                    self.steps.push(Step::Arc { parent, child, holds });
                }
            }
            ("live", [occurrence]) => {
                let register = self.argument(occurrence, Sort::Occurrence);
                self.steps.extend(register.map(|occurrence| Step::Live { occurrence, holds }));
            }
            ("waiting", [occurrence]) => {
                let register = self.argument(occurrence, Sort::Occurrence);
                self.steps.extend(register.map(|occurrence| Step::Waiting { occurrence, holds }));
            }
            (_, [left, right]) if self.walks.goal(name).is_some() => {
                let sides = (self.argument(left, Sort::Occurrence), self.argument(right, Sort::Occurrence));
                if let ((Some(left), Some(right)), Some(goal)) = (sides, self.walks.goal(name)) {
                    self.steps.push(Step::Walk { goal, left, right, holds });
                }
            }
            _ => {
                let known = ["arc", "live", "waiting"].contains(&name) || self.walks.goal(name).is_some();
                let (code, message) = if known {
                    (of_rules::ARITY, format!("`{name}` of {}", atom.arguments.len()))
                } else {
                    (of_rules::RELATION, format!("there is no test `{name}`"))
                };
                self.findings.error(code, atom.span, message, |d| {
                    d.with_note(listed("the tests are", &super::TESTS))
                        .with_note("rules of the file, of two occurrences each, may be asked as well")
                        .with_similar(name, names(&super::TESTS))
                });
            }
        }
    }

    /// Warns of look-ups whose values nothing uses.
    fn used_once(&mut self) {
        let unused: Vec<(Arc<str>, Span)> = self
            .scope
            .variables
            .iter()
            .filter(|variable| !variable.used && *variable.name != *"_")
            .map(|variable| (Arc::clone(&variable.name), variable.span))
            .collect();
        for (name, span) in unused {
            self.findings.warn(of_rules::ONCE, span, format!("`{name}` is used once"), |d| {
                d.with_hint("write `_` for what is not asked")
            });
        }
    }
}

/// What there is, in words.
pub(super) fn listed(words: &str, all: &[(&str, &str)]) -> String {
    let forms: Vec<String> = all.iter().map(|(form, _)| format!("`{form}`")).collect();
    format!("{words} {}", forms.join(", "))
}
