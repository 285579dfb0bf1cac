//! Services that record no spans, between others that do: the calls to them are there, and what they call has lost its parent.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Callers, Fragment, MOST_PAIRS, Places, answers, covers, is_orphan};
use crate::codes;
use crate::spans::assemble::{NAMELESS, NOBODY, Work};
use crate::spans::model::{Span, SpanKind};
use dyelog_diagnostic::Diagnostic;
use dyelog_diagnostic::names::Name;

/// From fewer spans or calls nothing follows.
const ENOUGH: u64 = 10;
/// Of spans with a parent that records none, more than one of so many has lost it. Fewer are lost one by one.
const OFTEN: u64 = 5;
/// Of calls to a service that records no spans, no more than one of so many is answered by one.
const SELDOM: u64 = 20;
/// A peer called an operation if calls to it lie around so many of the spans of that which have lost their parents: (80, 100). By chance few do.
const AROUND: (u64, u64) = (80, 100);
/// One call lies in another if it does within so many steps.
const DEEPEST: usize = 8;

/// Of each operation, by service and name: how many of its spans have lost their parents, and around how many of them a call to each peer lies that no span answers.
#[derive(Debug, Default)]
pub(super) struct Around(FxHashMap<(Name, Name), (u64, FxHashMap<Name, u64>)>);

/// What a call goes to: its peer, else whatever its service calls.
fn peer_of(call: &Span) -> Name {
    if call.peer.is_some() { call.peer } else { call.service }
}

impl Around {
    fn add(&mut self, work: &Work<'_>, answered: &FxHashSet<u32>) {
        for trace in work.sorted.chunk_by(|one, next| work.span(*one).trace == work.span(*next).trace) {
            let orphans: Vec<u32> = trace
                .iter()
                .copied()
                .filter(|index| work.span(*index).kind.serves() && is_orphan(work, *index))
                .collect();
            if orphans.is_empty() {
                continue;
            }
            let is_call = |index: &u32| work.span(*index).kind == SpanKind::Client && !answered.contains(index);
            let calls: Vec<u32> = trace.iter().copied().filter(is_call).collect();
            if orphans.len().saturating_mul(calls.len()) > MOST_PAIRS {
                continue;
            }
            for orphan in orphans {
                let span = *work.span(orphan);
                let own = Fragment {
                    parent: span.parent,
                    members: vec![orphan],
                    start: span.start,
                    end: span.end,
                    local: None,
                };
                let (all, peers) = self.0.entry((span.service, span.name)).or_default();
                *all += 1;
                let around = calls.iter().map(|call| work.span(*call)).filter(|call| covers(call, &own)).map(peer_of);
                for peer in around.collect::<FxHashSet<Name>>() {
                    *peers.entry(peer).or_default() += 1;
                }
            }
        }
    }

    /// Whether calls like this one lie around nearly all spans of an operation that have lost their parents.
    fn lies(&self, call: &Span, within: &Span) -> bool {
        self.0.get(&(within.service, within.name)).is_some_and(|(all, peers)| {
            let own = peers.get(&peer_of(call)).copied().unwrap_or(0);
            own * AROUND.1 >= all * AROUND.0
        })
    }
}

impl Callers {
    /// Takes in which calls are answered by a span.
    pub(super) fn add_answers(&mut self, work: &Work<'_>) {
        let has_answer = |index: &u32| {
            let parent = work.parent[*index as usize];
            (parent != NOBODY && answers(work.span(*index), work.span(parent))).then_some(parent)
        };
        let answered: FxHashSet<u32> = work.sorted.iter().filter_map(has_answer).collect();
        self.around.add(work, &answered);
        for index in &work.sorted {
            let span = work.span(*index);
            if span.kind == SpanKind::Client {
                let (all, own) = self.answered.entry((span.service, span.name, span.peer)).or_default();
                *all += 1;
                *own += u64::from(answered.contains(index));
            }
        }
    }

    /// Whether calls like this one go to something that records no spans.
    pub(super) fn is_silent(&self, call: &Span) -> bool {
        let known = self.answered.get(&(call.service, call.name, call.peer));
        known.is_some_and(|(all, answered)| *all >= ENOUGH && answered * SELDOM <= *all)
    }

    /// Whether so many spans of an operation have lost their parents that these are not lost one by one.
    fn are_often_lost(&self, span: &Span) -> bool {
        let known = self.lost.get(&(span.service, span.name, span.kind));
        known.is_some_and(|(all, orphans)| *all >= ENOUGH && orphans * OFTEN > *all)
    }
}

impl Places {
    /// The only call around a fragment that went to a service without spans; of calls within each other, the inner one.
    pub(super) fn call_around(&mut self, work: &Work<'_>, fragment: &Fragment, callers: &Callers) -> Option<u32> {
        if fragment.local.is_some() || !callers.are_often_lost(work.span(fragment.members[0])) {
            return None;
        }
        let mut found: Option<u32> = None;
        for at in 0..self.spans.len() {
            let index = self.spans[at];
            let span = work.span(index);
            let fits = span.kind == SpanKind::Client
                && covers(span, fragment)
                && (!self.answered.contains(&index) || self.silent.contains_key(&index))
                && callers.is_silent(span)
                && callers.around.lies(span, work.span(fragment.members[0]));
            if !fits || !self.is_whole(work, index) {
                continue;
            }
            match found {
                Some(other) if is_within(work, index, other) => {}
                Some(other) if !is_within(work, other, index) => return None,
                _ => found = Some(index),
            }
        }
        found
    }

    /// Puts a fragment below the service that a call went to.
    pub(super) fn attach_to_silent(
        &mut self,
        work: &mut Work<'_>,
        fragment: &Fragment,
        call: u32,
        added: &mut Vec<u32>,
    ) {
        work.count("parent in a service that records no spans", fragment.members[0], |at| {
            Diagnostic::warning(codes::LOST_PARENT, at, "the parent of this span was lost, as that of others of its operation")
                .with_note("one call lies around it, and no call like that one is answered by a span: it counts as made by the service that was called, whose other waits look like work")
        });
        let stand_in = match self.silent.get(&call) {
            Some(known) => *known,
            None => self.stand_in(work, fragment, call, added),
        };
        for &member in &fragment.members {
            work.parent[member as usize] = stand_in;
        }
        self.whole.retain(|_, whole| *whole);
    }

    /// A span of the service that a call went to, for as long as the call took.
    fn stand_in(&mut self, work: &mut Work<'_>, fragment: &Fragment, call: u32, added: &mut Vec<u32>) -> u32 {
        let client = *work.span(call);
        let service = if client.peer.is_some() {
            client.peer
        } else {
            let name = format!("peer of {}", work.names.text(client.service));
            work.names.intern(&name)
        };
        let span = Span {
            file: client.file,
            trace: client.trace,
            id: fragment.parent,
            service,
            host: client.host,
            name: NAMELESS,
            start: client.start,
            end: client.end,
            kind: SpanKind::Server,
            lost: true,
            ..Span::default()
        };
        let index = work.spans.spans.len() as u32;
        work.spans.spans.push(span);
        work.parent.push(call);
        added.push(index);
        self.spans.push(index);
        self.answered.insert(call);
        self.silent.insert(call, index);
        index
    }
}

/// Whether a span lies below another one.
fn is_within(work: &Work<'_>, outer: u32, inner: u32) -> bool {
    let above = |index: &u32| Some(work.parent[*index as usize]).filter(|parent| *parent != NOBODY);
    std::iter::successors(above(&inner), above).take(DEEPEST).any(|index| index == outer)
}
