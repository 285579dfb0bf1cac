//! Tests of `dyelog trace`.

use std::fs;

use assert_cmd::Command;

fn dyelog(arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::cargo_bin("dyelog").expect("the package has a binary");
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).output().expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it writes UTF-8");
    (output.status.code().expect("it exits"), text(output.stdout), text(output.stderr))
}

#[test]
fn check_tells_damage_by_its_exit_code() {
    let (code, report, words) = dyelog(&["trace", "check", "traces/figure-3.angio"]);
    assert_eq!((code, words.as_str()), (0, ""));
    insta::assert_snapshot!(report, @"
    operations           1   sound 1, restored 0, set aside 0
    events              11   and 0 set aside
    ");
    let (code, report, _) = dyelog(&["trace", "check", "traces/lost-reply.angio", "--format", "json"]);
    assert_eq!(code, 1);
    let report: serde_json::Value = serde_json::from_str(&report).expect("it is JSON");
    assert_eq!(
        (&report["dyelog-quality"], &report["restored"], &report["set_aside"]),
        (&1.into(), &1.into(), &1.into())
    );
    let (code, report, words) = dyelog(&["trace", "check", "traces/lost-reply.angio", "--strict"]);
    assert_eq!((code, report.as_str()), (2, ""));
    assert!(words.contains("T041"), "{words}");
}

#[test]
fn convert_goes_there_and_back() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let [lines, text] = ["lines", "text"].map(|name| folder.path().join(name).display().to_string());
    for trace in ["traces/figure-4.angio", "traces/fork-join.angio", "traces/two-scenarios.angio"] {
        assert_eq!(dyelog(&["trace", "convert", trace, "--to", "angio-jsonl", "-o", &lines]).0, 0);
        assert_eq!(dyelog(&["trace", "convert", &lines, "-o", &text]).0, 0);
        let (_, direct, _) = dyelog(&["trace", "convert", trace]);
        assert_eq!(fs::read_to_string(&text).expect("it was written"), direct);
    }
}

#[test]
fn stat_counts() {
    let (code, report, words) = dyelog(&["trace", "stat", "traces/two-scenarios.angio", "traces/figure-3.angio"]);
    assert_eq!((code, words.as_str()), (0, ""));
    insta::assert_snapshot!(report, @"
    all
      operations            4
      events               35   Be 6, Ac 21, Ed 6, Fk 2, Jn 0
      threads               6
      tasks                 5   A, B, C, db, web
      with time            24
      with CPU             15
      duration       0.003800 s a mean operation, from 0.002000 s to 0.006400 s
      span           0.026400 s in all

    scenario a
      operations            1
      events               11   Be 2, Ac 6, Ed 2, Fk 1, Jn 0
      threads               2
      tasks                 3   A, B, C
      with time             0
      with CPU              0

    scenario read
      operations            2
      events               16   Be 2, Ac 12, Ed 2, Fk 0, Jn 0
      threads               2
      tasks                 2   db, web
      with time            16
      with CPU             12
      duration       0.004200 s a mean operation, from 0.002000 s to 0.006400 s
      span           0.026400 s in all

    scenario write
      operations            1
      events                8   Be 2, Ac 3, Ed 2, Fk 1, Jn 0
      threads               2
      tasks                 2   db, web
      with time             8
      with CPU              3
      duration       0.003000 s a mean operation, from 0.003000 s to 0.003000 s
      span           0.003000 s in all
    ");
    let (_, report, _) = dyelog(&["trace", "stat", "traces/figure-3.angio", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&report).expect("it is JSON");
    assert_eq!((&report["dyelog-stat"], &report["all"]["operations"]), (&1.into(), &1.into()));
}

#[test]
fn what_cannot_be_read_is_refused_with_a_reason() {
    for (arguments, code) in
        [(vec!["trace", "stat", "Cargo.toml"], "T004"), (vec!["trace", "check", "no-such-file"], "C001")]
    {
        let (exit, output, words) = dyelog(&arguments);
        assert_eq!((exit, output.as_str()), (2, ""));
        assert!(words.contains(code), "{words}");
    }
}
