//! When an entry makes its calls, as a mergeable summary: enough to decide, once everything is merged, which calls are made one after
//! the other and which side by side.
//!
//! Calls of an invocation have *labels*: the entry that they ask, and their place among the calls to it. For each label there are sums
//! over invocations, for each pair of labels how often one ended before the other began. Precedence in real traces is bimodal: a pair
//! is always in order, or often not, so that counts decide where single operations would only show their noise.

use crate::submodel::{EntryIndex, Moments, RequestKind, RequestTotal, Seconds};

/// Which call of an invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallLabel {
    /// The phase in which it is made, 1 to 3.
    pub phase: u8,
    /// How.
    pub kind: RequestKind,
    /// Whom it asks; [`None`] for what the invocation itself works while calls are out.
    pub to: Option<EntryIndex>,
    /// Which of the calls to that entry, in the order of time, from 1; 0 for all of them together.
    pub ordinal: u32,
}

impl CallLabel {
    /// The same in a sub-model whose entries have other numbers.
    #[must_use]
    pub(crate) fn renumbered(self, entries: &[EntryIndex]) -> Self {
        Self { to: self.to.map(|to| entries[to.index()]), ..self }
    }
}

/// Calls of one label. Times are of the calling side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTotal {
    /// How many invocations made such a call.
    pub invocations: u64,
    /// The calls.
    pub requests: RequestTotal,
    /// How long they took, a value an invocation: the sum of its calls.
    pub duration: Moments,
    /// From the begin of the invocation to the first of the calls.
    pub start: Seconds,
    /// Their parts of the time in which any call is out, which is shared equally by those that are out together. Shares of all labels add up to
    /// the time in which the invocation waits.
    pub share: Seconds,
    /// The invocation's own time just before such a call, with no other call out.
    pub lead: Seconds,
    /// Their network latency, both ways.
    pub network: Seconds,
}

impl CallTotal {
    /// Takes in the other.
    pub fn merge(&mut self, other: &Self) {
        self.invocations += other.invocations;
        self.requests.merge(&other.requests);
        self.duration.merge(&other.duration);
        self.start = self.start.plus(other.start);
        self.share = self.share.plus(other.share);
        self.lead = self.lead.plus(other.lead);
        self.network = self.network.plus(other.network);
    }
}

impl CallTotal {
    /// So many of the calls, and the others. An invocation that made some of both is in both.
    pub(crate) fn parted(self, part: u64) -> (Self, Self) {
        let whole = self.requests.count;
        if part >= whole {
            return (self, Self::default());
        }
        let factor = part as f64 / whole as f64;
        let amount = |amount: i128| (amount as f64 * factor) as i128;
        let seconds = |own: Seconds| (Seconds(amount(own.0)), Seconds(own.0 - amount(own.0)));
        let count = |count: u64, part: u64| {
            u64::try_from((u128::from(count) * u128::from(part)).div_ceil(u128::from(whole))).unwrap_or(count)
        };
        let (requests, others) = self.requests.parted(part);
        let (sum, other_sum) = seconds(self.duration.sum);
        let squares = amount(self.duration.squares);
        let of = |requests: RequestTotal, sum, squares| Self {
            invocations: count(self.invocations, requests.count),
            requests,
            duration: Moments { count: count(self.duration.count, requests.count), sum, squares },
            ..Self::default()
        };
        let (mut some, mut rest) = (of(requests, sum, squares), of(others, other_sum, self.duration.squares - squares));
        (some.start, rest.start) = seconds(self.start);
        (some.share, rest.share) = seconds(self.share);
        (some.lead, rest.lead) = seconds(self.lead);
        (some.network, rest.network) = seconds(self.network);
        (some, rest)
    }

    /// The same with so many calls in place of each so many.
    pub fn scale(&mut self, to: u64, from: u64) {
        let factor = to as f64 / from.max(1) as f64;
        let count = |count: u64| (count as f64 * factor).round() as u64;
        let seconds = |seconds: Seconds| Seconds((seconds.0 as f64 * factor) as i128);
        self.invocations = count(self.invocations);
        self.requests = self.requests.scaled(to, from);
        self.duration = match count(self.duration.count) {
            // Of nothing there is neither time nor spread.
            0 => Moments::default(),
            count => Moments {
                count,
                sum: seconds(self.duration.sum),
                squares: (self.duration.squares as f64 * factor) as i128,
            },
        };
        (self.start, self.share) = (seconds(self.start), seconds(self.share));
        (self.lead, self.network) = (seconds(self.lead), seconds(self.network));
    }
}

/// Two labels in the same invocations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairTotal {
    /// How many invocations made calls of both.
    pub both: u64,
    /// In how many the first ended before the second began.
    pub before: u64,
    /// In how many it was the other way round.
    pub after: u64,
    /// By how much the second began after the first, where it did.
    pub later: Seconds,
    /// And before it.
    pub earlier: Seconds,
}

impl PairTotal {
    /// The same with the second call as the first.
    #[must_use]
    pub fn turned(self) -> Self {
        Self { before: self.after, after: self.before, later: self.earlier, earlier: self.later, ..self }
    }

    /// Takes in the other.
    pub fn merge(&mut self, other: &Self) {
        self.both += other.both;
        self.before += other.before;
        self.after += other.after;
        self.later = self.later.plus(other.later);
        self.earlier = self.earlier.plus(other.earlier);
    }
}
