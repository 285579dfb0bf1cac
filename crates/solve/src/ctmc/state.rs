//! States: where each request is.
//!
//! A thread of control is a *stack* of instructions, one for each invocation it is in, the innermost on top. Equal stacks
//! are one number, so customers that do the same are not told apart, and what happens to any of them happens to all
//! alike. A state is the queue of each station and each task, and the open forks.

use rustc_hash::FxHashMap;

use super::program::{CtmcProgram, NONE, Order, ProgramStep, StepId};

/// Numbers of stacks below this are bottoms: 0 of a thread of its own, others of branches of an open fork.
pub(super) const ROOTS: u32 = 48;

/// All stacks that were met.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    below: Vec<u32>,
    top: Vec<StepId>,
    known: FxHashMap<(u32, StepId), u32>,
}

impl Stacks {
    pub fn new() -> Self {
        Self { below: vec![0; ROOTS as usize], top: vec![NONE; ROOTS as usize], known: FxHashMap::default() }
    }

    pub fn len(&self) -> usize {
        self.top.len()
    }

    pub fn push(&mut self, below: u32, step: StepId) -> u32 {
        let (all, tops) = (&mut self.below, &mut self.top);
        *self.known.entry((below, step)).or_insert_with(|| {
            all.push(below);
            tops.push(step);
            (tops.len() - 1) as u32
        })
    }

    pub fn below(&self, stack: u32) -> u32 {
        self.below[stack as usize]
    }

    pub fn top(&self, stack: u32) -> StepId {
        self.top[stack as usize]
    }

    pub fn with_top(&mut self, stack: u32, step: StepId) -> u32 {
        self.push(self.below(stack), step)
    }

    pub fn root(&self, stack: u32) -> u32 {
        let mut at = stack;
        while at >= ROOTS {
            at = self.below(at);
        }
        at
    }

    /// The same on another bottom.
    fn on_root(&mut self, stack: u32, root: u32) -> u32 {
        let mut frames = Vec::new();
        let mut at = stack;
        while at >= ROOTS {
            frames.push(self.top(at));
            at = self.below(at);
        }
        frames.into_iter().rev().fold(root, |below, step| self.push(below, step))
    }

    /// Whether the top is a branch of a fork and no invocation of its own.
    pub fn is_branch(&self, stack: u32) -> bool {
        let below = self.below(stack);
        below > 0 && below < ROOTS
    }
}

/// An open fork: its parent's stack, how many threads run for it, and arrivals at joins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Open {
    pub parent: u32,
    pub live: u32,
    pub arrivals: Vec<(u32, u32)>,
}

/// A state taken apart.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// Stations, then tasks.
    pub queues: Vec<Vec<u32>>,
    /// By number; those with nobody alive are free.
    pub forks: Vec<Open>,
    /// By task: busy threads.
    pub busy: Vec<u32>,
    /// By task: threads held by a lock's readers or a semaphore's users, and by its writer.
    pub held: Vec<[u32; 2]>,
    /// Requests that nobody waits for, and later phases in threads without number.
    pub unblocked: u32,
}

impl State {
    pub fn new(program: &CtmcProgram) -> Self {
        let tasks = program.threads.len();
        Self {
            queues: vec![Vec::new(); program.stations.len() + tasks],
            forks: Vec::new(),
            busy: vec![0; tasks],
            held: vec![[0; 2]; tasks],
            unblocked: 0,
        }
    }

    /// Takes on another state, in the memory at hand.
    pub fn copy_from(&mut self, other: &Self) {
        self.queues.resize_with(other.queues.len(), Vec::new);
        for (queue, other) in self.queues.iter_mut().zip(&other.queues) {
            queue.clear();
            queue.extend_from_slice(other);
        }
        self.forks.clone_from(&other.forks);
        self.busy.clone_from(&other.busy);
        self.held.clone_from(&other.held);
        self.unblocked = other.unblocked;
    }

    fn clear(&mut self) {
        self.queues.iter_mut().for_each(Vec::clear);
        self.forks.clear();
        self.busy.fill(0);
        self.held.fill([0; 2]);
        self.unblocked = 0;
    }

    /// Writes the state as numbers, the same for states that differ only in how they number their requests.
    pub fn write(&mut self, program: &CtmcProgram, stacks: &mut Stacks, key: &mut Vec<u32>) {
        key.clear();
        if !self.forks.is_empty() {
            self.renumber(program, stacks);
        }
        for (number, queue) in self.queues.iter_mut().enumerate() {
            if queue.is_empty() {
                continue;
            }
            if let Some(station) = program.stations.get(number) {
                let together = match station.order {
                    Order::Sharing | Order::Delay => queue.len(),
                    _ => queue.len().min(station.servers as usize),
                };
                queue[..together].sort_unstable();
                if station.order == Order::Random {
                    queue[together..].sort_unstable();
                }
            }
            key.push((number as u32) << 16 | queue.len() as u32);
            key.extend_from_slice(queue);
        }
        for open in &self.forks {
            key.extend([NONE, open.parent, open.live, open.arrivals.len() as u32]);
            key.extend(open.arrivals.iter().flat_map(|arrival| [arrival.0, arrival.1]));
        }
        for (task, held) in self.held.iter().enumerate() {
            if *held != [0; 2] {
                key.extend([NONE - 1, task as u32, held[0], held[1]]);
            }
        }
    }

    /// Reads what was written.
    pub fn read(&mut self, program: &CtmcProgram, stacks: &Stacks, key: &[u32]) {
        self.clear();
        let mut at = 0;
        while at < key.len() {
            if key[at] == NONE {
                let count = key[at + 3] as usize;
                let arrivals = (0..count).map(|index| (key[at + 4 + 2 * index], key[at + 5 + 2 * index])).collect();
                self.forks.push(Open { parent: key[at + 1], live: key[at + 2], arrivals });
                at += 4 + 2 * count;
            } else if key[at] == NONE - 1 {
                self.held[key[at + 1] as usize] = [key[at + 2], key[at + 3]];
                at += 4;
            } else {
                let (number, count) = ((key[at] >> 16) as usize, (key[at] & 0xffff) as usize);
                self.queues[number].extend_from_slice(&key[at + 1..=at + count]);
                at += 1 + count;
            }
        }
        for queue in 0..self.queues.len() {
            for place in 0..self.queues[queue].len() {
                self.count(program, stacks, self.queues[queue][place]);
            }
        }
        for fork in 0..self.forks.len() {
            self.count(program, stacks, self.forks[fork].parent);
        }
    }

    /// Counts threads and unblocked requests of a stack.
    fn count(&mut self, program: &CtmcProgram, stacks: &Stacks, stack: u32) {
        let mut at = stack;
        while at >= ROOTS {
            let step = stacks.top(at) as usize;
            let entry = program.entry[step];
            if entry != NONE {
                if !stacks.is_branch(at) {
                    self.busy[program.entry_task[entry as usize] as usize] += 1;
                }
                self.unblocked += u32::from(stacks.below(at) == 0 && program.trails[entry as usize]);
            } else if let ProgramStep::Request { .. } = program.steps[step] {
                self.unblocked += 1;
            }
            at = stacks.below(at);
        }
    }

    /// Numbers open forks in the order in which they are met.
    fn renumber(&mut self, program: &CtmcProgram, stacks: &mut Stacks) {
        // Strands at the same place come in an order that does not depend on the numbers of forks.
        for (number, queue) in self.queues.iter_mut().enumerate() {
            if let Some(station) = program.stations.get(number)
                && matches!(station.order, Order::Sharing | Order::Delay | Order::Random)
            {
                let kept = if station.order == Order::Random { queue.len().min(station.servers as usize) } else { 0 };
                queue[kept..].sort_by_key(|stack| (stacks.top(*stack), *stack));
            }
        }
        let mut numbers = vec![NONE; self.forks.len()];
        let mut order = Vec::new();
        let mut meet = |root: u32, order: &mut Vec<usize>| {
            if root > 0 && numbers[root as usize - 1] == NONE {
                numbers[root as usize - 1] = order.len() as u32;
                order.push(root as usize - 1);
            }
        };
        for stack in self.queues.iter().flatten() {
            meet(stacks.root(*stack), &mut order);
        }
        let mut next = 0;
        while next < order.len() {
            meet(stacks.root(self.forks[order[next]].parent), &mut order);
            next += 1;
        }
        let move_on = |stack: &mut u32, stacks: &mut Stacks| {
            let root = stacks.root(*stack);
            if root > 0 && numbers[root as usize - 1] != root - 1 {
                *stack = stacks.on_root(*stack, numbers[root as usize - 1] + 1);
            }
        };
        for stack in self.queues.iter_mut().flatten() {
            move_on(stack, stacks);
        }
        let mut forks = Vec::with_capacity(order.len());
        for number in order {
            let mut open = std::mem::take(&mut self.forks[number]);
            move_on(&mut open.parent, stacks);
            open.arrivals.sort_unstable();
            forks.push(open);
        }
        self.forks = forks;
    }
}
