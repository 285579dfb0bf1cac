//! Simulating for the trace alone.

use crate::diagnostic::Diagnostics;
use crate::lqn::model::Model;
use crate::solve::observe;
use crate::trace::Sink;
use crate::trace::messages::StepSink;
use crate::trace::recorded::SpanSink;

use super::messages::MessageRecorder;
use super::record::Recorder;
use super::spans::SpanRecorder;

/// What to trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// Where random numbers begin.
    pub seed: u64,
    /// Operations to trace: cycles of customers and open arrivals.
    pub operations: u64,
    /// Operations that begin before the first of them.
    pub skip: u64,
    /// Most events of the simulation.
    pub events: u64,
}

impl Default for TraceOptions {
    fn default() -> Self {
        Self { seed: 1, operations: 1000, skip: 100, events: 100_000_000 }
    }
}

/// What was traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// Operations given out.
    pub operations: u64,
    /// Their events, spans or messages.
    pub events: u64,
    /// Whether these are all that were asked for.
    pub complete: bool,
}

/// Simulates a model and gives the trace of its operations to the sink, as they end. Every operation that begins among those
/// asked for is followed to its end, so that long ones are not left out.
///
/// # Errors
/// When the model cannot be simulated at all, as [`simulate`](crate::solve::simulate()).
pub fn trace(model: &Model, options: &TraceOptions, sink: &mut dyn Sink) -> Result<Traced, Diagnostics> {
    let mut recorder = Recorder::new(model, options.skip, options.operations, sink);
    let enough = observe(model, options.seed, options.events, &mut recorder)?;
    let complete = enough && recorder.wanted.done == options.operations;
    Ok(Traced { operations: recorder.wanted.done, events: recorder.events, complete })
}

/// The same as spans, a trace an operation.
///
/// # Errors
/// As of [`trace`].
pub fn trace_spans(model: &Model, options: &TraceOptions, sink: &mut dyn SpanSink) -> Result<Traced, Diagnostics> {
    let mut recorder = SpanRecorder::new(model, options.skip, options.operations, sink);
    let enough = observe(model, options.seed, options.events, &mut recorder)?;
    let complete = enough && recorder.wanted.done == options.operations;
    Ok(Traced { operations: recorder.wanted.done, events: recorder.spans, complete })
}

/// The same as messages, which do not tell to which operation they belong; the threads of tasks are instances of them. The
/// messages of all operations come in the order of time.
///
/// # Errors
/// As of [`trace`].
pub fn trace_messages(model: &Model, options: &TraceOptions, sink: &mut dyn StepSink) -> Result<Traced, Diagnostics> {
    let mut recorder = MessageRecorder::new(model, options.skip, options.operations, sink);
    let enough = observe(model, options.seed, options.events, &mut recorder)?;
    let complete = enough && recorder.wanted.done == options.operations;
    Ok(Traced { operations: recorder.wanted.done, events: recorder.messages, complete })
}
