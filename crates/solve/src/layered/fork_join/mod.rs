//! Branches of one fork at the servers that they share.
//!
//! Branches begin together and meet at their servers more often than chance would have it, and the longer one waits there
//! for another, the sooner that one is done. So where branches share servers, the fork is a small Markov process (compare
//! Heidelberger and Trivedi 1983): each branch is at one of its places until all have ended. Places are the shared
//! servers, of which branches that are there together get equal parts, as others do where the server is shared by all, and a
//! delay for all else, waits for customers of others included. The process gives the time until then, and how much longer
//! each visit takes because of the other branches. Its places have no memory. By what branches that are steadier end sooner together
//! where each has servers of its own, they do so here, too.
//!
//! `rounds` makes numbers of what a branch does, `places` the process of them.

mod crowding;
mod places;
mod rounds;

use std::slice;

pub(crate) use crowding::found_by_others;

use crate::layered::chains::{Chain, ChainId, ChainRange, ClientId, Decomposition, Item, StationId};
use crate::layered::fork_join::places::{Loop, Places, Process, speed};
use crate::layered::fork_join::rounds::Loops;
use crate::layered::phase_times::{ChainTimes, Waits};
use crate::layered::submodels::station;
use crate::mva::Discipline;
use crate::numeric::by_id::ById;
use crate::numeric::order_statistics::order_statistic;
use crate::prepare::plan::ModelPlan;

/// A fork with more states is left to the approximation by independent branches.
const MOST_STATES: usize = 3000;

/// The process of a fork has so many states at most while any branch could be described in fewer places (ours).
const FINE_STATES: usize = 600;

/// A fork whose branches share servers.
#[derive(Clone, Debug)]
pub(crate) struct SharedFork {
    /// First chain of its branches.
    pub first_chain: ChainId,
    /// How many branches are waited for.
    enough: usize,
    branches: Vec<Branch>,
    /// Servers of each shared station.
    servers: Vec<f64>,
    /// Where the iteration ended last, by state.
    kept: Vec<f64>,
    /// The same where no branch meets another.
    kept_apart: Vec<f64>,
}

/// What a branch does, as places with a way between them that has no memory.
#[derive(Clone, Debug)]
struct Branch {
    chain: ChainId,
    parts: Vec<BranchPart>,
}

/// A part of a branch: rounds of a delay and a slice of processor time, or of a delay and a visit.
#[derive(Clone, Debug)]
struct BranchPart {
    /// How often it is executed.
    visits: f64,
    does: Does,
    /// Slots at shared stations, with the number of the station among the shared ones.
    slots: Vec<(u32, usize)>,
}

/// What a part of a branch does.
#[derive(Clone, Copy, Debug)]
enum Does {
    /// A step, by its item, in an entry of any depth.
    Step(usize),
    /// Waits for branches, by the item of their fork.
    Fork(usize),
    /// What a step does at shared stations.
    Shared(usize),
    /// All that is not at shared stations.
    Rest,
    /// All that is at one of them.
    Station,
    /// All that the branch does, in rounds whose number is geometric.
    All,
}

/// What a branch does, and how many places that has.
struct Written {
    parts: Vec<BranchPart>,
    places: usize,
}

/// All forks of a client whose branches share servers, as far as they are small.
pub(crate) fn shared_forks(plan: &ModelPlan, decomposition: &Decomposition, client: ClientId) -> Vec<SharedFork> {
    let mut found = Vec::new();
    for number in decomposition.clients[client].chains.ids() {
        let chain = &decomposition.chains[number];
        for reach in &chain.reach {
            for item in &chain.items[reach.items.clone()] {
                if let Item::Fork { fork, first_chain } = *item {
                    let parallel = &plan.entries[reach.entry.index()].invocation.forks[fork];
                    let branches = parallel.branches.len();
                    // One that replies goes on beside others that began before.
                    if parallel.replying.is_some() {
                        continue;
                    }
                    let enough = parallel.quorum.unwrap_or(branches);
                    found.extend(
                        shared_fork(plan, decomposition, first_chain, branches)
                            .map(|fork| SharedFork { enough, ..fork }),
                    );
                }
            }
        }
    }
    found
}

fn shared_fork(
    plan: &ModelPlan,
    decomposition: &Decomposition,
    first_chain: ChainId,
    count: usize,
) -> Option<SharedFork> {
    // Each branch has two states at least.
    if 1_usize.checked_shl(count as u32).is_none_or(|least| least > MOST_STATES) {
        return None;
    }
    let range = ChainRange { first: first_chain, count }.ids();
    let visited = |station: StationId| {
        range.clone().filter(|chain| decomposition.chains[*chain].stations.contains(&station)).count()
    };
    let mut shared: Vec<StationId> =
        range.clone().flat_map(|chain| decomposition.chains[chain].stations.iter().copied()).collect();
    shared.sort_unstable();
    shared.dedup();
    shared.retain(|station| visited(*station) > 1);
    if shared.is_empty() {
        return None;
    }
    let of = |number: ChainId| ways(plan, decomposition, number, &shared);
    let mut told: Vec<Vec<Written>> = range.clone().map(of).collect();
    // While the process has too many states, the branch with most places is described in fewer.
    loop {
        let states = told.iter().map(|ways| ways[0].places + 1).fold(1, usize::saturating_mul);
        if states <= FINE_STATES {
            break;
        }
        match told.iter_mut().filter(|ways| ways.len() > 1).max_by_key(|ways| ways[0].places) {
            Some(ways) => drop(ways.remove(0)),
            None if states > MOST_STATES => return None,
            None => break,
        }
    }
    let branches =
        range.zip(told).map(|(chain, mut ways)| Branch { chain, parts: ways.swap_remove(0).parts }).collect();
    let servers = shared.iter().map(|number| station(plan, decomposition, *number).servers).collect();
    let (kept, kept_apart) = (Vec::new(), Vec::new());
    Some(SharedFork { first_chain, enough: count, branches, servers, kept, kept_apart })
}

/// Executions of each entry of a branch for each of its own.
fn flows(chain: &Chain) -> Vec<f64> {
    let mut flows = vec![0.0; chain.reach.len()];
    if let Some(first) = flows.first_mut() {
        *first = 1.0;
    }
    for &position in &chain.order {
        let mut executions = 0.0;
        for item in &chain.items[chain.reach[position as usize].items.clone()] {
            match *item {
                Item::Step { visits, .. } => executions = flows[position as usize] * visits,
                Item::Flattened { mean, reach, .. } => flows[reach as usize] += executions * mean,
                Item::Call { .. } | Item::Send { .. } | Item::Fork { .. } => {}
            }
        }
    }
    flows
}

/// What a branch does, the most exact way to tell it first.
fn ways(plan: &ModelPlan, decomposition: &Decomposition, number: ChainId, shared: &[StationId]) -> Vec<Written> {
    let chain = &decomposition.chains[number];
    let slot = |slot: u32| {
        let found = chain.stations.get(slot as usize)?;
        Some((slot, shared.binary_search(found).ok()?))
    };
    let is_sharing = |slot: u32| {
        let place = chain.stations.get(slot as usize);
        place.is_some_and(|place| station(plan, decomposition, *place).discipline == Discipline::Sharing)
    };
    let slots: Vec<(u32, usize)> = (0..chain.stations.len() as u32).filter_map(slot).collect();
    let rest = || std::iter::once(BranchPart { visits: 1.0, does: Does::Rest, slots: slots.clone() });
    let stations = slots.iter().map(|slot| BranchPart { visits: 1.0, does: Does::Station, slots: vec![*slot] });
    // Numbers of calls that are geometric vary more than steps that follow each other.
    let is_geometric = chain.reach.iter().any(|reach| {
        let items = &chain.items[reach.items.clone()];
        let works = items.iter().scan(None, |work, item| {
            if let Item::Step { work: own, .. } = *item {
                *work = Some(own);
            }
            Some(work.filter(|_| matches!(item, Item::Flattened { .. })))
        });
        works.flatten().any(|work| !plan.works[work].deterministic)
    });
    let places = 1 + slots.len();
    if is_geometric {
        return vec![Written { parts: vec![BranchPart { visits: 1.0, does: Does::All, slots }], places }];
    }
    let least = Written { parts: rest().chain(stations).collect(), places };
    let Some(steps) = steps(plan, chain, is_sharing, slot) else { return vec![least] };
    let shared = steps.parts.iter().filter_map(|part| match part.does {
        Does::Step(item) if !part.slots.is_empty() => Some(BranchPart { does: Does::Shared(item), ..part.clone() }),
        _ => None,
    });
    let parts: Vec<BranchPart> = rest().chain(shared).collect();
    let places = 1 + parts[1..].iter().map(|part| part.slots.len()).sum::<usize>();
    let mut ways = vec![steps, Written { parts, places }, least];
    ways.dedup_by(|next, before| next.places >= before.places);
    ways
}

/// What a branch does step by step, entries that it goes through included; `None` where it has too many steps.
fn steps(
    plan: &ModelPlan,
    chain: &Chain,
    is_sharing: impl Fn(u32) -> bool,
    slot: impl Fn(u32) -> Option<(u32, usize)>,
) -> Option<Written> {
    let mut parts: Vec<BranchPart> = Vec::new();
    let mut places = 0;
    // Entries with those of their items that are still to be done, so often; the next ones at the end.
    let mut open = vec![(0, chain.reach.first()?.items.clone(), 1.0)];
    while let Some((position, items, executions)) = open.pop() {
        let Some(first) = items.clone().next() else { continue };
        if parts.len() > MOST_STATES {
            return None;
        }
        let (work, visits, own) = match chain.items[first] {
            Item::Step { work, visits, slot, .. } => (work, visits, slot),
            Item::Fork { fork, .. } => {
                let visits = plan.entries[chain.reach[position].entry.index()].invocation.forks[fork].visits;
                places += 1;
                parts.push(BranchPart { visits: executions * visits, does: Does::Fork(first), slots: Vec::new() });
                open.push((position, first + 1..items.end, executions));
                continue;
            }
            Item::Call { .. } | Item::Flattened { .. } | Item::Send { .. } => return None,
        };
        let (work, visits) = (&plan.works[work], executions * visits);
        let follows = |place: &usize| matches!(chain.items[*place], Item::Step { .. } | Item::Fork { .. });
        let end = (first + 1..items.end).find(follows).unwrap_or(items.end);
        open.push((position, end..items.end, executions));
        let mut slots: Vec<(u32, usize)> = slot(own).into_iter().collect();
        places += slots.len();
        let mut has_delay = work.think > 0.0 || work.slice > 0.0 && !(slot(own).is_some() && is_sharing(own));
        let mut has_others = false;
        for item in chain.items[first + 1..end].iter().rev() {
            match *item {
                Item::Flattened { mean, reach, .. } => {
                    let position = reach as usize;
                    open.push((position, chain.reach[position].items.clone(), visits * mean));
                }
                Item::Call { slot: own, .. } => match slot(own) {
                    Some(found) => {
                        has_delay = true;
                        if !slots.contains(&found) {
                            places += 1;
                            slots.push(found);
                        }
                    }
                    // All that is not shared is one place.
                    None => has_others = true,
                },
                Item::Step { .. } | Item::Send { .. } | Item::Fork { .. } => {}
            }
        }
        places += usize::from(has_delay) + usize::from(has_others);
        parts.push(BranchPart { visits, does: Does::Step(first), slots });
    }
    Some(Written { parts, places })
}

/// What a fork takes.
pub(crate) struct Together {
    /// Mean time until enough branches have ended, and until all have.
    pub until: f64,
    pub all: f64,
    /// Chain, slot, and how much longer a visit takes because of other branches.
    pub longer: Vec<(ChainId, u32, f64)>,
}

impl SharedFork {
    /// How long it takes with what branches wait for others, and what they do.
    pub fn solve(
        &mut self,
        plan: &ModelPlan,
        decomposition: &Decomposition,
        waits: &Waits,
        times: &ById<ChainId, ChainTimes>,
    ) -> Together {
        let branches: Vec<Places> = self
            .branches
            .iter()
            .map(|branch| {
                let loops = Loops { plan, decomposition, waits, times, chain: branch.chain };
                let parts: Vec<Loop> = branch.parts.iter().map(|part| loops.of(part)).collect();
                Places::new(&parts, &self.servers, self.branches.len())
            })
            .collect();
        let process = Process::new(&branches, speed);
        process.times(&mut self.kept);
        let mut until = enough_have_ended(&process, &self.kept, self.enough, branches.len());
        let mut stays: Vec<Vec<f64>> = branches.iter().map(|branch| vec![0.0; branch.rate.len()]).collect();
        let mut served = stays.clone();
        let mut at = vec![0; branches.len()];
        for (state, time) in self.kept.iter().enumerate() {
            process.places(state, &mut at);
            for (number, place) in at.iter().enumerate() {
                stays[number][*place] += time;
                served[number][*place] += time * speed(&branches, &at, number);
            }
        }
        let mut longer: Vec<(ChainId, u32, f64)> = Vec::new();
        for ((branch, chain), (stays, served)) in branches.iter().zip(&self.branches).zip(stays.iter().zip(&served)) {
            let slots = decomposition.chains[chain.chain].stations.len() as u32;
            for slot in 0..slots {
                let places = (1..branch.rate.len()).filter(|place| branch.slot[*place] == slot);
                let (mut extra, mut visits) = (0.0, 0.0);
                for place in places {
                    extra += stays[place] - served[place];
                    visits += served[place] * branch.rate[place];
                }
                if visits > 0.0 {
                    // A place may stand for several visits of the slot, or for a part of one.
                    let made = visits_of(plan, decomposition, waits, chain.chain, slot).map_or(visits, |made| made.0);
                    longer.push((chain.chain, slot, (extra / made).max(0.0)));
                }
            }
        }
        let mut all: f64 = self.kept.iter().sum();
        let alone = self.alone(plan, decomposition, waits, times);
        let is_steadier = |(branch, (_, variance)): (&Places, &(f64, f64))| {
            *variance < STEADY * Process::new(slice::from_ref(branch), |_, _, _| 1.0).variance()
        };
        if branches.iter().zip(&alone).any(is_steadier) {
            let apart = Process::new(&branches, |_, _, _| 1.0);
            apart.times(&mut self.kept_apart);
            let count = alone.len();
            let sooner = |enough: usize| {
                enough_have_ended(&apart, &self.kept_apart, enough, count) - order_statistic(&alone, enough).0
            };
            let until_sooner = sooner(self.enough);
            let all_sooner = if self.enough == count { until_sooner } else { sooner(count) };
            until -= until_sooner.clamp(0.0, until);
            all -= all_sooner.clamp(0.0, all);
        }
        Together { until, all: all.max(until), longer }
    }

    /// Mean and variance of what each branch takes without other branches.
    fn alone(
        &self,
        plan: &ModelPlan,
        decomposition: &Decomposition,
        waits: &Waits,
        times: &ById<ChainId, ChainTimes>,
    ) -> Vec<(f64, f64)> {
        let of = |branch: &Branch| {
            let phases = &times[branch.chain].entries[0];
            let longer = waits.longer[branch.chain].iter().enumerate().filter(|(_, longer)| **longer > 0.0);
            let visits = |slot: usize| visits_of(plan, decomposition, waits, branch.chain, slot as u32);
            let extra: f64 = longer.map(|(slot, longer)| longer * visits(slot).map_or(0.0, |made| made.0)).sum();
            let mean: f64 = phases.iter().map(|time| time.mean).sum();
            ((mean - extra).max(0.0), phases.iter().map(|time| time.variance).sum())
        };
        self.branches.iter().map(of).collect()
    }
}

/// Branches whose variances are less than this part of those of their places are steadier than places without memory can be.
const STEADY: f64 = 0.9;

/// The mean time until so many of the branches have ended, by the time in each state.
fn enough_have_ended(process: &Process, times: &[f64], enough: usize, branches: usize) -> f64 {
    let mut at = vec![0; branches];
    let mut until = 0.0;
    for (state, time) in times.iter().enumerate() {
        process.places(state, &mut at);
        if at.iter().filter(|place| **place == 0).count() < enough {
            until += time;
        }
    }
    until
}

/// Visits of a slot in an execution of a branch, and the mean service of one; `None` where there are none.
fn visits_of(
    plan: &ModelPlan,
    decomposition: &Decomposition,
    waits: &Waits,
    chain: ChainId,
    slot: u32,
) -> Option<(f64, f64)> {
    let chain = &decomposition.chains[chain];
    let flows = flows(chain);
    let (mut visits, mut sum) = (0.0, 0.0);
    for &position in &chain.order {
        let mut executions = 0.0;
        for item in &chain.items[chain.reach[position as usize].items.clone()] {
            match *item {
                Item::Step { work, visits: count, slot: own, .. } => {
                    executions = flows[position as usize] * count;
                    if own == slot {
                        visits += executions * plan.works[work].slices;
                        sum += executions * plan.works[work].slices * plan.works[work].slice;
                    }
                }
                Item::Call { mean, slot: own, to, .. } if own == slot => {
                    visits += executions * mean;
                    sum += executions * mean * waits.service[to.index()][0].mean;
                }
                Item::Call { .. } | Item::Flattened { .. } | Item::Send { .. } | Item::Fork { .. } => {}
            }
        }
    }
    (visits > 0.0).then(|| (visits, sum / visits))
}
