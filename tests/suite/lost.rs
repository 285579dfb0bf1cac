//! Spans that were lost: what is left of an operation tells of work, and is no load. A trace of which a few spans are lost gives nearly
//! the model of the whole trace.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use dyelog::lqn::submodel::SubModel;
use dyelog::lqn::{Body, Entry};
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

/// A service that records nothing for a while leaves pieces of its operations. Were they loads, these would be there twice.
#[test]
fn a_gap_in_the_spans_of_the_first_service_is_no_load() {
    for gap in [80..160, 0..80, 170..250] {
        assert_eq!(scenarios(250, |number| gap.contains(&number)), (vec!["front go".to_owned()], true));
        let text: String = (0..250).map(|number| two_services(number, !gap.contains(&number))).collect();
        let (rate, _) =
            said(&reduced("two.jsonl", text.as_bytes())).scenarios.first().map(|own| (own.1, own.2)).expect("one");
        assert!((rate / 50.0 - 1.0).abs() < CLOSE, "{rate} a second without the spans of {gap:?}");
    }
}

/// A span: service, identifier, parent, kind, start and end in microseconds, name.
pub type Row<'r> = (&'r str, u64, u64, u64, u64, u64, &'r str);

/// Spans of a trace that begins at a number of microseconds; `attributes` are those of calls.
pub fn spans_at(trace: u64, start: u64, rows: &[Row], attributes: &str) -> String {
    rows.iter().fold(String::new(), |text, (service, id, parent, kind, begin, end, name)| {
        let parent = if *parent == 0 { String::new() } else { format!("{parent:016x}") };
        let (begin, end) = (start + begin, start + end);
        let attributes = if *kind == 3 { attributes } else { "" };
        text + &format!(
            "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":[{{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"{service}\"}}}}]}},\
             \"scopeSpans\":[{{\"spans\":[{{\"traceId\":\"{trace:032x}\",\"spanId\":\"{id:016x}\",\"parentSpanId\":\"{parent}\",\"name\":\"{name}\",\
             \"kind\":{kind},\"startTimeUnixNano\":\"1700000{begin:09}001\",\"endTimeUnixNano\":\"1700000{end:09}001\",\"attributes\":[{attributes}]}}]}}]}}]}}\n"
        )
    })
}

pub fn demand(sub: &SubModel, task: &str) -> (f64, f64) {
    let (model, _, _) = complete(sub, &Configuration::default()).expect("there is something to model");
    let entries = model.entries.iter().filter(|entry| model.tasks[entry.task.index()].name.as_ref() == task);
    let phases = entries.flat_map(|entry| match &entry.body {
        Body::Phases(phases) => phases.clone(),
        Body::Activities(_) => Vec::new(),
    });
    phases.fold((0.0, 0.0), |(demand, calls), phase| {
        (demand + phase.demand + phase.think_time, calls + phase.calls.iter().map(|call| call.mean).sum::<f64>())
    })
}

/// Services record no spans of their calls, so that a lost span leaves several pieces that one unknown service called. Of one span of seven and more, too, none is a load.
#[test]
fn spans_put_in_the_place_of_lost_ones_are_no_load() {
    for of_thousand in [50, 100, 150] {
        let mut random = Random::new(of_thousand);
        let text: String = (0..1500_u64).fold(String::new(), |text, number| {
            let late = |step: u64| number * 31 % 7 * 20 + step;
            let rows: [Row; 11] = [
                ("front", 1, 0, 2, 0, 9000, "go"),
                ("front", 2, 1, 2, 300, 8800, "go"),
                ("user", 3, 2, 2, 700, 2500, "put user"),
                ("text", 4, 2, 2, 720, 6500, "put text"),
                ("film", 5, 2, 2, 740, 3400, "put film"),
                ("rating", 6, 5, 2, 1500, 2900, "put rating"),
                ("compose", 7, 3, 2, late(1400), late(1800), "user"),
                ("compose", 8, 4, 2, late(2400), late(5800), "text"),
                ("compose", 9, 6, 2, late(1900), late(2300), "rating"),
                ("store", 10, 8, 2, late(3000), late(4000), "add"),
                ("reviews", 11, 8, 2, late(3100), late(5300), "add"),
            ];
            let left: Vec<Row> = rows.into_iter().filter(|_| random.below(1000) >= of_thousand as usize).collect();
            text + &spans_at(number + 1, number * 13_000, &left, "")
        });
        let (model, _, origins) = complete(&reduced("t.jsonl", text.as_bytes()), &Configuration::default())
            .expect("there is something to model");
        let names: Vec<&str> = origins.scenarios.iter().map(|own| &*own.name).collect();
        assert_eq!(names, ["front go"], "{of_thousand}");
        assert!(model.tasks.iter().all(|task| !task.name.starts_with("peer of")));
    }
}

/// Of fifty calls one fails after a second, and its server recorded nothing: it worked on that for no longer than on others.
#[test]
fn a_call_that_was_given_up_is_no_work() {
    let peer = "{\"key\":\"peer.service\",\"value\":{\"stringValue\":\"api\"}}";
    let text: String = (0..600).fold(String::new(), |text, number| {
        let is_lost = number % 50 == 7;
        let asked = if is_lost { 1_000_000 } else { 6000 };
        let mut rows: Vec<Row> =
            vec![("front", 1, 0, 2, 0, asked + 2000, "go"), ("front", 2, 1, 3, 1000, asked + 1000, "get")];
        if is_lost {
            return text
                + &spans_at(number + 1, number * 1_500_000, &rows, peer)
                    .replace("\"kind\":3,", "\"kind\":3,\"status\":{\"code\":2},");
        }
        rows.push(("api", 3, 2, 2, 1500, 6500, "get"));
        text + &spans_at(number + 1, number * 1_500_000, &rows, peer)
    });
    let (work, _) = demand(&reduced("t.jsonl", text.as_bytes()), "api");
    assert!((work / 0.005 - 1.0).abs() < 0.05, "{work}");
}

/// Between two services that record spans, one that records none is known by the call to it.
#[test]
fn a_service_without_spans_calls_what_lies_within_the_call_to_it() {
    let text: String = (0..200).fold(String::new(), |text, number| {
        let rows: [Row; 7] = [
            ("front", 1, 0, 2, 0, 9000, "go"),
            ("front", 2, 1, 3, 1000, 8000, "middle"),
            // Its own spans, 3 to 5, were never recorded.
            ("back", 6, 4, 2, 2000, 4000, "read"),
            ("back", 7, 5, 2, 5000, 6000, "write"),
            ("front", 8, 1, 3, 8200, 8800, "other"),
            ("other", 9, 8, 2, 8300, 8700, "other"),
            ("front", 10, 1, 1, 100, 200, "local"),
        ];
        let peer = "{\"key\":\"peer.service\",\"value\":{\"stringValue\":\"middle\"}}";
        text + &spans_at(number + 1, 20_000 * number, &rows[..4], peer)
            + &spans_at(number + 1, 20_000 * number, &rows[4..], "")
    });
    let sub = reduced("silent.jsonl", text.as_bytes());
    let (demand, calls) = demand(&sub, "middle");
    // Calls to `other` are on their way for 0.2 ms.
    assert!(
        (demand - 0.0038).abs() < 0.0001,
        "it works for 4 ms of the 7 ms that the call takes, without the way to it: {demand}"
    );
    assert!((calls - 2.0).abs() < 1e-6, "{calls}");
}

/// A few messages lose their senders: their work is part of others' operations, or of that of the message where only one place fits.
#[test]
fn work_on_messages_whose_senders_were_lost_is_no_scenario() {
    for (begin, fits, polled) in [(1500, true, false), (5000, false, false), (1500, true, true), (5000, false, true)] {
        let text: String = (0..200).fold(String::new(), |text, number| {
            let start = 20_000 * number;
            let rows: [Row; 2] = [("front", 1, 0, 2, 0, 4000, "go"), ("front", 2, 1, 4, 1000, 1100, "send")];
            let sent = if number % 20 == 3 { &rows[..1] } else { &rows[..] };
            // A span that waits for messages calls nothing.
            let poll: Row = ("mail", 4, 0, 3, begin - 1000, begin, "poll");
            let above = if polled { 4 } else { 0 };
            let rows: [Row; 2] = [poll, ("mail", 3, above, 5, begin, begin + 1500, "work")];
            let rows = if polled { &rows[..] } else { &rows[1..] };
            let receives = "{\"key\":\"messaging.operation.type\",\"value\":{\"stringValue\":\"receive\"}}";
            let work = spans_at(1000 + number, start, rows, receives).replace(
                "\"attributes\":[]}]",
                &format!(
                    "\"links\":[{{\"traceId\":\"{:032x}\",\"spanId\":\"{:016x}\"}}],\"attributes\":[]}}]",
                    number + 1,
                    2
                ),
            );
            text + &spans_at(number + 1, start, sent, "") + &work
        });
        let sub = reduced("mail.jsonl", text.as_bytes());
        let (model, findings, origins) =
            complete(&sub, &Configuration::default()).expect("there is something to model");
        let names: Vec<&str> = origins.scenarios.iter().map(|own| &*own.name).collect();
        assert_eq!(names, ["front go"], "at {begin}");
        assert_eq!(has(&findings, "M039", "below a span that was lost"), !fits, "at {begin}: {findings:?}");
        let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
        let task = model.tasks.iter().position(|task| task.name.as_ref() == "mail").expect("it is there");
        let (mails, operations) = (results.tasks[task].throughput, 50.0);
        assert!((mails / operations - 1.0_f64).abs() < CLOSE, "at {begin}: {mails} mails a second");
    }
}

/// A call to a service without spans leaves nothing where its client span is lost. Its time is no work.
#[test]
fn calls_of_which_nothing_is_left_are_put_back() {
    let of = |is_lost: fn(u64) -> bool| {
        let text: String = (0..300).fold(String::new(), |text, number| {
            let (start, own) = (20_000 * number, 100 * (number % 7));
            let rows: [Row; 4] = [
                ("front", 1, 0, 2, 0, 9000 + own, "go"),
                ("front", 2, 1, 3, 500, 8500 + own, "next"),
                ("back", 3, 2, 2, 600, 8400 + own, "next"),
                ("back", 4, 3, 3, 1000, 8000 + 10 * (number % 11), "bank"),
            ];
            let lost = if is_lost(number) { 3 } else { 4 };
            // First spans are lost, too, which shows that some are.
            let from = usize::from(is_lost(number + 10));
            text + &spans_at(number + 1, start, &rows[from..lost], "")
        });
        demand(&reduced("bank.jsonl", text.as_bytes()), "back")
    };
    let (whole, _) = of(|_| false);
    let (left, calls) = of(|number| number % 20 == 3);
    assert!((left / whole - 1.0).abs() < CLOSE, "{left} for {whole} s");
    assert!((calls - 1.0).abs() < 0.01, "{calls} calls");
    // A visit that leaves it out and takes no longer has made no such call.
    let text: String = (0..300).fold(String::new(), |text, number| {
        let end = if number % 30 == 3 { 1800 } else { 9000 };
        let rows: [Row; 2] = [("front", 1, 0, 2, 0, end, "go"), ("front", 2, 1, 3, 500, 8000, "bank")];
        let made = if number % 30 == 3 { &rows[..1] } else { &rows[..] };
        let orphan: [Row; 1] = [("other", 9, 8, 2, 1, 2, "x")];
        let lost = if number == 9 { spans_at(number + 1, 20_000 * number, &orphan, "") } else { String::new() };
        text + &spans_at(number + 1, 20_000 * number, made, "") + &lost
    });
    let (_, calls) = demand(&reduced("left_out.jsonl", text.as_bytes()), "front");
    assert!((calls - 29.0 / 30.0).abs() < 0.01, "{calls} calls");
}

#[test]
fn fragments_count_for_demand() {
    let text: String = (0..200).map(|number| two_services(number, number % 20 != 3)).collect();
    let sub = reduced("two.jsonl", text.as_bytes());
    let back = sub.entries().iter().find(|entry| sub.names.text(entry.task) == "back").expect("it is there");
    assert_eq!(back.invocations, 200);
}
