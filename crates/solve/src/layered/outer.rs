//! The outer iteration: layers solved in turn until service times and throughputs agree.

use dyelog_diagnostic::Diagnostics;
use dyelog_lqn::results::Convergence;

use crate::layered::chains::{ClientId, ClientKind, Decomposition};
use crate::layered::fork_join::found_by_others;
use crate::layered::interlock::{Overlap, interlock_fractions};
use crate::layered::submodels::{self, Layer, chain_visits, is_open, station_name};
use crate::layered::thread_pools::{Inputs, flow_equivalents};
use crate::mva::{self, Load, Method, Stay};
use crate::prepare::check::without_numbers;

use crate::heuristics::Heuristic;
use crate::layered::exactness::passes_once;
use crate::layered::state::Solver;
use crate::layered::{LayeredOptions, Observer, warm_start};

/// With more visits to stations than this, inner iterations are brought to their end a few times only.
const MANY_VISITS: usize = 500;
/// Iterations from scratch before an acceleration begins, where there are not so many visits.
const PLAIN: u32 = 20;
/// Accelerated iterations after which the pools of a model with so many visits are given up.
const BRIEFLY: u32 = 60;

/// How a run of the iteration ended.
pub(crate) struct Run {
    pub converged: bool,
    pub iterations: u32,
    pub residual: f64,
}

impl Solver<'_> {
    pub(crate) fn run(
        &mut self,
        options: &LayeredOptions,
        observer: &mut dyn Observer,
    ) -> Result<Convergence, Diagnostics> {
        let limit = options.iterations.max(1);
        // Most models need few iterations.
        let ahead = if self.is_large() { warm_start::AHEAD } else { PLAIN };
        let mut run = self.iterate(options.tolerance, ahead.min(limit), true, 1.0, 0, observer);
        let goes_on = |run: &Run| !run.converged && run.residual.is_finite() && run.iterations < limit;
        // Of pools that do not come to agree soon, a large model's cost too much to be followed by every means.
        let briefly = self.is_large() && self.flow_equivalents.iter().any(Option::is_some);
        if goes_on(&run) && self.inner.saturated.is_empty() {
            let most = if briefly { limit.min(BRIEFLY) } else { limit.div_ceil(3) };
            if let Some(found) = self.accelerated(options.tolerance, most, observer) {
                return Ok(Convergence { iterations: run.iterations + found.iterations, ..found });
            }
            run.iterations = (run.iterations + most).min(limit);
        }
        if goes_on(&run) && !briefly {
            let left = (limit - run.iterations).div_ceil(2);
            run = self.iterate(options.tolerance, left, true, 1.0, run.iterations, observer);
        }
        if goes_on(&run) && !briefly && self.inner.saturated.is_empty() {
            observer.restart("Schweitzer's approximation with strong under-relaxation");
            self.reset();
            run = self.iterate(options.tolerance, limit - run.iterations, false, 0.4, run.iterations, observer);
        }
        if !run.converged && self.inner.saturated.is_empty() && self.flow_equivalents.iter().any(Option::is_some) {
            observer.restart("threads as servers that go their own ways");
            self.apart = true;
            self.flow_equivalents.fill(None);
            self.waits.thread_queueing.fill(0.0);
            self.reset();
            let found = self.run(options, observer)?;
            return Ok(Convergence { iterations: run.iterations + found.iterations, ..found });
        }
        let comes = self.plan.entries.iter().any(|entry| entry.open > 0.0)
            || self.decomposition.clients.iter().any(|client| matches!(client.kind, ClientKind::Customers(_)));
        let flows = self.rates.throughputs.iter().any(|rate| *rate > 0.0);
        if !run.residual.is_finite() || comes && !flows {
            return Err(without_numbers(self.plan.model, "the layered solver lost its numbers"));
        }
        let converged = run.converged && self.inner.saturated.is_empty() && self.inner.failures == 0;
        Ok(Convergence {
            converged,
            saturated: !self.inner.saturated.is_empty(),
            iterations: run.iterations,
            residual: run.residual,
            method: self.method(),
            exact: converged && self.is_exact(),
        })
    }

    pub(crate) fn is_large(&self) -> bool {
        self.decomposition.chains.iter().map(|chain| chain.stations.len()).sum::<usize>() > MANY_VISITS
    }

    pub(crate) fn iterate(
        &mut self,
        tolerance: f64,
        limit: u32,
        thorough: bool,
        relaxation: f64,
        before: u32,
        observer: &mut dyn Observer,
    ) -> Run {
        let mut relaxation = relaxation;
        let mut best = f64::INFINITY;
        let mut since = 0;
        let mut run = Run { converged: false, iterations: before, residual: f64::INFINITY };
        for _ in 0..limit {
            let residual = self.sweep(thorough, relaxation);
            run.iterations += 1;
            run.residual = residual;
            observer.iteration(run.iterations, residual);
            if !residual.is_finite() {
                return run;
            }
            // A small step is no small distance: what is damped has to change by less.
            if residual < tolerance * relaxation {
                run.converged = true;
                return run;
            }
            if residual < best * 0.9 {
                best = residual;
                since = 0;
            } else {
                since += 1;
                if since > 12 && relaxation > 0.06 {
                    relaxation *= 0.6;
                    since = 0;
                    best = residual;
                }
            }
        }
        run
    }

    /// Which customers of a layer never meet.
    fn interlock(&self, layer: &Layer) -> Vec<(mva::ChainId, mva::ChainId, f64)> {
        if !self.heuristics.has(Heuristic::Interlock) {
            return Vec::new();
        }
        interlock_fractions(
            layer,
            &Overlap {
                decomposition: self.decomposition,
                shares: &self.held.shares,
                blocking: &self.held.blocking,
                arriving: &self.held.arriving,
                cycles: &self.rates.cycles,
                activity: &self.held.activity,
                together: &self.waits.together,
            },
        )
    }

    /// Solves each layer once; the largest relative change.
    pub(crate) fn sweep(&mut self, thorough: bool, relaxation: f64) -> f64 {
        self.inner.saturated.clear();
        self.inner.failures = 0;
        self.collect_rates();
        self.collect_shares();
        self.find_flow_equivalents();
        let mut change = self.meet_messages();
        for number in 0..self.layers.len() {
            let layer = std::mem::take(&mut self.layers[number]);
            change = change.max(self.solve_layer(number, &layer, thorough, relaxation));
            self.layers[number] = layer;
        }
        change
    }

    /// What threads do to each other.
    pub(crate) fn find_flow_equivalents(&mut self) {
        let decomposition = self.decomposition;
        let several = |kind: ClientKind, population: f64| matches!(kind, ClientKind::Threads(_)) && population > 1.0;
        if self.apart || !decomposition.clients.iter().any(|client| several(client.kind, client.population)) {
            return;
        }
        let busy = decomposition.clients.ids().map(|client| self.busy_time(client)).collect();
        let rate = |client: ClientId| match decomposition.clients[client].kind {
            ClientKind::Threads(task) => {
                let entries = &self.plan.model.tasks[task.index()].entries;
                (self.task_rate(task.index()), entries.iter().map(|entry| self.rates.sent[entry.index()]).sum())
            }
            _ => (0.0, 0.0),
        };
        let rates = decomposition.clients.ids().map(rate).collect();
        let inputs = Inputs {
            before: &self.flow_equivalents,
            throughputs: &self.rates.throughputs,
            demands: &submodels::demands(self.plan, decomposition, &self.rates.flows, &self.waits),
            busy: &busy,
            blocking: &self.held.blocking,
            rates: &rates,
        };
        self.flow_equivalents = flow_equivalents(self.plan, decomposition, &inputs);
        for (task, threads) in decomposition.threads_of.pairs() {
            self.waits.thread_queueing[decomposition.task_station(task)] =
                threads.and_then(|client| self.flow_equivalents[client]).map_or(0.0, |pool| pool.thread_queueing);
        }
    }

    pub(crate) fn solve_layer(&mut self, number: usize, layer: &Layer, thorough: bool, relaxation: f64) -> f64 {
        for client in clients_of(self.decomposition, layer) {
            self.count_requests(client, -1.0);
            self.update_flows(client);
            self.count_requests(client, 1.0);
            self.evaluate(client);
        }
        let sums: Vec<Vec<submodels::Sum>> = layer
            .chains
            .iter()
            .map(|&chain| chain_visits(self.plan, self.decomposition, chain, &self.rates.flows[chain], &self.waits))
            .collect();
        let loads: Vec<Load> = layer.chains.iter().zip(&sums).map(|(&chain, sums)| self.load(chain, sums)).collect();
        let rates = &self.rates;
        let found = found_by_others(self.decomposition, layer, &sums, &rates.flows, &rates.throughputs, &self.waits);
        for (chain, found) in layer.chains.iter().zip(found) {
            self.waits.found[*chain] = found;
        }
        let mut built =
            submodels::network(self.plan, self.decomposition, layer, &loads, &sums, &self.rates.sent, &self.waits);
        self.measure_branches(layer);
        built.network.heuristics = self.heuristics;
        built.network.interlock = self.interlock(layer);

        let solution = mva::solve(&built.network, thorough, &mut self.inner.starts[number]);
        self.inner.methods[number] = (!built.network.visits.is_empty()).then_some(solution.method);
        self.inner.exact[number] = match solution.method {
            Method::Exact => true,
            Method::Formula => {
                mva::formulas_are_exact(&built.network, passes_once(self.plan, self.decomposition, layer))
            }
            Method::Corrected | Method::Linearizer | Method::Schweitzer => false,
        };
        self.inner.failures += usize::from(!solution.converged);
        for (station, saturated) in layer.stations.iter().zip(&solution.saturated) {
            if *saturated {
                self.inner.saturated.push(station_name(self.plan, self.decomposition, *station));
            }
        }
        for (station, there) in layer.stations.iter().zip(mva::open_customers(&built.network, &solution)) {
            self.waits.there[*station] = there;
        }
        let mut open = layer.open.iter();
        let relax = |old: &mut Stay, new: Stay| {
            old.wait += relaxation * (new.wait - old.wait);
            old.slowdown += relaxation * (new.slowdown - old.slowdown);
        };
        for (place, stay) in built.places.iter().zip(&solution.stays) {
            if let Some((chain, slot)) = place {
                relax(&mut self.waits.stays[*chain][*slot], *stay);
            } else if let Some(entry) = open.next() {
                self.open_stays[entry.index()] = *stay;
            }
        }
        let mut change = self.inner.starts[number].change();
        for client in clients_of(self.decomposition, layer) {
            let forks = self.evaluate(client);
            // What open requests take shows in nothing else that is watched.
            if is_open(self.decomposition.clients[client].kind) {
                change = change.max(forks);
            }
            change = change.max(self.publish(client));
            self.count_requests(client, -1.0);
            change = change.max(self.update_throughput(client));
            self.count_requests(client, 1.0);
        }
        change
    }
}

/// Clients with a chain in the layer, each once.
fn clients_of(decomposition: &Decomposition, layer: &Layer) -> Vec<ClientId> {
    let mut clients: Vec<ClientId> = layer.chains.iter().map(|chain| decomposition.chains[*chain].client).collect();
    clients.sort_unstable();
    clients.dedup();
    clients
}

pub(crate) fn relative(old: f64, new: f64) -> f64 {
    let scale = old.abs().max(new.abs());
    if scale > 1e-300 {
        (new - old).abs() / scale
    } else if scale >= 0.0 {
        0.0
    } else {
        f64::NAN
    }
}
