//! Questions about loads that are far from the one that was traced.

use crate::diagnostic::quantity::number;
use crate::diagnostic::{Diagnostic, Place};
use crate::model::parameter::Subject;
use crate::model::{Load, ScenarioOrigin, codes};
use crate::study::sweep::Question;

/// Beyond so many times the traced load nothing tells how responses grow (ours). Of a measured ladder of loads (media of TraceWeaver, 24 to 148 operations a second), a model of the
/// smallest was off by 5 and 8 % at three and four times its load, by 18 % at five times and by 27 % at six times.
const FAR: f64 = 3.0;

/// Warns where a question is about far more load than was traced, as some of its points are.
pub fn far_from_traced(question: &Question, subject: &Subject) -> Option<Diagnostic> {
    subject.base().origins.as_ref()?;
    let last = |axis: usize| question.axes[axis].1.values.len().saturating_sub(1);
    let none = vec![0; question.axes.len()];
    let all: Vec<usize> = (0..question.axes.len()).map(last).collect();
    let one = (0..question.axes.len()).filter(|axis| is_load(&question.axes[*axis].0.0[0])).map(|axis| {
        let mut at = none.clone();
        at[axis] = last(axis);
        at
    });
    let mut corners: Vec<Vec<usize>> = one.chain([none.clone(), all]).collect();
    corners.sort();
    corners.dedup();
    let times = corners.iter().filter_map(|at| {
        let origins = subject.ask(&question.changes(at)).ok()?.origins?;
        let own =
            origins.scenarios.iter().filter_map(|own| Some((times(own, subject.observed(own)?)?, own.name.clone())));
        own.max_by(|one, other| one.0.total_cmp(&other.0))
    });
    let (times, name) = times.max_by(|one, other| one.0.total_cmp(&other.0)).filter(|(times, _)| *times > FAR)?;
    let message = format!("the question is about {} times the traced load of scenario `{name}`", number(times));
    Some(
        Diagnostic::warning(codes::FAR_FROM_TRACED, Place::Nowhere, message)
            .with_note(
                "traces of one load do not tell how responses grow so far: what does not queue yet is in no interval",
            )
            .with_hint("record a second, larger load, and give both to `dyelog calibrate`"),
    )
}

/// Whether a parameter of a table may change a load.
fn is_load(table: &str) -> bool {
    matches!(table, "load" | "scenario" | "profile")
}

/// How many times as large a load is as the traced one.
fn times(own: &ScenarioOrigin, traced: &ScenarioOrigin) -> Option<f64> {
    match (own.load, traced.load) {
        (Load::Open { rate }, Load::Open { rate: before }) => Some(rate / before),
        (Load::Closed { population, .. }, Load::Closed { population: before, .. }) => {
            Some(f64::from(population) / f64::from(before))
        }
        _ => None,
    }
    .filter(|times| times.is_finite())
}
