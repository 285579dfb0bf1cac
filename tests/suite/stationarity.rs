//! A warning names recordings that are not steady, and no steady one.

use dyelog::model::{Configuration, complete};

use crate::law::reduced;
use crate::servers::{spans, station};

/// The warnings about the recording of these requests.
fn told(stays: &[(f64, f64)]) -> Vec<String> {
    let sub = reduced("t.jsonl", spans(stays, 1000, |_| true).as_bytes());
    let (_, findings, _) = complete(&sub, &Configuration::default()).expect("there are requests");
    findings.into_iter().filter(|found| found.code.0 == "M051").flat_map(|found| found.notes).collect()
}

/// Of steady stations, up to 80 % busy, less than two in a hundred are named: the rate of false alarms.
#[test]
fn steady_recordings_are_not_named() {
    let mut named = 0;
    let mut all = 0;
    for (servers, busy) in [(1, 0.3), (1, 0.6), (1, 0.8), (4, 0.8)] {
        for seed in 100..150 {
            all += 1;
            named += usize::from(!told(&station(seed, servers, busy, 1200)).is_empty());
        }
    }
    assert!(named * 50 <= all, "{named} of {all}");
}

#[test]
fn a_warm_up_is_told_with_both_means() {
    let mut stays = station(5, 4, 0.3, 4000);
    for stay in &mut stays[..800] {
        stay.1 = stay.0 + 1.8 * (stay.1 - stay.0);
    }
    let notes = told(&stays);
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].starts_with("operations respond in 1") && notes[0].contains("(2"), "{notes:?}");
}

#[test]
fn a_load_that_doubles_is_told() {
    let mut stays = station(6, 4, 0.3, 3000);
    let (border, end) = (stays[1500].0, stays[2999].0);
    for stay in stays.iter_mut().filter(|stay| stay.0 > border) {
        let earlier = (stay.0 - border) / 2.0;
        *stay = (stay.0 - earlier, stay.1 - earlier);
    }
    assert!(end > border);
    let notes = told(&stays);
    assert!(notes.iter().any(|note| note.contains("begin a second")), "{notes:?}");
}

#[test]
fn bursts_are_told() {
    let mut stays = station(7, 8, 0.3, 4000);
    // In every other second a quarter of the requests is left.
    let mut number = 0;
    stays.retain(|stay| {
        number += 1;
        stay.0.floor() % 2.0 == 0.0 || number % 4 == 0
    });
    let notes = told(&stays);
    assert!(notes.iter().any(|note| note.contains("bursts")), "{notes:?}");
}
