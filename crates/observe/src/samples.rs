//! From the intervals of processes to the samples from which demands are estimated.

use std::collections::BTreeSet;

use crate::demand::{Estimates, Method, Sample, estimate};
use crate::observation::{NANO, Observation, Operation};
use crate::period::{Period, ProcessPeriod};

/// A resource of which a process's use is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// Processors, in seconds.
    Processor,
    /// Disks, in operations.
    Disk,
}

impl Resource {
    /// What an observation says of it.
    pub fn used(self, observation: &Observation) -> f64 {
        match self {
            Self::Processor => observation.resources.cpu as f64 / NANO,
            Self::Disk => observation.resources.disk_operations() as f64,
        }
    }
}

/// How busy the processors of a host were over time, by all that was observed there.
#[derive(Clone, Debug, Default)]
pub struct HostLoad {
    /// Moments at which that changes, and the seconds of processors used until then.
    used: Vec<(i64, f64)>,
    cores: f64,
}

impl HostLoad {
    /// Of a host with so many cores.
    pub fn of(period: &Period, host: &str, cores: f64) -> Self {
        let mut changes: Vec<(i64, f64)> = Vec::new();
        let here = period.processes.iter().filter(|process| &*process.total.process.host == host);
        for interval in here.flat_map(|process| &process.intervals) {
            let length = interval.to.saturating_sub(interval.from).max(1) as f64;
            let rate = interval.resources.cpu as f64 / length;
            changes.extend([(interval.from, rate), (interval.to, -rate)]);
        }
        changes.sort_by(|left, right| left.0.cmp(&right.0).then(left.1.total_cmp(&right.1)));
        let (mut used, mut rate, mut at, mut moments) = (0.0, 0.0, i64::MIN, Vec::new());
        for (moment, change) in changes {
            if at != i64::MIN {
                used += rate * moment.saturating_sub(at) as f64 / NANO;
            }
            rate += change;
            at = moment;
            moments.push((moment, used));
        }
        Self { used: moments, cores: cores.max(f64::MIN_POSITIVE) }
    }

    /// The busy part of the processors between two moments, from 0 to 1.
    pub fn between(&self, from: i64, to: i64) -> f64 {
        let seconds = to.saturating_sub(from).max(1) as f64 / NANO;
        ((self.until(to) - self.until(from)) / seconds / self.cores).clamp(0.0, 1.0)
    }

    fn until(&self, moment: i64) -> f64 {
        let after = self.used.partition_point(|(at, _)| *at <= moment);
        let Some(before) = after.checked_sub(1).map(|place| self.used[place]) else { return 0.0 };
        let Some(next) = self.used.get(after) else { return before.1 };
        let length = next.0.saturating_sub(before.0).max(1) as f64;
        before.1 + (next.1 - before.1) * moment.saturating_sub(before.0) as f64 / length
    }
}

/// The operations that processes of one program serve.
pub fn operations(processes: &[&ProcessPeriod]) -> Vec<Operation> {
    let all: BTreeSet<&Operation> =
        processes.iter().flat_map(|process| process.total.inputs.keys().map(|input| &input.operation)).collect();
    all.into_iter().cloned().collect()
}

/// The intervals of processes of one program, one sample each, in the order of time.
pub fn samples(
    processes: &[&ProcessPeriod],
    operations: &[Operation],
    load: &HostLoad,
    resource: Resource,
) -> Vec<Sample> {
    let mut intervals: Vec<&Observation> = processes.iter().flat_map(|process| &process.intervals).collect();
    intervals.sort_by_key(|interval| (interval.from, interval.to));
    let sample = |interval: &Observation| Sample {
        counts: operations.iter().map(|operation| interval.completions(operation)).collect(),
        busy: operations.iter().map(|operation| interval.own_seconds(operation)).collect(),
        used: resource.used(interval),
        load: load.between(interval.from, interval.to),
    };
    intervals.into_iter().map(sample).collect()
}

/// Demands of operations for disks and for processors, each with how many intervals tell it. An operation that waits for a disk has no processor and wants none: a visit takes `disk_service`
/// seconds, which are taken from busy times before processors are looked at.
pub fn by_device(
    operations: usize,
    samples: impl Fn(Resource) -> Vec<Sample>,
    method: Method,
    disk_service: f64,
    seed: Option<u64>,
) -> [(Resource, Estimates, usize); 2] {
    let mut at_disks = vec![0.0; operations];
    [Resource::Disk, Resource::Processor].map(|resource| {
        let mut samples = samples(resource);
        for sample in &mut samples {
            leave_out(sample, &at_disks);
        }
        let estimates = estimate(operations, &samples, seed);
        at_disks = estimates.by(method).demands.iter().map(|demand| demand.mean * disk_service).collect();
        let intervals = samples.len() - estimates.left_out;
        (resource, estimates, intervals)
    })
}

/// Takes from the busy times of operations what each execution spends elsewhere, seconds; what is left is some part of them at least.
fn leave_out(sample: &mut Sample, elsewhere: &[f64]) {
    const LEAST: f64 = 0.05;
    for ((busy, count), seconds) in sample.busy.iter_mut().zip(&sample.counts).zip(elsewhere) {
        *busy = (*busy - *count as f64 * seconds).max(LEAST * *busy);
    }
}
