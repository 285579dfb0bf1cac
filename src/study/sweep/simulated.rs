//! How far approximations of the solver matter to answers: a simulation of the same model makes fewer.

use crate::diagnostic::quantity::time;
use crate::diagnostic::{Diagnostic, Place};
use crate::model::codes;
use crate::model::parameter::Subject;
use crate::solve::{SimulateOptions, SolveOptions};
use crate::study::figure::{Figure, Quantity};
use crate::study::outlook::{is_far, simulated};
use crate::study::sweep::{Point, Question, State, SweepOptions, Table};

/// Responses differ where they do by more than this part of the simulated one, and by more than its interval (ours): twice what the solver is usually off by.
const FAR: f64 = 0.1;

/// So many points are simulated at most, where approximations matter (ours): each takes some seconds.
const MOST_POINTS: usize = 16;

/// Half of the interval that they are simulated to, as a part of figures.
const PRECISION: f64 = 0.02;

/// Puts simulated figures in the place of the solver's where these differ from a simulation of the same model, and warns of it. Tables with more points than 16 stay as they are.
pub fn checked(question: &Question, subjects: &[(String, Subject)], mut table: Table) -> (Table, Option<Diagnostic>) {
    let Some(finding) = unlike_simulated(question, subjects, &table) else { return (table, None) };
    if table.points.len() > MOST_POINTS {
        let hint = "ask for a percentile as well, as `--show p95`: then all figures are simulated";
        return (table, Some(finding.with_hint(hint)));
    }
    let solver = SolveOptions::from(SimulateOptions { precision: PRECISION, ..SimulateOptions::default() });
    let options = SweepOptions { solver, has_intervals: false, ..question.options.clone() };
    let again = Question { options, ..question.clone() }.ask(subjects, &|| ());
    let (all, mut simulated) = (table.points.len(), 0);
    for (own, again) in table.points.iter_mut().zip(again.points) {
        // Simulations that are less sure than they were asked to be are nearer all the same.
        let is_solved = matches!(again.state, State::Converged | State::Doubtful(_));
        if own.state == State::Converged && is_solved && again.figures.iter().all(Option::is_some) {
            // What is uncertain makes as large a part of the simulated figures.
            let moved = own.figures.iter().zip(&again.figures).zip(&own.intervals).map(|((own, again), interval)| {
                let factor = again.zip(own.filter(|own| *own > 0.0)).map(|(again, own)| again / own);
                interval.map(|interval| interval.times(factor.unwrap_or(1.0)))
            });
            own.intervals = moved.collect();
            (own.figures, own.is_simulated) = (again.figures, true);
            simulated += 1;
        }
    }
    let which = if simulated == all { "figures".to_owned() } else { format!("figures of {simulated} of {all} points") };
    (table, Some(finding.with_note(format!("{which} are those of simulations"))))
}

/// Warns where the response of a point differs from a simulation of the same model. Of each subject the point is looked at at which its operations take longest, since queues are longest there.
fn unlike_simulated(question: &Question, subjects: &[(String, Subject)], table: &Table) -> Option<Diagnostic> {
    // Percentiles are simulated anyway.
    if table.measures.iter().any(|measure| measure.part().is_some()) {
        return None;
    }
    let responses: Vec<usize> = (0..table.measures.len()).filter(|at| is_response(&table.measures[*at])).collect();
    let longest = |subject: usize| {
        let all = table.points.iter().filter(|point| point.subject == subject && point.state == State::Converged);
        let time = |point: &Point| responses.iter().filter_map(|at| point.figures[*at]).sum::<f64>();
        all.map(|point| (time(point), point))
            .filter(|(time, _)| *time > 0.0)
            .max_by(|one, other| one.0.total_cmp(&other.0))
    };
    let mut worst: Option<(f64, f64, f64, &Figure)> = None;
    for (number, (_, subject)) in subjects.iter().enumerate() {
        let Some((_, point)) = longest(number) else { continue };
        let Ok(asked) = subject.ask(&question.changes(&point.at)) else { continue };
        let Some(results) = simulated(&asked.model, &[], question.options.threads) else { continue };
        for at in &responses {
            let Figure::Mean(measure) = &table.measures[*at] else { continue };
            let mean = measure.of(&asked.model, &results, asked.origins.as_ref());
            let Some((mean, own)) = mean.zip(point.figures[*at]) else { continue };
            let width = measure.half_width(&asked.model, &results, asked.origins.as_ref()).unwrap_or(f64::INFINITY);
            let part = (mean / own).ln().abs();
            if is_far(own, (mean, width), FAR) && part > worst.map_or(0.0, |worst| worst.0) {
                worst = Some((part, own, mean, &table.measures[*at]));
            }
        }
    }
    let (_, own, mean, measure) = worst?;
    let message = format!(
        "the solver's approximations matter here: {measure} is {}, and {} in a simulation of the same model",
        time(own),
        time(mean)
    );
    Some(Diagnostic::warning(codes::UNLIKE_SIMULATED, Place::Nowhere, message))
}

/// Whether a figure is a mean response.
pub(super) fn is_response(measure: &Figure) -> bool {
    matches!(measure, Figure::Mean(measure) if measure.quantity == Quantity::Response)
}
