//! Machines that copies of one server share: processes of one thread each, as event loops are, on fewer cores than there are processes.
//!
//! What such a process does is a service of its one server. The machine makes services longer where more processes work than it has cores. So services are stays at the machine, and tell of its
//! cores as stays at any host do.

use std::collections::BTreeMap;

use crate::lqn::Multiplicity;
use crate::lqn::submodel::EntryIndex;
use crate::model::parts::Parts;
use crate::model::servers::fit::{CLEARLY, Fit, Known, fitted};
use crate::model::servers::occupancy::Occupancy;
use crate::names::Name;

/// The cores of machines that copies share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Cores of each machine.
    pub cores: u32,
    /// How many machines there are.
    pub count: u32,
    /// The part of the time of services in which they have a core.
    pub part: f64,
    /// Whether no more is known than that so few fit, and as many as work at once would as well.
    pub is_open: bool,
}

/// What the services of copies, of which each is at a station of the host, tell of their machines. `busy` of these servers are on the mean.
pub(super) fn shared(
    parts: &Parts<'_>,
    entries: &[EntryIndex],
    copies: &BTreeMap<u32, usize>,
    (occupancy, fit): (&Occupancy, &Fit),
    (busy, known): (f64, Known),
) -> Option<Machine> {
    let is_asked = fit.servers == 1 && !fit.is_delay && fit.busy.is_none() && occupancy.is_whole(1.0);
    if !is_asked || occupancy.stations < 2 {
        return None;
    }
    let machines = machines(parts, entries, copies, occupancy.stations)?;
    let count = machines.iter().max()? + 1;
    let services = occupancy.services(&machines);
    let known = Known { servers: None, discipline: None, busy: None, arrivals: None, ..known };
    let found = fitted(&services, 1.0, busy, known);
    if found.is_delay || found.busy.is_some() {
        return None;
    }
    let of = |cores: u32, part: f64, is_open: bool| Machine { cores, count: count as u32, part, is_open };
    let is_less = |cores: u32| (cores as usize) < services.most;
    // As many cores as work at once slow nobody.
    let enough = Known { servers: Some(Multiplicity::Finite(services.most as u32)), ..known };
    let clearly = || fitted(&services, 1.0, busy, enough).unlikelihood - found.unlikelihood >= CLEARLY;
    if is_less(found.servers) && clearly() {
        return Some(of(found.servers, found.imputed.all, false));
    }
    let least = found.fitting.iter().min_by_key(|(servers, _)| *servers)?;
    is_less(least.0).then(|| of(least.0, least.1, true))
}

/// By copy, the number of its machine; `None` where a machine is not told, copies moved, or none share one.
fn machines(
    parts: &Parts<'_>,
    entries: &[EntryIndex],
    copies: &BTreeMap<u32, usize>,
    count: usize,
) -> Option<Vec<usize>> {
    let is_own = |task: Name| entries.iter().any(|index| parts.sub.entry(*index).task == task);
    let mut of_copies: Vec<Option<Name>> = vec![None; count];
    for (replica, _, site) in parts.sub.deployment.sites().filter(|(replica, ..)| is_own(replica.task)) {
        let place = of_copies.get_mut(*copies.get(&site)?)?;
        if !replica.machine.is_some() || place.is_some_and(|other| other != replica.machine) {
            return None;
        }
        *place = Some(replica.machine);
    }
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let names: Option<Vec<&str>> = of_copies.into_iter().map(|name| Some(parts.sub.names.text(name?))).collect();
    let names = names?;
    for name in &names {
        numbers.insert(name, 0);
    }
    numbers.values_mut().zip(0..).for_each(|(number, place)| *number = place);
    (numbers.len() < count).then(|| names.iter().map(|name| numbers[name]).collect())
}
