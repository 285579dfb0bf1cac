//! Calls whose callee takes another time than for other callers. An entry of a model has one demand for all callers. So scenarios that share an entry respond as all of them do
//! on the mean.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::lqn::submodel::{EntryIndex, EntryTotal, RequestKind};
use crate::model::clones::Clones;
use crate::model::parts::{Customer, Parts};

/// Calls that lie within each other more deeply are not followed.
const DEEPEST: usize = 64;
/// Less than so many calls an operation are none.
const FEWEST: f64 = 1e-6;

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

/// The call of a scenario by which a model with these clones is off most.
pub fn of(parts: &Parts<'_>, customer: &Customer, clones: &Clones) -> Option<Context> {
    let operations = customer.total.invocations.max(1) as f64;
    let mut level: BTreeMap<EntryIndex, f64> = BTreeMap::new();
    for (to, count) in customer.total.requested() {
        *level.entry(to).or_insert(0.0) += count as f64 / operations;
    }
    let mut most: Option<(EntryIndex, Call)> = None;
    for _ in 0..DEEPEST {
        let mut next: BTreeMap<EntryIndex, f64> = BTreeMap::new();
        for (index, visits) in std::mem::take(&mut level) {
            let caller = parts.sub.entry(index);
            let invocations = caller.invocations.max(1) as f64;
            for call in calls(parts, caller, visits / invocations) {
                *next.entry(call.to).or_insert(0.0) += call.times;
                if !clones.has(index, call.to) && most.is_none_or(|(_, most)| call.error.abs() > most.error.abs()) {
                    most = Some((index, call));
                }
            }
        }
        next.retain(|_, visits| *visits > FEWEST);
        if next.is_empty() {
            break;
        }
        level = next;
    }
    let name = |entry: EntryIndex| Arc::from(parts.sub.names.text(parts.sub.entry(entry).service));
    let (caller, Call { to, here, in_all, error, .. }) = most.filter(|(_, call)| call.error != 0.0)?;
    Some(Context { caller: name(caller), callee: name(to), here, in_all, error })
}

/// Calls of one entry to another.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) to: EntryIndex,
    /// How many were traced.
    pub(super) count: u64,
    /// How many there are an operation.
    pub(super) times: f64,
    /// How long the callee takes in them, seconds.
    pub(super) here: f64,
    /// How long it takes in all calls.
    pub(super) in_all: f64,
    /// By how much a model without clones is off in these calls, seconds an operation: above 0 where it takes longer than they do.
    pub(super) error: f64,
}

/// The calls of an entry that wait, of which each invocation is so many an operation.
pub(super) fn calls(parts: &Parts<'_>, caller: &EntryTotal, operations: f64) -> impl Iterator<Item = Call> {
    let mut calls: BTreeMap<EntryIndex, (f64, u64)> = BTreeMap::new();
    for (label, call) in caller.calls.iter().filter(|(label, _)| label.kind == RequestKind::Synchronous) {
        let Some(to) = label.to else { continue };
        let own = calls.entry(to).or_default();
        *own = (own.0 + call.duration.sum.as_f64() - call.network.as_f64(), own.1 + call.requests.count);
    }
    calls.into_iter().filter_map(move |(to, (taken, count))| {
        let (here, in_all) = (taken / count.max(1) as f64, parts.sub.entry(to).response.mean()?);
        let times = count as f64 * operations;
        Some(Call { to, count, times, here, in_all, error: (in_all - here) * times })
    })
}
