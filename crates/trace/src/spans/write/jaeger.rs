//! Spans as Jaeger JSON: the answer of its query service.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::{Losses, Pair, Shown, lost, status_pair, word_of};
use crate::retained::Status;

/// Writes traces, the first of which may come behind others.
pub(super) fn write(output: &mut dyn Write, own: Shown<'_>, listed: &mut bool, losses: &mut Losses) -> io::Result<()> {
    for places in own.by_trace().chunk_by(|a, b| own.spans.spans[*a].trace == own.spans.spans[*b].trace) {
        output.write_all(if std::mem::replace(listed, true) { b",\n" } else { b"" })?;
        let mut processes: Map<String, Value> = Map::new();
        let mut keys = rustc_hash::FxHashMap::default();
        let mut spans = Vec::with_capacity(places.len());
        for &place in places {
            let span = &own.spans.spans[place];
            let recorder = (span.service, span.instance, span.host, own.resource_number(place));
            let key = keys.entry(recorder).or_insert_with(|| {
                let key = format!("p{}", processes.len() + 1);
                let process = json!({ "serviceName": own.text(span.service), "tags": tags(&own.resource(place)) });
                processes.insert(key.clone(), process);
                key
            });
            spans.push(one(own, place, key, losses));
        }
        let trace = spans.first().map(|span| span["traceID"].clone());
        serde_json::to_writer(&mut *output, &json!({ "traceID": trace, "spans": spans, "processes": processes }))?;
    }
    Ok(())
}

fn tags(pairs: &[Pair<'_>]) -> Vec<Value> {
    let kind = |value: &Value| match value {
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        _ => "string",
    };
    pairs.iter().map(|(key, value)| json!({ "key": key, "type": kind(value), "value": value })).collect()
}

fn one(own: Shown<'_>, place: usize, process: &str, losses: &mut Losses) -> Value {
    let span = &own.spans.spans[place];
    own.common_losses(place, losses);
    own.odd_identifier(place, losses);
    lost(losses, "that the end was not recorded", span.endless);
    let reference =
        |kind: &str, trace: String, span: String| json!({ "refType": kind, "traceID": trace, "spanID": span });
    let mut references = Vec::new();
    if span.parent.is_some() {
        let kind = if span.follows { "FOLLOWS_FROM" } else { "CHILD_OF" };
        references.push(reference(kind, Shown::trace(span), span.parent.to_string()));
    }
    for link in own.links(span) {
        references.push(reference("FOLLOWS_FROM", format!("{:032x}", link.trace.0), link.span.to_string()));
    }
    let mut pairs = own.attributes(place);
    let status = own.status(place);
    pairs.retain(|(key, _)| key != "span.kind" && (key != "otel.status_code" || status == Status::Unset));
    if let Some(kind) = word_of(span.kind) {
        pairs.push(("span.kind".into(), json!(kind)));
    }
    pairs.extend(status_pair(status, &pairs));
    let logs = own.events(place).iter().map(|event| {
        let mut fields = vec![("event".into(), json!(own.text(event.name)))];
        let attributes = own.event_attributes(event);
        fields.extend(attributes.into_iter().filter(|(key, _)| key != "event"));
        json!({ "timestamp": event.time.unwrap_or(span.start).div_euclid(1000), "fields": tags(&fields) })
    });
    json!({
        "traceID": Shown::trace(span),
        "spanID": span.id.to_string(),
        "operationName": own.text(span.name),
        "references": references,
        "startTime": span.start.div_euclid(1000),
        "duration": span.end.div_euclid(1000) - span.start.div_euclid(1000),
        "tags": tags(&pairs),
        "logs": logs.collect::<Vec<_>>(),
        "processID": process,
    })
}
