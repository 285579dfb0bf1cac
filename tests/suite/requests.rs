//! Counters of requests beside sampled traces, against arrivals that are known.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::servers::{spans, station};
use crate::submodel::run;

/// When the spans of tests begin, seconds since 1970.
const EPOCH: u64 = 1_700_000_000;

/// How many requests had arrived by each second, in two halves: of two instances.
fn counts(stays: &[(f64, f64)]) -> Vec<(u64, u64, u64)> {
    let last = stays.iter().map(|stay| stay.0).fold(0.0, f64::max) as u64 + 2;
    let by = |second: u64| stays.iter().filter(|stay| stay.0 < second as f64).count() as u64;
    (0..=last).map(|second| (EPOCH + second, by(second) / 3, by(second) - by(second) / 3)).collect()
}

/// The same counters in all forms.
fn forms(stays: &[(f64, f64)]) -> Vec<(&'static str, String)> {
    let counts = counts(stays);
    let (mut text, mut mesh) = (String::from("# TYPE http_requests_total counter\n"), String::new());
    let (mut rate, mut sum) = ("time,host (requests/s)\n".to_owned(), "time,host_requests_total\n".to_owned());
    let (mut values, mut points, mut deltas) = (Vec::new(), Vec::new(), Vec::new());
    for (place, (time, one, other)) in counts.iter().enumerate() {
        // One instance is restarted on the way, and has counted since long before.
        let half = counts[counts.len() / 2].1;
        let own = if place > counts.len() / 2 { one - half } else { one + 70_000 };
        let labels = "service=\"host\",method=\"POST\",path=\"/serve\"";
        let _ = writeln!(text, "http_requests_total{{{labels},instance=\"a:80\"}} {own} {time}000");
        let _ = writeln!(text, "http_requests_total{{{labels},instance=\"b:80\"}} {other} {time}000");
        let _ = writeln!(text, "http_request_duration_seconds_bucket{{service=\"host\",le=\"1\"}} {other} {time}000");
        let of = "destination_workload=\"host\"";
        let _ = writeln!(mesh, "istio_requests_total{{reporter=\"destination\",{of}}} {} {time}000", one + other);
        let _ = writeln!(mesh, "istio_requests_total{{reporter=\"source\",{of}}} {} {time}000", one + other);
        let _ = writeln!(sum, "{time},{}", one + other);
        values.push(format!("[{time},\"{}\"]", one + other));
        let count = one + other;
        let start = EPOCH - 5;
        points.push(format!(
            "{{\"startTimeUnixNano\":\"{start}000000000\",\"timeUnixNano\":\"{time}000000000\",\"count\":\"{count}\"}}"
        ));
        if let Some((next, more, still_more)) = counts.get(place + 1) {
            let grown = more + still_more - count;
            let _ = writeln!(rate, "{time},{grown}");
            deltas.push(format!(
                "{{\"startTimeUnixNano\":\"{time}000000000\",\"timeUnixNano\":\"{next}000000000\",\"count\":\"{grown}\"}}"
            ));
        }
    }
    let query = format!(
        "{{\"status\":\"success\",\"data\":{{\"resultType\":\"matrix\",\"result\":[\
         {{\"metric\":{{\"__name__\":\"traces_spanmetrics_calls_total\",\"service\":\"host\",\"span_name\":\"serve\",\"span_kind\":\"SPAN_KIND_SERVER\"}},\"values\":[{values}]}},\
         {{\"metric\":{{\"__name__\":\"traces_spanmetrics_calls_total\",\"service\":\"host\",\"span_name\":\"ask\",\"span_kind\":\"SPAN_KIND_CLIENT\"}},\"values\":[{values}]}}]}}}}",
        values = values.join(",")
    );
    let otlp = |temporality: &str, points: &[String]| {
        format!(
            "{{\"resourceMetrics\":[{{\"resource\":{{\"attributes\":[{{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"host\"}}}}]}},\
             \"scopeMetrics\":[{{\"metrics\":[{{\"name\":\"http.server.request.duration\",\"unit\":\"s\",\"histogram\":{{\"aggregationTemporality\":{temporality},\"dataPoints\":[{}]}}}}]}}]}}]}}",
            points.join(",")
        )
    };
    vec![
        ("requests.prom", text),
        ("mesh.prom", mesh),
        ("rate.csv", rate),
        ("sum.csv", sum),
        ("query.json", query),
        ("sums.json", otlp("2", &points)),
        ("deltas.json", otlp("\"AGGREGATION_TEMPORALITY_DELTA\"", &deltas)),
    ]
}

fn throughput(at: &Path, arguments: &[&str]) -> (f64, String) {
    let mut all = vec!["solve", "t.jsonl", "--format", "json"];
    all.extend(arguments);
    let (code, text, words) = run(at, &all);
    assert!(code == 0 || code == 3, "{arguments:?}: {words}");
    let answer: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    (answer["scenarios"][0]["throughput"].as_f64().expect("there is a scenario"), words)
}

/// A sampled recording in a folder of its own, the arrivals it was sampled from, and their rate.
fn sampled(keep: impl Fn(u128) -> bool) -> (tempfile::TempDir, Vec<(f64, f64)>, f64) {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let stays = station(5, 2, 0.5, 4000);
    fs::write(folder.path().join("t.jsonl"), spans(&stays, 1000, keep)).expect("the folder is writable");
    let (first, last) = (stays.first().expect("some arrive").0, stays.last().expect("some arrive").0);
    let rate = (stays.len() - 1) as f64 / (last - first);
    (folder, stays, rate)
}

#[test]
fn counters_in_all_forms_tell_the_rate_of_what_was_sampled() {
    // Nothing of the identifiers shows that one in ten is kept.
    let (folder, stays, rate) = sampled(|id| id % 10 == 3);
    let at = folder.path();
    assert!(throughput(at, &[]).0 < 0.15 * rate);
    for (name, text) in forms(&stays) {
        fs::write(at.join(name), text).expect("the folder is writable");
        let (found, words) = throughput(at, &["--metrics", name]);
        assert!((found / rate - 1.0).abs() < 0.03, "{name}: {found} for {rate}\n{words}");
        assert!(words.contains("M065") && words.contains("each stands for"), "{name}: {words}");
        assert!(!words.contains("M066"), "{name}: {words}");
    }
    // All requests tell the rate, not only the tenth that was traced.
    let width = |more: &[&str]| {
        let (_, text, words) = run(at, &[&["solve", "t.jsonl", "--format", "json"], more].concat());
        let answer: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{words}"));
        let load = &answer["outlook"]["loads"][0];
        let number = |key: &str| load[key].as_f64().unwrap_or_else(|| panic!("{load}"));
        number("throughput_high") / number("throughput") - 1.0
    };
    assert!((0.028..0.04).contains(&width(&["--metrics", "requests.prom"])));
    assert!((0.08..0.13).contains(&width(&[])));
    let (code, text, words) = run(at, &["config", "init", "t.jsonl", "--utilisation", "requests.prom"]);
    assert_eq!(code, 0, "{words}");
    fs::write(at.join("c.toml"), text).expect("the folder is writable");
    let (found, _) = throughput(at, &["--config", "c.toml"]);
    assert!((found / rate - 1.0).abs() < 0.03, "{found} for {rate}");
}

#[test]
fn what_is_recorded_or_asked_for_goes_before_counters_and_contradictions_are_told() {
    let (folder, stays, rate) = sampled(|id| id % (1 << 63) < (1 << 63) / 5);
    let at = folder.path();
    for (name, text) in forms(&stays) {
        fs::write(at.join(name), text).expect("the folder is writable");
    }
    let (found, words) = throughput(at, &["--metrics", "requests.prom"]);
    assert!((found / rate - 1.0).abs() < 0.03 && !words.contains("M066"), "{found} for {rate}: {words}");
    // Made of the sampled spans alone.
    let kept: Vec<(f64, f64)> = stays.iter().copied().step_by(5).collect();
    fs::write(at.join("kept.prom"), &forms(&kept)[0].1).expect("the folder is writable");
    let (_, words) = throughput(at, &["--metrics", "kept.prom"]);
    assert!(words.contains("M066") && words.contains("by its trace identifiers for"), "{words}");
    let (asked, words) = throughput(at, &["--metrics", "kept.prom", "--sampling", "0.2"]);
    assert!((asked / rate - 1.0).abs() < 0.1 && words.contains("what spans carry is taken"), "{asked}: {words}");
}

/// Routes that are not traced do not count, whether methods are named or not.
#[test]
fn requests_of_other_operations_are_left_out() {
    let (folder, stays, rate) = sampled(|id| id % 10 == 3);
    let at = folder.path();
    let traced = fs::read_to_string(at.join("t.jsonl")).expect("it was written");
    fs::write(at.join("t.jsonl"), traced.replace("\"serve\"", "\"GET /serve/{id}\"")).expect("the folder is writable");
    for method in ["", ",method=\"GET\""] {
        let text = counts(&stays).iter().fold(String::new(), |text, (time, one, other)| {
            let of = |route: &str, count: u64| {
                format!("http_requests_total{{service=\"host\",path=\"{route}\"{method}}} {count} {time}000\n")
            };
            text + &of("/serve/:id", one + other) + &of("/health", 9 * (one + other))
        });
        fs::write(at.join("m.prom"), text).expect("the folder is writable");
        let (found, words) = throughput(at, &["--metrics", "m.prom"]);
        assert!((found / rate - 1.0).abs() < 0.03, "{method}: {found} for {rate}\n{words}");
    }
}

#[test]
fn counters_of_no_use_are_told() {
    let (folder, stays, _) = sampled(|_| true);
    let at = folder.path();
    let counted = counts(&stays);
    let text = |name: &str, shift: u64, part: u64| {
        counted.iter().fold(String::new(), |text, (time, one, other)| {
            format!("{text}http_requests_total{{service=\"{name}\"}} {} {}000\n", (one + other) / part, time + shift)
        })
    };
    for (what, metrics, told) in [
        ("another time", text("host", 86_400, 1), "was not read while the traces were recorded"),
        ("another service", text("others", 0, 1), "are of no service of the traces"),
        ("not all", text("host", 0, 2), "it does not count all"),
    ] {
        fs::write(at.join("m.prom"), metrics).expect("the folder is writable");
        let (_, words) = throughput(at, &["--metrics", "m.prom"]);
        assert!(words.contains("M066") && words.contains(told), "{what}: {words}");
    }
    for (metrics, told) in [
        ("http_requests_total{service=\"host\"} 5 1700000000000\n", "was read once"),
        ("http_requests_total{service=\"host\"} 5\n", "values have no times"),
        (
            "http_requests_total{service=\"host\"} 5 1\nhttp_requests_total{service=\"host\"} x 2\n",
            "no line of Prometheus' text",
        ),
    ] {
        fs::write(at.join("m.prom"), metrics).expect("the folder is writable");
        let (code, _, words) = run(at, &["solve", "t.jsonl", "--metrics", "m.prom"]);
        assert!(code != 0 && words.contains(told), "{words}");
    }
}
