//! Hosts that serve new work first, as schedulers let a thread that wakes go before those that ran, and parts of invocations that are short beside others.

use dyelog::lqn::Multiplicity;
use dyelog::model::{Configuration, complete};

use crate::generator::Random;
use crate::law::reduced;
use crate::lost_services::busy;
use crate::servers::{completed, exponential, servers, span, station};
use crate::waits::{Span, operation, processor};

/// A request: its class, when it came, and when it left, seconds.
type Stay = (usize, f64, f64);

/// So many requests of classes, each of a rate and a mean of exponential work, at servers where those that had less than a quantum have equal parts first, and the others of what is left.
fn two_levels(seed: u64, servers: f64, quantum: f64, classes: &[(f64, f64)], count: usize) -> Vec<Stay> {
    let mut random = Random::new(seed);
    let mut next: Vec<f64> = classes.iter().map(|(rate, _)| exponential(&mut random, 1.0 / rate)).collect();
    let mut stays: Vec<Stay> = Vec::new();
    // The request, what it had, and what it wants.
    let mut there: Vec<(usize, f64, f64)> = Vec::new();
    let mut now = 0.0;
    while stays.len() < count || !there.is_empty() {
        let new = there.iter().filter(|own| own.1 < quantum).count() as f64;
        let old = there.len() as f64 - new;
        let of_new = if new > 0.0 { (servers / new).min(1.0) } else { 0.0 };
        let of_old = if old > 0.0 { ((servers - new).max(0.0) / old).min(1.0) } else { 0.0 };
        let speed = |had: f64| if had < quantum { of_new } else { of_old };
        let until = |&(_, had, wants): &(usize, f64, f64)| {
            let left = if had < quantum { (wants - had).min(quantum - had) } else { wants - had };
            if speed(had) > 0.0 { left / speed(had) } else { f64::INFINITY }
        };
        let (class, comes) =
            next.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).expect("there are classes");
        let comes = if stays.len() < count { comes } else { f64::INFINITY };
        let step = there.iter().map(until).fold(comes - now, f64::min);
        now += step;
        for own in &mut there {
            own.1 += step * speed(own.1);
            // What is nearly at its quantum is past it.
            if (own.1 - quantum).abs() < 1e-12 {
                own.1 = quantum;
            }
        }
        there.retain(|&(number, had, wants)| {
            let leaves = wants - had < 1e-12;
            if leaves {
                stays[number].2 = now;
            }
            !leaves
        });
        if now >= comes {
            there.push((stays.len(), 0.0, exponential(&mut random, classes[class].1)));
            stays.push((class, now, f64::NAN));
            next[class] = now + exponential(&mut random, 1.0 / classes[class].0);
        }
    }
    stays
}

/// Equal sharing would need twice as many servers to let the short requests through.
#[test]
fn new_work_that_goes_first_is_not_taken_for_more_servers() {
    for (seed, count) in [(1, 1_u32), (2, 2)] {
        let of = f64::from(count);
        let stays = two_levels(seed, of, 4e-3, &[(100.0 * of, 1.5e-3), (23.0 * of, 20e-3)], 9000);
        let mut text = String::new();
        for (number, (class, start, end)) in stays.into_iter().enumerate() {
            let name = ["short", "long"][class];
            let at = |seconds: f64| 1_700_000_000_000_000_000 + (seconds * 1e9) as u64;
            let id = (number as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            span(&mut text, id, name, at(start), at(end));
        }
        let (model, _) = completed(&text, "");
        assert_eq!(servers(&model), Multiplicity::Finite(count));
        let found = busy(&model, "host");
        assert!((found / (0.61 * of) - 1.0).abs() < 0.07, "busy {found}");
    }
}

/// Each invocation ends with a wait of 50 µs. Its length does not depend on how many others are there.
#[test]
fn a_short_wait_behind_the_work_tells_nothing_of_servers() {
    for (seed, load) in [(1, 0.4), (2, 0.6)] {
        let mut text = String::new();
        for (number, (start, end)) in station(seed, 1, load, 4000).into_iter().enumerate() {
            let of = |service, kind, id, parent, name, at| Span { service, kind, id, parent, name, at };
            let answered = end + 3e-3 + 1e-3 * (number % 7) as f64;
            let spans =
                [of("api", 2, 1, 0, "GET", (start, answered + 50e-6)), of("api", 3, 2, 1, "ask", (end, answered))];
            operation(&mut text, number, &spans);
        }
        let sub = reduced("t.jsonl", text.as_bytes());
        let (model, _, _) = complete(&sub, &Configuration::default()).expect("there is something to model");
        assert_eq!(processor(&model, "api").multiplicity, Multiplicity::Finite(1), "{load}");
        let found = busy(&model, "api");
        assert!((found / load - 1.0).abs() < 0.06, "busy {found} for {load}");
    }
}
