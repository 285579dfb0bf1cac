//! What a template does: `assert`, `model`, `retire`.

use std::sync::Arc;

use crate::codes;
use crate::rules::compile::{Compiler, listed};
use crate::rules::scope::Sort;
use crate::rules::steps::{Bound, Recorded, Register, Retirement, Step, Steps, Trigger};
use dyelog_datalog::ast::{Atom, Ident, Index, Spanned, Term};
use dyelog_datalog::codes as of_rules;
use dyelog_datalog::event_template::{Asserted, EventTemplate, Retired};

/// What a template does once it has matched. Steps that its records ask for are added to those that match.
pub fn of(compiler: &mut Compiler<'_, '_>, trigger: Trigger, template: &EventTemplate) -> Option<Steps> {
    let mut done = Steps {
        name: Arc::clone(&template.name.value),
        order: 0,
        is_shipped: false,
        trigger,
        matching: Vec::new(),
        asserts: None,
        arc_from: None,
        records: Vec::new(),
        retires: Vec::new(),
        text: Box::default(),
    };
    let mut whole = true;
    for asserted in &template.asserted {
        whole &= compiler.assert(trigger, asserted, &mut done).is_some();
    }
    for retired in &template.retired {
        whole &= compiler.retire(retired, &mut done).is_some();
    }
    for record in &template.records {
        whole &= compiler.record(trigger, record, &mut done).is_some();
        compiler.said(record.span);
    }
    if trigger != Trigger::Message && template.retired.is_empty() && !template.damaged {
        let message = format!("`{}` retires nothing", template.name.value);
        compiler.findings.error(codes::UNRETIRED, template.name.span, message, |d| {
            d.with_note("it would match again and again, as nothing changes").with_hint("add `retire { … }`")
        });
    }
    whole.then_some(done)
}

impl Compiler<'_, '_> {
    fn assert(&mut self, trigger: Trigger, asserted: &Asserted, done: &mut Steps) -> Option<()> {
        if trigger != Trigger::Message {
            let message = format!("`assert` at `{}`", trigger.name());
            self.findings.error(of_rules::MISPLACED, asserted.span(), message, |d| {
                d.with_note("occurrences begin with messages: only templates `on message(U, B)` assert")
            });
            return None;
        }
        match asserted {
            Asserted::New { variable, function } => self.new_occurrence(variable, function, done),
            Asserted::Fact(atom) => {
                let [parent, child] = &atom.arguments[..] else { return self.only_an_arc(atom) };
                if *atom.relation.value != *"arc" {
                    return self.only_an_arc(atom);
                }
                let parent = self.argument(parent, Sort::Occurrence)?;
                let to = self.argument(child, Sort::Occurrence)?;
                if done.asserts != Some(to) || done.arc_from.is_some() || parent == to {
                    self.findings.error(of_rules::MISPLACED, atom.span, "an arc is that of the message", |d| {
                        d.with_note("it goes to the occurrence that the message begins, and there is one")
                            .with_hint("write `V = live(B)  arc(U, V)`")
                    });
                    return None;
                }
                done.arc_from = Some(parent);
                Some(())
            }
        }
    }

    fn only_an_arc(&mut self, atom: &Atom) -> Option<()> {
        self.findings.error(of_rules::RELATION, atom.span, "what is asserted is `V = live(B)` and `arc(U, V)`", |d| d);
        None
    }

    fn new_occurrence(&mut self, variable: &Ident, function: &Atom, done: &mut Steps) -> Option<()> {
        let receiver = self.scope.variables.get(1).map(|receiver| receiver.register);
        let argument = match &function.arguments[..] {
            [argument] if *function.relation.value == *"live" => self.argument(argument, Sort::Task)?,
            _ => return self.only_an_arc(function),
        };
        if Some(argument) != receiver || done.asserts.is_some() {
            self.findings.error(
                of_rules::MISPLACED,
                function.span,
                "a message begins one occurrence, of its receiver",
                |d| d.with_note("the receiver is the second variable of `message(U, B)`"),
            );
            return None;
        }
        if self.scope.is_known(&variable.value) {
            let message = format!("`{}` is known already, and a new occurrence is another one", variable.value);
            self.findings
                .error(of_rules::NAME_AGAIN, variable.span, message, |d| d.with_hint("give it a name of its own"));
            return None;
        }
        let register = self.scope.bind(variable, Sort::Occurrence)?;
        self.scope.known(&variable.value);
        done.asserts = Some(register);
        Some(())
    }

    fn retire(&mut self, retired: &Retired, done: &mut Steps) -> Option<()> {
        let retirement = match retired {
            Retired::Fact(atom) => match (&*atom.relation.value, &atom.arguments[..]) {
                ("arc", [parent, child]) => Retirement::Arc {
                    parent: self.argument(parent, Sort::Occurrence)?,
                    child: self.argument(child, Sort::Occurrence)?,
                },
                ("live", [occurrence]) => Retirement::Live(self.argument(occurrence, Sort::Occurrence)?),
                _ => {
                    let message = "what is retired is `arc(X, Y)`, `live(X)` or part of a path, `P[2..n]`";
                    self.findings.error(of_rules::RELATION, atom.span, message, |d| d);
                    return None;
                }
            },
            Retired::Path { name, first, last, span } => {
                let Some(path) = self.scope.path(&name.value).cloned() else {
                    let message = format!("there is no path `{}`", name.value);
                    self.findings.error(of_rules::UNSAFE, *span, message, |d| {
                        d.with_hint("write `path P[1..n] from W to U` under `match`")
                    });
                    return None;
                };
                let (first, last) = (self.bound(first, &path.count)?, self.bound(last, &path.count)?);
                Retirement::Path { from: path.from, to: path.to, first, last }
            }
        };
        done.retires.push(retirement);
        Some(())
    }

    /// `2`, `n`, `n-1`
    fn bound(&mut self, bound: &Spanned<Index>, count: &Arc<str>) -> Option<Bound> {
        let Index { variable, offset } = &bound.value;
        match variable {
            None if *offset >= 2 => u32::try_from(*offset).ok().map(Bound::At),
            Some(name) if name == count && *offset <= 0 => {
                u32::try_from(offset.unsigned_abs()).ok().map(Bound::BeforeEnd)
            }
            _ => {
                self.findings.error(of_rules::UNSAFE, bound.span, "there is no such place on the path", |d| {
                    d.with_note("the first occurrence keeps what it has; what is retired begins with the second")
                        .with_hint(format!("write `2..{count}`, or `{count}..2` for the other order"))
                });
                None
            }
        }
    }

    fn record(&mut self, trigger: Trigger, record: &Atom, done: &mut Steps) -> Option<()> {
        let name = &*record.relation.value;
        let recorded = match (name, &record.arguments[..]) {
            ("sync", [client, server]) => {
                let client = self.argument(client, Sort::Occurrence)?;
                let server = self.argument(server, Sort::Occurrence)?;
                self.not_new(record, &[client, server], done)?;
                self.steps.push(Step::Arc { parent: Some(client), child: Some(server), holds: true });
                self.steps.push(Step::Arrived(server));
                Recorded::Cycle { client, server }
            }
            ("forward", [client, path, server]) => {
                let client = self.argument(client, Sort::Occurrence)?;
                let server = self.argument(server, Sort::Occurrence)?;
                let known = match &path.value {
                    Term::Variable(variable, 0) if variable.index.is_none() => self.scope.path(&variable.name),
                    _ => None,
                };
                if !known.is_some_and(|path| path.from == client && path.to == server) {
                    self.findings.error(
                        of_rules::TYPE,
                        path.span,
                        "the path from the client to the server belongs here",
                        |d| d.with_hint("write `path P[1..n] from W to U` under `match`, then `forward(W, P, U)`"),
                    );
                    return None;
                }
                Recorded::Cycle { client, server }
            }
            ("async", [from, to]) => {
                let from = self.argument(from, Sort::Occurrence)?;
                let to = self.argument(to, Sort::Occurrence)?;
                self.not_new(record, &[from], done)?;
                let new = done.asserts == Some(to);
                if !new {
                    self.steps.push(Step::Arc { parent: Some(from), child: Some(to), holds: true });
                }
                if new && done.arc_from.is_none() || is_retired(done, from, to, false) {
                    done.records.push(Recorded::Async { from, to });
                    return Some(());
                }
                return self.unretired(record, "`arc(X, Y)`");
            }
            _ => {
                self.findings.error(of_rules::RELATION, record.span, format!("nothing is recorded by `{name}`"), |d| {
                    d.with_note(listed("the records are", &super::RECORDS))
                        .with_similar(name, ["sync", "forward", "async"])
                });
                return None;
            }
        };
        let Recorded::Cycle { client, server } = recorded else { return None };
        if trigger != Trigger::Message || done.reply().is_some() {
            self.findings.error(of_rules::MISPLACED, record.span, format!("`{name}` here"), |d| {
                d.with_note("a message is the reply of one interaction, which a template `on message(U, B)` records")
            });
            return None;
        }
        if !is_retired(done, client, server, name == "forward") {
            return self.unretired(record, "`P[2..n]`");
        }
        done.records.push(recorded);
        Some(())
    }

    /// What the message begins is no occurrence yet while steps match, and has sent nothing.
    fn not_new(&mut self, record: &Atom, registers: &[Register], done: &Steps) -> Option<()> {
        if !registers.iter().any(|register| done.asserts == Some(*register)) {
            return Some(());
        }
        self.findings.error(
            of_rules::MISPLACED,
            record.span,
            "the occurrence that the message begins has sent nothing",
            |d| d.with_hint("record what was there before it"),
        );
        None
    }

    fn unretired(&mut self, record: &Atom, what: &str) -> Option<()> {
        self.findings.error(codes::UNRETIRED, record.span, "what is recorded here is not retired", |d| {
            d.with_note("later messages would find the same interaction again, and the model would have it twice")
                .with_hint(format!("write {what} under `retire`"))
        });
        None
    }
}

/// Whether what lies between two occurrences is retired; all of a path, where it is one.
fn is_retired(done: &Steps, from: Register, to: Register, is_path: bool) -> bool {
    let whole = [(Bound::At(2), Bound::BeforeEnd(0)), (Bound::BeforeEnd(0), Bound::At(2))];
    done.retires.iter().any(|retired| match *retired {
        Retirement::Arc { parent, child } => !is_path && (parent, child) == (from, to),
        Retirement::Path { from: first, to: last, first: one, last: other } => {
            (first, last) == (from, to) && whole.contains(&(one, other))
        }
        Retirement::Live(_) => false,
    })
}
