//! `SkyWalking`: segments as agents report them (`/v3/segments`, `/v3/segment`), in JSON and in [`protobuf`], and what a query of a trace answers.
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

mod protobuf;

use std::io::{BufReader, Read};
use std::sync::Arc;

use serde_json::Value;

use crate::codes;
use crate::retained::Status;
use crate::spans::attributes::Meaning;
use crate::spans::builder::Builder;
use crate::spans::formats::protobuf::{beginning, cut_off, json_or_refused};
use crate::spans::formats::records::{Documents, Record, Records, scalar, tell};
use crate::spans::formats::{Content, SpanFormat};
use crate::spans::ids::SpanId;
use crate::spans::input;
use crate::spans::json::Shape;
use crate::spans::model::{Link, Span, SpanKind};
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};

/// The format.
pub(super) const FORMAT: SpanFormat = SpanFormat {
    format: crate::Format::SkyWalking,
    title: "SkyWalking",
    content: &[Content::Json, Content::Binary],
    detect: |content, head| {
        if content == Content::Binary {
            return protobuf::Framing::of(head.bytes).is_some();
        }
        head.has_any(&["traceSegmentId", "parentTraceSegmentId"]) || head.has(&["segmentId", "spanId", "serviceCode"])
    },
    read,
    together: None,
};

/// What is read, beside JSON.
const FORMS: &str = "give `SegmentObject` or `SegmentCollection`, each alone or after its length; the first segment begins with its identifiers and a span";

fn read(builder: &mut Builder<'_>, input: &mut dyn Read, strict: bool) -> Result<(), Diagnostics> {
    let head = beginning(&builder.file, input)?;
    let mut input = BufReader::with_capacity(64 << 10, head.chain(input));
    let Some(framing) = protobuf::Framing::of(&head) else {
        json_or_refused(&builder.file, &head, FORMAT.title, FORMS)?;
        return input::documents::<Documents<SkyWalking>>(builder, &mut input, strict).map(drop);
    };
    let read = protobuf::segments(&mut input, framing, |segment| {
        SkyWalking.record(builder, Record(&segment));
        builder.hand_on();
    });
    cut_off(builder, "protobuf", read, strict)
}

/// What the records mean.
#[derive(Default)]
struct SkyWalking;

impl Records for SkyWalking {
    // The spans of a segment need what it says of all of them, so that a segment is one record.
    const HOLDERS: &'static [&'static str] = &["data", "trace"];

    fn record(&mut self, builder: &mut Builder<'_>, record: Record<'_>) {
        let whole = record.any(&["traceSegmentId"]).is_some();
        if record.truth("isSizeLimited") {
            let item = format!("segment {}", record.text(&["traceSegmentId"]));
            let place = Place::Item { file: Arc::clone(&builder.file), item };
            builder.report.count("segment that lacks spans", || {
                let message = "the agent left spans of this segment out, as there were too many";
                Diagnostic::warning(codes::LOST_RECORDS, place, message)
            });
        }
        match record.0.get("spans") {
            Some(Value::Array(spans)) => {
                for span in spans {
                    match Record::of(span) {
                        Some(span) => take(builder, if whole { record } else { span }, span),
                        None => builder.expect(Shape::Object, scalar(span).shape, "spans[]"),
                    }
                }
            }
            Some(other) => builder.expect(Shape::Array, scalar(other).shape, "spans"),
            None if record.has("segmentId") => take(builder, record, record),
            None => {}
        }
    }
}

/// Takes a span; `segment` says what is common to all of its spans, or is the span itself.
fn take(builder: &mut Builder<'_>, segment: Record<'_>, own: Record<'_>) {
    builder.open();
    let segment_id = segment.text(&["traceSegmentId", "segmentId"]);
    let trace = builder.spans.trace_id(&segment.text(&["traceId"]));
    let id = own.whole(&["spanId"]).map_or(SpanId::NONE, |id| span_id(builder, &segment_id, id));
    let mut span = Span { trace, id, ..Span::default() };
    span.service = builder.names.intern(&segment.text(&["service", "serviceCode"]));
    span.instance = builder.names.intern(&segment.text(&["serviceInstance", "serviceInstanceName"]));
    span.name = builder.names.intern(&own.text(&["operationName", "endpointName"]));
    span.kind = kind(&own.text(&["spanType", "type"]), &own.text(&["spanLayer", "layer"]));
    span.first_link = builder.spans.links.len() as u32;
    if let Some(parent) = own.whole(&["parentSpanId"]).filter(|parent| *parent >= 0) {
        span.parent = span_id(builder, &segment_id, parent);
    }
    references(builder, own, &mut span);
    span.links = builder.spans.links.len() as u32 - span.first_link;
    tell(builder, Meaning::Peer(0), &own.text(&["peer"]));
    for tag in own.list("tags").iter().filter_map(Record::of) {
        builder.scalar.set_value(tag.any(&["value"]).unwrap_or(&Value::Null));
        builder.attribute(&tag.text(&["key"]));
    }
    if own.truth("isError") {
        builder.open.status = Status::Error;
    }
    builder.apply_attributes_but_service(&mut span);
    let time = |key| own.whole(&[key]).filter(|time| *time != 0).map(|time| time.saturating_mul(1_000_000));
    builder.finish(span, time("startTime"), time("endTime"));
}

fn span_id(builder: &mut Builder<'_>, segment: &str, id: i64) -> SpanId {
    builder.spans.span_id(&format!("{segment}#{id}"))
}

/// The first reference in the same trace is the parent of a span without one; the others are links.
fn references(builder: &mut Builder<'_>, own: Record<'_>, span: &mut Span) {
    for reference in own.list("refs").iter().filter_map(Record::of) {
        let segment = reference.text(&["parentTraceSegmentId", "parentSegmentId"]);
        let Some(parent) = reference.whole(&["parentSpanId"]).filter(|parent| *parent >= 0) else { continue };
        let parent = span_id(builder, &segment, parent);
        let trace = builder.spans.trace_id(&reference.text(&["traceId"]));
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
