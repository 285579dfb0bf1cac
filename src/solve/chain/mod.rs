//! Small models exactly: all states of the whole model, and how likely each is.
//!
//! The chain follows the model to the letter: slices and geometric calls, queues in their order, threads that go on after
//! their reply, forks and joins, forwarding, locks, priorities. Slices that are not exponential become stages with their
//! mean and variance. Requests that nobody waits for are let in up to a number that is hardly ever met; what is lost
//! beyond is measured. Where there are too many states, there is no answer, and the layers have it.

mod explore;
mod fire;
mod measure;
mod program;
mod state;
mod stationary;

use crate::lqn::results::{Convergence, Results};

use super::plan::Plan;

/// Lost requests, relative to all, that are taken for none.
const LOST: f64 = 1e-6;
/// How many requests that nobody waits for there may be at a time, from try to try.
const ROOMS: [u32; 4] = [6, 16, 45, 130];

/// Solves a model exactly if it has at most so many states.
pub(super) fn solve(plan: &Plan, states: usize) -> Option<Results> {
    if states == 0 {
        return None;
    }
    let program = program::compile(plan)?;
    let rooms = if program.unbounded { &ROOMS[..] } else { &[0] };
    for room in rooms {
        let chain = explore::explore(&program, states, *room)?;
        let (probabilities, sweeps) = stationary::stationary(chain.keys.len(), &chain.moves)?;
        let measured = measure::Measured::new(&program, &chain, &probabilities);
        if measured.lost(&program) > LOST {
            continue;
        }
        let convergence = Convergence {
            converged: true,
            iterations: sweeps as u32,
            residual: 0.0,
            method: format!("exact Markov chain of {} states", chain.keys.len()),
        };
        return Some(measured.results(plan, &program, &chain, convergence));
    }
    None
}
