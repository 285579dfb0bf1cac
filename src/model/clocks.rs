//! How well clocks that count in steps know how long operations take.
//!
//! A clock that counts milliseconds cuts off begin and end of a time alike, so that the mean of many is true and misses what single times do by
//! chance. Some recorders cut off durations instead: then all are too short, by half a step on the mean.

use crate::diagnostic::quantity::{percent, time};
use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::lqn::submodel::ScenarioTotal;
use crate::model::codes;

/// A step of clocks, nanoseconds; shorter ones matter to nothing that is modelled.
const LEAST: u64 = 1_000_000;

/// Fewer operations may have round times by chance.
const ENOUGH: u64 = 10;

/// From this part of a response on, its doubt is worth a note; from the second, a warning.
const WORTH: (f64, f64) = (0.02, 0.05);

/// Whether a time, nanoseconds, may be of a clock that counts in such steps.
pub fn is_whole(time: i64) -> bool {
    time % LEAST.cast_signed() == 0
}

/// The step of the clocks that measured a scenario, seconds: a power of ten.
pub fn step(total: &ScenarioTotal) -> Option<f64> {
    if total.operations < ENOUGH { None } else { step_of(total.grain).map(|step| step as f64 * 1e-9) }
}

/// The step of clocks whose times are multiples of so many nanoseconds: a power of ten.
pub fn step_of(grain: u64) -> Option<u64> {
    if !grain.is_multiple_of(LEAST) || grain == 0 {
        return None;
    }
    let mut step = LEAST;
    while grain.is_multiple_of(step * 10) && step < 1_000 * LEAST {
        step *= 10;
    }
    Some(step)
}

/// By how much the mean response of a scenario may be off for it, seconds: by what chance does to so many times that are cut off at both ends (two
/// standard errors, where half of a step is as likely as none), and by half a step where durations were cut off.
pub fn doubt(total: &ScenarioTotal) -> f64 {
    let Some(step) = step(total) else { return 0.0 };
    let count = total.response.count.max(1) as f64;
    step / 2.0 + step / count.sqrt()
}

/// Says how well the response of a scenario is known, where that is no small part of it.
pub fn finding(scenario: &str, total: &ScenarioTotal) -> Option<Diagnostic> {
    let (step, doubt, response) = (step(total)?, doubt(total), total.response.mean()?);
    let part = doubt / response.max(f64::MIN_POSITIVE);
    if part < WORTH.0 {
        return None;
    }
    let severity = if part < WORTH.1 { Severity::Note } else { Severity::Warning };
    let known = if part < 1.0 { format!(" ({})", percent(part)) } else { String::new() };
    let message = format!(
        "the times of scenario `{scenario}` are multiples of {}: its response, {}, is known to ± {}{known}",
        time(step),
        time(response),
        time(doubt)
    );
    let finding = Diagnostic::new(severity, codes::COARSE_TIMES, Place::Nowhere, message)
        .with_note("begins and ends that such a clock cuts off leave means true; where durations were cut off, all are too short by half a step")
        .with_note("the same holds for each service: of those that take less than a step, the mean is known by chance only");
    Some(finding.with_hint("set the tracer to microseconds, or give demands under `[demand.entry]`"))
}

#[cfg(test)]
mod tests {
    use super::{doubt, finding, step};
    use crate::lqn::submodel::ScenarioTotal;

    /// A hundred responses of so many nanoseconds, as a clock with such steps shows them that begins at any time.
    fn seen(nanoseconds: u64, step: u64) -> ScenarioTotal {
        let mut total = ScenarioTotal { operations: 100, grain: step, ..ScenarioTotal::default() };
        for number in 0..100 {
            let start = number * step / 100;
            let cut = |time: u64| time / step * step;
            total.response.add((cut(start + nanoseconds) - cut(start)) as f64 * 1e-9);
        }
        total
    }

    #[test]
    fn a_mean_is_known_to_within_its_doubt() {
        for (nanoseconds, grain) in [(2_300_000, 1_000_000), (400_000, 1_000_000), (37_000_000, 10_000_000)] {
            let total = seen(nanoseconds, grain);
            let off = (total.response.mean().expect("there are some") - nanoseconds as f64 * 1e-9).abs();
            assert!(off < grain as f64 * 1e-9 * 0.02, "{off}");
            assert!((doubt(&total) - grain as f64 * 1e-9 * 0.6).abs() < 1e-12);
            assert!(finding("s", &total).is_some());
        }
    }

    #[test]
    fn clocks_that_count_less_are_no_doubt() {
        assert_eq!(step(&seen(2_300_000, 1_000)), None);
        assert_eq!(doubt(&ScenarioTotal { operations: 100, grain: 1, ..ScenarioTotal::default() }), 0.0);
        assert!(finding("s", &seen(80_000_000, 1_000_000)).is_none());
    }
}
