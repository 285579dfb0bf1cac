//! `dyelog query` end to end.

use assert_cmd::Command;

pub(super) fn query(arguments: &[&str]) -> (i32, String, String) {
    dyelog(&[&["query"], arguments].concat())
}

pub(super) fn dyelog(arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyelog"));
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

const SHOP: &str = "traces/shop.otlp.jsonl";

#[test]
fn csv_has_a_header_and_the_key_of_the_operation() {
    let (code, out, err) = query(&["-e", "long(S, D) :- duration(S, D), D > 5000000", SHOP, "--format", "csv"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("scenario,run,S,D\n"), "{out}");
    assert!(out.lines().count() > 1, "{out}");
    assert!(out.lines().skip(1).all(|line| line.split(',').count() == 4), "{out}");
}

#[test]
fn the_largest_come_first() {
    let (_, all, _) = query(&["--relation", "duration", SHOP, "--format", "csv"]);
    let mut expected: Vec<u64> = all.lines().skip(1).filter_map(|line| line.rsplit(',').next()?.parse().ok()).collect();
    expected.sort_unstable_by(|a, b| b.cmp(a));
    let (code, out, err) =
        query(&["--relation", "duration", "--top", "7", "--by", "duration", SHOP, "--format", "csv"]);
    assert_eq!(code, 0, "{err}");
    let found: Vec<u64> = out.lines().skip(1).filter_map(|line| line.rsplit(',').next()?.parse().ok()).collect();
    assert_eq!(found, expected[..7]);
}

#[test]
fn several_relations_go_into_a_folder_or_one_document() {
    let rules = ["-e", "a(S) :- root(S)", "-e", "b(S, T) :- self_time(S, T)"];
    let (code, _, err) = query(&[&rules[..], &[SHOP, "--format", "csv"]].concat());
    assert_eq!(code, 2);
    assert!(err.contains("C005"), "{err}");
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("out");
    let path = path.to_str().expect("a path");
    let (code, out, err) = query(&[&rules[..], &[SHOP, "--format", "csv", "-o", path]].concat());
    assert_eq!((code, &*out), (0, ""), "{err}");
    let a = std::fs::read_to_string(format!("{path}/a.csv")).expect("a file each");
    assert_eq!(a.lines().count(), 201);
    assert!(std::fs::read_to_string(format!("{path}/b.csv")).expect("a file each").starts_with("scenario,run,S,T\n"));
    let (_, out, _) = query(&[&rules[..], &[SHOP, "--format", "json"]].concat());
    let document: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(document["dyelog-query"], 1);
    assert_eq!(document["operations"]["asked"], 200);
    assert_eq!(document["relations"][0]["rows"].as_array().map(Vec::len), Some(200));
    assert_eq!(document["relations"][1]["columns"], serde_json::json!(["scenario", "run", "S", "T"]));
    let (_, out, _) = query(&[&rules[..], &[SHOP, "--format", "jsonl"]].concat());
    assert!(out.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
}

#[test]
fn a_file_and_rules_of_the_command_line_are_one_question() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("q.dl");
    std::fs::write(&file, "output slow(span, ms).\nslow(S, D / 1000000) :- duration(S, D), D > 1000000.\n")
        .expect("written");
    let file = file.to_str().expect("a path");
    let (code, out, err) = query(&[file, SHOP, "--format", "csv"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("scenario,run,span,ms\n"), "{out}");
    let (code, out, err) = query(&[
        file,
        "-e",
        "n(N) :- N = count { slow(S, M) }",
        "--relation",
        "n",
        "--scope",
        "trace",
        SHOP,
        "--format",
        "csv",
    ]);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("N\n"), "{out}");
    let (code, _, err) = query(&[file]);
    assert_eq!(code, 2, "{err}");
}

#[test]
fn what_the_trace_lacks_is_told() {
    let (code, _, err) = query(&["-e", "q(S) :- span(S, \"gatway\", _)", SHOP]);
    assert_eq!(code, 0);
    assert!(err.contains("Q003") && err.contains("did you mean `gateway`?") && err.contains("Q004"), "{err}");
    let (code, _, err) = query(&["-e", "q(S) :- spam(S, _, _)", SHOP]);
    assert_eq!(code, 2);
    assert!(err.contains("span"), "{err}");
    let (code, _, err) = query(&[SHOP]);
    assert_eq!(code, 2);
    assert!(err.contains("nothing is asked of `traces/shop.otlp.jsonl`") && err.contains("-e 'RULE'"), "{err}");
}

#[test]
fn matches_as_json_tell_what_they_bind() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyelog"));
    let output = command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["matches", "traces/forwarding-2.angio", "--format", "json"])
        .output()
        .expect("it runs");
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let forwarding =
        rows["matches"].as_array().into_iter().flatten().find(|row| row["template"] == "forwarding").expect("a match");
    assert!(forwarding["nodes"]["f[2]"]["thread"].is_u64(), "{forwarding}");
    assert_eq!(forwarding["variables"]["n"], 2, "{forwarding}");
}

/// Whoever reads the answer may go away.
#[cfg(unix)]
#[test]
fn a_closed_pipe_is_success() {
    let line = format!(
        "{} query --relation edge {SHOP} --format csv | head -1; exit ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_dyelog")
    );
    let status = std::process::Command::new("bash")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["-c", &line])
        .output()
        .expect("bash runs");
    assert_eq!(status.status.code(), Some(0), "{}", String::from_utf8_lossy(&status.stderr));
}

/// What `rules profile` says of a rule file over the shop.
fn profile(rules: &str, more: &[&str]) -> (i32, String, String) {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("asked.dl");
    std::fs::write(&file, rules).expect("it is writable");
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyelog"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(["rules", "profile"]).arg(&file).arg(SHOP).args(more);
    let output = command.output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

#[test]
fn rules_are_profiled() {
    let rules = "output pairs, long.\n\
        pairs(A, B) :- span(A, \"gateway\", _), span(B, \"payment\", _).\n\
        long(S, D) :- span(S, _, _), duration(S, D), D > 5000000.\n";
    let (code, out, err) = profile(rules, &["--format", "json"]);
    assert_eq!((code, &*err), (0, ""), "{out}");
    let found: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&found["dyelog-rule-profile"], &found["interrupted"]), (&1.into(), &false.into()));
    // The rows that go out are those that the question gives.
    for (place, name) in ["pairs", "long"].into_iter().enumerate() {
        let rule = &found["rules"][place];
        let asked = ["-e", rules.lines().nth(place + 1).expect("a line each"), SHOP, "--format", "csv"];
        let rows = query(&asked).1.lines().count() - 1;
        assert_eq!((&rule["relation"], &rule["rows"]), (&name.into(), &rows.into()));
        let last = rule["orders"][0].as_array().and_then(|order| order.last()).expect("literals");
        assert_eq!(last["given"], rule["rows"]);
    }
    let (_, text, _) = profile(rules, &[]);
    let product = text.lines().find(|line| line.contains("cartesian product")).expect("the pairs are one");
    assert!(product.contains("span("), "{text}");
    assert_eq!(text.matches("cartesian product").count(), 1, "{text}");
}

/// The profile lists each literal within the braces of a recursive `max`.
#[test]
fn the_inside_of_a_recursive_max_is_profiled() {
    let rules = "longest(X, 0) :- edge(X, _), !edge(_, X).\n\
        longest(Y, D) :- D = max L { edge(X, Y), longest(X, P), L = P + 1 }.\noutput longest.\n";
    let (code, text, err) = profile(rules, &[]);
    assert_eq!((code, &*err), (0, ""), "{text}");
    for literal in ["  longest(X, P)", "  L = P+1", "  edge(X, Y)"] {
        assert_eq!(text.lines().filter(|line| line.starts_with(literal)).count(), 1, "{literal} in\n{text}");
    }
}

#[test]
fn fractions_are_shown_as_they_are_written() {
    for number in ["0.3", "0.7", "0.1", "-2.5", "1e-9", "12345.678", "3.1415926535898"] {
        let rule = format!("q(X) :- root(S), X = {number}");
        let (_, out, err) = query(&["-e", &rule, SHOP, "--format", "jsonl"]);
        let first: serde_json::Value = serde_json::from_str(out.lines().next().expect("a row")).expect("JSON");
        assert_eq!(first["row"]["X"].as_f64(), number.parse().ok(), "{first} {err}");
    }
}

#[test]
fn the_key_of_the_operation_is_a_column_to_order_by() {
    let (_, all, _) = query(&["--relation", "root", SHOP, "--format", "csv"]);
    let mut runs: Vec<&str> = all.lines().skip(1).filter_map(|line| line.split(',').nth(1)).collect();
    runs.sort_unstable_by(|a, b| b.cmp(a));
    let (code, out, err) = query(&["--relation", "root", "--top", "5", "--by", "run", SHOP, "--format", "csv"]);
    assert_eq!(code, 0, "{err}");
    let found: Vec<&str> = out.lines().skip(1).filter_map(|line| line.split(',').nth(1)).collect();
    assert_eq!(found, runs[..5]);
    let (code, _, err) = query(&["--relation", "root", "--top", "5", "--by", "run", "--scope", "trace", SHOP]);
    assert_eq!(code, 2);
    assert!(err.contains("Q006"), "{err}");
}

/// Ctrl-C ends the evaluation, and what was measured is written.
#[cfg(unix)]
#[test]
fn a_profile_that_is_interrupted_tells_what_it_measured() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("endless.dl");
    let rules = "output triples.\ntriples(A, B, C) :- span(A, _, _), span(B, _, _), span(C, _, _).\n";
    std::fs::write(&file, rules).expect("it is writable");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_dyelog"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(["rules", "profile"]).arg(&file);
    command.args([SHOP, "--scope", "trace", "--format", "json"]);
    let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn();
    let child = child.expect("it runs");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("kill runs").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["interrupted"], true);
    assert!(found["rules"][0]["rows"].as_u64() > Some(0), "{found}");
}

#[test]
fn what_cannot_be_read_is_no_trace_of_operations() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, _, words) = dyelog(&["query", "--relation", "interaction", &folder.path().display().to_string()]);
    assert_eq!(code, 2, "{words}");
    assert!(words.contains("it is a folder") && !words.contains("Q009"), "{words}");
}

#[test]
fn an_aggregate_in_the_head_is_told_where_it_belongs() {
    for rule in ["q(V, count S) :- span(S, V, _).", "q(V, avg(D)) :- span(S, V, _), duration(S, D)."] {
        let (code, _, words) = dyelog(&["query", "-e", rule, "traces/shop.otlp.jsonl"]);
        assert_eq!(code, 2, "{words}");
        assert!(words.contains("N = count { r(X, V) }"), "{rule}: {words}");
    }
}

#[test]
fn a_full_stop_after_use_is_no_fault() {
    let rule = "use \"std/tree.dl\".";
    let (code, out, words) =
        dyelog(&["query", "-e", rule, "-e", "q(S) :- leaf(S).", "traces/shop.otlp.jsonl", "--format", "csv"]);
    assert_eq!(code, 0, "{words}");
    assert!(out.lines().count() > 100, "{out}");
}

#[test]
fn a_library_file_without_its_ending_is_told() {
    let (code, _, err) = query(&["-e", "use \"std/tree\"", "-e", "deep(S) :- depth(S, D), D > 3", SHOP]);
    assert_eq!(code, 2);
    assert!(err.contains("no rule file `std/tree`") && err.contains("write `std/tree.dl`"), "{err}");
}

#[test]
fn operations_with_spans_put_back_are_counted() {
    let text = std::fs::read_to_string(SHOP).expect("the bundled trace is there");
    let mut number = 0;
    let mut lines = String::new();
    for line in text.lines() {
        let mut request: serde_json::Value = serde_json::from_str(line).expect("it is JSON");
        for resource in request["resourceSpans"].as_array_mut().expect("a list") {
            for scope in resource["scopeSpans"].as_array_mut().expect("a list") {
                scope["spans"].as_array_mut().expect("a list").retain(|_| {
                    number += 1;
                    number % 37 != 0
                });
            }
        }
        lines += &format!("{request}\n");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("lossy.jsonl");
    std::fs::write(&trace, lines).expect("it is written");
    let asked = |rule: &str| {
        let (code, out, err) = query(&["-e", rule, &trace.to_string_lossy(), "--format", "json"]);
        assert_eq!(code, 0, "{err}");
        serde_json::from_str::<serde_json::Value>(&out).expect("it is JSON")
    };
    let document = asked("r(S) :- restored(S).");
    let rows = document["relations"][0]["rows"].as_array().expect("rows");
    let mut runs: Vec<&str> = rows.iter().filter_map(|row| row["run"].as_str()).collect();
    runs.sort_unstable();
    runs.dedup();
    let counted = document["operations"]["restored"].as_u64().expect("a number");
    assert!(!runs.is_empty() && counted >= runs.len() as u64, "{counted} of {}", runs.len());
    let whole = query(&["-e", "r(S) :- root(S).", SHOP, "--format", "json"]).1;
    assert!(whole.contains("\"restored\": 0"), "{whole}");
}

#[test]
fn what_the_largest_rows_cannot_mean_is_told() {
    let (code, _, err) = query(&["--relation", "duration", "--top", "0", "--by", "duration", SHOP]);
    assert!(code == 2 && err.contains("1 at least"), "{err}");
    let relations = ["--relation", "duration", "--relation", "root", "--relation", "duration"];
    let (code, out, err) = query(&[&relations[..], &["--top", "2", "--by", "duration", SHOP]].concat());
    assert!(code == 0 && err.contains("`root` has no column `duration`, and is not shown"), "{err}");
    assert_eq!(out.lines().count(), 3, "{out}");
}

#[test]
fn a_relation_of_the_library_is_told_with_its_file() {
    let (code, _, err) = query(&["--relation", "leaf", SHOP]);
    assert!(code == 2 && err.contains("-e 'use \"std/tree.dl\"'"), "{err}");
    let (code, out, err) = query(&["-e", "use \"std/tree.dl\"", "--relation", "leaf", SHOP, "--format", "csv"]);
    assert_eq!((code, &*err), (0, ""), "{out}");
}

/// What is shown is used, whatever a file exports.
#[test]
fn what_is_shown_is_used() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("rules.dl");
    std::fs::write(&file, "export a.\na(S) :- root(S).\nb(S) :- a(S).\n").expect("written");
    let file = file.to_str().expect("a path");
    let (code, out, err) = query(&[file, SHOP]);
    assert!(code == 0 && out.contains("\nb\n"), "{err}");
    assert_eq!(err, "");
    let (code, out, _) = dyelog(&["rules", "check", file]);
    assert!(code == 0 && out.contains("nothing uses `b`"), "{out}");
}

/// A file of questions is checked by what questions can ask.
#[test]
fn files_of_questions_are_checked() {
    let said = |text: &str| {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let file = folder.path().join("rules.dl");
        std::fs::write(&file, text).expect("written");
        dyelog(&["rules", "check", file.to_str().expect("a path")])
    };
    for file in ["examples/queries/by_service.dl", "examples/queries/slow.dl", "rules/std/n_plus_one.dl"] {
        let (code, out, err) = dyelog(&["rules", "check", file]);
        assert!(code == 0 && out.starts_with("no findings"), "{file}: {out}{err}");
    }
    let (code, out, _) = said("slow(S) :- durations(S, D), D > 10.");
    assert!(code == 1 && out.contains("did you mean `duration`?"), "{out}");
    let (code, out, _) = said("slow(S) :- leaf(S), span(S, _, _).");
    assert!(code == 1 && out.contains("write `use \"std/tree.dl\"` at the top"), "{out}");
    let (code, out, _) = said("slow(S) :- span(S, _, _), duration(S, D), D > \"10ms\".");
    assert!(code == 1 && out.contains("R022"), "{out}");
}

#[test]
fn very_large_and_very_small_numbers_have_an_exponent() {
    let rules = ["-e", "n(1e300).", "-e", "n(2.5e-9).", "-e", "n(0.25).", "-e", "n(1e15)."];
    for (form, expected) in [("csv", "0.25"), ("text", "0.25")] {
        let (code, out, err) = query(&[&rules[..], &["--scope", "trace", "--format", form, SHOP]].concat());
        assert_eq!(code, 0, "{err}");
        let rows: Vec<&str> = out.lines().skip(1).map(str::trim).collect();
        assert_eq!(rows, ["2.5e-9", expected, "1000000000000000", "1e300"], "{form}");
    }
}

#[test]
fn a_question_about_spans_of_a_trace_without_any_is_told() {
    let (code, _, err) = query(&["-e", "a(S) :- span(S, _, _)", "traces/rpc.angio"]);
    assert!(code == 0 && err.contains("the trace has none") && err.contains("tell of nodes"), "{err}");
    let (_, _, err) = query(&["-e", "a(S) :- span(S, _, \"x\")", SHOP]);
    assert!(!err.contains("the trace has none"), "{err}");
}

#[test]
fn a_library_of_questions_has_a_page() {
    let (code, out, err) = dyelog(&["rules", "doc", "rules/std/tree.dl"]);
    assert_eq!((code, &*err), (0, ""));
    for part in ["# Rules of `rules/std/tree.dl`", "### descendant", "Span D lies below span A.", "| `parent/2` |"] {
        assert!(out.contains(part), "{part}: {out}");
    }
}
