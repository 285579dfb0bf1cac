//! Work that lies unevenly between calls, and parallel calls that depend on each other.

use std::collections::BTreeMap;

use dyelog::lqn::{CallKind, Model, Multiplicity, Scheduling};
use dyelog::model::{Configuration, Origins, codes, complete};

use crate::generator::Random;
use crate::law::reduced;
use crate::servers::miss;
use crate::waits::{Span, exponential, operation, processor};

/// `web` has one server, first come, first served, 60 % busy. It works for `before` on the mean, asks `store`, which takes 2 ms, and works for `after`, seconds.
fn in_line(seed: u64, before: f64, after: f64) -> String {
    let mut random = Random::new(seed);
    // Who comes to the line, by time: the operation, and its time before the call.
    let mut comes: BTreeMap<(u64, usize), Option<(f64, f64)>> = BTreeMap::new();
    let mut now = 0.0;
    for number in 0..4000 {
        now += exponential(&mut random, (before + after) / 0.6);
        comes.insert((f64::to_bits(now), number), None);
    }
    let (mut text, mut free) = (String::new(), 0.0_f64);
    while let Some(((time, number), first)) = comes.pop_first() {
        let time = f64::from_bits(time);
        free = free.max(time) + exponential(&mut random, if first.is_some() { after } else { before });
        let Some((begin, called)) = first else {
            let answered = free + exponential(&mut random, 2e-3);
            comes.insert((f64::to_bits(answered), number), Some((time, free)));
            continue;
        };
        let of = |service, kind, id, parent, name, at| Span { service, kind, id, parent, name, at };
        let spans = [
            of("web", 2, 1, 0, "GET", (begin, free)),
            of("web", 3, 2, 1, "ask", (called, time)),
            of("store", 2, 3, 2, "ask", (called, time)),
        ];
        operation(&mut text, number, &spans);
    }
    text
}

fn completed(text: &str, configuration: &str) -> (Model, Origins, bool) {
    let (configuration, _) = Configuration::parse(&"t.toml".into(), configuration).expect("it is sound");
    let sub = reduced("t.jsonl", text.as_bytes());
    let (model, findings, origins) = complete(&sub, &configuration).expect("there is something to model");
    let is_told = findings.iter().any(|finding| finding.code == codes::SENT_BRANCH);
    (model, origins, is_told)
}

#[test]
fn each_slice_of_work_queues_by_itself() {
    for (seed, before, after) in [(1, 9e-3, 1e-3), (2, 1e-3, 9e-3), (3, 5e-3, 5e-3)] {
        let (model, origins, _) = completed(&in_line(seed, before, after), "");
        let web = processor(&model, "web");
        assert_eq!((web.multiplicity, web.scheduling), (Multiplicity::Finite(1), Scheduling::Fcfs), "{before}");
        let slices: Vec<f64> = model.activities.iter().map(|own| own.work.demand).filter(|own| *own > 0.0).collect();
        if before == after {
            assert!(slices.is_empty(), "{slices:?}");
        } else {
            let [first, last] = slices[..] else { panic!("{slices:?}") };
            let part = first / (first + last);
            assert!((part - before / (before + after)).abs() < 0.02, "{before}: {part}");
        }
        // The solver takes visits as independent: a short one before a long one waits for less than that.
        if before >= after {
            assert!(miss(&model, &origins) < 0.05, "{before}: {}", miss(&model, &origins));
        }
    }
}

#[test]
fn branches_that_depend_on_each_other_are_waited_for_in_part() {
    let mut random = Random::new(4);
    let mut text = String::new();
    let mut now = 0.0;
    for number in 0..2000 {
        now += exponential(&mut random, 0.1);
        let long = exponential(&mut random, 0.012);
        let short = exponential(&mut random, 0.012);
        // In half of the operations the other one ends before it.
        let short = if number % 2 == 0 { 0.9 * short.min(long) } else { short };
        let of = |service, kind, id, parent, name, at| Span { service, kind, id, parent, name, at };
        let begin = now + 1e-3;
        let spans = [
            of("web", 2, 1, 0, "GET", (now, begin + long.max(short))),
            of("web", 3, 2, 1, "long", (begin, begin + long)),
            of("one", 2, 3, 2, "long", (begin, begin + long)),
            of("web", 3, 4, 1, "short", (begin, begin + short)),
            of("other", 2, 5, 4, "short", (begin, begin + short)),
        ];
        operation(&mut text, number, &spans);
    }
    let (model, origins, is_told) = completed(&text, "[defaults]\nmultiplicity = \"infinite\"\n");
    assert!(is_told);
    let calls = || model.activities.iter().flat_map(|own| &own.work.calls);
    let of = |kind| calls().filter(|call| call.kind == kind).map(|call| call.mean).sum::<f64>();
    let (waited, sent) = (of(CallKind::Synchronous), of(CallKind::Asynchronous));
    assert!(waited > 1.1 && sent > 0.1 && (waited + sent - 2.0).abs() < 1e-6, "{waited} {sent}");
    assert!(miss(&model, &origins) < 0.03, "{}", miss(&model, &origins));
}
