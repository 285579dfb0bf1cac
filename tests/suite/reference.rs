//! The help of every command, as a reference that is kept and whose examples are run.
//!
//! The reference is `book/src/cli-reference.md`. When help changes on purpose, `INSTA_UPDATE=always cargo test --test suite
//! reference::` writes it anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn dyelog(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dyelog"))
        .current_dir(ROOT)
        .args(arguments)
        .stdin(Stdio::null())
        .env_remove("CLICOLOR_FORCE")
        .output()
        .expect("it runs")
}

fn reference() -> String {
    let output = dyelog(&["man", "--format", "markdown"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("help is text")
}

/// A command's name and help.
fn sections(reference: &str) -> Vec<(&str, &str)> {
    reference.split("\n## `").skip(1).map(|section| section.split_once('`').expect("a name in backticks")).collect()
}

#[test]
fn the_reference_in_the_book_is_the_help_of_the_program() {
    let file = Path::new(ROOT).join("book/src/cli-reference.md");
    let now = reference();
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(&file, &now).expect("the book is writable");
        return;
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == now,
        "help and {} differ; read the difference after `INSTA_UPDATE=always cargo test --test suite reference::`",
        file.display()
    );
}

/// The examples of a command's help.
fn examples(help: &str) -> Vec<String> {
    let Some((_, after)) = help.split_once("\nExamples:\n") else { return Vec::new() };
    let mut examples: Vec<String> = Vec::new();
    for line in after.lines().take_while(|line| line.starts_with("  ")) {
        match examples.last_mut() {
            Some(last) if last.ends_with(" \\") => last.replace_range(last.len() - 1.., line.trim()),
            _ => examples.push(line.trim().to_owned()),
        }
    }
    examples
}

/// The page on the command line begins with all commands, and tells all formats.
#[test]
fn the_book_lists_all_commands_and_formats() {
    let page = fs::read_to_string(Path::new(ROOT).join("book/src/cli.md")).expect("a page of the book");
    let (_, list) = page.split_once("```text\n").expect("it begins with a list");
    let list = list.split("```").next().unwrap_or_default();
    let listed = |word: &str| list.lines().any(|line| line.split(' ').take(2).eq(["dyelog", word]));
    let reference = reference();
    let sections = sections(&reference);
    let commands = sections.iter().filter_map(|(name, _)| name.strip_prefix("dyelog ")?.split(' ').next());
    let missing: Vec<&str> = commands.filter(|word| !listed(word)).collect();
    assert!(missing.is_empty(), "book/src/cli.md lacks {missing:?}");
    let (_, help) = sections.iter().find(|(name, _)| *name == "dyelog model").expect("it is a command");
    let (_, values) =
        help.split_once("The traces' format").expect("an option").1.split_once("[possible values: ").expect("a list");
    let row = page.lines().find(|line| line.starts_with("| `--from FORMAT`")).expect("a row of a table");
    for value in values.split(']').next().unwrap_or_default().split(',') {
        assert!(row.contains(&format!("`{}`", value.trim())), "book/src/cli.md lacks `--from {}`", value.trim());
    }
}

/// Whether a command only leads to others.
fn is_group(help: &str) -> bool {
    help.contains("\nCommands:\n")
}

#[test]
fn every_command_has_examples() {
    let reference = reference();
    let without: Vec<&str> = sections(&reference)
        .into_iter()
        .filter(|(_, help)| !is_group(help) && examples(help).is_empty())
        .map(|(name, _)| name)
        .collect();
    assert!(without.is_empty(), "no examples (`#[command(after_long_help = examples! {{…}})]`): {without:?}");
}

/// Runs every example of every command's help, those of one command in order in one folder.
#[cfg(unix)]
#[test]
fn every_example_works() {
    let program = Path::new(env!("CARGO_BIN_EXE_dyelog"));
    let path = format!(
        "{}:{}",
        program.parent().expect("it lies in a folder").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut run = 0;
    for (name, help) in sections(&reference()) {
        // These start another program (`server_cli`).
        if matches!(name, "dyelog serve" | "dyelog period") {
            continue;
        }
        let folder = tempfile::tempdir().expect("a scratch folder");
        for part in ["traces", "examples", "rules", "snapshots"] {
            std::os::unix::fs::symlink(Path::new(ROOT).join(part), folder.path().join(part))
                .expect("links can be made");
        }
        let lines = examples(help);
        for pair in lines.chunks(2) {
            let [words, line] = pair else { panic!("{name}: an example is a comment and a line: {pair:?}") };
            assert!(words.starts_with("# ") && line.starts_with("dyelog "), "{name}: {pair:?}");
            let own: String = line.split([' ', '|']).skip(1).take_while(|word| !word.is_empty()).collect();
            let group: String = name.split(' ').skip(1).collect();
            assert!(own.starts_with(&group), "an example of `{name}` shows another command: {line}");
            let output = Command::new("sh")
                .args(["-c", line])
                .current_dir(folder.path())
                .env("PATH", &path)
                .env("HOME", folder.path())
                .env_remove("CI")
                .stdin(Stdio::null())
                .output()
                .expect("there is a shell");
            let expected = i32::from(words.contains("exits with 1"));
            let told = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(expected), "{line}\n{told}");
            run += 1;
        }
    }
    assert!(run >= 15, "only {run} examples were found");
}

#[test]
fn man_pages_are_written_for_all_commands() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let target = folder.path().join("new/man1");
    let output = dyelog(&["man", target.to_str().expect("scratch paths are text")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut names: Vec<String> = fs::read_dir(&target)
        .expect("the folder was made")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let reference = reference();
    let mut expected: Vec<String> =
        sections(&reference).iter().map(|(name, _)| format!("{}.1", name.replace(' ', "-"))).collect();
    expected.sort();
    assert_eq!(names, expected);
    for name in ["dyelog.1", "dyelog-trace-check.1"] {
        let page = fs::read_to_string(target.join(name)).expect("it was written");
        assert!(page.contains(&format!(".TH {} 1", name.trim_end_matches(".1"))), "{name}: {page}");
        assert!(!page.contains('\u{1b}'), "{name} has escape sequences");
        assert!(page.contains("Examples:"), "{name} has no examples");
    }
    let alone = String::from_utf8(dyelog(&["man"]).stdout).expect("a page is text");
    assert_eq!(alone, fs::read_to_string(target.join("dyelog.1")).expect("it was written"));
}

#[test]
fn completions_know_every_command_for_every_shell() {
    let reference = reference();
    let groups: Vec<&str> = sections(&reference).iter().filter_map(|(name, _)| name.split(' ').nth(1)).collect();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = String::from_utf8(dyelog(&["completions", shell]).stdout).expect("a script is text");
        for group in &groups {
            assert!(script.contains(group), "{shell} does not complete `{group}`");
        }
    }
    let bash = dyelog(&["completions", "bash"]).stdout;
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file: PathBuf = folder.path().join("dyelog.bash");
    fs::write(&file, bash).expect("writable");
    match Command::new("bash").arg("-n").arg(&file).output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(_) => eprintln!("skipped: no bash to check its completions with"),
    }
}
