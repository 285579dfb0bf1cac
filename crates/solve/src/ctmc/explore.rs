//! From a program to its chain: all states that can be met, and the rates between them.

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashSet};

use super::program::{Op, Order, Program};
use super::state::{Stacks, State};
use super::vanishing::{Firing, Todo, Way};

/// A chain, as far as it was explored.
#[derive(Debug)]
pub(super) struct Chain {
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

/// With more customers than this there are too many states, or ways to begin.
const MOST_CUSTOMERS: u32 = 20_000;

/// Explores all states, if there are at most so many.
pub(super) fn explore(program: &Program, states: usize, room: u32) -> Option<Chain> {
    let mut chain = Chain {
        keys: IndexMap::default(),
        levels: Vec::new(),
        stacks: Stacks::new(),
        moves: Vec::new(),
        events: Vec::new(),
    };
    let mut key = Vec::new();
    let mut state = State::new(program);
    let mut spare = Vec::new();
    let first = first(program, room, &mut chain.stacks, &mut spare)?;
    chain.keys.insert(first.0, ());
    chain.levels.push(first.1);
    let mut number = 0;
    let mut ready = Vec::new();
    let mut is_probed = states <= 2 * PROBE;
    while number < chain.keys.len() {
        if !is_probed && chain.keys.len() > PROBE {
            is_probed = true;
            if has_more_than(program, states, room)? {
                return None;
            }
        }
        let (own, ()) = chain.keys.get_index(number)?;
        state.read(program, &chain.stacks, own);
        ready.clear();
        timed(program, &chain.stacks, &state, &mut ready);
        if ready.is_empty() {
            return None;
        }
        for &active in &ready {
            if chain.keys.len() > states || chain.moves.len() > 16 * states || chain.stacks.len() > 8 * states {
                return None;
            }
            let Chain { keys, levels, stacks, moves, events } = &mut chain;
            let from = From { state: &state, active };
            fire(program, stacks, &from, room, &mut spare, &mut |way, stacks, rate| {
                way.state.write(program, stacks, &mut key);
                let to = keys.get_index_of(key.as_slice()).unwrap_or_else(|| {
                    levels.push(way.state.detached);
                    keys.insert_full(key.as_slice().into(), ()).0
                });
                moves.push((number as u32, to as u32, rate));
                events.extend(way.events.iter().map(|event| (number as u32, *event, rate)));
            })?;
        }
        number += 1;
    }
    Some(chain)
}

/// A state to begin with, written, and its level.
fn first(program: &Program, room: u32, stacks: &mut Stacks, spare: &mut Vec<Way>) -> Option<(Box<[u32]>, u32)> {
    let customers: u32 = program.customers.iter().fold(0, |all, customers| all.saturating_add(*customers));
    if customers > MOST_CUSTOMERS {
        return None;
    }
    let mut first = Way { state: State::new(program), probability: 1.0, todo: Vec::new(), events: Vec::new() };
    // Any way will do to begin with, and one after the other keeps them few.
    for (task, begin) in program.cycle.iter().enumerate() {
        for _ in 0..program.customers[task] {
            first.todo.push(Todo::Run(stacks.push(0, *begin)));
            let mut begun = None;
            let firing = &mut Firing { program, stacks, room, spare };
            firing.settle(first, &mut |way, _| {
                begun.get_or_insert_with(|| std::mem::take(&mut way.state));
            })?;
            first = Way { state: begun?, probability: 1.0, todo: Vec::new(), events: Vec::new() };
        }
    }
    let mut key = Vec::new();
    first.state.write(program, stacks, &mut key);
    Some((key.into(), first.state.detached))
}

/// Whether there are surely more states: those that a random walk comes by would be met again more often if there were
/// not. Of n samples from N states about n²/2N repeat another one, more if some states are likelier than others.
fn has_more_than(program: &Program, states: usize, room: u32) -> Option<bool> {
    let mut stacks = Stacks::new();
    let mut spare = Vec::new();
    let (mut key, _) = first(program, room, &mut stacks, &mut spare)?;
    let mut state = State::new(program);
    let mut ready = Vec::new();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut seen: FxHashSet<Box<[u32]>> = FxHashSet::default();
    let (mut repeated, mut written) = (0.0, Vec::new());
    for step in 0..BURN + WALK {
        state.read(program, &stacks, &key);
        ready.clear();
        timed(program, &stacks, &state, &mut ready);
        let active = *ready.get(random.below(ready.len() as f64) as usize)?;
        let mut whole = 0.0;
        let mut next: Option<Box<[u32]>> = None;
        fire(program, &mut stacks, &From { state: &state, active }, room, &mut spare, &mut |way, stacks, rate| {
            // Rare things lead to as many states as others do.
            whole += f64::from(u8::from(rate > 0.0));
            if random.below(whole) < 1.0 {
                way.state.write(program, stacks, &mut written);
                next = Some(written.as_slice().into());
            }
        })?;
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

/// A linear congruential generator: the same walk each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: f64) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64 * limit
    }
}

/// Something that takes time and will end.
#[derive(Clone, Copy, Debug)]
enum Active {
    /// The stage on top of a stack in a queue, with the rate of all like it.
    Stage { station: usize, place: usize, rate: f64 },
    /// An open source.
    Source(usize),
}

fn timed(program: &Program, stacks: &Stacks, state: &State, ready: &mut Vec<Active>) {
    for (number, station) in program.stations.iter().enumerate() {
        let queue = &state.queues[number];
        let (serving, share) = serving(station.order, station.servers, queue.len());
        let mut place = 0;
        while place < serving {
            let alike = queue[place..serving].iter().take_while(|stack| **stack == queue[place]).count();
            if let Op::Stage { rate, .. } = program.ops[stacks.top(queue[place]) as usize] {
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
fn fire(
    program: &Program,
    stacks: &mut Stacks,
    from: &From,
    room: u32,
    spare: &mut Vec<Way>,
    arrive: &mut dyn FnMut(&mut Way, &mut Stacks, f64),
) -> Option<()> {
    let mut way = spare.pop().unwrap_or_default();
    way.state.copy_from(from.state);
    way.probability = 1.0;
    way.todo.clear();
    way.events.clear();
    let mut firing = Firing { program, stacks, room, spare };
    match from.active {
        Active::Source(number) => {
            let source = program.sources[number];
            if let Op::Request { to, dropped, .. } = program.ops[source.request as usize] {
                way.events.push(source.arrival);
                firing.send(source.request, to, dropped, &mut way);
            }
            firing.settle(way, &mut |way, stacks| arrive(way, stacks, source.rate * way.probability))
        }
        Active::Stage { station, place, rate } => {
            let stack = from.state.queues[station][place];
            let Op::Stage { more, again, next, .. } = program.ops[firing.stacks.top(stack) as usize] else {
                return None;
            };
            if again > 0.0 {
                let mut on = way.copy(firing.spare);
                on.state.queues[station][place] = firing.stacks.with_top(stack, more);
                arrive(&mut on, firing.stacks, rate * again);
                firing.spare.push(on);
            }
            if again >= 1.0 {
                return Some(());
            }
            way.probability = 1.0 - again;
            way.state.queues[station].remove(place);
            way.todo.push(Todo::Run(firing.stacks.with_top(stack, next)));
            let free = program.stations[station].servers as usize - 1;
            let waiting = way.state.queues[station].len().saturating_sub(free);
            if program.stations[station].order == Order::Random && waiting > 1 {
                // Those who are alike stand side by side.
                let mut at = free;
                while let Some(next) = way.state.queues[station].get(at) {
                    let alike = way.state.queues[station][at..].iter().take_while(|other| *other == next).count();
                    let mut drawn = way.copy(firing.spare);
                    drawn.probability *= alike as f64 / waiting as f64;
                    drawn.state.queues[station].swap(free, at);
                    firing.settle(drawn, &mut |way, stacks| arrive(way, stacks, rate * way.probability))?;
                    at += alike;
                }
                firing.spare.push(way);
                return Some(());
            }
            firing.settle(way, &mut |way, stacks| arrive(way, stacks, rate * way.probability))
        }
    }
}
