//! Hosts against simulated ones: batches that come together, the way to peers that record no spans, quotas of processor time.

use dyelog::diagnostic::Diagnostic;
use dyelog::lqn::{Model, Multiplicity, Scheduling};
use dyelog::model::{Configuration, Origins, complete};

use crate::cli::Folder;
use crate::deployment;
use crate::generator::Random;
use crate::law::reduced;
use crate::lost_services::busy;
use crate::servers::{exponential, miss, servers, spans};
use crate::waits::{Span, operation, processor};
use crate::whatif::run;

/// A host whose servers are shared equally.
struct Host {
    servers: f64,
    /// Processor time that it may use in each 100 ms, seconds.
    quota: f64,
}

/// The period of quotas, seconds.
const PERIOD: f64 = 0.1;

impl Host {
    /// Begins and ends of requests, by when they come and how much work they are.
    fn stays(&self, requests: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let mut stays: Vec<(f64, f64)> = requests.iter().map(|(start, _)| (*start, f64::INFINITY)).collect();
        let mut there: Vec<(usize, f64)> = Vec::new();
        let (mut now, mut next, mut left, mut period) = (0.0_f64, 0, self.quota, 0.0);
        while next < requests.len() || !there.is_empty() {
            let rate = (there.len() as f64).min(self.servers);
            let speed = if there.is_empty() || left <= 0.0 { 0.0 } else { rate / there.len() as f64 };
            let least = there.iter().map(|own| own.1).fold(f64::INFINITY, f64::min);
            let ends = if speed > 0.0 { least / speed } else { f64::INFINITY };
            let comes = requests.get(next).map_or(f64::INFINITY, |request| request.0 - now);
            let used = if speed > 0.0 { left / rate } else { f64::INFINITY };
            let begins = if self.quota.is_finite() { period + PERIOD - now } else { f64::INFINITY };
            let step = ends.min(comes).min(used).min(begins);
            now += step;
            left -= step * rate * f64::from(u8::from(speed > 0.0));
            for own in &mut there {
                own.1 -= step * speed;
            }
            if step == begins {
                (period, left) = (period + PERIOD, self.quota);
                now = period;
            } else if step == used {
                left = 0.0;
            } else if step == comes {
                now = requests[next].0;
                there.push((next, requests[next].1));
                next += 1;
            } else {
                there.retain(|(number, work)| {
                    let leaves = *work <= least * 1e-9;
                    if leaves {
                        stays[*number].1 = now;
                    }
                    !leaves
                });
            }
        }
        stays
    }
}

/// So many requests that come at any time, of exponential work.
fn requests(seed: u64, rate: f64, work: f64, count: usize) -> Vec<(f64, f64)> {
    let mut random = Random::new(seed);
    let mut now = 1.0;
    let of = |_| {
        now += exponential(&mut random, 1.0 / rate);
        (now, exponential(&mut random, work))
    };
    (0..count).map(of).collect()
}

fn told(text: &str) -> (Model, Origins, Vec<Diagnostic>) {
    let (model, findings, origins) =
        complete(&reduced("t.jsonl", text.as_bytes()), &Configuration::default()).expect("there are requests");
    (model, origins, findings)
}

/// Four requests at a time: those that begin together find each other, in whatever order they end.
#[test]
fn batches_that_come_together_tell_their_servers() {
    for (seed, count, load) in [(1, 4_u32, 0.55), (2, 2, 0.5), (3, 4, 0.4)] {
        let work = 5e-3;
        let mut random = Random::new(seed);
        let mut now = 1.0;
        let batch = |_| {
            now += exponential(&mut random, 4.0 * work / (f64::from(count) * load));
            [now; 4].map(|at| (at, exponential(&mut random, work)))
        };
        let requests: Vec<(f64, f64)> = (0..1500).flat_map(batch).collect();
        let stays = Host { servers: f64::from(count), quota: f64::INFINITY }.stays(&requests);
        let (model, ..) = told(&spans(&stays, 1, |_| true));
        assert_eq!(servers(&model), Multiplicity::Finite(count), "{count} at {load}");
        let found = busy(&model, "host") / f64::from(count);
        assert!((found / load - 1.0).abs() < 0.06, "{count} servers: busy {found} for {load}");
    }
}

/// Operations that ask a peer without spans, which is so far away.
fn asking(requests: &[(f64, f64)], servers: usize, far: f64) -> String {
    let (mut text, mut free) = (String::new(), vec![0.0_f64; servers]);
    for (number, (start, work)) in requests.iter().enumerate() {
        let at = (0..servers).min_by(|one, other| free[*one].total_cmp(&free[*other])).expect("there is a server");
        free[at] = start.max(free[at]) + work;
        let end = free[at] + far;
        let web = Span { service: "web", kind: 2, id: 1, parent: 0, name: "GET", at: (start - 1e-3, end + 1e-3) };
        let call = Span { service: "web", kind: 3, id: 2, parent: 1, name: "ask", at: (*start, end) };
        operation(&mut text, number, &[web, call]);
    }
    text
}

/// The way to a peer counts as its demand no more: more load makes its queue longer, and not the way.
#[test]
fn a_constant_latency_of_calls_is_no_demand() {
    for (seed, count, load, far) in [(1, 1_usize, 0.55, 2e-3), (2, 2, 0.55, 2e-3), (3, 1, 0.6, 4e-4), (4, 1, 0.5, 0.0)]
    {
        let work = 5e-3;
        let requests = requests(seed, count as f64 * load / work, work, 6000);
        let (model, origins, findings) = told(&asking(&requests, count, far));
        let peer = processor(&model, "peer");
        let known = (Multiplicity::Finite(count as u32), Scheduling::Fcfs);
        assert_eq!((peer.multiplicity, peer.scheduling), known, "seed {seed}");
        let found = busy(&model, "peer") / count as f64;
        assert!((found / load - 1.0).abs() < 0.06, "seed {seed}: busy {found} for {load}");
        assert!(miss(&model, &origins) < 0.08, "seed {seed}: {}", miss(&model, &origins));
        let notes: Vec<&String> = findings.iter().flat_map(|own| &own.notes).collect();
        let is_told = notes.iter().any(|note| note.contains("each call has a constant latency of"));
        assert_eq!(is_told, far > 0.0, "seed {seed}: {notes:?}");
    }
}

/// Draws the work of a request.
type Draw = fn(&mut Random) -> f64;

/// A demand that is always the same, or often, is none: what comes next would have been served sooner.
#[test]
fn constant_demands_are_no_latency() {
    let twice = |random: &mut Random| if random.below(5) < 4 { 1e-3 } else { 20e-3 };
    let cases: [(u64, usize, f64, Draw, f64); 4] = [
        (1, 1, 0.3, |_| 5e-3, 5e-3),
        (2, 2, 0.5, |_| 5e-3, 5e-3),
        (3, 8, 0.75, |_| 5e-3, 5e-3),
        (4, 2, 0.6, twice, 4.8e-3),
    ];
    for (seed, count, load, work, mean) in cases {
        let mut random = Random::new(seed);
        let mut requests = requests(seed, count as f64 * load / mean, mean, 6000);
        for request in &mut requests {
            request.1 = work(&mut random);
        }
        let (model, origins, findings) = told(&asking(&requests, count, 0.0));
        assert_eq!(processor(&model, "peer").multiplicity, Multiplicity::Finite(count as u32), "seed {seed}");
        let found = busy(&model, "peer") / count as f64;
        assert!((found / load - 1.0).abs() < 0.06, "seed {seed}: busy {found} for {load}");
        assert!(miss(&model, &origins) < 0.06, "seed {seed}: {}", miss(&model, &origins));
        assert!(!findings.iter().flat_map(|own| &own.notes).any(|note| note.contains("constant latency")));
    }
}

/// Clocks that count microseconds blur who met whom where work takes some of them.
#[test]
fn clocks_that_count_microseconds_make_no_servers() {
    for (seed, work) in [(1, 20e-6), (2, 10e-6), (3, 40e-6)] {
        let requests = requests(seed, 4.0 * 0.6 / work, work, 6000);
        let stays = Host { servers: 4.0, quota: f64::INFINITY }.stays(&requests);
        let (model, ..) = told(&spans(&stays, 1000, |_| true));
        assert_eq!(servers(&model), Multiplicity::Finite(4), "{work} s");
    }
}

/// Work that uses four cores at once stands still when its quota is used. The headroom counts with the quota.
#[test]
fn a_quota_of_processor_time_is_found() {
    for (seed, cores, load, work) in [(1, 1.5, 0.64, 0.02), (2, 0.6, 0.5, 0.02), (3, 1.5, 0.7, 0.01)] {
        let requests = requests(seed, cores * load / work, work, 20_000);
        let stays = Host { servers: 4.0, quota: cores * PERIOD }.stays(&requests);
        let (model, origins, findings) = told(&spans(&stays, 1, |_| true));
        assert!(findings.iter().any(|finding| finding.code.0 == "M080"), "{findings:?}");
        assert!(miss(&model, &origins) < 0.05, "seed {seed}: {}", miss(&model, &origins));
        let (found, factor) = quota(&model, "host");
        assert!((found / cores - 1.0).abs() < 0.1, "seed {seed}: {found} cores for {cores}");
        assert!((factor * load - 1.0).abs() < 0.1, "seed {seed}: {factor} for {}", 1.0 / load);
    }
}

/// Requests to copies, each of which has a period of its own, with what their resources tell of cores.
fn copies(seed: u64, count: usize, host: &Host, (load, work): (f64, f64), told: Option<(&str, &str)>) -> String {
    let mut text = String::new();
    let cores = (host.quota / PERIOD).min(host.servers);
    for copy in 0..count {
        let requests = requests(seed + copy as u64, cores * load / work, work, 5000);
        let name = format!("web-{copy}");
        let mut resource = vec![("service.instance.id", &*name), ("host.name", &*name)];
        resource.extend(told);
        for (number, (start, end)) in host.stays(&requests).into_iter().enumerate() {
            let id = (((copy + 1) as u128) << 64 | (number as u128 + 1))
                .wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            let after = 0.037 * copy as f64;
            deployment::span(&mut text, id, "web", &resource, (start + after, end + after));
        }
    }
    text
}

/// How many cores a copy may use in the model, and how many times what it uses that is.
fn quota(model: &Model, name: &str) -> (f64, f64) {
    let cores = model.cap(model.processor_named(name).expect("it is there")).expect("it has a quota");
    (cores, cores / busy(model, name))
}

fn has(findings: &[Diagnostic], code: &str) -> bool {
    findings.iter().any(|finding| finding.code.0 == code)
}

/// Copies stand still at different times. Little of what they do is beyond their quotas, and no end of a stay is.
#[test]
fn quotas_of_copies_are_found() {
    let machine = Some(("host.cpu.count", "8"));
    for (seed, count, cores, load, resource) in
        [(1, 3, 2.0, 0.65, None), (11, 2, 1.5, 0.6, None), (21, 1, 2.0, 0.55, None), (31, 1, 1.5, 0.6, machine)]
    {
        let host = Host { servers: 8.0, quota: cores * PERIOD };
        let (model, origins, findings) = told(&copies(seed, count, &host, (load, 0.01), resource));
        assert!(has(&findings, "M080"), "seed {seed}: {findings:?}");
        assert!(miss(&model, &origins) < 0.03, "seed {seed}: {}", miss(&model, &origins));
        let (found, factor) = quota(&model, "web");
        assert!((found / cores - 1.0).abs() < 0.03, "seed {seed}: {found} cores for {cores}");
        assert!((factor * load - 1.0).abs() < 0.06, "seed {seed}: {factor} for {}", 1.0 / load);
    }
}

/// A limit of a container is a quota where work uses more cores at once, whether it stands still now and then or is never held.
#[test]
fn a_limit_that_is_told_is_a_quota() {
    for (seed, count, load, work, stands_still) in
        [(1, 1, 0.6, 0.01, true), (2, 1, 0.5, 0.002, false), (3, 3, 0.6, 0.01, true)]
    {
        let host = Host { servers: 8.0, quota: 2.0 * PERIOD };
        let (model, origins, findings) =
            told(&copies(seed, count, &host, (load, work), Some(("k8s.container.cpu.limit", "2"))));
        assert_eq!(has(&findings, "M080"), stands_still, "seed {seed}: {findings:?}");
        let words = findings.iter().flat_map(|own| &own.notes).any(|note| note.contains("they are a quota"));
        assert_eq!(words, !stands_still, "seed {seed}: {findings:?}");
        assert!(miss(&model, &origins) < 0.03, "seed {seed}: {}", miss(&model, &origins));
        let found = busy(&model, "web") / 2.0;
        assert!((found / load - 1.0).abs() < 0.05, "seed {seed}: busy {found} for {load}");
        let (cores, factor) = quota(&model, "web");
        assert!((cores - 2.0).abs() < 1e-9, "seed {seed}: {cores}");
        assert!((factor * load - 1.0).abs() < 0.06, "seed {seed}: {factor} for {}", 1.0 / load);
    }
    // On a machine that has no more cores it is no quota.
    let host = Host { servers: 2.0, quota: f64::INFINITY };
    let (model, _, findings) = told(&copies(4, 1, &host, (0.6, 0.01), Some(("k8s.container.cpu.limit", "2"))));
    assert!(!has(&findings, "M080") && !has(&findings, "M049"), "{findings:?}");
    assert_eq!(processor(&model, "web").multiplicity, Multiplicity::Finite(2));
}

/// Clocks of milliseconds hide how likely lengths of stays are, and not where nothing ends.
#[test]
fn clocks_of_milliseconds_show_quotas() {
    let requests = requests(1, 120.0, 0.01, 8000);
    let stays = |quota: f64| spans(&Host { servers: 8.0, quota }.stays(&requests), 1_000_000, |_| true);
    assert!(has(&told(&stays(0.2)).2, "M080"));
    assert!(!has(&told(&stays(f64::INFINITY)).2, "M080"));
}

/// Pauses at the begin of each period hold work whatever was used, and are no quota.
#[test]
fn pauses_at_fixed_times_are_no_quota() {
    for (seed, pause, servers) in [(1, 0.02, 2.0), (2, 0.01, 2.0), (3, 0.03, 4.0)] {
        let left = PERIOD - pause;
        let requests = requests(seed, 0.5 * servers / 0.01, 0.01, 6000);
        let working = |at: f64| (at / PERIOD).floor() * left + (at % PERIOD - pause).max(0.0);
        let came: Vec<(f64, f64)> = requests.iter().map(|(at, work)| (working(*at), *work)).collect();
        let stays = Host { servers, quota: f64::INFINITY }.stays(&came);
        let back = |(stay, request): (&(f64, f64), &(f64, f64))| {
            (request.0, (stay.1 / left).floor() * PERIOD + pause + stay.1 % left)
        };
        let stays: Vec<(f64, f64)> = stays.iter().zip(&requests).map(back).collect();
        let (.., findings) = told(&spans(&stays, 1, |_| true));
        assert!(!has(&findings, "M080"), "seed {seed}: {findings:?}");
    }
}

/// Where nothing stands still, and where work comes in steps of 100 ms by itself, there is no quota.
#[test]
fn what_never_stands_still_has_no_quota() {
    for seed in 1..=4 {
        let free = Host { servers: 2.0, quota: f64::INFINITY };
        let mut requests = requests(seed, 100.0, 0.01, 5000);
        let mut stays = free.stays(&requests);
        assert!(!told(&spans(&stays, 1, |_| true)).2.iter().any(|found| found.code.0 == "M080"));
        // Answers that wait for the next tick of a timer, as where a buffer is written then.
        for stay in &mut stays {
            stay.1 = (stay.1 / PERIOD).ceil() * PERIOD;
        }
        assert!(!told(&spans(&stays, 1, |_| true)).2.iter().any(|found| found.code.0 == "M080"));
        for (number, request) in requests.iter_mut().enumerate() {
            if number % 3 == 0 {
                request.0 = (request.0 / PERIOD).ceil() * PERIOD;
            }
        }
        requests.sort_by(|one, other| one.0.total_cmp(&other.0));
        assert!(!told(&spans(&free.stays(&requests), 1, |_| true)).2.iter().any(|found| found.code.0 == "M080"));
    }
}

/// A limit of one core and a half is two servers in the model, and its headroom is that of the limit.
#[test]
fn a_part_of_a_core_counts_for_headroom() {
    let folder = Folder::new();
    for (limit, load, servers) in [("1.5", 0.5, 2.0), ("0.5", 0.4, 1.0)] {
        let cores: f64 = limit.parse().expect("a number");
        let requests = requests(1, cores * load / 0.01, 0.01, 3000);
        let mut text = String::new();
        let resource = [("container.id", "c1"), ("container.cpu.limit", limit)];
        for (number, stay) in (Host { servers, quota: f64::INFINITY }).stays(&requests).into_iter().enumerate() {
            let id = (number as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            deployment::span(&mut text, id, "web", &resource, stay);
        }
        let file = folder.file("t.jsonl", &text);
        let (code, out, words) = run(&["solve", &file]);
        assert_eq!(code, 0, "{words}");
        let factor = 1.0 / load;
        let line = format!("good up to {factor:.1}");
        let line = line.strip_suffix(".0").unwrap_or(&line);
        assert!(out.contains(line), "{line}: {out}");
    }
}

/// Branches that arrive at one processor together wait for each other, which solver and simulation tell alike. Where they do not, the answer is that of the simulation, and says so.
#[test]
fn an_answer_that_a_simulation_contradicts_is_told() {
    let folder = Folder::new();
    let mut random = Random::new(5);
    let (work, mut now) = (5e-3, 1.0);
    let batch = |_| {
        now += exponential(&mut random, work / 0.55);
        [now; 4].map(|at| (at, exponential(&mut random, work)))
    };
    let calls: Vec<(f64, f64)> = (0..1500).flat_map(batch).collect();
    let stays = Host { servers: 4.0, quota: f64::INFINITY }.stays(&calls);
    let mut text = String::new();
    for (number, stays) in stays.chunks(4).enumerate() {
        let (start, end) = (stays[0].0, stays.iter().map(|stay| stay.1).fold(0.0, f64::max));
        let web = Span { service: "web", kind: 2, id: 1, parent: 0, name: "GET", at: (start - 1e-3, end + 1e-3) };
        let mut all = vec![web];
        for (stay, id) in stays.iter().zip([2, 4, 6, 8]) {
            all.push(Span { service: "web", kind: 3, id, parent: 1, name: "ask", at: *stay });
            all.push(Span { service: "back", kind: 2, id: id + 1, parent: id, name: "answer", at: *stay });
        }
        operation(&mut text, number, &all);
    }
    let file = folder.file("t.jsonl", &text);
    let rate = "scenario.\"web GET\".rate=x1.3";
    let (_, _, words) = run(&["whatif", &file, "--set", rate]);
    assert!(!words.contains("in a simulation of the same model"), "{words}");
    let study = ["whatif", "traces/case-study.angio", "--config", "examples/case-study.toml"];
    let asked =
        [&study[..], &["--set", "scenario.set-up.population=60", "--show", "response", "--format", "json"]].concat();
    let response = |text: &str| {
        let swept: serde_json::Value = serde_json::from_str(text).expect("it is JSON");
        swept["points"][0]["figures"][0].as_f64().expect("a response")
    };
    let (_, text, words) = run(&asked);
    assert!(words.contains("in a simulation of the same model") && words.contains("those of simulations"), "{words}");
    // A question that is simulated has nothing to be compared with, and neither has one whose solver is right.
    let (_, simulated, words) = run(&[&asked[..], &["--show", "p95"]].concat());
    assert!(!words.contains("in a simulation of the same model"), "{words}");
    assert!((response(&text) / response(&simulated) - 1.0).abs() < 0.05, "{text} {simulated}");
    let (_, _, words) = run(&["whatif", "traces/shop.otlp.jsonl", "--set", "defaults.multiplicity=2"]);
    assert!(!words.contains("in a simulation of the same model"), "{words}");
}
