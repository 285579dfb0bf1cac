//! How far approximations of the solver matter to answers: a simulation of the same model makes fewer.

use crate::diagnostic::quantity::time;
use crate::diagnostic::{Diagnostic, Place};
use crate::model::codes;
use crate::model::parameter::Subject;
use crate::study::figure::{Figure, Quantity};
use crate::study::outlook::{is_far, simulated};
use crate::study::sweep::{Point, Question, State, Table};

/// Responses differ where they do by more than this part of the simulated one, and by more than its interval (ours): twice what the solver is usually off by.
const FAR: f64 = 0.1;

/// Warns where the response of a point differs from a simulation of the same model. Of each subject the point is looked at at which its operations take longest, since queues are longest there.
pub fn unlike_simulated(question: &Question, subjects: &[(String, Subject)], table: &Table) -> Option<Diagnostic> {
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
    let finding = Diagnostic::warning(codes::UNLIKE_SIMULATED, Place::Nowhere, message);
    Some(finding.with_hint("ask for a percentile as well, as `--show p95`: then all figures are simulated"))
}

fn is_response(measure: &Figure) -> bool {
    matches!(measure, Figure::Mean(measure) if measure.quantity == Quantity::Response)
}
