//! Operations whose beginning was lost: they tell of work, and are no load.
//!
//! A span whose parent was not recorded is the first of what is left of an operation. Had it been taken as an operation of its own, each
//! lost span would add a scenario that the system does not have. Where all operations are such, the system's clients were
//! not traced, and where very many are, some of its clients: these are loads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Place};
use crate::lqn::submodel::{EntryIndex, EntryTotal, Position, RequestKind, Seconds, SubModel};
use crate::model::codes;
use crate::model::load::short;
use crate::model::parts::{Customer, Parts};

/// Of the invocations of an entry that others call, at most this part is below lost spans: (20, 100).
const CALLED: (u64, u64) = (20, 100);
/// Of an entry that nobody calls, at most so many as this part of all whole operations: (50, 100).
const UNCALLED: (u64, u64) = (50, 100);
/// How many scenarios are named.
const SHOWN: usize = 5;

/// Fragments that were left out as loads.
#[derive(Debug, Default)]
pub struct LostBeginnings {
    /// By the name that their scenario would have, in its order: how many.
    scenarios: Vec<(Arc<str>, u64)>,
    /// How many of them are all that is left of their operation.
    headless: u64,
    /// How often they call entries that others call, too: calls of which only the server's side is left.
    pub orphans: BTreeMap<EntryIndex, u64>,
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
        let mut left_out: Vec<EntryTotal> = Vec::new();
        self.customers.retain(|customer| {
            let Customer { scenario, scenario_total: total, total: own, .. } = customer;
            if total.fragments < total.operations {
                return true;
            }
            let first: Vec<EntryIndex> = requested(own).collect();
            let is_called = !first.is_empty() && first.iter().all(|entry| called.contains(entry));
            let (of, (part, all)) = if is_called {
                (first.iter().map(|entry| sub.entry(*entry).invocations).sum(), CALLED)
            } else {
                (whole, UNCALLED)
            };
            let is_lost = u128::from(total.fragments) * u128::from(all) <= u128::from(of) * u128::from(part);
            if is_lost {
                lost.scenarios.push((Arc::clone(scenario), total.fragments));
                lost.headless += total.headless;
                left_out.push(own.clone());
            }
            !is_lost
        });
        if !lost.scenarios.is_empty() {
            let mut reached: BTreeSet<EntryIndex> = BTreeSet::new();
            let mut open: Vec<EntryIndex> = self.customers.iter().flat_map(|own| requested(&own.total)).collect();
            while let Some(entry) = open.pop() {
                if reached.insert(entry) {
                    open.extend(requested(sub.entry(entry)));
                }
            }
            let unreached = self.entries.iter().filter(|entry| !reached.contains(entry));
            for own in left_out.iter().chain(unreached.map(|entry| sub.entry(*entry))) {
                for ((_, to), request) in own.work.values().flat_map(|work| &work.requests) {
                    if reached.contains(to) {
                        *lost.orphans.entry(*to).or_default() += request.count;
                    }
                }
            }
            self.entries.retain(|entry| reached.contains(entry));
        }
        lost
    }
}

/// Gives calls back to those who make them: what a lost span called was called by one of those that call it elsewhere. Each call seen
/// stands for as many as there were invocations of the called entry.
pub fn give_back(sub: &mut SubModel) {
    let orphans = Parts::new(sub).leave_out_fragments().orphans;
    if orphans.is_empty() {
        return;
    }
    let requests = sub.entries().iter().flat_map(|entry| entry.work.values()).flat_map(|work| &work.requests);
    let mut seen: BTreeMap<EntryIndex, u64> = BTreeMap::new();
    for ((_, to), request) in requests.filter(|((_, to), _)| orphans.contains_key(to)) {
        *seen.entry(*to).or_default() += request.count;
    }
    // Requests of the fragments themselves are among those that were seen.
    let known = |to: &EntryIndex| Some((*seen.get(to)?, seen.get(to)?.saturating_sub(*orphans.get(to)?)));
    for at in 0..sub.entries().len() {
        let entry = sub.entry_mut(EntryIndex(at as u32));
        for ((_, to), request) in entry.work.values_mut().flat_map(|work| &mut work.requests) {
            if let Some((all, known)) = known(to).filter(|(_, known)| *known > 0) {
                *request = request.scaled(all, known);
            }
        }
        for (label, call) in &mut entry.calls {
            let Some((all, known)) = label.to.as_ref().and_then(known).filter(|(_, known)| *known > 0) else {
                continue;
            };
            let (waited, on_the_way) = (call.share.0, call.network.0);
            call.scale(all, known);
            call.invocations = call.invocations.min(entry.invocations);
            // While a call was out that was lost, its caller seemed to work.
            let at = Position { stage: 0, branch: None, phase: label.phase };
            if let (RequestKind::Synchronous, Some(work)) = (label.kind, entry.work.get_mut(&at)) {
                let own = work.exclusive.sum.0;
                let left = (own - (call.share.0 - waited)).clamp(0, own.max(0));
                let ratio = if own > 0 { left as f64 / own as f64 } else { 0.0 };
                work.exclusive.sum = Seconds(left);
                work.network.sum = Seconds(work.network.sum.0 + call.network.0 - on_the_way);
                work.exclusive.squares = (work.exclusive.squares as f64 * ratio * ratio) as i128;
            }
        }
    }
}

/// The entries that an entry requests.
fn requested(entry: &EntryTotal) -> impl Iterator<Item = EntryIndex> + '_ {
    entry.work.values().flat_map(|work| work.requests.keys().map(|(_, to)| *to))
}

/// Says that fragments make no load, and what rates may lack.
pub fn note(lost: &LostBeginnings, parts: &Parts<'_>) -> Option<Diagnostic> {
    let all: u64 = lost.scenarios.iter().map(|(_, count)| count).sum();
    if all == 0 {
        return None;
    }
    let (operations, begin) = if all == 1 { ("operation", "begins") } else { ("operations", "begin") };
    let message = format!(
        "{all} {operations} {begin} below a span that was lost: their work counts as demand, and they make no load"
    );
    let mut finding = Diagnostic::warning(codes::FRAGMENTS, Place::Nowhere, message);
    for (scenario, count) in lost.scenarios.iter().take(SHOWN) {
        finding = finding.with_note(format!("{count} would be a scenario `{scenario}`"));
    }
    if lost.scenarios.len() > SHOWN {
        finding = finding.with_note(format!("and {} scenarios more", lost.scenarios.len() - SHOWN));
    }
    let whole: u64 = parts.customers.iter().map(|own| own.scenario_total.operations).sum();
    if lost.headless > 0 {
        let percent = 100.0 * lost.headless as f64 / (lost.headless + whole) as f64;
        finding = finding.with_note(format!(
            "{} of them have lost the first span of their trace: rates are too low by {} %",
            lost.headless,
            short((percent * 10.0).round() / 10.0)
        ));
    }
    Some(finding.with_hint(
        "`dyelog trace check` shows what was lost; exporters that drop spans have larger queues in their settings",
    ))
}
