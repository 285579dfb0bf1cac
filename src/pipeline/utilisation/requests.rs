//! Metrics that count the requests which a service served: those of servers of HTTP and RPC, of meshes, and what is counted of spans.
//!
//! | protocol | metrics, in the spelling of Prometheus |
//! |---|---|
//! | HTTP | `http_server_request_duration_seconds_count`, `http_server_duration_milliseconds_count`, `http_server_requests_seconds_count`, `http_requests_total`, `http_request_duration_seconds_count`, `http_requests_received_total` |
//! | RPC | `rpc_server_duration_milliseconds_count`, `rpc_server_call_duration_seconds_count`, `grpc_server_started_total`, `grpc_server_handled_total` |
//! | spans | `traces_spanmetrics_calls_total`, `traces_span_metrics_calls_total`, `calls_total` |
//! | mesh | `istio_requests_total` where the server's side reports it |
//!
//! Sources: OpenTelemetry's conventions, Micrometer, client libraries of Prometheus, Tempo's metrics generator, the Collector's span metrics, Istio.

use crate::model::requests::{Protocol, Requests};
use crate::pipeline::utilisation::metric::resources;

/// Counters without what tells their unit and kind; the first that is there counts.
const METRICS: [(&str, Protocol); 17] = [
    ("http_server_request_duration", Protocol::Http),
    ("http_server_duration", Protocol::Http),
    ("http_server_requests", Protocol::Http),
    ("http_requests", Protocol::Http),
    ("http_request_duration", Protocol::Http),
    ("http_requests_received", Protocol::Http),
    ("rpc_server_call_duration", Protocol::Rpc),
    ("rpc_server_duration", Protocol::Rpc),
    ("grpc_server_started", Protocol::Rpc),
    ("grpc_server_handled", Protocol::Rpc),
    ("istio_requests", Protocol::Mesh),
    ("traces_spanmetrics_calls", Protocol::Spans),
    ("traces_span_metrics_calls", Protocol::Spans),
    ("span_metrics_calls", Protocol::Spans),
    ("spanmetrics_calls", Protocol::Spans),
    ("traces_spanmetrics_latency", Protocol::Spans),
    ("calls", Protocol::Spans),
];

/// What a counter counts, and its place among those that may count the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    protocol: Protocol,
    rank: usize,
}

/// By the name of a metric; that of a histogram, or a sum of OTLP, need not tell that it is a count.
pub(super) fn known(name: &str, may_be_bare: bool) -> Option<Known> {
    let name = name.replace('.', "_").to_lowercase();
    let counted = ["_count", "_total"].iter().find_map(|ending| name.strip_suffix(ending));
    let base = counted.or(may_be_bare.then_some(&*name))?;
    let base = ["_milliseconds", "_seconds"].iter().find_map(|ending| base.strip_suffix(ending)).unwrap_or(base);
    let rank = METRICS.iter().position(|(own, _)| *own == base)?;
    Some(Known { protocol: METRICS[rank].1, rank })
}

/// Labels of a mesh that name who served.
const SERVED: [&str; 4] =
    ["destination_service_name", "destination_canonical_service", "destination_workload", "destination_app"];
/// Labels that name a service beside those of all resources.
const SERVICES: [&str; 3] = ["app", "application", "k8s_app"];
/// A rate stands for at most so many times the usual interval.
const LONG: f64 = 3.0;
const METHODS: [&str; 3] = ["http_request_method", "http_method", "method"];
const ROUTES: [&str; 9] =
    ["http_route", "route", "uri", "handler", "endpoint", "path_template", "path", "url_path", "http_target"];
const SPANS: [&str; 2] = ["span_name", "operation"];

/// The series of a counter; `None` where its labels say that it counts something else, such as what was asked of others.
pub(super) fn series<'l>(
    metric: &str,
    known: Known,
    labels: &(impl Iterator<Item = (&'l str, &'l str)> + Clone),
    samples: Vec<(f64, f64)>,
) -> Option<Requests> {
    let label = |names: &[&str]| {
        let own = |wanted: &&str| labels.clone().find(|(name, _)| name.replace('.', "_") == **wanted);
        names.iter().find_map(own).map(|(_, value)| value).filter(|value| !value.is_empty())
    };
    let kind = label(&["span_kind", "kind"]).unwrap_or_default().to_lowercase();
    let kind = kind.strip_prefix("span_kind_").unwrap_or(&kind);
    let asked = known.protocol == Protocol::Spans && matches!(kind, "client" | "producer" | "internal");
    let by_the_client =
        label(&["reporter"]) == Some("source") || label(&["grpc_type"]).is_some_and(|own| own.contains("client"));
    if asked || by_the_client {
        return None;
    }
    let services = if known.protocol == Protocol::Mesh {
        SERVED.iter().filter_map(|name| label(&[name])).map(str::to_owned).collect()
    } else {
        let own = SERVICES.iter().filter_map(|name| label(&[name])).map(str::to_owned);
        let mut found: Vec<String> = resources(labels).into_iter().chain(own).collect();
        // A job is `namespace/service` where metrics came by OTLP.
        found.extend(label(&["job"]).and_then(|job| Some(job.rsplit_once('/')?.1.to_owned())));
        found
    };
    let mut operations: Vec<String> = label(&SPANS).map(str::to_owned).into_iter().collect();
    let (method, route) = (label(&METHODS), label(&ROUTES));
    operations.extend(method.zip(route).map(|(method, route)| format!("{method} {route}")));
    operations.extend(route.map(str::to_owned));
    let (of, called) = (label(&["rpc_service", "grpc_service"]), label(&["rpc_method", "grpc_method"]));
    operations.extend(of.zip(called).map(|(of, called)| format!("{of}/{called}")));
    operations.extend(called.map(str::to_owned));
    operations.extend(method.into_iter().flat_map(|method| [method.to_owned(), format!("HTTP {method}")]));
    Some(Requests {
        file: "".into(),
        metric: metric.to_owned(),
        rank: known.rank,
        protocol: known.protocol,
        services,
        operations,
        samples,
    })
}

/// How values of a column follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// A count since some begin.
    Counter,
    /// Requests a second.
    PerSecond,
}

/// Rates that stand until the next one, as a counter that begins at 0.
fn integrated(rates: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut steps: Vec<f64> = rates.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    steps.sort_by(f64::total_cmp);
    let step = steps.get(steps.len() / 2).copied().unwrap_or(0.0);
    let end = |place: usize, time: f64| rates.get(place + 1).map_or(time + step, |next| next.0.min(time + LONG * step));
    let stood = rates.iter().enumerate().map(|(place, (time, rate))| (*time, end(place, *time), rate));
    summed(&mut stood.map(|(begin, end, rate)| (begin, end, rate * (end - begin))).collect::<Vec<_>>())
}

/// Counts of each interval, as a counter that begins at 0: times at which intervals begin and end, and how many requests each had.
pub(super) fn summed(intervals: &mut [(f64, f64, f64)]) -> Vec<(f64, f64)> {
    intervals.sort_by(|left, right| left.1.total_cmp(&right.1));
    let (mut sum, mut found) = (0.0, Vec::with_capacity(intervals.len() + 1));
    for (begin, end, count) in intervals {
        // Between intervals nothing grew, and what comes again was counted.
        let last = found.last().map_or(f64::NEG_INFINITY, |sample: &(f64, f64)| sample.0);
        if *end <= last {
            continue;
        }
        if *begin > last && begin < end {
            found.push((*begin, sum));
        }
        sum += *count;
        found.push((*end, sum));
    }
    found
}

/// Requests a second or a counter as the heading of a column has them, and whose they are.
pub(super) fn heading(heading: &str) -> Option<(String, Growth)> {
    const PER_SECOND: [&str; 8] =
        ["requests/s", "requests per second", "requests_per_second", "req/s", "reqs/s", "calls/s", "rps", "ops/s"];
    const COUNTERS: [&str; 4] = ["requests_total", "requests_count", "request_count", "calls_total"];
    let bare = heading.trim().trim_end_matches([')', ']', ' ']);
    let lower = bare.to_ascii_lowercase();
    let ends = |own: &[&str]| own.iter().filter(|own| lower.ends_with(**own)).map(|own| own.len()).max();
    let (cut, growth) =
        ends(&PER_SECOND).map(|cut| (cut, Growth::PerSecond)).or(ends(&COUNTERS).map(|cut| (cut, Growth::Counter)))?;
    let name = bare.get(..bare.len() - cut)?;
    // A word that merely ends so is another word.
    let is_apart = name.is_empty() || name.ends_with(['(', '[', ' ', '_', '.', ':', '-']);
    is_apart.then(|| (name.trim_end_matches(['(', '[', ' ', '_', '.', ':', '-']).trim().to_owned(), growth))
}

/// A column of requests.
pub(super) fn of_column(heading: &str, name: &str, growth: Growth, mut samples: Vec<(f64, f64)>) -> Requests {
    samples.sort_by(|left, right| left.0.total_cmp(&right.0));
    if growth == Growth::PerSecond {
        samples = integrated(&samples);
    }
    let services = if name.is_empty() { Vec::new() } else { vec![name.to_owned()] };
    let (metric, protocol) = (heading.trim().to_owned(), Protocol::Http);
    Requests { file: "".into(), metric, rank: 0, protocol, services, operations: Vec::new(), samples }
}

#[cfg(test)]
mod tests {
    use super::{Growth, heading, integrated, known, series, summed};

    #[test]
    fn counters_of_servers_are_known_and_others_are_not() {
        for name in [
            "http_server_request_duration_seconds_count",
            "http_server_duration_milliseconds_count",
            "http_requests_total",
            "rpc_server_call_duration_seconds_count",
            "traces_spanmetrics_calls_total",
            "calls_total",
            "istio_requests_total",
        ] {
            assert!(known(name, false).is_some(), "{name}");
        }
        assert!(known("http.server.request.duration", true).is_some());
        for name in [
            "http_server_request_duration_seconds_bucket",
            "http_server_request_duration_seconds_sum",
            "http_client_request_duration_seconds_count",
            "http_server_active_requests",
            "phone_calls_total",
            "",
        ] {
            assert_eq!(known(name, false), None, "{name}");
        }
    }

    #[test]
    fn labels_tell_services_and_operations() {
        let of = |name: &str, labels: &[(&str, &str)]| {
            let found = series(name, known(name, false)?, &labels.iter().copied(), Vec::new())?;
            Some((found.services, found.operations))
        };
        let (services, operations) = of(
            "http_server_request_duration_seconds_count",
            &[("job", "shop/web"), ("http_request_method", "GET"), ("http_route", "/a/{id}")],
        )
        .expect("it counts");
        assert!(services.contains(&"web".to_owned()));
        assert_eq!(operations[..2], ["GET /a/{id}", "/a/{id}"]);
        let calls = "traces_spanmetrics_calls_total";
        assert!(of(calls, &[("service", "web"), ("span_kind", "SPAN_KIND_CLIENT")]).is_none());
        assert!(of(calls, &[("service", "web"), ("span_kind", "SPAN_KIND_SERVER")]).is_some());
        assert!(of("istio_requests_total", &[("reporter", "source")]).is_none());
    }

    #[test]
    fn counts_of_intervals_add_up() {
        let mut own = [(10.0, 20.0, 5.0), (0.0, 10.0, 3.0), (0.0, 10.0, 3.0), (30.0, 40.0, 2.0)];
        assert_eq!(summed(&mut own), [(0.0, 0.0), (10.0, 3.0), (20.0, 8.0), (30.0, 8.0), (40.0, 10.0)]);
    }

    #[test]
    fn rates_add_up_while_they_stand() {
        let found = integrated(&[(0.0, 2.0), (10.0, 4.0), (20.0, 1.0), (100.0, 3.0)]);
        assert_eq!(found, [(0.0, 0.0), (10.0, 20.0), (20.0, 60.0), (50.0, 90.0), (100.0, 90.0), (110.0, 120.0)]);
    }

    #[test]
    fn headings_tell_requests() {
        assert_eq!(heading("web (requests/s)"), Some(("web".to_owned(), Growth::PerSecond)));
        assert_eq!(heading("web_requests_total"), Some(("web".to_owned(), Growth::Counter)));
        assert_eq!(heading("rps"), Some((String::new(), Growth::PerSecond)));
        for other in ["corps", "web (%)", "requests", "µrps"] {
            assert_eq!(heading(other), None, "{other}");
        }
    }
}
