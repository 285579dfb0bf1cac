//! What differs between models of two recordings, and what chance makes of one.

use dyelog::model::{Configuration, complete};
use dyelog::study::comparison::{self, Difference, Tolerance};
use dyelog::study::significance::{Errors, apart};

use crate::generator::Random;
use crate::law::reduced;
use crate::waits::{Span, exponential, operation};

/// Operations in each recording.
const COUNT: usize = 20_000;
const RATE: f64 = 100.0;

/// Work of `shop` around its calls, of `stock` and of `prices`, seconds.
type Works = [f64; 3];
const STEADY: Works = [0.002, 0.004, 0.005];

/// Begins and ends at one server, first come, first served; in the order of the arrivals.
fn served(arrivals: &[f64], random: &mut Random, mean: f64) -> Vec<(f64, f64)> {
    let mut order: Vec<usize> = (0..arrivals.len()).collect();
    order.sort_by(|one, other| arrivals[*one].total_cmp(&arrivals[*other]));
    let (mut stays, mut free) = (vec![(0.0, 0.0); arrivals.len()], 0.0_f64);
    for number in order {
        free = free.max(arrivals[number]) + exponential(random, mean);
        stays[number] = (arrivals[number], free);
    }
    stays
}

/// A recording of `shop`, which asks `stock` and `prices` one after the other, over a network.
fn recording(seed: u64, [shop, stock, prices]: Works) -> String {
    let mut random = Random::new(seed);
    let mut now = 1.0;
    let begins: Vec<f64> = (0..COUNT)
        .map(|_| {
            now += exponential(&mut random, 1.0 / RATE);
            now
        })
        .collect();
    let way = |random: &mut Random| exponential(random, 0.0005);
    let first = served(&begins, &mut random, shop);
    let asked: Vec<f64> = first.iter().map(|(_, end)| end + way(&mut random)).collect();
    let stocks = served(&asked, &mut random, stock);
    let answered: Vec<f64> = stocks.iter().map(|(_, end)| end + way(&mut random)).collect();
    let asked: Vec<f64> = answered.iter().map(|end| end + way(&mut random)).collect();
    let priced = served(&asked, &mut random, prices);
    let mut text = String::new();
    for number in 0..COUNT {
        let end = priced[number].1 + way(&mut random);
        let span = |service, kind, id, parent, name, at| Span { service, kind, id, parent, name, at };
        operation(
            &mut text,
            number,
            &[
                span("shop", 2, 1, 0, "buy", (begins[number], end)),
                span("shop", 3, 2, 1, "find", (first[number].1, answered[number])),
                span("stock", 2, 3, 2, "find", stocks[number]),
                span("shop", 3, 4, 1, "price", (answered[number], end)),
                span("prices", 2, 5, 4, "price", priced[number]),
            ],
        );
    }
    text
}

/// What is more than chance, and what is not.
fn differences(before: &str, after: &str) -> (Vec<Difference>, Vec<Difference>) {
    let [(before, its), (after, theirs)] = [before, after].map(|text| {
        let sub = reduced("t.jsonl", text.as_bytes());
        let (model, _, origins) = complete(&sub, &Configuration::default()).expect("there are requests");
        (comparison::model(&model), Errors::of(&model, &origins))
    });
    apart(comparison::compare(&before, &after, Tolerance { relative: 0.01, absolute: 0.0 }), &its, &theirs)
}

#[test]
fn halves_of_a_steady_recording_differ_by_chance_alone() {
    for seed in [1, 3, 5] {
        let (clear, within) = differences(&recording(seed, STEADY), &recording(seed + 1, STEADY));
        assert!(clear.is_empty() && !within.is_empty(), "{seed}: {clear:#?}");
    }
}

#[test]
fn a_tenth_more_work_of_one_service_is_told() {
    for seed in [1, 3, 5] {
        let (clear, _) = differences(&recording(seed, STEADY), &recording(seed + 1, [0.002, 0.0044, 0.005]));
        let names: Vec<&str> = clear.iter().map(|own| &*own.name).collect();
        assert!(
            clear
                .iter()
                .any(|own| own.name.contains("find")
                    && own.value.as_deref().is_some_and(|value| value.ends_with("demand"))),
            "{seed}: {names:?}"
        );
        assert!(!names.iter().any(|own| own.contains("price")), "{seed}: {clear:#?}");
    }
}
