//! Spans as Zipkin JSON, version 2.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::{Losses, Shown, lost, object, status_pair};
use crate::spans::model::SpanKind;

/// Writes elements of the list, the first of which may come behind others.
pub(super) fn write(output: &mut dyn Write, own: Shown<'_>, listed: &mut bool, losses: &mut Losses) -> io::Result<()> {
    for place in 0..own.spans.spans.len() {
        output.write_all(if std::mem::replace(listed, true) { b",\n" } else { b"" })?;
        serde_json::to_writer(&mut *output, &one(own, place, losses))?;
    }
    Ok(())
}

fn one(own: Shown<'_>, place: usize, losses: &mut Losses) -> Value {
    let span = &own.spans.spans[place];
    own.common_losses(place, losses);
    own.odd_identifier(place, losses);
    lost(losses, "that the parent does not wait (FOLLOWS_FROM)", span.follows);
    lost(losses, "links", span.links > 0);
    let kind = match span.kind {
        SpanKind::Server => Some("SERVER"),
        SpanKind::Client => Some("CLIENT"),
        SpanKind::Producer => Some("PRODUCER"),
        SpanKind::Consumer => Some("CONSUMER"),
        SpanKind::Internal | SpanKind::Unspecified => None,
    };
    // Local spans have no kind there, and read so.
    lost(losses, "that a span is internal", span.kind == SpanKind::Internal);
    let host = own.text(span.host);
    let address = address_key(host).map(|key| (key, json!(host)));
    lost(losses, "machines without an address", span.host.is_some() && address.is_none());
    lost(losses, "instances", span.instance.is_some());
    let service = (!own.text(span.service).is_empty()).then(|| json!(own.text(span.service)));
    let local = object([("serviceName", service)].into_iter().chain(address.map(|(key, value)| (key, Some(value)))));
    let mut pairs = own.attributes(place);
    pairs.extend(status_pair(own.status(place), &pairs));
    // All tags are texts there.
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    lost(losses, "types of attributes", pairs.iter().any(|(_, value)| !value.is_string()));
    lost(
        losses,
        "attributes of resources",
        own.resource(place).len() > usize::from(span.host.is_some()) + usize::from(span.instance.is_some()),
    );
    lost(losses, "attributes of events", own.events(place).iter().any(|event| !own.event_attributes(event).is_empty()));
    let tags: Map<String, Value> =
        pairs.into_iter().map(|(key, value)| (key.into_owned(), json!(text(value)))).collect();
    let annotations = own.events(place).iter().map(|event| {
        json!({ "timestamp": event.time.unwrap_or(span.start).div_euclid(1000), "value": own.text(event.name) })
    });
    let annotations: Vec<Value> = annotations.collect();
    // A duration of zero means none there.
    let duration = span.end.div_euclid(1000) - span.start.div_euclid(1000);
    lost(losses, "durations below a microsecond", duration == 0 && !span.endless);
    let peer = (!own.text(span.peer).is_empty()).then(|| json!({ "serviceName": own.text(span.peer) }));
    Value::Object(object([
        ("traceId", Some(json!(Shown::trace(span)))),
        ("id", Some(json!(span.id.to_string()))),
        ("parentId", span.parent.is_some().then(|| json!(span.parent.to_string()))),
        ("name", Some(json!(own.text(span.name)))),
        ("kind", kind.map(|kind| json!(kind))),
        ("timestamp", Some(json!(span.start.div_euclid(1000)))),
        ("duration", (!span.endless).then(|| json!(duration.max(1)))),
        ("localEndpoint", Some(Value::Object(local))),
        ("remoteEndpoint", peer),
        ("annotations", (!annotations.is_empty()).then_some(Value::Array(annotations))),
        ("tags", (!tags.is_empty()).then_some(Value::Object(tags))),
    ]))
}

/// The member that holds an address; `None` of a text that is none.
fn address_key(host: &str) -> Option<&'static str> {
    let parts = host.split('.');
    if parts.clone().count() == 4 && parts.clone().all(|part| part.parse::<u8>().is_ok()) {
        return Some("ipv4");
    }
    let digits = |part: &str| part.len() <= 4 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let groups = host.split(':').count();
    ((3..=8).contains(&groups) && host.split(':').all(digits)).then_some("ipv6")
}
