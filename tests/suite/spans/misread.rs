//! Single times that no clock can have told: they are put right and told, and what is slow stays slow.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::dsl::otlp;
use super::dump::{Outcome, read};

const HOUR: f64 = 3_600_000.0;

/// Times of the spans of an operation in milliseconds, from its start: `(parent, service, kind, name, start, end)`.
type Rows = [(&'static str, &'static str, &'static str, &'static str, f64, f64); 5];

/// A request of 20 ms that asks a database, by a client, and a mailer, of which only the server is seen.
const REQUEST: Rows = [
    ("-", "web", "server", "GET", 0.0, 20.0),
    ("a", "web", "client", "query", 2.0, 12.0),
    ("b", "db", "server", "query", 3.0, 11.0),
    ("a", "mailer", "server", "mail", 13.0, 18.0),
    ("a", "web", "internal", "render", 18.5, 19.5),
];

/// So many requests, ten a second, of which the function changes what it likes.
fn requests(count: usize, change: impl Fn(usize, &mut Rows)) -> String {
    (0..count).fold(String::new(), |mut table, number| {
        let mut rows = REQUEST;
        // Nothing takes equally long twice.
        let scale = 1.0 + f64::from((number * 7 % 20) as u32) / 20.0;
        for row in &mut rows {
            (row.4, row.5) = (row.4 * scale, row.5 * scale);
        }
        change(number, &mut rows);
        for (id, (parent, service, kind, name, start, end)) in ["a", "b", "c", "d", "e"].iter().zip(rows) {
            let at = 100.0 * number as f64;
            let (start, end) = (at + start, at + end);
            writeln!(table, "{}/{id} {parent} {service} {kind} {name} {start} {end} host={service}", number + 1)
                .expect("a string");
        }
        table
    })
}

fn outcome(table: &str) -> Outcome {
    read("otlp", otlp(table).as_bytes()).expect("it can be read")
}

fn told(outcome: &Outcome) -> Vec<String> {
    let found = outcome.report.findings.iter().filter(|finding| finding.code.0 == "T125");
    found.map(|finding| finding.message.clone()).collect()
}

/// From the first to the last event of each operation, in milliseconds.
fn extents(outcome: &Outcome) -> Vec<f64> {
    let extent = |times: &mut dyn Iterator<Item = f64>| {
        let (first, last) = times.fold((f64::MAX, f64::MIN), |(first, last), time| (first.min(time), last.max(time)));
        (last - first) * 1e3
    };
    outcome.operations.iter().map(|own| extent(&mut own.events.iter().map(|event| event.time))).collect()
}

#[test]
fn a_span_an_hour_beside_its_trace_is_moved_there() {
    for (moved, name) in ["GET", "query", "query", "mail", "render"].into_iter().enumerate() {
        for by in [HOUR, -HOUR, 2_000.0] {
            let outcome = outcome(&requests(60, |number, rows| {
                if number == 33 {
                    (rows[moved].4, rows[moved].5) = (rows[moved].4 + by, rows[moved].5 + by);
                }
            }));
            let [told] = &*told(&outcome) else { panic!("{moved} by {by}: {:?}", told(&outcome)) };
            assert!(told.starts_with(&format!("`{name}` of `")), "{told}");
            let extents = extents(&outcome);
            assert!(extents.iter().all(|extent| *extent < 60.0), "{moved} by {by}: {extents:?}");
        }
    }
}

#[test]
fn a_span_of_an_hour_is_cut() {
    for (long, name) in ["GET", "query", "query", "mail", "render"].into_iter().enumerate() {
        for early in [false, true] {
            let outcome = outcome(&requests(60, |number, rows| {
                if number == 33 {
                    let time = if early { &mut rows[long].4 } else { &mut rows[long].5 };
                    *time += if early { -HOUR } else { HOUR };
                }
            }));
            let told = told(&outcome);
            assert!(told.iter().any(|told| told.starts_with(&format!("`{name}` of `"))), "{long}: {told:?}");
            let extents = extents(&outcome);
            assert!(extents.iter().all(|extent| *extent < 60.0), "{long}: {extents:?}");
        }
    }
}

#[test]
fn an_operation_whose_spans_are_all_late_is_left_alone() {
    let outcome = outcome(&requests(60, |number, rows| {
        for row in rows.iter_mut().filter(|_| number == 33) {
            (row.4, row.5) = (row.4 + HOUR, row.5 + HOUR);
        }
    }));
    assert_eq!(told(&outcome), Vec::<String>::new());
}

#[test]
fn what_is_slow_stays_slow() {
    // A timeout of 30 s of a call, that of a database that is not traced, and a batch job among requests.
    let timeout = |at: usize| {
        move |number: usize, rows: &mut Rows| {
            if number == 33 {
                let late = 30_000.0;
                for row in rows.iter_mut().skip(at) {
                    row.5 += late;
                    row.4 += if row.3 == "query" { 0.0 } else { late };
                }
                rows[0].5 += if at > 0 { late } else { 0.0 };
            }
        }
    };
    let batch = |number: usize, rows: &mut Rows| {
        if number == 33 {
            for row in rows.iter_mut().take(3) {
                row.5 = row.4 + HOUR;
            }
            (rows[3].4, rows[3].5) = (rows[3].4 + HOUR, rows[3].5 + HOUR);
            (rows[4].4, rows[4].5) = (rows[4].4 + HOUR, rows[4].5 + HOUR);
            rows[0].5 += 20.0;
        }
    };
    let parts = |number: usize, rows: &mut Rows| {
        if number == 33 {
            let third = HOUR / 3.0;
            let times = [(0.0, HOUR), (0.0, third), (0.0, third), (third, 2.0 * third), (2.0 * third, HOUR)];
            for (row, (start, end)) in rows.iter_mut().zip(times) {
                (row.4, row.5) = (start, end);
            }
        }
    };
    let alone = |number: usize, rows: &mut Rows| rows[0].5 += if number == 33 { 30_000.0 } else { 0.0 };
    let cases: [(&str, String, f64); 4] = [
        ("a call", requests(60, timeout(1)), 30_000.0),
        ("a batch job", requests(60, batch), HOUR),
        ("a batch job of parts", requests(60, parts), HOUR),
        ("what is not traced", requests(60, alone), 30_000.0),
    ];
    for (case, table, least) in cases {
        let outcome = outcome(&table);
        assert_eq!(told(&outcome), Vec::<String>::new(), "{case}");
        let longest = extents(&outcome).into_iter().fold(0.0, f64::max);
        assert!(longest >= least, "{case}: {longest} ms");
    }
}

#[test]
fn jobs_that_begin_later_are_not_moved() {
    // Each request leaves something to be done a second later, by the same service.
    let table = requests(60, |_, rows| (rows[4].4, rows[4].5) = (1_000.0, 1_001.0));
    let outcome = outcome(&table);
    assert_eq!(told(&outcome), Vec::<String>::new());
    assert!(extents(&outcome).iter().all(|extent| *extent > 900.0));
}

#[test]
fn clocks_that_are_off_by_much_are_clocks() {
    for by in [7_000.0, -HOUR] {
        let outcome = outcome(&requests(60, |_, rows| {
            (rows[2].4, rows[2].5) = (rows[2].4 + by, rows[2].5 + by);
        }));
        assert_eq!(told(&outcome), Vec::<String>::new());
        let clocks = outcome.report.findings.iter().filter(|finding| finding.code.0 == "T115").count();
        assert_eq!(clocks, 1, "{by}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Heavy tails: durations whose mean is infinite, each within what waits for it.
    #[test]
    fn heavy_tails_stay(seed in 0..1_000_000_u64) {
        let table = requests(200, |number, rows| {
            let random = (seed.wrapping_add(number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / f64::from(1 << 24);
            let factor = 1.0 / (1.0 - random).max(1e-6);
            for row in rows.iter_mut() {
                (row.4, row.5) = (row.4 * factor, row.5 * factor);
            }
        });
        let outcome = outcome(&table);
        prop_assert_eq!(told(&outcome), Vec::<String>::new());
    }
}
