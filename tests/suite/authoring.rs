//! What authors of rule files have beside the language: tests of folders, allowances, cases.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::cli::{Folder, run, shown};

fn bundled(name: &str) -> String {
    fs::read_to_string(name).expect("it is bundled")
}

/// A trace goes by the rule files that lie nearest above it; messages have none.
#[test]
fn each_folder_has_its_own_rules() {
    let folder = Folder::new();
    for name in ["own/deep", "none"] {
        fs::create_dir_all(folder.path(name)).expect("the folder is ours");
    }
    let root = shown(&folder.path(""));
    let trace = bundled("traces/acknowledged.angio");
    folder.file("own/a.dl", &bundled("examples/rules/acknowledged.dl"));
    for name in ["own/deep/a.angio", "none/a.angio"] {
        folder.file(name, &trace);
    }
    folder.file("own/messages.csv", &bundled("traces/same/case-1-sync.csv"));
    folder.file("none/load.csv", "time,processor,utilisation\n");
    let accepted = run(&["test", &root, "-U"]);
    assert_eq!(accepted.code, 0, "{}{}", accepted.out, accepted.err);
    assert!(accepted.out.contains("3 traces: 3 accepted"), "{}", accepted.out);
    assert!(accepted.err.contains("left out, since the content is no trace: ") && accepted.err.contains("load.csv"));
    let model = |name: &str| fs::read_to_string(folder.path(name)).expect("it was accepted");
    assert!(model("own/deep/a.model.snap").contains("acknowledged "));
    assert!(!model("none/a.model.snap").contains("acknowledged "));
    assert!(model("own/messages.model.snap").contains("analysis SAME"));
    assert_eq!(run(&["test", &root]).code, 0);

    let junit = run(&["test", &root, "--format", "junit"]).out;
    assert_eq!(junit.matches(" time=\"").count(), 4, "{junit}");
    // What was accepted once is no other file because its content is broken.
    folder.file("own/messages.csv", "nothing of it\n");
    let broken = run(&["test", &root]);
    assert_eq!(broken.code, 1);
    assert!(broken.out.contains("failed     ") && broken.out.contains("messages.csv"), "{}", broken.out);
}

#[test]
fn a_build_accepts_nothing() {
    let folder = Folder::new();
    folder.file("a.angio", &bundled("traces/rpc.angio"));
    let test = |value: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dyelog"));
        command.args(["test", &shown(&folder.path("")), "-U"]).env("CI", value).output().expect("it runs")
    };
    let refused = test("true");
    assert_eq!((refused.status.code(), folder.names()), (Some(2), vec!["a.angio".to_owned()]));
    let told = String::from_utf8(refused.stderr).expect("words are text");
    assert!(told.contains("`--update` is refused where CI is set"), "{told}");
    assert_eq!(test("false").status.code(), Some(0));
}

#[test]
fn a_watch_runs_again_when_a_file_changes() {
    let folder = Folder::new();
    let trace = bundled("traces/rpc.angio");
    folder.file("a.angio", &trace);
    let root = shown(&folder.path(""));
    assert_eq!(run(&["test", &root, "-U"]).code, 0);
    let mut child = Command::new(env!("CARGO_BIN_EXE_dyelog"))
        .args(["test", &root, "--watch"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let mut next = |wanted: &str| lines.by_ref().map_while(Result::ok).find(|line| line.contains(wanted)).is_some();
    let first = next("1 trace: 1 validated");
    folder.file("a.angio", &trace.replace("cpu=0.0015", "cpu=0.0065"));
    let second = next("1 trace: 1 different");
    folder.file("a.angio", "no trace");
    let third = next("1 trace: 1 failed");
    child.kill().expect("it runs until it is ended");
    child.wait().expect("it was ended");
    assert!(first && second && third, "{first} {second} {third}");
    assert_eq!(run(&["test", &root, "--watch", "-U"]).code, 2);
}

/// What a watched test writes into its own folder is no change that it waits for, whatever the file is named.
#[test]
fn a_watch_does_not_see_its_own_report() {
    let folder = Folder::new();
    folder.file("a.angio", &bundled("traces/rpc.angio"));
    let root = shown(&folder.path(""));
    assert_eq!(run(&["test", &root, "-U"]).code, 0);
    let report = folder.path("report.json");
    let mut child = Command::new(env!("CARGO_BIN_EXE_dyelog"))
        .args(["test", &root, "--watch", "--format", "json", "-o", &shown(&report)])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines().map_while(Result::ok);
    let waits = lines.any(|line| line.contains("runs again when a file changes"));
    // It looks four times a second.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    folder.file("b.dl", "p(1).\n");
    let changed = lines.find(|line| line.contains("has changed"));
    child.kill().expect("it runs until it is ended");
    child.wait().expect("it was ended");
    assert!(waits && report.exists(), "it has not been through");
    assert!(changed.as_deref().is_some_and(|line| line.contains("b.dl")), "{changed:?}");
}

const GREEDY: &str = "template mine { order -1 match { e1 = Ac [j, k, m | a, v] } model { addActivity(E, e1) } }\n";

#[test]
fn what_ships_is_not_told_about_under_a_users_file() {
    let folder = Folder::new();
    let greedy = folder.file("greedy.dl", GREEDY);
    let told = run(&["rules", "check", &greedy]);
    assert_eq!(told.code, 0, "{}", told.out);
    assert!(told.out.contains("note[R019]: this template leaves nothing to shipped ones: `"), "{}", told.out);
    assert!(!told.out.contains("R073") && !told.out.contains("rules/tlc.dl:"), "{}", told.out);
    let replacing = folder.file("own.dl", &GREEDY.replace("mine", "activity").replace("-1", "7"));
    let told = run(&["rules", "check", &replacing]);
    assert!(told.out.contains("note[R018]: `activity` replaces the shipped template of that name"), "{}", told.out);
    let used = run(&["matches", "traces/rpc.angio", "--rules", &replacing]);
    assert!(used.err.contains("note[R018]"), "{}", used.err);
    // The same templates under another name replace nothing.
    let same = folder.file("same.dl", "use \"tlc.dl\"\n");
    assert!(!run(&["rules", "check", &same]).out.contains("R018"));
}

/// Templates ask the graph alone: what questions may ask as well has its own hint.
#[test]
fn facts_of_questions_are_told_apart_in_templates() {
    let folder = Folder::new();
    for condition in ["where { node_span(e1, S), S != S }", "where { slow(e1) }"] {
        let nodes = "match { e1 = Ac [j, k, m | a, v] }";
        let text = format!(
            "slow(X) :- node_span(X, S), start(S, _).\ntemplate mine {{ order 1 {nodes} {condition} model {{ addActivity(E, e1) }} }}\n"
        );
        let told = run(&["rules", "check", &folder.file("own.dl", &text)]);
        assert_eq!(told.code, 1);
        for words in ["`node_span` is a fact of `dyelog query`", "templates ask facts of the graph: `node`, `thread`"] {
            assert!(told.out.contains(words), "{condition}: {}", told.out);
        }
        assert!(!told.out.contains("write rules for it"), "{}", told.out);
    }
}

#[test]
fn a_lint_is_allowed_with_a_reason() {
    let folder = Folder::new();
    let check = |text: &str| {
        let file = folder.file("a.dl", text);
        run(&["rules", "check", &file])
    };
    let allowed = check(&format!("//@ allow R019: it is meant to take all\n{GREEDY}"));
    assert!(allowed.out.starts_with("no findings"), "{}", allowed.out);
    for (comment, code) in [
        ("//@ allow R019", "warning[R015]"),
        ("//@ alow R019: meant", "warning[R015]"),
        ("//@ allow R070: meant", "warning[R016]"),
        ("//@ allow R019, R070: meant", "warning[R016]"),
    ] {
        let told = check(&format!("{comment}\n{GREEDY}"));
        assert_eq!(told.code, 0);
        assert!(told.out.contains(code), "{comment}: {}", told.out);
        assert_eq!(told.out.contains("R019]:"), !comment.contains("R019, "), "{comment}: {}", told.out);
    }
    // An error is none the less one, and nothing is said about the comment while there are errors.
    let wrong = check(&format!("//@ allow R020: meant\np(X) :- nosuch(X).\n{GREEDY}"));
    assert_eq!(wrong.code, 1);
    assert!(wrong.out.contains("error[R020]") && !wrong.out.contains("R016"), "{}", wrong.out);
}

#[test]
fn folders_of_rule_files_are_checked_questions_among_them() {
    let folder = run(&["rules", "check", "examples"]);
    assert_eq!(folder.code, 0, "{}", folder.out);
    for file in ["examples/queries/slow.dl", "examples/rules/acknowledged.dl"] {
        assert!(folder.out.contains(file), "{file}: {}", folder.out);
    }
    let questions = run(&["rules", "check", "rules/std/tree.dl"]);
    assert!(questions.out.contains("for `dyelog query`"), "{}", questions.out);
    let empty = Folder::new();
    assert_eq!(run(&["rules", "check", &shown(&empty.path(""))]).code, 2);
}

/// The rules of the book's example with cases of its trace.
fn with_cases(cases: &[(&str, &str)]) -> String {
    let mut text = bundled("examples/rules/acknowledged.dl");
    for (head, trace) in cases {
        text.push_str(&format!("\n//@ {head}\n"));
        let lines = trace.lines().filter(|line| !line.starts_with('#'));
        lines.for_each(|line| text.push_str(&format!("//| {line}\n")));
    }
    text
}

#[test]
fn cases_in_a_rule_file_are_held() {
    let folder = Folder::new();
    let (fits, other) = (bundled("traces/acknowledged.angio"), bundled("traces/asynchronous.angio"));
    let file = folder
        .file("a.dl", &with_cases(&[("valid acknowledged: it answers", &fits), ("invalid acknowledged", &other)]));
    let checked = run(&["rules", "check", &file]);
    assert!(checked.out.starts_with("no findings") && checked.out.ends_with(", 2 cases held\n"), "{}", checked.out);
    let tested = run(&["test", &shown(&folder.path(""))]);
    assert_eq!(tested.code, 0, "{}{}", tested.out, tested.err);
    assert!(tested.out.contains(" valid acknowledged: it answers\n"), "{}", tested.out);
    assert!(tested.out.ends_with("\n2 cases: 2 held\n"), "{}", tested.out);
    let beside = run(&["test", &shown(&folder.path("")), "--rules", &file, "--rules", "ext/breaker.dl"]);
    assert_eq!(beside.code, 0, "a shipped file goes by its name: {}{}", beside.out, beside.err);

    let damaged = fits.lines().take(fits.lines().count() - 1).collect::<Vec<_>>().join("\n");
    let file = folder.file(
        "a.dl",
        &with_cases(&[
            ("invalid acknowledged", &fits),
            ("valid acknowledged", &other),
            ("valid nosuch", &fits),
            ("valid acknowledged", &damaged),
            ("valid acknowledged", "operation x run=1\nx,1,1,Be | a\n"),
        ]),
    );
    let checked = run(&["rules", "check", &file]);
    assert_eq!((checked.code, checked.out.matches("error[R017]").count()), (1, 5), "{}", checked.out);
    for told in
        ["`acknowledged` matches in this trace", "matches: `activity`", "there is no such template", "note: line "]
    {
        assert!(checked.out.contains(told), "{told}: {}", checked.out);
    }
    let tested = run(&["test", &shown(&folder.path(""))]);
    assert_eq!(tested.code, 1);
    assert!(
        tested.out.ends_with("\n5 cases: 0 held, 5 broken\n") && tested.out.contains("  error[R017]"),
        "{}",
        tested.out
    );
    let json: serde_json::Value =
        serde_json::from_str(&run(&["test", &shown(&folder.path("")), "--format", "json"]).out).expect("it is JSON");
    assert_eq!((json["cases"].as_array().map(Vec::len), &json["cases"][0]["outcome"]), (Some(5), &"broken".into()));
    // The formatter leaves them as they are.
    let text = fs::read_to_string(&file).expect("it is there");
    assert_eq!(run(&["rules", "fmt", &file]).code, 0);
    let formatted = fs::read_to_string(&file).expect("it is there");
    let lines = |text: &str| {
        text.lines().filter(|line| line.starts_with("//")).map(|line| line.trim_end().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(lines(&text), lines(&formatted));
}

#[test]
fn coverage_finds_templates_of_ones_own_that_never_fire() {
    let own = ["--rules", "examples/rules/acknowledged.dl"];
    assert_eq!(run(&[&["coverage", "traces/acknowledged.angio"][..], &own].concat()).code, 0);
    let idle = run(&[&["coverage", "traces/rpc.angio"][..], &own].concat());
    assert_eq!(idle.code, 1);
    assert!(idle.out.contains("never fired, of your files: acknowledged"), "{}", idle.out);
}
