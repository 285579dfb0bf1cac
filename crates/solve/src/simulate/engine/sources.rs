//! Sources of load: customers and their cycles, and open arrivals.

use super::{Engine, Next, State, Stop, Visit};
use crate::simulate::probe::Probe;
use crate::simulate::program::{NONE, SimulationProgram};
use crate::simulate::random::Times;

impl<P: Probe> Engine<'_, P> {
    pub(super) fn start(&mut self, customers: usize) {
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

    /// A customer thinks, then begins a cycle.
    pub(super) fn cycle(&mut self, visit: u32) {
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

    pub(super) fn begin_cycle(&mut self, strand: u32) {
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

    pub(super) fn next_arrival(&mut self, number: usize) {
        let entry = self.arrivals[number].0;
        let time = self.program.entries[entry as usize].open.sample(&mut self.random);
        self.timers.set(self.first_arrival + number, self.now + time);
    }

    /// A request comes from outside.
    pub(super) fn arrive(&mut self, number: usize) {
        let (entry, copy) = self.arrivals[number];
        self.next_arrival(number);
        let instance = self.instance(entry, copy);
        let visit = self.request(Visit {
            entry,
            instance,
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
pub(super) fn smallest(program: &SimulationProgram) -> f64 {
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
