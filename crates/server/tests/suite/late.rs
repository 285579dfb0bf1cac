//! Traces in halves that come far apart.

use dyelog::lqn::saved;
use dyelog::lqn::submodel::{EntryTotal, Interaction, SubModel};
use dyelog_server::answer::Answer;
use dyelog_server::aside;
use dyelog_server::late::{self, Answers, join, leave_out_unasked, without_load};
use dyelog_server::metered::Metered;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::conservation::{Server, traces};
use crate::support::{BEGIN, MILLI, Recorded, SECOND, of_file, request, span, text_of, trace};

/// Of each, the operation's own spans, and those of the services that it calls.
fn halves(traces: impl Iterator<Item = u64>) -> [Vec<Recorded>; 2] {
    let spans = traces.flat_map(|number| trace(number, BEGIN + number * SECOND / 20, &[2, 3]));
    let (own, others) = spans.partition(|(service, _)| *service == "shop");
    [own, others]
}

fn all_of([own, others]: [Vec<Recorded>; 2]) -> String {
    of_file(&[own, others].concat())
}

/// What a model takes of a sub-model: scenarios with their operations, and entries with how often they were invoked, how long they worked, and whom they asked.
fn told(sub: &SubModel) -> Vec<String> {
    let name = |name| sub.names.text(name).to_owned();
    let mut lines: Vec<String> =
        sub.scenarios.iter().map(|(own, total)| format!("{} {}", name(*own), total.operations)).collect();
    for entry in sub.entries().iter().filter(|entry| entry.interaction != Interaction::Customer) {
        lines.push(format!(
            "{} {} {} {:.6}",
            name(entry.task),
            name(entry.service),
            entry.invocations,
            entry.own_time()
        ));
    }
    for entry in sub.entries() {
        for ((kind, to), request) in entry.work.values().flat_map(|work| &work.requests) {
            let to = sub.entry(*to);
            lines.push(format!(
                "{} {kind:?} {} {} {}",
                name(entry.task),
                name(to.task),
                name(to.service),
                request.count
            ));
        }
    }
    lines.sort();
    lines
}

fn parsed(text: &str) -> SubModel {
    saved::parse(&"test".into(), text).unwrap().0
}

/// Sends two halves so many seconds apart.
fn sent(first: &[Recorded], second: &[Recorded], apart: u64) -> Server {
    let mut server = Server::new();
    server.now += 10 * SECOND;
    server.receive(request(first));
    server.work();
    server.now += apart * SECOND;
    server.work();
    server.checkpoint();
    server.receive(request(second));
    server.finish();
    server
}

#[test]
fn halves_that_come_apart_make_the_model_of_the_whole() {
    let whole = told(&parsed(&all_of(halves(0..100))));
    for apart in [0, 12, 45, 3700] {
        let [own, others] = halves(0..100);
        for (first, second) in [(&own, &others), (&others, &own)] {
            let server = sent(first, second, apart);
            let found = parsed(&server.period(0, u64::MAX).unwrap());
            assert_eq!(told(&found), whole, "{apart} {}", first[0].0);
        }
    }
}

/// Operations that ask `stock` before they pause for as long as that, and then `prices`: what came before the pause, and the rest.
fn pausing(operations: u64, is_nested: bool) -> [Vec<Recorded>; 2] {
    let (server, client) = (2, 3);
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for number in 0..operations {
        let start = BEGIN + number * SECOND / 20;
        let at = |milliseconds: u64| start + milliseconds * MILLI;
        let own = |id, parent, name, kind, from, to| span(number, id, parent, name, kind, at(from), at(to));
        let asking = if is_nested { ("cart", 7) } else { ("shop", 1) };
        before.push((asking.0, own(2, asking.1, "GET", client, 5, 8)));
        before.push(("stock", own(3, 2, "find", server, 6, 7)));
        if is_nested {
            before.push(("shop", own(4, 1, "GET", client, 1, 3)));
            before.push(("users", own(5, 4, "login", server, 2, 3)));
            after.push(("shop", own(6, 1, "POST", client, 4, 60_000)));
            after.push(("cart", own(7, 6, "buy", server, 4, 60_000)));
        }
        after.push(("shop", own(1, 0, "order", server, 0, 60_001)));
    }
    [before, after]
}

#[test]
fn operations_that_may_count_twice_are_told() {
    for (is_nested, is_twice) in [(false, false), (true, true)] {
        let [before, after] = pausing(100, is_nested);
        let server = sent(&before, &after, 60);
        let (sub, _) = server.store.period(0, u64::MAX).unwrap().expect("it was recorded");
        let headless = late::headless(&sub);
        assert_eq!(headless > 0, is_twice, "{is_nested}: {:?}", told(&sub));
        let aside = server.store.set_aside(0, u64::MAX).unwrap();
        let found = aside::findings(&aside, headless);
        assert_eq!(found.len(), usize::from(is_twice), "{is_nested}: {found:?}");
        for finding in found {
            let words = format!("{} operations of this period may count twice", headless.min(100));
            assert!(finding.message.starts_with(&words), "{finding:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whoever seems to have answered whom, whatever was folded apart: what is made of it can be written and read back, and nothing becomes more.
    #[test]
    fn what_is_joined_is_a_sub_model(
        spans in traces().prop_shuffle(),
        parts in proptest::collection::vec((any::<Index>(), any::<bool>()), 0..4),
        told in proptest::collection::vec((any::<[Index; 3]>(), 1..6_u64), 1..8),
    ) {
        let mut cuts: Vec<(usize, bool)> = parts.iter().map(|(at, is_rest)| (at.index(spans.len()), *is_rest)).collect();
        cuts.push((0, false));
        cuts.sort_unstable();
        let mut sub = SubModel::new();
        for (number, (from, is_rest)) in cuts.iter().enumerate() {
            let to = cuts.get(number + 1).map_or(spans.len(), |(to, _)| *to);
            if *from < to {
                let mut part = parsed(&of_file(&spans[*from..to]));
                if *is_rest {
                    without_load(&mut part);
                }
                sub.merge(&part);
            }
        }
        prop_assume!(sub.entries().len() > 1);
        let answers: Answers = told
            .iter()
            .map(|(who, seen)| {
                let [caller, peer, callee] = who.map(|own| own.get(sub.entries()).key);
                (late::Answer { caller, peer, callee }, *seen)
            })
            .collect();
        let before = sub.clone();
        join(&mut sub, &answers);
        let text = saved::write(&sub, "name");
        let (read, _) = saved::parse(&"test".into(), &text).map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
        prop_assert_eq!(saved::write(&read, "name"), text);
        for own in sub.entries() {
            let known = before.entry(before.entry_of(own.key).expect("none is new"));
            let asked = |entry: &EntryTotal| {
                entry.work.values().flat_map(|work| work.requests.values()).map(|request| request.count).sum::<u64>()
            };
            // A visit asks what its pieces asked.
            let is_visit = answers.keys().any(|answer| answer.caller == own.key && answer.peer == answer.callee);
            prop_assert!(own.invocations <= known.invocations && (is_visit || asked(own) <= asked(known)));
            prop_assert!(own.own_time() <= known.own_time());
        }
    }

    /// Of some traces one half comes late, whichever: scenarios, entries with their invocations and work, and who asks whom are those of the whole.
    #[test]
    fn halves_of_some_traces_make_the_model_of_the_whole(
        calls in proptest::collection::vec((proptest::collection::vec(1..40_u64, 1..4), any::<bool>()), 1..30),
        callers_first in any::<bool>(),
    ) {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for (number, (calls, is_late)) in calls.iter().enumerate() {
            let number = number as u64;
            for (service, span) in trace(number, BEGIN + number * SECOND / 20, calls) {
                let comes_late = *is_late && (service == "shop") != callers_first;
                if comes_late { &mut second } else { &mut first }.push((service, span));
            }
        }
        let server = sent(&first, &second, 45);
        let found = parsed(&server.period(0, u64::MAX).unwrap());
        prop_assert_eq!(told(&found), told(&parsed(&of_file(&[first, second].concat()))));
    }
}

/// The model of so many operations of which some come in halves, and that of the whole.
fn in_part(count: u64, calls: impl Fn(u64) -> (Vec<u64>, bool)) -> [Vec<String>; 2] {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for number in 0..count {
        let (calls, is_late) = calls(number);
        for (service, span) in trace(number, BEGIN + number * SECOND / 20, &calls) {
            if is_late && service != "shop" { &mut second } else { &mut first }.push((service, span));
        }
    }
    let server = sent(&first, &second, 45);
    let found = told(&parsed(&server.period(0, u64::MAX).unwrap()));
    [found, told(&parsed(&of_file(&[first, second].concat())))]
}

#[test]
fn calls_that_two_services_answer_alike_find_the_right_one() {
    // Those that were answered in time are answered by one service as often as by the other, or mostly by another one than the late ones.
    let rare = |number: u64| if number.is_multiple_of(10) { (vec![1], true) } else { (vec![1, 1], false) };
    let usual = |number: u64| if number.is_multiple_of(3) { (vec![1, 1], false) } else { (vec![1], true) };
    for count in [2, 200] {
        for calls in [rare, usual] {
            let [found, whole] = in_part(count, calls);
            assert_eq!(found, whole, "{count}");
        }
    }
}

#[test]
fn the_rest_of_traces_is_no_load_whoever_called_it() {
    // The callers were sent to somebody else.
    let [_, others] = halves(0..100);
    let [own, _] = halves(0..100);
    let whole: Vec<Recorded> =
        (100..200).flat_map(|number| trace(number, BEGIN + number * SECOND / 20, &[3])).collect();
    let mut server = sent(&[own, whole].concat(), &[], 45);
    server.receive(request(&others));
    server.finish();
    let (mut sub, merge) = server.store.period(0, u64::MAX).unwrap().unwrap();
    let told = told(&sub);
    assert!(
        told.iter().any(|line| line == "shop browse 200") && !told.iter().any(|line| line.contains("unknown")),
        "{told:?}"
    );
    let text = Answer::of(sub.clone(), &merge, &Metered::default()).unwrap().lqn();
    for phantom in ["peer of", "unknown_service"] {
        assert!(!text.contains(phantom), "{text}");
    }
    assert_eq!(leave_out_unasked(&mut sub).map(|finding| finding.message), None, "{told:?}");
    assert_eq!(server.worker.counts().late_parts, 100);
}

#[test]
fn what_nobody_is_known_to_have_called_is_told() {
    let server = sent(&halves(0..50)[0], &halves(0..50)[1], 12);
    // As if the server had started again in between.
    let database = rusqlite::Connection::open(server.home.folder.path().join("store.db")).unwrap();
    database.execute("DELETE FROM answers", []).unwrap();
    let (mut sub, _) = server.store.period(0, u64::MAX).unwrap().unwrap();
    let finding = leave_out_unasked(&mut sub).expect("it is told");
    assert!(finding.message.starts_with("100 invocations came after the rest"), "{}", finding.message);
    assert_eq!(finding.notes, ["50 of `find` of `prices`", "50 of `find` of `stock`"]);
    assert!(!told(&sub).iter().any(|line| line.contains("find")), "{:?}", told(&sub));
}

#[test]
fn users_are_called_so() {
    let mut server = Server::new();
    let one_by_one = |number: u64| trace(number, BEGIN + number * SECOND / 10, &[2, 3]);
    server.receive(request(&(0..100).flat_map(one_by_one).collect::<Vec<_>>()));
    server.finish();
    let (sub, merge) = server.store.period(0, u64::MAX).unwrap().unwrap();
    let answer = Answer::of(sub, &merge, &Metered::default()).unwrap();
    assert!(answer.lqn().contains("t \"Cu_shop browse\" r"), "{}", answer.lqn());
    let (picture, busiest) = (answer.picture().unwrap(), answer.busiest().unwrap());
    assert!(picture.contains("users of shop browse") && !picture.contains("Cu_"), "{picture}");
    assert_eq!(busiest.len(), 3, "{busiest:?}");
}

#[test]
fn what_its_callers_name_and_spans_tell_later_is_there_once() {
    // As in `trace`, but that clients say whom they ask, and call their spans as the servers do.
    let named = |number: u64| {
        let mut spans = trace(number, BEGIN + number * SECOND / 20, &[2, 3]);
        let services: Vec<&str> = spans.iter().map(|(service, _)| *service).collect();
        for (at, (service, span)) in spans.iter_mut().enumerate() {
            if *service == "shop" && span.kind == 3 {
                span.name = "find".to_owned();
                span.attributes.push(text_of("peer.service", services[at + 1]));
            }
        }
        spans
    };
    let spans: Vec<Recorded> = (0..100).flat_map(named).collect();
    let whole = told(&parsed(&of_file(&spans)));
    // All of both services comes late, of one, or a part of one.
    for late in [&["stock", "prices"][..], &["stock"], &["prices"]] {
        for part in [1, 3, 10] {
            let is_late = |at: usize, own: &Recorded| late.contains(&own.0) && (at / 5).is_multiple_of(part);
            let (second, first): (Vec<_>, Vec<_>) = spans.iter().enumerate().partition(|(at, own)| is_late(*at, own));
            let own =
                |spans: Vec<(usize, &Recorded)>| spans.into_iter().map(|(_, own)| own.clone()).collect::<Vec<_>>();
            let (first, second) = (own(first), own(second));
            for (first, second) in [(&first, &second), (&second, &first)] {
                let server = sent(first, second, 45);
                let found = parsed(&server.period(0, u64::MAX).unwrap());
                assert_eq!(told(&found), whole, "{late:?} {part} {}", first[0].0);
            }
        }
    }
}

/// Operations of so many seconds, one after the other, with a call a second, in the order in which their spans end.
fn long(seconds: u64) -> Vec<(u64, Recorded)> {
    let (server, client, second) = (2, 3, 1000);
    let mut spans: Vec<(u64, Recorded)> = Vec::new();
    for number in 0..4_u64 {
        let at = |milliseconds: u64| BEGIN + number * (seconds + 1) * SECOND + milliseconds * MILLI;
        for call in 0..seconds {
            let (start, id) = (call * second, 2 + 2 * call);
            spans.push((
                at(start + 800),
                ("front", span(number, id, 1, "call", client, at(start + 100), at(start + 800))),
            ));
            let answer = span(number, id + 1, id, "GET /row", server, at(start + 150), at(start + 750));
            spans.push((at(start + 750), ("back", answer)));
        }
        let end = at(seconds * second);
        spans.push((end, ("front", span(number, 1, 0, "job", server, at(0), end))));
    }
    spans.sort_by_key(|(end, _)| *end);
    spans
}

#[test]
fn operations_that_take_longer_than_the_limit_are_counted_once() {
    for seconds in [20, 45, 250] {
        let spans = long(seconds);
        let mut server = Server::new();
        // As SDKs send them.
        for sent in spans.chunk_by(|(one, _), (other, _)| one / (5 * SECOND) == other / (5 * SECOND)) {
            server.now = sent[0].0 / (5 * SECOND) * 5 * SECOND + 5 * SECOND;
            server.receive(request(&sent.iter().map(|(_, own)| own.clone()).collect::<Vec<_>>()));
            server.work();
            server.checkpoint();
        }
        server.finish();
        let all: Vec<Recorded> = spans.into_iter().map(|(_, own)| own).collect();
        let found = parsed(&server.period(0, u64::MAX).unwrap());
        assert_eq!(told(&found), told(&parsed(&of_file(&all))), "{seconds}");
        assert_eq!(server.worker.counts().incomplete_traces, 0, "{seconds}");
    }
}

/// An operation of `front`, which asks `middle`, which asks `back`: its five spans from the outside in.
fn chain(number: u64) -> [Recorded; 5] {
    let (server, client) = (2, 3);
    let at = |milliseconds: u64| BEGIN + number * SECOND / 20 + milliseconds * MILLI;
    [
        ("front", span(number, 1, 0, "GET /order", server, at(0), at(40))),
        ("front", span(number, 2, 1, "call", client, at(5), at(35))),
        ("middle", span(number, 3, 2, "GET /part", server, at(6), at(34))),
        ("middle", span(number, 4, 3, "call", client, at(10), at(25))),
        ("back", span(number, 5, 4, "GET /row", server, at(11), at(24))),
    ]
}

/// The sub-model of a hundred such operations whose spans come in stages, 45 s apart: of each stage, which spans.
fn in_stages(stages: &[Vec<usize>]) -> Server {
    let mut server = Server::new();
    server.now += 10 * SECOND;
    for stage in stages {
        let spans = (0..100).flat_map(|number| stage.iter().map(move |span| chain(number)[*span].clone()));
        server.receive(request(&spans.collect::<Vec<_>>()));
        server.work();
        server.now += 45 * SECOND;
        server.work();
        server.checkpoint();
    }
    server.finish();
    server
}

/// All orders of the first so many numbers.
fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let with = |order: Vec<usize>| {
        (0..count).map(move |at| {
            let mut own = order.clone();
            own.insert(at, count - 1);
            own
        })
    };
    orders(count - 1).into_iter().flat_map(with).collect()
}

fn whole_chain() -> Vec<String> {
    told(&parsed(&of_file(&(0..100).flat_map(chain).collect::<Vec<_>>())))
}

#[test]
fn services_that_come_one_after_another_make_the_model_of_the_whole() {
    let services = [vec![0, 1], vec![2, 3], vec![4]];
    for order in orders(3) {
        let stages: Vec<Vec<usize>> = order.iter().map(|stage| services[*stage].clone()).collect();
        let found = parsed(&in_stages(&stages).period(0, u64::MAX).unwrap());
        assert_eq!(told(&found), whole_chain(), "{order:?}");
    }
}

#[test]
fn spans_that_come_one_after_another_make_the_model_of_the_whole() {
    // From the outside in, from the inside out, and some of the orders between.
    let mixed = orders(5).into_iter().step_by(13);
    for order in [(0..5).collect(), (0..5).rev().collect()].into_iter().chain(mixed) {
        let stages: Vec<Vec<usize>> = order.iter().map(|span| vec![*span]).collect();
        let found = parsed(&in_stages(&stages).period(0, u64::MAX).unwrap());
        assert_eq!(told(&found), whole_chain(), "{order:?}");
    }
}
