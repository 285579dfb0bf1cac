//! Traces in the comments of rule files, which a template takes or must not take.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::authoring::codes;
pub use crate::datalog::syntax::Case;
use crate::datalog::syntax::directives;
use crate::diagnostic::quantity::counted;
use crate::diagnostic::{Diagnostic, Diagnostics, Place, Severity};
use crate::same::rules::TemplateCount;
use crate::same::{self, Same};
use crate::tlc::{ReduceOptions, Reducer, Reduction, Rules};
use crate::trace::{self, ReadOptions, TraceNames, messages};

/// How many reasons are shown of a trace that cannot be used.
const SHOWN: usize = 5;

/// The cases of a rule file, in the order of the text.
pub fn of(name: &Arc<str>, text: &str) -> Vec<Case> {
    directives(name, text).cases
}

/// Its name in a report: `valid acknowledged: the store acknowledges at the end`.
pub fn title(case: &Case) -> String {
    let word = if case.valid { "valid" } else { "invalid" };
    let colon = if case.title.is_empty() { "" } else { ": " };
    format!("{word} {}{colon}{}", case.template, case.title)
}

fn finding(file: &Arc<str>, case: &Case, message: String) -> Diagnostic {
    let place = Place::Range { file: Arc::clone(file), start: case.bytes.start, end: case.bytes.end };
    Diagnostic::error(codes::CASE, place, message)
}

/// What rules with these templates make of the trace of a case.
fn tried<'n, T>(
    file: &Arc<str>,
    case: &Case,
    names: impl Iterator<Item = &'n str> + Clone,
    read: impl FnOnce() -> Result<T, Vec<Diagnostic>>,
) -> Result<T, Diagnostic> {
    let template = &case.template;
    if !names.clone().any(|name| *name == **template) {
        let message = format!("the case is about `{template}`, and there is no such template");
        return Err(finding(file, case, message).with_similar(template, names));
    }
    read().map_err(|found| {
        let unusable = finding(file, case, "the trace of this case cannot be used".to_owned());
        found.iter().take(SHOWN).fold(unusable, |unusable, one| unusable.with_note(told(one, case.line)))
    })
}

/// Why a case of a file does not hold; `None` where it does.
pub fn judge(rules: &Rules, file: &Arc<str>, case: &Case) -> Option<Diagnostic> {
    let template = &case.template;
    let names = rules.plans().iter().map(|plan| &*plan.name);
    let reduction = match tried(file, case, names, || reduce(rules, file, &case.trace)) {
        Ok(reduction) => reduction,
        Err(finding) => return Some(finding),
    };
    let error = |message| finding(file, case, message);
    let first = reduction.matches.iter().find(|row| row.template == *template);
    match (case.valid, first) {
        (true, Some(_)) | (false, None) => None,
        (true, None) => {
            let mut others: BTreeMap<&str, u64> = BTreeMap::new();
            for row in &reduction.matches {
                *others.entry(&row.template).or_default() += 1;
            }
            let others: Vec<String> = others.iter().map(|(name, times)| format!("`{name}` {times}")).collect();
            let taken = if others.is_empty() { "no template matches".to_owned() } else { others.join(", ") };
            Some(
                error(format!("`{template}` does not match in this trace"))
                    .with_note(format!("matches: {taken}"))
                    .with_hint("`dyelog why-not` tells at which step a template stops, given the trace as a file"),
            )
        }
        (false, Some(row)) => Some(
            error(format!("`{template}` matches in this trace"))
                .with_note(format!("from node {} of thread {} on", row.node, row.thread))
                .with_hint("add the condition that keeps it from matching"),
        ),
    }
}

/// The same of a case of messages, by templates on events.
pub fn judge_messages(rules: &Arc<same::Rules>, file: &Arc<str>, case: &Case) -> Option<Diagnostic> {
    let template = &case.template;
    let names = rules.names().map(|name| &**name);
    let templates = match tried(file, case, names, || fired(rules, file, &case.trace)) {
        Ok(templates) => templates,
        Err(finding) => return Some(finding),
    };
    let matches = templates.iter().any(|one| *one.name == **template && one.times > 0);
    if case.valid == matches {
        return None;
    }
    let others = templates.iter().filter(|one| one.times > 0).map(|one| format!("`{}` {}", one.name, one.times));
    let others: Vec<String> = others.collect();
    let not = if case.valid { "does not match" } else { "matches" };
    let taken = if others.is_empty() { "no template matches".to_owned() } else { others.join(", ") };
    Some(finding(file, case, format!("`{template}` {not} in this trace")).with_note(format!("matches: {taken}")))
}

/// How often each template on events is carried out for messages, all of which have to be sound.
fn fired(rules: &Arc<same::Rules>, file: &str, text: &str) -> Result<Vec<TemplateCount>, Vec<Diagnostic>> {
    let mut names = TraceNames::new();
    let mut analysis = Same::with(Arc::clone(rules), same::Options::default(), vec![file.into()]);
    let read = trace::open(file, text.as_bytes(), &ReadOptions::default())
        .and_then(trace::OpenTrace::messages)
        .and_then(|source| messages::read_all(vec![source], &mut names, &mut analysis))
        .map_err(|Diagnostics(found)| found)?;
    let doubtful: Vec<Diagnostic> =
        read.findings.into_iter().filter(|finding| finding.severity != Severity::Note).collect();
    let finished = analysis.finish(&names);
    if doubtful.is_empty() && finished.messages == 0 {
        return Err(vec![Diagnostic::error(codes::CASE, Place::Nowhere, "there is no message in it")]);
    }
    if doubtful.is_empty() { Ok(finished.templates) } else { Err(doubtful) }
}

/// What the templates make of a trace, all of which has to be sound.
fn reduce(rules: &Rules, file: &str, trace: &str) -> Result<Reduction, Vec<Diagnostic>> {
    let options = ReduceOptions { keep_matches: true, ..ReduceOptions::default() };
    let mut names = TraceNames::new();
    let mut reducer = Reducer::new(rules, options);
    let read = trace::read(file, trace.as_bytes(), &ReadOptions::default(), &mut names, &mut reducer)
        .map_err(|Diagnostics(found)| found)?;
    let reduction = reducer.finish(&names).map_err(|Diagnostics(found)| found)?;
    let doubtful = read.findings.into_iter().filter(|finding| finding.severity != Severity::Note);
    let damaged = reduction.quality.damaged.iter().map(|kept| kept.finding.clone());
    let mut found: Vec<Diagnostic> = doubtful.chain(damaged).collect();
    let error = |message: &str| Diagnostic::error(codes::CASE, Place::Nowhere, message);
    if found.is_empty() && reduction.quality.operations == 0 {
        found.push(error("there is no operation in it"));
    }
    if reduction.quality.restored > 0 {
        found.push(error("an event is missing, which `dyelog trace check` would restore"));
    }
    if found.is_empty() { Ok(reduction) } else { Err(found) }
}

/// A finding about a trace in words, with its line in the rule file, where the trace begins after this one.
fn told(finding: &Diagnostic, line: u32) -> String {
    let place = match &finding.place {
        Place::Line { line: own, .. } => format!("line {}: ", line + own),
        _ => String::new(),
    };
    let reason = finding.notes.first().map(|note| format!(": {note}")).unwrap_or_default();
    format!("{place}{}{reason}", finding.message)
}

/// How many cases hold, in words for the end of a report; empty where there is none.
pub fn summary(cases: usize) -> String {
    if cases == 0 { String::new() } else { format!(", {} held", counted(cases as u64, "case")) }
}
