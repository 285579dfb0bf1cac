//! The modelling operations (1998 paper §5.1) as a typed registry, and the `model` part of a template made of them.

mod branches;
mod ownership;
mod rounds;
mod terms;

use std::sync::Arc;

use crate::codes;
use crate::operations::ownership::{Given, Task, Which, Work, names_apart};
use crate::pattern::{Findings, Pattern, Scope, Solved, slips};
use crate::plan::{Action, EntryReference, MAX_SLOTS, ModelNode, Position, Slot};
use crate::planner::Route;
use dyelog_datalog::ast::{Argument, Ident, NodeReference, Span, Spanned, Statement, Template, Term, Variable};
use dyelog_diagnostic::Diagnostic;
use dyelog_lqn::submodel::Interaction;

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
    /// A thread node counter.
    Position,
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
            Self::Position => "a thread node counter",
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
        doc: "the node is work of the entry, as an activity: its resource function counts; what is measured on it counts anyway",
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
    Operation {
        name: "addAlternative",
        parameters: &[Parameter::Entry, Parameter::Node, Parameter::Node],
        doc: "what the entry does after the first node and before the second is an alternative: other invocations do something else \
              there, or nothing",
    },
    Operation {
        name: "addDelay",
        parameters: &[Parameter::Entry, Parameter::Node],
        doc: "the time up to the node, since the one before it in the visit, passes without work: a timeout, a pause",
    },
    Operation {
        name: "awaitRequest",
        parameters: &[Parameter::Entry, Parameter::Entry, Parameter::Node, Parameter::Node],
        doc: "the first entry makes a request to the second at the first node, goes on, and waits for its end at the second node",
    },
    Operation {
        name: "forkRequest",
        parameters: &[Parameter::Entry, Parameter::Entry, Parameter::Node],
        doc: "the first entry makes a request to the second at the node, as a branch beside others, and does not wait for its end",
    },
    Operation {
        name: "addBarrier",
        parameters: &[Parameter::Entry, Parameter::Node],
        doc: "at the node, a join, the entry waits for the entry whose thread forked what is joined, and which waits for it in turn: \
              what each of them does from there on begins when all have come",
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
    /// Whether only a trace can tell that all work is given to an entry of the task that does it.
    pub unsure: bool,
}

/// An entry that `newEntry` makes.
struct Made {
    name: Arc<str>,
    position: Position,
    /// Over which sequence the `for` around it runs.
    sequence: Option<usize>,
    task: Solved,
    /// Where the task is written.
    span: Span,
}

/// A `for` over the rounds of a sequence.
struct Running {
    index: Arc<str>,
    sequence: usize,
    /// The number of the round that it begins with.
    from: i64,
}

struct Compiler<'t, 'f, 'p> {
    pattern: &'t Pattern,
    route: &'t Route,
    scope: Scope,
    findings: &'f mut Findings<'p>,
    variables: Vec<Arc<str>>,
    made: Vec<Made>,
    /// The `for` around a statement.
    running: Option<Running>,
    /// Names of variables that differ by a condition.
    apart: Vec<[Arc<str>; 2]>,
    /// Work that operations give to entries.
    given: Vec<Given>,
    /// Entries that are requested, and where.
    requested: Vec<(EntryReference, Span)>,
    /// Nodes at which branches that are requests begin and end, and where that is said.
    branching: Vec<(ModelNode, Span)>,
    unsure: bool,
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
        apart: names_apart(template),
        given: Vec::new(),
        requested: Vec::new(),
        branching: Vec::new(),
        unsure: false,
    };
    let before = compiler.findings.list.len();
    let actions = compiler.statements(&template.statements);
    let sound = compiler.findings.list.len() == before;
    let (owners, loop_owners) = compiler.owners(sound);
    if sound {
        compiler.check_requested();
    }
    Model {
        actions,
        owners: route.slots.iter().copied().zip(owners).collect(),
        loop_owners,
        entry_variables: compiler.variables.len() as u8,
        unsure: compiler.unsure,
    }
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
                    let over = self.scope.with_count(&to.value).filter(|_| self.running.is_none());
                    let Some(sequence) = over else {
                        self.findings
                            .error(codes::INDEX, *span, "`for` runs over the rounds of a `repeat` of the template")
                            .notes
                            .push("its upper end is the variable that counts them, and it does not nest".to_owned());
                        continue;
                    };
                    self.running = Some(Running { index: Arc::clone(&index.value), sequence, from: *from });
                    let body = self.statements(body);
                    self.running = None;
                    actions.push(Action::For { sequence: sequence as u8, from: *from, body });
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
        if self.made.len() == MAX_SLOTS {
            self.findings
                .error(codes::ENTRY_TASK_AGAIN, entry.span, format!("a template opens at most {MAX_SLOTS} entries"))
                .notes
                .push("an entry is opened for a visit, and each visit has a node of its own".to_owned());
        }
        if self.made.len() > MAX_SLOTS {
            return None;
        }
        let position = self.position(entry.value.index.as_ref(), entry.span)?;
        let variable = self.variables.iter().position(|name| *name == entry.value.name).unwrap_or_else(|| {
            self.variables.push(Arc::clone(&entry.value.name));
            self.variables.len() - 1
        });
        let solved = self.solved(task);
        let sequence = self.running.as_ref().map(|running| running.sequence);
        let visited = solved.as_ref().is_none_or(|solved| self.check_entry_task(solved, task.span));
        // Made even where its task is wrong, so that one slip is reported once.
        let made = solved.clone().filter(|_| visited).unwrap_or(Solved::Wildcard);
        self.made.push(Made { name: Arc::clone(&entry.value.name), position, sequence, task: made, span: task.span });
        solved?;
        if !visited {
            return None; // that nothing binds the task, either, would follow from it
        }
        let task_value = self.model_value(task)?;
        let entry = EntryReference::New { variable: variable as u8, position };
        Some(Action::NewEntry { entry, interaction: kind?, task: task_value })
    }

    /// A new entry serves a task that some node of the match runs on. Gives back whether one does.
    fn check_entry_task(&mut self, task: &Solved, at: Span) -> bool {
        let visited = self.pattern.all().any(|node| node.task == *task);
        if !visited {
            self.findings
                .error(codes::ENTRY_TASK, at, "no node of the template runs on this task")
                .notes
                .push("an entry is opened for a visit, so its task must be that of a matched node".to_owned());
        }
        visited
    }

    fn operation(&mut self, name: &Ident, arguments: &[Spanned<Argument>], span: Span) -> Option<Action> {
        let Some(operation) = OPERATIONS.iter().find(|operation| operation.name == &*name.value) else {
            let place = self.findings.place(name.span);
            if &*name.value == "newEntry" {
                let message = "the entry that `newEntry` opens has no name here";
                let finding = Diagnostic::error(codes::OPERATION, place, message);
                self.findings.list.push(finding.with_hint("write `E := newEntry(R, b)`"));
                return None;
            }
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
                let (from, to) = (self.entry(&arguments[0]), self.entry(&arguments[1])?);
                self.check_requested_once(to, arguments[1].span);
                Some(Action::AddRequest { from: from?, to })
            }
            "addActivity" => {
                let (entry, node) = self.work(&arguments[0], &arguments[1])?;
                Some(Action::AddActivity { entry, node })
            }
            "phase2" => self.phase(arguments, span),
            "addTrigger" => self.trigger(&arguments[0], &arguments[1]),
            "addBranch" => {
                let ((entry, begin), (_, join)) =
                    (self.work(&arguments[0], &arguments[1])?, self.work(&arguments[0], &arguments[2])?);
                Some(Action::AddBranch { entry, begin, join: Some(join) })
            }
            "forkBranch" => {
                let (entry, begin) = self.work(&arguments[0], &arguments[1])?;
                Some(Action::AddBranch { entry, begin, join: None })
            }
            "addDelay" => {
                let (entry, node) = self.work(&arguments[0], &arguments[1])?;
                Some(Action::AddDelay { entry, node })
            }
            "addAlternative" => self.alternative(arguments),
            "addBarrier" => self.barrier(arguments),
            "awaitRequest" | "forkRequest" => self.branch_of_request(arguments),
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
        let of = match position {
            Position::Running(_) => self.running.as_ref().map(|running| running.sequence),
            Position::Count(sequence, _) => Some(sequence.into()),
            Position::At(_) => None,
        };
        let here = |made: &&Made| of.is_none() || made.sequence.is_none() || made.sequence == of;
        let mut of_name = self.made.iter().filter(|made| made.name == *name).filter(here).map(|made| made.position);
        match position {
            Position::At(0) => of_name.any(|made| made == Position::At(0)),
            // Before the first round stands the entry at 0, if there is one; later ones were made in the round before.
            Position::Running(-1) => {
                let made: Vec<Position> = of_name.collect();
                made.contains(&Position::At(0)) && made.contains(&Position::Running(0))
            }
            Position::Running(0) | Position::Count(_, 0) | Position::At(1) => {
                of_name.any(|made| made == Position::Running(0))
            }
            _ => false,
        }
    }

    /// A matched node whose work an operation gives to an entry.
    fn work(&mut self, entry: &Spanned<Argument>, node: &Spanned<Argument>) -> Option<(EntryReference, ModelNode)> {
        let (entry, named) = (self.entry(entry), self.node(node));
        let (entry, (which, position)) = (entry?, named?);
        let task = Task::of(&self.pattern_node(which).task, position);
        self.given.push(Given { entry, task, what: Work::Node(which, position), span: node.span });
        let node = match which {
            Which::Fixed(number) => ModelNode::Fixed(self.route.slots[number]),
            Which::Round(number) => ModelNode::Round { node: number as u8, position },
        };
        Some((entry, node))
    }

    /// A node by its name, and of a sequence of which round.
    fn node(&mut self, argument: &Spanned<Argument>) -> Option<(Which, Position)> {
        let Argument::Term(Term::Variable(variable, 0)) = &argument.value else {
            self.wrong(argument, Parameter::Node);
            return None;
        };
        if let Some(number) = self.pattern.nodes.iter().position(|node| node.name == variable.name) {
            return Some((Which::Fixed(number), Position::At(0)));
        }
        if let Some(number) = self.pattern.of_rounds().position(|node| node.name == variable.name) {
            let position = self.position(variable.index.as_ref(), argument.span)?;
            self.check_round(variable, number, position, argument.span);
            return Some((Which::Round(number), position));
        }
        let place = self.findings.place(argument.span);
        let message = format!("the template has no node `{}`", variable.name);
        let names: Vec<Arc<str>> = self.pattern.all().map(|node| Arc::clone(&node.name)).collect();
        let finding = Diagnostic::error(codes::UNBOUND, place, message)
            .with_similar(&variable.name, slips(&variable.name, names.iter().map(|name| &**name)));
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
        let is = |node: &crate::pattern::Node| {
            node.thread == solved[0] && node.task == solved[1] && node.counter == solved[2]
        };
        if let Some(number) = self.pattern.nodes.iter().position(is) {
            return Some(Action::Phase2 { node: ModelNode::Fixed(self.route.slots[number]) });
        }
        if let Some(number) = self.pattern.of_rounds().position(is)
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
        let number = |compiler: &mut Self, term, parameter| compiler.typed_value(term, parameter);
        let optional = |compiler: &mut Self, term: &Spanned<Term>, parameter| match term.value {
            Term::Wildcard => Some(None),
            _ => compiler.typed_value(term, parameter).map(Some),
        };
        let (own, place) = (number(self, thread, Parameter::Thread), number(self, position, Parameter::Position));
        let (runs_on, count) = (optional(self, task, Parameter::Task), optional(self, counter, Parameter::Counter));
        let (entry, own, place, runs_on, count) = (entry?, own?, place?, runs_on?, count?);
        let named = self
            .solved(task)
            .map_or(Task::of(&Solved::Wildcard, Position::At(0)), |solved| Task::of(&solved, Position::Running(0)));
        if let Some(thread) = self.solved(thread) {
            self.given.push(Given { entry, task: named, what: Work::Thread(thread), span: task.span });
        }
        Some(Action::AddTrigger { thread: own, position: place, task: runs_on, counter: count, entry })
    }
}
