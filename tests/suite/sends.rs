//! What senders of messages do until the broker has taken these: they wait, or are seen to go on.

use dyelog::lqn::Multiplicity;
use dyelog::model::{Configuration, complete};

use crate::law::reduced;
use crate::lost_services::{busy, report};
use crate::servers::{miss, station};
use crate::waits::{Span, operation, processor};

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
