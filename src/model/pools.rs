//! How many threads tasks have, where calls were seen to wait for one.
//!
//! Where all threads of a task are busy, a call waits on its way there until one of them is free. So a task has k threads if no more than k of its visits were ever
//! under way together, and calls that came while k were begin right when another visit ends, and later than the others do. Visits of a task with threads enough begin
//! whenever calls come. What such calls wait for a thread is part of the time that they are on their way: a model in which they queue for threads has it no second time.

use std::collections::BTreeMap;

use crate::diagnostic::quantity::{milliseconds, percent};
use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::lqn::stays::{Rank, Stay};
use crate::lqn::submodel::{EntryIndex, EntryTotal, Interaction, Moments, RequestKind, Seconds, SubModel};
use crate::model::{clocks, codes, load};
use crate::names::Name;

/// From fewer calls that came while all threads were busy nothing follows.
pub const ENOUGH: usize = 10;

/// A visit begins right after another one where less than this part of the mean interval between ends has passed, with all threads busy. By chance one of ten does.
pub const RIGHT_AFTER: f64 = 0.1;

/// So many of the calls that came while all threads were busy begin right when a thread is free: (1, 2).
const MOSTLY: (usize, usize) = (1, 2);

/// Calls that waited took so many times as long on their way as the others.
pub const LONGER: f64 = 1.5;

/// How many tasks are named.
const SHOWN: usize = 12;

/// The threads of a task, or the connections to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pool {
    /// How many threads each instance has, or connections each instance of the caller.
    pub threads: u32,
    /// How many instances of the caller there were at a time that have connections; 1 of threads.
    pub copies: u32,
    /// The task whose connections these are; `None` of threads.
    pub of: Option<Name>,
    /// How long a call waits for one on average, those that do not wait included, seconds.
    pub wait: f64,
    /// How many calls came while all were busy.
    pub waited: usize,
    /// How many of these began right when one was free.
    pub right_after: usize,
}

/// The pools of threads that calls were seen to wait for, by task.
fn find(sub: &SubModel) -> BTreeMap<Name, Pool> {
    // Of what was not traced, visits under way are missing.
    if !sub.scenarios.values().all(load::is_nearly_whole) {
        return BTreeMap::new();
    }
    let mut tasks: BTreeMap<Name, Vec<&EntryTotal>> = BTreeMap::new();
    for entry in sub.entries().iter().filter(|entry| entry.interaction != Interaction::Customer) {
        tasks.entry(entry.task).or_default().push(entry);
    }
    tasks.into_iter().filter_map(|(task, entries)| Some((task, Ways::of(&entries).pool()?))).collect()
}

/// Takes what calls waited for threads off their network latency; gives the pools, by task.
pub fn take_off_waits(sub: &mut SubModel) -> BTreeMap<Name, Pool> {
    let pools = find(sub);
    if pools.is_empty() {
        return pools;
    }
    let waits: Vec<f64> =
        sub.entries().iter().map(|entry| pools.get(&entry.task).map_or(0.0, |pool| pool.wait)).collect();
    for number in 0..waits.len() {
        let entry = sub.entry_mut(EntryIndex(number as u32));
        let mut off = 0;
        for (label, call) in &mut entry.calls {
            let Some(to) = label.to.filter(|_| label.kind == RequestKind::Synchronous) else { continue };
            let wait = Seconds::from_f64(waits[to.index()] * call.requests.count as f64).0.min(call.network.0.max(0));
            call.network = Seconds(call.network.0 - wait);
            off += wait;
        }
        let all: i128 = entry.work.values().map(|work| work.network.sum.0).sum();
        if off <= 0 || all <= 0 {
            continue;
        }
        let left = 1.0 - (off as f64 / all as f64).min(1.0);
        for work in entry.work.values_mut() {
            work.network.sum = Seconds((work.network.sum.0 as f64 * left) as i128);
            work.network.squares = (work.network.squares as f64 * left * left) as i128;
        }
    }
    pools
}

/// How long an invocation of each entry takes for waits of its calls for threads, and for those of what they call, seconds: as much as each call of
/// those that are out together has of that time.
pub fn waited(sub: &SubModel, pools: &BTreeMap<Name, Pool>) -> Vec<f64> {
    /// Calls within calls, and round circles of calls, are followed so deep.
    const DEEPEST: usize = 64;
    let entries = sub.entries();
    let mut waited = vec![0.0; entries.len()];
    for _ in 0..if pools.is_empty() { 0 } else { DEEPEST } {
        let of = |entry: &EntryTotal| {
            let calls = entry.calls.iter().filter(|(label, _)| label.kind == RequestKind::Synchronous);
            let waits = calls.filter_map(|(label, call)| {
                let to = label.to?;
                let own = pools.get(&sub.entry(to).task).map_or(0.0, |pool| pool.wait);
                let duration = call.duration.sum.as_f64().max(f64::MIN_POSITIVE);
                let share = (call.share.as_f64() / duration).clamp(0.0, 1.0);
                Some(call.requests.count as f64 * share * (own + waited[to.index()]))
            });
            let each = waits.sum::<f64>() / entry.invocations.max(1) as f64;
            each.min(entry.response.mean().unwrap_or(0.0))
        };
        let next: Vec<f64> = entries.iter().map(of).collect();
        if next == waited {
            break;
        }
        waited = next;
    }
    waited
}

/// Says which tasks have a limited number of threads, and what shows it.
pub fn note(sub: &SubModel, pools: &BTreeMap<Name, Pool>) -> Option<Diagnostic> {
    let mut pools: Vec<(&str, Pool)> = pools.iter().map(|(task, pool)| (sub.names.text(*task), *pool)).collect();
    pools.sort_by_key(|(task, _)| *task);
    let (first, _) = *pools.first()?;
    let tasks = if pools.len() == 1 { "one task".to_owned() } else { format!("{} tasks", pools.len()) };
    let has = |is_of: fn(&Option<Name>) -> bool| pools.iter().any(|(_, pool)| is_of(&pool.of));
    let what = match (has(Option::is_none), has(Option::is_some)) {
        (true, true) => "threads of, and connections to,",
        (false, true) => "connections to",
        _ => "threads of",
    };
    let message = format!("the {what} {tasks} were found, since calls wait for them");
    let mut finding = Diagnostic::new(Severity::Note, codes::POOLS, Place::Nowhere, message);
    for (task, pool) in pools.iter().take(SHOWN) {
        let Pool { threads, copies, of, wait, waited, right_after } = *pool;
        let (right, wait) = (percent(right_after as f64 / waited as f64), milliseconds(wait));
        finding = finding.with_note(match of {
            None => format!("`{task}`: {threads}; a call waits {wait} for one, and {right} of the {waited} calls that came while all were busy began right when one was free"),
            Some(of) => {
                let of = match copies {
                    1 => format!("`{}`", sub.names.text(of)),
                    _ => format!("each of {copies} instances of `{}`", sub.names.text(of)),
                };
                format!("`{task}`: {threads} of {of}; a call waits {wait} for one, and {right} of the {waited} calls that took the last one began right when another call ended")
            }
        });
    }
    if pools.len() > SHOWN {
        finding = finding.with_note(format!("and {} more", pools.len() - SHOWN));
    }
    Some(finding.with_hint(format!("`threads` under `[task.{}]` sets another number", load::toml_key(first))))
}

/// How calls came to a task.
#[derive(Default)]
struct Ways {
    calls: Vec<Way>,
    /// The most visits that were under way at one instance.
    most: usize,
    /// How many visits there were, and how long all of them took, nanoseconds.
    visits: usize,
    spent: f64,
    /// How long calls were on their way, of all that there were.
    all: Moments,
}

/// A call on its way.
#[derive(Clone, Copy)]
struct Way {
    /// How long it was, nanoseconds.
    length: f64,
    /// How many visits were under way when it left, and calls on their way.
    met: usize,
    /// How long after the end of a visit it arrived, nanoseconds; infinite where none had ended.
    after: f64,
}

impl Ways {
    fn of(entries: &[&EntryTotal]) -> Self {
        let before: Option<Rank> = entries.iter().filter_map(|entry| entry.visits.complete_before()).min();
        let mut sites: BTreeMap<u32, Vec<Stay>> = BTreeMap::new();
        let is_complete = |stay: &Stay| before.is_none_or(|before| stay.rank() < before);
        for stay in entries.iter().flat_map(|entry| entry.visits.kept()).filter(is_complete) {
            sites.entry(stay.site).or_default().push(stay);
        }
        let mut ways = Self::default();
        for entry in entries {
            ways.all.merge(&entry.way);
        }
        if sites.values().flatten().any(|stay| !clocks::is_whole(stay.start)) {
            for pieces in sites.values() {
                ways.look(pieces);
            }
        }
        ways
    }

    /// Looks at the ways and visits of an instance.
    fn look(&mut self, pieces: &[Stay]) {
        /// At one time a visit ends before a call arrives, and that before another leaves.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        enum Edge {
            Ends,
            Arrives,
            Begins,
            Leaves,
        }
        let both = |(number, piece): (usize, &Stay)| match piece.part {
            0 => [(piece.start, Edge::Leaves, number), (piece.end(), Edge::Arrives, number)],
            _ => [(piece.start, Edge::Begins, number), (piece.end(), Edge::Ends, number)],
        };
        // One that takes no time waits for nothing, and ends before it begins in that order.
        let takes_time = |(_, piece): &(usize, &Stay)| piece.length > 0;
        let mut edges: Vec<(i64, Edge, usize)> = pieces.iter().enumerate().filter(takes_time).flat_map(both).collect();
        edges.sort_unstable();
        let mut met = vec![0; pieces.len()];
        let (mut there, mut on_the_way, mut ended) = (0_usize, 0_usize, None);
        for (time, edge, number) in edges {
            match edge {
                Edge::Leaves => {
                    met[number] = there + on_the_way;
                    on_the_way += 1;
                }
                Edge::Begins => {
                    there += 1;
                    self.most = self.most.max(there);
                    self.visits += 1;
                    self.spent += pieces[number].length as f64;
                }
                Edge::Ends => {
                    there = there.saturating_sub(1);
                    ended = Some(time);
                }
                Edge::Arrives => {
                    on_the_way = on_the_way.saturating_sub(1);
                    let after = ended.map_or(f64::INFINITY, |ended: i64| time.abs_diff(ended) as f64);
                    self.calls.push(Way { length: pieces[number].length as f64, met: met[number], after });
                }
            }
        }
    }

    fn pool(&self) -> Option<Pool> {
        let threads = u32::try_from(self.most).ok().filter(|threads| *threads > 0)?;
        let (held, free): (Vec<Way>, Vec<Way>) = self.calls.iter().partition(|way| way.met >= self.most);
        if held.len() < ENOUGH {
            return None;
        }
        let interval = self.spent / self.visits as f64 / f64::from(threads);
        let right_after = held.iter().filter(|way| way.after <= RIGHT_AFTER * interval).count();
        let mean = |ways: &[Way]| ways.iter().map(|way| way.length).sum::<f64>() / ways.len() as f64;
        // Calls that overtake others on their way make these wait, too, but for those that left while few were there.
        let first: Vec<Way> = free.iter().copied().filter(|way| 2 * way.met < self.most).collect();
        let base = match (first.len() < ENOUGH, free.len() < ENOUGH) {
            (false, _) => mean(&first),
            (true, false) => mean(&free),
            (true, true) => held.iter().map(|way| way.length).fold(f64::INFINITY, f64::min),
        };
        let is_pool = right_after * MOSTLY.1 >= held.len() * MOSTLY.0 && mean(&held) > LONGER * base;
        let wait = (self.all.mean()? - base * 1e-9).max(0.0);
        is_pool.then_some(Pool { threads, copies: 1, of: None, wait, waited: held.len(), right_after })
    }
}
