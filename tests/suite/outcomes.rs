//! Failures and retries, as spans tell them, and names that a configuration groups.

use std::fmt::Write as _;

use crate::cli::{Folder, run, shown};

/// A gateway that calls a store; the second of three operations fails at first and is tried again.
fn trace() -> String {
    traced(true)
}

/// The same, tried again or not.
fn traced(is_tried_again: bool) -> String {
    let mut text = String::new();
    for number in 0_u64..30 {
        let at = 1_700_000_000_000_000_000 + number * 100_000_000;
        let failing = number % 3 == 1;
        let mut spans = vec![span(number, 1, 0, "GET /things", 2, (at, at + 30_000_000), "")];
        let code = if failing { attribute("http.response.status_code", "503") } else { String::new() };
        let mut call = |place: u64, (from, to): (u64, u64), code: &str| {
            spans.push(span(number, 2 * place, 1, "GET", 3, (at + from, at + to), code));
            spans.push(span(number, 2 * place + 1, 2 * place, "read", 2, (at + from + 10_000, at + to - 10_000), code));
        };
        call(1, (1_000_000, 9_000_000), &code);
        if failing && is_tried_again {
            call(2, (10_000_000, 19_000_000), "");
        }
        let (gateway, store): (Vec<_>, Vec<_>) = spans.into_iter().partition(|(service, _)| *service == "gateway");
        for (service, own) in [("gateway", gateway), ("store", store)] {
            let own: Vec<String> = own.into_iter().map(|(_, text)| text).collect();
            let _ = writeln!(
                text,
                "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":[{}]}},\"scopeSpans\":[{{\"spans\":[{}]}}]}}]}}",
                attribute("service.name", service),
                own.join(",")
            );
        }
    }
    text
}

fn attribute(key: &str, value: &str) -> String {
    format!("{{\"key\":\"{key}\",\"value\":{{\"stringValue\":\"{value}\"}}}}")
}

fn span(
    trace: u64,
    id: u64,
    parent: u64,
    name: &str,
    kind: u8,
    (start, end): (u64, u64),
    attributes: &str,
) -> (&'static str, String) {
    let parent = if parent == 0 { String::new() } else { format!("\"parentSpanId\":\"{parent:016x}\",") };
    let service = if name == "read" { "store" } else { "gateway" };
    let text = format!(
        "{{\"traceId\":\"{:032x}\",\"spanId\":\"{id:016x}\",{parent}\"name\":\"{name}\",\"kind\":{kind},\
         \"startTimeUnixNano\":\"{start}\",\"endTimeUnixNano\":\"{end}\",\"attributes\":[{attributes}]}}",
        trace + 1
    );
    (service, text)
}

#[test]
fn failures_and_retries_are_counted() {
    let folder = Folder::new();
    let file = folder.file("t.jsonl", &trace());
    let saved = run(&["model", &file, "--format", "submodel"]).out;
    assert!(saved.contains("\"failures\": 10") && saved.contains("\"retries\": 10"), "{saved}");
    let solved = run(&["solve", &file]);
    assert!(solved.err.contains("10 of 40 invocations failed; 10 were tried once more"), "{}", solved.err);
    let checked = run(&["trace", "check", "--format", "json", &file]);
    let document: serde_json::Value = serde_json::from_str(&checked.out).expect("it is JSON");
    let own = &document["operations_with_failures"][0];
    let found = (own["name"].as_str(), own["operations"].as_u64(), own["with_failures"].as_u64());
    assert_eq!(found, (Some("gateway GET /things"), Some(30), Some(10)), "{document}");
    let page = run(&["report", &file, "-o", "-"]).out;
    let table = &page[page.find("Failures and retries").expect("there is such a table")..];
    let table = &table[..table.find("</table>").expect("it ends")];
    assert!(
        table.contains("read") && table.contains(">40<") && table.contains(">10<") && table.contains("25 %"),
        "{table}"
    );
    let text = run(&["trace", "check", &file]).out;
    assert!(text.contains("gateway GET /things: 10 of 30 operations have spans that failed"), "{text}");
}

/// A sample of failures tells no rate.
#[test]
fn a_sample_of_failures_is_named() {
    let folder = Folder::new();
    let all = trace().replace("\"name\":\"GET /things\",", "\"name\":\"GET /things\",\"status\":{\"code\":2},");
    let file = folder.file("t.jsonl", &all);
    let told = run(&["solve", &file]).err;
    assert!(told.contains("warning[M052]: 30 of 30 operations failed"), "{told}");
    assert!(told.contains("looks like a sample that prefers failures"), "{told}");
    let file = folder.file("u.jsonl", &trace());
    assert!(!run(&["solve", &file]).err.contains("prefers failures"));
    // Trace identifiers that fill their range do not make it all there is.
    let all = crate::servers::spans(&crate::servers::station(3, 1, 0.3, 300), 1, |_| true);
    let failed = folder.file("v.jsonl", &all.replace("\"kind\":2,", "\"kind\":2,\"status\":{\"code\":2},"));
    let told = run(&["solve", &failed]).err;
    assert!(told.contains("prefers failures") && told.contains("lower bounds"), "{told}");
    assert!(!told.contains("all operations are taken to be traced"), "{told}");
}

/// Work of 2 ms, an SDK's span around tries of 4 ms of which each third fails at first, and 40 ms before the next try.
fn backing_off(status: &str) -> String {
    let mut text = String::new();
    for number in 0_u64..300 {
        let at = 1_700_000_000_000_000_000 + number * 100_000_000;
        let ms = |from: u64, to: u64| (at + from * 1_000_000, at + to * 1_000_000);
        let bucket = attribute("server.address", "bucket");
        let fails = number % 3 == 1;
        let mut tries = vec![(ms(1, 5), fails)];
        if fails {
            tries.push((ms(45, 49), false));
        }
        let last = if fails { 49 } else { 5 };
        let mut spans = vec![span(number, 1, 0, "GET /file", 2, ms(0, last + 1), "").1];
        let service = attribute("rpc.service", "Files");
        spans.push(span(number, 2, 1, "Files.Get", 3, ms(1, last), &service).1);
        for (place, (times, fails)) in tries.into_iter().enumerate() {
            let own = span(number, 3 + place as u64, 2, "GET", 3, times, &bucket).1;
            spans.push(if fails { own.replace("\"kind\":3,", status) } else { own });
        }
        let _ = writeln!(
            text,
            "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":[{}]}},\"scopeSpans\":[{{\"spans\":[{}]}}]}}]}}",
            attribute("service.name", "gateway"),
            spans.join(",")
        );
    }
    text
}

/// The wait before another try is no work, and all tries are calls to one peer. Where nothing failed, the time between two calls is work.
#[test]
fn the_wait_before_another_try_is_no_work() {
    let busy = |status: &str| {
        let folder = Folder::new();
        let file = folder.file("t.jsonl", &backing_off(status));
        let solved = run(&["solve", "--format", "json", &file]);
        let document: serde_json::Value = serde_json::from_str(&solved.out).expect("it is JSON");
        let processors: Vec<(&str, f64)> = document["processors"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|own| (own["name"].as_str().expect("a name"), own["utilization"].as_f64().expect("a number")))
            .collect();
        assert_eq!(processors.iter().map(|own| own.0).collect::<Vec<_>>(), ["Files", "gateway"], "{}", solved.err);
        processors[1].1
    };
    let (failed, fine) = (busy("\"kind\":3,\"status\":{\"code\":2},"), busy("\"kind\":3,"));
    assert!((failed / 0.02 - 1.0).abs() < 0.02, "{failed}");
    assert!((fine / (0.02 + 0.4 / 3.0) - 1.0).abs() < 0.05, "{fine}");
}

#[test]
fn names_are_grouped_as_the_configuration_says() {
    let folder = Folder::new();
    let file = folder.file("t.jsonl", &trace().replace("GET /things", "GET /things/blue"));
    let config = folder.file("t.toml", "group = [\"GET /things/*\"]\n");
    let solved = run(&["solve", "--format", "json", "--config", &config, &file]);
    assert!(solved.out.contains("gateway GET /things/*"), "{}{}", solved.out, solved.err);
    let named = run(&["solve", "--format", "json", "--config", &config, "--group", "none", &file]);
    assert!(named.out.contains("gateway GET /things/blue"), "the argument goes before: {}{}", named.out, named.err);
    // Also in a sub-model, and of one that was saved under other names.
    let saved = run(&["model", "--format", "submodel", "--config", &config, &file]);
    assert!(saved.out.contains("\"gateway GET /things/*\""), "{}", saved.err);
    let plain = run(&["model", "--format", "submodel", &file]);
    assert!(!plain.out.contains("\"gateway GET /things/*\""), "{}", plain.err);
    let plain = folder.file("plain.json", &plain.out);
    let solved = run(&["solve", "--format", "json", "--config", &config, &plain]);
    assert!(solved.out.contains("gateway GET /things/*"), "{}{}", solved.out, solved.err);
    let wrong = folder.file("wrong.toml", "group = [\"\"]\n");
    assert_eq!(run(&["config", "check", &wrong]).code, 1);
    assert_eq!(run(&["solve", "--config", &wrong, &file]).code, 2);
}

#[test]
fn a_configuration_is_not_overwritten() {
    let folder = Folder::new();
    let file = folder.file("t.jsonl", &trace());
    let config = folder.file("t.toml", "# mine\n");
    let refused = run(&["config", "init", &file, "-o", &config]);
    assert_eq!((refused.code, std::fs::read_to_string(&config).ok().as_deref()), (2, Some("# mine\n")));
    assert!(refused.err.contains("--force"), "{}", refused.err);
    assert_eq!(run(&["config", "init", &file, "-o", &config, "--force"]).code, 0);
    assert_eq!(run(&["config", "init", &file, "-o", &shown(&folder.path("new.toml"))]).code, 0);
    let text = std::fs::read_to_string(&config).expect("it was written");
    assert!(text.contains("rate = \"10/s\""), "{text}");
}

/// Calls that a client gives up while their server works on: tried once more, there are more of them the longer responses take; else callers wait no longer.
#[test]
fn calls_that_end_by_a_timeout_are_told() {
    let folder = Folder::new();
    let ended = attribute("error.type", "timeout");
    // The server served it.
    let served = |line: &str| if line.contains("\"read\"") { line.replace(&ended, "") } else { line.to_owned() };
    let told = |is_tried_again: bool| {
        let failed = traced(is_tried_again).replace(&attribute("http.response.status_code", "503"), &ended);
        let own = failed.lines().fold(String::new(), |text, line| text + &served(line) + "\n");
        run(&["solve", &folder.file("t.jsonl", &own)]).err
    };
    let (again, once) = (told(true), told(false));
    for told in [&again, &once] {
        assert!(told.contains("warning[M052]") && told.contains("10 failed for their client alone"), "{told}");
    }
    assert!(again.contains("calls of `read` that end by a timeout are made once more"), "{again}");
    assert!(once.contains("calls of `read` end by a timeout while it still works on them"), "{once}");
    let told = run(&["solve", &folder.file("u.jsonl", &trace())]).err;
    assert!(!told.contains("for their client alone") && !told.contains("by a timeout"), "{told}");
}
