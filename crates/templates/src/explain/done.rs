//! What a match did: its template's modelling operations with what their arguments stood for.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::driver::EntryNumber;
use crate::explain::{Made, Study, Variables};
use dyelog_datalog::ast::{Argument, NodeReference, Span, Spanned, Statement, Term, Variable};
use dyelog_lqn::submodel::Interaction;
use dyelog_trace::NodeId;

/// A modelling operation that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// As the rule file has it.
    pub text: String,
    /// Of which round, where it stands in a `for`.
    pub round: Option<i64>,
    /// What it came to.
    pub caused: Caused,
}

/// What a modelling operation came to. Entries have their numbers within the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caused {
    /// An entry was opened.
    Entry(EntryNumber, Interaction),
    /// The first entry made a request to the second.
    Request(EntryNumber, EntryNumber),
    /// The activity of a node is work of an entry.
    Activity(EntryNumber, NodeId),
    /// Up to a node, nothing works for an entry.
    Delay(EntryNumber, NodeId),
    /// What follows a node in its visit is the next phase.
    SecondPhase(NodeId),
    /// A node is to be tried later, as work of an entry.
    Trigger(NodeId, EntryNumber),
    /// The thread that begins at the first node is a branch of the entry, which the second waits for, if there is one.
    Branch(EntryNumber, NodeId, Option<NodeId>),
    /// The first entry requests the second at a node, as a branch that the other node waits for, if there is one.
    ForkedRequest(EntryNumber, EntryNumber, NodeId, Option<NodeId>),
    /// What an entry does between two nodes is an alternative.
    Alternative(EntryNumber, NodeId, NodeId),
    /// An entry waits for others at that node.
    Barrier(EntryNumber, NodeId),
    /// Nothing: a node that it names is not there.
    Nothing,
}

/// What a match did, in order.
pub fn done(study: &Study<'_>, made: &Made, variables: &Variables) -> Vec<Done> {
    let mut doing = Doing {
        study,
        made,
        variables,
        entries: BTreeMap::new(),
        next: made.first_entry,
        running: None,
        list: Vec::new(),
    };
    doing.statements(&study.template(made.template).statements);
    doing.list
}

struct Doing<'s, 'a> {
    study: &'s Study<'a>,
    made: &'s Made,
    variables: &'s Variables,
    entries: BTreeMap<(Arc<str>, Option<i64>), EntryNumber>,
    next: EntryNumber,
    running: Option<(&'s str, i64)>,
    list: Vec<Done>,
}

impl<'s> Doing<'s, '_> {
    fn statements(&mut self, statements: &'s [Statement]) {
        for statement in statements {
            match statement {
                Statement::NewEntry { entry, interaction, span, .. } => {
                    let number = self.next;
                    self.next += 1;
                    let index = self.variables.index(entry.value.index.as_ref(), self.running).unwrap_or_default();
                    self.entries.insert((Arc::clone(&entry.value.name), index), number);
                    let interaction = Interaction::from_label(&interaction.value).unwrap_or(Interaction::Rendezvous);
                    self.push(*span, Caused::Entry(number, interaction));
                }
                Statement::Operation { name, arguments, span } => {
                    let caused = self.operation(&name.value, arguments).unwrap_or(Caused::Nothing);
                    self.push(*span, caused);
                }
                Statement::For { index, from, to, body, .. } => {
                    let count = self.variables.count(&to.value).unwrap_or(0);
                    for round in (*from).max(1)..=count {
                        self.running = Some((&index.value, round));
                        self.statements(body);
                    }
                    self.running = None;
                }
            }
        }
    }

    fn push(&mut self, span: Span, caused: Caused) {
        let file = self.study.rules.program().files.get(span.file as usize);
        let text = file.and_then(|file| file.text.get(span.range())).unwrap_or_default();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        self.list.push(Done { text, round: self.running.map(|(_, round)| round), caused });
    }

    fn operation(&self, name: &str, arguments: &[Spanned<Argument>]) -> Option<Caused> {
        let argument = |place: usize| arguments.get(place).map(|argument| &argument.value);
        Some(match name {
            "addRequest" => Caused::Request(self.entry(argument(0)?)?, self.entry(argument(1)?)?),
            "addDelay" => Caused::Delay(self.entry(argument(0)?)?, self.node(argument(1)?)?),
            "addActivity" => Caused::Activity(self.entry(argument(0)?)?, self.node(argument(1)?)?),
            "phase2" => {
                let wanted = [self.number(argument(0)?)?, self.number(argument(1)?)?, self.number(argument(2)?)?];
                let is = |node: &NodeId| {
                    let event = self.study.toeg.event(*node);
                    [event.thread, event.task.0, event.counter].map(i64::from) == wanted
                };
                Caused::SecondPhase(self.variables.nodes.iter().map(|(_, node)| *node).find(is)?)
            }
            "addTrigger" => {
                let Argument::Node(label) = argument(0)? else { return None };
                Caused::Trigger(self.labelled(label)?, self.entry(argument(1)?)?)
            }
            "addBranch" => {
                let join = self.node(argument(2)?)?;
                Caused::Branch(self.entry(argument(0)?)?, self.node(argument(1)?)?, Some(join))
            }
            "forkBranch" => Caused::Branch(self.entry(argument(0)?)?, self.node(argument(1)?)?, None),
            "addBarrier" => Caused::Barrier(self.entry(argument(0)?)?, self.node(argument(1)?)?),
            "addAlternative" => {
                Caused::Alternative(self.entry(argument(0)?)?, self.node(argument(1)?)?, self.node(argument(2)?)?)
            }
            "awaitRequest" | "forkRequest" => {
                let join = argument(3).and_then(|join| self.node(join));
                let (from, to) = (self.entry(argument(0)?)?, self.entry(argument(1)?)?);
                Caused::ForkedRequest(from, to, self.node(argument(2)?)?, join)
            }
            _ => return None,
        })
    }

    fn entry(&self, argument: &Argument) -> Option<EntryNumber> {
        let variable = variable(argument)?;
        let index = self.variables.index(variable.index.as_ref(), self.running).ok()?;
        let own = self.entries.get(&(Arc::clone(&variable.name), index)).copied();
        own.or_else(|| (&*variable.name == "E" && index.is_none()).then_some(self.made.entry))
    }

    fn node(&self, argument: &Argument) -> Option<NodeId> {
        self.variables.node(variable(argument)?, self.running)
    }

    fn number(&self, argument: &Argument) -> Option<i64> {
        match argument {
            Argument::Term(term) => self.term(term),
            Argument::Node(_) => None,
        }
    }

    fn term(&self, term: &Term) -> Option<i64> {
        match term {
            Term::Integer(value) => Some(*value),
            Term::Variable(variable, offset) => Some(self.variables.number(variable, self.running)? + offset),
            _ => None,
        }
    }

    /// The node at the place that a label names.
    fn labelled(&self, label: &NodeReference) -> Option<NodeId> {
        let thread = u32::try_from(self.term(&label.thread.value)?).ok()?;
        let position = usize::try_from(self.term(&label.position.value)?).ok()?.checked_sub(1)?;
        self.study.toeg.thread(thread)?.nodes().nth(position)
    }
}

fn variable(argument: &Argument) -> Option<&Variable> {
    match argument {
        Argument::Term(Term::Variable(variable, 0)) => Some(variable),
        _ => None,
    }
}
