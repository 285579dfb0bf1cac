//! A first service that does not record all operations that the services behind it record: what is left of the others is no load beside them, unless other clients ask for it.

use dyelog::diagnostic::{Diagnostic, Severity};
use dyelog::lqn::submodel::SubModel;
use dyelog::model::{Configuration, ScenarioOrigin, complete};

use crate::law::reduced;
use crate::lost::{Row, spans_at};

/// An identifier that looks random, of 63 bits.
fn id(number: u64) -> u64 {
    let own = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let own = (own ^ (own >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let own = (own ^ (own >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (own ^ (own >> 31)) >> 1
}

/// Whether a ratio sampler keeps an identifier.
fn is_low(id: u64, part: f64) -> bool {
    id as f64 / 2_f64.powi(63) < part
}

/// Microseconds from one operation to the next.
const EACH: u64 = 20_000;

/// Operations of `front`, 50 a second, which asks `back`, and `store` in four of five; all of `front` is left out where it does not record them.
fn operations(count: u64, records: impl Fn(u64) -> bool) -> Vec<String> {
    operations_of("front", 0, count, records)
}

/// The same of a first service of that name, with identifiers of its own.
fn operations_of(front: &str, from: u64, count: u64, records: impl Fn(u64) -> bool) -> Vec<String> {
    let of = |number: u64| {
        let longer = 100 * (id(number) % 11);
        let rows: [Row; 5] = [
            (front, 1, 0, 2, 0, 9000 + longer, "go"),
            (front, 2, 1, 3, 500, 3500, "ask"),
            ("back", 3, 2, 2, 600, 3400, "ask"),
            (front, 4, 1, 3, 4000, 7500 + longer, "put"),
            ("store", 5, 4, 2, 4100, 7400 + longer, "put"),
        ];
        let is_left = |row: &&Row| (!number.is_multiple_of(5) || row.1 < 4) && (records(number) || row.0 != front);
        let rows: Vec<Row> = rows.iter().filter(is_left).copied().collect();
        spans_at(id(from + number), EACH * number, &rows, "")
    };
    (0..count).map(of).collect()
}

/// Requests of a client that nobody traces, which asks `back` alone, so many a second, in traces of its own.
fn of_others(count: u64, a_second: u64) -> Vec<String> {
    let rows: [Row; 1] = [("back", 9, 8, 2, 600, 3400, "ask")];
    (0..count * a_second / 50)
        .map(|number| spans_at(id(1_000_000 + number), number * 1_000_000 / a_second, &rows, ""))
        .collect()
}

/// The scenarios, each with its rate, and what M039 says.
fn told(sub: &SubModel) -> (Vec<(String, f64)>, Vec<Diagnostic>) {
    let (_, findings, origins) = complete(sub, &Configuration::default()).expect("there is something to model");
    let rate = |own: &ScenarioOrigin| (own.name.to_string(), own.observed_rate.expect("there is a rate"));
    let fragments = findings.into_iter().filter(|own| own.code.0 == "M039");
    (origins.scenarios.iter().map(rate).collect(), fragments.collect())
}

fn model(text: &[String]) -> (Vec<(String, f64)>, Vec<Diagnostic>) {
    told(&reduced("t.jsonl", text.concat().as_bytes()))
}

/// The parts of a file in any order give what the whole gives.
fn parts_are_the_whole(text: &[String]) {
    let whole = complete(&reduced("t.jsonl", text.concat().as_bytes()), &Configuration::default());
    let (model, findings, _) = whole.expect("there is something to model");
    let part = |lines: &[String]| reduced("t.jsonl", lines.concat().as_bytes());
    let (left, right) = text.split_at(text.len() / 3);
    for (one, other) in [(left, right), (right, left)] {
        let mut sum = part(one);
        sum.merge(&part(other));
        let (own, told, _) = complete(&sum, &Configuration::default()).expect("there is something to model");
        assert_eq!(dyelog::lqn::text::write(&own), dyelog::lqn::text::write(&model));
        let words = |of: &[Diagnostic]| -> Vec<String> { of.iter().map(ToString::to_string).collect() };
        assert_eq!(words(&told), words(&findings));
    }
}

#[test]
fn what_a_sampler_of_the_first_service_leaves_out_is_no_load() {
    for part in [0.1, 0.3, 0.7, 0.9] {
        let text = operations(3000, |number| is_low(id(number), part));
        let (scenarios, fragments) = model(&text);
        assert_eq!(scenarios.len(), 1, "{part}: {scenarios:?}");
        let (name, rate) = &scenarios[0];
        assert!(name == "front go" && (rate / 50.0 - 1.0).abs() < 0.02, "{part}: {scenarios:?}");
        let [own] = fragments.as_slice() else { panic!("{part}: {fragments:?}") };
        assert!(own.message.contains("lack all spans of `front`"), "{part}: {own:?}");
        assert!(own.notes.iter().any(|note| note.contains("fill")), "{part}: {own:?}");
        parts_are_the_whole(&text);
    }
}

#[test]
fn several_first_services_that_sample_alike_are_told_together() {
    let mut text = operations(2000, |number| is_low(id(number), 0.6));
    text.extend(operations_of("other", 500_000, 2000, |number| is_low(id(500_000 + number), 0.6)));
    let (scenarios, fragments) = model(&text);
    let names: Vec<&str> = scenarios.iter().map(|own| own.0.as_str()).collect();
    assert_eq!(names, ["front go", "other go"], "{fragments:?}");
    assert!(scenarios.iter().all(|own| (own.1 / 50.0 - 1.0).abs() < 0.05), "{scenarios:?}");
    let [own] = fragments.as_slice() else { panic!("{fragments:?}") };
    assert!(own.message.contains("`front` or `other`"), "{own:?}");
    parts_are_the_whole(&text);
}

#[test]
fn operations_that_the_first_service_lost_at_random_are_no_load() {
    for lost in [3, 5] {
        let text = operations(3000, |number| id(number + 7_000_000) % 10 >= lost);
        let (scenarios, fragments) = model(&text);
        assert_eq!(scenarios.len(), 1, "{lost}: {scenarios:?}");
        assert!((scenarios[0].1 / 50.0 - 1.0).abs() < 0.02, "{lost}: {scenarios:?}");
        let [own] = fragments.as_slice() else { panic!("{lost}: {fragments:?}") };
        assert!(own.notes.iter().any(|note| note.contains("times as often")), "{lost}: {own:?}");
        parts_are_the_whole(&text);
    }
}

#[test]
fn requests_of_clients_that_nobody_traces_stay_a_load_and_are_told() {
    for part in [0.7, 1.0] {
        let mut text = operations(3000, |_| true);
        let mut number = 0;
        text.retain(|_| {
            number += 1;
            is_low(id(number - 1), part)
        });
        text.extend(of_others(3000, 40));
        let (scenarios, fragments) = model(&text);
        let [(one, others), (two, own)] = scenarios.as_slice() else { panic!("{part}: {scenarios:?}") };
        assert_eq!((one.as_str(), two.as_str()), ("back ask", "front go"), "{part}");
        assert!((others / 40.0 - 1.0).abs() < 0.02 && (own / 50.0 - 1.0).abs() < 0.03, "{part}: {scenarios:?}");
        let [told] = fragments.as_slice() else { panic!("{part}: {fragments:?}") };
        assert!(told.severity == Severity::Note && told.message.contains("loads of their own"), "{told:?}");
        parts_are_the_whole(&text);
    }
}
