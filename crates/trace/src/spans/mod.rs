//! Spans to operations, from whatever format they come in.
//!
//! A span format records a tree of intervals, a TOEG the order of events; this room reads the one off the other, in steps that
//! each know little:
//!
//! 1. a reader (`formats`, a file each) streams the input into small [`model`] records;
//! 2. `assemble` removes duplicates, finds parents, joins consumers to producers, puts single times right that cannot be (`misread`) and
//!    lays out trees;
//! 3. [`classify`] says of each span whether it is a visit of a service, a call, or an activity;
//! 4. [`skew`] compares the clocks of the machines and [`call_semantics`] decides, from corrected times, which caller waits;
//! 5. [`toeg`] emits the events.
//!
//! Between the first and the second step, `store` keeps spans whose operations may go on, on disk where they are many.
//!
//! Nothing depends on the order of the input: the same spans, shuffled, split over lines or sent twice, give the same operations.
//!
//! An operation's scenario is the service and the name of its first span (`frontend GET /hotels`), its run the trace
//! identifier, with `.2` and so on for further roots in one trace; the origins of its events are span identifiers.

mod alike;
mod answers;
mod assemble;
pub mod attributes;
mod awaited;
mod builder;
pub mod call_semantics;
pub mod classify;
mod clocks;
mod deployments;
mod dropped;
mod files;
pub(crate) mod formats;
mod grain;
mod grouping;
pub mod ids;
mod input;
mod json;
mod misread;
pub mod model;
mod order;
mod outcome;
mod parts;
pub(crate) mod pieces;
mod pipeline;
mod placement;
pub mod plan;
pub mod recording;
mod replies;
mod restore;
mod sampling;
mod sends;
pub mod skew;
mod store;
pub mod time;
pub mod toeg;
mod unanswered;
mod ways;

pub mod write;

pub(crate) use files::SpanFiles;
pub use files::TakeSpans;
pub use formats::TableMapping;

use std::io::Read;
use std::sync::Arc;

use crate::format::Format;
use crate::{ReadOptions, ReadReport, Sink, TraceNames, Wanted};
use builder::Builder;
pub use deployments::{Deployment, Side as DeploymentSide};
use dyelog_diagnostic::Diagnostics;
use dyelog_diagnostic::names::Names;
pub use grouping::{Grouping, NamePattern};
use model::Spans;
pub use store::{Disk, Scratch, Spill};

/// Reads the spans of an input and gives out the operations that they form.
///
/// # Errors
/// When the input fails, cannot be read as that format, or has no span in it; says what it has instead.
///
/// # Panics
/// When the format is not one of spans ([`Format::has_spans`]).
pub fn read(
    format: Format,
    file: &str,
    mut input: impl Read,
    options: SpanOptions,
    names: &mut TraceNames,
    sink: &mut dyn Sink,
) -> Result<ReadReport, Diagnostics> {
    let format = formats::of(format).expect("it is a format of spans");
    let mut files = SpanFiles::new(sink.wanted(), options);
    let mut report = files.read(file, format, &mut input, names)?;
    report.merge(files.operations(names, sink)?);
    Ok(report)
}

/// The spans of an input as they were recorded, in its order, before anything is made of them.
///
/// # Errors
/// When the input fails or cannot be read as that format.
///
/// # Panics
/// When the format is not one of spans ([`Format::has_spans`]).
pub fn collect(
    format: Format,
    file: &str,
    input: impl Read,
    strict: bool,
    names: &mut Names,
) -> Result<(Spans, ReadReport), Diagnostics> {
    collect_with(format, file, input, &SpanOptions { strict, ..SpanOptions::default() }, names)
}

/// The same, read as the options say.
///
/// # Errors
/// As [`collect`].
///
/// # Panics
/// As [`collect`].
pub fn collect_with(
    format: Format,
    file: &str,
    mut input: impl Read,
    options: &SpanOptions,
    names: &mut Names,
) -> Result<(Spans, ReadReport), Diagnostics> {
    let format = formats::of(format).expect("it is a format of spans");
    let mut builder = Builder::keeping(file, names, &Arc::new(Wanted::default()));
    builder.table.clone_from(&options.table);
    builder.threads = options.threads.max(1);
    (format.read)(&mut builder, &mut input, options.strict)?;
    let (spans, report, _) = builder.finish_input();
    Ok((spans, report))
}

/// How spans are read.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanOptions {
    /// Whether a damaged line is an error that ends the reading.
    pub strict: bool,
    /// Whether times are corrected: of clocks that differ, and of spans that lie an impossible time from their parents.
    pub correct_skew: bool,
    /// The probability with which operations were kept, above 0 and at most 1, whatever the traces tell of it.
    pub sampling: Option<f64>,
    /// How names of operations are grouped.
    pub grouping: Grouping,
    /// Spans of which deployment are taken.
    pub deployment: Deployment,
    /// How the columns of tables are read, where their names do not tell it.
    pub table: Option<Arc<TableMapping>>,
    /// Where spans go that are more than memory is to hold.
    pub spill: Option<Spill>,
    /// How many threads may read; 0 stands for 1.
    pub threads: usize,
}

impl From<&ReadOptions> for SpanOptions {
    fn from(options: &ReadOptions) -> Self {
        Self {
            strict: options.strict,
            sampling: options.sampling,
            grouping: options.grouping.clone(),
            deployment: options.deployment.clone(),
            table: options.table.clone(),
            spill: options.spill.clone(),
            threads: options.threads,
            ..Self::default()
        }
    }
}

impl Default for SpanOptions {
    fn default() -> Self {
        Self {
            strict: false,
            correct_skew: true,
            sampling: None,
            grouping: Grouping::default(),
            deployment: Deployment::default(),
            table: None,
            spill: None,
            threads: 1,
        }
    }
}
