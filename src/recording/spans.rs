//! The spans that a tracer of the simulated system would record.
//!
//! A visit is a SERVER span, below the CLIENT span of the caller that waits for it, or a CONSUMER span below a PRODUCER. What is passed on is a
//! PRODUCER with a SERVER below it: a caller other than the sender waits for that server's answer. Second phases, branches
//! and what comes after a join are INTERNAL spans, so that each has the processor time that is its own.

use std::sync::Arc;

use crate::lqn::model::Model;
use crate::solve::Probe;
use crate::trace::recorded::{SpanKind, SpanSink, WrittenSpan};

use super::wanted::{NONE, Wanted, note};

/// When simulated time begins: the year 2000. Readers take 0 for a time that was not recorded.
const EPOCH: i64 = 946_684_800_000_000_000;

fn nanoseconds(time: f64) -> i64 {
    EPOCH.saturating_add((time * 1e9) as i64)
}

/// What a visit stands for.
#[derive(Clone, Copy, Debug)]
struct VisitNote {
    operation: u32,
    entry: u32,
    /// The span by which it was asked for.
    asked: u32,
    /// Whether its caller waits for the answer.
    answers: bool,
    /// Its own span.
    span: u32,
}

/// What a strand stands for.
#[derive(Clone, Copy, Debug)]
struct StrandNote {
    visit: u32,
    /// The span of the visit or branch.
    base: u32,
    /// The part of it that has a span of its own.
    part: u32,
    /// The span of the call that it waits for.
    waits: u32,
    group: u32,
    /// The group that it is forking.
    forking: u32,
}

/// Branches forked at once.
#[derive(Clone, Copy, Debug)]
struct Group {
    base: u32,
    outer: u32,
}

#[derive(Debug)]
struct Draft {
    parent: u32,
    kind: SpanKind,
    task: u32,
    name: Arc<str>,
    start: f64,
    end: f64,
    cpu: f64,
}

/// An operation under way.
#[derive(Debug, Default)]
struct Underway {
    number: u64,
    spans: Vec<Draft>,
    groups: Vec<Group>,
    /// Visits that have not ended.
    live: u32,
}

/// Writes down spans, for a number of operations from a first one on.
pub(super) struct SpanRecorder<'a> {
    model: &'a Model,
    sink: &'a mut (dyn SpanSink + 'a),
    /// The operations that are written down.
    pub wanted: Wanted,
    /// Spans given out.
    pub spans: u64,
    strands: Vec<StrandNote>,
    visits: Vec<VisitNote>,
    underway: Vec<Underway>,
    free: Vec<u32>,
}

impl<'a> SpanRecorder<'a> {
    /// Of so many operations, after so many others.
    pub fn new(model: &'a Model, skip: u64, operations: u64, sink: &'a mut (dyn SpanSink + 'a)) -> Self {
        Self {
            model,
            sink,
            wanted: Wanted::new(skip, operations),
            spans: 0,
            strands: Vec::new(),
            visits: Vec::new(),
            underway: Vec::new(),
            free: Vec::new(),
        }
    }

    fn note_visit(&mut self, visit: u32, note: VisitNote) {
        self::note(&mut self.visits, visit, note, VisitNote { operation: NONE, ..note });
    }

    fn note_strand(&mut self, strand: u32, note: StrandNote) {
        self::note(&mut self.strands, strand, note, note);
    }

    fn begin(&mut self, visit: u32, entry: u32) {
        let mut operation = NONE;
        if let Some(number) = self.wanted.begins() {
            let fresh = Underway { number, live: 1, ..Underway::default() };
            operation = self.free.pop().unwrap_or_else(|| {
                self.underway.push(Underway::default());
                (self.underway.len() - 1) as u32
            });
            self.underway[operation as usize] = fresh;
        }
        self.note_visit(visit, VisitNote { operation, entry, asked: NONE, answers: true, span: NONE });
    }

    /// The operation that the strand works for, if it is recorded.
    fn of(&self, strand: u32) -> Option<(StrandNote, VisitNote)> {
        let note = *self.strands.get(strand as usize)?;
        let visit = self.visits[note.visit as usize];
        (visit.operation != NONE).then_some((note, visit))
    }

    fn span(&mut self, operation: u32, parent: u32, kind: SpanKind, entry: u32, name: &Arc<str>, time: f64) -> u32 {
        let task = self.model.entries[entry as usize].task.0;
        let spans = &mut self.underway[operation as usize].spans;
        spans.push(Draft { parent, kind, task, name: Arc::clone(name), start: time, end: time, cpu: 0.0 });
        (spans.len() - 1) as u32
    }

    fn end_span(&mut self, operation: u32, span: u32, time: f64) {
        if span != NONE {
            self.underway[operation as usize].spans[span as usize].end = time;
        }
    }

    /// A request made on behalf of the strand's operation.
    fn sent(&mut self, time: f64, strand: u32, visit: u32, entry: u32, kind: SpanKind, answers: bool) {
        let Some((note, own)) = self.of(strand) else {
            return self.note_visit(visit, VisitNote { operation: NONE, entry, asked: NONE, answers, span: NONE });
        };
        let model = self.model;
        let name = Arc::clone(&model.entries[entry as usize].name);
        let parent = if note.part == NONE { note.base } else { note.part };
        let asked = self.span(own.operation, parent, kind, own.entry, &name, time);
        if kind == SpanKind::Client {
            self.strands[strand as usize].waits = asked;
        }
        self.underway[own.operation as usize].live += 1;
        self.note_visit(visit, VisitNote { operation: own.operation, entry, asked, answers, span: NONE });
    }

    /// Ends the part of its work that the strand is in; a new one begins.
    fn part(&mut self, time: f64, strand: u32, name: &str) {
        let Some((note, visit)) = self.of(strand) else { return };
        self.end_span(visit.operation, note.part, time);
        let name: Arc<str> = format!("{} {name}", self.model.entries[visit.entry as usize].name).into();
        let part = self.span(visit.operation, note.base, SpanKind::Internal, visit.entry, &name, time);
        self.strands[strand as usize].part = part;
    }

    /// All visits of an operation have ended.
    fn complete(&mut self, slot: u32) {
        let operation = std::mem::take(&mut self.underway[slot as usize]);
        self.free.push(slot);
        let spans = self.written(&operation);
        self.wanted.done += 1;
        self.spans += spans.len() as u64;
        if self.sink.trace(operation.number, &spans).is_break() {
            self.wanted.stop();
        }
    }

    fn written(&self, operation: &Underway) -> Vec<WrittenSpan> {
        let drafts = &operation.spans;
        let mut cpu: Vec<f64> = drafts.iter().map(|draft| draft.cpu).collect();
        let mut empty: Vec<bool> =
            drafts.iter().map(|own| own.kind == SpanKind::Internal && own.start == own.end && own.cpu == 0.0).collect();
        for (place, draft) in drafts.iter().enumerate().rev() {
            if draft.parent != NONE {
                if draft.kind == SpanKind::Internal {
                    cpu[draft.parent as usize] += cpu[place];
                }
                empty[draft.parent as usize] &= empty[place];
            }
        }
        let mut places: Vec<Option<usize>> = Vec::with_capacity(drafts.len());
        let mut written = Vec::with_capacity(drafts.len());
        for (place, draft) in drafts.iter().enumerate() {
            if empty[place] {
                places.push(None);
                continue;
            }
            places.push(Some(written.len()));
            let measured = !matches!(draft.kind, SpanKind::Client | SpanKind::Producer);
            written.push(WrittenSpan {
                parent: places.get(draft.parent as usize).copied().flatten(),
                kind: draft.kind,
                service: Arc::clone(&self.model.tasks[draft.task as usize].name),
                name: Arc::clone(&draft.name),
                start: nanoseconds(draft.start),
                end: nanoseconds(draft.end),
                cpu: if measured { cpu[place] } else { f64::NAN },
            });
        }
        written
    }
}

impl Probe for SpanRecorder<'_> {
    fn cycle(&mut self, _: f64, visit: u32, entry: u32) {
        self.begin(visit, entry);
    }

    fn open(&mut self, _: f64, visit: u32, entry: u32) {
        self.begin(visit, entry);
    }

    fn call(&mut self, time: f64, strand: u32, visit: u32, entry: u32, synchronous: bool) {
        let kind = if synchronous { SpanKind::Client } else { SpanKind::Producer };
        self.sent(time, strand, visit, entry, kind, synchronous);
    }

    fn forward(&mut self, time: f64, strand: u32, visit: u32, entry: u32) {
        let answers = self.of(strand).is_some_and(|(_, own)| own.answers && own.asked != NONE);
        self.sent(time, strand, visit, entry, SpanKind::Producer, answers);
        if self.of(strand).is_some_and(|(note, _)| note.group == NONE) {
            self.part(time, strand, "phase 2");
        }
    }

    fn accept(&mut self, time: f64, visit: u32, strand: u32) {
        let note = self.visits[visit as usize];
        let mut own = StrandNote { visit, base: NONE, part: NONE, waits: NONE, group: NONE, forking: NONE };
        if note.operation != NONE {
            let kind = if note.answers { SpanKind::Server } else { SpanKind::Consumer };
            let name = Arc::clone(&self.model.entries[note.entry as usize].name);
            own.base = self.span(note.operation, note.asked, kind, note.entry, &name, time);
            self.visits[visit as usize].span = own.base;
        }
        self.note_strand(strand, own);
    }

    fn slice(&mut self, _: f64, strand: u32, demand: f64) {
        let Some((note, visit)) = self.of(strand) else { return };
        let place = if note.part == NONE { note.base } else { note.part };
        self.underway[visit.operation as usize].spans[place as usize].cpu += demand;
    }

    fn reply(&mut self, time: f64, strand: u32, client: Option<u32>, last: bool) {
        let (Some(client), Some((note, visit))) = (client, self.of(strand)) else { return };
        let waits = std::mem::replace(&mut self.strands[client as usize].waits, NONE);
        self.end_span(visit.operation, waits, time);
        if !last && note.group == NONE {
            self.part(time, strand, "phase 2");
        }
    }

    fn fork(&mut self, time: f64, strand: u32, branch: u32) {
        let own = self.strands[strand as usize];
        let Some((note, visit)) = self.of(strand) else { return self.note_strand(branch, own) };
        let groups = &mut self.underway[visit.operation as usize].groups;
        if note.forking == NONE {
            let forking = groups.len() as u32;
            groups.push(Group { base: note.base, outer: note.group });
            self.end_span(visit.operation, note.part, time);
            (self.strands[strand as usize].forking, self.strands[strand as usize].part) = (forking, NONE);
        }
        let group = self.strands[strand as usize].forking;
        let name: Arc<str> = format!("{} branch", self.model.entries[visit.entry as usize].name).into();
        let base = self.span(visit.operation, note.base, SpanKind::Internal, visit.entry, &name, time);
        self.note_strand(branch, StrandNote { visit: note.visit, base, part: NONE, waits: NONE, group, forking: NONE });
    }

    fn join(&mut self, time: f64, strand: u32, goes_on: bool) {
        let Some((note, visit)) = self.of(strand) else { return };
        if note.group == NONE {
            return;
        }
        self.end_span(visit.operation, note.part, time);
        self.end_span(visit.operation, note.base, time);
        if goes_on {
            let Group { base, outer } = self.underway[visit.operation as usize].groups[note.group as usize];
            let own = &mut self.strands[strand as usize];
            (own.base, own.part, own.group, own.forking) = (base, NONE, outer, NONE);
            self.part(time, strand, "after");
        }
    }

    fn end(&mut self, time: f64, strand: u32) {
        let Some((note, visit)) = self.of(strand) else { return };
        self.end_span(visit.operation, note.part, time);
        if note.group != NONE {
            self.end_span(visit.operation, note.base, time);
        }
    }

    fn finish(&mut self, time: f64, visit: u32) {
        let note = self.visits[visit as usize];
        if note.operation == NONE {
            return;
        }
        self.end_span(note.operation, note.span, time);
        self.underway[note.operation as usize].live -= 1;
        if self.underway[note.operation as usize].live == 0 {
            self.complete(note.operation);
        }
    }

    fn satisfied(&self) -> bool {
        self.wanted.satisfied()
    }
}
