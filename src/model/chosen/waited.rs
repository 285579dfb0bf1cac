//! Operations that are as long as something in them was waited for: a call that was given up after some time, or a poll.

use std::collections::BTreeSet;

use crate::lqn::sketch::Sketch;
use crate::lqn::submodel::{EntryIndex, EntryTotal, SubModel};
use crate::model::parts::Customer;

/// What was waited for took that time but for so much, as a part of it (ours): times are kept in steps, and timers are late.
const ABOUT: f64 = 0.02;

/// In so many of the operations that took longer, as a part of them (ours).
const MOST: f64 = 0.5;

/// Whether most operations of a scenario that took longer than some time have one invocation or one stretch of own time that took as long.
pub(super) fn is_waited(sub: &SubModel, customer: &Customer, at: f64) -> bool {
    let all = |times: &Sketch| times.buckets().map(|(_, count)| count).sum::<u64>() as f64;
    let (low, high) = (at * (1.0 - ABOUT), at * (1.0 + ABOUT));
    let times = &customer.scenario_total.responses;
    let longer = all(times) - times.below(at);
    let is_enough = |entry: &EntryTotal| {
        let calls = entry.responses.below(high) - entry.responses.below(low);
        let kept = entry.stays.kept();
        let about = kept.iter().filter(|stay| (low..high).contains(&(stay.length as f64 * 1e-9))).count() as f64;
        let own = about * entry.stays.seen() as f64 / kept.len().max(1) as f64;
        calls.max(own) >= MOST * longer
    };
    let (mut reached, mut open) = (BTreeSet::new(), Vec::new());
    let calls = |entry: &EntryTotal| entry.requested().map(|(to, _)| to).collect::<Vec<EntryIndex>>();
    open.extend(calls(&customer.total));
    while let Some(index) = open.pop() {
        if reached.insert(index) {
            open.extend(calls(sub.entry(index)));
        }
    }
    reached.into_iter().any(|index| is_enough(sub.entry(index)))
}
