//! Services, what their threads do for requests, and messages in transit.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::sequence_model::{Doing, Kind};
use dyelog_diagnostic::names::Name;
use dyelog_trace::TaskId;

#[derive(Debug, Default)]
pub(super) struct Service {
    pub name: Name,
    /// Whether it was ever asked for anything.
    pub serves: bool,
    /// Visits that are not over, in the order of arrival, and visits that are, whose threads are free.
    pub open: VecDeque<u32>,
    pub over: VecDeque<u32>,
    /// Threads of customers that wait for nothing.
    pub idle: BinaryHeap<Reverse<u32>>,
}

/// What a thread does for one request, or for a customer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    pub service: u32,
    pub thread: TaskId,
    /// When it began, which tells it from others in its place.
    pub born: u64,
    /// The visit that asked for it.
    pub client: Option<Client>,
    pub doing: Doing,
    /// When it did what it did last.
    pub since: u64,
    /// Answers that it waits for.
    pub waiting: u32,
    /// Whom it asked last.
    pub asked: Option<Asked>,
    /// Whether its caller went on as if it had been answered.
    pub unwaited: bool,
    pub over: bool,
}

/// A visit, which may be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub visit: u32,
    pub born: u64,
}

/// A visit that was asked for, as its caller sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub at: At,
    /// When.
    pub since: u64,
    /// Where its caller is once it is answered.
    pub then: Doing,
}

/// A visit that asked for another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client {
    pub at: At,
    pub service: u32,
    pub thread: TaskId,
}

/// A message in transit.
#[derive(Clone, Copy, Debug)]
pub(super) enum Transit {
    None,
    /// Its receiver is not known yet.
    Open,
    Request {
        from: Client,
        kind: Kind,
    },
    Reply {
        client: Client,
        thread: TaskId,
        serves: Kind,
        /// Whether it is waited for.
        awaited: bool,
    },
}
