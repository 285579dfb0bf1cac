//! Whatever JSON Lines are read, what is written of them reads back.

#![no_main]

use std::ops::ControlFlow;

use dyelog::trace::angio::{read_jsonl, write_jsonl};
use dyelog::trace::{Operation, TraceNames};
use libfuzzer_sys::fuzz_target;

/// The lines of all operations that can be read.
fn rewritten(source: &[u8], strict: bool) -> Vec<u8> {
    let mut output = Vec::new();
    let mut sink = |names: &TraceNames, operation: Operation| {
        write_jsonl(&mut output, names, &operation).expect("what was read can be written");
        ControlFlow::Continue(())
    };
    read_jsonl("fuzz", source, strict, &mut TraceNames::new(), &mut sink).expect("only what is strict can be refused, and that was written");
    output
}

fuzz_target!(|source: &[u8]| {
    let once = rewritten(source, false);
    let twice = rewritten(&once, true);
    // Task counters may be ranked anew in the light of other operations; everything else stays, line by line.
    let lines = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(lines(&twice), lines(&once));
});
