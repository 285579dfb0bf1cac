//! The invariants of the house that Cargo cannot hold: which room of the package knows which, which part of a crate another crate
//! must not know, and what only the command line may touch. Which crate knows which is said by their `Cargo.toml`s.

use std::fs;
use std::path::{Path, PathBuf};

/// The rooms of the package in the order of the flow, the crates among them by the names under which the library gives them on.
/// A room may import from itself and from those above it.
const ROOMS: [&str; 21] = [
    "wire",
    "probe",
    "diagnostic",
    "names",
    "datalog",
    "callgraph",
    "trace",
    "lqn",
    "tlc",
    "same",
    "query",
    "solve",
    "observe",
    "model",
    "recording",
    "study",
    "report",
    "pipeline",
    "authoring",
    "server",
    "cli",
];

/// What a room or crate must never know, though it stands above. A path with `::` forbids a part of a room.
const STRANGERS: [(&str, &[&str]); 6] = [
    ("tlc", &["trace::angio", "trace::spans", "trace::detect", "trace::format"]),
    ("same", &["trace::angio", "trace::spans", "trace::detect", "trace::format"]),
    ("query", &["trace::angio", "trace::spans", "trace::detect", "trace::format", "same"]),
    ("model", &["datalog", "trace", "tlc", "same"]),
    ("study", &["trace::angio", "trace::spans", "trace::detect", "trace::format", "datalog", "query", "recording"]),
    (
        "report",
        &[
            "solve::layered",
            "solve::layered_from",
            "solve::simulate",
            "solve::solve",
            "solve::strategy",
            "study::sweep::sweep",
        ],
    ),
];

/// What only the command line may touch: the terminal, the clock, the environment, files and processes.
const OUTSIDE: [&str; 18] = [
    "println!",
    "print!",
    "eprintln!",
    "eprint!",
    "dbg!",
    "std::env",
    "std::fs",
    "std::net",
    "std::process",
    "io::stdin",
    "io::stdout",
    "io::stderr",
    "SystemTime",
    "Instant",
    "home_dir",
    "std::thread::sleep",
    "exit(",
    "anyhow",
];

/// What the probes touch of that, since programs that are measured link them: clocks, the files of records, the server of observers, the process.
const OF_PROBES: [&str; 7] =
    ["std::env", "std::fs", "std::net", "std::process", "std::thread::sleep", "SystemTime", "Instant"];

/// The longest that a file may be, in lines.
const LONGEST: usize = 900;

#[test]
fn every_file_keeps_the_invariants() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["src", "crates"] {
        gather(&root.join(folder), &mut files);
    }
    assert!(files.len() > 50, "the sources were not found: {}", files.len());
    let mut broken = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a source file is text");
        let path = file.strip_prefix(root).expect("it lies in the project").to_string_lossy().replace('\\', "/");
        broken.extend(violations(&path, &text));
    }
    assert!(broken.is_empty(), "{} invariants are broken:\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn every_crate_forbids_unsafe_code_and_has_a_front_page() {
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("crates")).expect("the crates are there") {
        let folder = entry.expect("an entry").path();
        let text = fs::read_to_string(folder.join("src/lib.rs")).expect("a crate has a root");
        assert!(text.contains("#![forbid(unsafe_code)]"), "{} does not forbid unsafe code", folder.display());
        assert!(text.contains("\n//! ```\n"), "{} has no example on its front page", folder.display());
        assert!(folder.join("README.md").is_file(), "{} has no README.md", folder.display());
    }
}

/// The server brings a database and an HTTP stack: a build of the program, or of the workspace as it is, needs neither.
#[test]
fn no_command_of_the_readme_builds_the_server() {
    let cargo = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO"));
        let output =
            command.args(arguments).args(["--offline", "--locked"]).current_dir(env!("CARGO_MANIFEST_DIR")).output();
        let output = output.expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("it is text")
    };
    let tree = cargo(&["tree", "--edges", "normal,build", "--prefix", "none"]);
    for package in ["dyelog-server", "rusqlite", "axum", "hyper"] {
        assert!(tree.lines().all(|line| !line.starts_with(&format!("{package} "))), "{package} is among what is built");
    }
    let metadata = cargo(&["metadata", "--no-deps", "--format-version", "1"]);
    let (_, members) = metadata.split_once("\"workspace_default_members\":[").expect("cargo lists them");
    let members = members.split(']').next().unwrap_or_default();
    assert!(members.contains("crates/trace") && !members.contains("crates/server"), "{members}");
}

#[test]
fn the_map_leads_to_files_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let map = fs::read_to_string(root.join("ARCHITECTURE.md")).expect("there is a map");
    let roots = ["crates/", "src/", "rules/", "tests/", "benches/", "book/", "examples/", "traces/", "snapshots/"];
    let paths: Vec<&str> = map
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|text| roots.iter().any(|root| text.starts_with(root)) && !text.contains(' '))
        .collect();
    assert!(paths.len() > 50, "the map names {} places only", paths.len());
    let gone: Vec<&&str> = paths.iter().filter(|path| !root.join(path).exists()).collect();
    assert!(gone.is_empty(), "ARCHITECTURE.md leads to what is not there: {gone:?}");
}

/// The crates of the workspace with those of its crates that each is linked with, by their names without `dyelog-`.
fn crates_of_the_workspace() -> Vec<(String, Vec<String>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders =
        fs::read_dir(root.join("crates")).expect("the crates are there").map(|entry| entry.expect("an entry").path());
    let manifests = folders.chain([root.join("rules"), root.to_path_buf()]).map(|folder| folder.join("Cargo.toml"));
    manifests
        .map(|path| {
            let manifest: toml::Table =
                fs::read_to_string(&path).expect("a crate has a manifest").parse().expect("a manifest is TOML");
            let name = manifest["package"]["name"].as_str().expect("it has a name").to_owned();
            let linked = manifest.get("dependencies").and_then(toml::Value::as_table);
            let own = linked.into_iter().flatten().filter_map(|(name, _)| short(name)).map(str::to_owned);
            (short(&name).expect("each is called dyelog").to_owned(), own.collect())
        })
        .collect()
}

fn short(name: &str) -> Option<&str> {
    if name == "dyelog" { Some(name) } else { name.strip_prefix("dyelog-") }
}

/// Each arrow is a dependency, and each dependency is an arrow or follows from arrows; all that know nothing else know `diagnostic`.
#[test]
fn the_picture_of_the_crates_is_what_cargo_has() {
    let map =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md")).expect("there is a map");
    let picture = map.split("```mermaid").nth(1).and_then(|rest| rest.split("```").next()).expect("there is a picture");
    let arrows: Vec<(&str, &str)> =
        picture.lines().filter_map(|line| line.split_once("-->")).map(|(from, to)| (from.trim(), to.trim())).collect();
    let reaches = |from: &str, to: &str| {
        let (mut open, mut seen) = (vec![from], Vec::new());
        while let Some(at) = open.pop() {
            let next = arrows.iter().filter(|arrow| arrow.0 == at).map(|arrow| arrow.1);
            let next: Vec<&str> = next.filter(|next| !seen.contains(next)).collect();
            seen.extend(&next);
            open.extend(next);
        }
        seen.contains(&to)
    };
    let crates = crates_of_the_workspace();
    for (from, linked) in &crates {
        for to in linked.iter().filter(|to| *to != "diagnostic") {
            assert!(reaches(from, to), "the picture lacks {from} --> {to}");
        }
    }
    for (from, to) in &arrows {
        let linked = crates.iter().find(|(name, _)| name == from).map(|(_, linked)| linked);
        assert!(linked.is_some_and(|linked| linked.iter().any(|own| own == to)), "no dependency: {from} --> {to}");
    }
}

/// READMEs say so where their example is the one of the front page.
const SAME_EXAMPLE: &str = "The same example opens its documentation, where it runs as a test.";

#[test]
fn examples_of_readmes_are_those_of_the_front_pages() {
    let mut compared = 0;
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("crates")).expect("the crates are there") {
        let folder = entry.expect("an entry").path();
        let readme = fs::read_to_string(folder.join("README.md")).expect("a crate has a README");
        if !readme.contains(SAME_EXAMPLE) {
            continue;
        }
        let root = fs::read_to_string(folder.join("src/lib.rs")).expect("a crate has a root");
        let page = root.lines().map_while(|line| line.strip_prefix("//!"));
        let page = page.map(|line| line.strip_prefix(' ').unwrap_or(line));
        let example = page.skip_while(|line| *line != "```").skip(1).take_while(|line| *line != "```");
        // What documentation hides.
        let shown: Vec<&str> = example.filter(|line| !line.starts_with("# ")).collect();
        let block = format!("```rust\n{}\n```\n", shown.join("\n"));
        assert!(readme.contains(&block), "{} has another example than its front page:\n{block}", folder.display());
        compared += 1;
    }
    assert!(compared > 5, "only {compared} crates say that their examples are the same");
}

#[test]
fn a_violation_of_each_kind_would_be_seen() {
    let seen = |path: &str, text: &str| violations(path, text);
    for (path, text) in [
        ("src/model/x.rs", "use crate::report::Look;"),
        ("src/model/x.rs", "use crate::{names::Names, tlc::Rules};"),
        ("src/study/x.rs", "use crate::{\n    lqn::{Model, results},\n    report,\n};"),
        ("src/model/x.rs", "use crate::trace::angio;"),
        ("src/model/x.rs", "use dyelog_trace::angio;"),
        ("src/study/x.rs", "use crate::trace::spans;"),
        ("src/report/x.rs", "use crate::solve::{LayeredOptions, layered};"),
        ("src/attic/x.rs", ""),
        ("src/cli/x.rs", "use crate::trace::Event;"),
        ("crates/templates/src/x.rs", "use dyelog_trace::angio::read_text;"),
        ("crates/templates/src/x.rs", "use dyelog_trace::{Event, angio::write_text};"),
        ("crates/same/src/x.rs", "use dyelog_trace::spans;"),
        ("crates/trace/src/x.rs", "fn f() { println!(\"x\"); }"),
        ("crates/trace/src/x.rs", "fn f() { std::env::var(\"X\"); }"),
        ("crates/probe/src/x.rs", "fn f() { eprintln!(\"x\"); }"),
        ("src/report/x.rs", "use std::time::Instant;"),
        ("crates/trace/src/x.rs", "fn f() { None::<u8>.unwrap(); }"),
        ("src/cli/x.rs", "fn f() { None::<u8>.unwrap(); }"),
        ("crates/trace/src/x.rs", &"\n".repeat(LONGEST + 1)),
    ] {
        assert!(!seen(path, text).is_empty(), "not seen in {path}: {text}");
    }
    for (path, text) in [
        ("crates/lqn/src/x.rs", "use crate::names::Names;\nuse dyelog_diagnostic::{Code, Place};"),
        ("src/report/x.rs", "use crate::solve::bottleneck::Resource;\nuse crate::trace::angio;"),
        (
            "crates/lqn/src/x.rs",
            "// println!(\"x\") is for cli\nconst X: &str = \"crate::solve::layered println! .unwrap()\";",
        ),
        ("crates/lqn/tests/x.rs", "fn f() { None::<u8>.unwrap(); }"),
        ("crates/lqn/src/x.rs", "/// ```\n/// x.unwrap();\n/// ```\nfn f() {}"),
        ("crates/lqn/src/x.rs", "fn f() {}\n#[cfg(test)]\nmod tests {\n fn g() { x.unwrap(); }\n}"),
        ("crates/lqn/src/x.rs", "const Q: char = '\"'; const R: &str = r#\"println!(\"x\")\"#; /* .unwrap() /* */ */"),
        ("crates/lqn/src/x.rs", "fn f<'a>(x: &'a str) -> &'a str { x }"),
        ("crates/templates/build/main.rs", "fn main() { println!(\"x\"); std::env::var(\"OUT_DIR\"); }"),
        ("src/cli/x.rs", "fn f() { std::env::var(\"X\"); }\nuse crate::cli::args;\nuse dyelog::trace;"),
        ("src/lib.rs", "pub mod cli;"),
        ("crates/probe/src/x.rs", "use std::time::{Instant, SystemTime};"),
    ] {
        assert_eq!(seen(path, text), Vec::<String>::new(), "{path}: {text}");
    }
}

fn gather(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder of sources").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            gather(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The room that a file is in: a folder of the package, or a crate by the name under which the library gives it on. `None` for what
/// is no part of a library: build scripts and the roots of the package.
fn room_of(path: &str) -> Option<&str> {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["crates", "templates", "src", ..] => Some("tlc"),
        ["crates", krate, "src", ..] => Some(krate),
        ["src", "lib.rs" | "main.rs"] => None,
        ["src", room, ..] => Some(room.trim_end_matches(".rs")),
        _ => None,
    }
}

/// What a file breaks. `path` is relative to the project.
fn violations(path: &str, text: &str) -> Vec<String> {
    let mut broken = Vec::new();
    let lines = text.lines().count();
    if lines > LONGEST {
        broken.push(format!("{path}: {lines} lines, more than {LONGEST}"));
    }
    let code = without_tests(&code_of(text));
    let is_test = path.ends_with("tests.rs") || path.contains("/tests/");
    if !is_test && code.contains(".unwrap()") {
        broken.push(format!("{path}: `.unwrap()`; say why it cannot fail with `.expect(\"…\")`, or return an error"));
    }
    let Some(room) = room_of(path) else { return broken };
    let Some(level) = ROOMS.iter().position(|known| *known == room) else {
        broken.push(format!("{path}: the room `{room}` is not on the list of rooms"));
        return broken;
    };
    let strangers = STRANGERS.iter().find(|(known, _)| *known == room).map_or(&[][..], |(_, strangers)| *strangers);
    let in_crate = path.starts_with("crates/");
    let own = if in_crate { Vec::new() } else { imports(&code, "crate::") };
    for import in &own {
        let other = import.split("::").next().unwrap_or_default();
        match ROOMS.iter().position(|known| *known == other) {
            Some(above) if above > level => broken.push(format!("{path}: imports `{import}`, from further down")),
            Some(_) if room == "cli" && other != "cli" => {
                broken
                    .push(format!("{path}: imports `{import}`; the command line uses the library as any program does"));
            }
            _ => {}
        }
    }
    let of_crates = imports(&code, "dyelog_").into_iter().map(|import| match import.strip_prefix("templates") {
        Some(rest) => format!("tlc{rest}"),
        None => import,
    });
    for import in own.iter().cloned().chain(of_crates) {
        let strange = |stranger: &&&str| {
            import == **stranger || import.strip_prefix(**stranger).is_some_and(|rest| rest.starts_with("::"))
        };
        if let Some(stranger) = strangers.iter().find(strange) {
            broken.push(format!("{path}: `{room}` must never know `{stranger}`, but imports `{import}`"));
        }
    }
    // The server is a program: its own command line and its threads touch what they need.
    if room != "cli" && room != "server" {
        for outside in OUTSIDE {
            let allowed = room == "probe" && OF_PROBES.contains(&outside);
            if !allowed && mentions(&code, outside) {
                broken.push(format!("{path}: `{outside}` is for the command line only"));
            }
        }
    }
    broken
}

/// Whether the code has those words, not as a part of longer ones.
fn mentions(code: &str, words: &str) -> bool {
    let part = |character: char| character.is_alphanumeric() || character == '_';
    let ends_in_word = words.ends_with(part);
    code.match_indices(words).any(|(at, _)| {
        let before = code[..at].chars().next_back().is_some_and(|character| part(character) || character == '.');
        let after = code[at + words.len()..].chars().next().is_some_and(part);
        !(before || ends_in_word && after)
    })
}

/// Paths behind `crate::`, or another beginning, those in braces each on its own, to a depth of two.
fn imports(code: &str, beginning: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices(beginning) {
        expand(&code[at + beginning.len()..], "", &mut found);
    }
    found
}

/// Paths at the start of a text, with what stands before them.
fn expand(text: &str, before: &str, found: &mut Vec<String>) {
    let join = |name: &str| if before.is_empty() { name.to_owned() } else { format!("{before}::{name}") };
    if let Some(group) = text.strip_prefix('{') {
        let mut depth = 0;
        let mut start = 0;
        for (at, character) in group.char_indices() {
            match character {
                '{' => depth += 1,
                '}' | ',' if depth == 0 => {
                    let member = group[start..at].trim();
                    if !member.is_empty() {
                        expand(member, before, found);
                    }
                    start = at + 1;
                    if character == '}' {
                        return;
                    }
                }
                '}' => depth -= 1,
                _ => {}
            }
        }
        return;
    }
    let length = text.find(|character: char| !(character.is_alphanumeric() || character == '_')).unwrap_or(text.len());
    let path = join(&text[..length]);
    match text[length..].strip_prefix("::") {
        Some(rest) if before.is_empty() => expand(rest, &path, found),
        _ => found.push(path),
    }
}

/// The code in front of the file's unit tests.
fn without_tests(code: &str) -> String {
    let mut kept = String::new();
    let mut lines = code.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim() == "#[cfg(test)]" && lines.peek().is_some_and(|next| next.trim_start().starts_with("mod ")) {
            // A module in place runs to the end of the file, by custom; one in a file of its own is one line.
            if lines.peek().is_some_and(|next| next.trim_end().ends_with(';')) {
                lines.next();
                continue;
            }
            break;
        }
        kept.push_str(line);
        kept.push('\n');
    }
    kept
}

/// The text with comments and the contents of literals blanked out.
fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let bytes: Vec<char> = text.chars().collect();
    let mut at = 0;
    let starts = |at: usize, what: &str| what.chars().enumerate().all(|(k, c)| bytes.get(at + k) == Some(&c));
    while at < bytes.len() {
        if starts(at, "//") {
            while at < bytes.len() && bytes[at] != '\n' {
                at += 1;
            }
        } else if starts(at, "/*") {
            let mut depth = 0;
            while at < bytes.len() {
                if starts(at, "/*") {
                    depth += 1;
                    at += 2;
                } else if starts(at, "*/") {
                    depth -= 1;
                    at += 2;
                    if depth == 0 {
                        break;
                    }
                } else {
                    if bytes[at] == '\n' {
                        code.push('\n');
                    }
                    at += 1;
                }
            }
        } else if bytes[at] == 'r' && raw_hashes(&bytes, at).is_some() {
            let hashes = raw_hashes(&bytes, at).unwrap_or(0);
            let end: String = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            at += 2 + hashes;
            while at < bytes.len() && !starts(at, &end) {
                if bytes[at] == '\n' {
                    code.push('\n');
                }
                at += 1;
            }
            at += end.chars().count();
            code.push_str("\"\"");
        } else if bytes[at] == '"' {
            at += 1;
            while at < bytes.len() && bytes[at] != '"' {
                if bytes[at] == '\n' {
                    code.push('\n');
                }
                at += if bytes[at] == '\\' { 2 } else { 1 };
            }
            at += 1;
            code.push_str("\"\"");
        } else if bytes[at] == '\'' && bytes.get(at + 1) == Some(&'\\') {
            at += 3;
            while at < bytes.len() && bytes[at] != '\'' {
                at += 1;
            }
            at += 1;
        } else if bytes[at] == '\'' && bytes.get(at + 2) == Some(&'\'') {
            at += 3;
        } else {
            code.push(bytes[at]);
            at += 1;
        }
    }
    code
}

/// How many hashes a raw string that starts here has, if one does.
fn raw_hashes(bytes: &[char], at: usize) -> Option<usize> {
    let part_of_word = at > 0 && (bytes[at - 1].is_alphanumeric() || bytes[at - 1] == '_') && bytes[at - 1] != 'b';
    let hashes = bytes[at + 1..].iter().take_while(|byte| **byte == '#').count();
    (!part_of_word && bytes.get(at + 1 + hashes) == Some(&'"')).then_some(hashes)
}
