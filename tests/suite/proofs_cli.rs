//! Proofs of what rules derive from spans, messages and matches, end to end.

use serde_json::Value;

use crate::cli::{Folder, run};

const SHOP: &str = "traces/shop.otlp.jsonl";
const SLOW: &str = "examples/queries/slow.dl";
const MESSAGES: &str = "traces/same/case-5-nested-forward.csv";

fn said(arguments: &[&str]) -> String {
    let said = run(arguments);
    assert_eq!(said.code, 0, "{arguments:?}\n{}", said.err);
    said.out
}

#[test]
fn a_fact_about_spans_is_proved_down_to_spans() {
    let one = said(&["explain", SLOW, SHOP, "--fact", "slow(\"86b755bda915cf49\", _)"]);
    insta::assert_snapshot!(one, @r#"
    gateway GET /product/{id} run=6a6e04c186edd848baff9fe30c62e55c
    slow("86b755bda915cf49", 875007)  by examples/queries/slow.dl:5
      critical_time("86b755bda915cf49", 875007)  by std/critical_path.dl:7
        critical("86b755bda915cf49", 1795229298766993680, 1795229298767868687)  a fact of traces/shop.otlp.jsonl
        sum = 875007  over 1 row
          critical("86b755bda915cf49", 1795229298766993680, 1795229298767868687)  a fact of traces/shop.otlp.jsonl
      critical_percent("86b755bda915cf49", 50.67043690307082)  by std/critical_path.dl:14
        critical_time("86b755bda915cf49", 875007)  by std/critical_path.dl:7
          critical("86b755bda915cf49", 1795229298766993680, 1795229298767868687)  a fact of traces/shop.otlp.jsonl
          sum = 875007  shown above
        root("1bbddfaa2786e287")  a fact of traces/shop.otlp.jsonl
        duration("1bbddfaa2786e287", 1726859)  a fact of traces/shop.otlp.jsonl
      no failed("86b755bda915cf49")  no such row
    "#);
    let json = said(&["explain", SLOW, SHOP, "--all", "--format", "json"]);
    let document: Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(document["dyelog-proofs"], 1);
    let proofs = document["proofs"].as_array().expect("a list");
    let rows = said(&["query", SLOW, SHOP, "--format", "csv"]).lines().count() - 1;
    assert_eq!(proofs.len(), rows, "each row of the query has its proof");
    for proof in proofs {
        let rows = proof["rows"].as_array().expect("a list");
        let span = &rows[0]["arguments"][0];
        assert_eq!(span["place"]["file"], SHOP);
        assert_eq!(span["span"], span["place"]["item"]);
        let given = rows.iter().filter(|row| row["because"] == "fact");
        assert!(given.clone().count() > 0);
        for row in given {
            assert_eq!(row["arguments"][0]["place"]["file"], SHOP, "{row}");
        }
    }
}

#[test]
fn facts_of_all_sorts_are_explained() {
    let folder = Folder::new();
    let none = folder.file("none.dl", "any(X) :- operation(X, _, _).\noutput any.\n");
    for (fact, words) in [
        ("match_node(1, \"e1\", _)", "match_node(1, \"e1\", \"1,1\" at traces/shop.otlp.jsonl: "),
        ("entry(\"E2\", _, _, _)", "entry(\"E2\", "),
        ("request(\"E1\", \"E2\")", "request(\"E1\", \"E2\")  a fact"),
        ("attr(\"86b755bda915cf49\", \"http.method\", _)", "no row"),
        ("attr(\"86b755bda915cf49\", _, _)", "attr(\"86b755bda915cf49\", "),
        ("span(_, \"gateway\", _)", "a fact of traces/shop.otlp.jsonl"),
        ("any(\"6a6e04c186edd848baff9fe30c62e55c\")", "any(\"6a6e04c186edd848baff9fe30c62e55c\")  by"),
    ] {
        let said = run(&["explain", &none, SHOP, "--fact", fact]);
        assert!(format!("{}{}", said.out, said.err).contains(words), "{fact}:\n{}{}", said.out, said.err);
    }
    // Over all operations at once, too.
    let rules = folder.file("rate.dl", "runs(N) :- N = count { operation(_, _, _) }.\noutput runs.\n");
    let whole = said(&["explain", &rules, SHOP, "--scope", "trace", "--fact", "runs(_)"]);
    let lines: Vec<&str> = whole.lines().collect();
    assert_eq!(lines[0], "all operations");
    assert!(
        lines[2].starts_with("  count = ") && lines.last().is_some_and(|last| last.starts_with("    … and ")),
        "{whole}"
    );
    let refused = run(&["explain", &rules, SHOP, "--scope", "trace", "--run", "x", "--fact", "runs(_)"]);
    assert!(refused.code == 2 && refused.err.contains("`--run` chooses one operation"), "{}", refused.err);
}

#[test]
fn a_fact_about_messages_is_proved_down_to_lines() {
    let folder = Folder::new();
    let rules = folder.file(
        "waits.dl",
        "output waits(message, cause).\nwaits(M, C) :- message_cause(M, C), message_kind(M, \"request\").\n",
    );
    for fact in ["waits(_, _)", "waits(2, 1)", &format!("waits(\"{MESSAGES}:4\", _)")] {
        let one = said(&["explain", &rules, MESSAGES, "--fact", fact]).replace(&rules, "waits.dl");
        insta::allow_duplicates! {
            insta::assert_snapshot!(one, @r#"
            all messages
            waits(2, 1)  by waits.dl:2
              message_cause(2, 1)  a fact of traces/same/case-5-nested-forward.csv:4, traces/same/case-5-nested-forward.csv:3
              message_kind(2, "request")  a fact of traces/same/case-5-nested-forward.csv:4
            "#);
        }
    }
    let not = said(&["why-not", &rules, "waits(1, _)", MESSAGES]).replace(&rules, "waits.dl");
    insta::assert_snapshot!(not, @r"
    all messages
    waits(1, _) does not hold
    rule waits.dl:2: 1 of 2 literals hold
    with M = 1
    stops: `message_cause(M, C)`: there is no message_cause(1, _)
    ");
}

/// Of all operations the one where rules come nearest; a row of rules that is lacking is followed to its own rules.
#[test]
fn why_not_finds_the_nearest_operation_and_follows_what_is_lacking() {
    let folder = Folder::new();
    let rules = folder.file(
        "late.dl",
        "output late(span).\nlate(S) :- server(S), long(S).\nlong(S) :- duration(S, D), D > 1000000000.\nserver(S) :- span_kind(S, \"server\"), span(S, \"inventory\", _).\n",
    );
    let not = said(&["why-not", &rules, "late(_)", SHOP]).replace(&rules, "late.dl");
    insta::assert_snapshot!(not, @r#"
    gateway POST /checkout/{id} run=dc5a020fb9a57646b1f967adb203d16a
    late(_) does not hold
    rule late.dl:2: 1 of 2 literals hold
    with S = "729c5a0409915571"
    stops: `long(S)`: there is no long("729c5a0409915571")
      long("729c5a0409915571") does not hold
      rule late.dl:3: 1 of 2 literals hold
      with S = "729c5a0409915571", D = 1185107
      stops: `D > 1000000000`: the left is 1185107, the right is 1000000000
    "#);
    let json = said(&["why-not", &rules, "late(_)", SHOP, "--format", "json"]);
    let document: Value = serde_json::from_str(&json).expect("it is JSON");
    let fact = &document["facts"][0];
    assert_eq!((&fact["holds"], &fact["rules"][0]["held"]), (&Value::from(false), &Value::from(1)), "{json}");
    assert_eq!(fact["lacks"]["relation"], "long");
    // A fact that holds somewhere does hold.
    let does = said(&["why-not", &rules, "server(_)", SHOP]);
    assert!(does.contains("does hold") && does.contains("shows its proof"), "{does}");
}

/// Which facts a file is about follows from what it reads: a file of templates has relations of its own by any name.
#[test]
fn relations_of_a_file_of_templates_are_explained() {
    let folder = Folder::new();
    let rules = folder.file(
        "own.dl",
        "/// One.\ntemplate one { order -3 match { e1 = Ac [j, k, m | a, v] } where { span(e1) } }\n/// Has a name.\nspan(N) :- name(N, _).\n",
    );
    let proof = said(&["explain", &rules, "traces/rpc.angio", "--fact", "span(_)"]).replace(&rules, "own.dl");
    assert!(proof.contains("by own.dl:4\n  name("), "{proof}");
    // Where such a file reads facts about spans, too, it is refused as a question is.
    let both = folder.file(
        "both.dl",
        "/// One.\ntemplate one { order -3 match { e1 = Ac [j, k, m | a, v] } where { long(e1) } }\n/// Long.\nlong(N) :- node_span(N, S), duration(S, D), D > 3.\n",
    );
    let refused = run(&["explain", &both, SHOP, "--fact", "long(_)"]);
    assert!(refused.code == 2 && refused.err.contains("Q005"), "{}", refused.err);
}

#[test]
fn what_cannot_be_asked_of_spans_is_refused_with_a_hint() {
    let folder = Folder::new();
    let messages = folder.file("waits.dl", "output waits(message, cause).\nwaits(M, C) :- message_cause(M, C).\n");
    for (arguments, words) in [
        (vec!["explain", SLOW, SHOP, "--fact", "slwo(_, _)"], "did you mean `slow`?"),
        (vec!["explain", SLOW, SHOP, "--fact", ""], "is no fact"),
        (vec!["explain", SLOW, SHOP, "--fact", "slow(_, 99999999999999999999)"], "is no fact"),
        (vec!["explain", SLOW, SHOP, "--fact", "!slow(_, _)"], "is no fact"),
        (vec!["explain", SLOW, SHOP, "--fact", "slow(_, -5)"], "no row agrees"),
        (vec!["explain", SLOW, SHOP, "--fact", "slow(9999999, 1.5)"], "no row agrees"),
        (vec!["explain", SLOW, SHOP, "--fact", "slow(_)"], "they are `slow(span, time)`"),
        (vec!["explain", SLOW, SHOP, "--fact", "slow(\"86b755bda915cf48\", _)"], "did you mean `86b755bda915cf49`?"),
        (vec!["why-not", SLOW, "slow(\"86b755bda915cf48\", _)", SHOP], "the traces have no span `86b755bda915cf48`"),
        (
            vec!["explain", SLOW, MESSAGES, "--fact", "slow(_, _)"],
            "tells of operations, and the trace tells of messages",
        ),
        (
            vec!["explain", &messages, SHOP, "--fact", "waits(_, _)"],
            "tells of messages, and the trace tells of operations",
        ),
        (vec!["why-not", &messages, "waits(_, _)", "traces/rpc.angio"], "tells of messages"),
        (vec!["explain", SLOW, "no-such.jsonl", "--fact", "slow(_, _)"], "no-such.jsonl"),
        (vec!["explain", SLOW, SHOP, "--run", "none", "--fact", "slow(_, _)"], "no row agrees"),
        (vec!["explain", "traces/rpc.angio", "--node", "1,2", "--scope", "trace"], "`--scope` is about facts"),
        (
            vec!["why-not", "basic_rpc", "1,2", "traces/rpc.angio", "--max-memory", "1GB"],
            "`--max-memory` is about facts",
        ),
        (vec!["explain", SLOW, SHOP, "--config", "x.toml", "--fact", "slow(_, _)"], "`--config` is about models"),
    ] {
        let said = run(&arguments);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{arguments:?}\n{}", said.err);
        assert!(said.err.contains(words), "{arguments:?}\n{}", said.err);
    }
    // Nodes without spans: the rules hold nowhere, and it is said at which fact they stop.
    let no_spans = run(&["why-not", SLOW, "slow(_, _)", "traces/rpc.angio"]);
    assert!(no_spans.code == 0 && no_spans.out.contains("there is no critical(_, _, _)"), "{}", no_spans.out);
    let empty = run(&["explain", SLOW, "traces/rpc.angio", "--all", "--format", "json"]);
    let document: Value = serde_json::from_str(&empty.out).expect("it is JSON");
    assert!(empty.code == 0 && document["proofs"].as_array().is_some_and(Vec::is_empty), "{}", empty.out);
    assert!(empty.err.contains("Q004"), "{}", empty.err);
}

/// A best value to which only a row led that it has replaced.
#[test]
fn a_row_that_replaced_its_own_reason_says_so() {
    let folder = Folder::new();
    let rules = folder.file(
        "least.dl",
        "least(X, 5) :- node(X).\nleast(X, 1) :- reached(X).\nleast(X, V) :- node(X), V = min W { least(X, W) }.\nreached(X) :- least(X, _).\noutput least, reached.\n",
    );
    let proof = |fact: &str| said(&["explain", &rules, "traces/rpc.angio", "--fact", fact]).replace(&rules, "least.dl");
    insta::assert_snapshot!(proof("least(\"1,1\", _)"), @r#"
    rpc run=1
    least("traces/rpc.angio:10", 1)  by least.dl:2
      reached("traces/rpc.angio:10")  held by a row that a better one has replaced
    "#);
    insta::assert_snapshot!(proof("reached(\"1,1\")"), @r#"
    rpc run=1
    reached("traces/rpc.angio:10")  by least.dl:4
      least("traces/rpc.angio:10", 1)  by least.dl:2
        reached("traces/rpc.angio:10")  held by a row that a better one has replaced
    "#);
}

/// The rows at the rank of a percentile, not the first ones.
#[test]
fn a_percentile_shows_the_rows_that_have_it() {
    let folder = Folder::new();
    let rules = folder.file("p.dl", "middle(P) :- P = p50 V { thread(_, _, V) }.\noutput middle.\n");
    let proof = said(&["explain", &rules, "traces/rpc.angio", "--fact", "middle(_)"]).replace(&rules, "p.dl");
    insta::assert_snapshot!(proof, @r#"
    rpc run=1
    middle(4)  by p.dl:1
      p50 = 4  over 7 rows
        thread("traces/rpc.angio:13", 1, 4)  a fact
        … and 6 more
    "#);
}

/// Memory is limited in bytes, and what needs more stops at the rule that takes it.
#[test]
fn a_limit_of_memory_stops_at_its_rule() {
    let folder = Folder::new();
    let rules = folder.file(
        "pairs.dl",
        "output pairs, reach.\npairs(X, Y) :- span(X, _, _), span(Y, _, _).\nreach(X, Y) :- parent(X, Y).\nreach(X, Z) :- reach(X, Y), parent(Y, Z).\n",
    );
    for arguments in [
        vec!["query", &rules, SHOP, "--scope", "trace", "--relation", "pairs"],
        vec!["explain", &rules, SHOP, "--scope", "trace", "--fact", "pairs(_, _)"],
    ] {
        let narrow = run(&[&arguments[..], &["--max-memory", "30kB"]].concat());
        assert_eq!(narrow.code, 2, "{arguments:?}\n{}{}", narrow.out.len(), narrow.err);
        assert!(narrow.err.contains("R040") && narrow.err.contains("more than 30 kB of memory"), "{}", narrow.err);
        assert!(narrow.err.contains("pairs(X, Y) :- "), "{}", narrow.err);
    }
    let wide = run(&["query", &rules, SHOP, "--relation", "reach", "--max-memory", "1.5GB", "--format", "csv"]);
    assert!(wide.code == 0 && wide.out.lines().count() > 100, "{}", wide.err);
    for wrong in ["", "12", "MB", "-3MB", "1e99GB", "nanMB"] {
        let refused = run(&["query", &rules, SHOP, &format!("--max-memory={wrong}")]);
        assert!(
            refused.code == 2 && refused.err.contains("a size is a number with a unit"),
            "{wrong}: {}",
            refused.err
        );
    }
}
