//! AWS X-Ray: segment documents, one a line or in a list, and answers of `BatchGetTraces`, where each document is a text.
//!
//! | what | where |
//! |---|---|
//! | span | a segment, server; a subsegment, client where `namespace` is `remote` or `aws`, else internal |
//! | service | `name` of the segment |
//! | name | method and path of `http.request` for a segment, `aws.operation` for a subsegment, else `name` |
//! | peer | `name` of a client's subsegment |
//! | parent | the segment around a subsegment, else `parent_id` |
//! | machine, instance | `aws.ec2.instance_id`, `aws.ecs.container` |
//!
//! - A subsegment that was sent by itself (`"type": "subsegment"`) belongs to the service of the segment above it, wherever that stands.
//! - An inferred segment is nobody's record: the call of the service that was traced stands for it.
//! - What a client's subsegment holds (`attempt`, `dial`, `tls`) are steps of that call, and no calls.
//!
//! Times are seconds with a fraction. X-Ray records no sampling rate.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use crate::codes;
use crate::retained::Status;
use crate::spans::attributes::Meaning;
use crate::spans::builder::Builder;
use crate::spans::formats::records::{Documents, Record, Records, attributes, tell, time};
use crate::spans::formats::{Content, SpanFormat};
use crate::spans::ids::{SpanId, TraceId};
use crate::spans::input;
use crate::spans::model::{Link, Messaging, Span, SpanKind};
use dyelog_diagnostic::names::Name;
use dyelog_diagnostic::{Diagnostic, Place};

/// The format.
pub(super) const FORMAT: SpanFormat = SpanFormat {
    format: crate::Format::XRay,
    title: "X-Ray",
    content: &[Content::Json],
    detect: |_, head| {
        head.has(&["Segments", "Document"])
            || head.has(&["trace_id", "start_time"]) && !head.has_any(&["span_id", "context", "trace.id"])
    },
    read: |builder, input, strict| {
        builder.hold_traces();
        input::documents::<Documents<XRay>>(builder, input, strict)?;
        builder.finish_traces(name_services)
    },
    together: None,
};

/// What the records mean.
#[derive(Default)]
struct XRay;

/// What is common to all spans of a document.
#[derive(Clone, Copy)]
struct Owner {
    trace: TraceId,
    service: Name,
    instance: Name,
    host: Name,
    /// Whether they lie in a client's subsegment.
    in_call: bool,
}

impl Records for XRay {
    const HOLDERS: &'static [&'static str] = &["Traces", "Segments"];

    fn record(&mut self, builder: &mut Builder<'_>, record: Record<'_>) {
        match record.any(&["Document"]) {
            Some(Value::String(text)) => match serde_json::from_str::<Map<String, Value>>(text) {
                Ok(document) => take_document(builder, Record(&document)),
                Err(error) => {
                    let item = format!("segment {}", record.text(&["Id"]));
                    let place = Place::Item { file: Arc::clone(&builder.file), item };
                    builder.report.count("document that is no JSON", || {
                        Diagnostic::warning(codes::BAD_JSON, place, format!("this document is left out: {error}"))
                    });
                }
            },
            Some(Value::Object(document)) => take_document(builder, Record(document)),
            // The trace around segments has members of its own.
            _ if record.has("start_time") || record.has("trace_id") => take_document(builder, record),
            _ => {}
        }
    }
}

/// Takes a segment, or a subsegment that was sent by itself, with all in it.
fn take_document(builder: &mut Builder<'_>, document: Record<'_>) {
    if document.truth("inferred") {
        builder.report.tally("inferred segment", 1);
        return;
    }
    let trace = builder.spans.trace_id(&trace_text(&document.text(&["trace_id"])));
    let is_part = document.text(&["type"]) == "subsegment";
    let service = if is_part { Name::NONE } else { builder.names.intern(&document.text(&["name"])) };
    let aws = |path: &[&str]| document.at(path).and_then(Value::as_str).unwrap_or_default();
    let host = builder.names.intern(aws(&["aws", "ec2", "instance_id"]));
    let instance = builder.names.intern(aws(&["aws", "ecs", "container"]));
    let owner = Owner { trace, service, instance, host, in_call: false };
    let parent = builder.spans.span_id(&document.text(&["parent_id"]));
    // A stack, with the parent of each.
    let mut open = vec![(document, parent, owner, !is_part)];
    while let Some((own, parent, owner, is_segment)) = open.pop() {
        let calls = !is_segment && matches!(&*own.text(&["namespace"]), "remote" | "aws");
        if owner.in_call && !calls {
            builder.report.tally("step of a call that is no call", 1);
            continue;
        }
        let kind = match (is_segment, calls) {
            (true, _) => SpanKind::Server,
            (false, true) => SpanKind::Client,
            (false, false) => SpanKind::Internal,
        };
        let id = take(builder, own, Span { parent, kind, ..owner.span() });
        let within = own.list("subsegments").iter().rev().filter_map(Record::of);
        open.extend(within.map(|part| (part, id, Owner { in_call: owner.in_call || calls, ..owner }, false)));
    }
}

/// Gives subsegments that came by themselves the service of what is above them.
fn name_services(builder: &mut Builder<'_>) {
    let spans = &mut builder.spans.spans;
    let waiting: Vec<usize> = (0..spans.len()).filter(|place| !spans[*place].service.is_some()).collect();
    if waiting.is_empty() {
        return;
    }
    let places: FxHashMap<(TraceId, SpanId), usize> =
        spans.iter().enumerate().map(|(place, span)| ((span.trace, span.id), place)).collect();
    let mut seen = vec![false; spans.len()];
    for &place in &waiting {
        let (mut at, mut path) = (place, Vec::new());
        while !spans[at].service.is_some() && !seen[at] {
            seen[at] = true;
            path.push(at);
            match places.get(&(spans[at].trace, spans[at].parent)) {
                Some(above) => at = *above,
                None => break,
            }
        }
        let Span { service, instance, host, .. } = spans[at];
        for own in path {
            (spans[own].service, spans[own].instance, spans[own].host) = (service, instance, host);
        }
    }
}

impl Owner {
    fn span(self) -> Span {
        Span { trace: self.trace, service: self.service, instance: self.instance, host: self.host, ..Span::default() }
    }
}

/// Takes a segment or subsegment; gives its identifier.
fn take(builder: &mut Builder<'_>, own: Record<'_>, mut span: Span) -> SpanId {
    builder.open();
    span.id = builder.spans.span_id(&own.text(&["id"]));
    let text = |path: &[&str]| own.at(path).and_then(Value::as_str).unwrap_or_default();
    let (method, url) = (text(&["http", "request", "method"]), text(&["http", "request", "url"]));
    let name = match span.kind {
        SpanKind::Client if !text(&["aws", "operation"]).is_empty() => text(&["aws", "operation"]).to_owned(),
        SpanKind::Server | SpanKind::Client if !url.is_empty() => {
            format!("{method} {}", path_of(url)).trim_start().to_owned()
        }
        _ => own.text(&["name"]).into_owned(),
    };
    span.name = builder.names.intern(&name);
    if span.kind == SpanKind::Client {
        tell(builder, Meaning::Peer(0), &own.text(&["name"]));
    }
    for (prefix, key) in
        [("", "annotations"), ("http", "http"), ("aws", "aws"), ("sql", "sql"), ("metadata", "metadata")]
    {
        if let Some(members) = own.object(key) {
            attributes(builder, prefix, members);
        }
    }
    if let Some(status) = own.at(&["http", "response", "status"]) {
        builder.scalar.set_value(status);
        builder.attribute("http.status_code");
    }
    if ["fault", "error", "throttle"].into_iter().any(|key| own.truth(key)) {
        builder.open.status = Status::Error;
    }
    span.first_link = builder.spans.links.len() as u32;
    for link in own.list("links").iter().filter_map(Record::of) {
        let trace = builder.spans.trace_id(&trace_text(&link.text(&["trace_id"])));
        let target = builder.spans.span_id(&link.text(&["id"]));
        if target.is_some() {
            builder.spans.links.push(Link { trace: if trace.is_some() { trace } else { span.trace }, span: target });
        }
    }
    span.links = builder.spans.links.len() as u32 - span.first_link;
    let id = span.id;
    builder.apply_attributes_but_service(&mut span);
    // A queue is asked for messages, for up to 20 s where it has none.
    if span.kind == SpanKind::Client && text(&["aws", "operation"]) == "ReceiveMessage" {
        span.messaging = Messaging::Receive;
    }
    let end = if own.truth("in_progress") { None } else { seconds(own, "end_time") };
    builder.finish(span, seconds(own, "start_time"), end);
    id
}

fn seconds(own: Record<'_>, key: &str) -> Option<i64> {
    own.any(&[key]).and_then(|value| time(value, 1_000_000_000))
}

/// `1-5759e988-bd862e3fe1be46a994272793` as the 32 digits that OpenTelemetry makes of it.
fn trace_text(text: &str) -> String {
    let mut parts = text.splitn(3, '-');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("1"), Some(time), Some(rest)) if time.len() == 8 && rest.len() == 24 => format!("{time}{rest}"),
        _ => text.to_owned(),
    }
}

/// The path of a URL, without what is asked for; the text itself where it is a path.
fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest.find('/').map_or("/", |at| &rest[at..]));
    rest.split(['?', '#']).next().unwrap_or_default()
}
