//! The formats that traces come in.

use std::fmt;

use crate::spans::formats;
use dyelog_diagnostic::similar;

/// A format of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Native text.
    Angio,
    /// Native JSON Lines.
    AngioJsonl,
    /// OpenTelemetry protocol, JSON encoding.
    Otlp,
    /// OpenTelemetry protocol, protobuf encoding.
    OtlpProto,
    /// Jaeger JSON.
    Jaeger,
    /// Zipkin JSON, version 1 or 2.
    Zipkin,
    /// Kieker monitoring log.
    Kieker,
    /// Segments of `SkyWalking`, JSON.
    SkyWalking,
    /// Elastic APM: what agents send, and documents as they are stored.
    Elastic,
    /// Segments of AWS X-Ray.
    XRay,
    /// Traces of Datadog, JSON.
    Datadog,
    /// Events of Honeycomb.
    Honeycomb,
    /// Chrome trace events.
    Chrome,
    /// Spans as a table with a header.
    SpansCsv,
    /// Parquet files: tables of spans, and blocks of Tempo.
    Parquet,
    /// Messages as a table: `sender,receiver,time`.
    Messages,
    /// Send and receive events as a table: `time,event,process,message`.
    Events,
    /// Event log of the LQN simulator `lqsim`.
    Lqsim,
    /// Log with vector clocks, as `ShiViz` shows them.
    Shiviz,
    /// Records of the probes in stubs and skeletons, JSON Lines or binary.
    Calls,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 20] = [
        Self::Angio,
        Self::AngioJsonl,
        Self::Otlp,
        Self::OtlpProto,
        Self::Jaeger,
        Self::Zipkin,
        Self::Kieker,
        Self::SkyWalking,
        Self::Elastic,
        Self::XRay,
        Self::Datadog,
        Self::Honeycomb,
        Self::Chrome,
        Self::SpansCsv,
        Self::Parquet,
        Self::Messages,
        Self::Events,
        Self::Lqsim,
        Self::Shiviz,
        Self::Calls,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Angio => "angio",
            Self::AngioJsonl => "angio-jsonl",
            Self::Otlp => "otlp",
            Self::OtlpProto => "otlp-proto",
            Self::Jaeger => "jaeger",
            Self::Zipkin => "zipkin",
            Self::Kieker => "kieker",
            Self::SkyWalking => "skywalking",
            Self::Elastic => "elastic-apm",
            Self::XRay => "x-ray",
            Self::Datadog => "datadog",
            Self::Honeycomb => "honeycomb",
            Self::Chrome => "chrome",
            Self::SpansCsv => "spans-csv",
            Self::Parquet => "parquet",
            Self::Messages => "messages",
            Self::Events => "events",
            Self::Lqsim => "lqsim",
            Self::Shiviz => "shiviz",
            Self::Calls => "calls",
        }
    }

    /// The format of that name.
    ///
    /// # Errors
    /// The name that comes nearest, if any does.
    pub fn from_name(name: &str) -> Result<Self, Option<&'static str>> {
        Self::ALL
            .into_iter()
            .find(|format| format.name() == name)
            .ok_or_else(|| similar(name, Self::ALL.map(Self::name)))
    }

    /// Whether it has spans.
    pub fn has_spans(self) -> bool {
        formats::of(self).is_some()
    }

    /// Whether it has messages without operations.
    pub fn has_messages(self) -> bool {
        matches!(self, Self::Messages | Self::Events | Self::Lqsim | Self::Shiviz)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
