//! Which rule of the spans' decision table (book: Spans) an event comes from, told by the graph that came of it.

use crate::tlc::explain::Study;
use crate::trace::recorded::SpanKind;
use crate::trace::toeg::NONE;
use crate::trace::{Kind, NodeId, Toeg};

/// A rule of the decision table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// The section of the book's page that decided.
    pub section: &'static str,
    /// When it applies.
    pub when: &'static str,
}

const PART_OF_VISIT: Rule = Rule {
    section: "What a span becomes",
    when: "a span of the visit's own service that calls nobody is an activity of the visit",
};
const VISIT: Rule = Rule {
    section: "What a span becomes",
    when: "a SERVER or CONSUMER span is a visit, and its own work before, between and after its calls is activities",
};
const FIRST: Rule =
    Rule { section: "What a span becomes", when: "the root of the spans is the first visit of the operation" };
const SYNCHRONOUS: Rule = Rule { section: "Synchronous", when: "the server ends before its client does" };
const SECOND_PHASE: Rule =
    Rule { section: "Second phase", when: "the server, or a local span of it, goes on after its client has ended" };
const ASYNCHRONOUS: Rule = Rule {
    section: "Asynchronous",
    when: "nobody is seen to wait: it begins or goes on when what caused it has ended",
};
const MESSAGE: Rule = Rule { section: "Asynchronous", when: "PRODUCER and CONSUMER do not wait for each other" };
const FORWARDED: Rule = Rule {
    section: "Forwarded",
    when: "the client waits for longer than its server works, and the last of a chain of messages ends within that time",
};
const PARALLEL: Rule = Rule { section: "In parallel", when: "calls or activities of the visit overlap" };
const NO_CLIENT: Rule = Rule {
    section: "Without a client half",
    when: "no client span was recorded: synchronous where the visit ends before the calling one does",
};
const NO_CLIENT_WAITS: Rule = Rule {
    section: "Without a client half",
    when: "no client span was recorded, and the visit ends after the calling one: nobody is seen to wait",
};

/// The rule that an event of a span comes from; `None` where the trace is not one of spans.
pub(super) fn rule(study: &Study<'_>, node: NodeId) -> Option<Rule> {
    let toeg = study.toeg;
    let operation = toeg.operation();
    let serves = |kind: SpanKind| matches!(kind, SpanKind::Server | SpanKind::Consumer);
    let own = operation.span_of(toeg.event(node))?.kind;
    let Some((sent, accepted)) = message(toeg, node) else {
        return Some(if is_internal(toeg, node) {
            PARALLEL
        } else if node == toeg.root() {
            FIRST
        } else if serves(own) {
            VISIT
        } else {
            PART_OF_VISIT
        });
    };
    let request = request_of(toeg, sent, accepted);
    let kind = |node: NodeId| operation.span_of(toeg.event(node)).map(|span| (span.kind, &span.id));
    let (from, to) = (kind(request.0), kind(request.1));
    let one_span = from.is_some() && from.map(|(_, id)| id) == to.map(|(_, id)| id);
    let no_client = one_span && from.is_some_and(|(kind, _)| serves(kind));
    let messages = [from, to].iter().flatten().any(|(kind, _)| matches!(kind, SpanKind::Producer | SpanKind::Consumer));
    Some(match call_semantics(toeg, request) {
        ASYNCHRONOUS if messages => MESSAGE,
        ASYNCHRONOUS if no_client => NO_CLIENT_WAITS,
        SYNCHRONOUS if no_client => NO_CLIENT,
        semantics => semantics,
    })
}

/// The message that a node sends or accepts, if it does: from a node of one task to one of another.
fn message(toeg: &Toeg, node: NodeId) -> Option<(NodeId, NodeId)> {
    let task = |node: NodeId| toeg.event(node).task;
    let other = |to: NodeId| to != NONE && task(to) != task(node);
    let begun = match toeg.event(node).kind {
        Kind::Fork(thread) => toeg.thread(thread).map_or(NONE, |thread| thread.first),
        _ => toeg.next_in_thread(node),
    };
    if other(begun) {
        return Some((node, begun));
    }
    let before = cause(toeg, node);
    other(before).then_some((before, node))
}

/// What comes just before a node in its thread, or forks it.
fn cause(toeg: &Toeg, node: NodeId) -> NodeId {
    match toeg.previous_in_thread(node) {
        NONE => toeg.thread_of(node).fork,
        before => before,
    }
}

/// Whether a node forks, begins or joins a branch of its own task.
fn is_internal(toeg: &Toeg, node: NodeId) -> bool {
    match toeg.event(node).kind {
        Kind::Fork(_) | Kind::Join(_) => true,
        Kind::Begin | Kind::End => toeg.thread_of(node).fork != NONE,
        Kind::Activity => false,
    }
}

/// The request that a message is, or answers: its task was waiting at the node before.
fn request_of(toeg: &Toeg, sent: NodeId, accepted: NodeId) -> (NodeId, NodeId) {
    let waiting = toeg.previous_in_task(accepted);
    if waiting == NONE || toeg.event(waiting).kind != Kind::Activity {
        return (sent, accepted);
    }
    match message(toeg, waiting) {
        Some((asked, served)) if asked == waiting => (asked, served),
        _ => (sent, accepted),
    }
}

/// How the client of a request goes on.
fn call_semantics(toeg: &Toeg, (sent, accepted): (NodeId, NodeId)) -> Rule {
    if toeg.event(sent).kind == Kind::Activity {
        let resumed = toeg.next_in_task(sent);
        if resumed == NONE || toeg.event(resumed).kind != Kind::Begin {
            return SYNCHRONOUS;
        }
        let fork = toeg.thread_of(resumed).fork;
        let answers = fork != NONE && toeg.event(fork).task == toeg.event(accepted).task;
        return if answers { SECOND_PHASE } else { FORWARDED };
    }
    if is_hop(toeg, sent) { FORWARDED } else { ASYNCHRONOUS }
}

/// Whether a fork passes a request on: the thread on which its client goes on comes from it by further forks.
fn is_hop(toeg: &Toeg, fork: NodeId) -> bool {
    let mut first = fork;
    while cause(toeg, first) != NONE && toeg.event(cause(toeg, first)).task == toeg.event(fork).task {
        first = cause(toeg, first);
    }
    let asked = cause(toeg, first);
    if asked == NONE || toeg.event(asked).kind != Kind::Activity {
        return false;
    }
    let mut at = toeg.next_in_task(asked);
    for _ in 0..toeg.threads().len() {
        if at == NONE {
            return false;
        }
        at = toeg.thread_of(at).fork;
        if at == fork {
            return true;
        }
    }
    false
}
