//! A sink that lets well-formed operations through to another.

use std::ops::ControlFlow;

use super::{QualityReport, Repeat, Runs, Verdict, examine};
use crate::{Operation, Sink, Toeg, TraceNames};
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
    errors: Vec<Diagnostic>,
}

/// How many errors are shown before a strict gate ends the reading.
const ERRORS: usize = 20;

impl<'a> Gate<'a> {
    /// A gate in front of a sink.
    pub fn new(policy: Policy, next: &'a mut dyn Sink) -> Self {
        Self { policy, next, report: QualityReport::default(), runs: Runs::default(), errors: Vec::new() }
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
    fn operation(&mut self, names: &TraceNames, operation: Operation) -> ControlFlow<()> {
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
                return self.next.operation(names, operation);
            }
            Err(refused) => *refused,
        };
        let verdict = examine(&mut operation, names);
        self.report.record(&operation, names, &verdict);
        match verdict {
            Verdict::Sound | Verdict::Restored(_) => self.next.operation(names, operation),
            Verdict::Damaged(damage) => self.damaged(damage.diagnostic(&operation, names, false)),
        }
    }
}
