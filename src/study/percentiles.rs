//! Whether a model's percentiles are those that were traced.

use crate::diagnostic::{Diagnostic, Place};
use crate::lqn::Model;
use crate::lqn::results::Results;
use crate::model::{Origins, codes};
use crate::study::outlook::{LoadOutlook, Outlook};
use crate::study::scenario::ScenarioResult;
use crate::study::unlike::{compared, of_the_busiest};

/// How far a predicted percentile may lie from the traced one, as a part of it, before it is worth a word.
const TOLERANCE: f64 = 0.25;

/// Names the scenarios whose predicted p95, at the load that was traced, lies far from the traced one and outside of its 95 % interval, or whose median does. Means may agree all
/// the same: they are fitted to the trace, and distributions to means and variances.
pub fn percentiles_unlike_traced(
    model: &Model,
    results: &Results,
    origins: &Origins,
    outlook: &Outlook,
) -> Vec<Diagnostic> {
    if !ScenarioResult::all(model, results, origins).iter().all(ScenarioResult::has_traced_load) {
        return Vec::new();
    }
    let found = outlook.loads.iter().filter_map(|load| Some((load.throughput, unlike(load)?)));
    of_the_busiest(found.collect(), "percentiles")
}

fn unlike(load: &LoadOutlook) -> Option<Diagnostic> {
    let (own, traced) = (&load.quantiles, &load.traced_quantiles);
    let (low, high) = traced.p95_interval?;
    let is_far = |predicted: f64, traced: f64| traced > 0.0 && (predicted / traced - 1.0).abs() > TOLERANCE;
    let high_part = own.p95.zip(traced.p95);
    let high_part =
        high_part.filter(|(predicted, traced)| is_far(*predicted, *traced) && !(low..=high).contains(predicted));
    let median = own.p50.zip(traced.p50).filter(|(predicted, traced)| is_far(*predicted, *traced));
    let (quantile, (predicted, traced)) =
        high_part.map(|both| ("p95", both)).or_else(|| median.map(|both| ("p50", both)))?;
    let message = compared(&load.name, quantile, predicted, traced);
    Some(
        Diagnostic::warning(codes::UNLIKE_PERCENTILES, Place::Nowhere, message)
            .with_note(
                "percentiles follow from the means and variances of the model, which say less than the trace does",
            )
            .with_hint("read predicted percentiles as changes from one prediction to another"),
    )
}

#[cfg(test)]
mod tests {
    use super::unlike;
    use crate::lqn::sketch::Quantiles;
    use crate::study::outlook::LoadOutlook;

    fn predicted(p95: f64) -> LoadOutlook {
        let mut load = LoadOutlook { name: "shop".into(), ..LoadOutlook::default() };
        load.quantiles = Quantiles { p95: Some(p95), ..Quantiles::default() };
        load.traced_quantiles = Quantiles { p95: Some(0.1), p95_interval: Some((0.09, 0.14)), ..Quantiles::default() };
        load
    }

    #[test]
    fn a_percentile_is_told_where_it_is_far_and_outside_of_the_interval() {
        assert_eq!(unlike(&predicted(0.1)), None);
        assert_eq!(unlike(&predicted(0.135)), None, "it is far, but within what is known");
        assert_eq!(unlike(&predicted(0.08)), None, "it is outside, but near");
        let told = unlike(&predicted(0.2)).expect("it is told").message;
        assert_eq!(told, "scenario `shop`: predicted p95 200 ms is 100 % above the traced 100 ms");
    }
}
