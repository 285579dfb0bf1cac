//! One set of spans in many encodings and with many kinds of damage.

use std::collections::BTreeSet;

use dyelog::trace::{Kind, Operation, TraceNames};

use super::dump::{Outcome, Show, dump, read_file};
use crate::cli::run;
use crate::support::shared;

fn hotel(name: &str) -> Outcome {
    let path = shared(&format!("traces/derived/hotel-load25-200/{name}.gz"));
    read_file(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn all_encodings_give_the_same_operations() {
    let base = hotel("base.otlp.json");
    assert_eq!(base.operations.len(), 200);
    assert_eq!(base.report.records, 2200);
    let wanted = dump(&base, Show::Times);
    for name in [
        "base.otlp.jsonl",
        "base.tempo-protojson.json",
        "base.jaeger.json",
        "mut-shuffled.otlp.json",
        "mut-dup5pct.otlp.json",
    ] {
        let other = hotel(name);
        assert!(dump(&other, Show::Times) == wanted, "{name} differs");
        assert_eq!(other.report.counted.contains_key("duplicate span"), name.contains("dup"), "{name}");
    }
}

/// Zipkin has names in lower case only, and the table does not say how operations were sampled; nothing else may differ.
#[test]
#[ignore = "needs the reference data, ../shared"]
fn all_encodings_give_one_model() {
    let model = |name: &str| {
        let path = shared(&format!("traces/derived/hotel-load25-200/{name}.gz"));
        let run = run(&["model", &path.display().to_string(), "--format", "json", "--sampling", "0.3"]);
        assert_eq!(run.code, 0, "{name}: {}", run.err);
        run.out.replace(&path.display().to_string(), "FILE")
    };
    let wanted = model("base.otlp.json");
    for name in ["base.otlp.jsonl", "base.tempo-protojson.json", "base.jaeger.json", "base.csv"] {
        assert!(model(name) == wanted, "{name} differs");
    }
    for name in ["base.zipkin2.json", "base.zipkin2-shared.json"] {
        let (got, wanted) = (model(name).to_lowercase(), wanted.to_lowercase());
        let differing = got.lines().zip(wanted.lines()).find(|(a, b)| a != b);
        assert!(got == wanted, "{name} differs: {differing:?}");
    }
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn skewed_clocks_do_not_change_the_structure() {
    let base = hotel("base.otlp.json");
    let wanted = dump(&base, Show::Structure);
    for name in ["mut-skew-minus3ms-geo.otlp.json", "mut-skew-plus7s-search-rate.otlp.json"] {
        let other = hotel(name);
        let got = dump(&other, Show::Structure);
        let differing = got.lines().zip(wanted.lines()).find(|(a, b)| a != b);
        assert!(got == wanted, "{name} differs: {differing:?}");
        assert!(other.report.counted.contains_key("clocks that differ"));
    }
}

/// Who calls whom, and how often, in an operation; synchronous or not. A call is a node of one task whose next in the
/// thread is of another task and is told a service.
fn calls(names: &TraceNames, operation: &Operation, rename: bool) -> BTreeSet<(String, String, usize)> {
    // With client spans alone, the service of a leaf is only known from the method.
    let short = |name: &str| {
        let name = if rename { name.split('.').next().unwrap_or(name) } else { name };
        name.to_owned()
    };
    let mut calls = Vec::new();
    for pair in operation.events.windows(2) {
        let (from, to) = (&pair[0], &pair[1]);
        let accepts = to.service.is_some() && to.kind == Kind::Activity;
        if from.task != to.task && from.thread == to.thread && accepts {
            calls.push((short(names.task_name(from.task)), short(names.task_name(to.task))));
        }
    }
    calls
        .iter()
        .map(|call| (call.0.clone(), call.1.clone(), calls.iter().filter(|other| *other == call).count()))
        .collect()
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn half_of_the_spans_give_the_same_call_graph() {
    let base = hotel("base.otlp.json");
    for name in ["mut-server-only", "mut-client-only", "mut-no-kinds", "mut-ms-resolution"] {
        let other = hotel(&format!("{name}.otlp.json"));
        assert_eq!(other.operations.len(), base.operations.len(), "{name}");
        for (a, b) in base.operations.iter().zip(&other.operations) {
            assert_eq!(a.run, b.run);
            assert_eq!(calls(&base.names, a, true), calls(&other.names, b, true), "{name} {}", a.run);
        }
    }
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn lost_spans_are_put_back_or_told() {
    let base = hotel("base.otlp.json");
    let other = hotel("mut-drop5pct.otlp.json");
    let graph = |of: &Outcome, operation| calls(&of.names, operation, false);
    let whole = base
        .operations
        .iter()
        .filter(|a| other.operations.iter().any(|b| a.run == b.run && graph(&base, a) == graph(&other, b)))
        .count();
    assert!(whole >= 180, "of 200 operations, {whole} have their call graph; {:?}", other.report.counted);
    let lost: u64 = other
        .report
        .counted
        .iter()
        .filter(|(reason, _)| reason.starts_with("lost parent"))
        .map(|(_, times)| times)
        .sum();
    assert!(lost > 0);
}
