//! What a model predicts for the scenarios that it was made of.

use std::cell::OnceCell;

use crate::diagnostic::quantity::{number, time};
use crate::diagnostic::{Diagnostic, Place};
use crate::lqn::results::Results;
use crate::lqn::{Body, Model, Multiplicity, Scheduling};
use crate::model::{DemandSource, Load, LoadReason, Origins, OwnTime, ScenarioOrigin, alike, codes};
use crate::solve::bounds::Resource;
use crate::solve::{SolveOptions, solve};
use crate::study::bottleneck::busiest;

/// A scenario with its results.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ScenarioResult<'o> {
    /// The scenario and its load.
    pub origin: &'o ScenarioOrigin,
    /// Operations per second.
    pub throughput: f64,
    /// Mean response time, seconds: of a closed load the cycle without the think time (Little's law), of an open one the
    /// responses of all first requests. `None` where nothing waits for a response, and where more arrives than is served.
    pub response: Option<f64>,
}

impl<'o> ScenarioResult<'o> {
    /// The results of each scenario.
    pub fn all(model: &Model, results: &Results, origins: &'o Origins) -> Vec<Self> {
        let one = |origin| {
            let one = Self::one(model, results, origin);
            // Without a steady state a response grows for as long as one looks.
            Self { response: one.response.filter(|_| !results.convergence.saturated), ..one }
        };
        origins.scenarios.iter().map(one).collect()
    }

    /// Whether it has as many operations as were traced, give or take a fifth.
    pub fn has_traced_load(&self) -> bool {
        match (self.origin.reason, self.origin.observed_rate) {
            // What is assumed where traces tell no rate stands for them.
            (LoadReason::Observed | LoadReason::Assumed, _) => true,
            (LoadReason::Configured, Some(rate)) => is_about(self.throughput, rate),
            (LoadReason::Configured, None) => false,
        }
    }

    fn one(model: &Model, results: &Results, origin: &'o ScenarioOrigin) -> Self {
        match (origin.load, origin.customer) {
            (Load::Closed { .. }, Some(task)) => {
                let task = &results.tasks[task.index()];
                Self { origin, throughput: task.throughput, response: task.response() }
            }
            (Load::Open { rate }, _) => {
                let response = origin.first.iter().try_fold(0.0, |sum, (entry, requests)| {
                    let result = &results.entries[entry.index()];
                    let first = result.open_response.unwrap_or(result.service[0]);
                    // Copies of a task share the arrivals, so each arrival still meets one of them.
                    model.entries.get(entry.index()).map(|_| sum + requests * first)
                });
                Self { origin, throughput: rate, response: response.filter(|_| !origin.first.is_empty()) }
            }
            (Load::Closed { .. }, None) => Self { origin, throughput: 0.0, response: None },
        }
    }
}

/// How far a prediction under the traced load may lie from what was traced, as a share of it, before it is worth a word.
const TOLERANCE: f64 = 0.2;

/// The same where the load is the traced one itself.
const AS_TRACED: f64 = 0.05;

/// Where the model, at the load that was traced, does not respond as the traces did: a model that cannot tell what was seen should
/// not be trusted with what was not. A configured load is that of the traces where as many operations come of it.
pub fn unlike_traced(model: &Model, results: &Results, origins: &Origins) -> Vec<Diagnostic> {
    let scenarios = ScenarioResult::all(model, results, origins);
    // The traces do not tell how one scenario responds under another load of the others.
    if !scenarios.iter().all(ScenarioResult::has_traced_load) {
        return Vec::new();
    }
    let assumed = scenarios.iter().any(|scenario| scenario.origin.reason == LoadReason::Assumed);
    let unqueued = OnceCell::new();
    let finding = |scenario: ScenarioResult<'_>| {
        let origin = scenario.origin;
        let (predicted, traced) = (scenario.response?, origin.observed_response?);
        let load = match (origin.reason, origin.observed_rate) {
            (LoadReason::Observed, _) => "at the traced load".to_owned(),
            (LoadReason::Configured, Some(rate)) => {
                let (own, rate) = (number(scenario.throughput), number(rate));
                format!("though the configured load, {own} operations a second, is about the traced one, {rate}")
            }
            (LoadReason::Assumed, _) => "at the load that is assumed".to_owned(),
            (LoadReason::Configured, None) => return None,
        };
        let tolerance = if origin.reason == LoadReason::Configured { TOLERANCE } else { AS_TRACED };
        if traced <= 0.0 || (predicted - traced).abs() <= (traced * tolerance).max(origin.clock_doubt) {
            return None;
        }
        let percent = ((predicted / traced - 1.0).abs() * 100.0).round();
        let way = if predicted < traced { "below" } else { "above" };
        let message = format!(
            "scenario `{}`: predicted response {} is {percent} % {way} the traced {}, {load}",
            origin.name,
            time(predicted),
            time(traced)
        );
        let too_many = |rate| scenario.throughput > rate && !is_about(scenario.throughput, rate);
        if let (true, LoadReason::Observed, Some(rate)) = (predicted > traced, origin.reason, origin.observed_rate)
            && too_many(rate)
        {
            let why = format!(
                "the model's customers make {} operations a second, and {} were traced: it has more load than the system had",
                number(scenario.throughput),
                number(rate)
            );
            let hint = "set `rate`, or `population` and `think_time`, of the scenario";
            return Some(
                Diagnostic::warning(codes::UNLIKE_TRACED, Place::Nowhere, message).with_note(why).with_hint(hint),
            );
        }
        let finding = Diagnostic::warning(codes::UNLIKE_TRACED, Place::Nowhere, message);
        if predicted < traced {
            let (why, hint) = below(model, origins);
            return Some(finding.with_note(why).with_hint(hint));
        }
        let unqueued = unqueued.get_or_init(|| without_queues(model)).as_ref();
        let alone = unqueued.and_then(|(model, results)| ScenarioResult::one(model, results, origin).response);
        if assumed && alone.is_some_and(|alone| alone - traced <= (predicted - traced) / 2.0) {
            let why = "operations meet others in the model, at a rate that no trace tells; those that were traced met none, or fewer";
            let hint = "set `rate`, or `population` and `think_time`, of the scenario";
            return Some(finding.with_note(why).with_hint(hint));
        }
        Some(above(finding, model, results, origins, alone, (predicted, traced)))
    };
    scenarios.into_iter().filter_map(finding).collect()
}

/// Below so many operations nothing is said of how much times and calls vary, so that solvers take them as they usually do.
const FEW: u64 = 10;

/// Scenarios that are named.
const NAMED: usize = 5;

/// Whether a scenario has timed operations, but too few for percentiles.
pub(super) fn has_few_operations(own: &ScenarioOrigin) -> bool {
    own.members.is_empty() && own.operations < FEW && own.observed_response.is_some()
}

/// Names scenarios with too few timed operations for percentiles.
pub fn few_operations(origins: &Origins) -> Option<Diagnostic> {
    let few: Vec<&ScenarioOrigin> = origins.scenarios.iter().filter(|own| has_few_operations(own)).collect();
    if few.is_empty() {
        return None;
    }
    let times = |count: u64| if count == 1 { "1 operation".to_owned() } else { format!("{count} operations") };
    let message = match &few[..] {
        [only] => format!("scenario `{}` has {}: too few for percentiles", only.name, times(only.operations)),
        _ => format!("{} scenarios have too few operations for percentiles", few.len()),
    };
    let mut finding = Diagnostic::warning(codes::FEW_OPERATIONS, Place::Nowhere, message);
    if few.len() > 1 {
        for own in few.iter().take(NAMED) {
            finding = finding.with_note(format!("`{}` has {}", own.name, times(own.operations)));
        }
        if few.len() > NAMED {
            finding = finding.with_note(format!("and {} more have fewer than {FEW}", few.len() - NAMED));
        }
    }
    let assumed = format!("times of what was seen fewer than {FEW} times are taken as exponential");
    let alike = few.iter().filter(|own| alike::pattern(&own.name).is_some()).count();
    Some(finding.with_note(assumed).with_hint(if alike >= alike::MANY && 2 * alike > few.len() {
        "their names differ in numbers: `--group PATTERN`, as in M068, makes one operation of those which are one"
    } else {
        "record more operations"
    }))
}

/// A model in which nothing ever queues, with its results.
fn without_queues(model: &Model) -> Option<(Model, Results)> {
    let mut model = model.clone();
    for processor in &mut model.processors {
        (processor.scheduling, processor.multiplicity) = (Scheduling::Delay, Multiplicity::Infinite);
    }
    for task in model.tasks.iter_mut().filter(|task| task.scheduling != Scheduling::Reference) {
        (task.scheduling, task.multiplicity) = (Scheduling::Delay, Multiplicity::Infinite);
    }
    let found = solve(&model, &SolveOptions::default(), None, &mut ()).ok()?;
    Some((model, found.results))
}

fn is_about(value: f64, traced: f64) -> bool {
    (value / traced - 1.0).abs() <= TOLERANCE
}

fn comes_from(origins: &Origins, source: DemandSource) -> bool {
    origins.entries.iter().any(|entry| entry.sources.contains(&source))
}

/// Why a prediction may be too low, and what to do about it.
fn below(model: &Model, origins: &Origins) -> (&'static str, &'static str) {
    let phases = model.entries.iter().flat_map(|entry| match &entry.body {
        Body::Phases(phases) => &phases[..],
        Body::Activities(_) => &[],
    });
    let mut works = phases.chain(model.activities.iter().map(|activity| &activity.work));
    if comes_from(origins, DemandSource::Function) {
        ("demands of the configuration are less than what was traced", "see to the functions under `[demand]`")
    } else if !works.any(|work| work.think_time > 0.0) {
        (
            "the model has no network latency",
            "set `network` under `[defaults]`: \"traced\" where traces have both halves of calls, or a time per call",
        )
    } else if comes_from(origins, DemandSource::Cpu) {
        (
            "measured CPU leaves out what tasks wait for beside other tasks: pools, locks, disks",
            "give pools their `threads`, and tasks that share a machine one `processor`; for other waits, read the model for \
             differences, not for totals",
        )
    } else {
        (
            "some of the traced time is neither demand nor network latency",
            "`dyelog trace check` tells what of the traces could not be used; else read the model for differences, not for totals",
        )
    }
}

/// Why a prediction is too high: what the scenario takes without any queueing tells whether queueing is why.
fn above(
    finding: Diagnostic,
    model: &Model,
    results: &Results,
    origins: &Origins,
    alone: Option<f64>,
    (predicted, traced): (f64, f64),
) -> Diagnostic {
    let Some(alone) = alone else { return finding };
    if alone - traced > (predicted - traced) / 2.0 {
        let why = format!("queueing is not why: without any the model takes {}", time(alone));
        let finding = finding.with_note(why);
        return if comes_from(origins, DemandSource::Function) {
            finding.with_hint("see to the functions under `[demand]`: they ask for more than what was traced")
        } else {
            finding
        };
    }
    if origins.entries.iter().any(|entry| entry.own_time != OwnTime::WHOLE) {
        return finding
            .with_note("operations met fewer others in the traces than arrivals at random do")
            .with_hint("set `population` and `think_time` of the scenario where customers wait for their response");
    }
    let Some(busy) = busiest(model, results) else { return finding };
    let name = match busy.resource {
        Resource::Processor(id) => format!("processor `{}`", model.processors[id.index()].name),
        Resource::Task(id) => format!("the threads of `{}`", model.tasks[id.index()].name),
    };
    let percent = (100.0 * busy.part).round();
    let finding = finding.with_note(format!(
        "the model queues, most of all for {name}, {percent} % busy; without, it takes {}",
        time(alone)
    ));
    let finding = if comes_from(origins, DemandSource::Exclusive) {
        finding.with_note("exclusive time includes the queueing there was, and counts in full as processor time")
    } else {
        finding
    };
    finding.with_hint("set the servers of processors (`multiplicity`), or trace under light load")
}
