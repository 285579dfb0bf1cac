//! Small models exactly: all states of the whole model, and how likely each is.
//!
//! The chain follows the model to the letter: slices and geometric calls, queues in their order, threads that go on after
//! their reply, forks and joins, forwarding, locks, priorities. Slices that are not exponential become stages with their
//! mean and variance. Requests that nobody waits for are let in up to a number that is hardly ever met; what is lost
//! beyond is measured. Where there are too many states, there is no answer, and the layers have it.

mod compile;
mod explore;
mod measure;
mod program;
mod state;
mod vanishing;

use dyelog_lqn::results::{Convergence, Results};

use self::compile::Rough;
use crate::numeric::sparse_ctmc::stationary;
use crate::prepare::plan::{ModelPlan, PlannedWork};

/// Lost requests, relative to all, that are taken for none.
const NEGLIGIBLE_LOSS: f64 = 1e-6;
/// As many may be lost where there is no room for more states: the solution is exact but for them then, and a caveat says so.
const MOST_LOSS: f64 = 1e-4;
/// How many requests that nobody waits for there may be at a time, at first and at most.
const FIRST_TRUNCATION: u32 = 4;
const MOST_TRUNCATION: u32 = 130;
/// By how much probabilities may change in all in the last sweep, roughly and precisely.
const ROUGHLY: f64 = 1e-6;
const PRECISELY: f64 = 1e-10;
/// With more queues than this a state costs more, and there may be fewer.
const QUEUES: usize = 16;

/// Times as many states as in others for models that nothing else solves.
const MORE: usize = 5;

/// Solves a model if it has at most so many states: exactly, or else with customers' own work taken as exponential, and a caveat says so.
///
/// Customers are held up by nobody at work of their own that has a processor to itself. Of such work only the mean counts where
/// the servers that they go to share their time, or are exponential (Baskett et al. 1975); and hardly more does elsewhere.
pub(crate) fn solve(plan: &ModelPlan, states: usize) -> Option<Results> {
    let exact = compile::compile(plan, Rough::default());
    if let Some(results) = exact.and_then(|exact| solve_program(plan, &exact, states, true)) {
        return Some(results);
    }
    let program = compile::compile(plan, Rough { customers: true, ..Rough::default() })?;
    let works = program.taken_as_exponential.len();
    if works == 0 {
        return None;
    }
    let mut results = solve_program(plan, &program, states, false)?;
    results.caveats.push(format!(
        "too many states for an exact solution; the own work of customers in {works} {} is taken as exponential with the same mean",
        if works == 1 { "phase or activity" } else { "phases or activities" },
    ));
    Some(results)
}

/// Solves a model that layers cannot say and that was too large for [`solve`]: by more states, and with many deterministic
/// calls as geometric ones, and a caveat says so.
pub(crate) fn solve_roughly(plan: &ModelPlan, states: usize) -> Option<Results> {
    let states = states.saturating_mul(MORE);
    let long: Vec<&PlannedWork> = plan.works.iter().filter(|work| compile::is_long(work)).collect();
    if long.is_empty() {
        return solve(plan, states);
    }
    let program = compile::compile(plan, Rough { calls: true, ..Rough::default() })?;
    let mut results = solve_program(plan, &program, states, false)?;
    results.caveats.push(format!(
        "too many states for an exact solution; the deterministic calls of {} {} are taken as geometric with the same means",
        long.len(),
        if long.len() == 1 { "phase or activity" } else { "phases or activities" },
    ));
    Some(results)
}

/// Solves a program, which says just what its model says or roughly so.
fn solve_program(
    plan: &ModelPlan,
    program: &program::CtmcProgram,
    states: usize,
    to_the_letter: bool,
) -> Option<Results> {
    if states == 0 {
        return None;
    }
    let queues = program.stations.len() + program.threads.len();
    let states = states.min(states.saturating_mul(QUEUES) / queues);
    if program.fewest_states() > states as f64 {
        return None;
    }
    let mut truncation = if program.unbounded { FIRST_TRUNCATION } else { 0 };
    let mut kept = None;
    let mut before: Option<(u32, f64)> = None;
    while truncation <= MOST_TRUNCATION {
        let Some(space) = explore::explore(program, states, truncation) else { break };
        // What is lost has to be known roughly.
        let (probabilities, sweeps) = stationary(&space.levels, &space.moves, None, ROUGHLY)?;
        let loss = measure::truncation_loss(program, &space, &probabilities);
        // Each request more finds at least the states of the last one.
        let last = space.levels.iter().filter(|level| **level == truncation).count();
        let all = space.keys.len();
        if loss <= MOST_LOSS {
            kept = Some((space, probabilities, sweeps, truncation, loss));
        }
        if loss <= NEGLIGIBLE_LOSS {
            break;
        }
        // What is lost falls geometrically with the room there is.
        let next = before.map_or(2 * truncation, |(least, most)| {
            let fall = (most / loss).ln() / f64::from(truncation - least);
            let more = (2.0 * loss / NEGLIGIBLE_LOSS).ln() / fall.max(1e-3);
            truncation + (more.ceil().max(1.0) as u32).min(MOST_TRUNCATION)
        });
        if all + last * (next - truncation) as usize > states {
            break;
        }
        before = Some((truncation, loss));
        truncation = next;
    }
    let (space, probabilities, roughly, truncation, loss) = kept?;
    let (probabilities, sweeps) = stationary(&space.levels, &space.moves, Some(probabilities), PRECISELY)?;
    let exact = to_the_letter && loss <= NEGLIGIBLE_LOSS && plan.caveats.is_empty();
    let convergence = Convergence {
        converged: true,
        saturated: false,
        iterations: (roughly + sweeps) as u32,
        residual: 0.0,
        method: format!("{}Markov chain of {} states", if exact { "exact " } else { "" }, space.keys.len()),
        exact,
    };
    let mut results =
        measure::Measured::new(program, &space, &probabilities).results(plan, program, &space, convergence);
    if loss > NEGLIGIBLE_LOSS {
        results.caveats.push(format!(
            "too many states for an exact solution; at most {truncation} requests that nobody waits for are let in at a time, and \
             {loss:.0e} of them are lost"
        ));
    }
    Some(results)
}
