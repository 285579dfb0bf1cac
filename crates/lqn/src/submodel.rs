//! The sub-model: what traces show of a system, as a mergeable summary (1998 paper §3, §6).
//!
//! A sub-model holds counts, sums and sums of squares, never means. Sums are kept as integers, so that
//! [`SubModel::merge`] is associative and commutative to the last bit and [`SubModel::new`] is its identity: runs, files,
//! threads and machines combine in any order with one result.

use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::kept_ids::KeptIds;
use crate::sketch::Sketch;
use crate::starts::Starts;
use crate::stays::Stays;
use crate::timing::{CallLabel, CallTotal, PairTotal};
use dyelog_diagnostic::names::{Name, Names};

pub(crate) type FxIndexMap<K, V> = IndexMap<K, V, FxBuildHasher>;

/// How many sample origins an entry keeps.
pub const WITNESSES: usize = 3;

/// Femtoseconds in a second.
const FEMTO: f64 = 1e15;
/// Square nanoseconds in a square second.
const NANO_SQUARED: f64 = 1e18;

/// A sum of seconds, exact: an integer number of femtoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seconds(pub i128);

impl Seconds {
    /// From seconds, rounded to the femtosecond. What is not a number counts as nothing.
    pub fn from_f64(seconds: f64) -> Self {
        Self(whole(seconds * FEMTO))
    }

    /// In seconds.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / FEMTO
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// The nearest whole number, halves away from zero, and 0 for what is not a number: `value.round() as i128` without the calls
/// of functions that it comes to on many machines.
#[inline]
fn whole(value: f64) -> i128 {
    narrow(value).map_or_else(|| value.round() as i128, i128::from)
}

/// The same where it surely fits.
#[inline]
fn narrow(value: f64) -> Option<i64> {
    /// Two to the power of 63.
    const WIDE: f64 = 9_223_372_036_854_775_808.0;
    (value.abs() < WIDE).then(|| {
        let cut = value as i64;
        // Exact: above 2^52 there is no fraction, below it the difference fits.
        let rest = value - cut as f64;
        cut + i64::from(rest >= 0.5) - i64::from(rest <= -0.5)
    })
}

/// Count, sum and sum of squares of a quantity in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    /// How many values.
    pub count: u64,
    /// Their sum.
    pub sum: Seconds,
    /// The sum of their squares, in 10^-18 square seconds.
    pub squares: i128,
}

impl Moments {
    /// Takes in a value in seconds.
    pub fn add(&mut self, seconds: f64) {
        self.count += 1;
        self.sum = self.sum.plus(Seconds::from_f64(seconds));
        self.squares = self.squares.saturating_add(whole(seconds * seconds * NANO_SQUARED));
    }

    /// The sum and the squares of a single value, where they fit 64 bits.
    #[inline]
    pub fn of_one(seconds: f64) -> Option<(i64, i64)> {
        Some((narrow(seconds * FEMTO)?, narrow(seconds * seconds * NANO_SQUARED)?))
    }

    /// Takes in all values of the other.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum = self.sum.plus(other.sum);
        self.squares = self.squares.saturating_add(other.squares);
    }

    /// The mean, where there is any value.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum.as_f64() / self.count as f64)
    }

    /// The squared coefficient of variation, where there are two values or more and the mean is positive.
    pub fn cv2(&self) -> Option<f64> {
        let mean = self.mean()?;
        (self.count > 1 && mean > 0.0)
            .then(|| ((self.squares as f64 / NANO_SQUARED / self.count as f64) / (mean * mean) - 1.0).max(0.0))
    }
}

/// The type of the interaction that an entry serves (1998 paper §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Interaction {
    /// `Cu`: the customer, source of a scenario's load.
    Customer,
    /// `R`: remote procedure call or rendezvous.
    Rendezvous,
    /// `A`: asynchronous.
    Asynchronous,
    /// `F`: forwarding.
    Forwarding,
}

impl Interaction {
    /// The paper's label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Customer => "Cu",
            Self::Rendezvous => "R",
            Self::Asynchronous => "A",
            Self::Forwarding => "F",
        }
    }

    /// The type of that label.
    pub fn from_label(label: &str) -> Option<Self> {
        [Self::Customer, Self::Rendezvous, Self::Asynchronous, Self::Forwarding]
            .into_iter()
            .find(|interaction| interaction.label() == label)
    }
}

/// How entries are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EntryMerge {
    /// By task, type and the name of the service, or of the message, where there is one; else by structure.
    #[default]
    Name,
    /// By the same and all requests with their multiplicities, bottom-up.
    Structure,
    /// Not at all: an entry for each place in an operation, or for each occurrence among messages.
    None,
}

impl EntryMerge {
    /// The name by which saved sub-models say how they were made.
    pub fn label(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Structure => "structure",
            Self::None => "none",
        }
    }
}

/// Index of an entry in [`SubModel::entries`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryIndex(pub u32);

impl EntryIndex {
    /// The position in the vector.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Identity of an entry across sub-models: a 128-bit digest of its task, type, service name and, where entries merge by
/// structure or not at all, of its requests or of its path. Equal keys are the same entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryKey(pub u128);

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

/// An activity (resource function) of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActivityTotal {
    /// How often it was seen over all invocations.
    pub count: u64,
    /// Measured CPU demand of those events that carry it.
    pub cpu: Moments,
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
    /// Time that a call made here was on its way, there and back, per call that waited for its reply and of which both halves
    /// were recorded: the network, and what waits at its ends.
    pub network: Moments,
    /// By kind and entry.
    pub requests: FxIndexMap<(RequestKind, EntryIndex), RequestTotal>,
    /// Time that passes here without work, beside calls on their way: of a branch, the time from the fork to its first call. It is
    /// negative where calls in sequence overlap by what clocks do not tell apart. Completion derives it from [`EntryTotal::calls`].
    pub delay: Seconds,
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
    /// How many of its invocations were taken from an entry of another type that was outvoted. Completion counts them.
    pub outvoted: u64,
    /// The least origins of invocations, in order, at most [`WITNESSES`].
    pub witnesses: Vec<Witness>,
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

/// Traces by clocks that tell no date, such as those that count from the beginning of a recording: each was recorded for itself, however
/// their times compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Undated {
    /// How many traces.
    pub traces: u64,
    /// Operations that start in them.
    pub operations: u64,
    /// From the first start to the last in each, nanoseconds, all together.
    pub nanoseconds: u64,
}

impl Undated {
    fn merge(&mut self, other: &Self) {
        self.traces = self.traces.saturating_add(other.traces);
        self.operations = self.operations.saturating_add(other.operations);
        self.nanoseconds = self.nanoseconds.saturating_add(other.nanoseconds);
    }
}

/// A scenario, over all its operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScenarioTotal {
    /// How many operations.
    pub operations: u64,
    /// How many of these are parts of operations only, whose beginning was lost.
    pub fragments: u64,
    /// How many of the fragments are all that is left of their operation.
    pub headless: u64,
    /// How many operations more there were whose first span was lost. Completion counts them.
    pub beheaded: u64,
    /// How they were sampled, as far as traces tell.
    pub sampled: Sampled,
    /// The trace identifiers of those that tell nothing of it.
    pub ids: KeptIds,
    /// Earliest and latest start of an operation, nanoseconds from the trace's epoch, where known.
    pub first_start: Option<i64>,
    /// Latest start.
    pub last_start: Option<i64>,
    /// Latest end.
    pub last_end: Option<i64>,
    /// Where between the earliest and the latest the others started; sub-models that were saved without it have nothing here.
    pub starts: Starts,
    /// What of it is by clocks that tell no date.
    pub undated: Undated,
    /// Response times of operations that have times: from the first event to the root thread's last.
    pub response: Moments,
    /// How these times are spread; sub-models that were saved without it have nothing here.
    pub responses: Sketch,
    /// How many customers were seen at most to begin operations, each of them one after another; 0 where nobody tells.
    pub clients: u64,
    /// Times from the end of a customer's operation to the start of its next.
    pub think: Moments,
}

/// Of how many operations those stand that were kept in sampling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampled {
    /// How many operations it is known of.
    pub operations: u64,
    /// Of how many these stand, in thousandths.
    pub thousandths: u64,
}

impl Sampled {
    /// Takes in an operation that stands for so many.
    pub fn add(&mut self, weight: f64) {
        self.operations += 1;
        self.thousandths = self.thousandths.saturating_add((weight * 1000.0).round() as u64);
    }

    fn merge(&mut self, other: &Self) {
        self.operations = self.operations.saturating_add(other.operations);
        self.thousandths = self.thousandths.saturating_add(other.thousandths);
    }
}

/// What traces show of a system.
#[derive(Clone, Debug, Default)]
pub struct SubModel {
    /// Names of tasks, services, activities and scenarios.
    pub names: Names,
    entries: Vec<EntryTotal>,
    by_key: FxHashMap<EntryKey, EntryIndex>,
    /// By scenario name.
    pub scenarios: FxIndexMap<Name, ScenarioTotal>,
    /// How many threads of a task were seen at most, by its name, where traces tell.
    pub instances: FxIndexMap<Name, u32>,
    /// Operations that were set aside because they are damaged.
    pub set_aside: u64,
    /// Whether some operation came from traces whose tasks serve several requests at once, as services seen in spans do. Tasks of
    /// the native format are sequential.
    pub concurrent: bool,
}

impl SubModel {
    /// The empty sub-model, identity of [`SubModel::merge`].
    pub fn new() -> Self {
        Self::default()
    }

    /// All entries, in order of arrival, which means nothing: use [`SubModel::canonical_order`] for what is shown.
    pub fn entries(&self) -> &[EntryTotal] {
        &self.entries
    }

    /// One entry.
    pub fn entry(&self, index: EntryIndex) -> &EntryTotal {
        &self.entries[index.index()]
    }

    /// One entry, to add to.
    pub fn entry_mut(&mut self, index: EntryIndex) -> &mut EntryTotal {
        &mut self.entries[index.index()]
    }

    /// The entry of that key, if there is one.
    pub fn entry_of(&self, key: EntryKey) -> Option<EntryIndex> {
        self.by_key.get(&key).copied()
    }

    /// The entry of that key, made now, with no invocation, if there is none yet.
    ///
    /// # Panics
    /// When there are more than 2^32 entries.
    pub fn ensure_entry(
        &mut self,
        key: EntryKey,
        task: Name,
        instance: u32,
        interaction: Interaction,
        service: Name,
    ) -> EntryIndex {
        if let Some(&index) = self.by_key.get(&key) {
            return index;
        }
        let index = EntryIndex(u32::try_from(self.entries.len()).expect("fewer than 2^32 entries fit in memory"));
        self.entries.push(EntryTotal {
            key,
            task,
            instance,
            interaction,
            service,
            invocations: 0,
            work: FxIndexMap::default(),
            blocks: FxIndexMap::default(),
            moved_waits: 0,
            response: Moments::default(),
            responses: Sketch::default(),
            calls: FxIndexMap::default(),
            pairs: FxIndexMap::default(),
            stays: Stays::default(),
            outvoted: 0,
            witnesses: Vec::new(),
        });
        self.by_key.insert(key, index);
        index
    }

    /// Takes in all that the other has seen.
    ///
    /// # Panics
    /// When there are more than 2^32 names or entries.
    pub fn merge(&mut self, other: &Self) {
        let names: Vec<Name> = (0..other.names.len())
            .map(|number| {
                let number = u32::try_from(number).expect("names are counted in 32 bits");
                self.names.intern(other.names.text(Name(number)))
            })
            .collect();
        let indices: Vec<EntryIndex> = other
            .entries
            .iter()
            .map(|entry| {
                self.ensure_entry(
                    entry.key,
                    names[entry.task.index()],
                    entry.instance,
                    entry.interaction,
                    names[entry.service.index()],
                )
            })
            .collect();
        for (entry, &index) in other.entries.iter().zip(&indices) {
            let own = &mut self.entries[index.index()];
            own.invocations += entry.invocations;
            for (position, work) in &entry.work {
                own.work.entry(*position).or_default().merge(work, &names, &indices);
            }
            for (key, block) in &entry.blocks {
                own.blocks.entry(*key).or_default().merge(block);
            }
            own.moved_waits += entry.moved_waits;
            own.response.merge(&entry.response);
            own.responses.merge(&entry.responses);
            own.stays.merge(&entry.stays);
            own.outvoted += entry.outvoted;
            for (label, call) in &entry.calls {
                own.calls.entry(label.renumbered(&indices)).or_default().merge(call);
            }
            for ((left, right), pair) in &entry.pairs {
                let pair_of = (left.renumbered(&indices), right.renumbered(&indices));
                own.pairs.entry(pair_of).or_default().merge(pair);
            }
            for witness in &entry.witnesses {
                own.add_witness(witness);
            }
        }
        for (scenario, total) in &other.scenarios {
            self.scenarios.entry(names[scenario.index()]).or_default().merge(total);
        }
        for (task, &count) in &other.instances {
            let own = self.instances.entry(names[task.index()]).or_default();
            *own = (*own).max(count);
        }
        self.set_aside += other.set_aside;
        self.concurrent |= other.concurrent;
    }

    /// Entries in an order that depends on nothing but what they are: customers first, then by task, instance, type,
    /// service and key.
    ///
    /// # Panics
    /// When there are more than 2^32 entries.
    pub fn canonical_order(&self) -> Vec<EntryIndex> {
        let mut order: Vec<EntryIndex> = (0..self.entries.len())
            .map(|index| EntryIndex(u32::try_from(index).expect("entries are counted in 32 bits")))
            .collect();
        order.sort_by(|&left, &right| {
            let (left, right) = (self.entry(left), self.entry(right));
            let rank = |entry: &EntryTotal| entry.interaction != Interaction::Customer;
            rank(left)
                .cmp(&rank(right))
                .then_with(|| self.names.text(left.task).cmp(self.names.text(right.task)))
                .then_with(|| left.instance.cmp(&right.instance))
                .then_with(|| left.interaction.cmp(&right.interaction))
                .then_with(|| self.names.text(left.service).cmp(self.names.text(right.service)))
                .then_with(|| left.key.cmp(&right.key))
        });
        order
    }
}

impl EntryTotal {
    /// Time in which invocations worked by themselves, seconds, all of them together.
    pub fn own_time(&self) -> f64 {
        self.work.values().map(|work| work.exclusive.sum.as_f64()).sum()
    }

    /// Takes in the invocations of another entry of the same service and sub-model.
    pub fn take_in(&mut self, other: &Self) {
        self.invocations += other.invocations;
        self.outvoted += other.outvoted;
        self.response.merge(&other.response);
        self.responses.merge(&other.responses);
        self.stays.merge(&other.stays);
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

impl ActivityTotal {
    /// Takes in what the other has seen.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.cpu.merge(&other.cpu);
    }
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

    /// Takes in what the other has seen.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.squares = self.squares.saturating_add(other.squares);
    }
}

impl WorkTotal {
    /// Takes in other work of the same sub-model.
    pub fn add(&mut self, other: &Self) {
        self.visits += other.visits;
        self.exclusive.merge(&other.exclusive);
        self.network.merge(&other.network);
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
        for ((kind, to), request) in &other.requests {
            self.requests.entry((*kind, entries[to.index()])).or_default().merge(request);
        }
        self.delay = self.delay.plus(other.delay);
    }
}

impl ScenarioTotal {
    /// Takes in all operations of the other.
    pub fn merge(&mut self, other: &Self) {
        let least = |left: Option<i64>, right: Option<i64>| left.into_iter().chain(right).min();
        self.operations += other.operations;
        self.fragments += other.fragments;
        self.headless += other.headless;
        self.beheaded += other.beheaded;
        self.sampled.merge(&other.sampled);
        self.ids.merge(&other.ids);
        self.first_start = least(self.first_start, other.first_start);
        self.last_start = self.last_start.max(other.last_start);
        self.last_end = self.last_end.max(other.last_end);
        self.starts.merge(&other.starts);
        self.undated.merge(&other.undated);
        self.response.merge(&other.response);
        self.responses.merge(&other.responses);
        self.clients = self.clients.max(other.clients);
        self.think.merge(&other.think);
    }
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn rounding_is_that_of_the_standard_library() {
        let mut values =
            vec![0.0, 0.5, 0.499_999_999_999_999_94, 1.5, 2.5, 1e15 + 0.5, 4.5e15 + 0.5, 9e15, 9.2e18, 9.3e18, 1e30];
        values.extend([f64::MAX, f64::INFINITY, f64::NAN, f64::MIN_POSITIVE]);
        let mut state = 1u64;
        for _ in 0..10_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            values.push(f64::from_bits(state));
            values.push((state >> 12) as f64 / f64::from(1u32 << (state % 31)));
        }
        for value in values {
            assert_eq!(whole(value), value.round() as i128, "{value:e}");
            assert_eq!(whole(-value), (-value).round() as i128, "-{value:e}");
        }
    }
}
