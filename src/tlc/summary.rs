//! From the outcome of one operation to the mergeable sub-model (1998 paper §3, §6).
//!
//! Every entry of the operation is given a key, by which it merges with entries of other operations and of its own: by
//! task, type and service name, else by structure bottom-up, or by its path from the customer, which keeps all apart.

use std::cmp::Ordering;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::lqn::submodel::{
    Branch, EntryIndex, EntryKey, Interaction, Position, RequestKind, SubModel, WITNESSES, Witness,
};
use crate::names::{Name, Names};
use crate::tlc::digest::Digest;
use crate::tlc::driver::{ACTIVITY, EntryNumber, Outcome, STRAY, THEN_NEXT_PHASE};
use crate::trace::toeg::NONE;
use crate::trace::{Kind, NodeId, Origins, Toeg, TraceNames};

/// How entries are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EntryMerge {
    /// By task, type and service name where the events carry one, else by structure.
    #[default]
    Name,
    /// By task, type, service name and requests, bottom-up.
    Structure,
    /// By the path of requests from the customer: nothing within an operation merges.
    None,
}

/// Folds operations of one reader into a sub-model.
#[derive(Debug, Default)]
pub struct Summary {
    /// How entries are told apart.
    merge: EntryMerge,
    submodel: SubModel,
    /// The sub-model's name for each name of the trace; `u32::MAX` where not asked for yet.
    names: Vec<Name>,
    /// Digest of each name of the trace.
    digests: Vec<Option<u64>>,
}

/// Requests and nodes of an operation's entries, put together by entry.
struct Grouped {
    nodes: Vec<NodeId>,
    node_offsets: Vec<u32>,
    requests: Vec<u32>,
    request_offsets: Vec<u32>,
}

const UNSET: Name = Name(u32::MAX);

impl Summary {
    /// Nothing folded yet.
    pub fn new(merge: EntryMerge) -> Self {
        Self { merge, ..Self::default() }
    }

    /// The sub-model so far.
    pub fn submodel(&self) -> &SubModel {
        &self.submodel
    }

    /// The sub-model.
    pub fn into_submodel(self) -> SubModel {
        self.submodel
    }

    /// Counts an operation that cannot be used.
    pub fn set_aside(&mut self) {
        self.submodel.set_aside += 1;
    }

    /// Takes in one operation.
    pub fn add(&mut self, toeg: &Toeg, names: &TraceNames, outcome: &Outcome) {
        let grouped = Grouped::of(toeg, outcome);
        let keys = self.keys(toeg, names, outcome, &grouped);
        let scenario = self.name(&names.names, toeg.operation().scenario);
        let timed = toeg.operation().events.iter().any(|event| !event.time.is_nan());
        let indices: Vec<EntryIndex> = outcome
            .entries
            .iter()
            .zip(&keys)
            .map(|(entry, key)| match entry.task {
                None => self.submodel.ensure_entry(*key, scenario, 1, Interaction::Customer, Name::NONE),
                Some(task) => {
                    let task = names.task(task);
                    let (name, service) = (self.name(&names.names, task.name), self.name(&names.names, entry.service));
                    self.submodel.ensure_entry(*key, name, task.instance, entry.interaction, service)
                }
            })
            .collect();
        let branches = Branches::of(toeg, outcome);
        let mut scratch = Scratch::default();
        for number in 0..outcome.entries.len() {
            let positions = (!branches.of_entry(number).is_empty()).then(|| {
                let (nodes, requests) = (grouped.nodes_of(number), grouped.requests_of(number));
                positions(toeg, outcome, nodes, requests, &keys, &branches, number)
            });
            self.add_entry(toeg, names, outcome, &grouped, &indices, number, positions.as_ref(), timed, &mut scratch);
        }
        self.add_scenario(toeg, outcome, &grouped, scenario, timed);
    }

    fn name(&mut self, names: &Names, name: Name) -> Name {
        if self.names.len() <= name.index() {
            self.names.resize(names.len().max(name.index() + 1), UNSET);
        }
        let known = self.names[name.index()];
        if known != UNSET {
            return known;
        }
        let new = self.submodel.names.intern(names.text(name));
        self.names[name.index()] = new;
        new
    }

    fn digest(&mut self, names: &Names, name: Name) -> u64 {
        if self.digests.len() <= name.index() {
            self.digests.resize(names.len().max(name.index() + 1), None);
        }
        *self.digests[name.index()].get_or_insert_with(|| Digest::of(1).text(names.text(name)).short())
    }

    /// The key of each entry of the operation.
    fn keys(&mut self, toeg: &Toeg, names: &TraceNames, outcome: &Outcome, grouped: &Grouped) -> Vec<EntryKey> {
        let base: Vec<Digest> = outcome
            .entries
            .iter()
            .map(|entry| match entry.task {
                None => Digest::of(2).word(self.digest(&names.names, toeg.operation().scenario)),
                Some(task) => {
                    let task = names.task(task);
                    Digest::of(3)
                        .word(self.digest(&names.names, task.name))
                        .word(u64::from(task.instance))
                        .word(entry.interaction as u64)
                        .word(self.digest(&names.names, entry.service))
                }
            })
            .collect();
        let mut keys: Vec<EntryKey> = base.iter().map(|digest| digest.finish()).collect();
        match self.merge {
            EntryMerge::None => {
                // Requests go from earlier to later entries, so a path is known before what hangs on it.
                for number in 0..outcome.entries.len() {
                    for (place, &request) in grouped.requests_of(number).iter().enumerate() {
                        let to = outcome.requests[request as usize].to as usize;
                        if to > number && to < keys.len() {
                            keys[to] = base[to].word(5).word(place as u64).key(keys[number]).finish();
                        }
                    }
                }
            }
            EntryMerge::Name | EntryMerge::Structure => {
                let mut children: Vec<(u8, RequestKind, EntryKey)> = Vec::new();
                for (number, entry) in outcome.entries.iter().enumerate().rev() {
                    let named = self.merge == EntryMerge::Name && entry.service.is_some();
                    if named || entry.task.is_none() {
                        continue;
                    }
                    children.clear();
                    for &request in grouped.requests_of(number) {
                        let request = &outcome.requests[request as usize];
                        let phase = if request.at == NONE { 1 } else { outcome.phase(request.at) };
                        if let Some(kind) = kind_of(outcome, request.to) {
                            children.push((phase, kind, keys[request.to as usize]));
                        }
                    }
                    children.sort_unstable();
                    children.dedup();
                    let digest = children.iter().fold(base[number].word(4), |digest, (phase, kind, key)| {
                        digest.word(u64::from(*phase)).word(*kind as u64).key(*key)
                    });
                    keys[number] = digest.finish();
                }
            }
        }
        keys
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one operation, borrowed apart")]
    fn add_entry(
        &mut self,
        toeg: &Toeg,
        names: &TraceNames,
        outcome: &Outcome,
        grouped: &Grouped,
        indices: &[EntryIndex],
        number: usize,
        positions: Option<&Positions>,
        timed: bool,
        scratch: &mut Scratch,
    ) {
        let index = indices[number];
        self.add_witness(toeg, names, outcome, number, index);
        self.submodel.entry_mut(index).invocations += 1;
        scratch.clear();
        for &node in grouped.nodes_of(number) {
            let event = toeg.event(node);
            let phase = outcome.phase(node);
            let position = place_of(positions, node, phase);
            let flags = outcome.flags[node as usize];
            if flags & ACTIVITY != 0 || !event.cpu.is_nan() {
                let name = self.name(&names.names, event.activity);
                let work = self.submodel.entry_mut(index).work.entry(position).or_default();
                let activity = work.activities.entry(name).or_default();
                activity.count += u64::from(flags & ACTIVITY != 0);
                if !event.cpu.is_nan() {
                    activity.cpu.add(event.cpu);
                }
                scratch.visit(position);
            }
            if timed && let Some(seconds) = exclusive(toeg, outcome, node) {
                let phase = if flags & THEN_NEXT_PHASE != 0 { (phase + 1).min(3) } else { phase };
                scratch.add_time(place_of(positions, node, phase), seconds);
            }
        }
        for &request in grouped.requests_of(number) {
            let request = &outcome.requests[request as usize];
            let Some(kind) = kind_of(outcome, request.to) else { continue };
            let phase = if request.at == NONE { 1 } else { outcome.phase(request.at) };
            let position = if request.at == NONE {
                Position { stage: 0, branch: None, phase }
            } else {
                place_of(positions, request.at, phase)
            };
            scratch.visit(position);
            scratch.requests.push((position, kind, indices[request.to as usize]));
        }
        let entry = self.submodel.entry_mut(index);
        for (position, seconds) in &scratch.visits {
            let work = entry.work.entry(*position).or_default();
            work.visits += 1;
            if let Some(seconds) = seconds {
                work.exclusive.add(*seconds);
            }
        }
        scratch.requests.sort_unstable();
        for same in scratch.requests.chunk_by(|left, right| left == right) {
            let (position, kind, to) = same[0];
            let times = same.len() as u64;
            let total = entry.work.entry(position).or_default().requests.entry((kind, to)).or_default();
            total.count += times;
            total.squares = total.squares.saturating_add(times.saturating_mul(times));
        }
    }

    /// Keeps the invocation among the entry's witnesses if it is one of the least; most are not, and cost no allocation.
    fn add_witness(&mut self, toeg: &Toeg, names: &TraceNames, outcome: &Outcome, number: usize, index: EntryIndex) {
        let operation = toeg.operation();
        let node = outcome.entries[number].accepted_at;
        let node = if node == NONE { toeg.root() } else { node };
        let event = toeg.event(node);
        let scenario = names.names.text(operation.scenario);
        let entry = self.submodel.entry_mut(index);
        if entry.witnesses.len() == WITNESSES {
            let last = &entry.witnesses[WITNESSES - 1];
            let order = scenario
                .cmp(&last.scenario)
                .then_with(|| (*operation.run).cmp(&*last.run))
                .then_with(|| (event.thread, event.index).cmp(&(last.thread, last.index)))
                .then_with(|| (*operation.file).cmp(&*last.file));
            if order == Ordering::Greater {
                return;
            }
        }
        let item: Arc<str> = match &operation.origins {
            Origins::Lines => event.origin.to_string().into(),
            Origins::Items(items) => items.get(event.origin as usize).cloned().unwrap_or_default(),
        };
        entry.add_witness(&Witness {
            scenario: names.names.shared(operation.scenario),
            run: Arc::clone(&operation.run),
            thread: event.thread,
            index: event.index,
            file: Arc::clone(&operation.file),
            item,
        });
    }

    fn add_scenario(&mut self, toeg: &Toeg, outcome: &Outcome, grouped: &Grouped, scenario: Name, timed: bool) {
        let operation = toeg.operation();
        let total = self.submodel.scenarios.entry(scenario).or_default();
        let mut one = crate::lqn::submodel::ScenarioTotal { operations: 1, ..Default::default() };
        if timed {
            let begin = toeg.event(toeg.root()).time;
            // The customer waits for the first entry's first phase.
            let reply = grouped
                .nodes_of(1)
                .iter()
                .filter(|&&node| outcome.phase(node) == 1)
                .map(|&node| toeg.event(node).time)
                .fold(f64::NAN, f64::max);
            if reply >= begin {
                one.response.add(reply - begin);
            }
        }
        if let Some(start) = operation.start {
            let last = operation.events.iter().map(|event| event.time).fold(0.0, f64::max);
            one.first_start = Some(start);
            one.last_start = Some(start);
            one.last_end = Some(start.saturating_add((last * 1e9) as i64));
        }
        total.merge(&one);
    }
}

/// How an entry is requested; `None` where there is no such entry.
fn kind_of(outcome: &Outcome, to: EntryNumber) -> Option<RequestKind> {
    Some(match outcome.entries.get(to as usize)?.interaction {
        Interaction::Asynchronous => RequestKind::Asynchronous,
        Interaction::Forwarding => RequestKind::Forward,
        Interaction::Rendezvous | Interaction::Customer => RequestKind::Synchronous,
    })
}

/// The time from a node to the next of its visit, in which its task was not waiting for another: the next node of the
/// thread is on the same task, and is no join.
fn exclusive(toeg: &Toeg, outcome: &Outcome, node: NodeId) -> Option<f64> {
    let next = toeg.next_in_thread(node);
    if next == NONE || outcome.owner[next as usize] != outcome.owner[node as usize] {
        return None;
    }
    let (event, after) = (toeg.event(node), toeg.event(next));
    if event.task != after.task || matches!(after.kind, Kind::Join(_)) {
        return None;
    }
    let seconds = after.time - event.time;
    (!seconds.is_nan()).then(|| seconds.max(0.0))
}

impl Grouped {
    fn of(toeg: &Toeg, outcome: &Outcome) -> Self {
        let entries = outcome.entries.len();
        let owner = |node: NodeId| {
            let owner = outcome.owner[node as usize];
            (owner < STRAY).then_some(owner as usize)
        };
        let (nodes, node_offsets) = group(entries, toeg.len(), owner);
        let (requests, request_offsets) = group(entries, outcome.requests.len(), |request| {
            let from = outcome.requests[request as usize].from as usize;
            (from < entries).then_some(from)
        });
        Self { nodes, node_offsets, requests, request_offsets }
    }

    fn nodes_of(&self, entry: usize) -> &[NodeId] {
        match (self.node_offsets.get(entry), self.node_offsets.get(entry + 1)) {
            (Some(&from), Some(&to)) => &self.nodes[from as usize..to as usize],
            _ => &[],
        }
    }

    fn requests_of(&self, entry: usize) -> &[u32] {
        &self.requests[self.request_offsets[entry] as usize..self.request_offsets[entry + 1] as usize]
    }
}

/// The numbers below `count` sorted by their group, those of a group in order.
fn group(groups: usize, count: usize, of: impl Fn(u32) -> Option<usize>) -> (Vec<u32>, Vec<u32>) {
    let mut offsets = vec![0u32; groups + 1];
    for number in 0..count as u32 {
        if let Some(group) = of(number) {
            offsets[group + 1] += 1;
        }
    }
    for place in 0..groups {
        offsets[place + 1] += offsets[place];
    }
    let mut next = offsets.clone();
    let mut sorted = vec![0; offsets[groups] as usize];
    for number in 0..count as u32 {
        if let Some(group) = of(number) {
            sorted[next[group] as usize] = number;
            next[group] += 1;
        }
    }
    (sorted, offsets)
}

/// What one invocation did, position by position.
#[derive(Debug, Default)]
struct Scratch {
    visits: Vec<(Position, Option<f64>)>,
    requests: Vec<(Position, RequestKind, EntryIndex)>,
    /// Where a position stands in `visits`, once there are many.
    places: FxHashMap<Position, usize>,
}

impl Scratch {
    fn clear(&mut self) {
        self.visits.clear();
        self.requests.clear();
        self.places.clear();
    }

    fn visit(&mut self, position: Position) -> &mut Option<f64> {
        const FEW: usize = 8;
        let place = if self.visits.len() <= FEW {
            self.visits.iter().position(|(other, _)| *other == position)
        } else {
            if self.places.is_empty() {
                self.places = self.visits.iter().enumerate().map(|(place, (other, _))| (*other, place)).collect();
            }
            self.places.get(&position).copied()
        };
        let place = place.unwrap_or_else(|| {
            if !self.places.is_empty() {
                self.places.insert(position, self.visits.len());
            }
            self.visits.push((position, None));
            self.visits.len() - 1
        });
        &mut self.visits[place].1
    }

    fn add_time(&mut self, position: Position, seconds: f64) {
        *self.visit(position).get_or_insert(0.0) += seconds;
    }
}

/// An operation's parallel branches, put together by entry.
struct Branches {
    /// For each branch the outermost branch that it is in, as an index plus one.
    outermost: Vec<u32>,
    numbers: Vec<u32>,
    offsets: Vec<u32>,
}

impl Branches {
    fn of(toeg: &Toeg, outcome: &Outcome) -> Self {
        let entries = outcome.entries.len();
        let (numbers, offsets) = group(entries, outcome.branches.len(), |branch| {
            let entry = outcome.branches[branch as usize].entry as usize;
            (entry < entries).then_some(entry)
        });
        Self { outermost: outermost_branches(toeg, outcome), numbers, offsets }
    }

    /// Indices of an entry's branches.
    fn of_entry(&self, entry: usize) -> &[u32] {
        &self.numbers[self.offsets[entry] as usize..self.offsets[entry + 1] as usize]
    }
}

/// Stage and branch of each node of an entry that has parallel branches.
type Positions = FxHashMap<NodeId, (u32, Option<Branch>)>;

fn place_of(positions: Option<&Positions>, node: NodeId, phase: u8) -> Position {
    let (stage, branch) = positions.and_then(|positions| positions.get(&node)).copied().unwrap_or((0, None));
    Position { stage, branch, phase }
}

/// Puts the nodes of an entry into segments and blocks. Nodes are taken in the order of their task; a block lasts from a
/// fork of a branch until all open branches are joined. What the visit itself does meanwhile is a branch too.
fn positions(
    toeg: &Toeg,
    outcome: &Outcome,
    nodes: &[NodeId],
    requests: &[u32],
    keys: &[EntryKey],
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
    name_blocks(outcome, requests, keys, &raw)
}

/// For each branch, as index plus one, the outermost branch that it is in.
fn outermost_branches(toeg: &Toeg, outcome: &Outcome) -> Vec<u32> {
    let mut outermost: Vec<u32> = Vec::with_capacity(outcome.branches.len());
    for (place, branch) in outcome.branches.iter().enumerate() {
        let fork = toeg.thread_of(branch.begin).fork;
        let around = if fork == NONE { 0 } else { outcome.branch.get(fork as usize).copied().unwrap_or(0) };
        // A branch is found after the one around it.
        let own = place as u32 + 1;
        outermost.push(if around != 0 && around < own { outermost[around as usize - 1] } else { own });
    }
    outermost
}

/// Gives blocks and branches digests by the requests made in them, so that they merge over invocations.
fn name_blocks(
    outcome: &Outcome,
    requests: &[u32],
    keys: &[EntryKey],
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
            made.entry((stage, branch)).or_default().push((kind, keys[request.to as usize]));
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
