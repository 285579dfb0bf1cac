//! How far figures hang on numbers of servers that traces leave open.

use crate::diagnostic::quantity::{number, time};
use crate::diagnostic::{Diagnostic, Place};
use crate::model::codes;
use crate::model::parameter::{Path, Subject};
use crate::study::figure::{Figure, Quantity};
use crate::study::interval::Interval;
use crate::study::sweep::question::MOST_POINTS;
use crate::study::sweep::{Point, Table, WrittenQuestion, set};

/// Figures that differ by less, as a part of the smaller one, are as good as the same.
const ALIKE: f64 = 0.1;

/// How many processors are named.
const SHOWN: usize = 5;

/// What a question is about, read with other servers that fit as well, and which these are. What the question sets or varies is not open.
pub fn otherwise(subject: &Subject, question: &WrittenQuestion<'_>) -> Option<(Subject, Vec<String>)> {
    let asked = question.set.iter().chain(question.vary).filter_map(|text| Path::split(text).ok());
    let asked: Vec<Path> = asked.map(|(path, _)| path).collect();
    let sets = |path: &Path, processor: &str| match path.names()[..] {
        ["defaults", "multiplicity"] => true,
        ["processor", name, "multiplicity" | "replicas"] | ["task", name, "replicas"] => name == processor,
        _ => false,
    };
    let (mut other, which) = subject.otherwise(|processor| asked.iter().any(|path| sets(path, processor)))?;
    set(&mut other, question.set).ok()?;
    Some((other, which))
}

/// Lets intervals of one subject hold what the same points are with other servers that fit as well, in sweeps whose figures have intervals. `solved` has the figures as the solver tells them, as
/// `others` has; where `taken` has others of them, what differs is as large a part of these.
pub fn include(taken: &mut Table, solved: &Table, subject: usize, others: &Table) {
    if others.points.len() > MOST_POINTS {
        return;
    }
    let own = taken.points.iter_mut().zip(&solved.points).filter(|(point, _)| point.subject == subject);
    for ((point, solved), other) in own.zip(&others.points) {
        point.intervals.resize(taken.measures.len(), None);
        for (number, measure) in taken.measures.iter().enumerate() {
            let Some(figure) = point.figures[number].filter(|_| measure.part().is_none()) else { continue };
            let factor = solved.figures[number].filter(|own| *own > 0.0).map_or(1.0, |own| figure / own);
            let certain = |figure: f64| Interval { low: figure, high: figure };
            let grows = matches!(measure.quantity(), Quantity::Response | Quantity::Service);
            let of_other = match (other.intervals.get(number).copied().flatten(), other.figures[number]) {
                (Some(interval), _) => interval.times(factor),
                (None, Some(figure)) => certain(figure).times(factor),
                (None, None) if grows => Interval { low: figure, high: f64::INFINITY },
                (None, None) => continue,
            };
            let of_both = point.intervals[number].unwrap_or(certain(figure)).with(of_other);
            point.intervals[number] = (of_both.low < of_both.high).then_some(of_both);
        }
    }
}

/// Warns where points of one subject are others with other servers that fit as well: `taken` has them as they are shown, `others` with these servers, and `which` says which these are.
pub fn hang_on_servers(taken: &Table, subject: usize, others: &Table, which: &[String]) -> Option<Diagnostic> {
    let own = taken.points.iter().filter(|point| point.subject == subject);
    let figures = |point: &Point, other: &Point| -> Vec<(f64, usize)> {
        let pairs = point.figures.iter().zip(&other.figures).enumerate();
        pairs.map(|(at, (one, other))| (apart(*one, *other), at)).collect()
    };
    let mut worst: Option<(f64, usize, &Point, &Point)> = None;
    for (point, other) in own.zip(&others.points) {
        for (apart, at) in figures(point, other) {
            if apart > worst.as_ref().map_or(ALIKE, |worst| worst.0) {
                worst = Some((apart, at, point, other));
            }
        }
    }
    let (_, at, point, other) = worst?;
    let measure = taken.measures.get(at)?;
    let shown = |point: &Point| figure(measure, point.figures[at]);
    let message = format!(
        "figures hang on numbers of servers that traces leave open: {measure} is {}, and {} with others that fit as well",
        shown(point),
        shown(other)
    );
    let mut finding = Diagnostic::warning(codes::SERVERS_FOUND, Place::Nowhere, message);
    for own in which.iter().take(SHOWN) {
        finding = finding.with_note(format!("servers of {own}"));
    }
    if which.len() > SHOWN {
        finding = finding.with_note(format!("and {} more", which.len() - SHOWN));
    }
    Some(finding.with_hint("set `multiplicity` under `[processor.NAME]` where you know it, or give measured utilisation by `--utilisation`"))
}

/// By how much two figures differ, as a part of the smaller one; without bound where only one of them is there.
fn apart(one: Option<f64>, other: Option<f64>) -> f64 {
    match (one, other) {
        (Some(one), Some(other)) if one.min(other) > 0.0 => one.max(other) / one.min(other) - 1.0,
        (Some(one), Some(other)) if one == other => 0.0,
        (None, None) => 0.0,
        _ => f64::INFINITY,
    }
}

fn figure(measure: &Figure, value: Option<f64>) -> String {
    match (value, measure.quantity()) {
        (None, _) => "without a steady state".to_owned(),
        (Some(value), Quantity::Response | Quantity::Service) => time(value),
        (Some(value), Quantity::Throughput | Quantity::Utilization) => number(value),
    }
}

#[cfg(test)]
mod tests {
    use super::apart;

    #[test]
    fn figures_are_apart_by_their_ratio() {
        assert!((apart(Some(1.5), Some(1.0)) - 0.5).abs() < 1e-12 && (apart(Some(1.0), Some(1.5)) - 0.5).abs() < 1e-12);
        assert_eq!((apart(None, None), apart(Some(0.0), Some(0.0)), apart(Some(1.0), None)), (0.0, 0.0, f64::INFINITY));
    }
}
