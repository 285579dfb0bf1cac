//! Observers: what the operations of a process's interfaces do and what the process uses, interval by interval, for a performance data server.
//!
//! Where the [`Recorder`](crate::Recorder) writes each call, an observer keeps sums: how often each operation was served or called, and for how long.
//! Its thread sleeps, measures and reports. `dyelog` makes the performance model of any period of that.
//!
//! ```
//! use std::time::Duration;
//!
//! use dyelog_probe::observer::{Input, Observer, Output, Request, Service, Transport, TransportError};
//!
//! static LOOKUP: Input = Input::new("Catalogue", "lookup", Service::Synchronous);
//! static PRICE: Output = Output::new("Prices", "price", Request::Synchronous);
//!
//! struct Print;
//! impl Transport for Print {
//!     fn put(&mut self, report: &str) -> Result<(), TransportError> {
//!         assert!(report.contains("lookup"));
//!         Ok(())
//!     }
//! }
//!
//! let observer = Observer::of("shop", "catalogue")
//!     .interval(Duration::from_secs(10))
//!     .threads(8)
//!     .exports("Catalogue", "tcp:10.0.0.2:4000")
//!     .start(Print)?;
//! {
//!     let _lookup = LOOKUP.start();       // until the end of the block: an input operation
//!     let _price = PRICE.start();         // an output operation within it
//! }
//! let summary = observer.finish();
//! assert!(summary.is_clean(), "{summary:?}");
//! # Ok::<(), dyelog_probe::StartError>(())
//! ```
//!
//! The macros of the paper are these guards: `S_IN_OP` is [`Input::start`] and `E_IN_OP` its drop, `S_OUT_OP` [`Output::start`] and `E_OUT_OP` its drop.
//! A client's cycle, from one think time to the next, is [`Input::cycle`]. Tasks that change threads have [`Input::begin`].
//!
//! Nothing of it stops the program: memory is bounded, a server that does not answer is tried again by the observer's thread alone, and what could not be
//! kept or sent is counted in the [`Summary`].
//!
//! The source is M. Qin and others, *Automatic Generation of Performance Models for Distributed Application Systems* (1996), §3.

mod json;
mod operation;
#[cfg(unix)]
mod proxy;
mod report;
mod resources;
mod table;
mod transport;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::observer::report::Reporter;
use crate::observer::table::Shared;
use crate::start::StartError;

pub use operation::{Input, Inside, Output, Outside, Request, Service, Task, Waiting};
pub use resources::{count_disk, count_network};
pub use transport::{HttpPost, JsonLines, Transport, TransportError};

/// The observed process.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) application: String,
    pub(crate) program: String,
    pub(crate) host: String,
    pub(crate) id: u32,
    pub(crate) started: i64,
    pub(crate) threads: Option<u32>,
    pub(crate) interfaces: BTreeMap<String, BTreeSet<String>>,
    pub(crate) disk_operation: u64,
    pub(crate) proxies: bool,
}

/// How an observer is set up; see [`Observer::of`].
#[derive(Clone, Debug)]
pub struct Setup {
    identity: Identity,
    interval: Duration,
    patience: Duration,
}

impl Setup {
    /// The node, as reports name it: the host name, if nothing is said. A server's configuration file names nodes alike.
    #[must_use]
    pub fn host(mut self, name: impl Into<String>) -> Self {
        self.identity.host = name.into();
        self
    }

    /// How often it reports: every 10 s, if nothing is said; 10 ms at least.
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval.max(Duration::from_millis(10));
        self
    }

    /// How many threads serve; of a client, how many customers the process stands for.
    #[must_use]
    pub fn threads(mut self, threads: u32) -> Self {
        self.identity.threads = Some(threads).filter(|threads| *threads > 0);
        self
    }

    /// That an interface is exported at a protocol sequence, such as `tcp:10.0.0.2:4000`. Callers use the same name for it.
    #[must_use]
    pub fn exports(mut self, interface: impl Into<String>, protocol: impl Into<String>) -> Self {
        self.identity.interfaces.entry(interface.into()).or_default().insert(protocol.into());
        self
    }

    /// How many bytes a device moves in one operation, since systems count bytes: 4 KiB, if nothing is said.
    #[must_use]
    pub fn disk_operation(mut self, bytes: u64) -> Self {
        self.identity.disk_operation = bytes.max(1);
        self
    }

    /// That this observer reports what other processes of its host used, too, for those that have no observer. One observer of a host should.
    #[must_use]
    pub fn proxies(mut self) -> Self {
        self.identity.proxies = true;
        self
    }

    /// For how long [`Observer::finish`] waits until all is sent: 5 s, if nothing is said.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Begins to observe. From now on guards count.
    ///
    /// # Errors
    /// When an observer of this process runs already, or the system refuses a thread.
    pub fn start(self, transport: impl Transport + 'static) -> Result<Observer, StartError> {
        let Self { mut identity, interval, patience } = self;
        let shared = Shared::turn_on().ok_or(StartError::Running)?;
        identity.started = resources::now();
        let mut reporter = Reporter::new(Arc::clone(&shared), identity, Box::new(transport), interval, patience);
        let thread = std::thread::Builder::new().name("dyelog-observer".to_owned()).spawn(move || reporter.run());
        match thread {
            Ok(thread) => Ok(Observer { shared, thread: Some(thread) }),
            Err(error) => {
                shared.turn_off();
                Err(StartError::Thread(error.to_string()))
            }
        }
    }
}

/// What an observer did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Reports that were taken.
    pub sent: u64,
    /// Reports that could not be sent in time, and were given up.
    pub dropped: u64,
    /// Reports that were refused for good.
    pub refused: u64,
    /// Executions of operations that were not counted, since there are too many different ones.
    pub lost: u64,
    /// What the transport said last, where it did not take a report.
    pub error: Option<String>,
}

impl Summary {
    /// Whether all that was observed was sent.
    pub fn is_clean(&self) -> bool {
        self.dropped == 0 && self.refused == 0 && self.lost == 0
    }
}

/// A running observer.
#[derive(Debug)]
pub struct Observer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Summary>>,
}

impl Observer {
    /// Sets up an observer of a process that runs that program as a part of that application: `observer_init()` of the paper.
    pub fn of(application: impl Into<String>, program: impl Into<String>) -> Setup {
        let identity = Identity {
            application: application.into(),
            program: program.into(),
            host: crate::recorder::host(),
            id: std::process::id(),
            started: 0,
            threads: None,
            interfaces: BTreeMap::new(),
            disk_operation: 4096,
            proxies: false,
        };
        Setup { identity, interval: Duration::from_secs(10), patience: Duration::from_secs(5) }
    }

    /// Reports what was not reported yet and ends.
    pub fn finish(mut self) -> Summary {
        self.stop()
    }

    fn stop(&mut self) -> Summary {
        let Some(thread) = self.thread.take() else { return Summary::default() };
        self.shared.stop.store(true, Ordering::Release);
        thread.thread().unpark();
        let summary = thread.join().unwrap_or_else(|_| Summary {
            error: Some("the thread that reports panicked".to_owned()),
            dropped: 1,
            ..Summary::default()
        });
        self.shared.turn_off();
        summary
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.stop();
    }
}
