//! Questions to traces that are deep, wide, or none.

use std::fmt::Write as _;

use super::cli::dyelog;

/// So many spans in one operation, by the parent of each; each within its parent.
fn trace(spans: usize, parent: impl Fn(usize) -> usize) -> String {
    let mut text = String::from(r#"{"data":[{"traceID":"1","processes":{"p":{"serviceName":"s"}},"spans":["#);
    for number in 0..spans {
        let reference = match number {
            0 => String::new(),
            _ => format!(r#"{{"refType":"CHILD_OF","traceID":"1","spanID":"{:x}"}}"#, parent(number) + 16),
        };
        let comma = if number == 0 { "" } else { "," };
        let _ = write!(
            text,
            r#"{comma}{{"traceID":"1","spanID":"{:x}","processID":"p","operationName":"n","startTime":{},"duration":{},"references":[{reference}],"tags":[]}}"#,
            number + 16,
            number + 1,
            2 * (spans - number) + 1
        );
    }
    text + "]}]}"
}

const RULES: &str = "use \"std/tree.dl\" use \"std/critical_path.dl\" use \"std/intervals.dl\"\n\
    output a, b, c, d, e.\n\
    a(N) :- N = sum T { critical_time(_, T) }.\n\
    b(N) :- N = count { self_time(S, _) }.\n\
    c(N) :- N = count { next_sibling(A, B) }.\n\
    d(N) :- N = max X { depth(_, X) }.\n\
    e(N) :- N = count { root(R), ancestor(R, S) }.\n";

const STEPS: &str = "step(X, 0) :- kind(X, \"Be\").\nstep(Y, N+1) :- step(X, N), next_in_thread(X, Y), N < 9.\n";

#[test]
fn deep_and_wide_traces_are_asked_in_linear_time() {
    const SPANS: usize = 100_000;
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    let (rules, steps) = (path("rules.dl"), path("steps.dl"));
    std::fs::write(&rules, RULES).expect("written");
    std::fs::write(&steps, STEPS).expect("written");
    for (name, depth, siblings) in [("chain", SPANS - 1, 0), ("fan", 1, SPANS - 2)] {
        let file = path(name);
        let parent = |number: usize| if name == "chain" { number - 1 } else { 0 };
        std::fs::write(&file, trace(SPANS, parent)).expect("written");
        let (code, out, err) = dyelog(&["query", &rules, &file, "--format", "jsonl"]);
        assert_eq!(code, 0, "{err}");
        let rows: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let value = |place: usize| rows[place]["row"]["N"].as_u64();
        // What the response waits for is as long as the response.
        assert_eq!(value(0), Some((2 * SPANS as u64 + 1) * 1000), "{name}");
        assert_eq!(value(1), Some(SPANS as u64), "{name}");
        assert_eq!(value(2), Some(siblings as u64), "{name}");
        assert_eq!(value(3), Some(depth as u64), "{name}");
        assert_eq!(value(4), Some(SPANS as u64 - 1), "{name}");
        let (code, _, err) = dyelog(&["rules", "profile", &rules, &file]);
        assert_eq!(code, 0, "{name}: {err}");
        let (code, out, err) = dyelog(&["explain", &steps, &file, "--fact", "step(_, 9)"]);
        assert!(code == 0 && out.contains("step("), "{name}: {err}");
        let (code, out, err) = dyelog(&["why-not", &steps, "step(_, 10)", &file]);
        assert!(code == 0 && out.contains("does not hold"), "{name}: {err}");
    }
}

#[test]
fn what_is_no_trace_is_an_error() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    let (rules, steps, empty, binary) = (path("rules.dl"), path("steps.dl"), path("empty"), path("binary"));
    std::fs::write(&rules, RULES).expect("written");
    std::fs::write(&steps, STEPS).expect("written");
    std::fs::write(&empty, "").expect("written");
    let noise: Vec<u8> = (0..100_000_u32).map(|place| (place.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(&binary, noise).expect("written");
    let directory = folder.path().to_str().expect("a path").to_owned();
    for file in [&empty, &binary, &directory, &path("missing")] {
        for arguments in [
            &["query", &rules, file][..],
            &["query", "--relation", "span", file],
            &["query", file, file],
            &["rules", "profile", &rules, file],
            &["rules", "profile", file, "traces/shop.otlp.jsonl"],
            &["explain", &steps, file, "--fact", "step(_, 1)"],
            &["why-not", &steps, "step(_, 1)", file],
        ] {
            let (code, out, err) = dyelog(arguments);
            assert_eq!((code, &*out), (2, ""), "{arguments:?}: {err}");
            assert!(err.contains("error["), "{arguments:?}: {err}");
        }
    }
}

/// So many events of one thread.
fn events(count: usize) -> String {
    let mut text = String::from("operation o run=1\no,1,1,Be | a,1\n");
    for number in 2..count {
        let _ = writeln!(text, "o,1,{number},Ac | a,{number}");
    }
    let _ = writeln!(text, "o,1,{count},Ed | a,{count}");
    text
}

/// More rows than are kept are the same rows, in an order that is the same each time; who keeps all rows has them in order. Rules in another
/// order, or as two of them, give the same rows.
#[test]
fn a_long_answer_has_the_same_rows() {
    // Found from the greatest to the least, so that the order tells whether they were sorted.
    const PAIRS: &str = "pair(X, N) :- thread(_, _, M), thread(_, _, N), X = 2000 - M.";
    const FIRST: &str = "pair(X, N) :- thread(_, _, M), thread(_, _, N), X = 2000 - M, M < 600.";
    const SECOND: &str = "pair(X, N) :- thread(_, _, N), M > 500, X = 2000 - M, thread(_, _, M).";
    let folder = tempfile::tempdir().expect("a scratch folder");
    for (count, is_long) in [(1024, false), (1025, true)] {
        assert_eq!(count * count > dyelog::query::answer::SORTED, is_long);
        let file = folder.path().join("trace.angio");
        std::fs::write(&file, events(count)).expect("written");
        let file = file.to_str().expect("a path");
        let ask = |rules: &str, form: &str| {
            let (code, out, err) = dyelog(&["query", "-e", rules, "--scope", "trace", "--format", form, file]);
            assert_eq!(code, 0, "{err}");
            out
        };
        let number = |text: &str| text.trim().parse::<usize>().expect("a number");
        let pair = |(one, other): (&str, &str)| (number(one), number(other));
        let rows = |text: &str| text.lines().skip(1).filter_map(|line| line.split_once(',')).map(pair).collect();
        let expected = || (2000 - count..2000).flat_map(|one| (1..=count).map(move |other| (one, other)));
        let streamed = ask(PAIRS, "csv");
        assert!(streamed == ask(PAIRS, "csv"), "the order of {count} events is another one");
        let ordered: Vec<_> =
            ask(PAIRS, "text").lines().skip(1).filter_map(|line| line.trim().split_once(' ')).map(pair).collect();
        assert!(ordered.into_iter().eq(expected()), "{count} events");
        let others = [format!("{FIRST} {SECOND}"), format!("{SECOND} {FIRST}")].map(|rules| ask(&rules, "csv"));
        assert_eq!(others[0] == others[1], !is_long, "short answers are in order");
        for text in others.iter().chain([&streamed]) {
            let mut rows: Vec<(usize, usize)> = rows(text);
            assert_eq!(rows.is_sorted(), !is_long);
            rows.sort_unstable();
            assert!(rows.into_iter().eq(expected()), "{count} events");
        }
    }
}

/// What is kept is limited; what is written as it comes is not.
#[test]
fn an_answer_that_is_kept_is_limited() {
    let rule = "pair(M, N) :- node(M), node(N).";
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("trace.angio");
    std::fs::write(&file, events(300)).expect("written");
    let file = file.to_str().expect("a path");
    let ask = |more: &[&str]| dyelog(&[&["query", "-e", rule, "--max-memory", "1MB", file], more].concat());
    for kept in [&["--format", "text"][..], &["--format", "json"], &["--top", "50000", "--by", "M"]] {
        let (code, out, err) = ask(kept);
        assert_eq!((code, &*out), (2, ""), "{kept:?}: {err}");
        assert!(err.contains("Q011") && err.contains("--max-memory"), "{kept:?}: {err}");
    }
    // Relations that are shown together share the room, as those do that are evaluated together.
    let both = ["-e", "other(M, N) :- pair(N, M)."];
    for (more, code) in [(&[][..], 0), (&both[..], 2)] {
        let (found, _, err) = dyelog(&[&["query", "-e", rule, "--max-memory", "50MB", file], more].concat());
        assert_eq!(found, code, "{more:?}: {err}");
    }
    for written in [&["--format", "csv"][..], &["--format", "jsonl"], &["--top", "5", "--by", "M"]] {
        let (code, out, err) = ask(written);
        assert!(code == 0 && !out.is_empty(), "{written:?}: {err}");
    }
}

/// Rules without number, in one level, in a chain, and with a slip in each.
#[test]
fn many_rules_are_read_checked_and_asked() {
    const RULES: usize = 10_000;
    let folder = tempfile::tempdir().expect("a scratch folder");
    let write = |name: &str, rule: &dyn Fn(usize) -> String| {
        let path = folder.path().join(name);
        std::fs::write(&path, (0..RULES).map(rule).collect::<String>()).expect("written");
        path.to_str().expect("a path").to_owned()
    };
    let flat = write("flat.dl", &|number| format!("r{number}(S) :- root(S).\n"));
    let chain = write("chain.dl", &|number| match number {
        0 => "output last. r0(S) :- root(S).\n".to_owned(),
        number if number + 1 == RULES => format!("last(S) :- r{}(S).\n", number - 1),
        number => format!("r{number}(S) :- r{}(S).\n", number - 1),
    });
    let wrong = write("wrong.dl", &|number| format!("r{number}(S) :- roots{number}(S).\n"));
    let file = folder.path().join("trace");
    std::fs::write(&file, trace(3, |_| 0)).expect("written");
    let file = file.to_str().expect("a path");
    for (rules, rows) in [(&flat, RULES), (&chain, 1)] {
        let (code, out, err) = dyelog(&["query", rules, file, "--format", "jsonl"]);
        assert_eq!((code, out.lines().count()), (0, rows), "{err}");
    }
    for (rules, code) in [(&flat, 0), (&chain, 0), (&wrong, 1)] {
        let (found, out, err) = dyelog(&["rules", "check", rules]);
        assert_eq!(found, code, "{out} {err}");
    }
    let (_, out, _) = dyelog(&["rules", "check", &wrong]);
    assert!(out.contains("more than 100 errors; 9900 are not shown"), "{out}");
}
