//! How far what was traced may be from what the system does on the mean, by chance: 95 % intervals of rates and responses.
//!
//! A queue that is long stays so for a while, so that responses depend on those before. A recording of a busy system holds few independent ones, however many operations
//! it has. Three figures tell how far their mean strays, and the greatest counts: the variance of single responses, means of stretches of time, and, where a recording is too
//! short for these, what is known of a queue of Poisson arrivals. Of known stations up to 80 % busy more than nine intervals of ten hold the mean (`tests/suite/intervals.rs`).

use rustc_hash::FxHashMap;

use crate::lqn::bounds::AsymptoticBounds;
use crate::lqn::operational::OperationalAnalysis;
use crate::lqn::sketch::NORMAL;
use crate::lqn::stays::PERIOD;
use crate::lqn::submodel::ScenarioTotal;
use crate::lqn::{EntryId, Model};
use crate::model::load::{self, Recording, recorded_at_once};
use crate::model::stability::MOST_STEPS;
use crate::model::{Load, LoadReason, Origins, ScenarioOrigin, stationarity};
use crate::solve::student;

/// The fewest stretches of time whose means tell how far these stray.
const STRETCHES: usize = 8;
/// The fewest cells of time in which starts are kept, for the same.
const CELLS: usize = 16;
/// The busiest server that is reckoned with: beyond, a response may be anything.
const BUSIEST: f64 = 0.95;

/// The 95 % interval of an observed rate, as a part of it to both sides: that of a Poisson process, wider where starts come in bursts.
pub fn rate_error(total: &ScenarioTotal, recording: &Recording) -> Option<f64> {
    recording.rate(total)?;
    let bursts = if recorded_at_once(total, recording) { stationarity::dispersion(total) } else { 1.0 };
    let of_all = total.sampled.operations == total.operations;
    let traced = if of_all { total.sampled.effective() } else { total.operations as f64 };
    // Where requests were counted, those that were not traced tell the rate, too. Thinning leaves what bursts add in proportion to what is left.
    let arrivals = if total.sampled.counted > 0 { total.sampled.counted as f64 } else { traced };
    // A scenario that is absent for a part of the time may be there for all of another such time, or for none (ours).
    let absent = recording.observation_period(total).and_then(|_| recording.around(total));
    let absent = absent.map_or(0.0, |(own, whole)| 1.0 - own / whole);
    Some(NORMAL * (1.0 / arrivals + (bursts - 1.0) / traced + absent.powi(2)).sqrt())
}

/// The 95 % interval of the mean response, as the logarithm of a factor to both sides: that of independent responses, or where it is wider that of means of stretches of
/// time. These are longer and longer, and fewer, since responses depend on each other within a stretch, and at its ends.
pub fn response_error(total: &ScenarioTotal, recording: &Recording) -> Option<f64> {
    let mean = total.response.mean().filter(|mean| *mean > 0.0)?;
    let count = total.response.count as f64;
    let mut widest = NORMAL * of_independent(total)?.ln_1p().sqrt();
    let cells = total.starts.cells().iter().filter(|cell| cell.response.count > 0);
    let strays: Vec<f64> = cells.map(|cell| cell.response.sum.as_f64() - cell.response.count as f64 * mean).collect();
    if strays.len() < CELLS || !recorded_at_once(total, recording) {
        return Some(widest);
    }
    let mut length = 1;
    while strays.len() / length >= STRETCHES {
        let squares: f64 = strays.chunks(length).map(|own| own.iter().sum::<f64>().powi(2)).sum();
        let stretches = strays.len().div_ceil(length);
        let number = stretches as f64;
        // Taken as a logarithm as it is: of few stretches it holds too few means else.
        widest = widest.max(student(stretches - 1) * (squares * number / (number - 1.0)).sqrt() / (count * mean));
        length *= 2;
    }
    Some(widest)
}

/// The fewest operations that tell how regularly they begin.
const TELLING: usize = 100;

/// The squared coefficient of variation of the times from the begin of one operation to that of the next: 1 of independent arrivals, 0 of those of a clock. `None` where few tell, or
/// operations were sampled.
pub fn interarrival_cv2(total: &ScenarioTotal, recording: &Recording) -> Option<f64> {
    // Of sampled operations the next one is seldom the next that was traced.
    if load::told_weight(total).is_some_and(|weight| weight > 1.0) || load::is_unweighed(total) {
        return None;
    }
    let mut starts: Vec<i64> = total.stays.kept().iter().map(|stay| stay.start).collect();
    starts.sort_unstable();
    // What was kept of many operations are whole stretches of time, and others lie between.
    let is_whole = starts.len() as u64 == total.stays.seen();
    // The time between recordings is none between operations.
    let begins = load::begins(total, recording);
    let is_within = |two: &[i64]| begins.iter().all(|begin| !(two[0] < *begin && *begin <= two[1]));
    let gaps = starts.windows(2).filter(|two| is_whole || two[0] >> PERIOD == two[1] >> PERIOD);
    let gaps = gaps.filter(|two| is_within(two));
    let gaps: Vec<f64> = gaps.map(|two| two[0].abs_diff(two[1]) as f64).collect();
    let count = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / count;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
    (gaps.len() >= TELLING && mean > 0.0).then(|| variance / (mean * mean))
}

/// The same as what queues make of it beside the variance of single responses, by scenario; 0 where that is not known. `totals` are those of the scenarios.
///
/// Over n arrivals the mean wait for an M/M/1 server strays by a squared coefficient of variation of (2 + 5ρ − 4ρ² + ρ³) / (ρ (1 − ρ)² n) (Daley, The serial correlation coefficients of
/// waiting times in a stationary single server queue, 1968). It is that of the part of the response that is spent in queues.
pub fn queues<'t>(
    model: &Model,
    origins: &Origins,
    busiest: f64,
    totals: impl Iterator<Item = &'t ScenarioTotal> + Clone,
) -> Vec<f64> {
    let busy = busiest.min(BUSIEST);
    let arrivals: f64 = totals.clone().map(|total| total.operations as f64 * load::weight(total)).sum();
    let analysis = OperationalAnalysis::new(model, MOST_STEPS).ok().filter(|_| busy > 0.0 && arrivals > 0.0);
    let Some(analysis) = analysis else { return vec![0.0; origins.scenarios.len()] };
    let open = AsymptoticBounds::new(analysis).open();
    let open: FxHashMap<EntryId, f64> = open.iter().rev().map(|bounds| (bounds.entry, bounds.response)).collect();
    let polynomial = 2.0 + busy * (5.0 - busy * (4.0 - busy));
    let of_waits = polynomial / (busy * (1.0 - busy).powi(2) * arrivals);
    let of = |(scenario, total): (&ScenarioOrigin, &ScenarioTotal)| {
        let is_as_traced = scenario.reason == LoadReason::Observed && matches!(scenario.load, Load::Open { .. });
        let traced = scenario.observed_response.filter(|mean| is_as_traced && *mean > 0.0)?;
        let response = |(entry, requests): &(EntryId, f64)| open.get(entry).map(|alone| requests * alone);
        let alone: f64 = scenario.first.iter().map(response).sum::<Option<f64>>()?;
        let waits = (1.0 - alone / traced).clamp(0.0, 1.0);
        // A mean that strays by that is about lognormal; where it strays little that is the same.
        Some(NORMAL * (waits * waits * of_waits + of_independent(total)?).ln_1p().sqrt())
    };
    origins.scenarios.iter().zip(totals).map(|own| of(own).unwrap_or(0.0)).collect()
}

/// The squared coefficient of variation of the mean response, were responses independent.
fn of_independent(total: &ScenarioTotal) -> Option<f64> {
    (total.response.count > 1).then_some(total.response.cv2()? / (total.response.count as f64 - 1.0))
}
