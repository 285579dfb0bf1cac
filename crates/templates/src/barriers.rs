//! Barriers: visits that wait for each other, and what a model can say of it.
//!
//! Layered queueing networks have no wait of one entry for another that did not ask it. What they have is a join, in the entry that
//! asked both. So each visit that waits becomes several entries, one up to the first barrier and one from each to the next, and the entry
//! that asked for the visits asks for these parts: all first ones side by side, and when all have answered, all second ones. That is
//! the same in time. It differs in one thing: the thread of a task that waits is free meanwhile.
//!
//! A meeting is put into the model where each of its visits waits for every other one at each barrier, and one visit asked
//! them all, without waiting for one before it asked the next. The model leaves out any other barrier, and R096 reports it.

use rustc_hash::FxHashMap;

use crate::driver::{Branch, BranchKind, Entry, EntryNumber, Irregularity, Meeting, Outcome, Request, UNOWNED};
use dyelog_lqn::submodel::Interaction;
use dyelog_trace::toeg::NONE;
use dyelog_trace::{Kind, NodeId, Toeg};

/// A barrier of one visit: the waits that directly follow each other.
#[derive(Debug)]
struct Stop {
    first: NodeId,
    last: NodeId,
    /// The visits that are waited for, each with the node at which it announces itself, sorted.
    others: Vec<(EntryNumber, NodeId)>,
}

/// A visit that waits at barriers.
#[derive(Debug, Default)]
struct Visit {
    stops: Vec<Stop>,
    nodes: Vec<NodeId>,
    /// Numbers of the requests that it makes, and of branches that it has.
    requests: Vec<u32>,
    branches: Vec<u32>,
    /// The requests by which it is asked for, and the branch that this one is.
    asked: Vec<u32>,
    asked_by_branch: Option<u32>,
}

/// Takes visits apart at their barriers.
pub(super) fn split(toeg: &Toeg, outcome: &mut Outcome) {
    let mut visits = visits(toeg, outcome);
    let mut entries: Vec<EntryNumber> = visits.keys().copied().collect();
    entries.sort_unstable();
    for entry in entries {
        let Some(visit) = visits.get(&entry) else { continue };
        let mut members: Vec<EntryNumber> =
            visit.stops.iter().flat_map(|stop| &stop.others).map(|other| other.0).collect();
        members.push(entry);
        members.sort_unstable();
        members.dedup();
        let meeting: Vec<(EntryNumber, Visit)> =
            members.into_iter().filter_map(|member| Some((member, visits.remove(&member)?))).collect();
        if meet(toeg, outcome, &meeting) {
            take_apart(toeg, outcome, &meeting);
        } else {
            let stops = meeting.iter().flat_map(|(_, visit)| &visit.stops);
            outcome.irregular.extend(stops.map(|stop| (Irregularity::Barrier, stop.first)));
        }
    }
}

/// The visits that wait at barriers.
fn visits(toeg: &Toeg, outcome: &mut Outcome) -> FxHashMap<EntryNumber, Visit> {
    let mut nodes = outcome.barriers.clone();
    nodes.sort_unstable();
    nodes.dedup();
    let mut visits: FxHashMap<EntryNumber, Visit> = FxHashMap::default();
    for node in nodes {
        let owner = outcome.owner[node as usize];
        let arrival = match toeg.event(node).kind {
            Kind::Join(thread) => toeg.thread(thread).map_or(NONE, |thread| thread.fork),
            _ => NONE,
        };
        if owner >= UNOWNED || arrival == NONE {
            outcome.irregular.push((Irregularity::Barrier, node));
            continue;
        }
        let stops = &mut visits.entry(owner).or_default().stops;
        let other = (outcome.owner[arrival as usize], arrival);
        match stops.last_mut() {
            Some(stop) if toeg.next_in_thread(stop.last) == node => {
                stop.last = node;
                stop.others.push(other);
            }
            _ => stops.push(Stop { first: node, last: node, others: vec![other] }),
        }
    }
    for visit in visits.values_mut() {
        visit.stops.sort_by_key(|stop| toeg.event(stop.first).counter);
        visit.stops.iter_mut().for_each(|stop| stop.others.sort_unstable());
    }
    for (node, owner) in (0..).zip(&outcome.owner) {
        if let Some(visit) = visits.get_mut(owner) {
            visit.nodes.push(node);
        }
    }
    for (number, request) in (0..).zip(&outcome.requests) {
        if let Some(visit) = visits.get_mut(&request.from) {
            visit.requests.push(number);
        }
        if let Some(visit) = visits.get_mut(&request.to) {
            visit.asked.push(number);
        }
    }
    for (number, branch) in (0..).zip(&outcome.branches) {
        if let Some(visit) = visits.get_mut(&branch.entry) {
            visit.branches.push(number);
        }
        if let BranchKind::Request(request) = branch.kind
            && let Some(visit) = visits.get_mut(&outcome.requests[request as usize].to)
        {
            visit.asked_by_branch = Some(number);
        }
    }
    visits
}

/// Whether visits wait for each other as a model can say it.
fn meet(toeg: &Toeg, outcome: &Outcome, meeting: &[(EntryNumber, Visit)]) -> bool {
    let counter = |node: NodeId| toeg.event(node).counter;
    let branch = |node: NodeId| outcome.branch.get(node as usize).copied().unwrap_or(0);
    let Some((_, first)) = meeting.first() else { return false };
    let by_number: FxHashMap<EntryNumber, &Visit> = meeting.iter().map(|(entry, visit)| (*entry, visit)).collect();
    let Some(asked) = first.asked.first().map(|request| outcome.requests[*request as usize]) else { return false };
    let sound = |(entry, visit): &(EntryNumber, Visit)| {
        let [request] = visit.asked[..] else { return false };
        let request = outcome.requests[request as usize];
        let asynchronous = outcome.entries[*entry as usize].interaction == Interaction::Asynchronous;
        request.from == asked.from
            && request.from < UNOWNED
            && outcome.owner.get(request.at as usize) == Some(&asked.from)
            && branch(request.at) == branch(asked.at)
            && (asynchronous || visit.asked_by_branch.is_some())
    };
    let waits = |entry: EntryNumber, number: usize, stop: &Stop| {
        let announced = |(other, arrival): &(EntryNumber, NodeId)| {
            let Some(visit) = by_number.get(other) else { return false };
            let (own, before) =
                (visit.stops.get(number), number.checked_sub(1).and_then(|before| visit.stops.get(before)));
            own.is_some_and(|own| counter(*arrival) < counter(own.first))
                && before.is_none_or(|before| counter(*arrival) > counter(before.last))
        };
        let others = meeting.iter().map(|member| member.0).filter(|member| *member != entry);
        stop.others.iter().map(|other| other.0).eq(others)
            && stop.others.iter().all(announced)
            && branch(stop.first) == 0
            && outcome.phase(stop.first) == 1
            && toeg.next_in_thread(stop.last) != NONE
    };
    let whole = |visit: &Visit| {
        visit.branches.iter().all(|number| {
            let Branch { fork, join, .. } = outcome.branches[*number as usize];
            let after = part_of(toeg, visit, fork);
            after == part_of(toeg, visit, join) && (join != NONE || after == visit.stops.len())
        })
    };
    meeting.len() > 1
        && meeting.iter().all(sound)
        && meeting.iter().all(|(entry, visit)| {
            visit.stops.len() == first.stops.len()
                && (0..).zip(&visit.stops).all(|(number, stop)| waits(*entry, number, stop))
                && whole(visit)
        })
}

/// After how many barriers of its visit a node comes. Without a node, after all.
fn part_of(toeg: &Toeg, visit: &Visit, node: NodeId) -> usize {
    if node == NONE {
        return visit.stops.len();
    }
    let counter = toeg.event(node).counter;
    visit.stops.partition_point(|stop| toeg.event(stop.last).counter < counter)
}

/// Makes an entry of each part of the visits, and one branch of the entry that asked for them of all.
fn take_apart(toeg: &Toeg, outcome: &mut Outcome, meeting: &[(EntryNumber, Visit)]) {
    let mut stages: Vec<Vec<u32>> = Vec::new();
    let (mut forks, mut joins, mut awaited) = (Vec::new(), Vec::new(), Vec::new());
    let mut from = UNOWNED;
    for (entry, visit) in meeting {
        let asked = visit.asked[0];
        let request = outcome.requests[asked as usize];
        from = request.from;
        let mut parts = vec![*entry];
        let mut requests = vec![asked];
        let whole = Entry { interaction: Interaction::Rendezvous, ..outcome.entries[*entry as usize] };
        outcome.entries[*entry as usize] = whole;
        for (number, stop) in (1..).zip(&visit.stops) {
            let next = toeg.next_in_thread(stop.last);
            let named = [stop.first, next].into_iter().map(|node| toeg.event(node).service).find(|name| name.is_some());
            parts.push(outcome.entries.len() as EntryNumber);
            outcome.entries.push(Entry { accepted_at: next, service: named.unwrap_or(whole.service), ..whole });
            outcome.parts.push((*entry, number));
            requests.push(outcome.requests.len() as u32);
            outcome.requests.push(Request { to: parts[number as usize], ..request });
        }
        for &node in &visit.nodes {
            outcome.owner[node as usize] = parts[part_of(toeg, visit, node)];
        }
        for &number in &visit.requests {
            let request = &mut outcome.requests[number as usize];
            if request.at != NONE {
                request.from = parts[part_of(toeg, visit, request.at)];
            }
        }
        for &number in &visit.branches {
            let branch = &mut outcome.branches[number as usize];
            branch.entry = parts[part_of(toeg, visit, branch.fork)];
        }
        forks.push(request.at);
        let branch = visit.asked_by_branch.map(|number| &mut outcome.branches[number as usize]);
        let join = branch.map_or(NONE, |branch| {
            branch.kind = BranchKind::Met;
            branch.join
        });
        joins.extend((join != NONE).then_some(join));
        awaited.push(join != NONE);
        stages.resize_with(requests.len(), Vec::new);
        stages.iter_mut().zip(requests).for_each(|(stage, request)| stage.push(request));
    }
    forks.sort_unstable_by_key(|fork| toeg.event(*fork).counter);
    joins.sort_unstable_by_key(|join| toeg.event(*join).counter);
    let (fork, join) = (forks[0], joins.last().copied().unwrap_or(NONE));
    let kind = BranchKind::Meeting(outcome.meetings.len() as u32);
    outcome.branches.push(Branch { entry: from, fork, join, kind });
    outcome.meetings.push(Meeting { forks, joins, awaited, stages });
}
