//! Compiles the shipped rule files through `crepe!`, as the reference that the engine is held to.
//!
//! The files are read with the library's own parser; everything after that (which node is joined when, what is compared)
//! is written here a second time, straight from the text, so that an error of the planner shows.

#[allow(dead_code, unused_imports, missing_docs, reason = "the library's parser, of which only a part is needed here")]
#[path = "src/datalog"]
mod datalog {
    pub mod ast;
    pub mod codes;
    pub mod syntax;
}
#[allow(dead_code, unused_imports, reason = "what the parser reports with; rendering stays out")]
#[path = "src/diagnostic"]
mod diagnostic {
    mod finding;
    pub use finding::*;
}
#[path = "build/crepe.rs"]
mod crepe;

use std::path::Path;
use std::sync::Arc;

/// The rule files that are loaded by default, as in `tlc::rules`.
const FILES: [&str; 3] = ["rules/tlc.dl", "rules/ext/join.dl", "rules/ext/continued.dl"];

fn main() {
    let mut code = String::new();
    let mut modules = Vec::new();
    for (number, file) in FILES.iter().enumerate() {
        println!("cargo::rerun-if-changed={file}");
        let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
        let program = datalog::syntax::load(file, &text, &|_| None::<Arc<str>>)
            .unwrap_or_else(|errors| panic!("{file}: {errors}"));
        modules.push(format!("file_{number}"));
        code.push_str(&crepe::module(&modules[number], file, &program));
    }
    code.push_str(&crepe::dispatch(&modules));
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(Path::new(&out).join("reference.rs"), code).expect("the output folder is writable");
    for folder in ["build.rs", "build", "src/datalog/syntax", "src/datalog/ast.rs", "src/diagnostic/finding.rs"] {
        println!("cargo::rerun-if-changed={folder}");
    }
}
