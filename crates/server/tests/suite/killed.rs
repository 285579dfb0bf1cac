//! A server that is killed under load loses nothing that it acknowledged.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::program::Program;
use crate::support::{BEGIN, SECOND, of_file, request, trace};

/// Kills a server so many times while it is sent traces; each trace that was acknowledged counts once.
fn killed(times: u64) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let program = Arc::new(Mutex::new(Some(Program::start(&store, &["--grace", "0.2", "--limit", "1"]))));
    let (acknowledged, stop) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for sender in 0..2_u64 {
            let (program, acknowledged, stop) = (Arc::clone(&program), &acknowledged, &stop);
            scope.spawn(move || {
                let mut number = sender;
                while stop.load(Ordering::Relaxed) == 0 {
                    let body = request(&trace(number, BEGIN + number * SECOND / 100, &[2]));
                    let Some(address) = program.lock().unwrap().as_ref().map(|program| program.address) else {
                        thread::sleep(Duration::from_millis(5));
                        continue;
                    };
                    // Sent again until it is acknowledged, as SDKs do.
                    if Program::put_to(address, &body).is_ok_and(|answer| answer.status == 200) {
                        acknowledged.fetch_add(1, Ordering::Relaxed);
                        number += 2;
                    }
                }
            });
        }
        for kill in 0..times {
            thread::sleep(Duration::from_millis(150 + 97 * kill % 400));
            let running = program.lock().unwrap().take().expect("it runs");
            running.kill();
            *program.lock().unwrap() = Some(Program::start(&store, &["--grace", "0.2", "--limit", "1"]));
        }
        thread::sleep(Duration::from_millis(200));
        stop.store(1, Ordering::Relaxed);
    });
    let program = program.lock().unwrap().take().expect("it runs");
    thread::sleep(Duration::from_secs(4));
    let figure = |state: &str| program.figure(&format!("dyelog_spans{{state=\"{state}\"}}"));
    let acknowledged = acknowledged.load(Ordering::Relaxed);
    assert!(acknowledged > times, "{acknowledged}");
    // What was sent and not acknowledged may be there, too: at most the one of each sender.
    let folded = figure("folded") / 3;
    assert!((acknowledged..=acknowledged + 2).contains(&folded), "{acknowledged} acknowledged, {folded} folded");
    assert_eq!((figure("open"), figure("set_aside"), figure("refused")), (0, 0, 0));
}

#[cfg(unix)]
#[test]
fn a_server_that_stops_keeps_open_traces_open() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let spans = trace(1, BEGIN, &[2, 3]);
    let (some, others) = spans.split_at(2);
    let program = Program::start(&store, &["--grace", "0.2"]);
    assert_eq!(program.put(&request(some)).unwrap().status, 200);
    program.stop();
    let program = Program::start(&store, &["--grace", "0.2"]);
    assert_eq!(program.figure("dyelog_spans{state=\"open\"}"), 2);
    assert_eq!(program.put(&request(others)).unwrap().status, 200);
    thread::sleep(Duration::from_secs(4));
    assert_eq!(program.ask("GET", "/v1/period", &[], b"").unwrap().text(), of_file(&spans));
    let busy = std::process::Command::new(env!("CARGO_BIN_EXE_dyelog-server"))
        .args(["--listen", "127.0.0.1:0", "--store"])
        .arg(&store)
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&busy.stderr).contains("another server uses this store"));
}

#[test]
fn nothing_acknowledged_is_lost() {
    killed(6);
}

#[test]
#[ignore = "takes a minute"]
fn nothing_acknowledged_is_lost_in_a_hundred_kills() {
    killed(100);
}
