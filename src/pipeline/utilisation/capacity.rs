//! Metrics that say how many cores there are: limits of containers, quotas, and counts of processors.

use std::collections::BTreeSet;

use indexmap::IndexMap;

use crate::model::utilisation::Capacity;
use crate::pipeline::utilisation::metric::{PROCESSORS, counts, resources};

/// Limits of a container, in cores.
const LIMITS: [&str; 4] = [
    "k8s_container_cpu_limit",
    "k8s_container_cpu_limit_current",
    "k8s_container_cpu_limit_desired",
    "container_cpu_limit",
];

/// Limits of all resources, of which a label says which one it is.
const LABELLED: [&str; 3] =
    ["kube_pod_container_resource_limits", "kube_node_status_allocatable", "kube_node_status_capacity"];

/// Processors that a process or a machine may use.
const COUNTS: [&str; 8] = [
    "system_cpu_logical_count",
    "k8s_node_cpu_allocatable",
    "k8s_node_allocatable_cpu",
    "jvm_cpu_count",
    "go_processor_limit",
    "dotnet_process_cpu_count",
    "process_cpu_count",
    "machine_cpu_cores",
];

/// Metrics with a series for each logical processor.
const EACH: [&str; 4] =
    ["node_cpu_seconds_total", "system_cpu_time", "system_cpu_time_seconds_total", "system_cpu_utilization"];

const QUOTA: &str = "container_spec_cpu_quota";
const PERIOD: &str = "container_spec_cpu_period";

/// The period of quotas where none is given, microseconds: the kernel's default.
const USUAL_PERIOD: f64 = 100_000.0;

type Labels = Vec<(String, String)>;

/// What was counted so far.
#[derive(Debug, Default)]
pub(super) struct Counted {
    /// Cores by metric and labels, the last that was told.
    told: IndexMap<(String, Labels), f64>,
    /// Logical processors by metric and what they are of.
    each: IndexMap<(String, Vec<String>), BTreeSet<String>>,
}

impl Counted {
    /// Takes in a value. Whether it is a count and nothing else.
    pub fn take<'l>(
        &mut self,
        name: &str,
        labels: &(impl Iterator<Item = (&'l str, &'l str)> + Clone),
        value: f64,
    ) -> bool {
        let plain = name.replace('.', "_").to_lowercase();
        let label = |names: &[&str]| {
            let found = labels.clone().find(|(name, _)| names.contains(&&*name.replace('.', "_")));
            found.map(|(_, value)| value.to_owned())
        };
        if EACH.contains(&&*plain) {
            if let Some(number) = label(&PROCESSORS).filter(|number| number != "total") {
                self.each.entry((name.to_owned(), named(&plain, labels))).or_default().insert(number);
            }
            return false;
        }
        let is_labelled = LABELLED.contains(&&*plain);
        if !is_labelled && ![&LIMITS[..], &COUNTS, &[QUOTA, PERIOD]].iter().any(|own| own.contains(&&*plain)) {
            return false;
        }
        let is_other = is_labelled && label(&["resource"]).is_none_or(|resource| resource != "cpu");
        if !is_other && value.is_finite() && counts(&plain, labels.clone()) {
            let labels = labels.clone().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            self.told.insert((plain, labels), value);
        }
        true
    }

    /// All that was counted.
    pub fn finish(self) -> Vec<Capacity> {
        let mut found = Vec::new();
        for ((metric, labels), value) in &self.told {
            let cores = match &**metric {
                PERIOD => continue,
                QUOTA => {
                    let period = self.told.get(&(PERIOD.to_owned(), labels.clone())).copied();
                    value / period.filter(|period| *period > 0.0).unwrap_or(USUAL_PERIOD)
                }
                _ => *value,
            };
            // A quota of -1 is none.
            if cores > 0.0 {
                let of = labels.iter().map(|(name, value)| (&**name, &**value));
                let is_limit = metric == QUOTA || metric.contains("limit") && !metric.starts_with("go_");
                found.push(capacity(metric, named(metric, &of), cores, is_limit));
            }
        }
        for ((metric, resources), numbers) in self.each {
            found.push(capacity(&metric, resources, numbers.len() as f64, false));
        }
        found
    }
}

fn capacity(metric: &str, resources: Vec<String>, cores: f64, is_limit: bool) -> Capacity {
    Capacity { file: "".into(), metric: metric.to_owned(), resources, cores, is_limit }
}

/// What a metric is of. Labels of a container's limit name also what asked for it, and those of a machine's processors may name the machine alone.
fn named<'l>(metric: &str, labels: &(impl Iterator<Item = (&'l str, &'l str)> + Clone)) -> Vec<String> {
    let is = |begins: &[&str]| begins.iter().any(|begin| metric.starts_with(begin));
    if is(&["kube_pod_", "k8s_container_", "container_"]) {
        let own = |name: &str| !matches!(name.replace('.', "_").as_str(), "service" | "host_name" | "instance" | "job");
        return resources(&labels.clone().filter(|(name, _)| own(name)));
    }
    let mut found = resources(labels);
    if is(&["kube_node_", "k8s_node_", "machine_", "node_", "system_"]) {
        let node = |name: &str| matches!(name.replace('.', "_").as_str(), "node" | "k8s_node_name" | "host_id");
        found.extend(labels.clone().filter(|(name, _)| node(name)).map(|(_, value)| value.to_owned()));
        let without_port = |name: &String| name.rsplit_once(':').map(|(host, _)| host.to_owned());
        found.extend(found.iter().filter_map(without_port).collect::<Vec<String>>());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::Counted;

    /// A metric, its labels, its value.
    type Line<'l> = (&'l str, &'l [(&'l str, &'l str)], f64);

    fn of(lines: &[Line<'_>]) -> Vec<(String, f64)> {
        let mut counted = Counted::default();
        for (name, labels, value) in lines {
            counted.take(name, &labels.iter().copied(), *value);
        }
        counted
            .finish()
            .into_iter()
            .map(|own| (own.resources.first().cloned().unwrap_or_default(), own.cores))
            .collect()
    }

    #[test]
    fn limits_quotas_and_counts_are_cores() {
        let container: &[(&str, &str)] = &[("container", "web"), ("instance", "kubelet:1")];
        let idle: [&[(&str, &str)]; 2] = [
            &[("cpu", "0"), ("instance", "db:9100"), ("mode", "idle")],
            &[("cpu", "1"), ("instance", "db:9100"), ("mode", "user")],
        ];
        let found = of(&[
            (
                "kube_pod_container_resource_limits",
                &[("container", "web"), ("resource", "cpu"), ("service", "ksm")],
                2.0,
            ),
            ("kube_pod_container_resource_limits", &[("container", "web"), ("resource", "memory")], 4e9),
            ("container_spec_cpu_quota", container, 150_000.0),
            ("container_spec_cpu_period", container, 100_000.0),
            ("container_spec_cpu_quota", &[("container", "db")], -1.0),
            ("jvm.cpu.count", &[("service.name", "web")], 8.0),
            ("node_cpu_seconds_total", idle[0], 5.0),
            ("node_cpu_seconds_total", idle[1], 5.0),
        ]);
        let known = [("web", 2.0), ("web", 1.5), ("web", 8.0), ("db:9100", 2.0)];
        assert_eq!(found, known.map(|(name, cores)| (name.to_owned(), cores)));
    }
}
