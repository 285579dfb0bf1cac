//! The receiver of findings and progress while inputs are read.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::pipeline::input::{Input, Reader};
use crate::trace::ReadReport;

/// Hears what there is to say while inputs are read and reduced, in order. What keeps a call from its result is an error of that
/// call; what is reported here does not. `()` hears nothing, a `Vec<Diagnostic>` keeps all findings.
pub trait Listener {
    /// A text that findings may point into.
    fn source(&mut self, _file: Arc<str>, _text: Arc<str>) {}

    /// Findings.
    fn findings(&mut self, _findings: &[Diagnostic]) {}

    /// Findings of which there may be many: so many are worth showing, and words on where the others are listed.
    fn first_findings(&mut self, findings: &[Diagnostic], _shown: usize, _others: &str) {
        self.findings(findings);
    }

    /// What readers left out. A few findings of each kind are worth showing.
    fn left_out(&mut self, read: &ReadReport) {
        self.findings(&read.findings);
    }

    /// Codes of notes and warnings that the configuration accepts, so that they need no telling.
    fn accepted(&mut self, _codes: &BTreeSet<String>) {}

    /// Words for people, lines with their ends.
    fn words(&mut self, _text: &str) {}

    /// These inputs are read next.
    fn reading(&mut self, _inputs: &[Input]) -> Arc<dyn Meter> {
        Arc::new(())
    }
}

impl Listener for () {}

impl Listener for Vec<Diagnostic> {
    fn findings(&mut self, findings: &[Diagnostic]) {
        self.extend_from_slice(findings);
    }
}

/// Follows the reading of inputs.
pub trait Meter: Send + Sync {
    /// An input, to count its bytes.
    fn watch(&self, input: Reader) -> Reader {
        input
    }

    /// An operation or a message came out.
    fn operation(&self) {}

    /// All inputs are read.
    fn done(&self) {}
}

impl Meter for () {}
