//! What templates on events made of a message, and why one of them did not take it.

use serde_json::{Value, json};

use crate::cli::{Folder, run};

/// A asks B; B asks C, sends to D, and passes its request on to E, which replies to A.
const FIGURE: &str = "traces/same/figure-3a.csv";

/// Whether a text has all of these, in this order.
fn assert_has(text: &str, wanted: &[&str]) {
    let mut rest = text;
    for one in wanted {
        let at = rest.find(one).unwrap_or_else(|| panic!("`{one}` is not there, or too early:\n{text}"));
        rest = &rest[at + one.len()..];
    }
}

fn explained(line: u32) -> String {
    let told = run(&["explain", &format!("{FIGURE}:{line}")]);
    assert_eq!(told.code, 0, "{}", told.err);
    told.out
}

#[test]
fn a_message_has_the_templates_that_were_carried_out_at_it() {
    assert_has(
        &explained(5),
        &[
            "C.1 -> B  `m3`",
            "the reply of sync B.1 -> C.1 (lines 4, 5), found by sync",
            "message(C.1, B)",
            "W = B.1, n = 2",
        ],
    );
    let forward = explained(8);
    assert_has(
        &forward,
        &[
            "the reply of forward A.1 -> E.1 via B.1 (lines 3, 7, 8)",
            "forward",
            "P = A.1 > B.1 > E.1",
            "model forward(W, P, U); retire P[2..n]",
            "rules/same.dl:",
            "zombie_root",
            "isolated",
            "not sync (order 1), as the message that arrives, 2 of 6 steps: `n = 2` fails: the values are 3 and 2",
        ],
    );
    // What explained it later is told with the line of the message at which it did.
    assert_has(
        &explained(6),
        &["B.1 -> D.1", "the message of async", "request", "line 6", "zombie_root", "changed(B.1)", "line 8"],
    );
    assert_has(&explained(7), &["a message that passes the request on of forward"]);
}

#[test]
fn why_not_stops_at_the_first_condition_that_fails() {
    let why = |template: &str, line: u32| {
        let told = run(&["why-not", template, &format!("{FIGURE}:{line}")]);
        assert_eq!(told.code, 0, "{}", told.err);
        told.out
    };
    assert_has(
        &why("sync", 7),
        &[
            "sync does not take it; request (order 3) does",
            "as the message that arrives: 0 of 6 steps",
            "stops: `W = live(B)` fails: E has no live occurrence",
            "with its occurrence as U, at line 8: 2 of 6 steps",
            "stops: `n = 2` fails: the values are 3 and 2",
        ],
    );
    assert_has(&why("sync", 5), &["sync does take it, as the message that arrives"]);
    assert_has(&why("zombie_leaf", 7), &["with its occurrence as X", "`P = parent(X)` fails: no arc leads to E.1"]);
    // What a template would begin is not there while it is only tried.
    assert!(!why("request", 8).contains("V "), "{}", why("request", 8));
    assert_has(&why("request", 8), &["forward (order 2) matches, too, and is tried first"]);
    assert_has(&why("idle", 7), &["its event never concerned the message"]);
}

#[test]
fn programs_get_the_same() {
    let told = run(&["explain", &format!("{FIGURE}:8"), "--format", "json"]);
    let document: Value = serde_json::from_str(&told.out).expect("it is JSON");
    let message = &document["messages"][0];
    assert_eq!(document["dyelog-explanation"], 1);
    assert_eq!((&message["message"]["from"], &message["message"]["name"]), (&json!("E.1"), &json!("m6")));
    assert_eq!(message["interactions"][0]["kind"], "forward");
    assert_eq!(message["did"][0]["variables"]["n"], 3);
    let told = run(&["why-not", "sync", &format!("{FIGURE}:8"), "--format", "json"]);
    let document: Value = serde_json::from_str(&told.out).expect("it is JSON");
    let answer = &document["answers"][0];
    assert_eq!((&answer["matches"], &answer["taken_by"]), (&json!(false), &json!("forward")));
    assert_eq!((&answer["tries"][0]["passed"], &answer["tries"][0]["step"]), (&json!(2), &json!("n = 2")));
}

#[test]
fn templates_of_the_user_and_odd_messages_are_explained() {
    let folder = Folder::new();
    let table = folder.file("t.csv", "sender,receiver,time\na,b,1\na,b,2\nb,a,3\nb,a,4\na,c,5\n");
    let at = |line: u32| format!("{table}:{line}");
    let rules = "examples/rules/in_order.dl";
    let first = run(&["explain", &at(4), "--rules", rules]);
    assert_has(&first.out, &["the reply of sync a.1 -> b.1 (lines 2, 4), found by sync_in_order", "V = b.1"]);
    // The end of the trace is the reason where no template is.
    assert_has(&run(&["explain", &at(6)]).out, &["async", "as the trace ends before a reply"]);
    let rules = folder.file(
        "one.dl",
        "template only { order 1 on message(U, B, M) where { M = \"x\" } assert { V = live(B) arc(U, V) } }\n",
    );
    let unmatched = run(&["explain", &at(2), "--rules", &rules]);
    assert_has(&unmatched.out, &["no template matches it (T157)", "no interaction has it"]);
    assert_has(
        &run(&["why-not", "only", &at(2), "--rules", &rules]).out,
        &["only does not take it: no template matches it", "`M = \"x\"` fails: the message has no name"],
    );
    for (arguments, code, told) in [
        (vec!["explain", &at(99)], 2, "the nearest line with a message that was received is 6"),
        (vec!["explain", "1,2", &table], 2, ""),
        (vec!["explain", &table, "--node", "1,2"], 2, "these are named by their lines"),
        (vec!["explain", &table, "--node", "2", "--run", "x"], 2, "traces of messages have none"),
        (vec!["why-not", "synk", &at(2)], 2, "did you mean `sync`?"),
        (vec!["why-not", "basic_rpc", &at(2)], 2, "no template `basic_rpc` for messages"),
    ] {
        let refused = run(&arguments);
        assert_eq!(refused.code, code, "{arguments:?}: {}{}", refused.out, refused.err);
        assert!(refused.err.contains(told), "{arguments:?}: {}", refused.err);
    }
}

#[test]
fn a_template_that_replaces_a_shipped_one_is_announced() {
    let folder = Folder::new();
    let own = |before: &str| {
        format!(
            "use \"same.dl\"\n{before}template sync {{\n  order 1\n  on message(U, B)\n  match {{\n    W = live(B)\n    \
             path P[1..n] from W to U\n  }}\n  where {{ n = 2 }}\n  model {{ sync(W, U) }}\n  retire {{ P[2..n] }}\n}}\n"
        )
    };
    let file = folder.file("own.dl", &own(""));
    let checked = run(&["rules", "check", &file]);
    assert!(checked.out.contains("note[R018]: `sync` replaces the shipped template of that name"), "{}", checked.out);
    let listed = run(&["matches", FIGURE, "--rules", &file]);
    assert!(listed.err.contains("note[R018]"), "{}", listed.err);
    let file = folder.file("allowed.dl", &own("//@ allow R018: any reply ends the wait\n"));
    let checked = run(&["rules", "check", &file]);
    assert!(checked.out.contains("no findings"), "{}", checked.out);
    let listed = run(&["matches", FIGURE, "--rules", &file]);
    assert!(!listed.err.contains("R018"), "{}", listed.err);
}
