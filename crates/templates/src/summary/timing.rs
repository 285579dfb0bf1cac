//! When an invocation seen in spans works and makes its calls.
//!
//! Spans are measured intervals: what the invocation works itself is their union, not their sum, and which of its calls run side by side
//! is decided over all invocations, by what is summed up here ([`dyelog_lqn::timing`]).

use crate::detached::answered_at;
use crate::driver::{EntryNumber, Outcome, THEN_NEXT_PHASE};
use crate::summary::{exclusive, kind_of, request_phase};
use dyelog_lqn::submodel::{
    EntryIndex, EntryKey, EntryTotal, Interaction, Moments, RequestKind, RequestTotal, Seconds,
};
use dyelog_lqn::timing::{CallLabel, CallTotal, PairTotal};
use dyelog_trace::toeg::NONE;
use dyelog_trace::{Kind, NodeId, Origins, Toeg};

/// Labels that one invocation is told apart in at most; beyond, all its calls to one entry have one label, and pairs are counted of
/// the first so many labels, so that an invocation costs no more than so many steps a call.
const MOST_LABELS: usize = 32;

/// How many phases an invocation has at most.
const PHASES: usize = 3;

/// Where what belongs to a phase stands, from 0.
fn place_of(phase: u8) -> usize {
    usize::from(phase.clamp(1, PHASES as u8)) - 1
}

/// Whether an operation's times are intervals that services measured, which may overlap.
pub(crate) fn is_measured(toeg: &Toeg) -> bool {
    matches!(toeg.operation().origins, Origins::Items(_))
}

/// A period of an invocation's own work, at a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    pub(super) node: NodeId,
    pub(super) phase: u8,
    start: f64,
    end: f64,
    /// How much of it no earlier period covers.
    pub(super) seconds: f64,
}

/// The own work of an invocation, by its nodes. Of periods of a phase that overlap the later one counts with what is left of it; periods
/// overlap only where the operation has branches.
pub(super) fn own_work(toeg: &Toeg, outcome: &Outcome, nodes: &[NodeId]) -> Vec<Own> {
    // From one fork of the invocation's own to the next, the branches run that it has forked.
    let forks = |node: NodeId| match toeg.event(node).kind {
        Kind::Fork(thread) => toeg
            .thread(thread)
            .is_some_and(|forked| outcome.owner[forked.first as usize] == outcome.owner[node as usize]),
        _ => false,
    };
    let mut all: Vec<Own> = nodes
        .iter()
        .filter(|node| outcome.branches.is_empty() || !forks(**node))
        .filter_map(|&node| {
            let seconds = exclusive(toeg, outcome, node)?;
            let phase = outcome.phase(node);
            let later = outcome.flags[node as usize] & THEN_NEXT_PHASE != 0;
            let phase = if later { (phase + 1).min(3) } else { phase };
            let (start, end) = (toeg.event(node).time, toeg.event(toeg.next_in_thread(node)).time);
            // It pauses first.
            let start = (start + toeg.event(node).pause.max(0.0)).min(end);
            Some(Own { node, phase, start, end, seconds })
        })
        .collect();
    if outcome.branches.is_empty() {
        return all;
    }
    all.sort_by(|left, right| left.start.total_cmp(&right.start).then(left.node.cmp(&right.node)));
    let mut reaches = [f64::NEG_INFINITY; PHASES];
    for own in &mut all {
        let reach = &mut reaches[place_of(own.phase)];
        if own.start < *reach {
            (own.start, own.seconds) = (reach.min(own.end), (own.end - *reach).max(0.0));
        }
        *reach = reach.max(own.end);
    }
    all
}

/// The stretches of an invocation's own work that are apart, as begin and end in seconds, in the order of time.
pub(super) fn stretches(own: &[Own]) -> Vec<(f64, f64)> {
    let mut stretches: Vec<(f64, f64)> =
        own.iter().map(|own| (own.start, own.end)).filter(|(start, end)| start < end).collect();
    union(&mut stretches);
    stretches
}

/// An answer to a call, at the node at which its caller goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// The node of the caller before the call.
    pub(super) sent: NodeId,
    /// The visit that it went to first.
    pub(super) called: EntryNumber,
    /// Its network latency: to the one that accepted it, from one to the next where it was forwarded, and back.
    pub(super) on_the_way: f64,
}

/// The node that comes before another one: in its thread, or where that was forked.
pub(super) fn cause(toeg: &Toeg, node: NodeId) -> Option<NodeId> {
    let before = match toeg.previous_in_thread(node) {
        NONE => toeg.thread_of(node).fork,
        previous => previous,
    };
    (before != NONE).then_some(before)
}

/// The answer that a node is the first after; `None` for any other node.
pub(super) fn answered(toeg: &Toeg, outcome: &Outcome, node: NodeId) -> Option<Answer> {
    let owner = outcome.owner[node as usize];
    // What comes before an entry's first node is its caller.
    if outcome.entries.get(owner as usize).is_none_or(|own| own.accepted_at == node) {
        return None;
    }
    let cause = |node: NodeId| cause(toeg, node).unwrap_or(NONE);
    let between = |from: NodeId, to: NodeId| toeg.event(to).time - toeg.event(from).time;
    let reply = cause(node);
    if reply == NONE || outcome.owner[reply as usize] == owner {
        return None;
    }
    let mut on_the_way = between(reply, node);
    let mut visit = outcome.owner[reply as usize];
    loop {
        let called = outcome.entries.get(visit as usize).filter(|called| called.accepted_at != NONE)?;
        let sent = cause(called.accepted_at);
        if sent == NONE {
            return None;
        }
        on_the_way += between(sent, called.accepted_at);
        let answerer = visit;
        visit = outcome.owner[sent as usize];
        match called.interaction {
            // Each hop lies before the one that it leads to.
            Interaction::Forwarding => {}
            Interaction::Rendezvous => {
                return (visit == owner).then_some(Answer { sent, called: answerer, on_the_way });
            }
            Interaction::Asynchronous | Interaction::Customer => return None,
        }
    }
}

/// A call of the invocation at hand, or a period of its own work beside calls.
#[derive(Clone, Copy, Debug)]
struct Out {
    phase: u8,
    kind: RequestKind,
    key: Option<EntryKey>,
    to: Option<EntryIndex>,
    start: f64,
    end: f64,
    share: f64,
    lead: f64,
    network: f64,
}

/// Calls of one label in the invocation at hand.
#[derive(Clone, Copy, Debug)]
struct Group {
    label: CallLabel,
    start: f64,
    end: f64,
    calls: u64,
    seconds: f64,
    share: f64,
    lead: f64,
    network: f64,
}

/// Takes in the times of invocations, in memory that is used again.
#[derive(Debug, Default)]
pub(super) struct Timing {
    outs: Vec<Out>,
    groups: Vec<Group>,
    /// By phase, when calls are out.
    waits: [Vec<(f64, f64)>; PHASES],
    /// Phase, time, whether the call of that number begins.
    edges: Vec<(u8, f64, bool, u32)>,
    begin: f64,
    reply: f64,
    grain: f64,
}

/// The invocation of an entry.
#[derive(Clone, Copy)]
pub(super) struct Visit<'a> {
    pub(super) toeg: &'a Toeg,
    pub(super) outcome: &'a Outcome,
    pub(super) entry: EntryNumber,
    pub(super) nodes: &'a [NodeId],
    pub(super) requests: &'a [u32],
    pub(super) own: &'a [Own],
}

impl Timing {
    /// Begins an operation whose times are multiples of a step, nanoseconds. By so much they may be off their order, where it is a microsecond or
    /// less. Clocks that count milliseconds or more cut times off, which leaves their order.
    pub(super) fn tells_apart(&mut self, step: u64) {
        self.grain = match (step.is_multiple_of(1_000_000), step.is_multiple_of(1_000)) {
            (true, _) => 0.0,
            (false, true) => 1e-6,
            (false, false) => 1e-9,
        };
    }

    /// Looks at an invocation. `whom` gives the entries that the operation's are in the sub-model, with their keys.
    pub(super) fn look(&mut self, visit: Visit<'_>, whom: &dyn Fn(EntryNumber) -> (EntryIndex, EntryKey)) {
        let Visit { toeg, outcome, entry, nodes, .. } = visit;
        self.look_at_response(toeg, outcome, entry, nodes);
        if self.begin.is_nan() {
            return;
        }
        self.gather(visit, whom);
        self.share(visit.own);
        self.group();
    }

    /// Looks at nothing but when an invocation was accepted and answered.
    pub(super) fn look_at_response(&mut self, toeg: &Toeg, outcome: &Outcome, entry: EntryNumber, nodes: &[NodeId]) {
        self.groups.clear();
        (self.begin, self.reply) = (f64::NAN, f64::NAN);
        let accepted_at = outcome.entries[entry as usize].accepted_at;
        if accepted_at != NONE {
            (self.begin, self.reply) = (toeg.event(accepted_at).time, answered_at(toeg, outcome, entry, nodes));
        }
    }

    /// Finds the calls, and what the invocation works meanwhile.
    fn gather(&mut self, visit: Visit<'_>, whom: &dyn Fn(EntryNumber) -> (EntryIndex, EntryKey)) {
        let Visit { toeg, outcome, nodes, requests, own, .. } = visit;
        self.outs.clear();
        let blank = Out {
            phase: 1,
            kind: RequestKind::Synchronous,
            key: None,
            to: None,
            start: 0.0,
            end: 0.0,
            share: 0.0,
            lead: 0.0,
            network: 0.0,
        };
        for &node in nodes {
            let Some(answer) = answered(toeg, outcome, node) else { continue };
            let (to, key) = whom(answer.called);
            let (start, end) = (toeg.event(answer.sent).time, toeg.event(node).time);
            let phase = outcome.phase(answer.sent);
            if start <= end {
                let network = answer.on_the_way.max(0.0);
                self.outs.push(Out { phase, key: Some(key), to: Some(to), start, end, network, ..blank });
            }
        }
        self.waits.iter_mut().for_each(Vec::clear);
        for out in &self.outs {
            self.waits[place_of(out.phase)].push((out.start, out.end));
        }
        self.waits.iter_mut().for_each(union);
        if !outcome.branches.is_empty() {
            let parts = |own: &Own| {
                let phase = own.phase;
                within(&self.waits[place_of(phase)], own.start, own.end).map(move |(start, end)| Out {
                    phase,
                    start,
                    end,
                    ..blank
                })
            };
            let beside = own.iter().flat_map(parts);
            self.outs.extend(beside.filter(|out| out.end > out.start));
        }
        for &request in requests {
            let request = &outcome.requests[request as usize];
            if request.at == NONE || kind_of(outcome, request.to) != Some(RequestKind::Asynchronous) {
                continue;
            }
            let next = toeg.next_in_thread(request.at);
            if next == NONE || !matches!(toeg.event(request.at).kind, Kind::Fork(_)) {
                continue;
            }
            let (to, key) = whom(request.to);
            // A sender that waits until its message is taken pauses first.
            let next = toeg.event(next);
            let (start, end) = (toeg.event(request.at).time, next.time + next.pause.max(0.0));
            if start <= end {
                let phase = request_phase(outcome, request);
                let kind = RequestKind::Asynchronous;
                self.outs.push(Out { phase, kind, key: Some(key), to: Some(to), start, end, ..blank });
            }
        }
    }

    /// Shares out the time in which calls are out. One that nobody waits for has what no other call covers.
    fn share(&mut self, own: &[Own]) {
        for out in self.outs.iter_mut().filter(|out| out.kind == RequestKind::Asynchronous) {
            let covered: f64 =
                within(&self.waits[place_of(out.phase)], out.start, out.end).map(|(start, end)| end - start).sum();
            out.share = (out.end - out.start - covered).max(0.0);
        }
        self.edges.clear();
        for (number, out) in (0..).zip(&self.outs) {
            if out.kind == RequestKind::Synchronous {
                self.edges.push((out.phase, out.start, true, number));
                self.edges.push((out.phase, out.end, false, number));
            }
        }
        // At one time, begins come first, so that calls without duration begin before they end.
        self.edges.sort_by(|left, right| {
            let of_phase = left.0.cmp(&right.0).then_with(|| left.1.total_cmp(&right.1));
            of_phase.then_with(|| right.2.cmp(&left.2)).then_with(|| left.3.cmp(&right.3))
        });
        for edges in self.edges.chunk_by(|left, right| left.0 == right.0) {
            let (phase, first, ..) = edges[0];
            let works = own.iter().filter(|own| own.phase == phase).map(|own| own.start);
            let begin = if phase == 1 { self.begin } else { works.fold(first, f64::min) };
            let (mut active, mut last, mut idle_since, mut shared) = (0_u32, begin, begin, 0.0);
            for &(_, time, begins, number) in edges {
                if active > 0 {
                    shared += (time - last).max(0.0) / f64::from(active);
                }
                last = time;
                let out = &mut self.outs[number as usize];
                if begins {
                    if active == 0 {
                        out.lead = (time - idle_since).max(0.0);
                    }
                    active += 1;
                    out.share -= shared;
                } else {
                    out.share += shared;
                    active -= 1;
                    idle_since = time;
                }
            }
        }
    }

    /// Puts calls together by label.
    fn group(&mut self) {
        self.outs.sort_by(|left, right| {
            let key = |out: &Out| (out.phase, out.kind, out.key);
            key(left)
                .cmp(&key(right))
                .then_with(|| left.start.total_cmp(&right.start))
                .then_with(|| left.end.total_cmp(&right.end))
        });
        let single = self.outs.len() <= MOST_LABELS;
        self.groups.clear();
        let mut ordinal = 0;
        for out in &self.outs {
            let seconds = out.end - out.start;
            let last = self
                .groups
                .last_mut()
                .filter(|last| (last.label.phase, last.label.kind, last.label.to) == (out.phase, out.kind, out.to));
            match last {
                Some(last) if !single || out.to.is_none() => {
                    last.end = last.end.max(out.end);
                    last.calls += 1;
                    last.seconds += seconds;
                    last.share += out.share;
                    last.lead += out.lead;
                    last.network += out.network;
                }
                last => {
                    ordinal = match (last, single && out.to.is_some()) {
                        (_, false) => 0,
                        (Some(_), true) => ordinal + 1,
                        (None, true) => 1,
                    };
                    let label = CallLabel { phase: out.phase, kind: out.kind, to: out.to, ordinal };
                    self.groups.push(Group {
                        label,
                        start: out.start,
                        end: out.end,
                        calls: 1,
                        seconds,
                        share: out.share,
                        lead: out.lead,
                        network: out.network,
                    });
                }
            }
        }
    }

    /// Adds the invocation that was looked at last to its entry.
    pub(super) fn add_to(&self, total: &mut EntryTotal) {
        let Self { begin, reply, grain, .. } = *self;
        if reply >= begin {
            total.response.add(reply - begin);
            total.responses.add(reply - begin);
        }
        for group in &self.groups {
            let mut duration = Moments::default();
            duration.add(group.seconds);
            let calls = if group.label.to.is_some() { group.calls } else { 0 };
            let one = CallTotal {
                invocations: 1,
                requests: RequestTotal { count: calls, squares: calls * calls },
                duration,
                start: Seconds::from_f64(group.start - begin),
                share: Seconds::from_f64(group.share),
                lead: Seconds::from_f64(group.lead),
                network: Seconds::from_f64(group.network),
            };
            total.calls.entry(group.label).or_default().merge(&one);
        }
        let visit = (reply - begin).max(0.0);
        // Calls that were put together are in order where none of all calls overlap.
        let (all, waited) =
            (self.groups.iter().map(|group| group.seconds), self.groups.iter().map(|group| group.share));
        let apart = all.sum::<f64>() <= waited.sum::<f64>() + grain;
        let shown = &self.groups[..self.groups.len().min(MOST_LABELS)];
        for (place, left) in shown.iter().enumerate() {
            for right in &shown[place + 1..] {
                // What overlaps by less than clocks tell apart, or by next to nothing of the visit, is in order.
                let shorter = (left.end - left.start).min(right.end - right.start);
                let slack = grain.max(visit / 100.0).min(shorter / 2.0);
                let later = right.start - left.start;
                let before = left.end <= right.start + slack || apart && later >= 0.0;
                let after = right.end <= left.start + slack || apart && later < 0.0;
                let one = PairTotal {
                    both: 1,
                    before: u64::from(before && (!after || later >= 0.0)),
                    after: u64::from(after && (!before || later < 0.0)),
                    later: Seconds::from_f64(later.max(0.0)),
                    earlier: Seconds::from_f64((-later).max(0.0)),
                };
                total.pairs.entry((left.label, right.label)).or_default().merge(&one);
            }
        }
    }
}

/// Intervals in order, those that touch as one.
fn union(intervals: &mut Vec<(f64, f64)>) {
    intervals.sort_by(|left, right| left.0.total_cmp(&right.0).then(left.1.total_cmp(&right.1)));
    intervals.dedup_by(|next, kept| {
        let joined = next.0 <= kept.1;
        if joined {
            kept.1 = kept.1.max(next.1);
        }
        joined
    });
}

/// The parts of an interval that lie in others, which are in order and apart.
fn within(others: &[(f64, f64)], start: f64, end: f64) -> impl Iterator<Item = (f64, f64)> + '_ {
    let first = others.partition_point(|other| other.1 <= start);
    others[first..]
        .iter()
        .take_while(move |other| other.0 < end)
        .map(move |other| (other.0.max(start), other.1.min(end)))
}
