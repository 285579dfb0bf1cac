//! Whether measured processor time can be what its unit says, by how many invocations were there while it was measured.

use std::collections::BTreeSet;

use crate::diagnostic::quantity::percent;
use crate::diagnostic::{Diagnostic, Severity};
use crate::lqn::submodel::{EntryTotal, SubModel};
use crate::model::utilisation::over_time::OverTime;
use crate::model::utilisation::resources::is_of_process;
use crate::model::utilisation::{Series, Unit, file};
use crate::model::{codes, load};

/// More cores than so many times the invocations that were there are no processor time of a process,
const BEYOND: f64 = 10.0;
/// beside those which it may use for itself, such as to collect garbage (ours, both; fitted on nothing, and chosen wide: units that are mistaken are off by a hundred or a thousand).
const ITS_OWN: f64 = 1.0;
/// More than so many times the invocations that were there are no cores where the name of a metric also stands for percent (ours; fitted on nothing).
const AGREES: f64 = 1.25;

/// A hundredth.
const PERCENT: f64 = 0.01;

/// How many invocations of some tasks were there on the mean in a stretch of time, in their own time; `None` where nobody knows how many were not traced.
pub fn there(sub: &SubModel, tasks: &BTreeSet<&str>, (from, to): (f64, f64)) -> Option<f64> {
    if sub.scenarios.values().any(load::is_unweighed) {
        return None;
    }
    let weight = sub.scenarios.values().map(load::sampled_weight).fold(1.0, f64::max);
    let of = |entry: &&EntryTotal| tasks.contains(sub.names.text(entry.task));
    let seconds: f64 = sub.entries().iter().filter(of).map(EntryTotal::own_time).sum();
    Some(seconds * weight / (to - from)).filter(|there| *there > 0.0)
}

/// Takes values for percent of one core where their metric's name stands for that as well as for cores, and cores contradict the invocations that were there.
/// Docker's receiver of OpenTelemetry names percent as Kubernetes' names cores. Returns what is said of it.
pub fn as_percent(means: &mut [OverTime<'_>], there: f64, processor: &str) -> Option<Diagnostic> {
    let series = means.first()?.series;
    let is_doubtful =
        series.unit == Unit::Cores && series.metric.replace('.', "_").starts_with("container_cpu_utilization");
    let cores: f64 = means.iter().map(|own| own.mean).sum();
    let off = |cores: f64| (cores / there).ln().abs();
    if !is_doubtful || cores <= AGREES * there || off(PERCENT * cores) >= off(cores) {
        return None;
    }
    for own in means {
        own.mean *= PERCENT;
    }
    let message = format!("`{}` of `{processor}` is taken for percent of one core", series.metric);
    let shown = |value: f64| load::short((value * 1000.0).round() / 1000.0);
    Some(
        Diagnostic::new(Severity::Note, codes::UTILISATION_UNIT, file(series), message)
            .with_note(format!(
                "some send cores by that name, and some percent: {} cores are more than the {} invocations that were there on the mean, {} are not",
                shown(cores),
                shown(there),
                shown(PERCENT * cores)
            ))
            .with_hint("send `container.cpu.usage`, which is in cores, or `container.cpu.time`"),
    )
}

/// That a process cannot have used so many cores.
pub fn beyond(series: &Series, processor: &str, cores: f64, there: f64) -> Option<Diagnostic> {
    if !is_of_process(&series.metric) || cores <= ITS_OWN + BEYOND * there {
        return None;
    }
    let shown = |value: f64| load::short((value * 1000.0).round() / 1000.0);
    let message = format!(
        "`{}` says that {} cores were busy with `{processor}`, and its spans say {} at the most",
        series.metric,
        shown(cores),
        shown(there)
    );
    Some(
        Diagnostic::error(codes::UTILISATION_UNIT, file(series), message)
            .with_note(format!(
                "so many invocations were there on the mean: {} of that processor time would be of something else",
                percent(1.0 - there / cores)
            ))
            .with_hint("values may be of another unit, such as percent or thousandths of a core; where requests were sampled and traces do not tell, give `--sampling`; how many cores there are, `multiplicity` under `[processor.NAME]` tells"),
    )
}

#[cfg(test)]
mod tests {
    use super::{as_percent, beyond};
    use crate::model::utilisation::over_time::OverTime;
    use crate::model::utilisation::{Series, Unit};

    fn series(metric: &str) -> Series {
        let (resources, mode) = (vec!["web".to_owned()], String::new());
        Series { file: "m.json".into(), metric: metric.to_owned(), resources, mode, unit: Unit::Cores, samples: vec![] }
    }

    fn taken(metric: &str, value: f64, there: f64) -> f64 {
        let series = series(metric);
        let mut means = [OverTime { series: &series, mean: value, part: 1.0 }];
        let told = as_percent(&mut means, there, "web");
        assert_eq!(told.is_some(), means[0].mean < value);
        means[0].mean
    }

    #[test]
    fn one_name_is_percent_or_cores_by_what_was_there() {
        let name = "container.cpu.utilization";
        assert!((taken(name, 50.0, 0.9) - 0.5).abs() < 1e-12);
        assert!((taken(name, 5.0, 0.2) - 0.05).abs() < 1e-12);
        assert_eq!(taken(name, 0.5, 0.9), 0.5);
        // More than was there, and still nearer to it than a hundredth is.
        assert_eq!(taken(name, 0.4, 0.06), 0.4);
        assert_eq!(taken("k8s.pod.cpu.utilization", 50.0, 0.9), 50.0);
    }

    #[test]
    fn processes_use_no_more_cores_than_could_be_at_work() {
        let of = |metric: &str, cores| beyond(&series(metric), "web", cores, 0.9);
        assert!(of("k8s.pod.cpu.utilization", 50.0).is_some() && of("k8s.pod.cpu.utilization", 9.0).is_none());
        // Others run on a machine.
        assert!(of("k8s.node.cpu.utilization", 50.0).is_none());
    }
}
