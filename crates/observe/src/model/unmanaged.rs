//! Unmanaged work: processes without observers, as CPU-intensive, disk-intensive and mixed clients of each node that call nobody (§5.3).

use std::collections::BTreeMap;

use dyelog_lqn::model::{Multiplicity, Scheduling, Task};

use crate::model::Draft;
use crate::model::devices::{Devices, NodeDevices};
use crate::observation::{NANO, Observation};
use crate::period::Period;

/// Work that uses one kind of device for so large a part of its time is intensive there.
const INTENSIVE: f64 = 0.9;
/// What an entity does before it pauses, seconds of devices: short beside the responses of a system, so that others meet it as a steady load.
const CYCLE: f64 = 0.01;
/// Less than this part of a processor is nothing.
const NOTHING: f64 = 1e-6;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Processor,
    Disk,
    Mixed,
}

impl Kind {
    fn of(cpu: f64, disk: f64) -> Self {
        match cpu / (cpu + disk) {
            part if part >= INTENSIVE => Self::Processor,
            part if part <= 1.0 - INTENSIVE => Self::Disk,
            _ => Self::Mixed,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Processor => "cpu",
            Self::Disk => "disk",
            Self::Mixed => "mixed",
        }
    }
}

/// What processes of one kind did on one node.
#[derive(Default)]
struct Work {
    processes: u32,
    cpu: f64,
    operations: f64,
    seconds: f64,
}

/// Adds an entity for each kind of unmanaged work on each node.
pub(super) fn add(draft: &mut Draft, period: &Period, devices: &Devices) {
    let mut all: BTreeMap<(&str, Kind), Work> = BTreeMap::new();
    for process in period.processes.iter().filter(|process| !process.total.managed) {
        let total: &Observation = &process.total;
        let host: &str = &total.process.host;
        let service = devices.of(host).disk_service;
        let (cpu, operations) = (total.resources.cpu as f64 / NANO, total.resources.disk_operations() as f64);
        if (cpu + operations * service) / total.seconds() < NOTHING {
            continue;
        }
        let own = all.entry((host, Kind::of(cpu, operations * service))).or_default();
        own.processes += 1;
        own.cpu += cpu;
        own.operations += operations;
        own.seconds += total.seconds();
    }
    for ((host, kind), work) in all {
        add_one(draft, host, kind, &work, devices.of(host));
    }
}

fn add_one(draft: &mut Draft, host: &str, kind: Kind, work: &Work, node: &NodeDevices) {
    let name = format!("{host}.unmanaged-{}", kind.name());
    let mut task = Task::new(&name, node.processor, Scheduling::Reference);
    task.multiplicity = Multiplicity::Finite(work.processes);
    // By second of one process.
    let (cpu, operations) = (work.cpu / work.seconds, work.operations / work.seconds);
    let busy = cpu + operations * node.disk_service;
    let cycles = busy / CYCLE;
    task.think_time = (1.0 / cycles - CYCLE).max(0.0);
    let think = task.think_time;
    let task = draft.add_task(task);
    let entry = draft.add_entry(task, &[format!("{name}.cycle")]);
    draft.work(entry).demand = cpu / cycles * node.speed;
    node.visit_disks(draft, entry, operations / cycles);
    draft.source(&name, "multiplicity", f64::from(work.processes), "processes without observers");
    draft.source(&name, "think time", think, format!("busy for {busy:.4} of each second, in cycles of {CYCLE} s"));
    let element = draft.name(entry);
    draft.source(
        &element,
        "demand",
        cpu / cycles * node.speed,
        format!("{:.3} s of processors in {:.1} s", work.cpu, work.seconds),
    );
}
