//! OTLP as protobuf: what its own library writes is what the JSON encoding of the same gives, in all framings.

use dyelog_diagnostic::names::Names;
use dyelog_trace::Format;
use dyelog_trace::detect::detect;
use dyelog_trace::spans;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;

use super::show::{recorded, recorded_as};

/// Two services, a link, a trace state, attributes of all types, an event.
pub const JSON: &str = r#"{"resourceSpans":[
 {"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"web"}},{"key":"host.name","value":{"stringValue":"h1"}}]},
  "scopeSpans":[{"scope":{"name":"s","version":"1"},"spans":[
   {"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","parentSpanId":"","name":"GET /","kind":2,"traceState":"ot=th:0",
    "startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000000005000000","flags":257,
    "attributes":[{"key":"a","value":{"intValue":"-3"}},{"key":"b","value":{"arrayValue":{"values":[{"stringValue":"x"}]}}},{"key":"thread.cpu_time","value":{"doubleValue":0.001}}],
    "events":[{"timeUnixNano":"1700000000001000000","name":"e","attributes":[]}],"status":{"code":2,"message":"no"}},
   {"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b175","parentSpanId":"eee19b7ec3c1b174","name":"find","kind":3,
    "startTimeUnixNano":"1700000000001000000","endTimeUnixNano":"1700000000004000000",
    "attributes":[{"key":"peer.service","value":{"stringValue":"db"}},{"key":"ok","value":{"boolValue":true}}],"status":{}}]}]},
 {"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"db"}},{"key":"service.instance.id","value":{"stringValue":"db-1"}}]},
  "scopeSpans":[{"spans":[
   {"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b176","parentSpanId":"eee19b7ec3c1b175","name":"find","kind":2,"flags":768,
    "startTimeUnixNano":"1700000000002000000","endTimeUnixNano":"1700000000003000000","attributes":[],"status":{},
    "links":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b177","traceState":"","attributes":[]}]}]}]}]}"#;

/// A request, by the library of OTLP.
pub fn request(json: &str) -> ExportTraceServiceRequest {
    serde_json::from_str(json).expect("the library reads its JSON")
}

fn delimited(messages: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for message in messages {
        prost::encoding::encode_varint(message.len() as u64, &mut bytes);
        bytes.extend(message);
    }
    bytes
}

fn prefixed(messages: &[Vec<u8>]) -> Vec<u8> {
    let framed = messages.iter().map(|message| [&(message.len() as u32).to_be_bytes()[..], message].concat());
    framed.collect::<Vec<_>>().concat()
}

/// A message for each resource.
fn split(request: &ExportTraceServiceRequest) -> Vec<Vec<u8>> {
    let one = |resource: &_| ExportTraceServiceRequest { resource_spans: vec![Clone::clone(resource)] }.encode_to_vec();
    request.resource_spans.iter().map(one).collect()
}

#[test]
fn protobuf_is_what_json_is() {
    let request = request(JSON);
    let wanted = recorded(JSON.as_bytes());
    assert_eq!(wanted.lines().count(), 3, "{wanted}");
    let whole = request.encode_to_vec();
    let packed: Vec<Vec<u8>> =
        split(&request).iter().map(|one| zstd::stream::encode_all(one.as_slice(), 3).expect("it packs")).collect();
    for bytes in [
        whole.clone(),
        split(&request).concat(),
        delimited(std::slice::from_ref(&whole)),
        delimited(&split(&request)),
        prefixed(&[whole]),
        prefixed(&split(&request)),
        prefixed(&packed),
    ] {
        assert_eq!(detect("t", &bytes), Ok(Format::OtlpProto));
        assert_eq!(recorded(&bytes), wanted);
    }
}

#[test]
fn weights_and_links_are_there() {
    let mut names = Names::new();
    let bytes = request(JSON).encode_to_vec();
    let (spans, _) = spans::collect(Format::OtlpProto, "t", bytes.as_slice(), true, &mut names).expect("it reads");
    assert!((spans.spans[0].weight - 1.0).abs() < 1e-12);
    assert!((spans.spans[0].cpu - 0.001).abs() < 1e-12);
    assert_eq!(spans.spans[2].links, 1);
    assert!(spans.spans[2].remote && !spans.spans[0].remote);
}

#[test]
fn what_is_cut_off_gives_its_good_part() {
    let request = request(JSON);
    let bytes = split(&request).concat();
    insta::assert_snapshot!("otlp_proto_cut", recorded(&bytes[..bytes.len() - 20]));
    let bytes = delimited(&split(&request));
    insta::assert_snapshot!("otlp_proto_cut_delimited", recorded(&bytes[..bytes.len() - 20]));
    // A message that is none, between two.
    let mut messages = split(&request);
    messages.insert(1, b"\x0a\x03\x0a\x7fx".to_vec());
    insta::assert_snapshot!("otlp_proto_bad_message", recorded(&delimited(&messages)));
    insta::assert_snapshot!("otlp_proto_none", recorded_as(Format::OtlpProto, b"\xff\xff hello"));
}

#[test]
fn text_and_other_bytes_are_no_protobuf() {
    for bytes in [
        &b"\n{\"a\": 1}"[..],
        b"\n[\n  {}\n]",
        b"\x00\x01\x02",
        b"\x0a\x00\x0a\x00",
        b"PK\x03\x04rest",
        b"\n\n\n\n\n\n\n\n",
        b"\n\n\n\nx",
    ] {
        assert_ne!(detect("t", bytes), Ok(Format::OtlpProto), "{bytes:?}");
    }
}
