//! Texts on codes: each code has one, each text a code, and the examples are what they say.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dyelog::report::codes::{self, Example, Explanation};

/// Codes in the sources: `Code("X000")`.
fn codes_of(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            codes_of(&path, found);
        } else if path.file_name().is_some_and(|name| name == "codes.rs") {
            let text = fs::read_to_string(&path).expect("a source file is text");
            found.extend(text.split("Code(\"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned));
        }
    }
}

#[test]
fn each_code_has_a_text_with_an_example_of_bad_and_good() {
    let mut in_sources = BTreeSet::new();
    for folder in ["src", "crates"] {
        codes_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut in_sources);
    }
    let explained: Vec<&str> = codes::all().iter().map(|explanation| explanation.code).collect();
    let unique: BTreeSet<String> = explained.iter().map(|code| (*code).to_owned()).collect();
    assert_eq!(explained.len(), unique.len(), "a code is explained twice");
    let missing: Vec<&String> = in_sources.difference(&unique).collect();
    assert!(missing.is_empty(), "write texts in src/report/codes/*.md for {missing:?}");
    let gone: Vec<&String> = unique.difference(&in_sources).collect();
    assert!(gone.is_empty(), "no codes.rs has {gone:?}");
    for Explanation { code, title, subject, bad, good, .. } in codes::all() {
        assert!(codes::looks_like_code(code), "{code}");
        assert!(!title.is_empty() && !title.ends_with('.') && !subject.is_empty(), "{code}: {title}");
        assert!(bad != good && !good.text.is_empty(), "{code}: its examples show nothing");
    }
}

/// The book's page on exit codes lists the codes of models and of the command line; those of the rest have pages of their own.
#[test]
fn the_book_lists_codes_of_models_and_of_the_command_line() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("book/src/exit-codes.md");
    let page = fs::read_to_string(page).expect("a page of the book");
    let listed = |code: &&str| page.contains(&format!("\n| {code} | "));
    let codes = codes::all().iter().map(|explanation| explanation.code);
    let missing: Vec<&str> = codes.filter(|code| code.starts_with(['M', 'C']) && !listed(code)).collect();
    assert!(missing.is_empty(), "book/src/exit-codes.md lacks {missing:?}");
}

#[test]
fn every_section_of_the_texts_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/report/codes");
    let mut headings = 0;
    for entry in fs::read_dir(folder).expect("the texts are there") {
        let text = fs::read_to_string(entry.expect("an entry").path()).expect("Markdown is text");
        headings += text.lines().filter(|line| line.starts_with("## ")).count();
    }
    assert_eq!(codes::all().len(), headings);
}

/// What the program says of an example.
fn said(example: Example, folder: &Path) -> Option<String> {
    let file = |extension: &str| -> PathBuf {
        let path = folder.join(format!("example.{extension}"));
        fs::write(&path, format!("{}\n", example.text)).expect("the scratch folder is writable");
        path
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyelog"));
    match example.language {
        "dl" => command.args(["rules", "check"]).arg(file("dl")),
        "angio" => {
            let path = file("angio");
            // What the check counts, `model` tells, and the other way round.
            let model = Command::new(env!("CARGO_BIN_EXE_dyelog")).arg("model").arg(&path).output().expect("it runs");
            command.args(["trace", "check"]).arg(path);
            let check = command.output().expect("it runs");
            return Some(String::from_utf8_lossy(&[check.stdout, check.stderr, model.stderr].concat()).into_owned());
        }
        "toml" => command.args(["model", "traces/shop.otlp.jsonl", "--config"]).arg(file("toml")),
        "lqn" => command.args(["lqn", "check"]).arg(file("lqn")),
        "sh" => {
            let line = example.text.split('#').next().unwrap_or_default().trim();
            command.args(line.split(' ').skip(1))
        }
        _ => return None,
    };
    let output = command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .env("NO_COLOR", "1")
        .output()
        .expect("it runs");
    Some(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn examples_are_what_they_say() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let mut wrong = Vec::new();
    let mut run = 0;
    for Explanation { code, bad, good, .. } in codes::all() {
        if let Some(said) = said(*bad, folder.path()) {
            run += 1;
            if !said.contains(&format!("[{code}]")) && !said.lines().any(|line| line.starts_with(code)) {
                wrong.push(format!("{code}: its bad example does not bring it up:\n{said}"));
            }
        }
        if let Some(said) = said(*good, folder.path())
            && (said.contains(&format!("[{code}]")) || said.contains("error["))
        {
            wrong.push(format!("{code}: its good example is not good:\n{said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(run > 75, "only {run} examples were run");
}
