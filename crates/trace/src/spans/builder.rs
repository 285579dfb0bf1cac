//! What the readers of span formats share: the spans so far, buffers, and the count of what was odd.

mod outlet;

use std::sync::Arc;

use serde::de::MapAccess;

use crate::retained::{Attribute, SpanEvent, Status, Wanted};
use crate::spans::attributes::{Attributes, Keeping};
use crate::spans::formats::{Reference, TableMapping};
use crate::spans::ids::SpanId;
use crate::spans::json::{Scalar, ScalarInto, Shape};
use crate::spans::model::{Recorder, Span, SpanKind, Spans};
use crate::spans::pieces::Times;
use crate::spans::sampling;
use crate::spans::store::Spill;
use crate::{Operation, ReadReport, codes};
use dyelog_diagnostic::names::{Name, Names};
use dyelog_diagnostic::{Diagnostic, Place};
use outlet::{Held, Outlet};

/// So many processors at once are more than a request is worked on by.
const MOST_PARALLEL: f64 = 64.0;

/// No span takes longer: a year, in nanoseconds. An end behind it is a broken clock, or a number that was cut to what a type holds.
const LONGEST: i64 = 366 * 86_400 * 1_000_000_000;

/// The resolution of the coarsest clocks that are in use, seconds.
const COARSE: f64 = 1e-3;

/// What of a span is kept while it is read.
#[derive(Clone, Debug, Default)]
pub struct Open {
    /// Its events.
    pub events: Vec<SpanEvent>,
    /// Their attributes.
    pub event_attributes: Vec<Attribute>,
    /// Its status, as far as a member of its own says it.
    pub status: Status,
}

impl Open {
    /// Moves the times of its events by so many nanoseconds.
    pub fn move_events(&mut self, by: i64) {
        for event in &mut self.events {
            event.time = event.time.map(|time| time.saturating_add(by));
        }
    }
}

/// Collects the spans of one input.
pub struct Builder<'a> {
    /// The name of the file, for findings.
    pub file: Arc<str>,
    /// The names that spans refer to.
    pub names: &'a mut Names,
    /// The spans so far.
    pub spans: Spans,
    /// What was odd so far.
    pub report: ReadReport,
    /// A buffer for values.
    pub scalar: Scalar,
    /// What is known of the resource or process that is being read.
    pub resource: Attributes,
    /// What is known of the span that is being read.
    pub attributes: Attributes,
    /// What is known of the event that is being read.
    pub event: Attributes,
    /// What is kept of the span that is being read, but for its attributes.
    pub open: Open,
    wanted: Arc<Wanted>,
    /// The references of the span that is being read (Jaeger).
    pub(crate) references: Vec<Reference>,
    /// Spans that wait for the table of processes of their trace, with their key in it (Jaeger).
    pub(crate) waiting: Vec<(usize, Name)>,
    /// How many tables of processes were read, and may be referred to (Jaeger).
    pub(crate) open_tables: usize,
    /// Whether spans may be handed on before their document ends.
    pub(crate) within: bool,
    /// How the columns of a table are read, where it is said.
    pub(crate) table: Option<Arc<TableMapping>>,
    /// What the input holds besides or instead of spans.
    pub foreign: Option<&'static str>,
    /// Where spans may wait that memory is not to hold.
    pub(crate) spill: Option<Spill>,
    /// Spans that wait until all of their traces was read, where they do.
    held: Option<Held>,
    /// How many threads may read.
    pub(crate) threads: usize,
    /// Whether parts are handed on with names of their own, which nobody needs afterwards.
    pub(crate) passes_on: bool,
    /// Takes spans before the input ends.
    pub(crate) outlet: Option<Outlet<'a>>,
    /// How many it took.
    handed_on: usize,
    /// Whether the input ended in the middle.
    pub(crate) is_truncated: bool,
}

impl<'a> Builder<'a> {
    /// Nothing read so far.
    pub fn new(file: &str, names: &'a mut Names) -> Self {
        Self::keeping(file, names, &Arc::default())
    }

    /// Nothing read so far; keeps what is wanted.
    pub fn keeping(file: &str, names: &'a mut Names, wanted: &Arc<Wanted>) -> Self {
        Self::of_part(&file.into(), names, wanted)
    }

    /// Nothing read so far of a part of an input that others read as well.
    pub(crate) fn of_part(file: &Arc<str>, names: &'a mut Names, wanted: &Arc<Wanted>) -> Self {
        let keeping = |keys| Attributes::keeping(wanted.spans.then(|| Keeping::new(keys)));
        Self {
            file: Arc::clone(file),
            names,
            spans: Spans { files: vec![Arc::clone(file)], kept: wanted.spans.then(Box::default), ..Spans::default() },
            report: ReadReport::default(),
            scalar: Scalar::default(),
            resource: keeping(&wanted.resources),
            attributes: keeping(&wanted.attributes),
            event: keeping(&wanted.event_attributes),
            open: Open::default(),
            wanted: Arc::clone(wanted),
            references: Vec::new(),
            waiting: Vec::new(),
            open_tables: 0,
            within: false,
            table: None,
            foreign: None,
            spill: None,
            held: None,
            threads: 1,
            passes_on: false,
            outlet: None,
            handed_on: 0,
            is_truncated: false,
        }
    }

    /// How many spans were read so far.
    pub fn count(&self) -> usize {
        self.handed_on + self.spans.spans.len()
    }

    /// The place of a span in the input.
    pub fn place(&self, id: SpanId) -> Place {
        Place::Item { file: Arc::clone(&self.file), item: format!("span {}", self.spans.span_text(id)) }
    }

    /// Counts a value of another type than the format says. `null` stands for nothing and is fine.
    pub fn expect(&mut self, wanted: Shape, found: Shape, what: &'static str) {
        if found == wanted || found == Shape::Null {
            return;
        }
        let file = Arc::clone(&self.file);
        self.report.count("value of a wrong type", || {
            Diagnostic::warning(
                codes::WRONG_TYPE,
                Place::Item { file, item: what.to_owned() },
                format!("`{what}` is {}, not {}: it was left out", with_article(found), with_article(wanted)),
            )
        });
    }

    /// Takes a finished span: `start` and `end` as read, `None` where they are missing.
    pub fn finish(&mut self, span: Span, start: Option<i64>, end: Option<i64>) {
        self.report.records += 1;
        self.add(span, start, end);
    }

    /// Takes a finished span whose records were counted as they were read.
    pub fn add(&mut self, span: Span, start: Option<i64>, end: Option<i64>) {
        if !self.has_identifier(&span) {
            return;
        }
        self.spans.spans.push(span);
        if self.set_times(self.spans.spans.len() - 1, Times { start, end, ..Times::default() }) {
            self.close();
        } else {
            self.spans.spans.pop();
        }
    }

    /// Whether a span can be told from others; counts one that cannot.
    pub(crate) fn has_identifier(&mut self, span: &Span) -> bool {
        if span.trace.is_some() && span.id.is_some() {
            return true;
        }
        let place = Place::File { file: Arc::clone(&self.file) };
        self.report.count("span without an identifier", || {
            Diagnostic::warning(codes::NO_SPAN_ID, place, "a span without a trace or span identifier was left out")
        });
        false
    }

    /// Gives a span its times; false where it has none, so that it is to be left out.
    pub(crate) fn set_times(&mut self, index: usize, times: Times) -> bool {
        let mut span = self.spans.spans[index];
        let id = span.id;
        match (times.start, times.end) {
            (Some(start), Some(end)) if end < start => {
                self.ends_before_it_starts(id);
                (span.start, span.end) = (start, start);
            }
            (Some(start), Some(end)) if end.saturating_sub(start) > LONGEST => {
                (span.start, span.end, span.endless) = (start, start, true);
                let (place, years) = (self.place(id), end.saturating_sub(start) / LONGEST);
                self.report.count("span that ends years after it starts", || {
                    Diagnostic::warning(
                        codes::NO_SPAN_END,
                        place,
                        format!("this span ends {years} years after it starts"),
                    )
                    .with_note("its end is taken as not recorded, and its duration as zero")
                });
            }
            (Some(start), Some(end)) => (span.start, span.end) = (start, end),
            (Some(time), None) | (None, Some(time)) => {
                (span.start, span.end) = (time, time);
                span.endless = true;
                let place = self.place(id);
                self.report.count("span without an end", || {
                    Diagnostic::warning(codes::NO_SPAN_END, place, "this span has only one time")
                        .with_note("its duration is taken as zero unless another record of it tells more")
                });
            }
            (None, None) => {
                let place = self.place(id);
                self.report.count("span without times", || {
                    Diagnostic::warning(codes::NO_TIMES, place, "a span without times was left out")
                });
                return false;
            }
        }
        self.much_cpu(&span);
        self.spans.spans[index] = span;
        true
    }

    /// Counts a span whose end lies before its start.
    pub(crate) fn ends_before_it_starts(&mut self, id: SpanId) {
        let place = self.place(id);
        self.report.count("span that ends before it starts", || {
            Diagnostic::warning(codes::NEGATIVE_DURATION, place, "this span ends before it starts")
                .with_note("its duration is taken as zero")
        });
    }

    /// Takes an attribute of the span that is being read, whose value is in the buffer.
    pub(crate) fn attribute(&mut self, key: &str) {
        let Self { attributes, scalar, names, .. } = self;
        attributes.offer(key, scalar, names);
    }

    /// Counts a span with more CPU time than a machine could have given it.
    fn much_cpu(&mut self, span: &Span) {
        let duration = span.duration() as f64 / 1e9;
        // Short spans are no longer than the resolution of some clocks.
        if span.endless || span.cpu.is_nan() || span.cpu <= MOST_PARALLEL * (duration + COARSE) {
            return;
        }
        let (place, cpu) = (self.place(span.id), span.cpu);
        self.report.count("CPU time far above the duration", || {
            let message = format!("this span has {cpu} s of CPU time in {duration} s");
            Diagnostic::warning(codes::MUCH_CPU, place, message)
                .with_note("it counts as it is, and makes its service busier than it can have been")
                .with_hint("the attribute is in seconds; the suffixes `_ms`, `_us` and `_ns` tell other units")
        });
    }

    /// What of spans is kept, to be shared.
    pub(crate) fn wanted_by(&self) -> Arc<Wanted> {
        Arc::clone(&self.wanted)
    }

    /// What of spans is kept.
    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Another span begins.
    pub fn open(&mut self) {
        self.attributes.clear();
        self.open.events.clear();
        self.open.event_attributes.clear();
        self.open.status = Status::Unset;
    }

    /// Keeps what is wanted of the span that was taken last.
    pub(crate) fn close(&mut self) {
        if let Some(span) = self.spans.spans.last_mut() {
            span.failed |= self.open.status == Status::Error;
        }
        let (Some(kept), Some(own)) = (&mut self.spans.kept, &mut self.attributes.keeping) else { return };
        if self.open.status == Status::Unset {
            self.open.status = own.status;
        }
        let Open { events, event_attributes, status } = &mut self.open;
        kept.close(*status, &mut own.attributes, events, event_attributes);
    }

    /// An event of the span ends, of which attributes were read into `event`.
    pub fn close_event(&mut self, name: Name, time: Option<i64>) {
        let Some(own) = &mut self.event.keeping else { return };
        if self.wanted.events {
            let event = SpanEvent::new(name, time, self.open.event_attributes.len(), own.attributes.len());
            self.open.events.push(event);
            self.open.event_attributes.append(&mut own.attributes);
        }
    }

    /// Keeps what is wanted of the resource that was read last; gives its number.
    pub fn keep_resource(&mut self) -> u32 {
        match (&mut self.spans.kept, &mut self.resource.keeping) {
            (Some(kept), Some(own)) => kept.resource(&mut own.attributes),
            _ => 0,
        }
    }

    /// Says of which resource spans are.
    pub fn belongs(&mut self, spans: std::ops::Range<usize>, resource: u32) {
        if let Some(kept) = &mut self.spans.kept {
            kept.belongs(spans, resource);
        }
    }

    /// Forgets the spans and links behind the first so many.
    pub fn truncate(&mut self, (spans, links): (usize, usize)) {
        self.spans.spans.truncate(spans);
        self.spans.links.truncate(links);
        self.waiting.retain(|(index, _)| *index < spans);
        if let Some(kept) = &mut self.spans.kept {
            kept.truncate(spans);
        }
    }

    /// Forgets the spans that are said to be gone, one after the other.
    pub(crate) fn leave_out(&mut self, gone: &[bool]) {
        self.spans.leave_out(gone);
    }

    /// The input ends in the middle: forgets spans of which it does not say any more who recorded them.
    pub fn ends_early(&mut self) {
        self.is_truncated = true;
        if let Some(first) = self.waiting.iter().map(|(index, _)| *index).min() {
            self.truncate((first, self.spans.links.len()));
        }
    }

    /// Reports the attributes that were left out since the last time.
    pub fn count_composites(&mut self) {
        let all = [&mut self.attributes, &mut self.resource, &mut self.event].into_iter();
        let count = all.filter_map(|it| it.keeping.as_mut()).map(|own| std::mem::take(&mut own.composite)).sum();
        if count > 0 {
            self.report.tally("attribute that is a list or a map", count);
        }
    }

    /// The spans and what there is to say about them.
    pub fn finish_input(mut self) -> (Spans, ReadReport, Option<&'static str>) {
        self.count_composites();
        let [attributes, resource, event] = [self.attributes, self.resource, self.event].map(|it| it.keeping);
        if let (Some(kept), Some(attributes), Some(resource), Some(event)) =
            (&mut self.spans.kept, attributes, resource, event)
        {
            let seen = Arc::make_mut(&mut kept.seen);
            seen.attributes.extend(attributes.seen);
            seen.resources.extend(resource.seen);
            seen.event_attributes.extend(event.seen);
        }
        (self.spans, self.report, self.foreign)
    }

    /// Reads the value of a member that is a text or a number into the buffer; counts one that is neither.
    pub(crate) fn read_scalar<'de, A: MapAccess<'de>>(
        &mut self,
        map: &mut A,
        what: &'static str,
    ) -> Result<&mut Self, A::Error> {
        let shape = map.next_value_seed(ScalarInto(&mut self.scalar))?;
        if matches!(shape, Shape::Array | Shape::Object | Shape::Bool) {
            self.expect(Shape::Text, shape, what);
        }
        Ok(self)
    }

    /// Interns the buffered scalar where it is a text.
    pub fn intern_scalar(&mut self) -> Name {
        match self.scalar.text() {
            Some(text) => self.names.intern(text),
            None => Name::NONE,
        }
    }

    /// Gives a span what its own attributes tell, but keeps the service that its record names.
    pub fn apply_attributes_but_service(&mut self, span: &mut Span) {
        let service = span.service;
        self.apply_attributes(span);
        span.service = service;
    }

    /// Gives a span what its own attributes tell.
    pub fn apply_attributes(&mut self, span: &mut Span) {
        if span.kind == SpanKind::Unspecified {
            span.kind = self.attributes.kind;
        }
        // Who names a database asks it, whatever its span is called.
        if matches!(span.kind, SpanKind::Unspecified | SpanKind::Internal) && self.attributes.names_database() {
            span.kind = SpanKind::Client;
        }
        span.messaging = self.attributes.messaging();
        span.route = self.names.intern(self.attributes.route());
        span.cpu = self.attributes.cpu;
        span.failed |= self.attributes.outcome.failed(span.kind);
        span.retry |= self.attributes.outcome.retry;
        // A span's own attributes tell more than its trace state, and that more than its resource.
        let told = [self.attributes.sampling.weight(), span.weight, self.resource.sampling.weight()];
        let chosen = self.attributes.sampling.chosen || self.resource.sampling.chosen;
        // A sampler without a probability tells less than any of them.
        let known = told.into_iter().find(|weight| !weight.is_nan() && Operation::limit_of(*weight).is_none());
        let told = known.or(told.into_iter().find(|weight| !weight.is_nan())).unwrap_or(span.weight);
        span.weight = if chosen { sampling::CHOSEN } else { told };
        if let Some(seconds) = self.attributes.bad_cpu.take() {
            let place = self.place(span.id);
            self.report.count("CPU time that is negative", || {
                Diagnostic::warning(codes::BAD_CPU, place, format!("a CPU time of {seconds} s is left out"))
                    .with_hint("take it as the difference of a counter at the end and at the start of the span")
            });
        }
        if span.kind.calls() || span.kind == SpanKind::Unspecified {
            span.peer = self.names.intern(self.attributes.peer(self.names.text(span.name)));
        }
        if !self.attributes.service().is_empty() {
            span.service = self.names.intern(self.attributes.service());
        }
    }

    /// Who the span's own attributes say that recorded it.
    pub fn own_recorder(&mut self) -> Recorder {
        recorder(&self.attributes, self.names)
    }

    /// Who the resource says that recorded its spans.
    pub fn resource_recorder(&mut self) -> Recorder {
        recorder(&self.resource, self.names)
    }
}

fn recorder(attributes: &Attributes, names: &mut Names) -> Recorder {
    Recorder {
        service: names.intern(attributes.service()),
        instance: names.intern(attributes.instance()),
        host: names.intern(attributes.host()),
        machine: names.intern(attributes.machine()),
        environment: names.intern(attributes.environment()),
        namespace: names.intern(attributes.namespace()),
        cores: attributes.placement.cores(),
    }
}

fn with_article(shape: Shape) -> &'static str {
    match shape {
        Shape::Null => "nothing",
        Shape::Bool => "a truth value",
        Shape::Whole | Shape::Float => "a number",
        Shape::Text => "a string",
        Shape::Array => "an array",
        Shape::Object => "an object",
    }
}
