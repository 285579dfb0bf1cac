//! Intervals of traced rates and responses, against stations whose rates and mean responses are known.

use dyelog::lqn::submodel::ScenarioTotal;
use dyelog::model::{Configuration, complete};

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

fn alternatives(total: &ScenarioTotal) -> Vec<f64> {
    let cells: Vec<(f64, f64)> =
        total.starts.cells().iter().map(|cell| (cell.response.count as f64, cell.response.sum.as_f64())).collect();
    let count: f64 = cells.iter().map(|own| own.0).sum();
    let mean = cells.iter().map(|own| own.1).sum::<f64>() / count;
    let of = |length: usize| {
        let batches = cells.chunks(length);
        let number = batches.len() as f64;
        let squares: f64 = batches.map(|own| own.iter().map(|(own, sum)| sum - own * mean).sum::<f64>().powi(2)).sum();
        (squares * number / (number - 1.0)).sqrt() / (count * mean)
    };
    vec![of(1), of(2), of(4), of(8)]
}

#[test]
#[ignore]
fn experiment() {
    for (servers, busy) in [(1, 0.3), (1, 0.6), (1, 0.8), (4, 0.5), (4, 0.8)] {
        for count in [300, 1200, 5000] {
            let truth = mean_response(servers, busy);
            let mut held = [0; 9];
            let mut widths = [0.0; 9];
            let runs = 100;
            for seed in 0..runs {
                let sub =
                    reduced("t.jsonl", spans(&station(1000 + seed, servers, busy, count), 1000, |_| true).as_bytes());
                let (_, _, origins) = complete(&sub, &Configuration::default()).expect("there are requests");
                let own = &origins.scenarios[0];
                let seen = own.observed_response.expect("times");
                let off = (truth / seen - 1.0).abs();
                let rate_off = (f64::from(servers) * busy / DEMAND / own.observed_rate.expect("rate") - 1.0).abs();
                held[0] += usize::from(rate_off <= own.rate_error.expect("one"));
                widths[0] += own.rate_error.expect("one");
                held[1] += usize::from(off <= own.response_error.expect("one"));
                widths[1] += own.response_error.expect("one");
                let others = alternatives(sub.scenarios.values().next().expect("one"));
                let t = [2.0, 2.04, 2.13, 2.36];
                let mut all = own.response_error.expect("one");
                for (at, other) in others.iter().enumerate() {
                    held[2 + at] += usize::from(off <= t[at] * other);
                    widths[2 + at] += t[at] * other;
                    all = all.max(t[at] * other);
                }
                held[6] += usize::from(off <= all);
                widths[6] += all;
                // Log scale.
                held[7] += usize::from((truth / seen).ln().abs() <= all);
                held[8] += usize::from(
                    off <= (1.96_f64 * 1.96 * 2.0 * (1.0 + busy)
                        / (busy * (1.0 - busy).powi(2))
                        / (count as f64 / busy / f64::from(servers)))
                    .sqrt(),
                );
            }
            let widths: Vec<i64> = widths.iter().map(|own| (own / runs as f64 * 100.0) as i64).collect();
            println!("{servers} {busy} {count}: rate, now, cells 1 2 4 8, all, log, theory: {held:?} {widths:?}");
        }
    }
}
