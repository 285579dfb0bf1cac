//! The grammar for editors knows the words that the language knows.

use std::collections::BTreeSet;
use std::path::Path;

use dyelog::datalog::syntax::{KEYWORDS, TokenKind, tokens};
use dyelog::tlc::facts::RELATIONS;
use dyelog::tlc::operations::OPERATIONS;
use serde_json::Value;

fn grammar() -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("editors/vscode/syntaxes/dyelog.tmLanguage.json");
    serde_json::from_str(&std::fs::read_to_string(file).expect("the grammar is there")).expect("it is JSON")
}

/// The words between the first brackets of a pattern.
fn words(grammar: &Value, part: &str) -> BTreeSet<String> {
    let pattern = grammar["repository"][part]["match"].as_str().expect("it has a pattern");
    let inner =
        pattern.split_once('(').and_then(|(_, rest)| rest.split_once(')')).expect("its words stand in brackets").0;
    inner.split('|').map(str::to_owned).collect()
}

fn set<'w>(words: impl IntoIterator<Item = &'w str>) -> BTreeSet<String> {
    words.into_iter().map(str::to_owned).collect()
}

#[test]
fn the_grammar_knows_the_words_of_the_language() {
    let grammar = grammar();
    let keywords: BTreeSet<String> =
        words(&grammar, "keywords").union(&words(&grammar, "aggregates")).cloned().collect();
    assert_eq!(keywords, set(KEYWORDS));
    assert_eq!(words(&grammar, "kinds"), set(["Be", "Ac", "Ed", "Fk", "Jn"]));
    assert_eq!(words(&grammar, "operations"), set(OPERATIONS.iter().map(|one| one.name).chain(["newEntry"])));
    assert_eq!(words(&grammar, "facts"), set(RELATIONS.iter().map(|(name, ..)| *name)));
    for included in grammar["patterns"].as_array().expect("a list") {
        let name =
            included["include"].as_str().and_then(|name| name.strip_prefix('#')).expect("a part of the repository");
        assert!(grammar["repository"][name].is_object(), "{name}");
    }
}

/// The words between quotes in the tree-sitter grammar are those of the language, and the names that it gives a meaning of its own.
#[test]
fn the_tree_sitter_grammar_knows_the_words_of_the_language() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("editors/tree-sitter/grammar.js");
    let text = std::fs::read_to_string(file).expect("the grammar is there");
    let rules = text.split_once("rules: {").expect("it has rules").1;
    let mut words = BTreeSet::new();
    for (number, part) in rules.split('"').enumerate() {
        let is_word = !part.is_empty() && part.chars().all(char::is_alphabetic);
        // What stands before a quotation mark says whether it is the name of a field.
        let before = rules.split('"').nth(number.wrapping_sub(1)).unwrap_or_default();
        if number % 2 == 1 && is_word && !before.ends_with("field(") {
            words.insert(part.to_owned());
        }
    }
    let known = KEYWORDS.into_iter().chain(["Be", "Ac", "Ed", "Fk", "Jn", "newEntry", "mean"]);
    assert_eq!(words, set(known));
}

/// Words that the parser asks for, read off its sources, are keywords, and each lexes as one word.
#[test]
fn the_keywords_are_those_that_the_parser_asks_for() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/datalog/src/syntax");
    let mut asked = BTreeSet::new();
    for file in ["mod.rs", "template.rs", "term.rs", "cursor.rs"] {
        let text = std::fs::read_to_string(folder.join(file)).expect("a source file");
        for rest in text.split("Some(\"").skip(1) {
            let inside = rest.split(')').next().unwrap_or_default();
            asked.extend(inside.split(['"', '|', ' ', ',']).filter(|word| !word.is_empty()).map(str::to_owned));
        }
    }
    asked.retain(|word| word.chars().all(|character| character.is_ascii_lowercase()));
    assert!(asked.len() >= 9, "{asked:?}");
    let known = set(KEYWORDS);
    assert!(asked.is_subset(&known), "{:?}", asked.difference(&known));
    for word in KEYWORDS {
        assert!(matches!(tokens(word)[..], [token] if token.kind == TokenKind::Word), "{word}");
    }
}

/// What the queries for colours name is in the tree-sitter grammar.
#[test]
fn queries_of_the_tree_sitter_grammar_name_what_it_has() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("editors/tree-sitter");
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).expect("it is there");
    let (grammar, queries) = (read("grammar.js"), read("queries/highlights.scm"));
    let named =
        |name: &str| grammar.contains(&format!("    {name}: (")) || grammar.contains(&format!("field(\"{name}\""));
    for line in queries.lines().filter(|line| !line.starts_with(';')) {
        for part in line.split('(').skip(1) {
            let name: String = part.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
            assert!(name.is_empty() || named(&name), "{name}: {line}");
        }
        for field in line.split(": (").filter_map(|part| part.rsplit([' ', '(']).next()) {
            let is_field = line.contains(&format!("{field}: (")) && !field.is_empty();
            assert!(!is_field || named(field), "{field}: {line}");
        }
    }
}
