//! Which estimator: the one whose model predicts best what it has not seen, responses and utilisation.

use dyelog_solve::{LayeredOptions, layered};

use crate::demand::Method;
use crate::model::{PeriodModel, built};
use crate::period::Period;
use crate::samples::operations;
use crate::system::System;

/// The fewest intervals of a process with several operations from which anything is held out.
const ENOUGH: usize = 20;
/// Another method must be better by this part of the preferred one's error, and by so much of what was measured.
const BETTER: f64 = 0.1;
const MATTERS: f64 = 0.005;

/// The method whose demands, found in one half of the intervals, predict best responses and utilisation of the other half; the one that is preferred where
/// none is clearly better, or there is too little to tell.
pub fn choose(period: &Period, system: &System) -> Method {
    let preferred = Method::ALL[0];
    let tells = |process: &crate::period::ProcessPeriod| {
        process.intervals.len() >= ENOUGH && !process.total.is_client() && operations(&[process]).len() > 1
    };
    if !period.processes.iter().any(tells) {
        return preferred;
    }
    let middle = i64::midpoint(period.from, period.to);
    let halves = [period.part(period.from, middle), period.part(middle, period.to)];
    let scored = Method::ALL.map(|method| (method, error(&halves, system, method)));
    let first = scored[0].1.unwrap_or(f64::INFINITY);
    let best = scored
        .into_iter()
        .filter_map(|(method, error)| Some((method, error?)))
        .min_by(|left, right| left.1.total_cmp(&right.1));
    match best {
        Some((method, error)) if error < first * (1.0 - BETTER) && error < first - MATTERS => method,
        _ => preferred,
    }
}

/// The mean error of predictions of each half by the other one.
fn error(halves: &[Period; 2], system: &System, method: Method) -> Option<f64> {
    let models: Option<Vec<PeriodModel>> = halves.iter().map(|half| built(half, system, method, None).ok()).collect();
    let models = models?;
    let (mut sum, mut count) = (0.0, 0.0);
    for (seen, unseen) in [(0, 1), (1, 0)] {
        let results = layered(&models[seen].model, &LayeredOptions::default()).ok()?;
        for measured in &models[unseen].measured {
            // Both halves have the same elements, unless an operation is in one alone.
            let name = models[unseen].name(measured.subject);
            let subject = models[seen].measured.iter().find(|own| models[seen].name(own.subject) == name)?.subject;
            let predicted = subject.of(&results)?;
            if measured.figure.value > 0.0 {
                sum += (predicted / measured.figure.value - 1.0).abs();
                count += 1.0;
            }
        }
    }
    (count > 0.0).then(|| sum / count)
}
