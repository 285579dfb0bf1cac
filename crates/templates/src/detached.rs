//! What the first visit of an operation does on branches that no node joins: its customer does not wait for it.
//!
//! Spans show such work by a local span that outlasts the root. Where most of a branch comes when the customer has its answer, the branch was handed on, and all of it is the
//! second phase of the entry, as in the 1998 paper (§4.3), but that it may begin before the answer. Of another branch, as a handler that is closed late, what comes after the answer is.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use crate::driver::{BranchKind, EntryNumber, Outcome, PHASE_MASK, PHASE_SHIFT};
use crate::summary::is_measured;
use dyelog_trace::toeg::NONE;
use dyelog_trace::{Kind, NodeId, Toeg};

/// The entry that a customer calls.
pub(crate) const FIRST: EntryNumber = 1;

/// Of this part of a branch and more that comes after the answer, all of the branch does (ours).
const MOST: f64 = 0.5;

/// The branches of the first entry that some node joins, as an index plus one.
struct Joined<'a> {
    outcome: &'a Outcome,
    joined: FxHashSet<u32>,
}

impl<'a> Joined<'a> {
    fn of(toeg: &Toeg, outcome: &'a Outcome, nodes: &[NodeId]) -> Self {
        let numbered = (1..).zip(&outcome.branches);
        let said = numbered.filter(|(_, branch)| branch.join != NONE || branch.kind != BranchKind::Thread);
        let mut joined: FxHashSet<u32> = said.map(|(number, _)| number).collect();
        let joins = nodes.iter().filter_map(|node| match toeg.event(*node).kind {
            Kind::Join(thread) => toeg.thread(thread),
            _ => None,
        });
        joined.extend(joins.map(|thread| branch_of(outcome, thread.last)));
        Self { outcome, joined }
    }

    /// The outermost branch around a node that no node joins; 0 for none.
    fn detached(&self, node: NodeId) -> u32 {
        let (mut branch, mut detached) = (branch_of(self.outcome, node), 0);
        while branch > 0 {
            let around = self.outcome.branches.get(branch as usize - 1).filter(|own| own.entry == FIRST);
            let Some(own) = around else { break };
            if !self.joined.contains(&branch) {
                detached = branch;
            }
            // A branch is found after the one around it.
            branch = if own.fork == NONE { 0 } else { branch_of(self.outcome, own.fork).min(branch - 1) };
        }
        detached
    }
}

fn branch_of(outcome: &Outcome, node: NodeId) -> u32 {
    outcome.branch.get(node as usize).copied().unwrap_or(0)
}

/// When an invocation of an entry with these nodes is over for its caller: at the end of its first phase. A customer does not wait for a branch that no node joins; of other
/// entries such a branch may be the one that answers. NaN without nodes.
pub(crate) fn answered_at(toeg: &Toeg, outcome: &Outcome, entry: EntryNumber, nodes: &[NodeId]) -> f64 {
    let first_phase = nodes.iter().copied().filter(|node| outcome.phase(*node) == 1);
    if entry != FIRST || outcome.branches.is_empty() {
        return last(toeg, first_phase);
    }
    let joined = Joined::of(toeg, outcome, nodes);
    last(toeg, first_phase.filter(|node| joined.detached(*node) == 0))
}

fn last(toeg: &Toeg, nodes: impl Iterator<Item = NodeId>) -> f64 {
    nodes.map(|node| toeg.event(node).time).fold(f64::NAN, f64::max)
}

/// Puts what the first visit does after its answer into its second phase. Where processor time was measured on each branch, branches stay as they are.
pub(crate) fn put_off(toeg: &Toeg, outcome: &mut Outcome) {
    if outcome.branches.is_empty() || !is_measured(toeg) {
        return;
    }
    let own = (0..).zip(&outcome.owner).filter(|(_, owner)| **owner == FIRST);
    let nodes: Vec<NodeId> = own.map(|(node, _)| node).collect();
    let joined = Joined::of(toeg, outcome, &nodes);
    let detached: Vec<(u32, NodeId)> =
        nodes.iter().map(|node| (joined.detached(*node), *node)).filter(|(branch, _)| *branch > 0).collect();
    if detached.is_empty() || are_measured_each(toeg, outcome, &nodes) {
        return;
    }
    let answered = answered_at(toeg, outcome, FIRST, &nodes);
    let mut extents: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for (branch, node) in &detached {
        let (time, extent) =
            (toeg.event(*node).time, extents.entry(*branch).or_insert((f64::INFINITY, f64::NEG_INFINITY)));
        *extent = (extent.0.min(time), extent.1.max(time));
    }
    for (branch, node) in detached {
        let (first, last) = extents[&branch];
        let is_handed_on = last - first.max(answered) >= MOST * (last - first);
        if is_handed_on || toeg.event(node).time >= answered {
            let flags = &mut outcome.flags[node as usize];
            *flags = *flags & !PHASE_MASK | 1 << PHASE_SHIFT;
        }
    }
}

/// Whether processor time was measured on each branch of the first entry.
fn are_measured_each(toeg: &Toeg, outcome: &Outcome, nodes: &[NodeId]) -> bool {
    let measured = nodes.iter().filter(|node| !toeg.event(**node).cpu.is_nan());
    let on: FxHashSet<u32> = measured.map(|node| branch_of(outcome, *node)).collect();
    (1..).zip(&outcome.branches).all(|(number, branch)| branch.entry != FIRST || on.contains(&number))
}
