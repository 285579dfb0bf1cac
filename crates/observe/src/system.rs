//! The system's configuration file: what no observer can see (§5.1).

use std::collections::BTreeMap;

use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};
use serde::Deserialize;

use crate::codes;

/// Nodes and programs of a system.
///
/// ```
/// let text = "
/// [nodes.host1]
/// cores = 2
///
/// [nodes.host1.disks.main]
/// service = 0.008
///
/// [programs.server1]
/// threads = 3
/// ";
/// let system = dyelog_observe::system::System::parse("system.toml", text)?;
/// assert_eq!(system.nodes["host1"].cores, Some(2));
/// # Ok::<(), dyelog_diagnostic::Diagnostics>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct System {
    /// Nodes, by the host names of observations.
    pub nodes: BTreeMap<String, Node>,
    /// Programs, by their names in observations.
    pub programs: BTreeMap<String, SystemProgram>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Node {
    /// Processors; where it is not said, one is taken, and a finding says so.
    pub cores: Option<u32>,
    /// Work done per second, relative to the processors on which was measured.
    pub speed: f64,
    /// Disks, by name.
    pub disks: BTreeMap<String, Disk>,
}

impl Default for Node {
    fn default() -> Self {
        Self { cores: None, speed: 1.0, disks: BTreeMap::new() }
    }
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// Mean service time of an operation, seconds.
    pub service: f64,
    /// The part of the node's disk operations that it gets, relative to the other disks.
    #[serde(default = "one")]
    pub share: f64,
}

fn one() -> f64 {
    1.0
}

/// A program.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SystemProgram {
    /// Threads that serve; of clients, how many each process stands for.
    pub threads: Option<u32>,
}

impl System {
    /// Reads a configuration file in TOML, which is called so in what is said of it.
    ///
    /// # Errors
    /// When it is no TOML, says what is not known, or has numbers that cannot be.
    pub fn parse(file: &str, text: &str) -> Result<Self, Diagnostics> {
        let system: Self = toml::from_str(text).map_err(|error| {
            let place = match error.span() {
                Some(range) => Place::Range { file: file.into(), start: range.start, end: range.end },
                None => Place::File { file: file.into() },
            };
            Diagnostic::error(codes::SYSTEM, place, error.message().trim().to_owned())
        })?;
        let found = system.check(file);
        if found.0.is_empty() { Ok(system) } else { Err(found) }
    }

    /// What of it cannot be, in a file that is called so.
    pub fn check(&self, file: &str) -> Diagnostics {
        let mut findings = Vec::new();
        let mut refuse = |item: String, why: &str| {
            let place = Place::Item { file: file.into(), item };
            findings.push(Diagnostic::error(codes::SYSTEM, place, why));
        };
        let is_positive = |value: f64| value.is_finite() && value > 0.0;
        for (name, node) in &self.nodes {
            if node.cores == Some(0) {
                refuse(format!("nodes.{name}.cores"), "a node has one processor at least");
            }
            if !is_positive(node.speed) {
                refuse(format!("nodes.{name}.speed"), "a speed is positive");
            }
            for (disk, own) in &node.disks {
                if !is_positive(own.service) || !is_positive(own.share) {
                    refuse(format!("nodes.{name}.disks.{disk}"), "service times and shares are positive");
                }
            }
        }
        for (name, program) in &self.programs {
            if program.threads == Some(0) {
                refuse(format!("programs.{name}.threads"), "a program has one thread at least");
            }
        }
        Diagnostics(findings)
    }

    /// The mean service time of the disks of a node, seconds, where they are configured.
    pub fn disk_service(&self, host: &str) -> Option<f64> {
        let disks = || self.nodes.get(host).into_iter().flat_map(|node| node.disks.values());
        let all: f64 = disks().map(|disk| disk.share).sum();
        (all > 0.0).then(|| disks().map(|disk| disk.share / all * disk.service).sum())
    }

    /// Processors of a node, where it is said how many.
    pub fn cores(&self, host: &str) -> Option<u32> {
        self.nodes.get(host).and_then(|node| node.cores)
    }
}
