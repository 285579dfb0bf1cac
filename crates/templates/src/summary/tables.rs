//! Work of entries in flat tables: one place to look at for each event, where the sub-model has several, one behind the
//! other, and none of them in the cache.

use rustc_hash::FxHashMap;

use crate::summary::rows::{RequestTally, Rows, Tally};
use dyelog_diagnostic::names::Name;
use dyelog_lqn::submodel::{
    ActivityTotal, EntryIndex, Moments, Position, RequestKind, RequestTotal, SubModel, WorkTotal,
};

/// The number of a position. Those of phases 1 to 3 without parallel branches are 0 to 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place(u32);

/// How many positions there are without parallel branches: one a phase.
const PLAIN: u32 = 3;

impl Place {
    /// The position of a phase, from 1 to 3, without parallel branches.
    #[inline]
    pub(super) fn of_phase(phase: u8) -> Self {
        Self(u32::from(phase.clamp(1, 3)) - 1)
    }
}

/// In the place of an activity's name: invocations that did work at a position, and their exclusive times.
const VISITS: u32 = u32::MAX;

/// In the same place: calls, and their network latency.
const NETWORK: u32 = u32::MAX - 1;

/// In the same place: times that passed without work.
const DELAY: u32 = u32::MAX - 2;

/// Kinds of requests have so many bits in keys of rows, beside the place's. Places are far fewer than what is left for
/// them: each takes more memory than it has numbers.
const KIND_BITS: u32 = 2;

/// An entry's sums.
#[derive(Debug, Default)]
struct EntryRows {
    invocations: u64,
    /// By place and activity, or [`VISITS`].
    work: Rows<Tally>,
    /// By place, kind, and whom it asks.
    requests: Rows<RequestTally>,
}

/// Something to add to a row of an entry.
#[derive(Clone, Copy, Debug)]
struct Addition {
    entry: EntryIndex,
    count: u32,
    key: u64,
    /// Seconds; NaN where there are none.
    value: f64,
}

/// So many additions are gathered before they are made, and so far ahead rows are fetched: rows of entries are mostly not in
/// the cache, and waiting for several at once takes as long as for one.
const GATHERED: usize = 512;
const AHEAD: usize = 8;

/// Work by entry and position.
#[derive(Debug, Default)]
pub(super) struct Tables {
    gathered: Vec<Addition>,
    gathered_requests: Vec<Addition>,
    /// Positions with numbers from [`PLAIN`] on.
    positions: Vec<Position>,
    numbers: FxHashMap<Position, Place>,
    entries: Vec<EntryRows>,
    /// What does not fit the rows of entries, by entry and key.
    wide: FxHashMap<(EntryIndex, u64), ActivityTotal>,
    wide_requests: FxHashMap<(EntryIndex, u64), RequestTotal>,
}

impl Tables {
    /// The number of a position.
    pub(super) fn place(&mut self, position: Position) -> Place {
        if position.stage == 0 && position.branch.is_none() {
            return Place::of_phase(position.phase);
        }
        *self.numbers.entry(position).or_insert_with(|| {
            self.positions.push(position);
            Place(PLAIN + self.positions.len() as u32 - 1)
        })
    }

    fn position(&self, place: u32) -> Position {
        match place.checked_sub(PLAIN) {
            None => Position { stage: 0, branch: None, phase: place as u8 + 1 },
            Some(other) => self.positions[other as usize],
        }
    }

    /// Another invocation of an entry.
    #[inline]
    pub(super) fn invocation(&mut self, entry: EntryIndex) {
        if self.entries.len() <= entry.index() {
            self.entries.resize_with(entry.index() + 1, EntryRows::default);
        }
        self.entries[entry.index()].invocations += 1;
    }

    /// The invocation at hand worked there, so long where that is known.
    #[inline]
    pub(super) fn visit(&mut self, entry: EntryIndex, place: Place, seconds: Option<f64>) {
        self.add(entry, key(place.0, VISITS), 1, seconds);
    }

    /// A call from there had so much network latency.
    pub(super) fn network(&mut self, entry: EntryIndex, place: Place, seconds: f64) {
        self.add(entry, key(place.0, NETWORK), 1, Some(seconds));
    }

    /// So long nothing worked there.
    pub(super) fn delay(&mut self, entry: EntryIndex, place: Place, seconds: f64) {
        self.add(entry, key(place.0, DELAY), 1, Some(seconds));
    }

    /// It had an event there that counts as so many executions of an activity, with its CPU demand where that is known.
    #[inline]
    pub(super) fn activity(&mut self, entry: EntryIndex, place: Place, name: Name, count: u32, cpu: Option<f64>) {
        self.add(entry, key(place.0, name.0), count, cpu);
    }

    #[inline]
    fn add(&mut self, entry: EntryIndex, key: u64, count: u32, value: Option<f64>) {
        self.gathered.push(Addition { entry, count, key, value: value.unwrap_or(f64::NAN) });
        if self.gathered.len() >= GATHERED {
            self.add_gathered();
        }
    }

    fn add_gathered(&mut self) {
        let mut touched = 0;
        for (place, one) in self.gathered.iter().enumerate() {
            if let Some(next) = self.gathered.get(place + AHEAD) {
                touched ^= self.entries[next.entry.index()].work.touch(next.key);
            }
            let row = self.entries[one.entry.index()].work.at(one.key);
            if let Some(sum) = row.with(one.count, one.value) {
                *row = sum;
                continue;
            }
            let mut more = ActivityTotal { count: one.count.into(), cpu: Moments::default() };
            if !one.value.is_nan() {
                more.cpu.add(one.value);
            }
            self.wide.entry((one.entry, one.key)).or_default().merge(&more);
        }
        std::hint::black_box(touched);
        self.gathered.clear();
    }

    /// It made that many requests of one kind to one entry there.
    #[inline]
    pub(super) fn request(&mut self, entry: EntryIndex, place: Place, kind: RequestKind, to: EntryIndex, times: u32) {
        let key = key((place.0 << KIND_BITS) | kind as u32, to.0);
        self.gathered_requests.push(Addition { entry, count: times, key, value: f64::NAN });
        if self.gathered_requests.len() >= GATHERED {
            self.add_gathered_requests();
        }
    }

    fn add_gathered_requests(&mut self) {
        let mut touched = 0;
        for (place, one) in self.gathered_requests.iter().enumerate() {
            if let Some(next) = self.gathered_requests.get(place + AHEAD) {
                touched ^= self.entries[next.entry.index()].requests.touch(next.key);
            }
            let count = u64::from(one.count);
            let more = RequestTotal { count, squares: count * count };
            let row = self.entries[one.entry.index()].requests.at(one.key);
            match row.with(&more) {
                Some(sum) => *row = sum,
                None => self.wide_requests.entry((one.entry, one.key)).or_default().merge(&more),
            }
        }
        std::hint::black_box(touched);
        self.gathered_requests.clear();
    }

    /// Moves all of it into the sub-model whose entries it is about.
    pub(super) fn empty_into(&mut self, submodel: &mut SubModel) {
        self.add_gathered();
        self.add_gathered_requests();
        for (number, rows) in (0..).zip(std::mem::take(&mut self.entries)) {
            let entry = EntryIndex(number);
            submodel.entry_mut(entry).invocations += rows.invocations;
            let work = rows.work.into_sorted();
            for same in work.chunk_by(|left, right| halves(left.0).0 == halves(right.0).0) {
                let own = self.work(submodel, entry, halves(same[0].0).0);
                own.activities.reserve(same.len());
                for (key, tally) in same {
                    add_to(own, halves(*key).1, &tally.wide());
                }
            }
            let requests = rows.requests.into_sorted();
            let place = |key: u64| halves(key).0 >> KIND_BITS;
            for same in requests.chunk_by(|left, right| place(left.0) == place(right.0)) {
                let own = self.work(submodel, entry, place(same[0].0));
                own.requests.reserve(same.len());
                for (key, tally) in same {
                    add_request(own, *key, &tally.wide());
                }
            }
        }
        for ((entry, key), total) in sorted(std::mem::take(&mut self.wide)) {
            add_to(self.work(submodel, entry, halves(key).0), halves(key).1, &total);
        }
        for ((entry, key), total) in sorted(std::mem::take(&mut self.wide_requests)) {
            add_request(self.work(submodel, entry, halves(key).0 >> KIND_BITS), key, &total);
        }
    }

    fn work<'s>(&self, submodel: &'s mut SubModel, entry: EntryIndex, place: u32) -> &'s mut WorkTotal {
        submodel.entry_mut(entry).work.entry(self.position(place)).or_default()
    }
}

fn key(high: u32, low: u32) -> u64 {
    (u64::from(high) << 32) | u64::from(low)
}

fn halves(key: u64) -> (u32, u32) {
    ((key >> 32) as u32, key as u32)
}

fn add_to(work: &mut WorkTotal, name: u32, total: &ActivityTotal) {
    match name {
        VISITS => {
            work.visits += total.count;
            work.exclusive.merge(&total.cpu);
        }
        NETWORK => work.network.merge(&total.cpu),
        DELAY => work.pauses.merge(&total.cpu),
        name => work.activities.entry(Name(name)).or_default().merge(total),
    }
}

fn add_request(work: &mut WorkTotal, key: u64, total: &RequestTotal) {
    let (high, to) = halves(key);
    let kind = KINDS[(high & ((1 << KIND_BITS) - 1)) as usize % KINDS.len()];
    work.requests.entry((kind, EntryIndex(to))).or_default().merge(total);
}

/// By their numbers.
const KINDS: [RequestKind; 3] = [RequestKind::Synchronous, RequestKind::Asynchronous, RequestKind::Forward];

fn sorted<V>(table: FxHashMap<(EntryIndex, u64), V>) -> Vec<((EntryIndex, u64), V)> {
    let mut rows: Vec<_> = table.into_iter().collect();
    rows.sort_unstable_by_key(|row| row.0);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyelog_lqn::submodel::{EntryKey, Interaction};

    #[test]
    fn sums_are_exact_however_large() {
        let mut submodel = SubModel::new();
        let task = submodel.names.intern("task");
        let entry = submodel.ensure_entry(EntryKey(1), task, 1, Interaction::Rendezvous, Name::NONE);
        let mut tables = Tables::default();
        let (mut expected, mut requested) = (ActivityTotal::default(), RequestTotal::default());
        // Some fit narrow sums, some do not, and some only do not fit beside those before them.
        for seconds in [0.001, 5000.0, 3.0, 2.9, 2.8, 1e300, 0.002] {
            tables.invocation(entry);
            tables.activity(entry, Place::of_phase(1), task, 1, Some(seconds));
            tables.visit(entry, Place::of_phase(1), Some(seconds));
            tables.request(entry, Place::of_phase(1), RequestKind::Forward, entry, 100_000);
            expected.count += 1;
            expected.cpu.add(seconds);
            requested.merge(&RequestTotal { count: 100_000, squares: 10_000_000_000 });
        }
        tables.empty_into(&mut submodel);
        let total = submodel.entry(entry);
        let work = &total.work[&Position { stage: 0, branch: None, phase: 1 }];
        assert_eq!((total.invocations, work.visits), (7, 7));
        assert_eq!((work.activities[&task], work.exclusive), (expected, expected.cpu));
        assert_eq!(work.requests[&(RequestKind::Forward, entry)], requested);
    }
}
