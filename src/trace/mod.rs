//! Traces: events and operations, the formats they come in, their quality, and the graph they form.

pub mod event;
pub mod read;

pub use event::{Event, Kind, Operation, Origins, Task, TaskId, TraceNames};
pub use read::{ReadReport, Sink};
