//! Traces: events and operations, the formats they come in, their quality, and the graph they form.

pub mod angio;
pub mod codes;
pub mod detect;
pub mod event;
pub mod format;
pub mod messages;
pub mod named;
pub mod quality;
pub mod read;
pub mod recorded;
pub mod retained;
pub mod spans;
pub mod stat;
pub mod toeg;
mod unpack;
mod versioned;

pub use event::{Event, Kind, Operation, Origins, SpanItem, Task, TaskId, TraceNames};
pub use format::Format;
pub use named::NodeName;
pub use read::{OpenTrace, ReadOptions, ReadReport, Sink, format_of_head, open, read};
pub use retained::{SpanTree, Wanted};
pub use toeg::{NodeId, Toeg};
