//! Calls whose callee takes another time than for other callers. An entry of a model has one demand for all callers. So scenarios that share an entry respond as all of them do
//! on the mean.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::lqn::submodel::{EntryIndex, EntryTotal, RequestKind};
use crate::model::clones::Clones;
use crate::model::parts::{Customer, Parts};

/// Calls that lie within each other more deeply are not followed.
const DEEPEST: usize = 64;
/// Calls are not followed where a model can be off by less than this part of a scenario's response in any of them.
const LEAST: f64 = 1e-3;

/// A call whose callee takes another time than on the mean of all calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Context {
    /// What calls, and what is called: their services.
    pub caller: Arc<str>,
    /// See `caller`.
    pub callee: Arc<str>,
    /// How long that takes in these calls, and in all, seconds.
    pub here: f64,
    /// See `here`.
    pub in_all: f64,
    /// By how much a model is off in these calls, seconds an operation of the scenario: above 0 where it takes longer than they do.
    pub error: f64,
}

/// The calls of all entries.
pub(super) struct Contexts<'p> {
    parts: &'p Parts<'p>,
    clones: &'p Clones,
    /// By caller.
    calls: Vec<Vec<Call>>,
    /// By how much a model is off at most in any call that an invocation leads to, seconds.
    most: Vec<f64>,
}

impl<'p> Contexts<'p> {
    /// Of a model with these clones.
    pub fn new(parts: &'p Parts<'p>, clones: &'p Clones) -> Self {
        let calls: Vec<Vec<Call>> = parts.sub.entries().iter().map(|entry| calls(parts, entry).collect()).collect();
        let most = vec![0.0; calls.len()];
        let mut contexts = Self { parts, clones, calls, most };
        // Of calls that lie within each other ever more deeply. Where they come back to their callers, each round lets it grow a little.
        for _ in 0..DEEPEST {
            let next: Vec<f64> = (0..contexts.most.len()).map(|caller| contexts.most_of(caller)).collect();
            if next == contexts.most {
                break;
            }
            contexts.most = next;
        }
        contexts
    }

    /// What `most` of a caller is by that of what it calls.
    fn most_of(&self, caller: usize) -> f64 {
        let each = self.an_invocation(caller, 1.0);
        let (mut own, mut beneath) = (0.0_f64, 0.0);
        for call in &self.calls[caller] {
            let times = call.times(each);
            own = own.max(call.error(times).abs());
            beneath += times * self.most[call.to.index()];
        }
        own.max(beneath)
    }

    /// How many operations there are to an invocation of a caller that is invoked so often an operation.
    fn an_invocation(&self, caller: usize, visits: f64) -> f64 {
        visits / self.parts.sub.entries()[caller].invocations.max(1) as f64
    }

    /// The call of a scenario by which a model is off most.
    pub fn of(&self, customer: &Customer) -> Option<Context> {
        let operations = customer.total.invocations.max(1) as f64;
        let least = LEAST * customer.scenario_total.response.mean()?;
        let mut visits = vec![0.0; self.calls.len()];
        let mut level: Vec<EntryIndex> = Vec::new();
        for (to, count) in customer.total.requested() {
            level.push(to);
            visits[to.index()] += count as f64 / operations;
        }
        let mut most: Option<(EntryIndex, Call, f64)> = None;
        for _ in 0..DEEPEST {
            // An order of its own makes sums the same in all runs.
            level.sort_unstable();
            level.dedup();
            let callers: Vec<(EntryIndex, f64)> =
                level.drain(..).map(|caller| (caller, std::mem::take(&mut visits[caller.index()]))).collect();
            for (caller, own) in callers.into_iter().filter(|(caller, own)| own * self.most[caller.index()] > least) {
                let each = self.an_invocation(caller.index(), own);
                for call in &self.calls[caller.index()] {
                    let times = call.times(each);
                    level.push(call.to);
                    visits[call.to.index()] += times;
                    let error = call.error(times);
                    if most.is_none_or(|(_, _, most)| error.abs() > most.abs()) && !self.clones.has(caller, call.to) {
                        most = Some((caller, *call, error));
                    }
                }
            }
            if level.is_empty() {
                break;
            }
        }
        let sub = self.parts.sub;
        let name = |entry: EntryIndex| Arc::from(sub.names.text(sub.entry(entry).service));
        let (caller, Call { to, here, in_all, .. }, error) = most.filter(|(_, _, error)| *error != 0.0)?;
        Some(Context { caller: name(caller), callee: name(to), here, in_all, error })
    }
}

/// Calls of one entry to another.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) to: EntryIndex,
    /// How many were traced.
    pub(super) count: u64,
    /// How long the callee takes in them, seconds.
    pub(super) here: f64,
    /// How long it takes in all calls.
    pub(super) in_all: f64,
}

impl Call {
    /// How many there are an operation, of which there are so many to an invocation of the caller.
    pub(super) fn times(&self, operations: f64) -> f64 {
        self.count as f64 * operations
    }

    /// By how much a model without clones is off in so many calls, seconds: above 0 where it takes longer than they do.
    pub(super) fn error(&self, times: f64) -> f64 {
        (self.in_all - self.here) * times
    }
}

/// The calls of an entry that wait.
pub(super) fn calls(parts: &Parts<'_>, caller: &EntryTotal) -> impl Iterator<Item = Call> {
    let mut calls: BTreeMap<EntryIndex, (f64, u64)> = BTreeMap::new();
    for (label, call) in caller.calls.iter().filter(|(label, _)| label.kind == RequestKind::Synchronous) {
        let Some(to) = label.to else { continue };
        let own = calls.entry(to).or_default();
        *own = (own.0 + call.duration.sum.as_f64() - call.network.as_f64(), own.1 + call.requests.count);
    }
    calls.into_iter().filter_map(|(to, (taken, count))| {
        let (here, in_all) = (taken / count.max(1) as f64, parts.sub.entry(to).response.mean()?);
        Some(Call { to, count, here, in_all })
    })
}
