#![allow(dead_code, reason = "not every build of the tests uses every helper")]
//! What several test modules need.

use std::path::PathBuf;

/// A file or folder of the reference data that lies beside the project. Tests that use it are ignored, for that reason, where all that is
/// there is the project; `.ci/run` runs them.
pub fn shared(path: &str) -> PathBuf {
    let full = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared")).join(path);
    assert!(full.exists(), "the reference data {path} is not beside this checkout, in {}", full.display());
    full
}
