//! What a task does for one request.

use crate::forest::{NONE, Spent};
use crate::signatures::{Base, PhaseWork, Request, Way};
use crate::timing::Timestamp;
use dyelog_diagnostic::names::Name;
use dyelog_lqn::submodel::Interaction;

/// Whose work a visit is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Role {
    /// Nobody's: its place is free.
    #[default]
    Free,
    /// That of a server, which a message asked for it.
    Server,
    /// A customer's, which began it of its own.
    Customer,
}

/// What asked for a visit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Parent {
    /// Nothing that is known, or nothing that still counts.
    #[default]
    None,
    /// A customer, of which nothing else is known.
    Customer,
    /// A visit, and where its requests name this one.
    Visit { visit: u32, place: u32 },
}

/// Which occurrences are one entry with a visit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Grouping {
    /// Those that ask for the same.
    #[default]
    Signature,
    /// All that are asked in the same way.
    Base,
}

/// Whether a visit is part of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Inclusion {
    /// It is.
    #[default]
    Included,
    /// It is not: what is known of it is not whole.
    LeftOut,
}

#[derive(Debug)]
pub(super) struct Visit {
    /// Task and name of the request.
    pub task: Name,
    pub label: Name,
    pub role: Role,
    pub inclusion: Inclusion,
    pub grouping: Grouping,
    /// Whether its request was answered.
    pub answered: bool,
    /// What must still happen before it is complete.
    pub open: u32,
    pub parent: Parent,
    /// Its own task; where a customer asked, that of the customer.
    pub customer: u32,
    /// How it was asked for.
    pub asked: Request,
    pub line: u32,
    pub file: u16,
    /// The number of the kind of message that asked, or [`NONE`].
    pub kind: u32,
    pub began: Timestamp,
    pub since: Timestamp,
    /// All that it did.
    pub cpu: f64,
    pub busy: f64,
    /// What of it in the first phase, once the reply has left.
    pub first: Option<Spent>,
    /// Which of the two are known.
    pub measured: bool,
    pub timed: bool,
    pub requests: Vec<Request>,
    /// Network latency of its calls, both ways.
    pub ways: Vec<Way>,
    /// Network latency of the customer's call that asked for it, seconds.
    pub way: Option<f64>,
    /// Whether anything is known of its second phase.
    pub second: SecondPhase,
}

/// Whether a visit was seen to work after its reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SecondPhase {
    /// It was not.
    #[default]
    Unseen,
    /// It was.
    Seen,
}

impl Default for Visit {
    fn default() -> Self {
        Self {
            task: Name::default(),
            label: Name::default(),
            role: Role::default(),
            inclusion: Inclusion::default(),
            grouping: Grouping::default(),
            answered: false,
            open: 0,
            parent: Parent::default(),
            customer: 0,
            asked: Request::default(),
            line: 0,
            file: 0,
            kind: NONE,
            began: Timestamp::UNKNOWN,
            since: Timestamp::UNKNOWN,
            cpu: 0.0,
            busy: 0.0,
            first: None,
            measured: false,
            timed: false,
            requests: Vec::new(),
            ways: Vec::new(),
            way: None,
            second: SecondPhase::default(),
        }
    }
}

impl Visit {
    pub fn base(&self) -> Base {
        let interaction = if self.answered { Interaction::Rendezvous } else { Interaction::Asynchronous };
        Base { task: self.task, label: self.label, interaction }
    }

    pub fn is_customer(&self) -> bool {
        self.role == Role::Customer
    }

    /// Whether its reply has left.
    pub fn is_released(&self) -> bool {
        self.first.is_some()
    }

    /// Takes note of work after the reply, if that is what it was.
    pub fn note_second(&mut self, second: bool) {
        if second {
            self.second = SecondPhase::Seen;
        }
    }

    /// The task was not blocked until now.
    pub fn elapse(&mut self, time: Timestamp) {
        if let Some(busy) = time.since(self.since).filter(|busy| *busy > 0.0) {
            self.busy += busy;
        }
        if time.is_known() {
            self.since = time;
        }
    }

    /// Work by phase; that of the second where there was any.
    pub fn work(&self) -> [Option<PhaseWork>; 2] {
        let first = self.first.unwrap_or(Spent { cpu: self.cpu, busy: self.busy, second_phase: false });
        let work = |cpu, busy| PhaseWork { cpu: self.measured.then_some(cpu), busy: self.timed.then_some(busy) };
        let (cpu, busy) = (self.cpu - first.cpu, self.busy - first.busy);
        let second = self.second == SecondPhase::Seen || cpu > 0.0 || busy > 0.0;
        [Some(work(first.cpu, first.busy)), second.then(|| work(cpu, busy))]
    }
}
