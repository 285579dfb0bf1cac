//! A process that is killed.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dyelog_probe::{Form, Function, Mode, Recorder};

static STEP: Function = Function::new("Killed", "step");
const FILE: &str = "DYELOG_PROBE_TEST_FILE";

/// What the process does that is killed: calls without end.
#[test]
#[ignore = "it is what the test of a killed process runs"]
fn steps_without_end() {
    let Ok(file) = std::env::var(FILE) else { return };
    let _recorder = Recorder::of("killed").mode(Mode::Both).file(Form::Binary, file).start().expect("it is alone");
    println!("begun");
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(60) {
        drop(STEP.enter());
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn a_killed_process_leaves_all_but_the_last_moment() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("killed.calls");
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "killed::steps_without_end", "--ignored", "--nocapture"])
        .env(FILE, &file)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let out = BufReader::new(child.stdout.take().expect("it is piped"));
    assert!(out.lines().map_while(Result::ok).any(|line| line.contains("begun")));
    std::thread::sleep(Duration::from_millis(600));
    child.kill().expect("it runs");
    let killed = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_nanos() as i64;
    child.wait().expect("it is dead");

    let bytes = std::fs::read(&file).expect("there are records");
    let profile = crate::support::profile(&bytes);
    let calls = profile.calls.as_ref().expect("they were asked for").calls();
    let last = calls.iter().map(|call| call.inside.end).max().expect("there are calls");
    let lag = (killed - last) / 1_000_000;
    println!("{} calls, the last one {lag} ms before the kill", calls.len());
    // 100 ms is what a machine with nothing else to do holds; one that is busy with other tests must hold this.
    assert!(lag < 2000, "the last record is {lag} ms old");
    assert!(profile.abnormal.iter().all(|abnormal| abnormal.count <= 1), "{:?}", profile.abnormal);
}
