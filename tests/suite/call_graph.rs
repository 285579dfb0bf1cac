//! `dyelog profile` and `dyelog impact`, from records to what they print.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use dyelog::callgraph;
use dyelog::lqn::Language;
use dyelog::pipeline::{self, Input, Options};
use dyelog::solve::{LayeredOptions, layered};
use dyelog::trace::{self, Operation, ReadOptions, Toeg, TraceNames};
use proptest::prelude::*;
use serde_json::Value;

pub const FIGURE_1: &str = "traces/calls/figure-1.jsonl";
const SHOP: &str = "traces/calls/shop-4.calls";

pub fn dyelog(arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::cargo_bin("dyelog").expect("the package has a binary");
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).output().expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it writes UTF-8");
    (output.status.code().expect("it exits"), text(output.stdout), text(output.stderr))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}

/// One operation after another that calls `Shop::buy`, which takes so many nanoseconds of processor time each.
fn run(path: &Path, function: &str, times: &[u64]) -> String {
    let mut records = String::from("{\"calls\":1}\n");
    for (operation, time) in times.iter().enumerate() {
        let events = [
            ("stub_start", "client", 10),
            ("skel_start", "server", 0),
            ("skel_end", "server", *time),
            ("stub_end", "client", 20),
        ];
        for (event, (probe, processor, cpu)) in events.into_iter().enumerate() {
            records.push_str(&format!(
                "{{\"chain\":\"c{operation}\",\"event\":{},\"probe\":\"{probe}\",\"interface\":\"Shop\",\"function\":\"{function}\",\
                 \"processor\":\"{processor}\",\"cpu\":{cpu}}}\n",
                event + 1
            ));
        }
    }
    fs::write(path, records).expect("the folder can be written");
    path.display().to_string()
}

#[test]
fn json_has_the_vectors_of_the_paper() {
    let (code, document, words) = dyelog(&["profile", FIGURE_1, "--format", "json"]);
    assert_eq!((code, words.as_str()), (0, ""));
    let document = json(&document);
    assert_eq!(document["groups"], serde_json::json!(["A", "B", "C", "D"]));
    assert_eq!(document["nodes"][0]["descendent"], serde_json::json!([3_200_000, 2_700_000, 7_000_000, 7_800_000]));
    assert_eq!(document["abnormal"], serde_json::json!([]));
}

/// What the probes of four processes left, read as one run: paths cross the processes, nothing is amiss, and the model has what the shop is.
#[test]
fn the_shop_in_four_processes_is_one_graph() {
    let (code, document, words) = dyelog(&["profile", SHOP, "--format", "json"]);
    assert_eq!((code, words.as_str()), (0, ""));
    let document = json(&document);
    assert_eq!(document["abnormal"], serde_json::json!([]));
    let nodes = document["nodes"].as_array().expect("nodes");
    let named = |kind: &str, interface: &str, function: &str| {
        let matches =
            |node: &&Value| node["kind"] == kind && node["interface"] == interface && node["function"] == function;
        nodes.iter().find(matches).unwrap_or_else(|| panic!("{interface}::{function}")).clone()
    };
    let count = |interface, function| named("function", interface, function)["invocations"].as_u64().expect("a count");
    let (pages, checkouts) = (count("gateway", "GET /product/{id}"), count("gateway", "POST /checkout/{id}"));
    assert_eq!(pages + checkouts, 12);
    assert_eq!(count("catalog", "GET /products/{id}"), pages + checkouts);
    assert_eq!(count("inventory", "GET /stock/{id}"), pages);
    for of_checkouts in [
        count("inventory", "POST /reservations/{id}"),
        count("catalog", "GET /parcels/{id}"),
        count("payment", "POST /charges/{id}/{cents}"),
        count("payment", "write audit log"),
        count("mailer", "compose e-mail"),
    ] {
        assert_eq!(of_checkouts, checkouts);
    }
    // The two calls of a page at once, and the audit log, are branches.
    assert_eq!(named("thread", "gateway", "GET /product/{id}")["invocations"], 2 * pages);
    assert_eq!(named("thread", "payment", "POST /charges/{id}/{cents}")["invocations"], checkouts);
    assert!(
        nodes
            .iter()
            .all(|node| node["self"].as_array().is_some_and(|own| own.iter().all(|time| time.as_i64() >= Some(0))))
    );

    let (code, model, _) = dyelog(&["model", SHOP, "--format", "text"]);
    assert_eq!(code, 0);
    for task in ["gateway", "catalog", "inventory", "payment"] {
        assert!(model.contains(task), "{model}");
    }
}

#[test]
fn each_form_has_all_of_the_time() {
    let stacks = dyelog(&["profile", FIGURE_1, "--format", "folded"]).1;
    let folded: u64 = stacks.lines().filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum();
    let table = dyelog(&["profile", FIGURE_1, "--format", "csv"]).1;
    let column = table.lines().next().expect("a header").split(',').position(|name| name == "self").expect("a column");
    let csv: u64 = table.lines().skip(1).filter_map(|line| line.split(',').nth(column)?.parse::<u64>().ok()).sum();
    assert_eq!((folded, csv), (20_700_000, 20_700_000));
    let document = dyelog(&["profile", FIGURE_1, "--format", "xml"]).1;
    let mut reader = quick_xml::Reader::from_str(&document);
    let mut nodes = 0;
    loop {
        match reader.read_event().expect("it is XML") {
            quick_xml::events::Event::Start(element) if element.name().as_ref() == "node" => nodes += 1,
            quick_xml::events::Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(nodes, 6);
}

#[test]
fn packed_and_binary_records_say_the_same() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let [binary, lines] = ["a.calls", "b.jsonl"].map(|name| folder.path().join(name).display().to_string());
    assert_eq!(dyelog(&["profile", "convert", FIGURE_1, "--to", "binary", "-o", &binary]).0, 0);
    assert_eq!(dyelog(&["profile", "convert", &binary, "-o", &lines]).0, 0);
    let expected = dyelog(&["profile", FIGURE_1]);
    assert_eq!(dyelog(&["profile", &binary]), expected);
    assert_eq!(dyelog(&["profile", &lines]), expected);
    let packed = folder.path().join("c.gz");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, &fs::read(&binary).expect("it was written")).expect("memory takes it");
    fs::write(&packed, encoder.finish().expect("memory takes it")).expect("the folder can be written");
    assert_eq!(dyelog(&["profile", &packed.display().to_string()]), expected);
}

#[test]
fn critical_paths_hold_all_of_the_duration() {
    let (code, document, words) =
        dyelog(&["profile", "traces/calls/table-1.jsonl", "--critical-path", "--format", "json"]);
    assert_eq!((code, words.as_str()), (0, ""));
    let path = json(&document)["critical_path"].clone();
    let nodes = path["nodes"].as_array().expect("a list").iter();
    let whole: i64 = nodes.filter_map(|node| Some(node["time"].as_i64()? + node["transit"].as_i64()?)).sum();
    assert_eq!((path["operations"].as_u64(), path["length"].as_i64()), (Some(3), Some(whole)));
    let last = path["longest"]["stretches"].as_array().expect("a list").last().expect("a stretch").clone();
    assert_eq!((path["longest"]["chain"].as_str(), last["end"].as_i64()), (Some("parent-child"), Some(109_000)));
    let (_, text, _) = dyelog(&["profile", FIGURE_1, "--critical-path"]);
    assert!(text.contains("no critical path: the records have no times of the clock on the wall"), "{text}");
    assert!(!json(&dyelog(&["profile", FIGURE_1, "--format", "json"]).1)["critical_path"].is_object());
}

#[test]
fn damage_is_named_and_counted() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let whole = fs::read_to_string(FIGURE_1).expect("it is bundled");
    let lost: Vec<_> =
        whole.lines().enumerate().filter(|(line, _)| *line != 4).map(|(_, line)| format!("{line}\n")).collect();
    let lost = lost.concat();
    let path = folder.path().join("lost.jsonl");
    fs::write(&path, lost).expect("the folder can be written");
    let (code, text, _) = dyelog(&["profile", &path.display().to_string()]);
    assert_eq!(code, 0);
    assert!(text.contains("events of a chain are missing") && text.contains("of chain c1"), "{text}");
}

#[test]
fn what_is_left_out_of_the_text_is_counted() {
    let (_, text, _) = dyelog(&["profile", FIGURE_1, "--least", "18%"]);
    assert!(
        text.contains("1 function left out: 2.7 ms of their own, 13.0%") && text.contains("… 1 more path"),
        "{text}"
    );
    let (_, text, _) = dyelog(&["profile", FIGURE_1, "--lines", "2"]);
    assert!(text.contains("3 functions left out") && text.contains("… and 4 more of 6 paths, after 2 lines"), "{text}");
}

#[test]
fn growth_beyond_a_limit_exits_with_1() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let before = run(&folder.path().join("before"), "buy", &[1000, 1010, 990, 1000]);
    let after = run(&folder.path().join("after"), "purchase", &[1100, 1110, 1090]);
    let limited = |limit: &str| {
        dyelog(&["profile", "diff", &before, &after, "--map", "Shop::buy=Shop::purchase", "--fail-if", limit]).0
    };
    assert_eq!(
        (limited("self > 5%"), limited("self > 20%"), limited("total > 5%"), limited("calls > 0%")),
        (1, 0, 1, 0)
    );
    let (code, document, words) =
        dyelog(&["profile", "diff", &before, &after, "--map", "Shop::buy=Shop::purchase", "--format", "json"]);
    assert_eq!((code, words.as_str()), (0, ""));
    let change = &json(&document)["functions"][0]["self_change"];
    assert!((change["mean"].as_f64().expect("a number") - 100.0).abs() < 1e-9, "{change}");
    let (_, text, _) = dyelog(&["profile", "diff", &before, &after]);
    assert!(text.contains("new") && text.contains("vanished"), "{text}");
    assert_eq!(dyelog(&["profile", "diff", &before, &after, "--fail-if", "self +5"]).0, 2);
}

#[test]
fn an_impact_is_the_profile_after_the_change() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let before = run(&folder.path().join("before"), "buy", &[1000, 2000]);
    let after = run(&folder.path().join("after"), "buy", &[700, 1400]);
    let (code, document, _) =
        dyelog(&["impact", &before, "-e", "reduction by 30% to function { Shop::* }", "--format", "json"]);
    assert_eq!(code, 0);
    let measured = json(&dyelog(&["profile", &after, "--format", "json"]).1);
    assert_eq!(json(&document)["after"], measured["nodes"][0]["descendent"]);
}

#[test]
fn an_impact_includes_waiting() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let config = folder.path().join("load.toml");
    fs::write(&config, "[scenario.\"Demo::ClassA::foo\"]\nrate = 100\n").expect("the folder can be written");
    let half = "reduction by 50% to function { Demo::Speaker::* }";
    let (code, document, _) =
        dyelog(&["impact", FIGURE_1, "-e", half, "--config", &config.display().to_string(), "--format", "json"]);
    assert_eq!(code, 0);
    let scenario = json(&document)["scenarios"][0].clone();
    let figure = |when: &str, name: &str| scenario[when][name].as_f64().expect("a number");
    // D is busy 7.8 ms an operation before, and C 7 ms.
    assert!((figure("before", "saturation") - 1.0 / 0.0078).abs() < 0.01, "{scenario}");
    assert!((figure("after", "saturation") - 1.0 / 0.0070).abs() < 0.01, "{scenario}");
    // At 78% busy D alone takes 7.8 / 0.22 ms; at 39% it takes 3.9 / 0.61 ms: more than the work that was saved.
    let saved = figure("before", "response") - figure("after", "response");
    assert!((saved - (0.0078 / 0.22 - 0.0039 / 0.61)).abs() < 0.002, "{scenario}");
}

/// So many requests for the functions of a process each, one every 100 ms; each takes 1 ms of its process, and calls the next of its functions.
fn nested(requests: &[&[(&str, &str)]]) -> String {
    let mut records = String::from("{\"calls\":1}\n");
    for (number, functions) in requests.iter().enumerate() {
        let (mut event, mut wall) = (0, number as u64 * 100_000_000);
        let mut record = |probe: &str, function: &str, process: &str, cpu: u64, longer: u64| {
            event += 1;
            wall += 1000 + longer;
            records.push_str(&format!(
                "{{\"chain\":\"c{number}\",\"event\":{event},\"probe\":\"{probe}\",\"interface\":\"I\",\"function\":\"{function}\",\
                 \"process\":\"{process}\",\"processor\":\"host {process}\",\"wall\":{wall},\"cpu\":{cpu}}}\n"
            ));
        };
        let callers = std::iter::once("users").chain(functions.iter().map(|(_, process)| *process));
        let calls: Vec<(&str, &str, &str)> =
            functions.iter().zip(callers).map(|((function, process), caller)| (*function, *process, caller)).collect();
        for (place, (function, process, caller)) in calls.iter().enumerate() {
            record("stub_start", function, caller, 1_000_000, if place == 0 { 0 } else { 1_000_000 });
            record("skel_start", function, process, 0, 0);
        }
        for (place, (function, process, caller)) in calls.iter().enumerate().rev() {
            let last = place + 1 == calls.len();
            record("skel_end", function, process, 1_000_000, if last { 1_000_000 } else { 0 });
            record("stub_end", function, caller, 1_000_000, 0);
        }
    }
    records
}

#[test]
fn without_a_solution_the_processor_time_of_an_impact_is_left() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let path = folder.path().join("records.jsonl");
    // Each of the two calls the other one at times, so the model has a circle.
    let (there, back): (&[_], &[_]) = (&[("f", "p"), ("g", "q")], &[("g", "q"), ("f", "p")]);
    let (one, other): (&[_], &[_]) = (&there[..1], &back[..1]);
    fs::write(&path, nested(&[there, back, one, other].repeat(20))).expect("the folder can be written");
    let path = path.display().to_string();
    let change = ["impact", &path, "-e", "reduction by 50% to function { I::f }"];
    let (code, text, words) = dyelog(&change);
    assert_eq!(code, 3, "{words}");
    assert!(text.starts_with("responses and saturation: not known, calls form a cycle"), "{text}");
    assert!(text.contains("host p") && words.contains("error[S003]"), "{text}{words}");
    assert!(
        words.ends_with("the model of the records has no solution: the answer is processor time alone\n"),
        "{words}"
    );
    let (code, document, _) = dyelog(&[&change[..], &["--format", "json"]].concat());
    let document = json(&document);
    assert_eq!((code, document["unsolved"][0]["code"].as_str()), (3, Some("S003")), "{document}");
    assert_eq!(document["scenarios"], json("[]"));
    let sum = |when: &str| document[when].as_array().expect("by group").iter().filter_map(Value::as_i64).sum::<i64>();
    // Sixty of the hundred and twenty calls have half of their work left.
    assert_eq!((sum("before"), sum("after")), (120_000_000, 90_000_000));
    let page = folder.path().join("page.html").display().to_string();
    assert_eq!(dyelog(&[&change[..], &["--html", "-o", &page]].concat()).0, 3);
    assert!(fs::metadata(&page).is_ok_and(|page| page.len() > 10_000));
}

#[test]
fn what_is_expected_is_the_measured_response_changed_as_the_model_is() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let path = folder.path().join("records.jsonl");
    fs::write(&path, nested(&[&[("f", "p")][..]].repeat(60))).expect("the folder can be written");
    let config = folder.path().join("load.toml");
    let scenario = |rate: u32| {
        fs::write(&config, format!("[scenario.\"I::f\"]\nrate = {rate}\n")).expect("the folder can be written");
        let (path, config) = (path.display().to_string(), config.display().to_string());
        let change = "reduction by 50% to function { I::f }";
        let (code, document, words) = dyelog(&["impact", &path, "-e", change, "--config", &config, "--format", "json"]);
        assert_eq!(code, 0, "{words}");
        json(&document)["scenarios"][0].clone()
    };
    let figure = |value: &Value| value.as_f64().expect("a number");
    let same = scenario(10);
    let ratio = figure(&same["after"]["response"]) / figure(&same["before"]["response"]);
    let measured = figure(&same["measured"]["response"]);
    // The call takes 1 ms and 3 µs on the way.
    assert!(
        (measured - 0.001_003).abs() < 1e-9 && (figure(&same["measured"]["throughput"]) - 10.0).abs() < 0.5,
        "{same}"
    );
    assert!((figure(&same["expected_response"]) - measured * ratio).abs() < 1e-12, "{same}");
    // Records of ten a second do not show how long it takes at four hundred.
    assert!(scenario(400)["expected_response"].is_null());
}

/// Nothing tells the load of these records: neither of their scenarios may get more of it because the other one has less to do.
#[test]
fn less_work_of_one_scenario_is_no_load_for_another() {
    let (code, document, _) =
        dyelog(&["impact", SHOP, "-e", "reduction by 90% to function { payment::* }", "--format", "json"]);
    assert_eq!(code, 0);
    for scenario in json(&document)["scenarios"].as_array().expect("scenarios") {
        let figure = |when: &str, name: &str| scenario[when][name].as_f64().expect("a number");
        assert!(figure("after", "response") < figure("before", "response") * 1.0005, "{scenario}");
        assert!(figure("after", "saturation") > figure("before", "saturation") * 0.9995, "{scenario}");
    }
}

#[test]
fn a_change_of_nothing_is_refused() {
    for (statement, expected) in [
        ("reduction by 30% to function { Demo::Counter::tmes }", "did you mean `Demo::Counter::times`?"),
        ("reduction on processor group { E } by 30% to function { Demo::* }", "there is no processor group `E`"),
        ("30% faster to function { Demo::* }", "divides the time by 1.3"),
        ("reduction by 130% to function { Demo::* }", "no more than 100%"),
    ] {
        let (code, out, words) = dyelog(&["impact", FIGURE_1, "-e", statement]);
        assert_eq!((code, out.as_str()), (2, ""), "{statement}");
        assert!(words.contains(expected), "{statement}: {words}");
    }
}

#[test]
fn files_without_records_are_refused() {
    let (code, out, words) = dyelog(&["profile", "README.md"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(words.contains("G002") && words.matches("G003").count() <= 3, "{words}");
}

#[test]
fn processor_groups_come_from_the_configuration() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let config = folder.path().join("groups.toml");
    let profile = |text: &str| {
        fs::write(&config, text).expect("the folder can be written");
        dyelog(&["profile", FIGURE_1, "--config", &config.display().to_string()])
    };
    let (code, text, _) = profile("[processor_groups]\nx86 = [\"A\", \"B\"]\narm = [\"C\", \"D\"]\n");
    assert_eq!(code, 0);
    assert!(text.contains("by processor group: x86 5.9 ms, arm 14.8 ms"), "{text}");
    let (code, _, words) = profile("[processor_groups]\nx86 = [\"A\", \"B\"]\narm = [\"B\"]\n");
    assert!(code == 2 && words.contains("G006"), "{words}");
    assert_eq!(profile("[processor_groups]\nx86 = \"A\"\n").0, 2);
}

/// A program whose processor times are known: calls in calls.
#[derive(Clone, Debug)]
struct Work {
    kind: How,
    process: u8,
    /// Microseconds of processor time of its own.
    own: u16,
    calls: Vec<Work>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Waits,
    OneWay,
    Collocated,
    Thread,
}

fn work() -> impl Strategy<Value = Work> {
    let how =
        prop_oneof![4 => Just(How::Waits), 1 => Just(How::OneWay), 1 => Just(How::Collocated), 1 => Just(How::Thread)];
    let leaf = (how.clone(), 0u8..4, 1u16..500).prop_map(|(kind, process, own)| Work {
        kind,
        process,
        own,
        calls: Vec::new(),
    });
    leaf.prop_recursive(4, 24, 4, move |inner| {
        (how.clone(), 0u8..4, 1u16..500, prop::collection::vec(inner, 0..4))
            .prop_map(|(kind, process, own, calls)| Work { kind, process, own, calls })
    })
}

impl Work {
    fn total(&self) -> u64 {
        u64::from(self.own) + self.calls.iter().map(Work::total).sum::<u64>()
    }
}

/// Writes records as probes would. Each process has a wall clock of its own, and each thread a processor clock.
struct Recorder {
    lines: Vec<(u8, String)>,
    wall: i64,
    chains: u32,
    threads: u32,
    skew: i64,
}

/// Where records come from: a process, its thread, and what the thread has used, in nanoseconds.
struct At {
    process: u8,
    thread: u32,
    cpu: i64,
}

impl Recorder {
    fn record(&mut self, at: &mut At, chain: &mut (String, u32), what: &str) {
        chain.1 += 1;
        self.wall += 1000;
        let wall = self.wall + i64::from(at.process) * self.skew;
        at.cpu += 100;
        let begin = at.cpu;
        at.cpu += 50;
        self.lines.push((
            at.process,
            format!(
                "{{\"chain\":\"{}\",\"event\":{},{what},\"process\":\"p{}\",\"processor\":\"h{}\",\"wall\":[{wall},{}],\"cpu\":[{begin},{}]}}",
                chain.0, chain.1, at.process, at.process, wall + 50, at.cpu
            ),
        ));
    }

    fn thread(&mut self, process: u8) -> At {
        self.threads += 1;
        At { process, thread: self.threads, cpu: 0 }
    }

    /// Works, and calls in between.
    fn body(&mut self, work: &Work, at: &mut At, chain: &mut (String, u32)) {
        let parts = work.calls.len() as i64 + 1;
        let part = i64::from(work.own) * 1000 / parts;
        let rest = i64::from(work.own) * 1000 - part * (parts - 1);
        // From the end of one probe to the beginning of the next; the gap before each probe is taken off here.
        at.cpu += rest - 100;
        self.wall += rest;
        for call in &work.calls {
            self.call(call, at, chain);
            at.cpu += part - 100;
            self.wall += part;
        }
    }

    fn call(&mut self, work: &Work, at: &mut At, chain: &mut (String, u32)) {
        let name = format!(
            "\"interface\":\"I{}\",\"function\":\"f{}\",\"thread\":\"{}\"",
            work.process,
            work.own % 5,
            at.thread
        );
        match work.kind {
            How::Waits => {
                self.record(at, chain, &format!("\"probe\":\"stub_start\",{name}"));
                let mut callee = self.thread(work.process);
                self.record(&mut callee, chain, &format!("\"probe\":\"skel_start\",{name}"));
                self.body(work, &mut callee, chain);
                self.record(&mut callee, chain, &format!("\"probe\":\"skel_end\",{name}"));
                self.record(at, chain, &format!("\"probe\":\"stub_end\",{name}"));
            }
            How::Collocated => {
                self.record(at, chain, &format!("\"probe\":\"stub_start\",\"collocated\":true,{name}"));
                self.body(work, at, chain);
                self.record(at, chain, &format!("\"probe\":\"stub_end\",\"collocated\":true,{name}"));
            }
            How::OneWay => {
                self.chains += 1;
                let mut own = (format!("one{}", self.chains), 0);
                self.record(
                    at,
                    chain,
                    &format!("\"probe\":\"stub_start\",\"oneway\":true,\"child\":\"{}\",{name}", own.0),
                );
                self.record(at, chain, &format!("\"probe\":\"stub_end\",{name}"));
                let mut callee = self.thread(work.process);
                self.record(&mut callee, &mut own, &format!("\"probe\":\"skel_start\",{name}"));
                self.body(work, &mut callee, &mut own);
                self.record(&mut callee, &mut own, &format!("\"probe\":\"skel_end\",{name}"));
            }
            How::Thread => {
                self.chains += 1;
                let mut own = (format!("thread{}", self.chains), 0);
                let mut thread = self.thread(at.process);
                // There is no probe on the parent's clock.
                at.cpu += 100;
                let start = format!(
                    "\"thread_start\":\"{}\",\"parent_thread\":\"{}\",\"child\":\"{}\"",
                    thread.thread, at.thread, own.0
                );
                // The start stands in the chain of the parent, on the clock of the thread.
                self.record(&mut thread, chain, &start);
                self.body(work, &mut thread, &mut own);
                let end = format!("\"thread_end\":\"{}\"", thread.thread);
                self.record(&mut thread, &mut own, &end);
            }
        }
    }
}

/// The records of operations that each make these calls, by process.
fn recorded(operations: &[Work], skew: i64) -> Vec<(u8, String)> {
    let mut recorder = Recorder { lines: Vec::new(), wall: 0, chains: 0, threads: 0, skew };
    for (number, work) in operations.iter().enumerate() {
        let mut client = recorder.thread(9);
        let mut chain = (format!("op{number}"), 0);
        recorder.call(&Work { kind: How::Waits, ..work.clone() }, &mut client, &mut chain);
        recorder.wall += 1_000_000;
    }
    recorder.lines
}

fn text(lines: &[(u8, String)]) -> String {
    lines.iter().map(|(_, line)| format!("{line}\n")).collect::<Vec<_>>().concat()
}

fn operations(records: &str) -> (TraceNames, Vec<Operation>) {
    let (mut names, mut operations) = (TraceNames::new(), Vec::new());
    let mut keep = |_: &TraceNames, operation: Operation| {
        operations.push(operation);
        std::ops::ControlFlow::Continue(())
    };
    let report =
        trace::read("records", records.as_bytes(), &ReadOptions::default(), &mut names, &mut keep).expect("records");
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    (names, operations)
}

/// The sub-model of files, as it is saved.
fn saved(files: &[Input]) -> String {
    let mut findings = Vec::new();
    pipeline::submodel(files, &Options::default(), &mut findings).expect("records").saved()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn operations_of_records_are_sound_and_have_all_processor_time(works in prop::collection::vec(work(), 1..4), skew in -20_000_000i64..20_000_000) {
        let records = text(&recorded(&works, skew));
        let expected: u64 = works.iter().map(Work::total).sum();
        let profile = callgraph::analyse(vec![callgraph::Input::new("records", records.as_bytes())], &callgraph::Options::default()).expect("records");
        prop_assert!(profile.abnormal.is_empty(), "{:?}", profile.abnormal);
        prop_assert_eq!(profile.contexts.total(), expected as i64 * 1000);
        let (_, operations) = operations(&records);
        prop_assert_eq!(operations.len(), works.len());
        let mut demand = 0.0;
        for operation in operations {
            demand += operation.events.iter().map(|event| event.cpu).filter(|cpu| !cpu.is_nan()).sum::<f64>();
            prop_assert!(operation.events.iter().all(|event| event.time >= 0.0), "{:?}", operation.events);
            prop_assert!(Toeg::build(operation).is_ok());
        }
        prop_assert!((demand - expected as f64 * 1e-6).abs() < 1e-12, "{} of {}", demand, expected);
    }

    #[test]
    fn what_processes_use_beside_functions_is_demand(works in prop::collection::vec(work(), 1..4), skew in -20_000_000i64..20_000_000) {
        let lines = recorded(&works, skew);
        let mut processes: Vec<u8> = lines.iter().map(|(process, _)| *process).collect();
        processes.sort_unstable();
        processes.dedup();
        let used = |process: &u8| {
            format!("{{\"process\":\"p{process}\",\"processor\":\"h{process}\",\"process_cpu\":1000000000}}\n")
        };
        let records = [text(&lines), processes.iter().map(used).collect()].concat();
        let (_, alone) = operations(&text(&lines));
        let (_, operations) = operations(&records);
        let mut demand = 0.0;
        for (operation, alone) in operations.into_iter().zip(alone) {
            demand += operation.events.iter().map(|event| event.cpu).filter(|cpu| !cpu.is_nan()).sum::<f64>();
            prop_assert!(operation.events.iter().all(|event| event.time >= 0.0), "{:?}", operation.events);
            prop_assert_eq!(operation.events.len(), alone.events.len());
            prop_assert_eq!(operation.start, alone.start);
            prop_assert!(Toeg::build(operation).is_ok());
        }
        // Probes take 50 ns each, which are no demand. An end gets whole nanoseconds.
        let used = processes.len() as f64 - lines.len() as f64 * 50e-9;
        prop_assert!((demand - used).abs() < 1e-6, "{} of {}", demand, used);
    }

    #[test]
    fn files_of_processes_are_one_trace(works in prop::collection::vec(work(), 1..4)) {
        let lines = recorded(&works, 0);
        let whole = saved(&[Input::new("records", text(&lines))]);
        let mut processes: Vec<u8> = lines.iter().map(|(process, _)| *process).collect();
        processes.sort_unstable();
        processes.dedup();
        let files: Vec<Input> = processes
            .iter()
            .rev()
            .map(|process| {
                let own: Vec<_> = lines.iter().filter(|(of, _)| of == process).cloned().collect();
                Input::new(&format!("p{process}"), text(&own))
            })
            .collect();
        let parts = saved(&files);
        // The saved form names the files.
        let figures = |text: &str| text.lines().filter(|line| !line.contains("\"file")).map(str::to_owned).collect::<Vec<_>>();
        prop_assert_eq!(figures(&whole), figures(&parts));
    }

    #[test]
    fn models_of_records_have_their_processor_time(work in work()) {
        let records = text(&recorded(std::slice::from_ref(&work), 0));
        let mut findings = Vec::new();
        let source = pipeline::model(&[Input::new("records", records)], None, &Options::default(), &mut findings).expect("a model");
        let solution = source.solve(|model| layered(model, &LayeredOptions::default())).expect("a solution");
        let busy: f64 = solution.results.processors.iter().map(|processor| processor.utilization).sum();
        let throughput: f64 = source.scenarios(&solution).iter().map(|scenario| scenario.throughput).sum();
        if !solution.backlogs.is_empty() {
            // Where messages come faster than they are served, each processor does what it can.
            let processors = &solution.results.processors;
            prop_assert!(processors.iter().all(|processor| processor.utilization <= 1.0 + 1e-6), "{:?}", processors);
            return Ok(());
        }
        // The reference task of the customer has a processor of its own, on which it spends nothing.
        let demand = work.total() as f64 * 1e-6;
        prop_assert!((busy / throughput / demand - 1.0).abs() < 1e-3, "{} at {}/s, not {} s", busy, throughput, demand);
    }
}

#[test]
fn a_call_after_the_ends_of_threads_waits_for_them() {
    // Two threads end at 30 and 40; `late` begins at 50, `beside` at 35, and `early` before both.
    let call = |event: u32, function: &str, from: u32, to: u32| {
        let record = |event: u32, probe: &str, at: u32| {
            format!(
                "{{\"chain\":\"c\",\"event\":{event},\"probe\":\"{probe}\",\"collocated\":true,\"function\":\"{function}\",\"process\":\"p\",\"wall\":{at},\"cpu\":{at}}}\n"
            )
        };
        [record(event, "stub_start", from), record(event + 1, "stub_end", to)]
    };
    let thread = |event: u32, name: &str, end: u32| {
        format!(
            "{{\"thread_start\":\"{name}\",\"chain\":\"c\",\"event\":{event},\"child\":\"{name}\",\"process\":\"p\",\"wall\":10,\"cpu\":0}}\n\
             {{\"thread_end\":\"{name}\",\"chain\":\"{name}\",\"event\":1,\"process\":\"p\",\"wall\":{end},\"cpu\":5}}\n"
        )
    };
    let joined_before = |function: &str, from: u32| {
        let [begin, _] = call(1, "whole", 0, 0);
        let [_, end] = call(7, "whole", 0, 90);
        let within = call(6, function, from, from + 1).concat();
        let early = call(2, "early", 1, 2).concat();
        let records = [begin, early, thread(4, "one", 30), thread(5, "two", 40), within, end].concat();
        let (names, operations) = operations(&records);
        let main: Vec<&dyelog::trace::Event> = operations[0].events.iter().filter(|event| event.thread == 1).collect();
        let at = main.iter().position(|event| names.names.text(event.activity) == function).expect("the call is there");
        main[..at].iter().filter(|event| matches!(event.kind, dyelog::trace::Kind::Join(_))).count()
    };
    assert_eq!([joined_before("late", 50), joined_before("beside", 35)], [2, 0]);
}

#[test]
fn an_operation_with_a_damaged_call_is_left_out_and_counted() {
    let works: Vec<Work> = (0..3)
        .map(|_| Work {
            kind: How::Waits,
            process: 1,
            own: 100,
            calls: vec![Work { kind: How::Waits, process: 2, own: 50, calls: vec![] }],
        })
        .collect();
    let lines = recorded(&works, 0);
    let lost: Vec<_> = lines.iter().enumerate().filter(|(line, _)| *line != 12).map(|(_, line)| line.clone()).collect();
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let path = folder.path().join("lost.jsonl");
    fs::write(&path, text(&lost)).expect("the folder can be written");
    let (code, report, words) = dyelog(&["trace", "check", &path.display().to_string()]);
    assert_eq!(code, 1);
    assert!(report.contains("operations           2"), "{report}");
    assert!(words.contains("T161") && words.contains("T160"), "{words}");
}

#[test]
fn without_processor_times_demands_are_of_the_clock() {
    let work = Work {
        kind: How::Waits,
        process: 1,
        own: 400,
        calls: vec![Work { kind: How::Waits, process: 2, own: 50, calls: vec![] }],
    };
    let records = text(&recorded(&[work], 0));
    let wall: Vec<_> =
        records.lines().map(|line| format!("{}}}\n", line.split(",\"cpu\"").next().expect("a line"))).collect();
    let wall = wall.concat();
    let (_, operations) = operations(&wall);
    assert!(operations[0].events.iter().all(|event| event.cpu.is_nan() && !event.time.is_nan()));
    let mut findings = Vec::new();
    let source =
        pipeline::model(&[Input::new("records", wall)], None, &Options::default(), &mut findings).expect("a model");
    assert!(source.model.entries.iter().any(|entry| &*entry.name == "I1::f0"), "{:?}", source.model.entries);
}

/// One request for `serve` of process `p`: begun at so many microseconds, busy for 1 ms, and back after so many in all.
fn request(number: usize, begin: u64, length: u64) -> String {
    let record = |event: u32, probe: &str, wall: u64, cpu: u64| {
        format!(
            "{{\"chain\":\"c{number}\",\"event\":{event},\"probe\":\"{probe}\",\"interface\":\"I\",\"function\":\"serve\",\"process\":\"p\",\
             \"processor\":\"h\",\"wall\":{},\"cpu\":{}}}\n",
            wall * 1000,
            cpu * 1000
        )
    };
    let cpu = number as u64 * 1000;
    record(1, "stub_start", begin, cpu)
        + &record(2, "skel_start", begin, cpu)
        + &record(3, "skel_end", begin + length, cpu + 1000)
        + &record(4, "stub_end", begin + length, cpu + 1000)
}

#[test]
fn what_functions_wait_for_alone_is_a_pause_and_queueing_is_not() {
    // A hundred requests alone pause 4 ms each. Two hundred more meet those before them, and wait longer.
    let alone = (0..100).map(|number| request(number, number as u64 * 100_000, 5_000));
    let crowded = (0..200).map(|number| request(100 + number, 9_901_000 + number as u64 * 6_000, 12_000));
    let pauses = |records: &str| -> Vec<f64> {
        let (_, operations) = operations(records);
        let events = operations.iter().flat_map(|operation| &operation.events);
        events.map(|event| event.pause).filter(|pause| !pause.is_nan()).collect()
    };
    let all = pauses(&alone.chain(crowded).collect::<String>());
    assert_eq!(all.len(), 300);
    assert!(all.iter().all(|pause| (pause - 0.004).abs() < 1e-9), "{all:?}");
    // What is busy all the time does not pause; clocks are never quite together.
    let busy: String = (0..100).map(|number| request(number, number as u64 * 100_000, 1_010)).collect();
    assert_eq!(pauses(&busy), Vec::<f64>::new());
}

/// Requests that come by chance, so many a second, for one thread: 1 ms of work, and a lock that takes 3 ms on average with a squared coefficient of variation of 1/4.
fn locked(rate: f64) -> String {
    let mut state = 42u64;
    let mut exponential = |mean: f64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        -mean * (((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64).ln()
    };
    let (mut records, mut now, mut free) = (String::new(), 0.0, 0.0_f64);
    for number in 0..2000 {
        now += exponential(1e6 / rate);
        let lock: f64 = (0..4).map(|_| exponential(750.0)).sum();
        free = free.max(now) + 1000.0 + lock;
        records += &request(number, now as u64, (free - now) as u64);
    }
    records
}

#[test]
fn a_lock_is_told_from_the_queue_before_it_at_any_load() {
    for rate in [20.0, 100.0, 180.0] {
        let source =
            pipeline::model(&[Input::new("records", locked(rate))], None, &Options::default(), &mut Vec::new())
                .expect("a model");
        let entry = source.model.entries.iter().find(|entry| &*entry.name == "I::serve").expect("the entry is there");
        let dyelog::lqn::Body::Phases(phases) = &entry.body else { panic!("phases: {entry:?}") };
        let (demand, delay) = (phases[0].demand, phases[0].think_time);
        assert!((demand - 0.001).abs() < 1e-5 && (delay / 0.003 - 1.0).abs() < 0.07, "at {rate}/s: {phases:?}");
        assert!(phases[0].think_cv2.is_some_and(|cv2| (0.17..0.35).contains(&cv2)), "at {rate}/s: {phases:?}");
    }
}

#[test]
fn pauses_are_delays_of_the_model() {
    let records: String = (0..50).map(|number| request(number, number as u64 * 100_000, 5_000)).collect();
    let mut findings = Vec::new();
    let source =
        pipeline::model(&[Input::new("records", records)], None, &Options::default(), &mut findings).expect("a model");
    let named = source.model.entries.iter().find(|entry| &*entry.name == "I::serve");
    let entry = named.expect("the entry is there");
    let dyelog::lqn::Body::Phases(phases) = &entry.body else { panic!("phases: {entry:?}") };
    assert!((phases[0].demand - 0.001).abs() < 1e-9 && (phases[0].think_time - 0.004).abs() < 1e-9, "{phases:?}");
    // They vary as little as they were seen to, which only JSON keeps.
    assert!(phases[0].think_cv2.is_some_and(|cv2| cv2 < 1e-6), "{phases:?}");
    assert_eq!(Language::ALL.map(|language| language.unsaid_delays(&source.model)), [1, 1, 0]);
    let text = dyelog::lqn::json::write(&source.model);
    let (read, _) = dyelog::lqn::json::parse("model", &text).expect("it is a model");
    assert_eq!(dyelog::lqn::json::write(&read), text);
    assert!(text.contains("think_cv2"), "{text}");
}

#[test]
fn the_models_of_golden_records_are_accepted() {
    let (code, text, _) = dyelog(&["test", "traces", "--snapshots", "snapshots", "--filter", "calls"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("2 traces: 2 validated"), "{text}");
}
