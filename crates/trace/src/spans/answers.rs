//! Answers that come as messages.
//!
//! A service sends a request as a message, works on nothing until the answer comes as another message, and goes on: a remote procedure call made of two messages. Instrumentation
//! records a PRODUCER and a CONSUMER for each of them, and the CONSUMER of the answer as a piece of work by itself. Here the call is one again: the PRODUCER of the request waits as
//! a CLIENT does until the answer is there, the CONSUMER of the request serves it, and work on the answer is part of what asked. Of several messages that come back the last one is the
//! answer: those before may tell of progress, or ask something themselves.
//!
//! Who waits does little else: where what asked has more time of its own than it waits, it works, and the message comes back beside that.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::codes;
use crate::spans::assemble::{NOBODY, Work};
use crate::spans::model::{Messaging, SpanKind};
use dyelog_diagnostic::names::Name;
use dyelog_diagnostic::{Diagnostic, Severity};

/// An answer comes over so many hops at most.
const HOPS: usize = 32;

/// Who waits for an answer has other calls under way for at most one part in so many of the wait.
const IDLE: i64 = 2;

/// A span that sends more requests is no call that waits for each.
const MOST: usize = 64;

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
    /// Whether what asked had ended before.
    is_late: bool,
}

/// Makes a request and its answer one call.
pub(super) fn join(work: &mut Work<'_>) {
    let all = work.sorted.iter().filter_map(|answer| exchange(work, *answer));
    let (late, found): (Vec<Exchange>, Vec<Exchange>) = all.partition(|own| own.is_late);
    if found.is_empty() {
        return;
    }
    let mut children: FxHashMap<u32, Vec<u32>> =
        found.iter().flat_map(|own| [(own.asks, Vec::new()), (own.request, Vec::new())]).collect();
    for &index in &work.sorted {
        if let Some(children) = children.get_mut(&work.parent[index as usize]) {
            children.push(index);
        }
    }
    let mut last: FxHashMap<u32, i64> = FxHashMap::default();
    for own in &found {
        let came = work.span(own.answer).start;
        last.entry(own.request).and_modify(|last| *last = came.max(*last)).or_insert(came);
    }
    let mut of: FxHashMap<u32, Vec<Exchange>> = FxHashMap::default();
    let mut askers: Vec<u32> = Vec::new();
    for own in found {
        // Messages that others take, too, are news and no requests.
        let is_request = children[&own.request] == [own.serves];
        if is_request && last.get(&own.request) == Some(&work.span(own.answer).start) {
            last.remove(&own.request);
            let all = of.entry(own.asks).or_default();
            if all.is_empty() {
                askers.push(own.asks);
            }
            all.push(own);
        }
    }
    let all = askers.into_iter().filter_map(|asks| of.remove(&asks));
    let (waits, beside): (Vec<_>, Vec<_>) = all.partition(|exchanges| waits_for(work, exchanges, &children));
    let name = |work: &Work<'_>, own: &Exchange| (work.span(own.asks).service, work.span(own.request).name);
    let named: FxHashSet<(Name, Name)> = waits.iter().flatten().map(|own| name(work, own)).collect();
    for own in waits.iter().flatten() {
        make_call(work, own);
    }
    // A sender that waits is there when the answer comes.
    let doubtful: FxHashSet<(Name, Name)> =
        late.iter().map(|own| name(work, own)).filter(|own| named.contains(own)).collect();
    for own in beside.into_iter().flatten().chain(late) {
        if !doubtful.contains(&name(work, &own)) {
            continue;
        }
        work.count("message that comes back like an answer, taken as none", own.request, |place| {
            Diagnostic::warning(
                codes::ANSWER,
                place,
                "the sender of this message goes on before one comes back, and others like it wait for that",
            )
            .with_note("those that wait are synchronous calls, and the others asynchronous messages")
            .with_note("where no sender waits, some work is taken for a wait: service times are too short then")
        });
    }
}

/// Whether what asks does hardly anything but wait for these answers.
fn waits_for(work: &Work<'_>, exchanges: &[Exchange], children: &FxHashMap<u32, Vec<u32>>) -> bool {
    let Some(asks) = exchanges.first().map(|own| own.asks).filter(|_| exchanges.len() <= MOST) else { return false };
    let calls: Vec<u32> =
        children[&asks].iter().copied().filter(|child| work.span(*child).kind == SpanKind::Client).collect();
    let mut waits: Vec<(i64, i64)> =
        exchanges.iter().map(|own| (work.span(own.request).start, work.span(own.answer).start)).collect();
    let during = |from: i64, to: i64| {
        calls.iter().fold(0_i64, |sum, child| {
            let call = work.span(*child);
            sum.saturating_add(call.end.min(to).saturating_sub(call.start.max(from)).max(0))
        })
    };
    if waits.iter().any(|(from, to)| during(*from, *to) > to.saturating_sub(*from) / IDLE) {
        return false;
    }
    waits.sort_unstable();
    let (mut waited, mut until) = (0_i64, i64::MIN);
    for (from, to) in waits {
        waited = waited.saturating_add(to.saturating_sub(from.max(until)).max(0));
        until = until.max(to);
    }
    let asking = work.span(asks);
    let own =
        asking.end.saturating_sub(asking.start).saturating_sub(during(asking.start, asking.end)).saturating_sub(waited);
    own <= waited
}

fn make_call(work: &mut Work<'_>, own: &Exchange) {
    let came = work.span(own.answer).start;
    work.count("request and answer by messages, taken as a call", own.request, |place| {
        Diagnostic::new(
            Severity::Note,
            codes::ANSWER,
            place,
            "this message is a request whose sender waits for an answer that is a message, too",
        )
        .with_note("request and answer are one synchronous call: the sender works on nothing between them")
    });
    let asks = work.span(own.asks).id;
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
    // Below a span of another name they would have lost theirs.
    for index in [own.request, own.answer] {
        work.spans.spans[index as usize].parent = asks;
        work.parent[index as usize] = own.asks;
    }
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
            let mut asks = above(at).filter(|_| is_request && is_here)?;
            // A send may have a span of its own around it.
            for _ in 0..HOPS {
                let around = work.span(asks);
                if around.end >= own.start || around.kind != SpanKind::Internal {
                    break;
                }
                asks = above(asks)?;
            }
            let asking = work.span(asks);
            let is_here = asking.service == own.service && asking.instance == own.instance;
            let is_late = asking.end < own.start;
            return is_here.then_some(Exchange { asks, request: at, serves: below, replies, answer, is_late });
        }
        (below, at) = (at, above(at)?);
    }
    None
}
