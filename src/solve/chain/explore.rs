//! From a program to its chain: all states that can be met, and the rates between them.

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use super::fire::{Firing, Todo, Way};
use super::program::{Op, Order, Program};
use super::state::{Stacks, State};

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
    let mut first = Way { state: state.clone(), probability: 1.0, todo: Vec::new(), events: Vec::new() };
    for (task, begin) in program.cycle.iter().enumerate() {
        for _ in 0..program.customers[task] {
            first.todo.push(Todo::Run(chain.stacks.push(0, *begin)));
        }
    }
    let (keys, levels) = (&mut chain.keys, &mut chain.levels);
    let mut spare = Vec::new();
    let mut firing = Firing { program, stacks: &mut chain.stacks, room, spare: &mut spare };
    // Any way will do to begin with.
    let mut begun = false;
    firing.settle(first, &mut |way, stacks| {
        if !begun {
            begun = true;
            way.state.write(program, stacks, &mut key);
            keys.insert(key.as_slice().into(), ());
            levels.push(way.state.detached);
        }
    })?;
    let mut number = 0;
    let mut ready = Vec::new();
    while number < chain.keys.len() {
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
            let from = From { number: number as u32, state: &state, active };
            fire(program, &mut chain, &from, room, &mut key, &mut spare)?;
        }
        number += 1;
    }
    Some(chain)
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
    number: u32,
    state: &'a State,
    active: Active,
}

fn fire(
    program: &Program,
    chain: &mut Chain,
    from: &From,
    room: u32,
    key: &mut Vec<u32>,
    spare: &mut Vec<Way>,
) -> Option<()> {
    let mut way = spare.pop().unwrap_or_default();
    way.state.copy_from(from.state);
    way.probability = 1.0;
    way.todo.clear();
    way.events.clear();
    let Chain { keys, levels, moves, events, .. } = chain;
    let mut arrive = |way: &mut Way, stacks: &mut Stacks, rate: f64| {
        let rate = rate * way.probability;
        way.state.write(program, stacks, key);
        let to = match keys.get_index_of(key.as_slice()) {
            Some(known) => known,
            None => {
                levels.push(way.state.detached);
                keys.insert_full(key.as_slice().into(), ()).0
            }
        };
        moves.push((from.number, to as u32, rate));
        events.extend(way.events.iter().map(|event| (from.number, *event, rate)));
    };
    let mut firing = Firing { program, stacks: &mut chain.stacks, room, spare };
    match from.active {
        Active::Source(number) => {
            let source = program.sources[number];
            if let Op::Request { to, dropped, .. } = program.ops[source.request as usize] {
                way.events.push(source.arrival);
                firing.send(source.request, to, dropped, &mut way);
            }
            firing.settle(way, &mut |way, stacks| arrive(way, stacks, source.rate))
        }
        Active::Stage { station, place, rate } => {
            let stack = from.state.queues[station][place];
            let Op::Stage { more, again, next, .. } = program.ops[firing.stacks.top(stack) as usize] else {
                return None;
            };
            if again > 0.0 {
                let mut on = way.copy(firing.spare);
                on.state.queues[station][place] = firing.stacks.with_top(stack, more);
                on.probability = again;
                arrive(&mut on, firing.stacks, rate);
                firing.spare.push(on);
            }
            if again >= 1.0 {
                return Some(());
            }
            way.probability = 1.0 - again;
            way.state.queues[station].remove(place);
            way.todo.push(Todo::Run(firing.stacks.with_top(stack, next)));
            firing.settle(way, &mut |way, stacks| arrive(way, stacks, rate))
        }
    }
}
