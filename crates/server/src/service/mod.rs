//! The server at work: a thread that writes the journal, one that reads it, and what both tell.

mod clock;
mod pulse;
mod threads;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use dyelog_observe::observation::Observation;
use dyelog_observe::system::System;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::timeout;

use crate::ahead::Ahead;
use crate::counts::Counts;
use crate::journal::medium::{Folder, Medium};
use crate::journal::{Journal, Kind, Record};
use crate::lately::Lately;
pub use crate::puts::NotPut;
use crate::puts::Puts;
use crate::requests::Requests;
use crate::scrape::{Outcome, Scraped};
use crate::store::{Location, Store, StoreError, Sums};
use crate::told::Told;
use crate::worker::{Worker, WorkerError, Working};
use clock::{Age, Clock};
pub use clock::{WRONG, wall_clock};
pub(crate) use pulse::{Inbox, Pulse};
use threads::{follow, write};

/// How many payloads are written and synced together at most.
const GROUP: usize = 1024;
/// How far the worker may lag behind what was received, in bytes of the journal.
const BACKLOG: u64 = 256 << 20;
/// How long the worker waits where there is nothing to do.
const PAUSE: Duration = Duration::from_millis(50);
/// How long it waits after the store failed.
const RETRY: Duration = Duration::from_secs(1);
/// How long deleting everything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many questions to the store are in work at a time. Each has the models of a period in memory.
pub(crate) const QUESTIONS: usize = 2;
/// The most questions that wait for a turn. Others get 503, since each holds a connection that a sender may need.
pub(crate) const WAITING: usize = 64;

/// Why a payload was not taken. The sender may try again later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Busy {
    /// The worker lags too far behind.
    Behind,
    /// The journal could not be written.
    Unwritable(String),
    /// The server stops.
    Stopping,
}

/// What management applications asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Asked {
    stop: bool,
    remove: bool,
}

/// Writers to a store take turns: waiting for one another, they would sleep longer than it takes.
#[derive(Debug, Default)]
pub struct Turn(Mutex<()>);

impl Turn {
    /// Does something when nobody else does.
    pub fn take<T>(&self, act: impl FnOnce() -> T) -> T {
        let _turn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        act()
    }
}

/// Tells how it ended.
type Done = oneshot::Sender<Result<(), String>>;

enum Command {
    Append(Record, oneshot::Sender<Result<(), Busy>>),
    Forget(u64),
    Stop,
}

/// What the threads tell.
struct Shared {
    clock: Clock,
    age: Age,
    /// Up to where the journal is on disk.
    synced: AtomicU64,
    /// Up to where the worker read it.
    read: AtomicU64,
    stopping: AtomicBool,
    status: Mutex<Status>,
    /// Whether a management application asked to stop, and to remove all files then.
    asked: watch::Sender<Asked>,
    /// Who waits until all performance data is deleted.
    initialise: Mutex<Vec<Done>>,
    turn: Arc<Turn>,
    /// Of the worker, of the thread that writes the journal, and of the one that stores reports.
    working: Pulse,
    writing: Pulse,
    storing: Arc<Pulse>,
    /// The worker, to be woken.
    worker: Mutex<Option<thread::Thread>>,
}

/// How the service is.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// What became of the spans.
    pub counts: Counts,
    /// How many traces are open.
    pub open_traces: usize,
    /// How many bytes spans take that are not folded yet.
    pub open_bytes: usize,
    /// Services with too many names of operations: of how many spans, and the last such name.
    pub offending: BTreeMap<String, (u64, String)>,
    /// Spans of services beyond [`SERVICES`](crate::offenders::SERVICES): how many, and the name of the last service.
    pub other_services: Option<(u64, String)>,
    /// Services whose clocks are ahead.
    pub ahead: Ahead,
    /// How many series of metrics there are.
    pub series: usize,
    /// The last metric that found no room among them, and what it is of.
    pub no_room: Option<String>,
    /// What of the worker or the store does not work.
    fault: Option<String>,
    /// Why the journal could not be written when it was last tried.
    unwritable: Option<String>,
    /// From where metrics are fetched, and how that goes.
    pub scrapes: BTreeMap<String, Scraped>,
}

impl Shared {
    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        self.clock.now()
    }

    fn wake(&self) {
        if let Some(worker) = &*self.worker.lock().unwrap_or_else(PoisonError::into_inner) {
            worker.unpark();
        }
    }
}

/// A running service.
pub struct Service {
    shared: Arc<Shared>,
    commands: mpsc::Sender<Command>,
    /// The worker, and the one that writes the journal.
    threads: Mutex<Option<(JoinHandle<()>, JoinHandle<()>)>>,
    /// Reports queued for the store, and the thread that stores them.
    puts: Mutex<Option<(Arc<Puts>, JoinHandle<()>)>>,
    /// What became of requests that bring something.
    requests: Requests,
    location: Location,
    /// The beginning of the names of the files beside the store.
    files: PathBuf,
    lately: Lately,
    /// What questions about periods came to.
    sums: Arc<Sums>,
    /// What they were told.
    told: Arc<Told>,
    /// How many spans were open when it stopped the last time that are not in the journal any more.
    lost: u64,
    system: OnceLock<System>,
    /// Turns to ask the store: threads are left to those that bring something.
    questions: Arc<Semaphore>,
    /// Places to wait for one.
    waiting: Semaphore,
    /// Held for as long as the store is in use.
    _lock: File,
}

impl Service {
    /// Opens the store in a file and the journal beside it, and begins to work.
    ///
    /// # Errors
    /// When another server has the store, or either of the two cannot be opened.
    pub fn start(path: &Path, working: Working) -> Result<Arc<Self>, WorkerError> {
        Self::start_at(&path.into(), path, working)
    }

    /// The same wherever the store is. The names of the files here begin with `files`.
    ///
    /// # Errors
    /// As [`Service::start`].
    pub fn start_at(location: &Location, files: &Path, working: Working) -> Result<Arc<Self>, WorkerError> {
        let medium = Folder::new(&journal_of(files))?;
        Self::start_on(location, files, medium, working)
    }

    /// The same with a journal on another medium.
    ///
    /// # Errors
    /// As [`Service::start`].
    pub fn start_on<M: Medium>(
        location: &Location,
        files: &Path,
        medium: M,
        working: Working,
    ) -> Result<Arc<Self>, WorkerError> {
        let lock = lock(files)?;
        let store = Store::claim(location)?;
        let progress = store.progress()?;
        let journal = Journal::open(medium.clone(), progress.position)?;
        let worker = Worker::new(working, medium, &store)?;
        let lost = worker.lost();
        let shared = Arc::new(Shared {
            clock: Clock::from(wall_clock().max(progress.clock)),
            age: Age::from(store.newest()?.unwrap_or_else(wall_clock)),
            synced: AtomicU64::new(journal.end()),
            read: AtomicU64::new(worker.position()),
            stopping: AtomicBool::new(false),
            status: Mutex::new(Status { counts: worker.counts(), ..Status::default() }),
            asked: watch::Sender::new(Asked::default()),
            initialise: Mutex::default(),
            turn: Arc::default(),
            working: Pulse::default(),
            writing: Pulse::default(),
            storing: Arc::default(),
            worker: Mutex::new(None),
        });
        let (commands, received) = mpsc::channel(GROUP);
        let received = Inbox::of(received)?;
        let writing = {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name("journal".to_owned()).spawn(move || write(journal, received, &shared))?
        };
        let reading = {
            let (shared, commands) = (Arc::clone(&shared), commands.clone());
            let work = move || follow(worker, store, &shared, &commands);
            thread::Builder::new().name("worker".to_owned()).spawn(work)?
        };
        *shared.worker.lock().unwrap_or_else(PoisonError::into_inner) = Some(reading.thread().clone());
        let threads = Mutex::new(Some((reading, writing)));
        let (puts, storing) =
            Puts::to(Store::attend(location)?, Arc::clone(&shared.turn), Arc::clone(&shared.storing))?;
        let storing = thread::Builder::new().name("reports".to_owned()).spawn(storing)?;
        let puts = Mutex::new(Some((Arc::new(puts), storing)));
        Ok(Arc::new(Self {
            shared,
            commands,
            threads,
            puts,
            requests: Requests::default(),
            location: location.clone(),
            files: files.to_owned(),
            lately: Lately::default(),
            sums: Arc::default(),
            told: Arc::default(),
            lost,
            system: OnceLock::new(),
            questions: Arc::new(Semaphore::new(QUESTIONS)),
            waiting: Semaphore::new(WAITING),
            _lock: lock,
        }))
    }

    /// Whether a payload can be taken now.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn admit(&self) -> Result<(), Busy> {
        if self.backlog() > BACKLOG {
            return Err(Busy::Behind);
        }
        if self.shared.stopping.load(Ordering::Acquire) {
            return Err(Busy::Stopping);
        }
        // A journal that could not be written is tried again.
        self.worker_fault().or_else(|| self.journal_fault()).map_or(Ok(()), |fault| Err(Busy::Unwritable(fault)))
    }

    /// Whether the worker lags so far behind that those wait that bring more than others.
    pub fn is_pressed(&self) -> bool {
        self.backlog() > BACKLOG / 2
    }

    /// Takes a payload; it is on disk when this returns.
    ///
    /// # Errors
    /// When it cannot be taken now.
    pub async fn take(&self, kind: Kind, payload: Bytes) -> Result<(), Busy> {
        self.admit()?;
        let (done, answer) = oneshot::channel();
        let record = Record { kind, received: self.shared.now(), payload };
        let written = async {
            self.commands.send(Command::Append(record, done)).await.map_err(|_| Busy::Stopping)?;
            answer.await.unwrap_or(Err(Busy::Stopping))
        };
        // What is written after all is known if it comes again.
        unless(written, || self.journal_fault().map(Busy::Unwritable)).await
    }

    /// Stores a report of an observer; says how many of its observations are new. They are on disk when this returns.
    ///
    /// # Errors
    /// Why it is not stored.
    pub async fn put(&self, observations: Vec<Observation>) -> Result<u64, NotPut> {
        let puts = self.puts.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|(puts, _)| Arc::clone(puts));
        let puts = puts.ok_or_else(|| NotPut::Unwritable(stops()))?;
        let fault = || self.reports_fault().map(NotPut::Unwritable);
        if let Some(fault) = fault() {
            return Err(fault);
        }
        unless(puts.put(observations), fault).await
    }

    /// Deletes all performance data, that of traces which are open among it.
    ///
    /// # Errors
    /// Why it could not be deleted.
    pub async fn initialise(&self) -> Result<(), String> {
        if let Some(fault) = self.worker_fault() {
            return Err(fault);
        }
        let (done, answer) = oneshot::channel();
        self.shared.initialise.lock().unwrap_or_else(PoisonError::into_inner).push(done);
        self.shared.wake();
        let answer = timeout(PATIENCE, answer).await;
        self.lately.forget();
        answer.map_err(|_| "the worker does not answer".to_owned())?.unwrap_or_else(|_| Err(stops()))
    }

    /// Metrics were fetched, or were to be; whether that went otherwise than before.
    pub fn scraped(&self, url: &str, outcome: Outcome) -> bool {
        self.shared.status().scrapes.entry(url.to_owned()).or_default().note(outcome)
    }

    /// How it is.
    pub fn status(&self) -> Status {
        self.shared.status().clone()
    }

    /// What became of requests that bring something.
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    /// How many bytes of the journal wait to be read.
    pub fn backlog(&self) -> u64 {
        self.shared.synced.load(Ordering::Acquire).saturating_sub(self.shared.read.load(Ordering::Acquire))
    }

    /// What does not work, where anything does not.
    pub fn fault(&self) -> Option<String> {
        let unwritable = || self.shared.status().unwritable.clone();
        self.worker_fault().or_else(|| self.journal_fault()).or_else(unwritable).or_else(|| self.reports_fault())
    }

    fn worker_fault(&self) -> Option<String> {
        let told = self.shared.status().fault.clone();
        told.or_else(|| silent(&self.shared.working, "the worker"))
    }

    fn journal_fault(&self) -> Option<String> {
        silent(&self.shared.writing, "what writes the journal")
    }

    fn reports_fault(&self) -> Option<String> {
        silent(&self.shared.storing, "what stores reports")
    }

    /// Asks the program that runs this to stop, and whether all files are to be removed then.
    pub fn ask_to_stop(&self, remove: bool) {
        self.shared.asked.send_modify(|asked| *asked = Asked { stop: true, remove: asked.remove || remove });
    }

    /// Whether it was asked to stop.
    pub fn is_asked_to_stop(&self) -> bool {
        self.shared.asked.borrow().stop
    }

    /// Waits until it is asked to stop.
    pub async fn until_asked_to_stop(&self) {
        // The sender lives as long as this.
        let _ = self.shared.asked.subscribe().wait_for(|asked| asked.stop).await;
    }

    /// Removes the store and all supporting files, if that was asked for. It must have stopped.
    ///
    /// # Errors
    /// When a file or a table cannot be removed.
    pub fn remove_if_asked(&self) -> Result<(), WorkerError> {
        if !self.shared.asked.borrow().remove {
            return Ok(());
        }
        Store::open_at(&self.location)?.remove_tables()?;
        for suffix in ["", "-wal", "-shm", ".lock"] {
            match std::fs::remove_file(beside(&self.files, suffix)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        match std::fs::remove_dir_all(journal_of(&self.files)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// How many spans were open when it stopped the last time that are not in the journal any more. They count as set aside.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Takes in what the configuration says of nodes; the first time counts.
    pub fn configure(&self, system: System) {
        let _ = self.system.set(system);
    }

    /// What the configuration says of nodes.
    pub fn system(&self) -> &System {
        self.system.get_or_init(System::default)
    }

    /// What was made for the page.
    pub(crate) fn lately(&self) -> &Lately {
        &self.lately
    }

    /// What questions about periods were told.
    pub(crate) fn told(&self) -> &Arc<Told> {
        &self.told
    }

    /// Waits for a turn to ask the store; `None` where too many wait.
    pub(crate) async fn turn_to_ask(&self) -> Option<OwnedSemaphorePermit> {
        let _place = self.waiting.try_acquire().ok()?;
        Arc::clone(&self.questions).acquire_owned().await.ok()
    }

    /// Opens the store to read from it.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn store(&self) -> Result<Store, StoreError> {
        Ok(Store::read_at(&self.location)?.remembering(Arc::clone(&self.sums)))
    }

    /// Stops: what was acknowledged is read and in the store when this returns, and open traces stay open in the journal.
    pub fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.wake();
        let puts = self.puts.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((puts, storing)) = puts {
            // It ends when nothing more can come.
            drop(puts);
            let _ = storing.join();
        }
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((worker, journal)) = threads {
            // Panics were reported when they happened.
            let _ = worker.join();
            let _ = self.commands.blocking_send(Command::Stop);
            let _ = journal.join();
        }
    }
}

/// That a thread is silent, where it is.
fn silent(pulse: &Pulse, who: &str) -> Option<String> {
    pulse.is_silent().then(|| format!("{who} does not answer"))
}

/// Waits for an answer unless who gives it is at fault.
async fn unless<T, E>(answer: impl Future<Output = Result<T, E>>, fault: impl Fn() -> Option<E>) -> Result<T, E> {
    let mut answer = pin!(answer);
    loop {
        if let Ok(answer) = timeout(pulse::BEAT, &mut answer).await {
            return answer;
        }
        if let Some(fault) = fault() {
            return Err(fault);
        }
    }
}

fn stops() -> String {
    "the server stops".to_owned()
}

/// The folder of the journal of a store whose files here begin with a path.
pub fn journal_of(files: &Path) -> PathBuf {
    beside(files, ".journal")
}

/// A file beside the store.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn lock(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(beside(path, ".lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(io::Error::other("another server uses this store")),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use axum::http::StatusCode;
    use tokio::time::timeout;

    use super::{Service, Working};
    use crate::services::messages::Report;
    use crate::services::put;
    use crate::web::Failed;

    #[test]
    fn reports_that_are_not_stored_are_told_and_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let service = Service::start(&folder.path().join("store.db"), Working::default()).expect("it starts");
        // The worker has looked for what it may merge: it does not ask for a turn now.
        thread::sleep(Duration::from_secs(2));
        let turn = Arc::clone(&service.shared.turn);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        turn.take(|| {
            runtime.block_on(async {
                let report = || Report { document: "{\"dyelog-observations\":1,\"observations\":[]}".to_owned() };
                for patience in [5, 1] {
                    let outcome = timeout(Duration::from_secs(patience), put(Arc::clone(&service), report())).await;
                    let Ok(Err(Failed(status, why))) = outcome else { panic!("it is refused in time") };
                    assert_eq!(
                        (status, &*why),
                        (StatusCode::SERVICE_UNAVAILABLE, "what stores reports does not answer")
                    );
                    assert_eq!(service.fault(), Some(why));
                }
            });
        });
        runtime.block_on(async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            assert_eq!(service.fault(), None);
        });
        service.stop();
    }
}
