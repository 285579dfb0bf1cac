//! How often things happen: visits, requests, cycles, and on behalf of which client.

use std::collections::BTreeMap;

use dyelog_lqn::model::EntryId;

use crate::layered::chains::{ChainId, ClientId, ClientKind, Item};
use crate::layered::submodels::{self, is_open, residence};
use crate::mva::Load;
use crate::numeric::by_id::ById;
use crate::prepare::plan::ModelPlan;

use crate::layered::outer::relative;
use crate::layered::state::Solver;

/// Groups of more customers than this are not followed through the layers: one of them hardly matters.
const MOST_CUSTOMERS: f64 = 100.0;
/// Where more clients than this stand behind a task, they are not told apart.
const MOST_SHARES: usize = 64;

/// Requests that one cycle of a client makes to an entry.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub chain: ChainId,
    pub to: EntryId,
    pub count: f64,
    pub waits: bool,
    /// Whether a source's customer is blocked as long as it is served.
    pub blocks: bool,
}

impl Solver<'_> {
    pub(crate) fn update_flows(&mut self, client: ClientId) {
        let decomposition = self.decomposition;
        let found = &decomposition.clients[client];
        let main = found.chains.first;
        let starts_of = self.starting_entries(client);
        for number in found.chains.ids() {
            let chain = &decomposition.chains[number];
            let mut flows = std::mem::take(&mut self.rates.flows[number]);
            flows.fill(0.0);
            if let Some((parent, position)) = chain.parent {
                flows[0] = self.rates.flows[parent][position] * chain.share;
            } else {
                for (position, flow) in flows.iter_mut().enumerate().take(starts_of) {
                    *flow = match found.kind {
                        ClientKind::Threads(task) => {
                            let total = self.task_rate(task.index());
                            let entry = decomposition.chains[main].reach[position].entry.index();
                            if total > 0.0 {
                                (self.rates.waited[entry] + self.rates.sent[entry]) / total
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
            self.rates.flows[number] = flows;
        }
        self.update_requests(client);
    }

    pub(crate) fn update_requests(&mut self, client: ClientId) {
        let decomposition = self.decomposition;
        let source = matches!(decomposition.clients[client].kind, ClientKind::Customers(_));
        let mut requests = std::mem::take(&mut self.rates.requests[client]);
        requests.clear();
        for number in decomposition.clients[client].chains.ids() {
            let chain = &decomposition.chains[number];
            for (position, reach) in chain.reach.iter().enumerate() {
                let flow = self.rates.flows[number][position];
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
        self.rates.requests[client] = requests;
    }

    /// Requests per second to each entry from the throughputs of all clients.
    pub(crate) fn collect_rates(&mut self) {
        self.rates.waited.fill(0.0);
        self.rates.sent = base_rates(self.plan);
        for client in self.decomposition.clients.ids() {
            self.count_requests(client, 1.0);
        }
    }

    /// Adds the client's requests to the rates, or takes them back out.
    pub(crate) fn count_requests(&mut self, client: ClientId, sign: f64) {
        let rate = sign * self.rates.throughputs[client];
        for request in &self.rates.requests[client] {
            let rates = if request.waits { &mut self.rates.waited } else { &mut self.rates.sent };
            let sum = &mut rates[request.to.index()];
            *sum = (*sum + rate * request.count).max(0.0);
        }
    }

    /// The clients on whose behalf each client is active.
    pub(crate) fn collect_shares(&mut self) {
        let decomposition = self.decomposition;
        let mut sums: ById<ClientId, BTreeMap<ChainId, f64>> = ById::like(&decomposition.clients, BTreeMap::new());
        for client in decomposition.clients.ids() {
            self.held.shares[client].clear();
            if let ClientKind::Threads(task) = decomposition.clients[client].kind {
                self.held.blocking[client] = self.first_phase_part(client);
                self.held.arriving[client] = self.awaited_part(client);
                let total = self.task_rate(task.index());
                if total > 0.0 && sums[client].len() <= MOST_SHARES {
                    self.held.shares[client].extend(sums[client].iter().map(|(behind, rate)| (*behind, rate / total)));
                }
            }
            for request in &self.rates.requests[client] {
                let target = self.plan.entries[request.to.index()].task;
                let Some(threads) = decomposition.threads_of[target].filter(|_| request.waits) else { continue };
                let rate = self.rates.throughputs[client] * request.count;
                // The caller is blocked in any phase, its own callers in the first only.
                if decomposition.clients[client].population <= MOST_CUSTOMERS {
                    *sums[threads].entry(request.chain).or_default() += rate;
                }
                for &(behind, share) in self.held.shares[client].iter().filter(|_| request.blocks) {
                    *sums[threads].entry(behind).or_default() += rate * share;
                }
            }
        }
    }

    /// The part of its busy time in which a client's thread works for a caller that waits.
    pub(crate) fn first_phase_part(&self, client: ClientId) -> f64 {
        let main = self.decomposition.clients[client].chains.first;
        let (mut first, mut all) = (0.0, 0.0);
        for (phases, flow) in
            self.times[main].entries[..self.starting_entries(client)].iter().zip(&self.rates.flows[main])
        {
            first += flow * phases[0].mean;
            all += flow * phases.iter().map(|time| time.mean).sum::<f64>();
        }
        if all > 0.0 { first / all } else { 1.0 }
    }

    /// The part of a client's own visits to stations at which a caller waits for it, or has just had the reply: a second
    /// phase begins as the first one ends.
    pub(crate) fn awaited_part(&self, client: ClientId) -> f64 {
        let main = self.decomposition.clients[client].chains.first;
        let chain = &self.decomposition.chains[main];
        let (mut awaited, mut all) = (0.0, 0.0);
        for (reach, flow) in chain.reach[..self.starting_entries(client)].iter().zip(&self.rates.flows[main]) {
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
            .map(|entry| self.rates.waited[entry.index()] + self.rates.sent[entry.index()])
            .sum()
    }

    pub(crate) fn open_rate(&self, client: ClientId) -> f64 {
        match self.decomposition.clients[client].kind {
            ClientKind::Open { entry, later: false } => self.rates.sent[entry.index()],
            ClientKind::Open { entry, later: true } => self.rates.waited[entry.index()],
            _ => 0.0,
        }
    }

    /// Time of a cycle without idle time.
    pub(crate) fn busy_time(&self, client: ClientId) -> f64 {
        let main = self.decomposition.clients[client].chains.first;
        let think = match self.decomposition.clients[client].kind {
            ClientKind::Customers(task) => self.plan.model.tasks[task.index()].think_time,
            _ => 0.0,
        };
        let executed: f64 = self.times[main].entries[..self.starting_entries(client)]
            .iter()
            .zip(&self.rates.flows[main])
            .map(|(phases, flow)| flow * phases.iter().map(|time| time.mean).sum::<f64>())
            .sum();
        think + executed
    }

    /// Time in which one of a population of threads of the client waits for requests, in a cycle.
    pub(crate) fn surrogate_delay(&self, client: ClientId, population: f64, busy: f64) -> f64 {
        match self.decomposition.clients[client].kind {
            ClientKind::Threads(task) => {
                let rate = self.task_rate(task.index());
                if rate > 1e-200 { (population / rate - busy).max(0.0) } else { 1e30 }
            }
            _ => 0.0,
        }
    }

    pub(crate) fn load(&self, chain: ChainId, sums: &[submodels::Sum]) -> Load {
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

    pub(crate) fn update_throughput(&mut self, client: ClientId) -> f64 {
        let busy = self.busy_time(client);
        let cycle = busy + self.surrogate_delay(client, self.decomposition.clients[client].population, busy);
        let new = match self.decomposition.clients[client].kind {
            ClientKind::Open { .. } => self.open_rate(client),
            _ if cycle > 0.0 => self.decomposition.clients[client].population / cycle,
            // A thread that takes no time handles whatever comes.
            ClientKind::Threads(task) => self.task_rate(task.index()),
            ClientKind::Customers(_) => 0.0,
        };
        let change = relative(self.rates.throughputs[client], new);
        self.rates.throughputs[client] = new;
        self.rates.cycles[client] = cycle;
        change
    }
}

/// Open arrivals at each entry, those that are forwarded to it included.
pub(crate) fn base_rates(plan: &ModelPlan) -> Vec<f64> {
    let mut rates = vec![0.0; plan.entries.len()];
    for (index, entry) in plan.entries.iter().enumerate() {
        rates[index] += entry.open;
        for &(to, probability, _) in &entry.forwards {
            rates[to.index()] += entry.open * probability;
        }
    }
    rates
}
