//! Zipkin, versions 1 and 2.

use proptest::prelude::*;

use super::show::{operations, recorded};

#[test]
fn version_2() {
    let text = r#"[[
     {"traceId":"1","id":"a","name":"get /","kind":"SERVER","timestamp":1700000000000000,"duration":900,"localEndpoint":{"serviceName":"web","ipv4":"10.0.0.1"},
      "annotations":[{"timestamp":1700000000000010,"value":"cache miss"}],"tags":{"http.path":"/"}},
     {"traceId":"1","id":"b","parentId":"a","name":"find","kind":"CLIENT","timestamp":1700000000000100,"duration":500,"localEndpoint":{"serviceName":"web"},
      "remoteEndpoint":{"serviceName":"db","ipv4":"10.0.0.2","port":5432}},
     {"traceId":"1","id":"b","parentId":"a","kind":"SERVER","shared":true,"timestamp":1700000000000200,"duration":"300","localEndpoint":{"serviceName":"db"}},
     {"traceId":"1","id":"c","parentId":"b","name":"scan","timestamp":1700000000000210,"duration":100,"localEndpoint":{"serviceName":"db"}},
     {"traceId":"1","id":"d","parentId":"a","name":"mail","kind":"PRODUCER","timestamp":1700000000000700,"localEndpoint":{"serviceName":"web"},"remoteEndpoint":{"ipv4":"10.0.0.9","port":9092}},
     {"traceId":"1","id":"e","parentId":"a","name":"old","timestamp":1700000000000750,"duration":50,"localEndpoint":{"serviceName":"web"},"remoteEndpoint":{"serviceName":"legacy"}}
    ],[]]"#;
    insta::assert_snapshot!("zipkin_v2", recorded(text.as_bytes()));
}

#[test]
fn version_1() {
    let text = r#"[
     {"traceId":"1","id":"1","name":"get","timestamp":1700000000000000,"duration":900,
      "annotations":[{"timestamp":1700000000000000,"value":"sr","endpoint":{"serviceName":"web","ipv4":"10.0.0.1"}},{"timestamp":1700000000000900,"value":"ss","endpoint":{"serviceName":"web","ipv4":"10.0.0.1"}}],
      "binaryAnnotations":[{"key":"http.path","value":"/","endpoint":{"serviceName":"web"}}]},
     {"traceId":"1","id":"2","parentId":"1","name":"find","timestamp":1700000000000100,"duration":500,
      "annotations":[{"timestamp":1700000000000100,"value":"cs","endpoint":{"serviceName":"web"}},{"timestamp":1700000000000200,"value":"sr","endpoint":{"serviceName":"db"}},
                     {"timestamp":1700000000000500,"value":"ss","endpoint":{"serviceName":"db"}},{"timestamp":1700000000000600,"value":"cr","endpoint":{"serviceName":"web"}}]},
     {"traceId":"1","id":"3","parentId":"2","name":"scan","timestamp":1700000000000210,"duration":90,"binaryAnnotations":[{"key":"lc","value":"x","endpoint":{"serviceName":"db"}}]},
     {"traceId":"1","id":"4","parentId":"1","name":"one way","annotations":[{"timestamp":1700000000000700,"value":"cs","endpoint":{"serviceName":"web"}},{"timestamp":1700000000000950,"value":"sr","endpoint":{"serviceName":"mail"}}]},
     {"traceId":"1","id":"5","parentId":"1","name":"message","annotations":[{"timestamp":1700000000000710,"value":"ms","endpoint":{"serviceName":"web"}},{"timestamp":1700000000000990,"value":"mr","endpoint":{"serviceName":"log"}}]},
     {"traceId":"1","id":"6","parentId":"1","name":"cut","timestamp":1700000000000720,"duration":30,"annotations":[{"timestamp":1700000000000720,"value":"cs","endpoint":{"serviceName":"web"}}],
      "binaryAnnotations":[{"key":"sa","value":true,"endpoint":{"serviceName":"cache","port":11211}}]}
    ]"#;
    insta::assert_snapshot!("zipkin_v1", recorded(text.as_bytes()));
}

#[test]
fn pieces_of_one_span_and_of_one_trace() {
    // The first record has no end, the second no start; one identifier of the trace is cut to its lower half.
    let lines = r#"{"traceId":"463ac35c9f6413ad48485a3953bb6124","id":"a","kind":"CLIENT","timestamp":1700000000000000,"localEndpoint":{"serviceName":"web"}}
{"traceId":"463ac35c9f6413ad48485a3953bb6124","id":"a","kind":"SERVER","shared":true,"timestamp":1700000000000100,"duration":50,"localEndpoint":{"serviceName":"db"}}
{"traceId":"48485a3953bb6124","id":"a","kind":"CLIENT","name":"find","timestamp":1700000000000000,"duration":400}
{"traceId":"48485a3953bb6124","id":"b","parentId":"a","name":"local","localEndpoint":{"serviceName":"db"}}
{"traceId":"48485a3953bb6124","id":"b","timestamp":1700000000000110,"duration":7}
not JSON
{"traceId":"48485a3953bb6124","id":"c","parentId":"a"}
{"id":"c","parentId":"a","timestamp":5}
{"traceId":7,"id":["x"],"timestamp":{"a":1}}
"#;
    insta::assert_snapshot!("zipkin_pieces", recorded(lines.as_bytes()));
}

/// A span whose duration comes in a record of its own, without a time, is the same as one that comes whole.
#[test]
fn a_duration_without_a_time_is_that_of_its_span() {
    let head = r#""traceId":"1","id":"a","kind":"SERVER","localEndpoint":{"serviceName":"web"}"#;
    let whole = format!("[{{{head},\"name\":\"get\",\"timestamp\":1700000001000000,\"duration\":900}}]");
    let start = format!("{{{head},\"name\":\"get\",\"timestamp\":1700000001000000}}");
    let durations = [format!("{{{head},\"duration\":900}}"), format!("{{{head},\"duration\":20}}")];
    let events = |text: &str| {
        let (_, operations, _) = operations(&[("t", text.as_bytes())]).expect("it reads");
        format!("{:?}", operations.iter().map(|own| (&own.start, &own.events)).collect::<Vec<_>>())
    };
    let [long, short] = &durations;
    for pieces in [[&start, long, short], [long, short, &start], [short, &start, long]] {
        assert_eq!(events(&format!("[{},{},{}]", pieces[0], pieces[1], pieces[2])), events(&whole));
    }
}

#[test]
fn a_shared_identifier_is_both_halves() {
    let whole = r#"[{"traceId":"1","id":"a","kind":"SERVER","name":"get","timestamp":1700000001000000,"duration":900,"localEndpoint":{"serviceName":"web"}},
     {"traceId":"1","id":"b","parentId":"a","kind":"CLIENT","name":"find","timestamp":1700000001000100,"duration":500,"localEndpoint":{"serviceName":"web"}},
     {"traceId":"1","id":"SERVER","parentId":"PARENT","kind":"SERVER","name":"find","timestamp":1700000001000200,"duration":300,"localEndpoint":{"serviceName":"db"}},
     {"traceId":"1","id":"d","parentId":"SERVER","kind":"CLIENT","name":"log","timestamp":1700000001000250,"duration":100,"localEndpoint":{"serviceName":"db"}},
     {"traceId":"1","id":"e","parentId":"d","kind":"SERVER","name":"log","timestamp":1700000001000260,"duration":80,"localEndpoint":{"serviceName":"log"}}]"#;
    let own = whole
        .replace("\"SERVER\",\"parentId\":\"PARENT\"", "\"c\",\"parentId\":\"b\"")
        .replace("\"parentId\":\"SERVER\"", "\"parentId\":\"c\"");
    let shared = whole
        .replace("\"SERVER\",\"parentId\":\"PARENT\"", "\"b\",\"parentId\":\"a\"")
        .replace("\"parentId\":\"SERVER\"", "\"parentId\":\"b\"");
    let events = |text: &str| {
        let (_, operations, report) = operations(&[("t", text.as_bytes())]).expect("it reads");
        assert!(report.counted.is_empty(), "{:?}", report.counted);
        operations.into_iter().map(|operation| format!("{:?}", operation.events)).collect::<Vec<_>>()
    };
    assert_eq!(events(&own), events(&shared));
}

#[test]
fn a_list_that_is_not_closed_gives_what_was_read() {
    let text = r#"[{"traceId":"1","id":"a","timestamp":1700000001000000,"duration":900,"localEndpoint":{"serviceName":"web"}},{"traceId":"1","id":"b","timest"#;
    insta::assert_snapshot!("zipkin_not_closed", recorded(text.as_bytes()));
}

/// Pieces of spans, both halves of calls and cut trace identifiers, a record a line.
const RECORDS: [&str; 7] = [
    r#"{"traceId":"463ac35c9f6413ad48485a3953bb6124","id":"1","kind":"SERVER","name":"get","timestamp":1700000000000000,"duration":900,"localEndpoint":{"serviceName":"web"}}"#,
    r#"{"traceId":"463ac35c9f6413ad48485a3953bb6124","id":"a","parentId":"1","kind":"CLIENT","timestamp":1700000000000100,"localEndpoint":{"serviceName":"web"}}"#,
    r#"{"traceId":"48485a3953bb6124","id":"a","parentId":"1","kind":"CLIENT","name":"find","timestamp":1700000000000100,"duration":400}"#,
    r#"{"traceId":"463ac35c9f6413ad48485a3953bb6124","id":"a","parentId":"1","kind":"SERVER","shared":true,"timestamp":1700000000000150,"localEndpoint":{"serviceName":"db"}}"#,
    r#"{"traceId":"48485a3953bb6124","id":"a","kind":"SERVER","duration":200,"timestamp":1700000000000150,"localEndpoint":{"serviceName":"db"}}"#,
    r#"{"traceId":"48485a3953bb6124","id":"b","parentId":"a","name":"scan","localEndpoint":{"serviceName":"db"}}"#,
    r#"{"traceId":"48485a3953bb6124","id":"b","timestamp":1700000000000160,"duration":70}"#,
];

proptest! {
    #[test]
    fn the_order_of_records_does_not_count(order in Just((0..RECORDS.len()).collect::<Vec<_>>()).prop_shuffle()) {
        let shown = |order: &[usize]| {
            let text: Vec<&str> = order.iter().map(|place| RECORDS[*place]).collect();
            let (names, operations, report) = operations(&[("t", text.join("\n").as_bytes())]).expect("it reads");
            let tasks = |operation: &dyelog_trace::Operation| {
                let events = operation.events.iter();
                events.map(|event| format!("{} {:?} {:?}", names.task_name(event.task), event.kind, event.time)).collect::<Vec<_>>()
            };
            (operations.iter().map(tasks).collect::<Vec<_>>(), report.counted)
        };
        let wanted = shown(&[0, 1, 2, 3, 4, 5, 6]);
        prop_assert_eq!(wanted.0.len(), 1);
        prop_assert_eq!(shown(&order), wanted);
    }
}
