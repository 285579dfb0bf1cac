//! What holds for any spans: operations are well-formed, and the order of the input does not show. And sizes.

use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::sample::Index;

use super::dsl::{jaeger, otlp};
use super::dump::{Show, dump, read, read_together};

#[derive(Clone, Debug)]
struct AnySpan {
    parent: Option<Index>,
    trace: u8,
    service: u8,
    kind: usize,
    start: u16,
    duration: u16,
    extra: u8,
    link: Index,
}

fn any_span() -> impl Strategy<Value = AnySpan> {
    (
        prop::option::weighted(0.9, any::<Index>()),
        0..10_u8,
        0..4_u8,
        0..6_usize,
        0..300_u16,
        0..200_u16,
        0..12_u8,
        any::<Index>(),
    )
        .prop_map(|(parent, trace, service, kind, start, duration, extra, link)| AnySpan {
            parent,
            trace: trace / 9,
            service,
            kind,
            start,
            duration,
            extra,
            link,
        })
}

const KINDS: [&str; 6] = ["none", "internal", "server", "client", "producer", "consumer"];

/// A row a span. Parents are any spans of the same trace, themselves included, and sometimes one that is not there.
fn lines(spans: &[AnySpan]) -> Vec<String> {
    spans
        .iter()
        .enumerate()
        .map(|(at, span)| {
            let parent = span.parent.map_or("-".to_owned(), |parent| {
                let parent = parent.index(spans.len() + 1);
                if span.extra == 0 || parent < at { format!("{:x}", parent + 1) } else { format!("{:x}", at.max(1)) }
            });
            let extra = match span.extra {
                1 => " peer.service=s1".to_owned(),
                2 => format!(" link={}/{:x}", span.trace + 1, span.link.index(spans.len()) + 1),
                3 => " messaging.operation=receive".to_owned(),
                4 => " noend".to_owned(),
                5 => " host=h".to_owned(),
                _ => String::new(),
            };
            let id = if span.extra == 6 { 1 } else { at + 1 };
            let end = span.start + span.duration;
            format!(
                "{}/{id:x} {parent} s{} {} n{} {} {end}{extra}",
                span.trace + 1,
                span.service,
                KINDS[span.kind],
                at % 3,
                span.start
            )
        })
        .collect()
}

proptest! {
    #[test]
    fn any_spans_give_well_formed_operations_whatever_their_order(
        (spans, order) in prop::collection::vec(any_span(), 1..25)
            .prop_flat_map(|spans| {
                let order: Vec<usize> = (0..spans.len()).collect();
                (Just(spans), Just(order).prop_shuffle())
            })
    ) {
        let lines = lines(&spans);
        let first = otlp(&lines.join("\n"));
        let twice: Vec<&str> = order.iter().chain(order.first()).map(|at| lines[*at].as_str()).collect();
        let shuffled = otlp(&twice.join("\n"));
        // `read` checks each operation.
        let first = read("otlp", first.as_bytes()).expect("it can be read");
        let second = read("otlp", shuffled.as_bytes()).expect("it can be read");
        prop_assert_eq!(dump(&first, Show::Times), dump(&second, Show::Times));
        let third = read("jaeger", jaeger(&lines.join("\n")).as_bytes()).expect("it can be read");
        let fourth = read("jaeger", jaeger(&twice.join("\n")).as_bytes()).expect("it can be read");
        prop_assert_eq!(dump(&third, Show::Times), dump(&fourth, Show::Times));
    }

    #[test]
    fn spans_may_lie_in_any_files_and_in_several(
        spans in prop::collection::vec((any_span(), 1..8_u8), 1..25)
    ) {
        let (spans, files): (Vec<_>, Vec<_>) = spans.into_iter().unzip();
        let lines = lines(&spans);
        let whole = read("otlp", otlp(&lines.join("\n")).as_bytes()).expect("it can be read");
        // A bit a file that has the span.
        let parts: Vec<String> = (0..3)
            .map(|bit| lines.iter().zip(&files).filter(|(_, files)| **files >> bit & 1 == 1).map(|(line, _)| line.as_str()).collect::<Vec<_>>().join("\n"))
            .filter(|part| !part.is_empty())
            .map(|part| otlp(&part))
            .collect();
        let together = read_together(&parts).expect("they can be read");
        prop_assert_eq!(dump(&whole, Show::Times), dump(&together, Show::Times));
        let backwards: Vec<String> = parts.into_iter().rev().collect();
        let backwards = read_together(&backwards).expect("they can be read");
        prop_assert_eq!(dump(&whole, Show::Times), dump(&backwards, Show::Times));
    }
}

const MANY: usize = 100_000;

/// Spans as OTLP, without the way over a tree of JSON: `(id, parent, service, kind, start, end)` in microseconds.
fn many(spans: impl Iterator<Item = (usize, usize, usize, usize, usize, usize)>) -> String {
    let mut text = String::from("{\"resourceSpans\":[");
    for (at, (id, parent, service, kind, start, end)) in spans.enumerate() {
        let comma = if at == 0 { "" } else { "," };
        write!(
            text,
            "{comma}{{\"resource\":{{\"attributes\":[{{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"s{service}\"}}}}]}},\
             \"scopeSpans\":[{{\"spans\":[{{\"traceId\":\"1\",\"spanId\":\"{id:x}\",\"parentSpanId\":\"{parent:x}\",\"name\":\"n\",\
             \"kind\":{kind},\"startTimeUnixNano\":\"{start}001001\",\"endTimeUnixNano\":\"{end}001001\"}}]}}]}}"
        )
        .expect("a string takes all");
    }
    text.push_str("]}");
    text
}

fn events_of(text: &str) -> usize {
    let outcome = read("otlp", text.as_bytes()).expect("it can be read");
    outcome.operations.iter().map(|operation| operation.events.len()).sum()
}

#[test]
fn deep_traces() {
    // Alternating server and client spans, each within the one before; then the same with one service calling itself.
    for services in [1, 7] {
        let spans = (0..MANY)
            .map(|at| (at + 1, at, (at / 2) % services, if at % 2 == 0 { 2 } else { 3 }, at + 1, 3 * MANY - at));
        assert!(events_of(&many(spans)) > 2 * MANY);
    }
    // Clients all the way down, activities all the way down, messages all the way down.
    for (kind, least) in [(3, 6), (1, MANY), (5, MANY)] {
        let service = |at| if kind == 5 { at % 5 } else { 0 };
        let spans = (0..MANY).map(|at| (at + 1, at, service(at), kind, at + 1, 3 * MANY - at));
        assert!(events_of(&many(spans)) >= least, "kind {kind}");
    }
}

#[test]
fn wide_traces() {
    let root = || std::iter::once((1, 0, 0, 2, 1, 9 * MANY));
    let children =
        |length: usize, kind| root().chain((1..MANY).map(move |at| (at + 1, 1, 1, kind, 2 * at, 2 * at + length)));
    for kind in [1, 2, 3, 5] {
        // One after the other, overlapping their neighbours, and all at once.
        for length in [1, 3, 2 * MANY] {
            assert!(events_of(&many(children(length, kind))) >= MANY, "kind {kind} length {length}");
        }
    }
}

#[test]
fn one_identifier_for_all() {
    for kind in 0..6 {
        let spans = (0..MANY / 4).map(|at| (7, 7, at % 3, kind, at + 1, at + 50));
        assert!(events_of(&many(spans)) > 0);
    }
    let orphans = (0..MANY / 4).map(|at| (at + 10, 2 * MANY + at, at % 3, 2, at + 1, at + 50));
    assert!(events_of(&many(orphans)) > 0);
}
