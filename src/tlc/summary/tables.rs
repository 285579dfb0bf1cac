//! Work of entries in flat tables: one place to look at for each event, where the sub-model has several, one behind the
//! other, and none of them in the cache.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use crate::lqn::submodel::{
    ActivityTotal, EntryIndex, Moments, Position, RequestKind, RequestTotal, SubModel, WorkTotal,
};
use crate::names::Name;
use crate::tlc::summary::groups::Groups;

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

/// Invocations that did work at a position.
#[derive(Clone, Copy, Debug, Default)]
struct VisitTotal {
    visits: u64,
    exclusive: Moments,
}

/// Work by entry and position.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// Positions with numbers from [`PLAIN`] on.
    positions: Vec<Position>,
    numbers: FxHashMap<Position, Place>,
    /// By entry, at the plain positions.
    plain_visits: Vec<[VisitTotal; PLAIN as usize]>,
    visits: FxHashMap<(EntryIndex, Place), VisitTotal>,
    activities: FxHashMap<(EntryIndex, Place, Name), ActivityTotal>,
    requests: FxHashMap<(EntryIndex, Place, RequestKind, EntryIndex), RequestTotal>,
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

    fn position(&self, place: Place) -> Position {
        match place.0.checked_sub(PLAIN) {
            None => Position { stage: 0, branch: None, phase: place.0 as u8 + 1 },
            Some(other) => self.positions[other as usize],
        }
    }

    /// An invocation worked there, so long where that is known.
    #[inline]
    pub(super) fn visit(&mut self, entry: EntryIndex, place: Place, seconds: Option<f64>) {
        let total = if place.0 < PLAIN {
            if self.plain_visits.len() <= entry.index() {
                self.plain_visits.resize(entry.index() + 1, Default::default());
            }
            &mut self.plain_visits[entry.index()][place.0 as usize]
        } else {
            self.visits.entry((entry, place)).or_default()
        };
        total.visits += 1;
        if let Some(seconds) = seconds {
            total.exclusive.add(seconds);
        }
    }

    /// An activity there.
    #[inline]
    pub(super) fn activity(&mut self, entry: EntryIndex, place: Place, name: Name) -> &mut ActivityTotal {
        self.activities.entry((entry, place, name)).or_default()
    }

    /// An invocation made that many requests of one kind to one entry there.
    #[inline]
    pub(super) fn request(&mut self, entry: EntryIndex, place: Place, kind: RequestKind, to: EntryIndex, times: u64) {
        let total = self.requests.entry((entry, place, kind, to)).or_default();
        total.count += times;
        total.squares = total.squares.saturating_add(times.saturating_mul(times));
    }

    /// Moves all of it into the sub-model whose entries it is about.
    pub(super) fn empty_into(&mut self, submodel: &mut SubModel) {
        for (entry, totals) in (0..).zip(std::mem::take(&mut self.plain_visits)) {
            for (place, total) in (0..).zip(totals).filter(|(_, total)| total.visits > 0) {
                self.add_visits(submodel, EntryIndex(entry), Place(place), total);
            }
        }
        for ((entry, place), total) in sorted(std::mem::take(&mut self.visits), |key| key.0) {
            self.add_visits(submodel, entry, place, total);
        }
        let activities = sorted(std::mem::take(&mut self.activities), |key| key.0);
        for same in activities.chunk_by(|(left, _), (right, _)| (left.0, left.1) == (right.0, right.1)) {
            let own = &mut self.work(submodel, same[0].0.0, same[0].0.1).activities;
            own.reserve(same.len());
            for &((_, _, name), total) in same {
                let activity = own.entry(name).or_default();
                activity.count += total.count;
                activity.cpu.merge(&total.cpu);
            }
        }
        let requests = sorted(std::mem::take(&mut self.requests), |key| key.0);
        for same in requests.chunk_by(|(left, _), (right, _)| (left.0, left.1) == (right.0, right.1)) {
            let own = &mut self.work(submodel, same[0].0.0, same[0].0.1).requests;
            own.reserve(same.len());
            for &((_, _, kind, to), total) in same {
                let request = own.entry((kind, to)).or_default();
                request.count += total.count;
                request.squares = request.squares.saturating_add(total.squares);
            }
        }
    }

    fn work<'s>(&self, submodel: &'s mut SubModel, entry: EntryIndex, place: Place) -> &'s mut WorkTotal {
        submodel.entry_mut(entry).work.entry(self.position(place)).or_default()
    }

    fn add_visits(&self, submodel: &mut SubModel, entry: EntryIndex, place: Place, total: VisitTotal) {
        let work = self.work(submodel, entry, place);
        work.visits += total.visits;
        work.exclusive.merge(&total.exclusive);
    }
}

/// The rows of a table in the order of their keys, of which the entry comes first.
fn sorted<K: Copy + Ord + Hash, V: Copy>(table: FxHashMap<K, V>, entry: impl Fn(&K) -> EntryIndex) -> Vec<(K, V)> {
    let mut rows: Vec<(K, V)> = table.into_iter().collect();
    let entries = rows.iter().map(|(key, _)| entry(key).index() + 1).max().unwrap_or(0);
    // Put together by entry first: that is linear, and what is left to sort is small.
    let mut groups = Groups::default();
    groups.fill(entries, rows.len(), |row| Some(entry(&rows[row as usize].0).index()));
    rows = groups.all().iter().map(|&row| rows[row as usize]).collect();
    for same in rows.chunk_by_mut(|left, right| entry(&left.0) == entry(&right.0)) {
        same.sort_unstable_by_key(|row| row.0);
    }
    rows
}
