//! Generates the parser and compiles it.

use std::path::PathBuf;

use tree_sitter_generate::{OptLevel, generate_parser_for_grammar, load_grammar_file};

fn main() {
    let grammar = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("Cargo sets it")).join("../grammar.js");
    println!("cargo:rerun-if-changed={}", grammar.display());
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("Cargo sets it"));
    let json = load_grammar_file(&grammar, None).expect("node runs the grammar");
    let mut findings = Vec::new();
    let (_, code) = generate_parser_for_grammar(&json, None, OptLevel::default(), &mut findings).expect("a grammar");
    std::fs::write(out.join("parser.c"), code).expect("the folder is there");
    let header = out.join("tree_sitter");
    std::fs::create_dir_all(&header).expect("the folder is there");
    std::fs::write(header.join("parser.h"), tree_sitter_generate::PARSER_HEADER).expect("the folder is there");
    cc::Build::new().include(&out).file(out.join("parser.c")).warnings(false).compile("tree-sitter-dyelog");
}
