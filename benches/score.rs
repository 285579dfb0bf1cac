//! How far the layered solver is from the reference models in `../shared/lqn`, by family, and how long it takes.
//!
//! Not a benchmark of divan's: prints tables. What can be set is told in the module.

use std::path::Path;

use dyelog::solve::LayeredOptions;

#[path = "../tests/suite/solve/score.rs"]
#[allow(dead_code, reason = "bars are for the tests")]
mod score;

fn main() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/lqn"));
    let part = score::setting("SCORE_ONLY").unwrap_or_default();
    let options = score::options();
    let layers = LayeredOptions { states: 0, ..options.clone() };
    let mut ways = vec![("small models by their states", options)];
    if ways[0].1 != layers {
        ways.push(("layers alone", layers));
    }
    for (what, options) in ways {
        match score::Score::of(root, &part, &options) {
            Some(mut score) => {
                println!("== {what}");
                score.print();
            }
            None => println!("skipped: no reference models in {}", root.display()),
        }
    }
}
