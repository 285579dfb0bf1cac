//! From a program to its chain: all states that can be met, and the rates between them.

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashSet};

use super::program::{CtmcProgram, Order, ProgramStep};
use super::state::{Stacks, State};
use super::vanishing::{Pending, Vanishing, Way};
use crate::simulate::random::Random;

/// A chain, as far as it was explored.
#[derive(Debug)]
pub(super) struct StateSpace {
    /// States in the order in which they were met.
    pub keys: IndexMap<Box<[u32]>, (), FxBuildHasher>,
    /// Requests that nobody waits for, by state.
    pub levels: Vec<u32>,
    pub stacks: Stacks,
    /// From, to, rate.
    pub moves: Vec<(u32, u32, f64)>,
    /// State, event, times per second.
    pub events: Vec<(u32, u32, f64)>,
}

/// After so many states, a walk tells whether there are far too many.
const PROBE: usize = 500;
/// Steps of the walk that are not looked at, and those that are.
const BURN: usize = 300;
const WALK: usize = 2000;
/// When the walk is looked at: fewer repeats by then than this part of those that are to be expected are no chance any
/// more.
const LOOKS: [(usize, f64); 3] = [(600, 0.05), (1000, 0.25), (1400, 0.5)];

/// The walk is the same each time.
const WALK_SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// With more customers than this there are too many states, or ways to begin.
const MOST_CUSTOMERS: u32 = 20_000;

/// Explores all states, if there are at most so many.
pub(super) fn explore(program: &CtmcProgram, states: usize, truncation: u32) -> Option<StateSpace> {
    let mut space = StateSpace {
        keys: IndexMap::default(),
        levels: Vec::new(),
        stacks: Stacks::new(),
        moves: Vec::new(),
        events: Vec::new(),
    };
    let mut key = Vec::new();
    let mut state = State::new(program);
    let mut spare = Vec::new();
    let first = first(program, truncation, &mut space.stacks, &mut spare)?;
    space.keys.insert(first.0, ());
    space.levels.push(first.1);
    let mut number = 0;
    let mut ready = Vec::new();
    let mut is_probed = states <= 2 * PROBE;
    while number < space.keys.len() {
        if !is_probed && space.keys.len() > PROBE {
            is_probed = true;
            if has_more_than(program, states, truncation)? {
                return None;
            }
        }
        let (own, ()) = space.keys.get_index(number)?;
        state.read(program, &space.stacks, own);
        ready.clear();
        timed(program, &space.stacks, &state, &mut ready);
        if ready.is_empty() {
            return None;
        }
        for &active in &ready {
            if space.keys.len() > states || space.moves.len() > 16 * states || space.stacks.len() > 8 * states {
                return None;
            }
            let StateSpace { keys, levels, stacks, moves, events } = &mut space;
            let from = From { state: &state, active };
            transitions(program, stacks, &from, truncation, &mut spare, &mut |way, stacks, rate| {
                way.state.write(program, stacks, &mut key);
                let to = keys.get_index_of(key.as_slice()).unwrap_or_else(|| {
                    levels.push(way.state.unblocked);
                    keys.insert_full(key.as_slice().into(), ()).0
                });
                moves.push((number as u32, to as u32, rate));
                events.extend(way.events.iter().map(|event| (number as u32, *event, rate)));
            })?;
        }
        number += 1;
    }
    Some(space)
}

/// A state to begin with, written, and its level.
fn first(
    program: &CtmcProgram,
    truncation: u32,
    stacks: &mut Stacks,
    spare: &mut Vec<Way>,
) -> Option<(Box<[u32]>, u32)> {
    let customers: u32 = program.customers.iter().fold(0, |all, customers| all.saturating_add(*customers));
    if customers > MOST_CUSTOMERS {
        return None;
    }
    let mut first = Way { state: State::new(program), probability: 1.0, pending: Vec::new(), events: Vec::new() };
    // Any way will do to begin with, and one after the other keeps them few.
    for (task, begin) in program.cycle.iter().enumerate() {
        for _ in 0..program.customers[task] {
            first.pending.push(Pending::Run(stacks.push(0, *begin)));
            let mut begun = None;
            let vanishing = &mut Vanishing { program, stacks, truncation, spare };
            vanishing.resolve(first, &mut |way, _| {
                begun.get_or_insert_with(|| std::mem::take(&mut way.state));
            })?;
            first = Way { state: begun?, probability: 1.0, pending: Vec::new(), events: Vec::new() };
        }
    }
    let mut key = Vec::new();
    first.state.write(program, stacks, &mut key);
    Some((key.into(), first.state.unblocked))
}

/// Whether there are surely more states: those that a random walk comes by would be met again more often if there were
/// not. Of n samples from N states about n²/2N repeat another one, more if some states are likelier than others.
fn has_more_than(program: &CtmcProgram, states: usize, truncation: u32) -> Option<bool> {
    let mut stacks = Stacks::new();
    let mut spare = Vec::new();
    let (mut key, _) = first(program, truncation, &mut stacks, &mut spare)?;
    let mut state = State::new(program);
    let mut ready = Vec::new();
    let mut random = Random::new(WALK_SEED, 0);
    let mut seen: FxHashSet<Box<[u32]>> = FxHashSet::default();
    let (mut repeated, mut written) = (0.0, Vec::new());
    for step in 0..BURN + WALK {
        state.read(program, &stacks, &key);
        ready.clear();
        timed(program, &stacks, &state, &mut ready);
        let active = *ready.get(random.below(ready.len().max(1)))?;
        let mut whole = 0.0;
        let mut next: Option<Box<[u32]>> = None;
        transitions(
            program,
            &mut stacks,
            &From { state: &state, active },
            truncation,
            &mut spare,
            &mut |way, stacks, rate| {
                // Rare things lead to as many states as others do.
                whole += f64::from(u8::from(rate > 0.0));
                if random.uniform() * whole < 1.0 {
                    way.state.write(program, stacks, &mut written);
                    next = Some(written.as_slice().into());
                }
            },
        )?;
        key = next?;
        if step >= BURN && !seen.insert(key.clone()) {
            repeated += 1.0;
        }
        let samples = (step + 1).saturating_sub(BURN);
        if LOOKS.iter().any(|(look, part)| samples == *look && repeated < part * expected(samples, states)) {
            return Some(true);
        }
        if repeated >= expected(WALK, states) {
            return Some(false);
        }
    }
    Some(true)
}

/// About how many of so many samples repeat another one.
fn expected(samples: usize, states: usize) -> f64 {
    (samples * samples) as f64 / (2.0 * states as f64)
}

/// Something that takes time and will end.
#[derive(Clone, Copy, Debug)]
enum Active {
    /// The stage on top of a stack in a queue, with the rate of all like it.
    Stage { station: usize, place: usize, rate: f64 },
    /// An open source.
    Source(usize),
}

fn timed(program: &CtmcProgram, stacks: &Stacks, state: &State, ready: &mut Vec<Active>) {
    for (number, station) in program.stations.iter().enumerate() {
        let queue = &state.queues[number];
        let (serving, share) = serving(station.order, station.servers, queue.len());
        let mut place = 0;
        while place < serving {
            let alike = queue[place..serving].iter().take_while(|stack| **stack == queue[place]).count();
            if let ProgramStep::Stage { rate, .. } = program.steps[stacks.top(queue[place]) as usize] {
                ready.push(Active::Stage { station: number, place, rate: rate * share * alike as f64 });
            }
            place += alike;
        }
    }
    ready.extend((0..program.sources.len()).map(Active::Source));
}

/// How many at the head of a queue are served, and at which speed.
pub(super) fn serving(order: Order, servers: f64, waiting: usize) -> (usize, f64) {
    match order {
        Order::Delay => (waiting, 1.0),
        Order::Sharing => (waiting, (servers / waiting.max(1) as f64).min(1.0)),
        _ => (waiting.min(servers as usize), 1.0),
    }
}

/// What happens, and where.
struct From<'a> {
    state: &'a State,
    active: Active,
}

/// Shows all states in which things may be after that, with the rate of each.
fn transitions(
    program: &CtmcProgram,
    stacks: &mut Stacks,
    from: &From,
    truncation: u32,
    spare: &mut Vec<Way>,
    arrive: &mut dyn FnMut(&mut Way, &mut Stacks, f64),
) -> Option<()> {
    let mut way = spare.pop().unwrap_or_default();
    way.state.copy_from(from.state);
    way.probability = 1.0;
    way.pending.clear();
    way.events.clear();
    let mut vanishing = Vanishing { program, stacks, truncation, spare };
    match from.active {
        Active::Source(number) => {
            let source = program.sources[number];
            if let ProgramStep::Request { to, dropped, .. } = program.steps[source.request as usize] {
                way.events.push(source.arrival);
                vanishing.send(source.request, to, dropped, &mut way);
            }
            vanishing.resolve(way, &mut |way, stacks| arrive(way, stacks, source.rate * way.probability))
        }
        Active::Stage { station, place, rate } => {
            let stack = from.state.queues[station][place];
            let ProgramStep::Stage { more, again, next, .. } = program.steps[vanishing.stacks.top(stack) as usize]
            else {
                return None;
            };
            if again > 0.0 {
                let mut on = way.copy(vanishing.spare);
                on.state.queues[station][place] = vanishing.stacks.with_top(stack, more);
                arrive(&mut on, vanishing.stacks, rate * again);
                vanishing.spare.push(on);
            }
            if again >= 1.0 {
                return Some(());
            }
            way.probability = 1.0 - again;
            way.state.queues[station].remove(place);
            way.pending.push(Pending::Run(vanishing.stacks.with_top(stack, next)));
            let free = program.stations[station].servers as usize - 1;
            let waiting = way.state.queues[station].len().saturating_sub(free);
            if program.stations[station].order == Order::Random && waiting > 1 {
                // Requests that are alike stand side by side.
                let mut at = free;
                while let Some(next) = way.state.queues[station].get(at) {
                    let alike = way.state.queues[station][at..].iter().take_while(|other| *other == next).count();
                    let mut drawn = way.copy(vanishing.spare);
                    drawn.probability *= alike as f64 / waiting as f64;
                    drawn.state.queues[station].swap(free, at);
                    vanishing.resolve(drawn, &mut |way, stacks| arrive(way, stacks, rate * way.probability))?;
                    at += alike;
                }
                vanishing.spare.push(way);
                return Some(());
            }
            vanishing.resolve(way, &mut |way, stacks| arrive(way, stacks, rate * way.probability))
        }
    }
}
