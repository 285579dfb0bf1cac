//! What can be wrong with an operation.

use crate::{Event, Kind, Operation, TraceNames, codes};
use dyelog_diagnostic::{Code, Diagnostic};

/// A way in which an operation is not well-formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// It has no events.
    NoEvents,
    /// A fork of a thread that has no events.
    DanglingFork,
    /// A thread that no fork starts, beside the root. The root is the one with the lowest identifier.
    BeginWithoutFork,
    /// Several threads that no fork starts; reported once an operation.
    SeveralRoots,
    /// No thread without a fork; reported once an operation.
    NoRoot,
    /// A second fork of the same thread.
    ForkedTwice,
    /// A join of a thread that has no events.
    JoinOfUnknown,
    /// A second join of the same thread.
    JoinedTwice,
    /// A thread or task node counter of zero.
    ZeroCounter,
    /// Missing thread node counters before this event.
    ThreadGap,
    /// A thread node counter that another event has.
    ThreadRepeat,
    /// Missing task node counters before this event.
    TaskGap,
    /// A task node counter that another event has.
    TaskRepeat,
    /// A first node of a thread that is no begin.
    NoBegin,
    /// A thread without an end.
    NoEnd,
    /// A begin that is not the first node of its thread.
    BeginInside,
    /// An end that is not the last node of its thread.
    EndInside,
    /// A thread that no chain of forks leads to from a thread without a fork.
    Unreachable,
    /// Events that come before themselves; reported once a knot of them.
    Cycle,
}

impl Fault {
    /// Its stable code.
    pub fn code(self) -> Code {
        match self {
            Self::NoEvents => codes::NO_EVENTS,
            Self::DanglingFork => codes::DANGLING_FORK,
            Self::BeginWithoutFork => codes::BEGIN_WITHOUT_FORK,
            Self::SeveralRoots => codes::SEVERAL_ROOTS,
            Self::NoRoot => codes::NO_ROOT,
            Self::ForkedTwice => codes::FORKED_TWICE,
            Self::JoinOfUnknown => codes::JOIN_OF_UNKNOWN,
            Self::JoinedTwice => codes::JOINED_TWICE,
            Self::ZeroCounter => codes::ZERO_COUNTER,
            Self::ThreadGap => codes::THREAD_GAP,
            Self::ThreadRepeat => codes::THREAD_REPEAT,
            Self::TaskGap => codes::TASK_GAP,
            Self::TaskRepeat => codes::TASK_REPEAT,
            Self::NoBegin => codes::NO_BEGIN,
            Self::NoEnd => codes::NO_END,
            Self::BeginInside => codes::BEGIN_INSIDE,
            Self::EndInside => codes::END_INSIDE,
            Self::Unreachable => codes::UNREACHABLE,
            Self::Cycle => codes::CYCLE,
        }
    }

    /// What it is, in a few words for a table.
    pub fn title(self) -> &'static str {
        match self {
            Self::NoEvents => "operation without events",
            Self::DanglingFork => "dangling fork",
            Self::BeginWithoutFork => "begin without fork",
            Self::SeveralRoots => "several roots",
            Self::NoRoot => "no root",
            Self::ForkedTwice => "thread forked twice",
            Self::JoinOfUnknown => "join of an unknown thread",
            Self::JoinedTwice => "thread joined twice",
            Self::ZeroCounter => "counter of zero",
            Self::ThreadGap => "gap in a thread counter",
            Self::ThreadRepeat => "repeat of a thread counter",
            Self::TaskGap => "gap in a task counter",
            Self::TaskRepeat => "repeat of a task counter",
            Self::NoBegin => "thread without a begin",
            Self::NoEnd => "thread without an end",
            Self::BeginInside => "begin in mid-thread",
            Self::EndInside => "end in mid-thread",
            Self::Unreachable => "unreachable thread",
            Self::Cycle => "cycle in causality",
        }
    }
}

/// One thing that is wrong with an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Finding {
    /// What is wrong.
    pub fault: Fault,
    /// Where: the index of an event of the operation; `None` where it has none.
    pub event: Option<u32>,
    /// The counters that are missing, first and last, for gaps; zeros for the rest.
    pub missing: (u32, u32),
}

impl Finding {
    pub(crate) fn at(fault: Fault, event: u32) -> Self {
        Self { fault, event: Some(event), missing: (0, 0) }
    }

    pub(crate) fn gap(fault: Fault, event: u32, missing: (u32, u32)) -> Self {
        Self { fault, event: Some(event), missing }
    }

    /// How many counters are missing.
    pub(crate) fn missing_count(&self) -> u32 {
        match self.missing {
            (0, _) => 0,
            (first, last) => last - first + 1,
        }
    }

    /// The finding in words, with its place.
    pub fn diagnostic(&self, operation: &Operation, names: &TraceNames) -> Diagnostic {
        let event = self.event.and_then(|event| operation.events.get(event as usize));
        let (Some(event), Some(index)) = (event, self.event) else {
            let place = operation.beginning();
            return Diagnostic::warning(self.fault.code(), place, "the operation has no events")
                .with_hint("was it cut off, or are its events under another operation?");
        };
        let words = Words { finding: self, event, task: names.task_label(event.task).escape_debug().to_string() };
        let mut diagnostic = Diagnostic::warning(self.fault.code(), operation.place(event), words.message())
            .with_note(format!("the event is `{}`", label(operation, names, index as usize)));
        if let Some(note) = words.note() {
            diagnostic = diagnostic.with_note(note);
        }
        diagnostic.with_hint(words.hint())
    }
}

/// An event in the notation of the native text format.
pub(crate) fn label(operation: &Operation, names: &TraceNames, index: usize) -> String {
    let event = &operation.events[index];
    let scenario = names.names.text(operation.scenario).escape_debug();
    let kind = match event.kind {
        Kind::Begin => "Be".to_owned(),
        Kind::Activity => "Ac".to_owned(),
        Kind::End => "Ed".to_owned(),
        Kind::Fork(thread) => format!("Fk({scenario},{thread})"),
        Kind::Join(thread) => format!("Jn({scenario},{thread})"),
    };
    let task = names.task_label(event.task);
    format!("{scenario},{},{},{kind} | {},{}", event.thread, event.index, task.escape_debug(), event.counter)
}

/// The words for a finding at an event.
struct Words<'a> {
    finding: &'a Finding,
    event: &'a Event,
    task: String,
}

impl Words<'_> {
    fn message(&self) -> String {
        let (thread, task) = (self.event.thread, &self.task);
        let other = match self.event.kind {
            Kind::Fork(thread) | Kind::Join(thread) => thread,
            _ => 0,
        };
        match self.finding.fault {
            Fault::NoEvents => "the operation has no events".to_owned(),
            Fault::DanglingFork => format!("thread {other} is forked here, but no event of it is there"),
            Fault::BeginWithoutFork => format!("thread {thread} begins here, but no event forks it"),
            Fault::SeveralRoots => "the operation has several roots".to_owned(),
            Fault::NoRoot => "the operation has no root".to_owned(),
            Fault::ForkedTwice => format!("thread {other} is forked here a second time"),
            Fault::JoinOfUnknown => format!("thread {other} is waited for here, but no event of it is there"),
            Fault::JoinedTwice => format!("thread {other} is waited for here a second time"),
            Fault::ZeroCounter => "a counter of this event is zero".to_owned(),
            Fault::ThreadGap => format!("thread {thread} misses {} before this event", self.missing()),
            Fault::ThreadRepeat => format!("another event of thread {thread} has the counter {} too", self.event.index),
            Fault::TaskGap => format!("task `{task}` misses {} before this event", self.missing()),
            Fault::TaskRepeat => format!("another event of task `{task}` has the counter {} too", self.event.counter),
            Fault::NoBegin => format!("the first event of thread {thread} is no begin"),
            Fault::NoEnd => format!("thread {thread} has no end; this is the last event of it"),
            Fault::BeginInside => format!("thread {thread} begins in its middle"),
            Fault::EndInside => format!("thread {thread} goes on after its end"),
            Fault::Unreachable => format!("no chain of forks leads from a root to thread {thread}"),
            Fault::Cycle => "this event comes before itself: causality has a cycle".to_owned(),
        }
    }

    fn missing(&self) -> String {
        match self.finding.missing {
            (first, last) if first == last => format!("the counter {first}"),
            (first, last) => format!("the counters {first} to {last}"),
        }
    }

    fn note(&self) -> Option<&'static str> {
        Some(match self.finding.fault {
            Fault::ThreadGap | Fault::TaskGap => "counters are 1, 2, 3, … within an operation",
            Fault::SeveralRoots => "exactly one thread of an operation, its root, begins without a fork",
            Fault::NoRoot => {
                "exactly one thread of an operation, its root, begins without a fork; all of its are forked"
            }
            Fault::NoEnd => "an end tells a thread that is finished from one that is deadlocked or cut off",
            Fault::Cycle => "causes come before effects along threads, tasks, forks and joins",
            _ => return None,
        })
    }

    fn hint(&self) -> &'static str {
        match self.finding.fault {
            Fault::NoEvents | Fault::DanglingFork | Fault::JoinOfUnknown => {
                "was the trace cut off, or is the recording of a process missing?"
            }
            Fault::BeginWithoutFork | Fault::SeveralRoots | Fault::NoRoot => {
                "was the fork lost, or does the thread belong to another operation?"
            }
            Fault::ThreadGap | Fault::TaskGap => "were events lost, or do counters run across operations?",
            Fault::ZeroCounter => "counters begin at 1",
            Fault::ThreadRepeat | Fault::TaskRepeat => {
                "was an event recorded twice, or did two runs get the same identifier?"
            }
            Fault::ForkedTwice | Fault::JoinedTwice => "give every thread an identifier of its own",
            Fault::NoBegin | Fault::BeginInside => "the first node of a thread, and no other, is of type `Be`",
            Fault::NoEnd | Fault::EndInside => "the last node of a thread, and no other, is of type `Ed`",
            Fault::Unreachable | Fault::Cycle => "is a thread identifier or a counter wrong?",
        }
    }
}
