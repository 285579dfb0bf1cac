//! How far predictions of a model that was made of traces may be off by chance.
//!
//! What a model has of traces strays: the demands on each processor, and rates that were observed. Each of these is one source of error, and they are independent. A model is solved
//! again with each of them at both ends of its 95 % interval. What that changes in a figure adds up as the root of the sum of squares, of logarithms and for each side by itself
//! (the delta method with finite differences). Sources that matter less are moved together, each by its part of the direction in which they move responses most: one solution then tells
//! the root of the sum of their squares (as in the advanced mean value method of Wu, Millwater and Cruse, Advanced probabilistic structural analysis method for implicit performance functions, 1990).

use std::collections::BTreeMap;

use crate::lqn::results::Results;
use crate::lqn::sketch::NORMAL;
use crate::lqn::{Body, Model, ProcessorId, Scheduling, Work};
use crate::model::{Load, Origins, ScenarioOrigin};
use crate::solve::{LayeredOptions, SolveOptions, solve};
use crate::study::figure::{Figure, Quantity, servers};
use crate::study::interval::Interval;

/// Sources of error that are moved one by one; all others are moved together (ours).
const ALONE: usize = 4;

/// Sources that matter less, as a part of the one that matters most, are left out (ours): a hundred of them would make an interval wider by half of a hundredth.
const LITTLE: f64 = 0.01;

/// What is nearer to a figure, as a part of it, is what solvers are off by.
const LEAST: f64 = 1e-5;

/// The greatest standard deviation that is reckoned with, as a part (ours): of fewer than four invocations nobody knows it.
const MOST: f64 = 0.5;

/// Processors are taken to be no busier than this where their part in responses is estimated.
const BUSIEST: f64 = 0.98;

/// What of a model is not taken from traces, or taken from them as they are.
pub trait Observed {
    /// A scenario as it was traced, where the load that the model has comes from traces.
    fn scenario(&self, own: &ScenarioOrigin) -> Option<&ScenarioOrigin>;
    /// Whether the rate of a scenario was observed, or is so many times an observed one.
    fn is_rate(&self, own: &ScenarioOrigin) -> bool;
    /// Whether the demand of an entry of that name was told and not traced.
    fn is_told(&self, entry: &str) -> bool;
}

/// The 95 % intervals of figures of a model that was made of traces; none of those that are not known or of which nothing is in doubt, and of percentiles.
///
/// The model is solved up to 11 times, by mean value analysis. A response is no surer than that of the traced operations, which is known as well as there are many.
pub fn intervals(
    (model, origins): (&Model, &Origins),
    results: &Results,
    (measures, figures): (&[Figure], &[Option<f64>]),
    observed: &dyn Observed,
) -> Vec<Option<Interval>> {
    let changes = Changes::of(model, origins, results, measures, observed);
    let interval = |((number, measure), figure): ((usize, &Figure), &Option<f64>)| {
        let figure = figure.filter(|figure| *figure > 0.0 && measure.part().is_none())?;
        let scenario = scenario_of(measure, origins);
        if let (Some(own), Quantity::Throughput) = (scenario, measure.quantity())
            && matches!(own.load, Load::Open { .. })
        {
            // What arrives is served.
            let error = own.rate_error.filter(|_| observed.is_rate(own)).unwrap_or(0.0);
            return (error > 0.0).then(|| Interval::around(figure, figure * error));
        }
        let (mut low, mut high) = changes.as_ref().map_or((0.0, 0.0), |changes| changes.of_figure(number, measure));
        let traced = scenario.and_then(|own| observed.scenario(own)?.response_error);
        if let (Some(error), Quantity::Response) = (traced, measure.quantity()) {
            (low, high) = (low.max(error), high.max(error));
        }
        let interval = Interval { low: figure * (-low).exp(), high: (figure * high.exp()).min(most(measure, model)) };
        (low.max(high) > LEAST).then_some(interval)
    };
    measures.iter().enumerate().zip(figures).map(interval).collect()
}

/// The scenario whose figure it is.
fn scenario_of<'o>(measure: &Figure, origins: &'o Origins) -> Option<&'o ScenarioOrigin> {
    origins.scenarios.iter().find(|own| own.table() == measure.element() && *own.name == *measure.name())
}

/// What may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    /// All demands on a processor.
    Demands(ProcessorId),
    /// The rate of a scenario, by its number.
    Rate(usize),
}

/// Something that may be off by chance.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Source {
    what: What,
    /// The standard deviation of its logarithm.
    deviation: f64,
    /// About how many standard deviations of the responses that is, all together, in proportion to the others.
    weight: f64,
}

/// What changes in figures as sources of error are moved to both ends of their intervals, one row a source.
struct Changes {
    rows: Vec<[Vec<Option<f64>>; 2]>,
    base: Vec<Option<f64>>,
}

impl Changes {
    /// `None` where mean value analysis finds no steady state.
    fn of(
        model: &Model,
        origins: &Origins,
        results: &Results,
        measures: &[Figure],
        observed: &dyn Observed,
    ) -> Option<Self> {
        let sources = sources(model, origins, results, observed);
        if sources.is_empty() {
            return None;
        }
        let options = SolveOptions::from(LayeredOptions { states: 0, ..LayeredOptions::default() });
        let mut warm_start = None;
        let mut figures = |model: &Model| {
            let found = solve(model, &options, warm_start.take(), &mut ()).ok()?;
            let results = found.results;
            if results.convergence.converged {
                warm_start = Some(found.warm_start);
            }
            let of = |measure: &Figure| measure.of(model, &results, Some(origins)).filter(|own| own.is_finite());
            (!results.convergence.saturated).then(|| measures.iter().map(of).collect::<Vec<_>>())
        };
        let base = figures(model)?;
        let unknown = || vec![None; measures.len()];
        let row = |group: &Vec<Source>| {
            let total = group.iter().map(|own| own.weight.powi(2)).sum::<f64>().sqrt();
            [-NORMAL, NORMAL].map(|end| {
                let factor = |own: &Source| (own.what, (end * own.deviation * own.weight / total).exp());
                let moved = moved(model, origins, &group.iter().map(factor).collect::<Vec<_>>());
                figures(&moved).unwrap_or_else(unknown)
            })
        };
        Some(Self { rows: groups(sources).iter().map(row).collect(), base })
    }

    /// By how much a figure may be less and more, as logarithms of factors.
    fn of_figure(&self, number: usize, measure: &Figure) -> (f64, f64) {
        let Some(base) = self.base[number].filter(|base| *base > 0.0) else { return (0.0, 0.0) };
        let grows = matches!(measure.quantity(), Quantity::Response | Quantity::Service);
        let (mut low, mut high) = (0.0_f64, 0.0_f64);
        for row in &self.rows {
            let change = |end: usize| row[end][number].filter(|own| *own > 0.0).map(|own| (own / base).ln());
            let ends = [change(0), change(1)];
            let known = || ends.iter().flatten().copied();
            let (less, more) = (known().fold(0.0, f64::min), known().fold(0.0, f64::max));
            let is_known = ends.iter().all(Option::is_some);
            // Without a steady state responses grow without limit, and all else is as far to one side as to the other.
            let more = if is_known {
                more
            } else if grows {
                f64::INFINITY
            } else {
                more.max(-less)
            };
            low += less * less;
            high += more * more;
        }
        (low.sqrt(), high.sqrt())
    }
}

/// Those that matter most by themselves, and all others together.
fn groups(mut sources: Vec<Source>) -> Vec<Vec<Source>> {
    sources.sort_by(|one, other| other.weight.total_cmp(&one.weight));
    let least = sources.first().map_or(0.0, |first| LITTLE * first.weight);
    sources.retain(|own| own.weight > least);
    let others = sources.split_off(sources.len().min(ALONE));
    let mut groups: Vec<Vec<Source>> = sources.into_iter().map(|own| vec![own]).collect();
    groups.extend((!others.is_empty()).then_some(others));
    groups
}

/// All that may be off, with about how much it matters: by Little's law the part of a processor in all responses is that of those who are there, and these grow as those of
/// a queue for several servers do (Sakasegawa 1977).
fn sources(model: &Model, origins: &Origins, results: &Results, observed: &dyn Observed) -> Vec<Source> {
    let mut squares: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for ((entry, result), origin) in model.entries.iter().zip(&results.entries).zip(&origins.entries) {
        let (busy, off) = squares.entry(model.tasks[entry.task.index()].processor.index()).or_default();
        *busy += result.processor_utilization;
        if !observed.is_told(&entry.name) {
            *off += (result.processor_utilization * origin.doubt.chance).powi(2);
        }
    }
    let mut found = Vec::new();
    let (mut all, mut of_rates) = (0.0, 0.0);
    for (processor, (busy, off)) in squares {
        let own = &model.processors[processor];
        let copies = f64::from(own.copies());
        let servers = if own.scheduling == Scheduling::Delay { f64::INFINITY } else { own.multiplicity.servers() };
        let used = (results.processors[processor].utilization / servers).min(BUSIEST);
        let (waiting, growth) = queue(servers, used);
        all += copies * (busy + waiting);
        of_rates += copies * waiting * growth;
        if busy > 0.0 && off > 0.0 {
            let deviation = (off.sqrt() / busy).min(MOST);
            let weight = deviation * copies * (busy + waiting * (1.0 + growth));
            found.push(Source { what: What::Demands(ProcessorId::from(processor)), deviation, weight });
        }
    }
    let rate = |own: &ScenarioOrigin| match own.load {
        Load::Open { rate } => rate,
        Load::Closed { .. } => 0.0,
    };
    let total: f64 = origins.scenarios.iter().map(rate).sum();
    for (number, own) in origins.scenarios.iter().enumerate() {
        if let (Some(error), Load::Open { rate }) = (own.rate_error.filter(|_| observed.is_rate(own)), own.load) {
            let deviation = (error / NORMAL).min(MOST);
            let weight = deviation * of_rates.max(LITTLE * all) * rate / total;
            found.push(Source { what: What::Rate(number), deviation, weight });
        }
    }
    found.retain(|own| own.weight > 0.0);
    found
}

/// How many wait for so many servers of which this part is busy, and by which power of their use that grows.
fn queue(servers: f64, used: f64) -> (f64, f64) {
    if !(servers.is_finite() && used > 0.0) {
        return (0.0, 0.0);
    }
    let power = (2.0 * (servers + 1.0)).sqrt();
    (used.powf(power) / (1.0 - used), power + used / (1.0 - used))
}

/// The model with some of it so many times what it is.
fn moved(model: &Model, origins: &Origins, factors: &[(What, f64)]) -> Model {
    let mut moved = model.clone();
    let of_processor = |processor: ProcessorId| {
        factors.iter().find(|(what, _)| *what == What::Demands(processor)).map(|(_, factor)| *factor)
    };
    let task_factors: Vec<Option<f64>> = model.tasks.iter().map(|task| of_processor(task.processor)).collect();
    let scale = |work: &mut Work, factor: f64| {
        work.demand *= factor;
        work.think_time *= factor;
    };
    for entry in &mut moved.entries {
        if let (Some(factor), Body::Phases(phases)) = (task_factors[entry.task.index()], &mut entry.body) {
            for work in phases {
                scale(work, factor);
            }
        }
    }
    for activity in &mut moved.activities {
        if let Some(factor) = task_factors[activity.task.index()] {
            scale(&mut activity.work, factor);
        }
    }
    let rates = factors.iter().filter_map(|(what, factor)| match what {
        What::Rate(number) => Some((&origins.scenarios[*number], *factor)),
        What::Demands(_) => None,
    });
    for (own, factor) in rates {
        arrive(&mut moved, model, origins, (own, factor));
    }
    moved
}

/// Lets so many times as many operations of a scenario arrive.
fn arrive(moved: &mut Model, model: &Model, origins: &Origins, (own, factor): (&ScenarioOrigin, f64)) {
    let arrivals = |own: &ScenarioOrigin, number: usize| {
        let Load::Open { rate } = own.load else { return 0.0 };
        own.first.iter().filter(|(entry, _)| entry.index() == number).map(|(_, requests)| rate * requests).sum()
    };
    let is_alone = origins.scenarios.len() == 1;
    for (number, entry) in moved.entries.iter_mut().enumerate() {
        let (Some(rate), Some(now)) = (model.entries[number].open_arrival_rate, &mut entry.open_arrival_rate) else {
            continue;
        };
        let all: f64 = origins.scenarios.iter().map(|own| arrivals(own, number)).sum();
        // Nobody waits for messages, and only one scenario has them to itself.
        let part = if is_alone {
            1.0
        } else if all > 0.0 {
            arrivals(own, number) / all
        } else {
            0.0
        };
        *now += rate * part * (factor - 1.0);
    }
}

/// The most that a figure can be: servers or threads that are busy are no more than there are.
fn most(figure: &Figure, model: &Model) -> f64 {
    match figure {
        Figure::Mean(measure) if measure.quantity == Quantity::Utilization => servers(measure, model),
        Figure::Part(_) => 1.0,
        _ => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(weight: f64) -> Source {
        Source { what: What::Rate(0), deviation: 0.1, weight }
    }

    #[test]
    fn those_that_matter_least_are_moved_together_or_not_at_all() {
        let weights = |count: usize| (0..count).map(|number| source(1.0 / (number + 1) as f64)).collect::<Vec<_>>();
        assert_eq!(groups(weights(3)).iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1]);
        assert_eq!(groups(weights(7)).iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1, 1, 3]);
        assert_eq!(groups(vec![source(1.0), source(0.001)]), [vec![source(1.0)]]);
        assert!(groups(Vec::new()).is_empty());
    }

    #[test]
    fn a_queue_for_one_server_is_that_of_poisson_arrivals() {
        let (waiting, growth) = queue(1.0, 0.5);
        assert!((waiting - 0.5).abs() < 1e-12 && (growth - 3.0).abs() < 1e-12);
        assert_eq!(queue(f64::INFINITY, 0.5), (0.0, 0.0));
    }
}
