//! What only waits is no server: peers that sleep, pools before services, clocks that count in steps; and what is said where servers are not certain.

use std::fmt::Write as _;

use dyelog::diagnostic::Diagnostic;
use dyelog::lqn::{Model, Multiplicity, Scheduling};
use dyelog::model::{Configuration, Load, Origins, complete};
use dyelog::solve::{LayeredOptions, layered};
use dyelog::study::outlook::{Sooner, WhySooner, outlook};
use dyelog::study::{ScenarioResult, unlike_traced};

use crate::generator::Random;
use crate::law::reduced;
use crate::servers::{completed, miss, spans, station};

pub fn exponential(random: &mut Random, mean: f64) -> f64 {
    -mean * ((random.below(1 << 30) + 1) as f64 / (1_u64 << 30) as f64).ln()
}

/// A regular time: nine exponential stages.
fn regular(random: &mut Random, mean: f64) -> f64 {
    (0..9).map(|_| exponential(random, mean / 9.0)).sum()
}

/// A span of a service; `kind` 2 is a server's, 3 a client's.
pub struct Span<'s> {
    pub service: &'s str,
    pub kind: u8,
    pub id: u8,
    pub parent: u8,
    pub name: &'s str,
    pub at: (f64, f64),
}

/// An operation of these spans.
pub fn operation(text: &mut String, number: usize, spans: &[Span<'_>]) {
    let nanoseconds = |seconds: f64| 1_700_000_000_000_000_000 + (seconds * 1e9) as u64;
    // Spread over all that identifiers may be.
    let trace = u128::from(number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    for Span { service, kind, id, parent, name, at } in spans {
        let parent = if *parent == 0 { String::new() } else { format!("\"parentSpanId\":\"{parent:016x}\",") };
        let _ = writeln!(
            text,
            "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":[{{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"{service}\"}}}}]}},\
             \"scopeSpans\":[{{\"spans\":[{{\"traceId\":\"{trace:032x}\",\"spanId\":\"{id:016x}\",{parent}\"name\":\"{name}\",\"kind\":{kind},\
             \"attributes\":[{{\"key\":\"server.address\",\"value\":{{\"stringValue\":\"peer\"}}}}],\
             \"startTimeUnixNano\":\"{}\",\"endTimeUnixNano\":\"{}\"}}]}}]}}]}}",
            nanoseconds(at.0),
            nanoseconds(at.1)
        );
    }
}

/// Operations of `web`, which works for a millisecond before and after it waits for a peer without spans, for these times.
fn asking_a_peer(stays: &[(f64, f64)]) -> String {
    let mut text = String::new();
    for (number, (start, end)) in stays.iter().enumerate() {
        let web = Span { service: "web", kind: 2, id: 1, parent: 0, name: "GET", at: (start - 1e-3, end + 1e-3) };
        let call = Span { service: "web", kind: 3, id: 2, parent: 1, name: "ask", at: (*start, *end) };
        operation(&mut text, number, &[web, call]);
    }
    text
}

/// Arrivals at that rate, each of which stays for as long as is drawn.
fn sleeping(seed: u64, rate: f64, count: usize, length: fn(&mut Random, f64) -> f64) -> Vec<(f64, f64)> {
    let mut random = Random::new(seed);
    let mut now = 1.0;
    let of = |_| {
        now += exponential(&mut random, 1.0 / rate);
        (now, now + length(&mut random, 0.04))
    };
    (0..count).map(of).collect()
}

/// Operations of `web` that ask `pay`, which has so many threads, is so far away in seconds, and sleeps for 40 ms.
fn asking_threads(seed: u64, rate: f64, count: usize, threads: usize, far: f64) -> String {
    asking_beside(seed, rate, count, threads, far, |asked, _| (asked - 0.004, asked - 0.002))
}

/// The same; when each of them asks `log` depends on when it asks `pay`.
fn asking_beside(
    seed: u64,
    rate: f64,
    count: usize,
    threads: usize,
    far: f64,
    beside: fn(f64, &mut Random) -> (f64, f64),
) -> String {
    let mut random = Random::new(seed);
    let (mut text, mut now, mut free) = (String::new(), 1.0, vec![0.0_f64; threads]);
    for number in 0..count {
        now += exponential(&mut random, 1.0 / rate);
        let asked = now + 0.005;
        let first = free.iter_mut().min_by(|left, right| left.total_cmp(right)).expect("there is one");
        let begin = first.max(asked + far);
        *first = begin + regular(&mut random, 0.04);
        let end = *first;
        // Another service, to which calls take as long as the network does.
        let at = beside(asked, &mut random);
        let log = Span { service: "web", kind: 3, id: 4, parent: 1, name: "log", at };
        let logs = Span { service: "log", kind: 2, id: 5, parent: 4, name: "log", at: (at.0 + 0.0003, at.1 - 0.0003) };
        let last = (end + far).max(at.1);
        let web = Span { service: "web", kind: 2, id: 1, parent: 0, name: "POST", at: (now, last + 0.005) };
        let call = Span { service: "web", kind: 3, id: 2, parent: 1, name: "pay", at: (asked, end + far) };
        let pay = Span { service: "pay", kind: 2, id: 3, parent: 2, name: "pay", at: (begin, end) };
        operation(&mut text, number, &[web, log, logs, call, pay]);
    }
    text
}

/// Spans whose clocks count in milliseconds.
fn in_milliseconds(text: &str) -> String {
    in_steps(text, 6)
}

/// Spans whose clocks do not tell so many digits of nanoseconds.
fn in_steps(text: &str, untold: usize) -> String {
    let cut = |part: &str| {
        let digits = part.find('"').expect("times are quoted");
        format!("{}{}{}", &part[..digits - untold], "0".repeat(untold), &part[digits..])
    };
    let mut parts = text.split("UnixNano\":\"");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "UnixNano\":\"" + &cut(part))
}

/// Spans of which a service has a clock that gains a part of the time.
fn drifting(text: &str, service: &str, gains: f64) -> String {
    const EPOCH: u64 = 1_700_000_000_000_000_000;
    let own = format!("\"stringValue\":\"{service}\"");
    let shifted = |part: &str| {
        let digits = part.find('"').expect("times are quoted");
        let time: u64 = part[..digits].parse().expect("it is a number");
        format!("{}{}", time + ((time - EPOCH) as f64 * gains) as u64, &part[digits..])
    };
    let drifts = |line: &str| {
        let mut parts = line.split("UnixNano\":\"");
        let first = parts.next().unwrap_or_default().to_owned();
        let line = if line.contains(&own) {
            parts.fold(first, |line, part| line + "UnixNano\":\"" + &shifted(part))
        } else {
            line.to_owned()
        };
        line + "\n"
    };
    text.lines().map(drifts).collect()
}

/// The same of a pool of three.
fn waiting_for_a_pool(seed: u64, rate: f64, count: usize) -> String {
    asking_threads(seed, rate, count, 3, 0.0003)
}

pub fn processor<'m>(model: &'m Model, name: &str) -> &'m dyelog::lqn::Processor {
    &model.processors[model.processor_named(name).expect("it is there").index()]
}

/// The model of spans, with what is said of it.
fn told(text: &str, configuration: &str) -> (Model, Origins, Vec<Diagnostic>) {
    let (configuration, _) = Configuration::parse(&"t.toml".into(), configuration).expect("it is sound");
    let (model, findings, origins) =
        complete(&reduced("t.jsonl", text.as_bytes()), &configuration).expect("there are requests");
    (model, origins, findings)
}

#[test]
fn a_peer_that_only_sleeps_is_a_delay() {
    for seed in 1..=6 {
        let text = asking_a_peer(&sleeping(seed, 20.0, 600, regular));
        let (model, origins, findings) = told(&text, "");
        let peer = processor(&model, "peer");
        assert_eq!((peer.multiplicity, peer.scheduling), (Multiplicity::Infinite, Scheduling::Delay), "seed {seed}");
        assert!(miss(&model, &origins) < 0.02, "seed {seed}: {}", miss(&model, &origins));
        let found = findings.iter().find(|own| own.code.0 == "M049").expect("it is told");
        assert!(found.notes.iter().any(|note| note.contains("`peer`: a delay")), "{found:?}");
    }
}

#[test]
fn a_peer_that_computes_keeps_its_servers() {
    for (seed, servers, busy) in [(1, 1, 0.3), (2, 1, 0.6), (3, 2, 0.5), (4, 2, 0.7)] {
        let stays: Vec<(f64, f64)> =
            station(seed, servers, busy, 4000).iter().map(|(start, end)| (start + 1.0, end + 1.0)).collect();
        let (model, ..) = told(&asking_a_peer(&stays), "");
        assert_eq!(processor(&model, "peer").multiplicity, Multiplicity::Finite(servers), "{servers} at {busy}");
    }
}

/// Few of the arrivals at a service that sleeps, four together on the mean, find so many others that numbers of servers tell: those that are found let nobody wait.
#[test]
fn a_service_that_only_sleeps_makes_nobody_wait() {
    for seed in 1..=3 {
        let (model, origins) = completed(&spans(&sleeping(seed, 100.0, 3000, exponential), 1000, |_| true), "");
        let found = processor(&model, "host").multiplicity;
        assert!(!matches!(found, Multiplicity::Finite(0..=7)), "seed {seed}: {found:?}");
        assert!(miss(&model, &origins) < 0.02, "seed {seed}: {}", miss(&model, &origins));
    }
}

/// The threads of a task.
fn threads(model: &Model, name: &str) -> Multiplicity {
    model.tasks[model.task_named(name).expect("it is there").index()].multiplicity
}

#[test]
fn threads_that_calls_wait_for_are_found() {
    for seed in 1..=5 {
        let (model, origins, findings) = told(&waiting_for_a_pool(seed, 50.0, 4000), "");
        assert!(matches!(origins.scenarios[0].load, Load::Open { .. }), "seed {seed}: {:?}", origins.scenarios[0].load);
        // No more than three are ever together, and the wait for the pool counts once.
        assert_eq!(processor(&model, "pay").multiplicity, Multiplicity::Infinite, "seed {seed}");
        assert_eq!(threads(&model, "pay"), Multiplicity::Finite(3), "seed {seed}");
        assert_eq!(threads(&model, "log"), Multiplicity::Infinite, "seed {seed}");
        assert!(miss(&model, &origins) < 0.05, "seed {seed}: {}", miss(&model, &origins));
        let pool = findings.iter().find(|own| own.code.0 == "M059").expect("the note names the pool");
        assert!(pool.notes.iter().any(|note| note.starts_with("`pay`: 3; a call waits")), "{pool:?}");
        let network = findings.iter().find(|own| own.code.0 == "M032").expect("the note gives the latency");
        assert!(!network.notes.iter().any(|note| note.starts_with("calls to `pay` take")), "{network:?}");
    }
}

/// Steps of a clock and its drift leave the order in which visits begin and end.
#[test]
fn threads_that_calls_wait_for_are_found_by_other_clocks() {
    for seed in 1..=3 {
        let text = waiting_for_a_pool(seed, 50.0, 4000);
        for (clock, text) in [
            ("that counts milliseconds", in_milliseconds(&text)),
            ("that gains 10 ppm", drifting(&text, "pay", 1e-5)),
            ("that gains 100 ppm", drifting(&text, "pay", 1e-4)),
        ] {
            let (model, origins, findings) = told(&text, "");
            assert_eq!(threads(&model, "pay"), Multiplicity::Finite(3), "a clock {clock}, seed {seed}: {findings:?}");
            assert_eq!(threads(&model, "log"), Multiplicity::Infinite, "a clock {clock}, seed {seed}");
            let off = miss(&model, &origins);
            assert!(off < 0.05, "a clock {clock}, seed {seed}: {off}");
        }
    }
}

/// By a clock whose steps are as long as the time from one end to the next, every visit begins when another one ends.
#[test]
fn a_pool_that_a_clock_hides_is_told() {
    let is_told = |text: &str| {
        let (model, _, findings) = told(text, "");
        assert_eq!(threads(&model, "pay"), Multiplicity::Infinite, "{findings:?}");
        assert!(!findings.iter().any(|own| own.code.0 == "M059"), "{findings:?}");
        findings.into_iter().find(|own| own.message.contains("a pool of threads may be hidden"))
    };
    for seed in 1..=3 {
        let hidden = is_told(&in_steps(&waiting_for_a_pool(seed, 50.0, 2000), 7)).expect("a warning tells it");
        assert!(hidden.message.starts_with("the times of `pay` are multiples of 10 ms"), "{hidden:?}");
        assert!(hidden.notes.iter().any(|note| note.starts_with("with 3 threads it would take 1.")), "{hidden:?}");
        let text = in_steps(&waiting_for_a_pool(seed, 50.0, 1000), 7);
        let (.., findings) = told(&text, "[task.pay]\nthreads = 3\n");
        assert!(!findings.iter().any(|own| own.message.contains("may be hidden")), "{findings:?}");
        for untold in [6, 7] {
            assert_eq!(
                is_told(&in_steps(&asking_threads(seed, 50.0, 4000, 1000, 0.0003), untold)),
                None,
                "seed {seed}"
            );
        }
    }
}

/// What is predicted of more load than was traced is what a trace of it shows.
#[test]
fn waits_for_threads_grow_with_the_load() {
    let (_, truth, _) = told(&waiting_for_a_pool(11, 62.0, 20_000), "");
    let truth = truth.scenarios[0].observed_response.expect("it was traced");
    for seed in 1..=3 {
        let text = waiting_for_a_pool(seed, 45.0, 6000);
        let (model, origins, _) = told(&text, "[scenario.\"web POST\"]\nrate = 62\n");
        let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
        let found = ScenarioResult::all(&model, &results, &origins)[0].response.expect("it is steady");
        assert!((found / truth - 1.0).abs() < 0.1, "seed {seed}: {found} for {truth}");
    }
}

/// What a join takes beside calls that wait for threads is an estimate: no work is taken off to meet it.
#[test]
fn work_beside_waits_for_threads_is_kept() {
    for (seed, rate) in [(1, 50.0), (2, 62.0)] {
        let beside = |asked, random: &mut Random| (asked, asked + 0.001 + exponential(random, 0.08));
        let (model, origins, _) = told(&asking_beside(seed, rate, 4000, 3, 0.0003, beside), "");
        assert_eq!(threads(&model, "pay"), Multiplicity::Finite(3), "seed {seed}");
        let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
        let web = model.task_named("web").expect("it is there").index();
        let work = results.tasks[web].processor_utilization / results.tasks[web].throughput;
        assert!((work / 0.01 - 1.0).abs() < 0.01, "seed {seed}: {work} s for 0.01 s");
        assert!(miss(&model, &origins) < 0.05, "seed {seed}: {}", miss(&model, &origins));
    }
}

#[test]
fn a_service_that_is_far_away_has_no_pool() {
    for (seed, rate, far) in [(1, 50.0, 0.01), (2, 200.0, 0.05), (3, 400.0, 0.002)] {
        let (model, origins, findings) = told(&asking_threads(seed, rate, 3000, 1000, far), "");
        assert_eq!(threads(&model, "pay"), Multiplicity::Infinite, "seed {seed}");
        assert!(!findings.iter().any(|own| own.code.0 == "M059"), "seed {seed}: {findings:?}");
        assert!(miss(&model, &origins) < 0.03, "seed {seed}: {}", miss(&model, &origins));
        let network = findings.iter().find(|own| own.code.0 == "M032").expect("the note gives the latency");
        assert!(network.notes.iter().any(|note| note.starts_with("calls to `pay` take")), "{network:?}");
    }
}

#[test]
fn clocks_that_count_milliseconds_make_no_customers() {
    for (servers, busy) in [(4, 0.4), (4, 0.6), (4, 0.75), (2, 0.5), (1, 0.4), (1, 0.6)] {
        for seed in 1..=3 {
            let text = spans(&station(seed, servers, busy, 4000), 1_000_000, |_| true);
            let (_, origins) = completed(&text, "");
            let load = origins.scenarios[0].load;
            assert!(matches!(load, Load::Open { .. }), "{servers} at {busy}, seed {seed}: {load:?}");
        }
    }
}

/// Where clocks count in steps of 10 ms no pool is found: the wait for it counts as latency, and the servers behind it queue as well. Several causes may be behind that.
#[test]
fn a_cause_is_not_told_where_it_is_not_the_cause() {
    let text = in_steps(&waiting_for_a_pool(1, 50.0, 1500), 7);
    let (model, origins, _) = told(&text, "[processor.pay]\nmultiplicity = 3\n");
    let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
    let load = origins.scenarios[0].load;
    assert!(matches!(load, Load::Open { .. }), "{load:?}");
    let told = unlike_traced(&model, &results, &origins, None);
    let notes: Vec<&str> = told.iter().flat_map(|own| &own.notes).map(|note| &**note).collect();
    assert!(notes.iter().any(|note| note.contains("most of all for processor `pay`")), "{told:?}");
    assert!(notes.iter().any(|note| note.starts_with("one of these may be why: a pool")), "{told:?}");
    assert!(!notes.iter().any(|note| note.contains("met fewer")), "{told:?}");
}

#[test]
fn a_limit_that_hangs_on_servers_which_are_not_certain_says_so() {
    let (model, origins) = completed(&spans(&station(2, 4, 0.1, 400), 1000, |_| true), "");
    let open = origins.open_servers.get("host").copied().expect("few wait: more servers fit");
    assert_eq!(processor(&model, "host").multiplicity, Multiplicity::Finite(open.servers));
    let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
    let first = outlook(&model, &results, Some(&origins), 1);
    let text = dyelog::report::outlook::text(&model, &first, dyelog::report::Look::PLAIN);
    let said = format!("taken there, and {} or more fit (M049); no other limit is certain", open.least);
    assert!(text.contains(&said), "{text}");
    let note = dyelog::study::open_servers::limit_is_open(&model, Some(&origins)).expect("it is told");
    assert!(note.message.contains("hangs on the servers of `host`"), "{note:?}");
    // Given servers are certain.
    let (model, origins) =
        completed(&spans(&station(2, 4, 0.1, 400), 1000, |_| true), "[processor.host]\nmultiplicity = 4\n");
    assert_eq!(dyelog::study::open_servers::limit_is_open(&model, Some(&origins)), None);
}

/// A delay may be servers of which there were enough: the answer says when the fewest that fit would saturate, but for those that were given.
#[test]
fn a_delay_that_may_be_servers_says_when_these_saturate() {
    let text = asking_a_peer(&sleeping(1, 20.0, 600, regular));
    let (model, origins) = completed(&text, "");
    let least = origins.delays["peer"];
    let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
    let first = outlook(&model, &results, Some(&origins), 1);
    // 20 requests a second of 40 ms keep 0.8 of them busy.
    let factor = f64::from(least) / 0.8;
    let [Sooner { factor: found, why: WhySooner::Delay { servers }, .. }] = first.sooner[..] else {
        panic!("{:?}", first.sooner)
    };
    assert!(servers == least && (found / factor - 1.0).abs() < 0.1, "{found} for {factor}");
    let said = dyelog::report::outlook::text(&model, &first, dyelog::report::Look::PLAIN).replace("\n  ", " ");
    assert!(
        said.contains("but peer was taken for a delay (M049): with ") && said.contains("it saturates at "),
        "{said}"
    );
    let json = dyelog::report::outlook::json(&model, &first);
    assert_eq!((&json["sooner"][0]["why"], &json["sooner"][0]["servers_at_least"]), (&"delay".into(), &least.into()));
    let (model, origins) = completed(&text, "[processor.peer]\nmultiplicity = \"infinite\"\n");
    let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
    assert_eq!(outlook(&model, &results, Some(&origins), 1).sooner, []);
}

/// Operations of `web`, which has so many connections to a peer: works for 5 ms, waits for a connection, asks the peer for 40 ms, works for a millisecond. The span of
/// the call begins when there is a connection. The peer records spans where calls are that long on their way to it, and as long back.
fn asking_for_a_connection(seed: u64, rate: f64, count: usize, connections: usize, way: Option<f64>) -> String {
    let mut random = Random::new(seed);
    let (mut text, mut now, mut free) = (String::new(), 1.0, vec![0.0_f64; connections]);
    let mut asked: Vec<(f64, f64)> = Vec::new();
    for _ in 0..count {
        now += exponential(&mut random, 1.0 / rate);
        asked.push((now + exponential(&mut random, 0.005), now));
    }
    // Who is done with work first has the next one.
    asked.sort_by(|left, right| left.0.total_cmp(&right.0));
    for (number, (asked, start)) in asked.into_iter().enumerate() {
        let first = free.iter_mut().min_by(|left, right| left.total_cmp(right)).expect("there is one");
        let begin = first.max(asked);
        let end = begin + regular(&mut random, 0.04);
        *first = end + 2e-5;
        let web = Span { service: "web", kind: 2, id: 1, parent: 0, name: "GET", at: (start, end + 1e-3) };
        let call = Span { service: "web", kind: 3, id: 2, parent: 1, name: "ask", at: (begin, end) };
        let visit = way.map(|way| (begin + way, end - way));
        let visit = visit.map(|at| Span { service: "peer", kind: 2, id: 3, parent: 2, name: "answer", at });
        operation(&mut text, number, &[web, call].into_iter().chain(visit).collect::<Vec<_>>());
    }
    text
}

/// The work of `web`, seconds an operation.
fn work_of_web(model: &Model) -> f64 {
    let results = layered(model, &LayeredOptions::default()).expect("it can be solved");
    let web = &results.tasks[model.task_named("web").expect("it is there").index()];
    web.processor_utilization / web.throughput
}

#[test]
fn connections_that_calls_wait_for_are_found() {
    for (seed, rate, connections) in
        [(1, 75.0, 4), (2, 75.0, 4), (3, 55.0, 3), (4, 15.0, 1), (5, 330.0, 16), (6, 20.0, 4)]
    {
        let (model, origins, findings) = told(&asking_for_a_connection(seed, rate, 4000, connections, None), "");
        assert_eq!(threads(&model, "peer"), Multiplicity::Finite(connections as u32), "seed {seed}");
        let work = work_of_web(&model);
        assert!((work / 0.006 - 1.0).abs() < 0.08, "seed {seed}: {work} s for 0.006 s");
        assert!(miss(&model, &origins) < 0.06, "seed {seed}: {}", miss(&model, &origins));
        let pool = findings.iter().find(|own| own.code.0 == "M059").expect("the note names the pool");
        let begin = format!("`peer`: {connections} of `web`; a call waits");
        assert!(pool.notes.iter().any(|note| note.starts_with(&begin)), "{pool:?}");
    }
}

/// A call holds its connection while it is on its way, too.
#[test]
fn connections_to_a_peer_with_spans_are_found() {
    for (seed, rate, connections, way) in
        [(1, 75.0, 4, 5e-4), (2, 55.0, 3, 5e-3), (3, 15.0, 1, 1e-4), (4, 330.0, 16, 2e-3)]
    {
        let text = asking_for_a_connection(seed, rate, 4000, connections, Some(way));
        let (model, origins, findings) = told(&text, "");
        assert_eq!(threads(&model, "peer"), Multiplicity::Finite(connections as u32), "seed {seed}: {findings:?}");
        let work = work_of_web(&model);
        assert!((work / 0.006 - 1.0).abs() < 0.1, "seed {seed}: {work} s for 0.006 s");
        assert!(miss(&model, &origins) < 0.08, "seed {seed}: {}", miss(&model, &origins));
        let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
        let peer = &results.tasks[model.task_named("peer").expect("it is there").index()];
        let held = peer.utilization / peer.throughput;
        assert!((held / 0.04 - 1.0).abs() < 0.02, "seed {seed}: held for {held} s");
    }
    let (model, _, findings) = told(&asking_for_a_connection(1, 75.0, 4000, 1000, Some(5e-4)), "");
    assert_eq!(threads(&model, "peer"), Multiplicity::Infinite);
    assert!(!findings.iter().any(|own| own.code.0 == "M059"), "{findings:?}");
}

#[test]
fn connections_that_calls_wait_for_are_found_by_clocks_that_count_milliseconds() {
    for (seed, rate, connections) in [(1, 75.0, 4), (3, 55.0, 3), (4, 15.0, 1)] {
        let text = in_milliseconds(&asking_for_a_connection(seed, rate, 4000, connections, None));
        let (model, origins, findings) = told(&text, "");
        assert_eq!(threads(&model, "peer"), Multiplicity::Finite(connections as u32), "seed {seed}: {findings:?}");
        let work = work_of_web(&model);
        assert!((work / 0.006 - 1.0).abs() < 0.15, "seed {seed}: {work} s for 0.006 s");
        // How long stretches are without a wait is known to half a step, and queues make more of it.
        assert!(miss(&model, &origins) < 0.12, "seed {seed}: {}", miss(&model, &origins));
    }
}

/// What is predicted of more load than was traced is what a trace of it shows.
#[test]
fn waits_for_connections_grow_with_the_load() {
    let (_, truth, _) = told(&asking_for_a_connection(11, 88.0, 20_000, 4, None), "");
    let truth = truth.scenarios[0].observed_response.expect("it was traced");
    for (seed, way) in [(1, None), (2, None), (3, None), (1, Some(5e-4)), (2, Some(5e-3))] {
        let text = asking_for_a_connection(seed, 70.0, 6000, 4, way);
        let (model, origins, _) = told(&text, "[scenario.\"web GET\"]\nrate = 88\n");
        let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
        let found = ScenarioResult::all(&model, &results, &origins)[0].response.expect("it is steady");
        assert!((found / truth - 1.0).abs() < 0.1, "seed {seed}: {found} for {truth}");
    }
}

#[test]
fn a_peer_that_is_asked_at_once_has_no_pool() {
    for (seed, rate) in [(1, 75.0), (2, 20.0), (3, 15.0)] {
        let text = asking_for_a_connection(seed, rate, 4000, 1000, None);
        let (_, _, findings) = told(&in_milliseconds(&text), "");
        assert!(!findings.iter().any(|own| own.code.0 == "M059"), "seed {seed}: {findings:?}");
        let (model, origins, findings) = told(&text, "");
        assert_eq!(threads(&model, "peer"), Multiplicity::Infinite, "seed {seed}");
        assert!(!findings.iter().any(|own| own.code.0 == "M059"), "seed {seed}: {findings:?}");
        assert!(miss(&model, &origins) < 0.03, "seed {seed}: {}", miss(&model, &origins));
    }
}

/// The caller waits for no more than a while: whether it does depends on how long the work takes. The servers of the callee do not.
#[test]
fn servers_are_found_where_only_short_calls_are_waited_for() {
    for (seed, servers, busy) in [(1, 1, 0.65), (2, 1, 0.5), (3, 2, 0.7)] {
        let mut text = String::new();
        for (number, (start, end)) in station(seed, servers, busy, 4000).iter().enumerate() {
            let (start, end) = (start + 1.0, end + 1.0);
            let until = end.min(start + 0.012) + 5e-4;
            let web = Span { service: "web", kind: 2, id: 1, parent: 0, name: "GET", at: (start - 1e-3, until) };
            let call = Span { service: "web", kind: 3, id: 2, parent: 1, name: "find", at: (start - 2e-4, end + 2e-4) };
            let find = Span { service: "find", kind: 2, id: 3, parent: 2, name: "find", at: (start, end) };
            operation(&mut text, number, &[web, call, find]);
        }
        let (model, ..) = told(&text, "");
        assert_eq!(processor(&model, "find").multiplicity, Multiplicity::Finite(servers), "{servers} at {busy}");
    }
}
