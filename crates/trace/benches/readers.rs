//! How fast spans are read from the encodings of OTLP, against only parsing the same bytes.
//!
//! `cargo bench -p dyelog-trace --bench readers`. The input is 10^5 spans of six services, a resource each a hundred traces, with three
//! attributes a span.

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use dyelog_diagnostic::names::Names;
use dyelog_trace::Format;
use dyelog_trace::spans;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;

fn main() {
    divan::main();
}

const SPANS: usize = 100_000;
const SERVICES: [&str; 6] = ["frontend", "search", "geo", "rate", "reservation", "profile"];

fn text(key: &str, value: &str) -> KeyValue {
    let value = Some(AnyValue { value: Some(any_value::Value::StringValue(value.into())) });
    KeyValue { key: key.into(), value, ..KeyValue::default() }
}

fn request() -> ExportTraceServiceRequest {
    let span = |number: usize| {
        let start = 1_700_000_000_000_000_000 + number as u64 * 25_000;
        Span {
            trace_id: (number as u128 / 6 + 1).to_be_bytes().to_vec(),
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
    let resources = (0..SPANS / 100).map(|block| ResourceSpans {
        resource: Some(Resource { attributes: vec![text("service.name", SERVICES[block % 6])], ..Resource::default() }),
        scope_spans: vec![ScopeSpans {
            spans: (0..100).map(|number| span(block * 100 + number)).collect(),
            ..ScopeSpans::default()
        }],
        ..ResourceSpans::default()
    });
    ExportTraceServiceRequest { resource_spans: resources.collect() }
}

fn collect(bencher: Bencher<'_, '_>, format: Format, bytes: &[u8]) {
    bencher.counter(BytesCount::new(bytes.len())).counter(ItemsCount::new(SPANS)).bench_local(|| {
        let mut names = Names::new();
        let (spans, _) = spans::collect(format, "bench", black_box(bytes), true, &mut names).expect("it is sound");
        assert_eq!(spans.spans.len(), SPANS);
        spans
    });
}

#[divan::bench(sample_count = 10)]
fn json_to_spans(bencher: Bencher<'_, '_>) {
    collect(bencher, Format::Otlp, &serde_json::to_vec(&request()).expect("it can be written"));
}

#[divan::bench(sample_count = 10)]
fn protobuf_to_spans(bencher: Bencher<'_, '_>) {
    collect(bencher, Format::OtlpProto, &request().encode_to_vec());
}

/// What the library of OTLP makes of the same bytes: its own structures.
#[divan::bench(sample_count = 10)]
fn json_by_its_library(bencher: Bencher<'_, '_>) {
    let bytes = serde_json::to_vec(&request()).expect("it can be written");
    bencher
        .counter(BytesCount::new(bytes.len()))
        .counter(ItemsCount::new(SPANS))
        .bench_local(|| serde_json::from_slice::<ExportTraceServiceRequest>(black_box(&bytes)).expect("it is sound"));
}

/// What the library of OTLP makes of the same bytes: its own structures.
#[divan::bench(sample_count = 10)]
fn protobuf_by_its_library(bencher: Bencher<'_, '_>) {
    let bytes = request().encode_to_vec();
    bencher
        .counter(BytesCount::new(bytes.len()))
        .counter(ItemsCount::new(SPANS))
        .bench_local(|| ExportTraceServiceRequest::decode(black_box(bytes.as_slice())).expect("it is sound"));
}
