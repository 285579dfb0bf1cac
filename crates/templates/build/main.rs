//! Compiles the shipped rule files through `crepe!`, as the reference that the engine is held to; only where the feature
//! `reference` asks for it.
//!
//! The files are read with the language's own parser; everything after that (which node is joined when, what is compared)
//! is written here a second time, straight from the text, so that an error of the planner shows.

#[cfg(feature = "reference")]
mod crepe;

fn main() {
    println!("cargo::rerun-if-changed=build");
    #[cfg(feature = "reference")]
    write_reference();
}

#[cfg(feature = "reference")]
fn write_reference() {
    use std::path::Path;
    use std::sync::Arc;

    let mut code = String::new();
    let mut modules = Vec::new();
    for (number, file) in dyelog_rules::DEFAULT.iter().enumerate() {
        let shipped = dyelog_rules::TEMPLATES.iter().find(|(name, _)| file.strip_prefix("rules/") == Some(*name));
        let (_, text) = shipped.unwrap_or_else(|| panic!("{file} is not shipped"));
        let program = dyelog_datalog::syntax::load(file, text, &|_| None::<Arc<str>>)
            .unwrap_or_else(|errors| panic!("{file}: {errors}"));
        modules.push(format!("file_{number}"));
        code.push_str(&crepe::module(&modules[number], file, &program));
    }
    code.push_str(&crepe::dispatch(&modules));
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(Path::new(&out).join("reference.rs"), code).expect("the output folder is writable");
}
