//! How many invocations were at work at a host together, and what part of its time each of them had.

use std::collections::BTreeMap;

use crate::lqn::stays::{Rank, Stay, Stays};
use crate::model::servers::discipline::{Discipline, Station};
use crate::model::servers::sampled::Share;

/// Parts of an invocation that are told apart at most.
const PARTS: u32 = 16;

/// The fewest stays of one kind from which their spread is estimated.
const ENOUGH: usize = 8;

/// A pause so many times as long as the mean one is none of the system: e^-30 of exponential ones are.
const LONG: f64 = 30.0;

/// A stay at a host.
#[derive(Clone, Copy, Debug)]
struct Seen {
    start: i64,
    end: i64,
    /// Whose it is: a number of the entry.
    entry: usize,
    /// Its kind: stays of one kind have one distribution of demands.
    kind: usize,
    /// The station that it is at.
    station: usize,
}

/// Stays at a host within stretches of time of which none is missing.
#[derive(Debug)]
pub struct Occupancy {
    seen: Vec<Seen>,
    /// Begins and ends in the order of time, with the number of the stay. At one time those that end come first, so that they are not found.
    edges: Vec<(i64, bool, usize)>,
    kinds: usize,
    entries: usize,
    /// Stations with servers of their own: copies of the host.
    pub stations: usize,
    /// The most that were at one station together.
    pub most: usize,
}

/// What stays come to with a certain number of servers.
#[derive(Clone, Debug)]
pub struct Imputed {
    /// By entry: the part of the time of its stays in which it had a processor.
    pub processor: Vec<f64>,
    /// The same of all entries together.
    pub all: f64,
    /// The correlation of a stay's processor time with how many it found there, in standard errors.
    pub dependence: f64,
    /// The part of stays that ended before they had their turn.
    pub early: f64,
}

impl Occupancy {
    /// Of the entries of a host with copies, of which each has servers of its own: which copy an instance is at.
    pub fn of(entries: &[&Stays], copies: &BTreeMap<u32, usize>) -> Self {
        let stations = copies.values().max().map_or(1, |last| last + 1);
        // Where one entry's stays were too many to be kept, others count for the same stretches of time only.
        let before: Option<Rank> = entries.iter().filter_map(|stays| stays.complete_before()).min();
        let mut seen = Vec::new();
        let mut kinds = 0;
        for (entry, stays) in entries.iter().enumerate() {
            let within = |stay: &Stay| stay.start < stay.end() && before.is_none_or(|before| stay.rank() < before);
            let kept = stays.kept();
            let of = |stay: Stay| Seen {
                start: stay.start,
                end: stay.end(),
                entry,
                kind: kinds + stay.part.min(PARTS - 1) as usize,
                station: copies.get(&stay.site).copied().unwrap_or(0),
            };
            seen.extend(kept.into_iter().filter(within).map(of));
            kinds += PARTS as usize;
        }
        seen.sort_unstable_by_key(|stay| (stay.start, stay.end, stay.kind));
        let both = |(number, stay): (usize, &Seen)| [(stay.start, true, number), (stay.end, false, number)];
        let mut edges: Vec<_> = seen.iter().enumerate().flat_map(both).collect();
        edges.sort_unstable();
        let (mut there, mut most) = (vec![0_usize; stations], 0);
        for (_, begins, number) in &edges {
            let there = &mut there[seen[*number].station];
            *there = if *begins { *there + 1 } else { *there - 1 };
            most = most.max(*there);
        }
        Self { seen, edges, kinds, entries: entries.len(), stations, most }
    }

    /// How many stays there are.
    pub fn stays(&self) -> usize {
        self.seen.len()
    }

    /// Whether arrivals find as many on average as are there on average, as open arrivals do: to within three standard errors.
    pub fn meets_all(&self) -> bool {
        let (mut there, mut found) = (0_usize, 0.0);
        for (_, begins, _) in &self.edges {
            if *begins {
                found += there as f64;
                there += 1;
            } else {
                there -= 1;
            }
        }
        let (count, present) = (self.seen.len().max(1) as f64, self.mean_present());
        // The variance of a geometric number.
        let error = (present * (1.0 + present) / count).sqrt();
        found / count > present * 0.98 || present - found / count < 3.0 * error
    }

    /// How many were there on average, from the first begin to the last end, without what lies between stretches that are known.
    fn mean_present(&self) -> f64 {
        let own: f64 = self.seen.iter().map(|stay| stay.start.abs_diff(stay.end) as f64).sum();
        own / self.covered().max(1.0)
    }

    /// For how long stays are known, nanoseconds.
    fn covered(&self) -> f64 {
        let mut pauses: Vec<f64> = Vec::new();
        let (mut covered, mut end) = (0.0, self.seen.first().map_or(0, |stay| stay.start));
        for stay in &self.seen {
            if stay.start > end {
                pauses.push(stay.start.abs_diff(end) as f64);
            }
            covered += stay.end.max(end).abs_diff(end).min(stay.start.abs_diff(stay.end)) as f64;
            end = end.max(stay.end);
        }
        // What lies between stretches of time is no pause of the system.
        let mean = pauses.iter().sum::<f64>() / pauses.len().max(1) as f64;
        covered + pauses.iter().filter(|pause| **pause < LONG * mean).sum::<f64>()
    }

    /// What part of a server each stay had, where those that are there are served in that order by so many servers. `share` gives that part by
    /// how many others of the trace are there, where they share equally.
    pub fn served(&self, discipline: Discipline, share: &Share, servers: u32) -> Imputed {
        let mut found = vec![0_usize; self.seen.len()];
        let mut had = vec![0.0; self.seen.len()];
        let mut early = 0_usize;
        let empty = || (Station::empty(discipline, share, servers), 0_i64);
        let mut stations: Vec<(Station<'_>, i64)> = (0..self.stations).map(|_| empty()).collect();
        for &(time, begins, number) in &self.edges {
            let (station, last) = &mut stations[self.seen[number].station];
            station.pass(time.abs_diff(*last) as f64, &mut had);
            *last = time;
            if begins {
                found[number] = station.comes(number, &mut had);
            } else {
                early += usize::from(station.leaves(number, &mut had));
            }
        }
        let (mut own, mut processor) = (vec![0.0; self.entries], vec![0.0; self.entries]);
        for (stay, had) in self.seen.iter().zip(&had) {
            own[stay.entry] += stay.start.abs_diff(stay.end) as f64;
            processor[stay.entry] += had;
        }
        let part = |own: f64, processor: f64| if own > 0.0 { (processor / own).clamp(0.0, 1.0) } else { 1.0 };
        let all = part(own.iter().sum(), processor.iter().sum());
        let processor = own.iter().zip(&processor).map(|(own, processor)| part(*own, *processor)).collect();
        let early = early as f64 / self.seen.len().max(1) as f64;
        Imputed { processor, all, dependence: self.dependence(&found, &had), early }
    }

    /// The mean length of stays, nanoseconds.
    pub fn mean_stay(&self) -> f64 {
        self.seen.iter().map(|stay| stay.start.abs_diff(stay.end) as f64).sum::<f64>() / self.seen.len().max(1) as f64
    }

    /// The correlation within kinds of how many a stay found and what it had, in standard errors.
    fn dependence(&self, found: &[usize], had: &[f64]) -> f64 {
        let mut sums = vec![Sums::default(); self.kinds];
        for ((stay, &found), &had) in self.seen.iter().zip(found).zip(had) {
            sums[stay.kind].count += 1;
            sums[stay.kind].found += found as f64;
            sums[stay.kind].had += had;
        }
        for ((stay, &found), &had) in self.seen.iter().zip(found).zip(had) {
            let own = &mut sums[stay.kind];
            let count = own.count as f64;
            let (found, had) = (found as f64 - own.found / count, had - own.had / count);
            own.both += found * had;
            own.found_squares += found * found;
            own.had_squares += had * had;
        }
        let (mut both, mut squares) = (0.0, 0.0);
        for own in sums.iter().filter(|own| own.count >= ENOUGH && own.found_squares > 0.0 && own.had_squares > 0.0) {
            both += own.both / (own.had_squares / own.count as f64).sqrt();
            squares += own.found_squares;
        }
        if squares > 0.0 { both / squares.sqrt() } else { 0.0 }
    }
}

/// Sums over stays of one kind: first of values, then of what is left without their means.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: usize,
    found: f64,
    had: f64,
    both: f64,
    found_squares: f64,
    had_squares: f64,
}
