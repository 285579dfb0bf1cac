//! Saved sub-models: files merge as their traces would.

use std::fs;
use std::process::Command;

use dyelog::lqn::saved;
use dyelog::lqn::submodel::SubModel;
use dyelog::tlc::{ReduceOptions, Rules};
use proptest::prelude::*;

use crate::model::{merged, piece, submodel_of};
use crate::tlc::{bundled, reduce};

fn read(text: &str) -> SubModel {
    saved::parse(&"s.json".into(), text).unwrap_or_else(|errors| panic!("{errors}\n{text}")).0
}

/// The operations of a native trace, each as a text of its own.
fn operations(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if line.starts_with("operation") {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push_str(line);
            part.push('\n');
        }
    }
    parts
}

#[test]
fn a_file_is_what_was_saved() {
    for name in ["case-study.angio", "fork-join.angio", "two-scenarios.angio", "lost-reply.angio"] {
        let sub = reduce(&bundled(name), &Rules::shipped(), ReduceOptions::default()).submodel;
        let text = saved::write(&sub, "name");
        assert!(saved::is_saved(&text));
        assert_eq!(saved::write(&read(&text), "name"), text, "{name}");
    }
    let rpc = reduce(&bundled("activity.angio"), &Rules::shipped(), ReduceOptions::default()).submodel;
    let text = saved::write(&rpc, "name");
    assert!(
        text.starts_with("{\n  \"dyelog-submodel\": 1,\n  \"merge\": \"name\",\n  \"concurrent\": false,"),
        "{text}"
    );
}

#[test]
fn a_trace_split_in_any_way_gives_the_same_file() {
    let text: String =
        ["two-scenarios.angio", "call-back.angio", "rpc.angio", "forwarding-2.angio"].map(bundled).concat();
    let rules = Rules::shipped();
    let parts = operations(&text);
    assert!(parts.len() > 4);
    let of = |part: &str| reduce(part, &rules, ReduceOptions::default()).submodel;
    let whole = saved::write(&of(&parts.concat()), "name");
    for split in 1..parts.len() {
        let (left, right) = parts.split_at(split);
        let (left, right) = (saved::write(&of(&left.concat()), "name"), saved::write(&of(&right.concat()), "name"));
        for order in [[&left, &right], [&right, &left]] {
            let mut sum = read(order[0]);
            sum.merge(&read(order[1]));
            // Lines are counted within a file, and show where an entry was seen.
            assert_eq!(without_lines(&saved::write(&sum, "name")), without_lines(&whole), "split at {split}");
        }
    }
}

fn without_lines(text: &str) -> String {
    let shown = |line: &&str| !["\"item\"", "\"file\""].iter().any(|key| line.trim_start().starts_with(key));
    text.lines().filter(shown).collect::<Vec<_>>().join("\n")
}

#[test]
fn mistakes_in_a_file_are_told() {
    let sub = reduce(&bundled("rpc.angio"), &Rules::shipped(), ReduceOptions::default()).submodel;
    let text = saved::write(&sub, "name");
    for (from, to, code, words) in [
        ("\"dyelog-submodel\": 1", "\"dyelog-submodel\": 2", "L010", "version 2"),
        ("\"merge\"", "\"marge\"", "L001", "unknown field `marge`"),
        ("\"kind\": \"sync\"", "\"kind\": \"snyc\"", "L001", "unknown variant `snyc`"),
        ("\"to\": 1", "\"to\": 77", "L004", "there is no entry 77"),
        ("\"interaction\": \"R\"", "\"interaction\": \"Q\"", "L004", "`Q` is no type of interaction"),
        ("\"instance\": 1", "\"instance\": 0", "L004", "counted from 1"),
        ("\"phase\": 1", "\"phase\": 9", "L004", "a phase is 1, 2 or 3"),
        ("\"invocations\": 1", "\"invocations\": 9999999999999999", "L004", "more than can be counted"),
        ("\"femtoseconds\": \"", "\"femtoseconds\": \"x", "L004", "no whole number"),
        ("\"key\": \"", "\"key\": \"z", "L004", "no key of 32"),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        let Err(errors) = saved::parse(&"s.json".into(), &text.replacen(from, to, 1)) else {
            panic!("{to} is believed")
        };
        let told = errors.0.iter().any(|finding| finding.code.0 == code && finding.message.contains(words));
        assert!(told, "{to}: {errors}");
    }
}

/// The exit code, output and errors of the program in a folder.
pub fn run(folder: &std::path::Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_dyelog"))
        .args(arguments)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .output()
        .expect("the binary was built for this test");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program writes UTF-8");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

#[test]
fn files_merge_solve_and_take_a_configuration() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = folder.path();
    let trace = |name: &str| format!("{}/traces/{name}", env!("CARGO_MANIFEST_DIR"));
    let (study, config) =
        (trace("case-study.angio"), format!("{}/examples/case-study.toml", env!("CARGO_MANIFEST_DIR")));
    let (two, spans) = (trace("two-scenarios.angio"), trace("shop.otlp.jsonl"));
    for (source, file) in [(&study, "a.json"), (&two, "b.json"), (&spans, "c.json")] {
        assert_eq!(run(at, &["model", source, "--format", "submodel", "-o", file]).0, 0);
    }
    let direct = run(at, &["model", &study, &two, &spans, "--format", "json"]);
    assert_eq!(run(at, &["model", "c.json", "a.json", "b.json", "--format", "json"]).1, direct.1);
    assert_eq!(run(at, &["merge", "b.json", "c.json", "a.json", "-o", "all.json"]).0, 0);
    assert_eq!(run(at, &["model", "all.json", "--format", "json"]).1, direct.1);
    let (code, again, _) = run(at, &["merge", "a.json", "b.json", "c.json"]);
    assert_eq!((code, again), (0, fs::read_to_string(at.join("all.json")).expect("it was written")));
    // Tasks of the native format stay sequential, and a configuration goes on top.
    let solved = run(at, &["solve", "a.json", "--config", &config, "--format", "csv"]);
    assert_eq!(solved.1, run(at, &["solve", &study, "--config", &config, "--format", "csv"]).1);
    assert_eq!(solved.0, 0);

    assert_eq!(run(at, &["model", &two, "--merge", "none", "--format", "submodel", "-o", "none.json"]).0, 0);
    let (code, _, words) = run(at, &["merge", "b.json", "none.json"]);
    assert!(code == 2 && words.contains("--merge none") && words.contains("--merge name"), "{words}");
    // Beside traces, too, wherever they stand.
    assert_eq!(run(at, &["model", &study, "c.json", &two, "--format", "json"]).1, direct.1);
    assert_eq!(run(at, &["model", "b.json", &study, "c.json", "--format", "json"]).1, direct.1);
    let (code, _, words) = run(at, &["model", "none.json", &study]);
    assert!(code == 2 && words.contains("`--merge none` makes the same of the traces"), "{words}");
    assert_eq!(run(at, &["model", "none.json", &study, "--merge", "none"]).0, 0);
    let (code, _, words) = run(at, &["model", &study, "--format", "submodel", "--config", &config]);
    assert!(code == 2 && words.contains("C005"), "{words}");
    // What stands in two of them is told of.
    for files in [&["b.json", "a.json", "b.json"][..], &["a.json", "all.json"], &["a.json", study.as_str()]] {
        let (code, _, words) = run(at, &[&["merge"][..], files].concat());
        assert_eq!((code, words.matches("warning[M034]").count()), (0, 1), "{words}");
    }
    assert!(!run(at, &["merge", "b.json", "c.json", "a.json"]).2.contains("M034"));
}

/// Files that were saved without the times of starts between the first and the last are read as before.
#[test]
fn starts_are_kept_and_may_be_missing() {
    let shop = format!("{}/traces/shop.otlp.jsonl", env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = folder.path();
    assert_eq!(run(at, &["model", &shop, "--format", "submodel", "-o", "shop.json"]).0, 0);
    let text = fs::read_to_string(at.join("shop.json")).expect("it was written");
    let mut document: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let scenarios = document["scenarios"].as_array_mut().expect("a list");
    let cells = scenarios[0]["starts"]["cells"].as_array().expect("cells").clone();
    let counted: u64 = cells.iter().filter_map(|cell| cell[2].as_u64()).sum();
    assert_eq!(Some(counted), scenarios[0]["operations"].as_u64());
    let mut turned = cells.clone();
    turned.reverse();
    let first = scenarios[0].clone();
    scenarios[0]["starts"]["cells"] = turned.into();
    let Err(errors) = saved::parse(&"s.json".into(), &document.to_string()) else { panic!("time goes back") };
    assert!(errors.to_string().contains("`starts` are not in the order of time"), "{errors}");
    let scenarios = document["scenarios"].as_array_mut().expect("a list");
    scenarios[0] = first;
    for scenario in scenarios {
        scenario.as_object_mut().expect("an object").remove("starts");
    }
    fs::write(at.join("old.json"), document.to_string()).expect("the folder is writable");
    assert_eq!(run(at, &["model", "old.json"]).1, run(at, &["model", "shop.json"]).1);
}

/// Quantiles of what was traced are those of all files; where one was saved without them, they are those of a part, and not told.
#[test]
fn quantiles_of_responses_are_kept_and_may_be_missing() {
    let shop = format!("{}/traces/shop.otlp.jsonl", env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = folder.path();
    assert_eq!(run(at, &["model", &shop, "--format", "submodel", "-o", "shop.json"]).0, 0);
    let traced = |file: &str| -> serde_json::Value {
        let text = run(at, &["solve", file, "--format", "json"]).1;
        let results: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(results["scenarios"][0]["traced"], results["outlook"]["loads"][0]["traced"]);
        results["scenarios"][0]["traced"].clone()
    };
    let of = |values: &serde_json::Value, key: &str| values[key].as_f64().expect("a number");
    let found = traced("shop.json");
    assert_eq!(found, traced(&shop));
    assert!(of(&found, "p50") < of(&found, "p95") && of(&found, "p95") <= of(&found, "p99"), "{found}");
    let text = fs::read_to_string(at.join("shop.json")).expect("it was written");
    let mut document: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    document["scenarios"][0]["responses"] = "7 1 7 1".into();
    let Err(errors) = saved::parse(&"s.json".into(), &document.to_string()) else { panic!("a bucket is there twice") };
    assert!(errors.to_string().contains("`responses` are not two numbers a bucket"), "{errors}");
    document["scenarios"][0].as_object_mut().expect("an object").remove("responses");
    fs::write(at.join("old.json"), document.to_string()).expect("the folder is writable");
    let old = traced("old.json");
    assert!(old["p50"].is_null() && old["response"] == found["response"], "{old}");
}

#[test]
fn a_starting_configuration_changes_nothing() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/traces")).expect("traces are there") {
        let path = entry.expect("the folder is readable").path();
        if path.is_dir() || path.extension().is_some_and(|extension| extension == "md") {
            continue;
        }
        let trace = path.display().to_string();
        let (code, _, words) = run(folder.path(), &["config", "init", &trace, "-o", "c.toml", "--force"]);
        assert_eq!(code, 0, "{words}");
        let (code, said, words) = run(folder.path(), &["config", "check", "c.toml"]);
        assert_eq!((code, &*said, &*words), (0, "no findings\n", ""), "{trace}");
        let plain = run(folder.path(), &["model", &trace]);
        let configured = run(folder.path(), &["model", &trace, "--config", "c.toml"]);
        assert!(same_but_for_rounding(&plain.1, &configured.1), "{trace}");
        assert!(!configured.2.contains("M011") && !configured.2.contains("M018"), "every choice is written down");
    }
    let text = fs::read_to_string(folder.path().join("c.toml")).expect("it was written");
    assert!(text.starts_with("# What traces cannot tell."), "{text}");
    fs::write(folder.path().join("bad.toml"), "[task.a]\nthreads = 0\n").expect("it can be written");
    let (code, said, _) = run(folder.path(), &["config", "check", "bad.toml"]);
    assert!(code == 1 && said.contains("M003"), "{said}");
}

/// Whether texts have the same words, and numbers that are alike to the four digits that a configuration has.
fn same_but_for_rounding(left: &str, right: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let parts = text.split(|character: char| character.is_whitespace() || "(),;:=".contains(character));
        parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let (left, right) = (words(left), words(right));
    let alike = |(one, other): (&String, &String)| match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(one), Ok(other)) => (one - other).abs() <= 6e-4 * one.abs().max(other.abs()),
        _ => one == other,
    };
    left.len() == right.len() && left.iter().zip(&right).all(alike)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Merging what is read from files is reading what was merged, whatever the parts and their order.
    #[test]
    fn saving_and_merging_commute(pieces in prop::collection::vec(piece(), 1..8), turn in 0..8_usize) {
        let parts: Vec<SubModel> = pieces.iter().map(submodel_of).collect();
        let whole = saved::write(&merged(&parts), "name");
        let mut read_back: Vec<SubModel> = parts.iter().map(|part| read(&saved::write(part, "name"))).collect();
        let length = read_back.len();
        read_back.rotate_left(turn % length);
        prop_assert_eq!(saved::write(&merged(&read_back), "name"), whole);
    }

    #[test]
    fn any_text_is_survived(text in "\\PC{0,200}") {
        let _ = saved::parse(&"s.json".into(), &format!("{{\"dyelog-submodel\": 1{text}"));
    }
}

/// What a model file says of load, tasks and processors is a configuration, which its own traces fit.
#[test]
fn a_configuration_starts_from_a_model_file() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = folder.path();
    let study = format!("{}/traces/case-study.angio", env!("CARGO_MANIFEST_DIR"));
    let config = format!("{}/examples/case-study.toml", env!("CARGO_MANIFEST_DIR"));
    for language in ["lqn", "lqnx", "json"] {
        let file = format!("study.{language}");
        let made = ["model", &study, "--config", &config, "--format", language, "-o", &file];
        assert_eq!(run(at, &made).0, 0);
        let (code, _, words) = run(at, &["config", "init", &file, "-o", "own.toml", "--force"]);
        assert_eq!((code, &*words), (0, ""));
        let (code, said, _) = run(at, &["config", "check", "own.toml"]);
        assert_eq!((code, &*said), (0, "no findings\n"));
    }
    let text = fs::read_to_string(at.join("own.toml")).expect("it was written");
    for told in [
        "[scenario.set-up]\npopulation = 20\nthink_time = \"1 s\"\n",
        "[task.NumTrans1]\nprocessor = \"Processor 3\"\nthreads = 1\n",
        "[processor.\"Processor 3\"]\nmultiplicity = 1\nscheduling = \"ps\"\n",
        "# R7 = \"0.0025 s\"\n",
    ] {
        assert!(text.contains(told), "{told}\n{text}");
    }
    // With its demands it makes the same model of the trace, but for the customer task, which no model file names.
    let demands: String = text
        .lines()
        .map(|line| line.strip_prefix("# ").filter(|rest| rest.contains(" = \"0.")).unwrap_or(line).to_owned() + "\n")
        .collect();
    let demands = demands.replace("[scenario.set-up]", "[scenario.set-up]\ncustomer = \"Terminals\"");
    fs::write(at.join("own.toml"), demands).expect("the folder is writable");
    let again = run(at, &["model", &study, "--config", "own.toml", "--format", "lqn"]);
    assert_eq!(again.1, fs::read_to_string(at.join("study.lqn")).expect("it was written"), "{}", again.2);
}
