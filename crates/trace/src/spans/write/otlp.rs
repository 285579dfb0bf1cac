//! Spans as OTLP JSON: a request a line.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::{Losses, Pair, Shown, lost, object};
use crate::retained::Status;
use crate::spans::write::simulated::number_of;

/// So many spans are a line.
const LINE: usize = 500;

pub(super) fn write(output: &mut dyn Write, own: Shown<'_>, losses: &mut Losses) -> io::Result<()> {
    let places: Vec<usize> = (0..own.spans.spans.len()).collect();
    for line in places.chunks(LINE) {
        let resources: Vec<Value> = line
            .chunk_by(|a, b| own.is_alike(*a, *b))
            .map(|alike| {
                let spans: Vec<Value> = alike.iter().map(|place| span(own, *place, losses)).collect();
                let first = alike[0];
                let mut resource = vec![("service.name".into(), json!(own.text(own.spans.spans[first].service)))];
                resource.extend(own.resource(first));
                json!({ "resource": { "attributes": pairs(&resource) }, "scopeSpans": [{ "spans": spans }] })
            })
            .collect();
        serde_json::to_writer(&mut *output, &json!({ "resourceSpans": resources }))?;
        output.write_all(b"\n")?;
    }
    Ok(())
}

fn pairs(own: &[Pair<'_>]) -> Value {
    let value = |value: &Value| match value {
        Value::String(text) => json!({ "stringValue": text }),
        Value::Bool(truth) => json!({ "boolValue": truth }),
        Value::Number(number) => match number.as_i64() {
            Some(number) => json!({ "intValue": number.to_string() }),
            None => json!({ "doubleValue": number }),
        },
        other => other.clone(),
    };
    own.iter().map(|(key, own)| json!({ "key": key, "value": value(own) })).collect()
}

fn span(own: Shown<'_>, place: usize, losses: &mut Losses) -> Value {
    let span = &own.spans.spans[place];
    own.odd_identifier(place, losses);
    lost(losses, "that the parent does not wait (FOLLOWS_FROM)", span.follows);
    let events = own.events(place).iter().map(|event| {
        let time = event.time.map(|time| json!(time.to_string()));
        Value::Object(object([
            ("timeUnixNano", time),
            ("name", Some(json!(own.text(event.name)))),
            ("attributes", Some(pairs(&own.event_attributes(event)))),
        ]))
    });
    let links = own.links(span).iter();
    let links =
        links.map(|link| json!({ "traceId": format!("{:032x}", link.trace.0), "spanId": link.span.to_string() }));
    let (events, links): (Vec<Value>, Vec<Value>) = (events.collect(), links.collect());
    let some = |list: Vec<Value>| (!list.is_empty()).then_some(Value::Array(list));
    Value::Object(object([
        ("traceId", Some(json!(Shown::trace(span)))),
        ("spanId", Some(json!(span.id.to_string()))),
        ("parentSpanId", span.parent.is_some().then(|| json!(span.parent.to_string()))),
        ("flags", span.remote.then(|| json!(0x300))),
        ("name", Some(json!(own.text(span.name)))),
        ("kind", Some(json!(number_of(span.kind)))),
        ("startTimeUnixNano", Some(json!(span.start.to_string()))),
        ("endTimeUnixNano", (!span.endless).then(|| json!(span.end.to_string()))),
        ("attributes", Some(pairs(&own.attributes(place)))),
        ("events", some(events)),
        ("links", some(links)),
        (
            "status",
            match own.status(place) {
                Status::Unset => None,
                Status::Ok => Some(json!({ "code": 1 })),
                Status::Error => Some(json!({ "code": 2 })),
            },
        ),
    ]))
}
