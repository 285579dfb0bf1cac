//! The sub-model: what traces show of a system, as a mergeable summary (1998 paper §3, §6).
//!
//! A sub-model holds counts, sums and sums of squares, never means. Sums are kept as integers, so that
//! [`SubModel::merge`] is associative and commutative to the last bit and [`SubModel::new`] is its identity: runs, files,
//! threads and machines combine in any order with one result.

mod entry;
mod moved;
mod scenario;
mod sums;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::batches::Batches;
use crate::deployment::Deployment;
use crate::sketch::Sketch;
use crate::stays::Stays;
use crate::together;
use dyelog_diagnostic::names::{Name, Names};

pub use entry::{
    ActivityTotal, BlockTotal, Branch, BranchTotal, EntryTotal, Position, RequestKind, RequestTotal, WITNESSES,
    Witness, WorkTotal,
};
pub use scenario::{Sampled, ScenarioTotal, Settled, Undated, common_step};
pub(crate) use sums::Share;
pub use sums::{Moments, Seconds};

pub(crate) type FxIndexMap<K, V> = IndexMap<K, V, FxBuildHasher>;

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

/// Which invocations are of one entry.
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

    /// The way of that name.
    pub fn of_label(label: &str) -> Option<Self> {
        [Self::Name, Self::Structure, Self::None].into_iter().find(|merge| merge.label() == label)
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

/// In what the keys of an entry that was recorded and of the same one that was not differ.
const APART: u128 = u128::from_be_bytes(*b"recorded nothing");

impl EntryKey {
    /// The key of the same entry, where its service recorded nothing of it and this is to be kept apart; of that key, the key of the entry.
    #[must_use]
    pub fn apart(self) -> Self {
        Self(self.0 ^ APART)
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
    /// Which instances of tasks were seen on which machines, where traces tell.
    pub deployment: Deployment,
    /// Operations that were set aside because they are damaged.
    pub set_aside: u64,
    /// Times at which all operations were taken in, whether any came or not: by begin and end, nanoseconds from the trace's epoch, in order and apart. Empty where nothing but
    /// operations tells when they were recorded, as in files.
    pub observed: Vec<(i64, i64)>,
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

    /// Whether it holds no operation, whole or set aside.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.scenarios.is_empty() && self.set_aside == 0
    }

    /// One entry.
    pub fn entry(&self, index: EntryIndex) -> &EntryTotal {
        &self.entries[index.index()]
    }

    /// One entry, to add to.
    pub fn entry_mut(&mut self, index: EntryIndex) -> &mut EntryTotal {
        &mut self.entries[index.index()]
    }

    /// Brings all that is kept of times in its order, so that it is not put in order by each who asks.
    pub fn sort_times(&mut self) {
        together::each(self.threads(), &mut self.entries, |entry| {
            entry.stays.sort();
            entry.visits.sort();
        });
        for total in self.scenarios.values_mut() {
            total.stays.sort();
        }
    }

    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        let of_names: usize = (0..self.names.len()).map(|number| 64 + self.names.text(Name(number as u32)).len()).sum();
        let of_scenario =
            |total: &ScenarioTotal| size_of::<ScenarioTotal>() + total.stays.bytes() + 64 * total.starts.cells().len();
        let of_scenarios: usize = self.scenarios.values().map(of_scenario).sum();
        of_names + of_scenarios + self.entries.iter().map(EntryTotal::bytes).sum::<usize>()
    }

    /// How many threads are worth it to look at all times that are kept.
    pub fn threads(&self) -> usize {
        together::threads(self.entries.iter().map(|entry| entry.stays.size() + entry.visits.size()).sum())
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
            untimed_delays: 0,
            response: Moments::default(),
            responses: Sketch::default(),
            calls: FxIndexMap::default(),
            pairs: FxIndexMap::default(),
            stays: Stays::default(),
            visits: Stays::default(),
            way: Moments::default(),
            batches: Batches::default(),
            outvoted: 0,
            inferred: 0,
            inferred_requests: 0,
            undated: 0,
            silent: 0,
            may_wait: 0,
            failures: 0,
            given_up: 0,
            retries: 0,
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
            self.entries[index.index()].merge(entry, &names, &indices);
        }
        for (scenario, total) in &other.scenarios {
            self.scenarios.entry(names[scenario.index()]).or_default().merge(total);
        }
        for (task, &count) in &other.instances {
            let own = self.instances.entry(names[task.index()]).or_default();
            *own = (*own).max(count);
        }
        self.deployment.merge(&other.deployment, &self.names, &names);
        self.set_aside += other.set_aside;
        self.concurrent |= other.concurrent;
        self.observe(&other.observed);
    }

    /// Adds times at which all operations were taken in; of one that does not end after it begins, nothing.
    pub fn observe(&mut self, times: &[(i64, i64)]) {
        if times.is_empty() {
            return;
        }
        self.observed.extend(times.iter().filter(|(from, to)| from < to));
        self.observed.sort_unstable();
        self.observed.dedup_by(|next, own| {
            let is_one = next.0 <= own.1;
            if is_one {
                own.1 = own.1.max(next.1);
            }
            is_one
        });
    }

    /// Takes entries out with all requests to them.
    ///
    /// # Panics
    /// When there are more than 2^32 entries.
    pub fn remove_entries(&mut self, gone: impl Fn(&EntryTotal) -> bool) {
        let count = |index: usize| u32::try_from(index).expect("entries are counted in 32 bits");
        let left: Vec<bool> = self.entries.iter().map(|entry| !gone(entry)).collect();
        let mut numbers = vec![None; left.len()];
        for (number, old) in left.iter().enumerate().filter(|(_, stays)| **stays).map(|(old, _)| old).enumerate() {
            numbers[old] = Some(EntryIndex(count(number)));
        }
        let mut stays = left.iter();
        self.entries.retain(|_| stays.next().copied().unwrap_or(true));
        for entry in &mut self.entries {
            entry.renumber(&numbers);
        }
        let keys = self.entries.iter().enumerate();
        self.by_key = keys.map(|(index, entry)| (entry.key, EntryIndex(count(index)))).collect();
    }

    /// Gives entries other keys. Entries that come to have one key become one.
    ///
    /// # Panics
    /// When there are more than 2^32 names or entries.
    pub fn rekey(&mut self, key_of: impl Fn(&EntryTotal) -> EntryKey) {
        let keys: Vec<EntryKey> = self.entries.iter().map(key_of).collect();
        if self.entries.iter().zip(&keys).all(|(entry, key)| entry.key == *key) {
            return;
        }
        let before = std::mem::take(&mut self.entries);
        self.by_key.clear();
        let entry = |(own, key): (&EntryTotal, EntryKey)| {
            self.ensure_entry(key, own.task, own.instance, own.interaction, own.service)
        };
        let numbers: Vec<EntryIndex> = before.iter().zip(keys).map(entry).collect();
        let number = |number: usize| Name(u32::try_from(number).expect("names are counted in 32 bits"));
        let names: Vec<Name> = (0..self.names.len()).map(number).collect();
        for (own, number) in before.iter().zip(&numbers) {
            self.entries[number.index()].merge(own, &names, &numbers);
        }
        let keys: Vec<EntryKey> = self.entries.iter().map(|entry| entry.key).collect();
        for entry in &mut self.entries {
            entry.order_pairs(&keys);
        }
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
