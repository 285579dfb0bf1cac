//! What a process did in a period, with demands of its operations: the answer of `get`.

use dyelog_observe::change::{Change, What, changes};
use dyelog_observe::demand::{Estimates, Method};
use dyelog_observe::observation::Operation;
use dyelog_observe::period::{OperationFigures as Observed, Period, ProcessPeriod};
use dyelog_observe::{HostLoad, by_device, operations, samples};

use super::messages::{Demand, OperationFigures, ProcessFigures, ProcessName};
use crate::observed::told;

/// Estimates are resampled from here, so that the same question has the same answer.
const SEED: u64 = 1;

/// The figures of a process, in a period with all processes of its node, which has so many cores, and disks with that mean service time, seconds; `method` estimates demands.
pub fn figures(
    period: &Period,
    of: &ProcessPeriod,
    (cores, disk_service): (f64, f64),
    method: Method,
) -> ProcessFigures {
    let found = of.aggregate();
    let own = [of];
    let operations = operations(&own);
    let load = HostLoad::of(period, &of.total.process.host, cores);
    let of_resource = |resource| samples(&own, &operations, &load, resource);
    let [(_, disk, _), (_, cpu, _)] = by_device(operations.len(), of_resource, method, disk_service, Some(SEED));
    let inputs = found.inputs.iter().map(|one| {
        let own = &one.operation.operation;
        let place = operations.binary_search(own).ok();
        let demand = |estimates: &Estimates| place.map(|place| demand(estimates, method, place));
        OperationFigures { cpu: demand(&cpu), disk: demand(&disk), ..row(own, one) }
    });
    let outputs = found.outputs.iter().map(|one| {
        let caller = one.operation.within.as_ref();
        let within = caller.map(|caller| format!("{}.{}", caller.interface, caller.name)).unwrap_or_default();
        let protocol = one.operation.protocol.to_string();
        OperationFigures { within, protocol, ..row(&one.operation.operation, one) }
    });
    ProcessFigures {
        process: Some(ProcessName::from(&of.total.process)),
        from: of.total.from,
        to: of.total.to,
        seconds: found.seconds,
        intervals: of.intervals.len() as u64,
        cpu: Some(found.cpu.into()),
        disk: Some(found.disk.into()),
        inputs: inputs.collect(),
        outputs: outputs.collect(),
        changes: changes(period, &|_| cores).iter().filter(|own| is_of(own, of)).map(|own| told(own, period)).collect(),
    }
}

/// Whether a process is what changes.
fn is_of(change: &Change, of: &ProcessPeriod) -> bool {
    let (What::Demand { process, .. } | What::Appears(process) | What::Leaves(process)) = &change.what;
    *process == of.total.process
}

fn row<K>(operation: &Operation, found: &Observed<K>) -> OperationFigures {
    OperationFigures {
        interface: operation.interface.to_string(),
        operation: operation.name.to_string(),
        count: found.count,
        rate: Some(found.rate.into()),
        response: found.response.map(Into::into),
        p95: found.p95,
        ..OperationFigures::default()
    }
}

fn demand(estimates: &Estimates, method: Method, place: usize) -> Demand {
    let candidate = estimates.by(method);
    let found = candidate.demands[place];
    Demand { mean: found.mean, half_width: found.half_width, method: candidate.method.label().to_owned() }
}
