//! What keeps a model from being solved, or makes it mean something else than it seems to.
//!
//! Graph algorithms here are iterative: a chain of 10^5 calls must not exhaust the stack.

mod calls;
mod flow;
mod forks;
mod load;
mod references;
mod usage;
mod values;

use std::sync::Arc;

use crate::{ActivityId, EntryId, Model};
use dyelog_diagnostic::{Code, Diagnostic, Place, Severity};

/// Checks a model. Each finding names its element in its place; the file is `model`, since a model does not know where
/// it was read: [`Places`](crate::Places) does.
///
/// Where references lead to nothing, only they are reported: the rest cannot be looked at.
pub fn check(model: &Model) -> Vec<Diagnostic> {
    let mut lint = Lint { model, file: "model".into(), findings: Vec::new() };
    references::check(&mut lint);
    if lint.findings.iter().any(|finding| finding.severity == Severity::Error) {
        return lint.findings;
    }
    references::names(&mut lint);
    values::check(&mut lint);
    calls::check(&mut lint);
    flow::check(&mut lint);
    load::check(&mut lint);
    usage::check(&mut lint);
    lint.findings
}

/// Most phases and activities that averages are taken of, those that several entries share counted as often as they do: beyond that
/// nothing is said of how often they are executed.
pub(crate) const LIMIT: usize = 5_000_000;

/// A model being checked.
struct Lint<'a> {
    model: &'a Model,
    file: Arc<str>,
    findings: Vec<Diagnostic>,
}

impl Lint<'_> {
    fn report(&mut self, severity: Severity, code: Code, item: String, message: impl Into<String>) -> &mut Diagnostic {
        let place = Place::Item { file: Arc::clone(&self.file), item };
        self.findings.push(Diagnostic::new(severity, code, place, message));
        self.findings.last_mut().expect("one was just added")
    }

    fn error(&mut self, code: Code, item: String, message: impl Into<String>) -> &mut Diagnostic {
        self.report(Severity::Error, code, item, message)
    }

    fn warning(&mut self, code: Code, item: String, message: impl Into<String>) -> &mut Diagnostic {
        self.report(Severity::Warning, code, item, message)
    }

    fn entry(&self, id: EntryId) -> String {
        format!("entry `{}`", self.model.entries[id.index()].name)
    }

    fn activity(&self, id: ActivityId) -> String {
        let activity = &self.model.activities[id.index()];
        format!("activity `{}` of task `{}`", activity.name, self.model.tasks[activity.task.index()].name)
    }
}
