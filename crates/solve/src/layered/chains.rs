//! The decomposition: clients, and the chains they run in.
//!
//! A task *queues* if requests can wait for its threads. Every other task is non-queueing: its callers do its work, so that infinite
//! threads, and threads that outnumber all possible requests, leave a flat network. A
//! *client* is a set of like customers: the customers of a reference task, the threads of a task that queues, or a Poisson
//! stream into a non-queueing entry. A client has a *chain* for what it does in sequence and one more for each branch of a
//! fork that it runs into; a chain is one of the queueing networks.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog_lqn::model::{EntryId, Multiplicity, ProcessorId, Scheduling, TaskId};

use crate::codes;
use crate::numeric::by_id::{ById, Id, ids};
use crate::prepare::plan::{MOST, ModelPlan};

ids! {
    /// A client of a [`Decomposition`].
    ClientId,
    /// A chain of a [`Decomposition`], in whatever layer.
    ChainId,
    /// A station of a [`Decomposition`]: the processors, then the tasks of the model.
    StationId,
}

/// No station: the item is a delay or nothing at all.
pub(crate) const NONE: u32 = u32::MAX;

/// More sources than this behind a task are not told apart.
const MOST_SOURCES: usize = 16;

/// The customers of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientKind {
    /// Customers of a reference task.
    Customers(TaskId),
    /// Threads of a task that queues.
    Threads(TaskId),
    /// Requests that arrive at a non-queueing entry without a caller that waits; or, with `later`, what such an entry does
    /// after its reply.
    Open { entry: EntryId, later: bool },
}

/// A set of like customers.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub kind: ClientKind,
    /// Customers; infinite for streams.
    pub population: f64,
    /// Its chains, the main one first.
    pub chains: ChainRange,
}

/// Chains in a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChainRange {
    /// The first.
    pub first: ChainId,
    /// How many.
    pub count: usize,
}

impl ChainRange {
    /// All of them.
    pub fn ids(self) -> impl DoubleEndedIterator<Item = ChainId> + Clone {
        (0..self.count).map(move |number| self.first.offset(number))
    }
}

/// One thing that an execution of an entry does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item {
    /// Executes a phase or activity.
    Step { work: usize, visits: f64, phase: usize, slot: u32 },
    /// Calls an entry that queues; part of the step before it.
    Call { mean: f64, slot: u32, to: EntryId, row: usize },
    /// Does what a non-queueing entry does; part of the step before it.
    Flattened { mean: f64, reach: u32, row: usize },
    /// Sends a request and goes on; part of the step before it.
    Send { mean: f64, to: EntryId, row: usize },
    /// Waits for branches.
    Fork { fork: usize, first_chain: ChainId },
}

/// An entry that a chain executes.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    pub entry: EntryId,
    /// Which strand of it.
    pub strand: usize,
    /// Range in [`Chain::items`].
    pub items: std::ops::Range<usize>,
}

/// A chain of the networks.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub client: ClientId,
    /// For a branch: the chain that waits for it and its position there.
    pub parent: Option<(ChainId, usize)>,
    /// For a branch: the first chain of its fork.
    pub fork: Option<ChainId>,
    /// For a branch: executions for each execution of the parent's entry.
    pub share: f64,
    /// Entries, in the order in which they were met.
    pub reach: Vec<Reach>,
    /// Positions in `reach`, callers first.
    pub order: Vec<u32>,
    pub items: Vec<Item>,
    /// Stations visited; slots are positions herein.
    pub stations: Vec<StationId>,
}

/// The whole decomposition.
#[derive(Debug)]
pub(crate) struct Decomposition {
    /// By task: whether requests can wait for its threads.
    pub queues: Vec<bool>,
    pub clients: ById<ClientId, Client>,
    pub chains: ById<ChainId, Chain>,
    /// By task that queues: its client.
    pub threads_of: ById<TaskId, Option<ClientId>>,
    /// By entry: the client of its stream and that of its later phases.
    pub open_classes: Vec<(Option<ClientId>, Option<ClientId>)>,
    /// Stations are processors, then tasks: number of processors.
    pub processors: usize,
}

impl Decomposition {
    /// Splits a plan.
    pub fn new(plan: &ModelPlan) -> Result<Self, Diagnostics> {
        let mut decomposition = Self {
            queues: queues(plan),
            clients: ById::default(),
            chains: ById::default(),
            threads_of: vec![None; plan.model.tasks.len()].into(),
            open_classes: vec![(None, None); plan.entries.len()],
            processors: plan.model.processors.len(),
        };
        let mut total = 0;
        for task in (0..plan.model.tasks.len()).map(TaskId::from) {
            if plan.is_source(task) {
                decomposition.add_client(plan, ClientKind::Customers(task), &mut total)?;
            }
        }
        let (waited, sent) = used(plan);
        let mut done = vec![false; plan.model.tasks.len()];
        for &entry in &plan.order {
            let task = plan.entries[entry.index()].task;
            if plan.is_source(task) {
                continue;
            }
            if decomposition.queues[task.index()] {
                if !std::mem::replace(&mut done[task.index()], true) {
                    decomposition.threads_of[task] = Some(decomposition.clients.next_id());
                    decomposition.add_client(plan, ClientKind::Threads(task), &mut total)?;
                }
                continue;
            }
            if sent[entry.index()] {
                decomposition.open_classes[entry.index()].0 = Some(decomposition.clients.next_id());
                decomposition.add_client(plan, ClientKind::Open { entry, later: false }, &mut total)?;
            }
            if waited[entry.index()] && plan.entries[entry.index()].later {
                decomposition.open_classes[entry.index()].1 = Some(decomposition.clients.next_id());
                decomposition.add_client(plan, ClientKind::Open { entry, later: true }, &mut total)?;
            }
        }
        Ok(decomposition)
    }

    /// The station of a task that queues.
    pub fn task_station(&self, task: TaskId) -> StationId {
        StationId::at(self.processors + task.index())
    }

    /// The processor that a station is; else the task.
    pub fn element(&self, station: StationId) -> Result<ProcessorId, TaskId> {
        match station.position().checked_sub(self.processors) {
            None => Ok(station.position().into()),
            Some(task) => Err(task.into()),
        }
    }

    /// An element for each station.
    pub fn by_station<T: Clone>(&self, element: T) -> ById<StationId, T> {
        vec![element; self.processors + self.threads_of.len()].into()
    }

    fn add_client(&mut self, plan: &ModelPlan, kind: ClientKind, total: &mut usize) -> Result<(), Diagnostics> {
        let client = self.clients.next_id();
        let first = self.chains.next_id();
        let (sources, population): (Vec<EntryId>, f64) = match kind {
            ClientKind::Customers(task) | ClientKind::Threads(task) => {
                (plan.model.tasks[task.index()].entries.clone(), plan.threads[task.index()])
            }
            ClientKind::Open { entry, .. } => (vec![entry], f64::INFINITY),
        };
        let starts = sources.iter().map(|entry| (plan.rank[entry.index()], 0)).collect();
        let mut pending = vec![(None, 1.0, starts)];
        let mut next = 0;
        while next < pending.len() {
            let (parent, share, starts) = pending[next].clone();
            next += 1;
            let chain = Chain {
                client,
                parent: parent.map(|(chain, position, _)| (chain, position)),
                fork: parent.map(|(_, _, first)| first),
                share,
                reach: Vec::new(),
                order: Vec::new(),
                items: Vec::new(),
                stations: Vec::new(),
            };
            let mut builder = Builder {
                plan,
                decomposition: self,
                kind,
                chain,
                slots: FxHashMap::default(),
                first,
                known: pending.len(),
            };
            let branches = builder.fill(&starts);
            *total += builder.chain.items.len() + builder.chain.reach.len();
            let chain = builder.chain;
            self.chains.push(chain);
            pending.extend(branches);
            if *total + pending.len() > MOST {
                return Err(Diagnostic::error(
                    codes::SIZE,
                    Place::Nowhere,
                    format!("the model unfolds into more than {MOST} steps"),
                )
                .into());
            }
        }
        let chains = ChainRange { first, count: self.chains.len() - first.position() };
        self.clients.push(Client { kind, population, chains });
        Ok(())
    }
}

type Starts = BTreeMap<usize, usize>;
/// A chain to build: for a branch the parent, the position there, and the first chain of the fork; its share; its entries.
type Pending = (Option<(ChainId, usize, ChainId)>, f64, Starts);

struct Builder<'a, 'b> {
    plan: &'a ModelPlan<'a>,
    decomposition: &'b Decomposition,
    kind: ClientKind,
    chain: Chain,
    slots: FxHashMap<StationId, u32>,
    /// The client's first chain.
    first: ChainId,
    /// Chains of the client that are built or wait to be.
    known: usize,
}

impl Builder<'_, '_> {
    /// Follows what the starting entries do through all non-queueing entries; the branches that begin new chains.
    fn fill(&mut self, starts: &Starts) -> Vec<Pending> {
        let own_chain = self.decomposition.chains.next_id();
        let mut numbers: BTreeMap<usize, u32> = BTreeMap::new();
        let mut met: Vec<(usize, usize)> = Vec::new();
        let mut open: BTreeSet<usize> = BTreeSet::new();
        let sources: Vec<usize> = starts.keys().copied().collect();
        for (&rank, &strand) in starts {
            numbers.insert(rank, met.len() as u32);
            met.push((rank, strand));
            open.insert(rank);
        }
        let branch = self.chain.parent.is_some();
        let mut filled: Vec<Option<Reach>> = Vec::new();
        let mut branches = Vec::new();
        while let Some(rank) = open.pop_first() {
            let number = numbers[&rank] as usize;
            self.chain.order.push(number as u32);
            let strand = met[number].1;
            let entry = self.plan.order[rank];
            let is_start = sources.binary_search(&rank).is_ok();
            let begin = self.chain.items.len();
            let planned = &self.plan.entries[entry.index()];
            let processor = self.plan.model.tasks[planned.task.index()].processor;
            for step in &planned.steps[strand] {
                if !self.takes(branch, is_start, step.phase) {
                    continue;
                }
                let work = &self.plan.works[step.work];
                if work.is_empty() {
                    // Still an execution: activities report how often they run.
                    self.chain.items.push(Item::Step {
                        work: step.work,
                        visits: step.visits,
                        phase: step.phase,
                        slot: NONE,
                    });
                    continue;
                }
                let delays = self.plan.model.processors[processor.index()].multiplicity.servers().is_infinite()
                    || self.plan.model.processors[processor.index()].scheduling == Scheduling::Delay;
                let slot = if delays || work.slice == 0.0 { NONE } else { self.slot(StationId::at(processor.index())) };
                self.chain.items.push(Item::Step { work: step.work, visits: step.visits, phase: step.phase, slot });
                for call in &work.calls {
                    let target = self.plan.entries[call.to.index()].task;
                    let item = if !call.synchronous {
                        Item::Send { mean: call.mean, to: call.to, row: call.row }
                    } else if self.decomposition.queues[target.index()] {
                        let slot = self.slot(self.decomposition.task_station(target));
                        Item::Call { mean: call.mean, slot, to: call.to, row: call.row }
                    } else {
                        let rank = self.plan.rank[call.to.index()];
                        let reach = *numbers.entry(rank).or_insert_with(|| {
                            met.push((rank, 0));
                            open.insert(rank);
                            met.len() as u32 - 1
                        });
                        Item::Flattened { mean: call.mean, reach, row: call.row }
                    };
                    self.chain.items.push(item);
                }
            }
            for &fork in &planned.invocation.strands[strand].forks {
                let parallel = &planned.invocation.forks[fork];
                if !self.takes(branch, is_start, parallel.phase) {
                    continue;
                }
                let first_chain = self.first.offset(self.known + branches.len());
                self.chain.items.push(Item::Fork { fork, first_chain });
                for &strand in &parallel.branches {
                    branches.push((
                        Some((own_chain, number, first_chain)),
                        parallel.visits,
                        Starts::from([(rank, strand)]),
                    ));
                }
            }
            if filled.len() < met.len() {
                filled.resize(met.len(), None);
            }
            filled[number] = Some(Reach { entry, strand, items: begin..self.chain.items.len() });
        }
        self.chain.reach = filled.into_iter().flatten().collect();
        branches
    }

    /// Whether the chain does what belongs to that phase.
    fn takes(&self, branch: bool, is_start: bool, phase: usize) -> bool {
        if branch && is_start {
            return true;
        }
        match self.kind {
            ClientKind::Customers(_) | ClientKind::Threads(_) => is_start || phase == 0,
            ClientKind::Open { later, .. } => {
                if is_start {
                    !later || phase > 0
                } else {
                    phase == 0
                }
            }
        }
    }

    fn slot(&mut self, station: StationId) -> u32 {
        let stations = &mut self.chain.stations;
        *self.slots.entry(station).or_insert_with(|| {
            stations.push(station);
            stations.len() as u32 - 1
        })
    }
}

/// Which entries are called by a caller that waits, and which get requests from outside or from a sender that does not.
fn used(plan: &ModelPlan) -> (Vec<bool>, Vec<bool>) {
    let mut waited = vec![false; plan.entries.len()];
    let mut sent = vec![false; plan.entries.len()];
    for call in plan.works.iter().flat_map(|work| &work.calls) {
        if call.synchronous {
            waited[call.to.index()] = true;
        } else {
            sent[call.to.index()] = true;
        }
    }
    for (index, entry) in plan.entries.iter().enumerate() {
        if entry.open > 0.0 {
            sent[index] = true;
            for forward in &entry.forwards {
                sent[forward.0.index()] = true;
            }
        }
    }
    (waited, sent)
}

/// By task: whether requests can wait for its threads.
fn queues(plan: &ModelPlan) -> Vec<bool> {
    let model = plan.model;
    let count = model.tasks.len();
    // The tasks that can have requests out at a task, and how many at a time.
    let mut callers: Vec<BTreeMap<usize, f64>> = vec![BTreeMap::new(); count];
    let mut unbounded = vec![false; count];
    let mut later = vec![false; count];
    let mut targets: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (index, entry) in plan.entries.iter().enumerate() {
        let task = entry.task.index();
        later[task] |= entry.later;
        if entry.open > 0.0 {
            unbounded[task] = true;
            for forward in &entry.forwards {
                unbounded[plan.entries[forward.0.index()].task.index()] = true;
            }
        }
        let width = plan.entries[index].invocation.width();
        for call in entry.steps.iter().flatten().flat_map(|step| &plan.works[step.work].calls) {
            let target = plan.entries[call.to.index()].task.index();
            if call.synchronous {
                let most = callers[target].entry(task).or_insert(0.0);
                *most = most.max(width);
                targets[task].push(target);
            } else {
                unbounded[target] = true;
            }
        }
    }
    for list in &mut targets {
        list.sort_unstable();
        list.dedup();
    }
    let mut waiting: Vec<usize> = callers.iter().map(BTreeMap::len).collect();
    let mut bound = vec![f64::INFINITY; count];
    let mut sources: Vec<Option<Vec<usize>>> = vec![None; count];
    let mut ready: Vec<usize> = (0..count).filter(|&task| waiting[task] == 0).collect();
    let mut next = 0;
    while next < ready.len() {
        let task = ready[next];
        next += 1;
        let mut requests: f64 = callers[task].iter().map(|(caller, width)| bound[*caller] * width).sum();
        if plan.is_source(TaskId::from(task)) {
            sources[task] = Some(vec![task]);
        } else if !unbounded[task] {
            sources[task] = common_sources(plan, &callers[task], &sources, &later);
            if let Some(sources) = &sources[task] {
                requests = requests.min(sources.iter().map(|source| plan.threads[*source]).sum());
            }
        }
        // What goes on after a reply can outnumber the callers that wait.
        bound[task] = if plan.is_source(TaskId::from(task)) || unbounded[task] || later[task] {
            plan.threads[task]
        } else {
            requests.min(plan.threads[task])
        };
        if !unbounded[task] && requests <= plan.threads[task] && !later[task] {
            // Marked as non-queueing by a bound that its threads cover; see below.
            waiting[task] = usize::MAX;
        }
        for &target in &targets[task] {
            waiting[target] -= 1;
            if waiting[target] == 0 {
                ready.push(target);
            }
        }
    }
    (0..count)
        .map(|task| {
            let source = plan.is_source(TaskId::from(task));
            let infinite = model.tasks[task].multiplicity == Multiplicity::Infinite
                || model.tasks[task].scheduling == Scheduling::Delay;
            !source && !infinite && waiting[task] != usize::MAX
        })
        .collect()
}

/// The reference tasks whose customers are behind all requests, where each customer can have one request out only.
fn common_sources(
    plan: &ModelPlan,
    callers: &BTreeMap<usize, f64>,
    sources: &[Option<Vec<usize>>],
    later: &[bool],
) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for (&caller, &width) in callers {
        let clean = width <= 1.0 && (plan.is_source(TaskId::from(caller)) || !later[caller]);
        let theirs = sources[caller].as_ref().filter(|_| clean)?;
        all.extend_from_slice(theirs);
        all.sort_unstable();
        all.dedup();
        if all.len() > MOST_SOURCES {
            return None;
        }
    }
    Some(all)
}
