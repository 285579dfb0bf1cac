//! Traces of messages, and traces with a dye that are read as such.

use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics, Place, Severity, similar};
use crate::pipeline::codes;
use crate::pipeline::exchanges::Recorder;
use crate::pipeline::input::{Input, Reader};
use crate::pipeline::listener::{Listener, Meter};
use crate::pipeline::operations::{count_left_out, read_operations, sifted};
use crate::pipeline::options::{Analysis as Way, Keep, Options, Reading};
use crate::pipeline::reduce::{Interactions, Reduced, count};
use crate::query::Exchanges;
use crate::same::threads::{Threaded, Threads};
use crate::same::{self, Analysis, Same};
use crate::tlc::Reduction;
use crate::trace::messages::clocks::{Corrected, Correction};
use crate::trace::messages::{self, MessageStep, Source, StepSink, operations};
use crate::trace::{self, OpenTrace, ReadReport, TaskId, TraceNames};

/// How many findings are shown.
const SHOWN: usize = 5;

/// What traces are, by the first of them.
pub enum Opened {
    /// Operations, which a dye tells apart; the first file, where it is open.
    Operations(First),
    /// Messages, and why they are analysed as such.
    Messages(Messages, String),
}

/// The first of the traces, open, and what became of that; `None` where there is none.
pub type First = Option<Result<OpenTrace<'static>, Diagnostics>>;

/// Messages to be read.
pub struct Messages {
    /// A trace each, of one or more inputs.
    traces: Vec<Vec<Box<dyn Source>>>,
    pub(super) names: TraceNames,
    report: ReadReport,
    progress: Arc<dyn Meter>,
    /// Whether tasks are services, which serve several requests at once.
    pub(super) services: bool,
    files: Vec<String>,
    clocks: Vec<Correction>,
}

/// Opens traces, of which the first may be open already; `wanted` reads operations as messages, too.
pub fn open(
    files: &[Input],
    first: Option<Reader>,
    reading: &Reading,
    wanted: bool,
    progress: &Arc<dyn Meter>,
) -> Result<Opened, Diagnostics> {
    let (kept, left) = sifted(files, reading);
    let Some(file) = kept.first() else { return Ok(Opened::Operations(None)) };
    let first = first.filter(|_| files.first().is_some_and(|named| named.name() == file.name()));
    let opened = open_one(file, first, reading, progress);
    let has_messages = opened.as_ref().is_ok_and(|open| open.format().has_messages());
    if opened.is_err() || !has_messages && !wanted {
        check_clocks(reading)?;
        // What cannot be read is reported together with what is wrong with the others.
        return Ok(Opened::Operations(Some(opened)));
    }
    let mut messages = Messages::open(&kept, Some(opened), reading, has_messages, progress)?;
    count_left_out(&mut messages.report, &left);
    let why = if has_messages {
        "the traces have messages without operations".to_owned()
    } else {
        "as `--analysis same` asks; the dye of the traces is left out".to_owned()
    };
    Ok(Opened::Messages(messages, why))
}

/// Opens a trace, which may be open already as a file.
///
/// # Errors
/// When it cannot be read or its format is not known.
pub fn open_one(
    input: &Input,
    first: Option<Reader>,
    reading: &Reading,
    progress: &Arc<dyn Meter>,
) -> Result<OpenTrace<'static>, Diagnostics> {
    let open = match first {
        Some(open) => open,
        None => input.open()?,
    };
    trace::open(input.name(), progress.watch(open), &reading.options())
}

impl Messages {
    fn open(
        files: &[Input],
        mut first: First,
        reading: &Reading,
        has_messages: bool,
        progress: &Arc<dyn Meter>,
    ) -> Result<Self, Diagnostics> {
        let mut own = Self {
            traces: Vec::new(),
            names: TraceNames::new(),
            report: ReadReport::default(),
            progress: Arc::clone(progress),
            services: !has_messages,
            files: Vec::new(),
            clocks: Vec::new(),
        };
        if has_messages {
            Diagnostics::gather(files.iter().map(|file| {
                let open = first.take().unwrap_or_else(|| open_one(file, None, reading, progress))?;
                let source = own.corrected(open.messages()?, &reading.clocks);
                match own.traces.first_mut() {
                    Some(first) if reading.one_trace => first.push(source),
                    _ => own.traces.push(vec![source]),
                }
                Ok::<(), Diagnostics>(())
            }))?;
        } else {
            let mut plain = operations::Messages::new();
            own.report = read_operations(files, first, reading, progress, &mut own.names, &mut plain)?;
            if !plain.is_empty() {
                let plain = own.corrected(Box::new(plain), &reading.clocks);
                own.traces.push(vec![plain]);
            }
        }
        own.clocks.clone_from(&reading.clocks);
        Ok(own)
    }

    /// A source with its clocks corrected.
    fn corrected(&mut self, source: Box<dyn Source>, clocks: &[Correction]) -> Box<dyn Source> {
        self.files.push(source.file().to_string());
        if clocks.is_empty() { source } else { Box::new(Corrected::new(source, clocks)) }
    }

    /// Tells of corrections of what is not there.
    fn check_clocks(&self) -> Vec<Diagnostic> {
        let tasks: Vec<&str> =
            (0..self.names.task_count() as u32).map(|task| self.names.task_name(TaskId(task))).collect();
        let known = || self.files.iter().map(String::as_str).chain(tasks.iter().copied());
        let unknown = self.clocks.iter().filter(|correction| !known().any(|name| name == correction.clock));
        unknown
            .map(|Correction { clock, .. }| {
                let message =
                    format!("`--clock`: the traces have no task `{clock}`, and none of the files has that name");
                let finding = Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message);
                match similar(clock, known()) {
                    Some(near) => finding.with_hint(format!("did you mean `{near}`?")),
                    None => finding,
                }
            })
            .collect()
    }

    /// Reads all of them into a sink.
    pub fn read(mut self, sink: &mut dyn StepSink) -> Result<(TraceNames, ReadReport), Diagnostics> {
        let mut errors: Vec<Diagnostic> = Vec::new();
        for trace in std::mem::take(&mut self.traces) {
            if let Err(Diagnostics(found)) = self.read_one(trace, sink) {
                errors.extend(found);
            }
        }
        self.progress.done();
        errors.extend(self.check_clocks());
        if errors.is_empty() { Ok((self.names, self.report)) } else { Err(Diagnostics(errors)) }
    }

    /// Reads each trace into a sink of its own, which is given back with the names of its tasks and what the guess of threads found,
    /// where threads are guessed. Gives the names of all threads then.
    pub(super) fn each<S: StepSink>(
        &mut self,
        guess: bool,
        make: impl Fn(Vec<Arc<str>>) -> S,
        mut done: impl FnMut(S, &TraceNames, ReadReport),
    ) -> Result<Option<TraceNames>, Diagnostics> {
        let mut threads = TraceNames::new();
        let mut errors: Vec<Diagnostic> = Vec::new();
        for trace in std::mem::take(&mut self.traces) {
            let mut sink = make(trace.iter().map(|source| Arc::clone(source.file())).collect());
            let read = if guess {
                let mut guessing = Threads::new(sink, std::mem::take(&mut threads), false);
                self.read_one(trace, &mut guessing).map(|()| {
                    let Threaded { sink, names, findings, .. } = guessing.finish();
                    threads = names;
                    done(sink, &threads, findings);
                })
            } else {
                self.read_one(trace, &mut sink).map(|()| done(sink, &self.names, ReadReport::default()))
            };
            if let Err(Diagnostics(found)) = read {
                errors.extend(found);
            }
        }
        self.progress.done();
        errors.extend(self.check_clocks());
        if errors.is_empty() { Ok(guess.then_some(threads)) } else { Err(Diagnostics(errors)) }
    }

    /// The messages with the interactions that they make, the names of their tasks, and what there is to say; threads are guessed where
    /// that is asked for.
    ///
    /// # Errors
    /// When a trace cannot be read or, where reading is strict, is damaged.
    pub fn exchanges(
        mut self,
        guess_threads: bool,
        strict: bool,
    ) -> Result<(Exchanges, TraceNames, ReadReport), Diagnostics> {
        let (mut exchanges, mut findings) = (Exchanges::default(), ReadReport::default());
        let threads = self.each(guess_threads || self.services, Recorder::new, |recorder, names, found| {
            let (heard, told) = recorder.finish(names);
            exchanges.merge(heard);
            findings.merge(found);
            findings.merge(told);
        })?;
        let Self { names, report: mut read, .. } = self;
        if strict {
            refuse_warnings(&read)?;
        }
        read.merge(findings);
        Ok((exchanges, threads.unwrap_or(names), read))
    }

    /// Reads a trace into a sink.
    fn read_one(&mut self, trace: Vec<Box<dyn Source>>, sink: &mut dyn StepSink) -> Result<(), Diagnostics> {
        let progress = &self.progress;
        let mut watch = |names: &TraceNames, step: &MessageStep| {
            progress.operation();
            sink.step(names, step)
        };
        self.report.merge(messages::read_all(trace, &mut self.names, &mut watch)?);
        Ok(())
    }
}

/// Takes warnings of reading for errors.
fn refuse_warnings(read: &ReadReport) -> Result<(), Diagnostics> {
    let warnings = read.findings.iter().filter(|finding| finding.severity == Severity::Warning);
    let errors: Vec<Diagnostic> =
        warnings.map(|finding| Diagnostic { severity: Severity::Error, ..finding.clone() }).collect();
    if errors.is_empty() { Ok(()) } else { Err(Diagnostics(errors)) }
}

/// Refuses corrections of clocks where these would have no meaning.
pub fn check_clocks(reading: &Reading) -> Result<(), Diagnostics> {
    if reading.clocks.is_empty() {
        return Ok(());
    }
    let message = "`--clock` is for messages: a dye names the operation, whatever clocks say";
    Err(Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message).into())
}

/// Refuses what is for messages only.
pub fn check_dyed(options: &Options) -> Result<(), Diagnostics> {
    if options.guess_threads {
        let message =
            "`--guess-threads` is for messages: traces with a dye need no guess unless `--analysis same` leaves it out";
        return Err(Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message).into());
    }
    Ok(())
}

/// Refuses what is for templates only.
pub fn check_arguments(options: &Options) -> Result<(), Diagnostics> {
    let refuse = |message: &str| -> Diagnostics { Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message).into() };
    if options.analysis == Some(Way::Templates) {
        return Err(refuse("`--analysis tlc` needs a trace with a dye: these tell of messages only"));
    }
    if options.rules.is_some() && options.event_rules.is_none() {
        return Err(refuse("these rules are for traces with a dye; messages are analysed by templates on events"));
    }
    Ok(())
}

/// Reduces messages to a sub-model, and shows what was left out on the way.
pub fn reduce(
    messages: Messages,
    why: &str,
    options: &Options,
    listener: &mut dyn Listener,
) -> Result<Reduced, Diagnostics> {
    let mut messages = messages;
    let services = messages.services || options.guess_threads;
    let same_options = same::Options {
        merge: options.merge,
        records: options.keep_matches != Keep::Nothing,
        ..same::Options::default()
    };
    let rules = options.event_rules.map_or_else(|| Ok(same::Rules::shipped()), |load| load(listener))?;
    listener.findings(rules.warnings());
    let mut analysis = Analysis::default();
    let threads = messages.each(
        services,
        |files| Same::with(Arc::clone(&rules), same_options, files),
        |same, names, findings| {
            let mut finished = same.finish(names);
            finished.findings.merge(findings);
            analysis.merge(finished);
        },
    )?;
    let Messages { names, report: read, .. } = messages;
    let names = threads.unwrap_or(names);
    if options.reading.strict {
        refuse_warnings(&read)?;
    }
    let [sync, asynchronous, forward] = analysis.counts;
    listener.words(&format!(
        "analysis SAME: {why}\n{} {}: {sync} synchronous, {asynchronous} asynchronous and {forward} forwarded interactions{}\n",
        analysis.messages,
        if analysis.messages == 1 { "message" } else { "messages" },
        if services { "\nthe traces do not name the threads of services: threads were guessed" } else { "" }
    ));
    let weighty = |finding: &&Diagnostic| finding.severity != Severity::Note;
    let shown: Vec<Diagnostic> = read.findings.iter().filter(weighty).cloned().collect();
    listener.first_findings(&shown, SHOWN, "; `dyelog trace check` lists them");
    count(&read, "reading", listener);
    listener.first_findings(&analysis.findings.findings, SHOWN, "");
    analysis.submodel.concurrent |= services;
    if services {
        // A service has as many threads as it needs.
        analysis.submodel.instances.clear();
    }
    let reduction = Reduction { submodel: analysis.submodel, findings: analysis.findings, ..Reduction::default() };
    let interactions = Some(Interactions { records: analysis.records, names, templates: analysis.templates });
    Ok(Reduced {
        reduction,
        reading: read,
        merge: options.merge.label().to_owned(),
        samples: None,
        interactions,
        kept: None,
        is_open: false,
    })
}
