//! The state of the outer iteration, and the times that follow from it.

use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog_lqn::model::EntryId;

use crate::codes;
use crate::layered::chains::{ChainId, ClientId, ClientKind, Decomposition, Item};
use crate::layered::fork_join::{SharedFork, shared_forks};
use crate::layered::interlock::{Activity, Shares};
use crate::layered::messages::{Meeting, meetings};
use crate::layered::phase_times::{ChainTimes, Phases, Waits, client_times};
use crate::layered::submodels::{self, Layer};
use crate::layered::thread_pools::FlowEquivalentServer;
use crate::mva::{InnerStarts, Method, Stay};
use crate::numeric::by_id::ById;
use crate::prepare::plan::ModelPlan;

use crate::heuristics::{Heuristic, Heuristics};
use crate::layered::outer::relative;
use crate::layered::rates::{Request, base_rates};

/// The state of the outer iteration: what requests wait and take, how often they come, and what else follows from both.
pub(crate) struct Solver<'a> {
    pub plan: &'a ModelPlan<'a>,
    pub decomposition: &'a Decomposition,
    pub heuristics: Heuristics,
    pub layers: Vec<Layer>,
    pub waits: Waits,
    /// By chain.
    pub times: ById<ChainId, ChainTimes>,
    pub rates: Rates,
    /// By entry that queues: the stay of requests whose sender does not wait.
    pub open_stays: Vec<Stay>,
    /// By client: forks whose branches share servers.
    pub forks: ById<ClientId, Vec<SharedFork>>,
    /// Messages that begin at the processor of their senders.
    pub meetings: Vec<Meeting>,
    pub held: Held,
    /// By client: its threads as one flow-equivalent server, if there are several.
    pub flow_equivalents: ById<ClientId, Option<FlowEquivalentServer>>,
    /// Whether threads are taken as servers that go their own ways, as their pools did not come to agree.
    pub apart: bool,
    pub inner: Inner,
}

/// How often things happen.
pub(crate) struct Rates {
    /// By chain: executions of each entry in a cycle of the client.
    pub flows: ById<ChainId, Vec<f64>>,
    /// By client: cycles per second.
    pub throughputs: ById<ClientId, f64>,
    /// By client: mean time of a cycle, seconds, surrogate delay included.
    pub cycles: ById<ClientId, f64>,
    /// By client: requests in a cycle to entries.
    pub requests: ById<ClientId, Vec<Request>>,
    /// By entry: requests per second whose sender waits.
    pub waited: Vec<f64>,
    /// By entry: requests per second whose sender does not wait.
    pub sent: Vec<f64>,
}

/// Which clients are held by which others: what interlock follows from.
pub(crate) struct Held {
    /// By client.
    pub shares: ById<ClientId, Shares>,
    /// By client: the part of its activity in which another waits for it.
    pub blocking: ById<ClientId, f64>,
    /// By client: the part of its visits to stations at which another waits for it, or has just had the reply.
    pub arriving: ById<ClientId, f64>,
    /// By chain.
    pub activity: ById<ChainId, Activity>,
}

/// What the solutions of the layers' networks left.
pub(crate) struct Inner {
    /// By layer; none where nothing queues.
    pub methods: Vec<Option<Method>>,
    /// By layer: whether its network's solution has no error of its own.
    pub exact: Vec<bool>,
    /// By layer.
    pub starts: Vec<InnerStarts>,
    /// Stations that open load fills.
    pub saturated: Vec<String>,
    /// Networks whose own iteration did not converge.
    pub failures: usize,
}

impl<'a> Solver<'a> {
    pub fn new(
        plan: &'a ModelPlan<'a>,
        decomposition: &'a Decomposition,
        heuristics: Heuristics,
    ) -> Result<Self, Diagnostics> {
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
        let chains = || decomposition.chains.iter();
        let clients = &decomposition.clients;
        let mut solver = Self {
            plan,
            decomposition,
            heuristics,
            waits: Waits {
                stays: chains().map(|chain| vec![Stay::default(); chain.stations.len()]).collect(),
                service: vec![Phases::default(); entries],
                longer: chains().map(|chain| vec![0.0; chain.stations.len()]).collect(),
                found: chains().map(|chain| vec![1.0; chain.stations.len()]).collect(),
                met: chains().map(|chain| vec![0.0; chain.stations.len()]).collect(),
                together: ById::like(&decomposition.chains, None),
                thread_queueing: decomposition.by_station(0.0),
                there: decomposition.by_station(None),
            },
            times: ById::like(&decomposition.chains, ChainTimes::default()),
            rates: Rates {
                flows: chains().map(|chain| vec![0.0; chain.reach.len()]).collect(),
                throughputs: ById::like(clients, 0.0),
                cycles: ById::like(clients, 0.0),
                requests: ById::like(clients, Vec::new()),
                waited: vec![0.0; entries],
                sent: base,
            },
            open_stays: vec![Stay::default(); entries],
            forks: clients
                .ids()
                .map(|client| {
                    let followed = heuristics.has(Heuristic::ForkChains);
                    if followed { shared_forks(plan, decomposition, client) } else { Vec::new() }
                })
                .collect(),
            meetings: if heuristics.has(Heuristic::SenderMeetsMessage) {
                meetings(plan, decomposition)
            } else {
                Vec::new()
            },
            held: Held {
                shares: ById::like(clients, Shares::new()),
                blocking: ById::like(clients, 1.0),
                arriving: ById::like(clients, 1.0),
                activity: ById::like(&decomposition.chains, Activity::default()),
            },
            flow_equivalents: ById::like(clients, None),
            apart: !heuristics.has(Heuristic::ThreadPools),
            inner: Inner {
                methods: vec![None; layers.len()],
                exact: vec![true; layers.len()],
                starts: vec![InnerStarts::default(); layers.len()],
                saturated: Vec::new(),
                failures: 0,
            },
            layers,
        };
        solver.reset();
        for (client, found) in decomposition.clients.pairs() {
            if let ClientKind::Customers(task) = found.kind
                && solver.rates.cycles[client] <= 0.0
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
    pub(crate) fn reset(&mut self) {
        self.inner.starts.fill(InnerStarts::default());
        for stays in &mut self.waits.stays {
            stays.fill(Stay::default());
        }
        self.open_stays.fill(Stay::default());
        self.waits.met.iter_mut().for_each(|met| met.fill(0.0));
        // Callees are in later clients than their callers: going backwards, service times are there when needed.
        for client in self.decomposition.clients.ids().rev() {
            self.evaluate(client);
            self.publish(client);
        }
        self.rates.throughputs.fill(0.0);
        self.collect_rates();
        for client in self.decomposition.clients.ids() {
            self.update_flows(client);
            self.rates.cycles[client] = self.busy_time(client);
            self.rates.throughputs[client] = match self.decomposition.clients[client].kind {
                ClientKind::Open { .. } => self.open_rate(client),
                ClientKind::Customers(_) if self.rates.cycles[client] > 0.0 => {
                    self.decomposition.clients[client].population / self.rates.cycles[client]
                }
                ClientKind::Customers(_) => 0.0,
                ClientKind::Threads(task) => self.task_rate(task.index()),
            };
            self.count_requests(client, 1.0);
        }
    }

    /// Of chains with branches, and of these: for how long they are active in a cycle, and how much of it beside the other.
    pub(crate) fn measure_branches(&mut self, layer: &Layer) {
        for &number in &layer.chains {
            let chain = &self.decomposition.chains[number];
            if self.decomposition.clients[chain.client].chains.count < 2 {
                continue;
            }
            let (mut time, mut waits) = (0.0, 0.0);
            for (position, reach) in chain.reach.iter().enumerate() {
                let flow = self.rates.flows[number][position];
                let times = &self.times[number];
                if position < self.starts(number) {
                    time += flow * times.entries[position].iter().map(|time| time.mean).sum::<f64>();
                }
                for index in reach.items.clone() {
                    if let Item::Fork { fork, .. } = chain.items[index] {
                        let visits = self.plan.entries[reach.entry.index()].invocation.forks[fork].visits;
                        waits += flow * visits * times.items[index];
                    }
                }
            }
            let beside = chain.parent.map_or(0.0, |(parent, _)| {
                let known = self.times[parent].beside.iter().find(|known| known.0 == number);
                known.map_or(0.0, |known| self.rates.flows[number][0] * known.1)
            });
            self.held.activity[number] = Activity { time, alone: (time - waits).max(0.0), beside };
        }
    }

    /// Positions in a chain at which its executions begin.
    pub(crate) fn starts(&self, chain: ChainId) -> usize {
        let chain = &self.decomposition.chains[chain];
        if chain.parent.is_some() { 1 } else { self.starting_entries(chain.client) }
    }

    /// Times of what a client does; the largest relative change of what forks take whose branches share servers.
    pub(crate) fn evaluate(&mut self, client: ClientId) -> f64 {
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
    pub(crate) fn starting_entries(&self, client: ClientId) -> usize {
        match self.decomposition.clients[client].kind {
            ClientKind::Customers(task) | ClientKind::Threads(task) => {
                self.plan.model.tasks[task.index()].entries.len()
            }
            ClientKind::Open { .. } => 1,
        }
    }

    /// New service times of a task that queues; the largest relative change.
    pub(crate) fn publish(&mut self, client: ClientId) -> f64 {
        let ClientKind::Threads(_) = self.decomposition.clients[client].kind else { return 0.0 };
        let main = self.decomposition.clients[client].chains.first;
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
}
