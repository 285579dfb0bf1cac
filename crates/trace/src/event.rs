//! Events and operations (1998 paper §4, Eq. 4.1).
//!
//! An event is a node label `j,k,m,l | i,v` with optional attributes and its position in the source. An operation is one
//! execution of a scenario; all its events share the scenario name `j`, which is therefore kept once.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::spans::model::SpanKind;
use dyelog_diagnostic::names::{Name, Names};

/// Index of a [`Task`] in a [`TraceNames`] table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

impl TaskId {
    /// The position in the table.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A task as the paper means it: one sequential flow of control that accepts and sends messages.
///
/// A multi-threaded process that is entered again while one of its threads is still waiting in the same operation (a call
/// to itself, a call back) has several *instances* within it, each with a task node counter of its own. Instances count
/// from 1; in the text format the attribute `instance=2` tells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Task {
    /// The task identifier `i`.
    pub name: Name,
    /// Which instance of it, from 1.
    pub instance: u32,
}

/// The names and tasks that the events of one reader refer to by number.
#[derive(Clone, Debug)]
pub struct TraceNames {
    /// Scenario, activity and operation names, and task identifiers.
    pub names: Names,
    tasks: Vec<Task>,
    numbers: FxHashMap<Task, u32>,
}

impl Default for TraceNames {
    fn default() -> Self {
        let mut names = Names::new();
        // Rules may ask for the kind of a node by these names.
        for label in Kind::LABELS {
            names.intern(label);
        }
        Self { names, tasks: Vec::new(), numbers: FxHashMap::default() }
    }
}

impl TraceNames {
    /// Tables with the labels of kinds only.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of a task, given now if it has none yet.
    ///
    /// # Panics
    /// When there are more than 2^32 tasks.
    pub fn intern_task(&mut self, name: &str, instance: u32) -> TaskId {
        let task = Task { name: self.names.intern(name), instance };
        self.intern_task_named(task)
    }

    /// The number of a task whose name is interned already.
    ///
    /// # Panics
    /// When there are more than 2^32 tasks.
    pub fn intern_task_named(&mut self, task: Task) -> TaskId {
        if let Some(&number) = self.numbers.get(&task) {
            return TaskId(number);
        }
        let number = u32::try_from(self.tasks.len()).expect("fewer than 2^32 tasks fit in memory");
        self.tasks.push(task);
        self.numbers.insert(task, number);
        TaskId(number)
    }

    /// The number of the first instance of a task's name, where there is one; its own else.
    pub fn plain_task(&self, id: TaskId) -> TaskId {
        let plain = Task { instance: 1, ..self.task(id) };
        self.numbers.get(&plain).map_or(id, |number| TaskId(*number))
    }

    /// The task behind a number.
    pub fn task(&self, id: TaskId) -> Task {
        self.tasks[id.index()]
    }

    /// The task identifier behind a number, without its instance.
    pub fn task_name(&self, id: TaskId) -> &str {
        self.names.text(self.task(id).name)
    }

    /// How a task is shown: its identifier, with `.2` and so on for further instances.
    pub fn task_label(&self, id: TaskId) -> String {
        let task = self.task(id);
        if task.instance == 1 {
            self.names.text(task.name).to_owned()
        } else {
            format!("{}.{}", self.names.text(task.name), task.instance)
        }
    }

    /// How many tasks there are.
    pub fn task_count(&self) -> usize {
        self.tasks.len()
    }

    /// What was added since there were so many names and tasks.
    pub fn additions(&self, names: usize, tasks: usize) -> Additions {
        let names = (names..self.names.len()).map(|number| self.names.shared(Name(number as u32))).collect();
        Additions { names, tasks: self.tasks.get(tasks..).unwrap_or_default().to_vec() }
    }

    /// Adds what was added to another table that was equal to this one then; they are equal again.
    pub fn add(&mut self, additions: &Additions) {
        for name in &additions.names {
            self.names.intern(name);
        }
        for &task in &additions.tasks {
            self.intern_task_named(task);
        }
    }
}

/// What was added to a table of names and tasks, so that a table elsewhere can follow.
#[derive(Clone, Debug, Default)]
pub struct Additions {
    names: Vec<Arc<str>>,
    tasks: Vec<Task>,
}

/// The type label `l` of a node (1998 paper §4), and `Join` for the synchronisation extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `Be`: the first node of a thread.
    Begin,
    /// `Ac`: an activity.
    Activity,
    /// `Ed`: the last node of a thread.
    End,
    /// `Fk(j,k')`: starts thread k' of the same operation.
    Fork(u32),
    /// `Jn(j,k')`: waits for the end of thread k'.
    Join(u32),
}

impl Kind {
    /// The paper's labels of all kinds.
    pub const LABELS: [&'static str; 5] = ["Be", "Ac", "Ed", "Fk", "Jn"];

    /// The paper's label, without the thread of a fork or join.
    pub fn label(self) -> &'static str {
        match self {
            Self::Begin => "Be",
            Self::Activity => "Ac",
            Self::End => "Ed",
            Self::Fork(_) => "Fk",
            Self::Join(_) => "Jn",
        }
    }
}

/// One event of an operation: a TOEG node with its attributes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// Scenario thread identifier `k`.
    pub thread: u32,
    /// Thread node counter `m`, from 1, dense within the thread.
    pub index: u32,
    /// Type label `l`.
    pub kind: Kind,
    /// Task `i`.
    pub task: TaskId,
    /// Task node counter `v`, from 1, dense within the task in this operation.
    pub counter: u32,
    /// Activity name, for resource functions; [`Name::NONE`] where not given. Attribute `name=`.
    pub activity: Name,
    /// Name of the service (operation, endpoint, method) that is accepted here; [`Name::NONE`] where not given. It
    /// names the entry when the node is the first of a visit. Attribute `op=`.
    pub service: Name,
    /// Time in seconds from an origin that the operation's events share; NaN where not given. Attribute `t=`.
    pub time: f64,
    /// Measured CPU demand of the activity in seconds; NaN where not given. Attribute `cpu=`.
    pub cpu: f64,
    /// Time in seconds that passes with the activity and is neither work nor waiting for others: for a lock, a device, a timer. NaN where not given.
    /// Attribute `pause=`.
    pub pause: f64,
    /// Position in the source, read through [`Operation::origins`]: a line number, or an index of an item.
    pub origin: u32,
}

impl Event {
    /// An event with nothing but its label.
    pub fn new(thread: u32, index: u32, kind: Kind, task: TaskId, counter: u32) -> Self {
        Self {
            thread,
            index,
            kind,
            task,
            counter,
            activity: Name::NONE,
            service: Name::NONE,
            time: f64::NAN,
            cpu: f64::NAN,
            pause: f64::NAN,
            origin: 0,
        }
    }
}

/// What the `origin` numbers of an operation's events mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origins {
    /// Line numbers of the file.
    Lines,
    /// Indices into these spans.
    Items(Vec<SpanItem>),
}

/// The span that events were read from, as its trace names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpanItem {
    /// Its identifier.
    pub id: Arc<str>,
    /// The service that recorded it.
    pub service: Name,
    /// What it does.
    pub name: Name,
    /// Its part in a communication.
    pub kind: SpanKind,
    /// Which instance of the service it was, and where, as far as that is recorded.
    pub replica: Replica,
    /// Whether it failed.
    pub failed: bool,
    /// Whether it was made once more, after another that failed.
    pub retry: bool,
    /// How many spans beside it were lost and inferred from it: its parent, the server of a call, a call that it must have made.
    pub lost_beside: u32,
    /// How many messages it worked on together, where it is linked to them; 0 elsewhere.
    pub batch: u32,
    /// Whether it may have waited for a service that records no spans, and recorded no call itself.
    pub may_wait: bool,
    /// How the visit is known that begins here.
    pub evidence: VisitEvidence,
}

/// How a visit is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VisitEvidence {
    /// By what was recorded of it, or of a peer that records no spans, by the call to it.
    #[default]
    Recorded,
    /// By calls to it and from it: it has no span.
    Silent,
    /// Its span was lost: by its call, and by what is left of the calls that it made. Which of its time was work, calls like it tell.
    Inferred,
    /// Nothing was recorded of it: another one was put in its place.
    Copied,
}

/// An instance of a service, and where it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Replica {
    /// What tells it from others of the service: its identifier, else its host.
    pub instance: Name,
    /// The machine whose processors it has.
    pub machine: Name,
    /// How many cores it may use there, in thousandths; 0 where not told.
    pub cores: u32,
}

/// How much of an execution an operation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// All of it, from its beginning on.
    #[default]
    Whole,
    /// What follows an event that was lost; another operation of the trace has what came before.
    Rest,
    /// The same, and nothing of the trace came before.
    Headless,
    /// A further part of an operation whose first event was lost: another one is [`Extent::Headless`].
    Piece,
    /// What follows a message whose sender was not recorded, though others of its trace were.
    Unlinked,
    /// What follows a message of whose sender's trace nothing was recorded, as where each trace is sampled by itself.
    Apart,
}

impl Extent {
    /// All there are.
    pub const ALL: [Self; 6] = [Self::Whole, Self::Rest, Self::Headless, Self::Piece, Self::Unlinked, Self::Apart];
}

/// One execution of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Scenario name `j`.
    pub scenario: Name,
    /// Run identifier, unique among the runs of the scenario.
    pub run: Arc<str>,
    /// The file it was read from, as the user gave its name.
    pub file: Arc<str>,
    /// Where it begins: a line number, 0 where lines mean nothing.
    pub line: u32,
    /// Nanoseconds from the Unix epoch, or from another origin that all operations of the file share, to the origin of
    /// the events' times; `None` where the trace does not tell.
    pub start: Option<i64>,
    /// How many operations it stands for, one by the probability with which it was kept: 1 where all were. `None` where the trace does not tell;
    /// [`Operation::CHOSEN`] where it was kept for what it is, [`Operation::TRUNCATED`] where others like it are missing, [`Operation::unweighed`] where a sampler is
    /// named that tells no probability.
    pub weight: Option<f64>,
    /// Whether that was given by who reads the trace, and not recorded.
    pub weight_given: bool,
    /// How much of the execution it is.
    pub extent: Extent,
    /// What the events' origins mean.
    pub origins: Origins,
    /// Its events, in any order until a graph is made of them.
    pub events: Vec<Event>,
}

impl Operation {
    /// The weight of one that was kept for what it is, such as slow or failed.
    pub const CHOSEN: f64 = -1.0;
    /// The weight of one in a file that ends too early and has its operations in another order than that of time: it stands for some behind the end.
    pub const TRUNCATED: f64 = -2.0;
    /// From here downwards, the weights of those of a sampler that tells no probability.
    const UNWEIGHED: f64 = -3.0;

    /// The weight of one that was kept by a sampler which tells no probability, such as one that limits rates; with the most traces that it keeps a second, where that is
    /// told.
    #[must_use]
    pub fn unweighed(limit: Option<f64>) -> f64 {
        Self::UNWEIGHED - limit.filter(|limit| limit.is_finite()).unwrap_or_default().max(0.0)
    }

    /// The most traces that a sampler keeps a second which tells no probability, 0 where it does not tell that either; `None` of other weights.
    #[must_use]
    pub fn limit_of(weight: f64) -> Option<f64> {
        (weight <= Self::UNWEIGHED).then_some(Self::UNWEIGHED - weight)
    }

    /// The span that an event was read from, where it was read from one.
    pub fn span_of(&self, event: &Event) -> Option<&SpanItem> {
        match &self.origins {
            Origins::Lines => None,
            Origins::Items(items) => items.get(event.origin as usize),
        }
    }

    /// The place where the operation begins in the source, for diagnostics.
    pub fn beginning(&self) -> dyelog_diagnostic::Place {
        use dyelog_diagnostic::Place;
        match &self.origins {
            Origins::Lines => Place::Line { file: Arc::clone(&self.file), line: self.line, column: 0 },
            Origins::Items(items) => match items.first() {
                Some(item) => Place::Item { file: Arc::clone(&self.file), item: format!("span {}", item.id) },
                None => Place::File { file: Arc::clone(&self.file) },
            },
        }
    }

    /// The place of an event in the source, for diagnostics.
    pub fn place(&self, event: &Event) -> dyelog_diagnostic::Place {
        use dyelog_diagnostic::Place;
        match &self.origins {
            Origins::Lines => Place::Line { file: Arc::clone(&self.file), line: event.origin, column: 0 },
            Origins::Items(items) => match items.get(event.origin as usize) {
                Some(item) => Place::Item { file: Arc::clone(&self.file), item: item.id.to_string() },
                None => Place::File { file: Arc::clone(&self.file) },
            },
        }
    }
}
