//! What a template comes to: steps that match, then what is done.

use std::sync::Arc;

use crate::rules::scope::{Path, Sort};
use crate::walk::Goal;
use dyelog_datalog::ast::Comparison;

/// A register: an occurrence, a task or a number.
pub type Register = u8;

/// How many registers there are.
pub const REGISTERS: usize = 16;

/// What the registers hold.
pub type Registers = [u64; REGISTERS];

/// An event that templates are asked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// `message(U, B, M)`
    Message,
    /// `answered(W)`
    Answered,
    /// `changed(X)`
    Changed,
    /// `idle(A)`
    Idle,
}

impl Trigger {
    /// All of them, by their numbers.
    pub const ALL: [Self; 4] = [Self::Message, Self::Answered, Self::Changed, Self::Idle];

    /// Its name in rule files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Answered => "answered",
            Self::Changed => "changed",
            Self::Idle => "idle",
        }
    }
}

/// What a look-up gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// `live(T)`
    Live,
    /// `parent(X)`
    Parent,
    /// `first(X)`
    First,
    /// `last(X)`
    Last,
    /// `next(X)`
    Next,
    /// `task(X)`
    Task,
    /// `born(X)`
    Born,
    /// `first(X, T)`: the first that is an occurrence of that task.
    FirstOf,
    /// `last(X, T)`
    LastOf,
}

impl Function {
    /// Its name in rule files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Parent => "parent",
            Self::First | Self::FirstOf => "first",
            Self::Last | Self::LastOf => "last",
            Self::Next => "next",
            Self::Task => "task",
            Self::Born => "born",
        }
    }
}

/// One side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    Register(Register),
    Number(u64),
}

/// A step of matching. Each either fails or goes on to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The value that a function has there is put into a register, or must be what is there.
    LookUp {
        function: Function,
        of: Register,
        task: Register,
        to: Register,
        bind: bool,
    },
    /// The way up from one occurrence to another: how many there are on it, and the second.
    Path {
        from: Register,
        to: Register,
        count: Register,
        second: Register,
    },
    /// `arc(P, C)`, of which one side may be any.
    Arc {
        parent: Option<Register>,
        child: Option<Register>,
        holds: bool,
    },
    /// The message to an occurrence has arrived.
    Arrived(Register),
    /// `live(X)`
    Live {
        occurrence: Register,
        holds: bool,
    },
    /// `waiting(X)`
    Waiting {
        occurrence: Register,
        holds: bool,
    },
    Compare {
        left: Operand,
        how: Comparison,
        right: Operand,
    },
    /// Whether the message has that name.
    Name {
        text: Arc<str>,
        holds: bool,
    },
    /// A relation of the file.
    Walk {
        goal: Goal,
        left: Register,
        right: Register,
        holds: bool,
    },
}

/// A record of an interaction.
#[derive(Clone, Copy, Debug)]
pub enum Recorded {
    /// From the client up to the server, by `sync` or `forward`.
    Cycle {
        client: Register,
        server: Register,
    },
    Async {
        from: Register,
        to: Register,
    },
}

/// Place on a path, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// From its beginning.
    At(u32),
    /// So many before its end.
    BeforeEnd(u32),
}

/// What no longer holds.
#[derive(Clone, Copy, Debug)]
pub enum Retirement {
    Arc {
        parent: Register,
        child: Register,
    },
    Live(Register),
    /// The occurrences on a path from there to there, and the arcs to them.
    Path {
        from: Register,
        to: Register,
        first: Bound,
        last: Bound,
    },
}

/// A template that is ready to run.
#[derive(Clone, Debug)]
pub struct Steps {
    pub name: Arc<str>,
    pub order: i64,
    /// Whether it is of the shipped file.
    pub is_shipped: bool,
    pub trigger: Trigger,
    /// All of it has to hold.
    pub matching: Vec<Step>,
    /// The register of the receiver's new occurrence, where it has one.
    pub asserts: Option<Register>,
    /// From which occurrence an arc goes to that one.
    pub arc_from: Option<Register>,
    pub records: Vec<Recorded>,
    pub retires: Vec<Retirement>,
    /// What explanations show of it.
    pub text: Box<Text>,
}

/// A template as its file writes it.
#[derive(Clone, Debug, Default)]
pub struct Text {
    /// The file.
    pub file: Arc<str>,
    /// The line of its name there, from 1.
    pub line: usize,
    /// `message(U, B)`
    pub event: String,
    /// How many variables the event gives.
    pub given: usize,
    /// What is written for each step of matching.
    pub steps: Vec<String>,
    /// Its variables, those that the event gives first.
    pub variables: Vec<(Arc<str>, Sort, Register)>,
    /// Its paths.
    pub paths: Vec<Path>,
    /// What it asserts, records and retires: the keyword, and what follows it.
    pub done: Vec<(&'static str, String)>,
}

impl Steps {
    /// Of a template for replies, the client, and the occurrence from which the way up to it begins.
    pub fn reply(&self) -> Option<(Register, Register)> {
        self.records.iter().find_map(|record| match record {
            Recorded::Cycle { client, server } => Some((*client, *server)),
            Recorded::Async { .. } => None,
        })
    }

    /// Whether it can match where these facts hold of what the event is about.
    pub fn may_match(&self, facts: Facts) -> bool {
        self.matching.iter().all(|step| match *step {
            Step::LookUp { function: Function::Parent, of: 0, .. } => facts.has_parent,
            Step::LookUp { function: Function::First | Function::Last, of: 0, .. } => facts.has_child,
            Step::Arc { parent: None, child: Some(0), holds } => facts.has_parent == holds,
            Step::Arc { parent: Some(0), child: None, holds } => facts.has_child == holds,
            Step::Live { occurrence: 0, holds } => facts.is_live == holds,
            _ => true,
        })
    }
}

/// What holds of an occurrence.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    pub is_live: bool,
    pub has_parent: bool,
    pub has_child: bool,
}

impl Facts {
    /// How many there are.
    pub const COUNT: usize = 8;

    /// All of them, by their numbers.
    pub fn of_number(number: usize) -> Self {
        Self { is_live: number & 1 != 0, has_parent: number & 2 != 0, has_child: number & 4 != 0 }
    }

    /// Their number.
    pub fn number(self) -> usize {
        usize::from(self.is_live) | usize::from(self.has_parent) << 1 | usize::from(self.has_child) << 2
    }
}
