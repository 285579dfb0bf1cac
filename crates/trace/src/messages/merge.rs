//! Events of several inputs in one order of time.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use crate::messages::{Raw, RawWhat, Source, at};
use crate::{ReadReport, TraceNames, codes};
use dyelog_diagnostic::{Diagnostic, Diagnostics};

/// How many events ahead of its place an event of an input may stand.
pub const WINDOW: usize = 1 << 16;

/// Puts events of one input into the order of time, as far as they stand near their place, and merges inputs.
///
/// An event without a time stays behind the one before it. A message that is recorded where it arrives is also given out where
/// it leaves.
pub struct Merge<'r> {
    inputs: Vec<Input<'r>>,
    files: Vec<Arc<str>>,
}

struct Input<'r> {
    source: Box<dyn Source + 'r>,
    /// Events in order, as most inputs have them.
    ordered: VecDeque<Waiting>,
    /// Events that came too late for that.
    others: BinaryHeap<Waiting>,
    read: u64,
    ended: bool,
    /// The time of the event that was read last.
    last: f64,
    /// The time of the event that was given out last.
    given: f64,
}

/// An event that waits for those before it.
#[derive(Clone, Copy)]
struct Waiting {
    time: f64,
    number: u64,
    raw: Raw,
}

impl Waiting {
    fn key(&self, other: &Self) -> Ordering {
        self.time.total_cmp(&other.time).then(self.number.cmp(&other.number))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.key(other).is_eq()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    /// The earliest is the greatest, as the heap gives out the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key(self)
    }
}

impl Input<'_> {
    fn fill(&mut self, names: &mut TraceNames) -> Result<(), Diagnostics> {
        while !self.ended && self.ordered.len() + self.others.len() < WINDOW {
            let Some(raw) = self.source.next(names)? else {
                self.ended = true;
                break;
            };
            let time = if raw.time.is_nan() { self.last } else { raw.time };
            self.last = time;
            if let RawWhat::Message { from, to, label, sent } = raw.what
                && sent < raw.time
                && sent >= self.given
            {
                let what = RawWhat::Leaving { from, to, label, arrives: raw.time };
                self.put(sent, Raw { time: sent, line: raw.line, what });
            }
            self.put(time, raw);
        }
        Ok(())
    }

    fn put(&mut self, time: f64, raw: Raw) {
        let waiting = Waiting { time, number: self.read, raw };
        self.read += 1;
        if self.ordered.back().is_none_or(|last| last.time <= time) {
            self.ordered.push_back(waiting);
        } else {
            self.others.push(waiting);
        }
    }

    /// The time of what comes next.
    fn next_time(&mut self, names: &mut TraceNames) -> Result<Option<f64>, Diagnostics> {
        // One event at a time would fill the window anew for each.
        if !self.ended && self.ordered.len() + self.others.len() < WINDOW {
            self.fill(names)?;
        }
        Ok(match (self.ordered.front(), self.others.peek()) {
            (Some(one), Some(other)) => Some(one.time.min(other.time)),
            (Some(one), None) => Some(one.time),
            (None, other) => other.map(|other| other.time),
        })
    }

    fn pop(&mut self) -> Option<Raw> {
        let from_others = match (self.ordered.front(), self.others.peek()) {
            (Some(one), Some(other)) => other.key(one).is_lt(),
            (None, Some(_)) => true,
            (_, None) => false,
        };
        let next = if from_others { self.others.pop() } else { self.ordered.pop_front() }?;
        if next.time < self.given {
            let (file, line, behind) = (Arc::clone(self.source.file()), next.raw.line, self.given - next.time);
            self.source.report().count("event far from its place in time", || {
                let message = format!("an event stands more than {WINDOW} events after its place in time");
                Diagnostic::warning(codes::LATE_EVENT, at(&file, line), message)
                    .with_note(format!("it is {behind} s earlier than one that was taken before"))
                    .with_hint("sort the file by time")
            });
        } else {
            self.given = next.time;
        }
        Some(next.raw)
    }
}

impl<'r> Merge<'r> {
    /// Of these inputs.
    pub fn new(sources: Vec<Box<dyn Source + 'r>>) -> Self {
        let files = sources.iter().map(|source| Arc::clone(source.file())).collect();
        let inputs = sources
            .into_iter()
            .map(|source| Input {
                source,
                ordered: VecDeque::new(),
                others: BinaryHeap::new(),
                read: 0,
                ended: false,
                last: f64::NEG_INFINITY,
                given: f64::NEG_INFINITY,
            })
            .collect();
        Self { inputs, files }
    }

    /// The names of the inputs.
    pub fn files(&self) -> Vec<Arc<str>> {
        self.files.clone()
    }

    /// The next event and the number of its input; of events at one time, that of the first input.
    ///
    /// # Errors
    /// Those of the sources.
    pub fn next(&mut self, names: &mut TraceNames) -> Result<Option<(u16, Raw)>, Diagnostics> {
        let mut best: Option<(usize, f64)> = None;
        for (number, input) in self.inputs.iter_mut().enumerate() {
            if let Some(time) = input.next_time(names)?
                && best.is_none_or(|(_, least)| time < least)
            {
                best = Some((number, time));
            }
        }
        let Some((number, _)) = best else { return Ok(None) };
        Ok(self.inputs[number].pop().map(|raw| (u16::try_from(number).unwrap_or(u16::MAX), raw)))
    }

    /// Adds what the sources saw to a report.
    pub fn finish(mut self, report: &mut ReadReport) {
        for input in &mut self.inputs {
            report.merge(std::mem::take(input.source.report()));
        }
    }
}
