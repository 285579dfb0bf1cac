//! Metrics: what counters, deltas and gauges come to, and what models make of it.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use dyelog::lqn::{Body, Entry};
use dyelog_server::answer::Answer;
use dyelog_server::journal::medium::Memory;
use dyelog_server::journal::{Journal, Kind, Record};
use dyelog_server::meter::{Counted, Meter};
use dyelog_server::metered::{Metered, unknown_sampling};
use dyelog_server::period::Period;
use dyelog_server::recorded::Recorded;
use dyelog_server::store::Store;
use dyelog_server::worker::{Worker, Working};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, DataPointFlags, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;

use crate::program::Program;
use crate::support::{BEGIN, SECOND, request, trace};

const DELTA: i32 = AggregationTemporality::Delta as i32;
const CUMULATIVE: i32 = AggregationTemporality::Cumulative as i32;

fn metrics(service: &str, name: &str, data: metric::Data) -> Vec<u8> {
    let value = Some(AnyValue { value: Some(any_value::Value::StringValue(service.to_owned())) });
    let attribute = KeyValue { key: "service.name".to_owned(), value, ..KeyValue::default() };
    let metric = Metric { name: name.to_owned(), data: Some(data), ..Metric::default() };
    let own = ResourceMetrics {
        resource: Some(Resource { attributes: vec![attribute], ..Resource::default() }),
        scope_metrics: vec![ScopeMetrics { metrics: vec![metric], ..ScopeMetrics::default() }],
        ..ResourceMetrics::default()
    };
    ExportMetricsServiceRequest { resource_metrics: vec![own] }.encode_to_vec()
}

fn number(start: u64, time: u64, value: f64) -> NumberDataPoint {
    let value = Some(number_data_point::Value::AsDouble(value));
    NumberDataPoint { start_time_unix_nano: start, time_unix_nano: time, value, ..NumberDataPoint::default() }
}

fn counter(temporality: i32, points: &[(u64, u64, f64)]) -> metric::Data {
    let data_points = points.iter().map(|(start, time, value)| number(BEGIN + start, BEGIN + time, *value)).collect();
    metric::Data::Sum(Sum { data_points, aggregation_temporality: temporality, is_monotonic: true })
}

/// By how much totals grew, all series together.
fn grown(meter: &Meter) -> f64 {
    let all = meter.fresh();
    let series = all.chunk_by(|one, other| one.0 == other.0);
    series.map(|own| own[own.len() - 1].2 - own[0].2).sum()
}

#[test]
fn temporality_and_resets_make_no_difference() {
    let ten = 10 * SECOND;
    // 3 s of a processor in each 10 s; the counter is set back twice, once to more than it was.
    let cumulative =
        [(0, ten, 3.0), (0, 2 * ten, 6.0), (2 * ten, 3 * ten, 3.0), (3 * ten, 4 * ten, 3.0), (3 * ten, 5 * ten, 6.0)];
    let delta =
        [(0, ten, 3.0), (ten, 2 * ten, 3.0), (2 * ten, 3 * ten, 3.0), (3 * ten, 4 * ten, 3.0), (4 * ten, 5 * ten, 3.0)];
    let take = |temporality, points: &[(u64, u64, f64)]| {
        let mut meter = Meter::default();
        for point in points {
            let bytes = metrics("stock", "process.cpu.time", counter(temporality, &[*point]));
            let first = meter.take(&bytes, BEGIN + point.1);
            assert_eq!((first.received, first.used), (1, 1));
            // What comes again counts once.
            let again = meter.take(&bytes, BEGIN + point.1);
            assert_eq!((again.used, again.late), (0, 1));
        }
        meter
    };
    let (cumulative, delta) = (take(CUMULATIVE, &cumulative), take(DELTA, &delta));
    assert_eq!((grown(&cumulative), grown(&delta)), (12.0, 15.0));
    assert_eq!(cumulative.fresh()[0].0.counts, Counted::Seconds);
    // A gauge of 0.3 cores.
    let mut gauge = Meter::default();
    for at in 0..=5 {
        let data_points = vec![number(0, BEGIN + at * ten, 0.3)];
        let bytes = metrics("stock", "container.cpu.usage", metric::Data::Gauge(Gauge { data_points }));
        gauge.take(&bytes, BEGIN + at * ten);
    }
    assert!((grown(&gauge) - 15.0).abs() < 1e-9);
}

/// What the Prometheus receiver of a Collector writes where a scrape failed, or a target is gone: a value of 0 that was not recorded.
#[test]
fn points_without_a_recorded_value_set_nothing_back() {
    let flags = DataPointFlags::NoRecordedValueMask as u32;
    let of = |time: u64, value: u64| {
        let (start_time_unix_nano, time_unix_nano) = (BEGIN - 36_000 * SECOND, BEGIN + time * SECOND);
        let flags = if value == 0 { flags } else { 0 };
        let number = NumberDataPoint { flags, ..number(start_time_unix_nano, time_unix_nano, value as f64) };
        let sum = Sum { data_points: vec![number], aggregation_temporality: CUMULATIVE, is_monotonic: true };
        let histogram =
            HistogramDataPoint { flags, count: value, start_time_unix_nano, time_unix_nano, ..Default::default() };
        let histogram = Histogram { data_points: vec![histogram], aggregation_temporality: CUMULATIVE };
        let (sum, histogram) = (metric::Data::Sum(sum), metric::Data::Histogram(histogram));
        [metrics("shop", "process.cpu.time", sum), metrics("shop", "http.server.request.duration", histogram)]
    };
    for (number, values) in [[36_000, 36_010, 36_020], [36_000, 0, 36_020], [0, 36_010, 36_020]].iter().enumerate() {
        let mut meter = Meter::default();
        for (at, value) in (0..).zip(values) {
            for bytes in of(30 * at, *value) {
                let points = meter.take(&bytes, BEGIN + 30 * at * SECOND);
                let is_none = u64::from(*value == 0);
                assert_eq!((points.received, points.used, points.no_value), (1, 1 - is_none, is_none));
            }
        }
        // A point that is none does not begin a series, either.
        assert_eq!(grown(&meter), if number < 2 { 40.0 } else { 20.0 });
    }
    let mut gauge = Meter::default();
    for at in 0..=2 {
        let own = NumberDataPoint { flags: if at == 1 { flags } else { 0 }, ..number(0, BEGIN + at * SECOND, 0.5) };
        gauge.take(
            &metrics("s", "container.cpu.usage", metric::Data::Gauge(Gauge { data_points: vec![own] })),
            BEGIN + SECOND,
        );
    }
    assert_eq!(grown(&gauge), 1.0);
}

/// Three processes say no more than the name of their service, and count since hours ago; a fourth begins while others are watched.
#[test]
fn processes_of_one_name_are_told_apart_by_their_begins() {
    let mut meter = Meter::default();
    let mut take = |start: u64, time: u64, value: f64| {
        let bytes = metrics("shop", "process.cpu.time", counter(CUMULATIVE, &[(start, time, value)]));
        assert_eq!(meter.take(&bytes, BEGIN + time).used, 1);
    };
    for minute in 1..=10_u64 {
        for (process, before) in [(1, 9000.0), (2, 7000.0), (3, 8000.0)] {
            take(process, 60 * minute * SECOND + process, before + 6.0 * minute as f64);
        }
        if minute > 4 {
            take(270 * SECOND, 60 * minute * SECOND + 9, 0.1 * (60.0 * minute as f64 - 270.0));
        }
    }
    let expected = 3.0 * 9.0 * 6.0 + 0.1 * 330.0;
    assert!((grown(&meter) - expected).abs() < 1e-9, "{} for {expected}", grown(&meter));
}

/// Senders that try again side by side bring what came before after what came later.
#[test]
fn deltas_out_of_order_count_once() {
    let mut meter = Meter::default();
    let mut take = |at: u64| {
        let bytes =
            metrics("shop", "process.cpu.time", counter(DELTA, &[(10 * at * SECOND, 10 * (at + 1) * SECOND, 3.0)]));
        meter.take(&bytes, BEGIN + 1000 * SECOND).used
    };
    let order = [1, 0, 4, 2, 3, 7, 6, 5, 8, 30, 29, 28];
    assert!(order.iter().all(|at| take(*at) == 1));
    assert!(order.iter().all(|at| take(*at) == 0));
    // What came first has its begin 10 s later than the earliest.
    assert_eq!(meter.fresh().last().map(|own| own.2), Some(36.0));
}

#[test]
fn impossible_points_and_one_series_too_many_are_set_aside() {
    let mut meter = Meter::default();
    let one = |time: u64, value: f64| metrics("s", "process.cpu.time", counter(CUMULATIVE, &[(0, time, value)]));
    assert_eq!(meter.take(&one(SECOND, f64::NAN), BEGIN).set_aside, 1);
    assert_eq!(meter.take(&one(SECOND, -1.0), BEGIN).set_aside, 1);
    assert_eq!(meter.take(&one(3600 * SECOND, 1.0), BEGIN).set_aside, 1);
    for number in 0..20_000 {
        let bytes = metrics(&format!("s{number}"), "process.cpu.time", counter(CUMULATIVE, &[(0, 1, 1.0)]));
        assert_eq!(meter.take(&bytes, BEGIN).used, 1);
    }
    assert_eq!(meter.take(&metrics("t", "process.cpu.time", counter(CUMULATIVE, &[(0, 1, 1.0)])), BEGIN).set_aside, 1);
    let others = meter.take(&metrics("t", "queue.size", counter(CUMULATIVE, &[(0, 1, 1.0)])), BEGIN);
    assert_eq!((others.received, others.used, others.set_aside), (1, 0, 0));
}

/// A minute's points of so many instances.
fn instances(names: std::ops::Range<u64>, minute: u64, value: f64) -> Vec<(u64, Vec<u8>)> {
    let one = |number| {
        let data = counter(CUMULATIVE, &[(0, minute * 60 * SECOND, value)]);
        (minute * 60 * SECOND, metrics(&format!("s{number}"), "process.cpu.time", data))
    };
    names.map(one).collect()
}

#[test]
fn series_that_are_silent_make_room_and_come_back_as_others() {
    let mut meter = Meter::default();
    let mut take = |names, minute: u64, value| {
        let points = instances(names, minute, value);
        points.iter().map(|(_, bytes)| meter.take(bytes, BEGIN + minute * 60 * SECOND).used).sum::<u64>()
    };
    assert_eq!(take(0..20_000, 1, 1.0), 20_000);
    assert_eq!(take(0..1, 10, 2.0), 1);
    // All say when they began, and none was silent for 15 minutes yet.
    assert_eq!(take(20_000..20_001, 11, 1.0), 0);
    assert_eq!(take(20_000..20_002, 20, 1.0), 2);
    // What goes on counts on, and what comes back begins anew.
    assert_eq!((take(0..1, 21, 3.0), take(7..8, 21, 900.0)), (1, 1));
    assert_eq!(meter.series(), 4);
    let of = |name: &str| -> Vec<(u64, f64)> {
        let fresh = meter.fresh();
        let own = fresh.iter().filter(|(key, ..)| key.resources[0] == name);
        own.map(|(key, _, total, _)| (key.since.saturating_sub(BEGIN) / SECOND / 60, *total)).collect()
    };
    assert_eq!((of("s0"), of("s7")), (vec![(1, 0.0), (1, 1.0), (1, 2.0)], vec![(1, 0.0), (21, 0.0)]));
    assert_eq!(meter.no_room(), Some("process.cpu.time of s20000"));
}

#[test]
fn metrics_without_room_are_told_of_their_period_and_gone_with_all_data() {
    let sent = instances(0..20_001, 1, 1.0);
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("store.db")).unwrap();
    let memory = Memory::default();
    let mut journal = Journal::open(memory.clone(), 0).unwrap();
    let mut worker = Worker::new(Working::default(), memory, &store).unwrap();
    let records = sent.iter().map(|(at, payload)| Record {
        kind: Kind::Metrics,
        received: BEGIN + at,
        payload: payload.clone().into(),
    });
    journal.append(&records.collect::<Vec<_>>()).unwrap();
    while worker.step(journal.end()).unwrap() {}
    worker.checkpoint(&mut store).unwrap();
    assert_eq!(worker.counts().no_room_points, 1);
    let told = |store: &Store, from: u64| store.metered(BEGIN + from * SECOND, BEGIN + 90 * SECOND).unwrap().missing();
    let words = "metrics of this period are missing: from 2023-11-14T22:14:20Z to 2023-11-14T22:14:20Z there were more than 20000 series, and others were set aside";
    assert_eq!((told(&store, 0).map(|own| own.message).as_deref(), told(&store, 61)), (Some(words), None));
    let series = |store: &Store| {
        let mut count = 0;
        store.standings(|_, _| count += 1).unwrap();
        count
    };
    assert_eq!(series(&store), 20_000);
    assert_eq!(store.delete(BEGIN, BEGIN + 50 * SECOND).unwrap(), 0);
    assert_eq!(series(&store), 20_000);
    store.delete(BEGIN, BEGIN + 90 * SECOND).unwrap();
    assert_eq!(series(&store), 0);
    store.clear().unwrap();
    worker.forget();
    assert_eq!((worker.series(), worker.counts().no_room), ((0, None), None));
}

/// A store with a period of traces, of which nothing tells how they were sampled, and metrics.
fn of_period(metrics: &[(u64, Vec<u8>)]) -> Store {
    let folder = tempfile::tempdir().unwrap();
    let store = of_period_at(&folder.path().join("store.db"), metrics);
    // The file is gone with its folder; what is open stays.
    std::mem::forget(folder);
    store
}

/// The same with four requests for each that was traced, and a quarter of a processor.
pub fn metered_at(path: &Path) -> Store {
    of_period_at(path, &four_times())
}

fn four_times() -> Vec<(u64, Vec<u8>)> {
    let requests = |second: u64| {
        let point = HistogramDataPoint {
            start_time_unix_nano: BEGIN - 1000 * SECOND,
            time_unix_nano: BEGIN + second * SECOND,
            count: 5000 + 16 * second,
            ..HistogramDataPoint::default()
        };
        let data = Histogram { data_points: vec![point], aggregation_temporality: CUMULATIVE };
        metrics("shop", "http.server.request.duration", metric::Data::Histogram(data))
    };
    let busy = |second: u64| {
        let own = (0, second * SECOND, 0.25 * second as f64);
        metrics("stock", "process.cpu.time", counter(CUMULATIVE, &[own]))
    };
    (0..7).flat_map(|at| [(at, requests(10 * at)), (at, busy(10 * at))]).collect()
}

fn of_period_at(path: &Path, metrics: &[(u64, Vec<u8>)]) -> Store {
    of_period_with(path, metrics, |number| u128::from(number + 1))
}

/// The same with identifiers of their own for traces.
fn of_period_with(path: &Path, metrics: &[(u64, Vec<u8>)], id: impl Fn(u64) -> u128) -> Store {
    let mut store = Store::open(path).unwrap();
    let memory = Memory::default();
    let mut journal = Journal::open(memory.clone(), 0).unwrap();
    let mut worker = Worker::new(Working::default(), memory.clone(), &store).unwrap();
    let with_id = |number: u64| {
        let mut spans = trace(number, BEGIN + number * SECOND / 4, &[3, 4]);
        for (_, span) in &mut spans {
            span.trace_id = id(number).to_be_bytes().to_vec();
        }
        spans
    };
    let spans: Vec<_> = (0..200).flat_map(with_id).collect();
    journal
        .append(&[Record { kind: Kind::Traces, received: BEGIN + 50 * SECOND, payload: request(&spans).into() }])
        .unwrap();
    for (at, payload) in metrics {
        let received = BEGIN + 50 * SECOND + at;
        journal.append(&[Record { kind: Kind::Metrics, received, payload: payload.clone().into() }]).unwrap();
        // A server that dies between has the same totals.
        while worker.step(journal.end()).unwrap() {}
        worker.checkpoint(&mut store).unwrap();
        worker = Worker::new(Working::default(), memory.clone(), &store).unwrap();
    }
    while worker.step(journal.end()).unwrap() {}
    worker.give_out_all();
    worker.checkpoint(&mut store).unwrap();
    store
}

#[test]
fn metrics_tell_rates_and_utilisation_of_a_period() {
    let store = of_period(&[]);
    let (submodel, merge) = store.period(0, u64::MAX).unwrap().unwrap();
    let why = unknown_sampling(&submodel).unwrap();
    assert_eq!(
        why,
        "the sampling of the traces of `shop browse` is not known: its rate and all utilisations are lower bounds"
    );
    // The answer has what is known, and names lower bounds.
    let answer = Answer::of(submodel, &merge, &Metered::default()).unwrap();
    let solved: serde_json::Value = serde_json::from_str(&answer.solved().unwrap()).unwrap();
    assert!(solved["scenarios"][0]["throughput"].as_f64().unwrap() > 3.0, "{solved}");
    assert_eq!(solved["findings"][0]["message"].as_str(), Some(&*why), "{}", solved["findings"]);
    assert!(answer.lqn().contains(&why));
    assert_eq!(answer.bound(), Some(why));

    let folder = tempfile::tempdir().unwrap();
    let store = metered_at(&folder.path().join("store.db"));
    let (mut submodel, _) = store.period(0, u64::MAX).unwrap().unwrap();
    let (utilisation, _) = store.metered(BEGIN, BEGIN + 60 * SECOND).unwrap().apply(&mut submodel);
    assert_eq!(unknown_sampling(&submodel), None);
    let total = submodel.scenarios.values().next().unwrap();
    let weight = total.sampled.thousandths as f64 / 1000.0 / total.operations as f64;
    assert!((weight - 4.0).abs() < 0.05, "{weight}");
    assert_eq!(utilisation.len(), 1);
    assert_eq!(utilisation[0].resources, ["stock"]);
}

#[test]
fn counted_requests_go_before_identifiers_that_fill_their_range() {
    // As a sampler leaves them that decides at random.
    let folder = tempfile::tempdir().unwrap();
    let mixed = |number: u64| {
        let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1_e995;
        let mut next = || {
            state = (state ^ (state >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb).wrapping_add(0x9e37_79b9_7f4a_7c15);
            state ^ (state >> 29)
        };
        (u128::from(next()) << 64) | u128::from(next())
    };
    let store = of_period_with(&folder.path().join("store.db"), &four_times(), mixed);
    let (mut submodel, _) = store.period(0, u64::MAX).unwrap().unwrap();
    let (_, findings) = store.metered(BEGIN, BEGIN + 60 * SECOND).unwrap().apply(&mut submodel);
    let total = submodel.scenarios.values().next().unwrap();
    let weight = total.sampled.thousandths as f64 / 1000.0 / total.operations as f64;
    assert!((weight - 4.0).abs() < 0.05, "{weight}");
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0].message, "rates follow from counted requests");
}

#[test]
fn prometheus_text_is_fetched_where_the_configuration_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (number, stream) in (1_u32..).zip(listener.incoming()) {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let body = format!(
                "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total {}\nthis is none\nqueue_size 7\n\
                 http_server_request_duration_seconds_count{{http_route=\"/\"}} {}\n",
                f64::from(number) * 0.5,
                number * 10
            );
            let _ = write!(stream, "HTTP/1.0 200 OK\r\ncontent-type: text/plain\r\n\r\n{body}");
        }
    });
    let config = folder.path().join("server.toml");
    let scrape =
        |url: &str| format!("[[scrape]]\nurl = \"{url}\"\nevery = 1\nlabels = {{ \"service.name\" = \"shop\" }}\n");
    std::fs::write(&config, scrape(&format!("http://{target}/metrics")) + &scrape("http://127.0.0.1:1/")).unwrap();
    let (program, told) = Program::start_told(&folder.path().join("store.db"), &["--config", config.to_str().unwrap()]);
    let begin = Instant::now();
    while program.figure("dyelog_metric_points_total{state=\"used\"}") < 4 {
        assert!(begin.elapsed() < Duration::from_secs(20), "not fetched in time");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(program.figure("dyelog_scrapes_total{url=\"http://127.0.0.1:1/\",outcome=\"failed\"}") > 0);
    assert!(program.figure(&format!("dyelog_scrape_unread_lines_total{{url=\"http://{target}/metrics\"}}")) > 1);
    let page = program.ask("GET", "/", &[], b"").unwrap().text();
    let left_out = "line 3 is no line of Prometheus' text, and was left out";
    assert!(page.contains("Connection refused") && page.contains("line 3 is no line of Prometheus"), "{page}");
    program.kill();
    // The server reports a failing target once, however often it fails.
    let told = std::io::read_to_string(told).unwrap();
    assert_eq!(told.matches("warning: metrics of http://127.0.0.1:1/: ").count(), 1, "{told}");
    assert_eq!(
        told.matches(&format!("warning: metrics of http://{target}/metrics: {left_out}\n")).count(),
        1,
        "{told}"
    );
    std::fs::write(&config, "[[scrape]]\nurl = \"ftp://x\"\n").unwrap();
    let refused = std::process::Command::new(env!("CARGO_BIN_EXE_dyelog-server"))
        .args(["--config", config.to_str().unwrap(), "--store"])
        .arg(folder.path().join("store.db"))
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && words.contains("does not begin with http://"), "{words}");
}

/// A request with one attribute more of each resource.
fn on_host(payload: &[u8]) -> Vec<u8> {
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    let host = || {
        let value = Some(AnyValue { value: Some(any_value::Value::StringValue("host1".to_owned())) });
        KeyValue { key: "host.name".to_owned(), value, ..KeyValue::default() }
    };
    let mut read = ExportTraceServiceRequest::decode(payload).unwrap();
    for own in &mut read.resource_spans {
        own.resource.as_mut().unwrap().attributes.push(host());
    }
    read.encode_to_vec()
}

/// Metrics tell the server how many cores a service has. Its export tells the same to commands.
#[test]
fn counts_of_cores_are_servers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let count = |name: &str, at: u64, value: f64| {
        let data = metric::Data::Gauge(Gauge { data_points: vec![number(0, BEGIN + 10 * at * SECOND, value)] });
        (at, metrics("stock", name, data))
    };
    let busy = |at: u64| {
        let own = (0, 10 * at * SECOND, 2.5 * at as f64);
        (at, metrics("stock", "process.cpu.time", counter(CUMULATIVE, &[own])))
    };
    // A limit is less than what the machine has; a quota of -1 is none. What was told last holds.
    let told = [
        count("k8s.container.cpu_limit", 0, 8.0),
        count("k8s.container.cpu_limit", 3, 3.0),
        count("process.cpu.count", 3, 16.0),
        count("container_spec_cpu_quota", 3, -1.0),
    ];
    let store = of_period_at(&path, &told.into_iter().chain((0..7).map(busy)).collect::<Vec<_>>());
    let counts = store.progress().unwrap().counts;
    assert_eq!((counts.used_points, counts.set_aside_points), (11, 0));
    let period = Period { from: BEGIN, to: BEGIN + 60 * SECOND };
    let (submodel, merge) = store.period(period.from, period.to).unwrap().unwrap();
    let answer = Answer::of(submodel, &merge, &store.metered(period.from, period.to).unwrap()).unwrap();
    let lqn = answer.lqn();
    assert!(lqn.contains("`stock`: 3 cores by `k8s_container_cpu_limit` in metrics"), "{lqn}");
    let text = Recorded::of(&store, period).unwrap().unwrap().utilisation;
    let input = dyelog::pipeline::Input::new("metrics", text.clone().into_bytes());
    let read = dyelog::pipeline::read_utilisation(&[input], None).unwrap();
    let cores: Vec<(&str, f64)> = read.cores.iter().map(|own| (&*own.metric, own.cores)).collect();
    assert_eq!(cores, [("k8s_container_cpu_limit", 3.0), ("process_cpu_count", 16.0)], "{text}");
    assert_eq!(read.series.len(), 1, "{text}");
}

#[test]
fn metrics_of_some_services_of_a_processor_are_their_demand() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let mut store = Store::open(&path).unwrap();
    let memory = Memory::default();
    let mut journal = Journal::open(memory.clone(), 0).unwrap();
    let mut worker = Worker::new(Working::default(), memory, &store).unwrap();
    let spans: Vec<_> = (0..200).flat_map(|number| trace(number, BEGIN + number * SECOND / 4, &[3, 4])).collect();
    let mut records = vec![(Kind::Traces, on_host(&request(&spans)))];
    for at in 0..7 {
        let data = counter(CUMULATIVE, &[(0, 10 * at * SECOND, 0.05 * at as f64)]);
        let metric = metrics("stock", "process.cpu.time", data);
        // The resource is the first field of both messages.
        let mut read = ExportMetricsServiceRequest::decode(&*metric).unwrap();
        let value = Some(AnyValue { value: Some(any_value::Value::StringValue("host1".to_owned())) });
        let own = KeyValue { key: "host.name".to_owned(), value, ..KeyValue::default() };
        read.resource_metrics[0].resource.as_mut().unwrap().attributes.push(own);
        records.push((Kind::Metrics, read.encode_to_vec()));
    }
    let records = records.into_iter().map(|(kind, payload)| Record {
        kind,
        received: BEGIN + 70 * SECOND,
        payload: payload.into(),
    });
    journal.append(&records.collect::<Vec<_>>()).unwrap();
    while worker.step(journal.end()).unwrap() {}
    worker.give_out_all();
    worker.checkpoint(&mut store).unwrap();
    let (submodel, merge) = store.period(0, u64::MAX).unwrap().unwrap();
    let answer = Answer::of(submodel, &merge, &store.metered(BEGIN, BEGIN + 60 * SECOND).unwrap()).unwrap();
    // Of three services on the machine one was measured: 0.005 of a processor, for four calls a second.
    let words = "`process.cpu.time` tells of some of the services on processor `host1` only";
    let lqn = answer.lqn();
    assert!(lqn.contains(words) && lqn.contains("[M062]") && lqn.contains("`stock` on `host1`: 0.005"), "{lqn}");
    assert!(answer.missing().is_empty(), "{:?}", answer.missing());
    let (model, _) = dyelog::lqn::parse_any("it", &lqn).unwrap();
    let is_stock = |own: &&Entry| &*model.tasks[own.task.index()].name == "stock";
    let Body::Phases(phases) = &model.entries.iter().find(is_stock).unwrap().body else { panic!("it has phases") };
    assert!((phases[0].demand / (0.005 / 4.0) - 1.0).abs() < 0.03, "{}", phases[0].demand);
    drop(store);
    // The file for other commands names the service of each measurement, too.
    let utilisation = folder.path().join("utilisation");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_dyelog-server"))
        .args(["period", "export", "--to", "now", "--store"])
        .arg(&path)
        .arg("--utilisation")
        .arg(&utilisation)
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = std::fs::read_to_string(&utilisation).unwrap();
    assert!(text.contains("{processor=\"host1\",service_name=\"stock\",series=\"0\"}"), "{text}");
}
