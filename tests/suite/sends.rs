//! What senders of messages do until the broker has taken these, and callers until they have an answer: they wait, or are seen to go on.

use dyelog::lqn::Multiplicity;
use dyelog::lqn::submodel::{EntryTotal, Interaction, RequestKind};
use dyelog::model::{Configuration, complete};

use crate::generator::Random;
use crate::law::reduced;
use crate::lost_services::{busy, report};
use crate::servers::{miss, station};
use crate::waits::{Span, exponential, operation, processor};

/// How long a broker takes, seconds, of request `number`: from 4 to 12 ms.
fn taking(number: usize) -> f64 {
    4e-3 + 8e-3 * ((number * 7919) % 1000) as f64 / 1000.0
}

/// `api` has one server, and sends a message when its work is done and waits, or when it begins to work and goes on.
fn sending(seed: u64, load: f64, waits: bool) -> String {
    let mut text = String::new();
    for (number, (start, end)) in station(seed, 1, load, 3000).into_iter().enumerate() {
        let taken = taking(number);
        let (answered, sent) = if waits { (end + taken, end) } else { (end, start) };
        let of = |kind, id, parent, name, at| Span { service: "api", kind, id, parent, name, at };
        operation(
            &mut text,
            number,
            &[of(2, 1, 0, "POST", (start, answered)), of(4, 2, 1, "publish", (sent, sent + taken))],
        );
    }
    text
}

#[test]
fn a_sender_works_when_it_does_not_wait_for_the_broker() {
    for (seed, load) in [(1, 0.4), (2, 0.6)] {
        for waits in [true, false] {
            let text = sending(seed, load, waits);
            let sub = reduced("t.jsonl", text.as_bytes());
            let (model, _, origins) = complete(&sub, &Configuration::default()).expect("there is something to model");
            assert_eq!(processor(&model, "api").multiplicity, Multiplicity::Finite(1), "{load} {waits}");
            let found = busy(&model, "api");
            assert!((found / load - 1.0).abs() < 0.05, "{waits}: busy {found} for {load}");
            assert!(miss(&model, &origins) < 0.05, "{load} {waits}: {}", miss(&model, &origins));
            let told = report(&text);
            assert_eq!(told.findings.iter().any(|own| own.code.0 == "T143"), waits, "{:?}", told.findings);
        }
    }
}

/// `web` works for 10 ms on the mean at one server, and calls `log` when it begins, for which it does not wait. `log` answers sooner in a part of the operations.
fn calling(seed: u64, is_recorded: bool) -> String {
    let mut random = Random::new(seed + 100);
    let mut text = String::new();
    for (number, (start, end)) in station(seed, 1, 0.5, 3000).into_iter().enumerate() {
        let answered = start + exponential(&mut random, 0.02);
        let of = |service, kind, id, parent, name, at| Span { service, kind, id, parent, name, at };
        let all = [
            of("web", 2, 1, 0, "GET", (start, end)),
            of("web", 3, 2, 1, "POST", (start, answered)),
            of("log", 2, 3, 2, "ingest", (start, answered)),
        ];
        operation(&mut text, number, if is_recorded { &all } else { &all[..2] });
    }
    text
}

#[test]
fn a_call_that_its_caller_does_not_wait_for_is_none_where_it_is_short_either() {
    for (seed, is_recorded) in [(3, true), (4, false)] {
        let sub = reduced("t.jsonl", calling(seed, is_recorded).as_bytes());
        let (model, _, origins) = complete(&sub, &Configuration::default()).expect("there is something to model");
        let found = busy(&model, "web");
        assert!((found / 0.5 - 1.0).abs() < 0.06, "{is_recorded}: busy {found}");
        let web = || sub.entries().iter().filter(|entry| entry.interaction != Interaction::Customer);
        let asked: u64 = web().flat_map(EntryTotal::requested).map(|(_, count)| count).sum();
        let waited = web().flat_map(|entry| entry.work.values()).flat_map(|work| work.requests.keys());
        assert!(asked >= 2990 && waited.clone().all(|(kind, _)| *kind == RequestKind::Asynchronous), "{asked}");
        assert!(miss(&model, &origins) < 0.05, "{is_recorded}: {}", miss(&model, &origins));
    }
}

/// `api` works for 10 ms on the mean at one server. When it is about to answer it hands work on that calls `log` and waits, or calls `log` some time after its answer, but for a few
/// calls that it makes before.
fn handing_on(seed: u64, is_local: bool) -> String {
    let mut random = Random::new(seed + 200);
    let mut text = String::new();
    for (number, (start, end)) in station(seed, 1, 0.5, 3000).into_iter().enumerate() {
        let begun = if is_local || number % 300 == 0 { end - 0.05 * (end - start) } else { end + 0.03 };
        let over = begun + exponential(&mut random, 0.02);
        let of = |service, kind, id, parent, name, at| Span { service, kind, id, parent, name, at };
        let mut spans = vec![of("api", 2, 1, 0, "PUT", (start, end))];
        if is_local {
            spans.push(of("api", 1, 2, 1, "audit", (begun, over)));
        }
        spans.push(of("api", 3, 3, if is_local { 2 } else { 1 }, "append", (begun, over)));
        spans.push(of("log", 2, 4, 3, "append", (begun, over)));
        operation(&mut text, number, &spans);
    }
    text
}

#[test]
fn nobody_waits_for_work_that_is_handed_on_and_it_waits_for_its_calls() {
    for (seed, is_local) in [(5, true), (6, false)] {
        let sub = reduced("t.jsonl", handing_on(seed, is_local).as_bytes());
        let (model, _, origins) = complete(&sub, &Configuration::default()).expect("there is something to model");
        let found = busy(&model, "api");
        assert!((found / 0.5 - 1.0).abs() < 0.06, "{is_local}: busy {found}");
        assert!(miss(&model, &origins) < 0.05, "{is_local}: {}", miss(&model, &origins));
        let api = sub.entries().iter().filter(|entry| entry.interaction != Interaction::Customer);
        let works = || api.clone().flat_map(|entry| &entry.work);
        let after: u64 = works()
            .filter(|(at, _)| at.phase == 2)
            .flat_map(|(_, work)| &work.requests)
            .filter(|((kind, _), _)| *kind == RequestKind::Synchronous)
            .map(|(_, requests)| requests.count)
            .sum();
        let mut kinds = works().flat_map(|(_, work)| work.requests.keys());
        if is_local {
            assert!(after > 2400, "{after}");
        } else {
            assert!(kinds.all(|(kind, _)| *kind == RequestKind::Asynchronous));
        }
    }
}

/// The first of two answers is waited for, and the other comes too late.
#[test]
fn the_first_of_two_answers_is_waited_for() {
    let mut random = Random::new(9);
    let (mut text, mut now) = (String::new(), 0.0);
    for number in 0..3000 {
        now += exponential(&mut random, 0.1);
        let [one, other] = [(); 2].map(|()| exponential(&mut random, 0.02));
        let of = |service, kind, id, parent, name, at| Span { service, kind, id, parent, name, at };
        let spans = [
            of("web", 2, 1, 0, "GET", (now, now + one.min(other) + 0.002)),
            of("web", 3, 2, 1, "ask", (now, now + one)),
            of("web", 3, 3, 1, "ask", (now, now + other)),
        ];
        operation(&mut text, number, &spans);
    }
    let sub = reduced("t.jsonl", text.as_bytes());
    let web = sub.entries().iter().filter(|entry| entry.interaction != Interaction::Customer);
    let mut kinds = web.flat_map(|entry| entry.work.values()).flat_map(|work| work.requests.keys());
    assert!(kinds.any(|(kind, _)| *kind == RequestKind::Synchronous));
}
