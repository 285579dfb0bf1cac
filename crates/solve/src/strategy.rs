//! Which solver answers: the policy, in one place.
//!
//! [`Method::Auto`] takes the Markov chain of all states where there are few of them, and layers otherwise. A model with locks has
//! no layers; it gets five times as many states.

use std::ops::ControlFlow;

use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog_lqn::model::Model;
use dyelog_lqn::results::Results;

use crate::codes;
use crate::ctmc;
use crate::layered::chains::Decomposition;
use crate::layered::state::Solver;
use crate::layered::warm_start::{WarmStart, shape, sizes};
use crate::layered::{LayeredOptions, Observer};
use crate::numeric::anderson::Anderson;
use crate::numeric::arrivals::Arrivals;
use crate::prepare::plan::ModelPlan;
use crate::prepare::{assemble, check, replicas};
use crate::simulate::{Progress, SimulateOptions, Watcher, simulate_watched};

/// Which solver is to answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// The Markov chain of all states where these are few, else the layers.
    #[default]
    Auto,
    /// As [`Method::Auto`], but an answer that is no exact one is refused.
    Exact,
    /// Approximate mean value analysis in layers, however few states there are.
    Layered,
    /// Discrete-event simulation.
    Simulation,
}

/// How [`solve`] goes about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SolveOptions {
    /// Which solver is to answer.
    pub method: Method,
    /// Of the Markov chain and the layers.
    pub layered: LayeredOptions,
    /// Of the simulation.
    pub simulation: SimulateOptions,
}

/// By [`Method::Auto`].
impl From<LayeredOptions> for SolveOptions {
    fn from(layered: LayeredOptions) -> Self {
        Self { layered, ..Self::default() }
    }
}

/// By [`Method::Simulation`].
impl From<SimulateOptions> for SolveOptions {
    fn from(simulation: SimulateOptions) -> Self {
        Self { method: Method::Simulation, simulation, ..Self::default() }
    }
}

/// What a solver found.
#[derive(Clone, Debug)]
pub struct Solution {
    /// The results. [`Convergence::method`](dyelog_lqn::results::Convergence::method) says what answered.
    pub results: Results,
    /// Where the next solution of a like model may start; of no use to the simulation.
    pub warm_start: WarmStart,
}

/// Solves a model.
///
/// # Errors
/// When the model cannot be solved, or not by that method: see [`codes`].
pub fn solve(
    model: &Model,
    options: &SolveOptions,
    warm_start: Option<WarmStart>,
    observer: &mut dyn Observer,
) -> Result<Solution, Diagnostics> {
    let found = match options.method {
        Method::Simulation => {
            let results = simulate_watched(model, &options.simulation, &mut Watch(observer))?;
            return Ok(Solution { results, warm_start: WarmStart::default() });
        }
        Method::Layered => {
            let options = LayeredOptions { states: 0, ..options.layered.clone() };
            layered_from(model, &options, warm_start, observer)
        }
        Method::Auto | Method::Exact => layered_from(model, &options.layered, warm_start, observer),
    };
    let (results, warm_start) = found?;
    if options.method == Method::Exact && !results.convergence.exact {
        return Err(inexact(&results));
    }
    Ok(Solution { results, warm_start })
}

fn inexact(results: &Results) -> Diagnostics {
    Diagnostic::error(codes::UNSUPPORTED, Place::Nowhere, "the model cannot be solved exactly")
        .with_note(format!("the best answer is that of {}", results.convergence.method))
        .with_hint("permit more states, or another method")
        .into()
}

/// Shows an observer how far a simulation has come.
struct Watch<'a>(&'a mut dyn Observer);

impl Watcher for Watch<'_> {
    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        self.0.simulated(progress)
    }
}

/// Solves a model by [`Method::Auto`].
///
/// A solution that did not converge, or is saturated, is still returned, with
/// [`Convergence::converged`](dyelog_lqn::results::Convergence::converged) false and words in [`Results::caveats`].
///
/// # Errors
/// When the model cannot be solved at all: see [`codes`].
pub fn layered(model: &Model, options: &LayeredOptions) -> Result<Results, Diagnostics> {
    layered_from(model, options, None, &mut ()).map(|found| found.0)
}

/// Solves a model from where the solver ended with a like one, if that is given and has the same structure. Gives the start for the
/// next model beside the results.
///
/// Without a start, or where the start leads nowhere, results are those of [`layered`] to the last digit. With one they are those
/// of the same fixed point, met from another side: figures differ by about as much as [`LayeredOptions::tolerance`] leaves open.
///
/// # Errors
/// As [`layered`].
pub fn layered_from(
    model: &Model,
    options: &LayeredOptions,
    start: Option<WarmStart>,
    observer: &mut dyn Observer,
) -> Result<(Results, WarmStart), Diagnostics> {
    if !replicas::any(model) {
        return one_by_one(model, Vec::new(), options, start, observer);
    }
    check::check(model)?;
    if let Some(copies) = replicas::unfold(model) {
        let (results, end) = one_by_one(&copies.model, replicas::arrivals(model), options, start, observer)?;
        return Ok((copies.aggregate(model, results), end));
    }
    let (mut results, end) = one_by_one(model, Vec::new(), options, start, observer)?;
    replicas::of_one(model, &mut results);
    Ok((results, end))
}

/// Solves a model whose replicas are taken as one queue. By task, `arrivals` tells how requests come to it, as one of several copies; it is empty where nothing is dispatched to copies.
fn one_by_one(
    model: &Model,
    arrivals: Vec<Arrivals>,
    options: &LayeredOptions,
    start: Option<WarmStart>,
    observer: &mut dyn Observer,
) -> Result<(Results, WarmStart), Diagnostics> {
    let plan = ModelPlan::new(model)?.with_arrivals(arrivals);
    // The Markov chain knows no dispatchers.
    let is_dispatched = !plan.arrivals.is_empty();
    let decomposition = Decomposition::new(&plan)?;
    let shape = shape(&decomposition);
    let mut solver = Solver::new(&plan, &decomposition, options.heuristics)?;
    let mut start = start.filter(|start| start.shape == shape);
    let sizes = sizes(&plan);
    // A model with more customers and threads has more states.
    let known = start.as_mut().and_then(|start| start.too_many.take());
    let larger = |least: &Vec<u32>| sizes.iter().zip(least).all(|(own, least)| own >= least);
    let too_many = known.filter(|least| least.len() == sizes.len() && larger(least));
    // Where one network says all that the model does, its formulas are as exact as a chain of any length.
    let may_be_exact = too_many.is_none() && options.states > 0 && !solver.is_large();
    if may_be_exact && Solver::new(&plan, &decomposition, options.heuristics)?.is_exact_after_a_sweep() {
        let convergence = solver.run(options, observer)?;
        if convergence.exact {
            let results = sound(model, assemble::results(&solver, convergence))?;
            return Ok((results, WarmStart { shape, ..WarmStart::default() }));
        }
        solver = Solver::new(&plan, &decomposition, options.heuristics)?;
    }
    if too_many.is_none()
        && !is_dispatched
        && let Some(results) = ctmc::solve(&plan, options.states)
    {
        return Ok((sound(model, results)?, WarmStart { shape, ..WarmStart::default() }));
    }
    if let Err(refusal) = has_layers(model) {
        let rough = if is_dispatched { None } else { ctmc::solve_roughly(&plan, options.states) };
        let results = rough.map_or(Err(refusal), |rough| sound(model, rough))?;
        return Ok((results, WarmStart { shape, ..WarmStart::default() }));
    }
    start = start.filter(|start| !start.row.is_empty());
    let limit = options.iterations.div_ceil(2).max(1);
    let mut acceleration = start.as_mut().map(|start| std::mem::take(&mut start.acceleration)).unwrap_or_default();
    let warm = start
        .as_mut()
        .and_then(|start| solver.go_on(start, &mut acceleration, options.tolerance, limit, observer))
        .map(|convergence| assemble::results(&solver, convergence))
        .filter(assemble::is_sound);
    let before = warm.is_some().then(|| start.and_then(WarmStart::end)).flatten();
    let results = if let Some(results) = warm {
        results
    } else {
        acceleration = Anderson::default();
        solver = Solver::new(&plan, &decomposition, options.heuristics)?;
        let convergence = solver.run(options, observer)?;
        sound(model, assemble::results(&solver, convergence))?
    };
    let mut warm_start = solver.warm_start(shape, before, acceleration.for_another());
    warm_start.too_many = (options.states > 0).then(|| too_many.unwrap_or(sizes));
    Ok((results, warm_start))
}

/// Refuses what layers cannot say.
fn has_layers(model: &Model) -> Result<(), Diagnostics> {
    let found = check::beyond_layers(model);
    if found.is_empty() { Ok(()) } else { Err(Diagnostics(found)) }
}

/// The results, if all of them are numbers.
fn sound(model: &Model, results: Results) -> Result<Results, Diagnostics> {
    if assemble::is_sound(&results) {
        Ok(results)
    } else {
        Err(check::without_numbers(model, "the layered solver found a result that is no number"))
    }
}
