//! The standard library and the facts that it stands on, against oracles that share nothing with them: small trees, by brute force.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{Scope, ask};
use crate::support::shared;

/// A span: its parent, start and end in ticks, whether it failed, which of three names it has.
#[derive(Clone, Debug)]
struct Span {
    parent: Option<usize>,
    start: i64,
    end: i64,
    failed: bool,
    name: usize,
}

/// A tick in nanoseconds: Jaeger counts in microseconds.
const TICK: i64 = 1000;

fn trees() -> impl Strategy<Value = Vec<Span>> {
    let span = (any::<prop::sample::Index>(), 0..20_i64, 0..8_i64, any::<bool>(), 0..3_usize);
    prop::collection::vec(span, 1..14).prop_map(|all| {
        let mut spans: Vec<Span> = Vec::new();
        for (number, (parent, start, length, failed, name)) in all.into_iter().enumerate() {
            let parent = (number > 0).then(|| parent.index(number));
            let (start, length) = if number == 0 { (0, 24) } else { (start, length) };
            spans.push(Span { parent, start, end: start + length, failed, name });
        }
        spans
    })
}

fn jaeger(spans: &[Span]) -> String {
    let spans: Vec<String> = spans
        .iter()
        .enumerate()
        .map(|(number, span)| {
            let references = span.parent.map_or_else(String::new, |parent| {
                format!(r#"{{"refType":"CHILD_OF","traceID":"1","spanID":"{:x}"}}"#, parent + 16)
            });
            format!(
                r#"{{"traceID":"1","spanID":"{:x}","processID":"p","operationName":"n{}","startTime":{},"duration":{},"references":[{references}],"tags":[{{"key":"error","value":{}}}]}}"#,
                number + 16, span.name, span.start + 1_000_000, span.end - span.start, span.failed
            )
        })
        .collect();
    format!(r#"{{"data":[{{"traceID":"1","processes":{{"p":{{"serviceName":"s"}}}},"spans":[{}]}}]}}"#, spans.join(","))
}

/// The rows, spans as their places: identifiers count from 16, in hexadecimal.
fn rows(rules: &str, spans: &[Span], of_spans: usize) -> BTreeSet<Vec<i64>> {
    let (rows, _) = ask(rules, jaeger(spans).as_bytes(), Scope::Operation).expect("it runs");
    let number = |(place, text): (usize, &String)| {
        if place < of_spans {
            i64::from_str_radix(text, 16).expect("an identifier") - 16
        } else {
            text.parse().unwrap_or(i64::MIN)
        }
    };
    rows.iter().map(|row| row.iter().enumerate().map(number).collect()).collect()
}

fn is_above(spans: &[Span], above: usize, below: usize) -> bool {
    let mut at = spans[below].parent;
    while let Some(span) = at {
        if span == above {
            return true;
        }
        at = spans[span].parent;
    }
    false
}

fn children(spans: &[Span], of: usize) -> Vec<usize> {
    (0..spans.len()).filter(|child| spans[*child].parent == Some(of)).collect()
}

/// The ticks of a span during which no child runs.
fn alone(spans: &[Span], of: usize) -> Vec<i64> {
    let children = children(spans, of);
    let runs = |tick: i64| children.iter().any(|child| spans[*child].start <= tick && tick < spans[*child].end);
    (spans[of].start..spans[of].end).filter(|tick| !runs(*tick)).collect()
}

/// Who the response waits for at each tick of a stretch, latest first: tick by tick, which is not how the library does it.
/// Says whether two spans had the same times somewhere, so that either might be named.
fn waits(spans: &[Span], span: usize, from: i64, to: i64, found: &mut Vec<(i64, usize)>) -> bool {
    let mut equal = false;
    let mut left: Vec<(i64, i64, usize)> = children(spans, span)
        .into_iter()
        .map(|child| (spans[child].start.max(from), spans[child].end.min(to), child))
        .filter(|(start, end, _)| start < end)
        .collect();
    let mut tick = to;
    while tick > from {
        // Of those that end here, the one that started last.
        let here: Vec<_> = left.iter().filter(|(_, end, _)| *end == tick).copied().collect();
        let last = here.iter().max_by_key(|(start, _, child)| (*start, *child)).copied();
        equal |= last.is_some_and(|last| here.iter().any(|one| one.0 == last.0 && one.2 != last.2));
        match last {
            Some((start, end, child)) => {
                equal |= waits(spans, child, start, end, found);
                left.retain(|one| one.2 != child);
                tick = start;
            }
            None => {
                tick -= 1;
                found.push((tick, span));
            }
        }
    }
    equal
}

proptest! {
    #[test]
    fn ancestors_are_those_of_the_closure(spans in trees()) {
        let all = (0..spans.len()).flat_map(|a| (0..spans.len()).map(move |b| (a, b)));
        let expected: BTreeSet<Vec<i64>> =
            all.filter(|(a, b)| is_above(&spans, *a, *b)).map(|(a, b)| vec![a as i64, b as i64]).collect();
        prop_assert_eq!(&rows("q(A, B) :- ancestor(A, B).", &spans, 2), &expected);
        prop_assert_eq!(&rows("q(A, B) :- span(A, _, _), ancestor(A, B).", &spans, 2), &expected);
        prop_assert_eq!(&rows("q(A, B) :- order(A, P, Q), order(B, R, T), P < R, Q > T.", &spans, 2), &expected);
        let counted = rows("use \"std/tree.dl\" q(S, N) :- descendants(S, N).", &spans, 1);
        let expected: BTreeSet<Vec<i64>> =
            (0..spans.len()).map(|a| vec![a as i64, expected.iter().filter(|row| row[0] == a as i64).count() as i64]).collect();
        prop_assert_eq!(counted, expected);
    }

    #[test]
    fn self_time_and_gaps_are_those_of_a_clock(spans in trees()) {
        let own = |of: usize| alone(&spans, of).len() as i64 * TICK;
        let expected: BTreeSet<Vec<i64>> = (0..spans.len()).map(|of| vec![of as i64, own(of)]).collect();
        prop_assert_eq!(rows("q(S, T) :- self_time(S, T).", &spans, 1), expected);
        let expected: BTreeSet<Vec<i64>> =
            (0..spans.len()).map(|of| vec![of as i64, (spans[of].end - spans[of].start) * TICK - own(of)]).collect();
        prop_assert_eq!(rows("q(S, T) :- covered(S, T).", &spans, 1), expected);
        let gaps = rows("q(S, F, E) :- gap(S, F, E).", &spans, 1);
        let ticks: BTreeSet<(i64, i64)> = gaps
            .iter()
            .flat_map(|row| ((row[1] / TICK - 1_000_000)..(row[2] / TICK - 1_000_000)).map(|tick| (row[0], tick)))
            .collect();
        let expected = (0..spans.len()).flat_map(|of| alone(&spans, of).into_iter().map(move |tick| (of as i64, tick)));
        prop_assert_eq!(ticks, expected.collect::<BTreeSet<_>>());
    }

    #[test]
    fn concurrency_is_the_most_at_any_tick(spans in trees()) {
        let most = |of: usize| {
            let children: Vec<usize> = children(&spans, of);
            let at = |tick: i64| children.iter().filter(|c| spans[**c].start <= tick && tick < spans[**c].end).count();
            (0..40).map(at).max().unwrap_or(0).max(usize::from(!children.is_empty())) as i64
        };
        let expected: BTreeSet<Vec<i64>> = (0..spans.len()).map(|of| vec![of as i64, most(of)]).collect();
        prop_assert_eq!(rows("q(S, N) :- concurrency(S, N).", &spans, 1), expected);
    }

    #[test]
    fn the_critical_path_covers_the_response_once(spans in trees()) {
        let mut expected = Vec::new();
        let equal = waits(&spans, 0, spans[0].start, spans[0].end, &mut expected);
        let found = rows("q(S, F, E) :- critical(S, F, E).", &spans, 1);
        let mut ticks: Vec<i64> = found
            .iter()
            .flat_map(|row| (row[1] / TICK - 1_000_000)..(row[2] / TICK - 1_000_000))
            .collect();
        ticks.sort_unstable();
        prop_assert_eq!(&ticks, &(0..24).collect::<Vec<i64>>());
        // Of spans with the same times either may be named; where no two have them, it is the same path.
        if !equal {
            let named: BTreeSet<(i64, i64)> = found
                .iter()
                .flat_map(|row| ((row[1] / TICK - 1_000_000)..(row[2] / TICK - 1_000_000)).map(|tick| (tick, row[0])))
                .collect();
            let expected: BTreeSet<(i64, i64)> = expected.iter().map(|(tick, span)| (*tick, *span as i64)).collect();
            prop_assert_eq!(named, expected);
        }
    }

    #[test]
    fn siblings_overlap_retry_and_repeat(spans in trees()) {
        let overlaps = rows("use \"std/intervals.dl\" q(A, B, F, E) :- overlap(A, B, F, E).", &spans, 2);
        let pairs: BTreeSet<(i64, i64)> = overlaps.iter().map(|row| (row[0].min(row[1]), row[0].max(row[1]))).collect();
        let both = |a: usize, b: usize| {
            let (from, to) = (spans[a].start.max(spans[b].start), spans[a].end.min(spans[b].end));
            a < b && spans[a].parent.is_some() && spans[a].parent == spans[b].parent && from < to
        };
        let all = (0..spans.len()).flat_map(|a| (0..spans.len()).map(move |b| (a, b)));
        let expected: BTreeSet<(i64, i64)> =
            all.filter(|(a, b)| both(*a, *b)).map(|(a, b)| (a as i64, b as i64)).collect();
        prop_assert_eq!(pairs, expected);

        // Where no two children start at once, who comes next is plain.
        let mut starts: Vec<_> = spans.iter().map(|span| (span.parent, span.start)).collect();
        starts.sort_unstable();
        starts.dedup();
        if starts.len() == spans.len() {
            let retries = rows("use \"std/retries.dl\" q(A, B) :- retry(A, B).", &spans, 2);
            let mut expected = BTreeSet::new();
            for parent in 0..spans.len() {
                let mut own = children(&spans, parent);
                own.sort_by_key(|child| spans[*child].start);
                for pair in own.windows(2) {
                    if spans[pair[0]].failed && spans[pair[0]].name == spans[pair[1]].name {
                        expected.insert(vec![pair[0] as i64, pair[1] as i64]);
                    }
                }
            }
            prop_assert_eq!(retries, expected);
        }
    }
}

#[test]
fn five_calls_in_a_row_are_n_plus_one() {
    let mut spans = vec![Span { parent: None, start: 0, end: 24, failed: false, name: 0 }];
    spans.extend((0..5).map(|call| Span {
        parent: Some(0),
        start: call * 2,
        end: call * 2 + 1,
        failed: false,
        name: 1,
    }));
    let rule = "use \"std/n_plus_one.dl\" q(P, N, T) :- n_plus_one(P, _, _, N, T).";
    // Equal durations count as often as they occur.
    assert_eq!(rows(rule, &spans, 1), BTreeSet::from([vec![0, 5, 5 * TICK]]));
    spans.pop();
    assert!(rows(rule, &spans, 1).is_empty());
}

/// What dominates a node is what every way to it passes: take a node out, and see what cannot be reached any more.
#[test]
fn dominators_are_what_no_way_goes_around() {
    for name in ["fork-join", "figure-3", "quorum", "nested-fork", "unawaited-branch", "case-study"] {
        let text = std::fs::read_to_string(format!("traces/{name}.angio")).expect("the trace is bundled");
        let rows = |rules: &str| {
            let (rows, _) = ask(rules, text.as_bytes(), Scope::Operation).expect("it runs");
            rows.into_iter().map(|row| (row[0].clone(), row[1].clone())).collect::<Vec<_>>()
        };
        let operations = rows("q(A, B) :- operation(_, A, B).").len();
        if operations != 1 {
            continue;
        }
        let edges = rows("q(A, B) :- edge(A, B).");
        let nodes: BTreeSet<String> = edges.iter().flat_map(|(a, b)| [a.clone(), b.clone()]).collect();
        let root = nodes.iter().find(|node| edges.iter().all(|(_, to)| to != *node)).expect("a root").clone();
        let reached = |without: &str| {
            let mut seen = BTreeSet::from([root.clone()]);
            let mut open = vec![root.clone()];
            while let Some(node) = open.pop() {
                for (_, to) in edges.iter().filter(|(from, to)| *from == node && to != without) {
                    if seen.insert(to.clone()) {
                        open.push(to.clone());
                    }
                }
            }
            seen
        };
        let mut expected = BTreeSet::new();
        for node in &nodes {
            let reached = if *node == root { BTreeSet::from([root.clone()]) } else { reached(node) };
            let lost = nodes.iter().filter(|other| *other != node && !reached.contains(*other));
            expected.extend(lost.map(|other| (node.clone(), other.clone())));
        }
        let found = rows("use \"std/dominators.dl\" q(D, N) :- dominates(D, N).");
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected, "{name}");
    }
}

/// The expected times of CRISP's own tests. In four of them children overlap a little, which CRISP takes as one after the other.
#[test]
#[ignore = "needs the reference data, ../shared"]
fn critical_times_are_those_of_crisp() {
    const OVERLAPPING: [&str; 4] = ["10.json", "19.json", "20.json", "21.json"];
    let folder = shared("traces/jaeger/crisp-testcases");
    let mut checked = 0;
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path.extension().is_none_or(|ending| ending != "json") || OVERLAPPING.contains(&&*name) {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a file");
        let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let expected = document["testing"].get(0).unwrap_or(&document["testing"]);
        let expected = expected.get("opTimeExclusive").unwrap_or(expected);
        let expected: BTreeSet<(String, i64)> = expected
            .as_object()
            .expect("times by names")
            .iter()
            .map(|(name, time)| (name.clone(), time.as_i64().unwrap_or(0) * TICK))
            .filter(|(_, time)| *time > 0)
            .collect();
        let rules = "use \"std/critical_path.dl\" output q. q(A, B, T) :- _named(A, B), \
            T = sum D { critical_time(S, D), span(S, A, B) }. _named(A, B) :- critical_time(S, _), span(S, A, B).";
        let (rows, _) = ask(rules, text.as_bytes(), Scope::Operation).expect("it runs");
        let found: BTreeSet<(String, i64)> =
            rows.iter().map(|row| (format!("[{}] {}", row[0], row[1]), row[2].parse().unwrap_or(0))).collect();
        checked += 1;
        if found != expected {
            wrong.push(format!("{name}: {found:?} in place of {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 15, "only {checked}");
}
