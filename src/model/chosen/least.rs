//! The least time that an operation can take, as its parts tell.

use std::collections::BTreeMap;

use crate::lqn::stays::UNDATED;
use crate::lqn::submodel::{EntryIndex, EntryTotal, RequestKind, SubModel};
use crate::model::parts::Customer;

/// Calls are followed so many levels down.
const LEVELS: usize = 64;

/// Calls that are made in a smaller part of operations are left out.
const SELDOM: f64 = 1e-3;

/// The sum of the least own times of all that an operation of a scenario waits for, and of what its mean response has beyond their means, seconds. Calls at once count
/// as if they came one after another: it is rather more than the least time.
pub fn least(sub: &SubModel, customer: &Customer) -> f64 {
    let total = &customer.scenario_total;
    let operations = total.operations.max(1) as f64;
    let (mut least, mut mean) = (0.0, customer.total.own_time() / operations);
    let mut open: BTreeMap<EntryIndex, f64> = BTreeMap::new();
    add_calls(&customer.total, 1.0 / operations, &mut open);
    for _ in 0..LEVELS {
        let mut next = BTreeMap::new();
        for (index, visits) in open {
            let entry = sub.entry(index);
            if visits < SELDOM || entry.invocations == 0 {
                continue;
            }
            let invocations = entry.invocations as f64;
            let own = entry.own_time() / invocations;
            mean += visits * own;
            least += visits * least_own(entry).unwrap_or(own);
            add_calls(entry, visits / invocations, &mut next);
        }
        open = next;
    }
    least + (total.response.mean().unwrap_or(0.0) - mean).max(0.0)
}

/// Adds the calls of an entry that wait, each so many times.
fn add_calls(entry: &EntryTotal, times: f64, calls: &mut BTreeMap<EntryIndex, f64>) {
    for ((kind, to), request) in entry.work.values().flat_map(|work| &work.requests) {
        if *kind == RequestKind::Synchronous {
            *calls.entry(*to).or_default() += times * request.count as f64;
        }
    }
}

/// The least own time of an invocation, where its stays are known: the shortest of each of its parts, by how often there is one.
fn least_own(entry: &EntryTotal) -> Option<f64> {
    let mut parts: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for stay in entry.stays.kept().into_iter().filter(|stay| stay.part != UNDATED) {
        let part = parts.entry(stay.part).or_insert((u64::MAX, 0));
        *part = (part.0.min(stay.length), part.1 + 1);
    }
    let invocations = parts.get(&0)?.1.max(1) as f64;
    Some(parts.values().map(|(least, count)| *least as f64 * 1e-9 * (*count as f64 / invocations).min(1.0)).sum())
}
