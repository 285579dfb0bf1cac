//! How fast spans are read from the encodings of OTLP, against only parsing the same bytes.
//!
//! `cargo bench -p dyelog-trace --bench readers`. The input is 10^5 spans of six services, a request a hundred spans, with three attributes a span: a
//! request a line, and all requests in one document. Each way is run in turn, and the least of its times is shown: with the
//! bytes a second, and as a multiple of the best bare parse of the same bytes. The bare parse of JSON is that of serde_json; parsers that
//! work on many bytes at once are in `benches/simd`, a package by itself for the crates that they bring.

mod otlp;

use std::hint::black_box;
use std::time::{Duration, Instant};

use dyelog_diagnostic::names::Names;
use dyelog_trace::spans::SpanOptions;
use dyelog_trace::{Format, spans};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use otlp::{SPANS, bare, count, lines_of};
use prost::Message as _;

/// How often each way is run.
const RUNS: usize = 7;

fn spans_of(format: Format, bytes: &[u8], threads: usize) {
    let options = SpanOptions { strict: true, threads, ..SpanOptions::default() };
    let mut names = Names::new();
    let read = spans::collect_with(format, "bench", black_box(bytes), &options, &mut names);
    let (spans, _) = read.expect("it is sound");
    assert_eq!(spans.spans.len(), SPANS);
}

/// A way to read some bytes.
struct Way<'a> {
    what: &'static str,
    bytes: usize,
    read: Box<dyn Fn() + 'a>,
    least: Duration,
}

impl<'a> Way<'a> {
    fn new(what: &'static str, bytes: &'a [u8], read: impl Fn(&'a [u8]) + 'a) -> Self {
        Self { what, bytes: bytes.len(), read: Box::new(move || read(bytes)), least: Duration::MAX }
    }
}

fn run(ways: &mut [Way<'_>]) {
    for _ in 0..RUNS {
        for way in &mut *ways {
            let begin = Instant::now();
            (way.read)();
            way.least = way.least.min(begin.elapsed());
        }
    }
}

/// Shows each way beside the best of the bare ones.
fn show(title: &str, ways: &[Way<'_>]) -> Duration {
    let bare = ways.iter().filter(|way| way.what.starts_with("bare")).map(|way| way.least).min().expect("there is one");
    println!("{title}");
    for way in ways {
        let (least, rate) = (way.least.as_secs_f64(), way.bytes as f64 / 1e6 / way.least.as_secs_f64());
        println!("  {:<44} {:>8.1} ms {rate:>8.0} MB/s {:>6.2}", way.what, least * 1e3, least / bare.as_secs_f64());
    }
    ways[0].least
}

fn main() {
    let (document, lines) = (otlp::document(), otlp::lines());
    let one = serde_json::to_vec(&document).expect("it can be written");
    let protobuf = document.encode_to_vec();

    let mut of_lines = [
        Way::new("spans of dyelog, one thread", &lines, |bytes| spans_of(Format::Otlp, bytes, 1)),
        Way::new("spans of dyelog, two threads", &lines, |bytes| spans_of(Format::Otlp, bytes, 2)),
        Way::new("bare, serde_json", &lines, |bytes| {
            let read = lines_of(black_box(bytes))
                .map(|line| serde_json::from_slice::<bare::Request>(line).expect("it is sound"));
            assert_eq!(read.collect::<Vec<_>>().iter().map(count).sum::<usize>(), SPANS);
        }),
        Way::new("structures of the OTLP library, serde_json", &lines, |bytes| {
            let parse = |line| serde_json::from_slice::<ExportTraceServiceRequest>(line).expect("it is sound");
            black_box(lines_of(black_box(bytes)).map(parse).collect::<Vec<_>>());
        }),
    ];
    run(&mut of_lines);
    let json = show("JSON, a request a line", &of_lines);

    let mut of_one = [
        Way::new("spans of dyelog, one thread", &one, |bytes| spans_of(Format::Otlp, bytes, 1)),
        Way::new("spans of dyelog, two threads", &one, |bytes| spans_of(Format::Otlp, bytes, 2)),
        Way::new("bare, serde_json", &one, |bytes| {
            let read = serde_json::from_slice::<bare::Request>(black_box(bytes)).expect("it is sound");
            assert_eq!(count(&read), SPANS);
        }),
    ];
    run(&mut of_one);
    show("JSON, one document", &of_one);

    let mut of_protobuf = [
        Way::new("spans of dyelog, one thread", &protobuf, |bytes| spans_of(Format::OtlpProto, bytes, 1)),
        Way::new("spans of dyelog, two threads", &protobuf, |bytes| spans_of(Format::OtlpProto, bytes, 2)),
        Way::new("bare, prost", &protobuf, |bytes| {
            black_box(ExportTraceServiceRequest::decode(black_box(bytes)).expect("it is sound"));
        }),
    ];
    run(&mut of_protobuf);
    let binary = show("Protobuf", &of_protobuf);
    println!("Protobuf is {:.1} times as fast as JSON, span by span", json.as_secs_f64() / binary.as_secs_f64());
}
