//! Calls of work that most operations hand on, and that a few end before they have answered.
//!
//! The first entry of an operation makes them after its answer, in its second phase. In a few operations such work happens to be so short that it ends in time, and looks like a call
//! that is waited for. Taken for one, it would take as long as all others in the model: so it goes with these, and what it took stays a delay.

use std::collections::BTreeMap;

use crate::lqn::submodel::{EntryIndex, EntryTotal, Interaction, Moments, Position, RequestKind, Seconds, SubModel};
use crate::lqn::timing::{CallLabel, CallTotal};

/// Calls to an entry that are made before the answer in no more than this part of all are those after it (ours): (1, 5).
const FEW: (u64, u64) = (1, 5);

/// Operations that make both show that these are two calls, where there are more of them than this part of the calls before the answer (ours): (1, 50).
const BOTH: (u64, u64) = (1, 50);

/// Puts such calls of first entries into their second phase.
pub(super) fn hand_on(sub: &mut SubModel) {
    let customers = sub.entries().iter().filter(|entry| entry.interaction == Interaction::Customer);
    let mut firsts: Vec<EntryIndex> = customers
        .flat_map(|entry| entry.work.values())
        .flat_map(|work| work.requests.keys().map(|(_, to)| *to))
        .collect();
    firsts.sort_unstable();
    firsts.dedup();
    for first in firsts {
        let entry = sub.entry_mut(first);
        if entry.blocks.is_empty() && entry.calls.keys().any(|label| label.phase == 2) {
            hand_on_of(entry);
        }
    }
}

fn position(phase: u8) -> Position {
    Position { stage: 0, branch: None, phase }
}

fn waits(label: &CallLabel, phase: u8) -> bool {
    label.phase == phase && label.kind == RequestKind::Synchronous && label.to.is_some()
}

fn hand_on_of(entry: &mut EntryTotal) {
    // By entry that is called: calls before the answer and after it, and how often an operation made both.
    let mut counts: BTreeMap<EntryIndex, (u64, u64, u64)> = BTreeMap::new();
    for (label, call) in &entry.calls {
        let Some(to) = label.to else { continue };
        let own = counts.entry(to).or_default();
        let count = call.requests.count;
        own.0 = own.0.saturating_add(if waits(label, 1) { count } else { 0 });
        own.1 = own.1.saturating_add(if waits(label, 2) { count } else { 0 });
    }
    for ((left, right), pair) in &entry.pairs {
        let are_both = waits(left, 1) && waits(right, 2) || waits(left, 2) && waits(right, 1);
        if let (true, Some(to)) = (are_both && left.to == right.to, left.to) {
            let own = counts.entry(to).or_default();
            own.2 = own.2.saturating_add(pair.both);
        }
    }
    let is_few = |(before, after, both): (u64, u64, u64)| {
        let few = before.saturating_mul(FEW.1) <= before.saturating_add(after).saturating_mul(FEW.0);
        before > 0 && few && both.saturating_mul(BOTH.1) <= before.saturating_mul(BOTH.0)
    };
    counts.retain(|_, own| is_few(*own));
    if counts.is_empty() {
        return;
    }
    let moves = |label: &CallLabel| waits(label, 1) && label.to.is_some_and(|to| counts.contains_key(&to));
    entry.pairs.retain(|(left, right), _| !moves(left) && !moves(right));
    let (moved, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut entry.calls).into_iter().partition(|(own, _)| moves(own));
    entry.calls.extend(kept);
    let (mut taken, mut on_the_way) = (Seconds::default(), Seconds::default());
    for (label, call) in moved {
        taken = taken.plus(call.share);
        on_the_way = on_the_way.plus(call.network);
        // It begins in the first phase.
        let call = CallTotal { lead: Seconds::default(), ..call };
        entry.calls.entry(CallLabel { phase: 2, ..label }).or_default().merge(&call);
    }
    let mut way = Moments::default();
    let mut requests = Vec::new();
    if let Some(work) = entry.work.get_mut(&position(1)) {
        work.delay = work.delay.plus(taken);
        for to in counts.keys() {
            let kind = (RequestKind::Synchronous, *to);
            requests.extend(work.requests.shift_remove(&kind).map(|request| (kind, request)));
        }
        let count = requests.iter().map(|(_, request)| request.count).fold(0, u64::saturating_add);
        way.sum = on_the_way;
        way.count = if on_the_way == Seconds::default() { 0 } else { count.min(work.network.count) };
        work.network.count -= way.count;
        work.network.sum = Seconds(work.network.sum.0 - way.sum.0);
    }
    let later = entry.work.entry(position(2)).or_default();
    later.network.merge(&way);
    for (kind, request) in requests {
        later.requests.entry(kind).or_default().merge(&request);
    }
}
