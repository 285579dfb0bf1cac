//! Traces reduced to a sub-model, and what there is to say about it.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::pipeline::input::{Input, Reader};
use crate::pipeline::listener::{Listener, Meter};
use crate::pipeline::messages::{self, Opened};
use crate::pipeline::operations::read_operations;
use crate::pipeline::options::{Analysis, Keep, Options};
use crate::pipeline::rule_findings::about_the_users;
use crate::same::Record;
use crate::same::rules::TemplateCount;
use crate::tlc::rules::SHIPPED;
use crate::tlc::{ReduceOptions, Reducer, Reduction, Rules};
use crate::trace::quality::{Policy, QualityReport};
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
        self.native &= operation.origins == Origins::Lines;
        self.keep(&operation);
        self.reducer.operation(names, operation)
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
    let progress = listener.reading(inputs);
    let wanted = options.analysis == Some(Analysis::Messages);
    let first = match messages::open(inputs, first, &options.reading, wanted, &progress)? {
        Opened::Operations(first) => first,
        Opened::Messages(sources, why) => {
            messages::check_arguments(options)?;
            return messages::reduce(sources, &why, options, listener);
        }
    };
    reduce_operations(&progress, options, listener, |names, sink| {
        read_operations(inputs, first, &options.reading, &progress, names, sink)
    })
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
    messages::check_dyed(options)?;
    let rules = rules(options, listener)?;
    listener.findings(&about_the_users(&rules));
    let reduce_options = ReduceOptions {
        merge: options.merge,
        engine: options.engine,
        policy: Policy { strict: options.reading.strict },
        threads: options.threads,
        keep_matches: options.keep_matches != Keep::Nothing,
        keep_bindings: options.keep_matches == Keep::Bindings,
    };
    let mut names = TraceNames::new();
    let mut reducer = Reducer::new(&rules, reduce_options);
    let mut watch =
        Watch { reducer: &mut reducer, progress: Arc::clone(progress), native: true, samples: Vec::new(), attempts: 0 };
    let mut errors: Vec<Diagnostic> = Vec::new();
    let report = read(&mut names, &mut watch).unwrap_or_else(|Diagnostics(found)| {
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
    Ok(Reduced { reduction, reading: report, merge, samples, interactions: None })
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
