//! Operations whose beginning was lost: they tell of work, and are no load.
//!
//! A span whose parent was not recorded is the first of what is left of an operation. Had it been taken as an operation of its own, each
//! lost span would add a scenario that the system does not have. Where all operations are such, the system's clients were
//! not traced, and where very many are, some of its clients: these are loads. Very many that lie in times in which no operation of their callers was recorded are
//! none: a service did not record then ([`silence`]). Nor are those that are the rest of operations that one service alone did not record ([`rootless`]).

mod entries;
mod rootless;
mod silence;

pub use entries::doubt as doubt_of;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::diagnostic::quantity::percent;
use crate::diagnostic::{Diagnostic, Place};
use crate::lqn::submodel::{
    EntryIndex, EntryTotal, Interaction, Position, RequestKind, ScenarioTotal, Seconds, Settled, SubModel,
};
use crate::lqn::timing::CallLabel;
use crate::model::codes;
use crate::model::fragments::rootless::{Evidence, Rootless};
use crate::model::fragments::silence::Callers;
use crate::model::load::{Recording, recorded_at_once, short};
use crate::model::parts::{Customer, Parts};
use crate::names::Name;

/// Of the invocations of an entry that others call, at most this part is below lost spans: (20, 100).
const CALLED: (u64, u64) = (20, 100);
/// The same of work on messages whose senders were lost, as part of a service's: they are sent by those that send others.
const SENT: (u64, u64) = (50, 100);
/// Of work on messages, at most so many as twice those that were recorded with their senders' traces are on messages whose senders' traces were not: where each trace is
/// sampled by itself, there are as many of both, but for chance: (2, 3).
const APART: (u64, u64) = (2, 3);
/// Of an entry that nobody calls, at most so many as this part of all whole operations: (50, 100).
const UNCALLED: (u64, u64) = (50, 100);
/// Of spans that were put in the place of lost ones, within traces that begin otherwise, at most so many as this part of all whole operations: several may be lost of each, (200, 100),
const PUT_THERE: (u64, u64) = (200, 100);
/// if there are so many of these.
const ENOUGH: u64 = 20;
/// Where more than this part of all spans is lost, what was there cannot be inferred.
const MOST_LOST: f64 = 0.5;
/// Where no operation has lost its beginning, a smaller part of spans that was lost is not told.
const TOLD: f64 = 0.01;
/// How many scenarios are named.
const SHOWN: usize = 5;

/// Fragments of one scenario that were left out.
struct LeftOut {
    /// How many are all that is left of their operation.
    headless: u64,
    /// The part of them whose operations have lost their first span.
    below: f64,
    own: EntryTotal,
}

/// Fragments that were left out as loads.
#[derive(Debug, Default)]
pub struct LostBeginnings {
    /// By the name that their scenario would have, in its order: how many.
    scenarios: Vec<(Arc<str>, u64)>,
    /// How many of them are all that is left of their operation.
    headless: u64,
    /// How many of them lie in times in which their callers did not record.
    silent: u64,
    /// How many of them work on messages whose senders were lost.
    unlinked: u64,
    /// Of how many of these nothing was recorded of the sender's trace.
    apart: u64,
    /// How often they call entries that others call, too: calls of which only the server's side is left.
    pub orphans: BTreeMap<EntryIndex, u64>,
    /// Of these, how many ask for another entry of the same service, since a message without its sender looks like a call.
    moved: BTreeMap<EntryIndex, u64>,
    /// How many of these calls belong to operations whose first span was lost.
    beheaded: BTreeMap<EntryIndex, f64>,
    /// The entries that the other scenarios begin with, and those that these call.
    first: BTreeSet<EntryIndex>,
    /// Fragments of operations that one service did not record.
    rootless: Vec<Rootless>,
    /// Fragments that are loads though whole operations ask for the same: the scenario, how many, and how many requests there are for what they begin with.
    loads: Vec<(Arc<str>, u64, u64)>,
}

/// Whether a scenario of fragments is none.
#[derive(Clone, Copy, Debug, Default)]
struct Judged {
    is_fragments: bool,
    is_lost: bool,
    /// Whether whole operations call what it begins with, and how often that is asked for in all.
    called: Option<u64>,
}

impl LostBeginnings {
    /// Counts the calls of which only the server's side is left, to entries that whole operations reach.
    fn count_orphans(
        &mut self,
        parts: &Parts<'_>,
        left_out: &[LeftOut],
        apart: &[EntryIndex],
        reached: &BTreeSet<EntryIndex>,
    ) {
        let sub = parts.sub;
        // Work on messages that are others than those that were recorded is nobody's here, with all that it calls.
        let mut elsewhere = reachable(parts, apart.iter().copied());
        let here = reachable(parts, left_out.iter().flat_map(|own| requested(&own.own)));
        elsewhere.retain(|entry| !here.contains(entry));
        let service = |entry: EntryIndex| (sub.entry(entry).task, sub.entry(entry).service);
        // Of an entry that only fragments reach, the part that is below lost first spans is that of those who reach it.
        let mut begun: BTreeMap<EntryIndex, (f64, f64)> = BTreeMap::new();
        let (mut below_first, mut all_left) = (0.0, 0.0);
        for LeftOut { below: part, own, .. } in left_out {
            for (to, count) in own.requested() {
                let (below, all) = begun.entry(to).or_default();
                *below += count as f64 * part;
                *all += count as f64;
                (below_first, all_left) = (below_first + count as f64 * part, all_left + count as f64);
            }
        }
        let unreached = parts.entries.iter().filter(|entry| !reached.contains(entry) && !elsewhere.contains(entry));
        let unreached = unreached.map(|entry| {
            let (below, all) = begun.get(entry).copied().unwrap_or((below_first, all_left));
            (if all > 0.0 { below / all } else { 0.0 }, sub.entry(*entry))
        });
        // Of several the one that is invoked most. Their numbers mean nothing.
        let mut named: Vec<EntryIndex> =
            reached.iter().copied().filter(|entry| sub.entry(*entry).service.is_some()).collect();
        named.sort_by_key(|entry| (sub.entry(*entry).invocations, sub.entry(*entry).key));
        let alike: BTreeMap<(Name, Name), EntryIndex> =
            named.into_iter().map(|entry| (service(entry), entry)).collect();
        let left_out = left_out.iter().map(|LeftOut { below, own, .. }| (*below, own));
        for (below, own) in left_out.chain(unreached) {
            for (to, count) in own.requested() {
                let place = Some(to).filter(|to| reached.contains(to));
                let Some(place) = place.or_else(|| alike.get(&service(to)).copied()) else { continue };
                if place != to {
                    *self.moved.entry(place).or_default() += count;
                }
                *self.orphans.entry(place).or_default() += count;
                *self.beheaded.entry(place).or_default() += count as f64 * below;
            }
        }
    }
}

impl Parts<'_> {
    /// Leaves out scenarios of fragments, and entries that are part of no other scenario.
    pub fn leave_out_fragments(&mut self) -> LostBeginnings {
        let whole: u64 = self
            .customers
            .iter()
            .map(|own| own.scenario_total.operations.saturating_sub(own.scenario_total.fragments))
            .sum();
        let mut lost = LostBeginnings::default();
        if whole == 0 || self.customers.iter().all(|own| own.scenario_total.fragments == 0) {
            return lost;
        }
        let called: BTreeSet<EntryIndex> =
            self.entries.iter().flat_map(|index| requested(self.sub.entry(*index))).collect();
        let sub = self.sub;
        // Without its caller a message looks like a call: the same service is several entries then.
        let mut services: BTreeMap<(Name, Name), u64> = BTreeMap::new();
        for own in self.entries.iter().map(|entry| sub.entry(*entry)).filter(|own| own.service.is_some()) {
            *services.entry((own.task, own.service)).or_default() += own.invocations;
        }
        let invoked = |entry: EntryIndex| {
            let own = sub.entry(entry);
            services.get(&(own.task, own.service)).copied().unwrap_or(own.invocations)
        };
        let service = |entry: EntryIndex| (sub.entry(entry).task, sub.entry(entry).service);
        let asked: BTreeSet<(Name, Name)> = called.iter().map(|entry| service(*entry)).collect();
        let whole_customers =
            self.customers.iter().filter(|own| own.scenario_total.fragments < own.scenario_total.operations);
        let tasks = whole_customers.flat_map(|own| requested(&own.total)).map(|first| sub.entry(first).task);
        let begin: BTreeSet<Name> = tasks.collect();
        let asynchronous = sub.entries().iter().filter(|own| own.interaction == Interaction::Asynchronous);
        let on_messages: BTreeSet<Name> =
            asynchronous.map(|own| own.task).filter(|task| !begin.contains(task)).collect();
        let works_on_messages = |first: &[EntryIndex]| {
            !first.is_empty() && first.iter().all(|entry| on_messages.contains(&sub.entry(*entry).task))
        };
        let mut callers = Callers::new(self);
        let silent: Vec<bool> = self.customers.iter().map(|customer| callers.are_silent(customer)).collect();
        let judge = |(customer, is_silent): (&Customer, &bool)| {
            let Customer { scenario_total: total, total: own, .. } = customer;
            if total.fragments < total.operations {
                return Judged::default();
            }
            let first: Vec<EntryIndex> = requested(own).collect();
            let is_called =
                |entry: &EntryIndex| called.contains(entry) || total.unlinked > 0 && asked.contains(&service(*entry));
            let is_called = !first.is_empty() && first.iter().all(is_called);
            // Work on messages is a load where others do not send them.
            if total.unlinked > 0 && !is_called {
                return Judged::default();
            }
            let is_apart = total.unlinked > 0 && total.apart == total.operations;
            let called = if is_apart {
                APART
            } else if total.unlinked > 0 {
                SENT
            } else {
                CALLED
            };
            let is_put_there = !first.is_empty() && first.iter().all(|entry| is_put_there(sub.entry(*entry)));
            let asked_for = first.iter().map(|entry| invoked(*entry)).sum();
            let (of, limit) = if is_called && !is_put_there { (asked_for, called) } else { (whole, UNCALLED) };
            // What lies in traces that begin otherwise is part of their operations, however seldom others call it.
            let begun = total.headless + total.pieces + total.unlinked;
            let rest = total.fragments.saturating_sub(begun);
            let most = if is_put_there && whole >= ENOUGH { PUT_THERE } else { UNCALLED };
            let is_lost = *is_silent
                || within(total.fragments, of, limit)
                || within(rest, whole, most) && (begun == 0 || is_put_there && within(begun, whole, UNCALLED));
            Judged { is_fragments: true, is_lost, called: is_called.then_some(asked_for) }
        };
        let judged: Vec<Judged> = self.customers.iter().zip(&silent).map(judge).collect();
        let mut rootless = rootless::find(self, |own| {
            own.scenario_total.fragments == own.scenario_total.operations
                && own.scenario_total.headless + own.scenario_total.pieces == own.scenario_total.fragments
        });
        // Lost spans leave as much of operations; where so few were lost, calls are put right by them.
        rootless.retain(|found| {
            let are_lost = found.scenarios.iter().all(|number| judged[*number].is_lost);
            let are_silent = found.scenarios.iter().any(|number| silent[*number]);
            !are_silent && (!are_lost || matches!(found.evidence, Evidence::Identifiers { .. }))
        });
        let (mut left_out, mut apart): (Vec<LeftOut>, Vec<EntryIndex>) = (Vec::new(), Vec::new());
        let mut in_silence: Vec<(ScenarioTotal, EntryTotal)> = Vec::new();
        let are_rootless = |number: &usize| rootless.iter().any(|found| found.scenarios.contains(number));
        let numbered = self.customers.iter().enumerate().filter(|(number, _)| are_rootless(number));
        let before: BTreeMap<usize, (u64, EntryTotal)> =
            numbered.map(|(number, own)| (number, (own.scenario_total.headless, own.total.clone()))).collect();
        let mut number = 0;
        self.customers.retain(|customer| {
            let (is_silent, Judged { is_fragments, is_lost, called }) = (silent[number], judged[number]);
            number += 1;
            let Customer { scenario, scenario_total: total, total: own, .. } = customer;
            if !is_fragments {
                return true;
            }
            if before.contains_key(&(number - 1)) {
                return false;
            }
            let first: Vec<EntryIndex> = requested(own).collect();
            let is_apart = total.unlinked > 0 && total.apart == total.operations;
            if let Some(asked_for) = called.filter(|_| !is_lost && total.unlinked == 0) {
                lost.loads.push((Arc::clone(scenario), total.fragments, asked_for));
            }
            if is_lost {
                lost.scenarios.push((Arc::clone(scenario), total.fragments));
                lost.unlinked += total.unlinked;
                // A service that works on messages begins no operation, though its traces begin with it.
                let headless = if works_on_messages(&first) { 0 } else { total.headless };
                lost.apart += total.apart;
                if is_silent {
                    lost.silent += total.fragments;
                    in_silence.push((total.clone(), own.clone()));
                } else {
                    lost.headless += headless;
                    // The messages that this works on are others than those that were recorded.
                    if is_apart {
                        apart.extend(first);
                        return false;
                    }
                    let below = (headless + total.pieces) as f64 / total.fragments as f64;
                    left_out.push(LeftOut { headless, below, own: own.clone() });
                }
            }
            !is_lost
        });
        for found in &rootless {
            self.give_rootless(found, &before);
        }
        lost.rootless = rootless;
        if !lost.scenarios.is_empty() || !lost.rootless.is_empty() {
            for LeftOut { headless, own, .. } in &left_out {
                self.give_to_scenarios(*headless, own, |_| true, |_| true);
            }
            // Rates leave out long pauses, and what comes before the first operation or after the last.
            let recording = Recording::of_operations(self.customers.iter().map(|customer| &customer.scenario_total));
            for (fragments, own) in &in_silence {
                let lies_within = |customer: &Customer| {
                    let around = &customer.scenario_total;
                    recorded_at_once(around, &recording)
                        && around.first_start <= fragments.first_start
                        && fragments.last_start <= around.last_start
                };
                self.give_to_scenarios(fragments.headless, own, |_| true, lies_within);
            }
            let begun: Vec<EntryIndex> = self.customers.iter().flat_map(|own| requested(&own.total)).collect();
            lost.first = begun.iter().copied().chain(begun.iter().flat_map(|to| requested(sub.entry(*to)))).collect();
            let reached = reachable(self, self.customers.iter().flat_map(|own| requested(&own.total)));
            lost.count_orphans(self, &left_out, &apart, &reached);
            self.entries.retain(|entry| reached.contains(entry));
        }
        lost
    }

    /// Counts operations that one service did not record with its scenarios, unless these record that they stand for them. Where trace identifiers tell of them, all together are as
    /// many as they are. By number, `fragments` has how many begin each scenario of fragments, and what it calls.
    fn give_rootless(&mut self, found: &Rootless, fragments: &BTreeMap<usize, (u64, EntryTotal)>) {
        if found.is_weighed() {
            return;
        }
        let sub = self.sub;
        let begins = |own: &Customer| requested(&own.total).any(|first| found.tasks.contains(&sub.entry(first).task));
        for (headless, own) in found.scenarios.iter().filter_map(|number| fragments.get(number)) {
            self.give_to_scenarios(*headless, own, begins, |_| true);
        }
        let Evidence::Identifiers { all, .. } = found.evidence else { return };
        for own in self.customers.iter_mut().filter(|own| begins(own)) {
            own.scenario_total.settled = Some(Settled::kept(all));
        }
    }

    /// Counts operations whose first span was lost with the scenarios that begin as they did: by the same service and with the same calls, else with either of these;
    /// else with all. Others than those among which they are have none of them, and of these some may not take theirs.
    fn give_to_scenarios(
        &mut self,
        headless: u64,
        fragment: &EntryTotal,
        is_among: impl Fn(&Customer) -> bool,
        may_take: impl Fn(&Customer) -> bool,
    ) {
        let sub = self.sub;
        let heads: BTreeSet<EntryIndex> = requested(fragment).collect();
        let below: BTreeSet<EntryIndex> =
            heads.iter().copied().chain(heads.iter().flat_map(|to| requested(sub.entry(*to)))).collect();
        let task = |to: &EntryIndex| sub.entry(*to).task;
        let calls_like = |first: EntryIndex| requested(sub.entry(first)).any(|to| below.contains(&to));
        let is_served_like = |first: EntryIndex| heads.iter().any(|head| task(head) == task(&first));
        let those = |is_like: &dyn Fn(EntryIndex) -> bool| -> Vec<bool> {
            let is_like = |own: &Customer| is_among(own) && requested(&own.total).any(is_like);
            self.customers.iter().map(is_like).collect()
        };
        let mut like = those(&|first| is_served_like(first) && calls_like(first));
        let all = self.customers.iter().map(&is_among).collect();
        for other in [those(&|first| is_served_like(first) || calls_like(first)), all] {
            if !like.contains(&true) {
                like = other;
            }
        }
        let operations = |own: &Customer| own.scenario_total.operations;
        let of: u64 = self.customers.iter().zip(&like).filter(|(_, like)| **like).map(|(own, _)| operations(own)).sum();
        let (mut seen, mut given) = (0_u64, 0_u64);
        for (own, _) in self.customers.iter_mut().zip(like).filter(|(_, like)| *like) {
            seen += operations(own);
            let so_far = u128::from(headless) * u128::from(seen) / u128::from(of.max(1));
            let so_far = u64::try_from(so_far).unwrap_or(headless);
            if may_take(own) {
                own.scenario_total.beheaded += so_far - given;
            }
            given = so_far;
        }
    }
}

/// Whether so many are at most this part of others.
fn within(count: u64, of: u64, (part, all): (u64, u64)) -> bool {
    u128::from(count) * u128::from(all) <= u128::from(of) * u128::from(part)
}

/// Whether no span of an entry was recorded, and others were put in their place.
fn is_put_there(entry: &EntryTotal) -> bool {
    entry.silent > 0 && entry.silent >= entry.invocations
}

/// Invocations whose spans were lost are taken to work as long as those whose spans were not.
pub fn fill_times(sub: &mut SubModel) {
    for at in 0..sub.entries().len() {
        let entry = sub.entry_mut(EntryIndex(at as u32));
        if entry.inferred == 0 {
            continue;
        }
        for work in entry.work.values_mut().filter(|work| (1..work.visits).contains(&work.exclusive.count)) {
            work.exclusive = work.exclusive.extended(work.visits);
        }
    }
}

/// The entries that can be reached from these, with them.
fn reachable(parts: &Parts<'_>, from: impl Iterator<Item = EntryIndex>) -> BTreeSet<EntryIndex> {
    let mut reached: BTreeSet<EntryIndex> = BTreeSet::new();
    let mut open: Vec<EntryIndex> = from.collect();
    while let Some(entry) = open.pop() {
        if reached.insert(entry) {
            open.extend(requested(parts.sub.entry(entry)));
        }
    }
    reached
}

/// Gives calls back to those who make them. What a lost span called was called by one of those that call it elsewhere: each call seen stands
/// for as many as there were invocations of the called entry. A call that only its server recorded is gone with that span, so that there were as many
/// more of these as spans were lost.
pub fn give_back(sub: &mut SubModel) {
    let lost = Parts::new(sub).leave_out_fragments();
    if lost.scenarios.is_empty() {
        return;
    }
    let losses = Losses::of(sub, &lost);
    let is_service = |entry: &EntryTotal| entry.interaction != Interaction::Customer;
    let called: BTreeSet<EntryIndex> =
        sub.entries().iter().filter(|entry| is_service(entry)).flat_map(requested).collect();
    for at in 0..sub.entries().len() {
        let number = EntryIndex(at as u32);
        let entry = sub.entry_mut(number);
        // Its customer's request is no span.
        if is_service(entry) {
            losses.mend(entry, number, !called.contains(&number));
        }
    }
}

/// How many calls were lost.
struct Losses {
    /// By called entry, of how many requests each one stands that was seen with its caller: those whose caller was lost are some caller's.
    callers: BTreeMap<EntryIndex, f64>,
    /// Entries whose calls the calling side recorded.
    seen: BTreeSet<EntryIndex>,
    /// The probability with which a span was lost, as far as lost callers tell.
    spans: f64,
    /// The same by all fragments there are, restored spans left out.
    least: f64,
}

/// Calls of an entry by phase, kind and called entry.
type Groups = BTreeMap<(u8, RequestKind, EntryIndex), Group>;

/// Calls of an entry to another one.
struct Group {
    labels: Vec<CallLabel>,
    count: u64,
    /// Whether the calling side recorded any of them.
    is_seen: bool,
}

/// The calls of an entry, by phase, kind and called entry.
fn groups(entry: &EntryTotal) -> Groups {
    let mut groups = Groups::new();
    for (label, call) in &entry.calls {
        let Some(to) = label.to else { continue };
        let new = || Group { labels: Vec::new(), count: 0, is_seen: false };
        let group = groups.entry((label.phase, label.kind, to)).or_insert_with(new);
        group.labels.push(*label);
        group.count += call.requests.count;
        // What only its server recorded is on no way, and takes its sender no time.
        let seen = if label.kind == RequestKind::Asynchronous { call.duration.sum } else { call.network };
        group.is_seen |= seen.0 != 0;
    }
    groups
}

impl Losses {
    fn of(sub: &SubModel, lost: &LostBeginnings) -> Self {
        let mut requests: BTreeMap<EntryIndex, u64> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for entry in sub.entries() {
            for (to, count) in entry.requested() {
                *requests.entry(to).or_default() += count;
            }
            seen.extend(groups(entry).into_iter().filter(|(_, group)| group.is_seen).map(|((_, _, to), _)| to));
        }
        for (to, count) in &lost.moved {
            *requests.entry(*to).or_default() += count;
        }
        let orphans = |to: &EntryIndex| lost.orphans.get(to).copied().unwrap_or(0);
        // Requests of the fragments themselves are among those that were seen.
        requests.retain(|to, all| *all > orphans(to));
        let callers = requests.iter().map(|(to, all)| {
            let beheaded = lost.beheaded.get(to).copied().unwrap_or(0.0);
            (*to, (*all as f64 - beheaded).max(1.0) / (*all - orphans(to)) as f64)
        });
        let callers = callers.collect();
        let least = requests.keys().map(orphans).sum::<u64>() as f64 / requests.values().sum::<u64>().max(1) as f64;
        // The first spans of operations may be recorded by something else than the others: these tell more.
        let parts = |first: bool| -> Vec<(u64, u64)> {
            let own = requests.iter().filter(|(to, _)| lost.first.contains(to) == first);
            own.map(|(to, all)| (orphans(to), *all)).collect()
        };
        let spans = Some(parts(false)).filter(|own| !own.is_empty()).unwrap_or_else(|| parts(true));
        Self { callers, seen, spans: typical(spans).min(MOST_LOST), least }
    }

    /// Gives an entry its calls back. `is_first` says that nobody calls it but customers.
    fn mend(&self, entry: &mut EntryTotal, number: EntryIndex, is_first: bool) {
        // Of an entry that is only seen where its own span is, invocations are lost with what they call.
        let visits = if is_first || self.seen.contains(&number) { 1.0 } else { 1.0 - self.spans };
        let groups = groups(entry);
        let of_inferred = self.of_inferred(entry, &groups);
        for (at, work) in &mut entry.work {
            for (key, request) in &mut work.requests {
                if let Some(callers) = self.callers.get(&key.1)
                    && !groups.contains_key(&(at.phase, key.0, key.1))
                {
                    *request = request.scaled((callers * PARTS) as u64, PARTS as u64);
                }
            }
            let invocations = entry.invocations;
            for activity in work.activities.values_mut().filter(|activity| activity.cpu.count > 0) {
                // Its span may be lost while that of the invocation is not.
                let left = 1.0 - self.spans.max(self.least);
                if left < 1.0 {
                    let factor = self.whole(activity.count as f64 / left, invocations).unwrap_or(1.0) / left;
                    activity.count = (activity.count as f64 * factor).round() as u64;
                    activity.cpu.count = (activity.cpu.count as f64 * factor).round() as u64;
                    activity.cpu.sum = Seconds((activity.cpu.sum.0 as f64 * factor) as i128);
                    activity.cpu.squares = (activity.cpu.squares as f64 * factor) as i128;
                }
            }
        }
        for ((phase, kind, to), group) in groups {
            let callers = self.callers.get(&to).copied().unwrap_or(1.0) * visits;
            let own = if group.is_seen { 1.0 } else { 1.0 / (1.0 - self.spans) };
            self.mend_group(entry, phase, (kind, to), &group, (callers, own), of_inferred);
        }
    }

    /// Which part of the calls that lost their caller were made by invocations whose own span was lost: as many as these lack of the calls that others make.
    fn of_inferred(&self, entry: &EntryTotal, groups: &Groups) -> f64 {
        let made: u64 = groups.values().map(|group| group.count).sum();
        let lost = |((.., to), group): (&(u8, RequestKind, EntryIndex), &Group)| {
            group.count as f64 * (self.callers.get(to).copied().unwrap_or(1.0) - 1.0)
        };
        let lost: f64 = groups.iter().map(lost).sum();
        let others = entry.invocations.saturating_sub(entry.inferred).max(1) as f64;
        let of_others = made.saturating_sub(entry.inferred_requests) as f64;
        let lacking = of_others * entry.inferred as f64 / others - entry.inferred_requests as f64;
        if lost > 0.0 { (lacking / lost).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// What is lost varies: a number of times that is a whole one an invocation to within that is a whole one. Gives the factor that makes it so.
    fn whole(&self, times: f64, invocations: u64) -> Option<f64> {
        let invocations = invocations.max(1) as f64;
        let mean = times / invocations;
        let whole = mean.round();
        let deviation = (self.spans.max(self.least) * whole / invocations).sqrt();
        (whole >= 1.0 && (mean - whole).abs() <= DEVIATIONS * deviation).then_some(whole / mean)
    }

    /// Gives an entry those of its calls back that were lost of a group: with all that the invocation did at once, and by themselves.
    fn mend_group(
        &self,
        entry: &mut EntryTotal,
        phase: u8,
        key: (RequestKind, EntryIndex),
        group: &Group,
        (mut together, alone): (f64, f64),
        of_inferred: f64,
    ) {
        let invocations = entry.invocations;
        let at = Position { stage: 0, branch: None, phase };
        let request = entry.work.get(&at).and_then(|work| work.requests.get(&key)).copied().unwrap_or_default();
        let seen = request.count as f64 / invocations.max(1) as f64;
        let variance = request.squares as f64 / invocations.max(1) as f64 - seen * seen;
        // Each invocation made as many, so that none of them was lost.
        if request.count == group.count && request.count % invocations.max(1) == 0 && variance.abs() < 1e-9 {
            return;
        }
        let loss = self.spans.max(self.least);
        let expected = group.count as f64 * together * alone;
        // Several spans lie between an invocation and its call, each of which may be lost.
        let varies = variance > 4.0 * loss * seen.max(1.0) * seen.max(1.0);
        let whole = self.whole(expected, invocations).filter(|_| !varies);
        together *= whole.unwrap_or(1.0);
        let factor = together * alone;
        if (factor - 1.0).abs() < 1e-9 {
            return;
        }
        for label in &group.labels {
            let Some(call) = entry.calls.get_mut(label) else { continue };
            let (waited, on_the_way) = (call.share.0, call.network.0);
            // While others are out, a call that is lost leaves no gap.
            let uncovered = (2 * waited - call.duration.sum.0).clamp(0, waited.max(0));
            call.scale((factor * PARTS) as u64, PARTS as u64);
            call.invocations = call.invocations.min(invocations);
            let of_alone = together * uncovered as f64 * (alone - 1.0);
            call.share = Seconds((together * waited as f64 + of_alone) as i128);
            // While a call was out that was lost, its caller seemed to work, unless its own span was lost, too.
            if let (RequestKind::Synchronous, Some(work)) = (label.kind, entry.work.get_mut(&at)) {
                let own = work.exclusive.sum.0;
                let seemed = (call.share.0 - waited) as f64 - of_inferred * (together - 1.0) * waited as f64;
                let left = (own - seemed as i128).clamp(0, own.max(0));
                let ratio = if own > 0 { left as f64 / own as f64 } else { 0.0 };
                work.exclusive.sum = Seconds(left);
                work.network.sum = Seconds(work.network.sum.0 + call.network.0 - on_the_way);
                work.exclusive.squares = (work.exclusive.squares as f64 * ratio * ratio) as i128;
            }
        }
        if let Some(request) = entry.work.get_mut(&at).and_then(|work| work.requests.get_mut(&key)) {
            *request = request.scaled((factor * PARTS) as u64, PARTS as u64);
            if whole.is_some() {
                let each = (expected / invocations.max(1) as f64).round();
                request.count = (each as u64).saturating_mul(invocations);
                request.squares = ((each * each) as u64).saturating_mul(invocations);
            }
        }
    }
}

/// Factors are counted in so many parts.
const PARTS: f64 = 1e9;

/// By so many standard deviations of what is lost a number of calls may miss a whole one.
const DEVIATIONS: f64 = 3.0;

/// The part that is typical of several: that of all those together that are within a factor of two of their median by weight. Where all spans of one
/// service were lost, others tell of nothing.
fn typical(mut parts: Vec<(u64, u64)>) -> f64 {
    let part = |(few, all): &(u64, u64)| *few as f64 / (*all).max(1) as f64;
    parts.sort_by(|left, right| part(left).total_cmp(&part(right)).then(left.cmp(right)));
    let half = parts.iter().map(|(_, all)| all).sum::<u64>() / 2;
    let mut below = 0;
    let median = parts.iter().find(|(_, all)| {
        below += all;
        below > half
    });
    let Some(median) = median.map(part) else { return 0.0 };
    let near = parts.iter().filter(|own| (median / 2.0..=median * 2.0).contains(&part(own)));
    let (few, all) = near.fold((0, 0), |(few, all), own| (few + own.0, all + own.1));
    part(&(few, all))
}

/// The entries that an entry requests.
fn requested(entry: &EntryTotal) -> impl Iterator<Item = EntryIndex> + '_ {
    entry.requested().map(|(to, _)| to)
}

/// The busiest server that lost spans are reckoned with: beyond, a response may be anything.
const BUSIEST: f64 = 0.95;

/// By how much a predicted response may be off, as a part of it, where this part of spans was lost and the busiest server is so busy. Demands and calls are known to as
/// much as was lost, and queues grow by 1/(1 − busy) times that.
pub fn doubt(spans: f64, busy: f64) -> f64 {
    spans / (1.0 - busy.clamp(0.0, BUSIEST))
}

/// The part of spans that was lost: by calls whose caller is gone, as far as these were not put together again, and by operations whose first span is.
pub fn lost_part(lost: &LostBeginnings, parts: &Parts<'_>) -> f64 {
    let mended = mended_part(parts);
    if lost.scenarios.is_empty() {
        return mended.min(MOST_LOST);
    }
    let whole: u64 = parts.customers.iter().map(|own| own.scenario_total.operations).sum();
    let first = lost.headless as f64 / (lost.headless + whole).max(1) as f64;
    let Losses { spans, least, .. } = Losses::of(parts.sub, lost);
    spans.max(least).max(first).max(mended).min(MOST_LOST)
}

/// How many spans were lost and inferred from others.
fn mended(parts: &Parts<'_>) -> u64 {
    parts.sub.scenarios.values().map(|total| total.mended).sum()
}

/// The part of spans that was lost and inferred from others: a visit has a span, and so has a call.
fn mended_part(parts: &Parts<'_>) -> f64 {
    let services = parts.sub.entries().iter().filter(|entry| entry.interaction != Interaction::Customer);
    let spans: u64 =
        services.map(|entry| entry.invocations + entry.requested().map(|(_, count)| count).sum::<u64>()).sum();
    mended(parts) as f64 / spans.max(1) as f64
}

/// Says which fragments are of operations that one service did not record, and which are loads though whole operations ask for the same.
pub fn decisions(lost: &LostBeginnings, parts: &Parts<'_>) -> Vec<Diagnostic> {
    let rootless = lost.rootless.iter().map(|found| found.note(parts, SHOWN));
    rootless.chain(rootless::loads(&lost.loads, SHOWN)).collect()
}

/// Says that fragments make no load, what rates may lack, which part of spans was lost, and by how much a response may be off.
pub fn note(lost: &LostBeginnings, parts: &Parts<'_>, spans: f64, doubt: f64) -> Option<Diagnostic> {
    let all: u64 = lost.scenarios.iter().map(|(_, count)| count).sum();
    if all == 0 && spans < TOLD {
        return None;
    }
    let (operations, begin) = if all == 1 { ("operation", "begins") } else { ("operations", "begin") };
    let message = if all > 0 && lost.apart == all {
        format!("{all} {operations} work on messages of whose sender's trace nothing was recorded, and make no load")
    } else if all == 0 {
        format!("{} spans were lost: what they were is inferred from others", mended(parts))
    } else {
        format!(
            "{all} {operations} {begin} below a span that was lost: their work counts as demand, and they make no load"
        )
    };
    let mut finding = Diagnostic::warning(codes::FRAGMENTS, Place::Nowhere, message);
    for (scenario, count) in lost.scenarios.iter().take(SHOWN) {
        finding = finding.with_note(format!("{count} would be a scenario `{scenario}`"));
    }
    if lost.scenarios.len() > SHOWN {
        finding = finding.with_note(format!("and {} scenarios more", lost.scenarios.len() - SHOWN));
    }
    let whole: u64 = parts.customers.iter().map(|own| own.scenario_total.operations).sum();
    if lost.silent > 0 {
        finding = finding.with_note(format!(
            "{} of them lie in times in which no operation that calls them was recorded: a service did not record its spans then, and rates are those of the \
             other times",
            lost.silent
        ));
    }
    if lost.unlinked > lost.apart {
        let unlinked = lost.unlinked - lost.apart;
        finding = finding.with_note(format!("{unlinked} of them work on messages whose sender was lost"));
    }
    if lost.apart > 0 {
        finding = finding.with_note(format!(
            "{} of them work on messages of whose sender's trace nothing was recorded, as where each trace is sampled by itself: messages that were recorded are worked on alike",
            lost.apart
        ));
    }
    if lost.headless > 0 {
        let percent = 100.0 * lost.headless as f64 / (lost.headless + whole) as f64;
        finding = finding.with_note(format!(
            "{} of them have lost the first span of their trace: they are {} % of all operations, and rates count them",
            lost.headless,
            short((percent * 10.0).round() / 10.0)
        ));
    }
    if spans > 0.0 {
        finding = finding.with_note(format!(
            "about {} of all spans were lost: calls and demands are put right by it, and are known to about as much; responses to ± {}, since \
             queues grow faster than demands",
            percent(spans),
            percent(doubt)
        ));
        finding = entries::notes(parts, spans).into_iter().fold(finding, Diagnostic::with_note);
    }
    Some(finding.with_hint(
        "`dyelog trace check` shows what was lost; exporters that drop spans have larger queues in their settings",
    ))
}
