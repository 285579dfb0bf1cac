//! OTLP in its JSON encoding, in all flavours met in the field.
//!
//! Told apart by what is there, never by a setting: `resourceSpans`, `batches` or `trace.resourceSpans`; `scopeSpans` or the older
//! `instrumentationLibrarySpans`; identifiers in hexadecimal or base64; enums as numbers or names; 64-bit numbers as
//! numbers or strings; names in camel case or with underscores; a request a line, whose traces may be split over lines. The
//! lines that the OpenTelemetry SDK for Go writes to the standard output (`SpanContext`, `StartTime`) are read too, and so are the documents of that
//! for Python (`context`, `start_time`).

use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess};

use crate::retained::Status;
use crate::spans::attributes::{self, Attributes, Meaning, meaning};
use crate::spans::builder::Builder;
use crate::spans::formats::go::GoSpan;
use crate::spans::formats::python::{self, PythonSpan};
use crate::spans::formats::{Content, SpanFormat};
use crate::spans::ids::{SpanId, TraceId};
use crate::spans::input;
use crate::spans::json::{
    AnyValueInto, ArrayOf, EitherOf, Elements, Members, ObjectOf, Scalar, ScalarInto, Shape, TextTo, skip,
};
use crate::spans::model::{Link, Span, SpanKind};
use crate::spans::sampling::of_trace_state;
use crate::spans::time::from_rfc3339;
use dyelog_diagnostic::names::{Name, Names};

/// The format.
pub(super) const FORMAT: SpanFormat = SpanFormat {
    format: crate::Format::Otlp,
    title: "OTLP",
    content: &[Content::Json],
    detect: |_, head| {
        head.has_any(&["resourceSpans", "batches", "scopeSpans", "instrumentationLibrarySpans", "startTimeUnixNano"])
            || head.has_any(&["resource_spans", "scope_spans", "instrumentation_library_spans", "start_time_unix_nano"])
            // What the SDK for Go writes to the standard output.
            || head.has(&["SpanContext"])
            // What that for Python writes.
            || head.has(&python::KEYS)
    },
    read: |builder, input, strict| input::documents::<Otlp>(builder, input, strict).map(drop),
    together: None,
};

/// What a document means.
#[derive(Default)]
struct Otlp;

impl input::Format for Otlp {
    const APART: Option<&'static [&'static str]> = Some(&["resourceSpans", "resource_spans", "batches"]);

    fn document<'de, D: Deserializer<'de>>(
        &mut self,
        builder: &mut Builder<'_>,
        deserializer: D,
    ) -> Result<(), D::Error> {
        Request::new(builder).read(deserializer)
    }
}

/// A request, a file, or an answer of a backend: whatever holds `resourceSpans`. Also a span in the form of the SDK for Go.
struct Request<'r, 'n> {
    builder: &'r mut Builder<'n>,
    go: GoSpan,
    python: PythonSpan,
}

impl<'r, 'n> Request<'r, 'n> {
    fn new(builder: &'r mut Builder<'n>) -> Self {
        Self { builder, go: GoSpan::default(), python: PythonSpan::default() }
    }

    /// The object ends.
    fn finish(mut self) {
        self.go.finish(self.builder);
        self.python.finish(self.builder);
    }

    fn read<'de, D: Deserializer<'de>>(mut self, deserializer: D) -> Result<(), D::Error> {
        let shape = EitherOf(&mut self).deserialize(deserializer)?;
        if shape != Shape::Object && shape != Shape::Array {
            self.builder.expect(Shape::Object, shape, "document");
        }
        self.finish();
        Ok(())
    }
}

impl Elements for Request<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, seq: &mut A) -> Result<bool, A::Error> {
        let mut inner = Request::new(self.builder);
        let some = seq.next_element_seed(ObjectOf(&mut inner))?.is_some();
        inner.finish();
        Ok(some)
    }
}

impl Members for Request<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "resourceSpans" | "resource_spans" | "batches" => {
                let shape = map.next_value_seed(ArrayOf(&mut ResourceList { builder: self.builder }))?;
                self.builder.expect(Shape::Array, shape, "resourceSpans");
                Ok(())
            }
            "trace" | "data" => {
                let mut inner = Request::new(self.builder);
                map.next_value_seed(EitherOf(&mut inner)).map(drop)
            }
            "resourceMetrics" | "resource_metrics" => {
                self.builder.foreign = Some("metrics");
                skip(map)
            }
            "resourceLogs" | "resource_logs" => {
                self.builder.foreign = Some("logs");
                skip(map)
            }
            "traceID" | "spanID" | "processes" => {
                self.builder.foreign = Some("spans in Jaeger's form: read it as `jaeger`");
                skip(map)
            }
            _ if key.starts_with(|first: char| first.is_ascii_lowercase()) => self.python.member(key, map),
            _ => self.go.member(self.builder, key, map),
        }
    }
}

struct ResourceList<'r, 'n> {
    builder: &'r mut Builder<'n>,
}

impl Elements for ResourceList<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, seq: &mut A) -> Result<bool, A::Error> {
        let first = self.builder.spans.spans.len();
        self.builder.resource.clear();
        let read = seq.next_element_seed(ObjectOf(&mut ResourceSpans { builder: self.builder }));
        // The resource may stand behind its spans.
        let recorder = self.builder.resource_recorder();
        let service = recorder.service;
        if read.is_err() && !service.is_some() {
            // The input ends before it says of whom these spans are.
            self.builder.truncate((first, self.builder.spans.links.len()));
        }
        for span in &mut self.builder.spans.spans[first..] {
            if service.is_some() || !span.service.is_some() {
                span.service = service;
            }
            recorder.place(span);
        }
        let resource = self.builder.keep_resource();
        self.builder.belongs(first..self.builder.spans.spans.len(), resource);
        let Some(shape) = read? else { return Ok(false) };
        self.builder.expect(Shape::Object, shape, "resourceSpans[]");
        Ok(true)
    }
}

struct ResourceSpans<'r, 'n> {
    builder: &'r mut Builder<'n>,
}

impl Members for ResourceSpans<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "resource" => {
                let shape = map.next_value_seed(ObjectOf(&mut Resource { builder: self.builder }))?;
                self.builder.expect(Shape::Object, shape, "resource");
                Ok(())
            }
            "scopeSpans" | "scope_spans" | "instrumentationLibrarySpans" | "instrumentation_library_spans" => {
                let shape = map.next_value_seed(ArrayOf(&mut ScopeList { builder: self.builder }))?;
                self.builder.expect(Shape::Array, shape, "scopeSpans");
                Ok(())
            }
            _ => skip(map),
        }
    }
}

struct Resource<'r, 'n> {
    builder: &'r mut Builder<'n>,
}

impl Members for Resource<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "attributes" => {
                let builder = &mut *self.builder;
                let mut list = AttributeList::new(&mut builder.resource, &mut builder.scalar, builder.names);
                let shape = map.next_value_seed(ArrayOf(&mut list))?;
                self.builder.expect(Shape::Array, shape, "resource.attributes");
                Ok(())
            }
            _ => skip(map),
        }
    }
}

struct ScopeList<'r, 'n> {
    builder: &'r mut Builder<'n>,
}

impl Elements for ScopeList<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, seq: &mut A) -> Result<bool, A::Error> {
        let Some(shape) = seq.next_element_seed(ObjectOf(self))? else { return Ok(false) };
        self.builder.expect(Shape::Object, shape, "scopeSpans[]");
        Ok(true)
    }
}

impl Members for ScopeList<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "spans" => {
                let shape = map.next_value_seed(ArrayOf(&mut SpanList { builder: self.builder }))?;
                self.builder.expect(Shape::Array, shape, "spans");
                Ok(())
            }
            "scope" => {
                let mut scope = Scope { builder: self.builder, attributes: Attributes::default() };
                let shape = map.next_value_seed(ObjectOf(&mut scope))?;
                // A collector that samples says there by which policy; nothing else of it is of use.
                let policy = scope.attributes.sampling;
                self.builder.resource.sampling.take_policy(policy);
                self.builder.expect(Shape::Object, shape, "scope");
                Ok(())
            }
            _ => skip(map),
        }
    }
}

struct Scope<'r, 'n> {
    builder: &'r mut Builder<'n>,
    attributes: Attributes,
}

impl Members for Scope<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "attributes" => {
                let builder = &mut *self.builder;
                let mut list = AttributeList::new(&mut self.attributes, &mut builder.scalar, builder.names);
                let shape = map.next_value_seed(ArrayOf(&mut list))?;
                self.builder.expect(Shape::Array, shape, "scope.attributes");
                Ok(())
            }
            _ => skip(map),
        }
    }
}

struct SpanList<'r, 'n> {
    builder: &'r mut Builder<'n>,
}

impl Elements for SpanList<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, seq: &mut A) -> Result<bool, A::Error> {
        self.builder.open();
        let first_link = u32::try_from(self.builder.spans.links.len()).unwrap_or(u32::MAX);
        let span = Span { first_link, ..Span::default() };
        let mut reader = SpanReader { builder: self.builder, span, start: None, end: None, state: String::new() };
        let Some(shape) = seq.next_element_seed(ObjectOf(&mut reader))? else { return Ok(false) };
        let SpanReader { mut span, start, end, state, .. } = reader;
        span.weight = of_trace_state(&state, span.trace);
        self.builder.expect(Shape::Object, shape, "spans[]");
        if shape == Shape::Object {
            self.builder.apply_attributes(&mut span);
            self.builder.finish(span, start, end);
        }
        Ok(true)
    }
}

struct SpanReader<'r, 'n> {
    builder: &'r mut Builder<'n>,
    span: Span,
    start: Option<i64>,
    end: Option<i64>,
    /// The trace state, which may stand before the trace's identifier.
    state: String,
}

impl Members for SpanReader<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "traceId" | "trace_id" | "traceID" => {
                self.builder.read_scalar(map, "traceId")?;
                self.span.trace = trace_id(self.builder);
            }
            "spanId" | "span_id" | "spanID" => {
                self.builder.read_scalar(map, "spanId")?;
                self.span.id = span_id(self.builder);
            }
            "parentSpanId" | "parent_span_id" | "parentSpanID" => {
                self.builder.read_scalar(map, "parentSpanId")?;
                self.span.parent = span_id(self.builder);
            }
            "name" => {
                self.builder.read_scalar(map, "name")?;
                self.span.name = self.builder.intern_scalar();
            }
            "kind" => {
                let told = self.builder.read_scalar(map, "kind")?.scalar.text();
                self.span.kind = told.map_or(SpanKind::Unspecified, SpanKind::parse);
            }
            "startTimeUnixNano" | "start_time_unix_nano" => {
                self.start =
                    self.builder.read_scalar(map, "startTimeUnixNano")?.scalar.whole().filter(|time| *time != 0);
            }
            "endTimeUnixNano" | "end_time_unix_nano" => {
                self.end = self.builder.read_scalar(map, "endTimeUnixNano")?.scalar.whole().filter(|time| *time != 0);
            }
            "traceState" | "trace_state" => {
                self.state = self.builder.read_scalar(map, "traceState")?.scalar.text().unwrap_or_default().to_owned();
            }
            "flags" => {
                // Bit 8: it is known whether the parent is remote; bit 9: it is.
                let flags = self.builder.read_scalar(map, "flags")?.scalar.whole().unwrap_or(0);
                self.span.remote = flags & 0x300 == 0x300;
            }
            "attributes" => {
                let builder = &mut *self.builder;
                let mut list = AttributeList::new(&mut builder.attributes, &mut builder.scalar, builder.names);
                let shape = map.next_value_seed(ArrayOf(&mut list))?;
                self.builder.expect(Shape::Array, shape, "attributes");
            }
            "status" => status(self.builder, map)?,
            "events" if self.builder.wanted().events => events(self.builder, map)?,
            "links" => {
                let shape = map.next_value_seed(ArrayOf(&mut LinkList { builder: self.builder }))?;
                self.builder.expect(Shape::Array, shape, "links");
                self.span.links = self.builder.spans.links.len() as u32 - self.span.first_link;
            }
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// `{"code": 2}`
pub(crate) fn status<'de, A: MapAccess<'de>>(builder: &mut Builder<'_>, map: &mut A) -> Result<(), A::Error> {
    map.next_value_seed(EitherOf(&mut StatusReader { builder })).map(drop)
}

struct StatusReader<'r, 'n> {
    builder: &'r mut Builder<'n>,
}

impl Elements for StatusReader<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, seq: &mut A) -> Result<bool, A::Error> {
        Ok(seq.next_element::<serde::de::IgnoredAny>()?.is_some())
    }
}

impl Members for StatusReader<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        if !matches!(key, "code" | "Code") {
            return skip(map);
        }
        let builder = &mut *self.builder;
        map.next_value_seed(ScalarInto(&mut builder.scalar))?;
        builder.open.status = builder.scalar.text().map_or(Status::Unset, Status::parse);
        Ok(())
    }
}

/// Events of a span.
pub(crate) fn events<'de, A: MapAccess<'de>>(builder: &mut Builder<'_>, map: &mut A) -> Result<(), A::Error> {
    let shape = map.next_value_seed(ArrayOf(&mut EventList { builder }))?;
    builder.expect(Shape::Array, shape, "events");
    Ok(())
}

struct EventList<'r, 'n> {
    builder: &'r mut Builder<'n>,
}

impl Elements for EventList<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, seq: &mut A) -> Result<bool, A::Error> {
        self.builder.event.clear();
        let mut reader = EventReader { builder: self.builder, name: Name::NONE, time: None };
        let Some(shape) = seq.next_element_seed(ObjectOf(&mut reader))? else { return Ok(false) };
        let (name, time) = (reader.name, reader.time);
        self.builder.expect(Shape::Object, shape, "events[]");
        if shape == Shape::Object {
            self.builder.close_event(name, time);
        }
        Ok(true)
    }
}

struct EventReader<'r, 'n> {
    builder: &'r mut Builder<'n>,
    name: Name,
    time: Option<i64>,
}

impl Members for EventReader<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        let builder = &mut *self.builder;
        match key {
            "name" | "Name" => {
                map.next_value_seed(ScalarInto(&mut builder.scalar))?;
                self.name = builder.intern_scalar();
            }
            "timeUnixNano" | "time_unix_nano" => {
                map.next_value_seed(ScalarInto(&mut builder.scalar))?;
                self.time = builder.scalar.whole().filter(|time| *time != 0);
            }
            "Time" => {
                map.next_value_seed(ScalarInto(&mut builder.scalar))?;
                self.time = builder.scalar.text().and_then(from_rfc3339);
            }
            "attributes" | "Attributes" => {
                let mut list = AttributeList::new(&mut builder.event, &mut builder.scalar, builder.names);
                let shape = map.next_value_seed(ArrayOf(&mut list))?;
                builder.expect(Shape::Array, shape, "events[].attributes");
            }
            _ => skip(map)?,
        }
        Ok(())
    }
}

pub(crate) fn trace_id(builder: &mut Builder<'_>) -> TraceId {
    let Builder { scalar, spans, .. } = builder;
    scalar.text().map(|text| spans.trace_id(text)).unwrap_or_default()
}

pub(crate) fn span_id(builder: &mut Builder<'_>) -> SpanId {
    let Builder { scalar, spans, .. } = builder;
    scalar.text().map(|text| spans.span_id(text)).unwrap_or_default()
}

pub(crate) struct LinkList<'r, 'n> {
    pub(crate) builder: &'r mut Builder<'n>,
}

impl Elements for LinkList<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, seq: &mut A) -> Result<bool, A::Error> {
        let mut reader = LinkReader { builder: self.builder, link: Link { trace: TraceId::NONE, span: SpanId::NONE } };
        if seq.next_element_seed(ObjectOf(&mut reader))?.is_none() {
            return Ok(false);
        }
        let link = reader.link;
        if link.span.is_some() {
            self.builder.spans.links.push(link);
        }
        Ok(true)
    }
}

struct LinkReader<'r, 'n> {
    builder: &'r mut Builder<'n>,
    link: Link,
}

impl Members for LinkReader<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "traceId" | "trace_id" | "TraceID" => {
                map.next_value_seed(ScalarInto(&mut self.builder.scalar))?;
                self.link.trace = trace_id(self.builder);
            }
            "spanId" | "span_id" | "SpanID" => {
                map.next_value_seed(ScalarInto(&mut self.builder.scalar))?;
                self.link.span = span_id(self.builder);
            }
            "SpanContext" => {
                map.next_value_seed(ObjectOf(self))?;
            }
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// `[{"key": …, "value": {"stringValue": …}}]`; key and value in either order.
pub(crate) struct AttributeList<'s> {
    attributes: &'s mut Attributes,
    scalar: &'s mut Scalar,
    names: &'s mut Names,
    meaning: Option<Meaning>,
    kept: Option<attributes::Key>,
}

impl<'s> AttributeList<'s> {
    pub(crate) fn new(attributes: &'s mut Attributes, scalar: &'s mut Scalar, names: &'s mut Names) -> Self {
        Self { attributes, scalar, names, meaning: None, kept: None }
    }
}

impl Elements for AttributeList<'_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, seq: &mut A) -> Result<bool, A::Error> {
        (self.meaning, self.kept) = (None, None);
        let mut reader = AttributeReader { list: self, valued: false };
        if seq.next_element_seed(ObjectOf(&mut reader))?.is_none() {
            return Ok(false);
        }
        let valued = reader.valued;
        if let (true, Some(meaning)) = (valued, self.meaning) {
            if let Some(kept) = self.kept {
                self.attributes.keep(kept, self.scalar, self.names);
            }
            self.attributes.take(meaning, self.scalar);
        }
        Ok(true)
    }
}

struct AttributeReader<'l, 's> {
    list: &'l mut AttributeList<'s>,
    valued: bool,
}

impl Members for AttributeReader<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "key" | "Key" => {
                let AttributeList { attributes, names, meaning: known, kept, .. } = &mut *self.list;
                map.next_value_seed(TextTo(|key: &str| {
                    *known = Some(meaning(key));
                    *kept = attributes.keeps(key, names);
                }))?;
            }
            "value" | "Value" if self.list.meaning == Some(Meaning::Nothing) && self.list.kept.is_none() => skip(map)?,
            "value" | "Value" => {
                self.valued = true;
                map.next_value_seed(AnyValueInto(self.list.scalar))?;
            }
            _ => skip(map)?,
        }
        Ok(())
    }
}
