//! How many threads tasks have, where calls were seen to wait for one.
//!
//! Where all threads of a task are busy, a call waits on its way there until one of them is free. So a task has k threads if no more than k of its visits were ever
//! under way together, and calls that came while k were begin right when another visit ends, and later than the others do. Visits of a task with threads enough begin
//! whenever calls come. What such calls wait for a thread is part of the time that they are on their way: a model in which they queue for threads has it no second time.
//!
//! Begins and ends of visits to an instance are of one clock. Its steps leave their order, and put more of them at one time by chance: that is part of the probability that the
//! evidence comes about by chance. Where it changes with time beside that of the callers, a visit is moved as a whole, so that the next one may seem to begin a little before its end.

use std::collections::BTreeMap;

use crate::diagnostic::quantity::{milliseconds, percent, time};
use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::lqn::stays::{Rank, Stay};
use crate::lqn::submodel::{EntryIndex, EntryTotal, Interaction, Moments, RequestKind, Seconds, SubModel, common_step};
use crate::lqn::together;
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

/// Where so great a part of calls begin right after another visit by chance, nothing follows from those that do.
pub const BY_CHANCE: f64 = 0.25;

/// The probability with which so many calls may begin right after another visit by chance.
const CHANCE: f64 = 1e-3;

/// At most one of so many calls that wait may seem to have found a thread while all were busy: clocks and lost spans misplace some.
const STRAY: usize = 100;

/// So many numbers of threads are tried, from the most visits that were together down.
const TRIED: usize = 4;

/// A visit may seem to begin before the end of the one it waits for by one part in so many of the latter's length, as clocks drift and are put right; but by no more than one part
/// in so many of the mean interval between ends.
const OVERLAP: (u64, f64) = (1_000, 50.0);

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
    let of = |(task, entries): (Name, Vec<&EntryTotal>)| Some((task, Ways::of(&entries).pool()?));
    together::each(sub.threads(), tasks_of(sub), of).into_iter().flatten().collect()
}

/// The entries that are called, by task.
fn tasks_of(sub: &SubModel) -> BTreeMap<Name, Vec<&EntryTotal>> {
    let mut tasks: BTreeMap<Name, Vec<&EntryTotal>> = BTreeMap::new();
    for entry in sub.entries().iter().filter(|entry| entry.interaction != Interaction::Customer) {
        tasks.entry(entry.task).or_default().push(entry);
    }
    tasks
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
        shorten_network(entry, off);
    }
    pools
}

/// Takes that much off the network latency of all calls of an entry together.
pub fn shorten_network(entry: &mut EntryTotal, off: i128) {
    let all: i128 = entry.work.values().map(|work| work.network.sum.0).sum();
    if off <= 0 || all <= 0 {
        return;
    }
    let left = 1.0 - (off as f64 / all as f64).min(1.0);
    for work in entry.work.values_mut() {
        work.network.sum = Seconds((work.network.sum.0 as f64 * left) as i128);
        work.network.squares = (work.network.squares as f64 * left * left) as i128;
    }
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

/// Says which tasks may have a limited number of threads that coarse clocks hide, and no setting tells.
pub fn hidden(sub: &SubModel, pools: &BTreeMap<Name, Pool>, is_set: impl Fn(&str) -> bool) -> Vec<Diagnostic> {
    if !sub.scenarios.values().all(load::is_nearly_whole) {
        return Vec::new();
    }
    let others = tasks_of(sub).into_iter().filter(|(task, _)| !pools.contains_key(task));
    let others = others.map(|(task, entries)| (sub.names.text(task), entries)).filter(|(task, _)| !is_set(task));
    let others: Vec<(&str, Vec<&EntryTotal>)> = others.collect();
    let of = |(task, entries): (_, Vec<&EntryTotal>)| Some((task, Ways::of(&entries).hidden()?));
    let mut hidden: Vec<(&str, Hidden)> = together::each(sub.threads(), others, of).into_iter().flatten().collect();
    hidden.sort_by_key(|(task, _)| *task);
    hidden.truncate(SHOWN);
    hidden.into_iter().map(|(task, hidden)| hidden.finding(task)).collect()
}

/// What is seen of a pool of threads by a clock that is too coarse to tell it.
#[derive(Clone, Copy, Debug)]
struct Hidden {
    threads: usize,
    held: usize,
    /// How much longer these were on their way than others, seconds.
    longer: f64,
    /// The step of the clock and the mean interval between ends, seconds.
    step: f64,
    interval: f64,
    /// How many times today's load such threads would take, where that is known.
    growth: Option<f64>,
}

impl Hidden {
    fn finding(&self, task: &str) -> Diagnostic {
        let Self { threads, held, longer, step, interval, growth } = *self;
        let message = format!(
            "the times of `{task}` are multiples of {}: a pool of threads may be hidden, {threads} or more fit",
            time(step)
        );
        let seen = format!(
            "no more than {threads} of its visits were under way together, and the {held} calls that came then were {} longer on their way",
            milliseconds(longer)
        );
        let coarse = format!(
            "one of its visits ends each {}: such a clock does not tell whether calls begin right then",
            milliseconds(interval)
        );
        let finding =
            Diagnostic::warning(codes::COARSE_TIMES, Place::Nowhere, message).with_note(seen).with_note(coarse);
        let limit = growth.map(|growth| {
            format!(
                "with {threads} threads it would take {} times today's load; the model has no limit there",
                load::short(growth)
            )
        });
        limit.into_iter().fold(finding, Diagnostic::with_note).with_hint(format!(
            "give its `threads` under `[task.{}]`, or set the tracer to microseconds",
            load::toml_key(task)
        ))
    }
}

/// What happens to calls and visits. At one time a visit ends before a call arrives, and that before another leaves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edge {
    Ends,
    Arrives,
    Begins,
    Leaves,
}

/// How calls came to a task.
#[derive(Default)]
struct Ways {
    calls: Vec<Way>,
    /// How many visits began as the how-manieth that was under way at their instance.
    together: Vec<usize>,
    /// For how long visits came to an instance, all instances together, nanoseconds; `None` where some were left out.
    recorded: Option<f64>,
    /// The step of the clock, nanoseconds; 0 where it is finer than a millisecond.
    step: f64,
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
        let mut ways = Self { recorded: before.is_none().then_some(0.0), ..Self::default() };
        for entry in entries {
            ways.all.merge(&entry.way);
        }
        ways.step = step_of(sites.values());
        for pieces in sites.values() {
            ways.look(pieces);
        }
        ways
    }

    /// Looks at the ways and visits of an instance.
    fn look(&mut self, pieces: &[Stay]) {
        let overlap = most_overlap(pieces);
        let both = |(number, piece): (usize, &Stay)| match piece.part {
            0 if piece.length == 0 => [Some((piece.start, Edge::Arrives, number)), None],
            0 => [Some((piece.start, Edge::Leaves, number)), Some((piece.end(), Edge::Arrives, number))],
            _ => {
                let end = piece.end() - overlap.min(piece.length / OVERLAP.0).cast_signed();
                [Some((piece.start, Edge::Begins, number)), Some((end, Edge::Ends, number))]
            }
        };
        // What takes no time waits for nothing, and ends before it begins in that order. By a coarse clock a way may be shorter than a step.
        let is_seen = |(_, piece): &(usize, &Stay)| piece.length > 0 || piece.part == 0 && self.step > 0.0;
        let mut edges: Vec<(i64, Edge, usize)> =
            pieces.iter().enumerate().filter(is_seen).flat_map(both).flatten().collect();
        edges.sort_unstable();
        if let (Some(recorded), Some(first), Some(last)) = (&mut self.recorded, edges.first(), edges.last()) {
            *recorded += last.0.abs_diff(first.0) as f64;
        }
        let mut met = vec![0; pieces.len()];
        let (mut there, mut on_the_way, mut ended) = (0_usize, 0_usize, None);
        for (time, edge, number) in edges {
            let length = pieces[number].length as f64;
            match edge {
                Edge::Leaves => {
                    met[number] = there + on_the_way;
                    on_the_way += 1;
                }
                Edge::Begins => {
                    there += 1;
                    self.together.resize(self.together.len().max(there + 1), 0);
                    self.together[there] += 1;
                    self.visits += 1;
                    self.spent += length;
                }
                Edge::Ends => {
                    there = there.saturating_sub(1);
                    ended = Some(pieces[number].end());
                }
                Edge::Arrives => {
                    if pieces[number].length == 0 {
                        met[number] = there + on_the_way;
                    } else {
                        on_the_way = on_the_way.saturating_sub(1);
                    }
                    let after = ended.map_or(f64::INFINITY, |ended: i64| time.abs_diff(ended) as f64);
                    self.calls.push(Way { length, met: met[number], after });
                }
            }
        }
    }

    /// The most visits that were together.
    fn most(&self) -> usize {
        self.together.len().saturating_sub(1)
    }

    fn pool(&self) -> Option<Pool> {
        let most = self.most();
        (most.saturating_sub(TRIED) + 1..=most).rev().find_map(|threads| {
            let seen = self.seen(threads)?;
            let strays: usize = self.together[threads + 1..].iter().sum();
            let wait = (self.all.mean()? - seen.base * 1e-9).max(0.0);
            let Seen { held: waited, right_after, .. } = seen;
            let pool = Pool { threads: u32::try_from(threads).ok()?, copies: 1, of: None, wait, waited, right_after };
            (strays * STRAY <= right_after && seen.by_chance <= BY_CHANCE && seen.is_no_chance()).then_some(pool)
        })
    }

    /// What a coarse clock shows of a pool that it does not tell.
    fn hidden(&self) -> Option<Hidden> {
        let threads = self.most();
        let seen = self.seen(threads).filter(|seen| self.step > 0.0 && seen.by_chance > BY_CHANCE)?;
        let all = self.recorded.filter(|recorded| *recorded > 0.0 && self.spent > 0.0);
        Some(Hidden {
            threads,
            held: seen.held,
            longer: (seen.mean - seen.base) * 1e-9,
            step: self.step * 1e-9,
            interval: seen.interval * 1e-9,
            growth: all.map(|recorded| recorded * threads as f64 / self.spent),
        })
    }

    /// What calls show that came while so many visits were under way: most of them begin when another one ends, and later than others do.
    fn seen(&self, threads: usize) -> Option<Seen> {
        let (held, free): (Vec<Way>, Vec<Way>) = self.calls.iter().partition(|way| way.met >= threads);
        if held.len() < ENOUGH || threads == 0 {
            return None;
        }
        let interval = self.spent / self.visits as f64 / threads as f64;
        let soon = self.step.max(RIGHT_AFTER * interval);
        let right_after = held.iter().filter(|way| way.after <= soon).count();
        let mean = |ways: &[Way]| ways.iter().map(|way| way.length).sum::<f64>() / ways.len() as f64;
        // Calls that overtake others on their way make these wait, too, but for those that left while few were there.
        let first: Vec<Way> = free.iter().copied().filter(|way| 2 * way.met < threads).collect();
        let base = match (first.len() < ENOUGH, free.len() < ENOUGH) {
            (false, _) => mean(&first),
            (true, false) => mean(&free),
            (true, true) => held.iter().map(|way| way.length).fold(f64::INFINITY, f64::min),
        };
        let by_chance = by_chance(soon, self.step, interval);
        let seen = Seen { held: held.len(), right_after, mean: mean(&held), base, interval, by_chance };
        let is_longer = seen.mean > LONGER * base && seen.mean > base + self.step;
        (right_after * MOSTLY.1 >= held.len() * MOSTLY.0 && is_longer).then_some(seen)
    }
}

/// What calls show that came while all threads were busy.
#[derive(Clone, Copy, Debug)]
struct Seen {
    held: usize,
    right_after: usize,
    /// How long they were on their way on average, and others that did not wait, nanoseconds.
    mean: f64,
    base: f64,
    /// The mean interval between ends of visits, nanoseconds.
    interval: f64,
    /// The part that begins right after another visit by chance.
    by_chance: f64,
}

impl Seen {
    fn is_no_chance(&self) -> bool {
        is_no_chance(self.right_after, self.held, self.by_chance)
    }
}

/// The part of calls that begin so soon after an end by chance, by a clock with such steps, where ends have such a mean interval. Times that a clock cuts off are up to a step apart by
/// more than they seem.
pub fn by_chance(soon: f64, step: f64, interval: f64) -> f64 {
    ((soon + step / 2.0) / interval + 1.0 / OVERLAP.1).min(1.0)
}

/// Whether so many of all do not come about by chance, where each does with such a probability: Chernoff's bound of the binomial distribution.
pub fn is_no_chance(some: usize, all: usize, by_chance: f64) -> bool {
    let part = some as f64 / all.max(1) as f64;
    let term = |part: f64, by_chance: f64| if part > 0.0 { part * (part / by_chance).ln() } else { 0.0 };
    part > by_chance && all as f64 * (term(part, by_chance) + term(1.0 - part, 1.0 - by_chance)) >= -CHANCE.ln()
}

/// The step of the clocks of instances, nanoseconds; 0 where it is finer than a millisecond. Clocks may be put right by an offset.
pub fn step_of<'s>(sites: impl Iterator<Item = &'s Vec<Stay>>) -> f64 {
    let visits = |pieces: &'s Vec<Stay>| {
        let begins = pieces.iter().filter(|piece| piece.part != 0).map(|piece| piece.start);
        let first = begins.clone().next().unwrap_or_default();
        begins.map(move |start| start.abs_diff(first))
    };
    let grain = sites.flat_map(visits).fold(0, common_step);
    clocks::step_of(grain).map_or(0.0, |step| step as f64)
}

/// By how much a visit may seem to begin before the end of another one that it waits for, nanoseconds.
fn most_overlap(pieces: &[Stay]) -> u64 {
    let visits = || pieces.iter().filter(|piece| piece.part != 0 && piece.length > 0);
    let mut edges: Vec<(i64, bool)> = visits().flat_map(|visit| [(visit.start, true), (visit.end(), false)]).collect();
    edges.sort_unstable();
    let (mut there, mut most) = (0_usize, 1_usize);
    for (_, begins) in edges {
        there = if begins { there + 1 } else { there.saturating_sub(1) };
        most = most.max(there);
    }
    let spent: f64 = visits().map(|visit| visit.length as f64).sum();
    (spent / visits().count().max(1) as f64 / most as f64 / OVERLAP.1) as u64
}

#[cfg(test)]
mod tests {
    use super::{by_chance, is_no_chance};

    #[test]
    fn what_comes_about_by_chance_is_no_evidence() {
        // Of ten that begin right after another visit with a probability of 0.1, five do once in 600 times.
        assert!(!is_no_chance(5, 10, 0.1));
        assert!(is_no_chance(7, 10, 0.1));
        assert!(is_no_chance(10, 10, 0.25));
        assert!(!is_no_chance(100, 1000, 0.1));
        assert!(!is_no_chance(10, 10, 1.0));
        assert!(!is_no_chance(0, 0, 0.1));
    }

    #[test]
    fn a_coarse_clock_makes_chance_greater() {
        let (fine, coarse) = (by_chance(1.0, 0.0, 10.0), by_chance(2.0, 2.0, 10.0));
        assert!((fine - 0.12).abs() < 1e-9 && (coarse - 0.32).abs() < 1e-9, "{fine} {coarse}");
        assert_eq!(by_chance(10.0, 10.0, 5.0), 1.0);
    }
}
