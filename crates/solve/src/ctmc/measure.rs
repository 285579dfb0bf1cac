//! Results from the probabilities of states.

use crate::prepare::assemble;
use crate::prepare::caveats;
use crate::prepare::plan::ModelPlan;
use dyelog_lqn::results::{ActivityResult, Convergence, EntryResult, Results};

use super::explore::{StateSpace, serving};
use super::program::{CtmcProgram, NONE, ProgramStep};
use super::state::{ROOTS, State};

/// Means over all states.
pub(super) struct Measured {
    /// By event: times per second.
    rates: Vec<f64>,
    /// By stack: mean number, and mean number that a processor serves.
    stacks: Vec<f64>,
    served: Vec<f64>,
}

/// By event: times per second.
fn rates(program: &CtmcProgram, space: &StateSpace, probabilities: &[f64]) -> Vec<f64> {
    let mut rates = vec![0.0; program.events];
    for &(state, event, rate) in &space.events {
        rates[event as usize] += rate * probabilities[state as usize];
    }
    rates
}

/// The largest part of requests and later phases that found no room.
pub(super) fn truncation_loss(program: &CtmcProgram, space: &StateSpace, probabilities: &[f64]) -> f64 {
    let rates = rates(program, space, probabilities);
    let rows = (0..program.rows).map(|row| (program.row_event(row), program.loss_event(row)));
    let sources = program.sources.iter().map(|source| (source.arrival as usize, source.arrival as usize + 1));
    let entries = (0..program.entries).map(|entry| (entry, program.cut_event(entry)));
    rows.chain(sources)
        .chain(entries)
        .map(|(made, loss)| if rates[loss] > 0.0 { rates[loss] / rates[made] } else { 0.0 })
        .fold(0.0, f64::max)
}

impl Measured {
    pub fn new(program: &CtmcProgram, space: &StateSpace, probabilities: &[f64]) -> Self {
        let rates = rates(program, space, probabilities);
        let mut stacks = vec![0.0; space.stacks.len()];
        let mut served = vec![0.0; space.stacks.len()];
        let mut state = State::new(program);
        for (key, probability) in space.keys.keys().zip(probabilities) {
            state.read(program, &space.stacks, key);
            for (number, queue) in state.queues.iter().enumerate() {
                for stack in queue {
                    stacks[*stack as usize] += probability;
                }
                // Think time keeps no processor busy.
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

    pub fn results(
        &self,
        plan: &ModelPlan,
        program: &CtmcProgram,
        space: &StateSpace,
        convergence: Convergence,
    ) -> Results {
        let model = plan.model;
        let counts = self.counts(program, space);
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
            if let ProgramStep::Request { to, .. } = program.steps[source.request as usize] {
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
        let calls = assemble::calls(plan, &entries, |row| rate(counts.waiting[row], program.row_event(row)));
        let caveats = plan.caveats.iter().cloned().chain(caveats::of_sources(plan.model)).collect();
        Results {
            solver: "layered".into(),
            convergence,
            processors,
            tasks,
            entries,
            activities,
            calls,
            caveats,
            simulated: None,
        }
    }

    fn counts(&self, program: &CtmcProgram, space: &StateSpace) -> Counts {
        let mut counts = Counts {
            held: vec![[0.0; 3]; program.entries],
            busy: vec![0.0; program.entries],
            works: vec![0.0; program.works],
            waiting: vec![0.0; program.rows],
            open: vec![0.0; program.sources.len()],
        };
        for stack in ROOTS..space.stacks.len() as u32 {
            let count = self.stacks[stack as usize];
            if count <= 0.0 {
                continue;
            }
            let top = space.stacks.top(stack) as usize;
            if program.entry[top] != NONE {
                counts.busy[program.entry[top] as usize] += self.served[stack as usize];
            }
            if let ProgramStep::Call { row, .. } | ProgramStep::Request { row, .. } | ProgramStep::Forward { row, .. } =
                program.steps[top]
                && row != NONE
            {
                counts.waiting[row as usize] += count;
            }
            let mut at = stack;
            while at >= ROOTS {
                counts.add(program, space, at, count);
                at = space.stacks.below(at);
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
    fn add(&mut self, program: &CtmcProgram, space: &StateSpace, at: u32, count: f64) {
        let step = space.stacks.top(at);
        let entry = program.entry[step as usize];
        if entry == NONE {
            if let Some(source) = program.sources.iter().position(|source| source.request == step) {
                self.open[source] += count;
            }
            return;
        }
        if !space.stacks.is_branch(at) {
            // A request without a caller below has replied.
            let source = program.cycle[program.entry_task[entry as usize] as usize] != NONE;
            let replied = usize::from(space.stacks.below(at) == 0 && !source);
            let phase = usize::from(program.phase[step as usize]).max(replied);
            self.held[entry as usize][phase] += count;
        }
        let work = program.work[step as usize];
        if work != NONE {
            self.works[work as usize] += count;
        }
    }
}
