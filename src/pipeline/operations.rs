//! All operations of several traces.

use std::sync::Arc;

use crate::diagnostic::Diagnostics;
use crate::pipeline::input::Input;
use crate::pipeline::listener::Meter;
use crate::pipeline::messages::{First, open_one};
use crate::pipeline::options::Reading;
use crate::trace::{ReadReport, Sink, TraceNames, Traces};

/// Reads traces one after the other, the first of which may be open already. Files of spans are one trace, and so are files of probe
/// records: an operation may lie in several of them. Both are read together, after the others.
///
/// # Errors
/// All that keeps any of the traces from being read. Operations that were complete before were given out.
pub fn read_operations(
    inputs: &[Input],
    mut first: First,
    reading: &Reading,
    progress: &Arc<dyn Meter>,
    names: &mut TraceNames,
    sink: &mut dyn Sink,
) -> Result<ReadReport, Diagnostics> {
    let mut traces = Traces::new(&reading.options(), sink);
    let taken = Diagnostics::gather(inputs.iter().map(|input| {
        let open = first.take().unwrap_or_else(|| open_one(input, None, reading, progress))?;
        traces.take(open, names, sink)
    }));
    match (taken, traces.finish(names, sink)) {
        (Ok(_), finished) => finished,
        (Err(Diagnostics(mut found)), finished) => {
            found.extend(finished.err().into_iter().flat_map(|Diagnostics(more)| more));
            Err(Diagnostics(found))
        }
    }
}
