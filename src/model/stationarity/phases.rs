//! Whether operations call a task in phases, as they do where a circuit breaker opens and closes, a cache is filled, or a job runs now and then.
//!
//! The number of calls an operation is taken in cells of time. Operations that make more calls than others vary it by chance, which neighbouring cells do not share: what these have
//! in common, their covariance, is the phases. A task that gets all its calls in the part f of the time has a squared coefficient of variation of (1 − f)/f, and
//! so 1 + cv² times as many calls then as on the mean. Less than a tenth more is left out.

use std::collections::BTreeMap;

use crate::diagnostic::quantity::percent;
use crate::diagnostic::{Diagnostic, Place};
use crate::lqn::stays::{PERIOD, Rank, Stay};
use crate::lqn::submodel::{EntryTotal, Interaction, SubModel};
use crate::lqn::together;
use crate::model::codes;
use crate::model::load::{Recording, recorded_at_once, short};
use crate::model::stationarity::series::MATTERS;

/// So many calls are in a cell on the mean.
const CALLS: f64 = 50.0;

/// A cell lasts so many times as long as an operation: few calls fall into the next one.
const RESPONSES: f64 = 4.0;

/// The fewest neighbours that are compared.
const PAIRS: usize = 24;

/// The correlation of neighbours goes so many standard errors from zero, 1/√n each, with a probability of 3 in 100,000.
const FAR: f64 = 4.0;

/// How many tasks are named.
const SHOWN: usize = 3;

/// A task that is called in phases.
struct Phased<'s> {
    task: &'s str,
    /// The squared coefficient of variation of its calls an operation, over time.
    cv2: f64,
}

/// Says which tasks are called in phases, the one with most of them first.
pub(super) fn finding(sub: &SubModel) -> Option<Diagnostic> {
    let mut tasks: BTreeMap<&str, Vec<&EntryTotal>> = BTreeMap::new();
    for index in sub.canonical_order() {
        let entry = sub.entry(index);
        if entry.interaction != Interaction::Customer {
            tasks.entry(sub.names.text(entry.task)).or_default().push(entry);
        }
    }
    let recording = Recording::of(sub);
    if !sub.scenarios.values().all(|total| recorded_at_once(total, &recording)) {
        return None;
    }
    let begun = sub.scenarios.values().map(|total| begins(&total.stays.in_order())).collect::<Vec<_>>().concat();
    let of = |(task, entries): (_, Vec<&EntryTotal>)| Some(Phased { task, cv2: cv2(sub, &entries, &begun)? });
    let mut phased: Vec<Phased<'_>> = together::each(sub.threads(), tasks, of).into_iter().flatten().collect();
    phased.sort_by(|left, right| right.cv2.total_cmp(&left.cv2).then_with(|| left.task.cmp(right.task)));
    let (first, others) = phased.split_first()?;
    let message = format!("operations call `{}` in phases", first.task);
    let note = |own: &Phased<'_>| {
        format!(
            "calls of an operation to `{}` vary by {} over time (standard deviation): if they come and go, there are {} times as many while they come",
            own.task,
            percent(own.cv2.sqrt()),
            short(((1.0 + own.cv2) * 100.0).round() / 100.0)
        )
    };
    let mut finding = Diagnostic::warning(codes::NOT_STEADY, Place::Nowhere, message).with_note(note(first));
    for own in others.iter().take(SHOWN - 1) {
        finding = finding.with_note(note(own));
    }
    if others.len() >= SHOWN {
        finding = finding.with_note(format!("so do those to {} more tasks", others.len() + 1 - SHOWN));
    }
    Some(
        finding
            .with_note("the model is of the mean over all phases: while calls come, their servers are busier than it says, and saturate at a smaller load")
            .with_hint("give it traces of one phase to model that"),
    )
}

/// Those that begin an invocation or an operation.
fn begins(stays: &[Stay]) -> Vec<Stay> {
    stays.iter().filter(|stay| stay.part == 0).copied().collect()
}

/// By how much the calls of an operation to a task vary over time, where that matters; `begun` are the operations.
fn cv2(sub: &SubModel, entries: &[&EntryTotal], begun: &[Stay]) -> Option<f64> {
    let scenarios = || sub.scenarios.values();
    let of_entries = entries.iter().filter_map(|entry| entry.stays.complete_before());
    let before: Option<Rank> = of_entries.chain(scenarios().filter_map(|total| total.stays.complete_before())).min();
    let starts = |stays: &[Stay]| {
        let told = stays.iter().filter(|stay| before.is_none_or(|before| stay.rank() < before));
        told.map(|stay| stay.start).collect::<Vec<i64>>()
    };
    let calls: Vec<i64> = entries.iter().flat_map(|entry| starts(&begins(&entry.stays.in_order()))).collect();
    let operations = starts(begun);
    let first = operations.iter().min()?;
    let last = operations.iter().max()?;
    let mut periods: Vec<i64> = operations.iter().map(|start| start >> PERIOD).collect();
    periods.sort_unstable();
    periods.dedup();
    let kept = (periods.len() as f64 * (1_i64 << PERIOD) as f64).min(last.abs_diff(*first) as f64);
    let response = scenarios().filter_map(|total| total.response.mean()).fold(0.0, f64::max) * 1e9;
    let length = (CALLS * kept / calls.len().max(1) as f64).max(RESPONSES * response);
    if !(length >= 1.0 && length < kept / PAIRS as f64) {
        return None;
    }
    let mut cells: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
    let cell = |start: i64| ((start - first) as f64 / length).floor() as i64;
    let of_cells = |starts: &[i64]| starts.iter().map(|start| cell(*start)).collect::<Vec<i64>>();
    // Neighbours lie in one cell mostly.
    for own in of_cells(&operations).chunk_by(|left, right| left == right) {
        cells.entry(own[0]).or_default().0 += own.len() as f64;
    }
    for own in of_cells(&calls).chunk_by(|left, right| left == right) {
        cells.entry(own[0]).or_default().1 += own.len() as f64;
    }
    let (all, made) = cells.values().fold((0.0, 0.0), |sum, own| (sum.0 + own.0, sum.1 + own.1));
    let (mean, each) = (made / all, all / cells.len() as f64);
    // A cell with few operations, as at the end of a stretch of time, tells little.
    let ratio = |own: &(f64, f64)| (2.0 * own.0 >= each).then(|| own.1 / own.0 - mean);
    let ratios: BTreeMap<i64, f64> = cells.iter().filter_map(|(at, own)| Some((*at, ratio(own)?))).collect();
    let pairs: Vec<(f64, f64)> = ratios.iter().filter_map(|(at, own)| Some((*own, *ratios.get(&(at + 1))?))).collect();
    if pairs.len() < PAIRS || mean <= 0.0 {
        return None;
    }
    let count = pairs.len() as f64;
    let variance = ratios.values().map(|own| own * own).sum::<f64>() / ratios.len() as f64;
    let covariance = pairs.iter().map(|(left, right)| left * right).sum::<f64>() / count;
    let cv2 = covariance / (mean * mean);
    (cv2 > MATTERS && covariance > FAR * variance / count.sqrt()).then_some(cv2)
}
