//! Intervals of traced rates and responses, against stations whose rates and mean responses are known.

use std::fmt::Write as _;

use dyelog::model::{Configuration, complete};
use dyelog::study::few_operations;

use crate::law::reduced;
use crate::servers::{DEMAND, spans, station};

/// The mean response of a station with so many servers, Poisson arrivals and exponential demands (Erlang's C).
fn mean_response(servers: u32, busy: f64) -> f64 {
    let offered = f64::from(servers) * busy;
    let (mut term, mut sum) = (1.0, 1.0);
    for number in 1..servers {
        term *= offered / f64::from(number);
        sum += term;
    }
    let last = term * offered / f64::from(servers) / (1.0 - busy);
    DEMAND + last / (sum + last) * DEMAND / (f64::from(servers) * (1.0 - busy))
}

/// How many of so many intervals of the rate and of the response hold those of the station, and the mean width of the latter to one side.
fn held(servers: u32, busy: f64, count: usize, runs: u64) -> (usize, usize, f64) {
    let (rate, response) = (f64::from(servers) * busy / DEMAND, mean_response(servers, busy));
    let (mut rates, mut responses, mut width) = (0, 0, 0.0);
    for seed in 1000..1000 + runs {
        let text = spans(&station(seed, servers, busy, count), 1000, |_| true);
        let sub = reduced("t.jsonl", text.as_bytes());
        let (_, _, origins) = complete(&sub, &Configuration::default()).expect("there are requests");
        let own = &origins.scenarios[0];
        let (traced, error) = (own.observed_response.expect("spans have times"), own.response_error.expect("many"));
        responses += usize::from((response / traced).ln().abs() <= error);
        let (traced, error) = (own.observed_rate.expect("many"), own.rate_error.expect("many"));
        rates += usize::from((rate / traced - 1.0).abs() <= error);
        width += own.response_error.expect("many") / runs as f64;
    }
    (rates, responses, width)
}

const SYSTEMS: [(u32, f64); 5] = [(1, 0.3), (1, 0.6), (1, 0.8), (4, 0.5), (4, 0.8)];

#[test]
fn nine_of_ten_intervals_hold_the_mean() {
    const RUNS: u64 = 20;
    let (mut table, mut rates, mut responses, mut all) = (String::new(), 0, 0, 0);
    for (servers, busy) in SYSTEMS {
        for count in [300, 1200, 5000] {
            let (own_rates, own, width) = held(servers, busy, count, RUNS);
            let _ = writeln!(
                table,
                "{servers} servers, {busy} busy, {count} requests: {own_rates} and {own} of {RUNS}, factor {:.2}",
                width.exp()
            );
            rates += own_rates;
            responses += own;
            all += RUNS as usize;
        }
    }
    println!("{table}");
    assert!(rates * 10 >= all * 9 && responses * 10 >= all * 9, "{rates} and {responses} of {all}\n{table}");
}

/// Fewer than ten timed operations tell no percentiles, which is said; ten do.
#[test]
fn few_operations_are_named() {
    let stays = station(7, 1, 0.3, 10);
    let told = |stays: &[(f64, f64)]| {
        let sub = reduced("t.jsonl", spans(stays, 1000, |_| true).as_bytes());
        let (_, _, origins) = complete(&sub, &Configuration::default()).expect("there are requests");
        few_operations(&origins).map(|finding| finding.message)
    };
    assert!(told(&stays[..9]).is_some_and(|message| message.contains("has 9 operations")));
    assert_eq!(told(&stays), None);
}

/// Identifiers of Poisson arrivals without a sampler say that there may be another one.
#[test]
fn identifiers_that_fill_their_range_are_told_as_an_assumption() {
    let notes = |stays: &[(f64, f64)], part: u128| {
        let text = spans(stays, 1000, |id| id % (1 << 63) < (1 << 63) / 100 * part);
        let (_, findings, _) =
            complete(&reduced("t.jsonl", text.as_bytes()), &Configuration::default()).expect("there are some");
        findings.into_iter().flat_map(|finding| finding.notes).collect::<Vec<_>>()
    };
    let stays = station(8, 1, 0.3, 1000);
    let told = |part, words| notes(&stays, part).iter().any(|note| note.contains(words));
    assert!(told(100, "all operations are taken to be traced"));
    assert!(!told(30, "all operations are taken to be traced"));
    assert!(told(30, "as ratio samplers leave them"));
}

/// So does an observed load that the model cannot sustain.
#[test]
fn an_overload_tells_what_is_known_of_sampling() {
    let stays = station(8, 1, 0.3, 1000);
    let (slow, _) = Configuration::parse(&"c.toml".into(), "[processor.host]\nmultiplicity = 1\nspeed = 0.1\n")
        .expect("it is sound");
    let sub = reduced("t.jsonl", spans(&stays, 1000, |_| true).as_bytes());
    let (_, findings, _) = complete(&sub, &slow).expect("there are requests");
    let overload = findings.iter().find(|found| found.code.0 == "M012").expect("three times as much as it can do");
    assert!(overload.notes.iter().any(|note| note.contains("all operations are taken to be traced")), "{overload:?}");
}
