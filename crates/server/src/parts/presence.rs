//! Services and their instances that appear in a period, or leave.

use std::collections::BTreeMap;
use std::ops::Range;

use dyelog::model::series::PART;

use super::history::{Cell, Figure, History};
use super::tasks;

/// How unlikely it must be that an instance is there and is not asked, as the logarithm of the chance.
const SURE: f64 = -14.0;
/// An instance with a smaller part of the requests of its task, while it is there, tells nothing: identifiers may be new for each request.
const LEAST: f64 = 0.02;
/// It is away for at least this part of the blocks.
const AWAY: f64 = 0.1;

/// What appears or leaves.
pub struct Moved {
    /// Before which block.
    pub at: usize,
    /// How many times as sure as it has to be, in logarithms.
    pub clear: f64,
    /// It in words.
    pub words: String,
}

/// Where it begins to be there, and where it is no longer, each with how sure that is.
struct Stay {
    appears: Option<(usize, f64)>,
    leaves: Option<(usize, f64)>,
}

impl Stay {
    /// Of cells with requests of all, and those of its own.
    fn of(cells: &[Cell]) -> Option<Self> {
        let first = cells.iter().position(|cell| cell.sum > 0.0)?;
        let end = cells.iter().rposition(|cell| cell.sum > 0.0)? + 1;
        let sum = |range: Range<usize>, of: fn(&Cell) -> f64| cells[range].iter().map(of).sum::<f64>();
        // The blocks at both ends may have little of it.
        let part = sum(first..end, |cell| cell.sum) / sum(first..end, |cell| cell.count).max(1.0);
        if part < LEAST {
            return None;
        }
        let away = PART.max((AWAY * cells.len() as f64).ceil() as usize);
        let by_chance = (1.0 - part.min(0.999)).ln();
        let sure = |range: Range<usize>, at: usize| {
            let is_long = range.len() >= away && cells.len() - range.len() >= PART;
            let chance = sum(range, |cell| cell.count) * by_chance;
            (is_long && chance < SURE).then_some((at, chance / SURE))
        };
        Some(Self { appears: sure(0..first, first), leaves: sure(end..cells.len(), end) })
    }
}

/// All that appears or leaves within a range of blocks.
pub fn moved(history: &History, range: &Range<usize>) -> Vec<Moved> {
    let mut found = Vec::new();
    for task in tasks(history) {
        let cells = of_task(history, range, task);
        found.extend(told(Stay::of(&cells).as_ref(), &format!("`{task}`")));
    }
    let mut instances: BTreeMap<&str, Vec<(String, Option<Stay>)>> = BTreeMap::new();
    for (figure, cells) in &history.figures {
        let Figure::Instance([task, instance, machine]) = figure else { continue };
        let place = if machine.is_empty() { String::new() } else { format!(" on `{machine}`") };
        let name = format!("the instance `{instance}` of `{task}`{place}");
        instances.entry(task).or_default().push((name, Stay::of(&cells[range.clone()])));
    }
    for mut own in instances.into_values() {
        without_restarts(&mut own);
        found.extend(own.into_iter().flat_map(|(name, stay)| told(stay.as_ref(), &name)));
    }
    found
}

/// Invocations of a task, as a part of all operations.
fn of_task(history: &History, range: &Range<usize>, task: &str) -> Vec<Cell> {
    let mut cells: Vec<Cell> = history.blocks[range.clone()]
        .iter()
        .map(|block| Cell { count: block.operations as f64, ..Cell::default() })
        .collect();
    for (figure, own) in &history.figures {
        if let Figure::Work((name, _)) = figure
            && &**name == task
        {
            for (cell, own) in cells.iter_mut().zip(&own[range.clone()]) {
                cell.sum += own.count;
            }
        }
    }
    cells
}

/// One that leaves when another appears was started again: the system stays what it was.
fn without_restarts(instances: &mut [(String, Option<Stay>)]) {
    for number in 0..instances.len() {
        let Some((end, _)) = instances[number].1.as_ref().and_then(|stay| stay.leaves) else { continue };
        let follows = |stay: &Stay| stay.appears.is_some_and(|(begin, _)| begin.abs_diff(end) <= 1);
        let next = instances.iter_mut().filter_map(|(_, stay)| stay.as_mut()).find(|stay| follows(stay));
        if let Some(next) = next {
            next.appears = None;
            if let Some(own) = &mut instances[number].1 {
                own.leaves = None;
            }
        }
    }
}

fn told(stay: Option<&Stay>, name: &str) -> Vec<Moved> {
    let Some(&Stay { appears, leaves }) = stay else { return Vec::new() };
    let of = |end: Option<(usize, f64)>, what: &str| {
        end.map(|(at, clear)| Moved { at, clear, words: format!("{name} {what}") })
    };
    of(appears, "appears").into_iter().chain(of(leaves, "leaves")).collect()
}
