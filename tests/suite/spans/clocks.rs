//! Clocks that differ: durations stay, and calls stay what they are.

use std::fmt::Write as _;

use dyelog::trace::{Kind, Operation, TraceNames};

use super::dsl::otlp;
use super::dump::{Outcome, read};

fn outcome(table: &str) -> Outcome {
    read("otlp", otlp(table).as_bytes()).expect("it can be read")
}

/// From the first to the last event of a task, in seconds.
fn extent(names: &TraceNames, operation: &Operation, task: &str) -> f64 {
    let of_task = |event: &&dyelog::trace::Event| names.task_label(event.task) == task;
    let times = || operation.events.iter().filter(of_task).map(|event| event.time);
    times().fold(f64::MIN, f64::max) - times().fold(f64::MAX, f64::min)
}

fn forks(outcome: &Outcome) -> usize {
    let is_fork = |kind: Kind| matches!(kind, Kind::Fork(_));
    outcome.operations.iter().map(|own| own.events.iter().filter(|event| is_fork(event.kind)).count()).sum()
}

fn told(outcome: &Outcome) -> Vec<String> {
    let skew = outcome.report.findings.iter().filter(|finding| finding.code.0 == "T115");
    skew.map(|finding| finding.message.clone()).collect()
}

#[test]
fn a_consumer_works_as_long_by_whatever_clock() {
    for behind in [0, -5, -10, -20, -500, 300] {
        // The message is sent at 10 ms and worked on from 11 to 20, with a call of another service by the consumer's clock.
        let [start, call, back, end] = [11, 12, 17, 20].map(|time| time + behind);
        let (serves, served) = (call + 1, back - 1);
        let outcome = outcome(&format!(
            "
            a - web    server   GET   0 30 host=h1
            b a web    producer send 10 10.1 host=h1
            c b mailer consumer mail {start} {end} host=h2
            d c mailer client   look {call} {back} host=h2
            e d db     server   find {serves} {served} host=h2
        "
        ));
        let [operation] = outcome.operations.as_slice() else { panic!("one operation") };
        for (task, wanted) in [("mailer", 0.009), ("db", 0.003)] {
            let got = extent(&outcome.names, operation, task);
            assert!((got - wanted).abs() < 1e-9, "{task} at {behind} ms: {got}");
        }
    }
}

#[test]
fn a_consumer_without_a_producers_span_works_as_long_too() {
    let outcome = outcome(
        "
        a - web    server   GET  100 130 host=h1
        c a mailer consumer mail  81  90 host=h2
    ",
    );
    assert!((extent(&outcome.names, &outcome.operations[0], "mailer") - 0.009).abs() < 1e-9);
}

/// Calls of 10 ms, one a second, whose server works for 6 ms by a clock that is off by what a function of the second says, in ms.
fn calls(count: u32, off: impl Fn(u32) -> f64) -> String {
    (0..count).fold(String::new(), |mut table, second| {
        let trace = second + 1;
        let start = f64::from(second) * 1000.0;
        // The way there takes from 1 to 3 ms.
        let arrival = start + 1.0 + f64::from(second * 7 % 20) / 10.0;
        let (from, to) = (arrival + off(second), arrival + 6.0 + off(second));
        writeln!(table, "{trace}/a - web server GET {} {} host=h1", start - 1.0, start + 12.0).expect("a string");
        writeln!(table, "{trace}/b a web client call {start} {} host=h1", start + 10.0).expect("a string");
        writeln!(table, "{trace}/c b db server find {from} {to} host=h2").expect("a string");
        table
    })
}

#[test]
fn a_clock_that_drifts_is_followed() {
    // 50 ms in 400 s; no offset is right for more than a twelfth of the time.
    let outcome = outcome(&calls(400, |second| f64::from(second) / 8.0));
    assert_eq!(forks(&outcome), 0, "all callers wait: {:?}", told(&outcome));
    let [told] = &*told(&outcome) else { panic!("it is told") };
    assert!(told.starts_with("the clock of host h2 is from ") && told.ends_with("it changes with time"), "{told}");
}

#[test]
fn a_clock_that_is_set_is_followed() {
    let outcome = outcome(&calls(400, |second| if second < 200 { 40.0 } else { 0.0 }));
    let forks = forks(&outcome);
    // In the one period in which it is set the straight line is wrong.
    assert!(forks <= 20, "{forks} of 400 callers do not seem to wait");
}

#[test]
fn a_clock_that_is_right_is_left_alone() {
    let outcome = outcome(&calls(400, |_| 0.0));
    assert_eq!((forks(&outcome), told(&outcome)), (0, Vec::new()));
}

#[test]
fn second_phases_are_no_skew() {
    // Of 60 calls two are without the second phase of the others, and were late.
    let mut table = String::new();
    for number in 0..60 {
        let trace = number + 1;
        let (from, to) = if number < 2 { (11, 16) } else { (1, 16) };
        writeln!(table, "{trace}/a - web server GET 0 30 host=h1").expect("a string");
        writeln!(table, "{trace}/b a web client call 0 12 host=h1").expect("a string");
        writeln!(table, "{trace}/c b pay server pay {from} {to} host=h2").expect("a string");
    }
    let outcome = outcome(&table);
    assert_eq!(told(&outcome), Vec::<String>::new());
    assert_eq!(forks(&outcome), 60, "all have a second phase");
}

/// Visits of one service without client halves, one a second, each within that of its caller by a clock that is off by what a function says, in ms, and ending
/// so many later than its caller waits.
fn visits(count: u32, later: f64, off: impl Fn(u32) -> f64) -> String {
    (0..count).fold(String::new(), |mut table, second| {
        let trace = second + 1;
        let start = f64::from(second) * 1000.0;
        let from = start + 1.0 + f64::from(second * 7 % 20) / 10.0 + off(second);
        writeln!(table, "{trace}/a - web server GET {start} {} host=h1", start + 10.0).expect("a string");
        writeln!(table, "{trace}/b a db server find {from} {} host=h2", from + 5.0 + later).expect("a string");
        table
    })
}

#[test]
fn a_clock_that_drifts_is_followed_without_client_halves() {
    for sign in [1.0, -1.0] {
        let outcome = outcome(&visits(400, 0.0, |second| sign * (f64::from(second) / 20.0 - 4.0)));
        assert_eq!(forks(&outcome), 0, "all callers wait: {:?}", told(&outcome));
        let [told] = &*told(&outcome) else { panic!("it is told") };
        assert!(told.starts_with("the clock of host h2 is from ") && told.ends_with("it changes with time"), "{told}");
    }
}

#[test]
fn waiting_for_messages_is_no_demand() {
    // Once within an operation, once as its first span: in both, the service works for 15 ms.
    for (first, works) in [
        ("a - mail server job 0 65\nb a mail client receive 10 60", ""),
        ("b - mail consumer receive 10 60", "\nc b mail internal work 60 75"),
    ] {
        let table = format!("{first} messaging.operation=receive{works}");
        let outcome = outcome(&table);
        let [operation] = outcome.operations.as_slice() else { panic!("one operation") };
        let pauses: f64 = operation.events.iter().map(|event| event.pause).filter(|pause| !pause.is_nan()).sum();
        let times = || operation.events.iter().map(|event| event.time);
        let all = times().fold(f64::MIN, f64::max) - times().fold(f64::MAX, f64::min);
        assert!((pauses - 0.05).abs() < 1e-9 && (all - pauses - 0.015).abs() < 1e-9, "{pauses} of {all}\n{table}");
    }
}

#[test]
fn work_that_outlasts_the_span_that_caused_it_tells_nothing_of_clocks() {
    // No kinds: a message is sent in 2 ms, and worked on for 40 ms, always as late.
    let mut table = String::new();
    for trace in 1..=40 {
        let at = |time: i64| time + trace * 1000;
        let [begin, end, sends, sent, works, done] = [0, 100, 82, 84, 90, 130].map(at);
        writeln!(table, "{trace}/a - web server GET {begin} {end} host=h1").expect("memory takes all");
        writeln!(table, "{trace}/b {trace}/a web internal send {sends} {sent} host=h1").expect("memory takes all");
        writeln!(table, "{trace}/c {trace}/b mailer server mail {works} {done} host=h2").expect("memory takes all");
    }
    let outcome = outcome(&table);
    assert_eq!(told(&outcome), Vec::<String>::new());
}

#[test]
fn work_that_is_deferred_is_no_drift() {
    // Nobody waits for it, however late it is.
    let outcome = outcome(&visits(400, 0.0, |second| f64::from(second * 13 % 40)));
    assert_eq!(told(&outcome), Vec::<String>::new());
    assert!(forks(&outcome) > 200);
}

/// Three services that one asks in turn, each with a clock of its own or with one that others read as well.
#[test]
fn services_whose_clocks_are_off_alike_are_named() {
    let calls = |offsets: [f64; 3]| {
        (0..60).fold(String::new(), |mut table, number| {
            let (trace, start) = (number + 1, f64::from(number) * 1000.0);
            writeln!(table, "{trace}/a - web server GET {} {}", start - 1.0, start + 40.0).expect("a string");
            for (place, off) in (0..3).zip(offsets) {
                let (begin, service) = (start + 12.0 * f64::from(place), ["cart", "stock", "mail"][place as usize]);
                let arrival = begin + 1.0 + f64::from(number * 7 % 20) / 10.0 + off;
                writeln!(table, "{trace}/b{place} a web client call {begin} {}", begin + 10.0).expect("a string");
                let (from, to) = (arrival, arrival + 6.0);
                writeln!(table, "{trace}/c{place} b{place} {service} server do {from} {to}").expect("a string");
            }
            table
        })
    };
    let alike = |offsets| -> Vec<String> {
        let own = told(&outcome(&calls(offsets)));
        own.into_iter().filter(|message| message.starts_with("the clocks of")).collect()
    };
    assert_eq!(alike([40.0, 40.0, -7.0]), ["the clocks of `cart`, `stock` are 40.0 ms from that of web, all of them"]);
    assert_eq!(alike([40.0, 43.0, -7.0]), [""; 0]);
    // No offset is no evidence.
    assert_eq!(alike([0.0, 0.0, 0.0]), [""; 0]);
}
