#![no_main]
//! Whatever is read as OTLP JSON gives well-formed operations or a reason, and never panics.

use std::ops::ControlFlow;

use dyelog::trace::spans::{self, SpanOptions};
use dyelog::trace::{Format, Operation, Toeg, TraceNames};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut names = TraceNames::new();
    let mut sink = |_: &TraceNames, operation: Operation| {
        assert!(Toeg::build(operation).is_ok(), "an operation that is no graph");
        ControlFlow::Continue(())
    };
    if let Err(reasons) = spans::read(Format::Otlp, "fuzz", data, SpanOptions::default(), &mut names, &mut sink) {
        assert!(!reasons.0.is_empty());
    }
});
