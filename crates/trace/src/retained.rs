//! What of spans is kept beside the operations that they form, for queries: times, attributes, events.
//!
//! A [`Sink`](crate::Sink) says by [`Wanted`] what it needs. Readers keep nothing else, and nothing at all where nothing is
//! wanted.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

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

impl Data {
    /// What it is, as a number, and its value in bits.
    pub(super) fn bits(self) -> (u8, u64) {
        match self {
            Self::Text(text) => (0, text.0.into()),
            Self::Whole(number) => (1, number.cast_unsigned()),
            Self::Float(number) => (2, number.to_bits()),
            Self::Bool(truth) => (3, truth.into()),
        }
    }

    /// The value behind [`Data::bits`].
    pub(super) fn from_bits(tag: u8, bits: u64) -> Self {
        match tag {
            0 => Self::Text(Name(bits as u32)),
            1 => Self::Whole(bits.cast_signed()),
            2 => Self::Float(f64::from_bits(bits)),
            _ => Self::Bool(bits != 0),
        }
    }
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
    /// Whether the span is none of the input.
    made_up: bool,
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
    /// The resources of all spans, shared by parts of an input.
    pub(super) resources: Arc<Resources>,
    /// Keys of all attributes, shared likewise.
    pub(super) seen: Arc<SeenKeys>,
}

/// The attributes of resources, those that are equal once.
#[derive(Clone, Debug, Default)]
pub(super) struct Resources {
    attributes: Vec<Attribute>,
    ranges: Vec<Range>,
    /// Numbers of resources, by a digest of their attributes.
    by_digest: FxHashMap<u64, Vec<u32>>,
}

impl Resources {
    /// The number of a resource with these attributes, from 1.
    fn add(&mut self, attributes: &[Attribute]) -> u32 {
        let Self { attributes: all, ranges, by_digest } = self;
        let alike = by_digest.entry(digest(attributes)).or_default();
        let same = |number: &&u32| slice(all, ranges[**number as usize - 1]) == attributes;
        if let Some(number) = alike.iter().find(same) {
            return *number;
        }
        let first = all.len();
        all.extend_from_slice(attributes);
        ranges.push(range(first, all.len()));
        let number = range(ranges.len(), ranges.len()).0;
        alike.push(number);
        number
    }

    fn of(&self, number: u32) -> &[Attribute] {
        number.checked_sub(1).map_or(&[], |place| slice(&self.attributes, self.ranges[place as usize]))
    }
}

fn digest(attributes: &[Attribute]) -> u64 {
    use std::hash::{Hash as _, Hasher as _};
    let mut hasher = rustc_hash::FxHasher::default();
    for attribute in attributes {
        let (tag, bits) = attribute.value.bits();
        (attribute.key, tag, bits).hash(&mut hasher);
    }
    hasher.finish()
}

fn range(first: usize, end: usize) -> Range {
    let place = |place: usize| u32::try_from(place).expect("fewer than 2^32 attributes fit in memory");
    (place(first), place(end))
}

fn rename(attributes: &mut [Attribute], numbers: &[Name]) {
    for attribute in attributes {
        attribute.key = numbers[attribute.key.index()];
        if let Data::Text(text) = &mut attribute.value {
            *text = numbers[text.index()];
        }
    }
}

fn write_attributes(attributes: &[Attribute], out: &mut Vec<u8>) {
    for attribute in attributes {
        let (tag, bits) = attribute.value.bits();
        out.extend(attribute.key.0.to_le_bytes());
        out.push(tag);
        out.extend(bits.to_le_bytes());
    }
}

fn read_attributes(count: u32, bytes: &mut &[u8], into: &mut Vec<Attribute>) -> Option<()> {
    for _ in 0..count {
        let key = Name(u32::from_le_bytes(part(bytes)?));
        let [tag] = part(bytes)?;
        let value = Data::from_bits(tag, u64::from_le_bytes(part(bytes)?));
        into.push(Attribute { key, value });
    }
    Some(())
}

/// The next bytes.
pub(super) fn part<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (part, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*part)
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
        self.details.push(Detail { attributes, events, resource: 0, status, made_up: false });
    }

    /// Takes in a resource; gives its number for [`Kept::belongs`].
    pub(super) fn resource(&mut self, attributes: &mut Vec<Attribute>) -> u32 {
        let number = Arc::make_mut(&mut self.resources).add(attributes);
        attributes.clear();
        number
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
        self.details[into as usize] = Detail { attributes, events, resource, status, made_up: false };
    }

    /// Adds what is kept of the spans of another input, which come after these.
    pub(super) fn append(&mut self, other: Self) {
        let place = |length: usize| range(length, length).0;
        let (attributes, events) = (place(self.attributes.len()), place(self.events.len()));
        let own = Arc::make_mut(&mut self.resources);
        let numbers: Vec<u32> =
            (1..=other.resources.ranges.len() as u32).map(|number| own.add(other.resources.of(number))).collect();
        let behind = |(first, end): Range, before: u32| (first + before, end + before);
        self.details.extend(other.details.into_iter().map(|own| Detail {
            attributes: behind(own.attributes, attributes),
            events: behind(own.events, events),
            resource: own.resource.checked_sub(1).map_or(0, |place| numbers[place as usize]),
            ..own
        }));
        self.events.extend(
            other.events.into_iter().map(|own| SpanEvent { attributes: behind(own.attributes, attributes), ..own }),
        );
        self.attributes.extend(other.attributes);
        range(0, self.attributes.len());
        if !Arc::ptr_eq(&self.seen, &other.seen) {
            let seen = Arc::make_mut(&mut self.seen);
            seen.attributes.extend(&other.seen.attributes);
            seen.resources.extend(&other.seen.resources);
            seen.event_attributes.extend(&other.seen.event_attributes);
        }
    }

    /// Writes what is kept of one span, with resources and names by their numbers.
    pub(super) fn write(&self, span: u32, out: &mut Vec<u8>) {
        let detail = self.detail(span);
        let (attributes, events) = (self.attributes_of(span), self.events_of(span));
        out.extend([detail.status as u8, self.is_restored(span).into()]);
        for count in [detail.resource, attributes.len() as u32, events.len() as u32] {
            out.extend(count.to_le_bytes());
        }
        write_attributes(attributes, out);
        for event in events {
            let own = self.event_attributes(event);
            out.extend(event.name.0.to_le_bytes());
            out.push(event.time.is_some().into());
            out.extend(event.time.unwrap_or(0).to_le_bytes());
            out.extend((own.len() as u32).to_le_bytes());
            write_attributes(own, out);
        }
    }

    /// Takes in what [`Kept::write`] wrote, as that of the next span; `None` where it is cut off.
    pub(super) fn read(&mut self, bytes: &mut &[u8]) -> Option<()> {
        let [status, made_up] = part(bytes)?;
        let status = [Status::Unset, Status::Ok, Status::Error][usize::from(status).min(2)];
        let mut number = || part(bytes).map(u32::from_le_bytes);
        let (resource, attributes, events) = (number()?, number()?, number()?);
        let first = self.attributes.len();
        read_attributes(attributes, bytes, &mut self.attributes)?;
        let attributes = range(first, self.attributes.len());
        let first = self.events.len();
        for _ in 0..events {
            let name = Name(u32::from_le_bytes(part(bytes)?));
            let timed = part::<1>(bytes)?[0] != 0;
            let time = i64::from_le_bytes(part(bytes)?);
            let count = u32::from_le_bytes(part(bytes)?);
            let before = self.attributes.len();
            read_attributes(count, bytes, &mut self.attributes)?;
            let attributes = range(before, self.attributes.len());
            self.events.push(SpanEvent { name, time: timed.then_some(time), attributes });
        }
        let events = range(first, self.events.len());
        self.details.push(Detail { attributes, events, resource, status, made_up: made_up != 0 });
        Some(())
    }

    /// Nothing of any span yet, with the same resources and keys.
    pub(super) fn like(&self) -> Self {
        Self { resources: Arc::clone(&self.resources), seen: Arc::clone(&self.seen), ..Self::default() }
    }

    /// Gives all names their numbers in another table, by their numbers in this one.
    pub(super) fn rename(&mut self, numbers: &[Name]) {
        rename(&mut self.attributes, numbers);
        for event in &mut self.events {
            event.name = numbers[event.name.index()];
        }
        // Resources that differ here differ there.
        let resources = Arc::make_mut(&mut self.resources);
        rename(&mut resources.attributes, numbers);
        resources.by_digest.clear();
        for (range, number) in resources.ranges.iter().zip(1..) {
            resources.by_digest.entry(digest(slice(&resources.attributes, *range))).or_default().push(number);
        }
        let seen = Arc::make_mut(&mut self.seen);
        for keys in [&mut seen.attributes, &mut seen.resources, &mut seen.event_attributes] {
            *keys = keys.iter().map(|key| numbers[key.index()]).collect();
        }
    }

    /// How much memory it takes, in bytes, but for what its parts share.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Detail>() * self.details.len()
            + size_of::<Attribute>() * self.attributes.len()
            + size_of::<SpanEvent>() * self.events.len()
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
        self.details.get(span as usize).is_none_or(|detail| detail.made_up)
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
        self.resources.of(number)
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
