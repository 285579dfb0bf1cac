//! What metrics tell of a period: how busy processors were, and how many requests there were for each that was traced.

use std::collections::BTreeMap;

use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::lqn::submodel::{Interaction, ScenarioTotal, SubModel};
use dyelog::model::codes::PARTLY_MEASURED;
use dyelog::model::utilisation::{Series, Unit, fitting};

use crate::meter::{Counted, MOST_SERIES, SeriesKey};
use crate::period::written;

/// Totals of a series, by time in nanoseconds since 1970.
pub type Totals = Vec<(u64, f64)>;

/// Metrics of a period.
#[derive(Clone, Debug, Default)]
pub struct Metered {
    /// Totals by series, a little beyond the ends of the period.
    pub series: Vec<(SeriesKey, Totals)>,
    /// When points of series that had no room came first and last, nanoseconds since 1970, where that was in the period.
    pub no_room: Option<(u64, u64)>,
}

/// From how many traced requests on metrics tell for how many each stands.
const ENOUGH: u64 = 20;

impl Metered {
    /// Lets each operation whose sampling is not known stand for as many as metrics counted, and gives how busy the
    /// processors of the sub-model were.
    pub fn apply(&self, submodel: &mut SubModel) -> Vec<Series> {
        self.weigh(submodel);
        fitting(&self.utilisation(), submodel)
    }

    /// That metrics are missing, where there was no room for them.
    pub fn missing(&self) -> Option<Diagnostic> {
        let (first, last) = self.no_room?;
        let message = format!(
            "metrics of this period are missing: from {} to {} there were more than {MOST_SERIES} series, and others were set aside",
            written(first),
            written(last)
        );
        Some(Diagnostic::warning(PARTLY_MEASURED, Place::Nowhere, message))
    }

    fn utilisation(&self) -> Vec<Series> {
        let of = |(key, totals): &(SeriesKey, Totals)| {
            let (unit, samples) = match key.counts {
                Counted::Requests => return None,
                Counted::Seconds => {
                    (Unit::Seconds, totals.iter().map(|(time, total)| (seconds(*time), *total)).collect())
                }
                // What stood between two moments.
                Counted::Share => (Unit::Share, totals.windows(2).map(share).collect()),
            };
            let (metric, resources) = (key.metric.clone(), key.resources.clone());
            Some(Series { file: "metrics".into(), metric, resources, unit, samples })
        };
        self.series.iter().filter_map(of).collect()
    }

    fn weigh(&self, submodel: &mut SubModel) {
        let unknown = |total: &ScenarioTotal| {
            total.sampled.operations < total.operations
                && total.ids.probability().is_none_or(|_| total.sampled.operations > 0)
        };
        if !submodel.scenarios.values().any(unknown) {
            return;
        }
        let Some(weight) = self.weight(submodel) else { return };
        for total in submodel.scenarios.values_mut().filter(|total| unknown(total)) {
            let rest = total.operations - total.sampled.operations;
            total.sampled.add_alike(rest, weight);
        }
    }

    /// How many requests there were for each that was traced: of the services whose metrics count them, all together.
    fn weight(&self, submodel: &SubModel) -> Option<f64> {
        let scenarios = submodel.scenarios.values();
        let from = scenarios.clone().filter_map(|total| total.first_start).min()?;
        let to = scenarios.filter_map(|total| total.last_end.or(total.last_start)).max()?;
        let mut counted: BTreeMap<&str, f64> = BTreeMap::new();
        for (key, totals) in self.series.iter().filter(|(key, _)| key.counts == Counted::Requests) {
            let (Some(begin), Some(end)) = (at(totals, from as f64), at(totals, to as f64)) else { continue };
            *counted.entry(&key.resources[0]).or_default() += end - begin;
        }
        let (mut requests, mut traced) = (0.0, 0_u64);
        for (service, count) in counted {
            let entries = submodel.entries().iter().filter(|entry| {
                entry.interaction != Interaction::Customer && submodel.names.text(entry.task) == service
            });
            let own: u64 = entries.map(|entry| entry.invocations).sum();
            if own > 0 {
                (requests, traced) = (requests + count, traced + own);
            }
        }
        // One that is traced was a request.
        (traced >= ENOUGH && requests > 0.0).then(|| (requests / traced as f64).max(1.0))
    }
}

fn seconds(time: u64) -> f64 {
    time as f64 * 1e-9
}

fn share(pair: &[(u64, f64)]) -> (f64, f64) {
    let [(from, begin), (to, end)] = pair else { unreachable!("pairs are of two") };
    (seconds(*from), (end - begin) / seconds((to - from).max(1)))
}

/// The total at a time, between points; beyond them none is known, but for a short while, for which it grows as it did.
fn at(totals: &[(u64, f64)], time: f64) -> Option<f64> {
    let (first, last) = (totals.first()?, totals.last()?);
    if totals.len() < 2 {
        return None;
    }
    let place = totals.partition_point(|(own, _)| (*own as f64) < time).clamp(1, totals.len() - 1);
    let ((from, begin), (to, end)) = (totals[place - 1], totals[place]);
    let step = (last.0 - first.0) as f64 / (totals.len() - 1) as f64;
    if time < first.0 as f64 - 1.5 * step || time > last.0 as f64 + 1.5 * step {
        return None;
    }
    Some(begin + (end - begin) * (time - from as f64) / ((to - from).max(1) as f64))
}

/// How many scenarios are named.
const NAMED: usize = 5;

/// That rates are not known, where that is so: traces were sampled, and it is not known how.
pub fn unknown_sampling(submodel: &SubModel) -> Option<String> {
    // Few identifiers tell nothing, and show nothing either.
    let unknown = |total: &ScenarioTotal| {
        total.ids.count >= dyelog::lqn::kept_ids::ENOUGH
            && total.sampled.operations == 0
            && total.ids.probability().is_none()
    };
    let found = submodel.scenarios.iter().filter(|(_, total)| unknown(total));
    let mut names: Vec<String> = found.map(|(name, _)| format!("`{}`", submodel.names.text(*name))).collect();
    if names.is_empty() {
        return None;
    }
    let (their, rates) = if names.len() == 1 { ("its", "rate") } else { ("their", "rates") };
    if names.len() > NAMED {
        let others = names.len() - NAMED;
        names.truncate(NAMED);
        names.push(format!("{others} more"));
    }
    Some(format!(
        "the sampling of the traces of {} is not known: {their} {rates} and all utilisations are lower bounds",
        names.join(", ")
    ))
}

/// What would tell how traces were sampled.
pub const SAMPLING_TOLD_BY: &str = "send `http.server.request.duration` or `rpc.server.call.duration` of a service, or start the server with `--sampling`; \
     `period … -- --sampling P` tells it by hand";
