//! Spans as the OpenTelemetry SDK for Python writes them to the standard output, a document each.

use serde::de::MapAccess;
use serde_json::Value;

use crate::retained::Status;
use crate::spans::builder::Builder;
use crate::spans::formats::records::{Record, attributes};
use crate::spans::ids::{SpanId, TraceId};
use crate::spans::json::skip;
use crate::spans::model::{Link, Span, SpanKind};
use crate::spans::time::from_rfc3339;

/// The members that tell such a span.
pub(super) const KEYS: [&str; 5] = ["context", "trace_id", "span_id", "parent_id", "start_time"];

/// What is known of such a span; nothing, in a document of another form.
#[derive(Default)]
pub(super) struct PythonSpan {
    record: serde_json::Map<String, Value>,
}

impl PythonSpan {
    /// Takes a member of the document.
    pub fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        let known = ["context", "name", "kind", "parent_id", "start_time", "end_time", "status", "attributes"];
        if !known.contains(&key) && !["events", "links", "resource"].contains(&key) {
            return skip(map);
        }
        self.record.insert(key.to_owned(), map.next_value()?);
        Ok(())
    }

    /// The document ends.
    pub fn finish(self, builder: &mut Builder<'_>) {
        let own = Record(&self.record);
        let Some(context) = own.object("context") else { return };
        builder.open();
        if let Some(resource) = own.object("resource").and_then(|resource| resource.object("attributes")) {
            for (key, value) in resource.0 {
                builder.scalar.set_value(value);
                builder.resource.offer(key, &mut builder.scalar, builder.names);
            }
        }
        let (trace, id) = ids(builder, context);
        let parent = builder.spans.span_id(digits(&own.text(&["parent_id"])));
        let kind = own.text(&["kind"]);
        let kind = SpanKind::parse(kind.strip_prefix("SpanKind.").unwrap_or(&kind));
        let name = builder.names.intern(&own.text(&["name"]));
        let mut span = Span { trace, id, parent, name, kind, ..Span::default() };
        if let Some(status) = own.object("status") {
            builder.open.status = Status::parse(&status.text(&["status_code"]));
        }
        if let Some(told) = own.object("attributes") {
            attributes(builder, "", told);
        }
        if builder.wanted().events {
            own.list("events").iter().filter_map(Record::of).for_each(|event| take_event(builder, event));
        }
        span.first_link = builder.spans.links.len() as u32;
        for link in own.list("links").iter().filter_map(Record::of).filter_map(|link| link.object("context")) {
            let (trace, span) = ids(builder, link);
            builder.spans.links.push(Link { trace, span });
        }
        span.links = builder.spans.links.len() as u32 - span.first_link;
        builder.resource_recorder().sign(&mut span);
        builder.apply_attributes(&mut span);
        let time = |key: &str| from_rfc3339(&own.text(&[key]));
        let (resource, before) = (builder.keep_resource(), builder.spans.spans.len());
        builder.finish(span, time("start_time"), time("end_time"));
        builder.belongs(before..builder.spans.spans.len(), resource);
        builder.open();
        builder.resource.clear();
    }
}

/// The digits of an identifier, which has `0x` before them.
fn digits(text: &str) -> &str {
    text.strip_prefix("0x").unwrap_or(text)
}

fn ids(builder: &mut Builder<'_>, context: Record<'_>) -> (TraceId, SpanId) {
    let trace = builder.spans.trace_id(digits(&context.text(&["trace_id"])));
    (trace, builder.spans.span_id(digits(&context.text(&["span_id"]))))
}

fn take_event(builder: &mut Builder<'_>, event: Record<'_>) {
    builder.event.clear();
    for (key, value) in event.object("attributes").into_iter().flat_map(|own| own.0) {
        builder.scalar.set_value(value);
        builder.event.offer(key, &mut builder.scalar, builder.names);
    }
    let name = builder.names.intern(&event.text(&["name"]));
    builder.close_event(name, from_rfc3339(&event.text(&["timestamp"])));
}
