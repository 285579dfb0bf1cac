//! The input of the benchmarks of spans, and the structures that a bare parse makes of it.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};

/// The same structures as a bare parse makes them: what of a span a reader needs, in strings of their own.
#[expect(clippy::struct_field_names, reason = "they are the names of OTLP")]
pub mod bare {
    use serde::Deserialize;

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    #[derive(Default)]
    pub struct Request {
        pub resource_spans: Vec<ResourceSpans>,
    }

    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    pub struct ResourceSpans {
        pub resource: Resource,
        pub scope_spans: Vec<ScopeSpans>,
    }

    #[derive(Deserialize, Default)]
    #[serde(default)]
    pub struct Resource {
        pub attributes: Vec<Attribute>,
    }

    #[derive(Deserialize, Default)]
    #[serde(default)]
    pub struct ScopeSpans {
        pub spans: Vec<Span>,
    }

    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    pub struct Span {
        pub trace_id: String,
        pub span_id: String,
        pub parent_span_id: String,
        pub name: String,
        pub kind: u8,
        pub start_time_unix_nano: String,
        pub end_time_unix_nano: String,
        pub attributes: Vec<Attribute>,
    }

    #[derive(Deserialize, Default)]
    #[serde(default)]
    pub struct Attribute {
        pub key: String,
        pub value: Value,
    }

    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    pub struct Value {
        pub string_value: Option<String>,
        pub int_value: Option<String>,
        pub double_value: Option<f64>,
        pub bool_value: Option<bool>,
    }
}

/// How many spans there are.
pub const SPANS: usize = 100_000;
/// How many spans a request has.
pub const BLOCK: usize = 100;
const SERVICES: [&str; 6] = ["frontend", "search", "geo", "rate", "reservation", "profile"];

fn text(key: &str, value: &str) -> KeyValue {
    let value = Some(AnyValue { value: Some(any_value::Value::StringValue(value.into())) });
    KeyValue { key: key.into(), value, ..KeyValue::default() }
}

fn block(number: usize) -> ResourceSpans {
    let span = |number: usize| {
        let start = 1_700_000_000_000_000_000 + number as u64 * 25_000;
        Span {
            trace_id: ((number as u128 / 6 + 1) << 64 | 0x5eed).to_be_bytes().to_vec(),
            span_id: (number as u64 + 1).to_be_bytes().to_vec(),
            parent_span_id: if number.is_multiple_of(6) { Vec::new() } else { (number as u64).to_be_bytes().to_vec() },
            name: format!("/{0}.{0}/Get", SERVICES[number % 6]),
            kind: 2,
            start_time_unix_nano: start,
            end_time_unix_nano: start + 20_000,
            attributes: vec![text("component", "gRPC"), text("http.method", "GET"), text("net.host.name", "10.0.0.1")],
            ..Span::default()
        }
    };
    ResourceSpans {
        resource: Some(Resource {
            attributes: vec![text("service.name", SERVICES[number % 6])],
            ..Resource::default()
        }),
        scope_spans: vec![ScopeSpans {
            spans: (0..BLOCK).map(|at| span(number * BLOCK + at)).collect(),
            ..ScopeSpans::default()
        }],
        ..ResourceSpans::default()
    }
}

/// All spans, a request a block.
pub fn requests() -> Vec<ExportTraceServiceRequest> {
    (0..SPANS / BLOCK).map(|number| ExportTraceServiceRequest { resource_spans: vec![block(number)] }).collect()
}

/// All spans in one request.
pub fn document() -> ExportTraceServiceRequest {
    ExportTraceServiceRequest { resource_spans: (0..SPANS / BLOCK).map(block).collect() }
}

/// Requests as lines of JSON.
pub fn lines() -> Vec<u8> {
    let line = |request| {
        let mut line = serde_json::to_vec(&request).expect("it can be written");
        line.push(b'\n');
        line
    };
    requests().into_iter().flat_map(line).collect()
}

/// The lines that have something on them.
pub fn lines_of(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// How many spans were parsed.
pub fn count(request: &bare::Request) -> usize {
    request.resource_spans.iter().flat_map(|block| &block.scope_spans).map(|scope| scope.spans.len()).sum()
}
