//! What there is to know first of a solved model: how it responds, what saturates first, and how far the load can grow until then.

use std::borrow::Cow;

use crate::lqn::results::Results;
use crate::lqn::sketch::Quantiles;
use crate::lqn::{Model, Multiplicity, ProcessorId, Scheduling};
use crate::model::{Load, LoadReason, OpenServers, Origins};
use crate::solve::bounds::{Resource, bounds};
use crate::solve::{SimulateOptions, SolveOptions, solve};
use crate::study::batches::{beyond_largest, in_largest_batches};
use crate::study::bottleneck::busiest;
use crate::study::figure::{Figure, Measure, Quantity};
use crate::study::interval::{Interval, figures_of, others, solutions};
use crate::study::open_servers::open_servers;
use crate::study::scenario::has_few_operations;
use crate::study::utilization;

/// The parts of all responses whose percentiles are given.
const PARTS: [f64; 3] = [0.5, 0.95, 0.99];

/// Events of the simulation that tells percentiles.
const EVENTS: u64 = 400_000;

/// A simulated mean is far from the solver's where it differs by more than this part of it, and by more than its own interval.
const FAR: f64 = 0.05;

/// What is nearer to its bound than this part of it is taken to be there.
const SHORT_OF: f64 = 0.98;

/// Solutions that look for where threads saturate that wait for others.
const SOLUTIONS: u32 = 6;

/// What a source of load gets.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LoadOutlook {
    /// Its scenario, or of a model that was not made of traces its task or entry.
    pub name: String,
    /// Operations per second.
    pub throughput: f64,
    /// Whether the load is an assumption, since nothing tells it.
    pub assumed: bool,
    /// The mean response, seconds.
    pub response: Option<f64>,
    /// The 95 % interval of the rate, as a part of it to both sides, where the load is the observed one.
    pub rate_error: Option<f64>,
    /// Whether the load is the observed one, and a lower bound.
    pub is_least_rate: bool,
    /// The interval of the response: of a calibrated model by what else fits, else where the load is the observed one by how many operations there are. A model at the
    /// load that was traced responds as the traced operations did on the mean, so that it is as far from the truth by chance as these are.
    pub interval: Option<Interval>,
    /// The simulated mean, seconds, where it is far from the solver's: then the solver's approximations do not fit the model.
    pub simulated_response: Option<f64>,
    /// Quantiles of responses. They are simulated.
    pub quantiles: Quantiles,
    /// The mean of the responses that were traced, seconds, whatever the load was.
    pub traced_response: Option<f64>,
    /// Quantiles of these.
    pub traced_quantiles: Quantiles,
}

/// What saturates first as all loads grow in proportion.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FirstToSaturate {
    /// The resource.
    pub resource: Resource,
    /// The busy part of its servers, or of threads that others have to wait for.
    pub busy: f64,
    /// How many times the present load saturates it.
    pub factor: f64,
    /// The interval of that, of a calibrated model and where the loads are those that were observed.
    pub interval: Option<Interval>,
    /// Its servers, where more of them fit the traces as well: then another resource may saturate first.
    pub open: Option<OpenServers>,
    /// In that case, what would saturate first if its servers had no limit, of those resources whose number is certain.
    pub certain: Option<Certain>,
}

/// A resource whose number of servers or threads is certain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Certain {
    /// The resource.
    pub resource: Resource,
    /// The busy part of its servers or threads, without queueing.
    pub busy: f64,
    /// How many times the present load saturates it.
    pub factor: f64,
}

/// A processor that may saturate sooner than anything does in the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sooner {
    /// The processor.
    pub processor: ProcessorId,
    /// How many times the present load saturates it then.
    pub factor: f64,
    /// Why that may be.
    pub why: WhySooner,
}

/// Why a processor may saturate sooner than in the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WhySooner {
    /// It was taken for a delay, and so many servers of a copy or more fit as well.
    Delay {
        /// The fewest that fit.
        servers: u32,
    },
    /// One of its copies is busier than the others.
    UnevenCopies,
    /// It has a quota of processor time.
    Quota {
        /// How many cores a copy may use on the mean.
        cores: f64,
    },
    /// Its copies share machines of so many cores each.
    Machine {
        /// Cores of a machine.
        cores: u32,
        /// Whether more would fit as well.
        is_open: bool,
        /// How many servers of a copy may be busy on the mean.
        busy: f64,
    },
    /// It was measured to be busier than traced operations make it.
    Others {
        /// Servers of a copy that other programs, or requests without traces, keep busy.
        busy: f64,
    },
}

/// What there is to know first.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Outlook {
    /// By source of load.
    pub loads: Vec<LoadOutlook>,
    /// `None` where nothing has a limit.
    pub first: Option<FirstToSaturate>,
    /// What may saturate sooner than that, the first of them first.
    pub sooner: Vec<Sooner>,
    /// How many servers of each processor may be busy, where that can be told.
    pub busy: Vec<Option<Interval>>,
}

/// What there is to know first of a model and its results. Percentiles of results that have none are simulated, on so many threads.
pub fn outlook(model: &Model, results: &Results, origins: Option<&Origins>, threads: usize) -> Outlook {
    let steady = !results.convergence.saturated;
    let simulated = match &results.simulated {
        Some(_) => Some(results.clone()),
        None if steady => simulated(model, &PARTS, threads),
        None => None,
    };
    let of = |measure: &Measure| {
        let figure = |quantity| Measure { quantity, ..measure.clone() }.of(model, results, origins);
        let quantile = |part: f64| {
            let figure = Figure::Percentile { element: measure.element, name: measure.name.clone(), part };
            simulated.as_ref().and_then(|simulated| figure.of(model, simulated, origins))
        };
        let response = figure(Quantity::Response).filter(|_| steady);
        let response_of = Measure { quantity: Quantity::Response, ..measure.clone() };
        let scenarios = origins.map(|origins| &origins.scenarios[..]).unwrap_or_default();
        let traced = scenarios.iter().find(|own| own.table() == measure.element && *own.name == *measure.name);
        // Of what is rare a simulation sees too few to tell.
        let is_rare = traced.is_some_and(has_few_operations);
        let simulated_response =
            simulated.as_ref().filter(|_| !is_rare).zip(response).and_then(|(simulated, response)| {
                let mean = response_of.of(model, simulated, origins)?;
                let width = response_of.half_width(model, simulated, origins).unwrap_or(f64::INFINITY);
                is_far(response, (mean, width), FAR).then_some(mean)
            });
        let [p50, p95, p99] = if is_rare { [None; 3] } else { PARTS.map(quantile) };
        let observed = traced.filter(|traced| traced.reason == LoadReason::Observed);
        let error = observed.and_then(|own| own.response_error);
        LoadOutlook {
            name: measure.name.clone(),
            throughput: figure(Quantity::Throughput).unwrap_or_default(),
            assumed: traced.is_some_and(|own| own.reason == LoadReason::Assumed),
            rate_error: observed.filter(|own| matches!(own.load, Load::Open { .. })).and_then(|own| own.rate_error),
            is_least_rate: observed.is_some_and(|own| own.is_least_rate),
            response,
            interval: response.zip(error).map(|(response, error)| Interval::within(response, error)),
            simulated_response,
            quantiles: Quantiles { p50, p95, p99, p95_interval: None },
            traced_response: traced.and_then(|traced| traced.observed_response),
            traced_quantiles: traced.map(|traced| traced.observed_quantiles).unwrap_or_default(),
        }
    };
    let usual = Measure::usual(model, origins);
    let loads = usual.iter().filter(|measure| measure.quantity == Quantity::Response).map(of).collect();
    beyond(model, results, origins, loads)
}

/// How far the load may grow, without what there is to know of responses.
pub fn capacity(model: &Model, results: &Results, origins: Option<&Origins>) -> Outlook {
    beyond(model, results, origins, Vec::new())
}

fn beyond(model: &Model, results: &Results, origins: Option<&Origins>, loads: Vec<LoadOutlook>) -> Outlook {
    let first = first_to_saturate(model, results, origins);
    let sooner = sooner(model, results, origins, first.as_ref().map_or(f64::INFINITY, |first| first.factor));
    let mut outlook = Outlook { loads, first, sooner, busy: utilization::intervals(model, results, origins) };
    if let Some(first) = &mut outlook.first {
        first.interval = factors(first, &outlook.busy, results);
        // What was traced had a steady state: today's load is less than what saturates.
        let is_observed = |own: &Origins| own.scenarios.iter().all(|own| own.reason == LoadReason::Observed);
        if let Some(interval) = first.interval.as_mut().filter(|_| origins.is_some_and(is_observed)) {
            interval.low = interval.low.max(first.factor.min(1.0));
        }
        if let Some(more) = beyond_largest(model, origins, first.resource) {
            // How large batches get is not known beyond those that were traced.
            let known = first.interval.unwrap_or(Interval { low: first.factor, high: first.factor });
            first.interval = Some(Interval { high: known.high * more, ..known });
        }
    }
    intervals(&mut outlook, model, origins);
    outlook
}

/// Processors that may saturate at fewer times the present load than so many.
fn sooner(model: &Model, results: &Results, origins: Option<&Origins>, before: f64) -> Vec<Sooner> {
    let Some(origins) = origins else { return Vec::new() };
    let found = |name: &str, why: WhySooner| {
        let processor = model.processor_named(name)?;
        let utilization = results.processors[processor.index()].utilization;
        // A question may ask for another number.
        let factor = match (model.processors[processor.index()].multiplicity, why) {
            (Multiplicity::Infinite, WhySooner::Delay { servers }) => f64::from(servers) / utilization,
            (Multiplicity::Finite(servers), WhySooner::UnevenCopies) => {
                f64::from(servers) / (utilization * origins.uneven.get(name)?)
            }
            (Multiplicity::Finite(servers), WhySooner::Others { busy }) => {
                (f64::from(servers) - busy).max(0.0) / utilization
            }
            // One that the model has, it has counted.
            (Multiplicity::Finite(_), WhySooner::Quota { cores }) if model.cap(processor).is_none() => {
                cores / utilization
            }
            // Other servers would do other work in a core.
            (Multiplicity::Finite(1), WhySooner::Machine { busy, .. }) => busy / utilization,
            _ => return None,
        };
        (factor < before).then_some(Sooner { processor, factor, why })
    };
    let delays = origins.delays.iter().map(|(name, servers)| (name, WhySooner::Delay { servers: *servers }));
    let uneven = origins.uneven.keys().map(|name| (name, WhySooner::UnevenCopies));
    let others = origins.others.iter().map(|(name, busy)| (name, WhySooner::Others { busy: *busy }));
    let quotas = origins.quotas.iter().map(|(name, cores)| (name, WhySooner::Quota { cores: *cores }));
    let machines = origins.machines.iter();
    let machines = machines
        .map(|(name, (busy, own))| (name, WhySooner::Machine { cores: own.cores, is_open: own.is_open, busy: *busy }));
    let mut all: Vec<Sooner> = delays
        .chain(uneven)
        .chain(others)
        .chain(quotas)
        .chain(machines)
        .filter_map(|(name, why)| found(name, why))
        .collect();
    all.sort_by(|left, right| left.factor.total_cmp(&right.factor));
    all
}

/// How many times the present load saturates a processor, from how many of its servers may be busy.
fn factors(first: &FirstToSaturate, busy: &[Option<Interval>], results: &Results) -> Option<Interval> {
    let Resource::Processor(processor) = first.resource else { return None };
    let (busy, now) = (busy[processor.index()]?, results.processors[processor.index()].utilization);
    Some(Interval { low: first.factor * now / busy.high, high: first.factor * now / busy.low })
}

/// What models that fit as well as a calibrated one make of it.
fn intervals(outlook: &mut Outlook, model: &Model, origins: Option<&Origins>) {
    let (others, error) = others(model);
    if others.is_empty() {
        return;
    }
    let usual = Measure::usual(model, origins).into_iter();
    let responses: Vec<Figure> = usual.filter(|own| own.quantity == Quantity::Response).map(Figure::Mean).collect();
    let found = solutions(&others);
    for (load, response) in outlook.loads.iter_mut().zip(&responses) {
        let own = figures_of(&others, &found, response, origins);
        load.interval = load.response.map(|response| Interval::of(response, &own, error));
    }
    if let Some(first) = &mut outlook.first {
        let factors = others.iter().zip(&found).filter_map(|(other, results)| {
            first_to_saturate(other, results.as_ref()?, None).map(|first| Some(first.factor))
        });
        let factors: Vec<Option<f64>> = factors.collect();
        first.interval = Some(Interval::of(first.factor, &factors, 0.0));
    }
}

/// Whether a figure is off a simulated mean with its half width by more than this part of it, and by more than chance.
pub(in crate::study) fn is_far(figure: f64, (mean, width): (f64, f64), part: f64) -> bool {
    let far = (mean - figure).abs();
    // An interval of few replications is known roughly.
    far > part * mean && far > 2.0 * width
}

/// A short simulation, which tells percentiles of these parts. A longer one where the warm-up takes as long: responses count after it.
pub(in crate::study) fn simulated(model: &Model, parts: &[f64], threads: usize) -> Option<Results> {
    let mut found = None;
    for events in [EVENTS, 4 * EVENTS, 16 * EVENTS] {
        let options = SimulateOptions { events, parts: parts.to_vec(), threads, ..SimulateOptions::default() };
        let results = solve(model, &SolveOptions::from(options), None, &mut ()).ok()?.results;
        if results.convergence.saturated {
            return None;
        }
        let is_warm = results.simulated.as_ref().is_some_and(|simulated| !simulated.percentiles.is_empty());
        found = Some(results);
        if is_warm {
            break;
        }
    }
    found
}

/// What saturates first as all loads grow in proportion, from what they ask of each resource. Threads that wait for others may all
/// be busy sooner, which open arrivals show: then the solver tells when.
pub(in crate::study) fn first_to_saturate(
    model: &Model,
    results: &Results,
    origins: Option<&Origins>,
) -> Option<FirstToSaturate> {
    let mut asked: Vec<(Resource, f64)> = Vec::new();
    let mut ask = |resource: Resource, share: f64| match asked.iter_mut().find(|(own, _)| *own == resource) {
        Some((_, busy)) => *busy += share,
        None => asked.push((resource, share)),
    };
    let largest = in_largest_batches(model, origins);
    let bounds = bounds(&largest).ok()?;
    let closed = bounds.closed();
    for source in &closed {
        let throughput = results.tasks[source.task.index()].throughput;
        for limit in &source.limits {
            ask(limit.resource, throughput / limit.throughput());
        }
    }
    for room in bounds.rooms() {
        ask(room.resource, room.utilization);
    }
    let open_of = |resource| open_servers(model, origins, resource);
    let most = |asked: &mut dyn Iterator<Item = &(Resource, f64)>| {
        let most = asked.copied().reduce(|most, own| if own.1 > most.1 { own } else { most });
        most.filter(|(_, busy)| *busy > 0.0)
    };
    let (resource, busy) = most(&mut asked.iter())?;
    let open = open_of(resource);
    let certain = open.and_then(|_| most(&mut asked.iter().filter(|(own, _)| open_of(*own).is_none())));
    let certain = certain.map(|(resource, busy)| Certain { resource, busy, factor: 1.0 / busy });
    let bound = FirstToSaturate { resource, busy, factor: 1.0 / busy, interval: None, open, certain };
    let pools = model
        .tasks
        .iter()
        .any(|task| task.scheduling != Scheduling::Reference && matches!(task.multiplicity, Multiplicity::Finite(_)));
    // Closed loads have a steady state whatever saturates.
    let sooner = closed.is_empty() && pools && bound.factor > 1.0 && !results.convergence.saturated;
    let mut first = if sooner { at_most(&largest, bound, (results, origins)) } else { bound };
    if matches!(largest, Cow::Owned(_)) {
        // Today's batches are smaller.
        first.busy = first.busy.max(first.resource.utilization(model, results)).min(1.0);
    }
    Some(first)
}

/// The bound, or where the model ceases to have a steady state below it.
fn at_most(model: &Model, bound: FirstToSaturate, (today, origins): (&Results, Option<&Origins>)) -> FirstToSaturate {
    let solved = |factor: f64| {
        let mut grown = model.clone();
        for entry in &mut grown.entries {
            entry.open_arrival_rate = entry.open_arrival_rate.map(|rate| rate * factor);
        }
        let results = solve(&grown, &SolveOptions::default(), None, &mut ()).ok()?.results;
        results.convergence.converged.then_some(results)
    };
    if solved(SHORT_OF * bound.factor).is_some() {
        return bound;
    }
    let (mut steady, mut beyond, mut last) = (1.0, bound.factor, None);
    for _ in 0..SOLUTIONS {
        let middle = f64::midpoint(steady, beyond);
        match solved(middle) {
            Some(results) => (steady, last) = (middle, Some(results)),
            None => beyond = middle,
        }
    }
    let limit = last.and_then(|results| busiest(model, &results));
    match limit {
        Some(busy) => {
            let open = open_servers(model, origins, busy.resource);
            // Threads wait for others longer under more load: how busy they are does not grow in proportion.
            let resource = busy.resource;
            let busy = resource.utilization(model, today).min(1.0);
            let certain = bound.certain.filter(|_| open.is_some());
            FirstToSaturate { resource, busy, factor: steady, interval: None, open, certain }
        }
        None => FirstToSaturate { factor: steady, ..bound },
    }
}
