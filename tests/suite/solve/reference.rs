//! Reference models of our own, `tests/reference`: the bars of accuracy that hold wherever the tests run.

use std::path::Path;

use dyelog::solve::LayeredOptions;

use super::score::{Score, within};

fn score(options: &LayeredOptions) -> Score {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference");
    let mut score = Score::of(&root, "", options).expect("the index is there");
    score.print();
    assert_eq!(score.refused(), &[] as &[String], "models that are not solved");
    score
}

#[test]
fn our_own_reference_models_are_within_their_bars() {
    let score = score(&LayeredOptions::default());
    within(
        &score,
        &[
            ("all", [0.1, 0.5, 0.1, 2.0]),
            ("exact", [0.01, 0.01, 0.01, 0.01]),
            ("plain", [0.1, 0.2, 0.2, 0.3]),
            ("second phase", [0.1, 0.1, 0.1, 0.2]),
            ("fork-join", [0.5, 0.5, 2.2, 6.0]),
            ("interlock", [0.1, 0.1, 0.1, 0.3]),
            ("messages", [0.1, 0.1, 0.1, 0.1]),
        ],
    );
}

#[test]
fn layers_alone_are_near_our_own_reference_models() {
    let score = score(&LayeredOptions { states: 0, ..LayeredOptions::default() });
    within(
        &score,
        &[
            ("all", [0.3, 1.5, 0.7, 6.0]),
            ("exact", [0.01, 0.01, 0.01, 0.01]),
            ("plain", [0.1, 0.3, 0.4, 3.5]),
            ("second phase", [0.9, 1.8, 0.1, 4.5]),
            ("fork-join", [0.5, 0.5, 2.2, 6.0]),
            ("interlock", [0.5, 1.8, 1.5, 5.0]),
            ("messages", [1.0, 1.0, 10.0, 10.0]),
        ],
    );
}
