//! What rules look for and a trace does not have, or has in another form.

use super::{OTLP, Scope, ask};

/// The codes of what is said of a question, and all notes and hints.
fn said(rules: &str) -> (Vec<&'static str>, String) {
    let (_, told) = ask(rules, OTLP.as_bytes(), Scope::Operation).unwrap_or_else(|error| panic!("{rules}: {error}"));
    let codes = told.findings.iter().map(|finding| finding.code.0).filter(|code| *code != "Q004").collect();
    let words = told.findings.iter().flat_map(|finding| finding.notes.iter().chain(&finding.hints));
    (codes, words.cloned().collect::<Vec<_>>().join("\n"))
}

#[test]
fn numbers_among_texts_and_texts_among_numbers_are_told() {
    // The trace has n=7 (also where it is written as a text: text=12), half=0.5, zero="007".
    for (rules, code, hint) in [
        ("q(S) :- attr(S, \"n\", \"7\").", "Q008", "write 7 without quotes"),
        ("q(S) :- attr(S, \"text\", \"12\").", "Q008", "write 12 without quotes"),
        ("q(S) :- attr(S, \"half\", \"0.5\").", "Q008", "write 0.5 without quotes"),
        ("q(S) :- attr(S, \"n\", V), V = \"7\".", "Q008", "write 7 without quotes"),
        ("q(S) :- attr(S, _, \"7\").", "Q008", "write 7 without quotes"),
        ("q(S) :- of(S, \"7\"). of(S, V) :- attr(S, \"n\", V).", "Q008", "write 7 without quotes"),
        ("q(S) :- attr(S, \"n\", 8).", "Q003", "the trace has 7"),
        ("q(S) :- attr(S, \"n\", \"many\").", "Q003", "the trace has 7"),
        ("q(S) :- attr(S, \"zero\", 7).", "Q010", "in quotes: `\"007\"`"),
        ("q(S) :- attr(S, \"zero\", V), V > 1.", "Q010", "in quotes: `\"007\"`"),
        ("q(S, W) :- attr(S, \"zero\", V), W = V + 1.", "Q010", "in quotes"),
        ("q(S, V * 2) :- attr(S, \"zero\", V).", "Q010", "in quotes"),
        ("q(T) :- T = sum V { attr(S, \"zero\", V), root(S) }.", "Q010", "in quotes"),
        ("q(T) :- span(_, \"a\", _), T = p95 V { attr(_, \"zero\", V) }.", "Q010", "in quotes"),
        ("q(T) :- T = max V { attr(_, \"zero\", V) }.", "Q010", "in quotes"),
        ("q(T) :- T = sum V { attr(_, _, V) }.", "Q013", "`V >= 0`, leaves texts out"),
        ("q(S, T) :- root(S), T = max V { attr(S, _, V) }.", "Q013", "among numbers"),
        ("q(S) :- resource(S, \"zone\", V), V < 3.", "Q010", "`z1`"),
        ("q(E) :- event_attr(E, \"exception.type\", 3).", "Q010", "`Timeout`"),
    ] {
        let (codes, words) = said(rules);
        assert_eq!(codes, [code], "{rules}");
        assert!(words.contains(hint), "{rules}: {words}");
    }
}

#[test]
fn what_the_trace_has_is_not_told() {
    for rules in [
        "q(S) :- attr(S, \"n\", 7).",
        "q(S) :- attr(S, \"n\", V), V > 100.",
        "q(S) :- attr(S, \"half\", 0.5).",
        "q(S) :- attr(S, \"whole\", 3).",
        "q(S) :- attr(S, \"zero\", \"007\").",
        "q(V) :- attr(S, _, V), root(S), V > 5.",
        "q(M) :- span(_, \"a\", _), M = max V { attr(_, \"half\", V) }.",
        "q(M) :- M = sum V { attr(_, _, V), V > 0 }.",
        "q(M) :- M = sum V { of(V) }. of(V) :- attr(_, _, V), V > 0.",
    ] {
        assert_eq!(said(rules).0, Vec::<&str>::new(), "{rules}");
    }
}

/// Texts are kept or left out by the places that expressions find in them, in whatever order the literals stand.
#[test]
fn regular_expressions_find_places_in_texts() {
    let rows = |rules: &str| {
        let (rows, told) = ask(rules, OTLP.as_bytes(), Scope::Trace).unwrap_or_else(|error| panic!("{rules}: {error}"));
        let codes: Vec<&str> =
            told.findings.iter().map(|finding| finding.code.0).filter(|code| *code != "Q004").collect();
        (rows.into_iter().map(|row| row.join(" ")).collect::<Vec<_>>().join(", "), codes.join(" "))
    };
    for (rules, found, codes) in [
        ("q(N) :- span(_, _, N), regex(N, \"^r\").", "root", ""),
        ("q(N) :- regex(N, \"oo\"), span(_, _, N).", "root", ""),
        ("q(V) :- attr(_, \"zero\", V), regex(V, \"^0+7$\").", "007", ""),
        ("q(S) :- root(S), !regex(N, \"x\"), span(S, _, N).", "000000000000000a", "Q003"),
        ("q(S) :- root(S), span(S, _, N), M = N, regex(M, \"[a-r]oot\").", "000000000000000a", ""),
        ("q(C) :- C = count { span(S, _, N), regex(N, \"t$\") }.", "1", ""),
        ("q(K) :- root(S), attr(S, K, _), regex(K, \"^(n|half)$\").", "half, n", ""),
        ("q(S) :- r(S, N), regex(N, \"t$\"). r(S, N) :- span(S, _, N), root(S).", "000000000000000a", ""),
        // A warning names what finds nothing, and numbers where texts are searched.
        ("q(S) :- span(S, _, N), regex(N, \"^oot\").", "", "Q003"),
        ("q(S) :- r(S, N), regex(N, \"^oot\"). r(S, N) :- span(S, _, N).", "", "Q003"),
        ("q(S) :- root(S), span(S, _, N), !regex(N, \"^oot\").", "000000000000000a", "Q003"),
        ("q(S) :- attr(S, \"n\", V), regex(V, \"7\").", "", "Q003"),
    ] {
        assert_eq!(rows(rules), (found.to_owned(), codes.to_owned()), "{rules}");
    }
    for (rules, code) in [
        ("q(N) :- regex(N, \"a\").", "Q014"),
        ("q(N) :- span(_, N, _), !regex(_, \"a\").", "Q014"),
        ("q(C) :- span(_, N, _), C = count { regex(N, \"a\") }.", "Q014"),
        ("q(N) :- M = N, regex(N, \"a\"), regex(M, \"a\").", "Q014"),
        ("q(N) :- span(_, N, P), regex(N, P).", "Q014"),
        ("q(N) :- span(_, N, _), regex(N, \"a(\").", "Q014"),
        ("q(N) :- span(_, N, _), regex(N, \"((a{1000}){1000}){1000}\").", "Q014"),
        ("q(D) :- duration(_, D), regex(D, \"1\").", "R022"),
    ] {
        let error = ask(rules, OTLP.as_bytes(), Scope::Trace).expect_err(rules);
        assert!(error.0.iter().any(|error| error.code.0 == code), "{rules}: {error}");
    }
}

/// Arithmetic without a value, in each part of a rule, is counted; of texts other findings tell.
#[test]
fn arithmetic_without_a_value_is_told() {
    let told = |rules: &str| {
        let (_, told) = ask(rules, OTLP.as_bytes(), Scope::Trace).unwrap_or_else(|error| panic!("{rules}: {error}"));
        let found = told.findings.into_iter().find(|finding| finding.code.0 == "Q015");
        found.map(|finding| finding.message)
    };
    for (rules, times) in [
        ("q(S, X) :- root(S), duration(S, D), Z = D - D, X = D / Z.", Some("once")),
        ("q(X / 0.5, D / (D - X)) :- root(S), duration(S, D), X = D.", Some("once")),
        ("q(S) :- root(S), duration(S, D), D * 1e300 * 1e300 > 0.", Some("once")),
        ("q(X) :- X = sum V { root(S), duration(S, D), V = D * 1e300 * 1e300 }.", Some("once")),
        ("q(S, X) :- root(S), X = count { root(S), duration(S, D), 1 / (D - D) > 0 }.", Some("once")),
        ("q(S, X) :- r(S, X). r(S, X) :- root(S), duration(S, D), X = D % (D - D).", Some("once")),
        ("q(S, X) :- root(S), duration(S, D), D > 0, X = 1 / D.", None),
        ("q(S, X) :- attr(S, \"zero\", V), X = V * 2.", None),
    ] {
        let expected = times.map(|times| format!("arithmetic of this rule had no value {times}"));
        assert_eq!(told(rules), expected, "{rules}");
    }
}

/// That a key has no value of some sort follows, where the trace does not have the key.
#[test]
fn a_key_that_the_trace_lacks_is_told_once() {
    for rules in ["q(S) :- attr(S, \"haif\", 500).", "q(S) :- attr(S, \"haif\", V), V > 3, V != 4."] {
        let (codes, words) = said(rules);
        assert_eq!(codes, ["Q003"], "{rules}");
        assert!(words.contains("did you mean `half`?") && !words.contains("at all"), "{rules}: {words}");
    }
}

/// Texts that rules have in facts of their own, and join with the trace by whatever way.
#[test]
fn texts_of_tables_are_looked_for() {
    for (rules, hints) in [
        ("k(\"n\"). k(\"haif\"). q(V) :- k(K), attr(_, K, V).", &["did you mean `half`?"][..]),
        ("k(\"haif\"). h(K) :- k(K). g(K) :- h(L), K = L. q(V) :- g(K), attr(_, K, V).", &["did you mean `half`?"]),
        ("k(K) :- K = \"haif\". q(V) :- k(K), attr(_, J, V), J = K.", &["did you mean `half`?"]),
        ("k(\"aa\"). q(S) :- span(S, X, _), !k(X).", &["did you mean `a`?"]),
        ("k(\"aa\"). q(S) :- is(S, X), k(X). is(S, X) :- span(S, X, _).", &["did you mean `a`?"]),
        ("k(\"aa\"). q(N) :- k(X), N = count { span(_, X, _) }.", &["did you mean `a`?"]),
        // In both tables, or in none that the trace is joined with.
        ("k(\"aa\"). k(\"a\"). l(\"a\"). q(S) :- k(X), l(X), span(S, X, _).", &[]),
        ("k(\"aa\", 1). q(S, N) :- span(S, _, _), k(_, N).", &[]),
        // What the trace has of them goes on.
        ("k(\"n\"). k(\"haif\"). h(K) :- k(K), attr(_, K, _). q(K) :- h(K).", &["did you mean `half`?"]),
        // A name that rules give is theirs.
        ("is(S, \"slow\") :- span(S, _, _). is(S, X) :- span(S, X, _). q(S) :- is(S, \"slow\").", &[]),
    ] {
        let (codes, words) = said(rules);
        assert_eq!(codes, vec!["Q003"; hints.len()], "{rules}");
        assert_eq!(words.lines().filter(|line| line.starts_with("did")).collect::<Vec<_>>(), *hints, "{rules}");
    }
}

#[test]
fn of_a_long_table_the_first_texts_are_named() {
    let table = (0..30).map(|number| format!("k(\"key {number}\"). ")).collect::<Vec<_>>().concat();
    let (codes, words) = said(&format!("{table} q(V) :- k(K), attr(_, K, V)."));
    assert_eq!(codes, ["Q003"; 8]);
    assert!(words.contains("22 more texts"), "{words}");
}
