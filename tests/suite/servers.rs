//! Servers and demands that are found from spans, against stations whose servers and demands are known.

use std::collections::BinaryHeap;
use std::fmt::Write as _;

use dyelog::lqn::{Body, Model, Multiplicity, Scheduling};
use dyelog::model::parameter::Subject;
use dyelog::model::{Configuration, Load, Origins, complete};
use dyelog::solve::{LayeredOptions, layered};
use dyelog::study::ScenarioResult;
use dyelog::study::at_load::ScenarioLoad;

use crate::generator::Random;
use crate::law::reduced;
use crate::support::shared;

/// The mean demand at the stations, seconds.
pub const DEMAND: f64 = 0.01;

/// The time that an exponential of that mean takes.
pub fn exponential(random: &mut Random, mean: f64) -> f64 {
    -mean * ((random.below(1 << 30) + 1) as f64 / (1_u64 << 30) as f64).ln()
}

/// Begins and ends of so many requests at a station whose servers are shared equally, `busy` of each on average.
pub fn station(seed: u64, servers: u32, busy: f64, count: usize) -> Vec<(f64, f64)> {
    station_that_slows(seed, servers, busy, count, 0.0)
}

/// The same, where the work of requests grows by such a part of what it is at the begin.
pub fn station_that_slows(seed: u64, servers: u32, busy: f64, count: usize, growth: f64) -> Vec<(f64, f64)> {
    let mut random = Random::new(seed);
    let servers = f64::from(servers);
    let between = DEMAND / (servers * busy);
    // Those that are there, by the work that is done for each when they leave, the least first.
    let mut there: BinaryHeap<(std::cmp::Reverse<u64>, usize)> = BinaryHeap::new();
    let (mut now, mut done) = (0.0, 0.0);
    let mut next = exponential(&mut random, between);
    let mut stays: Vec<(f64, f64)> = Vec::new();
    let mut left = 0;
    while left < count {
        let speed = (servers / there.len().max(1) as f64).min(1.0);
        let leaves = there.peek().map(|(work, number)| (f64::from_bits(work.0), *number));
        match leaves {
            Some((work, number)) if now + (work - done) / speed <= next => {
                now += (work - done) / speed;
                done = work;
                stays[number].1 = now;
                there.pop();
                left += 1;
            }
            _ => {
                done += if there.is_empty() { 0.0 } else { (next - now) * speed };
                now = next;
                let grown = 1.0 + growth * stays.len() as f64 / count as f64;
                let work = done + exponential(&mut random, DEMAND * grown);
                there.push((std::cmp::Reverse(work.to_bits()), stays.len()));
                stays.push((now, f64::INFINITY));
                next += exponential(&mut random, between);
            }
        }
    }
    stays.retain(|(_, end)| end.is_finite());
    stays
}

/// For how long the one server of a station was at work: whenever anybody was there.
pub fn at_work(stays: &[(f64, f64)]) -> f64 {
    let (mut busy, mut until) = (0.0, f64::NEG_INFINITY);
    for (begin, end) in stays {
        busy += (end - begin.max(until)).max(0.0);
        until = until.max(*end);
    }
    busy
}

/// The requests as server spans whose times count in steps of so many nanoseconds.
pub fn spans(stays: &[(f64, f64)], step: u64, keep: impl Fn(u128) -> bool) -> String {
    numbered(stays, step, keep, Random::new(99))
}

/// The same with other identifiers, for requests that come together with those of [`spans`].
pub fn spans_of(stays: &[(f64, f64)], seed: u64, keep: impl Fn(u128) -> bool) -> String {
    numbered(stays, 1000, keep, Random::new(seed))
}

fn numbered(stays: &[(f64, f64)], step: u64, keep: impl Fn(u128) -> bool, mut random: Random) -> String {
    let mut text = String::new();
    let at = |seconds: f64| 1_700_000_000_000_000_000 + ((seconds * 1e9) as u64 + 1) / step * step;
    for (start, end) in stays {
        let id = (u128::from(random.next()) << 64) | u128::from(random.next());
        if keep(id) {
            span(&mut text, id, "serve", at(*start), at(*end));
        }
    }
    text
}

/// A request as a server span of its own trace, nanoseconds.
pub fn span(text: &mut String, id: u128, name: &str, start: u64, end: u64) {
    let _ = writeln!(
        text,
        "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":[{{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"host\"}}}}]}},\
         \"scopeSpans\":[{{\"spans\":[{{\"traceId\":\"{id:032x}\",\"spanId\":\"0000000000000001\",\"name\":\"{name}\",\"kind\":2,\
         \"startTimeUnixNano\":\"{start}\",\"endTimeUnixNano\":\"{end}\"}}]}}]}}]}}",
    );
}

pub fn completed(text: &str, configuration: &str) -> (Model, Origins) {
    let (configuration, _) = Configuration::parse(&"t.toml".into(), configuration).expect("it is sound");
    let (model, _, origins) =
        complete(&reduced("t.jsonl", text.as_bytes()), &configuration).expect("there are requests");
    (model, origins)
}

pub fn servers(model: &Model) -> Multiplicity {
    model.processors[model.processor_named("host").expect("it is there").index()].multiplicity
}

pub fn demand(model: &Model) -> f64 {
    let of = |body: &Body| match body {
        Body::Phases(phases) => phases.iter().map(|work| work.demand).sum::<f64>(),
        Body::Activities(_) => panic!("one request is no graph"),
    };
    model.entries.iter().map(|entry| of(&entry.body)).sum()
}

/// By how much the predicted responses are off, relative to the traced ones, at most.
pub fn miss(model: &Model, origins: &Origins) -> f64 {
    let results = layered(model, &LayeredOptions::default()).expect("it can be solved");
    let scenarios = ScenarioResult::all(model, &results, origins);
    let miss = |own: &ScenarioResult<'_>| {
        own.response.map_or(f64::INFINITY, |own_response| {
            (own_response / own.origin.observed_response.expect("spans have times") - 1.0).abs()
        })
    };
    scenarios.iter().map(miss).fold(0.0, f64::max)
}

#[test]
fn servers_and_demands_are_found_again() {
    let (mut right, mut all) = (0, 0);
    for servers_there in [1, 2, 4, 8] {
        for busy in [0.3, 0.5, 0.8] {
            if servers_there == 8 && busy < 0.5 {
                continue;
            }
            for seed in [1, 2] {
                let text = spans(&station(seed, servers_there, busy, 4000), 1000, |_| true);
                let (model, _) = completed(&text, "");
                all += 1;
                if servers(&model) == Multiplicity::Finite(servers_there) {
                    right += 1;
                    let demand = demand(&model);
                    assert!((demand / DEMAND - 1.0).abs() < 0.05, "{servers_there} at {busy}: {demand}");
                }
            }
        }
    }
    assert!(right * 10 >= all * 9, "{right} of {all}");
}

/// Begins and ends of so many requests at a server that takes them in the order in which they come.
pub fn line(seed: u64, busy: f64, count: usize) -> Vec<(f64, f64)> {
    let mut random = Random::new(seed);
    let (mut now, mut free) = (0.0_f64, 0.0_f64);
    let of = |_| {
        now += exponential(&mut random, DEMAND / busy);
        free = free.max(now) + exponential(&mut random, DEMAND);
        (now, free)
    };
    (0..count).map(of).collect()
}

#[test]
fn one_server_that_serves_in_the_order_of_arrival_is_told_from_one_that_is_shared() {
    for busy in [0.4, 0.6, 0.8] {
        let orders =
            [(line(1, busy, 4000), Scheduling::Fcfs), (station(3, 1, busy, 4000), Scheduling::ProcessorSharing)];
        for (stays, order) in orders {
            let (model, _) = completed(&spans(&stays, 1000, |_| true), "");
            let host = &model.processors[model.processor_named("host").expect("it is there").index()];
            assert_eq!((host.scheduling, host.multiplicity), (order, Multiplicity::Finite(1)), "{busy}");
            assert!((demand(&model) / DEMAND - 1.0).abs() < 0.05, "{order:?} at {busy}: {}", demand(&model));
        }
    }
}

/// A recording that begins in the midst of an overload, as a part of one does, has not those for whom its first requests waited. Their wait is no work.
#[test]
fn whom_the_first_requests_waited_for_is_no_demand() {
    for seed in 1..=3 {
        let stays = &line(seed, 1.2, 3000)[1800..];
        let backlog = stays[0].1 - stays[0].0;
        assert!(backlog > 100.0 * DEMAND, "{backlog}");
        let (model, _) = completed(&spans(stays, 1, |_| true), "");
        assert!((demand(&model) / DEMAND - 1.0).abs() < 0.08, "{seed}: {}", demand(&model));
    }
}

/// Regular work queues less than exponential work, which shows only where queueing is told from it. A recording cuts off some operations at its ends, whose first
/// spans are missing then: that is no sampling.
#[test]
fn regular_work_in_the_order_of_arrival_is_found_though_an_operation_is_cut_off() {
    for busy in [0.4, 0.6, 0.75] {
        let mut random = Random::new(6);
        let (mut now, mut free) = (0.0_f64, 0.0_f64);
        let of = |_| {
            now += exponential(&mut random, DEMAND / busy);
            free = free.max(now) + (0..4).map(|_| exponential(&mut random, DEMAND / 4.0)).sum::<f64>();
            (now, free)
        };
        let stays: Vec<(f64, f64)> = (0..6000).map(of).collect();
        let id = "\"spanId\":\"0000000000000001\",";
        let cut_off =
            spans(&stays, 1000, |_| true).replacen(id, &format!("{id}\"parentSpanId\":\"00000000000000ff\","), 1);
        let (model, origins) = completed(&cut_off, "");
        let host = &model.processors[model.processor_named("host").expect("it is there").index()];
        assert_eq!((host.scheduling, host.multiplicity), (Scheduling::Fcfs, Multiplicity::Finite(1)), "{busy}");
        let (demand, miss) = (demand(&model), miss(&model, &origins));
        assert!((demand / DEMAND - 1.0).abs() < 0.05 && miss < 0.05, "{busy}: {demand}, off by {miss}");
        let Body::Phases(phases) = &model.entries[0].body else { panic!("one request is no graph") };
        assert!((phases[0].cv2.expect("it was seen") - 0.25).abs() < 0.05, "{busy}: {:?}", phases[0].cv2);
    }
}

/// Several servers with one line before them, as worker processes have: fewer that are shared would keep those who find one other longer.
#[test]
fn several_servers_with_one_line_are_found() {
    for (servers_there, busy, stages) in [(2, 0.4, 1), (2, 0.7, 1), (2, 0.7, 4), (4, 0.7, 1), (4, 0.7, 4)] {
        let mut random = Random::new(3);
        let mut free = vec![0.0_f64; servers_there as usize];
        let mut now = 0.0_f64;
        let of = |_| {
            now += exponential(&mut random, DEMAND / busy / f64::from(servers_there));
            let first = free.iter_mut().min_by(|left, right| left.total_cmp(right)).expect("there are some");
            let work: f64 = (0..stages).map(|_| exponential(&mut random, DEMAND / f64::from(stages))).sum();
            *first = first.max(now) + work;
            (now, *first)
        };
        let stays: Vec<(f64, f64)> = (0..6000).map(of).collect();
        let (model, origins) = completed(&spans(&stays, 1000, |_| true), "");
        let host = &model.processors[model.processor_named("host").expect("it is there").index()];
        let what = format!("{servers_there} at {busy}, {stages} stages");
        assert_eq!(
            (host.scheduling, host.multiplicity),
            (Scheduling::Fcfs, Multiplicity::Finite(servers_there)),
            "{what}"
        );
        let (demand, miss) = (demand(&model), miss(&model, &origins));
        assert!((demand / DEMAND - 1.0).abs() < 0.05 && miss < 0.05, "{what}: {demand}, off by {miss}");
    }
}

/// Operations that were seen a few times in a recording are rare: no customer who asks again at once.
/// Requests wait for something that was not traced after their work, for 15 ms on the mean: with one server they look like three. The number of servers tells both apart.
#[test]
fn waits_within_spans_are_told_from_work_where_servers_are_given() {
    for seed in 1..=4 {
        let mut random = Random::new(100 + seed);
        let mut stays = station(seed, 1, 0.5, 6000);
        for stay in &mut stays {
            stay.1 += exponential(&mut random, 0.015);
        }
        let text = spans(&stays, 1000, |_| true);
        let (model, origins) = completed(&text, "[processor.host]\nmultiplicity = 1\n");
        let (found, off) = (demand(&model), miss(&model, &origins));
        assert!((found / DEMAND - 1.0).abs() < 0.1, "{seed}: {found}");
        assert!(off < 0.05, "{seed}: {off}");
        // Without waits, the same number leaves all of it work.
        let (model, _) =
            completed(&spans(&station(seed, 2, 0.5, 6000), 1000, |_| true), "[processor.host]\nmultiplicity = 2\n");
        assert!((demand(&model) / DEMAND - 1.0).abs() < 0.05, "{seed}: {}", demand(&model));
    }
}

#[test]
fn a_rare_scenario_has_the_rate_at_which_it_was_seen() {
    let stays = station(1, 1, 0.5, 2000);
    let mut text = spans(&stays, 1000, |_| true);
    let at = |seconds: f64| 1_700_000_000_000_000_000 + (seconds * 1e9) as u64;
    for number in 0..3_u32 {
        let start = 10.0 * f64::from(number) + 2.0;
        span(&mut text, u128::from(number) + 1, "rare", at(start), at(start + 0.02));
    }
    let (model, origins) = completed(&text, "");
    let rare = origins.scenarios.iter().find(|own| own.name.contains("rare")).expect("it is there");
    let Load::Open { rate } = rare.load else { panic!("{:?}", rare.load) };
    let expected = 3.0 / (stays[stays.len() - 1].0 - stays[0].0);
    assert!((rate / expected - 1.0).abs() < 0.01, "{rate} for {expected}");
    let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
    let often = ScenarioResult::all(&model, &results, &origins).into_iter().find(|own| own.origin.operations > 3);
    let often = often.and_then(|own| Some(own.response? / own.origin.observed_response?)).expect("it responds");
    assert!((often - 1.0).abs() < 0.05, "{often}");
}

/// Single operations tell no load. Where the assumed one makes them wait for each other, that is said.
#[test]
fn an_assumed_load_that_makes_operations_wait_is_told() {
    let mut text = String::new();
    let begin = 1_700_000_000_000_000_000;
    for (number, name) in ["first", "second"].into_iter().enumerate() {
        let start = begin + 50_000_000 * number as u64;
        span(&mut text, number as u128 + 1, name, start, start + 20_000_000);
    }
    let (model, origins) = completed(&text, "");
    let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
    let told = dyelog::study::unlike_traced(&model, &results, &origins, None);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().all(|own| own.message.contains("at the load that is assumed")), "{told:?}");
    assert!(told.iter().all(|own| own.notes[0].contains("at a rate that no trace tells")), "{told:?}");
}

/// Two copies with 5/s each call a server that takes 0.05 s: it is busy half of the time, and twice the load saturates it.
#[test]
fn arrivals_at_copies_count_at_all_of_them() {
    let text = "G \"copies\" 1e-5 50 -1\nP 2\n p web s r 2\n p db s\n-1\nT 2\n t web n get -1 web i r 2\n t db n read -1 db i\n O web db 1\n \
                I web db 2\n-1\nE 2\n s get 0.01 -1\n a get 5\n y get read 1 -1\n s read 0.05 -1\n-1\n";
    let model = dyelog::lqn::read_any("copies.lqn", text).expect("it is sound").model;
    let analysis = dyelog::lqn::operational::OperationalAnalysis::new(&model, 1000).expect("it is sound");
    let bounds = dyelog::lqn::bounds::AsymptoticBounds::new(analysis);
    assert!((bounds.rooms()[0].factor() - 2.0).abs() < 1e-9, "{:?}", bounds.rooms());
    assert!((bounds.open()[0].rate - 10.0).abs() < 1e-9, "{:?}", bounds.open());
    let load = ScenarioLoad {
        name: "get".into(),
        load: Load::Open { rate: 10.0 },
        rate: 10.0,
        first: vec![("get".into(), 1.0)],
    };
    let at = dyelog::study::at_load::at_load(&model, &[load]);
    assert_eq!(at.model.entries[0].open_arrival_rate, Some(5.0));
}

#[test]
fn measured_processor_time_bounds_servers_from_below() {
    for (servers_there, busy, most) in [(1, 0.5, 1), (4, 0.8, 5), (8, 0.7, 10)] {
        let text = spans(&station(4, servers_there, busy, 6000), 1000, |_| true);
        let cpu = "\"attributes\":[{\"key\":\"thread.cpu_time\",\"value\":{\"doubleValue\":0.01}}],\"startTime";
        let (model, _) = completed(&text.replace("\"startTime", cpu), "");
        let found = servers(&model);
        let Multiplicity::Finite(count) = found else { panic!("{found:?}") };
        assert!((servers_there..=most).contains(&count), "{servers_there} at {busy}: {count}");
    }
}

#[test]
fn a_model_responds_as_traced_at_the_traced_load() {
    for (servers, busy) in [(1, 0.2), (1, 0.7), (2, 0.6), (4, 0.8)] {
        let (model, origins) = completed(&spans(&station(5, servers, busy, 8000), 1000, |_| true), "");
        let miss = miss(&model, &origins);
        assert!(miss < 0.1, "{servers} at {busy}: off by {miss}");
    }
}

#[test]
fn sampled_traces_tell_the_demand_still() {
    for (servers_there, busy) in [(1, 0.5), (1, 0.8), (2, 0.7)] {
        let text = spans(&station(7, servers_there, busy, 12_000), 1000, |id| (id as u64) << 1 < u64::MAX / 10 * 3);
        let (model, origins) = completed(&text, &format!("[processor.host]\nmultiplicity = {servers_there}\n"));
        let (demand, miss) = (demand(&model), miss(&model, &origins));
        assert!(
            (demand / DEMAND - 1.0).abs() < 0.15 && miss < 0.05,
            "{servers_there} at {busy}: {demand}, off by {miss}"
        );
    }
}

#[test]
fn lost_spans_and_coarse_clocks_change_little() {
    let stays = station(3, 2, 0.6, 6000);
    let whole = demand(&completed(&spans(&stays, 1000, |_| true), "").0);
    for (what, text) in [
        ("1 % lost", spans(&stays, 1000, |id| id % 100 != 0)),
        ("5 % lost", spans(&stays, 1000, |id| id % 20 != 0)),
        ("milliseconds", spans(&stays, 1_000_000, |_| true)),
    ] {
        let (model, _) = completed(&text, "");
        assert_eq!(servers(&model), Multiplicity::Finite(2), "{what}");
        let demand = demand(&model);
        assert!((demand / whole - 1.0).abs() < 0.05, "{what}: {demand} for {whole}");
    }
}

#[test]
fn the_configuration_tells_of_the_traced_system_and_questions_do_not() {
    let text = spans(&station(2, 2, 0.7, 4000), 1000, |_| true);
    let one = demand(&completed(&text, "[processor.host]\nmultiplicity = 1\n").0);
    let infinite = completed(&text, "[defaults]\nmultiplicity = \"infinite\"\n").0;
    let two = demand(&completed(&text, "").0);
    assert!(one < 0.8 * two && two < 0.8 * demand(&infinite), "{one}, {two}, {}", demand(&infinite));
    let subject = Subject::of_traces(reduced("t.jsonl", text.as_bytes()), &"t.toml".into(), "", false).expect("sound");
    let change = subject.change("processor.host.multiplicity=8").expect("it is a parameter");
    let asked = subject.ask(&[change]).expect("it takes that");
    assert_eq!((servers(&asked.model), demand(&asked.model)), (Multiplicity::Finite(8), two));
}

#[test]
fn times_without_length_and_bursts_are_no_panic() {
    let zero: Vec<(f64, f64)> = (0..200).map(|number| (f64::from(number) * 0.01, f64::from(number) * 0.01)).collect();
    let (model, _) = completed(&spans(&zero, 1000, |_| true), "[demand]\ndefault = \"1 ms\"\n");
    assert_eq!(servers(&model), Multiplicity::Finite(1));
    // All at once, and all of one length.
    let burst: Vec<(f64, f64)> =
        (0..3000).map(|number| (f64::from(number) * 1e-7, 1.0 + f64::from(number) * 1e-7)).collect();
    completed(&spans(&burst, 1, |_| true), "");
}

#[test]
fn customers_who_wait_are_told_from_open_arrivals() {
    // Six customers at one server, who think for 20 ms on the mean.
    let mut random = Random::new(4);
    let mut wakes: Vec<f64> = (0..6).map(|_| exponential(&mut random, 0.02)).collect();
    let mut there: Vec<(f64, f64, usize)> = Vec::new();
    let mut stays = Vec::new();
    let mut now = 0.0;
    while stays.len() < 6000 {
        let wake = (0..6).min_by(|left, right| wakes[*left].total_cmp(&wakes[*right])).expect("there are six");
        let first = (0..there.len()).min_by(|left, right| there[*left].1.total_cmp(&there[*right].1));
        let ends = first.map_or(f64::INFINITY, |first| now + there[first].1 * there.len() as f64);
        let until = ends.min(wakes[wake]);
        let served = (until - now) / there.len().max(1) as f64;
        for own in &mut there {
            own.1 -= served;
        }
        now = until;
        match first {
            Some(first) if ends < wakes[wake] => {
                let (start, _, who) = there.remove(first);
                stays.push((start, now));
                wakes[who] = now + exponential(&mut random, 0.02);
            }
            _ => {
                there.push((now, exponential(&mut random, DEMAND), wake));
                wakes[wake] = f64::INFINITY;
            }
        }
    }
    let (model, origins) = completed(&spans(&stays, 1000, |_| true), "");
    assert!(
        matches!(origins.scenarios[0].load, Load::Closed { population: 5..=8, .. }),
        "{:?}",
        origins.scenarios[0].load
    );
    let (demand, miss) = (demand(&model), miss(&model, &origins));
    assert!((demand / DEMAND - 1.0).abs() < 0.05 && miss < 0.03, "{demand}, off by {miss}");
}

/// A span of a service on a machine; of a call where it has no service that it serves.
struct Recorded<'a> {
    service: &'a str,
    host: &'a str,
    name: &'a str,
    trace: usize,
    id: usize,
    parent: Option<usize>,
    /// 2 of a server, 3 of a client.
    kind: u8,
    /// Seconds.
    within: (f64, f64),
}

/// The spans, whose times count in steps of so many nanoseconds by clocks that are so far off, seconds.
fn recorded(spans: &[Recorded<'_>], step: u64, off: impl Fn(&str) -> f64) -> String {
    let mut text = String::new();
    let mut random = Random::new(5);
    let traces: Vec<u128> = (0..=spans.iter().map(|own| own.trace).max().unwrap_or(0))
        .map(|_| (u128::from(random.next()) << 64) | u128::from(random.next()))
        .collect();
    for own in spans {
        let at =
            |seconds: f64| 1_700_000_000_000_000_000 + ((seconds + off(own.host) + 1.0) * 1e9) as u64 / step * step;
        let parent = own.parent.map(|id| format!("\"parentSpanId\":\"{id:016x}\",")).unwrap_or_default();
        let _ = writeln!(
            text,
            "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":[{{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"{}\"}}}},\
             {{\"key\":\"host.name\",\"value\":{{\"stringValue\":\"{}\"}}}}]}},\"scopeSpans\":[{{\"spans\":[{{\"traceId\":\"{:032x}\",{parent}\
             \"spanId\":\"{:016x}\",\"name\":\"{}\",\"kind\":{},\"startTimeUnixNano\":\"{}\",\"endTimeUnixNano\":\"{}\"}}]}}]}}]}}",
            own.service,
            own.host,
            traces[own.trace],
            own.id,
            own.name,
            own.kind,
            at(own.within.0),
            at(own.within.1)
        );
    }
    text
}

/// Visits to one server that serves in the order of arrival, with work before and after a call of 2 ms.
fn visits(seed: u64, pieces: (f64, f64), busy: f64, count: usize) -> Vec<[f64; 4]> {
    let mut random = Random::new(seed);
    let mut coming = BinaryHeap::new();
    let mut now = 0.0;
    for number in 0..count {
        now += exponential(&mut random, (pieces.0 + pieces.1) / busy);
        coming.push((std::cmp::Reverse(now.to_bits()), number, false));
    }
    let (mut visits, mut free) = (vec![[0.0; 4]; count], 0.0_f64);
    while let Some((at, number, returns)) = coming.pop() {
        let at = f64::from_bits(at.0);
        free = free.max(at) + exponential(&mut random, if returns { pieces.1 } else { pieces.0 });
        let own = &mut visits[number];
        if returns {
            (own[2], own[3]) = (at, free);
        } else {
            (own[0], own[1]) = (at, free);
            coming.push((std::cmp::Reverse((free + 0.002).to_bits()), number, true));
        }
    }
    visits
}

/// A clock in steps records work below a step as none or one of them, whatever the queue.
#[test]
fn work_below_a_step_of_the_clock_tells_nothing_of_servers() {
    for (seed, busy) in [(1, 0.3), (2, 0.55), (3, 0.55)] {
        let visits = visits(seed, (0.006, 0.0003), busy, 3000);
        let of = |(trace, [begin, asks, answered, end]): (usize, &[f64; 4])| {
            let own = |id, parent, kind, name, within| Recorded {
                service: "host",
                host: "h",
                name,
                trace,
                id,
                parent,
                kind,
                within,
            };
            [
                own(2 * trace + 1, None, 2, "serve", (*begin, *end)),
                own(2 * trace + 2, Some(2 * trace + 1), 3, "ask", (*asks, *answered)),
            ]
        };
        let all: Vec<Recorded<'_>> = visits.iter().enumerate().flat_map(of).collect();
        let (model, _) = completed(&recorded(&all, 1_000_000, |_| 0.0), "");
        assert_eq!(servers(&model), Multiplicity::Finite(1), "seed {seed}, busy {busy}");
    }
}

/// What a server does for callers with clocks of their own is seen by one clock.
#[test]
fn clocks_of_callers_do_not_hide_who_met_whom() {
    let stays = line(4, 0.6, 3000);
    let fronts = ["a", "b", "c"];
    let of = |(trace, (begin, end)): (usize, &(f64, f64))| {
        let front = fronts[trace % 3];
        let own = |service, host, name, id, parent, kind, early: f64| {
            let within = (begin - early, end + early);
            Recorded { service, host, name, trace, id: 3 * trace + id, parent, kind, within }
        };
        let (first, call) = (Some(3 * trace + 1), Some(3 * trace + 2));
        [
            own("front", front, "GET /", 1, None, 2, 0.001),
            own("front", front, "GET /", 2, first, 3, 0.0005),
            own("host", "h", "serve", 3, call, 2, 0.0),
        ]
    };
    let all: Vec<Recorded<'_>> = stays.iter().enumerate().flat_map(of).collect();
    let found = |off: &dyn Fn(&str) -> f64| {
        let (model, origins) = completed(&recorded(&all, 1, off), "");
        let busy = model.processors[model.processor_named("host").expect("it is there").index()].clone();
        (busy.multiplicity, busy.scheduling, origins.scenarios[0].load)
    };
    let as_one = found(&|_| 0.0);
    assert_eq!((as_one.0, as_one.1), (Multiplicity::Finite(1), Scheduling::Fcfs));
    let apart = found(&|host| match host {
        "a" => -0.342,
        "b" => 0.29,
        "h" => 0.065,
        _ => 0.0,
    });
    assert_eq!((apart.0, apart.1), (as_one.0, as_one.1));
    let (Load::Open { rate }, Load::Open { rate: own }) = (as_one.2, apart.2) else { panic!("{apart:?}") };
    assert!((own / rate - 1.0).abs() < 0.01, "{own} for {rate}");
}

/// Of many stays whole stretches of time are kept, in which more or fewer wait than in others: what these had is no constant part of how long they were.
#[test]
fn demands_are_those_of_all_stays_where_not_all_are_kept() {
    for seed in 1..5 {
        let stays = station(seed, 1, 0.8, 24_000);
        let truth = at_work(&stays) / stays.len() as f64;
        let (model, _) = completed(&spans(&stays, 1, |_| true), "");
        assert_eq!(servers(&model), Multiplicity::Finite(1));
        let found = demand(&model);
        assert!((found / truth - 1.0).abs() < 0.03, "seed {seed}: {found} for {truth}");
    }
}

/// Open sockets wait: they keep no server busy, whether one is longer than all that was recorded, or many are there together.
#[test]
fn sockets_that_stay_open_keep_no_server_busy() {
    let stays = line(3, 0.3, 3000);
    let recorded = stays.iter().fold(0.0_f64, |last, own| last.max(own.1));
    let open: [(usize, f64); 3] = [(1, 90.0), (8, 50.0), (60, 7.0)];
    for (count, length) in open {
        let mut text = spans(&stays, 1, |_| true);
        for number in 0..count {
            let begin = recorded * number as f64 / count as f64;
            let at = |seconds: f64| 1_700_000_000_000_000_000 + (seconds * 1e9) as u64;
            let id = (u128::MAX / 61).wrapping_mul(number as u128 + 1);
            span(&mut text, id, "socket", at(begin), at(begin + length));
        }
        let (model, origins) = completed(&text, "");
        assert_eq!(servers(&model), Multiplicity::Finite(1), "{count} sockets of {length} s");
        assert!(miss(&model, &origins) < 0.05, "{count} sockets of {length} s: {}", miss(&model, &origins));
    }
}

/// What takes no time and begins at one moment, as a broken clock records it, takes nobody's answer away.
#[test]
fn operations_without_times_leave_others_their_answer() {
    let mut text = spans(&line(3, 0.3, 3000), 1, |_| true);
    for number in 1..=20_u128 {
        span(&mut text, number << 64 | number, "broken", 1_700_000_001_000_000_000, 1_700_000_001_000_000_000);
    }
    let (model, origins) = completed(&text, "");
    let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
    let scenarios = ScenarioResult::all(&model, &results, &origins);
    let served = scenarios.iter().find(|own| own.origin.name.contains("serve")).expect("it is there");
    let (response, traced) = served.response.zip(served.origin.observed_response).expect("it has both");
    assert!((response / traced - 1.0).abs() < 0.1, "{response} for {traced}");
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn shared_traces_respond_as_traced_at_their_own_load() {
    for load in ["hotel-load25", "hotel-load50", "hotel-load75", "hotel-load100", "media-load25", "media-load75"] {
        let file = shared(&format!("traces/jaeger/traceweaver/{load}.json.gz"));
        let sub = reduced(load, &std::fs::read(file).expect("a file"));
        let (model, _, origins) = complete(&sub, &Configuration::default()).expect("there are operations");
        let miss = miss(&model, &origins);
        println!("{load}: off by {:.1} %", 100.0 * miss);
        assert!(miss < 0.05, "{load}: off by {miss}");
    }
}
