//! Operations put together from headers and labels, whatever notation these were written in.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::grammar::{ATTRIBUTES, Header, Label, Word};
use super::rank::Ranker;
use super::recent::Recent;
use crate::{Event, Extent, Operation, Origins, ReadReport, Sink, TaskId, TraceNames, codes};
use dyelog_diagnostic::names::Name;
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place, Severity};

/// How large an operation is expected to be at most, in events, from the size of the one before it.
const LARGEST_GUESS: usize = 1 << 16;

/// Collects the labels of one operation after the other and gives each to the sink when it is complete.
pub(crate) struct Assembler<'a> {
    file: Arc<str>,
    strict: bool,
    names: &'a mut TraceNames,
    sink: &'a mut dyn Sink,
    report: ReadReport,
    ranker: Ranker,
    state: State,
    guess: usize,
    recent_names: Recent<Name>,
    recent_tasks: Recent<TaskId>,
}

/// What the lines that come belong to.
enum State {
    /// Nothing: no operation was opened yet.
    Outside,
    /// An operation that was opened on a line that could not be read, so that it is unknown.
    Unknown { line: u32, labels: u64 },
    /// This operation, of which so many lines could not be read.
    Open { operation: Operation, bad: u64 },
}

impl<'a> Assembler<'a> {
    pub(crate) fn new(file: &str, strict: bool, names: &'a mut TraceNames, sink: &'a mut dyn Sink) -> Self {
        Self {
            file: file.into(),
            strict,
            names,
            sink,
            report: ReadReport::default(),
            ranker: Ranker::default(),
            state: State::Outside,
            guess: 16,
            recent_names: Recent::new(),
            recent_tasks: Recent::new(),
        }
    }

    /// What keeps an operation from being used: an error only where the reader is strict.
    fn severity(&self) -> Severity {
        if self.strict { Severity::Error } else { Severity::Warning }
    }

    pub(crate) fn place(&self, line: u32, column: usize) -> Place {
        Place::Line { file: Arc::clone(&self.file), line, column: u32::try_from(column).unwrap_or(0) }
    }

    /// Closes what is open and opens another operation.
    pub(crate) fn open(&mut self, line: u32, header: &Header<'_>) -> ControlFlow<()> {
        self.close()?;
        let operation = Operation {
            scenario: self.names.names.intern(&header.scenario.text()),
            run: header.run.text().into(),
            file: Arc::clone(&self.file),
            line,
            start: header.start,
            weight: None,
            weight_given: false,
            extent: Extent::Whole,
            origins: Origins::Lines,
            events: Vec::with_capacity(self.guess),
        };
        self.state = State::Open { operation, bad: 0 };
        ControlFlow::Continue(())
    }

    /// Adds a node; `Err` says what is wrong with it, at the scenario.
    pub(crate) fn label(&mut self, line: u32, label: &Label<'_>) -> Result<(), Box<Diagnostic>> {
        self.report.records += 1;
        let operation = match &mut self.state {
            State::Open { operation, .. } => operation,
            State::Unknown { labels, .. } => {
                *labels += 1;
                return Ok(());
            }
            State::Outside => {
                let finding = Diagnostic::warning(codes::NO_HEADER, self.place(line, 1), "no operation is open here")
                    .with_hint("open one with a line `operation SCENARIO run=RUN` before its labels");
                return Err(Box::new(finding));
            }
        };
        if self.names.names.text(operation.scenario) != label.scenario.text() {
            let message = format!("this node is of scenario `{}`", label.scenario.text().escape_debug());
            let note = format!(
                "the operation that is open is of scenario `{}`",
                self.names.names.text(operation.scenario).escape_debug()
            );
            let finding = Diagnostic::warning(codes::OTHER_SCENARIO, self.place(line, 1), message)
                .with_note(note)
                .with_hint("an operation has one scenario; open another operation for this node");
            return Err(Box::new(finding));
        }
        let names = &mut *self.names;
        let task = if label.instance == 1 {
            self.recent_tasks.get(&label.task.text(), |text| {
                let task = names.intern_task(text, 1);
                (names.names.shared(names.task(task).name), task)
            })
        } else {
            names.intern_task(&label.task.text(), label.instance)
        };
        let mut named = |word: Option<Word<'_>>| match word {
            Some(word) => self.recent_names.get(&word.text(), |text| {
                let name = names.names.intern(text);
                (names.names.shared(name), name)
            }),
            None => Name::NONE,
        };
        operation.events.push(Event {
            activity: named(label.activity),
            service: named(label.service),
            time: label.time,
            cpu: label.cpu,
            pause: label.pause,
            origin: line,
            ..Event::new(label.thread, label.index, label.kind, task, label.counter)
        });
        Ok(())
    }

    /// Takes note of a line that cannot be used; the open operation is damaged by it.
    pub(crate) fn bad_line(&mut self, reason: &'static str, mut finding: Diagnostic) {
        if let State::Open { bad, .. } = &mut self.state {
            *bad += 1;
        }
        finding.severity = self.severity();
        self.report.count(reason, || finding);
    }

    /// Takes note of a line that should have opened an operation and cannot be read.
    pub(crate) fn bad_header(&mut self, line: u32, finding: Diagnostic) -> ControlFlow<()> {
        self.close()?;
        self.bad_line("line that cannot be read", finding);
        self.state = State::Unknown { line, labels: 0 };
        ControlFlow::Continue(())
    }

    /// Takes note of an attribute that is not known.
    pub(crate) fn unknown_attribute(&mut self, key: &str, place: impl FnOnce() -> Place) {
        self.unknown(key, ATTRIBUTES, place);
    }

    /// Takes note of a key that is not among those that may stand there.
    pub(crate) fn unknown<'k>(
        &mut self,
        key: &str,
        known: impl IntoIterator<Item = &'k str>,
        place: impl FnOnce() -> Place,
    ) {
        self.report.count("attribute that is not known", || {
            let key: String = key.chars().take(80).collect();
            let message = format!("there is no attribute `{}`; it is left out", key.escape_debug());
            Diagnostic::warning(codes::UNKNOWN_ATTRIBUTE, place(), message).with_similar(&key, known)
        });
    }

    /// Gives the open operation to the sink, unless it is damaged.
    fn close(&mut self) -> ControlFlow<()> {
        match std::mem::replace(&mut self.state, State::Outside) {
            State::Outside => ControlFlow::Continue(()),
            State::Unknown { line, labels } => {
                let message = "the operation that begins here is set aside".to_owned();
                let note = format!("the line that opens it cannot be read; labels in it: {labels}");
                self.set_aside(line, message, &note);
                ControlFlow::Continue(())
            }
            State::Open { operation, bad } if bad > 0 => {
                let message = format!(
                    "operation `{}` run `{}` is set aside",
                    self.names.names.text(operation.scenario).escape_debug(),
                    operation.run.escape_debug()
                );
                self.set_aside(operation.line, message, &format!("lines of it that cannot be read: {bad}"));
                ControlFlow::Continue(())
            }
            State::Open { mut operation, .. } => {
                if let Some(finding) = self.ranker.rank(&mut operation, self.names) {
                    self.report.count("operation whose task counters were ranked anew", || finding);
                }
                self.report.operations += 1;
                self.report.events += operation.events.len() as u64;
                self.guess = operation.events.len().min(LARGEST_GUESS);
                self.sink.operation(self.names, operation)
            }
        }
    }

    fn set_aside(&mut self, line: u32, message: String, note: &str) {
        let place = self.place(line, 0);
        let finding = Diagnostic::new(self.severity(), codes::UNREAD_OPERATION, place, message).with_note(note);
        self.report.count("operation with lines that cannot be read", || finding);
    }

    /// Takes note that the input cannot be read further: what is open is incomplete and dropped.
    pub(crate) fn broken(self, mut error: Diagnostic) -> Diagnostics {
        if let State::Open { operation, .. } = &self.state {
            error = error.with_note(format!(
                "complete operations before: {}; `{}` run `{}`, which begins in line {}, is not complete",
                self.report.operations,
                self.names.names.text(operation.scenario).escape_debug(),
                operation.run.escape_debug(),
                operation.line
            ));
        }
        Diagnostics(vec![error])
    }

    /// Closes the last operation and tells what was seen. An error where the reader is strict and something is set aside.
    pub(crate) fn finish(mut self) -> Result<ReadReport, Diagnostics> {
        // At the end there is nothing left to break off.
        let _ = self.close();
        if self.strict && self.report.findings.iter().any(|finding| finding.severity == Severity::Error) {
            return Err(Diagnostics(self.report.findings));
        }
        if self.report.operations == 0 && self.report.counted.is_empty() {
            let place = Place::File { file: Arc::clone(&self.file) };
            self.report.count("file without an operation", || {
                Diagnostic::warning(codes::NO_OPERATION, place, "there is no operation in this file")
                    .with_hint("an operation is opened by a line `operation SCENARIO run=RUN`")
            });
        }
        Ok(self.report)
    }

    /// What was seen when the sink wants no more.
    pub(crate) fn stopped(self) -> ReadReport {
        self.report
    }
}
