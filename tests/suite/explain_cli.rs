//! Explanations, end to end: coverage, why a template does not take a node, where a number of the model comes from.

use serde_json::Value;

use crate::cli::{Folder, run};

#[test]
fn coverage_tells_what_fired_and_what_was_left() {
    let whole = run(&["coverage", "traces/rpc.angio", "traces/forwarding-1.angio"]);
    assert_eq!((whole.code, whole.err.as_str()), (0, ""));
    insta::assert_snapshot!("coverage", whole.out);
    let folder = Folder::new();
    let without = "template only_ends { order -9 match { e1 = Ed [j, k, m | a, v] } }\n";
    let own = folder.file("own.dl", without);
    assert_eq!(run(&["coverage", "traces/rpc.angio", "--rules", &own]).code, 0);
    let never = "template never { order -9 match { e1 = Jn(q) [j, k, m | a, v] } }\n";
    let idle = run(&["coverage", "traces/rpc.angio", "--rules", &folder.file("never.dl", never)]);
    assert_eq!(idle.code, 1, "a template of the user that never fires is a finding");
    assert!(idle.out.contains("never fired, of your files: never\n"), "{}", idle.out);
    // Without `activity`, the nodes between are nobody's.
    let narrow = "template activity { order 7 match { e1 = Ac [j, k, m | a, v] { name: \"no such\" } } }\n";
    let narrow = folder.file("narrow.dl", narrow);
    let left = run(&["coverage", "traces/rpc.angio", "--rules", &narrow]);
    assert_eq!(left.code, 1);
    insta::assert_snapshot!("coverage_left", left.out);
    let json = run(&["coverage", "traces/rpc.angio", "traces/rpc.angio", "--rules", &narrow, "--format", "json"]);
    let document: Value = serde_json::from_str(&json.out).expect("it is JSON");
    assert_eq!((json.code, &document["dyelog-coverage"]), (1, &Value::from(1)));
    assert_eq!(document["files"].as_array().map(Vec::len), Some(1), "the same file twice is one");
    assert_eq!(document["unprocessed"][0]["place"]["line"], 13);
    assert_eq!(document["all"]["unprocessed"], 1);
    assert_eq!(run(&["coverage", "no-such.angio"]).code, 2);
}

#[test]
fn why_not_is_answered_for_stamps_lines_and_spans() {
    let missed = run(&["why-not", "basic_rpc", "traces/rpc-phase2.angio:12"]);
    assert_eq!((missed.code, missed.err.as_str()), (0, ""));
    insta::assert_snapshot!("why_not", missed.out);
    for name in ["rpc2,1,2", "1,2", "|client,2", "12", "rpc2,1,2,Ac | client,2"] {
        let same = run(&["why-not", "basic_rpc", name, "traces/rpc-phase2.angio"]);
        assert_eq!(same.out, missed.out, "{name}");
    }
    let taken = run(&["why-not", "asynchronous", "1,5", "traces/rpc-phase2.angio"]);
    insta::assert_snapshot!("why_not_taken", taken.out);
    let span = run(&["why-not", "asynchronous", "f7ffa2fb5dfd04f3", "traces/shop.otlp.jsonl"]);
    insta::assert_snapshot!("why_not_span", span.out);
    let does = run(&["why-not", "basic_rpc", "1,2", "traces/rpc.angio", "--format", "json"]);
    let document: Value = serde_json::from_str(&does.out).expect("it is JSON");
    assert_eq!(document["dyelog-why-not"], 1);
    assert_eq!(document["answers"][0]["matches"], 2);
    let json = run(&["why-not", "basic_rpc", "12", "traces/rpc-phase2.angio", "--format", "json"]);
    let document: Value = serde_json::from_str(&json.out).expect("it is JSON");
    let nearest = &document["answers"][0]["tries"][0];
    assert_eq!((&nearest["passed"], &nearest["steps"]), (&Value::from(3), &Value::from(7)));
    assert_eq!(nearest["taken"][0]["by"]["template"], "rpc_phase2");
}

#[test]
fn a_node_that_is_not_there_comes_with_a_suggestion() {
    let asked = |node: &str, more: &[&str]| run(&[&["why-not", "basic_rpc", node], more].concat());
    for (node, more, told) in [
        ("rcp,1,2", &["traces/rpc.angio"][..], "did you mean `rpc`?"),
        ("1,22", &["traces/rpc.angio"], "thread 1 of run `1` has nodes 1 to 7"),
        ("9,1", &["traces/rpc.angio"], "run `1` has 1 threads, the last of them 1"),
        ("|client,9", &["traces/rpc.angio"], "task `client` has nodes 1 to 4 in run `1`"),
        ("traces/rpc.angio:9", &[], "line 10 has one"),
        ("1,2", &["traces/rpc.angio", "--run", "2"], "in run `2`"),
        ("f7ffa2fb5dfd04f4", &["traces/shop.otlp.jsonl"], "did you mean `f7ffa2fb5dfd04f3`?"),
        ("1,2", &[], "there is no trace to look for node `1,2` in"),
    ] {
        let refused = asked(node, more);
        assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{node}");
        assert!(refused.err.contains(told), "{node}: {}", refused.err);
    }
    let template = run(&["why-not", "basic_rcp", "1,2", "traces/rpc.angio"]);
    assert!(template.code == 2 && template.err.contains("did you mean `basic_rpc`?"), "{}", template.err);
}
