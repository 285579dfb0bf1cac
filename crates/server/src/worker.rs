//! The worker: reads the journal, gathers traces, folds them and writes checkpoints.
//!
//! What it does is a function of the journal. After a crash it begins where the last checkpoint stood: spans that were open then are
//! read again from the journal, all that came later is new.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use dyelog::lqn::submodel::SubModel;
use dyelog::trace::protobuf::Malformed;
use dyelog::trace::spans::Deployment;

use crate::ahead::Ahead;
use crate::aside::{Aside, Why};
use crate::assemble::{Assembler, Gathering, Nanos, Place};
use crate::counts::Counts;
use crate::deployment::{Seen, Selection};
use crate::fold::Folding;
use crate::journal::medium::Medium;
use crate::journal::{Kind, Reader, Record, damaged};
use crate::late::{self, Answers};
use crate::meter::Meter;
use crate::recent::Recent;
use crate::service::WRONG;
use crate::spans::{NoIdentifier, SpanBytes, each_span};
use crate::store::exemplars::{Exemplar, witnesses};
use crate::store::{Checkpoint, Progress, Store, StoreError, Uptime};

/// How the worker works.
#[derive(Clone, Debug)]
pub struct Working {
    /// How traces are gathered.
    pub gathering: Gathering,
    /// How they are folded.
    pub folding: Folding,
    /// The time between checkpoints.
    pub checkpoint: Nanos,
    /// How many bytes of traces are folded together at most.
    pub batch_bytes: usize,
    /// How long intervals are kept.
    pub retention: Nanos,
    /// The environment and the namespace of which spans and metrics are taken, beside those that name none; of any, unless it is said.
    pub deployment: Deployment,
}

const SECOND: Nanos = 1_000_000_000;
/// A checkpoint comes so often where nothing else does: it tells that the server was up.
const IDLE: Nanos = 10 * SECOND;
/// How long spans are on their way at most: SDKs and collectors send what they have every five seconds each.
const ON_ITS_WAY: Nanos = 10 * SECOND;
/// How long nothing must have come of a trace that is complete, unless told otherwise. SDKs send what they have every five seconds: the spans of
/// what an operation called may come so much later than its own.
pub const GRACE: Nanos = 6 * SECOND;

impl Default for Working {
    fn default() -> Self {
        let gathering = Gathering { grace: GRACE, limit: 30 * SECOND, most_bytes: 56 << 20 };
        Self {
            gathering,
            folding: Folding::default(),
            checkpoint: 2 * SECOND,
            batch_bytes: 4 << 20,
            retention: 2 * 365 * 24 * 3600 * SECOND,
            deployment: Deployment::default(),
        }
    }
}

/// How many entries of sub-models wait for a checkpoint: each has its stays with it.
const MOST_ENTRIES: usize = 8192;

/// How many bytes a trace may take that is kept.
const EXEMPLAR_BYTES: usize = 64 << 10;

/// Why the worker stops.
#[derive(Debug)]
#[non_exhaustive]
pub enum WorkerError {
    /// The journal cannot be read.
    Journal(io::Error),
    /// The store cannot be read or written.
    Store(StoreError),
}

impl fmt::Display for WorkerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Journal(error) => write!(f, "{error}"),
            Self::Store(error) => write!(f, "the store cannot be used: {error}"),
        }
    }
}

impl std::error::Error for WorkerError {}

impl From<io::Error> for WorkerError {
    fn from(error: io::Error) -> Self {
        Self::Journal(error)
    }
}

impl From<StoreError> for WorkerError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// 2000-01-01, nanoseconds since 1970. What says that it is older has no clock.
pub(crate) const EARLIEST: u64 = 946_684_800_000_000_000;
/// How far a clock may be ahead.
pub(crate) const AHEAD: u64 = 24 * 3600 * 1_000_000_000;

/// Follows the journal.
pub struct Worker<M: Medium> {
    working: Working,
    medium: M,
    reader: Reader<M>,
    selection: Selection,
    /// Which services were seen in which deployments since the last checkpoint.
    seen: Seen,
    assembler: Assembler,
    recent: Recent,
    meter: Meter,
    counts: Counts,
    /// How many spans came up to here.
    number: u64,
    clock: Nanos,
    /// The time of the last checkpoint.
    checkpointed: Nanos,
    /// What was folded since the last checkpoint.
    submodels: BTreeMap<u64, (SubModel, u64)>,
    merge: String,
    /// Who was found to answer whom late.
    answers: Answers,
    /// Spans that were set aside since then.
    aside: Aside,
    /// Services whose clocks are ahead.
    ahead: Ahead,
    /// Traces to be kept of it.
    exemplars: Vec<Exemplar>,
    /// Since when it follows what comes, and up to when the store has that.
    since: Option<(Nanos, Option<Nanos>)>,
    /// Whether anything came since the last checkpoint.
    changed: bool,
    /// Whether the clock came back since then.
    set_back: bool,
    /// How many spans were open at the last checkpoint that the journal no longer has.
    lost: u64,
}

impl<M: Medium> Worker<M> {
    /// Takes up where the store's last checkpoint stood.
    ///
    /// # Errors
    /// When the store or the journal cannot be read.
    pub fn new(working: Working, medium: M, store: &Store) -> Result<Self, WorkerError> {
        let progress = store.progress()?;
        let first = medium.segments()?.first().copied().unwrap_or(progress.position);
        if first > progress.position {
            return Err(damaged(&format!(
                "it begins at {first}, but the store read it only up to {}",
                progress.position
            ))
            .into());
        }
        let mut recent = Recent::default();
        store.recent(|number, digests| recent.restore(number, digests))?;
        let selection = Selection::of(working.deployment.clone());
        let mut meter = Meter::of(selection.clone());
        store.standings(|key, standing| meter.restore(key, standing))?;
        let mut worker = Self {
            reader: Reader::at(medium.clone(), progress.position),
            medium: medium.clone(),
            selection,
            seen: Seen::default(),
            assembler: Assembler::new(working.gathering.clone(), working.folding.grouping.clone()),
            recent,
            meter,
            counts: progress.counts,
            number: progress.number,
            clock: progress.clock,
            checkpointed: progress.clock,
            submodels: BTreeMap::new(),
            merge: String::new(),
            answers: Answers::new(),
            aside: Aside::default(),
            ahead: Ahead::default(),
            exemplars: Vec::new(),
            since: None,
            changed: false,
            set_back: false,
            lost: 0,
            working,
        };
        if first > progress.low.0 {
            // It was begun anew where the store stands.
            worker.lost = progress.open.len() as u64;
            worker.counts.set_aside += worker.lost;
            worker.aside.add(None, worker.clock, Why::Lost, worker.lost);
            worker.changed = worker.lost > 0;
        } else {
            worker.reopen(Reader::at(medium, progress.low.0), &progress)?;
        }
        Ok(worker)
    }

    /// Begins anew where the store's last checkpoint stood, as after a crash.
    ///
    /// # Errors
    /// When the store or the journal cannot be read. It is as it was then.
    pub fn take_up(&mut self, store: &Store) -> Result<(), WorkerError> {
        *self = Self::new(self.working.clone(), self.medium.clone(), store)?;
        Ok(())
    }

    /// Reads again the spans that were open at the last checkpoint.
    fn reopen(&mut self, mut reader: Reader<M>, progress: &Progress) -> Result<(), WorkerError> {
        let mut open = progress.open.iter().copied().peekable();
        let mut number = progress.low.1;
        while open.peek().is_some()
            && let Some((position, record)) = reader.next(progress.position)?
        {
            if record.kind != Kind::Traces {
                continue;
            }
            let place = Place { position, number };
            // What is malformed was refused before it came to the journal.
            let _: Result<(), Malformed> = each_span(&record.payload, |resource, span| {
                if let Ok(span) = span
                    && open.next_if_eq(&number).is_some()
                {
                    let is_taken = self.assembler.take(&span, resource, number, place, record.received);
                    // They are of no more services than were told apart when they came.
                    debug_assert!(is_taken, "an open span is of one service too many");
                }
                number += 1;
            });
        }
        Ok(())
    }

    /// How many spans were open at the last checkpoint that the journal no longer has. They count as set aside.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Where the next record begins.
    pub fn position(&self) -> u64 {
        self.reader.position()
    }

    /// The counts as they are now.
    pub fn counts(&self) -> Counts {
        let folded: u64 = self.submodels.values().map(|(_, spans)| spans).sum();
        let incomplete_traces = self.counts.incomplete_traces + self.assembler.incomplete;
        Counts { open: self.assembler.spans(), folded: self.counts.folded + folded, incomplete_traces, ..self.counts }
    }

    /// Services with too many names of operations: of how many spans, and the last such name.
    pub fn offending(&self) -> &BTreeMap<String, (u64, String)> {
        self.assembler.offending()
    }

    /// Spans of services beyond [`SERVICES`](crate::offenders::SERVICES): how many, and the name of the last service.
    pub fn other_services(&self) -> Option<&(u64, String)> {
        self.assembler.other_services()
    }

    /// Services whose clocks are ahead.
    pub fn ahead(&self) -> &Ahead {
        &self.ahead
    }

    /// How many series of metrics there are, and the last metric that found no room among them.
    pub fn series(&self) -> (usize, Option<&str>) {
        (self.meter.series(), self.meter.no_room())
    }

    /// All performance data was deleted: that of metrics, which spans came, and when there was any.
    pub fn forget(&mut self) {
        self.since = None;
        self.recent = Recent::default();
        self.meter = Meter::of(self.selection.clone());
        (self.counts.no_room_points, self.counts.no_room) = (0, None);
    }

    /// How many traces are open, and how many bytes all spans take that are not folded yet.
    pub fn open(&self) -> (usize, usize) {
        (self.assembler.traces(), self.assembler.bytes())
    }

    /// Takes the next record in, if it ends at or before `end`; whether there was one.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn step(&mut self, end: u64) -> Result<bool, WorkerError> {
        let Some((position, record)) = self.reader.next(end)? else { return Ok(false) };
        self.changed = true;
        self.pass(record.received);
        match record.kind {
            Kind::Traces => self.traces(position, &record),
            Kind::Metrics => self.metrics(&record),
        }
        self.fold_as_it_comes();
        Ok(true)
    }

    fn metrics(&mut self, record: &Record) {
        let points = self.meter.take(&record.payload, record.received);
        let counts = &mut self.counts;
        counts.metric_requests += 1;
        counts.metric_points += points.received;
        counts.used_points += points.used;
        counts.late_points += points.late;
        counts.set_aside_points += points.set_aside;
        counts.no_room_points += points.no_room;
        counts.no_value_points += points.no_value;
        counts.refused_points += points.refused;
        if points.no_room > 0 {
            let first = counts.no_room.map_or(record.received, |(first, _)| first);
            counts.no_room = Some((first, record.received));
        }
    }

    fn traces(&mut self, position: u64, record: &Record) {
        let Self { assembler, selection, seen, recent, counts, number, clock, aside, ahead, .. } = self;
        let place = Place { position, number: *number };
        // What is malformed was refused before it came to the journal.
        let _: Result<(), Malformed> = each_span(&record.payload, |resource, span| {
            counts.received += 1;
            match span {
                Err(NoIdentifier) => counts.refused += 1,
                Ok(span) if !recent.take(span.fingerprint) => counts.duplicate += 1,
                Ok(span) if !selection.takes(resource) => {
                    counts.set_aside += 1;
                    counts.other_environment += 1;
                    let time = (impossible(&span, *clock) != Some(Why::NoTime)).then_some(span.start);
                    aside.add(time, *clock, Why::Environment, 1);
                }
                Ok(span) => {
                    ahead.look(resource, span.end, *clock);
                    match impossible(&span, *clock) {
                        Some(why) => {
                            counts.set_aside += 1;
                            aside.add((why != Why::NoTime).then_some(span.start), *clock, why, 1);
                        }
                        None if assembler.take(&span, resource, *number, place, *clock) => {
                            seen.look(resource, span.start);
                        }
                        None => {
                            counts.set_aside += 1;
                            aside.add(Some(span.start), *clock, Why::Services, 1);
                        }
                    }
                }
            }
            *number += 1;
        });
    }

    /// Lets time pass: `now`, nanoseconds since 1970.
    pub fn advance(&mut self, now: Nanos) {
        self.pass(now);
        self.since.get_or_insert((self.clock, None));
        self.fold_as_it_comes();
    }

    /// It is that late, unless it was later already. Where it was far later, the clock was wrong: what waits by it waits no longer.
    fn pass(&mut self, now: Nanos) {
        if now.saturating_add(WRONG) >= self.clock {
            self.clock = self.clock.max(now);
            return;
        }
        self.give_out_all();
        self.counts.set_back += 1;
        self.counts.set_back_at = Some((now, self.clock));
        (self.clock, self.checkpointed, self.since) = (now, now, None);
        (self.set_back, self.changed) = (true, true);
    }

    /// Nothing could be taken in up to now, since the journal cannot be written.
    pub fn interrupted(&mut self) {
        self.since = None;
    }

    /// Gives out traces, and folds them where that is a batch.
    fn fold_as_it_comes(&mut self) {
        while self.assembler.advance(self.clock, self.working.batch_bytes) {
            self.fold();
        }
        if self.assembler.ready_bytes() >= self.working.batch_bytes {
            self.fold();
        }
    }

    /// Whether it is time for a checkpoint.
    pub fn is_due(&self) -> bool {
        let waiting = self.changed || self.assembler.ready_bytes() > 0 || !self.submodels.is_empty();
        let time = if waiting { self.working.checkpoint } else { IDLE };
        waiting && self.is_full() || self.clock.saturating_sub(self.checkpointed) >= time
    }

    /// Whether sub-models take so much memory that they are not to wait for others.
    fn is_full(&self) -> bool {
        self.submodels.values().map(|(sum, _)| sum.entries().len()).sum::<usize>() > MOST_ENTRIES
    }

    /// Gives out all traces, whether they are complete or not.
    pub fn give_out_all(&mut self) {
        while self.assembler.give_out_beyond(0, self.working.batch_bytes) {
            self.fold();
        }
    }

    /// Folds what is ready.
    pub fn fold(&mut self) {
        for ((start, is_rest), batch) in self.assembler.take_ready() {
            for (answer, seen) in late::answers(&self.working.folding, &batch) {
                *self.answers.entry(answer).or_default() += seen;
            }
            if is_rest {
                self.counts.late_parts += batch.traces;
                self.counts.late_spans += batch.spans;
            }
            self.aside.add(Some(start), self.clock, Why::Halved, batch.halved);
            let Some(mut folded) = self.working.folding.fold(batch.request()) else {
                self.counts.set_aside += batch.spans;
                self.aside.add(Some(start), self.clock, Why::Unread, batch.spans);
                continue;
            };
            let spans = folded.spans.min(batch.spans);
            self.counts.set_aside += batch.spans - spans;
            self.aside.add(Some(start), self.clock, Why::Unread, batch.spans - spans);
            self.merge = folded.merge;
            if is_rest {
                late::without_load(&mut folded.submodel);
            }
            let kept = batch.of_traces(&witnesses(&folded.submodel), EXEMPLAR_BYTES);
            self.exemplars.extend(kept.into_iter().map(|(trace, request)| Exemplar { start, trace, request }));
            let (sum, count) = self.submodels.entry(start).or_default();
            sum.merge(&folded.submodel);
            *count += spans;
        }
    }

    /// Since when all operations are in sub-models, and up to when.
    fn uptime(&self) -> Option<Uptime> {
        let gathering = &self.working.gathering;
        // Traces that lack a span are folded last.
        let waits = if self.assembler.spans() > 0 { gathering.grace.max(gathering.limit) } else { 0 };
        let end = self.clock.saturating_sub(waits).saturating_sub(ON_ITS_WAY);
        let (begin, written) = self.since?;
        (written.unwrap_or(begin) < end).then_some(Uptime { written, begin, end })
    }

    /// Folds what is ready, and writes where it stands; gives the position before which the journal is no longer needed.
    ///
    /// # Errors
    /// When the store cannot be written. Nothing is lost then: the next checkpoint brings it.
    pub fn checkpoint(&mut self, store: &mut Store) -> Result<u64, WorkerError> {
        self.fold();
        let counts = self.counts();
        let (open, low) = self.assembler.still_open();
        let here = (self.position(), self.number);
        let low = low.map_or(here, |place| (place.position, place.number));
        let progress = Progress { position: here.0, number: here.1, low, open, clock: self.clock, counts };
        let submodels: Vec<(u64, SubModel, u64)> =
            std::mem::take(&mut self.submodels).into_iter().map(|(start, (sum, spans))| (start, sum, spans)).collect();
        let expired = self.recent.expired();
        let checkpoint = Checkpoint {
            progress: &progress,
            submodels: &submodels,
            recent: self.recent.next_row(),
            expired,
            merge: &self.merge,
            exemplars: &self.exemplars,
            answers: &self.answers,
            aside: &self.aside,
            deployed: &self.seen,
            uptime: self.uptime(),
            totals: &self.meter.fresh(),
            set_back: self.set_back,
        };
        if let Err(error) = store.commit(&checkpoint) {
            self.submodels = submodels.into_iter().map(|(start, sum, spans)| (start, (sum, spans))).collect();
            return Err(error.into());
        }
        if let (Some((_, written)), Some(uptime)) = (&mut self.since, checkpoint.uptime) {
            *written = Some(uptime.end);
        }
        self.exemplars.clear();
        self.answers.clear();
        self.aside.stored();
        self.seen.stored();
        self.recent.stored(expired);
        self.meter.stored();
        self.counts = Counts { open: 0, ..counts };
        self.assembler.incomplete = 0;
        self.assembler.tidy();
        self.checkpointed = self.clock;
        (self.changed, self.set_back) = (false, false);
        Ok(low.0)
    }

    /// How long intervals are kept.
    pub fn retention(&self) -> Nanos {
        self.working.retention
    }

    /// The time that was reached.
    pub fn clock(&self) -> Nanos {
        self.clock
    }
}

/// Why a span is set aside that does not start and end at times at which something can have happened, in this order.
fn impossible(span: &SpanBytes<'_>, now: Nanos) -> Option<Why> {
    let latest = now.saturating_add(AHEAD);
    if span.start < EARLIEST || span.start > latest {
        Some(Why::NoTime)
    } else if span.end < span.start {
        Some(Why::Backwards)
    } else {
        (span.end > latest).then_some(Why::Ahead)
    }
}
