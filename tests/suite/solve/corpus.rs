//! Models of others with reference results: prints how far the solver is from them, and fails on the bars.

use std::path::Path;

use dyelog::lqn::model::Model;
use dyelog::lqn::parse_any;
use dyelog::solve::{LayeredOptions, layered};

use crate::support::shared;

use super::score::{Score, options, within};

fn parse(path: &Path) -> Option<Model> {
    let source = std::fs::read_to_string(path).ok()?;
    let parsed = parse_any(&path.display().to_string(), &source);
    parsed.map_err(|error| eprintln!("{}: not read: {error}", path.display())).ok().map(|parsed| parsed.0)
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn reference_models_are_within_their_bars() {
    let root = shared("lqn");
    let mut score = Score::of(&root, "", &options()).expect("the index is there");
    score.print();
    within(
        &score,
        &[
            ("all", [0.2, 2.0, 0.1, 2.0]),
            ("exact", [0.1, 1.0, 0.1, 1.0]),
            ("plain", [0.3, 2.0, 0.3, 2.5]),
            ("second phase", [0.2, 6.0, 0.1, 3.0]),
            ("fork-join", [0.2, 2.0, 0.2, 2.0]),
            ("interlock", [0.2, 1.0, 0.2, 2.0]),
        ],
    );
    let worst = score.at("all", 0, 1.0);
    assert!(worst <= 20.0, "a throughput is {worst}% off");
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn layers_alone_are_within_their_bars() {
    let root = shared("lqn");
    let layers = LayeredOptions { states: 0, ..LayeredOptions::default() };
    let mut score = Score::of(&root, "", &layers).expect("the index is there");
    score.print();
    within(
        &score,
        &[
            ("all", [0.3, 5.5, 0.3, 10.0]),
            ("exact", [2.5, 8.0, 1.0, 12.0]),
            ("plain", [0.3, 4.0, 0.3, 8.0]),
            ("second phase", [3.0, 8.0, 2.0, 12.5]),
            ("fork-join", [0.5, 4.0, 0.3, 2.0]),
            ("interlock", [2.0, 11.0, 0.5, 7.0]),
        ],
    );
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn large_models_are_solved_or_say_that_they_are_not() {
    solve_large(&["gen-c10l4t50.lqn", "gen-c20l5t100.lqn"]);
}

#[test]
#[ignore = "takes half a minute without optimisation"]
fn very_large_models_are_solved_or_say_that_they_are_not() {
    solve_large(&["gen-c50l6t500.lqn", "gen-c100l6t1000.lqn"]);
}

fn solve_large(files: &[&str]) {
    let root = shared("lqn/large");
    for file in files {
        let model = parse(&root.join(file)).expect("the model is well-formed");
        let begin = std::time::Instant::now();
        let results = layered(&model, &LayeredOptions::default()).expect("the model can be solved");
        eprintln!("{file}: {:.2?}, {:?} {:?}", begin.elapsed(), results.convergence, results.caveats);
        assert!(results.convergence.converged || !results.caveats.is_empty());
    }
}
