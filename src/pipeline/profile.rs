//! From files of probe records, or of spans, to call graphs.

use std::sync::Arc;

use crate::callgraph::{self, Options, ProcessorGroups, Profile};
use crate::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::model::Configuration;
use crate::pipeline::codes;
use crate::pipeline::input::{Input, Reader};
use crate::pipeline::listener::{Listener, Meter};
use crate::trace::{self, CpuProfile, ReadOptions, SpanCalls, SpanOperations, TraceNames, Traces};

/// How call graphs are made.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Profiling {
    /// How calls are analysed.
    pub options: Options,
    /// Spans: attributes with processor time besides those that are known, each with the seconds of its unit.
    pub cpu_attributes: Vec<(String, f64)>,
    /// Spans: CPU profiles whose samples name spans, pprof or OTLP.
    pub cpu_profiles: Vec<Input>,
    /// Whether what [`impact`](super::impact()) needs is kept: every call, and the operations of spans.
    pub for_impact: bool,
}

impl Profiling {
    /// What a configuration says of call graphs, and the rest as it is by default.
    ///
    /// # Errors
    /// `G006` when a name comes twice, a processor is in two groups, or a group is empty.
    pub fn of(configuration: &Configuration) -> Result<Self, Diagnostics> {
        let groups = ProcessorGroups::new(configuration.processor_groups.clone())?;
        let options = Options { groups, ..Options::default() };
        Ok(Self { options, cpu_attributes: configuration.cpu_attributes.clone(), ..Self::default() })
    }
}

/// A call graph, and what its model is made of.
#[non_exhaustive]
pub struct Profiled {
    /// The call graph.
    pub profile: Profile,
    /// The operations of spans, where they were kept.
    pub operations: Option<SpanOperations>,
}

impl From<Profile> for Profiled {
    /// A call graph of records.
    fn from(profile: Profile) -> Self {
        Self { profile, operations: None }
    }
}

/// Reads probe records or spans, packed or not, told apart by their content. The listener hears what was left out.
///
/// # Errors
/// When an input cannot be read to its end, or none holds a record or a span; `C005` when records and spans are mixed, or
/// CPU profiles come with records.
pub fn profile(inputs: &[Input], profiling: &Profiling, listener: &mut dyn Listener) -> Result<Profiled, Diagnostics> {
    let meter = listener.reading(inputs);
    let opened = Diagnostics::gather(inputs.iter().map(|input| {
        let (head, whole) = input.peek()?;
        let spans = trace::format_of_head(&head).is_some_and(trace::Format::has_spans);
        Ok::<_, Diagnostic>(Opened { input, content: meter.watch(whole), spans })
    }))?;
    let mut options = profiling.options.clone();
    if profiling.for_impact {
        options.keep_calls = usize::MAX;
    }
    if opened.iter().any(|file| file.spans) {
        return of_spans(opened, profiling, &options, &*meter, listener);
    }
    no_cpu_profiles(profiling)?;
    let files = opened.into_iter().map(|file| unpacked_input(file.input, file.content));
    let profile = callgraph::analyse(Diagnostics::gather(files)?, &options)?;
    meter.done();
    listener.findings(&profile.reading.findings);
    Ok(profile.into())
}

/// An input that was opened, and whether it begins as a file of spans does.
struct Opened<'a> {
    input: &'a Input,
    content: Reader,
    spans: bool,
}

fn of_spans(
    files: Vec<Opened<'_>>,
    profiling: &Profiling,
    options: &Options,
    meter: &dyn Meter,
    listener: &mut dyn Listener,
) -> Result<Profiled, Diagnostics> {
    if let Some(file) = files.iter().find(|file| !file.spans) {
        let place = Place::File { file: Arc::clone(file.input.name()) };
        let message = "this is no file of spans, as others are";
        return Err(Diagnostic::error(codes::ARGUMENTS, place, message)
            .with_note("calls of records and of spans are not of the same clocks")
            .with_hint("profile them one by one")
            .into());
    }
    let read = |input: &Input| CpuProfile::read(input.name(), input.open()?);
    let profiles = Diagnostics::gather(profiling.cpu_profiles.iter().map(read))?;
    let mut sink = SpanCalls::new(&profiling.cpu_attributes, profiles, profiling.for_impact);
    let (reading, mut names) = (ReadOptions::default(), TraceNames::new());
    let mut traces = Traces::new(&reading, &sink);
    for Opened { input, content, .. } in files {
        traces.take(trace::open(input.name(), content, &reading)?, &mut names, &mut sink)?;
    }
    let report = traces.finish(&mut names, &mut sink)?;
    meter.done();
    listener.left_out(&report);
    let told = report.findings.len();
    let (profile, operations) = sink.finish(names, report, options);
    listener.findings(&profile.reading.findings[told..]);
    Ok(Profiled { profile, operations })
}

/// Refuses CPU profiles for records, which have processor time of their own.
fn no_cpu_profiles(profiling: &Profiling) -> Result<(), Diagnostic> {
    let Some(input) = profiling.cpu_profiles.first() else { return Ok(()) };
    let place = Place::File { file: Arc::clone(input.name()) };
    let message = "CPU profiles tell the processor time of spans, and there are none";
    Err(Diagnostic::error(codes::ARGUMENTS, place, message).with_note("probe records have processor time of their own"))
}

/// Inputs as files of records, unpacked where they are packed.
///
/// # Errors
/// When one cannot be opened.
pub fn unpacked(inputs: &[Input]) -> Result<Vec<callgraph::Input<'static>>, Diagnostics> {
    Diagnostics::gather(inputs.iter().map(|input| unpacked_input(input, input.open()?)))
}

fn unpacked_input(input: &Input, content: Reader) -> Result<callgraph::Input<'static>, Diagnostic> {
    let content = trace::unpacked(content).map_err(|error| {
        let place = Place::File { file: Arc::clone(input.name()) };
        Diagnostic::error(codes::UNREADABLE, place, format!("it cannot be read: {error}"))
    })?;
    Ok(callgraph::Input::new(Arc::clone(input.name()), content))
}
