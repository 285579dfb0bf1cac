//! Which calls of an entry are made one after the other, and which side by side: decided of all invocations together, when
//! everything is merged.
//!
//! Two calls are in *sequence* where they were seen so in nearly all invocations that made both ([`IN_ORDER`]); what single
//! invocations show beyond that is noise of clocks and of scheduling. Calls that are not in sequence, one by one, make a *fork*: its
//! branches begin at their mean offsets, and the strand is in it for as long as was seen. All calls of an entry are so a
//! sequence of calls and forks.

mod handed_on;
mod phase;

use std::collections::BTreeMap;

use petgraph::unionfind::UnionFind;

use crate::lqn::submodel::{EntryIndex, EntryKey, EntryTotal, Interaction, Position, RequestKind, Seconds, SubModel};
use crate::lqn::timing::{CallLabel, CallTotal, PairTotal};
use crate::model::fragments::{fill_times, give_back};
use crate::model::pools::Pool;
use crate::model::weave::phase::PhaseParts;
use crate::model::{connections, pools, sampling};
use crate::names::Name;

/// Calls are in order where they are so in 98 of 100 invocations: (98, 100).
const IN_ORDER: (u64, u64) = (98, 100);

/// An entry that nobody waits for is outvoted by the same one that somebody waits for, where it has less than this part of the
/// invocations of both: (2, 100).
const OUTVOTED: (u64, u64) = (2, 100);

/// How many branches calls are drawn as at most that have one label for all of them (ours): all of them are solved as one, and pictures show few of them.
const WIDEST: u64 = 512;

/// Calls of one label that are out at one time on the mean, from which on they are side by side (ours).
const BESIDE: f64 = 1.2;

/// By so much longer than was traced a fork may be without what its branches do to each other (ours).
const LONGER: f64 = 1.05;

/// A sub-model with its calls in order: work at the positions where it is done, and blocks where calls run side by side. Entries
/// keep their numbers. Waits for threads and connections are taken out of it.
pub struct Decided {
    /// The sub-model.
    pub sub: SubModel,
    /// The pools of threads and connections that calls were seen to wait for, by task.
    pub pools: BTreeMap<Name, Pool>,
}

/// Decides all that is decided of all invocations together.
pub fn decided(sub: &SubModel) -> Decided {
    let mut sub = sub.clone();
    sub.sort_times();
    sampling::settle(&mut sub);
    let mut pools = connections::take_off_waits(&mut sub);
    pools.extend(pools::take_off_waits(&mut sub));
    fill_times(&mut sub);
    give_back(&mut sub);
    outvote(&mut sub);
    handed_on::hand_on(&mut sub);
    let keys: Vec<EntryKey> = sub.entries().iter().map(|entry| entry.key).collect();
    for number in 0..keys.len() {
        let entry = sub.entry_mut(EntryIndex(number as u32));
        if entry.calls.is_empty() {
            continue;
        }
        forget_rare_strands(entry);
        let weave = Weave::of(entry, &keys);
        if entry.blocks.is_empty() { weave.put(entry, &keys) } else { weave.put_in_sequence(entry) }
    }
    Decided { sub, pools }
}

/// Strands that hardly any invocation has make no structure: what they do is part of the whole.
fn forget_rare_strands(entry: &mut EntryTotal) {
    let times = entry.blocks.values().map(|block| block.times).max().unwrap_or(0);
    if times == 0 || times * IN_ORDER.1 > entry.invocations * (IN_ORDER.1 - IN_ORDER.0) {
        return;
    }
    entry.blocks.clear();
    for (at, work) in std::mem::take(&mut entry.work) {
        let whole = Position { stage: 0, branch: None, phase: at.phase };
        entry.work.entry(whole).or_default().add(&work);
    }
}

/// A server span of a thousand that begins after its client has ended looks like one that nobody waits for. Where nearly all
/// invocations of the same service were waited for, these were, too.
fn outvote(sub: &mut SubModel) {
    let mut waited: BTreeMap<(u32, u32, u32), EntryIndex> = BTreeMap::new();
    let of = |entry: &EntryTotal| (entry.task.0, entry.instance, entry.service.0);
    let number = |at: usize| EntryIndex(at as u32);
    for (at, entry) in sub.entries().iter().enumerate() {
        if entry.interaction == Interaction::Rendezvous && entry.service.is_some() && entry.response.count > 0 {
            // Of several that differ in what they request, the one that was invoked most.
            let rank = |index: EntryIndex| (sub.entry(index).invocations, sub.entry(index).key);
            let most = waited.entry(of(entry)).or_insert(number(at));
            if rank(number(at)) > rank(*most) {
                *most = number(at);
            }
        }
    }
    let mut moved: BTreeMap<EntryIndex, EntryIndex> = BTreeMap::new();
    for (at, entry) in sub.entries().iter().enumerate() {
        let Some(&to) = waited.get(&of(entry)) else { continue };
        let all = entry.invocations + sub.entry(to).invocations;
        let few = entry.invocations * OUTVOTED.1 < all * OUTVOTED.0;
        if entry.interaction == Interaction::Asynchronous && entry.response.count > 0 && few {
            moved.insert(number(at), to);
        }
    }
    if moved.is_empty() {
        return;
    }
    for (&from, &to) in &moved {
        let gone = sub.entry_mut(from);
        let mut part = gone.clone();
        (gone.invocations, gone.outvoted) = (0, 0);
        gone.work.clear();
        gone.calls.clear();
        gone.pairs.clear();
        // Nobody was seen to wait, so that all of it was one phase.
        part.outvoted += part.invocations;
        sub.entry_mut(to).take_in(&part);
    }
    for at in 0..sub.entries().len() {
        redirect(sub.entry_mut(number(at)), &moved);
    }
}

/// Calls to entries that were outvoted go to those that outvoted them, and wait.
fn redirect(entry: &mut EntryTotal, moved: &BTreeMap<EntryIndex, EntryIndex>) {
    for work in entry.work.values_mut() {
        for (from, to) in moved {
            if let Some(request) = work.requests.shift_remove(&(RequestKind::Asynchronous, *from)) {
                work.requests.entry((RequestKind::Synchronous, *to)).or_default().merge(&request);
            }
        }
    }
    let gone = |label: &CallLabel| {
        label.kind == RequestKind::Asynchronous && label.to.is_some_and(|to| moved.contains_key(&to))
    };
    let labels: Vec<CallLabel> = entry.calls.keys().copied().filter(|label| gone(label)).collect();
    for label in labels {
        let Some(call) = entry.calls.shift_remove(&label) else { continue };
        let kind = RequestKind::Synchronous;
        let new = CallLabel { kind, to: label.to.and_then(|to| moved.get(&to)).copied(), ..label };
        // What was taken for work was waiting.
        let at = Position { stage: 0, branch: None, phase: label.phase };
        let work = entry.work.entry(at).or_default();
        work.delay = Seconds(work.delay.0 - call.share.0);
        entry.calls.entry(new).or_default().merge(&call);
    }
    entry.pairs.retain(|(left, right), _| !gone(left) && !gone(right));
}

/// The calls of an entry in their order.
struct Weave {
    labels: Vec<(CallLabel, CallTotal)>,
    /// By phase, one after the other.
    clusters: Vec<Cluster>,
}

/// Calls of one phase that are not in sequence with each other, by branch, each with its calls in sequence.
struct Cluster {
    phase: u8,
    branches: Vec<Vec<usize>>,
}

/// How two calls lie to each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Before,
    After,
    /// At the same time, or in no order that holds.
    Beside,
}

/// The order of two calls that an entry of so many invocations was seen to make.
fn order_of(pair: &PairTotal, invocations: u64) -> Order {
    let beside = pair.both - (pair.before + pair.after).min(pair.both);
    // That two calls are never out at once is a sequence, too, whichever comes first. And what hardly any invocation does makes no
    // structure.
    let holds = beside * IN_ORDER.1 <= pair.both * (IN_ORDER.1 - IN_ORDER.0)
        || pair.both * IN_ORDER.1 < invocations * (IN_ORDER.1 - IN_ORDER.0);
    let first = (pair.before, pair.later) >= (pair.after, pair.earlier);
    match (holds, first) {
        (true, true) => Order::Before,
        (true, false) => Order::After,
        (false, _) => Order::Beside,
    }
}

impl Weave {
    fn of(entry: &EntryTotal, keys: &[EntryKey]) -> Self {
        let mut labels: Vec<(CallLabel, CallTotal)> = entry
            .calls
            .iter()
            .filter(|(label, _)| label.kind == RequestKind::Synchronous)
            .map(|(label, call)| (*label, *call))
            .collect();
        let key = |label: &CallLabel| (label.phase, label.to.map(|to| keys[to.index()]), label.ordinal);
        labels.sort_by_key(|(label, _)| key(label));
        let mut orders: BTreeMap<(usize, usize), Order> = BTreeMap::new();
        for ((left, right), pair) in &entry.pairs {
            let place = |label: &CallLabel| labels.binary_search_by_key(&key(label), |(other, _)| key(other)).ok();
            let ours = left.kind == RequestKind::Synchronous && right.kind == RequestKind::Synchronous;
            if let (true, Some(left), Some(right)) = (ours && left.phase == right.phase, place(left), place(right)) {
                orders.insert((left, right), order_of(pair, entry.invocations));
            }
        }
        let clusters = clusters(&labels, &orders);
        Self { labels, clusters }
    }

    /// In how many branches the calls of a cluster are made that have one label for all, 1 for other clusters.
    fn width(&self, cluster: &Cluster) -> u64 {
        let [call] = cluster.branches.concat()[..] else { return 1 };
        let (label, total) = &self.labels[call];
        let beside = total.duration.sum.as_f64() / total.share.as_f64().max(f64::MIN_POSITIVE);
        if label.ordinal > 0 || label.to.is_none() || beside < BESIDE { 1 } else { width(total, beside).max(2) }
    }

    /// Puts the entry's work where it is done.
    fn put(&self, entry: &mut EntryTotal, keys: &[EntryKey]) {
        if self.clusters.iter().all(|cluster| cluster.branches.len() == 1 && self.width(cluster) == 1) {
            self.put_in_sequence(entry);
            return;
        }
        let mut stage = 0;
        for phase in 1..=3 {
            let at = Position { stage: 0, branch: None, phase };
            let Some(whole) = entry.work.get(&at) else { continue };
            let mut parts = PhaseParts::new(entry, whole.clone(), self, at, stage);
            for cluster in self.clusters.iter().filter(|cluster| cluster.phase == phase) {
                parts.cluster(cluster, keys);
            }
            stage = parts.stage;
            let PhaseParts { segments, branches, blocks, .. } = parts.finish();
            entry.work.shift_remove(&at);
            entry.work.extend(segments);
            entry.work.extend(branches);
            entry.blocks.extend(blocks);
        }
    }

    /// Leaves the work where it is: what calls take less of their invocation's time than they last is no work.
    fn put_in_sequence(&self, entry: &mut EntryTotal) {
        for phase in 1..=3 {
            let calls = self.labels.iter().filter(|(label, _)| label.phase == phase);
            let beyond = calls.map(|(_, call)| beyond(call)).fold(Seconds::default(), Seconds::plus);
            if let Some(work) = entry.work.get_mut(&Position { stage: 0, branch: None, phase }) {
                work.delay = work.delay.plus(beyond);
            }
        }
    }
}

/// In how many branches so many calls at a time on the mean are made: as few as do not take longer than was traced, and as many as there are calls at most. Fewer branches make
/// more calls each, one after the other, as a client does that has so many out at most. All calls that begin together end one by one, so that fewer than all are out on the mean.
fn width(total: &CallTotal, beside: f64) -> u64 {
    let invocations = total.invocations.max(1) as f64;
    let (calls, seen) = (total.requests.count as f64 / invocations, total.share.as_f64() / invocations);
    let mean = total.duration.sum.as_f64() / total.requests.count.max(1) as f64;
    let all = (calls.round() as u64).min(WIDEST);
    let mut harmonic = 0.0;
    for width in 1..all {
        harmonic += 1.0 / width as f64;
        // The longest of so many sums of exponentials: exact for one each.
        let each = calls / width as f64;
        let longest = mean * (each + each.sqrt() * (harmonic - 1.0));
        if width as f64 >= beside.round() && longest <= LONGER * seen {
            return width;
        }
    }
    all
}

/// By how much calls in sequence take less of their invocation's time than they last.
fn beyond(call: &CallTotal) -> Seconds {
    Seconds(call.share.0 - call.duration.sum.0)
}

/// PhaseParts of the calls such that those of two parts are in sequence, in the order of time.
fn clusters(labels: &[(CallLabel, CallTotal)], orders: &BTreeMap<(usize, usize), Order>) -> Vec<Cluster> {
    let beside = orders.iter().filter(|(_, order)| **order == Order::Beside).map(|(pair, _)| *pair);
    let mut parts = components(labels.len(), beside);
    let mean_start = |call: &usize| {
        let call = &labels[*call].1;
        call.start.as_f64() / call.invocations.max(1) as f64
    };
    let first = |part: &Vec<usize>| part.iter().map(mean_start).fold(f64::INFINITY, f64::min);
    for part in &mut parts {
        part.sort_by(|left, right| mean_start(left).total_cmp(&mean_start(right)).then(left.cmp(right)));
    }
    parts.sort_by(|left, right| {
        let phase = |part: &Vec<usize>| labels[part[0]].0.phase;
        phase(left).cmp(&phase(right)).then_with(|| first(left).total_cmp(&first(right))).then_with(|| left.cmp(right))
    });
    // Where each label is: its part, and its place there.
    let mut places = vec![(0, 0); labels.len()];
    for (number, part) in parts.iter().enumerate() {
        for (place, label) in part.iter().enumerate() {
            places[*label] = (number, place);
        }
    }
    let mut ordered: Vec<Vec<(usize, usize)>> = vec![Vec::new(); parts.len()];
    for (&(left, right), order) in orders {
        let (left, right) = (places[left], places[right]);
        if left.0 == right.0 && matches!(order, Order::Before | Order::After) {
            ordered[left.0].push((left.1, right.1));
        }
    }
    parts
        .into_iter()
        .zip(ordered)
        .map(|(part, ordered)| {
            let phase = labels[part[0]].0.phase;
            Cluster { phase, branches: branches(&part, &ordered) }
        })
        .collect()
}

/// The branches of a fork: chains of calls that are in sequence with each other and with nothing else, or else the calls one by
/// one. `ordered` has the pairs in sequence, by their places in the part.
fn branches(part: &[usize], ordered: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let chains = components(part.len(), ordered.iter().copied());
    let mut pairs = vec![0; part.len()];
    for &(left, right) in ordered {
        pairs[left] += 1;
        pairs[right] += 1;
    }
    let is_chain = |chain: &Vec<usize>| chain.iter().all(|call| pairs[*call] == chain.len() - 1);
    let mut branches: Vec<Vec<usize>> = if chains.len() > 1 && chains.iter().all(is_chain) {
        chains.into_iter().map(|chain| chain.into_iter().map(|at| part[at]).collect()).collect()
    } else {
        part.iter().map(|call| vec![*call]).collect()
    };
    branches.sort();
    branches
}

/// Connected parts of so many vertices, each in ascending order, the one with the least vertex first.
fn components(count: usize, edges: impl Iterator<Item = (usize, usize)>) -> Vec<Vec<usize>> {
    let mut sets = UnionFind::<usize>::new(count);
    for (left, right) in edges {
        sets.union(left, right);
    }
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let mut places = vec![None; count];
    for (at, set) in sets.into_labeling().into_iter().enumerate() {
        let place = *places[set].get_or_insert_with(|| {
            parts.push(Vec::new());
            parts.len() - 1
        });
        parts[place].push(at);
    }
    parts
}
