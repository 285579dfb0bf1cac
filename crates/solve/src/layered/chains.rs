//! Who circulates in the network: groups of customers and the lanes they run in.
//!
//! A task *queues* if requests can wait for its threads. Every other task is transparent: what it does is done by whoever
//! calls it, so that infinite threads, and threads that outnumber all possible requests, leave a flat network. A
//! *group* is a set of like customers: the customers of a reference task, the threads of a task that queues, or a Poisson
//! stream into a transparent entry. A group has a *lane* for what it does in sequence and one more for each branch of a
//! fork that it runs into; a lane is a chain of the queueing networks.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog_lqn::model::{EntryId, Multiplicity, Scheduling, TaskId};

use crate::codes;
use crate::prepare::plan::{MOST, Plan, servers};

/// No station: the item is a delay or nothing at all.
pub(crate) const NONE: u32 = u32::MAX;

/// More sources than this behind a task are not told apart.
const MOST_ROOTS: usize = 16;

/// Who a group's customers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// Customers of a reference task.
    Customers(TaskId),
    /// Threads of a task that queues.
    Threads(TaskId),
    /// Requests that arrive at a transparent entry without a caller who waits; or, with `later`, what such an entry does
    /// after its reply.
    Stream { entry: EntryId, later: bool },
}

/// A set of like customers.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub root: Root,
    /// Customers; infinite for streams.
    pub population: f64,
    /// Its lanes, the main one first.
    pub lanes: std::ops::Range<usize>,
}

/// One thing that an execution of an entry does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item {
    /// Executes a phase or activity.
    Step { work: usize, visits: f64, phase: usize, slot: u32 },
    /// Calls an entry that queues; part of the step before it.
    Call { mean: f64, slot: u32, to: EntryId, row: usize },
    /// Does what a transparent entry does; part of the step before it.
    Inline { mean: f64, reach: u32, row: usize },
    /// Sends a request and goes on; part of the step before it.
    Send { mean: f64, to: EntryId, row: usize },
    /// Waits for branches.
    Fork { fork: usize, first_lane: usize },
}

/// An entry that a lane executes.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    pub entry: EntryId,
    /// Which strand of it.
    pub strand: usize,
    /// Range in [`Lane::items`].
    pub items: std::ops::Range<usize>,
}

/// A chain of the networks.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub group: usize,
    /// For a branch: the lane that waits for it and its position there.
    pub parent: Option<(usize, usize)>,
    /// For a branch: the first lane of its fork.
    pub fork: Option<usize>,
    /// For a branch: executions for each execution of the parent's entry.
    pub share: f64,
    /// Entries, in the order in which they were met.
    pub reach: Vec<Reach>,
    /// Positions in `reach`, callers first.
    pub order: Vec<u32>,
    pub items: Vec<Item>,
    /// Stations visited; slots are positions herein.
    pub stations: Vec<usize>,
}

/// The whole decomposition.
#[derive(Debug)]
pub(crate) struct Lanes {
    /// By task: whether requests can wait for its threads.
    pub queues: Vec<bool>,
    pub groups: Vec<Group>,
    #[expect(clippy::struct_field_names, reason = "the decomposition is named after its main part")]
    pub lanes: Vec<Lane>,
    /// By task that queues: its group.
    pub threads_of: Vec<Option<usize>>,
    /// By entry: the group of its stream and that of its later phases.
    pub streams: Vec<(Option<usize>, Option<usize>)>,
    /// Stations are processors, then tasks: number of processors.
    pub processors: usize,
}

impl Lanes {
    /// Splits a plan.
    pub fn new(plan: &Plan) -> Result<Self, Diagnostics> {
        let mut lanes = Self {
            queues: queues(plan),
            groups: Vec::new(),
            lanes: Vec::new(),
            threads_of: vec![None; plan.model.tasks.len()],
            streams: vec![(None, None); plan.entries.len()],
            processors: plan.model.processors.len(),
        };
        let mut total = 0;
        for task in (0..plan.model.tasks.len()).map(TaskId::from) {
            if plan.is_source(task) {
                lanes.add_group(plan, Root::Customers(task), &mut total)?;
            }
        }
        let (waited, sent) = used(plan);
        let mut done = vec![false; plan.model.tasks.len()];
        for &entry in &plan.order {
            let task = plan.entries[entry.index()].task;
            if plan.is_source(task) {
                continue;
            }
            if lanes.queues[task.index()] {
                if !std::mem::replace(&mut done[task.index()], true) {
                    lanes.threads_of[task.index()] = Some(lanes.groups.len());
                    lanes.add_group(plan, Root::Threads(task), &mut total)?;
                }
                continue;
            }
            if sent[entry.index()] {
                lanes.streams[entry.index()].0 = Some(lanes.groups.len());
                lanes.add_group(plan, Root::Stream { entry, later: false }, &mut total)?;
            }
            if waited[entry.index()] && plan.entries[entry.index()].later {
                lanes.streams[entry.index()].1 = Some(lanes.groups.len());
                lanes.add_group(plan, Root::Stream { entry, later: true }, &mut total)?;
            }
        }
        Ok(lanes)
    }

    /// The station of a task that queues.
    pub fn task_station(&self, task: TaskId) -> usize {
        self.processors + task.index()
    }

    fn add_group(&mut self, plan: &Plan, root: Root, total: &mut usize) -> Result<(), Diagnostics> {
        let group = self.groups.len();
        let first = self.lanes.len();
        let (roots, population): (Vec<EntryId>, f64) = match root {
            Root::Customers(task) | Root::Threads(task) => {
                (plan.model.tasks[task.index()].entries.clone(), plan.threads[task.index()])
            }
            Root::Stream { entry, .. } => (vec![entry], f64::INFINITY),
        };
        let starts = roots.iter().map(|entry| (plan.rank[entry.index()], 0)).collect();
        let mut pending = vec![(None, 1.0, starts)];
        let mut next = 0;
        while next < pending.len() {
            let (parent, share, starts) = pending[next].clone();
            next += 1;
            let lane = Lane {
                group,
                parent: parent.map(|(lane, position, _)| (lane, position)),
                fork: parent.map(|(_, _, first)| first),
                share,
                reach: Vec::new(),
                order: Vec::new(),
                items: Vec::new(),
                stations: Vec::new(),
            };
            let mut builder =
                Builder { plan, lanes: self, root, lane, slots: FxHashMap::default(), first, known: pending.len() };
            let branches = builder.fill(&starts);
            *total += builder.lane.items.len() + builder.lane.reach.len();
            let lane = builder.lane;
            self.lanes.push(lane);
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
        self.groups.push(Group { root, population, lanes: first..self.lanes.len() });
        Ok(())
    }
}

type Starts = BTreeMap<usize, usize>;
/// A lane to build: for a branch the parent, the position there, and the first lane of the fork; its share; its entries.
type Pending = (Option<(usize, usize, usize)>, f64, Starts);

struct Builder<'a, 'b> {
    plan: &'a Plan<'a>,
    lanes: &'b Lanes,
    root: Root,
    lane: Lane,
    slots: FxHashMap<usize, u32>,
    /// Number of the group's first lane.
    first: usize,
    /// Lanes of the group that are built or wait to be.
    known: usize,
}

impl Builder<'_, '_> {
    /// Follows what the starting entries do through all transparent entries; the branches that begin new lanes.
    fn fill(&mut self, starts: &Starts) -> Vec<Pending> {
        let own_lane = self.lanes.lanes.len();
        let mut numbers: BTreeMap<usize, u32> = BTreeMap::new();
        let mut met: Vec<(usize, usize)> = Vec::new();
        let mut open: BTreeSet<usize> = BTreeSet::new();
        let roots: Vec<usize> = starts.keys().copied().collect();
        for (&rank, &strand) in starts {
            numbers.insert(rank, met.len() as u32);
            met.push((rank, strand));
            open.insert(rank);
        }
        let branch = self.lane.parent.is_some();
        let mut filled: Vec<Option<Reach>> = Vec::new();
        let mut branches = Vec::new();
        while let Some(rank) = open.pop_first() {
            let number = numbers[&rank] as usize;
            self.lane.order.push(number as u32);
            let strand = met[number].1;
            let entry = self.plan.order[rank];
            let is_root = roots.binary_search(&rank).is_ok();
            let begin = self.lane.items.len();
            let planned = &self.plan.entries[entry.index()];
            let processor = self.plan.model.tasks[planned.task.index()].processor;
            for step in &planned.steps[strand] {
                if !self.takes(branch, is_root, step.phase) {
                    continue;
                }
                let work = &self.plan.works[step.work];
                if work.is_empty() {
                    // Still an execution: activities report how often they run.
                    self.lane.items.push(Item::Step {
                        work: step.work,
                        visits: step.visits,
                        phase: step.phase,
                        slot: NONE,
                    });
                    continue;
                }
                let delays = servers(self.plan.model.processors[processor.index()].multiplicity).is_infinite()
                    || self.plan.model.processors[processor.index()].scheduling == Scheduling::Delay;
                let slot = if delays || work.slice == 0.0 { NONE } else { self.slot(processor.index()) };
                self.lane.items.push(Item::Step { work: step.work, visits: step.visits, phase: step.phase, slot });
                for call in &work.calls {
                    let target = self.plan.entries[call.to.index()].task;
                    let item = if !call.synchronous {
                        Item::Send { mean: call.mean, to: call.to, row: call.row }
                    } else if self.lanes.queues[target.index()] {
                        let slot = self.slot(self.lanes.task_station(target));
                        Item::Call { mean: call.mean, slot, to: call.to, row: call.row }
                    } else {
                        let rank = self.plan.rank[call.to.index()];
                        let reach = *numbers.entry(rank).or_insert_with(|| {
                            met.push((rank, 0));
                            open.insert(rank);
                            met.len() as u32 - 1
                        });
                        Item::Inline { mean: call.mean, reach, row: call.row }
                    };
                    self.lane.items.push(item);
                }
            }
            for &fork in &planned.shape.strands[strand].forks {
                let parallel = &planned.shape.forks[fork];
                if !self.takes(branch, is_root, parallel.phase) {
                    continue;
                }
                let first_lane = self.first + self.known + branches.len();
                self.lane.items.push(Item::Fork { fork, first_lane });
                for &strand in &parallel.branches {
                    branches.push((
                        Some((own_lane, number, first_lane)),
                        parallel.visits,
                        Starts::from([(rank, strand)]),
                    ));
                }
            }
            if filled.len() < met.len() {
                filled.resize(met.len(), None);
            }
            filled[number] = Some(Reach { entry, strand, items: begin..self.lane.items.len() });
        }
        self.lane.reach = filled.into_iter().flatten().collect();
        branches
    }

    /// Whether the lane does what belongs to that phase.
    fn takes(&self, branch: bool, is_root: bool, phase: usize) -> bool {
        if branch && is_root {
            return true;
        }
        match self.root {
            Root::Customers(_) | Root::Threads(_) => is_root || phase == 0,
            Root::Stream { later, .. } => {
                if is_root {
                    !later || phase > 0
                } else {
                    phase == 0
                }
            }
        }
    }

    fn slot(&mut self, station: usize) -> u32 {
        let stations = &mut self.lane.stations;
        *self.slots.entry(station).or_insert_with(|| {
            stations.push(station);
            stations.len() as u32 - 1
        })
    }
}

/// Which entries are called by someone who waits, and which get requests from nowhere or from someone who does not.
fn used(plan: &Plan) -> (Vec<bool>, Vec<bool>) {
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
fn queues(plan: &Plan) -> Vec<bool> {
    let model = plan.model;
    let count = model.tasks.len();
    // Who can have requests out at a task: by calling task, with how many at a time.
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
        let width = plan.entries[index].shape.width();
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
    let mut roots: Vec<Option<Vec<usize>>> = vec![None; count];
    let mut ready: Vec<usize> = (0..count).filter(|&task| waiting[task] == 0).collect();
    let mut next = 0;
    while next < ready.len() {
        let task = ready[next];
        next += 1;
        let mut requests: f64 = callers[task].iter().map(|(caller, width)| bound[*caller] * width).sum();
        if plan.is_source(TaskId::from(task)) {
            roots[task] = Some(vec![task]);
        } else if !unbounded[task] {
            roots[task] = common_roots(plan, &callers[task], &roots, &later);
            if let Some(roots) = &roots[task] {
                requests = requests.min(roots.iter().map(|root| plan.threads[*root]).sum());
            }
        }
        // What goes on after a reply can outnumber those who wait.
        bound[task] = if plan.is_source(TaskId::from(task)) || unbounded[task] || later[task] {
            plan.threads[task]
        } else {
            requests.min(plan.threads[task])
        };
        if !unbounded[task] && requests <= plan.threads[task] && !later[task] {
            // Marked as transparent by a bound that its threads cover; see below.
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
fn common_roots(
    plan: &Plan,
    callers: &BTreeMap<usize, f64>,
    roots: &[Option<Vec<usize>>],
    later: &[bool],
) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for (&caller, &width) in callers {
        let clean = width <= 1.0 && (plan.is_source(TaskId::from(caller)) || !later[caller]);
        let theirs = roots[caller].as_ref().filter(|_| clean)?;
        all.extend_from_slice(theirs);
        all.sort_unstable();
        all.dedup();
        if all.len() > MOST_ROOTS {
            return None;
        }
    }
    Some(all)
}
