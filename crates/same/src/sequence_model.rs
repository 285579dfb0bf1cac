//! What visits of a service were seen to do next, learnt while messages come.
//!
//! What a visit does next goes by what it did so far: by all of that, where it was seen before; as far as it was not, by what it did
//! last; and then by the request that it serves alone. Each is an estimate to which the next one counts as one observation.

use rustc_hash::FxHashMap;

use dyelog_diagnostic::names::Name;

/// From one service to another, and what the message says.
pub type Kind = u32;

/// A step of a visit: [`ACCEPTED`], or a message of some kind that it sent or got an answer to.
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

/// What a visit serves, and what it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doing {
    /// The request.
    pub serves: Kind,
    /// What it did last.
    pub last: Last,
    /// All that it did, in any order: branches that run in parallel go on in any.
    all: u64,
    /// What is known of it, from the least to the most.
    contexts: [Context; 3],
}

/// Something that is known of visits, by its number.
type Context = u32;

/// What is not told apart any more.
const NO_CONTEXT: Context = Context::MAX;

/// A digest of numbers. Sums of such must be digests as well, so that it may not be linear, as quick ones are (`SplitMix64`).
fn digest(of: &[u64]) -> u64 {
    of.iter().fold(0, |sum: u64, number| {
        let mixed = sum.wrapping_add(*number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    })
}

/// Kinds of messages, and how often one followed the other.
#[derive(Debug, Default)]
pub struct SequenceModel {
    kinds: FxHashMap<(u32, u32, Name), Kind>,
    /// Numbers of what is known of visits, by its digest.
    contexts: FxHashMap<u64, Context>,
    /// How often a visit of which that is known did anything.
    left: Vec<u32>,
    /// By a step, how often it was the next one where that was known of a visit.
    steps: FxHashMap<Last, FxHashMap<Context, u32>>,
    /// How many of these there are.
    learnt: usize,
    messages: Vec<Messages>,
}

/// What a visit may do next.
#[derive(Clone, Copy, Debug)]
pub struct Next<'a> {
    /// How often it was done where that was known of a visit.
    seen: Option<&'a FxHashMap<Context, u32>>,
    /// The share of these messages that are sent for this.
    pub share: f64,
    /// Why it is sent.
    pub act: Act,
}

impl Doing {
    /// A place among so many, mostly another one for each other history.
    pub fn place(&self, places: usize) -> usize {
        (self.all ^ u64::from(self.contexts[2])) as usize % places
    }
}

impl Next<'_> {
    fn seen(&self, context: Context) -> u32 {
        self.seen.and_then(|seen| seen.get(&context)).copied().unwrap_or(0)
    }

    /// Whether any visit with this last step ever did this next.
    pub fn was_seen(&self, doing: Doing) -> bool {
        self.seen(doing.contexts[1]) > 0
    }
}

/// Messages of a kind.
#[derive(Clone, Copy, Debug, Default)]
struct Messages {
    asked: u32,
    by_customers: u32,
    replied: u32,
    answered: bool,
}

/// What it counts for that a kind of message was never seen to be a request, or a reply.
const DOUBT: f64 = 0.05;

impl SequenceModel {
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

    /// A visit that has just accepted a request.
    pub fn accepted(&mut self, serves: Kind) -> Doing {
        self.doing(serves, ACCEPTED, 0)
    }

    /// A visit that did this as well.
    pub fn then(&mut self, doing: Doing, next: Last) -> Doing {
        self.doing(doing.serves, next, doing.all.wrapping_add(digest(&[u64::from(next)])))
    }

    fn doing(&mut self, serves: Kind, last: Last, all: u64) -> Doing {
        let [own, latest] = [serves, last].map(u64::from);
        let known = [digest(&[own]), digest(&[own, latest]), digest(&[own, latest, all])];
        let contexts = known.map(|known| {
            let next = self.left.len();
            if next >= MOST_STEPS {
                return self.contexts.get(&known).copied().unwrap_or(NO_CONTEXT);
            }
            *self.contexts.entry(known).or_insert_with(|| {
                self.left.push(0);
                next as Context
            })
        });
        Doing { serves, last, all, contexts }
    }

    /// Notes what a visit does next.
    pub fn learn(&mut self, doing: &mut Doing, next: Last) {
        if self.learnt < MOST_STEPS {
            let steps = self.steps.entry(next).or_default();
            let before = steps.len();
            for context in doing.contexts.into_iter().filter(|context| *context != NO_CONTEXT) {
                *steps.entry(context).or_default() += 1;
                self.left[context as usize] += 1;
            }
            self.learnt += steps.len() - before;
        }
        *doing = self.then(*doing, next);
    }

    /// A message of a kind, sent for this.
    pub fn step(&self, kind: Kind, act: Act) -> Next<'_> {
        Next { seen: self.steps.get(&Self::last(kind, act)), share: self.share(kind, act), act }
    }

    /// How likely it is that a visit does this next. `prior` says it for one of which nothing is known but, by its argument, whether any
    /// did anything after the same last step; with `typical`, that others with the same request ever did it counts as well.
    pub fn likely(&self, doing: Doing, next: &Next, typical: bool, prior: impl FnOnce(bool) -> f64) -> f64 {
        let seen = |context: Context| {
            let left = self.left.get(context as usize).copied().unwrap_or(0);
            (f64::from(next.seen(context)), f64::from(left))
        };
        let [request, last, all] = doing.contexts.map(seen);
        let mut likely = prior(last.1 > 0.0);
        if typical && request.1 > 0.0 {
            likely = likely.max(request.0 / request.1);
        }
        for (seen, left) in [last, all] {
            likely = (seen + likely) / (left + 1.0);
        }
        likely * next.share
    }

    fn messages(&mut self, kind: Kind) -> &mut Messages {
        let place = kind as usize;
        if self.messages.len() <= place {
            self.messages.resize(place + 1, Messages::default());
        }
        &mut self.messages[place]
    }

    fn known(&self, kind: Kind) -> Messages {
        self.messages.get(kind as usize).copied().unwrap_or_default()
    }

    /// A request of this kind was made, by a customer or not.
    pub fn ask(&mut self, kind: Kind, by_customer: bool) {
        let messages = self.messages(kind);
        messages.asked = messages.asked.saturating_add(1);
        messages.by_customers = messages.by_customers.saturating_add(u32::from(by_customer));
    }

    /// A message of this kind was a reply.
    pub fn reply(&mut self, kind: Kind) {
        let messages = self.messages(kind);
        messages.replied = messages.replied.saturating_add(1);
    }

    /// The share of messages of this kind that are requests, or replies.
    fn share(&self, kind: Kind, act: Act) -> f64 {
        let Messages { asked, replied, .. } = self.known(kind);
        let count = if act == Act::Replies { replied } else { asked };
        (f64::from(count) + DOUBT) / (f64::from(asked) + f64::from(replied) + 2.0 * DOUBT)
    }

    /// The share of requests of this kind that customers made, where there were any.
    pub fn by_customers(&self, kind: Kind) -> Option<f64> {
        let Messages { asked, by_customers, .. } = self.known(kind);
        (asked > 0).then(|| f64::from(by_customers) / f64::from(asked))
    }

    /// A request of this kind was answered.
    pub fn answer(&mut self, kind: Kind) {
        self.messages(kind).answered = true;
    }

    /// Whether a request of this kind was ever answered.
    pub fn is_answered(&self, kind: Kind) -> bool {
        self.known(kind).answered
    }
}
