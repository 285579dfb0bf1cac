//! Whatever is read as a change can be estimated.

#![no_main]

use dyelog_callgraph::change::{Change, impact};
use dyelog_callgraph::{Granularity, Input, Options, analyse};
use libfuzzer_sys::fuzz_target;

const RECORDS: &str = include_str!("../../traces/calls/figure-1.jsonl");

fuzz_target!(|source: &str| {
    let Ok(change) = Change::parse("fuzz", source) else { return };
    let records = vec![Input::new("records", RECORDS.as_bytes())];
    let profile = analyse(records, &Options::default()).expect("a golden trace");
    if let Ok(impact) = impact(&profile, &change, &Granularity::default()) {
        assert_eq!(impact.superposed().nodes, impact.after.nodes);
    }
});
