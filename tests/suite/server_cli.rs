//! `dyelog serve` and `dyelog period` start the server where it is, and say how to build it where it is not.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// A folder with this program in it.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a scratch folder");
    fs::hard_link(env!("CARGO_BIN_EXE_dyelog"), folder.path().join("dyelog")).expect("links can be made");
    folder
}

/// A server that tells how it was called.
fn server(folder: &Path) {
    let path = folder.join("dyelog-server");
    fs::write(&path, "#!/bin/sh\necho \"$@\"\nexit 3\n").expect("it can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it can be made a program");
}

fn run(folder: &Path, path: &Path, arguments: &[&str]) -> Output {
    let path = format!("{}:/bin:/usr/bin", path.display());
    Command::new(folder.join("dyelog")).args(arguments).env("PATH", path).output().expect("it runs")
}

#[test]
fn the_server_gets_all_arguments_and_gives_its_exit_code() {
    let (own, other) = (folder(), folder());
    server(other.path());
    for path in [other.path(), own.path()] {
        let output = run(own.path(), path, &["serve", "--store", "a b.db", "--help"]);
        assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "--store a b.db --help\n");
        let output = run(own.path(), path, &["period", "solve", "--from", "-1h", "--", "--format", "json"]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "period solve --from -1h -- --format json\n");
        // First it is on the path, then beside the program.
        server(own.path());
    }
}

#[test]
fn without_a_server_it_says_how_to_build_one() {
    let own = folder();
    let output = run(own.path(), own.path(), &["serve"]);
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert!(words.contains("cargo build --release -p dyelog-server"), "{words}");
}
