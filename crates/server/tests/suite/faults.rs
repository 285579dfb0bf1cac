//! Disks that are full, stores that fail, traces that never end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{Request, StatusCode};
use dyelog_server::access::Access;
use dyelog_server::journal::medium::{Disk, Handle, Medium, Memory};
use dyelog_server::journal::{Journal, Kind, Record};
use dyelog_server::serve::routes;
use dyelog_server::service::Service;
use dyelog_server::store::Store;
use dyelog_server::worker::{Worker, Working};
use tower::ServiceExt as _;

use crate::program::Program;
use crate::support::{BEGIN, SECOND, request, trace};

/// Asks a service without a network.
async fn ask(service: &Arc<Service>, method: &str, path: &str, body: Vec<u8>) -> (StatusCode, bool) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/x-protobuf")
        .body(Body::from(body))
        .unwrap();
    let answer = routes(service, &Arc::new(Access::default())).oneshot(request).await.unwrap();
    (answer.status(), answer.headers().contains_key("retry-after"))
}

#[test]
fn a_full_disk_is_told_and_goes_by() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Memory::default();
    let service = Service::start_on(
        &folder.path().join("store.db").as_path().into(),
        &folder.path().join("store.db"),
        memory.clone(),
        Working::default(),
    )
    .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let put = |number: u64| ask(&service, "POST", "/v1/traces", request(&trace(number, BEGIN, &[2])));
        let health = || ask(&service, "GET", "/healthz", Vec::new());
        assert_eq!(put(1).await, (StatusCode::OK, false));
        memory.fill_up_after(100);
        assert_eq!(put(2).await, (StatusCode::SERVICE_UNAVAILABLE, true));
        assert_eq!(health().await.0, StatusCode::SERVICE_UNAVAILABLE);
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert_eq!(health().await.0, StatusCode::SERVICE_UNAVAILABLE);
        // It is healthy again before anything is put, since a load balancer sends nothing to it until then.
        memory.fill_up_after(usize::MAX);
        let begin = std::time::Instant::now();
        while health().await.0 != StatusCode::OK {
            assert!(begin.elapsed() < Duration::from_secs(30), "there is room");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(put(2).await, (StatusCode::OK, false));
        assert_eq!(health().await.0, StatusCode::OK);
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(service.status().counts.received, 6);
    });
    service.stop();
}

/// A disk that writes nothing while it is held.
#[derive(Clone, Default)]
struct Held(Memory, Arc<AtomicBool>);

impl Medium for Held {
    type Handle = HeldSegment;

    fn segments(&self) -> io::Result<Vec<u64>> {
        self.0.segments()
    }

    fn open(&self, start: u64) -> io::Result<HeldSegment> {
        Ok(HeldSegment(self.0.open(start)?, Arc::clone(&self.1)))
    }

    fn remove(&self, start: u64) -> io::Result<()> {
        self.0.remove(start)
    }

    fn disk(&self) -> Option<Disk> {
        self.0.disk()
    }
}

struct HeldSegment(<Memory as Medium>::Handle, Arc<AtomicBool>);

impl Handle for HeldSegment {
    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }

    fn read(&mut self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(at, into)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        while self.1.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.0.append(bytes)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.0.truncate(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync()
    }
}

#[test]
fn a_disk_that_does_not_answer_is_told_and_nobody_waits_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let disk = Held::default();
    let service = Service::start_on(&path.as_path().into(), &path, disk.clone(), Working::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let put = |number: u64| ask(&service, "POST", "/v1/traces", request(&trace(number, BEGIN, &[2])));
        let health = || ask(&service, "GET", "/healthz", Vec::new());
        // A server to which nothing comes is well.
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(health().await.0, StatusCode::OK);
        disk.1.store(true, Ordering::Release);
        let begin = Instant::now();
        assert_eq!(put(1).await, (StatusCode::SERVICE_UNAVAILABLE, true));
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
        assert_eq!(health().await.0, StatusCode::SERVICE_UNAVAILABLE);
        let begin = Instant::now();
        assert_eq!(put(2).await, (StatusCode::SERVICE_UNAVAILABLE, true));
        assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
        disk.1.store(false, Ordering::Release);
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(health().await.0, StatusCode::OK);
        assert_eq!(put(2).await, (StatusCode::OK, false));
        // The first was written after all, and counts once if it comes again.
        assert_eq!(put(1).await, (StatusCode::OK, false));
        tokio::time::sleep(Duration::from_millis(500)).await;
        let counts = service.status().counts;
        assert_eq!((counts.received, counts.duplicate), (9, 3));
    });
    service.stop();
}

#[test]
fn a_store_that_fails_is_told_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let memory = Memory::default();
    let working = Working { checkpoint: SECOND / 10, ..Working::default() };
    let service = Service::start_on(&path.as_path().into(), &path, memory, working).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        // A table that is gone stands for whatever may happen to a store.
        let spoiler = rusqlite::Connection::open(&path).unwrap();
        spoiler.execute_batch("ALTER TABLE progress RENAME TO hidden").unwrap();
        assert_eq!(ask(&service, "POST", "/v1/traces", request(&trace(1, BEGIN, &[2]))).await.0, StatusCode::OK);
        tokio::time::sleep(Duration::from_millis(700)).await;
        assert_eq!(ask(&service, "GET", "/healthz", Vec::new()).await.0, StatusCode::SERVICE_UNAVAILABLE);
        let refused = ask(&service, "POST", "/v1/traces", request(&trace(2, BEGIN, &[2]))).await;
        assert_eq!(refused, (StatusCode::SERVICE_UNAVAILABLE, true));
        spoiler.execute_batch("ALTER TABLE hidden RENAME TO progress").unwrap();
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(ask(&service, "GET", "/healthz", Vec::new()).await.0, StatusCode::OK);
        assert_eq!(service.status().counts.received, 3);
    });
    service.stop();
    let store = Store::open(&path).unwrap();
    assert_eq!(store.progress().unwrap().counts.received, 3);
}

#[test]
fn traces_that_never_end_stay_within_their_memory() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("store.db")).unwrap();
    let memory = Memory::default();
    let mut journal = Journal::open(memory.clone(), 0).unwrap();
    let mut working = Working::default();
    working.gathering.most_bytes = 4 << 20;
    let mut worker = Worker::new(working, memory, &store).unwrap();
    for batch in 0..100_u64 {
        // Of each trace only a call is there, and its root never comes.
        let spans: Vec<_> = (0..500).map(|number| trace(batch * 500 + number, BEGIN, &[2]).swap_remove(0)).collect();
        let record = Record { kind: Kind::Traces, received: BEGIN + batch, payload: request(&spans).into() };
        journal.append(&[record]).unwrap();
        while worker.step(journal.end()).unwrap() {}
        let (_, bytes) = worker.open();
        assert!(bytes < 24 << 20, "{bytes}");
    }
    let counts = worker.counts();
    assert!(counts.are_conserved() && counts.open < 15_000 && counts.incomplete_traces > 30_000, "{counts:?}");
    worker.advance(BEGIN + 31 * SECOND);
    worker.checkpoint(&mut store).unwrap();
    let counts = worker.counts();
    assert_eq!((counts.received, counts.folded, counts.open), (50_000, 50_000, 0));
}

#[test]
#[ignore = "takes a minute"]
fn a_million_traces_that_never_end_stay_within_their_memory() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("store.db")).unwrap();
    let memory = Memory::default();
    let mut journal = Journal::open(memory.clone(), 0).unwrap();
    let mut worker = Worker::new(Working::default(), memory, &store).unwrap();
    let mut most = 0;
    for batch in 0..1000_u64 {
        let spans: Vec<_> = (0..1000).map(|number| trace(batch * 1000 + number, BEGIN, &[2]).swap_remove(0)).collect();
        journal
            .append(&[Record { kind: Kind::Traces, received: BEGIN + batch, payload: request(&spans).into() }])
            .unwrap();
        while worker.step(journal.end()).unwrap() {}
        most = most.max(worker.open().1);
        if batch % 50 == 0 {
            let needed = worker.checkpoint(&mut store).unwrap();
            journal.forget_before(needed).unwrap();
        }
    }
    let limit = Working::default().gathering.most_bytes + Working::default().batch_bytes;
    assert!(most <= limit + (1 << 20), "{most} bytes");
    worker.advance(BEGIN + 31 * SECOND);
    worker.checkpoint(&mut store).unwrap();
    let counts = worker.counts();
    assert_eq!((counts.received, counts.folded, counts.open), (1_000_000, 1_000_000, 0));
}

#[test]
fn a_service_with_a_name_for_each_request_is_named_and_grouped() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("store.db")).unwrap();
    let memory = Memory::default();
    let mut journal = Journal::open(memory.clone(), 0).unwrap();
    let mut worker = Worker::new(Working::default(), memory, &store).unwrap();
    let word = |number: u64| format!("job {}{}", "x".repeat(number as usize % 40), "y".repeat(number as usize / 40));
    let spans: Vec<_> = (0..1500)
        .flat_map(|number| {
            let mut spans = trace(number, BEGIN, &[2]);
            spans.iter_mut().filter(|(service, _)| *service == "stock").for_each(|(_, span)| span.name = word(number));
            spans
        })
        .collect();
    journal.append(&[Record { kind: Kind::Traces, received: BEGIN, payload: request(&spans).into() }]).unwrap();
    while worker.step(journal.end()).unwrap() {}
    worker.give_out_all();
    worker.checkpoint(&mut store).unwrap();
    let offending: Vec<_> = worker.offending().iter().map(|(service, (spans, _))| (service.as_str(), *spans)).collect();
    assert_eq!(offending, [("stock", 500)]);
    let (submodel, _) = store.period(0, u64::MAX).unwrap().unwrap();
    let of_stock = submodel.entries().iter().filter(|entry| submodel.names.text(entry.task) == "stock");
    assert_eq!(of_stock.count(), 1001);
}

#[test]
fn a_store_that_another_process_has_locked_is_told_and_requests_resume() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let program = Program::start(&path, &[]);
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let locked = Instant::now();
    assert_eq!(program.put(&request(&trace(1, BEGIN, &[2]))).unwrap().status, 200);
    let health = || program.ask("GET", "/healthz", &[], b"").unwrap();
    let until = |status: u16| {
        let begin = Instant::now();
        while health().status != status {
            assert!(begin.elapsed() < Duration::from_secs(12), "{}", health().text());
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    until(503);
    while locked.elapsed() < Duration::from_secs(9) {
        assert_eq!(health().text(), "the store cannot be used: another process has locked it\n");
        std::thread::sleep(Duration::from_millis(200));
    }
    let report = b"{\"dyelog-observations\":1,\"observations\":[]}";
    let put = || program.ask("POST", "/services/put", &[], report).unwrap();
    let refused = put();
    assert!(refused.status == 503 && refused.text().contains("another process has locked it"), "{}", refused.text());
    other.execute_batch("ROLLBACK").unwrap();
    until(200);
    assert_eq!((program.put(&request(&trace(2, BEGIN, &[2]))).unwrap().status, put().status), (200, 200));
    // What is acknowledged is read a moment later.
    let begin = Instant::now();
    while program.figure("dyelog_spans_received_total") != 6 {
        assert!(begin.elapsed() < Duration::from_secs(20), "{}", program.figure("dyelog_spans_received_total"));
        std::thread::sleep(Duration::from_millis(50));
    }
}
