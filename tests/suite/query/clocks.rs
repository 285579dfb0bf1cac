//! Clocks that differ: facts of times are those that the model is made of, and the recorded ones lie beside them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Scope, ask};

/// By how much the clock of a service is late, in nanoseconds.
const LATE: i64 = 10_000_000;

/// The bundled trace, with the times of one service moved.
fn shop(moved: &str, by: i64) -> Vec<u8> {
    let text = std::fs::read_to_string("traces/shop.otlp.jsonl").expect("the trace is bundled");
    let mut out = Vec::new();
    for line in text.lines() {
        let mut document: Value = serde_json::from_str(line).expect("JSON");
        for part in document["resourceSpans"].as_array_mut().expect("spans by resource") {
            let attributes = part["resource"]["attributes"].as_array().expect("attributes").iter();
            let is_moved = attributes
                .clone()
                .any(|attribute| attribute["key"] == "service.name" && attribute["value"]["stringValue"] == moved);
            if !is_moved {
                continue;
            }
            // Elsewhere all run on one machine, whose clock they share.
            part["resource"]["attributes"]
                .as_array_mut()
                .expect("attributes")
                .retain(|attribute| attribute["key"].as_str().is_none_or(|key| !key.starts_with("host.")));
            let spans = part["scopeSpans"].as_array_mut().expect("scopes").iter_mut();
            for span in spans.flat_map(|scope| scope["spans"].as_array_mut().expect("spans")) {
                for key in ["startTimeUnixNano", "endTimeUnixNano"] {
                    let time: i64 = span[key].as_str().and_then(|time| time.parse().ok()).expect("a time");
                    span[key] = (time + by).to_string().into();
                }
            }
        }
        out.extend(document.to_string().bytes());
        out.push(b'\n');
    }
    out
}

/// By span, the sum of the numbers in the last column.
fn by_span(rules: &str, trace: &[u8]) -> BTreeMap<String, i64> {
    let (rows, _) = ask(rules, trace, Scope::Operation).expect("it runs");
    let mut sums = BTreeMap::new();
    for row in rows {
        *sums.entry(row[0].clone()).or_default() += row[row.len() - 1].parse::<i64>().expect("a number");
    }
    sums
}

#[test]
fn facts_of_times_are_corrected_and_the_recorded_ones_stay() {
    for service in ["catalog", "inventory"] {
        let (truth, late) = (shop(service, 0), shop(service, -LATE));
        for rules in [
            "q(S, T) :- self_time(S, T).",
            "q(S, T) :- covered(S, T).",
            "q(S, T) :- gap(S, F, E), T = E - F.",
            "q(S, N) :- concurrency(S, N).",
            "q(S, T) :- duration(S, T).",
            "q(C, N) :- child(_, C, N).",
            "use \"std/critical_path.dl\" q(S, T) :- critical_time(S, T).",
        ] {
            let (expected, found) = (by_span(rules, &truth), by_span(rules, &late));
            let wrong = expected.iter().filter(|(span, value)| found.get(*span) != Some(value)).count();
            // What runs side by side may change places, for a clock is known only up to the time that calls are on their way.
            assert!(wrong * 100 <= expected.len(), "{service}: {rules}: {wrong} of {}", expected.len());
        }
        let recorded = "q(S, T) :- recorded_start(S, T).";
        let (expected, found) = (by_span(recorded, &truth), by_span(recorded, &late));
        let moved = expected.iter().filter(|(span, time)| found[*span] == **time - LATE).count();
        let of_service = by_span(&format!("q(S, 1) :- span(S, \"{service}\", _)."), &truth).len();
        assert_eq!(moved, of_service);
        let shift = format!("q(S, D) :- span(S, \"{service}\", _), start(S, T), recorded_start(S, R), D = T - R.");
        let (before, after) = (by_span(&shift, &truth), by_span(&shift, &late));
        assert!(before.values().all(|shift| *shift == 0), "{service}: {before:?}");
        let near = after.values().filter(|shift| (**shift - LATE).abs() < 1_000_000).count();
        assert!(near * 100 >= after.len() * 99, "{service}: {after:?}");
        let ends = "q(S, D) :- start(S, T), recorded_start(S, R), end(S, E), recorded_end(S, F), D = E - F - T + R.";
        assert!(by_span(ends, &late).values().all(|difference| *difference == 0), "{service}");
    }
}
