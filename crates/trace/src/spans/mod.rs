//! Spans to operations: OTLP JSON and Jaeger JSON.
//!
//! A span format records a tree of intervals, a TOEG the order of events; this room reads the one off the other, in steps that
//! each know little:
//!
//! 1. readers (`otlp`, `jaeger`) stream the input into small [`model`] records;
//! 2. [`assemble`] removes duplicates, finds parents, joins consumers to producers and lays out trees;
//! 3. [`classify`] says of each span whether it is a visit of a service, a call, or an activity;
//! 4. [`skew`] compares the clocks of the machines and [`call_semantics`] decides, from corrected times, which caller waits;
//! 5. [`toeg`] emits the events.
//!
//! Nothing depends on the order of the input: the same spans, shuffled, split over lines or sent twice, give the same operations.
//!
//! An operation's scenario is the service and the name of its first span (`frontend GET /hotels`), its run the trace
//! identifier, with `.2` and so on for further roots in one trace; the origins of its events are span identifiers.

pub mod assemble;
pub mod attributes;
mod builder;
pub mod call_semantics;
pub mod classify;
mod files;
mod go;
pub mod ids;
mod input;
mod jaeger;
mod json;
pub mod model;
mod otlp;
mod pipeline;
pub mod plan;
mod restore;
mod sampling;
pub mod skew;
pub(crate) mod time;
pub mod toeg;

pub mod write;

pub use files::SpanFiles;
pub use jaeger::read_jaeger;
pub use otlp::read_otlp;

use self::files::SpanFormat;
use crate::format::Format;

/// How files of a format are read into spans; `None` where it has none.
pub(crate) fn format(format: Format) -> Option<SpanFormat> {
    match format {
        Format::Otlp => Some(otlp::OTLP),
        Format::Jaeger => Some(jaeger::JAEGER),
        _ => None,
    }
}

/// How spans are read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpanOptions {
    /// Whether a damaged line is an error that ends the reading.
    pub strict: bool,
    /// Whether differing clocks are corrected.
    pub correct_skew: bool,
    /// The probability with which operations were kept, above 0 and at most 1, whatever the traces tell of it.
    pub sampling: Option<f64>,
}

impl Default for SpanOptions {
    fn default() -> Self {
        Self { strict: false, correct_skew: true, sampling: None }
    }
}
