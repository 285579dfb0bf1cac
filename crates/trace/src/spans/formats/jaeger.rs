//! Jaeger JSON: the answer of the query service, downloads of its pages, exports of its stores.
//!
//! One reader takes any nesting of `data`, `hits`, `_source`, `spans` and `processes`: `{"data":[trace,…]}`, a bare trace, an array of
//! traces or of spans, a span a line with its process inline and its tags as a map (`tag`, with `@` for the dot). A span
//! that stands within a reference to it is skipped: it stands in the list too.

use rustc_hash::FxHashMap;
use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess};

use crate::spans::attributes::{Attributes, Meaning, meaning};
use crate::spans::builder::Builder;
use crate::spans::formats::otlp::{AttributeList, span_id, trace_id};
use crate::spans::formats::{Content, SpanFormat};
use crate::spans::ids::{SpanId, TraceId};
use crate::spans::input;
use crate::spans::json::{
    AnyValueInto, ArrayOf, EitherOf, Elements, Members, ObjectOf, Scalar, ScalarInto, Shape, skip,
};
use crate::spans::model::{Link, Recorder, Span};
use crate::spans::time::from_go_duration;
use dyelog_diagnostic::names::{Name, Names};

/// The format.
pub(super) const FORMAT: SpanFormat = SpanFormat {
    format: crate::Format::Jaeger,
    title: "Jaeger",
    content: &[Content::Json],
    detect: |_, head| head.has_any(&["traceID", "spanID"]) || head.has(&["spans", "processes"]),
    read: |builder, input, strict| input::documents::<Jaeger>(builder, input, strict).map(drop),
    together: None,
};

/// What a document means.
#[derive(Default)]
struct Jaeger;

impl input::Format for Jaeger {
    const ALONE: bool = true;

    fn document<'de, D: Deserializer<'de>>(
        &mut self,
        builder: &mut Builder<'_>,
        deserializer: D,
    ) -> Result<(), D::Error> {
        builder.open();
        let mut node = Node::new(builder);
        let shape = EitherOf(&mut node).deserialize(deserializer)?;
        node.finish();
        // No other document says whose these are.
        builder.waiting.clear();
        builder.open_tables = 0;
        if shape != Shape::Object && shape != Shape::Array {
            builder.expect(Shape::Object, shape, "document");
        }
        Ok(())
    }
}

/// An object that may be an envelope, a trace or a span.
struct Node<'r, 'n> {
    builder: &'r mut Builder<'n>,
    span: Span,
    start: Option<i64>,
    duration: Option<i64>,
    /// By how much the backend moved the span, in nanoseconds; its warnings tell.
    moved: i64,
    /// The obsolete `parentSpanID`.
    parent: SpanId,
    /// The key of the span's process in the table of its trace.
    process: Name,
    /// The process of the span itself, where it stands inline.
    inline: Option<Recording>,
    /// The table of processes, and since when the spans are waiting for it.
    processes: FxHashMap<Name, Recording>,
    waiting: usize,
}

/// The process that recorded spans.
#[derive(Clone, Copy, Debug)]
struct Recording {
    recorder: Recorder,
    /// What is kept of it.
    resource: u32,
}

/// One of the references of a span.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reference {
    follows: bool,
    trace: TraceId,
    span: SpanId,
}

impl<'r, 'n> Node<'r, 'n> {
    fn new(builder: &'r mut Builder<'n>) -> Self {
        builder.references.clear();
        let waiting = builder.waiting.len();
        Self {
            builder,
            span: Span::default(),
            start: None,
            duration: None,
            moved: 0,
            parent: SpanId::NONE,
            process: Name::NONE,
            inline: None,
            processes: FxHashMap::default(),
            waiting,
        }
    }

    /// The object ends: now it is known what it is.
    fn finish(self) {
        if self.span.id.is_some() {
            self.finish_span();
        } else if !self.processes.is_empty() {
            let waiting = self.waiting;
            let builder = self.name_processes();
            builder.waiting.truncate(waiting);
        }
    }

    /// Tells the spans that wait for the table of processes of whom they are; those of which it says nothing go on waiting.
    fn name_processes(self) -> &'r mut Builder<'n> {
        let builder = self.builder;
        builder.open_tables = builder.open_tables.saturating_sub(usize::from(!self.processes.is_empty()));
        for (index, key) in builder.waiting.split_off(self.waiting) {
            let Some(process) = self.processes.get(&key) else {
                builder.waiting.push((index, key));
                continue;
            };
            let span = &mut builder.spans.spans[index];
            process.recorder.sign(span);
            if let Some(kept) = &mut builder.spans.kept {
                kept.belongs(index..index + 1, process.resource);
            }
        }
        builder
    }

    fn finish_span(self) {
        let Self { builder, mut span, start, duration, moved, parent, process, inline, .. } = self;
        let own = |reference: &Reference| !reference.trace.is_some() || reference.trace == span.trace;
        let causes = |follows| move |reference: &Reference| reference.follows == follows && own(reference);
        let position = |follows| builder.references.iter().position(causes(follows));
        // The parent is the first CHILD_OF in the same trace, else the first FOLLOWS_FROM; the others are links.
        let chosen = position(false).or_else(|| position(true));
        span.parent = chosen.map_or(parent, |at| builder.references[at].span);
        span.follows = chosen.is_some_and(|at| builder.references[at].follows);
        span.first_link = builder.spans.links.len() as u32;
        for (at, reference) in builder.references.iter().enumerate() {
            if Some(at) != chosen && reference.span.is_some() {
                let trace = if reference.trace.is_some() { reference.trace } else { span.trace };
                builder.spans.links.push(Link { trace, span: reference.span });
            }
        }
        span.links = builder.spans.links.len() as u32 - span.first_link;
        builder.apply_attributes(&mut span);
        if let Some(process) = inline {
            process.recorder.sign(&mut span);
        }
        let before = builder.spans.spans.len();
        let start = start.map(|start| start.saturating_sub(moved));
        if moved != 0 {
            builder.open.move_events(moved.saturating_neg());
            builder.report.tally("clock correction of the backend undone", 1);
        }
        let end = start.zip(duration).map(|(start, duration)| start.saturating_add(duration));
        builder.finish(span, start, end);
        match inline {
            Some(inline) => builder.belongs(before..builder.spans.spans.len(), inline.resource),
            None if builder.spans.spans.len() > before => builder.waiting.push((before, process)),
            None => {}
        }
    }

    /// Microseconds as nanoseconds.
    fn micros<'de, A: MapAccess<'de>>(&mut self, map: &mut A, what: &'static str) -> Result<Option<i64>, A::Error> {
        Ok(self.builder.read_scalar(map, what)?.scalar.whole().map(|micros| micros.saturating_mul(1000)))
    }
}

impl Elements for Node<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, seq: &mut A) -> Result<bool, A::Error> {
        self.builder.open();
        let mut node = Node::new(self.builder);
        let read = seq.next_element_seed(ObjectOf(&mut node));
        if read.is_err() {
            node.name_processes();
        } else {
            node.finish();
        }
        let Some(shape) = read? else { return Ok(false) };
        self.builder.expect(Shape::Object, shape, "trace or span");
        self.builder.hand_on_within();
        Ok(true)
    }
}

impl Members for Node<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "spans" | "data" | "hits" | "_source" => {
                let mut inner = Node::new(self.builder);
                let shape = map.next_value_seed(EitherOf(&mut inner))?;
                inner.finish();
                if shape != Shape::Object {
                    self.builder.expect(Shape::Array, shape, "data or spans");
                }
            }
            "traceID" | "traceId" => {
                self.builder.read_scalar(map, "traceID")?;
                self.span.trace = trace_id(self.builder);
            }
            "spanID" | "spanId" => {
                self.builder.read_scalar(map, "spanID")?;
                self.span.id = span_id(self.builder);
            }
            "parentSpanID" | "parentSpanId" => {
                self.builder.read_scalar(map, "parentSpanID")?;
                self.parent = span_id(self.builder);
            }
            "operationName" => self.span.name = self.builder.read_scalar(map, "operationName")?.intern_scalar(),
            "processID" | "processId" => self.process = self.builder.read_scalar(map, "processID")?.intern_scalar(),
            "startTime" => self.start = self.micros(map, "startTime")?,
            "duration" => self.duration = self.micros(map, "duration")?,
            "references" => {
                let shape = map.next_value_seed(ArrayOf(&mut References { builder: self.builder }))?;
                self.builder.expect(Shape::Array, shape, "references");
            }
            "tags" | "tag" => {
                let builder = &mut *self.builder;
                tags(&mut builder.attributes, &mut builder.scalar, builder.names, map)?;
            }
            "logs" if self.builder.wanted().events => {
                let shape = map.next_value_seed(ArrayOf(&mut Logs { builder: self.builder, time: None }))?;
                self.builder.expect(Shape::Array, shape, "logs");
            }
            "processes" => {
                let first = self.processes.is_empty();
                let mut table = Processes { builder: self.builder, table: &mut self.processes };
                let shape = map.next_value_seed(ObjectOf(&mut table))?;
                self.builder.open_tables += usize::from(first && !self.processes.is_empty());
                self.builder.expect(Shape::Object, shape, "processes");
            }
            "warnings" => {
                let mut warnings = Warnings { scalar: &mut self.builder.scalar, moved: &mut self.moved };
                let shape = map.next_value_seed(ArrayOf(&mut warnings))?;
                self.builder.expect(Shape::Array, shape, "warnings");
            }
            "process" => self.inline = Some(Process::read(self.builder, map)?),
            "callCount" => {
                self.builder.foreign = Some("a graph of dependencies between services, without spans");
                skip(map)?;
            }
            "resourceSpans" | "batches" => {
                self.builder.foreign = Some("spans in OTLP's form: read it as `otlp`");
                skip(map)?;
            }
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// What the backend says of a span. Where the clocks of two machines differ, Jaeger may move a span into the time of its parent, a guess made from
/// this one call; what it moved is moved back, and the calls of all traces tell how the clocks differ.
struct Warnings<'r> {
    scalar: &'r mut Scalar,
    moved: &'r mut i64,
}

impl Elements for Warnings<'_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, seq: &mut A) -> Result<bool, A::Error> {
        if seq.next_element_seed(ScalarInto(self.scalar))?.is_none() {
            return Ok(false);
        }
        // `This span's timestamps were adjusted by -1.5ms`
        let told = self.scalar.text().and_then(|text| text.split_once("timestamps were adjusted by "));
        if let Some(moved) = told.and_then(|(_, by)| from_go_duration(by.split_whitespace().next()?)) {
            *self.moved = self.moved.saturating_add(moved);
        }
        Ok(true)
    }
}

struct References<'r, 'n> {
    builder: &'r mut Builder<'n>,
}

impl Elements for References<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, seq: &mut A) -> Result<bool, A::Error> {
        self.builder.references.push(Reference::default());
        if seq.next_element_seed(ObjectOf(self))?.is_none() {
            self.builder.references.pop();
            return Ok(false);
        }
        Ok(true)
    }
}

impl Members for References<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        if !matches!(key, "refType" | "traceID" | "spanID") {
            // Among them `span`, the whole span referred to, with its own references in turn.
            return skip(map);
        }
        map.next_value_seed(ScalarInto(&mut self.builder.scalar))?;
        let follows = self.builder.scalar.text().is_some_and(|text| text.eq_ignore_ascii_case("FOLLOWS_FROM"));
        let (trace, span) = match key {
            "traceID" => (trace_id(self.builder), SpanId::NONE),
            "spanID" => (TraceId::NONE, span_id(self.builder)),
            _ => (TraceId::NONE, SpanId::NONE),
        };
        let Some(reference) = self.builder.references.last_mut() else { return Ok(()) };
        match key {
            "traceID" => reference.trace = trace,
            "spanID" => reference.span = span,
            _ => reference.follows = follows,
        }
        Ok(())
    }
}

/// The logs of a span, and each of them.
struct Logs<'r, 'n> {
    builder: &'r mut Builder<'n>,
    time: Option<i64>,
}

impl Elements for Logs<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, seq: &mut A) -> Result<bool, A::Error> {
        self.builder.event.clear();
        self.time = None;
        let Some(shape) = seq.next_element_seed(ObjectOf(self))? else { return Ok(false) };
        self.builder.expect(Shape::Object, shape, "logs[]");
        if shape == Shape::Object {
            let name = self.builder.event.event_name();
            self.builder.close_event(name, self.time);
        }
        Ok(true)
    }
}

impl Members for Logs<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        let builder = &mut *self.builder;
        match key {
            "timestamp" => {
                map.next_value_seed(ScalarInto(&mut builder.scalar))?;
                self.time = builder.scalar.whole().map(|micros| micros.saturating_mul(1000));
                Ok(())
            }
            "fields" => tags(&mut builder.event, &mut builder.scalar, builder.names, map),
            _ => skip(map),
        }
    }
}

/// The table of processes of a trace.
struct Processes<'r, 'n> {
    builder: &'r mut Builder<'n>,
    table: &'r mut FxHashMap<Name, Recording>,
}

impl Members for Processes<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        let key = self.builder.names.intern(key);
        let process = Process::read(self.builder, map)?;
        self.table.insert(key, process);
        Ok(())
    }
}

struct Process<'r, 'n> {
    builder: &'r mut Builder<'n>,
}

impl Process<'_, '_> {
    /// The service, instance and machine of a process.
    fn read<'de, A: MapAccess<'de>>(builder: &mut Builder<'_>, map: &mut A) -> Result<Recording, A::Error> {
        builder.resource.clear();
        let shape = map.next_value_seed(ObjectOf(&mut Process { builder }))?;
        builder.expect(Shape::Object, shape, "process");
        Ok(Recording { recorder: builder.resource_recorder(), resource: builder.keep_resource() })
    }
}

impl Members for Process<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        let builder = &mut *self.builder;
        match key {
            "serviceName" => {
                map.next_value_seed(ScalarInto(&mut builder.scalar))?;
                builder.resource.take(Meaning::Service, &mut builder.scalar);
                Ok(())
            }
            "tags" | "tag" => tags(&mut builder.resource, &mut builder.scalar, builder.names, map),
            _ => skip(map),
        }
    }
}

/// Tags as a list of keys and values or as a map.
pub(super) fn tags<'de, A: MapAccess<'de>>(
    attributes: &mut Attributes,
    scalar: &mut Scalar,
    names: &mut Names,
    map: &mut A,
) -> Result<(), A::Error> {
    map.next_value_seed(EitherOf(&mut Tags { attributes, scalar, names })).map(drop)
}

struct Tags<'s> {
    attributes: &'s mut Attributes,
    scalar: &'s mut Scalar,
    names: &'s mut Names,
}

impl Elements for Tags<'_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, seq: &mut A) -> Result<bool, A::Error> {
        AttributeList::new(self.attributes, self.scalar, self.names).element(seq)
    }
}

impl Members for Tags<'_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        // Stores that take a dot for a path write `span@kind`.
        let dotted = key.replace('@', ".");
        let (meaning, kept) = (meaning(&dotted), self.attributes.keeps(&dotted, self.names));
        if meaning == Meaning::Nothing && kept.is_none() {
            return skip(map);
        }
        map.next_value_seed(AnyValueInto(self.scalar))?;
        if let Some(kept) = kept {
            self.attributes.keep(kept, self.scalar, self.names);
        }
        self.attributes.take(meaning, self.scalar);
        Ok(())
    }
}
