//! What visits of a service were seen to do next, learnt while messages come.

use rustc_hash::FxHashMap;

use crate::names::Name;

/// From one service to another, and what the message says.
pub type Kind = u32;

/// What a visit did last: [`ACCEPTED`], or a message of some kind that it sent or got an answer to.
pub type Last = u32;

/// Nothing yet.
pub const ACCEPTED: Last = u32::MAX;

/// How a message ends or goes on with what a visit does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It asks another service.
    Asks,
    /// It replies.
    Replies,
    /// It gets the reply to what it asked.
    Resumes,
    /// Its thread goes on to something else.
    Ends,
}

/// Kinds beyond these are not told apart by what the message says, and steps beyond these are not learnt.
const MOST_KINDS: usize = 1 << 16;
const MOST_STEPS: usize = 1 << 19;

/// Kinds of messages, and how often one followed the other.
#[derive(Debug, Default)]
pub struct Habits {
    kinds: FxHashMap<(u32, u32, Name), Kind>,
    /// By the request that a visit serves, what it did last, and what it did next.
    steps: FxHashMap<(Kind, Last, Last), u32>,
    /// How often a visit in that state did anything.
    left: FxHashMap<(Kind, Last), u32>,
    requests: Vec<Requests>,
}

/// Requests of a kind.
#[derive(Clone, Copy, Debug, Default)]
struct Requests {
    asked: u32,
    by_customers: u32,
    answered: bool,
}

impl Habits {
    /// The kind of a message.
    pub fn kind(&mut self, from: u32, to: u32, label: Name) -> Kind {
        let label = if self.kinds.len() < MOST_KINDS { label } else { Name::NONE };
        let next = self.kinds.len() as Kind;
        *self.kinds.entry((from, to, label)).or_insert(next)
    }

    /// What a visit did, as what it did last.
    pub fn last(kind: Kind, act: Act) -> Last {
        kind << 2 | act as Last
    }

    /// Notes what a visit did next.
    pub fn learn(&mut self, serves: Kind, last: Last, next: Last) {
        if self.steps.len() < MOST_STEPS {
            *self.steps.entry((serves, last, next)).or_default() += 1;
            *self.left.entry((serves, last)).or_default() += 1;
        }
    }

    /// How often a visit in a state went on so, and went on at all.
    pub fn seen(&self, serves: Kind, last: Last, next: Last) -> (u32, u32) {
        let left = self.left.get(&(serves, last)).copied().unwrap_or(0);
        let seen = if left == 0 { 0 } else { self.steps.get(&(serves, last, next)).copied().unwrap_or(0) };
        (seen, left)
    }

    fn requests(&mut self, kind: Kind) -> &mut Requests {
        let place = kind as usize;
        if self.requests.len() <= place {
            self.requests.resize(place + 1, Requests::default());
        }
        &mut self.requests[place]
    }

    /// A request of this kind was made, by a customer or not.
    pub fn ask(&mut self, kind: Kind, by_customer: bool) {
        let requests = self.requests(kind);
        requests.asked = requests.asked.saturating_add(1);
        requests.by_customers = requests.by_customers.saturating_add(u32::from(by_customer));
    }

    /// The share of requests of this kind that customers made, where there were any.
    pub fn by_customers(&self, kind: Kind) -> Option<f64> {
        let Requests { asked, by_customers, .. } = *self.requests.get(kind as usize)?;
        (asked > 0).then(|| f64::from(by_customers) / f64::from(asked))
    }

    /// A request of this kind was answered.
    pub fn answer(&mut self, kind: Kind) {
        self.requests(kind).answered = true;
    }

    /// Whether a request of this kind was ever answered.
    pub fn is_answered(&self, kind: Kind) -> bool {
        self.requests.get(kind as usize).is_some_and(|requests| requests.answered)
    }
}
