//! Traces read operation by operation, for explanations.

use std::ops::ControlFlow;
use std::path::PathBuf;

use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::tlc::Rules;
use dyelog::tlc::explain::{Studies, Study};
use dyelog::tlc::matcher::Relations;
use dyelog::trace::quality::{Policy, QualityReport};
use dyelog::trace::{self, NodeName, Operation, Sink, TraceNames};

use crate::cli::args::ReadingArguments;
use crate::cli::progress::Progress;
use crate::cli::terminal::set_aside_words;
use crate::cli::{Failure, codes, input, messages};

/// Lets all sound operations of traces come by, up to a break.
pub fn each(
    files: &[PathBuf],
    reading: &ReadingArguments,
    rules: &Rules,
    work: impl FnMut(&Study<'_>, &dyn Relations) -> ControlFlow<()>,
) -> Result<QualityReport, Failure> {
    messages::check_clocks(reading)?;
    let progress = Progress::reading(files);
    let options = reading.options();
    let mut names = TraceNames::new();
    let mut studies = Studies::new(rules, work);
    let ((), quality) = studies.run(Policy { strict: reading.strict }, |gate| {
        for file in files {
            let mut stopped = false;
            let mut sink = |names: &TraceNames, operation: Operation| {
                progress.operation();
                let flow = Sink::operation(&mut *gate, names, operation);
                stopped = flow.is_break();
                flow
            };
            let input = input::open(file)?;
            trace::read(&input::shown(file), progress.watch(input), &options, &mut names, &mut sink)?;
            if stopped {
                break;
            }
        }
        Ok(())
    })?;
    progress.done();
    Ok(quality)
}

/// Traces to search: those given, and the file that the node's name tells where none is.
pub fn traces(given: &[PathBuf], node: &NodeName) -> Result<Vec<PathBuf>, Failure> {
    if !given.is_empty() {
        return Ok(given.to_vec());
    }
    match node.file() {
        Some(file) => Ok(vec![PathBuf::from(file)]),
        None => {
            let message = format!("there is no trace to look for node `{node}` in");
            let finding = Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message);
            Err(finding.with_hint("name a trace behind it, or name the node as `FILE:LINE`").into())
        }
    }
}

/// Which operation a question is about.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct OperationArguments {
    /// Only the operation with this run identifier; of several operations with the node, the first counts
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
}

/// Gathers hints for a node name that the traces do not have.
#[derive(Debug, Default)]
pub struct Missing {
    scenarios: Vec<String>,
    runs: Vec<String>,
    spans: Vec<String>,
    /// What comes nearest to the name.
    near: Option<String>,
    /// How far from the line that was named the nearest with an event is.
    apart: Option<u32>,
    operations: u64,
}

/// How many names are kept to suggest one of.
const KEPT: usize = 10_000;

impl Missing {
    /// Takes note of an operation that does not have the node.
    pub fn saw(&mut self, study: &Study<'_>, node: &NodeName) {
        self.operations += 1;
        let operation = study.toeg.operation();
        let scenario = study.scenario();
        if self.scenarios.len() < KEPT && self.scenarios.last().is_none_or(|last| last != scenario) {
            self.scenarios.push(scenario.to_owned());
        }
        if self.runs.len() < KEPT {
            self.runs.push(operation.run.to_string());
        }
        match node {
            NodeName::Stamp { scenario: wanted, thread, .. } => {
                let same = wanted.as_ref().is_none_or(|wanted| **wanted == *scenario);
                if same && let Some(found) = study.toeg.thread(*thread) {
                    let count = found.last - found.first + 1;
                    self.near.get_or_insert_with(|| {
                        format!("thread {thread} of run `{}` has nodes 1 to {count}", operation.run)
                    });
                } else if same {
                    self.near.get_or_insert_with(|| {
                        let threads = study.toeg.threads();
                        let last = threads.last().map_or(0, |thread| thread.id);
                        match threads.len() {
                            1 => format!("run `{}` has one thread, {last}", operation.run),
                            count => format!("run `{}` has {count} threads, the last of them {last}", operation.run),
                        }
                    });
                }
            }
            NodeName::OnTask { task, .. } => {
                let events = &operation.events;
                let counters = events.iter().filter(|event| study.names.task_label(event.task) == *task);
                if let Some(last) = counters.map(|event| event.counter).max() {
                    self.near.get_or_insert_with(|| {
                        format!("task `{task}` has nodes 1 to {last} in run `{}`", operation.run)
                    });
                }
            }
            NodeName::Place { item, .. } => self.saw_place(study, item),
        }
    }

    fn saw_place(&mut self, study: &Study<'_>, item: &str) {
        let operation = study.toeg.operation();
        for event in &operation.events {
            if let Some(span) = operation.span_of(event) {
                if self.spans.len() < KEPT {
                    self.spans.push(span.id.to_string());
                }
            } else if let Ok(line) = item.parse::<u32>()
                && let apart = line.abs_diff(event.origin)
                && apart <= 2
                && self.apart.is_none_or(|known| apart < known)
            {
                self.apart = Some(apart);
                self.near = Some(format!("line {} has one", event.origin));
            }
        }
    }

    /// That there is no such node.
    pub fn finding(&self, node: &NodeName, run: Option<&str>, quality: &QualityReport) -> Diagnostic {
        let of = run.map(|run| format!(" in run `{run}`")).unwrap_or_default();
        let message = format!("the traces have no node `{node}`{of}");
        let mut finding = Diagnostic::error(codes::NOT_THERE, Place::Nowhere, message);
        if let (Some(run), false) = (run, self.runs.iter().any(|other| Some(&**other) == run)) {
            finding = finding.with_similar(run, self.runs.iter().map(String::as_str));
        }
        if let Some(near) = &self.near {
            finding = finding.with_note(near.clone());
        }
        finding = match node {
            NodeName::Stamp { scenario: Some(scenario), .. } if !self.scenarios.contains(scenario) => {
                finding.with_similar(scenario, self.scenarios.iter().map(String::as_str))
            }
            NodeName::Place { item, .. } => finding.with_similar(item, self.spans.iter().map(String::as_str)),
            _ => finding,
        };
        if quality.set_aside > 0 {
            finding = finding.with_note(set_aside_words(quality.set_aside));
        }
        finding.with_hint(
            "a node is named `SCENARIO,THREAD,COUNTER` as in the native format, `THREAD,COUNTER`, `FILE:LINE`, or by the \
             identifier of its span",
        )
    }
}
