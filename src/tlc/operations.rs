//! The modelling operations (1998 paper §5.1) as a typed registry, and the `model` part of a template made of them.

use std::sync::Arc;

use crate::datalog::ast::{Argument, Ident, Index, NodeReference, Span, Spanned, Statement, Template, Term, Variable};
use crate::diagnostic::Diagnostic;
use crate::lqn::submodel::Interaction;
use crate::tlc::codes;
use crate::tlc::pattern::{At, Findings, Pattern, Scope, Solved};
use crate::tlc::plan::{Action, EntryReference, ModelNode, ModelValue, Position, Slot, Value};
use crate::tlc::planner::Route;

/// What an operation takes at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// An entry.
    Entry,
    /// A matched node, by its name.
    Node,
    /// A node by its label, matched or not.
    Label,
    /// A thread identifier.
    Thread,
    /// A task.
    Task,
    /// A task node counter.
    Counter,
}

impl Parameter {
    fn describe(self) -> &'static str {
        match self {
            Self::Entry => "an entry",
            Self::Node => "a node of the match",
            Self::Label => "a node label `[j, k, m | i, v]`",
            Self::Thread => "a thread",
            Self::Task => "a task",
            Self::Counter => "a task node counter",
        }
    }
}

/// A modelling operation that rule files may use.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub parameters: &'static [Parameter],
    /// What it does.
    pub doc: &'static str,
}

/// All operations beside `newEntry`, which has a notation of its own: `S := newEntry(TYPE, task)`.
pub const OPERATIONS: &[Operation] = &[
    Operation {
        name: "addRequest",
        parameters: &[Parameter::Entry, Parameter::Entry],
        doc: "the first entry makes a request to the second, in the phase of the glue node",
    },
    Operation {
        name: "addActivity",
        parameters: &[Parameter::Entry, Parameter::Node],
        doc: "the node counts as an activity of the entry, to which resource functions give demand; what was measured at it is work \
              of the visit that it lies in, in any case",
    },
    Operation {
        name: "phase2",
        parameters: &[Parameter::Thread, Parameter::Task, Parameter::Counter],
        doc: "nodes of the thread on the task with a larger counter, up to the task's next acceptance, are second phase",
    },
    Operation {
        name: "addTrigger",
        parameters: &[Parameter::Label, Parameter::Entry],
        doc: "the node is to be tried later, as work of the entry",
    },
    Operation {
        name: "addBranch",
        parameters: &[Parameter::Entry, Parameter::Node, Parameter::Node],
        doc: "the thread that begins at the first node is a parallel branch of the entry, which the second node waits for",
    },
    Operation {
        name: "forkBranch",
        parameters: &[Parameter::Entry, Parameter::Node],
        doc: "the thread that begins at the node is a parallel branch of the entry, up to a join of the thread on which it ends, or \
              without one",
    },
];

/// The `model` part of a plan.
#[derive(Debug, Default)]
pub struct Model {
    /// What a match does.
    pub actions: Vec<Action>,
    /// Which entry owns each node outside the repetition.
    pub owners: Vec<(Slot, EntryReference)>,
    /// Which entry owns each node of a round.
    pub loop_owners: Vec<EntryReference>,
    /// How many entry variables there are.
    pub entry_variables: u8,
}

/// An entry that `newEntry` makes.
struct Made {
    name: Arc<str>,
    position: Position,
    task: Solved,
}

struct Compiler<'t, 'f, 'p> {
    pattern: &'t Pattern,
    route: &'t Route,
    scope: Scope,
    findings: &'f mut Findings<'p>,
    variables: Vec<Arc<str>>,
    made: Vec<Made>,
    running: Option<Arc<str>>,
}

/// Compiles the statements of a template.
pub fn compile(template: &Template, pattern: &Pattern, route: &Route, findings: &mut Findings<'_>) -> Model {
    let mut compiler = Compiler {
        pattern,
        route,
        scope: Scope::of(template),
        findings,
        variables: Vec::new(),
        made: Vec::new(),
        running: None,
    };
    let actions = compiler.statements(&template.statements);
    let owners = compiler.owners();
    let loop_owners = compiler.loop_owners();
    Model { actions, owners, loop_owners, entry_variables: compiler.variables.len() as u8 }
}

impl Compiler<'_, '_, '_> {
    fn statements(&mut self, statements: &[Statement]) -> Vec<Action> {
        let mut actions = Vec::new();
        for statement in statements {
            match statement {
                Statement::NewEntry { entry, interaction, task, .. } => {
                    actions.extend(self.new_entry(entry, interaction, task));
                }
                Statement::Operation { name, arguments, span } => {
                    actions.extend(self.operation(name, arguments, *span));
                }
                Statement::For { index, from, to, body, span } => {
                    if self.running.is_some() || self.scope.count() != Some(&to.value) {
                        self.findings
                            .error(codes::INDEX, *span, "`for` runs over the rounds of the template's `repeat`")
                            .notes
                            .push("its upper end is the variable that counts them, and it does not nest".to_owned());
                        continue;
                    }
                    self.running = Some(Arc::clone(&index.value));
                    let body = self.statements(body);
                    self.running = None;
                    actions.push(Action::For { from: *from, body });
                }
            }
        }
        actions
    }

    fn new_entry(&mut self, entry: &Spanned<Variable>, interaction: &Ident, task: &Spanned<Term>) -> Option<Action> {
        let kind = Interaction::from_label(&interaction.value).filter(|kind| *kind != Interaction::Customer);
        if kind.is_none() {
            self.findings
                .error(
                    codes::INTERACTION,
                    interaction.span,
                    format!("`{}` is no type of interaction", interaction.value),
                )
                .hints
                .push(
                    "write R for a remote procedure call, A for an asynchronous one, F for a forwarded one".to_owned(),
                );
        }
        let position = self.position(entry.value.index.as_ref(), entry.span)?;
        let variable = self.variables.iter().position(|name| *name == entry.value.name).unwrap_or_else(|| {
            self.variables.push(Arc::clone(&entry.value.name));
            self.variables.len() - 1
        });
        let solved = self.solved(task);
        let visited = solved.as_ref().is_none_or(|solved| self.check_entry_task(solved, task.span));
        // Made even where its task is wrong, so that one slip is reported once.
        let made = solved.clone().unwrap_or(Solved::Wildcard);
        self.made.push(Made { name: Arc::clone(&entry.value.name), position, task: made });
        solved?;
        if !visited {
            return None; // that nothing binds the task, either, would follow from it
        }
        let task_value = self.model_value(task)?;
        let entry = EntryReference::New { variable: variable as u8, position };
        Some(Action::NewEntry { entry, interaction: kind?, task: task_value })
    }

    /// A new entry serves a task that some node of the match runs on, and that no other entry of the match has. Gives back
    /// whether a node runs on it.
    fn check_entry_task(&mut self, task: &Solved, at: Span) -> bool {
        let glue = &self.pattern.nodes[self.pattern.glue];
        let round = self.pattern.round.iter().flat_map(|round| &round.nodes);
        let visited = self.pattern.nodes.iter().chain(round).any(|node| node.task == *task);
        if !visited {
            self.findings
                .error(codes::ENTRY_TASK, at, "no node of the template runs on this task")
                .notes
                .push("an entry is opened for a visit, so its task must be that of a matched node".to_owned());
        }
        if glue.task == *task {
            self.findings
                .error(codes::ENTRY_TASK_AGAIN, at, "this is the task of the glue node, which has the entry E")
                .hints
                .push("open the entry on the task that accepts the request".to_owned());
        }
        if let Some(other) = self.made.iter().find(|made| made.task == *task) {
            let message = format!("entry `{}` of this template already serves this task", other.name);
            self.findings.error(codes::ENTRY_TASK_AGAIN, at, message);
        }
        visited
    }

    fn operation(&mut self, name: &Ident, arguments: &[Spanned<Argument>], span: Span) -> Option<Action> {
        let Some(operation) = OPERATIONS.iter().find(|operation| operation.name == &*name.value) else {
            let place = self.findings.place(name.span);
            let message = format!("there is no modelling operation `{}`", name.value);
            let names = OPERATIONS.iter().map(|operation| operation.name).chain(["newEntry"]);
            let finding = Diagnostic::error(codes::OPERATION, place, message).with_similar(&name.value, names);
            self.findings.list.push(finding);
            return None;
        };
        if arguments.len() != operation.parameters.len() {
            let expected: Vec<&str> = operation.parameters.iter().map(|parameter| parameter.describe()).collect();
            let message = format!("`{}` takes {} arguments, not {}", name.value, expected.len(), arguments.len());
            self.findings
                .error(codes::ARGUMENTS, span, message)
                .notes
                .push(format!("they are {}", expected.join(", ")));
            return None;
        }
        match operation.name {
            "addRequest" => {
                Some(Action::AddRequest { from: self.entry(&arguments[0])?, to: self.entry(&arguments[1])? })
            }
            "addActivity" => {
                Some(Action::AddActivity { entry: self.entry(&arguments[0])?, node: self.node(&arguments[1])? })
            }
            "phase2" => self.phase(arguments, span),
            "addTrigger" => self.trigger(&arguments[0], &arguments[1]),
            "addBranch" => Some(Action::AddBranch {
                entry: self.entry(&arguments[0])?,
                begin: self.node(&arguments[1])?,
                join: Some(self.node(&arguments[2])?),
            }),
            "forkBranch" => Some(Action::AddBranch {
                entry: self.entry(&arguments[0])?,
                begin: self.node(&arguments[1])?,
                join: None,
            }),
            other => unreachable!("operation {other} is in the registry but has no meaning"),
        }
    }

    fn wrong(&mut self, argument: &Spanned<Argument>, parameter: Parameter) {
        let message = format!("{} is expected here", parameter.describe());
        self.findings.error(codes::ARGUMENT_TYPE, argument.span, message);
    }

    fn entry(&mut self, argument: &Spanned<Argument>) -> Option<EntryReference> {
        let Argument::Term(Term::Variable(variable, 0)) = &argument.value else {
            self.wrong(argument, Parameter::Entry);
            return None;
        };
        if &*variable.name == "E" && variable.index.is_none() && !self.variables.contains(&variable.name) {
            return Some(EntryReference::Trigger);
        }
        let Some(number) = self.variables.iter().position(|name| *name == variable.name) else {
            let place = self.findings.place(argument.span);
            let message = format!("no `newEntry` before this makes an entry `{}`", variable.name);
            let names = self.variables.clone();
            let finding = Diagnostic::error(codes::ENTRY, place, message)
                .with_similar(&variable.name, names.iter().map(|name| &**name).chain(["E"]));
            self.findings.list.push(finding);
            return None;
        };
        let position = self.position(variable.index.as_ref(), argument.span)?;
        if !self.is_made(&variable.name, position) {
            self.findings.error(
                codes::ENTRY,
                argument.span,
                format!("no `newEntry` before this makes this entry `{}`", variable.name),
            );
            return None;
        }
        Some(EntryReference::New { variable: number as u8, position })
    }

    /// Whether an entry has been made by the statements so far.
    fn is_made(&self, name: &Arc<str>, position: Position) -> bool {
        let mut of_name = self.made.iter().filter(|made| made.name == *name).map(|made| made.position);
        match position {
            Position::At(0) => of_name.any(|made| made == Position::At(0)),
            // Before the first round stands the entry at 0, if there is one; later ones were made in the round before.
            Position::Running(-1) => {
                let made: Vec<Position> = of_name.collect();
                made.contains(&Position::At(0)) && made.contains(&Position::Running(0))
            }
            Position::Running(0) | Position::Count(0) | Position::At(1) => {
                of_name.any(|made| made == Position::Running(0))
            }
            _ => false,
        }
    }

    fn node(&mut self, argument: &Spanned<Argument>) -> Option<ModelNode> {
        let Argument::Term(Term::Variable(variable, 0)) = &argument.value else {
            self.wrong(argument, Parameter::Node);
            return None;
        };
        if let Some(number) = self.pattern.nodes.iter().position(|node| node.name == variable.name) {
            return Some(ModelNode::Fixed(self.route.slots[number]));
        }
        let round = self.pattern.round.as_ref();
        if let Some(number) = round.and_then(|round| round.nodes.iter().position(|node| node.name == variable.name)) {
            let position = self.position(variable.index.as_ref(), argument.span)?;
            return Some(ModelNode::Round { node: number as u8, position });
        }
        let place = self.findings.place(argument.span);
        let message = format!("the template has no node `{}`", variable.name);
        let names: Vec<Arc<str>> = self.pattern.nodes.iter().map(|node| Arc::clone(&node.name)).collect();
        let finding = Diagnostic::error(codes::UNBOUND, place, message)
            .with_similar(&variable.name, names.iter().map(|name| &**name));
        self.findings.list.push(finding);
        None
    }

    /// `phase2(k, i, v)` names a matched node by three of its fields.
    fn phase(&mut self, arguments: &[Spanned<Argument>], span: Span) -> Option<Action> {
        let mut solved = Vec::new();
        for (argument, parameter) in arguments.iter().zip([Parameter::Thread, Parameter::Task, Parameter::Counter]) {
            let Argument::Term(term) = &argument.value else {
                self.wrong(argument, parameter);
                return None;
            };
            solved.push(self.solved(&Spanned { value: term.clone(), span: argument.span })?);
        }
        let is = |node: &crate::tlc::pattern::Node| {
            node.thread == solved[0] && node.task == solved[1] && node.counter == solved[2]
        };
        if let Some(number) = self.pattern.nodes.iter().position(is) {
            return Some(Action::Phase2 { node: ModelNode::Fixed(self.route.slots[number]) });
        }
        let round = self.pattern.round.as_ref();
        if let Some(number) = round.and_then(|round| round.nodes.iter().position(is))
            && self.running.is_some()
        {
            return Some(Action::Phase2 {
                node: ModelNode::Round { node: number as u8, position: Position::Running(0) },
            });
        }
        self.findings
            .error(codes::PHASE_NODE, span, "no node of the template has this thread, task and counter")
            .notes
            .push("the second phase begins after a matched node: the one that replies or forwards".to_owned());
        None
    }

    fn trigger(&mut self, label: &Spanned<Argument>, entry: &Spanned<Argument>) -> Option<Action> {
        let Argument::Node(label_node) = &label.value else {
            self.wrong(label, Parameter::Label);
            return None;
        };
        let NodeReference { thread, position, task, counter, .. } = &**label_node;
        let entry = self.entry(entry);
        let optional = |compiler: &mut Self, term: &Spanned<Term>| match term.value {
            Term::Wildcard => Some(None),
            _ => compiler.model_value(term).map(Some),
        };
        let (thread, position) = (self.model_value(thread), self.model_value(position));
        let (task, counter) = (optional(self, task), optional(self, counter));
        Some(Action::AddTrigger { thread: thread?, position: position?, task: task?, counter: counter?, entry: entry? })
    }

    fn position(&mut self, index: Option<&Index>, span: Span) -> Option<Position> {
        match index {
            None => Some(Position::At(0)),
            Some(Index { variable: None, offset }) => Some(Position::At(*offset)),
            Some(Index { variable: Some(name), offset }) if Some(name) == self.running.as_ref() => {
                Some(Position::Running(*offset))
            }
            Some(Index { variable: Some(name), offset }) if Some(name) == self.scope.count() => {
                Some(Position::Count(*offset))
            }
            Some(Index { variable: Some(name), .. }) => {
                self.findings.error(codes::INDEX, span, format!("`{name}` is no index here"));
                None
            }
        }
    }

    /// A term as the pattern's nodes write it, for comparison with theirs. The running index stands for the round's.
    fn solved(&mut self, term: &Spanned<Term>) -> Option<Solved> {
        match &term.value {
            Term::Wildcard => Some(Solved::Wildcard),
            Term::Integer(value) => Some(Solved::Integer(*value)),
            Term::Symbol(name) => Some(Solved::Symbol(Arc::clone(name))),
            Term::Variable(variable, offset) => {
                let name = Arc::clone(&variable.name);
                let at = match self.position(variable.index.as_ref(), term.span)? {
                    Position::At(0) if variable.index.is_none() => At::Scalar,
                    Position::At(1) => At::First,
                    Position::Running(0) => At::Here,
                    Position::Running(1) => At::Next,
                    Position::Count(0) => At::Last,
                    Position::Count(1) => At::After,
                    _ => {
                        self.findings
                            .error(
                                codes::INDEX,
                                term.span,
                                format!("this index of `{}` is out of range", variable.name),
                            )
                            .notes
                            .push("the nodes of the sequence bind its variables from 1 to n".to_owned());
                        return None;
                    }
                };
                Some(Solved::Variable((name, at), *offset))
            }
            Term::Arithmetic(..) => {
                self.findings.error(
                    codes::NOT_LINEAR,
                    term.span,
                    "only a variable plus or minus a constant can stand here",
                );
                None
            }
        }
    }

    fn model_value(&mut self, term: &Spanned<Term>) -> Option<ModelValue> {
        let (name, at, offset) = match self.solved(term)? {
            Solved::Integer(value) => return Some(ModelValue::Fixed(Value::Integer(value))),
            Solved::Variable((name, at), offset) => (name, at, offset),
            Solved::Wildcard | Solved::Symbol(_) => {
                self.findings.error(codes::UNBOUND, term.span, "a variable that a node binds is needed here");
                return None;
            }
        };
        let fixed = |site: &Value| match site {
            Value::Field(slot, field, own) => Some(ModelValue::Fixed(Value::Field(*slot, *field, own + offset))),
            _ => None,
        };
        let round = |position| {
            let key = if matches!(at, At::Next | At::After) { At::Next } else { At::Here };
            let (node, field, own) = self.route.round_sites.get(&(Arc::clone(&name), key)).copied()?;
            Some(ModelValue::Round { node, position, field, offset: own + offset })
        };
        let here = |at| self.route.sites.get(&(Arc::clone(&name), at)).and_then(fixed);
        let value = match at {
            At::Scalar => here(At::Scalar),
            At::After => here(At::After).or_else(|| round(Position::Count(0))),
            At::Here | At::Next => round(Position::Running(0)),
            At::First => round(Position::At(1)),
            At::Last => round(Position::Count(0)),
        };
        if value.is_none() {
            let place = self.findings.place(term.span);
            let names: Vec<Arc<str>> = self.route.sites.keys().map(|(name, _)| Arc::clone(name)).collect();
            let finding = Diagnostic::error(codes::UNBOUND, place, format!("no node binds `{name}`"))
                .with_similar(&name, names.iter().map(|name| &**name));
            self.findings.list.push(finding);
        }
        value
    }

    /// Each matched node belongs to the entry whose task it runs on; nodes on the glue node's task to E.
    fn owners(&self) -> Vec<(Slot, EntryReference)> {
        let of_task = |task: &Solved| {
            self.made.iter().find(|made| made.task == *task).map(|made| EntryReference::New {
                variable: self.variables.iter().position(|name| *name == made.name).unwrap_or(0) as u8,
                position: made.position,
            })
        };
        let glue = &self.pattern.nodes[self.pattern.glue].task;
        let owner = |task: &Solved| if task == glue { None } else { of_task(task) };
        self.pattern
            .nodes
            .iter()
            .zip(&self.route.slots)
            .map(|(node, slot)| (*slot, owner(&node.task).unwrap_or(EntryReference::Trigger)))
            .collect()
    }

    fn loop_owners(&self) -> Vec<EntryReference> {
        let nodes = self.pattern.round.iter().flat_map(|round| &round.nodes);
        nodes
            .map(|node| {
                let made = self.made.iter().find(|made| made.task == node.task);
                made.map_or(EntryReference::Trigger, |made| EntryReference::New {
                    variable: self.variables.iter().position(|name| *name == made.name).unwrap_or(0) as u8,
                    position: made.position,
                })
            })
            .collect()
    }
}
