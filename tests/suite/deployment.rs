//! Replicas, shared machines and cores, as resources of spans tell them, against stations that are known.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use dyelog::lqn::{Dispatching, Language, Model, Multiplicity, saved};
use dyelog::model::parameter::{self, Change, Subject};
use dyelog::model::{Configuration, complete};
use dyelog::solve::{LayeredOptions, layered};
use dyelog::study::ScenarioResult;
use dyelog::study::calibration::{CalibrationLoad, calibrate};
use dyelog::study::outlook::{Sooner, WhySooner, outlook};
use serde_json::Value;

use crate::cli::Folder;
use crate::law::reduced;
use crate::servers::{DEMAND, at_work, completed, miss, station};
use crate::whatif::run;

/// A request as a server span of its own trace, of a service with these attributes of its resource.
pub fn span(text: &mut String, id: u128, service: &str, resource: &[(&str, &str)], (start, end): (f64, f64)) {
    let at = |seconds: f64| 1_700_000_000_000_000_000 + (seconds * 1e9) as u64;
    let mut attributes = format!("{{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"{service}\"}}}}");
    for (key, value) in resource {
        let _ = write!(attributes, ",{{\"key\":\"{key}\",\"value\":{{\"stringValue\":\"{value}\"}}}}");
    }
    let _ = writeln!(
        text,
        "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":[{attributes}]}},\"scopeSpans\":[{{\"spans\":[{{\"traceId\":\"{id:032x}\",\
         \"spanId\":\"0000000000000001\",\"name\":\"serve\",\"kind\":2,\"startTimeUnixNano\":\"{}\",\"endTimeUnixNano\":\"{}\"}}]}}]}}]}}",
        at(start),
        at(end)
    );
}

/// Requests of one service, spread over so many instances of one server each.
fn replicated(instances: u64, busy: f64, key: &str) -> String {
    let mut text = String::new();
    for number in 0..instances {
        let own = format!("web-{number}");
        for (place, stay) in station(40 + number, 1, busy, 4000).into_iter().enumerate() {
            let id = u128::from(number) << 64 | (place as u128 + 1);
            span(&mut text, id.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835), "web", &[(key, &own)], stay);
        }
    }
    text
}

/// Requests of two services at one station.
fn sharing(resource: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (place, stay) in station(3, 1, 0.7, 20_000).into_iter().enumerate() {
        let service = if place % 3 == 0 { "cart" } else { "web" };
        let id = (place as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        span(&mut text, id, service, resource, stay);
    }
    text
}

/// Requests of two services, each with an instance on each of these machines, of one server each.
fn on_machines(machines: &[&str]) -> String {
    let mut text = String::new();
    for (number, machine) in machines.iter().enumerate() {
        for (place, stay) in station(50 + number as u64, 1, 0.5, 6000).into_iter().enumerate() {
            let service = if place % 3 == 0 { "cart" } else { "web" };
            let id =
                ((number as u128) << 64 | (place as u128 + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            let own = format!("{service}-{number}");
            span(&mut text, id, service, &[("service.instance.id", &own), ("host.name", machine)], stay);
        }
    }
    text
}

pub fn processors(model: &Model) -> Vec<(String, Multiplicity, u32)> {
    let services = model.tasks.iter().filter(|task| !task.scheduling.is_source());
    let of = |processor: usize| {
        let own = &model.processors[processor];
        (own.name.to_string(), own.multiplicity, own.replicas)
    };
    let mut all: Vec<_> = services.map(|task| of(task.processor.index())).collect();
    all.dedup();
    all
}

pub fn notes(text: &str, configuration: &str) -> Vec<String> {
    let (configuration, _) = Configuration::parse(&"t.toml".into(), configuration).expect("it is sound");
    let (_, findings, _) = complete(&reduced("t.jsonl", text.as_bytes()), &configuration).expect("there are requests");
    findings.into_iter().filter(|found| found.code.0 == "M050").flat_map(|found| found.notes).collect()
}

#[test]
fn instances_that_are_there_together_are_replicas() {
    for key in ["service.instance.id", "k8s.pod.name", "host.name"] {
        let text = replicated(3, 0.7, key);
        let (model, origins) = completed(&text, "");
        assert_eq!(processors(&model), [("web".to_owned(), Multiplicity::Finite(1), 3)], "{key}");
        assert_eq!(model.tasks.iter().filter(|task| task.replicas == 3).count(), 1);
        let off = miss(&model, &origins);
        assert!(off < 0.1, "{key}: off by {off}");
        assert_eq!(notes(&text, ""), ["`web`: 3 instances"]);
    }
}

#[test]
fn an_instance_whose_machine_some_spans_leave_out_is_one() {
    let mut text = String::new();
    for (place, stay) in station(40, 1, 0.7, 4000).into_iter().enumerate() {
        let resource = [("service.instance.id", "web-0"), ("host.name", "node-1")];
        let told = if place % 5 == 0 { 1 } else { 2 };
        let id = (place as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        span(&mut text, id, "web", &resource[..told], stay);
    }
    assert_eq!(processors(&completed(&text, "").0), [("web".to_owned(), Multiplicity::Finite(1), 1)]);
}

#[test]
fn an_instance_that_follows_another_is_none_more() {
    let mut text = String::new();
    let stays = station(9, 1, 0.6, 6000);
    for (place, stay) in stays.iter().enumerate() {
        let own = format!("start-{}", place / 2000);
        span(&mut text, place as u128 + 1, "web", &[("service.instance.id", &own)], *stay);
    }
    let (model, _) = completed(&text, "");
    assert_eq!(processors(&model), [("web".to_owned(), Multiplicity::Finite(1), 1)]);
}

/// One request in 200 comes by another identifier, such as that of a probe; one in 20 is an instance.
#[test]
fn an_identifier_that_hardly_ever_works_is_no_replica() {
    for (every, copies) in [(200, 1), (20, 2)] {
        let mut text = String::new();
        for (place, stay) in station(9, 1, 0.5, 6000).into_iter().enumerate() {
            let own = if place % every == 7 { "web-1" } else { "web-0" };
            let id = (place as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            span(&mut text, id, "web", &[("service.instance.id", own)], stay);
        }
        let (model, _) = completed(&text, "");
        assert_eq!(processors(&model)[0].2, copies, "one in {every}");
    }
}

/// Each copy has a queue of its own also where several loads are fitted together.
#[test]
fn copies_are_calibrated_as_copies() {
    let load = |busy: f64| {
        let submodel = reduced("t.jsonl", replicated(3, busy, "service.instance.id").as_bytes());
        CalibrationLoad { name: format!("{busy}"), submodel, busy: BTreeMap::new() }
    };
    let found = calibrate(&[load(0.4), load(0.75)], &Configuration::default(), 2).expect("there is a model");
    assert_eq!(processors(&found.model), [("web".to_owned(), Multiplicity::Finite(1), 3)]);
    let own = &found.entries[0];
    assert!((own.demand / DEMAND - 1.0).abs() < 0.08, "{} for {DEMAND}", own.demand);
    assert!(own.interval.low <= DEMAND && DEMAND <= own.interval.high, "{:?}", own.interval);
}

#[test]
fn identifiers_of_requests_are_no_replicas() {
    let mut text = String::new();
    for (place, stay) in station(9, 1, 0.6, 3000).into_iter().enumerate() {
        span(&mut text, place as u128 + 1, "web", &[("service.instance.id", &format!("request-{place}"))], stay);
    }
    let (model, _) = completed(&text, "");
    assert_eq!(processors(&model), [("web".to_owned(), Multiplicity::Finite(1), 1)]);
    assert_eq!(notes(&text, ""), ["`web`: 1024 identifiers"]);
}

#[test]
fn services_on_one_machine_share_its_servers() {
    for key in ["host.name", "k8s.node.name", "host.id"] {
        let text = sharing(&[(key, "node-1")]);
        let (model, origins) = completed(&text, "");
        assert_eq!(processors(&model), [("node-1".to_owned(), Multiplicity::Finite(1), 1)], "{key}");
        // One server that is shared equally takes D / (1 − ρ), however long queues happened to be.
        let stays = station(3, 1, 0.7, 20_000);
        let busy = at_work(&stays);
        let expected = busy / stays.len() as f64 / (1.0 - busy / stays[stays.len() - 1].0);
        let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
        for own in ScenarioResult::all(&model, &results, &origins) {
            let response = own.response.expect("it has a response");
            assert!((response / expected - 1.0).abs() < 0.06, "{key}: {response} for {expected}");
        }
    }
}

/// Too few requests tell nothing of servers: sharing alone delays nobody.
#[test]
fn a_machine_of_which_little_was_seen_has_room_for_its_services() {
    let text: String =
        sharing(&[("host.name", "node-1")]).lines().take(6).fold(String::new(), |all, line| all + line + "\n");
    let (model, ..) =
        complete(&reduced("t.jsonl", text.as_bytes()), &Configuration::default()).expect("there are requests");
    assert_eq!(processors(&model), [("node-1".to_owned(), Multiplicity::Finite(2), 1)]);
}

/// Neither is the name of a machine: times alone tell that they share one.
#[test]
fn addresses_and_containers_name_no_machine() {
    for resource in [&[("ip", "127.0.0.1")][..], &[("host.name", "a"), ("container.id", "b")]] {
        let (model, _) = completed(&sharing(resource), "");
        assert_eq!(processors(&model), [("machine of cart".to_owned(), Multiplicity::Finite(1), 1)], "{resource:?}");
    }
}

#[test]
fn cores_that_are_told_are_servers() {
    let whole = sharing(&[("host.name", "node-1"), ("process.cpu.count", "4")]);
    let text = whole.lines().take(6).fold(String::new(), |all, line| all + line + "\n");
    let (model, _) = completed(&text, "");
    assert_eq!(processors(&model), [("node-1".to_owned(), Multiplicity::Finite(4), 1)]);
    assert_eq!(notes(&text, ""), ["`cart`, `web` run on `node-1`", "`node-1`: 4 cores"]);
    // Requests wait as for one server: no more is used.
    let (model, _) = completed(&whole, "");
    assert_eq!(processors(&model), [("node-1".to_owned(), Multiplicity::Finite(1), 1)]);
}

#[test]
fn a_configuration_goes_before_what_traces_tell() {
    let text = replicated(2, 0.5, "service.instance.id");
    let (model, _) = completed(&text, "[task.web]\nreplicas = 1\n");
    assert_eq!(processors(&model)[0].2, 1);
    let apart = sharing(&[("host.name", "node-1")]);
    let (model, _) = completed(&apart, "[task.web]\nprocessor = \"mine\"\n");
    let names: Vec<String> = processors(&model).into_iter().map(|own| own.0).collect();
    assert_eq!(names, ["cart", "mine"]);
    let (model, _) = completed(&apart, "[processor.node-1]\nmultiplicity = 8\n");
    assert_eq!(processors(&model), [("node-1".to_owned(), Multiplicity::Finite(8), 1)]);
}

#[test]
fn what_is_learnt_is_part_of_the_sub_model() {
    let text = replicated(3, 0.6, "service.instance.id");
    let lines: Vec<&str> = text.lines().collect();
    let part = |lines: &[&str]| reduced("t.jsonl", (lines.join("\n") + "\n").as_bytes());
    let whole = saved::write(&part(&lines), "name");
    let (left, right) = lines.split_at(lines.len() / 3 + 17);
    let mut sum = saved::parse(&"a".into(), &saved::write(&part(right), "name")).expect("it was written so").0;
    sum.merge(&part(left));
    assert_eq!(saved::write(&sum, "name"), whole);
    assert!(whole.contains("\"deployment\"") && whole.contains("\"sites\""));
}

/// How much processor time a process of a service used on `node-1`: so many seconds every ten seconds.
fn processor_time(service: &str, growth: u32) -> String {
    let attribute = |key: &str, value: &str| format!("{{\"key\":\"{key}\",\"value\":{{\"stringValue\":\"{value}\"}}}}");
    let resource = [attribute("service.name", service), attribute("host.name", "node-1")].join(",");
    let points: Vec<String> = (0..30)
        .map(|number| {
            let time = 1_700_000_000 + number * 10;
            format!("{{\"timeUnixNano\":\"{time}000000000\",\"asDouble\":{}}}", growth * number)
        })
        .collect();
    format!(
        "{{\"resourceMetrics\":[{{\"resource\":{{\"attributes\":[{resource}]}},\"scopeMetrics\":[{{\"metrics\":[{{\"name\":\"process.cpu.time\",\"unit\":\"s\",\
         \"sum\":{{\"isMonotonic\":true,\"aggregationTemporality\":2,\"dataPoints\":[{}]}}}}]}}]}}]}}\n",
        points.join(",")
    )
}

/// What one process used of a machine that two services share is not how busy the machine was: it is the demand of that one.
#[test]
fn processor_time_of_a_process_is_the_demand_of_its_service() {
    let folder = Folder::new();
    let trace = folder.file("t.jsonl", &sharing(&[("host.name", "node-1")]));
    let solve = |metrics: Option<&str>| {
        let measured = metrics.map(|file| ["--utilisation", file]).into_iter().flatten();
        let arguments: Vec<&str> = ["solve", &trace, "--format", "json"].into_iter().chain(measured).collect();
        let (code, text, words) = run(&arguments);
        assert_eq!(code, 0, "{words}");
        let document: Value = serde_json::from_str(&text).expect("it is JSON");
        let of = |list: &str, name: &str, key: &str| {
            let all = document[list].as_array().expect("there are some");
            let own = all.iter().find(|own| own["name"] == name).expect("it is there");
            own[key].as_f64().expect("it is a number")
        };
        let tasks = ["cart", "web"].map(|task| of("tasks", task, "processor_utilization"));
        (of("processors", "node-1", "utilization"), tasks, words)
    };
    let (_, [all_cart, all_web], _) = solve(None);
    // Every second tick of the clock is 0.1 of a server.
    let (busy, [cart, web], words) = solve(Some(&folder.file("one.jsonl", &processor_time("cart", 1))));
    assert!(
        words.contains("tells of some of the services on processor `node-1` only") && words.contains("`web`"),
        "{words}"
    );
    assert!(words.contains("demands of one service follow from measured utilisation"), "{words}");
    for (found, truth) in [(cart, 0.1), (web, all_web), (busy, 0.1 + all_web)] {
        assert!((found / truth - 1.0).abs() < 0.01, "{found} for {truth}");
    }
    // More than its spans can have been is not theirs, and neither is what processes of no traces use.
    let (_, [cart, web], words) =
        solve(Some(&folder.file("more.jsonl", &(processor_time("cart", 9) + &processor_time("cron", 3)))));
    for (found, truth) in [(cart, all_cart), (web, all_web)] {
        assert!((found / truth - 1.0).abs() < 0.01, "{found} for {truth}");
    }
    assert!(words.contains("are of load that was not traced, and no demand of what was"), "{words}");
    // Each service has what was measured of it, though their invocations stay as long.
    let (busy, [cart, web], _) =
        solve(Some(&folder.file("both.jsonl", &(processor_time("cart", 4) + &processor_time("web", 2)))));
    for (found, truth) in [(busy, 0.6), (cart, 0.4), (web, 0.2)] {
        assert!((found / truth - 1.0).abs() < 0.05, "{found} for {truth}");
    }
}

/// Processes' parts of all processors of a machine add up; those of one service on several machines do not.
#[test]
fn parts_of_a_machine_that_processes_use_add_up() {
    let folder = Folder::new();
    let part = |service: &str, machine: &str, value: f64| {
        let attribute =
            |key: &str, value: &str| format!("{{\"key\":\"{key}\",\"value\":{{\"stringValue\":\"{value}\"}}}}");
        let resource = [attribute("service.name", service), attribute("host.name", machine)].join(",");
        let points: Vec<String> = (0..30)
            .map(|number| {
                format!("{{\"timeUnixNano\":\"{}000000000\",\"asDouble\":{value}}}", 1_700_000_000 + number * 10)
            })
            .collect();
        format!(
            "{{\"resourceMetrics\":[{{\"resource\":{{\"attributes\":[{resource}]}},\"scopeMetrics\":[{{\"metrics\":[{{\"name\":\"process.cpu.utilization\",\"unit\":\"1\",\
             \"gauge\":{{\"dataPoints\":[{}]}}}}]}}]}}]}}\n",
            points.join(",")
        )
    };
    let busy = |trace: &str, metrics: &str, processor: &str| {
        let metrics = folder.file("m.jsonl", metrics);
        let (code, text, words) = run(&["solve", trace, "--format", "json", "--utilisation", &metrics]);
        assert_eq!(code, 0, "{words}");
        let document: Value = serde_json::from_str(&text).expect("it is JSON");
        let all = document["processors"].as_array().expect("there are some");
        all.iter().find(|own| own["name"] == processor).expect("it is there")["utilization"].as_f64().expect("a number")
    };
    let near = |found: f64, truth: f64| assert!((found / truth - 1.0).abs() < 0.02, "{found} for {truth}");
    let trace = folder.file("shared.jsonl", &sharing(&[("host.name", "node-1")]));
    near(busy(&trace, &(part("cart", "node-1", 0.4) + &part("web", "node-1", 0.2)), "node-1"), 0.6);
    let trace = folder.file("replicated.jsonl", &replicated(2, 0.5, "host.name"));
    near(busy(&trace, &(part("web", "web-0", 0.6) + &part("web", "web-1", 0.4)), "web"), 0.5);
}

/// A calibration shares out how busy a whole processor was. It says what it leaves out where only some of the services there were measured.
#[test]
fn calibration_tells_which_processor_time_it_leaves_out() {
    let folder = Folder::new();
    let trace = folder.file("t.jsonl", &sharing(&[("host.name", "node-1")]));
    let calibrate = |metrics: &[String]| {
        let files = metrics.iter().flat_map(|file| ["--utilisation", file]);
        let (code, model, words) = run(&["calibrate", &trace].into_iter().chain(files).collect::<Vec<_>>());
        assert_eq!(code, 0, "{words}");
        (model, words)
    };
    let [cart, web] = [("cart", 4), ("web", 2)]
        .map(|(service, growth)| folder.file(&format!("{service}.jsonl"), &processor_time(service, growth)));
    let (alone, words) = calibrate(&[]);
    assert!(!words.contains("is left out"), "{words}");
    let (model, words) = calibrate(std::slice::from_ref(&cart));
    let warning = "warning[M062]: what was measured of `cart` alone on processor `node-1` is left out";
    assert!(words.contains(warning) && words.contains("calibration knows how busy whole processors were"), "{words}");
    assert_eq!(model, alone);
    // The two together are how busy the processor was.
    let (model, words) = calibrate(&[cart, web]);
    assert!(!words.contains("is left out"), "{words}");
    assert_ne!(model, alone);
}

/// Requests that come at a rate to instances of single servers, first come first served, each to that instance, on that machine: by its number, a draw, and how many requests are at an instance.
fn dispatched(
    rate: f64,
    count: u64,
    whom: impl Fn(u64, u64, &dyn Fn(u64) -> usize) -> u64,
    machine: impl Fn(u64) -> String,
) -> String {
    let (mut text, mut state, mut now) = (String::new(), 7_u64, 0.0);
    let mut draw = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    };
    let mut ends = std::collections::BTreeMap::<u64, Vec<f64>>::new();
    for number in 0..count {
        now -= draw().ln() / rate;
        for own in ends.values_mut() {
            own.retain(|end| *end > now);
        }
        let own = whom(number, (draw() * 1e9) as u64, &|own| ends.get(&own).map_or(0, Vec::len));
        let last = ends.entry(own).or_default();
        let end = last.last().copied().unwrap_or(now) - draw().ln() * DEMAND;
        last.push(end);
        let (instance, host) = (format!("web-{own}"), machine(own));
        let resource = [("service.instance.id", &*instance), ("host.name", &*host)];
        let id = (u128::from(number) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        span(&mut text, id, "web", &resource, (now, end));
    }
    text
}

#[test]
fn dispatching_is_told_by_where_requests_go() {
    let rate = 3.0 * 0.7 / DEMAND;
    let node = |own| format!("node-{own}");
    let of_two = |_, chance: u64, there: &dyn Fn(u64) -> usize| {
        let (one, other) = (chance % 3, (chance + 1 + chance / 3 % 2) % 3);
        if there(other) < there(one) { other } else { one }
    };
    let least = |_, chance: u64, there: &dyn Fn(u64) -> usize| {
        (0..3).map(|step| (chance + step) % 3).min_by_key(|own| there(*own)).unwrap_or(0)
    };
    for (dispatching, text) in [
        (Dispatching::RoundRobin, dispatched(rate, 6000, |number, _, _| number % 3, node)),
        (Dispatching::FanOut, dispatched(rate, 6000, |_, chance, _| chance % 3, node)),
        (Dispatching::ShortestOfTwo, dispatched(rate, 6000, of_two, node)),
        (Dispatching::ShortestQueue, dispatched(rate, 6000, least, node)),
    ] {
        let (model, origins) = completed(&text, "");
        assert_eq!(processors(&model), [("web".to_owned(), Multiplicity::Finite(1), 3)]);
        let task = model.tasks.iter().find(|task| &*task.name == "web").expect("it is there");
        assert_eq!(task.dispatching, dispatching);
        let off = miss(&model, &origins);
        assert!(off < 0.1, "{dispatching:?}: off by {off}");
        // A configuration goes before.
        let (given, _) = completed(&text, "[task.web]\ndispatching = \"fan-out\"\n");
        assert!(given.tasks.iter().all(|task| task.dispatching == Dispatching::FanOut));
    }
}

/// Three of four instances are on one machine, of which their threads share the cores.
#[test]
fn machines_with_unequal_work_are_named() {
    for even in [true, false] {
        let mut text = String::new();
        for (machine, part) in [if even { 2 } else { 1 }, if even { 2 } else { 3 }].into_iter().enumerate() {
            let stays = station(30 + machine as u64, 2, 0.25 * part as f64, 2000 * part);
            for (place, stay) in stays.into_iter().enumerate() {
                let number = (machine as u128) << 64 | (place as u128 + 1);
                let (own, host) = (format!("web-{machine}-{}", place % part), format!("node-{machine}"));
                let resource = [("service.instance.id", &*own), ("host.name", &*host)];
                span(&mut text, number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835), "web", &resource, stay);
            }
        }
        let (configuration, _) = Configuration::parse(&"t.toml".into(), "").expect("it is sound");
        let (model, findings, _) =
            complete(&reduced("t.jsonl", text.as_bytes()), &configuration).expect("there are requests");
        assert_eq!(processors(&model)[0].2, 2, "instances on one machine are one copy");
        let told: Vec<_> = findings.into_iter().filter(|found| found.code.0 == "M074").collect();
        assert_eq!(told.is_empty(), even, "{told:?}");
        if let [own] = &told[..] {
            assert!(
                ["1.4", "1.5"].iter().any(|factor| own.notes[0].contains(&format!("`node-1` has {factor}"))),
                "{own:?}"
            );
        }
    }
}

/// Of two instances that name no machine one has twice as many requests: it saturates first, and the answer says when.
#[test]
fn instances_with_unequal_work_are_named() {
    let mut text = String::new();
    for (number, busy, count) in [(0_u64, 0.6, 8000), (1, 0.3, 4000)] {
        let own = format!("web-{number}");
        for (place, stay) in station(40 + number, 1, busy, count).into_iter().enumerate() {
            let id = (u128::from(number) << 64 | (place as u128 + 1))
                .wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            span(&mut text, id, "web", &[("service.instance.id", &own)], stay);
        }
    }
    let (model, findings, origins) =
        complete(&reduced("t.jsonl", text.as_bytes()), &Configuration::default()).expect("there are requests");
    let told: Vec<_> = findings.into_iter().filter(|found| found.code.0 == "M074").collect();
    assert!(told.len() == 1 && told[0].notes[0].contains("`web-0` has 1.3"), "{told:?}");
    let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
    let first = outlook(&model, &results, Some(&origins), 1);
    let [Sooner { factor, why: WhySooner::UnevenCopies, .. }] = first.sooner[..] else { panic!("{:?}", first.sooner) };
    assert!((factor * 0.6 - 1.0).abs() < 0.1, "{factor}");
    let said = dyelog::report::outlook::text(&model, &first, dyelog::report::Look::PLAIN).replace("\n  ", " ");
    assert!(
        said.contains(
            "but the busiest copy of web has more work than the model lets it have (M074): it saturates at 1."
        ),
        "{said}"
    );
}

/// Rows of a table, a row every five seconds of five minutes, with these values.
fn rows(values: &str) -> String {
    (0..60).fold(String::new(), |mut rows, number| {
        let _ = writeln!(rows, "{},{values}", 1_700_000_000 + 5 * number);
        rows
    })
}

/// A machine that is busier than the processes of its services has other programs: demands leave them out, and the answer says when it saturates with them.
#[test]
fn programs_without_traces_leave_less_of_a_machine() {
    let folder = Folder::new();
    let mut text = String::new();
    for (place, stay) in station(9, 1, 0.5, 6000).into_iter().enumerate() {
        span(&mut text, place as u128 + 1, "web", &[("host.name", "node-1")], stay);
    }
    let trace = folder.file("t.jsonl", &text);
    let process = folder.file("process.jsonl", &processor_time("web", 3));
    let machine = folder.file("machine.csv", &format!("time,node-1 (cores)\n{}", rows("0.5")));
    let solve = |metrics: &[&str]| {
        let files = metrics.iter().flat_map(|file| ["--utilisation", file]);
        let (code, text, words) =
            run(&["solve", &trace, "--format", "json"].into_iter().chain(files).collect::<Vec<_>>());
        assert_eq!(code, 0, "{words}");
        serde_json::from_str::<Value>(&text).expect("it is JSON")
    };
    let near = |found: &Value, truth: f64| {
        let found = found.as_f64().expect("a number");
        assert!((found / truth - 1.0).abs() < 0.02, "{found} for {truth}");
    };
    let found = solve(&[&process, &machine]);
    let (_, _, words) = run(&["solve", &trace, "--utilisation", &process, "--utilisation", &machine]);
    assert!(
        words.contains("warning[M078]: a processor was measured to be busier than traced operations make it")
            && words.contains("`web`: 0.2 servers"),
        "{words}"
    );
    near(&found["processors"][0]["utilization"], 0.3);
    let sooner = &found["outlook"]["sooner"][0];
    assert_eq!(sooner["why"], "others");
    near(&sooner["busy"], 0.2);
    near(&sooner["factor"], 0.8 / 0.3);
    assert_eq!(solve(&[&process])["outlook"]["sooner"], Value::Null);
    let found = solve(&[&machine]);
    near(&found["processors"][0]["utilization"], 0.5);
    assert_eq!(found["outlook"]["sooner"], Value::Null);
}

/// What was measured of a machine is of the processor that the machine is, or is a part of, by whatever name metrics and traces have for it.
#[test]
fn machines_go_by_the_names_that_traces_have_for_them() {
    let folder = Folder::new();
    let table = |name: &str, column: &str| folder.file(name, &format!("time,{column}\n{}", rows("0.3")));
    let busy = |trace: &str, tables: &[String]| {
        let files = tables.iter().flat_map(|file| ["--utilisation", file]);
        let (code, text, words) =
            run(&["solve", trace, "--format", "json"].into_iter().chain(files).collect::<Vec<_>>());
        assert_eq!(code, 0, "{words}");
        let document: Value = serde_json::from_str(&text).expect("it is JSON");
        let found = document["processors"].as_array().expect("there are some").iter().map(|own| {
            (own["name"].as_str().expect("a name").to_owned(), own["utilization"].as_f64().expect("a number"))
        });
        (found.collect::<BTreeMap<String, f64>>(), words)
    };
    let near = |found: f64, truth: f64| assert!((found / truth - 1.0).abs() < 0.02, "{found} for {truth}");
    // A service that has a machine for itself has a processor of its own name.
    let mut text = String::new();
    for (place, stay) in station(9, 1, 0.5, 6000).into_iter().enumerate() {
        span(&mut text, place as u128 + 1, "web", &[("host.name", "node-1")], stay);
    }
    let trace = folder.file("one.jsonl", &text);
    for column in ["node-1 (cores)", "NODE-1.example.com (cores)"] {
        let (found, _) = busy(&trace, &[table("one.csv", column)]);
        near(found["web"], 0.3);
    }
    // Three machines, each with one instance: each of them by files or by columns, or all of them. Utilisation is that of each.
    let trace = folder.file("three.jsonl", &replicated(3, 0.5, "host.name"));
    let each: Vec<String> = (0..3).map(|own| table(&format!("{own}.csv"), &format!("web-{own} (cores)"))).collect();
    let (found, words) = busy(&trace, &each);
    near(found["web"], 0.3);
    assert!(!words.contains("M062"), "{words}");
    let columns = format!("time,web-0 (cores),web-1 (cores),web-2 (cores)\n{}", rows("0.3,0.2,0.4"));
    let (found, _) = busy(&trace, &[folder.file("columns.csv", &columns)]);
    near(found["web"], 0.3);
    let (found, _) = busy(&trace, &[table("all.csv", "web (cores)")]);
    near(found["web"], 0.1);
    let (found, _) = busy(&trace, &[folder.file("both.csv", &columns.replace("web-2", "web"))]);
    near(found["web"], 0.4 / 3.0);
    // Two services on two machines of other names: one of the machines stands for both.
    let trace = folder.file("shared.jsonl", &on_machines(&["db1", "db2"]));
    let (found, words) = busy(&trace, &[table("db1.csv", "db1 (cores)"), table("db2.csv", "db2:9100 (cores)")]);
    near(found["db1 +1"], 0.3);
    assert!(!words.contains("M062"), "{words}");
    let (found, words) = busy(&trace, &[table("db1.csv", "db1 (cores)")]);
    near(found["db1 +1"], 0.3);
    assert!(words.contains("is of 1 of the 2 machines of processor `db1 +1`"), "{words}");
    assert!(words.contains("the others are taken to be as busy"), "{words}");
    // What processes use that no trace shows is not what the machine's service used.
    let (code, _, words) =
        run(&["solve", &trace, "--utilisation", &folder.file("cron.jsonl", &processor_time("cron", 3))]);
    assert!(code != 0 && words.contains("no resource is a processor of the model"), "{words}");
}

/// Two recordings of three servers, between which each was started again: as one recording of them.
#[test]
fn instances_of_several_recordings_are_at_the_same_copies() {
    let servers = |run: usize, text: &mut String, busy: f64, later: f64| {
        for number in 0..3_u64 {
            let own = format!("web-{run}-{number}");
            for (place, (start, end)) in station(40 + number, 1, busy, 4000).into_iter().enumerate() {
                let id = (run as u128) << 96 | u128::from(number) << 64 | (place as u128 + 1);
                let id = id.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
                span(text, id, "web", &[("service.instance.id", &own)], (start + later, end + later));
            }
        }
    };
    let mut text = String::new();
    servers(0, &mut text, 0.7, 0.0);
    servers(1, &mut text, 0.7, 7200.0);
    let (model, origins) = completed(&text, "");
    assert_eq!(processors(&model), [("web".to_owned(), Multiplicity::Finite(1), 3)]);
    let off = miss(&model, &origins);
    assert!(off < 0.1, "off by {off}");
}

/// Whatever a question gives the value that it has already, the model stays as it is.
#[test]
fn parameters_at_their_present_value_change_nothing() {
    let systems = [
        replicated(3, 0.5, "service.instance.id"),
        on_machines(&["node-1", "node-2"]),
        sharing(&[("host.name", "node-1")]),
    ];
    for text in systems {
        let subject =
            Subject::of_traces(reduced("t.jsonl", text.as_bytes()), &"t.toml".into(), "", false).expect("it is sound");
        let before = Language::Lqn.write(&subject.base().model);
        let mut tried = 0;
        for (path, kind) in subject.paths() {
            let Some(number) = subject.number(&path, kind) else { continue };
            let value = if number.is_finite() { parameter::Value::Number(number) } else { parameter::Value::Infinite };
            let asked = subject.ask(&[Change { path: path.clone(), value }]).expect("it takes what it has");
            assert_eq!(Language::Lqn.write(&asked.model), before, "{path}");
            tried += 1;
        }
        assert!(tried > 5, "{tried}");
    }
}

/// Another number of copies has as many servers each, whichever of task and processor is given it.
#[test]
fn copies_keep_their_servers_whatever_their_number() {
    let text = replicated(3, 0.3, "service.instance.id");
    let subject =
        Subject::of_traces(reduced("t.jsonl", text.as_bytes()), &"t.toml".into(), "", false).expect("it is sound");
    for change in ["task.web.replicas=2", "processor.web.replicas=2"] {
        let asked = subject.ask(&[subject.change(change).expect("there is one")]).expect("it can be asked");
        assert_eq!(processors(&asked.model), [("web".to_owned(), Multiplicity::Finite(1), 2)], "{change}");
        assert!(asked.model.tasks.iter().any(|task| task.replicas == 2), "{change}");
        let results = layered(&asked.model, &LayeredOptions::default()).expect("it can be solved");
        let busy = results.processors[0].utilization;
        assert!((busy - 0.45).abs() < 0.03, "{change}: {busy}");
    }
}

/// Spans that also wait for what was not traced are longer than their work. Where utilisation was measured, the servers are found beside it.
#[test]
fn waits_within_spans_are_no_servers_where_utilisation_was_measured() {
    let folder = Folder::new();
    for (seed, servers, busy) in [(31, 2_u32, 0.5), (32, 1, 0.45), (33, 4, 0.6)] {
        let mut text = String::new();
        for (place, (start, end)) in station(seed, servers, busy, 12_000).into_iter().enumerate() {
            let id = (place as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            span(&mut text, id, "web", &[], (start, end + DEMAND));
        }
        let trace = folder.file("t.jsonl", &text);
        let used = busy * f64::from(servers);
        let metrics = folder.file("u.csv", &("time,web (cores)\n".to_owned() + &rows(&used.to_string())));
        let (code, text, words) = run(&["solve", &trace, "--format", "json", "--utilisation", &metrics]);
        assert_eq!(code, 0, "{words}");
        let document: Value = serde_json::from_str(&text).expect("it is JSON");
        let factor = document["outlook"]["saturates_first"]["factor"].as_f64().expect("it is a number");
        assert!((factor * busy - 1.0).abs() < 0.03, "{servers} servers, {busy} busy: {factor}");
        let scenario = &document["scenarios"][0];
        let [predicted, traced] = ["response", "traced_response"].map(|key| scenario[key].as_f64().expect("a number"));
        assert!((predicted / traced - 1.0).abs() < 0.05, "{predicted} for {traced}");
    }
}

/// A service on one of the machines that others share makes that machine busier than their processor: the answer says when it saturates.
#[test]
fn a_service_beside_others_on_one_of_their_machines_is_named() {
    let mut text = on_machines(&["node-1", "node-2"]);
    for (place, stay) in station(70, 1, 0.3, 3600).into_iter().enumerate() {
        let id = (1_u128 << 100 | (place as u128 + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        span(&mut text, id, "store", &[("service.instance.id", "store-0"), ("host.name", "node-2")], stay);
    }
    let (model, findings, origins) =
        complete(&reduced("t.jsonl", text.as_bytes()), &Configuration::default()).expect("there are requests");
    let told: Vec<_> = findings.into_iter().filter(|found| found.code.0 == "M074").collect();
    assert!(told.len() == 1 && told[0].notes[0].contains("`store` on `node-2`, too"), "{told:?}");
    let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
    let first = outlook(&model, &results, Some(&origins), 1);
    let [Sooner { factor, why: WhySooner::UnevenCopies, .. }] = first.sooner[..] else { panic!("{:?}", first.sooner) };
    // Own times tell: a second of store's is 0.43 of those there, beside one of the others'.
    assert!((factor * 0.5 * 1.43 - 1.0).abs() < 0.1, "{factor}");
}

/// Requests of three services, each with instances on two of three machines of one server each. The first machine has such a part of the work of each of the others.
fn on_some_machines(first: f64) -> String {
    let mut text = String::new();
    for (number, services) in [["a", "c"], ["a", "b"], ["b", "c"]].into_iter().enumerate() {
        let part = if number == 0 { first } else { 1.0 };
        let stays = station(60 + number as u64, 1, 0.6 * part, (6000.0 * part) as usize);
        for (place, stay) in stays.into_iter().enumerate() {
            let service = services[place % 2];
            let (instance, machine) = (format!("{service}-{number}"), format!("node-{number}"));
            let id =
                ((number as u128) << 64 | (place as u128 + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            span(&mut text, id, service, &[("service.instance.id", &instance), ("host.name", &machine)], stay);
        }
    }
    text
}

/// Pods on the nodes of a cluster: where these have as much work as each other, services share all of them.
#[test]
fn services_on_some_machines_of_a_cluster_share_it() {
    let text = on_some_machines(1.0);
    let (model, origins) = completed(&text, "");
    assert_eq!(processors(&model), [("node-0 +2".to_owned(), Multiplicity::Finite(1), 3)]);
    let off = miss(&model, &origins);
    assert!(off < 0.1, "off by {off}");
    assert!(notes(&text, "").iter().any(|note| note == "`a`, `b`, `c` run on `node-0`, `node-1`, `node-2`"));
    // One that has much less makes the others more than the mean.
    assert_eq!(processors(&completed(&on_some_machines(0.3), "").0).len(), 3);
    // Given copies are kept.
    let (model, _) = completed(&text, "[task.a]\nreplicas = 2\n");
    assert_eq!(processors(&model)[0].0, "a");
}

/// Metrics of OTLP, of a counter that grows by so much in ten seconds, with these attributes of its resource.
fn counted(metric: &str, resource: &[(&str, &str)], growth: f64) -> String {
    let attribute =
        |(key, value): &(&str, &str)| format!("{{\"key\":\"{key}\",\"value\":{{\"stringValue\":\"{value}\"}}}}");
    let resource: Vec<String> = resource.iter().map(attribute).collect();
    let points: Vec<String> = (0..30)
        .map(|number| {
            let (time, value) = (1_700_000_000 + number * 10, growth * f64::from(number));
            format!("{{\"timeUnixNano\":\"{time}000000000\",\"asDouble\":{value}}}")
        })
        .collect();
    format!(
        "{{\"resourceMetrics\":[{{\"resource\":{{\"attributes\":[{}]}},\"scopeMetrics\":[{{\"metrics\":[{{\"name\":\"{metric}\",\"unit\":\"s\",\
         \"sum\":{{\"isMonotonic\":true,\"aggregationTemporality\":2,\"dataPoints\":[{}]}}}}]}}]}}]}}\n",
        resource.join(","),
        points.join(",")
    )
}

/// Where services share several machines, metrics of their pods are theirs; and machines that have other services, too, are as busy as those that have not.
#[test]
fn metrics_of_pods_and_of_some_machines_count_where_machines_are_shared() {
    let folder = Folder::new();
    let busy = |text: &str, metrics: &str| {
        let (trace, metrics) = (folder.file("t.jsonl", text), folder.file("m.jsonl", metrics));
        let (code, text, words) = run(&["solve", &trace, "--format", "json", "--utilisation", &metrics]);
        assert_eq!(code, 0, "{words}");
        let document: Value = serde_json::from_str(&text).expect("it is JSON");
        let all = document["processors"].as_array().expect("there are some");
        let own = all.iter().find(|own| own["name"] == "node-1 +1").expect("it is there");
        own["utilization"].as_f64().expect("a number")
    };
    let text = on_machines(&["node-1", "node-2"]);
    let pods: String =
        [("cart-0", "node-1", 1.0), ("cart-1", "node-2", 1.0), ("web-0", "node-1", 2.5), ("web-1", "node-2", 2.5)]
            .iter()
            .map(|(pod, node, growth)| {
                counted("k8s.pod.cpu.time", &[("k8s.pod.name", pod), ("k8s.node.name", node)], *growth)
            })
            .collect();
    let found = busy(&text, &pods);
    assert!((found / 0.35 - 1.0).abs() < 0.03, "{found}");
    let mut text = text;
    for (place, stay) in station(70, 1, 0.2, 3600).into_iter().enumerate() {
        let id = (1_u128 << 100 | (place as u128 + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        span(&mut text, id, "store", &[("service.instance.id", "store-0"), ("host.name", "node-2")], stay);
    }
    let nodes: String = [("node-1", 4.5), ("node-2", 6.5)]
        .iter()
        .map(|(node, growth)| counted("system.cpu.time", &[("host.name", node)], *growth))
        .collect();
    let found = busy(&text, &nodes);
    assert!((found / 0.45 - 1.0).abs() < 0.05, "{found}");
}

/// Arrivals at regular intervals queue for less than random ones, which the model has: the warning says so. Those of many at a time are bursts, however few stretches of time have any.
#[test]
fn regular_arrivals_and_batches_are_told() {
    let folder = Folder::new();
    let words = |stays: Vec<(&str, (f64, f64))>| {
        let mut text = String::new();
        for (place, (service, stay)) in stays.into_iter().enumerate() {
            let id = (place as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            span(&mut text, id, service, &[], stay);
        }
        run(&["solve", &folder.file("t.jsonl", &text)]).2
    };
    // The work of a station that is hardly ever shared, in turn.
    let work: Vec<f64> = station(8, 64, 0.01, 12_000).into_iter().map(|(start, end)| end - start).collect();
    let mut free = 0.0_f64;
    let in_turn = |(place, work): (usize, &f64)| {
        let start = place as f64 * DEMAND / 0.8;
        free = free.max(start) + work;
        ("web", (start, free))
    };
    let regular = words(work.iter().enumerate().map(in_turn).collect());
    assert!(regular.contains("M030") && regular.contains("operations begin at regular intervals"), "{regular}");
    let batch = |place: u32| {
        let start = f64::from(place / 40) * 10.0;
        ("cron", (start, start + f64::from(place % 40 + 1) * DEMAND))
    };
    let others = station(9, 1, 0.2, 1800).into_iter().map(|stay| ("web", stay));
    let batches = words((0..400).map(batch).chain(others).collect());
    assert!(batches.contains("M051") && batches.contains("operations come in bursts"), "{batches}");
}

/// Zipkin has no resources: what exporters write of them as tags tells instances all the same.
#[test]
fn instances_of_zipkin_are_told_by_tags() {
    let mut spans = Vec::new();
    for number in 0..3_u64 {
        for (place, (start, end)) in station(40 + number, 1, 0.5, 2000).into_iter().enumerate() {
            let id = (number << 32) + place as u64 + 1;
            let micros = |seconds: f64| 1_700_000_000_000_000 + (seconds * 1e6) as u64;
            spans.push(format!(
                "{{\"traceId\":\"{:032x}\",\"id\":\"{id:016x}\",\"name\":\"serve\",\"kind\":\"SERVER\",\"timestamp\":{},\"duration\":{},\
                 \"localEndpoint\":{{\"serviceName\":\"web\"}},\"tags\":{{\"service.instance.id\":\"web-{number}\"}}}}",
                u128::from(id).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835),
                micros(start),
                (micros(end) - micros(start)).max(1)
            ));
        }
    }
    let text = format!("[{}]", spans.join(",\n"));
    let (model, ..) =
        complete(&reduced("t.json", text.as_bytes()), &Configuration::default()).expect("there are requests");
    assert_eq!(processors(&model), [("web".to_owned(), Multiplicity::Finite(1), 3)]);
}

/// Who names a database asks it, whatever kind its span is of.
#[test]
fn a_span_that_names_a_database_is_a_call() {
    let folder = Folder::new();
    let mut text = String::new();
    for number in 0..300_u64 {
        let at = |milliseconds: u64| 1_700_000_000_000_000_000 + number * 50_000_000 + milliseconds * 1_000_000;
        let trace = u128::from(number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let database = "{\"key\":\"db.system\",\"value\":{\"stringValue\":\"mysql\"}}";
        let _ = writeln!(
            text,
            "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":[{{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"web\"}}}}]}},\"scopeSpans\":[{{\"spans\":[\
             {{\"traceId\":\"{trace:032x}\",\"spanId\":\"0000000000000001\",\"name\":\"serve\",\"kind\":1,\"startTimeUnixNano\":\"{}\",\"endTimeUnixNano\":\"{}\"}},\
             {{\"traceId\":\"{trace:032x}\",\"spanId\":\"0000000000000002\",\"parentSpanId\":\"0000000000000001\",\"name\":\"SELECT\",\"kind\":1,\
             \"startTimeUnixNano\":\"{}\",\"endTimeUnixNano\":\"{}\",\"attributes\":[{database}]}}]}}]}}]}}",
            at(0),
            at(20),
            at(5),
            at(17)
        );
    }
    let (code, text, words) = run(&["model", &folder.file("t.jsonl", &text), "--quiet"]);
    assert_eq!(code, 0, "{words}");
    assert!(text.contains("t mysql"), "{text}");
}

/// Classes of one Kieker record run on the machine that it names.
#[test]
fn classes_of_kieker_share_their_host() {
    let folder = Folder::new();
    folder.file("kieker.map", "$1=kieker.common.record.controlflow.OperationExecutionRecord\n");
    let mut text = String::new();
    for (number, (start, end)) in station(5, 1, 0.5, 1000).into_iter().enumerate() {
        let at = |part: f64| 1_700_000_000_000_000_000 + ((start + (end - start) * part) * 1e9) as u64;
        let _ =
            writeln!(text, "$1;{0};public a.Store.find();<no-session-id>;{number};{1};{0};app-1;1;1", at(0.8), at(0.3));
        let _ =
            writeln!(text, "$1;{0};public a.Web.get();<no-session-id>;{number};{1};{0};app-1;0;0", at(1.0), at(0.0));
    }
    folder.file("kieker-1.dat", &text);
    let log = folder.path("").display().to_string();
    let (code, text, words) = run(&["model", &log, "--quiet"]);
    assert_eq!(code, 0, "{words}");
    assert!(text.contains("P 1\n  p \"app-1\""), "{text}");
}
