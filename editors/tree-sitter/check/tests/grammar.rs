//! The grammar reads every rule file that ships, and its corpus as that says.

use std::fs;
use std::path::{Path, PathBuf};

use tree_sitter::{Node, Parser, Query};

const TREE_SITTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");

fn parser() -> Parser {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_dyelog_check::language()).expect("a version that is known");
    parser
}

/// The rule files below a folder.
fn rules(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            rules(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "dl") {
            found.push(path);
        }
    }
}

/// Where the tree has errors.
fn errors(root: Node<'_>) -> Vec<(usize, String)> {
    let (mut open, mut found) = (vec![root], Vec::new());
    while let Some(node) = open.pop() {
        if node.is_error() || node.is_missing() {
            found.push((node.start_position().row + 1, node.kind().to_owned()));
        }
        open.extend((0..node.child_count()).filter_map(|number| node.child(number as u32)));
    }
    found.sort_unstable();
    found
}

#[test]
fn every_rule_file_that_ships_is_read_without_an_error() {
    let mut files = Vec::new();
    for folder in ["rules", "examples"] {
        rules(&Path::new(PROJECT).join(folder), &mut files);
    }
    assert!(files.len() > 20, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).expect("it is text");
        let tree = parser().parse(&text, None).expect("a language is set");
        assert_eq!(errors(tree.root_node()), [], "{}", file.display());
    }
}

#[test]
fn slips_are_errors() {
    for text in ["template t { order }\n", "template t { on message(U B) }\n", "a(X :- b(X).\n", "template { }\n"] {
        let tree = parser().parse(text, None).expect("a language is set");
        assert!(tree.root_node().has_error(), "{text}");
    }
}

#[test]
fn the_queries_are_about_the_grammar() {
    let text = fs::read_to_string(Path::new(TREE_SITTER).join("queries/highlights.scm")).expect("it is there");
    let query = Query::new(&tree_sitter_dyelog_check::language(), &text).expect("all of its nodes are known");
    assert!(query.pattern_count() > 5);
}

/// The corpus in the form of tree-sitter's own command: a name between lines of `=`, a text, `---`, its tree.
#[test]
fn the_corpus_is_read_as_it_says() {
    let mut cases = 0;
    for entry in fs::read_dir(Path::new(TREE_SITTER).join("test/corpus")).expect("a folder") {
        let text = fs::read_to_string(entry.expect("an entry").path()).expect("it is text");
        let mut parts = text.split("==================\n").skip(1);
        while let (Some(name), Some(rest)) = (parts.next(), parts.next()) {
            let (source, wanted) = rest.split_once("\n---\n").expect("a tree follows `---`");
            let tree = parser().parse(source, None).expect("a language is set");
            let words = |text: &str| {
                text.replace('(', " ( ").replace(')', " ) ").split_whitespace().collect::<Vec<_>>().join(" ")
            };
            let found = tree.root_node().to_sexp();
            assert_eq!(words(&found), words(wanted), "{}\n{found}", name.trim());
            cases += 1;
        }
    }
    assert!(cases > 5, "{cases} cases");
}
