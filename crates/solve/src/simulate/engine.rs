//! The simulation proper.
//!
//! A *visit* is an invocation of an entry, from the moment that it is asked for. A *strand* is what runs on its behalf: one,
//! or several between an AND-fork and its join. A strand is on a processor, delayed, waits for an answer, or is ready: what
//! is ready is done at once, in turn, before the next timer goes off. Nothing recurses, and nothing is allocated but when
//! there are more visits or strands than ever before.

use std::collections::BinaryHeap;

use dyelog_lqn::model::SemaphoreRole;

use super::pool::{Pool, Queue};
use super::probe::Probe;
use super::program::{Acceptance, After, ENTRY_SUMS, NONE, OPEN, PROCESSOR_TIME, Route, SimulationProgram};
use super::random::Random;
use super::series::Series;
use super::sketch::Sketch;
use super::stations::{Ranked, Running};
use super::timers::{MOST_TIMERS, Timers};

/// Requests that may be under way, beside one for each customer.
const MOST_REQUESTS: usize = 250_000;
/// Things that may happen without time going on.
const MOST_AT_ONCE: u64 = 50_000_000;

/// Why a simulation stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// All events that were asked for have happened.
    Done,
    /// More and more requests are under way; most of them wait at that instance.
    Grows(u32),
    /// Nothing will happen any more: everyone waits for someone else.
    Deadlock,
    /// Things happen without end while time stands still.
    Stands,
    /// There is no load.
    Idle,
}

/// What runs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Strand {
    pub visit: u32,
    step: u32,
    state: State,
    /// Whether it has a server of its processor.
    pub holds: bool,
    /// Deterministic calls: which of them, and how many times more.
    call: u32,
    left: u32,
    /// When the step began.
    began: f64,
    /// Processor time of this slice, and how much of it is left.
    pub demand: f64,
    pub rest: f64,
    /// How much of it has been summed up.
    pub summed: f64,
    pub next: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Begins its step.
    #[default]
    Fresh,
    /// A customer thinks.
    Thinking,
    /// Delayed before its first slice.
    Delayed,
    /// On a processor or in its queue.
    Served,
    /// For an answer, or having it.
    Waiting,
    /// Lets others go on first; its step is what comes after.
    Behind,
}

/// An invocation of an entry.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Visit {
    pub entry: u32,
    pub instance: u32,
    /// The strand that waits for the answer.
    client: u32,
    /// Sums of the call; [`NONE`] where it was none.
    figures: u32,
    /// When it was asked for; and when the first entry was that passed it on, with that entry.
    sent: f64,
    origin: f64,
    origin_entry: u32,
    phase: u8,
    replied: bool,
    open: bool,
    /// When it was taken up, and when its phase began.
    begun: f64,
    since: f64,
    /// Strands that run.
    strands: u32,
    /// Its first counter.
    joins: u32,
    pub next: u32,
}

/// Threads and queue of a copy of a task.
#[derive(Default)]
struct Threads {
    busy: u32,
    queue: Queue,
    ranked: BinaryHeap<Ranked>,
}

/// What a strand does next.
enum Next {
    Begin(u32),
    Slice,
    Sliced,
    Done,
    After(u32),
}

/// A simulation under way.
pub(super) struct Engine<'p, P> {
    pub program: &'p SimulationProgram<'p>,
    pub probe: P,
    pub now: f64,
    pub events: u64,
    pub series: Series,
    /// By entry: times from request to answer; of a source, times of cycles.
    pub sketches: Vec<Sketch>,
    pub(super) random: Random,
    pub(super) timers: Timers,
    /// Timers below this are of processors and arrivals.
    pub(super) first_strand: usize,
    /// Entry and copy of each source of open arrivals.
    arrivals: Vec<(u32, u32)>,
    first_arrival: usize,
    pub(super) stations: Vec<Running>,
    threads: Vec<Threads>,
    pub(super) strands: Pool<Strand>,
    pub(super) visits: Pool<Visit>,
    joins: Vec<u32>,
    /// By number of joins: blocks of counters that are free.
    free_joins: Vec<Vec<u32>>,
    /// The last one goes on first, so that all that follows at once from an event follows before what else was ready.
    ready: Vec<u32>,
    most_visits: usize,
    order: u64,
    stopped: Option<Stop>,
}

impl<'p, P: Probe> Engine<'p, P> {
    /// At time zero: customers think, nothing is under way.
    pub fn new(program: &'p SimulationProgram<'p>, random: Random, probe: P) -> Self {
        let mut arrivals = Vec::new();
        let mut customers = 0;
        for (number, entry) in program.entries.iter().enumerate() {
            let task = &program.tasks[entry.task as usize];
            if entry.open != super::random::Times::Zero {
                arrivals.extend((0..task.instances.count).map(|copy| (number as u32, copy)));
            }
        }
        for task in &program.tasks {
            customers += task.customers as usize * task.instances.count as usize;
        }
        let first_arrival = program.stations.len();
        let first_strand = first_arrival + arrivals.len();
        let mut engine = Self {
            program,
            probe,
            now: 0.0,
            events: 0,
            series: Series::new(program.layout.count, smallest(program)),
            sketches: vec![Sketch::default(); program.entries.len()],
            random,
            timers: Timers::new(first_strand),
            first_strand,
            arrivals,
            first_arrival,
            stations: program.stations.iter().copied().map(Running::new).collect(),
            threads: program.instances.iter().map(|_| Threads::default()).collect(),
            strands: Pool::default(),
            visits: Pool::default(),
            joins: Vec::new(),
            free_joins: Vec::new(),
            ready: Vec::new(),
            most_visits: customers + MOST_REQUESTS,
            order: 0,
            stopped: None,
        };
        engine.start(customers);
        engine
    }

    fn start(&mut self, customers: usize) {
        let program = self.program;
        if customers == 0 && self.arrivals.is_empty() {
            self.stopped = Some(Stop::Idle);
        }
        for number in 0..self.arrivals.len() {
            self.next_arrival(number);
        }
        for task in program.tasks.iter().filter(|task| task.customers > 0) {
            for instance in task.instances.range() {
                if program.model.tasks[program.instances[instance].task as usize].entries.is_empty() {
                    continue;
                }
                for _ in 0..task.customers {
                    let visit = self.visits.take(Visit { instance: instance as u32, ..Visit::default() });
                    self.cycle(visit);
                }
            }
        }
    }

    /// Goes on until so many events have happened in all, or as long as it can.
    pub fn run(&mut self, events: u64) -> Stop {
        loop {
            if let Some(stop) = self.stopped {
                return stop;
            }
            let mut at_once = 0;
            while let Some(strand) = self.ready.pop() {
                self.resume(strand);
                at_once += 1;
                if at_once > MOST_AT_ONCE {
                    self.stopped = Some(Stop::Stands);
                }
                if self.stopped.is_some() {
                    break;
                }
            }
            if self.stopped.is_some() {
                continue;
            }
            if self.events >= events || self.probe.satisfied() {
                return Stop::Done;
            }
            let Some(time) = self.timers.next_time() else {
                self.stopped = Some(Stop::Deadlock);
                continue;
            };
            if time >= self.series.bin_end {
                self.close_until(time);
            }
            self.now = time;
            self.events += 1;
            if let Some(timer) = self.timers.pop() {
                self.fire(timer);
            }
        }
    }

    /// Closes all bins that end by this time.
    #[cold]
    fn close_until(&mut self, time: f64) {
        while time >= self.series.bin_end {
            self.sum_up_shared(self.series.bin_end);
            self.series.close_until(self.series.bin_end);
        }
    }

    fn fire(&mut self, timer: usize) {
        if timer >= self.first_strand {
            let strand = (timer - self.first_strand) as u32;
            match self.strands[strand].state {
                State::Served => self.advance(strand, Next::Sliced),
                State::Thinking => self.begin_cycle(strand),
                State::Delayed => self.advance(strand, Next::Slice),
                State::Fresh | State::Waiting | State::Behind => {}
            }
        } else if timer >= self.first_arrival {
            self.arrive(timer - self.first_arrival);
        } else if let Some(strand) = self.shared_done(timer) {
            self.advance(strand, Next::Sliced);
        }
    }

    /// A strand that was made ready goes on.
    fn resume(&mut self, strand: u32) {
        match self.strands[strand].state {
            State::Fresh => {
                let step = self.strands[strand].step;
                self.advance(strand, Next::Begin(step));
            }
            State::Thinking => self.begin_cycle(strand),
            State::Behind => {
                let after = self.strands[strand].step;
                self.advance(strand, Next::After(after));
            }
            _ => self.advance(strand, Next::Slice),
        }
    }

    /// What the strand does until it has to wait for something.
    fn advance(&mut self, strand: u32, mut next: Next) {
        let program = self.program;
        loop {
            next = match next {
                Next::Begin(number) => {
                    let step = &program.steps[number as usize];
                    let found = &mut self.strands[strand];
                    found.step = number;
                    found.began = self.now;
                    found.call = 0;
                    found.left = NONE;
                    let think = step.think.sample(&mut self.random);
                    if think > 0.0 {
                        found.state = State::Delayed;
                        self.timers.set(self.first_strand + strand as usize, self.now + think);
                        return;
                    }
                    Next::Slice
                }
                Next::Slice => {
                    let step = self.strands[strand].step;
                    let demand = program.steps[step as usize].slice.sample(&mut self.random);
                    self.strands[strand].demand = demand;
                    self.strands[strand].summed = 0.0;
                    if demand > 0.0 {
                        self.strands[strand].state = State::Served;
                        self.serve(strand, demand);
                        return;
                    }
                    Next::Sliced
                }
                Next::Sliced => {
                    self.release(strand);
                    let found = &self.strands[strand];
                    let (demand, entry) = (found.demand, self.visits[found.visit].entry);
                    self.series.sums[entry as usize * ENTRY_SUMS + PROCESSOR_TIME] += demand - found.summed;
                    self.probe.slice(self.now, strand, demand);
                    match self.next_call(strand) {
                        None => Next::Done,
                        Some(call) => {
                            if self.call(strand, call) || self.stopped.is_some() {
                                return;
                            }
                            Next::Slice
                        }
                    }
                }
                Next::Done => {
                    let ready = self.ready.len();
                    let after = self.done(strand);
                    // Who goes on first after an answer, the server or its client, is anyone's guess. A server that has done
                    // its work takes its next request before anyone goes on.
                    if after != 0
                        && self.ready.len() > ready
                        && let Some(other) = self.ready.pop()
                    {
                        if self.random.uniform() < 0.5 {
                            let found = &mut self.strands[strand];
                            found.state = State::Behind;
                            found.step = after;
                            self.ready.push(strand);
                            self.ready.push(other);
                            return;
                        }
                        self.ready.push(other);
                    }
                    Next::After(after)
                }
                Next::After(number) => match self.after(strand, number) {
                    Some(next) => next,
                    None => return,
                },
            };
        }
    }

    /// Which call the strand makes after this slice, if any.
    #[inline]
    fn next_call(&mut self, strand: u32) -> Option<u32> {
        let found = &mut self.strands[strand];
        let step = &self.program.steps[found.step as usize];
        if step.calls.count == 0 {
            return None;
        }
        let calls = &self.program.calls[step.calls.range()];
        if !step.deterministic {
            // One of the slices in the mean number of slices is the last.
            let at = self.random.uniform() * step.slices - 1.0;
            if at < 0.0 {
                return None;
            }
            let which = if calls.len() < 16 {
                calls.iter().position(|call| at < call.upto).unwrap_or(calls.len() - 1)
            } else {
                calls.partition_point(|call| call.upto <= at).min(calls.len() - 1)
            };
            return Some(step.calls.first + which as u32);
        }
        loop {
            let call = calls.get(found.call as usize)?;
            if found.left == NONE {
                let whole = call.mean.floor();
                let more = call.mean > whole && self.random.uniform() < call.mean - whole;
                found.left = (whole as u32).saturating_add(u32::from(more)).min(NONE - 1);
            }
            if found.left > 0 {
                found.left -= 1;
                return Some(step.calls.first + found.call);
            }
            found.call += 1;
            found.left = NONE;
        }
    }

    /// Makes a call; whether the strand has to wait.
    fn call(&mut self, strand: u32, number: u32) -> bool {
        let call = &self.program.calls[number as usize];
        let own = self.visits[self.strands[strand].visit].instance;
        let copy = match call.route {
            Route::Fan(1) => self.program.copy_of(own),
            Route::Fan(out) => self.program.copy_of(own) * out + call.copy,
            Route::Any => self.random.below(u32::MAX as usize) as u32,
        };
        let instance = self.program.instance(call.entry, copy);
        let visit = self.request(Visit {
            entry: call.entry,
            instance,
            client: if call.synchronous { strand } else { NONE },
            figures: call.figures,
            sent: self.now,
            origin: self.now,
            origin_entry: call.entry,
            ..Visit::default()
        });
        self.probe.call(self.now, strand, visit, call.entry, call.synchronous);
        if call.synchronous {
            self.strands[strand].state = State::Waiting;
        }
        self.deliver(visit);
        call.synchronous
    }

    /// A new visit, unless there are too many.
    fn request(&mut self, visit: Visit) -> u32 {
        if self.visits.len() >= self.most_visits {
            let longest = (0..self.threads.len()).max_by_key(|&instance| {
                let found = &self.threads[instance];
                found.queue.len() + found.ranked.len() + found.busy as usize
            });
            self.stopped = Some(Stop::Grows(longest.unwrap_or(0) as u32));
        }
        self.visits.take(visit)
    }

    /// A request has come to its task.
    fn deliver(&mut self, visit: u32) {
        let (instance, entry) = (self.visits[visit].instance, self.visits[visit].entry);
        let role = self.program.entries[entry as usize].role;
        let free = self.admits(role, instance);
        let found = &mut self.threads[instance as usize];
        let plan = &self.program.instances[instance as usize];
        if free {
            self.accept(visit);
        } else if plan.acceptance == Acceptance::Fcfs {
            found.queue.push(&mut self.visits, visit);
        } else {
            self.order += 1;
            let rank = i64::from(self.program.entries[entry as usize].priority);
            found.ranked.push(Ranked::new(rank, self.order, visit));
        }
    }

    /// Whether a request of that role to an instance can be taken up at once. A lock has readers or one writer.
    #[inline]
    fn admits(&self, role: Option<SemaphoreRole>, instance: u32) -> bool {
        let free =
            |instance: u32| self.threads[instance as usize].busy < self.program.instances[instance as usize].threads;
        let held = |other: SemaphoreRole| self.threads[self.lock(instance, other) as usize].busy > 0;
        free(instance)
            && match role {
                Some(SemaphoreRole::ReadLock) => !held(SemaphoreRole::WriteLock),
                Some(SemaphoreRole::WriteLock) => !held(SemaphoreRole::ReadLock),
                _ => true,
            }
    }

    /// Where requests of that role go, in the copy of a lock that an instance belongs to.
    fn lock(&self, instance: u32, role: SemaphoreRole) -> u32 {
        let task = &self.program.tasks[self.program.instances[instance as usize].task as usize];
        task.of_role(Some(role), self.program.copy_of(instance))
    }

    /// A thread takes the request up.
    fn accept(&mut self, visit: u32) {
        let found = &mut self.visits[visit];
        self.threads[found.instance as usize].busy += 1;
        if found.figures != NONE {
            let figures = found.figures as usize;
            self.series.sums[figures] += 1.0;
            self.series.sums[figures + 1] += self.now - found.sent;
        }
        let strand = self.begin(visit);
        self.probe.accept(self.now, visit, strand);
        self.ready.push(strand);
    }

    /// Begins the work of a visit with its first strand.
    fn begin(&mut self, visit: u32) -> u32 {
        let now = self.now;
        let plan = &self.program.entries[self.visits[visit].entry as usize];
        let joins = if plan.joins > 0 { self.take_joins(plan.joins as usize) } else { 0 };
        let found = &mut self.visits[visit];
        found.joins = joins;
        found.begun = now;
        found.since = now;
        found.phase = 0;
        found.replied = false;
        found.strands = 1;
        self.strand(visit, plan.start)
    }

    fn strand(&mut self, visit: u32, step: u32) -> u32 {
        let strand = self.strands.take(Strand { visit, step, ..Strand::default() });
        let timers = self.first_strand + strand as usize + 1;
        if timers >= MOST_TIMERS {
            self.stopped = Some(Stop::Grows(self.visits[visit].instance));
        }
        self.timers.reach(timers);
        strand
    }

    fn take_joins(&mut self, count: usize) -> u32 {
        if let Some(block) = self.free_joins.get_mut(count).and_then(Vec::pop) {
            self.joins[block as usize..block as usize + count].fill(0);
            return block;
        }
        let block = self.joins.len();
        self.joins.resize(block + count, 0);
        block as u32
    }

    /// A step has been done; what comes after.
    fn done(&mut self, strand: u32) -> u32 {
        let found = self.strands[strand];
        let step = &self.program.steps[found.step as usize];
        if step.figures != NONE {
            self.series.sums[step.figures as usize] += 1.0;
            self.series.sums[step.figures as usize + 1] += self.now - found.began;
        }
        if step.replies && !self.visits[found.visit].replied {
            self.reply(strand, found.visit);
        } else if step.phase {
            self.end_phase(found.visit);
        }
        step.after
    }

    fn end_phase(&mut self, visit: u32) {
        let found = &mut self.visits[visit];
        let sum = found.entry as usize * ENTRY_SUMS + 1 + usize::from(found.phase);
        self.series.sums[sum] += self.now - found.since;
        found.since = self.now;
        found.phase = (found.phase + 1).min(2);
    }

    /// The first phase has ended: the request is answered or passed on.
    fn reply(&mut self, strand: u32, visit: u32) {
        self.end_phase(visit);
        let found = &mut self.visits[visit];
        found.replied = true;
        if self.program.is_source(self.program.entries[found.entry as usize].task) {
            return;
        }
        let (entry, client) = (found.entry, found.client);
        let forwards = self.program.entries[entry as usize].forwards;
        if forwards.count > 0 {
            let at = self.random.uniform();
            let forwards = &self.program.forwards[forwards.range()];
            if let Some(forward) = forwards.iter().find(|forward| at < forward.upto) {
                let from = *found;
                let copy = self.program.copy_of(from.instance);
                let on = self.request(Visit {
                    entry: forward.entry,
                    instance: self.program.instance(forward.entry, copy),
                    figures: forward.figures,
                    sent: self.now,
                    next: NONE,
                    ..from
                });
                self.visits[visit].client = NONE;
                self.visits[visit].open = false;
                self.probe.forward(self.now, strand, on, forward.entry);
                self.deliver(on);
                return;
            }
        }
        let response = self.now - found.origin;
        self.sketches[found.origin_entry as usize].add(response);
        if found.open {
            let sum = found.origin_entry as usize * ENTRY_SUMS + OPEN;
            self.series.sums[sum] += 1.0;
            self.series.sums[sum + 1] += response;
        }
        let last = self.program.steps[self.strands[strand].step as usize].after == 0 && found.strands == 1;
        self.probe.reply(self.now, strand, (client != NONE).then_some(client), last);
        if client != NONE {
            found.client = NONE;
            self.ready.push(client);
        }
    }

    /// What the strand does next, or nothing if it ends.
    fn after(&mut self, strand: u32, number: u32) -> Option<Next> {
        let program = self.program;
        match program.afters[number as usize] {
            After::End => {
                self.end(strand);
                None
            }
            After::Next(step) => Some(Next::Begin(step)),
            After::Choose(targets) => {
                let targets = &program.targets[targets.range()];
                let total = targets.last().map_or(0.0, |target| target.upto);
                let at = self.random.uniform() * total;
                let target = targets.iter().find(|target| at < target.upto).or(targets.last());
                target.map(|target| Next::Begin(target.step))
            }
            After::Loop { bodies, total, end } => {
                // Geometric, like calls.
                let at = self.random.uniform() * (1.0 + total) - 1.0;
                let bodies = &program.targets[bodies.range()];
                let body = bodies.iter().find(|body| (0.0..body.upto).contains(&at));
                Some(body.map_or(Next::After(end), |body| Next::Begin(body.step)))
            }
            After::Fork(targets) => {
                let visit = self.strands[strand].visit;
                self.visits[visit].strands += targets.count;
                let first = self.ready.len();
                for target in &program.targets[targets.range()] {
                    let branch = self.strand(visit, target.step);
                    self.probe.fork(self.now, strand, branch);
                    self.ready.push(branch);
                    // They are put in any order.
                    let count = self.ready.len() - first;
                    let other = first + self.random.below(count);
                    self.ready.swap(first + count - 1, other);
                }
                self.finish_strand(strand);
                None
            }
            After::Join { slot, need, total, then } => {
                let visit = self.strands[strand].visit;
                let counter = &mut self.joins[(self.visits[visit].joins + slot) as usize];
                *counter += 1;
                let goes_on = *counter == need;
                if *counter == total {
                    *counter = 0;
                }
                self.probe.join(self.now, strand, goes_on);
                if goes_on {
                    return Some(Next::After(then));
                }
                self.finish_strand(strand);
                None
            }
        }
    }

    fn end(&mut self, strand: u32) {
        let visit = self.strands[strand].visit;
        if self.visits[visit].strands == 1 && !self.visits[visit].replied {
            // Activities that never answer: the request is taken as answered at their end.
            self.reply(strand, visit);
        }
        self.probe.end(self.now, strand);
        self.finish_strand(strand);
    }

    fn finish_strand(&mut self, strand: u32) {
        let visit = self.strands[strand].visit;
        self.visits[visit].strands -= 1;
        if self.visits[visit].strands == 0 {
            self.strands.give(strand);
            self.finish(visit);
        } else {
            self.strands.give(strand);
        }
    }

    /// A visit has ended: its thread is free.
    fn finish(&mut self, visit: u32) {
        let found = self.visits[visit];
        let entry = found.entry as usize;
        let plan = &self.program.entries[entry];
        let sum = entry * ENTRY_SUMS;
        self.series.sums[sum] += 1.0;
        self.series.sums[sum + 1 + usize::from(found.phase)] += self.now - found.since;
        self.probe.finish(self.now, visit);
        if plan.joins > 0 {
            let count = plan.joins as usize;
            if self.free_joins.len() <= count {
                self.free_joins.resize(count + 1, Vec::new());
            }
            self.free_joins[count].push(found.joins);
        }
        if self.program.is_source(plan.task) {
            self.sketches[entry].add(self.now - found.begun);
            self.cycle(visit);
            return;
        }
        self.visits.give(visit);
        let taken_by = match plan.role {
            // Whoever waited for a semaphore or a lock has it until someone gives it back.
            Some(SemaphoreRole::Wait | SemaphoreRole::ReadLock | SemaphoreRole::WriteLock) => return,
            Some(SemaphoreRole::Signal) => Some(SemaphoreRole::Wait),
            Some(SemaphoreRole::ReadUnlock) => Some(SemaphoreRole::ReadLock),
            Some(SemaphoreRole::WriteUnlock) => Some(SemaphoreRole::WriteLock),
            None => None,
        };
        self.free(found.instance);
        let Some(role) = taken_by else { return };
        let held = self.lock(found.instance, role);
        if self.threads[held as usize].busy == 0 {
            return;
        }
        if role == SemaphoreRole::Wait {
            return self.free(held);
        }
        self.threads[held as usize].busy -= 1;
        self.pass_lock_on(held);
    }

    /// All who wait for a lock and can have it now take it; of a reader and a writer, who came first.
    fn pass_lock_on(&mut self, instance: u32) {
        let roles = [SemaphoreRole::ReadLock, SemaphoreRole::WriteLock].map(|role| (role, self.lock(instance, role)));
        loop {
            let able = roles.iter().filter(|(role, instance)| self.admits(Some(*role), *instance));
            let first = able.filter_map(|(_, instance)| {
                let visit = self.threads[*instance as usize].queue.first()?;
                Some((self.visits[visit].sent, *instance))
            });
            let Some((_, instance)) = first.min_by(|one, other| one.0.total_cmp(&other.0)) else { return };
            let Some(visit) = self.threads[instance as usize].queue.pop(&self.visits) else { return };
            self.accept(visit);
        }
    }

    /// A thread is free and takes the next request.
    fn free(&mut self, instance: u32) {
        let found = &mut self.threads[instance as usize];
        found.busy -= 1;
        let next = match found.queue.pop(&self.visits) {
            None => found.ranked.pop().map(Ranked::number),
            next => next,
        };
        if let Some(visit) = next {
            self.accept(visit);
        }
    }

    /// A customer thinks, then begins a cycle.
    fn cycle(&mut self, visit: u32) {
        let task = self.program.instances[self.visits[visit].instance as usize].task;
        let strand = self.strand(visit, NONE);
        self.strands[strand].state = State::Thinking;
        let think = self.program.tasks[task as usize].think.sample(&mut self.random);
        if think > 0.0 {
            self.timers.set(self.first_strand + strand as usize, self.now + think);
        } else {
            self.ready.push(strand);
        }
    }

    fn begin_cycle(&mut self, strand: u32) {
        let visit = self.strands[strand].visit;
        self.strands.give(strand);
        let task = self.program.instances[self.visits[visit].instance as usize].task;
        let entries = &self.program.model.tasks[task as usize].entries;
        let which = if entries.len() > 1 { self.random.below(entries.len()) } else { 0 };
        let entry = entries[which].0;
        self.visits[visit].entry = entry;
        self.visits[visit].client = NONE;
        self.probe.cycle(self.now, visit, entry);
        let first = self.begin(visit);
        self.probe.accept(self.now, visit, first);
        let step = self.strands[first].step;
        self.advance(first, Next::Begin(step));
    }

    fn next_arrival(&mut self, number: usize) {
        let entry = self.arrivals[number].0;
        let time = self.program.entries[entry as usize].open.sample(&mut self.random);
        self.timers.set(self.first_arrival + number, self.now + time);
    }

    /// A request comes from outside.
    fn arrive(&mut self, number: usize) {
        let (entry, copy) = self.arrivals[number];
        self.next_arrival(number);
        let visit = self.request(Visit {
            entry,
            instance: self.program.instance(entry, copy),
            client: NONE,
            figures: NONE,
            sent: self.now,
            origin: self.now,
            origin_entry: entry,
            open: true,
            ..Visit::default()
        });
        self.probe.open(self.now, visit, entry);
        self.deliver(visit);
    }
}

/// A time that is small for the model, for the first bins of its series.
fn smallest(program: &SimulationProgram) -> f64 {
    use super::random::Times;
    let mean = |times: &Times| match *times {
        Times::Zero => f64::INFINITY,
        Times::Constant(mean) | Times::Exponential(mean) => mean,
        Times::Stages { constant, scale, count, .. } => constant + scale * count,
        Times::Hyper { means, .. } => means[0],
    };
    let steps = program.steps.iter().flat_map(|step| [mean(&step.slice), mean(&step.think)]);
    let others = program.tasks.iter().map(|task| mean(&task.think));
    let open = program.entries.iter().map(|entry| mean(&entry.open));
    let least = steps.chain(others).chain(open).fold(f64::INFINITY, f64::min);
    if least.is_finite() { least.max(1e-200) } else { 1.0 }
}
