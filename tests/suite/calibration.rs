//! Calibration, validation and measured utilisation, against stations whose servers and demands are known.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt::Write as _;
use std::fs;

use dyelog::lqn::{Language, Multiplicity, read_any};
use dyelog::model::utilisation::Busy;
use dyelog::model::{Configuration, Load, complete, utilisation};
use dyelog::solve::{LayeredOptions, layered};
use dyelog::study::at_load::{ScenarioLoad, responses, solved_at};
use dyelog::study::calibration::{Calibrated, CalibrationLoad, calibrate};
use dyelog::study::validation::{Measured, Verdict, validate};

use crate::deployment;
use crate::generator::Random;
use crate::law::reduced;
use crate::servers::{DEMAND, at_work, miss, spans, station};
use crate::submodel::run;
use crate::waits::exponential;

/// A load of a station of which so much of each server is busy.
fn load(seed: u64, servers: u32, busy: f64) -> CalibrationLoad {
    let text = spans(&station(seed, servers, busy, 3000), 1000, |_| true);
    CalibrationLoad { name: format!("{busy}"), submodel: reduced("t.jsonl", text.as_bytes()), busy: BTreeMap::new() }
}

fn calibrated(loads: &[CalibrationLoad]) -> Calibrated {
    calibrate(loads, &Configuration::default(), 2).expect("a station has a model")
}

/// Systems drawn at random, each calibrated on two loads: their servers are found, their demands lie in the intervals, and so does the response under a
/// third load.
#[test]
fn known_systems_lie_in_their_intervals() {
    let (mut all, mut servers_right, mut covered, mut predicted) = (0, 0, 0, 0);
    for (seed, servers, low, high, beyond) in [
        (1, 1, 0.2, 0.5, 0.7),
        (2, 1, 0.4, 0.7, 0.3),
        (3, 2, 0.3, 0.6, 0.8),
        (4, 2, 0.5, 0.8, 0.4),
        (5, 4, 0.4, 0.7, 0.85),
        (6, 1, 0.3, 0.6, 0.8),
        (7, 3, 0.4, 0.6, 0.8),
        (8, 2, 0.4, 0.7, 0.85),
        (9, 4, 0.6, 0.8, 0.3),
        (10, 1, 0.5, 0.8, 0.2),
    ] {
        let found = calibrated(&[load(seed, servers, low), load(seed + 100, servers, high)]);
        all += 1;
        let host = found.model.processor_named("host").expect("it is there");
        servers_right += u32::from(found.model.processors[host.index()].multiplicity == Multiplicity::Finite(servers));
        let demand = &found.entries[0];
        covered += u32::from(demand.interval.low <= DEMAND && DEMAND <= demand.interval.high);
        let third = load(seed + 200, servers, beyond);
        let measured = Measured { name: third.name.clone(), submodel: &third.submodel, busy: BTreeMap::new() };
        let held = validate(&found.model, &measured, &Configuration::default(), 2).expect("it can be solved");
        predicted += u32::from(matches!(held.scenarios[0].response.verdict(0.1), Verdict::Near | Verdict::Inside));
    }
    assert!(servers_right * 10 >= all * 9, "servers: {servers_right} of {all}");
    assert!(covered * 10 >= all * 9, "demands: {covered} of {all}");
    assert!(predicted * 10 >= all * 9, "responses: {predicted} of {all}");
}

/// Begins and ends of visits to a server that is so busy: work of the mean [`DEMAND`], in the middle of which each waits for something else for so many times as long.
fn with_waits(seed: u64, busy: f64, waits: f64, count: usize) -> Vec<(f64, f64)> {
    let mut random = Random::new(seed);
    let mut at = 0.0;
    let begins: Vec<f64> = (0..count)
        .map(|_| {
            at += exponential(&mut random, DEMAND / busy);
            at
        })
        .collect();
    let nanoseconds = |seconds: f64| (seconds * 1e9) as u64;
    // Whether it comes for the second half of its work.
    let mut open: BinaryHeap<Reverse<(u64, usize, bool)>> =
        begins.iter().enumerate().map(|(number, begin)| Reverse((nanoseconds(*begin), number, false))).collect();
    let mut ends = vec![0.0; count];
    let mut free = 0.0_f64;
    while let Some(Reverse((time, number, is_second))) = open.pop() {
        free = free.max(time as f64 * 1e-9) + exponential(&mut random, DEMAND / 2.0);
        if is_second {
            ends[number] = free;
        } else {
            open.push(Reverse((nanoseconds(free + waits * DEMAND), number, true)));
        }
    }
    begins.into_iter().zip(ends).collect()
}

/// n(1 + Z/D) servers of demand D + Z respond to two loads as n servers of D do whose operations wait for Z: predictions range over both.
#[test]
fn waits_that_look_like_servers_lie_in_the_interval() {
    let of = |seed: u64, busy: f64, waits: f64| {
        let text = spans(&with_waits(seed, busy, waits, 6000), 1000, |_| true);
        CalibrationLoad {
            name: format!("{busy}"),
            submodel: reduced("t.jsonl", text.as_bytes()),
            busy: BTreeMap::new(),
        }
    };
    for (seed, waits) in [(1, 1.0), (2, 1.0), (3, 2.0), (4, 2.0)] {
        let found = calibrated(&[of(seed, 0.3, waits), of(seed + 100, 0.6, waits)]);
        let third = of(seed + 200, 0.78, waits);
        let measured = Measured { name: third.name.clone(), submodel: &third.submodel, busy: BTreeMap::new() };
        let held = validate(&found.model, &measured, &Configuration::default(), 2).expect("it can be solved");
        let response = &held.scenarios[0].response;
        assert!(matches!(response.verdict(0.1), Verdict::Near | Verdict::Inside), "{seed}: {response:?}");
    }
}

#[test]
fn a_calibrated_model_is_read_back_and_keeps_what_is_set() {
    let found = calibrated(&[load(1, 2, 0.4), load(2, 2, 0.7)]);
    let text = Language::Json.write(&found.model);
    let read = read_any("m.json", &text).expect("it was written by the program").model;
    assert_eq!(Language::Json.write(&read), text);
    let calibration = read.calibration.clone().expect("it was calibrated");
    assert!(calibration.variations.len() >= 10, "{}", calibration.variations.len());
    let mut changed = read.clone();
    let host = changed.processor_named("host").expect("it is there").index();
    changed.processors[host].multiplicity = Multiplicity::Finite(7);
    let others = calibration.models(&changed);
    assert!(others.iter().all(|other| other.processors[host].multiplicity == Multiplicity::Finite(7)));
    let Err(errors) = read_any("m.json", &text.replace("\"error\": ", "\"error\": -1")) else {
        panic!("it is below zero")
    };
    assert!(errors.to_string().contains("`error` is a number from 0"), "{errors}");
}

/// Loads at which the same work takes another time, though nothing queues.
/// Two services on one machine, which the configuration takes for two: requests wait for those of the other one, so that stays tell of more servers than responses to both loads.
#[test]
fn responses_to_several_loads_go_before_stays() {
    let of = |seed: u64, busy: f64, services: usize| {
        let mut text = String::new();
        for (number, stay) in station(seed, 2, busy, 9000).into_iter().enumerate() {
            let service = format!("s{}", Random::new(number as u64).below(services));
            deployment::span(&mut text, (number as u128 + 1) << 64, &service, &[], stay);
        }
        CalibrationLoad {
            name: format!("{busy}"),
            submodel: reduced("t.jsonl", text.as_bytes()),
            busy: BTreeMap::new(),
        }
    };
    for (services, is_divided) in [(1, false), (2, true)] {
        let apart = "[task.s0]\nprocessor = \"s0\"\n";
        let (apart, _) = Configuration::parse(&"t.toml".into(), apart).expect("it is sound");
        let loads = [of(1, 0.3, services), of(2, 0.7, services)];
        let found = calibrate(&loads, &apart, 2).expect("a station has a model");
        let taken = found.forms.iter().find(|form| form.is_taken).expect("one is");
        assert_eq!(taken.name.ends_with("divided by 2"), is_divided, "{:?}", found.forms);
        assert!(taken.error < 0.03, "{:?}", found.forms);
        let best = &found.forms[0];
        assert!(!is_divided || best.fits && best.error > 0.1, "{:?}", found.forms);
    }
}

/// Ten services on one machine, calibrated on two loads of a ladder, against the responses to the others that were measured.
#[test]
#[ignore = "needs the reference data, ../shared"]
fn a_ladder_of_loads_is_predicted_from_two() {
    let files = ["media-load25.json.gz", "media-load75.json.gz"];
    let folder = crate::support::shared("traces/jaeger/traceweaver");
    let model = tempfile::tempdir().expect("a scratch folder");
    let file = model.path().join("m.json").to_string_lossy().into_owned();
    let (code, _, words) = run(&folder, &["calibrate", files[0], files[1], "-o", &file]);
    assert_eq!(code, 0, "{words}");
    let rate = "entry./wrk2-api/review/compose.rate=47.4,100,125,148";
    let (code, text, words) = run(&folder, &["whatif", &file, "--vary", rate, "--format", "json"]);
    assert_eq!(code, 0, "{words}");
    let swept: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let points = swept["points"].as_array().expect("points");
    for (point, measured) in points.iter().zip([0.0125, 0.0129, 0.0146, 0.0169]) {
        let predicted = point["figures"][0].as_f64().unwrap_or_else(|| panic!("{point}"));
        let off = predicted / measured - 1.0;
        println!("{measured}: {:+.1} %", 100.0 * off);
        assert!(off.abs() < 0.1, "{measured}: {off}");
    }
}

#[test]
fn loads_that_contradict_each_other_are_told() {
    let slower = |seed: u64, factor: f64, busy: f64| {
        let stays: Vec<(f64, f64)> = station(seed, 8, busy, 2000)
            .into_iter()
            .map(|(start, end)| (start, start + (end - start) * factor))
            .collect();
        let submodel = reduced("t.jsonl", spans(&stays, 1000, |_| true).as_bytes());
        CalibrationLoad { name: format!("times {factor}"), submodel, busy: BTreeMap::new() }
    };
    let found = calibrated(&[slower(1, 1.0, 0.05), slower(2, 1.6, 0.1), slower(3, 1.7, 0.15)]);
    let codes: Vec<&str> = found.findings.iter().map(|finding| finding.code.0).collect();
    assert_eq!(codes, ["M071"]);
    assert!(found.findings[0].notes[0].contains("`host serve` grows most"), "{:?}", found.findings[0].notes);
}

/// When the spans of tests begin, seconds since 1970.
const EPOCH: u32 = 1_700_000_000;

/// The same utilisation in all forms: half a core.
fn forms() -> Vec<(&'static str, String)> {
    let times = || (0..60).map(|number| EPOCH + number);
    let (mut csv, mut rows, mut text) =
        ("time,host (%)\n".to_owned(), "time,resource,value\n".to_owned(), String::new());
    let (mut values, mut points) = (Vec::new(), Vec::new());
    for (number, time) in times().enumerate() {
        let _ = writeln!(csv, "{time},50");
        let _ = writeln!(rows, "{time},host,500");
        let counter = 7.0 + 0.5 * number as f64;
        let _ = writeln!(text, "container_cpu_usage_seconds_total{{container=\"host\",pod=\"x\"}} {counter} {time}000");
        let _ =
            writeln!(text, "container_cpu_usage_seconds_total{{container=\"\",pod=\"x\"}} {} {time}000", 2.0 * counter);
        values.push(format!("[{time},\"{counter}\"]"));
        points.push(format!("{{\"timeUnixNano\":\"{time}000000000\",\"asDouble\":0.5}}"));
    }
    let query = format!(
        "{{\"status\":\"success\",\"data\":{{\"resultType\":\"matrix\",\"result\":[{{\"metric\":{{\"__name__\":\"process_cpu_seconds_total\",\"job\":\"host\"}},\"values\":[{}]}}]}}}}",
        values.join(",")
    );
    let otlp = format!(
        "{{\"resourceMetrics\":[{{\"resource\":{{\"attributes\":[{{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"host\"}}}}]}},\"scopeMetrics\":[{{\"metrics\":[{{\"name\":\"container.cpu.usage\",\"unit\":\"{{cpu}}\",\"gauge\":{{\"dataPoints\":[{}]}}}}]}}]}}]}}",
        points.join(",")
    );
    vec![("u.csv", csv), ("rows.csv", rows), ("u.prom", text), ("query.json", query), ("otlp.json", otlp)]
}

/// Metrics tell cores in all forms, the least of which counts, and a configuration goes before them.
#[test]
fn metrics_tell_cores() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = folder.path();
    let write = |name: &str, text: &str| fs::write(at.join(name), text).expect("the folder is writable");
    // So few wait that more servers would fit as well.
    write("t.jsonl", &spans(&station(5, 2, 0.1, 3000), 1000, |_| true));
    write("busy.jsonl", &spans(&station(5, 2, 0.5, 3000), 1000, |_| true));
    write(
        "limit.prom",
        "kube_pod_container_resource_limits{container=\"host\",resource=\"cpu\",unit=\"core\"} 3\nkube_pod_container_resource_limits{container=\"host\",resource=\"memory\"} 5e8\n",
    );
    let labels = "container=\"host\",pod=\"host-1\"";
    write(
        "quota.prom",
        &format!("container_spec_cpu_quota{{{labels}}} 250000\ncontainer_spec_cpu_period{{{labels}}} 50000\n"),
    );
    write(
        "nodes.prom",
        "node_cpu_seconds_total{instance=\"host:9100\",cpu=\"0\",mode=\"idle\"} 5 1700000000000\nnode_cpu_seconds_total{instance=\"host:9100\",cpu=\"1\",mode=\"idle\"} 5 1700000000000\n",
    );
    write(
        "query.json",
        "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"metric\":{\"__name__\":\"machine_cpu_cores\",\"instance\":\"host\"},\"value\":[1700000000,\"6\"]}]}}",
    );
    write(
        "otlp.json",
        "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{\"stringValue\":\"host\"}}]},\"scopeMetrics\":[{\"metrics\":[{\"name\":\"jvm.cpu.count\",\"unit\":\"{cpu}\",\"sum\":{\"dataPoints\":[{\"timeUnixNano\":\"1700000000000000000\",\"asInt\":\"7\"}]}}]}]}]}",
    );
    write("one.toml", "[processor.host]\nmultiplicity = 1\n");
    let of = |trace: &str, more: &[&str]| {
        let mut arguments = vec!["model", trace, "--format", "json"];
        arguments.extend(more);
        let (code, text, words) = run(at, &arguments);
        assert_eq!(code, 0, "{words}");
        let model = read_any("m.json", &text).expect("it was written by the program").model;
        (model.processors[model.processor_named("host").expect("it is there").index()].multiplicity, words)
    };
    let found = |more: &[&str]| of("t.jsonl", more);
    for (file, cores) in [("limit.prom", 3), ("quota.prom", 5), ("nodes.prom", 2), ("query.json", 6), ("otlp.json", 7)]
    {
        let (servers, words) = found(&["--utilisation", file]);
        assert_eq!(servers, Multiplicity::Finite(cores), "{file}: {words}");
        assert!(words.contains(&format!("`host`: {cores} cores by")) && words.contains(file), "{words}");
    }
    let (servers, _) = found(&["--utilisation", "query.json", "--utilisation", "limit.prom"]);
    assert_eq!(servers, Multiplicity::Finite(3));
    let (servers, words) = found(&["--utilisation", "limit.prom", "--config", "one.toml"]);
    assert!(servers == Multiplicity::Finite(1) && !words.contains("cores by"), "{words}");
    // They are a bound: what makes requests wait may be something else.
    let (servers, words) = of("busy.jsonl", &["--utilisation", "query.json"]);
    assert!(servers == Multiplicity::Finite(2) && words.contains("6 cores are told"), "{words}");
    write("six.toml", "[processor.host]\nmultiplicity = 6\n");
    let (servers, _) = of("busy.jsonl", &["--config", "six.toml"]);
    assert_eq!(servers, Multiplicity::Finite(6));
}

#[test]
fn utilisation_is_read_in_all_forms_and_checked() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = folder.path();
    let write = |name: &str, text: &str| fs::write(at.join(name), text).expect("the folder is writable");
    write("t.jsonl", &spans(&station(5, 1, 0.5, 3000), 1000, |_| true));
    let mut models = Vec::new();
    for (name, text) in forms() {
        write(name, &text);
        let mut arguments = vec!["model", "t.jsonl", "--format", "json", "--utilisation", name];
        if name == "rows.csv" {
            arguments.extend(["--utilisation-unit", "millicores"]);
        }
        let (code, model, words) = run(at, &arguments);
        assert_eq!(code, 0, "{name}: {words}");
        assert!(words.contains("M064") && words.contains("0.5 servers busy"), "{name}: {words}");
        models.push(model);
    }
    assert!(models.iter().all(|model| *model == models[0]), "forms differ");
    for (text, code, words) in [
        ("time,hots (%)\n1700000001,50\n", "M062", "did you mean `host`?"),
        ("time,other (%)\n1700000001,50\n", "M062", "no resource is a processor"),
        ("time,host cpu\n1700000001,50\n", "M061", "the unit of"),
        ("time,host (ratio)\n1700000001,50\n", "M061", "goes up to 50"),
        ("time,host (%)\n1700000001,x\n", "M060", "`x` is no number"),
        ("time,host (%)\n1600000001,50\n", "M063", "was not measured while"),
        ("", "M060", "no column `time`"),
    ] {
        write("wrong.csv", text);
        let (exit, _, told) = run(at, &["solve", "t.jsonl", "--utilisation", "wrong.csv"]);
        assert!(exit == 2 && told.contains(code) && told.contains(words), "{text:?}: {exit} {told}");
    }
}

/// One thread on a machine of four cores: an eighth of all cores is half of a server. How many cores there are decides.
#[test]
fn units_that_cannot_be_told_apart_are_held_against_spans() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = folder.path();
    let write = |name: &str, text: &str| fs::write(at.join(name), text).expect("the folder is writable");
    write("t.jsonl", &spans(&station(5, 1, 0.5, 3000), 1000, |_| true));
    let of = |metric: &str, value: f64, more: &str| {
        let line =
            |second: u64| format!("{metric}{{service_name=\"host\"}} {value} {}\n", (1_700_000_000 + second) * 1000);
        write("m.prom", &((0..70).map(line).collect::<String>() + more));
        run(at, &["solve", "t.jsonl", "--format", "json", "--utilisation", "m.prom"])
    };
    let busy = |text: &str| {
        let document: serde_json::Value = serde_json::from_str(text).expect("it is JSON");
        document["processors"]
            .as_array()
            .expect("a list")
            .iter()
            .fold(0.0, |most: f64, own| own["utilization"].as_f64().map_or(most, |busy| most.max(busy)))
    };
    let near = |found: f64| assert!((found / 0.5 - 1.0).abs() < 0.06, "{found}");
    let (code, text, words) = of("process_cpu_utilization", 0.125, "");
    assert!(code == 0 && words.contains("warning[M061]") && words.contains("Both agree on 4 cores"), "{words}");
    near(busy(&text));
    let (code, text, words) =
        of("process_cpu_utilization", 0.125, "system_cpu_logical_count{service_name=\"host\"} 4\n");
    assert!(code == 0 && !words.contains("M061") && words.contains("0.5 servers busy"), "{words}");
    near(busy(&text));
    // By one name some send cores, and some percent of one.
    let (code, text, words) = of("container_cpu_utilization", 50.0, "");
    assert!(code == 0 && words.contains("note[M061]") && words.contains("taken for percent of one core"), "{words}");
    near(busy(&text));
    let (code, text, words) = of("container_cpu_utilization", 0.5, "");
    assert!(code == 0 && !words.contains("M061"), "{words}");
    near(busy(&text));
    // No unit makes that of it.
    let (code, _, words) = of("k8s_pod_cpu_utilization", 50.0, "");
    assert!(code == 2 && words.contains("error[M061]") && words.contains("50 cores were busy"), "{words}");
}

#[test]
fn a_model_is_calibrated_solved_and_validated() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = folder.path();
    for (name, seed, busy) in [("low", 1, 0.3), ("high", 2, 0.6), ("third", 3, 0.45)] {
        let text = spans(&station(seed, 2, busy, 3000), 1000, |_| true);
        fs::write(at.join(format!("{name}.jsonl")), text).expect("the folder is writable");
    }
    let (code, _, words) = run(at, &["calibrate", "low.jsonl", "high.jsonl", "-o", "m.json"]);
    assert_eq!(code, 0, "{words}");
    assert!(words.contains("the servers that fit best"), "{words}");
    let json = |arguments: &[&str]| -> (i32, serde_json::Value) {
        let (code, text, words) = run(at, arguments);
        (code, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {words}")))
    };
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    let (code, held) = json(&["validate", "m.json", "--against", "third.jsonl", "high.jsonl", "--format", "json"]);
    assert_eq!((code, held["scenarios"].as_array().map(Vec::len)), (0, Some(2)), "{held}");
    let third = &held["scenarios"][0];
    assert_eq!(third["against"], "third.jsonl");
    let (low, high) = (number(&third["predicted"]["low"]), number(&third["predicted"]["high"]));
    let predicted = number(&third["predicted"]["response"]);
    assert!(low <= predicted && predicted <= high && low < high, "{third}");
    let (code, solved) = json(&["solve", "m.json", "--format", "json"]);
    let load = &solved["outlook"]["loads"][0];
    assert!(code == 0 && number(&load["low"]) < number(&load["response"]), "{load}");
    let (code, swept) = json(&["whatif", "m.json", "--vary", "processor.host.multiplicity=2,3", "--format", "json"]);
    assert_eq!((code, swept["points"][0]["intervals"].is_array()), (0, true), "{swept}");
    let (code, picture, _) = run(at, &["validate", "m.json", "--against", "third.jsonl", "--format", "svg"]);
    assert!(code == 0 && picture.starts_with("<svg") && picture.contains("measured: "), "{picture}");
    // Another system is told from this one.
    let (code, _, words) = run(at, &["validate", "m.json", "--against", "third.jsonl", "--within", "0.0001%"]);
    assert!(code <= 1, "{words}");
    fs::write(at.join("slow.jsonl"), spans(&station(9, 1, 0.9, 3000), 1000, |_| true)).expect("the folder is writable");
    let (code, text, _) = run(at, &["validate", "m.json", "--against", "slow.jsonl"]);
    assert!(code == 1 && text.contains("OFF"), "{code}: {text}");
}

/// Customers of a model are to make the rate at which operations arrived in the traces.
#[test]
fn customers_make_the_rate_of_arrivals() {
    let text = include_str!("../../examples/tiers.lqn");
    let model = read_any("tiers.lqn", text).expect("it is bundled").model;
    let load = |rate: f64| {
        [ScenarioLoad { name: "users".into(), load: Load::Open { rate }, rate, first: vec![("browse".into(), 3.0)] }]
    };
    let (at, results) = solved_at(&model, &load(8.0)).expect("it can be solved");
    assert!(at.missing.is_empty(), "{:?}", at.missing);
    assert!((results.tasks[0].throughput / 8.0 - 1.0).abs() < 0.01, "{}", results.tasks[0].throughput);
    assert!(responses(&at, &results).contains_key("users"));
    let (at, _) = solved_at(&model, &load(1e6)).expect("it can be solved");
    assert!(at.missing[0].contains("too few to make the rate"), "{:?}", at.missing);
}

/// One user whose requests take a quarter longer than the processor works on them: nobody was there to queue for, so that the rest is a delay, and the load stays what it was.
#[test]
fn time_beyond_what_was_measured_of_a_processor_is_a_delay_where_nobody_was_there() {
    let mut random = Random::new(3);
    let mut now = 1.0;
    let stays: Vec<(f64, f64)> = (0..3000)
        .map(|_| {
            let (start, length) = (now + exponential(&mut random, 0.06), exponential(&mut random, 0.04));
            now = start + length;
            (start, now)
        })
        .collect();
    let present = at_work(&stays) / (now - 1.0);
    let measured = utilisation::Measured {
        processors: BTreeMap::from([("host".to_owned(), Busy::Cores(0.75 * present))]),
        ..utilisation::Measured::default()
    };
    let configuration = Configuration { measured, ..Configuration::default() };
    let sub = reduced("t.jsonl", spans(&stays, 1000, |_| true).as_bytes());
    let (model, _, origins) = complete(&sub, &configuration).expect("there are requests");
    assert!(matches!(origins.scenarios[0].load, Load::Closed { population: 1, .. }), "{:?}", origins.scenarios[0].load);
    assert!(miss(&model, &origins) < 0.01, "{}", miss(&model, &origins));
    let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
    let host = model.processor_named("host").expect("it is there");
    let busy = results.processors[host.index()].utilization;
    assert!((busy / (0.75 * present) - 1.0).abs() < 0.01, "{busy} for {}", 0.75 * present);
}
