//! Intervals of traced rates and responses, against stations whose rates and mean responses are known.

use std::fmt::Write as _;

use dyelog::model::parameter::Subject;
use dyelog::model::{Configuration, complete};
use dyelog::study::few_operations;
use dyelog::study::interval::Interval;
use dyelog::study::sweep::{Before, WrittenQuestion, set};

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

/// What is predicted for a station under another load, with its interval, or that there is no steady state.
fn predicted(station: (u32, f64), count: usize, seed: u64, rate: &str) -> Option<(f64, Interval)> {
    configured(station, count, seed, (rate, ""))
}

/// The same with a configuration.
fn configured(
    (servers, busy): (u32, f64),
    count: usize,
    seed: u64,
    (rate, configuration): (&str, &str),
) -> Option<(f64, Interval)> {
    let text = spans(&station(seed, servers, busy, count), 1000, |_| true);
    let sub = reduced("t.jsonl", text.as_bytes());
    let mut subject = Subject::of_traces(sub, &"t.toml".into(), configuration, false).expect("there are requests");
    let set_rate = [format!("scenario.\"host serve\".rate={rate}")];
    let written = WrittenQuestion { set: &set_rate, vary: &[], show: &["response".to_owned()] };
    let before = [Before::of(&subject, &written)];
    set(&mut subject, &set_rate).expect("it has a rate");
    let subjects = [("t".to_owned(), subject)];
    let question = written.of(&subjects, 1, true).expect("it is sound");
    let (table, _) = question.answer(&subjects, &before, &|| ());
    let point = &table.points[0];
    Some((point.figures[0]?, point.intervals[0].expect("a figure of traces has an interval")))
}

/// How many of so many predictions hold the mean response, how many there are, and the median of half their widths, as a part of the figure.
fn foretold(servers: u32, busy: f64, count: usize, runs: u64, factor: f64) -> (usize, usize, f64) {
    let response = mean_response(servers, busy * factor);
    let found: Vec<(f64, Interval)> =
        (2000..2000 + runs).filter_map(|seed| predicted((servers, busy), count, seed, &format!("x{factor}"))).collect();
    let held = found.iter().filter(|(_, own)| own.low <= response && response <= own.high).count();
    let mut widths: Vec<f64> = found.iter().map(|(figure, own)| (own.high - own.low) / (2.0 * figure)).collect();
    widths.sort_by(f64::total_cmp);
    (held, found.len(), widths.get(widths.len() / 2).copied().unwrap_or(f64::INFINITY))
}

/// Of stations under 1.3 and 1.6 times the load that was traced.
#[test]
fn nine_of_ten_intervals_hold_the_mean_under_more_load() {
    const RUNS: u64 = 12;
    let (mut table, mut held, mut all) = (String::new(), 0, 0);
    for (servers, busy, factor, count, wide) in [
        (1, 0.3, 1.6, 500, 0.35),
        (1, 0.5, 1.3, 2000, 0.3),
        (1, 0.6, 1.3, 2000, 0.5),
        (2, 0.5, 1.6, 2000, 0.45),
        (4, 0.3, 1.6, 500, 0.3),
        (4, 0.5, 1.3, 2000, 0.3),
    ] {
        let (own, told, width) = foretold(servers, busy, count, RUNS, factor);
        let _ = writeln!(
            table,
            "{servers} servers, {busy} busy, x{factor}, {count} requests: {own} of {told}, median half width {width:.2}"
        );
        assert!(told == RUNS as usize && width < wide, "{table}");
        (held, all) = (held + own, all + told);
    }
    println!("{table}");
    assert!(held * 10 >= all * 9, "{held} of {all}\n{table}");
}

/// A rate that is given is certain; so many times the traced one is not.
#[test]
fn the_error_of_a_rate_counts_where_it_was_traced() {
    let traced = 0.6 / DEMAND;
    let station = (1, 0.6);
    let (figure, given) = predicted(station, 1000, 5, &(1.3 * traced).to_string()).expect("it has a steady state");
    let (other, times) = predicted(station, 1000, 5, "x1.3").expect("it has a steady state");
    let width = |figure: f64, own: Interval| (own.high / figure).ln();
    assert!(width(other, times) > 1.1 * width(figure, given), "{times:?} and {given:?}");
}

/// A model that misses the traced responses misses others, and intervals say so: this one is told of four fifths of the demand.
#[test]
fn what_a_model_misses_counts_in_intervals() {
    let configuration =
        format!("[processor.host]\nmultiplicity = 1\n\n[demand.entry]\nserve = \"{} ms\"\n", 800.0 * DEMAND);
    let (mut held, mut far) = (0, 0);
    for seed in 1..=24 {
        let given = ("x1.3", &configuration[..]);
        let (figure, own) = configured((1, 0.5), 2000, seed, given).expect("it has a steady state");
        let truth = mean_response(1, 0.5 * 1.3);
        held += usize::from(own.low <= truth && truth <= own.high);
        far += usize::from((figure / truth).ln().abs() > 0.3);
    }
    assert!(held >= 20 && far == 24, "{held} held, {far} far");
}

/// Under the load that was traced, a prediction is as far off as the mean of the traced operations at least.
#[test]
fn no_prediction_is_surer_than_what_was_traced() {
    let text = spans(&station(6, 4, 0.5, 500), 1000, |_| true);
    let (_, _, origins) =
        complete(&reduced("t.jsonl", text.as_bytes()), &Configuration::default()).expect("there are requests");
    let traced = origins.scenarios[0].response_error.expect("many");
    let (figure, own) = predicted((4, 0.5), 500, 6, "x1").expect("it has a steady state");
    assert!((own.high / figure).ln() > traced - 1e-9 && (figure / own.low).ln() > traced - 1e-9, "{own:?}");
}

#[test]
#[ignore = "it takes minutes"]
fn intervals_of_predictions_in_full() {
    let (mut held, mut all, mut table) = (0, 0, String::new());
    for servers in [1, 2, 4] {
        for busy in [0.3, 0.5, 0.6, 0.7] {
            for factor in [1.0, 1.3, 1.6] {
                for count in [500, 5000] {
                    if busy * factor > 0.95 {
                        continue;
                    }
                    let (own, told, width) = foretold(servers, busy, count, 40, factor);
                    let _ = writeln!(
                        table,
                        "{servers} servers, {busy} busy, x{factor}, {count} requests: {own} of {told}, median half width {width:.2}"
                    );
                    (held, all) = (held + own, all + told);
                }
            }
        }
    }
    println!("{table}{held} of {all}");
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
