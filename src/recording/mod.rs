//! The trace that a tracer of a simulated system would write.
//!
//! `record`, `spans` and `messages` watch a simulation and write it down as events, spans and messages; `order` puts branches one
//! after the other.

mod messages;
mod order;
mod record;
mod spans;
mod trace;
mod wanted;

pub use trace::{TraceOptions, Traced, trace, trace_messages, trace_spans};
