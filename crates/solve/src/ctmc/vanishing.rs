//! What happens in no time, after a stage ends or a request arrives.

use dyelog_lqn::model::{EntryId, SemaphoreRole};

use super::program::{CtmcProgram, NONE, Order, ProgramStep, StepId};
use super::state::{Open, ROOTS, Stacks, State};

/// Ways less likely than this are left out.
const LEAST: f64 = 1e-13;
/// Longer chains of things that take no time are given up.
const MOST_STEPS: u32 = 20_000;

/// Still to do in no time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pending {
    /// The thread comes to the instruction on top of its stack.
    Run(u32),
    /// The request comes to an entry.
    Arrive(u32, EntryId),
    /// A thread of the task has become free.
    Release(u32),
}

/// A way in which things may go on.
#[derive(Debug, Default)]
pub(super) struct Way {
    pub state: State,
    pub probability: f64,
    pub pending: Vec<Pending>,
    pub events: Vec<u32>,
}

/// Lets things happen until all threads take time.
pub(super) struct Vanishing<'a> {
    pub program: &'a CtmcProgram,
    pub stacks: &'a mut Stacks,
    /// Most requests and later phases at a time that nobody waits for.
    pub truncation: u32,
    /// Memory of ways that are done with.
    pub spare: &'a mut Vec<Way>,
}

impl Vanishing<'_> {
    /// All ways to where something takes time; nothing where there are too many.
    pub fn resolve(&mut self, start: Way, done: &mut dyn FnMut(&mut Way, &mut Stacks)) -> Option<()> {
        let mut ways = vec![start];
        let mut steps = 0;
        while let Some(mut way) = ways.pop() {
            while let Some(pending) = way.pending.pop() {
                steps += 1;
                if steps > MOST_STEPS {
                    return None;
                }
                match pending {
                    Pending::Run(stack) => self.run(stack, &mut way, &mut ways)?,
                    Pending::Arrive(stack, to) => self.arrive(stack, to, &mut way),
                    Pending::Release(task) => self.release(task as usize, &mut way),
                }
            }
            if way.probability > 0.0 {
                done(&mut way, self.stacks);
            }
            self.spare.push(way);
        }
        Some(())
    }

    fn run(&mut self, stack: u32, way: &mut Way, ways: &mut Vec<Way>) -> Option<()> {
        let program = self.program;
        let step = self.stacks.top(stack);
        match &program.steps[step as usize] {
            ProgramStep::Stage { station, .. } => self.join_station(stack, *station as usize, step, way),
            ProgramStep::Count { event, next } => {
                way.events.push(*event);
                self.go_on(stack, *next, way);
            }
            ProgramStep::Choose(choices) => {
                let stacks = &mut *self.stacks;
                choose(choices, way, ways, self.spare, |way, next| {
                    way.pending.push(Pending::Run(stacks.with_top(stack, next)));
                });
            }
            ProgramStep::Call { to, .. } => way.pending.push(Pending::Arrive(stack, *to)),
            ProgramStep::Send { request, next } => {
                let ProgramStep::Request { to, dropped, .. } = program.steps[*request as usize] else { return None };
                // The request comes to its task at once; what is done for it begins when the sender has gone on.
                self.send(*request, to, dropped, way);
                self.go_on(stack, *next, way);
            }
            ProgramStep::Reply { forwards, next } => self.reply(stack, forwards, *next, way, ways),
            ProgramStep::Fork(branches) => {
                // A branch that forks again adds to the fork it belongs to.
                let root = if self.stacks.is_branch(stack) {
                    let root = self.stacks.below(stack);
                    way.state.forks[root as usize - 1].live += branches.len() as u32 - 1;
                    root
                } else {
                    way.open_fork(stack, branches.len() as u32)?
                };
                self.begin_branches(root, branches, way, ways);
            }
            ProgramStep::Join { join, need, all, next } => self.join(stack, *join, (*need, *all), *next, way)?,
            ProgramStep::End => self.end(stack, way),
            ProgramStep::Request { .. } | ProgramStep::Forward { .. } => return None,
        }
        Some(())
    }

    fn go_on(&mut self, stack: u32, next: StepId, way: &mut Way) {
        way.pending.push(Pending::Run(self.stacks.with_top(stack, next)));
    }

    /// A request that nobody waits for begins its way, if there is room.
    pub fn send(&mut self, request: StepId, to: EntryId, dropped: u32, way: &mut Way) {
        if way.state.unblocked >= self.truncation {
            way.events.push(dropped);
            return;
        }
        way.state.unblocked += 1;
        let stack = self.stacks.push(0, request);
        self.arrive(stack, to, way);
    }

    fn join_station(&mut self, stack: u32, station: usize, step: StepId, way: &mut Way) {
        let program = self.program;
        let queue = &mut way.state.queues[station];
        let order = program.stations.get(station).map_or(Order::Arrival, |station| station.order);
        let fixed = match order {
            Order::Priority => (program.stations[station].servers as usize).min(queue.len()),
            Order::Preemptive => 0,
            _ => queue.len(),
        };
        let priority = |step: StepId| match program.entry[step as usize] {
            NONE => 0,
            entry => program.task_priority[program.entry_task[entry as usize] as usize],
        };
        let own = priority(step);
        let behind = queue[fixed..].iter().position(|other| priority(self.stacks.top(*other)) < own);
        let place = behind.map_or(queue.len(), |place| fixed + place);
        queue.insert(place, stack);
    }

    fn reply(&mut self, stack: u32, forwards: &[(f64, StepId)], next: StepId, way: &mut Way, ways: &mut Vec<Way>) {
        let (own, caller) = self.detach(stack, next, way);
        let Some(caller) = caller else {
            way.pending.push(Pending::Run(own));
            return;
        };
        let own = self.trail(own, way);
        if forwards.is_empty() {
            let first = way.copy(self.spare);
            self.answer(caller, way);
            self.either_first(own, first, caller, way, ways);
            return;
        }
        let rest = 1.0 - forwards.iter().map(|forward| forward.0).sum::<f64>();
        let choices: Vec<(f64, StepId)> = forwards.iter().copied().chain([(rest, NONE)]).collect();
        let mut split = Vec::new();
        choose(&choices, way, &mut split, self.spare, |way, forward| {
            way.pending.push(if forward == NONE { Pending::Release(NONE) } else { Pending::Run(forward) });
        });
        self.pass_on(caller, own, way, ways);
        for mut other in split {
            self.pass_on(caller, own, &mut other, ways);
            ways.push(other);
        }
    }

    /// A thread that has replied goes on for nobody, if there is room where such threads are without number; else it ends. A branch
    /// goes on anyway, as those beside it do.
    fn trail(&mut self, own: u32, way: &mut Way) -> u32 {
        let program = self.program;
        let entry = program.entry[self.stacks.top(own) as usize] as usize;
        if !program.trails[entry] {
            return own;
        }
        way.state.unblocked += 1;
        if way.state.unblocked <= self.truncation || self.stacks.is_branch(own) {
            return own;
        }
        way.events.push(program.cut_event(entry) as u32);
        self.stacks.with_top(own, program.end[entry])
    }

    /// The caller has its reply, or its request goes on to the entry that stands on top as a mark; the server goes on, too.
    fn pass_on(&mut self, caller: u32, own: u32, way: &mut Way, ways: &mut Vec<Way>) {
        let program = self.program;
        let forward = match way.pending.pop() {
            Some(Pending::Run(forward)) => forward,
            _ => NONE,
        };
        let Some(ProgramStep::Forward { to, row }) = program.steps.get(forward as usize).filter(|_| forward != NONE)
        else {
            let first = way.copy(self.spare);
            self.answer(caller, way);
            self.either_first(own, first, caller, way, ways);
            return;
        };
        way.events.push(program.row_event(*row as usize) as u32);
        let arrival = Pending::Arrive(self.stacks.push(caller, forward), *to);
        if self.reach_of(own) & program.reach[forward as usize] != 0 {
            let mut other = way.copy(self.spare);
            other.probability *= 0.5;
            way.probability *= 0.5;
            other.pending.extend([Pending::Run(own), arrival]);
            ways.push(other);
        }
        way.pending.extend([arrival, Pending::Run(own)]);
    }

    /// Queues that a server may meet without time passing when it goes on; none where it has done its work, since then it
    /// takes its next request, if there is one, before anyone else goes on.
    fn reach_of(&self, own: u32) -> u64 {
        let program = self.program;
        let mut step = self.stacks.top(own) as usize;
        while let ProgramStep::Count { next, .. } = program.steps[step] {
            step = next as usize;
        }
        if matches!(program.steps[step], ProgramStep::End) { 0 } else { program.reach[step] }
    }

    /// Takes the caller from below the invocation, which goes on alone: its stack, and the caller if it has not been
    /// answered before.
    fn detach(&mut self, stack: u32, next: StepId, way: &mut Way) -> (u32, Option<u32>) {
        if !self.stacks.is_branch(stack) {
            let caller = self.stacks.below(stack);
            return (self.stacks.push(0, next), (caller >= ROOTS).then_some(caller));
        }
        // A branch answers for the invocation that forked.
        let own = self.stacks.with_top(stack, next);
        let branch = self.stacks.below(stack) as usize;
        let parent = way.state.forks[branch - 1].parent;
        let caller = self.stacks.below(parent);
        if caller < ROOTS {
            return (own, None);
        }
        way.state.forks[branch - 1].parent = self.stacks.push(0, self.stacks.top(parent));
        (own, Some(caller))
    }

    /// The caller has its reply.
    fn answer(&mut self, caller: u32, way: &mut Way) {
        match self.program.steps[self.stacks.top(caller) as usize] {
            ProgramStep::Call { next, .. } => self.go_on(caller, next, way),
            ProgramStep::Request { .. } => way.state.unblocked -= 1,
            _ => {}
        }
    }

    /// A server in its next phase and its caller, which has the reply, come to the next queue in either order. `before` is
    /// the way without the answer.
    fn either_first(&mut self, own: u32, before: Way, caller: u32, way: &mut Way, ways: &mut Vec<Way>) {
        let program = self.program;
        let reached = self.reach_of(own);
        let theirs = match program.steps[self.stacks.top(caller) as usize] {
            ProgramStep::Call { next, .. } => program.reach[next as usize],
            _ => 0,
        };
        if reached & theirs != 0 {
            let mut other = before;
            other.probability *= 0.5;
            way.probability *= 0.5;
            other.pending.push(Pending::Run(own));
            self.answer(caller, &mut other);
            ways.push(other);
        }
        way.pending.push(Pending::Run(own));
    }

    /// Branches of a fork begin in any order, where that matters.
    fn begin_branches(&mut self, root: u32, branches: &[StepId], way: &mut Way, ways: &mut Vec<Way>) {
        let mut seen = 0;
        let mut meet = false;
        for branch in branches {
            let reach = self.program.reach[*branch as usize];
            meet |= seen & reach != 0;
            seen |= reach;
        }
        // All orders of two, and for more each in each place.
        let orders = if meet { branches.len() } else { 1 };
        way.probability /= orders as f64;
        for first in (0..orders).rev() {
            let mut pending = way.pending.clone();
            for place in (0..branches.len()).rev() {
                let branch = branches[(first + place) % branches.len()];
                pending.push(Pending::Run(self.stacks.push(root, branch)));
            }
            if first == 0 {
                way.pending = pending;
            } else {
                ways.push(Way { pending, ..way.copy(self.spare) });
            }
        }
    }

    fn join(&mut self, stack: u32, join: u32, (need, all): (u32, u32), next: StepId, way: &mut Way) -> Option<()> {
        if !self.stacks.is_branch(stack) {
            return None;
        }
        let slot = self.stacks.below(stack) as usize - 1;
        let open = &mut way.state.forks[slot];
        let place = open.arrivals.iter().position(|arrival| arrival.0 == join).unwrap_or_else(|| {
            open.arrivals.push((join, 0));
            open.arrivals.len() - 1
        });
        open.arrivals[place].1 += 1;
        let arrived = open.arrivals[place].1;
        if arrived == all {
            open.arrivals.swap_remove(place);
        }
        if arrived != need {
            open.live -= 1;
            self.last_branch(slot, way);
        } else if open.live == 1 && open.arrivals.is_empty() {
            let parent = std::mem::take(open).parent;
            self.go_on(parent, next, way);
        } else {
            self.go_on(stack, next, way);
        }
        Some(())
    }

    /// Ends the parent when no branch is left.
    fn last_branch(&mut self, slot: usize, way: &mut Way) {
        if way.state.forks[slot].live == 0 {
            let parent = std::mem::take(&mut way.state.forks[slot]).parent;
            let entry = self.program.entry[self.stacks.top(parent) as usize];
            self.go_on(parent, self.program.end[entry as usize], way);
        }
    }

    fn end(&mut self, stack: u32, way: &mut Way) {
        if self.stacks.is_branch(stack) {
            let slot = self.stacks.below(stack) as usize - 1;
            way.state.forks[slot].live -= 1;
            self.last_branch(slot, way);
            return;
        }
        let program = self.program;
        let entry = program.entry[self.stacks.top(stack) as usize] as usize;
        let task = program.entry_task[entry] as usize;
        if program.cycle[task] != NONE {
            self.go_on(stack, program.cycle[task], way);
            return;
        }
        way.state.busy[task] -= 1;
        way.state.unblocked -= u32::from(self.stacks.below(stack) == 0 && program.trails[entry]);
        match program.roles[entry] {
            Some(SemaphoreRole::Signal | SemaphoreRole::ReadUnlock) => {
                way.state.held[task][0] = way.state.held[task][0].saturating_sub(1);
            }
            Some(SemaphoreRole::WriteUnlock) => way.state.held[task][1] = 0,
            _ => {}
        }
        let caller = self.stacks.below(stack);
        if caller >= ROOTS {
            // No reply was said; the end is one.
            self.answer(caller, way);
        }
        way.pending.push(Pending::Release(task as u32));
    }

    fn arrive(&mut self, stack: u32, to: EntryId, way: &mut Way) {
        let program = self.program;
        let task = program.entry_task[to.index()] as usize;
        let station = program.stations.len() + task;
        let threads = program.threads[task];
        if (threads.lock || way.state.queues[station].is_empty()) && self.admits(task, to, &way.state) {
            self.accept(stack, to, way);
            return;
        }
        let queue = &mut way.state.queues[station];
        let mut place = queue.len();
        if matches!(threads.order, Order::Priority | Order::Preemptive) {
            let priority = |stack: u32| program.entry_priority[target(program, self.stacks, stack).index()];
            place =
                queue.iter().position(|other| priority(*other) < program.entry_priority[to.index()]).unwrap_or(place);
        }
        queue.insert(place, stack);
    }

    /// Whether the task can begin with a request now.
    fn admits(&self, task: usize, to: EntryId, state: &State) -> bool {
        let threads = self.program.threads[task];
        let [readers, writers] = state.held[task];
        match self.program.roles[to.index()].filter(|_| threads.lock) {
            None => f64::from(state.busy[task]) < threads.count,
            Some(SemaphoreRole::Wait) => f64::from(readers) < threads.count,
            Some(SemaphoreRole::ReadLock) => writers == 0 && f64::from(readers) < threads.count,
            Some(SemaphoreRole::WriteLock) => writers == 0 && readers == 0,
            Some(SemaphoreRole::Signal | SemaphoreRole::ReadUnlock) => readers > 0,
            Some(SemaphoreRole::WriteUnlock) => writers > 0,
        }
    }

    fn accept(&mut self, stack: u32, to: EntryId, way: &mut Way) {
        let program = self.program;
        let task = program.entry_task[to.index()] as usize;
        way.state.busy[task] += 1;
        match program.roles[to.index()].filter(|_| program.threads[task].lock) {
            Some(SemaphoreRole::Wait | SemaphoreRole::ReadLock) => way.state.held[task][0] += 1,
            Some(SemaphoreRole::WriteLock) => way.state.held[task][1] += 1,
            _ => {}
        }
        let forwarded = matches!(program.steps[self.stacks.top(stack) as usize], ProgramStep::Forward { .. });
        let caller = if forwarded { self.stacks.below(stack) } else { stack };
        way.pending.push(Pending::Run(self.stacks.push(caller, program.begin[to.index()])));
    }

    fn release(&mut self, task: usize, way: &mut Way) {
        let station = self.program.stations.len() + task;
        let next = way.state.queues[station]
            .iter()
            .position(|stack| self.admits(task, target(self.program, self.stacks, *stack), &way.state));
        // Where order matters, only a lock lets a request pass another.
        let next = next.filter(|place| *place == 0 || self.program.threads[task].lock);
        if let Some(place) = next {
            let stack = way.state.queues[station].remove(place);
            if self.program.threads[task].lock {
                way.pending.push(Pending::Release(task as u32));
            }
            self.accept(stack, target(self.program, self.stacks, stack), way);
        }
    }
}

/// The entry that a waiting request is for.
pub(super) fn target(program: &CtmcProgram, stacks: &Stacks, stack: u32) -> EntryId {
    match program.steps[stacks.top(stack) as usize] {
        ProgramStep::Call { to, .. } | ProgramStep::Request { to, .. } | ProgramStep::Forward { to, .. } => to,
        _ => EntryId(0),
    }
}

/// Splits a way: it takes the first of the choices itself.
fn choose(
    choices: &[(f64, StepId)],
    way: &mut Way,
    ways: &mut Vec<Way>,
    spare: &mut Vec<Way>,
    mut take: impl FnMut(&mut Way, StepId),
) {
    let whole = way.probability;
    let mut rest = choices.iter().filter(|choice| choice.0 * whole > LEAST);
    let Some(first) = rest.next() else {
        way.probability = 0.0;
        way.pending.clear();
        return;
    };
    for (part, next) in rest {
        let mut other = way.copy(spare);
        other.probability = whole * part;
        take(&mut other, *next);
        ways.push(other);
    }
    way.probability = whole * first.0;
    take(way, first.1);
}

impl Way {
    /// A copy in memory that is at hand.
    pub fn copy(&self, spare: &mut Vec<Way>) -> Way {
        let mut copy = spare.pop().unwrap_or_default();
        copy.state.copy_from(&self.state);
        copy.probability = self.probability;
        copy.pending.clone_from(&self.pending);
        copy.events.clone_from(&self.events);
        copy
    }

    /// The bottom of the stacks of a new fork's branches.
    fn open_fork(&mut self, parent: u32, live: u32) -> Option<u32> {
        let forks = &mut self.state.forks;
        let slot = forks.iter().position(|open| open.live == 0).unwrap_or(forks.len());
        if slot + 1 >= ROOTS as usize {
            return None;
        }
        if slot == forks.len() {
            forks.push(Open::default());
        }
        forks[slot] = Open { parent, live, arrivals: Vec::new() };
        Some(slot as u32 + 1)
    }
}
