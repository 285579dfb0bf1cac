//! Call graphs of spans: programs whose truth is known, CPU profiles, and inputs that do not go together.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::call_graph::dyelog;

/// How work is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// By a CLIENT span around a SERVER span.
    Remote,
    /// By a PRODUCER span, and a CONSUMER span later on.
    Message,
    /// In an INTERNAL span.
    Local,
}

#[derive(Clone, Debug)]
struct Work {
    how: How,
    function: u8,
    /// Nanoseconds of its own on the wall and on the processor.
    wall: u32,
    cpu: u32,
    calls: Vec<Work>,
}

fn work() -> impl Strategy<Value = Work> {
    let how = prop_oneof![3 => Just(How::Remote), 1 => Just(How::Message), 2 => Just(How::Local)];
    let own = (how, 0u8..3, 1_000u32..50_000, 0u32..40_000);
    let made = |((how, function, wall, cpu), calls)| Work { how, function, wall, cpu, calls };
    let leaf = own.clone().prop_map(move |own| made((own, Vec::new())));
    leaf.prop_recursive(4, 24, 4, move |inner| (own.clone(), prop::collection::vec(inner, 0..4)).prop_map(made))
}

/// What each function spent, its calls, and the time that was nobody's.
#[derive(Debug, Default, PartialEq, Eq)]
struct Truth {
    functions: BTreeMap<(String, String), (u64, u64)>,
    unattributed: u64,
}

/// Writes the spans of programs, with the processor time of each as an attribute, or without.
struct Tracer {
    spans: Vec<(String, Value)>,
    next: u64,
    with_cpu: bool,
    truth: Truth,
}

/// How long a request, a reply and the sending of a message take.
const WAY: u64 = 3_000;

impl Tracer {
    fn id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn span(&mut self, place: (u64, u64, u64), name: &str, service: &str, kind: u8, time: (u64, u64), cpu: u64) {
        let (trace, id, parent) = place;
        let mut span = json!({
            "traceId": format!("{trace:032x}"), "spanId": format!("{id:016x}"), "name": name, "kind": kind,
            "startTimeUnixNano": time.0.to_string(), "endTimeUnixNano": time.1.to_string(),
        });
        if parent != 0 {
            span["parentSpanId"] = format!("{parent:016x}").into();
        }
        if self.with_cpu {
            span["attributes"] = json!([{"key": "thread.cpu_time_ns", "value": {"intValue": cpu.to_string()}}]);
        }
        self.spans.push((service.to_owned(), span));
    }

    /// Runs work in a service from some time on. Gives the time of its end, and the processor time of its span.
    fn run(&mut self, work: &Work, depth: u8, kind: u8, (trace, parent): (u64, u64), start: u64) -> (u64, u64) {
        let (service, name, id) = (format!("s{depth}"), format!("f{}", work.function), self.id());
        let parts = work.calls.len() as u64 + 1;
        let (mut now, mut cpu) = (start + u64::from(work.wall) % parts, u64::from(work.cpu));
        let mut own_cpu = cpu;
        for call in &work.calls {
            now += u64::from(work.wall) / parts;
            let stub = if call.how == How::Local { 0 } else { self.id() };
            // A stub uses a third of the time of a way.
            let stub_cpu = if stub == 0 { 0 } else { WAY / 3 };
            own_cpu += stub_cpu;
            cpu += stub_cpu;
            let begin = now;
            let name = format!("f{}", call.function);
            match call.how {
                How::Local => {
                    let (end, inner) = self.run(call, depth, 1, (trace, id), now);
                    (now, cpu) = (end, cpu + inner);
                }
                How::Remote => {
                    let (end, _) = self.run(call, depth + 1, 2, (trace, stub), now + WAY);
                    now = end + WAY;
                    self.truth.unattributed += if self.with_cpu { 0 } else { 2 * WAY };
                    self.span((trace, stub, id), &name, &service, 3, (begin, now), stub_cpu);
                }
                How::Message => {
                    now += WAY;
                    self.run(call, depth + 1, 5, (trace, stub), now + 5 * WAY);
                    self.truth.unattributed += if self.with_cpu { 0 } else { WAY };
                    self.span((trace, stub, id), &name, &service, 4, (begin, now), stub_cpu);
                }
            }
        }
        now += u64::from(work.wall) / parts;
        self.span((trace, id, parent), &name, &service, kind, (start, now), cpu);
        let known = self.truth.functions.entry((service, name)).or_default();
        *known = (known.0 + 1, known.1 + if self.with_cpu { own_cpu } else { u64::from(work.wall) });
        (now, cpu)
    }
}

/// The spans of operations that each do this work, as OTLP, and what is true of them.
fn traced(operations: &[Work], with_cpu: bool) -> (Vec<(String, Value)>, Truth) {
    let mut tracer = Tracer { spans: Vec::new(), next: 0, with_cpu, truth: Truth::default() };
    for (number, work) in (1..).zip(operations) {
        tracer.run(work, 0, 2, (number, 0), 1_700_000_000_000_000_000 + number * 1_000_000_000);
    }
    (tracer.spans, tracer.truth)
}

fn otlp(spans: &[(String, Value)]) -> String {
    let of = |(service, span): &(String, Value)| {
        let name = json!([{"key": "service.name", "value": {"stringValue": service}}]);
        json!({"resource": {"attributes": name}, "scopeSpans": [{"spans": [span]}]})
    };
    json!({"resourceSpans": spans.iter().map(of).collect::<Vec<_>>()}).to_string()
}

fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = folder.join(name);
    fs::write(&path, content).expect("the folder can be written");
    path.display().to_string()
}

fn profile(arguments: &[&str]) -> Value {
    let (code, out, words) = dyelog(&[&["profile", "--format", "json"], arguments].concat());
    assert_eq!(code, 0, "{words}");
    serde_json::from_str(&out).expect("it is JSON")
}

fn total(list: &Value) -> u64 {
    list.as_array().expect("a list").iter().filter_map(Value::as_u64).sum()
}

fn found(document: &Value) -> Truth {
    let functions = document["nodes"].as_array().expect("nodes").iter().filter(|node| node["kind"] == "function");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let function = |node: &Value| {
        let name = (text(&node["interface"]), text(&node["function"]));
        (name, (node["invocations"].as_u64().expect("a count"), total(&node["self"])))
    };
    Truth { functions: functions.map(function).collect(), unattributed: total(&document["unattributed"]) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn spans_give_the_calls_of_the_program(
        operations in prop::collection::vec(work(), 1..5),
        with_cpu in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let (mut spans, truth) = traced(&operations, with_cpu);
        let folder = tempfile::tempdir().expect("a folder");
        let document = profile(&[&write(folder.path(), "spans.json", otlp(&spans))]);
        prop_assert_eq!(&found(&document), &truth);
        let whole = total(&document["nodes"][0]["inclusive_once"]);
        prop_assert_eq!(whole, truth.functions.values().map(|(_, time)| time).sum::<u64>());
        // The order of spans does not show.
        let half = seed as usize % spans.len();
        spans.rotate_left(half);
        let again = profile(&[&write(folder.path(), "spans.json", otlp(&spans))]);
        prop_assert_eq!(again, document);
    }
}

/// A profile as pprof, each sample with the span that it names.
fn pprof(samples: &[(Option<u64>, u64)]) -> Vec<u8> {
    fn number(mut value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
        out
    }
    let field = |key: u64, value: u64| [number(key << 3), number(value)].concat();
    let message =
        |key: u64, content: &[u8]| [number(key << 3 | 2), number(content.len() as u64), content.to_vec()].concat();
    let mut strings = vec![String::new(), "cpu".to_owned(), "nanoseconds".to_owned(), "span_id".to_owned()];
    let mut out = message(1, &[field(1, 1), field(2, 2)].concat());
    for (span, time) in samples {
        let label = span.map_or_else(Vec::new, |span| {
            strings.push(format!("{span:016x}"));
            message(3, &[field(1, 3), field(2, strings.len() as u64 - 1)].concat())
        });
        out.extend(message(2, &[message(2, &number(*time)), label].concat()));
    }
    out.extend(strings.iter().flat_map(|text| message(6, text.as_bytes())));
    out
}

#[test]
fn samples_of_a_profile_are_the_time_of_their_spans() {
    let leaf = Work { how: How::Remote, function: 1, wall: 9_000, cpu: 0, calls: Vec::new() };
    let work = Work { how: How::Remote, function: 0, wall: 8_000, cpu: 0, calls: vec![leaf] };
    let (spans, _) = traced(&[work], false);
    let folder = tempfile::tempdir().expect("a folder");
    let file = write(folder.path(), "spans.json", otlp(&spans));
    // The spans are 1, the server at the root; 2, its client span; 3, the other server.
    let samples =
        write(folder.path(), "cpu.pprof", pprof(&[(Some(1), 500), (Some(3), 700), (Some(3), 11), (None, 40)]));
    let document = profile(&[&file, "--cpu-profile", &samples]);
    assert_eq!(document["measure"], "cpu");
    let truth = found(&document);
    let times: Vec<u64> = truth.functions.values().map(|(_, time)| *time).collect();
    assert_eq!((times, truth.unattributed), (vec![500, 711], 40));
    let other = write(folder.path(), "other.pprof", pprof(&[(Some(77), 500)]));
    let (code, out, words) = dyelog(&["profile", &file, "--cpu-profile", &other]);
    assert!(code == 0 && words.contains("T163") && out.contains("clock on the wall"), "{words}{out}");
    let (code, _, words) = dyelog(&["profile", &file, "--cpu-profile", &file]);
    assert!(code != 0 && words.contains("T162"), "{words}");
}

#[test]
fn attributes_with_processor_time_are_named_in_the_configuration() {
    let work = Work { how: How::Remote, function: 0, wall: 9_000, cpu: 0, calls: Vec::new() };
    let (mut spans, _) = traced(&[work], false);
    spans[0].1["attributes"] = json!([{"key": "my.busy", "value": {"doubleValue": 2.5}}]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = write(folder.path(), "spans.json", otlp(&spans));
    assert_eq!(profile(&[&file])["measure"], "wall");
    let config = write(folder.path(), "dyelog.toml", "[cpu_attributes]\n\"my.busy\" = \"1 us\"\n");
    let document = profile(&[&file, "--config", &config]);
    assert_eq!((&document["measure"], total(&document["nodes"][1]["self"])), (&json!("cpu"), 2_500));
    let config = write(folder.path(), "dyelog.toml", "[cpu_attributes]\n\"my.busy\" = 0\n");
    let (code, _, words) = dyelog(&["profile", &file, "--config", &config]);
    assert!(code == 2 && words.contains("is no time"), "{words}");
}

#[test]
fn records_and_spans_are_not_mixed() {
    let (code, _, words) = dyelog(&["profile", "traces/shop.otlp.jsonl", crate::call_graph::FIGURE_1]);
    assert!(code == 2 && words.contains("C005"), "{words}");
    let (code, _, words) = dyelog(&["profile", crate::call_graph::FIGURE_1, "--cpu-profile", "README.md"]);
    assert!(code == 2 && words.contains("C005"), "{words}");
}

#[test]
fn an_impact_on_spans_is_carried_into_their_model() {
    let change = "reduction by 50% to function { inventory::* };";
    let (code, out, words) = dyelog(&["impact", "traces/shop.otlp.jsonl", "-e", change, "--format", "json"]);
    assert_eq!(code, 0, "{words}");
    let document: Value = serde_json::from_str(&out).expect("it is JSON");
    let scenario = &document["scenarios"][0];
    let response = |when: &str| scenario[when]["response"].as_f64().expect("a response");
    assert!(response("after") < response("before"), "{scenario}");
}
