//! The layered solver: layers solved in turn until service times and throughputs agree.

pub(crate) mod chains;
mod exactness;
pub(crate) mod fork_join;
pub(crate) mod interlock;
pub(crate) mod phase_times;
pub(crate) mod submodels;
pub(crate) mod thread_pools;
mod warm_start;

use std::collections::BTreeMap;

use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog_lqn::model::{EntryId, Model};
use dyelog_lqn::results::{Convergence, Results};

use crate::codes;
use crate::ctmc;
use crate::layered::chains::{ClientKind, Decomposition, Item};
use crate::layered::fork_join::{SharedFork, shared_forks};
use crate::layered::interlock::{Activity, Overlap, Shares, interlock_fractions};
use crate::layered::phase_times::{ChainTimes, Phases, Waits, client_times};
use crate::layered::submodels::{self, Layer, chain_visits, is_open, residence, station_name};
use crate::layered::thread_pools::{FlowEquivalentServer, Inputs, flow_equivalents};
use crate::mva::{self, InnerStarts, Load, Method, Stay};
use crate::prepare::assemble;
use crate::prepare::check;
use crate::prepare::plan::ModelPlan;
use crate::prepare::replicas;

use exactness::passes_once;
pub use warm_start::{WarmStart, layered_from};

/// Groups of more customers than this are not followed through the layers: one of them hardly matters.
const MOST_CUSTOMERS: f64 = 100.0;
/// With more visits to stations than this, inner iterations are brought to their end a few times only.
const MANY_VISITS: usize = 500;
/// Iterations from scratch before an acceleration begins, where there are not so many visits.
const PLAIN: u32 = 20;
/// Accelerated iterations after which the pools of a model with so many visits are given up.
const BRIEFLY: u32 = 60;
/// Where more clients than this stand behind a task, they are not told apart.
const MOST_SHARES: usize = 64;

/// How the layered solver goes about it.
#[derive(Clone, Debug, PartialEq)]
pub struct LayeredOptions {
    /// Largest relative change of a throughput or service time between iterations at which it stops.
    pub tolerance: f64,
    /// Most outer iterations, over all restarts.
    pub iterations: u32,
    /// Models of at most so many states are solved exactly, from these; 0 for none.
    pub states: usize,
}

impl Default for LayeredOptions {
    fn default() -> Self {
        Self { tolerance: 1e-6, iterations: 600, states: 60_000 }
    }
}

/// Told of the solver's progress.
pub trait Observer {
    /// An outer iteration has ended with that residual.
    fn iteration(&mut self, number: u32, residual: f64);

    /// The solver starts again in another way, given in words.
    fn restart(&mut self, _how: &str) {}
}

/// Looks away.
impl Observer for () {
    fn iteration(&mut self, _number: u32, _residual: f64) {}
}

/// Solves a model.
///
/// What could not be brought to agree, or is saturated, is still returned, with [`Convergence::converged`] false and
/// words in [`Results::doubts`].
///
/// # Errors
/// When the model cannot be solved at all: see [`codes`](crate::codes).
pub fn layered(model: &Model, options: &LayeredOptions) -> Result<Results, Diagnostics> {
    layered_observed(model, options, &mut ())
}

/// Solves a model and tells the observer of each iteration.
///
/// # Errors
/// As [`layered`].
pub fn layered_observed(
    model: &Model,
    options: &LayeredOptions,
    observer: &mut dyn Observer,
) -> Result<Results, Diagnostics> {
    if replicas::any(model) {
        return of_copies(model, &mut |model| one_by_one(model, options, observer));
    }
    one_by_one(model, options, observer)
}

/// Solves a model with replicas: unfolded where that is not too much, else with the copies of a task as one.
fn of_copies(
    model: &Model,
    solve: &mut dyn FnMut(&Model) -> Result<Results, Diagnostics>,
) -> Result<Results, Diagnostics> {
    check::check(model)?;
    if let Some(copies) = replicas::unfold(model) {
        return Ok(copies.fold(model, solve(&copies.model)?));
    }
    let mut results = solve(model)?;
    replicas::of_one(model, &mut results);
    Ok(results)
}

/// Solves a model whose replicas are taken as one queue.
fn one_by_one(model: &Model, options: &LayeredOptions, observer: &mut dyn Observer) -> Result<Results, Diagnostics> {
    let plan = ModelPlan::new(model)?;
    let decomposition = Decomposition::new(&plan)?;
    let mut solver = Solver::new(&plan, &decomposition)?;
    if let Some(results) = ctmc::solve(&plan, options.states) {
        return sound(results);
    }
    if let Err(refusal) = in_layers(model) {
        return ctmc::solve_roughly(&plan, options.states).map_or(Err(refusal), sound);
    }
    let convergence = solver.run(options, observer)?;
    sound(assemble::results(&solver, convergence))
}

/// Refuses what layers cannot say.
fn in_layers(model: &Model) -> Result<(), Diagnostics> {
    let found = check::beyond_layers(model);
    if found.is_empty() { Ok(()) } else { Err(Diagnostics(found)) }
}

/// The results, if all of them are numbers.
fn sound(results: Results) -> Result<Results, Diagnostics> {
    if assemble::is_sound(&results) {
        Ok(results)
    } else {
        Err(Diagnostic::error(codes::BROKEN, Place::Nowhere, "the layered solver found a result that is no number")
            .with_hint("please report this model: it has met a defect of the solver")
            .into())
    }
}

/// The state of the outer iteration.
pub(crate) struct Solver<'a> {
    pub plan: &'a ModelPlan<'a>,
    pub decomposition: &'a Decomposition,
    layers: Vec<Layer>,
    pub waits: Waits,
    pub times: Vec<ChainTimes>,
    /// By chain: executions of each entry in a cycle of the client.
    pub flows: Vec<Vec<f64>>,
    /// By client: cycles per second, and mean time of a cycle, idle time included.
    pub throughputs: Vec<f64>,
    cycles: Vec<f64>,
    /// By client: requests in a cycle to entries.
    requests: Vec<Vec<Request>>,
    /// By entry: requests per second whose sender waits, and others.
    pub waited: Vec<f64>,
    pub sent: Vec<f64>,
    /// By entry that queues: the stay of requests whose sender does not wait.
    pub open_stays: Vec<Stay>,
    /// By client: forks whose branches share servers.
    forks: Vec<Vec<SharedFork>>,
    shares: Vec<Shares>,
    /// By client: the part of its activity in which someone waits for it.
    blocking: Vec<f64>,
    /// By client: the part of its visits to stations at which someone waits for it, or has just had the reply.
    arriving: Vec<f64>,
    /// By chain.
    activity: Vec<Activity>,
    /// By client: what its threads do to each other, if there are several.
    flow_equivalents: Vec<Option<FlowEquivalentServer>>,
    /// Whether they are taken as servers that go their own ways, as the pools did not come to agree.
    apart: bool,
    methods: Vec<Option<Method>>,
    /// By layer: whether its network's solution has no error of its own.
    exact: Vec<bool>,
    /// By layer.
    inner_starts: Vec<InnerStarts>,
    /// Stations that open load fills.
    pub saturated: Vec<String>,
    inner_failures: usize,
}

#[derive(Clone, Copy)]
struct Request {
    chain: usize,
    to: EntryId,
    count: f64,
    waits: bool,
    /// Whether a source's customer is blocked as long as it is served.
    blocks: bool,
}

/// How a run of the iteration ended.
struct Run {
    converged: bool,
    iterations: u32,
    residual: f64,
}

impl<'a> Solver<'a> {
    fn new(plan: &'a ModelPlan<'a>, decomposition: &'a Decomposition) -> Result<Self, Diagnostics> {
        let entries = plan.entries.len();
        let base = base_rates(plan);
        let mut sendable: Vec<bool> = base.iter().map(|rate| *rate > 0.0).collect();
        for call in plan.works.iter().flat_map(|work| &work.calls) {
            sendable[call.to.index()] |= !call.synchronous;
        }
        let open: Vec<EntryId> = (0..entries)
            .filter(|&entry| sendable[entry] && decomposition.queues[plan.entries[entry].task.index()])
            .map(EntryId::from)
            .collect();
        let layers = submodels::layers(plan, decomposition, &open);
        let mut solver = Self {
            plan,
            decomposition,
            methods: vec![None; layers.len()],
            exact: vec![true; layers.len()],
            inner_starts: vec![InnerStarts::default(); layers.len()],
            layers,
            waits: Waits {
                stays: decomposition.chains.iter().map(|chain| vec![Stay::default(); chain.stations.len()]).collect(),
                service: vec![Phases::default(); entries],
                longer: decomposition.chains.iter().map(|chain| vec![0.0; chain.stations.len()]).collect(),
                together: vec![None; decomposition.chains.len()],
                thread_queueing: vec![0.0; decomposition.processors + decomposition.threads_of.len()],
            },
            forks: (0..decomposition.clients.len()).map(|client| shared_forks(plan, decomposition, client)).collect(),
            times: vec![ChainTimes::default(); decomposition.chains.len()],
            flows: decomposition.chains.iter().map(|chain| vec![0.0; chain.reach.len()]).collect(),
            throughputs: vec![0.0; decomposition.clients.len()],
            cycles: vec![0.0; decomposition.clients.len()],
            requests: vec![Vec::new(); decomposition.clients.len()],
            waited: vec![0.0; entries],
            sent: base,
            open_stays: vec![Stay::default(); entries],
            shares: vec![Shares::new(); decomposition.clients.len()],
            activity: vec![Activity::default(); decomposition.chains.len()],
            blocking: vec![1.0; decomposition.clients.len()],
            arriving: vec![1.0; decomposition.clients.len()],
            flow_equivalents: vec![None; decomposition.clients.len()],
            apart: false,
            saturated: Vec::new(),
            inner_failures: 0,
        };
        solver.reset();
        for (client, found) in decomposition.clients.iter().enumerate() {
            if let ClientKind::Customers(task) = found.kind
                && solver.cycles[client] <= 0.0
            {
                let name = &plan.model.tasks[task.index()].name;
                return Err(Diagnostic::error(
                    codes::SOURCE,
                    Place::Nowhere,
                    format!("a cycle of reference task `{name}` takes no time, so that its throughput is infinite"),
                )
                .with_hint("give it a demand, a think time, or calls to something that takes time")
                .into());
            }
        }
        Ok(solver)
    }

    /// Starts from a system in which nothing waits.
    fn reset(&mut self) {
        self.inner_starts.fill(InnerStarts::default());
        for stays in &mut self.waits.stays {
            stays.fill(Stay::default());
        }
        self.open_stays.fill(Stay::default());
        // Callees are in later clients than their callers: going backwards, service times are there when needed.
        for client in (0..self.decomposition.clients.len()).rev() {
            self.evaluate(client);
            self.publish(client);
        }
        self.throughputs.fill(0.0);
        self.collect_rates();
        for client in 0..self.decomposition.clients.len() {
            self.update_flows(client);
            self.cycles[client] = self.busy_time(client);
            self.throughputs[client] = match self.decomposition.clients[client].kind {
                ClientKind::Open { .. } => self.open_rate(client),
                ClientKind::Customers(_) if self.cycles[client] > 0.0 => {
                    self.decomposition.clients[client].population / self.cycles[client]
                }
                ClientKind::Customers(_) => 0.0,
                ClientKind::Threads(task) => self.task_rate(task.index()),
            };
            self.count_requests(client, 1.0);
        }
    }

    fn run(&mut self, options: &LayeredOptions, observer: &mut dyn Observer) -> Result<Convergence, Diagnostics> {
        let limit = options.iterations.max(1);
        // Most models need few iterations.
        let ahead = if self.is_large() { warm_start::AHEAD } else { PLAIN };
        let mut run = self.iterate(options.tolerance, ahead.min(limit), true, 1.0, 0, observer);
        let goes_on = |run: &Run| !run.converged && run.residual.is_finite() && run.iterations < limit;
        // Of pools that do not come to agree soon, a large model's cost too much to be followed by every means.
        let briefly = self.is_large() && self.flow_equivalents.iter().any(Option::is_some);
        if goes_on(&run) && self.saturated.is_empty() {
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
        if goes_on(&run) && !briefly && self.saturated.is_empty() {
            observer.restart("Schweitzer's approximation with strong under-relaxation");
            self.reset();
            run = self.iterate(options.tolerance, limit - run.iterations, false, 0.4, run.iterations, observer);
        }
        if !run.converged && self.saturated.is_empty() && self.flow_equivalents.iter().any(Option::is_some) {
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
        let flows = self.throughputs.iter().any(|rate| *rate > 0.0);
        if !run.residual.is_finite() || comes && !flows {
            return Err(Diagnostic::error(codes::BROKEN, Place::Nowhere, "the layered solver lost its numbers").into());
        }
        let converged = run.converged && self.saturated.is_empty() && self.inner_failures == 0;
        Ok(Convergence {
            converged,
            saturated: !self.saturated.is_empty(),
            iterations: run.iterations,
            residual: run.residual,
            method: self.method(),
            exact: converged && self.is_exact(),
        })
    }

    fn is_large(&self) -> bool {
        self.decomposition.chains.iter().map(|chain| chain.stations.len()).sum::<usize>() > MANY_VISITS
    }

    fn iterate(
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

    /// Solves each layer once; the largest relative change.
    fn sweep(&mut self, thorough: bool, relaxation: f64) -> f64 {
        self.saturated.clear();
        self.inner_failures = 0;
        self.collect_rates();
        self.collect_shares();
        self.find_flow_equivalents();
        let mut change = 0.0_f64;
        for number in 0..self.layers.len() {
            let layer = std::mem::take(&mut self.layers[number]);
            change = change.max(self.solve_layer(number, &layer, thorough, relaxation));
            self.layers[number] = layer;
        }
        change
    }

    /// What threads do to each other.
    fn find_flow_equivalents(&mut self) {
        let decomposition = self.decomposition;
        let several = |kind: ClientKind, population: f64| matches!(kind, ClientKind::Threads(_)) && population > 1.0;
        if self.apart || !decomposition.clients.iter().any(|client| several(client.kind, client.population)) {
            return;
        }
        let busy: Vec<f64> = (0..decomposition.clients.len()).map(|client| self.busy_time(client)).collect();
        let rate = |client: usize| match decomposition.clients[client].kind {
            ClientKind::Threads(task) => {
                let entries = &self.plan.model.tasks[task.index()].entries;
                (self.task_rate(task.index()), entries.iter().map(|entry| self.sent[entry.index()]).sum())
            }
            _ => (0.0, 0.0),
        };
        let rates: Vec<(f64, f64)> = (0..decomposition.clients.len()).map(rate).collect();
        let inputs = Inputs {
            before: &self.flow_equivalents,
            throughputs: &self.throughputs,
            demands: &submodels::demands(self.plan, decomposition, &self.flows, &self.waits),
            busy: &busy,
            blocking: &self.blocking,
            rates: &rates,
        };
        self.flow_equivalents = flow_equivalents(self.plan, decomposition, &inputs);
        for (task, threads) in decomposition.threads_of.iter().enumerate() {
            self.waits.thread_queueing[decomposition.processors + task] =
                threads.and_then(|client| self.flow_equivalents[client]).map_or(0.0, |pool| pool.thread_queueing);
        }
    }

    fn solve_layer(&mut self, number: usize, layer: &Layer, thorough: bool, relaxation: f64) -> f64 {
        for client in clients_of(self.decomposition, layer) {
            self.count_requests(client, -1.0);
            self.update_flows(client);
            self.count_requests(client, 1.0);
            self.evaluate(client);
        }
        let sums: Vec<Vec<submodels::Sum>> = layer
            .chains
            .iter()
            .map(|&chain| chain_visits(self.plan, self.decomposition, chain, &self.flows[chain], &self.waits))
            .collect();
        let loads: Vec<Load> = layer.chains.iter().zip(&sums).map(|(&chain, sums)| self.load(chain, sums)).collect();
        let mut built =
            submodels::network(self.plan, self.decomposition, layer, &loads, &sums, &self.sent, &self.waits);
        self.measure_branches(layer);
        built.network.interlock = interlock_fractions(
            layer,
            &Overlap {
                decomposition: self.decomposition,
                shares: &self.shares,
                blocking: &self.blocking,
                arriving: &self.arriving,
                cycles: &self.cycles,
                activity: &self.activity,
                together: &self.waits.together,
            },
        );
        let solution = mva::solve(&built.network, thorough, &mut self.inner_starts[number]);
        self.methods[number] = (!built.network.visits.is_empty()).then_some(solution.method);
        self.exact[number] = match solution.method {
            Method::Exact => true,
            Method::Formula => {
                mva::formulas_are_exact(&built.network, passes_once(self.plan, self.decomposition, layer))
            }
            Method::Corrected | Method::Linearizer | Method::Schweitzer => false,
        };
        self.inner_failures += usize::from(!solution.converged);
        for (station, saturated) in layer.stations.iter().zip(&solution.saturated) {
            if *saturated {
                self.saturated.push(station_name(self.plan, self.decomposition, *station));
            }
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
        let mut change = self.inner_starts[number].change();
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

    /// Of chains with branches, and of these: for how long they are active in a cycle, and how much of it beside the other.
    fn measure_branches(&mut self, layer: &Layer) {
        for &number in &layer.chains {
            let chain = &self.decomposition.chains[number];
            if self.decomposition.clients[chain.client].chains.len() < 2 {
                continue;
            }
            let (mut time, mut waits) = (0.0, 0.0);
            for (position, reach) in chain.reach.iter().enumerate() {
                let flow = self.flows[number][position];
                let times = &self.times[number];
                if position < self.starts(number) {
                    time += flow * times.entries[position].iter().map(|time| time.mean).sum::<f64>();
                }
                for index in reach.items.clone() {
                    if let Item::Fork { fork, .. } = chain.items[index] {
                        let visits = self.plan.entries[reach.entry.index()].shape.forks[fork].visits;
                        waits += flow * visits * times.items[index];
                    }
                }
            }
            let beside = chain.parent.map_or(0.0, |(parent, _)| {
                let known = self.times[parent].beside.iter().find(|known| known.0 == number);
                known.map_or(0.0, |known| self.flows[number][0] * known.1)
            });
            self.activity[number] = Activity { time, alone: (time - waits).max(0.0), beside };
        }
    }

    /// Positions in a chain at which its executions begin.
    fn starts(&self, chain: usize) -> usize {
        let chain = &self.decomposition.chains[chain];
        if chain.parent.is_some() { 1 } else { self.starting_entries(chain.client) }
    }

    /// Times of what a client does; the largest relative change of what forks take whose branches share servers.
    fn evaluate(&mut self, client: usize) -> f64 {
        client_times(self.plan, self.decomposition, client, &self.waits, &mut self.times);
        let mut change = 0.0_f64;
        if self.forks[client].is_empty() {
            return change;
        }
        // Inner forks come after those in which they are.
        for fork in self.forks[client].iter_mut().rev() {
            let found = fork.solve(self.plan, self.decomposition, &self.waits, &self.times);
            let before = self.waits.together[fork.first_chain].replace((found.until, found.all));
            change = change.max(relative(before.map_or(0.0, |before| before.1), found.all));
            for (chain, slot, longer) in found.longer {
                self.waits.longer[chain][slot as usize] = longer;
            }
        }
        client_times(self.plan, self.decomposition, client, &self.waits, &mut self.times);
        change
    }

    /// Starting entries of a client: positions in its main chain.
    fn starting_entries(&self, client: usize) -> usize {
        match self.decomposition.clients[client].kind {
            ClientKind::Customers(task) | ClientKind::Threads(task) => {
                self.plan.model.tasks[task.index()].entries.len()
            }
            ClientKind::Open { .. } => 1,
        }
    }

    fn update_flows(&mut self, client: usize) {
        let decomposition = self.decomposition;
        let found = &decomposition.clients[client];
        let main = found.chains.start;
        let starts_of = self.starting_entries(client);
        for number in found.chains.clone() {
            let chain = &decomposition.chains[number];
            let mut flows = std::mem::take(&mut self.flows[number]);
            flows.fill(0.0);
            if let Some((parent, position)) = chain.parent {
                flows[0] = self.flows[parent][position] * chain.share;
            } else {
                for (position, flow) in flows.iter_mut().enumerate().take(starts_of) {
                    *flow = match found.kind {
                        ClientKind::Threads(task) => {
                            let total = self.task_rate(task.index());
                            let entry = decomposition.chains[main].reach[position].entry.index();
                            if total > 0.0 {
                                (self.waited[entry] + self.sent[entry]) / total
                            } else {
                                1.0 / starts_of as f64
                            }
                        }
                        _ => 1.0 / starts_of as f64,
                    };
                }
            }
            for &position in &chain.order {
                let flow = flows[position as usize];
                let mut executions = 0.0;
                for item in &chain.items[chain.reach[position as usize].items.clone()] {
                    match *item {
                        Item::Step { visits, .. } => executions = flow * visits,
                        Item::Flattened { mean, reach, .. } => flows[reach as usize] += executions * mean,
                        _ => {}
                    }
                }
            }
            self.flows[number] = flows;
        }
        self.update_requests(client);
    }

    fn update_requests(&mut self, client: usize) {
        let decomposition = self.decomposition;
        let source = matches!(decomposition.clients[client].kind, ClientKind::Customers(_));
        let mut requests = std::mem::take(&mut self.requests[client]);
        requests.clear();
        for number in decomposition.clients[client].chains.clone() {
            let chain = &decomposition.chains[number];
            for (position, reach) in chain.reach.iter().enumerate() {
                let flow = self.flows[number][position];
                let (mut executions, mut first) = (0.0, true);
                for item in &chain.items[reach.items.clone()] {
                    match *item {
                        Item::Step { visits, phase, .. } => {
                            executions = flow * visits;
                            first = phase == 0;
                        }
                        Item::Call { mean, to, .. } => {
                            let blocks = source || first;
                            requests.push(Request { chain: number, to, count: executions * mean, waits: true, blocks });
                        }
                        Item::Flattened { mean, reach, .. } => {
                            let to = chain.reach[reach as usize].entry;
                            requests.push(Request {
                                chain: number,
                                to,
                                count: executions * mean,
                                waits: true,
                                blocks: false,
                            });
                        }
                        Item::Send { mean, to, .. } => {
                            requests.push(Request {
                                chain: number,
                                to,
                                count: executions * mean,
                                waits: false,
                                blocks: false,
                            });
                        }
                        Item::Fork { .. } => {}
                    }
                }
            }
        }
        self.requests[client] = requests;
    }

    /// Requests per second to each entry from the throughputs of all clients.
    fn collect_rates(&mut self) {
        self.waited.fill(0.0);
        self.sent = base_rates(self.plan);
        for client in 0..self.requests.len() {
            self.count_requests(client, 1.0);
        }
    }

    /// Adds the client's requests to the rates, or takes them back out.
    fn count_requests(&mut self, client: usize, sign: f64) {
        let rate = sign * self.throughputs[client];
        for request in &self.requests[client] {
            let rates = if request.waits { &mut self.waited } else { &mut self.sent };
            let sum = &mut rates[request.to.index()];
            *sum = (*sum + rate * request.count).max(0.0);
        }
    }

    /// On behalf of whom each client is active.
    fn collect_shares(&mut self) {
        let decomposition = self.decomposition;
        let mut sums: Vec<BTreeMap<usize, f64>> = vec![BTreeMap::new(); decomposition.clients.len()];
        for client in 0..decomposition.clients.len() {
            self.shares[client].clear();
            if let ClientKind::Threads(task) = decomposition.clients[client].kind {
                self.blocking[client] = self.first_phase_part(client);
                self.arriving[client] = self.awaited_part(client);
                let total = self.task_rate(task.index());
                if total > 0.0 && sums[client].len() <= MOST_SHARES {
                    self.shares[client].extend(sums[client].iter().map(|(behind, rate)| (*behind, rate / total)));
                }
            }
            for request in &self.requests[client] {
                let target = self.plan.entries[request.to.index()].task.index();
                let Some(threads) = decomposition.threads_of[target].filter(|_| request.waits) else { continue };
                let rate = self.throughputs[client] * request.count;
                // Whoever calls is blocked in any phase; those behind it only in the first.
                if decomposition.clients[client].population <= MOST_CUSTOMERS {
                    *sums[threads].entry(request.chain).or_default() += rate;
                }
                for &(behind, share) in self.shares[client].iter().filter(|_| request.blocks) {
                    *sums[threads].entry(behind).or_default() += rate * share;
                }
            }
        }
    }

    /// The part of its busy time in which a client's thread works for someone who waits.
    fn first_phase_part(&self, client: usize) -> f64 {
        let main = self.decomposition.clients[client].chains.start;
        let (mut first, mut all) = (0.0, 0.0);
        for (phases, flow) in self.times[main].entries[..self.starting_entries(client)].iter().zip(&self.flows[main]) {
            first += flow * phases[0].mean;
            all += flow * phases.iter().map(|time| time.mean).sum::<f64>();
        }
        if all > 0.0 { first / all } else { 1.0 }
    }

    /// The part of a client's own visits to stations at which someone waits for it, or has just had the reply: a second
    /// phase begins as the first one ends.
    fn awaited_part(&self, client: usize) -> f64 {
        let main = self.decomposition.clients[client].chains.start;
        let chain = &self.decomposition.chains[main];
        let (mut awaited, mut all) = (0.0, 0.0);
        for (reach, flow) in chain.reach[..self.starting_entries(client)].iter().zip(&self.flows[main]) {
            let mut later = 0.0;
            let (mut visits, mut phase) = (0.0, 0);
            for item in &chain.items[reach.items.clone()] {
                let made = match *item {
                    Item::Step { work, visits: own, phase: in_phase, .. } => {
                        (visits, phase) = (own, in_phase);
                        own * self.plan.works[work].slices
                    }
                    Item::Call { mean, .. } | Item::Flattened { mean, .. } => visits * mean,
                    Item::Send { .. } | Item::Fork { .. } => 0.0,
                };
                all += flow * made;
                if phase == 0 {
                    awaited += flow * made;
                } else {
                    later += made;
                }
            }
            awaited += flow * later.min(1.0);
        }
        if all > 0.0 { awaited / all } else { 1.0 }
    }

    pub(crate) fn task_rate(&self, task: usize) -> f64 {
        self.plan.model.tasks[task]
            .entries
            .iter()
            .map(|entry| self.waited[entry.index()] + self.sent[entry.index()])
            .sum()
    }

    fn open_rate(&self, client: usize) -> f64 {
        match self.decomposition.clients[client].kind {
            ClientKind::Open { entry, later: false } => self.sent[entry.index()],
            ClientKind::Open { entry, later: true } => self.waited[entry.index()],
            _ => 0.0,
        }
    }

    /// Time of a cycle without idle time.
    fn busy_time(&self, client: usize) -> f64 {
        let main = self.decomposition.clients[client].chains.start;
        let think = match self.decomposition.clients[client].kind {
            ClientKind::Customers(task) => self.plan.model.tasks[task.index()].think_time,
            _ => 0.0,
        };
        let executed: f64 = self.times[main].entries[..self.starting_entries(client)]
            .iter()
            .zip(&self.flows[main])
            .map(|(phases, flow)| flow * phases.iter().map(|time| time.mean).sum::<f64>())
            .sum();
        think + executed
    }

    /// Time in which one of a population of threads of the client waits for requests, in a cycle.
    fn surrogate_delay(&self, client: usize, population: f64, busy: f64) -> f64 {
        match self.decomposition.clients[client].kind {
            ClientKind::Threads(task) => {
                let rate = self.task_rate(task.index());
                if rate > 1e-200 { (population / rate - busy).max(0.0) } else { 1e30 }
            }
            _ => 0.0,
        }
    }

    fn load(&self, chain: usize, sums: &[submodels::Sum]) -> Load {
        let client = self.decomposition.chains[chain].client;
        let found = &self.decomposition.clients[client];
        if is_open(found.kind) {
            return Load::Open(self.open_rate(client));
        }
        let busy = self.busy_time(client);
        let population = self.flow_equivalents[client].map_or(found.population, |pool| pool.population);
        let cycle = busy + self.surrogate_delay(client, population, busy);
        let here = residence(sums, &self.waits.stays[chain]);
        // Rounding leaves crumbs that would make a delay of nothing.
        let delay = cycle - here;
        Load::Closed { population, delay: if delay > 1e-12 * cycle { delay } else { 0.0 } }
    }

    /// New service times of a task that queues; the largest relative change.
    fn publish(&mut self, client: usize) -> f64 {
        let ClientKind::Threads(_) = self.decomposition.clients[client].kind else { return 0.0 };
        let main = self.decomposition.clients[client].chains.start;
        let mut change = 0.0_f64;
        for position in 0..self.starting_entries(client) {
            let entry = self.decomposition.chains[main].reach[position].entry.index();
            let new = self.times[main].entries[position];
            let total = |phases: &Phases| phases.iter().map(|time| time.mean).sum::<f64>();
            change = change.max(relative(total(&self.waits.service[entry]), total(&new)));
            self.waits.service[entry] = new;
        }
        change
    }

    fn update_throughput(&mut self, client: usize) -> f64 {
        let busy = self.busy_time(client);
        let cycle = busy + self.surrogate_delay(client, self.decomposition.clients[client].population, busy);
        let new = match self.decomposition.clients[client].kind {
            ClientKind::Open { .. } => self.open_rate(client),
            _ if cycle > 0.0 => self.decomposition.clients[client].population / cycle,
            // A thread that takes no time handles whatever comes.
            ClientKind::Threads(task) => self.task_rate(task.index()),
            ClientKind::Customers(_) => 0.0,
        };
        let change = relative(self.throughputs[client], new);
        self.throughputs[client] = new;
        self.cycles[client] = cycle;
        change
    }
}

/// Clients with a chain in the layer, each once.
fn clients_of(decomposition: &Decomposition, layer: &Layer) -> Vec<usize> {
    let mut clients: Vec<usize> = layer.chains.iter().map(|chain| decomposition.chains[*chain].client).collect();
    clients.sort_unstable();
    clients.dedup();
    clients
}

fn relative(old: f64, new: f64) -> f64 {
    let scale = old.abs().max(new.abs());
    if scale > 1e-300 {
        (new - old).abs() / scale
    } else if scale >= 0.0 {
        0.0
    } else {
        f64::NAN
    }
}

/// Open arrivals at each entry, those that are forwarded to it included.
fn base_rates(plan: &ModelPlan) -> Vec<f64> {
    let mut rates = vec![0.0; plan.entries.len()];
    for (index, entry) in plan.entries.iter().enumerate() {
        rates[index] += entry.open;
        for &(to, probability, _) in &entry.forwards {
            rates[to.index()] += entry.open * probability;
        }
    }
    rates
}
