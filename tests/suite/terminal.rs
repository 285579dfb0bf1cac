//! What people see at a terminal: width, colour, progress, interruption. A terminal is made with `script`, where there is one.
#![cfg(unix)]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const PROGRAM: &str = env!("CARGO_BIN_EXE_dyelog");

/// What a command line of the shell shows at a terminal so wide; nothing where terminals cannot be made here.
fn at_terminal(columns: u32, line: &str) -> Option<String> {
    let line = format!("stty cols {columns} rows 40 && {}", line.replace("dyelog", PROGRAM));
    let output = Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .current_dir(ROOT)
        .env("TERM", "xterm")
        .env_remove("COLUMNS")
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => Some(String::from_utf8_lossy(&output.stdout).replace('\r', "")),
        outcome => {
            eprintln!("skipped: no terminal can be made here: {outcome:?}");
            None
        }
    }
}

fn without_color(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, rest)| rest))
}

const SOLVE: &str = "dyelog solve traces/shop.otlp.jsonl --config examples/shop/shop.toml";

#[test]
fn tables_fit_the_terminal() {
    for columns in [60, 80, 110] {
        let Some(shown) = at_terminal(columns, &format!("{SOLVE} 2>/dev/null")) else { return };
        let shown = without_color(&shown);
        let tables: Vec<&str> = shown.lines().skip(1).collect();
        assert!(tables.len() > 20, "{shown}");
        for line in &tables {
            assert!(line.chars().count() <= columns as usize, "wider than {columns}:\n{line}");
        }
    }
    let narrow = at_terminal(60, &format!("{SOLVE} 2>/dev/null")).unwrap_or_default();
    assert!(narrow.contains('…'), "{narrow}");
}

#[test]
fn a_page_goes_to_a_file_and_not_to_the_terminal() {
    let line = "(dyelog report no-such-trace; echo code $?; dyelog report traces/rpc.angio | head -c 15)";
    let Some(shown) = at_terminal(80, line) else { return };
    assert!(shown.contains("C005") && shown.contains("code 2") && !shown.contains("C001"), "{shown}");
    assert!(shown.contains("<!DOCTYPE html>"), "{shown}");
}

#[test]
fn files_and_pipes_get_tables_whole_and_plain() {
    let Some(shown) = at_terminal(60, &format!("{SOLVE} 2>/dev/null | cat")) else { return };
    assert!(!shown.contains('…') && !shown.contains('\u{1b}'), "{shown}");
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("results.txt");
    at_terminal(60, &format!("{SOLVE} -o {} 2>/dev/null", file.display()));
    assert_eq!(fs::read_to_string(file).expect("it was written").trim(), shown.trim());
}

#[test]
fn colour_follows_the_arguments_and_the_environment() {
    for (line, coloured) in [
        (SOLVE.to_owned(), true),
        (format!("{SOLVE} --color never"), false),
        (format!("NO_COLOR=1 {SOLVE}"), false),
        (format!("NO_COLOR=1 {SOLVE} --color always"), true),
        (format!("{SOLVE} | cat"), false),
        (format!("CLICOLOR_FORCE=1 {SOLVE} | cat"), true),
        (format!("{SOLVE} --color always | cat"), true),
        ("dyelog solve --help".to_owned(), true),
        ("dyelog solve --help --color never".to_owned(), false),
        ("dyelog --color=always solve --help | cat".to_owned(), true),
        ("dyelog solve --help | cat".to_owned(), false),
    ] {
        let Some(shown) = at_terminal(120, &format!("({line}) 2>/dev/null")) else { return };
        assert_eq!(shown.contains("\u{1b}["), coloured, "{line}:\n{shown}");
    }
}

#[test]
fn what_is_saturated_stands_out() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let model = folder.path().join("m.lqn");
    let text = "G \"one busy server\" 1e-6 100 -1\nP 2\np cpu f\np clients i\n-1\nT 2\nt users r use -1 clients m 9\n\
                t server n serve -1 cpu\n-1\nE 2\ns use 0 -1\ny use serve 1 -1\ns serve 0.5 -1\n-1\n";
    fs::write(&model, text).expect("writable");
    let output = Command::new(PROGRAM).args(["solve", "--color", "always"]).arg(&model).output().expect("it runs");
    let shown = String::from_utf8_lossy(&output.stdout);
    let alarmed: Vec<&str> = shown.lines().filter(|line| line.contains("\u{1b}[1;31m")).collect();
    assert_eq!(alarmed.len(), 3, "the answer, the processor and the server, not the customers:\n{shown}");
    assert!(alarmed[0].contains("saturated: processor cpu"), "{shown}");
    assert!(alarmed[1].starts_with("cpu") && alarmed[2].starts_with("server"), "{shown}");
}

/// A trace that takes a while: the same operation very often, said slowly.
fn slowly(seconds: f32) -> String {
    format!(
        "(cat traces/figure-3.angio; sleep {seconds}; sed 's/run=1/run=2/' traces/figure-3.angio; sleep 0.2; \
         sed 's/run=1/run=3/' traces/figure-3.angio)"
    )
}

#[test]
fn progress_is_shown_of_long_work_at_a_terminal_only() {
    let Some(long) = at_terminal(100, &format!("{} | dyelog trace stat - > /dev/null", slowly(0.9))) else { return };
    assert!(long.contains("reading:") && long.contains("operations"), "{long:?}");
    for line in [
        format!("{} | dyelog trace stat - > /dev/null", slowly(0.01)),
        format!("{} | dyelog trace stat - 2>&1 >/dev/null | cat", slowly(0.9)),
        format!("{} | TERM=dumb dyelog trace stat - > /dev/null", slowly(0.9)),
        "dyelog trace stat traces/figure-3.angio > /dev/null".to_owned(),
    ] {
        assert_eq!(at_terminal(100, &line).unwrap_or_default(), "", "{line}");
    }
}

#[test]
fn an_interrupted_run_leaves_nothing_behind() {
    use std::os::unix::process::ExitStatusExt;
    let folder = tempfile::tempdir().expect("a scratch folder");
    for signal in ["INT", "TERM"] {
        let target = folder.path().join("out.angio");
        let mut child = Command::new(PROGRAM)
            .args(["trace", "convert", "-", "-o"])
            .arg(&target)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it runs");
        let mut input = child.stdin.take().expect("it was piped");
        input.write_all(b"operation a run=1\n").expect("it reads");
        let pieces = |folder: &Path| fs::read_dir(folder).expect("it is there").count();
        let begun = Instant::now();
        while pieces(folder.path()) == 0 {
            assert!(begun.elapsed() < Duration::from_secs(20), "no output was begun");
            std::thread::sleep(Duration::from_millis(10));
        }
        let killed = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().expect("kill runs");
        assert!(killed.success());
        let status = child.wait().expect("it ends");
        drop(input);
        assert_eq!(status.signal(), Some(if signal == "INT" { 2 } else { 15 }), "{status}");
        assert_eq!(pieces(folder.path()), 0, "pieces are left after SIG{signal}");
    }
}
