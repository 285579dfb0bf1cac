//! What every reader of traces takes and gives.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::detect::{HEAD, detect};
use crate::format::Format;
use crate::spans::{Deployment, Grouping, Spill, TableMapping};
use crate::traces::Traces;
use crate::{Operation, SpanTree, TraceNames, Wanted, codes, messages, parquet, unpack};
use dyelog_diagnostic::{Code, Diagnostic, Diagnostics, Place, Severity};

/// Takes operations as they come out of a reader.
pub trait Sink {
    /// Takes one operation; `Break` ends the reading early.
    fn operation(&mut self, names: &TraceNames, operation: Operation) -> ControlFlow<()>;

    /// What it takes of spans beside their operations. Asked once an input, before anything is read.
    fn wanted(&self) -> Arc<Wanted> {
        Arc::default()
    }

    /// Takes the spans of the operation that comes next, where it wants spans.
    fn spans(&mut self, names: &TraceNames, spans: SpanTree) {
        let _ = (names, spans);
    }
}

impl<F: FnMut(&TraceNames, Operation) -> ControlFlow<()>> Sink for F {
    fn operation(&mut self, names: &TraceNames, operation: Operation) -> ControlFlow<()> {
        self(names, operation)
    }
}

/// What a reader saw, beside the operations that it gave out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadReport {
    /// Operations given out.
    pub operations: u64,
    /// Events given out.
    pub events: u64,
    /// Records read: lines of events, or spans.
    pub records: u64,
    /// What was left out or changed and why, with how often: `duplicate span`, `span without an end`, …
    pub counted: BTreeMap<&'static str, u64>,
    /// The code of the findings of each reason.
    pub kinds: BTreeMap<&'static str, Code>,
    /// The first findings in full, at most [`ReadReport::KEPT`] a reason; the rest are only counted.
    pub findings: Vec<Diagnostic>,
    /// The reasons of these, as far as they were counted.
    pub(crate) reasons: Vec<&'static str>,
}

impl ReadReport {
    /// How many findings of one reason are kept in full.
    pub const KEPT: u64 = 10;

    /// Counts a finding, and keeps it if it is among the first of its reason.
    pub fn count(&mut self, reason: &'static str, finding: impl FnOnce() -> Diagnostic) {
        let times = self.counted.entry(reason).or_default();
        *times += 1;
        if *times <= Self::KEPT {
            let finding = finding();
            self.kinds.insert(reason, finding.code);
            self.findings.push(finding);
            self.reasons.push(reason);
        }
    }

    /// Counts what another reader counted of what comes next, as if this one had.
    pub(crate) fn add_counted(&mut self, other: Self) {
        self.records += other.records;
        for (finding, reason) in other.findings.into_iter().zip(other.reasons) {
            let kept = self.reasons.iter().filter(|own| **own == reason).count() as u64;
            if kept < Self::KEPT {
                self.findings.push(finding);
                self.reasons.push(reason);
            }
        }
        for (reason, times) in other.counted {
            *self.counted.entry(reason).or_default() += times;
        }
        self.kinds.extend(other.kinds);
    }

    /// Counts what was left out or changed and needs no finding.
    pub(crate) fn tally(&mut self, reason: &'static str, times: u64) {
        *self.counted.entry(reason).or_default() += times;
    }

    /// How often something of that code was found, whether it was kept in full or not.
    pub fn found(&self, code: Code) -> u64 {
        let of_code = self.kinds.iter().filter(|(_, own)| **own == code);
        of_code.filter_map(|(reason, _)| self.counted.get(reason)).sum()
    }

    /// Drops findings beyond the first of each reason.
    pub fn trim(&mut self) {
        let mut seen: BTreeMap<Code, u64> = BTreeMap::new();
        self.findings.retain(|finding| {
            let times = seen.entry(finding.code).or_default();
            *times += 1;
            *times <= Self::KEPT
        });
    }

    /// Takes in what another reader saw.
    pub fn merge(&mut self, other: Self) {
        self.operations += other.operations;
        self.events += other.events;
        self.records += other.records;
        for (reason, times) in other.counted {
            *self.counted.entry(reason).or_default() += times;
        }
        self.kinds.extend(other.kinds);
        self.findings.extend(other.findings);
        self.reasons.extend(other.reasons);
    }
}

/// How a trace is to be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadOptions {
    /// Its format; where it is not given, the content tells.
    pub format: Option<Format>,
    /// Whether damage is an error that ends the reading without a result.
    pub strict: bool,
    /// Spans: the probability with which operations were kept, above 0 and at most 1, whatever the traces tell of it.
    pub sampling: Option<f64>,
    /// Spans: how names of operations are grouped.
    pub grouping: Grouping,
    /// Spans: those of which deployment are taken.
    pub deployment: Deployment,
    /// Tables of spans: what their columns mean. Inputs are taken for tables then.
    pub table: Option<Arc<TableMapping>>,
    /// Spans: where they go that are more than memory is to hold; where it is not given, memory holds all.
    pub spill: Option<Spill>,
    /// How many threads may read. The result does not depend on it; 0 stands for 1.
    pub threads: usize,
}

/// Reads a trace of any format, compressed or not, and gives its operations to the sink as they come.
///
/// `file` is the name for diagnostics. gzip and zstd are recognised by their first bytes, the format by the first
/// [`HEAD`] bytes of the content.
///
/// # Errors
/// When the input fails, is a damaged archive, is empty, or is of a format that is not known or has no reader; and, where the
/// options are strict, when some of it cannot be used. Operations that were complete before an input fails were given out.
pub fn read(
    file: &str,
    input: impl Read + Send,
    options: &ReadOptions,
    names: &mut TraceNames,
    sink: &mut dyn Sink,
) -> Result<ReadReport, Diagnostics> {
    open(file, input, options)?.operations(names, sink)
}

/// A trace whose format is known, and of which nothing was read yet.
pub struct OpenTrace<'r> {
    pub(crate) file: String,
    pub(crate) input: unpack::Unpacked<'r>,
    pub(crate) format: Format,
    pub(crate) options: ReadOptions,
    /// What of an archive could not be unpacked, once it was read so far.
    pub(crate) damage: unpack::Found,
}

/// Opens a trace and looks at its format, as [`read`] does.
///
/// # Errors
/// When the input fails, is a damaged archive, is empty, or is of a format that is not known.
pub fn open<'r>(file: &str, input: impl Read + Send + 'r, options: &ReadOptions) -> Result<OpenTrace<'r>, Diagnostics> {
    let mut input = unpack::open(input).map_err(|error| failed(file, &error))?;
    let damage = if options.strict { unpack::Found::default() } else { input.as_far_as_it_goes() };
    let format = match options.format {
        Some(format) => format,
        None if options.table.is_some() => {
            let head = input.head().map_err(|error| failed(file, &error))?;
            if head.starts_with(parquet::MAGIC) { Format::Parquet } else { Format::SpansCsv }
        }
        // What little there is of a damaged archive may be nothing that anybody knows.
        None => detect(file, input.head().map_err(|error| failed(file, &error))?)
            .map_err(|found| damage.take().map_or(found, |damage| damaged(file, &damage).into()))?,
    };
    Ok(OpenTrace { file: file.to_owned(), input, format, options: options.clone(), damage })
}

impl<'r> OpenTrace<'r> {
    /// The format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Reads operations.
    ///
    /// # Errors
    /// As [`read`], and when the trace has messages in place of operations.
    pub fn operations(self, names: &mut TraceNames, sink: &mut dyn Sink) -> Result<ReadReport, Diagnostics> {
        let mut traces = Traces::new(&self.options, sink);
        traces.take(self, names, sink)?;
        traces.finish(names, sink)
    }

    /// The messages, which are not read yet.
    ///
    /// # Errors
    /// When it is no trace of messages, or lacks what is needed to read it.
    pub fn messages(self) -> Result<Box<dyn messages::Source + 'r>, Diagnostics> {
        let Self { file, input, format, options, damage } = self;
        let source = messages::source(&file, input, format, options.strict)?
            .ok_or_else(|| mixed(&file, "has operations, and no bare messages"))?;
        Ok(Box::new(FarAsItGoes { source, damage }))
    }
}

/// The format of a trace that begins so, as far as that much of it tells; compressed or not.
pub fn format_of_head(head: &[u8]) -> Option<Format> {
    use std::io::BufRead as _;
    let mut input = io::BufReader::with_capacity(HEAD, unpack::open(head).ok()?);
    let mut seen: Vec<u8> = Vec::new();
    // An archive of which this is the beginning fails at its end; what came before is what counts.
    while let Ok(more) = input.fill_buf() {
        let count = more.len();
        if count == 0 || seen.len() >= HEAD {
            break;
        }
        seen.extend_from_slice(more);
        input.consume(count);
    }
    detect("", &seen).ok()
}

pub(crate) fn mixed(file: &str, what: &str) -> Diagnostic {
    let place = Place::File { file: file.into() };
    Diagnostic::error(codes::MIXED, place, format!("this trace {what}"))
        .with_note("the two are analysed in different ways, and not together")
}

/// The input has nothing in it.
pub(crate) fn nothing_in(file: &str) -> Diagnostic {
    Diagnostic::error(codes::EMPTY, Place::File { file: file.into() }, "there is nothing in this file")
}

/// The input fails while it is read.
pub(crate) fn failed(file: &str, error: &io::Error) -> Diagnostic {
    let place = Place::File { file: file.into() };
    if let Some(damage) = unpack::damage(error) {
        return damaged(file, damage);
    }
    Diagnostic::error(codes::UNREADABLE, place, format!("the input cannot be read further: {error}"))
}

fn damaged(file: &str, damage: &unpack::Damage) -> Diagnostic {
    Diagnostic::error(codes::BAD_ARCHIVE, Place::File { file: file.into() }, damage.to_string())
        .with_note(damage.reason.clone())
        .with_hint("is the file complete? Copy it again")
}

/// Messages of an archive that may end before it is complete.
struct FarAsItGoes<'r> {
    source: Box<dyn messages::Source + 'r>,
    damage: unpack::Found,
}

impl messages::Source for FarAsItGoes<'_> {
    fn next(&mut self, names: &mut TraceNames) -> Result<Option<messages::Raw>, Diagnostics> {
        let next = self.source.next(names)?;
        if next.is_none()
            && let Some(damage) = self.damage.take()
        {
            let file = Arc::clone(self.source.file());
            count_damage(self.source.report(), damaged(&file, &damage));
        }
        Ok(next)
    }

    fn report(&mut self) -> &mut ReadReport {
        self.source.report()
    }

    fn file(&self) -> &Arc<str> {
        self.source.file()
    }
}

fn count_damage(report: &mut ReadReport, finding: Diagnostic) {
    report.count("archive that ends too early", || Diagnostic {
        severity: Severity::Warning,
        ..finding.with_note("what could be unpacked is used; what came after is lost")
    });
}

/// What was read of a trace, with a word on the archive that ended before it was complete.
pub(crate) fn cut_off(
    read: Result<ReadReport, Diagnostics>,
    file: &str,
    damage: &unpack::Found,
) -> Result<ReadReport, Diagnostics> {
    let Some(damage) = damage.take() else { return read };
    let finding = damaged(file, &damage);
    match read {
        Ok(mut report) => {
            count_damage(&mut report, finding);
            Ok(report)
        }
        // What is wrong with the rest follows from that.
        Err(mut found) => {
            found.0.insert(0, finding);
            Err(found)
        }
    }
}
