//! Spans of several files, as one trace.
//!
//! Exporters write a file an hour, a file a service, or a file a batch, so that an operation lies in several of them and a span in two. All
//! files are read before operations are built: spans that came twice are one, halves find each other, and calls of all files
//! tell how the clocks differ.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use rustc_hash::FxHashSet;

use crate::spans::assemble::name_services;
use crate::spans::builder::Builder;
use crate::spans::clocks::Clocks;
use crate::spans::deployments::Deployments;
use crate::spans::formats::{Piece, SpanFormat};
use crate::spans::grouping::Groups;
use crate::spans::model::Spans;
use crate::spans::order::Order;
use crate::spans::recording::Recording;
use crate::spans::store::Store;
use crate::spans::{SpanOptions, pipeline};
use crate::{ReadReport, Sink, TraceNames, Wanted, codes};
use dyelog_diagnostic::names::Names;
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};

/// Takes spans as they were recorded, with the names that they use; `Break` ends the reading.
pub type TakeSpans<'t> = dyn FnMut(&Names, &Spans) -> ControlFlow<()> + 't;

/// The spans of the files that were read so far.
pub(crate) struct SpanFiles<'t> {
    gathered: Gathered<'t>,
    wanted: Arc<Wanted>,
    options: SpanOptions,
}

/// Spans, and what was said of them as they came.
struct Gathered<'t> {
    store: Store,
    /// Whether nothing is to be made of them.
    as_recorded: bool,
    /// Takes them as they come, so that none are kept, or in the end, in whole traces.
    take: Option<Box<TakeSpans<'t>>>,
    by_trace: bool,
    /// Whether it takes none any more.
    stopped: Arc<AtomicBool>,
    deployments: Deployments,
    groups: Groups,
    clocks: Clocks,
    /// Of the file that is being read.
    order: Order,
    /// Files that end too early, and lack operations of all times.
    truncated: FxHashSet<Arc<str>>,
    about_services: ReadReport,
    failure: Option<io::Error>,
}

impl Gathered<'_> {
    /// Takes spans in. Where the disk fails, none are taken any more.
    fn add(&mut self, mut spans: Spans, names: &mut Names) {
        if self.failure.is_some() {
            return;
        }
        self.deployments.select(&mut spans, names);
        if let Some(take) = self.take.as_mut().filter(|_| !self.by_trace) {
            if !self.stopped.load(Relaxed) && take(names, &spans).is_break() {
                self.stopped.store(true, Relaxed);
            }
            return;
        }
        if !self.as_recorded {
            self.groups.name(&mut spans.spans, names);
            self.clocks.look(&spans);
            for span in &spans.spans {
                self.order.add(span.start);
            }
            name_services(names, &mut spans, &mut self.about_services);
            self.deployments.count(&spans.spans);
        }
        self.failure = self.store.append(spans).err();
    }
}

impl<'t> SpanFiles<'t> {
    /// None yet; keeps what is wanted.
    pub(crate) fn new(wanted: Arc<Wanted>, options: SpanOptions) -> Self {
        let gathered = Gathered {
            store: Store::new(options.spill.clone()),
            as_recorded: false,
            take: None,
            by_trace: false,
            stopped: Arc::default(),
            deployments: Deployments::new(&options.deployment),
            groups: Groups::new(&options.grouping),
            clocks: Clocks::default(),
            order: Order::default(),
            truncated: FxHashSet::default(),
            about_services: ReadReport::default(),
            failure: None,
        };
        Self { gathered, wanted, options }
    }

    /// None yet; keeps them as they are recorded.
    pub(crate) fn as_recorded(wanted: Arc<Wanted>, options: SpanOptions) -> Self {
        let mut own = Self::new(wanted, options);
        own.gathered.as_recorded = true;
        own
    }

    /// Gives on spans as they are recorded: as they come, or in the end ([`SpanFiles::pass`]), in whole traces.
    pub(crate) fn passing(wanted: Arc<Wanted>, options: SpanOptions, by_trace: bool, take: Box<TakeSpans<'t>>) -> Self {
        let spill = options.spill.clone();
        let mut own = Self::as_recorded(wanted, options);
        own.gathered.store = Store::unlinked(spill);
        own.gathered.by_trace = by_trace;
        own.gathered.take = Some(take);
        own
    }

    /// Reads a file; gives what was odd in it.
    ///
    /// # Errors
    /// When the input fails, is damaged beyond use, or has no span in it; says what it has instead.
    pub(crate) fn read(
        &mut self,
        file: &str,
        format: &SpanFormat,
        input: impl Read,
        names: &mut TraceNames,
    ) -> Result<ReadReport, Diagnostics> {
        let strict = self.options.strict;
        let mut input = UntilStopped { input, stopped: Arc::clone(&self.gathered.stopped) };
        self.collect(file, format, names, |builder| (format.read)(builder, &mut input, strict))
    }

    /// Reads the files of a format of which each is a piece of one log.
    ///
    /// # Errors
    /// As [`SpanFiles::read`].
    pub(crate) fn read_pieces(
        &mut self,
        format: &SpanFormat,
        pieces: Vec<Piece<'_>>,
        names: &mut TraceNames,
    ) -> Result<ReadReport, Diagnostics> {
        let file = pieces.iter().map(|piece| piece.name.as_str()).min().unwrap_or_default().to_owned();
        let together = format.together.expect("it lies in pieces");
        let strict = self.options.strict;
        self.collect(&file, format, names, |builder| together(builder, pieces, strict))
    }

    fn collect(
        &mut self,
        file: &str,
        format: &SpanFormat,
        names: &mut TraceNames,
        read: impl FnOnce(&mut Builder<'_>) -> Result<(), Diagnostics>,
    ) -> Result<ReadReport, Diagnostics> {
        let gathered = &mut self.gathered;
        gathered.order = Order::default();
        let mut builder = Builder::keeping(file, &mut names.names, &self.wanted);
        builder.table.clone_from(&self.options.table);
        builder.spill.clone_from(&self.options.spill);
        builder.threads = self.options.threads.max(1);
        builder.passes_on = gathered.take.is_some() && !gathered.by_trace;
        builder.outlet = Some(Box::new(|spans, names| gathered.add(spans, names)));
        read(&mut builder)?;
        let (count, is_truncated) = (builder.count(), builder.is_truncated);
        builder.outlet = None;
        let (spans, mut report, foreign) = builder.finish_input();
        if count == 0 {
            return Err(no_spans(file, format.title, foreign, &report));
        }
        self.gathered.add(spans, &mut names.names);
        self.gathered.deployments.end_of(&file.into(), &mut report);
        if is_truncated && self.gathered.order.is_by_no_time() {
            self.gathered.truncated.insert(file.into());
        }
        match &self.gathered.failure {
            Some(error) => Err(cannot_spill(error).into()),
            None => Ok(report),
        }
    }

    /// Gives on the spans that were not given on as they came: in parts of whole traces.
    ///
    /// # Errors
    /// When spans cannot be read from the disk where they wait.
    pub(crate) fn pass(self, names: &Names) -> Result<(), Diagnostics> {
        let Gathered { store, take: Some(mut take), by_trace: true, .. } = self.gathered else { return Ok(()) };
        let mut going = true;
        let given = store.batches(|spans, _| {
            going = going && take(names, &spans).is_continue();
            Ok(())
        });
        given.map(drop).map_err(|error| cannot_spill(&error).into())
    }

    /// The same with how operations are to be made of them.
    pub(crate) fn recording(self) -> Recording {
        Recording::new(self.gathered.store, self.options)
    }

    /// Takes in spans that were read before.
    pub(crate) fn append(&mut self, spans: Spans, names: &mut TraceNames) {
        self.gathered.add(spans, &mut names.names);
    }

    /// Gives out the operations that the spans of all files form, in the order of their start.
    ///
    /// # Errors
    /// When spans cannot be written to the folder where they are to go, or read from there.
    pub(crate) fn operations(self, names: &mut TraceNames, sink: &mut dyn Sink) -> Result<ReadReport, Diagnostics> {
        let Gathered { store, deployments, groups, clocks, truncated, about_services, failure, .. } = self.gathered;
        if let Some(error) = failure {
            return Err(cannot_spill(&error).into());
        }
        let mut report = ReadReport::default();
        if let Some(first) = store.files().first() {
            groups.report(first, &names.names, &mut report);
            deployments.report(first, &names.names, &mut report);
        }
        let grains = clocks.grains(store.files());
        let truncated: Vec<bool> = store.files().iter().map(|file| truncated.contains(file)).collect();
        clocks.report(&mut report);
        report.merge(about_services);
        pipeline::operations(store, (&grains, &truncated), &self.options, names, sink, &mut report)
            .map_err(|error| Diagnostics::from(cannot_spill(&error)))?;
        Ok(report)
    }
}

/// An input that fails once its spans are taken no more.
struct UntilStopped<R> {
    input: R,
    stopped: Arc<AtomicBool>,
}

impl<R: Read> Read for UntilStopped<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stopped.load(Relaxed) {
            return Err(io::Error::other("its spans are taken no more"));
        }
        self.input.read(buffer)
    }
}

pub(super) fn cannot_spill(error: &io::Error) -> Diagnostic {
    let message = format!("spans that memory is not to hold cannot be kept on disk: {error}");
    Diagnostic::error(codes::SPILL, Place::Nowhere, message)
        .with_hint("name a folder with room in `TMPDIR`, or let memory hold more with `--memory`")
}

fn no_spans(file: &str, format: &str, foreign: Option<&'static str>, report: &ReadReport) -> Diagnostics {
    let place = Place::File { file: file.into() };
    let mut diagnostic = Diagnostic::error(codes::NO_SPANS, place, format!("there is no {format} span in this file"));
    if let Some(foreign) = foreign {
        diagnostic = diagnostic.with_note(format!("it has {foreign}"));
    }
    for (reason, times) in &report.counted {
        diagnostic = diagnostic.with_note(format!("left out: {reason}, {times} times"));
    }
    let mut all = vec![diagnostic];
    all.extend(report.findings.iter().cloned());
    Diagnostics(all)
}
