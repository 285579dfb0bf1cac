//! Task node counters that run across operations, ranked anew within each.
//!
//! Both counters of a label are dense within one operation. Some tracers number a task's nodes through the life of its
//! process instead, so that the second operation goes on where the first ended. The reader ranks such counters anew, by this
//! rule, which needs no look ahead. An operation is ranked anew when all of these hold:
//!
//! 1. Every thread of it is complete: counters 1 to n without gap or repeat, a begin first and an end last. An event counts in
//!    its thread as well as in its task, so nothing was lost from the operation, and a gap in a task's counters can only be
//!    numbers that went to other operations.
//! 2. No counter repeats within a task of it.
//! 3. Some task of it does not begin at 1, none that begins at 1 has a gap, and no task of it has a counter that an earlier
//!    operation of the file had for the same task: counters that are dense per operation come again in every one.
//!
//! What fails the rule is left as it is, and shows in the quality report. Where operations overlap in time, the few that hold
//! the very first counters of a task and miss some after them fail point 3: they are set aside, since nothing distinguishes their gap
//! from a damaged counter.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::{Kind, Operation, TraceNames, codes};
use dyelog_diagnostic::{Diagnostic, Place};

/// What is known of the counters of the tasks of a file.
#[derive(Default)]
pub(crate) struct Ranker {
    tasks: Vec<History>,
    /// Summary of the operation at hand by task, valid where `touched` names it.
    spans: Vec<Span>,
    touched: Vec<u32>,
}

/// The counters that a task had in the operations so far.
#[derive(Default)]
enum History {
    /// None yet.
    #[default]
    New,
    /// All different ones: disjoint closed ranges in ascending order.
    Distinct(Vec<(u32, u32)>),
    /// Some came again, so they count per operation.
    PerOperation,
}

/// The counters of a task in one operation.
#[derive(Clone, Copy, Default)]
struct Span {
    low: u32,
    high: u32,
    count: u32,
}

impl Span {
    /// Whether the counters can be 1 to n.
    fn is_dense(self) -> bool {
        self.low == 1 && self.high == self.count
    }
}

/// How many ranges of counters are kept for a task; one that is more scattered is taken to count per operation.
const MOST_RANGES: usize = 1 << 16;

impl Ranker {
    /// Ranks the task counters of an operation anew if they run across operations, and says so.
    pub(crate) fn rank(&mut self, operation: &mut Operation, names: &TraceNames) -> Option<Diagnostic> {
        self.summarise(operation, names);
        let dense = self.touched.iter().all(|task| self.spans[*task as usize].is_dense());
        if dense {
            for index in 0..self.touched.len() {
                let task = self.touched[index] as usize;
                self.tasks[task].add_range(1, self.spans[task].high);
            }
            return None;
        }
        self.rank_scattered(operation)
    }

    fn summarise(&mut self, operation: &Operation, names: &TraceNames) {
        for task in self.touched.drain(..) {
            self.spans[task as usize] = Span::default();
        }
        if self.spans.len() < names.task_count() {
            self.spans.resize(names.task_count(), Span::default());
            self.tasks.resize_with(names.task_count(), History::default);
        }
        for event in &operation.events {
            let span = &mut self.spans[event.task.index()];
            if span.count == 0 {
                self.touched.push(event.task.0);
                span.low = event.counter;
            }
            span.low = span.low.min(event.counter);
            span.high = span.high.max(event.counter);
            span.count += 1;
        }
    }

    /// The slow way, for operations with a task whose counters are not dense.
    fn rank_scattered(&mut self, operation: &mut Operation) -> Option<Diagnostic> {
        let starts_late = self.touched.iter().any(|task| self.spans[*task as usize].low > 1);
        let mut order: Vec<(u32, u32, u32)> = (0..operation.events.len() as u32)
            .zip(&operation.events)
            .map(|(index, event)| (event.task.0, event.counter, index))
            .collect();
        order.sort_unstable();
        let mut fresh = order.windows(2).all(|pair| (pair[0].0, pair[0].1) != (pair[1].0, pair[1].1));
        for group in order.chunk_by(|a, b| a.0 == b.0) {
            // Every history is reported, also when the verdict is already out.
            fresh &= self.tasks[group[0].0 as usize].add(group);
        }
        // A task with a gap that begins at 1 is one whose counters may be damaged.
        let gap_from_one = self.touched.iter().any(|task| {
            let span = self.spans[*task as usize];
            span.low == 1 && !span.is_dense()
        });
        if !(fresh && starts_late && !gap_from_one && has_complete_threads(operation)) {
            return None;
        }
        for group in order.chunk_by(|a, b| a.0 == b.0) {
            for (counter, (_, _, index)) in (1..).zip(group) {
                operation.events[*index as usize].counter = counter;
            }
        }
        let place = Place::Line { file: Arc::clone(&operation.file), line: operation.line, column: 0 };
        let message = "the task counters of this operation run on from others and were ranked anew";
        let mut finding = Diagnostic::warning(codes::RANKED_ANEW, place, message)
            .with_note("no thread of the operation misses an event, so the gaps are events of other operations");
        finding.severity = dyelog_diagnostic::Severity::Note;
        Some(finding)
    }
}

impl History {
    /// Adds the counters `low..=high`; whether none of them was there.
    fn add_range(&mut self, low: u32, high: u32) -> bool {
        let ranges = match self {
            Self::PerOperation => return false,
            Self::New => {
                *self = Self::Distinct(vec![(low, high)]);
                return true;
            }
            Self::Distinct(ranges) => ranges,
        };
        let at = ranges.partition_point(|range| range.1 < low);
        if ranges.get(at).is_some_and(|range| range.0 <= high) || ranges.len() >= MOST_RANGES {
            *self = Self::PerOperation;
            return false;
        }
        let joins_left = at > 0 && ranges[at - 1].1 + 1 == low;
        let joins_right = ranges.get(at).is_some_and(|range| high + 1 == range.0);
        match (joins_left, joins_right) {
            (true, true) => {
                ranges[at - 1].1 = ranges[at].1;
                ranges.remove(at);
            }
            (true, false) => ranges[at - 1].1 = high,
            (false, true) => ranges[at].0 = low,
            (false, false) => ranges.insert(at, (low, high)),
        }
        true
    }

    /// Adds the counters of a sorted group; whether none of them was there.
    fn add(&mut self, group: &[(u32, u32, u32)]) -> bool {
        let mut fresh = true;
        for run in group.chunk_by(|a, b| b.1 - a.1 <= 1) {
            fresh &= self.add_range(run[0].1, run[run.len() - 1].1);
        }
        fresh
    }
}

/// Whether each thread has the counters 1 to n once, begins with a begin and ends with an end.
fn has_complete_threads(operation: &Operation) -> bool {
    let mut threads: FxHashMap<u32, Vec<(u32, Kind)>> = FxHashMap::default();
    for event in &operation.events {
        threads.entry(event.thread).or_default().push((event.index, event.kind));
    }
    threads.values_mut().all(|nodes| {
        nodes.sort_unstable();
        let dense = nodes.iter().zip(1..).all(|(node, expected)| node.0 == expected);
        dense && nodes[0].1 == Kind::Begin && nodes[nodes.len() - 1].1 == Kind::End
    })
}
