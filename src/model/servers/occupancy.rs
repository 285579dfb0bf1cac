//! How many invocations were at work at a host together, and what part of its time each of them had.

mod likelihood;
mod quota;
mod services;
mod standstill;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::OnceLock;

pub use likelihood::INDEPENDENT;
pub use quota::AskedQuota;

use crate::lqn::stays::{self, Rank, Stay, UNDATED};
use crate::lqn::submodel::{EntryIndex, EntryTotal};
use crate::model::clocks;
use crate::model::moments::{in_order, order_of};
use crate::model::servers::discipline::{Discipline, Station};
use crate::model::servers::occupancy::likelihood::Scale;
use crate::model::servers::sampled::Share;
use crate::model::slices::Stretch;
use crate::names::Name;

/// Parts of an invocation that are told apart at most.
const PARTS: u32 = 16;

/// Where no more than this part of an entry's stays was not recorded, the others tell of its order of service: (5, 100).
const FEW: (usize, usize) = (5, 100);

/// The fewest stays of one kind from which their spread is estimated.
const ENOUGH: usize = 8;

/// So many stays that follow each other count together where it is asked how far what they had grows with how long they were: waits of neighbours depend on each other.
pub const BATCH: usize = 32;

/// Stays that are shorter on average than so many steps of the clock tell nothing of those that met them: their lengths are of the clock.
const STEPS: f64 = 3.0;

/// Stays that take less time all together than this part of those of another kind tell nothing either (ours). They are many, and short: they end before a scheduler has made them
/// wait, or wait for something else than a processor.
const LITTLE: f64 = 0.05;

/// Clocks whose step is more than this part of stays blur who met whom.
const COARSE: f64 = 0.1;

/// Clocks whose step is more than this part of stays blur how likely their lengths are (ours): of 20 µs by clocks of 1 µs, four servers were six to nine.
const FINE: f64 = 0.005;

/// Where the first stay of a station is longer than this part of all of the time in which stays begin, those that begin before it ends do not count (ours): with less, they change what others had by no more than that.
const BEGIN: f64 = 0.05;

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

impl Seen {
    /// Nanoseconds.
    fn length(&self) -> u64 {
        self.start.abs_diff(self.end)
    }
}

/// Stays at a host within stretches of time of which none is missing.
#[derive(Debug)]
pub struct Occupancy {
    seen: Vec<Seen>,
    /// Begins and ends in the order of time, with the number of the stay. At one time those that end come first, so that they are not found.
    edges: Vec<(i64, bool, usize)>,
    /// By kind, whether its stays tell anything of those that met them.
    telling: Vec<bool>,
    /// Whether most stays are of clocks with steps that are long for them.
    coarse: bool,
    /// By entry.
    whole: Vec<Whole>,
    /// Stations with servers of their own: copies of the host.
    pub stations: usize,
    /// The most that were at one station together.
    pub most: usize,
    /// How many stays were recorded.
    dated: usize,
    /// By kind, what all its times are multiples of, nanoseconds: the step of its clock, however short.
    grains: Vec<f64>,
    /// By kind, whether steps of its clock are too long for lengths to tell how likely they are.
    is_blurred: Vec<bool>,
    /// On which numbers of servers are compared.
    by_ratio: Scale,
    /// On which stays are compared with the same without some time of each.
    by_difference: OnceLock<Scale>,
    /// The mean length of stays, nanoseconds.
    mean_length: f64,
}

/// What invocations of an entry do: the service of an instance, and whom they ask.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Done {
    task: Name,
    instance: u32,
    service: Name,
    asked: Vec<Option<EntryIndex>>,
}

impl Done {
    /// Of an entry whose service has a name.
    fn of(total: &EntryTotal) -> Option<Self> {
        let EntryTotal { task, instance, service, .. } = *total;
        let mut asked: Vec<Option<EntryIndex>> = total.calls.keys().map(|label| label.to).collect();
        asked.sort_unstable();
        service.is_some().then_some(Self { task, instance, service, asked })
    }
}

/// All stays of an entry, with those that were too many to be kept.
#[derive(Clone, Copy, Debug)]
struct Whole {
    /// How long they were together, nanoseconds.
    own: f64,
    /// How many times as long they were on average as those within the stretches of time that are looked at; `None` where these are all.
    longer: Option<f64>,
}

/// What stays had with a certain number of servers.
#[derive(Clone, Debug)]
pub struct Served {
    /// By stay, nanoseconds.
    pub had: Vec<f64>,
    /// The correlation of a stay's processor time with how many it found there, in standard errors.
    pub dependence: f64,
    /// The same for whatever way it depends on it, not only for growing or falling with it.
    pub uneven: f64,
    /// The part of stays that ended before they had their turn.
    pub early: f64,
    /// The logarithm of how likely lengths of stays are, per stay, relative to a host where nobody waits.
    pub likelihood: f64,
    /// By stay, the part of a server that it had in the end; 0 of one that did not have its turn.
    rates: Vec<f64>,
}

/// What stays come to with a certain number of servers.
#[derive(Clone, Debug, Default)]
pub struct Imputed {
    /// By entry: the part of the time of its stays in which it had a processor.
    pub processor: Vec<f64>,
    /// The same of all entries together.
    pub all: f64,
    /// What shared servers ought to make longer and did not: how far too little those had that met many, in standard errors, while stays were no longer for it. 0 where either
    /// is not so, or too few tell.
    pub unslowed: f64,
    /// By entry: how many times as large the squared coefficient of variation of the time with a processor is as that of the whole time.
    pub spread: Vec<f64>,
    /// The squared coefficient of variation of the time with a processor, of all stays.
    pub cv2: f64,
    /// First come, first served: by entry, the stretches of an invocation by their place in it.
    pub stretches: Vec<Vec<Stretch>>,
}

impl Whole {
    /// Of an entry, of which those are kept and looked at.
    fn of(total: &EntryTotal, kept: &[Stay]) -> Self {
        let own = total.own_time() * 1e9;
        let lengths: f64 = kept.iter().map(|stay| stay.length as f64).sum();
        let all = own / total.stays.seen().max(1) as f64;
        let longer = all / (lengths / kept.len() as f64);
        let is_part = (kept.len() as u64) < total.stays.seen() && longer.is_finite() && longer > 0.0;
        Self { own, longer: is_part.then_some(longer) }
    }
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
    pub fn of(entries: &[&EntryTotal], copies: &BTreeMap<u32, usize>) -> Self {
        Self::of_before(entries, copies, Self::complete_before(entries))
    }

    /// Where one entry's stays were too many to be kept, others count for the same stretches of time only: up to there.
    pub fn complete_before(entries: &[&EntryTotal]) -> Option<Rank> {
        entries.iter().filter_map(|entry| entry.stays.complete_before()).min()
    }

    /// The same of stays before some rank.
    pub fn of_before(entries: &[&EntryTotal], copies: &BTreeMap<u32, usize>, before: Option<Rank>) -> Self {
        let stations = copies.values().max().map_or(1, |last| last + 1);
        let (mut seen, mut whole) = (Vec::new(), Vec::new());
        let mut kinds = 0;
        // Whether somebody waited may depend on how long it took, as where the first of two answers is taken: invocations that do the same are of one kind.
        let mut alike: BTreeMap<Done, usize> = BTreeMap::new();
        for (entry, total) in entries.iter().enumerate() {
            let first = Done::of(total).map_or(kinds, |done| *alike.entry(done).or_insert(kinds));
            let kept = total.stays.in_order();
            let kept = stays::before(&kept, before);
            whole.push(Whole::of(total, kept));
            let undated = kept.iter().filter(|stay| stay.part == UNDATED).count();
            let only_dated = undated * FEW.1 <= kept.len() * FEW.0;
            let of = |stay: &Stay| Seen {
                start: stay.start,
                end: stay.end(),
                entry,
                kind: first + stay.part.min(PARTS - 1) as usize,
                station: copies.get(&stay.site).copied().unwrap_or(0),
                dated: stay.part != UNDATED,
            };
            let is_seen = |stay: &&Stay| !(only_dated && stay.part == UNDATED) && stay.start < stay.end();
            seen.extend(kept.iter().filter(is_seen).map(of));
            kinds += PARTS as usize;
        }
        let mut own = Self::arranged(&seen, whole, kinds, stations);
        own.by_ratio = own.scale_by_ratio();
        own
    }

    /// Of stays in any order, of so many kinds; without scales.
    fn arranged(seen: &[Seen], whole: Vec<Whole>, kinds: usize, stations: usize) -> Self {
        let seen = in_order(seen, |stay| stay.start, |stay| (stay.end, stay.kind));
        let edges = edges(&seen);
        let (mut there, mut most) = (vec![0_usize; stations], 0);
        for (_, begins, number) in &edges {
            let there = &mut there[seen[*number].station];
            *there = if *begins { *there + 1 } else { *there - 1 };
            most = most.max(*there);
        }
        let dated = seen.iter().filter(|stay| stay.dated).count();
        let steps = steps(&seen, kinds);
        let most_time = steps.iter().map(|own| own.time).fold(0.0, f64::max);
        let telling = steps.iter().map(|own| own.step * STEPS <= 1.0 && own.time >= LITTLE * most_time).collect();
        let blurred: usize = steps.iter().filter(|own| own.step > COARSE).map(|own| own.count).sum();
        let is_blurred = steps.iter().map(|own| own.fineness() > FINE).collect();
        let grains: Vec<f64> = steps.iter().map(|own| own.grain).collect();
        let lengths: Vec<f64> = seen.iter().map(|stay| stay.length() as f64).collect();
        let mean_length = lengths.iter().sum::<f64>() / lengths.len().max(1) as f64;
        let coarse = 2 * blurred > dated;
        Self {
            seen,
            edges,
            telling,
            is_blurred,
            coarse,
            whole,
            stations,
            most,
            dated,
            grains,
            by_ratio: Scale::default(),
            by_difference: OnceLock::new(),
            mean_length,
        }
    }

    /// The shortest length of stays but this part of them, nanoseconds.
    pub fn shortest(&self, part: f64) -> u64 {
        let mut lengths: Vec<u64> =
            self.recorded(self.seen.iter().map(Seen::length)).map(|(_, length)| length).collect();
        let place = (lengths.len() as f64 * part) as usize;
        if place >= lengths.len() {
            return 0;
        }
        *lengths.select_nth_unstable(place).1
    }

    /// The same where so many nanoseconds of each stay are spent elsewhere, with the part of its time that is left to each entry. Of all stays the same is taken, so that
    /// it does not matter whether it lay before or after what is left.
    pub fn without(&self, elsewhere: u64) -> (Self, Vec<f64>) {
        let mut times = vec![(0.0, 0.0); self.whole.len()];
        for (stay, length) in self.recorded(self.seen.iter().map(Seen::length)) {
            let (all, left) = &mut times[stay.entry];
            *all += length as f64;
            *left += length.saturating_sub(elsewhere) as f64;
        }
        let left = |((all, left), whole): (&(f64, f64), &Whole)| {
            let gone = if *all > 0.0 { (all - left) / all } else { 0.0 };
            (1.0 - gone / whole.longer.unwrap_or(1.0)).max(0.0)
        };
        let parts: Vec<f64> = times.iter().zip(&self.whole).map(left).collect();
        let rest = |((whole, part), (all, left)): ((&Whole, &f64), &(f64, f64))| {
            let longer = |longer: f64| if *left > 0.0 { longer * part * all / left } else { 1.0 };
            Whole { own: whole.own * part, longer: whole.longer.map(longer) }
        };
        let whole = self.whole.iter().zip(&parts).zip(&times).map(rest).collect();
        let shorter = |stay: &Seen| Seen { end: stay.end.saturating_sub_unsigned(elsewhere), ..*stay };
        let seen: Vec<Seen> = self.seen.iter().map(shorter).filter(|stay| stay.start < stay.end).collect();
        let mut without = Self::arranged(&seen, whole, self.telling.len(), self.stations);
        // Likelihoods of both are relative to the same lengths, in the same order.
        without.mean_length = self.mean_length;
        without.by_ratio = self.scale_without(&self.by_ratio, elsewhere);
        without.by_difference = self.scale_without(self.scale_by_difference(), elsewhere).into();
        (without, parts)
    }

    /// The longest step of clocks, nanoseconds.
    pub fn grain(&self) -> f64 {
        self.grains.iter().copied().fold(0.0, f64::max)
    }

    /// The time of all stays together, nanoseconds.
    pub fn own(&self) -> f64 {
        self.whole.iter().map(|whole| whole.own).sum()
    }

    /// How many stays were recorded.
    pub fn stays(&self) -> usize {
        self.dated
    }

    /// Whether all that were there were recorded, each with that probability.
    pub fn is_whole(&self, probability: f64) -> bool {
        probability >= 1.0 && self.dated == self.seen.len()
    }

    /// Whether nobody recorded when many of them were there, or only roughly.
    pub fn is_sparse(&self) -> bool {
        self.coarse || (self.seen.len() - self.dated) * FEW.1 > self.seen.len() * FEW.0
    }

    /// Stays that were recorded, with a value of each.
    fn recorded<V>(&self, of: impl IntoIterator<Item = V>) -> impl Iterator<Item = (&Seen, V)> {
        self.seen.iter().zip(of).filter(|(stay, _)| stay.dated)
    }

    /// Of these, those that begin once the first of their station has ended, where that is long: a recording that begins in the midst of a load, as a part of one does, has not those for whom the first
    /// ones waited.
    fn settled<V>(&self, of: impl IntoIterator<Item = V>) -> impl Iterator<Item = (&Seen, V)> {
        let mut from = vec![None; self.stations];
        for stay in &self.seen {
            from[stay.station].get_or_insert(stay.end);
        }
        let (first, last) =
            (self.seen.first().map_or(0, |stay| stay.start), self.seen.last().map_or(0, |stay| stay.start));
        let long = BEGIN * first.abs_diff(last) as f64;
        let from: Vec<i64> = from
            .into_iter()
            .map(|end| end.filter(|end| end.abs_diff(first) as f64 > long).unwrap_or(i64::MIN))
            .collect();
        // Nothing would be left of few.
        let is_left = |stay: &&Seen| stay.dated && stay.start >= from[stay.station];
        let is_many = 2 * self.seen.iter().filter(is_left).count() >= self.dated;
        self.recorded(of).filter(move |(stay, _)| !is_many || stay.start >= from[stay.station])
    }

    /// What each stay had, where those that are there are served in that order by so many servers. `share` gives the part of a server by
    /// how many others of the trace are there, where they share equally.
    pub fn served(&self, discipline: Discipline, share: &Share, servers: u32) -> Served {
        let mut found = vec![0_usize; self.seen.len()];
        let mut had = vec![0.0; self.seen.len()];
        let mut early = 0_usize;
        let mut rates = vec![1.0; self.seen.len()];
        let empty = || (Station::empty(discipline, share, servers), 0_i64);
        let mut stations: Vec<(Station<'_>, i64)> = (0..self.stations).map(|_| empty()).collect();
        for &(time, begins, number) in &self.edges {
            let (station, last) = &mut stations[self.seen[number].station];
            station.pass(time.abs_diff(*last) as f64, &mut had);
            *last = time;
            if begins {
                found[number] = station.comes(number, &mut had);
            } else if let Some(rate) = station.leaves(number, &mut had) {
                rates[number] = rate;
            } else {
                rates[number] = 0.0;
                early += usize::from(self.telling[self.seen[number].kind]);
            }
        }
        self.find_each_other(&mut found);
        let early = early as f64 / self.seen.len().max(1) as f64;
        let uneven = self.uneven(&found, &had);
        let found: Vec<f64> = found.into_iter().map(|found| found as f64).collect();
        let dependence = self.dependence(&found, &had);
        let likelihood = self.likelihood(&self.by_ratio, &had, &rates);
        Served { had, dependence, uneven, early, likelihood, rates }
    }

    /// The same by recorded stay, in the order of their begins, with the entry of each; `None` of one that tells nothing. A stay that cannot have ended when it did is as unlikely beside any
    /// others: relative to its own length.
    pub fn likelihood_of_each(&self, served: &Served) -> Vec<(usize, Option<f64>)> {
        let each = self.likelihoods(&self.by_ratio, &served.had, &served.rates, |stay| stay.length() as f64);
        self.recorded(std::iter::repeat(())).zip(each).map(|((stay, ()), own)| (stay.entry, own)).collect()
    }

    /// The logarithm of how likely lengths of stays are, as [`Served::likelihood`], to be compared with the same stays without some time of each.
    pub fn likelihood_by_difference(&self, served: &Served) -> f64 {
        self.likelihood(self.scale_by_difference(), &served.had, &served.rates)
    }

    /// Stays that begin at one time find each other, whichever of them is looked at first; but by clocks that may hide which of them came first.
    fn find_each_other(&self, found: &mut [usize]) {
        if self.is_blurred.iter().zip(&self.telling).any(|(is_blurred, tells)| *is_blurred && *tells) {
            return;
        }
        let mut first = 0;
        while first < self.seen.len() {
            let start = self.seen[first].start;
            let after = first + self.seen[first..].iter().take_while(|stay| stay.start == start).count();
            if after - first > 1 {
                let together = self.seen[first..after].iter().zip(&mut found[first..after]);
                let mut most: BTreeMap<usize, usize> = BTreeMap::new();
                for (stay, found) in together {
                    let most = most.entry(stay.station).or_default();
                    *most = (*found).max(*most);
                }
                let together = self.seen[first..after].iter().zip(&mut found[first..after]);
                together.for_each(|(stay, found)| *found = most[&stay.station]);
            }
            first = after;
        }
    }

    /// What follows from what stays had.
    pub fn imputed(&self, discipline: Discipline, had: &[f64]) -> Imputed {
        let (processor, all) = self.parts(had);
        let spread = self.spread(had, &processor);
        let mut times = (0.0, 0.0, 0.0);
        for (_, had) in self.settled(had) {
            times = (times.0 + had, times.1 + had * had, times.2 + 1.0);
        }
        let cv2 = if times.0 > 0.0 { (times.2 * times.1 / (times.0 * times.0) - 1.0).max(0.0) } else { 1.0 };
        let unslowed = if discipline == Discipline::Sharing { self.unslowed(had) } else { 0.0 };
        let stretches = if discipline == Discipline::FirstCome { self.stretches(had) } else { Vec::new() };
        Imputed { processor, all, unslowed, spread, cv2, stretches }
    }

    /// By entry, the stretches of an invocation by their place in it, and what they had.
    fn stretches(&self, had: &[f64]) -> Vec<Vec<Stretch>> {
        let mut all = vec![vec![Stretch::default(); PARTS as usize]; self.whole.len()];
        for (stay, had) in self.settled(had) {
            let own = &mut all[stay.entry][stay.kind % PARTS as usize];
            own.count += 1;
            own.length += stay.length() as f64;
            own.had += had;
            own.squares += had * had;
        }
        all
    }

    /// The part of its time in which each entry had a processor, and that of all together.
    ///
    /// Where not all stays were kept, the others were longer or shorter, since they waited more or less or had more or less to do. What they had follows by regression of what
    /// stays had on their lengths (the regression estimator of survey sampling: Cochran 1977, ch. 7).
    fn parts(&self, had: &[f64]) -> (Vec<f64>, f64) {
        let (mut own, mut processor) = (vec![0.0; self.whole.len()], vec![0.0; self.whole.len()]);
        let mut counts = vec![(0.0, 0.0); self.whole.len()];
        for (stay, _) in self.recorded(had) {
            own[stay.entry] += stay.length() as f64;
            counts[stay.entry].0 += 1.0;
        }
        for (stay, had) in self.settled(had) {
            processor[stay.entry] += had;
            counts[stay.entry].1 += 1.0;
        }
        // Those that do not count had as much as the others on the mean, however long they waited.
        for ((own, processor), (all, settled)) in own.iter_mut().zip(&mut processor).zip(counts) {
            if settled == 0.0 {
                *own = 0.0;
            } else if settled < all {
                *processor *= all / settled;
            }
        }
        let part = |own: f64, processor: f64| (own > 0.0).then(|| (processor / own).clamp(0.0, 1.0));
        let together = part(own.iter().sum(), processor.iter().sum()).unwrap_or(1.0);
        if self.whole.iter().all(|whole| whole.longer.is_none()) {
            // Those of which none counts are as the others.
            let parts = own.iter().zip(&processor).zip(&self.whole).map(|((own, processor), whole)| {
                part(*own, *processor).unwrap_or(if whole.own > 0.0 { together } else { 1.0 })
            });
            return (parts.collect(), together);
        }
        let slopes = self.slopes(had);
        let of = |((whole, slope), part): ((&Whole, f64), Option<f64>)| {
            let (part, longer) = (part.unwrap_or(together), whole.longer.unwrap_or(1.0));
            ((part + slope * (longer - 1.0)) / longer).clamp(0.0, 1.0)
        };
        let parts = own.iter().zip(&processor).map(|(own, processor)| part(*own, *processor));
        let parts: Vec<f64> = self.whole.iter().zip(slopes).zip(parts).map(of).collect();
        let all = self.whole.iter().map(|whole| whole.own).sum::<f64>();
        let busy = self.whole.iter().zip(&parts).map(|(whole, part)| whole.own * part).sum::<f64>();
        (parts, part(all, busy).unwrap_or(together))
    }

    /// By entry, by how much what a stay had grows with how long it was. Where too few stays tell, it is in proportion.
    fn slopes(&self, had: &[f64]) -> Vec<f64> {
        let means = self.means(had);
        let mut batches = vec![(0_usize, 0.0, 0.0); self.whole.len()];
        let mut sums = vec![(0_usize, 0.0, 0.0); self.whole.len()];
        let mut together = vec![(0.0, 0.0); self.whole.len()];
        for (stay, had) in self.recorded(had) {
            let (length, mean_had) = means[stay.kind];
            let (number, longer, more) = &mut batches[stay.entry];
            *number += 1;
            *longer += stay.length() as f64 - length;
            *more += had - mean_had;
            together[stay.entry].0 += stay.length() as f64;
            together[stay.entry].1 += had;
            if *number == BATCH {
                let (full, squares, both) = &mut sums[stay.entry];
                (*full, *squares, *both) = (*full + 1, *squares + *longer * *longer, *both + *longer * *more);
                batches[stay.entry] = (0, 0.0, 0.0);
            }
        }
        let slope = |((full, squares, both), (own, had)): ((usize, f64, f64), (f64, f64))| match full {
            ENOUGH.. if squares > 0.0 => (both / squares).clamp(0.0, 1.0),
            _ if own > 0.0 => had / own,
            _ => 0.0,
        };
        sums.into_iter().zip(together).map(slope).collect()
    }

    /// What [`Imputed::unslowed`] is, of what stays had.
    ///
    /// Of a stay of given length at servers that slow nobody, the part in which others would have slowed it does not depend on the length: so what it would have had
    /// falls with that part. Where servers do slow, stays grow with that part, and what they had does not depend on it.
    fn unslowed(&self, had: &[f64]) -> f64 {
        let own: Vec<f64> = self.seen.iter().map(|stay| stay.length() as f64).collect();
        let slowed: Vec<f64> = own.iter().zip(had).map(|(own, had)| 1.0 - had / own).collect();
        let work = self.dependence(&slowed, had);
        if work >= -TELLS {
            return 0.0;
        }
        let stays = self.dependence(&slowed, &own);
        if stays.abs() < AS_GOOD_AS_NONE { (work * work - stays * stays).sqrt() } else { 0.0 }
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
        let mut own: Vec<Vec<f64>> = vec![Vec::new(); self.telling.len()];
        for (stay, had) in self.seen.iter().zip(&had) {
            own[stay.kind].push(*had);
        }
        for own in &mut own {
            own.sort_unstable_by(f64::total_cmp);
        }
        let mut order = Order::default();
        for (number, before, so_far) in pairs {
            let of_kind = &own[self.seen[number].kind];
            if of_kind.len() < ENOUGH || !self.telling[self.seen[number].kind] {
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

    /// By kind, the mean length of stays and the mean of what they had; not a number where there is none.
    fn means(&self, had: &[f64]) -> Vec<(f64, f64)> {
        let mut sums = vec![(0.0, 0.0, 0.0); self.telling.len()];
        for (stay, had) in self.recorded(had) {
            let (count, length, sum) = &mut sums[stay.kind];
            (*count, *length, *sum) = (*count + 1.0, *length + stay.length() as f64, *sum + had);
        }
        sums.into_iter().map(|(count, length, had)| (length / count, had / count)).collect()
    }

    /// What queueing adds to how much stays vary: by entry, the squared coefficient of variation of the time with a processor over that of the whole stay, of stays of one kind.
    fn spread(&self, had: &[f64], processor: &[f64]) -> Vec<f64> {
        let means = self.means(had);
        let mut variances = vec![(0.0, 0.0); self.whole.len()];
        for (stay, had) in self.settled(had) {
            let (length, mean_had) = means[stay.kind];
            let of_entry = &mut variances[stay.entry];
            of_entry.0 += (stay.length() as f64 - length).powi(2);
            of_entry.1 += (had - mean_had).powi(2);
        }
        let factor = |((whole, own), part): (&(f64, f64), &f64)| {
            let factor = own / whole / (part * part);
            if factor.is_finite() { factor } else { 1.0 }
        };
        variances.iter().zip(processor).map(factor).collect()
    }

    /// The mean length of stays, nanoseconds.
    pub fn mean_stay(&self) -> f64 {
        self.mean_length
    }

    /// How far the mean of what stays had differs between those that found different numbers, beyond chance: the square root of what the sum of squares has more than two
    /// standard deviations above its mean (chi squared). Several servers with one line look like fewer that are shared in how what they had grows with that number, yet not
    /// number by number.
    fn uneven(&self, found: &[usize], had: &[f64]) -> f64 {
        let mut groups = vec![[Sums::default(); MANY + 1]; self.telling.len()];
        for (stay, (&found, &had)) in self.recorded(found.iter().zip(had)) {
            let own = &mut groups[stay.kind][found.min(MANY)];
            own.count += 1;
            own.had += had;
            own.had_squares += had * had;
        }
        let (mut squares, mut freedom) = (0.0, 0.0);
        for (of_kind, _) in groups.iter().zip(&self.telling).filter(|(_, tells)| **tells) {
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
        let mut sums = vec![Sums::default(); self.telling.len()];
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
        let tell = |own: &Sums| own.count >= ENOUGH && own.found_squares > 0.0 && own.had_squares > 0.0;
        for (own, _) in sums.iter().zip(&self.telling).filter(|(own, tells)| **tells && tell(own)) {
            both += own.both / (own.had_squares / own.count as f64).sqrt();
            squares += own.found_squares;
        }
        if squares > 0.0 { both / squares.sqrt() } else { 0.0 }
    }
}

/// Begins and ends of stays, of which those that begin first come first, in the order of time: at one time ends before begins.
fn edges(seen: &[Seen]) -> Vec<(i64, bool, usize)> {
    let ends = order_of(seen.iter().map(|stay| stay.end));
    let mut ends = ends.into_iter().map(|number| (seen[number].end, number)).peekable();
    let mut edges = Vec::with_capacity(2 * seen.len());
    for (number, stay) in seen.iter().enumerate() {
        while let Some((end, number)) = ends.next_if(|(end, _)| *end <= stay.start) {
            edges.push((end, false, number));
        }
        edges.push((stay.start, true, number));
    }
    edges.extend(ends.map(|(end, number)| (end, false, number)));
    edges
}

/// What stays of one kind come to.
#[derive(Clone, Copy, Debug)]
struct Steps {
    count: usize,
    /// The step of their clock relative to their mean length.
    step: f64,
    /// The time of all of them together, nanoseconds.
    time: f64,
    /// What all their times are multiples of, nanoseconds: the step of their clock, however short.
    grain: f64,
}

impl Steps {
    /// The step of their clock, however short, relative to their mean length.
    fn fineness(&self) -> f64 {
        if self.time > 0.0 { self.grain * self.count as f64 / self.time } else { 0.0 }
    }
}

/// The greatest common divisor; 0 is a multiple of every number.
fn common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// By kind, what its stays come to.
fn steps(seen: &[Seen], kinds: usize) -> Vec<Steps> {
    #[derive(Clone, Copy, Default)]
    struct Kind {
        first: Option<i64>,
        count: u64,
        length: f64,
        grain: u64,
    }
    let mut all = vec![Kind::default(); kinds];
    for stay in seen.iter().filter(|stay| stay.dated) {
        let kind = &mut all[stay.kind];
        let (length, since) =
            (stay.start.abs_diff(stay.end), stay.start.abs_diff(*kind.first.get_or_insert(stay.start)));
        if kind.grain != 1 {
            kind.grain = common_divisor(common_divisor(kind.grain, length), since);
        }
        (kind.count, kind.length) = (kind.count + 1, kind.length + length as f64);
    }
    let of = |kind: Kind| {
        let step = clocks::step_of(kind.grain).filter(|_| kind.count > 0);
        Steps {
            count: kind.count as usize,
            step: step.map_or(0.0, |step| step as f64 * kind.count as f64 / kind.length),
            time: kind.length,
            grain: kind.grain as f64,
        }
    };
    all.into_iter().map(of).collect()
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
