//! Spans of a small system, and requests of them.

use dyelog::pipeline::{Input, Options, submodel};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;

/// 2023-11-14.
pub const BEGIN: u64 = 1_700_000_000_000_000_000;
pub const SECOND: u64 = 1_000_000_000;
pub const MILLI: u64 = 1_000_000;

/// A span and the service that recorded it.
pub type Recorded = (&'static str, Span);

/// A span of a trace, with its identifier and its parent's, 0 for none.
pub fn span(trace: u64, id: u64, parent: u64, name: &str, kind: i32, start: u64, end: u64) -> Span {
    Span {
        trace_id: u128::from(trace + 1).to_be_bytes().to_vec(),
        span_id: ((trace << 16) | id).to_be_bytes().to_vec(),
        parent_span_id: if parent == 0 { Vec::new() } else { ((trace << 16) | parent).to_be_bytes().to_vec() },
        name: name.to_owned(),
        kind,
        start_time_unix_nano: start,
        end_time_unix_nano: end,
        ..Span::default()
    }
}

/// A trace of an operation: `calls` tells how long each call of the frontend to a backend takes, in milliseconds.
pub fn trace(number: u64, start: u64, calls: &[u64]) -> Vec<Recorded> {
    let (server, client) = (2, 3);
    let (mut at, mut id, mut spans) = (start + MILLI, 2, Vec::new());
    for (call, length) in calls.iter().enumerate() {
        let backend = ["stock", "prices"][call % 2];
        let end = at + (length + 2) * MILLI;
        spans.push(("shop", span(number, id, 1, "GET", client, at, end)));
        spans.push((backend, span(number, id + 1, id, "find", server, at + MILLI, end - MILLI)));
        (at, id) = (end + MILLI, id + 2);
    }
    let name = if calls.len() > 2 { "order" } else { "browse" };
    spans.push(("shop", span(number, 1, 0, name, server, start, at + MILLI)));
    spans
}

/// An attribute.
pub fn text_of(key: &str, text: &str) -> KeyValue {
    let value = Some(AnyValue { value: Some(any_value::Value::StringValue(text.to_owned())) });
    KeyValue { key: key.to_owned(), value, ..KeyValue::default() }
}

/// Spans as a request.
pub fn request(spans: &[Recorded]) -> Vec<u8> {
    let resource_spans = spans.iter().map(|(service, span)| {
        // `stock#2` is an instance of `stock`.
        let (name, instance) = service.split_once('#').unwrap_or((*service, ""));
        let mut attributes = vec![text_of("service.name", name)];
        if !instance.is_empty() {
            attributes.push(text_of("service.instance.id", instance));
        }
        ResourceSpans {
            resource: Some(Resource { attributes, ..Resource::default() }),
            scope_spans: vec![ScopeSpans { spans: vec![span.clone()], ..ScopeSpans::default() }],
            ..ResourceSpans::default()
        }
    });
    ExportTraceServiceRequest { resource_spans: resource_spans.collect() }.encode_to_vec()
}

/// The sub-model that `dyelog` makes of the same spans in a file.
pub fn of_file(spans: &[Recorded]) -> String {
    let input = Input::new(dyelog_server::fold::INPUT, request(spans));
    submodel(&[input], &Options::default(), &mut ()).expect("it is a trace").saved()
}
