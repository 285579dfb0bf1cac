//! How far the layered solver is from the reference models in `../shared/lqn`, by family, and how long it takes.
//!
//! Not a benchmark of divan's: prints tables. What can be set is told in the module.

use std::path::Path;

#[path = "../tests/suite/solve/score.rs"]
mod score;

fn main() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/lqn"));
    match score::Score::of(root, &score::setting("SCORE_ONLY").unwrap_or_default()) {
        Some(mut score) => score.print(),
        None => println!("skipped: no reference models in {}", root.display()),
    }
}
