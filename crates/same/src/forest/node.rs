//! Nodes of the forest, and what it gives out.

use crate::forest::NONE;
use crate::record::Occurrence;
use crate::timing::Timing;
use dyelog_trace::TaskId;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The execution occurrence that a task is in.
    Live,
    /// An occurrence that its task has left.
    Zombie,
    /// A message that has left and not arrived.
    InTransit,
    /// Nothing: its place is free.
    Gone,
}

/// A node of the forest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub task: TaskId,
    pub number: u32,
    pub parent: u32,
    pub first: u32,
    pub last: u32,
    pub before: u32,
    pub after: u32,
    pub born: u64,
    /// Of the message that it is the occurrence of.
    pub timing: Timing,
    pub line: u32,
    /// The number of that message, from 1; 0 without one.
    pub message: u32,
    pub visit: u32,
    pub state: State,
    /// Whether its sender may wait for a reply to its message.
    pub waiting: bool,
    /// Whether its message was sent in the second phase of the sender.
    pub second_phase: bool,
    pub spent: Spent,
}

impl Node {
    /// A node of its own, of which no message is known.
    pub fn new(task: TaskId, state: State, visit: u32, born: u64) -> Self {
        Self {
            task,
            number: 0,
            parent: NONE,
            first: NONE,
            last: NONE,
            before: NONE,
            after: NONE,
            born,
            timing: Timing::UNKNOWN,
            line: 0,
            message: 0,
            visit,
            state,
            waiting: false,
            second_phase: false,
            spent: Spent::default(),
        }
    }
}

/// What a visit had done when it sent a message, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Processor time.
    pub cpu: f64,
    /// Time not blocked.
    pub busy: f64,
    /// Whether its request was answered already.
    pub second_phase: bool,
}

/// An occurrence at one end of an interaction.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// Which one.
    pub occurrence: Occurrence,
    /// The visit that it is part of, [`NONE`] where it serves no request.
    pub visit: u32,
    /// The line of its message.
    pub line: u32,
    /// The number of its message in the order of reception, from 1; 0 without one.
    pub message: u32,
    /// Of its message.
    pub timing: Timing,
    /// Whether its message was sent in the second phase of the sender.
    pub second_phase: bool,
    /// What its sender had done by then.
    pub spent: Spent,
}

/// No template.
pub const NO_TEMPLATE: u16 = u16::MAX;

/// A reply.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// When it left and arrived.
    pub timing: Timing,
    /// What its sender had done when it left.
    pub spent: Spent,
}

impl Reply {
    /// None, where there is no message.
    pub const NONE: Self = Self { timing: Timing::UNKNOWN, spent: Spent { cpu: 0.0, busy: 0.0, second_phase: false } };
}

/// What the forest found.
#[derive(Clone, Copy, Debug)]
pub enum Found {
    /// A reply: the ends from the client to the last server stand in [`Forest::path`](crate::forest::Forest::path) from there on, so many.
    Cycle {
        /// Where they begin.
        from: usize,
        /// How many.
        count: usize,
        /// The reply.
        reply: Reply,
        /// The template that says so, by its number.
        template: u16,
    },
    /// A message without a reply.
    Async {
        /// The sender.
        from: End,
        /// The receiver.
        to: End,
        /// Whether the end of the trace is the reason.
        cut_off: bool,
        /// The template that says so, by its number; [`NO_TEMPLATE`] where none does.
        template: u16,
    },
    /// A node of that visit is no more.
    Gone(u32),
    /// A message in transit of that visit lost its node.
    Held(u32),
}
