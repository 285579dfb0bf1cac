//! What templates on events may name, and the variables of one.

use std::sync::Arc;

use crate::rules::steps::{Function, REGISTERS, Register, Trigger};
use dyelog_datalog::ast::{Ident, Span};

/// What a variable stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Occurrence,
    Task,
    Number,
    Name,
}

impl Sort {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Occurrence => "an occurrence",
            Self::Task => "a task",
            Self::Number => "a number",
            Self::Name => "the name of a message",
        }
    }
}

/// Events as rule files write them, and what they say.
pub const EVENTS: [(&str, &str); 4] = [
    ("message(U, B, M)", "A message from occurrence U arrives at task B. M is its name, and may be left out."),
    (
        "changed(X)",
        "The arcs of occurrence X, or whether it is live, have changed. X is asked about until no template matches.",
    ),
    ("answered(W)", "A reply to occurrence W was recorded, and what it explains is retired."),
    ("idle(A)", "Task A has nothing to do: its occurrence has ended."),
];

/// Look-ups as rule files write them, and what they say.
pub const FUNCTIONS: [(&str, &str); 9] = [
    ("live(T)", "the live occurrence of task T"),
    ("parent(X)", "the occurrence from which the message to X came"),
    ("first(X)", "of the occurrences that X sent to, the first to which an arc is left"),
    ("last(X)", "of the occurrences that X sent to, the last to which an arc is left"),
    ("next(X)", "the occurrence to which the parent of X sent next"),
    ("task(X)", "the task of occurrence X"),
    ("born(X)", "a number that is larger for later occurrences"),
    ("first(X, T)", "the first of them that is an occurrence of task T"),
    ("last(X, T)", "the last of them that is an occurrence of task T"),
];

/// Tests as rule files write them, and what they say.
pub const TESTS: [(&str, &str); 3] = [
    ("arc(P, C)", "a message went from P to C that no interaction has explained yet; one side may be `_`"),
    ("live(X)", "X is the live occurrence of its task"),
    ("waiting(X)", "the sender of the message to X may still wait for the reply"),
];

/// Records as rule files write them, and what they say.
pub const RECORDS: [(&str, &str); 3] = [
    ("sync(W, U)", "W sent a request to U and waited for the reply"),
    ("forward(W, P, U)", "W sent a request that was passed on along path P to U, which replied to W"),
    ("async(X, Y)", "X sent a message to Y to which nobody replies"),
];

/// The events by name, with what they tell.
pub const TRIGGERS: [(&str, Trigger, &[Sort]); 4] = [
    ("message", Trigger::Message, &[Sort::Occurrence, Sort::Task, Sort::Name]),
    ("changed", Trigger::Changed, &[Sort::Occurrence]),
    ("answered", Trigger::Answered, &[Sort::Occurrence]),
    ("idle", Trigger::Idle, &[Sort::Task]),
];

/// The functions by name, with what they take and give.
pub const TYPED: [(&str, &[Sort], Function, Sort); 9] = [
    ("live", &[Sort::Task], Function::Live, Sort::Occurrence),
    ("parent", &[Sort::Occurrence], Function::Parent, Sort::Occurrence),
    ("first", &[Sort::Occurrence], Function::First, Sort::Occurrence),
    ("last", &[Sort::Occurrence], Function::Last, Sort::Occurrence),
    ("next", &[Sort::Occurrence], Function::Next, Sort::Occurrence),
    ("task", &[Sort::Occurrence], Function::Task, Sort::Task),
    ("born", &[Sort::Occurrence], Function::Born, Sort::Number),
    ("first", &[Sort::Occurrence, Sort::Task], Function::FirstOf, Sort::Occurrence),
    ("last", &[Sort::Occurrence, Sort::Task], Function::LastOf, Sort::Occurrence),
];

/// A variable of a template.
#[derive(Clone, Debug)]
pub struct Variable {
    pub name: Arc<str>,
    pub sort: Sort,
    pub register: Register,
    pub span: Span,
    pub used: bool,
}

/// A path of a template.
#[derive(Clone, Debug)]
pub struct Path {
    pub name: Arc<str>,
    pub count: Arc<str>,
    pub from: Register,
    pub to: Register,
    pub second: Register,
}

/// The variables and paths of a template.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    pub variables: Vec<Variable>,
    pub paths: Vec<Path>,
    registers: usize,
}

impl Scope {
    /// A register of its own; `None` where there are no more.
    pub fn register(&mut self) -> Option<Register> {
        self.registers += 1;
        (self.registers <= REGISTERS).then(|| (self.registers - 1) as Register)
    }

    /// A variable that is new here.
    pub fn bind(&mut self, name: &Ident, sort: Sort) -> Option<Register> {
        let register = self.register()?;
        let (name, span) = (Arc::clone(&name.value), name.span);
        self.variables.push(Variable { name, sort, register, span, used: false });
        Some(register)
    }

    /// A variable by its name, which is used now.
    pub fn known(&mut self, name: &str) -> Option<&Variable> {
        let variable = self.variables.iter_mut().find(|variable| *variable.name == *name)?;
        variable.used = true;
        Some(variable)
    }

    /// Whether a name is taken.
    pub fn is_known(&self, name: &str) -> bool {
        self.variables.iter().any(|variable| *variable.name == *name)
    }

    /// A path by its name.
    pub fn path(&self, name: &str) -> Option<&Path> {
        self.paths.iter().find(|path| *path.name == *name)
    }
}
