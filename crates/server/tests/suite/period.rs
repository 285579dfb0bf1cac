//! `dyelog-server period`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use dyelog::lqn::{Body, saved};
use dyelog_server::answer::Answer;
use dyelog_server::store::{LEVELS, Store};

use crate::metrics::metered_at;
use crate::support::{BEGIN, SECOND, of_file, trace};

fn period(store: &Path, arguments: &[&str]) -> Output {
    let (question, rest) = arguments.split_first().expect("a question");
    Command::new(env!("CARGO_BIN_EXE_dyelog-server"))
        .args(["period", question, "--store"])
        .arg(store)
        .args(rest)
        .output()
        .expect("it starts")
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("it is text")
}

/// A store with a trace in each of three intervals.
fn store(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("store.db");
    let mut store = Store::open(&path).unwrap();
    for number in 0..3 {
        let start = BEGIN + number * LEVELS[0].length;
        let (sub, merge) = saved::parse(&"test".into(), &of_file(&trace(number, start, &[2]))).unwrap();
        store.add(start, start, &sub, &merge).unwrap();
    }
    path
}

#[test]
fn intervals_are_listed_exported_imported_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let path = store(folder.path());
    let list = text(&period(&path, &["list", "--from", "2023-11-14T22:13:30Z"]));
    let starts: Vec<&str> = list.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(starts, ["2023-11-14T22:13:30Z", "2023-11-14T22:13:40Z"]);
    let parts = text(&period(&path, &["parts"]));
    assert!(
        parts.contains("\n   1  2023-11-14T22:13:20Z  2023-11-14T22:13:50Z        30           3\nnothing changes\n"),
        "{parts}"
    );
    let json = text(&period(&path, &["list", "--json", "--to", "1700000001"]));
    assert!(json.contains("\"start\": \"2023-11-14T22:13:20Z\"") && json.contains("\"seconds\": 10"), "{json}");
    let whole = text(&period(&path, &["export"]));
    let spans: Vec<_> = (0..3).flat_map(|number| trace(number, BEGIN + number * 10 * SECOND, &[2])).collect();
    assert_eq!(whole, of_file(&spans));
    let saved = folder.path().join("whole.json");
    fs::write(&saved, &whole).unwrap();
    let other = folder.path().join("other.db");
    let import = |more: &[&str]| {
        let output = period(&other, &[&["import", saved.to_str().unwrap()], more].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(import(&[]), (Some(0), String::new()));
    assert_eq!(text(&period(&other, &["export"])), whole);
    // Sub-models do not tell of how many spans they are made.
    let list = text(&period(&other, &["list"]));
    assert!(list.lines().nth(1).is_some_and(|line| line.contains("        30     unknown  ")), "{list}");
    // It is there from its begin to its end.
    for (from, to, is_there) in
        [("1700000029", "1700000030", true), ("0", "1700000000", false), ("1700000030", "now", false)]
    {
        let output = period(&other, &["export", "--from", from, "--to", to]);
        assert_eq!(output.status.success(), is_there, "{from} to {to}");
    }
    // A second import is refused, unless it is meant.
    let words = "whole.json: the store seems to hold operations of it already, such as run `";
    let (code, told) = import(&[]);
    assert!(code == Some(2) && told.contains(words) && told.contains("`import --again`"), "{told}");
    assert_eq!(text(&period(&other, &["export"])), whole);
    let (code, told) = import(&["--again"]);
    assert!(code == Some(0) && told.contains(words) && told.contains("they count twice"), "{told}");
    assert_ne!(text(&period(&other, &["export"])), whole);
    assert!(text(&period(&path, &["delete", "--to", "1700000020"])).starts_with("deleted 2"));
    assert_eq!(text(&period(&path, &["list"])).lines().count(), 2);
}

#[test]
fn what_cannot_be_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = store(folder.path());
    let wrong = |arguments: &[&str], words: &str| {
        let output = period(&path, arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(words), "{arguments:?}: {said}");
    };
    wrong(&["export", "--from", "-1h"], "nothing was recorded in this period");
    wrong(&["export", "--from", "yesterday"], "`yesterday` is no time");
    wrong(&["delete"], "say what to delete");
    let file = folder.path().join("file");
    fs::write(&file, "{}").unwrap();
    wrong(&["import", file.to_str().unwrap()], "file");
    let missing = period(&folder.path().join("missing.db"), &["list"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(!folder.path().join("missing.db").exists());
}

#[cfg(unix)]
#[test]
fn commands_of_dyelog_get_the_sub_model_of_the_period() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = store(folder.path());
    let server = folder.path().join("dyelog-server");
    fs::hard_link(env!("CARGO_BIN_EXE_dyelog-server"), &server).unwrap();
    // One that tells how it was called.
    let dyelog = folder.path().join("dyelog");
    fs::write(&dyelog, "#!/bin/sh\nfor word; do test -f \"$word\" && cat \"$word\" || echo \"$word\"; done\nexit 3\n")
        .unwrap();
    fs::set_permissions(&dyelog, fs::Permissions::from_mode(0o755)).unwrap();
    let run = |question: &str, arguments: &[&str]| {
        Command::new(&server).args(["period", question, "--store"]).arg(&path).args(arguments).output().unwrap()
    };
    // Packed, which takes less time.
    let of = |number: u64| {
        let text = of_file(&trace(number, BEGIN + number * 10 * SECOND, &[2]));
        let (sub, merge) = saved::parse(&"test".into(), &text).unwrap();
        String::from_utf8_lossy(&saved::pack(&sub, &merge)).into_owned()
    };
    let solved = run("solve", &["--to", "1700000010", "--", "--format", "json"]);
    assert_eq!(solved.status.code(), Some(3));
    assert_eq!(String::from_utf8_lossy(&solved.stdout), format!("solve\n{}--format\njson\n", of(0)));
    // Of a period without a change, the longest part is all of it.
    let part = run("solve", &["--to", "1700000010", "--part", "longest"]);
    assert_eq!(String::from_utf8_lossy(&part.stdout), format!("solve\n{}", of(0)));
    let second = run("solve", &["--part", "2"]);
    assert!(String::from_utf8_lossy(&second.stderr).contains("the period has 1 part:"));
    let differ = ["--to", "1700000010", "--other-from", "1700000010", "--other-to", "1700000020"];
    assert_eq!(String::from_utf8_lossy(&run("diff", &differ).stdout), format!("diff\n{}{}", of(0), of(1)));
    let alone = run("diff", &["--to", "1700000010"]);
    assert!(!alone.status.success() && String::from_utf8_lossy(&alone.stderr).contains("`--other-from`"));
    // A model is held against what its own period recorded, unless another one is named, or traces.
    let held = |arguments: &[&str]| String::from_utf8_lossy(&run("validate", arguments).stdout).into_owned();
    assert_eq!(held(&["--to", "1700000010"]), format!("validate\n{0}--against\n{0}", of(0)));
    assert_eq!(held(&differ), format!("validate\n{}--against\n{}", of(0), of(1)));
    assert_eq!(held(&["--to", "1700000010", "--", "--against=a"]), format!("validate\n{}--against=a\n", of(0)));
}

#[cfg(unix)]
#[test]
fn what_metrics_tell_is_in_all_that_is_asked_of_a_period() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("store.db");
    drop(metered_at(&path));
    let server = folder.path().join("dyelog-server");
    fs::hard_link(env!("CARGO_BIN_EXE_dyelog-server"), &server).unwrap();
    // One that tells how it was called, without folders, and makes a model that says so, too.
    let dyelog = folder.path().join("dyelog");
    let script = "#!/bin/sh
line=
for word; do
  test -f \"$word\" && grep -q 'the model of' \"$word\" && line=\"$line ($(cat \"$word\"))\" || line=\"$line ${word##*/}\"
  last=$word
done
test \"$1\" = model && echo \"the model of$line\" > \"$last\" || echo \"$line\"
";
    fs::write(&dyelog, script).unwrap();
    fs::set_permissions(&dyelog, fs::Permissions::from_mode(0o755)).unwrap();
    let run = |question: &str, arguments: &[&str]| {
        let output = Command::new(&server).args(["period", question, "--store"]).arg(&path).args(arguments).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    let ends = ["--to", "1700000060", "--other-from", "0", "--other-to", "1700000060"];
    let made = |name: &str, more: &str| {
        format!("(the model of model {name} --utilisation metrics{more} --format json --output {name}.json)")
    };
    let told = run("diff", &[&ends[..], &["--", "--tolerance", "1%", "--config", "shop.toml", "-q"]].concat());
    let more = " --config shop.toml -q";
    assert_eq!(told, format!("diff {} {} --tolerance 1% -q", made("period-1", more), made("period-2", more)));
    let arguments = ["--", "--against", "a.json", "b.json", "--config=shop.toml", "--group", "GET *"];
    let told = run("validate", &[&["--to", "1700000060"], &arguments[..]].concat());
    let of = made("period", " --config=shop.toml --group GET *");
    assert_eq!(told, format!("validate {of} --against a.json b.json --group GET *"));
    let told = run("validate", &["--to", "1700000060", "--", "--within", "5%"]);
    let of = made("period", "");
    assert_eq!(told, format!("validate {of} --against recorded --utilisation metrics --within 5%"));
}

#[cfg(unix)]
#[test]
fn what_is_explained_by_exemplars_says_so_with_the_mean_of_the_period_beside_it() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("store.db");
    let store = metered_at(&path);
    let (submodel, merge) = store.period(0, u64::MAX).unwrap().unwrap();
    let answer = Answer::of(submodel, &merge, &store.metered(0, u64::MAX).unwrap()).unwrap();
    let model = folder.path().join("model");
    fs::write(&model, answer.lqn()).unwrap();
    let server = folder.path().join("dyelog-server");
    fs::hard_link(env!("CARGO_BIN_EXE_dyelog-server"), &server).unwrap();
    let dyelog = folder.path().join("dyelog");
    let script = format!(
        "#!/bin/sh\nfor last; do :; done\ntest \"$1\" = model && cp {} \"$last\" || echo \"$1 $2:span\"\ntest $# -gt 2 || echo \"error: $2\" >&2\n",
        model.display()
    );
    fs::write(&dyelog, script).unwrap();
    fs::set_permissions(&dyelog, fs::Permissions::from_mode(0o755)).unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new(&server).args(["period", "explain", "--store"]).arg(&path).args(arguments).output();
        let output = output.unwrap();
        (text(&output), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (told, _) = run(&["--", "--demand", "browse"]);
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].starts_with("by 1 exemplar of the period, whose figures these are: 0000000000000000"), "{told}");
    let demand = |line: &str| -> f64 {
        let rest = line.strip_prefix("in the model of the whole period the demand of browse is ").expect(line);
        rest.strip_suffix(" ms").expect(line).parse().expect(line)
    };
    let (read, _) = dyelog::lqn::parse_any("it", &answer.lqn()).unwrap();
    let entry = read.entries.iter().find(|entry| &*entry.name == "browse").unwrap();
    let Body::Phases(phases) = &entry.body else { panic!("it has phases") };
    assert!((demand(lines[1]) - phases[0].demand * 1e3).abs() < 0.01, "{told}");
    assert_eq!(lines[2..], ["", "explain exemplars:span"]);
    // The file that the command read is gone.
    let (_, told) = run(&[]);
    assert!(
        told.starts_with("note[M065]: rates follow from counted requests\n") && told.ends_with("\nerror: exemplars\n"),
        "{told}"
    );
    let (told, beside) = run(&["--", "--demand=browse", "--format", "json"]);
    assert!(told == "explain exemplars:span\n" && beside.contains("the demand of browse is "), "{told} {beside}");
}

#[test]
fn a_report_of_a_period_says_what_is_known_of_its_operations() {
    let folder = tempfile::tempdir().unwrap();
    let store = metered_at(&folder.path().join("store.db"));
    let (submodel, merge) = store.period(0, u64::MAX).unwrap().unwrap();
    let answer = Answer::of(submodel, &merge, &store.metered(0, u64::MAX).unwrap()).unwrap();
    let page = answer.report("the period").unwrap();
    assert!(!page.contains("of 0 operations"), "{page}");
    assert!(page.contains("used; 0 set aside. They were summed up before"), "{page}");
    assert!(page.contains("The traces were summed up before: 200 operations used, 0 set aside"), "{page}");
}

#[test]
fn what_is_exported_has_the_rates_that_metrics_tell_and_the_rest_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    drop(metered_at(&path));
    let output = period(&path, &["export", "--to", "1700000060"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("how busy processors were is not in it"), "{said}");
    let utilisation = folder.path().join("utilisation");
    let output = period(&path, &["export", "--to", "1700000060", "--utilisation", utilisation.to_str().unwrap()]);
    assert!(output.stderr.is_empty() && fs::read_to_string(&utilisation).unwrap().contains("processor=\"stock\""));
    let (submodel, _) = saved::parse(&"it".into(), &text(&output)).unwrap();
    let total = submodel.scenarios.values().next().unwrap();
    let weight = total.sampled.thousandths as f64 / 1000.0 / total.operations as f64;
    assert!((weight - 4.0).abs() < 0.05, "{weight}");
}
