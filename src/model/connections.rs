//! How many connections callers have to a peer that records no spans, where calls were seen to wait for one.
//!
//! A call waits for a connection of a pool before its span begins: the wait looks like work of the caller. It shows all the same. No more calls of
//! an instance than there are connections are ever under way together, and most calls that take the last connection begin right when another call ends, after stretches of
//! work that last longer than those before other calls. By chance one of ten begins so. What these stretches are longer by is the wait: it is taken off the caller's work, and the
//! model has it as queueing for the peer's threads.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::lqn::stays::{Rank, Stay, UNDATED};
use crate::lqn::submodel::{EntryIndex, EntryTotal, Interaction, Moments, RequestKind, Seconds, SubModel};
use crate::model::load;
use crate::model::pools::{BY_CHANCE, ENOUGH, LONGER, Pool, RIGHT_AFTER, by_chance, is_no_chance, step_of};
use crate::names::Name;

/// Of the calls that take the last connection and may have waited for it, so many begin right when another one ends: (1, 3). With m connections that are busy for the part ρ
/// of the time it is about ρ of them (M/M/m).
const MOSTLY: (usize, usize) = (1, 3);

/// So many invocations of a peer's entries recorded no spans of it: (98, 100).
const SILENT: (u64, u64) = (98, 100);

/// A stretch of a caller's work: its entry, and the how-manieth of the invocation it is.
type Kind = (EntryIndex, u32);

/// How long stretches that ended with a wait may have lasted without it, nanoseconds, by kind and begin.
type Lengths = FxHashMap<(Kind, i64), u64>;

/// A stretch of work that ends where a call begins.
#[derive(Clone, Copy, Debug)]
struct Before {
    kind: Kind,
    start: i64,
    length: u64,
}

/// What was seen of the pools of callers' instances.
#[derive(Default)]
struct Looked {
    /// The most calls that were under way together at an instance that waited, and how many such instances there were at a time.
    most: usize,
    spans: Vec<(i64, i64)>,
    /// How many calls may have waited, and how many of these began right after another call ended.
    last: usize,
    right_after: usize,
    held: Vec<Before>,
    free: Vec<Before>,
}

/// Takes what calls waited for connections off the work of those that made them; gives the pools, by the task of the peer.
pub fn take_off_waits(sub: &mut SubModel) -> BTreeMap<Name, Pool> {
    // Of what was not traced, calls under way are missing.
    if !sub.scenarios.values().all(load::is_nearly_whole) {
        return BTreeMap::new();
    }
    let mut pools = BTreeMap::new();
    for (peer, entries) in peers(sub) {
        let callers = callers(sub, &entries);
        // Pools of several tasks make no one number of threads.
        let [first, rest @ ..] = &callers[..] else { continue };
        let of = sub.entry(*first).task;
        if rest.iter().any(|caller| sub.entry(*caller).task != of) {
            continue;
        }
        let totals = || entries.iter().map(|index| sub.entry(*index));
        let visits = totals().filter_map(|entry| entry.visits.complete_before());
        let before: Option<Rank> =
            visits.chain(callers.iter().filter_map(|caller| sub.entry(*caller).stays.complete_before())).min();
        let looked = Looked::at(totals(), &Stretches::of(sub, &callers, before), before);
        let Some((pool, lengths)) = looked.pool(of) else { continue };
        let calls: u64 = totals().map(|entry| entry.invocations).sum();
        let taken: f64 = callers.iter().map(|caller| shorten(sub.entry_mut(*caller), *caller, &lengths, before)).sum();
        pools.insert(peer, Pool { wait: taken / calls.max(1) as f64, ..pool });
    }
    pools
}

/// Entries of tasks that recorded no spans of their own, by task.
fn peers(sub: &SubModel) -> BTreeMap<Name, Vec<EntryIndex>> {
    let mut tasks: BTreeMap<Name, Vec<EntryIndex>> = BTreeMap::new();
    let services = sub.canonical_order().into_iter();
    for index in services.filter(|index| sub.entry(*index).interaction != Interaction::Customer) {
        tasks.entry(sub.entry(index).task).or_default().push(index);
    }
    let is_silent = |index: &EntryIndex| {
        let entry = sub.entry(*index);
        entry.interaction == Interaction::Rendezvous && entry.silent * SILENT.1 >= entry.invocations * SILENT.0
    };
    tasks.retain(|_, entries| entries.iter().all(is_silent));
    tasks
}

/// Entries that call one of these and wait for it.
fn callers(sub: &SubModel, entries: &[EntryIndex]) -> Vec<EntryIndex> {
    let calls = |index: &EntryIndex| {
        let to = |label: &crate::lqn::timing::CallLabel| label.to.is_some_and(|to| entries.contains(&to));
        sub.entry(*index).calls.keys().any(|label| label.kind == RequestKind::Synchronous && to(label))
    };
    sub.canonical_order().into_iter().filter(calls).collect()
}

/// The callers' stretches of work by their ends, in the order of time. By a coarse clock several end at one time.
struct Stretches(Vec<(i64, Before)>);

impl Stretches {
    fn of(sub: &SubModel, callers: &[EntryIndex], before: Option<Rank>) -> Self {
        let mut stretches = Vec::new();
        for &caller in callers {
            for stay in sub.entry(caller).stays.kept().into_iter().filter(|stay| is_told(stay, before)) {
                let own = Before { kind: (caller, stay.part), start: stay.start, length: stay.length };
                stretches.push((stay.end(), own));
            }
        }
        stretches.sort_unstable_by_key(|(end, own)| (*end, own.start, own.length, own.kind));
        Self(stretches)
    }

    /// Where those that end at a time or later begin.
    fn first_at(&self, end: i64) -> usize {
        self.0.partition_point(|own| own.0 < end)
    }
}

fn is_told(stay: &Stay, before: Option<Rank>) -> bool {
    stay.part != UNDATED && before.is_none_or(|before| stay.rank() < before)
}

impl Looked {
    fn at<'e>(entries: impl Iterator<Item = &'e EntryTotal>, stretches: &Stretches, before: Option<Rank>) -> Self {
        let mut sites: BTreeMap<u32, Vec<Stay>> = BTreeMap::new();
        for visit in entries.flat_map(|entry| entry.visits.kept()) {
            if visit.part == 1 && visit.length > 0 && is_told(&visit, before) {
                sites.entry(visit.site).or_default().push(visit);
            }
        }
        let mut looked = Self::default();
        let step = step_of(sites.values());
        for visits in sites.values() {
            looked.look(visits, stretches, step);
        }
        looked
    }

    /// Looks at the calls of an instance, by a clock with such steps.
    fn look(&mut self, visits: &[Stay], stretches: &Stretches, step: f64) {
        /// At one time a call ends before another begins.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        enum Edge {
            Ends,
            Begins,
        }
        let both = |visit: &Stay| [(visit.start, Edge::Begins), (visit.end(), Edge::Ends)];
        let mut edges: Vec<(i64, Edge)> = visits.iter().flat_map(both).collect();
        edges.sort_unstable();
        let (mut there, mut most, mut freed) = (0_usize, 0, i64::MIN);
        let mut begun: Vec<(i64, usize, i64)> = Vec::with_capacity(visits.len());
        for (time, edge) in edges {
            match edge {
                Edge::Begins => {
                    there += 1;
                    most = most.max(there);
                    begun.push((time, there, freed));
                }
                Edge::Ends => (there, freed) = (there.saturating_sub(1), time),
            }
        }
        let spent: f64 = visits.iter().map(|visit| visit.length as f64).sum();
        let interval = spent / visits.len().max(1) as f64 / most.max(1) as f64;
        let soon = step.max(RIGHT_AFTER * interval);
        let (mut last, mut held, mut free) = (0, Vec::new(), Vec::new());
        let mut next = 0;
        for (time, there, freed) in begun {
            // Times are rounded apart from lengths.
            next = stretches.first_at(time - 1).max(next);
            let Some((_, own)) = stretches.0.get(next).copied().filter(|(end, _)| *end <= time + 1) else { continue };
            next += 1;
            let may_wait = there == most && own.start < freed;
            last += usize::from(may_wait);
            if may_wait && time.abs_diff(freed) as f64 <= soon {
                held.push(own);
            } else {
                free.push(own);
            }
        }
        let by_chance = by_chance(soon, step, interval);
        let is_seen = held.len() >= ENOUGH
            && held.len() * MOSTLY.1 >= last * MOSTLY.0
            && by_chance <= BY_CHANCE
            && is_no_chance(held.len(), last, by_chance);
        if !is_seen {
            self.free.append(&mut free);
            return;
        }
        let begin = visits.iter().map(|visit| visit.start).min().unwrap_or_default();
        let end = visits.iter().map(Stay::end).max().unwrap_or_default();
        self.spans.push((begin, end));
        self.most = self.most.max(most);
        (self.last, self.right_after) = (self.last + last, self.right_after + held.len());
        self.held.append(&mut held);
        self.free.append(&mut free);
    }

    /// The pool, and how long its stretches may have lasted without a wait: as long as others of their kind, one after the other.
    fn pool(&self, of: Name) -> Option<(Pool, Lengths)> {
        let mut free: BTreeMap<Kind, Vec<u64>> = BTreeMap::new();
        for own in &self.free {
            free.entry(own.kind).or_default().push(own.length);
        }
        let mut used: BTreeMap<Kind, usize> = BTreeMap::new();
        let (mut all, mut left) = (0.0, 0.0);
        let mut lengths = Lengths::default();
        for own in &self.held {
            let Some(free) = free.get(&own.kind) else { continue };
            let next = used.entry(own.kind).or_default();
            let length = free[*next % free.len()];
            *next += 1;
            (all, left) = (all + own.length as f64, left + length as f64);
            lengths.insert((own.kind, own.start), length);
        }
        // Instances that come one after the other have their connections one after the other.
        let together = self
            .spans
            .iter()
            .map(|(begin, _)| self.spans.iter().filter(|(other, end)| other <= begin && begin < end).count());
        let (threads, copies) = (u32::try_from(self.most).ok()?, u32::try_from(together.max()?).ok()?);
        let (waited, right_after) = (self.last, self.right_after);
        let pool = Pool { threads, copies, of: Some(of), wait: 0.0, waited, right_after };
        (left > 0.0 && all > LONGER * left).then_some((pool, lengths))
    }
}

/// Takes waits off the stretches of work of an entry, and off its time; gives the time that was taken, seconds.
fn shorten(entry: &mut EntryTotal, index: EntryIndex, lengths: &Lengths, before: Option<Rank>) -> f64 {
    let shortened_by = |stay: &mut Stay| {
        // Its work is as long as that of others, and nobody saw when it ended.
        if let Some(length) = lengths.get(&((index, stay.part), stay.start)) {
            (stay.length, stay.part) = (*length, UNDATED);
        }
    };
    if let Some(before) = before {
        // What others met is known of these only.
        entry.stays.keep_before(before);
    }
    let spread = |entry: &EntryTotal| {
        let kept = entry.stays.kept();
        let sum = |power: i32| kept.iter().map(|stay| (stay.length as f64).powi(power)).sum::<f64>();
        let (count, all) = (kept.len().max(1) as f64, sum(1));
        (count, all, (sum(2) / count - (all / count).powi(2)).max(0.0))
    };
    let (_, whole, varied) = spread(entry);
    entry.stays.change(shortened_by);
    let (kept, left, varies) = spread(entry);
    let own = entry.own_time();
    if left >= whole || own <= 0.0 {
        return 0.0;
    }
    // Waits vary from one stretch of time to another, and work does not: what is left of those that were kept is the work of all.
    let part = (left * 1e-9 * entry.stays.seen() as f64 / kept / own).min(1.0);
    let spread = if varied > 0.0 { varies / varied } else { 1.0 };
    for work in entry.work.values_mut() {
        work.exclusive = shortened(&work.exclusive, part, spread);
    }
    own * (1.0 - part)
}

/// As many values whose mean is this part of what it was, and whose variance is that part.
fn shortened(moments: &Moments, part: f64, spread: f64) -> Moments {
    let cv2 = moments.cv2().unwrap_or(0.0);
    let squares = moments.squares as f64 * (part * part + cv2 * spread) / (1.0 + cv2);
    Moments { count: moments.count, sum: Seconds((moments.sum.0 as f64 * part) as i128), squares: squares as i128 }
}
