//! Spans that were lost: what is left of an operation tells of work, and is no load. A trace of which a few spans are lost gives nearly
//! the model of the whole trace.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use dyelog::lqn::Entry;
use dyelog::lqn::submodel::SubModel;
use dyelog::model::{Configuration, complete};
use dyelog::solve::{LayeredOptions, layered};
use dyelog::study::ScenarioResult;
use serde_json::Value;

use crate::generator::Random;
use crate::law::{operations, reduced, without_queues};
use crate::model::has;
use crate::support::shared;

/// By how much a figure may change, relative to that of the whole trace, whatever part of the spans is lost.
const CLOSE: f64 = 0.05;

/// JSON documents, one after the other, without so many of a thousand of their spans.
fn lossy(bytes: &[u8], of_thousand: usize, seed: u64) -> Vec<u8> {
    fn walk(value: &mut Value, of_thousand: usize, random: &mut Random) {
        match value {
            Value::Array(all) => all.iter_mut().for_each(|own| walk(own, of_thousand, random)),
            Value::Object(fields) => {
                for (key, own) in fields {
                    match own {
                        Value::Array(spans) if key == "spans" => spans.retain(|_| random.below(1000) >= of_thousand),
                        other => walk(other, of_thousand, random),
                    }
                }
            }
            _ => {}
        }
    }
    let mut random = Random::new(seed);
    let mut left = Vec::new();
    for document in serde_json::Deserializer::from_slice(bytes).into_iter::<Value>() {
        let mut document = document.expect("it is JSON");
        walk(&mut document, of_thousand, &mut random);
        left.extend(document.to_string().into_bytes());
        left.push(b'\n');
    }
    left
}

/// What a model says: the tasks with their entries, and by scenario its name, rate and response, and busy servers per operation.
struct Said {
    entries: BTreeSet<String>,
    scenarios: Vec<(String, f64, f64)>,
    busy: f64,
}

fn said(sub: &SubModel) -> Said {
    let (model, origins) = without_queues(sub);
    let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
    let scenarios: Vec<(String, f64, f64)> = ScenarioResult::all(&model, &results, &origins)
        .into_iter()
        .map(|own| (own.origin.name.to_string(), own.throughput, own.response.unwrap_or(0.0)))
        .collect();
    let all: f64 = scenarios.iter().map(|own| own.1).sum();
    let busy = results.processors.iter().map(|own| own.utilization).sum::<f64>() / all;
    let task = |entry: &Entry| &model.tasks[entry.task.index()].name;
    let entries = model.entries.iter().map(|entry| format!("{} {}", task(entry), entry.name)).collect();
    Said { entries, scenarios, busy }
}

/// Holds the model of what is left of a trace to that of the whole.
fn hold(name: &str, bytes: &[u8], of_thousand: usize, seed: u64) {
    let (whole, left) = (said(&reduced(name, bytes)), reduced(name, &lossy(bytes, of_thousand, seed)));
    let part = said(&left);
    let case = format!("{name} without {of_thousand} of 1000 spans, seed {seed}");
    assert_eq!(part.entries, whole.entries, "{case}");
    let names = |said: &Said| said.scenarios.iter().map(|own| own.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&part), names(&whole), "{case}");
    let near = |left: f64, right: f64| (left - right).abs() <= CLOSE * right;
    for ((scenario, rate, response), (_, all, whole)) in part.scenarios.iter().zip(&whole.scenarios) {
        assert!(near(*rate, *all), "{case}: {scenario} {rate} for {all} a second");
        assert!(near(*response, *whole), "{case}: {scenario} {response} for {whole} s");
    }
    assert!(near(part.busy, whole.busy), "{case}: {} for {} s of work an operation", part.busy, whole.busy);
}

#[test]
fn random_programs_without_some_spans_are_nearly_the_same() {
    for seed in 0..8 {
        let text = operations(seed, 400).concat();
        for of_thousand in [10, 50] {
            hold("random.jsonl", text.as_bytes(), of_thousand, seed);
        }
    }
}

#[test]
fn the_shop_without_some_spans_is_nearly_the_same() {
    let bytes = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/shop.otlp.jsonl")).expect("a trace");
    hold("shop.otlp.jsonl", &bytes, 10, 3);
    hold("shop.otlp.jsonl", &bytes, 50, 3);
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn real_traces_without_some_spans_are_nearly_the_same() {
    for name in ["hotel-load25", "hotel-load100", "media-load25"] {
        let file = std::fs::File::open(shared(&format!("traces/jaeger/traceweaver/{name}.json.gz"))).expect("a file");
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).expect("it is compressed");
        for of_thousand in [10, 50] {
            hold(name, &bytes, of_thousand, 7);
        }
    }
}

/// Spans of an operation in which a front calls a back; without the front's first span where `whole` is not so.
fn two_services(number: u64, whole: bool) -> String {
    let start = 20_000 * number;
    let rows = [(1, 0, "front", 2, 0, 4000), (2, 1, "front", 3, 500, 3500), (3, 2, "back", 2, 600, 3400)];
    let spans = rows.into_iter().filter(|row| whole || row.0 == 3);
    spans.fold(String::new(), |text, (id, parent, service, kind, begin, end)| {
        let parent = if parent == 0 { String::new() } else { format!("{parent:016x}") };
        let (begin, end) = (start + begin, start + end);
        text + &format!(
            "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":[{{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"{service}\"}}}}]}},\
             \"scopeSpans\":[{{\"spans\":[{{\"traceId\":\"{:032x}\",\"spanId\":\"{id:016x}\",\"parentSpanId\":\"{parent}\",\"name\":\"go\",\
             \"kind\":{kind},\"startTimeUnixNano\":\"1700000{begin:09}001\",\"endTimeUnixNano\":\"1700000{end:09}001\"}}]}}]}}]}}\n",
            number + 1
        )
    })
}

/// So many operations, of which those are fragments that the function tells.
fn scenarios(count: u64, fragment: impl Fn(u64) -> bool) -> (Vec<String>, bool) {
    let text: String = (0..count).map(|number| two_services(number, !fragment(number))).collect();
    let sub = reduced("two.jsonl", text.as_bytes());
    let (_, findings, origins) = complete(&sub, &Configuration::default()).expect("there is something to model");
    let names = origins.scenarios.iter().map(|own| own.name.to_string()).collect();
    (names, has(&findings, "M039", "below a span that was lost"))
}

#[test]
fn fragments_are_loads_where_clients_were_not_traced() {
    assert_eq!(scenarios(200, |_| false), (vec!["front go".to_owned()], false));
    assert_eq!(scenarios(200, |number| number % 20 == 3), (vec!["front go".to_owned()], true));
    // Half of the calls come from somebody who was not traced, and all of them.
    assert_eq!(scenarios(200, |number| number % 2 == 0), (vec!["back go".to_owned(), "front go".to_owned()], false));
    assert_eq!(scenarios(200, |_| true), (vec!["back go".to_owned()], false));
}

#[test]
fn fragments_count_for_demand() {
    let text: String = (0..200).map(|number| two_services(number, number % 20 != 3)).collect();
    let sub = reduced("two.jsonl", text.as_bytes());
    let back = sub.entries().iter().find(|entry| sub.names.text(entry.task) == "back").expect("it is there");
    assert_eq!(back.invocations, 200);
}
