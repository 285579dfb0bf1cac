//! What metrics mean: units differ under names that are alike.

use crate::pipeline::utilisation::ValueUnit;

/// What is known of a metric by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It is utilisation, in that unit.
    Utilisation(ValueUnit),
    /// It is something else, or of no use.
    Other,
    /// Nothing.
    Unknown,
}

/// By the name of a metric, in the spelling of OpenTelemetry or of Prometheus, and the unit that a file gives.
pub fn known(name: &str, unit: &str) -> Known {
    let name = name.replace('.', "_").to_lowercase();
    let percent = unit == "%" || name.ends_with("_percent");
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    // A limit or request that nobody tells, and time in which a quota stalls.
    if ends(&["limit_utilization", "limit_utilization_ratio", "request_utilization", "request_utilization_ratio"])
        || name.contains("throttled")
        || name.contains("_cfs_")
    {
        return Known::Other;
    }
    if ends(&["cpu_time", "cpu_time_seconds_total", "cpu_time_total", "cpu_seconds_total", "cpu_usage_seconds_total"]) {
        return Known::Utilisation(ValueUnit::Seconds);
    }
    let cores = ["container_cpu_usage", "k8s_pod_cpu_usage", "k8s_node_cpu_usage"];
    if cores.contains(&&*name) {
        return Known::Utilisation(ValueUnit::Cores);
    }
    // Cores, whatever they are called; percent where the unit says so.
    let named_badly = ["container_cpu_utilization", "k8s_pod_cpu_utilization", "k8s_node_cpu_utilization"];
    if named_badly.iter().any(|own| name.starts_with(own)) {
        return Known::Utilisation(if percent { ValueUnit::Percent } else { ValueUnit::Cores });
    }
    // One for each logical processor: all of them together are cores.
    if name.starts_with("system_cpu_utilization") {
        return Known::Utilisation(ValueUnit::Cores);
    }
    if ["process_cpu_utilization", "jvm_cpu_recent_utilization"].iter().any(|own| name.starts_with(own)) {
        return Known::Utilisation(if percent { ValueUnit::Percent } else { ValueUnit::Ratio });
    }
    if name.contains("cpu") || name.is_empty() { Known::Unknown } else { Known::Other }
}

/// The unit of a series by what is known of its metric and by its labels: where no logical processor is named, all of them together are meant.
pub fn unit_of<'l>(name: &str, unit: ValueUnit, mut labels: impl Iterator<Item = (&'l str, &'l str)>) -> ValueUnit {
    let is_of_each = name.replace('.', "_").to_lowercase().starts_with("system_cpu_utilization");
    let names_one = labels.any(|(name, _)| PROCESSORS.contains(&&*name.replace('.', "_")));
    if is_of_each && unit == ValueUnit::Cores && !names_one { ValueUnit::Ratio } else { unit }
}

/// Labels that tell which logical processor a series is of.
pub const PROCESSORS: [&str; 2] = ["cpu", "cpu_logical_number"];

/// Labels that tell of what kind of processor time a series is.
const MODES: [&str; 6] = ["mode", "state", "cpu_mode", "process_cpu_state", "cpu_state", "type"];

/// Of what kind of processor time a series is, by its labels; empty where they do not tell.
pub fn mode<'l>(mut labels: impl Iterator<Item = (&'l str, &'l str)>) -> String {
    let found = labels.find(|(name, _)| MODES.contains(&&*name.replace('.', "_")));
    found.map(|(_, value)| value.to_owned()).unwrap_or_default()
}

/// Whether a series counts, by its labels: not what is idle or waits, and none of the sums that stand beside their parts.
pub fn counts<'l>(metric: &str, labels: impl Iterator<Item = (&'l str, &'l str)>) -> bool {
    const IDLE: [&str; 8] = ["idle", "iowait", "io_wait", "wait", "steal", "guest", "guest_nice", "throttled"];
    let mut labels = labels.map(|(name, value)| (name.replace('.', "_"), value));
    labels.all(|(name, value)| match &*name {
        name if MODES.contains(&name) => !IDLE.contains(&value.to_lowercase().as_str()),
        "container" => !value.is_empty() && value != "POD",
        // Containers have it in place of their parts, machines beside them.
        "cpu" => value != "total" || metric.starts_with("container"),
        _ => true,
    })
}

/// Labels that name a resource, the most telling first.
const NAMING: [&str; 16] = [
    "processor",
    "service_name",
    "service",
    "container_name",
    "k8s_container_name",
    "container",
    "k8s_deployment_name",
    "deployment",
    "k8s_pod_name",
    "pod",
    "k8s_node_name",
    "node",
    "host_name",
    "host_id",
    "instance",
    "job",
];

/// What a resource is called by its labels.
pub fn resources<'l>(labels: &(impl Iterator<Item = (&'l str, &'l str)> + Clone)) -> Vec<String> {
    let own = |wanted: &&str| {
        let mut labels = labels.clone();
        labels
            .find(|(name, value)| name.replace('.', "_") == **wanted && !value.is_empty())
            .map(|(_, value)| value.to_owned())
    };
    NAMING.iter().filter_map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::{Known, counts, known, mode, unit_of};
    use crate::pipeline::utilisation::ValueUnit;

    #[test]
    fn units_differ_under_like_names() {
        let of = |name: &str| known(name, "");
        assert_eq!(of("k8s.pod.cpu.time"), Known::Utilisation(ValueUnit::Seconds));
        assert_eq!(of("node_cpu_seconds_total"), Known::Utilisation(ValueUnit::Seconds));
        assert_eq!(of("k8s.pod.cpu.utilization"), Known::Utilisation(ValueUnit::Cores));
        assert_eq!(known("container.cpu.utilization", "%"), Known::Utilisation(ValueUnit::Percent));
        assert_eq!(of("process.cpu.utilization"), Known::Utilisation(ValueUnit::Ratio));
        assert_eq!(of("jvm.cpu.recent_utilization"), Known::Utilisation(ValueUnit::Ratio));
        assert_eq!(of("container_cpu_cfs_throttled_seconds_total"), Known::Other);
        assert_eq!(of("k8s.container.cpu.limit.utilization"), Known::Other);
        assert_eq!(of("http_requests_total"), Known::Other);
    }

    #[test]
    fn where_no_processor_is_named_a_part_is_of_all() {
        let of = |labels: &[(&str, &str)]| unit_of("system.cpu.utilization", ValueUnit::Cores, labels.iter().copied());
        assert_eq!(of(&[("state", "user"), ("cpu", "cpu0")]), ValueUnit::Cores);
        assert_eq!(of(&[("cpu.logical_number", "1")]), ValueUnit::Cores);
        assert_eq!(of(&[("state", "user")]), ValueUnit::Ratio);
        assert_eq!(mode([("host", "a"), ("cpu.mode", "user")].into_iter()), "user");
    }

    #[test]
    fn sums_and_what_is_idle_do_not_count() {
        assert!(counts("cpu", [("mode", "user"), ("container", "web")].into_iter()));
        assert!(!counts("cpu", [("mode", "idle")].into_iter()));
        assert!(!counts("cpu", [("container", "")].into_iter()));
        assert!(!counts("cpu", [("cpu.mode", "wait")].into_iter()));
        let total = || [("cpu", "total"), ("container", "web")].into_iter();
        assert!(counts("container_cpu_usage_seconds_total", total()) && !counts("node_cpu_seconds_total", total()));
    }
}
