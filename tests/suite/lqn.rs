//! The languages of layered queueing networks.

use std::fs;
use std::path::PathBuf;

use dyelog::lqn::text;

use crate::support::shared;

/// All files of the reference data with that extension.
fn reference(extension: &str) -> Vec<PathBuf> {
    let Some(root) = shared("lqn") else { return Vec::new() };
    let mut folders = vec![root];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for item in fs::read_dir(folder).unwrap() {
            let path = item.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|own| own == extension) {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

#[test]
fn every_reference_text_loads() {
    for path in reference("lqn") {
        let name = path.display().to_string();
        let source = fs::read_to_string(&path).unwrap();
        match text::parse(&name, &source) {
            Ok((_, findings)) => assert!(findings.is_empty(), "{name}: {findings:#?}"),
            Err(errors) => panic!("{name}: {errors:#?}"),
        }
    }
}

#[test]
fn text_is_given_back() {
    for path in reference("lqn") {
        let name = path.display().to_string();
        let (model, _) = text::parse(&name, &fs::read_to_string(&path).unwrap()).unwrap();
        let written = text::write(&model);
        let (again, findings) =
            text::parse("written", &written).unwrap_or_else(|errors| panic!("{errors:#?}\n{written}"));
        assert_eq!(model, again, "{name}");
        assert_eq!(findings, []);
    }
}

#[test]
fn numbers_at_line_ends_are_whole() {
    let source = "G \"\" 0.5\n50 -1\nP 1\np p f R 2.5\n-1\n";
    let (model, _) = text::parse("numbers", source).unwrap();
    assert_eq!(model.parameters.convergence, 0.5);
    assert_eq!(model.processors[0].speed, 2.5);
}
