//! Branches of one fork at the servers that they share.
//!
//! Branches begin together and meet at their servers more often than chance would have it, and the longer one waits there
//! for another, the sooner that one is done. So where branches share servers, the fork is a small Markov process (compare
//! Heidelberger and Trivedi 1983): each branch is at one of its places until all have ended. Places are the shared
//! servers, of which branches that are there together get equal parts, as others do where the server is shared by all, and a
//! delay for all else, waits for customers of others included. The process gives the time until then, and how much longer
//! each visit takes because of the other branches. Its places have no memory. Branches that are alike are not told apart. By what branches that are steadier end sooner together
//! where each has servers of its own, they do so here, too.
//!
//! `rounds` makes numbers of what a branch does, `places` the process of them.

mod crowding;
mod places;
mod rounds;

pub(crate) use crowding::found_by_others;

use dyelog_lqn::model::EntryId;
use rustc_hash::FxHashMap;

use crate::layered::chains::{Chain, ChainId, ChainRange, ClientId, Decomposition, Item, StationId};
use crate::layered::fork_join::places::{Kind, Loop, Places, Process, speed, ways_to_be};
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
    /// Kinds of branches that are alike.
    kinds: Vec<Branches>,
    /// Servers of each shared station.
    servers: Vec<f64>,
    /// Where the iteration ended last, by state.
    kept: Vec<f64>,
    /// The same where no branch meets another.
    kept_apart: Vec<f64>,
}

/// Branches that are alike, and what each does, as places with a way between them that has no memory.
#[derive(Clone, Debug)]
struct Branches {
    chains: Vec<ChainId>,
    parts: Vec<BranchPart>,
}

impl Branches {
    /// The chain that stands for all.
    fn first(&self) -> ChainId {
        self.chains[0]
    }
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

impl Written {
    /// Only what is at shared stations, each as one place.
    fn at_stations(&self) -> Self {
        let mut slots: Vec<(u32, usize)> = self.parts.iter().flat_map(|part| part.slots.iter().copied()).collect();
        slots.sort_unstable();
        slots.dedup();
        let part = |slot: &(u32, usize)| BranchPart { visits: 1.0, does: Does::Station, slots: vec![*slot] };
        Self { parts: slots.iter().map(part).collect(), places: slots.len() }
    }
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
    let range = ChainRange { first: first_chain, count };
    let least = |kinds: &Vec<Vec<ChainId>>| kinds.iter().map(|own| own.len() + 1).fold(1, usize::saturating_mul);
    // Each branch is at work or has ended. Where these are too many states, branches are alike that differ in numbers alone.
    let kinds =
        [Numbers::Equal, Numbers::Alike, Numbers::Any].map(|numbers| alike(plan, decomposition, range, numbers));
    let kinds = kinds.into_iter().find(|kinds| least(kinds) <= MOST_STATES)?;
    let range = range.ids();
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
    let of = |kind: &Vec<ChainId>| ways(plan, decomposition, kind[0], &shared);
    let mut told: Vec<Vec<Written>> = kinds.iter().map(of).collect();
    // While the process has too many states, the branch with most places is described in fewer.
    loop {
        let of_kind = |(ways, kind): (&Vec<Written>, &Vec<ChainId>)| ways_to_be(kind.len(), ways[0].places + 1);
        let states = told.iter().zip(&kinds).map(of_kind).fold(1, usize::saturating_mul);
        if states <= FINE_STATES {
            break;
        }
        match told.iter_mut().filter(|ways| ways.len() > 1).max_by_key(|ways| ways[0].places) {
            Some(ways) => drop(ways.remove(0)),
            None if states > MOST_STATES => {
                // Delays of branches that are all alike come before what they do together.
                let [ways] = &mut told[..] else { return None };
                *ways = vec![ways[0].at_stations()];
                if ways_to_be(count, ways[0].places + 1) > MOST_STATES {
                    return None;
                }
                break;
            }
            None => break,
        }
    }
    let branches =
        |(chains, mut ways): (Vec<ChainId>, Vec<Written>)| Branches { chains, parts: ways.swap_remove(0).parts };
    let kinds = kinds.into_iter().zip(told).map(branches).collect();
    let servers = shared.iter().map(|number| station(plan, decomposition, *number).servers).collect();
    let (kept, kept_apart) = (Vec::new(), Vec::new());
    Some(SharedFork { first_chain, enough: count, kinds, servers, kept, kept_apart })
}

/// By how much numbers of branches that are alike may differ.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// Not at all.
    Equal,
    /// Those are zero that are zero of all.
    Alike,
    /// By any.
    Any,
}

impl Numbers {
    /// What of a number tells branches apart.
    fn of(self, number: f64) -> u64 {
        match self {
            Self::Equal => number.to_bits(),
            Self::Alike => u64::from(number > 0.0),
            Self::Any => 0,
        }
    }
}

/// Branches that are alike, put together.
fn alike(plan: &ModelPlan, decomposition: &Decomposition, range: ChainRange, numbers: Numbers) -> Vec<Vec<ChainId>> {
    let mut kinds: Vec<Vec<ChainId>> = Vec::new();
    let mut kind_of: FxHashMap<Nature, usize> = FxHashMap::default();
    for chain in range.ids() {
        let nature = Nature::of(plan, &decomposition.chains[chain], numbers);
        let new = kinds.len();
        let kind = nature.map_or(new, |own| *kind_of.entry(own).or_insert(new));
        match kinds.get_mut(kind) {
            Some(kind) => kind.push(chain),
            None => kinds.push(vec![chain]),
        }
    }
    kinds
}

/// What a branch is, as far as it tells it from others: numbers by their bits.
#[derive(PartialEq, Eq, Hash)]
struct Nature {
    stations: Vec<StationId>,
    /// By entry: which it is, and how many items it has. A branch begins in its own strand of the entry that forks.
    reach: Vec<(EntryId, usize)>,
    /// What follows what, and its numbers.
    items: Vec<Vec<u64>>,
}

impl Nature {
    /// `None` of one that waits for branches itself.
    fn of(plan: &ModelPlan, chain: &Chain, numbers: Numbers) -> Option<Self> {
        let bits = |number: f64| numbers.of(number);
        let item = |item: &Item| match *item {
            Item::Step { work, visits, phase, slot } => {
                let own = &plan.works[work];
                let times = [own.slice, own.cv2, own.slices, own.think, own.think_cv2, own.variance_of_calls, visits];
                let rest = [0, u64::from(numbers != Numbers::Any && own.deterministic), phase as u64, u64::from(slot)];
                Some(rest.into_iter().chain(times.map(bits)).collect())
            }
            Item::Call { mean, slot, to, .. } => Some(vec![1, bits(mean), u64::from(slot), to.index() as u64]),
            Item::Flattened { mean, reach, .. } => Some(vec![2, bits(mean), u64::from(reach)]),
            Item::Send { mean, to, .. } => Some(vec![3, bits(mean), to.index() as u64]),
            Item::Fork { .. } => None,
        };
        Some(Self {
            stations: chain.stations.clone(),
            reach: chain.reach.iter().map(|own| (own.entry, own.items.len())).collect(),
            items: chain.items.iter().map(item).collect::<Option<_>>()?,
        })
    }
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
        let kinds: Vec<Kind> = self
            .kinds
            .iter()
            .map(|branches| {
                let of = |chain: &ChainId| {
                    let loops = Loops { plan, decomposition, waits, times, chain: *chain };
                    branches.parts.iter().map(|part| loops.of(part)).collect::<Vec<Loop>>()
                };
                let parts = Loop::mean(&branches.chains.iter().map(of).collect::<Vec<_>>());
                Kind { places: Places::new(&parts, &self.servers, self.count()), count: branches.chains.len() }
            })
            .collect();
        let process = Process::new(&kinds, speed);
        process.times(&mut self.kept);
        let mut until = enough_have_ended(&process, &self.kept, self.enough);
        let mut stays: Vec<Vec<f64>> = kinds.iter().map(|kind| vec![0.0; kind.places.rate.len()]).collect();
        let mut served = stays.clone();
        let mut at = process.end();
        for (state, time) in self.kept.iter().enumerate() {
            process.at(state, &mut at);
            for (number, of_kind) in at.iter().enumerate() {
                for (place, &count) in of_kind.iter().enumerate().filter(|(place, count)| *place > 0 && **count > 0) {
                    let time = time * f64::from(count) / kinds[number].count as f64;
                    stays[number][place] += time;
                    served[number][place] += time * speed(&kinds, &at, number, place);
                }
            }
        }
        let mut longer: Vec<(ChainId, u32, f64)> = Vec::new();
        for ((kind, branches), (stays, served)) in kinds.iter().zip(&self.kinds).zip(stays.iter().zip(&served)) {
            let (places, chain) = (&kind.places, branches.first());
            let slots = decomposition.chains[chain].stations.len() as u32;
            for slot in 0..slots {
                let (mut extra, mut visits) = (0.0, 0.0);
                for place in (1..places.rate.len()).filter(|place| places.slot[*place] == slot) {
                    extra += stays[place] - served[place];
                    visits += served[place] * places.rate[place];
                }
                if visits > 0.0 {
                    // A place may stand for several visits of the slot, or for a part of one.
                    let of = |chain: &ChainId| visits_of(plan, decomposition, waits, *chain, slot).map(|made| made.0);
                    let made: f64 = branches.chains.iter().filter_map(of).sum::<f64>() / branches.chains.len() as f64;
                    let made = if made > 0.0 { made } else { visits };
                    longer.extend(branches.chains.iter().map(|chain| (*chain, slot, (extra / made).max(0.0))));
                }
            }
        }
        // What the places of no branch have comes before them.
        let before = self.kinds.iter().map(|own| before(own, plan, decomposition, waits, times)).fold(0.0, f64::max);
        until += before;
        let mut all: f64 = self.kept.iter().sum::<f64>() + before;
        let alone = self.alone(plan, decomposition, waits, times);
        let is_steadier = |(kind, own): (&Kind, &Vec<(f64, f64)>)| {
            let one = Kind { places: kind.places.clone(), count: 1 };
            let least = own.iter().map(|(_, variance)| *variance).fold(f64::INFINITY, f64::min);
            least < STEADY * Process::new(&[one], |_, _, _, _| 1.0).variance()
        };
        // Of branches whose delays are left out, the rest varies otherwise.
        if before == 0.0 && kinds.iter().zip(&alone).any(is_steadier) {
            let apart = Process::new(&kinds, |_, _, _, _| 1.0);
            apart.times(&mut self.kept_apart);
            let count = self.count();
            let each = alone.concat();
            let sooner =
                |enough: usize| enough_have_ended(&apart, &self.kept_apart, enough) - order_statistic(&each, enough).0;
            let until_sooner = sooner(self.enough);
            let all_sooner = if self.enough == count { until_sooner } else { sooner(count) };
            until -= until_sooner.clamp(0.0, until);
            all -= all_sooner.clamp(0.0, all);
        }
        Together { until, all: all.max(until), longer }
    }

    /// How many branches there are.
    fn count(&self) -> usize {
        self.kinds.iter().map(|branches| branches.chains.len()).sum()
    }

    /// By kind and branch: mean and variance of what it takes without other branches.
    fn alone(
        &self,
        plan: &ModelPlan,
        decomposition: &Decomposition,
        waits: &Waits,
        times: &ById<ChainId, ChainTimes>,
    ) -> Vec<Vec<(f64, f64)>> {
        let of = |chain: ChainId| {
            let phases = &times[chain].entries[0];
            let longer = waits.longer[chain].iter().enumerate().filter(|(_, longer)| **longer > 0.0);
            let visits = |slot: usize| visits_of(plan, decomposition, waits, chain, slot as u32);
            let extra: f64 = longer.map(|(slot, longer)| longer * visits(slot).map_or(0.0, |made| made.0)).sum();
            let mean: f64 = phases.iter().map(|time| time.mean).sum();
            ((mean - extra).max(0.0), phases.iter().map(|time| time.variance).sum())
        };
        self.kinds.iter().map(|own| own.chains.iter().map(|chain| of(*chain)).collect()).collect()
    }
}

/// Branches whose variances are less than this part of those of their places are steadier than places without memory can be.
const STEADY: f64 = 0.9;

/// The mean time of a branch that none of its places stands for.
fn before(
    branches: &Branches,
    plan: &ModelPlan,
    decomposition: &Decomposition,
    waits: &Waits,
    times: &ById<ChainId, ChainTimes>,
) -> f64 {
    if branches.parts.iter().any(|part| !matches!(part.does, Does::Station)) {
        return 0.0;
    }
    let slots = branches.parts.iter().flat_map(|part| part.slots.iter().copied()).collect();
    let rest = BranchPart { visits: 1.0, does: Does::Rest, slots };
    let of = |chain: &ChainId| Loops { plan, decomposition, waits, times, chain: *chain }.of(&rest).delay;
    branches.chains.iter().map(of).sum::<f64>() / branches.chains.len() as f64
}

/// The mean time until so many of the branches have ended, by the time in each state.
fn enough_have_ended(process: &Process, times: &[f64], enough: usize) -> f64 {
    let mut at = process.end();
    let mut until = 0.0;
    for (state, time) in times.iter().enumerate() {
        process.at(state, &mut at);
        if (at.iter().map(|own| own[0]).sum::<u32>() as usize) < enough {
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
