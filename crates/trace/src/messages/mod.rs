//! Messages without a dye: sender, receiver, message and time (2005 paper §3.1).
//!
//! Readers give out [`Raw`] events of one input as they stand there. [`Merge`] puts those of several inputs into one order of
//! time, and [`Pairing`] finds the two halves of each message; what comes out is a stream of [`MessageStep`]s in causal order, as far as the
//! clocks allow it. Nothing is kept but a window and the messages in transit.
//!
//! - [`table`]: messages or send and receive events as CSV, as aligned text (Table 1 of the paper) or as JSON Lines;
//! - [`shiviz`]: logs with vector clocks;
//! - [`lqsim`]: event traces of the simulator of the LQN tool suite;
//! - [`clocks`]: any of these, their times corrected;
//! - [`operations`]: operations of any other format, their dye left out.

use std::io::Read;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::{Format, ReadReport, TaskId, TraceNames};
use dyelog_diagnostic::names::Name;
use dyelog_diagnostic::{Diagnostics, Place};

pub mod clocks;
mod columns;
pub mod lqsim;
pub mod merge;
pub mod operations;
pub mod pairing;
pub(crate) mod row;
pub mod shiviz;
pub mod stat;
pub mod table;
mod threads;
mod write;

pub(crate) use columns::format_of_header;
pub use merge::Merge;
pub use pairing::Pairing;
pub use stat::{MessageStat, Messages};
pub use write::{HEADER, THREADED_HEADER, write_message, write_threaded};

/// An event as it stands in an input, its partner not yet found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Raw {
    /// When, in seconds; NaN where the input does not tell.
    pub time: f64,
    /// The line, from 1.
    pub line: u32,
    /// What.
    pub what: RawWhat,
}

/// What a [`Raw`] event is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RawWhat {
    /// A whole message, at its reception.
    Message {
        /// The sending task.
        from: TaskId,
        /// The receiving task.
        to: TaskId,
        /// What it says; [`Name::NONE`] where not given.
        label: Name,
        /// When it was sent, seconds; the time of reception where the input has one time only.
        sent: f64,
    },
    /// A whole message leaves; [`Merge`] puts it where that is, as the input tells of it where it arrives.
    Leaving {
        /// The sending task.
        from: TaskId,
        /// The receiving task.
        to: TaskId,
        /// What it says.
        label: Name,
        /// When it will arrive, seconds.
        arrives: f64,
    },
    /// One half of a message.
    Half(Half),
    /// Anything else that a task does.
    Other(Event),
}

/// The sending or the reception of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Half {
    /// Whether this is the reception.
    pub received: bool,
    /// Whose event it is.
    pub task: TaskId,
    /// Whom it was sent to or received from, where the input tells.
    pub peer: Option<TaskId>,
    /// What the message says.
    pub label: Name,
    /// By which both halves find each other: a digest of the message's identifier, 0 where it has none.
    pub id: u64,
}

/// What a task does beside sending and receiving (2005 paper §4.5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// It begins work that no message asked for, of this name.
    Begin(TaskId, Name),
    /// It runs, so that it is not blocked for a reply.
    Run(TaskId),
    /// It is done and waits for requests.
    Idle(TaskId),
    /// It uses its processor for so many seconds.
    Compute(TaskId, f64),
}

/// What happens next, in causal order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MessageStep {
    /// When, in seconds; NaN where the input does not tell.
    pub time: f64,
    /// The number of the input.
    pub file: u16,
    /// The line there, from 1.
    pub line: u32,
    /// What.
    pub what: What,
}

/// What a [`MessageStep`] is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// A message of which only the reception has an event of its own.
    Message {
        /// The sending task.
        from: TaskId,
        /// The receiving task.
        to: TaskId,
        /// What it says.
        label: Name,
        /// When it was sent, seconds.
        sent: f64,
        /// Its network latency by the clocks of its ends, seconds: negative where these differ.
        took: f64,
    },
    /// A message leaves.
    Send {
        /// The sending task.
        from: TaskId,
        /// A number that its reception has too; used again after that.
        token: u32,
        /// To whom, where the sending tells.
        to: Option<TaskId>,
        /// What the message says, where the sending tells.
        label: Name,
    },
    /// A message arrives.
    Receive {
        /// The receiving task.
        to: TaskId,
        /// The number of its sending.
        token: u32,
        /// What it says.
        label: Name,
        /// The sending task.
        from: TaskId,
        /// When it was sent, seconds.
        sent: f64,
        /// Its network latency, seconds.
        took: f64,
    },
    /// The message of that number was never received.
    Lost(u32),
    /// Anything else.
    Other(Event),
}

/// Takes steps as they come.
pub trait StepSink {
    /// Takes one step; `Break` ends the reading early.
    fn step(&mut self, names: &TraceNames, step: &MessageStep) -> ControlFlow<()>;
}

impl<F: FnMut(&TraceNames, &MessageStep) -> ControlFlow<()>> StepSink for F {
    fn step(&mut self, names: &TraceNames, step: &MessageStep) -> ControlFlow<()> {
        self(names, step)
    }
}

/// Events of one input, in its order.
pub trait Source {
    /// The next event, or `None` at the end.
    ///
    /// # Errors
    /// When the input fails or, where reading is strict, is damaged.
    fn next(&mut self, names: &mut TraceNames) -> Result<Option<Raw>, Diagnostics>;

    /// What was seen on the way.
    fn report(&mut self) -> &mut ReadReport;

    /// The input's name.
    fn file(&self) -> &Arc<str>;
}

/// A place in an input.
pub fn at(file: &Arc<str>, line: u32) -> Place {
    Place::Line { file: Arc::clone(file), line, column: 0 }
}

/// The source of a format of messages; `None` for other formats.
///
/// # Errors
/// When the input has no header that can be used.
pub fn source<'r>(
    file: &str,
    input: impl Read + Send + 'r,
    format: Format,
    strict: bool,
) -> Result<Option<Box<dyn Source + 'r>>, Diagnostics> {
    Ok(Some(match format {
        Format::Messages | Format::Events => Box::new(table::Table::open(file, input, format, strict)?),
        Format::Lqsim => Box::new(lqsim::Lqsim::open(file, input, strict)),
        Format::Shiviz => Box::new(shiviz::Shiviz::open(file, input, strict)),
        _ => return Ok(None),
    }))
}

/// Reads all sources, merged by time, into a sink.
///
/// # Errors
/// Those of the sources.
pub fn read_all(
    sources: Vec<Box<dyn Source + '_>>,
    names: &mut TraceNames,
    sink: &mut dyn StepSink,
) -> Result<ReadReport, Diagnostics> {
    let mut merge = Merge::new(sources);
    let mut pairing = Pairing::new(merge.files());
    let mut report = ReadReport::default();
    while let Some((file, raw)) = merge.next(names)? {
        report.records += u64::from(!matches!(raw.what, RawWhat::Leaving { .. }));
        if pairing.take(names, file, &raw, &mut report, sink).is_break() {
            break;
        }
    }
    // A sink that has enough is not told of the rest.
    let _ = pairing.finish(names, &mut report, sink);
    merge.finish(&mut report);
    Ok(report)
}
