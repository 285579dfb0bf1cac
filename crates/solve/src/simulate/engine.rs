//! The simulation proper.
//!
//! A *visit* is an invocation of an entry, from the moment that it is asked for. A *strand* is what runs on its behalf: one,
//! or several between an AND-fork and its join. A strand is on a processor, delayed, waits for an answer, or is ready: what
//! is ready is done at once, in turn, before the next timer goes off. Nothing recurses, and nothing is allocated but when
//! there are more visits or strands than ever before.

mod flow;
mod locks;
mod requests;
mod sources;

use std::collections::BinaryHeap;

use dyelog_lqn::sketch::Sketch;

use super::pool::{Pool, Queue};
use super::probe::Probe;
use super::program::{ENTRY_SUMS, NONE, PROCESSOR_TIME, SimulationProgram};
use super::random::Random;
use super::series::Series;
use super::stations::{Ranked, Running};
use super::timers::Timers;

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
    Yielding,
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

impl Threads {
    /// The requests there: served, or waiting.
    fn requests(&self) -> usize {
        self.queue.len() + self.ranked.len() + self.busy as usize
    }
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
    /// By task: the copy that has the next turn.
    turns: Vec<u32>,
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
            series: Series::new(program.layout.count, sources::smallest(program)),
            sketches: vec![Sketch::default(); program.entries.len()],
            random,
            timers: Timers::new(first_strand),
            first_strand,
            arrivals,
            first_arrival,
            stations: program.stations.iter().map(Running::new).collect(),
            threads: program.instances.iter().map(|_| Threads::default()).collect(),
            turns: vec![0; program.tasks.len()],
            strands: Pool::default(),
            visits: Pool::default(),
            joins: Vec::new(),
            free_joins: Vec::new(),
            ready: Vec::new(),
            most_visits: customers + program.most_requests,
            order: 0,
            stopped: None,
        };
        engine.start(customers);
        engine
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
                self.timer_expired(timer);
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

    fn timer_expired(&mut self, timer: usize) {
        if timer >= self.first_strand {
            let strand = (timer - self.first_strand) as u32;
            match self.strands[strand].state {
                State::Served => self.advance(strand, Next::Sliced),
                State::Thinking => self.begin_cycle(strand),
                State::Delayed => self.advance(strand, Next::Slice),
                State::Fresh | State::Waiting | State::Yielding => {}
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
            State::Yielding => {
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
                    // Whether the server or its client goes on first after an answer is not defined. A server that has done
                    // its work takes its next request before anyone goes on.
                    if after != 0
                        && self.ready.len() > ready
                        && let Some(other) = self.ready.pop()
                    {
                        if self.random.uniform() < 0.5 {
                            let found = &mut self.strands[strand];
                            found.state = State::Yielding;
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
}
