//! How far each source of load can grow, the others as they are: the model solved up to saturation, and what saturates first.

use crate::lqn::results::Results;
use crate::lqn::{EntryId, Model, Multiplicity, Scheduling, TaskId};
use crate::model::{Load, Origins, ScenarioOrigin};
use crate::solve::bounds::{ArrivalBounds, Resource, Room, SourceBounds, bounds};
use crate::study::sweep::{Grid, SweepOptions, sweep};

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

impl Known {
    /// Nothing of a model that cannot be solved.
    fn of(model: &Model) -> Self {
        let known =
            bounds(model).map(|bounds| Self { closed: bounds.closed(), open: bounds.open(), rooms: bounds.rooms() });
        known.unwrap_or_default()
    }
}

/// A source of load: a scenario, or of a model that was not made of traces a reference task or an entry with open arrivals.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Source {
    /// Its name.
    pub name: String,
    /// How its load grows.
    pub kind: SourceKind,
}

/// How the load of a source grows.
#[derive(Clone, Debug)]
pub enum SourceKind {
    /// By its number of customers.
    Closed {
        /// The reference task.
        task: TaskId,
        /// The present number of customers.
        population: u32,
    },
    /// By its arrivals per second.
    Open {
        /// Entries that get the arrivals, and how many arrivals each gets of one arrival of the source.
        entries: Vec<(EntryId, f64)>,
        /// The present rate, per second.
        rate: f64,
    },
}

/// The model at one load of a source.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadPoint {
    /// Customers, or arrivals per second.
    pub load: f64,
    /// The results, where the solver converged.
    pub results: Option<Results>,
}

/// A resource that saturates.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Saturation {
    /// The resource.
    pub resource: Resource,
    /// The load of the source from which on it is saturated.
    pub load: f64,
}

/// How far one source of load can grow.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Growth {
    /// The source.
    pub source: Source,
    /// The model at ascending loads, the present load among them.
    pub points: Vec<LoadPoint>,
    /// What saturates, in the order of loads.
    pub saturations: Vec<Saturation>,
}

/// How far sources of load can grow.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Headroom {
    /// All sources of load.
    pub sources: Vec<Source>,
    /// Those that were followed.
    pub growths: Vec<Growth>,
}

/// Solves the model under growing loads of each source, the others as they are. `told` hears of every point that is solved, from any
/// thread.
pub fn headroom(
    model: &Model,
    origins: Option<&Origins>,
    options: &SweepOptions,
    told: &(dyn Fn() + Sync),
) -> Headroom {
    let sources = sources(model, origins);
    let known = Known::of(model);
    let mut growths = Vec::new();
    for source in sources.iter().take(SOURCES) {
        let points = follow(model, source, &known, options, told);
        if points.iter().filter(|point| point.results.is_some()).count() > 1 {
            let saturations = saturations(model, source, &known, &points);
            growths.push(Growth { source: source.clone(), points, saturations });
        }
    }
    Headroom { sources, growths }
}

fn sources(model: &Model, origins: Option<&Origins>) -> Vec<Source> {
    let closed = |name: &str, task: TaskId| match model.tasks[task.index()].multiplicity {
        Multiplicity::Finite(population) => {
            Some(Source { name: name.to_owned(), kind: SourceKind::Closed { task, population } })
        }
        Multiplicity::Infinite => None,
    };
    let Some(origins) = origins else {
        let tasks = model.tasks.iter().enumerate().filter(|(_, task)| task.scheduling == Scheduling::Reference);
        let open = model.entries.iter().enumerate().filter_map(|(place, entry)| {
            let rate = entry.open_arrival_rate.filter(|rate| *rate > 0.0)?;
            let kind = SourceKind::Open { entries: vec![(EntryId::from(place), 1.0)], rate };
            Some(Source { name: entry.name.to_string(), kind })
        });
        return tasks.filter_map(|(place, task)| closed(&task.name, TaskId::from(place))).chain(open).collect();
    };
    let scenario = |scenario: &ScenarioOrigin| match (scenario.load, scenario.customer) {
        (Load::Closed { .. }, Some(task)) => closed(&scenario.name, task),
        (Load::Open { rate }, _) if rate > 0.0 && !scenario.first.is_empty() => {
            let kind = SourceKind::Open { entries: scenario.first.clone(), rate };
            Some(Source { name: scenario.name.to_string(), kind })
        }
        _ => None,
    };
    origins.scenarios.iter().filter_map(scenario).collect()
}

impl Source {
    /// The present load.
    pub fn present(&self) -> f64 {
        match self.kind {
            SourceKind::Closed { population, .. } => f64::from(population),
            SourceKind::Open { rate, .. } => rate,
        }
    }

    /// The model under another load of this source.
    fn under(&self, model: &Model, load: f64) -> Model {
        let mut changed = model.clone();
        match &self.kind {
            SourceKind::Closed { task, .. } => {
                changed.tasks[task.index()].multiplicity = Multiplicity::Finite((load.round() as u32).max(1));
            }
            SourceKind::Open { entries, rate } => {
                for (entry, requests) in entries {
                    // A rate is that of each copy.
                    let copies = changed.copies_of(*entry);
                    if let Some(arrivals) = &mut changed.entries[entry.index()].open_arrival_rate {
                        *arrivals = (*arrivals + requests * (load - rate) / copies).max(0.0);
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
            SourceKind::Closed { task, population } => {
                let own = known.closed.iter().find(|source| source.task == *task);
                let now = f64::from(*population);
                let most = own
                    .and_then(SourceBounds::saturation_point)
                    .map_or(4.0 * now, |saturation| (PAST * saturation).max(1.5 * now));
                let most = most.clamp(8.0, f64::from(CUSTOMERS.max(*population)));
                places.map(|part| (part * most).round().max(1.0)).chain([1.0, now]).collect()
            }
            SourceKind::Open { entries, rate } => {
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

    /// The mean response, seconds, where something waits for it.
    pub fn response(&self, results: &Results) -> Option<f64> {
        match &self.kind {
            SourceKind::Closed { task, .. } => results.tasks[task.index()].response(),
            SourceKind::Open { entries, .. } => {
                let response = |(entry, requests): &(EntryId, f64)| {
                    let result = &results.entries[entry.index()];
                    requests * result.open_response.unwrap_or(result.service[0])
                };
                Some(entries.iter().map(response).sum())
            }
        }
    }

    /// Operations per second at a load.
    pub fn throughput(&self, results: &Results, load: f64) -> f64 {
        match &self.kind {
            SourceKind::Closed { task, .. } => results.tasks[task.index()].throughput,
            SourceKind::Open { .. } => load,
        }
    }
}

fn follow(
    model: &Model,
    source: &Source,
    known: &Known,
    options: &SweepOptions,
    told: &(dyn Fn() + Sync),
) -> Vec<LoadPoint> {
    let at = |loads: Vec<f64>| -> Vec<LoadPoint> {
        let grid = Grid { axes: vec![loads] };
        let build = |at: &[usize]| Ok(Box::new(source.under(model, grid.axes[0][at[0]])));
        let solved = sweep(&grid, options, build, |_, results| results.clone(), told);
        let converged = solved.into_iter().map(|results| results.ok().filter(|results| results.convergence.converged));
        grid.axes[0].iter().zip(converged).map(|(load, results)| LoadPoint { load: *load, results }).collect()
    };
    let mut points = at(source.loads(known));
    // Threads that wait for others may all be busy well before the bound.
    let last = points.iter().rposition(|point| point.results.is_some());
    if let Some(last) = last.filter(|last| last + 1 < points.len()) {
        let after = last + 1;
        let (from, to) = (points[last].load, points[after].load);
        let between = (1..=CLOSER).map(|place| from + (to - from) * f64::from(place) / f64::from(CLOSER + 1));
        let between: Vec<f64> = match source.kind {
            SourceKind::Closed { .. } => {
                distinct(between.map(f64::round).filter(|load| *load > from && *load < to).collect())
            }
            SourceKind::Open { .. } => between.collect(),
        };
        points.splice(after..after, at(between));
    }
    points
}

/// In ascending order, each once.
fn distinct(mut loads: Vec<f64>) -> Vec<f64> {
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    loads
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

/// What saturates, in the order of loads.
fn saturations(model: &Model, source: &Source, known: &Known, points: &[LoadPoint]) -> Vec<Saturation> {
    match &source.kind {
        // Arrivals that are served up to the bound saturate what bounds them, there.
        SourceKind::Open { entries, rate } if points.last().is_some_and(|point| point.results.is_some()) => {
            let bounds = open_bounds(entries, *rate, known);
            bounds.into_iter().map(|(resource, load)| Saturation { resource, load }).collect()
        }
        _ => saturated_at(model, points),
    }
}

/// What is saturated at the points, in the order of their loads, and from which on.
fn saturated_at(model: &Model, points: &[LoadPoint]) -> Vec<Saturation> {
    let mut saturated: Vec<Saturation> = Vec::new();
    for point in points {
        let Some(results) = &point.results else { continue };
        for busy in by_occupancy(model, results).into_iter().take_while(|busy| busy.share >= SATURATED) {
            if saturated.iter().all(|known| known.resource != busy.resource) {
                saturated.push(Saturation { resource: busy.resource, load: point.load });
            }
        }
    }
    saturated
}

/// A resource with a limited number of servers, and how busy they are.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Occupancy {
    /// The resource.
    pub resource: Resource,
    /// Servers of a processor, threads of a task; of one copy, as its utilisation is.
    pub servers: u64,
    /// The share of them that is busy.
    pub share: f64,
}

impl Occupancy {
    /// The share of the servers that is busy in other results of the same model.
    pub fn share_in(&self, results: &Results) -> f64 {
        let utilization = match self.resource {
            Resource::Processor(id) => results.processors.get(id.index()).map_or(0.0, |result| result.utilization),
            Resource::Task(id) => results.tasks.get(id.index()).map_or(0.0, |result| result.utilization),
        };
        utilization / self.servers as f64
    }
}

/// Processors and tasks with a limited number of servers, the busiest first.
pub fn by_occupancy(model: &Model, results: &Results) -> Vec<Occupancy> {
    let servers = |multiplicity: Multiplicity| match multiplicity {
        Multiplicity::Finite(servers) => Some(u64::from(servers.max(1))),
        Multiplicity::Infinite => None,
    };
    let processors = model.processors.iter().zip(&results.processors).enumerate();
    let processors =
        processors.filter(|(_, (_, result))| result.utilization > 0.0).filter_map(|(place, (own, result))| {
            let servers = servers(own.multiplicity)?;
            let resource = Resource::Processor(place.into());
            Some(Occupancy { resource, servers, share: result.utilization / servers as f64 })
        });
    let tasks = model.tasks.iter().zip(&results.tasks).enumerate();
    let tasks = tasks.filter(|(_, (own, _))| own.scheduling != Scheduling::Reference);
    let tasks = tasks.filter_map(|(place, (own, result))| {
        let servers = servers(own.multiplicity)?;
        Some(Occupancy { resource: Resource::Task(place.into()), servers, share: result.utilization / servers as f64 })
    });
    let mut all: Vec<Occupancy> = processors.chain(tasks).collect();
    // The sort is stable, so equals stay in the model's order.
    all.sort_by(|left, right| right.share.total_cmp(&left.share));
    all
}
