//! Branches of one fork at the servers that they share.
//!
//! Branches begin together and meet at their servers more often than chance would have it, and the longer one waits there
//! for another, the sooner that one is done. So where branches share servers, the fork is a small Markov process (compare
//! Heidelberger and Trivedi 1983): each branch is at one of its places until all have ended. Places are the shared
//! servers, of which branches that are there together get equal parts, as others do where the server is shared by all, and a delay for all else, waits for customers of
//! others included. The process gives the time until then, and how much longer each visit takes because
//! of the other branches.

use crate::layered::chains::{Decomposition, Item, NONE};
use crate::layered::phase_times::{ChainTimes, Waits};
use crate::layered::submodels::station;
use crate::mva::{Discipline, Stay};
use crate::prepare::plan::ModelPlan;

/// A fork with more states is left to the approximation by independent branches.
const MOST_STATES: usize = 3000;
/// Sweeps of the iteration for the time in each state, and by how much times may change in the last one.
const SWEEPS: usize = 2000;
const BOUND: f64 = 1e-10;

/// A fork whose branches share servers.
#[derive(Clone, Debug)]
pub(crate) struct SharedFork {
    /// First chain of its branches.
    pub first_chain: usize,
    /// How many branches are waited for.
    enough: usize,
    branches: Vec<Branch>,
    /// Servers of each shared station.
    servers: Vec<f64>,
    /// Where the iteration ended last, by state.
    kept: Vec<f64>,
}

/// What a branch does, as places with a way between them that has no memory.
#[derive(Clone, Debug)]
struct Branch {
    chain: usize,
    parts: Vec<BranchPart>,
}

/// A part of a branch: rounds of a delay and a slice of processor time, or of a delay and a visit.
#[derive(Clone, Debug)]
struct BranchPart {
    /// How often it is executed.
    visits: f64,
    /// The item of the step; none where the whole branch is one part.
    item: Option<usize>,
    /// Slots at shared stations, with the number of the station among the shared ones.
    slots: Vec<(u32, usize)>,
}

/// A part with numbers: rounds of a delay and a visit of the own place.
struct Loop {
    visits: f64,
    /// Mean rounds; the last one is left before any place but the own one is visited.
    rounds: f64,
    /// Mean delay in a round.
    delay: f64,
    /// Time alone at the place that is visited in each round, if there is one.
    own: Option<Place>,
    /// Places that are visited at the end of a round, so often in all.
    others: Vec<(Place, f64)>,
}

/// A shared station, or all that is not shared.
#[derive(Clone, Copy)]
struct Place {
    slot: u32,
    station: Option<usize>,
    /// Mean time of a visit without other branches.
    time: f64,
    /// Where all who are there have equal parts of the server: by how much others' customers lengthen a visit, relative to
    /// the time alone.
    others: f64,
}

impl Place {
    /// What is not shared.
    fn apart(time: f64) -> Self {
        Self { slot: NONE, station: None, time, others: 0.0 }
    }

    fn shared(
        plan: &ModelPlan,
        decomposition: &Decomposition,
        chain: usize,
        (slot, number): (u32, usize),
        service: f64,
        stay: Stay,
    ) -> Self {
        let sharing = station(plan, decomposition, decomposition.chains[chain].stations[slot as usize]).discipline
            == Discipline::Sharing;
        let others = if sharing { stay.slowdown } else { 0.0 };
        Self { slot, station: Some(number), time: service * (1.0 + stay.slowdown), others }
    }
}

/// All forks of a client whose branches share servers, as far as they are small.
pub(crate) fn shared_forks(plan: &ModelPlan, decomposition: &Decomposition, client: usize) -> Vec<SharedFork> {
    let mut found = Vec::new();
    for number in decomposition.clients[client].chains.clone() {
        let chain = &decomposition.chains[number];
        for reach in &chain.reach {
            for item in &chain.items[reach.items.clone()] {
                if let Item::Fork { fork, first_chain } = *item {
                    let parallel = &plan.entries[reach.entry.index()].shape.forks[fork];
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
    first_chain: usize,
    count: usize,
) -> Option<SharedFork> {
    let range = first_chain..first_chain + count;
    let visited =
        |station: usize| range.clone().filter(|chain| decomposition.chains[*chain].stations.contains(&station)).count();
    let mut shared: Vec<usize> =
        range.clone().flat_map(|chain| decomposition.chains[chain].stations.iter().copied()).collect();
    shared.sort_unstable();
    shared.dedup();
    shared.retain(|station| visited(*station) > 1);
    if shared.is_empty() {
        return None;
    }
    let mut states = 1;
    let mut branches = Vec::new();
    for number in range {
        let chain = &decomposition.chains[number];
        let slot = |slot: u32| {
            let found = chain.stations.get(slot as usize)?;
            Some((slot, shared.binary_search(found).ok()?))
        };
        let mut parts: Vec<BranchPart> = Vec::new();
        let (mut places, mut is_left_out) = (0, false);
        if chain.reach.len() > 1 || chain.items.iter().any(|item| matches!(item, Item::Fork { .. })) {
            let slots: Vec<(u32, usize)> = (0..chain.stations.len() as u32).filter_map(slot).collect();
            places += slots.len() + 1;
            parts.push(BranchPart { visits: 1.0, item: None, slots });
        } else {
            for (place, item) in chain.items.iter().enumerate() {
                match *item {
                    Item::Step { visits, slot: own, .. } => {
                        let slots: Vec<(u32, usize)> = slot(own).into_iter().collect();
                        places += 1 + slots.len();
                        is_left_out = false;
                        parts.push(BranchPart { visits, item: Some(place), slots });
                    }
                    Item::Call { slot: own, .. } => {
                        let Some(part) = parts.last_mut() else { continue };
                        match slot(own) {
                            Some(found) if !part.slots.contains(&found) => {
                                places += 1;
                                part.slots.push(found);
                            }
                            Some(_) => {}
                            // All that is not shared is one place.
                            None => places += usize::from(!std::mem::replace(&mut is_left_out, true)),
                        }
                    }
                    _ => {}
                }
            }
        }
        states *= places + 1;
        if states > MOST_STATES {
            return None;
        }
        branches.push(Branch { chain: number, parts });
    }
    let servers = shared.iter().map(|number| station(plan, decomposition, *number).servers).collect();
    Some(SharedFork { first_chain, enough: count, branches, servers, kept: Vec::new() })
}

/// Places of a branch, and the ways between them. Place 0 is the end.
struct Places {
    /// By place: rate alone; the shared station, if it is one; and its slot.
    rate: Vec<f64>,
    station: Vec<Option<usize>>,
    slot: Vec<u32>,
    /// As of [`Place`].
    others: Vec<f64>,
    /// By place: where to go on, with probabilities.
    next: Vec<Vec<(usize, f64)>>,
    start: Vec<(usize, f64)>,
}

impl Places {
    fn new(parts: &[Loop]) -> Self {
        let mut places = Self {
            rate: vec![0.0],
            station: vec![None],
            slot: vec![NONE],
            others: vec![0.0],
            next: vec![Vec::new()],
            start: vec![(0, 1.0)],
        };
        // Backwards, so that what comes after a part is known.
        for part in parts.iter().rev() {
            places.add(part);
        }
        places
    }

    fn push(&mut self, place: &Place) -> usize {
        self.rate.push(1.0 / place.time);
        self.station.push(place.station);
        self.slot.push(place.slot);
        self.others.push(place.others);
        self.next.push(Vec::new());
        self.rate.len() - 1
    }

    fn add(&mut self, part: &Loop) {
        let after = self.start.clone();
        let delay = (part.delay > 0.0).then(|| self.push(&Place::apart(part.delay)));
        let mut at = |place: &Place| (place.time > 0.0).then(|| self.push(place));
        let own = part.own.as_ref().and_then(&mut at);
        let others: Vec<(usize, f64)> =
            part.others.iter().filter_map(|(place, visits)| Some((at(place)?, visits / part.rounds))).collect();
        // The whole part again, or what comes after.
        let repeats = if part.visits > 1.0 { 1.0 - 1.0 / part.visits } else { 0.0 };
        let leaves = 1.0 / part.rounds;
        let begin = if let Some(first) = delay.or(own) {
            let mut choice = others.clone();
            choice.extend(scaled(&after, leaves * (1.0 - repeats)));
            let rest = 1.0 - choice.iter().map(|way| way.1).sum::<f64>();
            choice.push((first, rest.max(0.0)));
            if let Some(own) = own {
                self.next[own].clone_from(&choice);
            }
            if let Some(delay) = delay {
                self.next[delay] = own.map_or(choice, |own| vec![(own, 1.0)]);
            }
            vec![(first, 1.0)]
        } else {
            // Nothing happens between visits.
            let mut choice = others.clone();
            choice.extend(scaled(&after, leaves * (1.0 - repeats)));
            let total: f64 = choice.iter().map(|way| way.1).sum();
            scaled(&choice, 1.0 / total)
        };
        for (other, _) in others {
            self.next[other].clone_from(&begin);
        }
        let enters = part.visits.min(1.0);
        self.start = scaled(&begin, enters);
        self.start.extend(scaled(&after, 1.0 - enters));
    }
}

fn scaled(ways: &[(usize, f64)], by: f64) -> Vec<(usize, f64)> {
    ways.iter().map(|way| (way.0, way.1 * by)).collect()
}

/// What a fork takes.
pub(crate) struct Together {
    /// Mean time until enough branches have ended, and until all have.
    pub until: f64,
    pub all: f64,
    /// Chain, slot, and how much longer a visit takes because of other branches.
    pub longer: Vec<(usize, u32, f64)>,
}

impl SharedFork {
    /// How long it takes with what branches wait for others, and what they do.
    pub fn solve(
        &mut self,
        plan: &ModelPlan,
        decomposition: &Decomposition,
        waits: &Waits,
        times: &[ChainTimes],
    ) -> Together {
        let branches: Vec<Places> = self
            .branches
            .iter()
            .map(|branch| {
                let rounds = |part: &BranchPart| rounds(plan, decomposition, waits, times, branch.chain, part);
                Places::new(&branch.parts.iter().map(rounds).collect::<Vec<_>>())
            })
            .collect();
        let process = AbsorbingChain::new(&branches, &self.servers);
        if self.kept.len() != process.out.len() {
            self.kept.clone_from(&process.begin);
        }
        process.iterate(&mut self.kept);
        let mut until = 0.0;
        let mut stays: Vec<Vec<f64>> = branches.iter().map(|branch| vec![0.0; branch.rate.len()]).collect();
        let mut served = stays.clone();
        let mut at = vec![0; branches.len()];
        for (state, time) in self.kept.iter().enumerate() {
            process.places(state, &mut at);
            if at.iter().filter(|place| **place == 0).count() < self.enough {
                until += time;
            }
            for (number, place) in at.iter().enumerate() {
                stays[number][*place] += time;
                served[number][*place] += time * part(&branches, &at, number, &self.servers);
            }
        }
        let mut longer: Vec<(usize, u32, f64)> = Vec::new();
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
        Together { until, all: self.kept.iter().sum(), longer }
    }
}

/// Visits of a slot in an execution of a branch, and the mean service of one; `None` where there are none.
fn visits_of(
    plan: &ModelPlan,
    decomposition: &Decomposition,
    waits: &Waits,
    chain: usize,
    slot: u32,
) -> Option<(f64, f64)> {
    let chain = &decomposition.chains[chain];
    let mut flows = vec![0.0; chain.reach.len()];
    *flows.first_mut()? = 1.0;
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
                Item::Flattened { mean, reach, .. } => flows[reach as usize] += executions * mean,
                Item::Call { .. } | Item::Send { .. } | Item::Fork { .. } => {}
            }
        }
    }
    (visits > 0.0).then(|| (visits, sum / visits))
}

/// The numbers of a part.
fn rounds(
    plan: &ModelPlan,
    decomposition: &Decomposition,
    waits: &Waits,
    times: &[ChainTimes],
    number: usize,
    part: &BranchPart,
) -> Loop {
    let chain = &decomposition.chains[number];
    let stays = &waits.stays[number];
    let Some(item) = part.item else { return whole(plan, decomposition, waits, times, number, part) };
    let Item::Step { work, slot: own_slot, .. } = chain.items[item] else {
        return Loop { visits: 0.0, rounds: 1.0, delay: 0.0, own: None, others: Vec::new() };
    };
    let work = &plan.works[work];
    let shared = |slot: u32| part.slots.iter().find(|known| known.0 == slot).map(|known| known.1);
    let stay = |slot: u32| if slot == NONE { Stay::default() } else { stays[slot as usize] };
    let mut delay = work.think + work.slices * stay(own_slot).wait;
    let slice = work.slice * (1.0 + stay(own_slot).slowdown);
    let at = |station: usize, slot: u32, service: f64| {
        Place::shared(plan, decomposition, number, (slot, station), service, stay(slot))
    };
    let own = shared(own_slot).map(|station| at(station, own_slot, work.slice));
    if own.is_none() {
        delay += work.slices * slice;
    }
    let mut others: Vec<(Place, f64)> = Vec::new();
    for item in &chain.items[item + 1..] {
        match *item {
            Item::Call { mean, slot, to, .. } => {
                let service = waits.service[to.index()][0].mean;
                match shared(slot) {
                    Some(station) => {
                        delay += mean * stay(slot).wait;
                        add(&mut others, at(station, slot, service), mean);
                    }
                    None => {
                        let time = stay(slot).wait + service * (1.0 + stay(slot).slowdown);
                        add(&mut others, Place::apart(time), mean);
                    }
                }
            }
            Item::Send { .. } => {}
            _ => break,
        }
    }
    Loop { visits: part.visits, rounds: work.slices, delay: delay / work.slices, own, others }
}

/// Adds visits of a place, to those of the same one if there are any.
fn add(others: &mut Vec<(Place, f64)>, place: Place, mean: f64) {
    if mean <= 0.0 {
        return;
    }
    match others.iter_mut().find(|known| known.0.slot == place.slot) {
        Some((known, visits)) => {
            known.time = (known.time * *visits + place.time * mean) / (*visits + mean);
            *visits += mean;
        }
        None => others.push((place, mean)),
    }
}

/// The numbers of a branch that is one part.
fn whole(
    plan: &ModelPlan,
    decomposition: &Decomposition,
    waits: &Waits,
    times: &[ChainTimes],
    number: usize,
    part: &BranchPart,
) -> Loop {
    let total: f64 = times[number].entries.first().map_or(0.0, |phases| phases.iter().map(|time| time.mean).sum());
    let mut delay = total;
    let mut rounds = 1.0;
    let mut others = Vec::new();
    for &(slot, station) in &part.slots {
        let Some((visits, service)) = visits_of(plan, decomposition, waits, number, slot) else { continue };
        let place =
            Place::shared(plan, decomposition, number, (slot, station), service, waits.stays[number][slot as usize]);
        delay -= visits * (place.time + waits.longer[number][slot as usize]);
        rounds += visits;
        others.push((place, visits));
    }
    let delay = if delay > 1e-9 * total { delay / rounds } else { 0.0 };
    Loop { visits: 1.0, rounds, delay, own: None, others }
}

/// The part of its speed without other branches at which a branch goes on where it is.
fn part(branches: &[Places], at: &[usize], number: usize, servers: &[f64]) -> f64 {
    let (branch, place) = (&branches[number], at[number]);
    let Some(station) = branch.station[place] else { return 1.0 };
    let there = branches.iter().zip(at).filter(|(branch, place)| branch.station[**place] == Some(station)).count();
    let others = branch.others[place];
    (1.0 + others) / ((there as f64 / servers[station]).max(1.0) + others)
}

/// All combinations of places, and the ways into each.
struct AbsorbingChain {
    sizes: Vec<usize>,
    begin: Vec<f64>,
    /// Rate out of each state.
    out: Vec<f64>,
    first: Vec<u32>,
    from: Vec<u32>,
    rate: Vec<f64>,
}

impl AbsorbingChain {
    fn new(branches: &[Places], servers: &[f64]) -> Self {
        let sizes: Vec<usize> = branches.iter().map(|branch| branch.rate.len()).collect();
        let states: usize = sizes.iter().product();
        let mut process = Self {
            sizes,
            begin: vec![0.0; states],
            out: vec![0.0; states],
            first: vec![0; states + 1],
            from: Vec::new(),
            rate: Vec::new(),
        };
        let mut moves = Vec::new();
        let mut at = vec![0; branches.len()];
        for state in 0..states {
            process.places(state, &mut at);
            let mut stride = 1;
            let mut begin = 1.0;
            for (number, branch) in branches.iter().enumerate() {
                let place = at[number];
                begin *= branch.start.iter().filter(|way| way.0 == place).map(|way| way.1).sum::<f64>();
                let rate = branch.rate[place] * part(branches, &at, number, servers);
                for &(next, probability) in &branch.next[place] {
                    if next != place && probability > 0.0 {
                        let to = state - place * stride + next * stride;
                        moves.push((state as u32, to as u32, rate * probability));
                        process.out[state] += rate * probability;
                    }
                }
                stride *= process.sizes[number];
            }
            process.begin[state] = begin;
        }
        for &(_, to, _) in &moves {
            process.first[to as usize + 1] += 1;
        }
        for state in 0..states {
            process.first[state + 1] += process.first[state];
        }
        let mut next = process.first.clone();
        process.from = vec![0; moves.len()];
        process.rate = vec![0.0; moves.len()];
        for (from, to, rate) in moves {
            let place = &mut next[to as usize];
            process.from[*place as usize] = from;
            process.rate[*place as usize] = rate;
            *place += 1;
        }
        process
    }

    /// Where each branch is.
    fn places(&self, state: usize, at: &mut [usize]) {
        let mut rest = state;
        for (place, size) in at.iter_mut().zip(&self.sizes) {
            *place = rest % size;
            rest /= size;
        }
    }

    /// Mean time in each state, from what is known of it.
    fn iterate(&self, times: &mut [f64]) {
        let states = self.out.len();
        let relax = |state: usize, times: &mut [f64]| {
            if self.out[state] <= 0.0 {
                times[state] = 0.0;
                return 0.0;
            }
            let range = self.first[state] as usize..self.first[state + 1] as usize;
            let ways = self.from[range.clone()].iter().zip(&self.rate[range]);
            let flow: f64 = self.begin[state] + ways.map(|(from, rate)| times[*from as usize] * rate).sum::<f64>();
            let new = flow / self.out[state];
            let change = (new - times[state]).abs();
            times[state] = new;
            change
        };
        for _ in 0..SWEEPS {
            let mut change = 0.0;
            // Everything leads to state 0, in which all have ended.
            for state in (0..states).rev() {
                change += relax(state, times);
            }
            for state in 0..states {
                change += relax(state, times);
            }
            if change <= BOUND * times.iter().sum::<f64>() {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(slot: u32, visits: f64, time: f64) -> Loop {
        Loop {
            visits: 1.0,
            rounds: visits,
            delay: 0.0,
            own: Some(Place { slot, station: Some(0), time, others: 0.0 }),
            others: Vec::new(),
        }
    }

    fn until(branches: &[Vec<Loop>], servers: f64) -> f64 {
        let places: Vec<Places> = branches.iter().map(|parts| Places::new(parts)).collect();
        let process = AbsorbingChain::new(&places, &[servers]);
        let mut times = process.begin.clone();
        process.iterate(&mut times);
        times.iter().sum()
    }

    #[test]
    fn one_server_does_all_the_work() {
        let branches = [vec![alone(0, 1.0, 0.4)], vec![alone(0, 1.0, 0.6)], vec![alone(0, 3.0, 0.1)]];
        assert!((until(&branches, 1.0) - 1.3).abs() < 1e-8);
    }

    #[test]
    fn branches_have_equal_parts_with_others_customers() {
        // Beside three others: the server does 1/4 of the work at full speed when alone, 2/5 of it for two.
        let branch = |time: f64| {
            let own = Place { slot: 0, station: Some(0), time: 4.0 * time, others: 3.0 };
            vec![Loop { own: Some(own), ..alone(0, 1.0, time) }]
        };
        assert!((until(&[branch(1.0), branch(1.0)], 1.0) - (2.5 + 4.0)).abs() < 1e-8);
    }

    #[test]
    fn servers_enough_leave_the_longest_of_exponentials() {
        let branches = [vec![alone(0, 1.0, 1.0)], vec![alone(0, 1.0, 0.5)]];
        // 1 + 1/2 − 1/(1 + 2).
        assert!((until(&branches, 2.0) - (1.5 - 1.0 / 3.0)).abs() < 1e-8);
    }

    #[test]
    fn parts_that_may_be_left_out_or_repeated_take_their_mean() {
        let part = |visits: f64| Loop { visits, ..alone(0, 2.0, 1.0) };
        assert!((until(&[vec![part(0.5), part(3.0)]], 1.0) - 7.0).abs() < 1e-7);
        let place = |slot: u32| Place { slot, station: Some(0), time: 0.5, others: 0.0 };
        let mixed = Loop { visits: 2.0, rounds: 3.0, delay: 0.25, own: Some(place(0)), others: vec![(place(1), 1.5)] };
        assert!((until(&[vec![mixed]], 1.0) - 2.0 * (3.0 * 0.75 + 1.5 * 0.5)).abs() < 1e-7);
        let calls = Loop { visits: 1.5, rounds: 3.0, delay: 0.0, own: None, others: vec![(place(1), 2.0)] };
        assert!((until(&[vec![calls]], 1.0) - 1.5).abs() < 1e-7);
    }
}
