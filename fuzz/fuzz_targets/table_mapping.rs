#![no_main]
//! Whatever a mapping and its table are, they are read or refused, and never panic. A line of equals signs parts the two.

use std::sync::Arc;

use dyelog::diagnostic::names::Names;
use dyelog::trace::Format;
use dyelog::trace::spans::{self, SpanOptions, TableMapping};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let (mapping, table) = text.split_once("\n===\n").unwrap_or((&text, ""));
    let Ok(mapping) = TableMapping::parse("fuzz", mapping) else { return };
    let options = SpanOptions { table: Some(Arc::new(mapping)), ..SpanOptions::default() };
    let _ = spans::collect_with(Format::SpansCsv, "fuzz", table.as_bytes(), &options, &mut Names::new());
});
