//! What those that come at any time find of branches that lengthen each other.
//!
//! Siblings lengthen each other's stays at a server. Others find less than all of that time: those that were there before an operation leave while it works before its fork.
//! Work is conserved at a server that open arrivals share. The mean of what is left to do is λ E\[W²\] / 2 / (1 − ρ) for any order of service, where an operation brings the work W (Takács 1962).
//! Let a customer have as many others beside it at all times as on the mean. Then these are ρ/(1 − ρ) times the mean number of branches that an operation has at work, weighted by what is left of W.
//! The form is ours: a fork is in the middle of other work, branches are exponential, nothing is delayed, and what follows for one server holds for several.

use crate::layered::chains::{ChainId, ClientId, ClientKind, Decomposition};
use crate::layered::phase_times::Waits;
use crate::layered::submodels::{Layer, Sum};
use crate::numeric::by_id::{ById, Id};
use crate::numeric::order_statistics::order_statistic;

/// By chain of a layer and slot: the part of the time by which branches of a fork lengthen each other that open arrivals find.
pub(crate) fn found_by_others(
    decomposition: &Decomposition,
    layer: &Layer,
    sums: &[Vec<Sum>],
    flows: &ById<ChainId, Vec<f64>>,
    throughputs: &ById<ClientId, f64>,
    waits: &Waits,
) -> Vec<Vec<f64>> {
    let mut parts: Vec<Vec<f64>> = sums.iter().map(|sums| vec![1.0; sums.len()]).collect();
    let is_lengthened = |chain: &ChainId| waits.longer[*chain].iter().any(|longer| *longer > 0.0);
    if !layer.chains.iter().any(is_lengthened) {
        return parts;
    }
    for &station in &layer.stations {
        let slot = |chain: ChainId| decomposition.chains[chain].stations.iter().position(|own| *own == station);
        let visits: Vec<(usize, usize)> =
            layer.chains.iter().enumerate().filter_map(|(place, chain)| Some((place, slot(*chain)?))).collect();
        let is_open = |(place, _): &(usize, usize)| {
            let client = decomposition.chains[layer.chains[*place]].client;
            matches!(decomposition.clients[client].kind, ClientKind::Open { .. })
        };
        if !visits.iter().all(is_open) {
            continue;
        }
        let work = |(place, slot): (usize, usize)| (layer.chains[place], sums[place][slot]);
        let mut operations: Vec<(ClientId, Operation)> = Vec::new();
        for own in
            visits.chunk_by(|one, other| client_of(decomposition, layer, one) == client_of(decomposition, layer, other))
        {
            let works: Vec<(ChainId, Sum)> = own.iter().map(|own| work(*own)).collect();
            let client = client_of(decomposition, layer, &own[0]);
            operations.push((client, Operation::of(decomposition, client, &works, flows, waits)));
        }
        let sum = |of: fn(&Operation) -> f64| {
            operations.iter().map(|(client, own)| throughputs[*client] * of(own)).sum::<f64>()
        };
        let (busy, weight) = (sum(|own| own.work), sum(|own| own.weight - own.overlap));
        for (place, slot) in visits {
            let client = client_of(decomposition, layer, &(place, slot));
            let own = operations.iter().find(|(of, _)| *of == client).map(|(_, own)| own);
            parts[place][slot] = own.map_or(1.0, |own| own.part(busy / weight));
        }
    }
    parts
}

fn client_of(decomposition: &Decomposition, layer: &Layer, (place, _): &(usize, usize)) -> ClientId {
    decomposition.chains[layer.chains[*place]].client
}

/// What an operation does at a server, seconds and squares of them.
#[derive(Clone, Copy, Debug, Default)]
struct Operation {
    /// Its work.
    work: f64,
    /// The integral of what is left of the work while it is done: half the second moment.
    weight: f64,
    /// What of that is done while another branch is there.
    overlap: f64,
    /// By how much branches lengthen each other at one server.
    longer: f64,
}

impl Operation {
    /// Of the work of its chains.
    fn of(
        decomposition: &Decomposition,
        client: ClientId,
        works: &[(ChainId, Sum)],
        flows: &ById<ChainId, Vec<f64>>,
        waits: &Waits,
    ) -> Self {
        let range = decomposition.clients[client].chains;
        let mut all = vec![0.0; range.count];
        let mut own = Self::default();
        for (chain, sum) in works {
            all[chain.position() - range.first.position()] += sum.service();
            own.work += sum.service();
            own.weight += sum.squares();
        }
        own.weight = f64::midpoint(own.weight, own.work * own.work);
        // Branches come after what forks: theirs is known before it is added to that.
        for chain in range.ids().rev() {
            let place = chain.position() - range.first.position();
            if let Some((parent, _)) = decomposition.chains[chain].parent {
                all[parent.position() - range.first.position()] += all[place];
            }
        }
        // Branches of a fork follow each other.
        let chains: Vec<ChainId> = range.ids().collect();
        let fork = |chain: &ChainId| decomposition.chains[*chain].fork;
        for branches in chains.chunk_by(|one, other| fork(one) == fork(other)) {
            let executions = flows[branches[0]].first().copied().unwrap_or(0.0);
            if fork(&branches[0]).is_some_and(|fork| waits.together[fork].is_some()) && executions > 0.0 {
                let of = |chain: &ChainId| all[chain.position() - range.first.position()] / executions;
                own.add(executions, &branches.iter().map(of).filter(|work| *work > 0.0).collect::<Vec<f64>>());
            }
        }
        own
    }

    /// Adds a fork that is executed so often, with the work of its branches.
    fn add(&mut self, executions: f64, branches: &[f64]) {
        if branches.len() < 2 {
            return;
        }
        let pairs = || {
            branches.iter().enumerate().flat_map(|(at, one)| branches[at + 1..].iter().map(move |other| (one, other)))
        };
        let all: f64 = branches.iter().sum();
        let moments: Vec<(f64, f64)> = branches.iter().map(|work| (*work, work * work)).collect();
        let longest = order_statistic(&moments, moments.len()).0;
        let after = (self.work - executions * all).max(0.0) / 2.0;
        // What is not always done varies the more for it.
        self.weight += (executions - executions * executions).max(0.0) * all * all / 2.0;
        let both: f64 = pairs().map(|(one, other)| one * other).sum();
        self.overlap += executions * (both + (all - longest).max(0.0) * after);
        self.longer += executions * pairs().map(|(one, other)| 2.0 * one * other / (one + other)).sum::<f64>();
    }

    /// The part of what branches lengthen each other by that others find, where that work of all operations has so much weight.
    fn part(&self, busy_by_weight: f64) -> f64 {
        let part = busy_by_weight * self.overlap / self.longer;
        if part.is_finite() && part >= 0.0 { part.min(1.0) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::Operation;

    /// Alone, branches that come at once are found as the queue of M^X/M/1 says: 3 ρ/(1 − ρ) customers with five of them.
    #[test]
    fn branches_that_are_all_there_is_are_found_with_all_they_wait() {
        let mut own = Operation { work: 5.0, weight: 15.0, ..Operation::default() };
        own.add(1.0, &[1.0; 5]);
        assert!((own.part(own.work / (own.weight - own.overlap)) - 1.0).abs() < 1e-9, "{own:?}");
    }

    /// A fork that is executed seldom brings less work, which varies more: simulated, arrivals find a good part of it.
    #[test]
    fn forks_that_are_seldom_executed_are_found() {
        for executions in [0.1, 0.3, 0.5, 0.79, 0.8, 0.99] {
            let work = executions * 10.0;
            let squares = executions * 10.0;
            let mut own = Operation { work, weight: f64::midpoint(work * work, squares), ..Operation::default() };
            own.add(executions, &[1.0; 10]);
            let part = own.part(own.work / (own.weight - own.overlap));
            assert!((0.9..=1.0).contains(&part), "{executions}: {part} {own:?}");
        }
    }

    /// With as much work before and after them as each of the branches has; simulated, others are 1.83 ρ/(1 − ρ).
    #[test]
    fn work_before_and_after_lets_others_find_less() {
        let mut own = Operation { work: 7.0, weight: 28.0, ..Operation::default() };
        own.add(1.0, &[1.0; 5]);
        let part = own.part(own.work / (own.weight - own.overlap));
        let others = 1.0 + part * own.longer / own.work;
        assert!((others - 1.83).abs() < 0.01, "{others}");
    }
}
