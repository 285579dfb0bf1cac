//! Formats whose spans wait for others of their trace: neither the memory that they may take nor the number of threads changes what comes out.

use std::sync::Arc;

use dyelog_trace::spans::{Scratch, Spill};
use dyelog_trace::{Format, ReadOptions};

use super::scale::{all, told, told_files};

/// So many traces have more spans than are handed on at once.
const TRACES: u64 = 6000;

/// The identifier of a trace, spread over the range as random ones are.
fn spread(trace: u64) -> u64 {
    (trace + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The beginning of a trace, microseconds.
fn begin(trace: u64) -> u64 {
    1_700_000_000_000_000 + trace * 10_000
}

/// Two halves of a file, of which each has a part of every trace.
fn halves(one: impl Fn(u64) -> String, other: impl Fn(u64) -> String) -> Vec<String> {
    (0..TRACES).map(one).chain((0..TRACES).map(other)).collect()
}

/// Holds a file to itself, whatever the memory; gives how often each thing was counted.
fn same_for_all_memory(what: &str, input: &str) -> std::collections::BTreeMap<String, u64> {
    for wanted in [Arc::default(), all()] {
        let held = told(input.as_bytes(), &wanted, None, 1).unwrap_or_else(|error| panic!("{what}: {error}"));
        for (memory, threads) in [(Some(1000), 1), (Some(1_000_000), 2), (None, 3)] {
            let other = told(input.as_bytes(), &wanted, memory, threads).expect("it reads");
            assert!(other.0 == held.0, "{what}: operations, {memory:?}, {threads} threads");
            assert_eq!(other.1, held.1, "{what}, {memory:?}, {threads} threads");
        }
    }
    let (text, report) = told(input.as_bytes(), &all(), Some(1000), 1).expect("it reads");
    assert!(text.contains("run"), "{what}: its services");
    report.counted.iter().map(|(reason, times)| ((*reason).to_string(), *times)).collect()
}

#[test]
fn zipkin_pieces() {
    // A client begins in one half of the file and ends in the other, where its trace has a wider identifier.
    let started = |trace: u64| {
        let (id, begin) = (spread(trace), begin(trace));
        format!(
            r#"{{"traceId":"{id:016x}","id":"1","kind":"SERVER","name":"run","timestamp":{begin},"duration":900,"localEndpoint":{{"serviceName":"web"}}}},
{{"traceId":"{id:016x}","id":"2","parentId":"1","kind":"CLIENT","name":"find","timestamp":{},"localEndpoint":{{"serviceName":"web"}}}}"#,
            begin + 100
        )
    };
    let ended = |trace: u64| {
        let (id, begin) = (spread(trace), begin(trace));
        format!(
            r#"{{"traceId":"{:016x}{id:016x}","id":"2","parentId":"1","kind":"CLIENT","timestamp":{},"duration":500,"localEndpoint":{{"serviceName":"web"}}}},
{{"traceId":"{id:016x}","id":"2","kind":"SERVER","shared":true,"name":"find","timestamp":{},"duration":300,"localEndpoint":{{"serviceName":"db"}}}}"#,
            trace + 1,
            begin + 100,
            begin + 200
        )
    };
    let records = halves(started, ended);
    let counted = same_for_all_memory("a list", &format!("[{}]", records.join(",\n")));
    assert_eq!(counted.get("span recorded in pieces"), Some(&TRACES));
    let lines: String = records.concat().replace("},\n{", "}\n{").replace("}{", "}\n{");
    assert_eq!(same_for_all_memory("lines", &lines), counted);
}

#[test]
fn datadog_services() {
    // Payloads of one half have the servers, those of the other the calls, which are of the services around them.
    let payload = |host: &str, spans: String| format!(r#"{{"chunks":[{{"spans":[{spans}]}}],"hostname":"{host}"}}"#);
    let span = |trace: u64, id: u64, parent: u64, service: &str, kind: &str, meta: &str| {
        let start = begin(trace) * 1000 + id * 1000;
        format!(
            r#"{{"trace_id":{},"span_id":{id},"parent_id":{parent},"service":"{service}","name":"n","resource":"run","type":"{kind}","start":{start},"duration":{},"meta":{{{meta}}}}}"#,
            spread(trace),
            900_000 / id
        )
    };
    let base = r#""_dd.base_service":"shop""#;
    let records = halves(
        |trace| payload("h1", [span(trace, 1, 0, "web", "web", base), span(trace, 2, 1, "inner", "x", base)].join(",")),
        |trace| payload("h2", [span(trace, 3, 2, "pg", "sql", base), span(trace, 4, 2, "queue", "http", "")].join(",")),
    );
    same_for_all_memory("payloads", &format!(r#"{{"tracerPayloads":[{}]}}"#, records.join(",")));
    same_for_all_memory("lines", &records.join("\n"));
    let (text, _) = told(records.join("\n").as_bytes(), &all(), Some(1000), 1).expect("it reads");
    assert!(text.contains(" web n ") && !text.contains(" pg n "), "the call of a database is of the server around it");
}

#[test]
fn elastic_offsets() {
    // Spans tell how long after their transaction they began, and come before it.
    let span = |trace: u64| {
        let id = spread(trace);
        let call = |id: u64, start: f64, transaction: &str| {
            format!(
                r#"{{"span":{{"trace_id":"{:x}","id":"{id:x}","parent_id":"1","transaction_id":"{transaction}","name":"find","type":"db","start":{start},"duration":0.2}}}}"#,
                spread(trace)
            )
        };
        let lost = if id.is_multiple_of(2) { "9" } else { "1" };
        [call(2, 0.1, "1"), call(3, 0.4, lost)].join("\n")
    };
    let transaction = |trace: u64| {
        format!(
            r#"{{"transaction":{{"trace_id":"{:x}","id":"1","name":"run","type":"request","timestamp":{},"duration":0.9,"context":{{"service":{{"name":"web"}}}}}}}}"#,
            spread(trace),
            begin(trace)
        )
    };
    let counted = same_for_all_memory("lines", &halves(span, transaction).join("\n"));
    let lost = (0..TRACES).filter(|trace| spread(*trace).is_multiple_of(2)).count() as u64;
    assert_eq!(counted.get("span whose transaction is not here"), Some(&lost));
}

#[test]
fn circles_of_parents() {
    let spans = |trace: u64| {
        let span = |id: u64, parent: u64| {
            format!(
                r#"{{"traceId":"{:016x}","id":"{id}","parentId":"{parent}","kind":"SERVER","name":"run","timestamp":{},"duration":900,"localEndpoint":{{"serviceName":"web"}}}}"#,
                spread(trace),
                begin(trace)
            )
        };
        [span(1, 2), span(2, 1)].join(",\n")
    };
    let counted = same_for_all_memory("circles", &format!("[{}]", halves(spans, spans).join(",\n")));
    assert_eq!(counted.get("circle of parents"), Some(&TRACES));
}

#[test]
fn x_ray_subsegments() {
    let id = |trace: u64| format!("1-{:08x}-{:024x}", 1_700_000_000_u64, spread(trace));
    let seconds = |micros: u64| format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let part = |trace: u64| {
        let part = |own: u64, parent: u64| {
            format!(
                r#"{{"type":"subsegment","trace_id":"{}","id":"{own:016x}","parent_id":"{parent:016x}","name":"step","start_time":{},"end_time":{}}}"#,
                id(trace),
                seconds(begin(trace) + own * 10),
                seconds(begin(trace) + 500 - own * 10)
            )
        };
        [part(3, 2), part(2, 1)].join("\n")
    };
    let segment = |trace: u64| {
        format!(
            r#"{{"trace_id":"{}","id":"{:016x}","name":"run","start_time":{},"end_time":{}}}"#,
            id(trace),
            1,
            seconds(begin(trace)),
            seconds(begin(trace) + 900)
        )
    };
    let lines = halves(part, segment).join("\n");
    same_for_all_memory("lines", &lines);
    let (_, report) = told(lines.as_bytes(), &all(), Some(1000), 1).expect("it reads");
    assert_eq!((report.operations, report.records), (TRACES, 3 * TRACES));
}

#[test]
fn honeycomb_links() {
    let span = |trace: u64| {
        let date = begin(trace) / 1_000_000;
        let one = |id: u64, more: &str| {
            format!(
                r#"{{"trace.trace_id":"{:x}","trace.span_id":"{id}","service.name":"run","name":"run","Timestamp":{date},"duration_ms":0.5{more}}}"#,
                spread(trace)
            )
        };
        [one(1, ""), one(2, r#","trace.parent_id":"1""#), one(3, r#","trace.parent_id":"1""#)].join("\n")
    };
    let link = |trace: u64| {
        format!(
            r#"{{"meta.annotation_type":"link","trace.trace_id":"{:x}","trace.parent_id":"{}","trace.link.trace_id":"{:x}","trace.link.span_id":"1"}}"#,
            spread(trace),
            3 + trace % 2,
            spread(trace ^ 1),
        )
    };
    let counted = same_for_all_memory(
        "lines",
        &halves(span, |trace| if trace % 50 < 2 { link(trace) } else { String::new() }).join("\n"),
    );
    assert_eq!(counted.get("link of a span that is not here"), Some(&(TRACES / 50)));
}

#[test]
fn kieker_executions() {
    let record = |trace: u64, class: &str, order: u64, depth: u64| {
        let (start, end) = (begin(trace) * 1000 + order * 10, begin(trace) * 1000 + 9000 - order * 100);
        format!("$1;1;public void shop.{class}.run();none;{trace};{start};{end};host;{order};{depth}")
    };
    let map = "$0=kieker.common.record.misc.KiekerMetadataRecord\n$1=kieker.common.record.controlflow.OperationExecutionRecord\n";
    let log = halves(
        |trace| [record(trace, "Store", 2, 2), record(trace, "Cart", 1, 1)].join("\n"),
        |trace| record(trace, "Web", 0, 0),
    );
    let read = |memory: Option<u64>| {
        let spill = memory.map(|memory| Spill { scratch: Scratch::new(tempfile::tempfile), memory });
        let options = ReadOptions { format: Some(Format::Kieker), spill, ..ReadOptions::default() };
        told_files(&[("kieker.map", map.as_bytes()), ("a.dat", log.join("\n").as_bytes())], &options)
    };
    let (held, spilled) = (read(None), read(Some(1000)));
    assert!(held.0 == spilled.0, "operations");
    assert_eq!((held.1.operations, &held.1), (TRACES, &spilled.1));
}
