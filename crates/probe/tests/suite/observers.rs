//! What observers report, read by the library that makes models of it.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dyelog_observe::json;
use dyelog_observe::observation::{self, Observation, Operation};
use dyelog_probe::StartError;
use dyelog_probe::observer::{
    HttpPost, Input, Observer, Output, Request, Service, Transport, TransportError, count_disk,
};

static LOOKUP: Input = Input::new("Catalogue", "look \"up\"", Service::Synchronous);
static PRICE: Output = Output::new("Prices", "price", Request::Synchronous);
static AUDIT: Output = Output::new("Audit", "note", Request::Asynchronous);

/// A process has one observer at most, so that tests take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<String>>>);

impl Transport for Kept {
    fn put(&mut self, report: &str) -> Result<(), TransportError> {
        self.0.lock().unwrap().push(report.to_owned());
        Ok(())
    }
}

impl Kept {
    fn all(&self) -> Vec<Observation> {
        let text = self.0.lock().unwrap().join("\n");
        json::parse("reports", &text).expect("reports can be read")
    }

    fn merged(&self) -> Observation {
        let all = self.all();
        let mut sum = all[0].clone();
        all[1..].iter().for_each(|one| sum.merge(one));
        sum
    }
}

#[test]
fn operations_are_counted_with_what_they_call() {
    let _turn = turn();
    let kept = Kept::default();
    let setup = Observer::of("shop", "catalogue").interval(Duration::from_millis(20)).threads(3);
    let observer = setup.exports("Catalogue", "tcp:h:1").start(kept.clone()).unwrap();
    assert_eq!(Observer::of("shop", "x").start(Kept::default()).unwrap_err(), StartError::Running);
    let price = PRICE.at("tcp:h:2");
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let _lookup = LOOKUP.start();
                    drop(price.start());
                    drop(price.start());
                    std::thread::sleep(Duration::from_micros(300));
                }
            });
        }
    });
    drop(AUDIT.start());
    let task = LOOKUP.begin();
    drop(task.call(&AUDIT));
    std::thread::spawn(move || drop(task)).join().unwrap();
    count_disk(2, 3);
    let summary = observer.finish();
    assert!(summary.is_clean() && summary.sent > 1, "{summary:?}");
    // What ends when nothing observes is nobody's.
    drop(LOOKUP.start());

    let sum = kept.merged();
    let lookup = Operation::new("Catalogue", "look \"up\"");
    assert_eq!(sum.completions(&lookup), 301);
    let times = sum.inputs.values().next().unwrap();
    assert_eq!(times.spread.len(), 301);
    let (mean, middle) = (times.moments.mean().unwrap(), times.spread.quantile(0.5).unwrap());
    assert!(mean >= 0.0003 && middle > 0.0003 && middle < 1.0, "{mean} {middle}");
    let outputs = sum.outputs.iter().map(|(output, times)| {
        (&*output.operation.name, output.within.clone(), &*output.protocol, output.request, times.moments.count)
    });
    let outputs: Vec<_> = outputs.collect();
    assert_eq!(
        outputs,
        [
            ("note", None, "", observation::Request::Asynchronous, 1),
            ("note", Some(lookup.clone()), "", observation::Request::Asynchronous, 1),
            ("price", Some(lookup), "tcp:h:2", observation::Request::Synchronous, 600),
        ]
    );
    assert_eq!(sum.threads.configured, Some(3));
    assert!((1..=4).contains(&sum.threads.most), "{:?}", sum.threads);
    assert!(sum.resources.cpu > 0 && sum.resources.reads >= 2 && sum.resources.writes >= 3);
    assert!(sum.interfaces["Catalogue"].contains("tcp:h:1"));
    // Intervals meet.
    let all = kept.all();
    assert!(all.windows(2).all(|pair| pair[0].to == pair[1].from));
}

#[test]
fn reports_wait_for_a_server_that_does_not_answer() {
    struct Down(Instant, Kept);
    impl Transport for Down {
        fn put(&mut self, report: &str) -> Result<(), TransportError> {
            if self.0.elapsed() < Duration::from_millis(100) {
                return Err(TransportError::Unavailable {
                    why: "down".to_owned(),
                    after: Some(Duration::from_millis(30)),
                });
            }
            self.1.put(report)
        }
    }
    let _turn = turn();
    let kept = Kept::default();
    let down = Down(Instant::now(), kept.clone());
    let observer = Observer::of("shop", "p").interval(Duration::from_millis(10)).start(down).unwrap();
    (0..1000).for_each(|_| drop(LOOKUP.start()));
    let summary = observer.finish();
    assert!(summary.is_clean(), "{summary:?}");
    assert_eq!(kept.merged().completions(&Operation::new("Catalogue", "look \"up\"")), 1000);
}

#[test]
fn what_is_never_taken_is_given_up_in_time() {
    struct Never;
    impl Transport for Never {
        fn put(&mut self, _: &str) -> Result<(), TransportError> {
            Err(TransportError::Unavailable { why: "never".to_owned(), after: None })
        }
    }
    let _turn = turn();
    let setup = Observer::of("shop", "p").interval(Duration::from_millis(10)).patience(Duration::from_millis(50));
    let observer = setup.start(Never).unwrap();
    let begin = Instant::now();
    let summary = observer.finish();
    assert!(summary.dropped >= 1 && summary.error.as_deref() == Some("never"), "{summary:?}");
    assert!(begin.elapsed() < Duration::from_secs(3));
}

#[test]
fn reports_are_posted_over_http() {
    let _turn = turn();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let mut request = String::new();
        let mut buffer = [0; 4096];
        while !request.ends_with("]}]}") {
            let count = connection.read(&mut buffer).unwrap();
            request.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
        }
        connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        request
    });
    let transport = HttpPost::new(address, "/services/put").token("secret");
    let observer = Observer::of("shop", "p").interval(Duration::from_secs(60)).start(transport).unwrap();
    drop(LOOKUP.start());
    let summary = observer.finish();
    assert!(summary.is_clean() && summary.sent == 1, "{summary:?}");
    let request = server.join().unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("POST /services/put HTTP/1.1\r\n") && head.contains("Authorization: Bearer secret"),
        "{head}"
    );
    assert!(head.contains(&format!("Content-Length: {}", body.len())));
    assert_eq!(json::parse("body", body).unwrap().len(), 1);
}

#[test]
fn more_operations_than_are_kept_are_counted() {
    let _turn = turn();
    let kept = Kept::default();
    let observer = Observer::of("shop", "p").start(kept.clone()).unwrap();
    let many: Vec<Output> = (0..5000).map(|number| PRICE.at(format!("tcp:{number}"))).collect();
    for one in &many {
        drop(one.start());
    }
    let summary = observer.finish();
    assert_eq!(summary.lost + kept.merged().outputs.len() as u64, 5000);
    assert!(summary.lost > 0 && kept.merged().lost == summary.lost);
}

#[cfg(target_os = "linux")]
#[test]
fn proxies_report_what_others_use() {
    let _turn = turn();
    let mut other = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let kept = Kept::default();
    let setup = Observer::of("shop", "p").interval(Duration::from_millis(300)).proxies();
    let observer = setup.start(kept.clone()).unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let summary = observer.finish();
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(summary.is_clean(), "{summary:?}");
    let all = kept.all();
    let (id, own) = (u64::from(other.id()), u64::from(std::process::id()));
    let used: u64 = all.iter().filter(|one| one.process.id == id).map(|one| one.resources.cpu).sum();
    assert!((10_000_000..2_000_000_000).contains(&used), "{used}");
    assert!(all.iter().all(|one| one.managed == (one.process.id == own)));
}
