//! Demands of entries for devices (§5.1, step 5; §5.2).

use dyelog_lqn::model::EntryId;

use crate::codes;
use crate::demand::{Estimates, Method};
use crate::model::devices::{Devices, NodeDevices};
use crate::model::entities::{Added, Entity};
use crate::model::{Draft, Source, WIDE};
use crate::period::Period;
use crate::samples::{HostLoad, Resource, by_device, samples};

/// How demands are set.
pub(super) struct Demands<'d> {
    pub(super) period: &'d Period,
    pub(super) method: Method,
    pub(super) seed: Option<u64>,
}

impl Demands<'_> {
    /// Sets the demands of an entity's entries.
    pub(super) fn set(&self, draft: &mut Draft, entity: &Entity<'_>, added: &Added, devices: &Devices) {
        if entity.is_client {
            return of_client(draft, entity, added.entries[0], devices.of(entity.host()));
        }
        let node = devices.of(entity.host());
        let load = HostLoad::of(self.period, entity.host(), node.cores);
        let of = |resource| samples(&entity.processes, &entity.operations, &load, resource);
        let found = by_device(entity.operations.len(), of, self.method, node.disk_service, self.seed);
        for (resource, estimates, intervals) in &found {
            if self.seed.is_some() {
                tell(draft, entity, *resource, estimates);
            }
            let chosen = estimates.by(self.method);
            for (entry, demand) in added.entries.iter().zip(&chosen.demands) {
                let how = format!("{}, {intervals} intervals", chosen.method.label());
                set_one(draft, *entry, *resource, (demand.mean, demand.half_width), how, node);
            }
        }
    }
}

/// A client's demand by cycle: all that it used, by cycle that ended.
fn of_client(draft: &mut Draft, entity: &Entity<'_>, entry: EntryId, node: &NodeDevices) {
    let cycles = entity.completions(0);
    if cycles <= 0.0 {
        let message = format!("`{}` made no cycle and no call: its demands are unknown", entity.name);
        draft.warn(codes::FEW_INTERVALS, message);
        return;
    }
    for resource in [Resource::Processor, Resource::Disk] {
        let used = resource.used(&entity.total);
        set_one(
            draft,
            entry,
            resource,
            (used / cycles, None),
            format!("all that was used, over {cycles} cycles"),
            node,
        );
    }
}

/// Sets what one execution takes, and says where that comes from.
fn set_one(
    draft: &mut Draft,
    entry: EntryId,
    resource: Resource,
    (mean, half_width): (f64, Option<f64>),
    from: String,
    node: &NodeDevices,
) {
    let (quantity, value) = match resource {
        Resource::Processor => ("demand", mean * node.speed),
        Resource::Disk => ("disk operations", mean),
    };
    match resource {
        Resource::Processor => draft.work(entry).demand = value,
        Resource::Disk => node.visit_disks(draft, entry, value),
    }
    if resource == Resource::Processor || value > 0.0 {
        let element = draft.name(entry);
        draft.sources.push(Source { element, quantity, value, half_width, from });
    }
}

/// Says what is not as it should be with estimates.
fn tell(draft: &mut Draft, entity: &Entity<'_>, resource: Resource, estimates: &Estimates) {
    let name = &entity.name;
    let what = match resource {
        Resource::Processor => "processor time",
        Resource::Disk => "disk operations",
    };
    let chosen = estimates.candidates.first().expect("the average can always be used");
    if chosen.demands.iter().all(|demand| demand.mean <= 0.0) {
        return;
    }
    if estimates.too_few {
        let message = format!("`{name}` has too many operations for its intervals: its {what} is not regressed");
        draft.warn(codes::FEW_INTERVALS, message).hints.push("report more often, or choose a longer period".to_owned());
    }
    for group in &estimates.together {
        let names: Vec<String> = group.iter().map(|number| format!("`{}`", entity.operations[*number])).collect();
        let message = format!("counts of {} vary together: the {what} of each is not known apart", names.join(", "));
        draft
            .warn(codes::COLLINEAR, message)
            .notes
            .push("their sum is estimated, and shared out by their busy times".to_owned());
    }
    if estimates.left_out > 0 {
        let message = format!(
            "{} intervals of `{name}` are left out: its {what} is far from what its operations take",
            estimates.left_out
        );
        draft.warn(codes::OUTLIERS, message);
    }
    for (operation, demand) in entity.operations.iter().zip(&chosen.demands) {
        let Some(width) = demand.half_width.filter(|width| *width > WIDE * demand.mean && demand.mean > 0.0) else {
            continue;
        };
        let message =
            format!("the {what} of `{operation}` is known to within {:.0}% only", 100.0 * width / demand.mean);
        let finding = draft.warn(codes::WIDE, message);
        finding.notes.push("there are too few observations, or the system changed within the period".to_owned());
    }
}
