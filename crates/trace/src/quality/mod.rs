//! The quality of traces: which operations are well-formed, what is wrong with the others, and what can be restored.
//!
//! [`Toeg::build`] is the fast screen. An operation that it refuses is diagnosed by rules in Datalog, one for each sentence of
//! the 1998 paper's §4 that an operation can break; one of more than [`LARGE`] events by plain passes that find the same,
//! since the rules take some microseconds and a kilobyte an event. A damaged operation is set aside with its reasons and
//! counted, unless a single lost event can be put back.
//!
//! # What is restored
//!
//! The paper leaves the restoration of lost events open (§5.3). Here an event is put back where the others leave no choice:
//! one thread lacks one event, one task lacks one event, and there is no other damage than what follows from the loss.
//! Every event counts in its thread and in its task, so the two gaps are the same event; it has the thread and counter
//! of the one gap and the task and counter of the other. Its type follows:
//!
//! - the first of its thread: `Be`;
//! - behind the last of a thread that has no end: `Ed`;
//! - between others, where one thread begins that nothing forks: the `Fk` of that thread;
//! - between others, where every thread has its fork: `Ac`, unless it might be the `Jn` of a thread that need not
//!   end after it and that nothing else joins.
//!
//! What cannot be told is set aside: the loss of the last event of a task leaves no gap in the task's counters, so nothing
//! tells the task (the end of a scenario, on its client, is the usual case, and there the thread may as well have been cut
//! off); two events are lost; a join may have been an activity. Of what explains the gaps the smallest loss is taken: a
//! thread that lost its last two nodes, of which only one left a gap in its task, is taken to have lost its end. A restored
//! event has no time, no CPU demand and no names, and the report says so.
//!
//! # Operations that come twice
//!
//! The scenario and the run name an operation. One that has both of an earlier one, and its events, is the same once more,
//! most often by a file that was given twice: it is set aside ([`Repeat::Same`]). One with other events is used, since the
//! tracer may number runs anew in every process, and counted as doubtful ([`Repeat::OtherEvents`]).
//!
//! [`Toeg::build`]: crate::Toeg::build

mod finding;
mod gate;
mod layout;
mod linear;
mod relations;
mod report;
mod restore;
mod runs;

pub use finding::{Fault, Finding};
pub use gate::{Gate, Policy};
pub use report::{Counted, Kept, QualityReport};
pub use runs::{Repeat, Runs};

use rustc_hash::FxHashSet;

use crate::{Operation, TraceNames, codes};
use dyelog_diagnostic::{Diagnostic, Severity};
use layout::Layout;

/// Operations with more events than this are diagnosed without the rules.
pub const LARGE: usize = 200_000;

/// How many findings of an operation are kept in full.
const SHOWN: usize = 5;

/// What an examination comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The operation is well-formed.
    Sound,
    /// A lost event was put back, and now it is well-formed.
    Restored(Damage),
    /// The operation cannot be used.
    Damaged(Damage),
}

/// What is wrong with an operation, or was before an event was restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// All findings, in the order of [`Fault`] and of the events.
    pub findings: Vec<Finding>,
    /// The event that was restored, or why none was.
    pub outcome: String,
}

/// Everything that is wrong with an operation, in the order of [`Fault`] and of the events; nothing where it is well-formed.
pub fn diagnose(operation: &Operation) -> Vec<Finding> {
    if operation.events.len() > LARGE { diagnose_by_passes(operation) } else { diagnose_by_rules(operation) }
}

/// The same as [`diagnose`] by the rules, whatever the size.
pub fn diagnose_by_rules(operation: &Operation) -> Vec<Finding> {
    match no_events(operation) {
        Some(finding) => vec![finding],
        None => relations::findings(&Layout::new(operation)),
    }
}

/// The same as [`diagnose`] by plain passes, whatever the size.
pub fn diagnose_by_passes(operation: &Operation) -> Vec<Finding> {
    match no_events(operation) {
        Some(finding) => vec![finding],
        None => linear::findings(&Layout::new(operation)),
    }
}

fn no_events(operation: &Operation) -> Option<Finding> {
    operation.events.is_empty().then_some(Finding { fault: Fault::NoEvents, event: None, missing: (0, 0) })
}

/// Diagnoses an operation and restores a lost event where only one thing can have been lost.
///
/// The order of the events stays; a restored one is added at the end.
pub fn examine(operation: &mut Operation, names: &TraceNames) -> Verdict {
    let findings = diagnose(operation);
    if findings.is_empty() {
        return Verdict::Sound;
    }
    match restore::lost_event(operation, &findings) {
        Ok(event) => {
            operation.events.push(event);
            let outcome = finding::label(operation, names, operation.events.len() - 1);
            Verdict::Restored(Damage { findings, outcome })
        }
        Err(outcome) => Verdict::Damaged(Damage { findings, outcome }),
    }
}

impl Damage {
    /// The damage in words: one diagnostic an operation, the first findings with their places.
    pub fn diagnostic(&self, operation: &Operation, names: &TraceNames, restored: bool) -> Diagnostic {
        let place = operation.beginning();
        let which = format!(
            "operation `{}` run `{}`",
            names.names.text(operation.scenario).escape_debug(),
            operation.run.escape_debug()
        );
        let mut diagnostic = if restored {
            Diagnostic::new(Severity::Note, codes::RESTORED, place, format!("{which}: one lost event is restored"))
                .with_note(format!("the event is `{}`; nothing else fits the gaps", self.outcome))
                .with_note(
                    "it has no time, no CPU demand and no names: what was measured there is missing from the model",
                )
        } else {
            Diagnostic::warning(codes::SET_ASIDE, place, format!("{which} is set aside"))
                .with_note(format!("no event is restored: {}", self.outcome))
        };
        for finding in self.findings.iter().take(SHOWN) {
            let words = finding.diagnostic(operation, names);
            diagnostic = diagnostic.with_place(words.place, format!("{} [{}]", words.message, words.code));
        }
        if self.findings.len() > SHOWN {
            diagnostic = diagnostic.with_note(format!("further findings: {}", self.findings.len() - SHOWN));
        }
        diagnostic
    }
}

/// The first link to each thread, of links as event and thread.
fn firsts(links: impl Iterator<Item = (u32, u32)>) -> impl Iterator<Item = (u32, u32)> {
    let mut seen = FxHashSet::default();
    links.filter(move |(_, thread)| seen.insert(*thread))
}
