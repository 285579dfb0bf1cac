//! How many connections callers have to a peer, where calls were seen to wait for one.
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
use crate::model::pools::{
    BY_CHANCE, ENOUGH, LONGER, Pool, RIGHT_AFTER, by_chance, is_no_chance, shorten_network, step_of,
};
use crate::names::Name;

/// Of the calls that take the last connection and may have waited for it, so many begin right when another one ends: (1, 3). With m connections that are busy for the part ρ
/// of the time it is about ρ of them (M/M/m).
const MOSTLY: (usize, usize) = (1, 3);

/// So many invocations of the entries of a peer without spans recorded none, and no more of the entries of others: (98, 100).
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
    /// The instance of the caller.
    site: u32,
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
    for (peer, Peer { entries, is_silent }) in peers(sub) {
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
        let stretches = Stretches::of(sub, &callers, before);
        let calls = if is_silent {
            calls_without_visits(totals(), before)
        } else {
            calls_with_visits(totals(), &stretches, before)
        };
        let looked = Looked::at(&calls, &stretches);
        let Some((pool, lengths)) = looked.pool(of) else { continue };
        let calls: u64 = totals().map(|entry| entry.invocations).sum();
        if !is_silent {
            hold_while_on_the_way(sub, &callers, &entries);
        }
        let taken: f64 = callers.iter().map(|caller| shorten(sub.entry_mut(*caller), *caller, &lengths, before)).sum();
        pools.insert(peer, Pool { wait: taken / calls.max(1) as f64, ..pool });
    }
    pools
}

/// What is called.
struct Peer {
    entries: Vec<EntryIndex>,
    /// Whether it records no spans of its own.
    is_silent: bool,
}

/// Tasks whose callers wait for each call, and that record spans of hardly any invocation or of nearly all.
fn peers(sub: &SubModel) -> BTreeMap<Name, Peer> {
    let mut tasks: BTreeMap<Name, Vec<EntryIndex>> = BTreeMap::new();
    let services = sub.canonical_order().into_iter();
    for index in services.filter(|index| sub.entry(*index).interaction != Interaction::Customer) {
        tasks.entry(sub.entry(index).task).or_default().push(index);
    }
    let peer = |(task, entries): (Name, Vec<EntryIndex>)| {
        let totals = || entries.iter().map(|index| sub.entry(*index));
        let is_silent = totals().all(|entry| entry.silent * SILENT.1 >= entry.invocations * SILENT.0);
        let is_recorded = || totals().all(|entry| entry.silent * SILENT.1 <= entry.invocations * (SILENT.1 - SILENT.0));
        let is_waited_for = totals().all(|entry| entry.interaction == Interaction::Rendezvous);
        (is_waited_for && (is_silent || is_recorded())).then_some((task, Peer { entries, is_silent }))
    };
    tasks.into_iter().filter_map(peer).collect()
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
                let own = Before { kind: (caller, stay.part), start: stay.start, length: stay.length, site: stay.site };
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

    /// The next one that ends where a call begins, of those from a place on.
    fn before(&self, call: i64, next: &mut usize) -> Option<Before> {
        // Times are rounded apart from lengths.
        *next = self.first_at(call.saturating_sub(1)).max(*next);
        let (_, own) = self.0.get(*next).copied().filter(|(end, _)| *end <= call.saturating_add(1))?;
        *next += 1;
        Some(own)
    }
}

/// Calls to a peer without spans, by the instance of their caller: its visits are the calls.
fn calls_without_visits<'e>(
    entries: impl Iterator<Item = &'e EntryTotal>,
    before: Option<Rank>,
) -> BTreeMap<u32, Vec<Stay>> {
    let mut sites: BTreeMap<u32, Vec<Stay>> = BTreeMap::new();
    for visit in entries.flat_map(|entry| entry.visits.kept()) {
        if visit.part == 1 && visit.length > 0 && is_told(&visit, before) {
            sites.entry(visit.site).or_default().push(visit);
        }
    }
    sites
}

/// Calls to a peer that records spans, by the instance of their caller. The way there and the visit make a call; the way back is as long as the shortest way there.
fn calls_with_visits<'e>(
    entries: impl Iterator<Item = &'e EntryTotal>,
    stretches: &Stretches,
    before: Option<Rank>,
) -> BTreeMap<u32, Vec<Stay>> {
    let mut calls: Vec<Stay> = Vec::new();
    for entry in entries {
        let kept = entry.visits.kept();
        let mut visits: FxHashMap<(u32, i64), Vec<u64>> = FxHashMap::default();
        for visit in kept.iter().filter(|visit| visit.part == 1) {
            visits.entry((visit.site, visit.start)).or_default().push(visit.length);
        }
        let ways = || kept.iter().filter(|way| way.part == 0 && is_told(way, before));
        let back = ways().map(|way| way.length).min().unwrap_or_default();
        for way in ways() {
            if let Some(visit) = visits.get_mut(&(way.site, way.end())).and_then(Vec::pop) {
                let length = way.length.saturating_add(visit).saturating_add(back);
                calls.push(Stay { start: way.start, length, part: 1, site: way.site });
            }
        }
    }
    calls.sort_unstable_by_key(|call| (call.start, call.length, call.site));
    let mut sites: BTreeMap<u32, Vec<Stay>> = BTreeMap::new();
    let mut next = 0;
    for call in calls.into_iter().filter(|call| call.length > 0) {
        if let Some(own) = stretches.before(call.start, &mut next) {
            sites.entry(own.site).or_default().push(Stay { site: own.site, ..call });
        }
    }
    sites
}

fn is_told(stay: &Stay, before: Option<Rank>) -> bool {
    stay.part != UNDATED && before.is_none_or(|before| stay.rank() < before)
}

impl Looked {
    /// Looks at calls, by the instance of their caller.
    fn at(calls: &BTreeMap<u32, Vec<Stay>>, stretches: &Stretches) -> Self {
        let mut looked = Self::default();
        let step = step_of(calls.values());
        for calls in calls.values() {
            looked.look(calls, stretches, step);
        }
        looked
    }

    /// Looks at the calls of an instance, by a clock with such steps.
    fn look(&mut self, calls: &[Stay], stretches: &Stretches, step: f64) {
        /// At one time a call ends before another begins.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        enum Edge {
            Ends,
            Begins,
        }
        let both = |call: &Stay| [(call.start, Edge::Begins), (call.end(), Edge::Ends)];
        let mut edges: Vec<(i64, Edge)> = calls.iter().flat_map(both).collect();
        edges.sort_unstable();
        let (mut there, mut most, mut freed) = (0_usize, 0, i64::MIN);
        let mut begun: Vec<(i64, usize, i64)> = Vec::with_capacity(calls.len());
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
        let spent: f64 = calls.iter().map(|call| call.length as f64).sum();
        let interval = spent / calls.len().max(1) as f64 / most.max(1) as f64;
        let soon = step.max(RIGHT_AFTER * interval);
        let (mut last, mut held, mut free) = (0, Vec::new(), Vec::new());
        let mut next = 0;
        for (time, there, freed) in begun {
            let Some(own) = stretches.before(time, &mut next) else { continue };
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
        let begin = calls.iter().map(|call| call.start).min().unwrap_or_default();
        let end = calls.iter().map(Stay::end).max().unwrap_or_default();
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

/// A call holds its connection while it is on its way, too: network latency of calls to these entries becomes time in which an invocation of theirs pauses.
fn hold_while_on_the_way(sub: &mut SubModel, callers: &[EntryIndex], entries: &[EntryIndex]) {
    let mut ways: BTreeMap<EntryIndex, (u64, i128)> = BTreeMap::new();
    for &caller in callers {
        let entry = sub.entry_mut(caller);
        let mut off = 0;
        for (label, call) in &mut entry.calls {
            let Some(to) = label.to.filter(|to| label.kind == RequestKind::Synchronous && entries.contains(to)) else {
                continue;
            };
            let own = call.network.0.max(0);
            call.network = Seconds(call.network.0 - own);
            off += own;
            let way = ways.entry(to).or_default();
            *way = (way.0 + call.requests.count, way.1 + own);
        }
        shorten_network(entry, off);
    }
    for (entry, (calls, network)) in ways {
        let each = Seconds(network / i128::from(calls.max(1)));
        let entry = sub.entry_mut(entry);
        entry.response = entry.response.lengthened(each);
        let pauses = Moments::of(each).extended(entry.invocations);
        if let Some(work) = entry.work.values_mut().next() {
            work.pauses.merge(&pauses);
        }
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
