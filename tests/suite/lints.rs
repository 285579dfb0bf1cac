//! The lints of templates: each fires on a slip in a shipped template, at the right place, and all are silent on what ships.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use dyelog::datalog::syntax;
use dyelog::diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog::tlc::Rules;
use dyelog::tlc::rules::{DEFAULT_NAMES, SHIPPED, shipped_text};

const FILE: &str = "slip.dl";

/// The text of a shipped template.
fn template(name: &str) -> &'static str {
    let head = format!("template {name} {{");
    SHIPPED
        .iter()
        .filter(|(file, _)| !file.starts_with("paper/"))
        .find_map(|(_, text)| {
            let start = text.find(&head)?;
            let end = text[start..].find("\n}\n").map_or(text.len(), |end| start + end + 3);
            Some(&text[start..end])
        })
        .unwrap_or_else(|| panic!("no template `{name}` ships"))
}

/// What is said of a file of the user, before the shipped ones.
fn findings(text: &str) -> Vec<Diagnostic> {
    match Rules::with_user_files(&[(FILE.into(), Arc::from(text))], &|_| None) {
        Ok(rules) => rules.warnings().to_vec(),
        Err(Diagnostics(found)) => found,
    }
}

/// The first line of the text that a finding points at; of those about two templates, that may be the shipped one.
fn marked<'t>(text: &'t str, place: &Place) -> &'t str {
    match place {
        Place::Range { file, start, end } if &**file == FILE => text[*start..*end].lines().next().unwrap_or_default(),
        _ => "(elsewhere)",
    }
}

#[test]
fn each_lint_fires_on_a_slip_in_a_shipped_template() {
    // The code; the template; what is written in place of what; where the finding points.
    let slips = [
        ("R050", "basic_rpc", "[j, k3, m2+1 | a, v+1]", "[j, k3, m4 | a, v4]", "e3 = Ac [j, k3, m2   | b, w3 ]"),
        ("R055", "forwarding", " min 1", "", "repeat x in 1..n {"),
        ("R056", "basic_rpc", "m+1", "m*2", "m*2"),
        ("R058", "asynchronous", "[j, k2, 2 | b", "[j, k2, x | b", "x"),
        ("R058", "basic_rpc", "addActivity(S, e3)", "addActivity(S, e9)", "e9"),
        ("R059", "rpc_phase2", "Be     [j, k2, 1", "Be     [j, k9, 1", "k9"),
        (
            "R066",
            "asynchronous",
            "    S := newEntry(A, b)\n    addRequest(E, S)",
            "    addRequest(E, S)\n    S := newEntry(A, b)",
            "S",
        ),
        ("R067", "basic_rpc", "newEntry(R, b)", "newEntry(R, c)", "c"),
        ("R068", "basic_rpc", "newEntry(R, b)", "newEntry(R, a)", "a"),
        ("R068", "basic_rpc", "addRequest(E, S)", "T := newEntry(R, b)  addRequest(E, S)  addRequest(E, T)", "b"),
        ("R069", "rpc_phase2", "phase2(k3, b, w3)", "phase2(k3, b, w4)", "phase2(k3, b, w4)"),
        ("R070", "rpc_phase2", "    addTrigger([j, k2, 2 | a, v+2], E)\n", "", "e4 = Be     [j, k2, 1   | a, v+1]"),
        ("R071", "forwarding", "order 5", "order 2", "(elsewhere)"),
        ("R073", "activity", "order 7", "order -1", "(elsewhere)"),
        ("R073", "asynchronous", "order 6", "order -1", "(elsewhere)"),
        ("R077", "basic_rpc", "a != b, ", "", "basic_rpc"),
        ("R078", "basic_rpc", ", w3 > w2", "", "e3 = Ac [j, k3, m2   | b, w3 ]"),
        ("R079", "basic_rpc", "addActivity(S, e3)", "addActivity(E, e3)", "e3"),
        ("R079", "asynchronous", "w2+1], S)", "w2+1], E)", "b"),
        ("R079", "forwarding", "phase2(q[x], t[x], z[x])", "addActivity(S[x-1], g[x])", "g[x]"),
        (
            "R080",
            "rpc_phase2",
            "    S := newEntry(R, b)\n    addRequest(E, S)\n    addActivity(E, e1)  addActivity(S, e2)\n",
            "",
            "e2 = Ac     [j, k,  m+1 | b, w2 ]",
        ),
        ("R081", "basic_rpc", "addRequest(E, S)", "addRequest(E, S)  addRequest(E, S)", "S"),
        ("R081", "forwarding", "addRequest(S[x-1], S[x])", "addRequest(S[x-1], S[x])  addRequest(S[0], S[x])", "S[x]"),
        ("R082", "basic_rpc", "addRequest(E, S)", "", "b"),
        (
            "R083",
            "basic_rpc",
            "addActivity(S, e3)",
            "T := newEntry(R, b)  addRequest(E, T)  addActivity(S, e3)  addActivity(T, e3)",
            "e3",
        ),
    ];
    let mut wrong = Vec::new();
    for (code, name, from, to, at) in slips {
        let sound = template(name);
        assert!(sound.contains(from), "{name}: {from}");
        let slip = sound.replacen(from, to, 1);
        let found = findings(&slip);
        let said: Vec<String> = found
            .iter()
            .map(|one| format!("{} at {:?}: {}", one.code, marked(&slip, &one.place), one.message))
            .collect();
        if !found.iter().any(|one| one.code.0 == code && marked(&slip, &one.place) == at) {
            wrong.push(format!("{code} on {name} is not at {at:?}:\n  {}", said.join("\n  ")));
        }
        // The template as it ships, given in the same way, has nothing of it.
        let before: Vec<&str> = findings(sound).iter().map(|one| one.code.0).collect();
        assert!(!before.contains(&code), "{code} on {name} as it ships");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_is_said_of_what_ships() {
    assert_eq!(Rules::shipped().warnings(), &[]);
    // Each file by itself, with what it uses.
    let find = |name: &str| shipped_text(name);
    for name in DEFAULT_NAMES {
        let text = shipped_text(name).expect("it ships");
        let program = syntax::load(name, &text, &find).expect("it loads");
        let rules = Rules::of_program(program).expect("it has no errors");
        assert_eq!(rules.warnings(), &[], "{name}");
    }
    // No extension is left out of what is loaded.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("rules/ext");
    for entry in fs::read_dir(folder).expect("extensions ship") {
        let name = format!("rules/ext/{}", entry.expect("an entry").file_name().to_string_lossy());
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(&name)).expect("it is text");
        let found = findings(&text);
        assert_eq!(found, [], "{name}");
    }
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/rules")).expect("examples ship") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|ending| ending == "dl") {
            // Of nodes or of events, with the cases that stand in it.
            let text = fs::read_to_string(&path).expect("it is text");
            let checked = dyelog::authoring::check(&[("example.dl".into(), text.into())], &|_| None);
            assert_eq!(checked.findings, [], "{}", path.display());
        }
    }
}
