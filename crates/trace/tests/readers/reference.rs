//! What reference data must give.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use dyelog_trace::{Operation, TraceNames};
use prost::Message as _;

use super::otlp_proto::request;
use super::show::operations;

fn shared(path: &str) -> PathBuf {
    let full = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces")).join(path);
    assert!(full.exists(), "the reference data {path} is not beside this checkout, in {}", full.display());
    full
}

fn events(names: &TraceNames, operations: &[Operation]) -> Vec<String> {
    let shown = operations.iter().map(|operation| {
        let events = operation.events.iter().map(|event| {
            let service = names.names.text(event.service);
            format!("{} {:?} {} {service} {:?}\n", event.thread, event.kind, names.task_name(event.task), event.time)
        });
        format!("{} {}\n{}", names.names.text(operation.scenario), operation.run, events.collect::<String>())
    });
    shown.collect()
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn protobuf_of_the_hotel_is_its_json() {
    let mut json = String::new();
    let file = std::fs::File::open(shared("derived/hotel-load25-200/base.otlp.json.gz")).expect("it is there");
    flate2::read::MultiGzDecoder::new(file).read_to_string(&mut json).expect("it is whole");
    let (names, wanted, _) = operations(&[("json", json.as_bytes())]).expect("it reads");
    let bytes = request(&json).encode_to_vec();
    let (own, got, report) = operations(&[("proto", &bytes)]).expect("it reads");
    assert_eq!(report.records, 2200);
    assert!(events(&own, &got) == events(&names, &wanted), "they differ");
}

/// The files of a folder by their names, with their content.
fn files(folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        let is = |end: &str| path.extension().is_some_and(|extension| extension == end);
        if path.is_dir() {
            files(&path, found);
        } else if is("dat") || is("map") {
            found.push((path.display().to_string(), std::fs::read(&path).expect("it can be read")));
        }
    }
}

/// Which class calls which, and how many operations there are.
fn calls(folder: &str) -> (usize, BTreeSet<(String, String)>, Vec<String>) {
    let mut found = Vec::new();
    files(&shared(folder), &mut found);
    let found: Vec<(&str, &[u8])> = found.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let (names, operations, report) = operations(&found).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let mut calls = BTreeSet::new();
    for operation in &operations {
        let mut visits: Vec<String> = Vec::new();
        for pair in operation.events.windows(2) {
            let [from, to] = [&pair[0], &pair[1]].map(|event| names.task_name(event.task).to_owned());
            if from == to || pair[0].thread != pair[1].thread {
                continue;
            }
            // Back to the caller, or a call.
            if visits.last() == Some(&to) && !pair[1].service.is_some() {
                visits.pop();
            } else {
                visits.push(from.clone());
                calls.insert((from, to));
            }
        }
    }
    let odd = report.counted.iter().map(|(reason, times)| format!("{times} × {reason}")).collect();
    (operations.len(), calls, odd)
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn logs_of_kieker_give_the_architecture_that_was_traced() {
    let mut text = String::new();
    for folder in ["kieker/lqn-simple-examples", "kieker/kieker-examples"] {
        let mut inner: Vec<PathBuf> = std::fs::read_dir(shared(folder))
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.is_dir())
            .collect();
        inner.sort();
        for log in inner {
            let name = log.file_name().expect("a name").to_string_lossy().into_owned();
            let (count, calls, odd) = calls(&format!("{folder}/{name}"));
            let calls: Vec<String> = calls.iter().map(|(from, to)| format!("{from} -> {to}")).collect();
            text += &format!("{name}: {count} operations, {}\n", calls.join(", "));
            for odd in odd {
                text += &format!("  {odd}\n");
            }
        }
    }
    insta::assert_snapshot!("kieker_architectures", text);
}
