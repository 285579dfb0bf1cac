//! Curves over a growing load: each source of load by itself, the others as they are.

use crate::lqn::results::Results;
use crate::lqn::{EntryId, Model, Multiplicity, Scheduling, TaskId};
use crate::model::{Load, Origins};
use crate::report::html::bottleneck::{self, Limit};
use crate::report::html::chart::{Chart, Measure, SERIES, Series};
use crate::report::html::units::{rate, things};

/// Most sources of load whose growth is followed.
const SOURCES: usize = 6;

/// Places on the axis of load.
const PLACES: u32 = 12;

/// Most customers that a sweep goes up to.
const CUSTOMERS: u32 = 4096;

/// Where an element counts as saturated, as a share of its servers.
const SATURATED: f64 = 0.95;

/// A source of load.
#[derive(Clone, Debug)]
struct Source {
    name: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Customers.
    Closed { task: TaskId, population: u32 },
    /// Arrivals per second, spread over entries in proportion: at each of them so many at a rate of one.
    Open { entries: Vec<(EntryId, f64)>, rate: f64 },
}

/// What a load comes to: responses and throughput by source, and how busy elements are.
struct Point {
    load: f64,
    results: Option<Results>,
}

/// Solves models of one source under ascending loads; gives nothing where it cannot.
pub type Solve<'s> = dyn FnMut(&[f64], &[Model]) -> Vec<Option<Results>> + 's;

/// Solves the model under growing loads, with a solver that gives nothing where it cannot, and draws what comes of it.
///
/// For each scenario (or, of a model that was not made of traces, each reference task and each entry with open arrivals)
/// there are curves of responses, of throughput and of utilisations; and what saturates first.
pub fn growth(model: &Model, origins: Option<&Origins>, solve: &mut Solve<'_>) -> (Vec<Chart>, Vec<Limit>) {
    let sources = sources(model, origins);
    let (mut charts, mut limits) = (Vec::new(), Vec::new());
    for source in sources.iter().take(SOURCES) {
        let points = sweep(model, source, solve);
        if points.iter().filter(|point| point.results.is_some()).count() > 1 {
            charts.extend(draw(model, source, &sources, &points));
            limits.push(limit(model, source, &points));
        }
    }
    (charts, limits)
}

fn sources(model: &Model, origins: Option<&Origins>) -> Vec<Source> {
    let closed = |name: &str, task: TaskId| match model.tasks[task.index()].multiplicity {
        Multiplicity::Finite(population) => {
            Some(Source { name: name.to_owned(), kind: Kind::Closed { task, population } })
        }
        Multiplicity::Infinite => None,
    };
    let Some(origins) = origins else {
        let tasks = model.tasks.iter().enumerate().filter(|(_, task)| task.scheduling == Scheduling::Reference);
        let open = model.entries.iter().enumerate().filter_map(|(place, entry)| {
            let rate = entry.open_arrival_rate.filter(|rate| *rate > 0.0)?;
            let kind = Kind::Open { entries: vec![(EntryId::from(place), 1.0)], rate };
            Some(Source { name: entry.name.to_string(), kind })
        });
        return tasks.filter_map(|(place, task)| closed(&task.name, TaskId::from(place))).chain(open).collect();
    };
    let scenario = |scenario: &crate::model::ScenarioOrigin| match (scenario.load, scenario.customer) {
        (Load::Closed { .. }, Some(task)) => closed(&scenario.name, task),
        (Load::Open { rate }, _) if rate > 0.0 && !scenario.first.is_empty() => {
            let kind = Kind::Open { entries: scenario.first.clone(), rate };
            Some(Source { name: scenario.name.to_string(), kind })
        }
        _ => None,
    };
    origins.scenarios.iter().filter_map(scenario).collect()
}

impl Source {
    fn today(&self) -> f64 {
        match self.kind {
            Kind::Closed { population, .. } => f64::from(population),
            Kind::Open { rate, .. } => rate,
        }
    }

    /// The model under another load of this source.
    fn under(&self, model: &Model, load: f64) -> Model {
        let mut changed = model.clone();
        match &self.kind {
            Kind::Closed { task, .. } => {
                changed.tasks[task.index()].multiplicity = Multiplicity::Finite((load.round() as u32).max(1));
            }
            Kind::Open { entries, rate } => {
                for (entry, requests) in entries {
                    if let Some(arrivals) = &mut changed.entries[entry.index()].open_arrival_rate {
                        *arrivals = (*arrivals + requests * (load - rate)).max(0.0);
                    }
                }
            }
        }
        changed
    }

    /// The mean response, where something waits for it.
    fn response(&self, results: &Results) -> Option<f64> {
        match &self.kind {
            Kind::Closed { task, .. } => results.tasks[task.index()].response(),
            Kind::Open { entries, .. } => {
                let response = |(entry, requests): &(EntryId, f64)| {
                    let result = &results.entries[entry.index()];
                    requests * result.open_response.unwrap_or(result.service[0])
                };
                Some(entries.iter().map(response).sum())
            }
        }
    }

    fn throughput(&self, results: &Results, load: f64) -> f64 {
        match &self.kind {
            Kind::Closed { task, .. } => results.tasks[task.index()].throughput,
            Kind::Open { .. } => load,
        }
    }

    fn load_in_words(&self, load: f64) -> String {
        match self.kind {
            Kind::Closed { .. } => things(load.round() as u64, "customer", "customers"),
            Kind::Open { .. } => rate(load),
        }
    }
}

fn sweep(model: &Model, source: &Source, solve: &mut Solve<'_>) -> Vec<Point> {
    let mut at = |loads: &[f64]| -> Vec<Point> {
        let models: Vec<Model> = loads.iter().map(|load| source.under(model, *load)).collect();
        let solved =
            solve(loads, &models).into_iter().map(|results| results.filter(|results| results.convergence.converged));
        loads.iter().zip(solved).map(|(load, results)| Point { load: *load, results }).collect()
    };
    let loads: Vec<f64> = match &source.kind {
        Kind::Closed { population, .. } => {
            let most = population.saturating_mul(4).clamp(8, CUSTOMERS.max(*population));
            let step = most.div_ceil(PLACES).max(1);
            // Today's load is among the places, so that its mark stands at a point.
            let mut loads: Vec<u32> = (1..=PLACES).map(|place| place * step).filter(|load| *load <= most).collect();
            loads.extend([1, *population]);
            loads.sort_unstable();
            loads.dedup();
            loads.into_iter().map(f64::from).collect()
        }
        Kind::Open { rate, .. } => {
            let today = at(&[*rate]).pop().and_then(|point| point.results);
            let busiest = today.and_then(|results| bottleneck::ranked(model, &results).first().map(|busy| busy.share));
            let most = (rate / busiest.unwrap_or(0.5).clamp(0.05, 1.0)).max(*rate);
            (1..=PLACES).map(|place| most * 0.98 * f64::from(place) / f64::from(PLACES)).collect()
        }
    };
    at(&loads)
}

fn draw(model: &Model, source: &Source, all: &[Source], points: &[Point]) -> Vec<Chart> {
    let (horizontal, measure_x) = match source.kind {
        Kind::Closed { .. } => ("customers", Measure::Number),
        Kind::Open { .. } => ("arrivals", Measure::Rate),
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
        mark: Some((source.today(), "the model’s load".to_owned())),
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
    if matches!(source.kind, Kind::Closed { .. }) {
        let values = over(&|results, load| Some(source.throughput(results, load)));
        let series = vec![Series { name: source.name.clone(), values }];
        charts.push(chart("Throughput", "throughput", Measure::Rate, series));
    }
    let Some(last) = points.iter().rev().find_map(|point| point.results.as_ref()) else { return charts };
    let busiest = bottleneck::ranked(model, last).into_iter().take(SERIES);
    let series: Vec<Series> = busiest
        .map(|busy| Series { name: busy.what(), values: over(&|results, _| Some(busy.share_in(results))) })
        .collect();
    if !series.is_empty() {
        charts.push(chart("Utilisations", "utilisation", Measure::Share, series));
    }
    charts
}

/// What saturates first.
fn limit(model: &Model, source: &Source, points: &[Point]) -> Limit {
    let mut saturated: Vec<(String, f64)> = Vec::new();
    for point in points {
        let Some(results) = &point.results else { continue };
        for busy in bottleneck::ranked(model, results).into_iter().take_while(|busy| busy.share >= SATURATED) {
            if saturated.iter().all(|(name, _)| *name != busy.what()) {
                saturated.push((busy.what(), point.load));
            }
        }
    }
    let words = |(name, load): &(String, f64)| format!("{name}, at {}", source.load_in_words(*load));
    let last = points.last().map_or(0.0, |point| point.load);
    Limit {
        scenario: source.name.clone(),
        first: saturated.first().map_or_else(|| "nothing".to_owned(), |(name, _)| name.clone()),
        at: match saturated.first() {
            Some((_, load)) => source.load_in_words(*load),
            None => format!("up to {}", source.load_in_words(last)),
        },
        next: saturated.get(1).map(words),
    }
}
