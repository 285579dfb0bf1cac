//! Arguments that no input could make sense of are refused before an input is read.

use std::fs;

use serde_json::Value;

use crate::cli::{Folder, shown};
use crate::whatif::run;

/// Runs a command on a trace that is not there: what is told first is what was looked at first.
fn refused(arguments: &[&str]) -> String {
    let (code, _, words) = run(arguments);
    assert_eq!(code, 2, "{words}");
    words
}

#[test]
fn outputs_settings_and_goals_are_looked_at_before_the_traces() {
    for (arguments, code) in [
        (&["solve", "none.angio", "-o", "no-such-folder/x.txt"][..], "C002"),
        (&["trace", "stat", "none.angio", "-o", "src"], "C002"),
        (&["simulate", "none.angio", "--trace", "no-such-folder/x.angio"], "C002"),
        (&["solve", "none.angio", "-o", "x.xyz"], "C007"),
        (&["simulate", "none.angio", "-o", "x.xyz"], "C007"),
        (&["model", "none.angio", "-o", "x.xyz"], "C007"),
        (&["bottleneck", "none.angio", "-o", "x.foo"], "C007"),
        (&["calibrate", "none.angio", "-o", "x.yaml"], "C007"),
        (&["search", "none.angio", "--largest", "load", "--goal", "response < 1", "-o", "x.bmp"], "C007"),
        (&["trace", "stat", "none.angio", "-o", "x.bmp"], "C007"),
        (&["trace", "check", "none.angio", "-o", "x.bmp"], "C007"),
        (&["trace", "show", "none.angio", "-o", "x.bmp"], "C007"),
        (&["trace", "convert", "none.angio", "-o", "x.bmp"], "C007"),
        (&["diff", "none.angio", "none.angio", "-o", "x.bmp"], "C007"),
        (&["compare", "none.angio", "-o", "x.bmp"], "C007"),
        (&["coverage", "none.angio", "-o", "x.bmp"], "C007"),
        (&["matches", "none.angio", "-o", "x.bmp"], "C007"),
        (&["merge", "none.angio", "-o", "x.bmp"], "C007"),
        (&["config", "init", "none.angio", "-o", "x.bmp"], "C007"),
        (&["explain", "none.angio", "--entry", "e", "-o", "x.bmp"], "C007"),
        (&["why-not", "rpc", "none.angio:1", "-o", "x.bmp"], "C007"),
        (&["whatif", "none.angio", "-o", "x.bmp"], "C007"),
        (&["whatif", "none.angio", "--list", "-o", "x.json"], "C007"),
        (&["report", "none.angio", "-o", "x.pdf"], "C007"),
        (&["profile", "none.jsonl", "-o", "x.bmp"], "C007"),
        (&["profile", "none.jsonl", "--html", "-o", "x.json"], "C007"),
        (&["impact", "none.jsonl", "-e", "e", "-o", "x.bmp"], "C007"),
        (&["draw", "lqn", "none.angio", "-o", "x.bmp"], "C007"),
        (&["draw", "toeg", "none.angio", "-o", "x.bmp"], "C007"),
        (&["draw", "msc", "none.angio", "-o", "x.dot"], "C007"),
        (&["lqn", "check", "none.lqn", "-o", "x.bmp"], "C007"),
        (&["rules", "doc", "none.dl", "-o", "x.bmp"], "C007"),
        (&["rules", "check", "none.dl", "-o", "x.bmp"], "C007"),
        (&["rules", "profile", "none.dl", "none.angio", "-o", "x.bmp"], "C007"),
        (&["query", "--relation", "span", "none.jsonl", "-o", "no-such-folder/x"], "C002"),
        (&["query", "--relation", "span", "none.jsonl", "-o", "x.csv"], "C005"),
        (&["whatif", "none.angio", "--set", "processor.db"], "M040"),
        (&["whatif", "none.angio", "--set", "procesor.db.speed=2"], "M041"),
        (&["whatif", "none.angio", "--vary", "processor.db.speed=1..x"], "M043"),
        (&["bottleneck", "none.angio", "--set", "task.db.threads=none"], "M042"),
        (&["whatif", "none.angio", "--show", "scenario.order.respons"], "M045"),
        (&["search", "none.angio", "--largest", "scenario.s.population", "--goal", "response"], "M046"),
        (&["search", "none.angio", "--largest", "scenario.s.population", "--goal", "response < soon"], "M046"),
    ] {
        let words = refused(arguments);
        assert!(words.contains(code) && !words.contains("C001"), "{arguments:?}: {words}");
    }
    // All at once.
    let words = refused(&["whatif", "none.angio", "--set", "a.b=3", "--vary", "x", "--show", "bogus"]);
    assert!(["M041", "M040", "M045"].iter().all(|code| words.contains(code)), "{words}");
    // What may be right waits for the traces.
    assert!(refused(&["whatif", "none.angio", "--set", "task.db.threads=4", "--show", "p99.9"]).contains("C001"));
}

#[test]
fn looking_at_an_output_leaves_nothing_behind() {
    let folder = Folder::new();
    let file = folder.file("x.txt", "as it was");
    refused(&["solve", "none.angio", "-o", &file]);
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "as it was");
    assert_eq!(folder.names(), ["x.txt"]);
}

#[test]
fn a_form_is_named_by_the_ending_or_by_the_argument() {
    let folder = Folder::new();
    let path = |name: &str| shown(&folder.path(name));
    let solve = |name: &str, more: &[&str]| run(&[&["solve", "traces/rpc.angio", "-o", &path(name)], more].concat()).0;
    assert_eq!([solve("x", &[]), solve("x.txt", &[]), solve("x.xyz", &["--format", "json"])], [0; 3]);
    let text = fs::read_to_string(path("x.xyz")).expect("it was written");
    assert!(serde_json::from_str::<Value>(&text).is_ok_and(|document| document["dyelog-results"] == 1));
    for (arguments, name, begins) in [
        (&["bottleneck", "traces/shop.otlp.jsonl"][..], "b.json", "{"),
        (&["trace", "stat", "traces/rpc.angio"], "s.json", "{"),
        (&["whatif", "traces/shop.otlp.jsonl"], "w.csv", "\"scenario."),
        (&["matches", "traces/rpc.angio"], "m.csv", "scenario"),
        (&["draw", "lqn", "traces/shop.otlp.jsonl"], "d.gv", "digraph"),
    ] {
        let (code, _, words) = run(&[arguments, &["-o", &path(name)]].concat());
        let text = fs::read_to_string(path(name)).expect("it was written");
        assert!(code == 0 && text.starts_with(begins), "{arguments:?}: {words}{text:.80}");
    }
}

/// Which endings there are is told where another one is refused.
#[test]
fn endings_that_are_known_are_told() {
    let words = refused(&["bottleneck", "none.angio", "-o", "x.foo"]);
    assert!(
        words.contains("the endings are `.txt`, `.json`") && words.contains("name the form by `--format`"),
        "{words}"
    );
    let words = refused(&["calibrate", "none.angio", "-o", "x.yaml"]);
    assert!(words.contains("the endings are `.json`") && words.contains("name it `.json`"), "{words}");
}

/// Every document of JSON begins with its kind and the version of its form.
#[test]
fn every_document_tells_its_kind_and_version() {
    const SHOP: &str = "traces/shop.otlp.jsonl";
    for (arguments, kind) in [
        (&["solve", SHOP][..], "results"),
        (&["model", SHOP], "model"),
        (&["model", SHOP, "--format", "submodel"], "submodel"),
        (&["bottleneck", SHOP], "bottlenecks"),
        (&["whatif", SHOP], "sweep"),
        (&["trace", "check", "traces/rpc.angio"], "quality"),
        (&["trace", "stat", "traces/rpc.angio"], "stat"),
        (&["trace", "stat", "traces/same/case-1-sync.csv"], "messages"),
        (&["coverage", "traces/rpc.angio"], "coverage"),
        (&["matches", "traces/rpc.angio"], "matches"),
        (&["matches", "traces/same/case-1-sync.csv"], "interactions"),
        (&["compare", "traces/rpc.angio"], "comparison"),
        (&["query", "--relation", "span", SHOP], "query"),
        (&["explain", "--list"], "codes"),
        (&["lqn", "check", "examples/tiers.lqn"], "diagnostics"),
        (&["rules", "check", "rules/tlc.dl"], "diagnostics"),
        (&["why-not", "basic_rpc", "1,1", "traces/rpc.angio"], "why-not"),
    ] {
        let form: &[&str] = if arguments.contains(&"--format") { &[] } else { &["--format", "json"] };
        let (_, text, words) = run(&[arguments, form].concat());
        let begin = format!("\"dyelog-{kind}\":1");
        let plain: String = text.chars().filter(|character| !character.is_whitespace()).take(60).collect();
        assert!(
            plain.strip_prefix('{').is_some_and(|rest| rest.starts_with(&begin)),
            "{arguments:?}: {plain}\n{words}"
        );
    }
}

#[test]
fn sections_that_nobody_reads_are_findings() {
    let folder = Folder::new();
    let file = folder.file("c.toml", "[bogus]\nx = 1\n");
    let (code, text, _) = run(&["config", "check", &file]);
    assert!(code == 1 && text.contains("M004") && text.contains("bogus"), "{text}");
    assert_eq!(run(&["config", "check", "examples/case-study.toml"]).0, 0);
}

/// A quantity alone stands for that of all loads, and percentiles are simulated, under `whatif` as under `search`.
#[test]
fn figures_alone_are_those_of_all_loads() {
    let shop = ["traces/shop.otlp.jsonl", "--config", "examples/shop/shop.toml", "--format", "json"];
    let (code, text, words) = run(&[&["whatif"], &shop[..], &["--show", "response", "--show", "p95"]].concat());
    assert_eq!(code, 0, "{words}");
    let table: Value = serde_json::from_str(&text).expect("it is JSON");
    let names: Vec<&str> =
        table["figures"].as_array().into_iter().flatten().filter_map(|figure| figure["name"].as_str()).collect();
    assert_eq!(
        names,
        [
            "scenario.\"gateway GET /product/{id}\".response",
            "scenario.\"gateway POST /checkout/{id}\".response",
            "scenario.\"gateway GET /product/{id}\".p95",
            "scenario.\"gateway POST /checkout/{id}\".p95",
        ]
    );
    let figure = |place: usize| table["points"][0]["figures"][place].as_f64().expect("there is a figure");
    // As most requests are faster than the mean twice over, the slowest twentieth begins above it and not far away.
    assert!((0..2).all(|load| (1.1..4.0).contains(&(figure(load + 2) / figure(load)))), "{table}");
}

#[test]
fn what_was_put_right_is_no_damage() {
    let shop = fs::read_to_string("traces/shop.otlp.jsonl").expect("the golden traces are there");
    let folder = Folder::new();
    let twice = folder.file("twice.jsonl", &format!("{shop}{}", shop.lines().next().unwrap_or_default()));
    let (code, text, words) = run(&["trace", "check", &twice]);
    assert!(code == 0 && text.contains("set aside 0") && words.contains("T109"), "{text}{words}");
    assert_eq!(run(&["trace", "check", "traces/lost-reply.angio"]).0, 1);
}

/// A consumer that gets more than it serves has a growing backlog; nobody waits for it, and the rest is solved.
#[test]
fn an_overloaded_consumer_does_not_erase_the_answer() {
    let model = |demand: f64| {
        format!(
            "G \"a consumer\" 1e-6 100 -1\nP 2\np web f\np worker f\n-1\nT 2\nt web n shop -1 web\nt worker n send -1 worker\n-1\n\
             E 2\na shop 10\ns shop 0.02 -1\nz shop send 1 -1\ns send {demand} -1\n-1\n"
        )
    };
    let folder = Folder::new();
    let solve = |name: &str, demand: f64| {
        let file = folder.file(name, &model(demand));
        let (code, text, words) = run(&["solve", &file, "--format", "json"]);
        let document: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{words}"));
        let response = document["entries"][0]["open_response"].as_f64();
        (code, response, document["tasks"][1]["throughput"].as_f64(), words)
    };
    let (code, idle, _, _) = solve("idle.lqn", 0.01);
    assert_eq!(code, 0);
    let (code, busy, served, words) = solve("busy.lqn", 0.2);
    assert_eq!(code, 3, "{words}");
    assert!(words.contains("`worker` gets 10 messages a second and serves 5: its backlog grows by 5/s"), "{words}");
    assert!(idle.zip(busy).is_some_and(|(idle, busy)| (busy / idle - 1.0).abs() < 1e-3), "{idle:?} {busy:?}");
    assert!(served.is_some_and(|served| (served - 5.0).abs() < 1e-3), "{served:?}");
}

/// So it is at a point of a what-if.
#[test]
fn an_overloaded_consumer_does_not_erase_a_point() {
    let folder = Folder::new();
    let model = "G \"a consumer\" 1e-6 100 -1\nP 2\np web f\np worker f\n-1\nT 2\nt web n shop -1 web\nt worker n send -1 worker\n-1\n\
                 E 2\na shop 10\ns shop 0.02 -1\nz shop send 1 -1\ns send 0.08 -1\n-1\n";
    let file = folder.file("t.lqn", model);
    let ask = |rest: &[&str]| run(&[&["whatif", &file, "--vary", "entry.shop.rate=10,15,60"], rest].concat());
    let (code, text, words) = ask(&["--format", "json"]);
    let document: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{words}"));
    let states: Vec<&str> = (0..3).filter_map(|at| document["points"][at]["state"].as_str()).collect();
    assert_eq!(states, ["converged", "backlog grows", "not converged"], "{text}");
    let first = |at: usize| document["points"][at]["figures"][0].as_f64();
    assert!(first(0).zip(first(1)).is_some_and(|(few, more)| more > few), "{text}");
    assert_eq!(first(2), None, "the first server is overloaded, too");
    assert_eq!(code, 3);
    assert!(words.contains("at 1 of 3 points consumers get more messages than they serve"), "{words}");
    assert!(words.contains("`worker` gets 15 messages a second and serves 12.5"), "{words}");
    assert!(ask(&[]).1.contains("BACKLOG GROWS"));
}
