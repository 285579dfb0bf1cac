//! What the first visit of an operation does on branches that no node joins: its customer does not wait for it.
//!
//! Spans show such work by a local span that outlasts the root. Where at least half of a branch comes after the answer, the branch was handed on, and all of it is the
//! second phase of the entry, but that it may begin before the answer. Of another branch, as a handler that is closed late, only what begins after the answer is.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use crate::driver::{BranchKind, EntryNumber, Outcome, PHASE_MASK, PHASE_SHIFT};
use crate::summary::{Invocation, are_strands, is_measured};
use dyelog_trace::toeg::NONE;
use dyelog_trace::{Kind, NodeId, Toeg};

/// The entry that a customer calls.
pub(crate) const FIRST: EntryNumber = 1;

/// A branch of which this part or more comes after the answer does so as a whole (ours).
const MOST: f64 = 0.5;

/// By branch of an operation, as an index plus one, the outermost branch of the first entry around it that no node joins; 0 for none.
struct Detached<'a> {
    outcome: &'a Outcome,
    outermost: Vec<u32>,
}

impl<'a> Detached<'a> {
    fn of(toeg: &Toeg, outcome: &'a Outcome, nodes: &[NodeId]) -> Self {
        let joins = nodes.iter().filter_map(|node| match toeg.event(*node).kind {
            Kind::Join(thread) => toeg.thread(thread),
            _ => None,
        });
        let joined: FxHashSet<u32> = joins.map(|thread| branch_of(outcome, thread.last)).collect();
        let mut outermost = vec![0; outcome.branches.len() + 1];
        for (number, branch) in (1..).zip(&outcome.branches) {
            if branch.entry != FIRST {
                continue;
            }
            // A branch is found after the one around it.
            let around = if branch.fork == NONE { 0 } else { branch_of(outcome, branch.fork).min(number - 1) };
            let is_joined = branch.join != NONE || branch.kind != BranchKind::Thread || joined.contains(&number);
            outermost[number as usize] = match outermost[around as usize] {
                0 if is_joined => 0,
                0 => number,
                outer => outer,
            };
        }
        Self { outcome, outermost }
    }

    /// The outermost such branch around a node; 0 for none.
    fn around(&self, node: NodeId) -> u32 {
        self.outermost.get(branch_of(self.outcome, node) as usize).copied().unwrap_or(0)
    }

    fn is_awaited(&self, node: NodeId) -> bool {
        self.around(node) == 0
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
    let detached = Detached::of(toeg, outcome, nodes);
    last(toeg, first_phase.filter(|node| detached.is_awaited(*node)))
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
    let branches = Detached::of(toeg, outcome, &nodes);
    let detached: Vec<(u32, NodeId)> =
        nodes.iter().map(|node| (branches.around(*node), *node)).filter(|(branch, _)| *branch > 0).collect();
    let own: Vec<u32> = (0..).zip(&outcome.branches).filter(|(_, own)| own.entry == FIRST).map(|(at, _)| at).collect();
    let first = Invocation { toeg, outcome, entry: FIRST, nodes: &nodes, requests: &[], branches: &own };
    if detached.is_empty() || are_strands(first) {
        return;
    }
    let is_awaited = |node: &NodeId| outcome.phase(*node) == 1 && branches.is_awaited(*node);
    let answered = last(toeg, nodes.iter().copied().filter(is_awaited));
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
