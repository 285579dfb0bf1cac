//! Entries as they come to be: by what an occurrence is and asks for (2005 paper, part D).
//!
//! Two occurrences are one entry when they belong to one task, are asked in the same way and initiate the same requests, as often. So
//! everything that equal occurrences add up is kept by that *shape*, and goes to the entries of the sub-model in the end.

use rustc_hash::FxHashMap;

use dyelog_diagnostic::names::{Name, Names};
use dyelog_lqn::digest::Digest;
pub use dyelog_lqn::submodel::EntryMerge;
use dyelog_lqn::submodel::{EntryIndex, Interaction, Moments, Position, RequestKind, SubModel, Witness};

/// What an occurrence is, without what it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Base {
    /// The task, or the scenario of a customer.
    pub task: Name,
    /// The name of the message that asked.
    pub label: Name,
    /// `Rendezvous` where the request was answered, else `Asynchronous` or `Customer`.
    pub interaction: Interaction,
}

/// Work in one phase of an occurrence.
#[derive(Clone, Copy, Debug, Default)]
pub struct PhaseWork {
    /// Processor time, seconds, where the trace tells.
    pub cpu: Option<f64>,
    /// Time not blocked, seconds, where the trace tells.
    pub busy: Option<f64>,
}

/// A request of an occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    /// The phase in which it is made, from 0.
    pub phase: usize,
    /// How it is made.
    pub kind: RequestKind,
    /// The entry that is asked; [`PENDING`] until that is known.
    pub entry: EntryIndex,
}

/// The entry of an occurrence that is not complete.
pub const PENDING: EntryIndex = EntryIndex(u32::MAX);

impl Default for Request {
    fn default() -> Self {
        Self { phase: 0, kind: RequestKind::Synchronous, entry: PENDING }
    }
}

impl Request {
    /// Phase and kind as one number, which digests of entries are made of.
    fn how(&self) -> u32 {
        (self.phase as u32) << 2 | self.kind as u32
    }
}

/// Network latency of a call, both ways.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// The phase of the call, from 0.
    pub phase: usize,
    /// Seconds.
    pub seconds: f64,
}

impl Base {
    /// Of the customers of a scenario.
    pub fn customer(scenario: Name) -> Self {
        Self { task: scenario, label: Name::NONE, interaction: Interaction::Customer }
    }
}

/// What occurrences of one shape add up to.
#[derive(Clone, Debug)]
struct Total {
    entry: EntryIndex,
    /// Requests, each so often.
    requests: Box<[(Request, u32)]>,
    count: u64,
    /// Whether it should have an entry of its own and has none.
    alike: bool,
    worked: [u64; 2],
    cpu: [Moments; 2],
    busy: [Moments; 2],
    ways: [Moments; 2],
}

/// All shapes of a trace.
#[derive(Debug, Default)]
pub struct Signatures {
    merge: EntryMerge,
    by_shape: FxHashMap<Box<[u32]>, u32>,
    totals: Vec<Total>,
    bases: FxHashMap<Base, EntryIndex>,
    base_numbers: FxHashMap<Base, u32>,
    shape: Vec<u32>,
    /// The sub-model that is made.
    pub submodel: SubModel,
    occurrences: u64,
    /// Entries of their own that occurrences have for what they ask for.
    own: usize,
    /// Occurrences that have none for that, because there are too many.
    pub alike: u64,
}

/// How many shapes are kept before they are added to the sub-model.
const MOST: usize = 1 << 17;

/// How many entries there may be for what occurrences ask for: traces without any order in them have no end of such.
const MOST_OWN: usize = 1 << 16;

impl Signatures {
    /// None yet.
    pub fn new(merge: EntryMerge) -> Self {
        Self { merge, ..Self::default() }
    }

    /// Whether occurrences of a base are one entry, whatever they ask for.
    pub fn is_named(&self, base: Base) -> bool {
        base.interaction == Interaction::Customer || self.merge == EntryMerge::Name && base.label.is_some()
    }

    /// The entry of all occurrences of a base.
    pub fn plain(&mut self, names: &Names, base: Base) -> EntryIndex {
        if let Some(&entry) = self.bases.get(&base) {
            return entry;
        }
        let entry = self.ensure(names, base, digest(names, base));
        self.bases.insert(base, entry);
        entry
    }

    fn ensure(&mut self, names: &Names, base: Base, digest: Digest) -> EntryIndex {
        let task = self.submodel.names.intern(names.text(base.task));
        let label = if base.interaction == Interaction::Customer { "" } else { names.text(base.label) };
        let service = self.submodel.names.intern(label);
        self.submodel.ensure_entry(digest.finish(), task, 1, base.interaction, service)
    }

    /// Adds an occurrence: its requests, which it sorts, its work by phase, and the network latency of its calls.
    pub fn add(
        &mut self,
        names: &Names,
        base: Base,
        is_plain: bool,
        requests: &mut [Request],
        work: &[Option<PhaseWork>; 2],
        ways: &[Way],
    ) -> EntryIndex {
        requests.sort_unstable();
        self.occurrences += 1;
        let next = self.base_numbers.len() as u32;
        let number = *self.base_numbers.entry(base).or_insert(next);
        self.shape.clear();
        self.shape.push(number << 1 | u32::from(is_plain));
        if self.merge == EntryMerge::None {
            self.shape.extend([self.occurrences as u32, (self.occurrences >> 32) as u32]);
        }
        for same in requests.chunk_by(|left, right| left == right) {
            self.shape.extend([same[0].how(), same[0].entry.0, same.len() as u32]);
        }
        let place = match self.by_shape.get(&self.shape[..]) {
            Some(&place) => place,
            None => self.new_shape(names, base, is_plain, requests),
        };
        let total = &mut self.totals[place as usize];
        total.count += 1;
        self.alike += u64::from(total.alike);
        for (phase, work) in work.iter().enumerate() {
            let Some(work) = work else { continue };
            total.worked[phase] += 1;
            work.cpu.into_iter().for_each(|cpu| total.cpu[phase].add(cpu));
            work.busy.into_iter().for_each(|busy| total.busy[phase].add(busy));
        }
        for way in ways {
            total.ways[way.phase].add(way.seconds);
        }
        total.entry
    }

    fn new_shape(&mut self, names: &Names, base: Base, is_plain: bool, requests: &[Request]) -> u32 {
        if self.totals.len() >= MOST {
            self.flush();
        }
        let counted = requests.chunk_by(|left, right| left == right).map(|same| (same[0], same.len() as u32));
        let requests: Box<[(Request, u32)]> = counted.collect();
        let mut alike = false;
        let entry = if is_plain || self.is_named(base) {
            self.plain(names, base)
        } else {
            let mut keys: Vec<_> = requests
                .iter()
                .map(|(request, count)| (request.how(), self.submodel.entry(request.entry).key, *count))
                .collect();
            keys.sort_unstable();
            let mut digest = keys.iter().fold(digest(names, base).word(7), |digest, (how, key, count)| {
                digest.word(u64::from(*how)).key(*key).word(u64::from(*count))
            });
            if self.merge == EntryMerge::None {
                digest = digest.word(self.occurrences);
            }
            let is_new = self.submodel.entry_of(digest.finish()).is_none();
            alike = is_new && self.own >= MOST_OWN;
            self.own += usize::from(is_new && !alike);
            if alike { self.plain(names, base) } else { self.ensure(names, base, digest) }
        };
        let place = self.totals.len() as u32;
        let none = [Moments::default(); 2];
        self.totals.push(Total { entry, requests, count: 0, alike, worked: [0; 2], cpu: none, busy: none, ways: none });
        self.by_shape.insert(self.shape.as_slice().into(), place);
        place
    }

    /// Adds what was gathered to the sub-model.
    pub fn flush(&mut self) {
        self.by_shape.clear();
        for total in self.totals.drain(..) {
            let entry = self.submodel.entry_mut(total.entry);
            entry.invocations += total.count;
            for phase in 0..2_usize {
                let at = Position { phase: phase as u8 + 1, ..Position::default() };
                let asked = total.requests.iter().any(|(request, _)| request.phase == phase);
                if total.worked[phase] == 0 && !asked {
                    continue;
                }
                let work = entry.work.entry(at).or_default();
                work.visits += if asked { total.count } else { total.worked[phase] };
                work.exclusive.merge(&total.busy[phase]);
                work.network.merge(&total.ways[phase]);
                if total.worked[phase] > 0 {
                    let activity = work.activities.entry(Name::NONE).or_default();
                    activity.count += total.worked[phase];
                    activity.cpu.merge(&total.cpu[phase]);
                }
                for &(asked, count) in total.requests.iter().filter(|(request, _)| request.phase == phase) {
                    let request = work.requests.entry((asked.kind, asked.entry)).or_default();
                    request.count += total.count * u64::from(count);
                    let squares = u64::from(count).saturating_mul(u64::from(count)).saturating_mul(total.count);
                    request.squares = request.squares.saturating_add(squares);
                }
            }
        }
    }

    /// Notes where an occurrence of an entry was seen.
    pub fn witness(&mut self, entry: EntryIndex, witness: impl FnOnce() -> Witness) {
        let entry = self.submodel.entry_mut(entry);
        // Occurrences come in the order of their lines, so that the first ones are the least.
        if entry.witnesses.len() < dyelog_lqn::submodel::WITNESSES {
            entry.add_witness(&witness());
        }
    }
}

/// The digest of an entry by its name: that of an entry which a trace with a dye shows by the same name.
fn digest(names: &Names, base: Base) -> Digest {
    let name = |name: Name| Digest::of(1).text(names.text(name)).short();
    match base.interaction {
        Interaction::Customer => Digest::of(2).word(name(base.task)),
        interaction => Digest::of(3).word(name(base.task)).word(1).word(interaction as u64).word(name(base.label)),
    }
}
