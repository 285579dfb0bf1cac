//! What every reader of traces takes and gives.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::diagnostic::Diagnostic;
use crate::trace::{Operation, TraceNames};

/// Takes operations as they come out of a reader.
pub trait Sink {
    /// Takes one operation; `Break` ends the reading early.
    fn operation(&mut self, names: &TraceNames, operation: Operation) -> ControlFlow<()>;
}

impl<F: FnMut(&TraceNames, Operation) -> ControlFlow<()>> Sink for F {
    fn operation(&mut self, names: &TraceNames, operation: Operation) -> ControlFlow<()> {
        self(names, operation)
    }
}

/// What a reader saw, beside the operations that it gave out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadReport {
    /// Operations given out.
    pub operations: u64,
    /// Events given out.
    pub events: u64,
    /// Records read: lines of events, or spans.
    pub records: u64,
    /// What was left out or changed and why, with how often: `duplicate span`, `span without an end`, …
    pub counted: BTreeMap<&'static str, u64>,
    /// The first findings in full, at most [`ReadReport::KEPT`] a reason; the rest are only counted.
    pub findings: Vec<Diagnostic>,
}

impl ReadReport {
    /// How many findings of one reason are kept in full.
    pub const KEPT: u64 = 10;

    /// Counts a finding, and keeps it if it is among the first of its reason.
    pub fn count(&mut self, reason: &'static str, finding: impl FnOnce() -> Diagnostic) {
        let times = self.counted.entry(reason).or_default();
        *times += 1;
        if *times <= Self::KEPT {
            self.findings.push(finding());
        }
    }

    /// Takes in what another reader saw.
    pub fn merge(&mut self, other: Self) {
        self.operations += other.operations;
        self.events += other.events;
        self.records += other.records;
        for (reason, times) in other.counted {
            *self.counted.entry(reason).or_default() += times;
        }
        self.findings.extend(other.findings);
    }
}
