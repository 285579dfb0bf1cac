//! What holds of every format of spans.

use std::ops::ControlFlow;

use dyelog::trace::spans::{self, SpanOptions};
use dyelog::trace::{Format, Operation, Toeg, TraceNames};

/// Whatever can be read gives operations that are graphs; what cannot be read gives a reason. Nothing panics.
pub fn survives(format: Format, data: &[u8]) {
    let mut names = TraceNames::new();
    let mut sink = |_: &TraceNames, operation: Operation| {
        assert!(Toeg::build(operation).is_ok(), "an operation that is no graph");
        ControlFlow::Continue(())
    };
    if let Err(reasons) = spans::read(format, "fuzz", data, SpanOptions::default(), &mut names, &mut sink) {
        assert!(!reasons.0.is_empty());
    }
}
