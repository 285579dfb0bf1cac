//! Calls of work that most operations hand on, and that a few end before they have answered.
//!
//! The first entry of an operation makes them after its answer, in its second phase. In a few operations such work happens to be so short that it ends in time, and looks like a call
//! that is waited for. Taken for one, it would take as long as all others in the model: so it goes with these, and what it took stays a delay.

use crate::lqn::submodel::{EntryIndex, EntryTotal, Interaction, Position, RequestKind, Seconds, SubModel};
use crate::lqn::timing::CallLabel;

/// Calls to an entry that are made before the answer in no more than this part of all are those after it (ours): (1, 5).
const FEW: (u64, u64) = (1, 5);

/// Operations that make both show that these are two calls, where they are more than this part of those that make the first: (1, 50).
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

/// How many calls of a phase wait for an entry.
fn count(entry: &EntryTotal, phase: u8, to: EntryIndex) -> u64 {
    let of = |label: &CallLabel| label.phase == phase && label.kind == RequestKind::Synchronous && label.to == Some(to);
    entry.calls.iter().filter(|(label, _)| of(label)).map(|(_, call)| call.requests.count).sum()
}

fn hand_on_of(entry: &mut EntryTotal) {
    let is_early = |label: &CallLabel| label.phase == 1 && label.kind == RequestKind::Synchronous;
    let early: Vec<CallLabel> = entry.calls.keys().copied().filter(is_early).collect();
    for label in early {
        let Some(to) = label.to else { continue };
        let (before, after) = (count(entry, 1, to), count(entry, 2, to));
        let is_other = |other: &CallLabel| other.phase == 2 && other.kind == label.kind && other.to == label.to;
        let pairs = entry
            .pairs
            .iter()
            .filter(|((left, right), _)| *left == label && is_other(right) || *right == label && is_other(left));
        let both: u64 = pairs.map(|(_, pair)| pair.both).sum();
        if before * FEW.1 > (before + after) * FEW.0 || both * BOTH.1 > before * BOTH.0 {
            continue;
        }
        let Some(mut call) = entry.calls.shift_remove(&label) else { continue };
        let kind = (RequestKind::Synchronous, to);
        if let Some(work) = entry.work.get_mut(&position(1)) {
            work.delay = work.delay.plus(call.share);
            if let Some(left) = work.requests.get_mut(&kind) {
                left.count = left.count.saturating_sub(call.requests.count);
                left.squares = left.squares.saturating_sub(call.requests.squares);
                if left.count == 0 {
                    work.requests.shift_remove(&kind);
                }
            }
        }
        let later = entry.work.entry(position(2)).or_default();
        later.requests.entry(kind).or_default().merge(&call.requests);
        call.lead = Seconds::default();
        let second = CallLabel { phase: 2, ..label };
        entry.calls.entry(second).or_default().merge(&call);
        entry.pairs.retain(|(left, right), _| *left != label && *right != label);
    }
}
