//! Operations of a trace that has a dye, as bare messages: the dye is left out, and services have no threads.

use std::ops::ControlFlow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::messages::{Half, Raw, RawWhat, Source};
use crate::{Event, Kind, Operation, ReadReport, Sink, TaskId, TraceNames};
use dyelog_diagnostic::Diagnostics;
use dyelog_diagnostic::names::Name;

/// Takes operations and gives out their messages, in the order of time.
///
/// A message goes along each edge of an operation's graph from one task to another. Its line is its number among all messages, from
/// 1, by which it can be found again. All messages are kept until they are given out. Operations without times come one after
/// another.
#[derive(Debug, Default)]
pub struct Messages {
    file: Option<Arc<str>>,
    /// With a time to sort by.
    raws: Vec<(f64, Raw)>,
    epoch: Option<i64>,
    /// The latest time so far.
    latest: f64,
    count: u32,
    given: usize,
    sorted: bool,
    report: ReadReport,
}

/// A message of an operation, by its number and the events at its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Number of the event that sends it.
    pub from: usize,
    /// Number of the event that receives it.
    pub to: usize,
}

impl Messages {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many messages were taken.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Whether there is no message.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The messages of an operation, by the places of their events.
pub fn edges(names: &TraceNames, events: &[Event]) -> Vec<Edge> {
    let mut order: Vec<usize> = (0..events.len()).collect();
    order.sort_by_key(|&place| (events[place].thread, events[place].index));
    let begins: FxHashMap<u32, usize> = order.iter().map(|&place| (events[place].thread, place)).rev().collect();
    let ends: FxHashMap<u32, usize> = order.iter().map(|&place| (events[place].thread, place)).collect();
    let apart = |from: usize, to: usize| names.task(events[from].task).name != names.task(events[to].task).name;
    let mut edges = Vec::new();
    let mut add = |from: usize, to: usize| {
        if apart(from, to) {
            edges.push(Edge { from, to });
        }
    };
    for (number, &place) in order.iter().enumerate() {
        let event = &events[place];
        if let Kind::Fork(thread) = event.kind
            && let Some(&begin) = begins.get(&thread)
        {
            add(place, begin);
        }
        if let Kind::Join(thread) = event.kind
            && let Some(&end) = ends.get(&thread)
        {
            add(end, place);
        }
        if let Some(&next) = order.get(number + 1)
            && events[next].thread == event.thread
        {
            add(place, next);
        }
    }
    edges
}

impl Sink for Messages {
    fn operation(&mut self, names: &TraceNames, operation: Operation) -> ControlFlow<()> {
        self.file.get_or_insert_with(|| Arc::clone(&operation.file));
        let edges = edges(names, &operation.events);
        let timed = operation.events.iter().all(|event| !event.time.is_nan());
        // Times of the operation count from the start of the first one: counted from 1970 they would lose their last digits.
        let offset = match operation.start {
            Some(start) => start.saturating_sub(*self.epoch.get_or_insert(start)) as f64 * 1e-9,
            None => self.latest,
        };
        for edge in edges {
            let (from, to) = (&operation.events[edge.from], &operation.events[edge.to]);
            self.count += 1;
            let plain = |task: TaskId| names.plain_task(task);
            let id = u64::from(self.count) | 1 << 63;
            for (event, other, received) in [(from, to, false), (to, from, true)] {
                let (task, peer) = (plain(event.task), Some(plain(other.task)));
                let half = Half { received, task, peer, label: label(to), id };
                let time = if timed { offset + event.time } else { self.latest };
                let shown = if timed { time } else { f64::NAN };
                self.raws.push((time, Raw { time: shown, line: self.count, what: RawWhat::Half(half) }));
            }
        }
        let last = operation.events.iter().map(|event| event.time).fold(0.0, f64::max);
        self.latest = self.latest.max(offset + last);
        ControlFlow::Continue(())
    }
}

fn label(event: &Event) -> Name {
    event.service
}

impl Source for Messages {
    fn next(&mut self, _: &mut TraceNames) -> Result<Option<Raw>, Diagnostics> {
        if !std::mem::replace(&mut self.sorted, true) {
            self.raws.sort_by(|left, right| left.0.total_cmp(&right.0));
        }
        self.given += 1;
        Ok(self.raws.get(self.given - 1).map(|(_, raw)| *raw))
    }

    fn report(&mut self) -> &mut ReadReport {
        &mut self.report
    }

    fn file(&self) -> &Arc<str> {
        self.file.as_ref().expect("operations were taken before they are read")
    }
}
