//! Requests: how they come to a task, are taken up, and free its thread.

use dyelog_lqn::model::Dispatching;

use super::{Engine, State, Stop, Strand, Visit};
use crate::simulate::probe::Probe;
use crate::simulate::program::{Acceptance, ENTRY_SUMS, NONE, Route};
use crate::simulate::stations::Ranked;
use crate::simulate::timers::MOST_TIMERS;

impl<P: Probe> Engine<'_, P> {
    /// Makes a call; whether the strand has to wait.
    pub(super) fn call(&mut self, strand: u32, number: u32) -> bool {
        let call = &self.program.calls[number as usize];
        let own = self.visits[self.strands[strand].visit].instance;
        let copy = match call.route {
            Route::Fan(1) => self.program.copy_of(own),
            Route::Fan(out) => self.program.copy_of(own) * out + call.copy,
            Route::Any => self.random.below(u32::MAX as usize) as u32,
        };
        let instance = self.instance(call.entry, copy);
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

    /// The instance that serves a request: that of the copy, or the one that the dispatcher of its task gives it to.
    pub(super) fn instance(&mut self, entry: u32, copy: u32) -> u32 {
        let task = self.program.entries[entry as usize].task as usize;
        let plan = &self.program.tasks[task];
        let count = plan.instances.count;
        match plan.dispatching {
            Dispatching::FanOut => self.program.instance(entry, copy),
            Dispatching::RoundRobin => {
                let turn = self.turns[task];
                self.turns[task] = (turn + 1) % count;
                self.program.instance(entry, turn)
            }
            Dispatching::ShortestQueue => self.shortest(entry, 0..count),
            Dispatching::ShortestOfTwo => {
                let one = self.random.below(count as usize) as u32;
                // Each of the others with equal probability.
                let other = (one + 1 + self.random.below(count as usize - 1) as u32) % count;
                self.shortest(entry, [one, other])
            }
        }
    }

    /// The instance with the fewest requests of those copies, one of them by chance where several have as few.
    fn shortest(&mut self, entry: u32, copies: impl IntoIterator<Item = u32>) -> u32 {
        let (mut best, mut fewest, mut alike) = (NONE, usize::MAX, 0);
        for copy in copies {
            let instance = self.program.instance(entry, copy);
            let requests = self.threads[instance as usize].requests();
            if requests < fewest {
                (best, fewest, alike) = (instance, requests, 1);
            } else if requests == fewest {
                alike += 1;
                if self.random.below(alike) == 0 {
                    best = instance;
                }
            }
        }
        best
    }

    /// A new visit, unless there are too many.
    pub(super) fn request(&mut self, visit: Visit) -> u32 {
        if self.visits.len() >= self.most_visits {
            let longest = (0..self.threads.len()).max_by_key(|&instance| self.threads[instance].requests());
            self.stopped = Some(Stop::Grows(longest.unwrap_or(0) as u32));
        }
        self.visits.take(visit)
    }

    /// A request has come to its task.
    pub(super) fn deliver(&mut self, visit: u32) {
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

    /// A thread takes the request up.
    pub(super) fn accept(&mut self, visit: u32) {
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
    pub(super) fn begin(&mut self, visit: u32) -> u32 {
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

    pub(super) fn strand(&mut self, visit: u32, step: u32) -> u32 {
        let strand = self.strands.take(Strand { visit, step, ..Strand::default() });
        let timers = self.first_strand + strand as usize + 1;
        if timers >= MOST_TIMERS {
            self.stopped = Some(Stop::Grows(self.visits[visit].instance));
        }
        self.timers.reach(timers);
        strand
    }

    pub(super) fn take_joins(&mut self, count: usize) -> u32 {
        if let Some(block) = self.free_joins.get_mut(count).and_then(Vec::pop) {
            self.joins[block as usize..block as usize + count].fill(0);
            return block;
        }
        let block = self.joins.len();
        self.joins.resize(block + count, 0);
        block as u32
    }

    /// A visit has ended: its thread is free.
    pub(super) fn finish(&mut self, visit: u32) {
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
        self.give_back(found.instance, plan.role);
    }

    /// A thread is free and takes the next request.
    pub(super) fn free(&mut self, instance: u32) {
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
}
