//! From the outcome of one operation to the mergeable sub-model (1998 paper §3, §6).
//!
//! Every entry of the operation is given a key, by which it merges with entries of other operations and of its own: by
//! task, type and service name, else by structure bottom-up, or by its path from the customer, which keeps all apart.
//! Counts and sums are kept in flat tables and move into the sub-model at the end.

mod branches;
mod entries;
mod groups;
mod outcomes;
mod rows;
mod tables;
mod timing;
mod witnesses;

use rustc_hash::FxHashMap;

use crate::detached::{FIRST, answered_at};
use crate::driver::{ACTIVITY, DELAYED, EntryNumber, Outcome, Request, THEN_NEXT_PHASE, UNOWNED, WAITED};
pub use crate::summary::branches::Places;
use crate::summary::branches::{Branches, positions};
pub(crate) use crate::summary::branches::{Invocation, are_strands};
use crate::summary::entries::Entries;
use crate::summary::groups::Groups;
use crate::summary::tables::{Place, Tables};
pub(crate) use crate::summary::timing::is_measured;
use crate::summary::timing::{Own, Timing, Visit, answered, own_work, stretches};
use crate::summary::witnesses::Cuts;
use dyelog_lqn::stays::{Stay, Stays, UNDATED};
pub use dyelog_lqn::submodel::EntryMerge;
use dyelog_lqn::submodel::{
    Branch, EntryIndex, EntryKey, EntryTotal, Interaction, Position, RequestKind, ScenarioTotal, SubModel, common_step,
};
use dyelog_trace::toeg::NONE;
use dyelog_trace::{Extent, Kind, NodeId, Operation, Origins, Toeg, TraceNames, VisitEvidence};

/// Folds operations of one reader into a sub-model.
#[derive(Debug, Default)]
pub struct Summary {
    /// What is known of entries and scenarios, but for work.
    submodel: SubModel,
    entries: Entries,
    tables: Tables,
    cuts: Cuts,
    scratch: Scratch,
}

/// What is put together for one operation, in memory that the next one uses again.
#[derive(Debug, Default)]
struct Scratch {
    /// Nodes and requests by entry.
    nodes: Groups,
    requests: Groups,
    branches: Branches,
    /// The sub-model's entry for each of the operation.
    found: Vec<EntryIndex>,
    visits: Visits,
    made: Vec<(Place, RequestKind, EntryIndex)>,
    timing: Timing,
}

impl Summary {
    /// Nothing folded yet.
    pub fn new(merge: EntryMerge) -> Self {
        Self::with(merge, false)
    }

    /// The same; where it is said so, [apart](EntryKey::apart) from what services recorded what they did not.
    pub fn with(merge: EntryMerge, is_silent_apart: bool) -> Self {
        Self { entries: Entries::new(merge, is_silent_apart), ..Self::default() }
    }

    /// The sub-model.
    pub fn into_submodel(mut self) -> SubModel {
        self.tables.empty_into(&mut self.submodel);
        self.submodel
    }

    /// Counts an operation that cannot be used.
    pub fn set_aside(&mut self) {
        self.submodel.set_aside += 1;
    }

    /// Takes in one operation.
    pub fn add(&mut self, toeg: &Toeg, names: &TraceNames, outcome: &Outcome) {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.group(toeg, outcome);
        let Scratch { requests, found, .. } = &mut scratch;
        self.entries.find(&mut self.submodel, toeg, names, outcome, requests, found);
        let timed = toeg.operation().events.iter().any(|event| !event.time.is_nan());
        self.cuts.next_operation(toeg.operation());
        // Once an operation: it is looked for in all events.
        let step = if is_measured(toeg) { step(toeg) } else { 1 };
        scratch.timing.tells_apart(step);
        for number in 0..outcome.entries.len() {
            self.add_entry(toeg, names, outcome, number, timed, &mut scratch);
        }
        self.add_scenario(toeg, names, outcome, scratch.nodes.of(FIRST as usize), timed, step);
        self.scratch = scratch;
    }

    /// The keys of an operation's entries, in their order; counts nothing.
    pub fn keys(&mut self, toeg: &Toeg, names: &TraceNames, outcome: &Outcome) -> Vec<EntryKey> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.group(toeg, outcome);
        let Scratch { requests, found, .. } = &mut scratch;
        self.entries.find(&mut self.submodel, toeg, names, outcome, requests, found);
        let keys = found.iter().map(|index| self.submodel.entry(*index).key).collect();
        self.scratch = scratch;
        keys
    }

    /// Where the nodes and requests of an entry with parallel branches are, in the operation whose keys were given last.
    pub fn places(&self, toeg: &Toeg, outcome: &Outcome, keys: &[EntryKey], entry: EntryNumber) -> Places {
        let Scratch { nodes, requests, branches, .. } = &self.scratch;
        let number = entry as usize;
        let (nodes, requests, branches) = (nodes.of(number), requests.of(number), branches.of_entry(number));
        let invocation = Invocation { toeg, outcome, entry, nodes, requests, branches };
        if branches.is_empty() || is_measured(toeg) && !are_strands(invocation) {
            return Places::default();
        }
        let key = |other: EntryNumber| keys[other as usize];
        positions(invocation, &key).places
    }

    fn add_entry(
        &mut self,
        toeg: &Toeg,
        names: &TraceNames,
        outcome: &Outcome,
        number: usize,
        timed: bool,
        scratch: &mut Scratch,
    ) {
        let Scratch { nodes, requests, branches, found, visits, made, timing } = scratch;
        let (nodes, requests, index) = (nodes.of(number), requests.of(number), found[number]);
        self.tables.invocation(index);
        let accepted_at = outcome.entries[number].accepted_at;
        self.cuts.add_witness(&mut self.submodel, index, toeg, names, accepted_at);
        self.add_outcome(toeg, outcome, accepted_at, requests, found, index);
        let site = self.add_replica(toeg, names, accepted_at, index);
        let evidence = outcomes::evidence(toeg, names, accepted_at);
        let is_inferred = evidence == VisitEvidence::Inferred;
        let entry = self.submodel.entry_mut(index);
        entry.inferred += u64::from(is_inferred);
        entry.inferred_requests += if is_inferred { requests.len() as u64 } else { 0 };
        entry.silent += u64::from(evidence == VisitEvidence::Silent);
        entry.may_wait += u64::from(outcomes::may_wait(toeg, accepted_at));
        let branches = branches.of_entry(number);
        let invocation = Invocation { toeg, outcome, entry: number as u32, nodes, requests, branches };
        let strands = !branches.is_empty() && (!is_measured(toeg) || are_strands(invocation));
        let measured = is_measured(toeg) && !strands;
        let positions = strands.then(|| {
            let key = |other: EntryNumber| self.entries.key_of(&self.submodel, found[other as usize]);
            positions(invocation, &key)
        });
        for (key, block) in positions.iter().flat_map(|positions| &positions.blocks) {
            self.submodel.entry_mut(index).blocks.entry(*key).or_default().merge(block);
        }
        if positions.as_ref().is_some_and(|positions| positions.moved) {
            self.submodel.entry_mut(index).moved_waits += 1;
        }
        let positions = positions.as_ref().map(|positions| &positions.places);
        visits.clear();
        for &node in nodes {
            let event = toeg.event(node);
            let phase = outcome.phase(node);
            let flags = outcome.flags[node as usize];
            if flags & ACTIVITY != 0 || !event.cpu.is_nan() {
                let place = place_of(&mut self.tables, positions, node, phase);
                let name = self.entries.name(&mut self.submodel, &names.names, event.activity);
                let cpu = (!event.cpu.is_nan()).then_some(event.cpu);
                self.tables.activity(index, place, name, u32::from(flags & ACTIVITY != 0), cpu);
                visits.at(place);
            }
            if timed
                && !measured
                && !is_inferred
                && let Some(seconds) = exclusive(toeg, outcome, node)
            {
                let phase = if flags & THEN_NEXT_PHASE != 0 { (phase + 1).min(3) } else { phase };
                let place = place_of(&mut self.tables, positions, node, phase);
                visits.at(place).works(seconds);
            }
            if flags & DELAYED != 0 && delay(toeg, outcome, node).is_none() {
                self.submodel.entry_mut(index).untimed_delays += 1;
            }
            for seconds in pauses(toeg, outcome, node) {
                visits.at(place_of(&mut self.tables, positions, node, phase)).pauses(seconds);
            }
            if timed && let Some(seconds) = on_the_way(toeg, outcome, node) {
                let place = place_of(&mut self.tables, positions, node, phase);
                self.tables.network(index, place, seconds);
            }
        }
        if timed && measured {
            let own = own_work(toeg, outcome, nodes);
            for &Own { phase, seconds, .. } in &own {
                let visit = visits.at(Place::of_phase(phase));
                // What of its time was a wait whose span was lost looks like work.
                if !is_inferred {
                    visit.works(seconds);
                }
            }
            let keys = |other: EntryNumber| (found[other as usize], self.submodel.entry(found[other as usize]).key);
            let visit = Visit { toeg, outcome, entry: number as EntryNumber, nodes, requests, own: &own };
            timing.look(visit, &keys);
            timing.add_to(self.submodel.entry_mut(index));
            if let Some(begin) = toeg.operation().start {
                let asynchronous = outcome.entries[number].interaction == Interaction::Asynchronous;
                let entry = self.submodel.entry_mut(index);
                if let Some(messages) = outcomes::batch(toeg, accepted_at) {
                    entry.batches.add(messages, own.iter().map(|own| own.seconds).sum());
                }
                // Only the client of a call tells when its server worked.
                let is_dated = evidence != VisitEvidence::Copied && !(is_inferred && asynchronous);
                entry.undated += u64::from(!is_dated);
                add_stays(&mut entry.stays, begin, &own, site, is_dated);
                if is_dated {
                    // Of a peer that records no spans only its callers are known.
                    let of_client = if site == 0 { outcomes::client_site(toeg, names, accepted_at) } else { site };
                    add_visit(entry, invocation, begin, of_client);
                }
            }
        } else if timed && is_measured(toeg) {
            timing.look_at_response(toeg, outcome, number as EntryNumber, nodes);
            timing.add_to(self.submodel.entry_mut(index));
        }
        made.clear();
        for &number in requests {
            let request = &outcome.requests[number as usize];
            let Some(kind) = kind_of(outcome, request.to) else { continue };
            let phase = request_phase(outcome, request);
            let at = positions.and_then(|positions| positions.of_request(number, request.at));
            let place = place_at(&mut self.tables, at, phase);
            visits.at(place);
            made.push((place, kind, found[request.to as usize]));
        }
        for visited in &visits.list {
            self.tables.visit(index, visited.place, visited.exclusive);
            if let Some(seconds) = visited.paused {
                self.tables.delay(index, visited.place, seconds);
            }
        }
        made.sort_unstable();
        for same in made.chunk_by(|left, right| left == right) {
            let (place, kind, to) = same[0];
            self.tables.request(index, place, kind, to, same.len() as u32);
        }
    }

    fn add_scenario(
        &mut self,
        toeg: &Toeg,
        names: &TraceNames,
        outcome: &Outcome,
        first: &[NodeId],
        timed: bool,
        step: u64,
    ) {
        let operation = toeg.operation();
        let scenario = self.entries.name(&mut self.submodel, &names.names, operation.scenario);
        let fragments = u64::from(operation.extent != Extent::Whole);
        let headless = u64::from(operation.extent == Extent::Headless);
        let failures = u64::from(outcomes::failed(toeg, toeg.root()));
        let mut one = ScenarioTotal { operations: 1, fragments, headless, failures, ..Default::default() };
        one.pieces = u64::from(operation.extent == Extent::Piece);
        one.apart = u64::from(operation.extent == Extent::Apart);
        one.unlinked = one.apart + u64::from(operation.extent == Extent::Unlinked);
        if let Origins::Items(spans) = &operation.origins {
            one.mended = spans.iter().map(|span| u64::from(span.lost_beside)).sum();
        }
        // The identifier of a trace is that of its first operation, or of the first of what is left of it.
        let is_first = matches!(operation.extent, Extent::Whole | Extent::Headless | Extent::Unlinked | Extent::Apart);
        let tells = is_first && is_measured(toeg);
        let id = u128::from_str_radix(&operation.run, 16).ok().filter(|_| tells);
        match operation.weight {
            Some(Operation::CHOSEN) => one.chosen = 1,
            Some(weight) if weight >= 0.0 => {
                one.sampled.add(weight);
                if let Some(id) = id.filter(|_| !operation.weight_given) {
                    one.told_ids.add(id);
                }
            }
            unknown => {
                one.truncated = u64::from(unknown == Some(Operation::TRUNCATED));
                if let Some(limit) = unknown.and_then(Operation::limit_of) {
                    (one.unweighed, one.limit) = (1, (limit * 1000.0).round() as u64);
                }
                if let Some(id) = id {
                    one.ids.add(id);
                }
            }
        }
        one.grain = step;
        let (mut response, mut stay) = (None, None);
        if timed {
            let begin = toeg.event(toeg.root()).time;
            // The customer waits for the first entry's first phase.
            let reply = answered_at(toeg, outcome, FIRST, first);
            if reply >= begin {
                one.response.add(reply - begin);
                response = Some(reply - begin);
                stay = operation
                    .start
                    .filter(|_| operation.extent == Extent::Whole)
                    .map(|start| stay_of(start, begin, reply));
            }
        }
        if let Some(start) = operation.start {
            let last = operation.events.iter().map(|event| event.time).fold(0.0, f64::max);
            one.first_start = Some(start);
            one.last_start = Some(start);
            one.last_end = Some(start.saturating_add((last * 1e9) as i64));
        }
        let total = self.submodel.scenarios.entry(scenario).or_default();
        total.merge(&one);
        // In place: one value alone need not be put into cells first.
        if let Some(response) = response {
            total.responses.add(response);
        }
        if let Some(start) = operation.start {
            total.starts.add(start, response);
        }
        if let Some(stay) = stay {
            total.stays.add(stay);
        }
    }
}

impl Scratch {
    /// Puts nodes, requests and branches together by entry.
    fn group(&mut self, toeg: &Toeg, outcome: &Outcome) {
        let entries = outcome.entries.len();
        self.nodes.fill(entries, toeg.len(), |node| {
            let owner = outcome.owner[node as usize];
            (owner < UNOWNED).then_some(owner as usize)
        });
        self.requests.fill(entries, outcome.requests.len(), |request| {
            let from = outcome.requests[request as usize].from as usize;
            (from < entries).then_some(from)
        });
        self.branches.fill(outcome);
    }
}

/// The step of which all times of an operation are multiples, nanoseconds; 0 where all are its begin.
fn step(toeg: &Toeg) -> u64 {
    let mut step = 0;
    for event in &toeg.operation().events {
        step = common_step(step, (event.time * 1e9).round() as u64);
        if step == 1 {
            break;
        }
    }
    step
}

/// From one time of an operation to another, in an operation that begins at that nanosecond.
fn stay_of(operation: i64, from: f64, to: f64) -> Stay {
    let nanoseconds = |seconds: f64| (seconds * 1e9).round() as i64;
    let length = nanoseconds(to - from).unsigned_abs();
    Stay { start: operation.saturating_add(nanoseconds(from)), length, part: 0, site: 0 }
}

/// Keeps when an invocation did its own work, in an operation that begins at that nanosecond.
fn add_stays(stays: &mut Stays, begin: i64, own: &[Own], site: u32, is_dated: bool) {
    for (part, (start, end)) in (0..).zip(stretches(own)) {
        let stay = Stay { part: if is_dated { part } else { UNDATED }, site, ..stay_of(begin, start, end) };
        if stay.length > 0 {
            stays.add(stay);
        }
    }
}

/// Keeps when the call of an invocation was on its way, and when the invocation was under way, in an operation that begins at that nanosecond.
fn add_visit(total: &mut EntryTotal, invocation: Invocation<'_>, begin: i64, site: u32) {
    let Invocation { toeg, outcome, entry, nodes, .. } = invocation;
    let accepted_at = outcome.entries[entry as usize].accepted_at;
    if accepted_at == NONE {
        return;
    }
    let accepted = toeg.event(accepted_at).time;
    let sent = timing::cause(toeg, accepted_at).map(|sent| toeg.event(sent).time);
    if let Some(sent) = sent.filter(|sent| *sent <= accepted) {
        total.way.add(accepted - sent);
        total.visits.add(Stay { site, ..stay_of(begin, sent, accepted) });
    }
    let end = nodes.iter().map(|node| toeg.event(*node).time).fold(accepted, f64::max);
    total.visits.add(Stay { part: 1, site, ..stay_of(begin, accepted, end) });
}

/// How an entry is requested; `None` where there is no such entry.
pub(super) fn kind_of(outcome: &Outcome, to: EntryNumber) -> Option<RequestKind> {
    Some(match outcome.entries.get(to as usize)?.interaction {
        Interaction::Asynchronous => RequestKind::Asynchronous,
        Interaction::Forwarding => RequestKind::Forward,
        Interaction::Rendezvous | Interaction::Customer => RequestKind::Synchronous,
    })
}

/// The phase of the requester in which a request is made.
pub(super) fn request_phase(outcome: &Outcome, request: &Request) -> u8 {
    if request.at == NONE { 1 } else { outcome.phase(request.at) }
}

/// Where work of a phase is done at a node; [`NONE`] is in no branch.
#[inline]
fn place_of(tables: &mut Tables, positions: Option<&Places>, node: NodeId, phase: u8) -> Place {
    place_at(tables, positions.and_then(|positions| positions.of(node)), phase)
}

#[inline]
fn place_at(tables: &mut Tables, at: Option<(u32, Option<Branch>)>, phase: u8) -> Place {
    match at {
        Some((stage, branch)) => tables.place(Position { stage, branch, phase }),
        None => Place::of_phase(phase),
    }
}

/// The time from a node to the next of its visit, in which its task was not waiting for another: the next node of the
/// thread is on the same task, and is no join. What it pauses there by its own account is no part of it.
pub(super) fn exclusive(toeg: &Toeg, outcome: &Outcome, node: NodeId) -> Option<f64> {
    let next = toeg.next_in_thread(node);
    if next == NONE || outcome.owner[next as usize] != outcome.owner[node as usize] {
        return None;
    }
    let (event, after) = (toeg.event(node), toeg.event(next));
    let waited = matches!(after.kind, Kind::Join(_)) || outcome.flags[next as usize] & (WAITED | DELAYED) != 0;
    if event.task != after.task || waited {
        return None;
    }
    let paused = if event.pause > 0.0 { event.pause } else { 0.0 };
    let seconds = after.time - event.time - paused;
    (!seconds.is_nan()).then(|| seconds.max(0.0))
}

/// The time up to a node of which a template says that it passes without work: since the node before in its thread, or else in its task,
/// that is of the same visit. What that node works and pauses by its own account is no part of it.
fn delay(toeg: &Toeg, outcome: &Outcome, node: NodeId) -> Option<f64> {
    let owner = |node: NodeId| outcome.owner.get(node as usize).copied();
    let before = [toeg.previous_in_thread(node), toeg.previous_in_task(node)];
    let before = before.into_iter().find(|before| *before != NONE && owner(*before) == owner(node))?;
    let before = toeg.event(before);
    let counted = [before.cpu, before.pause].into_iter().filter(|seconds| *seconds > 0.0).sum::<f64>();
    let seconds = toeg.event(node).time - before.time - counted;
    (!seconds.is_nan()).then(|| seconds.max(0.0))
}

/// The times of a node in which its visit does not work: the delay that a template states up to it, where times tell how long that is, and
/// what it pauses by its own account.
pub(super) fn pauses(toeg: &Toeg, outcome: &Outcome, node: NodeId) -> impl Iterator<Item = f64> {
    let stated = outcome.flags[node as usize] & DELAYED != 0;
    let stated = if stated { delay(toeg, outcome, node) } else { None };
    let own = toeg.event(node).pause;
    stated.into_iter().chain((own > 0.0).then_some(own))
}

/// Network latency of a synchronous call, both ways, at the node at which its caller goes on: from there to the node
/// that accepted it, from one to the next where it was forwarded, and from the last one's reply to this node. `None` for
/// any other node, and for a call of which one half was recorded: the other was made up, at the same times.
///
/// Only spans tell. Tasks of other traces serve one request at a time; what comes before they accept one is their queue, and
/// that is for the solver to find.
pub(super) fn on_the_way(toeg: &Toeg, outcome: &Outcome, node: NodeId) -> Option<f64> {
    if !is_measured(toeg) {
        return None;
    }
    answered(toeg, outcome, node).map(|answer| answer.on_the_way).filter(|seconds| *seconds > 0.0)
}

/// The own work of an entry's invocation seen in spans, by node, with its phase and seconds; `None` for other traces, and for strands
/// that were measured one by one, where [`exclusive`] tells it of each node.
pub(super) fn own_pieces(
    toeg: &Toeg,
    outcome: &Outcome,
    entry: EntryNumber,
    nodes: &[NodeId],
) -> Option<Vec<(NodeId, u8, f64)>> {
    let branches: Vec<u32> =
        (0..).zip(&outcome.branches).filter(|(_, branch)| branch.entry == entry).map(|(number, _)| number).collect();
    let invocation = Invocation { toeg, outcome, entry, nodes, requests: &[], branches: &branches };
    (is_measured(toeg) && !are_strands(invocation)).then(|| {
        own_work(toeg, outcome, nodes)
            .into_iter()
            .map(|Own { node, phase, seconds, .. }| (node, phase, seconds))
            .collect()
    })
}

/// The positions at which one invocation worked, and how long where that is known.
#[derive(Debug, Default)]
struct Visits {
    list: Vec<Visited>,
    /// Where a position stands in the list, once there are many.
    places: FxHashMap<Place, usize>,
}

/// What one invocation did at a position.
#[derive(Debug)]
struct Visited {
    place: Place,
    /// For how long it worked, where that is known, seconds.
    exclusive: Option<f64>,
    /// For how long it paused, if it did, seconds.
    paused: Option<f64>,
}

impl Visited {
    fn works(&mut self, seconds: f64) {
        *self.exclusive.get_or_insert(0.0) += seconds;
    }

    fn pauses(&mut self, seconds: f64) {
        *self.paused.get_or_insert(0.0) += seconds;
    }
}

impl Visits {
    fn clear(&mut self) {
        self.list.clear();
        self.places.clear();
    }

    fn at(&mut self, position: Place) -> &mut Visited {
        const FEW: usize = 8;
        let place = if self.list.len() <= FEW {
            self.list.iter().position(|visited| visited.place == position)
        } else {
            if self.places.is_empty() {
                self.places = self.list.iter().enumerate().map(|(number, visited)| (visited.place, number)).collect();
            }
            self.places.get(&position).copied()
        };
        let place = place.unwrap_or_else(|| {
            if !self.places.is_empty() {
                self.places.insert(position, self.list.len());
            }
            self.list.push(Visited { place: position, exclusive: None, paused: None });
            self.list.len() - 1
        });
        &mut self.list[place]
    }
}
