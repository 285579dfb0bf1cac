//! The parser that the grammar of rule files comes to.

use tree_sitter::Language;
use tree_sitter_language::LanguageFn;

unsafe extern "C" {
    fn tree_sitter_dyelog() -> *const ();
}

/// The language.
pub fn language() -> Language {
    // SAFETY: build.rs compiles and links the function, which gives a language for as long as the program runs.
    Language::new(unsafe { LanguageFn::from_raw(tree_sitter_dyelog) })
}
