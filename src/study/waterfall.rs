//! One operation on its axis of time: its spans, and the path of those that its response waited for.
//!
//! The critical path is that of [`SpanTree::critical_path`].

use crate::trace::recorded::SpanKind;
use crate::trace::retained::Status;
use crate::trace::{Operation, SpanTree, TraceNames};

/// An operation, span by span. Times are nanoseconds from its begin.
#[derive(Clone, Debug, PartialEq)]
pub struct Waterfall {
    /// The scenario.
    pub scenario: String,
    /// The run.
    pub run: String,
    /// When the last of its spans ended.
    pub end: i64,
    /// How long its first span took: as long as its critical path.
    pub response: i64,
    /// Its spans, each before those that it caused, in the order of their begins.
    pub rows: Vec<Row>,
}

/// A span.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// How many spans it lies in.
    pub depth: u32,
    /// The service.
    pub service: String,
    /// What it does.
    pub name: String,
    /// Its part in a communication.
    pub kind: SpanKind,
    /// Its begin.
    pub start: i64,
    /// Its end.
    pub end: i64,
    /// Whether its parent waits for it.
    pub awaited: bool,
    /// Whether it failed.
    pub failed: bool,
    /// When the response of the operation waited for work of this span, from the first to the last.
    pub critical: Vec<(i64, i64)>,
}

impl Row {
    /// How long the response waited for it.
    pub fn critical_time(&self) -> i64 {
        self.critical.iter().map(|(from, to)| to - from).sum()
    }
}

impl Waterfall {
    /// The waterfall of an operation.
    pub fn of(names: &TraceNames, operation: &Operation, tree: &SpanTree) -> Self {
        let spans = &tree.spans;
        let children = tree.children();
        let origin = spans.first().map_or(0, |first| first.start);
        let mut critical = vec![Vec::new(); spans.len()];
        for (place, from, to) in tree.critical_path(&children) {
            critical[place as usize].push((from - origin, to - origin));
        }
        let mut rows = Vec::with_capacity(spans.len());
        let mut open: Vec<(u32, u32)> = if spans.is_empty() { Vec::new() } else { vec![(0, 0)] };
        while let Some((place, depth)) = open.pop() {
            let span = &spans[place as usize];
            let mut own = std::mem::take(&mut critical[place as usize]);
            own.reverse();
            rows.push(Row {
                depth,
                service: names.names.text(span.service).to_owned(),
                name: names.names.text(span.name).to_owned(),
                kind: span.kind,
                start: span.start - origin,
                end: span.end - origin,
                awaited: tree.is_awaited(place),
                failed: tree.status(place) == Status::Error,
                critical: own,
            });
            open.extend(children.of(place).iter().rev().map(|child| (*child, depth + 1)));
        }
        Self {
            scenario: names.names.text(operation.scenario).to_owned(),
            run: operation.run.to_string(),
            end: spans.iter().map(|span| span.end - origin).max().unwrap_or(0),
            response: spans.first().map_or(0, |first| first.end - first.start),
            rows,
        }
    }
}

/// Which operation is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// Of the most frequent shape, the one of median duration.
    Typical,
    /// The one that took longest.
    Slowest,
    /// One of the least frequent shape.
    Rarest,
}

/// Operations to pick from. A *shape* is which operations of services there are, each below which other one, and how often.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    seen: Vec<Candidate>,
}

#[derive(Clone, Debug)]
struct Candidate {
    scenario: String,
    run: String,
    duration: i64,
    shape: u64,
}

/// An operation that was picked, and from what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picked {
    /// The scenario.
    pub scenario: String,
    /// The run.
    pub run: String,
    /// How many operations the scenario has.
    pub operations: usize,
    /// How many of them have its shape.
    pub alike: usize,
    /// How many shapes there are.
    pub shapes: usize,
}

impl Candidates {
    /// Takes note of an operation.
    pub fn add(&mut self, names: &TraceNames, operation: &Operation, tree: &SpanTree) {
        let first = tree.spans.first();
        self.seen.push(Candidate {
            scenario: names.names.text(operation.scenario).to_owned(),
            run: operation.run.to_string(),
            duration: first.map_or(0, |first| first.end - first.start),
            shape: shape(names, tree),
        });
    }

    /// The names of the scenarios, the most frequent first.
    pub fn scenarios(&self) -> Vec<&str> {
        let mut counts: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
        for own in &self.seen {
            *counts.entry(&own.scenario).or_default() += 1;
        }
        let mut names: Vec<(usize, &str)> = counts.into_iter().map(|(name, count)| (count, name)).collect();
        names.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        names.into_iter().map(|(_, name)| name).collect()
    }

    /// Picks an operation of a scenario, of the most frequent one where none is named; `None` where there is none.
    pub fn pick(&self, scenario: Option<&str>, how: Pick) -> Option<Picked> {
        let scenario = scenario.or_else(|| self.scenarios().first().copied())?;
        let mut own: Vec<&Candidate> = self.seen.iter().filter(|one| one.scenario == scenario).collect();
        own.sort_by(|a, b| (a.duration, &a.run).cmp(&(b.duration, &b.run)));
        let mut shapes: std::collections::BTreeMap<u64, usize> = std::collections::BTreeMap::new();
        for one in &own {
            *shapes.entry(one.shape).or_default() += 1;
        }
        let of_shape = |count: usize| {
            let shape = own.iter().find(|one| shapes[&one.shape] == count).map(|one| one.shape);
            own.iter().copied().filter(move |one| Some(one.shape) == shape).collect::<Vec<&Candidate>>()
        };
        let most = shapes.values().copied().max()?;
        let least = shapes.values().copied().min()?;
        let one = match how {
            Pick::Slowest => *own.last()?,
            Pick::Typical => {
                let alike = of_shape(most);
                alike[(alike.len() - 1) / 2]
            }
            Pick::Rarest => *of_shape(least).first()?,
        };
        Some(Picked {
            scenario: one.scenario.clone(),
            run: one.run.clone(),
            operations: own.len(),
            alike: shapes[&one.shape],
            shapes: shapes.len(),
        })
    }
}

/// A number for the shape of an operation, whatever the order of siblings.
fn shape(names: &TraceNames, tree: &SpanTree) -> u64 {
    use std::hash::Hasher as _;
    let mut paths: Vec<u64> = Vec::with_capacity(tree.spans.len());
    let mut sum = 0u64;
    for span in &tree.spans {
        let mut hasher = rustc_hash::FxHasher::default();
        // Parents come before their children.
        hasher.write_u64(span.parent.map_or(0, |parent| paths[parent as usize]));
        for name in [span.service, span.name] {
            hasher.write(names.names.text(name).as_bytes());
            hasher.write_u8(0xff);
        }
        let path = hasher.finish();
        paths.push(path);
        // Mixed, so that sums of other numbers come to others.
        sum = sum.wrapping_add((path ^ path >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    sum
}
