//! What metrics tell of a period: how busy processors were, and how many requests there were for each that was traced.

use std::collections::BTreeSet;

use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::lqn::submodel::{ScenarioTotal, SubModel};
use dyelog::model::codes::PARTLY_MEASURED;
use dyelog::model::requests::{Requests, weigh};
use dyelog::model::utilisation::{Capacity, Series, Unit, fitting};
use dyelog::pipeline::{cores_of, counter, counts_cores, measure};

use crate::meter::{Counted, MOST_SERIES, SeriesKey};
use crate::period::written;
use crate::recorded::label;

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

impl Metered {
    /// Lets each operation whose spans do not tell how it was sampled stand for as many as metrics counted, and gives how busy the
    /// processors of the sub-model were, with what there is to say about rates.
    pub fn apply(&self, submodel: &mut SubModel) -> (Vec<Series>, Vec<Diagnostic>) {
        let findings = weigh(&self.requests(submodel), submodel);
        (fitting(&self.utilisation(), submodel), findings)
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

    /// How many cores there are.
    pub fn cores(&self) -> Vec<Capacity> {
        let mut found = cores_of(self.counts_of_cores());
        for own in &mut found {
            own.file = "metrics".into();
        }
        found
    }

    /// Series that count cores, with the last of their values; others do so by their labels.
    fn counts_of_cores(&self) -> impl Iterator<Item = (&str, &[(String, String)], f64)> {
        let of = |(key, totals): &(SeriesKey, Totals)| match key.counts {
            Counted::Cores => totals.last().map_or(f64::NAN, |last| last.1),
            _ => f64::NAN,
        };
        self.series.iter().map(move |own| (&*own.0.metric, &own.0.labels[..], of(own)))
    }

    /// The same as Prometheus text.
    pub fn exposed_cores(&self) -> String {
        let time = self.series.iter().filter_map(|(_, totals)| totals.last()).map(|last| last.0 / 1_000_000).max();
        let mut text = String::new();
        for own in self.cores() {
            // What it was found from may be utilisation as well, or a quota beside its period: such text would tell more than how many there are.
            let metric = match &*own.metric {
                "container_spec_cpu_quota" => "container_cpu_limit".to_owned(),
                metric if !counts_cores(metric, &[]) => "system_cpu_logical_count".to_owned(),
                metric => metric.to_owned(),
            };
            let of: String = CORES_OF.iter().zip(&own.resources).map(|(name, own)| label(name, own)).collect();
            text.push_str(&format!("{metric}{{{of}resource=\"cpu\"}} {} {}\n", own.cores, time.unwrap_or_default()));
        }
        text
    }

    fn utilisation(&self) -> Vec<Series> {
        let of = |(key, totals): &(SeriesKey, Totals)| {
            let (unit, samples) = match key.counts {
                Counted::Requests | Counted::Cores => return None,
                Counted::Seconds => {
                    (Unit::Seconds, totals.iter().map(|(time, total)| (seconds(*time), *total)).collect())
                }
                // What stood between two moments.
                Counted::Share => (Unit::Share, totals.windows(2).map(share).collect()),
            };
            let (metric, resources) = (key.metric.clone(), key.resources.clone());
            let mode = measure(&metric, "", &key.labels).map(|own| own.mode).unwrap_or_default();
            Some(Series { file: "metrics".into(), metric, resources, mode, unit, samples })
        };
        self.series.iter().filter_map(of).collect()
    }

    /// Counted requests of services that are in the sub-model.
    fn requests(&self, submodel: &SubModel) -> Vec<Requests> {
        let tasks: BTreeSet<&str> = submodel.entries().iter().map(|entry| submodel.names.text(entry.task)).collect();
        let of = |(key, totals): &(SeriesKey, Totals)| {
            let samples = totals.iter().map(|(time, total)| (seconds(*time), *total)).collect();
            let own = counter(&key.metric, &key.labels, samples).filter(|_| key.counts == Counted::Requests)?;
            let is_known = totals.len() > 1 && own.services.iter().any(|service| tasks.contains(&**service));
            is_known.then_some(Requests { file: "metrics".into(), ..own })
        };
        self.series.iter().filter_map(of).collect()
    }
}

/// Labels for what a number of cores is of, the most telling first: those that every metric of cores is read with.
const CORES_OF: [&str; 6] =
    ["processor", "service_name", "container_name", "k8s_container_name", "container", "k8s_deployment_name"];

fn seconds(time: u64) -> f64 {
    time as f64 * 1e-9
}

fn share(pair: &[(u64, f64)]) -> (f64, f64) {
    let [(from, begin), (to, end)] = pair else { unreachable!("pairs are of two") };
    (seconds(*from), (end - begin) / seconds((to - from).max(1)))
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
