//! Writes spans: those of simulated runs, and those that were read, in another format.

mod jaeger;
mod otlp;
mod simulated;
mod table;
mod zipkin;

pub use simulated::write_otlp;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Map, Value, json};

use crate::retained::{Attribute, Data, Kept, Keys, SpanEvent, Status, Wanted};
use crate::spans::attributes::{Attributes, Meaning, meaning};
use crate::spans::json::Scalar;
use crate::spans::model::{Link, Messaging, Span, SpanKind, Spans};
use dyelog_diagnostic::names::{Name, Names};

/// A format of spans that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanTarget {
    /// OTLP JSON, a request a line.
    Otlp,
    /// Jaeger JSON, one document.
    Jaeger,
    /// Zipkin JSON, version 2, one document.
    Zipkin,
    /// A table with a header, commas between fields.
    Csv,
}

/// What a format cannot hold, and of how many spans it was lost.
pub type Losses = BTreeMap<&'static str, u64>;

/// What readers have to keep of spans, so that all of it is written.
pub fn wanted() -> Wanted {
    Wanted {
        spans: true,
        attributes: Keys::All,
        resources: Keys::All,
        events: true,
        event_attributes: Keys::All,
        links: true,
    }
}

impl SpanTarget {
    /// Whether spans of one trace lie together, so that a writer has to be given whole traces.
    pub fn by_trace(self) -> bool {
        self == Self::Jaeger
    }
}

/// Writes spans in a format, part by part.
#[derive(Debug)]
pub struct SpanWriter {
    target: SpanTarget,
    losses: Losses,
    begun: bool,
    /// Whether an element of the list was written.
    listed: bool,
    request: otlp::Request,
}

impl SpanWriter {
    /// Nothing written yet.
    pub fn new(target: SpanTarget) -> Self {
        Self { target, losses: Losses::new(), begun: false, listed: false, request: otlp::Request::default() }
    }

    /// Writes the spans that come next; where a trace lies together, all of it ([`SpanTarget::by_trace`]).
    ///
    /// # Errors
    /// Those of the output.
    pub fn write(&mut self, output: &mut dyn Write, names: &Names, spans: &Spans) -> io::Result<()> {
        let own = Shown { names, spans, kept: spans.kept.as_deref() };
        self.begin(output)?;
        match self.target {
            SpanTarget::Otlp => self.request.write(output, own, &mut self.losses),
            SpanTarget::Jaeger => jaeger::write(output, own, &mut self.listed, &mut self.losses),
            SpanTarget::Zipkin => zipkin::write(output, own, &mut self.listed, &mut self.losses),
            SpanTarget::Csv => table::write(output, own, &mut self.losses),
        }
    }

    /// Writes what stands before the first span.
    fn begin(&mut self, output: &mut dyn Write) -> io::Result<()> {
        match (std::mem::replace(&mut self.begun, true), self.target) {
            (true, _) | (false, SpanTarget::Otlp) => Ok(()),
            (false, SpanTarget::Jaeger) => output.write_all(b"{\"data\":["),
            (false, SpanTarget::Zipkin) => output.write_all(b"["),
            (false, SpanTarget::Csv) => table::begin(output),
        }
    }

    /// Writes what stands behind the last one; tells what was lost.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self, output: &mut dyn Write) -> io::Result<Losses> {
        self.begin(output)?;
        match self.target {
            SpanTarget::Otlp => self.request.finish(output)?,
            SpanTarget::Jaeger => output.write_all(b"]}\n")?,
            SpanTarget::Zipkin => output.write_all(b"]\n")?,
            SpanTarget::Csv => {}
        }
        Ok(self.losses)
    }
}

/// Takes note of a loss.
fn lost(losses: &mut Losses, what: &'static str, is: bool) {
    if is {
        *losses.entry(what).or_default() += 1;
    }
}

/// Spans as they are written.
#[derive(Clone, Copy)]
struct Shown<'a> {
    names: &'a Names,
    spans: &'a Spans,
    kept: Option<&'a Kept>,
}

/// An attribute as it is written.
type Pair<'a> = (Cow<'a, str>, Value);

impl<'a> Shown<'a> {
    fn text(self, name: Name) -> &'a str {
        self.names.text(name)
    }

    fn pairs(self, attributes: &[Attribute]) -> Vec<Pair<'a>> {
        let value = |data: Data| match data {
            Data::Text(text) => json!(self.text(text)),
            Data::Whole(number) => json!(number),
            Data::Float(number) => json!(number),
            Data::Bool(truth) => json!(truth),
        };
        attributes.iter().map(|own| (Cow::Borrowed(self.text(own.key)), value(own.value))).collect()
    }

    /// The attributes of a span. What the reader knows and no attribute says is added under its common name.
    fn attributes(self, place: usize) -> Vec<Pair<'a>> {
        let span = &self.spans.spans[place];
        let mut pairs = self.pairs(self.kept.map_or(&[], |kept| kept.attributes_of(place as u32)));
        // What formats without a member for it say by an attribute is no attribute of the span.
        let status = self.status(place);
        pairs.retain(|(key, value)| match (&**key, value.as_str()) {
            ("span.kind", Some(kind)) => SpanKind::parse(kind) != span.kind,
            ("otel.status_code", Some(_)) => status == Status::Unset,
            _ => true,
        });
        let says = |pairs: &[Pair<'_>], is: fn(Meaning) -> bool| pairs.iter().any(|(key, _)| is(meaning(key)));
        if span.peer.is_some() && self.told_peer(span, &pairs) != self.text(span.peer) {
            pairs.push(("peer.service".into(), json!(self.text(span.peer))));
        }
        if span.route.is_some() && !says(&pairs, |means| matches!(means, Meaning::Route(_))) {
            pairs.push(("http.route".into(), json!(self.text(span.route))));
        }
        if !span.cpu.is_nan() && !says(&pairs, |means| matches!(means, Meaning::Cpu(_))) {
            pairs.push(("thread.cpu_time".into(), json!(span.cpu)));
        }
        let role = match span.messaging {
            Messaging::None => None,
            Messaging::Send => Some("send"),
            Messaging::Receive => Some("receive"),
            Messaging::Process => Some("process"),
        };
        if let Some(role) = role.filter(|_| !says(&pairs, |means| matches!(means, Meaning::Operation(_)))) {
            pairs.push(("messaging.operation.type".into(), json!(role)));
        }
        if span.weight > 0.0 && !says(&pairs, |means| matches!(means, Meaning::Sampling(_))) {
            pairs.push(("SampleRate".into(), json!(span.weight)));
        }
        pairs
    }

    /// The peer as attributes tell it.
    fn told_peer(self, span: &Span, pairs: &[Pair<'_>]) -> String {
        let (mut told, mut scalar) = (Attributes::default(), Scalar::default());
        for (key, value) in pairs {
            let means = meaning(key);
            if means != Meaning::Nothing {
                scalar.set_value(value);
                told.take(means, &mut scalar);
            }
        }
        told.peer(self.text(span.name)).to_owned()
    }

    /// The number of the resource that a span is of; 0 for none.
    fn resource_number(self, place: usize) -> u32 {
        self.kept.map_or(0, |kept| kept.resource_of(place as u32))
    }

    /// The attributes of the resource that a span is of, its service, instance and machine among them.
    fn resource(self, place: usize) -> Vec<Pair<'a>> {
        let span = &self.spans.spans[place];
        let kept = self.kept.map_or(&[][..], |kept| kept.resource_attributes(self.resource_number(place)));
        let mut pairs = self.pairs(kept);
        pairs.retain(|(key, _)| meaning(key) != Meaning::Service && key != "serviceName");
        let says = |pairs: &[Pair<'_>], is: fn(Meaning) -> bool| pairs.iter().any(|(key, _)| is(meaning(key)));
        if span.instance.is_some() && !says(&pairs, |means| matches!(means, Meaning::Instance(_))) {
            pairs.insert(0, ("service.instance.id".into(), json!(self.text(span.instance))));
        }
        if span.host.is_some() && !says(&pairs, |means| matches!(means, Meaning::Host(_))) {
            pairs.insert(0, ("host.name".into(), json!(self.text(span.host))));
        }
        pairs
    }

    /// Whether spans were recorded by the same resource.
    fn is_alike(self, a: usize, b: usize) -> bool {
        let of = |place: usize| {
            let span = &self.spans.spans[place];
            (span.service, span.instance, span.host, self.resource_number(place))
        };
        of(a) == of(b)
    }

    fn status(self, place: usize) -> Status {
        self.kept.map_or(Status::Unset, |kept| kept.status_of(place as u32))
    }

    fn events(self, place: usize) -> &'a [SpanEvent] {
        self.kept.map_or(&[], |kept| kept.events_of(place as u32))
    }

    fn event_attributes(self, event: &SpanEvent) -> Vec<Pair<'a>> {
        let mut pairs = self.pairs(self.kept.map_or(&[], |kept| kept.event_attributes(event)));
        // Jaeger names an event by a field of it.
        pairs.retain(|(key, value)| key != "event" || value.as_str() != Some(self.text(event.name)));
        pairs
    }

    fn links(self, span: &Span) -> &'a [Link] {
        self.spans.links_of(span)
    }

    /// The trace and the identifier in hexadecimal digits.
    fn trace(span: &Span) -> String {
        format!("{:032x}", span.trace.0)
    }

    /// Places of spans, those of a trace together, traces in the order of their identifiers: so they come from the disk, too.
    fn by_trace(self) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.spans.spans.len()).collect();
        places.sort_by_key(|place| self.spans.spans[*place].trace);
        places
    }

    /// Counts what no target but OTLP holds.
    fn common_losses(self, place: usize, losses: &mut Losses) {
        let span = &self.spans.spans[place];
        lost(losses, "that the parent is remote", span.remote);
        lost(losses, "times below a microsecond", span.start % 1000 != 0 || span.end % 1000 != 0);
    }

    fn odd_identifier(self, place: usize, losses: &mut Losses) {
        let span = &self.spans.spans[place];
        let odd = self.spans.odd_traces.contains_key(&span.trace)
            || self.spans.odd_spans.contains_key(&span.id)
            || self.spans.odd_spans.contains_key(&span.parent);
        lost(losses, "identifiers that are no hexadecimal digits", odd);
    }
}

/// A kind by its word; `None` where there is none.
fn word_of(kind: SpanKind) -> Option<&'static str> {
    match kind {
        SpanKind::Unspecified => None,
        SpanKind::Internal => Some("internal"),
        SpanKind::Server => Some("server"),
        SpanKind::Client => Some("client"),
        SpanKind::Producer => Some("producer"),
        SpanKind::Consumer => Some("consumer"),
    }
}

/// A status as tags have it.
fn status_pair(status: Status, pairs: &[Pair<'_>]) -> Option<Pair<'static>> {
    let word = match status {
        Status::Unset => return None,
        Status::Ok => "OK",
        Status::Error => "ERROR",
    };
    let said = pairs.iter().any(|(key, _)| key == "otel.status_code");
    (!said).then(|| ("otel.status_code".into(), json!(word)))
}

/// An object without the members that are nothing.
fn object(members: impl IntoIterator<Item = (&'static str, Option<Value>)>) -> Map<String, Value> {
    members.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}
