//! A period in which something changes is split there: into parts of which each has a model of its own.
//!
//! What changes may be a level, such as the rate of a scenario, or a coefficient: the work of an invocation, how often it calls, or how many instances there are. Where
//! several change at one moment, that is one border. What lies before and after it is looked at in the same way.

mod history;
mod presence;

use std::collections::BTreeSet;
use std::ops::Range;

use dyelog::diagnostic::quantity::{number, time};
use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::lqn::submodel::SubModel;
use dyelog::lqn::together;
use dyelog::model::codes::NOT_STEADY;
use dyelog::model::series::{MATTERS, mean_of, of_counts, of_means};
use dyelog_observe::system::System;
use serde_json::{Value, json};

use history::{Cell, Entry, Figure};
pub use history::{Glance, History};
use presence::Moved;

use crate::observed;
use crate::period::{Period, written};
use crate::store::{Store, StoreError};

/// Of how many parts a period is at most.
const MOST_PARTS: usize = 16;
/// A border tells at most so many of its changes.
const TOLD: usize = 12;
/// A change of a smaller part of all work, or of calls by a smaller part of an operation, tells nothing of the system.
const LITTLE: f64 = 0.02;
/// A scenario with a smaller part of the operations tells nothing of others.
const RARE: f64 = 0.1;
/// The fewest values of which a change can be told.
const FEWEST: f64 = 200.0;
/// Borders that are closer than this part of the blocks looked at are one.
const CLOSE: usize = 20;
/// A part with so many blocks goes without those at its borders, in which the change may be.
const LONG: usize = 4;

/// A part of a period, in which nothing changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its begin, nanoseconds since 1970.
    pub from: u64,
    /// Its end.
    pub to: u64,
    /// Its spans.
    pub spans: u64,
    /// Its operations.
    pub operations: u64,
}

/// A moment at which something changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Border {
    /// When, nanoseconds since 1970.
    pub at: u64,
    /// What changes, in words, the clearest first.
    pub what: Vec<String>,
}

/// The parts of a period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// In the order of time.
    pub parts: Vec<Part>,
    /// What changes between them.
    pub borders: Vec<Border>,
    /// Figures that were not looked at, since there are too many.
    pub left_out: u64,
}

impl Parts {
    /// Of what traces recorded in a period; `None` where that is nothing.
    ///
    /// # Errors
    /// When the store cannot be read, or what it holds cannot.
    pub fn of(store: &Store, period: Period) -> Result<Option<Self>, StoreError> {
        Ok(Self::with_whole(store, period)?.map(|(parts, ..)| parts))
    }

    /// The same with the sub-model of all of the period, and what tells its entries apart.
    ///
    /// # Errors
    /// As [`Parts::of`].
    pub fn with_whole(store: &Store, period: Period) -> Result<Option<(Self, SubModel, String)>, StoreError> {
        let mut history = History::of(store.observed(period.from, period.to)?);
        let whole = store.period_by_interval(period.from, period.to, |glance| history.take_in(glance))?;
        history.finish();
        Ok(whole.map(|(submodel, merge)| (Self::in_history(&history), submodel, merge)))
    }

    /// Of a history that is finished.
    pub fn in_history(history: &History) -> Self {
        let mut borders: Vec<(usize, Vec<String>)> = Vec::new();
        let whole = 0..history.blocks.len();
        let mut open = vec![whole];
        while let Some(range) = open.pop() {
            if borders.len() + 1 >= MOST_PARTS {
                break;
            }
            let Some((at, what)) = border(history, &range) else { continue };
            // The longer side first: it is the one that is left where there are too many.
            open.extend([range.start..at, at..range.end]);
            open.sort_by_key(Range::len);
            borders.push((at, what));
        }
        borders.sort();
        // What changes at a border is told of the two parts that meet there: one of them may have been a longer one, with borders of its own, when it was found.
        let places: Vec<usize> =
            [0].into_iter().chain(borders.iter().map(|(at, _)| *at)).chain([history.blocks.len()]).collect();
        for (number, (at, what)) in borders.iter_mut().enumerate() {
            let range = places[number]..places[number + 2];
            let words = words(changes(history, &range), &range, *at - range.start);
            if !words.is_empty() {
                *what = words;
            }
        }
        let ends = borders.iter().map(|(at, _)| *at).chain([history.blocks.len()]);
        let mut begin = 0;
        let mut parts = Vec::new();
        for end in ends {
            let (mut first, mut last) = (begin, end);
            if end - begin >= LONG {
                first += usize::from(begin > 0);
                last -= usize::from(end < history.blocks.len());
            }
            let own = &history.blocks[first..last];
            let sum = |of: fn(&history::Block) -> u64| own.iter().map(of).sum();
            let (spans, operations) = (sum(|block| block.spans), sum(|block| block.operations));
            if let (Some(from), Some(to)) = (own.first(), own.last())
                && operations > 0
            {
                parts.push(Part { from: from.from, to: to.to, spans, operations });
            }
            begin = end;
        }
        let borders = borders.into_iter().map(|(at, what)| Border { at: history.blocks[at].from, what }).collect();
        Self { parts, borders, left_out: history.left_out }
    }

    /// A warning about a model of all of them; `None` where there is one part only.
    pub fn finding(&self) -> Option<Diagnostic> {
        if self.parts.len() < 2 {
            return None;
        }
        let message = format!("the period has {} parts, and its model is of their mean", self.parts.len());
        let of = |own: &Border| format!("at {}: {}", written(own.at), own.what.join("; "));
        let hint = "`/v1/period/parts` and `period parts` list the parts: ask for one of them";
        let finding = Diagnostic::warning(NOT_STEADY, Place::Nowhere, message).with_hint(hint);
        Some(self.borders.iter().map(of).fold(finding, Diagnostic::with_note))
    }

    /// As JSON; times in RFC 3339.
    pub fn json(&self) -> Value {
        let part = |own: &Part| {
            json!({
                "from": written(own.from),
                "to": written(own.to),
                "seconds": own.to.saturating_sub(own.from) / 1_000_000_000,
                "spans": own.spans,
                "operations": own.operations,
            })
        };
        let border = |own: &Border| json!({ "at": written(own.at), "what": own.what });
        json!({
            "parts": self.parts.iter().map(part).collect::<Vec<_>>(),
            "changes": self.borders.iter().map(border).collect::<Vec<_>>(),
            "left_out": self.left_out,
        })
    }
}

/// The parts of a period, of what traces recorded and of what observers reported; `None` where nothing is there.
///
/// # Errors
/// When the store cannot be read, or has more than can be read at once.
pub fn json(store: &Store, period: Period, system: &System) -> Result<Option<Value>, StoreError> {
    let traces = Parts::of(store, period)?.map(|own| own.json());
    let observed = observed::parts(store, period, system)?;
    Ok((traces.is_some() || observed.is_some()).then(|| json!({ "traces": traces, "observed": observed })))
}

/// A figure that changes: before which block, how clearly, and that in words.
struct Found {
    at: usize,
    clear: f64,
    words: String,
}

/// Where something changes most clearly within a range of blocks, and all that changes there.
fn border(history: &History, range: &Range<usize>) -> Option<(usize, Vec<String>)> {
    let found = changes(history, range);
    let at = found.first()?.at;
    Some((range.start + at, words(found, range, at)))
}

/// Figures that change within a range, the clearest first.
fn changes(history: &History, range: &Range<usize>) -> Vec<Found> {
    let totals = Totals::of(history, range);
    let threads = together::threads(history.figures.len() * range.len());
    let of_figure = |(figure, cells): (&Figure, &Vec<Cell>)| change(figure, &cells[range.clone()], &totals);
    let mut found: Vec<Found> = together::each(threads, &history.figures, of_figure).into_iter().flatten().collect();
    found.extend(presence::moved(history, range).into_iter().map(|Moved { at, clear, words }| Found {
        at,
        clear,
        words,
    }));
    found.sort_by(|left, right| right.clear.total_cmp(&left.clear).then_with(|| left.words.cmp(&right.words)));
    found
}

/// What changes about there, in words.
fn words(found: Vec<Found>, range: &Range<usize>, at: usize) -> Vec<String> {
    let is_here = |own: &Found| is_close(range, own.at, at);
    let here: Vec<String> = found.into_iter().filter(is_here).map(|own| own.words).collect();
    let more = here.len().saturating_sub(TOLD);
    let mut what: Vec<String> = here.into_iter().take(TOLD).collect();
    if more > 0 {
        what.push(format!("{more} other figures change there, too"));
    }
    what
}

/// Whether two places of a range of blocks are about the same.
fn is_close(range: &Range<usize>, one: usize, other: usize) -> bool {
    one.abs_diff(other) <= (range.len() / CLOSE).max(1)
}

/// What figures are held against.
struct Totals {
    operations: f64,
    /// Shares of all work, seconds.
    work: f64,
}

impl Totals {
    fn of(history: &History, range: &Range<usize>) -> Self {
        let works = history.figures.iter().filter(|(figure, _)| matches!(figure, Figure::Work(_)));
        Self {
            operations: history.blocks[range.clone()].iter().map(|block| block.operations as f64).sum(),
            work: works.flat_map(|(_, cells)| &cells[range.clone()]).map(|cell| cell.share).sum(),
        }
    }
}

fn change(figure: &Figure, cells: &[Cell], totals: &Totals) -> Option<Found> {
    let sums: Vec<(f64, f64)> = cells.iter().map(|cell| (cell.count, cell.sum)).collect();
    let (count, mean) = mean_of(&sums)?;
    let found = |at: usize, clear: f64, words: String| Some(Found { at, clear, words });
    match figure {
        Figure::Rate(scenario) => {
            let own = of_counts(&sums).filter(|_| count * mean >= FEWEST.max(RARE * totals.operations))?;
            let words =
                format!("the rate of `{scenario}` goes from {} to {} a second", number(own.before), number(own.after));
            found(own.at, own.clear, words)
        }
        Figure::Response(scenario) => {
            let own = of_means(&sums).filter(|_| count >= FEWEST.max(RARE * totals.operations))?;
            let words =
                format!("the response time of `{scenario}` goes from {} to {}", time(own.before), time(own.after));
            found(own.at, own.clear, words)
        }
        Figure::Work(entry) => {
            let shares: Vec<(f64, f64)> = cells.iter().map(|cell| (cell.count, cell.share)).collect();
            let own = of_means(&shares).filter(|_| count >= FEWEST)?;
            let (before, after) = (mean_of(&sums[..own.at])?.1, mean_of(&sums[own.at..])?.1);
            // Load alone moves the one and not the other, or both in different directions.
            let is_one = (after - before) * (own.after - own.before) > 0.0 && (after - before).abs() > MATTERS * mean;
            let matters = (own.after - own.before).abs() * count > LITTLE * totals.work;
            let words = || {
                format!(
                    "the own time of {} with waits for its processor goes from {} to {}",
                    of(entry),
                    time(before),
                    time(after)
                )
            };
            if is_one && matters { found(own.at, own.clear, words()) } else { None }
        }
        Figure::Calls(from, to) => {
            let own = of_means(&sums).filter(|_| count >= FEWEST)?;
            let matters = (own.after - own.before).abs() * count > LITTLE * totals.operations;
            let words = || {
                let (before, after) = (number(own.before), number(own.after));
                format!("{} calls {} {after} times in place of {before}", of(from), of(to))
            };
            if matters { found(own.at, own.clear, words()) } else { None }
        }
        Figure::Instance(_) => None,
    }
}

fn of((task, service): &Entry) -> String {
    if service.is_empty() { format!("`{task}`") } else { format!("`{service}` at `{task}`") }
}

/// The tasks of which anything is known.
fn tasks(history: &History) -> BTreeSet<&str> {
    let named = history.figures.keys().filter_map(|figure| match figure {
        Figure::Work((task, _)) => Some(&**task),
        _ => None,
    });
    named.collect()
}
