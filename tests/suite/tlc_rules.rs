//! Templates of users beside the shipped ones: relations under `where`, attributes, sequences, and what loading refuses.

use std::sync::Arc;

use dyelog::diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog::tlc::{ReduceOptions, Reduction, Rules};

use crate::tlc::{bundled, reduce};

fn load(text: &str) -> Result<Rules, Diagnostics> {
    Rules::with_user_files(&[(Arc::from("own.dl"), Arc::from(text))], &|_| None)
}

fn rules(text: &str) -> Rules {
    load(text).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// The matches that come after the given template's name, as `template thread,node` in the order of the trace.
fn matches(reduction: &Reduction, templates: &[&str]) -> Vec<String> {
    let wanted = reduction.matches.iter().filter(|row| templates.contains(&&*row.template));
    let mut rows: Vec<(u32, u32, &str)> = wanted.map(|row| (row.thread, row.node, &*row.template)).collect();
    rows.sort_unstable();
    rows.into_iter().map(|(thread, node, template)| format!("{template} {thread},{node}")).collect()
}

fn sound(reduction: &Reduction) {
    assert!(reduction.nodes > 0 && reduction.processed == reduction.nodes);
    assert!(reduction.findings.counted.is_empty(), "{:?}", reduction.findings);
}

const ACKNOWLEDGED: &str = r#"
/// A message that has an effect on its sender in the end, unless it is urgent.
template acknowledged_send {
  order -1
  match {
    e1 = Fk(q) [j, k, m | a, v]
    e2 = Be    [j, q, 1 | b, w]
  }
  where { a != b, answered(e2, a), !urgent(e1) }
  model {
    S := newEntry(A, b)
    addRequest(E, S)
    addTrigger([j, q, 2 | b, w+1], S)
  }
}
reach(X, Y) :- edge(X, Y).
reach(X, Z) :- reach(X, Y), edge(Y, Z).
answered(N, T) :- reach(N, M), task(M, T, _).
urgent(N) :- name(N, "urgent").
"#;

/// B and D come back to A, C does not, and D is urgent.
const SENDS: &str = "operation s run=1
s,1,1,Be | A,1
s,1,2,Fk(s,2) | A,2
s,1,3,Fk(s,3) | A,3
s,1,4,Fk(s,4) | A,4 name=urgent
s,1,5,Jn(s,2) | A,5
s,1,6,Jn(s,4) | A,6
s,1,7,Ed | A,7
s,2,1,Be | B,1
s,2,2,Ac | B,2
s,2,3,Ed | B,3
s,3,1,Be | C,1
s,3,2,Ed | C,2
s,4,1,Be | D,1
s,4,2,Ed | D,2
";

#[test]
fn a_condition_asks_a_recursive_relation_and_a_negated_one() {
    let templates = ["acknowledged_send", "asynchronous"];
    let reduction = reduce(SENDS, &rules(ACKNOWLEDGED), ReduceOptions::default());
    sound(&reduction);
    assert_eq!(matches(&reduction, &templates), ["acknowledged_send 1,2", "asynchronous 1,3", "asynchronous 1,4"]);
    let all = reduce(SENDS, &rules(&ACKNOWLEDGED.replace(", !urgent(e1)", "")), ReduceOptions::default());
    assert_eq!(matches(&all, &templates), ["acknowledged_send 1,2", "asynchronous 1,3", "acknowledged_send 1,4"]);
    let none = reduce(SENDS, &rules(&ACKNOWLEDGED.replace("\"urgent\"", "\"absent\"")), ReduceOptions::default());
    assert_eq!(matches(&none, &templates), ["acknowledged_send 1,2", "asynchronous 1,3", "acknowledged_send 1,4"]);
}

/// Rules that other rules of the file use can be recursive and count.
#[test]
fn a_condition_asks_an_aggregate() {
    let text = r"
template busy_sender {
  order -1
  match {
    e1 = Fk(q) [j, k, m | a, v]
    e2 = Be    [j, q, 1 | b, w]
  }
  where { a != b, busy(a) }
  model {
    S := newEntry(A, b)
    addRequest(E, S)
    addTrigger([j, q, 2 | b, w+1], S)
  }
}
sends(T, N) :- forks(N, M), task(N, T, _).
busy(T) :- sends(T, _), n = count { sends(T, N) }, n > 2.
";
    let reduction = reduce(SENDS, &rules(text), ReduceOptions::default());
    sound(&reduction);
    assert_eq!(matches(&reduction, &["busy_sender"]).len(), 3);
    let fewer = reduce(SENDS, &rules(&text.replace("n > 2", "n > 3")), ReduceOptions::default());
    assert_eq!(matches(&fewer, &["busy_sender", "asynchronous"]).len(), 3);
    assert_eq!(matches(&fewer, &["busy_sender"]).len(), 0);
}

/// A sequence whose first round is known: attempts, each with its failure, and the one that succeeds.
const RETRIES: &str = r#"
template retries {
  order 0
  match {
    e1 = Ac [j, k, m[1]-1 | a, v] { name: "start" }
    repeat x in 1..n min 1 {
      try[x]  = Ac [j, k, m[x]     | a, y[x]  ] { name: "try" }
      fail[x] = Ac [j, k, m[x+1]-1 | a, y[x]+1] { name: "fail" }
    }
    last = Ac [j, k, m[n+1] | a, u] { name: "done" }
  }
  model {
    addActivity(E, e1)  addActivity(E, last)
    for x in 1..n { addActivity(E, try[x])  addActivity(E, fail[x]) }
  }
}
"#;

fn activities(names: &[&str]) -> String {
    let mut text = "operation s run=1\ns,1,1,Be | A,1\n".to_owned();
    let end = names.len() + 2;
    for (number, name) in names.iter().enumerate() {
        let node = number + 2;
        text += &format!("s,1,{node},Ac | A,{node} name={name}\n");
    }
    text + &format!("s,1,{end},Ed | A,{end}\n")
}

#[test]
fn a_sequence_is_walked_forward() {
    let rules = rules(RETRIES);
    let templates = ["retries", "activity"];
    let found = |names: &[&str]| {
        let reduction = reduce(&activities(names), &rules, ReduceOptions::default());
        sound(&reduction);
        let entry = reduction.submodel.entry(reduction.submodel.canonical_order()[1]);
        let counted: u64 =
            entry.work.values().flat_map(|work| work.activities.values()).map(|activity| activity.count).sum();
        assert_eq!(counted, names.len() as u64, "every activity is counted once");
        matches(&reduction, &templates)
    };
    assert_eq!(found(&["start", "try", "fail", "done"]), ["retries 1,2"]);
    assert_eq!(found(&["start", "try", "fail", "try", "fail", "try", "fail", "done"]), ["retries 1,2"]);
    assert_eq!(found(&["start", "done"]), ["activity 1,2", "activity 1,3"]);
    assert_eq!(found(&["start", "try", "fail", "start", "try", "fail", "done"])[3..], ["retries 1,5"]);
    let names: Vec<&str> = std::iter::once("start").chain(["try", "fail"].repeat(20_000)).chain(["done"]).collect();
    assert_eq!(found(&names), ["retries 1,2"]);
}

#[test]
fn longest_takes_as_many_rounds_as_there_are() {
    let text = r#"
template burst {
  order 0
  longest
  match {
    e1 = Ac [j, k, m[1]-1 | a, v] { name: "start" }
    repeat x in 1..n min 1 {
      try[x]  = Ac [j, k, m[x]     | a, y[x]  ] { name: "try" }
      fail[x] = Ac [j, k, m[x+1]-1 | a, y[x]+1] { name: "fail" }
    }
  }
  model {
    addActivity(E, e1)
    for x in 1..n { addActivity(E, try[x])  addActivity(E, fail[x]) }
  }
}
"#;
    let trace = activities(&["start", "try", "fail", "try", "fail", "try", "try"]);
    let templates = ["burst", "activity"];
    let longest = reduce(&trace, &rules(text), ReduceOptions::default());
    sound(&longest);
    assert_eq!(matches(&longest, &templates), ["burst 1,2", "activity 1,7", "activity 1,8"]);
    let shortest = reduce(&trace, &rules(&text.replace("longest", "")), ReduceOptions::default());
    sound(&shortest);
    let expected = ["burst 1,2", "activity 1,5", "activity 1,6", "activity 1,7", "activity 1,8"];
    assert_eq!(matches(&shortest, &templates), expected);
}

/// More variables than there are registers link one round to the next: seven nodes that come again and again. Of each
/// round the first seven are like the seven before, and the next seven are bound for the round that follows.
#[test]
fn a_sequence_may_be_linked_by_many_variables() {
    let at = |index: &str, number: usize| format!("{{ name: n{number}[{index}], op: s{number}[{index}] }}");
    let own = |index: &str, number: usize, more: usize| match number {
        7 => format!("a1[{index}], v1[{index}]+{}", 6 + more),
        _ => format!("a{number}[{index}], v{number}[{index}]+{more}"),
    };
    let (mut outer, mut round, mut model) = (String::new(), String::new(), String::new());
    for i in 1..=7 {
        outer += &format!("e{i} = Ac [j, k[1], m[1]+{} | {}] {}\n", i - 1, own("1", i, 0), at("1", i));
        round += &format!("f{i}[x] = Ac [j, k[x], m[x]+{} | {}] {}\n", 6 + i, own("x", i, 7), at("x", i));
        let place = if i == 7 { "k[x+1], m[x+1]+6".to_owned() } else { format!("k[x], m[x]+{}", 13 + i) };
        round += &format!("g{i}[x] = Ac [j, {place} | {}] {}\n", own("x+1", i, 0), at("x+1", i));
        model += &format!("addActivity(E, e{i}) for x in 1..n {{ addActivity(E, f{i}[x]) addActivity(E, g{i}[x]) }}\n");
    }
    let text = format!(
        "template woven {{ order 0 longest match {{ {outer} repeat x in 1..n min 2 {{ {round} }} }} model {{ {model} }} }}"
    );
    let rules = rules(&text);
    let mut names = ["n1", "n2", "n3", "n4", "n5", "n6", "n7"].repeat(5);
    let found = |names: &[&str]| {
        let reduction = reduce(&activities(names), &rules, ReduceOptions::default());
        sound(&reduction);
        matches(&reduction, &["woven", "activity"])
    };
    assert_eq!(found(&names), ["woven 1,2"]);
    names[27] = "other";
    assert_eq!(found(&names).len(), 35, "the second round differs, so that all are activities");
}

/// A sequence whose last round is known, and a service name: forwarding through relays only.
#[test]
fn a_sequence_is_walked_backward() {
    let text = r#"
template relay {
  order 2
  match {
    e1 = Ac       [j, k,  m   | a, v ]
    e2 = Ac       [j, k,  m+1 | b, w2] { op: "relay" }
    e3 = Fk(q[1]) [j, k3, m2  | b, w3]
    repeat x in 1..n min 1 {
      f[x] = Be         [j, q[x], 1     | t[x], y[x]]
      g[x] = Fk(q[x+1]) [j, q[x], mm[x] | t[x], z[x]]
    }
    last = Be [j, q[n+1], 1 | a, v+1]
  }
  where { a != b, w3 > w2 }
  model {
    S[0] := newEntry(R, b)
    addRequest(E, S[0])
    phase2(k3, b, w3)
    for x in 1..n {
      S[x] := newEntry(F, t[x])
      addRequest(S[x-1], S[x])
      addTrigger([j, q[x], 2 | t[x], y[x]+1], S[x])
      phase2(q[x], t[x], z[x])
    }
    addTrigger([j, q[n+1], 2 | a, v+2], E)
  }
}
"#;
    let templates = ["relay", "forwarding"];
    let plain = bundled("forwarding-3.angio");
    let reduction = reduce(&plain, &rules(text), ReduceOptions::default());
    sound(&reduction);
    assert_eq!(matches(&reduction, &templates), ["forwarding 1,2"]);
    let marked = plain.replace("op=place", "op=relay");
    assert_ne!(marked, plain);
    let reduction = reduce(&marked, &rules(text), ReduceOptions::default());
    sound(&reduction);
    assert_eq!(matches(&reduction, &templates), ["relay 1,2"]);
}

#[test]
fn a_template_of_the_user_replaces_the_shipped_one_of_its_name() {
    let text = r#"
template activity {
  order 7
  match { e1 = Ac [j, k, m | a, v] { name: "counted" } }
  model { addActivity(E, e1) }
}
"#;
    let reduction = reduce(&activities(&["counted", "other"]), &rules(text), ReduceOptions::default());
    assert_eq!(matches(&reduction, &["activity"]), ["activity 1,2"]);
    assert_eq!((reduction.nodes, reduction.processed), (4, 3));
    assert_eq!(reduction.findings.counted.get("node that no template matches"), Some(&1));
}

/// Each error with its code and the text that it points to.
fn errors(text: &str) -> Vec<String> {
    let Err(Diagnostics(findings)) = load(text) else { panic!("loaded:\n{text}") };
    let pointed = |finding: &Diagnostic| match &finding.place {
        Place::Range { file, start, end } => {
            assert_eq!(&**file, "own.dl");
            format!("{} `{}`", finding.code, &text[*start..*end])
        }
        other => format!("{} {other:?}", finding.code),
    };
    findings.iter().filter(|finding| finding.severity == dyelog::diagnostic::Severity::Error).map(pointed).collect()
}

#[test]
fn what_is_wrong_with_a_rule_file_is_told_at_once() {
    let template = |conditions: &str, attributes: &str| {
        format!(
            "template own {{ order 0 match {{ e1 = Ac [j, k, m | a, v] {attributes} }} where {{ {conditions} }} \
             model {{ addActivity(E, e1) }} }}\n"
        )
    };
    assert_eq!(errors(&template("blocked(a)", "")), ["R020 `blocked`"]);
    assert_eq!(errors(&template("blocked(a, v)", "")), ["R020 `blocked`"]);
    assert_eq!(errors(&(template("big(a)", "") + "big(T, N) :- task(N, T, _).")), ["R021 `big(a)`"]);
    assert_eq!(errors(&template("u > 1", "")), ["R058 `u`"]);
    assert_eq!(errors(&template("v > 1", "{ nam: \"x\" }")), ["R061 `nam`"]);
    assert_eq!(errors(&template("!starts(basicrpc, e1)", "")), ["R074 `basicrpc`"]);
    let both =
        template("v > u, odd(e1)", "{ nam: \"x\" }") + "odd(N) :- node(N), !even(N).\neven(N) :- node(N), !odd(N).";
    let found = errors(&both);
    for code in ["R024", "R058", "R061"] {
        assert!(found.iter().any(|error| error.starts_with(code)), "{code} is not among {found:?}");
    }
    let unreached = "template own { order 0 match { e1 = Ac [j, k, m | a, v] e2 = Ac [j, k2, m2 | b, w] } model { } }";
    assert_eq!(errors(unreached), ["R050 `e2 = Ac [j, k2, m2 | b, w]`"]);
}
