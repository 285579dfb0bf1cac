//! Answers that come as messages.
//!
//! A service sends a request as a message, works on nothing until the answer comes as another message, and goes on: a remote procedure call made of two messages. Instrumentation
//! records a PRODUCER and a CONSUMER for each of them, and the CONSUMER of the answer as a piece of work by itself. Here the call is one again: the PRODUCER of the request waits as
//! a CLIENT does until the answer is there, the CONSUMER of the request serves it, and work on the answer is part of what asked.

use rustc_hash::FxHashMap;

use crate::codes;
use crate::spans::assemble::{NOBODY, Work};
use crate::spans::model::{Messaging, SpanKind};
use dyelog_diagnostic::names::Name;
use dyelog_diagnostic::{Diagnostic, Severity};

/// An answer comes over so many hops at most.
const HOPS: usize = 32;

/// Who waits for an answer has other calls under way for at most one part in so many of the wait.
const IDLE: i64 = 2;

/// A request and its answer, as spans.
struct Exchange {
    /// What asked, and goes on with the answer.
    asks: u32,
    /// The request that is sent.
    request: u32,
    /// Who works on it.
    serves: u32,
    /// The span that the work on the answer is below.
    replies: u32,
    /// The work on the answer.
    answer: u32,
}

/// Makes a request and its answer one call.
pub(super) fn join(work: &mut Work<'_>) {
    let found: Vec<Exchange> = work.sorted.iter().filter_map(|answer| exchange(work, *answer)).collect();
    if found.is_empty() {
        return;
    }
    let mut below: FxHashMap<u32, Vec<u32>> = found.iter().map(|own| (own.asks, Vec::new())).collect();
    for &index in &work.sorted {
        if let Some(children) = below.get_mut(&work.parent[index as usize]) {
            children.push(index);
        }
    }
    // The first answer is what is waited for.
    let mut first: FxHashMap<u32, i64> = FxHashMap::default();
    for own in &found {
        let came = work.span(own.answer).start;
        first.entry(own.request).and_modify(|first| *first = came.min(*first)).or_insert(came);
    }
    for own in found {
        let (sent, came) = (work.span(own.request).end, work.span(own.answer).start);
        let others = below[&own.asks].iter().filter(|child| **child != own.request);
        let busy: i64 = others.map(|child| within(work, *child, sent, came)).sum();
        if busy > (came - sent) / IDLE || first.get(&own.request) != Some(&came) {
            continue;
        }
        first.remove(&own.request);
        work.count("request and answer by messages, taken as a call", own.request, |place| {
            Diagnostic::new(
                Severity::Note,
                codes::ANSWER,
                place,
                "this message is a request whose sender waits for an answer that is a message, too",
            )
            .with_note("request and answer are one synchronous call: the sender works on nothing between them")
        });
        let is = |work: &mut Work<'_>, index: u32, kind: SpanKind| {
            let span = &mut work.spans.spans[index as usize];
            (span.kind, span.messaging) = (kind, Messaging::None);
        };
        is(work, own.request, SpanKind::Client);
        is(work, own.serves, SpanKind::Server);
        is(work, own.answer, SpanKind::Internal);
        if work.span(own.replies).sends_message() {
            is(work, own.replies, SpanKind::Internal);
            work.spans.spans[own.replies as usize].peer = Name::NONE;
        }
        let request = &mut work.spans.spans[own.request as usize];
        (request.end, request.peer) = (came, Name::NONE);
        work.parent[own.answer as usize] = own.asks;
    }
}

/// How long a span was under way between two times.
fn within(work: &Work<'_>, span: u32, from: i64, to: i64) -> i64 {
    let span = work.span(span);
    (span.end.min(to) - span.start.max(from)).max(0)
}

/// The request that a message answers: one that its receiver sent from a span that is under way when the answer comes.
fn exchange(work: &Work<'_>, answer: u32) -> Option<Exchange> {
    let own = work.span(answer);
    if !own.works_on_messages() || own.polls() || own.batch > 1 {
        return None;
    }
    let above = |index: u32| Some(work.parent[index as usize]).filter(|parent| *parent != NOBODY);
    let replies = above(answer)?;
    if work.span(replies).service == own.service {
        return None;
    }
    let (mut below, mut at) = (answer, replies);
    for _ in 0..HOPS {
        let span = work.span(at);
        if span.service == own.service {
            let serves = work.span(below);
            let is_request = span.sends_message() && serves.works_on_messages() && serves.batch <= 1;
            let is_here = span.instance == own.instance && span.start <= own.start;
            let asks = above(at).filter(|_| is_request && is_here)?;
            let asking = work.span(asks);
            let waits = asking.service == own.service && asking.instance == own.instance && asking.end >= own.start;
            return waits.then_some(Exchange { asks, request: at, serves: below, replies, answer });
        }
        (below, at) = (at, above(at)?);
    }
    None
}
