//! Requests and answers that are messages, as spans: one call where the sender waits for the answer.

use serde_json::Value;

use crate::cli::{Folder, run};
use crate::lost::{Row, spans_at};

/// An operation each 100 ms: a message asks `worker`, which answers by another one. `between` is what `gw` does meanwhile.
fn recorded(end: u64, between: Option<Row>) -> String {
    recorded_with(|_| end, between)
}

/// The same, with ends of their own.
fn recorded_with(end: impl Fn(u64) -> u64, between: Option<Row>) -> String {
    (0..300).fold(String::new(), |text, number| {
        let end = end(number);
        let varies = (number * 37 % 23) * 20;
        let mut rows: Vec<Row> = vec![
            ("gw", 1, 0, 2, 0, end + varies, "go"),
            ("gw", 2, 1, 4, 2000, 2300, "ask send"),
            ("worker", 3, 2, 5, 2800, 17_000 + varies, "ask process"),
            ("worker", 4, 3, 4, 16_700 + varies, 17_000 + varies, "answer send"),
            ("gw", 5, 4, 5, 17_500 + varies, 17_900 + varies, "answer process"),
        ];
        rows.extend(between);
        text + &spans_at(number + 1, number * 100_000, &rows, "")
    })
}

/// The busy servers of `gw`, how many calls of it are synchronous, and whether the exchange was told.
fn solved(text: &str) -> (f64, usize, bool) {
    let folder = Folder::new();
    let file = folder.file("t.jsonl", text);
    let solved = run(&["solve", &file, "--format", "json"]);
    let document: Value = serde_json::from_str(&solved.out).unwrap_or_else(|_| panic!("{}", solved.err));
    let processors = document["processors"].as_array().cloned().unwrap_or_default();
    let busy = processors.iter().find(|own| own["name"] == "gw").and_then(|own| own["utilization"].as_f64());
    let calls = document["calls"].as_array().cloned().unwrap_or_default();
    let waits =
        calls.iter().filter(|own| own["kind"] == "sync" && own["to"].as_str().is_some_and(|to| to.contains("ask")));
    let told = solved.err.contains("request and answer by messages, taken as a call: 300");
    assert!(!solved.err.contains("M039"), "nothing was lost: {}", solved.err);
    (busy.expect("it is there"), waits.count(), told)
}

#[test]
fn a_sender_that_waits_for_the_answer_calls() {
    let (busy, calls, told) = solved(&recorded(20_000, None));
    // 20 ms without the 15.2 ms until the answer comes.
    assert!((busy - 0.0475).abs() < 0.003, "{busy}");
    assert_eq!((calls, told), (1, true));
}

/// Two requests at once, and an answer to each: both are waited for. What tells of progress before is no answer.
#[test]
fn answers_to_requests_at_once_are_waited_for() {
    let text: String = (0..300).fold(String::new(), |text, number| {
        let varies = (number * 37 % 23) * 20;
        let rows: [Row; 11] = [
            ("gw", 1, 0, 2, 0, 20_000 + varies, "go"),
            ("gw", 2, 1, 4, 2000, 2300, "ask send"),
            ("gw", 6, 1, 4, 2300, 2600, "ask other send"),
            ("worker", 3, 2, 5, 2800, 17_000 + varies, "ask process"),
            ("worker", 10, 3, 4, 4000, 4100, "progress send"),
            ("gw", 11, 10, 5, 4500, 4600, "progress process"),
            ("worker", 4, 3, 4, 16_700 + varies, 17_000 + varies, "answer send"),
            ("gw", 5, 4, 5, 17_500 + varies, 17_900 + varies, "answer process"),
            ("other", 7, 6, 5, 3000, 9000 + varies, "ask other process"),
            ("other", 8, 7, 4, 8700 + varies, 9000 + varies, "answer other send"),
            ("gw", 9, 8, 5, 9500 + varies, 9800 + varies, "answer other process"),
        ];
        text + &spans_at(number + 1, number * 100_000, &rows, "")
    });
    let folder = Folder::new();
    let file = folder.file("t.jsonl", &text);
    let model = run(&["solve", &file, "--format", "json"]);
    assert!(model.err.contains("request and answer by messages, taken as a call: 600"), "{}", model.err);
    let (_, calls, _) = solved(&text);
    assert_eq!(calls, 2);
}

#[test]
fn who_is_gone_or_at_other_work_waits_for_no_answer() {
    let (_, calls, told) = solved(&recorded(10_000, None));
    assert_eq!((calls, told), (0, false));
    // It works for longer than the answer takes.
    let (_, calls, told) = solved(&recorded(60_000, None));
    assert_eq!((calls, told), (0, false));
    let (_, calls, told) = solved(&recorded(20_000, Some(("gw", 6, 1, 3, 3000, 15_000, "read"))));
    assert_eq!((calls, told), (0, false));
}

#[test]
fn senders_of_which_only_some_wait_are_told() {
    let folder = Folder::new();
    let warned = |name: &str, end: fn(u64) -> u64| {
        let file = folder.file(name, &recorded_with(end, None));
        run(&["solve", &file]).err.contains("message that comes back like an answer, taken as none: 100")
    };
    assert!(warned("late.jsonl", |number| if number % 3 == 0 { 10_000 } else { 20_000 }));
    // All that are there when it comes may wait, and work for longer.
    assert!(!warned("busy.jsonl", |number| if number % 3 == 0 { 60_000 } else { 20_000 }));
    assert!(!warned("waits.jsonl", |_| 20_000));
}
