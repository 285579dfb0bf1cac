//! Every file of spans among the reference data is read, or refused with a reason.

use std::path::{Path, PathBuf};

use super::dump::read_file;
use crate::support::shared;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else if [".json", ".jsonl", ".json.gz", ".jsonl.gz", ".csv.gz"]
            .iter()
            .any(|end| path.to_string_lossy().ends_with(end))
        {
            found.push(path);
        }
    }
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn every_file_is_read_or_refused_with_a_reason() {
    let mut found = Vec::new();
    for folder in ["traces/otlp", "traces/jaeger", "traces/zipkin", "traces/derived/hotel-load25-200"] {
        let folder = shared(folder);
        files(&folder, &mut found);
    }
    assert!(found.len() > 90, "only {} files", found.len());
    let mut refused = Vec::new();
    for path in &found {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        match read_file(path) {
            Ok(outcome) => {
                assert!(outcome.report.operations > 0, "{name}: nothing was given out");
                assert_eq!(outcome.report.operations, outcome.operations.len() as u64);
            }
            Err(reasons) => {
                let first = &reasons.0[0];
                refused.push(format!("{name}: {} ({}) [{}]", first.message, first.notes.join("; "), first.code));
            }
        }
    }
    insta::assert_snapshot!(refused.join("\n"), @r"
    events.json: there is no OTLP span in this file (it has logs) [T102]
    logs.json: there is no OTLP span in this file (it has logs) [T102]
    metrics.json: there is no OTLP span in this file (it has metrics) [T102]
    sample_data__large.json: there is no Jaeger span in this file (it has a graph of dependencies between services, without spans) [T102]
    sample_data__small.json: there is no Jaeger span in this file (it has a graph of dependencies between services, without spans) [T102]
    ");
}

/// The golden trace of the shop, through the door that detects formats.
#[test]
fn the_recorded_shop() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/shop.otlp.jsonl");
    let outcome = read_file(Path::new(path)).expect("the golden trace is readable");
    assert_eq!(outcome.report.records, 2470);
    let odd: Vec<_> = outcome.report.counted.iter().filter(|(reason, _)| !reason.contains("messages")).collect();
    assert!(odd.iter().all(|(reason, _)| reason.starts_with("call without a server")), "{odd:?}");
    assert_eq!(outcome.operations.len(), 200, "{:?}", outcome.report.counted);
}
