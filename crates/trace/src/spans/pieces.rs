//! Spans that come in several records: a tracer writes what it knows before a span has ended, and the rest later.
//!
//! Records of one trace and identifier are pieces of one span where at least one of them lacks its start or its end, and their
//! kinds and services agree as far as both tell them. Records that are complete are left to [`assemble`](super::assemble), which
//! tells sent-again from reused identifiers.
//!
//! Until its pieces are joined, a span has [`NOT_TOLD`] in place of a time that its record does not tell.

use rustc_hash::FxHashMap;

use crate::codes;
use crate::spans::builder::Builder;
use crate::spans::ids::TraceId;
use crate::spans::model::{Span, SpanKind};
use dyelog_diagnostic::Diagnostic;
use dyelog_diagnostic::names::Name;

/// The times of a record, nanoseconds, as far as it tells them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Times {
    pub start: Option<i64>,
    pub end: Option<i64>,
    /// From the start to the end, where no start is told.
    pub duration: Option<i64>,
}

/// Stands for a time that is not told.
const NOT_TOLD: i64 = i64::MIN;

/// Ends up to here are durations, counted from that on which follows [`NOT_TOLD`]: no clock tells times of so long ago.
const LAST_DURATION: i64 = i64::MIN / 2;

impl Times {
    fn of(span: &Span) -> Self {
        let told = |time: i64| Some(time).filter(|time| *time != NOT_TOLD);
        let (end, duration) = match told(span.end) {
            Some(end) if end <= LAST_DURATION => (None, Some(end - (NOT_TOLD + 1))),
            end => (end, None),
        };
        Self { start: told(span.start), end, duration }
    }

    fn set(self, span: &mut Span) {
        let ended = || Some(self.start?.saturating_add(self.duration?));
        let lasts = || Some((NOT_TOLD + 1).saturating_add(self.duration?.max(0)).min(LAST_DURATION));
        let end = self.end.or_else(ended).or_else(lasts);
        (span.start, span.end) = (self.start.unwrap_or(NOT_TOLD), end.unwrap_or(NOT_TOLD));
    }

    fn complete(self) -> bool {
        self.start.is_some() && self.end.is_some()
    }

    /// Both together: the earlier start, the later end, the longer duration, as Zipkin has it (`Span.Builder.merge`).
    fn joined(self, other: Self) -> Self {
        let start = self.start.into_iter().chain(other.start).min();
        let duration = self.duration.into_iter().chain(other.duration).max();
        let after = start.zip(duration).map(|(start, duration)| start.saturating_add(duration));
        Self { start, end: self.end.into_iter().chain(other.end).chain(after).max(), duration }
    }
}

impl Builder<'_> {
    /// Takes a record of a span that may be a piece of it.
    pub(crate) fn finish_piece(&mut self, mut span: Span, times: Times) {
        self.report.records += 1;
        if self.has_identifier(&span) {
            times.set(&mut span);
            self.spans.spans.push(span);
            self.close();
        }
    }

    /// Joins the pieces of all spans, and takes what is whole now.
    pub(crate) fn join_pieces(&mut self) {
        let mut order: Vec<u32> = (0..self.spans.spans.len() as u32).collect();
        let span = |index: u32| &self.spans.spans[index as usize];
        order.sort_by(|a, b| {
            // The low bits come first, as in batches of whole traces.
            let ids = |index: u32| (span(index).trace.0 as u64, span(index).trace, span(index).id);
            ids(*a).cmp(&ids(*b)).then_with(|| self.spans.compare(self.names, span(*a), span(*b)))
        });
        let mut gone = vec![false; order.len()];
        let groups: Vec<&[u32]> = {
            let ids = |index: &u32| (span(*index).trace, span(*index).id);
            order.chunk_by(|a, b| ids(a) == ids(b)).collect()
        };
        // In an order that does not depend on how many traces are here.
        for group in groups {
            if group.len() > 1 {
                self.join_group(group, &mut gone);
            }
            for index in group.iter().map(|index| *index as usize) {
                let mut times = Times::of(&self.spans.spans[index]);
                // Messages are sent and received at a time; how long that took need not be told.
                if matches!(self.spans.spans[index].kind, SpanKind::Producer | SpanKind::Consumer) {
                    times.end = times.end.or(times.start);
                }
                gone[index] = gone[index] || !self.set_times(index, times);
            }
        }
        self.leave_out(&gone);
    }

    /// Joins the records of one identifier.
    fn join_group(&mut self, group: &[u32], gone: &mut [bool]) {
        let whole = |builder: &Self, index: u32| Times::of(&builder.spans.spans[index as usize]).complete();
        if group.iter().all(|index| whole(self, *index)) {
            return;
        }
        // Whole records first, then those that say most, so that what says little joins what is there.
        let mut targets: FxHashMap<(SpanKind, Name), u32> = FxHashMap::default();
        let mut ordered = group.to_vec();
        ordered.sort_by_key(|index| {
            let span = &self.spans.spans[*index as usize];
            (!whole(self, *index), span.kind == SpanKind::Unspecified, !span.service.is_some())
        });
        for index in ordered {
            let span = self.spans.spans[index as usize];
            let key = (span.kind, span.service);
            let target = targets.get(&key).copied().or_else(|| {
                let fits = |own: &(SpanKind, Name)| {
                    (own.0 == key.0 || own.0 == SpanKind::Unspecified || key.0 == SpanKind::Unspecified)
                        && (own.1 == key.1 || !own.1.is_some() || !key.1.is_some())
                };
                let mut fitting = targets.iter().filter(|(own, _)| fits(own)).map(|(_, target)| *target);
                // Where two halves fit, only its own name for the service says which it belongs to.
                fitting.next().filter(|_| fitting.next().is_none())
            });
            match target {
                Some(target) if !(whole(self, target) && whole(self, index)) => {
                    self.join(target, index);
                    gone[index as usize] = true;
                }
                _ => {
                    targets.entry(key).or_insert(index);
                }
            }
        }
    }

    fn join(&mut self, into: u32, from: u32) {
        let other = self.spans.spans[from as usize];
        let (own, more) = (Times::of(&self.spans.spans[into as usize]), Times::of(&other));
        let span = &mut self.spans.spans[into as usize];
        own.joined(more).set(span);
        let name = |own: &mut Name, other: Name| {
            if !own.is_some() {
                *own = other;
            }
        };
        name(&mut span.name, other.name);
        name(&mut span.service, other.service);
        name(&mut span.host, other.host);
        name(&mut span.instance, other.instance);
        name(&mut span.peer, other.peer);
        if !span.parent.is_some() {
            span.parent = other.parent;
        }
        if span.kind == SpanKind::Unspecified {
            span.kind = other.kind;
        }
        if span.cpu.is_nan() {
            span.cpu = other.cpu;
        }
        if span.weight.is_nan() {
            span.weight = other.weight;
        }
        let id = span.id;
        if let Some(kept) = &mut self.spans.kept {
            kept.absorb(into, from);
        }
        let place = self.place(id);
        self.report.count("span recorded in pieces", || {
            Diagnostic::new(
                dyelog_diagnostic::Severity::Note,
                codes::DUPLICATE_SPAN,
                place,
                "this span is recorded in several pieces",
            )
            .with_note("they were joined")
        });
    }

    /// Gives each trace whose identifier some records cut to its lower 64 bits the whole one.
    pub(crate) fn widen_trace_ids(&mut self) {
        let mut whole: FxHashMap<u64, Option<TraceId>> = FxHashMap::default();
        for span in &self.spans.spans {
            if span.trace.0 >> 64 != 0 {
                let own = whole.entry(span.trace.0 as u64).or_insert(Some(span.trace));
                if *own != Some(span.trace) {
                    *own = None;
                }
            }
        }
        if whole.is_empty() {
            return;
        }
        for span in &mut self.spans.spans {
            if span.trace.0 >> 64 == 0
                && let Some(Some(trace)) = whole.get(&(span.trace.0 as u64))
            {
                span.trace = *trace;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Times;
    use crate::spans::model::Span;

    /// Joins times as spans keep them until they are whole.
    fn joined(pieces: &[(Option<i64>, Option<i64>, Option<i64>)]) -> Times {
        let kept = |times: Times| {
            let mut span = Span::default();
            times.set(&mut span);
            Times::of(&span)
        };
        let times = pieces.iter().map(|(start, end, duration)| Times { start: *start, end: *end, duration: *duration });
        times.map(kept).reduce(|all, own| kept(all.joined(own))).expect("there are some")
    }

    #[test]
    fn durations_wait_for_their_start() {
        let [start, long, short] = [(Some(1_000), None, None), (None, None, Some(50)), (None, None, Some(0))];
        let whole = Times { start: Some(1_000), end: Some(1_050), duration: None };
        for pieces in [&[start, long][..], &[long, start], &[short, long, start], &[start, short, long]] {
            assert_eq!(joined(pieces), whole, "{pieces:?}");
        }
        assert_eq!(joined(&[short, long]), Times { duration: Some(50), ..Times::default() });
        // An end that is told needs no duration.
        assert_eq!(joined(&[(None, Some(1_050), None), start]), whole);
        assert_eq!(joined(&[(None, None, Some(i64::MAX)), start]).start, Some(1_000));
    }
}
