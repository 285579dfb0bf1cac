//! Spans as a tracer records them, whatever they are written as.

use std::ops::ControlFlow;
use std::sync::Arc;

/// Which part in a communication a span plays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpanKind {
    /// Not told.
    #[default]
    Unspecified,
    /// Local work.
    Internal,
    /// The side that accepts a request.
    Server,
    /// The side that sends a request and waits for the reply.
    Client,
    /// The side that sends a message and goes on.
    Producer,
    /// The side that works on a message.
    Consumer,
}

impl SpanKind {
    /// All of them. Saved spans name them by their places here.
    pub(crate) const ALL: [Self; 6] =
        [Self::Unspecified, Self::Internal, Self::Server, Self::Client, Self::Producer, Self::Consumer];

    /// From the spellings met in the field: OTLP numbers and names, Jaeger's tag values, in any case.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        let text = text.get(..10).filter(|head| head.eq_ignore_ascii_case("span_kind_")).map_or(text, |_| &text[10..]);
        const SPELLINGS: [(&str, SpanKind); 10] = [
            ("internal", SpanKind::Internal),
            ("server", SpanKind::Server),
            ("client", SpanKind::Client),
            ("producer", SpanKind::Producer),
            ("consumer", SpanKind::Consumer),
            ("1", SpanKind::Internal),
            ("2", SpanKind::Server),
            ("3", SpanKind::Client),
            ("4", SpanKind::Producer),
            ("5", SpanKind::Consumer),
        ];
        SPELLINGS
            .iter()
            .find(|(spelling, _)| text.eq_ignore_ascii_case(spelling))
            .map_or(Self::Unspecified, |(_, kind)| *kind)
    }

    /// What it is called.
    pub fn label(self) -> &'static str {
        match self {
            Self::Unspecified => "no kind",
            Self::Internal => "internal",
            Self::Server => "server",
            Self::Client => "client",
            Self::Producer => "producer",
            Self::Consumer => "consumer",
        }
    }

    /// Whether the span stands on the calling side.
    pub fn calls(self) -> bool {
        matches!(self, Self::Client | Self::Producer)
    }

    /// Whether the span stands on the side that is called.
    pub fn serves(self) -> bool {
        matches!(self, Self::Server | Self::Consumer)
    }
}

/// A span to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenSpan {
    /// The span that caused it, by its place among those of the trace; `None` for the first.
    pub parent: Option<usize>,
    /// Its part in a communication.
    pub kind: SpanKind,
    /// The service that recorded it.
    pub service: Arc<str>,
    /// What it does.
    pub name: Arc<str>,
    /// Start, in nanoseconds since 1970.
    pub start: i64,
    /// End.
    pub end: i64,
    /// CPU time in seconds, spans of the service within it included; NaN where not measured.
    pub cpu: f64,
}

/// Takes traces as they come: a number of each, and its spans, each after the one that caused it.
pub trait SpanSink {
    /// Takes one trace; [`Break`](ControlFlow::Break) ends the tracing early.
    fn trace(&mut self, number: u64, spans: &[WrittenSpan]) -> ControlFlow<()>;
}

impl<F: FnMut(u64, &[WrittenSpan]) -> ControlFlow<()>> SpanSink for F {
    fn trace(&mut self, number: u64, spans: &[WrittenSpan]) -> ControlFlow<()> {
        self(number, spans)
    }
}
