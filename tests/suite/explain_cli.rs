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
        ("9,1", &["traces/rpc.angio"], "run `1` has one thread, 1"),
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

#[test]
fn a_node_is_explained_by_the_match_that_took_it() {
    let forwarded = run(&["explain", "traces/forwarding-1.angio:14"]);
    assert_eq!((forwarded.code, forwarded.err.as_str()), (0, ""));
    insta::assert_snapshot!("explain_node", forwarded.out);
    assert_eq!(run(&["explain", "traces/forwarding-1.angio", "--node", "f1,1,2"]).out, forwarded.out);
    let span = run(&["explain", "traces/shop.otlp.jsonl", "--node", "f7ffa2fb5dfd04f3"]);
    insta::assert_snapshot!("explain_span", span.out);
    let json = run(&["explain", "traces/fork-join.angio", "--node", "1,4", "--format", "json"]);
    let document: Value = serde_json::from_str(&json.out).expect("it is JSON");
    assert_eq!(document["dyelog-explanation"], 1);
    let found = &document["nodes"][0]["match"];
    assert_eq!((&found["template"], &found["role"]), (&Value::from("parallel_branch"), &Value::from("e1")));
    assert_eq!(found["variables"]["a"], "gateway");
    assert_eq!(found["did"][0]["caused"]["join"], "page,1,9");
    assert_eq!(document["nodes"][0]["entry"]["name"], "page");
    // What no template takes is said, too.
    let folder = Folder::new();
    let narrow = "template activity { order 7 match { e1 = Ac [j, k, m | a, v] { name: \"no such\" } } }\n";
    let narrow = folder.file("narrow.dl", narrow);
    let nobody = run(&["explain", "traces/rpc.angio:13", "--rules", &narrow]);
    assert!(nobody.code == 0 && nobody.out.contains("no template takes it"), "{}", nobody.out);
}

#[test]
fn elements_of_the_model_are_explained_down_to_events() {
    for (name, arguments) in [
        ("explain_entry", &["traces/case-study.angio", "--entry", "F4"][..]),
        ("explain_request", &["traces/case-study.angio", "--request", "F4 -> R7 (sync)"]),
        ("explain_demand", &["traces/rpc-phase2.angio", "--demand", "store"]),
        ("explain_spans", &["traces/shop.otlp.jsonl", "--request", "POST /checkout/{id} -> GET /products/{id}"]),
        ("explain_graph", &["traces/shop.otlp.jsonl", "--demand", "GET /product/{id}"]),
    ] {
        let explained = run(&[&["explain"][..], arguments].concat());
        assert_eq!((explained.code, explained.err.as_str()), (0, ""), "{name}");
        insta::assert_snapshot!(name, explained.out);
    }
    let all = run(&["explain", "traces/shop.otlp.jsonl", "--entry", "process confirmations", "--all"]);
    assert_eq!(all.out.matches("process confirmations of mailer (consumer)").count(), 67);
    let json = run(&["explain", "traces/shop.otlp.jsonl", "--demand", "GET /stock/{id}", "--format", "json"]);
    let document: Value = serde_json::from_str(&json.out).expect("it is JSON");
    assert_eq!((&document["dyelog-explanation"], &document["invocations"]), (&Value::from(1), &Value::from(133)));
    assert_eq!(document["demands"][0]["source"], "cpu");
    assert_eq!(document["evidence"]["examples"][0]["node"]["span"]["service"], "inventory");
}

#[test]
fn demands_lead_to_the_lines_of_the_configuration() {
    let folder = Folder::new();
    let text = "[demand]\ndefault = \"1 ms\"\n\n[demand.activity]\nserve = \"2 ms\"\n\n[demand.entry]\nF4 = \"7 ms\"\n";
    let config = folder.file("demands.toml", text);
    let asked = |entry: &str| {
        let told = run(&["explain", "traces/case-study.angio", "--config", &config, "--demand", entry]);
        assert_eq!(told.code, 0, "{}", told.err);
        told.out.replace(&config, "demands.toml")
    };
    assert!(asked("F4").contains("demand, phase 1: 7 ms, set in demands.toml:8\n"), "{}", asked("F4"));
    let function = "activity serve: 2 times, 2 ms each, set in demands.toml:5\n";
    assert!(asked("F5").contains(function), "{}", asked("F5"));
}

#[test]
fn what_cannot_be_explained_is_refused_with_a_hint() {
    for (arguments, told) in [
        (&["traces/rpc.angio"][..], "`--node NODE`, `--entry ENTRY`"),
        (&["traces/rpc.angio", "traces/figure-3.angio"], "`--node NODE`, `--entry ENTRY`"),
        (&["traces/rpc.angio", "--demand", "finde"], "did you mean `find`?"),
        (&["traces/rpc.angio", "--request", "find -> client_1"], "it makes none"),
        (&["traces/rpc.angio", "--request", "client_1 -> client_1"], "it makes some to `find`"),
        (&["traces/rpc.angio", "--request", "find"], "names no request"),
        (&["traces/rpc.angio", "--node", "1,70"], "thread 1 of run `1` has nodes 1 to 7"),
        (&["-", "--entry", "find"], "put them into a file"),
        (&["traces/rpc.angio", "--entry", "find", "--node", "1,2"], "cannot be used with"),
        (&["no-such.angio:7"], "is no code"),
    ] {
        let refused = run(&[&["explain"][..], arguments].concat());
        assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{arguments:?}");
        assert!(refused.err.contains(told), "{arguments:?}: {}", refused.err);
    }
    let folder = Folder::new();
    let saved = crate::cli::shown(&folder.path("rpc.json"));
    assert_eq!(run(&["model", "traces/rpc.angio", "--format", "submodel", "-o", &saved]).code, 0);
    let refused = run(&["explain", &saved, "--entry", "find"]);
    assert!(refused.code == 2 && refused.err.contains("name the traces that it was made of"), "{}", refused.err);
}

#[test]
fn activities_of_the_model_are_explained_like_entries() {
    let trace = "traces/nested-fork.angio";
    let demand = run(&["explain", trace, "--demand", "page.b1.1"]);
    assert_eq!(demand.code, 0, "{}", demand.err);
    for told in [
        "activity page, fork 1 branch 1 of entry page of task gateway",
        "1 execution, in 1 operation",
        "request page, fork 1 branch 1 -> count (sync): 1",
    ] {
        assert!(demand.out.contains(told), "{told}: {}", demand.out);
    }
    // Its evidence is that of its branch alone.
    let all = run(&["explain", trace, "--demand", "page", "--all"]);
    let nodes = |text: &str| text.lines().filter(|line| line.contains(trace)).count();
    assert!(nodes(&demand.out) > 0 && nodes(&demand.out) < nodes(&all.out), "{}", demand.out);
    let request = run(&["explain", trace, "--request", "page.b1.2.b1.1 -> quote"]);
    assert_eq!((request.code, nodes(&request.out)), (0, 1), "{}{}", request.out, request.err);
    let json = run(&["explain", trace, "--entry", "page.b1.1", "--format", "json"]);
    assert!(json.out.contains("\"activity\": \"page.b1.1\""), "{}", json.out);
    let other = run(&["explain", trace, "--request", "page.b1.1 -> quote"]);
    assert_eq!(other.code, 2);
    assert!(other.err.contains("`page.b1.1` makes no request to `quote`"), "{}", other.err);
}

/// Requests that a match makes in rounds are made where each is sent.
#[test]
fn a_request_of_a_round_is_made_at_its_own_node() {
    let told = run(&[
        "explain",
        "traces/multicast.angio",
        "--request",
        "publish -> desk.price",
        "--rules",
        "ext/multicast.dl",
    ]);
    assert_eq!(told.code, 0, "{}", told.err);
    let first = run(&[
        "explain",
        "traces/multicast.angio",
        "--request",
        "publish -> screen.price",
        "--rules",
        "ext/multicast.dl",
    ]);
    let made_at = |text: &str| {
        text.lines()
            .filter(|line| line.contains(",Fk("))
            .map(|line| line.split("  ").next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    let (one, other) = (made_at(&told.out), made_at(&first.out));
    assert!(!one.is_empty() && one != other, "{}\n{}", told.out, first.out);
}

const CALLS: &str = "examples/rules/calls.dl";

#[test]
fn a_fact_is_proved_down_to_the_lines_of_the_trace() {
    let one = run(&["explain", CALLS, "traces/rpc.angio", "--fact", "reaches(\"1,2\", \"1,5\")"]);
    assert_eq!((one.code, one.err.as_str()), (0, ""));
    insta::assert_snapshot!(one.out, @r#"
    rpc run=1
    reaches("traces/rpc.angio:11", "traces/rpc.angio:14")  by examples/rules/calls.dl:5
      reaches("traces/rpc.angio:11", "traces/rpc.angio:13")  by examples/rules/calls.dl:5
        reaches("traces/rpc.angio:11", "traces/rpc.angio:12")  by examples/rules/calls.dl:4
          edge("traces/rpc.angio:11", "traces/rpc.angio:12")  a fact
        edge("traces/rpc.angio:12", "traces/rpc.angio:13")  a fact
      edge("traces/rpc.angio:13", "traces/rpc.angio:14")  a fact
    "#);
    let deep = run(&["explain", CALLS, "traces/rpc.angio", "--fact", "reaches(\"1,2\", \"1,5\")", "--depth", "1"]);
    insta::assert_snapshot!(deep.out, @r#"
    rpc run=1
    reaches("traces/rpc.angio:11", "traces/rpc.angio:14")  by examples/rules/calls.dl:5
      reaches("traces/rpc.angio:11", "traces/rpc.angio:13")  by examples/rules/calls.dl:5; 2 premises left out
      edge("traces/rpc.angio:13", "traces/rpc.angio:14")  a fact
    "#);
    let absent = run(&["explain", CALLS, "traces/rpc.angio", "--fact", "hands_over(_, _)"]);
    insta::assert_snapshot!(absent.out, @r#"
    rpc run=1
    hands_over("traces/rpc.angio:11", "traces/rpc.angio:12")  by examples/rules/calls.dl:8
      edge("traces/rpc.angio:11", "traces/rpc.angio:12")  a fact
      task("traces/rpc.angio:11", "client", 2)  a fact
      task("traces/rpc.angio:12", "server", 1)  a fact
      no forks("traces/rpc.angio:11", _)  no such row
    "#);
    let counted = run(&["explain", CALLS, "traces/rpc.angio", "--fact", "spread(\"1,2\", _)"]);
    insta::assert_snapshot!(counted.out, @r#"
    rpc run=1
    spread("traces/rpc.angio:11", 2)  by examples/rules/calls.dl:11
      node("traces/rpc.angio:11")  a fact
      count = 2  over 2 rows
        touches("traces/rpc.angio:11", "server")  by examples/rules/calls.dl:12
          reaches("traces/rpc.angio:11", "traces/rpc.angio:12")  by examples/rules/calls.dl:4
            edge("traces/rpc.angio:11", "traces/rpc.angio:12")  a fact
          task("traces/rpc.angio:12", "server", 1)  a fact
        touches("traces/rpc.angio:11", "client")  by examples/rules/calls.dl:12
          reaches("traces/rpc.angio:11", "traces/rpc.angio:15")  by examples/rules/calls.dl:4
            edge("traces/rpc.angio:11", "traces/rpc.angio:15")  a fact
          task("traces/rpc.angio:15", "client", 3)  a fact
    "#);
    let all = run(&["explain", CALLS, "traces/rpc.angio", "--all", "--format", "json"]);
    assert_eq!((all.code, all.err.as_str()), (0, ""));
    let document: Value = serde_json::from_str(&all.out).expect("it is JSON");
    assert_eq!(document["dyelog-proofs"], 1);
    for proof in document["proofs"].as_array().expect("a list") {
        let rows = proof["rows"].as_array().expect("a list");
        for row in rows {
            for premise in row["premises"].as_array().expect("a list") {
                assert!(premise.as_u64().is_some_and(|place| (place as usize) < rows.len()), "{row}");
            }
        }
    }
}

/// Best values of a recursion, down to the trace; aggregates, as far as rows are shown.
const TOTALS: &str = "longest(X, 0) :- node(X), !edge(_, X).
longest(Y, D) :- D = max L { edge(X, Y), longest(X, P), L = P + 1 }.
end(D) :- D = max L { longest(_, L) }.
nodes(N) :- N = count { node(_) }.
ways(S) :- S = sum L { longest(_, L) }.
middle(M) :- M = mean L { longest(_, L) }.
early(M) :- M = mean L { longest(_, L), L < 4 }.
late(V) :- V = p50 L { longest(_, L) }.
output longest, end, nodes, ways, middle, early, late.
";

#[test]
fn a_best_value_is_proved_by_what_it_comes_from() {
    let folder = Folder::new();
    let rules = folder.file("totals.dl", TOTALS);
    let proof = |fact: &str| {
        let said = run(&["explain", &rules, "traces/rpc.angio", "--fact", fact]);
        assert_eq!((said.code, said.err.as_str()), (0, ""));
        said.out.replace(&rules, "totals.dl")
    };
    insta::assert_snapshot!(proof("longest(\"1,4\", _)"), @r#"
    rpc run=1
    longest("traces/rpc.angio:13", 3)  by totals.dl:2
      edge("traces/rpc.angio:12", "traces/rpc.angio:13")  a fact
      longest("traces/rpc.angio:12", 2)  by totals.dl:2
        edge("traces/rpc.angio:11", "traces/rpc.angio:12")  a fact
        longest("traces/rpc.angio:11", 1)  by totals.dl:2
          edge("traces/rpc.angio:10", "traces/rpc.angio:11")  a fact
          longest("traces/rpc.angio:10", 0)  by totals.dl:1
            node("traces/rpc.angio:10")  a fact
            no edge(_, "traces/rpc.angio:10")  no such row
    "#);
    let end = proof("end(_)");
    let top: Vec<&str> = end.lines().take(4).collect();
    insta::assert_snapshot!(top.join("\n"), @r#"
    rpc run=1
    end(6)  by totals.dl:3
      max = 6  over 7 rows
        longest("traces/rpc.angio:16", 6)  by totals.dl:2
    "#);
}

#[test]
fn aggregates_show_some_rows_and_count_the_others() {
    let folder = Folder::new();
    let rules = folder.file("totals.dl", TOTALS);
    let proof = |fact: &str, more: &[&str]| {
        let mut arguments = vec!["explain", &rules, "traces/rpc.angio", "--fact", fact];
        arguments.extend(more);
        let said = run(&arguments);
        assert_eq!((said.code, said.err.as_str()), (0, ""));
        said.out.replace(&rules, "totals.dl")
    };
    insta::assert_snapshot!(proof("nodes(_)", &[]), @r#"
    rpc run=1
    nodes(7)  by totals.dl:4
      count = 7  over 7 rows
        node("traces/rpc.angio:10")  a fact
        node("traces/rpc.angio:11")  a fact
        node("traces/rpc.angio:12")  a fact
        node("traces/rpc.angio:13")  a fact
        node("traces/rpc.angio:14")  a fact
        … and 2 more
    "#);
    for (fact, words, shown) in [("ways(_)", "sum", 5), ("middle(_)", "mean", 5), ("late(_)", "p50", 1)] {
        let text = proof(fact, &["--depth", "2"]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[2].starts_with(&format!("  {words} = ")), "{text}");
        assert!(lines[2].ends_with("over 7 rows"), "{text}");
        assert_eq!(lines.last().copied(), Some(format!("    … and {} more", 7 - shown).as_str()), "{text}");
        assert_eq!(lines.len(), 3 + shown + 1, "{text}");
    }
    let all = proof("nodes(_)", &["--all"]);
    assert!(all.contains("over 7 rows\n") && all.lines().count() == 10, "{all}");
    let json = proof("early(_)", &["--format", "json"]);
    let document: Value = serde_json::from_str(&json).expect("it is JSON");
    let rows = &document["proofs"][0]["rows"];
    assert_eq!((&rows[0]["arguments"][0], &rows[1]["value"]), (&Value::from(1.5), &Value::from(1.5)), "{json}");
    for (fact, shown, left_out) in [("nodes(_)", 5, 2), ("end(_)", 1, 6)] {
        let json = proof(fact, &["--format", "json"]);
        let document: Value = serde_json::from_str(&json).expect("it is JSON");
        let rows = document["proofs"][0]["rows"].as_array().expect("a list");
        let total = rows.iter().find(|row| row["rows"] == 7).expect("an aggregate over 7 rows");
        assert_eq!(total["left_out"], left_out, "{total}");
        assert_eq!(total["premises"].as_array().map(Vec::len), Some(shown), "{total}");
    }
}

/// One thread of ten thousand nodes.
fn long_trace(folder: &Folder) -> String {
    let mut trace = "operation s run=1\ns,1,1,Be | A,1\n".to_owned();
    for node in 2..10_000 {
        trace.push_str(&format!("s,1,{node},Ac | A,{node}\n"));
    }
    trace.push_str("s,1,10000,Ed | A,10000\n");
    folder.file("long.angio", &trace)
}

/// A row of a long recursion over best values rests on ten thousand others: each is proved once.
#[test]
fn a_deep_best_value_is_proved_in_linear_time() {
    let folder = Folder::new();
    let trace = long_trace(&folder);
    let rules = folder.file("totals.dl", TOTALS);
    let json = run(&["explain", &rules, &trace, "--fact", "end(9999)", "--format", "json"]);
    assert_eq!((json.code, json.err.as_str()), (0, ""));
    let document: Value = serde_json::from_str(&json.out).expect("it is JSON");
    // 10,000 rows and the end; 9,999 edges, the first node, and that nothing leads to it; the aggregate and what it ranges over.
    assert_eq!(document["proofs"][0]["rows"].as_array().map(Vec::len), Some(20_004));
}

#[test]
fn why_not_of_a_fact_shows_the_nearest_rule() {
    let not = run(&["why-not", CALLS, "reaches(\"1,5\", \"1,2\")", "traces/rpc.angio"]);
    assert_eq!((not.code, not.err.as_str()), (0, ""));
    insta::assert_snapshot!(not.out, @r#"
    rpc run=1
    reaches("traces/rpc.angio:14", "traces/rpc.angio:11") does not hold
    rule examples/rules/calls.dl:5, the nearest of 2 rules: 1 of 2 literals hold
    with X = "traces/rpc.angio:14", Z = "traces/rpc.angio:11", Y = "traces/rpc.angio:15"
    stops: `edge(Y, Z)`: there is no edge("traces/rpc.angio:15", "traces/rpc.angio:11")
      edge("traces/rpc.angio:10", "traces/rpc.angio:11")  differs in column 1
      edge("traces/rpc.angio:15", "traces/rpc.angio:16")  differs in column 2
    rows that hold and differ in one column:
      reaches("traces/rpc.angio:10", "traces/rpc.angio:11")  differs in column 1
      reaches("traces/rpc.angio:14", "traces/rpc.angio:15")  differs in column 2
      reaches("traces/rpc.angio:14", "traces/rpc.angio:16")  differs in column 2
    "#);
    let compared = run(&["why-not", CALLS, "hands_over(\"1,1\", _)", "traces/rpc.angio"]);
    insta::assert_snapshot!(compared.out, @r#"
    rpc run=1
    hands_over("traces/rpc.angio:10", _) does not hold
    rule examples/rules/calls.dl:8: 4 of 5 literals hold
    with X = "traces/rpc.angio:10", Y = "traces/rpc.angio:11", A = "client", B = "client"
    stops: `A != B`: the left is "client", the right is "client"
    "#);
    let counted = run(&["why-not", CALLS, "spread(\"1,2\", 77)", "traces/rpc.angio"]);
    insta::assert_snapshot!(counted.out, @r#"
    rpc run=1
    spread("traces/rpc.angio:11", 77) does not hold
    rule examples/rules/calls.dl:11: 1 of 2 literals hold
    with X = "traces/rpc.angio:11", n = 77
    stops: `n = count { touches(X, T) }`: it is 2, not 77
    rows that hold and differ in one column:
      spread("traces/rpc.angio:11", 2)  differs in column 2
    "#);
    let json = run(&["why-not", CALLS, "spread(\"1,2\", 77)", "traces/rpc.angio", "--format", "json"]);
    let document: Value = serde_json::from_str(&json.out).expect("it is JSON");
    assert_eq!(
        (&document["dyelog-why-not-facts"], &document["facts"][0]["holds"]),
        (&Value::from(1), &Value::from(false))
    );
    let does = run(&["why-not", CALLS, "reaches(\"1,2\", \"1,5\")", "traces/rpc.angio"]);
    assert!(does.out.contains("does hold"), "{}", does.out);
}

#[test]
fn facts_that_cannot_be_asked_are_refused() {
    let refused = [
        (vec!["explain", CALLS, "traces/rpc.angio", "--fact", "raeches(_, _)"], "did you mean `reaches`?"),
        (vec!["explain", CALLS, "traces/rpc.angio", "--fact", "reaches(_)"], "has 2 columns, not 1"),
        (vec!["explain", CALLS, "traces/rpc.angio", "--fact", "reaches(X, _)"], "`X` is no value"),
        (vec!["explain", CALLS, "traces/rpc.angio", "--fact", "reaches(_, _) :- x("], "is no fact"),
        (vec!["explain", "traces/rpc.angio", "--fact", "reaches(_, _)"], "no rule file"),
        (vec!["explain", CALLS, "--fact", "reaches(_, _)"], "there is no trace"),
        (vec!["explain", CALLS, "traces/rpc.angio", "--fact", "reaches(\"9,9\", _)"], "no row agrees"),
        (vec!["why-not", CALLS, "reaches(\"9,9\", _)", "traces/rpc.angio"], "no node `9,9`"),
    ];
    for (arguments, words) in refused {
        let said = run(&arguments);
        assert_eq!(said.code, 2, "{arguments:?}\n{}{}", said.out, said.err);
        assert!(said.err.contains(words), "{arguments:?}\n{}", said.err);
    }
}

/// A proof of ten thousand levels neither fills the stack nor the screen.
#[test]
fn a_deep_proof_is_cut() {
    let folder = Folder::new();
    let trace = long_trace(&folder);
    let rules = folder
        .file("from.dl", "from(X) :- thread(X, _, 1).\nfrom(Y) :- from(X), next_in_thread(X, Y).\noutput from.\n");
    let cut = run(&["explain", &rules, &trace, "--fact", "from(\"1,10000\")"]);
    assert_eq!((cut.code, cut.out.lines().count()), (0, 26), "{}{}", cut.out, cut.err);
    let deep = run(&["explain", &rules, &trace, "--fact", "from(\"1,10000\")", "--depth", "100000"]);
    assert!(deep.out.ends_with("rows more\n") && deep.out.lines().count() == 202, "{}", deep.out);
    let json = run(&["explain", &rules, &trace, "--fact", "from(\"1,10000\")", "--format", "json"]);
    let document: Value = serde_json::from_str(&json.out).expect("it is JSON");
    assert_eq!(document["proofs"][0]["rows"].as_array().map(Vec::len), Some(20_000));
}
