//! How fast spans become operations, against only parsing the same bytes as JSON.
//!
//! `cargo bench --bench spans`. The input is 9091 traces of eleven spans, six services deep, as the hotel application gives
//! them: 10^5 spans of OTLP JSON, a resource a service, in one document.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use dyelog::trace::spans::{self, SpanOptions};
use dyelog::trace::{Format, Operation, TraceNames};
use serde::de::IgnoredAny;

fn main() {
    divan::main();
}

const TRACES: usize = 9091;
const SPANS: usize = TRACES * 11;

/// `(service, parent, kind, name, start, end)`; times in microseconds.
const TRACE: [(&str, usize, u8, &str, u64, u64); 11] = [
    ("frontend", 0, 2, "HTTP GET /hotels", 0, 20_228),
    ("frontend", 1, 3, "/search.Search/Nearby", 639, 12_479),
    ("search", 2, 2, "/search.Search/Nearby", 1307, 12_430),
    ("search", 3, 3, "/geo.Geo/Nearby", 3915, 6112),
    ("geo", 4, 2, "/geo.Geo/Nearby", 4839, 5250),
    ("search", 3, 3, "/rate.Rate/GetRates", 6387, 12_402),
    ("rate", 6, 2, "/rate.Rate/GetRates", 7372, 11_609),
    ("frontend", 1, 3, "/reservation.Reservation/CheckAvailability", 12_743, 17_067),
    ("reservation", 8, 2, "/reservation.Reservation/CheckAvailability", 15_271, 16_942),
    ("frontend", 1, 3, "/profile.Profile/GetProfiles", 17_456, 20_141),
    ("profile", 10, 2, "/profile.Profile/GetProfiles", 18_204, 19_607),
];

fn input() -> String {
    let mut text = String::from("{\"resourceSpans\":[");
    let services = ["frontend", "search", "geo", "rate", "reservation", "profile"];
    for (at, service) in services.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        write!(
            text,
            "{comma}{{\"resource\":{{\"attributes\":[{{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"{service}\"}}}}]}},\
             \"scopeSpans\":[{{\"scope\":{{\"name\":\"bench\"}},\"spans\":["
        )
        .expect("a string takes all");
        let mut comma = "";
        for trace in 1..=TRACES {
            for (at, (_, parent, kind, name, start, end)) in
                TRACE.iter().enumerate().filter(|(_, row)| row.0 == *service)
            {
                let epoch = 1_700_000_000_000_000 + trace as u64 * 25_000;
                let parent = if *parent == 0 { String::new() } else { format!("{:016x}", trace * 16 + parent) };
                write!(
                    text,
                    "{comma}{{\"traceId\":\"{trace:032x}\",\"spanId\":\"{:016x}\",\"parentSpanId\":\"{parent}\",\"name\":\"{name}\",\
                     \"kind\":{kind},\"startTimeUnixNano\":\"{}000\",\"endTimeUnixNano\":\"{}000\",\"attributes\":[{{\"key\":\
                     \"component\",\"value\":{{\"stringValue\":\"gRPC\"}}}}],\"status\":{{}}}}",
                    trace * 16 + at + 1,
                    epoch + start,
                    epoch + end,
                )
                .expect("a string takes all");
                comma = ",";
            }
        }
        text.push_str("]}]}");
    }
    text.push_str("]}");
    text
}

#[divan::bench(sample_count = 10)]
fn spans_to_operations(bencher: Bencher<'_, '_>) {
    let input = input();
    bencher.counter(BytesCount::of_str(&input)).counter(ItemsCount::new(SPANS)).bench_local(|| {
        let mut names = TraceNames::new();
        let mut events = 0;
        let mut sink = |_: &TraceNames, operation: Operation| {
            events += operation.events.len();
            ControlFlow::Continue(())
        };
        let report =
            spans::read(Format::Otlp, "bench", input.as_bytes(), SpanOptions::default(), &mut names, &mut sink);
        assert_eq!(report.expect("it can be read").operations, TRACES as u64);
        black_box(events)
    });
}

#[divan::bench(sample_count = 10)]
fn json_parsed_and_ignored(bencher: Bencher<'_, '_>) {
    let input = input();
    bencher
        .counter(BytesCount::of_str(&input))
        .counter(ItemsCount::new(SPANS))
        .bench_local(|| serde_json::from_str::<IgnoredAny>(black_box(&input)).expect("it is JSON"));
}
