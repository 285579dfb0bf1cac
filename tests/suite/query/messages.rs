//! Questions to traces that tell of messages, and not of operations.

use std::collections::BTreeSet;
use std::path::Path;

use super::cli::{dyelog, query};

/// The rows of a relation, as CSV without its header.
fn rows(arguments: &[&str]) -> Vec<String> {
    let (code, out, err) = query(&[arguments, &["--format", "csv"]].concat());
    assert_eq!(code, 0, "{arguments:?}: {err}");
    out.lines().skip(1).map(str::to_owned).collect()
}

/// The traces of messages that are bundled.
fn bundled() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/same");
    let names = std::fs::read_dir(folder).expect("they are bundled").map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let mut names: Vec<String> = names.map(|name| format!("traces/same/{name}")).collect();
    names.sort();
    names
}

/// The example of the paper, whose interactions it tells (2005 paper, Figure 3).
#[test]
fn figure_3a_is_told_by_facts() {
    let ask = |relation: &str| rows(&["--relation", relation, "traces/same/figure-3a.csv"]);
    assert_eq!(ask("message"), ["1,A,B", "2,B,C", "3,C,B", "4,B,D", "5,B,E", "6,E,A"]);
    assert_eq!(ask("message_kind"), ["1,request", "2,request", "3,reply", "4,asynchronous", "5,forward", "6,reply"]);
    assert_eq!(ask("message_reply"), ["1,6", "2,3"]);
    assert_eq!(ask("message_cause"), ["2,1", "3,2", "4,1", "5,1", "6,5"]);
    assert_eq!(ask("message_name"), ["1,m1", "2,m2", "3,m3", "4,m4", "5,m5", "6,m6"]);
    assert_eq!(ask("message_received")[0], "1,1000000000");
    assert_eq!(ask("message_place")[5], "6,traces/same/figure-3a.csv,8");
    assert_eq!(ask("message_thread")[0], "1,1,1");
    assert_eq!(ask("interaction"), ["1,sync,B,C", "2,forward,A,E", "3,async,B,D"]);
    assert_eq!(ask("interaction_message"), ["1,1,2", "1,2,3", "2,1,1", "2,2,5", "2,3,6", "3,1,4"]);
    assert_eq!(ask("entry"), ["E1,B,m1,R", "E2,C,m2,R", "E4,D,m4,A", "E5,E,m5,F"]);
    assert_eq!(ask("request"), ["E1,E2", "E1,E4", "E1,E5"]);
    assert_eq!(ask("entry_message"), ["E1,1", "E2,2", "E4,4", "E5,5"]);
}

/// Facts and the list of interactions are two ways to one analysis.
#[test]
fn facts_are_those_of_the_list_of_interactions() {
    let mut compared = 0;
    for trace in bundled() {
        let (code, out, _) = dyelog(&["matches", &trace, "--format", "csv"]);
        if code != 0 {
            continue;
        }
        let name = |occurrence: &str| occurrence.rsplit_once('.').map_or(occurrence, |(name, _)| name).to_owned();
        let name = |occurrence: &str| name(occurrence).split('(').next().unwrap_or_default().to_owned();
        let mut listed: Vec<String> = Vec::new();
        for line in out.lines().skip(1) {
            let fields: Vec<&str> = line.split(',').collect();
            listed.push(format!("{},{},{}", fields[0], name(fields[2]), name(fields[3])));
        }
        let mut found: Vec<String> = rows(&["--relation", "interaction", &trace])
            .iter()
            .map(|row| row.split_once(',').expect("four columns").1.to_owned())
            .collect();
        listed.sort();
        found.sort();
        assert_eq!(found, listed, "{trace}");
        // Every message is in an interaction or lost, and is one thing.
        let messages = rows(&["--relation", "message", &trace]).len();
        let kinds = rows(&["--relation", "message_kind", &trace]);
        let kinds: BTreeSet<&str> = kinds.iter().filter_map(|row| row.split(',').next()).collect();
        assert_eq!(kinds.len(), messages, "{trace}");
        compared += 1;
    }
    assert!(compared > 7, "only {compared}");
}

/// Times are those of the ends, and what is never received is told.
#[test]
fn lost_messages_and_their_times_are_facts() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("events.csv");
    let text = "time,event,process,message\n1.5,send,a,1\n1.75,receive,b,1\n2,send,b,2\n2.25,receive,a,2\n3,send,a,3\n";
    std::fs::write(&file, text).expect("written");
    let file = file.to_str().expect("a path");
    let lost = "lost(A, T) :- message_kind(M, \"lost\"), message(M, A, _), message_sent(M, T)";
    assert_eq!(rows(&["-e", lost, file]), ["a,3000000000"]);
    let way = "way(M, D) :- message_sent(M, S), message_received(M, R), D = R - S";
    assert_eq!(rows(&["-e", way, file]), ["1,250000000", "2,250000000"]);
    // Files are traces of their own, unless they are said to be parts of one.
    assert_eq!(rows(&["--relation", "message_place", file, file]).len(), 6);
    let twice = rows(&["--relation", "message_reply", file, file]);
    assert_eq!(twice, ["1,2", "4,5"]);
}

#[test]
fn each_sort_of_trace_has_its_own_facts() {
    let message = "traces/same/figure-3a.csv";
    let refused = |arguments: &[&str], code: &str| {
        let (exit, out, err) = query(arguments);
        assert_eq!((exit, &*out), (2, ""), "{arguments:?}");
        assert!(err.contains(code), "{err}");
    };
    refused(&["--relation", "span", message], "Q009");
    refused(&["-e", "q(A) :- message(_, A, _), !node(A)", message], "R0");
    refused(&["-e", "use \"std/tree.dl\" q(S) :- leaf(S)", message], "Q009");
    refused(&["-e", "q(A) :- message(_, A, _)", "traces/shop.otlp.jsonl"], "Q009");
    refused(&["--scope", "operation", "--relation", "message", message], "C005");
    refused(&["--guess-threads", "--relation", "root", "traces/shop.otlp.jsonl"], "C005");
    // What a file brings along and the answer does not need is no hindrance.
    assert_eq!(rows(&["-e", "use \"std/tree.dl\" q(A) :- message(_, A, \"B\")", message]), ["A", "C"]);
    let (_, out, _) = query(&["--relation", "message", message, "--format", "json"]);
    let document: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&document["scope"], &document["messages"]), (&"messages".into(), &6.into()));
    let (_, _, err) = query(&["-e", "q(M) :- message(M, \"AA\", _)", message]);
    assert!(err.contains("Q003") && err.contains("did you mean `A`"), "{err}");
}
