//! The layered solver: layers solved in turn until service times and throughputs agree.
//!
//! - `chains` finds the clients and their chains, `submodels` the layers and the queueing network of each;
//! - `phase_times` turns waits into times of phases, `fork_join` those of forks whose branches share servers, `thread_pools` those of
//!   tasks with several threads; `interlock` says which customers never meet, `messages` which always do;
//! - `state`, `rates` and `outer` are the iteration over the layers; `warm_start` begins it from a like model's;
//! - `exactness` says whether the result has an error of its own.

pub(crate) mod chains;
mod exactness;
pub(crate) mod fork_join;
pub(crate) mod interlock;
mod messages;
mod outer;
pub(crate) mod phase_times;
mod rates;
pub(crate) mod state;
pub(crate) mod submodels;
pub(crate) mod thread_pools;
pub(crate) mod warm_start;

use std::ops::ControlFlow;

use crate::heuristics::Heuristics;
use crate::simulate::Progress;

/// How the layered solver goes about it.
#[derive(Clone, Debug, PartialEq)]
pub struct LayeredOptions {
    /// Largest relative change of a throughput or service time between iterations at which it stops.
    pub tolerance: f64,
    /// Most outer iterations, over all restarts.
    pub iterations: u32,
    /// Models of at most so many states are solved exactly, from these; 0 for none.
    pub states: usize,
    /// Rules beyond product form.
    pub heuristics: Heuristics,
}

impl Default for LayeredOptions {
    fn default() -> Self {
        Self { tolerance: 1e-6, iterations: 600, states: 60_000, heuristics: Heuristics::default() }
    }
}

/// Sees the progress of a solver.
pub trait Observer {
    /// An outer iteration has ended with that residual.
    fn iteration(&mut self, number: u32, residual: f64);

    /// The solver starts again in another way, given in words.
    fn restart(&mut self, _how: &str) {}

    /// A part of a simulation is done. `Break` ends it with what there is.
    fn simulated(&mut self, _progress: Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Looks away.
impl Observer for () {
    fn iteration(&mut self, _number: u32, _residual: f64) {}
}
