//! Spans as OTLP JSON: a request a line.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::{Losses, Pair, Shown, lost, object};
use crate::retained::Status;
use crate::spans::write::simulated::number_of;

/// So many spans are a line.
const LINE: usize = 500;

/// The request that is a line, as far as there are spans for it.
#[derive(Debug, Default)]
pub(super) struct Request {
    /// The attributes of each resource, and its spans.
    resources: Vec<(Value, Vec<Value>)>,
    spans: usize,
}

impl Request {
    /// Adds spans. Those of one resource that follow each other are under it together, whichever part they come in.
    pub fn write(&mut self, output: &mut dyn Write, own: Shown<'_>, losses: &mut Losses) -> io::Result<()> {
        for place in 0..own.spans.spans.len() {
            let goes_on = place > 0 && self.spans > 0 && own.is_alike(place - 1, place);
            if !goes_on {
                self.begin(resource(own, place));
            }
            let (_, spans) = self.resources.last_mut().expect("one has begun");
            spans.push(span(own, place, losses));
            self.spans += 1;
            if self.spans == LINE {
                self.finish(output)?;
            }
        }
        Ok(())
    }

    /// Spans of a resource follow.
    fn begin(&mut self, resource: Value) {
        if self.resources.last().is_none_or(|(last, _)| *last != resource) {
            self.resources.push((resource, Vec::new()));
        }
    }

    /// Writes the line.
    pub fn finish(&mut self, output: &mut dyn Write) -> io::Result<()> {
        if std::mem::take(&mut self.spans) == 0 {
            return Ok(());
        }
        let resources = self.resources.drain(..).map(|(attributes, spans)| {
            json!({ "resource": { "attributes": attributes }, "scopeSpans": [{ "spans": spans }] })
        });
        serde_json::to_writer(&mut *output, &json!({ "resourceSpans": resources.collect::<Vec<_>>() }))?;
        output.write_all(b"\n")
    }
}

fn resource(own: Shown<'_>, place: usize) -> Value {
    let mut resource = vec![("service.name".into(), json!(own.text(own.spans.spans[place].service)))];
    resource.extend(own.resource(place));
    pairs(&resource)
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
