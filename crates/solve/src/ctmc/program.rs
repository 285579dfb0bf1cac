//! What customers and threads do, as instructions.
//!
//! Each entry becomes a piece of code: stages of exponential time at a station, and between them steps that take no time.
//! The number of a pending instruction is all that a thread remembers, so deterministic calls are unrolled and geometric
//! ones are a coin thrown after each slice. `compile` makes the code of a model.

use std::collections::BTreeSet;

use dyelog_lqn::model::{EntryId, SemaphoreRole};

/// The number of an instruction.
pub(super) type StepId = u32;
/// No element.
pub(super) const NONE: u32 = u32::MAX;

/// An instruction.
#[derive(Clone, Debug)]
pub(super) enum ProgramStep {
    /// Exponential time at a station; then, in place, another stage with some probability, else on.
    Stage { station: u32, rate: f64, more: StepId, again: f64, next: StepId },
    /// Something happens that is counted.
    Count { event: u32, next: StepId },
    /// One of them, by probability.
    Choose(Vec<(f64, StepId)>),
    /// A synchronous call; the thread waits at the task's queue, then for the reply.
    Call { to: EntryId, row: u32, next: StepId },
    /// A request that nobody waits for.
    Send { request: StepId, next: StepId },
    /// In the place of the caller of a request that nobody waits for.
    Request { to: EntryId, row: u32, dropped: u32 },
    /// In the place of the callee while a forwarded request waits.
    Forward { to: EntryId, row: u32 },
    /// The caller goes on, or its request does; so does the thread.
    Reply { forwards: Vec<(f64, StepId)>, next: StepId },
    /// Branches begin, their parent waits.
    Fork(Vec<StepId>),
    /// A branch arrives; when enough have, one goes on.
    Join { join: u32, need: u32, all: u32, next: StepId },
    /// The invocation is over.
    End,
}

/// How a station shares its servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Arrival,
    Random,
    /// Without and with pre-emption.
    Priority,
    Preemptive,
    Sharing,
    Delay,
}

/// A processor, or the place where customers think.
#[derive(Clone, Copy, Debug)]
pub(super) struct Station {
    pub order: Order,
    pub servers: f64,
}

/// A task as its queue sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threads {
    pub count: f64,
    pub order: Order,
    /// Whether it is a semaphore or a lock, whose threads are held from one request to another.
    pub lock: bool,
}

/// An open source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub rate: f64,
    pub request: StepId,
    pub arrival: u32,
}

/// A compiled model.
#[derive(Debug, Default)]
pub(super) struct CtmcProgram {
    pub steps: Vec<ProgramStep>,
    /// By instruction: its entry and its work, or [`NONE`]; its phase.
    pub entry: Vec<u32>,
    pub work: Vec<u32>,
    pub phase: Vec<u8>,
    /// By entry: first and last instruction.
    pub begin: Vec<StepId>,
    pub end: Vec<StepId>,
    pub stations: Vec<Station>,
    pub threads: Vec<Threads>,
    /// By entry.
    pub roles: Vec<Option<SemaphoreRole>>,
    pub entry_task: Vec<u32>,
    pub entry_priority: Vec<i32>,
    /// By entry: whether it goes on after its reply in threads without number, so that any number of them may.
    pub trails: Vec<bool>,
    /// By task: what processor it runs on does first.
    pub task_priority: Vec<i32>,
    /// By instruction: bits of queues, where order matters, that may be met without time passing.
    pub reach: Vec<u64>,
    /// By task: where its cycle begins, if it is a source.
    pub cycle: Vec<StepId>,
    pub customers: Vec<u32>,
    pub sources: Vec<Source>,
    /// Events: entries begun, then works begun, then rows requested, then rows lost, then entries cut short.
    pub entries: usize,
    pub works: usize,
    pub rows: usize,
    pub events: usize,
    /// Whether an entry forks, and whether requests or later phases can be under way that nobody waits for.
    pub forks: bool,
    pub unbounded: bool,
    /// Works whose slices are exponential in the program only.
    pub taken_as_exponential: BTreeSet<u32>,
}

impl CtmcProgram {
    /// The station where customers and invocations think: the last one, and nobody's processor.
    pub fn thinking(&self) -> usize {
        self.stations.len() - 1
    }

    /// A chain has at least so many states: of the customers of a source any number are at what they begin with, whatever those of
    /// others do.
    pub fn fewest_states(&self) -> f64 {
        let sources = self.cycle.iter().zip(&self.customers).filter(|(begin, _)| **begin != NONE);
        sources.filter(|(begin, _)| self.begins_with_stage(**begin)).map(|(_, count)| f64::from(*count) + 1.0).product()
    }

    /// Whether a request that begins there may come to a stage before anything else takes time or blocks.
    fn begins_with_stage(&self, begin: StepId) -> bool {
        let mut at = begin;
        for _ in 0..self.steps.len() {
            at = match &self.steps[at as usize] {
                ProgramStep::Stage { .. } => return true,
                ProgramStep::Count { next, .. } => *next,
                ProgramStep::Choose(ways) => match ways.iter().find(|(part, _)| *part > 0.0) {
                    Some((_, next)) => *next,
                    None => return false,
                },
                _ => return false,
            };
        }
        false
    }

    /// Event of a request of a row of the results.
    pub fn row_event(&self, row: usize) -> usize {
        self.entries + self.works + row
    }

    /// Event of a request that found no room.
    pub fn loss_event(&self, row: usize) -> usize {
        self.entries + self.works + self.rows + row
    }

    /// Event of an entry whose later phases found no room.
    pub fn cut_event(&self, entry: usize) -> usize {
        self.entries + self.works + 2 * self.rows + entry
    }
}

impl CtmcProgram {
    /// Finds which queues each instruction may meet.
    pub fn find_reach(&mut self) {
        let bit = |number: usize| 1_u64 << (number % 64);
        self.reach = vec![0; self.steps.len()];
        // Ends of cycles lead back, so that it takes a few passes; more than a few change nothing that matters.
        for _ in 0..8 {
            let mut changed = false;
            let mut task_reach = vec![0; self.threads.len()];
            for (entry, task) in self.entry_task.iter().enumerate() {
                task_reach[*task as usize] |= self.reach[self.begin[entry] as usize];
            }
            for step in 0..self.steps.len() {
                let of = |next: StepId| self.reach[next as usize];
                let enters = |to: EntryId| {
                    let task = self.entry_task[to.index()] as usize;
                    let queues = self.threads[task].count.is_finite();
                    of(self.begin[to.index()]) | if queues { bit(self.stations.len() + task) } else { 0 }
                };
                let found = match &self.steps[step] {
                    ProgramStep::Stage { station, .. } => match self.stations[*station as usize].order {
                        Order::Sharing | Order::Delay => 0,
                        _ => bit(*station as usize),
                    },
                    ProgramStep::Count { next, .. }
                    | ProgramStep::Reply { next, .. }
                    | ProgramStep::Join { next, .. } => of(*next),
                    ProgramStep::Choose(ways) => ways.iter().fold(0, |all, way| all | of(way.1)),
                    ProgramStep::Send { request, next } => of(*request) | of(*next),
                    ProgramStep::Call { to, .. }
                    | ProgramStep::Request { to, .. }
                    | ProgramStep::Forward { to, .. } => enters(*to),
                    ProgramStep::Fork(branches) => branches.iter().fold(0, |all, branch| all | of(*branch)),
                    ProgramStep::End => {
                        let task = self.entry_task[self.entry[step] as usize] as usize;
                        // The thread takes the next request, if one waits.
                        if self.cycle[task] == NONE { task_reach[task] } else { of(self.cycle[task]) }
                    }
                };
                changed |= found != self.reach[step];
                self.reach[step] = found;
            }
            if !changed {
                break;
            }
        }
    }
}
