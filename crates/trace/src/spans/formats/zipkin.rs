//! Zipkin JSON, versions 1 and 2: a list of spans, a list of traces, a span a line.
//!
//! | what | version 2 | version 1 |
//! |---|---|---|
//! | kind | `kind` | annotations `cs` … `cr` client, `sr` … `ss` server, `ms` producer, `mr` consumer |
//! | service, machine | `localEndpoint` | the endpoint of the annotation |
//! | peer | `remoteEndpoint` | the endpoint of `sa` |
//! | attributes | `tags` | `binaryAnnotations` |
//!
//! - A record of version 1 with both sides is two spans of one identifier, as a shared span of version 2 is.
//! - `cs` without any answer (`ss`, `cr` or a duration) is a message: its span is a producer, the other half a consumer.
//! - A span without a kind that names services at both ends is a client, as Zipkin's own graph of dependencies has it.
//! - Pieces of one span are joined ([`pieces`](crate::spans::pieces)). A trace whose identifier is 128 bits wide in some records and cut
//!   to 64 in others is one.
//!
//! Times are microseconds. Names are in lower case already when Zipkin gives them out.

use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess};

use crate::spans::attributes::Meaning;
use crate::spans::builder::Builder;
use crate::spans::formats::jaeger::tags;
use crate::spans::formats::otlp::{span_id, trace_id};
use crate::spans::formats::{Content, SpanFormat};
use crate::spans::input;
use crate::spans::json::{ArrayOf, EitherOf, Elements, Members, ObjectOf, ScalarInto, Shape, skip};
use crate::spans::model::{Span, SpanKind};
use crate::spans::pieces::Times;
use dyelog_diagnostic::names::Name;

/// The format.
pub(super) const FORMAT: SpanFormat = SpanFormat {
    format: crate::Format::Zipkin,
    title: "Zipkin",
    content: &[Content::Json],
    detect: |_, head| {
        head.has(&["traceId", "id"]) || head.has_any(&["localEndpoint", "remoteEndpoint", "binaryAnnotations"])
    },
    read: |builder, input, strict| {
        builder.hold_traces();
        input::documents::<Zipkin>(builder, input, strict)?;
        builder.finish_traces(|builder| {
            builder.widen_trace_ids();
            builder.join_pieces();
        })
    },
    together: None,
};

/// What a document means.
#[derive(Default)]
struct Zipkin;

impl input::Format for Zipkin {
    const APART: Option<&'static [&'static str]> = Some(&[]);

    fn document<'de, D: Deserializer<'de>>(
        &mut self,
        builder: &mut Builder<'_>,
        deserializer: D,
    ) -> Result<(), D::Error> {
        let mut node = Node::new(builder);
        let shape = EitherOf(&mut node).deserialize(deserializer)?;
        node.finish();
        if shape != Shape::Object && shape != Shape::Array {
            builder.expect(Shape::Array, shape, "document");
        }
        Ok(())
    }
}

/// What ends or begins half of a call in version 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Core {
    ClientSend,
    ServerReceive,
    ServerSend,
    ClientReceive,
    MessageSend,
    MessageReceive,
}

impl Core {
    const COUNT: usize = 6;

    fn of(value: &str) -> Option<Self> {
        Some(match value {
            "cs" => Self::ClientSend,
            "sr" => Self::ServerReceive,
            "ss" => Self::ServerSend,
            "cr" => Self::ClientReceive,
            "ms" => Self::MessageSend,
            "mr" => Self::MessageReceive,
            _ => return None,
        })
    }
}

/// Where something happened.
#[derive(Clone, Copy, Debug, Default)]
struct Endpoint {
    service: Name,
    /// Its address, which tells machines apart.
    host: Name,
    port: Option<i64>,
}

/// One of the core annotations of version 1.
#[derive(Clone, Copy, Debug)]
struct Mark {
    time: Option<i64>,
    at: Endpoint,
}

/// An object that is a span, or holds one (`_source` of a store).
struct Node<'r, 'n> {
    builder: &'r mut Builder<'n>,
    span: Span,
    start: Option<i64>,
    duration: Option<i64>,
    local: Endpoint,
    remote: Endpoint,
    marks: [Option<Mark>; Core::COUNT],
}

impl<'r, 'n> Node<'r, 'n> {
    fn new(builder: &'r mut Builder<'n>) -> Self {
        builder.open();
        Self {
            builder,
            span: Span::default(),
            start: None,
            duration: None,
            local: Endpoint::default(),
            remote: Endpoint::default(),
            marks: [None; Core::COUNT],
        }
    }

    /// The object ends: now it is known what it is.
    fn finish(mut self) {
        if !self.span.id.is_some() && !self.span.trace.is_some() {
            return;
        }
        self.offer_peer();
        if self.marks.iter().any(Option::is_some) {
            self.finish_halves();
            return;
        }
        if self.span.kind == SpanKind::Unspecified
            && self.local.service.is_some()
            && self.remote.service.is_some()
            && self.local.service != self.remote.service
        {
            self.span.kind = SpanKind::Client;
        }
        let end = self.start.zip(self.duration).map(|(start, duration)| start.saturating_add(duration));
        let duration = self.duration.filter(|duration| *duration >= 0 && self.start.is_none());
        self.give(self.span, self.local, Times { start: self.start, end, duration });
    }

    /// A record of version 1: a span for each side that took part.
    fn finish_halves(mut self) {
        let mark = |core: Core| self.marks[core as usize];
        let time = |core: Core| mark(core).and_then(|mark| mark.time);
        let (client_send, client_receive) = (mark(Core::ClientSend), mark(Core::ClientReceive));
        let (server_receive, server_send) = (mark(Core::ServerReceive), mark(Core::ServerSend));
        let (message_send, message_receive) = (mark(Core::MessageSend), mark(Core::MessageReceive));
        let whole = self.start.zip(self.duration).map(|(start, duration)| start.saturating_add(duration));
        let one_way =
            client_send.is_some() && client_receive.is_none() && server_send.is_none() && self.duration.is_none();
        let mut halves = Vec::with_capacity(2);
        if let Some(sending) = client_send.or(client_receive).or(message_send) {
            let start = time(Core::ClientSend).or_else(|| time(Core::MessageSend)).or(self.start);
            // The record's duration is the client's where there is one.
            let end = time(Core::ClientReceive).or_else(|| whole.filter(|_| message_send.is_none()));
            let message = one_way || message_send.is_some();
            let kind = if message { SpanKind::Producer } else { SpanKind::Client };
            halves.push((kind, sending.at, Times { start, end, ..Times::default() }));
        }
        if let Some(receiving) = server_receive.or(server_send).or(message_receive) {
            let alone = halves.is_empty();
            let start = time(Core::ServerReceive).or_else(|| time(Core::MessageReceive)).or(if alone {
                self.start
            } else {
                None
            });
            let message = one_way || message_receive.is_some();
            let kind = if message { SpanKind::Consumer } else { SpanKind::Server };
            let end = time(Core::ServerSend).or(if alone { whole } else { None });
            halves.push((kind, receiving.at, Times { start, end, ..Times::default() }));
        }
        let kept = self.builder.attributes.keeping.as_ref().map(|keeping| keeping.attributes.clone());
        for (kind, at, times) in halves {
            if let (Some(keeping), Some(kept)) = (&mut self.builder.attributes.keeping, &kept) {
                keeping.attributes.clone_from(kept);
            }
            let at = if at.service.is_some() { at } else { self.local };
            self.give(Span { kind, ..self.span }, at, times);
        }
    }

    fn give(&mut self, mut span: Span, at: Endpoint, times: Times) {
        // Exporters from other formats write as tags what their resources tell.
        self.builder.own_recorder().place(&mut span);
        span.service = at.service;
        if at.host.is_some() {
            span.host = at.host;
        }
        self.builder.apply_attributes(&mut span);
        if let (Some(start), Some(end)) = (times.start, times.end)
            && end < start
        {
            self.builder.ends_before_it_starts(span.id);
            self.builder.finish_piece(span, Times { start: Some(start), end: Some(start), ..times });
        } else {
            self.builder.finish_piece(span, times);
        }
    }

    /// Adds the other end of the call to the attributes.
    fn offer_peer(&mut self) {
        let Builder { names, attributes, scalar, .. } = &mut *self.builder;
        if self.remote.service.is_some() {
            scalar.set_text(names.text(self.remote.service));
            attributes.take(Meaning::Peer(0), scalar);
        } else if self.remote.host.is_some() {
            scalar.set_text(names.text(self.remote.host));
            attributes.take(Meaning::Address(26), scalar);
            if let Some(port) = self.remote.port {
                scalar.set_whole(port.into());
                attributes.take(Meaning::Port, scalar);
            }
        }
    }

    /// Microseconds as nanoseconds; zero is none.
    fn micros<'de, A: MapAccess<'de>>(&mut self, map: &mut A, what: &'static str) -> Result<Option<i64>, A::Error> {
        Ok(micros(self.builder.read_scalar(map, what)?))
    }
}

fn micros(builder: &mut Builder<'_>) -> Option<i64> {
    builder.scalar.whole().map(|micros| micros.saturating_mul(1000))
}

impl Elements for Node<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, seq: &mut A) -> Result<bool, A::Error> {
        let mut node = Node::new(self.builder);
        // A trace within a list of traces is a list.
        let Some(shape) = seq.next_element_seed(EitherOf(&mut node))? else { return Ok(false) };
        node.finish();
        self.builder.hand_on_within();
        if shape != Shape::Array {
            self.builder.expect(Shape::Object, shape, "span");
        }
        Ok(true)
    }
}

impl Members for Node<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "traceId" => {
                self.builder.read_scalar(map, "traceId")?;
                self.span.trace = trace_id(self.builder);
            }
            "id" => {
                self.builder.read_scalar(map, "id")?;
                self.span.id = span_id(self.builder);
            }
            "parentId" => {
                self.builder.read_scalar(map, "parentId")?;
                self.span.parent = span_id(self.builder);
            }
            "name" => self.span.name = self.builder.read_scalar(map, "name")?.intern_scalar(),
            "kind" => {
                self.builder.read_scalar(map, "kind")?;
                self.span.kind = self.builder.scalar.text().map_or(SpanKind::Unspecified, SpanKind::parse);
            }
            "timestamp" => self.start = self.micros(map, "timestamp")?.filter(|time| *time != 0),
            "duration" => self.duration = self.micros(map, "duration")?,
            "localEndpoint" => self.local = endpoint(self.builder, map)?,
            "remoteEndpoint" => self.remote = endpoint(self.builder, map)?,
            "tags" => {
                let Builder { attributes, scalar, names, .. } = &mut *self.builder;
                tags(attributes, scalar, names, map)?;
            }
            "annotations" => {
                let shape = map.next_value_seed(ArrayOf(&mut Annotations { node: self }))?;
                self.builder.expect(Shape::Array, shape, "annotations");
            }
            "binaryAnnotations" => {
                let shape = map.next_value_seed(ArrayOf(&mut BinaryAnnotations { node: self }))?;
                self.builder.expect(Shape::Array, shape, "binaryAnnotations");
            }
            "_source" => {
                let mut inner = Node::new(self.builder);
                map.next_value_seed(ObjectOf(&mut inner))?;
                inner.finish();
            }
            "parent" | "callCount" => {
                self.builder.foreign = Some("a graph of dependencies between services, without spans");
                skip(map)?;
            }
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// Annotations: the core ones of version 1, and events.
struct Annotations<'a, 'r, 'n> {
    node: &'a mut Node<'r, 'n>,
}

impl Elements for Annotations<'_, '_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, seq: &mut A) -> Result<bool, A::Error> {
        let mut one = Annotation {
            builder: self.node.builder,
            time: None,
            value: Name::NONE,
            at: Endpoint::default(),
            core: None,
        };
        let Some(shape) = seq.next_element_seed(ObjectOf(&mut one))? else { return Ok(false) };
        let Annotation { time, value, at, core, .. } = one;
        let builder = &mut *self.node.builder;
        builder.expect(Shape::Object, shape, "annotations[]");
        match core {
            Some(core) => self.node.marks[core as usize] = Some(Mark { time, at }),
            None if value.is_some() && builder.wanted().events => {
                builder.event.clear();
                builder.close_event(value, time);
            }
            None => {}
        }
        Ok(true)
    }
}

struct Annotation<'r, 'n> {
    builder: &'r mut Builder<'n>,
    time: Option<i64>,
    value: Name,
    at: Endpoint,
    core: Option<Core>,
}

impl Members for Annotation<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "timestamp" => {
                map.next_value_seed(ScalarInto(&mut self.builder.scalar))?;
                self.time = micros(self.builder).filter(|time| *time != 0);
            }
            "value" => {
                map.next_value_seed(ScalarInto(&mut self.builder.scalar))?;
                self.core = self.builder.scalar.text().and_then(Core::of);
                if self.core.is_none() && self.builder.wanted().events {
                    self.value = self.builder.intern_scalar();
                }
            }
            "endpoint" => self.at = endpoint(self.builder, map)?,
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// Attributes of version 1, each with the endpoint that it is of.
struct BinaryAnnotations<'a, 'r, 'n> {
    node: &'a mut Node<'r, 'n>,
}

impl Elements for BinaryAnnotations<'_, '_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, seq: &mut A) -> Result<bool, A::Error> {
        let mut one =
            BinaryAnnotation { builder: self.node.builder, key: String::new(), at: Endpoint::default(), valued: false };
        let Some(shape) = seq.next_element_seed(ObjectOf(&mut one))? else { return Ok(false) };
        let BinaryAnnotation { key, at, valued, .. } = one;
        self.node.builder.expect(Shape::Object, shape, "binaryAnnotations[]");
        match key.as_str() {
            // The address of a server or client that does not record.
            "sa" | "ma" => self.node.remote = at,
            "ca" => {}
            _ => {
                if !self.node.local.service.is_some() {
                    self.node.local = at;
                }
                if valued {
                    self.node.builder.attribute(&key);
                }
            }
        }
        Ok(true)
    }
}

struct BinaryAnnotation<'r, 'n> {
    builder: &'r mut Builder<'n>,
    key: String,
    at: Endpoint,
    valued: bool,
}

impl Members for BinaryAnnotation<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "key" => {
                map.next_value_seed(crate::spans::json::TextTo(|text: &str| text.clone_into(&mut self.key)))?;
            }
            "value" => {
                map.next_value_seed(ScalarInto(&mut self.builder.scalar))?;
                self.valued = true;
            }
            "endpoint" => {
                // The value is still in its buffer.
                let value = self.builder.scalar.clone();
                self.at = endpoint(self.builder, map)?;
                self.builder.scalar = value;
            }
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// An endpoint.
fn endpoint<'de, A: MapAccess<'de>>(builder: &mut Builder<'_>, map: &mut A) -> Result<Endpoint, A::Error> {
    let mut reader = EndpointReader { builder, found: Endpoint::default() };
    let shape = map.next_value_seed(ObjectOf(&mut reader))?;
    let found = reader.found;
    builder.expect(Shape::Object, shape, "endpoint");
    Ok(found)
}

struct EndpointReader<'r, 'n> {
    builder: &'r mut Builder<'n>,
    found: Endpoint,
}

impl Members for EndpointReader<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        if !matches!(key, "serviceName" | "ipv4" | "ipv6" | "port") {
            return skip(map);
        }
        map.next_value_seed(ScalarInto(&mut self.builder.scalar))?;
        match key {
            "serviceName" => self.found.service = self.builder.intern_scalar(),
            "port" => self.found.port = self.builder.scalar.whole().filter(|port| *port != 0),
            "ipv4" => self.found.host = self.builder.intern_scalar(),
            _ if !self.found.host.is_some() => self.found.host = self.builder.intern_scalar(),
            _ => {}
        }
        Ok(())
    }
}
