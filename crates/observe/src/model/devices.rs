//! Devices: the processors and disks of each node (§5.1, step 3).

use std::collections::{BTreeMap, BTreeSet};

use dyelog_lqn::model::{Call, CallKind, EntryId, Multiplicity, Processor, ProcessorId, Scheduling, Task};

use crate::codes;
use crate::model::{Draft, Measured, Subject};
use crate::period::{Period, observed_seconds, ratio};
use crate::samples::Resource;
use crate::system::System;

/// A node's devices in the model.
pub(super) struct NodeDevices {
    pub(super) processor: ProcessorId,
    pub(super) cores: f64,
    pub(super) speed: f64,
    /// Entries of its disks, each with its part of operations.
    disks: Vec<(EntryId, f64)>,
    /// The mean service time of a disk operation, seconds; 0 where the node has no disk that is known.
    pub(super) disk_service: f64,
}

/// All devices.
pub(super) struct Devices {
    nodes: BTreeMap<String, NodeDevices>,
}

impl Devices {
    /// Adds the devices of all nodes on which anything was observed.
    pub(super) fn add(draft: &mut Draft, period: &Period, system: &System) -> Self {
        let hosts: BTreeSet<&str> = period.processes.iter().map(|process| &*process.total.process.host).collect();
        let nodes = hosts.into_iter().map(|host| (host.to_owned(), node(draft, period, system, host)));
        Self { nodes: nodes.collect() }
    }

    pub(super) fn of(&self, host: &str) -> &NodeDevices {
        &self.nodes[host]
    }

    /// Adds what was measured of processors.
    pub(super) fn measure(&self, draft: &mut Draft, period: &Period) {
        for (host, node) in &self.nodes {
            let here = || period.processes.iter().filter(|process| &*process.total.process.host == host);
            let mut intervals: Vec<(i64, f64)> = here()
                .flat_map(|process| &process.intervals)
                .map(|interval| (interval.from, Resource::Processor.used(interval)))
                .collect();
            intervals.sort_by_key(|(from, _)| *from);
            // Processes report at moments of their own: what all used, over the time in which any was observed.
            let seconds =
                observed_seconds(here().flat_map(|process| &process.intervals)) / intervals.len().max(1) as f64;
            let pairs: Vec<(f64, f64)> = intervals.into_iter().map(|(_, used)| (used, seconds)).collect();
            if let Some(figure) = ratio(&pairs) {
                draft.measured.push(Measured { subject: Subject::Processor(node.processor), figure });
            }
        }
    }
}

impl NodeDevices {
    /// Visits of an entry to the disks, so many in all.
    pub(super) fn visit_disks(&self, draft: &mut Draft, from: EntryId, visits: f64) {
        if visits <= 0.0 {
            return;
        }
        for (disk, part) in &self.disks {
            let call = Call { to: *disk, kind: CallKind::Synchronous, mean: visits * part };
            draft.work(from).calls.push(call);
        }
    }

    /// The entry of its disk, where it has one.
    pub(super) fn only_disk(&self) -> Option<EntryId> {
        if let [(disk, ..)] = self.disks[..] { Some(disk) } else { None }
    }
}

fn node(draft: &mut Draft, period: &Period, system: &System, host: &str) -> NodeDevices {
    let configured = system.nodes.get(host);
    let cores = configured.and_then(|node| node.cores);
    let speed = configured.map_or(1.0, |node| node.speed);
    let processor = add_processor(draft, host, Multiplicity::Finite(cores.unwrap_or(1)), speed);
    let how = if cores.is_some() { "the system's configuration" } else { "assumed" };
    draft.source(host, "multiplicity", f64::from(cores.unwrap_or(1)), how);
    if cores.is_none() {
        let message = format!("the number of processors of the node `{host}` is not known: one is assumed");
        draft.warn(codes::NO_CORES, message).hints.push(format!("set `cores` under [nodes.\"{host}\"]"));
    }
    let configured_disks = configured.map(|node| &node.disks).into_iter().flatten();
    let all: f64 = configured_disks.clone().map(|(_, disk)| disk.share).sum();
    let mut disks = Vec::new();
    for (name, disk) in configured_disks {
        let name = format!("{host}.{name}");
        let device = add_processor(draft, &name, Multiplicity::Finite(1), 1.0);
        let task = draft.add_task(Task::new(&name, device, Scheduling::Delay));
        let entry = draft.add_entry(task, &[format!("{name}.operation")]);
        draft.work(entry).demand = disk.service;
        draft.source(&name, "demand", disk.service, "the system's configuration");
        disks.push((entry, disk.share / all));
    }
    let here = period.processes.iter().filter(|process| &*process.total.process.host == host);
    let operations = here.fold(0_u64, |sum, process| sum.saturating_add(process.total.resources.disk_operations()));
    if disks.is_empty() && operations > 0 {
        let message = format!("{operations} disk operations on the node `{host}` are left out: it has no disk");
        let finding = draft.warn(codes::NO_DISK, message);
        finding.hints.push(format!("give the service time of a disk under [nodes.\"{host}\".disks.main]"));
    }
    let disk_service = system.disk_service(host).unwrap_or(0.0);
    NodeDevices { processor, cores: f64::from(cores.unwrap_or(1)), speed, disks, disk_service }
}

fn add_processor(draft: &mut Draft, name: &str, multiplicity: Multiplicity, speed: f64) -> ProcessorId {
    let id = ProcessorId::from(draft.model.processors.len());
    let processor = Processor { multiplicity, speed, ..Processor::new(name, Scheduling::ProcessorSharing) };
    draft.model.processors.push(processor);
    id
}

/// A processor on which nothing queues, for what is a delay.
pub(super) fn add_delay(draft: &mut Draft, name: &str) -> ProcessorId {
    let id = ProcessorId::from(draft.model.processors.len());
    draft.model.processors.push(Processor::new(name, Scheduling::Delay));
    id
}
