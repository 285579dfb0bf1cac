//! What is kept of the parts of a sub-model: entries with their work, blocks and requests.

use std::sync::Arc;

use super::{EntryIndex, EntryKey, FxIndexMap, Interaction, Moments, Seconds};
use crate::batches::Batches;
use crate::sketch::Sketch;
use crate::stays::{MOST_VISITS, Stays};
use crate::timing::{CallLabel, CallTotal, PairTotal};
use dyelog_diagnostic::names::Name;

/// How many sample origins an entry keeps.
pub const WITNESSES: usize = 3;

/// Where in an invocation work is done.
///
/// An invocation is a *strand*, a sequence `segment 0, block 1, segment 1, block 2, …`. A [block](BlockTotal) forks branches,
/// each of which is a strand of its own, with segments and blocks in it, and may wait for them. Entries without parallel branches
/// have segment 0 only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Of a segment, how many blocks came before it on its strand; of a block, the same with itself, so that blocks count from 1.
    pub stage: u32,
    /// The branch whose strand it is; `None` for the strand of the entry itself.
    pub branch: Option<Branch>,
    /// The phase, 1 to 3.
    pub phase: u8,
}

/// A branch of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Branch {
    /// Which block: its key in [`EntryTotal::blocks`].
    pub block: u64,
    /// Which branch of it, from 0, in the order of their digests.
    pub branch: u32,
}

/// A block: branches that begin at one place of a strand, and a place where the strand waits for all or some of them.
///
/// Its key is a digest of where it is and of what is done in it, so that blocks of different invocations that look the same are
/// the same, and others are alternatives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockTotal {
    /// Where it is: a strand, and its place among the blocks of that strand and phase.
    pub at: Position,
    /// How often it was seen.
    pub times: u64,
    /// Its branches.
    pub branches: Vec<BranchTotal>,
    /// How long the strand was seen to be in it, where the trace tells.
    pub response: Moments,
}

/// A branch, over all times that its block was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BranchTotal {
    /// Digest of what it requests, by which branches are alike; 0 where it makes no requests.
    pub content: u64,
    /// Whether it is no thread of its own, but what the strand itself does until it waits.
    pub own: bool,
    /// How often the strand waited for its end. Always, for a branch of an AND-join; sometimes, where any so many of several are
    /// enough.
    pub awaited: u64,
}

impl BlockTotal {
    /// Takes in the other, of the same key.
    pub fn merge(&mut self, other: &Self) {
        self.at = self.at.max(other.at);
        self.times += other.times;
        self.response.merge(&other.response);
        if self.branches.len() < other.branches.len() {
            self.branches.resize(other.branches.len(), BranchTotal::default());
        }
        for (own, branch) in self.branches.iter_mut().zip(&other.branches) {
            own.content = own.content.max(branch.content);
            own.own |= branch.own;
            own.awaited += branch.awaited;
        }
    }
}

/// How a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestKind {
    /// The requester waits for the reply.
    Synchronous,
    /// The requester goes on.
    Asynchronous,
    /// The requester passes on the request that it serves.
    Forward,
}

/// Requests to one entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestTotal {
    /// How many over all invocations.
    pub count: u64,
    /// The sum over invocations of the squared number of requests.
    pub squares: u64,
}

impl RequestTotal {
    /// The same with so many requests in place of each so many.
    #[must_use]
    pub fn scaled(self, to: u64, from: u64) -> Self {
        let scale = |count: u64| {
            let (to, from) = (u128::from(to), u128::from(from.max(1)));
            u64::try_from((u128::from(count).saturating_mul(to) + from / 2) / from).unwrap_or(u64::MAX)
        };
        Self { count: scale(self.count), squares: scale(self.squares) }
    }

    /// So many of the requests, and the others.
    pub(crate) fn parted(self, part: u64) -> (Self, Self) {
        let part = part.min(self.count);
        let squares = self.scaled(part, self.count).squares.min(self.squares);
        (Self { count: part, squares }, Self { count: self.count - part, squares: self.squares - squares })
    }

    /// Takes in what the other has seen.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.squares = self.squares.saturating_add(other.squares);
    }
}

/// An activity (resource function) of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActivityTotal {
    /// How often it was seen over all invocations.
    pub count: u64,
    /// Measured CPU demand of those events that carry it.
    pub cpu: Moments,
}

impl ActivityTotal {
    /// Takes in what the other has seen.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.cpu.merge(&other.cpu);
    }
}

/// Work at one position, over all invocations.
#[derive(Clone, Debug, Default)]
pub struct WorkTotal {
    /// How many invocations did work here.
    pub visits: u64,
    /// By activity name; [`Name::NONE`] for events without one.
    pub activities: FxIndexMap<Name, ActivityTotal>,
    /// Exclusive time: time between consecutive events of the visit in which it was not waiting for another task, per
    /// invocation that has times.
    pub exclusive: Moments,
    /// Network latency of a call made here, both ways, per call that waited for its reply and of which both halves
    /// were recorded: the network, and what waits at its ends.
    pub network: Moments,
    /// Times that passed here without work, as templates say (`addDelay`) or events (`pause=`): timeouts, locks, devices. All of an
    /// invocation are one.
    pub pauses: Moments,
    /// By kind and entry.
    pub requests: FxIndexMap<(RequestKind, EntryIndex), RequestTotal>,
    /// Time that passes here without work, beside the network latency of calls: of a branch, the time from the fork to its first call. It is
    /// negative where calls in sequence overlap by what clocks do not tell apart. Completion derives it from [`EntryTotal::calls`].
    pub delay: Seconds,
}

impl WorkTotal {
    /// Takes in other work of the same sub-model.
    pub fn add(&mut self, other: &Self) {
        self.visits += other.visits;
        self.exclusive.merge(&other.exclusive);
        self.network.merge(&other.network);
        self.pauses.merge(&other.pauses);
        self.delay = self.delay.plus(other.delay);
        for (name, activity) in &other.activities {
            self.activities.entry(*name).or_default().merge(activity);
        }
        for (request, seen) in &other.requests {
            self.requests.entry(*request).or_default().merge(seen);
        }
    }

    fn merge(&mut self, other: &Self, names: &[Name], entries: &[EntryIndex]) {
        self.visits += other.visits;
        for (name, activity) in &other.activities {
            self.activities.entry(names[name.index()]).or_default().merge(activity);
        }
        self.exclusive.merge(&other.exclusive);
        self.network.merge(&other.network);
        self.pauses.merge(&other.pauses);
        for ((kind, to), request) in &other.requests {
            self.requests.entry((*kind, entries[to.index()])).or_default().merge(request);
        }
        self.delay = self.delay.plus(other.delay);
    }
}

/// An entry, over all its invocations.
#[derive(Clone, Debug)]
pub struct EntryTotal {
    /// Its identity.
    pub key: EntryKey,
    /// The task's identifier.
    pub task: Name,
    /// Which instance of the task, from 1 (see the description of a trace's task).
    pub instance: u32,
    /// Type of interaction.
    pub interaction: Interaction,
    /// Name of the service, or [`Name::NONE`].
    pub service: Name,
    /// How often it was invoked.
    pub invocations: u64,
    /// Its work by position.
    pub work: FxIndexMap<Position, WorkTotal>,
    /// Where it forks branches, by key; empty without parallel branches.
    pub blocks: FxIndexMap<u64, BlockTotal>,
    /// How many invocations had branches that do not lie in each other, so that a wait stands elsewhere than where it was.
    pub moved_waits: u64,
    /// How many delays templates stated whose length no time tells.
    pub untimed_delays: u64,
    /// Time from the acceptance of a request to the end of the first phase, of invocations with times.
    pub response: Moments,
    /// How these times are spread; sub-models that were saved without it have nothing here.
    pub responses: Sketch,
    /// When it made its calls, where traces tell: what decides which of them are in sequence.
    pub calls: FxIndexMap<CallLabel, CallTotal>,
    /// Pairs of these, the one of the lesser entry key first.
    pub pairs: FxIndexMap<(CallLabel, CallLabel), PairTotal>,
    /// When its invocations did their own work, where traces tell.
    pub stays: Stays,
    /// When calls were on their way to it (part 0), and when its invocations were under way (part 1); sub-models that were saved without it have nothing here. The
    /// site is that of the caller where the service records no spans.
    pub visits: Stays<MOST_VISITS>,
    /// How long calls were on their way to it, where traces have both halves.
    pub way: Moments,
    /// The batches of messages that it worked on, where spans are linked to them.
    pub batches: Batches,
    /// How many of its invocations were taken from an entry of another type that was outvoted. Completion counts them.
    pub outvoted: u64,
    /// Of how many of its invocations the span was lost: no own time of theirs is known.
    pub inferred: u64,
    /// How many requests are left of those that these made.
    pub inferred_requests: u64,
    /// Of how many nobody recorded when they worked.
    pub undated: u64,
    /// How many of its invocations its service recorded nothing of.
    pub silent: u64,
    /// How many of its invocations may have waited for a service that records no spans, without a trace of their call: their own time is work at most.
    pub may_wait: u64,
    /// How many of its invocations failed, as far as traces tell.
    pub failures: u64,
    /// How many of its invocations failed for their client and not for itself, as where the client's timeout ended first.
    pub given_up: u64,
    /// How many of its invocations were asked for once more, after one that failed.
    pub retries: u64,
    /// The least origins of invocations, in order, at most [`WITNESSES`].
    pub witnesses: Vec<Witness>,
}

impl EntryTotal {
    /// Time in which invocations worked by themselves, seconds, all of them together.
    pub fn own_time(&self) -> f64 {
        self.work.values().map(|work| work.exclusive.sum.as_f64()).sum()
    }

    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        let of_work = |work: &WorkTotal| size_of::<WorkTotal>() + 64 * (work.requests.len() + work.activities.len());
        let of_witness = |own: &Witness| {
            [&own.scenario, &own.run, &own.file, &own.item].map(|text| 16 + text.len()).iter().sum::<usize>()
                + size_of::<Witness>()
        };
        size_of::<Self>()
            + self.stays.bytes()
            + self.visits.bytes()
            + 16 * self.responses.buckets().count()
            + self.work.values().map(of_work).sum::<usize>()
            + self.calls.len() * (size_of::<CallLabel>() + size_of::<CallTotal>())
            + self.pairs.len() * (2 * size_of::<CallLabel>() + size_of::<PairTotal>())
            + self.blocks.len() * size_of::<BlockTotal>()
            + self.witnesses.iter().map(of_witness).sum::<usize>()
    }

    /// Takes in the invocations of another entry of the same service and sub-model.
    pub fn take_in(&mut self, other: &Self) {
        self.invocations += other.invocations;
        self.outvoted += other.outvoted;
        self.inferred += other.inferred;
        self.inferred_requests += other.inferred_requests;
        self.undated += other.undated;
        self.silent += other.silent;
        self.may_wait += other.may_wait;
        self.failures += other.failures;
        self.given_up += other.given_up;
        self.retries += other.retries;
        self.response.merge(&other.response);
        self.responses.merge(&other.responses);
        self.stays.merge(&other.stays);
        self.visits.merge(&other.visits);
        self.way.merge(&other.way);
        self.batches.merge(&other.batches);
        for (at, work) in &other.work {
            self.work.entry(*at).or_default().add(work);
        }
        for (label, call) in &other.calls {
            self.calls.entry(*label).or_default().merge(call);
        }
        for (pair, total) in &other.pairs {
            self.pairs.entry(*pair).or_default().merge(total);
        }
        for witness in &other.witnesses {
            self.add_witness(witness);
        }
    }

    /// Takes in what another sub-model has seen of it, whose names and entries have these numbers here.
    pub(super) fn merge(&mut self, other: &Self, names: &[Name], entries: &[EntryIndex]) {
        self.invocations += other.invocations;
        for (position, work) in &other.work {
            self.work.entry(*position).or_default().merge(work, names, entries);
        }
        for (key, block) in &other.blocks {
            self.blocks.entry(*key).or_default().merge(block);
        }
        self.moved_waits += other.moved_waits;
        self.untimed_delays += other.untimed_delays;
        self.response.merge(&other.response);
        self.responses.merge(&other.responses);
        self.stays.merge(&other.stays);
        self.visits.merge(&other.visits);
        self.way.merge(&other.way);
        self.batches.merge(&other.batches);
        self.outvoted += other.outvoted;
        self.inferred += other.inferred;
        self.inferred_requests += other.inferred_requests;
        self.undated += other.undated;
        self.silent += other.silent;
        self.may_wait += other.may_wait;
        self.failures += other.failures;
        self.given_up += other.given_up;
        self.retries += other.retries;
        for (label, call) in &other.calls {
            self.calls.entry(label.renumbered(entries)).or_default().merge(call);
        }
        for ((left, right), pair) in &other.pairs {
            let pair_of = (left.renumbered(entries), right.renumbered(entries));
            self.pairs.entry(pair_of).or_default().merge(pair);
        }
        for witness in &other.witnesses {
            self.add_witness(witness);
        }
    }

    /// The entries that this one requests, with how often it does: one after the other by position and kind of the request.
    pub fn requested(&self) -> impl Iterator<Item = (EntryIndex, u64)> + '_ {
        self.work.values().flat_map(|work| work.requests.iter().map(|((_, to), request)| (*to, request.count)))
    }

    /// How often it requests another entry.
    pub fn requests_to(&self, entry: EntryIndex) -> u64 {
        self.requested().filter(|(to, _)| *to == entry).map(|(_, count)| count).sum()
    }

    /// Gives the entries that it asks other numbers; those without one are asked no more.
    pub(super) fn renumber(&mut self, numbers: &[Option<EntryIndex>]) {
        let label = |own: CallLabel| match own.to {
            None => Some(own),
            Some(to) => numbers[to.index()].map(|to| CallLabel { to: Some(to), ..own }),
        };
        for work in self.work.values_mut() {
            let requests = std::mem::take(&mut work.requests).into_iter();
            work.requests =
                requests.filter_map(|((kind, to), own)| Some(((kind, numbers[to.index()]?), own))).collect();
        }
        let calls = std::mem::take(&mut self.calls).into_iter();
        self.calls = calls.filter_map(|(own, total)| Some((label(own)?, total))).collect();
        let pairs = std::mem::take(&mut self.pairs).into_iter();
        self.pairs = pairs.filter_map(|((one, other), total)| Some(((label(one)?, label(other)?), total))).collect();
    }

    /// Keeps the witness if it is among the least.
    pub fn add_witness(&mut self, witness: &Witness) {
        if let Err(place) = self.witnesses.binary_search(witness)
            && place < WITNESSES
        {
            self.witnesses.insert(place, witness.clone());
            self.witnesses.truncate(WITNESSES);
        }
    }
}

/// Where an invocation was seen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Witness {
    /// The scenario.
    pub scenario: Arc<str>,
    /// The run.
    pub run: Arc<str>,
    /// Thread and thread node counter of the node that accepted the request.
    pub thread: u32,
    /// Thread node counter.
    pub index: u32,
    /// The file.
    pub file: Arc<str>,
    /// Line number or span identifier.
    pub item: Arc<str>,
}
