//! How many invocations were at work at a host together, and what part of its time each of them had.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::lqn::stays::{Rank, Stay, Stays, UNDATED};
use crate::model::servers::discipline::{Discipline, Station};
use crate::model::servers::sampled::Share;

/// Parts of an invocation that are told apart at most.
const PARTS: u32 = 16;

/// Where no more than this part of an entry's stays was not recorded, the others tell of its order of service: (5, 100).
const FEW: (usize, usize) = (5, 100);

/// The fewest stays of one kind from which their spread is estimated.
const ENOUGH: usize = 8;

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
    /// Whether it was recorded; else it stands for one that was there at about that time, and shows others, and nothing of itself.
    dated: bool,
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
    /// How many stays were recorded.
    dated: usize,
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
    /// The same for whatever way it depends on it, not only for growing or falling with it.
    pub uneven: f64,
    /// What shared servers ought to make longer and did not: how far too little those had that met many, in standard errors, while stays were no longer for it. 0 where either
    /// is not so, or too few tell.
    pub unslowed: f64,
    /// The part of stays that ended before they had their turn.
    pub early: f64,
    /// By entry: how many times as large the squared coefficient of variation of the time with a processor is as that of the whole time.
    pub spread: Vec<f64>,
    /// The squared coefficient of variation of the time with a processor, of all stays.
    pub cv2: f64,
}

impl Imputed {
    /// How long work queues in that order, relative to work of exponential length: first come, first served, those that vary less do less (Pollaczek and Khinchine; of several servers
    /// Lee and Longton 1959), while shares do not depend on it.
    pub fn regular(&self, discipline: Discipline) -> f64 {
        if discipline == Discipline::FirstCome { f64::midpoint(1.0, self.cv2) } else { 1.0 }
    }
}

/// How often stays left before others that had come before them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    /// How often they did.
    pub seen: f64,
    /// How often they would have under equal sharing.
    pub expected: f64,
    /// The variance of that.
    pub variance: f64,
}

impl Order {
    /// By how many standard errors too few did for equal sharing, where it may be off by this part of what is expected.
    pub fn lacks(&self, tolerance: f64) -> f64 {
        let error = (self.variance + (tolerance * self.expected).powi(2)).sqrt().max(1.0);
        ((self.expected - self.seen) / error).max(0.0)
    }
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
            let mut kept = stays.kept();
            let undated = kept.iter().filter(|stay| stay.part == UNDATED).count();
            if undated * FEW.1 <= kept.len() * FEW.0 {
                kept.retain(|stay| stay.part != UNDATED);
            }
            let of = |stay: Stay| Seen {
                start: stay.start,
                end: stay.end(),
                entry,
                kind: kinds + stay.part.min(PARTS - 1) as usize,
                station: copies.get(&stay.site).copied().unwrap_or(0),
                dated: stay.part != UNDATED,
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
        let dated = seen.iter().filter(|stay| stay.dated).count();
        Self { seen, edges, kinds, entries: entries.len(), stations, most, dated }
    }

    /// How many stays were recorded.
    pub fn stays(&self) -> usize {
        self.dated
    }

    /// Whether all that were there were recorded, each with that probability.
    pub fn is_whole(&self, probability: f64) -> bool {
        probability >= 1.0 && self.dated == self.seen.len()
    }

    /// Stays that were recorded, with a value of each.
    fn recorded<V>(&self, of: impl IntoIterator<Item = V>) -> impl Iterator<Item = (&Seen, V)> {
        self.seen.iter().zip(of).filter(|(stay, _)| stay.dated)
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
        for (stay, had) in self.recorded(&had) {
            own[stay.entry] += stay.start.abs_diff(stay.end) as f64;
            processor[stay.entry] += had;
        }
        let part = |own: f64, processor: f64| if own > 0.0 { (processor / own).clamp(0.0, 1.0) } else { 1.0 };
        let all = part(own.iter().sum(), processor.iter().sum());
        let processor: Vec<f64> = own.iter().zip(&processor).map(|(own, processor)| part(*own, *processor)).collect();
        let early = early as f64 / self.seen.len().max(1) as f64;
        let spread = self.spread(&had, &processor);
        let mut times = (0.0, 0.0);
        for (_, had) in self.recorded(&had) {
            times = (times.0 + had, times.1 + had * had);
        }
        let cv2 = if times.0 > 0.0 { (self.dated as f64 * times.1 / (times.0 * times.0) - 1.0).max(0.0) } else { 1.0 };
        let uneven = self.uneven(&found, &had);
        let found: Vec<f64> = found.into_iter().map(|found| found as f64).collect();
        let dependence = self.dependence(&found, &had);
        let unslowed = if discipline == Discipline::Sharing { self.unslowed(&had) } else { 0.0 };
        Imputed { processor, all, dependence, uneven, unslowed, early, spread, cv2 }
    }

    /// What [`Imputed::unslowed`] is, of what stays had.
    ///
    /// Of a stay of given length at servers that slow nobody, the part in which others would have slowed it does not depend on the length: so what it would have had
    /// falls with that part. Where servers do slow, stays grow with that part, and what they had does not depend on it.
    fn unslowed(&self, had: &[f64]) -> f64 {
        let own: Vec<f64> = self.seen.iter().map(|stay| stay.start.abs_diff(stay.end) as f64).collect();
        let slowed: Vec<f64> = own.iter().zip(had).map(|(own, had)| 1.0 - had / own).collect();
        let (stays, work) = (self.dependence(&slowed, &own), self.dependence(&slowed, had));
        if work < -TELLS && stays.abs() < AS_GOOD_AS_NONE { (work * work - stays * stays).sqrt() } else { 0.0 }
    }

    /// How often a stay left before the one that came last before it and was still there, and how often it would where all have equal parts.
    ///
    /// Under equal sharing the later one leaves first where its own time is less than what is left of the other's. Own times do not depend on each other, so that the
    /// chance of that is the part of all own times of its kind that are less. First come, first served, leaves the order as it is.
    pub fn order(&self, share: &Share, servers: u32) -> Order {
        let mut had = vec![0.0; self.seen.len()];
        let mut stations: Vec<(Station<'_>, i64, Vec<usize>)> =
            (0..self.stations).map(|_| (Station::empty(Discipline::Sharing, share, servers), 0, Vec::new())).collect();
        let mut has_left = vec![false; self.seen.len()];
        let mut pairs: Vec<(usize, usize, f64)> = Vec::new();
        for &(time, begins, number) in &self.edges {
            let (station, last, there) = &mut stations[self.seen[number].station];
            station.pass(time.abs_diff(*last) as f64, &mut had);
            *last = time;
            if !begins {
                station.leaves(number, &mut had);
                has_left[number] = true;
                continue;
            }
            while there.last().is_some_and(|before| has_left[*before]) {
                there.pop();
            }
            let before = there.last().copied().filter(|before| self.seen[*before].start < time);
            if let (Some(before), Station::Sharing { sum, .. }) = (before, &*station) {
                pairs.push((number, before, had[before] + sum));
            }
            there.push(number);
            station.comes(number, &mut had);
        }
        let mut own: Vec<Vec<f64>> = vec![Vec::new(); self.kinds];
        for (stay, had) in self.seen.iter().zip(&had) {
            own[stay.kind].push(*had);
        }
        for own in &mut own {
            own.sort_unstable_by(f64::total_cmp);
        }
        let mut order = Order::default();
        for (number, before, so_far) in pairs {
            let of_kind = &own[self.seen[number].kind];
            if of_kind.len() < ENOUGH {
                continue;
            }
            let left = had[before] - so_far;
            let chance = of_kind.partition_point(|own| *own < left) as f64 / of_kind.len() as f64;
            order.expected += chance;
            order.variance += chance * (1.0 - chance);
            order.seen += match self.seen[number].end.cmp(&self.seen[before].end) {
                Ordering::Less => 1.0,
                Ordering::Equal => 0.5,
                Ordering::Greater => 0.0,
            };
        }
        order
    }

    /// What queueing adds to how much stays vary: by entry, the squared coefficient of variation of the time with a processor over that of the whole stay, of stays of one kind.
    fn spread(&self, had: &[f64], processor: &[f64]) -> Vec<f64> {
        let mut sums = vec![(0.0, 0.0, 0.0); self.kinds];
        for (stay, had) in self.recorded(had) {
            let (count, whole, own) = &mut sums[stay.kind];
            *count += 1.0;
            *whole += stay.start.abs_diff(stay.end) as f64;
            *own += had;
        }
        let mut variances = vec![(0.0, 0.0); self.entries];
        for (stay, had) in self.recorded(had) {
            let (count, whole, own) = sums[stay.kind];
            let of_entry = &mut variances[stay.entry];
            of_entry.0 += (stay.start.abs_diff(stay.end) as f64 - whole / count).powi(2);
            of_entry.1 += (had - own / count).powi(2);
        }
        let factor = |((whole, own), part): (&(f64, f64), &f64)| {
            let factor = own / whole / (part * part);
            if factor.is_finite() { factor } else { 1.0 }
        };
        variances.iter().zip(processor).map(factor).collect()
    }

    /// The mean length of stays, nanoseconds.
    pub fn mean_stay(&self) -> f64 {
        self.seen.iter().map(|stay| stay.start.abs_diff(stay.end) as f64).sum::<f64>() / self.seen.len().max(1) as f64
    }

    /// How far the mean of what stays had differs between those that found different numbers, beyond chance: the square root of what the sum of squares has more than two
    /// standard deviations above its mean (chi squared). Several servers with one line look like fewer that are shared in how what they had grows with that number, yet not
    /// number by number.
    fn uneven(&self, found: &[usize], had: &[f64]) -> f64 {
        let mut groups = vec![[Sums::default(); MANY + 1]; self.kinds];
        for (stay, (&found, &had)) in self.recorded(found.iter().zip(had)) {
            let own = &mut groups[stay.kind][found.min(MANY)];
            own.count += 1;
            own.had += had;
            own.had_squares += had * had;
        }
        let (mut squares, mut freedom) = (0.0, 0.0);
        for of_kind in &groups {
            let sum = |of: fn(&Sums) -> f64| of_kind.iter().map(of).sum::<f64>();
            let count = sum(|own| own.count as f64);
            let mean = sum(|own| own.had) / count;
            let variance = sum(|own| own.had_squares) / count - mean * mean;
            let told: Vec<&Sums> = of_kind.iter().filter(|own| own.count >= GROUP).collect();
            if told.len() < 2 || variance <= mean * mean * f64::EPSILON.sqrt() {
                continue;
            }
            let of_group = |own: &&Sums| own.count as f64 * (own.had / own.count as f64 - mean).powi(2);
            squares += told.iter().map(of_group).sum::<f64>() / variance;
            freedom += told.len() as f64 - 1.0;
        }
        (squares - freedom - 2.0 * (2.0 * freedom).sqrt()).max(0.0).sqrt()
    }

    /// The correlation within kinds of what stays met and what they had, in standard errors.
    fn dependence(&self, found: &[f64], had: &[f64]) -> f64 {
        let mut sums = vec![Sums::default(); self.kinds];
        for (stay, (&found, &had)) in self.recorded(found.iter().zip(had)) {
            sums[stay.kind].count += 1;
            sums[stay.kind].found += found;
            sums[stay.kind].had += had;
        }
        for (stay, (&found, &had)) in self.recorded(found.iter().zip(had)) {
            let own = &mut sums[stay.kind];
            let count = own.count as f64;
            let (found, had) = (found - own.found / count, had - own.had / count);
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

/// A correlation of so many standard errors tells that there is one, and one below the second that there is none.
const TELLS: f64 = 4.0;
const AS_GOOD_AS_NONE: f64 = 2.0;

/// Stays that found so many or more count together.
const MANY: usize = 12;

/// The fewest stays that found as many whose mean tells anything.
const GROUP: usize = 20;

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
