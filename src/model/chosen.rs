//! Samples of operations that were kept for what they are: by policies of tail samplers, or for how long they took.

use crate::diagnostic::quantity::time;
use crate::diagnostic::{Diagnostic, Place};
use crate::lqn::sketch::Sketch;
use crate::lqn::submodel::ScenarioTotal;
use crate::model::codes;
use crate::model::load::toml_key;

/// The fewest operations whose times tell that the shorter ones are missing.
const FEWEST: u64 = 100;
/// The shortest time from which on policies keep operations, seconds. Below it, times end at what the least work takes.
const SHORTEST: f64 = 0.05;
/// First digits of times from which on policies keep operations.
const ROUND: [f64; 9] = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.5, 8.0];
/// Stretches of times above such a time that are compared are so long, as a part of it.
const STRETCH: f64 = 0.05;
/// The fewest operations in the first of them.
const ENOUGH: f64 = 10.0;

/// Says that operations are no random sample of all.
pub fn finding(scenario: &str, total: &ScenarioTotal) -> Option<Diagnostic> {
    let (message, what) = if total.chosen > 0 {
        let (chosen, all) = (total.chosen, total.operations);
        let message =
            format!("{chosen} of {all} operations of scenario `{scenario}` were kept by a sampler for what they are");
        (message, "the traces name the policy, and it does not draw at random".to_owned())
    } else {
        let least = cut(&total.responses, total.failures)?;
        let message = format!("scenario `{scenario}` looks like a sample of slow operations, from {} on", time(least));
        (message, format!("times begin at {} as if all shorter ones were cut off", time(least)))
    };
    let finding = Diagnostic::warning(codes::CHOSEN, Place::Nowhere, message)
        .with_note(what)
        .with_note("structure can be told from them; the rate is a lower bound, and means are those of such operations and not of all");
    Some(finding.with_hint(format!(
        "take operations that were drawn at random, or set `rate` under `[scenario.{}]`",
        toml_key(scenario)
    )))
}

/// The time from which on operations were kept, where all but failed ones take longer. Times are cut off at a round number, where they are as frequent as a
/// little beyond it: a least time of work begins with few, or with many that met nobody.
fn cut(times: &Sketch, failures: u64) -> Option<f64> {
    let total: u64 = times.buckets().map(|(_, count)| count).sum();
    if total < FEWEST || failures.saturating_mul(2) > total {
        return None;
    }
    let least = times.quantile(0.5 / total as f64)?;
    let middle = times.quantile(0.5)?;
    let from = least.max(SHORTEST).log10().floor() as i32;
    let rounds = (from..=middle.log10().ceil() as i32).flat_map(|power| ROUND.map(|digit| digit * 10_f64.powi(power)));
    let within = |low: f64, high: f64| times.below(high) - times.below(low);
    let is_cut = |round: &f64| {
        // Buckets are a little wide, so that those of shorter times reach beyond it.
        let stretch = |number: f64| within(round * (1.0 + number * STRETCH), round * (1.0 + (number + 1.0) * STRETCH));
        let (first, second) = (stretch(0.0), stretch(1.0));
        let (shorter, most) =
            (times.below(round * 0.98), (2..20).map(|number| stretch(f64::from(number))).fold(0.0, f64::max));
        let noise = 3.0 * (first + second).sqrt();
        *round >= SHORTEST
            && shorter <= failures as f64
            && first >= ENOUGH
            && (first - second).abs() <= noise
            && most <= first + 3.0 * first.sqrt()
    };
    rounds.into_iter().find(is_cut)
}

#[cfg(test)]
mod tests {
    use super::cut;
    use crate::lqn::sketch::Sketch;

    fn of(times: impl Iterator<Item = f64>) -> Sketch {
        let mut sketch = Sketch::default();
        times.for_each(|time| sketch.add(time));
        sketch
    }

    /// Quantiles of exponential times in an order that does not matter.
    fn exponential(mean: f64) -> impl Iterator<Item = f64> {
        (0..2000).map(move |number| -mean * ((f64::from(number) + 0.5) / 2000.0).ln())
    }

    #[test]
    fn times_that_are_cut_off_are_told_from_those_that_begin() {
        let slow = of(exponential(0.2).filter(|time| *time > 0.5).flat_map(|time| [time, time * 1.001]));
        assert_eq!(cut(&slow, 0), Some(0.5));
        let failed = of(exponential(0.2).filter(|time| *time > 0.5).chain([0.01; 7]).flat_map(|time| [time, time]));
        assert_eq!((cut(&failed, 14), cut(&failed, 3)), (Some(0.5), None));
        // All of them, those beyond a pause, and those of which many meet nobody.
        assert_eq!(cut(&of(exponential(0.2)), 0), None);
        assert_eq!(
            cut(
                &of(exponential(0.02)
                    .zip(exponential(0.03))
                    .map(|(one, other)| 0.1 + one + 0.3 * other * other / 0.03)),
                0
            ),
            None
        );
        assert_eq!(cut(&of(exponential(0.2).map(|time| 0.1 + (time - 0.3).max(0.0))), 0), None);
    }
}
