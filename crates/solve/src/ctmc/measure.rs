//! Results from the probabilities of states.

use crate::prepare::assemble;
use crate::prepare::plan::Plan;
use dyelog_lqn::results::{ActivityResult, CallResult, Convergence, EntryResult, Results};

use super::explore::{Chain, serving};
use super::program::{NONE, Op, Program};
use super::state::{ROOTS, State};

/// Means over all states.
pub(super) struct Measured {
    /// By event: times per second.
    rates: Vec<f64>,
    /// By stack: mean number, and mean number that a processor serves.
    stacks: Vec<f64>,
    served: Vec<f64>,
}

impl Measured {
    pub fn new(program: &Program, chain: &Chain, probabilities: &[f64]) -> Self {
        let mut rates = vec![0.0; program.events];
        for &(state, event, rate) in &chain.events {
            rates[event as usize] += rate * probabilities[state as usize];
        }
        let mut stacks = vec![0.0; chain.stacks.len()];
        let mut served = vec![0.0; chain.stacks.len()];
        let mut state = State::new(program);
        for (key, probability) in chain.keys.keys().zip(probabilities) {
            state.read(program, &chain.stacks, key);
            for (number, queue) in state.queues.iter().enumerate() {
                for stack in queue {
                    stacks[*stack as usize] += probability;
                }
                // Whoever thinks keeps no processor busy.
                if let Some(station) = program.stations.get(number).filter(|_| number != program.thinking()) {
                    let (count, share) = serving(station.order, station.servers, queue.len());
                    for stack in &queue[..count] {
                        served[*stack as usize] += probability * share;
                    }
                }
            }
            for open in &state.forks {
                stacks[open.parent as usize] += probability;
            }
        }
        Self { rates, stacks, served }
    }

    /// The largest part of requests and later phases that found no room.
    pub fn lost(&self, program: &Program) -> f64 {
        let rows = (0..program.rows).map(|row| (program.row_event(row), program.lost_event(row)));
        let sources = program.sources.iter().map(|source| (source.arrival as usize, source.arrival as usize + 1));
        let entries = (0..program.entries).map(|entry| (entry, program.cut_event(entry)));
        rows.chain(sources)
            .chain(entries)
            .map(|(made, lost)| if self.rates[lost] > 0.0 { self.rates[lost] / self.rates[made] } else { 0.0 })
            .fold(0.0, f64::max)
    }

    pub fn results(&self, plan: &Plan, program: &Program, chain: &Chain, convergence: Convergence) -> Results {
        let model = plan.model;
        let counts = self.counts(program, chain);
        let rate = |count: f64, event: usize| if self.rates[event] > 0.0 { count / self.rates[event] } else { 0.0 };
        let mut entries: Vec<EntryResult> = (0..program.entries)
            .map(|index| EntryResult {
                throughput: self.rates[index],
                service: counts.held[index].map(|count| rate(count, index)),
                utilization: counts.held[index].iter().sum(),
                processor_utilization: counts.busy[index],
                open_response: None,
            })
            .collect();
        for (source, count) in program.sources.iter().zip(&counts.open) {
            if let Op::Request { to, .. } = program.ops[source.request as usize] {
                entries[to.index()].open_response = Some(rate(*count, source.arrival as usize));
            }
        }
        let (tasks, processors) = assemble::by_task_and_processor(model, &entries);
        let activities = (0..model.activities.len())
            .map(|index| {
                let work = plan.first_activity + index;
                let event = program.entries + work;
                ActivityResult { throughput: self.rates[event], service: rate(counts.works[work], event) }
            })
            .collect();
        let calls = plan
            .rows
            .iter()
            .enumerate()
            .map(|(row, &(from, to, kind))| {
                let waiting = rate(counts.waiting[row], program.row_event(row));
                CallResult {
                    from,
                    to,
                    kind,
                    waiting: assemble::beyond_rounding(waiting, entries[to.index()].service[0]),
                }
            })
            .collect();
        let doubts = plan.doubts.iter().cloned().chain(assemble::doubts_of_sources(plan)).collect();
        Results {
            solver: "layered".into(),
            convergence,
            processors,
            tasks,
            entries,
            activities,
            calls,
            doubts,
            simulated: None,
        }
    }

    fn counts(&self, program: &Program, chain: &Chain) -> Counts {
        let mut counts = Counts {
            held: vec![[0.0; 3]; program.entries],
            busy: vec![0.0; program.entries],
            works: vec![0.0; program.works],
            waiting: vec![0.0; program.rows],
            open: vec![0.0; program.sources.len()],
        };
        for stack in ROOTS..chain.stacks.len() as u32 {
            let count = self.stacks[stack as usize];
            if count <= 0.0 {
                continue;
            }
            let top = chain.stacks.top(stack) as usize;
            if program.entry[top] != NONE {
                counts.busy[program.entry[top] as usize] += self.served[stack as usize];
            }
            if let Op::Call { row, .. } | Op::Request { row, .. } | Op::Forward { row, .. } = program.ops[top]
                && row != NONE
            {
                counts.waiting[row as usize] += count;
            }
            let mut at = stack;
            while at >= ROOTS {
                counts.add(program, chain, at, count);
                at = chain.stacks.below(at);
            }
        }
        counts
    }
}

/// Mean numbers.
struct Counts {
    /// By entry and phase: threads. By entry: servers of the processor.
    held: Vec<[f64; 3]>,
    busy: Vec<f64>,
    works: Vec<f64>,
    /// By row: requests that wait for a thread.
    waiting: Vec<f64>,
    /// By source: requests without a reply.
    open: Vec<f64>,
}

impl Counts {
    /// Adds what is on top of a stack.
    fn add(&mut self, program: &Program, chain: &Chain, at: u32, count: f64) {
        let pc = chain.stacks.top(at);
        let entry = program.entry[pc as usize];
        if entry == NONE {
            if let Some(source) = program.sources.iter().position(|source| source.request == pc) {
                self.open[source] += count;
            }
            return;
        }
        if !chain.stacks.is_branch(at) {
            // Whoever has no caller below has replied.
            let source = program.cycle[program.entry_task[entry as usize] as usize] != NONE;
            let replied = usize::from(chain.stacks.below(at) == 0 && !source);
            let phase = usize::from(program.phase[pc as usize]).max(replied);
            self.held[entry as usize][phase] += count;
        }
        let work = program.work[pc as usize];
        if work != NONE {
            self.works[work as usize] += count;
        }
    }
}
