//! The console blocks of the book and of the README are true: every command in them is run, and shows what the page shows.
//!
//! A block is marked ```` ```console ````. Lines that begin with `$ ` are commands, the lines behind them what they print: data alone, or
//! with the words about it before or behind. `…` stands for any text within its line, and alone on a line for any lines. The blocks of a
//! page share a scratch folder that has the project's `traces`, `examples`, `rules` and `snapshots`. A block whose output depends on
//! time or on what is not in the project is marked ```` ```console,not-run ````. Of a block marked ```` ```sh ```` every line that begins
//! with `dyelog ` is run as well: it has to be understood, whatever it prints.
//!
//! `INSTA_UPDATE=always` writes what is printed now into the blocks that show it without `…`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A command of a page, and what the page says that it prints.
struct Shown {
    /// Numbers of the lines of its output, from 0: from the first, up to but without the last.
    lines: std::ops::Range<usize>,
    /// Blanks before each line.
    indent: usize,
    command: String,
    /// What it prints, if the page tells.
    output: Option<Vec<String>>,
}

/// All pages, in order.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![Path::new(ROOT).join("README.md")];
    let mut open = vec![Path::new(ROOT).join("book/src")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("the book is bundled") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

fn commands(text: &str) -> Vec<Shown> {
    let mut found: Vec<Shown> = Vec::new();
    let mut block = None;
    let mut any_yet = false;
    for (number, line) in text.lines().enumerate() {
        let Some((indent, language)) = block else {
            block = line.find(|character: char| character != ' ').zip(line.trim().strip_prefix("```"));
            any_yet = false;
            continue;
        };
        let line = line.strip_prefix(&" ".repeat(indent)).unwrap_or(line);
        let lines = number + 1..number + 1;
        match (language, line.strip_prefix("$ ")) {
            _ if line == "```" => block = None,
            ("sh", _) if line.starts_with("dyelog ") => {
                found.push(Shown { lines, indent, command: line.to_owned(), output: None });
            }
            ("console", Some(command)) => {
                any_yet = true;
                let command = command.replace("cargo run --release -- ", "dyelog ");
                found.push(Shown { lines, indent, command, output: Some(Vec::new()) });
            }
            ("console", None) => {
                let shown = found.last_mut().filter(|_| any_yet).expect("a block begins with a command");
                let output = shown.output.get_or_insert_default();
                shown.lines.end = number + 1;
                if shown.command.ends_with('\\') && output.is_empty() {
                    shown.command.push('\n');
                    shown.command.push_str(line.trim_start().trim_start_matches("> "));
                    shown.lines.start = number + 1;
                } else {
                    output.push(line.to_owned());
                }
            }
            _ => {}
        }
    }
    for Shown { lines, output, .. } in &mut found {
        while output.as_mut().is_some_and(|output| output.pop_if(|line| line.trim().is_empty()).is_some()) {
            lines.end -= 1;
        }
    }
    found
}

/// Whether a line is as shown, `…` being any text.
fn line_fits(shown: &str, found: &str) -> bool {
    let (shown, found) = (shown.trim_end(), found.trim_end());
    let mut parts = shown.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = found.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Whether lines are as shown; where not, the first line shown that does not fit.
fn lines_fit<'s>(shown: &'s [String], found: &[&str]) -> Result<(), &'s str> {
    let mut at = 0;
    let mut skipping = false;
    for line in shown {
        if line.trim() == "…" {
            skipping = true;
            continue;
        }
        let place = if skipping {
            found[at..].iter().position(|own| line_fits(line, own)).map(|place| at + place)
        } else {
            found.get(at).filter(|own| line_fits(line, own)).map(|_| at)
        };
        match place {
            Some(place) => at = place + 1,
            None => return Err(line),
        }
        skipping = false;
    }
    if skipping || at == found.len() { Ok(()) } else { Err("(there is more than is shown)") }
}

fn run(command: &str, folder: &Path) -> (String, String, Option<i32>) {
    let program = Path::new(env!("CARGO_BIN_EXE_dyelog")).parent().expect("it lies in a folder").display().to_string();
    let path = format!("{program}:{}", std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .env("PATH", path)
        .env("HOME", folder)
        .env_remove("CLICOLOR_FORCE")
        .env_remove("CI")
        .stdin(Stdio::null())
        .output()
        .expect("there is a shell");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(output.stdout), text(output.stderr), output.status.code())
}

#[cfg(unix)]
#[test]
fn what_the_book_shows_is_what_the_program_prints() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("pages are text");
        let shown = commands(&text);
        if shown.is_empty() {
            continue;
        }
        let folder = tempfile::tempdir().expect("a scratch folder");
        for part in ["traces", "examples", "rules", "snapshots"] {
            std::os::unix::fs::symlink(Path::new(ROOT).join(part), folder.path().join(part))
                .expect("links can be made");
        }
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        // From the end, so that lines keep their numbers; but commands run in their order.
        let ran: Vec<_> = shown.iter().map(|one| run(&one.command, folder.path())).collect();
        for (one, (data, words, code)) in shown.iter().zip(ran).rev() {
            count += 1;
            let place = format!("{}:{}", page.strip_prefix(ROOT).unwrap_or(&page).display(), one.lines.start);
            let Some(output) = &one.output else {
                if !matches!(code, Some(0 | 1)) {
                    wrong.push(format!("{place}: `{}` exits with {code:?}\n{data}{words}", one.command));
                }
                continue;
            };
            if !["dyelog ", "mkdir ", "cp "].iter().any(|program| one.command.starts_with(program)) {
                wrong.push(format!("{place}: `{}` is no command of dyelog", one.command));
                continue;
            }
            let forms = [data.clone(), format!("{words}{data}"), format!("{data}{words}")];
            if forms.iter().any(|form| lines_fit(output, &form.lines().collect::<Vec<_>>()).is_ok()) {
                continue;
            }
            let first = lines_fit(output, &data.lines().collect::<Vec<_>>()).expect_err("it does not fit");
            wrong.push(format!("{place}: $ {}\nnot as shown: {first}\n{data}{words}", one.command));
            if !output.iter().any(|line| line.contains('…')) {
                let alike = |form: &&String| output.iter().filter(|line| form.contains(line.as_str())).count();
                let form = forms.iter().rev().max_by_key(alike).expect("there are three");
                let indent = one.indent;
                lines.splice(one.lines.clone(), form.lines().map(|line| format!("{:indent$}{line}", "")));
            }
        }
        if std::env::var("INSTA_UPDATE").is_ok_and(|wish| wish == "always") && !wrong.is_empty() {
            fs::write(&page, lines.join("\n") + "\n").expect("the book can be written");
        }
    }
    assert!(wrong.is_empty(), "{} of {count} commands print something else:\n\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(count >= 10, "only {count} commands were found");
}

#[test]
fn elisions_stand_for_text_and_for_lines() {
    let own = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    for (shown, fits) in [
        (&["a b c", "d"][..], true),
        (&["a … c", "d"], true),
        (&["…", "d"], true),
        (&["a b c", "…"], true),
        (&["…"], true),
        (&["a…", "…"], true),
        (&["a b c"], false),
        (&["d", "…"], false),
        (&["a … d", "d"], false),
        (&["a b c", "d", "e"], false),
        (&["…", "e"], false),
    ] {
        assert_eq!(lines_fit(&own(shown), &["a b c", "d"]).is_ok(), fits, "{shown:?}");
    }
    let page = "```console\n$ dyelog a \\\n  b\nx\n\n$ dyelog c\n```\n```console,not-run\n$ dyelog d\n```\n```sh\ncd\ndyelog e\n```\n";
    let found: Vec<(String, Option<usize>, std::ops::Range<usize>)> =
        commands(page).into_iter().map(|one| (one.command, one.output.map(|lines| lines.len()), one.lines)).collect();
    assert_eq!(
        found,
        [
            ("dyelog a \\\nb".to_owned(), Some(1), 3..4),
            ("dyelog c".to_owned(), Some(0), 6..6),
            ("dyelog e".to_owned(), None, 13..13)
        ]
    );
}

/// The guide on templates shows its trace and its rule file as they are, for readers of the page itself, too.
#[test]
fn the_guide_shows_its_files() {
    let read = |name: &str| fs::read_to_string(Path::new(ROOT).join(name)).expect("it is bundled");
    let guide = read("book/src/writing-a-template.md");
    for name in ["traces/acknowledged.angio", "examples/rules/acknowledged.dl"] {
        let block = format!("```text\n{}\n```", read(name).trim_end());
        assert!(guide.contains(&block), "the guide shows another {name}");
    }
}
