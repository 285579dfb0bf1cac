//! Which entry of the sub-model each entry of an operation is.
//!
//! An entry's key is a digest of what makes it the same as others. What a key is made of comes again and again, so entries are
//! found by that, in small numbers, and a digest is computed once for each entry of the sub-model.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::driver::{Entry, EntryNumber, Outcome};
use crate::summary::groups::Groups;
use crate::summary::{EntryMerge, kind_of, outcomes, request_phase};
use dyelog_diagnostic::names::{Name, Names};
use dyelog_lqn::digest::Digest;
use dyelog_lqn::submodel::{EntryIndex, EntryKey, Interaction, RequestKind, SubModel};
use dyelog_trace::{Toeg, TraceNames, VisitEvidence};

/// What an entry is by itself, without its requests: its task, type and service, or its scenario.
#[derive(Clone, Copy, Debug)]
struct Base {
    digest: Digest,
    /// In the names of the sub-model.
    task: Name,
    instance: u32,
    interaction: Interaction,
    service: Name,
    /// Whether the trace names its service.
    named: bool,
    is_customer: bool,
    /// Whether it is of invocations that its service recorded nothing of, apart from others.
    is_apart: bool,
    /// The entry whose key is that digest, once it was asked for.
    plain: Option<EntryIndex>,
    /// The entry of that shape that requests nothing, once it was asked for.
    leaf: Option<EntryIndex>,
}

/// Finds entries of one sub-model by what they are in operations of one reader.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// What tells entries apart.
    merge: EntryMerge,
    /// Entries that are apart.
    apart: FxHashSet<EntryIndex>,
    /// Whether invocations that a service recorded nothing of are apart from those that it recorded, where names tell entries apart.
    is_silent_apart: bool,
    bases: Vec<Base>,
    /// By task and service, or by scenario and `None`; by type; by the number of barriers before; and by whether they are apart.
    numbers: FxHashMap<(u32, Option<Name>, Interaction, u32, bool), u32>,
    /// By base and requests, as [`Entries::shape`] has them.
    shapes: FxHashMap<Box<[u32]>, EntryIndex>,
    /// The sub-model's name for each name of the trace; `u32::MAX` where not asked for yet.
    names: Vec<Name>,
    /// Digest of each name of the trace.
    digests: Vec<Option<u64>>,
    /// Bases of the operation's entries.
    own: Vec<u32>,
    /// One entry's requests: phase and kind, and whom it asks.
    children: Vec<(u32, u32)>,
    shape: Vec<u32>,
}

const UNSET: Name = Name(u32::MAX);

/// Marks in a shape a request to an entry that came before, of which the base counts.
const BACK: u32 = 1 << 8;

impl Entries {
    /// None found yet.
    pub(super) fn new(merge: EntryMerge, is_silent_apart: bool) -> Self {
        Self { merge, is_silent_apart: is_silent_apart && merge == EntryMerge::Name, ..Self::default() }
    }

    /// The sub-model's name for a name of the trace.
    #[inline]
    pub(super) fn name(&mut self, submodel: &mut SubModel, names: &Names, name: Name) -> Name {
        if self.names.len() <= name.index() {
            self.names.resize(names.len().max(name.index() + 1), UNSET);
        }
        let known = self.names[name.index()];
        if known != UNSET {
            return known;
        }
        let new = submodel.names.intern(names.text(name));
        self.names[name.index()] = new;
        new
    }

    fn digest(&mut self, names: &Names, name: Name) -> u64 {
        if self.digests.len() <= name.index() {
            self.digests.resize(names.len().max(name.index() + 1), None);
        }
        *self.digests[name.index()].get_or_insert_with(|| Digest::of_name(names.text(name)))
    }

    /// The entries of an operation, in its order, made in the sub-model where they are new.
    pub(super) fn find(
        &mut self,
        submodel: &mut SubModel,
        toeg: &Toeg,
        names: &TraceNames,
        outcome: &Outcome,
        requests: &Groups,
        found: &mut Vec<EntryIndex>,
    ) {
        let scenario = toeg.operation().scenario;
        let mut own = std::mem::take(&mut self.own);
        own.clear();
        own.extend((0..).zip(&outcome.entries).map(|(number, entry)| {
            let (_, part) = outcome.part(number);
            let is_apart =
                self.is_silent_apart && outcomes::evidence(toeg, names, entry.accepted_at) == VisitEvidence::Silent;
            self.base(submodel, names, scenario, (entry, part, is_apart))
        }));
        self.own = own;
        match self.merge {
            EntryMerge::None => self.by_path(submodel, outcome, requests, found),
            EntryMerge::Name | EntryMerge::Structure => self.by_requests(submodel, outcome, requests, found),
        }
    }

    /// The number of an entry's base.
    fn base(
        &mut self,
        submodel: &mut SubModel,
        names: &TraceNames,
        scenario: Name,
        (entry, part, is_apart): (&Entry, u32, bool),
    ) -> u32 {
        let is_apart = is_apart && entry.task.is_some() && entry.service.is_some();
        let key = match entry.task {
            None => (scenario.0, None, entry.interaction, part, is_apart),
            Some(task) => (task.0, Some(entry.service), entry.interaction, part, is_apart),
        };
        if let Some(&number) = self.numbers.get(&key) {
            return number;
        }
        let mut base = match entry.task {
            None => Base {
                digest: Digest::of(2).word(self.digest(&names.names, scenario)),
                task: self.name(submodel, &names.names, scenario),
                instance: 1,
                interaction: Interaction::Customer,
                service: Name::NONE,
                named: false,
                is_customer: true,
                is_apart,
                plain: None,
                leaf: None,
            },
            Some(task) => {
                let task = names.task(task);
                Base {
                    digest: Digest::of_entry(
                        self.digest(&names.names, task.name),
                        task.instance,
                        entry.interaction,
                        self.digest(&names.names, entry.service),
                    ),
                    task: self.name(submodel, &names.names, task.name),
                    instance: task.instance,
                    interaction: entry.interaction,
                    service: self.name(submodel, &names.names, entry.service),
                    named: entry.service.is_some(),
                    is_customer: false,
                    is_apart,
                    plain: None,
                    leaf: None,
                }
            }
        };
        if part > 0 {
            base.digest = base.digest.word(10).word(u64::from(part));
        }
        let number = u32::try_from(self.bases.len()).expect("tasks and services are counted in 32 bits");
        self.bases.push(base);
        self.numbers.insert(key, number);
        number
    }

    /// The key of an entry, the same whether it is apart or not.
    pub(super) fn key_of(&self, submodel: &SubModel, entry: EntryIndex) -> EntryKey {
        let key = submodel.entry(entry).key;
        if self.apart.contains(&entry) { key.apart() } else { key }
    }

    fn ensure(submodel: &mut SubModel, base: &Base, key: EntryKey) -> EntryIndex {
        submodel.ensure_entry(key, base.task, base.instance, base.interaction, base.service)
    }

    /// By the path from the customer. Requests go from earlier to later entries, so a path is known before what hangs on it.
    fn by_path(&mut self, submodel: &mut SubModel, outcome: &Outcome, requests: &Groups, found: &mut Vec<EntryIndex>) {
        let base = |number: usize| &self.bases[self.own[number] as usize];
        let mut keys: Vec<EntryKey> = (0..self.own.len()).map(|number| base(number).digest.finish()).collect();
        for number in in_order(outcome) {
            for (place, &request) in requests.of(number).iter().enumerate() {
                let to = outcome.requests[request as usize].to as usize;
                if to < keys.len() && is_later(outcome, to, number) {
                    keys[to] = base(to).digest.word(5).word(place as u64).key(keys[number]).finish();
                }
            }
        }
        found.clear();
        found.extend(keys.iter().enumerate().map(|(number, &key)| Self::ensure(submodel, base(number), key)));
    }

    /// By name where there is one and names count, else by requests, bottom-up.
    fn by_requests(
        &mut self,
        submodel: &mut SubModel,
        outcome: &Outcome,
        requests: &Groups,
        found: &mut Vec<EntryIndex>,
    ) {
        found.clear();
        found.resize(self.own.len(), EntryIndex(0));
        for number in in_order(outcome).rev() {
            let base = &mut self.bases[self.own[number] as usize];
            if base.is_customer || (self.merge == EntryMerge::Name && base.named) {
                found[number] = match base.plain {
                    Some(entry) => entry,
                    None => {
                        let key = base.digest.finish();
                        let entry = Self::ensure(submodel, base, if base.is_apart { key.apart() } else { key });
                        if base.is_apart {
                            self.apart.insert(entry);
                        }
                        *base.plain.insert(entry)
                    }
                };
                continue;
            }
            let requests = requests.of(number);
            if let (true, Some(leaf)) = (requests.is_empty(), base.leaf) {
                found[number] = leaf;
                continue;
            }
            self.children.clear();
            for &request in requests {
                let request = &outcome.requests[request as usize];
                let Some(kind) = kind_of(outcome, request.to) else { continue };
                let how = u32::from(request_phase(outcome, request)) | (kind as u32) << 4;
                let to = request.to as usize;
                self.children.push(if is_later(outcome, to, number) {
                    (how, found[to].0)
                } else {
                    (how | BACK, self.own[to])
                });
            }
            self.children.sort_unstable();
            self.children.dedup();
            self.shape.clear();
            self.shape.push(self.own[number]);
            self.shape.extend(self.children.iter().flat_map(|&(how, whom)| [how, whom]));
            found[number] = match self.shapes.get(&self.shape[..]) {
                Some(&entry) => entry,
                None => self.new_shape(submodel, self.own[number]),
            };
            if requests.is_empty() {
                self.bases[self.own[number] as usize].leaf = Some(found[number]);
            }
        }
    }

    /// The entry of the shape at hand, which was not met before.
    fn new_shape(&mut self, submodel: &mut SubModel, base: u32) -> EntryIndex {
        let mut children: Vec<(u8, u32, EntryKey)> = self
            .children
            .iter()
            .map(|&(how, whom)| {
                let key = if how & BACK == 0 {
                    // Who asks what was not recorded is the same as who asks what was.
                    self.key_of(submodel, EntryIndex(whom))
                } else {
                    self.bases[whom as usize].digest.finish()
                };
                ((how & 0xf) as u8, (how >> 4) & 0xf, key)
            })
            .collect();
        children.sort_unstable();
        children.dedup();
        let base = &self.bases[base as usize];
        let digest = children.iter().fold(base.digest.word(4), |digest, (phase, kind, key)| {
            digest.word(u64::from(*phase)).word(u64::from(*kind)).key(*key)
        });
        let entry = Self::ensure(submodel, base, digest.finish());
        self.shapes.insert(self.shape.as_slice().into(), entry);
        entry
    }
}

/// An operation's entries, each after those that request it: what follows a barrier comes right after what is before it.
fn in_order(outcome: &Outcome) -> impl DoubleEndedIterator<Item = usize> + use<> {
    let mut order: Vec<usize> = (0..outcome.entries.len()).collect();
    if !outcome.parts.is_empty() {
        order.sort_by_key(|number| outcome.part(*number as EntryNumber));
    }
    order.into_iter()
}

/// Whether an entry comes after another one in that order.
fn is_later(outcome: &Outcome, entry: usize, other: usize) -> bool {
    if outcome.parts.is_empty() {
        return entry > other;
    }
    outcome.part(entry as EntryNumber) > outcome.part(other as EntryNumber)
}

/// Kinds are told apart by their numbers in shapes and digests.
const _: () = assert!(
    RequestKind::Synchronous as u32 == 0 && RequestKind::Asynchronous as u32 == 1 && RequestKind::Forward as u32 == 2
);
