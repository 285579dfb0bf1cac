//! Curves over a growing load: each source of load by itself, the others as they are.

use crate::lqn::results::Results;
use crate::lqn::{EntryId, Model, Multiplicity, Scheduling, TaskId};
use crate::model::{Load, Origins};
use crate::report::bottleneck::words;
use crate::report::html::bottleneck::{self, Limit};
use crate::report::html::chart::{Chart, Measure, SERIES, Series};
use crate::report::html::units::{rate, things};
use crate::solve::bounds::{ArrivalBounds, Resource, Room, SourceBounds, arrivals, bounds};

/// Most sources of load whose growth is followed.
const SOURCES: usize = 6;

/// Places on the axis of load.
const PLACES: u32 = 20;

/// Places between the last load that has a steady state and the first that has none.
const CLOSER: u32 = 6;

/// Most customers that a sweep goes up to, if there are not more already.
const CUSTOMERS: u32 = 1_000_000;

/// How far a sweep goes: so many times the customers at which the asymptotes meet, so that what comes after is seen, and
/// this part of the arrivals that saturate.
const PAST: f64 = 2.0;
const SHORT_OF: f64 = 0.98;

/// Where an element counts as saturated, as a share of its servers.
const SATURATED: f64 = 0.95;

/// What bounds the sources, counted without queueing.
#[derive(Default)]
struct Known {
    closed: Vec<SourceBounds>,
    open: Vec<ArrivalBounds>,
    rooms: Vec<Room>,
}

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
    let (open, rooms) = arrivals(model).unwrap_or_default();
    let known = Known { closed: bounds(model).unwrap_or_default(), open, rooms };
    let (mut charts, mut limits) = (Vec::new(), Vec::new());
    for source in sources.iter().take(SOURCES) {
        let points = sweep(model, source, &known, solve);
        if points.iter().filter(|point| point.results.is_some()).count() > 1 {
            charts.extend(draw(model, source, &sources, &points));
            limits.push(limit(model, source, &known, &points));
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

    /// The loads to look at, ascending: past the bounds of closed sources, and up to those of open ones. Today's load is
    /// among them, so that its mark stands at a point.
    fn loads(&self, known: &Known) -> Vec<f64> {
        let places = (1..=PLACES).map(|place| f64::from(place) / f64::from(PLACES));
        distinct(match &self.kind {
            Kind::Closed { task, population } => {
                let own = known.closed.iter().find(|source| source.task == *task);
                let now = f64::from(*population);
                let most =
                    own.and_then(SourceBounds::saturation_point).map_or(4.0 * now, |knee| (PAST * knee).max(1.5 * now));
                let most = most.clamp(8.0, f64::from(CUSTOMERS.max(*population)));
                places.map(|part| (part * most).round().max(1.0)).chain([1.0, now]).collect()
            }
            Kind::Open { entries, rate } => {
                let most = match open_bounds(entries, *rate, known).first() {
                    Some((_, bound)) if *bound > 0.0 => SHORT_OF * bound,
                    // Others leave it nothing.
                    Some(_) => *rate,
                    None => 4.0 * rate,
                };
                places.map(|part| part * most).chain([*rate]).collect()
            }
        })
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

fn sweep(model: &Model, source: &Source, known: &Known, solve: &mut Solve<'_>) -> Vec<Point> {
    let mut at = |loads: &[f64]| -> Vec<Point> {
        let models: Vec<Model> = loads.iter().map(|load| source.under(model, *load)).collect();
        let solved =
            solve(loads, &models).into_iter().map(|results| results.filter(|results| results.convergence.converged));
        loads.iter().zip(solved).map(|(load, results)| Point { load: *load, results }).collect()
    };
    let mut points = at(&source.loads(known));
    // Threads that wait for others may all be busy well before the bound.
    let last = points.iter().rposition(|point| point.results.is_some());
    if let Some(last) = last.filter(|last| last + 1 < points.len()) {
        let after = last + 1;
        let (from, to) = (points[last].load, points[after].load);
        let between = (1..=CLOSER).map(|place| from + (to - from) * f64::from(place) / f64::from(CLOSER + 1));
        let between: Vec<f64> = match source.kind {
            Kind::Closed { .. } => {
                distinct(between.map(f64::round).filter(|load| *load > from && *load < to).collect())
            }
            Kind::Open { .. } => between.collect(),
        };
        points.splice(after..after, at(&between));
    }
    points
}

/// In ascending order, each once.
fn distinct(mut loads: Vec<f64>) -> Vec<f64> {
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    loads
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

/// Most arrivals per second of an open source beside all other arrivals, at entries that get so many of each: by what bounds
/// them, the tightest first.
fn open_bounds(entries: &[(EntryId, f64)], rate: f64, known: &Known) -> Vec<(Resource, f64)> {
    let bounds = known.rooms.iter().filter_map(|room| {
        let seconds = |(entry, requests): &(EntryId, f64)| {
            let bounds = known.open.iter().find(|bounds| bounds.entry == *entry)?;
            let limit = bounds.limits.iter().find(|limit| limit.resource == room.resource)?;
            Some(requests / limit.throughput())
        };
        let own: f64 = entries.iter().filter_map(seconds).sum();
        (own > 0.0).then(|| (room.resource, (1.0 - (room.utilization - rate * own)) / own))
    });
    let mut bounds: Vec<(Resource, f64)> = bounds.collect();
    bounds.sort_by(|left, right| left.1.total_cmp(&right.1));
    bounds
}

/// What saturates first, at which load, and what comes next once that is relieved.
fn limit(model: &Model, source: &Source, known: &Known, points: &[Point]) -> Limit {
    let saturated = match &source.kind {
        // Arrivals that are served up to the bound saturate what bounds them, there.
        Kind::Open { entries, rate } if points.last().is_some_and(|point| point.results.is_some()) => {
            let bounds = open_bounds(entries, *rate, known);
            bounds.into_iter().map(|(resource, load)| (words(model, resource), load)).collect()
        }
        _ => saturated(model, points),
    };
    let later = |(name, load): &(String, f64)| format!("{name}, at {}", source.load_in_words(*load));
    let last = points.last().map_or(0.0, |point| point.load);
    Limit {
        scenario: source.name.clone(),
        first: saturated.first().map_or_else(|| "nothing".to_owned(), |(name, _)| name.clone()),
        at: match saturated.first() {
            Some((_, load)) => source.load_in_words(*load),
            None => format!("up to {}", source.load_in_words(last)),
        },
        next: saturated.get(1).map(later),
    }
}

/// What is saturated at the points, in the order of their loads, and from which on.
fn saturated(model: &Model, points: &[Point]) -> Vec<(String, f64)> {
    let mut saturated: Vec<(String, f64)> = Vec::new();
    for point in points {
        let Some(results) = &point.results else { continue };
        for busy in bottleneck::ranked(model, results).into_iter().take_while(|busy| busy.share >= SATURATED) {
            if saturated.iter().all(|(name, _)| *name != busy.what()) {
                saturated.push((busy.what(), point.load));
            }
        }
    }
    saturated
}
