//! What an observer reports: a process, an interval, and sums of what happened in it (1996 paper, §3 and §4.1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dyelog_lqn::sketch::Sketch;
use dyelog_lqn::submodel::Moments;
use serde::{Deserialize, Serialize};

/// Nanoseconds in a second.
pub const NANO: f64 = 1e9;

/// A process of a distributed application.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    /// The application that it is a part of.
    pub application: Arc<str>,
    /// Its node: a name or an address.
    pub host: Arc<str>,
    /// The program that it runs.
    pub program: Arc<str>,
    /// Its number at its node.
    pub id: u64,
    /// When it started, nanoseconds since 1970: numbers are given again.
    pub started: i64,
}

/// An operation of an interface. Of a client's virtual interface the name is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation {
    /// The interface.
    pub interface: Arc<str>,
    /// The operation.
    pub name: Arc<str>,
}

impl Operation {
    /// Of these names.
    pub fn new(interface: &str, name: &str) -> Self {
        Self { interface: interface.into(), name: name.into() }
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.interface.is_empty() { f.write_str(&self.name) } else { write!(f, "{}.{}", self.interface, self.name) }
    }
}

/// How an exported operation is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Service {
    /// A client's cycle, from one think time to the next: its virtual interface.
    Cycle,
    /// The caller waits for the reply.
    #[serde(rename = "sync")]
    Synchronous,
    /// The caller does not wait.
    #[serde(rename = "async")]
    Asynchronous,
    /// The request is passed on; the caller waits for the last one's reply. Its asynchronous requests are those that pass it on.
    Forwarding,
}

/// How an imported operation is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Request {
    /// The caller waits for the reply.
    #[serde(rename = "sync")]
    Synchronous,
    /// The caller does not wait.
    #[serde(rename = "async")]
    Asynchronous,
    /// The caller goes on, and waits for the reply later.
    Deferred,
}

/// An input operation: one that a process exports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Input {
    /// The operation.
    pub operation: Operation,
    /// How it is served.
    pub service: Service,
}

/// An output operation: one that a process imports, as called by one of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Output {
    /// The exported operation that calls, or the client's cycle; `None` outside of all.
    pub within: Option<Operation>,
    /// The operation that is called.
    pub operation: Operation,
    /// How.
    pub request: Request,
    /// Where: the protocol sequence of the connection, such as `tcp:10.0.0.2:4000`; empty where it is not known.
    pub protocol: Arc<str>,
}

/// Response times of an operation: how many, their sums, and how they are spread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Count, sum and squares, seconds.
    pub moments: Moments,
    /// The histogram; empty where the observer keeps none.
    pub spread: Sketch,
}

impl Times {
    /// Takes in a time, seconds.
    pub fn add(&mut self, seconds: f64) {
        self.moments.add(seconds);
        self.spread.add(seconds);
    }

    /// Takes in all times of the other.
    pub fn merge(&mut self, other: &Self) {
        self.moments.merge(&other.moments);
        self.spread.merge(&other.spread);
    }

    /// Their sum, seconds.
    pub fn seconds(&self) -> f64 {
        self.moments.sum.as_f64()
    }
}

/// What a process used of physical resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Processor time, nanoseconds.
    pub cpu: u64,
    /// Read operations.
    pub reads: u64,
    /// Write operations.
    pub writes: u64,
    /// Bytes read from devices.
    pub read_bytes: u64,
    /// Bytes written to devices.
    pub written_bytes: u64,
    /// Bytes received from the network.
    pub received_bytes: u64,
    /// Bytes sent to the network.
    pub sent_bytes: u64,
}

impl Resources {
    fn merge(&mut self, other: &Self) {
        let sums = [
            (&mut self.cpu, other.cpu),
            (&mut self.reads, other.reads),
            (&mut self.writes, other.writes),
            (&mut self.read_bytes, other.read_bytes),
            (&mut self.written_bytes, other.written_bytes),
            (&mut self.received_bytes, other.received_bytes),
            (&mut self.sent_bytes, other.sent_bytes),
        ];
        for (sum, more) in sums {
            *sum = sum.saturating_add(more);
        }
    }

    /// Operations of disks.
    pub fn disk_operations(&self) -> u64 {
        self.reads.saturating_add(self.writes)
    }
}

/// How many threads of a process serve or call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// As the program says.
    pub configured: Option<u32>,
    /// Most exported operations that were under way together.
    pub most: u32,
}

/// What one process did in an interval, or in several that were merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The process.
    pub process: Process,
    /// Whether the process observes itself; else another one looked at it from outside (a proxy observer, §5.3), and it has no operations.
    pub managed: bool,
    /// Begin of the interval, nanoseconds since 1970.
    pub from: i64,
    /// Its end.
    pub to: i64,
    /// Nanoseconds that were observed; less than from begin to end where intervals are merged that lie apart.
    pub covered: u64,
    /// How many intervals were merged.
    pub intervals: u64,
    /// Threads.
    pub threads: Threads,
    /// What it used.
    pub resources: Resources,
    /// Where its interfaces are: their protocol sequences.
    pub interfaces: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Operations that it served.
    pub inputs: BTreeMap<Input, Times>,
    /// Operations that it called.
    pub outputs: BTreeMap<Output, Times>,
    /// Operations that the observer could not count, since it keeps no more of them.
    pub lost: u64,
}

impl Observation {
    /// Of an interval in which nothing happened, nanoseconds since 1970.
    pub fn empty(process: Process, from: i64, to: i64) -> Self {
        Self {
            process,
            managed: true,
            from,
            to,
            covered: u64::try_from(to.saturating_sub(from)).unwrap_or(0),
            intervals: 1,
            threads: Threads::default(),
            resources: Resources::default(),
            interfaces: BTreeMap::new(),
            inputs: BTreeMap::new(),
            outputs: BTreeMap::new(),
            lost: 0,
        }
    }

    /// Takes in another observation of the same process. Associative and commutative.
    pub fn merge(&mut self, other: &Self) {
        self.managed |= other.managed;
        self.from = self.from.min(other.from);
        self.to = self.to.max(other.to);
        self.covered = self.covered.saturating_add(other.covered);
        self.intervals = self.intervals.saturating_add(other.intervals);
        self.threads.configured = self.threads.configured.max(other.threads.configured);
        self.threads.most = self.threads.most.max(other.threads.most);
        self.resources.merge(&other.resources);
        for (interface, protocols) in &other.interfaces {
            self.interfaces.entry(Arc::clone(interface)).or_default().extend(protocols.iter().cloned());
        }
        for (input, times) in &other.inputs {
            self.inputs.entry(input.clone()).or_default().merge(times);
        }
        for (output, times) in &other.outputs {
            self.outputs.entry(output.clone()).or_default().merge(times);
        }
        self.lost = self.lost.saturating_add(other.lost);
    }

    /// How long was observed, seconds.
    pub fn seconds(&self) -> f64 {
        self.covered as f64 / NANO
    }

    /// Whether the process serves nobody.
    pub fn is_client(&self) -> bool {
        self.managed && self.inputs.keys().all(|input| input.service == Service::Cycle)
    }

    /// What was observed of an exported operation, however it is served.
    pub fn served<'o>(&'o self, operation: &Operation) -> impl Iterator<Item = &'o Times> {
        let as_served = |service| Input { operation: operation.clone(), service };
        self.inputs.range(as_served(Service::Cycle)..=as_served(Service::Forwarding)).map(|(_, times)| times)
    }

    /// The time that an exported operation was busy by itself: without that in which it waited for those that it called, seconds.
    pub fn own_seconds(&self, operation: &Operation) -> f64 {
        let busy: f64 = self.served(operation).map(Times::seconds).sum();
        let first = Output {
            within: Some(operation.clone()),
            operation: Operation::new("", ""),
            request: Request::Synchronous,
            protocol: "".into(),
        };
        let within = self.outputs.range(first..).take_while(|(output, _)| output.within.as_ref() == Some(operation));
        let waited = within.filter(|(output, _)| output.request == Request::Synchronous);
        (busy - waited.map(|(_, times)| times.seconds()).sum::<f64>()).max(0.0)
    }

    /// How often an exported operation ended.
    pub fn completions(&self, operation: &Operation) -> u64 {
        self.served(operation).fold(0, |sum, times| sum.saturating_add(times.moments.count))
    }
}
