//! A model's solution, and its caveats.

use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::lqn::model::Model;
use crate::lqn::results::Results;
use crate::pipeline::source::Source;
use crate::solve::codes;
use crate::study::backlog::{Backlog, beside_backlogs};
use crate::study::outlook::Outlook;
use crate::study::{self, ScenarioResult, about_scenarios};

/// What a solver made of a model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Solution {
    /// The results. They say by themselves whether they converged, and the caveats of the solver.
    pub results: Results,
    /// Warnings about the model.
    pub doubtful: Vec<Diagnostic>,
    /// Consumers of asynchronous messages that get more than they serve. The results are those beside their growing backlogs.
    pub backlogs: Vec<Backlog>,
}

/// An error about calls that come back, with a way out where threads may be guessed: messages of requests that a task serves at once look like calls of each other.
fn with_guess(error: Diagnostic, may_guess: bool) -> Diagnostic {
    if may_guess && [codes::CYCLE, codes::STANDSTILL].contains(&error.code) {
        error.with_hint(
            "messages of requests that a task serves at once look like calls of each other: `--guess-threads` tells them apart",
        )
    } else {
        error
    }
}

impl Source {
    /// Checks the model, and solves it by a solver such as [`solve()`](crate::solve::solve()).
    ///
    /// # Errors
    /// When the model makes no sense to a solver, or the solver refuses it; with all that is doubtful about the model.
    pub fn solve(
        &self,
        mut solver: impl FnMut(&Model) -> Result<Results, Diagnostics>,
    ) -> Result<Solution, Diagnostics> {
        let mut doubtful = self.doubtful_but_sound()?;
        let (results, backlogs) = match solver(&self.model) {
            Ok(results) if results.convergence.saturated => {
                beside_backlogs(&self.model, self.origins.as_ref(), &mut solver)?.unwrap_or((results, Vec::new()))
            }
            Ok(results) => (results, Vec::new()),
            Err(Diagnostics(found)) => {
                let Diagnostics(found) = about_scenarios(&self.model, self.origins.as_ref(), Diagnostics(found));
                doubtful.extend(found.into_iter().map(|own| with_guess(own, self.may_guess_threads())));
                return Err(Diagnostics(doubtful));
            }
        };
        doubtful.retain(|finding| finding.severity == Severity::Warning);
        let origins = self.origins.as_ref();
        doubtful.extend(origins.and_then(study::few_operations));
        Ok(Solution { results, doubtful, backlogs })
    }

    /// Whether the model was made of messages alone, and the threads that they belong to were not guessed.
    fn may_guess_threads(&self) -> bool {
        let of_messages = self.reduced.as_ref().filter(|reduced| reduced.interactions.is_some());
        of_messages.is_some_and(|reduced| !reduced.reduction.submodel.concurrent)
    }

    /// All that is doubtful about a solution of the model. What there is to know first of it tells more where it is given.
    pub fn doubts(&self, solution: &Solution, outlook: Option<&Outlook>) -> Vec<Diagnostic> {
        let (model, results) = (&self.model, &solution.results);
        let mut doubts = solution.doubtful.clone();
        doubts.extend(solution.backlogs.iter().map(|backlog| backlog.finding(model)));
        if let Some(origins) = &self.origins {
            doubts.extend(study::unlike_traced(model, results, origins, outlook));
            let unlike = |outlook| study::percentiles_unlike_traced(model, results, origins, outlook);
            doubts.extend(outlook.map(unlike).unwrap_or_default());
        }
        doubts
    }

    /// What the solution predicts for each scenario that was traced; nothing where the model was read from a file.
    pub fn scenarios(&self, solution: &Solution) -> Vec<ScenarioResult<'_>> {
        let origins = self.origins.as_ref();
        origins.map(|origins| ScenarioResult::all(&self.model, &solution.results, origins)).unwrap_or_default()
    }
}
