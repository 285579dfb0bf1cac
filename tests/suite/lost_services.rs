//! A service that records no spans, or of which a part is missing: its load, its servers and its demand follow from what others recorded, or the doubt is told.

use dyelog::lqn::{Model, Multiplicity};
use dyelog::model::{Configuration, complete};
use dyelog::solve::{LayeredOptions, layered};
use dyelog::study::utilization;
use dyelog::trace::{Operation, ReadOptions, ReadReport, TraceNames, read};

use crate::law::reduced;
use crate::lost::{Row, demand, spans_at};
use crate::servers::{DEMAND, miss, station};
use crate::waits::{Span, operation, processor};

/// How long a call is on its way, seconds, one way.
const WAY: f64 = 1e-3;

/// What the reader says.
pub fn report(text: &str) -> ReadReport {
    let ignore = |_: &TraceNames, _: Operation| std::ops::ControlFlow::Continue(());
    read("t.jsonl", text.as_bytes(), &ReadOptions::default(), &mut TraceNames::new(), &mut { ignore })
        .expect("it reads")
}

/// Busy servers of a processor.
pub fn busy(model: &Model, name: &str) -> f64 {
    let results = layered(model, &LayeredOptions::default()).expect("it can be solved");
    results.processors[model.processor_named(name).expect("it is there").index()].utilization
}

/// `web` asks `log`, then a peer with one server, which asks `store` every fifth time: of the peer no spans are left, and of the way to `store` none either.
fn without_the_peer(seed: u64, load: f64) -> String {
    let mut text = String::new();
    for (number, (start, end)) in station(seed, 1, load, 4000).into_iter().enumerate() {
        let (start, end) = (start + 1.0, end + 1.0);
        let stored = if number % 5 == 0 { end + 2.0 * WAY + 2e-3 } else { end };
        let of = |service, kind, id, parent, name, at| Span { service, kind, id, parent, name, at };
        let mut spans = vec![
            of("web", 2, 1, 0, "GET", (start - 4e-3 - 3.0 * WAY, stored + WAY + 1e-3)),
            of("web", 3, 2, 1, "log", (start - 2e-3 - 3.0 * WAY, start - 1e-3 - WAY)),
            of("log", 2, 3, 2, "log", (start - 2e-3 - 2.0 * WAY, start - 1e-3 - 2.0 * WAY)),
            of("web", 3, 4, 1, "ask", (start - WAY, stored + WAY)),
        ];
        if number % 5 == 0 {
            spans.push(of("store", 2, 7, 6, "read", (end + WAY, stored - WAY)));
        }
        operation(&mut text, number, &spans);
    }
    text
}

#[test]
fn a_service_without_spans_has_its_servers_and_its_load() {
    for (seed, load) in [(1, 0.3), (2, 0.5), (3, 0.7)] {
        let sub = reduced("t.jsonl", without_the_peer(seed, load).as_bytes());
        let (model, _, origins) = complete(&sub, &Configuration::default()).expect("there is something to model");
        assert_eq!(processor(&model, "peer").multiplicity, Multiplicity::Finite(1), "{load}");
        let found = busy(&model, "peer");
        assert!((found / load - 1.0).abs() < 0.05, "busy {found} for {load}, with {DEMAND} s of work each");
        assert!(miss(&model, &origins) < 0.05, "{load}: {}", miss(&model, &origins));
    }
}

/// Operations of `front` that send a message, on which `mail` works in a trace of its own and asks `store`; both are recorded where the functions say so.
fn messages(count: u64, is_sent: impl Fn(u64) -> bool, is_worked_on: impl Fn(u64) -> bool) -> String {
    (0..count).fold(String::new(), |text, number| {
        let start = 20_000 * number;
        let sent: [Row; 2] = [("front", 1, 0, 2, 0, 4000, "go"), ("front", 2, 1, 4, 1000, 1100, "send")];
        let longer = 100 * (number % 11);
        let work: [Row; 3] = [
            ("mail", 3, 0, 5, 1500, 4500 + longer, "work"),
            ("mail", 4, 3, 3, 2000, 4000, "store"),
            ("store", 5, 4, 2, 2200, 3800, "store"),
        ];
        let link = format!("\"links\":[{{\"traceId\":\"{:032x}\",\"spanId\":\"{:016x}\"}}],", number + 1, 2);
        let first = spans_at(10_000 + number, start, &work[..1], "")
            .replace("\"attributes\":[]}]", &format!("{link}\"attributes\":[]}}]"));
        let sent = if is_sent(number) { spans_at(number + 1, start, &sent, "") } else { String::new() };
        let done = if is_worked_on(number) {
            first + &spans_at(10_000 + number, start, &work[1..], "")
        } else {
            String::new()
        };
        text + &sent + &done
    })
}

#[test]
fn messages_whose_work_was_not_recorded_make_their_load() {
    let of = |text: &str| {
        let sub = reduced("mail.jsonl", text.as_bytes());
        let (model, _, _) = complete(&sub, &Configuration::default()).expect("there is something to model");
        (busy(&model, "mail"), busy(&model, "store"), demand(&sub, "mail").0)
    };
    let whole = of(&messages(600, |_| true, |_| true));
    let left = messages(600, |_| true, |number| number % 3 != 1);
    let part = of(&left);
    for (name, part, whole) in [("mail", part.0, whole.0), ("store", part.1, whole.1), ("demand", part.2, whole.2)] {
        assert!((part / whole - 1.0).abs() < 0.02, "{name}: {part} for {whole}");
    }
    let told = report(&left);
    let finding = told.findings.iter().find(|own| own.message.contains("of 600 messages")).expect("it is told");
    assert!(
        finding.message.starts_with("200 of 600 messages `send` of `front` were worked on by no span"),
        "{finding:?}"
    );
    assert!(finding.notes.iter().any(|note| note.contains("is 33.3 % lower")), "{finding:?}");
    assert_eq!(told.counted.get("message that no span worked on"), Some(&200));
    assert!(!report(&messages(600, |_| true, |_| true)).counted.contains_key("message that no span worked on"));
}

/// `front` calls `shop`, or sends it a message, and `shop` sends one to `mail`, which works on it in a trace of its own: of `shop` no spans are left.
fn without_the_sender(count: u64, is_message: bool) -> String {
    (0..count).fold(String::new(), |text, number| {
        let (start, kind) = (20_000 * number, if is_message { 4 } else { 3 });
        let sent: [Row; 2] = [
            ("front", 1, 0, 2, 0, 4000, "go"),
            ("front", 2, 1, kind, 1000, if is_message { 1100 } else { 3500 }, "shop"),
        ];
        let longer = 100 * (number % 11);
        let work: [Row; 1] = [("mail", 3, 0, 5, 4500, 7500 + longer, "work")];
        let during: [Row; 1] = [("mail", 3, 0, 5, 2000, 3000 + longer, "work")];
        let link = format!("\"links\":[{{\"traceId\":\"{:032x}\",\"spanId\":\"{:016x}\"}}],", number + 1, 9);
        let work = spans_at(10_000 + number, start, if is_message { &work } else { &during }, "")
            .replace("\"attributes\":[]}]", &format!("{link}\"attributes\":[]}}]"));
        text + &spans_at(number + 1, start, &sent, "") + &work
    })
}

/// Work on a message whose sender was lost belongs to the trace of the message, and is no scenario by itself.
#[test]
fn work_on_messages_of_a_lost_service_is_part_of_its_trace() {
    for is_message in [false, true] {
        let sub = reduced("t.jsonl", without_the_sender(300, is_message).as_bytes());
        let (model, _, origins) = complete(&sub, &Configuration::default()).expect("there is something to model");
        let names: Vec<&str> = origins.scenarios.iter().map(|own| &*own.name).collect();
        assert_eq!(names, ["front go"], "by message: {is_message}");
        // 50 operations a second, of which each has 1.5 or 3.5 ms of work.
        let (found, truth) = (busy(&model, "mail"), 50.0 * if is_message { 3.5e-3 } else { 1.5e-3 });
        assert!((found / truth - 1.0).abs() < 0.02, "by message: {is_message}: {found} for {truth}");
    }
}

/// A consumer that samples its traces by itself works on as many messages as were sent: those whose senders were not sampled stand for those of the senders that were.
#[test]
fn consumers_that_are_sampled_by_themselves_count_once() {
    let of = |text: &str| {
        let sub = reduced("mail.jsonl", text.as_bytes());
        let (model, findings, origins) =
            complete(&sub, &Configuration::default()).expect("there is something to model");
        let lost = findings.iter().flat_map(|own| &own.notes).any(|note| note.contains("spans were lost"));
        assert!(!lost, "{findings:?}");
        (origins.scenarios.len(), busy(&model, "front"), busy(&model, "mail"))
    };
    let whole = of(&messages(800, |_| true, |_| true));
    let half = messages(800, |number| number % 2 == 0, |number| number / 2 % 2 == 0);
    let part = of(&half);
    assert_eq!(part.0, 1, "work on messages is no load of its own");
    for (part, whole) in [(part.1, whole.1), (part.2, whole.2)] {
        assert!((part / whole - 0.5).abs() < 0.02, "{part} of {whole}");
    }
    let notes: Vec<String> = report(&half).findings.into_iter().flat_map(|own| own.notes).collect();
    assert!(notes.iter().any(|note| note.contains("traces were sampled one by one")), "{notes:?}");
    // By chance there is a little more work without messages than there are messages.
    let more = messages(800, |number| number % 8 == 0, |number| number % 64 == 0 || number % 8 > 0 && number % 5 == 3);
    assert_eq!(of(&more).0, 1, "work on messages is no load of its own");
}

/// Where spans were lost, services record none, or operations are few, how busy a processor is has an interval that holds the truth.
#[test]
fn what_is_not_known_of_utilisation_is_told() {
    let intervals = |text: &str| {
        let sub = reduced("t.jsonl", text.as_bytes());
        let (model, _, origins) = complete(&sub, &Configuration::default()).expect("there is something to model");
        let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
        let found = utilization::intervals(&model, &results, Some(&origins));
        let of = |name: &str| found[model.processor_named(name).expect("it is there").index()].expect("it is told");
        (of("mail"), of("store"), of("front"))
    };
    let (mail, store, front) = intervals(&messages(600, |_| true, |_| true));
    // Arrivals at equal times vary less than arrivals at random do, which is what is reckoned with.
    assert!(mail.low > 0.06 && mail.high < 0.09, "{mail:?}");
    assert!(store.low < 0.08 && store.high > 0.08, "{store:?}");
    let (less_mail, ..) = intervals(&messages(600, |_| true, |number| number % 3 != 1));
    assert!(less_mail.low < 0.67 * mail.high && less_mail.high > mail.low, "{less_mail:?}");
    let (.., fewer) = intervals(&messages(60, |_| true, |_| true));
    assert!(fewer.high - fewer.low > 2.0 * (front.high - front.low), "{fewer:?} {front:?}");
}

#[test]
fn an_entry_that_mostly_waits_is_told_where_spans_were_lost() {
    let text: String = (0..400).fold(String::new(), |text, number| {
        let start = 20_000 * number;
        let rows: [Row; 4] = [
            ("front", 1, 0, 2, 0, 9000, "go"),
            ("front", 2, 1, 3, 500, 8500, "next"),
            ("back", 3, 2, 2, 600, 8400, "next"),
            ("back", 4, 3, 3, 800, 8000, "bank"),
        ];
        let from = usize::from(number % 20 == 3);
        text + &spans_at(number + 1, start, &rows[from..], "")
    });
    let sub = reduced("t.jsonl", text.as_bytes());
    let (_, findings, _) = complete(&sub, &Configuration::default()).expect("there is something to model");
    let lost = findings.iter().find(|own| own.code.0 == "M039").expect("it is told");
    let note = lost.notes.iter().find(|note| note.starts_with("the demand of `next` of `back` is known to ±"));
    assert!(note.is_some(), "{lost:?}");
    assert!(!lost.notes.iter().any(|note| note.contains("`bank`")), "{lost:?}");
}

/// The parts of operations whose first span was lost are no operations of another scenario, though their calls have its name.
#[test]
fn a_call_whose_visit_was_lost_is_no_operation_of_its_name() {
    let text: String = (0..600).fold(String::new(), |text, number| {
        let start = 20_000 * number;
        // Every other operation asks `back`; the calls are named like the first operation.
        let (name, end) = if number % 2 == 0 { ("/short", 2000) } else { ("/long", 9000) };
        let rows: [Row; 3] = [
            ("front", 1, 0, 2, 0, end, name),
            ("front", 2, 1, 3, 500, end - 500, "/short"),
            ("back", 3, 2, 2, 600, end - 600, "/short"),
        ];
        let from = usize::from(number % 20 == 3);
        text + &spans_at(number + 1, start, &rows[from..], "")
    });
    let sub = reduced("t.jsonl", text.as_bytes());
    let (_, _, origins) = complete(&sub, &Configuration::default()).expect("there is something to model");
    let of = |name: &str| origins.scenarios.iter().find(|own| &*own.name == name).expect("it is there");
    assert_eq!(of("front /short").operations, 300);
    assert!((of("front /short").observed_response.expect("it has times") - 0.002).abs() < 1e-6);
}

/// What was called by a service without spans that nobody waits for lies within some calls to others by chance.
#[test]
fn calls_that_happen_to_lie_around_others_did_not_make_them() {
    let text: String = (0..300).fold(String::new(), |text, number| {
        let start = 20_000 * number;
        let (asked, done) = (1000 + 37 * (number % 50), 2500 + 113 * (number % 40));
        let rows: [Row; 4] = [
            ("front", 1, 0, 2, 0, 9000, "go"),
            ("front", 2, 1, 3, asked, asked + 2000, "ask"),
            ("front", 3, 1, 4, 500, 600, "send"),
            // The consumer's own spans were never recorded.
            ("back", 5, 4, 2, done, done + 1500, "store"),
        ];
        let peer = "{\"key\":\"peer.service\",\"value\":{\"stringValue\":\"bank\"}}";
        text + &spans_at(number + 1, start, &rows, peer)
    });
    let sub = reduced("t.jsonl", text.as_bytes());
    let (model, _, _) = complete(&sub, &Configuration::default()).expect("there is something to model");
    let bank = model.tasks.iter().position(|task| task.name.as_ref() == "bank").expect("it is asked");
    let calls = model.entries.iter().filter(|entry| entry.task.index() == bank).flat_map(|entry| match &entry.body {
        dyelog::lqn::Body::Phases(phases) => phases.iter().map(|phase| phase.calls.len()).collect(),
        dyelog::lqn::Body::Activities(_) => vec![1],
    });
    assert_eq!(calls.sum::<usize>(), 0);
}

/// Spans that are put back are counted as lost: single places were found for all of them.
#[test]
fn spans_that_were_inferred_are_told_as_lost() {
    let text: String = (0..400).fold(String::new(), |text, number| {
        let rows: [Row; 3] = [
            ("front", 1, 0, 2, 0, 9000, "go"),
            ("front", 2, 1, 3, 500, 8500, "next"),
            ("back", 3, 2, 2, 600, 8400, "next"),
        ];
        let lost = |at: &usize| *at == 1 && number % 20 == 3 || *at == 2 && number % 20 == 5;
        let kept: Vec<Row> = (0..3).filter(|at| !lost(at)).map(|at| rows[at]).collect();
        text + &spans_at(number + 1, 20_000 * number, &kept, "")
    });
    let sub = reduced("t.jsonl", text.as_bytes());
    let (_, findings, _) = complete(&sub, &Configuration::default()).expect("there is something to model");
    let lost = findings.iter().find(|own| own.code.0 == "M039").expect("it is told");
    assert!(lost.message.starts_with("40 spans were lost"), "{lost:?}");
    assert!(lost.notes.iter().any(|note| note.starts_with("about 3.3")), "{lost:?}");
}

/// A part of the spans of one service: its calls to somebody without spans are put back by how much of it was lost, not of all.
#[test]
fn a_service_that_lost_a_third_keeps_its_work() {
    let of = |is_lost: fn(u64) -> bool| {
        let text: String = (0..600).fold(String::new(), |text, number| {
            let own = 100 * (number % 7);
            let rows: [Row; 4] = [
                ("front", 1, 0, 2, 0, 9000 + own, "go"),
                ("front", 2, 1, 3, 500, 8500 + own, "next"),
                ("back", 3, 2, 2, 600, 8400 + own, "next"),
                ("back", 4, 3, 3, 1000, 8000 + 10 * (number % 11), "bank"),
            ];
            let kept: Vec<Row> =
                (0..4).filter(|at| *at < 2 || !is_lost(2 * number + *at as u64)).map(|at| rows[at]).collect();
            text + &spans_at(number + 1, 20_000 * number, &kept, "")
        });
        demand(&reduced("t.jsonl", text.as_bytes()), "back")
    };
    let (whole, _) = of(|_| false);
    let (left, calls) = of(|draw| draw.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & 0xff < 80);
    assert!((left / whole - 1.0).abs() < 0.05, "{left} for {whole} s");
    assert!((calls - 1.0).abs() < 0.03, "{calls} calls");
}

/// Calls that a service makes three times of four are not put back where another service was lost, and its own spans are all there.
#[test]
fn what_others_lost_is_not_put_back_here() {
    let of = |lost: &str| {
        let text: String = (0..900).fold(String::new(), |text, number| {
            let own = 100 * (number % 7);
            // Without the call it works for longer.
            let asked = number % 4 != 1;
            let rows: [Row; 6] = [
                ("front", 1, 0, 2, 0, 9000 + own, "go"),
                ("front", 2, 1, 3, 500, 8500 + own, "next"),
                ("middle", 3, 2, 2, 600, 8400 + own, "next"),
                ("middle", 4, 3, 3, 700, 8300 + own, "last"),
                ("back", 5, 4, 2, 800, 8200 + own, "last"),
                ("back", 6, 5, 3, 1000, 7000 + 10 * (number % 11), "bank"),
            ];
            let kept: Vec<Row> = rows.into_iter().filter(|row| row.0 != lost && (asked || row.6 != "bank")).collect();
            text + &spans_at(number + 1, 20_000 * number, &kept, "")
        });
        demand(&reduced("t.jsonl", text.as_bytes()), "back")
    };
    let (whole, calls) = of("none");
    assert!((calls - 0.75).abs() < 1e-3, "{calls} calls");
    let (left, calls) = of("middle");
    assert!((left / whole - 1.0).abs() < 0.01, "{left} for {whole} s");
    assert!((calls - 0.75).abs() < 1e-3, "{calls} calls");
}

/// The work of a service without spans may be the way to it.
#[test]
fn a_way_that_may_be_within_the_work_of_a_peer_is_told() {
    let text: String = (0..200).fold(String::new(), |text, number| {
        let rows: [Row; 4] = [
            ("front", 1, 0, 2, 0, 9000, "go"),
            ("front", 2, 1, 3, 500, 2500, "next"),
            ("back", 3, 2, 2, 700, 2300, "next"),
            ("front", 4, 1, 3, 4000, 6000, "ask"),
        ];
        let peer = "{\"key\":\"peer.service\",\"value\":{\"stringValue\":\"peer\"}}";
        text + &spans_at(number + 1, 20_000 * number, &rows[..3], "")
            + &spans_at(number + 1, 20_000 * number, &rows[3..], peer)
    });
    let sub = reduced("t.jsonl", text.as_bytes());
    let (_, findings, _) = complete(&sub, &Configuration::default()).expect("there is something to model");
    let network = findings.iter().find(|own| own.code.0 == "M032").expect("it is told");
    assert!(
        network.notes.iter().any(|note| note
            .contains("the 2 ms that calls to it take count as its own time, in which 0.4 ms may be on the way")),
        "{network:?}"
    );
    assert!(!network.notes.iter().any(|note| note.starts_with("`back`")), "{network:?}");
}

/// A consumer's span names a producer that was never recorded. The first service waits for somebody else when work on the message begins, and works for nobody then.
#[test]
fn what_a_lost_service_sends_makes_no_work_of_who_waits() {
    let text: String = (0..200).fold(String::new(), |text, number| {
        let rows: [Row; 4] = [
            ("front", 1, 0, 2, 0, 9000, "go"),
            ("front", 2, 1, 3, 1000, 8000, "next"),
            ("back", 3, 2, 2, 1000, 8000, "next"),
            ("mail", 6, 5, 5, 4000, 4500, "work"),
        ];
        text + &spans_at(number + 1, 20_000 * number, &rows, "")
    });
    let sub = reduced("t.jsonl", text.as_bytes());
    let (model, _, origins) = complete(&sub, &Configuration::default()).expect("there is something to model");
    let found = busy(&model, "front");
    assert!((found / 0.1 - 1.0).abs() < 0.01, "busy {found} for 2 ms of every 20");
    assert!(miss(&model, &origins) < 0.01, "{}", miss(&model, &origins));
}

/// The span of a consumer is lost, and its calls are left: in a trace of their own they are no operation whose beginning was lost.
#[test]
fn what_is_left_of_work_on_messages_is_no_operation() {
    let whole = messages(600, |_| true, |_| true);
    let (mut kept, mut number) = (String::new(), 0);
    for line in whole.lines() {
        let is_work = line.contains("\"name\":\"work\"");
        number += usize::from(is_work);
        if !is_work || number % 6 != 1 {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    let of = |text: &str| {
        let sub = reduced("mail.jsonl", text.as_bytes());
        let (model, _, origins) = complete(&sub, &Configuration::default()).expect("there is something to model");
        let rate = origins.scenarios.iter().filter_map(|own| own.observed_rate).sum::<f64>();
        (rate, busy(&model, "mail"), busy(&model, "store"), origins.scenarios.len())
    };
    let (all, part) = (of(&whole), of(&kept));
    assert_eq!(part.3, 1);
    for (name, part, whole) in [("rate", part.0, all.0), ("mail", part.1, all.1), ("store", part.2, all.2)] {
        assert!((part / whole - 1.0).abs() < 0.03, "{name}: {part} for {whole}");
    }
}

/// `front` forks `side`, and calls what ends in `back`; a visit in between, or `middle`, records no spans, and nobody records a call. Times of `back` vary, those of `side` too.
fn without_calls(count: u64, without: &str) -> String {
    let vary = |number: u64, of: u64| number.wrapping_mul(of) % 97 * 40;
    (0..count).fold(String::new(), |text, number| {
        let (back, side) = (vary(number, 31), vary(number, 57));
        let end = 3000 + back;
        let rows: [Row; 5] = [
            ("front", 1, 0, 2, 0, (end + 900).max(side + 4000), "go"),
            ("side", 2, 1, 2, 200, side + 3900, "side"),
            ("outer", 3, 1, 2, 300, end + 700, "outer"),
            ("middle", 4, 3, 2, 600, end + 300, "middle"),
            ("back", 5, 4, 2, 1000, end, "back"),
        ];
        let left: Vec<Row> = rows.into_iter().filter(|row| row.0 != without).collect();
        text + &spans_at(number + 1, 20_000 * number, &left, "")
    })
}

/// Where services record no calls, times tell which visit waited for one that records no spans.
#[test]
fn a_lost_service_is_waited_for_by_the_visit_that_takes_as_much_longer() {
    let of = |without: &str| {
        let sub = reduced("t.jsonl", without_calls(600, without).as_bytes());
        let (model, findings, origins) =
            complete(&sub, &Configuration::default()).expect("there is something to model");
        let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
        let told = findings.iter().find(|own| own.code.0 == "M075").map(|own| own.notes.join("\n"));
        let intervals = utilization::intervals(&model, &results, Some(&origins));
        (["outer", "side", "front"].map(|name| demand(&sub, name).0), told, model, intervals)
    };
    let (whole, told, ..) = of("");
    assert_eq!(told, None);
    let (left, told, model, intervals) = of("middle");
    // What `middle` does itself, 0.7 ms, looks like the work of `outer`; what it waits for does not.
    assert!((left[0] - whole[0] - 0.7e-3).abs() < 1e-4, "{left:?} for {whole:?}");
    assert!((left[1] / whole[1] - 1.0).abs() < 1e-6 && (left[2] - whole[2]).abs() < 2e-5, "{left:?} {whole:?}");
    let told = told.expect("its time is work at most");
    assert!(told.contains("`outer`: 1.4 ms an invocation"), "{told}");
    let low = |name: &str| intervals[model.processor_named(name).expect("it is there").index()].map(|own| own.low);
    assert_eq!(low("outer"), Some(0.0));
    assert!(low("side").is_none_or(|low| low > 0.0), "`side` waits for nobody");
    // Nothing but its own work lies below it: any may have waited.
    let (_, told, ..) = of("outer");
    assert!(told.is_some_and(|told| told.contains("`go`")));
}

/// Visits that only run beside what a lost service calls do not wait for it.
#[test]
fn a_visit_that_runs_beside_waits_for_nothing() {
    let text: String = (0..600).fold(String::new(), |text, number: u64| {
        let rows: [Row; 3] = [
            ("front", 1, 0, 2, 0, 9000, "go"),
            ("side", 2, 1, 2, 200, 8800 + number * 31 % 97, "side"),
            ("back", 5, 4, 2, 1000, 3000 + number * 57 % 97 * 40, "back"),
        ];
        text + &spans_at(number + 1, 20_000 * number, &rows, "")
    });
    let told = report(&text);
    assert_eq!(told.counted.get("parent that records no spans"), Some(&600), "{:?}", told.counted);
    let sub = reduced("t.jsonl", text.as_bytes());
    let (found, _) = demand(&sub, "side");
    assert!((found - 8.65e-3).abs() < 0.1e-3, "{found}");
    let (_, findings, _) = complete(&sub, &Configuration::default()).expect("there is something to model");
    let told = findings.iter().find(|own| own.code.0 == "M075").map(|own| own.notes.join("\n")).unwrap_or_default();
    assert!(told.contains("`side`") && told.contains("`go`"), "{findings:?}");
}
