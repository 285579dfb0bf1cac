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
