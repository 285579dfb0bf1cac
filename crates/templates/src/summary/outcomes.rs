//! What spans tell of invocations beside their times: whether they failed, whether they were asked for once more, and which instance they were of.

use super::Summary;
use crate::driver::Outcome;
use dyelog_diagnostic::names::Name;
use dyelog_lqn::deployment::{self, Replica, Seen};
use dyelog_lqn::submodel::EntryIndex;
use dyelog_trace::toeg::NONE;
use dyelog_trace::{NodeId, SpanItem, Toeg, TraceNames, VisitEvidence};

/// Whether the span of a node failed.
pub(super) fn failed(toeg: &Toeg, node: NodeId) -> bool {
    span(toeg, node).is_some_and(|span| span.failed)
}

/// How many messages a visit worked on that was accepted at a node, where it is linked to them.
pub(super) fn batch(toeg: &Toeg, accepted_at: NodeId) -> Option<u64> {
    span(toeg, accepted_at).map(|span| span.batch.into()).filter(|messages| *messages > 0)
}

/// Whether a visit that was accepted at a node may have waited for a service that records no spans.
pub(super) fn may_wait(toeg: &Toeg, accepted_at: NodeId) -> bool {
    span(toeg, accepted_at).is_some_and(|span| span.may_wait)
}

/// How a visit is known that was accepted at a node.
pub(super) fn evidence(toeg: &Toeg, names: &TraceNames, accepted_at: NodeId) -> VisitEvidence {
    match span(toeg, accepted_at) {
        Some(span) if span.evidence == VisitEvidence::Recorded && is_of_client(toeg, names, accepted_at, span) => {
            VisitEvidence::Silent
        }
        Some(span) => span.evidence,
        None => VisitEvidence::Recorded,
    }
}

/// Whether the span at which a visit was accepted is that of its client: its service recorded none.
fn is_of_client(toeg: &Toeg, names: &TraceNames, accepted_at: NodeId, span: &SpanItem) -> bool {
    names.task(toeg.event(accepted_at).task).name != span.service
}

fn span(toeg: &Toeg, node: NodeId) -> Option<&SpanItem> {
    if node == NONE { None } else { toeg.operation().span_of(toeg.event(node)) }
}

/// A number that tells the caller's instance from others, where the span of an invocation is that of its client; 0 elsewhere.
pub(super) fn client_site(toeg: &Toeg, names: &TraceNames, accepted_at: NodeId) -> u32 {
    let item = span(toeg, accepted_at).filter(|item| is_of_client(toeg, names, accepted_at, item));
    let text = |name| names.names.text(name);
    item.map_or(0, |item| {
        deployment::site_of(text(item.service), text(item.replica.instance), text(item.replica.machine))
    })
}

impl Summary {
    /// Counts an invocation that failed, and those of its requests that are made once more: the tracer says so, or one to the same entry
    /// failed before.
    pub(super) fn add_outcome(
        &mut self,
        toeg: &Toeg,
        outcome: &Outcome,
        accepted_at: NodeId,
        requests: &[u32],
        found: &[EntryIndex],
        index: EntryIndex,
    ) {
        if failed(toeg, accepted_at) {
            self.submodel.entry_mut(index).failures += 1;
        }
        // Calls of other threads were made at once, and are no second try. One that its client gave up may go on alone, and be another entry of the same service.
        let mut before: Vec<((Name, Name), u32)> = Vec::new();
        for &number in requests {
            let request = &outcome.requests[number as usize];
            let Some(to) = found.get(request.to as usize).copied() else { continue };
            let callee = outcome.entries.get(request.to as usize).map_or(NONE, |entry| entry.accepted_at);
            let told = span(toeg, request.at).is_some_and(|span| span.retry);
            let thread = if request.at == NONE { 0 } else { toeg.event(request.at).thread };
            let asked = self.submodel.entry(to);
            let asked = ((asked.task, asked.service), thread);
            if told || before.contains(&asked) {
                self.submodel.entry_mut(to).retries += 1;
            }
            before.retain(|other| *other != asked);
            if failed(toeg, request.at) && callee != NONE && !failed(toeg, callee) {
                self.submodel.entry_mut(to).given_up += 1;
            }
            if failed(toeg, request.at) || failed(toeg, callee) {
                before.push(asked);
            }
        }
    }

    /// Keeps which instance of its task an invocation was of; gives a number that tells it from others, 0 where nothing does.
    pub(super) fn add_replica(
        &mut self,
        toeg: &Toeg,
        names: &TraceNames,
        accepted_at: NodeId,
        index: EntryIndex,
    ) -> u32 {
        let Some(item) = span(toeg, accepted_at) else { return 0 };
        let (replica, event) = (item.replica, toeg.event(accepted_at));
        // The span of a client tells nothing of who served it.
        if !replica.instance.is_some() || is_of_client(toeg, names, accepted_at, item) {
            return 0;
        }
        let Some(begin) = toeg.operation().start.filter(|_| !event.time.is_nan()) else { return 0 };
        let at = begin.saturating_add((event.time * 1e9).round() as i64);
        let instance = self.entries.name(&mut self.submodel, &names.names, replica.instance);
        let machine = self.entries.name(&mut self.submodel, &names.names, replica.machine);
        let task = self.submodel.entry(index).task;
        let seen = Seen { first: at, last: at, invocations: 1, cores: replica.cores };
        self.submodel.deployment.see(&self.submodel.names, Replica { task, instance, machine }, &seen)
    }
}
