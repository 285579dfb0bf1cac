//! Writes spans as OTLP JSON, a request a line.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::recorded::{SpanKind, WrittenSpan};

/// All spans are recorded by one clock, so that nobody looks for clocks that differ. An address that is everybody's names no machine.
const CLOCK: &str = "127.0.0.1";

/// Writes a trace as one line. Identifiers follow from its number and the places of the spans.
///
/// # Errors
/// Those of the output.
pub fn write_otlp(output: &mut dyn Write, number: u64, spans: &[WrittenSpan]) -> io::Result<()> {
    let mut services: Vec<&Arc<str>> = Vec::new();
    for span in spans {
        if !services.contains(&&span.service) {
            services.push(&span.service);
        }
    }
    let resources: Vec<Value> = services
        .iter()
        .map(|&service| {
            let own = spans.iter().enumerate().filter(|(_, span)| span.service == *service);
            let own: Vec<Value> = own.map(|(place, span)| json_span(number, place, span)).collect();
            json!({
                "resource": { "attributes": [text("service.name", service), text("ip", CLOCK)] },
                "scopeSpans": [{ "scope": { "name": "dyelog" }, "spans": own }],
            })
        })
        .collect();
    serde_json::to_writer(&mut *output, &json!({ "resourceSpans": resources }))?;
    output.write_all(b"\n")
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn json_span(number: u64, place: usize, span: &WrittenSpan) -> Value {
    // Traces count from 1: an identifier of zeros is none.
    let trace = number.saturating_add(1);
    let identifier = |place: usize| {
        let mut text = String::with_capacity(16);
        let _ = write!(text, "{:08x}{:08x}", trace & 0xffff_ffff, place + 1);
        text
    };
    let mut fields = Map::new();
    fields.insert("traceId".into(), json!(format!("{trace:032x}")));
    fields.insert("spanId".into(), json!(identifier(place)));
    if let Some(parent) = span.parent {
        fields.insert("parentSpanId".into(), json!(identifier(parent)));
    }
    fields.insert("name".into(), json!(&*span.name));
    fields.insert("kind".into(), json!(number_of(span.kind)));
    fields.insert("startTimeUnixNano".into(), json!(span.start.to_string()));
    fields.insert("endTimeUnixNano".into(), json!(span.end.to_string()));
    if !span.cpu.is_nan() {
        let cpu = json!({ "key": "thread.cpu_time", "value": { "doubleValue": span.cpu } });
        fields.insert("attributes".into(), json!([cpu]));
    }
    Value::Object(fields)
}

/// The kind as OTLP numbers it.
pub(super) fn number_of(kind: SpanKind) -> u8 {
    match kind {
        SpanKind::Unspecified => 0,
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
        SpanKind::Client => 3,
        SpanKind::Producer => 4,
        SpanKind::Consumer => 5,
    }
}
