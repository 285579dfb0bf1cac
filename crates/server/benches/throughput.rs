//! How many spans a second one core takes in, step by step, and how long the models of the last hour, a day, a month and a year take.
//!
//! Spans have about 300 bytes, in requests of 1000 spans packed by gzip. Times of models stand beside those of the same model made one interval after the other, by one thread.
//!
//! `cargo bench -p dyelog-server -- 50` asks for models of 50 services, in place of 5.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dyelog::lqn::submodel::SubModel;
use dyelog_server::answer::Answer;
use dyelog_server::fold::Folding;
use dyelog_server::journal::medium::Folder;
use dyelog_server::journal::{Journal, Kind, Record};
use dyelog_server::metered::Metered;
use dyelog_server::parts::{History, Parts};
use dyelog_server::period::Period;
use dyelog_server::spans::each_span;
use dyelog_server::store::{LEVELS, Store};
use dyelog_server::worker::{Worker, Working};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;

const BEGIN: u64 = 1_700_000_000_000_000_000;
const MILLI: u64 = 1_000_000;
const SERVICES: [&str; 5] = ["frontend", "search", "rates", "profiles", "payment"];
const REQUESTS: u64 = 300;
const TRACES: u64 = 100;
const PER_TRACE: u64 = 10;

fn attribute(key: &str, value: &str) -> KeyValue {
    let value = Some(AnyValue { value: Some(any_value::Value::StringValue(value.to_owned())) });
    KeyValue { key: key.to_owned(), value, ..KeyValue::default() }
}

/// Traces begin so long after each other, nanoseconds: 20,000 spans a second.
const APART: u64 = MILLI / 2;

/// A trace that begins then: the frontend calls four services, one after the other.
fn trace(start: u64, number: u64) -> impl Iterator<Item = (usize, Span)> {
    trace_among(start, number, SERVICES.len())
}

/// The same of a system with so many services.
fn trace_among(start: u64, number: u64, services: usize) -> impl Iterator<Item = (usize, Span)> {
    // Each operation calls four that follow each other.
    let first = if services > SERVICES.len() { number as usize % (services - 5) } else { 0 };
    let id = move |span: u64| ((number << 8) | (span + 1)).to_be_bytes().to_vec();
    let spin = move |span: u64| (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (span * 3)) % 900_000;
    (0..PER_TRACE).map(move |span| {
        let at = start + span / 2 * 4 * MILLI + span % 2 * MILLI / 2 + spin(span) / 4;
        let (kind, service, parent, end) = match span {
            0 => (2, 0, None, start + 22 * MILLI),
            9 => (1, 0, Some(0), at + MILLI / 4),
            client if client % 2 == 1 => (3, 0, Some(0), at + 2 * MILLI + MILLI / 2),
            server => (2, first + (server / 2) as usize, Some(server - 1), at + MILLI + MILLI / 3),
        };
        let span = Span {
            trace_id: u128::from(number + 1)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
                .to_be_bytes()
                .to_vec(),
            span_id: id(span),
            parent_span_id: parent.map(id).unwrap_or_default(),
            name: if span == 0 {
                "GET /hotels".to_owned()
            } else {
                format!("rpc {}", if service == 0 { 0 } else { service - first })
            },
            kind,
            start_time_unix_nano: at.min(end),
            end_time_unix_nano: end,
            attributes: vec![
                attribute("http.request.method", "GET"),
                attribute("url.full", &format!("http://host/hotels?customer={number}&date=2026-02-15")),
                attribute("server.address", "frontend.shop.svc.cluster.local"),
                attribute("thread.name", "worker-7"),
            ],
            ..Span::default()
        };
        (service, span)
    })
}

/// A request with traces from that time on, nanoseconds since 1970.
fn request(begin: u64, number: u64) -> Vec<u8> {
    let first = number * TRACES;
    request_of((first..first + TRACES).flat_map(|number| trace(begin + number * APART, number)))
}

/// A request with spans, each with the number of its service.
fn request_of(spans: impl Iterator<Item = (usize, Span)>) -> Vec<u8> {
    let mut by_service: BTreeMap<usize, Vec<Span>> = BTreeMap::new();
    for (service, span) in spans {
        by_service.entry(service).or_default().push(span);
    }
    let name =
        |service: usize| SERVICES.get(service).map_or_else(|| format!("service-{service}"), |own| (*own).to_owned());
    let resource_spans = by_service.into_iter().map(|(service, spans)| ResourceSpans {
        resource: Some(Resource {
            attributes: vec![attribute("service.name", &name(service)), attribute("telemetry.sdk.language", "rust")],
            ..Resource::default()
        }),
        scope_spans: vec![ScopeSpans { spans, ..ScopeSpans::default() }],
        ..ResourceSpans::default()
    });
    ExportTraceServiceRequest { resource_spans: resource_spans.collect() }.encode_to_vec()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("memory takes all");
    encoder.finish().expect("memory takes all")
}

fn told(what: &str, spans: u64, took: Duration) {
    let each = took.as_secs_f64() * 1e6 / spans as f64;
    println!("{what:<28} {each:>7.3} µs a span  {:>10.0} spans/s", 1e6 / each);
}

fn take_in() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let packed: Vec<Vec<u8>> = (0..REQUESTS).map(|number| gzip(&request(BEGIN, number))).collect();
    let spans = REQUESTS * TRACES * PER_TRACE;
    let begin = Instant::now();
    let mut payloads = Vec::new();
    for packed in &packed {
        let mut bytes = Vec::new();
        GzDecoder::new(&packed[..]).read_to_end(&mut bytes).expect("it was packed here");
        each_span(&bytes, |_, span| assert!(span.is_ok())).expect("it is a request");
        payloads.push(bytes);
    }
    let received = begin.elapsed();
    let bytes: usize = payloads.iter().map(Vec::len).sum();
    println!("{spans} spans of {} bytes", bytes as u64 / spans);
    told("unpacked and checked", spans, received);
    let medium = Folder::new(&folder.path().join("journal")).expect("a scratch folder");
    let mut journal = Journal::open(medium.clone(), 0).expect("it is new");
    let begin = Instant::now();
    for (number, payload) in payloads.into_iter().enumerate() {
        let received = BEGIN + number as u64 * 50 * MILLI;
        journal.append(&[Record { kind: Kind::Traces, received, payload: payload.into() }]).expect("there is room");
    }
    let journalled = begin.elapsed();
    told("journalled, each synced", spans, journalled);
    let mut store = Store::open(&folder.path().join("store.db")).expect("it is new");
    let mut worker = Worker::new(Working::default(), medium, &store).expect("it is new");
    let begin = Instant::now();
    let mut most = 0;
    while worker.step(journal.end()).expect("it can be read") {
        most = most.max(worker.open().1);
        if worker.is_due() {
            worker.checkpoint(&mut store).expect("there is room");
        }
    }
    worker.give_out_all();
    worker.checkpoint(&mut store).expect("there is room");
    let folded = begin.elapsed();
    assert_eq!(worker.counts().folded, spans);
    told("gathered, folded, stored", spans, folded);
    told("all of it", spans, received + journalled + folded);
    println!("most memory of open spans    {:.1} MB", most as f64 * 1e-6);
    for interval in store.intervals(0, u64::MAX).expect("it can be read") {
        println!("an interval of {} s takes {} bytes", interval.length / 1_000_000_000, interval.bytes);
    }
}

/// Numbers that look random, of an interval of so many nanoseconds.
fn scattered(number: u64, length: u64) -> u64 {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11) % length
}

/// An interval with so many operations, which begin at any of its times, so that some find others at work.
fn add(store: &mut Store, (start, length): (u64, u64), (first, count): (u64, u64), services: usize) {
    let spans =
        (first..first + count).flat_map(|number| trace_among(start + scattered(number, length), number, services));
    let folded = Folding::default().fold(request_of(spans)).expect("it can be read");
    store.add_whole((start, length), start, &folded.submodel, &folded.merge).expect("there is room");
}

/// How long the model of a period takes, with what changes in it.
fn modelled(store: &Store, period: Period) -> (Duration, Duration, String) {
    let now = Instant::now();
    let (parts, sub, merge) = Parts::with_whole(store, period).expect("it can be read").expect("it has something");
    let read = now.elapsed();
    let mut answer = Answer::of(sub, &merge, &Metered::default()).expect("it can be modelled");
    answer.tell(parts.finding());
    let model = answer.lqn();
    (read, now.elapsed(), model)
}

/// The same one interval after the other: what all else is held against.
fn one_by_one(store: &Store, period: Period) -> (Duration, String) {
    let now = Instant::now();
    let (mut history, mut sum) = (History::default(), None::<(SubModel, String)>);
    for own in store.intervals(period.from, period.to).expect("it can be read") {
        let found = store.period(own.start, own.start + own.length).expect("it can be read");
        let (sub, merge) = found.expect("it has something");
        history.add(own.start, own.length, own.spans, &sub);
        match &mut sum {
            Some((all, _)) => all.merge(&sub),
            None => sum = Some((sub, merge)),
        }
    }
    history.finish();
    let (sub, merge) = sum.expect("it has something");
    let mut answer = Answer::of(sub, &merge, &Metered::default()).expect("it can be modelled");
    answer.tell(Parts::in_history(&history).finding());
    let model = answer.lqn();
    (now.elapsed(), model)
}

/// How long the model of a period takes of a store in a file.
fn told_of(what: &str, path: &Path, period: Period) {
    let store = &Store::read(path).expect("it is there");
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let rows = store.intervals(period.from, period.to).expect("it can be read");
    let bytes: u64 = rows.iter().map(|row| row.bytes).sum();
    // The second time is of a process that has its memory.
    let _ = one_by_one(store, period);
    let (alone, model) = one_by_one(store, period);
    println!(
        "{what}: {} intervals of {} bytes; one interval after the other {:.1} ms, {} bytes of model",
        rows.len(),
        bytes / rows.len() as u64,
        milliseconds(alone),
        model.len()
    );
    let remembering = Store::read(path).expect("it is there").remembering(Arc::default());
    for which in ["at first", "again"] {
        let (read, all, own) = modelled(&remembering, period);
        // Findings tell of changes, which the steps of a history decide.
        let statements =
            |model: &str| model.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
        assert_eq!(statements(&own), statements(&model), "{what} {which}");
        println!(
            "    {which:<9} read in {:>7.1} ms, modelled in {:>7.1} ms: {:.2} of that",
            milliseconds(read),
            milliseconds(all),
            all.as_secs_f64() / alone.as_secs_f64()
        );
    }
}

/// A year as a store keeps it: the last hour in intervals of 10 s, the last day in those of a minute, and so on.
fn year(services: usize) {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("store.db");
    let mut store = Store::open(&path).expect("it is new");
    let (operations, end) = (20 + services as u64, BEGIN / LEVELS[4].length * LEVELS[4].length);
    let (mut number, mut to) = (0, end);
    for level in LEVELS {
        let from = end - level.stays.min(365 * LEVELS[4].length);
        while to > from {
            to -= level.length;
            number += operations;
            add(&mut store, (to, level.length), (number, operations), services);
        }
    }
    // As a server does while nothing comes.
    while store.roll_up(end, u64::MAX).expect("there is room") {}
    for (what, days) in [("a day", 1), ("a month", 30), ("a year", 365)] {
        told_of(what, &path, Period { from: end - days * LEVELS[4].length, to: end });
    }
}

/// An hour of which nothing was rolled up yet: 360 intervals, each of as many spans as are 84 a second.
fn hour(services: usize) {
    const INTERVALS: u64 = 360;
    const TRACES: u64 = 84;
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("store.db");
    let mut store = Store::open(&path).expect("it is new");
    let length = LEVELS[0].length;
    let begin = BEGIN / length * length;
    for interval in 0..INTERVALS {
        add(&mut store, (begin + interval * length, length), (interval * TRACES, TRACES), services);
    }
    told_of("the last hour", &path, Period { from: begin, to: begin + INTERVALS * length });
}

fn main() {
    // `cargo test --benches` runs benches to see that they work: this one takes no argument and is quick enough.
    let services = std::env::args().find_map(|own| own.parse().ok()).unwrap_or(SERVICES.len());
    take_in();
    hour(services);
    year(services);
}
