//! Traces reduced to a sub-model, and what there is to say about it.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lqn::saved::{Kept, Made};
use crate::lqn::submodel::SubModel;
use crate::names::Names;
use crate::pipeline::input::{Input, Reader};
use crate::pipeline::kept::{Division, Joining, divide};
use crate::pipeline::listener::{Listener, Meter};
use crate::pipeline::messages::{self, First, Opened};
use crate::pipeline::operations::{read_operations_after, read_recording};
use crate::pipeline::options::{Analysis, Keep, Options};
use crate::pipeline::rule_findings::about_the_users;
use crate::same::Record;
use crate::same::rules::TemplateCount;
use crate::tlc::rules::SHIPPED;
use crate::tlc::{ReduceOptions, Reducer, Reduction, Rules};
use crate::trace::quality::{Policy, QualityReport};
use crate::trace::spans::recording::Waiting;
use crate::trace::{Operation, Origins, ReadReport, Sink, Toeg, TraceNames};

/// How many findings about traces are shown before the rest are only counted.
pub const SHOWN: usize = 5;

/// What came of traces.
#[non_exhaustive]
pub struct Reduced {
    /// The reduction.
    pub reduction: Reduction,
    /// What the readers saw.
    pub reading: ReadReport,
    /// How entries were merged.
    pub merge: String,
    /// Operations to show; none of saved sub-models.
    pub samples: Option<Samples>,
    /// The interactions, where the traces have no dye, or none was wanted.
    pub interactions: Option<Interactions>,
    /// The recordings that the sub-model keeps, where that was asked for.
    pub kept: Option<Kept>,
    /// Whether operations can be taken one by one, by reducing the inputs anew: nothing of them was summed up for good.
    pub(crate) is_open: bool,
}

/// Interactions that were recognised from messages.
#[non_exhaustive]
pub struct Interactions {
    /// Their records, where they were asked for.
    pub records: Vec<Record>,
    /// Names that they use.
    pub names: TraceNames,
    /// How often each template on events was carried out.
    pub templates: Vec<TemplateCount>,
}

/// Operations that are kept to be shown.
#[non_exhaustive]
pub struct Samples {
    /// The first sound operation of each of the first scenarios.
    pub operations: Vec<Toeg>,
    /// Names that they use.
    pub names: TraceNames,
    /// The rules that were used.
    pub rules: Rules,
}

/// How many operations are kept to be shown.
const SAMPLES: usize = 3;

/// Larger operations are not kept to be shown, in events.
const SAMPLE: usize = 5000;

/// How many operations are looked at for samples.
const ATTEMPTS: usize = 100;

/// Passes operations on and sees what kind of trace they come from.
struct Watch<'w, 'r> {
    reducer: &'w mut Reducer<'r>,
    progress: Arc<dyn Meter>,
    within: Option<Range<i64>>,
    native: bool,
    samples: Vec<Toeg>,
    attempts: usize,
}

impl Watch<'_, '_> {
    fn keep(&mut self, operation: &Operation) {
        let known = self.samples.iter().any(|sample| sample.operation().scenario == operation.scenario);
        if known || self.samples.len() == SAMPLES || self.attempts == ATTEMPTS || operation.events.len() > SAMPLE {
            return;
        }
        self.attempts += 1;
        if let Ok(sample) = Toeg::build(operation.clone()) {
            self.samples.push(sample);
        }
    }
}

impl Sink for Watch<'_, '_> {
    fn operation(&mut self, names: &TraceNames, operation: Operation) -> ControlFlow<()> {
        self.progress.operation();
        // What tells no start is of all times.
        if let (Some(within), Some(start)) = (&self.within, operation.start)
            && !within.contains(&start)
        {
            return ControlFlow::Continue(());
        }
        self.native &= operation.origins == Origins::Lines;
        self.keep(&operation);
        self.reducer.operation(names, operation)
    }
}

/// Passes operations on, and those of which nothing is kept also to a reducer of their own.
struct Both<'w, 'v, 'r> {
    watch: &'v mut Watch<'w, 'r>,
    closed: Reducer<'r>,
    /// Whether these are of the native format.
    native: bool,
    /// Operations that are kept.
    waiting: Option<Waiting>,
}

impl Sink for Both<'_, '_, '_> {
    fn operation(&mut self, names: &TraceNames, operation: Operation) -> ControlFlow<()> {
        if !self.waiting.as_ref().is_some_and(|waiting| waiting.has(&operation.run)) {
            self.native &= operation.origins == Origins::Lines;
            // What is wrong with it, the other says.
            let _ = self.closed.operation(names, operation.clone());
        }
        self.watch.operation(names, operation)
    }
}

/// Reduces traces, the first of which may be open already, and tells what was left out on the way.
///
/// # Errors
/// All that keeps any of the traces from being read; options that do not go with them; faulty rules.
pub fn reduce(
    inputs: &[Input],
    first: Option<Reader>,
    options: &Options,
    listener: &mut dyn Listener,
) -> Result<Reduced, Diagnostics> {
    reduce_joining(inputs, first, Joining::default(), options, listener)
}

/// The same with what saved sub-models hold: operations that have spans in several of them, or in the traces, are put together.
///
/// # Errors
/// As [`reduce`]; sub-models that do not go together.
pub fn reduce_joining(
    inputs: &[Input],
    first: Option<Reader>,
    mut joining: Joining,
    options: &Options,
    listener: &mut dyn Listener,
) -> Result<Reduced, Diagnostics> {
    let progress = listener.reading(inputs);
    let wanted = options.analysis == Some(Analysis::Messages);
    let first = match messages::open(inputs, first, &options.reading, wanted, &progress)? {
        Opened::Operations(first) => first,
        Opened::Messages(sources, why) => {
            messages::check_arguments(options)?;
            let mut reduced = messages::reduce(sources, &why, options, listener)?;
            if !joining.is_empty() {
                joining.tell_twice(inputs, &reduced.reduction.submodel, listener);
                let given = join(joining, options, listener)?;
                let own = std::mem::replace(&mut reduced.reduction.submodel, given.reduction.submodel);
                reduced.reduction.submodel.merge(&own);
                reduced.kept = given.kept;
                if let Some(kept) = &mut reduced.kept {
                    kept.closed.merge(&own);
                }
            }
            return Ok(reduced);
        }
    };
    reduce_recording((inputs, first), joining, &progress, options, listener)
}

/// Puts together what saved sub-models hold.
///
/// # Errors
/// Where they do not go together.
pub fn join(joining: Joining, options: &Options, listener: &mut dyn Listener) -> Result<Reduced, Diagnostics> {
    joining.check_deployment(&options.reading)?;
    let exceeds = options.keep_spans.is_some_and(|most| joining.exceeds(most));
    let is_other = options.within.is_some() || joining.is_other(&options.reading);
    if joining.has_several() || exceeds || is_other && joining.is_open() {
        return reduce_recording((&[], None), joining, &(Arc::new(()) as _), options, listener);
    }
    if joining.has_summed_up() {
        joining.tell_late(&joining.spans(&mut Names::new())?, listener);
    }
    let is_open = joining.is_open();
    let (submodel, kept) = joining.only();
    let kept = kept.filter(|_| options.keep_spans.is_some());
    Ok(Reduced { kept, is_open, ..Reduced::of(submodel, options.merge.label()) })
}

impl Reduced {
    /// A sub-model that is at hand, whose entries something told apart.
    pub(super) fn of(submodel: SubModel, merge: &str) -> Self {
        let reduction = Reduction { submodel, ..Reduction::default() };
        let (reading, merge) = (ReadReport::default(), merge.to_owned());
        Self { reduction, reading, merge, samples: None, interactions: None, kept: None, is_open: false }
    }
}

/// Reduces traces together with the spans that sub-models keep.
fn reduce_recording(
    (inputs, first): (&[Input], First),
    mut joining: Joining,
    progress: &Arc<dyn Meter>,
    options: &Options,
    listener: &mut dyn Listener,
) -> Result<Reduced, Diagnostics> {
    joining.check_deployment(&options.reading)?;
    let reading = joining.reading(&options.reading)?;
    let options = &Options { reading, ..options.clone() };
    let mut kept = None;
    let mut reduced = reduce_with(progress, options, listener, |rules, names, watch, listener| {
        joining.check_rules(rules)?;
        let before = joining.spans(&mut names.names)?;
        joining.tell_late(&before, listener);
        let (inputs, reading) = ((inputs, first), &options.reading);
        let before = before.into_iter().map(|(_, spans)| spans).collect();
        let Some(most) = options.keep_spans else {
            return read_operations_after(inputs, reading, progress, before, names, watch);
        };
        let closed = Reducer::new(rules, reduce_options(options));
        let mut both = Both { watch, closed, native: true, waiting: None };
        let (mut recording, mut report) = read_recording(inputs, reading, progress, before, names, &mut both)?;
        if recording.is_empty() {
            return Ok(report);
        }
        let made = Made { rules: rules.digest(), group: reading.grouping.patterns(), sampling: reading.sampling };
        let Division { kept: mut own, waiting } = divide(&mut recording, most, &made, names, listener)?;
        report.merge(if waiting.is_some() {
            both.waiting = waiting;
            recording.operations(names, &mut both)?
        } else {
            recording.operations(names, both.watch)?
        });
        own.closed = both.closed.finish(names).map(|reduction| reduction.submodel).unwrap_or_default();
        own.closed.concurrent |= !both.native;
        kept = Some(own);
        Ok(report)
    })?;
    if !inputs.is_empty() {
        joining.tell_twice(inputs, &reduced.reduction.submodel, listener);
    }
    reduced.is_open = joining.is_open();
    reduced.reduction.submodel.merge(&joining.closed);
    reduced.kept = kept.map(|mut kept| {
        kept.closed.merge(&joining.closed);
        kept.closed_traces.merge(&joining.closed_traces);
        kept
    });
    Ok(reduced)
}

fn reduce_options(options: &Options) -> ReduceOptions {
    ReduceOptions {
        merge: options.merge,
        is_silent_apart: options.is_silent_apart,
        engine: options.engine,
        policy: Policy { strict: options.reading.strict },
        threads: options.threads,
        keep_matches: options.keep_matches != Keep::Nothing,
        keep_bindings: options.keep_matches == Keep::Bindings,
    }
}

/// Reduces operations as some reader gives them out.
///
/// # Errors
/// Those of the reader; options that do not go with operations; faulty rules.
pub fn reduce_operations(
    progress: &Arc<dyn Meter>,
    options: &Options,
    listener: &mut dyn Listener,
    read: impl FnOnce(&mut TraceNames, &mut dyn Sink) -> Result<ReadReport, Diagnostics>,
) -> Result<Reduced, Diagnostics> {
    reduce_with(progress, options, listener, |_, names, watch, _| read(names, watch))
}

/// The same for readers that look at the rules, or tell of something.
fn reduce_with(
    progress: &Arc<dyn Meter>,
    options: &Options,
    listener: &mut dyn Listener,
    read: impl for<'r> FnOnce(
        &'r Rules,
        &mut TraceNames,
        &mut Watch<'_, 'r>,
        &mut dyn Listener,
    ) -> Result<ReadReport, Diagnostics>,
) -> Result<Reduced, Diagnostics> {
    messages::check_dyed(options)?;
    let rules = rules(options, listener)?;
    listener.findings(&about_the_users(&rules));
    let mut names = TraceNames::new();
    let mut reducer = Reducer::new(&rules, reduce_options(options));
    let mut watch = Watch {
        reducer: &mut reducer,
        progress: Arc::clone(progress),
        within: options.within.clone(),
        native: true,
        samples: Vec::new(),
        attempts: 0,
    };
    let mut errors: Vec<Diagnostic> = Vec::new();
    let report = read(&rules, &mut names, &mut watch, listener).unwrap_or_else(|Diagnostics(found)| {
        errors.extend(found);
        ReadReport::default()
    });
    let (native, samples) = (watch.native, watch.samples);
    let mut reduction = match reducer.finish(&names) {
        Ok(reduction) => reduction,
        Err(Diagnostics(found)) => {
            errors.extend(found);
            Reduction::default()
        }
    };
    progress.done();
    if !errors.is_empty() {
        return Err(Diagnostics(errors));
    }
    tell(&report, &reduction, listener);
    reduction.submodel.concurrent |= !native;
    let merge = options.merge.label().to_owned();
    let samples = Some(Samples { operations: samples, names, rules });
    Ok(Reduced { reduction, reading: report, merge, samples, interactions: None, kept: None, is_open: false })
}

/// Tells what was left out: the first findings of each kind, and figures.
fn tell(report: &ReadReport, reduction: &Reduction, listener: &mut dyn Listener) {
    listener.left_out(report);
    count(report, "reading", listener);
    tell_quality(&reduction.quality, listener);
    listener.first_findings(&reduction.findings.findings, SHOWN, "");
    count(&reduction.findings, "matching", listener);
}

/// Tells which operations were damaged or doubtful, the first of them, and how many were restored and set aside.
pub fn tell_quality(quality: &QualityReport, listener: &mut dyn Listener) {
    let damaged: Vec<Diagnostic> = quality.damaged.iter().map(|kept| kept.finding.clone()).collect();
    listener.first_findings(&damaged, SHOWN, "; `dyelog trace check` lists them");
    let doubtful: Vec<Diagnostic> = quality.doubtful.iter().map(|kept| kept.finding.clone()).collect();
    listener.first_findings(&doubtful, SHOWN, "; `dyelog trace check` lists them");
    if quality.restored + quality.set_aside > 0 {
        listener.words(&format!(
            "of {} operations {} were well formed, {} restored and {} set aside\n",
            quality.operations, quality.sound, quality.restored, quality.set_aside
        ));
    }
}

/// Says how often each reason came up.
pub fn count(report: &ReadReport, doing: &str, listener: &mut dyn Listener) {
    if report.counted.is_empty() {
        return;
    }
    let reasons: Vec<String> = report.counted.iter().map(|(reason, times)| format!("{reason}: {times}")).collect();
    listener.words(&format!("{doing}: {}\n", reasons.join(", ")));
}

/// The rules that the options ask for; the shipped ones else.
fn rules(options: &Options, listener: &mut dyn Listener) -> Result<Rules, Diagnostics> {
    if let Some(load) = options.rules {
        return load(listener);
    }
    for (name, text) in SHIPPED {
        listener.source(name.into(), text.into());
        listener.source(format!("rules/{name}").into(), text.into());
    }
    Ok(Rules::shipped())
}
