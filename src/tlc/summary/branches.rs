//! Parallel branches of an entry: which nodes are in which segment or block of its visit.

use rustc_hash::FxHashMap;

use crate::lqn::submodel::{Branch, EntryKey, RequestKind};
use crate::tlc::digest::Digest;
use crate::tlc::driver::{EntryNumber, Outcome};
use crate::tlc::summary::groups::Groups;
use crate::tlc::summary::kind_of;
use crate::trace::toeg::NONE;
use crate::trace::{NodeId, Toeg};

/// An operation's parallel branches, put together by entry.
#[derive(Debug, Default)]
pub(super) struct Branches {
    /// For each branch the outermost branch that it is in, as an index plus one.
    outermost: Vec<u32>,
    by_entry: Groups,
}

impl Branches {
    /// The branches of an operation.
    pub(super) fn fill(&mut self, toeg: &Toeg, outcome: &Outcome) {
        let entries = outcome.entries.len();
        outermost_branches(toeg, outcome, &mut self.outermost);
        if outcome.branches.is_empty() {
            self.by_entry.clear();
            return;
        }
        self.by_entry.fill(entries, outcome.branches.len(), |branch| {
            let entry = outcome.branches[branch as usize].entry as usize;
            (entry < entries).then_some(entry)
        });
    }

    /// Indices of an entry's branches.
    #[inline]
    pub(super) fn of_entry(&self, entry: usize) -> &[u32] {
        self.by_entry.of(entry)
    }
}

/// Stage and branch of each node of an entry that has parallel branches.
pub(super) type Positions = FxHashMap<NodeId, (u32, Option<Branch>)>;

/// Puts the nodes of an entry into segments and blocks. Nodes are taken in the order of their task; a block lasts from a
/// fork of a branch until all open branches are joined. What the visit itself does meanwhile is a branch too.
pub(super) fn positions(
    toeg: &Toeg,
    outcome: &Outcome,
    nodes: &[NodeId],
    requests: &[u32],
    key: &dyn Fn(EntryNumber) -> EntryKey,
    branches: &Branches,
    entry: usize,
) -> Positions {
    let mut ends: FxHashMap<NodeId, bool> = FxHashMap::default();
    for &branch in branches.of_entry(entry) {
        let branch = &outcome.branches[branch as usize];
        let fork = toeg.thread_of(branch.begin).fork;
        if fork != NONE && outcome.branch.get(fork as usize).copied().unwrap_or(0) == 0 {
            ends.insert(fork, true);
            ends.insert(branch.join, false);
        }
    }
    let mut sorted = nodes.to_vec();
    sorted.sort_unstable_by_key(|&node| toeg.event(node).counter);
    let (mut stage, mut open) = (0u32, 0u32);
    // Stage and number of the branch (0 for what the visit itself does) of each node.
    let mut raw: Vec<(NodeId, u32, Option<u32>)> = Vec::with_capacity(sorted.len());
    for &node in &sorted {
        let branch = outcome.branch.get(node as usize).copied().unwrap_or(0);
        if branch != 0 {
            raw.push((node, stage, Some(branches.outermost[branch as usize - 1])));
            continue;
        }
        if ends.get(&node) == Some(&false) {
            open = open.saturating_sub(1);
            raw.push((node, stage, if open > 0 { Some(0) } else { None }));
            continue;
        }
        if ends.get(&node) == Some(&true) {
            // The fork itself is work done before.
            raw.push((node, stage, if open > 0 { Some(0) } else { None }));
            if open == 0 {
                stage += 1;
            }
            open += 1;
            continue;
        }
        raw.push((node, stage, if open > 0 { Some(0) } else { None }));
    }
    name_blocks(outcome, requests, key, &raw)
}

/// For each branch, as index plus one, the outermost branch that it is in.
fn outermost_branches(toeg: &Toeg, outcome: &Outcome, outermost: &mut Vec<u32>) {
    outermost.clear();
    for (place, branch) in outcome.branches.iter().enumerate() {
        let fork = toeg.thread_of(branch.begin).fork;
        let around = if fork == NONE { 0 } else { outcome.branch.get(fork as usize).copied().unwrap_or(0) };
        // A branch is found after the one around it.
        let own = place as u32 + 1;
        outermost.push(if around != 0 && around < own { outermost[around as usize - 1] } else { own });
    }
}

/// Gives blocks and branches digests by the requests made in them, so that they merge over invocations.
fn name_blocks(
    outcome: &Outcome,
    requests: &[u32],
    key: &dyn Fn(EntryNumber) -> EntryKey,
    raw: &[(NodeId, u32, Option<u32>)],
) -> Positions {
    let place: FxHashMap<NodeId, (u32, Option<u32>)> =
        raw.iter().map(|(node, stage, branch)| (*node, (*stage, *branch))).collect();
    // (stage, branch) → what it requests.
    let mut made: FxHashMap<(u32, u32), Vec<(RequestKind, EntryKey)>> = FxHashMap::default();
    for (_, stage, branch) in raw {
        if let Some(branch) = branch
            && *branch != 0
        {
            made.entry((*stage, *branch)).or_default();
        }
    }
    for &request in requests {
        let request = &outcome.requests[request as usize];
        let Some((stage, Some(branch))) = place.get(&request.at).copied() else { continue };
        if let Some(kind) = kind_of(outcome, request.to) {
            made.entry((stage, branch)).or_default().push((kind, key(request.to)));
        }
    }
    let mut blocks: FxHashMap<u32, Vec<(u64, u32)>> = FxHashMap::default();
    for ((stage, branch), mut requests) in made {
        requests.sort_unstable();
        requests.dedup();
        let start = Digest::of(6).word(u64::from(branch == 0));
        let digest = requests.iter().fold(start, |digest, (kind, key)| digest.word(*kind as u64).key(*key)).short();
        blocks.entry(stage).or_default().push((digest, branch));
    }
    let mut named: FxHashMap<(u32, u32), Branch> = FxHashMap::default();
    for (stage, mut branches) in blocks {
        branches.sort_unstable();
        let block = branches.iter().fold(Digest::of(7), |digest, (branch, _)| digest.word(*branch)).short();
        for (rank, (_, branch)) in branches.iter().enumerate() {
            named.insert((stage, *branch), Branch { block, branch: rank as u32 });
        }
    }
    raw.iter()
        .map(|(node, stage, branch)| {
            let branch = branch.and_then(|branch| named.get(&(*stage, branch)).copied());
            (*node, (*stage, branch))
        })
        .collect()
}
