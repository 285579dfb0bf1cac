//! Curves over a growing load: each source of load by itself, the others as they are.

use crate::lqn::Model;
use crate::lqn::results::Results;
use crate::report::bottleneck::words;
use crate::report::html::bottleneck::{self, Limit};
use crate::report::html::chart::{Chart, Measure, SERIES, Series};
use crate::report::html::units::{rate, things};
use crate::study::headroom::{Growth, Headroom, LoadPoint, Saturation, Source, SourceKind, by_occupancy};

/// Charts of what growing loads come to, and what each source saturates first.
///
/// For each source there are curves of responses, of throughput and of utilisations.
pub fn growth(model: &Model, headroom: &Headroom) -> (Vec<Chart>, Vec<Limit>) {
    let charts = headroom.growths.iter().flat_map(|own| draw(model, &own.source, &headroom.sources, &own.points));
    (charts.collect(), headroom.growths.iter().map(|own| limit(model, own)).collect())
}

fn draw(model: &Model, source: &Source, all: &[Source], points: &[LoadPoint]) -> Vec<Chart> {
    let (horizontal, measure_x) = match source.kind {
        SourceKind::Closed { .. } => ("customers", Measure::Number),
        SourceKind::Open { .. } => ("arrivals", Measure::Rate),
    };
    let chart = |title: &str, vertical: &str, measure_y: Measure, series: Vec<Series>| Chart {
        group: format!("As {} grows", source.name),
        title: title.to_owned(),
        horizontal: horizontal.to_owned(),
        measure_x,
        vertical: vertical.to_owned(),
        measure_y,
        places: points.iter().map(|point| point.load).collect(),
        series,
        mark: Some((source.present(), "the model’s load".to_owned())),
    };
    let over = |value: &dyn Fn(&Results, f64) -> Option<f64>| -> Vec<Option<f64>> {
        points.iter().map(|point| point.results.as_ref().and_then(|results| value(results, point.load))).collect()
    };
    let mut responses =
        vec![Series { name: source.name.clone(), values: over(&|results, _| source.response(results)) }];
    for other in all.iter().filter(|other| other.name != source.name).take(SERIES - 1) {
        responses.push(Series { name: other.name.clone(), values: over(&|results, _| other.response(results)) });
    }
    let mut charts = vec![chart("Response times", "response", Measure::Time, responses)];
    if matches!(source.kind, SourceKind::Closed { .. }) {
        let values = over(&|results, load| Some(source.throughput(results, load)));
        let series = vec![Series { name: source.name.clone(), values }];
        charts.push(chart("Throughput", "throughput", Measure::Rate, series));
    }
    let Some(last) = points.iter().rev().find_map(|point| point.results.as_ref()) else { return charts };
    let busiest = by_occupancy(model, last).into_iter().take(SERIES);
    let series: Vec<Series> = busiest
        .map(|busy| Series {
            name: bottleneck::what(model, &busy),
            values: over(&|results, _| Some(busy.share_in(results))),
        })
        .collect();
    if !series.is_empty() {
        charts.push(chart("Utilisations", "utilisation", Measure::Share, series));
    }
    charts
}

/// What saturates first, at which load, and what comes next once that is relieved.
fn limit(model: &Model, growth: &Growth) -> Limit {
    let load = |load: f64| load_in_words(&growth.source, load);
    let later = |next: &Saturation| format!("{}, at {}", words(model, next.resource), load(next.load));
    let last = growth.points.last().map_or(0.0, |point| point.load);
    let first = growth.saturations.first();
    Limit {
        scenario: growth.source.name.clone(),
        first: first.map_or_else(|| "nothing".to_owned(), |first| words(model, first.resource)),
        at: first.map_or_else(|| format!("up to {}", load(last)), |first| load(first.load)),
        next: growth.saturations.get(1).map(later),
    }
}

fn load_in_words(source: &Source, load: f64) -> String {
    match source.kind {
        SourceKind::Closed { .. } => things(load.round() as u64, "customer", "customers"),
        SourceKind::Open { .. } => rate(load),
    }
}
