//! Traces reduced to a sub-model, and what there is to say about it.

use std::io::Read;
use std::ops::ControlFlow;
use std::path::PathBuf;

use dyelog::diagnostic::{Diagnostic, Diagnostics, Severity};
use dyelog::same::Record;
use dyelog::tlc::{ReduceOptions, Reducer, Reduction, Rules};
use dyelog::trace::quality::Policy;
use dyelog::trace::{Operation, Origins, ReadReport, Sink, Toeg, TraceNames};

use crate::cli::args::{Analysis, ReadingArguments, ReduceArguments};
use crate::cli::messages::Opened;
use crate::cli::progress::Progress;
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, input, messages, rule_files};

/// How many findings about traces are shown before the rest are only counted.
pub const SHOWN: usize = 5;

/// What came of traces.
pub struct Reduced {
    /// The reduction.
    pub reduction: Reduction,
    /// What the readers saw.
    pub reading: ReadReport,
    /// How entries were told apart.
    pub merge: String,
    /// Operations to show; none of saved sub-models.
    pub samples: Option<Samples>,
    /// The interactions, where the traces have no dye, or none was wanted.
    pub interactions: Option<Interactions>,
}

/// Interactions that were recognised from messages.
pub struct Interactions {
    /// Their records, where they were asked for.
    pub records: Vec<Record>,
    /// Names that they use.
    pub names: TraceNames,
}

/// Operations that are kept to be shown.
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
    progress: Progress,
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

/// What is kept of matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Nothing.
    Nothing,
    /// A row each.
    Rows,
    /// A row each, with what it binds.
    Bindings,
}

impl From<bool> for Keep {
    fn from(rows: bool) -> Self {
        if rows { Self::Rows } else { Self::Nothing }
    }
}

/// Reduces traces, the first of which may be open already, and shows what was left out on the way.
pub fn reduce(
    files: &[PathBuf],
    first: Option<Box<dyn Read + Send>>,
    reading: &ReadingArguments,
    arguments: &ReduceArguments,
    keep_matches: Keep,
    terminal: &mut Terminal,
) -> Result<Reduced, Failure> {
    input::check_stdin_once(files.iter().chain(&arguments.rules))?;
    let progress = Progress::reading(files);
    let wanted = arguments.analysis == Some(Analysis::Same);
    let mut first = match messages::open(files, first, reading, wanted, &progress)? {
        Opened::Operations(first) => first,
        Opened::Messages(sources, why) => {
            messages::check_arguments(arguments)?;
            return messages::reduce(sources, &why, reading, arguments, keep_matches != Keep::Nothing, terminal);
        }
    };
    messages::check_dyed(arguments)?;
    let rules = rule_files::load(&arguments.rules, &mut terminal.sources)?;
    terminal.report(&rule_files::about_the_users(&rules));
    let options = ReduceOptions {
        merge: arguments.merge.into(),
        engine: arguments.engine.into(),
        policy: Policy { strict: reading.strict },
        threads: arguments.thread_count(),
        keep_matches: keep_matches != Keep::Nothing,
        keep_bindings: keep_matches == Keep::Bindings,
    };
    let mut names = TraceNames::new();
    let mut reducer = Reducer::new(&rules, options);
    let mut watch =
        Watch { reducer: &mut reducer, progress: progress.clone(), native: true, samples: Vec::new(), attempts: 0 };
    let mut report = ReadReport::default();
    let mut errors: Vec<Diagnostic> = Vec::new();
    for file in files {
        let outcome = first
            .take()
            .unwrap_or_else(|| messages::open_one(file, None, reading, &progress))
            .and_then(|open| open.operations(&mut names, &mut watch));
        match outcome {
            Ok(read) => report.merge(read),
            Err(Diagnostics(found)) => errors.extend(found),
        }
    }
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
        return Err(Failure::Input(errors));
    }
    tell(&report, &reduction, terminal);
    reduction.submodel.concurrent |= !native;
    let merge = arguments.merge.label().to_owned();
    let samples = Some(Samples { operations: samples, names, rules });
    Ok(Reduced { reduction, reading: report, merge, samples, interactions: None })
}

/// Tells what was left out: the first findings of each kind, and figures.
fn tell(report: &ReadReport, reduction: &Reduction, terminal: &Terminal) {
    terminal.report_kinds(report, |finding| finding.severity != Severity::Note);
    count(report, "reading", terminal);
    let quality = &reduction.quality;
    let damaged: Vec<Diagnostic> = quality.damaged.iter().map(|kept| kept.finding.clone()).collect();
    terminal.report_first(&damaged, SHOWN, "; `dyelog trace check` tells of them");
    let doubtful: Vec<Diagnostic> = quality.doubtful.iter().map(|kept| kept.finding.clone()).collect();
    terminal.report_first(&doubtful, SHOWN, "; `dyelog trace check` tells of them");
    if quality.restored + quality.set_aside > 0 {
        terminal.say(&format!(
            "of {} operations {} were well formed, {} restored and {} set aside\n",
            quality.operations, quality.sound, quality.restored, quality.set_aside
        ));
    }
    terminal.report_first(&reduction.findings.findings, SHOWN, "");
    count(&reduction.findings, "matching", terminal);
}

/// Says how often each reason came up.
pub fn count(report: &ReadReport, doing: &str, terminal: &Terminal) {
    if report.counted.is_empty() {
        return;
    }
    let reasons: Vec<String> = report.counted.iter().map(|(reason, times)| format!("{reason}: {times}")).collect();
    terminal.say(&format!("{doing}: {}\n", reasons.join(", ")));
}
