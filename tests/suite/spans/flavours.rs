//! The spellings of both formats, and inputs that are wrong.

use serde_json::{Value, json};

use super::dsl::{jaeger, otlp, rows};
use super::dump::{Outcome, Show, dump, read};

const TABLE: &str = "
    a - web server GET   0 100
    b a web client call 10  60
    c b db  server find 15  55
";

fn text(outcome: &Outcome) -> String {
    dump(outcome, Show::Times)
}

fn wanted() -> String {
    text(&read("otlp", otlp(TABLE).as_bytes()).expect("it can be read"))
}

fn check(file: &str, input: &str) {
    let outcome = read(file, input.as_bytes()).unwrap_or_else(|error| panic!("{error}: {input}"));
    assert_eq!(text(&outcome), wanted(), "{input}");
}

#[test]
fn flavours_of_otlp() {
    let resources: Vec<Value> = rows(TABLE).iter().map(super::dsl::Row::otlp).collect();
    let lines: Vec<String> = resources.iter().map(|one| json!({"resourceSpans": [one]}).to_string()).collect();
    check("otlp", &lines.join("\n"));
    check("otlp", &format!("\u{feff}{}", json!({"batches": resources})));
    check("otlp", &json!({"trace": {"resourceSpans": resources}}).to_string());
    check("otlp", &json!([{"resourceSpans": resources}]).to_string());
    check("otlp", &serde_json::to_string_pretty(&json!({"resourceSpans": resources})).expect("it is JSON"));
    check("otlp", &otlp(TABLE).replace("scopeSpans", "instrumentationLibrarySpans"));
    let renamed = [
        ("resourceSpans", "resource_spans"),
        ("scopeSpans", "scope_spans"),
        ("traceId", "trace_id"),
        ("spanId", "span_id"),
        ("parentSpanId", "parent_span_id"),
        ("startTimeUnixNano", "start_time_unix_nano"),
        ("endTimeUnixNano", "end_time_unix_nano"),
        ("stringValue", "string_value"),
    ];
    check("otlp", &renamed.iter().fold(otlp(TABLE), |text, (from, to)| text.replace(from, to)));
    let named = otlp(TABLE)
        .replace("\"kind\":2", "\"kind\":\"SPAN_KIND_SERVER\"")
        .replace("\"kind\":3", "\"kind\":\"SPAN_KIND_CLIENT\"");
    assert!(named.contains("SPAN_KIND_SERVER"));
    check("otlp", &named);
    let base64 = otlp(TABLE)
        .replace("\"traceId\":\"1\"", "\"traceId\":\"AAAAAAAAAAAAAAAAAAAAAQ==\"")
        .replace("panId\":\"a\"", "panId\":\"AAAAAAAAAAo=\"")
        .replace("panId\":\"b\"", "panId\":\"AAAAAAAAAAs=\"");
    check("otlp", &base64);
    let upper =
        otlp(TABLE).replace("panId\":\"a\"", "panId\":\"000000000000000A\"").replace("panId\":\"b\"", "panId\":\"B\"");
    check("otlp", &upper);
    // Numbers as numbers, the resource behind its spans, the value before the key.
    let mut turned = resources.clone();
    for resource in &mut turned {
        let object = resource.as_object_mut().expect("an object");
        let of = object.shift_remove("resource").expect("there is one");
        let service = of["attributes"][0]["value"].clone();
        object.insert("resource".to_owned(), json!({"attributes": [{"value": service, "key": "service.name"}]}));
        let span = &mut resource["scopeSpans"][0]["spans"][0];
        for key in ["startTimeUnixNano", "endTimeUnixNano"] {
            span[key] = json!(span[key].as_str().expect("a string").parse::<u64>().expect("a number"));
        }
    }
    check("otlp", &json!({"resourceSpans": turned}).to_string());
}

#[test]
fn flavours_of_jaeger() {
    let spans: Vec<Value> = rows(TABLE).iter().map(super::dsl::Row::jaeger).collect();
    check("jaeger", &jaeger(TABLE));
    check("jaeger", &json!({"traceID": "1", "spans": spans}).to_string());
    check("jaeger", &json!({"data": {"traceID": "1", "spans": spans, "services": []}}).to_string());
    check("jaeger", &json!([{"spans": spans}]).to_string());
    check("jaeger", &json!(spans).to_string());
    // A table of processes, before or behind the spans.
    let mut tabled = spans.clone();
    let mut processes = serde_json::Map::new();
    for (at, span) in tabled.iter_mut().enumerate() {
        let process = span.as_object_mut().expect("an object").shift_remove("process").expect("there is one");
        span["processID"] = json!(format!("p{at}"));
        processes.insert(format!("p{at}"), process);
    }
    check("jaeger", &json!({"data": [{"processes": processes, "spans": tabled}]}).to_string());
    check("jaeger", &json!({"data": [{"spans": tabled, "processes": processes}]}).to_string());
    // The export of a store: a span a line, tags as a map, lines of the bulk protocol between.
    let mut lines = String::new();
    for span in &spans {
        let mut span = span.clone();
        let kind = span["tags"][0]["value"].clone();
        let object = span.as_object_mut().expect("an object");
        object.shift_remove("tags");
        object.insert("tag".to_owned(), json!({"span@kind": kind, "internal@span@format": "proto"}));
        lines += &format!("{}\n{span}\n", json!({"index": {}}));
    }
    check("jaeger", &lines);
    let hits: Vec<Value> = spans.iter().map(|span| json!({"_index": "x", "_source": span})).collect();
    check("jaeger", &json!({"hits": {"total": 3, "hits": hits}}).to_string());
    // The span referred to stands within the reference; the obsolete name of the parent.
    let mut nested = spans.clone();
    nested[2]["references"][0]["span"] = nested[1].clone();
    check("jaeger", &json!({"data": [{"spans": nested}]}).to_string());
    for span in &mut nested {
        let parent = span["references"][0]["spanID"].clone();
        span["references"] = json!([]);
        if parent.is_string() {
            span["parentSpanID"] = parent;
        }
    }
    check("jaeger", &json!({"data": [{"spans": nested}]}).to_string());
}

#[test]
fn identifiers_that_are_no_numbers() {
    let named =
        jaeger(TABLE).replace("panID\":\"a\"", "panID\":\"span-a\"").replace("panID\":\"b\"", "panID\":\"span-b\"");
    let outcome = read("jaeger", named.as_bytes()).expect("it can be read");
    let dyelog::trace::Origins::Items(items) = &outcome.operations[0].origins else { panic!("items") };
    assert_eq!(items.iter().map(|item| &*item.id).collect::<Vec<&str>>(), ["span-a", "span-b", "000000000000000c"]);
}

#[test]
fn a_damaged_line_is_counted() {
    let lines: Vec<String> = rows(TABLE).iter().map(|row| json!({"resourceSpans": [row.otlp()]}).to_string()).collect();
    let outcome = read("otlp", format!("{}\n{{\"resourceSpans\": [\n", lines.join("\n")).as_bytes())
        .expect("the others are read");
    assert_eq!(text(&outcome), wanted());
    assert_eq!(outcome.report.counted["line that is not JSON"], 1);
}

#[test]
fn what_is_no_trace_is_refused() {
    let refusal = |file: &str, input: &str| read(file, input.as_bytes()).map(drop).expect_err("refused").to_string();
    insta::assert_snapshot!(refusal("otlp", ""), @"there is nothing in this file [T003]");
    insta::assert_snapshot!(refusal("otlp", " \n "), @"there is nothing in this file [T003]");
    insta::assert_snapshot!(refusal("otlp", "{}"), @"there is no OTLP span in this file [T102]");
    insta::assert_snapshot!(refusal("jaeger", "7"), @"there is no Jaeger span in this file [T102]; `document` is a number, not an object: it was left out [T103]");
    insta::assert_snapshot!(refusal("otlp", "{\"resourceSpans\": 1}"), @"there is no OTLP span in this file [T102]; `resourceSpans` is a number, not an array: it was left out [T103]");
    insta::assert_snapshot!(refusal("otlp", "\u{1}\u{2}rubbish"), @"this is not JSON: expected value [T101]");
    insta::assert_snapshot!(refusal("otlp", "{\"resourceSpans\": [{"), @"the JSON ends too early [T101]");
}

#[test]
fn cut_off_anywhere() {
    for (file, input) in [("otlp", otlp(TABLE)), ("jaeger", jaeger(TABLE))] {
        for end in 0..input.len() {
            match read(file, &input.as_bytes()[..end]) {
                Ok(outcome) => {
                    assert_eq!(
                        outcome.report.counted.get("document that ends too early"),
                        Some(&1),
                        "{file} cut at {end}"
                    );
                }
                Err(found) => assert!(!found.0.is_empty(), "{file} cut at {end}"),
            }
        }
    }
}

#[test]
fn values_of_wrong_types() {
    for (file, input) in [("otlp", otlp(TABLE)), ("jaeger", jaeger(TABLE))] {
        let input: Value = serde_json::from_str(&input).expect("it is JSON");
        let mut pointers = Vec::new();
        walk(&input, String::new(), &mut pointers);
        for pointer in &pointers {
            for wrong in [
                json!(null),
                json!(true),
                json!(-1.5),
                json!(u64::MAX),
                json!("?"),
                json!([[]]),
                json!({"a": {}}),
                json!([{}]),
            ] {
                let mut input = input.clone();
                *input.pointer_mut(pointer).expect("it is there") = wrong;
                // Read or refused; `read` checks whatever comes out.
                drop(read(file, input.to_string().as_bytes()));
            }
        }
    }
}

fn walk(value: &Value, pointer: String, pointers: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                walk(item, format!("{pointer}/{at}"), pointers);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                walk(member, format!("{pointer}/{key}"), pointers);
            }
        }
        _ => {}
    }
    pointers.push(pointer);
}

#[test]
fn deep_json() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    for (file, around) in [
        ("otlp", "{\"resourceSpans\":?}"),
        ("jaeger", "{\"data\":?}"),
        ("jaeger", "{\"spans\":[{\"spanID\":\"a\",\"traceID\":\"1\",\"startTime\":1,\"references\":[{\"span\":?}]}]}"),
        ("otlp", "?"),
        ("jaeger", "?"),
    ] {
        drop(read(file, around.replace('?', &deep).as_bytes()));
    }
    let envelopes = "{\"data\":".repeat(50_000) + "1" + &"}".repeat(50_000);
    assert!(read("jaeger", envelopes.as_bytes()).is_err());
}

#[test]
fn what_the_backend_moved_is_moved_back() {
    let plain = jaeger(TABLE);
    let mut moved: Value = serde_json::from_str(&plain).expect("it is JSON");
    let spans = moved["data"][0]["spans"].as_array_mut().expect("there are spans");
    let span = spans.iter_mut().find(|span| span["spanID"] == "c").expect("it is there");
    span["startTime"] = json!(span["startTime"].as_i64().expect("it has a start") + 2_345);
    span["warnings"] =
        json!(["invalid tag", null, 7, "This span's timestamps were adjusted by 2.345ms", "adjusted by 1h of nothing"]);
    let outcome = read("jaeger", moved.to_string().as_bytes()).expect("it can be read");
    assert_eq!(text(&outcome), text(&read("jaeger", plain.as_bytes()).expect("it can be read")));
    assert_eq!(outcome.report.counted["clock correction of the backend undone"], 1);
}
