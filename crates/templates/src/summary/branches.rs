//! Parallel branches of an entry: on which strand each node of an invocation is, and which blocks these strands have.
//!
//! A branch is forked at a node of its *parent* strand and waited for at a later node of it, or never. Forks that follow each other
//! directly are one place, unless a delay lies between them, and so are waits. Branches of one place that are waited for at one place make a block; where they are
//! waited for at several places, blocks lie in each other, the one that is waited for last outermost. What the strand itself does
//! meanwhile is a branch of the block, too.
//!
//! Blocks that would cross (one branch is forked while another runs, and still runs when that one is waited for) cannot lie in
//! each other: there the earlier wait is put off to the later one. Invocations in which a wait is moved are counted, since the
//! model then waits where they did not.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::driver::{BranchKind, DELAYED, EntryNumber, Meeting, Outcome};
use crate::summary::groups::Groups;
use crate::summary::kind_of;
use dyelog_lqn::digest::Digest;
use dyelog_lqn::submodel::{BlockTotal, Branch, BranchTotal, EntryKey, Position, RequestKind};
use dyelog_trace::toeg::NONE;
use dyelog_trace::{Kind, NodeId, Toeg};

/// An operation's parallel branches, put together by entry.
#[derive(Debug, Default)]
pub(super) struct Branches {
    by_entry: Groups,
}

impl Branches {
    /// The branches of an operation.
    pub(super) fn fill(&mut self, outcome: &Outcome) {
        let entries = outcome.entries.len();
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

/// Where in an invocation with parallel branches something is: the stage of a strand, and of which branch that strand is.
pub type At = (u32, Option<Branch>);

/// Where the nodes and the requests of invocations with parallel branches are.
#[derive(Debug, Default)]
pub struct Places {
    /// By node.
    pub nodes: FxHashMap<NodeId, At>,
    /// Of requests that are branches, by their numbers.
    pub requests: FxHashMap<u32, At>,
}

impl Places {
    /// Where a node is.
    #[inline]
    pub fn of(&self, node: NodeId) -> Option<At> {
        self.nodes.get(&node).copied()
    }

    /// Where a request is made, given the node that makes it.
    pub fn of_request(&self, number: u32, at: NodeId) -> Option<At> {
        self.requests.get(&number).copied().or_else(|| self.of(at))
    }
}

/// What an invocation with parallel branches consists of.
#[derive(Debug, Default)]
pub(super) struct Positions {
    pub(super) places: Places,
    /// The blocks, with their keys.
    pub(super) blocks: Vec<(u64, BlockTotal)>,
    /// Whether some wait stands elsewhere than where it was.
    pub(super) moved: bool,
}

/// The nodes, requests and branches of one invocation, as numbers in the outcome of its operation.
#[derive(Clone, Copy)]
pub(crate) struct Invocation<'a> {
    pub(crate) toeg: &'a Toeg,
    pub(crate) outcome: &'a Outcome,
    pub(crate) entry: EntryNumber,
    pub(crate) nodes: &'a [NodeId],
    pub(crate) requests: &'a [u32],
    pub(crate) branches: &'a [u32],
}

/// Whether processor time was measured on each branch of an invocation: then programs name their strands, by spans of their own. Branches
/// without are calls that were seen to overlap.
pub(crate) fn are_strands(of: Invocation<'_>) -> bool {
    let Invocation { toeg, outcome, nodes, branches, .. } = of;
    let mut seen = vec![false; branches.len()];
    for &node in nodes.iter().filter(|node| !toeg.event(**node).cpu.is_nan()) {
        let branch = outcome.branch.get(node as usize).copied().unwrap_or(0);
        if let Ok(at) = branches.binary_search(&branch.wrapping_sub(1)) {
            seen[at] = true;
        }
    }
    !seen.is_empty() && seen.iter().all(|seen| *seen)
}

/// Finds strands and blocks of an invocation. `key` gives the keys of entries that it requests.
pub(super) fn positions(of: Invocation<'_>, key: &dyn Fn(EntryNumber) -> EntryKey) -> Positions {
    let mut threads = Threads::of(of);
    let mut weave = Weave::default();
    weave.strands.push(Strand::default());
    weave.strands.extend(threads.ends.iter().map(|end| Strand { awaited: *end != End::Never, ..Strand::default() }));
    // Thread and place in it by branch.
    let mut waited_at = FxHashMap::default();
    for line in threads.nodes.chunk_by(|left, right| left.0 == right.0) {
        let waits = WaitPlaces::of(&threads, line);
        weave.line(of, &threads, line, &waits);
        waited_at.extend(waits.of.into_iter().map(|(branch, place)| (branch, (line[0].0, place))));
    }
    weave.moved |= threads.parents.iter().zip(&threads.ends).zip(1..).any(|((parent, end), branch)| {
        *end == End::WithParent && waited_at.get(&branch) != parent.and_then(|parent| waited_at.get(&parent))
    });
    weave.moved |= threads.moved;
    let mut requests = std::mem::take(&mut threads.requests);
    for &(branch, meeting) in &threads.meetings {
        weave.meeting(of, branch, meeting, &mut requests);
    }
    for &number in of.requests {
        let request = &of.outcome.requests[number as usize];
        let own = requests.get(&number).copied();
        let Some(strand) = own.or_else(|| weave.places.get(&request.at).map(|place| place.0)) else { continue };
        if let Some(kind) = kind_of(of.outcome, request.to) {
            weave.strands[strand as usize].requests.push((kind, key(request.to)));
        }
    }
    weave.finish(&requests)
}

/// Where a branch is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// At that node of the strand that forked it.
    At(NodeId),
    /// Where that strand ends: some other strand of the invocation waits.
    WithParent,
    /// Nowhere.
    Never,
}

/// Nodes by the thread of control that they are on: 0 for the entry's own, and from 1 on its branches.
struct Threads {
    /// All nodes with their threads, by thread, each in its order.
    nodes: Vec<(u32, NodeId)>,
    /// The branch that a node forks.
    forks: FxHashMap<NodeId, u32>,
    /// The branch that a node waits for.
    waits: FxHashMap<NodeId, u32>,
    /// Of each branch.
    ends: Vec<End>,
    /// Of each branch, the thread that forked it, if that is one of the entry's.
    parents: Vec<Option<u32>>,
    /// The branch that a request is.
    requests: FxHashMap<u32, u32>,
    /// Branches that only say where an alternative is.
    alternatives: FxHashSet<u32>,
    /// Branches that are meetings, with their numbers.
    meetings: Vec<(u32, u32)>,
    /// Whether a branch begins before it was seen to.
    moved: bool,
}

impl Threads {
    fn of(of: Invocation<'_>) -> Self {
        let Invocation { toeg, outcome, .. } = of;
        let branch = |node: NodeId| outcome.branch.get(node as usize).copied().unwrap_or(0);
        let number = |branch: u32| of.branches.binary_search(&branch.wrapping_sub(1)).map_or(0, |at| at as u32 + 1);
        // A branch is found after the one around it, so that parents have lower numbers.
        let parents: Vec<Option<u32>> = (1..)
            .zip(of.branches)
            .map(|(own, &branch_number)| {
                let fork = outcome.branches[branch_number as usize].fork;
                let here = fork != NONE && outcome.owner[fork as usize] == of.entry;
                here.then(|| number(branch(fork))).filter(|parent| *parent < own)
            })
            .collect();
        let thread = |node: NodeId| match number(branch(node)) {
            own if own > 0 && parents[own as usize - 1].is_none() => 0,
            own => own,
        };
        let mut nodes: Vec<(u32, NodeId)> = of.nodes.iter().map(|&node| (thread(node), node)).collect();
        nodes.sort_unstable_by_key(|&(thread, node)| (thread, toeg.event(node).counter));
        let mut threads = Self {
            nodes,
            forks: FxHashMap::default(),
            waits: FxHashMap::default(),
            ends: vec![End::Never; parents.len()],
            parents: Vec::new(),
            requests: FxHashMap::default(),
            alternatives: FxHashSet::default(),
            meetings: Vec::new(),
            moved: false,
        };
        for (at, parent) in parents.iter().enumerate() {
            let Some(parent) = *parent else { continue };
            let branch = &outcome.branches[of.branches[at] as usize];
            if let BranchKind::Met = branch.kind {
                continue;
            }
            threads.forks.insert(branch.fork, at as u32 + 1);
            match branch.kind {
                BranchKind::Thread | BranchKind::Met => {}
                BranchKind::Meeting(meeting) => threads.meeting(of, at as u32 + 1, meeting),
                BranchKind::Request(request) => {
                    threads.requests.insert(request, at as u32 + 1);
                }
                BranchKind::Alternative => {
                    threads.alternatives.insert(at as u32 + 1);
                }
            }
            if branch.join != NONE {
                threads.ends_at(at as u32 + 1, branch.join, thread(branch.join) == parent);
            }
        }
        for &node in of.nodes {
            let Kind::Join(joined) = toeg.event(node).kind else { continue };
            let Some(last) = toeg.thread(joined).map(|thread| thread.last) else { continue };
            let branch = if outcome.owner[last as usize] == of.entry { thread(last) } else { 0 };
            if branch > 0 && threads.ends[branch as usize - 1] == End::Never {
                threads.ends_at(branch, node, parents[branch as usize - 1] == Some(thread(node)));
            }
        }
        threads.parents = parents;
        threads
    }

    /// A meeting begins at the first of its forks, and ends at the last of its joins.
    fn meeting(&mut self, of: Invocation<'_>, branch: u32, meeting: u32) {
        self.meetings.push((branch, meeting));
        let counter = |node: NodeId| of.toeg.event(node).counter;
        let Meeting { forks, joins, .. } = &of.outcome.meetings[meeting as usize];
        for (before, fork) in forks.iter().zip(&forks[1..]) {
            if counter(*fork) != counter(*before) + 1 {
                self.moved = true;
                break;
            }
            self.forks.insert(*fork, branch);
        }
        self.moved |=
            joins.iter().zip(joins.iter().skip(1)).any(|(before, join)| counter(*join) != counter(*before) + 1);
        self.waits.extend(joins.iter().map(|join| (*join, branch)));
    }

    fn ends_at(&mut self, branch: u32, node: NodeId, on_parent: bool) {
        self.ends[branch as usize - 1] = if on_parent { End::At(node) } else { End::WithParent };
        self.waits.insert(node, branch);
    }
}

#[derive(Clone, Debug, Default)]
struct Strand {
    awaited: bool,
    own: bool,
    requests: Vec<(RequestKind, EntryKey)>,
    /// Contents of its blocks, the last one first.
    blocks: Vec<u64>,
    /// Whether a branch of its blocks makes requests.
    calls_below: bool,
    content: u64,
    name: Option<Branch>,
}

impl Strand {
    fn calls(&self) -> bool {
        self.calls_below || !self.requests.is_empty()
    }
}

#[derive(Debug)]
struct Block {
    strand: u32,
    stage: u32,
    phase: u8,
    branches: Vec<u32>,
    content: u64,
}

/// A strand that is being followed, with the block that it is a branch of, and the stage that it has come to.
struct Open {
    strand: u32,
    block: Option<usize>,
    stage: u32,
    used: bool,
}

#[derive(Debug, Default)]
struct Weave {
    strands: Vec<Strand>,
    /// Each after the one around it.
    blocks: Vec<Block>,
    /// Strand and stage of each node.
    places: FxHashMap<NodeId, (u32, u32)>,
    /// Whether a wait was put off to a later one.
    moved: bool,
}

impl Weave {
    /// Puts the nodes of a thread into strands and blocks.
    fn line(&mut self, of: Invocation<'_>, threads: &Threads, line: &[(u32, NodeId)], waits: &WaitPlaces) {
        let mut open = vec![Open { strand: line[0].0, block: None, stage: 0, used: true }];
        // Where open blocks end, and how many end there, innermost last.
        let mut ends: Vec<(usize, usize)> = Vec::new();
        let mut at = 0;
        while at < line.len() {
            while let Some((_, count)) = ends.pop_if(|(end, _)| *end <= at) {
                for _ in 0..count {
                    self.close(&mut open);
                }
            }
            let top = open.last_mut().expect("the thread's own strand stays open");
            // Forks in a row are one place, unless time passes between them of which a template says that nothing works in it.
            let forks = line[at..].iter().enumerate().take_while(|(further, (_, node))| {
                threads.forks.contains_key(node)
                    && (*further == 0 || of.outcome.flags.get(*node as usize).is_none_or(|flags| flags & DELAYED == 0))
            });
            let forks = forks.count();
            top.used |= forks > 0 || !threads.waits.contains_key(&line[at].1);
            for (_, node) in &line[at..at + forks.max(1)] {
                self.places.insert(*node, (top.strand, top.stage));
            }
            if forks > 0 {
                let phase = of.outcome.phase(line[at + forks - 1].1);
                let mut groups: Vec<(usize, Vec<u32>)> = waits.groups(threads, at + forks, &line[at..at + forks]);
                let never = groups.pop_if(|(end, _)| *end == 0).map(|(_, branches)| branches);
                if let Some((_, innermost)) = groups.last_mut() {
                    innermost.extend(never.into_iter().flatten());
                } else {
                    self.block(&mut open, phase, never.unwrap_or_default());
                }
                for (end, branches) in groups {
                    let branches = branches.into_iter().filter(|branch| !threads.alternatives.contains(branch));
                    let block = self.block(&mut open, phase, branches.collect());
                    open.push(Open { strand: self.strands.len() as u32, block: Some(block), stage: 0, used: false });
                    self.strands.push(Strand { own: true, awaited: true, ..Strand::default() });
                    let mut count = 1;
                    while let Some((other, more)) = ends.pop_if(|(other, _)| *other <= end) {
                        count += more;
                        self.moved |= other < end;
                    }
                    ends.push((end, count));
                }
            }
            at += forks.max(1);
        }
        while open.len() > 1 {
            self.close(&mut open);
        }
    }

    /// A block on the innermost open strand.
    fn block(&mut self, open: &mut [Open], phase: u8, branches: Vec<u32>) -> usize {
        let top = open.last_mut().expect("the thread's own strand stays open");
        top.stage += 1;
        top.used = true;
        self.blocks.push(Block { strand: top.strand, stage: top.stage, phase, branches, content: 0 });
        self.blocks.len() - 1
    }

    /// The blocks of a meeting, one after the other on the strand of its branch.
    fn meeting(&mut self, of: Invocation<'_>, strand: u32, meeting: u32, requests: &mut FxHashMap<u32, u32>) {
        let Meeting { forks, awaited, stages, .. } = &of.outcome.meetings[meeting as usize];
        let some = awaited.contains(&true);
        for (stage, parts) in (1..).zip(stages) {
            let last = stage as usize == stages.len();
            let mut branches = Vec::with_capacity(parts.len());
            for (number, awaited) in parts.iter().zip(awaited) {
                branches.push(self.strands.len() as u32);
                requests.insert(*number, self.strands.len() as u32);
                // All meet at a barrier; after the last one nobody need wait.
                let awaited = !last || !some || *awaited;
                self.strands.push(Strand { awaited, ..Strand::default() });
            }
            let phase = of.outcome.phase(forks[0]);
            self.blocks.push(Block { strand, stage, phase, branches, content: 0 });
        }
    }

    /// The strand has waited for the innermost block.
    fn close(&mut self, open: &mut Vec<Open>) {
        if let Some(Open { strand, block: Some(block), used: true, .. }) = open.pop() {
            self.blocks[block].branches.push(strand);
        }
    }

    /// Gives strands and blocks digests by what is done in them, so that they merge over invocations.
    fn finish(mut self, requests: &FxHashMap<u32, u32>) -> Positions {
        for number in (0..self.blocks.len()).rev() {
            let mut block = std::mem::replace(&mut self.blocks[number], Block::empty());
            for &strand in &block.branches {
                let strand = &mut self.strands[strand as usize];
                strand.requests.sort_unstable();
                strand.requests.dedup();
                let start = Digest::of(6).word(u64::from(strand.own));
                let requests =
                    strand.requests.iter().fold(start, |digest, (kind, key)| digest.word(*kind as u64).key(*key));
                strand.content = strand.blocks.iter().fold(requests, |digest, block| digest.word(*block)).short();
            }
            let rank = |strand: u32| {
                let own = &self.strands[strand as usize];
                (own.content, !own.awaited, strand)
            };
            block.branches.sort_unstable_by_key(|strand| rank(*strand));
            let awaited = block.branches.iter().filter(|strand| self.strands[**strand as usize].awaited).count();
            let start = Digest::of(7).word(awaited as u64);
            block.content = block
                .branches
                .iter()
                .fold(start, |digest, branch| digest.word(self.strands[*branch as usize].content))
                .short();
            let calls = block.branches.iter().any(|branch| self.strands[*branch as usize].calls());
            let around = &mut self.strands[block.strand as usize];
            around.blocks.push(block.content);
            around.calls_below |= calls;
            self.blocks[number] = block;
        }
        let mut blocks = Vec::with_capacity(self.blocks.len());
        for block in &self.blocks {
            let Block { strand, stage, phase, ref branches, content } = *block;
            let around = self.strands[strand as usize].name;
            let path =
                around.map_or(Digest::of(8), |Branch { block, branch }| Digest::of(9).word(block).word(branch.into()));
            let key = path.word(stage.into()).word(phase.into()).word(content).short();
            for (rank, &branch) in (0..).zip(branches) {
                self.strands[branch as usize].name = Some(Branch { block: key, branch: rank });
            }
            let total = |strand: &u32| {
                let strand = &self.strands[*strand as usize];
                let content = if strand.calls() { strand.content } else { 0 };
                BranchTotal { content, own: strand.own, awaited: u64::from(strand.awaited) }
            };
            let at = Position { stage, branch: around, phase };
            let branches = branches.iter().map(total).collect();
            blocks.push((key, BlockTotal { at, times: 1, branches, ..BlockTotal::default() }));
        }
        let named = |(node, (strand, stage))| (node, (stage, self.strands[strand as usize].name));
        let requests = requests.iter().map(|(request, strand)| (*request, (0, self.strands[*strand as usize].name)));
        let nodes = self.places.into_iter().map(named).collect();
        Positions { places: Places { nodes, requests: requests.collect() }, blocks, moved: self.moved }
    }
}

impl Block {
    fn empty() -> Self {
        Self { strand: 0, stage: 0, phase: 1, branches: Vec::new(), content: 0 }
    }
}

/// For the nodes of a thread that wait for branches of it, where the first of those waits that directly follow each other is.
struct WaitPlaces {
    /// Place in the thread by branch.
    of: FxHashMap<u32, usize>,
    /// How many nodes the thread has.
    length: usize,
}

impl WaitPlaces {
    fn of(threads: &Threads, line: &[(u32, NodeId)]) -> Self {
        let mut of = FxHashMap::default();
        let mut first = 0;
        for (at, (_, node)) in line.iter().enumerate() {
            match threads.waits.get(node) {
                Some(branch) => of.insert(*branch, first),
                None => {
                    first = at + 1;
                    None
                }
            };
        }
        Self { of, length: line.len() }
    }

    /// The branches that nodes fork, by where they are waited for, the last such place first and 0 for nowhere at the end.
    fn groups(&self, threads: &Threads, after: usize, forks: &[(u32, NodeId)]) -> Vec<(usize, Vec<u32>)> {
        let mut branches: Vec<(usize, u32)> = forks
            .iter()
            .map(|(_, node)| {
                let branch = threads.forks[node];
                let end = match threads.ends[branch as usize - 1] {
                    End::At(_) => self.of.get(&branch).copied().filter(|end| *end >= after).unwrap_or(0),
                    End::WithParent => self.length,
                    End::Never => 0,
                };
                (end, branch)
            })
            .collect();
        branches.sort_unstable_by_key(|&(end, branch)| (std::cmp::Reverse(end), branch));
        branches.dedup();
        branches
            .chunk_by(|left, right| left.0 == right.0)
            .map(|same| (same[0].0, same.iter().map(|of| of.1).collect()))
            .collect()
    }
}
