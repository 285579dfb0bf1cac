//! `SkyWalking`: segments as agents report them (`/v3/segments`, `/v3/segment`), and what a query of a trace answers.
//!
//! | what | segments | answers |
//! |---|---|---|
//! | span | `traceSegmentId` and `spanId` | `segmentId` and `spanId` |
//! | service, instance | `service`, `serviceInstance` | `serviceCode`, `serviceInstanceName` |
//! | kind | `spanType`: entry server, exit client, local internal; with `spanLayer` MQ consumer and producer | `type`, `layer` |
//! | name | `operationName` | `endpointName` |
//! | parent | `parentSpanId`, else the first of `refs` in the same trace | the same |
//!
//! Enums are names or numbers. Further references, and those to other traces, are links: a batch of messages. Times are milliseconds.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::codes;
use crate::retained::Status;
use crate::spans::attributes::Meaning;
use crate::spans::builder::Builder;
use crate::spans::formats::records::{Documents, Records};
use crate::spans::formats::{Content, SpanFormat};
use crate::spans::ids::{SpanId, TraceId};
use crate::spans::input;
use crate::spans::json::Shape;
use crate::spans::model::{Link, Span, SpanKind};
use dyelog_diagnostic::{Diagnostic, Place};

/// The format.
pub(super) const FORMAT: SpanFormat = SpanFormat {
    format: crate::Format::SkyWalking,
    title: "SkyWalking",
    content: &[Content::Json],
    detect: |head| {
        head.has_any(&["traceSegmentId", "parentTraceSegmentId"]) || head.has(&["segmentId", "spanId", "serviceCode"])
    },
    read: |builder, input, strict| input::documents::<Documents<SkyWalking>>(builder, input, strict),
    together: None,
};

/// What the records mean.
struct SkyWalking;

impl Records for SkyWalking {
    // The spans of a segment need what it says of all of them, so that a segment is one record.
    const HOLDERS: &'static [&'static str] = &["data", "trace"];

    fn record(builder: &mut Builder<'_>, record: &Map<String, Value>) {
        let whole = record.get("traceSegmentId").is_some();
        if record.get("isSizeLimited").and_then(Value::as_bool) == Some(true) {
            let item = format!("segment {}", text(record, &["traceSegmentId"]));
            let place = Place::Item { file: Arc::clone(&builder.file), item };
            builder.report.count("segment that lacks spans", || {
                let message = "the agent left spans of this segment out, as there were too many";
                Diagnostic::warning(codes::LOST_RECORDS, place, message)
            });
        }
        match record.get("spans") {
            Some(Value::Array(spans)) => {
                for span in spans {
                    match span {
                        Value::Object(span) => take(builder, if whole { record } else { span }, span),
                        other => builder.expect(Shape::Object, shape(other), "spans[]"),
                    }
                }
            }
            Some(other) => builder.expect(Shape::Array, shape(other), "spans"),
            None if record.contains_key("segmentId") => take(builder, record, record),
            None => {}
        }
    }
}

fn shape(value: &Value) -> Shape {
    match value {
        Value::Null => Shape::Null,
        Value::Bool(_) => Shape::Bool,
        Value::Number(_) => Shape::Float,
        Value::String(_) => Shape::Text,
        Value::Array(_) => Shape::Array,
        Value::Object(_) => Shape::Object,
    }
}

/// The first of some members that is there, as text.
fn text(record: &Map<String, Value>, keys: &[&str]) -> String {
    match keys.iter().find_map(|key| record.get(*key)) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// A whole number, also where it is written as a string.
fn number(record: &Map<String, Value>, key: &str) -> Option<i64> {
    match record.get(key)? {
        Value::Number(number) => number.as_i64().or_else(|| number.as_f64().map(|number| number as i64)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// Takes a span; `segment` says what is common to all of its spans, or is the span itself.
fn take(builder: &mut Builder<'_>, segment: &Map<String, Value>, own: &Map<String, Value>) {
    builder.open();
    let segment_id = text(segment, &["traceSegmentId", "segmentId"]);
    let trace = builder.spans.trace_id(&text(segment, &["traceId"]));
    let id = number(own, "spanId").map_or(SpanId::NONE, |id| span_id(builder, &segment_id, id));
    let mut span = Span { trace, id, ..Span::default() };
    span.service = builder.names.intern(&text(segment, &["service", "serviceCode"]));
    span.instance = builder.names.intern(&text(segment, &["serviceInstance", "serviceInstanceName"]));
    span.name = builder.names.intern(&text(own, &["operationName", "endpointName"]));
    span.kind = kind(&text(own, &["spanType", "type"]), &text(own, &["spanLayer", "layer"]));
    span.first_link = builder.spans.links.len() as u32;
    if let Some(parent) = number(own, "parentSpanId").filter(|parent| *parent >= 0) {
        span.parent = span_id(builder, &segment_id, parent);
    }
    references(builder, own, &mut span);
    span.links = builder.spans.links.len() as u32 - span.first_link;
    let peer = text(own, &["peer"]);
    if !peer.is_empty() {
        builder.scalar.set_text(&peer);
        builder.attributes.take(Meaning::Peer(0), &mut builder.scalar);
    }
    if let Some(Value::Array(tags)) = own.get("tags") {
        for tag in tags.iter().filter_map(Value::as_object) {
            builder.scalar.set_value(tag.get("value").unwrap_or(&Value::Null));
            builder.attribute(&text(tag, &["key"]));
        }
    }
    if own.get("isError").and_then(Value::as_bool) == Some(true) {
        builder.open.status = Status::Error;
    }
    let service = span.service;
    builder.apply_attributes(&mut span);
    span.service = service;
    let time = |key: &str| number(own, key).filter(|time| *time != 0).map(|time| time.saturating_mul(1_000_000));
    builder.finish(span, time("startTime"), time("endTime"));
}

fn span_id(builder: &mut Builder<'_>, segment: &str, id: i64) -> SpanId {
    builder.spans.span_id(&format!("{segment}#{id}"))
}

/// The first reference in the same trace is the parent of a span without one; the others are links.
fn references(builder: &mut Builder<'_>, own: &Map<String, Value>, span: &mut Span) {
    let Some(Value::Array(references)) = own.get("refs") else { return };
    for reference in references.iter().filter_map(Value::as_object) {
        let segment = text(reference, &["parentTraceSegmentId", "parentSegmentId"]);
        let Some(parent) = number(reference, "parentSpanId").filter(|parent| *parent >= 0) else { continue };
        let parent = span_id(builder, &segment, parent);
        let trace = match text(reference, &["traceId"]) {
            none if none.is_empty() => TraceId::NONE,
            trace => builder.spans.trace_id(&trace),
        };
        if !span.parent.is_some() && (!trace.is_some() || trace == span.trace) {
            span.parent = parent;
        } else {
            let trace = if trace.is_some() { trace } else { span.trace };
            builder.spans.links.push(Link { trace, span: parent });
        }
    }
}

/// A kind, by the type and layer of the span: names or numbers.
fn kind(own: &str, layer: &str) -> SpanKind {
    let message = matches!(layer.to_ascii_lowercase().as_str(), "mq" | "4");
    match (own.to_ascii_lowercase().as_str(), message) {
        ("entry" | "0", false) => SpanKind::Server,
        ("entry" | "0", true) => SpanKind::Consumer,
        ("exit" | "1", false) => SpanKind::Client,
        ("exit" | "1", true) => SpanKind::Producer,
        ("local" | "2", _) => SpanKind::Internal,
        _ => SpanKind::Unspecified,
    }
}
