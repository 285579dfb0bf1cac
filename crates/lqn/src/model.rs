//! A complete layered queueing network.
//!
//! Elements live in dense vectors and name each other by newtype indices. All times are in seconds (or in whatever unit a
//! model file uses throughout: the language has none of its own), all rates per second.

use std::sync::Arc;

use crate::calibration::Calibration;
use crate::results::Caller;
use crate::scheduling;

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in the model's vector.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<usize> for $name {
            fn from(index: usize) -> Self {
                Self(u32::try_from(index).expect("a model has fewer than 2^32 elements of a kind"))
            }
        }
    };
}

index! {
    /// Index of a processor in [`Model::processors`].
    ProcessorId
}
index! {
    /// Index of a processor share group in [`Model::groups`].
    GroupId
}
index! {
    /// Index of a task in [`Model::tasks`].
    TaskId
}
index! {
    /// Index of an entry in [`Model::entries`].
    EntryId
}
index! {
    /// Index of an activity in [`Model::activities`].
    ActivityId
}

/// A layered queueing network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// Free text on the model's first line.
    pub comment: String,
    /// What the file asks of the solver.
    pub parameters: Parameters,
    /// Processors.
    pub processors: Vec<Processor>,
    /// Share groups of completely-fair processors.
    pub groups: Vec<Group>,
    /// Tasks.
    pub tasks: Vec<Task>,
    /// Entries of all tasks.
    pub entries: Vec<Entry>,
    /// Activities of all tasks.
    pub activities: Vec<Activity>,
    /// What else fits what was measured, where the model was calibrated. The JSON form has it.
    pub calibration: Option<Calibration>,
}

/// What a model file asks of the solver.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// Convergence bound.
    pub convergence: f64,
    /// Iteration limit.
    pub iteration_limit: u32,
    /// Print interval.
    pub print_interval: Option<u32>,
    /// Under-relaxation coefficient.
    pub underrelaxation: Option<f64>,
    /// Further wishes by name and value, kept and passed on.
    pub pragmas: Vec<(String, String)>,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            convergence: 1e-5,
            iteration_limit: 50,
            print_interval: None,
            underrelaxation: None,
            pragmas: Vec::new(),
        }
    }
}

/// How many servers a processor or task has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Multiplicity {
    /// A fixed number, at least one.
    Finite(u32),
    /// As many as are needed: a delay.
    Infinite,
}

impl Multiplicity {
    /// The number of servers, at least one.
    pub fn servers(self) -> f64 {
        match self {
            Self::Finite(count) => f64::from(count.max(1)),
            Self::Infinite => f64::INFINITY,
        }
    }
}

/// The order in which a processor or a task serves what waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheduling {
    /// First come, first served (`f`; for tasks also `n`).
    Fcfs,
    /// Head of line: priorities without pre-emption (`h`).
    HeadOfLine,
    /// Pre-emptive resume priorities (`p`).
    PreemptivePriority,
    /// Infinite server, no queueing (`i`).
    Delay,
    /// In random order (`r` of a processor).
    Random,
    /// Processor sharing with a quantum in seconds, where given (`s`).
    ProcessorSharing,
    /// Completely fair share of groups (`c`).
    CompletelyFair,
    /// Reference task: a closed source of load (`r` of a task).
    Reference,
    /// A task whose source of load sends in bursts (`b`).
    Burst,
    /// Polling (`P` of a task).
    Polling,
    /// A semaphore task (`S`).
    Semaphore,
    /// A readers-writer lock task (`W`).
    ReadWriteLock,
}

impl Scheduling {
    /// Whether a task with it makes its own load: it is a closed source.
    pub fn is_source(self) -> bool {
        matches!(self, Self::Reference | Self::Burst)
    }

    /// Whether a task with it is a semaphore or a lock.
    pub fn is_lock(self) -> bool {
        matches!(self, Self::Semaphore | Self::ReadWriteLock)
    }
}

/// How requests come to the copies of a task (policies of task assignment: Harchol-Balter, Performance Modeling and Design of Computer Systems, 2013, §24.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dispatching {
    /// Each caller calls the copies that its fan-out gives it, whatever other callers do.
    #[default]
    FanOut,
    /// Requests go to the copies in turn, whichever task calls.
    RoundRobin,
    /// Each request goes to the copy with the fewest requests, as a dispatcher of least connections does (join the shortest queue).
    ShortestQueue,
    /// Each request goes to the one with fewer requests of two copies that are drawn (the power of two choices: Mitzenmacher, IEEE Trans. Parallel Distrib. Syst. 12(10), 2001).
    ShortestOfTwo,
}

impl Dispatching {
    /// The words of the JSON form and of configurations.
    pub const WORDS: [(&str, Self); 4] = [
        ("fan-out", Self::FanOut),
        ("round-robin", Self::RoundRobin),
        ("shortest-queue", Self::ShortestQueue),
        ("shortest-of-two", Self::ShortestOfTwo),
    ];

    /// Its word in the JSON form and in configurations.
    pub fn word(self) -> &'static str {
        scheduling::word(&Self::WORDS, self).unwrap_or_default()
    }

    /// Its word in texts for people; none where callers spread their own requests.
    pub fn told(self) -> Option<&'static str> {
        match self {
            Self::FanOut => None,
            Self::RoundRobin => Some("round robin"),
            Self::ShortestQueue => Some("shortest queue"),
            Self::ShortestOfTwo => Some("shortest of two queues"),
        }
    }
}

/// A processor.
#[derive(Clone, Debug, PartialEq)]
pub struct Processor {
    /// Its name, unique among processors.
    pub name: Arc<str>,
    /// The order of service.
    pub scheduling: Scheduling,
    /// Quantum of processor sharing, seconds.
    pub quantum: Option<f64>,
    /// Number of servers.
    pub multiplicity: Multiplicity,
    /// Number of copies with their own queue.
    pub replicas: u32,
    /// Work done per second, relative to the processor on which demands were measured.
    pub speed: f64,
}

/// The period over which caps of groups hold, seconds: that of CFS bandwidth control, as Linux and container runtimes have it by default.
pub const CAP_PERIOD: f64 = 0.1;

/// A share group of a completely-fair processor.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name.
    pub name: Arc<str>,
    /// The processor.
    pub processor: ProcessorId,
    /// The share, between 0 and 1.
    pub share: f64,
    /// Whether the share may not be exceeded: once the group has used it up in a period of [`CAP_PERIOD`], it stands still until the next one.
    pub cap: bool,
}

impl Group {
    /// How many servers of each copy of its processor the group may use on the mean, where it has a cap that matters.
    pub fn servers(&self, processor: &Processor) -> Option<f64> {
        let servers = processor.multiplicity.servers();
        let is_capped =
            self.cap && self.share < 1.0 && processor.scheduling == Scheduling::CompletelyFair && servers.is_finite();
        is_capped.then_some(self.share * servers)
    }
}

/// A task: software with a queue, threads and entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its name, unique among tasks.
    pub name: Arc<str>,
    /// The processor it runs on.
    pub processor: ProcessorId,
    /// The share group, on completely-fair processors.
    pub group: Option<GroupId>,
    /// The order of service; [`Scheduling::Reference`] makes it a closed source of load.
    pub scheduling: Scheduling,
    /// Number of threads; of a reference task the population.
    pub multiplicity: Multiplicity,
    /// Number of copies with their own queue.
    pub replicas: u32,
    /// How requests come to the copies. The JSON form has it.
    pub dispatching: Dispatching,
    /// Priority at its processor; higher goes first.
    pub priority: i32,
    /// Think time of a reference task between cycles, seconds.
    pub think_time: f64,
    /// Length of the queue, where bounded.
    pub queue_length: Option<u32>,
    /// Replicated callers: from which task, how many.
    pub fan_in: Vec<(TaskId, u32)>,
    /// Replicated servers: to which task, how many.
    pub fan_out: Vec<(TaskId, u32)>,
    /// Its entries, in order.
    pub entries: Vec<EntryId>,
    /// Its activities, in order.
    pub activities: Vec<ActivityId>,
    /// How its activities follow each other.
    pub precedences: Vec<Precedence>,
}

/// A service that a task gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name, unique among entries.
    pub name: Arc<str>,
    /// The task it belongs to.
    pub task: TaskId,
    /// Priority of requests to it at their task's queue.
    pub priority: Option<i32>,
    /// Open arrivals, per second.
    pub open_arrival_rate: Option<f64>,
    /// Its part in a semaphore or readers-writer lock, where its task is one.
    pub semaphore: Option<SemaphoreRole>,
    /// What one invocation does.
    pub body: Body,
    /// Where requests are forwarded to instead of being answered, with probabilities that add up to at most 1.
    pub forwarding: Vec<Forwarding>,
    /// Distributions of service times that are asked for, each with its phase, from 1.
    pub histograms: Vec<(u8, Histogram)>,
}

/// A wish for the distribution of a service time. It is kept, and results have none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Histogram {
    /// Where the first bin begins, seconds.
    pub from: f64,
    /// Where the last bin ends, seconds.
    pub to: f64,
    /// How many bins; 0 where only the part that takes longer than `to` is asked for, and `from` is 0.
    pub bins: u32,
}

impl Histogram {
    /// Asks for the part of service times that are longer, unless the limit is 0.
    pub(super) fn beyond(limit: f64) -> Option<Self> {
        (limit != 0.0).then_some(Self { from: 0.0, to: limit, bins: 0 })
    }
}

/// What an entry of a semaphore or readers-writer lock task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SemaphoreRole {
    /// Releases the semaphore.
    Signal,
    /// Acquires the semaphore.
    Wait,
    /// Acquires a lock together with other readers.
    ReadLock,
    /// Releases a reader's lock.
    ReadUnlock,
    /// Acquires the lock alone.
    WriteLock,
    /// Releases the writer's lock.
    WriteUnlock,
}

/// What one invocation of an entry does.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// Up to three phases; the reply goes out after the first.
    Phases(Vec<Work>),
    /// A graph of activities that starts here; the reply goes out where an activity says so.
    Activities(ActivityId),
}

/// A request that is passed on.
#[derive(Clone, Debug, PartialEq)]
pub struct Forwarding {
    /// The entry it goes to.
    pub to: EntryId,
    /// The probability.
    pub probability: f64,
}

/// Work of a phase or an activity: demand for the processor, cut into slices by the calls made.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// Mean demand, seconds at speed 1.
    pub demand: f64,
    /// Squared coefficient of variation of a slice of the demand; `None` where not given, which means 1.
    pub cv2: Option<f64>,
    /// A pure delay, seconds.
    pub think_time: f64,
    /// Squared coefficient of variation of the delay; `None` where not given, which means 1. Of the languages of models JSON alone has it.
    pub think_cv2: Option<f64>,
    /// Whether the number of calls is geometric with the given mean or exact.
    pub call_order: CallOrder,
    /// The calls made, on average.
    pub calls: Vec<Call>,
}

impl Default for Work {
    fn default() -> Self {
        Self {
            demand: 0.0,
            cv2: None,
            think_time: 0.0,
            think_cv2: None,
            call_order: CallOrder::Stochastic,
            calls: Vec::new(),
        }
    }
}

impl Work {
    /// Makes it longer by an exponential delay of that mean, seconds; what varies less or more than that keeps its variance.
    pub fn delay(&mut self, mean: f64) {
        let sum = self.think_time + mean;
        let of_both = |cv2: f64| (cv2 * self.think_time * self.think_time + mean * mean) / (sum * sum);
        self.think_cv2 = self.think_cv2.filter(|_| sum > 0.0).map(of_both);
        self.think_time = sum;
    }
}

/// How the number of calls varies from invocation to invocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CallOrder {
    /// Geometric with the given mean.
    #[default]
    Stochastic,
    /// Exactly the given number.
    Deterministic,
    /// The whole part of the given number, and one more with the probability that is left (a Bernoulli trial). The number is that of all
    /// replicas of the target together, of which chance decides which gets one. The text and XML languages of LQNs have no word for it, and have
    /// stochastic calls there.
    Bernoulli,
}

/// Numbers that are so near to a whole one are whole.
const ROUNDING: f64 = 1e-9;

impl CallOrder {
    /// The variance of the number of all calls of some work, of the mean numbers of each. Numbers that are deterministic and not whole are drawn as by a Bernoulli
    /// trial: no program makes half a call.
    pub fn variance(self, means: impl Iterator<Item = f64>) -> f64 {
        if self == Self::Stochastic {
            let all: f64 = means.sum();
            return all * (1.0 + all);
        }
        let chance = |mean: f64| if (mean - mean.round()).abs() < ROUNDING { 0.0 } else { mean.fract() };
        means.map(chance).map(|part| part * (1.0 - part)).sum()
    }
}

/// A call to an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The entry called.
    pub to: EntryId,
    /// Whether the caller waits for a reply.
    pub kind: CallKind,
    /// Mean number per invocation.
    pub mean: f64,
}

/// Whether a caller waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallKind {
    /// Rendezvous: the caller waits for the reply.
    Synchronous,
    /// Send no reply.
    Asynchronous,
}

/// A node of an activity graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Activity {
    /// Its name, unique in its task.
    pub name: Arc<str>,
    /// The task it belongs to.
    pub task: TaskId,
    /// What it does.
    pub work: Work,
    /// Entries whose requests are answered when it ends.
    pub replies: Vec<EntryId>,
    /// Distributions of its service time that are asked for.
    pub histograms: Vec<Histogram>,
}

impl Activity {
    /// An activity that does nothing.
    pub fn new(name: &str, task: TaskId) -> Self {
        Self { name: name.into(), task, work: Work::default(), replies: Vec::new(), histograms: Vec::new() }
    }
}

/// One arc of an activity graph: when the activities on the left are done, those on the right follow.
#[derive(Clone, Debug, PartialEq)]
pub struct Precedence {
    /// What has to end.
    pub join: Join,
    /// What follows; `None` where the graph ends here.
    pub fork: Option<Fork>,
}

/// The left side of a precedence.
#[derive(Clone, Debug, PartialEq)]
pub enum Join {
    /// One activity.
    Sequence(ActivityId),
    /// All of them, or as many as the quorum says.
    And {
        /// The activities.
        activities: Vec<ActivityId>,
        /// How many must end; `None` for all.
        quorum: Option<u32>,
    },
    /// Whichever of them was taken.
    Or(Vec<ActivityId>),
}

/// The right side of a precedence.
#[derive(Clone, Debug, PartialEq)]
pub enum Fork {
    /// One activity.
    Sequence(ActivityId),
    /// All of them, in parallel.
    And(Vec<ActivityId>),
    /// One of them, by probability.
    Or(Vec<(f64, ActivityId)>),
    /// Each body its mean number of times, then the end.
    Loop {
        /// Mean number of times, first activity of the body.
        bodies: Vec<(f64, ActivityId)>,
        /// What follows the loop.
        end: Option<ActivityId>,
    },
}

impl AsRef<Model> for Model {
    fn as_ref(&self) -> &Model {
        self
    }
}

/// A request that an element makes of an entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// The caller.
    pub from: Caller,
    /// The entry.
    pub to: EntryId,
    /// How; `None` for one that is passed on.
    pub kind: Option<CallKind>,
    /// How many on the mean, for each execution of the caller; of one that is passed on, the probability.
    pub mean: f64,
}

impl Processor {
    /// How many copies there are: one where the model says none.
    pub fn copies(&self) -> u32 {
        self.replicas.max(1)
    }

    /// The servers of all copies.
    pub fn all_servers(&self) -> f64 {
        self.multiplicity.servers() * f64::from(self.copies())
    }
}

impl Task {
    /// How requests come to its copies. A lock is given back where it was taken, and one copy needs no dispatcher.
    pub fn dispatched(&self) -> Dispatching {
        if self.replicas > 1 && !self.scheduling.is_lock() { self.dispatching } else { Dispatching::FanOut }
    }

    /// How many copies there are: one where the model says none.
    pub fn copies(&self) -> u32 {
        self.replicas.max(1)
    }

    /// The threads, or customers, of all copies.
    pub fn all_threads(&self) -> f64 {
        self.multiplicity.servers() * f64::from(self.copies())
    }
}

impl Model {
    /// How many servers of each copy of a processor its tasks may use on the mean, where all of them are in one group with a cap.
    pub fn cap(&self, processor: ProcessorId) -> Option<f64> {
        let mut tasks = self.tasks.iter().filter(|task| task.processor == processor);
        let group = tasks.next()?.group?;
        let is_one = tasks.all(|task| task.group == Some(group));
        self.groups.get(group.index())?.servers(self.processors.get(processor.index())?).filter(|_| is_one)
    }

    /// Lets the tasks of a processor use so many servers of each copy on the mean, or all that there are.
    ///
    /// # Errors
    /// Words on why they cannot.
    pub fn set_cap(&mut self, processor: ProcessorId, servers: Option<f64>) -> Result<(), String> {
        let own = &mut self.processors[processor.index()];
        let all = own.multiplicity.servers();
        let share = servers.map_or(1.0, |servers| servers / all);
        let is_capped = share < 1.0 && all.is_finite();
        match own.scheduling {
            Scheduling::ProcessorSharing if is_capped => own.scheduling = Scheduling::CompletelyFair,
            Scheduling::CompletelyFair => {}
            _ if !is_capped => return Ok(()),
            _ => return Err("a quota needs a processor whose order of service is sharing".to_owned()),
        }
        if share.is_nan() || share <= 0.0 {
            return Err("a quota is greater than 0".to_owned());
        }
        let groups: Vec<Option<GroupId>> =
            self.tasks.iter().filter(|task| task.processor == processor).map(|task| task.group).collect();
        match groups.first().copied().flatten() {
            Some(group) if groups.iter().all(|other| *other == Some(group)) => {
                let group = &mut self.groups[group.index()];
                (group.share, group.cap) = (share.min(1.0), is_capped);
            }
            None if groups.iter().all(Option::is_none) => {
                let group = GroupId::from(self.groups.len());
                let name = Arc::clone(&self.processors[processor.index()].name);
                self.groups.push(Group { name, processor, share: share.min(1.0), cap: is_capped });
                self.tasks
                    .iter_mut()
                    .filter(|task| task.processor == processor)
                    .for_each(|task| task.group = Some(group));
            }
            _ => return Err("its tasks are in several groups, each with a share of its own".to_owned()),
        }
        Ok(())
    }

    /// How many servers of each copy of a processor may be busy on the mean: all of them, or as many as its [`cap`](Self::cap) leaves.
    pub fn capacity(&self, processor: ProcessorId) -> f64 {
        let servers = self.processors[processor.index()].multiplicity.servers();
        self.cap(processor).map_or(servers, |cap| cap.min(servers))
    }

    /// How many copies the task of an entry has.
    pub fn copies_of(&self, entry: EntryId) -> f64 {
        f64::from(self.tasks[self.entries[entry.index()].task.index()].copies())
    }

    /// Open arrivals at an entry, per second at all copies of its task; 0 where there are none.
    pub fn open_rate(&self, entry: EntryId) -> f64 {
        self.entries[entry.index()].open_arrival_rate.unwrap_or_default() * self.copies_of(entry)
    }

    /// All requests: those of the phases of entries, then those of activities, then what entries pass on.
    pub fn requests(&self) -> impl Iterator<Item = Request> {
        let entries = || (0..).map(EntryId).zip(&self.entries);
        let phases = entries().flat_map(|(id, entry)| {
            let phases: &[Work] = if let Body::Phases(phases) = &entry.body { phases } else { &[] };
            (1..=u8::MAX).zip(phases).map(move |(phase, work)| (Caller::Phase(id, phase), work))
        });
        let activities =
            (0..).zip(&self.activities).map(|(id, activity)| (Caller::Activity(ActivityId(id)), &activity.work));
        let passed_on = entries().flat_map(|(id, entry)| {
            entry.forwarding.iter().map(move |forwarding| Request {
                from: Caller::Forward(id),
                to: forwarding.to,
                kind: None,
                mean: forwarding.probability,
            })
        });
        let calls = phases.chain(activities).flat_map(|(from, work)| {
            work.calls.iter().map(move |call| Request { from, to: call.to, kind: Some(call.kind), mean: call.mean })
        });
        calls.chain(passed_on)
    }

    /// The name of the entry or activity that makes a request.
    pub fn caller(&self, caller: Caller) -> &str {
        match caller {
            Caller::Phase(entry, _) | Caller::Forward(entry) => &self.entries[entry.index()].name,
            Caller::Activity(activity) => &self.activities[activity.index()].name,
        }
    }

    /// How many replicas of the target a replica of the caller calls, O: as the caller's fan-out says, else as the target's fan-in I
    /// does, since O times the caller's replicas is I times the target's; `None` where neither is stated.
    pub fn fan_out(&self, from: TaskId, to: TaskId) -> Option<u64> {
        let (caller, target) = (&self.tasks[from.index()], &self.tasks[to.index()]);
        let stated =
            |fans: &[(TaskId, u32)], other| fans.iter().find(|fan| fan.0 == other).map(|fan| u64::from(fan.1.max(1)));
        let implied = |into: u64| (into * u64::from(target.copies())).div_ceil(u64::from(caller.copies()));
        stated(&caller.fan_out, to).or_else(|| stated(&target.fan_in, from).map(implied))
    }

    /// How many requests one call of a task to an entry makes, since replicas of the target each get their own.
    pub fn replicas_called(&self, from: TaskId, to: EntryId) -> f64 {
        self.fan_out(from, self.entries[to.index()].task).map_or(1.0, |out| out as f64)
    }

    /// How many times as fast as one of speed 1 the processor of a task is.
    pub fn speed(&self, task: TaskId) -> f64 {
        self.processors[self.tasks[task.index()].processor.index()].speed
    }

    /// The task of that name.
    pub fn task_named(&self, name: &str) -> Option<TaskId> {
        self.tasks.iter().position(|task| &*task.name == name).map(TaskId::from)
    }

    /// The entry of that name.
    pub fn entry_named(&self, name: &str) -> Option<EntryId> {
        self.entries.iter().position(|entry| &*entry.name == name).map(EntryId::from)
    }

    /// The processor of that name.
    pub fn processor_named(&self, name: &str) -> Option<ProcessorId> {
        self.processors.iter().position(|processor| &*processor.name == name).map(ProcessorId::from)
    }
}

#[cfg(test)]
mod tests {
    use super::CallOrder;

    #[test]
    fn numbers_of_calls_vary_as_they_are_drawn() {
        let of = |order: CallOrder, means: &[f64]| order.variance(means.iter().copied());
        assert_eq!(of(CallOrder::Stochastic, &[1.0, 0.5]), 1.5 * 2.5);
        for order in [CallOrder::Deterministic, CallOrder::Bernoulli] {
            assert_eq!(of(order, &[1.0, 3.0 - 1e-12, 2.0]), 0.0);
            assert!((of(order, &[0.5, 1.2]) - 0.25 - 0.16).abs() < 1e-12);
        }
    }
}
