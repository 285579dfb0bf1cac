//! Where a service runs, as far as attributes of its resource tell: the machine, and how many cores it may use.
//!
//! A host name is that of the machine only outside of containers: within one it is the container's or the pod's. Addresses identify no machine:
//! a pod has its own, and a loopback is everybody's.
//!
//! | | attributes |
//! |---|---|
//! | machine | `k8s.node.uid`, `k8s.node.name`, `host.id`; `host.name`, `hostname` where nothing names a container or pod |
//! | container | `container.id`, `container.name`, `k8s.pod.name`, `k8s.pod.uid`, `k8s.container.name` |
//! | cores | `k8s.container.cpu.limit`, `container.cpu.limit`, `k8s.container.cpu_limit`, `process.cpu.count`, `jvm.cpu.count`, `go.processor.limit`, `system.cpu.logical.count`, `host.cpu.count`, `k8s.node.cpu.allocatable` |
//!
//! No convention gives a resource its cores, but deployments do.

/// An attribute that tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Names the machine; a smaller rank wins.
    Machine(u8),
    /// Says that the service runs in a container.
    Container,
    /// How many cores the service may use; a smaller rank wins.
    Cores(u8),
}

/// What the attribute of that key tells, if anything. What names a host or an instance as well is not among them.
pub fn key(key: &str) -> Option<Key> {
    Some(match key {
        "k8s.node.uid" => Key::Machine(0),
        "k8s.node.name" => Key::Machine(1),
        "k8s.pod.uid" | "k8s.container.name" | "container.name" => Key::Container,
        "k8s.container.cpu.limit" | "k8s.container.cpu_limit" | "container.cpu.limit" => Key::Cores(0),
        "process.cpu.count" | "jvm.cpu.count" | "go.processor.limit" => Key::Cores(1),
        "system.cpu.logical.count" | "host.cpu.count" | "k8s.node.cpu.allocatable" => Key::Cores(2),
        _ => return None,
    })
}

/// Names of machines by host attributes follow those that name a node.
const BY_HOST: u8 = 2;
/// Host attributes from this rank on name the container or pod in it.
const HOST_NAME: u8 = 1;
/// Host attributes from this rank on are addresses.
const ADDRESS: u8 = 3;
/// More cores than this no machine has.
const MOST_CORES: f64 = 65_536.0;

/// What is recorded of it.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    machine: Option<(u8, String)>,
    in_container: bool,
    cores: Option<(u8, f64)>,
}

impl Placement {
    /// Takes in the value of an attribute.
    pub fn take(&mut self, key: Key, text: Option<&str>, number: Option<f64>) {
        match key {
            Key::Machine(rank) => self.offer(rank, text.unwrap_or_default().trim()),
            Key::Container => self.in_container |= text.is_some_and(|text| !text.trim().is_empty()),
            Key::Cores(rank) => {
                let number = number.or_else(|| quantity(text?.trim()));
                let number = number.filter(|cores| *cores > 0.0 && *cores <= MOST_CORES);
                if let Some(cores) = number
                    && self.cores.is_none_or(|(old, _)| rank < old)
                {
                    self.cores = Some((rank, cores));
                }
            }
        }
    }

    /// Takes in the name of a host by its rank among those that name a clock.
    pub fn host(&mut self, rank: u8, text: &str) {
        if rank < ADDRESS && !text.eq_ignore_ascii_case("localhost") {
            self.offer(rank + BY_HOST, text);
        }
    }

    fn offer(&mut self, rank: u8, text: &str) {
        if !text.is_empty() && self.machine.as_ref().is_none_or(|(old, _)| rank < *old) {
            self.machine = Some((rank, text.to_owned()));
        }
    }

    /// The machine; empty where not told.
    pub fn machine(&self) -> &str {
        match &self.machine {
            Some((rank, _)) if *rank >= BY_HOST + HOST_NAME && self.in_container => "",
            Some((_, name)) => name,
            None => "",
        }
    }

    /// The cores in thousandths; 0 where not told.
    pub fn cores(&self) -> u32 {
        self.cores.map_or(0, |(_, cores)| (cores * 1000.0).round() as u32)
    }
}

/// A quantity of Kubernetes: `1500m` is one core and a half.
fn quantity(text: &str) -> Option<f64> {
    text.strip_suffix('m')?.parse().ok().map(|thousandths: f64| thousandths / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::{Placement, key};

    #[test]
    fn host_names_of_containers_are_no_machines() {
        let mut placement = Placement::default();
        placement.host(1, "web-6455488cd8-9pdxx");
        assert_eq!(placement.machine(), "web-6455488cd8-9pdxx");
        placement.take(key("k8s.pod.uid").expect("it names a pod"), Some("7"), None);
        assert_eq!(placement.machine(), "");
        placement.take(key("k8s.node.name").expect("it names a machine"), Some("node-1"), None);
        assert_eq!(placement.machine(), "node-1");
    }

    #[test]
    fn addresses_and_impossible_cores_tell_nothing() {
        let mut placement = Placement::default();
        placement.host(3, "127.0.0.1");
        placement.take(key("process.cpu.count").expect("it counts cores"), Some("-2"), Some(-2.0));
        assert_eq!((placement.machine(), placement.cores()), ("", 0));
        placement.take(key("process.cpu.count").expect("it counts cores"), Some("8"), Some(8.0));
        placement.take(key("container.cpu.limit").expect("it limits cores"), Some("0.5"), Some(0.5));
        assert_eq!(placement.cores(), 500);
        let limit = |text: &str| {
            let mut placement = Placement::default();
            placement.take(key("k8s.container.cpu.limit").expect("it limits cores"), Some(text), text.parse().ok());
            placement.cores()
        };
        assert_eq!([limit("1500m"), limit(" 250m "), limit("2"), limit("m"), limit("-5m")], [1500, 250, 2000, 0, 0]);
    }
}
