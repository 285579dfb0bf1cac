//! Whether fragments lie in times in which their callers did not record: an exporter that stopped for a while, and not clients that nobody traces.

use std::collections::{BTreeMap, BTreeSet};

use super::requested;
use crate::lqn::submodel::{EntryIndex, ScenarioTotal};
use crate::model::parts::{Customer, Parts};
use crate::names::Name;

/// Operations of callers that are expected in these times by their rate, at least.
const ENOUGH: f64 = 20.0;
/// No more than this part of them were there.
const SILENT: f64 = 0.2;

/// How many steps from entries to their callers are taken at most; in what takes more nothing is found.
const MOST_STEPS: usize = 1 << 22;

/// A service's operation.
type Service = (Name, Name);

/// Who calls what: by called service, the services and the scenarios that call it.
pub(super) struct Callers<'p> {
    parts: &'p Parts<'p>,
    services: BTreeMap<Service, BTreeSet<Service>>,
    customers: BTreeMap<Service, Vec<usize>>,
    steps: usize,
}

impl<'p> Callers<'p> {
    /// Of all entries, and of scenarios that have whole operations.
    pub fn new(parts: &'p Parts<'p>) -> Self {
        let mut callers = Self { parts, services: BTreeMap::new(), customers: BTreeMap::new(), steps: 0 };
        for entry in &parts.entries {
            for to in requested(parts.sub.entry(*entry)) {
                let (to, from) = (callers.service(to), callers.service(*entry));
                callers.services.entry(to).or_default().insert(from);
            }
        }
        for (number, customer) in parts.customers.iter().enumerate() {
            if customer.scenario_total.fragments < customer.scenario_total.operations {
                for to in requested(&customer.total) {
                    let to = callers.service(to);
                    callers.customers.entry(to).or_default().push(number);
                }
            }
        }
        callers
    }

    fn service(&self, entry: EntryIndex) -> Service {
        let own = self.parts.sub.entry(entry);
        (own.task, own.service)
    }

    /// Whether all that is known of a scenario are fragments, in times in which operations that call the same were hardly recorded.
    pub fn are_silent(&mut self, customer: &Customer) -> bool {
        let total = &customer.scenario_total;
        if total.fragments < total.operations || total.starts.cells().is_empty() || total.undated.operations > 0 {
            return false;
        }
        let mut found: BTreeSet<usize> = BTreeSet::new();
        let mut open: Vec<Service> = requested(&customer.total).map(|entry| self.service(entry)).collect();
        let mut reached: BTreeSet<Service> = open.iter().copied().collect();
        while let Some(service) = open.pop() {
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return false;
            }
            found.extend(self.customers.get(&service).into_iter().flatten());
            let above = self.services.get(&service).into_iter().flatten();
            open.extend(above.filter(|from| reached.insert(**from)));
        }
        let callers: Vec<&ScenarioTotal> =
            found.into_iter().map(|number| &self.parts.customers[number].scenario_total).collect();
        are_apart(total, &callers)
    }
}

/// Whether others hardly began at the times at which operations of a scenario did.
fn are_apart(total: &ScenarioTotal, others: &[&ScenarioTotal]) -> bool {
    let all = || others.iter().copied().chain([total]);
    let shift = all().map(|own| own.starts.shift()).max().unwrap_or(0);
    let counts = |own: &[&ScenarioTotal]| {
        let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
        for cell in own.iter().flat_map(|own| own.starts.cells()) {
            *counts.entry(cell.first >> shift).or_default() += cell.operations;
        }
        counts
    };
    let (own, theirs) = (counts(&[total]), counts(others));
    let places = || own.keys().chain(theirs.keys());
    let (Some(first), Some(last)) = (places().min(), places().max()) else { return false };
    let cells = last.abs_diff(*first).saturating_add(1) as f64;
    let mean = theirs.values().sum::<u64>() as f64 / cells;
    let met: f64 = own.iter().map(|(at, count)| *count as f64 * theirs.get(at).copied().unwrap_or(0) as f64).sum();
    let count: u64 = own.values().sum();
    mean * own.len() as f64 >= ENOUGH && met <= SILENT * mean * count as f64
}

#[cfg(test)]
mod tests {
    use super::are_apart;
    use crate::lqn::submodel::ScenarioTotal;

    fn of(starts: impl Iterator<Item = i64>) -> ScenarioTotal {
        let mut total = ScenarioTotal::default();
        starts.for_each(|start| total.starts.add(start * 1_000_000, None));
        total
    }

    #[test]
    fn what_begins_while_others_do_is_not_apart() {
        let gap = |start: &i64| (9_000..18_000).contains(start);
        let callers = of((0..28_000).step_by(10).filter(|start| !gap(start)));
        assert!(are_apart(&of((0..28_000).step_by(13).filter(gap)), &[&callers]));
        assert!(!are_apart(&of((0..28_000).step_by(13)), &[&callers]));
        // A few callers are seldom there by chance.
        let few = of((0..28_000).step_by(2_000));
        assert!(!are_apart(&of((1_000..28_000).step_by(2_000)), &[&few]));
        assert!(!are_apart(&of((0..28_000).step_by(13)), &[]));
    }
}
