#![no_main]
//! Whatever is read as a table of events gives messages that SAME explains, each once, or a reason, and never panics.

use dyelog::same::{Options, Same};
use dyelog::trace::messages::{read_all, source};
use dyelog::trace::{Format, TraceNames};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut names = TraceNames::new();
    let mut same = Same::new(Options { records: true, ..Options::default() }, vec!["fuzz".into()]);
    let read = source("fuzz", data, Format::Events, false)
        .and_then(|source| read_all(source.into_iter().collect(), &mut names, &mut same));
    match read {
        Ok(_) => {
            let analysis = same.finish(&names);
            let explained: u64 = analysis.records.iter().map(|record| record.via.len() as u64 + if record.end.is_nan() { 1 } else { 2 }).sum();
            assert!(explained <= analysis.messages);
        }
        Err(reasons) => assert!(!reasons.0.is_empty()),
    }
});
