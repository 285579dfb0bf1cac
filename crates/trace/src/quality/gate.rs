//! A sink that lets well-formed operations through to another.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::{QualityReport, Repeat, Runs, Verdict, examine};
use crate::{Operation, Sink, SpanTree, Toeg, TraceNames, Wanted};
use dyelog_diagnostic::{Diagnostic, Diagnostics, Severity};

/// What to do about damaged operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Whether a damaged operation is an error. Where not, it is set aside and counted.
    pub strict: bool,
}

/// Lets well-formed operations through to another sink, restored ones among them, and counts the rest.
pub struct Gate<'a> {
    policy: Policy,
    next: &'a mut dyn Sink,
    report: QualityReport,
    runs: Runs,
    spans: Option<SpanTree>,
    errors: Vec<Diagnostic>,
}

/// How many errors are shown before a strict gate ends the reading.
const ERRORS: usize = 20;

impl<'a> Gate<'a> {
    /// A gate in front of a sink.
    pub fn new(policy: Policy, next: &'a mut dyn Sink) -> Self {
        Self { policy, next, report: QualityReport::default(), runs: Runs::default(), spans: None, errors: Vec::new() }
    }

    fn pass(&mut self, names: &TraceNames, spans: Option<SpanTree>, operation: Operation) -> ControlFlow<()> {
        if let Some(spans) = spans {
            self.next.spans(names, spans);
        }
        self.next.operation(names, operation)
    }

    /// Goes on without an operation, unless that is an error.
    fn damaged(&mut self, finding: Diagnostic) -> ControlFlow<()> {
        if self.policy.strict {
            self.errors.push(Diagnostic { severity: Severity::Error, ..finding });
            if self.errors.len() >= ERRORS {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    /// What came by.
    ///
    /// # Errors
    /// Where the policy is strict, the damaged operations.
    pub fn finish(mut self) -> Result<QualityReport, Diagnostics> {
        self.report.trim();
        if self.errors.is_empty() { Ok(self.report) } else { Err(Diagnostics(self.errors)) }
    }
}

impl Sink for Gate<'_> {
    fn wanted(&self) -> Arc<Wanted> {
        self.next.wanted()
    }

    fn spans(&mut self, _: &TraceNames, spans: SpanTree) {
        self.spans = Some(spans);
    }

    fn operation(&mut self, names: &TraceNames, operation: Operation) -> ControlFlow<()> {
        let spans = self.spans.take();
        if let Some(repeat) = self.runs.repeat(&operation) {
            let finding = repeat.diagnostic(&operation, names);
            self.report.repeated(repeat, &operation, names, finding.clone());
            if repeat == Repeat::Same {
                return self.damaged(finding);
            }
        }
        let mut operation = match Toeg::build(operation) {
            Ok(graph) => {
                let operation = graph.into_operation();
                self.report.sound(&operation);
                return self.pass(names, spans, operation);
            }
            Err(refused) => *refused,
        };
        let verdict = examine(&mut operation, names);
        self.report.record(&operation, names, &verdict);
        match verdict {
            Verdict::Sound | Verdict::Restored(_) => self.pass(names, spans, operation),
            Verdict::Damaged(damage) => self.damaged(damage.diagnostic(&operation, names, false)),
        }
    }
}
