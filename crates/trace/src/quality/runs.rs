//! Operations whose run came before.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{Event, Kind, Operation, TraceNames, codes};
use dyelog_diagnostic::Diagnostic;
use dyelog_diagnostic::names::Name;

/// How an operation repeats an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// It has the scenario, run and events of another, in whatever order: it is the same once more.
    Same,
    /// It has the scenario and run of another, but not its events.
    OtherEvents,
}

/// Knows the runs of all operations that came so far. Operations of one reader must share their names.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// What each run held when it came first.
    first: FxHashMap<(Name, Arc<str>), u64>,
    /// What else it held.
    others: FxHashSet<(Name, Arc<str>, u64)>,
}

impl Runs {
    /// Whether the operation's run came before.
    pub fn repeat(&mut self, operation: &Operation) -> Option<Repeat> {
        let held = content(operation);
        let key = (operation.scenario, Arc::clone(&operation.run));
        let Some(&first) = self.first.get(&key) else {
            self.first.insert(key, held);
            return None;
        };
        let fresh = first != held && self.others.insert((key.0, key.1, held));
        Some(if fresh { Repeat::OtherEvents } else { Repeat::Same })
    }
}

impl Repeat {
    /// What it is, in a few words for a table.
    pub fn title(self) -> &'static str {
        match self {
            Self::Same => "operation that came before",
            Self::OtherEvents => "run of another operation",
        }
    }

    /// The finding in words.
    pub fn diagnostic(self, operation: &Operation, names: &TraceNames) -> Diagnostic {
        let place = operation.beginning();
        let which = format!(
            "operation `{}` run `{}`",
            names.names.text(operation.scenario).escape_debug(),
            operation.run.escape_debug()
        );
        match self {
            Self::Same => Diagnostic::warning(codes::REPEATED, place, format!("{which} is set aside: it came before"))
                .with_note("its events are those of an earlier operation with the same scenario and run")
                .with_hint("is the file given twice, or a copy of another?"),
            Self::OtherEvents => {
                Diagnostic::warning(codes::REUSED_RUN, place, format!("{which} has the run of another operation"))
                    .with_note("their events differ, so both are used")
                    .with_hint("give each execution of a scenario a run of its own")
            }
        }
    }
}

/// A digest of what an operation holds, whatever the order of its events and wherever it was read from.
fn content(operation: &Operation) -> u64 {
    let start = operation.start.map_or(0, |start| mix(start as u64 ^ 1));
    operation.events.iter().fold(start, |sum, event| sum.wrapping_add(digest(event)))
}

fn digest(event: &Event) -> u64 {
    let pair = |high: u32, low: u32| (u64::from(high) << 32) | u64::from(low);
    let kind = match event.kind {
        Kind::Begin => pair(1, 0),
        Kind::Activity => pair(2, 0),
        Kind::End => pair(3, 0),
        Kind::Fork(thread) => pair(4, thread),
        Kind::Join(thread) => pair(5, thread),
    };
    let words = [
        pair(event.thread, event.index),
        kind,
        pair(event.task.0, event.counter),
        pair(event.activity.0, event.service.0),
        event.time.to_bits(),
        event.cpu.to_bits(),
    ];
    mix(words
        .into_iter()
        .fold(0, |digest: u64, word| (digest ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)))
}

/// The finaliser of MurmurHash3.
fn mix(mut word: u64) -> u64 {
    word ^= word >> 33;
    word = word.wrapping_mul(0xff51_afd7_ed55_8ccd);
    word ^= word >> 33;
    word = word.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ (word >> 33)
}
