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

/// The same where a template makes a message of a request that is waited for, so often.
fn loses_waits(reduction: &Reduction, times: u64) {
    assert!(reduction.nodes > 0 && reduction.processed == reduction.nodes);
    let told: Vec<(&str, u64)> = reduction.findings.counted.iter().map(|(what, count)| (*what, *count)).collect();
    assert_eq!(told, [("wait for another visit that the model leaves out", times)]);
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
    let templates = ["acknowledged_send", "asynchronous", "future"];
    let reduction = reduce(SENDS, &rules(ACKNOWLEDGED), ReduceOptions::default());
    loses_waits(&reduction, 1);
    assert_eq!(matches(&reduction, &templates), ["acknowledged_send 1,2", "asynchronous 1,3", "future 1,4"]);
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
    loses_waits(&reduction, 2);
    assert_eq!(matches(&reduction, &["busy_sender"]).len(), 3);
    let fewer = reduce(SENDS, &rules(&text.replace("n > 2", "n > 3")), ReduceOptions::default());
    assert_eq!(matches(&fewer, &["busy_sender", "asynchronous", "future"]).len(), 3);
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
        let trace = activities(names).replace(" name=", " op=shop name=");
        let reduction = reduce(&trace, &rules, ReduceOptions::default());
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

/// Of many templates that hide each other each is told of once, with the one that is tried first, wherever it stands.
#[test]
fn a_template_that_is_hidden_is_told_of_once() {
    let template = |number: u32, order: i64| {
        format!(
            "template t{number} {{ order {order} match {{ e1 = Ac [j, k, m | a, v] {{ name: \"x\" }} }} where {{ v > 1 }} }}\n"
        )
    };
    let text: String = (0..20).map(|number| template(number, -1 - i64::from(number))).collect();
    let Diagnostics(found) = load(&text).map(|_| ()).expect_err("most of them never match");
    let hidden: Vec<&Diagnostic> = found.iter().filter(|finding| finding.code.0 == "R073").collect();
    assert_eq!(hidden.len(), 19, "{found:?}");
    assert!(
        hidden.iter().all(|finding| finding.message.contains("`t19` does, which is tried before it")),
        "{hidden:?}"
    );
}

/// Hints say what to do about one name for two things, and guess no letter for another.
#[test]
fn hints_are_about_the_slip_at_hand() {
    let hints = |text: &str, code: &str| -> Vec<String> {
        let Diagnostics(found) = load(text).map(|_| ()).expect_err("it is refused");
        found.into_iter().filter(|finding| finding.code.0 == code).flat_map(|finding| finding.hints).collect()
    };
    let pair = |task: &str, condition: &str| {
        format!(
            "template t {{ order -1 match {{ b = Fk(q) [j, k, m | a, v] c = Be [j, q, 1 | {task}, w] }} where {{ {condition} }} }}"
        )
    };
    let both = hints(&pair("b", "v > 1"), "R022");
    assert!(both.iter().any(|hint| hint.contains("rename one of the two")), "{both:?}");
    let guessed =
        |condition: &str| hints(&pair("d", condition), "R058").into_iter().find(|hint| hint.contains("did you"));
    assert_eq!(guessed("u > v"), None);
    assert_eq!(guessed("W > v").as_deref(), Some("did you mean `w`?"));
}

/// One entry calls a server twice in one match.
const TWICE: &str = r"
template double_rpc {
  order -1
  match {
    e1 = Ac [j, k, m    | a, v   ]
    e2 = Ac [j, k, m+1  | b, w   ]
    e3 = Ac [j, k, m2   | b, w2  ]
    e4 = Ac [j, k, m2+1 | a, v+1 ]
    e5 = Ac [j, k, m2+2 | b, w2+1]
    e6 = Ac [j, k, m3   | b, w3  ]
    e7 = Ac [j, k, m3+1 | a, v+2 ]
  }
  where { a != b, w2 > w, w3 > w2 }
  model {
    S := newEntry(R, b)
    addRequest(E, S)
    T := newEntry(R, b)
    addRequest(E, T)
    addActivity(E, e1)  addActivity(S, e2)  addActivity(S, e3)
    addActivity(E, e4)  addActivity(T, e5)  addActivity(T, e6)
    addActivity(E, e7)
  }
}
";

const TWO_CALLS: &str = "operation s run=1
s,1,1,Be | A,1 t=0
s,1,2,Ac | A,2 t=1 cpu=0.1
s,1,3,Ac | B,1 t=2 cpu=0.2
s,1,4,Ac | B,2 t=3 cpu=0.3
s,1,5,Ac | A,3 t=4 cpu=0.4
s,1,6,Ac | B,3 t=5 cpu=0.5
s,1,7,Ac | B,4 t=6 cpu=0.6
s,1,8,Ac | A,4 t=7 cpu=0.7
s,1,9,Ed | A,5 t=8
";

/// Each visit of a server has an entry of its own, and the template says whose each node is: the sub-model is that of two plain
/// calls, one of which begins where the other ends.
#[test]
fn a_server_may_be_asked_twice_in_one_match() {
    let own = reduce(TWO_CALLS, &rules(TWICE), ReduceOptions::default());
    sound(&own);
    assert_eq!(matches(&own, &["double_rpc"]), ["double_rpc 1,2"]);
    let work = |reduction: &Reduction, task: &str| -> Vec<(u64, u64, f64)> {
        let submodel = &reduction.submodel;
        let of = |index| submodel.entry(index);
        let indices = submodel.canonical_order().into_iter();
        let entries = indices.map(of).filter(|entry| submodel.names.text(entry.task) == task);
        let row = |entry: &dyelog::lqn::submodel::EntryTotal| {
            let cpu = entry.work.values().flat_map(|work| work.activities.values()).map(|seen| seen.cpu.sum.as_f64());
            let asked = entry.work.values().flat_map(|work| work.requests.values()).map(|request| request.count);
            (entry.invocations, asked.sum(), cpu.sum())
        };
        entries.map(row).collect()
    };
    assert_eq!(work(&own, "A"), [(1, 2, 0.1 + 0.4 + 0.7)]);
    let [(2, 0, seconds)] = work(&own, "B")[..] else { panic!("{:?}", work(&own, "B")) };
    assert!((seconds - 1.6).abs() < 1e-12, "{seconds}");
    // Where nothing says whose the nodes of the second visit are, there is no telling.
    let unsaid = TWICE.replace("addActivity(T, e5)  addActivity(T, e6)", "");
    assert_eq!(errors(&unsaid), ["R068 `b`"]);
    // One entry for both visits would be asked twice for the work of both.
    let once = TWICE.replace("T := newEntry(R, b)", "").replace("(E, T)", "(E, S)").replace("(T, ", "(S, ");
    assert_eq!(errors(&once), ["R081 `S`"]);
}

/// Where only a trace can tell, it does: with the node, its task, and the entry that it was given to.
#[test]
fn work_on_a_wrong_task_is_an_error_in_the_trace_that_has_it() {
    let text = r"
template fork {
  order -1
  match {
    e1 = Fk(q) [j, k, m | a, v]
    e2 = Be    [j, q, 1 | _, _]
  }
  model { forkBranch(E, e2)  addTrigger([j, q, 2 | _, _], E) }
}
";
    let own = rules(text);
    let reduced = |trace: &str| {
        let mut names = dyelog::trace::TraceNames::new();
        let mut reducer = dyelog::tlc::Reducer::new(&own, ReduceOptions::default());
        let options = dyelog::trace::ReadOptions::default();
        dyelog::trace::read("t.angio", trace.as_bytes(), &options, &mut names, &mut reducer).expect("it is readable");
        reducer.finish(&names).map_err(|Diagnostics(errors)| errors)
    };
    assert!(reduced(&bundled("unawaited-branch.angio")).is_ok());
    let errors = reduced(&bundled("asynchronous.angio")).expect_err("another task begins there");
    let said: Vec<String> =
        errors.iter().map(|error| format!("{} {} {:?}", error.code, error.message, error.place)).collect();
    assert_eq!(said.len(), 2, "the first node of each of two visits is told: {said:?}");
    assert!(said[0].starts_with("R095 node `send,2,1,Be | receiver,1` runs on task `receiver`"), "{said:?}");
    assert!(said[0].contains("template `fork` gives it to entry E1 of task `sender`"), "{said:?}");
    assert!(said[0].contains("t.angio"), "{said:?}");
}

/// A template that opens no entry for a task says nothing of its work: neither is it somebody else's, nor is that silent.
#[test]
fn a_task_without_an_entry_is_told_of() {
    let text = r"
template dropped {
  order -1
  match {
    e1 = Fk(q) [j, k, m | a, v]
    e2 = Be    [j, q, 1 | b, w]
  }
  where { a != b }
}
";
    let own = rules(text);
    let codes: Vec<&str> = own.warnings().iter().map(|finding| finding.code.0).collect();
    assert!(codes.contains(&"R080"), "{codes:?}");
    let reduction = reduce(SENDS, &own, ReduceOptions::default());
    let stray = "thread that moves to another task with no recognised request";
    assert_eq!(reduction.findings.counted.get(stray), Some(&3), "{:?}", reduction.findings.counted);
    assert_eq!(reduction.submodel.entries().len(), 2, "the customer and A");
}

#[test]
fn what_could_not_be_read_hides_nothing_and_brings_up_nothing() {
    let template = |name: &str, conditions: &str, model: &str| {
        format!(
            "template {name} {{ order -{} match {{ e1 = Ac [j, k, m | a, v] {{ name: \"{name}\" }} }} where {{ {conditions} }} model {{ \
             {model} }} }}\n",
            name.len()
        )
    };
    // A file that is not there may define what is asked for; a slip in one template leaves the others to be checked.
    let text = "use \"gone.dl\"\n".to_owned()
        + &template("x", "there(a), v >", "addActvity(E, e1)")
        + &template("yy", "v > u, lost(e1)", "addActivity(E, e2)")
        + "lost(N) <- node(N\n"
        + &template("zzz", "a > 3", "");
    assert_eq!(
        errors(&text),
        [
            "R005 `}`",
            "R005 `<-`",
            "R005 `template`",
            "R012 `\"gone.dl\"`",
            "R022 `a`",
            "R058 `u`",
            "R058 `e2`",
            "R062 `addActvity`"
        ]
    );
}

#[test]
fn a_task_stands_for_its_name_beside_one() {
    let text = r#"
template same_name {
  order -1
  match { e1 = Ac [j, k, m | a, v] { name: x } }
  where { a = x, a = "A", x != "B" }
  model { addActivity(E, e1) }
}
"#;
    let trace = activities(&["A", "other", "A"]);
    let found = |text: &str| matches(&reduce(&trace, &rules(text), ReduceOptions::default()), &["same_name"]);
    assert_eq!(found(text), ["same_name 1,2", "same_name 1,4"]);
    assert_eq!(found(&text.replace("name: x", "name: a").replace("a = x, ", "").replace("x !=", "a !=")), found(text));
}
