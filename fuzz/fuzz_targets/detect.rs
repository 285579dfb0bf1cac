//! Any input, packed or not, is read or refused.

#![no_main]

use std::ops::ControlFlow;

use dyelog::trace::{Operation, ReadOptions, TraceNames, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|source: &[u8]| {
    let mut sink = |_: &TraceNames, _: Operation| ControlFlow::Continue(());
    // Whether it is a trace or none, the reader says so and returns.
    let _ = read("fuzz", source, &ReadOptions::default(), &mut TraceNames::new(), &mut sink);
});
