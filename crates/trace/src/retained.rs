//! What of spans is kept beside the operations that they form, for queries: times, attributes, events.
//!
//! A [`Sink`](crate::Sink) says by [`Wanted`] what it needs. Readers keep nothing else, and nothing at all where nothing is
//! wanted.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::recorded::SpanKind;
use dyelog_diagnostic::names::{Name, Names};

/// Which attributes are wanted, by their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Keys {
    /// None.
    #[default]
    None,
    /// Those with these keys.
    These(BTreeSet<Arc<str>>),
    /// All.
    All,
}

impl Keys {
    /// Whether the attribute of that key is wanted.
    pub fn has(&self, key: &str) -> bool {
        match self {
            Self::None => false,
            Self::These(keys) => keys.contains(key),
            Self::All => true,
        }
    }

    /// Adds a key.
    pub fn add(&mut self, key: &Arc<str>) {
        match self {
            Self::None => *self = Self::These(BTreeSet::from([Arc::clone(key)])),
            Self::These(keys) => drop(keys.insert(Arc::clone(key))),
            Self::All => {}
        }
    }
}

/// What of spans is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Anything at all.
    pub spans: bool,
    /// Attributes of spans.
    pub attributes: Keys,
    /// Attributes of resources (Jaeger: of processes).
    pub resources: Keys,
    /// Events of spans (Jaeger: logs).
    pub events: bool,
    /// Attributes of events.
    pub event_attributes: Keys,
    /// Links, and the identifiers of traces and spans in them.
    pub links: bool,
}

/// The value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Data {
    /// A text.
    Text(Name),
    /// A whole number.
    Whole(i64),
    /// Another number.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
}

/// An attribute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attribute {
    /// Its key.
    pub key: Name,
    /// Its value.
    pub value: Data,
}

/// How a span ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Nobody said.
    #[default]
    Unset,
    /// It was said to be in order.
    Ok,
    /// It failed.
    Error,
}

impl Status {
    /// From OTLP's numbers and names, in any case; with the prefix `STATUS_CODE_` or without.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        let text =
            text.get(..12).filter(|head| head.eq_ignore_ascii_case("status_code_")).map_or(text, |_| &text[12..]);
        match text {
            "1" => Self::Ok,
            "2" => Self::Error,
            text if text.eq_ignore_ascii_case("ok") => Self::Ok,
            text if text.eq_ignore_ascii_case("error") => Self::Error,
            _ => Self::Unset,
        }
    }

    /// What it is called.
    pub fn label(self) -> &'static str {
        match self {
            Self::Unset => "unset",
            Self::Ok => "ok",
            Self::Error => "error",
        }
    }
}

/// A range of a table.
pub(super) type Range = (u32, u32);

/// An event of a span.
#[derive(Clone, Copy, Debug)]
pub struct SpanEvent {
    /// Its name; of a Jaeger log, its field `event`.
    pub name: Name,
    /// When it happened, in nanoseconds from the epoch of the file; `None` where not told.
    pub time: Option<i64>,
    attributes: Range,
}

impl SpanEvent {
    /// An event with so many attributes behind those of the events before it.
    pub(super) fn new(name: Name, time: Option<i64>, before: usize, own: usize) -> Self {
        Self { name, time, attributes: range(before, before + own) }
    }
}

/// What is kept of a span.
#[derive(Clone, Copy, Debug, Default)]
struct Detail {
    attributes: Range,
    events: Range,
    /// Place in `resources`, plus one.
    resource: u32,
    status: Status,
}

/// Keys that attributes of an input have, wanted or not.
#[derive(Clone, Debug, Default)]
pub struct SeenKeys {
    /// Of spans.
    pub attributes: FxHashSet<Name>,
    /// Of resources.
    pub resources: FxHashSet<Name>,
    /// Of events.
    pub event_attributes: FxHashSet<Name>,
}

/// What is kept of the spans of one input.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// By the place of the span in its input.
    details: Vec<Detail>,
    attributes: Vec<Attribute>,
    events: Vec<SpanEvent>,
    resources: Vec<Range>,
    /// Keys of all attributes.
    pub seen: SeenKeys,
}

fn range(first: usize, end: usize) -> Range {
    let place = |place: usize| u32::try_from(place).expect("fewer than 2^32 attributes fit in memory");
    (place(first), place(end))
}

fn slice<T>(all: &[T], (first, end): Range) -> &[T] {
    &all[first as usize..end as usize]
}

impl Kept {
    /// Takes in the span that was read last, with the attributes of its events one after the other.
    pub(super) fn close(
        &mut self,
        status: Status,
        attributes: &mut Vec<Attribute>,
        events: &mut Vec<SpanEvent>,
        event_attributes: &mut Vec<Attribute>,
    ) {
        let first = self.attributes.len();
        self.attributes.append(attributes);
        let attributes = range(first, self.attributes.len());
        let (first, before) = (self.events.len(), attributes.1);
        self.attributes.append(event_attributes);
        let shifted = |event: SpanEvent| SpanEvent {
            attributes: (event.attributes.0 + before, event.attributes.1 + before),
            ..event
        };
        self.events.extend(events.drain(..).map(shifted));
        range(0, self.attributes.len());
        let events = range(first, self.events.len());
        self.details.push(Detail { attributes, events, resource: 0, status });
    }

    /// Takes in a resource; gives its number for [`Kept::belongs`].
    pub(super) fn resource(&mut self, attributes: &mut Vec<Attribute>) -> u32 {
        let first = self.attributes.len();
        self.attributes.append(attributes);
        self.resources.push(range(first, self.attributes.len()));
        self.resources.len() as u32
    }

    /// Says of which resource spans are.
    pub(super) fn belongs(&mut self, spans: std::ops::Range<usize>, resource: u32) {
        for detail in &mut self.details[spans] {
            detail.resource = resource;
        }
    }

    /// Forgets the spans behind the first so many.
    pub(super) fn truncate(&mut self, spans: usize) {
        self.details.truncate(spans);
    }

    /// Adds what is kept of one span to another.
    pub(super) fn absorb(&mut self, into: u32, from: u32) {
        let (own, other) = (self.detail(into), self.detail(from));
        let (first, attributes) = (self.attributes.len(), [own.attributes, other.attributes]);
        for (start, end) in attributes {
            self.attributes.extend_from_within(start as usize..end as usize);
        }
        let attributes = range(first, self.attributes.len());
        let first = self.events.len();
        for (start, end) in [own.events, other.events] {
            self.events.extend_from_within(start as usize..end as usize);
        }
        let events = range(first, self.events.len());
        let status = own.status.max(other.status);
        let resource = if own.resource == 0 { other.resource } else { own.resource };
        self.details[into as usize] = Detail { attributes, events, resource, status };
    }

    /// Adds what is kept of the spans of another input, which come after these.
    pub(super) fn append(&mut self, other: Self) {
        let place = |length: usize| range(length, length).0;
        let (attributes, events) = (place(self.attributes.len()), place(self.events.len()));
        let resources = place(self.resources.len());
        let behind = |(first, end): Range, before: u32| (first + before, end + before);
        self.details.extend(other.details.into_iter().map(|own| Detail {
            attributes: behind(own.attributes, attributes),
            events: behind(own.events, events),
            resource: if own.resource == 0 { 0 } else { own.resource + resources },
            ..own
        }));
        self.events.extend(
            other.events.into_iter().map(|own| SpanEvent { attributes: behind(own.attributes, attributes), ..own }),
        );
        self.resources.extend(other.resources.into_iter().map(|own| behind(own, attributes)));
        self.attributes.extend(other.attributes);
        range(0, self.attributes.len());
        self.seen.attributes.extend(other.seen.attributes);
        self.seen.resources.extend(other.seen.resources);
        self.seen.event_attributes.extend(other.seen.event_attributes);
    }

    /// Forgets spans, by their place.
    pub(super) fn retain(&mut self, gone: &[bool]) {
        let mut gone = gone.iter();
        self.details.retain(|_| !gone.next().copied().unwrap_or(false));
    }

    /// An order of spans by what is kept of them, for spans that are equal in all else.
    pub(super) fn compare(&self, names: &Names, a: u32, b: u32) -> std::cmp::Ordering {
        let key = |span: u32| {
            let words = |attribute: &Attribute| {
                let value = match attribute.value {
                    Data::Text(text) => names.text(text).to_owned(),
                    Data::Whole(number) => number.to_string(),
                    Data::Float(number) => number.to_string(),
                    Data::Bool(value) => value.to_string(),
                };
                (names.text(attribute.key).to_owned(), value)
            };
            let own: Vec<_> = self.attributes_of(span).iter().map(words).collect();
            let events: Vec<_> = self.events_of(span).iter().map(|e| (names.text(e.name).to_owned(), e.time)).collect();
            (self.status_of(span), own, events)
        };
        key(a).cmp(&key(b))
    }

    /// Whether a span, by its place in the input, is none of it.
    pub(super) fn is_restored(&self, span: u32) -> bool {
        span as usize >= self.details.len()
    }

    fn detail(&self, span: u32) -> Detail {
        self.details.get(span as usize).copied().unwrap_or_default()
    }

    pub(super) fn attributes_of(&self, span: u32) -> &[Attribute] {
        slice(&self.attributes, self.detail(span).attributes)
    }

    pub(super) fn events_of(&self, span: u32) -> &[SpanEvent] {
        slice(&self.events, self.detail(span).events)
    }

    pub(super) fn status_of(&self, span: u32) -> Status {
        self.detail(span).status
    }

    /// The number of the resource that a span is of; 0 for none.
    pub(super) fn resource_of(&self, span: u32) -> u32 {
        self.detail(span).resource
    }

    /// The attributes of a resource, by its number.
    pub(super) fn resource_attributes(&self, number: u32) -> &[Attribute] {
        number.checked_sub(1).map_or(&[], |place| slice(&self.attributes, self.resources[place as usize]))
    }

    /// The attributes of an event.
    pub(super) fn event_attributes(&self, event: &SpanEvent) -> &[Attribute] {
        slice(&self.attributes, event.attributes)
    }
}

/// A span as it was recorded. Times are nanoseconds from the epoch of the file, corrected as those of the operation are: by the clock of
/// the machine that recorded the operation's first span.
#[derive(Clone, Debug)]
pub struct RecordedSpan {
    /// Its identifier.
    pub id: Arc<str>,
    /// The position of its parent among the spans of the operation; `None` for the first.
    pub parent: Option<u32>,
    /// The service that recorded it.
    pub service: Name,
    /// The instance of the service, where it is recorded.
    pub instance: Name,
    /// The machine, where it is recorded.
    pub host: Name,
    /// What it does.
    pub name: Name,
    /// The service at the other side, as well as its attributes tell it.
    pub peer: Name,
    /// Its part in a communication.
    pub kind: SpanKind,
    /// Start.
    pub start: i64,
    /// End; never before the start.
    pub end: i64,
    /// What was added to the times that the span's machine recorded, to correct its clock; 0 where that agrees.
    pub shift: i64,
    /// Whether it names a parent that the trace does not have.
    pub orphan: bool,
    /// Whether its parent does not wait for it, as the trace says (FOLLOWS_FROM, a link to a producer).
    pub follows: bool,
    /// Whether its end was not recorded.
    pub endless: bool,
    /// CPU time in seconds, that of spans within it included; NaN where not given.
    pub cpu: f64,
    /// Its links: trace and span, where links are wanted.
    pub links: Vec<(Arc<str>, Arc<str>)>,
    /// Its place in the input; nothing is kept of what was put in the place of a missing span.
    pub(super) place: u32,
}

/// The spans of one operation, in breadth-first order: parents come before their children, children in the order of their
/// start as it was recorded.
#[derive(Clone, Debug)]
pub struct SpanTree {
    /// The spans.
    pub spans: Vec<RecordedSpan>,
    pub(super) kept: Arc<Kept>,
}

impl SpanTree {
    /// Whether lost spans were put back in it, or spans were given back a parent that they do not name.
    pub fn is_mended(&self) -> bool {
        self.spans.iter().any(|span| self.kept.is_restored(span.place) || span.orphan && span.parent.is_some())
    }

    /// Whether a span is none of the input, but stands in the place of a missing one.
    pub fn is_restored(&self, span: u32) -> bool {
        self.kept.is_restored(self.spans[span as usize].place)
    }

    /// The attributes of a span, by its position: those that are wanted.
    pub fn attributes(&self, span: u32) -> &[Attribute] {
        self.kept.attributes_of(self.spans[span as usize].place)
    }

    /// The attributes of the resource that a span is of: those that are wanted.
    pub fn resource(&self, span: u32) -> &[Attribute] {
        self.kept.resource_attributes(self.kept.resource_of(self.spans[span as usize].place))
    }

    /// The events of a span, where events are wanted.
    pub fn events(&self, span: u32) -> &[SpanEvent] {
        self.kept.events_of(self.spans[span as usize].place)
    }

    /// The attributes of an event: those that are wanted.
    pub fn event_attributes(&self, event: &SpanEvent) -> &[Attribute] {
        self.kept.event_attributes(event)
    }

    /// How a span ended.
    pub fn status(&self, span: u32) -> Status {
        self.kept.status_of(self.spans[span as usize].place)
    }

    /// Keys that attributes of the input have, wanted or not.
    pub fn seen(&self) -> &SeenKeys {
        &self.kept.seen
    }
}
