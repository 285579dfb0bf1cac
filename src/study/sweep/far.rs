//! Questions about loads that are far from the one that was traced.

use crate::diagnostic::quantity::number;
use crate::diagnostic::{Diagnostic, Place};
use crate::model::parameter::{Axis, Path, Subject};
use crate::model::{Load, ScenarioOrigin, codes};
use crate::study::sweep::Question;

/// Beyond so many times the traced load nothing tells how responses grow (ours). Of a measured ladder of loads (media of TraceWeaver, 24 to 148 operations a second), a model of the
/// smallest was off by 5 and 8 % at three and four times its load, by 18 % at five times and by 27 % at six times.
const FAR: f64 = 3.0;

/// Warns where a question is about far more load than was traced, as some of its points are.
pub fn far_from_traced(question: &Question, subject: &Subject) -> Option<Diagnostic> {
    subject.base().origins.as_ref()?;
    let greatest = |(path, axis): &(Path, Axis)| {
        let values = axis.values.iter().map(|value| value.number().unwrap_or_default());
        let greatest = values.enumerate().max_by(|one, other| one.1.total_cmp(&other.1));
        greatest.filter(|_| is_load(&path.0[0])).map_or(0, |(place, _)| place)
    };
    let all: Vec<usize> = question.axes.iter().map(greatest).collect();
    let one = (0..all.len()).map(|axis| {
        let mut at = vec![0; all.len()];
        at[axis] = all[axis];
        at
    });
    // Each load by itself, for where one setting takes the place of another.
    let mut corners: Vec<Vec<usize>> = one.chain([vec![0; all.len()], all.clone()]).collect();
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
