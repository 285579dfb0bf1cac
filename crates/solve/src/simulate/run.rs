//! How long to simulate, and by how many threads.

use std::ops::ControlFlow;

use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog_lqn::model::Model;
use dyelog_lqn::results::Results;
use dyelog_lqn::sketch::Sketch;

use super::engine::{Engine, Stop};
use super::estimate::{Batches, Estimate};
use super::probe::Probe;
use super::program::{ENTRY_SUMS, OPEN, SimulationProgram};
use super::random::Random;
use super::report;
use super::series::{Series, warm_up};
use crate::codes;

/// Events of a replication before the first look at its results.
const FIRST: u64 = 25_000;
/// A run grows by this much from look to look, at most and at least.
const GROWTH: (f64, f64) = (4.0, 1.25);

/// The part of the time measured that sketches of response times cover at least.
const SKETCHED: f64 = 0.4;

/// Parts of all responses whose percentiles are given by default.
const PARTS: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

/// How a simulation goes about it.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulateOptions {
    /// Where random numbers begin. The same seed gives the same results.
    pub seed: u64,
    /// Half width of the 95 % interval, relative to the value, at which it stops: of throughputs and cycle times of sources
    /// and of response times of open arrivals.
    pub precision: f64,
    /// Independent runs, together one sample.
    pub replications: u32,
    /// Most events, over all replications.
    pub events: u64,
    /// Threads to work on. They do not change the results.
    pub threads: usize,
    /// Parts of all responses of an entry, as 0.95, whose percentiles are given.
    pub parts: Vec<f64>,
}

impl Default for SimulateOptions {
    fn default() -> Self {
        Self { seed: 1, precision: 0.01, replications: 4, events: 100_000_000, threads: 1, parts: PARTS.to_vec() }
    }
}

/// How far a simulation has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Events simulated, over all replications.
    pub events: u64,
    /// The widest of the intervals that matter, relative to its value; infinite where there is none yet.
    pub precision: f64,
}

/// Told how far a simulation has come; may end it.
pub trait Watcher {
    /// A part of the simulation is done. `Break` ends it with what there is.
    fn progress(&mut self, progress: Progress) -> ControlFlow<()>;
}

/// Looks away.
impl Watcher for () {
    fn progress(&mut self, _: Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Simulates a model for a probe alone, until the probe is satisfied or that many events have happened. The same seed shows it the
/// same events. Returns whether it was satisfied.
///
/// # Errors
/// When the model cannot be simulated at all, as [`simulate()`].
pub fn observe(model: &Model, seed: u64, events: u64, probe: &mut dyn Probe) -> Result<bool, Diagnostics> {
    let program = SimulationProgram::new(model)?;
    let mut engine = Engine::new(&program, Random::new(seed, 0), probe);
    Ok(engine.run(events) == Stop::Done && engine.probe.satisfied())
}

/// Simulates a model until its results are precise enough.
///
/// [`Results::simulated`] has the intervals. Where precision was not reached, or there is no steady state, results are still
/// returned, with [`Convergence::converged`](dyelog_lqn::results::Convergence::converged) false and words in
/// [`Results::caveats`].
///
/// # Errors
/// When the model cannot be simulated at all: see [`codes`].
pub fn simulate(model: &Model, options: &SimulateOptions) -> Result<Results, Diagnostics> {
    simulate_watched(model, options, &mut ())
}

/// Simulates a model and tells the watcher how far it has come.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_watched(
    model: &Model,
    options: &SimulateOptions,
    watcher: &mut dyn Watcher,
) -> Result<Results, Diagnostics> {
    let program = SimulationProgram::new(model)?;
    let mut run = Run::new(&program, options);
    run.go(options, watcher);
    if run.replications.iter().any(|replication| replication.stop == Stop::Stands) {
        return Err(Diagnostic::error(codes::SOURCE, Place::Nowhere, "a cycle of a customer takes no time at all")
            .with_hint("give its reference task a think time, or some entry that it calls a demand")
            .into());
    }
    Ok(report::results(&run, options))
}

/// A replication with what it came to so far.
pub(super) struct Replication<'p> {
    pub engine: Engine<'p, ()>,
    pub stop: Stop,
    /// From when on there are times in sketches.
    pub sketched_since: f64,
    /// Bins of warm-up, once they are known.
    pub warm_up: Option<usize>,
}

/// All replications.
pub(super) struct Run<'p> {
    pub program: &'p SimulationProgram<'p>,
    pub replications: Vec<Replication<'p>>,
    pub batches: Batches,
    /// The widest of the intervals that matter, relative to its value.
    pub precision: f64,
    /// Whether the watcher ended it.
    pub ended: bool,
}

impl<'p> Run<'p> {
    fn new(program: &'p SimulationProgram<'p>, options: &SimulateOptions) -> Self {
        let replications = (0..options.replications.clamp(1, 1024))
            .map(|number| Replication {
                engine: Engine::new(program, Random::new(options.seed, u64::from(number)), ()),
                stop: Stop::Done,
                sketched_since: 0.0,
                warm_up: None,
            })
            .collect();
        Self { program, replications, batches: Batches::default(), precision: f64::INFINITY, ended: false }
    }

    fn go(&mut self, options: &SimulateOptions, watcher: &mut dyn Watcher) {
        let most = (options.events / self.replications.len() as u64).max(1);
        let mut events = FIRST.min(most);
        loop {
            self.advance(events, options.threads);
            self.look();
            let done: u64 = self.replications.iter().map(|replication| replication.engine.events).sum();
            let progress = Progress { events: done, precision: self.precision };
            let on = watcher.progress(progress);
            let stuck = self.replications.iter().any(|replication| replication.stop != Stop::Done);
            self.ended = on.is_break();
            let precise = self.precision <= options.precision;
            if (precise && self.is_sketched()) || stuck || self.ended || events >= most {
                return;
            }
            let growth = (self.precision / options.precision).powi(2) * 1.1;
            let growth = match growth {
                growth if precise || !growth.is_finite() => 2.0,
                growth => growth.clamp(GROWTH.1, GROWTH.0),
            };
            events = ((events as f64 * growth) as u64).min(most);
        }
    }

    /// Whether sketches hold most of what was measured: they begin anew when the warm-up is first known.
    fn is_sketched(&self) -> bool {
        self.replications.iter().all(|replication| {
            let series = &replication.engine.series;
            let warm_up = replication.warm_up.unwrap_or(0) as f64 * series.width();
            let now = replication.engine.now;
            now - replication.sketched_since >= SKETCHED * (now - warm_up)
        })
    }

    /// Simulates until each replication has had so many events.
    fn advance(&mut self, events: u64, threads: usize) {
        let threads = threads.clamp(1, self.replications.len());
        let share = self.replications.len().div_ceil(threads);
        let work = |replications: &mut [Replication]| {
            for replication in replications {
                replication.stop = replication.engine.run(events);
            }
        };
        std::thread::scope(|scope| {
            let mut parts = self.replications.chunks_mut(share);
            let own = parts.next();
            for part in parts {
                scope.spawn(move || work(part));
            }
            if let Some(own) = own {
                work(own);
            }
        });
    }

    /// Finds the warm-up and makes batches of what comes after it.
    ///
    /// Where a replication by itself shows none, that of the mean of all holds. For sketches it does in any case: among many
    /// replications there is nearly always one whose own has just grown by chance, and all would wait for its sketch.
    fn look(&mut self) {
        self.batches = Batches::default();
        let flows: Vec<Flow> =
            self.replications.iter().map(|replication| Flow::new(self.program, &replication.engine.series)).collect();
        let common = Flow::mean(&flows).warm_up();
        let mut settled = true;
        for (replication, flow) in self.replications.iter_mut().zip(&flows) {
            let series = &replication.engine.series;
            let bins = |time: f64| ((time / series.width()).round() as usize).min(series.len() / 2);
            replication.warm_up = flow.warm_up().or(common).map(bins);
            settled &= replication.warm_up.is_some();
            let begin = replication.warm_up.unwrap_or(series.len() / 2);
            self.batches.add(series, begin);
            let time = common.unwrap_or(begin as f64 * series.width());
            // What was sketched before is left out, unless it is most of what there is.
            if replication.sketched_since < time {
                replication.engine.sketches.iter_mut().for_each(Sketch::clear);
                replication.sketched_since = replication.engine.now;
            }
        }
        self.precision = if settled { self.widest() } else { f64::INFINITY };
    }

    /// The widest relative interval of the figures that matter.
    fn widest(&self) -> f64 {
        let estimates = self.figures();
        estimates.iter().map(|estimate| estimate.relative()).fold(0.0, f64::max)
    }

    fn figures(&self) -> Vec<Estimate> {
        let mut figures = Vec::new();
        for (number, entry) in self.program.entries.iter().enumerate() {
            let sum = number * ENTRY_SUMS;
            let source = self.program.is_source(entry.task);
            if source {
                figures.push(self.batches.rate(&[sum]));
                figures.extend((1..4).map(|phase| self.batches.mean(sum + phase, sum)));
            }
            if entry.open != super::random::Times::Zero {
                figures.push(self.batches.mean(sum + OPEN + 1, sum + OPEN));
            }
        }
        figures
    }
}

/// What the warm-up is seen by, in each bin.
struct Flow {
    /// How long a bin is.
    width: f64,
    /// Invocations.
    invocations: Vec<f64>,
    /// The time of all that is under way.
    stock: Vec<f64>,
}

impl Flow {
    fn new(program: &SimulationProgram, series: &Series) -> Self {
        let mut rates = Vec::with_capacity(series.len());
        let mut stock = Vec::with_capacity(series.len());
        for bin in 0..series.len() {
            let sums = series.bin(bin);
            let (mut invocations, mut time) = (0.0, 0.0);
            for (number, entry) in program.entries.iter().enumerate() {
                let sums = &sums[number * ENTRY_SUMS..(number + 1) * ENTRY_SUMS];
                invocations += sums[0];
                if !program.is_source(entry.task) {
                    time += sums[1] + sums[2] + sums[3];
                }
            }
            // Waiting for threads.
            time += sums[program.layout.calls..].chunks_exact(2).map(|call| call[1]).sum::<f64>();
            rates.push(invocations);
            stock.push(time);
        }
        Self { width: series.width(), invocations: rates, stock }
    }

    /// That of all replications (Welch, 1983), as long as the shortest. Bins are some power of two times as long as those of another.
    fn mean(all: &[Self]) -> Self {
        let width = all.iter().map(|own| own.width).fold(0.0, f64::max);
        let merged = |values: &dyn Fn(&Self) -> &[f64]| {
            let mut sums: Option<Vec<f64>> = None;
            for own in all {
                let bins = values(own).chunks_exact((width / own.width).round().max(1.0) as usize);
                let bins = bins.map(|bins| bins.iter().sum::<f64>());
                sums = Some(match sums {
                    None => bins.collect(),
                    Some(sums) => sums.into_iter().zip(bins).map(|(sum, value)| sum + value).collect(),
                });
            }
            sums.unwrap_or_default()
        };
        Self {
            width,
            invocations: merged(&|own| own.invocations.as_slice()),
            stock: merged(&|own| own.stock.as_slice()),
        }
    }

    /// When the warm-up ends: that of the flow and of all that is under way.
    fn warm_up(&self) -> Option<f64> {
        Some(warm_up(&self.invocations)?.max(warm_up(&self.stock)?) as f64 * self.width)
    }
}
