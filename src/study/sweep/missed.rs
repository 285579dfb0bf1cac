//! How far a model misses responses that were traced, and what that makes of its predictions.

use std::cell::OnceCell;

use crate::lqn::Model;
use crate::lqn::results::Results;
use crate::model::parameter::{Asked, Subject};
use crate::model::{Origins, ScenarioOrigin};
use crate::solve::{SolveOptions, solve};
use crate::study::figure::Figure;
use crate::study::interval::Interval;
use crate::study::outlook::simulated;
use crate::study::scenario::ScenarioResult;
use crate::study::sweep::question::MOST_POINTS;
use crate::study::sweep::simulated::is_response;
use crate::study::sweep::{Point, Question, Table};
use crate::study::unlike::without_queues;

/// The most by which queueing is taken to be longer or shorter than the model has it (ours): where hardly anything queues in the model, something else is missed.
const MOST: f64 = 5.0;

/// What a model makes of a scenario at the load that was traced, seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Miss {
    predicted: f64,
    traced: f64,
    /// What it takes in the model where nothing queues.
    alone: f64,
}

impl Miss {
    /// Of a scenario, where its response is further from the traced one than chance and clocks explain.
    fn of(asked: &Asked, results: &Results, alone: &(Model, Results), own: &ScenarioOrigin) -> Option<Self> {
        let traced = own.observed_response.filter(|traced| *traced > 0.0)?;
        let response = |model: &Model, results: &Results| ScenarioResult::one(model, results, own).response;
        let (predicted, alone) = (response(&asked.model, results)?, response(&alone.0, &alone.1)?);
        let chance = traced * own.response_error.map_or(0.0, f64::exp_m1);
        let is_missed = predicted > 0.0 && (predicted - traced).abs() > chance.max(own.clock_doubt);
        is_missed.then_some(Self { predicted, traced, alone })
    }

    /// What a prediction may be where it misses for the same reason, of which traces of one load leave open which it is: a time that all operations take, something in proportion to
    /// all they do, or queueing that is longer or shorter. `alone` is what is predicted where nothing queues.
    fn corrected(self, figure: f64, alone: f64) -> [f64; 3] {
        let Self { predicted, traced, alone: alone_then } = self;
        let constant = figure + traced - predicted;
        let in_proportion = figure * traced / predicted;
        let longer = (traced - alone_then).max(0.0) / (predicted - alone_then);
        let is_queueing = predicted > alone_then && longer <= MOST;
        let by_queueing = if is_queueing { alone + (figure - alone).max(0.0) * longer } else { constant };
        [constant, in_proportion, by_queueing]
    }
}

/// Misses of the scenarios of a model that was made of traces, at the load that was traced.
struct Misses<'t> {
    origins: &'t Origins,
    found: Vec<Option<Miss>>,
}

impl<'t> Misses<'t> {
    /// `None` where some scenario has another load, which tells of none how it responds.
    fn of(asked: &'t Asked, solved: impl FnOnce(&Model) -> Option<Results>) -> Option<Self> {
        let origins = asked.origins.as_ref()?;
        let results = solved(&asked.model).filter(|results| !results.convergence.saturated)?;
        let scenarios = ScenarioResult::all(&asked.model, &results, origins);
        if !scenarios.iter().all(ScenarioResult::has_traced_load) {
            return None;
        }
        let alone = without_queues(asked.model.clone())?;
        let found = origins.scenarios.iter().map(|own| Miss::of(asked, &results, &alone, own)).collect();
        Some(Self { origins, found })
    }

    /// That of the scenario whose mean response a figure is.
    fn of_figure(&self, figure: &Figure) -> Option<Miss> {
        if !is_response(figure) {
            return None;
        }
        let is_of = |own: &ScenarioOrigin| own.table() == figure.element() && *own.name == *figure.name();
        self.found[self.origins.scenarios.iter().position(is_of)?]
    }
}

/// Lets intervals of responses of a subject hold what predictions are where they miss as the model missed the traced responses. `traced` has the model at the load that was traced.
pub fn include_misses(question: &Question, (number, subject): (usize, &Subject), traced: &Asked, table: &mut Table) {
    if question.grid().len() > MOST_POINTS || !question.measures.iter().any(is_response) {
        return;
    }
    let (in_layers, in_time) = (OnceCell::new(), OnceCell::new());
    let solved = |model: &Model| Some(solve(model, &SolveOptions::default(), None, &mut ()).ok()?.results);
    let run = |model: &Model| simulated(model, &[], question.options.threads);
    for point in table.points.iter_mut().filter(|point| point.subject == number) {
        let misses = if point.is_simulated {
            in_time.get_or_init(|| Misses::of(traced, run))
        } else {
            in_layers.get_or_init(|| Misses::of(traced, solved))
        };
        if let Some(misses) = misses {
            include(question, subject, misses, point);
        }
    }
}

/// The same of a point.
fn include(question: &Question, subject: &Subject, misses: &Misses<'_>, point: &mut Point) {
    let missed: Vec<Option<Miss>> = question.measures.iter().map(|measure| misses.of_figure(measure)).collect();
    if missed.iter().all(Option::is_none) {
        return;
    }
    let Some(asked) = subject.ask(&question.changes(&point.at)).ok() else { return };
    let Some((model, results)) = without_queues(asked.model) else { return };
    point.intervals.resize(question.measures.len(), None);
    for (number, measure) in question.measures.iter().enumerate() {
        let alone = measure.of(&model, &results, asked.origins.as_ref());
        let (Some(miss), Some(figure), Some(alone)) = (missed[number], point.figures[number], alone) else { continue };
        let own = point.intervals[number].unwrap_or(Interval { low: figure, high: figure });
        let corrected = miss.corrected(figure, alone).into_iter().filter(|corrected| *corrected > 0.0);
        // What is uncertain beside that is as large a part of each.
        let all = corrected.map(|corrected| own.times(corrected / figure)).fold(own, Interval::with);
        point.intervals[number] = Some(all);
    }
}

#[cfg(test)]
mod tests {
    use super::Miss;

    #[test]
    fn what_was_missed_may_be_constant_in_proportion_or_queueing() {
        let miss = Miss { predicted: 27.0, traced: 20.5, alone: 12.0 };
        let [constant, in_proportion, by_queueing] = miss.corrected(47.0, 12.0);
        assert!((constant - 40.5).abs() < 1e-9 && (in_proportion - 47.0 * 20.5 / 27.0).abs() < 1e-9);
        assert!((by_queueing - (12.0 + 35.0 * 8.5 / 15.0)).abs() < 1e-9);
    }

    #[test]
    fn where_hardly_anything_queues_queueing_is_not_what_was_missed() {
        let miss = Miss { predicted: 12.1, traced: 20.0, alone: 12.0 };
        assert_eq!(miss.corrected(13.0, 12.0)[2], 13.0 + 7.9);
    }
}
