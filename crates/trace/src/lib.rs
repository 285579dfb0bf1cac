//! Traces: events and operations, the formats they come in, their quality, and the graph they form.
//!
//! # Example
//!
//! ```
//! use dyelog_trace::{Operation, ReadOptions, Toeg, TraceNames, read};
//! use std::ops::ControlFlow;
//!
//! let text = "operation rpc run=1
//! rpc,1,1,Be | client,1  t=0
//! rpc,1,2,Ac | server,1  t=0.0004 cpu=0.002 name=find
//! rpc,1,3,Ac | client,2  t=0.0032 cpu=0.0001
//! rpc,1,4,Ed | client,3  t=0.0034
//! ";
//! let mut names = TraceNames::new();
//! let mut tasks = Vec::new();
//! let mut sink = |names: &TraceNames, operation: Operation| {
//!     let graph = Toeg::build(operation).expect("its events hang together");
//!     tasks.extend((0..graph.len() as u32).map(|node| names.names.text(names.task(graph.event(node).task).name).to_owned()));
//!     ControlFlow::Continue(())
//! };
//! // Any format, compressed or not: the content tells.
//! let report = read("rpc.angio", text.as_bytes(), &ReadOptions::default(), &mut names, &mut sink)?;
//! assert_eq!(report.operations, 1);
//! assert_eq!(tasks, ["client", "server", "client", "client"]);
//! # Ok::<(), dyelog_diagnostic::Diagnostics>(())
//! ```

#![forbid(unsafe_code)]

pub mod angio;
pub mod archive;
mod calls;
pub mod codes;
mod cpu;
mod critical;
pub mod detect;
pub mod event;
mod failures;
pub mod format;
mod lines;
pub mod messages;
pub mod named;
mod parquet;
pub mod quality;
pub mod read;
pub mod recorded;
pub mod retained;
pub mod spans;
pub mod stat;
pub mod toeg;
mod traces;
mod unpack;
mod versioned;

/// The wire format of Protocol Buffers, as the readers of OTLP take it apart.
pub mod protobuf {
    pub use crate::spans::formats::otlp_proto::wire::{Fields, Malformed, Value, varint};
}

pub use calls::{SpanCalls, SpanOperations, operations_of};
pub use cpu::CpuProfile;
pub use critical::Children;
pub use event::{Event, Extent, Kind, Operation, Origins, Replica, SpanItem, Task, TaskId, TraceNames, VisitEvidence};
pub use failures::FailureCounts;
pub use format::Format;
pub use named::NodeName;
pub use read::{OpenTrace, ReadOptions, ReadReport, Sink, format_of_head, open, read};
pub use retained::{SpanTree, Wanted};
pub use toeg::{NodeId, Toeg};
pub use traces::Traces;
pub use unpack::{is_packed, unpacked};
