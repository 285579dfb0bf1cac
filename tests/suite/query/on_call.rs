//! Ten questions that somebody on call would ask of real traces, in `tests/oracles/on_call`, against a script that shares no code.

use std::path::Path;
use std::process::Command;

use super::cli::query;
use crate::support::shared;

/// What cannot be compared: trace, mutation, question. Where spans are missing, others stand in for them, which have times and children
/// that the script does not make up; and without client spans the script does not know how far a clock is off.
const LEFT_OUT: [(&str, &str, &[&str]); 3] = [
    ("hotel-load25", "drop", &["critical_owner", "gaps", "self_time", "retries"]),
    ("media-load25", "drop", &["critical_owner", "retries"]),
    ("media-load25", "shift", &["concurrency", "critical_owner", "gaps", "self_time"]),
];

fn script(arguments: &[&str]) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracles/on_call.py");
    let output = Command::new("python3").arg(script).args(arguments).output().expect("python3 runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
#[ignore = "needs the reference data, ../shared, and python3"]
fn questions_of_somebody_on_call_have_the_answers_of_a_script() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let questions = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracles/on_call");
    let files = std::fs::read_dir(questions).expect("the questions").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = files.collect();
    files.sort();
    assert_eq!(files.len(), 10);
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for trace in ["hotel-load25", "media-load25"] {
        let path = shared(&format!("traces/jaeger/traceweaver/{trace}.json.gz"));
        for mutation in ["none", "drop", "shift"] {
            let mutated = folder.path().join(format!("{trace}-{mutation}.json"));
            let (path, mutated) = (path.to_str().expect("a path"), mutated.to_str().expect("a path"));
            script(&["mutate", mutation, path, mutated]);
            for file in &files {
                let name = file.file_stem().and_then(|name| name.to_str()).expect("a name");
                let out = LEFT_OUT.iter().any(|one| (one.0, one.1) == (trace, mutation) && one.2.contains(&name));
                if out {
                    continue;
                }
                let file = file.to_str().expect("a path");
                let (code, found, err) = query(&[file, mutated, "--scope", "trace", "--format", "csv"]);
                assert_eq!(code, 0, "{err}");
                let mut found: Vec<&str> = found.lines().skip(1).collect();
                found.sort_unstable();
                let expected = script(&["answer", name, mutated]);
                let mut expected: Vec<&str> = expected.lines().collect();
                expected.sort_unstable();
                compared += 1;
                if found != expected {
                    wrong.push(format!("{trace}, {mutation}, {name}:\n{found:?}\n{expected:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(compared, 50);
}
