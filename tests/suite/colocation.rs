//! Services on one machine that no trace names, against stations that are known.

use std::collections::BTreeMap;
use std::fs;

use dyelog::lqn::Multiplicity;
use dyelog::model::{Configuration, complete};
use dyelog::study::calibration::{CalibrationLoad, calibrate};
use dyelog::study::validation::{Measured, validate};

use crate::deployment::{notes, processors, span};
use crate::generator::Random;
use crate::law::reduced;
use crate::servers::{DEMAND, completed, demand, exponential, line, station};
use crate::submodel::run;

/// The name of a service, and the attributes of its resource.
type Service<'n> = (&'n str, &'n [(&'n str, &'n str)]);

/// Requests with these stays, each of one of these services by chance.
fn requests(text: &mut String, seed: u64, stays: &[(f64, f64)], services: &[Service<'_>]) {
    for (number, stay) in stays.iter().enumerate() {
        let (service, resource) = services[Random::new(number as u64).below(services.len())];
        let id = u128::from(seed) << 64 | (number as u128 + 1);
        let id = id.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        span(text, id, service, resource, *stay);
    }
}

/// Services on one machine of so many servers.
fn on_one(seed: u64, servers: u32, busy: f64, services: &[Service<'_>]) -> String {
    let mut text = String::new();
    requests(&mut text, seed, &station(seed, servers, busy, 4000 * services.len()), services);
    text
}

const UNNAMED: [Service<'static>; 3] = [("a", &[]), ("b", &[]), ("c", &[])];

#[test]
fn services_on_one_machine_share_it() {
    for (seed, servers, busy) in [(1, 1, 0.5), (2, 1, 0.8), (3, 2, 0.6), (4, 4, 0.7)] {
        for services in [&UNNAMED[..2], &UNNAMED] {
            let text = on_one(seed, servers, busy, services);
            let (model, _) = completed(&text, "");
            let expected = [("machine of a".to_owned(), Multiplicity::Finite(servers), 1)];
            assert_eq!(processors(&model), expected, "{servers} servers, {busy} busy, {} services", services.len());
            let mean = demand(&model) / services.len() as f64;
            assert!((mean / DEMAND - 1.0).abs() < 0.05, "{mean}");
            let told = notes(&text, "");
            let names = if services.len() == 2 { "`a`, `b`" } else { "`a`, `b`, `c`" };
            assert!(told.iter().any(|own| own.starts_with(&format!("{names} run on `machine of a`: "))), "{told:?}");
        }
    }
}

/// Requests that come to two services at the same times, each of which serves them one after the other.
fn at_the_same_times(seed: u64) -> String {
    let (mut random, mut now, mut free) = (Random::new(seed), 0.0_f64, [0.0_f64; 2]);
    let mut stays = [Vec::new(), Vec::new()];
    for _ in 0..6000 {
        now += exponential(&mut random, DEMAND / 0.6);
        for (free, stays) in free.iter_mut().zip(&mut stays) {
            *free = free.max(now) + exponential(&mut random, DEMAND);
            stays.push((now, *free));
        }
    }
    let mut text = String::new();
    for (number, stays) in stays.iter().enumerate() {
        requests(&mut text, seed + number as u64, stays, &UNNAMED[number..=number]);
    }
    text
}

#[test]
fn services_with_machines_of_their_own_do_not() {
    let of = |stays: [Vec<(f64, f64)>; 2]| {
        let mut text = String::new();
        for (number, stays) in stays.iter().enumerate() {
            requests(&mut text, number as u64 + 1, stays, &UNNAMED[number..=number]);
        }
        text
    };
    let mut all = Vec::new();
    for seed in 1..4 {
        let shared = |servers, busy, seed| station(seed, servers, busy, 6000);
        all.push(of([shared(1, 0.7, seed), shared(1, 0.7, seed + 10)]));
        all.push(of([shared(2, 0.6, seed), shared(4, 0.8, seed + 10)]));
        all.push(of([line(seed, 0.7, 6000), shared(1, 0.6, seed + 10)]));
        all.push(of([line(seed, 0.5, 6000), line(seed + 10, 0.8, 6000)]));
        all.push(at_the_same_times(seed));
    }
    for (number, text) in all.iter().enumerate() {
        let (model, _) = completed(text, "");
        let names: Vec<String> = processors(&model).into_iter().map(|own| own.0).collect();
        assert_eq!(names, ["a", "b"], "{number}");
    }
}

#[test]
fn services_of_two_machines_are_told_apart() {
    let mut text = on_one(1, 1, 0.6, &[("a", &[]), ("c", &[])]);
    // For as long a time.
    requests(&mut text, 2, &station(2, 2, 0.6, 16_000), &[("b", &[]), ("d", &[])]);
    let (model, _) = completed(&text, "");
    let mut found = processors(&model);
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found.dedup();
    let of = |name: &str, servers| (name.to_owned(), Multiplicity::Finite(servers), 1);
    assert_eq!(found, [of("machine of a", 1), of("machine of b", 2)]);
}

/// Containers have names for hosts that are no machines. Machines that are named, several instances, and what the configuration says go before times.
#[test]
fn names_and_settings_go_before_times() {
    let docker: [Service<'_>; 2] = [("a", &[("host.name", "3f4e1c9a2b7d")]), ("b", &[("host.name", "b1946ac92492")])];
    let pods: [Service<'_>; 2] =
        [("a", &[("host.name", "a-dc5557677-9t7xw")]), ("b", &[("host.name", "b-6bfdb55ffc-qbc8v")])];
    for services in [docker, pods] {
        let (model, _) = completed(&on_one(1, 1, 0.6, &services), "");
        assert_eq!(processors(&model).len(), 1, "{services:?}");
    }
    let named: [Service<'_>; 2] = [("a", &[("host.name", "db1")]), ("b", &[("host.name", "db2")])];
    let several: [Service<'_>; 3] =
        [("a", &[("service.instance.id", "1")]), ("a", &[("service.instance.id", "2")]), ("b", &[])];
    let cores: [Service<'_>; 2] = [("a", &[("container.id", "x"), ("k8s.container.cpu.limit", "1")]), ("b", &[])];
    // Virtual machines are called after what they are for.
    let after: [Service<'_>; 2] = [("a", &[("host.name", "a-01")]), ("b", &[("host.name", "b.example.com")])];
    for services in [&named[..], &several, &cores, &after] {
        let (model, _) = completed(&on_one(1, 1, 0.6, services), "");
        assert_eq!(processors(&model).len(), 2, "{services:?}");
    }
    let text = on_one(1, 1, 0.6, &UNNAMED[..2]);
    for settings in [
        "[task.a]\nprocessor = \"a\"\n",
        "[processor.b]\nmultiplicity = 2\n",
        "[defaults]\nmultiplicity = \"infinite\"\n",
        "[task.a]\nreplicas = 2\n",
        // Another one was put beside it.
        "[task.c]\nprocessor = \"b\"\n",
    ] {
        let (model, _) = completed(&text, settings);
        assert_eq!(processors(&model).iter().filter(|own| own.0 == "a" || own.0 == "b").count(), 2, "{settings}");
    }
}

/// Of what was sampled nobody knows whom stays met.
#[test]
fn samples_do_not_tell() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    fs::write(folder.path().join("t.jsonl"), on_one(1, 1, 0.6, &UNNAMED[..2])).expect("the folder is writable");
    for (sampling, found) in [("1", true), ("0.5", false)] {
        let (code, _, words) = run(folder.path(), &["solve", "t.jsonl", "--sampling", sampling]);
        assert_eq!((code == 0, words.contains("machine of a")), (true, found), "{words}");
    }
}

/// What `config init` writes of a shared machine makes the same model.
#[test]
fn a_written_configuration_says_so_too() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    fs::write(folder.path().join("t.jsonl"), on_one(3, 2, 0.6, &UNNAMED)).expect("the folder is writable");
    let (code, _, words) = run(folder.path(), &["config", "init", "t.jsonl", "-o", "own.toml"]);
    assert_eq!(code, 0, "{words}");
    let written = fs::read_to_string(folder.path().join("own.toml")).expect("it was written");
    assert!(written.contains("processor = \"machine of a\""), "{written}");
    let model = |more: &[&str]| {
        let (code, text, words) = run(folder.path(), &[&["solve", "t.jsonl", "--format", "json"], more].concat());
        assert_eq!(code, 0, "{words}");
        let solved: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        (solved["processors"][0]["name"].clone(), solved["scenarios"][0]["response"].as_f64().expect("a number"))
    };
    let (found, given) = (model(&[]), model(&["--config", "own.toml"]));
    assert_eq!(found.0, given.0);
    assert!((found.1 / given.1 - 1.0).abs() < 0.02, "{found:?} and {given:?}");
}

/// A load that tells too little takes over what another one tells.
#[test]
fn several_loads_share_what_one_of_them_tells() {
    let load = |seed: u64, busy: f64| {
        let submodel = reduced("t.jsonl", on_one(seed, 4, busy, &UNNAMED).as_bytes());
        CalibrationLoad { name: format!("{busy}"), submodel, busy: BTreeMap::new() }
    };
    let (low, high) = (load(1, 0.15), load(2, 0.7));
    let found = |own: &CalibrationLoad| {
        processors(&complete(&own.submodel, &Configuration::default()).expect("there are requests").0).len()
    };
    assert_eq!([&low, &high].map(found), [3, 1]);
    let found = calibrate(&[low, high], &Configuration::default(), 2).expect("there are requests");
    assert_eq!(processors(&found.model), [("machine of a".to_owned(), Multiplicity::Finite(4), 1)]);
    assert_eq!(found.findings.iter().map(|finding| finding.code.0).collect::<Vec<_>>(), ["M050"]);
    let third = load(3, 0.85);
    let measured = Measured { name: third.name.clone(), submodel: &third.submodel, busy: BTreeMap::new() };
    let held = validate(&found.model, &measured, &Configuration::default(), 2).expect("it can be solved");
    for own in &held.scenarios {
        let (predicted, measured) =
            (own.response.predicted.expect("it is steady"), own.response.measured.expect("spans have times"));
        assert!((predicted / measured - 1.0).abs() < 0.15, "{predicted} for {measured}");
    }
}

/// What is asked of a changed system goes before what was found of the traced one.
#[test]
fn questions_put_services_elsewhere() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    fs::write(folder.path().join("t.jsonl"), on_one(4, 1, 0.7, &UNNAMED)).expect("the folder is writable");
    let ask = |more: &[&str]| {
        let first = ["whatif", "t.jsonl", "--show", "processor.machine of a.utilization", "--format", "json"];
        let (code, text, words) = run(folder.path(), &[&first, more].concat());
        assert_eq!(code, 0, "{words}");
        let swept: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        swept["points"][0]["figures"][0].as_f64().expect("a number")
    };
    let (before, after) = (ask(&["--set", "task.a.threads=infinite"]), ask(&["--set", "task.c.processor=c"]));
    // A third of the work is gone.
    assert!((after / before * 1.5 - 1.0).abs() < 0.05, "{before} and {after}");
}

/// A quiet load shows no machine that services share: it is held against the processor that the model has.
#[test]
fn a_quiet_load_is_held_against_the_same_machine() {
    let of = |seed: u64, busy: f64| reduced("t.jsonl", on_one(seed, 4, busy, &UNNAMED).as_bytes());
    let (model, ..) = complete(&of(2, 0.7), &Configuration::default()).expect("there are requests");
    let quiet = of(1, 0.15);
    let measured = Measured { name: "quiet".to_owned(), submodel: &quiet, busy: BTreeMap::new() };
    let held = validate(&model, &measured, &Configuration::default(), 2).expect("it can be solved");
    let own = held.processors.iter().find(|own| *own.name == *"machine of a").expect("the model has it");
    let (predicted, seen) = (own.busy.predicted.expect("it is steady"), own.busy.measured.expect("traces show it"));
    assert!((seen / predicted - 1.0).abs() < 0.1, "{seen} for {predicted}");
}

/// Metrics of containers tell how much each service works, and not where; a column that is called after a service is of a processor of that name.
#[test]
fn services_whose_containers_are_measured_share_a_machine() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("the folder is writable");
    write("t.jsonl", &on_one(1, 1, 0.6, &UNNAMED[..2]));
    let (mut containers, mut columns) = (String::new(), "time,a (%)\n".to_owned());
    for second in 0..600 {
        for (service, busy) in [("a", 0.4), ("b", 0.2)] {
            let total = 5.0 + busy * f64::from(second);
            let at = 1_700_000_000 + second;
            containers += &format!("container_cpu_usage_seconds_total{{container=\"{service}\"}} {total} {at}000\n");
        }
        columns += &format!("{},40\n", 1_700_000_000 + second);
    }
    write("containers.prom", &containers);
    write("columns.csv", &columns);
    let solved = |file: &str| {
        let (code, text, words) = run(folder.path(), &["solve", "t.jsonl", "--utilisation", file, "--format", "json"]);
        assert_eq!(code, 0, "{words}");
        let solved: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        let processors = solved["processors"].as_array().expect("an array").clone();
        let of = |own: &serde_json::Value| {
            (own["name"].as_str().unwrap_or_default().to_owned(), own["utilization"].as_f64().unwrap_or_default())
        };
        processors.iter().map(of).collect::<Vec<_>>()
    };
    let shared = solved("containers.prom");
    assert_eq!(shared.len(), 1);
    assert!(shared[0].0 == "machine of a" && (shared[0].1 / 0.6 - 1.0).abs() < 0.05, "{shared:?}");
    let apart: Vec<String> = solved("columns.csv").into_iter().map(|own| own.0).collect();
    assert_eq!(apart, ["a", "b"]);
}
