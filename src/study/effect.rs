//! What changes of parameters come to: those that make no difference, and what they bring up.

use std::collections::BTreeSet;

use crate::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::model::codes;
use crate::model::parameter::{Change, Subject};

/// Warnings of changes without which the model would be the same.
///
/// # Errors
/// When no model can be made with all changes.
pub fn idle(subject: &Subject, changes: &[Change]) -> Result<Vec<Diagnostic>, Diagnostics> {
    if changes.is_empty() {
        return Ok(Vec::new());
    }
    let all = subject.ask(changes)?;
    let mut idle = Vec::new();
    for (number, change) in changes.iter().enumerate() {
        let mut others = changes.to_vec();
        others.remove(number);
        if subject.ask(&others).is_ok_and(|asked| asked.model == all.model) {
            idle.push(no_difference(&change.path.to_string()));
        }
    }
    Ok(idle)
}

/// What there is to say about a changed model that was not there to say before. Its places lie in a configuration that was
/// written anew and is in no file.
pub fn brought_up(before: &[Diagnostic], after: &[Diagnostic]) -> Vec<Diagnostic> {
    let known: BTreeSet<&str> = before.iter().map(|finding| finding.message.as_str()).collect();
    let new = after.iter().filter(|finding| !known.contains(finding.message.as_str()));
    new.map(|finding| Diagnostic { place: Place::Nowhere, ..finding.clone() }).collect()
}

/// The warning of a parameter that makes no difference.
pub(in crate::study) fn no_difference(path: &str) -> Diagnostic {
    let message = format!("`{path}` makes no difference to the model");
    let finding = Diagnostic::warning(codes::NO_EFFECT, Place::Nowhere, message);
    if !path.starts_with("demand.") {
        return finding;
    }
    finding
        .with_note("a demand that was measured counts more than one that is configured")
        .with_hint("change `entry.NAME.demand`, that of the finished model")
}
