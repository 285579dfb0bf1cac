//! The quality of a trace in figures.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde::Serialize;

use super::{Damage, Repeat, Verdict};
use crate::versioned::versioned;
use crate::{Operation, TraceNames, codes};
use dyelog_diagnostic::{Diagnostic, Place};

/// How many operations came through, how many did not, and why. Two of them merge into one, in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct QualityReport {
    /// Operations examined.
    pub operations: u64,
    /// Operations that were well-formed as they came.
    pub sound: u64,
    /// Operations of which one lost event was restored.
    pub restored: u64,
    /// Operations that were set aside.
    pub set_aside: u64,
    /// Events of the operations that can be used, restored ones included.
    pub events: u64,
    /// Events of the operations that were set aside.
    pub events_set_aside: u64,
    /// Findings by code.
    pub findings: BTreeMap<&'static str, Counted>,
    /// The first damaged operations, by file and line.
    pub damaged: Vec<Kept>,
    /// The first operations that are used but doubtful: their run is that of another.
    pub doubtful: Vec<Kept>,
}

/// How often something was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// What, in a few words.
    pub what: &'static str,
    /// How often.
    pub findings: u64,
    /// In how many operations.
    pub operations: u64,
}

/// A damaged operation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Kept {
    /// The file that it is from.
    pub file: Arc<str>,
    /// Where it begins there.
    pub line: u32,
    /// Its scenario.
    pub scenario: Arc<str>,
    /// Its run.
    pub run: Arc<str>,
    /// Whether it could be restored.
    pub restored: bool,
    /// What is wrong with it.
    pub finding: Diagnostic,
}

impl QualityReport {
    /// How many damaged operations are kept in full; all are counted.
    pub const KEPT: usize = 100;

    /// The version of the JSON form.
    pub const VERSION: u32 = 1;

    /// Counts an operation that needs no examination.
    pub fn sound(&mut self, operation: &Operation) {
        self.operations += 1;
        self.sound += 1;
        self.events += operation.events.len() as u64;
    }

    /// Counts an operation after its examination.
    pub fn record(&mut self, operation: &Operation, names: &TraceNames, verdict: &Verdict) {
        match verdict {
            Verdict::Sound => self.sound(operation),
            Verdict::Restored(damage) => {
                self.operations += 1;
                self.restored += 1;
                self.events += operation.events.len() as u64;
                self.count(operation, names, damage, true);
            }
            Verdict::Damaged(damage) => {
                self.operations += 1;
                self.set_aside += 1;
                self.events_set_aside += operation.events.len() as u64;
                self.count(operation, names, damage, false);
            }
        }
    }

    fn count(&mut self, operation: &Operation, names: &TraceNames, damage: &Damage, restored: bool) {
        // Findings come in the order of their faults.
        for same in damage.findings.chunk_by(|a, b| a.fault == b.fault) {
            let counted = self.findings.entry(same[0].fault.code().0).or_default();
            counted.what = same[0].fault.title();
            counted.findings += same.len() as u64;
            counted.operations += 1;
        }
        self.damaged.push(Kept::new(operation, names, restored, damage.diagnostic(operation, names, restored)));
        self.trim_now_and_then();
    }

    /// Counts an operation whose run came before. One that is the same again is set aside; another is yet to be examined.
    pub fn repeated(&mut self, repeat: Repeat, operation: &Operation, names: &TraceNames, finding: Diagnostic) {
        let counted = self.findings.entry(finding.code.0).or_default();
        counted.what = repeat.title();
        counted.findings += 1;
        counted.operations += 1;
        let kept = Kept::new(operation, names, false, finding);
        match repeat {
            Repeat::Same => {
                self.operations += 1;
                self.set_aside += 1;
                self.events_set_aside += operation.events.len() as u64;
                self.damaged.push(kept);
            }
            Repeat::OtherEvents => self.doubtful.push(kept),
        }
        self.trim_now_and_then();
    }

    /// Sorting now and then keeps the cost of dropping low.
    fn trim_now_and_then(&mut self) {
        if self.damaged.len().max(self.doubtful.len()) >= 2 * Self::KEPT {
            self.trim();
        }
    }

    /// Takes in what was seen elsewhere.
    pub fn merge(&mut self, other: Self) {
        self.operations += other.operations;
        self.sound += other.sound;
        self.restored += other.restored;
        self.set_aside += other.set_aside;
        self.events += other.events;
        self.events_set_aside += other.events_set_aside;
        for (code, counted) in other.findings {
            let mine = self.findings.entry(code).or_default();
            mine.what = counted.what;
            mine.findings += counted.findings;
            mine.operations += counted.operations;
        }
        self.damaged.extend(other.damaged);
        self.doubtful.extend(other.doubtful);
        self.trim();
    }

    /// Keeps the first damaged operations only, by file and line.
    pub fn trim(&mut self) {
        for kept in [&mut self.damaged, &mut self.doubtful] {
            kept.sort();
            kept.truncate(Self::KEPT);
        }
    }

    /// The report as text, for people.
    pub fn text(&self) -> String {
        let mut text = format!(
            "operations  {:>10}   sound {}, restored {}, set aside {}\nevents      {:>10}   and {} set aside\n",
            self.operations, self.sound, self.restored, self.set_aside, self.events, self.events_set_aside
        );
        if !self.findings.is_empty() {
            text.push_str("\ncode  finding                        findings  operations\n");
            for (code, counted) in &self.findings {
                let _ = writeln!(
                    text,
                    "{code:<5} {:<28} {:>10}  {:>10}",
                    counted.what, counted.findings, counted.operations
                );
            }
        }
        for kept in self.damaged.iter().chain(&self.doubtful) {
            let at = match &kept.finding.place {
                Place::Item { item, .. } => format!(" {item}"),
                _ => kept.line.to_string(),
            };
            let _ = write!(text, "\n{}:{at}: {}\n", kept.file, kept.finding.message);
            for label in &kept.finding.labels {
                let _ = writeln!(text, "  {}{}", place(&label.place), label.text);
            }
            for note in &kept.finding.notes {
                let _ = writeln!(text, "  {note}");
            }
        }
        let doubtful = self.findings.get(codes::REUSED_RUN.0).map_or(0, |counted| counted.operations);
        let left = (self.restored + self.set_aside).saturating_sub(self.damaged.len() as u64)
            + doubtful.saturating_sub(self.doubtful.len() as u64);
        if left > 0 {
            let _ = write!(text, "\nand {left} more that are counted above\n");
        }
        text
    }

    /// The report as JSON; `dyelog-quality` is the version of its form.
    pub fn json(&self) -> serde_json::Value {
        versioned("dyelog-quality", Self::VERSION, self)
    }
}

impl Kept {
    fn new(operation: &Operation, names: &TraceNames, restored: bool, finding: Diagnostic) -> Self {
        Self {
            file: Arc::clone(&operation.file),
            line: operation.line,
            scenario: names.names.shared(operation.scenario),
            run: Arc::clone(&operation.run),
            restored,
            finding,
        }
    }
}

/// A place within a file that was named already.
fn place(place: &Place) -> String {
    match place {
        Place::Line { line, .. } => format!("line {line}: "),
        Place::Item { item, .. } => format!("{item}: "),
        Place::Range { .. } | Place::File { .. } | Place::Nowhere => String::new(),
    }
}
