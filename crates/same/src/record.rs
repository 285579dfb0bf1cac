//! Interaction records (2005 paper §4.3, part B).

use std::sync::Arc;

use dyelog_lqn::submodel::RequestKind;
use dyelog_trace::TaskId;

/// The kind of an interaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKind {
    /// `Sync`: the client waits for the reply.
    Sync,
    /// `Async`: there is no reply.
    Async,
    /// `Fwd`: the request is passed on, and the last server replies.
    Forward,
}

impl RecordKind {
    /// Its word in lists.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Async => "async",
            Self::Forward => "forward",
        }
    }
}

/// The paper's `X.k`: the k-th execution occurrence of task X.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Occurrence {
    /// The task, or the thread of one.
    pub task: TaskId,
    /// Its number, from 1.
    pub number: u32,
}

/// An interaction.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Record {
    /// Its kind.
    pub kind: RecordKind,
    /// The task that began it.
    pub client: Occurrence,
    /// The occurrence that replied; of an asynchronous one, the receiver.
    pub server: Occurrence,
    /// Of a forwarded one, the occurrences that passed it on, in order.
    pub via: Vec<Occurrence>,
    /// When the request arrived, seconds, where the trace tells. The paper's `tstart` or `t`.
    pub time: Option<f64>,
    /// When the reply arrived, seconds, where there is one and the trace tells. The paper's `tend`.
    pub end: Option<f64>,
    /// Whether it is taken for asynchronous because the trace ended.
    pub cut_off: bool,
    /// The template that found it; `None` of what the trace, or memory, had no room for.
    pub template: Option<Arc<str>>,
    /// The messages that it is made of, by their numbers in the order of reception, from 1: the request, those that passed it on, the
    /// reply.
    pub messages: Vec<u32>,
}

/// What one message turned out to be, by the lines of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// The line of the message.
    pub message: u32,
    /// How the request was made.
    pub kind: RequestKind,
    /// The line of the message that its sender was serving; 0 where it served none.
    pub cause: u32,
}
