//! Trying a point: the model with its changes, solved or simulated, held against the goals.

use crate::diagnostic::Diagnostics;
use crate::lqn::Model;
use crate::lqn::results::Results;
use crate::model::parameter::{Asked, Change, Subject};
use crate::solve::bounds::{Resource, bounds};
use crate::solve::{LayeredOptions, SimulateOptions, SolveOptions, WarmStart, solve};
use crate::study::about_scenarios;
use crate::study::bottleneck::busiest;
use crate::study::search::Verdict;
use crate::study::search::{Goal, Reached};
use crate::study::sweep::State;

/// A simulation that cannot tell is made again with twice the precision, so many times.
const FINER: usize = 2;

/// How points are solved.
#[derive(Clone, Debug, PartialEq)]
pub enum Method {
    /// In layers.
    Layered(LayeredOptions),
    /// By simulation.
    Simulated(SimulateOptions),
}

/// What an evaluation found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Evaluation {
    /// How each goal stands.
    pub reached: Vec<Reached>,
    /// How far it can be relied on.
    pub state: State,
    /// Whether the solver has no error of its own beside its bound or its intervals.
    pub exact: bool,
    /// What is busiest, if anything has a limit.
    pub busiest: Option<Busy>,
}

impl Evaluation {
    /// The least of the margins.
    pub fn margin(&self) -> f64 {
        self.reached.iter().map(|reached| reached.margin).fold(f64::INFINITY, f64::min)
    }
}

/// Something that has a limit, and how near it is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Busy {
    /// `processor` or `task`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// The busy part of its servers or threads.
    pub part: f64,
    /// Whether it is saturated.
    pub saturated: bool,
}

/// Tries points of a subject against goals.
#[derive(Clone, Copy, Debug)]
pub struct Evaluator<'a> {
    /// What the question is about.
    pub subject: &'a Subject,
    /// The goals.
    pub goals: &'a [Goal],
    /// How points are solved.
    pub method: &'a Method,
}

impl Evaluator<'_> {
    /// Tries a point, in layers from where the solver stood last.
    pub fn attempt(&self, changes: &[Change], warm_start: &mut Option<WarmStart>) -> (Verdict, Evaluation) {
        let tried = self.subject.ask(changes).and_then(|asked| match self.overloaded(&asked.model) {
            Some(busy) => Ok(self.unsteady(busy)),
            None => self.solve(&asked, warm_start).map(|results| self.evaluate(&asked, &results)),
        });
        match tried {
            Ok(found) => found,
            Err(reasons) => {
                let Asked { model, origins, .. } = self.subject.base();
                let state = State::Failed(about_scenarios(model, origins.as_ref(), reasons).to_string());
                (Verdict::Unknown, Evaluation { reached: Vec::new(), state, exact: true, busiest: None })
            }
        }
    }

    /// A processor of which open arrivals ask for all that it has: no simulation is needed to see that.
    fn overloaded(&self, model: &Model) -> Option<Busy> {
        if matches!(self.method, Method::Layered(_)) {
            return None;
        }
        let rooms = bounds(model).ok()?.rooms();
        rooms.iter().filter(|room| room.utilization >= 1.0).find_map(|room| match room.resource {
            Resource::Processor(id) => {
                let name = model.processors[id.index()].name.to_string();
                Some(Busy { kind: "processor", name, part: 1.0, saturated: true })
            }
            Resource::Task(_) => None,
        })
    }

    fn unsteady(&self, busy: Busy) -> (Verdict, Evaluation) {
        let reason = format!(
            "processor `{}` is saturated: open arrivals ask for more than it has, so there is no steady state",
            busy.name
        );
        let reached = vec![Reached::nothing(Verdict::Missed); self.goals.len()];
        (Verdict::Missed, Evaluation { reached, state: State::Doubtful(reason), exact: true, busiest: Some(busy) })
    }

    fn solve(&self, asked: &Asked, warm_start: &mut Option<WarmStart>) -> Result<Results, Diagnostics> {
        match self.method {
            Method::Layered(options) => {
                let found = solve(&asked.model, &options.clone().into(), warm_start.take(), &mut ())?;
                *warm_start = found.results.convergence.converged.then_some(found.warm_start);
                Ok(found.results)
            }
            Method::Simulated(options) => {
                let mut options = SolveOptions::from(options.clone());
                options.simulation.parts = self.goals.iter().filter_map(Goal::part).collect();
                let mut results = solve(&asked.model, &options, None, &mut ())?.results;
                for _ in 0..FINER {
                    let precise = results.convergence.converged;
                    if !precise || self.evaluate(asked, &results).0 != Verdict::Unknown {
                        break;
                    }
                    options.simulation.precision /= 2.0;
                    results = solve(&asked.model, &options, None, &mut ())?.results;
                }
                Ok(results)
            }
        }
    }

    fn evaluate(&self, asked: &Asked, results: &Results) -> (Verdict, Evaluation) {
        let found = self.goals.iter().map(|goal| goal.evaluate(&asked.model, results, asked.origins.as_ref()));
        let reached: Vec<Reached> = found.collect();
        let convergence = &results.convergence;
        // A simulation that ends early still has intervals, unless it never settled.
        let relied = match self.method {
            Method::Layered(_) => convergence.converged,
            Method::Simulated(_) => !convergence.saturated && convergence.residual.is_finite(),
        };
        let verdict = if convergence.saturated {
            Verdict::Missed
        } else if !relied {
            Verdict::Unknown
        } else if reached.iter().any(|reached| reached.verdict == Verdict::Missed) {
            Verdict::Missed
        } else {
            reached.iter().map(|reached| reached.verdict).max().unwrap_or(Verdict::Met)
        };
        let state = if relied { State::Converged } else { State::Doubtful(results.caveats.join("; ")) };
        // Without a steady state, figures grow for as long as one looks.
        let steady = match self.method {
            Method::Layered(_) => !convergence.saturated,
            Method::Simulated(_) => relied,
        };
        let reached = if steady { reached } else { vec![Reached::nothing(verdict); self.goals.len()] };
        let exact = convergence.exact || matches!(self.method, Method::Simulated(_));
        (verdict, Evaluation { reached, state, exact, busiest: limit(&asked.model, results) })
    }
}

fn limit(model: &Model, results: &Results) -> Option<Busy> {
    let found = busiest(model, results)?;
    let (kind, name) = match found.resource {
        Resource::Processor(id) => ("processor", &model.processors[id.index()].name),
        Resource::Task(id) => ("task", &model.tasks[id.index()].name),
    };
    Some(Busy { kind, name: name.to_string(), part: found.part, saturated: found.saturated })
}
