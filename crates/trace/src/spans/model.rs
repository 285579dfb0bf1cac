//! Spans as every reader gives them: small records that refer to interned names.

use std::cmp::Ordering;
use std::sync::Arc;

use rustc_hash::FxHashMap;

pub use crate::recorded::SpanKind;
use crate::retained::Kept;
use crate::spans::ids::{SpanId, TraceId};
use crate::spans::sampling;
use dyelog_diagnostic::Place;
use dyelog_diagnostic::names::{Name, Names};

/// What the messaging attributes say that a span does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Messaging {
    /// Nothing about messages.
    #[default]
    None,
    /// Sends or creates a message.
    Send,
    /// Waits for messages: idle time.
    Receive,
    /// Works on a message.
    Process,
}

impl Messaging {
    /// All of them. Saved spans name them by their places here.
    pub(super) const ALL: [Self; 4] = [Self::None, Self::Send, Self::Receive, Self::Process];
}

/// A reference to a span of this or another trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// The trace of the span that is referred to.
    pub trace: TraceId,
    /// The span that is referred to.
    pub span: SpanId,
}

/// One span. Times are nanoseconds from the epoch of the file.
#[expect(clippy::struct_excessive_bools, reason = "facts of a span, each of which holds by itself")]
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Its file, in [`Spans::files`].
    pub file: u32,
    /// The trace it belongs to.
    pub trace: TraceId,
    /// Its identifier, unique within the trace but for shared ids and duplicates.
    pub id: SpanId,
    /// The span that caused it; [`SpanId::NONE`] for a root.
    pub parent: SpanId,
    /// Start.
    pub start: i64,
    /// End; never before the start.
    pub end: i64,
    /// Measured CPU time in seconds; NaN where not given.
    pub cpu: f64,
    /// The service that recorded it.
    pub service: Name,
    /// The instance of the service, where it is recorded.
    pub instance: Name,
    /// The machine, where it is recorded. Spans of one machine share a clock.
    pub host: Name,
    /// The machine whose processors it had, where that is recorded.
    pub machine: Name,
    /// The environment that its service was deployed to, where that is recorded. Only what takes spans as they are read looks at it.
    pub environment: Name,
    /// The namespace of its service, the same.
    pub namespace: Name,
    /// How many cores its service may use there, in thousandths; 0 where not told.
    pub cores: u32,
    /// What it does: a method, an endpoint, a destination.
    pub name: Name,
    /// The route that the instrumentation tells, with places for identifiers: `/user/{name}`.
    pub route: Name,
    /// The service at the other side, as well as the span's attributes tell it.
    pub peer: Name,
    /// First of its links in [`Spans::links`].
    pub first_link: u32,
    /// How many links it has.
    pub links: u32,
    /// Its part in a communication.
    pub kind: SpanKind,
    /// What it does with messages.
    pub messaging: Messaging,
    /// Whether the parent does not wait for it (FOLLOWS_FROM).
    pub follows: bool,
    /// Whether the parent is known to be in another process.
    pub remote: bool,
    /// Whether its end was not recorded.
    pub endless: bool,
    /// Whether it stands in place of a span that was lost.
    pub lost: bool,
    /// Whether it works on a message whose sender was not recorded.
    pub unlinked: bool,
    /// Whether, of such, nothing was recorded of the trace of its sender.
    pub apart: bool,
    /// Whether it may have waited for a service that records no spans, without a span of its call.
    pub may_wait: bool,
    /// How many messages it works on, where it is linked to them; 0 elsewhere.
    pub batch: u32,
    /// Whether it failed.
    pub failed: bool,
    /// Whether it is made once more, after another that failed.
    pub retry: bool,
    /// How many operations the one that it begins stands for; NaN where that is not known.
    pub weight: f64,
    /// What its reader notes of it until all of its trace was read.
    pub note: Name,
}

impl Default for Span {
    fn default() -> Self {
        Self {
            file: 0,
            trace: TraceId::NONE,
            id: SpanId::NONE,
            parent: SpanId::NONE,
            start: 0,
            end: 0,
            cpu: f64::NAN,
            service: Name::NONE,
            instance: Name::NONE,
            host: Name::NONE,
            machine: Name::NONE,
            environment: Name::NONE,
            namespace: Name::NONE,
            cores: 0,
            name: Name::NONE,
            route: Name::NONE,
            peer: Name::NONE,
            first_link: 0,
            links: 0,
            kind: SpanKind::Unspecified,
            messaging: Messaging::None,
            follows: false,
            remote: false,
            endless: false,
            lost: false,
            unlinked: false,
            apart: false,
            may_wait: false,
            batch: 0,
            failed: false,
            retry: false,
            weight: sampling::UNKNOWN,
            note: Name::NONE,
        }
    }
}

impl Span {
    /// Duration in nanoseconds.
    pub fn duration(&self) -> i64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether it sends a message.
    pub fn sends_message(&self) -> bool {
        self.kind == SpanKind::Producer || self.messaging == Messaging::Send
    }

    /// Whether it works on messages.
    pub fn works_on_messages(&self) -> bool {
        self.kind == SpanKind::Consumer || self.messaging == Messaging::Process
    }

    /// Whether it only waits for messages.
    pub fn polls(&self) -> bool {
        self.messaging == Messaging::Receive
    }

    /// The clock by which its times were taken, as far as can be told. Where its machine is known, others share it ([`Clock::of_machine`]).
    pub fn clock(&self) -> Clock {
        Clock { host: self.host, service: self.service, instance: self.instance }
    }
}

/// Who recorded a span, and where.
#[derive(Clone, Copy, Debug)]
pub struct Recorder {
    /// The service.
    pub service: Name,
    /// The instance of the service.
    pub instance: Name,
    /// The machine whose clock it is.
    pub host: Name,
    /// The machine whose processors it has.
    pub machine: Name,
    /// The environment that the service was deployed to.
    pub environment: Name,
    /// The namespace of the service.
    pub namespace: Name,
    /// How many cores it may use, in thousandths; 0 where not told.
    pub cores: u32,
}

impl Recorder {
    /// Says so of a span, whatever its service.
    pub fn place(self, span: &mut Span) {
        (span.instance, span.host, span.machine, span.cores) = (self.instance, self.host, self.machine, self.cores);
        (span.environment, span.namespace) = (self.environment, self.namespace);
    }

    /// Says so of a span.
    pub fn sign(self, span: &mut Span) {
        span.service = self.service;
        self.place(span);
    }
}

/// What tells the clocks of two spans apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Clock {
    host: Name,
    service: Name,
    instance: Name,
}

impl Clock {
    /// That of a machine.
    #[cfg(test)]
    pub fn of(host: Name) -> Self {
        Self { host, service: Name::NONE, instance: Name::NONE }
    }

    /// The machine's, where it is known.
    #[must_use]
    pub fn of_machine(self) -> Self {
        if self.host.is_some() { Self { host: self.host, service: Name::NONE, instance: Name::NONE } } else { self }
    }

    /// The instance's or the service's, whatever machine it names.
    #[must_use]
    pub fn of_service(self) -> Self {
        Self { host: Name::NONE, ..self }
    }

    /// The machine that it names.
    pub fn machine(self) -> Option<Name> {
        self.host.is_some().then_some(self.host)
    }

    /// Whether it is known on which machine it is.
    pub fn names_machine(self) -> bool {
        self.host.is_some()
    }

    /// The names that tell it from others.
    pub fn texts(self, names: &Names) -> [&str; 3] {
        [self.host, self.service, self.instance].map(|name| names.text(name))
    }

    /// How it is shown.
    pub fn label(self, names: &Names) -> String {
        if self.host.is_some() {
            format!("host {}", names.text(self.host))
        } else if self.instance.is_some() {
            format!("{} ({})", names.text(self.service), names.text(self.instance))
        } else {
            names.text(self.service).to_owned()
        }
    }
}

/// The spans of one trace, as read from one file or several.
#[derive(Clone, Debug, Default)]
pub struct Spans {
    /// The names of the files.
    pub files: Vec<Arc<str>>,
    /// The spans, in the order of the files until they are assembled.
    pub spans: Vec<Span>,
    /// The links of all spans.
    pub links: Vec<Link>,
    /// The text of span identifiers that are no hexadecimal numbers.
    pub odd_spans: Arc<FxHashMap<SpanId, Arc<str>>>,
    /// The text of trace identifiers that are no hexadecimal numbers.
    pub odd_traces: Arc<FxHashMap<TraceId, Arc<str>>>,
    /// What else is kept, where anything is.
    pub kept: Option<Box<Kept>>,
}

impl Spans {
    /// No spans yet, of the same files and with the same resources.
    pub(super) fn like(&self) -> Self {
        Self {
            files: self.files.clone(),
            odd_spans: Arc::clone(&self.odd_spans),
            odd_traces: Arc::clone(&self.odd_traces),
            kept: self.kept.as_ref().map(|kept| Box::new(kept.like())),
            ..Self::default()
        }
    }

    /// Forgets all spans, but for what names and resources there are.
    pub(super) fn clear(&mut self) {
        self.spans.clear();
        self.links.clear();
        self.kept = self.kept.as_ref().map(|kept| Box::new(kept.like()));
    }

    /// Gives all names their numbers in another table, by their numbers in this one.
    pub(super) fn rename(&mut self, numbers: &[Name]) {
        for span in &mut self.spans {
            for name in [
                &mut span.service,
                &mut span.instance,
                &mut span.host,
                &mut span.machine,
                &mut span.environment,
                &mut span.namespace,
                &mut span.name,
                &mut span.route,
                &mut span.peer,
                &mut span.note,
            ] {
                *name = numbers[name.index()];
            }
        }
        if let Some(kept) = &mut self.kept {
            kept.rename(numbers);
        }
    }

    /// Forgets the spans that are said to be gone, one after the other.
    pub(super) fn leave_out(&mut self, gone: &[bool]) {
        let mut left = gone.iter();
        self.spans.retain(|_| !left.next().copied().unwrap_or(false));
        if let Some(kept) = &mut self.kept {
            kept.retain(gone);
        }
    }

    /// How much memory the spans take, in bytes, but for what they share.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Span>() * self.spans.len()
            + size_of::<Link>() * self.links.len()
            + self.kept.as_ref().map_or(0, |kept| kept.bytes())
    }

    /// Adds spans of the same files, and with the same resources.
    pub(super) fn take_in(&mut self, other: &Self) {
        let link = self.links.len() as u32;
        self.links.extend_from_slice(&other.links);
        let moved = |span: &Span| Span { first_link: span.first_link + link, ..*span };
        self.spans.extend(other.spans.iter().map(moved));
    }

    /// Adds the spans of other files, or more of the last one.
    pub(super) fn append(&mut self, other: Self) {
        if self.files.is_empty() {
            *self = other;
            return;
        }
        let place =
            |length: usize| u32::try_from(length).expect("fewer than 2^32 files, spans and links fit in memory");
        let link = place(self.links.len());
        // Batches of the same files, one after the other, name them once.
        let last = self.files.len().saturating_sub(other.files.len());
        let are_last = self.files[last..].iter().map(Arc::as_ptr).eq(other.files.iter().map(Arc::as_ptr));
        let file = place(if are_last { last } else { self.files.len() });
        if !are_last {
            self.files.extend(other.files);
        }
        self.links.extend(other.links);
        self.spans.extend(other.spans.into_iter().map(|span| Span {
            file: span.file + file,
            first_link: span.first_link + link,
            ..span
        }));
        place(self.spans.len());
        place(self.links.len());
        if self.odd_spans.is_empty() {
            self.odd_spans = other.odd_spans;
        } else if !other.odd_spans.is_empty() && !Arc::ptr_eq(&self.odd_spans, &other.odd_spans) {
            Arc::make_mut(&mut self.odd_spans).extend(other.odd_spans.iter().map(|(id, text)| (*id, Arc::clone(text))));
        }
        if self.odd_traces.is_empty() {
            self.odd_traces = other.odd_traces;
        } else if !other.odd_traces.is_empty() && !Arc::ptr_eq(&self.odd_traces, &other.odd_traces) {
            Arc::make_mut(&mut self.odd_traces)
                .extend(other.odd_traces.iter().map(|(id, text)| (*id, Arc::clone(text))));
        }
        if let (Some(own), Some(kept)) = (&mut self.kept, other.kept) {
            own.append(*kept);
        }
    }

    /// The name of a span's file.
    pub fn file_of(&self, span: &Span) -> &Arc<str> {
        &self.files[span.file as usize]
    }

    /// The place of a span in its file.
    pub fn place_of(&self, span: &Span) -> Place {
        Place::Item { file: Arc::clone(self.file_of(span)), item: format!("span {}", self.span_text(span.id)) }
    }

    /// The links of a span.
    pub fn links_of(&self, span: &Span) -> &[Link] {
        &self.links[span.first_link as usize..][..span.links as usize]
    }

    /// A span identifier as text.
    pub fn span_text(&self, id: SpanId) -> Arc<str> {
        self.odd_spans.get(&id).map_or_else(|| id.to_string().into(), Arc::clone)
    }

    /// A trace identifier as text.
    pub fn trace_text(&self, id: TraceId) -> Arc<str> {
        self.odd_traces.get(&id).map_or_else(|| id.to_string().into(), Arc::clone)
    }

    /// The identifier behind a text.
    pub fn span_id(&mut self, text: &str) -> SpanId {
        let (id, odd) = SpanId::parse(text);
        if odd {
            Arc::make_mut(&mut self.odd_spans).entry(id).or_insert_with(|| text.into());
        }
        id
    }

    /// The identifier behind a text.
    pub fn trace_id(&mut self, text: &str) -> TraceId {
        let (id, odd) = TraceId::parse(text);
        if odd {
            Arc::make_mut(&mut self.odd_traces).entry(id).or_insert_with(|| text.into());
        }
        id
    }

    /// An order of spans that does not depend on how they arrived: by trace, identifier, side, time, then by what they say and by
    /// the name of their file.
    pub fn compare(&self, names: &Names, a: &Span, b: &Span) -> Ordering {
        let text = |name: Name| names.text(name);
        let key = |s: &Span| (s.trace, s.id, s.kind, s.start, s.end);
        key(a).cmp(&key(b)).then_with(|| {
            text(a.service)
                .cmp(text(b.service))
                .then_with(|| text(a.name).cmp(text(b.name)))
                .then_with(|| a.parent.cmp(&b.parent))
                .then_with(|| text(a.instance).cmp(text(b.instance)))
                .then_with(|| text(a.host).cmp(text(b.host)))
                .then_with(|| text(a.machine).cmp(text(b.machine)))
                .then_with(|| text(a.peer).cmp(text(b.peer)))
                .then_with(|| {
                    (a.messaging, a.follows, a.remote, a.endless).cmp(&(b.messaging, b.follows, b.remote, b.endless))
                })
                .then_with(|| (a.failed, a.retry, a.cores).cmp(&(b.failed, b.retry, b.cores)))
                .then_with(|| a.cpu.total_cmp(&b.cpu))
                .then_with(|| self.links_of(a).cmp(self.links_of(b)))
                .then_with(|| self.file_of(a).cmp(self.file_of(b)))
        })
    }
}
