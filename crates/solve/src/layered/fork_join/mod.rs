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

/// A fork is told step by step in no more states than that.
const FINE_STATES: usize = 600;

/// Branches of forks in branches are followed that are executed so often for each execution of the outer fork (ours).
const OFTEN: f64 = 0.5;

/// A fork whose branches share servers.
#[derive(Clone, Debug)]
pub(crate) struct SharedFork {
    /// First chain of its branches.
    pub first_chain: ChainId,
    /// How many branches are waited for.
    enough: usize,
    /// How many branches there are. After these come those of forks in them, for which nobody waits here: they lengthen the others, and are lengthened.
    count: usize,
    branches: Vec<Branch>,
    /// By branch and slot: how much longer a visit takes as this fork tells.
    longer: Vec<Vec<f64>>,
    /// Servers of each shared station.
    servers: Vec<f64>,
    /// Where the iteration ended last, by state.
    kept: Vec<f64>,
    /// The same with a server for each branch.
    kept_apart: Vec<f64>,
}

/// What a branch does, as places with a way between them that has no memory.
#[derive(Clone, Debug)]
struct Branch {
    chain: ChainId,
    /// How often it is executed for each execution of the fork.
    executions: f64,
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
    let range = ChainRange { first: first_chain, count }.ids();
    let client = decomposition.chains[first_chain].client;
    let inner: Vec<(ChainId, ChainId, f64)> = inner_branches(decomposition, client, &range.clone().collect::<Vec<_>>());
    let below = |branch: ChainId| inner.iter().filter(move |(_, top, _)| *top == branch).map(|(chain, ..)| *chain);
    let visits = |chain: ChainId, station: StationId| decomposition.chains[chain].stations.contains(&station);
    let visited = |station: StationId| {
        range.clone().filter(|own| std::iter::once(*own).chain(below(*own)).any(|chain| visits(chain, station))).count()
    };
    let all = range.clone().chain(inner.iter().map(|(chain, ..)| *chain));
    let mut shared: Vec<StationId> =
        all.flat_map(|chain| decomposition.chains[chain].stations.iter().copied()).collect();
    shared.sort_unstable();
    shared.dedup();
    shared.retain(|station| visited(*station) > 1);
    if shared.is_empty() {
        return None;
    }
    let of = |number: ChainId| ways(plan, decomposition, number, &shared);
    let mut told: Vec<Vec<Written>> = range.clone().map(of).collect();
    // Of branches in branches, those that are executed most often matter most.
    let mut others: Vec<(ChainId, f64)> = inner.iter().map(|(chain, _, executions)| (*chain, *executions)).collect();
    others.retain(|(chain, executions)| *executions >= OFTEN && shared.iter().any(|station| visits(*chain, *station)));
    others.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    let mut further: Vec<Written> = others.iter().filter_map(|(chain, _)| of(*chain).pop()).collect();
    // The longest are told in fewer places, as long as all of them together have too many.
    loop {
        let own = told.iter().map(|ways| ways[0].places + 1);
        let states = own.chain(further.iter().map(|way| way.places + 2)).fold(1, usize::saturating_mul);
        if states <= FINE_STATES {
            break;
        }
        if let Some(ways) = told.iter_mut().filter(|ways| ways.len() > 1).max_by_key(|ways| ways[0].places) {
            ways.remove(0);
        } else if states > MOST_STATES {
            further.pop()?;
        } else {
            break;
        }
    }
    let told = range.zip(told).map(|(chain, mut ways)| (chain, 1.0, ways.swap_remove(0)));
    let further = others.iter().zip(further).map(|((chain, executions), way)| (*chain, *executions, way));
    let branches: Vec<Branch> =
        told.chain(further).map(|(chain, executions, way)| Branch { chain, executions, parts: way.parts }).collect();
    let servers = shared.iter().map(|number| station(plan, decomposition, *number).servers).collect();
    let longer = branches.iter().map(|own| vec![0.0; decomposition.chains[own.chain].stations.len()]).collect();
    let (kept, kept_apart) = (Vec::new(), Vec::new());
    Some(SharedFork { first_chain, enough: count, count, branches, longer, servers, kept, kept_apart })
}

/// Branches of forks in these branches, each with that one of them in which it is, and how often it is executed for each execution of that.
fn inner_branches(
    decomposition: &Decomposition,
    client: ClientId,
    branches: &[ChainId],
) -> Vec<(ChainId, ChainId, f64)> {
    let mut found: Vec<(ChainId, ChainId, f64)> = Vec::new();
    // Those in which others are come before them.
    for chain in decomposition.clients[client].chains.ids() {
        let own = &decomposition.chains[chain];
        let Some((parent, position)) = own.parent else { continue };
        let known = found.iter().find(|(chain, ..)| *chain == parent).map(|(_, top, executions)| (*top, *executions));
        let top = branches.iter().find(|branch| **branch == parent).map(|branch| (*branch, 1.0)).or(known);
        if let Some((top, executions)) = top {
            let entry = flows(&decomposition.chains[parent]).get(position).copied().unwrap_or(0.0);
            found.push((chain, top, executions * entry * own.share));
        }
    }
    found
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
    let least = Written { parts: rest().chain(stations).collect(), places: 1 + slots.len() };
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
            .zip(&self.longer)
            .enumerate()
            .map(|(number, (branch, longer))| {
                let loops = Loops { plan, decomposition, waits, times, chain: branch.chain, longer };
                let begin = (number >= self.count).then(|| Loop {
                    visits: 1.0,
                    rounds: 1.0,
                    delay: self.begin(decomposition, times, branch.chain),
                    own: None,
                    others: Vec::new(),
                });
                let parts = branch.parts.iter().map(|part| loops.of(part, branch.executions));
                Places::new(&begin.into_iter().chain(parts).collect::<Vec<_>>(), &self.servers, self.branches.len())
            })
            .collect();
        let process = Process::new(&branches, speed);
        process.times(&mut self.kept);
        let mut until = enough_have_ended(&process, &self.kept, self.enough, self.count, branches.len());
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
        for (number, ((branch, chain), (stays, served))) in
            branches.iter().zip(&self.branches).zip(stays.iter().zip(&served)).enumerate()
        {
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
                    let made = visits_of(plan, decomposition, waits, chain.chain, slot)
                        .map_or(visits, |made| made.0 * chain.executions);
                    let own = (extra / made).max(0.0);
                    self.longer[number][slot as usize] = own;
                    longer.push((chain.chain, slot, own));
                }
            }
        }
        let mut all = enough_have_ended(&process, &self.kept, self.count, self.count, branches.len());
        let alone = self.alone(plan, decomposition, waits, times);
        let is_steadier = |(branch, (_, variance)): (&Places, &(f64, f64))| {
            *variance < STEADY * Process::new(slice::from_ref(branch), |_, _, _| 1.0).variance()
        };
        if branches.iter().zip(&alone).any(is_steadier) {
            let apart = Process::new(&branches[..self.count], |_, _, _| 1.0);
            apart.times(&mut self.kept_apart);
            let count = alone.len();
            let sooner = |enough: usize| {
                enough_have_ended(&apart, &self.kept_apart, enough, count, count) - order_statistic(&alone, enough).0
            };
            let until_sooner = sooner(self.enough);
            let all_sooner = if self.enough == count { until_sooner } else { sooner(count) };
            until -= until_sooner.clamp(0.0, until);
            all -= all_sooner.clamp(0.0, all);
        }
        Together { until, all: all.max(until), longer }
    }

    /// The mean time from the fork until a branch in a branch begins: it is taken to be in the middle of what it is in.
    fn begin(&self, decomposition: &Decomposition, times: &ById<ChainId, ChainTimes>, mut chain: ChainId) -> f64 {
        let time = |chain: ChainId| {
            times[chain].entries.first().map_or(0.0, |phases| phases.iter().map(|time| time.mean).sum::<f64>())
        };
        let mut begin = 0.0;
        while let Some((parent, _)) = decomposition.chains[chain]
            .parent
            .filter(|_| !self.branches[..self.count].iter().any(|own| own.chain == chain))
        {
            begin += (time(parent) - time(chain)).max(0.0) / 2.0;
            chain = parent;
        }
        begin
    }

    /// Mean and variance of what each branch takes without other branches.
    fn alone(
        &self,
        plan: &ModelPlan,
        decomposition: &Decomposition,
        waits: &Waits,
        times: &ById<ChainId, ChainTimes>,
    ) -> Vec<(f64, f64)> {
        let of = |(branch, longer): (&Branch, &Vec<f64>)| {
            let phases = &times[branch.chain].entries[0];
            let longer = longer.iter().enumerate().filter(|(_, longer)| **longer > 0.0);
            let visits = |slot: usize| visits_of(plan, decomposition, waits, branch.chain, slot as u32);
            let extra: f64 = longer.map(|(slot, longer)| longer * visits(slot).map_or(0.0, |made| made.0)).sum();
            let mean: f64 = phases.iter().map(|time| time.mean).sum();
            ((mean - extra).max(0.0), phases.iter().map(|time| time.variance).sum())
        };
        self.branches[..self.count].iter().zip(&self.longer).map(of).collect()
    }
}

/// Branches whose variances are less than this part of those of their places are steadier than places without memory can be.
const STEADY: f64 = 0.9;

/// The mean time until so many of the first `count` of all branches have ended, by the time in each state.
fn enough_have_ended(process: &Process, times: &[f64], enough: usize, count: usize, branches: usize) -> f64 {
    let mut at = vec![0; branches];
    let mut until = 0.0;
    for (state, time) in times.iter().enumerate() {
        process.places(state, &mut at);
        if at[..count].iter().filter(|place| **place == 0).count() < enough {
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
