//! Findings that the author of a rule file allows, by comments with a reason.

use std::sync::Arc;

use crate::codes;
use crate::syntax::{Allowance, directives};
use dyelog_diagnostic::{Diagnostic, Place, Severity};

/// What is left of findings about files, given with their texts: without what their comments allow, and with what there is to say
/// about these comments. Errors cannot be allowed.
///
/// An allowance of what does not come up is a warning, unless there are errors, which may keep it from coming up.
pub fn settle<'t>(
    files: impl IntoIterator<Item = (&'t Arc<str>, &'t Arc<str>)>,
    mut findings: Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    let complete = findings.iter().all(|finding| finding.severity != Severity::Error);
    for (name, text) in files {
        let said = directives(name, text);
        for allowance in &said.allowances {
            for (code, bytes) in &allowance.codes {
                let dropped = drop_allowed(name, allowance, code, &mut findings);
                if !dropped && complete {
                    let place = Place::Range { file: Arc::clone(name), start: bytes.start, end: bytes.end };
                    let covers = Place::Range {
                        file: Arc::clone(name),
                        start: allowance.covers.start,
                        end: first_line(text, allowance.covers.start),
                    };
                    let message = format!("`{code}` is allowed where it does not come up");
                    findings.push(
                        Diagnostic::warning(codes::ALLOWED_IN_VAIN, place, message)
                            .with_place(covers, "nothing here brings it up as a warning or a note")
                            .with_hint("take the comment away"),
                    );
                }
            }
        }
        findings.extend(said.findings);
    }
    findings.sort_by(|left, right| left.place.cmp(&right.place));
    findings
}

/// Findings without what the comments of files allow, where not all is known that an allowance may be for.
pub fn without_allowed<'t>(
    files: impl IntoIterator<Item = (&'t Arc<str>, &'t Arc<str>)>,
    mut findings: Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    for (name, text) in files {
        for allowance in directives(name, text).allowances {
            for (code, _) in &allowance.codes {
                drop_allowed(name, &allowance, code, &mut findings);
            }
        }
    }
    findings
}

/// Takes away what an allowance of a file is for; whether there was any.
fn drop_allowed(name: &Arc<str>, allowance: &Allowance, code: &str, findings: &mut Vec<Diagnostic>) -> bool {
    let before = findings.len();
    findings.retain(|finding| {
        let here = matches!(&finding.place, Place::Range { file, start, .. }
            if file == name && allowance.covers.contains(start));
        finding.severity == Severity::Error || finding.code.0 != code || !here
    });
    findings.len() < before
}

/// Where the line ends that has this byte.
fn first_line(text: &str, start: usize) -> usize {
    text[start..].find('\n').map_or(text.len(), |end| start + end)
}
