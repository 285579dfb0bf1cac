#![allow(dead_code, reason = "not every build of the tests uses every helper")]
//! What several test modules need.

use std::path::PathBuf;

/// A file or folder of reference data that lies beside the project, if it is there. Says so where it is not: the calling
/// test then has nothing to test against and returns.
pub fn shared(path: &str) -> Option<PathBuf> {
    let full = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared")).join(path);
    if full.exists() {
        return Some(full);
    }
    eprintln!("skipped: the reference data {path} is not beside this checkout");
    None
}
