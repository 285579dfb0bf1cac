//! `SkyWalking` segments and answers.

use serde_json::{Value, json};

use super::show::{recorded, recorded_as, slowly};
use super::suppliers::{bytes_field, number_field};

#[test]
fn segments_and_answers() {
    let segments = r#"[
     {"traceId":"t.1","traceSegmentId":"s1","service":"web","serviceInstance":"web-1","spans":[
       {"spanId":0,"parentSpanId":-1,"startTime":1700000000000,"endTime":"1700000000100","operationName":"{GET}/","spanType":"Entry","spanLayer":"Http","componentId":1,"isError":false,"refs":[],
        "tags":[{"key":"http.method","value":"GET"}]},
       {"spanId":1,"parentSpanId":0,"startTime":1700000000010,"endTime":1700000000060,"operationName":"/find/17","spanType":1,"spanLayer":3,"peer":"db:8080","isError":true},
       {"spanId":2,"parentSpanId":0,"startTime":1700000000070,"endTime":1700000000071,"operationName":"mail","spanType":"Exit","spanLayer":"MQ","peer":"kafka"}]},
     {"traceId":"t.1","traceSegmentId":"s2","service":"db","serviceInstance":"db-1","isSizeLimited":true,"spans":[
       {"spanId":0,"parentSpanId":-1,"startTime":1700000000015,"endTime":1700000000055,"operationName":"{GET}/find","spanType":"0","spanLayer":"Http",
        "refs":[{"refType":"CrossProcess","traceId":"t.1","parentTraceSegmentId":"s1","parentSpanId":1,"parentService":"web"}]},
       {"spanId":1,"parentSpanId":0,"startTime":1700000000020,"endTime":1700000000050,"operationName":"scan","spanType":2}]},
     {"traceId":"t.2","traceSegmentId":"s3","service":"mail","spans":[
       {"spanId":0,"parentSpanId":-1,"startTime":1700000000090,"endTime":1700000000095,"operationName":"send","spanType":"Entry","spanLayer":4,
        "refs":[{"refType":0,"traceId":"t.1","parentTraceSegmentId":"s1","parentSpanId":2}]},
       "no span",{"spanId":"x"}]},
     7]"#;
    insta::assert_snapshot!("skywalking_segments", recorded(segments.as_bytes()));
    let answer = r#"{"data":{"trace":{"spans":[
       {"traceId":"t.1","segmentId":"s1","spanId":0,"parentSpanId":-1,"refs":[],"serviceCode":"web","serviceInstanceName":"web-1","startTime":1700000000000,"endTime":1700000000100,"endpointName":"{GET}/","type":"Entry","layer":"Http"},
       {"traceId":"t.1","segmentId":"s2","spanId":0,"parentSpanId":-1,"refs":[{"traceId":"t.1","parentSegmentId":"s1","parentSpanId":0,"type":"CROSS_PROCESS"}],"serviceCode":"db","startTime":1700000000015,"endTime":1700000000055,"endpointName":"find","type":"Entry","isError":true}]}}}"#;
    insta::assert_snapshot!("skywalking_answer", recorded(answer.as_bytes()));
}

/// A segment in protobuf; what is 0 is left out, as the libraries of all languages do.
fn packed(segment: &Value) -> Vec<u8> {
    let text = |of: &Value, number: u8, key: &str| match of[key].as_str() {
        Some(text) => bytes_field(number, text.as_bytes()),
        None => Vec::new(),
    };
    let number = |of: &Value, number: u8, key: &str| match &of[key] {
        Value::Bool(true) => number_field(number, 1),
        value => value
            .as_i64()
            .filter(|value| *value != 0)
            .map_or(Vec::new(), |value| number_field(number, value.cast_unsigned())),
    };
    let list = |of: &Value, key: &str| of[key].as_array().cloned().unwrap_or_default();
    let mut out = [text(segment, 1, "traceId"), text(segment, 2, "traceSegmentId")].concat();
    for span in list(segment, "spans") {
        let mut own: Vec<u8> = (1..)
            .zip(["spanId", "parentSpanId", "startTime", "endTime"])
            .flat_map(|(place, key)| number(&span, place, key))
            .collect();
        for reference in list(&span, "refs") {
            let parts = [
                number(&reference, 1, "refType"),
                text(&reference, 2, "traceId"),
                text(&reference, 3, "parentTraceSegmentId"),
                number(&reference, 4, "parentSpanId"),
            ];
            own.extend(bytes_field(5, &parts.concat()));
        }
        own.extend([text(&span, 6, "operationName"), text(&span, 7, "peer")].concat());
        own.extend(
            [number(&span, 8, "spanType"), number(&span, 9, "spanLayer"), number(&span, 11, "isError")].concat(),
        );
        for tag in list(&span, "tags") {
            own.extend(bytes_field(12, &[text(&tag, 1, "key"), text(&tag, 2, "value")].concat()));
        }
        out.extend(bytes_field(3, &own));
    }
    out.extend([text(segment, 4, "service"), text(segment, 5, "serviceInstance")].concat());
    out.extend(number(segment, 6, "isSizeLimited"));
    out
}

/// A message after its length.
fn delimited(message: &[u8]) -> Vec<u8> {
    bytes_field(0, message)[1..].to_vec()
}

/// Two segments, as they are in JSON.
fn two() -> [Value; 2] {
    let span = |id: u64, parent: i64, start: u64, kind: u64, layer: u64| {
        json!({"spanId": id, "parentSpanId": parent, "startTime": 1_700_000_000_000 + start, "endTime": 1_700_000_000_100_u64,
            "operationName": format!("step {id}"), "spanType": kind, "spanLayer": layer})
    };
    let with = |mut span: Value, key: &str, value: Value| {
        span[key] = value;
        span
    };
    let refs = json!([
        {"refType": 0, "traceId": "t.1", "parentTraceSegmentId": "s1", "parentSpanId": 0},
        {"refType": 1, "traceId": "t.9", "parentTraceSegmentId": "s9", "parentSpanId": 4}]);
    let tags = json!([{"key": "http.status_code", "value": "503"}]);
    [
        json!({"traceId": "t.1", "traceSegmentId": "s1", "service": "web", "serviceInstance": "web-1", "spans": [
            with(span(0, -1, 0, 0, 3), "tags", tags),
            with(with(span(1, 0, 5, 1, 0), "peer", json!("db:1")), "isError", json!(true)),
            span(2, 1, 7, 2, 0)]}),
        json!({"traceId": "t.1", "traceSegmentId": "s2", "service": "db", "isSizeLimited": true,
            "spans": [with(span(0, -1, 6, 0, 4), "refs", refs)]}),
    ]
}

/// A collection of them in protobuf.
pub fn collection() -> Vec<u8> {
    two().iter().flat_map(|segment| bytes_field(1, &packed(segment))).collect()
}

#[test]
fn segments_in_protobuf() {
    let segments = two();
    let wanted = recorded(json!(segments).to_string().as_bytes());
    assert!(wanted.contains("consumer db `step 0`") && wanted.contains("segment that lacks spans"), "{wanted}");
    let [one, other] = segments.each_ref().map(packed);
    let collection = collection();
    let each = [delimited(&bytes_field(1, &one)), delimited(&bytes_field(1, &other))].concat();
    assert_eq!(recorded(&collection), wanted, "a collection");
    assert_eq!(recorded(&[delimited(&one), delimited(&other)].concat()), wanted, "each after its length");
    assert_eq!(recorded(&delimited(&collection)), wanted, "a collection after its length");
    assert_eq!(recorded(&each), wanted, "collections after their lengths");
    assert_eq!(recorded(&one), recorded(json!([segments[0]]).to_string().as_bytes()), "one segment");
    // Fields of segments one after another, without anything between them.
    assert_eq!(recorded(&[one.clone(), other.clone()].concat()), wanted, "segments that follow each other");
    let cut = recorded(&one[..one.len() - 20]);
    assert!(cut.contains("message that cannot be read further") && cut.contains("`step 0`"), "{cut}");
    // A pipe gives little at once.
    for input in [&one, &collection, &delimited(&one), &delimited(&collection)] {
        assert_eq!(slowly(dyelog_trace::Format::SkyWalking, input), recorded(input));
    }
    // Where the services come first nothing tells how segments lie, and it is no JSON, either.
    let refused = recorded_as(dyelog_trace::Format::SkyWalking, &packed(&json!({"service": "web"})));
    assert!(refused.contains("T120") && !refused.contains("JSON:"), "{refused}");
    // What comes before the end is used.
    for cut in [&collection[..collection.len() - 5], &each[..each.len() - 5]] {
        let found = recorded_as(dyelog_trace::Format::SkyWalking, cut);
        assert!(found.contains("message that cannot be read further") && found.contains("web `step 2`"), "{found}");
    }
}
